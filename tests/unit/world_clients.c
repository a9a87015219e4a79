/* The clients of a world. */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/world.h"

static const struct request_limits limits = {
    .ttl_min_ms = 20,
    .ttl_max_ms = 60000,
    .hold_ttl_min_ms = 200,
    .key_prefix = "",
};

/* --- what they say --- */

static void send_list(struct world *world, struct engine_client *client, const char *form,
                      va_list arguments)
{
    char line[LIMIT_LINE];
    struct request request;
    struct error error;
    int len = vsnprintf(line, sizeof(line), form, arguments);
    ck_assert_int_lt(len, LIMIT_LINE);
    ck_assert_int_eq(request_parse(line, (size_t)len, &limits, &request, &error), REQUEST_FINE);
    engine_submit(&world->engine, client, &request, world->now_ns);
}

void world_send_as(struct world *world, struct engine_client *client, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    send_list(world, client, form, arguments);
    va_end(arguments);
}

void world_send(struct world *world, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    send_list(world, &world->client, form, arguments);
    va_end(arguments);
}

void world_say(struct world *world, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    send_list(world, &world->client, form, arguments);
    va_end(arguments);
    world_settle(world);
}

const char *world_ask(struct world *world, const char *form, ...)
{
    unsigned before = world->reply_count;
    va_list arguments;
    va_start(arguments, form);
    send_list(world, &world->client, form, arguments);
    va_end(arguments);
    world_settle(world);
    if (world->reply_count == before)
        world_pass_ms(world, 50);
    ck_assert_uint_eq(world->reply_count, before + 1);
    return world->replies[before];
}

/* --- what they hear --- */

const char *world_next_reply(struct world *world)
{
    return world->replies_read < world->reply_count ? world->replies[world->replies_read++] : NULL;
}

const char *world_heard(struct world *world)
{
    const char *reply = world_next_reply(world);
    return reply != NULL ? reply : "(nothing)";
}

void world_expect(struct world *world, const char *form, ...)
{
    char reply[LIMIT_REPLY];
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(reply, sizeof(reply), form, arguments);
    va_end(arguments);
    ck_assert_str_eq(world_heard(world), reply);
}

bool world_granted(const char *reply)
{
    return strncmp(reply, "OK ", 3) == 0;
}

const char *world_token(const char *line)
{
    static char token[LIMIT_TOKEN + 1];
    ck_assert_msg(world_granted(line), "not granted: %s", line);
    memcpy(token, line + 3, LIMIT_TOKEN);
    return token;
}

const char *world_expect_grant(struct world *world, const char *tag)
{
    char start[40];
    const char *reply = world_heard(world);
    size_t len = (size_t)snprintf(start, sizeof(start), "#%s ", tag);
    ck_assert_msg(strncmp(reply, start, len) == 0, "not for %s: %s", tag, reply);
    return world_token(reply + len);
}

/* --- how they leave --- */

void world_end_client(struct world *world, struct engine_client *client)
{
    engine_client_end(&world->engine, client, ENGINE_HALF_CLOSED, world->now_ns);
    world_lose_client(world, client);
}

void world_lose_client(struct world *world, struct engine_client *client)
{
    client->gone = true;
    engine_client_end(&world->engine, client, ENGINE_GONE, world->now_ns);
    engine_client_init(client, client->id);
}
