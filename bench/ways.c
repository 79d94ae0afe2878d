/* ways.c: by what the figures of a report travelled: each way that this rank has to the others, once, with the adapter and
 * what carries the bytes. Every report of bench/ prints it, so that a figure of a program is never taken for hardware.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

enum { WAYS_MAX = 8, TEXT_MAX = 256 };

struct ways {
    int count;
    struct way {
        char transport[TEXT_MAX], carrier[32];
        int first, ranks; /* the lowest rank it leads to, and how many */
    } way[WAYS_MAX];
};

void bench_print_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        if ((unsigned char)*text >= ' ')
            fputc(*text, out);
    }
    fputc('"', out);
}

static void add(struct ways *w, const char *transport, const char *carrier, int rank)
{
    int i = 0;
    while (i < w->count && strcmp(w->way[i].transport, transport) != 0)
        i++;
    if (i == WAYS_MAX)
        return;
    if (i == w->count) {
        w->way[w->count++].first = rank;
        snprintf(w->way[i].transport, sizeof(w->way[i].transport), "%s", transport);
        snprintf(w->way[i].carrier, sizeof(w->way[i].carrier), "%s", carrier);
    }
    w->way[i].ranks++;
}

/* The ways of rank 0 to all others, the one to rank 1 first; a lone rank's way is that to itself. */
static struct ways find(const struct bench_host *host, int size)
{
    struct ways w = {0};
    for (int rank = size > 1; host->transport && rank < size; rank++) {
        char transport[TEXT_MAX];
        snprintf(transport, sizeof(transport), "%s", host->transport(rank));
        add(&w, transport, host->carrier ? host->carrier(rank) : "unknown", rank);
    }
    if (w.count == 0) {
        char version[MPI_MAX_LIBRARY_VERSION_STRING], text[TEXT_MAX];
        int length = 0;
        MPI_Get_library_version(version, &length);
        version[strcspn(version, "\r\n")] = 0; /* some have several lines */
        snprintf(text, sizeof(text), "as %.120s chooses", version);
        add(&w, text, "unknown", 0);
    }
    return w;
}

void bench_ways_describe(const struct bench_host *host, int size, char *out, size_t room)
{
    const struct ways w = find(host, size);
    size_t n = 0;
    for (int i = 0; i < w.count && n < room; i++) {
        const struct way *way = &w.way[i];
        n += (size_t)snprintf(out + n, room - n, "%s%s", i ? "; " : "", way->transport);
        if (n < room && host->transport && size == 1)
            n += (size_t)snprintf(out + n, room - n, ", one rank");
        else if (n < room && host->transport && way->first == 1)
            n += (size_t)snprintf(out + n, room - n, " between ranks 0 and 1");
        else if (n < room && host->transport)
            n += (size_t)snprintf(out + n, room - n, " to %d other rank%s", way->ranks,
                                  way->ranks == 1 ? "" : "s");
    }
}

void bench_ways_json(const struct bench_host *host, int size, FILE *out)
{
    char text[BENCH_WAYS_MAX];
    const struct ways w = find(host, size);
    bench_ways_describe(host, size, text, sizeof(text));
    fputs("\"transport\": ", out);
    bench_print_string(out, text);
    fputs(", \"carrier\": ", out);
    bench_print_string(out, w.way[0].carrier);
    fputs(", \"carriers\": [", out);
    for (int i = 0; i < w.count; i++) {
        int k = 0; /* two adapters may be of one kind */
        while (strcmp(w.way[k].carrier, w.way[i].carrier) != 0)
            k++;
        if (k < i)
            continue;
        fputs(i ? ", " : "", out);
        bench_print_string(out, w.way[i].carrier);
    }
    fputc(']', out);
}
