#include "client/cli/suspension.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "client/cli/signals.h"

void suspension_begin(struct suspension *suspension)
{
    struct sigaction stop;
    const sigset_t stops = signal_only(SIGTSTP);
    const sigset_t output = signal_only(SIGTTOU);
    sigprocmask(SIG_BLOCK, &output, &suspension->mask);
    sigaction(SIGTSTP, NULL, &stop);
    suspension->fd = -1;
    if (stop.sa_handler == SIG_IGN || sigismember(&suspension->mask, SIGTSTP))
        return;
    suspension->fd = signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK);
    suspension_allow(suspension, false);
}

const sigset_t *suspension_hand_over(struct suspension *suspension)
{
    if (suspension->fd >= 0)
        close(suspension->fd);
    suspension->fd = -1;
    return &suspension->mask;
}

void suspension_end(struct suspension *suspension)
{
    suspension_hand_over(suspension);
    sigprocmask(SIG_SETMASK, &suspension->mask, NULL);
}

/* It stays pending: a SIGCONT that comes before we stop takes it away again, as it would from
 * anybody else. */
bool suspension_is_due(const struct suspension *suspension)
{
    sigset_t pending;
    return suspension->fd >= 0 && sigpending(&pending) == 0 && sigismember(&pending, SIGTSTP) == 1;
}

void suspension_stop(const struct suspension *suspension)
{
    suspension_allow(suspension, true);
    suspension_allow(suspension, false);
}

void suspension_allow(const struct suspension *suspension, bool allowed)
{
    const sigset_t stops = signal_only(SIGTSTP);
    if (suspension->fd >= 0)
        sigprocmask(allowed ? SIG_UNBLOCK : SIG_BLOCK, &stops, NULL);
}
