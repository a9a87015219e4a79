#include "engine/master/link.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "protocol/units.h"

#define SILENCE_TIMEOUT_MIN_NS (1 * NS_PER_S)
#define RETRY_MIN_NS           (50 * NS_PER_MS)
#define RETRY_MAX_NS           (2 * NS_PER_S)

/* The greeting has two parts, because the second part needs the run_id that the first part
 * returns. */
enum greeting_step {
    GREET_AUTH,
    GREET_SELECT,
    GREET_SETNAME,
    GREET_ID,
    GREET_INFO,
    GREET_KILL,
    GREET_SCRIPT, /* followed by one step for each script */
};

const char *link_state_word(enum link_state state)
{
    static const char *const words[] = {"down", "opening", "greeting", "up", "suspect"};
    return words[state];
}

uint32_t link_random(const struct link_io *io)
{
    uint32_t random;
    io->random(io->context, &random, sizeof(random));
    return random;
}

void link_init(struct link *link, unsigned node, const struct link_io *io,
               const struct link_login *login, const struct link_rules *rules,
               struct outstanding *outstanding, struct pending_release *pending_releases,
               int64_t now_ns)
{
    *link = (struct link){
        .io = io,
        .login = login,
        .node = node,
        .rules = *rules,
        .state = LINK_DOWN,
        .reason = REASON_CONNECTING,
        .since_ns = now_ns,
        .retry_ns = now_ns,
        .outstanding = outstanding,
        .round_trip_ns = -1,
        .latency_ns = -1,
        .distance_ns = -1,
        .pending_releases = {.entries = pending_releases, .size = LIMIT_LINK_PENDING_RELEASES},
    };
}

int64_t link_silence_timeout_ns(const struct link *link)
{
    return max(20 * link->rules.node_timeout_ns, SILENCE_TIMEOUT_MIN_NS);
}

int64_t link_retry_ns(unsigned attempts, uint32_t random)
{
    int64_t delay_ns = min(RETRY_MIN_NS << min(attempts, 6), RETRY_MAX_NS);
    return delay_ns / 2 + (int64_t)((uint64_t)(delay_ns / 2) * random >> 32);
}

bool link_is_connected(enum link_state state)
{
    return state == LINK_UP || state == LINK_SUSPECT;
}

/* The only place where the state changes. */
static void set_state(struct link *link, enum link_state state, enum reason reason, int64_t now_ns)
{
    assert((state == LINK_UP) == (reason == REASON_NONE));
    /* While a master is absent, since_ns stays the same through all attempts to reach it. */
    if (link_is_connected(link->state) || link_is_connected(state))
        link->since_ns = now_ns;
    link->state = state;
    link->reason = reason;
}

/* --- outstanding commands --- */

static unsigned load_of(const struct outstanding *outstanding)
{
    return outstanding->kind == OUTSTANDING_RELEASES ? outstanding->count : 1;
}

static void push_outstanding(struct link *link, const struct outstanding *outstanding)
{
    /* The slot of the command that was taken last must not be overwritten: the caller still uses
     * it. */
    assert(link->outstanding_count < LIMIT_LINK_COMMANDS - 1);
    struct outstanding *slot =
        &link->outstanding[(link->first + link->outstanding_count) % LIMIT_LINK_COMMANDS];
    /* Copied field by field. A copy of the whole struct would be read in larger pieces while its
     * fields are still on their way to memory, and the processor would have to wait for them. */
    slot->kind = outstanding->kind;
    slot->command = outstanding->command; /* or another member of the union */
    slot->form = outstanding->form;
    slot->unfenced = outstanding->unfenced;
    slot->epoch = outstanding->epoch;
    slot->tracking = outstanding->tracking; /* or the other union member, number */
    slot->more = 0;
    slot->sent_ns = outstanding->sent_ns;
    slot->position = outstanding->position; /* the longer member of the union */
    link->outstanding_count++;
    link->load += load_of(outstanding);
}

static void drop_first_outstanding(struct link *link)
{
    link->first = (link->first + 1) % LIMIT_LINK_COMMANDS;
    link->outstanding_count--;
}

/* The first `count` votes of a batch were answered: remove them from its start. */
static void shorten_batch(struct outstanding *batch, unsigned count)
{
    assert(count <= batch->more);
    batch->number += count;
    batch->more -= count;
    for (; count > 0; count--)
        /* Step to the next owner. The pointer to it is the first field of each owner, whatever its
         * type. */
        memcpy(&batch->owner, batch->owner, sizeof(batch->owner));
}

static const struct outstanding *pop_outstanding(struct link *link)
{
    assert(link->outstanding_count > 0);
    struct outstanding *outstanding = &link->outstanding[link->first];
    link->load -= load_of(outstanding);
    if (outstanding->more == 0) {
        drop_first_outstanding(link);
        return outstanding;
    }
    link->single = *outstanding;
    link->single.more = 0;
    shorten_batch(outstanding, 1);
    return &link->single;
}

size_t link_format(const char *const *words, char buf[LINK_COMMAND_MAX])
{
    size_t lens[LINK_WORDS_MAX];
    size_t count = 0;
    for (; words[count] != NULL; count++) {
        assert(count < LINK_WORDS_MAX);
        lens[count] = strlen(words[count]);
    }
    return redis_format_words(words, lens, count, buf, LINK_COMMAND_MAX);
}

void link_send_words(struct link *link, const struct outstanding *outstanding,
                     const char *const *words)
{
    char buf[LINK_COMMAND_MAX];
    assert(link_is_connected(link->state) || outstanding->kind == OUTSTANDING_GREETING);
    size_t len = link_format(words, buf);
    push_outstanding(link, outstanding);
    link->io->write(link->io->context, nodes_only(link->node), CHANNEL_COMMANDS, buf, len);
}

/* --- pending releases --- */

static void send_pending_releases(struct link *link, int64_t now_ns)
{
    const struct pending_release *entry;
    uint64_t position;
    while (link->state == LINK_UP && !link->release_refused &&
           link->releases_under_way < LIMIT_LINK_RELEASES_UNDER_WAY &&
           link->load < LIMIT_LINK_RELEASES &&
           (entry = pending_releases_next(&link->pending_releases, &position)) != NULL) {
        char buf[REDIS_COMMAND_MAX];
        struct redis_call call = {
            .command = REDIS_RELEASE,
            .key = entry->key,
            .key_len = entry->key_len,
            .token = entry->token,
            .ttl_ms = link->rules.max_ttl_ms,
        };
        /* Send the whole script. Pending releases are rare, and this way the master never answers
         * NOSCRIPT. */
        size_t len = redis_format(&call, REDIS_IN_FULL, buf);
        push_outstanding(link, &(struct outstanding){.kind = OUTSTANDING_PENDING_RELEASE,
                                                     .sent_ns = now_ns,
                                                     .position = position});
        link->releases_under_way++;
        link->io->write(link->io->context, nodes_only(link->node), CHANNEL_COMMANDS, buf, len);
    }
}

void link_defer_release(struct link *link, const char *key, size_t key_len, const char *token,
                        int64_t now_ns)
{
    pending_releases_push(&link->pending_releases, key, key_len, token);
    send_pending_releases(link, now_ns);
}

static void on_pending_release_reply(struct link *link, const struct outstanding *outstanding,
                                     const struct redis_reply *reply, int64_t now_ns)
{
    link->releases_under_way--;
    if (redis_answer(REDIS_RELEASE, reply).kind == ANSWER_FAILED) {
        /*
         * The master may refuse a release of this key alone, and for ever. So move the entry to the
         * end, where it does not delay other releases. The key was set before its release was
         * written. After twice max_ttl the key has expired, whatever the clock of the master does.
         */
        pending_releases_retry_later(&link->pending_releases, outstanding->position,
                                     2 * link->rules.max_ttl_ms * NS_PER_MS, now_ns);
        link->release_refused = true;
    } else {
        pending_releases_confirm(&link->pending_releases, outstanding->position);
    }
}

/* --- opening, greeting, closing --- */

static void greet(struct link *link, unsigned step, const char *const *words, int64_t now_ns)
{
    struct outstanding outstanding = {
        .kind = OUTSTANDING_GREETING, .step = (uint8_t)step, .sent_ns = now_ns};
    link_send_words(link, &outstanding, words);
    link->greetings_due++;
}

static void greet_first(struct link *link, int64_t now_ns)
{
    const struct link_login *login = link->login;
    char database[16];
    if (login->password != NULL)
        greet(link, GREET_AUTH,
              (const char *[]){"AUTH", login->username != NULL ? login->username : login->password,
                               login->username != NULL ? login->password : NULL, NULL},
              now_ns);
    if (login->database != 0) {
        snprintf(database, sizeof(database), "%u", login->database);
        greet(link, GREET_SELECT, (const char *[]){"SELECT", database, NULL}, now_ns);
    }
    greet(link, GREET_SETNAME, (const char *[]){"CLIENT", "SETNAME", "redlockd", NULL}, now_ns);
    greet(link, GREET_ID, (const char *[]){"CLIENT", "ID", NULL}, now_ns);
    greet(link, GREET_INFO, (const char *[]){"INFO", "server", NULL}, now_ns);
}

static void greet_second(struct link *link, int64_t now_ns)
{
    /*
     * In the same run of the server, the old connection may still exist and contain unread
     * commands. After a restart, another client could have its id. If there is no old connection,
     * the daemon kills an id that no client has, to learn at once whether it may use CLIENT KILL.
     */
    bool lived =
        link->last_client_id != 0 && memcmp(link->run_id, link->last_run_id, LINK_RUN_ID) == 0;
    int64_t old = lived ? link->last_client_id : INT64_MAX;
    char id[24];
    snprintf(id, sizeof(id), "%" PRId64, old);
    greet(link, GREET_KILL, (const char *[]){"CLIENT", "KILL", "ID", id, NULL}, now_ns);
    for (unsigned i = 0; i < REDIS_SCRIPT_COUNT; i++)
        greet(link, GREET_SCRIPT + i,
              (const char *[]){"SCRIPT", "LOAD", redis_script_text(i), NULL}, now_ns);
}

static void open_link(struct link *link, int64_t now_ns)
{
    assert(link->state == LINK_DOWN);
    assert(link->outstanding_count == 0);
    /* Keep the reason of the last failure, which is more useful than "connecting". */
    set_state(link, LINK_OPENING, link->reason, now_ns);
    link->opened_ns = now_ns;
    link->io->open(link->io->context, link->node, CHANNEL_COMMANDS);
}

void link_on_connected(struct link *link, int64_t now_ns)
{
    assert(link->state == LINK_OPENING);
    set_state(link, LINK_GREETING, link->reason, now_ns);
    link->opened_ns = now_ns;
    link->client_id = 0;
    link->greetings_due = 0;
    greet_first(link, now_ns);
}

void link_on_closed(struct link *link, enum reason reason, int64_t now_ns)
{
    assert(link->state != LINK_DOWN);
    if (link_is_connected(link->state)) {
        link->last_client_id = link->client_id;
        memcpy(link->last_run_id, link->run_id, LINK_RUN_ID);
    }
    set_state(link, LINK_DOWN, reason, now_ns);
    link->retry_ns = now_ns + link_retry_ns(link->attempts, link_random(link->io));
    link->attempts++;
    link->heartbeat_due = false;
    link->round_trip_ns = link->distance_ns = link->latency_ns = -1;
    link->releases_under_way = 0;
    link->release_refused = false;
    pending_releases_rewind(&link->pending_releases);
}

static void give_up_link(struct link *link, enum reason reason, int64_t now_ns)
{
    link->io->close(link->io->context, link->node, CHANNEL_COMMANDS);
    link_on_closed(link, reason, now_ns);
}

const struct outstanding *link_take_lost(struct link *link)
{
    assert(link->state == LINK_DOWN);
    while (link->outstanding_count > 0) {
        const struct outstanding *outstanding = pop_outstanding(link);
        if (outstanding->kind == OUTSTANDING_ROUND || outstanding->kind == OUTSTANDING_RELEASES ||
            outstanding->kind == OUTSTANDING_KEY_PROBE || outstanding->kind == OUTSTANDING_FAR)
            return outstanding;
    }
    return NULL;
}

bool link_begin_heartbeat(struct link *link, int64_t now_ns)
{
    if (link->heartbeat_due || !link_is_connected(link->state))
        return false;
    link->heartbeat_due = true;
    link->heartbeat_ns = now_ns;
    return true;
}

static void on_greeted(struct link *link, int64_t now_ns)
{
    set_state(link, LINK_UP, REASON_NONE, now_ns);
    link->heartbeat_ns = now_ns;
    send_pending_releases(link, now_ns);
}

/* Does the text of the error say more than its reason? It does if the error is unknown. It also
 * does for an ACL error, except within a script, where Redis does not name the refused command. */
static bool is_informative(const struct redis_reply *error, enum reason reason)
{
    static const char refusal[] = "NOPERM ";
    size_t len = sizeof(refusal) - 1;
    return reason == REASON_ERROR ||
           (reason == REASON_NOPERM && error->len > len && memcmp(error->str, refusal, len) == 0);
}

enum reason link_reason_of(struct link *link, const struct redis_reply *error)
{
    enum reason reason = reason_of_redis_error(error->str, error->len);
    size_t len = error->len < LINK_ERROR_TEXT_MAX ? error->len : LINK_ERROR_TEXT_MAX;
    if (is_informative(error, reason)) {
        link->error_reason = reason;
        memcpy(link->error_text, error->str, len);
        link->error_text[len] = '\0';
    } else if (reason == link->error_reason) {
        link->error_reason = REASON_NONE;
        link->error_text[0] = '\0';
    }
    return reason;
}

const char *link_meaning(const struct link *link, enum reason reason)
{
    return reason == link->error_reason && link->error_text[0] != '\0' ? link->error_text
                                                                       : reason_text(reason);
}

static bool is_standalone(const struct redis_reply *reply)
{
    size_t len;
    /* In Valkey this field is called server_mode. */
    const char *field = redis_info(reply, "redis_mode", &len) ? "redis_mode" : "server_mode";
    return redis_info(reply, field, &len) == NULL || redis_info_is(reply, field, "standalone");
}

/* Check the answer to a step of the greeting; REASON_NONE if the greeting may continue. */
static enum reason check_greeting(struct link *link, unsigned step, const struct redis_reply *reply)
{
    bool error = reply->kind == RESP_ERROR;
    size_t run_id_len = 0;
    const char *run_id;
    enum reason reason;
    /* Redis sends this error as the first reply of a connection, whatever the first command was. */
    if (error && reason_of_redis_error(reply->str, reply->len) == REASON_MAXCLIENTS)
        return REASON_MAXCLIENTS;
    switch (step) {
    case GREET_SETNAME:
        /* The name of the connection is optional. */
        return REASON_NONE;
    case GREET_ID:
        if (reply->kind == RESP_INTEGER)
            link->client_id = reply->integer;
        break;
    case GREET_INFO:
        if (error)
            break;
        if (!is_standalone(reply))
            return REASON_CLUSTER;
        run_id = redis_info(reply, "run_id", &run_id_len);
        if (run_id == NULL || run_id_len != LINK_RUN_ID)
            return REASON_GARBAGE;
        memcpy(link->run_id, run_id, LINK_RUN_ID);
        /* Nine digits of seconds are thirty years. */
        link->uptime_s = redis_info_number(reply, "uptime_in_seconds", 9);
        link->release_form = redis_release_form(reply->str, reply->len);
        return REASON_NONE;
    case GREET_AUTH:
    case GREET_SELECT:
    case GREET_KILL: /* of an unknown id: 0, which is no error */
        break;
    default:
        assert(step >= GREET_SCRIPT);
        assert(step < GREET_SCRIPT + REDIS_SCRIPT_COUNT);
        if (!error && (reply->kind != RESP_STRING || reply->len != REDIS_SHA1 ||
                       memcmp(reply->str, redis_script_sha1(step - GREET_SCRIPT), REDIS_SHA1) != 0))
            return REASON_GARBAGE;
        break;
    }
    if (!error)
        return REASON_NONE;
    reason = link_reason_of(link, reply);
    /* If AUTH is renamed on the server, the text of its error contains the password. */
    if (step == GREET_AUTH)
        explicit_bzero(link->error_text, sizeof(link->error_text));
    return reason;
}

static void on_link_greeting(struct link *link, unsigned step, const struct redis_reply *reply,
                             int64_t now_ns)
{
    enum reason reason = check_greeting(link, step, reply);
    if (reason != REASON_NONE) {
        give_up_link(link, reason, now_ns);
        return;
    }
    link->greetings_due--;
    if (link->greetings_due > 0)
        return;
    if (step == GREET_INFO)
        greet_second(link, now_ns);
    else
        on_greeted(link, now_ns);
}

/* --- commands and their answers --- */

enum reason link_refuses_vote(const struct link *link)
{
    if (link->state != LINK_UP)
        return link->reason;
    return link->load < LIMIT_LINK_VOTES ? REASON_NONE : REASON_BACKLOG;
}

enum reason link_refuses_release(const struct link *link)
{
    if (!link_is_connected(link->state))
        return link->reason;
    return link->load < LIMIT_LINK_RELEASES ? REASON_NONE : REASON_BACKLOG;
}

void link_expect(struct link *link, const struct outstanding *outstanding)
{
    assert(link_is_connected(link->state));
    push_outstanding(link, outstanding);
}

bool link_expect_vote(struct link *link, const struct outstanding *outstanding)
{
    assert(link->state == LINK_UP);
    assert(outstanding->unfenced);
    struct outstanding *last =
        &link->outstanding[(link->first + link->outstanding_count - 1) % LIMIT_LINK_COMMANDS];
    if (link->outstanding_count > 0 && last->unfenced &&
        last->number + last->more + 1 == outstanding->number && last->epoch == outstanding->epoch) {
        last->more++;
        link->load++;
        return true;
    }
    push_outstanding(link, outstanding);
    return false;
}

void link_send(struct link *link, const char *bytes, size_t len,
               const struct outstanding *outstanding)
{
    link_expect(link, outstanding);
    link->io->write(link->io->context, nodes_only(link->node), CHANNEL_COMMANDS, bytes, len);
}

/* A longer round trip may be caused by load or jitter, which pass; so it counts only by an eighth.
 * A shorter one shows that the master is nearer. */
static void update_distance(struct link *link)
{
    int64_t longer_ns = link->round_trip_ns - link->distance_ns;
    if (link->distance_ns < 0 || longer_ns < 0)
        link->distance_ns = link->round_trip_ns;
    else
        link->distance_ns += longer_ns / 8;
}

const struct outstanding *link_on_reply(struct link *link, const struct redis_reply *reply,
                                        int64_t now_ns)
{
    assert(link->state != LINK_DOWN);
    if (link->outstanding_count == 0) {
        give_up_link(link, REASON_GARBAGE, now_ns);
        return NULL;
    }
    const struct outstanding *outstanding = pop_outstanding(link);
    switch (outstanding->kind) {
    case OUTSTANDING_GREETING:
        on_link_greeting(link, outstanding->step, reply, now_ns);
        return NULL;
    case OUTSTANDING_HEARTBEAT:
        link->heartbeat_due = false;
        link->round_trip_ns = now_ns - outstanding->sent_ns;
        update_distance(link);
        histogram_add(&link->round_trips, link->round_trip_ns);
        break;
    case OUTSTANDING_PENDING_RELEASE:
        on_pending_release_reply(link, outstanding, reply, now_ns);
        break;
    case OUTSTANDING_ROUND:
    case OUTSTANDING_RELEASES:
        link->latency_ns = now_ns - outstanding->sent_ns;
        histogram_add(&link->round_trips, link->latency_ns);
        break;
    case OUTSTANDING_GUARD:
    case OUTSTANDING_KEY_PROBE:
    case OUTSTANDING_FAR:
    case OUTSTANDING_TRACKING:
    case OUTSTANDING_SELF_TEST:
        break;
    }
    /* The master has answered in time again. */
    if (link->state == LINK_SUSPECT && now_ns - outstanding->sent_ns <= link->rules.node_timeout_ns)
        set_state(link, LINK_UP, REASON_NONE, now_ns);
    /* Send releases that could not be sent while the link was full or suspect. */
    if (link->pending_releases.unsent > 0)
        send_pending_releases(link, now_ns);
    return outstanding->kind != OUTSTANDING_PENDING_RELEASE ? outstanding : NULL;
}

const struct outstanding *link_expects_votes(const struct link *link)
{
    if (link->state != LINK_UP || link->pending_releases.unsent > 0 || link->outstanding_count == 0)
        return NULL;
    const struct outstanding *outstanding = &link->outstanding[link->first];
    return outstanding->unfenced ? outstanding : NULL;
}

void link_take_votes(struct link *link, unsigned count, int64_t now_ns)
{
    struct outstanding *batch = &link->outstanding[link->first];
    assert(batch->unfenced);
    assert(count > 0);
    assert(count <= batch->more + 1);
    link->latency_ns = now_ns - batch->sent_ns;
    histogram_add_many(&link->round_trips, link->latency_ns, count);
    link->load -= count;
    if (count > batch->more)
        drop_first_outstanding(link);
    else
        shorten_batch(batch, count);
}

int64_t link_latency_ns(const struct link *link, int64_t now_ns)
{
    if (link->latency_ns < 0)
        return INT64_MAX;
    int64_t age_ns =
        link->outstanding_count > 0 ? now_ns - link->outstanding[link->first].sent_ns : 0;
    return max(age_ns, link->latency_ns);
}

unsigned link_unanswered(const struct link *link)
{
    unsigned count = link->outstanding_count;
    for (unsigned i = 0; i < link->outstanding_count; i++)
        count += link->outstanding[(link->first + i) % LIMIT_LINK_COMMANDS].more;
    return count;
}

/* --- time --- */

int64_t link_deadline_ns(const struct link *link)
{
    int64_t heartbeat_ns = link->heartbeat_ns + link->rules.heartbeat_every_ns;
    int64_t late_ns = link->outstanding_count > 0
                          ? link->outstanding[link->first].sent_ns + link->rules.node_timeout_ns + 1
                          : INT64_MAX;
    switch (link->state) {
    case LINK_DOWN:
        return link->retry_ns;
    case LINK_OPENING:
    case LINK_GREETING:
        return link->opened_ns + link_silence_timeout_ns(link);
    case LINK_UP:
        return link->heartbeat_due ? late_ns : min(late_ns, heartbeat_ns);
    case LINK_SUSPECT:
        break;
    }
    assert(link->heartbeat_due);
    return link->heartbeat_ns + link_silence_timeout_ns(link);
}

bool link_on_timer(struct link *link, int64_t heard_ns, int64_t now_ns)
{
    if (heard_ns < link_deadline_ns(link))
        return false;
    switch (link->state) {
    case LINK_DOWN:
        open_link(link, now_ns);
        break;
    case LINK_OPENING:
        give_up_link(link, REASON_UNREACHABLE, now_ns);
        break;
    case LINK_GREETING:
    case LINK_SUSPECT:
        give_up_link(link, REASON_HUNG, now_ns);
        break;
    case LINK_UP:
        if (link->outstanding_count > 0 &&
            heard_ns > link->outstanding[link->first].sent_ns + link->rules.node_timeout_ns)
            set_state(link, LINK_SUSPECT, REASON_SUSPECT, now_ns);
        else {
            /* The connection has lasted for a heartbeat interval. If it is lost later, the first
             * attempts to reconnect follow quickly. */
            link->attempts = 0;
            /* Try releases again that the master has refused. */
            link->release_refused = false;
            send_pending_releases(link, now_ns);
        }
        return true;
    }
    return false;
}
