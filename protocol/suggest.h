/*
 * The word that was probably meant, for messages about one that is not known. Pure.
 */
#ifndef PROTOCOL_SUGGEST_H
#define PROTOCOL_SUGGEST_H

/* The nearest of `words` (NULL at the end; the first of those that are equally near), or NULL if
 * none is near enough to be worth a question. */
const char *suggest_nearest(const char *text, const char *const *words);

#endif
