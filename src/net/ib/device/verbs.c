/* verbs.c: finds and loads a libibverbs.
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

struct wanted {
    void **function;
    const char *name;
};

/* Finds all functions of a group, or sets all to NULL. */
static void find_all_symbols(void *library, const struct wanted *wanted, size_t count)
{
    bool all = true;
    for (size_t i = 0; i < count; i++)
        all &= (*wanted[i].function = dlsym(library, wanted[i].name)) != NULL;
    for (size_t i = 0; !all && i < count; i++)
        *wanted[i].function = NULL;
}

static void find_barrier(void *library, struct verbs *out)
{
    const struct wanted wanted[] = {
        {(void **)(void *)&out->barrier.get_id, "softib_barrier_get_id"},
        {(void **)(void *)&out->barrier.join, "softib_barrier_join"},
        {(void **)(void *)&out->barrier.enter, "softib_barrier_enter"},
        {(void **)(void *)&out->barrier.test, "softib_barrier_test"},
        {(void **)(void *)&out->barrier.leave, "softib_barrier_leave"},
        {(void **)(void *)&out->barrier.free, "softib_barrier_free"},
    };
    find_all_symbols(library, wanted, COUNT_OF(wanted));
}

static void find_wires_symbols(void *library, struct verbs *out)
{
    const struct wanted wanted[] = {
        {(void **)(void *)&out->wires.hosts, "softib_wires_hosts"},
        {(void **)(void *)&out->wires.take, "softib_wires_take"},
        {(void **)(void *)&out->wires.give_back, "softib_wires_give_back"},
        {(void **)(void *)&out->wires.plug, "softib_wires_plug"},
        {(void **)(void *)&out->wires.enter, "softib_wires_enter"},
        {(void **)(void *)&out->wires.test, "softib_wires_test"},
        {(void **)(void *)&out->wires.unplug, "softib_wires_unplug"},
    };
    find_all_symbols(library, wanted, COUNT_OF(wanted));
}

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
    *(void **)(void *)&out->reg_dmabuf_mr = dlsym(library, "ibv_reg_dmabuf_mr");
    find_barrier(library, out);
    find_wires_symbols(library, out);
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

/* In a build folder and in an installation softib's library lies in a folder of its own, so that nobody gets
 * it by accident. */
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
