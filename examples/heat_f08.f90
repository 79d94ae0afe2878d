! heat_f08.f90: heat spreads over a square plate whose upper edge is hot. The ranks form a grid and each owns a block; every
! step it swaps edges with its four neighbours. A column is contiguous in memory, a row is an array section: mpi_f08
! takes both.
!
!     mpifort heat_f08.f90 -o heat_f08
!     mpiexec -n 4 ./heat_f08
!
! SPDX-License-Identifier: Apache-2.0
program heat
  use mpi_f08
  implicit none
  integer, parameter :: cells = 48, steps = 20000, check_every = 100
  type(MPI_Comm) :: grid
  integer :: ranks, rank, dims(2), coords(2), up, down, left, right, rows, columns, step
  double precision, allocatable :: t(:, :), next(:, :)
  double precision :: change, worst, total, mean

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  dims = 0
  call MPI_Dims_create(ranks, 2, dims)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.false., .false.], .true., grid)
  call MPI_Comm_rank(grid, rank)
  call MPI_Cart_coords(grid, rank, 2, coords)
  call MPI_Cart_shift(grid, 0, 1, up, down)
  call MPI_Cart_shift(grid, 1, 1, left, right)

  rows = share(coords(1), dims(1))
  columns = share(coords(2), dims(2))
  allocate (t(0:rows + 1, 0:columns + 1), next(0:rows + 1, 0:columns + 1))
  t = 0
  if (up == MPI_PROC_NULL) t(0, :) = 100
  next = t

  worst = 1
  step = 0
  do while (step < steps .and. worst > 1d-5)
    call swap_edges()
    next(1:rows, 1:columns) = 0.25d0 * (t(0:rows - 1, 1:columns) + t(2:rows + 1, 1:columns) &
         + t(1:rows, 0:columns - 1) + t(1:rows, 2:columns + 1))
    change = maxval(abs(next(1:rows, 1:columns) - t(1:rows, 1:columns)))
    t(1:rows, 1:columns) = next(1:rows, 1:columns)
    step = step + 1
    if (mod(step, check_every) == 0) call MPI_Allreduce(change, worst, 1, MPI_DOUBLE_PRECISION, MPI_MAX, grid)
  end do

  total = sum(t(1:rows, 1:columns))
  call MPI_Reduce(total, mean, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, grid)
  if (rank == 0) print '(a, i0, a, f0.2)', "settled after ", step, " steps; mean temperature ", mean / cells**2
  deallocate (t, next)
  call MPI_Finalize()

contains

  ! Cells that place i of n has along one side; the first ones take what does not divide evenly.
  integer function share(i, n)
    integer, intent(in) :: i, n
    share = cells / n
    if (i < mod(cells, n)) share = share + 1
  end function

  ! At the plate's edges there is no neighbour: MPI_PROC_NULL leaves the fixed values alone.
  subroutine swap_edges()
    integer, parameter :: tag = 0
    associate (real8 => MPI_DOUBLE_PRECISION, none => MPI_STATUS_IGNORE)
      call MPI_Sendrecv(t(1, 1:columns), columns, real8, up, tag, t(rows + 1, 1:columns), columns, real8, down, tag, grid, none)
      call MPI_Sendrecv(t(rows, 1:columns), columns, real8, down, tag, t(0, 1:columns), columns, real8, up, tag, grid, none)
      call MPI_Sendrecv(t(1:rows, 1), rows, real8, left, tag, t(1:rows, columns + 1), rows, real8, right, tag, grid, none)
      call MPI_Sendrecv(t(1:rows, columns), rows, real8, right, tag, t(1:rows, 0), rows, real8, left, tag, grid, none)
    end associate
  end subroutine
end program
