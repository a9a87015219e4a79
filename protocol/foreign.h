/*
 * Whether a connection speaks another protocol than ours, by its first bytes. Pure.
 *
 * Such a connection is closed without an answer, which its client might mistake for one, or count
 * as the answer to something else.
 */
#ifndef PROTOCOL_FOREIGN_H
#define PROTOCOL_FOREIGN_H

#include <stddef.h>

/* All that has come so far. A static sentence for the log; NULL: it is ours, or too little to tell.
 * HTTP shows once its first line is whole. */
const char *foreign_protocol(const char *bytes, size_t len);

#endif
