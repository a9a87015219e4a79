#include "client/c/wakeup.h"

#include "protocol/units.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

void wakeup_init(struct wakeup *wakeup)
{
    *wakeup = (struct wakeup){.epoll = -1, .timer = -1, .due_ns = INT64_MAX, .socket = -1};
}

void wakeup_close(struct wakeup *wakeup)
{
    if (wakeup->timer >= 0)
        close(wakeup->timer);
    if (wakeup->epoll >= 0)
        close(wakeup->epoll);
    wakeup_init(wakeup);
}

static bool control(const struct wakeup *wakeup, int operation, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events};
    return epoll_ctl(wakeup->epoll, operation, fd, &event) == 0;
}

static bool open_timer(struct wakeup *wakeup)
{
    wakeup->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return wakeup->timer >= 0 && control(wakeup, EPOLL_CTL_ADD, wakeup->timer, EPOLLIN);
}

bool wakeup_open(struct wakeup *wakeup)
{
    if (wakeup->epoll >= 0)
        return true;
    wakeup->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (wakeup->epoll < 0 || !open_timer(wakeup)) {
        wakeup_close(wakeup);
        return false;
    }
    return true;
}

/* At each step the process needs only one descriptor besides `number`: the one that the old timer
 * frees. So the child keeps the number even if it has no other descriptor left. */
void wakeup_reopen_after_fork(struct wakeup *wakeup)
{
    int number = wakeup->epoll;
    if (number < 0)
        return;
    close(wakeup->timer);
    wakeup_init(wakeup);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    wakeup->epoll = number;
    bool replaced = epoll >= 0 && dup3(epoll, number, O_CLOEXEC) >= 0;
    if (epoll >= 0)
        close(epoll);
    if (!replaced || !open_timer(wakeup))
        wakeup_close(wakeup);
}

bool wakeup_watch(struct wakeup *wakeup, int socket)
{
    if (wakeup->epoll < 0)
        return true;
    wakeup->output = false;
    if (!control(wakeup, EPOLL_CTL_ADD, socket, EPOLLIN))
        return false;
    wakeup->socket = socket;
    return true;
}

void wakeup_forget(struct wakeup *wakeup)
{
    if (wakeup->socket >= 0)
        (void)control(wakeup, EPOLL_CTL_DEL, wakeup->socket, 0);
    wakeup->socket = -1;
}

void wakeup_arm(struct wakeup *wakeup, bool output, int64_t due_ns, int64_t now_ns)
{
    if (wakeup->socket >= 0 && wakeup->output != output)
        (void)control(wakeup, EPOLL_CTL_MOD, wakeup->socket, output ? EPOLLIN | EPOLLOUT : EPOLLIN);
    wakeup->output = output;
    /* Leave the timer alone if it expires before due_ns: one early wake-up costs less than setting
     * the timer for each request. */
    if ((wakeup->due_ns > now_ns && wakeup->due_ns <= due_ns) || wakeup->due_ns == due_ns)
        return;
    struct itimerspec when = {0}; /* never */
    if (due_ns != INT64_MAX) {
        int64_t ns = due_ns > 0 ? due_ns : 1;
        when.it_value = (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
    }
    timerfd_settime(wakeup->timer, TFD_TIMER_ABSTIME, &when, NULL);
    wakeup->due_ns = due_ns;
}
