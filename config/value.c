#include "config/value.h"

#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "protocol/text.h"

#define PPM_PER_PERCENT 10000

enum { RATE_PLACES_MAX = 4 };

/* The greatest number that is told apart. No value of the configuration is as large in any unit,
 * and a rate of so many percent does not overflow. */
static const int64_t NUMBER_MAX = INT64_C(100000000000000);

/* Parse leading digits. Returns their count. A number above NUMBER_MAX becomes NUMBER_MAX, so that
 * the check of the range rejects it. */
static size_t take_digits(const char *text, int64_t *number)
{
    uint64_t all;
    size_t digits = text_take_number(text, strlen(text), &all);
    *number = all < (uint64_t)NUMBER_MAX ? (int64_t)all : NUMBER_MAX;
    return digits;
}

const char *value_duration(const char *text, int64_t *ns)
{
    int64_t number;
    size_t digits = take_digits(text, &number);
    if (digits == 0)
        return "is not a duration; write 60s, 1m or 500ms";
    if (text[digits] == '\0')
        return "has no unit; write 60s, 1m or 500ms";
    if (text[digits] == '.')
        return "is not a whole number; use a smaller unit, for example 1500ms for 1.5s";
    if (text[digits] == ' ')
        return "has a space before its unit; write 60s, 1m or 500ms";
    int64_t unit_ns = text_unit_ns(text + digits, strlen(text + digits));
    if (unit_ns == 0)
        return "has an unknown unit; use us, ms, s, m or h";
    *ns = number <= INT64_MAX / unit_ns ? number * unit_ns : INT64_MAX;
    return NULL;
}

const char *value_rate(const char *text, int64_t *ppm)
{
    static const char advice[] = "is not a rate; write 1%, 0.5% or 100ppm";
    int64_t whole;
    int64_t fraction = 0;
    size_t digits = take_digits(text, &whole);
    if (digits == 0)
        return advice;
    if (strcmp(text + digits, "ppm") == 0) {
        *ppm = whole;
        return NULL;
    }
    const char *rest = text + digits;
    if (*rest == '.') {
        size_t places = take_digits(rest + 1, &fraction);
        if (places == 0)
            return advice;
        if (places > RATE_PLACES_MAX)
            return "is finer than 1ppm; write at most four decimal places";
        for (size_t i = places; i < RATE_PLACES_MAX; i++)
            fraction *= 10;
        rest += 1 + places;
    }
    if (strcmp(rest, "%") != 0)
        return advice;
    *ppm = whole * PPM_PER_PERCENT + fraction;
    return NULL;
}

const char *value_integer(const char *text, int64_t *number)
{
    size_t digits = take_digits(text, number);
    if (digits == 0 || text[digits] != '\0')
        return "is not a number; write digits, for example 1000";
    return NULL;
}

const char *value_boolean(const char *text, bool *boolean)
{
    *boolean = strcmp(text, "true") == 0;
    return *boolean || strcmp(text, "false") == 0 ? NULL : "must be true or false";
}

/* Parse the number of a user or group. The largest number, (uid_t)-1, is not a valid id. */
static bool read_id(const char *text, uint32_t *id)
{
    int64_t number;
    if (value_integer(text, &number) != NULL || number >= UINT32_MAX)
        return false;
    *id = (uint32_t)number;
    return true;
}

bool value_user(const char *text, uint32_t *id)
{
    const struct passwd *found = getpwnam(text);
    if (found == NULL)
        return read_id(text, id);
    *id = found->pw_uid;
    return true;
}

bool value_group(const char *text, uint32_t *id)
{
    const struct group *found = getgrnam(text);
    if (found == NULL)
        return read_id(text, id);
    *id = found->gr_gid;
    return true;
}

bool value_has_space(const char *text)
{
    return text[text_word_len(text, strlen(text))] != '\0';
}

void value_print_duration(int64_t ns, char buf[VALUE_PRINTED])
{
    struct text text = {.buf = buf, .size = VALUE_PRINTED - 1};
    text_duration(&text, ns);
    buf[text.len] = '\0';
}

void value_print_rate(int64_t ppm, char buf[VALUE_PRINTED])
{
    if (ppm % PPM_PER_PERCENT == 0)
        snprintf(buf, VALUE_PRINTED, "%" PRId64 "%%", ppm / PPM_PER_PERCENT);
    else
        snprintf(buf, VALUE_PRINTED, "%" PRId64 "ppm", ppm);
}

void value_print_integer(int64_t number, char buf[VALUE_PRINTED])
{
    snprintf(buf, VALUE_PRINTED, "%" PRId64, number);
}

bool value_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}
