/* p2p_probe.c: probing for messages before receiving them, and receiving exactly the message that was probed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/debug.h"
#include "api/p2p.h"
#include "impl.h"
#include "p2p/peer_death.h"

static void probe_no_proc(struct comm *comm, int *flag, MPI_Status *status)
{
    *flag = 1;
    request_status(p2p_proc_null_request(comm->proc->p2p), status);
}

int impl_Iprobe(int source, int tag, struct comm *comm, int *flag, MPI_Status *status)
{
    if (source == MPI_PROC_NULL) {
        probe_no_proc(comm, flag, status);
        return 0;
    }
    struct proc *proc = comm->proc;
    struct envelope env = comm_envelope(comm, source, tag);
    *flag = p2p_iprobe(proc->p2p, env, status);
    if (!*flag) {
        net_progress(proc->net);
        *flag = p2p_iprobe(proc->p2p, env, status);
    }
    if (*flag)
        return 0;
    api_yield_after_failed_test(proc);
    return p2p_probe_fault(proc->p2p, env);
}

int impl_Probe(int source, int tag, struct comm *comm, MPI_Status *status)
{
    int flag;
    if (source == MPI_PROC_NULL) {
        probe_no_proc(comm, &flag, status);
        return 0;
    }
    struct envelope env = comm_envelope(comm, source, tag);
    struct net_waiter w = {.awaited_kind = NET_MESSAGE, .awaited = &env};
    int rc = 0;
    while (!p2p_iprobe(comm->proc->p2p, env, status) && !(rc = p2p_probe_fault(comm->proc->p2p, env)))
        net_wait_step(comm->proc->net, &w);
    net_wait_end(comm->proc->net, &w);
    return rc;
}

/* Returns a matched message's handle. The message retains its communicator for errors of the receive. */
static MPI_Message return_message_handle(struct message *m, struct comm *comm)
{
    p2p_message_bind(m, comm_retain(comm));
    debug_message_probed(m);
    return (MPI_Message)m;
}

int impl_Improbe(int source, int tag, struct comm *comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    if (source == MPI_PROC_NULL) {
        probe_no_proc(comm, flag, status);
        *message = MPI_MESSAGE_NO_PROC;
        return 0;
    }
    struct proc *proc = comm->proc;
    struct envelope env = comm_envelope(comm, source, tag);
    struct message *m = p2p_improbe(proc->p2p, env, status);
    if (!m) {
        net_progress(proc->net);
        m = p2p_improbe(proc->p2p, env, status);
    }
    *flag = m != NULL;
    if (!m) {
        api_yield_after_failed_test(proc);
        return p2p_probe_fault(proc->p2p, env);
    }
    *message = return_message_handle(m, comm);
    return 0;
}

int impl_Mprobe(int source, int tag, struct comm *comm, MPI_Message *message, MPI_Status *status)
{
    int flag;
    if (source == MPI_PROC_NULL)
        return impl_Improbe(source, tag, comm, &flag, message, status);
    struct envelope env = comm_envelope(comm, source, tag);
    struct net_waiter w = {.awaited_kind = NET_MESSAGE, .awaited = &env};
    struct message *m;
    int rc = 0;
    while (!(m = p2p_improbe(comm->proc->p2p, env, status)) && !(rc = p2p_probe_fault(comm->proc->p2p, env)))
        net_wait_step(comm->proc->net, &w);
    net_wait_end(comm->proc->net, &w);
    if (m)
        *message = return_message_handle(m, comm);
    return rc;
}

/* Resolves a message handle; *out is NULL for MPI_MESSAGE_NO_PROC. */
static int resolve_message_handle(MPI_Message handle, struct message **out)
{
    *out = NULL;
    if (handle == MPI_MESSAGE_NO_PROC)
        return 0;
    /* Messages are allocated by malloc, not in object memory, so that large ones can be freed. */
    if (handle_is_predefined(handle) || !objmem_is_malloc_aligned(handle) ||
        ((struct object *)handle)->magic != MAGIC_MESSAGE)
        return err_set(MPI_ERR_REQUEST, "message is %s, not a message from MPI_Mprobe or MPI_Improbe",
                       handle == MPI_MESSAGE_NULL ? "MPI_MESSAGE_NULL" : "no valid handle");
    *out = (struct message *)handle;
    return 0;
}

int impl_Imrecv(void *buf, MPI_Count count, struct dtype *datatype, MPI_Message *message,
                MPI_Request *request)
{
    struct message *m;
    struct request *r = p2p_proc_null_request(the_proc->p2p);
    int rc = resolve_message_handle(*message, &m);
    if (rc == 0 && m)
        debug_message_received(m);
    if (rc == 0 && m)
        rc = p2p_imrecv(the_proc->p2p, m, buf, count, datatype, &r);
    if (rc != 0)
        return rc;
    *message = MPI_MESSAGE_NULL;
    *request = request_handle(r);
    return 0;
}

int impl_Mrecv(void *buf, MPI_Count count, struct dtype *datatype, MPI_Message *message, MPI_Status *status)
{
    MPI_Request request;
    int rc = impl_Imrecv(buf, count, datatype, message, &request);
    return rc ? rc : impl_Wait(&request, status);
}
