#include "tests/torture/net.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/namespace.h"
#include "tests/e2e/process.h"

/* Priorities of routing rules. The kernel's rule for local addresses has priority 0 and matches
 * first, so it is moved to RULE_LOCAL, after the rules that drop packets. */
enum { RULE_FIRST = 10, RULE_LOCAL = 100 };

static bool run(const struct net *net, const char *const *argv)
{
    pid_t pid = process_start(&(struct process_plan){.argv = argv, .errors = net->log});
    int status = process_wait(pid, argv[0]);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Run ip(8) with the words of this line as its arguments, in the namespace "theirs" or "ours". */
__attribute__((format(printf, 3, 4))) static bool ip(const struct net *net, bool theirs,
                                                     const char *form, ...)
{
    enum { WORDS = 32 };
    const char *argv[WORDS];
    unsigned count = 0;
    char network[80];
    char line[256];
    char *rest = NULL;
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(line, sizeof(line), form, arguments);
    va_end(arguments);
    snprintf(network, sizeof(network), "--net=%s", net->theirs);
    if (theirs) {
        argv[count++] = "nsenter";
        argv[count++] = network;
    }
    argv[count++] = "ip";
    for (char *word = strtok_r(line, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        argv[count++] = word;
    ck_assert_uint_lt(count, WORDS);
    argv[count] = NULL;
    return run(net, argv);
}

/* The first namespace becomes theirs, and its descriptor keeps it alive; the second one is ours. */
static bool make_namespaces(struct net *net)
{
    if (!namespace_become_root() || unshare(CLONE_NEWNET) != 0)
        return false;
    net->theirs_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (net->theirs_fd < 0)
        return false;
    snprintf(net->theirs, sizeof(net->theirs), "/proc/%d/fd/%d", (int)getpid(), net->theirs_fd);
    return unshare(CLONE_NEWNET) == 0;
}

static bool connect_namespaces(const struct net *net, unsigned master_count)
{
    bool done = ip(net, false, "link set lo up") && ip(net, true, "link set lo up") &&
                ip(net, true, "link add theirs type veth peer name ours netns %d", (int)getpid()) &&
                ip(net, true, "addr add " NET_THEIRS "/24 dev theirs") &&
                ip(net, true, "link set theirs up") &&
                ip(net, false, "addr add " NET_OURS "/24 dev ours") &&
                ip(net, false, "link set ours up") &&
                ip(net, false, "rule add pref %d table local", RULE_LOCAL) &&
                ip(net, false, "rule del pref 0");
    for (unsigned i = 0; i < master_count; i++)
        done = done && ip(net, false, "addr add " NET_MASTERS "%u/24 dev ours", i);
    return done;
}

static bool open_here(struct net *net, unsigned master_count)
{
    if (make_namespaces(net))
        return connect_namespaces(net, master_count);
    char *text;
    ck_assert_int_gt(asprintf(&text, "unshare: %s", strerror(errno)), 0);
    sandbox_write(net->log, text);
    free(text);
    return false;
}

/* A process cannot leave a namespace, so a child process first tries whether the setup works. */
static bool can_open(struct net *net, unsigned master_count)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(open_here(net, master_count) ? 0 : 1);
    ck_assert_int_gt(pid, 0);
    int status = process_wait(pid, "the first one in the namespaces");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void net_open(struct net *net, const struct sandbox *sandbox, unsigned master_count)
{
    *net = (struct net){.theirs_fd = -1};
    sandbox_path(sandbox, "net.log", net->log);
    if (can_open(net, master_count)) {
        net->there = open_here(net, master_count);
        ck_assert(net->there);
        return;
    }
    char *text = sandbox_read(net->log);
    snprintf(net->why_not, sizeof(net->why_not), "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}

void net_close(struct net *net)
{
    if (net->theirs_fd >= 0)
        close(net->theirs_fd);
    net->theirs_fd = -1;
}

bool net_cut(const struct net *net, unsigned peer, enum net_way way)
{
    bool done = true;
    char address[16];
    if (peer == NET_CLIENTS)
        snprintf(address, sizeof(address), NET_OURS);
    else
        snprintf(address, sizeof(address), NET_MASTERS "%u", peer);
    if (way != NET_TO_DAEMON)
        done = ip(net, false, "rule add pref %u from " NET_THEIRS " to %s blackhole",
                  RULE_FIRST + peer, address);
    if (way != NET_FROM_DAEMON)
        done = ip(net, false, "rule add pref %u from %s to " NET_THEIRS " blackhole",
                  RULE_FIRST + peer, address) &&
               done;
    return done;
}

/* net_cut() may have added two rules for this peer. */
void net_restore(const struct net *net, unsigned peer)
{
    while (ip(net, false, "rule del pref %u", RULE_FIRST + peer))
        continue;
}
