/*
 * engine/master/tracker.h: the connection on which a master reports changed keys. The tests play
 * the master, with expected and unexpected replies.
 */
#include <string.h>

#include "engine/master/tracker.h"
#include "protocol/units.h"
#include "tests/runner.h"

static unsigned opened;
static unsigned closed;
static char written[1024];

static void io_open(void *context, unsigned node, enum channel channel)
{
    (void)context;
    ck_assert_uint_eq(node, 7);
    ck_assert_int_eq(channel, CHANNEL_TRACKING);
    opened++;
}

static void io_close(void *context, unsigned node, enum channel channel)
{
    (void)context;
    ck_assert_uint_eq(node, 7);
    ck_assert_int_eq(channel, CHANNEL_TRACKING);
    closed++;
}

static void io_write(void *context, uint32_t nodes, enum channel channel, const char *bytes,
                     size_t len)
{
    (void)context;
    ck_assert_uint_eq(nodes, 1U << 7);
    ck_assert_int_eq(channel, CHANNEL_TRACKING);
    size_t written_len = strlen(written);
    ck_assert_uint_lt(written_len + len, sizeof(written));
    memcpy(written + written_len, bytes, len);
    written[written_len + len] = '\0';
}

static void io_random(void *context, void *bytes, size_t len)
{
    (void)context;
    memset(bytes, 0, len);
}

static const struct link_io io = {
    .open = io_open, .close = io_close, .write = io_write, .random = io_random};

static struct tracker tracker;
static const char *key;
static size_t key_len;

static void setup(void)
{
    static const struct link_login login;
    opened = closed = 0;
    written[0] = '\0';
    tracker_init(&tracker, 7, &io, &login, NS_PER_S);
}

const struct runner_settings runner_settings = {.setup = setup};

static struct redis_reply scalar_reply(enum resp_kind kind, const char *text)
{
    return (struct redis_reply){.kind = kind, .integer = 5, .str = text, .len = strlen(text)};
}

static struct redis_reply array_reply(const char *first, size_t count)
{
    struct redis_reply reply = {.kind = RESP_ARRAY, .item_count = count};
    reply.items[0].kind = RESP_STRING;
    reply.items[0].str = first;
    reply.items[0].len = strlen(first);
    reply.items[2].kind = RESP_ARRAY;
    return reply;
}

static enum tracker_news receive(struct redis_reply reply, int64_t now_ns)
{
    return tracker_on_reply(&tracker, &reply, now_ns, &key, &key_len);
}

static void connect(void)
{
    tracker_on_link_up(&tracker, 0);
    ck_assert(!tracker_on_timer(&tracker, 0, 0));
    ck_assert_uint_eq(opened, 1);
    tracker_on_connected(&tracker, 0);
}

static void subscribe(void)
{
    connect();
    ck_assert_int_eq(receive(scalar_reply(RESP_STATUS, "OK"), 0), TRACKER_NOTHING);
    ck_assert_int_eq(receive(scalar_reply(RESP_INTEGER, ""), 0), TRACKER_NOTHING);
    ck_assert_int_eq(receive(array_reply("subscribe", 3), 0), TRACKER_READY);
    ck_assert_int_eq(tracker.client_id, 5);
    written[0] = '\0';
}

TEST(tracker_names_itself_and_subscribes)
{
    connect();
    ck_assert_ptr_null(strstr(written, "AUTH"));
    ck_assert_ptr_nonnull(strstr(written, "SETNAME\r\n$17\r\nredlockd-tracking\r\n"));
    ck_assert_ptr_nonnull(strstr(written, "SUBSCRIBE\r\n$20\r\n__redis__:invalidate\r\n"));
}

TEST(tracker_authenticates_first)
{
    const struct link_login logins[] = {{.password = "pw"}, {.username = "me", .password = "pw"}};
    const char *const begins[] = {"*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n",
                                  "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n"};
    for (unsigned i = 0; i < 2; i++) {
        setup();
        tracker_init(&tracker, 7, &io, &logins[i], NS_PER_S);
        connect();
        ck_assert_int_eq(strncmp(written, begins[i], strlen(begins[i])), 0);
        ck_assert_int_eq(receive(scalar_reply(RESP_ERROR, "WRONGPASS"), 0), TRACKER_LOST);
        ck_assert_uint_eq(closed, 1);
    }
}

/* Otherwise a restarted master could know the id of the old connection as that of another one. */
TEST(tracker_lives_no_longer_than_the_first_connection)
{
    ck_assert(!tracker_on_timer(&tracker, NS_PER_S, NS_PER_S));
    ck_assert_uint_eq(opened, 0);
    subscribe();
    tracker.tracking = 1;
    tracker_on_link_lost(&tracker);
    ck_assert_uint_eq(closed, 1);
    ck_assert_uint_eq(tracker.tracking, 0);
    ck_assert(!tracker_on_timer(&tracker, 60 * NS_PER_S, 60 * NS_PER_S));
    ck_assert_uint_eq(opened, 1);
    tracker_on_link_up(&tracker, 60 * NS_PER_S);
    ck_assert(!tracker_on_timer(&tracker, 60 * NS_PER_S, 60 * NS_PER_S));
    ck_assert_uint_eq(opened, 2);
    tracker_on_closed(&tracker, 60 * NS_PER_S);
    tracker_on_link_lost(&tracker);
    ck_assert_uint_eq(closed, 1);
}

TEST(changed_keys_are_reported)
{
    subscribe();
    struct redis_reply message = array_reply("message", 3);
    message.nested_count = 1;
    message.nested_str = "redlock:a";
    message.nested_len = 9;
    ck_assert_int_eq(receive(message, 1), TRACKER_CHANGED);
    ck_assert_uint_eq(key_len, 9);
    ck_assert_ptr_eq(key, message.nested_str);
    message.nested_count = 2;
    ck_assert_int_eq(receive(message, 1), TRACKER_ALL_CHANGED);
    message.nested_count = 1;
    message.nested_str = NULL;
    ck_assert_int_eq(receive(message, 1), TRACKER_ALL_CHANGED);
    message.items[2].kind = RESP_NIL;
    ck_assert_int_eq(receive(message, 1), TRACKER_ALL_CHANGED);
}

TEST(unexpected_reply_ends_the_connection)
{
    const struct redis_reply nonsense[] = {
        scalar_reply(RESP_STRING, "x"), scalar_reply(RESP_NIL, ""), scalar_reply(RESP_ERROR, "ERR"),
        array_reply("message", 2),      array_reply("messages", 3), array_reply("", 0)};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        setup();
        subscribe();
        ck_assert_int_eq(receive(nonsense[i], 1), TRACKER_LOST);
        ck_assert_uint_eq(closed, 1);
        ck_assert_int_eq(tracker.state, TRACKER_DOWN);
        ck_assert_int_le(tracker.deadline_ns, NS_PER_S);
    }
}

/* The reason for such a refusal rarely goes away soon, so the daemon asks for tracking again only
 * after a minute. */
TEST(master_that_refuses_tracking_is_asked_again_after_a_minute)
{
    connect();
    receive(scalar_reply(RESP_STATUS, "OK"), 0);
    receive(scalar_reply(RESP_INTEGER, ""), 0);
    ck_assert_int_eq(receive(scalar_reply(RESP_ERROR, "NOPERM"), 0), TRACKER_LOST);
    ck_assert_int_eq(tracker.deadline_ns, 60 * NS_PER_S);
    setup();
    connect();
    receive(scalar_reply(RESP_STATUS, "OK"), 0);
    ck_assert_int_eq(receive(scalar_reply(RESP_ERROR, "ERR"), 0), TRACKER_LOST);
    ck_assert_int_eq(tracker.deadline_ns, 60 * NS_PER_S);
}

/* The backoff also grows for connections that never last. */
TEST(backoff_grows_until_a_connection_has_lasted)
{
    int64_t delay_ns = 0;
    tracker_on_link_up(&tracker, 0);
    for (unsigned i = 0; i < 6; i++) {
        int64_t now_ns = tracker.deadline_ns;
        ck_assert(!tracker_on_timer(&tracker, now_ns, now_ns));
        tracker_on_connected(&tracker, now_ns);
        receive(scalar_reply(RESP_STATUS, "OK"), now_ns);
        receive(scalar_reply(RESP_INTEGER, ""), now_ns);
        ck_assert_int_eq(receive(array_reply("subscribe", 3), now_ns), TRACKER_READY);
        tracker_on_closed(&tracker, now_ns);
        ck_assert_int_gt(tracker.deadline_ns - now_ns, delay_ns);
        delay_ns = tracker.deadline_ns - now_ns;
    }
    setup();
    subscribe();
    ck_assert(!tracker_on_timer(&tracker, 5 * NS_PER_S, 5 * NS_PER_S));
    receive(array_reply("pong", 2), 5 * NS_PER_S);
    ck_assert_uint_eq(tracker.attempts, 0);
}

TEST(silent_connection_is_closed)
{
    connect();
    ck_assert(!tracker_on_timer(&tracker, NS_PER_S - 1, NS_PER_S - 1));
    ck_assert(tracker_on_timer(&tracker, NS_PER_S, NS_PER_S));
    setup();
    subscribe();
    ck_assert(!tracker_on_timer(&tracker, 5 * NS_PER_S, 5 * NS_PER_S));
    ck_assert_str_eq(written, "*1\r\n$4\r\nPING\r\n");
    ck_assert_int_eq(receive(array_reply("pong", 2), 5 * NS_PER_S), TRACKER_NOTHING);
    ck_assert(!tracker_on_timer(&tracker, 10 * NS_PER_S, 10 * NS_PER_S));
    ck_assert(!tracker_on_timer(&tracker, 11 * NS_PER_S - 1, 11 * NS_PER_S - 1));
    ck_assert(tracker_on_timer(&tracker, 11 * NS_PER_S, 11 * NS_PER_S));
    ck_assert_uint_eq(closed, 1);
}

TEST(connection_attempt_times_out)
{
    tracker_on_link_up(&tracker, 0);
    ck_assert(!tracker_on_timer(&tracker, 0, 0));
    ck_assert(tracker_on_timer(&tracker, NS_PER_S, NS_PER_S));
    ck_assert_uint_eq(closed, 1);
}
