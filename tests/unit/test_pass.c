/* The time that clients have in a pass of the event loop. */
#include "server/net/pass.h"
#include "tests/runner.h"

static void do_nothing(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    (void)context;
}

static void end_pass(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    pass_ended(context);
}

TEST(clients_have_a_budget_in_each_pass)
{
    struct event_base *base = event_base_new();
    struct pass pass;
    ck_assert(pass_init(&pass, base, do_nothing, NULL));
    for (int64_t now_ns = NS_PER_S; now_ns < 3 * NS_PER_S; now_ns += NS_PER_S) {
        ck_assert(pass_has_time(&pass, now_ns));
        ck_assert(pass_has_time(&pass, now_ns + PASS_BUDGET_NS - 1));
        ck_assert(!pass_has_time(&pass, now_ns + PASS_BUDGET_NS));
        pass_want_end(&pass);
        pass_ended(&pass);
    }
    pass_deinit(&pass);
    event_base_free(base);
}

/* Otherwise the next pass would begin without time. */
TEST(a_budget_ends_with_its_pass)
{
    struct event_base *base = event_base_new();
    struct pass pass;
    ck_assert(pass_init(&pass, base, end_pass, &pass));
    ck_assert(pass_has_time(&pass, NS_PER_S));
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    ck_assert(pass_has_time(&pass, NS_PER_S + PASS_BUDGET_NS));
    pass_deinit(&pass);
    event_base_free(base);
}
