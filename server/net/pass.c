#include "server/net/pass.h"

#include <assert.h>
#include <stddef.h>

bool pass_init(struct pass *pass, struct event_base *base, event_callback_fn on_end, void *context)
{
    *pass = (struct pass){.end = event_new(base, -1, 0, on_end, context)};
    return pass->end != NULL;
}

void pass_deinit(struct pass *pass)
{
    if (pass->end != NULL)
        event_free(pass->end);
    *pass = (struct pass){0};
}

void pass_want_end(struct pass *pass)
{
    if (pass->end_due)
        return;
    pass->end_due = true;
    event_active(pass->end, 0, 0);
}

void pass_run_in_next(struct event *event)
{
    static const struct timeval at_once = {0};
    /* This fails only without memory. Then an early run is better than none. */
    if (event_add(event, &at_once) != 0)
        event_active(event, EV_TIMEOUT, 0);
}

bool pass_has_time(struct pass *pass, int64_t now_ns)
{
    if (pass->until_ns == 0) {
        pass->until_ns = now_ns + PASS_BUDGET_NS;
        pass_want_end(pass);
        return true;
    }
    return now_ns + pass->output_ns < pass->until_ns;
}

void pass_ended(struct pass *pass)
{
    assert(pass->end_due);
    pass->end_due = false;
    pass->until_ns = 0;
    pass->output_ns = 0;
    pass->number++;
}
