/* p2p_complete.c: wait and test, for one, any, some and all requests of every kind.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"
#include "api/p2p.h"
#include "api/call_error.h"
#include "impl.h"
#include "p2p/peer_death.h"

static inline bool is_complete(const struct request *r)
{
    return atomic_load_explicit(&r->complete, memory_order_acquire) != 0;
}

/* True for a handle with nothing to wait for: null, or persistent and not started. Requires a valid
 * handle. */
static inline bool is_idle(MPI_Request handle)
{
    if (handle_is_predefined(handle))
        return true;
    const struct request *r = (const struct request *)handle;
    return r->persistent && !r->active;
}

static __attribute__((noinline, cold)) int bad_request(void)
{
    return err_set(MPI_ERR_REQUEST, "request is not a valid handle: it was freed or completed before, or "
                                    "never set");
}

static inline int check_handle(MPI_Request handle)
{
    return likely(request_from_handle(handle) || handle == MPI_REQUEST_NULL) ? 0 : bad_request();
}

static int check_all(int count, const MPI_Request requests[])
{
    for (int i = 0; i < count; i++) {
        int rc = check_handle(requests[i]);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Finishes a generalized request: the user's query function sets the status; an error of the free function
 * takes precedence over its error (MPI-5.0, 13.2). */
static __attribute__((noinline, cold)) int finish_general(MPI_Request *handle, MPI_Status *status)
{
    struct request *r = (struct request *)*handle;
    *handle = MPI_REQUEST_NULL;
    int queried = request_status(r, status);
    int freed = r->ops->forget(r);
    request_free(r);
    return freed ? freed : queried;
}

/* Copies the status of a complete request, releases the request and returns its error. */
static inline int request_finish(MPI_Request *handle, MPI_Status *status)
{
    struct request *r = (struct request *)*handle;
    if (r->shared && status == MPI_STATUS_IGNORE) {
        *handle = MPI_REQUEST_NULL;
        return 0;
    }
    if (unlikely(r->obj.magic != MAGIC_REQUEST))
        return bad_request(); /* the handle is in the list twice and was released before */
    if (unlikely(r->ops->query != NULL))
        return finish_general(handle, status);
    int rc = r->error;
    if (status != MPI_STATUS_IGNORE)
        request_status(r, status);
    if (unlikely(rc != 0))
        api_select_request_errhandler(r, rc);
    if (unlikely(rc == MPIX_ERR_PROC_FAILED_PENDING))
        return rc; /* the request stays active: a message may still match it */
    if (r->persistent) {
        r->active = false;
    } else {
        *handle = MPI_REQUEST_NULL;
        request_free(r);
    }
    return rc;
}

/* True for a handle that is invalid, null or inactive: *rc is then the result of the MPI call. */
static inline bool is_null_or_inactive(MPI_Request handle, MPI_Status *status, int *rc)
{
    *rc = check_handle(handle);
    if (unlikely(*rc != 0))
        return true;
    if (!is_idle(handle))
        return false;
    status_set_empty(status);
    return true;
}

int impl_Wait(MPI_Request *request, MPI_Status *status)
{
    int rc;
    if (is_null_or_inactive(*request, status, &rc))
        return rc;
    p2p_wait(the_proc->p2p, (struct request *)*request);
    return request_finish(request, status);
}

int impl_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    int rc;
    *flag = 1;
    if (is_null_or_inactive(*request, status, &rc))
        return rc;
    struct request *r = (struct request *)*request;
    if (!is_complete(r))
        net_progress(the_proc->net);
    if (is_complete(r))
        return request_finish(request, status);
    *flag = 0;
    api_yield_after_failed_test(the_proc);
    return 0;
}

static MPI_Status *status_at(MPI_Status *statuses, int i)
{
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

static void set_error(MPI_Status *status, int error)
{
    if (status != MPI_STATUS_IGNORE)
        status->MPI_ERROR = error;
}

/* Records the error of the i-th of several requests. MPI_ERROR is written only if some failed, and then in all
 * statuses. */
static void record_status_error(MPI_Status *statuses, int i, int error, int *failed)
{
    if (likely(error == 0 && *failed == 0))
        return;
    for (int before = 0; *failed == 0 && before < i; before++)
        set_error(status_at(statuses, before), MPI_SUCCESS);
    *failed += error != 0;
    set_error(status_at(statuses, i), error);
}

static int finish_all(int count, MPI_Request requests[], MPI_Status *statuses)
{
    int failed = 0;
    for (int i = 0; i < count; i++) {
        MPI_Status *status = status_at(statuses, i);
        if (is_idle(requests[i])) {
            status_set_empty(status);
            continue;
        }
        record_status_error(statuses, i, request_finish(&requests[i], status), &failed);
    }
    return failed ? MPI_ERR_IN_STATUS : 0;
}

static bool all_complete(int count, const MPI_Request requests[])
{
    for (int i = 0; i < count; i++)
        if (!is_idle(requests[i]) && !is_complete((struct request *)requests[i]))
            return false;
    return true;
}

static void wait_each(int count, const MPI_Request requests[])
{
    const struct request_set all = {count, requests};
    for (int i = 0; i < count; i++) {
        const MPI_Request handle = requests[i];
        if (!handle_is_predefined(handle) && !is_complete((struct request *)handle) && !is_idle(handle))
            p2p_wait_among(the_proc->p2p, (struct request *)handle, &all);
    }
}

int impl_Waitall(int count, MPI_Request array_of_requests[], MPI_Status *array_of_statuses)
{
    int rc = check_all(count, array_of_requests);
    if (unlikely(rc != 0))
        return rc;
    /* A suspended receive (MPIX_ERR_PROC_FAILED_PENDING) becomes incomplete if it matches a message while
     * this call waits for another request: wait again. */
    do
        wait_each(count, array_of_requests);
    while (unlikely(p2p_has_faults(the_proc->p2p)) && !all_complete(count, array_of_requests));
    return finish_all(count, array_of_requests, array_of_statuses);
}

/* For MPI_Testall: checks, makes progress once if necessary, and checks again. */
static bool test_all_requests(int count, const MPI_Request requests[])
{
    if (all_complete(count, requests))
        return true;
    net_progress(the_proc->net);
    return all_complete(count, requests);
}

int impl_Testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status *array_of_statuses)
{
    int rc = check_all(count, array_of_requests);
    if (rc != 0)
        return rc;
    *flag = test_all_requests(count, array_of_requests);
    if (*flag)
        return finish_all(count, array_of_requests, array_of_statuses);
    api_yield_after_failed_test(the_proc);
    return 0;
}

/* Index of the first complete request, -1 when none is, MPI_UNDEFINED when there is nothing to wait for. */
static int find_complete(int count, const MPI_Request requests[])
{
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (is_idle(requests[i]))
            continue;
        if (is_complete((struct request *)requests[i]))
            return i;
        any = true;
    }
    return any ? -1 : MPI_UNDEFINED;
}

static int test_for_complete_request(int count, const MPI_Request requests[])
{
    int found = find_complete(count, requests);
    if (found != -1)
        return found;
    net_progress(the_proc->net);
    return find_complete(count, requests);
}

static int wait_for_complete_request(int count, const MPI_Request requests[])
{
    const struct request_set any = {count, requests};
    struct net_waiter w = {.awaited_kind = NET_ANY_OF, .awaited = &any};
    int found;
    while ((found = find_complete(count, requests)) == -1)
        net_wait_step(the_proc->net, &w);
    net_wait_end(the_proc->net, &w);
    return found;
}

static int finish_found_request(int found, MPI_Request requests[], int *indx, MPI_Status *status)
{
    *indx = found;
    if (found != MPI_UNDEFINED)
        return request_finish(&requests[found], status);
    status_set_empty(status);
    return 0;
}

int impl_Waitany(int count, MPI_Request array_of_requests[], int *indx, MPI_Status *status)
{
    int rc = check_all(count, array_of_requests);
    if (rc != 0)
        return rc;
    int found = wait_for_complete_request(count, array_of_requests);
    return finish_found_request(found, array_of_requests, indx, status);
}

int impl_Testany(int count, MPI_Request array_of_requests[], int *indx, int *flag, MPI_Status *status)
{
    int rc = check_all(count, array_of_requests);
    if (rc != 0)
        return rc;
    int found = test_for_complete_request(count, array_of_requests);
    *flag = found != -1;
    *indx = MPI_UNDEFINED;
    if (*flag)
        return finish_found_request(found, array_of_requests, indx, status);
    api_yield_after_failed_test(the_proc);
    return 0;
}

static int finish_some(int incount, MPI_Request requests[], int *outcount, int indices[],
                       MPI_Status *statuses)
{
    int n = 0, failed = 0;
    for (int i = 0; i < incount; i++) {
        if (is_idle(requests[i]) || !is_complete((struct request *)requests[i]))
            continue;
        record_status_error(statuses, n, request_finish(&requests[i], status_at(statuses, n)), &failed);
        indices[n++] = i;
    }
    *outcount = n;
    return failed ? MPI_ERR_IN_STATUS : 0;
}

/* Completes some requests. `find` returns MPI_UNDEFINED if no request is active. */
static inline int requests_complete_some(int (*find)(int, const MPI_Request *), int count,
                                         MPI_Request requests[], int *outcount, int indices[],
                                         MPI_Status *statuses)
{
    int rc = check_all(count, requests);
    if (rc != 0)
        return rc;
    if (find(count, requests) == MPI_UNDEFINED) {
        *outcount = MPI_UNDEFINED;
        return 0;
    }
    return finish_some(count, requests, outcount, indices, statuses);
}

int impl_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                  MPI_Status *array_of_statuses)
{
    return requests_complete_some(wait_for_complete_request, incount, array_of_requests, outcount,
                                  array_of_indices, array_of_statuses);
}

int impl_Testsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                  MPI_Status *array_of_statuses)
{
    int rc = requests_complete_some(test_for_complete_request, incount, array_of_requests, outcount,
                                    array_of_indices, array_of_statuses);
    if (rc == 0 && *outcount == 0)
        api_yield_after_failed_test(the_proc);
    return rc;
}

int impl_Request_get_status(struct request *request, int *flag, MPI_Status *status)
{
    *flag = 1;
    if (!request || (request->persistent && !request->active)) {
        status_set_empty(status);
        return 0;
    }
    if (!is_complete(request))
        net_progress(the_proc->net);
    *flag = is_complete(request);
    if (*flag)
        return request_status(request, status);
    api_yield_after_failed_test(the_proc);
    return 0;
}

/* Reads the status of one of several complete requests without completing the request. */
static void peek_status(MPI_Request handle, MPI_Status *statuses, int i, int *failed)
{
    struct request *r = (struct request *)handle;
    int rc = request_status(r, status_at(statuses, i));
    record_status_error(statuses, i, rc ? rc : r->error, failed);
}

int impl_Request_get_status_all(int count, const MPI_Request array_of_requests[], int *flag,
                                MPI_Status *array_of_statuses)
{
    int rc = check_all(count, array_of_requests);
    if (rc != 0)
        return rc;
    int failed = 0;
    *flag = test_all_requests(count, array_of_requests);
    for (int i = 0; *flag && i < count; i++) {
        if (is_idle(array_of_requests[i]))
            status_set_empty(status_at(array_of_statuses, i));
        else
            peek_status(array_of_requests[i], array_of_statuses, i, &failed);
    }
    if (!*flag)
        api_yield_after_failed_test(the_proc);
    return failed ? MPI_ERR_IN_STATUS : 0;
}

int impl_Request_get_status_any(int count, const MPI_Request array_of_requests[], int *indx, int *flag,
                                MPI_Status *status)
{
    int rc = check_all(count, array_of_requests);
    if (rc != 0)
        return rc;
    int found = test_for_complete_request(count, array_of_requests);
    *flag = found != -1;
    *indx = found == -1 ? MPI_UNDEFINED : found;
    if (found >= 0)
        return request_status((struct request *)array_of_requests[found], status);
    if (found == MPI_UNDEFINED)
        status_set_empty(status);
    else
        api_yield_after_failed_test(the_proc);
    return 0;
}

int impl_Request_get_status_some(int incount, const MPI_Request array_of_requests[], int *outcount,
                                 int array_of_indices[], MPI_Status *array_of_statuses)
{
    int rc = check_all(incount, array_of_requests);
    if (rc != 0)
        return rc;
    if (test_for_complete_request(incount, array_of_requests) == MPI_UNDEFINED) {
        *outcount = MPI_UNDEFINED;
        return 0;
    }
    int failed = 0;
    *outcount = 0;
    for (int i = 0; i < incount; i++) {
        if (is_idle(array_of_requests[i]) || !is_complete((struct request *)array_of_requests[i]))
            continue;
        peek_status(array_of_requests[i], array_of_statuses, *outcount, &failed);
        array_of_indices[(*outcount)++] = i;
    }
    if (*outcount == 0)
        api_yield_after_failed_test(the_proc);
    return failed ? MPI_ERR_IN_STATUS : 0;
}

int impl_Request_free(MPI_Request *request)
{
    struct request *r = request_from_handle(*request);
    if (!r)
        return bad_handle(HANDLE_REQUEST, "request", *request);
    *request = MPI_REQUEST_NULL;
    if (unlikely(p2p_is_suspended(r)))
        p2p_free_suspended(r);
    else if (is_complete(r) || (r->persistent && !r->active))
        request_free(r);
    else
        r->freed = true;
    return 0;
}

int impl_Cancel(MPI_Request *request)
{
    struct request *r = request_from_handle(*request);
    if (!r)
        return bad_handle(HANDLE_REQUEST, "request", *request);
    if (!r->ops->cancel && !r->shared)
        return api_select_request_errhandler(
            r, err_set(MPI_ERR_REQUEST, "request is a %s, which cannot be cancelled", r->ops->name));
    /* The cancel function of a generalized request is called even if the request is complete. */
    if (r->active && (!is_complete(r) || r->ops->query || p2p_is_suspended(r)))
        return p2p_cancel(the_proc->p2p, r);
    return 0;
}
