"""Checks the output of `redlock --json WORDS` strictly: redlock_json.py WORDS <OUTPUT.

The daemon has the masters a, b and c. The names of its locks are "12", "-" and one that is not
UTF-8.
"""
import json
import sys

words = sys.argv[1]
text = sys.stdin.buffer.read().decode("utf-8")
assert text.endswith("\n") and text.count("\n") == 1, text
got = json.loads(text)

if words == "locks":
    assert {row["resource"] for row in got} == {"12", "-", '"\\/\u00ff\u00e9'}, got
    for row in got:
        assert len(row["token"]) == 8 and row["hold"] is False and row["name"] is None, row
        assert 0 < row["left_ms"] <= 60000 and row["waiters"] == 0, row
elif words == "locks none":
    assert got == [], got
elif words == "nodes":
    assert [row["node"] for row in got] == ["a", "b", "c"], got
    assert all(row["vote"] is True and row["reason"] is None for row in got), got
elif words == "stats":
    assert got[0]["subject"] == "daemon" and got[0]["locks"] == 3, got
elif words == "clients":
    assert len(got) == 2 and all(type(row["client"]) is int for row in got), got
else:
    status = {
        "ping": "ok",
        "version": "ok",
        "status 12": "held",
        "status free": "free",
        "lock -n 12": "held",
        "lock --fence new": "ok",
        "lock": "invalid",
        "unlock 12": "invalid",
    }[words]
    assert got["status"] == status, got
    assert ("hint_ms" in got) == (status == "held"), got
    named = [word for word in words.split()[1:] if not word.startswith("-")]
    assert got.get("resource") == (named[0] if named else None), got
    if words == "lock --fence new":
        assert len(got["token"]) == 40 and got["fence"] > 0, got
        assert got["left_ms"] > 0 and got["deadline_ms"] > 0, got
