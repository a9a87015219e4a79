#include "client/cli/exits.h"

enum exit_code exit_of(enum redlock_status status)
{
    switch (status) {
    case REDLOCK_OK:
    case REDLOCK_FREE:
        return EXIT_DONE;
    case REDLOCK_HELD:
    case REDLOCK_GONE:
        return EXIT_HELD;
    case REDLOCK_NOQUORUM:
    case REDLOCK_LATE:
        return EXIT_NOQUORUM;
    case REDLOCK_LIMIT:
    case REDLOCK_SHUTDOWN:
    case REDLOCK_DENIED:
    case REDLOCK_REFUSED:
    case REDLOCK_UNREACHABLE:
    case REDLOCK_BROKEN:
    case REDLOCK_TIMEOUT:
    case REDLOCK_GARBLED:
    case REDLOCK_INVALID:
    case REDLOCK_MEMORY:
        break;
    }
    return EXIT_FAILED;
}
