/* hints.c: parses the hints of files, and returns the hints in use.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/hints.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/tunable.h"
#include "base/util.h"
#include "obj/hints.h"

/* Default of all buffers: two of them fit in the second-level cache of a processor. */
#define BUFFER_SIZE (512 << 10)

const struct io_hint_info io_hint_list[IO_HINTS] = {
    {"romio_cb_read", "automatic, enable, disable", "automatic",
     "Collective buffering of collective reads: aggregators read large blocks and send each rank its part. "
     "automatic: when "
     "ranks' accesses interleave in small pieces."},
    {"romio_cb_write", "automatic, enable, disable", "automatic", "The same for collective writes."},
    {"collective_buffering", "true, false", "",
     "The standard's name: sets romio_cb_read and romio_cb_write."},
    {"cb_nodes", "1 to the number of ranks", "2 for each node",
     "Number of aggregators. They are taken from the nodes in turn."},
    {"cb_config_list", "*:N", "", "Aggregators on each node; cb_nodes still limits the total."},
    {"cb_buffer_size", "bytes", "524288", "Bytes that an aggregator reads or writes in one round."},
    {"cb_block_size", "bytes", "", "Accepted and not used."},
    {"romio_ds_read", "automatic, enable, disable", "automatic",
     "Data sieving of independent reads: one read over small holes instead of one for each piece."},
    {"romio_ds_write", "automatic, enable, disable", "automatic",
     "Data sieving of independent writes: read, change and write again under a file lock. automatic: small "
     "pieces on ext4 and xfs where the ranks' views together cover the file. enable: always, also bytes that "
     "no rank requested to write; every write of this file then takes a lock. disable: never."},
    {"ind_rd_buffer_size", "bytes", "524288", "Largest read over holes in independent access."},
    {"ind_wr_buffer_size", "bytes", "524288",
     "Buffer for independent writes over holes, and from memory that is not contiguous."},
    {"striping_factor", "count", "",
     "On Lustre: servers that a file which is created is spread over. MPI_File_get_info returns what the "
     "file has. "
     "Aggregators then have stripes in turn, each always those of the same servers."},
    {"striping_unit", "bytes", "",
     "On Lustre: size of a stripe of a file that is created, a multiple of 65536. Everywhere: the parts of "
     "the file that "
     "aggregators have are aligned to it. On GPFS the size of a block is found."},
    {"file_perm", "octal number", "0666 without umask", "Permissions of a file that is created."},
    {"fishplate_sync_close", "true, false", "false",
     "MPI_File_close calls fsync first, so that it reports disk errors that no write could report."},
    {"fishplate_map", "automatic, disable", "automatic",
     "Independent writes of small pieces with small holes go through a mapping of the file, on tmpfs, ext4 "
     "and xfs; on tmpfs also writes of larger pieces while another rank of the node is writing. "
     "disable: system calls only. Use it when the program handles SIGBUS itself."},
};

void io_hints_default(struct io_hints *h)
{
    *h = (struct io_hints){.cb_buffer_size = BUFFER_SIZE,
                           .ind_rd_buffer_size = BUFFER_SIZE,
                           .ind_wr_buffer_size = BUFFER_SIZE,
                           .file_perm = -1};
}

static void parse_choice_hint(const struct info *info, const char *key, enum io_choice *out)
{
    static const char *const names[] = {"automatic", "enable", "disable"};
    const char *value = info_get(info, key);
    for (size_t i = 0; value && i < COUNT_OF(names); i++)
        if (strcasecmp(value, names[i]) == 0)
            *out = (enum io_choice)i;
}

static void parse_number_hint(const struct info *info, const char *key, int base, int64_t min, int64_t max,
                              int64_t *out)
{
    const char *value = info_get(info, key);
    char *end;
    if (!value)
        return;
    errno = 0;
    const long long n = strtoll(value, &end, base);
    if (errno == 0 && end != value && *end == '\0' && n >= min && n <= max)
        *out = n;
}

static void parse_bool_hint(const struct info *info, const char *key, bool *out)
{
    const char *value = info_get(info, key);
    if (value && strcasecmp(value, "true") == 0)
        *out = true;
    else if (value && strcasecmp(value, "false") == 0)
        *out = false;
}

/* Accepts the forms "*:2" and "*:*" of cb_config_list. Forms with host names are ignored. */
static void parse_list_hint(const struct info *info, int64_t *out)
{
    const char *value = info_get(info, "cb_config_list");
    int64_t n;
    if (value && strcmp(value, "*:*") == 0)
        *out = INT32_MAX;
    else if (value && strncmp(value, "*:", 2) == 0 && tunable_parse_number(value + 2, false, &n) && n > 0)
        *out = MIN(n, INT32_MAX);
}

void io_hints_apply(struct io_hints *h, const struct info *info, bool opening)
{
    if (!info)
        return;
    const char *buffering = info_get(info, "collective_buffering");
    if (buffering && (strcasecmp(buffering, "true") == 0 || strcasecmp(buffering, "false") == 0))
        h->cb_read = h->cb_write = strcasecmp(buffering, "true") == 0 ? IO_ENABLE : IO_DISABLE;
    parse_choice_hint(info, "romio_cb_read", &h->cb_read);
    parse_choice_hint(info, "romio_cb_write", &h->cb_write);
    parse_choice_hint(info, "romio_ds_read", &h->ds_read);
    parse_number_hint(info, "cb_buffer_size", 10, 4096, (int64_t)1 << 31, &h->cb_buffer_size);
    parse_number_hint(info, "ind_rd_buffer_size", 10, 4096, (int64_t)1 << 31, &h->ind_rd_buffer_size);
    parse_number_hint(info, "ind_wr_buffer_size", 10, 4096, (int64_t)1 << 31, &h->ind_wr_buffer_size);
    parse_bool_hint(info, "fishplate_sync_close", &h->sync_close);
    if (!opening)
        return;
    parse_choice_hint(info, "romio_ds_write", &h->ds_write);
    parse_choice_hint(info, "fishplate_map", &h->map);
    parse_number_hint(info, "cb_nodes", 10, 1, INT32_MAX, &h->cb_nodes);
    parse_list_hint(info, &h->cb_per_node);
    parse_number_hint(info, "striping_factor", 10, 1, INT32_MAX, &h->striping_factor);
    parse_number_hint(info, "striping_unit", 10, 4096, (int64_t)1 << 31, &h->striping_unit);
    parse_number_hint(info, "file_perm", 8, 0, 07777, &h->file_perm);
}

static int set_number(struct info *i, const char *key, int64_t value)
{
    char text[32];
    if (value <= 0)
        return 0;
    snprintf(text, sizeof(text), "%lld", (long long)value);
    return info_set(i, key, text);
}

static int set_choice(struct info *i, const char *key, enum io_choice value)
{
    return info_set(i, key, value == IO_AUTOMATIC ? "automatic" : value == IO_ENABLE ? "enable" : "disable");
}

static int io_hints_fill(const struct io_hints *h, int aggregators, struct info *i)
{
    int rc = set_choice(i, "romio_cb_read", h->cb_read);
    rc = rc ? rc : set_choice(i, "romio_cb_write", h->cb_write);
    rc = rc ? rc : set_choice(i, "romio_ds_read", h->ds_read);
    rc = rc ? rc : set_choice(i, "romio_ds_write", h->ds_write);
    rc = rc ? rc : set_number(i, "cb_nodes", aggregators);
    rc = rc ? rc : set_number(i, "cb_buffer_size", h->cb_buffer_size);
    rc = rc ? rc : set_number(i, "ind_rd_buffer_size", h->ind_rd_buffer_size);
    rc = rc ? rc : set_number(i, "ind_wr_buffer_size", h->ind_wr_buffer_size);
    rc = rc ? rc : set_number(i, "striping_factor", h->striping_factor);
    rc = rc ? rc : set_number(i, "striping_unit", h->striping_unit);
    if (!rc && h->file_perm >= 0) {
        char text[32];
        snprintf(text, sizeof(text), "%llo", (unsigned long long)h->file_perm);
        rc = info_set(i, "file_perm", text);
    }
    rc = rc ? rc : set_choice(i, "fishplate_map", h->map);
    return rc ? rc : info_set(i, "fishplate_sync_close", h->sync_close ? "true" : "false");
}

int io_hints_used(const struct io_hints *h, const char *name, int aggregators, struct info **out)
{
    struct info *i;
    int rc = info_create(&i);
    if (!rc)
        rc = io_hints_fill(h, aggregators, i);
    if (!rc && strlen(name) < MPI_MAX_INFO_VAL)
        rc = info_set(i, "filename", name);
    if (!rc)
        rc = info_set(i, HINT_MEMORY_KINDS, hints_memory_kinds());
    if (rc)
        info_release(i);
    else
        *out = i;
    return rc;
}
