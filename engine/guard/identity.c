#include "engine/guard/identity.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
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
    identity->write_error = REASON_NONE;
}

void identity_on_lost(struct identity *identity)
{
    identity->presence = PRESENCE_AWAY;
}

static bool is_same(const struct record_text *a, const struct record_text *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* Has this daemon ever adopted a record of the master? */
static bool has_adopted(const struct identity *identity)
{
    return identity->adopted_text.len > 0;
}

/* Is this the run_id in the adopted record? */
static bool is_run_adopted(const struct identity *identity, const char *run_id)
{
    return strcmp(identity->adopted.run_id, run_id) == 0;
}

/* Request a new record, because the present one is missing or wrong. Then all data may be lost,
 * except after the restart of a durable master. Returns why. */
static enum reason request_record(struct identity *identity, enum reason why)
{
    identity->write_why = why;
    identity->data_suspect = identity->data_suspect || why != REASON_DURABLE;
    return why;
}

/* Did this process begin after the daemon last heard from the process before it? If not, it is a
 * copy of the data, and lacks what was written since. */
static bool began_after(const struct identity *identity)
{
    return !has_adopted(identity) || identity->begun_ns >= identity->known_ns;
}

/*
 * A restart is harmless if all of these are true: the record from before the restart says that the
 * master is durable; it is the last record that this daemon has seen; the new process began after
 * the daemon last saw it; the data cannot be another server's; no event happened that may have cost
 * data without a record showing it; and the new process has not evicted keys (its count begins at
 * 0), which it can do while its settings allow it for a moment and no daemon looks.
 */
static bool is_durable_restart(const struct identity *identity, const struct guard_sample *sample)
{
    bool newest = !has_adopted(identity) || is_same(&identity->adopted_text, &identity->seen);
    return identity->durability == DURABILITY_SEEN && identity->record.durable && newest &&
           began_after(identity) && !sample->was_replica && !identity->data_suspect &&
           !identity->lost_keys && identity->evicted == 0;
}

/*
 * The record on the master replaces the adopted one. Returns the earliest time at which the node
 * may get its vote back, whatever the new record says; 0: the record decides alone.
 *
 * A daemon that begins a quarantine replaces the previous record, so the new quarantine ends at
 * about the time returned here, or later. If the record says otherwise, this is not the server,
 * database or copy of the data whose votes were counted. A master that is known to have lost data
 * waits for a whole quarantine from now, whatever its record says.
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

/* Was the record written by an operator override since the adopted record was last seen? Then it is
 * not replaced. */
static bool is_overridden_since(const struct identity *identity, const struct guard_sample *sample)
{
    int64_t since_us = (sample->clock.received_ns - identity->known_ns) / 1000;
    return identity->record.why == REASON_BOOTSTRAP &&
           identity->record.join_us >= sample->clock.time_us - since_us;
}

/* Is this another process with the data of the adopted record, and has another daemon recorded that
 * already? */
static bool is_next_run(const struct identity *identity)
{
    return has_adopted(identity) &&
           identity->adopted.quarantine_id == identity->record.quarantine_id &&
           !is_run_adopted(identity, identity->record.run_id);
}

/* Is the record older than the adopted one? The end of a quarantine (join_us) only rises, both
 * within one run and from each run of a durable master to the next. */
static bool is_outdated(const struct identity *identity)
{
    bool same_run = is_run_adopted(identity, identity->record.run_id);
    return (same_run || is_next_run(identity)) &&
           identity->record.join_us < identity->adopted.join_us;
}

/* Until when the node has no vote according to the record, on the daemon's clock. */
static int64_t recorded_until_ns(const struct identity *identity,
                                 const struct guard_periods *periods,
                                 const struct guard_sample *sample)
{
    const struct record *record = &identity->record;
    /* If the clock of the master was stepped back, join_us may be an hour ahead. That must not
     * prolong the quarantine, so the time left is limited to its length. */
    int64_t ours_ms = periods->quarantine_ns / NS_PER_MS + 1;
    int64_t most_ms = max(record->quarantine_ms, ours_ms);
    int64_t left_us = record->join_us - sample->clock.time_us;
    bool same_end = has_adopted(identity) && is_run_adopted(identity, record->run_id) &&
                    identity->adopted.join_us == record->join_us;
    /* This is the quarantine of the same run that the daemon knows already. A clock that was set
     * back does not restart it. */
    if (same_end && identity->adopted.quarantine_id == record->quarantine_id)
        return identity->quarantine_until_ns;
    /* Another quarantine ends at the same time, because the clock was set back. One of the two did
     * not begin when this daemon thinks it did, so wait for the whole length. */
    if (same_end || left_us > most_ms * 1000)
        left_us = most_ms * 1000;
    return sample->clock.received_ns + max(left_us, 0) * 1000;
}

static void adopt(struct identity *identity, const struct guard_periods *periods,
                  const struct guard_sample *sample)
{
    int64_t recorded_ns = recorded_until_ns(identity, periods, sample);
    int64_t least_ns = least_until_ns(identity, periods, sample);
    identity->quarantine_until_ns = max(recorded_ns, least_ns);
    /* The daemon that wrote a new quarantine into the record has seen the evictions too, or a loss
     * of all data. */
    if (identity->adopted.quarantine_id != identity->record.quarantine_id) {
        identity->lost_keys = identity->went_back = false;
        identity->beats[0] = '\0';
    }
    identity->adopted_text = identity->seen;
    identity->adopted = identity->record;
    identity->adopted_ns = sample->clock.received_ns;
    if (identity->adopted.why == REASON_NONE)
        identity->adopted.why = REASON_RECORD;
}

/* Read the record of the sample into `seen`, and parse it unless its text is the same as before.
 * Returns false if the text is too long for a record. */
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

/* Check the record on the master. REASON_NONE: it is the adopted one, or is to be adopted now. */
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
    /* Another daemon took this restart for harmless, but has not seen what this daemon has. */
    if (is_next_run(identity) && (!began_after(identity) || !identity->adopted.durable))
        return request_record(identity, REASON_RESTARTED);
    /* The record ends too early for this daemon. Other daemons may not have seen the previous
     * record, so a new one has to tell them. */
    if (!is_overridden_since(identity, sample) &&
        least_until_ns(identity, periods, sample) >
            recorded_until_ns(identity, periods, sample) + periods->heartbeat_ns)
        return request_record(
            identity, is_run_adopted(identity, record->run_id) ? REASON_FLUSHED : REASON_RESTARTED);
    return REASON_NONE;
}

/* Compare the number of evicted keys with that in the record, which is from when the record was
 * written. */
static void compare_evicted(struct identity *identity)
{
    if (identity_is_sampled(identity) && identity_facts_known(identity) &&
        identity->error == REASON_NONE && identity->record.evicted != identity->evicted)
        identity->lost_keys = true;
}

/* The master has evicted keys since its record was written: request a record that says so. */
static void record_eviction(struct identity *identity, const struct identity_context *context)
{
    if (identity_facts_known(identity) && identity->facts_error == REASON_NONE)
        identity->error = request_record(identity, REASON_EVICTED);
    /*
     * The settings allow the master to evict more keys, so it has no vote anyway. But a daemon that
     * starts later must learn of the evictions. During an operator override no such record is
     * requested, because it would replace the record of the override at once.
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
    /* A master with replicas may fail over to one, so its durability does not help. */
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
        if (identity->went_back)
            identity->error = request_record(identity, REASON_OLDDATA);
        else if (identity->lost_keys)
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
    /* The master may evict keys, and so lose locks. After a restart its settings may be different,
     * so it is not durable either. */
    if (facts->may_evict) {
        identity->data_suspect = true;
        identity->facts_error = REASON_EVICTION;
        if (identity->durability == DURABILITY_SEEN)
            identity->durability = DURABILITY_MISSING;
    }
    compare_evicted(identity);
}

bool identity_on_beats(struct identity *identity, const char *beats)
{
    uint64_t mark;
    int64_t first_us, number, known_first_us, known_number;
    if (!has_adopted(identity) ||
        sscanf(beats, "%" SCNx64 ".%" SCNd64 ".%" SCNd64, &mark, &first_us, &number) != 3 ||
        mark != identity->adopted.quarantine_id)
        return false;
    if (sscanf(identity->beats, "%*[^.].%" SCNd64 ".%" SCNd64, &known_first_us, &known_number) ==
            2 &&
        (first_us != known_first_us || number <= known_number))
        identity->went_back = true;
    snprintf(identity->beats, sizeof(identity->beats), "%s", beats);
    if (identity->went_back && identity->error == REASON_NONE)
        identity->error = request_record(identity, REASON_OLDDATA);
    return identity->went_back;
}

/*
 * A daemon whose configuration does not declare the node durable leaves the durability that other
 * daemons have recorded. If two daemons disagree, they must not rewrite the record all the time. So
 * a daemon records that the node is durable only a quarantine after the present record was adopted,
 * but records the opposite at once.
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
    /* If the write fails, the record of a step is requested again because write_why stays. Every
     * other record is requested by each sample as long as it is needed. */
    if (identity->write_why != REASON_STEPPED)
        identity->write_why = REASON_NONE;
    identity->write_under_way = true;
    identity->written_ns = now_ns;
    identity->override = overridden ? OVERRIDE_CLOCK : OVERRIDE_NONE;
}

enum reason identity_refuses(const struct identity *identity)
{
    bool ends = reason_ends_by_waiting(identity->error);
    if (ends && identity->facts_error != REASON_NONE)
        return identity->facts_error;
    /* The wait begins when the record is written. */
    if (ends && identity->error != REASON_NONE && identity->write_error != REASON_NONE)
        return identity->write_error;
    return identity->error;
}
