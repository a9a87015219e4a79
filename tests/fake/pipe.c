#include "tests/fake/pipe.h"

#include <assert.h>

void pipe_clear(struct pipe *pipe)
{
    bytes_clear(&pipe->bytes);
    pipe->first = pipe->count = 0;
    pipe->sent = pipe->taken = pipe->sealed = 0;
    pipe->last_ns = 0;
}

void pipe_add(struct pipe *pipe, const char *bytes, size_t len)
{
    bytes_add(&pipe->bytes, bytes, len);
    pipe->sent += len;
}

void pipe_take(struct pipe *pipe, size_t len)
{
    bytes_take(&pipe->bytes, len);
    pipe->taken += len;
}

void pipe_seal(struct pipe *pipe, uint64_t end, int64_t at_ns)
{
    if (at_ns < pipe->last_ns)
        at_ns = pipe->last_ns;
    if (pipe->count == 0 || at_ns != pipe->last_ns)
        pipe->count++;
    assert(pipe->count <= PIPE_SEGMENTS);
    unsigned last = (pipe->first + pipe->count - 1) % PIPE_SEGMENTS;
    pipe->segments[last].end = pipe->sealed = end;
    pipe->segments[last].at_ns = pipe->last_ns = at_ns;
}

size_t pipe_arrived(struct pipe *pipe, int64_t now_ns)
{
    uint64_t end = pipe->taken;
    while (pipe->count > 0 && pipe->segments[pipe->first].at_ns <= now_ns) {
        end = pipe->segments[pipe->first].end;
        pipe->first = (pipe->first + 1) % PIPE_SEGMENTS;
        pipe->count--;
    }
    return end > pipe->taken ? (size_t)(end - pipe->taken) : 0;
}

int64_t pipe_next_ns(const struct pipe *pipe)
{
    return pipe->count > 0 ? pipe->segments[pipe->first].at_ns : INT64_MAX;
}

size_t pipe_move(struct pipe *pipe, struct bytes *to, int64_t now_ns)
{
    size_t len = pipe_arrived(pipe, now_ns);
    if (to != NULL)
        bytes_add(to, bytes_at(&pipe->bytes), len);
    pipe_take(pipe, len);
    return len;
}
