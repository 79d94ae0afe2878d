/* info.h: a section of `fishplate info` can print itself as text and as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_INFO_H
#define FP_TOOLS_INFO_H

#include "api/inside.h"
#include "cli/json.h"

enum { INFO_SECTIONS_MAX = 16 };

struct info_options {
    bool json, markdown, missing;
    bool wanted[INFO_SECTIONS_MAX];
    unsigned sections;  /* bit i: the i-th section was requested by name */
    const char **files; /* --api: programs and libraries to check */
    int nfiles, files_room;
};

/* Whether rank 0 prints a section between MPI_Init and MPI_Finalize: never, always, or only if a launcher
 * started this process. */
enum info_job { JOB_NO, JOB_YES, JOB_IF_STARTED };

typedef void info_print_text(const struct fishplate_inside *in);
typedef void info_print_json(const struct fishplate_inside *in, struct json *j);

struct info_section {
    const char *option, *doc;
    bool by_default;
    enum info_job job;
    info_print_text *text;
    info_print_json *json;
};

info_print_text info_build_text, info_api_text, info_tunables_text, info_pvars_text, info_transports_text,
    info_protocols_text, info_changed_text, info_devices_text, info_hints_text, info_coll_text,
    info_tuned_text;
info_print_text info_tunables_markdown; /* docs/tunables.md */
info_print_json info_build_json, info_api_json, info_tunables_json, info_pvars_json, info_transports_json,
    info_protocols_json, info_changed_json, info_devices_json, info_hints_json, info_coll_json,
    info_tuned_json;

/* Prints the MPI functions that each of o->files needs. Returns 1 if the library lacks one of them, 2 if a
 * file could not be read, else 0. */
int info_needs(const struct fishplate_inside *in, const struct info_options *o);

/* Examines the adapters of this machine; in a job all ranks call it, and rank 0 gets those of every node. */
void info_devices_gather(const struct fishplate_inside *in, bool job);

/* Runs trials in this job and prints the choices. All ranks call info_tried_prepare() before MPI_Init and
 * info_tried_gather() after it; rank 0 prints. */
void info_tried_prepare(void);
void info_tried_gather(void);
void info_tried_text(void);
void info_tried_json(struct json *j);
void info_tuned_gather(void);

#endif
