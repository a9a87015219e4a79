#!/bin/sh
# Retired names: none of them comes back as a file, type, function, field, test or metric.
# docs/glossary.md explains the terms in use. One line each: a whole word as an extended regular
# expression, and after the bar what to write instead.
set -u

retired='process_tree(_[a-z_]+)? | process_tree
keepers?|wrapper_supervisor|(supervisor|front)_[a-z_]+ | supervisor, parent
guard_io(_[a-z_]+)?|GUARD_IO_[A-Z]+ | guard_io
struct ends|end_watch(_set)?|ends_(init|deinit) | hangups, hangup_watch
WATCH_[A-Z_]+|watch_(take|inherit|resume|verdict|sample) | clock_monitor, MONITOR_...
guard_(mark|take_mark|heartbeat|on_beat)|(REDIS_)?SCRIPT_(MARK|BEAT) | record_write, guard_heartbeat
mark\.lua|heartbeat\.lua | write_record.lua, heartbeat.lua
attestation(es|ed|ing)?|attestation_[a-z_]+|[A-Z_]*ATTESTATION[A-Z_]* | attest, attestation
REASON_(DOUBLED|DOUBT|UNSETTLED) | REASON_DUPLICATE, REASON_OWN_CLOCK, REASON_CLOCK_UNPROVEN
read_only | read_only
errands? | pending work
acl_[a-z_]+|ACL_[A-Z_]+|struct acl | acl
guess(es|ers?)_[a-z]+|AUTH_THROTTLE_[A-Z_]+|struct guess(es|er) | auth_throttle
origins?_[a-z0-9]+|struct address_counts? | client_address, address_counts
LIMIT_TURN_[A-Z]+|LIMIT_CLIENT_PENDING_INPUT | LIMIT_READ_BUDGET, LIMIT_CLIENT_PENDING_INPUT
swept|on_sweep | deferred
(redlock|lease)_wish | redlock_lock_options
struct pending_request|call_(open|close|set_flight|leave_flight|tag|count) | pending_request
LIMIT_ROUNDS|redlockd_rounds_in_flight | LIMIT_ROUNDS, redlockd_rounds_in_flight
TIMER_[A-Z_]+|timers?(_[a-z_]+)? | timer
overdue_[a-z]+|[a-z_]+_overdue | timed_out
QUEUE_(ASK|ASKING|LOOK|TURN_[A-Z]+) | QUEUE_ACQUIRE, QUEUE_ACQUIRING, QUEUE_PROBE, QUEUE_STREAK_...
struct observation|queue_on_(seen|unseen|asked|wanted) | observation, queue_on_observed, ...
REDIS_KEY_PROBE|redlockd_key_probes_total|link_key_probes | REDIS_KEY_PROBE, key_probes
outstanding|OUTSTANDING_[A-Z]+|tickets? | outstanding command
owed_[a-z_]+|struct pending_releases|OWED_[A-Z_]+|[a-z_]+_owed(_[a-z]+)?|[A-Z_]+_OWED(_[A-Z]+)? | pending releases
LIMIT_BATCH|gathered(_for)?|is_batched | LIMIT_BATCH, batched
ROUND_BACKFILL|REDIS_BACKFILL|backfills|backfilled|[a-z_]+_planted_[a-z]+ | backfill
carriers(_of)? | holding_nodes
round_add_vote_fast | round_add_vote_fast
engine_(retune|try|say) | engine_apply_config, engine_self_test
patience|patience_[a-z]+|PATIENCE_[A-Z_]+|[a-z_]+_patience_[a-z]+ | timeout, retry policy
moods?|mood_[a-z]+|MOOD[A-Z_]* | health
struct (talk|question|verdict|asked)|(talk|client_driver|question|verdict)_[a-z_]+ | client_proto, client_request, client_result, exchange
farewell|[a-z_]+_farewell|knock|struct access_check | closing error, access check
eight_[a-z]+|SWAR_OF | swar
spelling_[a-z]+ | suggest
random|random_[a-z]+|io_random | random
interleavings|hostile_server?|liar_[a-z_]+|HOSTILE_[A-Z]+ | interleavings, hostile server
(cluster|checker|event_queue|prng)_[a-z_]+|struct (cluster|event_queue|prng) | cluster, checker, event queue, prng
monitor_(init|take|loss|ago|on_vote|on_lost) | status_history'

files=$(git ls-files -co --exclude-standard 2>/dev/null) || files=$(find . -type f -not -path './build/*')
files=$(printf '%s\n' "$files" | grep -vE '\.json$|^LICENSE$|^CHANGELOG|tests/words\.sh$')
bad=0
while read -r name; do
    instead=${name##* | }
    name=${name% | *}
    # shellcheck disable=SC2086
    if grep -nwE -- "$name" $files /dev/null || printf '%s\n' $files | grep -wE -- "$name"; then
        echo "words: retired; write instead: $instead" >&2
        bad=1
    fi
done <<EOF
$retired
EOF
[ $bad -eq 0 ] && echo "words: all is well"
exit $bad
