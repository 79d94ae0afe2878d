! known_f08.f90: what the profiler must see of mpi_f08: every call once, array sections with their true size. Two ranks.
!
! SPDX-License-Identifier: Apache-2.0
program known
  use mpi_f08
  implicit none
  double precision :: t(8, 8), sum, start
  type(MPI_Request) :: request
  type(MPI_Comm) :: copy
  integer :: rank, i

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  start = MPI_Wtime()
  t = rank
  do i = 1, 7
    if (rank == 0) then
      call MPI_Isend(t(3, 1:6), 6, MPI_DOUBLE_PRECISION, 1, 0, MPI_COMM_WORLD, request)
    else
      call MPI_Irecv(t(1:8, 4), 6, MPI_DOUBLE_PRECISION, 0, 0, MPI_COMM_WORLD, request)
    end if
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end do
  call MPI_Comm_dup(MPI_COMM_WORLD, copy)
  do i = 1, 3
    call MPI_Allreduce(t(1, 1), sum, 1, MPI_DOUBLE_PRECISION, MPI_SUM, copy)
  end do
  call MPI_Comm_free(copy)
  call MPI_Pcontrol(0)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Pcontrol(1)
  call MPI_Finalize()
end program
