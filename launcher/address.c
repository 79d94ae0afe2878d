/*
 * Sockets of mpiexec and its agents. Nothing is guessed about which network is the right one: all are
 * offered, all are tried at once, and the first that answers is taken.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util.h"

#define ADDRESSES_MAX 32
#define CONNECT_MS    20000
#define LOOPBACK      "127.0.0.1"

/* Both families where the kernel has both. */
int address_listen(char *port, size_t size)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), zero = 0;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
        if (bind(fd, (struct sockaddr *)&six, sizeof six) != 0) {
            close(fd);
            fd = -1;
        }
    }
    if (fd < 0) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&four, sizeof four) != 0)
            die(1, "No socket for the agents can be made: %s.", strerror(errno));
    }
    union {
        struct sockaddr_in6 six;
        struct sockaddr_in four;
        struct sockaddr any;
    } name;
    socklen_t len = sizeof name;
    if (listen(fd, 512) != 0 || getsockname(fd, &name.any, &len) != 0)
        die(1, "Agents cannot be listened for: %s.", strerror(errno));
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
                add_address(out, size, inet_ntop(AF_INET, &four->sin_addr, text, sizeof text));
            } else if (a->ifa_addr->sa_family == AF_INET6) {
                struct sockaddr_in6 *six = (void *)a->ifa_addr;
                if (!IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
                    add_address(out, size, inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text));
            }
        }
        freeifaddrs(list);
    }
    add_address(out, size, LOOPBACK);
}

/* Begins to connect to one address; -1 when that cannot even be tried. */
static int begin_connect(const char *address, const char *port)
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

/* All at once; the first that answers. */
static int connect_first(struct pollfd *p, nfds_t n)
{
    int chosen = -1;
    uint64_t end = now_ms() + CONNECT_MS;
    for (nfds_t left = n; left > 0 && chosen < 0 && now_ms() < end;) {
        if (poll(p, n, (int)(end - now_ms())) <= 0)
            continue;
        for (nfds_t i = 0; i < n && chosen < 0; i++) {
            int error = 0;
            socklen_t len = sizeof error;
            if (p[i].fd < 0 || !p[i].revents)
                continue;
            getsockopt(p[i].fd, SOL_SOCKET, SO_ERROR, &error, &len);
            if (error == 0) {
                chosen = p[i].fd;
            } else {
                close(p[i].fd);
                left--;
            }
            p[i].fd = -1;
        }
    }
    for (nfds_t i = 0; i < n; i++)
        if (p[i].fd >= 0)
            close(p[i].fd);
    return chosen;
}

/* The loopback is every host's own: whoever answers there is asked only when nobody else does. */
int address_connect(char *addresses, const char *port)
{
    struct pollfd p[ADDRESSES_MAX];
    nfds_t n = 0;
    char *save = NULL;
    bool loopback = false;
    for (char *w = strtok_r(addresses, ",", &save); w && n < ADDRESSES_MAX; w = strtok_r(NULL, ",", &save)) {
        if (strcmp(w, LOOPBACK) == 0) {
            loopback = true;
            continue;
        }
        int fd = begin_connect(w, port);
        if (fd >= 0)
            p[n++] = (struct pollfd){.fd = fd, .events = POLLOUT};
    }
    int chosen = connect_first(p, n);
    if (chosen < 0 && loopback) {
        p[0] = (struct pollfd){.fd = begin_connect(LOOPBACK, port), .events = POLLOUT};
        chosen = p[0].fd < 0 ? -1 : connect_first(p, 1);
    }
    return chosen;
}
