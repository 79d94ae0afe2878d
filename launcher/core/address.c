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
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/util.h"

/* Opens a bound socket for IPv6 and IPv4, or for IPv4 alone if the kernel has no IPv6. */
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

/* Opens a socket bound to an address. port: "0" for a free one. */
static int address_bind_to(const char *at, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *info;
    if (getaddrinfo(at, port, &hints, &info) != 0)
        return -1;
    const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool bound = fd >= 0 && bind(fd, info->ai_addr, info->ai_addrlen) == 0;
    freeaddrinfo(info);
    if (!bound && fd >= 0)
        close(fd);
    return bound ? fd : -1;
}

static void address_get_port(int fd, char *port, size_t size)
{
    union {
        struct sockaddr_in6 six;
        struct sockaddr_in four;
        struct sockaddr any;
    } name;
    socklen_t len = sizeof(name);
    if (getsockname(fd, &name.any, &len) != 0)
        launcher_die(1, "mpiexec cannot listen for its agents: %s.", strerror(errno));
    snprintf(port, size, "%u",
             ntohs(name.any.sa_family == AF_INET6 ? name.six.sin6_port : name.four.sin_port));
}

/* Opens a socket at each listed address, all with the port of the first one. Returns 0 if that port is in
 * use at another address, or if an address is invalid. */
static int address_bind_list(int fds[ADDRESS_SOCKETS_MAX], char *port, size_t size, const char *list)
{
    char *copy = xstrdup(list), *save = NULL;
    int n = 0;
    snprintf(port, size, "0");
    for (char *at = strtok_r(copy, ",", &save); at && n < ADDRESS_SOCKETS_MAX;
         at = strtok_r(NULL, ",", &save)) {
        const int fd = address_bind_to(at, port);
        if (fd < 0) {
            while (n > 0)
                close(fds[--n]);
            break;
        }
        fds[n++] = fd;
        address_get_port(fd, port, size);
    }
    free(copy);
    return n;
}

int address_listen(int fds[ADDRESS_SOCKETS_MAX], char *port, size_t size, const char *at)
{
    int n = 0;
    for (int tries = 0; at && n == 0 && tries < 100; tries++)
        n = address_bind_list(fds, port, size, at);
    if (!at) {
        fds[0] = address_bind_all();
        n = fds[0] >= 0;
    }
    if (n == 0)
        launcher_die(1, "mpiexec cannot create a socket for its agents: %s.", strerror(errno));
    address_get_port(fds[0], port, size);
    for (int i = 0; i < n; i++)
        if (listen(fds[i], 512) != 0)
            launcher_die(1, "mpiexec cannot listen for its agents: %s.", strerror(errno));
    return n;
}

static void add_address(char *out, size_t size, const char *address)
{
    size_t used = strlen(out);
    if (used + strlen(address) + 2 < size)
        snprintf(out + used, size - used, "%s%s", used ? "," : "", address);
}

/* Returns the bytes of an address in network order; NULL if the address is neither IPv4 nor IPv6. */
static const uint8_t *address_get_bytes(const struct sockaddr *a, unsigned *bits)
{
    *bits = a->sa_family == AF_INET ? 32 : 128;
    if (a->sa_family == AF_INET)
        return (const uint8_t *)&((const struct sockaddr_in *)(const void *)a)->sin_addr;
    return a->sa_family == AF_INET6
               ? (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr
               : NULL;
}

/* True for an address in the network ADDRESS/BITS. */
static bool is_in_network(const struct sockaddr *a, const char *network)
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

static bool is_interface_usable(const struct ifaddrs *a, const char *network)
{
    const struct sockaddr_in6 *six = (const void *)a->ifa_addr;
    unsigned bits;
    if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) || !address_get_bytes(a->ifa_addr, &bits) ||
        (a->ifa_addr->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)))
        return false;
    return network ? strcmp(a->ifa_name, network) == 0 || is_in_network(a->ifa_addr, network)
                   : !(a->ifa_flags & IFF_LOOPBACK);
}

/* Lists every address that an agent could connect to; the loopback last, for agents on this machine. */
void address_list_own(char *out, size_t size, const char *network)
{
    struct ifaddrs *list;
    network = network && *network ? network : NULL;
    if (getifaddrs(&list) == 0) {
        for (struct ifaddrs *a = list; a && !(network && *out); a = a->ifa_next) {
            char text[INET6_ADDRSTRLEN];
            unsigned bits;
            if (is_interface_usable(a, network))
                add_address(out, size,
                            inet_ntop(a->ifa_addr->sa_family, address_get_bytes(a->ifa_addr, &bits), text,
                                      sizeof(text)));
        }
        freeifaddrs(list);
    }
    if (!network)
        add_address(out, size, ADDRESS_LOOPBACK);
}

static bool address_list_has(const char *list, const char *address)
{
    const size_t n = strlen(address);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, address, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    }
    return false;
}

/* Adds the source address of packets to `to`: the local address of a connected UDP socket. */
static void add_source(const struct addrinfo *to, char *out, size_t size)
{
    struct sockaddr_storage from = {0};
    socklen_t len = sizeof(from);
    char text[INET6_ADDRSTRLEN];
    unsigned bits;
    const int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    const struct sockaddr_in6 *six = (const void *)&from;
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *)&from, &len) == 0 &&
        !(from.ss_family == AF_INET6 &&
          (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) || IN6_IS_ADDR_LOOPBACK(&six->sin6_addr))) &&
        inet_ntop(from.ss_family, address_get_bytes((struct sockaddr *)&from, &bits), text, sizeof(text)) &&
        strncmp(text, "127.", 4) != 0 && !address_list_has(out, text))
        add_address(out, size, text);
    close(fd);
}

bool address_find_route_source(char **hosts, uint32_t n, char *out, size_t size)
{
    for (uint32_t i = 0; i < n; i++) {
        struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV}, *info;
        if (address_is_this_machine(hosts[i]))
            continue;
        if (getaddrinfo(hosts[i], "9", &hints, &info) != 0)
            return false;
        for (const struct addrinfo *a = info; a; a = a->ai_next)
            add_source(a, out, size);
        freeaddrinfo(info);
    }
    add_address(out, size, ADDRESS_LOOPBACK);
    return true;
}

int address_start_connect(const char *address, const char *port)
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

bool address_is_this_machine(const char *name)
{
    char self[256];
    if (strcmp(name, "localhost") == 0 || address_is_own(name))
        return true;
    if (gethostname(self, sizeof(self)) != 0)
        return false;
    self[sizeof(self) - 1] = '\0';
    if (strcasecmp(self, name) == 0)
        return true;
    /* Host names are equal if one has a domain and the other has none: "node1" and "node1.example.org". */
    size_t a = strcspn(self, "."), b = strcspn(name, ".");
    return a == b && strncasecmp(self, name, a) == 0 && (!self[a] || !name[b]);
}
