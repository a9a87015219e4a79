# bash completion for redlock: commands, options, lock names, and the command of `run`.

_redlock_commands='run lock unlock extend status break locks nodes clients stats ping help version'

_redlock_options()
{
    local lock='--ttl --wait --nonblock --slots --fence --quiet' common='--url --secret-file --timeout --json --help'
    case $1 in
    run) echo "$lock --on-lost --grace --conflict-exit --also $common" ;;
    lock) echo "$lock $common" ;;
    extend) echo "--ttl $common" ;;
    status) echo "--slots $common" ;;
    help) echo '--help' ;;
    version) echo '--json --help' ;;
    '') echo "$common --version" ;;
    *) echo "$common" ;;
    esac
}

# Whether this option takes the next word as its value.
_redlock_takes_value()
{
    case $1 in
    --url | --secret-file | --timeout | --ttl | --wait | -w | --slots | --on-lost | --grace | --conflict-exit | -E | --also) return 0 ;;
    esac
    return 1
}

# Complete with the locks that the daemon knows. Any client can have chosen these names, so the
# shell must not expand them, as compgen -W would.
_redlock_names()
{
    local line name quoted
    while read -r line; do
        [[ $line == resource=* ]] || continue
        name=${line#resource=}
        name=${name%% *}
        [[ $name == "$current"* ]] || continue
        printf -v quoted %q "$name"
        COMPREPLY+=("$quoted")
    done < <(redlock ${url:+--url "$url"} ${secret:+--secret-file "$secret"} --timeout 1s locks 2>/dev/null)
}

# Complete the command after NAME with its own completion. $1 is the index of its first word.
_redlock_command()
{
    # _command_offset works only if readline has split the line into the same words.
    if ((COMP_CWORD == last)) && declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif ((last == $1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$current")
    else
        compopt -o default 2>/dev/null
    fi
}

_redlock()
{
    local words current previous url='' secret='' command='' i last operands=0 ended=
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
    # After a space, the word to complete is empty.
    [[ ${COMP_LINE:0:COMP_POINT} == *' ' ]] && words+=('')
    last=$((${#words[@]} - 1))
    current=${words[last]} previous=${words[last - 1]}
    COMPREPLY=()

    for ((i = 1; i < last; i++)); do
        if [[ ! $ended ]] && _redlock_takes_value "${words[i]}"; then
            [[ ${words[i]} == --url ]] && url=${words[i + 1]}
            [[ ${words[i]} == --secret-file ]] && secret=${words[i + 1]}
            ((++i))
        elif [[ ! $ended && ${words[i]} == --url=* ]]; then
            url=${words[i]#--url=}
        elif [[ ! $ended && ${words[i]} == --secret-file=* ]]; then
            secret=${words[i]#--secret-file=}
        elif [[ ${words[i]} == -- ]]; then
            ended=yes
        elif [[ ! $ended && ${words[i]} == -* ]]; then
            :
        elif [[ ! $command ]]; then
            command=${words[i]}
        else
            ((++operands))
        fi
        if [[ $command == run ]] && ((operands == 1)); then
            ((++i))
            [[ ${words[i]} == -- ]] && ((i < last)) && ((++i))
            _redlock_command "$i"
            return
        fi
    done

    if [[ ! $ended && $previous == --secret-file ]]; then
        compopt -o default 2>/dev/null
    elif [[ ! $ended && $previous == --also ]]; then
        _redlock_names
    elif [[ ! $ended ]] && _redlock_takes_value "$previous"; then
        [[ $previous == --on-lost ]] &&
            mapfile -t COMPREPLY < <(compgen -W 'TERM INT HUP QUIT USR1 USR2 KILL' -- "$current")
    elif [[ ! $ended && $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_redlock_options "$command")" -- "$current")
    elif [[ ! $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$_redlock_commands" -- "$current")
    elif ((operands == 0)); then
        case $command in
        run | lock | unlock | extend | status | break | locks) _redlock_names ;;
        help) mapfile -t COMPREPLY < <(compgen -W "$_redlock_commands" -- "$current") ;;
        esac
    fi

    # Readline has split the word at the last ":" or "=", and replaces only the part after it.
    if [[ $current == *[:=]* && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*[:=]}"}"}")
    fi
}

complete -F _redlock redlock
