/*
 * Secret files of users, in a separate folder, and the users in YAML. `tester` is the account that
 * runs the tests: over the unix socket it needs no secret, and it has all permissions. `ci` and
 * `ops` need their secrets.
 */
#ifndef TESTS_E2E_SECRETS_H
#define TESTS_E2E_SECRETS_H

enum { SECRETS_YAML = 1024 };

#define SECRET_CI  "ci-0123456789abcdef0123456789abcdef"
#define SECRET_OPS "ops-0123456789abcdef0123456789abcdef"

struct secrets {
    char dir[32];
    char yaml[SECRETS_YAML]; /* for daemon_plan.yaml, ends with `more` */
};

void secrets_open(struct secrets *secrets, const char *more);
void secrets_close(struct secrets *secrets);

/* Formats the path of the secret file of "ci" or "ops". */
const char *secrets_path(const struct secrets *secrets, const char *name, char path[64]);

#endif
