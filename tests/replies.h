/*
 * Compares the RESP parser (server/masters/resp.h) with hiredis. The parser recognises frequent
 * replies itself and leaves all others to hiredis.
 */
#ifndef TESTS_REPLIES_H
#define TESTS_REPLIES_H

#include <stddef.h>

#include "server/masters/resp.h"

enum replies_compared { REPLIES_SAME, REPLIES_GARBAGE, REPLIES_DIFFER };

/*
 * Feeds the bytes to one parser in one piece and to its twin byte by byte, and compares their
 * replies. The twin never sees a whole reply at once, so hiredis parses every reply of the twin.
 * Both parsers keep their state between calls, and stay in the garbage state once they are in it.
 * *count grows by the number of equal replies.
 */
enum replies_compared replies_compare(struct resp *resp, struct resp *twin, const char *bytes,
                                      size_t len, unsigned *count);

#endif
