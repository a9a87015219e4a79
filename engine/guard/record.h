/*
 * The record on each master. By it, all daemons agree whether the master may vote. It is the value
 * of the string key `redlockd:node`, which has no TTL. Pure.
 *
 *     redlockd/1 set=9f86d081884c7d65 cluster=main max_ttl_ms=60000 id=<40> run_id=<40> replid=<40>
 *         evicted=0 durable=no mark=7f3c5a9e01b2d468 why=restarted quarantine_ms=60611
 *         join_us=1763640000123456
 *
 * The record is one line. Its field `mark` is the quarantine_id below. If the run_id, replid or
 * number of evicted keys of a master differs from its record, the master has restarted, failed over
 * or lost keys since the record was written. A master without a record has lost everything, or is
 * new. Records are compared byte for byte, and write_record.lua always replaces the whole record.
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

/* Two days. A record with a longer quarantine is not accepted. */
#define RECORD_QUARANTINE_MAX_MS (48LL * 3600 * 1000)

struct record {
    char set_id[RECORD_SET_ID + 1];
    char cluster[LIMIT_CLUSTER_NAME + 1];
    int64_t max_ttl_ms;
    /* The first run_id of the master after it last lost data. Name leases refer to it. */
    char id[RECORD_ID + 1];
    char run_id[RECORD_ID + 1];
    char replid[RECORD_ID + 1];
    int64_t evicted; /* evicted_keys of INFO when the record was written */
    bool durable;    /* the master was seen to write every command to disk before it answers */
    /* Drawn at random for each quarantine, so that no quarantine is mistaken for another. */
    uint64_t quarantine_id;
    enum reason why; /* the cause of the quarantine that ends at join_us */
    int64_t quarantine_ms;
    int64_t join_us; /* when the quarantine ends, on the clock of the master */
};

/* Write the whole record to buf, except for the value of join_us, which write_record.lua adds.
 * Returns the length, which is below LIMIT_RECORD. */
size_t record_format(const struct record *record, char *buf);

/* Parse a record. Returns false if the text is not a record, or has an unknown version. */
bool record_parse(const char *text, size_t len, struct record *record);

/*
 * The id of a set: a hash of the cluster name, of the node names in any order, and of the settings
 * that all daemons on the same masters must agree on. Two daemons with different ids must not share
 * a master, for one of these reasons. Their quorums need not overlap. One daemon waits for less
 * time than the other, so it would let a master vote while locks of the other may still live. One
 * daemon takes a clock for steady although its step has cost locks of the other more than their
 * margin. Or one daemon lets the masters forget fences that the other relies on.
 */
void record_set_id(const struct guard_rules *rules, char *set_id);

#endif
