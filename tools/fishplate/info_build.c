/* info_build.c: prints the version, the installation folders and the transports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#include "api_list.h"
#include "cli/options.h"
#include "info.h"
#include "io/hints.h"
#include "net/transport.h"

/* Returns the path of the loaded library. */
static const char *library_path(void)
{
    Dl_info where;
    if (dladdr((void *)(size_t)fishplate_inside, &where) && where.dli_fname)
        return where.dli_fname;
    return "unknown";
}

void info_build_text(const struct fishplate_inside *in)
{
    printf("fishplate %s\n", in->version);
    printf("MPI %d.%d, standard ABI %d.%d; all %zu functions\n", MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION,
           MPI_ABI_SUBVERSION, in->api_count);
    printf("built with %s\n", FISHPLATE_BUILD);
    printf("library %s\n", library_path());
}

void info_build_json(const struct fishplate_inside *in, struct json *j)
{
    char abi[32], mpi[32];
    (void)in;
    snprintf(mpi, sizeof(mpi), "%d.%d", MPI_VERSION, MPI_SUBVERSION);
    snprintf(abi, sizeof(abi), "%d.%d", MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
    json_record(j, "build", "mpi=%s abi=%s compiler=%s library=%s", mpi, abi, FISHPLATE_BUILD,
                library_path());
}

void info_transports_text(const struct fishplate_inside *in)
{
    printf("Transports (a rank is reached by the first that can)\n");
    for (const struct transport_ops *const *t = in->transports; *t; t++)
        printf("  %-6s %s\n", (*t)->name, (*t)->doc);
}

void info_transports_json(const struct fishplate_inside *in, struct json *j)
{
    json_array(j, "transports");
    for (const struct transport_ops *const *t = in->transports; *t; t++) {
        json_record(j, NULL, "name=%s doc=%s", (*t)->name, (*t)->doc);
    }
    json_end(j);
}

/* `fishplate info --api`: prints the MPI functions of the library, all of MPI 5.0. The generator makes the
 * list and refuses functions without an implementation, so the list is always correct. */

void info_api_text(const struct fishplate_inside *in)
{
    for (size_t i = 0; i < in->api_count; i++) {
        const struct api_entry *e = &in->api[i];
        printf("%-40s %-14s MPI %s\n", e->name, e->chapter, e->since);
    }
    printf("\n%zu functions: all of MPI 5.0.\n", in->api_count);
}

void info_api_json(const struct fishplate_inside *in, struct json *j)
{
    json_object(j, "api");
    json_int(j, "functions", (long long)in->api_count);
    json_array(j, "list");
    for (size_t i = 0; i < in->api_count; i++) {
        const struct api_entry *e = &in->api[i];
        json_record(j, NULL, "name=%s chapter=%s since=%s", e->name, e->chapter, e->since);
    }
    json_end(j);
    json_end(j);
}

/* Prints the info keys (hints) for files that the library knows. */

void info_hints_text(const struct fishplate_inside *in)
{
    printf("Hints of files: keys of the info object that MPI_File_open gets. MPI_File_get_info returns those "
           "in use.\n\n");
    for (size_t i = 0; i < in->hints_count; i++) {
        const struct io_hint_info *h = &in->hints[i];
        printf("%s = %s%s%s\n", h->key, h->values, h->preset[0] ? "; default " : "", h->preset);
        cli_print_text(h->doc, 0, 4, stdout);
    }
}

void info_hints_json(const struct fishplate_inside *in, struct json *j)
{
    json_array(j, "hints");
    for (size_t i = 0; i < in->hints_count; i++) {
        const struct io_hint_info *h = &in->hints[i];
        json_record(j, NULL, "key=%s values=%s default=%s doc=%s", h->key, h->values, h->preset, h->doc);
    }
    json_end(j);
}
