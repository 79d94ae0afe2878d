/* atomic.c: changes elements in a window so that no other change to the same element is lost.
 *
 * Where other processes access the memory too, an aligned integer of 1, 2, 4 or 8 bytes is changed by a processor
 * atomic, whatever the operator and the count, and everything else (floating point, pairs, unaligned elements) under the
 * target's spin lock, many elements at a time: processors have no atomic sums of floating point, and a loop of compare and swap
 * for each element takes longer. The choice depends on type and address only, so that all changes of an element use the
 * same method. Memory that only this process changes needs neither: it runs under the big lock.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>

#include "base/counter.h"
#include "base/cpu.h"
#include "dt/kernel.h"
#include "rma/engine.h"

#define LOCKED_BYTES 4096u /* of elements that are changed while the spin lock is held */

static COUNTER(
    spins, "rma_pieces_locked",
    "Pieces of accumulates that were done under the lock of the target's memory, since no processor "
    "atomic covers their elements. mpi_accumulate_granularity sets their size.");

static void spin_lock(struct win_slot *slot)
{
    counter_add(&spins, 1);
    unsigned tries = 0;
    while (atomic_exchange_explicit(&slot->spin, 1, memory_order_acquire))
        do {
            if (++tries % 64 == 0)
                sched_yield();
            else
                cpu_relax();
        } while (atomic_load_explicit(&slot->spin, memory_order_relaxed));
}

static void spin_unlock(struct win_slot *slot)
{
    atomic_store_explicit(&slot->spin, 0, memory_order_release);
}

bool atomic_by_processor(const struct dtype *basic, uint64_t address)
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

/* in, out: n values side by side, of any alignment. One loop an operator that the processor has, one for all others. */
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

bool atomic_adds(const struct op *op, const struct dtype *basic)
{
    return op->code == OP_SUM && is_integer(basic);
}

static void apply_plain(const struct op *op, struct dtype *basic, const void *in, void *target, void *fetched,
                        size_t n)
{
    if (fetched)
        memcpy(fetched, target, n * (size_t)basic->extent);
    op_apply(op, in, target, (MPI_Count)n, basic);
}

/* In pieces, so that others wait for the lock no longer than for one of them. */
static void apply_locked(struct win_slot *slot, size_t bytes, const struct op *op, struct dtype *basic,
                         const char *in, char *target, char *fetched, size_t n)
{
    const size_t extent = (size_t)basic->extent, most = MAX(bytes / extent, 1);
    const size_t takes = op->code == OP_NO_OP ? 0 : extent;
    for (size_t at = 0; at < n; at += most) {
        spin_lock(slot);
        apply_plain(op, basic, in + at * takes, target + at * extent, fetched ? fetched + at * extent : NULL,
                    MIN(most, n - at));
        spin_unlock(slot);
    }
}

/* The slot says whose memory it is. That of another rank is shared, also where this one has none of its own. */
static bool is_by_adapter(const struct win *w, const struct win_slot *slot, const struct dtype *basic,
                          const void *target)
{
    return unlikely(w->atomics == ATOMICS_ADAPTER) && slot == w->my_slot &&
           wide_element(basic, (uintptr_t)target);
}

static bool is_changed_here_only(const struct win *w, const struct win_slot *slot, const struct dtype *basic,
                                 const void *target)
{
    return !w->shared && slot == w->my_slot &&
           !(w->atomics == ATOMICS_BOTH && wide_element(basic, (uintptr_t)target));
}

void win_apply(struct win *w, struct win_slot *slot, const struct op *op, struct dtype *basic, const void *in,
               void *target, void *fetched, size_t n)
{
    if (is_by_adapter(w, slot, basic, target)) {
        wide_apply(w, op, basic, in, target, fetched, n);
        return;
    }
    if (is_changed_here_only(w, slot, basic, target)) {
        apply_plain(op, basic, in, target, fetched, n);
        return;
    }
    if (!atomic_by_processor(basic, (uintptr_t)target)) {
        apply_locked(slot, w->locked_bytes ? w->locked_bytes : LOCKED_BYTES, op, basic, in, target, fetched,
                     n);
        return;
    }
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

static void swap_plain(size_t size, const void *value, const void *compare, void *target, void *fetched)
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

void win_swap(struct win *w, struct win_slot *slot, struct dtype *basic, const void *value,
              const void *compare, void *target, void *fetched)
{
    const size_t size = (size_t)basic->size;
    if (is_by_adapter(w, slot, basic, target)) {
        wide_swap(w, value, compare, target, fetched);
    } else if (is_changed_here_only(w, slot, basic, target)) {
        swap_plain(size, value, compare, target, fetched);
    } else if (!atomic_by_processor(basic, (uintptr_t)target)) {
        spin_lock(slot);
        swap_plain(size, value, compare, target, fetched);
        spin_unlock(slot);
    } else if (size == 1) {
        SWAP(uint8_t);
    } else if (size == 2) {
        SWAP(uint16_t);
    } else if (size == 4) {
        SWAP(uint32_t);
    } else {
        SWAP(uint64_t);
    }
}
