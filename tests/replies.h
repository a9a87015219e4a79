/*
 * Compares the shortcuts of the RESP parser with hiredis.
 */
#ifndef TESTS_REPLIES_H
#define TESTS_REPLIES_H

#include <stddef.h>

#include "server/masters/resp.h"

enum replies_compared { REPLIES_SAME, REPLIES_GARBAGE, REPLIES_DIFFER };

/*
 * Feeds the bytes to one parser at once, and to its twin byte by byte. The twin never sees a whole
 * reply at once, so that hiredis parses every reply for it, while the other parser recognises
 * frequent replies itself. Compares their replies. Both keep their state between calls and stay in
 * the garbage state once they are in it. *count grows by the number of equal replies.
 */
enum replies_compared replies_compare(struct resp *resp, struct resp *twin, const char *bytes,
                                      size_t len, unsigned *count);

#endif
