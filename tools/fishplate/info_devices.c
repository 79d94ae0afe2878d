/* info_devices.c: prints the network adapters and GPUs of each node, and which ports are used or why not.
 * Without mpiexec it shows this machine and the ports that a job would use; under mpiexec the ports of every
 * node and those that the job uses.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu.h"
#include "info.h"
#include "net/adapter_port.h"

enum { TAG = 1 };

/* The report of one node; a list. */
struct node {
    struct node *next;
    char host[MPI_MAX_PROCESSOR_NAME];
    char why[512]; /* why the node has no usable port */
    struct net_port *ports;
    int count;
    char why_no_gpu[256];
    struct gpu_device *gpus;
    int gpu_count, driver;
};

static struct node *nodes; /* on rank 0 */

static struct node *devices_describe_node(const struct fishplate_inside *in, bool job)
{
    struct node *n = calloc(1, sizeof(*n));
    size_t count = 0;
    const char *why = "";
    int len = 0;
    if (!n)
        return NULL;
    if (in->ports(&n->ports, &count, &why) != 0)
        snprintf(n->why, sizeof(n->why), "%s", why);
    n->count = (int)count;
    if (in->gpus(&n->gpus, &count, &n->driver, &why) != 0)
        snprintf(n->why_no_gpu, sizeof(n->why_no_gpu), "%s", why);
    n->gpu_count = (int)count;
    if (job)
        MPI_Get_processor_name(n->host, &len);
    else
        snprintf(n->host, sizeof(n->host), "this machine");
    return n;
}

static void send_node(const struct node *n)
{
    MPI_Send(n, (int)sizeof(*n), MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    MPI_Send(n->ports, n->count * (int)sizeof(*n->ports), MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    MPI_Send(n->gpus, n->gpu_count * (int)sizeof(*n->gpus), MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
}

static struct node *receive_node(int rank)
{
    struct node *n = malloc(sizeof(*n));
    if (!n)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Recv(n, (int)sizeof(*n), MPI_BYTE, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    n->ports = calloc((size_t)n->count + 1, sizeof(*n->ports));
    n->gpus = calloc((size_t)n->gpu_count + 1, sizeof(*n->gpus));
    if (!n->ports || !n->gpus)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Recv(n->ports, n->count * (int)sizeof(*n->ports), MPI_BYTE, rank, TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    MPI_Recv(n->gpus, n->gpu_count * (int)sizeof(*n->gpus), MPI_BYTE, rank, TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    return n;
}

/* Gathers the reports at rank 0: the first rank of each node sends one. */
static void devices_gather(void)
{
    MPI_Comm node;
    int rank, size, first;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &first);
    MPI_Comm_free(&node);
    int *is_first = calloc((size_t)size, sizeof(*is_first)), mine = first == 0;
    if (!is_first)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Gather(&mine, 1, MPI_INT, is_first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    struct node **end = &nodes->next;
    for (int r = 1; rank == 0 && r < size; r++)
        if (is_first[r]) {
            *end = receive_node(r);
            (*end)->next = NULL;
            end = &(*end)->next;
        }
    if (rank != 0 && mine)
        send_node(nodes);
    free(is_first);
}

void info_devices_gather(const struct fishplate_inside *in, bool job)
{
    nodes = devices_describe_node(in, job);
    if (job && nodes)
        devices_gather();
}

static const char *gid_text(const struct net_port *p, char out[INET6_ADDRSTRLEN])
{
    return p->gid_index >= 0 && inet_ntop(AF_INET6, p->gid, out, INET6_ADDRSTRLEN) ? out : "none";
}

/* Explains the rate of a port: softib reports 200 Gb/s unless its fabric defines rates. */
static const char *explain_rate(const struct net_port *p)
{
    bool software = p->made != NET_HARDWARE,
         softib = p->made == NET_SOFTIB_MEMORY || p->made == NET_SOFTIB_TCP;
    if (softib && p->rate < 200000)
        return " (nominal: softib keeps to the rate of its fabric)";
    return software ? " (nominal: it is as fast as the processor)" : "";
}

static void print_port(const struct net_port *p)
{
    char name[64], gid[INET6_ADDRSTRLEN], subnet[64];
    net_port_name(p, name, sizeof(name));
    net_port_subnet(p, subnet, sizeof(subnet));
    printf("  %c %-18s %s\n", p->chosen ? '*' : ' ', name, net_port_kind(p));
    if (p->link == NET_WIRES) {
        printf("      %s\n", p->why);
        return;
    }
    printf("      %s, %g Gb/s%s, MTU %u", net_port_state(p), p->rate / 1000.0, explain_rate(p), p->mtu);
    if (p->link == NET_INFINIBAND)
        printf(", LID %u", p->lid);
    if (p->numa >= 0)
        printf(", NUMA node %d%s", p->numa, p->near ? "" : " (far from this process)");
    if (p->firmware[0])
        printf(", firmware %s", p->firmware);
    printf("\n      GID %s (entry %d), %s\n", gid_text(p, gid), p->gid_index, subnet);
    printf("      %s: %s\n", p->chosen ? "used between nodes" : "not used", p->why);
}

static void print_gpus(const struct node *n)
{
    printf("\nGPUs of %s\n", n->host);
    for (int i = 0; i < n->gpu_count; i++) {
        const struct gpu_device *g = &n->gpus[i];
        printf("  %d %s, %.1f GiB, compute capability %d.%d, PCI %s, driver for CUDA %d.%d\n", i, g->name,
               (double)g->bytes / (1 << 30), g->compute_major, g->compute_minor, g->pci, n->driver / 1000,
               n->driver % 1000 / 10);
        printf("      between ranks of the node: a GPU copies memory of cuMemAlloc (by CUDA IPC) and of "
               "cuMemCreate (by descriptor); other memory moves through host memory\n");
        printf("      MPS: %s\n",
               g->has_mps ? "on: ranks use the GPU at the same time"
                          : "off: ranks that use the same GPU in turns wait about 140 us for each turn; "
                            "nvidia-cuda-mps-control -d avoids that");
        printf("      between nodes: %s\n",
               g->has_dmabuf ? "adapters that register dma-buf access GPU memory; else host memory"
               : g->has_direct_rdma
                   ? "adapters access GPU memory if nv_peer_mem is loaded; else host memory"
                   : "host memory, since the driver reports neither dma-buf nor GPUDirect RDMA");
    }
    if (n->gpu_count == 0)
        printf("  none: %s.\n", n->why_no_gpu);
}

void info_devices_text(const struct fishplate_inside *in)
{
    (void)in;
    for (const struct node *n = nodes; n; n = n->next) {
        printf("%sNetwork adapters of %s (* is used between nodes)\n", n == nodes ? "" : "\n", n->host);
        for (int i = 0; i < n->count; i++)
            print_port(&n->ports[i]);
        if (n->count == 0)
            printf("  none: %s.\n  Ranks on different nodes then use softib, a software adapter; "
                   "FISHPLATE_REQUIRE=ib "
                   "forbids that.\n",
                   n->why);
        print_gpus(n);
    }
}

static void json_port(struct json *j, const struct net_port *p)
{
    char gid[INET6_ADDRSTRLEN], subnet[64];
    net_port_subnet(p, subnet, sizeof(subnet));
    json_object(j, NULL);
    json_members(j, "device=%s port=%d state=%s link=%s kind=%s made=%s", p->device, p->port,
                 net_port_state(p), net_port_link(p), net_port_kind(p), net_port_implementation(p));
    json_bool(j, "software", p->made != NET_HARDWARE);
    json_members(j, "rate_gbits=%g mtu=%d lid=%d gid=%s gid_index=%d subnet=%s", p->rate / 1000.0, p->mtu,
                 p->lid, gid_text(p, gid), p->gid_index, subnet);
    json_int(j, "numa_node", p->numa);
    json_bool(j, "near", p->near);
    json_string(j, "firmware", p->firmware);
    json_bool(j, "used", p->chosen);
    json_string(j, "why", p->why);
    json_end(j);
}

static void json_gpus(struct json *j, const struct node *n)
{
    json_string(j, "why_no_gpu", n->why_no_gpu);
    json_array(j, "gpus");
    for (int i = 0; i < n->gpu_count; i++) {
        const struct gpu_device *g = &n->gpus[i];
        json_object(j, NULL);
        json_members(j, "name=%s pci=%s bytes=%lld compute_major=%d compute_minor=%d", g->name, g->pci,
                     (long long)g->bytes, g->compute_major, g->compute_minor);
        json_bool(j, "dmabuf", g->has_dmabuf);
        json_bool(j, "gpudirect_rdma", g->has_direct_rdma);
        json_bool(j, "mps", g->has_mps);
        json_int(j, "cuda_version", n->driver);
        json_end(j);
    }
    json_end(j);
}

void info_devices_json(const struct fishplate_inside *in, struct json *j)
{
    (void)in;
    json_array(j, "devices");
    for (const struct node *n = nodes; n; n = n->next) {
        json_object(j, NULL);
        json_members(j, "host=%s why_none=%s", n->host, n->why);
        json_array(j, "ports");
        for (int i = 0; i < n->count; i++)
            json_port(j, &n->ports[i]);
        json_end(j);
        json_gpus(j, n);
        json_end(j);
    }
    json_end(j);
}
