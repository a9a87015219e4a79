#include "client/cli/nesting.h"

#include <stddef.h>
#include <string.h>

bool nesting_has(const char *list, const char *name)
{
    size_t name_len = strlen(name);
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, " ");
        if (len == name_len && memcmp(list, name, len) == 0)
            return true;
        list += len + strspn(list + len, " ");
    }
    return false;
}
