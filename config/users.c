#include "config/users.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/acl.h"
#include "config/config.h"
#include "config/keys.h"
#include "config/memory.h"
#include "config/secret.h"
#include "config/value.h"
#include "protocol/suggest.h"

static const char example[] =
    "{name: ci, secret_file: /etc/redlockd/ci.secret, resources: [\"ci:\"]}";

/* --- authentication --- */

/* The error of a secret, or NULL. Errors never quote the secret. */
static const char *check_secret(const char *secret)
{
    size_t len = strlen(secret);
    if (len < LIMIT_SECRET_MIN)
        return "is shorter than 16 bytes and can be guessed; create one with: openssl rand -hex 32";
    if (len > LIMIT_SECRET)
        return "is longer than 256 bytes; create one with: openssl rand -hex 32";
    if (value_has_space(secret))
        return "contains a space or a control character, which AUTH cannot carry; create one with: "
               "openssl rand -hex 32";
    return NULL;
}

static bool add_uid(const char *text, void *target, struct error *error)
{
    struct config_user *user = target;
    if (!value_user(text, &user->uids[user->uid_count]))
        return error_set(error, "is not a user of this host; write the name or number of a user");
    user->uid_count++;
    return true;
}

static bool add_gid(const char *text, void *target, struct error *error)
{
    struct config_user *user = target;
    if (!value_group(text, &user->gids[user->gid_count]))
        return error_set(error, "is not a group of this host; write the name or number of a group");
    user->gid_count++;
    return true;
}

/* --- permissions --- */

static void set_prefix(struct config_user *user, const struct yaml_node *value,
                       struct report *report)
{
    const char *text = value->text;
    if (user->prefix_count == LIMIT_USER_PREFIXES)
        report_error(report, value->position, "auth.users.resources: more than %d; leave some out",
                     LIMIT_USER_PREFIXES);
    else if (strlen(text) > LIMIT_RESOURCE || strchr(text, '*') != NULL || value_has_space(text))
        report_error(report, value->position,
                     "auth.users.resources: \"%s\" is not a prefix of resource names; write "
                     "\"ci:\" for all that begin with ci:, \"\" for all",
                     text);
    else
        user->prefixes[user->prefix_count++] = memory_copy(text);
}

static void set_resources(void *target, const struct yaml_node *list, struct report *report)
{
    for (const struct yaml_node *value = list->children; value != NULL; value = value->next) {
        /* A missing value must not count as the empty prefix, which allows all resources. */
        if (yaml_node_is_empty(value))
            report_error(report, value->position,
                         "auth.users.resources: has no value; write \"\" for all resources");
        else if (keys_check_kind(value, YAML_SCALAR, "auth.users.resources", NULL, report))
            set_prefix(target, value, report);
    }
}

static const struct {
    const char *word;
    uint32_t verbs;
} permissions[] = {
#define X(verb, word) {word, ACL_BIT(verb)},
    ACL_TABLE(X)
#undef X
        {"all", ACL_GRANTABLE}};

enum { PERMISSIONS = sizeof(permissions) / sizeof(permissions[0]) };

static bool add_verb(const char *text, void *target, struct error *error)
{
    struct config_user *user = target;
    const char *words[PERMISSIONS + 1] = {NULL};
    char list[160] = "";
    for (size_t i = 0; i < PERMISSIONS; i++) {
        size_t len = strlen(list);
        words[i] = permissions[i].word;
        snprintf(list + len, sizeof(list) - len, "%s%s", i > 0 ? ", " : "", words[i]);
        if (strcasecmp(text, words[i]) != 0)
            continue;
        user->verbs |= permissions[i].verbs;
        return true;
    }
    const char *meant = suggest_nearest(text, words);
    return meant != NULL ? error_set(error, "is not a verb; did you mean %s?", meant)
                         : error_set(error, "is not one of %s", list);
}

/* --- one entry --- */

/* These keys have no rule for reloads, since a reload compares auth.users as a whole. */
static const struct key keys[] = {
    {"auth.users.name", KEY_NAME, NULL, KEY_AT(struct config_user, name), .least = 1,
     .most = LIMIT_USER_NAME, .missing = example},
    {"auth.users.secret_file", KEY_SECRET, NULL, KEY_AT(struct config_user, secret)},
    {"auth.users.uids", KEY_WORDS, NULL, .most = LIMIT_USER_IDS, .many = "use a group",
     .parse = add_uid},
    {"auth.users.gids", KEY_WORDS, NULL, .most = LIMIT_USER_IDS,
     .many = "list the rest with another user", .parse = add_gid},
    {"auth.users.resources", KEY_LIST, NULL, .read = set_resources},
    {"auth.users.verbs", KEY_WORDS, NULL, .parse = add_verb},
    {.name = NULL},
};

static void read_one(struct config_user *user, struct yaml_node *entry, struct report *report)
{
    if (!keys_check_entry(entry, "auth.users", example, report))
        return;
    keys_read(keys, "auth.users", entry, user, report);
    const struct yaml_node *verbs = yaml_node_child(entry, "verbs");
    if (verbs == NULL)
        user->verbs = ACL_USUAL;
    else if (verbs->kind == YAML_SEQUENCE && verbs->children == NULL)
        report_error(report, verbs->position,
                     "auth.users.verbs: the list is empty; leave it out for lock, unlock, extend, "
                     "status and locks");
    const struct yaml_node *secret = yaml_node_child(entry, "secret_file");
    const char *wrong = user->secret != NULL ? check_secret(user->secret) : NULL;
    if (wrong != NULL)
        report_error(report, secret->position, "auth.users.secret_file: %s %s", secret->text,
                     wrong);
    const struct yaml_node *uids = yaml_node_child(entry, "uids");
    const struct yaml_node *gids = yaml_node_child(entry, "gids");
    if (secret == NULL && (uids == NULL || uids->children == NULL) &&
        (gids == NULL || gids->children == NULL))
        report_error(report, entry->position,
                     "auth.users: no client can authenticate as this user; set secret_file, or "
                     "uids or gids for unix sockets");
    const struct yaml_node *resources = yaml_node_child(entry, "resources");
    if ((user->verbs & ACL_ABOUT_RESOURCES) == 0)
        return;
    if (resources == NULL)
        report_error(report, entry->position,
                     "auth.users.resources: missing; write [\"ci:\"] for all that begin with ci:, "
                     "[\"\"] for all");
    else if (resources->kind == YAML_SEQUENCE && resources->children == NULL)
        report_error(report, resources->position,
                     "auth.users.resources: the list is empty; write [\"ci:\"] for all that begin "
                     "with ci:, [\"\"] for all");
}

/* --- the list --- */

/* No uid or gid is allowed to identify two users, since a connection belongs to only one user. */
static void check_ids(const uint32_t *ids, size_t count, const uint32_t *others, size_t other_count,
                      size_t line, const struct yaml_node *list, struct report *report)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < other_count; j++)
            if (ids[i] == others[j]) {
                report_error(report, list->position,
                             "auth.users.%s: %u already identifies the user in line %zu; each id "
                             "can identify only one user",
                             list->key->text, ids[i], line);
                return;
            }
}

static void check_new(const struct config_users *users, size_t index, const struct yaml_node *list,
                      const struct yaml_node *entry, struct report *report)
{
    const struct config_user *user = &users->list[index];
    const struct yaml_node *place = list->children;
    for (size_t i = 0; i < index; i++, place = place->next) {
        const struct config_user *other = &users->list[i];
        if (user->name != NULL && other->name != NULL && strcmp(user->name, other->name) == 0)
            report_error(report, yaml_node_child(entry, "name")->position,
                         "auth.users.name: %s is already the name of the user in line %zu; give "
                         "each its own",
                         user->name, place->position.line);
        const struct yaml_node *secret_file = yaml_node_child(entry, "secret_file");
        if (user->secret != NULL && other->secret != NULL &&
            strcmp(user->secret, other->secret) == 0)
            report_error(report, secret_file->position,
                         "auth.users.secret_file: %s contains the same secret as that of the user "
                         "in line %zu; a secret must identify one user, so create another with: "
                         "openssl rand -hex 32",
                         secret_file->text, place->position.line);
        check_ids(user->uids, user->uid_count, other->uids, other->uid_count, place->position.line,
                  yaml_node_child(entry, "uids"), report);
        check_ids(user->gids, user->gid_count, other->gids, other->gid_count, place->position.line,
                  yaml_node_child(entry, "gids"), report);
    }
}

void users_read(void *target, const struct yaml_node *list, struct report *report)
{
    struct config *config = target;
    struct config_users *users = memory_zeroed(1, sizeof(*users));
    config->users = users;
    users->list = memory_zeroed(LIMIT_USERS, sizeof(*users->list));
    if (list->children == NULL)
        report_error(report, list->position,
                     "auth.users: the list is empty; write at least one, like %s", example);
    for (struct yaml_node *entry = list->children; entry != NULL; entry = entry->next) {
        size_t index = users->count;
        if (index == LIMIT_USERS) {
            report_error(report, entry->position, "auth.users: more than %d; leave some out",
                         LIMIT_USERS);
            break;
        }
        users->count++;
        read_one(&users->list[index], entry, report);
        check_new(users, index, list, entry, report);
    }
}

void users_check_secrets(const struct config_users *users, const struct yaml_node *list,
                         struct report *report)
{
    const struct yaml_node *entry = list->children;
    for (size_t i = 0; i < users->count; i++, entry = entry->next) {
        const struct config_user *user = &users->list[i];
        if (user->uid_count + user->gid_count > 0 && yaml_node_child(entry, "secret_file") == NULL)
            report_error(report, entry->position,
                         "auth.users: no client can authenticate as this user, since listen has no "
                         "unix socket; add one, or set secret_file");
    }
}

void users_free(struct config_users *users)
{
    if (users == NULL)
        return;
    for (size_t i = 0; i < users->count; i++) {
        struct config_user *user = &users->list[i];
        free(user->name);
        secret_free(user->secret);
        for (size_t j = 0; j < user->prefix_count; j++)
            free(user->prefixes[j]);
    }
    free(users->list);
    free(users);
}

/* --- two configurations --- */

static bool same_user(const struct config_user *a, const struct config_user *b)
{
    bool same = value_same_text(a->name, b->name) && value_same_text(a->secret, b->secret) &&
                a->verbs == b->verbs && a->uid_count == b->uid_count &&
                a->gid_count == b->gid_count && a->prefix_count == b->prefix_count &&
                memcmp(a->uids, b->uids, a->uid_count * sizeof(a->uids[0])) == 0 &&
                memcmp(a->gids, b->gids, a->gid_count * sizeof(a->gids[0])) == 0;
    for (size_t i = 0; same && i < a->prefix_count; i++)
        same = strcmp(a->prefixes[i], b->prefixes[i]) == 0;
    return same;
}

/* same_user() must compare every field. */
_Static_assert(sizeof(struct config_user) == sizeof(struct {
                   char *name;
                   char *secret;
                   uid_t uids[LIMIT_USER_IDS];
                   gid_t gids[LIMIT_USER_IDS];
                   char *prefixes[LIMIT_USER_PREFIXES];
                   size_t uid_count;
                   size_t gid_count;
                   size_t prefix_count;
                   uint32_t verbs;
               }),
               "does a reload see the new field of config_user?");

bool users_equal(const struct config *a, const struct config *b)
{
    const struct config_users *one = a->users;
    const struct config_users *other = b->users;
    if (one == NULL || other == NULL)
        return one == other;
    bool equal = one->count == other->count;
    for (size_t i = 0; equal && i < one->count; i++)
        equal = same_user(&one->list[i], &other->list[i]);
    return equal;
}
