#include "tests/torture/foreign.h"

#include "protocol/units.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    QUORUM = STAGE_MASTERS / 2 + 1,
    TIMEOUT_MS = 30, /* for each master */
    DRIFT_PER_CENT = 1,
    DRIFT_MS = 2,
    TTL_MIN_MS = 200,
    WORK_MS = 80,
    PAUSE_MS = 25,
};

static const char release_script[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                     "return redis.call('del', KEYS[1]) else return 0 end";

static unsigned below(struct foreign *foreign, unsigned count)
{
    return prng_below(&foreign->prng, count);
}

static void sleep_ms(int64_t ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS};
    nanosleep(&pause, NULL);
}

/* --- one master --- */

static bool is_connected(struct foreign *foreign, unsigned index)
{
    struct timeval timeout = {.tv_usec = TIMEOUT_MS * 1000};
    redisContext **context = &foreign->masters[index];
    if (*context != NULL)
        return true;
    *context = redisConnectUnixWithTimeout(foreign->torture->stage.masters[index].socket, timeout);
    if (*context != NULL && (*context)->err == 0 && redisSetTimeout(*context, timeout) == REDIS_OK)
        return true;
    redisFree(*context);
    *context = NULL;
    return false;
}

/* Close the connection if there is no reply. After a timeout, the next reply on the connection
 * would belong to an earlier command. */
static redisReply *keep_or_drop(struct foreign *foreign, unsigned index, redisReply *reply)
{
    if (reply != NULL)
        return reply;
    redisFree(foreign->masters[index]);
    foreign->masters[index] = NULL;
    return NULL;
}

static bool acquire_on(struct foreign *foreign, unsigned index, unsigned resource,
                       const char *token, unsigned ttl_ms)
{
    if (!is_connected(foreign, index))
        return false;
    redisReply *reply =
        keep_or_drop(foreign, index,
                     redisCommand(foreign->masters[index], "SET redlock:r#%u %s NX PX %u", resource,
                                  token, ttl_ms));
    bool yes = reply != NULL && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0;
    if (reply != NULL)
        freeReplyObject(reply);
    return yes;
}

static void release_all(struct foreign *foreign, unsigned resource, const char *token)
{
    for (unsigned i = 0; i < STAGE_MASTERS; i++) {
        if (!is_connected(foreign, i))
            continue;
        redisReply *reply =
            keep_or_drop(foreign, i,
                         redisCommand(foreign->masters[i], "EVAL %s 1 redlock:r#%u %s",
                                      release_script, resource, token));
        if (reply != NULL)
            freeReplyObject(reply);
    }
}

/* --- the algorithm --- */

static void make_token(char token[41])
{
    unsigned char bytes[20];
    ck_assert_int_eq(getentropy(bytes, sizeof(bytes)), 0);
    for (unsigned i = 0; i < sizeof(bytes); i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
}

static void work(struct foreign *foreign, const struct claim *claim)
{
    int64_t left_ms = (claim->until_ns - ledger_now_ns()) / NS_PER_MS;
    if (left_ms > 0)
        sleep_ms(below(foreign, 3) != 0 ? below(foreign, WORK_MS) % left_ms
                                        : below(foreign, (unsigned)left_ms));
}

static void lock_and_release(struct foreign *foreign)
{
    struct ledger *ledger = &foreign->torture->ledger;
    char token[41];
    unsigned yeses = 0;
    unsigned resource = below(foreign, TORTURE_RESOURCES);
    unsigned ttl_ms = TTL_MIN_MS + below(foreign, TORTURE_MAX_TTL_MS - TTL_MIN_MS);
    make_token(token);
    int64_t started_ns = ledger_now_ns();
    for (unsigned i = 0; i < STAGE_MASTERS; i++)
        yeses += acquire_on(foreign, i, resource, token, ttl_ms);
    struct claim claim = {
        .resource = resource,
        .token = token,
        .until_ns = started_ns + (ttl_ms - ttl_ms * DRIFT_PER_CENT / 100 - DRIFT_MS) * NS_PER_MS,
    };
    if (yeses >= QUORUM && claim.until_ns > ledger_now_ns()) {
        ledger_foreign_granted(ledger, foreign->index, &claim);
        work(foreign, &claim);
        /* Sometimes the client dies and releases nothing. */
        if (below(foreign, 10) == 0)
            return;
        ledger_ended(ledger, resource, token);
    }
    release_all(foreign, resource, token);
}

static void *run(void *context)
{
    struct foreign *foreign = context;
    struct torture *torture = foreign->torture;
    while (!torture->ending && !torture->ledger.violated) {
        lock_and_release(foreign);
        sleep_ms(below(foreign, PAUSE_MS));
    }
    return NULL;
}

void foreign_start(struct foreign *foreign, struct torture *torture, unsigned index)
{
    *foreign = (struct foreign){
        .torture = torture, .index = index, .prng = {torture->seed * 4 + 2 + index}};
    ck_assert_int_eq(pthread_create(&foreign->thread, NULL, run, foreign), 0);
}

void foreign_end(struct foreign *foreign)
{
    pthread_join(foreign->thread, NULL);
    for (unsigned i = 0; i < STAGE_MASTERS; i++)
        redisFree(foreign->masters[i]);
}
