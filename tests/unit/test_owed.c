/*
 * engine/master/owed.h: the ring of releases a node is owed, against a plain list as its model.
 */
#include <stdio.h>
#include <string.h>

#include "engine/master/owed.h"
#include "protocol/limits.h"
#include "tests/runner.h"

enum { SIZE = 1024, TOKENS = 64 };

static char memory[SIZE];

static void token_of(unsigned number, char *token)
{
    char text[LIMIT_TOKEN + 1];
    snprintf(text, sizeof(text), "%040x", number);
    memcpy(token, text, LIMIT_TOKEN);
}

static void key_of(unsigned number, char *key)
{
    memset(key, 'a' + (int)(number % 26), LIMIT_KEY);
}

static void push(struct owed *owed, unsigned number, size_t key_len)
{
    char key[LIMIT_KEY];
    char token[LIMIT_TOKEN];
    key_of(number, key);
    token_of(number, token);
    owed_push(owed, key, key_len, token);
}

static void assert_next(struct owed *owed, unsigned number, size_t key_len,
                        struct owed_entry *entry)
{
    char key[LIMIT_KEY];
    char token[LIMIT_TOKEN];
    key_of(number, key);
    token_of(number, token);
    ck_assert(owed_next(owed, entry));
    ck_assert_mem_eq(entry->token, token, LIMIT_TOKEN);
    ck_assert_uint_eq(entry->key_len, key_len);
    ck_assert_mem_eq(entry->key, key, key_len);
}

START_TEST(entries_come_in_the_order_they_were_pushed)
{
    struct owed owed;
    struct owed_entry entry;
    owed_init(&owed, memory, SIZE);
    ck_assert(!owed_next(&owed, &entry));
    push(&owed, 1, 10);
    push(&owed, 2, 20);
    assert_next(&owed, 1, 10, &entry);
    assert_next(&owed, 2, 20, &entry);
    ck_assert(!owed_next(&owed, &entry));
    ck_assert_uint_eq(owed.count, 2);
}
END_TEST

START_TEST(what_was_not_confirmed_is_sent_again)
{
    struct owed owed;
    struct owed_entry first;
    struct owed_entry entry;
    owed_init(&owed, memory, SIZE);
    push(&owed, 1, 10);
    push(&owed, 2, 10);
    push(&owed, 3, 10);
    assert_next(&owed, 1, 10, &first);
    assert_next(&owed, 2, 10, &entry);
    owed_confirm(&owed, first.end);
    owed_confirm(&owed, first.end);
    ck_assert_uint_eq(owed.count, 2);
    owed_rewind(&owed);
    assert_next(&owed, 2, 10, &entry);
    assert_next(&owed, 3, 10, &entry);
    owed_confirm(&owed, entry.end);
    ck_assert_uint_eq(owed.count, 0);
    ck_assert_uint_eq(owed.unsent, 0);
}
END_TEST

START_TEST(a_full_ring_forgets_the_oldest)
{
    struct owed owed;
    struct owed_entry entry;
    owed_init(&owed, memory, SIZE);
    for (unsigned i = 0; i < 100; i++)
        push(&owed, i, 100);
    ck_assert_uint_eq(owed.dropped + owed.count, 100);
    ck_assert_uint_ge(owed.count, 6);
    for (unsigned i = (unsigned)owed.dropped; i < 100; i++)
        assert_next(&owed, i, 100, &entry);
    ck_assert(!owed_next(&owed, &entry));
}
END_TEST

START_TEST(an_answer_to_what_was_forgotten_does_no_harm)
{
    struct owed owed;
    struct owed_entry sent;
    owed_init(&owed, memory, SIZE);
    push(&owed, 0, 100);
    assert_next(&owed, 0, 100, &sent);
    for (unsigned i = 1; i < 50; i++)
        push(&owed, i, 100);
    unsigned count = owed.count;
    owed_confirm(&owed, sent.end);
    owed_put_off(&owed, sent.end, 1000, 0);
    ck_assert_uint_eq(owed.count, count);
}
END_TEST

START_TEST(what_is_refused_for_too_long_is_forgotten)
{
    struct owed owed;
    struct owed_entry sent;
    owed_init(&owed, memory, SIZE);
    push(&owed, 1, 10);
    push(&owed, 2, 10);
    assert_next(&owed, 1, 10, &sent);
    owed_put_off(&owed, sent.end, 1000, 5000);
    /* Behind the other; and it counts from the first time. */
    assert_next(&owed, 2, 10, &sent);
    owed_confirm(&owed, sent.end);
    assert_next(&owed, 1, 10, &sent);
    owed_put_off(&owed, sent.end, 1000, 5999);
    assert_next(&owed, 1, 10, &sent);
    ck_assert_uint_eq(owed.dropped, 0);
    owed_put_off(&owed, sent.end, 1000, 6000);
    ck_assert_uint_eq(owed.count, 0);
    ck_assert_uint_eq(owed.dropped, 1);
}
END_TEST

/* The model: numbers in order, how many of them are sent. */
struct model {
    unsigned numbers[TOKENS];
    size_t key_lens[TOKENS];
    unsigned count;
    unsigned sent;
};

static void drop_oldest(struct model *model, unsigned dropped)
{
    for (; dropped > 0; dropped--) {
        model->count--;
        model->sent -= model->sent > 0;
        memmove(model->numbers, model->numbers + 1, model->count * sizeof(model->numbers[0]));
        memmove(model->key_lens, model->key_lens + 1, model->count * sizeof(model->key_lens[0]));
    }
}

/* Random pushes, sends, confirmations, refusals and rewinds, at every alignment of the ring. */
START_TEST(random_use_agrees_with_a_list)
{
    struct owed owed;
    struct model model = {0};
    uint64_t ends[TOKENS];
    uint32_t random = 12345;
    owed_init(&owed, memory, SIZE);
    for (unsigned number = 0; number < 400000; number++) {
        random = random * 1664525 + 1013904223;
        unsigned action = random >> 29;
        size_t key_len = 1 + (random >> 8) % LIMIT_KEY;
        uint64_t dropped = owed.dropped;
        struct owed_entry entry;
        if (action < 4) {
            push(&owed, number, key_len);
            unsigned lost = (unsigned)(owed.dropped - dropped);
            memmove(ends, ends + lost, sizeof(ends) - lost * sizeof(ends[0]));
            drop_oldest(&model, lost);
            model.numbers[model.count] = number;
            model.key_lens[model.count++] = key_len;
        } else if (action < 6 && model.sent < model.count) {
            assert_next(&owed, model.numbers[model.sent], model.key_lens[model.sent], &entry);
            ends[model.sent++] = entry.end;
        } else if (action == 6 && model.sent > 0) {
            unsigned first = model.numbers[0];
            key_len = model.key_lens[0];
            bool refused = (random >> 20) % 4 == 0;
            if (refused)
                owed_put_off(&owed, ends[0], INT64_MAX, 1);
            else
                owed_confirm(&owed, ends[0]);
            unsigned lost = 1 + (unsigned)(owed.dropped - dropped);
            memmove(ends, ends + lost, sizeof(ends) - lost * sizeof(ends[0]));
            drop_oldest(&model, lost);
            if (refused) {
                model.numbers[model.count] = first;
                model.key_lens[model.count++] = key_len;
            }
        } else if (action == 7 && (random >> 20) % 8 == 0) {
            owed_rewind(&owed);
            model.sent = 0;
        }
        ck_assert_uint_eq(owed.count, model.count);
        ck_assert_uint_eq(owed.unsent, model.count - model.sent);
    }
    ck_assert_uint_gt(owed.dropped, 1000);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("owed");
    TCase *cases = tcase_create("owed");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, entries_come_in_the_order_they_were_pushed);
    tcase_add_test(cases, what_was_not_confirmed_is_sent_again);
    tcase_add_test(cases, a_full_ring_forgets_the_oldest);
    tcase_add_test(cases, an_answer_to_what_was_forgotten_does_no_harm);
    tcase_add_test(cases, what_is_refused_for_too_long_is_forgotten);
    tcase_add_test(cases, random_use_agrees_with_a_list);
    suite_add_tcase(suite, cases);
    return suite;
}
