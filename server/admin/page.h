/*
 * The status page: a status -> HTML. Pure.
 *
 * The page comes whole, as a snapshot that needs nothing else; its script then fetches the part of
 * it that lives, /live, each second. Without scripts it loads itself anew every five seconds.
 */
#ifndef SERVER_ADMIN_PAGE_H
#define SERVER_ADMIN_PAGE_H

#include "protocol/text.h"
#include "server/admin/status.h"

/* The part that lives. */
void page_write_live(const struct status *status, struct text *text);

/* The whole; nonce: what the Content-Security-Policy of this answer lets its style and script run
 * by. */
void page_write(const struct status *status, const char *nonce, struct text *text);

#endif
