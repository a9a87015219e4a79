#include "client/cli/places.h"

#include <assert.h>
#include <string.h>

void places_set(struct places *places, const char (*urls)[PLACES_URL], unsigned count)
{
    struct places set = {.count = count};
    assert(count <= PLACES_MAX);
    for (unsigned i = 0; i < count; i++) {
        memcpy(set.url[i], urls[i], PLACES_URL);
        if (places->count > 0 && strcmp(urls[i], places->url[places->last]) == 0) {
            set.last = i;
            set.next = (i + 1) % count;
        }
    }
    *places = set;
}

const char *places_next(struct places *places)
{
    if (places->count == 0)
        return NULL;
    places->last = places->next;
    places->next = (places->next + 1) % places->count;
    return places->url[places->last];
}

void places_good(struct places *places)
{
    places->next = places->last;
}
