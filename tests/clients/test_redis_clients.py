#!/usr/bin/python3
"""Runs one Redis client, an ordinary library for Redis, through a scenario with a real daemon.

    tests/clients/test_redis_clients.py CLIENT

make links this program under the name of each client, so that tests/run.sh shows one line for each.
The environment variable REDLOCKD is the daemon's program, in the folder of the build.

The scenario of each client is a program in tests/clients/redis. It gets these variables:

    HOST, PORT          address of the daemon
    SECRET              secret of the user `app`, which has not the verbs BREAK and STATS

It prints "ok STEP" when a step of the scenario has succeeded, in any order, and ends with an error
if one fails. When it prints "restart", the daemon is killed and started again. Then it reads the
line "restarted" from its standard input. The steps are:

    lock        LOCK is granted: token, validity and elapsed time as numbers, no fencing token
    exclusion   a second connection is answered HELD, with a number
    wait        LOCK with WAIT on the second connection is granted when the TTL of the first ends
    fence       two LOCKs with FENCE have numbers that grow
    extend      EXTEND is answered OK, with the token
    unlock      UNLOCK is answered OK, and GONE the second time
    error       a TTL of 1ms is the client's exception for errors, with the text of the daemon
    secret      a wrong secret is an exception when the client connects
    hold        over RESP3: LOST arrives as push message after another connection's UNLOCK. Clients
                that discard push messages: EXTEND says GONE. Over RESP2: the error names HELLO 3
    many        64 LOCKs of different names at once on one connection
    listing     NODES has three masters that vote
    denied      BREAK is an exception with the word NOPERM
    reconnect   after a restart of the daemon the same client object works again, and the lock that
                was acquired before is still held and can be released

If docs/redis-clients.md has an example for this client, the step `page` runs it. The example must
acquire and release its lock.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading

import fixture

HERE = os.path.dirname(os.path.realpath(__file__))
STEPS = set("lock exclusion wait fence extend unlock error secret hold many listing denied "
            "reconnect".split())  # fmt: skip
DEADLINE_S = 120


def command(client, build):
    """The argv of the client's program."""
    built = os.path.join(build, "clients")
    source = os.path.join(HERE, "redis")
    commands = {
        "redis-cli": ["bash", f"{source}/redis_cli.sh"],
        "hiredis": [f"{build}/tests/clients/redis/hiredis"],
        # Debian's Python, which has Debian's packages.
        "redis-py": ["/usr/bin/python3", f"{source}/redis_py.py"],
        "ioredis": ["node", f"{built}/npm/ioredis.mjs"],
        "node-redis": ["node", f"{built}/npm/node_redis.mjs"],
        "redigo": [f"{built}/redigo-scenario"],
        "phpredis": ["php", f"{source}/phpredis.php"],
        "redis-rb": ["ruby", f"{source}/redis_rb.rb"],
        "perl-redis": ["perl", f"{source}/perl_redis.pl"],
    }
    if client not in commands:
        sys.exit(f"usage: test_redis_clients.py {'|'.join(commands)}")
    return commands[client]


def example(client):
    """The example for this client in the page for users, or None."""
    with open(os.path.join(HERE, "../../docs/redis-clients.md"), encoding="utf-8") as page:
        found = re.search(rf"^## {client}\n.*?^```(\w+)\n(.*?)^```$", page.read(), re.M | re.S)
    return found and found.groups()


def run_example(client, build, port, secret, cluster):
    """True if the example succeeds, and its UNLOCK as well."""
    language, text = example(client)
    text = text.replace("7335", port).replace("the secret", secret)
    # Node looks for packages beside the program.
    folder = os.path.join(build, "clients", "npm" if language == "js" else "examples")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{client}-example.{'mjs' if language == 'js' else language}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    runner = {
        "sh": ["sh"],
        "python": ["/usr/bin/python3"],
        "js": ["node"],
        "php": ["php"],
        "ruby": ["ruby"],
        "go": ["go", "run"],
    }[language]
    go = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode"}
    go["GOCACHE"] = os.path.join(build, "clients", "go")
    before = unlocks(cluster)
    done = subprocess.run(runner + [path], env=dict(os.environ, **go), timeout=DEADLINE_S)
    os.unlink(path)
    return done.returncode == 0 and unlocks(cluster) == before + 1


def unlocks(cluster):
    """How many UNLOCKs the daemon has answered with OK."""
    counts = next(line for line in cluster.daemons[0].ask("STATS") if "subject=unlock" in line)
    return int(re.search(r" ok=(\d+) ", counts).group(1))


def write_secret(folder):
    path = os.path.join(folder, "secret")
    secret = os.urandom(32).hex()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(secret + "\n")
    return path, secret


def start_cluster(cluster, secret_file):
    """Three masters and a daemon with users; the fixture is a user by its uid."""
    verbs = ["lock", "unlock", "extend", "status", "locks", "nodes"]
    app = {"name": "app", "secret_file": secret_file, "resources": [""], "verbs": verbs}
    tester = {"name": "tester", "uids": [os.getuid()], "resources": [""], "verbs": ["all"]}
    started = cluster.start({"config": {"auth": {"users": [app, tester]}}})
    return started["daemons"][0]["tcp"].rpartition(":")[2]


def restart(cluster):
    cluster.run("kill-daemon", "0")
    cluster.run("start-daemon", "0")


def tell(client, line):
    try:
        client.stdin.write(line + "\n")
        client.stdin.flush()
    except BrokenPipeError:
        pass  # the client has ended; its status says why


def run_client(argv, environment, cluster):
    """Returns the steps that have succeeded, and whether the program did."""
    steps = set()
    client = subprocess.Popen(
        argv,
        env=dict(os.environ, **environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=fixture.end_with_parent,
    )
    deadline = threading.Timer(DEADLINE_S, client.kill)
    deadline.start()
    for line in client.stdout:
        print(line, end="", flush=True)
        word, _, step = line.strip().partition(" ")
        if word == "ok":
            steps.add(step)
        if word == "restart":
            restart(cluster)
            tell(client, "restarted")
    status = client.wait()
    deadline.cancel()
    return steps, status


def main():
    client = os.path.basename(sys.argv[1] if len(sys.argv) > 1 else sys.argv[0])
    build = os.path.dirname(os.path.abspath(os.environ.get("REDLOCKD", "build/redlockd")))
    argv = command(client, build)
    cluster = fixture.Fixture(build)
    with tempfile.TemporaryDirectory(prefix="redlockd-redis.") as folder:
        secret_file, secret = write_secret(folder)
        try:
            port = start_cluster(cluster, secret_file)
            environment = {"HOST": "127.0.0.1", "PORT": port, "SECRET": secret}
            steps, status = run_client(argv, environment, cluster)
            if example(client) is not None and run_example(client, build, port, secret, cluster):
                steps.add("page")
        finally:
            cluster.end()
    expected = STEPS | ({"page"} if example(client) is not None else set())
    missing = sorted(expected - steps)
    for step in missing:
        print(f"{client}:0:F: step {step} is missing")
    if status != 0:
        print(f"{client}:0:F: the program ended with status {status}")
    print(f"{100 - 100 * len(missing) // len(expected)}%: Checks: {len(expected)}, "
          f"Failures: {len(missing)}, Errors: 0")  # fmt: skip
    sys.exit(1 if missing or status != 0 else 0)


if __name__ == "__main__":
    main()
