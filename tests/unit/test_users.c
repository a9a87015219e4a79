/*
 * server/clients/users.c: which user a secret or a Unix id belongs to. The search takes the same
 * number of instructions for all wrong secrets of one length.
 *
 * server/clients/client_address.c: the number of connections from one address is limited.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/clients/client_address.h"
#include "server/clients/users.h"
#include "tests/runner.h"

static char secret_ci[] = "ci-secret-0123456789abcdef";
static char secret_ops[] = "ops-secret-0123456789abcdef";
static char prefix[] = "ci:";
static char name_ci[] = "ci";
static char name_ops[] = "ops";
static char name_local[] = "local";
static char name_group[] = "group";

static struct config_user list[] = {
    {.name = name_ci, .secret = secret_ci, .prefixes = {prefix}, .prefix_count = 1, .verbs = 1},
    {.name = name_local, .uids = {1000, 1001}, .uid_count = 2, .gids = {50}, .gid_count = 1},
    {.name = name_ops, .secret = secret_ops},
    {.name = name_group, .gids = {60, 70}, .gid_count = 2},
};
static struct config_users config = {list, sizeof(list) / sizeof(list[0])};
static const unsigned char key[USERS_DIGEST] = {1, 2, 3};
static struct users users;

static void begin(void)
{
    ck_assert(users_init(&users, &config, key));
}

static void end(void)
{
    users_deinit(&users);
}

const struct runner_settings runner_settings = {.setup = begin, .teardown = end};

static const char *find(const char *secret)
{
    uint64_t fingerprint = 0;
    const struct user *user = users_by_secret(&users, secret, strlen(secret), &fingerprint);
    ck_assert_uint_ne(fingerprint, 0);
    return user != NULL ? user->config->name : "nobody";
}

TEST(only_the_secret_itself_names_its_user)
{
    ck_assert_str_eq(find(secret_ci), "ci");
    ck_assert_str_eq(find(secret_ops), "ops");
    ck_assert_str_eq(find(""), "nobody");
    ck_assert_str_eq(find("ci"), "nobody");
    ck_assert_str_eq(find("ci-secret-0123456789abcde"), "nobody");
    ck_assert_str_eq(find("ci-secret-0123456789abcdef0"), "nobody");
    ck_assert_str_eq(find("Ci-secret-0123456789abcdef"), "nobody");
}

/* The digest of a user without a secret never matches, even if it equals that of the secret
 * presented. */
TEST(user_without_a_secret_matches_none)
{
    struct user *ci = &users.list[0];
    struct user *local = &users.list[1];
    memcpy(local->digest, ci->digest, USERS_DIGEST);
    memset(ci->digest, 0, USERS_DIGEST);
    ck_assert(!local->has_secret);
    ck_assert_str_eq(find(secret_ci), "nobody");
    ck_assert_ptr_eq(users_by_name(&users, "local"), &users.list[1]);
    ck_assert_ptr_null(users_by_name(&users, "loca"));
}

TEST(wrong_secrets_have_distinct_fingerprints)
{
    uint64_t first;
    uint64_t again;
    uint64_t other;
    users_by_secret(&users, "wrong", 5, &first);
    users_by_secret(&users, "wrong", 5, &again);
    users_by_secret(&users, "Wrong", 5, &other);
    ck_assert_uint_eq(first, again);
    ck_assert_uint_ne(first, other);
}

TEST(acl_is_that_of_the_configuration)
{
    const struct acl *acl = &users.list[0].acl;
    ck_assert(acl->known);
    ck_assert(acl_covers(acl, "ci:a", 4));
    ck_assert(!acl_covers(acl, "ops", 3));
    ck_assert_int_eq(acl_check(acl, VERB_LOCK, "ci:a", 4), ACL_YES);
    ck_assert_int_eq(acl_check(acl, VERB_STATUS, "ci:a", 4), ACL_NOT_VERB);
}

static const char *find_ids(uid_t uid, gid_t first, gid_t second)
{
    const gid_t gids[] = {first, second};
    const struct user *user = users_by_ids(&users, uid, gids, 2);
    return user != NULL ? user->config->name : "nobody";
}

/* The client's user ID is looked up first, then its group IDs in the order in which the client has
 * them. */
TEST(user_id_precedes_group_ids_in_their_order)
{
    ck_assert_str_eq(find_ids(1000, 1, 2), "local");
    ck_assert_str_eq(find_ids(1001, 60, 2), "local");
    ck_assert_str_eq(find_ids(5, 50, 60), "local");
    ck_assert_str_eq(find_ids(5, 60, 50), "group");
    ck_assert_str_eq(find_ids(5, 1, 70), "group");
    ck_assert_str_eq(find_ids(0, 0, 0), "nobody");
}

TEST(connections_are_counted_by_address_up_to_the_limit)
{
    void *counts = NULL;
    struct client_address a = client_address_of_user(1);
    struct client_address b = client_address_of_user(2);
    ck_assert_int_eq(address_counts_enter(&counts, &a, 2), ADDRESS_COUNTED);
    ck_assert_int_eq(address_counts_enter(&counts, &a, 2), ADDRESS_COUNTED);
    ck_assert_int_eq(address_counts_enter(&counts, &a, 2), ADDRESS_FULL);
    ck_assert_int_eq(address_counts_enter(&counts, &b, 2), ADDRESS_COUNTED);
    address_counts_leave(&counts, &a);
    ck_assert_int_eq(address_counts_enter(&counts, &a, 2), ADDRESS_COUNTED);
    ck_assert_int_eq(address_counts_enter(&counts, &a, 0), ADDRESS_COUNTED);
    address_counts_leave(&counts, &a);
    address_counts_leave(&counts, &a);
    address_counts_leave(&counts, &a);
    address_counts_leave(&counts, &b);
    ck_assert_ptr_null(counts);
}

/* --- constant time --- */

/*
 * The number of instructions that users_by_secret() takes, counted by single-stepping a child
 * between two signals; -1 if ptrace is not permitted.
 */
static long count_instructions(const char *secret)
{
    uint64_t fingerprint;
    size_t len = strlen(secret);
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(2);
        raise(SIGSTOP);
        users_by_secret(&users, secret, len, &fingerprint);
        raise(SIGUSR1);
        _exit(0);
    }
    int status;
    long steps = 0;
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status))
        return -1;
    while (WIFSTOPPED(status) && WSTOPSIG(status) != SIGUSR1) {
        steps++;
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 || waitpid(child, &status, 0) < 0)
            break;
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return steps;
}

TEST(wrong_secrets_of_one_length_take_the_same_instructions)
{
    static const char *const wrong[] = {
        "xxxxxxxxxxxxxxxxxxxxxxxxxx", /* every byte differs */
        "ci-secret-0123456789abcdex", /* only the last byte differs */
        "xi-secret-0123456789abcdef", /* only the first byte differs */
        "ops-secret-0123456789abcde", /* another user's secret, one byte short */
    };
    /* The first search also does work that is done only once, such as lazy binding. Do it before
     * counting. */
    find("warm");
    long expected = count_instructions(wrong[0]);
    if (expected < 0)
        return; /* ptrace is not permitted */
    ck_assert_int_gt(expected, 1000);
    for (size_t i = 1; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_int_eq(count_instructions(wrong[i]), expected);
    /* The right secret takes a few more instructions, because users_by_secret() computes a pointer
     * to the user that it found. The 64 extra instructions allowed here cost less than comparing
     * one more digest. */
    long right = count_instructions(secret_ci);
    ck_assert_int_ge(right, expected);
    ck_assert_int_le(right, expected + 64);
    if (getenv("REDLOCKD_TEST_SAY") != NULL)
        printf("instructions: wrong %ld, right %ld\n", expected, right);
}
