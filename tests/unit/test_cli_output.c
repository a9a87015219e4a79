/*
 * The output of redlock: JSON, tables and shell words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/json.h"
#include "client/cli/shell.h"
#include "client/cli/table.h"
#include "protocol/text.h"
#include "tests/runner.h"

/* --- UTF-8 --- */

TEST(utf8_characters_are_distinguished_from_other_bytes)
{
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
        {"", 0},
        {"a", 1},
        {"\xc3\xa9", 2},
        {"\xe2\x82\xac", 3},
        {"\xf0\x9f\x94\x92", 4},
        {"\xed\x9f\xbf", 3},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\x80", 0},             /* a continuation byte */
        {"\xff", 0},             /* never valid */
        {"\xc3", 0},             /* cut off */
        {"\xe2\x82", 0},         /* cut off */
        {"\xc3(", 0},            /* no continuation byte */
        {"\xc0\xaf", 0},         /* overlong */
        {"\xe0\x80\xaf", 0},     /* overlong */
        {"\xf0\x80\x80\xaf", 0}, /* overlong */
        {"\xed\xa0\x80", 0},     /* a surrogate */
        {"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
        {"\xf5\x80\x80\x80", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(utf8_character(cases[i].bytes, strlen(cases[i].bytes)) == cases[i].len,
                      "case %zu", i);
}

TEST(invisible_characters_are_distinguished_from_visible_ones)
{
    static const char *const visible[] = {
        " ", "~", "\xc2\xa0", "\xc3\xa9", "\xd8\x9b", "\xe2\x80\x90", "\xf0\x9f\x94\x92"};
    static const char *const invisible[] = {
        "\x1f",             /* C0 */
        "\x7f",             /* DEL */
        "\xc2\x80",         /* C1 */
        "\xc2\x9f",         /* C1 */
        "\xc2\xad",         /* a soft hyphen */
        "\xd8\x9c",         /* U+061C, a direction mark */
        "\xe2\x80\x8b",     /* a zero-width space */
        "\xe2\x80\xa8",     /* a line separator */
        "\xe2\x80\xae",     /* a right-to-left override */
        "\xe2\x81\xa6",     /* U+2066, an isolate */
        "\xef\xbb\xbf",     /* a byte order mark */
        "\xf3\xa0\x80\xa1", /* U+E0021, a tag */
        "\xe3\x85\xa4",     /* a Hangul filler */
        "\xff",             /* not UTF-8 */
    };
    for (size_t i = 0; i < sizeof(visible) / sizeof(visible[0]); i++)
        ck_assert_msg(utf8_visible(visible[i], strlen(visible[i])) == strlen(visible[i]),
                      "visible %zu", i);
    for (size_t i = 0; i < sizeof(invisible) / sizeof(invisible[0]); i++)
        ck_assert_msg(utf8_visible(invisible[i], strlen(invisible[i])) == 0, "unseen %zu", i);
}

/* --- JSON --- */

/* Collects output; written_close() compares and frees it. */
struct written {
    char *text;
    size_t len;
    FILE *out;
};

static void written_open(struct written *written)
{
    written->out = open_memstream(&written->text, &written->len);
    ck_assert_ptr_nonnull(written->out);
}

static void written_close(struct written *written, const char *expected)
{
    ck_assert_int_eq(fclose(written->out), 0);
    ck_assert_str_eq(written->text, expected);
    free(written->text);
}

static void check_text(const char *text, const char *expected)
{
    struct written written;
    written_open(&written);
    struct json json = {.out = written.out};
    json_begin(&json, '{');
    json_text(&json, "a", text);
    json_end(&json, '}');
    written_close(&written, expected);
}

TEST(json_objects_and_arrays_nest)
{
    struct written written;
    written_open(&written);
    struct json json = {.out = written.out};
    json_begin(&json, '[');
    json_begin(&json, '{');
    json_text(&json, "status", "held");
    json_number(&json, "hint_ms", -1);
    json_raw_view(&json, (struct json_view){"yes and", 3}, (struct json_view){"true!", 4});
    json_end(&json, '}');
    json_begin(&json, '{');
    json_number(&json, "most", INT64_MAX);
    json_end(&json, '}');
    json_end(&json, ']');
    written_close(&written, "[{\"status\":\"held\",\"hint_ms\":-1,\"yes\":true},"
                            "{\"most\":9223372036854775807}]");
}

TEST(json_strings_are_escaped)
{
    check_text("", "{\"a\":\"\"}");
    check_text("a \"b\" \\ /", "{\"a\":\"a \\\"b\\\" \\\\ /\"}");
    check_text("\001\n\033\177", "{\"a\":\"\\u0001\\u000a\\u001b\\u007f\"}");
    check_text("\xc2\x9b", "{\"a\":\"\\u009b\"}");
    check_text("caf\xc3\xa9 \xf0\x9f\x94\x92", "{\"a\":\"caf\xc3\xa9 \xf0\x9f\x94\x92\"}");
}

TEST(bytes_that_are_not_utf8_are_escaped)
{
    check_text("\xff", "{\"a\":\"\\u00ff\"}");
    check_text("a\xc3", "{\"a\":\"a\\u00c3\"}");
    check_text("\xed\xa0\x80!", "{\"a\":\"\\u00ed\\u00a0\\u0080!\"}");
}

/* --- fields --- */

static struct field field_of(const char *text)
{
    struct field field;
    ck_assert(field_next(&text, &field));
    return field;
}

static enum field_kind kind_of(const char *text)
{
    struct field field = field_of(text);
    return field_kind(&field);
}

TEST(field_ends_at_a_space_and_splits_at_the_first_equals_sign)
{
    const char *line = "resource=a=b hold=yes what";
    struct field field;
    ck_assert(field_next(&line, &field));
    ck_assert(field_has_key(&field, "resource"));
    ck_assert(field_has_value(&field, "a=b"));
    ck_assert(field_next(&line, &field));
    ck_assert(field_has_key(&field, "hold"));
    ck_assert(!field_has_value(&field, "ye"));
    ck_assert(field_next(&line, &field));
    ck_assert(field_has_key(&field, "what"));
    ck_assert(field_has_value(&field, ""));
    ck_assert(!field_next(&line, &field));
}

TEST(values_are_typed_by_their_form)
{
    ck_assert_int_eq(kind_of("waiters=12"), FIELD_NUMBER);
    ck_assert_int_eq(kind_of("since_ms=-1"), FIELD_NUMBER);
    ck_assert_int_eq(kind_of("waiters=012"), FIELD_TEXT);
    ck_assert_int_eq(kind_of("waiters=1e3"), FIELD_TEXT);
    ck_assert_int_eq(kind_of("waiters=-"), FIELD_NONE);
    ck_assert_int_eq(kind_of("waiters="), FIELD_TEXT);
    ck_assert_int_eq(kind_of("hold=yes"), FIELD_TRUTH);
    ck_assert_int_eq(kind_of("hold=maybe"), FIELD_TEXT);
}

TEST(names_are_never_numbers_or_truth_values)
{
    ck_assert_int_eq(kind_of("resource=12"), FIELD_TEXT);
    ck_assert_int_eq(kind_of("resource=yes"), FIELD_TEXT);
    ck_assert_int_eq(kind_of("resource=-"), FIELD_TEXT);
    ck_assert_int_eq(kind_of("node=1"), FIELD_TEXT);
    ck_assert_int_eq(kind_of("token=12345678"), FIELD_TEXT);
    ck_assert_int_eq(kind_of("token=-"), FIELD_NONE);
    ck_assert_int_eq(kind_of("name=7"), FIELD_TEXT);
    ck_assert_int_eq(kind_of("name=-"), FIELD_NONE);
    ck_assert_int_eq(kind_of("user=123"), FIELD_TEXT);
    ck_assert_int_eq(kind_of("user=yes"), FIELD_TEXT);
    ck_assert_int_eq(kind_of("user=-"), FIELD_NONE);
}

/* --- tables --- */

static void check_table(const char *const *lines, size_t count, bool colours, const char *expected)
{
    struct written written;
    written_open(&written);
    table_print(written.out, lines, count, colours);
    written_close(&written, expected);
}

TEST(columns_are_aligned_under_a_header)
{
    static const char *const lines[] = {
        "resource=deploy token=6c7bac0d client=7 since_ms=8123 left_ms=21877 hold=no waiters=2",
        "resource=a token=- client=- since_ms=-1 left_ms=-1 hold=no waiters=10",
    };
    check_table(lines, 2, false,
                "RESOURCE  TOKEN     CLIENT  SINCE   LEFT  HOLD  WAITERS\n"
                "deploy    6c7bac0d       7   8.1s  21.8s  no          2\n"
                "a         -              -      -      -  no         10\n");
}

TEST(colours_do_not_count_as_width)
{
    static const char *const lines[] = {
        "node=a state=up vote=yes rtt_us=649",
        "node=long state=down vote=no rtt_us=-1",
        "node=b state=suspect vote=no rtt_us=1298",
    };
    check_table(
        lines, 3, true,
        "\033[1mNODE\033[0m  \033[1mSTATE\033[0m    \033[1mVOTE\033[0m    \033[1mRTT\033[0m\n"
        "a     \033[32mup\033[0m       \033[32myes\033[0m   649us\n"
        "long  \033[31mdown\033[0m     \033[31mno\033[0m        -\n"
        "b     \033[33msuspect\033[0m  \033[31mno\033[0m    1.2ms\n");
}

TEST(names_are_escaped_for_the_terminal)
{
    static const char *const lines[] = {
        "resource=\xff\033[2J\x9b client=1",
        "resource=\xc2\x9b"
        "caf\xc3\xa9 client=2",
        "resource=a\xe2\x80\xae client=3",
    };
    check_table(lines, 3, false,
                "RESOURCE         CLIENT\n"
                "\\xff\\x1b[2J\\x9b       1\n"
                "\\xc2\\x9bcaf\xc3\xa9          2\n"
                "a\\xe2\\x80\\xae         3\n");
}

TEST(longest_name_fits_in_a_table)
{
    char line[300] = "resource=";
    char expected[1200] = "RESOURCE";
    memset(line + 9, '\xff', 256);
    memset(expected + 8, ' ', 1024 - 8);
    strcpy(expected + 1024, "  CLIENT\n");
    strcat(line, " client=1");
    const char *lines[] = {line};
    struct written written;
    written_open(&written);
    table_print(written.out, lines, 1, false);
    ck_assert_int_eq(fclose(written.out), 0);
    ck_assert_int_eq(strncmp(written.text, expected, strlen(expected)), 0);
    ck_assert_uint_eq(strlen(written.text), 2 * strlen(expected));
    free(written.text);
}

TEST(place_field_gets_no_column)
{
    static const char *const lines[] = {"resource=a waiters=2 place=-"};
    check_table(lines, 1, false,
                "RESOURCE  WAITERS\n"
                "a               2\n");
}

TEST(only_columns_with_numbers_are_right_aligned)
{
    static const char *const lines[] = {"node=a reason=- for_ms=0 pending_releases=-"};
    check_table(lines, 1, false,
                "NODE  REASON  FOR  PENDING RELEASES\n"
                "a     -         -  -\n");
}

TEST(lines_with_other_keys_begin_another_table)
{
    static const char *const lines[] = {
        "subject=daemon version=0.1.0 uptime_ms=6348 under_way=1",
        "subject=lock ok=12 held=3",
        "subject=unlock ok=9 held=0",
    };
    check_table(lines, 3, false,
                "subject    daemon\n"
                "version    0.1.0\n"
                "uptime     6.3s\n"
                "under way  1\n"
                "\n"
                "SUBJECT  OK  HELD\n"
                "lock     12     3\n"
                "unlock    9     0\n");
}

TEST(table_accepts_lines_of_any_form)
{
    static const char *const lines[] = {"", " ", "=", "= =", "a", "a=b c", "_ms=1 _us=2 x_ms=z"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct written written;
        written_open(&written);
        table_print(written.out, lines, i + 1, true);
        table_print(written.out, lines + i, 1, true);
        ck_assert_int_eq(fclose(written.out), 0);
        free(written.text);
    }
}

TEST(columns_over_the_limit_are_omitted)
{
    char line[1000] = "";
    for (unsigned i = 0; i < 100; i++)
        snprintf(line + strlen(line), sizeof(line) - strlen(line), "k%u=1 ", i);
    const char *lines[] = {line};
    struct written written;
    written_open(&written);
    table_print(written.out, lines, 1, false);
    ck_assert_int_eq(fclose(written.out), 0);
    ck_assert_ptr_nonnull(strstr(written.text, "K31\n"));
    ck_assert_ptr_null(strstr(written.text, "K32"));
    free(written.text);
}

/* --- words for a shell --- */

TEST(shell_words_are_quoted_where_needed)
{
    static const struct {
        const char *word;
        const char *quoted;
    } cases[] = {
        {"deploy:eu-1", " deploy:eu-1"},
        {"tcp://127.0.0.1:7335", " tcp://127.0.0.1:7335"},
        {"", " ''"},
        {"$(reboot)", " '$(reboot)'"},
        {"a\\b*", " 'a\\b*'"},
        {"~", " '~'"},
        {"it's", " 'it'\\''s'"},
        {"caf\xc3\xa9", " 'caf\xc3\xa9'"},
        {"a\x9b"
         "1",
         " 'a'$'\\233''1'"}, /* the digit is not part of the octal escape */
        {"\xe2\x80\xae", " ''$'\\342'''$'\\200'''$'\\256'''"},
        {"a\n", " 'a'$'\\012'''"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char buf[64] = "";
        struct text text = {.buf = buf, .size = sizeof(buf) - 1};
        shell_word(&text, cases[i].word);
        ck_assert_str_eq(buf, cases[i].quoted);
    }
}
