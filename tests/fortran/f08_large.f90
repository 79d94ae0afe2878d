! Large counts in mpi_f08: the generic names take MPI_COUNT_KIND.
! ranks: 2
! SPDX-License-Identifier: Apache-2.0
program large
  use mpi_f08
  implicit none
  integer, parameter :: k = MPI_COUNT_KIND
  integer :: rank, i
  integer(kind=k) :: n, lb, extent, num(4), counts(2)
  integer(kind=MPI_ADDRESS_KIND) :: displs(2)
  integer :: a(4), b(8), combiner
  type(MPI_Datatype) :: big, wide
  type(MPI_Status) :: status

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  a = [(10 * rank + i, i = 1, 4)]
  call MPI_Sendrecv(a, 4_k, MPI_INTEGER, 1 - rank, 1, b, 4_k, MPI_INTEGER, 1 - rank, 1, MPI_COMM_WORLD, status)
  call MPI_Get_count(status, MPI_INTEGER, n)
  if (n /= 4 .or. any(b(1:4) /= [(10 * (1 - rank) + i, i = 1, 4)])) stop 1
  counts = 4
  displs = [0, 4]
  call MPI_Allgatherv(a, 4_k, MPI_INTEGER, b, counts, displs, MPI_INTEGER, MPI_COMM_WORLD)
  if (any(b /= [1, 2, 3, 4, 11, 12, 13, 14])) stop 2
  call MPI_Type_contiguous(3000000000_k, MPI_INTEGER, big)
  call MPI_Type_size(big, n)
  if (n /= 12000000000_k) stop 3
  call MPI_Type_get_extent(big, lb, extent)
  if (lb /= 0 .or. extent /= 12000000000_k) stop 4
  call MPI_Type_get_envelope(big, num(1), num(2), num(3), num(4), combiner)
  if (combiner /= MPI_COMBINER_CONTIGUOUS .or. num(3) /= 1) stop 5
  call MPI_Type_free(big)
  call MPI_Type_create_resized(MPI_INTEGER, 0_k, 0_k, wide)
  call MPI_Type_commit(wide)
  call MPI_Type_free(wide)
  call MPI_Status_set_elements(status, MPI_BYTE, 5000000000_k)
  call MPI_Get_count(status, MPI_BYTE, n)
  if (n /= 5000000000_k) stop 6
  call MPI_Get_count(status, MPI_BYTE, i)
  if (i /= MPI_UNDEFINED) stop 7
  call MPI_Finalize()
end program
