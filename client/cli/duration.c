#include "client/cli/duration.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/request.h"

enum { QUOTED_MAX = 40 };

/* Ten years: sums of such times do not overflow as nanoseconds. */
static const int64_t LONGEST_MS = INT64_C(87600) * 3600 * 1000;

/* --- parsing --- */

static bool fail(struct error *error, const char *word, size_t len, const char *what)
{
    struct text text = error_begin(error);
    text_quoted(&text, word, len, QUOTED_MAX);
    text_string(&text, what);
    return false;
}

/* "30 has no unit: 30s or 30ms?" */
static bool fail_no_unit(struct error *error, const char *word, size_t len)
{
    int shown = len > QUOTED_MAX ? QUOTED_MAX : (int)len;
    return error_set(error, "%.*s has no unit: %.*ss or %.*sms?", shown, word, shown, word, shown,
                     word);
}

bool duration_parse(const char *text, int64_t *ms, struct error *error)
{
    size_t len = strlen(text);
    size_t digits = strspn(text, "0123456789");
    bool zero = digits > 0 && strspn(text, "0") == len;
    if (digits == len && len > 0 && !zero)
        return fail_no_unit(error, text, len);
    enum request_error parsed = request_parse_time(text, len, ms);
    if (parsed == REQUEST_FINE && *ms <= LONGEST_MS)
        return true;
    if (digits > 0 && text[digits] == '.')
        return fail(error, text, len, " is not a whole number: write 1500ms for 1.5s");
    if (parsed != REQUEST_BAD_TIME)
        return fail(error, text, len, " is too long: the limit is ten years");
    return fail(error, text, len, " is not a time: write 30s, 500ms, 5m or 1h");
}

/* --- printing --- */

/* Two adjacent units: "2m5s". */
static void print_pair(char buf[DURATION_PRINTED], int64_t number, int64_t per, const char *units)
{
    snprintf(buf, DURATION_PRINTED, "%" PRId64 "%c%" PRId64 "%c", number / per, units[0],
             number % per, units[1]);
}

/* Thousandths of a unit, truncated to one decimal: "12.3s". */
static void print_thousandths(char buf[DURATION_PRINTED], int64_t number, const char *unit)
{
    snprintf(buf, DURATION_PRINTED, "%" PRId64 ".%" PRId64 "%s", number / 1000, number % 1000 / 100,
             unit);
}

void duration_print(int64_t ms, char buf[DURATION_PRINTED])
{
    assert(ms >= 0);
    int64_t s = ms / 1000;
    if (s == 0)
        snprintf(buf, DURATION_PRINTED, "%" PRId64 "ms", ms);
    else if (s < 60)
        print_thousandths(buf, ms, "s");
    else if (s < 3600)
        print_pair(buf, s, 60, "ms");
    else if (s < 24 * 3600)
        print_pair(buf, s / 60, 60, "hm");
    else
        print_pair(buf, s / 3600, 24, "dh");
}

void duration_print_us(int64_t us, char buf[DURATION_PRINTED])
{
    assert(us >= 0);
    if (us < 1000)
        snprintf(buf, DURATION_PRINTED, "%" PRId64 "us", us);
    else if (us < 1000000)
        print_thousandths(buf, us, "ms");
    else
        duration_print(us / 1000, buf);
}
