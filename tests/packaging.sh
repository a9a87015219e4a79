#!/bin/sh
# Checks packaging/ for Prometheus and Grafana: it uses only metrics that exist, and docs/operations.md
# names every metric and alert. If promtool is installed, it also checks the rules and queries.
set -u
bad=0
complain() { echo "packaging: $*" >&2; bad=1; }

names=$(grep -oE '"(redlockd|process)_[a-z_]+"' server/admin/metrics.c | tr -d '"' | sort -u)
[ -n "$names" ] || complain "found no metrics in server/admin/metrics.c"
for name in $names; do
    grep -q "\`$name\`" docs/operations.md || complain "docs/operations.md does not name $name"
done
used=$(cat packaging/alerts.yaml packaging/grafana-dashboard.json | grep -oE '\b(redlockd|process)_[a-z_]+' |
       sed -E 's/_seconds_(bucket|sum|count)$/_seconds/' | sort -u)
for name in $used; do
    echo "$names" | grep -qx "$name" || complain "packaging uses the unknown metric $name"
done
for alert in $(sed -n 's/^ *- alert: //p' packaging/alerts.yaml); do
    grep -q "\`$alert\`" docs/operations.md || complain "docs/operations.md does not name $alert"
done
# The alert and the dashboard must count lost HOLDs for the same reasons.
left_out() { grep -oE 'holds_lost_total\{[^}]*reason!~\\?"[a-z|]+' "$1" | grep -oE '[a-z|]+$'; }
[ "$(left_out packaging/alerts.yaml)" = "$(left_out packaging/grafana-dashboard.json)" ] ||
    complain "the alert and the dashboard exclude different reasons of lost locks"
python3 -m json.tool packaging/grafana-dashboard.json >/dev/null || complain "packaging/grafana-dashboard.json is not valid JSON"

command -v promtool >/dev/null || exit $bad
promtool check rules packaging/alerts.yaml >/dev/null || complain "promtool rejects packaging/alerts.yaml"
promtool test rules packaging/alerts_test.yaml >/dev/null || complain "packaging/alerts_test.yaml fails"
promtool check config packaging/prometheus.yaml >/dev/null || complain "promtool rejects packaging/prometheus.yaml"
queries=$(mktemp)
python3 - >"$queries" <<'END'
import json
print("groups:\n- name: queries\n  rules:")
number = 0
for panel in json.load(open("packaging/grafana-dashboard.json"))["panels"]:
    for target in panel["targets"]:
        number += 1
        query = target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
        print(f"  - {{record: 'query:{number}', expr: {json.dumps(query)}}}")
END
promtool check rules "$queries" >/dev/null || complain "promtool rejects a query of the dashboard"
rm -f "$queries"
exit $bad
