/*
 * server/clients/reply_queue.h: replies come in the order of their commands, in whatever order the
 * commands are answered.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/limits.h"
#include "server/clients/reply_queue.h"
#include "tests/runner.h"

enum { MOST = LIMIT_CLIENT_REQUESTS };

static struct reply_queue queue;
static uint16_t slots[MOST]; /* of each pending command */

/* What was written to the connection. */
static char written[32 * MOST];
static size_t written_len;

static void open_queue(void)
{
    memset(&queue, 0, sizeof(queue));
    written_len = 0;
    written[0] = '\0';
}

static void write_bytes(void *context, const char *bytes, size_t len)
{
    ck_assert_ptr_eq(context, &queue);
    ck_assert_uint_lt(written_len + len, sizeof(written));
    memcpy(written + written_len, bytes, len);
    written_len += len;
    written[written_len] = '\0';
}

static void open_command(unsigned number)
{
    slots[number] = reply_queue_open(&queue);
    ck_assert_uint_ne(slots[number], REPLY_QUEUE_NONE);
}

static void answer(unsigned number)
{
    char reply[16];
    size_t len = (size_t)snprintf(reply, sizeof(reply), "%u ", number);
    ck_assert(reply_queue_settle(&queue, slots[number], reply, len, NULL, write_bytes, &queue));
}

static void keep(const char *reply)
{
    ck_assert(reply_queue_keep(&queue, reply, strlen(reply)));
}

/* Adds the numbers from `first` on, as answer() writes them. */
static const char *numbers(unsigned first, unsigned count)
{
    static char text[16 * MOST];
    size_t len = 0;
    text[0] = '\0';
    for (unsigned i = first; i < first + count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%u ", i);
    return text;
}

/* --- order --- */

TEST(replies_that_are_ready_in_order_are_written_at_once)
{
    open_queue();
    for (unsigned i = 0; i < 4; i++)
        open_command(i);
    for (unsigned i = 0; i < 4; i++) {
        answer(i);
        ck_assert_str_eq(written, numbers(0, i + 1));
        ck_assert_uint_eq(queue.kept, 0);
        ck_assert_uint_eq(queue.pending, 3 - i);
    }
    reply_queue_deinit(&queue);
}

TEST(replies_that_are_ready_early_wait_for_the_oldest)
{
    open_queue();
    for (unsigned i = 0; i < 4; i++)
        open_command(i);
    for (unsigned i = 3; i > 0; i--) {
        answer(i);
        ck_assert_str_eq(written, "");
        ck_assert_uint_eq(queue.pending, i);
        ck_assert_uint_eq(queue.kept, 2 * (4 - i));
    }
    answer(0);
    ck_assert_str_eq(written, "0 1 2 3 ");
    ck_assert_uint_eq(queue.kept, 0);
    ck_assert_uint_eq(queue.pending, 0);
    reply_queue_deinit(&queue);
}

/* The drawing in reply_queue.h. */
TEST(replies_of_later_commands_merge_into_the_earlier_one)
{
    open_queue();
    open_command(0);
    open_command(1);
    keep("PONG ");
    open_command(2);
    open_command(3);
    answer(1);
    answer(3);
    ck_assert_str_eq(written, "");
    ck_assert_uint_eq(queue.pending, 2);
    answer(0);
    ck_assert_str_eq(written, "0 1 PONG ");
    ck_assert_uint_eq(queue.kept, 2);
    answer(2);
    ck_assert_str_eq(written, "0 1 PONG 2 3 ");
    ck_assert_uint_eq(queue.kept, 0);
    reply_queue_deinit(&queue);
}

/* Plays one schedule of COMMANDS commands. Each digit of `schedule` decides the next step: to send
 * a command that stays pending, to send one that is answered at once, or which of the pending ones
 * is answered. The reply to the command n is "n ", always in the order of the commands. */
static void play(unsigned schedule, unsigned commands)
{
    unsigned pending[MOST];
    unsigned count = 0;
    open_queue();
    for (unsigned sent = 0; sent < commands || count > 0;) {
        unsigned choices = (sent < commands ? 2 : 0) + count;
        unsigned choice = schedule % choices;
        schedule /= choices;
        if (choice < count) {
            answer(pending[choice]);
            pending[choice] = pending[--count];
        } else if (choice == count || count == 0) {
            open_command(sent);
            pending[count++] = sent++;
        } else {
            keep(numbers(sent++, 1));
        }
        ck_assert_uint_eq(queue.pending, count);
        ck_assert(count > 0 || queue.kept == 0);
        ck_assert_mem_eq(written, numbers(0, sent), written_len);
    }
    ck_assert_str_eq(written, numbers(0, commands));
    reply_queue_deinit(&queue);
}

/* All schedules of five commands have less than this number of choices together. */
TEST(every_schedule_of_five_commands_keeps_the_order)
{
    for (unsigned schedule = 0; schedule < 400000; schedule++)
        play(schedule, 5);
}

TEST(random_schedules_of_many_commands_keep_the_order)
{
    uint32_t random = 4711;
    for (unsigned i = 0; i < 300; i++) {
        unsigned count = 0;
        unsigned sent = 0;
        unsigned pending[64];
        open_queue();
        while (sent < 200 || count > 0) {
            random = random * 1664525 + 1013904223;
            unsigned choice = random >> 16;
            if (sent < 200 && count < 64 && choice % 3 > 0) {
                if (count == 0 || choice % 2 == 0) {
                    open_command(sent);
                    pending[count++] = sent;
                } else {
                    keep(numbers(sent, 1));
                }
                sent++;
            } else if (count > 0) {
                unsigned which = choice % count;
                answer(pending[which]);
                pending[which] = pending[--count];
            }
        }
        ck_assert_str_eq(written, numbers(0, 200));
        ck_assert_uint_eq(queue.kept, 0);
        reply_queue_deinit(&queue);
    }
}

/* --- size --- */

TEST(as_many_commands_as_the_limit_allows_can_be_pending)
{
    open_queue();
    for (unsigned round = 0; round < 2; round++) {
        written_len = 0;
        for (unsigned i = 0; i < MOST; i++)
            open_command(i);
        ck_assert_uint_eq(queue.pending, MOST);
        ck_assert_uint_eq(queue.size, MOST);
        for (unsigned i = 1; i < MOST; i += 2)
            answer(i);
        for (unsigned i = 0; i < MOST; i += 2)
            answer(i);
        ck_assert_str_eq(written, numbers(0, MOST));
        ck_assert_uint_eq(queue.pending, 0);
    }
    reply_queue_deinit(&queue);
}

/* The number of slots is that of pending commands, not that of all commands. */
TEST(slots_are_used_again)
{
    open_queue();
    for (unsigned i = 0; i < 1000; i++) {
        open_command(0);
        open_command(1);
        answer(1);
        answer(0);
    }
    ck_assert_uint_le(queue.size, 8);
    reply_queue_deinit(&queue);
}

TEST(a_queue_with_replies_left_is_freed)
{
    open_queue();
    reply_queue_deinit(&queue); /* without any command */
    for (unsigned i = 0; i < 20; i++)
        open_command(i);
    keep("kept ");
    for (unsigned i = 1; i < 20; i += 3)
        answer(i);
    reply_queue_deinit(&queue);
    ck_assert_str_eq(written, "");
    ck_assert_uint_eq(queue.pending, 0);
    ck_assert_uint_eq(queue.kept, 0);
    /* Empty again, and usable. */
    open_command(0);
    answer(0);
    ck_assert_str_eq(written, "0 ");
    reply_queue_deinit(&queue);
}

/* --- a message that follows a grant --- */

#define TOKEN_A "000000000000000000000000000000000000000a"
#define TOKEN_B "000000000000000000000000000000000000000b"

static void grant(unsigned number, const char *token)
{
    ck_assert(reply_queue_settle(&queue, slots[number], "grant ", 6, token, write_bytes, &queue));
}

static bool push_is_kept(const char *token)
{
    bool kept;
    ck_assert(reply_queue_push(&queue, token, "lost ", 5, &kept));
    return kept;
}

TEST(a_message_follows_the_grant_that_is_kept)
{
    open_queue();
    ck_assert(!push_is_kept(TOKEN_A));
    for (unsigned i = 0; i < 4; i++)
        open_command(i);
    ck_assert(!push_is_kept(TOKEN_A));
    grant(2, TOKEN_A);
    ck_assert(!push_is_kept(TOKEN_B));
    ck_assert(push_is_kept(TOKEN_A));
    ck_assert_uint_eq(queue.kept, strlen("grant lost "));
    answer(3);
    answer(0);
    ck_assert_str_eq(written, "0 ");
    ck_assert(push_is_kept(TOKEN_A)); /* the oldest command keeps the grant now */
    answer(1);
    ck_assert_str_eq(written, "0 1 grant lost 3 lost ");
    ck_assert(!push_is_kept(TOKEN_A));
    reply_queue_deinit(&queue);
}

TEST(a_grant_that_was_written_keeps_no_message)
{
    open_queue();
    open_command(0);
    grant(0, TOKEN_A);
    open_command(1);
    open_command(2);
    keep("the token again: " TOKEN_A);
    answer(2);
    ck_assert(!push_is_kept(TOKEN_A));
    reply_queue_deinit(&queue);
}

/* Slots that are used again do not inherit grants, and grants move with their replies. */
TEST(grants_of_many_commands_are_found_until_they_are_written)
{
    enum { COMMANDS = 50 };
    char token[LIMIT_TOKEN + 1];
    open_queue();
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < COMMANDS; i++)
            open_command(i);
        for (unsigned i = 1; i < COMMANDS; i++) {
            snprintf(token, sizeof(token), "%040u", 7 * i % COMMANDS);
            grant(7 * i % COMMANDS, token);
        }
        for (unsigned i = 1; i < COMMANDS; i++) {
            snprintf(token, sizeof(token), "%040u", i);
            ck_assert(push_is_kept(token));
        }
        answer(0);
        for (unsigned i = 1; i < COMMANDS; i++) {
            snprintf(token, sizeof(token), "%040u", i);
            ck_assert(!push_is_kept(token));
        }
    }
    ck_assert_uint_eq(queue.kept, 0);
    reply_queue_deinit(&queue);
}
