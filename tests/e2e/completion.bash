#!/bin/bash
# Checks the bash completion of redlock: completion.bash SCRIPT, with redlock in PATH and REDLOCK_URL
# set. The daemon has the locks deploy, deploy:eu and one whose name is a shell command that must not run.
set -u
failed=0
# shellcheck source=/dev/null
source "$1" || exit 1

# Checks the sorted completions of a line.
expect() {
    local line=$1 expected=$2 got
    COMP_LINE=$line COMP_POINT=${#line}
    read -ra COMP_WORDS <<<"$line"
    [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _redlock
    got=$(printf '%s\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"} | sort | paste -sd ' ')
    [[ $got == "$expected" ]] && return
    echo "\"$line\" completes to \"$got\", not \"$expected\"" >&2
    failed=1
}

# Checks that exactly the options in the output of `redlock help COMMAND` are completed.
expect_as_in_help() {
    local command=$1 expected
    # shellcheck disable=SC2086
    expected=$(redlock help $command | grep -o -- '^ .*  --[a-z-]*\|^  -., --[a-z-]*' | grep -o -- '--[a-z-]*' |
             sort | paste -sd ' ')
    [[ $expected == *--* ]] || { echo "the help of \"$command\" lists no options" >&2; failed=1; }
    # `redlock help` without a command does not list --help and --version.
    [[ $command ]] || expected="--help $expected --version"
    expect "redlock $command --" "$(tr ' ' '\n' <<<"$expected" | sort | paste -sd ' ')"
}

commands=$(redlock help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' | sort | paste -sd ' ')
expect 'redlock ' "$commands"
# The zsh completion cannot run here, but it must name all commands and the options of `redlock run`.
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
expect 'redlock run --also d' 'deploy deploy:eu'
expect 'redlock run --also deploy d' 'deploy deploy:eu'
a_command_of_this_test() { :; }
expect 'redlock run deploy -- a_command_of' 'a_command_of_this_test'
expect 'redlock run deploy a_command_of' 'a_command_of_this_test'
expect 'redlock run -w 3s deploy a_command_of' 'a_command_of_this_test'
expect 'redlock run deploy -- make --' ''
exit $failed
