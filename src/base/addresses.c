/* addresses.c: lists the network addresses of this machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define ADDRESSES_MAX 64

int addresses_list_ipv4(struct in_addr *out, int most)
{
    struct ifaddrs *list;
    int count = 0;
    if (getifaddrs(&list) != 0)
        return 0;
    for (const struct ifaddrs *a = list; a && count < most; a = a->ifa_next)
        if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET && (a->ifa_flags & IFF_UP) &&
            !(a->ifa_flags & IFF_LOOPBACK))
            out[count++] = ((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr;
    freeifaddrs(list);
    return count;
}

void addresses_format_list(char *out, size_t size, int most)
{
    struct in_addr addresses[ADDRESSES_MAX];
    size_t used = 0;
    const int n = addresses_list_ipv4(addresses, most < ADDRESSES_MAX ? most : ADDRESSES_MAX);
    out[0] = '\0';
    for (int i = 0; i < n; i++) {
        char text[INET_ADDRSTRLEN];
        if (inet_ntop(AF_INET, &addresses[i], text, sizeof(text)) && used + strlen(text) + 2 <= size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "", text);
    }
}
