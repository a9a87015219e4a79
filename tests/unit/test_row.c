/*
 * protocol/row.h: the rows of listings as lines, as arrays of RESP2 and as maps of RESP3.
 */
#include <string.h>

#include "protocol/row.h"
#include "tests/runner.h"

static char buf[1024];

static struct row begin(enum dialect dialect)
{
    memset(buf, '?', sizeof(buf));
    return (struct row){.text = {.buf = buf, .size = sizeof(buf)}, .dialect = dialect};
}

/* Every kind of field. */
static void write_fields(struct row *row)
{
    row_string(row, "name", "web-1");
    row_bytes(row, "peer", "10.0.0.1:80, and more", 11);
    row_number(row, "left_ms", -1);
    row_none(row, "place");
    row_optional(row, "user", "");
    row_optional(row, "vote", "yes");
}

static void assert_row(const struct row *row, const char *header, const char *fields)
{
    char header_buf[16];
    struct text text = {.buf = header_buf, .size = sizeof(header_buf)};
    ck_assert_uint_eq(row->text.len, strlen(fields));
    ck_assert_mem_eq(row->text.buf, fields, row->text.len);
    if (header == NULL)
        return;
    row_header(row, &text);
    ck_assert_uint_eq(text.len, strlen(header));
    ck_assert_mem_eq(text.buf, header, text.len);
}

TEST(a_row_is_a_line_of_words)
{
    struct row row = begin(DIALECT_LINE);
    write_fields(&row);
    assert_row(&row, NULL, "name=web-1 peer=10.0.0.1:80 left_ms=-1 place=- user=- vote=yes");
}

#define FIELDS(null)                                                                               \
    "$4\r\nname\r\n$5\r\nweb-1\r\n$4\r\npeer\r\n$11\r\n10.0.0.1:80\r\n$7\r\nleft_ms\r\n:-1\r\n"    \
    "$5\r\nplace\r\n" null "$4\r\nuser\r\n" null "$4\r\nvote\r\n$3\r\nyes\r\n"

TEST(a_row_is_a_flat_array_in_resp2)
{
    struct row row = begin(DIALECT_RESP2);
    write_fields(&row);
    assert_row(&row, "*12\r\n", FIELDS("$-1\r\n"));
}

TEST(a_row_is_a_map_in_resp3)
{
    struct row row = begin(DIALECT_RESP3);
    write_fields(&row);
    assert_row(&row, "%6\r\n", FIELDS("_\r\n"));
}

TEST(a_field_can_be_an_array)
{
    struct row row = begin(DIALECT_RESP3);
    row_array(&row, "modules", 2);
    resp_integer(&row.text, 1);
    resp_integer(&row.text, 2);
    assert_row(&row, "%1\r\n", "$7\r\nmodules\r\n*2\r\n:1\r\n:2\r\n");
}

TEST(a_cleared_row_begins_again)
{
    struct row row = begin(DIALECT_LINE);
    write_fields(&row);
    row_clear(&row);
    assert_row(&row, NULL, "");
    row_number(&row, "more", 7);
    assert_row(&row, NULL, "more=7");
    row = begin(DIALECT_RESP3);
    write_fields(&row);
    row_clear(&row);
    row_number(&row, "more", 7);
    assert_row(&row, "%1\r\n", "$4\r\nmore\r\n:7\r\n");
}

/* Nothing is written beyond the buffer. */
TEST(a_row_that_does_not_fit_is_cut)
{
    for (enum dialect dialect = DIALECT_LINE; dialect <= DIALECT_RESP3; dialect++) {
        for (size_t size = 0; size < 60; size++) {
            struct row row = begin(dialect);
            row.text.size = size;
            write_fields(&row);
            ck_assert_uint_eq(row.text.len, size);
            ck_assert_int_eq(buf[size], '?');
        }
    }
}
