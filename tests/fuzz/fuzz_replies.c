/*
 * Fuzzes the engine, its links and the RESP parser with hostile masters. Some of the fake masters
 * of tests/unit/cluster.h are hostile: they send arbitrary bytes. The others are truthful. Whatever
 * the hostile ones send,
 *
 *   - no assertion in the shipped code fails,
 *   - each request is answered exactly once,
 *   - a lock is granted only with the votes of a quorum: a truthful master has the token, or a
 *     hostile one has sent at least one word that means yes since the request,
 *   - locks are granted as long as the truthful masters are a quorum.
 *
 * The first byte of an input chooses the masters. The rest is a script of steps, each one byte (its
 * low five bits, so that upper and lower case mean the same) and its arguments; see step().
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "protocol/units.h"
#include "server/masters/resp.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/script.h"
#include "tests/unit/cluster.h"
#include "tests/unit/cluster_wire.h"

enum {
    ANSWER_BYTES = 1024,   /* limit for one true reply, as RESP */
    ANSWERS = 512,         /* limit for replies not passed on yet; further ones are dropped */
    REQUESTS = 256,        /* requests of one input; the last one is reserved for check_alive() */
    MAX_STEPS = 512,       /* steps of one input */
    MAX_PASSED_MS = 70000, /* limit for the virtual time of one input, which costs real time */
};

/* One of the two connections to a hostile master. */
struct hostile_wire {
    unsigned node;
    enum channel channel;
    unsigned number; /* number of the connection to which the members below belong */
    struct resp resp;
    struct {
        char bytes[ANSWER_BYTES];
        size_t len;
    } answers[ANSWERS]; /* ring of the true replies that no step has passed on yet */
    unsigned first;
    unsigned count;
};

struct sent_request {
    bool lock;
    unsigned resource;
    int64_t ttl_ms;
    struct engine_client *client;
    unsigned yes[CLUSTER_NODES]; /* `yes` at the time of the request */
    unsigned answers;
    bool forgiven; /* the client is gone: no reply is required */
};

static struct cluster cluster;
static struct hostile_wire wires[CLUSTER_NODES][CHANNELS];
static struct hostile_wire *wire;   /* the wire of the steps */
static unsigned hostile_server;     /* number of hostile masters; they are the first ones */
static unsigned yes[CLUSTER_NODES]; /* how many words that mean yes each hostile master has sent */
static bool unknown;                /* empty masters without --bootstrap */
static bool had_fault;              /* truthful masters had a fault */
static bool draining;
static bool blames_others; /* a hostile master has sent a reply that, by design, costs other masters
                              their votes */
static struct sent_request asked[REQUESTS];
static unsigned asked_count;
static char tokens[3][LIMIT_TOKEN + 1]; /* the last granted token of each resource */
static int64_t passed_ms;

/* The last resource is used once, at the end. */
static const char *const resources[] = {"r0", "r1", "fresh"};

/* --- input to the engine --- */

static struct cluster_connection *connection_of(const struct hostile_wire *of)
{
    return &cluster.connections[of->node][of->channel];
}

/* A new connection starts without the state of the old one. */
static void refresh(struct hostile_wire *of)
{
    if (of->number == connection_of(of)->wire)
        return;
    of->number = connection_of(of)->wire;
    of->count = 0;
    bool enough_memory = resp_reset(&of->resp);
    assert(enough_memory);
}

static void lose(struct hostile_wire *of, enum reason reason)
{
    if (!connection_of(of)->open)
        return;
    cluster_close(&cluster, of->node, of->channel);
    engine_on_closed(&cluster.engine, of->node, of->channel, reason, cluster.now_ns);
}

static bool text_begins(const struct redis_reply *reply, const char *word)
{
    return reply->len >= strlen(word) && memcmp(reply->str, word, strlen(word)) == 0;
}

/* Note what the reply may mean to the engine: a yes, or a report that another master's name leads
 * to a different server. This counts too many replies rather than too few: the engine does not
 * accept all of them. */
static void note(const struct hostile_wire *of, const struct redis_reply *reply)
{
    if (reply->kind == RESP_STATUS && text_begins(reply, "OK"))
        yes[of->node]++;
    if (reply->kind == RESP_INTEGER && reply->integer <= -3)
        yes[of->node]++;
    if (reply->kind == RESP_STRING && reply->len > cluster.node_count &&
        memchr(reply->str, '1', cluster.node_count) != NULL)
        blames_others = true;
}

/* Feed the bytes as server/masters/node.c does. */
static void feed(struct hostile_wire *of, const char *bytes, size_t len)
{
    refresh(of);
    if (!connection_of(of)->open || len == 0)
        return;
    resp_feed(&of->resp, bytes, len);
    for (;;) {
        enum resp_result result = resp_next(&of->resp);
        if (result == RESP_GARBAGE)
            lose(of, REASON_GARBAGE);
        if (result != RESP_REPLY)
            return;
        note(of, of->resp.reply);
        unsigned taken = engine_on_replies(&cluster.engine, of->node, of->channel, of->resp.reply,
                                           of->resp.repeats + 1, cluster.now_ns);
        if (taken == 0)
            return;
        for (unsigned i = 1; i < taken; i++)
            note(of, of->resp.reply);
        resp_skip(&of->resp, taken - 1);
    }
}

/* --- true replies --- */

/* Callback of struct cluster: keep a true reply of a hostile master until a step passes it on. */
static void divert(struct cluster *of, unsigned node, enum channel channel, const char *bytes,
                   size_t len)
{
    struct hostile_wire *said = &wires[node][channel];
    (void)of;
    refresh(said);
    if (said->count == ANSWERS || len > ANSWER_BYTES)
        return;
    unsigned last = (said->first + said->count++) % ANSWERS;
    memcpy(said->answers[last].bytes, bytes, len);
    said->answers[last].len = len;
}

/* Move the next true reply to a buffer of ANSWER_BYTES. Returns its length; 0 if there is none. */
static size_t next_answer(struct hostile_wire *of, char *bytes)
{
    refresh(of);
    if (of->count == 0)
        return 0;
    size_t len = of->answers[of->first].len;
    memcpy(bytes, of->answers[of->first].bytes, len);
    of->first = (of->first + 1) % ANSWERS;
    of->count--;
    return len;
}

static void feed_truth(struct hostile_wire *of)
{
    char bytes[ANSWER_BYTES];
    size_t len;
    while ((len = next_answer(of, bytes)) > 0)
        feed(of, bytes, len);
}

/* --- requests and replies of clients --- */

__attribute__((format(printf, 4, 5))) static void ask(unsigned client, bool lock, unsigned resource,
                                                      const char *form, ...)
{
    char words[LIMIT_LINE];
    va_list arguments;
    if (asked_count == (resource < 2 ? REQUESTS - 1 : REQUESTS))
        return;
    struct sent_request *request = &asked[asked_count];
    *request = (struct sent_request){
        .lock = lock, .resource = resource, .client = &cluster.others[client % CLUSTER_CLIENTS]};
    memcpy(request->yes, yes, sizeof(yes));
    va_start(arguments, form);
    vsnprintf(words, sizeof(words), form, arguments);
    va_end(arguments);
    cluster_send_as(&cluster, request->client, "#q%u %s", asked_count++, words);
}

static struct sent_request *sent_by(const char *tag, size_t tag_len)
{
    unsigned number;
    char copy[LIMIT_TAG + 1];
    assert(tag_len <= LIMIT_TAG);
    memcpy(copy, tag, tag_len);
    copy[tag_len] = '\0';
    int got = sscanf(copy, "q%u", &number);
    assert(got == 1);
    assert(number < asked_count);
    return &asked[number];
}

static void check_granted(const struct sent_request *request, const struct reply *answer)
{
    char token[LIMIT_TOKEN + 1];
    unsigned votes = 0;
    memcpy(token, answer->token, LIMIT_TOKEN);
    token[LIMIT_TOKEN] = '\0';
    for (unsigned i = 0; i < cluster.node_count; i++) {
        const char *value = cluster_value(&cluster, i, resources[request->resource]);
        if (cluster.diverted & nodes_only(i))
            votes += yes[i] > request->yes[i];
        else
            votes += value != NULL && strcmp(value, token) == 0;
    }
    assert(votes >= cluster.node_count / 2 + 1);
    assert(answer->validity_ms >= 0);
    memcpy(tokens[request->resource], token, sizeof(token));
}

static void (*cluster_reply)(void *context, struct engine_client *client, const char *tag,
                             size_t tag_len, const struct reply *reply);
static void (*cluster_undone)(void *context, struct engine_client *client, const char *tag,
                              size_t tag_len);

static void on_reply(void *context, struct engine_client *client, const char *tag, size_t tag_len,
                     const struct reply *answer)
{
    struct sent_request *request = sent_by(tag, tag_len);
    assert(request->client == client);
    request->answers++;
    assert(request->answers == 1);
    assert(answer->elapsed_ms >= 0);
    assert(answer->hint_ms >= -1);
    if (answer->outcome == OUTCOME_OK && request->lock)
        check_granted(request, answer);
    cluster_reply(context, client, tag, tag_len, answer);
}

static void on_undone(void *context, struct engine_client *client, const char *tag, size_t tag_len)
{
    struct sent_request *request = sent_by(tag, tag_len);
    request->answers++;
    assert(request->answers == 1);
    cluster_undone(context, client, tag, tag_len);
}

static void lock(void)
{
    static const int ttls_ms[] = {60000, 20000, 1000, 300};
    static const char *const waits[] = {"", " WAIT 0", " WAIT 100ms", " WAIT 30s"};
    unsigned how = script_take();
    unsigned resource = how & 1;
    ask(how >> 6, true, resource, "LOCK %s %dms%s%s%s", resources[resource], ttls_ms[how >> 1 & 3],
        waits[how >> 3 & 3], how & 32 ? " FENCE" : "",
        how & 64 ? how & 8 ? " HOLD LINGER" : " HOLD" : "");
}

static void use_token(void)
{
    unsigned how = script_take();
    unsigned resource = how & 1;
    const char *token = how & 2 ? "6c7bac0d008c92701fb34223a36eaf20dda7a0ce" : tokens[resource];
    if (token[0] == '\0')
        return;
    if (how & 4)
        ask(how >> 6, false, resource, "EXTEND %s %s 20s", resources[resource], token);
    else
        ask(how >> 6, false, resource, "UNLOCK %s %s", resources[resource], token);
}

static void leave(void)
{
    unsigned how = script_take();
    struct engine_client *client = &cluster.others[how % CLUSTER_CLIENTS];
    if (how & 8)
        engine_client_end(&cluster.engine, client, ENGINE_QUIT, cluster.now_ns);
    else if (how & 4)
        engine_client_end(&cluster.engine, client, ENGINE_HALF_CLOSED, cluster.now_ns);
    for (unsigned i = 0; i < asked_count; i++)
        asked[i].forgiven = asked[i].forgiven || asked[i].client == client;
    cluster_lose_client(&cluster, client);
}

/* --- steps --- */

static void pass(int64_t ms)
{
    if (passed_ms + ms > MAX_PASSED_MS)
        return;
    passed_ms += ms;
    cluster_pass_ms(&cluster, ms);
}

static void pass_some(void)
{
    static const int64_t times_ms[] = {0, 1, 10, 49, 51, 300, 1100, 6000};
    unsigned how = script_take();
    int64_t ms = times_ms[how & 7];
    /* With bit 3, only the clock advances, as after a pause of the daemon, which then reads its
     * input before it runs its timer. */
    if (!(how & 8))
        pass(ms);
    else if (passed_ms + ms <= MAX_PASSED_MS)
        cluster.now_ns += ms * NS_PER_MS;
}

/* Feed the literal bytes this many times, so that replies can be longer than an input. */
static void feed_repeated(unsigned times)
{
    const char *bytes;
    size_t len = script_take_bytes(&bytes);
    while (times-- > 0)
        feed(wire, bytes, len);
}

/* Corrupt one true reply. */
static void corrupt(unsigned what)
{
    char bytes[ANSWER_BYTES];
    size_t len = next_answer(wire, bytes);
    unsigned at = what == 'd' || what == 'e' || what == 'f' ? script_take() : 0;
    at = len > 0 ? at % (unsigned)len : 0;
    switch (what) {
    case 'c': /* duplicated */
        feed(wire, bytes, len);
        feed(wire, bytes, len);
        break;
    case 'd': /* one byte changed */
        bytes[at] = (char)script_take();
        feed(wire, bytes, len);
        break;
    case 'e': /* cut short */
        feed(wire, bytes, at);
        break;
    case 'f': /* in two pieces */
        feed(wire, bytes, at);
        feed(wire, bytes + at, len - at);
        break;
    case 'g': /* dropped */
        break;
    case 'h': /* replaced */
        feed_repeated(1);
        break;
    }
}

/* Let all hostile masters send their true replies. */
static void feed_all(void)
{
    for (unsigned i = 0; i < hostile_server; i++)
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            feed_truth(&wires[i][channel]);
}

static void choose_wire(void)
{
    unsigned how = script_take();
    wire = &wires[(how >> 1) % hostile_server][how & 1 ? CHANNEL_TRACKING : CHANNEL_COMMANDS];
}

/* A fault of truthful masters. */
static void inject_fault(void)
{
    unsigned how = script_take();
    unsigned node = how % cluster.node_count;
    had_fault = true;
    const char *resource = resources[how >> 5 & 1];
    if (how & 64 && cluster_value(&cluster, node, resource) == NULL)
        cluster_set(&cluster, node, resource, "somebody", 5000);
    else if (how & 32)
        cluster.masters[node].redis.scripts_flushed = !cluster.masters[node].redis.scripts_flushed;
    else if (how & 16)
        cluster.masters[node].redis.refusals[FAKE_TRACKING] =
            cluster.masters[node].redis.refusals[FAKE_TRACKING] == NULL ? "ERR unknown" : NULL;
    else if (!(cluster.diverted & nodes_only(node)))
        cluster.masters[node].hung = !cluster.masters[node].hung;
}

/* Output of a hostile master. */
static void hostile_output(unsigned what)
{
    char answer[ANSWER_BYTES];
    size_t len;
    switch (what) {
    case 'a': /* all true replies */
        feed_truth(wire);
        break;
    case 'b': /* one true reply */
        len = next_answer(wire, answer);
        feed(wire, answer, len);
        break;
    case 'i': /* arbitrary bytes without a request */
        feed_repeated(1);
        break;
    case 't':
        feed_repeated(script_take());
        break;
    default:
        if (what >= 'c' && what <= 'h')
            corrupt(what);
        break;
    }
}

static void step(unsigned what)
{
    switch (what) {
    case 'j': /* switch to another wire */
        choose_wire();
        break;
    case 'k':
        lose(wire, REASON_DISCONNECTED);
        break;
    case 'l':
        lock();
        break;
    case 'm':
        use_token();
        break;
    case 'n':
        ask(0, false, 0, "STATUS %s", resources[script_take() & 1]);
        break;
    case 'o':
        leave();
        break;
    case 'p':
        pass_some();
        break;
    case 'q':
        inject_fault();
        break;
    case 'r':
        feed_all();
        break;
    case 's':
        draining = true;
        engine_drain(&cluster.engine, cluster.now_ns);
        break;
    default:
        hostile_output(what);
        break;
    }
    cluster_settle(&cluster);
    cluster.reply_count = 0;
}

/* --- an input --- */

static void begin(unsigned how)
{
    unknown = how & 8;
    unsigned nodes = how & 16 ? 5 : 3;
    hostile_server = 1 + (how & 7) % nodes;
    if (unknown)
        cluster_init_unknown(&cluster, nodes);
    else
        cluster_init(&cluster, nodes);
    if (how & 32) {
        /* A restarted daemon, with the first three masters configured as durable. */
        cluster.durable = 7;
        cluster_restart_engine(&cluster, "here");
    }
    cluster.diverted = nodes_all(hostile_server);
    cluster.divert = divert;
    cluster_reply = cluster.engine.io.reply;
    cluster_undone = cluster.engine.io.undone;
    cluster.engine.io.reply = on_reply;
    cluster.engine.io.undone = on_undone;
    for (unsigned i = 0; i < hostile_server; i++)
        for (unsigned channel = 0; channel < CHANNELS; channel++) {
            wires[i][channel].node = i;
            wires[i][channel].channel = channel;
            wires[i][channel].first = wires[i][channel].count = 0;
            wires[i][channel].number = 0;
        }
    wire = &wires[0][CHANNEL_COMMANDS];
    memset(yes, 0, sizeof(yes));
    memset(tokens, 0, sizeof(tokens));
    asked_count = 0;
    blames_others = had_fault = draining = false;
    passed_ms = 0;
}

/* If the truthful masters are a quorum and had no fault, they must grant a lock as if they were
 * alone. */
static void check_alive(void)
{
    unsigned honest = cluster.node_count - hostile_server;
    if (honest < cluster.node_count / 2 + 1 || unknown || had_fault || draining || blames_others)
        return;
    cluster_pass_ms(&cluster, 3000);
    ask(0, true, 2, "LOCK fresh 20s");
    cluster_pass_ms(&cluster, 100);
    assert(tokens[2][0] != '\0');
}

/* Without connections, no command is outstanding and nothing is kept for one. */
static void check_empty(void)
{
    for (unsigned i = 0; i < cluster.node_count; i++) {
        cluster.masters[i].hung = false;
        lose(&(struct hostile_wire){.node = i, .channel = CHANNEL_COMMANDS}, REASON_DISCONNECTED);
    }
    for (unsigned i = 0; i < cluster.node_count; i++)
        assert(cluster.engine.flights.masters[i].key_probes == 0);
    assert(cluster.engine.flights.pool.in_use == 0);
    assert(cluster.engine.manager.pending_requests.in_use == 0);
}

/* End the input: every request must have had its reply. */
static void end(void)
{
    engine_drain(&cluster.engine, cluster.now_ns);
    cluster_pass_ms(&cluster, 100);
    engine_abandon(&cluster.engine, cluster.now_ns);
    for (unsigned i = 0; i < cluster.node_count; i++)
        (void)guard_refuses_until_ns(&cluster.engine.flights.guard, i, cluster.now_ns);
    for (unsigned i = 0; i < asked_count; i++)
        assert(asked[i].answers == 1 || asked[i].forgiven);
    check_empty();
    for (unsigned i = 0; i < hostile_server; i++)
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            resp_deinit(&wires[i][channel].resp);
    cluster_deinit(&cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    script = bytes;
    script_len = len;
    begin(script_take());
    for (unsigned steps = 0; script_len > 0 && steps < MAX_STEPS; steps++)
        step('`' + (script_take() & 31));
    check_alive();
    end();
    return 0;
}
