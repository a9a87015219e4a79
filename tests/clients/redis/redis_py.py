"""The scenario of tests/clients/test_redis_clients.py with redis-py."""

import os
import sys

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

HOST, PORT, SECRET = os.environ["HOST"], int(os.environ["PORT"]), os.environ["SECRET"]


def connect(secret=SECRET):
    return redis.Redis(
        host=HOST,
        port=PORT,
        username="app",
        password=secret,
        decode_responses=True,
        socket_timeout=60,  # longer than any WAIT
        retry=Retry(NoBackoff(), 0),  # a LOCK that is sent twice is two LOCKs
        single_connection_client=True,
    )


def ok(step):
    print("ok", step, flush=True)


def error_of(client, *words):
    try:
        client.execute_command(*words)
    except redis.RedisError as error:
        return str(error)
    raise AssertionError(f"no error: {words}")


def main():
    a, b = connect(), connect()

    outcome, token, validity_ms, elapsed_ms, fence = a.execute_command("LOCK", "x", "30s")
    assert (outcome, len(token), fence) == ("OK", 40, None)
    assert 0 < validity_ms + elapsed_ms <= 30000
    ok("lock")

    outcome, hint_ms = b.execute_command("LOCK", "x", "30s")
    assert outcome == "HELD" and 0 < hint_ms <= 30000
    ok("exclusion")

    outcome, same, *_ = a.execute_command("EXTEND", "x", token, "40s")
    assert (outcome, same) == ("OK", token)
    ok("extend")

    assert a.execute_command("UNLOCK", "x", token) == "OK"
    assert a.execute_command("UNLOCK", "x", token) == "GONE"
    assert a.client_info()["user"] == "app"
    ok("unlock")

    assert a.execute_command("LOCK", "x", "2s")[0] == "OK"
    assert b.execute_command("LOCK", "x", "30s", "WAIT", "30s")[0] == "OK"
    ok("wait")

    first = a.execute_command("LOCK", "f", "30s", "FENCE")
    assert a.execute_command("UNLOCK", "f", first[1]) == "OK"
    assert a.execute_command("LOCK", "f", "30s", "FENCE")[4] > first[4]
    ok("fence")

    assert "ttl-range TTL 1ms must be between" in error_of(a, "LOCK", "x", "1ms")
    ok("error")

    try:
        connect("wrong").execute_command("PING")
    except redis.RedisError as error:
        assert "wrong secret" in str(error), error
        ok("secret")

    assert "send HELLO 3 first" in error_of(a, "LOCK", "h", "3s", "HOLD")
    ok("hold")

    pipeline = a.pipeline(transaction=False)
    for i in range(64):
        pipeline.execute_command("LOCK", f"many:{i}", "30s")
    grants = pipeline.execute()
    assert len({grant[1] for grant in grants}) == 64
    ok("many")

    nodes = [dict(zip(node[::2], node[1::2])) for node in a.execute_command("NODES")]
    assert [node["vote"] for node in nodes] == ["yes"] * 3
    assert nodes[0]["reason"] is None and nodes[0]["for_ms"] == 0
    ok("listing")

    try:
        a.execute_command("BREAK", "x")
    except redis.exceptions.NoPermissionError:
        ok("denied")

    kept = a.execute_command("LOCK", "kept", "50s")[1]
    print("restart", flush=True)
    assert sys.stdin.readline() == "restarted\n"
    # The library reports the lost connection once, and connects again for the next command.
    try:
        a.execute_command("STATUS", "kept")
    except redis.ConnectionError:
        pass
    assert a.execute_command("STATUS", "kept")[0] == "HELD"
    assert a.execute_command("UNLOCK", "kept", kept) == "OK"
    ok("reconnect")


main()
