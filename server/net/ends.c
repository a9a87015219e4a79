#include "server/net/ends.h"

#include <sys/epoll.h>
#include <unistd.h>

/* In one pass of the loop; what is left is found in the next. */
enum { ENDS_AT_ONCE = 64 };

static void ends_on_ready(evutil_socket_t fd, short events, void *context)
{
    struct ends *ends = context;
    struct epoll_event found;
    (void)fd;
    (void)events;
    /* One by one: a callback may end the watch of another. */
    for (unsigned i = 0; i < ENDS_AT_ONCE && epoll_wait(ends->epoll, &found, 1, 0) == 1; i++) {
        struct end_watch *watch = found.data.ptr;
        end_watch_set(watch, false);
        watch->on_end(watch->context);
    }
}

bool ends_init(struct ends *ends, struct event_base *base)
{
    ends->event = NULL;
    ends->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (ends->epoll >= 0)
        ends->event = event_new(base, ends->epoll, EV_READ | EV_PERSIST, ends_on_ready, ends);
    if (ends->event != NULL && event_add(ends->event, NULL) == 0)
        return true;
    ends_deinit(ends);
    return false;
}

void ends_deinit(struct ends *ends)
{
    if (ends->event != NULL)
        event_free(ends->event);
    if (ends->epoll >= 0)
        close(ends->epoll);
    *ends = (struct ends){.epoll = -1};
}

void end_watch_set(struct end_watch *watch, bool watched)
{
    struct epoll_event what = {.events = EPOLLRDHUP, .data.ptr = watch};
    if (watch->watched == watched)
        return;
    watch->watched = watched;
    epoll_ctl(watch->ends->epoll, watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, watch->fd, &what);
}
