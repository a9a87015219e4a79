/*
 * server/clients/auth.c: the user of a connection, its ACL, and which unauthenticated connection is
 * closed first when there are too many.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/config.h"
#include "server/clients/auth.h"
#include "server/random.h"
#include "tests/runner.h"

enum { S = 1000000000, PLACES = 4 };

static char secret_ci[] = "ci-secret-0123456789abcdef";
static char secret_ops[] = "ops-secret-0123456789abcdef";
static char name_ci[] = "ci";
static char name_ops[] = "ops";
static char prefix_ci[] = "ci:";
static char prefix_deploy[] = "deploy:";

static struct config_user list[] = {
    {.name = name_ci, .secret = secret_ci, .prefixes = {prefix_ci}, .prefix_count = 1},
    {.name = name_ops, .secret = secret_ops},
};
static struct config_user changed_list[] = {
    {.name = name_ci, .secret = secret_ci, .prefixes = {prefix_deploy}, .prefix_count = 1},
};
static struct config_users users = {list, 2};
static struct config_users changed_users = {changed_list, 1};
static struct config config;
static struct random source;
static struct auth auth;
static struct auth_identity identities[PLACES];

static void begin_with(struct config_users *configured)
{
    config = (struct config){.users = configured};
    config.limits.unauthenticated = PLACES;
    config.limits.auth_timeout_ns = 5 * (int64_t)S;
    list[0].verbs = list[1].verbs = changed_list[0].verbs = ACL_USUAL;
    memset(identities, 0, sizeof(identities));
    ck_assert(random_init(&source));
    ck_assert(auth_init(&auth, &config, &source));
}

static void begin(void)
{
    begin_with(&users);
}

static void end(void)
{
    auth_deinit(&auth);
    random_deinit(&source);
}

const struct runner_settings runner_settings = {.setup = begin, .teardown = end};

static struct auth_identity *connect_at(unsigned index, int64_t now_ns)
{
    struct auth_identity *identity = &identities[index];
    *identity = (struct auth_identity){.peer = PEER_TCP, .fd = -1};
    if (!auth_identify(&auth, identity))
        auth_await(&auth, identity, now_ns);
    return identity;
}

static enum auth_result try_with(struct auth_identity *identity, const char *secret, bool same_user)
{
    enum auth_throttle_news news;
    const struct auth_credentials credentials = {
        .secret = secret, .secret_len = strlen(secret), .same_user = same_user};
    return auth_try(&auth, identity, &credentials, S, &news);
}

static enum auth_result try(struct auth_identity *identity, const char *secret)
{
    return try_with(identity, secret, false);
}

static bool may_lock(const struct auth_identity *identity, const char *resource)
{
    return acl_check(&identity->acl, VERB_LOCK, resource, strlen(resource)) == ACL_YES;
}

TEST(without_users_every_connection_may_do_all_but_break)
{
    end();
    begin_with(NULL);
    struct auth_identity *any = connect_at(0, S);
    ck_assert_int_eq(any->state, AUTH_OPEN);
    ck_assert(may_lock(any, "ci:build"));
    ck_assert_int_ne(acl_check(&any->acl, VERB_BREAK, "a", 1), ACL_YES);
    struct auth_identity owner = {.peer = PEER_OWNER, .fd = -1};
    ck_assert(auth_identify(&auth, &owner));
    ck_assert_int_eq(acl_check(&owner.acl, VERB_BREAK, "a", 1), ACL_YES);
    ck_assert_int_eq(try(any, "a secret it was given before"), AUTH_IGNORED);
    ck_assert_uint_eq(auth.pending_count, 0);
}

TEST(right_secret_admits_a_connection_and_wrong_secret_leaves_it_pending)
{
    struct auth_identity *one = connect_at(0, S);
    struct auth_identity *other = connect_at(1, S);
    ck_assert_int_eq(one->state, AUTH_PENDING);
    ck_assert(!may_lock(one, "ci:build"));
    ck_assert_int_eq(try(one, "wrong"), AUTH_WRONG);
    ck_assert_int_eq(one->state, AUTH_PENDING);
    ck_assert_uint_eq(auth.wrong, 1);

    ck_assert_int_eq(try(other, secret_ci), AUTH_ACCEPTED);
    ck_assert_int_eq(other->state, AUTH_BY_SECRET);
    ck_assert_str_eq(other->user->config->name, "ci");
    ck_assert(may_lock(other, "ci:build"));
    ck_assert(!may_lock(other, "deploy:web"));
    ck_assert_uint_eq(auth.pending_count, 1);
    ck_assert_int_eq(try(other, secret_ops), AUTH_AGAIN);
    ck_assert_str_eq(other->user->config->name, "ci");
}

/* Another user might be unable to release the locks of the connection. */
TEST(user_of_a_socket_with_locks_can_be_confirmed_but_not_changed)
{
    int sockets[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    list[0].uids[0] = getuid();
    list[0].uid_count = 1;
    end();
    begin();
    struct auth_identity identity = {.peer = PEER_UNIX, .fd = sockets[0]};
    ck_assert(auth_identify(&auth, &identity));
    ck_assert_int_eq(identity.state, AUTH_BY_SOCKET);
    ck_assert_int_eq(try_with(&identity, secret_ops, true), AUTH_BOUND);
    ck_assert_int_eq(identity.state, AUTH_BY_SOCKET);
    ck_assert_int_eq(try_with(&identity, "wrong", true), AUTH_WRONG);
    ck_assert_int_eq(try_with(&identity, secret_ci, true), AUTH_ACCEPTED);
    ck_assert_str_eq(identity.user->config->name, "ci");
    auth_leave(&auth, &identity);
    close(sockets[0]);
    close(sockets[1]);
}

TEST(oldest_pending_connection_is_displaced_first_and_logged_once)
{
    for (unsigned i = 0; i < PLACES; i++) {
        ck_assert(!auth_is_full(&auth));
        connect_at(i, S + i);
    }
    ck_assert(auth_is_full(&auth));
    ck_assert_ptr_eq(auth_oldest(&auth), &identities[0]);
    ck_assert_int_eq(auth_deadline_ns(&auth), S + config.limits.auth_timeout_ns);

    ck_assert(auth_displace(&auth));
    auth_leave(&auth, &identities[0]);
    ck_assert(!auth_displace(&auth));
    ck_assert_ptr_eq(auth_oldest(&auth), &identities[1]);
    ck_assert_int_eq(auth_deadline_ns(&auth), S + 1 + config.limits.auth_timeout_ns);

    /* Displacement is reported again once half of the places are free. */
    auth_leave(&auth, &identities[1]);
    ck_assert(auth_displace(&auth));
    auth_leave(&auth, &identities[2]);
    auth_leave(&auth, &identities[3]);
    ck_assert_ptr_null(auth_oldest(&auth));
    ck_assert_int_eq(auth_deadline_ns(&auth), INT64_MAX);
}

/* Configure these users and check what auth_renew() returns for each connection. */
static void renew(struct config_users *configured, const bool stays[PLACES])
{
    struct users before;
    config.users = configured;
    ck_assert(auth_renew_users(&auth, &before));
    for (unsigned i = 0; i < PLACES; i++)
        if (identities[i].state != AUTH_NONE)
            ck_assert_int_eq(auth_renew(&auth, &identities[i]), stays[i]);
    users_deinit(&before);
}

TEST(changed_users_keep_their_sessions_and_removed_users_lose_them)
{
    ck_assert_int_eq(try(connect_at(0, S), secret_ci), AUTH_ACCEPTED);
    ck_assert_int_eq(try(connect_at(1, S), secret_ops), AUTH_ACCEPTED);
    connect_at(2, S);
    renew(&changed_users, (const bool[PLACES]){true, false, true});
    ck_assert(!may_lock(&identities[0], "ci:build"));
    ck_assert(may_lock(&identities[0], "deploy:web"));
    ck_assert_int_eq(identities[2].state, AUTH_PENDING);
}

TEST(adding_or_removing_all_users_changes_every_connection)
{
    ck_assert_int_eq(try(connect_at(0, S), secret_ci), AUTH_ACCEPTED);
    connect_at(1, S);
    renew(NULL, (const bool[PLACES]){true, true});
    ck_assert_int_eq(identities[0].state, AUTH_OPEN);
    ck_assert_int_eq(identities[1].state, AUTH_OPEN);
    ck_assert_uint_eq(auth.pending_count, 0);
    /* These connections needed no secret while no users were configured. They are not the owner's,
     * so they must end once users are configured. */
    renew(&users, (const bool[PLACES]){false, false});
}

TEST(secrets_are_not_checked_after_too_many_wrong_ones)
{
    struct auth_identity *identity = connect_at(0, S);
    for (unsigned i = 0; i < AUTH_THROTTLE_BURST; i++) {
        char wrong[] = "wrong-a";
        wrong[6] = (char)('a' + i);
        ck_assert_int_eq(try(identity, wrong), AUTH_WRONG);
    }
    ck_assert_int_eq(try(identity, secret_ci), AUTH_LIMITED);
    ck_assert_int_eq(identity->state, AUTH_PENDING);
}
