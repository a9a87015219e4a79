#!/bin/sh
# Checks packaging/ for Prometheus and Grafana: it uses only metrics that exist, docs/operations/ names
# every metric, and every alert links to its section of the runbook. If promtool is installed, it also
# checks the rules and queries.
set -u
bad=0
complain() { echo "packaging: $*" >&2; bad=1; }
metrics_page=docs/operations/monitoring.md
runbook=docs/operations/runbook.md

names=$(grep -oE '"(redlockd|process)_[a-z_]+"' server/admin/metrics.c | tr -d '"' | sort -u)
[ -n "$names" ] || complain "found no metrics in server/admin/metrics.c"
for name in $names; do
    grep -q "\`$name\`" $metrics_page || complain "$metrics_page does not name $name"
done
used=$(cat packaging/alerts.yaml packaging/grafana-dashboard.json $runbook | grep -oE '\b(redlockd|process)_[a-z_]+' |
       sed -E 's/_seconds_(bucket|sum|count)$/_seconds/' | sort -u)
for name in $used; do
    echo "$names" | grep -qx "$name" || complain "packaging uses the unknown metric $name"
done
# The anchor of a section is its heading in lower case.
alerts=$(sed -n 's/^ *- alert: //p' packaging/alerts.yaml)
for alert in $alerts; do
    grep -qx "## $alert" $runbook || complain "$runbook has no section $alert"
    anchor=$(echo "$alert" | tr '[:upper:]' '[:lower:]')
    sed -n "/^ *- alert: $alert\$/,/^\$/p" packaging/alerts.yaml |
        grep -q "^ *runbook_url: \"[a-z]*://.*/$runbook#$anchor\"\$" ||
        complain "the runbook_url of $alert does not lead to $runbook#$anchor"
done
for section in $(sed -n 's/^## \(Redlockd[A-Za-z]*\)$/\1/p' $runbook); do
    echo "$alerts" | grep -qx "$section" || complain "$runbook has a section for the unknown alert $section"
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
import re
print("groups:\n- name: queries\n  rules:")
queries = [target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
           for panel in json.load(open("packaging/grafana-dashboard.json"))["panels"]
           for target in panel["targets"]]
for block in re.findall(r"^```promql\n(.*?)^```", open("docs/operations/runbook.md").read(), re.M | re.S):
    queries += block.splitlines()
for number, query in enumerate(queries):
    print(f"  - {{record: 'query:{number}', expr: {json.dumps(query)}}}")
END
promtool check rules "$queries" >/dev/null || complain "promtool rejects a query of the dashboard or of the runbook"
rm -f "$queries"
exit $bad
