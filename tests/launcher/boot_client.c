/* boot_client.c: a rank that needs no MPI library: it speaks to its launcher through src/boot, as the library
 * will. The first argument selects what to do; it prints one line when all is well, and a sentence when not.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/tunable.h"
#include "boot/boot.h"

static struct boot *b;

/* Under a launcher without the checks that sanitizers make at exit: dozens of ranks would each pay for them.
 */
_Noreturn static void boot_client_leave(int status)
{
    fflush(stdout);
    if (getenv("PMI_FD"))
        _exit(status);
    exit(status);
}

static void boot_client_check_memory(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "rank %u: %s failed: %s\n", b ? b->rank : 0, what, err_detail(rc));
    if (b)
        boot_abort(b, 9, err_detail(rc));
    boot_client_leave(9);
}

static void boot_client_fail(const char *what)
{
    fprintf(stderr, "rank %u: %s\n", b->rank, what);
    boot_client_leave(8);
}

static unsigned char boot_client_pattern(uint32_t rank, size_t i)
{
    return (unsigned char)(rank * 7 + i * 13 + i / 251);
}

/* Publishes values of different lengths, so that chunking and padding are all used. */
static void do_exchange(void)
{
    static const size_t lengths[] = {0, 1, 2, 3, 674, 675, 676, 5000};
    unsigned char data[5000];
    for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
        char key[32];
        snprintf(key, sizeof(key), "len%zu", lengths[k]);
        for (size_t i = 0; i < lengths[k]; i++)
            data[i] = boot_client_pattern(b->rank, i);
        boot_client_check_memory(boot_put(b, key, data, lengths[k]), "put");
    }
    boot_client_check_memory(boot_fence(b), "fence");
    for (uint32_t r = 0; r < b->size; r++)
        for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
            char key[32];
            unsigned char *got;
            size_t len;
            snprintf(key, sizeof(key), "len%zu", lengths[k]);
            boot_client_check_memory(boot_get(b, r, key, (void **)&got, &len), "get");
            if (len != lengths[k])
                boot_client_fail("a value came back with another length");
            for (size_t i = 0; i < len; i++)
                if (got[i] != boot_client_pattern(r, i))
                    boot_client_fail("a value came back damaged");
            free(got);
        }
    char *text;
    size_t len;
    if (boot_get(b, 0, "nobody", (void **)&text, &len) == 0)
        boot_client_fail("a key that nobody put was found");
    for (int i = 0; i < 20; i++)
        boot_client_check_memory(boot_fence(b), "repeated fence");
    /* More values, round after round: from one rank only, then from all. */
    for (uint32_t round = 0; round < 3; round++) {
        char key[32];
        snprintf(key, sizeof(key), "round%u", round);
        if (round > 0 || b->rank == 0)
            boot_client_check_memory(boot_put(b, key, &round, sizeof(round)), "put of a later round");
        boot_client_check_memory(boot_fence(b), "fence of a later round");
        for (uint32_t r = 0; r < (round > 0 ? b->size : 1); r++) {
            boot_client_check_memory(boot_get(b, r, key, (void **)&text, &len), "get of a later round");
            if (len != sizeof(round) || memcmp(text, &round, len) != 0)
                boot_client_fail("a value of a later round came back damaged");
            free(text);
        }
    }
}

/* All ranks of a node, and nobody else, add to the same word of the node's segment. */
static void do_segment(void)
{
    if (b->node_fd < 0)
        boot_client_fail("there is no node segment");
    if (ftruncate(b->node_fd, 4096) != 0)
        boot_client_fail("the node segment cannot be sized");
    unsigned *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, b->node_fd, 0);
    if (word == MAP_FAILED)
        boot_client_fail("the node segment cannot be mapped");
    __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
    boot_client_check_memory(boot_fence(b), "fence");
    if (*word != b->nlocal)
        boot_client_fail("the node segment was not shared by exactly the ranks of the node");
}

static void print_place(void)
{
    printf("rank %u of %u node %u of %u local %u of %u vnode %d appnum %d host %s launcher %s\n", b->rank,
           b->size, b->node, b->nnodes, b->local_rank, b->nlocal, b->vnode, b->appnum, b->host, b->launcher);
    fflush(stdout);
}

/* Prints its process id and stays until it is ended. */
_Noreturn static void boot_client_stay(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f)
        boot_client_fail("the pipe cannot be opened");
    fprintf(f, "%ld\n", (long)getpid());
    fclose(f);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "place";
    tunables_load();
    if (strcmp(what, "absent") == 0 && atoi(getenv("PMI_RANK")) == atoi(argv[2])) {
        pause(); /* never arrives */
        boot_client_leave(0);
    }
    if (strcmp(what, "leaves") == 0 && atoi(getenv("PMI_RANK")) == atoi(argv[2]))
        boot_client_leave(0);
    boot_client_check_memory(boot_open(&b), "open");
    uint32_t who = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
    if (strcmp(what, "place") == 0)
        print_place();
    else if (strcmp(what, "exchange") == 0)
        do_exchange();
    else if (strcmp(what, "segment") == 0)
        do_segment();
    else if (strcmp(what, "absent") == 0 || strcmp(what, "leaves") == 0 || strcmp(what, "fence") == 0)
        boot_client_check_memory(boot_fence(b), "fence");
    else if (strcmp(what, "stay") == 0)
        boot_client_stay(argv[2]);
    else if (strcmp(what, "abort") == 0 && b->rank == who)
        boot_abort(b, atoi(argv[3]), argc > 4 ? argv[4] : NULL);
    else if (strcmp(what, "exit") == 0 && b->rank == who)
        boot_client_leave(atoi(argv[3])); /* before finalize */
    else if (strcmp(what, "crash") == 0 && b->rank == who) {
        signal(SIGSEGV, SIG_DFL); /* sanitizers have a handler of their own */
        raise(SIGSEGV);
    }
    if (strcmp(what, "abort") == 0 || strcmp(what, "exit") == 0 || strcmp(what, "crash") == 0)
        pause(); /* the others wait for the end */
    boot_client_check_memory(boot_finalize(b), "finalize");
    uint32_t rank = b->rank;
    boot_close(b);
    if (strcmp(what, "late") == 0)
        boot_client_leave(rank == who ? atoi(argv[3]) : 0);
    if (strcmp(what, "exchange") == 0 || strcmp(what, "segment") == 0)
        printf("%s ok\n", what);
    boot_client_leave(0);
}
