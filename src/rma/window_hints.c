/* window_hints.c: the info keys that windows know (MPI-5.0, 12.2.1 and 12.2.3). Other keys are ignored.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "base/tunable.h"
#include "obj/hints.h"
#include "rma/win.h"

static const struct {
    const char *key, *preset;
    const char *const *allowed; /* NULL: any text */
} hints[] = {
#define BOOLEAN               \
    (const char *const[])     \
    {                         \
        "true", "false", NULL \
    }
    {"no_locks", "false", BOOLEAN},
    {"accumulate_ordering", "rar,raw,war,waw", NULL},
    {"accumulate_ops", "same_op_no_op", (const char *const[]){"same_op", "same_op_no_op", NULL}},
    {"mpi_accumulate_granularity", "0", NULL},
    {"same_size", "false", BOOLEAN},
    {"same_disp_unit", "false", BOOLEAN},
    {"alloc_shared_noncontig", "false", BOOLEAN},
    {"fishplate_accumulate_by", NULL, (const char *const[]){"processor", "adapter", NULL}},
    {"fishplate_help", "auto", (const char *const[]){"auto", "true", "false", NULL}},
};

static const char *hint_accepted_value(const char *value, const char *const *allowed)
{
    if (!value || !allowed)
        return value;
    for (; *allowed; allowed++)
        if (strcasecmp(value, *allowed) == 0)
            return *allowed;
    return NULL;
}

int win_hints_apply(struct win *w, const struct info *info)
{
    int rc = MPI_SUCCESS;
    for (size_t i = 0; info && i < COUNT_OF(hints) && !rc; i++) {
        const char *value = hint_accepted_value(info_get(info, hints[i].key), hints[i].allowed);
        if (!value)
            continue;
        rc = w->info ? MPI_SUCCESS : info_create(&w->info);
        rc = rc ? rc : info_set(w->info, hints[i].key, value);
    }
    const char *by = w->info ? info_get(w->info, "fishplate_accumulate_by") : NULL;
    w->by = !by ? BY_ANY : strcmp(by, "adapter") == 0 ? BY_ADAPTER : BY_PROCESSOR;
    const char *help = w->info ? info_get(w->info, "fishplate_help") : NULL;
    w->help = !help || strcmp(help, "auto") == 0 ? HELP_AUTO : strcmp(help, "true") == 0 ? HELP_ON : HELP_OFF;
    w->no_locks = info_get_bool(w->info, "no_locks", false);
    const char *order = w->info ? info_get(w->info, "accumulate_ordering") : NULL;
    w->unordered = order && strcasecmp(order, "none") == 0;
    const char *granularity = w->info ? info_get(w->info, "mpi_accumulate_granularity") : NULL;
    int64_t bytes;
    const bool valid = granularity && tunable_parse_number(granularity, false, &bytes);
    w->locked_bytes = valid && bytes > 0 ? (size_t)bytes : 0;
    return rc;
}

int win_hints_used(const struct win *w, struct info **out)
{
    static const char *const in_use[] = {
        [ATOMICS_PROCESSOR] = "processor", [ATOMICS_ADAPTER] = "adapter", [ATOMICS_BOTH] = "both"};
    struct info *used;
    int rc = info_create(&used);
    if (rc)
        return rc;
    for (size_t i = 0; i < COUNT_OF(hints) && !rc; i++) {
        const char *value = w->info ? info_get(w->info, hints[i].key) : NULL;
        if (strcmp(hints[i].key, "fishplate_accumulate_by") == 0)
            value = in_use[w->atomics]; /* the means in use, not the value of the hint */
        rc = info_set(used, hints[i].key, value ? value : hints[i].preset);
    }
    if (!rc)
        rc = info_set(used, HINT_MEMORY_KINDS, hints_memory_kinds());
    if (rc)
        info_release(used);
    else
        *out = used;
    return rc;
}
