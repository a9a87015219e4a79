#include "engine/guard/record.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/redis.h"

#define RECORD_VERSION "redlockd/1"

size_t record_format(const struct record *record, char *buf)
{
    int len = snprintf(
        buf, LIMIT_RECORD,
        RECORD_VERSION " set=%s cluster=%s max_ttl_ms=%" PRId64
                       " id=%s run_id=%s replid=%s evicted=%" PRId64 " durable=%s mark=%016" PRIx64
                       " why=%s quarantine_ms=%" PRId64 " join_us=",
        record->set_id, record->cluster, record->max_ttl_ms, record->id, record->run_id,
        record->replid, record->evicted, record->durable ? "yes" : "no", record->quarantine_id,
        reason_word(record->why), record->quarantine_ms);
    assert(len > 0);
    assert(len < LIMIT_RECORD - 20);
    return (size_t)len;
}

bool record_parse(const char *text, size_t len, struct record *record)
{
    char copy[LIMIT_RECORD];
    char durable[16];
    char quarantine_id[16 + 1];
    char why[32];
    /* The digits of, in this order: max_ttl_ms, evicted, quarantine_ms, join_us. */
    char digits[4][17 + 1];
    int end = 0;
    static_assert(RECORD_SET_ID == 16 && LIMIT_CLUSTER_NAME == 64 && RECORD_ID == 40, "as below");
    if (len >= sizeof(copy))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
#define SP "%*1[ ]" /* exactly one space; a space in the format would match any white space */
    int found =
        sscanf(copy,
               RECORD_VERSION SP "set=%16[^ ]" SP "cluster=%64[^ ]" SP "max_ttl_ms=%17[0-9]" SP
                                 "id=%40[^ ]" SP "run_id=%40[^ ]" SP "replid=%40[^ ]" SP
                                 "evicted=%17[0-9]" SP "durable=%15[^ ]" SP "mark=%16[0-9a-f]" SP
                                 "why=%31[^ ]" SP "quarantine_ms=%17[0-9]" SP "join_us=%17[0-9]%n",
               record->set_id, record->cluster, digits[0], record->id, record->run_id,
               record->replid, digits[1], durable, quarantine_id, why, digits[2], digits[3], &end);
#undef SP
    if (found != 12 || (size_t)end != len || strlen(quarantine_id) != 16)
        return false;
    record->max_ttl_ms = strtoll(digits[0], NULL, 10);
    record->evicted = strtoll(digits[1], NULL, 10);
    record->durable = strcmp(durable, "yes") == 0;
    record->quarantine_id = strtoull(quarantine_id, NULL, 16);
    record->why = reason_of_word(why);
    record->quarantine_ms = strtoll(digits[2], NULL, 10);
    record->join_us = strtoll(digits[3], NULL, 10);
    return record->quarantine_ms <= RECORD_QUARANTINE_MAX_MS;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void record_set_id(const struct guard_rules *rules, char *set_id)
{
    char text[LIMIT_CLUSTER_NAME + LIMIT_NODES * (LIMIT_NODE_NAME + 1) + 128];
    const char *sorted[LIMIT_NODES];
    assert(rules->node_count <= LIMIT_NODES);
    memcpy(sorted, rules->node_names, rules->node_count * sizeof(sorted[0]));
    qsort(sorted, rules->node_count, sizeof(sorted[0]), compare_names);
    size_t len = (size_t)snprintf(
        text, sizeof(text), "%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, rules->cluster,
        rules->max_ttl_ns, rules->drift.rate_ppm, rules->drift.margin_ns, rules->fence_ttl_ns);
    for (unsigned i = 0; i < rules->node_count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, " %s", sorted[i]);
    assert(len < sizeof(text));
    snprintf(set_id, RECORD_SET_ID + 1, "%016" PRIx64, redis_fingerprint(text, len));
}
