/* library.c: queries the dynamic linker. Its lock is held only during a callback and never while code of a
 * library runs, so that a query cannot deadlock with a constructor that calls MPI.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/memhook/library.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "base/util.h"

struct range {
    uintptr_t start, end;
};

static int library_overlaps(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    const struct range *r = arg;
    if (info->dlpi_name[0] == '\0') /* the program itself, which is never unloaded */
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && start < r->end && r->start < start + p->p_memsz)
            return 1;
    }
    return 0;
}

bool library_holds(uintptr_t start, size_t length)
{
    struct range r = {start, start + length};
    return dl_iterate_phdr(library_overlaps, &r) != 0;
}

static int read_unload_count(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    *(uint64_t *)arg = info->dlpi_subs;
    return 1;
}

uint64_t library_count_unloads(void)
{
    uint64_t n = 0;
    dl_iterate_phdr(read_unload_count, &n);
    return n;
}

/* Valgrind preloads its libraries, vgpreload_*, into every program. */
static int is_valgrind(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    return strstr(info->dlpi_name, "/vgpreload_") != NULL;
}

const char *library_find_tool(void)
{
    static const struct {
        const char *symbol, *name;
    } tools[] = {
        {"__asan_init", "the address sanitizer"},       {"__hwasan_init", "the address sanitizer"},
        {"__tsan_init", "the thread sanitizer"},        {"__msan_init", "the memory sanitizer"},
        {"__lsan_ignore_object", "the leak sanitizer"},
    };
    for (size_t i = 0; i < COUNT_OF(tools); i++)
        if (dlsym(RTLD_DEFAULT, tools[i].symbol))
            return tools[i].name;
    return dl_iterate_phdr(is_valgrind, NULL) ? "valgrind" : NULL;
}
