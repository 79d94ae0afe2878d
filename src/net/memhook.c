/* memhook.c: installs the hooks, tests them, notifies the listeners, and removes the hooks. A hook is a jump
 * at the beginning of a function of libc (memhook/jump.h) to its replacement (memhook/replace.h). Patching
 * only the program's table of imported functions (GOT) would miss the most important case: free() calls
 * munmap inside libc.
 *
 * The code is shared by the whole process, so this state does not belong to a rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/memhook.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rawcall.h"
#include "base/tunable.h"
#include "base/util.h"
#include "net/memhook/jump.h"
#include "net/memhook/library.h"
#include "net/memhook/patch.h"
#include "net/memhook/replace.h"
#include "net/memhook/selftest.h"

enum { HOOKS_AUTO, HOOKS_OFF };
static TUNABLE_CHOICE(mem_hooks, "MEM_HOOKS", HOOKS_AUTO, "auto|off",
                      "Notice when memory is returned to the system, by patching functions of the C library "
                      "in memory (auto). Without it (off) no memory stays registered between messages.");

struct hook {
    uint8_t *entry;
    struct jump jump;
    uint8_t saved[JUMP_MAX];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects all of this state but `listeners` */
static struct hook hooks[REPLACEMENTS];
static int installed; /* number of hooks in place */
static int users;     /* number of listeners, without the self-test */
static uint8_t *islands;
static const char *broken; /* why hooks cannot be used in this process; NULL: not known to fail */

/* Shared with the replacements, which run in any thread. */
enum { LISTENERS = 4 + 1 }; /* one is the self-test's */
static struct {
    _Atomic(memhook_fn *) fn;
    void *_Atomic ctx;
} listeners[LISTENERS];
static _Atomic int telling; /* threads that call listeners now */

void memhook_notify_listeners(uintptr_t start, size_t length)
{
    atomic_fetch_add(&telling, 1);
    for (int i = 0; i < LISTENERS; i++) {
        memhook_fn *fn = atomic_load(&listeners[i].fn);
        if (fn)
            fn(atomic_load(&listeners[i].ctx), start, length);
    }
    atomic_fetch_sub(&telling, 1);
}

/* Resets the counts of running listeners in a forked child, which has no other threads. */
static void after_fork_child(void)
{
    atomic_store(&telling, 0);
}

static bool listener_add(memhook_fn *fn, void *ctx)
{
    for (int i = 0; i < LISTENERS; i++) {
        if (atomic_load(&listeners[i].fn))
            continue;
        atomic_store(&listeners[i].ctx, ctx);
        atomic_store(&listeners[i].fn, fn);
        return true;
    }
    return false;
}

/* Removes a listener and waits for threads that are calling it, which takes only a few instructions. */
static bool listener_remove(memhook_fn *fn, void *ctx)
{
    bool found = false;
    for (int i = 0; i < LISTENERS && !found; i++) {
        if (atomic_load(&listeners[i].fn) == fn && atomic_load(&listeners[i].ctx) == ctx) {
            atomic_store(&listeners[i].fn, NULL);
            found = true;
        }
    }
    while (atomic_load(&telling) != 0)
        sched_yield();
    return found;
}

static bool is_patch_in_place(const struct hook *h)
{
    return memcmp(h->entry + h->jump.skip, h->jump.bytes, h->jump.length) == 0;
}

/* True if the patches are still in place. Checked for every message, so only the last four bytes of a jump, its
 * distance, are compared. */
bool memhook_is_intact(void)
{
    uint32_t differs = 0;
    for (int i = 0; i < installed; i++) {
        const struct hook *h = &hooks[i];
        uint32_t now, then;
        memcpy(&now, h->entry + h->jump.skip + h->jump.length - 4, 4);
        memcpy(&then, h->jump.bytes + h->jump.length - 4, 4);
        differs |= now ^ then;
    }
    return differs == 0;
}

/* Removes the patches that are still ours. If another tool has patched a function since, its patch may still
 * jump to ours: then this library must stay loaded, and the hooks must not be installed again, or both
 * patches would call each other in a circle. */
static void memhook_uninstall(const struct jump_code *code)
{
    bool clean = true;
    for (int i = 0; i < installed; i++) {
        struct hook *h = &hooks[i];
        clean &= is_patch_in_place(h) && patch_write(code, h->entry + h->jump.skip, h->saved, h->jump.length);
    }
    installed = 0;
    if (clean)
        return;
    broken = "another tool has changed functions of libc after Fishplate";
    Dl_info self;
    if (dladdr((void *)memhook_open, &self) && self.dli_fname)
        dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static bool memhook_is_patched(const uint8_t *entry, int n)
{
    for (int i = 0; i < n; i++)
        if (hooks[i].entry == entry)
            return true;
    return false;
}

/* Finds the functions of libc to patch. Returns NULL, or the reason why a function is missing. *found: number
 * of functions to patch. */
static const char *find_functions_to_patch(int *found, uintptr_t *low, uintptr_t *high,
                                           const struct replacement **which)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (!libc)
        return "this is not the GNU C library";
    *low = UINTPTR_MAX;
    *high = 0;
    *found = 0;
    const char *missing = NULL;
    for (int i = 0; i < REPLACEMENTS; i++) {
        uint8_t *entry = dlsym(libc, replacements[i].name);
        if (!entry && !replacements[i].optional)
            missing = "a function is missing in libc";
        if (!entry || memhook_is_patched(entry, *found))
            continue;
        which[*found] = &replacements[i];
        hooks[(*found)++].entry = entry;
        *low = MIN(*low, (uintptr_t)entry);
        *high = MAX(*high, (uintptr_t)entry);
    }
    dlclose(libc);
    return missing;
}

/* Creates the islands (code to which the patches jump), once: a thread may still execute one when the hooks are
 * removed. */
static const char *create_islands(const struct jump_code *code, int found, uintptr_t low, uintptr_t high,
                                  const struct replacement **which)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (islands)
        return NULL;
    uint8_t *at = patch_page_near(low, high, code->reach, page);
    if (!at)
        return "there is no free address range near libc";
    for (int i = 0; i < found; i++)
        code->island(at + (size_t)i * code->island_size, (uintptr_t)which[i]->function);
    if (!patch_seal(at, page))
        return "the system does not allow executable memory";
    islands = at;
    return NULL;
}

static const char *memhook_install(const struct jump_code *code)
{
    const struct replacement *which[REPLACEMENTS];
    uintptr_t low, high;
    int found = 0;
    const char *problem = replacements_prepare();
    if (!problem)
        problem = find_functions_to_patch(&found, &low, &high, which);
    if (!problem)
        problem = create_islands(code, found, low, high, which);
    for (int i = 0; i < REPLACEMENTS; i++)
        *replacements[i].another = 0;
    for (int i = 0; i < found && !problem; i++) {
        struct hook *h = &hooks[i];
        uintptr_t other = code->follow(h->entry, (uintptr_t)h->entry);
        if (other)
            *which[i]->another = other;
        h->jump = code->to_island(h->entry, (uintptr_t)h->entry,
                                  (uintptr_t)islands + (size_t)i * code->island_size);
        memcpy(h->saved, h->entry + h->jump.skip, h->jump.length);
        if (patch_write(code, h->entry + h->jump.skip, h->jump.bytes, h->jump.length))
            installed = i + 1;
        else
            problem = "the system does not allow changes of code";
    }
    return problem;
}

static const char *install_and_test(void)
{
    static char sentence[80];
    static bool forks_watched;
    const struct jump_code *code = jump_find(CPU_NAME);
    const char *tool = library_find_tool();
    if (tool) {
        snprintf(sentence, sizeof(sentence), "%s watches this program's memory", tool);
        return sentence;
    }
    if (!code)
        return "this processor is not supported";
    if (!forks_watched && pthread_atfork(NULL, NULL, after_fork_child) != 0)
        return "out of memory for a fork handler";
    forks_watched = true;

    const char *problem = memhook_install(code);
    if (!problem) {
        listener_add(selftest_record_notification, NULL);
        problem = selftest_run();
        listener_remove(selftest_record_notification, NULL);
    }
    if (problem)
        memhook_uninstall(code);
    else
        log_debug("memory hooks: %d functions of libc changed and tested", installed);
    return problem;
}

bool memhook_open(memhook_fn *fn, void *ctx, const char **why)
{
    const char *problem = NULL;
    if (mem_hooks.value == HOOKS_OFF) {
        *why = "FISHPLATE_MEM_HOOKS is off";
        return false;
    }
    pthread_mutex_lock(&mutex);
    if (broken)
        problem = broken;
    else if (users == 0)
        problem = broken = install_and_test();
    else if (!memhook_is_intact())
        problem = "another tool has changed functions of libc after Fishplate";
    if (!problem && users == LISTENERS - 1)
        problem = "there are four listeners already";
    if (!problem && listener_add(fn, ctx))
        users++;
    pthread_mutex_unlock(&mutex);
    if (problem)
        *why = problem;
    return !problem;
}

void memhook_close(memhook_fn *fn, void *ctx)
{
    pthread_mutex_lock(&mutex);
    if (listener_remove(fn, ctx) && --users == 0)
        memhook_uninstall(jump_find(CPU_NAME));
    pthread_mutex_unlock(&mutex);
}
