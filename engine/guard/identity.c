#include "engine/guard/identity.h"

#include <assert.h>
#include <string.h>

#include "protocol/units.h"

void identity_on_connected(struct identity *identity, const char *run_id, int64_t begun_ns)
{
    assert(identity->presence == PRESENCE_AWAY);
    identity->presence = PRESENCE_CONNECTED;
    memcpy(identity->run_id, run_id, RECORD_ID);
    identity->run_id[RECORD_ID] = '\0';
    identity->begun_ns = begun_ns;
    identity->facts_error = REASON_NONE;
    identity->evicted = -1;
    identity->write_why = REASON_NONE;
    identity->write_under_way = false;
}

void identity_on_lost(struct identity *identity)
{
    identity->presence = PRESENCE_AWAY;
}

static bool is_same(const struct record_text *a, const struct record_text *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static bool is_known(const struct identity *identity)
{
    return identity->adopted_text.len > 0;
}

static bool is_run_adopted(const struct identity *identity, const char *run_id)
{
    return strcmp(identity->adopted.run_id, run_id) == 0;
}

/* Its record is of no use, and is to be replaced; everything it held may be lost. */
static enum reason wants_record(struct identity *identity, enum reason why)
{
    identity->write_why = why;
    identity->data_suspect = identity->data_suspect || why != REASON_DURABLE;
    return why;
}

/* Did this process begin after we last saw the one before it? Else it is a copy of the data, and
 * has not got what was written there since. */
static bool began_after(const struct identity *identity)
{
    return !is_known(identity) || identity->begun_ns >= identity->known_ns;
}

/* It said before the restart that it keeps everything; what it has kept is what we saw last; it has
 * had no other data since; and nothing had happened to it that no record told of. */
static bool is_durable_restart(const struct identity *identity, const struct guard_sample *sample)
{
    bool newest = !is_known(identity) || is_same(&identity->adopted_text, &identity->seen);
    return identity->durability == DURABILITY_SEEN && identity->record.durable && newest &&
           began_after(identity) && !sample->was_replica && !identity->data_suspect &&
           !identity->lost_keys;
}

/*
 * Its record takes the place of another one: until when it has no vote at least, whatever the new
 * one says. A daemon that begins a quarantine writes so while the record before it is there, so
 * that its end is about this or later. Else it is another server, database or copy than the one we
 * had votes of. And one that is known to have lost data has not kept everything, whatever a record
 * says.
 */
static int64_t least_until_ns(const struct identity *identity, const struct guard_periods *periods,
                              const struct guard_sample *sample)
{
    if (!is_known(identity))
        return 0;
    if (identity->adopted.quarantine_id != identity->record.quarantine_id)
        return identity->known_ns + periods->quarantine_ns;
    if (identity->data_suspect && !is_run_adopted(identity, identity->record.run_id))
        return sample->clock.received_ns + periods->quarantine_ns;
    return 0;
}

/* Was it written by an operator's override since we saw the record before? Then it stays. */
static bool is_overridden_since(const struct identity *identity, const struct guard_sample *sample)
{
    int64_t since_us = (sample->clock.received_ns - identity->known_ns) / 1000;
    return identity->record.why == REASON_BOOTSTRAP &&
           identity->record.join_us >= sample->clock.time_us - since_us;
}

/* Is it another process of the data whose record was adopted, as another daemon has recorded? */
static bool is_next_run(const struct identity *identity)
{
    return is_known(identity) &&
           identity->adopted.quarantine_id == identity->record.quarantine_id &&
           !is_run_adopted(identity, identity->record.run_id);
}

/* Is its record older than the one that was adopted? The end of a quarantine only rises: for one
 * run, and from each run of a durable master to the next one. */
static bool is_of_before(const struct identity *identity)
{
    bool same_run = is_run_adopted(identity, identity->record.run_id);
    return (same_run || is_next_run(identity)) &&
           identity->record.join_us < identity->adopted.join_us;
}

/* Until when it has no vote by what the record says. */
static int64_t says_until_ns(const struct identity *identity, const struct guard_periods *periods,
                             const struct guard_sample *sample)
{
    const struct record *record = &identity->record;
    /* A clock that was stepped back must not put it off for an hour. */
    int64_t ours_ms = periods->quarantine_ns / NS_PER_MS + 1;
    int64_t most_ms = record->quarantine_ms > ours_ms ? record->quarantine_ms : ours_ms;
    int64_t left_us = record->join_us - sample->clock.time_us;
    bool same_end = is_known(identity) && is_run_adopted(identity, record->run_id) &&
                    identity->adopted.join_us == record->join_us;
    /* The same quarantine as before, of the same run: it is not begun anew by a clock set back. */
    if (same_end && identity->adopted.quarantine_id == record->quarantine_id)
        return identity->quarantine_until_ns;
    /* Two that end alike, because the clock was set back: one of them has not begun when we think
     * it has. */
    if (same_end || left_us > most_ms * 1000)
        left_us = most_ms * 1000;
    return sample->clock.received_ns + (left_us <= 0 ? 0 : left_us * 1000);
}

static void adopt(struct identity *identity, const struct guard_periods *periods,
                  const struct guard_sample *sample)
{
    int64_t says_ns = says_until_ns(identity, periods, sample);
    int64_t least_ns = least_until_ns(identity, periods, sample);
    identity->quarantine_until_ns = says_ns > least_ns ? says_ns : least_ns;
    /* The daemon that wrote it has seen the evictions as well, or a loss of everything. */
    if (identity->adopted.quarantine_id != identity->record.quarantine_id)
        identity->lost_keys = false;
    identity->adopted_text = identity->seen;
    identity->adopted = identity->record;
    identity->adopted_ns = sample->clock.received_ns;
    if (identity->adopted.why == REASON_NONE)
        identity->adopted.why = REASON_RECORD;
}

/* False if it is none; what was parsed last, byte for byte, is not parsed again. */
static bool read_record(struct identity *identity, const struct guard_sample *sample)
{
    struct record_text *seen = &identity->seen;
    size_t len = sample->record == NULL ? 0 : sample->record_len;
    bool parsed =
        identity->readable && len == seen->len && memcmp(sample->record, seen->text, len) == 0;
    bool fits = len < LIMIT_RECORD;
    seen->len = fits ? len : 0;
    if (seen->len > 0)
        memcpy(seen->text, sample->record, seen->len);
    seen->text[seen->len] = '\0';
    identity->readable =
        parsed || (seen->len > 0 && record_parse(seen->text, seen->len, &identity->record));
    return fits;
}

/* REASON_NONE: it is the record that was adopted before, or is to be now. */
static enum reason look_at_record(struct identity *identity, const struct guard_periods *periods,
                                  const struct identity_context *context,
                                  const struct guard_sample *sample)
{
    const struct record *record = &identity->record;
    if (!read_record(identity, sample))
        return REASON_RECORD;
    memcpy(identity->replid, sample->replid, RECORD_ID);
    if (identity->seen.len == 0 && !is_known(identity))
        return wants_record(identity, REASON_NEW);
    if (identity->seen.len == 0)
        return wants_record(identity, is_run_adopted(identity, identity->run_id)
                                          ? REASON_FLUSHED
                                          : REASON_RESTARTED);
    if (!identity->readable)
        return REASON_RECORD;
    if (strcmp(record->set_id, context->set_id) != 0) {
        if (context->reset_set != NULL && strcmp(record->set_id, context->reset_set) == 0)
            identity->write_why = REASON_RESET;
        return REASON_OTHERSET;
    }
    if (strcmp(record->run_id, identity->run_id) != 0)
        return wants_record(identity,
                            !context->clock_stepped && is_durable_restart(identity, sample)
                                ? REASON_DURABLE
                                : REASON_RESTARTED);
    if (memcmp(record->replid, sample->replid, RECORD_ID) != 0)
        return wants_record(identity, REASON_FAILEDOVER);
    if (is_same(&identity->adopted_text, &identity->seen))
        return REASON_NONE;
    if (is_of_before(identity))
        return wants_record(identity, REASON_OLDDATA);
    if (is_next_run(identity) && !began_after(identity))
        return wants_record(identity, REASON_RESTARTED);
    /* Daemons that have not seen the one before have to hear of it. */
    if (!is_overridden_since(identity, sample) &&
        least_until_ns(identity, periods, sample) >
            says_until_ns(identity, periods, sample) + periods->heartbeat_ns)
        return wants_record(identity, is_run_adopted(identity, record->run_id) ? REASON_FLUSHED
                                                                               : REASON_RESTARTED);
    return REASON_NONE;
}

/* The record says how many keys had been evicted when it was written. */
static void compare_evicted(struct identity *identity)
{
    if (identity_is_sampled(identity) && identity_facts_known(identity) &&
        identity->error == REASON_NONE && identity->record.evicted != identity->evicted)
        identity->lost_keys = true;
}

static void record_eviction(struct identity *identity, const struct identity_context *context)
{
    if (identity_facts_known(identity) && identity->facts_error == REASON_NONE)
        identity->error = wants_record(identity, REASON_EVICTED);
    /* While it may go on with that it has no vote anyway, but a daemon that comes later must hear
     * of it. An operator's override comes first: the record that it writes must not be another at
     * once. */
    else if (identity->facts_error == REASON_EVICTION && !context->has_override)
        wants_record(identity, REASON_EVICTED);
}

bool identity_on_sample(struct identity *identity, const struct guard_periods *periods,
                        const struct identity_context *context, const struct guard_sample *sample)
{
    assert(identity->presence != PRESENCE_AWAY);
    identity->presence = PRESENCE_SAMPLED;
    identity->write_under_way = false;
    identity->error = sample->failed;
    if (sample->failed != REASON_NONE)
        return false;
    if (identity->write_why != REASON_STEPPED)
        identity->write_why = REASON_NONE;
    /* With replicas it may fail over to one. */
    if (sample->master && sample->replicated && identity->durability == DURABILITY_SEEN)
        identity->durability = DURABILITY_MISSING;
    identity->error =
        sample->master ? look_at_record(identity, periods, context, sample) : REASON_REPLICA;
    bool adopts =
        identity->error == REASON_NONE && !is_same(&identity->adopted_text, &identity->seen);
    if (adopts)
        adopt(identity, periods, sample);
    if (identity->error == REASON_NONE) {
        identity->known_ns = sample->clock.received_ns;
        compare_evicted(identity);
        if (identity->lost_keys)
            record_eviction(identity, context);
    }
    if (identity->error == REASON_NONE && identity_facts_known(identity) &&
        identity->facts_error == REASON_NONE)
        identity->data_suspect = false;
    return adopts;
}

void identity_on_facts(struct identity *identity, const struct guard_facts *facts)
{
    identity->facts_error = facts->failed;
    if (facts->failed != REASON_NONE)
        return;
    identity->evicted = facts->evicted;
    identity->durability = facts->durability;
    /* What it evicts it loses, and after a restart its settings may be others. */
    if (facts->may_evict) {
        identity->data_suspect = true;
        identity->facts_error = REASON_EVICTION;
        if (identity->durability == DURABILITY_SEEN)
            identity->durability = DURABILITY_MISSING;
    }
    compare_evicted(identity);
}

/* A daemon without the option leaves what others have found out. Two that disagree must not write
 * against each other all the time, so durability is granted later than it is withdrawn. */
bool identity_wants_durability(const struct identity *identity, const struct guard_periods *periods,
                               int64_t now_ns)
{
    bool seen = identity->durability == DURABILITY_SEEN;
    return identity->write_why == REASON_NONE && identity->error == REASON_NONE &&
           identity_facts_known(identity) && identity->durability != DURABILITY_NOT_WANTED &&
           seen != identity->adopted.durable &&
           (!seen || now_ns - identity->adopted_ns >= periods->quarantine_ns);
}

void identity_on_written(struct identity *identity, bool overridden, int64_t now_ns)
{
    assert(identity->write_why != REASON_NONE);
    assert(!identity->write_under_way);
    /* Should it not be written, a step is tried again; for the rest each sample asks anew. */
    if (identity->write_why != REASON_STEPPED)
        identity->write_why = REASON_NONE;
    identity->write_under_way = true;
    identity->written_ns = now_ns;
    identity->override = overridden ? OVERRIDE_CLOCK : OVERRIDE_NONE;
}

bool identity_heals(enum reason error)
{
    switch (error) {
    case REASON_NONE:
    case REASON_NEW:
    case REASON_RESTARTED:
    case REASON_FLUSHED:
    case REASON_FAILEDOVER:
    case REASON_OLDDATA:
    case REASON_EVICTED:
    case REASON_DURABLE:
        return true;
    default:
        return false;
    }
}

enum reason identity_refuses(const struct identity *identity)
{
    if (identity->facts_error != REASON_NONE && identity_heals(identity->error))
        return identity->facts_error;
    return identity->error;
}
