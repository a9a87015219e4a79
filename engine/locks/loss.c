#include "engine/locks/loss.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *word;
    const char *text;
} losses[ENGINE_LOSSES] = {
#define X(word, text) {word, text},
    ENGINE_LOSS_TABLE(X)
#undef X
};

const char *engine_loss_word(unsigned loss)
{
    assert(loss < ENGINE_LOSSES);
    return losses[loss].word;
}

const char *engine_loss_text(unsigned loss)
{
    assert(loss < ENGINE_LOSSES);
    return losses[loss].text;
}

unsigned engine_loss_of(const char *word)
{
    unsigned loss = 0;
    while (loss < ENGINE_LOSSES - 1 && strcmp(losses[loss].word, word) != 0)
        loss++;
    return loss;
}
