/*
 * Replies of masters, compared.
 */
#ifndef TESTS_REPLIES_H
#define TESTS_REPLIES_H

#include <stdbool.h>

#include "server/resp.h"

/* Do both say the same, in all that counts for their kinds? */
bool replies_same(const struct redis_reply *one, const struct redis_reply *other);

/* As resp_next(), but hiredis reads it, whatever it is. */
enum resp_result replies_next_by_hiredis(struct resp *resp);

#endif
