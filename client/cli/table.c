#include "client/cli/table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/duration.h"
#include "protocol/text.h"

/* At most COLUMNS_MAX columns are printed. A cell has room for the longest resource name with each
 * byte escaped. */
enum { COLUMNS_MAX = 32, CELL_SIZE = 2048, GAP = 2 };

struct column {
    size_t width;
    bool hidden;
    bool texts;   /* contains text: aligned to the left */
    bool numbers; /* contains numbers */
};

struct cell {
    char text[CELL_SIZE];
    size_t len;   /* in bytes */
    size_t width; /* in characters */
    const char *colour;
};

static const char bold[] = "\033[1m";
static const char red[] = "\033[31m";
static const char green[] = "\033[32m";
static const char yellow[] = "\033[33m";
static const char plain[] = "\033[0m";

/* --- fields --- */

bool field_next(const char **text, struct field *field)
{
    const char *word = *text + strspn(*text, " ");
    size_t len = strcspn(word, " ");
    size_t key_len = strcspn(word, "= ");
    if (len == 0)
        return false;
    *field = (struct field){word, key_len, word + len, 0};
    if (key_len < len) {
        field->value = word + key_len + 1;
        field->value_len = len - key_len - 1;
    }
    *text = word + len;
    return true;
}

static bool is(const char *at, size_t len, const char *text)
{
    return len == strlen(text) && memcmp(at, text, len) == 0;
}

bool field_has_key(const struct field *field, const char *key)
{
    return is(field->key, field->key_len, key);
}

bool field_has_value(const struct field *field, const char *value)
{
    return is(field->value, field->value_len, value);
}

/* "_ms" and "_us" are the units of durations. */
static bool key_ends(const struct field *field, const char *end)
{
    size_t len = strlen(end);
    return field->key_len > len && memcmp(field->key + field->key_len - len, end, len) == 0;
}

static bool has_key_of(const struct field *field, const char *const *keys)
{
    while (*keys != NULL && !field_has_key(field, *keys))
        keys++;
    return *keys != NULL;
}

static bool is_number(const struct field *field)
{
    size_t sign = field->value_len > 0 && field->value[0] == '-';
    size_t digits = field->value_len - sign;
    if (digits == 0 || digits > 19 || (digits > 1 && field->value[sign] == '0'))
        return false;
    return strspn(field->value + sign, "0123456789") == digits;
}

enum field_kind field_kind(const struct field *field)
{
    /* A resource can be named "-". For the keys that are not in names[], "-" means no value. */
    static const char *const names[] = {"resource", "node", "url", "peer", NULL};
    static const char *const words[] = {"token", "name", "user", "version", NULL};
    if (has_key_of(field, names))
        return FIELD_TEXT;
    if (field_has_value(field, "-"))
        return FIELD_NONE;
    if (has_key_of(field, words))
        return FIELD_TEXT;
    if (field_has_value(field, "yes") || field_has_value(field, "no"))
        return FIELD_TRUTH;
    return is_number(field) ? FIELD_NUMBER : FIELD_TEXT;
}

/* Whether both lines have the same keys in the same order. */
static bool fields_alike(const char *line, const char *other)
{
    struct field a;
    struct field b;
    bool more;
    do {
        more = field_next(&line, &a);
        if (more != field_next(&other, &b))
            return false;
        if (more && (a.key_len != b.key_len || memcmp(a.key, b.key, a.key_len) != 0))
            return false;
    } while (more);
    return true;
}

/* --- cells --- */

static void put_shown(struct cell *cell, const char *bytes, size_t len)
{
    struct text text = {.buf = cell->text, .size = CELL_SIZE, .len = cell->len};
    text_escape(&text, bytes, len, TEXT_VISIBLE);
    for (; cell->len < text.len; cell->len++)
        cell->width += !utf8_continues((unsigned char)cell->text[cell->len]);
}

static void put_duration(struct cell *cell, const struct field *field, bool us)
{
    char text[DURATION_PRINTED] = "-";
    long long number = strtoll(field->value, NULL, 10);
    /* for_ms=0: the node has its vote, so there is no time to show. */
    bool none = number < 0 || (number == 0 && field_has_key(field, "for_ms"));
    if (!none && us)
        duration_print_us(number, text);
    else if (!none)
        duration_print(number, text);
    put_shown(cell, text, strlen(text));
}

static const char *colour_of(const struct field *field)
{
    if (field_has_key(field, "vote"))
        return field_has_value(field, "yes") ? green : red;
    if (field_has_key(field, "state"))
        return field_has_value(field, "up") ? green : field_has_value(field, "down") ? red : yellow;
    return NULL;
}

static void fill_value(struct cell *cell, const struct field *field)
{
    bool us = key_ends(field, "_us");
    *cell = (struct cell){.colour = colour_of(field)};
    if ((us || key_ends(field, "_ms")) && field_kind(field) == FIELD_NUMBER)
        put_duration(cell, field, us);
    else
        put_shown(cell, field->value, field->value_len);
}

/* Prints the key without its unit: "since_ms" becomes "since", or "SINCE" in a header. */
static void fill_key(struct cell *cell, const struct field *field, bool upper)
{
    bool unit = key_ends(field, "_ms") || key_ends(field, "_us");
    *cell = (struct cell){.colour = bold};
    put_shown(cell, field->key, field->key_len - (unit ? 3 : 0));
    for (size_t i = 0; i < cell->len; i++) {
        if (upper)
            cell->text[i] = (char)toupper((unsigned char)cell->text[i]);
        if (cell->text[i] == '_')
            cell->text[i] = ' ';
    }
}

static void cell_print(FILE *out, const struct cell *cell, bool colours)
{
    bool coloured = colours && cell->colour != NULL;
    fprintf(out, "%s%.*s%s", coloured ? cell->colour : "", (int)cell->len, cell->text,
            coloured ? plain : "");
}

/* --- columns --- */

static void measure_line(const char *line, bool header, struct column columns[COLUMNS_MAX])
{
    struct cell cell;
    struct field field;
    for (size_t i = 0; i < COLUMNS_MAX && field_next(&line, &field); i++) {
        enum field_kind kind = field_kind(&field);
        if (header)
            fill_key(&cell, &field, true);
        else
            fill_value(&cell, &field);
        if (cell.width > columns[i].width)
            columns[i].width = cell.width;
        /* `place` is the queue place of this connection, which never waits: hide the column. */
        columns[i].hidden = field_has_key(&field, "place");
        columns[i].numbers = columns[i].numbers || kind == FIELD_NUMBER;
        columns[i].texts = columns[i].texts || kind == FIELD_TEXT || kind == FIELD_TRUTH;
    }
}

static void pad(FILE *out, size_t spaces)
{
    fprintf(out, "%*s", (int)spaces, "");
}

/* Pads before a cell rather than after it, so that no line ends with spaces. */
static void print_line(FILE *out, const char *line, const struct column columns[COLUMNS_MAX],
                       bool header, bool colours)
{
    struct cell cell;
    struct field field;
    size_t gap = 0;
    for (size_t i = 0; i < COLUMNS_MAX && field_next(&line, &field); i++) {
        if (columns[i].hidden)
            continue;
        if (header)
            fill_key(&cell, &field, true);
        else
            fill_value(&cell, &field);
        size_t room = columns[i].width - cell.width;
        bool right = columns[i].numbers && !columns[i].texts;
        pad(out, gap + (right ? room : 0));
        cell_print(out, &cell, colours);
        gap = GAP + (right ? 0 : room);
    }
    fputc('\n', out);
}

static void print_table(FILE *out, const char *const *lines, size_t count, bool colours)
{
    struct column columns[COLUMNS_MAX] = {0};
    measure_line(lines[0], true, columns);
    for (size_t i = 0; i < count; i++)
        measure_line(lines[i], false, columns);
    print_line(out, lines[0], columns, true, colours);
    for (size_t i = 0; i < count; i++)
        print_line(out, lines[i], columns, false, colours);
}

/* --- a table of one line --- */

static void print_fields(FILE *out, const char *line, bool colours)
{
    struct cell cell;
    struct field field;
    size_t width = 0;
    for (const char *at = line; field_next(&at, &field);) {
        fill_key(&cell, &field, false);
        width = cell.width > width ? cell.width : width;
    }
    while (field_next(&line, &field)) {
        fill_key(&cell, &field, false);
        cell_print(out, &cell, colours);
        pad(out, width - cell.width + GAP);
        fill_value(&cell, &field);
        cell_print(out, &cell, colours);
        fputc('\n', out);
    }
}

void table_print(FILE *out, const char *const *lines, size_t count, bool colours)
{
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first + 1; next < count && fields_alike(lines[first], lines[next]);)
            next++;
        if (first > 0)
            fputc('\n', out);
        if (next - first == 1 && count > 1)
            print_fields(out, lines[first], colours);
        else
            print_table(out, lines + first, next - first, colours);
    }
}
