/* address.c: sockets and addresses of mpiexec and its agents.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "core/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/util.h"

/* Both families where the kernel has both. */
static int address_bind_all(void)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), zero = 0;
    const struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    const struct sockaddr_in four = {.sin_family = AF_INET};
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
        if (bind(fd, (const struct sockaddr *)&six, sizeof(six)) == 0)
            return fd;
        close(fd);
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && bind(fd, (const struct sockaddr *)&four, sizeof(four)) == 0 ? fd : -1;
}

static int address_bind_to(const char *at)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *info;
    if (getaddrinfo(at, NULL, &hints, &info) != 0)
        return -1;
    const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool bound = fd >= 0 && bind(fd, info->ai_addr, info->ai_addrlen) == 0;
    freeaddrinfo(info);
    return bound ? fd : -1;
}

int address_listen(char *port, size_t size, const char *at)
{
    const int fd = at ? address_bind_to(at) : address_bind_all();
    if (fd < 0)
        launcher_die(1, "mpiexec cannot create a socket for its agents: %s.", strerror(errno));
    union {
        struct sockaddr_in6 six;
        struct sockaddr_in four;
        struct sockaddr any;
    } name;
    socklen_t len = sizeof(name);
    if (listen(fd, 512) != 0 || getsockname(fd, &name.any, &len) != 0)
        launcher_die(1, "mpiexec cannot listen for its agents: %s.", strerror(errno));
    snprintf(port, size, "%u",
             ntohs(name.any.sa_family == AF_INET6 ? name.six.sin6_port : name.four.sin_port));
    return fd;
}

static void add_address(char *out, size_t size, const char *address)
{
    size_t used = strlen(out);
    if (used + strlen(address) + 2 < size)
        snprintf(out + used, size - used, "%s%s", used ? "," : "", address);
}

/* The bytes of an address, in network order; NULL: of another family. */
static const uint8_t *address_get_bytes(const struct sockaddr *a, unsigned *bits)
{
    *bits = a->sa_family == AF_INET ? 32 : 128;
    if (a->sa_family == AF_INET)
        return (const uint8_t *)&((const struct sockaddr_in *)(const void *)a)->sin_addr;
    return a->sa_family == AF_INET6
               ? (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr
               : NULL;
}

/* Is that an address of ADDRESS/BITS? */
static bool is_within(const struct sockaddr *a, const char *network)
{
    char text[INET6_ADDRSTRLEN];
    uint8_t prefix[sizeof(struct in6_addr)];
    unsigned bits, all, end = 0;
    const char *slash = strchr(network, '/');
    const uint8_t *address = address_get_bytes(a, &all);
    if (!slash || (size_t)(slash - network) >= sizeof(text) || !address ||
        sscanf(slash, "/%3u%n", &bits, (int *)&end) != 1 || slash[end] || bits > all)
        return false;
    memcpy(text, network, (size_t)(slash - network));
    text[slash - network] = '\0';
    if (inet_pton(a->sa_family, text, prefix) != 1 || memcmp(address, prefix, bits / 8) != 0)
        return false;
    return bits % 8 == 0 || (address[bits / 8] ^ prefix[bits / 8]) >> (8 - bits % 8) == 0;
}

static bool is_usable(const struct ifaddrs *a, const char *network)
{
    const struct sockaddr_in6 *six = (const void *)a->ifa_addr;
    unsigned bits;
    if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) || !address_get_bytes(a->ifa_addr, &bits) ||
        (a->ifa_addr->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)))
        return false;
    return network ? strcmp(a->ifa_name, network) == 0 || is_within(a->ifa_addr, network)
                   : !(a->ifa_flags & IFF_LOOPBACK);
}

/* Every address an agent could call; the loopback last, for agents on this machine. */
void address_own(char *out, size_t size, const char *network)
{
    struct ifaddrs *list;
    network = network && *network ? network : NULL;
    if (getifaddrs(&list) == 0) {
        for (struct ifaddrs *a = list; a && !(network && *out); a = a->ifa_next) {
            char text[INET6_ADDRSTRLEN];
            unsigned bits;
            if (is_usable(a, network))
                add_address(out, size,
                            inet_ntop(a->ifa_addr->sa_family, address_get_bytes(a->ifa_addr, &bits), text,
                                      sizeof(text)));
        }
        freeifaddrs(list);
    }
    if (!network)
        add_address(out, size, ADDRESS_LOOPBACK);
}

int address_begin(const char *address, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *info;
    if (getaddrinfo(address, port, &hints, &info) != 0)
        return -1;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, info->ai_addr, info->ai_addrlen) != 0 && errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(info);
    return fd;
}

bool address_is_loopback(const char *address)
{
    return strcmp(address, ADDRESS_LOOPBACK) == 0;
}

bool address_is_own(const char *name)
{
    struct in_addr v4;
    struct in6_addr v6;
    bool is4 = inet_pton(AF_INET, name, &v4) == 1, is6 = !is4 && inet_pton(AF_INET6, name, &v6) == 1,
         found = false;
    struct ifaddrs *list;
    if ((!is4 && !is6) || getifaddrs(&list) != 0)
        return false;
    for (struct ifaddrs *a = list; a && !found; a = a->ifa_next) {
        if (is4 && a->ifa_addr && a->ifa_addr->sa_family == AF_INET)
            found = memcmp(&((struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr, &v4, sizeof(v4)) == 0;
        if (is6 && a->ifa_addr && a->ifa_addr->sa_family == AF_INET6)
            found = memcmp(&((struct sockaddr_in6 *)(void *)a->ifa_addr)->sin6_addr, &v6, sizeof(v6)) == 0;
    }
    freeifaddrs(list);
    return found;
}

bool address_is_here(const char *name)
{
    char self[256];
    if (strcmp(name, "localhost") == 0 || address_is_own(name))
        return true;
    if (gethostname(self, sizeof(self)) != 0)
        return false;
    self[sizeof(self) - 1] = '\0';
    if (strcasecmp(self, name) == 0)
        return true;
    /* One of the two may be written without its domain. */
    size_t a = strcspn(self, "."), b = strcspn(name, ".");
    return a == b && strncasecmp(self, name, a) == 0 && (!self[a] || !name[b]);
}
