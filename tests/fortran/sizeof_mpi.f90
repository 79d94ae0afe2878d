! MPI_Sizeof in the module mpi, and its profiling name.
! ranks: 1
! SPDX-License-Identifier: Apache-2.0
program sizeof_mpi
  use mpi
  implicit none
  integer, parameter :: byte = selected_int_kind(2), short = selected_int_kind(4), long = selected_int_kind(18)
  integer(byte) :: i1
  integer(short) :: i2
  integer :: i4
  integer(long) :: i8(3, 4)
  real :: r4(2)
  double precision :: r8(5, 5, 5)
  complex :: c8
  double complex :: c16(7)
  logical :: l
  character(len=5) :: text, texts(9)
  integer :: n, ierror

  call MPI_INIT(ierror)
  call MPI_SIZEOF(i1, n, ierror)
  if (n /= 1 .or. ierror /= MPI_SUCCESS) stop 1
  call MPI_SIZEOF(i2, n, ierror)
  if (n /= 2) stop 2
  call MPI_SIZEOF(i4, n, ierror)
  if (n /= storage_size(i4) / 8) stop 3
  call MPI_SIZEOF(i8, n, ierror)
  if (n /= 8) stop 4
  call MPI_SIZEOF(r4, n, ierror)
  if (n /= storage_size(r4) / 8) stop 5
  call MPI_SIZEOF(r8(1:5:2, 2, :), n, ierror)
  if (n /= storage_size(r8) / 8) stop 6
  call MPI_SIZEOF(c8, n, ierror)
  if (n /= storage_size(c8) / 8) stop 7
  call PMPI_SIZEOF(c16, n, ierror)
  if (n /= 16 .or. ierror /= MPI_SUCCESS) stop 8
  call MPI_SIZEOF(l, n, ierror)
  if (n /= storage_size(l) / 8) stop 9
  call MPI_SIZEOF(text, n, ierror)
  if (n /= 5) stop 10
  call MPI_SIZEOF(texts, n, ierror)
  if (n /= 5) stop 11
  call MPI_FINALIZE(ierror)
end program
