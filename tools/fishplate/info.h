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

struct info_section {
    const char *option, *doc;
    bool by_default;
    enum info_job job;
    void (*text)(const struct fishplate_inside *in, const struct info_options *o);
    void (*json)(const struct fishplate_inside *in, const struct info_options *o, struct json *j);
};

void info_build_text(const struct fishplate_inside *in, const struct info_options *o);
void info_build_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j);
void info_api_text(const struct fishplate_inside *in, const struct info_options *o);
void info_api_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j);
void info_tunables_text(const struct fishplate_inside *in, const struct info_options *o);
void info_tunables_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j);
void info_pvars_text(const struct fishplate_inside *in, const struct info_options *o);
void info_pvars_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j);
void info_transports_text(const struct fishplate_inside *in, const struct info_options *o);
void info_transports_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j);
void info_protocols_text(const struct fishplate_inside *in, const struct info_options *o);
void info_protocols_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j);
void info_changed_text(const struct fishplate_inside *in, const struct info_options *o);
void info_changed_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j);
void info_devices_text(const struct fishplate_inside *in, const struct info_options *o);
void info_devices_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j);
void info_hints_text(const struct fishplate_inside *in, const struct info_options *o);
void info_hints_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j);
void info_coll_text(const struct fishplate_inside *in, const struct info_options *o);
void info_coll_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j);

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
void info_tuned_text(const struct fishplate_inside *in, const struct info_options *o);
void info_tuned_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j);

#endif
