#include "client/cli/signals.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "protocol/suggest.h"

enum { SIGNALS = 32, NAME_SIZE = 16, QUOTED_MAX = 40 };

static const char *without_sig(const char *text)
{
    return strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
}

static bool fail(const char *text, struct error *error)
{
    const char *names[SIGNALS + 1] = {NULL};
    char upper[NAME_SIZE] = "";
    unsigned count = 0;
    for (int i = 1; i < SIGNALS; i++)
        if (sigabbrev_np(i) != NULL)
            names[count++] = sigabbrev_np(i);
    const char *name = without_sig(text);
    for (size_t i = 0; i + 1 < sizeof(upper) && name[i] != '\0'; i++)
        upper[i] = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];

    struct text message = error_begin(error);
    const char *meant = suggest_nearest(upper, names);
    text_quoted(&message, text, strlen(text), QUOTED_MAX);
    text_string(&message, " is not a signal; ");
    text_string(&message, meant != NULL ? "did you mean " : "write TERM, INT or 15");
    text_string(&message, meant != NULL ? meant : "");
    text_string(&message, meant != NULL ? "?" : "");
    return false;
}

bool signal_parse(const char *text, int *number, struct error *error)
{
    size_t len = strlen(text);
    for (int i = 1; i < SIGNALS; i++) {
        char digits[NAME_SIZE];
        const char *name = sigabbrev_np(i);
        snprintf(digits, sizeof(digits), "%d", i);
        if ((name != NULL && strcasecmp(without_sig(text), name) == 0) ||
            (len > 0 && strcmp(text, digits) == 0)) {
            *number = i;
            return true;
        }
    }
    return fail(text, error);
}

sigset_t signal_only(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    return set;
}
