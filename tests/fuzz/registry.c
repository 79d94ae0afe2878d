/* registry.c: fuzzes the search of a joining process for the registry of a softib fabric: socket names,
 * which every user can bind, refer to a file, which every user can create. Only the right file is
 * accepted: complete, sealed, of this version and of this fabric.
 *
 * An input is one byte of flags, the three words of a registry's head, then lines of /proc/net/unix. In
 * these lines `#` stands for the pid and descriptor of the file, and a single `@` for the beginning of a
 * member's name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "fabric/registry.h"

#define KEY 0x1234u

enum {
    WRONG_SIZE = 1,
    NO_GROW = 2,
    NO_SHRINK = 4,
    NO_SEAL = 8,
    WRONG_MAGIC = 16,
    WRONG_BYTES = 32,
    ANY_SLOTS = 64,
    WRONG_KEY = 128
};

static int make_file(uint8_t flags, uint32_t magic, uint32_t bytes, uint32_t slots)
{
    const uint64_t key = flags & WRONG_KEY ? KEY + 1 : KEY;
    int fd = memfd_create("fuzz-registry", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    unsigned seals =
        SHARED_SEALS & ~((flags & NO_GROW ? F_SEAL_GROW : 0u) | (flags & NO_SHRINK ? F_SEAL_SHRINK : 0u) |
                         (flags & NO_SEAL ? F_SEAL_SEAL : 0u));
    off_t size = (off_t)sizeof(struct registry) + (flags & WRONG_SIZE ? (off_t)(bytes % 8192) - 4096 : 0);
    if (fd < 0 || ftruncate(fd, size) || pwrite(fd, &magic, 4, offsetof(struct registry, magic)) != 4 ||
        pwrite(fd, &bytes, 4, offsetof(struct registry, bytes)) != 4 ||
        pwrite(fd, &slots, 4, offsetof(struct registry, slots)) != 4 ||
        pwrite(fd, &key, 8, offsetof(struct registry, key)) != 8 || fcntl(fd, F_ADD_SEALS, seals))
        abort();
    return fd;
}

static bool is_valid_file(int fd, uint8_t flags, uint32_t magic, uint32_t bytes, uint32_t slots)
{
    struct stat st;
    return !fstat(fd, &st) && st.st_size == (off_t)sizeof(struct registry) && magic == SHM_MAGIC &&
           !(flags & WRONG_KEY) && bytes == sizeof(struct registry) && slots <= MEMBERS &&
           (fcntl(fd, F_GET_SEALS) & SHARED_SEALS) == SHARED_SEALS;
}

/* Expands the placeholders in the lines; `named`: true if a line names the file as a member would. */
static FILE *make_lines(struct fuzz_in *in, int fd, char **text, size_t *len, bool *named)
{
    char here[64], start[64], whole[160];
    FILE *out = open_memstream(text, len);
    snprintf(here, sizeof(here), "%d.%d", getpid(), fd);
    snprintf(start, sizeof(start), "@softib/%016llx/", (unsigned long long)KEY);
    snprintf(whole, sizeof(whole), "%s%s.", start, here);
    if (!out)
        abort();
    while (in->left) {
        char c = (char)fuzz_u8(in);
        if (c == '#' || c == '@')
            fputs(c == '#' ? here : start, out);
        else
            fputc(c, out);
    }
    fclose(out);
    *named = *len < 400 && !memchr(*text, '\0', *len) && !strncmp(*text, whole, strlen(whole));
    return *len ? fmemopen(*text, *len, "r") : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    uint8_t flags = fuzz_u8(&in);
    uint32_t head[3];
    char *text = NULL;
    size_t len = 0;
    bool named;
    fuzz_bytes(&in, head, sizeof(head));
    uint32_t magic = flags & WRONG_MAGIC ? head[0] : SHM_MAGIC;
    uint32_t bytes = flags & (WRONG_BYTES | WRONG_SIZE) ? head[1] : (uint32_t)sizeof(struct registry);
    uint32_t slots = flags & ANY_SLOTS ? head[2] : 3;
    int fd = make_file(flags, magic, bytes, slots);
    FILE *list = make_lines(&in, fd, &text, &len, &named);
    int found = list ? registry_find_in(list, KEY) : -1;
    if (found >= 0) {
        struct stat mine, theirs;
        FUZZ_CHECK(!fstat(fd, &mine) && !fstat(found, &theirs));
        FUZZ_CHECK(mine.st_ino != theirs.st_ino || is_valid_file(fd, flags, magic, bytes, slots));
        close(found);
    } else {
        FUZZ_CHECK(!named || !is_valid_file(fd, flags, magic, bytes, slots));
    }
    if (list)
        fclose(list);
    free(text);
    close(fd);
    return 0;
}
