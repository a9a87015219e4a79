/*
 * The record on each master, by which all daemons agree whether the master may vote: the string key
 * `redlockd:node`, without a TTL. Pure.
 *
 *     redlockd/1 set=9f86d081884c7d65 cluster=main max_ttl_ms=60000 id=<40> run_id=<40> replid=<40>
 *         evicted=0 durable=no quarantine_id=7f3c5a9e01b2d468 why=restarted quarantine_ms=60610
 *         join_us=1763640000123456
 *
 * (one line). A master whose run_id, replid or evicted differ from its record has restarted, failed
 * over or lost keys since the record was written. A master without a record has lost everything, or
 * is new. Records are compared byte for byte, and write_record.lua only ever replaces them whole.
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

/* Two days: an upper limit for max_ttl, whatever a record claims. */
#define RECORD_QUARANTINE_MAX_MS (48LL * 3600 * 1000)

struct record {
    char set_id[RECORD_SET_ID + 1];
    char cluster[LIMIT_CLUSTER_NAME + 1];
    int64_t max_ttl_ms;
    char id[RECORD_ID + 1]; /* its first run_id since it last lost data; name leases refer to it */
    char run_id[RECORD_ID + 1];
    char replid[RECORD_ID + 1];
    int64_t evicted; /* evicted_keys of INFO, when the record was written */
    bool durable;    /* it was seen to write every command to disk before it answers */
    /* Drawn at random for each quarantine, so that no two are mistaken for each other. */
    uint64_t quarantine_id;
    enum reason why; /* the cause of the quarantine that ends at join_us */
    int64_t quarantine_ms;
    int64_t join_us; /* on the master's own clock */
};

/* Write the whole record except for the value of join_us, which write_record.lua adds. Returns
 * the length, below LIMIT_RECORD. */
size_t record_format(const struct record *record, char *buf);

/* Returns false if the text is not a record, or has an unknown version. */
bool record_parse(const char *text, size_t len, struct record *record);

/*
 * The id of a set: a hash of the cluster name, the node names in any order, and the settings that
 * daemons on the same masters must agree on. Two daemons with different ids must not share a
 * master: their quorums need not overlap; or one might let a master vote while locks of the other
 * may still live, because it waits for less time, or takes a clock for steady that has cost the
 * other daemon's locks more than their margin; or it might let fences be forgotten that the other
 * relies on.
 */
void record_set_id(const struct guard_rules *rules, char *set_id);

#endif
