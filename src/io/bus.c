/* bus.c: handles SIGBUS during copies to mapped files. The handler replaces the missing part of the mapping
 * by private memory, so that the copy ends, and the caller repeats the copy by system calls. Signals for
 * other addresses are passed to the former handler.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "io/bus.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local struct bus_watch *volatile watching;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int files;
static struct sigaction before;

/* Called for SIGBUS: another process has truncated the file. Replaces the mapping from the faulting page
 * to its end by zeros, so that the copy can finish; bus_watch_end reports the loss. */
static bool bus_map_zeros(struct bus_watch *w, const siginfo_t *info)
{
    if (!w || info->si_code != BUS_ADRERR)
        return false;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)w->at;
    const uintptr_t fault = (uintptr_t)info->si_addr;
    if (fault < at || fault >= at + w->length)
        return false;
    const uintptr_t from = fault - fault % page;
    w->truncated = true;
    return mmap(w->at + (from - at), at + w->length - from, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void on_bus_signal(int sig, siginfo_t *info, void *context)
{
    const int saved = errno;
    if (!bus_map_zeros(watching, info)) {
        if (before.sa_flags & SA_SIGINFO) {
            before.sa_sigaction(sig, info, context);
        } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
            before.sa_handler(sig);
        } else {
            /* Installs the former handler: the instruction faults again; a sent signal is sent again. */
            sigaction(sig, &before, NULL);
            if (info->si_code <= 0)
                syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), sig);
        }
    }
    errno = saved;
}

void bus_open(void)
{
    struct sigaction mine = {.sa_sigaction = on_bus_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&mine.sa_mask);
    pthread_mutex_lock(&lock);
    if (files++ == 0)
        sigaction(SIGBUS, &mine, &before);
    pthread_mutex_unlock(&lock);
}

/* Restores the former handler unless the program has set another one since. */
void bus_close(void)
{
    struct sigaction there;
    pthread_mutex_lock(&lock);
    if (--files == 0 && sigaction(SIGBUS, NULL, &there) == 0 && (there.sa_flags & SA_SIGINFO) &&
        there.sa_sigaction == on_bus_signal)
        sigaction(SIGBUS, &before, NULL);
    pthread_mutex_unlock(&lock);
}

void bus_watch_begin(struct bus_watch *w)
{
    w->truncated = false;
    watching = w;
    /* The compiler must not move stores of the copy before the store to `watching`. */
    atomic_signal_fence(memory_order_seq_cst);
}

bool bus_watch_end(struct bus_watch *w)
{
    atomic_signal_fence(memory_order_seq_cst);
    watching = NULL;
    return !w->truncated;
}
