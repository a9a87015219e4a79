#include "config/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/memory.h"

/* Open a regular file; what is none (a pipe, a terminal) could keep the daemon waiting. */
static int open_regular(const char *path, bool *exposed, struct error *error)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        error_set(error, "cannot be read: %s", strerror(errno));
        return -1;
    }
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        *exposed = (status.st_mode & (S_IROTH | S_IWOTH)) != 0;
        return fd;
    }
    error_set(error, "is no regular file");
    close(fd);
    return -1;
}

/* Not through stdio: its buffer would keep the secret. */
static ssize_t read_all(int fd, char *buf, size_t size)
{
    size_t len = 0;
    ssize_t got;
    while (len < size && (got = read(fd, buf + len, size - len)) != 0) {
        if (got < 0)
            return -1;
        len += (size_t)got;
    }
    return (ssize_t)len;
}

char *secret_read(const char *path, bool *exposed, struct error *error)
{
    char buf[SECRET_MAX + 2]; /* a line feed, and a byte that tells of more */
    char *secret = NULL;
    *exposed = false;
    int fd = open_regular(path, exposed, error);
    if (fd < 0)
        return NULL;
    ssize_t got = read_all(fd, buf, sizeof(buf));
    size_t len = got > 0 ? (size_t)got : 0;
    if (len > 0 && buf[len - 1] == '\n')
        len--;
    if (got < 0) {
        error_set(error, "cannot be read: %s", strerror(errno));
    } else if (len == 0) {
        error_set(error, "is empty; write the secret into it");
    } else if (len > SECRET_MAX) {
        error_set(error, "is longer than %d bytes", SECRET_MAX);
    } else if (memchr(buf, '\n', len) != NULL || memchr(buf, '\0', len) != NULL) {
        error_set(error, "holds more than one line, or a NUL byte; write the secret alone into it");
    } else {
        buf[len] = '\0';
        secret = memory_copy(buf);
    }
    close(fd);
    explicit_bzero(buf, sizeof(buf));
    return secret;
}

void secret_free(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}
