/*
 * Suggests a known word for a misspelt one, for error messages. Pure.
 */
#ifndef PROTOCOL_SUGGEST_H
#define PROTOCOL_SUGGEST_H

/* The word of `words` (NULL at the end) that is most similar to `text`; the first of several
 * equally similar ones. Without one, the first word that begins with `text`, if that is no less
 * than four letters. NULL: no word is worth suggesting. */
const char *suggest_nearest(const char *text, const char *const *words);

#endif
