/* stores.c: records the program's stores into windows. The pages of a window are read-only while the program
 * runs outside of MPI. A store raises SIGSEGV; the handler records the store, makes its page writable, and
 * sets the processor to stop after this one instruction (SIGTRAP), when the page becomes read-only again. So
 * every store is recorded with exactly the bytes that it writes. Inside MPI the pages are writable, so stores
 * of the library, also by system calls, are not recorded.
 *
 * A recorded store takes microseconds, so after some thousands the memory stays writable until its window is
 * synchronised. The handlers use only memory that this file has mapped: memory of malloc may share pages with
 * a window of the program.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "rma/stores.h"

#include "base/single_step.h"

#if STEP_POSSIBLE && __has_include(<execinfo.h>)
#include <dlfcn.h>
#include <execinfo.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rawcall.h"
#include "base/util.h"

enum { WINDOWS = 256, BUDGET = 16384, PLACES = 512, RECENT = 4 };

struct stores {
    uintptr_t lo, hi; /* the pages that are protected */
    uintptr_t base;   /* the window's memory */
    size_t size;
    bool sharp;    /* no store to the window can begin before `lo` */
    bool open;     /* `budget` is used up: the pages stay writable */
    int budget;    /* stores that are still recorded before the window is synchronised */
    uint64_t next; /* number of the next store */
    struct store ring[STORES_KEPT];
};

enum whose { UNKNOWN, PROGRAM, C_LIBRARY, OURS };

static struct {
    _Atomic pid_t busy; /* thread that holds the lock of this structure; 0: none */
    struct stores *_Atomic all[WINDOWS];
    int count;
    int depth;      /* nesting depth of MPI calls */
    uint64_t calls; /* result of stores_count_calls() */
    bool stepping;
    uintptr_t step_lo, step_hi; /* pages that are writable for one instruction */
    uint64_t step_mask;         /* signals that were blocked before the single step */
    struct sigaction before_fault, before_trap;
    struct {
        uintptr_t place;
        enum whose whose;
    } places[PLACES];
} watch;

static pid_t stores_thread_id(void)
{
    return (pid_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* Takes the lock. Returns false if this thread holds it already (a signal handler interrupted the owner). */
static bool stores_lock(void)
{
    const pid_t me = stores_thread_id();
    pid_t nobody = 0;
    while (!atomic_compare_exchange_weak(&watch.busy, &nobody, me)) {
        if (nobody == me)
            return false;
        nobody = 0;
        sched_yield();
    }
    return true;
}

static void stores_unlock(void)
{
    atomic_store(&watch.busy, 0);
}

/* Calls mprotect by its system call number: libc's function is replaced by the hooks of the registration
 * cache. */
static void stores_protect(uintptr_t lo, uintptr_t hi, bool writable)
{
    raw_syscall(SYS_mprotect, (long)lo, (long)(hi - lo), PROT_READ | (writable ? PROT_WRITE : 0), 0, 0, 0);
}

static uintptr_t page_address(uintptr_t address)
{
    return address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/* Returns a watched window that contains the address. Windows may overlap: one whose pages are still
 * read-only is preferred. */
static struct stores *stores_find(uintptr_t address)
{
    struct stores *found = NULL;
    for (int i = 0; i < WINDOWS; i++) {
        struct stores *s = watch.all[i];
        if (s && address >= s->lo && address < s->hi && (!found || found->open))
            found = s;
    }
    return found;
}

static bool stores_name_begins(const char *name, const char *const *with, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(name, with[i], strlen(with[i])) == 0)
            return true;
    return false;
}

static enum whose classify_module(uintptr_t place)
{
    static const char *const language[] = {"libc.so", "libc-", "ld-linux", "libgfortran", "libstdc++"};
    static const char *const ours[] = {"libmpi", "libfishplate", "libibverbs", "librdmacm", "libmlx"};
    Dl_info it;
    if (!dladdr((void *)place, &it) || !it.dli_fname)
        return PROGRAM;
    const char *slash = strrchr(it.dli_fname, '/');
    const char *name = slash ? slash + 1 : it.dli_fname;
    return stores_name_begins(name, ours, COUNT_OF(ours))           ? OURS
           : stores_name_begins(name, language, COUNT_OF(language)) ? C_LIBRARY
                                                                    : PROGRAM;
}

static enum whose classify_store_place(uintptr_t place)
{
    const size_t i = (place ^ place >> 9) % PLACES;
    if (watch.places[i].place != place || watch.places[i].whose == UNKNOWN) {
        watch.places[i].whose = classify_module(place);
        watch.places[i].place = place;
    }
    return watch.places[i].whose;
}

/* Returns the address of the program's code that caused a store: for memcpy and other functions of libc,
 * their caller. Returns 0 if the program did not cause the store. */
static uintptr_t find_program_store_place(uintptr_t place)
{
    void *frames[32];
    enum whose whose = classify_store_place(place);
    if (whose != C_LIBRARY)
        return whose == PROGRAM ? place : 0;
    const int n = backtrace(frames, COUNT_OF(frames));
    int i = 0;
    /* Skips the frames of the handler and of the kernel's signal trampoline. */
    while (i < n && (uintptr_t)frames[i] != place)
        i++;
    for (; i < n; i++) {
        const uintptr_t caller = (uintptr_t)frames[i] - 1;
        whose = classify_store_place(caller);
        if (whose != C_LIBRARY)
            return whose == PROGRAM ? caller : 0;
    }
    return 0;
}

static void stores_record(struct stores *s, uintptr_t address, size_t length, uintptr_t place)
{
    const uint64_t now = clock_ns();
    if (address >= s->base + s->size || address + length <= s->base)
        return;
    const uint64_t first = MAX(address, s->base) - s->base;
    const uint64_t end = MIN(address + length, s->base + s->size) - s->base;
    for (uint64_t i = s->next; i > 0 && i + RECENT > s->next; i--) {
        struct store *last = &s->ring[(i - 1) % STORES_KEPT];
        if (last->place == place && last->calls == watch.calls && first <= last->end && end >= last->first) {
            last->first = MIN(last->first, first);
            last->end = MAX(last->end, end);
            last->ended = now;
            return;
        }
    }
    s->ring[s->next++ % STORES_KEPT] = (struct store){
        .first = first, .end = end, .began = now, .ended = now, .calls = watch.calls, .place = place};
}

static void record_in_all_windows(uintptr_t address, size_t length, uintptr_t place)
{
    for (int i = 0; i < WINDOWS; i++) {
        struct stores *s = watch.all[i];
        /* A store that begins before a page is reported as a store to the first byte of the page. */
        if (s && address < s->hi && address + length > s->lo)
            stores_record(s, address, address == s->lo && !s->sharp ? 1 : length, place);
    }
}

static void call_previous_handler(const struct sigaction *to, int sig, siginfo_t *info, void *context)
{
    if (to->sa_flags & SA_SIGINFO)
        to->sa_sigaction(sig, info, context);
    else if (to->sa_handler != SIG_DFL && to->sa_handler != SIG_IGN)
        to->sa_handler(sig);
    else
        sigaction(sig, to, NULL); /* the instruction faults again, with the default action */
}

/* Executes one instruction with the page writable. All signals but SIGTRAP and SIGSEGV are blocked meanwhile:
 * a handler would run with the page open. */
static void stores_single_step(struct stores *s, uintptr_t address, ucontext_t *u)
{
    uint64_t all = ~(uint64_t)0;
    watch.stepping = true;
    watch.step_lo = page_address(address);
    watch.step_hi = watch.step_lo + (uintptr_t)sysconf(_SC_PAGESIZE);
    memcpy(&watch.step_mask, &u->uc_sigmask, sizeof(watch.step_mask));
    all &= ~((uint64_t)1 << (SIGTRAP - 1) | (uint64_t)1 << (SIGSEGV - 1));
    memcpy(&u->uc_sigmask, &all, sizeof(all));
    stores_protect(watch.step_lo, MIN(watch.step_hi, s->hi), true);
    step_begin(u);
}

/* Records a store that has faulted. Returns true if the instruction will be single-stepped; `busy` stays set
 * until its SIGTRAP. */
static bool stores_handle_fault(struct stores *s, uintptr_t address, ucontext_t *u)
{
    uintptr_t to;
    size_t bytes;
    if (--s->budget < 0) {
        s->open = true;
        stores_protect(s->lo, s->hi, true);
        return false;
    }
    const uintptr_t place = find_program_store_place(step_instruction_address(u));
    if (step_get_block_store(u, &to, &bytes) && to == address) {
        stores_protect(s->lo, s->hi, true);
        const size_t done = step_execute_block_store(u, MIN(bytes, s->hi - to));
        stores_protect(s->lo, s->hi, false);
        if (place && done > 0)
            record_in_all_windows(to, done, place);
        if (done > 0)
            return false; /* otherwise an element crosses the end of the pages and is single-stepped */
    } else if (place) {
        record_in_all_windows(address, step_store_size((const unsigned char *)step_instruction_address(u)),
                              place);
    }
    stores_single_step(s, address, u);
    return true;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    const uintptr_t address = (uintptr_t)info->si_addr;
    struct stores *s = info->si_code == SEGV_ACCERR && step_is_store(context) ? stores_find(address) : NULL;
    if (!s) {
        call_previous_handler(&watch.before_fault, sig, info, context);
        return;
    }
    if (!stores_lock()) {
        /* This thread already holds the lock: the present instruction also stores to the next page, or a
         * signal handler of the program interrupted this file. The store is not recorded. */
        const uintptr_t page = page_address(address);
        stores_protect(page, page + (uintptr_t)sysconf(_SC_PAGESIZE), true);
        if (watch.stepping)
            watch.step_hi = MAX(watch.step_hi, page + (uintptr_t)sysconf(_SC_PAGESIZE));
        return;
    }
    s = stores_find(address); /* another thread may have closed it */
    if (s && watch.depth == 0 && !s->open && stores_handle_fault(s, address, context))
        return;
    stores_unlock();
}

static void on_trap_signal(int sig, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    if (atomic_load(&watch.busy) != stores_thread_id() || !watch.stepping) {
        call_previous_handler(&watch.before_trap, sig, info, context);
        return;
    }
    step_end(u);
    memcpy(&u->uc_sigmask, &watch.step_mask, sizeof(watch.step_mask));
    for (int i = 0; i < WINDOWS; i++) {
        const struct stores *s = watch.all[i];
        if (s && !s->open && watch.step_lo < s->hi && watch.step_hi > s->lo)
            stores_protect(MAX(watch.step_lo, s->lo), MIN(watch.step_hi, s->hi), false);
    }
    watch.stepping = false;
    stores_unlock();
}

static bool handlers_are_ours(void)
{
    struct sigaction fault, trap;
    return sigaction(SIGSEGV, NULL, &fault) == 0 && fault.sa_sigaction == on_fault &&
           sigaction(SIGTRAP, NULL, &trap) == 0 && trap.sa_sigaction == on_trap_signal;
}

static bool stores_install_handlers(void)
{
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction trap = {.sa_sigaction = on_trap_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    void *frames[4];
    /* Loads the libraries that backtrace() needs; a signal handler cannot load them. */
    if (backtrace(frames, COUNT_OF(frames)) == 0)
        return false;
    sigfillset(&fault.sa_mask);
    sigfillset(&trap.sa_mask);
    return sigaction(SIGSEGV, &fault, &watch.before_fault) == 0 &&
           sigaction(SIGTRAP, &trap, &watch.before_trap) == 0;
}

static void stores_restore_handlers(void)
{
    if (!handlers_are_ours())
        return; /* the program's handlers were installed later and call these */
    sigaction(SIGSEGV, &watch.before_fault, NULL);
    sigaction(SIGTRAP, &watch.before_trap, NULL);
}

struct stores *stores_open(void *base, size_t size, bool whole)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = (uintptr_t)base, to = from + size;
    const uintptr_t lo = whole ? from / page * page : ALIGN_UP(from, page);
    const uintptr_t hi = whole ? ALIGN_UP(to, page) : to / page * page;
    int free_one = 0;
    while (free_one < WINDOWS && watch.all[free_one])
        free_one++;
    if (lo >= hi || free_one == WINDOWS || (watch.count == 0 && !stores_install_handlers()))
        return NULL;
    struct stores *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return NULL;
    s->lo = lo;
    s->hi = hi;
    s->base = from;
    s->size = size;
    s->sharp = whole || lo == from;
    s->budget = BUDGET;
    const bool mine = stores_lock();
    watch.all[free_one] = s;
    watch.count++;
    if (mine)
        stores_unlock();
    return s;
}

/* Only called inside an MPI call, when the pages are writable. */
void stores_close(struct stores *s)
{
    const bool mine = stores_lock();
    for (int i = 0; i < WINDOWS; i++)
        if (watch.all[i] == s)
            watch.all[i] = NULL;
    stores_protect(s->lo, s->hi, true);
    if (--watch.count == 0)
        stores_restore_handlers();
    if (mine)
        stores_unlock();
    munmap(s, sizeof(*s));
}

static void protect_all(bool writable)
{
    for (int i = 0; i < WINDOWS && watch.count > 0; i++)
        if (watch.all[i] && !watch.all[i]->open)
            stores_protect(watch.all[i]->lo, watch.all[i]->hi, writable);
}

void stores_pause(void)
{
    const bool mine = stores_lock();
    watch.calls++;
    if (watch.depth++ == 0)
        protect_all(true);
    if (mine)
        stores_unlock();
}

void stores_resume(void)
{
    const bool mine = stores_lock();
    watch.depth = MAX(watch.depth - 1, 0);
    if (watch.depth == 0 && watch.count > 0 && handlers_are_ours())
        protect_all(false);
    if (mine)
        stores_unlock();
}

uint64_t stores_count_calls(void)
{
    return watch.calls;
}

void stores_call_notifies_none(void)
{
    watch.calls--;
}

void stores_reset_budget(struct stores *s)
{
    s->budget = BUDGET;
    s->open = false;
}

uint64_t stores_next(const struct stores *s)
{
    return s->next;
}

const struct store *stores_get(const struct stores *s, uint64_t number)
{
    return number < s->next && number + STORES_KEPT >= s->next ? &s->ring[number % STORES_KEPT] : NULL;
}

#else /* processors without single-stepping, or C libraries without backtrace() */

struct stores *stores_open(void *base, size_t size, bool whole)
{
    (void)base, (void)size, (void)whole;
    return NULL;
}
void stores_close(struct stores *s)
{
    (void)s;
}
void stores_pause(void)
{
}
void stores_resume(void)
{
}
uint64_t stores_count_calls(void)
{
    return 0;
}
void stores_call_notifies_none(void)
{
}
void stores_reset_budget(struct stores *s)
{
    (void)s;
}
uint64_t stores_next(const struct stores *s)
{
    (void)s;
    return 0;
}
const struct store *stores_get(const struct stores *s, uint64_t number)
{
    (void)s, (void)number;
    return NULL;
}
#endif
