#include "client/cli/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/command.h"
#include "client/cli/report.h"
#include "protocol/limits.h"

/* The secret is read from a file with one line. It is never an argument, because other users of
 * this machine could read it there. */
enum { SECRET_SIZE = LIMIT_SECRET + 4, PATH_SHOWN = 100 };

static bool fail(struct error *error, const char *path, const char *what)
{
    struct text text = error_begin(error);
    text_string(&text, "the secret in ");
    text_quoted(&text, path, strlen(path), PATH_SHOWN);
    text_string(&text, ": ");
    text_string(&text, what);
    return false;
}

/* Reads the secret without its final LF. False: the error names the file and the fault. */
static bool read_secret(const char *path, char secret[SECRET_SIZE], struct error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (fd >= 0 && file == NULL)
        close(fd);
    if (file == NULL)
        return fail(error, path, strerror(errno));
    /* Unbuffered, so that no copy of the secret stays in a stdio buffer. */
    setvbuf(file, NULL, _IONBF, 0);
    memset(secret, 0, SECRET_SIZE);
    size_t len = fread(secret, 1, SECRET_SIZE - 1, file);
    int failed = ferror(file) ? errno : 0;
    fclose(file);
    if (failed != 0)
        return fail(error, path, strerror(failed));
    if (len > 0 && secret[len - 1] == '\n')
        secret[--len] = '\0';
    if (len == 0)
        return fail(error, path, "the file is empty");
    if (len > LIMIT_SECRET)
        return fail(error, path, "it must have at most 256 bytes");
    if (strlen(secret) != len || strchr(secret, '\n') != NULL)
        return fail(error, path, "the file must contain only the secret, on one line");
    return true;
}

/* If the secret cannot be read, exits before anything is sent: without a secret, the daemon would
 * deny all requests. */
static void set_secret(const struct options *options, struct redlock *redlock)
{
    char secret[SECRET_SIZE];
    struct error error;
    if (options->secret_file == NULL)
        return;
    if (!read_secret(options->secret_file, secret, &error))
        exit(report_status(options, REDLOCK_INVALID, -1, error.text));
    enum redlock_status status = redlock_set_secret(redlock, secret);
    explicit_bzero(secret, sizeof(secret));
    if (status != REDLOCK_OK)
        exit(report_failure(options, redlock, status, -1));
}

bool daemon_can_renew_secret(const struct options *options)
{
    struct stat file;
    const char *path = options->secret_file;
    /* Only a regular file can be read again without blocking. A pipe, terminal or FIFO cannot, and
     * standard input may belong to the command by now. */
    return path == NULL || stat(path, &file) != 0 || S_ISREG(file.st_mode);
}

void daemon_renew_secret(const struct options *options, struct redlock *redlock)
{
    char secret[SECRET_SIZE];
    struct error error;
    if (options->secret_file == NULL || !daemon_can_renew_secret(options))
        return;
    if (read_secret(options->secret_file, secret, &error))
        (void)redlock_set_secret(redlock, secret);
    explicit_bzero(secret, sizeof(secret));
}

struct redlock *daemon_open(const struct options *options)
{
    char label[REDLOCK_LABEL_MAX + 1];
    struct redlock *redlock = redlock_new(options->url);
    if (redlock == NULL)
        exit(report_status(options, REDLOCK_MEMORY, -1, "out of memory"));
    redlock_set_timeout(redlock, options->timeout_ms);
    set_secret(options, redlock);
    snprintf(label, sizeof(label), "redlock:%s:%d", options->command->name, (int)getpid());
    (void)redlock_set_label(redlock, label);
    return redlock;
}
