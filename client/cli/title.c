#include "client/cli/title.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* The memory in which the kernel has put the arguments; size 0: do not write to it. */
static struct {
    char *at;
    size_t size;
    char **copy; /* the arguments that the program uses */
} area;

/* Measures the contiguous part: if an argument was replaced in argv, it can be elsewhere. */
static size_t measure(int argc, char **argv)
{
    size_t size = 0;
    for (int i = 0; i < argc && argv[i] == argv[0] + size; i++)
        size += strlen(argv[i]) + 1;
    return size;
}

char **title_take_arguments(int argc, char **argv)
{
    area.copy = calloc((size_t)argc + 1, sizeof(*area.copy));
    if (area.copy == NULL)
        return argv;
    for (int i = 0; i < argc; i++) {
        area.copy[i] = strdup(argv[i]);
        if (area.copy[i] == NULL)
            return argv;
    }
    area.at = argv[0];
    area.size = measure(argc, argv);
    return area.copy;
}

void title_set(const char *name, const char *what)
{
    prctl(PR_SET_NAME, name);
    if (area.size == 0)
        return;
    memset(area.at, 0, area.size);
    snprintf(area.at, area.size, "%s: %s", name, what);
}
