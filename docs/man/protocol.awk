# Insert docs/protocol.txt into redlock-protocol.7.in at @PROTOCOL@:
#
#     awk -f text.awk -f protocol.awk docs/protocol.txt redlock-protocol.7.in

FNR == 1 { file++ }
file == 1 { text[++count] = $0; next }
$0 == "@PROTOCOL@" { protocol(); next }
{ print }

# Print lines first to last as a section, without the empty lines at its beginning and end.
function section(first, last) {
    while (first <= last && text[first] == "")
        first++
    while (last >= first && text[last] == "")
        last--
    text_print(text, first, last)
}

function protocol(    i, first) {
    first = 3
    text_sessions = 1
    for (i = 3; i <= count; i++) {
        if (text[i + 1] !~ /^---+$/)
            continue
        section(first, i - 1)
        print ".Ss " text_term(text[i])
        first = i + 2
    }
    section(first, count)
}
