/*
 * Finds out when the daemon is overloaded, for the log. A request is held back while it waits for
 * its round to start. Overload begins when, for OVERLOAD_NS, requests were held back at the end of
 * every pass. It ends when, for OVERLOAD_NS, none were held back at the end of any pass. Shorter
 * waits, as after a burst of requests, are normal. Pure.
 */
#ifndef SERVER_OVERLOAD_LOG_H
#define SERVER_OVERLOAD_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/units.h"

#define OVERLOAD_NS NS_PER_S

enum overload_news { OVERLOAD_SAME, OVERLOAD_BEGINS, OVERLOAD_ENDS };

/* All zero to begin with. */
struct overload_log {
    bool overloaded;
    bool any_held_back; /* requests were held back at the end of the last pass */
    int64_t since_ns;   /* since when any_held_back has had this value */
    int64_t began_ns;   /* overloaded: when requests were first held back */
    size_t most;        /* overloaded: the most requests that were held back at once */
};

/* Call this at the end of each pass in which overload_log_is_due() is true. */
enum overload_news overload_log_step(struct overload_log *overload, size_t held_back,
                                     int64_t now_ns);

static inline bool overload_log_is_due(const struct overload_log *overload, size_t held_back)
{
    return held_back > 0 || overload->any_held_back || overload->overloaded;
}

#endif
