/*
 * SIGHUP: the configuration is read again and takes effect, all or nothing.
 *
 *     read, check    config_load()         every mistake is logged, and all stays as it was
 *     compare        config_diff()         likewise, if something differs that may not
 *     open           listeners_prepare()   likewise, if an address cannot be had
 *     ------------------------------------ from here on nothing can fail
 *     take effect    config_adopt(), listeners_commit(), engine_retune()
 *
 * The file is read in the event loop: meanwhile nobody is served.
 */
#ifndef SERVER_RELOAD_H
#define SERVER_RELOAD_H

struct server;

void reload(struct server *server);

#endif
