/*
 * The process title: the name and the arguments that ps(1) and killall(1) see.
 */
#ifndef CLIENT_CLI_TITLE_H
#define CLIENT_CLI_TITLE_H

/* Call this once, before anything points into the arguments. Returns a copy for the program to use,
 * so that title_set() can overwrite the original. If there is no memory for a copy, returns the
 * original, and title_set() does not overwrite it. */
char **title_take_arguments(int argc, char **argv);

/* Sets the name, at most 15 bytes, which killall(1) and pkill(1) compare. ps(1) and pkill -f then
 * see "<name>: <what>", truncated to the length of the original arguments. */
void title_set(const char *name, const char *what);

#endif
