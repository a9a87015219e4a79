# Convert plain text with indented blocks, as in docs/protocol.txt, to mdoc(7). text_print() converts
# lines from[first] to from[last]:
#
#     a paragraph            begins in the first column
#
#       term   description   begins an item after two spaces; it continues in the column of the text,
#       a term               or, if the term is alone, in the following lines with deeper indentation
#       - a point
#
#         an example         at least four spaces, after an empty line: unchanged
#
# <words> are set as placeholders. `words`, and words of a term in capitals, are set as literals. With
# text_bold_terms every term is a literal.

function text_indent(line) {
    match(line, /^ */)
    return RLENGTH
}

# Escape what the formatter would interpret: backslashes, dots at the beginning of a line, and
# characters that it would replace by typographic ones, which cannot be copied.
function text_escape(line) {
    gsub(/\\/, "\\e", line)
    gsub(/'/, "\\(aq", line)
    gsub(/`/, "\\(ga", line)
    gsub(/\^/, "\\(ha", line)
    gsub(/~/, "\\(ti", line)
    sub(/^\./, "\\\\\\&.", line)
    return line
}

# Escape an example: a minus is never a hyphen.
function text_literal(line) {
    line = text_escape(line)
    gsub(/-/, "\\-", line)
    return line
}

# Set `name` in bold.
function text_quoted(line,    out) {
    out = ""
    while (match(line, /\\\(ga[^\\]+\\\(ga/)) {
        out = out substr(line, 1, RSTART - 1) "\\fB" substr(line, RSTART + 4, RLENGTH - 8) "\\fP"
        line = substr(line, RSTART + RLENGTH)
    }
    return out line
}

# Print prose: <name> in italics, a minus that is not a hyphen, and each sentence on its own line.
function text_prose(line,    out, at) {
    line = text_escape(line)
    gsub(/(^| )-/, "&\\-", line)
    gsub(/"-/, "&\\-", line)
    gsub(/--/, "-", line)
    gsub(/-\\-/, "\\-", line)
    out = ""
    while (match(line, /<[a-z_]+>/)) {
        out = out substr(line, 1, RSTART - 1) "\\fI" substr(line, RSTART, RLENGTH) "\\fP"
        line = substr(line, RSTART + RLENGTH)
    }
    line = text_quoted(out line)
    while (match(line, /[A-Za-z0-9)][.?!][")]? +["(<A-Z\\]/)) {
        at = RSTART + RLENGTH - 1
        out = substr(line, 1, at - 1)
        sub(/ +$/, "", out)
        print out
        line = substr(line, at)
    }
    print line
}

# Format a term: words in capitals are literals, <name> is a placeholder.
function text_term(term,    words, count, i, word, out) {
    count = split(text_literal(term), words, " ")
    out = ""
    for (i = 1; i <= count; i++) {
        word = words[i]
        if (text_bold_terms || word ~ /^[A-Z!=#][A-Z]*,?$/)
            word = "\\fB" word "\\fP"
        else
            gsub(/<[a-z_]+>/, "\\fI&\\fP", word)
        out = out (i > 1 ? " " : "") word
    }
    # Escaped spaces keep words from being taken for macros.
    gsub(/ /, "\\ ", out)
    return out
}

# The column of the text of an item whose term is on the same line, or 0.
function text_column(line) {
    if (line ~ /^  - /)
        return 4
    if (match(substr(line, 3), /[^ ]  +[^ ]/))
        return 2 + RSTART + RLENGTH - 2
    return 0
}

# Begin a list. Displays and lists print their own empty line, unless they are compact.
function text_list_begin(from, i, last, first_of_all,    column, width, longest, items, lines, inline) {
    if (from[i] ~ /^  - /) {
        print (first_of_all ? "" : ".Pp\n") ".Bl -bullet -compact"
        return
    }
    items = lines = inline = width = 0
    for (; i <= last && (from[i] == "" || text_indent(from[i]) >= 2); i++) {
        if (from[i] == "")
            continue
        lines++
        if (text_indent(from[i]) > 2)
            continue
        items++
        column = text_column(from[i])
        inline += column > 0
        if (column > width)
            width = column
    }
    width = inline == items && width <= 14 ? width - 3 : 6
    if (lines <= 2 * items)
        print (first_of_all ? "" : ".Pp\n") ".Bl -tag -width " width "n -compact"
    else
        print ".Bl -tag -width " width "n"
}

# Print an example, which ends at an empty line, without its common indentation. With text_sessions,
# an example with a reply is marked for tests/examples.sh, whose daemon has no users.
function text_example(from, i, last,    least, indent, j, session, users) {
    least = 80
    session = 0
    users = 0
    for (j = i; j <= last && from[j] != ""; j++) {
        indent = text_indent(from[j])
        if (indent < least)
            least = indent
        session += from[j] ~ /^ +(#[a-z]+ )?OK( |$)/
        users += from[j] ~ /^ +AUTH /
    }
    if (text_sessions && session && !users)
        print ".\\\" tested: session"
    print ".Bd -literal -offset " (text_listing ? "2n" : "4n")
    for (; i < j; i++)
        print text_literal(substr(from[i], least + 1))
    print ".Ed"
    return j - 1
}

function text_list_end() {
    if (text_listing)
        print ".El"
    text_listing = 0
}

function text_print(from, first, last,    i, line, indent, gap, column, body) {
    text_listing = 0
    gap = 1
    for (i = first; i <= last; i++) {
        line = from[i]
        indent = text_indent(line)
        if (line == "") {
            gap = 1
        } else if (indent == 0) {
            text_list_end()
            if (gap && i > first)
                print ".Pp"
            gap = 0
            text_prose(line)
        } else if (gap && indent > 2 && !(text_listing && indent == body)) {
            # The example is inside an item or between paragraphs.
            i = text_example(from, i, last)
            gap = 0
        } else if (indent == 2) {
            if (!text_listing)
                text_list_begin(from, i, last, i == first)
            text_listing = 1
            gap = 0
            column = text_column(line)
            body = column > 0 ? column : text_indent(from[i + 1])
            if (line ~ /^  - /)
                print ".It"
            else
                print ".It " text_term(column > 0 ? substr(line, 3, column - 2) : line)
            if (column > 0)
                text_prose(substr(line, column + 1))
        } else {
            if (gap)
                print ".Pp"
            gap = 0
            text_prose(substr(line, indent + 1))
        }
    }
    text_list_end()
}
