/* stripes.c: see stripes.h. The layout of Lustre is read and set by the extended attribute lustre.lov,
 * without a library: its value is the structure of Lustre's user interface, in the byte order of the
 * machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/stripes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LUSTRE_MAGIC 0x0bd00bd0
#define GPFS_MAGIC   0x47504653

#define LAYOUT_NAME      "lustre.lov"
#define LAYOUT_V1        0x0bd10bd0
#define LAYOUT_V3        0x0bd30bd0 /* begins with the members of V1 */
#define LAYOUT_COMPOSITE 0x0bd60bd0 /* several layouts, each for a part of the file */
#define PATTERN_RAID0    1
#define ANY_SERVER       0xffff
#define LAYOUT_MAX       65536
#define STRIPE_MIN       65536 /* bytes; stripe sizes are multiples of this number */
#define STRIPES_MAX      2000

struct layout {
    uint32_t magic, pattern;
    uint64_t object[2];
    uint32_t stripe_size;
    uint16_t stripe_count, stripe_offset;
};
_Static_assert(sizeof(struct layout) == 32, "the size of Lustre's lov_user_md_v1");

struct composite {
    uint32_t magic, size, generation;
    uint16_t flags, entries;
    uint16_t mirrors, padding[3];
    uint64_t padding2;
};
_Static_assert(sizeof(struct composite) == 32, "the size of Lustre's lov_comp_md_v1");

enum { ENTRY_SIZE = 48, ENTRY_OFFSET_AT = 24 };

static bool is_on_lustre(const char *path)
{
    struct statfs fs;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    const bool is = folder && statfs(folder, &fs) == 0 && (uint32_t)fs.f_type == LUSTRE_MAGIC;
    free(folder);
    return is;
}

/* mknod creates a file without objects on the servers, whose layout can still be set. */
bool stripes_create(const struct file *f, mode_t mode)
{
    const struct io_hints *h = &f->hints;
    if (!(f->amode & MPI_MODE_CREATE) || (!h->striping_factor && !h->striping_unit) || !is_on_lustre(f->path))
        return false;
    struct layout l = {.magic = LAYOUT_V1,
                       .pattern = PATTERN_RAID0,
                       .stripe_size = (uint32_t)(h->striping_unit / STRIPE_MIN * STRIPE_MIN),
                       .stripe_count = (uint16_t)MIN(h->striping_factor, STRIPES_MAX),
                       .stripe_offset = ANY_SERVER};
    if (mknod(f->path, S_IFREG | mode, 0) != 0)
        return false; /* the file exists; its layout cannot be changed */
    if (setxattr(f->path, LAYOUT_NAME, &l, sizeof(l), 0) == 0)
        return true;
    unlink(f->path); /* open(2) creates it with the layout of the folder */
    return false;
}

/* Reads the last component of a composite layout, which applies to most of a large file. */
static bool read_layout(const char *value, size_t size, struct layout *out)
{
    struct composite c;
    uint32_t at = 0;
    if (size < sizeof(*out))
        return false;
    memcpy(&c, value, sizeof(c));
    if (c.magic == LAYOUT_COMPOSITE) {
        const size_t entry = sizeof(c) + ((size_t)c.entries - 1) * ENTRY_SIZE;
        if (c.entries == 0 || entry + ENTRY_SIZE > size)
            return false;
        memcpy(&at, value + entry + ENTRY_OFFSET_AT, sizeof(at));
    }
    if (at > size - sizeof(*out))
        return false;
    memcpy(out, value + at, sizeof(*out));
    return (out->magic == LAYOUT_V1 || out->magic == LAYOUT_V3) && out->stripe_size >= STRIPE_MIN;
}

static void find_lustre(struct file *f)
{
    struct layout l;
    char *value = malloc(LAYOUT_MAX);
    const ssize_t got = value ? fgetxattr(f->fd, LAYOUT_NAME, value, LAYOUT_MAX) : -1;
    if (got > 0 && read_layout(value, (size_t)got, &l)) {
        f->hints.striping_unit = l.stripe_size;
        if (l.stripe_count > 0 && l.stripe_count <= STRIPES_MAX)
            f->hints.striping_factor = l.stripe_count;
    }
    free(value);
}

void stripes_find(struct file *f)
{
    struct statfs fs;
    struct stat st;
    if (fstatfs(f->fd, &fs) != 0)
        return;
    if ((uint32_t)fs.f_type == LUSTRE_MAGIC)
        find_lustre(f);
    else if ((uint32_t)fs.f_type == GPFS_MAGIC && fstat(f->fd, &st) == 0 && st.st_blksize >= STRIPE_MIN)
        f->hints.striping_unit = st.st_blksize;
}
