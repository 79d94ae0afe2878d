/* addresses.c: see addresses.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

void own_addresses(char *out, size_t size, int most)
{
    struct ifaddrs *list;
    size_t used = 0;
    int count = 0;
    out[0] = '\0';
    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *a = list; a && count < most; a = a->ifa_next) {
        char text[INET_ADDRSTRLEN];
        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || !(a->ifa_flags & IFF_UP) ||
            (a->ifa_flags & IFF_LOOPBACK))
            continue;
        const struct sockaddr_in *in = (const void *)a->ifa_addr;
        if (inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)) && used + strlen(text) + 2 <= size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", count++ ? "," : "", text);
    }
    freeifaddrs(list);
}
