/*
 * What a fake master answers. Texts are not copied: they are kept until the answer has been heard.
 */
#ifndef TESTS_UNIT_WORLD_ANSWER_H
#define TESTS_UNIT_WORLD_ANSWER_H

#include "protocol/redis.h"

struct redis_reply world_nil(void);
struct redis_reply world_number(int64_t number);
struct redis_reply world_text(enum resp_kind kind, const char *words);

/* An array of these two, which are none. */
struct redis_reply world_pair(struct redis_reply first, struct redis_reply second);

#endif
