#include "tests/e2e/secrets.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/sandbox.h"

const char *secrets_path(const struct secrets *secrets, const char *name, char path[64])
{
    snprintf(path, 64, "%s/%s", secrets->dir, name);
    return path;
}

void secrets_open(struct secrets *secrets, const char *more)
{
    char ci[64];
    char ops[64];
    strcpy(secrets->dir, "/tmp/redlockd-secrets.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(secrets->dir));
    sandbox_write(secrets_path(secrets, "ci", ci), SECRET_CI "\n");
    sandbox_write(secrets_path(secrets, "ops", ops), SECRET_OPS "\n");
    int len = snprintf(secrets->yaml, sizeof(secrets->yaml),
                       "log: {level: debug}\n"
                       "auth:\n  users:\n"
                       "  - {name: ci, secret_file: %s, resources: [\"ci:\"],\n"
                       "     verbs: [lock, unlock, extend, status, locks, clients]}\n"
                       "  - {name: ops, secret_file: %s, resources: [\"\"], verbs: [all]}\n"
                       "  - {name: tester, uids: [%u], resources: [\"\"], verbs: [all]}\n%s",
                       ci, ops, (unsigned)geteuid(), more);
    ck_assert_int_lt(len, (int)sizeof(secrets->yaml));
}

void secrets_close(struct secrets *secrets)
{
    char path[64];
    unlink(secrets_path(secrets, "ci", path));
    unlink(secrets_path(secrets, "ops", path));
    ck_assert_int_eq(rmdir(secrets->dir), 0);
}
