/*
 * Fuzzes the protocol state of libredlock with any bytes as the replies of a daemon. Whatever
 * arrives, at whatever time,
 *
 *   - each request is answered exactly once, unless it is cancelled,
 *   - a lock is reported only if a line has granted it to that request, and its deadline is not
 *     later than that line allows,
 *   - no more losses are reported than HOLDs were: a loss is reported once. (The daemon may grant
 * one token several times here, so a token can be lost several times.)
 *
 * An input is a script of steps. Each step is one byte and its arguments; see step(). One kind of
 * step feeds the tag of a request in flight, and another kind a whole grant, so that the fuzzer
 * finds valid replies.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/client_proto.h"
#include "protocol/units.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/script.h"

#define TOKEN "0123456789abcdef0123456789abcdef01234567"

enum { REQUESTS = 256, SAID = 65536, TTL_MS = 10000 };

static struct client_proto proto;
static int64_t now_ns;

static struct {
    uint64_t id;
    uint64_t confirm_id; /* the EXTEND that confirms a grant which arrived late; 0: none */
    int64_t earlier_ns;  /* with extends: the deadline before; otherwise 0 */
    bool extends;        /* extends the lock of TOKEN */
    bool over;           /* answered or cancelled */
} requests[REQUESTS];
static unsigned request_count;
static unsigned hold_count; /* HOLDs reported to the caller */
static unsigned loss_count; /* losses reported to the caller */

/* All bytes so far, and when each of them arrived. */
static char said[SAID];
static int64_t said_ns[SAID];
static size_t said_len;

/* --- events of the library --- */

/* The latest deadline for the lock that any received line with this tag allows; 0: no such line has
 * granted the lock. */
static int64_t latest_ns(const struct redlock_event *event, uint64_t id)
{
    char head[128];
    int64_t latest = 0;
    int len = snprintf(head, sizeof(head), "#%" PRIu64 " OK %s ", id, event->lock.token);
    for (const char *line = said; line < said + said_len;) {
        const char *end = memchr(line, '\n', (size_t)(said + said_len - line));
        if (end == NULL)
            break;
        if (end - line > len && memcmp(line, head, (size_t)len) == 0) {
            char *rest;
            int64_t validity_ms = strtoll(line + len, &rest, 10);
            int64_t elapsed_ms = strtoll(rest, NULL, 10);
            int64_t granted_ns = said_ns[end - said];
            if (elapsed_ms < 1000000 && event->sent_ns + elapsed_ms * NS_PER_MS < granted_ns)
                granted_ns = event->sent_ns + elapsed_ms * NS_PER_MS;
            if (validity_ms <= TTL_MS && granted_ns + validity_ms * NS_PER_MS > latest)
                latest = granted_ns + validity_ms * NS_PER_MS;
        }
        line = end + 1;
    }
    return latest;
}

static void check_lock(const struct redlock_event *event, unsigned at)
{
    int64_t latest = latest_ns(event, event->id);
    int64_t confirmed =
        requests[at].confirm_id != 0 ? latest_ns(event, requests[at].confirm_id) : 0;
    assert(latest != 0);
    assert(event->lock.deadline_ns > 0);
    assert(!requests[at].extends || strcmp(event->lock.token, TOKEN) == 0);
    if (latest < confirmed)
        latest = confirmed;
    if (latest < requests[at].earlier_ns)
        latest = requests[at].earlier_ns;
    assert(event->lock.deadline_ns <= latest);
    hold_count += event->lock.hold && !requests[at].extends;
}

static void check_answer(const struct redlock_event *event)
{
    unsigned at = 0;
    while (at < request_count && requests[at].id != event->id)
        at++;
    assert(at < request_count);
    assert(!requests[at].over);
    requests[at].over = true;
    if (event->status == REDLOCK_OK && event->lock.token[0] != '\0')
        check_lock(event, at);
    else
        assert(event->lock.deadline_ns == 0);
    for (const char *text = proto.error; *text != '\0'; text++)
        assert(*text >= ' ' && *text < 0x7f);
}

static void take_all(void)
{
    struct redlock_event event;
    while (proto_take(&proto, &event)) {
        if (event.kind == REDLOCK_EVENT_ANSWER)
            check_answer(&event);
        else
            assert(memchr(event.reason, '\0', sizeof(event.reason)) != NULL);
        loss_count += event.kind == REDLOCK_EVENT_LOST;
        assert(loss_count <= hold_count);
    }
}

static void check_counts(void)
{
    unsigned living = 0;
    unsigned abandoned = 0;
    for (unsigned i = 0; i < proto.made; i++) {
        if (proto.exchange[i]->state == EXCHANGE_IDLE)
            continue;
        living += proto.exchange[i]->recipient != TO_NONE;
        abandoned += proto.exchange[i]->recipient == TO_NONE;
    }
    assert(proto.living == living);
    assert(proto.abandoned == abandoned);
}

/* The answer to a confirming EXTEND has a tag of its own, but is reported for the LOCK. */
static void note_confirmations(void)
{
    for (unsigned i = 0; i < proto.made; i++)
        for (unsigned at = 0; proto.exchange[i]->confirms && at < request_count; at++)
            if (requests[at].id == proto.exchange[i]->event.id)
                requests[at].confirm_id = proto.exchange[i]->id;
}

/* --- steps --- */

static void ask(void)
{
    struct client_request request;
    struct error error;
    unsigned what = script_take();
    const struct redlock_lock_options options = {.fence = what & 8,
                                                 .hold = what & 16,
                                                 .linger = (what & 80) == 80,
                                                 .wait_ms = what & 32 ? 1000 : 0};
    const struct redlock_lock lock = {
        .resource = "a", .token = TOKEN, .deadline_ns = (int64_t)(what & 64) * 1000 * NS_PER_MS};
    bool fine = true;
    if (request_count == REQUESTS)
        return;
    switch (what % 8) {
    case 0:
        fine = client_request_extend(&request, &lock, TTL_MS, &error);
        break;
    case 1:
        fine = client_request_release(&request, "a", TOKEN, &error);
        break;
    case 2:
        request = (struct client_request){.kind = CLIENT_REQUEST_PING};
        break;
    case 3:
        fine = client_request_about(&request, CLIENT_REQUEST_QUERY, "a", &error);
        break;
    case 4:
        fine = client_request_about(&request, CLIENT_REQUEST_PLACE, "a", &error);
        break;
    case 5:
        fine = client_request_list(&request, what & 8 ? "VERSION" : "LOCKS", &error);
        break;
    default:
        fine = client_request_acquire(&request, "a", TTL_MS, &options, &error);
        break;
    }
    assert(fine);
    requests[request_count].over = false;
    requests[request_count].confirm_id = 0;
    requests[request_count].extends = what % 8 == 0;
    requests[request_count].earlier_ns = what % 8 == 0 ? lock.deadline_ns : 0;
    enum redlock_status status =
        proto_ask(&proto, &request, now_ns, NULL, NULL, &requests[request_count].id);
    assert(status == REDLOCK_OK);
    request_count++;
}

static void write_out(void)
{
    char buf[4096];
    while (proto_has_output(&proto) && proto_write(&proto, now_ns, buf, sizeof(buf)) > 0)
        continue;
}

static void note(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        said[said_len] = bytes[i];
        said_ns[said_len++] = now_ns;
    }
}

/* Start a connection. The next bytes are the beginning of a line. */
static void begin(void)
{
    if (said_len < SAID)
        note("\n", 1);
    proto_begin(&proto);
}

static void feed(const char *bytes, size_t len)
{
    if (said_len + len > SAID)
        return;
    note(bytes, len);
    /* Copy the bytes to their own allocation, so that a sanitizer detects a read past the end. */
    char *copy = malloc(len > 0 ? len : 1);
    assert(copy != NULL);
    memcpy(copy, bytes, len);
    bool fine = proto_receive(&proto, copy, len, now_ns, now_ns);
    free(copy);
    if (!fine) {
        assert(proto.living == 0);
        assert(proto.abandoned == 0);
        take_all();
        begin();
    }
}

/* Feed the tag of the n-th exchange, as the beginning of a reply. */
static void feed_tag(unsigned n)
{
    char tag[32];
    if (request_count == 0 || n >= proto.made)
        return;
    feed(tag, (size_t)snprintf(tag, sizeof(tag), "#%" PRIu64 " ", proto.exchange[n]->id));
}

static void feed_bytes(void)
{
    const char *bytes;
    size_t len = script_take_bytes(&bytes);
    feed(bytes, len);
}

static void step(void)
{
    unsigned n;
    switch (script_take() % 16) {
    case 0:
        ask();
        break;
    case 1:
        write_out();
        break;
    case 2:
        feed_tag(script_take());
        break;
    case 3:
        feed_bytes();
        break;
    case 4:
        feed("OK " TOKEN " 9000 10 -\n", sizeof("OK " TOKEN " 9000 10 -\n") - 1);
        break;
    case 5:
        now_ns += (int64_t)script_take() * 16 * NS_PER_MS;
        break;
    case 6:
        proto_expire(&proto, now_ns);
        break;
    case 7:
        take_all();
        break;
    case 8:
        n = script_take();
        if (n < request_count) {
            proto_cancel(&proto, requests[n].id, now_ns);
            requests[n].over = true;
        }
        break;
    case 9:
        proto_end(&proto, REDLOCK_BROKEN, "it ended", true);
        begin();
        break;
    case 10:
        feed("! LOST a " TOKEN " gone\n", sizeof("! LOST a " TOKEN " gone\n") - 1);
        break;
    case 11:
        feed("! WARN a " TOKEN " b:c\n", sizeof("! WARN a " TOKEN " b:c\n") - 1);
        break;
    case 12:
        proto_set_label(&proto, "me", true);
        break;
    default:
        feed("\n", script_take() % 2);
        break;
    }
    check_counts();
    note_confirmations();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    script = bytes;
    script_len = len;
    request_count = 0;
    hold_count = 0;
    loss_count = 0;
    said_len = 0;
    now_ns = 1000 * NS_PER_MS;
    proto_init(&proto);
    proto.timeout_ns = 500 * NS_PER_MS;
    begin();
    while (script_len > 0)
        step();
    proto_end(&proto, REDLOCK_BROKEN, "it ended", true);
    take_all();
    for (unsigned i = 0; i < request_count; i++)
        assert(requests[i].over);
    assert(proto.living == 0);
    assert(proto.abandoned == 0);
    proto_free(&proto);
    return 0;
}
