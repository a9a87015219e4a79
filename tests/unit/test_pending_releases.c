/*
 * engine/master/pending_releases.h: the ring of releases that one node has not confirmed, compared
 * with a plain list.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/master/pending_releases.h"
#include "protocol/limits.h"
#include "tests/runner.h"

enum { SIZE = 7 };

static struct pending_release memory[SIZE];

static struct pending_releases empty(void)
{
    return (struct pending_releases){.entries = memory, .size = SIZE};
}

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

static void push(struct pending_releases *pending_releases, unsigned number, size_t key_len)
{
    char key[LIMIT_KEY];
    char token[LIMIT_TOKEN];
    key_of(number, key);
    token_of(number, token);
    pending_releases_push(pending_releases, key, key_len, token);
}

/* Assert that this entry is next. Returns its position. */
static uint64_t assert_next(struct pending_releases *pending_releases, unsigned number,
                            size_t key_len)
{
    uint64_t position;
    char key[LIMIT_KEY];
    char token[LIMIT_TOKEN];
    key_of(number, key);
    token_of(number, token);
    const struct pending_release *entry = pending_releases_next(pending_releases, &position);
    ck_assert_ptr_nonnull(entry);
    ck_assert_mem_eq(entry->token, token, LIMIT_TOKEN);
    ck_assert_uint_eq(entry->key_len, key_len);
    ck_assert_mem_eq(entry->key, key, key_len);
    return position;
}

static void assert_none(struct pending_releases *pending_releases)
{
    uint64_t position;
    ck_assert_ptr_null(pending_releases_next(pending_releases, &position));
}

TEST(entries_come_in_the_order_of_their_pushes)
{
    struct pending_releases pending_releases = empty();
    assert_none(&pending_releases);
    push(&pending_releases, 1, 10);
    push(&pending_releases, 2, 20);
    assert_next(&pending_releases, 1, 10);
    assert_next(&pending_releases, 2, 20);
    assert_none(&pending_releases);
    ck_assert_uint_eq(pending_releases.count, 2);
}

TEST(unconfirmed_release_is_sent_again)
{
    struct pending_releases pending_releases = empty();
    push(&pending_releases, 1, 10);
    push(&pending_releases, 2, 10);
    push(&pending_releases, 3, 10);
    uint64_t first = assert_next(&pending_releases, 1, 10);
    assert_next(&pending_releases, 2, 10);
    pending_releases_confirm(&pending_releases, first);
    pending_releases_confirm(&pending_releases, first);
    ck_assert_uint_eq(pending_releases.count, 2);
    pending_releases_rewind(&pending_releases);
    assert_next(&pending_releases, 2, 10);
    pending_releases_confirm(&pending_releases, assert_next(&pending_releases, 3, 10));
    ck_assert_uint_eq(pending_releases.count, 0);
    ck_assert_uint_eq(pending_releases.unsent, 0);
}

TEST(full_ring_drops_the_oldest)
{
    struct pending_releases pending_releases = empty();
    for (unsigned i = 0; i < 100; i++)
        push(&pending_releases, i, 100);
    ck_assert_uint_eq(pending_releases.dropped + pending_releases.count, 100);
    ck_assert_uint_eq(pending_releases.count, SIZE);
    for (unsigned i = (unsigned)pending_releases.dropped; i < 100; i++)
        assert_next(&pending_releases, i, 100);
    assert_none(&pending_releases);
}

TEST(empty_ring_starts_at_the_beginning_of_its_memory)
{
    struct pending_releases pending_releases = empty();
    memset(memory, 0, sizeof(memory));
    for (unsigned i = 0; i < 100; i++) {
        push(&pending_releases, i, 10);
        push(&pending_releases, i, 10);
        assert_next(&pending_releases, i, 10);
        pending_releases_confirm(&pending_releases, assert_next(&pending_releases, i, 10));
    }
    for (unsigned i = 2; i < SIZE; i++)
        ck_assert_uint_eq(memory[i].key_len, 0);
}

TEST(answer_to_a_dropped_release_has_no_effect)
{
    struct pending_releases pending_releases = empty();
    push(&pending_releases, 0, 100);
    uint64_t sent = assert_next(&pending_releases, 0, 100);
    for (unsigned i = 1; i < 50; i++)
        push(&pending_releases, i, 100);
    size_t count = pending_releases.count;
    pending_releases_confirm(&pending_releases, sent);
    pending_releases_retry_later(&pending_releases, sent, 1000, 0);
    ck_assert_uint_eq(pending_releases.count, count);
}

TEST(release_refused_for_too_long_is_dropped)
{
    struct pending_releases pending_releases = empty();
    push(&pending_releases, 1, 10);
    push(&pending_releases, 2, 10);
    pending_releases_retry_later(&pending_releases, assert_next(&pending_releases, 1, 10), 1000,
                                 5000);
    /* A refused release goes to the end of the ring. Its age counts from the first refusal. */
    pending_releases_confirm(&pending_releases, assert_next(&pending_releases, 2, 10));
    pending_releases_retry_later(&pending_releases, assert_next(&pending_releases, 1, 10), 1000,
                                 5999);
    uint64_t again = assert_next(&pending_releases, 1, 10);
    ck_assert_uint_eq(pending_releases.dropped, 0);
    pending_releases_retry_later(&pending_releases, again, 1000, 6000);
    ck_assert_uint_eq(pending_releases.count, 0);
    ck_assert_uint_eq(pending_releases.dropped, 1);
}

/* The model: the entries in order, and how many of them are sent. */
struct model {
    unsigned numbers[SIZE + 1];
    size_t key_lens[SIZE + 1];
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

/* Random pushes, sends, confirmations, refusals and rewinds, at every position of the ring. */
TEST(random_use_agrees_with_a_list)
{
    struct pending_releases pending_releases = empty();
    struct model model = {0};
    uint64_t positions[SIZE + 1];
    uint32_t random = 12345;
    for (unsigned number = 0; number < 400000; number++) {
        random = random * 1664525 + 1013904223;
        unsigned action = random >> 29;
        size_t key_len = 1 + (random >> 8) % LIMIT_KEY;
        uint64_t dropped = pending_releases.dropped;
        if (action < 4) {
            push(&pending_releases, number, key_len);
            unsigned lost = (unsigned)(pending_releases.dropped - dropped);
            memmove(positions, positions + lost, sizeof(positions) - lost * sizeof(positions[0]));
            drop_oldest(&model, lost);
            model.numbers[model.count] = number;
            model.key_lens[model.count++] = key_len;
        } else if (action < 6 && model.sent < model.count) {
            positions[model.sent] = assert_next(&pending_releases, model.numbers[model.sent],
                                                model.key_lens[model.sent]);
            model.sent++;
        } else if (action == 6 && model.sent > 0) {
            unsigned first = model.numbers[0];
            key_len = model.key_lens[0];
            bool refused = (random >> 20) % 4 == 0;
            if (refused)
                pending_releases_retry_later(&pending_releases, positions[0], INT64_MAX, 1);
            else
                pending_releases_confirm(&pending_releases, positions[0]);
            unsigned lost = 1 + (unsigned)(pending_releases.dropped - dropped);
            memmove(positions, positions + lost, sizeof(positions) - lost * sizeof(positions[0]));
            drop_oldest(&model, lost);
            if (refused) {
                model.numbers[model.count] = first;
                model.key_lens[model.count++] = key_len;
            }
        } else if (action == 7 && (random >> 20) % 8 == 0) {
            pending_releases_rewind(&pending_releases);
            model.sent = 0;
        }
        ck_assert_uint_eq(pending_releases.count, model.count);
        ck_assert_uint_eq(pending_releases.unsent, model.count - model.sent);
    }
    ck_assert_uint_gt(pending_releases.dropped, 1000);
}
