/*
 * Fuzzes the RESP commands of clients: any bytes, in any pieces, into the reader of commands, the
 * parser of requests and the formatter of their errors.
 *
 * The first byte of the input is the size of the pieces; the rest is what the client sends. The
 * pieces change neither the commands nor what is taken. Words are within the limits. An accepted
 * request is that of the line with the same words, so fuzz_request.c checks the rest. Each error is
 * one line of RESP.
 */
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "protocol/reply.h"
#include "protocol/request.h"
#include "server/clients/command_reader.h"
#include "tests/fuzz/fuzz.h"

static const struct request_limits limits = {
    .ttl_min_ms = 20, .ttl_max_ms = 60000, .hold_ttl_min_ms = 200, .key_prefix = ""};

/* What has become of the input, apart from how it was cut. */
struct made {
    uint64_t hash; /* of the words of all commands */
    size_t commands;
    size_t taken; /* bytes */
    bool garbage;
};

static void add_bytes(struct made *made, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++)
        made->hash = (made->hash ^ at[i]) * 1099511628211u;
}

static bool is_within(const char *view, size_t view_len, const char *bytes, size_t len)
{
    return view >= bytes && view_len <= len && (size_t)(view - bytes) <= len - view_len;
}

/* An error is a line that ends with CR LF, and has none before it. */
static void check_error(enum request_error code, const char *text)
{
    char buf[LIMIT_REPLY];
    size_t len = reply_format_resp_error("ERR", request_error_word(code), text, buf);
    assert(len > 2);
    assert(len <= sizeof(buf));
    assert(buf[0] == '-');
    assert(buf[len - 1] == '\n');
    assert(buf[len - 2] == '\r');
    for (size_t i = 0; i < len - 2; i++)
        assert(buf[i] >= 0x20 && buf[i] < 0x7f);
}

/* The reader's line consists of the words, separated by spaces. */
static void check_line(const struct command_reader *reader)
{
    const struct request_words *words = &reader->words;
    struct request request;
    struct error error;
    size_t end = 0;
    assert(reader->line_len < LIMIT_LINE);
    for (unsigned i = 0; i < words->count && i < REQUEST_WORDS_MAX; i++) {
        assert(words->word[i].at == reader->line + end);
        end += words->word[i].len;
        assert(end == reader->line_len || reader->line[end] == ' ');
        end++;
    }
    assert(words->count > REQUEST_WORDS_MAX || end == reader->line_len + 1);
    enum request_error code =
        request_parse(reader->line, reader->line_len, &limits, &request, &error);
    assert(code != REQUEST_EMPTY);
    assert(code != REQUEST_LINE_TOO_LONG);
    assert(code != REQUEST_BAD_TAG);
    assert(request.tag == NULL);
}

static void check_command(const struct command_reader *reader, struct made *made)
{
    const struct request_words *words = &reader->words;
    struct error error;
    assert(words->count <= COMMAND_WORDS);
    assert(reader->line_len <= sizeof(reader->line));
    for (unsigned i = 0; i < words->count && i < REQUEST_WORDS_MAX; i++) {
        const struct request_word *word = &words->word[i];
        assert(is_within(word->at, word->len, reader->line, reader->line_len));
        add_bytes(made, &word->len, sizeof(word->len));
        add_bytes(made, word->at, word->len);
    }
    add_bytes(made, &words->count, sizeof(words->count));
    add_bytes(made, &reader->too_long, sizeof(reader->too_long));
    made->commands++;
    if (reader->too_long || words->count == 0)
        return;
    enum request_error code = request_check_words(words, &error);
    if (code == REQUEST_FINE)
        check_line(reader);
    else
        check_error(code, error.text);
}

/* What a session does with its input. Returns the number of bytes taken. */
static size_t take(struct command_reader *reader, const char *bytes, size_t len, struct made *made)
{
    enum command_result result;
    assert(command_reader_begin(reader, bytes, len, true));
    while ((result = command_reader_next(reader)) == COMMAND_READ) {
        check_command(reader, made);
        command_reader_accept(reader);
    }
    if (result == COMMAND_GARBAGE)
        check_error(REQUEST_BAD_BYTE, reader->garbage);
    made->garbage = result == COMMAND_GARBAGE;
    size_t taken = command_reader_end(reader);
    assert(taken <= len);
    return taken;
}

/* The bytes arrive in pieces. Bytes that were not taken come again, before the next piece. */
static struct made take_pieces(const char *bytes, size_t len, size_t piece)
{
    static struct command_reader reader; /* serves one session after the other */
    struct made made = {.hash = 14695981039346656037u};
    size_t end = 0;
    if (reader.reader == NULL)
        assert(command_reader_init(&reader));
    while (end < len && !made.garbage) {
        end = len - end > piece ? end + piece : len;
        /* More than one part if the input exceeds COMMAND_BYTES. */
        size_t taken;
        do {
            taken = take(&reader, bytes + made.taken, end - made.taken, &made);
            made.taken += taken;
        } while (taken > 0 && !made.garbage);
    }
    for (size_t i = 0; i < sizeof(reader.line); i++)
        assert(reader.line[i] == '\0');
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len < 2)
        return 0;
    const char *input = (const char *)bytes + 1;
    struct made whole = take_pieces(input, len - 1, len - 1);
    struct made pieces = take_pieces(input, len - 1, 1 + bytes[0]);
    assert(whole.hash == pieces.hash);
    assert(whole.commands == pieces.commands);
    assert(whole.taken == pieces.taken);
    assert(whole.garbage == pieces.garbage);
    return 0;
}
