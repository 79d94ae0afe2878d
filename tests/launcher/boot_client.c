/* boot_client.c: a rank without the MPI library: it communicates with its launcher through src/boot, as
 * the library does. The first argument selects the action; the program prints one line on success and an
 * error message on failure.
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

/* Exits. Under a launcher the leak check of sanitizers is omitted, which takes long for dozens of ranks. */
_Noreturn static void exit_quickly(int status)
{
    fflush(stdout);
    if (getenv("PMI_FD"))
        _exit(status);
    exit(status);
}

static void check_result(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "rank %u: %s failed: %s\n", b ? b->rank : 0, what, err_detail(rc));
    if (b)
        boot_abort(b, 9, err_detail(rc));
    exit_quickly(9);
}

static void fail_with_message(const char *what)
{
    fprintf(stderr, "rank %u: %s\n", b->rank, what);
    exit_quickly(8);
}

static unsigned char pattern_byte(uint32_t rank, size_t i)
{
    return (unsigned char)(rank * 7 + i * 13 + i / 251);
}

/* Publishes values of different lengths, so that chunking and padding are all used. */
static void exchange_values(void)
{
    static const size_t lengths[] = {0, 1, 2, 3, 674, 675, 676, 5000};
    unsigned char data[5000];
    for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
        char key[32];
        snprintf(key, sizeof(key), "len%zu", lengths[k]);
        for (size_t i = 0; i < lengths[k]; i++)
            data[i] = pattern_byte(b->rank, i);
        check_result(boot_put(b, key, data, lengths[k]), "put");
    }
    check_result(boot_fence(b), "fence");
    for (uint32_t r = 0; r < b->size; r++)
        for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
            char key[32];
            unsigned char *got;
            size_t len;
            snprintf(key, sizeof(key), "len%zu", lengths[k]);
            check_result(boot_get(b, r, key, (void **)&got, &len), "get");
            if (len != lengths[k])
                fail_with_message("a value came back with another length");
            for (size_t i = 0; i < len; i++)
                if (got[i] != pattern_byte(r, i))
                    fail_with_message("a value came back damaged");
            free(got);
        }
    char *text;
    size_t len;
    if (boot_get(b, 0, "nobody", (void **)&text, &len) == 0)
        fail_with_message("a key that nobody put was found");
    for (int i = 0; i < 20; i++)
        check_result(boot_fence(b), "repeated fence");
    /* More values in rounds: from one rank only, then from all ranks. */
    for (uint32_t round = 0; round < 3; round++) {
        char key[32];
        snprintf(key, sizeof(key), "round%u", round);
        if (round > 0 || b->rank == 0)
            check_result(boot_put(b, key, &round, sizeof(round)), "put of a later round");
        check_result(boot_fence(b), "fence of a later round");
        for (uint32_t r = 0; r < (round > 0 ? b->size : 1); r++) {
            check_result(boot_get(b, r, key, (void **)&text, &len), "get of a later round");
            if (len != sizeof(round) || memcmp(text, &round, len) != 0)
                fail_with_message("a value of a later round came back damaged");
            free(text);
        }
    }
}

/* All ranks of a node, and no others, add to the same word of the node's segment. */
static void add_in_shared_segment(void)
{
    if (b->node_fd < 0)
        fail_with_message("there is no node segment");
    if (ftruncate(b->node_fd, 4096) != 0)
        fail_with_message("the node segment cannot be sized");
    unsigned *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, b->node_fd, 0);
    if (word == MAP_FAILED)
        fail_with_message("the node segment cannot be mapped");
    __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
    check_result(boot_fence(b), "fence");
    if (*word != b->nlocal)
        fail_with_message("the node segment was not shared by exactly the ranks of the node");
}

static void print_rank_and_node(void)
{
    printf("rank %u of %u node %u of %u local %u of %u vnode %d appnum %d host %s launcher %s\n", b->rank,
           b->size, b->node, b->nnodes, b->local_rank, b->nlocal, b->vnode, b->appnum, b->host, b->launcher);
    fflush(stdout);
}

/* Prints its process id and stays until it is ended. */
_Noreturn static void wait_until_killed(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f)
        fail_with_message("the pipe cannot be opened");
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
        pause(); /* this rank never enters the fence */
        exit_quickly(0);
    }
    if (strcmp(what, "leaves") == 0 && atoi(getenv("PMI_RANK")) == atoi(argv[2]))
        exit_quickly(0);
    check_result(boot_open(&b), "open");
    uint32_t who = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
    if (strcmp(what, "place") == 0)
        print_rank_and_node();
    else if (strcmp(what, "exchange") == 0)
        exchange_values();
    else if (strcmp(what, "segment") == 0)
        add_in_shared_segment();
    else if (strcmp(what, "absent") == 0 || strcmp(what, "leaves") == 0 || strcmp(what, "fence") == 0)
        check_result(boot_fence(b), "fence");
    else if (strcmp(what, "stay") == 0)
        wait_until_killed(argv[2]);
    else if (strcmp(what, "abort") == 0 && b->rank == who)
        boot_abort(b, atoi(argv[3]), argc > 4 ? argv[4] : NULL);
    else if (strcmp(what, "exit") == 0 && b->rank == who)
        exit_quickly(atoi(argv[3])); /* exits before finalize */
    else if (strcmp(what, "crash") == 0 && b->rank == who) {
        signal(SIGSEGV, SIG_DFL); /* sanitizers have a handler of their own */
        raise(SIGSEGV);
    }
    if (strcmp(what, "abort") == 0 || strcmp(what, "exit") == 0 || strcmp(what, "crash") == 0)
        pause(); /* the other ranks wait for the end of the job */
    check_result(boot_finalize(b), "finalize");
    uint32_t rank = b->rank;
    boot_close(b);
    if (strcmp(what, "late") == 0)
        exit_quickly(rank == who ? atoi(argv[3]) : 0);
    if (strcmp(what, "exchange") == 0 || strcmp(what, "segment") == 0)
        printf("%s ok\n", what);
    exit_quickly(0);
}
