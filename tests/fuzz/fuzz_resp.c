/* Fuzzes the RESP parser with any bytes from a master. The parser's fast path must agree with
 * hiredis. The first byte of an input sets how many bytes arrive at once; 0: all of them. */
#include <assert.h>

#include "tests/fuzz/fuzz.h"
#include "tests/replies.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct resp ours;
    static struct resp twin;
    bool enough_memory = resp_init(&ours) && resp_init(&twin);
    assert(enough_memory);
    unsigned count = 0;
    size_t at_once = len > 0 && bytes[0] > 0 ? bytes[0] : len;
    for (size_t at = 1; at < len; at += at_once) {
        size_t part = len - at < at_once ? len - at : at_once;
        enum replies_compared compared =
            replies_compare(&ours, &twin, (const char *)bytes + at, part, &count);
        assert(compared != REPLIES_DIFFER);
        if (compared == REPLIES_GARBAGE)
            break;
    }
    resp_deinit(&ours);
    resp_deinit(&twin);
    return 0;
}
