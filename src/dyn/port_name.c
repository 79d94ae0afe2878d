/* port_name.c: formats and parses names of ports (port_name.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "dyn/port_name.h"

#include <arpa/inet.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"

#define HEAD "fishplate:2:"

uint64_t port_name_network_id(void)
{
    char text[128] = "";
    uint64_t hash = HASH_START;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f) {
        if (fgets(text, sizeof(text), f))
            hash = hash_text(hash, text);
        fclose(f);
    }
    const ssize_t n = readlink("/proc/self/ns/net", text, sizeof(text));
    return n > 0 ? hash_add(hash, text, (size_t)n) : hash;
}

socklen_t port_name_local_address(uint64_t local, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "fishplate-port-%016llx",
                           (unsigned long long)local);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

bool port_name_peer_is_own(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

void port_name_write(const struct port_name *name, char *text)
{
    char key[2 * HANDSHAKE_KEY + 1], address[INET_ADDRSTRLEN];
    for (int i = 0; i < HANDSHAKE_KEY; i++)
        snprintf(key + 2 * i, 3, "%02x", name->key[i]);
    int n = snprintf(text, MPI_MAX_PORT_NAME, HEAD "%s:%016llx:%016llx:%u:", key,
                     (unsigned long long)name->network, (unsigned long long)name->local, name->port);
    for (int i = 0; i < name->count; i++)
        n += snprintf(text + n, MPI_MAX_PORT_NAME - (size_t)n, "%s%s", i ? "," : "",
                      inet_ntop(AF_INET, &name->addresses[i], address, sizeof(address)));
}

static bool parse_key(const char *at, uint8_t *key)
{
    if (strspn(at, "0123456789abcdef") !=
        2 * (size_t)HANDSHAKE_KEY) /* sscanf() skips blanks and takes signs */
        return false;
    for (int i = 0; i < HANDSHAKE_KEY; i++, at += 2) {
        unsigned byte;
        if (sscanf(at, "%2x", &byte) != 1)
            return false;
        key[i] = (uint8_t)byte;
    }
    return *at == ':';
}

static void parse_addresses(const char *at, struct port_name *out)
{
    while (*at && out->count < PORT_ADDRESSES) {
        char text[INET_ADDRSTRLEN] = "";
        const size_t len = strcspn(at, ",");
        if (len < sizeof(text))
            memcpy(text, at, len);
        if (inet_pton(AF_INET, text, &out->addresses[out->count]) == 1)
            out->count++;
        at += len + (at[len] == ',');
    }
}

bool port_name_parse(const char *text, struct port_name *out)
{
    unsigned long long network, local;
    unsigned port;
    int used = 0;
    *out = (struct port_name){0};
    if (strncmp(text, HEAD, strlen(HEAD)) != 0)
        return false;
    text += strlen(HEAD);
    if (strlen(text) <= 2 * HANDSHAKE_KEY || !parse_key(text, out->key))
        return false;
    text += 2 * HANDSHAKE_KEY + 1;
    if (sscanf(text, "%16llx:%16llx:%5u:%n", &network, &local, &port, &used) != 3 || !used ||
        port > UINT16_MAX)
        return false;
    out->network = network;
    out->local = local;
    out->port = (uint16_t)port;
    parse_addresses(text + used, out);
    return true;
}
