/*
 * server/clients/command_reader.h: RESP commands in any pieces, lengths that lie, the limits, and
 * what the reader leaves in memory.
 */
#include <hiredis/read.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/clients/command_reader.h"
#include "tests/runner.h"

static struct command_reader reader;

/* What the reader has made of its input: the words of each command in quotes, then ";". */
static char made[16 * LIMIT_LINE];
static size_t made_len;

static void open_reader(void)
{
    made_len = 0;
    made[0] = '\0';
    ck_assert(command_reader_init(&reader));
}

static void close_reader(void)
{
    command_reader_deinit(&reader);
}

static void note(const char *bytes, size_t len)
{
    ck_assert_uint_lt(made_len + len, sizeof(made));
    memcpy(made + made_len, bytes, len);
    made_len += len;
    made[made_len] = '\0';
}

static void note_command(void)
{
    for (unsigned i = 0; i < reader.words.count && i < REQUEST_WORDS_MAX; i++) {
        note("'", 1);
        note(reader.words.word[i].at, reader.words.word[i].len);
        note("'", 1);
    }
    if (reader.too_long)
        note("too long", 8);
    note(";", 1);
}

/* Takes all commands of the bytes. Returns the number of bytes taken; *result is the last result.
 */
static size_t take(const char *bytes, size_t len, enum command_result *result)
{
    ck_assert(command_reader_begin(&reader, bytes, len, false));
    while ((*result = command_reader_next(&reader)) == COMMAND_READ) {
        note_command();
        command_reader_accept(&reader);
    }
    return command_reader_end(&reader);
}

/* As a session does it: what is not taken comes again, before the next piece. */
static size_t take_pieces(const char *bytes, size_t len, size_t piece, enum command_result *result)
{
    size_t taken = 0;
    for (size_t end = piece; taken < len; end = end + piece < len ? end + piece : len) {
        taken += take(bytes + taken, end - taken, result);
        if (*result == COMMAND_GARBAGE || end == len)
            break;
    }
    return taken;
}

/* --- commands --- */

#define BYTES(text) text, sizeof(text) - 1

/* An empty array, a null array, an empty word, and words with a line end, a NUL and a length. */
static const char several[] = "*1\r\n$4\r\nPING\r\n"
                              "*0\r\n"
                              "*3\r\n$4\r\nLOCK\r\n$6\r\ndeploy\r\n$3\r\n30s\r\n"
                              "*-1\r\n"
                              "*3\r\n$0\r\n\r\n$4\r\n\r\n\0$\r\n$2\r\n*1\r\n"
                              "*2\r\n$4\r\nECHO\r\n$10\r\n$4\r\nPING\r\n\r\n"
                              "*1\r\n$4\r\nQUIT\r\n";
static const char several_made[] = "'PING';;'LOCK''deploy''30s';;''"
                                   "'\r\n\0$''*1';'ECHO''$4\r\nPING\r\n';'QUIT';";

static void assert_several_made(void)
{
    ck_assert_uint_eq(made_len, sizeof(several_made) - 1);
    ck_assert_mem_eq(made, several_made, sizeof(several_made) - 1);
}

TEST(several_commands_arrive_in_one_piece)
{
    enum command_result result;
    open_reader();
    ck_assert_uint_eq(take(several, sizeof(several) - 1, &result), sizeof(several) - 1);
    ck_assert_int_eq(result, COMMAND_MORE);
    assert_several_made();
    close_reader();
}

/* Two pieces, cut at each byte. The first piece gives the commands that it has completely. */
TEST(a_split_at_any_byte_changes_nothing)
{
    const size_t len = sizeof(several) - 1;
    enum command_result result;
    for (size_t cut = 0; cut <= len; cut++) {
        open_reader();
        size_t first = take(several, cut, &result);
        ck_assert_int_eq(result, COMMAND_MORE);
        ck_assert_uint_le(first, cut);
        ck_assert(first == 0 || several[first - 1] == '\n');
        ck_assert_uint_eq(first + take(several + first, len - first, &result), len);
        assert_several_made();
        close_reader();
    }
}

TEST(pieces_of_any_size_change_nothing)
{
    const size_t len = sizeof(several) - 1;
    enum command_result result;
    for (size_t piece = 1; piece < len; piece++) {
        open_reader();
        ck_assert_uint_eq(take_pieces(several, len, piece, &result), len);
        assert_several_made();
        close_reader();
    }
}

TEST(each_command_has_its_number_of_bytes)
{
    static const char two[] = "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nHELP\r\n*1\r\n$4\r\nQU";
    const size_t one = 14;
    open_reader();
    ck_assert(command_reader_begin(&reader, BYTES(two), false));
    for (unsigned i = 1; i <= 2; i++) {
        ck_assert_int_eq(command_reader_next(&reader), COMMAND_READ);
        ck_assert_uint_eq(reader.words.count, 1);
        command_reader_accept(&reader);
        ck_assert_uint_eq(reader.taken, i * one);
    }
    ck_assert_int_eq(command_reader_next(&reader), COMMAND_MORE);
    ck_assert_uint_eq(command_reader_end(&reader), 2 * one);
    close_reader();
}

/* A command that has to wait comes again, and the commands after it as well. */
TEST(a_command_that_is_not_accepted_is_not_taken)
{
    static const char two[] = "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n";
    enum command_result result;
    open_reader();
    for (unsigned tries = 0; tries < 3; tries++) {
        ck_assert(command_reader_begin(&reader, BYTES(two), false));
        ck_assert_int_eq(command_reader_next(&reader), COMMAND_READ);
        ck_assert_uint_eq(command_reader_end(&reader), 0);
    }
    ck_assert_uint_eq(take(BYTES(two), &result), sizeof(two) - 1);
    ck_assert_str_eq(made, "'PING';'QUIT';");
    close_reader();
}

/* --- input that is no command --- */

#define NO_ARRAY   "Protocol error: a command must begin with *"
#define NO_BULK    "Protocol error: a command must be an array of bulk strings"
#define BAD_LENGTH "Protocol error: invalid length or type"
#define TOO_SHORT  "Protocol error: a bulk string is longer than its length"
#define TOO_LARGE  "Protocol error: a command must have at most 8192 bytes"
#define NULL_WORD  "Protocol error: a word must not be null"

#define PING "*1\r\n$4\r\nPING\r\n"

/* garbage: NULL if more bytes are awaited. A command before it is taken in any case. */
static const struct {
    const char *bytes;
    const char *garbage;
} odd_inputs[] = {
    /* What is no array of bulk strings. */
    {"PING\r\n", NO_ARRAY},
    {"$4\r\nPING\r\n", NO_ARRAY},
    {"*1\r\n:4\r\n", NO_BULK},
    {"*1\r\n+PING\r\n", NO_BULK},
    {"*1\r\n-PING\r\n", NO_BULK},
    {"*1\r\n*1\r\n$4\r\nPING\r\n", NO_BULK},
    {"*2\r\n$4\r\nECHO\r\n*0\r\n", NO_BULK},
    {"*1\r\n$-1\r\n", NULL_WORD},
    {"*1\r\n*-1\r\n", NULL_WORD},
    {"*1\r\nPING\r\n", BAD_LENGTH},
    {"*1\r\n\r\n", BAD_LENGTH},
    {"*1\r\n@4\r\nPING\r\n", BAD_LENGTH},
    /* Numbers of words that lie. */
    {"*2\r\n$4\r\nPING\r\n", NULL},
    {"*1365\r\n", NULL},
    {"*1366\r\n", TOO_LARGE},
    {"*1048576\r\n", TOO_LARGE},
    {"*2147483647\r\n", TOO_LARGE},
    {"*2147483648\r\n", BAD_LENGTH},
    {"*4294967297\r\n$4\r\nPING\r\n", BAD_LENGTH},
    {"*99999999999999999999\r\n", BAD_LENGTH},
    {"*-2\r\n", BAD_LENGTH},
    {"*-2147483648\r\n", BAD_LENGTH},
    {"*\r\n", BAD_LENGTH},
    {"*x\r\n", BAD_LENGTH},
    {"*01\r\n$4\r\nPING\r\n", BAD_LENGTH},
    {"*+1\r\n$4\r\nPING\r\n", BAD_LENGTH},
    {"* 1\r\n$4\r\nPING\r\n", BAD_LENGTH},
    {"*1\n$4\r\nPING\r\n", BAD_LENGTH},
    {"*1\n$4\nPING\n", NULL},
    /* Lengths of words that lie. */
    {"*1\r\n$3\r\nPING\r\n", TOO_SHORT},
    {"*1\r\n$0\r\nPING\r\n", TOO_SHORT},
    {"*1\r\n$4\r\nPINGxx", TOO_SHORT},
    {"*1\r\n$4\r\nPING\rx", TOO_SHORT},
    {"*1\r\n$4\r\nPING\n\r", TOO_SHORT},
    {"*1\r\n$5\r\nPING\r\n*1\r\n", TOO_SHORT},
    {"*1\r\n$5\r\nPING\r\n", NULL},
    {"*1\r\n$6\r\nPING\r\n", NULL},
    {"*1\r\n$4\r\nPING\r", NULL},
    {"*1\r\n$2147483648\r\nPING\r\n", NULL},
    {"*1\r\n$9223372036854775807\r\nPING\r\n", NULL},
    {"*1\r\n$9223372036854775808\r\nPING\r\n", BAD_LENGTH},
    {"*1\r\n$-2\r\nPING\r\n", BAD_LENGTH},
    {"*1\r\n$-9223372036854775808\r\nPING\r\n", BAD_LENGTH},
    {"*1\r\n$04\r\nPING\r\n", BAD_LENGTH},
    {"*1\r\n$4x\r\nPING\r\n", BAD_LENGTH},
    {"*1\r\n$\r\nPING\r\n", BAD_LENGTH},
};

TEST_ROWS(each_odd_input_is_garbage_or_incomplete, odd_inputs)
{
    const char *garbage = odd_inputs[_i].garbage;
    char bytes[256];
    enum command_result result;
    open_reader();
    snprintf(bytes, sizeof(bytes), PING "%s", odd_inputs[_i].bytes);
    for (size_t piece = 1; piece <= strlen(bytes); piece++) {
        made_len = 0;
        size_t taken = take_pieces(bytes, strlen(bytes), piece, &result);
        ck_assert_uint_eq(taken, strlen(PING));
        ck_assert_str_eq(made, "'PING';");
        ck_assert_int_eq(result, garbage != NULL ? COMMAND_GARBAGE : COMMAND_MORE);
        if (garbage != NULL)
            ck_assert_str_eq(reader.garbage, garbage);
    }
    /* The reader serves the next session. */
    made_len = 0;
    ck_assert_uint_eq(take(BYTES(PING), &result), strlen(PING));
    ck_assert_str_eq(made, "'PING';");
    close_reader();
}

/* --- limits --- */

static char input[4 * COMMAND_BYTES];

/* Writes a command of `count` words of `len` bytes each. Returns its number of bytes. */
static size_t write_command(unsigned count, size_t len)
{
    size_t at = (size_t)snprintf(input, sizeof(input), "*%u\r\n", count);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_uint_lt(at + len + 32, sizeof(input));
        at += (size_t)snprintf(input + at, 32, "$%zu\r\n", len);
        memset(input + at, 'w', len);
        memcpy(input + at + len, "\r\n", 2);
        at += len + 2;
    }
    return at;
}

/* As many empty words as fit in a command, and one more. */
TEST(words_beyond_those_kept_are_counted)
{
    enum command_result result;
    open_reader();
    size_t len = write_command(COMMAND_WORDS - 1, 0);
    ck_assert_uint_le(len, COMMAND_BYTES);
    ck_assert(command_reader_begin(&reader, input, len, false));
    ck_assert_int_eq(command_reader_next(&reader), COMMAND_READ);
    ck_assert_uint_eq(reader.words.count, COMMAND_WORDS - 1);
    ck_assert(!reader.too_long);
    for (unsigned i = 0; i < REQUEST_WORDS_MAX; i++)
        ck_assert_uint_eq(reader.words.word[i].len, 0);
    command_reader_accept(&reader);
    ck_assert_uint_eq(command_reader_end(&reader), len);
    len = write_command(COMMAND_WORDS, 0);
    ck_assert_uint_gt(len, COMMAND_BYTES);
    ck_assert_uint_eq(take(input, len, &result), 0);
    ck_assert_int_eq(result, COMMAND_GARBAGE);
    close_reader();
}

/* More words than fit in a line, but not more bytes than a command may have. */
TEST(a_command_of_many_words_is_too_long_and_skipped)
{
    enum command_result result;
    open_reader();
    size_t len = write_command(LIMIT_LINE / 2 + 1, 1);
    ck_assert_uint_eq(take(input, len, &result), len);
    ck_assert_int_eq(result, COMMAND_MORE);
    ck_assert_ptr_nonnull(strstr(made, "too long;"));
    close_reader();
}

/* A command whose words are too long is taken as a whole, and so is the next one. */
TEST(words_together_fit_in_a_line)
{
    static const struct {
        unsigned count;
        size_t len;
        bool too_long;
    } rows[] = {
        {1, LIMIT_LINE - 1, false},     {1, LIMIT_LINE, true},
        {2, LIMIT_LINE / 2 - 1, false}, {2, LIMIT_LINE / 2, true},
        {8, LIMIT_LINE / 8 - 1, false}, {8, LIMIT_LINE / 8, true},
        {1, COMMAND_BYTES - 32, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum command_result result;
        open_reader();
        size_t len = write_command(rows[i].count, rows[i].len);
        ck_assert(command_reader_begin(&reader, input, len, false));
        ck_assert_int_eq(command_reader_next(&reader), COMMAND_READ);
        ck_assert_int_eq(reader.too_long, rows[i].too_long);
        ck_assert_uint_le(reader.line_len, sizeof(reader.line));
        command_reader_accept(&reader);
        ck_assert_uint_eq(command_reader_end(&reader), len);
        ck_assert_uint_eq(take(BYTES(PING), &result), strlen(PING));
        ck_assert_str_eq(made, "'PING';");
        close_reader();
    }
}

TEST(a_command_has_at_most_8192_bytes)
{
    enum command_result result;
    for (int over = -1; over <= 1; over++) {
        open_reader();
        /* "*1", "$8177" and three line ends. */
        size_t len = write_command(1, (size_t)(COMMAND_BYTES - 4 - 7 - 2 + over));
        ck_assert_uint_eq(len, (size_t)(COMMAND_BYTES + over));
        size_t taken = take_pieces(input, len, 1000, &result);
        ck_assert_int_eq(result, over > 0 ? COMMAND_GARBAGE : COMMAND_MORE);
        ck_assert_uint_eq(taken, over > 0 ? 0 : len);
        close_reader();
    }
}

/* Garbage that never has an end is found, too. */
TEST(endless_numbers_are_garbage)
{
    static const char *const begins[] = {"*", "*1\r\n$", "*1\r\n$4\r\n", "*1024\r\n$1\r\nx\r\n$"};
    enum command_result result;
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        open_reader();
        memset(input, '1', sizeof(input));
        memcpy(input, begins[i], strlen(begins[i]));
        ck_assert_uint_eq(take_pieces(input, sizeof(input), 3000, &result), 0);
        ck_assert_int_eq(result, COMMAND_GARBAGE);
        close_reader();
    }
}

/* Much input at once: the rest waits until the first bytes are taken. */
TEST(more_input_than_one_command_is_read_in_parts)
{
    enum { COUNT = 12, WORD = 1500 };
    static char all[COUNT * (WORD + 32)];
    enum command_result result;
    size_t len = 0;
    size_t taken = 0;
    open_reader();
    for (unsigned i = 0; i < COUNT; i++) {
        size_t one = write_command(1, WORD);
        memcpy(all + len, input, one);
        len += one;
    }
    for (unsigned parts = 0; taken < len; parts++) {
        size_t part = take(all + taken, len - taken, &result);
        ck_assert_uint_gt(part, 0);
        ck_assert_uint_le(part, COMMAND_BYTES);
        taken += part;
        ck_assert_uint_lt(parts, COUNT);
    }
    ck_assert_uint_eq(taken, len);
    close_reader();
}

/* Empty lines are skipped without hiredis, which would discard them. */
TEST(empty_lines_do_not_pile_up)
{
    enum command_result result;
    open_reader();
    for (size_t i = 0; i < sizeof(input); i += 2)
        memcpy(input + i, "\r\n", 2);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_uint_eq(take(input, COMMAND_BYTES, &result), COMMAND_BYTES);
        ck_assert_uint_le(reader.reader->len, COMMAND_BYTES);
    }
    ck_assert_uint_eq(take(BYTES(PING), &result), strlen(PING));
    ck_assert_str_eq(made, "'PING';");
    close_reader();
}

#ifndef __SANITIZE_ADDRESS__

/* --- memory: these functions replace those of libc, also for hiredis --- */

static const char secret[] = "c0ffee00c0ffee00c0ffee00c0ffee00";

static unsigned allocations;
static int allocations_left = -1; /* -1: all succeed */
static bool secret_freed;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *memory);

static bool memory_is_short(void)
{
    allocations++;
    if (allocations_left > 0)
        allocations_left--;
    return allocations_left == 0;
}

static void note_freed(void *memory)
{
    if (memory != NULL && memmem(memory, malloc_usable_size(memory), secret, 16) != NULL)
        secret_freed = true;
}

void *malloc(size_t size)
{
    return memory_is_short() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return memory_is_short() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    note_freed(old);
    return memory_is_short() ? NULL : __libc_realloc(old, size);
}

void free(void *memory)
{
    note_freed(memory);
    __libc_free(memory);
}

/* Once the buffer of hiredis has its size. */
TEST(whole_commands_cost_no_allocation)
{
    enum { FIRST = 10, ALL = 1000 };
    enum command_result result;
    open_reader();
    size_t len = write_command(4, 100);
    for (unsigned i = 0; i < ALL; i++) {
        made_len = 0;
        if (i == FIRST)
            allocations = 0;
        ck_assert_uint_eq(take(input, len, &result), len);
    }
    ck_assert_uint_eq(allocations, 0);
    close_reader();
}

/* The reader serves all sessions, so it must work again once there is memory. */
TEST(a_reader_without_memory_recovers)
{
    enum command_result result;
    for (int left = 1; left <= 4; left++) {
        open_reader();
        size_t len = write_command(4, 100);
        allocations_left = left;
        bool begun = command_reader_begin(&reader, input, len, false);
        if (begun) {
            (void)command_reader_next(&reader);
            command_reader_end(&reader);
        }
        begun = command_reader_begin(&reader, input, len, false);
        if (begun)
            command_reader_end(&reader);
        allocations_left = -1;
        ck_assert_uint_eq(take(input, len, &result), len);
        close_reader();
    }
}

/* Appends to the input a command of two words. */
static size_t append(size_t at, const char *first, const char *second)
{
    return at + (size_t)snprintf(input + at, sizeof(input) - at,
                                 "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(first), first,
                                 strlen(second), second);
}

/* What follows AUTH and its secret in one piece. */
static const char *const after_secret[] = {
    "",
    PING,
    "*1\r\n$4\r\nPI", /* incomplete */
    "*1\r\n:1\r\n",   /* garbage in the second command */
    "*x\r\n",
    "PING\r\n",
    "*1\r\n$3\r\nPING\r\n",
    "*2\r\n$4\r\nAUTH\r\n$30\r\nc0ffee00c0ffee00c0ffee00c0ffee00\r\n", /* the second secret */
    "*2\r\n$4\r\nAUTH\r\n$x\r\nc0ffee00c0ffee00c0ffee00c0ffee00\r\n",
    "*2\r\n$4\r\nAUTH\r\n$33\r\nc0ffee00c0ffee00c0ffee00c0ffee00",
};

enum { AFTER_SECRET = sizeof(after_secret) / sizeof(after_secret[0]) };

/* No copy of the secret is left in the reader or in memory that was freed, however much comes
 * before and after it. */
TEST_LOOP(secrets_are_wiped, 0, AFTER_SECRET)
{
    static const unsigned others[] = {0, 1, 20, 100};
    static struct command_reader *const all = &reader;
    for (unsigned i = 0; i < 16; i++) {
        size_t len = 0;
        open_reader();
        for (unsigned before = 0; before < others[i % 4]; before++)
            len = append(len, "ECHO", "some words before it");
        len = append(len, "AUTH", secret);
        for (unsigned after = 0; after < others[i / 4]; after++)
            len = append(len, "ECHO", "some words after it");
        len += (size_t)snprintf(input + len, sizeof(input) - len, "%s", after_secret[_i]);
        secret_freed = false;
        ck_assert(command_reader_begin(&reader, input, len, true));
        while (command_reader_next(&reader) == COMMAND_READ)
            command_reader_accept(&reader);
        command_reader_end(&reader);
        ck_assert_ptr_null(memmem(all, sizeof(*all), secret, 16));
        close_reader();
        ck_assert(!secret_freed);
    }
}

#endif
