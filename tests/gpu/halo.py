#!/usr/bin/env python3
"""halo.py: a heat equation on a ring of ranks with CuPy arrays and PyTorch tensors; rows of neighbours and sums are passed to MPI as device
pointers. The result is compared with the same computation of all rows in NumPy. Run by hand if the packages are installed:

    mpiexec -n 4 python3 tests/gpu/halo.py build/lib/libmpi_abi.so.1

SPDX-License-Identifier: Apache-2.0"""
import ctypes
import sys

import numpy as np

ROWS, COLUMNS, STEPS = 64, 100000, 20  # per rank; a row has 800,000 bytes
WORLD, DOUBLE, SUM, IGNORE = (ctypes.c_void_p(n) for n in (0x101, 0x214, 0x21, 0))
P = ctypes.c_void_p
mpi = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)


def init_mpi():
    rank, size = ctypes.c_int(), ctypes.c_int()
    mpi.MPI_Init(None, None)
    mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
    mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
    return rank.value, size.value


def exchange_rows(pointer, row_bytes, up, down):
    """Sends rows 1 and ROWS to the neighbours' rows ROWS + 1 and 0."""
    for source, target, to, origin in ((1, ROWS + 1, up, down), (ROWS, 0, down, up)):
        mpi.MPI_Sendrecv(P(pointer + source * row_bytes), COLUMNS, DOUBLE, to, 7, P(pointer + target * row_bytes), COLUMNS, DOUBLE,
                         origin, 7, WORLD, IGNORE)


def smooth(a):
    a[1:-1] = 0.5 * a[1:-1] + 0.25 * (a[:-2] + a[2:])


def run_and_compare(name, first, pointer_of, wait, host_of, copy_of, rank, size):
    a = first()
    for _ in range(STEPS):
        wait()
        exchange_rows(pointer_of(a), COLUMNS * 8, (rank - 1) % size, (rank + 1) % size)
        smooth(a)
    total = copy_of(a[1:-1])
    wait()
    mpi.MPI_Allreduce(P(pointer_of(a) + COLUMNS * 8), P(pointer_of(total)), ROWS * COLUMNS, DOUBLE, SUM, WORLD)
    got, got_total = host_of(a)[1:-1], host_of(total)
    whole = np.concatenate([initial_rows(r, size) for r in range(size)])
    for _ in range(STEPS):
        whole = 0.5 * whole + 0.25 * (np.roll(whole, 1, 0) + np.roll(whole, -1, 0))
    wanted = whole.reshape(size, ROWS, COLUMNS)
    ok = np.allclose(got, wanted[rank], rtol=1e-13) and np.allclose(got_total, wanted.sum(0), rtol=1e-12)
    print(f"rank {rank}: {name}: {'correct' if ok else 'WRONG RESULT'}", flush=True)
    return ok


def initial_rows(rank, size):
    return np.sin(np.arange(ROWS * COLUMNS, dtype=np.float64) * (rank + 1) / size).reshape(ROWS, COLUMNS)


def main():
    rank, size = init_mpi()
    import cupy
    import torch
    padded = np.zeros((ROWS + 2, COLUMNS))
    padded[1:-1] = initial_rows(rank, size)
    ok = run_and_compare("CuPy", lambda: cupy.asarray(padded), lambda a: a.data.ptr, cupy.cuda.runtime.deviceSynchronize, cupy.asnumpy,
             lambda a: a.copy(), rank, size)
    ok &= run_and_compare("PyTorch", lambda: torch.tensor(padded, device="cuda"), lambda a: a.data_ptr(), torch.cuda.synchronize,
              lambda a: a.cpu().numpy(), lambda a: a.clone(), rank, size)
    mpi.MPI_Finalize()
    return 0 if ok else 1


sys.exit(main())
