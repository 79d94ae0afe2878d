/* wrong_use.h: a table of wrong uses of verbs, each with the result that softib reports, which follows the
 * specification if it defines the result, and the result of the kernel's soft-RoCE if that differs. Both
 * queue pairs of a use belong to one process.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VERBS_TESTS_WRONG_USE_H
#define VERBS_TESTS_WRONG_USE_H

#include "vt.h"

enum { ENTRIES = 16, RESULT_TEXT = 128 }; /* entries of a queue; bytes of a printed result */

struct wrong_use {
    const char *name, *want;
    void (*run)(struct vt *t, char *out); /* writes the result to `out`, at most RESULT_TEXT bytes */
    const char *rxe;                      /* result of soft-RoCE (Linux 6.1); NULL: the same */
};

/* Executes all uses on side 0, prints a table of their results and fails if a result is neither the
 * expected one nor a known difference. */
void run_wrong_uses(struct vt *t, const struct wrong_use *uses, size_t count);

void print_errno(char *out, int rc);

struct ibv_qp *create_qp(struct vt *t, enum ibv_qp_type type, uint32_t wr, uint32_t sge, uint32_t inlined);
/* Post a signaled request, or a receive, of one piece of the test's buffer; return the result of the verb. */
int post_send(struct ibv_qp *qp, struct vt *t, struct ibv_send_wr wr, uint32_t bytes);
int post_receive(struct ibv_qp *qp, struct vt *t, uint32_t bytes, uint32_t lkey);

#endif
