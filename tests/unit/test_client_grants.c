/*
 * client/c/client_proto.h and client/c/hold.h: the client releases grants that come too late or
 * that the caller did not take, and reports changes of its holds in order. The tests set the clock
 * and play the daemon.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/runner.h"
#include "tests/unit/client_driver.h"

static struct client_driver t;

static void begin(void)
{
    driver_begin(&t);
}

static void end(void)
{
    driver_end(&t);
}

const struct runner_settings runner_settings = {.setup = begin, .teardown = end};

/* --- timeouts --- */

TEST(request_ends_after_its_wait_and_the_timeout)
{
    ck_assert_int_eq(proto_until_ns(&t.proto), INT64_MAX);
    uint64_t a = driver_acquire(&t, "a", (struct redlock_lock_options){.wait_ms = 60000});
    ck_assert_int_eq(proto_until_ns(&t.proto), 1000 * MS + 60000 * MS + TIMEOUT);
    uint64_t b = driver_ping(&t);
    ck_assert_int_eq(proto_until_ns(&t.proto), 1000 * MS + TIMEOUT);
    driver_sent(&t);
    t.now_ns += TIMEOUT - 1;
    proto_expire(&t.proto, t.now_ns);
    driver_expect_none(&t);
    t.now_ns++;
    proto_expire(&t.proto, t.now_ns);
    driver_expect_answer(&t, b, REDLOCK_TIMEOUT);
    ck_assert(!proto_is_spent(&t.proto));
    t.now_ns += 60000 * MS;
    ck_assert_int_eq(proto_until_ns(&t.proto), t.now_ns);
    proto_expire(&t.proto, t.now_ns);
    driver_expect_answer(&t, a, REDLOCK_TIMEOUT);
    ck_assert_int_eq(proto_until_ns(&t.proto), INT64_MAX);
    ck_assert(proto_is_spent(&t.proto));
    proto_end(&t.proto, REDLOCK_BROKEN, "closed", false);
    driver_expect_none(&t);
    ck_assert(!proto_is_spent(&t.proto));
}

static void time_out(int64_t after_ns)
{
    uint64_t id = driver_ping(&t);
    driver_sent(&t);
    t.now_ns += after_ns;
    proto_expire(&t.proto, t.now_ns);
    driver_expect_answer(&t, id, REDLOCK_TIMEOUT);
}

/* Only a connection with a HOLD can count as dead. A connection without one is closed normally,
 * which makes the daemon undo what it may have granted. */
TEST(connection_silent_for_longer_than_its_holds_live_is_dead)
{
    time_out(20000 * MS);
    ck_assert(!proto_is_dead(&t.proto, t.now_ns));
    driver_acquire_granted(&t, "a", TOKEN, true); /* with a TTL of 10 s */
    /* An idle connection is not dead. */
    t.now_ns += 60000 * MS;
    ck_assert(!proto_is_dead(&t.proto, t.now_ns));
    int64_t asked_ns = t.now_ns;
    time_out(TIMEOUT);
    time_out(TIMEOUT);
    ck_assert(!proto_is_dead(&t.proto, asked_ns + 10000 * MS - 1));
    ck_assert(proto_is_dead(&t.proto, asked_ns + 10000 * MS));
    ck_assert(driver_receive(&t, "! WARN a " TOKEN " n1:timeout\n"));
    driver_expect(&t, REDLOCK_EVENT_WARN);
    ck_assert(!proto_is_dead(&t.proto, asked_ns + 60000 * MS));
    time_out(TIMEOUT);
    ck_assert(proto_is_dead(&t.proto, t.now_ns + 10000 * MS));
    proto_end(&t.proto, REDLOCK_BROKEN, "silent", true);
    driver_expect(&t, REDLOCK_EVENT_CLOSED);
    proto_begin(&t.proto);
    ck_assert(!proto_is_dead(&t.proto, t.now_ns + 10000 * MS));
}

TEST(request_not_sent_before_its_timeout_is_never_sent)
{
    uint64_t a = driver_acquire(&t, "a", (struct redlock_lock_options){0});
    t.now_ns += TIMEOUT;
    proto_expire(&t.proto, t.now_ns);
    ck_assert_str_eq(driver_sent(&t), "");
    driver_expect_answer(&t, a, REDLOCK_TIMEOUT);
    ck_assert(!proto_is_spent(&t.proto));
}

/* The caller takes the answer REDLOCK_TIMEOUT before the late grant arrives (_i is 0 or 2) or after
 * it (1 or 3). The request is a HOLD if _i is 2 or 3. */
TEST_LOOP(grant_after_the_timeout_is_released, 0, 4)
{
    uint64_t held = driver_acquire_granted(&t, "h", OTHER, true);
    uint64_t a = driver_acquire(&t, "a", (struct redlock_lock_options){.hold = _i / 2 != 0});
    driver_sent(&t);
    t.now_ns += TIMEOUT;
    proto_expire(&t.proto, t.now_ns);
    if (_i % 2 == 0)
        driver_expect_answer(&t, a, REDLOCK_TIMEOUT);
    ck_assert(!proto_is_spent(&t.proto));
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 9000 0 -\n", a));
    if (_i % 2 != 0)
        driver_expect_answer(&t, a, REDLOCK_TIMEOUT);
    ck_assert_uint_eq(t.proto.holds.count, 1);
    uint64_t unlock_id = 3 * LIMIT_CLIENT_REQUESTS + a % LIMIT_CLIENT_REQUESTS;
    ck_assert_uint_ne(held, a);
    driver_expect_sent(&t, "#%" PRIu64 " UNLOCK a " TOKEN "\n", unlock_id);
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK\n", unlock_id));
    driver_expect_none(&t);
    ck_assert_uint_eq(t.proto.living, 0);
    ck_assert_uint_eq(t.proto.abandoned, 0);
}

/* No late reply causes an event. The last one is a grant, which the client also releases, as in the
 * test above. */
TEST(other_late_replies_are_ignored)
{
    driver_acquire_granted(&t, "h", OTHER, true);
    static const char *const late[] = {"HELD 5", "ERR x y", "LATE 5", "SHUTDOWN",
                                       "OK " TOKEN " 9000 0 -"};
    for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
        uint64_t a = driver_acquire(&t, "a", (struct redlock_lock_options){0});
        driver_sent(&t);
        t.now_ns += TIMEOUT;
        proto_expire(&t.proto, t.now_ns);
        ck_assert(driver_receive(&t, "#%" PRIu64 " %s\n", a, late[i]));
        driver_expect_answer(&t, a, REDLOCK_TIMEOUT);
        ck_assert_uint_eq(t.proto.abandoned, 0);
        driver_expect_none(&t);
    }
}

/* The request was cancelled, so the client itself sends UNLOCK for the grant. The daemon never
 * answers that UNLOCK. */
TEST(release_by_the_client_itself_times_out)
{
    driver_acquire_granted(&t, "h", OTHER, true);
    uint64_t a = driver_acquire(&t, "a", (struct redlock_lock_options){0});
    driver_sent(&t);
    proto_cancel(&t.proto, a, t.now_ns);
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 9000 0 -\n", a));
    driver_sent(&t);
    ck_assert_int_eq(proto_until_ns(&t.proto), t.now_ns + TIMEOUT);
    t.now_ns += TIMEOUT;
    proto_expire(&t.proto, t.now_ns);
    driver_expect_none(&t);
    ck_assert_uint_eq(t.proto.abandoned, 1);
    ck_assert_uint_eq(t.proto.living, 0);
}

/* --- cancelled requests --- */

TEST(cancelled_request_has_no_answer)
{
    uint64_t a = driver_acquire(&t, "a", (struct redlock_lock_options){0});
    proto_cancel(&t.proto, a, t.now_ns);
    ck_assert_str_eq(driver_sent(&t), "");
    ck_assert(!proto_is_spent(&t.proto));
    uint64_t b = driver_acquire(&t, "b", (struct redlock_lock_options){.wait_ms = 60000});
    driver_sent(&t);
    proto_cancel(&t.proto, b, t.now_ns);
    proto_cancel(&t.proto, b, t.now_ns);
    proto_cancel(&t.proto, 0, t.now_ns);
    proto_cancel(&t.proto, UINT64_MAX, t.now_ns);
    ck_assert(proto_is_spent(&t.proto));
    t.now_ns += 65000 * MS;
    proto_expire(&t.proto, t.now_ns);
    driver_expect_none(&t);
}

TEST(cancel_releases_a_grant_that_the_caller_did_not_take)
{
    uint64_t a = driver_acquire(&t, "a", (struct redlock_lock_options){.hold = true});
    uint64_t b = driver_ping(&t);
    driver_sent(&t);
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 9000 0 -\n#%" PRIu64 " PONG\n", a, b));
    proto_cancel_all(&t.proto, t.now_ns);
    driver_expect_none(&t);
    ck_assert_uint_eq(t.proto.holds.count, 0);
    ck_assert_ptr_nonnull(strstr(driver_sent(&t), " UNLOCK a " TOKEN "\n"));
}

TEST(cancel_keeps_a_lock_that_the_caller_has_taken)
{
    uint64_t a = driver_acquire_granted(&t, "a", TOKEN, true);
    proto_cancel(&t.proto, a, t.now_ns);
    proto_cancel_all(&t.proto, t.now_ns);
    ck_assert_str_eq(driver_sent(&t), "");
    ck_assert_uint_eq(t.proto.holds.count, 1);
}

/* Acquire a HOLD whose grant arrives after its deadline, so that the client sends an EXTEND to
 * confirm it. Returns the id of that EXTEND. */
static uint64_t granted_late(uint64_t *id)
{
    *id = driver_acquire(&t, "a", (struct redlock_lock_options){.fence = true, .hold = true});
    uint64_t extend_id = *id + LIMIT_CLIENT_REQUESTS;
    driver_sent(&t);
    t.now_ns += 4000 * MS;
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 3000 0 7\n", *id));
    driver_expect_none(&t);
    driver_expect_sent(&t, "#%" PRIu64 " EXTEND a " TOKEN " 10000\n", extend_id);
    return extend_id;
}

TEST(grant_with_no_validity_left_is_confirmed)
{
    uint64_t a;
    uint64_t extend_id = granted_late(&a);
    int64_t asked_ns = t.now_ns;
    t.now_ns += 100 * MS;
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 9000 0\n", extend_id));
    struct redlock_event event = driver_expect_answer(&t, a, REDLOCK_OK);
    ck_assert_str_eq(event.lock.token, TOKEN);
    ck_assert_int_eq(event.lock.fence, 7);
    ck_assert(event.lock.hold);
    ck_assert_int_eq(event.lock.deadline_ns, asked_ns + 9000 * MS);
    ck_assert_int_eq(event.sent_ns, asked_ns);
    ck_assert_uint_eq(t.proto.holds.count, 1);
    ck_assert_str_eq(driver_sent(&t), "");
    ck_assert(driver_receive(&t, "! LOST a " TOKEN " noquorum\n"));
    driver_expect(&t, REDLOCK_EVENT_LOST);
    driver_expect_none(&t);
}

TEST_LOOP(unconfirmed_grant_is_late_and_released, 0, 6)
{
    static const char *const answers[] = {"GONE",
                                          "NOQUORUM 1/3 need=2 b:timeout",
                                          "LATE 5",
                                          "LIMIT extensions",
                                          "DENIED not yours",
                                          "OK " TOKEN " 50 0"};
    uint64_t a;
    uint64_t extend_id = granted_late(&a);
    t.now_ns += 100 * MS;
    ck_assert(driver_receive(&t, "#%" PRIu64 " %s\n", extend_id, answers[_i]));
    struct redlock_event event = driver_expect_answer(&t, a, REDLOCK_LATE);
    ck_assert_str_eq(t.proto.error, "the lock was granted too late: no validity is left");
    ck_assert_str_eq(event.lock.token, "");
    ck_assert_int_eq(event.lock.deadline_ns, 0);
    ck_assert_uint_eq(t.proto.holds.count, 0);
    if (_i == 0)
        ck_assert_str_eq(driver_sent(&t), "");
    else
        driver_expect_sent(&t, "#%" PRIu64 " UNLOCK a " TOKEN "\n",
                           extend_id + LIMIT_CLIENT_REQUESTS);
    driver_expect_none(&t);
}

/* LOST arrives while the confirming EXTEND is in flight. LOST is final, but the client cannot
 * report it for a lock that it has not yet granted to the caller. So the request ends with
 * REDLOCK_LATE, even if the EXTEND succeeds. */
TEST(hold_lost_before_its_confirmation_is_late)
{
    uint64_t a;
    uint64_t extend_id = granted_late(&a);
    ck_assert(driver_receive(&t, "! LOST a " OTHER " noquorum\n! LOST a " TOKEN " noquorum\n"));
    driver_expect_none(&t);
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 9000 0\n", extend_id));
    driver_expect_answer(&t, a, REDLOCK_LATE);
    ck_assert_uint_eq(t.proto.holds.count, 0);
    ck_assert_ptr_nonnull(strstr(driver_sent(&t), " UNLOCK a " TOKEN "\n"));
    driver_expect_none(&t);
}

/* The request times out or is cancelled, before or after the EXTEND was sent. The caller is told of
 * the timeout even if the lock is confirmed later. */
TEST_LOOP(request_abandoned_before_its_confirmation_is_released, 0, 4)
{
    bool sent = _i / 2 != 0;
    uint64_t a = driver_acquire(&t, "a", (struct redlock_lock_options){.wait_ms = 60000});
    uint64_t extend_id = a + LIMIT_CLIENT_REQUESTS;
    driver_sent(&t);
    t.now_ns += 4000 * MS;
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 3000 0 -\n", a));
    if (sent)
        driver_sent(&t);
    ck_assert_int_eq(proto_until_ns(&t.proto), t.now_ns + TIMEOUT);
    if (_i % 2 != 0) {
        t.now_ns += TIMEOUT;
        proto_expire(&t.proto, t.now_ns);
    } else {
        proto_cancel(&t.proto, a, t.now_ns);
    }
    /* The lock is not a HOLD, so closing the connection would not release it. */
    ck_assert(!proto_is_spent(&t.proto));
    if (sent)
        ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 9000 0\n", extend_id));
    if (_i % 2 != 0)
        driver_expect_answer(&t, a, REDLOCK_TIMEOUT);
    driver_expect_sent(&t, "#%" PRIu64 " UNLOCK a " TOKEN "\n", extend_id + LIMIT_CLIENT_REQUESTS);
    driver_expect_none(&t);
    ck_assert_uint_eq(t.proto.abandoned, 0);
}

/* The daemon never answers the EXTEND of an abandoned request. The client waits until the timeout
 * and then ends the connection. */
TEST_LOOP(abandoned_request_without_an_answer_ends_the_connection, 0, 4)
{
    uint64_t a = driver_acquire(
        &t, "a", (struct redlock_lock_options){.wait_ms = 60000, .hold = _i / 2 != 0});
    driver_sent(&t);
    t.now_ns += 4000 * MS;
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 3000 0 -\n", a));
    driver_sent(&t);
    if (_i % 2 != 0) {
        t.now_ns += TIMEOUT;
        proto_expire(&t.proto, t.now_ns);
        driver_expect_answer(&t, a, REDLOCK_TIMEOUT);
    } else {
        proto_cancel(&t.proto, a, t.now_ns);
    }
    /* Closing the connection releases a HOLD. */
    ck_assert(proto_is_spent(&t.proto) == (_i / 2 != 0));
    if (!proto_is_spent(&t.proto))
        ck_assert_int_eq(proto_until_ns(&t.proto), t.now_ns + TIMEOUT);
    t.now_ns += TIMEOUT;
    proto_expire(&t.proto, t.now_ns);
    ck_assert(proto_is_spent(&t.proto));
    driver_expect_none(&t);
}

TEST(cancel_releases_a_confirmed_grant_that_was_not_taken)
{
    uint64_t a;
    uint64_t extend_id = granted_late(&a);
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 9000 0\n", extend_id));
    proto_cancel(&t.proto, a, t.now_ns);
    ck_assert_ptr_nonnull(strstr(driver_sent(&t), " UNLOCK a " TOKEN "\n"));
    ck_assert_uint_eq(t.proto.holds.count, 0);
    driver_expect_none(&t);
}

TEST(unconfirmed_grant_ends_with_its_connection)
{
    uint64_t a;
    granted_late(&a);
    proto_end(&t.proto, REDLOCK_BROKEN, "closed", false);
    struct redlock_event event = driver_expect_answer(&t, a, REDLOCK_BROKEN);
    ck_assert_str_eq(event.lock.token, "");
    driver_expect_none(&t);
}

TEST(extension_with_no_validity_left_releases_nothing)
{
    struct client_request request;
    struct redlock_lock lock = {.resource = "a", .token = TOKEN, .deadline_ns = 90000 * MS};
    ck_assert(client_request_extend(&request, &lock, 5000, &t.error));
    uint64_t a = driver_ask(&t, &request);
    driver_sent(&t);
    t.now_ns += 4000 * MS;
    ck_assert(driver_receive(&t, "#%" PRIu64 " OK " TOKEN " 3000 0\n", a));
    driver_expect_answer(&t, a, REDLOCK_LATE);
    ck_assert_str_eq(driver_sent(&t), "");
}

/* --- holds --- */

TEST(loss_is_reported_once_and_before_later_replies)
{
    driver_acquire_granted(&t, "a", TOKEN, true);
    uint64_t b = driver_ping(&t);
    driver_sent(&t);
    ck_assert(driver_receive(&t, "! LOST a " TOKEN " noquorum\n! LOST a " TOKEN " gone\n"));
    ck_assert(driver_receive(&t, "#%" PRIu64 " PONG\n", b));
    struct redlock_event event = driver_next(&t);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert_str_eq(event.reason, "noquorum");
    ck_assert_str_eq(event.lock.token, TOKEN);
    driver_expect_answer(&t, b, REDLOCK_OK);
    ck_assert(driver_receive(&t, "! LOST a " TOKEN " noquorum\n"));
    driver_expect_none(&t);
}

TEST(released_hold_has_no_events)
{
    struct client_request request;
    ck_assert(client_request_release(&request, "a", TOKEN, &t.error));
    driver_acquire_granted(&t, "a", TOKEN, true);
    driver_acquire_granted(&t, "b", OTHER, true);
    ck_assert(driver_receive(&t, "! LOST a " TOKEN " noquorum\n! LOST b " OTHER " noquorum\n"));
    driver_ask(&t, &request);
    struct redlock_event event = driver_next(&t);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert_str_eq(event.lock.token, OTHER);
    driver_expect_none(&t);
}

TEST(loss_replaces_a_warning)
{
    driver_acquire_granted(&t, "a", TOKEN, true);
    ck_assert(driver_receive(&t, "! WARN a " TOKEN " n1:timeout\n! WARN a " TOKEN " n2:timeout\n"));
    struct redlock_event event = driver_next(&t);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_WARN);
    ck_assert_str_eq(event.reason, "n2:timeout");
    driver_expect_none(&t);
    ck_assert(driver_receive(&t, "! WARN a " TOKEN " n3:timeout\n! LOST a " TOKEN " noquorum\n"));
    ck_assert(driver_receive(&t, "! WARN a " TOKEN " n4:timeout\n"));
    driver_expect(&t, REDLOCK_EVENT_LOST);
    driver_expect_none(&t);
}

TEST(events_of_other_locks_are_ignored)
{
    driver_acquire_granted(&t, "a", TOKEN, true);
    driver_acquire_granted(&t, "b", "2123456789abcdef0123456789abcdef01234567", false);
    ck_assert(driver_receive(&t, "! LOST a " OTHER " gone\n! WARN a " OTHER " x:y\n"));
    ck_assert(driver_receive(&t, "! LOST b 2123456789abcdef0123456789abcdef01234567 gone\n"));
    driver_expect_none(&t);
    ck_assert_uint_eq(t.proto.holds.count, 1);
}

TEST(lock_being_released_has_no_events)
{
    struct client_request request;
    driver_acquire_granted(&t, "a", TOKEN, true);
    ck_assert(driver_receive(&t, "! WARN a " TOKEN " n1:timeout\n"));
    ck_assert(client_request_release(&request, "a", TOKEN, &t.error));
    driver_ask(&t, &request);
    ck_assert(driver_receive(&t, "! LOST a " TOKEN " gone\n"));
    driver_expect_none(&t);
}

TEST(long_reason_is_truncated)
{
    driver_acquire_granted(&t, "a", TOKEN, true);
    ck_assert(driver_receive(&t, "! WARN a " TOKEN " %0100d\n", 1));
    ck_assert_uint_eq(strlen(driver_next(&t).reason), 63);
}

TEST(flood_of_warnings_takes_no_memory)
{
    driver_acquire_granted(&t, "a", TOKEN, true);
    driver_acquire_granted(&t, "b", OTHER, true);
    for (unsigned i = 0; i < 10000; i++)
        ck_assert(
            driver_receive(&t, "! WARN a " TOKEN " n1:timeout\n! WARN b " OTHER " n1:timeout\n"));
    driver_expect(&t, REDLOCK_EVENT_WARN);
    driver_expect(&t, REDLOCK_EVENT_WARN);
    driver_expect_none(&t);
}
