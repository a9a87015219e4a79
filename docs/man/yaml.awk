# Insert the comments of redlockd.yaml.example into redlockd.yaml.5.in at @KEYS@:
#
#     awk -f text.awk -f yaml.awk redlockd.yaml.example redlockd.yaml.5.in
#
# A comment describes the keys below it, up to the next empty line. The value of a key is its
# default.

FNR == 1 { file++ }
file == 1 { example[++count] = $0; next }
$0 == "@KEYS@" { keys(); next }
{ print }

# Append the text after the "# " of a line to `comment`.
function take_comment(line) {
    sub(/^ *# ?/, "", line)
    comment[++comments] = line
}

function end_list() {
    if (listing)
        print ".El"
    listing = 0
}

# Print the keys of a comment, then its text.
function end_keys(    i, list) {
    if (keys_count == 0)
        return
    if (!listing)
        print ".Bl -tag -width 4n"
    listing = 1
    for (i = 1; i <= keys_count; i++)
        print ".It " names[i]
    if (values_count > 0) {
        print ".Bd -literal -compact"
        for (i = 1; i <= values_count; i++)
            print text_literal(values[i])
        print ".Ed\n.Pp"
    }
    text_print(comment, 1, comments)
    keys_count = values_count = comments = 0
}

function add_key(line,    at) {
    sub(/^ */, "", line)
    at = index(line, ":")
    names[++keys_count] = "\\fB" substr(line, 1, at - 1) "\\fP:" text_value(substr(line, at + 1))
}

function text_value(value) {
    value = text_literal(value)
    gsub(/ /, "\\ ", value)
    return value
}

function begin_section(line) {
    end_list()
    sub(/:$/, "", line)
    print ".Ss " line
    text_print(comment, 1, comments)
    comments = 0
}

# A key is "  max_ttl: 60s", or "# admin: URL" at the end of a comment: a key that is off.
function keys(    i, line) {
    for (i = 1; i <= count && example[i] != ""; i++)
        ; # skip the introduction of the file
    text_bold_terms = 1
    comments = 0
    for (; i <= count; i++) {
        line = example[i]
        if (line == "") {
            end_keys()
        } else if (line ~ /^ *# [a-z_]+: / && example[i + 1] == "") {
            sub(/# /, "", line)
            add_key(line " (off)")
        } else if (line ~ /^ *#/) {
            take_comment(line)
        } else if (line ~ /^[a-z]+:$/ && example[i + 1] !~ /^ *- /) {
            begin_section(line)
        } else if (line ~ /^ *- /) {
            sub(/^ */, "", line)
            values[++values_count] = line
        } else {
            add_key(line)
        }
    }
    end_keys()
    end_list()
}
