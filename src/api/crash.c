/* crash.c: handlers of the signals of a crash. A signal handler may call almost nothing, so a forked copy of
 * the process writes the note. If that copy hangs or crashes itself, as it may when memory is
 * damaged, it is killed and one plain line is written instead. Then the signal takes its default action, with
 * a core dump where the user's limits allow one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "api/crash.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/tunable.h"
#include "base/util.h"
#include "boot/boot.h"
#include "base/call_stack.h"
#include "base/signal_context.h"
#include "base/place.h"
#include "dt/dtype.h"

/* Writes what is known about a crash. Runs in a copy of the process that crashed. The text about a crash. It
 * runs in a forked copy, so it may use the C library freely: whatever goes wrong here ends the copy alone.
 * The MPI call is the innermost function of this library on the C library's call stack; its arguments are in
 * the record that the wrapper keeps on its stack (crash.h). */

struct crash_who {
    int rank;
    char host[256];
    char plain[320]; /* beginning of the line that is printed if the note cannot be written */
};

enum { FRAMES = 64, WORDS = 32 << 10, LOOKUPS = 16 };

struct note {
    char text[16 << 10];
    size_t used;
    void *frames[FRAMES];
    int first, count; /* index of the frame that crashed; number of frames */
};

static void PRINTF_LIKE(2, 3) add(struct note *n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int more = vsnprintf(n->text + n->used, sizeof(n->text) - n->used, fmt, args);
    va_end(args);
    n->used = MIN(n->used + (size_t)MAX(more, 0), sizeof(n->text) - 1);
}

static const char *crash_reason(int sig, int code)
{
    static const struct {
        int sig, code;
        const char *text;
    } reasons[] = {
        {SIGSEGV, SEGV_MAPERR, "nothing is mapped at the address"},
        {SIGSEGV, SEGV_ACCERR, "the memory does not permit this access"},
        {SIGBUS, BUS_ADRALN, "the address is not aligned"},
        {SIGBUS, BUS_ADRERR, "there is no memory behind the address: a file was cut, or /dev/shm is full"},
        {SIGFPE, FPE_INTDIV, "an integer was divided by zero"},
        {SIGFPE, FPE_INTOVF, "an integer overflowed"},
        {SIGFPE, FPE_FLTDIV, "a number was divided by zero"},
        {SIGFPE, FPE_FLTINV, "a floating-point operation was invalid"},
        {SIGILL, ILL_ILLOPC, "the processor does not have this instruction"},
        {SIGILL, ILL_ILLOPN, "the processor does not have this instruction"},
    };
    for (size_t i = 0; i < COUNT_OF(reasons); i++)
        if (reasons[i].sig == sig && reasons[i].code == code)
            return reasons[i].text;
    return NULL;
}

static const char *signal_name(int sig)
{
    switch (sig) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGFPE:
        return "SIGFPE";
    case SIGILL:
        return "SIGILL";
    default:
        return "SIGABRT";
    }
}

static void add_cause(struct note *n, int sig, const siginfo_t *info)
{
    const char *why = crash_reason(sig, info->si_code);
    add(n, "%s", signal_name(sig));
    if (info->si_code <= 0 && info->si_pid != getppid() && info->si_pid > 0)
        add(n, ", sent by process %d", (int)info->si_pid);
    else if (sig == SIGABRT)
        add(n, ", raised by the program itself (abort, or a failed assertion)");
    else if (info->si_code > 0 && (uintptr_t)info->si_addr == 0 && !why)
        add(n, ", at an address that the processor does not report");
    else if (info->si_code > 0)
        add(n, " at address %p%s%s", info->si_addr, why ? ": " : "", why ? why : "");
}

static void read_frames(struct note *n, const ucontext_t *context)
{
    n->count = backtrace(n->frames, FRAMES);
    n->first = 0;
    while (n->first < n->count && (uintptr_t)n->frames[n->first] != context_pc(context))
        n->first++;
    if (n->first == n->count) /* not found: the handler's own frames are printed too */
        n->first = 0;
}

extern const struct api_signature __start_fp_signatures[], __stop_fp_signatures[];

static const struct api_signature *signature_at(uintptr_t word, const char *name)
{
    const uintptr_t start = (uintptr_t)__start_fp_signatures, end = (uintptr_t)__stop_fp_signatures;
    if (word < start || word >= end || (word - start) % sizeof(struct api_signature) != 0)
        return NULL;
    const struct api_signature *s = (const struct api_signature *)word;
    return strcmp(s->name, name) == 0 ? s : NULL;
}

/* Returns the record of the current call: the record nearest to the return address on the stack, because
 * records of earlier calls may remain there. */
static const uintptr_t *find_record(const struct note *n, int frame, const char *name,
                                    const ucontext_t *context)
{
    static uintptr_t words[WORDS];
    const struct iovec mine = {words, sizeof(words)}, stack = {(void *)context_sp(context), sizeof(words)};
    const uintptr_t back = frame + 1 < n->count ? (uintptr_t)n->frames[frame + 1] : 0;
    const ssize_t bytes = back ? process_vm_readv(getpid(), &mine, 1, &stack, 1, 0) : 0;
    const ssize_t count = bytes / (ssize_t)sizeof(words[0]);
    const uintptr_t *found = NULL;
    ssize_t at = 0, distance = WORDS;
    while (at < count && words[at] != back)
        at++;
    for (ssize_t i = 0; i + 16 < count && at < count; i++) {
        if (labs(i - at) < distance && signature_at(words[i], name)) {
            found = &words[i];
            distance = labs(i - at);
        }
    }
    return found;
}

static void add_handle(struct note *n, char kind, uintptr_t value)
{
    const struct dtype *type =
        kind == 't' && value <= HANDLE_PREDEFINED_MAX ? dt_predefined((uint32_t)value) : NULL;
    if (value == (uintptr_t)MPI_COMM_WORLD && kind == 'c')
        add(n, "MPI_COMM_WORLD");
    else if (value == (uintptr_t)MPI_COMM_SELF && kind == 'c')
        add(n, "MPI_COMM_SELF");
    else if (type)
        add(n, "%s", type->name);
    else
        add(n, "%#lx", (unsigned long)value);
}

static void add_arguments(struct note *n, const uintptr_t *record)
{
    const struct api_signature *s = (const struct api_signature *)record[0];
    const char *name = s->params;
    add(n, "(");
    for (size_t i = 0; s->kinds[i]; i++) {
        const int len = (int)strcspn(name, " ");
        add(n, "%s%.*s=", i ? ", " : "", len, name);
        name += len + 1;
        if (s->kinds[i] == 'i')
            add(n, "%d", *(const int *)&record[i + 1]);
        else if (s->kinds[i] == 'l')
            add(n, "%lld", (long long)record[i + 1]);
        else
            add_handle(n, s->kinds[i], record[i + 1]);
    }
    add(n, ")");
}

static void add_call(struct note *n, const ucontext_t *context)
{
    const char *name;
    const int frame = frames_find_mpi_call(n->frames, n->first, n->count, &name);
    if (n->count == 0)
        return;
    if (frame < 0) {
        add(n, ". It was not in an MPI call");
        return;
    }
    const uintptr_t *record = find_record(n, frame, name, context);
    add(n, ". It was in %s", name);
    if (record)
        add_arguments(n, record);
}

/* Adds function and source line of frame `i`. Returns false if there is no debug information. */
static bool add_line(struct note *n, int i)
{
    char function[256], line[256];
    struct code_place at;
    /* The first address is an instruction, the others are return addresses. */
    const void *address = (const char *)n->frames[i] + (i == n->first);
    if (!place_of_address(address, &at) || !place_lookup(&at, function, sizeof(function), line, sizeof(line)))
        return false;
    add(n, "    #%-2d %s at %s\n", i - n->first, function, line);
    return true;
}

static void add_frames(struct note *n)
{
    int lookups = LOOKUPS;
    for (int i = n->first; i < n->count; i++) {
        Dl_info there;
        const bool known = dladdr((const char *)n->frames[i] - (i > n->first), &there) && there.dli_fname;
        const char *slash = known ? strrchr(there.dli_fname, '/') : NULL;
        if (known && lookups-- > 0 && add_line(n, i))
            continue;
        add(n, "    #%-2d %p", i - n->first, n->frames[i]);
        if (known && there.dli_sname)
            add(n, " %s+%#lx", there.dli_sname,
                (unsigned long)((char *)n->frames[i] - (char *)there.dli_saddr));
        if (known)
            add(n, " (%s+%#lx)", slash ? slash + 1 : there.dli_fname,
                (unsigned long)((char *)n->frames[i] - (char *)there.dli_fbase));
        add(n, "\n");
    }
}

/* Prepares the forked copy: its own end must not be reported as a second crash. */
static void prepare_forked_copy(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < COUNT_OF(signals); i++)
        signal(signals[i], SIG_DFL);
}

static void crash_note(const struct crash_who *who, int sig, const siginfo_t *info, const ucontext_t *context)
{
    static struct note note;
    prepare_forked_copy();
    read_frames(&note, context);
    add(&note, "fishplate error (rank %d on %s): process %d ends by ", who->rank, who->host, (int)getppid());
    add_cause(&note, sig, info);
    add_call(&note, context);
    add(&note, note.count > 0 ? ". The call stack:\n" : ".\n");
    add_frames(&note);
    ssize_t ignored = write(STDERR_FILENO, note.text, note.used);
    (void)ignored;
}

static TUNABLE_BOOL(
    crash_notes, "CRASH_NOTE", 1,
    "When SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT ends a rank, print the rank, the address, the MPI "
    "call with its arguments and the call stack. Core dumps stay as the limits say, and a handler that "
    "the program has set is left alone. Set it to 0 to leave these signals to the system.");

enum { ALTERNATE_STACK = 128 << 10, PATIENCE_MS = 5000 };

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static struct {
    struct crash_who who;
    struct sigaction before[COUNT_OF(signals)]; /* the former handlers, restored afterwards */
    bool ours[COUNT_OF(signals)];               /* our handler is installed */
    void *stack;
    _Atomic pid_t busy; /* the thread that crashed first */
} crash;

/* Prints one line if memory is too damaged for the full report. The text was prepared at start; only
 * async-signal-safe calls. */
static void print_plain_line(int sig)
{
    char line[512];
    size_t n = strlen(crash.who.plain), i = 0;
    memcpy(line, crash.who.plain, n);
    char digits[3] = {(char)('0' + sig / 10), (char)('0' + sig % 10), '\n'};
    for (i = sig < 10; i < sizeof(digits); i++)
        line[n++] = digits[i];
    ssize_t ignored = write(STDERR_FILENO, line, n);
    (void)ignored;
}

/* Writes the report from a forked copy, which has the memory of this moment and one thread. The copy must not
 * outlive this process or call the program's handlers. */
static bool report_from_forked_copy(int sig, const siginfo_t *info, const ucontext_t *context)
{
    /* Unlike fork(), this causes no SIGCHLD and calls no atfork handlers. */
    const pid_t child = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
    if (child == 0) {
        crash_note(&crash.who, sig, info, context);
        syscall(SYS_exit_group, 0);
    }
    int status = 1;
    for (int ms = 0; child > 0 && ms < PATIENCE_MS; ms++) {
        const pid_t ended = waitpid(child, &status, WNOHANG | __WALL);
        if (ended == child)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (ended < 0 && errno != EINTR)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, __WALL);
    }
    return false;
}

static size_t signal_index(int sig)
{
    size_t i = 0;
    while (i < COUNT_OF(signals) - 1 && signals[i] != sig)
        i++;
    return i;
}

static void on_crash_signal(int sig, siginfo_t *info, void *context)
{
    const int saved = errno;
    const pid_t me = (pid_t)syscall(SYS_gettid);
    pid_t nobody = 0;
    if (atomic_compare_exchange_strong(&crash.busy, &nobody, me)) {
        if (!report_from_forked_copy(sig, info, context))
            print_plain_line(sig);
    } else if (nobody != me) {
        for (;;) /* another thread writes its report and ends the process */
            pause();
    }
    /* The former handler is restored: the same instruction fails again, or the same signal is sent again. */
    sigaction(sig, &crash.before[signal_index(sig)], NULL);
    if (info->si_code <= 0)
        syscall(SYS_tgkill, getpid(), me, sig);
    errno = saved;
}

/* True if our handler may replace this one. Fortran's run-time library sets handlers before the program
 * starts, which print a call stack and end the process as ours do, so ours may run first; any other handler
 * is the program's own. */
static bool can_precede_handler(const struct sigaction *there)
{
    Dl_info library;
    if (there->sa_handler == SIG_DFL)
        return true;
    return there->sa_handler != SIG_IGN && dladdr((void *)there->sa_handler, &library) && library.dli_fname &&
           strstr(library.dli_fname, "libgfortran");
}

/* Sets an alternate signal stack, so that the handler can run after a stack overflow. */
static void set_alternate_stack(void)
{
    stack_t there;
    if (sigaltstack(NULL, &there) != 0 || !(there.ss_flags & SS_DISABLE))
        return;
    void *memory = mmap(NULL, ALTERNATE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return;
    if (sigaltstack(&(stack_t){.ss_sp = memory, .ss_size = ALTERNATE_STACK}, NULL) == 0)
        crash.stack = memory;
    else
        munmap(memory, ALTERNATE_STACK);
}

void crash_open(const struct boot *boot)
{
    struct sigaction mine = {.sa_sigaction = on_crash_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (!crash_notes.value)
        return;
    crash.who.rank = (int)boot->rank;
    snprintf(crash.who.host, sizeof(crash.who.host), "%s", boot->host);
    snprintf(crash.who.plain, sizeof(crash.who.plain),
             "fishplate error (rank %d on %.200s): the process ends by signal ", crash.who.rank,
             crash.who.host);
    set_alternate_stack();
    sigemptyset(&mine.sa_mask);
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        if (sigaction(signals[i], NULL, &crash.before[i]) == 0 && can_precede_handler(&crash.before[i]))
            crash.ours[i] = sigaction(signals[i], &mine, NULL) == 0;
    }
}

/* Restores the handlers, since the library may be unloaded after MPI_Finalize. A handler that the program
 * has set since is kept. */
void crash_close(void)
{
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        struct sigaction now;
        if (crash.ours[i] && sigaction(signals[i], NULL, &now) == 0 && now.sa_sigaction == on_crash_signal)
            sigaction(signals[i], &crash.before[i], NULL);
        crash.ours[i] = false;
    }
    stack_t there;
    if (crash.stack && sigaltstack(NULL, &there) == 0 && there.ss_sp == crash.stack &&
        !(there.ss_flags & SS_ONSTACK)) {
        sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
        munmap(crash.stack, ALTERNATE_STACK);
    }
    crash.stack = NULL;
}
