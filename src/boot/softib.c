/* softib.c: the first rank of each node publishes the node's addresses; rank 0 combines them in a
 * description, which all ranks fetch. softib tries which of the addresses can be reached.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "boot/softib.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/addresses.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/tunable.h"
#include "base/util.h"
#include "boot/launch_env.h"

#define ADDRESSES_MAX 8    /* of one port: limit of softib */
#define PORTS_MAX     1024 /* of a fabric: limit of softib */
/* TCP and UDP ports, below the range of ephemeral ports. A node needs a port for each of its ranks. */
#define BASE_FIRST 10240u
#define BASE_END   32768u
#define BASE_SPAN  1024u

/* Writes a name that is equal only for processes that can share softib's memory: of one machine, network
 * namespace, process namespace and user. Equal host names are no proof of that. */
static void softib_get_machine_name(char *out, size_t size)
{
    char boot_id[64] = "", net[32] = "", pid[32] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f) {
        if (!fgets(boot_id, sizeof(boot_id), f))
            boot_id[0] = '\0';
        boot_id[strcspn(boot_id, "\n")] = '\0';
        fclose(f);
    }
    ssize_t n = readlink("/proc/self/ns/net", net, sizeof(net) - 1);
    net[n > 0 ? n : 0] = '\0';
    n = readlink("/proc/self/ns/pid", pid, sizeof(pid) - 1);
    pid[n > 0 ? n : 0] = '\0';
    snprintf(out, size, "%s.%s.%s.%u", boot_id, net, pid, (unsigned)getuid());
}

static uint32_t count_addresses(const char *list)
{
    uint32_t n = *list != '\0';
    for (; *list; list++)
        n += *list == ',';
    return n;
}

static bool nodes_share_machine(const struct softib_node *nodes, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (strcmp(nodes[i].machine, nodes[0].machine) != 0)
            return false;
    return true;
}

/* Returns the number of rails: the least number of addresses of a node, limited by PORTS_MAX. */
static uint32_t softib_count_rails(const struct softib_node *nodes, uint32_t n)
{
    uint32_t least = ADDRESSES_MAX;
    for (uint32_t i = 0; i < n; i++)
        least = MIN(least, count_addresses(nodes[i].addresses));
    return MAX(MIN(least, PORTS_MAX / n), 1u);
}

/* The number of nodes before node i that are on its machine. */
static uint32_t count_preceding_nodes(const struct softib_node *nodes, uint32_t i)
{
    uint32_t before = 0;
    for (uint32_t k = 0; k < i; k++)
        before += strcmp(nodes[k].machine, nodes[i].machine) == 0;
    return before;
}

static uint32_t most_nodes_of_machine(const struct softib_node *nodes, uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = MAX(most, count_preceding_nodes(nodes, i) + 1);
    return most;
}

/* The nodes of a machine use adjacent ranges of `span` TCP and UDP ports, the first one from `base`. */
static void describe_node(FILE *f, const struct softib_node *nodes, uint32_t i, uint32_t base, uint32_t span)
{
    const uint32_t before = count_preceding_nodes(nodes, i);
    fprintf(f, " node%u:", i);
    if (before)
        fprintf(f, " base=%u", base + before * span);
    for (const char *p = nodes[i].addresses; *p;) {
        size_t len = strcspn(p, ",");
        fprintf(f, " addr=%.*s", (int)len, p);
        p += len + (p[len] == ',');
    }
}

char *softib_describe(const struct softib_node *nodes, uint32_t n, uint64_t job)
{
    char *text = NULL;
    size_t size;
    const uint32_t most = most_nodes_of_machine(nodes, n), ports = BASE_END - BASE_FIRST;
    const uint32_t span = MIN(BASE_SPAN, ports / (most + 1));
    const uint32_t base = BASE_FIRST + (uint32_t)(job % (ports - most * span));
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    if (nodes_share_machine(nodes, n)) {
        fprintf(f, "nodes=%u name=%016llx", n, (unsigned long long)job);
    } else {
        fprintf(f, "nodes=%u ports=%u wire=tcp base=%u name=%016llx", n, softib_count_rails(nodes, n), base,
                (unsigned long long)job);
        for (uint32_t i = 0; i < n; i++)
            describe_node(f, nodes, i, base, span);
    }
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int publish_node(struct boot *b)
{
    struct softib_node me;
    memset(&me, 0, sizeof(me));
    softib_get_machine_name(me.machine, sizeof(me.machine));
    addresses_format_list(me.addresses, sizeof(me.addresses), ADDRESSES_MAX);
    return boot_put(b, "softib.node", &me, sizeof(me));
}

/* Describes that rank `rank` uses an InfiniBand port and this rank, which found none, would use softib. */
static int softib_error_differs(struct boot *b, uint32_t rank)
{
    return err_set(
        MPI_ERR_OTHER,
        "No InfiniBand or RoCE port is active on %s, but rank %u, on another node, uses one. Bring a port "
        "up on this host, or set FISHPLATE_VERBS=softib for all ranks.",
        b->host, rank);
}

/* At rank 0: collects the addresses of all nodes from the first rank of each. */
static int collect_nodes(struct boot *b, struct softib_node *nodes)
{
    uint32_t next = 0; /* nodes are numbered in the order of their first ranks */
    for (uint32_t r = 0; r < b->size && next < b->nnodes; r++) {
        void *value;
        size_t len;
        if (b->node_of[r] != next)
            continue;
        if (boot_get(b, r, "softib.node", &value, &len) != 0)
            return softib_error_differs(b, r);
        if (len == sizeof(*nodes)) {
            memcpy(&nodes[next], value, len);
            nodes[next].machine[sizeof(nodes->machine) - 1] = '\0';
            nodes[next].addresses[sizeof(nodes->addresses) - 1] = '\0';
        }
        free(value);
        if (len != sizeof(*nodes))
            return err_set(MPI_ERR_OTHER,
                           "Rank %u uses a different version of the MPI library than rank "
                           "0. Install the same version on all hosts.",
                           r);
        next++;
    }
    return 0;
}

static int publish_fabric(struct boot *b, bool asked_for)
{
    if (b->nnodes > PORTS_MAX)
        return err_set(
            MPI_ERR_OTHER,
            "No InfiniBand or RoCE port is active. The software adapter connects at most %u nodes, and "
            "this job has %u.",
            PORTS_MAX, b->nnodes);
    struct softib_node *nodes = calloc(b->nnodes, sizeof(*nodes));
    if (!nodes)
        return err_set(MPI_ERR_NO_MEM, "Out of memory for the description of %u nodes.", b->nnodes);
    int rc = collect_nodes(b, nodes);
    char *text = rc ? NULL : softib_describe(nodes, b->nnodes, hash_text(HASH_START, b->job));
    if (rc == 0 && !text)
        rc = err_set(MPI_ERR_NO_MEM, "Out of memory for the description of %u nodes.", b->nnodes);
    if (rc == 0) {
        rc = boot_put(b, "softib.fabric", text, strlen(text));
        if (!asked_for)
            log_warn("no InfiniBand or RoCE port is active: the %u nodes are connected by software over %s",
                     b->nnodes, nodes_share_machine(nodes, b->nnodes) ? "this machine's memory" : "TCP");
    }
    free(text);
    free(nodes);
    return rc;
}

/* The key with which processes of this job authenticate each other on the network. Rank 0 creates it and
 * publishes it through the launcher. */
#define KEY_BYTES 16

static int publish_key(struct boot *b)
{
    unsigned char key[KEY_BYTES];
    char text[2 * KEY_BYTES + 1];
    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
        return err_set(MPI_ERR_OTHER, "The kernel gave no random bytes (getrandom) for the key of the "
                                      "software fabric.");
    for (int i = 0; i < KEY_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", key[i]);
    return boot_put(b, "softib.key", text, sizeof(text));
}

static int fetch_key(struct boot *b)
{
    void *text = NULL;
    size_t len;
    int rc = boot_get(b, 0, "softib.key", &text, &len);
    if (rc == 0 && (len != 2 * KEY_BYTES + 1 || ((char *)text)[len - 1]))
        rc = err_set(MPI_ERR_OTHER, "Rank 0 uses a different version of the MPI library. Install the same "
                                    "version on all hosts.");
    if (rc == 0 && setenv(ENV_SOFTIB_KEY, text, 0) != 0)
        rc = err_set(MPI_ERR_NO_MEM, "Out of memory for the key of the software fabric.");
    free(text);
    return rc;
}

/* True if the fabric uses TCP, or is described by a file that may select TCP, and the user gave no key. */
static bool needs_published_key(const char *fabric)
{
    return !env_get(ENV_SOFTIB_KEY) && !env_get(ENV_SOFTIB_KEY "_FILE") &&
           (strstr(fabric, "wire=tcp") || *fabric == '/' || *fabric == '.');
}

int boot_softib_publish_node(struct boot *b)
{
    return b->nnodes < 2 || env_get(ENV_SOFTIB_FABRIC) || b->local_rank != 0 ? 0 : publish_node(b);
}

int boot_softib_publish_fabric(struct boot *b, bool asked_for)
{
    const char *fabric = env_get(ENV_SOFTIB_FABRIC);
    if (b->nnodes < 2)
        return 0;
    int rc = fabric ? 0 : publish_fabric(b, asked_for);
    return rc == 0 && (!fabric || needs_published_key(fabric)) ? publish_key(b) : rc;
}

int boot_softib_set_environment(struct boot *b)
{
    void *text = NULL;
    size_t len;
    char node[16];
    const char *fabric = env_get(ENV_SOFTIB_FABRIC);
    if (b->nnodes < 2)
        return 0;
    if (fabric)
        return needs_published_key(fabric) ? fetch_key(b) : 0;
    int rc = boot_get(b, 0, "softib.fabric", &text, &len);
    if (rc)
        return rc;
    snprintf(node, sizeof(node), "%u", b->node);
    if (setenv(ENV_SOFTIB_FABRIC, text, 1) != 0 || setenv(ENV_SOFTIB_NODE, node, 1) != 0)
        rc = err_set(MPI_ERR_NO_MEM, "Out of memory for the description of the nodes.");
    if (rc == 0 && needs_published_key(text))
        rc = fetch_key(b);
    free(text);
    return rc;
}
