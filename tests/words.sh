#!/bin/sh
# Fails if a retired name is used for a file, type, function, field, test or metric. docs/glossary.md
# explains the current terms. Each line below has an extended regular expression for whole retired words,
# and after " | " the replacement.
set -u

retired='brood(_[a-z_]+)? | process_tree
keepers?|wrapper_keeper|(keeper|front)_[a-z_]+ | supervisor, parent
warden(_[a-z_]+)?|WARDEN_[A-Z]+ | guard_io
struct ends|end_watch(_set)?|ends_(init|deinit) | hangups, hangup_watch
WATCH_[A-Z_]+|watch_(take|inherit|resume|verdict|sample) | clock_monitor, MONITOR_...
guard_(mark|take_mark|beat|on_beat)|(REDIS_)?SCRIPT_(MARK|BEAT) | record_write, guard_heartbeat
mark\.lua|beat\.lua | write_record.lua, heartbeat.lua
vouch(es|ed|ing)|vouch_[a-z_]+|[A-Z_]*VOUCH[A-Z_]* | attest, attestation; the stored key redlockd:vouch: keeps its name
REASON_(DOUBLED|DOUBT|UNSETTLED) | REASON_DUPLICATE, REASON_OWN_CLOCK, REASON_CLOCK_UNPROVEN
looks_on | read_only
errands? | pending work
permit_[a-z_]+|PERMIT_[A-Z_]+|struct permit | acl
guess(es|ers?)_[a-z]+|GUESSES_[A-Z_]+|struct guess(es|er) | auth_throttle
origins?_[a-z0-9]+|struct origins? | client_address, address_counts
LIMIT_TURN_[A-Z]+|LIMIT_CLIENT_HELD_BACK | LIMIT_READ_BUDGET, LIMIT_CLIENT_PENDING_INPUT
on_sweep|[a-z_]+_want_sweep | deferred
(redlock|lease)_wish | redlock_lock_options
struct call|call_(open|close|set_flight|leave_flight|tag|count) | pending_request
LIMIT_OPERATIONS|redlockd_operations | LIMIT_ROUNDS, redlockd_rounds_in_flight
ALARM_[A-Z_]+|alarms?(_[a-z_]+)? | timer
overdue_[a-z]+|[a-z_]+_overdue | timed_out
QUEUE_(ASK|ASKING|LOOK|TURN_[A-Z]+) | QUEUE_ACQUIRE, QUEUE_ACQUIRING, QUEUE_PROBE, QUEUE_STREAK_...
struct sighting|queue_on_(seen|unseen|asked|wanted) | observation, queue_on_observed, ...
REDIS_LOOK|redlockd_looks_total|link_looks | REDIS_KEY_PROBE, key_probes
link_ticket|TICKET_[A-Z]+|ticket_[a-z]+ | outstanding command
owed_[a-z_]+|struct owed|[A-Z_]*OWED(_[A-Z_]+)?|[a-z_]+_owed(_[a-z]+)? | pending releases
LIMIT_TOGETHER|gathered(_for)?|is_gathered | LIMIT_BATCH, batched
ROUND_PLANT|REDIS_PLANT|plants|planted|[a-z_]+_planted_[a-z]+ | backfill
carriers(_of)? | holding_nodes
round_count_quietly | round_add_vote_fast
engine_(retune|try|say) | engine_apply_config, engine_self_test
patience|patience_[a-z]+|PATIENCE_[A-Z_]+|[a-z_]+_patience_[a-z]+ | timeout, retry policy
moods?|mood_[a-z]+|MOOD[A-Z_]* | health
struct (talk|question|verdict|asked)|(talk|talker|question|verdict)_[a-z_]+ | client_proto, client_request, client_result, exchange
farewell|[a-z_]+_farewell|knock|struct passage | closing error, access check
eight_[a-z]+|EIGHT_OF | swar
spelling_[a-z]+ | suggest
entropy|entropy_[a-z]+|io_entropy | random
duel|liars?|liar_[a-z_]+|LIAR_[A-Z]+ | interleavings, hostile server
(world|judge|agenda|dice)_[a-z_]+|struct (world|agenda|dice) | cluster, checker, event queue, prng
monitor_(init|take|loss|ago|on_vote|on_lost) | status_history
acl_ask|LOSS_OVERDUE|guard_carries | acl_check, LOSS_TIMED_OUT, guard_may_hold_locks
name_lookup_goes_on|node_goes_on | name_lookup_has_more, node_has_more
probe_on_(tried|leased)|io_(tried|leased) | probe_on_self_tested, probe_on_lease_found'

files=$(git ls-files -co --exclude-standard 2>/dev/null)
[ -n "$files" ] || files=$(find . -type f -not -path './build/*' -not -path './.git/*' -printf '%P\n')
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
