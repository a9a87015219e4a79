#include "client/c/answer.h"

#include <string.h>

#include "protocol/limits.h"

/* As many as fit whatever they are. */
enum { DIGITS_MAX = 18 };

static const char *const words[] = {
#define X(name, word) [name] = word,
    ANSWER_TABLE(X)
#undef X
};

bool answer_is(struct word word, const char *text)
{
    return word.len == strlen(text) && memcmp(word.at, text, word.len) == 0;
}

bool answer_take(struct word *text, struct word *word)
{
    const char *space = text->len > 0 ? memchr(text->at, ' ', text->len) : NULL;
    size_t len = space != NULL ? (size_t)(space - text->at) : text->len;
    size_t taken = space != NULL ? len + 1 : len;
    *word = (struct word){text->at, len};
    *text = (struct word){text->at + taken, text->len - taken};
    return len > 0;
}

bool answer_number(struct word word, int64_t most, int64_t *number)
{
    *number = 0;
    if (word.len == 0 || word.len > DIGITS_MAX || (word.len > 1 && word.at[0] == '0'))
        return false;
    for (size_t i = 0; i < word.len; i++) {
        if (word.at[i] < '0' || word.at[i] > '9')
            return false;
        *number = *number * 10 + (word.at[i] - '0');
    }
    return *number <= most;
}

bool answer_token(struct word word)
{
    if (word.len != LIMIT_TOKEN)
        return false;
    for (size_t i = 0; i < word.len; i++)
        if (memchr("0123456789abcdef", word.at[i], 16) == NULL)
            return false;
    return true;
}

static enum answer_word find(struct word word)
{
    unsigned found = 0;
    while (found < ANSWER_OTHER && !answer_is(word, words[found]))
        found++;
    return (enum answer_word)found;
}

bool answer_read(const char *line, size_t len, struct answer *answer)
{
    *answer = (struct answer){.body = {line, len}};
    if (len >= LIMIT_REPLY)
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            return false;
    struct word first;
    if (len > 0 && line[0] == '#') {
        if (!answer_take(&answer->body, &answer->tag) || answer->tag.len < 2 ||
            answer->tag.len > 1 + LIMIT_TAG)
            return false;
        answer->tag = (struct word){answer->tag.at + 1, answer->tag.len - 1};
    }
    answer->rest = answer->body;
    if (!answer_take(&answer->rest, &first))
        return false;
    answer->first = find(first);
    return true;
}
