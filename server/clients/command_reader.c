#include "server/clients/command_reader.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <hiredis/read.h>
#include <hiredis/sds.h>
#include <string.h>

/* --- secrets --- */

/* Overwrite the first `len` bytes of hiredis's buffer, and all beyond its input: hiredis moves the
 * input to the beginning when much of it was read. */
static void wipe(struct command_reader *commands, size_t len)
{
    sds buf = commands->reader->buf;
    if (!commands->secret || buf == NULL)
        return;
    explicit_bzero(buf, len);
    explicit_bzero(buf + sdslen(buf), sdsavail(buf));
}

static void wipe_all(struct command_reader *commands)
{
    wipe(commands, commands->reader->len);
}

static const char command_too_large[] = "Protocol error: a command must have at most 8192 bytes";

/* --- callbacks of hiredis --- */

/* Returned to hiredis for each value. NULL makes hiredis stop at once. */
static void *refuse(const redisReadTask *task, const char *why)
{
    struct command_reader *commands = task->privdata;
    commands->garbage = why;
    wipe_all(commands); /* hiredis frees its buffer now */
    return NULL;
}

static void *create_string(const redisReadTask *task, char *str, size_t len)
{
    struct command_reader *commands = task->privdata;
    struct request_words *words = &commands->words;
    if (task->parent == NULL || task->type != REDIS_REPLY_STRING)
        return refuse(task, "Protocol error: a command must be an array of bulk strings");
    /* hiredis skips these two bytes without a look. */
    if (str[len] != '\r' || str[len + 1] != '\n')
        return refuse(task, "Protocol error: a bulk string is longer than its length");
    bool first = words->count == 0;
    /* With the LF that it does not have, a line must not exceed LIMIT_LINE. */
    if (commands->line_len + !first + len >= sizeof(commands->line)) {
        commands->too_long = true;
        return commands;
    }
    /* hiredis may move its buffer before the command is handled, so copy the word. */
    if (!first)
        commands->line[commands->line_len++] = ' ';
    char *at = memcpy(commands->line + commands->line_len, str, len);
    commands->line_len += len;
    if (words->count < REQUEST_WORDS_MAX)
        words->word[words->count] = (struct request_word){at, len};
    words->count++;
    return commands;
}

#if HIREDIS_MAJOR >= 1
typedef size_t array_len;
#else
typedef int array_len; /* may be negative */
#endif

static void *create_array(const redisReadTask *task, array_len elements)
{
    if (task->parent != NULL)
        return refuse(task, "Protocol error: a command must be an array of bulk strings");
    if (elements > COMMAND_WORDS)
        return refuse(task, command_too_large);
    return task->privdata;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    (void)value;
    return refuse(task, "Protocol error: a command must be an array of bulk strings");
}

/* The array of length -1 is an empty command, as in Redis. */
static void *create_nil(const redisReadTask *task)
{
    if (task->parent != NULL)
        return refuse(task, "Protocol error: a word must not be null");
    return task->privdata;
}

/* There is nothing to free. After an error hiredis calls this before it frees its buffer. */
static void free_object(void *object)
{
    wipe_all(object);
}

#if HIREDIS_MAJOR >= 1
static void *create_double(const redisReadTask *task, double value, char *str, size_t len)
{
    (void)value;
    (void)str;
    (void)len;
    return create_integer(task, 0);
}

static void *create_bool(const redisReadTask *task, int value)
{
    return create_integer(task, value);
}
#endif

/* --- the reader --- */

/* hiredis has no function that resets a reader, so it is replaced. */
static bool replace_reader(struct command_reader *commands)
{
    /* hiredis stores a pointer to this table, so it is not const. It is never modified. */
    static redisReplyObjectFunctions functions = {
        .createString = create_string,
        .createArray = create_array,
        .createInteger = create_integer,
        .createNil = create_nil,
        .freeObject = free_object,
#if HIREDIS_MAJOR >= 1
        .createDouble = create_double,
        .createBool = create_bool,
#endif
    };
    if (commands->reader != NULL)
        redisReaderFree(commands->reader);
    commands->reader = redisReaderCreateWithFunctions(&functions);
    if (commands->reader == NULL)
        return false;
    commands->reader->privdata = commands;
    commands->reader->maxbuf = 0; /* keep the buffer, which is small */
    return true;
}

bool command_reader_init(struct command_reader *commands)
{
    memset(commands, 0, sizeof(*commands));
    return replace_reader(commands);
}

void command_reader_deinit(struct command_reader *commands)
{
    if (commands->reader != NULL)
        redisReaderFree(commands->reader);
    commands->reader = NULL;
}

bool command_reader_begin(struct command_reader *commands, const char *bytes, size_t len,
                          bool secret)
{
    if (commands->reader == NULL && !replace_reader(commands))
        return false;
    assert(commands->reader->len == commands->reader->pos);
    commands->garbage = NULL;
    commands->secret = secret;
    commands->taken = 0;
    commands->fed = len < COMMAND_BYTES ? len : COMMAND_BYTES;
    if (redisReaderFeed(commands->reader, bytes, commands->fed) == REDIS_OK)
        return true;
    /* After an error hiredis accepts no more input. */
    command_reader_deinit(commands);
    return false;
}

/* redis-cli --pipe sends an empty line before its last command. */
static void skip_empty_lines(struct command_reader *commands)
{
    redisReader *reader = commands->reader;
    while (reader->len - reader->pos >= 2 && memcmp(reader->buf + reader->pos, "\r\n", 2) == 0)
        reader->pos += 2;
    command_reader_accept(commands);
}

enum command_result command_reader_next(struct command_reader *commands)
{
    redisReader *reader = commands->reader;
    void *object = NULL;
    skip_empty_lines(commands);
    commands->words.count = 0;
    commands->line_len = 0;
    commands->too_long = false;
    if (reader->pos == reader->len)
        return COMMAND_MORE;
    if (reader->buf[reader->pos] == '\r' && reader->pos + 1 == reader->len)
        return COMMAND_MORE;
    if (reader->buf[reader->pos] != '*') {
        commands->garbage = "Protocol error: a command must begin with *";
        return COMMAND_GARBAGE;
    }
    if (redisReaderGetReply(reader, &object) != REDIS_OK) {
        if (commands->garbage == NULL)
            commands->garbage = "Protocol error: invalid length or type";
        return COMMAND_GARBAGE;
    }
    if (object != NULL)
        return COMMAND_READ;
    if (commands->taken == 0 && commands->fed == COMMAND_BYTES) {
        commands->garbage = command_too_large;
        return COMMAND_GARBAGE;
    }
    return COMMAND_MORE;
}

void command_reader_accept(struct command_reader *commands)
{
    commands->taken = commands->fed - (commands->reader->len - commands->reader->pos);
    wipe(commands, commands->reader->pos);
}

size_t command_reader_end(struct command_reader *commands)
{
    redisReader *reader = commands->reader;
    if (commands->secret)
        explicit_bzero(commands->line, sizeof(commands->line));
    wipe_all(commands);
    /* The reader is reused only if it has nothing left. hiredis discards what was read only while
     * it parses a command, so empty lines would pile up in its buffer. */
    if (reader->err != 0 || commands->taken < commands->fed || reader->len > COMMAND_BYTES)
        replace_reader(commands);
    return commands->taken;
}
