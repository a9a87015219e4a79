#include "config/diff.h"

#include <assert.h>
#include <string.h>

#include "config/keys.h"
#include "config/listens.h"
#include "config/nodes.h"

/* Add each key once, even if several entries of a list differ in it. */
static void add(struct config_diff *diff, const struct key *key)
{
    bool fixed = key->fixed[0] != '\0';
    for (size_t i = 0; i < diff->count; i++)
        if (diff->found[i].name == key->name)
            return;
    assert(diff->count < CONFIG_DIFF_MAX);
    diff->found[diff->count++] = (struct config_difference){key->name, fixed ? key->fixed : NULL};
    diff->refused += fixed;
}

static void compare(const struct key *keys, const void *running, const void *wanted,
                    struct config_diff *diff)
{
    for (; keys->name != NULL; keys++)
        if (!keys_equal(keys, running, wanted))
            add(diff, keys);
}

void config_diff(const struct config *running, const struct config *wanted,
                 struct config_diff *diff)
{
    *diff = (struct config_diff){.count = 0};
    compare(config_keys, running, wanted, diff);
    for (size_t i = 0; i < running->listen_count; i++) {
        const struct config_listen *listen = &running->listens[i];
        const struct config_listen *other = listens_find(wanted, &listen->address);
        if (other != NULL)
            compare(listens_keys, listen, other, diff);
    }
    for (unsigned i = 0; i < running->node_count; i++) {
        unsigned other = nodes_find(wanted, running->nodes[i].name);
        if (other < wanted->node_count)
            compare(nodes_keys, &running->nodes[i], &wanted->nodes[other], diff);
    }
}

static void swap_field(void *a, void *b, size_t size)
{
    unsigned char kept[sizeof(int64_t)];
    assert(size <= sizeof(kept));
    memcpy(kept, a, size);
    memcpy(a, b, size);
    memcpy(b, kept, size);
}

static void swap(const struct key *keys, void *running, void *wanted)
{
    for (; keys->name != NULL; keys++)
        if (keys->size > 0 && keys->fixed[0] == '\0')
            swap_field(keys_field(keys, running), keys_field(keys, wanted), keys->size);
}

void config_adopt(struct config *running, struct config *wanted)
{
    struct config_diff diff;
    config_diff(running, wanted, &diff);
    assert(diff.refused == 0);
    swap(config_keys, running, wanted);
    swap_field(&running->users, &wanted->users, sizeof(wanted->users));
    swap_field(&running->listens, &wanted->listens, sizeof(wanted->listens));
    swap_field(&running->listen_count, &wanted->listen_count, sizeof(wanted->listen_count));
    for (unsigned i = 0; i < running->node_count; i++)
        swap(nodes_keys, &running->nodes[i],
             &wanted->nodes[nodes_find(wanted, running->nodes[i].name)]);
}
