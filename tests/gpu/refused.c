/* refused.c: MPI calls with a buffer in GPU memory return MPI_ERR_BUFFER with a sentence, and do not crash. CUDA is loaded after
 * MPI_Init.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "cuda_program.h"

static void *driver;
static int errors;

#define LOAD(name) __typeof__(name) *load_##name = (__typeof__(name) *)dlsym(driver, #name)

static void expect_refused(int rc, const char *what, const char *parameter)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int class = 0, length;
    MPI_Error_class(rc, &class);
    MPI_Error_string(rc, text, &length);
    if (class == MPI_ERR_BUFFER && strstr(text, "GPU memory") && strstr(text, parameter))
        return;
    printf("%s returned %d: \"%s\", expected MPI_ERR_BUFFER and a sentence about %s in GPU memory\n", what,
           class, text, parameter);
    errors++;
}

int main(int argc, char **argv)
{
    cuda_context context;
    cuda_pointer memory;
    double host = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (!(driver = dlopen("libcuda.so.1", RTLD_NOW))) {
        printf("no libcuda.so.1: %s\n", dlerror());
        MPI_Finalize();
        return 77;
    }
    LOAD(cuInit);
    LOAD(cuDevicePrimaryCtxRetain);
    LOAD(cuCtxSetCurrent);
    LOAD(cuMemAlloc_v2);
    LOAD(cuMemFree_v2);
    if (load_cuInit(0) != CUDA_OK || load_cuDevicePrimaryCtxRetain(&context, 0) != CUDA_OK ||
        load_cuCtxSetCurrent(context) != CUDA_OK || load_cuMemAlloc_v2(&memory, 1 << 20) != CUDA_OK) {
        printf("no GPU memory\n");
        MPI_Finalize();
        return 77;
    }
    void *device = (void *)memory;
    MPI_Win window;
    MPI_Win_create(&host, sizeof(host), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, window);
    expect_refused(MPI_Put(device, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, window), "MPI_Put", "origin_addr");
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    if (MPI_Allreduce(MPI_IN_PLACE, &host, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS) {
        printf("an allreduce in host memory failed\n");
        errors++;
    }
    load_cuMemFree_v2(memory);
    MPI_Finalize();
    return errors ? 1 : 0;
}
