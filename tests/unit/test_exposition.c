/*
 * server/admin/exposition.h and server/admin/html.h: the output for Prometheus and for browsers.
 */
#include <string.h>

#include "protocol/limits.h"
#include "protocol/units.h"
#include "server/admin/exposition.h"
#include "server/admin/html.h"
#include "tests/runner.h"

static char buf[8192];
static struct text text;

static void begin(void)
{
    text = (struct text){.buf = buf, .size = sizeof(buf) - 1};
}

const struct runner_settings runner_settings = {.setup = begin};

static const char *written(void)
{
    buf[text.len] = '\0';
    text.len = 0;
    return buf;
}

/* --- metrics --- */

TEST(metric_has_help_type_and_samples)
{
    struct metric metric = exposition_metric(&text, "a_total", "counter", "How many.");
    exposition_number(&metric, NO_LABELS, 7);
    exposition_number(&metric, LABEL("k", "v"), 0);
    exposition_number(&metric, LABELS("k", "v", "l", "w"), INT64_MAX);
    ck_assert_str_eq(written(), "# HELP a_total How many.\n"
                                "# TYPE a_total counter\n"
                                "a_total 7\n"
                                "a_total{k=\"v\"} 0\n"
                                "a_total{k=\"v\",l=\"w\"} 9223372036854775807\n");
}

TEST(label_values_are_escaped)
{
    struct metric metric = {&text, "a"};
    exposition_number(&metric, LABEL("k", "\"}\n\\ 1"), 1);
    ck_assert_str_eq(written(), "a{k=\"\\\"}\\n\\\\ 1\"} 1\n");
}

TEST(seconds_are_exact)
{
    static const struct {
        int64_t ns;
        const char *seconds;
    } cases[] = {
        {0, "a 0\n"},
        {1, "a 0.000000001\n"},
        {-1, "a -0.000000001\n"},
        {NS_PER_S, "a 1\n"},
        {-3 * NS_PER_S / 2, "a -1.5\n"},
        {1795280441072000123, "a 1795280441.072000123\n"},
        {INT64_MAX, "a 9223372036.854775807\n"},
        {INT64_MIN, "a -9223372036.854775808\n"},
    };
    struct metric metric = {&text, "a"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        exposition_seconds(&metric, NO_LABELS, cases[i].ns);
        ck_assert_str_eq(written(), cases[i].seconds);
    }
}

TEST(histogram_buckets_are_cumulative)
{
    struct histogram histogram = {0};
    struct metric metric = {&text, "h"};
    histogram_add(&histogram, 20000);
    histogram_add(&histogram, 20001);
    histogram_add(&histogram, 7200 * NS_PER_S);
    exposition_histogram(&metric, (struct label){"node", "a"}, &histogram);
    const char *all = written();
    ck_assert_ptr_nonnull(strstr(all, "h_bucket{node=\"a\",le=\"2e-05\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(all, "h_bucket{node=\"a\",le=\"5e-05\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(all, "h_bucket{node=\"a\",le=\"3600\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(all, "h_bucket{node=\"a\",le=\"+Inf\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(all, "h_sum{node=\"a\"} 7200.000040001\n"));
    ck_assert_ptr_nonnull(strstr(all, "h_count{node=\"a\"} 3\n"));
    exposition_histogram(&metric, (struct label){0}, &histogram);
    all = written();
    ck_assert_ptr_nonnull(strstr(all, "h_bucket{le=\"+Inf\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(all, "h_count 3\n"));
}

/* --- HTML --- */

TEST(untrusted_bytes_are_escaped_in_html)
{
    html_string(&text, "<script>alert('1')</script>\"&amp;");
    ck_assert_str_eq(written(), "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;amp;");
    /* UTF-8 with a right-to-left override, a NUL and a backslash. */
    html_bytes(&text, "b\xc3\xbc\xe2\x80\xae\0\\x1b", 11, 80);
    ck_assert_str_eq(written(), "b\xc3\xbc\\xe2\\x80\\xae\\x00\\x5cx1b");
}

TEST(long_names_are_truncated_in_html)
{
    char large[LIMIT_RESOURCE];
    memset(large, '<', sizeof(large));
    html_bytes(&text, large, sizeof(large), 3);
    ck_assert_str_eq(written(), "&lt;&lt;&lt;...");
    html_bytes(&text, large, 3, 3);
    ck_assert_str_eq(written(), "&lt;&lt;&lt;");
    /* The cut is in the middle of a character. */
    html_bytes(&text, "ab\xc3\xbc", 4, 3);
    ck_assert_str_eq(written(), "ab...");
    html_bytes(&text, "\x80\x80\x80\x80\x80", 5, 4);
    ck_assert_str_eq(written(), "\\x80...");
    memset(large, '\xff', sizeof(large));
    html_bytes(&text, large, sizeof(large), sizeof(large));
    ck_assert_uint_eq(strlen(written()), 4 * sizeof(large));
}

TEST(durations_are_readable)
{
    static const struct {
        int64_t ms;
        const char *said;
    } cases[] = {
        {0, "0.0 s"},
        {450, "0.4 s"},
        {9999, "9.9 s"},
        {10000, "10 s"},
        {59999, "59 s"},
        {60000, "1 min 0 s"},
        {200000, "3 min 20 s"},
        {3600000, "1 h 0 min"},
        {18120000, "5 h 2 min"},
        {172799999, "47 h 59 min"},
        {172800000, "2 d 0 h"},
        {99 * 3600000LL, "4 d 3 h"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        html_duration(&text, cases[i].ms);
        ck_assert_str_eq(written(), cases[i].said);
    }
}

/* --- text --- */

TEST(text_that_does_not_fit_is_truncated_without_overflow)
{
    char small[16];
    struct text narrow = {.buf = small, .size = 8};
    memset(small, '#', sizeof(small));
    text_format(&narrow, "%s", "0123456789");
    html_string(&narrow, "<<<<");
    ck_assert_uint_eq(narrow.len, 8);
    ck_assert_mem_eq(small, "01234567########", 16);
}
