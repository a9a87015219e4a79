#include "tests/e2e/master.h"

#include <check.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/waiting.h"

static void file_path(const struct master *master, const char *name, const char *ending, char *path)
{
    char file[64];
    snprintf(file, sizeof(file), "%s.%s", name, ending);
    sandbox_path(master->sandbox, file, path);
}

static void start(struct master *master)
{
    char port[16];
    char name[32];
    char log[SANDBOX_FILE];
    char dump[32];
    char aof[32];
    char tls_port[16];
    char certificate[SANDBOX_FILE] = "";
    char key[SANDBOX_FILE] = "";
    char ca[SANDBOX_FILE] = "";
    snprintf(tls_port, sizeof(tls_port), "%d", master->tls != NULL ? master->port : 0);
    if (master->tls != NULL) {
        file_path(master, master->tls->own, "crt", certificate);
        file_path(master, master->tls->own, "key", key);
        file_path(master, master->tls->ca, "crt", ca);
    }
    snprintf(aof, sizeof(aof), "master-%u.aof", master->index);
    snprintf(dump, sizeof(dump), "master-%u.rdb", master->index);
    snprintf(port, sizeof(port), "%d", master->over_tcp ? master->port : 0);
    snprintf(name, sizeof(name), "master-%u.out", master->index);
    sandbox_path(master->sandbox, name, log);
    /* No protected mode: the address is loopback, or unreachable for other hosts. jemalloc's thread
     * would spin once the shim has moved the clock. */
    const char *argv[] = {"redis-server",
                          "--bind",
                          master->host,
                          "--protected-mode",
                          "no",
                          "--port",
                          port,
                          "--unixsocket",
                          master->socket,
                          "--save",
                          "",
                          "--appendonly",
                          master->durable ? "yes" : "no",
                          "--appendfsync",
                          "always",
                          "--appenddirname",
                          aof,
                          "--dir",
                          master->sandbox->dir,
                          "--dbfilename",
                          dump,
                          "--repl-diskless-sync-delay",
                          "0",
                          "--loglevel",
                          "warning",
                          "--jemalloc-bg-thread",
                          "no",
                          "--tls-port",
                          tls_port,
                          "--tls-cert-file",
                          certificate,
                          "--tls-key-file",
                          key,
                          "--tls-ca-cert-file",
                          ca,
                          "--tls-auth-clients",
                          master->tls != NULL && master->tls->wants_client ? "yes" : "no",
                          NULL};
    master->pid = process_start(&(struct process_plan){
        .argv = argv,
        .errors = log,
        .environment = master->steppable ? master->clock.environment : NULL,
    });
}

void master_step(struct master *master, int64_t seconds)
{
    master_step_ms(master, seconds * 1000);
}

void master_step_ms(struct master *master, int64_t ms)
{
    ck_assert(master->steppable);
    master->ahead_ms += ms;
    clock_set_ms(&master->clock, master->ahead_ms);
}

/* True if our process answers and has loaded its data. Another process may have taken the port
 * first. */
static bool answers(struct master *master)
{
    struct timeval timeout = {.tv_sec = WAITING_DEADLINE_MS / 1000};
    redisContext *context = master->over_tcp
                                ? redisConnectWithTimeout(master->host, master->port, timeout)
                                : redisConnectUnixWithTimeout(master->socket, timeout);
    ck_assert_ptr_nonnull(context);
    char field[32];
    snprintf(field, sizeof(field), "process_id:%d\r", (int)master->pid);
    bool is_ours = false;
    if (context->err == 0 && redisSetTimeout(context, timeout) == REDIS_OK) {
        redisReply *reply = redisCommand(context, "INFO");
        is_ours = reply != NULL && reply->type == REDIS_REPLY_STRING &&
                  strstr(reply->str, field) != NULL && strstr(reply->str, "\nloading:0") != NULL;
        freeReplyObject(reply);
    }
    if (is_ours)
        master->context = context;
    else
        redisFree(context);
    return is_ours;
}

/* Waits until the process answers. If it has ended instead, another program has taken its port. The
 * master is then started again, on a new port if may_move. */
static void wait_ready(struct master *master, bool may_move)
{
    struct waiting waiting = waiting_for("a redis-server to answer");
    int status;
    while (!answers(master)) {
        if (process_ended(master->pid, &status)) {
            if ((master->over_tcp || master->tls != NULL) && may_move)
                master->port = port_free();
            start(master);
        }
        waiting_pause(&waiting);
    }
}

void masters_start(struct master *masters, unsigned count, const struct sandbox *sandbox,
                   const struct master_plan *plan)
{
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "master-%u", plan->first + i);
        masters[i] = (struct master){.sandbox = sandbox,
                                     .index = plan->first + i,
                                     .over_tcp = plan->over_tcp,
                                     .steppable = plan->steppable,
                                     .durable = plan->durable,
                                     .tls = plan->tls};
        if (plan->steppable)
            clock_open(&masters[i].clock, sandbox, name);
        sandbox_path(sandbox, name, masters[i].socket);
        if (plan->network != NULL)
            snprintf(masters[i].host, MASTER_HOST, "%s%u", plan->network, plan->first + i);
        else
            snprintf(masters[i].host, MASTER_HOST, "127.0.0.1");
        if (plan->over_tcp || plan->tls != NULL)
            masters[i].port = port_free();
        start(&masters[i]);
    }
    for (unsigned i = 0; i < count; i++)
        wait_ready(&masters[i], true);
}

void master_kill(struct master *master)
{
    if (master->pid == 0)
        return;
    process_kill(master->pid);
    master->pid = 0;
    redisFree(master->context);
    master->context = NULL;
}

void master_stop(struct master *master)
{
    ck_assert_int_eq(kill(master->pid, SIGSTOP), 0);
}

void master_continue(struct master *master)
{
    ck_assert_int_eq(kill(master->pid, SIGCONT), 0);
}

void master_restart(struct master *master)
{
    master_kill(master);
    start(master);
    wait_ready(master, false);
}

void master_url(const struct master *master, char *url)
{
    if (master->tls != NULL)
        snprintf(url, MASTER_URL, "rediss://%s:%d",
                 master->tls->host != NULL ? master->tls->host : master->host, master->port);
    else if (master->over_tcp)
        snprintf(url, MASTER_URL, "redis://%s:%d/%u", master->host, master->port, master->database);
    else
        snprintf(url, MASTER_URL, "unix:%s", master->socket);
}

static void check_reply(const struct master *master, const redisReply *reply, const char *command)
{
    if (reply == NULL)
        ck_abort_msg("master %u did not reply to %s: %s", master->index, command,
                     master->context->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        ck_abort_msg("master %u replied to %s with an error: %s", master->index, command,
                     reply->str);
}

static redisReply *run(struct master *master, const char *format, va_list arguments)
{
    redisReply *reply = redisvCommand(master->context, format, arguments);
    check_reply(master, reply, format);
    return reply;
}

int64_t master_integer(struct master *master, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = run(master, format, arguments);
    va_end(arguments);
    ck_assert_int_eq(reply->type, REDIS_REPLY_INTEGER);
    int64_t integer = reply->integer;
    freeReplyObject(reply);
    return integer;
}

static const char *keep_text(struct master *master, redisReply *reply)
{
    bool nil = reply->type == REDIS_REPLY_NIL;
    if (!nil)
        snprintf(master->text, sizeof(master->text), "%s",
                 reply->str != NULL ? reply->str : "(not a text)");
    freeReplyObject(reply);
    return nil ? NULL : master->text;
}

const char *master_text(struct master *master, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = run(master, format, arguments);
    va_end(arguments);
    return keep_text(master, reply);
}

void masters_run(struct master *masters, unsigned count, const char *line)
{
    enum { WORDS = 64 };
    const char *words[WORDS];
    char copy[MASTER_TEXT];
    char *rest = NULL;
    int word_count = 0;
    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        ck_assert_int_lt(word_count, WORDS);
        words[word_count++] = word;
    }
    for (unsigned i = 0; i < count; i++) {
        redisReply *reply = redisCommandArgv(masters[i].context, word_count, words, NULL);
        check_reply(&masters[i], reply, line);
        freeReplyObject(reply);
    }
}

unsigned masters_with(struct master *masters, unsigned count, const char *key)
{
    unsigned with = 0;
    for (unsigned i = 0; i < count; i++)
        with += master_integer(&masters[i], "EXISTS %s", key) == 1;
    return with;
}

int64_t masters_keys(struct master *masters, unsigned count)
{
    int64_t keys = 0;
    for (unsigned i = 0; i < count; i++)
        keys += master_integer(&masters[i], "EVAL %s 0",
                               "return #redis.call('KEYS', '*') - "
                               "#redis.call('KEYS', 'redlockd:*')");
    return keys;
}
