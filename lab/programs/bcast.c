/* bcast.c: the ranks' part of `fishplate-lab bcast` as a program for other MPI libraries.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/bcast/bcast.h"

int main(int argc, char **argv)
{
    return bench_bcast_main(0, argc, argv);
}
