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
        record->replid, record->evicted, record->durable ? "yes" : "no", record->mark,
        reason_word(record->why), record->quarantine_ms);
    assert(len > 0);
    assert(len < LIMIT_RECORD - 20);
    return (size_t)len;
}

/* Take the next word, which must be name=value, off a line. */
static bool take_value(char **line, const char *name, const char **value)
{
    char *word = strsep(line, " ");
    size_t name_len = strlen(name);
    if (word == NULL || strncmp(word, name, name_len) != 0 || word[name_len] != '=')
        return false;
    *value = word + name_len + 1;
    return true;
}

static bool take_text(char **line, const char *name, char *text, size_t size)
{
    const char *value;
    if (!take_value(line, name, &value) || strlen(value) >= size)
        return false;
    strcpy(text, value);
    return true;
}

static bool take_number(char **line, const char *name, int64_t *number)
{
    const char *value;
    char *end;
    if (!take_value(line, name, &value) || value[0] < '0' || value[0] > '9' || strlen(value) > 17)
        return false;
    *number = strtoll(value, &end, 10);
    return *end == '\0';
}

static bool take_mark(char **line, uint64_t *mark)
{
    const char *value;
    if (!take_value(line, "mark", &value) || strlen(value) != 16 ||
        strspn(value, "0123456789abcdef") != 16)
        return false;
    *mark = strtoull(value, NULL, 16);
    return true;
}

bool record_parse(const char *text, size_t len, struct record *record)
{
    char copy[LIMIT_RECORD];
    const char *value;
    if (len >= sizeof(copy) || memchr(text, '\0', len) != NULL)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    char *rest = copy;
    if (strcmp(strsep(&rest, " "), RECORD_VERSION) != 0 ||
        !take_text(&rest, "set", record->set_id, sizeof(record->set_id)) ||
        !take_text(&rest, "cluster", record->cluster, sizeof(record->cluster)) ||
        !take_number(&rest, "max_ttl_ms", &record->max_ttl_ms) ||
        !take_text(&rest, "id", record->id, sizeof(record->id)) ||
        !take_text(&rest, "run_id", record->run_id, sizeof(record->run_id)) ||
        !take_text(&rest, "replid", record->replid, sizeof(record->replid)) ||
        !take_number(&rest, "evicted", &record->evicted) || !take_value(&rest, "durable", &value))
        return false;
    record->durable = strcmp(value, "yes") == 0;
    if (!take_mark(&rest, &record->mark) || !take_value(&rest, "why", &value))
        return false;
    record->why = reason_of_word(value);
    return take_number(&rest, "quarantine_ms", &record->quarantine_ms) &&
           record->quarantine_ms <= RECORD_QUARANTINE_MAX_MS &&
           take_number(&rest, "join_us", &record->join_us) && rest == NULL;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void record_set_id(const struct record_set *set, char *set_id)
{
    char text[LIMIT_CLUSTER_NAME + LIMIT_NODES * (LIMIT_NODE_NAME + 1) + 128];
    const char *sorted[LIMIT_NODES];
    assert(set->node_count <= LIMIT_NODES);
    memcpy(sorted, set->node_names, set->node_count * sizeof(sorted[0]));
    qsort(sorted, set->node_count, sizeof(sorted[0]), compare_names);
    size_t len = (size_t)snprintf(
        text, sizeof(text), "%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, set->cluster,
        set->max_ttl_ns, set->drift.rate_ppm, set->drift.margin_ns, set->fence_ttl_ns);
    for (unsigned i = 0; i < set->node_count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, " %s", sorted[i]);
    assert(len < sizeof(text));
    snprintf(set_id, RECORD_SET_ID + 1, "%016" PRIx64, redis_fingerprint(text, len));
}
