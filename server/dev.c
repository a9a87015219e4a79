#include "server/dev.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "protocol/units.h"
#include "server/clock.h"

#define START_TIMEOUT_NS (10 * NS_PER_S)

struct path {
    char text[128];
};

/* The path of one master's file: "/tmp/redlockd-dev-abc123/1.sock". */
static struct path path_of(const struct dev *dev, unsigned master, const char *ending)
{
    struct path path;
    snprintf(path.text, sizeof(path.text), "%s/%u.%s", dev->directory, master + 1, ending);
    return path;
}

/* In the child process: become redis-server, which writes nothing to disk but its log. */
static void become_master(const struct dev *dev, unsigned master, pid_t parent)
{
    const struct path socket = path_of(dev, master, "sock");
    const struct path log = path_of(dev, master, "log");
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); /* main() blocks signals during the start */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* the parent died before PR_SET_PDEATHSIG took effect */
    /* Keep Ctrl-C in the terminal away from the masters: redlockd stops them itself. */
    setpgid(0, 0);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket.text, "--save", "",
           "--appendonly", "no", "--dir", dev->directory, "--logfile", log.text, (char *)NULL);
    _exit(127);
}

static bool wait_for_master(struct dev *dev, unsigned master, struct error *error)
{
    const struct timespec moment = {.tv_nsec = 5 * NS_PER_MS};
    int64_t give_up_ns = clock_now_ns() + START_TIMEOUT_NS;
    const struct path socket = path_of(dev, master, "sock");
    int status;
    while (access(socket.text, F_OK) != 0) {
        if (waitpid(dev->masters[master], &status, WNOHANG) == dev->masters[master]) {
            dev->masters[master] = 0;
            return error_set(
                error, WIFEXITED(status) && WEXITSTATUS(status) == 127
                           ? "redis-server was not found: install it (apt-get install redis-server)"
                           : "redis-server exited immediately; start it by hand to see why");
        }
        if (clock_now_ns() > give_up_ns)
            return error_set(error, "redis-server did not create its socket within 10s");
        nanosleep(&moment, NULL);
    }
    return true;
}

static bool name_node(const struct dev *dev, unsigned master, struct config_node *node)
{
    const struct path path = path_of(dev, master, "sock");
    node->address.kind = ADDRESS_UNIX;
    node->address.path = strdup(path.text);
    return asprintf(&node->name, "dev%u", master + 1) > 0 &&
           asprintf(&node->address.url, "unix:%s", path.text) > 0 && node->address.path != NULL;
}

/* The directory for temporary files. Its path has to be absolute, because the masters run in
 * another directory, and short, because the path of a unix socket has at most 107 bytes. */
static const char *temporary_directory(void)
{
    const char *chosen = getenv("TMPDIR");
    return chosen != NULL && chosen[0] == '/' && strlen(chosen) < 32 ? chosen : "/tmp";
}

bool dev_start(struct dev *dev, struct config *config, struct error *error)
{
    pid_t self = getpid();
    memset(dev, 0, sizeof(*dev));
    int len = snprintf(dev->directory, sizeof(dev->directory), "%s/redlockd-dev-XXXXXX",
                       temporary_directory());
    if (len < 0 || mkdtemp(dev->directory) == NULL) {
        dev->directory[0] = '\0';
        return error_set(error, "cannot create a directory in %s: %s", temporary_directory(),
                         strerror(errno));
    }
    for (unsigned i = 0; i < DEV_MASTERS; i++) {
        dev->masters[i] = fork();
        if (dev->masters[i] == 0)
            become_master(dev, i, self);
        if (dev->masters[i] < 0) {
            dev->masters[i] = 0;
            return error_set(error, "cannot fork: %s", strerror(errno));
        }
    }
    for (unsigned i = 0; i < DEV_MASTERS; i++) {
        if (!wait_for_master(dev, i, error))
            return false;
        config->node_count = i + 1;
        if (!name_node(dev, i, &config->nodes[i]))
            return error_set(error, "not enough memory");
    }
    return true;
}

void dev_stop(struct dev *dev)
{
    for (unsigned i = 0; i < DEV_MASTERS; i++) {
        if (dev->masters[i] <= 0)
            continue;
        kill(dev->masters[i], SIGKILL);
        waitpid(dev->masters[i], NULL, 0);
        dev->masters[i] = 0;
    }
    if (dev->directory[0] == '\0')
        return;
    for (unsigned i = 0; i < DEV_MASTERS; i++) {
        unlink(path_of(dev, i, "sock").text);
        unlink(path_of(dev, i, "log").text);
    }
    rmdir(dev->directory);
    dev->directory[0] = '\0';
}
