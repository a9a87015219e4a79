#include "client/cli/shell.h"

#include <stdio.h>
#include <string.h>

#include "protocol/text.h"

/* Ends the quoted string, writes the byte as an escape, and begins a new quoted string. */
static void put_escaped(struct text *text, unsigned char byte)
{
    char escaped[16];
    snprintf(escaped, sizeof(escaped), byte == '\'' ? "'\\%c'" : "'$'\\%03o''", byte);
    text_string(text, escaped);
}

static void put_quoted(struct text *text, const char *word)
{
    size_t left = strlen(word);
    text_byte(text, '\'');
    while (left > 0) {
        size_t len = utf8_visible(word, left);
        if (len > 0 && *word != '\'')
            text_bytes(text, word, len);
        else
            put_escaped(text, (unsigned char)*word);
        len = len > 0 ? len : 1;
        word += len;
        left -= len;
    }
    text_byte(text, '\'');
}

void shell_word(struct text *text, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_-.,:/@%+";
    size_t len = strlen(word);
    text_byte(text, ' ');
    if (len > 0 && strspn(word, plain) == len)
        text_bytes(text, word, len);
    else
        put_quoted(text, word);
}
