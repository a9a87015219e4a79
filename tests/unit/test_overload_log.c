/* server/overload_log.h: when the log says that the daemon is overloaded. */
#include "server/overload_log.h"
#include "tests/runner.h"

static struct overload_log overload;
static int64_t now_ns;

static enum overload_news pass_ms(int64_t ms, size_t held_back)
{
    now_ns += ms * NS_PER_MS;
    return overload_log_step(&overload, held_back, now_ns);
}

static void setup(void)
{
    overload = (struct overload_log){0};
    now_ns = NS_PER_S;
}

const struct runner_settings runner_settings = {.setup = setup};

TEST(burst_is_no_overload)
{
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(pass_ms(1, 1000), OVERLOAD_SAME);
        ck_assert_int_eq(pass_ms(900, 1000), OVERLOAD_SAME);
        ck_assert_int_eq(pass_ms(1, 0), OVERLOAD_SAME);
    }
}

TEST(overload_begins_and_ends_once)
{
    ck_assert(!overload_log_is_due(&overload, 0));
    ck_assert_int_eq(pass_ms(1, 10), OVERLOAD_SAME);
    ck_assert_int_eq(pass_ms(500, 70), OVERLOAD_SAME);
    ck_assert_int_eq(pass_ms(500, 20), OVERLOAD_BEGINS);
    ck_assert_int_eq(pass_ms(500, 20), OVERLOAD_SAME);
    ck_assert_int_eq(pass_ms(500, 0), OVERLOAD_SAME);
    ck_assert_int_eq(pass_ms(500, 5), OVERLOAD_SAME);
    ck_assert_int_eq(pass_ms(500, 0), OVERLOAD_SAME);
    ck_assert(overload_log_is_due(&overload, 0));
    ck_assert_int_eq(pass_ms(1000, 0), OVERLOAD_ENDS);
    ck_assert_uint_eq(overload.most, 70);
    ck_assert_int_eq(overload.began_ns, NS_PER_S + NS_PER_MS);
    ck_assert(!overload_log_is_due(&overload, 0));
}
