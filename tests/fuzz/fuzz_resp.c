/*
 * Any bytes from a master: the reader of RESP makes of them what hiredis makes of them. The first
 * byte of an input says how many bytes come at once.
 */
#include <assert.h>

#include "tests/fuzz/fuzz.h"
#include "tests/replies.h"

/* Read what there is in both; false once it is garbage. */
static bool read_both(struct resp *ours, struct resp *of_hiredis)
{
    enum resp_result result;
    do {
        result = resp_next(ours);
        enum resp_result expected = replies_next_by_hiredis(of_hiredis);
        assert(result == expected);
        assert(result != RESP_REPLY || replies_same(&ours->reply, &of_hiredis->reply));
    } while (result == RESP_REPLY);
    return result == RESP_MORE;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct resp ours;
    static struct resp of_hiredis;
    bool enough_memory = resp_init(&ours) && resp_init(&of_hiredis);
    assert(enough_memory);
    size_t at_once = len > 0 && bytes[0] > 0 ? bytes[0] : len;
    for (size_t at = 1; at < len; at += at_once) {
        size_t part = len - at < at_once ? len - at : at_once;
        resp_feed(&ours, (const char *)bytes + at, part);
        resp_feed(&of_hiredis, (const char *)bytes + at, part);
        if (!read_both(&ours, &of_hiredis))
            break;
    }
    resp_deinit(&ours);
    resp_deinit(&of_hiredis);
    return 0;
}
