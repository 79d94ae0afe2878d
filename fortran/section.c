/* section.c: array sections of mpi_f08. In a call with one block of data, a section that is not contiguous
 * becomes a datatype. In calls with several blocks, and in reductions, which need their datatype unchanged,
 * the elements are copied to contiguous memory and back. The copy of a nonblocking call is recorded until a
 * Fortran call completes the request. A partitioned message is copied partition by partition.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fortran/fort.h"

struct kept {
    struct kept *next;
    MPI_Fint request;
    bool back, active;
    MPI_Count stride, low, span; /* see struct fort_section */
    void *copy;
    CFI_CDESC_T(CFI_MAX_RANK) section;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *kept_list;
/* Number of entries of kept_list; read without the lock: this thread's requests are already counted. */
int fort_copy_records;

static bool is_contiguous(const CFI_cdesc_t *d)
{
    CFI_index_t expected = (CFI_index_t)d->elem_len;
    for (int i = 0; i < d->rank; i++) {
        const CFI_index_t extent = d->dim[i].extent;
        if (extent == 0 || extent == -1) /* empty, or assumed size: the last dimension */
            return true;
        if (extent != 1 && d->dim[i].sm != expected)
            return false;
        expected *= extent;
    }
    return true;
}

static size_t element_count(const CFI_cdesc_t *d)
{
    size_t n = 1;
    for (int i = 0; i < d->rank; i++)
        n *= (size_t)d->dim[i].extent;
    return n;
}

/* The byte offset of the k-th element in array element order. */
static ptrdiff_t element_offset(const CFI_cdesc_t *d, size_t k)
{
    ptrdiff_t offset = 0;
    for (int i = 0; i < d->rank; i++) {
        const size_t extent = (size_t)d->dim[i].extent;
        offset += (ptrdiff_t)(k % extent) * d->dim[i].sm;
        k /= extent;
    }
    return offset;
}

static int reject_section(const char *why)
{
    fprintf(stderr, "Fishplate: an array section as a buffer: %s\n", why);
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_BUFFER);
    return MPI_ERR_BUFFER;
}

/* Makes a vector for each dimension: one element holds `per` items of the datatype and the whole section is used. */
static int make_vector_type(const CFI_cdesc_t *d, MPI_Count per, MPI_Datatype dtype, MPI_Datatype *made)
{
    MPI_Datatype type;
    int rc = PMPI_Type_contiguous_c(per, dtype, &type);
    for (int i = 0; i < d->rank && !rc; i++) {
        MPI_Datatype inner = type;
        rc = PMPI_Type_create_hvector_c(d->dim[i].extent, 1, d->dim[i].sm, inner, &type);
        PMPI_Type_free(&inner);
    }
    *made = type;
    return rc;
}

/* Makes a datatype of the section's first `elements` elements. */
static int make_element_type(const CFI_cdesc_t *d, size_t elements, MPI_Count per, MPI_Datatype dtype,
                             MPI_Datatype *made)
{
    MPI_Count *places = malloc(elements * sizeof(*places));
    if (!places)
        return MPI_ERR_NO_MEM;
    for (size_t i = 0; i < elements; i++)
        places[i] = element_offset(d, i);
    int rc = PMPI_Type_create_hindexed_block_c((MPI_Count)elements, per, places, dtype, made);
    free(places);
    return rc;
}

/* Finds the place of each byte of (count, dtype) in a contiguous buffer by packing buffers that contain their own
 * offsets, eight bits at a time. */
static int find_byte_places(size_t bytes, MPI_Count count, MPI_Datatype dtype, size_t packed,
                            uint64_t *places)
{
    unsigned char *digits = malloc(bytes), *picked = malloc(packed);
    int rc = digits && picked ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    memset(places, 0, packed * sizeof(*places));
    for (int shift = 0; !rc && (shift == 0 || bytes >> shift); shift += 8) {
        MPI_Count position = 0;
        for (size_t i = 0; i < bytes; i++)
            digits[i] = (unsigned char)(i >> shift);
        rc = PMPI_Pack_c(digits, count, dtype, picked, (MPI_Count)packed, &position, MPI_COMM_SELF);
        for (size_t i = 0; i < packed && !rc; i++)
            places[i] |= (uint64_t)picked[i] << shift;
    }
    free(digits);
    free(picked);
    return rc;
}

/* Makes a type for any datatype over any section, as runs of bytes. */
static int make_byte_type(const CFI_cdesc_t *d, MPI_Count count, MPI_Datatype dtype, MPI_Count size,
                          MPI_Datatype *made)
{
    const size_t packed = (size_t)(count * size);
    uint64_t *places = malloc(packed * sizeof(*places));
    MPI_Count *starts = malloc(packed * sizeof(*starts)), *lengths = malloc(packed * sizeof(*lengths));
    MPI_Count runs = 0;
    int rc = places && starts && lengths ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (!rc)
        rc = find_byte_places(element_count(d) * d->elem_len, count, dtype, packed, places);
    for (size_t i = 0; i < packed && !rc; i++) {
        const MPI_Count at =
            element_offset(d, places[i] / d->elem_len) + (MPI_Count)(places[i] % d->elem_len);
        if (runs > 0 && starts[runs - 1] + lengths[runs - 1] == at) {
            lengths[runs - 1]++;
        } else {
            starts[runs] = at;
            lengths[runs++] = 1;
        }
    }
    if (!rc)
        rc = PMPI_Type_create_hindexed_c(runs, lengths, starts, MPI_BYTE, made);
    free(places);
    free(starts);
    free(lengths);
    return rc;
}

static int build_type(const CFI_cdesc_t *d, MPI_Count count, MPI_Datatype dtype, MPI_Datatype *made)
{
    MPI_Count size, lb, extent, true_lb, true_extent;
    const MPI_Count element = (MPI_Count)d->elem_len, all = (MPI_Count)element_count(d);
    int rc = PMPI_Type_size_c(dtype, &size);
    if (!rc)
        rc = PMPI_Type_get_extent_c(dtype, &lb, &extent);
    if (!rc)
        rc = PMPI_Type_get_true_extent_c(dtype, &true_lb, &true_extent);
    if (rc)
        return rc;
    if (true_lb < 0 || extent < 0 || true_lb + (count - 1) * extent + true_extent > all * element)
        return reject_section("the datatype reaches beyond the section");
    const bool plain =
        size > 0 && !lb && !true_lb && extent == size && true_extent == size && element % size == 0;
    if (plain && count * size == all * element)
        return make_vector_type(d, element / size, dtype, made);
    if (plain && count * size % element == 0)
        return make_element_type(d, (size_t)(count * size / element), element / size, dtype, made);
    return make_byte_type(d, count, dtype, size, made);
}

/* Sets s->base, *count and *dtype so that they describe the section. */
int fort_section_type(struct fort_section *s, CFI_cdesc_t *section, MPI_Count *count, MPI_Datatype *dtype)
{
    s->base = fort_buffer(section->base_addr);
    s->made = MPI_DATATYPE_NULL;
    if (is_contiguous(section) || *count <= 0 || *dtype == MPI_DATATYPE_NULL)
        return MPI_SUCCESS;
    MPI_Datatype made;
    int rc = build_type(section, *count, *dtype, &made);
    if (rc)
        return rc;
    rc = PMPI_Type_commit(&made);
    s->made = made;
    *dtype = made;
    *count = 1;
    return rc;
}

/* Frees the datatype; MPI retains it for communication in progress. */
void fort_section_type_end(struct fort_section *s)
{
    if (s->made != MPI_DATATYPE_NULL)
        PMPI_Type_free(&s->made);
}

/* Copies some elements between the section and the contiguous copy, in either direction. */
static void copy_element_range(const CFI_cdesc_t *d, char *copy, size_t first, size_t end, bool to_section)
{
    const size_t size = d->elem_len;
    for (size_t i = first; i < end; i++) {
        char *element = (char *)d->base_addr + element_offset(d, i);
        memcpy(to_section ? element : copy + i * size, to_section ? copy + i * size : element, size);
    }
}

static void copy_all_elements(const CFI_cdesc_t *d, char *copy, bool to_section)
{
    copy_element_range(d, copy, 0, element_count(d), to_section);
}

int fort_section_copy(struct fort_section *s, CFI_cdesc_t *section, enum fort_lasts lasts, bool back)
{
    s->base = fort_buffer(section->base_addr);
    s->copy = NULL;
    s->section = section;
    s->back = back;
    s->persistent = lasts == FORT_PERSISTENT;
    s->stride = 0;
    if (is_contiguous(section))
        return MPI_SUCCESS;
    if (lasts == FORT_BEYOND)
        return reject_section("this call needs contiguous memory");
    s->copy = malloc(element_count(section) * section->elem_len);
    if (!s->copy)
        return reject_section("out of memory for a copy");
    copy_all_elements(section, s->copy, false);
    s->base = s->copy;
    return MPI_SUCCESS;
}

void fort_section_copy_end(struct fort_section *s)
{
    if (!s->copy)
        return;
    if (s->back)
        copy_all_elements(s->section, s->copy, true);
    free(s->copy);
}

static void add_copy_record(struct kept *k, MPI_Request request)
{
    k->request = PMPI_Request_c2f(request);
    pthread_mutex_lock(&lock);
    k->next = kept_list;
    kept_list = k;
    __atomic_add_fetch(&fort_copy_records, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

static struct kept *allocate_copy_record(void *copy)
{
    struct kept *k = calloc(1, sizeof(*k));
    if (!k)
        abort();
    k->copy = copy;
    return k;
}

/* Called after the MPI call: retains the copy until the request is complete. */
void fort_section_copy_until_done(struct fort_section *s, int rc, MPI_Request request)
{
    if (!s->copy)
        return;
    if (rc || request == MPI_REQUEST_NULL) {
        fort_section_copy_end(s);
        return;
    }
    struct kept *k = allocate_copy_record(s->copy);
    k->back = s->back;
    k->active = !s->persistent;
    k->stride = s->stride;
    k->low = s->low;
    k->span = s->span;
    memcpy(&k->section, s->section,
           offsetof(CFI_cdesc_t, dim) + (size_t)s->section->rank * sizeof(CFI_dim_t));
    add_copy_record(k, request);
}

void fort_free_after_request(void *memory, int rc, MPI_Request request)
{
    if (rc || request == MPI_REQUEST_NULL) {
        free(memory);
        return;
    }
    struct kept *k = allocate_copy_record(memory);
    k->section.rank = 1;
    add_copy_record(k, request);
}

/* Called before a start: copies the sections of a persistent request again. */
void fort_request_starts(MPI_Fint request)
{
    if (!__atomic_load_n(&fort_copy_records, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&lock);
    for (struct kept *k = kept_list; k; k = k->next) {
        if (k->request == request && !k->active) {
            copy_all_elements((CFI_cdesc_t *)&k->section, k->copy, false);
            k->active = true;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Called for a request that was passed to a completion call; `now` is the request afterwards. */
void fort_request_ended(MPI_Fint request, MPI_Request now)
{
    int done = 1;
    pthread_mutex_lock(&lock);
    for (struct kept **at = &kept_list; *at;) {
        struct kept *k = *at;
        if (k->request != request) {
            at = &k->next;
            continue;
        }
        if (now != MPI_REQUEST_NULL)
            PMPI_Request_get_status(now, &done, MPI_STATUS_IGNORE);
        if (done && k->active && k->back)
            copy_all_elements((CFI_cdesc_t *)&k->section, k->copy, true);
        if (done)
            k->active = false;
        if (now != MPI_REQUEST_NULL) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        __atomic_sub_fetch(&fort_copy_records, 1, __ATOMIC_RELAXED);
        free(k->copy);
        free(k);
    }
    pthread_mutex_unlock(&lock);
}

void fort_section_partitions(struct fort_section *s, MPI_Count count, MPI_Datatype dtype)
{
    MPI_Count lb, extent, true_lb, true_extent;
    if (!s->copy || count <= 0 || PMPI_Type_get_extent_c(dtype, &lb, &extent) ||
        PMPI_Type_get_true_extent_c(dtype, &true_lb, &true_extent))
        return;
    s->stride = count * extent;
    s->low = true_lb;
    s->span = (count - 1) * extent + true_extent;
}

/* Copies an element that two partitions share with each of them, so only one thread may copy at a time. */
static void copy_partitions(MPI_Fint request, MPI_Count low, MPI_Count high, bool arrived)
{
    if (!__atomic_load_n(&fort_copy_records, __ATOMIC_RELAXED) || low < 0 || high < low)
        return;
    pthread_mutex_lock(&lock);
    for (struct kept *k = kept_list; k; k = k->next) {
        if (k->request != request || k->stride <= 0 || !k->active || k->back != arrived)
            continue;
        const CFI_cdesc_t *section = (const CFI_cdesc_t *)&k->section;
        const MPI_Count size = (MPI_Count)section->elem_len, all = (MPI_Count)element_count(section);
        const MPI_Count first = (low * k->stride + k->low) / size;
        const MPI_Count end = (high * k->stride + k->low + k->span + size - 1) / size;
        if (first >= 0 && first < all)
            copy_element_range(section, k->copy, (size_t)first, (size_t)(end < all ? end : all), arrived);
    }
    pthread_mutex_unlock(&lock);
}

/* Copies partitions that the program marks as ready; the program may have written them after the start. */
void fort_partitions_ready(MPI_Fint request, int low, int high)
{
    copy_partitions(request, low, high, false);
}

void fort_partition_arrived(MPI_Fint request, int partition)
{
    copy_partitions(request, partition, partition, true);
}
