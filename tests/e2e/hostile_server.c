#include "tests/e2e/hostile_server.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int64_t hostile_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- sending --- */

/* Records the bytes first and then sends them: when the client has read the reply, the record
 * already contains it. False if the client is gone. */
static bool send_bytes(struct hostile_server *server, int fd, const char *bytes, size_t len)
{
    pthread_mutex_lock(&server->mutex);
    if (server->sent_len + len < sizeof(server->sent) - 1) {
        memcpy(server->sent + server->sent_len, bytes, len);
        server->sent_len += len;
        server->sent[server->sent_len] = '\0';
    }
    pthread_mutex_unlock(&server->mutex);
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        if (sent > 0) {
            bytes += sent;
            len -= (size_t)sent;
        }
    }
    return true;
}

static void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

/* --- correct replies --- */

static void next_token(struct hostile_server *server, char *token)
{
    snprintf(token, 41, "%08xabcdef0123456789abcdef0123456789", ++server->tokens * 2654435761u);
}

static const char *other_outcome(struct prng *prng)
{
    static const char *const outcomes[] = {
        "HELD 500",        "HELD -1",       "NOQUORUM 1/3 need=2 b:timeout",
        "LATE 7",          "LIMIT waiters", "SHUTDOWN",
        "ERR ttl-range x", "DENIED x"};
    return outcomes[prng_below(prng, sizeof(outcomes) / sizeof(outcomes[0]))];
}

/* Formats the reply with its tag, or all lines of a listing. */
static void format_reply(struct hostile_server *server, const char *request, const char *tag,
                         char *out)
{
    char resource[300] = "";
    char token[64] = "";
    int64_t ttl_ms = 0;
    const struct hostile_plan *plan = &server->plan;
    bool random = plan->kind == HOSTILE_RANDOM;
    bool lock = sscanf(request, "LOCK %299s %" SCNd64, resource, &ttl_ms) == 2;
    bool extend = sscanf(request, "EXTEND %299s %63s %" SCNd64, resource, token, &ttl_ms) == 3;
    if (lock)
        next_token(server, token);
    int64_t validity_ms = plan->validity_ms > 0 ? plan->validity_ms : ttl_ms;
    int64_t elapsed_ms = plan->elapsed_ms;
    if (random && prng_below(&server->prng, 4) == 0)
        elapsed_ms = (int64_t)prng_below(&server->prng, 100000);
    if (random && prng_below(&server->prng, 4) == 0)
        validity_ms = prng_below(&server->prng, 20);
    const char *fence = strstr(request, " FENCE") != NULL ? "77" : "-";
    bool listing = strncmp(request, "LOCKS", 5) == 0;
    if ((lock || extend || listing) && plan->instead != NULL)
        snprintf(out, HOSTILE_LINE, "#%.32s %s\n", tag, plan->instead);
    else if (random && prng_below(&server->prng, 4) == 0)
        snprintf(out, HOSTILE_LINE, "#%.32s %s\n", tag, other_outcome(&server->prng));
    else if (lock)
        snprintf(out, HOSTILE_LINE, "#%.32s OK %s %" PRId64 " %" PRId64 " %s\n", tag, token,
                 validity_ms, elapsed_ms, fence);
    else if (extend)
        snprintf(out, HOSTILE_LINE, "#%.32s OK %s %" PRId64 " %" PRId64 "\n", tag, token,
                 validity_ms, elapsed_ms);
    else if (sscanf(request, "LOCKS %299s", resource) == 1)
        snprintf(out, HOSTILE_LINE, "#%.32s resource=%s token=- place=3 waiters=5\n#%.32s END\n",
                 tag, resource, tag);
    else if (strncmp(request, "STATUS", 6) == 0)
        snprintf(out, HOSTILE_LINE, "#%.32s FREE\n", tag);
    else if (strncmp(request, "PING", 4) == 0)
        snprintf(out, HOSTILE_LINE, "#%.32s PONG\n", tag);
    else
        snprintf(out, HOSTILE_LINE, "#%.32s OK\n", tag);
}

/* --- hostile replies --- */

static size_t drop_word(struct prng *prng, char *bytes, size_t len)
{
    size_t from = prng_below(prng, (unsigned)len);
    size_t to = from;
    while (from > 0 && bytes[from - 1] != ' ')
        from--;
    while (to + 1 < len && bytes[to] != ' ')
        to++;
    memmove(bytes + from, bytes + to, len - to);
    return len - (to - from);
}

static size_t replace_bytes(char *bytes, size_t len, size_t at, size_t old, const char *replacement)
{
    memmove(bytes + at + strlen(replacement), bytes + at + old, len - at - old);
    memcpy(bytes + at, replacement, strlen(replacement));
    return len + strlen(replacement) - old;
}

/* Replaces a number or the tag by another number, or puts a number before some other word. */
static size_t change_number(struct prng *prng, char *bytes, size_t len)
{
    static const char *const numbers[] = {"99999999999999999999",
                                          "18446744073709551616",
                                          "9223372036854775807",
                                          "-1",
                                          "0",
                                          "1",
                                          "",
                                          "999999999999999",
                                          "1000000000000000",
                                          "4294967296",
                                          "1.5",
                                          "0x10",
                                          "007",
                                          "1e9"};
    size_t at = prng_below(prng, (unsigned)len);
    while (at > 0 && bytes[at - 1] != ' ' && bytes[at - 1] != '#')
        at--;
    size_t old = strspn(bytes + at, "0123456789");
    if (at + old > len)
        return len;
    return replace_bytes(bytes, len, at, old,
                         numbers[prng_below(prng, sizeof(numbers) / sizeof(numbers[0]))]);
}

static const char *any_push(struct prng *prng)
{
    static const char *const pushes[] = {
        "! NEWS of the world\n",
        "! LOST a 0000000000000000000000000000000000000000 gone\n",
        "! WARN a 0000000000000000000000000000000000000000 n1:timeout\n",
        "! LOST a 000 gone\n",
        "! \n",
        "PONG\n",
        "LIMIT clients\n",
        "\n",
    };
    return pushes[prng_below(prng, sizeof(pushes) / sizeof(pushes[0]))];
}

/* Damages the line in one random way and returns its new length. The buffer has HOSTILE_LINE
 * bytes. */
static size_t mangle(struct prng *prng, char *bytes, size_t len)
{
    size_t at = prng_below(prng, (unsigned)len);
    switch (prng_below(prng, 10)) {
    case 0:
        bytes[at] = (char)(bytes[at] ^ 1 << prng_below(prng, 8));
        return len;
    case 1:
        memmove(bytes + at, bytes + at + 1, len - at - 1);
        return len - 1;
    case 2:
        return drop_word(prng, bytes, len);
    case 3:
        return change_number(prng, bytes, len);
    case 4:
        memcpy(bytes + len, bytes, len);
        return 2 * len;
    case 5:
        return replace_bytes(bytes, len, 0, 0, any_push(prng));
    case 6:
        bytes[at] = (char)prng_below(prng, 256);
        return len;
    case 7:
        memmove(bytes + at + 2200, bytes + at, len - at);
        memset(bytes + at, 'a', 2200);
        return len + 2200;
    case 8:
        return replace_bytes(bytes, len, len - 1, 0, " new=1 more");
    default:
        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)prng_below(prng, 256);
        return len;
    }
}

/* Sends the bytes in random pieces, with or without pauses. */
static bool send_in_pieces(struct hostile_server *server, struct prng *prng, int fd,
                           const char *bytes, size_t len)
{
    while (len > 0) {
        size_t piece = prng_below(prng, 2) == 0 ? len : 1 + prng_below(prng, (unsigned)len);
        if (!send_bytes(server, fd, bytes, piece))
            return false;
        bytes += piece;
        len -= piece;
        if (prng_below(prng, 4) == 0)
            pause_ms(1);
    }
    return true;
}

/* Sends the reply unchanged, damaged or cut off, or sends nothing. False if the caller has to close
 * the connection. */
static bool misbehave_at_random(struct hostile_server *server, struct prng *prng, int fd,
                                char *bytes)
{
    size_t len = strlen(bytes);
    unsigned what = prng_below(prng, 16);
    if (what == 0) /* silence */
        return true;
    if (what == 1) {
        send_in_pieces(server, prng, fd, bytes, prng_below(prng, (unsigned)len + 1));
        return false;
    }
    if (what == 2)
        pause_ms((int)prng_below(prng, 6));
    while (what >= 8 && what < 14 && len > 1 && len < HOSTILE_LINE / 4 && what % 2 == 0) {
        len = mangle(prng, bytes, len);
        what += prng_below(prng, 2);
    }
    if (what >= 8 && what < 14 && what % 2 != 0 && len > 1 && len < HOSTILE_LINE / 4)
        len = mangle(prng, bytes, len);
    return send_in_pieces(server, prng, fd, bytes, len);
}

/* Sends warnings, or lines of the requested listing, until the client is gone. */
static bool flood(int fd, const char *tag, bool listing)
{
    char lines[HOSTILE_LINE];
    size_t len = 0;
    while (len + 128 < sizeof(lines))
        len += (size_t)(listing ? snprintf(lines + len, 128, "#%.32s node=n1 vote=yes\n", tag)
                                : snprintf(lines + len, 128,
                                           "! WARN a 0000000000000000000000000000000000000000 "
                                           "n1:timeout\n"));
    while (send(fd, lines, len, MSG_NOSIGNAL) > 0)
        continue;
    return false;
}

static bool send_listing(struct hostile_server *server, int fd, const char *tag, size_t count)
{
    char line[128];
    while (count-- > 0) {
        snprintf(line, sizeof(line), "#%.32s node=n1 vote=yes\n", tag);
        if (!send_bytes(server, fd, line, strlen(line)))
            return false;
    }
    snprintf(line, sizeof(line), "#%.32s END\n", tag);
    return send_bytes(server, fd, line, strlen(line));
}

/* --- the thread --- */

static bool on_request(struct hostile_server *server, int fd, char *line)
{
    char bytes[HOSTILE_LINE];
    char *space = strchr(line, ' ');
    if (line[0] != '#' || space == NULL)
        return false;
    *space = '\0';
    pthread_mutex_lock(&server->mutex);
    if (server->request_count < HOSTILE_LINES) {
        server->requests[server->request_count].id = strtoull(line + 1, NULL, 10);
        server->requests[server->request_count].seen_ns = hostile_clock_ns();
        snprintf(server->requests[server->request_count].text, 512, "%s", space + 1);
        server->request_count++;
    }
    const struct hostile_plan plan = server->plan;
    format_reply(server, space + 1, line + 1, bytes);
    struct prng prng = {prng_draw(&server->prng)};
    pthread_mutex_unlock(&server->mutex);

    bool nodes = strncmp(space + 1, "NODES", 5) == 0;
    size_t len = strlen(bytes);
    size_t at = plan.at < len ? plan.at : len;
    if (plan.delay_ms > 0)
        pause_ms(plan.delay_ms);
    if (plan.before != NULL && !send_bytes(server, fd, plan.before, strlen(plan.before)))
        return false;
    switch (plan.kind) {
    case HOSTILE_NONE:
        return send_bytes(server, fd, bytes, len);
    case HOSTILE_CUT:
        return send_bytes(server, fd, bytes, at) && at == len;
    case HOSTILE_SPLIT:
        if (!send_bytes(server, fd, bytes, at))
            return false;
        pause_ms(1);
        return send_bytes(server, fd, bytes + at, len - at);
    case HOSTILE_SILENT:
        return true;
    case HOSTILE_FLOOD:
        return flood(fd, line + 1, nodes);
    case HOSTILE_LONG:
        return nodes ? send_listing(server, fd, line + 1, plan.at)
                     : send_bytes(server, fd, bytes, len);
    case HOSTILE_RANDOM:
        return misbehave_at_random(server, &prng, fd, bytes);
    }
    return false;
}

static void serve(struct hostile_server *server, int fd)
{
    char input[HOSTILE_LINE];
    size_t len = 0;
    for (;;) {
        ssize_t got = recv(fd, input + len, sizeof(input) - 1 - len, 0);
        if (got <= 0)
            return;
        len += (size_t)got;
        char *end;
        while ((end = memchr(input, '\n', len)) != NULL) {
            *end = '\0';
            if (!on_request(server, fd, input))
                return;
            len -= (size_t)(end + 1 - input);
            memmove(input, end + 1, len);
        }
    }
}

static void *run(void *context)
{
    struct hostile_server *server = context;
    for (;;) {
        struct pollfd fds[] = {{.fd = server->listening, .events = POLLIN},
                               {.fd = server->stop_pipe[0], .events = POLLIN}};
        poll(fds, 2, -1);
        if (fds[1].revents != 0)
            return NULL;
        int fd = accept(server->listening, NULL, NULL);
        if (fd < 0)
            continue;
        serve(server, fd);
        /* Replies to the next connection begin on a new line of the record. */
        pthread_mutex_lock(&server->mutex);
        server->connections++;
        if (server->sent_len > 0 && server->sent_len < sizeof(server->sent) - 1)
            server->sent[server->sent_len++] = '\n';
        pthread_mutex_unlock(&server->mutex);
        close(fd);
    }
}

void hostile_start(struct hostile_server *server, const char *path)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    memset(server, 0, sizeof(*server));
    server->path = path;
    snprintf(where.sun_path, sizeof(where.sun_path), "%s", path);
    server->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(server->listening, (struct sockaddr *)&where, sizeof(where)), 0);
    ck_assert_int_eq(listen(server->listening, 64), 0);
    ck_assert_int_eq(pipe(server->stop_pipe), 0);
    ck_assert_int_eq(pthread_mutex_init(&server->mutex, NULL), 0);
    ck_assert_int_eq(pthread_create(&server->thread, NULL, run, server), 0);
}

/* The caller must have closed all its connections (handles of libredlock), because the thread ends
 * only between two connections. */
void hostile_stop(struct hostile_server *server)
{
    close(server->stop_pipe[1]);
    ck_assert_int_eq(pthread_join(server->thread, NULL), 0);
    close(server->stop_pipe[0]);
    close(server->listening);
    unlink(server->path);
}

/* --- recorded requests and replies --- */

void hostile_set(struct hostile_server *server, const struct hostile_plan *plan)
{
    pthread_mutex_lock(&server->mutex);
    server->plan = *plan;
    server->prng.state = plan->seed;
    server->request_count = 0;
    server->sent_len = 0;
    server->sent[0] = '\0';
    pthread_mutex_unlock(&server->mutex);
}

bool hostile_received(struct hostile_server *server, const char *text)
{
    bool found = false;
    pthread_mutex_lock(&server->mutex);
    for (unsigned i = 0; i < server->request_count; i++)
        found = found || strcmp(server->requests[i].text, text) == 0;
    pthread_mutex_unlock(&server->mutex);
    return found;
}

bool hostile_request(struct hostile_server *server, uint64_t id, char *text, int64_t *seen_ns)
{
    bool found = false;
    pthread_mutex_lock(&server->mutex);
    for (unsigned i = 0; i < server->request_count && !found; i++) {
        if (server->requests[i].id != id)
            continue;
        found = true;
        strcpy(text, server->requests[i].text);
        *seen_ns = server->requests[i].seen_ns;
    }
    pthread_mutex_unlock(&server->mutex);
    return found;
}

void hostile_each_reply(struct hostile_server *server, uint64_t id,
                        void (*line)(void *context, const char *text), void *context)
{
    char tag[32];
    char text[HOSTILE_LINE];
    size_t tag_len = (size_t)snprintf(tag, sizeof(tag), "#%" PRIu64 " ", id);
    pthread_mutex_lock(&server->mutex);
    const char *at = server->sent;
    const char *end = server->sent + server->sent_len;
    const char *lf;
    for (; (lf = memchr(at, '\n', (size_t)(end - at))) != NULL; at = lf + 1) {
        size_t len = (size_t)(lf - at);
        if (len < tag_len || len >= sizeof(text) || memcmp(at, tag, tag_len) != 0)
            continue;
        memcpy(text, at + tag_len, len - tag_len);
        text[len - tag_len] = '\0';
        /* A line with a NUL byte is not a reply. */
        if (strlen(text) == len - tag_len)
            line(context, text);
    }
    pthread_mutex_unlock(&server->mutex);
}
