/* library_watch.c: finds the end of the dynamic linker's list of libraries (struct link_map of <link.h>).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/library_watch.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct last_library {
    const struct link_map *first;
    char name[PATH_MAX];
    bool is_known;
};

/* Called with the dynamic linker's lock held: the list does not change meanwhile. */
static int copy_last_library_name(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)info;
    (void)size;
    struct last_library *last = arg;
    const struct link_map *it = last->first;
    while (it->l_next)
        it = it->l_next;
    last->is_known = strlen(it->l_name) < sizeof(last->name);
    if (last->is_known)
        strcpy(last->name, it->l_name);
    return 1;
}

/* The list entry of a library that cannot be unloaded any more; NULL if the library is not loaded. The
 * program itself has an empty name. */
static const struct link_map *pin_library(const char *name)
{
    void *handle = name[0] ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) : dlopen(NULL, RTLD_LAZY);
    struct link_map *map = NULL;
    if (!handle)
        return NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
        map = NULL;
    dlclose(handle);
    return map;
}

void *const *library_watch_get_list_end(void)
{
    struct last_library last = {.first = pin_library("")};
    if (!last.first)
        return NULL;
    dl_iterate_phdr(copy_last_library_name, &last);
    /* Another thread may have loaded or unloaded a library since: then the pinned one is not the last one,
     * its `next` is not NULL, and the caller calls again. */
    const struct link_map *end = last.is_known ? pin_library(last.name) : NULL;
    return end ? (void *const *)(const void *)&end->l_next : NULL;
}
