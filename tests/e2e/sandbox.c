#include "tests/e2e/sandbox.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/runner.h"

/* Names the folder of a program to its tests, which are forked. */
#define ROOT_VARIABLE "REDLOCKD_E2E_ROOT"

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *where)
{
    (void)stat;
    (void)type;
    (void)where;
    return remove(path);
}

static void remove_tree(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool ends_with(const char *text, const char *end)
{
    size_t text_len = strlen(text);
    size_t end_len = strlen(end);
    return text_len >= end_len && strcmp(text + text_len - end_len, end) == 0;
}

/* Prints the name of a failed test, and the last part of each log and of the output of each process
 * in its folder. */
static int print_log(const char *path, const struct stat *stat, int type, struct FTW *where)
{
    enum { LAST_PART = 16 * 1024 };
    (void)stat;
    const char *name = path + where->base;
    if (type != FTW_F || !(ends_with(name, ".log") || ends_with(name, ".err") ||
                           ends_with(name, ".out") || strcmp(name, "test") == 0))
        return 0;
    char *text = sandbox_read(path);
    size_t len = strlen(text);
    const char *from = len > LAST_PART ? text + len - LAST_PART : text;
    if (strcmp(name, "test") == 0)
        printf("--- left by %s\n", text);
    else if (len > 0)
        printf("--- %s:\n%s\n", name, from);
    free(text);
    return 0;
}

static void open_root(void)
{
    char root[SANDBOX_PATH];
    const char *folder = getenv("E2E_FOLDER");
    snprintf(root, sizeof(root), "%s/redlockd-e2e.XXXXXX", folder != NULL ? folder : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(root));
    setenv(ROOT_VARIABLE, root, 1);
}

static void close_root(void)
{
    const char *root = getenv(ROOT_VARIABLE);
    nftw(root, print_log, 16, FTW_PHYS);
    fflush(stdout);
    remove_tree(root);
    unsetenv(ROOT_VARIABLE);
}

const struct runner_frame runner_frame = {.open = open_root, .close = close_root};

void sandbox_open(struct sandbox *sandbox, const char *test)
{
    char path[SANDBOX_FILE];
    snprintf(sandbox->dir, sizeof(sandbox->dir), "%s/XXXXXX", getenv(ROOT_VARIABLE));
    ck_assert_ptr_nonnull(mkdtemp(sandbox->dir));
    sandbox_write(sandbox_path(sandbox, "test", path), test);
}

void sandbox_close(struct sandbox *sandbox)
{
    remove_tree(sandbox->dir);
    ck_assert_msg(!sandbox_exists(sandbox->dir), "%s could not be removed", sandbox->dir);
}

char *sandbox_path(const struct sandbox *sandbox, const char *name, char *path)
{
    int len = snprintf(path, SANDBOX_FILE, "%s/%s", sandbox->dir, name);
    ck_assert_int_lt(len, SANDBOX_FILE);
    return path;
}

void sandbox_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

char *sandbox_read(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *copy = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(copy);
    FILE *file = fopen(path, "r");
    char part[4096];
    size_t len;
    while (file != NULL && (len = fread(part, 1, sizeof(part), file)) > 0)
        fwrite(part, 1, len, copy);
    if (file != NULL)
        fclose(file);
    ck_assert_int_eq(fclose(copy), 0);
    return text;
}

bool sandbox_exists(const char *path)
{
    struct stat stat;
    return lstat(path, &stat) == 0;
}
