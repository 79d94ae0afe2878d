/* habits.c: options and variables of other MPI libraries. Options with an equivalent have its effect; for the
 * others mpiexec prints the option to use instead, and continues.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/optdefs.h"

#define NETWORK  "FISHPLATE_VERBS and FISHPLATE_REQUIRE"
#define DEVICES  "FISHPLATE_IB_DEVICES"
#define GPU      "FISHPLATE_GPU; GPU memory is accepted by default"
#define ALL_OURS "fishplate info lists the settings there are"

/* in `settings`: mpiexec handles the variable itself, so no hint is printed */
static const char WORKS[] = "the same";

/* Variables of other MPI libraries by prefix, longer ones first, and their equivalents. Variables without an
 * equivalent are not reported: the modules of a cluster set many, and users can do nothing about them. */
static const struct {
    const char *theirs, *ours;
} settings[] = {
    {"UCX_NET_DEVICES", DEVICES},
    {"UCX_TLS", NETWORK},
    {"UCX_IB_GID_INDEX", "FISHPLATE_IB_GID_INDEX"},
    {"UCX_IB_SL", "FISHPLATE_IB_SERVICE_LEVEL"},
    {"UCX_IB_PKEY", "FISHPLATE_IB_PKEY_INDEX"},
    {"UCX_CUDA_", GPU},
    {"UCX_IB_GPU_DIRECT_RDMA", GPU},
    {"UCX_RNDV_SCHEME", "FISHPLATE_RENDEZVOUS"},
    {"UCX_RNDV_THRESH", "FISHPLATE_EAGER_MAX"},
    {"UCX_LOG_LEVEL", "FISHPLATE_LOG"},
    {"OMPI_MCA_opal_cuda", GPU},
    {"OMPI_MCA_mpi_cuda", GPU},
    {"OMPI_MCA_accelerator", GPU},
    {"OMPI_MCA_btl_smcuda", GPU},
    {"OMPI_MCA_btl_openib_if_", DEVICES},
    {"OMPI_MCA_btl_tcp_if_", DEVICES},
    {"OMPI_MCA_btl", NETWORK},
    {"OMPI_MCA_pml", NETWORK},
    {"OMPI_MCA_mtl", NETWORK},
    {"OMPI_MCA_coll", "FISHPLATE_COLL"},
    {"OMPI_MCA_rmaps", "-map-by and -bind-to"},
    {"OMPI_MCA_hwloc", "-map-by and -bind-to"},
    {"OMPI_MCA_oob_tcp_if_", "-iface NAME"},
    {"OMPI_MCA_plm_rsh", "-launcher-exec"},
    {"OMPI_MCA_mpi_show_mca_params", "fishplate info"},
    {"MV2_USE_CUDA", GPU},
    {"MV2_USE_GPUDIRECT", GPU},
    {"MV2_USE_GDR", GPU},
    {"MV2_CUDA_", GPU},
    {"MV2_IBA_HCA", DEVICES},
    {"MV2_IBA_EAGER_THRESHOLD", "FISHPLATE_EAGER_MAX"},
    {"MV2_RNDV_PROTOCOL", "FISHPLATE_RENDEZVOUS"},
    {"MV2_ENABLE_AFFINITY", "-bind-to"},
    {"MV2_CPU_BINDING", "-bind-to and -map-by"},
    {"MV2_SHOW_ENV_INFO", "fishplate info"},
    {"MV2_USE_SRQ", "FISHPLATE_IB_RECEIVE"},
    {"MV2_USE_RDMA_FAST_PATH", "FISHPLATE_IB_POLLSET"},
    {"MV2_USE_LAZY_MEM_UNREGISTER", "FISHPLATE_REG_CACHE"},
    {"MPIR_CVAR_ENABLE_FT=", WORKS}, /* handled in options.c */
    {"MPIR_CVAR_ENABLE_GPU", GPU},
    {"MPIR_CVAR_CH4_IPC_GPU", GPU},
    {"MPICH_GPU_", GPU},
    {"I_MPI_OFFLOAD", GPU},
    {"I_MPI_DEBUG", "FISHPLATE_LOG=info"},
    {"I_MPI_FABRICS", NETWORK},
    {"I_MPI_PIN", "-bind-to and -map-by"},
    {"I_MPI_ADJUST", "FISHPLATE_COLL"},
    {"HYDRA_LAUNCHER_EXEC", "-launcher-exec"},
    {"HYDRA_LAUNCHER", "-launcher"},
    {"HYDRA_HOST_FILE", "-hostfile"},
};

/* Returns the index of the entry in `settings` for a NAME=value; -1: none, or no hint is needed. */
static int habits_find_setting(const char *entry)
{
    for (size_t i = 0; i < COUNT_OF(settings); i++)
        if (strncmp(entry, settings[i].theirs, strlen(settings[i].theirs)) == 0)
            return settings[i].ours == WORKS ? -1 : (int)i;
    return -1;
}

static void append_setting_hint(struct buf *line, const char *entry, int at)
{
    char *text = xstrf("%s%.*s (here %s)", buf_size(line) ? ", " : "", (int)strcspn(entry, "="), entry,
                       settings[at].ours);
    buf_add(line, text, strlen(text));
    free(text);
}

void options_notice_foreign(const struct options *o, char *const *environment)
{
    enum { NAMED = 4 };
    char *const none[] = {NULL}, *const * lists[] = {environment, o->genv.v ? o->genv.v : none};
    struct buf line = {0};
    unsigned n = 0;
    for (size_t k = 0; k < COUNT_OF(lists); k++)
        for (char *const *e = lists[k]; *e; e++) {
            int at = habits_find_setting(*e);
            if (at >= 0 && ++n <= NAMED)
                append_setting_hint(&line, *e, at);
        }
    if (n > NAMED)
        message_print(
            "Note: variables of other MPI libraries are set and have no effect here: %.*s, and %u more.",
            (int)buf_size(&line), buf_head(&line), n - NAMED);
    else if (n > 0)
        message_print("Note: %s of other MPI libraries %s no effect here: %.*s.",
                      n == 1 ? "a variable" : "variables", n == 1 ? "is set and has" : "are set and have",
                      (int)buf_size(&line), buf_head(&line));
    buf_free(&line);
}

static void set_mca(struct opt_parse *p)
{
    const char *value = p->value;
    if (strncmp(value, "plm_rsh_agent=", 14) == 0) {
        p->o->launcher_exec = value + 14;
        return;
    }
    if (strncmp(value, "rmaps_base_oversubscribe=", 25) == 0) {
        p->o->oversubscribe = true;
        return;
    }
    char *entry = xstrf("OMPI_MCA_%s", value);
    int at = habits_find_setting(entry);
    const char *ours = at >= 0 ? settings[at].ours : NULL;
    message_print("Note: -%s %s is a setting of Open MPI and has no effect here; %s%s.", p->name, value,
                  ours ? "use " : "", ours ? ours : ALL_OURS);
    free(entry);
}

static void set_output_filename(struct opt_parse *p)
{
    const char *value = p->value;
    p->o->out_pattern = xstrf("%s.%%r.out", value);
    p->o->err_pattern = xstrf("%s.%%r.err", value);
    message_print("Note: -%s %s writes to %s.RANK.out and %s.RANK.err (other names: -outfile-pattern, "
                  "-errfile-pattern).",
                  p->name, value, value, value);
}

/* Handles --display map,bind of Open MPI 5: every value shows where ranks run. */
static void set_display(struct opt_parse *p)
{
    p->o->show_map = true;
}

static void set_one_per_node(struct opt_parse *p)
{
    p->o->ppn = 1;
}

/* Handles --bynode and --bind-to-core, old forms of options. */
static void set_obsolete_option(struct opt_parse *p)
{
    const char *name = p->name;
    if (strcmp(name, "bynode") == 0)
        p->o->map_by = MAP_NODE;
    else if (strcmp(name, "byslot") == 0)
        p->o->map_by = MAP_BLOCK;
    else if (strcmp(name, "bind-to-core") == 0)
        p->o->bind = BIND_CORE;
    else if (strcmp(name, "bind-to-socket") == 0)
        p->o->bind = BIND_SOCKET;
    else
        p->o->bind = BIND_NONE;
}

static void habits_ignore_option(struct opt_parse *p)
{
    (void)p;
}

/* The help text of the definition names the replacement. */
static void habits_print_hint(struct opt_parse *p)
{
    message_print("Note: -%s%s%s has no effect here: %s.", p->name, p->value ? " " : "",
                  p->value ? p->value : "", p->def->help);
}

const struct optdef habits[] = {
    {"mca|gmca|omca|prtemca|pmixmca", ARG_NAME_VALUE, "NAME VALUE", "a setting of Open MPI", set_mca},
    {"output-filename", ARG_ONE, "NAME", "where output goes", set_output_filename},
    {"pernode", ARG_NONE, NULL, NULL, set_one_per_node},
    {"display", ARG_ONE, "WHAT", "what is printed about the job", set_display},
    {"display-allocation|display-topo|display-devel-map", ARG_NONE, NULL,
     "-show-map prints the host and the processors of each rank", habits_print_hint},
    {"bynode|byslot|bind-to-core|bind-to-socket|bind-to-none", ARG_NONE, NULL, NULL, set_obsolete_option},
    {"prefix", ARG_ONE, "DIR", "mpiexec is expected at the same path on all hosts", habits_print_hint},
    {"tune|am", ARG_ONE, "FILE", "settings are FISHPLATE_ variables; fishplate info lists them",
     habits_print_hint},
    {"rmk", ARG_ONE, "NAME",
     "jobs of Slurm, PBS, LSF and Grid Engine are recognised, other hosts are named with -hosts",
     habits_print_hint},
    {"timestamp-output", ARG_NONE, NULL, "output is passed on as it is; pipe it through ts",
     habits_print_hint},
    {"merge-stderr-to-stdout", ARG_NONE, NULL, "write 2>&1 after the command", habits_print_hint},
    {"nooversubscribe", ARG_NONE, NULL, "more ranks than slots are started, and a line reports it",
     habits_print_hint},
    {"nolocal", ARG_NONE, NULL, "name the hosts to use with -hosts", habits_print_hint},
    {"use-hwthread-cpus", ARG_NONE, NULL, "use -bind-to hwthread", habits_print_hint},
    {"tv|totalview|debug", ARG_NONE, NULL, "-gdb and -xterm start a debugger", habits_print_hint},
    /* Options of many scripts that have no effect, because mpiexec always works this way. */
    {"allow-run-as-root|q|quiet|hetero-nodes|do-not-resolve", ARG_NONE, NULL, NULL, habits_ignore_option},
};
const unsigned nhabits = COUNT_OF(habits);
