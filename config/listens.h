/*
 * `listen`: where clients connect. Each is an address, or {url, mode, group} for a unix socket.
 */
#ifndef CONFIG_LISTENS_H
#define CONFIG_LISTENS_H

#include <stdbool.h>

#include "config/report.h"
#include "config/yaml.h"

struct config;

enum { LISTENS_MAX = 16 };

/* The one there is where the file says nothing. */
void listens_default(struct config *config);

/* Those of the list, in place of the default. */
void listens_read(struct config *config, const struct yaml_node *list, struct report *report);

/* Refuse what other hosts can reach, after listens_read() with the same list. */
void listens_check_local(const struct config *config, const struct yaml_node *list,
                         struct report *report);

/* Is there a unix socket among them? Also if one is not to be read, and could have been one. */
bool listens_may_be_unix(const struct config *config);

/* Do two configurations name the same addresses, in whatever order? */
bool listens_equal(const struct config *a, const struct config *b);
/* And have those that are in both what they were opened with: text, mode and group? */
bool listens_equal_kept(const struct config *a, const struct config *b);
/* ... and the same certificates? By name: what is in the files is another matter. */
bool listens_equal_tls(const struct config *a, const struct config *b);
void listens_swap(struct config *a, struct config *b);

void listens_free(struct config *config);

#endif
