/*
 * Files with the secrets of users, in a folder of their own, and the users in YAML: tester is
 * whoever runs the tests, and may do everything over the unix socket; ci and ops have a secret.
 */
#ifndef TESTS_E2E_SECRETS_H
#define TESTS_E2E_SECRETS_H

enum { SECRETS_YAML = 1024 };

#define SECRET_CI  "ci-0123456789abcdef0123456789abcdef"
#define SECRET_OPS "ops-0123456789abcdef0123456789abcdef"

struct secrets {
    char dir[32];
    char yaml[SECRETS_YAML]; /* for daemon_plan.yaml, `more` behind it */
};

void secrets_open(struct secrets *secrets, const char *more);
void secrets_close(struct secrets *secrets);

/* Of the file with the secret of "ci" or "ops". */
const char *secrets_path(const struct secrets *secrets, const char *name, char path[64]);

#endif
