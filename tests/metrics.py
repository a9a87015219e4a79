#!/usr/bin/env python3
"""Checks metrics in Prometheus' text format on standard input. Prints all errors and exits 1.

The rules are stricter than those of the format: each family is contiguous and has HELP and TYPE; no series
occurs twice; exactly the counters end with _total; histograms are consistent; the only units are
seconds and bytes; no label names a resource.
"""
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
VALUE = r"-?(?:[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?|\+Inf)"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? ({VALUE})")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
WRONG_UNITS = re.compile(r"_(ms|us|ns|milliseconds|microseconds|minutes|kib|mib|kilobytes)(_|$)")

faults = []
families = {}
series = {}


def fault(number, text):
    faults.append(f"line {number}: {text}")


def labels_of(number, text):
    labels = {}
    at = 0
    while at < len(text):
        match = LABEL.match(text, at)
        if not match:
            fault(number, f"labels: {text[at:]}")
            break
        if match[1] in labels:
            fault(number, f"the label {match[1]} occurs twice")
        labels[match[1]] = match[2]
        at = match.end()
    if {"resource", "key", "token", "client"} & labels.keys():
        fault(number, "a label names a resource, a token or a client")
    return labels


def family_of(name, current):
    kind = families.get(current, {}).get("type")
    if kind == "histogram" and re.fullmatch(current + "_(bucket|sum|count)", name):
        return current
    return name


def take_comment(number, line, current):
    match = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line)
    if not match:
        fault(number, f"a comment other than HELP and TYPE: {line}")
        return current
    what, name, rest = match.groups()
    family = families.setdefault(name, {"samples": []})
    if what.lower() in family:
        fault(number, f"{what} of {name} occurs twice")
    family[what.lower()] = rest
    if what == "HELP":
        if not rest.endswith("."):
            fault(number, f"HELP of {name} is not a sentence")
        return name
    if name != current:
        fault(number, f"TYPE of {name} does not follow its HELP")
    if rest not in ("counter", "gauge", "histogram"):
        fault(number, f"{name} has the unknown type {rest}")
    if (rest == "counter") != name.endswith("_total"):
        fault(number, f"{name} is a {rest}; only counters end with _total")
    if WRONG_UNITS.search(name):
        fault(number, f"{name} does not use a base unit")
    if rest == "histogram" and not name.endswith("_seconds"):
        fault(number, f"{name} does not end with its unit")
    return name


def take_sample(number, line, current):
    match = SAMPLE.fullmatch(line)
    if not match:
        fault(number, f"not a sample: {line}")
        return
    name, labels, value = match[1], labels_of(number, match[2] or ""), float(match[3])
    if family_of(name, current) != current:
        fault(number, f"{name} is outside its family")
        return
    if "type" not in families[current]:
        fault(number, f"{name} has no TYPE")
    key = (name, tuple(sorted(labels.items())))
    if key in series:
        fault(number, f"duplicate series: {line}")
    series[key] = value
    if families[current].get("type") != "gauge" and value < 0:
        fault(number, f"negative value: {line}")
    families[current]["samples"].append((name, labels, value))


def check_histogram(name, samples):
    groups = {}
    for sample, labels, value in samples:
        rest = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
        group = groups.setdefault(rest, {"bounds": [], "counts": []})
        if sample == name + "_bucket":
            group["bounds"].append(float(labels.get("le", "nan").replace("+Inf", "inf")))
            group["counts"].append(value)
        else:
            group[sample[len(name) + 1:]] = value
    for rest, group in groups.items():
        if group["bounds"] != sorted(set(group["bounds"])) or group["bounds"][-1] != float("inf"):
            faults.append(f"{name}{rest}: the buckets are not in order")
        if group["counts"] != sorted(group["counts"]):
            faults.append(f"{name}{rest}: the buckets are not cumulative")
        if group.get("count") != group["counts"][-1] or "sum" not in group:
            faults.append(f"{name}{rest}: count and sum do not match the buckets")


text = sys.stdin.read()
if not text.endswith("\n"):
    faults.append("the last line has no LF")
current = None
for number, line in enumerate(text.splitlines(), 1):
    if line.startswith("#"):
        current = take_comment(number, line, current)
    else:
        take_sample(number, line, current)
for name, family in families.items():
    if family.get("type") == "histogram":
        check_histogram(name, family["samples"])
if len(families) < 10:
    faults.append(f"only {len(families)} metrics")
print("\n".join(faults) if faults else f"{len(families)} metrics, {len(series)} series")
sys.exit(1 if faults else 0)
