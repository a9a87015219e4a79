/*
 * What clients ask for, and their leaving. See engine/engine.h, which offers all of this.
 */
#ifndef ENGINE_LOCKS_REQUESTS_H
#define ENGINE_LOCKS_REQUESTS_H

#include "engine/locks/manager.h"

void requests_submit(struct lock_manager *manager, struct engine_client *client,
                     const struct request *request, int64_t now_ns);

bool requests_tag_in_use(const struct engine_client *client, const char *tag, size_t tag_len);

/* The LOCKs of a client are undone; each is told so, or silently. */
void requests_undo_locks(struct lock_manager *manager, struct engine_client *client, bool silently,
                         int64_t now_ns);

/* What it holds is released: but for locks that linger, unless it said QUIT. */
void requests_release_holds(struct lock_manager *manager, struct engine_client *client,
                            bool by_quit, int64_t now_ns);

/* The connection is gone: nothing is answered any more, and nothing extended. */
void requests_on_gone(struct lock_manager *manager, struct engine_client *client, int64_t now_ns);

/* The daemon ends: what is not answered is answered SHUTDOWN, and each LOCK among it undone. */
void requests_abandon_all(struct lock_manager *manager, int64_t now_ns);

#endif
