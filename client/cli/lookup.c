#include "client/cli/lookup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- known addresses --- */

void places_set(struct places *places, const char (*urls)[PLACES_URL], unsigned count)
{
    struct places set = {.count = count};
    assert(count <= PLACES_MAX);
    for (unsigned i = 0; i < count; i++) {
        memcpy(set.url[i], urls[i], PLACES_URL);
        if (places->count > 0 && strcmp(urls[i], places->url[places->last]) == 0) {
            set.last = i;
            set.next = (i + 1) % count;
        }
    }
    *places = set;
}

const char *places_next(struct places *places)
{
    if (places->count == 0)
        return NULL;
    places->last = places->next;
    places->next = (places->next + 1) % places->count;
    return places->url[places->last];
}

void places_worked(struct places *places)
{
    places->next = places->last;
}

/* --- the lookup --- */

/* NULL: the host does not resolve. With AI_NUMERICHOST no name server is asked, so this does not
 * block. */
static struct addrinfo *resolve(const struct address *address, int flags)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *found = NULL;
    char port[8];
    snprintf(port, sizeof(port), "%u", address->port);
    return getaddrinfo(address->host, port, &hints, &found) == 0 ? found : NULL;
}

static bool print_url(const struct sockaddr *where, socklen_t len, char url[PLACES_URL])
{
    char host[64], port[8];
    memset(url, 0, PLACES_URL);
    if (getnameinfo(where, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    int printed =
        snprintf(url, PLACES_URL, where->sa_family == AF_INET6 ? "tcp://[%s]:%s" : "tcp://%s:%s",
                 host, port);
    return printed > 0 && printed < PLACES_URL;
}

void lookup_init(struct lookup *lookup, const char *url, int connection)
{
    struct error error;
    struct sockaddr_storage where;
    socklen_t len = sizeof(where);
    char known[1][PLACES_URL];
    *lookup = (struct lookup){.answer = -1};
    if (!address_parse(url, URL_DAEMON, &lookup->address, &error) ||
        lookup->address.kind != ADDRESS_TCP)
        return;
    struct addrinfo *number = resolve(&lookup->address, AI_NUMERICHOST);
    lookup->needed = number == NULL;
    if (number != NULL)
        freeaddrinfo(number);
    if (lookup->needed && getpeername(connection, (struct sockaddr *)&where, &len) == 0 &&
        print_url((const struct sockaddr *)&where, len, known[0]))
        places_set(&lookup->places, known, 1);
}

/* Runs in the child: resolves the name and writes the first PLACES_MAX addresses with a single
 * write(2). */
static _Noreturn void resolve_in_child(const struct lookup *lookup, int out, pid_t parent)
{
    char urls[PLACES_MAX][PLACES_URL];
    unsigned count = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    /* Close inherited descriptors: other processes take an open one as a sign that the supervisor
     * lives. */
    dup2(out, STDIN_FILENO);
    close_range(STDOUT_FILENO, ~0U, 0);
    for (const struct addrinfo *it = resolve(&lookup->address, 0); it != NULL && count < PLACES_MAX;
         it = it->ai_next)
        count += print_url(it->ai_addr, it->ai_addrlen, urls[count]);
    _exit(write(STDIN_FILENO, urls, count * sizeof(urls[0])) < 0);
}

static void start_child(struct lookup *lookup)
{
    int ends[2];
    pid_t self = getpid();
    if (lookup->answer >= 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return;
    pid_t child = fork();
    if (child == 0)
        resolve_in_child(lookup, ends[1], self);
    close(ends[1]);
    if (child > 0)
        lookup->answer = ends[0];
    else
        close(ends[0]);
}

const char *lookup_next(struct lookup *lookup)
{
    start_child(lookup);
    return places_next(&lookup->places);
}

void lookup_read(struct lookup *lookup)
{
    char urls[PLACES_MAX][PLACES_URL];
    if (lookup->answer < 0)
        return;
    ssize_t len = read(lookup->answer, urls, sizeof(urls));
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    close(lookup->answer);
    lookup->answer = -1;
    /* After a lookup without result, the known addresses may still work. */
    if (len > 0)
        places_set(&lookup->places, (const char(*)[PLACES_URL])urls,
                   (unsigned)((size_t)len / sizeof(urls[0])));
}
