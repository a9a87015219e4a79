#include "tests/torture/wire.h"

#include <check.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

const char *wire_verb_word(enum wire_verb verb)
{
    static const char *const names[] = {
#define VERB_NAME(name, pattern) #name,
        WIRE_VERBS(VERB_NAME)
#undef VERB_NAME
    };
    return names[verb];
}

void grammar_init(struct grammar *grammar)
{
    static const char *const patterns[] = {
#define VERB_PATTERN(name, pattern) "^(" pattern ")$",
        WIRE_VERBS(VERB_PATTERN)
#undef VERB_PATTERN
    };
    for (unsigned i = 0; i < WIRE_COUNT; i++)
        ck_assert_int_eq(regcomp(&grammar->replies[i], patterns[i], REG_EXTENDED | REG_NOSUB), 0);
}

void grammar_free(struct grammar *grammar)
{
    for (unsigned i = 0; i < WIRE_COUNT; i++)
        regfree(&grammar->replies[i]);
}

/* --- the connection --- */

void wire_opened(struct wire *wire, unsigned daemon, bool over_tcp)
{
    wire->open = true;
    wire->over_tcp = over_tcp;
    wire->daemon = daemon;
    wire->ending = false;
    wire->holds = false;
    wire->request_count = 0;
}

void wire_close(struct wire *wire)
{
    if (wire->open)
        client_close(&wire->client);
    wire->open = false;
}

void wire_reset(struct wire *wire)
{
    if (wire->open)
        client_reset(&wire->client);
    wire->open = false;
}

bool wire_ended(struct wire *wire)
{
    char peek;
    ssize_t got = recv(wire->client.fd, &peek, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* --- requests --- */

void wire_ask(struct wire *wire, enum wire_verb verb, unsigned lock, const char *form, ...)
{
    char line[256];
    va_list arguments;
    unsigned tag = wire->next_tag++;
    int len = snprintf(line, sizeof(line), "#%u ", tag);
    va_start(arguments, form);
    vsnprintf(line + len, sizeof(line) - (size_t)len - 1, form, arguments);
    va_end(arguments);
    ledger_note(wire->ledger, "player %u%c to %u: %s", wire->player, wire->name, wire->daemon,
                line);
    strcat(line, "\n");
    ck_assert_uint_lt(wire->request_count, WIRE_REQUESTS);
    wire->requests[wire->request_count++] =
        (struct wire_request){.verb = verb, .tag = tag, .lock = lock, .sent_ns = ledger_now_ns()};
    client_try_send(&wire->client, line);
}

/* --- reading --- */

static void wrong(struct wire *wire, const char *what, const char *line)
{
    ledger_violated(wire->ledger, "player %u%c got from daemon %u %s: %s", wire->player, wire->name,
                    wire->daemon, what, line);
}

static bool is_valid_reply(const struct wire *wire, enum wire_verb verb, const char *text)
{
    if (regexec(&wire->grammar->replies[verb], text, 0, NULL, 0) == 0)
        return true;
    /* After QUIT or a shutdown of the connection, a LOCK may be answered ERR bad-arguments. */
    return verb == WIRE_LOCK && wire->ending && strncmp(text, "ERR bad-arguments ", 18) == 0;
}

static bool take_push(struct wire *wire, const char *text, struct wire_answer *answer)
{
    enum wire_verb verb = strncmp(text, "LOST ", 5) == 0 ? WIRE_LOST : WIRE_WARN;
    if (!wire->holds || !is_valid_reply(wire, verb, text)) {
        wrong(wire, "an invalid push", text);
        return false;
    }
    *answer = (struct wire_answer){.request = {.verb = verb}, .text = text};
    return true;
}

static struct wire_request *find(struct wire *wire, unsigned long tag)
{
    for (unsigned i = 0; i < wire->request_count; i++)
        if (wire->requests[i].tag == tag)
            return &wire->requests[i];
    return NULL;
}

static bool take_reply(struct wire *wire, const char *line, struct wire_answer *answer)
{
    char *text;
    unsigned long tag = strtoul(line, &text, 10);
    struct wire_request *request = *text == ' ' ? find(wire, tag) : NULL;
    if (request == NULL) {
        wrong(wire, "a reply without a request", line);
        return false;
    }
    text++;
    if (!is_valid_reply(wire, request->verb, text)) {
        wrong(wire, "an invalid reply", line);
        return false;
    }
    *answer = (struct wire_answer){.request = *request, .text = text};
    /* A listing continues until END. */
    if (request->verb != WIRE_STATS || strcmp(text, "END") == 0)
        *request = wire->requests[--wire->request_count];
    return true;
}

bool wire_read(struct wire *wire, struct wire_answer *answer)
{
    if (!wire->open || !client_has_line(&wire->client))
        return false;
    const char *line = client_read(&wire->client);
    ledger_note(wire->ledger, "player %u%c from %u: %s", wire->player, wire->name, wire->daemon,
                line);
    if (strncmp(line, "! ", 2) == 0)
        return take_push(wire, line + 2, answer);
    if (line[0] == '#')
        return take_reply(wire, line + 1, answer);
    wrong(wire, "a line that is neither reply nor push", line);
    return false;
}
