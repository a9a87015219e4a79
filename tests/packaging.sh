#!/bin/sh
# What packaging/ tells Prometheus and Grafana: only metrics that there are, and each metric stands in
# docs/operations.md. Where promtool is on the PATH, the rules and the queries are right, too.
set -u
bad=0
complain() { echo "packaging: $*" >&2; bad=1; }

names=$(grep -oE '"(redlockd|process)_[a-z_]+"' server/admin/metrics.c | tr -d '"' | sort -u)
[ -n "$names" ] || complain "no metrics in server/admin/metrics.c"
for name in $names; do
    grep -q "\`$name\`" docs/operations.md || complain "docs/operations.md does not name $name"
done
used=$(cat packaging/alerts.yaml packaging/grafana-dashboard.json | grep -oE '\b(redlockd|process)_[a-z_]+' |
       sed -E 's/_seconds_(bucket|sum|count)$/_seconds/' | sort -u)
for name in $used; do
    echo "$names" | grep -qx "$name" || complain "there is no metric $name"
done
for alert in $(sed -n 's/^ *- alert: //p' packaging/alerts.yaml); do
    grep -q "\`$alert\`" docs/operations.md || complain "docs/operations.md does not name $alert"
done
# What alerts and what is red are the same losses.
left_out() { grep -oE 'holds_lost_total\{[^}]*reason!~\\?"[a-z|]+' "$1" | grep -oE '[a-z|]+$'; }
[ "$(left_out packaging/alerts.yaml)" = "$(left_out packaging/grafana-dashboard.json)" ] ||
    complain "alert and dashboard leave out other reasons why a lock was lost"
python3 -m json.tool packaging/grafana-dashboard.json >/dev/null || complain "no JSON: the dashboard"

command -v promtool >/dev/null || exit $bad
promtool check rules packaging/alerts.yaml >/dev/null || complain "packaging/alerts.yaml"
promtool test rules packaging/alerts_test.yaml >/dev/null || complain "packaging/alerts_test.yaml"
promtool check config packaging/prometheus.yaml >/dev/null || complain "packaging/prometheus.yaml"
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
promtool check rules "$queries" >/dev/null || complain "a query of the dashboard"
rm -f "$queries"
exit $bad
