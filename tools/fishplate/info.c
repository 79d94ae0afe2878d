/* info.c: `fishplate info`: which sections are printed, and how. The sections are in info_*.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
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
    {"--hints", "the info keys of files (MPI_File_open): values, defaults, meaning", false, JOB_NO,
     info_hints_text, info_hints_json},
    {"--pvars", "the counters the library keeps", false, JOB_NO, info_pvars_text, info_pvars_json},
    {"--api", "every MPI function; with FILEs: whether all that these need are there", false, JOB_NO,
     info_api_text, info_api_json},
};
enum { NSECTIONS = sizeof(sections) / sizeof(sections[0]), PAGE_WIDTH = 110 };

static void usage(void)
{
    printf("Usage: fishplate info [sections] [--json]\n"
           "       fishplate info --api [--missing] [--json] FILE...\n\nSections (without any: those marked "
           "*):\n");
    for (int i = 0; i < NSECTIONS; i++)
        printf(" %c %-13s %s\n", sections[i].by_default ? '*' : ' ', sections[i].option, sections[i].doc);
    printf("\nOptions:\n"
           "   --missing     with --api FILE...: only the names of what is not there, one a line\n"
           "   FILE          with --api: a program, library or object; status 1 when it needs what is not "
           "there\n"
           "   --markdown    with --tunables: as docs/tunables.md has it\n"
           "   --json        one JSON document\n\n"
           "A tunable is set in the environment: FISHPLATE_LOG=info mpiexec -n 2 ./program\n");
}

static unsigned section_bit(const char *option)
{
    for (int i = 0; i < NSECTIONS; i++)
        if (strcmp(option, sections[i].option) == 0)
            return 1u << i;
    return 0;
}

static bool parse(struct info_options *o, int argc, char **argv)
{
    for (int a = 1; a < argc; a++) {
        bool known = true;
        if (strcmp(argv[a], "--json") == 0)
            o->json = true;
        else if (strcmp(argv[a], "--missing") == 0)
            o->missing = true;
        else if (strcmp(argv[a], "--markdown") == 0)
            o->markdown = true;
        else if (argv[a][0] != '-')
            argv[++o->nfiles] = argv[a]; /* gathered at the front, where the options have been read */
        else
            known = false;
        const unsigned bit = section_bit(argv[a]);
        o->sections |= bit;
        if (!known && !bit) {
            fprintf(stderr, "fishplate info: unknown option '%s'; --help lists them.\n", argv[a]);
            return false;
        }
    }
    o->files = argv + 1;
    if (o->missing && o->nfiles == 0) {
        fprintf(stderr, "fishplate info: --missing goes with --api and files.\n");
        return false;
    }
    if (o->nfiles > 0 && o->sections != section_bit("--api")) {
        fprintf(stderr, "fishplate info: '%s' is a file; files go with --api alone.\n", o->files[0]);
        return false;
    }
    return true;
}

/* A section asked for alone needs no heading. */
static void print_text(const struct fishplate_inside *in, const struct info_options *o)
{
    bool first = true;
    for (int i = 0; i < NSECTIONS; i++) {
        if (o->sections ? !(o->sections & (1u << i)) : !sections[i].by_default)
            continue;
        if (!first)
            printf("\n");
        first = false;
        sections[i].text(in, o);
    }
}

static void print_json(const struct fishplate_inside *in, const struct info_options *o)
{
    struct json j = {.out = stdout};
    json_object(&j, NULL);
    json_string(&j, "version", in->version);
    for (int i = 0; i < NSECTIONS; i++)
        if (o->sections ? o->sections & (1u << i) : sections[i].by_default)
            sections[i].json(in, o, &j);
    json_end(&j);
}

void info_wrap(const char *text, int indent)
{
    while (*text) {
        size_t room = (size_t)(PAGE_WIDTH - indent), len = strlen(text);
        if (len > room) {
            for (len = room; len > 0 && text[len] != ' ';)
                len--;
            if (len == 0)
                len = strcspn(text, " ");
        }
        printf("%*s%.*s\n", indent, "", (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
}

/* Was this process started as a rank, by mpiexec or another launcher? */
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

int command_info(int argc, char **argv)
{
    struct info_options o = {0};
    for (int a = 1; a < argc; a++)
        if (strcmp(argv[a], "--help") == 0 || strcmp(argv[a], "-h") == 0) {
            usage();
            return 0;
        }
    if (!parse(&o, argc, argv))
        return 2;
    const struct fishplate_inside *in = inside_of_library();
    if (o.nfiles > 0)
        return info_needs(in, &o);
    bool job = needs_job(&o);
    int rank = 0;
    const bool tried = job && started_as_rank() && (o.sections & section_bit("--coll"));
    if (tried)
        info_tried_before();
    if (job) {
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    } else if (in->tunables_load() > 0) {
        in->tunables_report();
    }
    if (o.sections & section_bit("--devices"))
        info_devices_gather(in, job);
    if (tried)
        info_tried_gather();
    if (rank == 0 && o.json)
        print_json(in, &o);
    else if (rank == 0)
        print_text(in, &o);
    if (job)
        MPI_Finalize();
    return 0;
}
