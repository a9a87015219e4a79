#include "server/clients/resp_session.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "protocol/reply.h"
#include "protocol/row.h"
#include "protocol/units.h"
#include "server/clients/clients.h"
#include "server/clients/session.h"
#include "server/clock.h"

/* --- replies --- */

static void write_error(struct session *session, const char *word, const char *text)
{
    char answer[LIMIT_REPLY];
    session_write_bytes(session, answer, reply_format_resp_error(word, NULL, text, answer));
}

static void refuse(struct session *session, const char *text)
{
    session_write_error(session, NULL, REQUEST_BAD_ARGUMENTS, text);
}

static void write_ok(struct session *session)
{
    session_write_text(session, NULL, "OK");
}

static void write_bulk(struct session *session, const char *bytes, size_t len)
{
    char answer[LIMIT_REPLY + 16];
    struct text text = {.buf = answer, .size = sizeof(answer)};
    resp_bulk(&text, bytes, len);
    session_write_bytes(session, text.buf, text.len);
}

static void write_integer(struct session *session, int64_t number)
{
    char answer[TEXT_DIGITS + 4];
    struct text text = {.buf = answer, .size = sizeof(answer)};
    resp_integer(&text, number);
    session_write_bytes(session, text.buf, text.len);
}

/* --- HELLO, AUTH, RESET, QUIT --- */

/* The name that Redis clients send if they have only a secret. It stands for any user, unless a
 * user has this name. */
static bool is_any_user(const struct session *session, const struct request_word *name)
{
    static const char any_user[] = "default";
    const struct auth *auth = &session->clients->auth;
    return name->len == strlen(any_user) && memcmp(name->at, any_user, name->len) == 0 &&
           (auth->open || users_by_name(&auth->users, any_user) == NULL);
}

static bool authenticate(struct session *session, const struct request_word *name,
                         const struct request_word *secret)
{
    struct auth_credentials credentials = {
        .secret = secret->at, .secret_len = secret->len, .may_repeat = true};
    if (name != NULL && !is_any_user(session, name)) {
        credentials.name = name->at;
        credentials.name_len = name->len;
    }
    return requests_authenticate(session, NULL, &credentials);
}

/* AUTH [<user>] <secret> */
static void run_auth(struct session *session, const struct request_words *words)
{
    const struct request_word *word = words->word;
    bool named = words->count == 3;
    session->clients->requests[VERB_AUTH]++;
    if (authenticate(session, named ? &word[1] : NULL, &word[named ? 2 : 1]))
        write_ok(session);
}

/* Client libraries choose names by themselves, so a name that is no label must not make them fail:
 * it is cut, and other bytes become "_". */
static void set_name(struct session *session, const struct request_word *name)
{
    char label[LIMIT_TAG];
    size_t len = name->len < sizeof(label) ? name->len : sizeof(label);
    for (size_t i = 0; i < len; i++)
        label[i] = request_is_label_byte(name->at[i]) ? name->at[i] : '_';
    engine_client_set_name(&session->client, label, len);
}

/* HELLO with all its options. */
struct hello {
    enum dialect dialect;
    const struct request_word *user; /* followed by the secret; NULL: without AUTH */
    const struct request_word *name; /* NULL: without SETNAME */
};

/* Returns what is wrong, or NULL. */
static const char *parse_hello(const struct request_words *words, struct hello *hello)
{
    const unsigned count = words->count;
    for (unsigned i = 2; i < count;) {
        if (request_word_is(&words->word[i], "AUTH") && i + 2 < count) {
            hello->user = &words->word[i + 1];
            i += 3;
        } else if (request_word_is(&words->word[i], "SETNAME") && i + 1 < count) {
            hello->name = &words->word[i + 1];
            i += 2;
        } else {
            return "HELLO takes [2|3 [AUTH <user> <secret>] [SETNAME <label>]]";
        }
    }
    return NULL;
}

static void write_hello(struct session *session)
{
    char answer[LIMIT_REPLY];
    struct row row = {.text = {.buf = answer, .size = sizeof(answer)}, .dialect = session->dialect};
    char header_buf[16];
    struct text header = {.buf = header_buf, .size = sizeof(header_buf)};
    row_string(&row, "server", "redlockd");
    row_string(&row, "version", REDLOCKD_VERSION);
    row_number(&row, "proto", session->dialect == DIALECT_RESP3 ? 3 : 2);
    row_number(&row, "id", (int64_t)engine_client_id(&session->client));
    row_string(&row, "mode", "standalone");
    row_string(&row, "role", "master");
    row_array(&row, "modules", 0);
    row_header(&row, &header);
    assert(row.text.len < row.text.size);
    session_write_bytes(session, header.buf, header.len);
    session_write_bytes(session, row.text.buf, row.text.len);
}

static void run_hello(struct session *session, const struct request_words *words)
{
    struct hello hello = {.dialect = session->dialect};
    if (words->count > 1) {
        bool is_3 = request_word_is(&words->word[1], "3");
        if (!is_3 && !request_word_is(&words->word[1], "2")) {
            write_error(session, "NOPROTO", "unsupported protocol version: HELLO takes 2 or 3");
            return;
        }
        hello.dialect = is_3 ? DIALECT_RESP3 : DIALECT_RESP2;
    }
    const char *wrong = parse_hello(words, &hello);
    if (wrong != NULL) {
        refuse(session, wrong);
        return;
    }
    if (hello.dialect != DIALECT_RESP3 && engine_client_holds(&session->client) > 0) {
        refuse(session, "this connection has a HOLD, which needs HELLO 3; release it first");
        return;
    }
    if (hello.user != NULL && !authenticate(session, hello.user, hello.user + 1))
        return;
    if (!session->identity.acl.known) {
        write_error(session, "NOAUTH", "authenticate first: HELLO 3 AUTH <user> <secret>");
        return;
    }
    session->dialect = hello.dialect;
    if (hello.name != NULL)
        set_name(session, hello.name);
    write_hello(session);
}

/* A connection that has not authenticated yet gets no more time for it. False if there are too many
 * unauthenticated connections already. */
static bool leave_user(struct session *session)
{
    struct auth *auth = &session->clients->auth;
    struct auth_identity *identity = &session->identity;
    if (identity->state == AUTH_PENDING)
        return true;
    auth_leave(auth, identity);
    if (auth_identify(auth, identity))
        return true;
    bool full = auth_is_full(auth);
    auth_await(auth, identity, session->lines_ns);
    clients_set_auth_timer(session->clients);
    return !full;
}

/* The connection is as it was when it began: it has no locks with HOLD, no user, no name. */
static void run_reset(struct session *session, const struct request_words *words)
{
    (void)words;
    engine_client_end(session->clients->engine, &session->client, ENGINE_QUIT, session->lines_ns);
    engine_client_set_name(&session->client, "", 0);
    session->dialect = DIALECT_RESP2;
    if (leave_user(session)) {
        session_write_text(session, NULL, "RESET");
        return;
    }
    write_error(session, "LIMIT", "unauthenticated");
    session_close_when_written(session);
}

static void run_quit(struct session *session, const struct request_words *words)
{
    (void)words;
    session->clients->requests[VERB_QUIT]++;
    write_ok(session);
    engine_client_end(session->clients->engine, &session->client, ENGINE_QUIT, session->lines_ns);
    session_close_when_written(session);
}

/* --- CLIENT --- */

static void write_name(struct session *session)
{
    const char *name = engine_client_name(&session->client);
    if (name[0] != '\0') {
        write_bulk(session, name, strlen(name));
        return;
    }
    char answer[8];
    struct text text = {.buf = answer, .size = sizeof(answer)};
    resp_null(&text, session->dialect);
    session_write_bytes(session, text.buf, text.len);
}

/* In the form of Redis. Of the numbers that clients require (redis-py), redlockd has only two. */
static void write_info(struct session *session)
{
    char buf[LIMIT_REPLY];
    struct text text = {.buf = buf, .size = sizeof(buf)};
    int64_t age_ns = clock_now_ns() - session->since_ns;
    text_string(&text, "id=");
    text_number(&text, (int64_t)engine_client_id(&session->client));
    text_string(&text, " addr=");
    text_string(&text, session->peer);
    text_string(&text, " name=");
    text_string(&text, engine_client_name(&session->client));
    text_string(&text, " age=");
    text_number(&text, age_ns / NS_PER_S);
    text_string(&text, " idle=0 db=0 sub=0 psub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 obl=0 "
                       "oll=0 omem=0 tot-mem=0 user=");
    text_string(&text, session_user(session, "default"));
    text_string(&text, " resp=");
    text_number(&text, session->dialect == DIALECT_RESP3 ? 3 : 2);
    text_string(&text, "\n");
    write_bulk(session, text.buf, text.len);
}

static void run_client(struct session *session, const struct request_words *words)
{
    const struct request_word *word = words->word;
    const struct request_word *what = &word[1];
    if (request_word_is(what, "SETNAME") && words->count == 3) {
        set_name(session, &word[2]);
        write_ok(session);
    } else if (request_word_is(what, "GETNAME") && words->count == 2)
        write_name(session);
    else if (request_word_is(what, "ID") && words->count == 2)
        write_integer(session, (int64_t)engine_client_id(&session->client));
    else if (request_word_is(what, "INFO") && words->count == 2)
        write_info(session);
    else if ((request_word_is(what, "SETINFO") && words->count == 4) ||
             ((request_word_is(what, "NO-EVICT") || request_word_is(what, "NO-TOUCH")) &&
              words->count == 3))
        write_ok(session); /* Clients send these without need; there is nothing to set. */
    else
        refuse(session, "CLIENT takes SETNAME <label>, GETNAME, ID, INFO, SETINFO <name> <value>, "
                        "NO-EVICT or NO-TOUCH; CLIENTS lists the connections");
}

/* --- others --- */

static void run_select(struct session *session, const struct request_words *words)
{
    if (request_word_is(&words->word[1], "0"))
        write_ok(session);
    else
        refuse(session, "redlockd has no databases: SELECT takes 0 only");
}

static void run_echo(struct session *session, const struct request_words *words)
{
    write_bulk(session, words->word[1].at, words->word[1].len);
}

/* PING <message>. PONG confirms that the client's HOLDs are alive, and so does the message: first
 * report the HOLDs that have been lost by now. */
static void run_ping(struct session *session, const struct request_words *words)
{
    session->clients->requests[VERB_PING]++;
    engine_catch_up(session->clients->engine, session->lines_ns);
    run_echo(session, words);
}

static const struct resp_command commands[] = {
    {"HELLO", 1, 8, true, true, run_hello, "[2|3 [AUTH <user> <secret>] [SETNAME <label>]]"},
    {"AUTH", 2, 3, true, true, run_auth, "[<user>] <secret>"},
    {"RESET", 1, 1, true, true, run_reset, "no arguments"},
    {"QUIT", 1, 1, true, true, run_quit, "no arguments"},
    {"PING", 1, 2, false, true, run_ping, "[<message>]"},
    {"CLIENT", 2, 4, false, false, run_client, "a subcommand"},
    {"SELECT", 2, 2, false, false, run_select, "0"},
    {"ECHO", 2, 2, false, false, run_echo, "<message>"},
    {"COMMAND", 1, REQUEST_WORDS_MAX, false, true, resp_docs_command,
     "nothing, COUNT, or at most 10 names after DOCS or INFO"},
    {"INFO", 1, REQUEST_WORDS_MAX, false, false, resp_docs_info, "[<section> ...]"},
};

const struct resp_command *resp_session_find(const struct request_words *words)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        /* PING without a message is a request of redlockd. */
        if (request_word_is(&words->word[0], commands[i].name) &&
            (commands[i].run != run_ping || words->count > 1))
            return &commands[i];
    return NULL;
}

/* If nothing can be sent, only a command that changes the connection is of use. (A name is not.) */
void resp_session_run(struct session *session, const struct resp_command *command,
                      const struct request_words *words)
{
    char text[128];
    session->requests++;
    if (!command->without_auth && !session->identity.acl.known) {
        session_deny(session, NULL, VERB_AUTH, ACL_NOT_KNOWN);
    } else if (words->count < command->least || words->count > command->most) {
        snprintf(text, sizeof(text), "%s takes %s", command->name, command->usage);
        refuse(session, text);
    } else if (session->stream.failure == 0 || command->exclusive) {
        command->run(session, words);
    }
}
