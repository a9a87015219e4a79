#include <assert.h>
#include <string.h>

#include "protocol/units.h"
#include "server/admin/status.h"
#include "server/clients/resp_session.h"
#include "server/clients/session.h"
#include "server/clock.h"

/* --- COMMAND: redlockd's verbs, as Redis describes its commands --- */

enum { DOC_MAX = 1024 };

/* Whether the first argument of the verb is a resource, which Redis would call a key. */
static bool has_key(enum verb verb)
{
    return strncmp(verb_usage(verb), "<resource>", 10) == 0;
}

/* Changes something, so that a client must not send it twice by itself. */
static bool is_write(enum verb verb)
{
    return verb == VERB_LOCK || verb == VERB_UNLOCK || verb == VERB_EXTEND || verb == VERB_BREAK;
}

/* The number of words including the name; negative: at least this number. */
static int64_t arity(enum verb verb)
{
    struct verb_arguments range = verb_arguments(verb);
    int64_t least = (int64_t)range.least + 1;
    return range.most == range.least ? least : -least;
}

static void put_name(struct text *text, enum verb verb)
{
    char name[16];
    size_t len = strlen(verb_word(verb));
    for (size_t i = 0; i < len; i++)
        name[i] = (char)(verb_word(verb)[i] | ('a' - 'A'));
    resp_bulk(text, name, len);
}

/* Name, arity, flags, and the positions of the keys: first, last, step. Then the categories of the
 * ACL, tips, key specifications and subcommands, which redlockd does not have. */
static void put_info(struct text *text, enum verb verb)
{
    resp_array(text, 10);
    put_name(text, verb);
    resp_integer(text, arity(verb));
    resp_array(text, 1);
    resp_string(text, is_write(verb) ? "write" : "readonly");
    for (unsigned i = 0; i < 3; i++)
        resp_integer(text, has_key(verb) ? 1 : 0);
    for (unsigned i = 0; i < 4; i++)
        resp_array(text, 0);
}

/* Summary and arguments. redis-cli shows both while a command is typed. */
static void put_docs(struct text *text, enum verb verb, enum dialect dialect)
{
    const char *usage = verb_usage(verb);
    put_name(text, verb);
    resp_map(text, dialect, usage[0] != '\0' ? 4 : 3);
    resp_string(text, "summary");
    resp_string(text, verb_text(verb));
    resp_string(text, "since");
    resp_string(text, REDLOCKD_VERSION);
    resp_string(text, "group");
    resp_string(text, "generic");
    if (usage[0] == '\0')
        return;
    resp_string(text, "arguments");
    resp_array(text, 1);
    resp_map(text, dialect, 3);
    resp_string(text, "name");
    resp_string(text, usage);
    resp_string(text, "type");
    resp_string(text, "string");
    resp_string(text, "display_text");
    resp_string(text, usage);
}

/* The verb of this name, or VERB_COUNT. */
static enum verb find_verb(const struct request_word *name)
{
    enum verb verb = VERB_LOCK;
    while (verb < VERB_COUNT && !request_word_is(name, verb_word(verb)))
        verb++;
    return verb;
}

static void write_text(struct session *session, const struct text *text)
{
    assert(text->len < text->size);
    session_write_bytes(session, text->buf, text->len);
}

static void write_header(struct session *session, size_t count, bool is_map)
{
    char buf[32];
    struct text text = {.buf = buf, .size = sizeof(buf)};
    if (is_map)
        resp_map(&text, session->dialect, count);
    else
        resp_array(&text, count);
    write_text(session, &text);
}

static void write_one(struct session *session, enum verb verb, bool docs)
{
    char buf[DOC_MAX];
    struct text text = {.buf = buf, .size = sizeof(buf)};
    if (docs)
        put_docs(&text, verb, session->dialect);
    else if (verb < VERB_COUNT)
        put_info(&text, verb);
    else
        resp_null(&text, session->dialect);
    write_text(session, &text);
}

static void write_all(struct session *session, bool docs)
{
    write_header(session, VERB_COUNT, docs);
    for (enum verb verb = 0; verb < VERB_COUNT; verb++)
        write_one(session, verb, docs);
}

/* COMMAND INFO and DOCS with names. INFO has null for a name that is unknown; DOCS leaves it out.
 */
static void write_named(struct session *session, const struct request_words *words, bool docs)
{
    const unsigned names = words->count - 2;
    enum verb found[REQUEST_WORDS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < names; i++) {
        enum verb verb = find_verb(&words->word[i + 2]);
        if (!docs || verb < VERB_COUNT)
            found[count++] = verb;
    }
    write_header(session, count, docs);
    for (unsigned i = 0; i < count; i++)
        write_one(session, found[i], docs);
}

void resp_docs_command(struct session *session, const struct request_words *words)
{
    const struct request_word *what = &words->word[1];
    char buf[LIMIT_REPLY];
    if (words->count == 2 && request_word_is(what, "COUNT")) {
        struct text text = {.buf = buf, .size = sizeof(buf)};
        resp_integer(&text, VERB_COUNT);
        write_text(session, &text);
        return;
    }
    bool docs = words->count > 1 && request_word_is(what, "DOCS");
    if (words->count > 1 && !docs && !request_word_is(what, "INFO")) {
        session_write_error(session, NULL, REQUEST_BAD_ARGUMENTS,
                            "COMMAND takes COUNT, DOCS [<name> ...] or INFO [<name> ...]");
        return;
    }
    if (words->count <= 2)
        write_all(session, docs);
    else
        write_named(session, words, docs);
}

/* --- INFO: what Redis clients look for, and the current numbers of STATS --- */

enum { INFO_MAX = 4096 };

static void put_field(struct text *text, const char *name, int64_t value)
{
    text_string(text, name);
    text_byte(text, ':');
    text_number(text, value);
    text_string(text, "\r\n");
}

static void put_server(struct text *text, const struct status *status)
{
    text_format(text, "redlockd_version:%s\r\nredis_mode:standalone\r\n", status->version);
    put_field(text, "process_id", status->pid);
    put_field(text, "uptime_in_seconds", status->uptime_ns / NS_PER_S);
}

static void put_clients(struct text *text, const struct status *status)
{
    put_field(text, "connected_clients", (int64_t)status->clients);
    put_field(text, "maxclients", (int64_t)status->clients_max);
    put_field(text, "blocked_clients", (int64_t)status->engine.waiting);
}

/* Clients wait until `loading` is 0. */
static void put_persistence(struct text *text, const struct status *status)
{
    (void)status;
    put_field(text, "loading", 0);
}

static void put_stats(struct text *text, const struct status *status)
{
    put_field(text, "locks", (int64_t)status->engine.locks);
    put_field(text, "holds", (int64_t)status->engine.holds);
    put_field(text, "waiting", (int64_t)status->engine.waiting);
    put_field(text, "rounds_in_flight", (int64_t)status->engine.rounds);
}

static void put_replication(struct text *text, const struct status *status)
{
    (void)status;
    text_string(text, "role:master\r\n");
}

static void put_masters(struct text *text, const struct status *status)
{
    put_field(text, "masters", status->engine.node_count);
    put_field(text, "masters_voting", status->voting);
    put_field(text, "quorum", status->engine.quorum);
}

static const struct section {
    const char *name;
    void (*put)(struct text *text, const struct status *status);
} sections[] = {
    {"Server", put_server}, {"Clients", put_clients},         {"Persistence", put_persistence},
    {"Stats", put_stats},   {"Replication", put_replication}, {"Masters", put_masters},
};

/* Whether the words after INFO name the section; without words, all are meant. */
static bool is_wanted(const struct section *section, const struct request_words *words)
{
    static const char *const all[] = {"all", "default", "everything"};
    for (unsigned i = 1; i < words->count; i++) {
        const struct request_word *word = &words->word[i];
        if (request_word_is(word, section->name))
            return true;
        for (size_t j = 0; j < sizeof(all) / sizeof(all[0]); j++)
            if (request_word_is(word, all[j]))
                return true;
    }
    return words->count == 1;
}

void resp_docs_info(struct session *session, const struct request_words *words)
{
    struct status status;
    char info_buf[INFO_MAX];
    char buf[INFO_MAX + 32];
    struct text info = {.buf = info_buf, .size = sizeof(info_buf)};
    struct text text = {.buf = buf, .size = sizeof(buf)};
    enum acl_answer may = acl_check(&session->identity.acl, VERB_STATS, NULL, 0);
    if (may != ACL_YES) {
        session_deny(session, NULL, VERB_STATS, may);
        return;
    }
    status_take_clients(&status, session->clients, clock_now_ns());
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (!is_wanted(&sections[i], words))
            continue;
        text_format(&info, "%s# %s\r\n", info.len > 0 ? "\r\n" : "", sections[i].name);
        sections[i].put(&info, &status);
    }
    resp_bulk(&text, info.buf, info.len);
    write_text(session, &text);
}
