/* Why a HOLD was lost, as LOST says it (ENGINE_LOSS_TABLE in engine/stats.h). */
#ifndef ENGINE_LOCKS_LOSS_H
#define ENGINE_LOCKS_LOSS_H

#include "engine/stats.h"

/* The word, and the sentence for a person. Both static. */
const char *engine_loss_word(unsigned loss);
const char *engine_loss_text(unsigned loss);

/* The loss with this word. */
unsigned engine_loss_of(const char *word);

#endif
