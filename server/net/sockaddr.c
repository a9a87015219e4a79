#include "server/net/sockaddr.h"

#include <netdb.h>
#include <stdio.h>

void sockaddr_text(const struct sockaddr *address, socklen_t len, char text[SOCKADDR_TEXT])
{
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];
    int failed = getnameinfo(address, len, host, sizeof(host), port, sizeof(port),
                             NI_NUMERICHOST | NI_NUMERICSERV);
    if (failed != 0)
        snprintf(text, SOCKADDR_TEXT, "unknown");
    else
        snprintf(text, SOCKADDR_TEXT,
                 address->sa_family == AF_INET6 ? "[%.48s]:%.6s" : "%.48s:%.6s", host, port);
}
