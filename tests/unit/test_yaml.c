/*
 * config/yaml and config/report: a tree is read as it was written. Unsupported YAML is refused with
 * its line and column, and one pass reports as many errors as possible. File size, node count and
 * value length are limited.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/report.h"
#include "config/yaml.h"
#include "tests/runner.h"

static char printed[65536];

static FILE *open_printed(void)
{
    FILE *out = fmemopen(printed, sizeof(printed), "w");
    ck_assert_ptr_nonnull(out);
    printed[0] = '\0'; /* fmemopen() terminates only what is written. */
    return out;
}

static struct yaml_node *read_bytes(const char *bytes, size_t len)
{
    struct report report = {.file = "f"};
    FILE *in = tmpfile();
    FILE *out = open_printed();
    ck_assert_ptr_nonnull(in);
    ck_assert_uint_eq(fwrite(bytes, 1, len, in), len);
    rewind(in);
    struct yaml_node *root = yaml_node_read(in, &report);
    unsigned errors = report.errors;
    report_print(&report, out);
    fclose(out);
    fclose(in);
    ck_assert_msg(root != NULL || errors > 0, "no tree and no error in the report");
    ck_assert_int_eq(errors > 0, printed[0] != '\0');
    return root;
}

/* Writes [a, "b", {key: value}], with "?" for broken nodes. */
static void dump(const struct yaml_node *node, FILE *out)
{
    if (node->broken) {
        fputc('?', out);
        return;
    }
    if (node->kind == YAML_SCALAR) {
        fprintf(out, node->quoted ? "\"%s\"" : "%s", node->text);
        return;
    }
    fputc(node->kind == YAML_MAPPING ? '{' : '[', out);
    for (const struct yaml_node *child = node->children; child != NULL; child = child->next) {
        if (child->key != NULL) {
            dump(child->key, out);
            fputs(": ", out);
        }
        dump(child, out);
        fputs(child->next != NULL ? ", " : "", out);
    }
    fputc(node->kind == YAML_MAPPING ? '}' : ']', out);
}

/* Read the text, and assert the tree and the report. */
static void check(const char *text, const char *tree, const char *report)
{
    char dumped[4096] = "";
    struct yaml_node *root = read_bytes(text, strlen(text));
    if (root != NULL) {
        FILE *out = fmemopen(dumped, sizeof(dumped), "w");
        ck_assert_ptr_nonnull(out);
        dump(root, out);
        fclose(out);
    }
    yaml_node_free(root);
    ck_assert_str_eq(printed, report);
    ck_assert_str_eq(dumped, tree);
}

/* --- trees --- */

TEST(tree_is_read_as_it_was_written)
{
    check("a: 1\nb:\n  - x\n  - {c: 'd', e: \"f\"}\ng:\n  h: |\n    i\n",
          "{a: 1, b: [x, {c: \"d\", e: \"f\"}], g: {h: \"i\n\"}}", "");
    check("---\na:\n...\n", "{a: }", "");
    check("\xef\xbb\xbf"
          "a: b\n",
          "{a: b}", "");
    check("[\xc3\xa4, \xf0\x9f\x94\x92]", "[\xc3\xa4, \xf0\x9f\x94\x92]", "");
}

TEST(empty_file_has_no_keys)
{
    check("", "{}", "");
    check("# nothing\n", "{}", "");
    check("---\n", "{}", "");
    check("--- ''\n", "\"\"", "");
    check("---\n---\na: 1\n", "{}",
          "f:2:1: a second document begins here; the file must contain only one\n");
}

TEST(every_node_has_its_line_and_column)
{
    static const char text[] = "a: 1\nb:\n  - {\xc3\xa4: \xc3\xa4, c: d}\n";
    struct yaml_node *root = read_bytes(text, strlen(text));
    const struct yaml_node *list = yaml_node_child(root, "b");
    const struct yaml_node *last = yaml_node_child(list->children, "c");
    ck_assert_uint_eq(root->position.line, 1);
    ck_assert_uint_eq(list->key->position.line, 2);
    ck_assert_uint_eq(list->key->position.column, 1);
    ck_assert_uint_eq(list->position.line, 3);
    ck_assert_uint_eq(list->position.column, 3);
    ck_assert_uint_eq(last->position.line, 3);
    ck_assert_uint_eq(last->position.column, 15); /* in characters, not in bytes */
    ck_assert_ptr_null(yaml_node_child(root, "c"));
    yaml_node_free(root);
}

TEST(only_an_unquoted_empty_value_is_empty)
{
    static const char text[] = "{a: , b: ''}";
    struct yaml_node *root = read_bytes(text, strlen(text));
    ck_assert(yaml_node_is_empty(root->children));
    ck_assert(!yaml_node_is_empty(root->children->next));
    ck_assert(!yaml_node_is_empty(root));
    yaml_node_free(root);
}

/* --- variables --- */

TEST(variables_are_expanded_in_values)
{
    setenv("REDLOCKD_TEST_NAME", "eu-${X}", 1);
    check("a: ${REDLOCKD_TEST_NAME}.1\n", "{a: eu-${X}.1}", "");
    check("['$$$${X}$$']", "[\"$${X}$\"]", "");
}

TEST(variables_are_not_expanded_in_keys)
{
    setenv("REDLOCKD_TEST_NAME", "eu", 1);
    check("$x: 1\n${REDLOCKD_TEST_NAME}: 2\n", "{$x: 1, ${REDLOCKD_TEST_NAME}: 2}", "");
}

/* An empty variable is an error too: an empty prefix would mean every resource. */
TEST(every_bad_variable_is_named_in_one_pass)
{
    setenv("REDLOCKD_TEST_EMPTY", "", 1);
    check("a: ${REDLOCKD_TEST_UNSET}\nb: 5$\nc: ${}\nd: ${a-b}\ne: x${REDLOCKD_TEST_EMPTY}\n"
          "f: ${x\n",
          "{a: ?, b: ?, c: ?, d: ?, e: ?, f: ?}",
          "f:1:4: the environment variable REDLOCKD_TEST_UNSET is not set\n"
          "f:2:4: a $ begins a variable, ${NAME}; write $$ for a dollar\n"
          "f:3:4: a $ begins a variable, ${NAME}; write $$ for a dollar\n"
          "f:4:4: a $ begins a variable, ${NAME}; write $$ for a dollar\n"
          "f:5:4: the environment variable REDLOCKD_TEST_EMPTY is empty\n"
          "f:6:4: a $ begins a variable, ${NAME}; write $$ for a dollar\n");
}

TEST(expanded_value_length_is_limited)
{
    static char large[YAML_SCALAR_MAX + 2];
    memset(large, 'x', YAML_SCALAR_MAX);
    setenv("REDLOCKD_TEST_LARGE", large, 1);
    struct yaml_node *root = read_bytes("[\"${REDLOCKD_TEST_LARGE}\"]", 26);
    ck_assert_str_eq(root->children->text, large);
    yaml_node_free(root);
    check("[\"${REDLOCKD_TEST_LARGE}y\"]", "[?]",
          "f:1:2: longer than 1024 bytes after its variables are replaced\n");
    check("[\"${REDLOCKD_TEST_LARGE}${REDLOCKD_TEST_LARGE}$$$$\"]", "[?]",
          "f:1:2: longer than 1024 bytes after its variables are replaced\n");
}

/* --- refusals --- */

static const struct {
    const char *text;
    const char *tree; /* "" if there is no tree */
    const char *report;
} refused[] = {
    {"a: 1\nb: 2\na: 3\n", "{a: 1, b: 2, ?: 3}",
     "f:3:1: a: given twice; the first is in line 1, column 1\n"},
    {"x: {a: 1, b: 2, 'a': 3}\n", "{x: {a: 1, b: 2, ?: 3}}",
     "f:1:17: a: given twice; the first is in line 1, column 5\n"},
    {"a: &x 1\nb: *x\n", "{a: 1, b: ?}",
     "f:1:4: anchors are not supported (&x); write the value out\n"
     "f:2:4: aliases are not supported (*x); write the value out\n"},
    {"a: &l []\nb: &m {}\n", "{a: [], b: {}}",
     "f:1:4: anchors are not supported (&l); write the value out\n"
     "f:2:4: anchors are not supported (&m); write the value out\n"},
    {"a: &x 1\n<<: *x\n", "{a: 1, <<: ?}",
     "f:1:4: anchors are not supported (&x); write the value out\n"
     "f:2:5: aliases are not supported (*x); write the value out\n"},
    {"a: !!str 1\nb: !!seq []\nc: !!map {}\nd: !x y\ne: ! z\n", "{a: 1, b: [], c: {}, d: y, e: z}",
     "f:1:4: tags are not supported (!!str); leave it out\n"
     "f:2:4: tags are not supported (!!seq); leave it out\n"
     "f:3:4: tags are not supported (!!map); leave it out\n"
     "f:4:4: tags are not supported (!x); leave it out\n"
     "f:5:4: tags are not supported (!); leave it out\n"},
    {"[a]: b\n{c: d}: e\nf: g\n", "{?: b, ?: e, f: g}",
     "f:1:1: a key must be a word, not a list\n"
     "f:2:1: a key must be a word, not a mapping\n"},
    {"? *a\n: b\n", "{?: b}", "f:1:3: aliases are not supported (*a); write the value out\n"},
    {"a: \"x\\0y\"\nb: c\n", "{a: ?, b: c}", "f:1:4: a NUL byte is not allowed\n"},
    {"a: 1\n---\nb: 2\n", "{a: 1}",
     "f:2:1: a second document begins here; the file must contain only one\n"},
    {"a: 1\n---\n", "{a: 1}",
     "f:2:1: a second document begins here; the file must contain only one\n"},
    {"[[[[[[[[1]]]]]]]]", "", "f:1:9: nested too deeply\n"},
    {"a: {b: {c: {d: {e: {f: {g: {h: 1}}}}}}}}", "", "f:1:29: nested too deeply\n"},
    {"a:\n\tb: 1\n", "", "f:2:1: not YAML: tab character; indent with spaces\n"},
    {"\xc3\xa4: 1\n\tb: 1\n", "", "f:2:1: not YAML: tab character; indent with spaces\n"},
    {"a: [1, 2\nb: 3\n", "",
     "f:2:2: not YAML: did not find expected ',' or ']' while parsing a flow sequence that begins "
     "in line 1\n"},
    {"a: \"b\n", "",
     "f:2:1: not YAML: found unexpected end of stream while scanning a quoted scalar that begins "
     "in line 1\n"},
    {"a: b: c\n", "", "f:1:5: not YAML: mapping values are not allowed in this context\n"},
    {"a: 1\n  b: 2\n", "", "f:2:4: not YAML: mapping values are not allowed in this context\n"},
    {"a: 1\n b\n- c\n", "",
     "f:3:1: not YAML: did not find expected key while parsing a block mapping that begins in line "
     "1\n"},
    {"%YAML 3.0\n---\na\n", "", "f:1:1: not YAML: found incompatible YAML document\n"},
    {"a: 1\n...\n}\n", "", "f:3:1: not YAML: did not find expected <document start>\n"},
    {"a: @b\n", "",
     "f:1:4: not YAML: found character that cannot start any token while scanning for the next "
     "token\n"},
    {"a: \xff\n", "", "f:1:4: byte 0xff is not valid UTF-8; save the file as UTF-8\n"},
    {"a: 1\n# \xc3\xa4 \xe9\n", "",
     "f:2:5: byte 0xe9 is not valid UTF-8; save the file as UTF-8\n"},
    {"a: b\xc3", "", "f:1:5: byte 0xc3 is not valid UTF-8; save the file as UTF-8\n"},
    {"\xff\xfe\x61", "", "f:1:1: byte 0xff is not valid UTF-8; save the file as UTF-8\n"},
    {"a: 1\nb: \x07\n", "", "f:2:4: control character 0x07 is not allowed\n"},
};

TEST_ROWS(unsupported_yaml_is_refused_with_its_place, refused)
{
    check(refused[_i].text, refused[_i].tree, refused[_i].report);
}

/* --- limits --- */

TEST(file_size_is_limited)
{
    static char large[YAML_FILE_MAX + 1];
    memset(large, '#', sizeof(large));
    memcpy(large, "a: b\n", 5);
    struct yaml_node *root = read_bytes(large, YAML_FILE_MAX);
    ck_assert_ptr_nonnull(root);
    yaml_node_free(root);
    ck_assert_ptr_null(read_bytes(large, YAML_FILE_MAX + 1));
    ck_assert_str_eq(printed, "f:1:1: larger than 256 KiB\n");
}

TEST(scalar_length_is_limited)
{
    static char large[YAML_SCALAR_MAX + 3] = "[";
    memset(large + 1, 'x', YAML_SCALAR_MAX);
    large[YAML_SCALAR_MAX + 1] = ']';
    struct yaml_node *root = read_bytes(large, YAML_SCALAR_MAX + 2);
    ck_assert_uint_eq(strlen(root->children->text), YAML_SCALAR_MAX);
    yaml_node_free(root);
    large[YAML_SCALAR_MAX + 1] = 'x';
    root = read_bytes(large + 1, YAML_SCALAR_MAX + 1);
    ck_assert(root->broken);
    ck_assert_str_eq(printed, "f:1:1: longer than 1024 bytes\n");
    yaml_node_free(root);
}

TEST(number_of_nodes_is_limited)
{
    static char large[2 * (YAML_NODES_MAX + 1)];
    for (size_t i = 0; i < sizeof(large); i += 2)
        memcpy(large + i, "a,", 2);
    large[0] = '[';
    large[1] = ' ';
    large[2 * YAML_NODES_MAX - 1] = ']'; /* with the list itself, all nodes allowed */
    struct yaml_node *root = read_bytes(large, 2 * YAML_NODES_MAX);
    ck_assert_ptr_nonnull(root);
    yaml_node_free(root);
    large[2 * YAML_NODES_MAX - 1] = ',';
    large[2 * YAML_NODES_MAX + 1] = ']';
    ck_assert_ptr_null(read_bytes(large, sizeof(large)));
    ck_assert_str_eq(printed, "f:1:32769: too large: more than 16384 values, lists and mappings\n");
}

/* --- the report --- */

static void print(struct report *report)
{
    FILE *out = open_printed();
    report_print(report, out);
    fclose(out);
}

TEST(report_is_in_the_order_of_the_file)
{
    struct report report = {.file = "f"};
    report_error(&report, (struct position){2, 1}, "c");
    report_error(&report, (struct position){1, 9}, "b");
    report_warning(&report, (struct position){2, 1}, "d");
    report_error(&report, (struct position){1, 2}, "a");
    ck_assert_uint_eq(report.errors, 3);
    print(&report);
    ck_assert_str_eq(printed, "f:1:2: a\nf:1:9: b\nf:2:1: c\nf:2:1: warning: d\n");
}

TEST(control_characters_are_escaped_in_reports)
{
    struct report report = {.file = "f"};
    report_error(&report, (struct position){1, 1}, "\"%s\"", "a\n\x1b[2J\x7f\xc2\x9b~");
    print(&report);
    ck_assert_str_eq(printed, "f:1:1: \"a\\x0a\\x1b[2J\\x7f\\xc2\\x9b~\"\n");
}

TEST(report_keeps_the_first_hundred_lines)
{
    struct report report = {.file = "f"};
    for (size_t line = 150; line > 20; line--)
        report_error(&report, (struct position){line, 1}, "x");
    report_error(&report, (struct position){1000, 1}, "x");
    ck_assert_uint_eq(report.errors, 131);
    print(&report);
    ck_assert_ptr_eq(strstr(printed, "f:21:1: x\n"), printed);
    ck_assert_ptr_nonnull(strstr(printed, "f:120:1: x\nf: 31 more lines are left out\n"));
}
