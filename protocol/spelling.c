#include "protocol/spelling.h"

#include <stddef.h>
#include <string.h>

enum { WORD_MAX = 40 };

/* How many letters have to be changed, added or taken away (Levenshtein). */
static size_t distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1];
    size_t len = strlen(b);
    for (size_t j = 0; j <= len; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= len; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[len];
}

const char *spelling_nearest(const char *text, const char *const *words)
{
    const char *nearest = NULL;
    size_t len = strlen(text);
    /* One letter in three may differ, and one more; beyond that it is another word. */
    size_t smallest = len / 3 + 2;
    if (len > WORD_MAX)
        return NULL;
    for (; *words != NULL; words++) {
        if (strlen(*words) > WORD_MAX)
            continue;
        size_t changes = distance(text, *words);
        if (changes < smallest) {
            smallest = changes;
            nearest = *words;
        }
    }
    return nearest;
}
