#!/bin/bash
# What bash completes for redlock: completion.bash SCRIPT, with redlock in PATH and REDLOCK_URL set.
# The daemon there knows the locks deploy, deploy:eu and one whose name is not to be run.
set -u
failed=0
# shellcheck source=/dev/null
source "$1" || exit 1

# The words that a line can be completed to, sorted, are these.
expect() {
    local line=$1 wanted=$2 got
    COMP_LINE=$line COMP_POINT=${#line}
    read -ra COMP_WORDS <<<"$line"
    [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _redlock
    got=$(printf '%s\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"} | sort | paste -sd ' ')
    [[ $got == "$wanted" ]] && return
    echo "\"$line\" is completed to \"$got\", not \"$wanted\"" >&2
    failed=1
}

# All that `redlock help` names is completed, and nothing else.
expect_as_in_help() {
    local command=$1 wanted
    # shellcheck disable=SC2086
    wanted=$(redlock help $command | grep -o -- '^ .*  --[a-z-]*\|^  -., --[a-z-]*' | grep -o -- '--[a-z-]*' |
             sort | paste -sd ' ')
    [[ $wanted == *--* ]] || { echo "no options in the help of \"$command\"" >&2; failed=1; }
    # Of the whole program, the help is short.
    [[ $command ]] || wanted="--help $wanted --version"
    expect "redlock $command --" "$(tr ' ' '\n' <<<"$wanted" | sort | paste -sd ' ')"
}

commands=$(redlock help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' | sort | paste -sd ' ')
expect 'redlock ' "$commands"
# That of zsh cannot be tried here; but it names them all, too.
for word in $commands $(redlock help run | grep -o -- '--[a-z][a-z-]*'); do
    grep -q -- "[^a-z]$word[^a-z]" "${1%/*}/_redlock" || { echo "_redlock lacks $word" >&2; failed=1; }
done
expect 'redlock help ' "$commands"
expect 'redlock lo' 'lock locks'
expect 'redlock --json sta' 'stats status'
expect 'redlock --timeout 3s p' 'ping'
for command in '' $commands; do
    expect_as_in_help "$command"
done

# shellcheck disable=SC2016
odd='\$\(touch\$\{IFS\}\$BROKEN\)'
expect 'redlock unlock d' 'deploy deploy:eu'
expect 'redlock lock --ttl 3s d' 'deploy deploy:eu'
expect 'redlock status deploy:' 'eu'
expect "redlock --url $REDLOCK_URL locks deploy:" 'eu'
expect "redlock --url=$REDLOCK_URL extend deploy:" 'eu'
expect 'redlock --url unix:/nobody/there status d' ''
expect 'redlock status ' "$odd deploy deploy:eu"
expect 'redlock unlock deploy ' ''
expect 'redlock ping ' ''

expect 'redlock run --on-lost U' 'USR1 USR2'
expect 'redlock run --ttl ' ''
expect 'redlock run d' 'deploy deploy:eu'
a_command_of_this_test() { :; }
expect 'redlock run deploy -- a_command_of' 'a_command_of_this_test'
expect 'redlock run deploy a_command_of' 'a_command_of_this_test'
expect 'redlock run -w 3s deploy a_command_of' 'a_command_of_this_test'
expect 'redlock run deploy -- make --' ''
exit $failed
