/*
 * What the masters have reported about keys that clients wait for: observations, changes, hints and
 * lost connections. Each report goes to the queue of its key, which then runs.
 */
#ifndef ENGINE_LOCKS_NEWS_H
#define ENGINE_LOCKS_NEWS_H

#include "engine/locks/manager.h"

void news_take(struct lock_manager *manager, const struct flights_news *news, int64_t now_ns);

#endif
