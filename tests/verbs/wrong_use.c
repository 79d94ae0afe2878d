/* wrong_use.c: runs the wrong uses of a table and compares their results (wrong_use.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "wrong_use.h"
#include <errno.h>

void print_errno(char *out, int rc)
{
    const char *name = rc == 0            ? "0"
                       : rc == EINVAL     ? "EINVAL"
                       : rc == ENOMEM     ? "ENOMEM"
                       : rc == EBUSY      ? "EBUSY"
                       : rc == EFAULT     ? "EFAULT"
                       : rc == EOPNOTSUPP ? "EOPNOTSUPP"
                       : rc == EPERM      ? "EPERM"
                       : rc == ENOENT     ? "ENOENT"
                       : rc == ENODATA    ? "ENODATA"
                       : rc == EPROTOTYPE ? "EPROTOTYPE"
                       : rc == -1         ? "-1"
                                          : NULL;
    if (name)
        snprintf(out, RESULT_TEXT, "%s", name);
    else
        snprintf(out, RESULT_TEXT, "error %d", rc);
}

struct ibv_qp *create_qp(struct vt *t, enum ibv_qp_type type, uint32_t wr, uint32_t sge, uint32_t inlined)
{
    struct ibv_qp_init_attr a = {.send_cq = t->cq,
                                 .recv_cq = t->cq,
                                 .qp_type = type,
                                 .cap = {.max_send_wr = wr,
                                         .max_recv_wr = wr,
                                         .max_send_sge = sge,
                                         .max_recv_sge = sge,
                                         .max_inline_data = inlined}};
    return ibv_create_qp(t->pd, &a);
}

int post_send(struct ibv_qp *qp, struct vt *t, struct ibv_send_wr wr, uint32_t bytes)
{
    struct ibv_sge s = {(uintptr_t)t->buf, bytes, t->mr->lkey};
    struct ibv_send_wr *bad;
    wr.sg_list = &s;
    wr.num_sge = 1;
    wr.send_flags |= IBV_SEND_SIGNALED;
    return ibv_post_send(qp, &wr, &bad);
}

int post_receive(struct ibv_qp *qp, struct vt *t, uint32_t bytes, uint32_t lkey)
{
    struct ibv_sge s = {(uintptr_t)t->buf + 65536, bytes, lkey};
    struct ibv_recv_wr wr = {.sg_list = &s, .num_sge = 1}, *bad;
    return ibv_post_recv(qp, &wr, &bad);
}

void run_wrong_uses(struct vt *t, const struct wrong_use *uses, size_t count)
{
    int differences = 0;
    if (t->side == 0)
        printf("%-54s %s\n", "wrong use", "status or errno, state, peer's state and receive, its event");
    for (size_t i = 0; t->side == 0 && i < count; i++) {
        const struct wrong_use *u = &uses[i];
        const char *want = t->rxe && u->rxe ? u->rxe : u->want;
        char got[RESULT_TEXT] = "";
        u->run(t, got);
        differences += strcmp(got, want) != 0;
        printf("%-54s %s%s%s\n", u->name, got, strcmp(got, u->want) ? "   differs: " : "",
               strcmp(got, u->want) ? u->want : "");
        fflush(stdout);
    }
    vt_sync(t);
    CHECK(differences == 0, "%d uses have an unexpected result", differences);
}
