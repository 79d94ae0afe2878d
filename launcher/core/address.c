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
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/util.h"

/* Both families where the kernel has both. */
int address_listen(char *port, size_t size)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), zero = 0;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
        if (bind(fd, (struct sockaddr *)&six, sizeof(six)) != 0) {
            close(fd);
            fd = -1;
        }
    }
    if (fd < 0) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&four, sizeof(four)) != 0)
            die(1, "mpiexec cannot create a socket for its agents: %s.", strerror(errno));
    }
    union {
        struct sockaddr_in6 six;
        struct sockaddr_in four;
        struct sockaddr any;
    } name;
    socklen_t len = sizeof(name);
    if (listen(fd, 512) != 0 || getsockname(fd, &name.any, &len) != 0)
        die(1, "mpiexec cannot listen for its agents: %s.", strerror(errno));
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

/* Every address an agent could call; the loopback last, for agents on this machine. */
void address_own(char *out, size_t size)
{
    struct ifaddrs *list;
    if (getifaddrs(&list) == 0) {
        for (struct ifaddrs *a = list; a; a = a->ifa_next) {
            char text[INET6_ADDRSTRLEN];
            if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) || (a->ifa_flags & IFF_LOOPBACK))
                continue;
            if (a->ifa_addr->sa_family == AF_INET) {
                struct sockaddr_in *four = (void *)a->ifa_addr;
                add_address(out, size, inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text)));
            } else if (a->ifa_addr->sa_family == AF_INET6) {
                struct sockaddr_in6 *six = (void *)a->ifa_addr;
                if (!IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
                    add_address(out, size, inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text)));
            }
        }
        freeifaddrs(list);
    }
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
