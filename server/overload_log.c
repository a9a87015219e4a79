#include "server/overload_log.h"

enum overload_news overload_log_step(struct overload_log *overload, size_t held_back,
                                     int64_t now_ns)
{
    if (overload->any_held_back != (held_back > 0)) {
        overload->any_held_back = held_back > 0;
        overload->since_ns = now_ns;
        if (!overload->overloaded) {
            overload->began_ns = now_ns;
            overload->most = 0;
        }
    }
    overload->most = held_back > overload->most ? held_back : overload->most;
    if (overload->any_held_back == overload->overloaded ||
        now_ns - overload->since_ns < OVERLOAD_NS)
        return OVERLOAD_SAME;
    overload->overloaded = overload->any_held_back;
    return overload->overloaded ? OVERLOAD_BEGINS : OVERLOAD_ENDS;
}
