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

static bool has_adopted(const struct identity *identity)
{
    return identity->adopted_text.len > 0;
}

static bool is_run_adopted(const struct identity *identity, const char *run_id)
{
    return strcmp(identity->adopted.run_id, run_id) == 0;
}

/* Request a new record, because the present one is of no use. All data may be lost, unless a
 * durable master has restarted. */
static enum reason request_record(struct identity *identity, enum reason why)
{
    identity->write_why = why;
    identity->data_suspect = identity->data_suspect || why != REASON_DURABLE;
    return why;
}

/* Did this process begin after the last sample of the one before it? If not, it is a copy of the
 * data without what was written since. */
static bool began_after(const struct identity *identity)
{
    return !has_adopted(identity) || identity->begun_ns >= identity->known_ns;
}

/*
 * A restart is harmless if the record said before it that the master is durable, if the record is
 * the last one seen, if this process began after that, if the master has had no other data since,
 * and if nothing happened to it that no record shows.
 */
static bool is_durable_restart(const struct identity *identity, const struct guard_sample *sample)
{
    bool newest = !has_adopted(identity) || is_same(&identity->adopted_text, &identity->seen);
    return identity->durability == DURABILITY_SEEN && identity->record.durable && newest &&
           began_after(identity) && !sample->was_replica && !identity->data_suspect &&
           !identity->lost_keys;
}

/*
 * The record replaces another one. This is the time until which the node has no vote at least,
 * whatever the new record says. A daemon that begins a quarantine writes its record while the
 * previous one is there, so the new quarantine ends at about this time or later. Otherwise this is
 * another server, database or copy than the one whose votes were counted. A master that is known to
 * have lost data has not kept everything, whatever its record says.
 */
static int64_t least_until_ns(const struct identity *identity, const struct guard_periods *periods,
                              const struct guard_sample *sample)
{
    if (!has_adopted(identity))
        return 0;
    if (identity->adopted.quarantine_id != identity->record.quarantine_id)
        return identity->known_ns + periods->quarantine_ns;
    if (identity->data_suspect && !is_run_adopted(identity, identity->record.run_id))
        return sample->clock.received_ns + periods->quarantine_ns;
    return 0;
}

/* Was the record written by an operator override since the last one was seen? Then it stays. */
static bool is_overridden_since(const struct identity *identity, const struct guard_sample *sample)
{
    int64_t since_us = (sample->clock.received_ns - identity->known_ns) / 1000;
    return identity->record.why == REASON_BOOTSTRAP &&
           identity->record.join_us >= sample->clock.time_us - since_us;
}

/* Is it another process with the data of the adopted record, as recorded by another daemon? */
static bool is_next_run(const struct identity *identity)
{
    return has_adopted(identity) &&
           identity->adopted.quarantine_id == identity->record.quarantine_id &&
           !is_run_adopted(identity, identity->record.run_id);
}

/* Is the record older than the adopted one? The end of a quarantine only rises: within one run,
 * and from each run of a durable master to the next. */
static bool is_outdated(const struct identity *identity)
{
    bool same_run = is_run_adopted(identity, identity->record.run_id);
    return (same_run || is_next_run(identity)) &&
           identity->record.join_us < identity->adopted.join_us;
}

/* Until when the node has no vote according to the record. */
static int64_t recorded_until_ns(const struct identity *identity,
                                 const struct guard_periods *periods,
                                 const struct guard_sample *sample)
{
    const struct record *record = &identity->record;
    /* A clock that was stepped back must not prolong the quarantine by an hour. */
    int64_t ours_ms = periods->quarantine_ns / NS_PER_MS + 1;
    int64_t most_ms = record->quarantine_ms > ours_ms ? record->quarantine_ms : ours_ms;
    int64_t left_us = record->join_us - sample->clock.time_us;
    bool same_end = has_adopted(identity) && is_run_adopted(identity, record->run_id) &&
                    identity->adopted.join_us == record->join_us;
    /* The same quarantine of the same run: a clock that was set back does not restart it. */
    if (same_end && identity->adopted.quarantine_id == record->quarantine_id)
        return identity->quarantine_until_ns;
    /* Two quarantines that end at the same time because the clock was set back: one of them did
     * not begin when this daemon thinks it did. */
    if (same_end || left_us > most_ms * 1000)
        left_us = most_ms * 1000;
    return sample->clock.received_ns + (left_us <= 0 ? 0 : left_us * 1000);
}

static void adopt(struct identity *identity, const struct guard_periods *periods,
                  const struct guard_sample *sample)
{
    int64_t recorded_ns = recorded_until_ns(identity, periods, sample);
    int64_t least_ns = least_until_ns(identity, periods, sample);
    identity->quarantine_until_ns = recorded_ns > least_ns ? recorded_ns : least_ns;
    /* The daemon that wrote the record has also seen the evictions, or has seen a complete loss. */
    if (identity->adopted.quarantine_id != identity->record.quarantine_id)
        identity->lost_keys = false;
    identity->adopted_text = identity->seen;
    identity->adopted = identity->record;
    identity->adopted_ns = sample->clock.received_ns;
    if (identity->adopted.why == REASON_NONE)
        identity->adopted.why = REASON_RECORD;
}

/* Returns false if the text is too long for a record. A text equal to the last one is not parsed
 * again. */
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

/* REASON_NONE: the record is the adopted one, or will be adopted now. */
static enum reason check_record(struct identity *identity, const struct guard_periods *periods,
                                const struct identity_context *context,
                                const struct guard_sample *sample)
{
    const struct record *record = &identity->record;
    if (!read_record(identity, sample))
        return REASON_RECORD;
    memcpy(identity->replid, sample->replid, RECORD_ID);
    if (identity->seen.len == 0 && !has_adopted(identity))
        return request_record(identity, REASON_NEW);
    if (identity->seen.len == 0)
        return request_record(identity, is_run_adopted(identity, identity->run_id)
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
        return request_record(identity,
                              !context->clock_stepped && is_durable_restart(identity, sample)
                                  ? REASON_DURABLE
                                  : REASON_RESTARTED);
    if (memcmp(record->replid, sample->replid, RECORD_ID) != 0)
        return request_record(identity, REASON_FAILEDOVER);
    if (is_same(&identity->adopted_text, &identity->seen))
        return REASON_NONE;
    if (is_outdated(identity))
        return request_record(identity, REASON_OLDDATA);
    if (is_next_run(identity) && !began_after(identity))
        return request_record(identity, REASON_RESTARTED);
    /* Daemons that have not seen the previous record must learn of it. */
    if (!is_overridden_since(identity, sample) &&
        least_until_ns(identity, periods, sample) >
            recorded_until_ns(identity, periods, sample) + periods->heartbeat_ns)
        return request_record(
            identity, is_run_adopted(identity, record->run_id) ? REASON_FLUSHED : REASON_RESTARTED);
    return REASON_NONE;
}

/* The record has the number of keys evicted when it was written. */
static void compare_evicted(struct identity *identity)
{
    if (identity_is_sampled(identity) && identity_facts_known(identity) &&
        identity->error == REASON_NONE && identity->record.evicted != identity->evicted)
        identity->lost_keys = true;
}

static void record_eviction(struct identity *identity, const struct identity_context *context)
{
    if (identity_facts_known(identity) && identity->facts_error == REASON_NONE)
        identity->error = request_record(identity, REASON_EVICTED);
    /*
     * While the master may evict more keys it has no vote anyway, but a daemon that starts later
     * must learn of it. An operator override comes first: the record that it writes must not be
     * replaced at once.
     */
    else if (identity->facts_error == REASON_EVICTION && !context->has_override)
        request_record(identity, REASON_EVICTED);
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
    /* A master with replicas may fail over to one. */
    if (sample->master && sample->replicated && identity->durability == DURABILITY_SEEN)
        identity->durability = DURABILITY_MISSING;
    identity->error =
        sample->master ? check_record(identity, periods, context, sample) : REASON_REPLICA;
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
    /* The master loses what it evicts, and its settings may differ after a restart. */
    if (facts->may_evict) {
        identity->data_suspect = true;
        identity->facts_error = REASON_EVICTION;
        if (identity->durability == DURABILITY_SEEN)
            identity->durability = DURABILITY_MISSING;
    }
    compare_evicted(identity);
}

/*
 * A daemon without the option leaves the durability that others have recorded. Two daemons that
 * disagree must not rewrite each other's record all the time, so durability is granted later than
 * it is withdrawn.
 */
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
    /* If the write fails, a step is tried again from here; other records are requested by each
     * sample. */
    if (identity->write_why != REASON_STEPPED)
        identity->write_why = REASON_NONE;
    identity->write_under_way = true;
    identity->written_ns = now_ns;
    identity->override = overridden ? OVERRIDE_CLOCK : OVERRIDE_NONE;
}

bool identity_ends_by_itself(enum reason error)
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
    if (identity->facts_error != REASON_NONE && identity_ends_by_itself(identity->error))
        return identity->facts_error;
    return identity->error;
}
