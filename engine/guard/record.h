/*
 * The record that each master bears, and by which all daemons agree whether it may vote: the string
 * key `redlockd:node`, without time to live. Pure.
 *
 *     redlockd/1 set=9f86d081884c7d65 cluster=main max_ttl_ms=60000 id=<40> run_id=<40> replid=<40>
 *         evicted=0 durable=no quarantine_id=7f3c5a9e01b2d468 why=restarted quarantine_ms=60610
 *         join_us=1763640000123456
 *
 * (one line). A master whose run_id, replid or evicted differ from its record has restarted, failed
 * over or lost keys since the record was written; one without a record has lost everything, or is
 * new. Records are compared byte for byte and only ever replaced whole, by write_record.lua.
 */
#ifndef ENGINE_GUARD_RECORD_H
#define ENGINE_GUARD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/guard/rules.h"
#include "protocol/limits.h"
#include "protocol/reason.h"

#define RECORD_KEY "redlockd:node"

enum { RECORD_ID = 40, RECORD_SET_ID = 16 };

/* What no max_ttl exceeds, whatever somebody wrote: two days. */
#define RECORD_QUARANTINE_MAX_MS (48LL * 3600 * 1000)

struct record {
    char set_id[RECORD_SET_ID + 1];
    char cluster[LIMIT_CLUSTER_NAME + 1];
    int64_t max_ttl_ms;
    char id[RECORD_ID + 1]; /* its first run_id since it last lost data: what leases are for */
    char run_id[RECORD_ID + 1];
    char replid[RECORD_ID + 1];
    int64_t evicted; /* evicted_keys of INFO, when the record was written */
    bool durable;    /* it was seen to write every command to disk before it answers it */
    uint64_t
        quarantine_id; /* of the quarantine, drawn at random: no two are taken for one another */
    enum reason why;   /* the cause of the quarantine that ends at join_us */
    int64_t quarantine_ms;
    int64_t join_us; /* on the master's own clock */
};

/* Write all of it but the value of join_us, which write_record.lua adds; returns the length, below
 * LIMIT_RECORD. */
size_t record_format(const struct record *record, char *buf);

/* False if this is not a record, or one of a version that we do not know. */
bool record_parse(const char *text, size_t len, struct record *record);

/*
 * The id of a set: a hash over the cluster, the names in any order, and what else daemons on the
 * same masters have to agree about. Two daemons with different ones must not share a master:
 * their quorums need not meet; or one would let a master vote while the locks of the other may
 * still live, since it waits for less, or takes for steady a clock that has cost the other more
 * than its locks pay for; or it would let fences be forgotten that the other counts on.
 */
void record_set_id(const struct guard_rules *rules, char *set_id);

#endif
