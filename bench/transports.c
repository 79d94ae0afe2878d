/* transports.c: lists each transport by which this rank reaches other ranks, with its adapter. Every report
 * of bench/ prints the list, so that a figure measured in software is not taken for hardware.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

enum { TRANSPORTS_MAX = 8, TEXT_MAX = 256 };

struct transports {
    int count;
    struct route {
        char transport[TEXT_MAX], carrier[32];
        int first, ranks; /* lowest rank reached by this transport, and number of such ranks */
    } route[TRANSPORTS_MAX];
};

static void transports_add(struct transports *w, const char *transport, const char *carrier, int rank)
{
    int i = 0;
    while (i < w->count && strcmp(w->route[i].transport, transport) != 0)
        i++;
    if (i == TRANSPORTS_MAX)
        return;
    if (i == w->count) {
        w->route[w->count++].first = rank;
        snprintf(w->route[i].transport, sizeof(w->route[i].transport), "%s", transport);
        snprintf(w->route[i].carrier, sizeof(w->route[i].carrier), "%s", carrier);
    }
    w->route[i].ranks++;
}

/* Lists the transports from rank 0 to all others, the one to rank 1 first; for one rank the one to itself. */
static struct transports transports_find(const struct bench_host *host, int size)
{
    struct transports w = {0};
    for (int rank = size > 1; host->transport && rank < size; rank++) {
        char transport[TEXT_MAX];
        snprintf(transport, sizeof(transport), "%s", host->transport(rank));
        transports_add(&w, transport, host->carrier ? host->carrier(rank) : "unknown", rank);
    }
    if (w.count == 0) {
        char version[MPI_MAX_LIBRARY_VERSION_STRING], text[TEXT_MAX];
        int length = 0;
        MPI_Get_library_version(version, &length);
        version[strcspn(version, "\r\n")] = 0; /* the version text of some libraries has several lines */
        snprintf(text, sizeof(text), "as %.120s chooses", version);
        transports_add(&w, text, "unknown", 0);
    }
    return w;
}

void bench_transports_describe(const struct bench_host *host, int size, char *out, size_t room)
{
    const struct transports w = transports_find(host, size);
    size_t n = 0;
    for (int i = 0; i < w.count && n < room; i++) {
        const struct route *route = &w.route[i];
        n += (size_t)snprintf(out + n, room - n, "%s%s", i ? "; " : "", route->transport);
        if (n < room && host->transport && size == 1)
            n += (size_t)snprintf(out + n, room - n, ", one rank");
        else if (n < room && host->transport && route->first == 1)
            n += (size_t)snprintf(out + n, room - n, " between ranks 0 and 1");
        else if (n < room && host->transport)
            n += (size_t)snprintf(out + n, room - n, " to %d other rank%s", route->ranks,
                                  route->ranks == 1 ? "" : "s");
    }
}

void bench_transports_json(const struct bench_host *host, int size, struct json *j)
{
    char text[BENCH_TRANSPORTS_MAX];
    const struct transports w = transports_find(host, size);
    bench_transports_describe(host, size, text, sizeof(text));
    json_members(j, "transport=%s carrier=%s", text, w.route[0].carrier);
    json_array(j, "carriers");
    for (int i = 0; i < w.count; i++) {
        int k = 0; /* list a kind of adapter once */
        while (strcmp(w.route[k].carrier, w.route[i].carrier) != 0)
            k++;
        if (k == i)
            json_string(j, NULL, w.route[i].carrier);
    }
    json_end(j);
}
