/* host.c: the cost of the memory kind check for messages in host memory: 8 bytes from a rank to itself,
 * counted by callgrind (docs/gpu.md). Argument `cuda`: the program loads the driver library and allocates
 * GPU memory. Not a test.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <string.h>

#include "area.h"

#define MESSAGES 1000

void send_to_self(char *out, char *in); /* callgrind counts inside this function, see docs/gpu.md */

__attribute__((noinline, visibility("default"))) void send_to_self(char *out, char *in)
{
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Send(out, 8, MPI_BYTE, 0, 0, MPI_COMM_SELF);
        MPI_Recv(in, 8, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    static char out[8], in[8];
    MPI_Init(&argc, &argv);
    if (argc > 1 && strcmp(argv[1], "cuda") == 0) {
        if (!area_load_cuda())
            return 77;
        area_alloc(AREA_DEVICE, 8);
    }
    for (int turn = 0; turn < 10; turn++)
        MPI_Sendrecv(out, 8, MPI_BYTE, 0, 0, in, 8, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    send_to_self(out, in);
    MPI_Finalize();
    return 0;
}
