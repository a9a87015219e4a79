#include "protocol/request.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "protocol/swar.h"
#include "protocol/token.h"
#include "protocol/units.h"

/* Error texts quote at most this many bytes of a word. */
enum { QUOTE_MAX = 32 };

/* The words after LOCK in the longest request. */
enum { LOCK_WORDS = 9 };

/* Verbs and options are padded with zeros to this many letters, so that is_word() compares each as
 * one integer. */
enum { LETTERS = 8 };

static const struct {
    char word[LETTERS];
    const char *usage;
    const char *text;
} verbs[VERB_COUNT] = {
#define X(name, word, usage, text) [name] = {word, usage, text},
    VERB_TABLE(X)
#undef X
};
#define X(name, word, usage, text) static_assert(sizeof(word) <= LETTERS, "the verb fits");
VERB_TABLE(X)
#undef X

const char *verb_word(enum verb verb)
{
    return verbs[verb].word;
}

const char *verb_usage(enum verb verb)
{
    return verbs[verb].usage;
}

const char *verb_text(enum verb verb)
{
    return verbs[verb].text;
}

const char *request_error_word(enum request_error error)
{
    static const char *const words[] = {
#define X(name, word) [name] = word,
        REQUEST_ERROR_TABLE(X)
#undef X
    };
    assert(error > REQUEST_EMPTY);
    return words[error];
}

/* --- errors --- */

/* Formats like printf. */
__attribute__((format(printf, 3, 4))) static enum request_error
fail(struct error *error, enum request_error code, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(error->text, sizeof(error->text), form, arguments);
    va_end(arguments);
    return code;
}

static enum request_error fail_word(struct error *error, enum request_error code, const char *what,
                                    const struct request_word *word, const char *advice)
{
    struct text text = error_begin(error);
    text_string(&text, what);
    text_quoted(&text, word->at, word->len, QUOTE_MAX);
    text_string(&text, advice);
    return code;
}

struct duration {
    char text[QUOTE_MAX + 8];
};

static struct duration duration(int64_t ms)
{
    struct duration duration = {""};
    struct text text = {.buf = duration.text, .size = sizeof(duration.text) - 1};
    text_duration(&text, ms * NS_PER_MS);
    return duration;
}

/* The duration that the word stands for, with its unit: clients that send 30 may mean seconds. The
 * word itself, in quotes, if it is 0 or too large. */
static struct duration duration_of(const struct request_word *word)
{
    struct duration quoted = {""};
    struct text text = {.buf = quoted.text, .size = sizeof(quoted.text) - 1};
    int64_t ms = 0;
    if (request_parse_time(word->at, word->len, &ms) == REQUEST_FINE && ms > 0)
        return duration(ms);
    text_quoted(&text, word->at, word->len, QUOTE_MAX);
    return quoted;
}

/* --- words --- */

static void add_word(struct request_words *words, const char *at, size_t len)
{
    if (len == 0)
        return;
    if (words->count < REQUEST_WORDS_MAX)
        words->word[words->count] = (struct request_word){at, len};
    words->count++;
}

/* Split the line in one pass. Returns the index of the first control character, where it stops, or
 * len if there is none. */
static size_t split(const char *line, size_t len, struct request_words *words)
{
    size_t start = 0;
    words->count = 0;
    for (size_t at = 0; at < len; at += 8) {
        size_t left = len - at;
        uint64_t all = left >= 8 ? swar_load(line + at) : swar_load_some(line + at, left, '-');
        uint64_t blanks = swar_are_blank(all);
        for (; blanks != 0; blanks = swar_but_first(blanks)) {
            size_t stop = at + swar_first(blanks);
            if (line[stop] != ' ')
                return stop;
            add_word(words, line + start, stop - start);
            start = stop + 1;
        }
    }
    add_word(words, line + start, len - start);
    return len;
}

/*
 * The word as an integer, in upper case if it has only letters, padded with zeros; 0 if it is
 * longer than LETTERS. The two cases of a letter differ in one bit. Clearing that bit makes no byte
 * of a word zero, so a word cannot match a shorter one.
 */
static uint64_t letters_of(const struct request_word *word)
{
    const uint64_t case_bits = SWAR_OF('a' - 'A');
    return word->len <= LETTERS ? swar_load_some(word->at, word->len, '\0') & ~case_bits : 0;
}

static bool is_word(const struct request_word *word, const char upper[LETTERS])
{
    return letters_of(word) == swar_load(upper);
}

bool request_word_is(const struct request_word *word, const char *name)
{
    return word->len == strlen(name) && strncasecmp(word->at, name, word->len) == 0;
}

/* --- tags and labels --- */

bool request_is_label_byte(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '.' || byte == ':' || byte == '-';
}

static bool is_label(const char *at, size_t len)
{
    if (len == 0 || len > LIMIT_TAG)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!request_is_label_byte(at[i]))
            return false;
    return true;
}

static bool is_tag(const struct request_word *word)
{
    return word->len > 1 && word->at[0] == '#' && is_label(word->at + 1, word->len - 1);
}

static void set_tag(struct request *request, const struct request_word *word)
{
    request->tag = word->at + 1;
    request->tag_len = (uint16_t)(word->len - 1);
}

/* Take the first word as the tag, if it is a valid one and a space follows. Without the space, the
 * line may have been cut inside a longer word. */
static void take_tag(const struct request_words *words, const char *end, struct request *request)
{
    const struct request_word *first = &words->word[0];
    if (words->count > 0 && first->at + first->len < end && is_tag(first))
        set_tag(request, first);
}

void request_tag(const char *line, size_t len, struct request *request)
{
    const char *const end = line + len;
    const char *at = line;
    request->tag = NULL;
    request->tag_len = 0;
    while (at < end && *at == ' ')
        at++;
    const char *space = memchr(at, ' ', (size_t)(end - at));
    if (space == NULL)
        return;
    const struct request_word first = {at, (size_t)(space - at)};
    if (is_tag(&first))
        set_tag(request, &first);
}

/* --- arguments --- */

enum request_error request_parse_time(const char *word, size_t len, int64_t *ms)
{
    /* In nanoseconds the time must fit in an int64_t. */
    const int64_t most_ms = INT64_MAX / NS_PER_MS;

    uint64_t number;
    size_t digits = text_take_number(word, len, &number);
    int64_t unit_ms = digits < len ? text_unit_ns(word + digits, len - digits) / NS_PER_MS : 1;
    if (digits == 0 || unit_ms == 0)
        return REQUEST_BAD_TIME;
    if (digits > LIMIT_TIME_DIGITS || number > (uint64_t)(most_ms / unit_ms))
        return REQUEST_TTL_RANGE;
    *ms = (int64_t)number * unit_ms;
    return REQUEST_FINE;
}

/* Would the key of this resource begin with "redlockd:"? */
static bool is_reserved(const struct request_word *resource, const struct request_limits *limits)
{
    static const char reserved[] = "redlockd:";
    const size_t len = sizeof(reserved) - 1;
    size_t by_prefix = limits->key_prefix_len < len ? limits->key_prefix_len : len;
    /* Compare the resource first: usually its first byte already differs, whereas a configured
     * prefix such as "redlock:" shares many bytes. */
    size_t same = by_prefix;
    for (size_t i = 0; i < resource->len && same < len && resource->at[i] == reserved[same]; i++)
        same++;
    return same == len && memcmp(limits->key_prefix, reserved, by_prefix) == 0;
}

static enum request_error take_resource(const struct request_word *word,
                                        const struct request_limits *limits,
                                        struct request *request, struct error *error)
{
    if (word->len > LIMIT_RESOURCE)
        return fail_word(error, REQUEST_BAD_RESOURCE, "resource ", word,
                         " is longer than 256 bytes");
    if (is_reserved(word, limits))
        return fail(error, REQUEST_BAD_RESOURCE,
                    "keys that begin with \"redlockd:\" are reserved; choose another name");
    request->resource = word->at;
    request->resource_len = (uint16_t)word->len;
    return REQUEST_FINE;
}

/* The first byte that is not a lower-case hex digit decides which error is reported. */
static enum request_error fail_digit(const char *token, struct error *error)
{
    while ((*token >= '0' && *token <= '9') || (*token >= 'a' && *token <= 'f'))
        token++;
    return fail(error, REQUEST_BAD_TOKEN,
                *token >= 'A' && *token <= 'F'
                    ? "a token must be in lower case, as in the reply to LOCK"
                    : "a token must have hex digits only");
}

/* A token is a secret, so no error text quotes it. */
static enum request_error take_token(const struct request_word *word, struct request *request,
                                     struct error *error)
{
    if (word->len != LIMIT_TOKEN)
        return fail(error, REQUEST_BAD_TOKEN,
                    "a token must be 40 hex digits, as in the reply to LOCK");
    if (!token_is(word->at, word->len))
        return fail_digit(word->at, error);
    request->token = word->at;
    return REQUEST_FINE;
}

static enum request_error take_ttl(const struct request_word *word,
                                   const struct request_limits *limits, struct request *request,
                                   struct error *error)
{
    int64_t ms = 0;
    enum request_error parsed = request_parse_time(word->at, word->len, &ms);
    if (parsed == REQUEST_BAD_TIME)
        return fail_word(error, REQUEST_BAD_TIME, "", word,
                         " is not a time; write 30s, 500ms, or milliseconds");
    if (parsed == REQUEST_FINE && ms >= limits->ttl_min_ms && ms <= limits->ttl_max_ms) {
        request->ttl_ms = ms;
        return REQUEST_FINE;
    }
    return fail(error, REQUEST_TTL_RANGE, "TTL %s must be between %s and %s",
                duration_of(word).text, duration(limits->ttl_min_ms).text,
                duration(limits->ttl_max_ms).text);
}

static enum request_error take_label(const struct request_word *word, struct request *request,
                                     struct error *error)
{
    if (!is_label(word->at, word->len))
        return fail(error, REQUEST_BAD_ARGUMENTS, "a label must be 1 to 32 of A-Z a-z 0-9 _ . : -");
    request->label = word->at;
    request->label_len = (uint16_t)word->len;
    return REQUEST_FINE;
}

static enum request_error take_secret(const struct request_word *word, struct request *request,
                                      struct error *error)
{
    if (word->len > LIMIT_SECRET)
        return fail(error, REQUEST_BAD_ARGUMENTS, "a secret must be at most 256 bytes");
    request->secret = word->at;
    request->secret_len = (uint16_t)word->len;
    return REQUEST_FINE;
}

/* --- requests --- */

static enum request_error fail_usage(enum verb verb, struct error *error)
{
    const char *usage = verbs[verb].usage;
    return fail(error, REQUEST_BAD_ARGUMENTS, "%s takes %s", verbs[verb].word,
                usage[0] != '\0' ? usage : "no arguments");
}

static enum request_error take_wait(const struct request_word *word, struct request *request,
                                    struct error *error)
{
    enum request_error parsed = request_parse_time(word->at, word->len, &request->wait_ms);
    if (parsed == REQUEST_BAD_TIME)
        return fail_word(error, REQUEST_BAD_TIME, "", word,
                         " is not a time; write 30s, 500ms, or milliseconds");
    if (parsed == REQUEST_FINE && request->wait_ms <= LIMIT_WAIT_MS)
        return REQUEST_FINE;
    return fail(error, REQUEST_WAIT_RANGE, "WAIT %s must be at most %s", duration_of(word).text,
                duration(LIMIT_WAIT_MS).text);
}

/* The names of the slots are the name of the resource with "#1" to "#<n>" appended. */
static enum request_error take_slots(const struct request_word *word, struct request *request,
                                     struct error *error)
{
    uint64_t slots;
    size_t digits = text_take_number(word->at, word->len, &slots);
    if (digits == 0 || digits < word->len || slots == 0 || slots > LIMIT_SLOTS)
        return fail_word(error, REQUEST_SLOTS_RANGE, "SLOTS must be between 1 and 1000, not ", word,
                         "");
    size_t suffix = slots < 10 ? 2 : slots < 100 ? 3 : slots < 1000 ? 4 : 5;
    if (request->resource_len + suffix > LIMIT_RESOURCE)
        return fail(error, REQUEST_BAD_RESOURCE,
                    "with SLOTS %u, a resource must be at most %zu bytes, because #%u is appended",
                    (unsigned)slots, LIMIT_RESOURCE - suffix, (unsigned)slots);
    request->slots = (uint16_t)slots;
    return REQUEST_FINE;
}

enum { OPTION_FENCE, OPTION_HOLD, OPTION_LINGER, OPTION_SLOTS, OPTION_WAIT, OPTIONS };
static const char option_words[OPTIONS][LETTERS] = {"FENCE", "HOLD", "LINGER", "SLOTS", "WAIT"};

/* Parse the value after SLOTS or WAIT. NULL: the line ends there. */
static enum request_error take_value(unsigned option, const struct request_word *word,
                                     struct request *request, struct error *error)
{
    if (word == NULL)
        return fail(error, REQUEST_BAD_ARGUMENTS,
                    option == OPTION_WAIT ? "WAIT needs a time, for example WAIT 30s"
                                          : "SLOTS needs a number, for example SLOTS 3");
    return option == OPTION_WAIT ? take_wait(word, request, error)
                                 : take_slots(word, request, error);
}

static unsigned option_of(const struct request_word *word)
{
    unsigned option = 0;
    while (option < OPTIONS && !is_word(word, option_words[option]))
        option++;
    return option;
}

/* Parse the options of LOCK: each at most once, in any order. */
static enum request_error take_options(const struct request_word *options, size_t count,
                                       struct request *request, struct error *error)
{
    bool given[OPTIONS] = {false};
    for (size_t at = 0; at < count; at++) {
        unsigned option = option_of(&options[at]);
        if (option == OPTIONS || given[option])
            return fail_word(error, REQUEST_BAD_ARGUMENTS, "LOCK option ", &options[at],
                             option < OPTIONS ? " is given twice"
                                              : " is unknown; LOCK takes <resource> <ttl> [SLOTS "
                                                "<n>] [WAIT <time>] [FENCE] [HOLD [LINGER]]");
        given[option] = true;
        if (option != OPTION_WAIT && option != OPTION_SLOTS)
            continue;
        at++;
        enum request_error failed =
            take_value(option, at < count ? &options[at] : NULL, request, error);
        if (failed != REQUEST_FINE)
            return failed;
    }
    request->fence = given[OPTION_FENCE];
    request->hold = given[OPTION_HOLD];
    request->linger = given[OPTION_LINGER];
    if (request->linger && !request->hold)
        return fail(error, REQUEST_BAD_ARGUMENTS, "LINGER needs HOLD; write HOLD LINGER");
    return REQUEST_FINE;
}

/* With HOLD the TTL must leave the daemon time for an extension, so its minimum is larger. */
static enum request_error fail_hold(const struct request_word *ttl,
                                    const struct request_limits *limits, struct error *error)
{
    int64_t least_ms = max(limits->hold_ttl_min_ms, limits->ttl_min_ms);
    if (least_ms > limits->ttl_max_ms)
        return fail(error, REQUEST_TTL_RANGE,
                    "HOLD needs a TTL of at least %s, but max_ttl is %s; lock without HOLD",
                    duration(least_ms).text, duration(limits->ttl_max_ms).text);
    return fail(error, REQUEST_TTL_RANGE, "TTL %s with HOLD must be between %s and %s",
                duration_of(ttl).text, duration(least_ms).text, duration(limits->ttl_max_ms).text);
}

/* Parse the arguments of LOCK. The caller has checked that there are at least two. */
static enum request_error parse_lock(const struct request_word *words, size_t count,
                                     const struct request_limits *limits, struct request *request,
                                     struct error *error)
{
    enum request_error failed = take_resource(&words[0], limits, request, error);
    if (failed != REQUEST_FINE)
        return failed;
    failed = take_ttl(&words[1], limits, request, error);
    /* The error must name the TTL range for HOLD if one of the options is HOLD. words[] keeps only
     * LOCK_WORDS words after LOCK. */
    for (size_t i = 2; i < count && i < LOCK_WORDS && failed == REQUEST_TTL_RANGE; i++)
        if (option_of(&words[i]) == OPTION_HOLD)
            return fail_hold(&words[1], limits, error);
    if (failed == REQUEST_FINE && count > 2)
        failed = take_options(words + 2, count - 2, request, error);
    if (failed == REQUEST_FINE && request->hold && request->ttl_ms < limits->hold_ttl_min_ms)
        return fail_hold(&words[1], limits, error);
    return failed;
}

/* Parse the arguments of STATUS. The caller has checked that there are one to three. */
static enum request_error parse_status(const struct request_word *words, size_t count,
                                       const struct request_limits *limits, struct request *request,
                                       struct error *error)
{
    enum request_error failed = take_resource(&words[0], limits, request, error);
    if (failed != REQUEST_FINE || count == 1)
        return failed;
    if (option_of(&words[1]) != OPTION_SLOTS)
        return fail_usage(VERB_STATUS, error);
    return take_value(OPTION_SLOTS, count > 2 ? &words[2] : NULL, request, error);
}

struct verb_arguments verb_arguments(enum verb verb)
{
    /* No words may follow verbs that are not listed. */
    static const struct verb_arguments counts[VERB_COUNT] = {
        [VERB_LOCK] = {2, LIMIT_LINE}, [VERB_UNLOCK] = {2, 2}, [VERB_EXTEND] = {3, 3},
        [VERB_STATUS] = {1, 3},        [VERB_BREAK] = {1, 1},  [VERB_LOCKS] = {0, 1},
        [VERB_NAME] = {1, 1},          [VERB_AUTH] = {1, 1},
    };
    return counts[verb];
}

static enum request_error parse_arguments(const struct request_word *words, size_t count,
                                          const struct request_limits *limits,
                                          struct request *request, struct error *error)
{
    enum request_error failed;
    struct verb_arguments range = verb_arguments(request->verb);
    if (count < range.least || count > range.most)
        return fail_usage(request->verb, error);
    if (request->verb == VERB_LOCK)
        return parse_lock(words, count, limits, request, error);
    if (request->verb == VERB_STATUS)
        return parse_status(words, count, limits, request, error);
    if (request->verb == VERB_NAME)
        return take_label(&words[0], request, error);
    if (request->verb == VERB_AUTH)
        return take_secret(&words[0], request, error);
    /* All other verbs take a prefix of <resource> <token> <ttl>. */
    failed = count > 0 ? take_resource(&words[0], limits, request, error) : REQUEST_FINE;
    if (count > 1 && failed == REQUEST_FINE)
        failed = take_token(&words[1], request, error);
    if (count > 2 && failed == REQUEST_FINE)
        failed = take_ttl(&words[2], limits, request, error);
    return failed;
}

static enum request_error find_verb(const struct request_word *word, struct request *request,
                                    struct error *error)
{
    for (unsigned verb = 0; verb < VERB_COUNT; verb++) {
        if (!is_word(word, verbs[verb].word))
            continue;
        request->verb = (enum verb)verb;
        return REQUEST_FINE;
    }
    return fail_word(error, REQUEST_UNKNOWN_VERB, "unknown verb ", word, "; send HELP for a list");
}

enum request_error request_parse(const char *line, size_t len, const struct request_limits *limits,
                                 struct request *request, struct error *error)
{
    struct request_words words;
    const struct request_word *word = words.word;
    memset(request, 0, sizeof(*request));
    size_t control = split(line, len, &words);
    take_tag(&words, line + len, request);
    if (len >= LIMIT_LINE)
        return fail(error, REQUEST_LINE_TOO_LONG, "a line must be at most 2048 bytes");
    if (control < len)
        return fail(error, REQUEST_BAD_BYTE,
                    "byte %zu is 0x%02x; control characters are not allowed, separate words with "
                    "spaces",
                    control + 1, (unsigned char)line[control]);
    if (words.count == 0)
        return REQUEST_EMPTY;
    if (word->at[0] == '#') {
        if (request->tag == NULL && !is_tag(word))
            return fail(error, REQUEST_BAD_TAG, "a tag must be 1 to 32 of A-Z a-z 0-9 _ . : -");
        set_tag(request, word++);
        if (words.count == 1)
            return fail(error, REQUEST_UNKNOWN_VERB, "a verb must follow the tag");
    }
    enum request_error failed = find_verb(word++, request, error);
    if (failed != REQUEST_FINE)
        return failed;
    size_t taken = (size_t)(word - words.word);
    return parse_arguments(word, words.count - taken, limits, request, error);
}

/* Whether all bytes of the word could stand in a line. */
static enum request_error check_word(const struct request_word *word, size_t number,
                                     struct error *error)
{
    if (word->len == 0)
        return fail(error, REQUEST_BAD_ARGUMENTS, "word %zu is empty", number);
    size_t fine = text_word_len(word->at, word->len);
    if (fine < word->len)
        return fail(error, REQUEST_BAD_BYTE,
                    "byte %zu of word %zu is 0x%02x; spaces and control characters are not allowed",
                    fine + 1, number, (unsigned char)word->at[fine]);
    return REQUEST_FINE;
}

enum request_error request_check_words(const struct request_words *words, struct error *error)
{
    const struct request_word *first = &words->word[0];
    enum request_error failed = REQUEST_FINE;
    if (words->count > 0 && first->len > 0 && first->at[0] == '#')
        return fail(error, REQUEST_BAD_TAG,
                    "RESP has no tags: replies come in the order of commands");
    for (unsigned i = 0; i < words->count && i < REQUEST_WORDS_MAX && failed == REQUEST_FINE; i++)
        failed = check_word(&words->word[i], i + 1, error);
    return failed;
}
