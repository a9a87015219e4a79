#!/usr/bin/env python3
"""Owns real Redis masters and redlockd daemons for the tests of the client packages.

    python3 tests/clients/fixture.py --build build

A test runner writes one command per line to standard input and reads one line of JSON for each
command from standard output: {"ok": true, ...} or {"ok": false, "error": "..."}. At the end of its
input the fixture ends everything that it has started. Daemons and masters are numbered from 0.

    start {"daemons": 2, "masters": 3, "tls": false, "users": false, "config": {...}}
        Every key is optional. "config" is merged into the configuration of the daemons. The reply
        comes when every daemon grants locks:
            "daemons": [{"unix": URL, "tcp": URL, "tls": URL or null}, ...]
            "masters": ["redis://127.0.0.1:PORT", ...]
            "ca": file with the CA of the tls URLs, or null
            "secret", "secret_file": with "users", the secret of a user with all rights; else null
        Addresses stay the same when a daemon or a master is started again. An address with TLS is
        listed as localhost, and its certificate is valid for localhost and 127.0.0.1.
    kill-daemon N       kill it with SIGKILL
    stop-daemon N       end it with SIGTERM, and wait until it has ended
    start-daemon N      start it, and wait until it grants locks
    pause-daemon N      SIGSTOP
    continue-daemon N   SIGCONT
    cut-masters         stop all masters with SIGSTOP: no daemon reaches them any more
    heal-masters        SIGCONT to all masters
    kill-master N       kill it with SIGKILL; its data is lost, so it then has no vote for max_ttl
    start-master N      start it, and wait until it answers
    redlock [WORDS]     run the command redlock with these arguments, as a JSON array, at daemon 0:
                        "exit": its exit code, "out", "err": its output
    end                 end everything that start has started; another start may follow
"""

import argparse
import ctypes
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

DEADLINE_S = 60

# Below the ephemeral ports of the kernel. Otherwise an outgoing connection could take the port of
# a server that is down.
PORTS = range(20000, 32000)
PORT_TRIES = 100

# Every daemon has these settings, unless "config" replaces them. The timeout is long because the
# machine may be busy. A HOLD needs a TTL of at least 2.6 s with it.
# On a busy machine, masters answer too slowly for the default margin of 10 ms.
CONFIG = {
    "cluster": "clients",
    "locks": {"clock_drift_margin": "40ms"},
    "rounds": {"node_timeout": "800ms"},
    "log": {"level": "debug"},
}

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


class Failure(Exception):
    """A command cannot be carried out; the message goes to the test runner."""


def end_with_parent():
    """In a new child: the kernel kills it when the fixture ends, however the fixture ends."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until(what, condition):
    deadline = time.monotonic() + DEADLINE_S
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Failure(f"waited {DEADLINE_S} s in vain: {what}")
        time.sleep(0.02)


def merge(base, extra):
    """The two configurations as one; where both have a key, extra wins."""
    merged = dict(base)
    for key, value in extra.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged


class Ports:
    """Free ports that no other test takes. A name in the abstract namespace of unix sockets claims
    a port, as in tests/e2e/port.c, until close() or the end of this process."""

    def __init__(self):
        self.claims = []

    def free(self):
        for _ in range(PORT_TRIES):
            port = random.SystemRandom().choice(PORTS)
            claim = socket.socket(socket.AF_UNIX)
            try:
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
                claim.bind(f"\0redlockd-test-port-{port}")
            except OSError:
                claim.close()
                continue
            self.claims.append(claim)
            return port
        raise Failure("no free port")

    def close(self):
        for claim in self.claims:
            claim.close()


class Server:
    """A process of the fixture. It keeps its addresses over restarts."""

    def __init__(self, argv, log):
        self.argv, self.log = argv, log
        self.process = None

    def start(self):
        if self.process is not None:
            raise Failure(f"{self.argv[0]} runs already")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent,
            )

    def signal(self, number):
        if self.process is None:
            raise Failure(f"{self.argv[0]} does not run")
        self.process.send_signal(number)

    def wait(self):
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.argv[0]} has not ended") from None
        self.process = None

    def kill(self):
        self.signal(signal.SIGKILL)
        self.wait()

    def expect_running(self):
        if self.process.poll() is None:
            return
        status, self.process = self.process.returncode, None
        with open(self.log, encoding="utf-8", errors="replace") as log:
            tail = log.read()[-1000:]
        raise Failure(f"{self.argv[0]} has ended with status {status}: {tail}")


class Master(Server):
    def __init__(self, directory, number, port):
        self.port = port
        argv = ["redis-server", "--port", str(port), "--bind", "127.0.0.1"]
        argv += ["--save", "", "--appendonly", "no", "--dir", directory, "--loglevel", "warning"]
        super().__init__(argv, os.path.join(directory, f"master-{number}.log"))

    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def wait_ready(self):
        """Waits until our process answers, and not another one on the same port."""
        ours = f"process_id:{self.process.pid}\r".encode()

        def answers():
            self.expect_running()
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as conn:
                    conn.sendall(b"INFO server\r\n")
                    return ours in conn.recv(65536)
            except OSError:
                return False

        wait_until("a master to answer", answers)


class Daemon(Server):
    def __init__(self, program, directory, number, port, tls_port, secret):
        self.port, self.tls_port, self.secret = port, tls_port, secret
        self.socket = os.path.join(directory, f"daemon-{number}.sock")
        self.config = os.path.join(directory, f"daemon-{number}.yaml")
        argv = [program, "-c", self.config]
        super().__init__(argv, os.path.join(directory, f"daemon-{number}.log"))

    def addresses(self):
        return {
            "unix": f"unix:{self.socket}",
            "tcp": f"tcp://127.0.0.1:{self.port}",
            "tls": f"tls://localhost:{self.tls_port}" if self.tls_port else None,
        }

    def ask(self, *requests):
        """The replies to untagged requests, up to the first one that is missing."""
        with socket.socket(socket.AF_UNIX) as conn:
            conn.settimeout(5)
            conn.connect(self.socket)
            if self.secret is not None:
                requests = (f"AUTH {self.secret}",) + requests
            conn.sendall("".join(request + "\n" for request in requests + ("QUIT",)).encode())
            with conn.makefile() as replies:
                return replies.read().splitlines()

    def wait_ready(self, nodes):
        """Waits until this many masters vote and a lock is granted."""

        def votes():
            self.expect_running()
            try:
                return sum(" vote=yes " in line for line in self.ask("NODES")) >= nodes
            except OSError:
                return False

        def grants():
            self.expect_running()
            name = f"fixture:{self.port}:{time.monotonic_ns()}"
            try:
                return any(line.startswith("OK ") for line in self.ask(f"LOCK {name} 1s"))
            except OSError:
                return False

        wait_until(f"{nodes} masters to vote", votes)
        wait_until("a lock to be granted", grants)


class Fixture:
    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.directory = None
        self.masters, self.daemons = [], []
        self.ports = None

    # --- start and end ---

    def start(self, options):
        if self.directory is not None:
            raise Failure("end comes first: a cluster runs already")
        known = {"daemons", "masters", "tls", "users", "config"}
        unknown = set(options) - known
        if unknown:
            raise Failure(f"unknown keys: {', '.join(sorted(unknown))}")
        try:
            return self.start_cluster(options)
        except BaseException:
            self.end()
            raise

    def start_cluster(self, options):
        self.directory = tempfile.mkdtemp(prefix="redlockd-clients.")
        self.ports = Ports()
        tls = self.make_certificates() if options.get("tls") else None
        self.secret, self.secret_file = self.make_secret() if options.get("users") else (None, None)
        for number in range(options.get("masters", 3)):
            self.masters.append(Master(self.directory, number, self.ports.free()))
        for master in self.masters:
            master.start()
        for number in range(options.get("daemons", 1)):
            tls_port = self.ports.free() if tls else None
            program = os.path.join(self.build, "redlockd")
            daemon = Daemon(
                program, self.directory, number, self.ports.free(), tls_port, self.secret
            )
            self.write_config(daemon, tls, options.get("config", {}))
            self.daemons.append(daemon)
        for master in self.masters:
            master.wait_ready()
        self.bootstrap()
        for daemon in self.daemons:
            daemon.start()
        for daemon in self.daemons:
            daemon.wait_ready(len(self.masters))
        return {
            "daemons": [daemon.addresses() for daemon in self.daemons],
            "masters": [master.url() for master in self.masters],
            "ca": tls["ca"] if tls else None,
            "secret": self.secret,
            "secret_file": self.secret_file,
        }

    def bootstrap(self):
        argv = self.daemons[0].argv + ["--bootstrap"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S)
        if done.returncode != 0:
            raise Failure(f"bootstrap: {done.stdout}{done.stderr}")

    def write_config(self, daemon, tls, extra):
        listen = [f"unix:{daemon.socket}", f"tcp://127.0.0.1:{daemon.port}"]
        if tls:
            url = f"tls://127.0.0.1:{daemon.tls_port}"
            listen.append({"url": url, "certificate": tls["certificate"], "key": tls["key"]})
        nodes = [{"name": f"m{n}", "url": master.url()} for n, master in enumerate(self.masters)]
        config = merge(CONFIG, {"listen": listen, "nodes": nodes})
        if self.secret is not None:
            user = {"name": "tests", "secret_file": self.secret_file}
            user.update(resources=[""], verbs=["all"])
            config["auth"] = {"users": [user]}
        with open(daemon.config, "w", encoding="utf-8") as file:
            json.dump(merge(config, extra), file)  # JSON is YAML

    def make_secret(self):
        secret = os.urandom(32).hex()
        path = os.path.join(self.directory, "secret")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(secret + "\n")
        return secret, path

    def make_certificates(self):
        paths = {name: os.path.join(self.directory, name) for name in ("ca", "key", "certificate")}
        request, ca_key = (os.path.join(self.directory, name) for name in ("request", "ca-key"))
        extensions = os.path.join(self.directory, "extensions")
        with open(extensions, "w", encoding="ascii") as file:
            file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
            file.write("authorityKeyIdentifier=keyid\n")  # strict clients want it, as below
        new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes".split()
        self.openssl("req", "-x509", *new_key, "-keyout", ca_key, "-out", paths["ca"],
                     "-subj", "/CN=redlockd test CA", "-days", "2",
                     "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
        self.openssl("req", "-new", *new_key, "-keyout", paths["key"], "-out", request,
                     "-subj", "/CN=localhost")  # fmt: skip
        self.openssl("x509", "-req", "-in", request, "-CA", paths["ca"], "-CAkey", ca_key,
                     "-set_serial", "1", "-out", paths["certificate"], "-extfile", extensions,
                     "-days", "2")  # fmt: skip
        return paths

    def openssl(self, *words):
        done = subprocess.run(["openssl", *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"openssl {words[0]}: {done.stderr}")

    def end(self):
        for server in self.daemons + self.masters:
            if server.process is not None:
                server.kill()
        self.daemons, self.masters = [], []
        if self.ports is not None:
            self.ports.close()
        if self.directory is not None:
            shutil.rmtree(self.directory)
        self.ports = self.directory = None

    # --- one command ---

    def server(self, servers, number):
        if not 0 <= number < len(servers):
            raise Failure(f"there is no number {number}")
        return servers[number]

    def start_daemon(self, daemon):
        daemon.start()
        daemon.wait_ready(len(self.masters) // 2 + 1)

    def start_master(self, master):
        master.start()
        master.wait_ready()

    def stop_daemon(self, daemon):
        daemon.signal(signal.SIGTERM)
        daemon.wait()

    def signal_masters(self, number):
        for master in self.masters:
            if master.process is not None:
                master.signal(number)

    def redlock(self, words):
        if not self.daemons:
            raise Failure("start comes first")
        environment = dict(os.environ, REDLOCK_URL=f"unix:{self.daemons[0].socket}")
        if self.secret_file is not None:
            environment["REDLOCK_SECRET_FILE"] = self.secret_file
        argv = [os.path.join(self.build, "redlock"), *words]
        done = subprocess.run(
            argv, env=environment, capture_output=True, text=True, timeout=DEADLINE_S
        )
        return {"exit": done.returncode, "out": done.stdout, "err": done.stderr}

    def run(self, verb, argument):
        """Carries out one command. Returns the fields of the reply, or None for none."""
        of_daemon = {
            "kill-daemon": Server.kill,
            "stop-daemon": self.stop_daemon,
            "start-daemon": self.start_daemon,
            "pause-daemon": lambda daemon: daemon.signal(signal.SIGSTOP),
            "continue-daemon": lambda daemon: daemon.signal(signal.SIGCONT),
        }
        of_master = {"kill-master": Server.kill, "start-master": self.start_master}
        if verb in of_daemon:
            return of_daemon[verb](self.server(self.daemons, int(argument)))
        if verb in of_master:
            return of_master[verb](self.server(self.masters, int(argument)))
        if verb == "start":
            return self.start(json.loads(argument or "{}"))
        if verb == "redlock":
            return self.redlock(json.loads(argument))
        if verb == "cut-masters":
            return self.signal_masters(signal.SIGSTOP)
        if verb == "heal-masters":
            return self.signal_masters(signal.SIGCONT)
        if verb == "end":
            return self.end()
        raise Failure(f"unknown command: {verb}")


def main():
    parser = argparse.ArgumentParser(description="masters and daemons for the tests of clients")
    parser.add_argument("--build", default="build", help="folder with redlockd and redlock")
    fixture = Fixture(parser.parse_args().build)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of the input ends the fixture
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # for timeout(1): end all the same
    try:
        for line in sys.stdin:
            verb, _, argument = line.strip().partition(" ")
            try:
                reply = {"ok": True, **(fixture.run(verb, argument) or {})}
            except (Failure, OSError, ValueError, subprocess.SubprocessError) as error:
                reply = {"ok": False, "error": str(error) or type(error).__name__}
            print(json.dumps(reply), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    finally:
        fixture.end()


if __name__ == "__main__":
    main()
