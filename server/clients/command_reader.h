/*
 * Bytes of a client -> the words of RESP commands, with hiredis's reader.
 *
 * One reader serves all sessions, one at a time. A session feeds it the unconsumed input of its
 * stream, takes the complete commands, and consumes their bytes. The stream keeps the bytes of an
 * incomplete command until more arrive. So an idle session has no buffer, and a command that
 * arrives whole costs no allocation.
 *
 * A command is an array of bulk strings. Empty lines between commands are ignored. The size of a
 * command is limited before anything is stored: at most COMMAND_BYTES bytes on the wire, in which
 * at most COMMAND_WORDS words fit. Of words that together do not fit in a line, only too_long is
 * kept.
 */
#ifndef SERVER_CLIENTS_COMMAND_READER_H
#define SERVER_CLIENTS_COMMAND_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/limits.h"
#include "protocol/request.h"

/* The shortest word, an empty one, has six bytes on the wire. */
enum { COMMAND_BYTES = 4 * LIMIT_LINE, COMMAND_WORDS = COMMAND_BYTES / 6 };

struct command_reader {
    struct redisReader *reader; /* owned; NULL if there was not enough memory */
    struct request_words words; /* the current command; empty for an empty array */
    bool too_long;              /* the words of the current command do not fit in a line */
    const char *garbage;        /* why the input is no command; NULL: it is one so far */
    char line[LIMIT_LINE];      /* the words, separated by spaces */
    size_t line_len;
    bool secret;  /* the input may contain a secret: overwrite all copies of it */
    size_t fed;   /* bytes */
    size_t taken; /* bytes of the commands before the current one */
};

enum command_result {
    COMMAND_READ,   /* `words` is the next command, or too_long is set; valid until the next call */
    COMMAND_MORE,   /* more bytes are needed */
    COMMAND_GARBAGE /* not RESP, or beyond the limits: `garbage` is a text for the client */
};

/* False if there is not enough memory. */
bool command_reader_init(struct command_reader *commands);
void command_reader_deinit(struct command_reader *commands);

/* Begin with the input of a session, which must end with command_reader_end(). Of more than
 * COMMAND_BYTES, the rest is ignored. secret: the input may contain a secret, so that the reader
 * overwrites all of its copies. False if there is not enough memory. */
bool command_reader_begin(struct command_reader *commands, const char *bytes, size_t len,
                          bool secret);

enum command_result command_reader_next(struct command_reader *commands);

/* The current command has been handled. */
void command_reader_accept(struct command_reader *commands);

/* Discard what is left. Returns the number of bytes of the accepted commands. */
size_t command_reader_end(struct command_reader *commands);

#endif
