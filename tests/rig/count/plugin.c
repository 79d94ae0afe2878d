/* plugin.c: a QEMU plugin that counts how often each translated block runs between two marks of the
 * guest's program (ping.c), and writes the counts to the file named in its argument. QEMU's plugin header
 * is rarely packaged, so this file contains the required declarations.
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
    uint64_t length;           /* number of instructions */
    uint64_t runs[PROCESSORS]; /* number of runs; each processor writes its own entry */
    struct block *next;
};

static struct block *buckets[BUCKETS];
static int busy;
static const char *path;

static void for_each_block(void (*call)(struct block *, FILE *), FILE *out)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct block *b = buckets[i]; b; b = b->next)
            call(b, out);
}

static void clear_block(struct block *b, FILE *out)
{
    (void)out;
    memset(b->runs, 0, sizeof(b->runs));
}

static void print_block(struct block *b, FILE *out)
{
    if (b->runs[0] + b->runs[1] > 0)
        fprintf(out, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", b->address, b->length, b->runs[0] + b->runs[1]);
}

static void start_counting(unsigned processor, void *arg)
{
    (void)processor;
    (void)arg;
    for_each_block(clear_block, NULL);
}

static void stop_counting(unsigned processor, void *arg)
{
    (void)processor;
    (void)arg;
    FILE *out = fopen(path, "w");
    if (!out)
        return;
    for_each_block(print_block, out);
    fclose(out);
}

static void count_run(unsigned processor, void *arg)
{
    ((struct block *)arg)->runs[processor % PROCESSORS]++;
}

/* Returns the record of a block. A block that QEMU translates again keeps its record and counts. */
static struct block *find_or_add_block(uint64_t address, uint64_t length)
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

static void instrument_block(plugin_id id, struct qemu_plugin_tb *tb)
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
            qemu_plugin_register_vcpu_insn_exec_cb(insn, start_counting, 0, NULL);
        if (memcmp(bytes, last, sizeof(last)) == 0)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, stop_counting, 0, NULL);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, count_run, 0,
                                         find_or_add_block(qemu_plugin_tb_vaddr(tb), length));
}

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const struct qemu_info_t *info,
                                                               int argc, char **argv)
{
    (void)info;
    if (argc < 1)
        return -1;
    path = strdup(argv[0] + (strncmp(argv[0], "out=", 4) == 0 ? 4 : 0));
    qemu_plugin_register_vcpu_tb_trans_cb(id, instrument_block);
    return 0;
}
