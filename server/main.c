/*
 * redlockd: flags and configuration, then the server.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/dev.h"
#include "server/log.h"
#include "server/server.h"

static const char default_file[] = "/etc/redlockd/redlockd.yaml";

/* Exit status 1 is a failure that a restart can cure. A restart cures neither wrong flags nor a
 * wrong configuration, so the shipped systemd unit does not restart the daemon after these two
 * statuses. 78 is EX_CONFIG of sysexits.h. */
enum { EXIT_USAGE = 2, EXIT_CONFIGURATION = 78 };

static const char usage[] =
    "usage: redlockd [-c FILE] [-t [--probe] | --bootstrap | --reset-set OLD-ID]\n"
    "       redlockd --dev [-c FILE]\n"
    "       redlockd -V | -h\n"
    "\n"
    "A lock manager: Redlock over independent Redis masters, for clients that speak a line "
    "protocol.\n"
    "\n"
    "  -c FILE      configuration file (default /etc/redlockd/redlockd.yaml; - is stdin)\n"
    "  -t           check the configuration, print its errors, and exit\n"
    "  --probe      with -t: also check every master; exits 1 if any of them cannot vote\n"
    "  --dev        run with five temporary masters, which are deleted at exit. UNSAFE for real "
    "work\n"
    "  --bootstrap  record that the masters are new and hold no locks, and exit: daemons started\n"
    "               afterwards grant locks at once instead of after max_ttl\n"
    "  --reset-set OLD-ID\n"
    "               replace the set with id OLD-ID by the configured one (nodes, max_ttl, ...),\n"
    "               and exit. First stop every daemon of the old set\n"
    "  -V, --version\n"
    "               print the version and exit\n"
    "  -h, --help   print this and exit\n"
    "\n"
    "To try it, run   redlockd --dev   and   nc 127.0.0.1 7335   and type   LOCK deploy 30s\n"
    "(or the port that the log names, if another program uses 7335)\n";

struct flags {
    const char *file;
    bool test;
    bool dev;
    struct server_task task;
};

enum { FLAG_DEV = 256, FLAG_BOOTSTRAP, FLAG_RESET_SET, FLAG_PROBE };

/* Returns the exit status, or failure if standard output could not be written. So a script does not
 * take partial output for complete output. */
static int flush_output(int status)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    fprintf(stderr, "redlockd: cannot write to standard output: %s\n", strerror(errno));
    return EXIT_FAILURE;
}

/* Reject flags that cannot be combined. */
static bool check_flags(const struct flags *flags)
{
    const char *old_set = flags->task.reset_set;
    if (flags->test + flags->dev + flags->task.trust_masters + (old_set != NULL) > 1) {
        fputs("redlockd: use only one of -t, --dev, --bootstrap and --reset-set\n", stderr);
        return false;
    }
    if (flags->task.probe && !flags->test) {
        fputs("redlockd: --probe requires -t: redlockd -t --probe\n", stderr);
        return false;
    }
    if (old_set != NULL && (strlen(old_set) != ENGINE_SET_ID ||
                            strspn(old_set, "0123456789abcdef") != ENGINE_SET_ID)) {
        fprintf(stderr,
                "redlockd: --reset-set requires the id of the old set, %d lowercase hex digits; "
                "`redis-cli GET redlockd:node` on a master shows it as set=\n",
                ENGINE_SET_ID);
        return false;
    }
    return true;
}

/* True: continue. False: exit with *status. */
static bool parse_flags(int argc, char **argv, struct flags *flags, int *status)
{
    static const struct option longs[] = {
        {"dev", no_argument, NULL, FLAG_DEV},
        {"bootstrap", no_argument, NULL, FLAG_BOOTSTRAP},
        {"reset-set", required_argument, NULL, FLAG_RESET_SET},
        {"probe", no_argument, NULL, FLAG_PROBE},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
    };
    int flag;
    while ((flag = getopt_long(argc, argv, "c:tVh", longs, NULL)) != -1) {
        switch (flag) {
        case 'c':
            flags->file = optarg;
            break;
        case 't':
            flags->test = true;
            break;
        case FLAG_DEV:
            flags->dev = true;
            break;
        case FLAG_BOOTSTRAP:
            flags->task.trust_masters = true;
            flags->task.task_only = true;
            break;
        case FLAG_PROBE:
            flags->task.probe = true;
            flags->task.task_only = true;
            break;
        case FLAG_RESET_SET:
            flags->task.reset_set = optarg;
            flags->task.task_only = true;
            break;
        case 'V':
            puts("redlockd " REDLOCKD_VERSION);
            *status = EXIT_SUCCESS;
            return false;
        case 'h':
            fputs(usage, stdout);
            *status = EXIT_SUCCESS;
            return false;
        default:
            fputs("redlockd -h lists the flags\n", stderr);
            *status = EXIT_USAGE;
            return false;
        }
    }
    *status = EXIT_USAGE;
    if (!check_flags(flags))
        return false;
    if (optind < argc) {
        fprintf(stderr, "redlockd: unexpected argument \"%s\"; redlockd -h lists the flags\n",
                argv[optind]);
        return false;
    }
    return true;
}

static struct config *load(const struct flags *flags)
{
    if (flags->dev && flags->file == NULL) {
        struct config *config = config_defaults();
        config->listens[0].any_port = true;
        return config;
    }
    if (flags->file == NULL && access(default_file, F_OK) != 0 && errno == ENOENT) {
        fprintf(stderr, "%s: %s; -c FILE names another file, and redlockd --dev needs none\n",
                default_file, strerror(ENOENT));
        return NULL;
    }
    return config_load(flags->file != NULL ? flags->file : default_file,
                       flags->dev ? CONFIG_DEV : CONFIG_NORMAL, stderr);
}

/* Block (SIG_BLOCK) or unblock (SIG_UNBLOCK) SIGHUP, and unless reload_alone also SIGTERM and
 * SIGINT. Until the event loop handles these signals, they would kill the daemon, which would leave
 * the processes and files of --dev behind. */
static void hold_signals(int how, bool reload_alone)
{
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGHUP);
    if (!reload_alone) {
        sigaddset(&held, SIGTERM);
        sigaddset(&held, SIGINT);
    }
    sigprocmask(how, &held, NULL);
}

static int run(struct config *config, const struct log *log, const struct server_task *task)
{
    struct server *server = malloc(sizeof(*server));
    if (server == NULL || !server_start(server, config, log, task)) {
        free(server);
        return EXIT_FAILURE;
    }
    hold_signals(SIG_UNBLOCK, false);
    if (!task->task_only)
        log_event(log, CONFIG_LOG_INFO, "started",
                  LOG_FIELDS(log_text("version", REDLOCKD_VERSION),
                             log_text("cluster", config->cluster),
                             log_number("nodes", config->node_count), log_number("pid", getpid())));
    bool succeeded = server_run(server);
    server_stop(server);
    free(server);
    return succeeded ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run_dev(struct config *config, const struct log *log)
{
    struct dev dev;
    struct error error;
    int status = EXIT_FAILURE;
    hold_signals(SIG_BLOCK, false);
    if (dev_start(&dev, config, &error)) {
        log_event(log, CONFIG_LOG_WARNING, "dev_started",
                  LOG_FIELDS(
                      log_text("warning", "UNSAFE: the masters are temporary and all on this host"),
                      log_text("masters", dev.directory), log_number("count", DEV_MASTERS)));
        status = run(config, log, &(struct server_task){.trust_masters = true});
    } else {
        log_event(log, CONFIG_LOG_ERROR, "dev_failed", LOG_FIELDS(log_text("why", error.text)));
    }
    dev_stop(&dev);
    return status;
}

/* Open missing standard descriptors. Otherwise a descriptor of the event loop could get number 2,
 * and log lines would be written to it. The missing ones are opened read-only, so that writing to a
 * missing standard output fails. */
static void open_standard_descriptors(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    struct flags flags = {0};
    int status;
    open_standard_descriptors();
    if (!parse_flags(argc, argv, &flags, &status))
        return flush_output(status);
    signal(SIGPIPE, SIG_IGN);
    /* Other daemons reopen their log on these signals, so operators may send them to redlockd too.
     * Their default action would end redlockd, and all HOLDs would be lost. */
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    /* Block SIGHUP until run(). A reload that is requested during the start has to happen after the
     * start, because the file may have changed after the daemon read it. */
    hold_signals(SIG_BLOCK, true);

    struct config *config = load(&flags);
    if (config == NULL)
        return EXIT_CONFIGURATION;
    /* The probe prints its results to standard output, so its log needs only errors. */
    const struct log log = {flags.task.probe ? CONFIG_LOG_ERROR : config->log.level,
                            config->log.format, STDERR_FILENO, log_is_journal(STDERR_FILENO)};
    if (!flags.task.task_only)
        flags.task.config_file = flags.file != NULL ? flags.file : default_file;
    if (flags.test && !flags.task.probe)
        status = EXIT_SUCCESS;
    else
        status = flags.dev ? run_dev(config, &log) : run(config, &log, &flags.task);
    config_free(config);
    return flush_output(status);
}
