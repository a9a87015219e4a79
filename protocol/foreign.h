/*
 * Recognizes other protocols by the first bytes of a connection. Pure.
 *
 * The daemon closes such a connection without a reply, since a client of another protocol could
 * misread any reply.
 */
#ifndef PROTOCOL_FOREIGN_H
#define PROTOCOL_FOREIGN_H

#include <stddef.h>

/* Pass all bytes received so far. Returns a static sentence for the log; or NULL if the bytes are
 * redlockd's protocol, or too few to decide. HTTP is recognized once its first line is complete, or
 * as long as a request can be. */
const char *foreign_protocol(const char *bytes, size_t len);

#endif
