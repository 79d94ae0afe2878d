! MPI_Sizeof in mpi_f08.
! ranks: 1
! SPDX-License-Identifier: Apache-2.0
program sizeof_f08
  use mpi_f08
  implicit none
  double precision :: r8(5, 5)
  integer :: i4, n, ierror

  call MPI_Init()
  call MPI_Sizeof(r8(2, :), n)
  if (n /= storage_size(r8) / 8) stop 1
  call MPI_Sizeof(i4, n, ierror)
  if (n /= storage_size(i4) / 8 .or. ierror /= MPI_SUCCESS) stop 2
  call PMPI_Sizeof(MPI_COMM_WORLD%MPI_VAL, n)
  if (n /= 4) stop 3
  call MPI_Finalize()
end program
