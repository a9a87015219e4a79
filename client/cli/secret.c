#include "client/cli/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SHOWN = 100 };

/* Not through stdio: its buffer would keep the secret. */
static ssize_t read_all(int fd, char *buf, size_t size)
{
    size_t len = 0;
    ssize_t got;
    while (len < size && (got = read(fd, buf + len, size - len)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        len += (size_t)got;
    }
    return (ssize_t)len;
}

static bool fail(struct error *error, const char *path, const char *what)
{
    struct text text = error_begin(error);
    text_string(&text, "the secret in ");
    text_quoted(&text, path, strlen(path), PATH_SHOWN);
    text_string(&text, ": ");
    text_string(&text, what);
    return false;
}

bool secret_read(const char *path, char secret[SECRET_SIZE], struct error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return fail(error, path, strerror(errno));
    memset(secret, 0, SECRET_SIZE);
    ssize_t got = read_all(fd, secret, SECRET_SIZE - 1);
    int failed = errno;
    close(fd);
    if (got < 0)
        return fail(error, path, strerror(failed));
    size_t len = (size_t)got;
    if (len > 0 && secret[len - 1] == '\n')
        secret[--len] = '\0';
    if (len == 0)
        return fail(error, path, "it is empty");
    if (len > LIMIT_SECRET)
        return fail(error, path, "it has more than 256 bytes");
    if (strlen(secret) != len || strchr(secret, '\n') != NULL)
        return fail(error, path, "it has to stand there alone, in one line");
    return true;
}

bool secret_read_again(const char *path, char secret[SECRET_SIZE])
{
    struct stat file;
    struct error error;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode) && secret_read(path, secret, &error);
}
