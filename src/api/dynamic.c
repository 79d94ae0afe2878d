/* dynamic.c: dynamic processes: spawning, ports, names (MPI-5.0, chapter 11).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "api/forward.h"
#include "dyn/meet.h"
#include "dyn/names.h"
#include "dyn/spawn.h"
#include "impl.h"
#include "obj/handle.h"

static int check_text_argument(const char *text, const char *what, size_t most)
{
    if (!text || !*text)
        return err_set(MPI_ERR_ARG, "%s is empty", what);
    return strlen(text) < most ? MPI_SUCCESS
                               : err_set(MPI_ERR_ARG, "%s is longer than %zu characters", what, most - 1);
}

int impl_Comm_accept(const char *port_name, struct info *info, int root, struct comm *comm, MPI_Comm *newcomm)
{
    struct comm *made = NULL;
    int rc = comm_check_intra(comm);
    rc = rc ? rc : meet_accept_connection(comm, root, port_name, &made);
    return comm_return_handle(rc, made, newcomm);
}

int impl_Comm_connect(const char *port_name, struct info *info, int root, struct comm *comm,
                      MPI_Comm *newcomm)
{
    struct comm *made = NULL;
    int rc = comm_check_intra(comm);
    rc = rc ? rc : meet_connect(comm, root, port_name, info, &meet_servers, &made);
    return comm_return_handle(rc, made, newcomm);
}

int impl_Publish_name(const char *service_name, struct info *info, const char *port_name)
{
    int rc = check_text_argument(service_name, "service_name", 1 << 16);
    rc = rc ? rc : check_text_argument(port_name, "port_name", MPI_MAX_PORT_NAME);
    return rc ? rc : name_publish(the_proc, service_name, port_name);
}

int impl_Unpublish_name(const char *service_name, struct info *info, const char *port_name)
{
    int rc = check_text_argument(service_name, "service_name", 1 << 16);
    return rc ? rc : name_unpublish(the_proc, service_name, port_name);
}

int impl_Lookup_name(const char *service_name, struct info *info, char *port_name)
{
    int rc = check_text_argument(service_name, "service_name", 1 << 16);
    return rc ? rc : name_lookup(the_proc, service_name, port_name);
}

int impl_Comm_spawn(const char *command, char *argv[], int maxprocs, struct info *info, int root,
                    struct comm *comm, MPI_Comm *intercomm, int array_of_errcodes[])
{
    struct spawn_program one = {.command = command, .argv = argv, .maxprocs = maxprocs, .info = info};
    struct comm *made = NULL;
    int rc = comm_check_intra(comm);
    rc = rc ? rc : spawn_programs(comm, root, MPI_SUCCESS, &one, 1, &made, array_of_errcodes);
    return comm_return_handle(rc, made, intercomm);
}

/* Called at the root: allocates a list of the programs of MPI_Comm_spawn_multiple. */
static int spawn_list_programs(int count, char *commands[], char **argvs[], const int maxprocs[],
                               const MPI_Info infos[], struct spawn_program **out)
{
    if (count <= 0)
        return err_set(MPI_ERR_ARG, "count is %d; it must be at least 1", count);
    if (!commands || !maxprocs || !infos)
        return err_set(MPI_ERR_ARG,
                       "array_of_commands, array_of_maxprocs or array_of_info is a null pointer");
    struct spawn_program *list = calloc((size_t)count, sizeof(*list));
    int rc = list ? MPI_SUCCESS : err_set(MPI_ERR_NO_MEM, "out of memory: cannot spawn %d programs", count);
    for (int i = 0; i < count && !rc; i++) {
        list[i] = (struct spawn_program){.command = commands[i],
                                         .argv = argvs ? argvs[i] : NULL,
                                         .maxprocs = maxprocs[i],
                                         .info = info_from(the_proc, infos[i])};
        if (!list[i].info && infos[i] != MPI_INFO_NULL)
            rc = err_set(MPI_ERR_INFO, "array_of_info[%d] is not an info object", i);
    }
    *out = list;
    return rc;
}

int impl_Comm_spawn_multiple(int count, char *array_of_commands[], char **array_of_argv[],
                             const int array_of_maxprocs[], const MPI_Info array_of_info[], int root,
                             struct comm *comm, MPI_Comm *intercomm, int array_of_errcodes[])
{
    struct spawn_program *programs = NULL;
    struct comm *made = NULL;
    int rc = comm_check_intra(comm), root_error = MPI_SUCCESS;
    if (!rc && comm->rank == root)
        root_error = spawn_list_programs(count, array_of_commands, array_of_argv, array_of_maxprocs,
                                         array_of_info, &programs);
    rc = rc ? rc : spawn_programs(comm, root, root_error, programs, count, &made, array_of_errcodes);
    free(programs);
    return comm_return_handle(rc, made, intercomm);
}
