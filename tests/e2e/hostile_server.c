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

/* --- saying --- */

/* Noted before it is said, so that whoever has read it finds it. False: nobody listens. */
static bool say(struct hostile_server *hostile_server, int fd, const char *bytes, size_t len)
{
    pthread_mutex_lock(&hostile_server->mutex);
    if (hostile_server->said_len + len < sizeof(hostile_server->said) - 1) {
        memcpy(hostile_server->said + hostile_server->said_len, bytes, len);
        hostile_server->said_len += len;
        hostile_server->said[hostile_server->said_len] = '\0';
    }
    pthread_mutex_unlock(&hostile_server->mutex);
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

/* --- true answers --- */

static void next_token(struct hostile_server *hostile_server, char *token)
{
    snprintf(token, 41, "%08xabcdef0123456789abcdef0123456789",
             ++hostile_server->tokens * 2654435761u);
}

static const char *other_outcome(struct prng *prng)
{
    static const char *const outcomes[] = {
        "HELD 500",        "HELD -1",       "NOQUORUM 1/3 need=2 b:timeout",
        "LATE 7",          "LIMIT waiters", "SHUTDOWN",
        "ERR ttl-range x", "DENIED x"};
    return outcomes[prng_below(prng, sizeof(outcomes) / sizeof(outcomes[0]))];
}

/* The answer behind its tag, or whole lines for a listing. */
static void answer(struct hostile_server *hostile_server, const char *request, const char *tag,
                   char *out)
{
    char resource[300] = "";
    char token[64] = "";
    int64_t ttl_ms = 0;
    const struct lie *lie = &hostile_server->lie;
    bool random = lie->kind == LIE_RANDOM;
    bool lock = sscanf(request, "LOCK %299s %" SCNd64, resource, &ttl_ms) == 2;
    bool extend = sscanf(request, "EXTEND %299s %63s %" SCNd64, resource, token, &ttl_ms) == 3;
    if (lock)
        next_token(hostile_server, token);
    int64_t validity_ms = lie->validity_ms > 0 ? lie->validity_ms : ttl_ms;
    int64_t elapsed_ms = lie->elapsed_ms;
    if (random && prng_below(&hostile_server->prng, 4) == 0)
        elapsed_ms = (int64_t)prng_below(&hostile_server->prng, 100000);
    if (random && prng_below(&hostile_server->prng, 4) == 0)
        validity_ms = prng_below(&hostile_server->prng, 20);
    const char *fence = strstr(request, " FENCE") != NULL ? "77" : "-";
    bool listing = strncmp(request, "LOCKS", 5) == 0;
    if ((lock || extend || listing) && lie->instead != NULL)
        snprintf(out, HOSTILE_LINE, "#%.32s %s\n", tag, lie->instead);
    else if (random && prng_below(&hostile_server->prng, 4) == 0)
        snprintf(out, HOSTILE_LINE, "#%.32s %s\n", tag, other_outcome(&hostile_server->prng));
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

/* --- lies --- */

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

static size_t put_instead(char *bytes, size_t len, size_t at, size_t old, const char *fresh)
{
    memmove(bytes + at + strlen(fresh), bytes + at + old, len - at - old);
    memcpy(bytes + at, fresh, strlen(fresh));
    return len + strlen(fresh) - old;
}

/* Another number in the place of one, or of the tag. */
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
    return put_instead(bytes, len, at, old,
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

/* Returns the length; bytes has room for HOSTILE_LINE. */
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
        return put_instead(bytes, len, 0, 0, any_push(prng));
    case 6:
        bytes[at] = (char)prng_below(prng, 256);
        return len;
    case 7:
        memmove(bytes + at + 2200, bytes + at, len - at);
        memset(bytes + at, 'a', 2200);
        return len + 2200;
    case 8:
        return put_instead(bytes, len, len - 1, 0, " new=1 more");
    default:
        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)prng_below(prng, 256);
        return len;
    }
}

/* In pieces, with or without a moment in between. */
static bool say_in_pieces(struct hostile_server *hostile_server, struct prng *prng, int fd,
                          const char *bytes, size_t len)
{
    while (len > 0) {
        size_t piece = prng_below(prng, 2) == 0 ? len : 1 + prng_below(prng, (unsigned)len);
        if (!say(hostile_server, fd, bytes, piece))
            return false;
        bytes += piece;
        len -= piece;
        if (prng_below(prng, 4) == 0)
            pause_ms(1);
    }
    return true;
}

/* False: the connection is over. */
static bool lie_at_random(struct hostile_server *hostile_server, struct prng *prng, int fd,
                          char *bytes)
{
    size_t len = strlen(bytes);
    unsigned what = prng_below(prng, 16);
    if (what == 0) /* silence */
        return true;
    if (what == 1) {
        say_in_pieces(hostile_server, prng, fd, bytes, prng_below(prng, (unsigned)len + 1));
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
    return say_in_pieces(hostile_server, prng, fd, bytes, len);
}

/* Warnings; or lines of the listing that is asked for. */
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

/* --- the thread --- */

static bool on_request(struct hostile_server *hostile_server, int fd, char *line)
{
    char bytes[HOSTILE_LINE];
    char *space = strchr(line, ' ');
    if (line[0] != '#' || space == NULL)
        return false;
    *space = '\0';
    pthread_mutex_lock(&hostile_server->mutex);
    if (hostile_server->asked_count < HOSTILE_LINES) {
        hostile_server->asked[hostile_server->asked_count].id = strtoull(line + 1, NULL, 10);
        hostile_server->asked[hostile_server->asked_count].seen_ns = hostile_clock_ns();
        snprintf(hostile_server->asked[hostile_server->asked_count].text, 512, "%s", space + 1);
        hostile_server->asked_count++;
    }
    const struct lie lie = hostile_server->lie;
    answer(hostile_server, space + 1, line + 1, bytes);
    struct prng prng = {prng_draw(&hostile_server->prng)};
    pthread_mutex_unlock(&hostile_server->mutex);

    size_t len = strlen(bytes);
    size_t at = lie.at < len ? lie.at : len;
    if (lie.delay_ms > 0)
        pause_ms(lie.delay_ms);
    if (lie.before != NULL && !say(hostile_server, fd, lie.before, strlen(lie.before)))
        return false;
    switch (lie.kind) {
    case LIE_NONE:
        return say(hostile_server, fd, bytes, len);
    case LIE_CUT:
        return say(hostile_server, fd, bytes, at) && at == len;
    case LIE_SPLIT:
        if (!say(hostile_server, fd, bytes, at))
            return false;
        pause_ms(1);
        return say(hostile_server, fd, bytes + at, len - at);
    case LIE_SILENT:
        return true;
    case LIE_FLOOD:
        return flood(fd, line + 1, strncmp(space + 1, "NODES", 5) == 0);
    case LIE_RANDOM:
        return lie_at_random(hostile_server, &prng, fd, bytes);
    }
    return false;
}

static void serve(struct hostile_server *hostile_server, int fd)
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
            if (!on_request(hostile_server, fd, input))
                return;
            len -= (size_t)(end + 1 - input);
            memmove(input, end + 1, len);
        }
    }
}

static void *run(void *context)
{
    struct hostile_server *hostile_server = context;
    for (;;) {
        struct pollfd fds[] = {{.fd = hostile_server->listening, .events = POLLIN},
                               {.fd = hostile_server->bell[0], .events = POLLIN}};
        poll(fds, 2, -1);
        if (fds[1].revents != 0)
            return NULL;
        int fd = accept(hostile_server->listening, NULL, NULL);
        if (fd < 0)
            continue;
        serve(hostile_server, fd);
        /* What follows is to begin a line. */
        pthread_mutex_lock(&hostile_server->mutex);
        hostile_server->connections++;
        if (hostile_server->said_len > 0 &&
            hostile_server->said_len < sizeof(hostile_server->said) - 1)
            hostile_server->said[hostile_server->said_len++] = '\n';
        pthread_mutex_unlock(&hostile_server->mutex);
        close(fd);
    }
}

void hostile_start(struct hostile_server *hostile_server, const char *path)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    memset(hostile_server, 0, sizeof(*hostile_server));
    hostile_server->path = path;
    snprintf(where.sun_path, sizeof(where.sun_path), "%s", path);
    hostile_server->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(hostile_server->listening, (struct sockaddr *)&where, sizeof(where)), 0);
    ck_assert_int_eq(listen(hostile_server->listening, 64), 0);
    ck_assert_int_eq(pipe(hostile_server->bell), 0);
    ck_assert_int_eq(pthread_mutex_init(&hostile_server->mutex, NULL), 0);
    ck_assert_int_eq(pthread_create(&hostile_server->thread, NULL, run, hostile_server), 0);
}

/* Once no handle is connected any more. */
void hostile_stop(struct hostile_server *hostile_server)
{
    close(hostile_server->bell[1]);
    ck_assert_int_eq(pthread_join(hostile_server->thread, NULL), 0);
    close(hostile_server->bell[0]);
    close(hostile_server->listening);
    unlink(hostile_server->path);
}

/* --- what it was asked, and said --- */

void hostile_set(struct hostile_server *hostile_server, const struct lie *lie)
{
    pthread_mutex_lock(&hostile_server->mutex);
    hostile_server->lie = *lie;
    hostile_server->prng.state = lie->seed;
    hostile_server->asked_count = 0;
    hostile_server->said_len = 0;
    hostile_server->said[0] = '\0';
    pthread_mutex_unlock(&hostile_server->mutex);
}

bool hostile_was_asked(struct hostile_server *hostile_server, const char *text)
{
    bool found = false;
    pthread_mutex_lock(&hostile_server->mutex);
    for (unsigned i = 0; i < hostile_server->asked_count; i++)
        found = found || strcmp(hostile_server->asked[i].text, text) == 0;
    pthread_mutex_unlock(&hostile_server->mutex);
    return found;
}

bool hostile_request(struct hostile_server *hostile_server, uint64_t id, char *text,
                     int64_t *seen_ns)
{
    bool found = false;
    pthread_mutex_lock(&hostile_server->mutex);
    for (unsigned i = 0; i < hostile_server->asked_count && !found; i++) {
        if (hostile_server->asked[i].id != id)
            continue;
        found = true;
        strcpy(text, hostile_server->asked[i].text);
        *seen_ns = hostile_server->asked[i].seen_ns;
    }
    pthread_mutex_unlock(&hostile_server->mutex);
    return found;
}

void hostile_each_answer(struct hostile_server *hostile_server, uint64_t id,
                         void (*line)(void *context, const char *text), void *context)
{
    char tag[32];
    char text[HOSTILE_LINE];
    size_t tag_len = (size_t)snprintf(tag, sizeof(tag), "#%" PRIu64 " ", id);
    pthread_mutex_lock(&hostile_server->mutex);
    const char *at = hostile_server->said;
    const char *end = hostile_server->said + hostile_server->said_len;
    const char *lf;
    for (; (lf = memchr(at, '\n', (size_t)(end - at))) != NULL; at = lf + 1) {
        size_t len = (size_t)(lf - at);
        if (len < tag_len || len >= sizeof(text) || memcmp(at, tag, tag_len) != 0)
            continue;
        memcpy(text, at + tag_len, len - tag_len);
        text[len - tag_len] = '\0';
        /* With a NUL in it, it is no line. */
        if (strlen(text) == len - tag_len)
            line(context, text);
    }
    pthread_mutex_unlock(&hostile_server->mutex);
}
