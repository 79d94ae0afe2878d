/* atomic.c: changes elements in a window so that no other change to the same element is lost.
 *
 * Where other processes access the memory too, an aligned integer of 1, 2, 4 or 8 bytes is changed either by
 * a processor atomic or, BULK_ELEMENTS and more of them at once, by vector instructions under the lock of the
 * target's memory; change.h makes the two methods exclude each other. All other elements (floating point,
 * pairs, unaligned) always need the lock: processors have no atomic sums of floating point, and a loop of
 * compare and swap for each element takes longer. Long operations hold the lock for LOCKED_BYTES at a time.
 * Memory that only this process changes needs neither: its changes run under the big lock.
 *
 * An owner of the lock that dies may leave an element half changed. The lock is then broken for good, and
 * every operation that needs it fails with MPIX_ERR_PROC_FAILED.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/counter.h"
#include "boot/boot.h"
#include "dt/kernel.h"
#include "net/lock.h"
#include "obj/context.h"
#include "rma/rma.h"

#define LOCKED_BYTES 4096u /* default number of bytes changed per acquisition of the lock */
#define BULK_ELEMENTS \
    16u /* a call with fewer elements uses processor atomics, which are then faster than the lock */

static COUNTER(locked, "rma_pieces_locked",
               "Pieces of accumulates that were done under the lock of the target's memory: elements that no "
               "processor atomic covers, or many at once. mpi_accumulate_granularity sets their size.");

static int lock_memory(struct win *w, struct win_slot *slot)
{
    uint32_t dead;
    const enum shlock_result got =
        net_lock(w->proc->net, &slot->change.lock, "lock of the elements of a window's memory", &dead);
    if (likely(got == SHLOCK_ACQUIRED))
        return MPI_SUCCESS;
    if (got == SHLOCK_TAKEN_OVER)
        shlock_break(&slot->change.lock, dead);
    return win_error(w, MPIX_ERR_PROC_FAILED,
                     "rank %u of the job died while it changed elements of this window's memory", dead);
}

static void unlock_memory(struct win_slot *slot)
{
    shlock_release(&slot->change.lock);
}

bool has_processor_atomic(const struct dtype *basic, uint64_t address)
{
    const MPI_Count size = basic->size;
    return !basic->shape && dt_kinds[basic->kind].num < NUM_F16 && basic->contiguous &&
           (size == 1 || size == 2 || size == 4 || size == 8) && address % (uint64_t)size == 0;
}

static bool is_integer(const struct dtype *basic)
{
    const enum dt_num num = dt_kinds[basic->kind].num;
    return num >= NUM_I8 && num <= NUM_U64 && num != NUM_I128;
}

/* in, out: n contiguous values of any alignment. An operator without a processor atomic uses
 * compare-and-swap. */
#define ELEMENTS(T, NAME)                                                                                    \
    static void NAME(const struct op *op, struct dtype *basic, const char *in, T *at, char *out, size_t n)   \
    {                                                                                                        \
        const bool integer = is_integer(basic);                                                              \
        op_kernel *const kernel =                                                                            \
            op_kernel_for((enum op_code)op->code, (enum dt_num)dt_kinds[basic->kind].num);                   \
        for (size_t i = 0; i < n; i++, at++) {                                                               \
            T value = 0, old;                                                                                \
            if (op->code != OP_NO_OP)                                                                        \
                memcpy(&value, in + i * sizeof(T), sizeof(T));                                               \
            if (op->code == OP_NO_OP) {                                                                      \
                old = __atomic_load_n(at, __ATOMIC_ACQUIRE);                                                 \
            } else if (op->code == OP_REPLACE) {                                                             \
                old = __atomic_exchange_n(at, value, __ATOMIC_ACQ_REL);                                      \
            } else if (integer && op->code == OP_SUM) {                                                      \
                old = __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);                                       \
            } else if (integer && op->code == OP_BAND) {                                                     \
                old = __atomic_fetch_and(at, value, __ATOMIC_ACQ_REL);                                       \
            } else if (integer && op->code == OP_BOR) {                                                      \
                old = __atomic_fetch_or(at, value, __ATOMIC_ACQ_REL);                                        \
            } else if (integer && op->code == OP_BXOR) {                                                     \
                old = __atomic_fetch_xor(at, value, __ATOMIC_ACQ_REL);                                       \
            } else {                                                                                         \
                T next;                                                                                      \
                old = __atomic_load_n(at, __ATOMIC_RELAXED);                                                 \
                do {                                                                                         \
                    next = old;                                                                              \
                    kernel(&value, &next, &next, 1);                                                         \
                } while (                                                                                    \
                    !__atomic_compare_exchange_n(at, &old, next, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)); \
            }                                                                                                \
            if (out)                                                                                         \
                memcpy(out + i * sizeof(T), &old, sizeof(T));                                                \
        }                                                                                                    \
    }
ELEMENTS(uint8_t, elements_1)
ELEMENTS(uint16_t, elements_2)
ELEMENTS(uint32_t, elements_4)
ELEMENTS(uint64_t, elements_8)

bool is_integer_sum(const struct op *op, const struct dtype *basic)
{
    return op->code == OP_SUM && is_integer(basic);
}

static void apply_nonatomic(const struct op *op, struct dtype *basic, const void *in, void *target,
                            void *fetched, size_t n)
{
    if (fetched)
        memcpy(fetched, target, n * (size_t)basic->extent);
    op_apply(op, in, target, (MPI_Count)n, basic);
}

struct single_change {
    const _Atomic uint32_t *other;
    uint32_t place;
};

static bool is_single_change_over(void *arg)
{
    const struct single_change *s = arg;
    return !change_is_single(s->other, s->place);
}

static struct win_entry *slot_window_entry(struct win_slot *slot)
{
    return container_of(slot, struct win_entry, slot);
}

/* Returns the local rank that owns the memory of this slot. */
static uint32_t place_of_slot(const struct win *w, struct win_slot *slot)
{
    const struct directory *d = &w->proc->rma->directory;
    const size_t id = context_id_of(w->comm->context);
    if (!d->node)
        return w->proc->boot->local_rank;
    return (uint32_t)((uint64_t)((char *)(slot_window_entry(slot) - id) - (char *)d->node) / NET_SPAN_OWN);
}

/* Requires the lock. Waits until no other rank of this node is inside a single (unlocked) change of this
 * memory. */
static void exclude_single(const struct win *w, struct win_slot *slot)
{
    const struct boot *boot = w->proc->boot;
    const struct directory *d = &w->proc->rma->directory;
    const size_t id = context_id_of(w->comm->context);
    const uint32_t place = place_of_slot(w, slot);
    change_bulk_announce(&slot->change);
    for (uint32_t i = 0; d->node && i < boot->nlocal; i++) {
        const struct win_entry *all = ptr_add(d->node, (MPI_Aint)(i * NET_SPAN_OWN));
        struct single_change s = {&all[id].single, place};
        if (unlikely(!is_single_change_over(&s)) && i != boot->local_rank)
            net_lock_wait_until_ready(w->proc->net, "change of one element of a window's memory",
                                      boot->local_ranks[i], is_single_change_over, &s);
    }
}

/* Applies the operation piece by piece, so that other ranks wait for the lock no longer than for one piece.
 * `bulk`: other processes may change these elements by processor atomics. */
static int apply_locked(struct win *w, struct win_slot *slot, bool bulk, const struct op *op,
                        struct dtype *basic, const char *in, char *target, char *fetched, size_t n)
{
    const size_t bytes = w->locked_bytes ? w->locked_bytes : LOCKED_BYTES;
    const size_t extent = (size_t)basic->extent, most = MAX(bytes / extent, 1);
    const size_t takes = op->code == OP_NO_OP ? 0 : extent;
    for (size_t at = 0; at < n; at += most) {
        int rc = lock_memory(w, slot);
        if (rc)
            return rc;
        counter_add(&locked, 1);
        KILL_POINT(rma_locked);
        if (bulk)
            exclude_single(w, slot);
        apply_nonatomic(op, basic, in + at * takes, target + at * extent,
                        fetched ? fetched + at * extent : NULL, MIN(most, n - at));
        KILL_POINT(rma_changed);
        if (bulk)
            change_bulk_end(&slot->change);
        unlock_memory(slot);
    }
    return MPI_SUCCESS;
}

/* True if `n` elements may be changed at once under the lock. False if adapters change these elements too,
 * because adapters do not take the lock. */
static bool can_change_in_bulk(struct win_slot *slot, const struct dtype *basic, const void *target, size_t n)
{
    return n >= BULK_ELEMENTS && !(slot_window_entry(slot)->target.atomics != ATOMICS_PROCESSOR &&
                                   adapter_can_change_element(basic, (uintptr_t)target));
}

/* single_begin() and single_end() enclose changes by processor atomics. single_begin() announces the change,
 * or takes the lock if another process is changing many elements of this memory. */
static int single_begin(struct win *w, struct win_slot *slot, bool *is_locked)
{
    *is_locked =
        !change_single_begin(&slot_window_entry(w->my_slot)->single, &slot->change, place_of_slot(w, slot));
    return unlikely(*is_locked) ? lock_memory(w, slot) : MPI_SUCCESS;
}

static void single_end(struct win *w, struct win_slot *slot, bool is_locked)
{
    if (unlikely(is_locked))
        unlock_memory(slot);
    else
        change_single_end(&slot_window_entry(w->my_slot)->single);
}

/* True if the element is in this process's memory and only the adapter may change it. */
static bool is_changed_by_adapter_only(const struct win *w, const struct win_slot *slot,
                                       const struct dtype *basic, const void *target)
{
    return unlikely(w->atomics == ATOMICS_ADAPTER) && slot == w->my_slot &&
           adapter_can_change_element(basic, (uintptr_t)target);
}

static bool is_changed_by_this_process_only(const struct win *w, const struct win_slot *slot,
                                            const struct dtype *basic, const void *target)
{
    return !w->shared && slot == w->my_slot &&
           !(w->atomics == ATOMICS_BOTH && adapter_can_change_element(basic, (uintptr_t)target));
}

static void apply_atomics(const struct op *op, struct dtype *basic, const void *in, void *target,
                          void *fetched, size_t n)
{
    switch (basic->size) {
    case 1:
        elements_1(op, basic, in, target, fetched, n);
        break;
    case 2:
        elements_2(op, basic, in, target, fetched, n);
        break;
    case 4:
        elements_4(op, basic, in, target, fetched, n);
        break;
    default:
        elements_8(op, basic, in, target, fetched, n);
    }
}

/* Takes the lock if ranks of the node have mapped the GPU memory; otherwise only its owner changes it. */
static int lock_device_memory(struct win *w, struct win_slot *slot)
{
    return w->exports ? lock_memory(w, slot) : MPI_SUCCESS;
}

static void unlock_device_memory(const struct win *w, struct win_slot *slot)
{
    if (w->exports)
        unlock_memory(slot);
}

static int apply_on_device(struct win *w, struct win_slot *slot, const struct op *op, struct dtype *basic,
                           const void *in, void *target, void *fetched, size_t n)
{
    int rc = lock_device_memory(w, slot);
    if (rc)
        return rc;
    rc = device_apply(op, basic, in, target, fetched, n);
    unlock_device_memory(w, slot);
    return rc;
}

int win_apply(struct win *w, struct win_slot *slot, const struct op *op, struct dtype *basic, const void *in,
              void *target, void *fetched, size_t n)
{
    bool is_locked;
    if (unlikely(gpu_memory_is_device(target)))
        return apply_on_device(w, slot, op, basic, in, target, fetched, n);
    if (is_changed_by_adapter_only(w, slot, basic, target)) {
        adapter_apply(w, op, basic, in, target, fetched, n);
        return MPI_SUCCESS;
    }
    if (is_changed_by_this_process_only(w, slot, basic, target)) {
        apply_nonatomic(op, basic, in, target, fetched, n);
        return MPI_SUCCESS;
    }
    const bool atomics = has_processor_atomic(basic, (uintptr_t)target);
    if (!atomics || can_change_in_bulk(slot, basic, target, n))
        return apply_locked(w, slot, atomics, op, basic, in, target, fetched, n);
    int rc = single_begin(w, slot, &is_locked);
    if (unlikely(rc))
        return rc;
    apply_atomics(op, basic, in, target, fetched, n);
    single_end(w, slot, is_locked);
    return MPI_SUCCESS;
}

static void swap_nonatomic(size_t size, const void *value, const void *compare, void *target, void *fetched)
{
    memcpy(fetched, target, size);
    if (memcmp(fetched, compare, size) == 0)
        memcpy(target, value, size);
}

#define SWAP(T)                                                                            \
    do {                                                                                   \
        T expected, next;                                                                  \
        memcpy(&expected, compare, sizeof(T));                                             \
        memcpy(&next, value, sizeof(T));                                                   \
        __atomic_compare_exchange_n((T *)target, &expected, next, false, __ATOMIC_ACQ_REL, \
                                    __ATOMIC_ACQUIRE);                                     \
        memcpy(fetched, &expected, sizeof(T));                                             \
    } while (0)

static void swap_atomic(size_t size, const void *value, const void *compare, void *target, void *fetched)
{
    if (size == 1) {
        SWAP(uint8_t);
    } else if (size == 2) {
        SWAP(uint16_t);
    } else if (size == 4) {
        SWAP(uint32_t);
    } else {
        SWAP(uint64_t);
    }
}

int win_swap(struct win *w, struct win_slot *slot, struct dtype *basic, const void *value,
             const void *compare, void *target, void *fetched)
{
    const size_t size = (size_t)basic->size;
    bool is_locked = true;
    if (unlikely(gpu_memory_is_device(target))) {
        int rc = lock_device_memory(w, slot);
        if (rc)
            return rc;
        rc = device_swap(size, value, compare, target, fetched);
        unlock_device_memory(w, slot);
        return rc;
    }
    if (is_changed_by_adapter_only(w, slot, basic, target)) {
        adapter_swap(w, value, compare, target, fetched);
        return MPI_SUCCESS;
    }
    if (is_changed_by_this_process_only(w, slot, basic, target)) {
        swap_nonatomic(size, value, compare, target, fetched);
        return MPI_SUCCESS;
    }
    const bool atomics = has_processor_atomic(basic, (uintptr_t)target);
    int rc = atomics ? single_begin(w, slot, &is_locked) : lock_memory(w, slot);
    if (unlikely(rc))
        return rc;
    (atomics ? swap_atomic : swap_nonatomic)(size, value, compare, target, fetched);
    single_end(w, slot, is_locked);
    return MPI_SUCCESS;
}
