#include "engine/master/master.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/guard/record_write.h"
#include "engine/round/node_set.h"

static_assert((int)GUARD_DAEMON == (int)REDIS_DAEMON && (int)RECORD_ID == (int)LINK_RUN_ID,
              "both are lengths of the same ids");

/* What an outstanding command of the guard asks or writes. */
enum part {
    PART_MEMORY,
    PART_SETTING, /* durability settings; one command for each */
    PART_STATS,
    PART_RECORD,
    PART_TIME,
    PART_REPLICATION,       /* last command of a probe after a batch of votes */
    PART_REPLICATION_ALONE, /* last command of any other probe */
    PART_SET,
    PART_SIGN_OF_LIFE, /* signs of life of an old set; one command for each key */
    PART_HEARTBEAT,
    PART_END, /* replaces PART_HEARTBEAT if nothing may be written (read_only) */
    PART_RECORD_WRITE,
};

/* The keys and arguments of heartbeat.lua, apart from one key and one argument for each name. */
enum { HEARTBEAT_KEYS = 5, HEARTBEAT_ARGUMENTS = 9 };
static_assert(3 + HEARTBEAT_KEYS + HEARTBEAT_ARGUMENTS + 2 * LIMIT_NODES < LINK_WORDS_MAX,
              "a heartbeat for every name fits in a command");

/* How long a host's clock entry stays on the master. Within this time, daemons of the same host
 * trust the clock soon after a restart. */
enum { ENTRY_TTL_MS = 10 * 60 * 1000 };

/* The settings that make a restart harmless: with them, the master answers a command only after it
 * is on disk. */
static const struct {
    const char *name;
    const char *value;
} durable_settings[] = {
    {"appendonly", "yes"},
    {"appendfsync", "always"},
    {"no-appendfsync-on-rewrite", "no"},
};
enum { SETTINGS = sizeof(durable_settings) / sizeof(durable_settings[0]) };

static struct outstanding outstanding_for(enum part part, int64_t now_ns)
{
    return (struct outstanding){
        .kind =
            part == PART_HEARTBEAT || part == PART_END ? OUTSTANDING_HEARTBEAT : OUTSTANDING_GUARD,
        .part = (uint8_t)part,
        .sent_ns = now_ns,
    };
}

static void send_command(struct master *master, enum part part, const char *const *words,
                         int64_t now_ns)
{
    struct outstanding outstanding = outstanding_for(part, now_ns);
    link_send_words(&master->link, &outstanding, words);
}

const char guard_io_probe_bytes[] = "*2\r\n$3\r\nGET\r\n$13\r\n" RECORD_KEY "\r\n"
                                    "*1\r\n$4\r\nTIME\r\n"
                                    "*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n";
const size_t guard_io_probe_len = sizeof(guard_io_probe_bytes) - 1;

static void expect_probe(struct master *master, enum part last, int64_t now_ns)
{
    const enum part parts[] = {PART_RECORD, PART_TIME, last};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct outstanding outstanding = outstanding_for(parts[i], now_ns);
        link_expect(&master->link, &outstanding);
    }
}

void guard_io_expect_batch(struct master *master, int64_t now_ns)
{
    expect_probe(master, PART_REPLICATION, now_ns);
}

static void write_probe(struct master *master, int64_t now_ns)
{
    const struct link_io *io = master->link.io;
    master->probes++;
    expect_probe(master, PART_REPLICATION_ALONE, now_ns);
    io->write(io->context, nodes_only(master->link.node), CHANNEL_COMMANDS, guard_io_probe_bytes,
              guard_io_probe_len);
}

void guard_io_probe(struct master *master, int64_t now_ns)
{
    if (master->probes == 0)
        write_probe(master, now_ns);
}

/* A command being composed. */
struct words {
    const char *words[LINK_WORDS_MAX];
    unsigned count;
    char text[LINK_COMMAND_MAX];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void add_word(struct words *words, const char *form,
                                                           ...)
{
    char *word = words->text + words->len;
    va_list args;
    va_start(args, form);
    words->len += (size_t)vsnprintf(word, sizeof(words->text) - words->len, form, args) + 1;
    va_end(args);
    assert(words->len <= sizeof(words->text));
    assert(words->count < LINK_WORDS_MAX - 1);
    words->words[words->count++] = word;
    words->words[words->count] = NULL;
}

static void write_heartbeat(struct master *master, int64_t now_ns)
{
    struct guard_heartbeat *heartbeat = &master->heartbeat;
    const char *set_id = master->guard->set_id;
    bool in_full = master->heartbeat_in_full;
    struct words words;
    words.count = 0;
    words.len = 0;
    guard_heartbeat(master->guard, master->link.node, now_ns, heartbeat);
    add_word(&words, "%s", in_full ? "EVAL" : "EVALSHA");
    add_word(&words, "%s",
             in_full ? redis_script_text(REDIS_SCRIPT_HEARTBEAT)
                     : redis_script_sha1(REDIS_SCRIPT_HEARTBEAT));
    add_word(&words, "%u", HEARTBEAT_KEYS + nodes_count(heartbeat->names));
    /* The keys contain the set id. What daemons of another set have left proves nothing for this
     * set, because their max_ttl may be shorter. */
    add_word(&words, "redlockd:clock:%s:%s", set_id, master->clock_id);
    add_word(&words, "redlockd:vouch:%s", set_id);
    add_word(&words, "redlockd:step:%s", set_id);
    add_word(&words, "redlockd:beats:%s", set_id);
    add_word(&words, RECORD_KEY);
    for (uint32_t rest = heartbeat->names; rest != 0; rest = nodes_after_first(rest)) {
        char key[GUARD_NAME_KEY_MAX];
        guard_name_key(master->guard, nodes_first(rest), key);
        add_word(&words, "%s", key);
    }
    add_word(&words, "%s", heartbeat->entry);
    add_word(&words, "%d", ENTRY_TTL_MS);
    add_word(&words, "%s", heartbeat->attestation);
    add_word(&words, "%" PRId64, heartbeat->attestation_ttl_ms);
    add_word(&words, "%" PRId64, heartbeat->lease_ms);
    add_word(&words, "%" PRId64, heartbeat->fresh_ms);
    add_word(&words, "%s", heartbeat->step);
    add_word(&words, "%.*s", GUARD_DAEMON, master->daemon);
    add_word(&words, "%s", heartbeat->beats);
    for (uint32_t rest = heartbeat->names; rest != 0; rest = nodes_after_first(rest))
        add_word(&words, "%s", heartbeat->servers[nodes_first(rest)]);
    send_command(master, PART_HEARTBEAT, words.words, now_ns);
}

static void ask_for_signs_of_life(struct master *master, int64_t now_ns)
{
    const struct guard_rules *rules = &master->guard->rules;
    char key[GUARD_NAME_KEY_MAX];
    master->signs_of_life_due = rules->node_count + 1;
    master->sign_of_life_us = 0;
    master->sign_of_life_daemon[0] = '\0';
    snprintf(key, sizeof(key), "redlockd:vouch:%s", rules->reset_set);
    send_command(master, PART_SIGN_OF_LIFE, (const char *[]){"GET", key, NULL}, now_ns);
    for (unsigned i = 0; i < rules->node_count; i++) {
        snprintf(key, sizeof(key), "redlockd:name:%s:%s", rules->reset_set, rules->node_names[i]);
        send_command(master, PART_SIGN_OF_LIFE, (const char *[]){"GET", key, NULL}, now_ns);
    }
}

void guard_io_heartbeat(struct master *master, int64_t now_ns)
{
    if (!link_begin_heartbeat(&master->link, now_ns))
        return;
    /* Ask for the facts (evictions, durability) before the probe: a record that is written after
     * the probe contains the number of keys evicted so far. */
    send_command(master, PART_MEMORY, (const char *[]){"INFO", "memory", NULL}, now_ns);
    if (master->guard->rules.durable & nodes_only(master->link.node))
        for (size_t i = 0; i < SETTINGS; i++)
            send_command(master, PART_SETTING,
                         (const char *[]){"CONFIG", "GET", durable_settings[i].name, NULL}, now_ns);
    send_command(master, PART_STATS, (const char *[]){"INFO", "stats", NULL}, now_ns);
    write_probe(master, now_ns);
    if (master->guard->rules.reset_set != NULL && !master->guard->override_done)
        ask_for_signs_of_life(master, now_ns);
    if (master->guard->rules.read_only) {
        send_command(master, PART_END, (const char *[]){"PING", NULL}, now_ns);
        return;
    }
    /*
     * The key does not exist, so SET with XX writes nothing. It only shows whether the master
     * refuses a SET, for example because its ACL allows another prefix. Without this test, all
     * other commands of the guard could succeed while every vote failed.
     */
    send_command(master, PART_SET,
                 (const char *[]){"SET", master->absent_key, "-", "XX", "PX", "1", NULL}, now_ns);
    write_heartbeat(master, now_ns);
}

static uint64_t draw_64_bits(const struct master *master)
{
    const struct link_io *io = master->link.io;
    uint64_t bits;
    io->random(io->context, &bits, sizeof(bits));
    return bits;
}

void guard_io_write_record(struct master *master, int64_t now_ns)
{
    struct record_write write;
    char quarantine[24];
    char join[24];
    if (!guard_take_record_write(master->guard, master->link.node, now_ns, draw_64_bits(master),
                                 &write))
        return;
    snprintf(quarantine, sizeof(quarantine), "%" PRId64, write.quarantine_us);
    snprintf(join, sizeof(join), "%" PRId64, write.join_us);
    /* Send the whole script. Record writes are rare, and this way the master never answers
     * NOSCRIPT. */
    send_command(master, PART_RECORD_WRITE,
                 (const char *[]){"EVAL", redis_script_text(REDIS_SCRIPT_WRITE_RECORD), "1",
                                  RECORD_KEY, write.expected, write.text, quarantine, write.run_id,
                                  join, NULL},
                 now_ns);
    write_probe(master, now_ns);
}

/* --- answers --- */

static void note_failure(enum reason *failed, enum reason reason)
{
    if (*failed == REASON_NONE)
        *failed = reason;
}

static bool is_error(struct master *master, const struct redis_reply *reply, enum reason *failed)
{
    if (reply->kind != RESP_ERROR)
        return false;
    note_failure(failed, link_reason_of(&master->link, reply));
    return true;
}

static void take_record(struct master *master, const struct redis_reply *reply)
{
    struct guard_sample *sample = &master->sample;
    *sample = (struct guard_sample){.failed = REASON_NONE};
    if (is_error(master, reply, &sample->failed) || reply->kind == RESP_NIL)
        return;
    if (reply->kind != RESP_STRING) {
        note_failure(&sample->failed, REASON_GARBAGE);
        return;
    }
    /* A text longer than LIMIT_RECORD is no record of redlockd. It is cut to LIMIT_RECORD, which is
     * still too long for a record. */
    sample->record_len = reply->len <= LIMIT_RECORD ? reply->len : LIMIT_RECORD;
    sample->record = memcpy(master->record, reply->str, sample->record_len);
}

static void take_time(struct master *master, const struct outstanding *outstanding,
                      const struct redis_reply *reply, int64_t now_ns)
{
    struct guard_sample *sample = &master->sample;
    sample->clock.sent_ns = outstanding->sent_ns;
    sample->clock.received_ns = now_ns;
    if (is_error(master, reply, &sample->failed))
        return;
    int64_t seconds = -1;
    int64_t micros = -1;
    if (reply->kind == RESP_ARRAY && reply->item_count == 2 &&
        reply->items[0].kind == RESP_STRING && reply->items[1].kind == RESP_STRING) {
        seconds = redis_number(reply->items[0].str, reply->items[0].len, 15);
        micros = redis_number(reply->items[1].str, reply->items[1].len, 15);
    }
    /* Limited to the year 2200, so that the time fits in nanoseconds. A clock that jumps beyond
     * that year is still detected as stepped. */
    if (seconds > 7258118400)
        seconds = 7258118400;
    if (seconds < 0 || micros < 0 || micros > 999999)
        note_failure(&sample->failed, REASON_GARBAGE);
    else
        sample->clock.time_us = seconds * 1000000 + micros;
}

/* In INFO, this line follows master_replid. If the server has ever been a replica since its start,
 * the id in this line differs. */
static const char never_replica[] =
    "\r\nmaster_replid2:0000000000000000000000000000000000000000\r\n";

static enum guard_result take_replication(struct master *master, const struct redis_reply *reply)
{
    struct guard_sample *sample = &master->sample;
    size_t role_len = 0;
    size_t len = 0;
    const char *role = redis_info(reply, "role", &role_len);
    const char *replid = redis_info(reply, "master_replid", &len);
    if (!is_error(master, reply, &sample->failed) &&
        (role == NULL || replid == NULL || len != RECORD_ID))
        note_failure(&sample->failed, REASON_GARBAGE);
    if (sample->failed == REASON_NONE) {
        size_t left = (size_t)(reply->str + reply->len - replid) - RECORD_ID;
        sample->replid = replid;
        sample->was_replica =
            left < sizeof(never_replica) - 1 ||
            memcmp(replid + RECORD_ID, never_replica, sizeof(never_replica) - 1) != 0;
        sample->replicated = !redis_info_is(reply, "connected_slaves", "0");
        sample->master = role_len == 6 && memcmp(role, "master", 6) == 0;
    }
    return guard_on_sample(master->guard, master->link.node, sample);
}

static void take_memory(struct master *master, const struct redis_reply *reply)
{
    size_t len;
    bool wanted = master->guard->rules.durable & nodes_only(master->link.node);
    master->facts =
        (struct guard_facts){.durability = wanted ? DURABILITY_SEEN : DURABILITY_NOT_WANTED};
    if (is_error(master, reply, &master->facts.failed))
        return;
    if (redis_info(reply, "maxmemory", &len) == NULL ||
        redis_info(reply, "maxmemory_policy", &len) == NULL)
        note_failure(&master->facts.failed, REASON_GARBAGE);
    master->facts.may_evict = !redis_info_is(reply, "maxmemory", "0") &&
                              !redis_info_is(reply, "maxmemory_policy", "noeviction");
}

/* The expected reply is {name, value}. Any other reply, including an error, does not prove
 * durability. */
static void take_setting(struct master *master, const struct redis_reply *reply)
{
    bool as_wanted = false;
    for (size_t i = 0; i < SETTINGS; i++)
        as_wanted = as_wanted ||
                    (reply->item_count == 2 && redis_item_is(reply, 0, durable_settings[i].name) &&
                     redis_item_is(reply, 1, durable_settings[i].value));
    if (!as_wanted)
        master->facts.durability = DURABILITY_MISSING;
}

static void take_stats(struct master *master, const struct redis_reply *reply)
{
    master->facts.evicted = redis_info_number(reply, "evicted_keys", 15);
    if (!is_error(master, reply, &master->facts.failed) && master->facts.evicted < 0)
        note_failure(&master->facts.failed, REASON_GARBAGE);
    guard_on_facts(master->guard, master->link.node, &master->facts);
}

static void take_set(struct master *master, const struct redis_reply *reply)
{
    enum reason refused = REASON_NONE;
    is_error(master, reply, &refused);
    guard_on_set(master->guard, master->link.node, refused);
}

static void take_record_write(struct master *master, const struct redis_reply *reply)
{
    enum reason refused = REASON_NONE;
    is_error(master, reply, &refused);
    guard_on_record_written(master->guard, master->link.node, refused);
}

/* The value is an attestation or a lease. An attestation is "<time>:<...>", in microseconds. A
 * lease is "<server> <daemon>=<time> ...", in milliseconds, with the latest signature first. */
static void take_sign_of_life(struct master *master, const struct redis_reply *reply)
{
    char text[LIMIT_RECORD];
    char daemon[GUARD_DAEMON + 1] = "";
    int64_t time_us = 0;
    int64_t signed_ms = 0;
    size_t len = reply->kind == RESP_STRING && reply->len < sizeof(text) ? reply->len : 0;
    memcpy(text, len > 0 ? reply->str : "", len);
    text[len] = '\0';
    const char *sign = strchr(text, '=');
    while (sign != NULL && sign > text && sign[-1] != ' ')
        sign--;
    /* A lease without signatures has no time: all daemons have removed theirs. */
    if (sign == NULL)
        time_us = strchr(text, ':') != NULL ? strtoll(text, NULL, 10) : 0;
    else if (sscanf(sign, "%16[0-9a-f*]=%" SCNd64, daemon, &signed_ms) == 2)
        time_us = signed_ms < INT64_MAX / 1000 ? signed_ms * 1000 : INT64_MAX;
    /* If an answer cannot be read, a daemon of the old set may still run. */
    if (reply->kind != RESP_STRING && reply->kind != RESP_NIL)
        master->sign_of_life_us = -1;
    else if (master->sign_of_life_us >= 0 && time_us > master->sign_of_life_us) {
        master->sign_of_life_us = time_us;
        memcpy(master->sign_of_life_daemon, daemon, sizeof(daemon));
    }
    master->signs_of_life_due--;
    if (master->signs_of_life_due == 0 && master->sign_of_life_us >= 0)
        guard_on_sign_of_life(master->guard, master->link.node, master->sign_of_life_us,
                              master->sign_of_life_daemon);
}

static void take_heartbeat(struct master *master, const struct outstanding *outstanding,
                           const struct redis_reply *reply, int64_t now_ns)
{
    bool text = reply->kind == RESP_STRING;
    enum reason failed = REASON_NONE;
    if (!text && !is_error(master, reply, &failed))
        failed = REASON_GARBAGE;
    /* After any other error too, the whole script could succeed, for example if the ACL refuses
     * EVALSHA. The vote would then come and go with every second heartbeat. */
    master->heartbeat_in_full = failed == REASON_NOSCRIPT;
    if (text)
        guard_on_heartbeat(master->guard, master->link.node, &master->heartbeat,
                           outstanding->sent_ns, reply->str, reply->len, now_ns);
    /* The scripts were flushed on the master. The next heartbeat contains the whole script, which
     * loads it again. */
    else if (failed == REASON_NOSCRIPT)
        master->guard->heartbeat |= nodes_only(master->link.node);
    else
        guard_on_heartbeat_failed(master->guard, master->link.node, failed);
}

enum guard_result guard_io_on_reply(struct master *master, const struct outstanding *outstanding,
                                    const struct redis_reply *reply, int64_t now_ns)
{
    assert(outstanding->part <= PART_RECORD_WRITE);
    switch ((enum part)outstanding->part) {
    case PART_RECORD:
        take_record(master, reply);
        return GUARD_MORE;
    case PART_TIME:
        take_time(master, outstanding, reply, now_ns);
        return GUARD_MORE;
    case PART_REPLICATION_ALONE:
        master->probes--;
        return take_replication(master, reply);
    case PART_REPLICATION:
        return take_replication(master, reply);
    case PART_MEMORY:
        take_memory(master, reply);
        return GUARD_MORE;
    case PART_SETTING:
        take_setting(master, reply);
        return GUARD_MORE;
    case PART_STATS:
        take_stats(master, reply);
        break;
    case PART_SET:
        take_set(master, reply);
        break;
    case PART_SIGN_OF_LIFE:
        take_sign_of_life(master, reply);
        break;
    case PART_HEARTBEAT:
        take_heartbeat(master, outstanding, reply, now_ns);
        break;
    case PART_RECORD_WRITE:
        take_record_write(master, reply);
        break;
    case PART_END:
        break;
    }
    return GUARD_TAKEN;
}
