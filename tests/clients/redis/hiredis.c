/*
 * The scenario of tests/clients/test_redis_clients.py with hiredis 0.14, which speaks RESP2.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 64 };

static void expect(int condition, const char *what)
{
    if (condition)
        return;
    printf("failed: %s\n", what);
    exit(1);
}
#define EXPECT(condition) expect((condition), #condition)

static void ok(const char *step)
{
    printf("ok %s\n", step);
    fflush(stdout);
}

static redisReply *authenticate(redisContext *context, const char *secret)
{
    EXPECT(context != NULL && context->err == 0);
    redisReply *reply = redisCommand(context, "AUTH app %s", secret);
    EXPECT(reply != NULL);
    return reply;
}

static redisContext *open_context(void)
{
    return redisConnect(getenv("HOST"), atoi(getenv("PORT")));
}

static redisContext *connect_as_app(void)
{
    redisContext *context = open_context();
    redisReply *reply = authenticate(context, getenv("SECRET"));
    EXPECT(reply->type == REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    return context;
}

/* Whether the reply is an array that begins with this outcome. */
static int has_outcome(const redisReply *reply, const char *outcome)
{
    return reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements > 1 &&
           strcmp(reply->element[0]->str, outcome) == 0;
}

/* Sends LOCK, which must be granted. Returns the fence, or 0, and the token. */
static long long lock(redisContext *context, const char *words, char *token)
{
    char command[128];
    snprintf(command, sizeof(command), "LOCK %s", words);
    redisReply *reply = redisCommand(context, command);
    EXPECT(has_outcome(reply, "OK"));
    EXPECT(reply->elements == 5);
    EXPECT(reply->element[1]->len == 40);
    EXPECT(reply->element[2]->type == REDIS_REPLY_INTEGER);
    EXPECT(reply->element[3]->type == REDIS_REPLY_INTEGER);
    long long fence = 0;
    if (reply->element[4]->type != REDIS_REPLY_NIL)
        fence = reply->element[4]->integer;
    snprintf(token, 41, "%s", reply->element[1]->str);
    freeReplyObject(reply);
    return fence;
}

static void expect_status(redisContext *context, const char *status, const char *verb,
                          const char *resource, const char *token)
{
    redisReply *reply = redisCommand(context, "%s %s %s", verb, resource, token);
    EXPECT(reply != NULL && reply->type == REDIS_REPLY_STATUS);
    EXPECT(strcmp(reply->str, status) == 0);
    freeReplyObject(reply);
}

static void expect_error(redisContext *context, const char *text, const char *command)
{
    redisReply *reply = redisCommand(context, command);
    EXPECT(reply != NULL && reply->type == REDIS_REPLY_ERROR);
    EXPECT(strstr(reply->str, text) != NULL);
    freeReplyObject(reply);
}

static void expect_outcome(redisContext *context, const char *outcome, const char *command)
{
    redisReply *reply = redisCommand(context, command);
    EXPECT(has_outcome(reply, outcome));
    freeReplyObject(reply);
}

static void run_locks(redisContext *a, redisContext *b)
{
    char token[41];
    EXPECT(lock(a, "x 30s", token) == 0);
    ok("lock");
    expect_outcome(b, "HELD", "LOCK x 30s");
    ok("exclusion");
    redisReply *reply = redisCommand(a, "EXTEND x %s 40s", token);
    EXPECT(has_outcome(reply, "OK") && strcmp(reply->element[1]->str, token) == 0);
    freeReplyObject(reply);
    ok("extend");
    expect_status(a, "OK", "UNLOCK", "x", token);
    expect_status(a, "GONE", "UNLOCK", "x", token);
    ok("unlock");
    lock(a, "x 2s", token);
    lock(b, "x 30s WAIT 30s", token);
    ok("wait");
    long long fence = lock(a, "f 30s FENCE", token);
    expect_status(a, "OK", "UNLOCK", "f", token);
    EXPECT(fence > 0 && lock(a, "f 30s FENCE", token) > fence);
    ok("fence");
}

static void run_errors(redisContext *context)
{
    expect_error(context, "ERR ttl-range TTL 1ms must be between", "LOCK x 1ms");
    ok("error");
    expect_error(context, "NOPERM", "BREAK x");
    ok("denied");
    expect_error(context, "send HELLO 3 first", "LOCK h 3s HOLD");
    ok("hold");
    redisContext *stranger = open_context();
    redisReply *reply = authenticate(stranger, "wrong");
    EXPECT(reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "WRONGPASS", 9) == 0);
    freeReplyObject(reply);
    redisFree(stranger);
    ok("secret");
}

static void run_many(redisContext *context)
{
    for (int i = 0; i < MANY; i++)
        EXPECT(redisAppendCommand(context, "LOCK many:%d 30s", i) == REDIS_OK);
    for (int i = 0; i < MANY; i++) {
        redisReply *reply = NULL;
        EXPECT(redisGetReply(context, (void **)&reply) == REDIS_OK);
        EXPECT(has_outcome(reply, "OK"));
        freeReplyObject(reply);
    }
    ok("many");
}

static void run_listing(redisContext *context)
{
    redisReply *reply = redisCommand(context, "NODES");
    EXPECT(reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 3);
    int votes = 0;
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *node = reply->element[i];
        for (size_t j = 0; j < node->elements; j += 2)
            if (strcmp(node->element[j]->str, "vote") == 0)
                votes += strcmp(node->element[j + 1]->str, "yes") == 0;
    }
    EXPECT(votes == 3);
    freeReplyObject(reply);
    ok("listing");
}

/* hiredis does not connect again by itself. */
static void run_restart(redisContext *context)
{
    char token[41];
    char line[32];
    lock(context, "kept 50s", token);
    puts("restart");
    fflush(stdout);
    EXPECT(fgets(line, sizeof(line), stdin) != NULL && strcmp(line, "restarted\n") == 0);
    EXPECT(redisCommand(context, "STATUS kept") == NULL);
    EXPECT(redisReconnect(context) == REDIS_OK);
    freeReplyObject(authenticate(context, getenv("SECRET")));
    expect_outcome(context, "HELD", "STATUS kept");
    expect_status(context, "OK", "UNLOCK", "kept", token);
    ok("reconnect");
}

int main(void)
{
    redisContext *a = connect_as_app();
    redisContext *b = connect_as_app();
    run_locks(a, b);
    run_errors(a);
    run_many(a);
    run_listing(a);
    run_restart(a);
    redisFree(a);
    redisFree(b);
    return 0;
}
