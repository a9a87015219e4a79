#include "server/clients/users.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

/* The digest of a secret: see users.h. False if OpenSSL has no memory. */
static bool digest(const struct users *users, const char *secret, size_t len,
                   unsigned char to[USERS_DIGEST])
{
    unsigned int digest_len = USERS_DIGEST;
    return HMAC(EVP_sha256(), users->key, sizeof(users->key), (const unsigned char *)secret, len,
                to, &digest_len) != NULL &&
           digest_len == USERS_DIGEST;
}

bool users_init(struct users *users, const struct config_users *config, const void *key)
{
    *users = (struct users){.count = config->count};
    users->list = calloc(config->count > 0 ? config->count : 1, sizeof(*users->list));
    if (users->list == NULL)
        return false;
    memcpy(users->key, key, sizeof(users->key));
    for (size_t i = 0; i < config->count; i++) {
        const struct config_user *from = &config->list[i];
        struct user *user = &users->list[i];
        user->config = from;
        user->acl = (struct acl){
            .known = true,
            .verbs = from->verbs,
            .prefixes = (const char *const *)from->prefixes,
            .prefix_count = from->prefix_count,
        };
        user->has_secret = from->secret != NULL;
        if (user->has_secret && !digest(users, from->secret, strlen(from->secret), user->digest)) {
            users_deinit(users);
            return false;
        }
    }
    return true;
}

void users_deinit(struct users *users)
{
    if (users->list != NULL)
        OPENSSL_cleanse(users->list, users->count * sizeof(*users->list));
    free(users->list);
    OPENSSL_cleanse(users, sizeof(*users));
}

const struct user *users_by_secret(const struct users *users, const char *secret, size_t len,
                                   uint64_t *fingerprint)
{
    unsigned char presented[USERS_DIGEST];
    size_t found = 0; /* index of the user plus 1; 0: none */
    *fingerprint = 1;
    if (!digest(users, secret, len, presented))
        return NULL;
    for (size_t i = 0; i < users->count; i++) {
        const struct user *user = &users->list[i];
        size_t same = CRYPTO_memcmp(presented, user->digest, USERS_DIGEST) == 0;
        same &= user->has_secret;
        /* The mask is all ones for an equal digest, so no branch depends on the secret. */
        found |= (i + 1) & (0 - same);
    }
    memcpy(fingerprint, presented, sizeof(*fingerprint));
    *fingerprint |= 1;
    OPENSSL_cleanse(presented, sizeof(presented));
    return found != 0 ? &users->list[found - 1] : NULL;
}

const struct user *users_by_name(const struct users *users, const char *name)
{
    for (size_t i = 0; i < users->count; i++)
        if (strcmp(users->list[i].config->name, name) == 0)
            return &users->list[i];
    return NULL;
}

static bool is_among(const uint32_t *ids, size_t count, uint32_t id)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

const struct user *users_by_ids(const struct users *users, uid_t uid, const gid_t *gids,
                                size_t gid_count)
{
    for (size_t i = 0; i < users->count; i++) {
        const struct config_user *user = users->list[i].config;
        if (is_among(user->uids, user->uid_count, uid))
            return &users->list[i];
    }
    for (size_t i = 0; i < gid_count; i++)
        for (size_t j = 0; j < users->count; j++) {
            const struct config_user *user = users->list[j].config;
            if (is_among(user->gids, user->gid_count, gids[i]))
                return &users->list[j];
        }
    return NULL;
}
