/*
 * engine/locks/resource.h: the state of a resource, and its key on the masters.
 */
#include <string.h>

#include "engine/locks/resource.h"
#include "tests/runner.h"

static const struct engine_rules rules = {.round = {.node_count = 3, .quorum = 2}};
static struct resources resources;

static void begin(const char *prefix)
{
    ck_assert(resources_init(&resources, 10, prefix, strlen(prefix), 1));
}

static struct resource *take(const char *name)
{
    struct resource *resource = resource_take(&resources, &rules, 1, name, strlen(name));
    ck_assert_ptr_nonnull(resource);
    return resource;
}

static const struct resource *find_key(const char *key)
{
    return resource_find_key(&resources, key, strlen(key));
}

TEST(key_is_the_prefix_and_the_name)
{
    begin("p:");
    struct resource *resource = take("a/b");
    ck_assert_uint_eq(resource->key.len, 5);
    ck_assert_mem_eq(resource->key.bytes, "p:a/b", 5);
    ck_assert_uint_eq(resource->name_len, 3);
    ck_assert_mem_eq(resource->name, "a/b", 3);
    ck_assert_ptr_eq(take("a/b"), resource);
    ck_assert_ptr_eq(resource_find(&resources, "a/b", 3), resource);
    ck_assert_ptr_null(resource_find(&resources, "p:a/b", 5));
    resources_deinit(&resources);
}

TEST(key_without_the_prefix_is_no_resource)
{
    begin("p:");
    struct resource *resource = take("a");
    ck_assert_ptr_eq(find_key("p:a"), resource);
    ck_assert_ptr_null(find_key("q:a"));
    ck_assert_ptr_null(find_key("p:b"));
    ck_assert_ptr_null(find_key("a"));
    ck_assert_ptr_null(find_key("p:"));
    ck_assert_ptr_null(find_key(""));
    resources_deinit(&resources);
}

TEST(key_is_the_name_without_a_prefix)
{
    begin("");
    struct resource *resource = take("a");
    ck_assert_ptr_eq(find_key("a"), resource);
    ck_assert_ptr_null(find_key(""));
    ck_assert_uint_eq(resource->key.len, 1);
    resources_deinit(&resources);
}

TEST(longest_prefix_and_longest_name_fit)
{
    char prefix[LIMIT_KEY_PREFIX + 1] = {0};
    char name[LIMIT_RESOURCE + 1] = {0};
    memset(prefix, 'p', LIMIT_KEY_PREFIX);
    memset(name, 'n', LIMIT_RESOURCE);
    begin(prefix);
    struct resource *resource = take(name);
    ck_assert_uint_eq(resource->key.len, LIMIT_KEY);
    ck_assert_mem_eq(resource->key.bytes, prefix, LIMIT_KEY_PREFIX);
    ck_assert_mem_eq(resource->key.bytes + LIMIT_KEY_PREFIX, name, LIMIT_RESOURCE);
    resources_deinit(&resources);
}

/* The first sweep keeps the resource because a probe is in flight. The second one keeps it because
 * nothing has noted it as idle since. The third one frees it. */
TEST(idle_resource_is_freed_by_the_next_sweep)
{
    begin("p:");
    struct resource *resource = take("a");
    struct flight_keys idle = SLIST_HEAD_INITIALIZER(idle);
    resource->key.key_probes = 1;
    flight_note_idle(&idle, &resource->key);
    resources_sweep(&resources, &idle);
    ck_assert_ptr_eq(find_key("p:a"), resource);
    resource->key.key_probes = 0;
    resources_sweep(&resources, &idle);
    ck_assert_ptr_eq(find_key("p:a"), resource);
    flight_note_idle(&idle, &resource->key);
    flight_note_idle(&idle, &resource->key);
    ck_assert_ptr_eq(find_key("p:a"), resource);
    resources_sweep(&resources, &idle);
    ck_assert_ptr_null(find_key("p:a"));
    ck_assert(TAILQ_EMPTY(&resources.all));
    resources_deinit(&resources);
}
