#include "tests/unit/world_answer.h"

#include <string.h>

struct redis_reply world_nil(void)
{
    return (struct redis_reply){.kind = RESP_NIL};
}

struct redis_reply world_number(int64_t number)
{
    return (struct redis_reply){.kind = RESP_INTEGER, .integer = number};
}

struct redis_reply world_text(enum resp_kind kind, const char *words)
{
    return (struct redis_reply){.kind = kind, .str = words, .len = strlen(words)};
}

struct redis_reply world_pair(struct redis_reply first, struct redis_reply second)
{
    const struct redis_reply *const both[] = {&first, &second};
    struct redis_reply answer = {.kind = RESP_ARRAY, .item_count = 2};
    for (unsigned i = 0; i < 2; i++) {
        answer.items[i].kind = both[i]->kind;
        answer.items[i].integer = both[i]->integer;
        answer.items[i].str = both[i]->str;
        answer.items[i].len = both[i]->len;
    }
    return answer;
}
