/* main.c: the benchmark as a program of its own, for MPI libraries that have no `fishplate` tool.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../bench.h"

int main(int argc, char **argv)
{
    static const struct bench_host host = {.program = "bench"};
    return bench_main(&host, argc, argv);
}
