#!/usr/bin/env python3
"""Carries out packaging/Containerfile without a container runtime: container.py BASE TARBALL WORK.

Each stage is a layer over the Debian system in BASE. The result runs as packaging/compose.yaml says:
its user, no capabilities, a read-only root, a network of its own with five masters. Also checks what can
be checked of packaging/kubernetes without a cluster. Runs as root in a mount namespace of its own."""
import json, os, shlex, shutil, subprocess, sys, yaml

base, tarball, work = map(os.path.abspath, sys.argv[1:])
bad = []


def complain(text):
    print("container:", text, file=sys.stderr)
    bad.append(text)


def run(command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if result.returncode != 0:
        sys.exit(f"{result.stdout[-3000:]}\ncontainer: {command} fails")
    return result.stdout


# --- packaging/Containerfile ---

def instructions(path):
    lines = [line for line in open(path) if not line.startswith("#")]
    for line in "".join(lines).replace("\\\n", "").splitlines():
        if line.strip():
            yield line.split(None, 1)


def new_stage(name):
    folder = os.path.join(work, name)
    for layer in ("upper", "work", "root"):
        os.makedirs(os.path.join(folder, layer))
    root = os.path.join(folder, "root")
    run(["mount", "-t", "overlay", "-o", f"lowerdir={base},upperdir={folder}/upper,workdir={folder}/work",
         "overlay", root])
    return root


os.makedirs(work, exist_ok=True)
run(["mount", "-t", "tmpfs", "tmpfs", work])
stages, image, root, folder = {}, {}, None, "/"
for word, rest in instructions("packaging/Containerfile"):
    if word == "FROM":
        name = rest.split(" AS ")[1] if " AS " in rest else "final"
        root = stages[name] = new_stage(name)
        folder, image = "/", {}
    elif word == "RUN":
        run(["chroot", root, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive",
             "sh", "-c", f"cd {folder} && {rest}"])
    elif word == "WORKDIR":
        folder = rest
        os.makedirs(root + folder, exist_ok=True)
    elif word == "COPY" and rest == ". .":
        run(["tar", "-xzf", tarball, "-C", root + folder, "--strip-components=1"])
    elif word == "COPY":
        source, target = rest.replace("--from=", "").split()[1:]
        shutil.copy2(stages[rest.replace("--from=", "").split()[0]] + source, root + target)
    elif word == "HEALTHCHECK":
        image[word] = json.loads(rest[rest.index("["):])
    elif word in ("ENTRYPOINT", "CMD"):
        image[word] = json.loads(rest)
    elif word in ("USER", "EXPOSE"):
        image[word] = rest
    else:
        sys.exit(f"container: this script does not know {word}")

# --- packaging/compose.yaml ---

compose = yaml.safe_load(open("packaging/compose.yaml"))
daemon, bootstrap = compose["services"]["redlockd"], compose["services"]["bootstrap"]
masters = sorted(name for name in compose["services"] if name.startswith("valkey"))
config = open("packaging/" + compose["configs"]["redlockd"]["file"]).read()
for master in masters:
    if f"redis://{master}\"" not in config:
        complain(f"compose.yaml has {master}, which its configuration does not use")
# Compose builds services in parallel. On the first build, two services with one image fail.
built = [service["image"] for service in compose["services"].values() if "build" in service]
if built != [daemon["image"]] or bootstrap["image"] != daemon["image"]:
    complain(f"compose.yaml does not build the daemon's image once: {built}")
for option in ("read_only", "cap_drop", "security_opt"):
    if option not in daemon:
        complain(f"compose.yaml runs the daemon without {option}")
os.makedirs(root + "/etc/redlockd", exist_ok=True)
open(root + daemon["configs"][0]["target"], "w").write(config)
with open(root + "/etc/hosts", "w") as hosts:
    hosts.write("127.0.0.1 localhost\n")
    for number, master in enumerate(masters, 1):
        hosts.write(f"127.0.1.{number} {master}\n")

user, group = image["USER"].split(":")
inside = (f"chroot {root} setpriv --reuid={user} --regid={group} --clear-groups --no-new-privs "
          f"--bounding-set=-all --inh-caps=-all env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin ")
script = f"""
set -eu
mount --bind {root} {root} && mount -o remount,bind,ro {root}
mount -t proc proc {root}/proc
ip link set lo up
for number in $(seq {len(masters)}); do
    redis-server --bind 127.0.1.$number --protected-mode no --save '' --dir / --loglevel warning >/dev/null &
done
{inside} {shlex.join(bootstrap["entrypoint"])}
{inside} {shlex.join(daemon["entrypoint"] + daemon.get("command", []))} &
daemon=$!
tries=100
until {inside} {shlex.join(image["HEALTHCHECK"])}; do
    tries=$((tries - 1)); [ $tries -gt 0 ]; sleep 0.1
done
{inside} redlock run --wait 5s deploy -- echo locked
{inside} redlock nodes
kill -TERM $daemon
wait $daemon
echo stopped
"""
output = run(["unshare", "--kill-child", "--net", "--mount", "--pid", "--fork", "sh", "-c", script])
for line in ("locked", "stopped"):
    if line not in output.splitlines():
        complain(f"the container does not print {line}:\n{output}")
if image["ENTRYPOINT"] != daemon["entrypoint"] or f"tcp://0.0.0.0:{image['EXPOSE']}" not in config:
    complain("Containerfile and compose.yaml differ in the entry point or the port")

# --- packaging/kubernetes ---


def check_daemon(text, where):
    result = subprocess.run([root + "/usr/sbin/redlockd", "-t", "-c", "-"], input=text, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode != 0:
        complain(f"{where}: {result.stdout}")
    return yaml.safe_load(text)


objects = []
for name in sorted(os.listdir("packaging/kubernetes")):
    objects += [item for item in yaml.safe_load_all(open("packaging/kubernetes/" + name)) if item]
by_kind = lambda kind: [item for item in objects if item["kind"] == kind]
named = {(item["kind"], item["metadata"]["name"]): item for item in objects}
if len(named) != len(objects):
    complain("packaging/kubernetes has two objects of one kind and name")
pods = [item["spec"]["template"] for item in objects if "template" in item.get("spec", {})]
labels = [pod["metadata"]["labels"].items() for pod in pods]


def selects(selector):
    return any(selector.items() <= pod for pod in labels)


for item in objects:
    where, spec = f"{item['kind']} {item['metadata']['name']}", item.get("spec", {})
    selector = spec.get("podSelector") or spec.get("selector") or {}
    selector = selector.get("matchLabels", selector)
    if selector and not selects(selector):
        complain(f"{where} selects no pod")
    for rule in spec.get("ingress", []):
        for source in rule["from"]:
            if not selects(source["podSelector"]["matchLabels"]):
                complain(f"{where} admits no pod")
for pod in pods:
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
    for volume in volumes.values():
        if "configMap" in volume and ("ConfigMap", volume["configMap"]["name"]) not in named:
            complain(f"there is no ConfigMap {volume['configMap']['name']}")
    for container in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                complain(f"{container['name']}: there is no volume {mount['name']}")
        if not container["securityContext"].get("readOnlyRootFilesystem"):
            complain(f"{container['name']}: the root is writable")
        if container["image"] == "redlockd" and container["securityContext"]["runAsUser"] == 0:
            complain(f"{container['name']} runs as root")
nodes = check_daemon(named["ConfigMap", "redlockd"]["data"]["redlockd.yaml"], "config.yaml")["nodes"]
(masters,) = by_kind("StatefulSet")
expected = [f"redis://{masters['metadata']['name']}-{number}.{masters['spec']['serviceName']}"
            for number in range(masters["spec"]["replicas"])]
if [node["url"] for node in nodes] != expected:
    complain("config.yaml lists other masters than the StatefulSet has")

# Runs the containers of the Job and of the Deployment, whose processes share the folder of the socket.
(job,), (deployment,) = by_kind("Job"), by_kind("Deployment")
(bootstrap,) = job["spec"]["template"]["spec"]["containers"]
pod = deployment["spec"]["template"]["spec"]
(sidecar,), (application,) = pod["initContainers"], pod["containers"]
memory = [volume["name"] for volume in pod["volumes"] if "emptyDir" in volume]
shared = {container["name"]: mount["mountPath"] for container in (sidecar, application)
          for mount in container["volumeMounts"] if mount["name"] in memory}
with open(root + "/etc/hosts", "w") as hosts:
    hosts.write("127.0.0.1 localhost\n")
    for number, node in enumerate(nodes, 1):
        hosts.write(f"127.0.1.{number} {node['url'].removeprefix('redis://')}\n")
for folder in shared.values():
    os.makedirs(root + folder, exist_ok=True)


def in_container(container, command=None):
    """The shell command that runs the container, or a command in it."""
    user = container["securityContext"]["runAsUser"]
    variables = [f"{variable['name']}={variable['value']}" for variable in container.get("env", [])]
    command = command or container.get("command", image["ENTRYPOINT"]) + container.get(
        "args", [] if "command" in container else image["CMD"])
    return (f"chroot {root} setpriv --reuid={user} --regid={user} --clear-groups --no-new-privs --bounding-set=-all "
            f"--inh-caps=-all env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin {shlex.join(variables + command)}")


def probe(name):
    return in_container(sidecar, sidecar[name]["exec"]["command"])


with open(root + "/etc/redlockd/redlockd.yaml", "w") as file:
    file.write(named["ConfigMap", "redlockd"]["data"]["redlockd.yaml"])
script = f"""
set -eu
until_true() {{ tries=100; until "$@"; do tries=$((tries - 1)); [ $tries -gt 0 ]; sleep 0.1; done; }}
mount --bind {root} {root} && mount -o remount,bind,ro {root}
mount -t proc proc {root}/proc
for folder in {shlex.join(sorted(set(shared.values())))}; do mount -t tmpfs -o mode=777 tmpfs {root}$folder; done
ip link set lo up
for number in $(seq {len(nodes)}); do
    redis-server --bind 127.0.1.$number --protected-mode no --save '' --dir / --loglevel warning >/dev/null &
done
until_true {in_container(bootstrap)}
{in_container(sidecar)} &
daemon=$!
until_true {probe("startupProbe")}
{probe("readinessProbe")}
{probe("livenessProbe")}
{in_container(application)} &
leader() {{ {in_container(application, ["redlock", "status", "leader"])} | grep -i held; }}
until_true leader
kill -KILL $daemon
wait $daemon || true
{in_container(sidecar)} &
daemon=$!
until_true {probe("startupProbe")}
{in_container(application, ["redlock", "run", "other", "--", "echo", "again"])}
kill -TERM $daemon
wait $daemon
echo stopped
"""
output = run(["unshare", "--kill-child", "--net", "--mount", "--pid", "--fork", "sh", "-c", script])
for line in ("again", "stopped"):
    if line not in output.splitlines():
        complain(f"the containers of the pod do not print {line}:\n{output}")

if not bad:
    print("container: all is well")
sys.exit(bool(bad))
