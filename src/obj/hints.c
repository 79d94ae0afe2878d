/* hints.c: communicator hints: the standard's boolean assertions (false by default), and the memory kinds
 * that the program asserts to use (no default).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/hints.h"

#include <string.h>
#include <strings.h>

#include "gpu/gpu.h"

static const char *const assertions[] = {
    "mpi_assert_allow_overtaking",
    "mpi_assert_exact_length",
    "mpi_assert_no_any_source",
    "mpi_assert_no_any_tag",
    "mpi_assert_strict_persistent_collective_ordering",
    "mpi_assert_strict_start_ordering",
};

static const char *hint_canonical_value(const char *value)
{
    if (!value)
        return NULL;
    if (strcasecmp(value, "true") == 0)
        return "true";
    return strcasecmp(value, "false") == 0 ? "false" : NULL;
}

const char *hints_memory_kinds(void)
{
    return gpu_is_off() ? "system,mpi,mpi:alloc_mem,mpi:win_allocate,mpi:win_allocate_shared"
                        : "system,mpi,mpi:alloc_mem,mpi:win_allocate,mpi:win_allocate_shared,cuda,cuda:host,"
                          "cuda:device,"
                          "cuda:managed";
}

/* True if all memory kinds of the list are known; an assertion about other kinds is ignored. */
static bool are_memory_kinds_known(const char *list)
{
    const char *const known = hints_memory_kinds();
    for (const char *it = list; it; it = strchr(it, ',') ? strchr(it, ',') + 1 : NULL) {
        const size_t length = strcspn(it, ",");
        const char *at = known;
        while (at && (strncmp(at, it, length) != 0 || !strchr(",", at[length])))
            at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
        if (length == 0 || !at)
            return false;
    }
    return true;
}

static int hints_apply_kinds(struct info **kept, const struct info *info)
{
    const char *kinds = info ? info_get(info, HINT_ASSERTED_KINDS) : NULL;
    if (!kinds || !are_memory_kinds_known(kinds))
        return MPI_SUCCESS;
    const int rc = *kept ? MPI_SUCCESS : info_create(kept);
    return rc ? rc : info_set(*kept, HINT_ASSERTED_KINDS, kinds);
}

int hints_apply(struct info **kept, const struct info *info)
{
    for (size_t i = 0; info && i < COUNT_OF(assertions); i++) {
        const char *value = hint_canonical_value(info_get(info, assertions[i]));
        if (!value)
            continue;
        int rc = *kept ? MPI_SUCCESS : info_create(kept);
        if (!rc)
            rc = info_set(*kept, assertions[i], value);
        if (rc)
            return rc;
    }
    return hints_apply_kinds(kept, info);
}

int hints_build_used(const struct info *kept, struct info **out)
{
    struct info *used;
    int rc = info_create(&used);
    if (rc)
        return rc;
    for (size_t i = 0; i < COUNT_OF(assertions) && !rc; i++)
        rc = info_set(used, assertions[i], info_get_bool(kept, assertions[i], false) ? "true" : "false");
    if (!rc)
        rc = info_set(used, HINT_MEMORY_KINDS, hints_memory_kinds());
    const char *kinds = kept ? info_get(kept, HINT_ASSERTED_KINDS) : NULL;
    if (!rc && kinds)
        rc = info_set(used, HINT_ASSERTED_KINDS, kinds);
    const char *hardware = kept ? info_get(kept, HINT_HARDWARE) : NULL;
    if (!rc && hardware)
        rc = info_set(used, HINT_HARDWARE, hardware);
    if (rc) {
        info_release(used);
        return rc;
    }
    *out = used;
    return MPI_SUCCESS;
}
