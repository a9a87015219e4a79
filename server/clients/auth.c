#include "server/clients/auth.h"

#include <string.h>

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "config/config.h"
#include "server/random.h"

static const char *const everything[] = {""};

/* The rights of every connection if no users are configured. Only the owner may use BREAK, which
 * takes a lock from its holder. The owner is root or the user that the daemon runs as. */
static struct acl default_acl(bool owner)
{
    struct acl acl = {
        .known = true, .verbs = ACL_GRANTABLE, .prefixes = everything, .prefix_count = 1};
    if (!owner)
        acl.verbs &= ~ACL_BIT(VERB_BREAK);
    return acl;
}

static struct acl acl_of(const struct auth_identity *identity)
{
    if (identity->state == AUTH_OPEN)
        return default_acl(identity->peer == PEER_OWNER);
    return identity->user != NULL ? identity->user->acl : (struct acl){.known = false};
}

static void set_state(struct auth *auth, struct auth_identity *identity, enum auth_state state,
                      const struct user *user)
{
    assert((user != NULL) == (state == AUTH_BY_SOCKET || state == AUTH_BY_SECRET));
    if (identity->state == AUTH_PENDING) {
        assert(auth->pending_count > 0);
        TAILQ_REMOVE(&auth->pending, identity, entry);
        auth->pending_count--;
        if (auth->pending_count <= auth->config->limits.unauthenticated / 2)
            auth->full_logged = false;
    }
    identity->state = state;
    identity->user = user;
    identity->acl = acl_of(identity);
    if (state == AUTH_PENDING) {
        TAILQ_INSERT_TAIL(&auth->pending, identity, entry);
        auth->pending_count++;
    }
}

/* --- the user of a unix socket --- */

/* Find the configured user by the user and groups that the kernel reports for the socket's peer. */
static const struct user *find_by_socket(const struct auth *auth,
                                         const struct auth_identity *identity)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    socklen_t groups_len = NGROUPS_MAX * sizeof(gid_t);
    if (identity->peer == PEER_TCP ||
        getsockopt(identity->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
        return NULL;
    gid_t *gids = malloc(sizeof(*gids) + groups_len);
    if (gids == NULL)
        return NULL;
    gids[0] = peer.gid;
    if (getsockopt(identity->fd, SOL_SOCKET, SO_PEERGROUPS, gids + 1, &groups_len) != 0)
        groups_len = 0;
    size_t count = 1 + groups_len / sizeof(*gids);
    const struct user *user = users_by_ids(&auth->users, peer.uid, gids, count);
    free(gids);
    return user;
}

bool auth_identify(struct auth *auth, struct auth_identity *identity)
{
    assert(identity->state == AUTH_NONE);
    if (auth->open) {
        set_state(auth, identity, AUTH_OPEN, NULL);
        return true;
    }
    const struct user *user = find_by_socket(auth, identity);
    if (user != NULL)
        set_state(auth, identity, AUTH_BY_SOCKET, user);
    return user != NULL;
}

/* --- pending --- */

bool auth_is_full(const struct auth *auth)
{
    return auth->pending_count >= auth->config->limits.unauthenticated;
}

void auth_await(struct auth *auth, struct auth_identity *identity, int64_t now_ns)
{
    assert(identity->state == AUTH_NONE);
    identity->pending_since_ns = now_ns;
    set_state(auth, identity, AUTH_PENDING, NULL);
}

void auth_leave(struct auth *auth, struct auth_identity *identity)
{
    set_state(auth, identity, AUTH_NONE, NULL);
}

struct auth_identity *auth_oldest(const struct auth *auth)
{
    return TAILQ_FIRST(&auth->pending);
}

int64_t auth_deadline_ns(const struct auth *auth)
{
    const struct auth_identity *oldest = auth_oldest(auth);
    return oldest != NULL ? oldest->pending_since_ns + auth->config->limits.auth_timeout_ns
                          : INT64_MAX;
}

bool auth_displace(struct auth *auth)
{
    bool news = !auth->full_logged;
    auth->full_logged = true;
    auth->displaced++;
    return news;
}

/* --- AUTH --- */

static bool is_named(const struct user *user, const struct auth_credentials *credentials)
{
    const char *name = user->config->name;
    return credentials->name == NULL ||
           (strlen(name) == credentials->name_len &&
            memcmp(name, credentials->name, credentials->name_len) == 0);
}

enum auth_result auth_try(struct auth *auth, struct auth_identity *identity,
                          const struct auth_credentials *credentials, int64_t now_ns,
                          enum auth_throttle_news *news)
{
    uint64_t fingerprint;
    if (auth->open)
        return AUTH_IGNORED;
    if (identity->state == AUTH_BY_SECRET && !credentials->may_repeat)
        return AUTH_AGAIN;
    if (auth_throttle_wait_ns(&auth->auth_throttle, &identity->client_address, now_ns) > 0)
        return AUTH_LIMITED;
    const struct user *user =
        users_by_secret(&auth->users, credentials->secret, credentials->secret_len, &fingerprint);
    if (user != NULL && is_named(user, credentials)) {
        if (identity->state == AUTH_BY_SECRET)
            return user == identity->user ? AUTH_IGNORED : AUTH_AGAIN;
        if (credentials->same_user && identity->user != NULL && user != identity->user)
            return AUTH_BOUND;
        set_state(auth, identity, AUTH_BY_SECRET, user);
        return AUTH_ACCEPTED;
    }
    auth->wrong++;
    *news =
        auth_throttle_note(&auth->auth_throttle, &identity->client_address, fingerprint, now_ns);
    return AUTH_WRONG;
}

/* --- the users --- */

static bool make_users(const struct auth *auth, struct users *users)
{
    unsigned char key[USERS_DIGEST];
    random_fill(auth->random, key, sizeof(key));
    return users_init(users, auth->config->users, key);
}

bool auth_init(struct auth *auth, const struct config *config, struct random *random)
{
    uint64_t seed;
    *auth = (struct auth){.config = config, .random = random, .open = config->users == NULL};
    TAILQ_INIT(&auth->pending);
    random_fill(random, &seed, sizeof(seed));
    auth_throttle_init(&auth->auth_throttle, seed);
    return auth->open || make_users(auth, &auth->users);
}

void auth_deinit(struct auth *auth)
{
    users_deinit(&auth->users);
}

bool auth_renew_users(struct auth *auth, struct users *before)
{
    struct users now = {0};
    if (auth->config->users != NULL && !make_users(auth, &now))
        return false;
    *before = auth->users;
    auth->users = now;
    auth->open = auth->config->users == NULL;
    return true;
}

bool auth_renew(struct auth *auth, struct auth_identity *identity)
{
    if (auth->open) {
        set_state(auth, identity, AUTH_OPEN, NULL);
        return true;
    }
    bool by_secret = identity->state == AUTH_BY_SECRET;
    const struct user *user = by_secret ? users_by_name(&auth->users, identity->user->config->name)
                                        : find_by_socket(auth, identity);
    if (user == NULL)
        return identity->state == AUTH_PENDING;
    if (by_secret && !user->has_secret)
        return false;
    set_state(auth, identity, by_secret ? AUTH_BY_SECRET : AUTH_BY_SOCKET, user);
    return true;
}
