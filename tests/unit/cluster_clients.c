/* Clients of a fake cluster: the requests they send and the replies they get. */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/cluster.h"

static const struct request_limits limits = {
    .ttl_min_ms = 20,
    .ttl_max_ms = 60000,
    .hold_ttl_min_ms = 200,
    .key_prefix = "",
};

/* --- requests --- */

static void send_list(struct cluster *cluster, struct engine_client *client, const char *form,
                      va_list arguments)
{
    char line[LIMIT_LINE];
    struct request request;
    struct error error;
    int len = vsnprintf(line, sizeof(line), form, arguments);
    ck_assert_int_lt(len, LIMIT_LINE);
    ck_assert_int_eq(request_parse(line, (size_t)len, &limits, &request, &error), REQUEST_FINE);
    engine_submit(&cluster->engine, client, &request, cluster->now_ns);
}

void cluster_send_as(struct cluster *cluster, struct engine_client *client, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    send_list(cluster, client, form, arguments);
    va_end(arguments);
}

void cluster_send(struct cluster *cluster, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    send_list(cluster, &cluster->client, form, arguments);
    va_end(arguments);
}

void cluster_submit(struct cluster *cluster, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    send_list(cluster, &cluster->client, form, arguments);
    va_end(arguments);
    cluster_settle(cluster);
}

const char *cluster_ask(struct cluster *cluster, const char *form, ...)
{
    unsigned before = cluster->reply_count;
    va_list arguments;
    va_start(arguments, form);
    send_list(cluster, &cluster->client, form, arguments);
    va_end(arguments);
    cluster_settle(cluster);
    if (cluster->reply_count == before)
        cluster_pass_ms(cluster, 50);
    ck_assert_uint_eq(cluster->reply_count, before + 1);
    return cluster->replies[before];
}

/* --- replies --- */

const char *cluster_next_reply(struct cluster *cluster)
{
    return cluster->replies_read < cluster->reply_count ? cluster->replies[cluster->replies_read++]
                                                        : NULL;
}

const char *cluster_take_reply(struct cluster *cluster)
{
    const char *reply = cluster_next_reply(cluster);
    return reply != NULL ? reply : "(nothing)";
}

void cluster_expect(struct cluster *cluster, const char *form, ...)
{
    char reply[LIMIT_REPLY];
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(reply, sizeof(reply), form, arguments);
    va_end(arguments);
    ck_assert_str_eq(cluster_take_reply(cluster), reply);
}

bool cluster_granted(const char *reply)
{
    return strncmp(reply, "OK ", 3) == 0;
}

const char *cluster_token(const char *line)
{
    static char token[LIMIT_TOKEN + 1];
    ck_assert_msg(cluster_granted(line), "not granted: %s", line);
    memcpy(token, line + 3, LIMIT_TOKEN);
    return token;
}

const char *cluster_expect_grant(struct cluster *cluster, const char *tag)
{
    char start[40];
    const char *reply = cluster_take_reply(cluster);
    size_t len = (size_t)snprintf(start, sizeof(start), "#%s ", tag);
    ck_assert_msg(strncmp(reply, start, len) == 0, "not for %s: %s", tag, reply);
    return cluster_token(reply + len);
}

/* --- disconnects --- */

void cluster_end_client(struct cluster *cluster, struct engine_client *client)
{
    engine_client_end(&cluster->engine, client, ENGINE_HALF_CLOSED, cluster->now_ns);
    cluster_lose_client(cluster, client);
}

void cluster_lose_client(struct cluster *cluster, struct engine_client *client)
{
    client->disconnected = true;
    engine_client_end(&cluster->engine, client, ENGINE_GONE, cluster->now_ns);
    engine_client_init(client, client->id);
}
