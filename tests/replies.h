/*
 * The reader of RESP, compared with hiredis.
 */
#ifndef TESTS_REPLIES_H
#define TESTS_REPLIES_H

#include <stddef.h>

#include "server/masters/resp.h"

enum replies_compared { REPLIES_SAME, REPLIES_GARBAGE, REPLIES_DIFFER };

/*
 * Is what the reader makes of these bytes what hiredis makes of them? The reader has them at once;
 * its twin one by one, so that of each reply hiredis has the first byte before the rest is there.
 * Both go on where they were, and stay garbage once they are. *count grows by the replies that were
 * the same.
 */
enum replies_compared replies_compare(struct resp *resp, struct resp *twin, const char *bytes,
                                      size_t len, unsigned *count);

#endif
