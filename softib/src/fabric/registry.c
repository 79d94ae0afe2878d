/* registry.c: finds the registry of a fabric, for the library and for the softib tool. Members are found
 * by the names of their abstract sockets, and their registry is opened through /proc.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/registry.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

socklen_t abstract_name(struct sockaddr_un *a, const char *fmt, ...)
{
    memset(a, 0, sizeof(*a));
    a->sun_family = AF_UNIX;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, fmt, ap);
    va_end(ap);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int bind_name(const struct sockaddr_un *a, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)a, len)) {
        int e = errno;
        close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

socklen_t member_doorbell_name(struct sockaddr_un *a, uint64_t key, const struct reg_member *m)
{
    return abstract_name(a, "softib/%016llx/%d.%d.%016llx", (unsigned long long)key, m->pid, m->reg_fd,
                         (unsigned long long)m->nonce);
}

uint64_t registry_key(const struct fabric *f)
{
    struct stat st = {0};
    stat("/proc/self/ns/pid", &st);
    uint64_t k[4] = {f->id, (uint64_t)getuid(), (uint64_t)st.st_ino, SHM_MAGIC};
    uint64_t h = hash_bytes(k, sizeof(k), 1469598103934665603ull);
    /* With wire=tcp each node has its own registry, as if it were a machine of its own. */
    return f->wire == WIRE_TCP ? hash_bytes(&f->node, sizeof(f->node), h) : h;
}

int shared_create(const char *name, uint64_t bytes)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && !ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, SHARED_SEALS))
        return fd;
    int e = errno;
    if (fd >= 0)
        close(fd);
    errno = e;
    return -1;
}

#define BOTH (S_IRUSR | S_IWUSR)

/* True for a regular file of this user whose pages contain `from` + `length` bytes. The rest of the last page
 * counts: it can be mapped and accessed, and regions are whole pages in most programs. */
static bool registry_file_is_valid(int fd, uint64_t from, uint64_t length, uint64_t *size)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || length > UINT64_MAX - from)
        return false;
    *size = (uint64_t)st.st_size;
    return from + length <= (*size + page - 1) / page * page;
}

int shared_open_checked(int pid, int fd, uint64_t from, uint64_t length)
{
    char path[64];
    uint64_t size;
    struct stat link; /* its permissions show how the other process has opened the file */
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    /* Without O_PATH, opening a device could have side effects. */
    const int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0)
        return -1;
    const bool writes = !lstat(path, &link) && (link.st_mode & BOTH) == BOTH;
    const bool fits = writes && registry_file_is_valid(place, from, length, &size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
    const int file = fits ? open(path, O_RDWR | O_CLOEXEC) : -1;
    const int why = fits ? errno : EPERM;
    close(place);
    errno = why;
    return file;
}

int shared_open(int pid, int fd, uint64_t bytes)
{
    uint64_t size;
    const int file = shared_open_checked(pid, fd, 0, bytes);
    if (file < 0 || (registry_file_is_valid(file, 0, bytes, &size) && size == bytes &&
                     (fcntl(file, F_GET_SEALS) & SHARED_SEALS) == SHARED_SEALS))
        return file;
    close(file);
    errno = EPERM;
    return -1;
}

static bool is_word_in_range(int fd, size_t at, uint32_t least, uint32_t most)
{
    uint32_t v;
    return pread(fd, &v, sizeof(v), (off_t)at) == sizeof(v) && v >= least && v <= most;
}

static bool is_registry_of(int fd, uint64_t key)
{
    uint64_t v;
    return pread(fd, &v, sizeof(v), offsetof(struct registry, key)) == sizeof(v) && v == key;
}

/* Opens the registry that a socket name designates by process and descriptor. Any process can bind such a
 * name; therefore owner, size and seals of the file are checked, and the fabric: the name could designate the
 * registry of another fabric of this user. */
static int registry_open(int pid, int fd, uint64_t key)
{
    int r = shared_open(pid, fd, sizeof(struct registry));
    if (r < 0)
        return -1;
    if (is_word_in_range(r, offsetof(struct registry, magic), SHM_MAGIC, SHM_MAGIC) &&
        is_word_in_range(r, offsetof(struct registry, bytes), sizeof(struct registry),
                         sizeof(struct registry)) &&
        is_word_in_range(r, offsetof(struct registry, slots), 0, MEMBERS) && is_registry_of(r, key))
        return r;
    close(r);
    return -1;
}

/* Parses a number of at most nine digits. */
static const char *registry_parse_number(const char *p, int *out)
{
    const char *from = p;
    for (*out = 0; *p >= '0' && *p <= '9' && p - from < 9; p++)
        *out = *out * 10 + (*p - '0');
    return p > from && !(*p >= '0' && *p <= '9') ? p : NULL;
}

int registry_find_in(FILE *in, uint64_t key)
{
    char line[512], want[64];
    snprintf(want, sizeof(want), "@softib/%016llx/", (unsigned long long)key);
    int fd = -1;
    while (fd < 0 && fgets(line, sizeof(line), in)) {
        const char *p = strstr(line, want);
        int pid, reg;
        p = p ? registry_parse_number(p + strlen(want), &pid) : NULL;
        if (p && *p == '.' && registry_parse_number(p + 1, &reg))
            fd = registry_open(pid, reg, key);
    }
    return fd;
}

int registry_find(uint64_t key)
{
    FILE *in = fopen("/proc/net/unix", "re");
    if (!in)
        return -1;
    int fd = registry_find_in(in, key);
    fclose(in);
    return fd;
}

struct registry *registry_map(int fd)
{
    void *m = mmap(NULL, sizeof(struct registry), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return m == MAP_FAILED ? NULL : m;
}
