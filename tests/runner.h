/*
 * The tests of a program. A test file defines its tests, and tests/runner.c has the main() that
 * runs them, in the order of the file and each in its own process:
 *
 *     TEST(lock_is_granted_at_a_quorum)
 *     {
 *         ck_assert(...);
 *     }
 *
 * TEST_LOOP(name, from, end) runs its test once for each value of _i from `from` to end - 1.
 * TEST_ROWS(name, table) runs its test once for each row of an array: table[_i].
 */
#ifndef TESTS_RUNNER_H
#define TESTS_RUNNER_H

#include <check.h>
#include <stddef.h>

struct runner_test {
    const TTest test;
    int from, end;
    struct runner_test *next;
};

/* Adds a test to the program. Called before main(). */
void runner_add(struct runner_test *added);

/* Runs a test between setup() and teardown(). */
void runner_run(const char *name, void (*test)(int i), int i);

extern const char *runner_test_name; /* of the test that runs */

/* A number in the environment; `otherwise` if it is not set, or is empty. */
unsigned runner_setting(const char *name, unsigned otherwise);

#define TEST(name)             TEST_LOOP(name, 0, 1)
#define TEST_ROWS(name, table) TEST_LOOP(name, 0, sizeof(table) / sizeof((table)[0]))
#define TEST_LOOP(name, from, end)                                                                 \
    static void name(int _i);                                                                      \
    static void name##_run(int i)                                                                  \
    {                                                                                              \
        runner_run(#name, name, i);                                                                \
    }                                                                                              \
    __attribute__((constructor)) static void name##_add(void)                                      \
    {                                                                                              \
        static struct runner_test added = {                                                        \
            {#name, name##_run, __FILE__, __LINE__}, from, end, NULL};                             \
        runner_add(&added);                                                                        \
    }                                                                                              \
    static void name(int _i __attribute__((unused)))

/* What a program needs for its tests, if it defines this. */
struct runner_settings {
    void (*setup)(void);    /* before each test, in its process; NULL: nothing */
    void (*teardown)(void); /* after a test that has passed */
    int time_limit_s; /* of each test, against tests that hang; 0: CK_DEFAULT_TIMEOUT, or 300 */
};
extern const struct runner_settings runner_settings __attribute__((weak));

/* What main() calls before the first test and after the last, if the program defines this. */
struct runner_frame {
    void (*open)(void);
    void (*close)(void);
};
extern const struct runner_frame runner_frame __attribute__((weak));

#endif
