#!/usr/bin/env python3
"""Follows docs/deploy.md on five hosts: deploy.py BASE WORK GROUP.

Each host is a layer over the Debian system in BASE, with systemd as process 1 in namespaces (boot.sh). A
bridge in a network namespace of its own joins them. WORK is a folder for their file systems, GROUP a
control group. Runs as root and as process 1 of namespaces (tests/deploy.sh). They end with it, so it leaves
only folders in GROUP behind.

The test runs all commands of the page in their order, but builds the packages first. For a block of commands (sh), the paragraph above
it says in bold where they run:

    **On every host**               on all five at the same time
    **On one host after the other** on one after the other
    **On host a**                   only there
    **On a build machine**          in the folder of the sources

In a block with prompts (console), the prompt says it: a#, all#, or other# for a sixth machine on the bridge.
A line without a prompt is what the command above prints. `...` stands for any text, on a line of its own
for any lines; times differ. A command that prints an error message of redlock may fail, others may not.
A command with & at its end runs on, and ends with the next command of its host that prints something."""
import concurrent.futures, fcntl, glob, os, pty, re, struct, subprocess, sys, termios, time

base, work, group = map(os.path.abspath, sys.argv[1:])
PAGE = "docs/deploy.md"
HOSTS = {name: f"10.0.0.{number}" for number, name in enumerate("abcde", 1)}
VERBOSE = bool(os.environ.get("VERBOSE"))
bad = []


def complain(text):
    print("deploy:", text, file=sys.stderr, flush=True)
    bad.append(text)


def finish():
    """Not sys.exit(), which would wait for the threads."""
    sys.stdout.flush()
    os._exit(bool(bad))


def fail(text):
    complain(text)
    finish()


def run(command):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)
    if result.returncode != 0:
        fail(f"{command} fails:\n{result.stdout[-3000:]}")
    return result.stdout


def on_terminal(command, environment=None):
    """Runs the command on a terminal, so that programs print what they print for people."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
    process = subprocess.Popen(command, stdin=end, stdout=end, stderr=end, env=environment)
    os.close(end)
    output = b""
    while True:
        try:
            output += os.read(terminal, 65536)
        except OSError:
            break
    os.close(terminal)
    return process.wait(), output.decode(errors="replace").replace("\r\n", "\n")


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            fail(f"{what}: not within {seconds} s")
        time.sleep(0.05)
    return value


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


# --- the page ---

PLACES = {"every host": "all", "one host after the other": "each", "a build machine": "build"}
PLACES.update({f"host {name}": name for name in HOSTS})
# Commands that change nothing.
READS = r"(CREDENTIALS_DIRECTORY=\S+ redlockd -t|chronyd -p|curl|for host|journalctl|nft list|redis-cli|redlock (nodes|status)|systemctl status) "


class Commands:
    """Commands of the page. `expected` are the lines that they print, or None if that does not matter."""
    def __init__(self, line, place, text, expected):
        self.line, self.place, self.text, self.expected = line, place, text, expected


def read_page():
    """The commands and the headings of the page. A heading is a string."""
    items, kind, paragraph, above = [], None, "", ""
    for number, line in enumerate(open(PAGE), 1):
        if kind is None and line.startswith("```"):
            kind = line[3:].strip()
            place = re.search(r"\*\*On ([a-z ]+):?\*\*", above)
            if kind == "sh" and place and place[1] in PLACES:
                items.append(Commands(number, PLACES[place[1]], "", None))
            elif kind != "console":
                fail(f"{PAGE}:{number}: neither a console nor commands (sh) for a known host")
        elif line.startswith("```"):
            kind, paragraph, above = None, "", ""
        elif kind == "sh":
            items[-1].text += line
        elif kind == "console":
            prompt = re.match(r"(all|other|[a-e])# (.*\n)", line)
            if prompt:
                items.append(Commands(number, prompt[1], prompt[2], []))
            else:
                items[-1].expected.append(line)
        elif line.startswith("#"):
            items.append(line)
        else:
            paragraph = paragraph + line if line.strip() else ""
            above = " ".join(paragraph.split()) or above
    return items


def pattern(line):
    line = re.escape(line.strip()).replace(re.escape("..."), ".*")
    line = re.sub(r"_(ms|us)=[0-9]+", r"_\1=[0-9]+", line)
    return re.sub(r"[0-9]+(\\\.[0-9]+)?(\\ )?(ms|s)\b", r"[0-9.]+\2\3", line) + "\n"


def prints(commands, output):
    """Whether the output is the expected one, without empty lines and the white space around lines."""
    wanted = "".join(r"(?:.*\n)*" if line.strip() == "..." else pattern(line) for line in commands.expected)
    return re.fullmatch(wanted, "".join(line.strip() + "\n" for line in output.splitlines() if line.strip()))


def is_right(commands, status, output):
    if commands.expected is None:
        return status == 0
    may_fail = any(line.startswith("redlock: ") for line in commands.expected)
    return (status == 0 or may_fail) and prints(commands, output)


def check_acl():
    """The user redlockd has the same rights on this page as in the manual."""
    manual = "".join(open(path).read() for path in glob.glob("docs/operations*.md") + glob.glob("docs/operations/*.md"))
    rights = re.search(r"^ACL SETUSER redlockd on >SECRET (.*)$", manual, re.MULTILINE)[1]
    here = re.search(r"^user redlockd on #\$\(.*?\) ((?:.*\\\n)*.*)$", open(PAGE).read(), re.MULTILINE)[1]
    if here.replace("\\\n", "").split() != rights.split():
        complain(f"{PAGE}: the user redlockd has other rights than in the manual:\n{here}")


# --- five hosts ---

# scp [-p] FILE... root@ADDRESS:[FOLDER]. The hosts have no ssh. What one of them puts into the folder COPIES,
# take_copies() delivers.
SCP = """#!/bin/sh
set -eu
umask 022
[ "$1" != -p ] || shift
for target; do :; done
address=${target#root@}
folder=${address#*:}
folder=COPIES/${address%%:*}${folder:-/root}
mkdir -p "$folder"
while [ $# -gt 1 ]; do cp -p "$1" "$folder"; shift; done
"""


def take_copies():
    for host in hosts.values():
        sent = os.path.join(copies, host.address)
        if os.path.isdir(sent):
            run(["cp", "-a", sent + "/.", host.root])
            run(["rm", "-r", sent])


def mount_layer(folder, lower):
    for layer in ("upper", "work", "root"):
        os.makedirs(os.path.join(folder, layer))
    run(["mount", "-t", "overlay", "-o", f"lowerdir={lower},upperdir={folder}/upper,workdir={folder}/work", "overlay",
         folder + "/root"])
    return folder + "/root"


class Host:
    def __init__(self, name, lower):
        self.name, self.address, self.boots = name, HOSTS[name], 0
        self.root = mount_layer(os.path.join(work, name), lower)
        write(self.root + "/etc/hostname", name + "\n")
        write(self.root + "/etc/hosts", f"127.0.0.1 localhost\n{self.address} {name}\n")
        write(self.root + "/usr/local/bin/scp", SCP.replace("COPIES", "/copies"), 0o755)
        os.makedirs(self.root + "/copies")
        run(["mount", "--bind", copies, self.root + "/copies"])

    def start(self):
        self.boots += 1
        control = os.path.join(group, f"{self.name}{self.boots}")
        os.mkdir(control)
        with open(os.path.join(work, self.name, "console"), "a") as console:
            self.process = subprocess.Popen(
                ["sh", "-c", 'echo $$ >"$1/cgroup.procs"; shift; exec unshare --kill-child --pid --fork --mount '
                 '--uts --ipc --net --cgroup sh tests/packages/boot.sh "$@"', "sh", control, self.root, self.name,
                 self.address + "/24"], stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        children = ["pgrep", "-P", str(self.process.pid)]
        self.first = wait_until(lambda: subprocess.run(children, text=True, stdout=subprocess.PIPE).stdout.strip(), 20,
                                f"process 1 of host {self.name}")
        run(on_bridge + ["ip", "link", "add", f"to-{self.name}", "type", "veth", "peer", "name", "eth0",
                         "netns", self.first])
        run(on_bridge + ["ip", "link", "set", f"to-{self.name}", "master", "bridge", "up"])

    def wait_for_start(self):
        wait_until(lambda: self.shell("systemctl is-system-running")[1].strip() in ("running", "degraded"), 60,
                   f"the start of host {self.name}")

    def reboot(self, commands):
        """Runs the commands, which reboot the host. The page says that the master then forgets ACL SETUSER."""
        acl = "export REDISCLI_AUTH=$(cat /root/redis.admin)\nredis-cli --user admin ACL "
        before = self.shell(acl + "SETUSER forgotten on >secret\n" + acl + "USERS")[1]
        output = self.shell(commands.text)[1]
        wait_until(lambda: self.process.poll() is not None, 60, f"{PAGE}:{commands.line}: the shutdown of host "
                   f"{self.name} after\n{output}")
        # The kernel removes the interface only some time after the last process of its namespace.
        link = on_bridge + ["ip", "link", "show", f"to-{self.name}"]
        wait_until(lambda: subprocess.run(link, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0,
                   60, f"the end of the network of host {self.name}")
        self.start()
        self.wait_for_start()
        after = self.shell(acl + "USERS")[1]
        if "forgotten" not in before or "forgotten" in after or "redlockd" not in after:
            complain(f"{PAGE}:{commands.line}: the master has other users than the page says:\n{before}{after}")

    def shell(self, text):
        """Runs the text as root would after a login: the exit status and the output."""
        environment = ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TERM=dumb", "LC_ALL=C.UTF-8",
                       "DEBIAN_FRONTEND=noninteractive"]
        if os.path.exists(self.root + "/etc/environment"):
            environment += open(self.root + "/etc/environment").read().split()
        return on_terminal(["nsenter", "-t", self.first, "-a", "env", "-i", *environment, "timeout", "300", "sh", "-e",
                            "-c", "cd /root\n" + text])

    def journal(self):
        return self.shell("journalctl --no-pager -o cat -u redlockd -u redis-server | tail -n 30; systemctl --failed")[1]


def start_hosts():
    """Makes the hosts. Their network leads nowhere else, so apt fetches now what they will install."""
    root = mount_layer(os.path.join(work, "fetched"), base)
    wanted = [word for item in page if isinstance(item, Commands)
              for line in re.findall(r"^apt install (.*)$", item.text, re.MULTILINE)
              for word in line.split() if not word.startswith(".")]
    run(["cp", *glob.glob("build/deb/redlockd_*.deb"), *glob.glob("build/deb/redlock_*.deb"), root + "/tmp"])
    run(["chroot", root, "sh", "-c", "apt-get -y --no-install-recommends --download-only install "
         f"{' '.join(wanted)} /tmp/*.deb && rm /tmp/*.deb"])
    # apt asks no questions, draws no bars, and uses no proxy. The hosts need not survive a power failure.
    write(root + "/etc/apt/apt.conf.d/machine", 'APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\n'
          'DPkg::Use-Pty "0";\nquiet "1";\nDPkg::Progress-Fancy "0";\nbinary::apt::DPkg::Progress-Fancy "0";\n')
    write(root + "/etc/dpkg/dpkg.cfg.d/test", "force-unsafe-io\n")
    write(root + "/etc/resolv.conf", "")
    run(["umount", root])

    run(on_bridge + ["ip", "link", "set", "lo", "up"])
    run(on_bridge + ["ip", "link", "add", "bridge", "type", "bridge"])
    run(on_bridge + ["ip", "address", "add", "10.0.0.9/24", "dev", "bridge"])
    run(on_bridge + ["ip", "link", "set", "bridge", "up"])
    for name in HOSTS:
        hosts[name] = Host(name, f"{work}/fetched/upper:{base}")
        hosts[name].start()
    for host in hosts.values():
        host.wait_for_start()


def newer_packages():
    """Replaces the packages in /root of each host by the same ones with a higher version."""
    for package in ("redlockd", "redlock"):
        (old,) = glob.glob(f"build/deb/{package}_*.deb")
        folder = os.path.join(work, "newer", package)
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        run(["dpkg-deb", "-R", old, folder])
        run(["sed", "-i", "s/^Version: .*/Version: 99.0/", folder + "/DEBIAN/control"])
        run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", folder, f"{work}/newer/{package}_99.0_all.deb"])
    for host in hosts.values():
        run(["rm", *glob.glob(host.root + "/root/*.deb")])
        run(["cp", *glob.glob(work + "/newer/*.deb"), host.root + "/root"])


# --- following the page ---

def on_this_machine(commands, prefix):
    environment = dict(os.environ, PATH=f"{work}/tools:{os.environ['PATH']}")
    return on_terminal(prefix + ["sh", "-e", "-c", commands.text], environment)


def run_on(host, commands):
    """Runs the commands on the host. The page leaves out how long masters and daemons take to notice something, so
    what only reads is repeated until it prints what the page says."""
    tries = 10 if commands.expected and re.match(READS, commands.text) else 1
    while True:
        status, output = host.shell(commands.text)
        tries -= 1
        if tries == 0 or is_right(commands, status, output):
            break
        time.sleep(1)
    if commands.expected and host.name in running_on:
        output += running_on.pop(host.name).result(timeout=60)[1]
    return status, output


def check(commands, result, where):
    status, output = result
    if VERBOSE:
        print(f"--- {time.monotonic() - started:.1f} s: {where}# {commands.text}{output}", flush=True)
    if is_right(commands, status, output):
        return
    complain(f"{PAGE}:{commands.line}: on {where} the commands exit with {status} and print\n{output[-3000:]}\n"
             + (hosts[where].journal() if where in hosts else ""))


def follow(commands):
    if commands.place == "build":
        check(commands, on_this_machine(commands, []), "the build machine")
        return
    if not hosts:
        start_hosts()
        take_copies()
    if commands.place == "other":
        check(commands, on_this_machine(commands, on_bridge), "another machine")
    elif commands.place == "each":
        for host in hosts.values():
            check(commands, run_on(host, commands), host.name)
    elif commands.place == "all":
        for host, result in zip(hosts.values(), threads.map(lambda host: run_on(host, commands), hosts.values())):
            check(commands, result, host.name)
    elif commands.text.endswith("\nreboot\n"):
        hosts[commands.place].reboot(commands)
    elif commands.text.endswith(" &\n"):
        running_on[commands.place] = threads.submit(hosts[commands.place].shell, commands.text[:-3])
        time.sleep(2)
    else:
        check(commands, run_on(hosts[commands.place], commands), commands.place)
    take_copies()


page = read_page()
check_acl()
run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", work])
copies = os.path.join(work, "copies")
os.makedirs(copies)
write(work + "/tools/scp", SCP.replace("COPIES", copies), 0o755)
if os.environ.get("DEPLOY_BUILT") == "yes":
    # tests/packages.sh has just run `make deb`.
    write(work + "/tools/make", '#!/bin/sh\n[ "$*" = deb ]\n', 0o755)
switch = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
on_bridge = ["nsenter", f"--net=/proc/{switch.pid}/ns/net"]
wait_until(lambda: os.readlink(f"/proc/{switch.pid}/ns/net") != os.readlink("/proc/self/ns/net"), 20, "unshare")
hosts, running_on = {}, {}
threads = concurrent.futures.ThreadPoolExecutor(len(HOSTS) + 1)
started = time.monotonic()
# The hosts start with what the packages depend on.
builds = [item for item in page if isinstance(item, Commands) and item.place == "build"]
for item in builds + [item for item in page if item not in builds]:
    if isinstance(item, Commands):
        follow(item)
        # What follows builds on this.
        if bad:
            finish()
    elif item.startswith("## Upgrading"):
        newer_packages()
if running_on:
    complain(f"{PAGE}: a command still runs at the end")
if not bad:
    print("deploy: all is well")
finish()
