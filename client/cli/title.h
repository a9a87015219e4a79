/*
 * What other programs show as the name and the arguments of this process.
 */
#ifndef CLIENT_CLI_TITLE_H
#define CLIENT_CLI_TITLE_H

/* Call it once, before anything points into the arguments. Returns a copy of them for the program
 * to use, so that title_set() can overwrite the original; without memory it returns the original,
 * and title_set() leaves that alone. */
char **title_take_arguments(int argc, char **argv);

/* `name`, of at most 15 bytes, is what killall(1) and pkill(1) compare. "NAME: WHAT" is what ps(1)
 * shows and pkill -f matches, cut off where the arguments were shorter. */
void title_set(const char *name, const char *what);

#endif
