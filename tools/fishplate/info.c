/* info.c: `fishplate info`: selects the sections and the output format. The sections are in info_*.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"
#include "info.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static const struct info_section sections[] = {
    {"--build", "version, compiler, place of the library", true, JOB_NO, info_build_text, info_build_json},
    {"--transports", "how bytes get from rank to rank, best first", true, JOB_NO, info_transports_text,
     info_transports_json},
    {"--devices", "network adapters: what they are, which is used and why; under mpiexec those of every node",
     false, JOB_IF_STARTED, info_devices_text, info_devices_json},
    {"--protocols", "between ranks of a job: limits and thresholds (mpiexec -n 2 fishplate info --protocols)",
     false, JOB_YES, info_protocols_text, info_protocols_json},
    {"--tunables", "every setting: value, where it came from, what it does", true, JOB_NO, info_tunables_text,
     info_tunables_json},
    {"--changed", "only the settings that differ from their defaults, and what they were", false, JOB_NO,
     info_changed_text, info_changed_json},
    {"--coll",
     "the algorithms of each collective, and which is chosen when; under mpiexec also what trials find", true,
     JOB_IF_STARTED, info_coll_text, info_coll_json},
    {"--tuned", "what messages of a short trial run have cost, and which protocol is used for each size",
     false, JOB_YES, info_tuned_text, info_tuned_json},
    {"--hints", "the info keys of files (MPI_File_open): values, defaults, meaning", false, JOB_NO,
     info_hints_text, info_hints_json},
    {"--pvars", "the counters the library keeps", false, JOB_NO, info_pvars_text, info_pvars_json},
    {"--api", "every MPI function; with FILEs: whether all that these need are there", false, JOB_NO,
     info_api_text, info_api_json},
};
enum { NSECTIONS = sizeof(sections) / sizeof(sections[0]) };
_Static_assert((int)NSECTIONS <= (int)INFO_SECTIONS_MAX, "a bit and a flag for each section");

static const struct cli_option options[] = {
    CLI_FLAG_LINE("--missing", struct info_options, missing,
                  "with --api FILE...: only the names of missing functions, one a line"),
    CLI_FLAG_LINE("--markdown", struct info_options, markdown, "with --tunables: as docs/tunables.md has it"),
    CLI_FLAG_LINE("--json", struct info_options, json, "one JSON document"), CLI_END};

static void info_print_usage(void)
{
    cli_print_page(
        "Usage: fishplate info [sections] [--json]\n"
        "       fishplate info --api [--missing] [--json] FILE...\n\nSections (without any: those marked "
        "*):\n",
        stdout);
    for (int i = 0; i < NSECTIONS; i++)
        cli_print_text(sections[i].doc,
                       printf(" %c %-13s", sections[i].by_default ? '*' : ' ', sections[i].option), 18,
                       stdout);
    puts("\nOptions:");
    cli_print_options(options, stdout);
    cli_print_page(
        "\n"
        "FILE, with --api, is a program, library or object; the exit status is 1 if it needs functions that "
        "are not there. A tunable is set in the environment.\n\n"
        "Examples:\n"
        "  fishplate info --changed\n"
        "  fishplate info --api ./program\n"
        "  mpiexec -n 2 -hosts n1,n2 fishplate info --devices\n"
        "  FISHPLATE_LOG=info mpiexec -n 2 ./program\n",
        stdout);
}

static unsigned section_bit(const char *option)
{
    for (int i = 0; i < NSECTIONS; i++)
        if (strcmp(option, sections[i].option) == 0)
            return 1u << i;
    return 0;
}

static bool read_file(void *info, const char *name)
{
    struct info_options *o = info;
    if (o->nfiles < o->files_room)
        o->files[o->nfiles++] = name;
    return true;
}

static int info_parse(struct info_options *o, int argc, char **argv)
{
    struct cli_option all[NSECTIONS + sizeof(options) / sizeof(options[0])];
    const struct cli c = {
        .program = "fishplate info", .options = all, .operand = read_file, .operands = "a file"};
    for (int i = 0; i < NSECTIONS; i++)
        all[i] = (struct cli_option)CLI_FLAG_LINE(sections[i].option, struct info_options, wanted[i], NULL);
    memcpy(all + NSECTIONS, options, sizeof(options));
    const int next = cli_parse(&c, argc, argv, o);
    if (next < 0)
        return next;
    for (int i = 0; i < NSECTIONS; i++)
        o->sections |= (unsigned)o->wanted[i] << i;
    if (o->missing && o->nfiles == 0) {
        fprintf(stderr, "fishplate info: --missing goes with --api and files.\n");
        return CLI_INVALID;
    }
    if (o->nfiles > 0 && o->sections != section_bit("--api")) {
        fprintf(stderr, "fishplate info: '%s' is a file; files go with --api alone.\n", o->files[0]);
        return CLI_INVALID;
    }
    return next;
}

/* Prints the selected sections as text. A section requested alone has no heading. */
static void print_text(const struct fishplate_inside *in, const struct info_options *o)
{
    bool first = true;
    for (int i = 0; i < NSECTIONS; i++) {
        if (o->sections ? !(o->sections & (1u << i)) : !sections[i].by_default)
            continue;
        if (!first)
            printf("\n");
        first = false;
        const bool markdown = o->markdown && sections[i].text == info_tunables_text;
        (markdown ? info_tunables_markdown : sections[i].text)(in);
    }
}

static void print_json(const struct fishplate_inside *in, const struct info_options *o)
{
    struct json j = {.out = stdout};
    json_object(&j, NULL);
    json_string(&j, "version", in->version);
    for (int i = 0; i < NSECTIONS; i++)
        if (o->sections ? o->sections & (1u << i) : sections[i].by_default)
            sections[i].json(in, &j);
    json_end(&j);
}

/* True if mpiexec or another launcher started this process as a rank. */
static bool started_as_rank(void)
{
    static const char *const marks[] = {"PMI_RANK", "PMIX_RANK", "FISHPLATE_WORLD_RANK"};
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (getenv(marks[i]))
            return true;
    return false;
}

static bool needs_job(const struct info_options *o)
{
    for (int i = 0; i < NSECTIONS; i++)
        if (o->sections & (1u << i) &&
            (sections[i].job == JOB_YES || (sections[i].job == JOB_IF_STARTED && started_as_rank())))
            return true;
    return false;
}

static int info_run(const struct info_options *o, int *argc, char ***argv)
{
    const struct fishplate_inside *in = get_library_table();
    if (o->nfiles > 0)
        return info_needs(in, o);
    bool job = needs_job(o);
    int rank = 0;
    const bool tried = job && started_as_rank() && (o->sections & section_bit("--coll"));
    if (tried)
        info_tried_prepare();
    if (job) {
        MPI_Init(argc, argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    } else if (in->tunables_load() > 0) {
        in->tunables_report();
    }
    if (o->sections & section_bit("--devices"))
        info_devices_gather(in, job);
    if (tried)
        info_tried_gather();
    if (o->sections & section_bit("--tuned"))
        info_tuned_gather();
    if (rank == 0 && o->json)
        print_json(in, o);
    else if (rank == 0)
        print_text(in, o);
    if (job)
        MPI_Finalize();
    return 0;
}

int command_info(int argc, char **argv)
{
    struct info_options o = {.files = calloc((size_t)argc, sizeof(*o.files)), .files_room = argc};
    const int next = o.files ? info_parse(&o, argc, argv) : CLI_INVALID;
    if (next == CLI_HELP)
        info_print_usage();
    const int status = next < 0 ? (next == CLI_HELP ? 0 : 2) : info_run(&o, &argc, &argv);
    free(o.files);
    return status;
}
