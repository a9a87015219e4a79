#include "tests/unit/configs.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char origin[256];
static char folder[64];
static char reported[65536];

void configs_open(void)
{
    ck_assert_ptr_nonnull(getcwd(origin, sizeof(origin)));
    strcpy(folder, "/tmp/redlockd-config.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    umask(0077); /* Files of secrets must not be readable by others. */
}

void configs_close(void)
{
    char command[sizeof(folder) + 8];
    ck_assert_int_eq(chdir(origin), 0);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

const char *configs_folder(void)
{
    return folder;
}

const char *configs_origin(void)
{
    return origin;
}

void configs_write(const char *path, const char *text)
{
    configs_write_bytes(path, text, strlen(text));
}

void configs_write_bytes(const char *path, const char *bytes, size_t len)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

struct config *configs_load(const char *path, enum config_mode mode)
{
    FILE *out = fmemopen(reported, sizeof(reported), "w");
    ck_assert_ptr_nonnull(out);
    reported[0] = '\0'; /* fmemopen() terminates only what is written. */
    struct config *config = config_load(path, mode, out);
    fclose(out);
    return config;
}

struct config *configs_read(const char *text)
{
    configs_write("f", text);
    return configs_load("f", CONFIG_NORMAL);
}

const char *configs_report(void)
{
    return reported;
}

struct config *configs_accept(const char *text)
{
    struct config *config = configs_read(text);
    ck_assert_str_eq(reported, "");
    ck_assert_ptr_nonnull(config);
    return config;
}

void configs_refuse(const char *text, const char *report)
{
    ck_assert_ptr_null(configs_read(text));
    ck_assert_str_eq(reported, report);
}
