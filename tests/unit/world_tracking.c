#include "tests/unit/world_tracking.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/world_master.h"
#include "tests/unit/world_wire.h"

void world_track(struct world *world, unsigned node, const char *key)
{
    struct world_master *master = &world->masters[node];
    const struct world_key *now = world_find_key(world, node, key);
    struct world_tracked *slot = NULL;
    for (unsigned i = 0; i < WORLD_KEYS; i++)
        if (strcmp(master->tracked[i].key, key) == 0 ||
            (slot == NULL && master->tracked[i].key[0] == '\0'))
            slot = &master->tracked[i];
    ck_assert_ptr_nonnull(slot);
    snprintf(slot->key, sizeof(slot->key), "%s", key);
    snprintf(slot->value, sizeof(slot->value), "%s", now != NULL ? now->value : "");
    slot->expires_ns = now != NULL ? now->expires_ns : 0;
}

static bool has_changed(struct world *world, unsigned node, const struct world_tracked *tracked)
{
    const struct world_key *now = world_find_key(world, node, tracked->key);
    if (now == NULL)
        return tracked->value[0] != '\0';
    return strcmp(now->value, tracked->value) != 0 || now->expires_ns != tracked->expires_ns;
}

bool world_tell(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    bool told = false;
    for (unsigned i = 0; i < WORLD_KEYS && !master->hung && !master->dead; i++) {
        struct world_tracked *tracked = &master->tracked[i];
        struct redis_reply message = {.kind = RESP_ARRAY, .item_count = 3, .nested_count = 1};
        char key[64];
        if (tracked->key[0] == '\0' || !has_changed(world, node, tracked))
            continue;
        snprintf(key, sizeof(key), "%s", tracked->key);
        tracked->key[0] = '\0';
        message.items[0].kind = message.items[1].kind = RESP_STRING;
        message.items[0].str = "message";
        message.items[0].len = 7;
        message.items[2].kind = RESP_ARRAY;
        message.nested_str = key;
        message.nested_len = strlen(key);
        if (master->redirect == master->tracker.client_id)
            world_deliver(world, node, &master->tracker, message);
        told = true;
    }
    return told;
}

void world_untrack(struct world_master *master)
{
    master->redirect = 0;
    memset(master->tracked, 0, sizeof(master->tracked));
}
