# Plain text with indented blocks, as docs/protocol.txt has it, into mdoc(7). text_print() takes
# lines from[first] to from[last]:
#
#     a paragraph            begins in the first column
#
#       term   what it is    behind two spaces begins an item; it goes on where its text began, or,
#       a term               behind a term alone, in the lines below that are indented deeper
#       - a point
#
#         an example         four spaces or more, behind an empty line: kept as it is
#
# <words> are set as placeholders, `words` and what a term has in capitals as what is typed; with
# text_bold_terms every term is.

function text_indent(line) {
    match(line, /^ */)
    return RLENGTH
}

# What the formatter would take for its own: backslashes, dots that begin a line, and the letters
# that it prettifies so that they can be copied no more.
function text_escape(line) {
    gsub(/\\/, "\\e", line)
    gsub(/'/, "\\(aq", line)
    gsub(/`/, "\\(ga", line)
    gsub(/\^/, "\\(ha", line)
    gsub(/~/, "\\(ti", line)
    sub(/^\./, "\\\\\\&.", line)
    return line
}

# An example: each minus is meant.
function text_literal(line) {
    line = text_escape(line)
    gsub(/-/, "\\-", line)
    return line
}

# `name` in bold.
function text_quoted(line,    out) {
    out = ""
    while (match(line, /\\\(ga[^\\]+\\\(ga/)) {
        out = out substr(line, 1, RSTART - 1) "\\fB" substr(line, RSTART + 4, RLENGTH - 8) "\\fP"
        line = substr(line, RSTART + RLENGTH)
    }
    return out line
}

# Prose: <name> in italics, a minus that is no hyphen, and each sentence in a line of its own.
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

# A term: what is in capitals is typed as it stands, <name> stands for something.
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
    # No word of it is a macro.
    gsub(/ /, "\\ ", out)
    return out
}

# Where the text of an item begins that has its term in the same line, or 0.
function text_column(line) {
    if (line ~ /^  - /)
        return 4
    if (match(substr(line, 3), /[^ ]  +[^ ]/))
        return 2 + RSTART + RLENGTH - 2
    return 0
}

# Displays and lists bring their empty line along, unless they are compact.
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

# An example ends at an empty line; what all of its lines are indented by is left out. With
# text_sessions, one with an answer in it is marked for tests/examples.sh, whose daemon has no users.
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
            # In the midst of what it belongs to.
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
