/*
 * The ACL in one table: each verb, for each kind of user, with and without a resource.
 */
#include <string.h>

#include "config/acl.h"
#include "tests/runner.h"

static const char *const ci_prefixes[] = {"ci:", "build/"};
static const char *const all_prefixes[] = {""};

/* UNKNOWN has not authenticated. CI has the usual verbs on two prefixes. WATCHER has only the verbs
 * STATS and NODES. OPS may do everything. EMPTY has all verbs and no prefix. */
enum role { UNKNOWN, CI, WATCHER, OPS, EMPTY, ROLES };

static struct acl acl_of(enum role role)
{
    switch (role) {
    case UNKNOWN:
        return (struct acl){.verbs = ACL_GRANTABLE, .prefixes = all_prefixes, .prefix_count = 1};
    case CI:
        return (struct acl){
            .known = true, .verbs = ACL_USUAL, .prefixes = ci_prefixes, .prefix_count = 2};
    case WATCHER:
        return (struct acl){.known = true, .verbs = ACL_BIT(VERB_STATS) | ACL_BIT(VERB_NODES)};
    case OPS:
        return (struct acl){
            .known = true, .verbs = ACL_GRANTABLE, .prefixes = all_prefixes, .prefix_count = 1};
    case EMPTY:
        return (struct acl){.known = true, .verbs = ACL_GRANTABLE};
    case ROLES:
        break;
    }
    return (struct acl){0};
}

/* One letter for each user in the order of the enum: y allowed, a AUTH needed, v verb denied, r
 * resource denied. */
static const struct row {
    enum verb verb;
    const char *resource;
    const char *answers;
} rows[] = {
    {VERB_AUTH, NULL, "yyyyy"},     {VERB_PING, NULL, "yyyyy"},     {VERB_VERSION, NULL, "yyyyy"},
    {VERB_HELP, NULL, "yyyyy"},     {VERB_QUIT, NULL, "yyyyy"},     {VERB_NAME, NULL, "ayyyy"},
    {VERB_LOCK, "ci:a", "ayvyr"},   {VERB_LOCK, "ci:", "ayvyr"},    {VERB_LOCK, "ci", "arvyr"},
    {VERB_LOCK, "c", "arvyr"},      {VERB_LOCK, "Ci:a", "arvyr"},   {VERB_LOCK, "xci:a", "arvyr"},
    {VERB_LOCK, "build/", "ayvyr"}, {VERB_LOCK, "build", "arvyr"},  {VERB_BREAK, "ci:a", "avvyr"},
    {VERB_BREAK, "b", "avvyr"},     {VERB_UNLOCK, "ci:a", "ayvyr"}, {VERB_UNLOCK, "b", "arvyr"},
    {VERB_EXTEND, "ci:a", "ayvyr"}, {VERB_EXTEND, "b", "arvyr"},    {VERB_STATUS, "ci:a", "ayvyr"},
    {VERB_STATUS, "b", "arvyr"},    {VERB_LOCKS, "ci:a", "ayvyr"},  {VERB_LOCKS, "b", "arvyr"},
    {VERB_LOCKS, NULL, "ayvyy"},    {VERB_CLIENTS, NULL, "avvyy"},  {VERB_NODES, NULL, "avyyy"},
    {VERB_STATS, NULL, "avyyy"},
};

static char letter_of(enum acl_answer answer)
{
    switch (answer) {
    case ACL_YES:
        return 'y';
    case ACL_NOT_KNOWN:
        return 'a';
    case ACL_NOT_VERB:
        return 'v';
    case ACL_NOT_RESOURCE:
        return 'r';
    }
    return '?';
}

TEST(each_verb_is_answered_as_in_the_table)
{
    uint32_t seen = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        char answers[ROLES + 1] = "";
        seen |= ACL_BIT(row->verb);
        for (unsigned role = 0; role < ROLES; role++) {
            struct acl acl = acl_of((enum role)role);
            size_t len = row->resource != NULL ? strlen(row->resource) : 0;
            answers[role] = letter_of(acl_check(&acl, row->verb, row->resource, len));
        }
        ck_assert_msg(strcmp(answers, row->answers) == 0, "%s %s: %s, not %s", verb_word(row->verb),
                      row->resource != NULL ? row->resource : "", answers, row->answers);
    }
    ck_assert_uint_eq(seen, ACL_BIT(VERB_COUNT) - 1);
}

/* A resource is bytes with a length: the bytes that follow it in memory do not count. */
TEST(prefix_longer_than_the_resource_does_not_cover_it)
{
    struct acl acl = acl_of(CI);
    ck_assert(acl_covers(&acl, "ci:x", 4));
    ck_assert(acl_covers(&acl, "ci:x", 3));
    ck_assert(!acl_covers(&acl, "ci:x", 2));
    ck_assert(!acl_covers(&acl, "ci:x", 0));
}

TEST(only_the_empty_prefix_covers_every_resource)
{
    struct acl ops = acl_of(OPS);
    struct acl ci = acl_of(CI);
    struct acl empty = acl_of(EMPTY);
    ck_assert(acl_covers_all(&ops));
    ck_assert(!acl_covers_all(&ci));
    ck_assert(!acl_covers_all(&empty));
}

TEST(usual_verbs_are_grantable_and_only_concern_locks)
{
    uint32_t others =
        ACL_BIT(VERB_STATS) | ACL_BIT(VERB_NODES) | ACL_BIT(VERB_CLIENTS) | ACL_BIT(VERB_BREAK);
    ck_assert_uint_eq(ACL_USUAL & ~ACL_GRANTABLE, 0);
    ck_assert_uint_eq(ACL_USUAL & others, 0);
    ck_assert_uint_eq(ACL_ABOUT_RESOURCES & ~ACL_GRANTABLE, 0);
}

TEST(errors_that_reveal_the_configuration_need_authentication)
{
    struct acl unknown = acl_of(UNKNOWN);
    struct acl ci = acl_of(CI);
    ck_assert(acl_may_reveal(&unknown, REQUEST_UNKNOWN_VERB));
    ck_assert(acl_may_reveal(&unknown, REQUEST_LINE_TOO_LONG));
    ck_assert(!acl_may_reveal(&unknown, REQUEST_TTL_RANGE));
    ck_assert(!acl_may_reveal(&unknown, REQUEST_BAD_RESOURCE));
    ck_assert(acl_may_reveal(&ci, REQUEST_TTL_RANGE));
}

TEST(each_denial_says_what_the_client_needs)
{
    static const struct {
        enum acl_answer answer;
        enum verb verb;
        const char *user;
        const char *text;
    } cases[] = {
        {ACL_NOT_KNOWN, VERB_LOCK, NULL, "authenticate first: AUTH <secret>"},
        {ACL_NOT_VERB, VERB_STATS, "ci", "user ci may not use STATS"},
        {ACL_NOT_VERB, VERB_BREAK, "ci", "user ci may not use BREAK"},
        {ACL_NOT_VERB, VERB_BREAK, NULL,
         "BREAK requires a user with that verb; without users, root or the daemon's own user on a "
         "unix socket"},
        {ACL_NOT_RESOURCE, VERB_LOCK, "ci", "user ci may not use this resource"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char buf[200] = "";
        struct text text = {.buf = buf, .size = sizeof(buf) - 1};
        acl_explain(cases[i].answer, cases[i].verb, cases[i].user, &text);
        ck_assert_str_eq(buf, cases[i].text);
    }
}
