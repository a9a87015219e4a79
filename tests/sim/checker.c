#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "engine/guard/record.h"
#include "protocol/token.h"
#include "protocol/units.h"
#include "tests/sim/sim.h"

/* How long after the end of its WAIT a request is allowed to get its reply. A request without WAIT
 * counts as if its WAIT ended on arrival. A round in flight and late timers can delay the reply. */
#define WAIT_SLACK_NS ((4 * SIM_NODE_TIMEOUT_MS + 20) * NS_PER_MS)

/* A release can still be under way for a token that a master set less than this ago. */
#define LEFTOVER_NS (500 * NS_PER_MS)

void checker_violation(struct sim *sim, const char *form, ...)
{
    va_list arguments;
    if (sim->violation != NULL)
        return;
    va_start(arguments, form);
    vsnprintf(sim->violation_text, sizeof(sim->violation_text), form, arguments);
    va_end(arguments);
    sim->violation = sim->violation_text;
    sim_note(sim, "VIOLATION: %s\n", sim->violation);
}

/* --- tokens --- */

/* How many rounds the few waiters of a schedule need at most within ROUNDS_NS. A daemon that starts
 * more than ROUNDS_MAX for each key, on average, or more than ROUNDS_IN_VAIN_MAX without a grant
 * for one key, does not pause between rounds. After a reload, the first pauses of a queue can be 1
 * to 8 ms long, and after each grant they begin anew. */
enum { ROUNDS_MAX = 15, ROUNDS_IN_VAIN_MAX = 12 };
#define ROUNDS_NS (100 * NS_PER_MS)

static void check_round_rate(struct sim *sim, unsigned daemon)
{
    unsigned rounds = 0;
    for (unsigned i = sim->token_count; i > 0; i--) {
        if (sim->now_ns - sim->tokens[i - 1].made_ns > ROUNDS_NS)
            break;
        rounds += sim->tokens[i - 1].daemon == daemon;
    }
    unsigned keys = SIM_FEW_RESOURCES;
    if (sim->resource_count > keys)
        keys = sim->resource_count;
    if (rounds > ROUNDS_MAX * keys)
        checker_violation(sim, "daemon %u starts rounds without a pause", daemon);
}

/* Called when the first master has set this token. */
static void check_rounds_in_vain(struct sim *sim, const struct sim_token *token)
{
    unsigned in_vain = 0;
    for (unsigned i = sim->token_count; i > 0; i--) {
        const struct sim_token *other = &sim->tokens[i - 1];
        if (sim->now_ns - other->made_ns > ROUNDS_NS)
            break;
        in_vain +=
            other->daemon == token->daemon && other->resource == token->resource && !other->granted;
    }
    if (in_vain > ROUNDS_IN_VAIN_MAX)
        checker_violation(sim, "daemon %u starts rounds for r%u without a pause", token->daemon,
                          token->resource);
}

unsigned checker_new_token(struct sim *sim, unsigned daemon)
{
    assert(sim->token_count < SIM_TOKENS);
    sim->tokens[sim->token_count] = (struct sim_token){.resource = SIM_RESOURCES,
                                                       .daemon = daemon,
                                                       .life = sim->daemons[daemon].life,
                                                       .made_ns = sim->now_ns,
                                                       .released_by = SIM_DAEMONS};
    sim->token_count++;
    if (sim->turns == NULL)
        check_round_rate(sim, daemon);
    return sim->token_count - 1;
}

struct sim_token *checker_token(struct sim *sim, const char *token)
{
    char digits[9];
    bool frozen = token[0] == '!'; /* a key of the fake has no final NUL */
    snprintf(digits, sizeof(digits), "%.8s", token + (frozen ? TOKEN_KEPT : 0));
    unsigned long number = strtoul(digits, NULL, 16);
    if (frozen)
        number ^= (unsigned long)CHECKER_FROZEN << 24;
    return number < sim->token_count ? &sim->tokens[number] : NULL;
}

/* --- masters --- */

/* A master is unfit to vote if within max_ttl it lost data, or a round began that another server
 * under its name has voted for. The check accepts 2 % less than max_ttl, since clocks run at
 * different rates. */
static bool is_fit(const struct sim *sim, unsigned index, unsigned server)
{
    const struct sim_master *master = &sim->masters[index];
    int64_t max_ttl_ns = sim->max_ttl_ms * NS_PER_MS;
    int64_t lost_ns = max(master->data_loss_ns, master->asked_ns[!server]);
    return sim->now_ns - lost_ns >= max_ttl_ns - max_ttl_ns / 50;
}

void checker_on_data_loss(struct sim *sim, unsigned master)
{
    sim->masters[master].data_loss_ns = sim->masters[master].ends_early_ns = sim->now_ns;
    if (sim->foreign_doubt_ns < sim->now_ns + 2 * sim->max_ttl_ms * NS_PER_MS)
        sim->foreign_doubt_ns = sim->now_ns + 2 * sim->max_ttl_ms * NS_PER_MS;
}

void checker_on_old_data(struct sim *sim, const struct fake_data *data)
{
    for (unsigned i = 0; i < data->count; i++) {
        const struct fake_key *key = &data->keys[i];
        struct sim_token *token =
            key->value_len == LIMIT_TOKEN ? checker_token(sim, key->value) : NULL;
        if (token != NULL)
            token->may_stay = true;
    }
}

void checker_on_set(struct sim *sim, unsigned master, unsigned server, const char *key,
                    size_t key_len, const char *value, size_t len, int64_t ends_ms)
{
    if (key_len == strlen(RECORD_KEY) && memcmp(key, RECORD_KEY, key_len) == 0) {
        sim_note(sim, "    %c: %.*s\n", 'a' + master, (int)len, value);
        sim->masters[master].rewound = false;
    }
    unsigned resource = sim_resource(sim, key, key_len);
    if (len != LIMIT_TOKEN || resource == SIM_RESOURCES)
        return;
    sim_note(sim, "    %c: r%u = %.8s for %" PRId64 " ms\n", 'a' + master, resource, value,
             ends_ms - master_wall_us(sim, master) / 1000);
    sleepers_on_set(sim, master, resource);
    checker_touch(sim, resource);
    struct sim_token *token = checker_token(sim, value);
    if (token == NULL || value[0] == '!')
        return;
    if (token->resource == SIM_RESOURCES) {
        token->resource = resource;
        if (sim->turns == NULL)
            check_rounds_in_vain(sim, token);
    }
    token->was_fit[master] = is_fit(sim, master, server);
    /* A token that is granted already may be backfilled on a server that has no vote. */
    if (!token->granted)
        sim->masters[master].asked_ns[server] =
            max(sim->masters[master].asked_ns[server], token->made_ns);
    if (token->set_ns[master] == 0)
        token->first_ns[master] = sim->now_ns;
    else if (sim->masters[master].ends_early_ns >= token->set_ns[master])
        token->lost_end_ns[master] = token->ends_ns[master];
    token->set_ns[master] = sim->now_ns;
    /* The key exists until the clock shows a later millisecond. */
    token->ends_ns[master] = clock_when(&sim->masters[master].clock, (ends_ms + 1) * NS_PER_MS);
}

/* --- grants --- */

int64_t checker_deadline_ns(const struct sim *sim, const struct sim_request *request, int64_t ms)
{
    const struct sim_clock *clock = &sim->clients[request->client].clock;
    return clock_when(clock, clock_at(clock, request->sent_ns) + ms * NS_PER_MS);
}

static void check_history(struct sim *sim, enum history_result result, const char *token)
{
    if (result == HISTORY_FINE)
        return;
    checker_violation(sim, "%s: %.8s; %.8s until %.3f", history_words(result), token,
                      result == HISTORY_TWO_HOLDERS ? sim->history.other.token : "",
                      (double)sim->history.other.until_ns / 1e9);
}

/* The true time until which the server keeps the token, if the master's clock takes no further
 * step. The frozen form of the token counts, since it excludes other holders as well. 0: it has
 * lost the key. */
static int64_t kept_by_ns(struct sim *sim, unsigned index, struct fake_master *server,
                          const struct sim_token *token, const char *text)
{
    const struct sim_name name = sim_name(sim, token->resource);
    const struct fake_key *key = fake_find(server, name.text, name.len, master_wall_us(sim, index));
    bool same = key != NULL &&
                (strcmp(key->value, text) == 0 || (token_is_frozen(key->value, key->value_len) &&
                                                   token_same_lock(key->value, text)));
    return same ? clock_when(&sim->masters[index].clock, (key->ends_ms + 1) * NS_PER_MS) : 0;
}

/* The same for both servers of the master. If both have lost the key, the result is the end that
 * was recorded at the last SET. */
static int64_t kept_until_ns(struct sim *sim, unsigned index, const struct sim_token *token,
                             const char *text)
{
    struct sim_master *master = &sim->masters[index];
    int64_t until_ns = max(kept_by_ns(sim, index, &master->redis, token, text),
                           kept_by_ns(sim, index, &master->other, token, text));
    return until_ns != 0 ? until_ns : token->ends_ns[index];
}

/* Has the master lost the token that it had set for this request, in a way that the guard sees? It
 * may have set an extended token again since, for a shorter time: the daemon extends a HOLD for its
 * TTL, and a client may have asked for more. */
static bool has_lost(const struct sim *sim, unsigned index, const struct sim_token *token,
                     const struct sim_request *request, int64_t until_ns)
{
    int64_t lost_ns = sim->masters[index].ends_early_ns;
    return lost_ns >= token->set_ns[index] ||
           (request->verb == VERB_EXTEND && lost_ns >= request->sent_ns &&
            token->lost_end_ns[index] >= until_ns);
}

/* Check that a quorum of masters keeps the token until the holder's deadline, or loses it in a way
 * that the guard sees. For an acquire, these masters must also have been fit to vote when they set
 * the token. */
static void check_quorum(struct sim *sim, const struct sim_request *request, const char *text,
                         int64_t until_ns)
{
    const struct sim_token *token = checker_token(sim, text);
    bool acquired = request->verb == VERB_LOCK;
    unsigned good = 0;
    for (unsigned i = 0; i < sim->node_count; i++) {
        bool lost_data = has_lost(sim, i, token, request, until_ns);
        good += token->set_ns[i] != 0 && (token->was_fit[i] || !acquired) &&
                (lost_data || kept_until_ns(sim, i, token, text) >= until_ns);
    }
    if (good < sim->node_count / 2 + 1)
        checker_violation(sim, "granted by only %u of %u masters that could vote and keep it: %.8s",
                          good, sim->node_count, text);
}

/*
 * How often a LOCK may be overtaken by later LOCKs with SLOTS. If it wants one slot by its name, it
 * takes turns with them: once. If it wants any slot, then while a round runs for it, later ones may
 * be granted other slots; and if the round is refused, again during the next round. OVERTAKEN_MAX:
 * more slots than the schedules have clients are not granted during one round.
 */
enum { OVERTAKEN_MAX = 8 };

static unsigned overtaken_most(const struct sim *sim, const struct sim_request *request)
{
    unsigned rounds = 1;
    if (request->slots == 0)
        return 1;
    for (unsigned i = sim->token_count; i > 0; i--) {
        const struct sim_token *token = &sim->tokens[i - 1];
        if (token->made_ns < request->sent_ns)
            break;
        rounds += token->daemon == request->daemon && !token->granted;
    }
    return rounds * OVERTAKEN_MAX;
}

static void note_overtaken(struct sim *sim, struct sim_request *request)
{
    if (++request->overtaken > overtaken_most(sim, request))
        checker_violation(sim, "client %u waits for a slot while %u that came later got one",
                          request->client, request->overtaken);
}

/* Check that no earlier waiter of this daemon still waits for the lock. */
static void check_order(struct sim *sim, const struct sim_request *granted)
{
    int64_t now_ns = daemon_clock_ns(sim, granted->daemon);
    for (unsigned i = 0; i < SIM_REQUESTS; i++) {
        struct sim_request *other = &sim->requests[i];
        bool same_slot = granted->slots > 0 && other->resource == granted->resource;
        if (other->state != REQUEST_ARRIVED || other->verb != VERB_LOCK || other->wait_ms == 0 ||
            other->daemon != granted->daemon || (!checker_is_rival(other, granted) && !same_slot) ||
            other->order > granted->order || other == granted ||
            now_ns >= other->arrived_ns + other->wait_ms * NS_PER_MS ||
            sim->connections[other->connection].engine_client.disconnected)
            continue;
        if (granted->slots > 0)
            note_overtaken(sim, other);
        else
            checker_violation(sim, "client %u was granted before client %u, which came earlier",
                              granted->client, other->client);
    }
}

static void on_grant(struct sim *sim, const struct sim_request *request, const char *token,
                     int64_t fence, int64_t until_ns, bool heard)
{
    struct sim_token *granted = checker_token(sim, token);
    sim->tally->counts[COUNT_GRANTS]++;
    sim->tally->counts[COUNT_HOLDS] += request->hold;
    sim->tally->counts[COUNT_SLOTS] += request->slots > 0;
    granted->granted = true;
    granted->held_by = request->hold ? request->number : 0;
    granted->granted_ns = sim->now_ns;
    check_order(sim, request);
    if (granted->broken_ns != 0) {
        /* A daemon that breaks a lock cannot know of another daemon's round that is about to grant
         * this lock. But the daemon must know of its own round. */
        if (granted->broken_by == granted->daemon && granted->broken_life == granted->life)
            checker_violation(sim, "granted after its own daemon has broken it: %.8s", token);
        return;
    }
    check_quorum(sim, request, token, until_ns);
    check_history(sim,
                  history_granted(&sim->history, request->resource, token, fence, sim->now_ns,
                                  heard ? until_ns : sim->now_ns),
                  token);
}

/* Does the reply to a request sent at asked_ns promise that the lock is held? If the request was
 * sent before a BREAK, it may have been decided before the BREAK, so its reply promises nothing. */
static bool is_promise(const struct sim_token *token, int64_t asked_ns)
{
    return !token->release_requested && (token->broken_ns == 0 || asked_ns >= token->broken_ns);
}

/* Has the daemon begun to release the lock because the connection of its HOLD has ended? Then no
 * EXTEND must succeed: the daemon deletes the key as soon as the masters let it. If another daemon
 * has extended the lock as well, the masters may keep it. A tight limit of extended tokens makes
 * the daemon forget. */
static bool is_being_released(const struct sim *sim, const struct sim_token *token,
                              const struct sim_request *request)
{
    return token->hold_ended && token->released_by == request->daemon &&
           token->released_life == sim->daemons[request->daemon].life && !token->may_stay &&
           !bounds_are_in_force();
}

static void on_extended(struct sim *sim, const struct sim_request *request, int64_t until_ns,
                        bool heard)
{
    const struct sim_token *token = checker_token(sim, request->token);
    sim->tally->counts[COUNT_EXTENSIONS]++;
    check_quorum(sim, request, request->token, until_ns);
    if (is_being_released(sim, token, request))
        checker_violation(sim, "extended after its HOLD has ended: %.8s", request->token);
    if (heard && is_promise(token, request->sent_ns))
        check_history(sim,
                      history_prolonged(&sim->history, request->resource, request->token,
                                        sim->now_ns, until_ns),
                      request->token);
}

void checker_on_extend(struct sim *sim, const struct sim_request *request)
{
    struct sim_token *token = checker_token(sim, request->token);
    /* An extension sets the token on masters that lack it. A daemon that extends a token which it
     * did not make does not know of an UNLOCK through the daemon that made the token. So it may set
     * the token again after that release. */
    token->may_stay = token->may_stay || request->daemon != token->daemon;
    unsigned life = sim->daemons[request->daemon].life;
    if (token->extends_life[request->daemon] != life)
        token->extends[request->daemon] = 0;
    token->extends_life[request->daemon] = life;
    token->extends[request->daemon]++;
}

/* The daemon has said that the token is gone, and has asked the masters since asked_ns: no quorum
 * of them must have the token. A SET may have come late, after the master had denied the token. */
static void check_gone(struct sim *sim, unsigned resource, const char *text, int64_t asked_ns)
{
    const struct sim_name name = sim_name(sim, resource);
    const struct sim_token *token = checker_token(sim, text);
    unsigned have = 0;
    for (unsigned i = 0; i < sim->node_count; i++) {
        const struct fake_key *key =
            fake_find(&sim->masters[i].redis, name.text, name.len, master_wall_us(sim, i));
        have += i != sim->repointed && key != NULL && strcmp(key->value, text) == 0 &&
                token->first_ns[i] < asked_ns && sim->masters[i].data_loss_ns < token->made_ns;
    }
    if (have > sim->node_count / 2)
        checker_violation(sim, "%.8s is said to be gone, but is on %u of %u masters", text, have,
                          sim->node_count);
}

/* STATUS or BREAK was answered FREE: no lock must have been held all the time. */
static void check_free(struct sim *sim, const struct sim_request *request)
{
    for (unsigned i = 0; i < sim->history.hold_count; i++) {
        const struct history_hold *hold = &sim->history.holds[i];
        const struct sim_token *token = checker_token(sim, hold->token);
        if (hold->resource == request->resource && hold->until_ns > sim->now_ns && token != NULL &&
            token->granted && token->granted_ns < request->sent_ns)
            checker_violation(sim, "client %u got FREE for r%u, which %.8s holds", request->client,
                              request->resource, hold->token);
    }
}

static void on_pong(struct sim *sim, const struct sim_request *request, bool heard)
{
    const struct sim_token *token = checker_token(sim, request->token);
    /* A PONG confirms the daemon's last extension, which is not older than the longest TTL. */
    int64_t asked_ns = request->sent_ns - sim->max_ttl_ms * 11 / 10 * NS_PER_MS;
    /* The daemon has not restarted since the grant: its end would have ended this connection. */
    if (heard && !token->lost && !token->given_up && is_promise(token, asked_ns))
        check_history(sim,
                      history_prolonged(&sim->history, request->resource, request->token,
                                        sim->now_ns,
                                        checker_deadline_ns(sim, request, request->ttl_ms / 3)),
                      request->token);
}

/* --- releases --- */

/* Must the masters have deleted the token by now? Only if the daemon responsible for its release
 * has not ended since it made the token. A granted token may stay until a client requests its
 * release. The client may send that UNLOCK to a daemon that did not make the token. Then a late SET
 * of the daemon that made it may arrive after the release, so the token may stay. */
static bool must_be_deleted(const struct sim *sim, const struct sim_token *token)
{
    if (token->may_stay)
        return false;
    if (!token->granted)
        return sim->daemons[token->daemon].life == token->life;
    return token->released_by == token->daemon && token->released_life == token->life &&
           sim->daemons[token->released_by].life == token->released_life;
}

/* UNLOCK was answered OK: check that no quorum of masters still has the token. If a name is
 * repointed, the release may have gone to the other server. */
static void check_released(struct sim *sim, const struct sim_request *request)
{
    const struct sim_name name = sim_name(sim, request->resource);
    unsigned have = 0;
    for (unsigned i = 0; i < sim->node_count; i++) {
        const struct fake_key *key =
            fake_find(&sim->masters[i].redis, name.text, name.len, master_wall_us(sim, i));
        have += i != sim->repointed && key != NULL && strcmp(key->value, request->token) == 0;
    }
    if (have > sim->node_count / 2 && must_be_deleted(sim, checker_token(sim, request->token)))
        checker_violation(sim, "%.8s was released, but is still on %u of %u masters",
                          request->token, have, sim->node_count);
}

/* --- replies --- */

static void check_timeout(struct sim *sim, const struct sim_request *request)
{
    const struct sim_daemon *daemon = &sim->daemons[request->daemon];
    int64_t waited_ns = daemon_clock_ns(sim, request->daemon) - request->arrived_ns;
    bool slept = daemon->paused_at_ns >= request->sent_ns;
    /* While the daemon is busy, a STATUS with SLOTS runs its rounds one after the other. */
    int64_t most_ms = request->verb == VERB_STATUS
                          ? (int64_t)request->slots * (SIM_NODE_TIMEOUT_MS + 20)
                          : request->wait_ms;
    if (request->verb != VERB_PING && !slept && waited_ns > most_ms * NS_PER_MS + WAIT_SLACK_NS)
        checker_violation(sim, "client %u got its reply %.1f ms after the end of its WAIT",
                          request->client, (double)waited_ns / 1e6 - (double)request->wait_ms);
}

void checker_on_reply(struct sim *sim, const struct sim_request *request, const char *line,
                      bool heard)
{
    char token[LIMIT_TOKEN + 1];
    int64_t validity_ms;
    int64_t elapsed_ms;
    int64_t fence = 0;
    if (!checker_allows(request, line)) {
        checker_violation(sim, "invalid reply to %s: %s", verb_word(request->verb), line);
        return;
    }
    check_timeout(sim, request);
    if (request->verb == VERB_PING) {
        on_pong(sim, request, heard);
        return;
    }
    enum outcome outcome = checker_outcome(line);
    sim->tally->outcomes[request->verb][outcome]++;
    if (outcome == OUTCOME_HELD)
        checker_on_held(sim, request, line);
    if (outcome == OUTCOME_FREE && request->slots == 0)
        check_free(sim, request);
    if (outcome == OUTCOME_GONE &&
        (request->verb == VERB_UNLOCK || !checker_token(sim, request->token)->release_requested))
        check_gone(sim, request->resource, request->token, request->sent_ns);
    if (outcome == OUTCOME_LIMIT)
        checker_on_limit(sim, request, line + strlen("LIMIT "));
    int got = sscanf(line, "OK %40s %" SCNd64 " %" SCNd64 " %" SCNd64, token, &validity_ms,
                     &elapsed_ms, &fence);
    struct sim_token *asked = request->token[0] != '\0' ? checker_token(sim, request->token) : NULL;
    if (got >= 3) {
        int64_t until_ns = checker_deadline_ns(sim, request, validity_ms + elapsed_ms);
        if (request->verb == VERB_LOCK)
            on_grant(sim, request, token, fence, until_ns, heard);
        else
            on_extended(sim, request, until_ns, heard);
        if (request->verb == VERB_LOCK && request->fence != (got == 4))
            checker_violation(sim, "a fencing token without FENCE, or none with it: %s", line);
    } else if (request->verb == VERB_EXTEND && outcome == OUTCOME_GONE) {
        history_ended(&sim->history, request->resource, request->token);
        asked->may_stay = true;
        asked->given_up = asked->given_up || heard;
    } else if (request->verb == VERB_UNLOCK && outcome != OUTCOME_SHUTDOWN &&
               outcome != OUTCOME_LIMIT) {
        asked->released_by = request->daemon;
        asked->released_life = sim->daemons[request->daemon].life;
        if (outcome == OUTCOME_OK)
            check_released(sim, request);
    }
}

void checker_on_push(struct sim *sim, unsigned daemon, const char *line)
{
    char token[LIMIT_TOKEN + 1];
    char reason[64];
    char name[8];
    char kind[8];
    (void)daemon;
    if (sscanf(line, "! %7s %7s %40s %63s", kind, name, token, reason) != 4 ||
        sim_resource(sim, name, strlen(name)) == SIM_RESOURCES ||
        checker_token(sim, token) == NULL ||
        (strcmp(kind, "LOST") != 0 && strcmp(kind, "WARN") != 0)) {
        checker_violation(sim, "invalid push: %s", line);
        return;
    }
    if (strcmp(kind, "LOST") != 0)
        return;
    sim->tally->counts[COUNT_LOST]++;
    checker_token(sim, token)->lost = true;
    if (strcmp(reason, "gone") == 0 && !checker_token(sim, token)->release_requested)
        check_gone(sim, sim_resource(sim, name, strlen(name)), token,
                   sim->now_ns - 2 * SIM_NODE_TIMEOUT_MS * NS_PER_MS);
}

void checker_on_hold_ended(struct sim *sim, unsigned daemon, const char *text)
{
    struct sim_token *token = checker_token(sim, text);
    token->release_requested = true;
    token->released_by = daemon;
    token->released_life = sim->daemons[daemon].life;
    token->hold_ended = true;
}

/* End the hold that `text` belongs to. `text` may be the frozen form of the token, since a daemon
 * that breaks a lock frozen by another BREAK may know only that form. */
static void end_hold(struct sim *sim, unsigned resource, const char *text)
{
    for (unsigned i = 0; i < sim->history.hold_count; i++) {
        const struct history_hold *hold = &sim->history.holds[i];
        if (hold->resource == resource && token_same_lock(hold->token, text)) {
            char token[HISTORY_TOKEN + 1];
            memcpy(token, hold->token, sizeof(token));
            history_ended(&sim->history, resource, token);
            return;
        }
    }
}

/* The daemon is about to delete the token. By now a quorum must have frozen the token, so that no
 * other daemon can extend it. It is a violation if a quorum still has the unfrozen token. */
static void check_frozen(struct sim *sim, const struct sim_token *token, const char *text)
{
    const struct sim_name name = sim_name(sim, token->resource);
    unsigned have = 0;
    if (token->release_requested)
        return;
    for (unsigned i = 0; i < sim->node_count; i++) {
        const struct fake_key *key =
            fake_find(&sim->masters[i].redis, name.text, name.len, master_wall_us(sim, i));
        have += i != sim->repointed && key != NULL && strcmp(key->value, text) == 0 &&
                sim->masters[i].data_loss_ns < token->made_ns;
    }
    if (have > sim->node_count / 2)
        checker_violation(sim, "%.8s is broken, but unfrozen on %u of %u masters", text, have,
                          sim->node_count);
}

void checker_on_break(struct sim *sim, unsigned daemon, unsigned resource, const char *text)
{
    struct sim_token *token = checker_token(sim, text);
    sim_note(sim, "daemon %u breaks %.8s\n", daemon, text);
    sim->tally->counts[COUNT_BROKEN]++;
    end_hold(sim, resource, text);
    if (token == NULL) {
        sim->foreign.broken = sim->foreign.broken || token_same_lock(sim->foreign.token, text);
        return;
    }
    check_frozen(sim, token, text);
    token->broken_ns = sim->now_ns;
    token->broken_by = daemon;
    token->broken_life = sim->daemons[daemon].life;
    /* A master that the release does not reach keeps the token. */
    token->may_stay = true;
}

/* Can a daemon still grant or extend a token of this resource? It can if some master has set a
 * token that has not expired, even if the master has lost the token since. */
static bool is_in_use(const struct sim *sim, unsigned resource)
{
    for (unsigned i = 0; i < sim->token_count; i++) {
        const struct sim_token *token = &sim->tokens[i];
        if (token->release_requested || token->broken_ns != 0 || token->lost ||
            token->resource != resource)
            continue;
        for (unsigned master = 0; master < sim->node_count; master++)
            if (token->set_ns[master] != 0 && token->ends_ns[master] > sim->now_ns)
                return true;
    }
    return false;
}

void checker_on_foreign(struct sim *sim, unsigned resource, const char *token, int64_t until_ns)
{
    sim->tally->counts[COUNT_FOREIGN]++;
    /* A BREAK deleted the foreign token before the foreign client had counted its votes. No daemon
     * can know how far a foreign client is, so this is no violation. */
    if (sim->foreign.broken)
        return;
    /* The foreign client has no guard: after a master lost its data, the client may take a lock
     * that is in use. */
    bool excusable = sim->now_ns < sim->foreign_doubt_ns;
    enum history_result result = HISTORY_TWO_HOLDERS;
    if (!excusable || !is_in_use(sim, resource))
        result = history_granted(&sim->history, resource, token, 0, sim->now_ns, until_ns);
    if (excusable)
        sim->tally->counts[COUNT_EXCUSED] += result != HISTORY_FINE;
    else
        check_history(sim, result, token);
}

/* --- the end --- */

void checker_leftovers(struct sim *sim)
{
    for (unsigned master = 0; master < sim->node_count; master++) {
        const struct fake_data *data = &sim->masters[master].redis.data;
        uint64_t left[SIM_DAEMONS] = {0};
        for (unsigned i = 0; i < data->count; i++) {
            const struct fake_key *key = &data->keys[i];
            /* A frozen token stays after a failed BREAK. */
            if (sim_resource(sim, key->name, key->len) == SIM_RESOURCES || key->value[0] == '!' ||
                master_wall_us(sim, master) / 1000 > key->ends_ms)
                continue;
            const struct sim_token *token = checker_token(sim, key->value);
            if (token == NULL || sim->now_ns - token->set_ns[master] <= LEFTOVER_NS ||
                !must_be_deleted(sim, token))
                continue;
            /* A daemon without room for more pending releases drops the oldest one. For each
             * dropped release, one token may stay. */
            unsigned releaser = token->granted ? token->released_by : token->daemon;
            if (++left[releaser] >
                sim->daemons[releaser].engine.flights.masters[master].link.pending_releases.dropped)
                checker_violation(sim, "%.8s failed or was released, but is still on %c",
                                  key->value, 'a' + master);
        }
    }
}

void checker_end(struct sim *sim, unsigned index)
{
    const struct sim_daemon *daemon = &sim->daemons[index];
    const struct engine *engine = &daemon->engine;
    for (unsigned i = 0; i < SIM_REQUESTS; i++)
        if (sim->requests[i].state != REQUEST_FREE && sim->requests[i].daemon == index)
            checker_violation(sim, "client %u never got a reply", sim->requests[i].client);
    for (unsigned node = 0; node < sim->node_count; node++) {
        enum reason reason =
            master_refuses_vote(&engine->flights.masters[node], daemon_clock_ns(sim, index));
        /* With tight limits, a heartbeat may fill the link for a moment. The grants of
         * check_waiters() (run.c) then show that masters vote. */
        if (reason != REASON_NONE && !(reason == REASON_BACKLOG && bounds_are_in_force()))
            checker_violation(sim, "%c does not get its vote back from daemon %u: %s", 'a' + node,
                              index, reason_word(reason));
        if (engine->flights.masters[node].link.pending_releases.count != 0)
            checker_violation(sim, "daemon %u keeps a pending release for %c", index, 'a' + node);
    }
    if (engine->manager.pending_requests.in_use != 0 || engine->manager.waiting != 0 ||
        engine->manager.holding != 0)
        checker_violation(sim, "daemon %u keeps %zu requests, %zu waiters, %zu holds", index,
                          engine->manager.pending_requests.in_use, engine->manager.waiting,
                          engine->manager.holding);
    /* Everything counted against a limit must be counted back. */
    if (engine->manager.renewing != 0 || engine->manager.breakings.in_use != 0 ||
        engine->manager.held_count != 0)
        checker_violation(sim, "daemon %u keeps %zu renewals, %zu breaks, %zu of those held", index,
                          (size_t)engine->manager.renewing, engine->manager.breakings.in_use,
                          (size_t)engine->manager.held_count);
    for (unsigned node = 0; node < sim->node_count; node++)
        if (engine->flights.masters[node].key_probes != 0 || engine->flights.vote_count[node] != 0)
            checker_violation(sim, "daemon %u keeps %u key probes of %c, %u votes", index,
                              engine->flights.masters[node].key_probes, 'a' + node,
                              engine->flights.vote_count[node]);
    if (engine->flights.pool.in_use != 0)
        checker_violation(sim, "daemon %u keeps %zu rounds", index, engine->flights.pool.in_use);
    /* A resource exists for as long as its lock, and for some seconds after. */
    const struct resource *resource;
    TAILQ_FOREACH (resource, &engine->manager.resources.all, of_all)
        if (resource->kept && !resource->wake.set)
            checker_violation(sim, "daemon %u keeps %s for ever", index, resource->name);
    if (engine->manager.resources.pool.in_use >
        engine->manager.locks.in_use + engine->manager.kept_count)
        checker_violation(sim, "daemon %u keeps %zu resources for %zu locks", index,
                          engine->manager.resources.pool.in_use, engine->manager.locks.in_use);
}
