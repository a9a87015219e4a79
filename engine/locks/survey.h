/*
 * STATUS with SLOTS: how many slots are held, found out by a STATUS round for each slot.
 */
#ifndef ENGINE_LOCKS_SURVEY_H
#define ENGINE_LOCKS_SURVEY_H

#include "engine/locks/manager.h"

bool survey_init(struct lock_manager *manager);

/* Handle a STATUS with SLOTS. Returns the limit that prevents it; NULL: it was accepted. */
const char *survey_begin(struct lock_manager *manager, struct engine_client *client,
                         const struct request *request, int64_t now_ns);

/* A round of a survey has settled: start further rounds, or reply. */
void survey_on_settled(struct lock_manager *manager, struct flight *flight, int64_t now_ns);

/* The client has left: its survey ends with the rounds that are under way. */
void survey_abandon(struct lock_manager *manager, struct pending_request *pending);

/* The time to drain is over: reply SHUTDOWN to each STATUS with SLOTS. */
void survey_abandon_all(struct lock_manager *manager);

#endif
