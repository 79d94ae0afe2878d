/* info_build.c: prints the version, the installation folders and the transports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

#include "info.h"
#include "net/transport.h"

/* Returns the path of the loaded library. */
static const char *library_path(void)
{
    Dl_info where;
    if (dladdr((void *)(size_t)fishplate_inside, &where) && where.dli_fname)
        return where.dli_fname;
    return "unknown";
}

void info_build_text(const struct fishplate_inside *in, const struct info_options *o)
{
    (void)o;
    printf("fishplate %s\n", in->version);
    printf("MPI %d.%d, standard ABI %d.%d; all %zu functions\n", MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION,
           MPI_ABI_SUBVERSION, in->api_count);
    printf("built with %s\n", FISHPLATE_BUILD);
    printf("library %s\n", library_path());
}

void info_build_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j)
{
    char abi[32], mpi[32];
    (void)in, (void)o;
    snprintf(mpi, sizeof(mpi), "%d.%d", MPI_VERSION, MPI_SUBVERSION);
    snprintf(abi, sizeof(abi), "%d.%d", MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
    json_record(j, "build", "mpi=%s abi=%s compiler=%s library=%s", mpi, abi, FISHPLATE_BUILD,
                library_path());
}

void info_transports_text(const struct fishplate_inside *in, const struct info_options *o)
{
    (void)o;
    printf("Transports (a rank is reached by the first that can)\n");
    for (const struct transport_ops *const *t = in->transports; *t; t++)
        printf("  %-6s %s\n", (*t)->name, (*t)->doc);
}

void info_transports_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j)
{
    (void)o;
    json_array(j, "transports");
    for (const struct transport_ops *const *t = in->transports; *t; t++) {
        json_record(j, NULL, "name=%s doc=%s", (*t)->name, (*t)->doc);
    }
    json_end(j);
}
