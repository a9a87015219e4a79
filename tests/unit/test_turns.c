/*
 * server/clients/turns.h: which sessions take input in a pass of the event loop, and how much.
 */
#include "engine/internal.h"
#include "protocol/limits.h"
#include "tests/runner.h"
#include "tests/unit/session_fixture.h"

static struct turns *turns;
static int64_t now_ns;
static struct turn a, b, c, d;

static void setup(void)
{
    open_fixture();
    turns = &fixture.clients.turns;
    now_ns = virtual_ns;
    a = b = c = d = (struct turn){0};
}

const struct runner_settings runner_settings = {.setup = setup, .teardown = close_fixture};

/* The end of a pass. Returns whether the next one has to give sessions their turns. */
static bool end_pass(void)
{
    bool more = turns_end_pass(turns);
    pass_ended(&fixture.pass);
    return more;
}

static bool may_begin(struct turn *turn)
{
    turns_begin(turns, turn, now_ns);
    return turn->lines_left > 0;
}

TEST(the_time_for_clients_begins_with_the_first_session_of_a_pass)
{
    ck_assert(may_begin(&a));
    now_ns += PASS_BUDGET_NS - 1;
    ck_assert(may_begin(&b));
    now_ns++;
    ck_assert(!may_begin(&c));
    ck_assert(!end_pass());
    ck_assert(may_begin(&c));
    end_pass();
}

TEST(sessions_queue_up_once_the_time_is_over)
{
    ck_assert(turns_may_read(turns, &a));
    ck_assert(may_begin(&a));
    now_ns += PASS_BUDGET_NS;
    ck_assert(turns_may_read(turns, &b));
    ck_assert(!may_begin(&b));
    turns_wait(turns, &b);
    ck_assert(!turns_may_read(turns, &c));
    ck_assert(end_pass());

    /* Until each has had its turn, sessions with new input queue up after them. */
    ck_assert(!turns_may_read(turns, &a));
    turns_start(turns);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &b);
    ck_assert(may_begin(&b));
    ck_assert_ptr_eq(turns_next(turns, now_ns), &c);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &a);
    ck_assert_ptr_null(turns_next(turns, now_ns));
    ck_assert(turns_may_read(turns, &b));
    ck_assert(!end_pass());
}

TEST(the_queue_goes_on_in_the_next_pass_when_the_time_is_over)
{
    turns_wait(turns, &a);
    turns_wait(turns, &b);
    ck_assert(end_pass());
    turns_start(turns);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &a);
    now_ns += PASS_BUDGET_NS;
    ck_assert_ptr_null(turns_next(turns, now_ns));
    ck_assert(!turns_may_read(turns, &c));
    ck_assert(end_pass());
    turns_start(turns);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &b);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &c);
    ck_assert(!end_pass());
}

TEST(a_session_that_queues_up_again_waits_for_the_next_pass)
{
    turns_wait(turns, &a);
    turns_wait(turns, &b);
    ck_assert(end_pass());
    turns_start(turns);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &a);
    turns_wait(turns, &a);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &b);
    ck_assert_ptr_null(turns_next(turns, now_ns));
    ck_assert(a.waits);
    ck_assert(end_pass());
    turns_start(turns);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &a);
    end_pass();
}

/* Two slow sessions in a pass: one of the queue, and one outside it. */
TEST(one_slow_session_of_the_queue_has_its_turn_in_a_pass)
{
    struct turn *const slow[] = {&a, &b};
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(may_begin(slow[i]));
        ck_assert_int_eq(turns_may_be_slow(turns, slow[i]), i == 0);
        turns_end_slow(turns, slow[i]);
        ck_assert_uint_eq(slow[i]->lines_left, 0);
        turns_wait(turns, slow[i]);
    }
    turns_wait(turns, &c);
    ck_assert(end_pass());
    ck_assert(may_begin(&d));
    ck_assert(turns_may_be_slow(turns, &d));
    turns_end_slow(turns, &d);
    turns_start(turns);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &a);
    ck_assert(may_begin(&a));
    turns_end_slow(turns, &a);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &c);
    ck_assert_ptr_null(turns_next(turns, now_ns));
    ck_assert(b.waits);
    ck_assert(!may_begin(&a));
    ck_assert(!turns_may_read(turns, &a));
    ck_assert(end_pass());
    turns_start(turns);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &b);
    ck_assert(may_begin(&b));
    end_pass();
}

TEST(a_slow_session_queues_up_after_others)
{
    ck_assert(may_begin(&a));
    turns_end_slow(turns, &a);
    ck_assert(!turns_may_read(turns, &a));
    ck_assert(turns_may_read(turns, &b));
    turns_leave(turns, &a);
    ck_assert(!end_pass());

    turns_wait(turns, &b);
    ck_assert(!turns_may_read(turns, &a));
    ck_assert(turns_may_read(turns, &c));
    ck_assert(end_pass());
    turns_start(turns);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &b);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &a);
    ck_assert(may_begin(&a));
    ck_assert(!end_pass());

    /* Its last turn was not slow. */
    turns_wait(turns, &b);
    ck_assert(turns_may_read(turns, &a));
    end_pass();
}

/* Otherwise the daemon would run passes without a pause until a round settles. */
TEST(no_session_has_its_turn_while_the_engine_takes_no_requests)
{
    unsigned *in_flight = &fixture.clients.engine->flights.admission.in_flight;
    turns_wait(turns, &a);
    *in_flight = 2 * LIMIT_ADMISSION_START + 1;
    ck_assert(!may_begin(&b));
    ck_assert(!end_pass());
    *in_flight = 0;
    /* As after each pass in which a round has settled. */
    pass_want_end(&fixture.pass);
    ck_assert(end_pass());
}

TEST(a_session_alone_takes_more_lines)
{
    ck_assert(may_begin(&a));
    ck_assert_uint_eq(a.lines_left, LIMIT_READ_BUDGET);
    end_pass();
    ck_assert(may_begin(&a));
    ck_assert_uint_eq(a.lines_left, LIMIT_READ_BUDGET_ALONE);
    ck_assert(may_begin(&b));
    end_pass();
    ck_assert(may_begin(&b));
    ck_assert_uint_eq(b.lines_left, LIMIT_READ_BUDGET);
    end_pass();
    pass_want_end(&fixture.pass);
    end_pass();
    ck_assert(may_begin(&a));
    ck_assert_uint_eq(a.lines_left, LIMIT_READ_BUDGET_ALONE);
    end_pass();
}

TEST(a_session_that_leaves_loses_its_place)
{
    turns_wait(turns, &a);
    turns_wait(turns, &a);
    turns_wait(turns, &b);
    turns_leave(turns, &a);
    ck_assert(end_pass());
    turns_start(turns);
    ck_assert_ptr_eq(turns_next(turns, now_ns), &b);
    ck_assert_ptr_null(turns_next(turns, now_ns));
    end_pass();
}
