! known_mpif.f90: the same for mpif.h. Two ranks.
!
! SPDX-License-Identifier: Apache-2.0
program known
  implicit none
  include 'mpif.h'
  integer :: rank, i, values(100), ierror

  call MPI_INIT(ierror)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
  values = rank
  do i = 1, 5
    if (rank == 0) then
      call MPI_SEND(values, 100, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, ierror)
    else
      call MPI_RECV(values, 100, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    end if
  end do
  call MPI_BCAST(values, 10, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  call MPI_ALLREDUCE(MPI_IN_PLACE, values, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call MPI_FINALIZE(ierror)
end program
