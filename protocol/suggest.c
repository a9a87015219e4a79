#include "protocol/suggest.h"

#include <stddef.h>
#include <string.h>

enum { WORD_MAX = 40, ROWS = 3, BEGINNING_LEN = 4 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The Damerau-Levenshtein distance (optimal string alignment): the number of letters to change,
 * add, remove, or swap with the next one. */
static size_t distance(const char *a, const char *b)
{
    /* The rows for the current letter of a and for the two letters before it. */
    size_t rows[ROWS][WORD_MAX + 1];
    size_t len = strlen(b);
    for (size_t j = 0; j <= len; j++)
        rows[0][j] = j;
    size_t i = 1;
    for (; a[i - 1] != '\0'; i++) {
        size_t *row = rows[i % ROWS];
        const size_t *before = rows[(i - 1) % ROWS];
        row[0] = i;
        for (size_t j = 1; j <= len; j++) {
            row[j] = before[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(row[j], least(before[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], rows[(i - 2) % ROWS][j - 2] + 1);
        }
    }
    return rows[(i - 1) % ROWS][len];
}

const char *suggest_nearest(const char *text, const char *const *words)
{
    const char *nearest = NULL;
    size_t len = strlen(text);
    /* One above the limit: a third of the letters may be wrong, or one letter of a short word. */
    size_t smallest = (len < 5 ? 1 : (len + 1) / 3) + 1;
    if (len > WORD_MAX)
        return NULL;
    for (; *words != NULL; words++) {
        if (strlen(*words) > WORD_MAX)
            continue;
        size_t changes = distance(text, *words);
        if (changes < smallest) {
            smallest = changes;
            nearest = *words;
        } else if (nearest == NULL && len >= BEGINNING_LEN && strncmp(text, *words, len) == 0) {
            nearest = *words;
        }
    }
    return nearest;
}
