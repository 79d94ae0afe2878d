/* about.c: facts about a profile: time, library and settings, adapter, and the messages that the library sent
 * to each rank, including those of collectives. Everything is read through MPI and MPI_T; variables that a
 * library does not have are omitted.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "prof.h"

enum { CPUS_MAX = 8192 };

extern char **environ;

static char *about; /* formatted in MPI_Init: a process that is about to die cannot query MPI */

/* Writes the environment variables that are settings of the library. */
static void put_settings(FILE *out)
{
    static const char prefix[] = "FISHPLATE_";
    for (char **e = environ; e && *e; e++) {
        char name[64];
        int index;
        const char *equals = strchr(*e, '=');
        if (strncmp(*e, prefix, sizeof(prefix) - 1) != 0 || !equals)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(equals - *e) - (int)(sizeof(prefix) - 1),
                 *e + sizeof(prefix) - 1);
        if (PMPI_T_cvar_get_index(name, &index) == MPI_SUCCESS)
            fprintf(out, "setting %.*s\n", (int)strcspn(*e, "\n"), *e);
    }
}

/* Reads a performance variable of the library, allocated, with its number of elements; NULL: none. */
static void *about_read_variable(const char *name, int class, size_t size, int *count)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int index;
    void *value = NULL;
    if (PMPI_T_pvar_get_index(name, class, &index) != MPI_SUCCESS ||
        PMPI_T_pvar_session_create(&session) != MPI_SUCCESS)
        return NULL;
    if (PMPI_T_pvar_handle_alloc(session, index, NULL, &handle, count) == MPI_SUCCESS &&
        (value = calloc((size_t)*count + 1, size)) &&
        PMPI_T_pvar_read(session, handle, value) != MPI_SUCCESS) {
        free(value);
        value = NULL;
    }
    PMPI_T_pvar_session_free(&session);
    return value;
}

static void put_first_line(FILE *out, const char *path)
{
    char line[64] = "";
    FILE *in = fopen(path, "re");
    if (in && fgets(line, sizeof(line), in))
        line[strcspn(line, "\n")] = '\0';
    if (in)
        fclose(in);
    fprintf(out, "%s", line[0] ? line : "-");
}

/* Writes the boot ID, which identifies the machine of several virtual nodes, and the processors that this
 * process may use. */
static void put_processors(FILE *out)
{
    static unsigned long mask[CPUS_MAX / (8 * sizeof(unsigned long))];
    const size_t word = 8 * sizeof(*mask);
    if (sched_getaffinity(0, sizeof(mask), (cpu_set_t *)mask) != 0)
        return;
    fprintf(out, "processors ");
    put_first_line(out, "/proc/sys/kernel/random/boot_id");
    for (size_t cpu = 0; cpu < CPUS_MAX; cpu++) {
        size_t last = cpu;
        if (!(mask[cpu / word] >> cpu % word & 1))
            continue;
        while (last + 1 < CPUS_MAX && mask[(last + 1) / word] >> (last + 1) % word & 1)
            last++;
        fprintf(out, " %zu-%zu", cpu, last);
        cpu = last;
    }
    fputc('\n', out);
}

void prof_about_begin(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0, provided, count;
    size_t size;
    FILE *out = about ? NULL : open_memstream(&about, &size);
    if (!out)
        return;
    PMPI_Get_library_version(version, &length);
    fprintf(out, "date %lld\nlibrary %.*s\n", (long long)time(NULL), (int)strcspn(version, "\r\n"), version);
    put_processors(out);
    if (PMPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS) {
        char *adapter = about_read_variable("net_adapter", MPI_T_PVAR_CLASS_GENERIC, 1, &count);
        if (adapter)
            fprintf(out, "adapter %s\n", adapter);
        free(adapter);
        put_settings(out);
        PMPI_T_finalize();
    }
    fclose(out);
}

void prof_about_put(FILE *out)
{
    if (about)
        fputs(about, out);
}

/* Writes the speed of large messages: six numbers per link and size class, as described by the variable
 * net_links. */
static void put_links(FILE *out)
{
    enum { WORDS = 6 };
    int n = 0;
    unsigned long long *all = about_read_variable("net_links", MPI_T_PVAR_CLASS_AGGREGATE, sizeof(*all), &n);
    for (int i = 0; all && i + WORDS <= n; i += WORDS)
        if (all[i + 2])
            fprintf(out, "link %llu %llu %llu %llu %llu %llu\n", all[i], all[i + 1], all[i + 2], all[i + 3],
                    all[i + 4], all[i + 5]);
    free(all);
}

void prof_about_put_sent(FILE *out)
{
    int provided, n = 0, k = 0;
    if (PMPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return;
    unsigned long long *messages = about_read_variable("net_sent_messages", MPI_T_PVAR_CLASS_AGGREGATE,
                                                       sizeof(*messages), &n),
                       *bytes = about_read_variable("net_sent_bytes", MPI_T_PVAR_CLASS_AGGREGATE,
                                                    sizeof(*bytes), &k);
    for (int r = 0; messages && bytes && n == k && n == prof.size && r < n; r++)
        if (messages[r])
            fprintf(out, "sent %d %llu %llu\n", r, messages[r], bytes[r]);
    free(messages);
    free(bytes);
    put_links(out);
    PMPI_T_finalize();
}
