#include "config/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/memory.h"

/* This avoids stdio, whose buffer would keep the secret. */
static bool read_all(int fd, struct file *file)
{
    ssize_t got = 0;
    while (file->len < file->size &&
           (got = read(fd, file->bytes + file->len, file->size - file->len)) > 0)
        file->len += (size_t)got;
    return got >= 0;
}

bool file_read(struct file *file, const char *path, size_t size, struct error *error)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_set(error, "cannot be read: %s", strerror(errno));
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return error_set(error, "is not a regular file");
    }
    *file = (struct file){.bytes = memory_zeroed(size, 1),
                          .size = size,
                          .exposed = (status.st_mode & (S_IROTH | S_IWOTH)) != 0};
    bool whole = read_all(fd, file);
    if (!whole) {
        error_set(error, "cannot be read: %s", strerror(errno));
        file_free(file);
    }
    close(fd);
    return whole;
}

void file_free(struct file *file)
{
    explicit_bzero(file->bytes, file->size);
    free(file->bytes);
}
