! Fortran and C in one program: a C tool that defines MPI_Send intercepts Fortran's calls through all three interfaces but not those of PMPI,
! attributes cross over, handles convert, and Fortran's sentinels are known to C.
! ranks: 2
! SPDX-License-Identifier: Apache-2.0
subroutine old_way(rank)
  implicit none
  include 'mpif.h'
  integer :: rank, ierror, x
  x = rank
  if (rank == 0) call MPI_SEND(x, 1, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, ierror)
  if (rank == 1) call MPI_RECV(x, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
end subroutine

subroutine module_way(rank)
  use mpi
  implicit none
  integer :: rank, ierror, x, comm, keyval
  integer(kind=MPI_ADDRESS_KIND) :: val
  logical :: flag
  interface
    subroutine c_attributes(comm, from_fortran, from_c)
      integer :: comm, from_fortran, from_c
    end subroutine
  end interface
  x = rank
  if (rank == 0) call MPI_Send(x, 1, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, ierror)
  if (rank == 0) call PMPI_Send(x, 1, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, ierror)
  if (rank == 1) call MPI_Recv(x, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  if (rank == 1) call MPI_Recv(x, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_set_attr(comm, keyval, 123456789012_MPI_ADDRESS_KIND, ierror)
  call c_attributes(comm, keyval, x)
  call MPI_Comm_get_attr(comm, x, val, flag, ierror)
  if (.not. flag .or. val /= 4660) stop 3
  call MPI_Comm_free(comm, ierror)
end subroutine

program interop
  use mpi_f08
  implicit none
  integer :: rank, x
  integer, external :: c_sends, c_ignores
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call old_way(rank)
  call module_way(rank)
  x = rank
  if (rank == 0) call MPI_Send(x, 1, MPI_INTEGER, 1, 1, MPI_COMM_WORLD)
  if (rank == 1) call MPI_Recv(x, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  if (rank == 0 .and. c_sends() /= 3) stop 1
  if (c_ignores(MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE) /= 1) stop 2
  call MPI_Finalize()
end program
