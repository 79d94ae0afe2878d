/* plugin.c: a plugin for QEMU that counts how often each translated block runs between two marks that the
 * guest's program sets (ping.c), and writes the counts to the file named in its argument. QEMU's header for
 * plugins is seldom packaged: the few declarations that are needed stand here.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h"

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;
typedef uint64_t plugin_id;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*call)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*call)(unsigned, void *),
                                          int flags, void *arg);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, void (*call)(unsigned, void *),
                                            int flags, void *arg);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

enum { PROCESSORS = 2, BUCKETS = 1 << 16 };

struct block {
    uint64_t address;
    uint64_t length;           /* instructions */
    uint64_t runs[PROCESSORS]; /* each written by its own processor */
    struct block *next;
};

static struct block *buckets[BUCKETS];
static int busy;
static const char *path;

static void plugin_for_each(void (*call)(struct block *, FILE *), FILE *out)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct block *b = buckets[i]; b; b = b->next)
            call(b, out);
}

static void plugin_remove(struct block *b, FILE *out)
{
    (void)out;
    memset(b->runs, 0, sizeof(b->runs));
}

static void plugin_report(struct block *b, FILE *out)
{
    if (b->runs[0] + b->runs[1] > 0)
        fprintf(out, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", b->address, b->length, b->runs[0] + b->runs[1]);
}

static void plugin_begin(unsigned processor, void *arg)
{
    (void)processor;
    (void)arg;
    plugin_for_each(plugin_remove, NULL);
}

static void plugin_end(unsigned processor, void *arg)
{
    (void)processor;
    (void)arg;
    FILE *out = fopen(path, "w");
    if (!out)
        return;
    plugin_for_each(plugin_report, out);
    fclose(out);
}

static void test_ran(unsigned processor, void *arg)
{
    ((struct block *)arg)->runs[processor % PROCESSORS]++;
}

/* A block is translated anew now and then: it keeps its counts. */
static struct block *block_of(uint64_t address, uint64_t length)
{
    struct block **at = &buckets[(address >> 2 ^ address >> 18) % BUCKETS];
    while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
        ;
    while (*at && ((*at)->address != address || (*at)->length != length))
        at = &(*at)->next;
    if (!*at) {
        *at = calloc(1, sizeof(**at));
        **at = (struct block){.address = address, .length = length};
    }
    struct block *found = *at;
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
    return found;
}

static void test_translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    size_t length = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < length; i++) {
        static const unsigned char first[] = {MARK_BYTES(MARK_BEGIN)}, last[] = {MARK_BYTES(MARK_END)};
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        const void *bytes = qemu_plugin_insn_data(insn);
        if (qemu_plugin_insn_size(insn) != sizeof(first))
            continue;
        if (memcmp(bytes, first, sizeof(first)) == 0)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, plugin_begin, 0, NULL);
        if (memcmp(bytes, last, sizeof(last)) == 0)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, plugin_end, 0, NULL);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, test_ran, 0, block_of(qemu_plugin_tb_vaddr(tb), length));
}

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const struct qemu_info_t *info,
                                                               int argc, char **argv)
{
    (void)info;
    if (argc < 1)
        return -1;
    path = strdup(argv[0] + (strncmp(argv[0], "out=", 4) == 0 ? 4 : 0));
    qemu_plugin_register_vcpu_tb_trans_cb(id, test_translated);
    return 0;
}
