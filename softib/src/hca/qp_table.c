/* qp_table.c: the table of the QPs of this process, by QP number.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/hca.h"
#include "base/numbers.h"

_Atomic(struct qp *) qp_table[QP_MAX];
static _Atomic uint64_t in_table[QP_MAX / 64]; /* bits of the used entries */
static struct lock table_lock;
static uint32_t table_hint, created;
static bool taken[QP_MAX]; /* allocated numbers, including QPs that are not yet or no longer in the table */

/* Allocates a QP number. *nth: the number of QPs created so far, for faults that must be equal in every
 * run with the same seed. */
uint32_t qp_number_allocate(uint32_t *nth)
{
    spinlock_acquire(&table_lock);
    if (!table_hint)
        table_hint = 2 + (uint32_t)(random_u64() % (QP_MAX - 2)); /* unpredictable start */
    uint32_t found = number_allocate(taken, 2, QP_MAX, &table_hint);
    *nth = created++;
    spinlock_release(&table_lock);
    return found;
}

void qp_number_free(uint32_t idx)
{
    spinlock_acquire(&table_lock);
    taken[idx] = false;
    spinlock_release(&table_lock);
}

void qp_table_add(struct qp *q)
{
    spinlock_acquire(&table_lock);
    atomic_store(&qp_table[q->idx], q);
    atomic_fetch_or(&in_table[q->idx / 64], 1ull << q->idx % 64);
    spinlock_release(&table_lock);
}

/* Removes the QP. A lookup marks the QP busy under the same lock, so no thread starts to use it
 * afterwards. */
void qp_table_remove(struct qp *q)
{
    spinlock_acquire(&table_lock);
    atomic_store(&qp_table[q->idx], NULL);
    atomic_fetch_and(&in_table[q->idx / 64], ~(1ull << q->idx % 64));
    spinlock_release(&table_lock);
}

static struct qp *qp_table_lookup(uint32_t idx, uint32_t qpn)
{
    spinlock_acquire(&table_lock);
    struct qp *q = atomic_load(&qp_table[idx]);
    if (q && (!qpn || qp_to_ibv(q)->qp_num == qpn))
        atomic_fetch_add(&q->task.busy, 1);
    else
        q = NULL;
    spinlock_release(&table_lock);
    return q;
}

struct qp *qp_lookup(uint32_t qpn)
{
    return qp_table_lookup(qpn & (QP_MAX - 1), qpn);
}

static void qp_wait_builder(struct qp *q, uint32_t unused)
{
    (void)unused;
    if (atomic_load_explicit(&q->builder, memory_order_relaxed) != thread_unique_mark()) {
        spinlock_acquire(&q->lock);
        spinlock_release(&q->lock);
    }
}

void qp_for_each(void (*fn)(struct qp *q, uint32_t arg), uint32_t arg)
{
    for (uint32_t i = 0; i < QP_MAX / 64; i++)
        for (uint64_t left = atomic_load(&in_table[i]); left; left &= left - 1) {
            struct qp *q = qp_table_lookup(i * 64 + (uint32_t)__builtin_ctzll(left), 0);
            if (!q)
                continue;
            fn(q, arg);
            qp_release(q);
        }
}

/* Waits until threads that hold a QP's lock have released it: a thread checks memory keys only after
 * taking that lock. */
void qp_wait_lock_holders(void)
{
    qp_for_each(qp_wait_builder, 0);
}
