#include "tests/torture/ledger.h"

#include "protocol/units.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NOTE_MAX = 512 };

int64_t ledger_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

/* --- the text of the history --- */

static void open_notes(struct ledger *ledger)
{
    ledger->notes = fopen(ledger->path, "we");
    ck_assert_ptr_nonnull(ledger->notes);
    /* Line by line, so that the file is complete if this process dies. */
    setvbuf(ledger->notes, NULL, _IOLBF, 0);
    ledger->notes_len = 0;
}

static void rotate_file(struct ledger *ledger)
{
    char older[LEDGER_TEXT + 2];
    snprintf(older, sizeof(older), "%s.1", ledger->path);
    fclose(ledger->notes);
    rename(ledger->path, older);
    open_notes(ledger);
}

static void append(struct ledger *ledger, const char *form, va_list arguments)
{
    /* After the first violation nothing more is written, so the violation is the last line. */
    if (ledger->violated)
        return;
    if (ledger->notes_len > LEDGER_FILE_MAX)
        rotate_file(ledger);
    int64_t us = (ledger_now_ns() - ledger->began_ns) / 1000;
    char line[NOTE_MAX];
    vsnprintf(line, sizeof(line), form, arguments);
    ledger->notes_len +=
        fprintf(ledger->notes, "%4" PRId64 ".%06" PRId64 " %s\n", us / 1000000, us % 1000000, line);
}

__attribute__((format(printf, 2, 3))) static void note(struct ledger *ledger, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    append(ledger, form, arguments);
    va_end(arguments);
}

void ledger_note(struct ledger *ledger, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    pthread_mutex_lock(&ledger->mutex);
    append(ledger, form, arguments);
    pthread_mutex_unlock(&ledger->mutex);
    va_end(arguments);
}

void ledger_broken(struct ledger *ledger, const char *fault, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    pthread_mutex_lock(&ledger->mutex);
    append(ledger, form, arguments);
    size_t len = strlen(ledger->broken_since_grant);
    if (strstr(ledger->broken_since_grant, fault) == NULL)
        snprintf(ledger->broken_since_grant + len, LEDGER_TEXT - len, "%s%s", len == 0 ? "" : ", ",
                 fault);
    pthread_mutex_unlock(&ledger->mutex);
    va_end(arguments);
}

void ledger_init(struct ledger *ledger, bool masters_lose_data, const char *path)
{
    memset(ledger, 0, sizeof(*ledger));
    pthread_mutex_init(&ledger->mutex, NULL);
    history_init(&ledger->history);
    ledger->masters_lose_data = masters_lose_data;
    ledger->began_ns = ledger_now_ns();
    ledger->last_grant_ns = ledger->began_ns;
    snprintf(ledger->path, sizeof(ledger->path), "%s", path);
    open_notes(ledger);
}

void ledger_free(struct ledger *ledger)
{
    fclose(ledger->notes);
    pthread_mutex_destroy(&ledger->mutex);
}

/* --- violations --- */

static void violated(struct ledger *ledger, const char *form, va_list arguments)
{
    if (ledger->violated)
        return;
    vsnprintf(ledger->why, sizeof(ledger->why), form, arguments);
    note(ledger, "VIOLATION: %s", ledger->why);
    ledger->violated = true;
}

void ledger_violated(struct ledger *ledger, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    pthread_mutex_lock(&ledger->mutex);
    violated(ledger, form, arguments);
    pthread_mutex_unlock(&ledger->mutex);
    va_end(arguments);
}

__attribute__((format(printf, 2, 3))) static void say(struct ledger *ledger, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    violated(ledger, form, arguments);
    va_end(arguments);
}

/* --- holds --- */

static struct foreign_hold *find_foreign(struct ledger *ledger, const char *token)
{
    for (unsigned i = 0; i < LEDGER_FOREIGN_HOLDS; i++)
        if (strcmp(ledger->foreign[i].token, token) == 0)
            return &ledger->foreign[i];
    return NULL;
}

/* Does a loss of data excuse that this claim overlaps a foreign hold? Masters may have voted for
 * the claim, lost their data, and then voted for the foreign client, whose grant was recorded
 * first. If the votes for the claim came after the foreign grant, there is no excuse: the guard
 * should have refused them. */
static bool excuses(struct ledger *ledger, const struct claim *claim)
{
    const struct foreign_hold *foreign = find_foreign(ledger, ledger->history.other.token);
    return ledger->masters_lose_data && foreign != NULL && claim->begun_ns < foreign->granted_ns;
}

static void check_result(struct ledger *ledger, enum history_result result,
                         const struct claim *claim, int64_t now_ns)
{
    const struct history_hold *other = &ledger->history.other;
    switch (result) {
    case HISTORY_FINE:
        break;
    case HISTORY_TWO_HOLDERS:
        say(ledger, "two holders of r%u at once: %.8s for %.3f ms more, and %s%.8s for %.3f ms",
            claim->resource, claim->token, (double)(claim->until_ns - now_ns) / NS_PER_MS,
            find_foreign(ledger, other->token) != NULL ? "a foreign client with " : "",
            other->token, (double)(other->until_ns - now_ns) / NS_PER_MS);
        break;
    case HISTORY_FENCE_FELL:
        say(ledger, "a fencing token of r%u that does not rise: %" PRId64 " after %" PRId64,
            claim->resource, claim->fence, ledger->history.fences[claim->resource]);
        break;
    }
}

void ledger_close_gap(struct ledger *ledger)
{
    int64_t now_ns = ledger_now_ns();
    if (now_ns - ledger->last_grant_ns > ledger->longest_ns) {
        ledger->longest_ns = now_ns - ledger->last_grant_ns;
        memcpy(ledger->broken, ledger->broken_since_grant, LEDGER_TEXT);
    }
    ledger->last_grant_ns = now_ns;
    ledger->broken_since_grant[0] = '\0';
}

/* Record the claim, and remove the foreign holds whose overlap with the claim is excused. */
static enum history_result record(struct ledger *ledger, const struct claim *claim, bool grant,
                                  int64_t now_ns)
{
    enum history_result result;
    struct history *history = &ledger->history;
    for (;;) {
        result = grant ? history_granted(history, claim->resource, claim->token, claim->fence,
                                         now_ns, claim->until_ns)
                       : history_prolonged(history, claim->resource, claim->token, now_ns,
                                           claim->until_ns);
        if (result != HISTORY_TWO_HOLDERS || !excuses(ledger, claim))
            return result;
        ledger->foreign_excused++;
        note(ledger, "excused: foreign %.8s", history->other.token);
        history_ended(history, claim->resource, history->other.token);
    }
}

static int64_t told_ns(const struct claim *claim)
{
    return claim->told_ns != 0 ? claim->told_ns : ledger_now_ns();
}

bool ledger_granted(struct ledger *ledger, unsigned daemon, const struct claim *claim)
{
    pthread_mutex_lock(&ledger->mutex);
    int64_t now_ns = told_ns(claim);
    bool in_time = claim->until_ns > now_ns;
    struct claim entry = *claim;
    /* If a grant was over when it was read, its place in the order of grants is not known. So its
     * fencing token is not checked. */
    if (!in_time)
        entry.fence = 0;
    check_result(ledger, record(ledger, &entry, true, now_ns), &entry, now_ns);
    ledger->granted_by[daemon]++;
    ledger->late += !in_time;
    ledger_close_gap(ledger);
    pthread_mutex_unlock(&ledger->mutex);
    return in_time;
}

bool ledger_prolonged(struct ledger *ledger, const struct claim *claim)
{
    pthread_mutex_lock(&ledger->mutex);
    int64_t now_ns = told_ns(claim);
    check_result(ledger, record(ledger, claim, false, now_ns), claim, now_ns);
    pthread_mutex_unlock(&ledger->mutex);
    return claim->until_ns > now_ns;
}

int64_t ledger_fence(struct ledger *ledger, unsigned resource)
{
    pthread_mutex_lock(&ledger->mutex);
    int64_t fence = ledger->history.fences[resource];
    pthread_mutex_unlock(&ledger->mutex);
    return fence;
}

bool ledger_holder(struct ledger *ledger, unsigned resource, char *token)
{
    token[0] = '\0';
    pthread_mutex_lock(&ledger->mutex);
    int64_t now_ns = ledger_now_ns();
    for (unsigned i = 0; i < ledger->history.hold_count; i++) {
        const struct history_hold *hold = &ledger->history.holds[i];
        if (hold->resource == resource && hold->until_ns > now_ns)
            memcpy(token, hold->token, HISTORY_TOKEN + 1);
    }
    pthread_mutex_unlock(&ledger->mutex);
    return token[0] != '\0';
}

void ledger_ended(struct ledger *ledger, unsigned resource, const char *token)
{
    pthread_mutex_lock(&ledger->mutex);
    history_ended(&ledger->history, resource, token);
    pthread_mutex_unlock(&ledger->mutex);
}

void ledger_foreign_granted(struct ledger *ledger, unsigned foreign, const struct claim *claim)
{
    pthread_mutex_lock(&ledger->mutex);
    int64_t now_ns = told_ns(claim);
    struct foreign_hold *hold = &ledger->foreign[ledger->foreign_grants % LEDGER_FOREIGN_HOLDS];
    snprintf(hold->token, sizeof(hold->token), "%s", claim->token);
    hold->granted_ns = now_ns;
    note(ledger, "foreign %u has r%u %.8s for %.3f ms", foreign, claim->resource, claim->token,
         (double)(claim->until_ns - now_ns) / NS_PER_MS);
    enum history_result result = history_granted(&ledger->history, claim->resource, claim->token, 0,
                                                 now_ns, claim->until_ns);
    if (result == HISTORY_TWO_HOLDERS && ledger->masters_lose_data) {
        ledger->foreign_excused++;
        note(ledger, "excused: foreign %.8s, %.8s has it still", claim->token,
             ledger->history.other.token);
    } else {
        check_result(ledger, result, claim, now_ns);
    }
    ledger->foreign_grants++;
    pthread_mutex_unlock(&ledger->mutex);
}
