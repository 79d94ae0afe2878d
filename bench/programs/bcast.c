/* bcast.c: the ranks of `fishplate bench bcast` as a program of its own, for other MPI libraries.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../bcast/bcast.h"

int main(int argc, char **argv)
{
    return bench_bcast_main(0, argc, argv);
}
