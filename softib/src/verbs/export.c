/* export.c: the command descriptor of a context: a sealed memfd that contains process and adapter. Another
 * process that receives the descriptor can import the device if it is a member of the same fabric on the
 * same node.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT_MAGIC 0x50f71bdeu

struct export
{
    uint32_t magic, slot, generation, hca;
    uint64_t fabric, nonce; /* the nonce proves that the owner created the descriptor */
};

int export_device(uint32_t hca)
{
    const struct reg_member *me = &proc.reg->member[proc.slot];
    const struct export e = {EXPORT_MAGIC, proc.slot, atomic_load(&me->gen), hca, proc.key, me->nonce};
    int fd = memfd_create("softib-device", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
    if (write(fd, &e, sizeof(e)) != sizeof(e) || fcntl(fd, F_ADD_SEALS, seals)) {
        close(fd);
        return -1;
    }
    return fd;
}

bool export_read(int fd, uint32_t *slot, uint32_t *hca)
{
    struct export e;
    if (pread(fd, &e, sizeof(e), 0) != sizeof(e) || e.magic != EXPORT_MAGIC || e.fabric != proc.key ||
        e.slot >= MEMBERS || e.hca >= proc.fab.hcas)
        return false;
    const struct reg_member *m = &proc.reg->member[e.slot];
    *slot = e.slot;
    *hca = e.hca;
    return member_is_alive(e.slot) && atomic_load(&m->gen) == e.generation && m->nonce == e.nonce &&
           m->node == proc.fab.node;
}
