/* verbs.c: finds and loads a verbs library.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/device/verbs.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/tunable.h"
#include "base/util.h"
#include "boot/launch_env.h"

/* Finds all functions of a group and stores them in consecutive pointers from `first` on. If one is missing,
 * sets all to NULL. */
static void find_all_symbols(void *library, void *first, const char *const *names, size_t count)
{
    void **function = first;
    bool all = true;
    for (size_t i = 0; i < count; i++)
        all &= (function[i] = dlsym(library, names[i])) != NULL;
    for (size_t i = 0; !all && i < count; i++)
        function[i] = NULL;
}

static const char *const barrier_names[] = {"softib_barrier_get_id", "softib_barrier_join",
                                            "softib_barrier_enter",  "softib_barrier_test",
                                            "softib_barrier_leave",  "softib_barrier_free"};
_Static_assert(sizeof(struct verbs_barrier) == sizeof(barrier_names), "a name for each function");

static const char *const wires_names[] = {
    "softib_wires_hosts", "softib_wires_take", "softib_wires_give_back", "softib_wires_plug",
    "softib_wires_enter", "softib_wires_test", "softib_wires_unplug"};
_Static_assert(sizeof(struct verbs_wires) == sizeof(wires_names), "a name for each function");

int verbs_load(const char *path, struct verbs *out)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return err_set(MPI_ERR_OTHER, "%s cannot be loaded (%s)", path, dlerror());
    *out = (struct verbs){.library = library};
    const char *missing = NULL;
#define VERBS_FIND(result, name, args)                           \
    *(void **)(void *)&out->name = dlsym(library, "ibv_" #name); \
    if (!out->name)                                              \
        missing = "ibv_" #name;
    VERBS_FUNCTIONS(VERBS_FIND)
#undef VERBS_FIND
    *(void **)(void *)&out->query_qp_data_in_order = dlsym(library, "ibv_query_qp_data_in_order");
    *(void **)(void *)&out->query_gid_ex = dlsym(library, "_ibv_query_gid_ex");
    *(void **)(void *)&out->reg_dmabuf_mr = dlsym(library, "ibv_reg_dmabuf_mr");
    find_all_symbols(library, &out->barrier, barrier_names, COUNT_OF(barrier_names));
    find_all_symbols(library, &out->wires, wires_names, COUNT_OF(wires_names));
    out->softib = out->barrier.get_id != NULL;
    if (missing) {
        dlclose(library);
        return err_set(MPI_ERR_OTHER, "%s cannot be used as libibverbs: its function %s is missing", path,
                       missing);
    }
    return 0;
}

void verbs_unload(struct verbs *v)
{
    if (v->library)
        dlclose(v->library);
    v->library = NULL;
}

/* softib's library is always in a separate folder, so that no program loads it by accident. */
static const char *const beside[] = {"softib/libibverbs.so.1", "../softib/libibverbs.so.1",
                                     "../lib/softib/libibverbs.so.1", "fishplate/softib/libibverbs.so.1"};

void verbs_softib_path(char *out, size_t size)
{
    const char *given = env_get(ENV_SOFTIB_LIB);
    snprintf(out, size, "%s", given ? given : "");
    Dl_info me;
    if (given || !dladdr((void *)(uintptr_t)verbs_softib_path, &me) || !me.dli_fname)
        return;
    const char *slash = strrchr(me.dli_fname, '/');
    for (size_t i = 0; slash && i < COUNT_OF(beside); i++) {
        snprintf(out, size, "%.*s/%s", (int)(slash - me.dli_fname), me.dli_fname, beside[i]);
        if (access(out, R_OK) == 0)
            return;
    }
    out[0] = '\0';
}
