! Array sections in mpi_f08: rows, strides forwards and backwards, parts, derived datatypes over sections; blocking,
! nonblocking and persistent; reductions and gathers, which go through copies.
! ranks: 1 2 3 4 5 8
! SPDX-License-Identifier: Apache-2.0
program sections
  use mpi_f08
  implicit none
  integer :: rank, nranks, next, prev, i, j
  integer, asynchronous :: a(6, 5), b(6, 5), line(30), cube(3, 4, 5), back(3, 4, 5)
  integer :: want(6, 5)
  complex :: z(8), u(8)
  character(len=3) :: words(6), others(6)
  type(MPI_Request) :: r(2)
  type(MPI_Datatype) :: odd
  integer, allocatable, asynchronous :: wide(:, :)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks)
  next = mod(rank + 1, nranks)
  prev = mod(rank + nranks - 1, nranks)
  a = reshape([(100 * rank + i, i = 1, 30)], [6, 5])

  ! a row, received into another row
  b = -1
  call MPI_Sendrecv(a(2, :), 5, MPI_INTEGER, next, 1, b(4, :), 5, MPI_INTEGER, prev, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  want = -1
  want(4, :) = [(100 * prev + 2 + 6 * i, i = 0, 4)]
  if (any(b /= want)) stop 1

  ! strides in both dimensions, nonblocking, one of them backwards
  b = -1
  call MPI_Irecv(b(1:5:2, 5:1:-2), 9, MPI_INTEGER, prev, 2, MPI_COMM_WORLD, r(1))
  call MPI_Isend(a(2:6:2, 1:5:2), 9, MPI_INTEGER, next, 2, MPI_COMM_WORLD, r(2))
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
  want = -1
  want(1:5:2, 5:1:-2) = reshape([((100 * prev + i + 6 * j, i = 2, 6, 2), j = 0, 4, 2)], [3, 3])
  if (any(b /= want)) stop 2

  ! only the first elements of a section
  b = -1
  call MPI_Irecv(b(1:6:2, :), 4, MPI_INTEGER, prev, 3, MPI_COMM_WORLD, r(1))
  call MPI_Send(a(1:6:2, :), 4, MPI_INTEGER, next, 3, MPI_COMM_WORLD)
  call MPI_Wait(r(1), MPI_STATUS_IGNORE)
  if (any(b(1:5:2, 1) /= 100 * prev + [1, 3, 5]) .or. b(1, 2) /= 100 * prev + 7 .or. count(b /= -1) /= 4) stop 3

  ! a derived datatype over a section: every second element of the section
  call MPI_Type_vector(3, 1, 2, MPI_INTEGER, odd)
  call MPI_Type_commit(odd)
  line = -1
  call MPI_Irecv(line, 3, MPI_INTEGER, prev, 4, MPI_COMM_WORLD, r(1))
  call MPI_Isend(a(1, :), 1, odd, next, 4, MPI_COMM_WORLD, r(2))
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
  if (any(line(1:3) /= 100 * prev + [1, 13, 25]) .or. line(4) /= -1) stop 4
  b = -1
  call MPI_Irecv(b(3, :), 1, odd, prev, 5, MPI_COMM_WORLD, r(1))
  call MPI_Send(line, 3, MPI_INTEGER, next, 5, MPI_COMM_WORLD)
  call MPI_Wait(r(1), MPI_STATUS_IGNORE)
  if (any(b(3, 2:4:2) /= -1) .or. count(b /= -1) /= 3) stop 5
  call MPI_Type_free(odd)

  ! elements that hold several items; strings
  z = [(cmplx(i, rank), i = 1, 8)]
  u = 0
  call MPI_Sendrecv(z(1:8:3), 6, MPI_REAL, next, 6, u(2:8:3), 3, MPI_COMPLEX, prev, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  if (any(u(2:8:3) /= [cmplx(1, prev), cmplx(4, prev), cmplx(7, prev)]) .or. any(u(1:7:3) /= 0)) stop 6
  words = ["one", "two", "six", "ten", "red", "sea"]
  others = "   "
  call MPI_Sendrecv(words(1:6:2), 9, MPI_CHARACTER, next, 7, others(2:6:2), 9, MPI_CHARACTER, prev, 7, MPI_COMM_WORLD, &
       MPI_STATUS_IGNORE)
  if (any(others /= ["   ", "one", "   ", "six", "   ", "red"])) stop 7

  ! rank 3, persistent, twice
  back = -1
  call MPI_Recv_init(back(::2, 2, :), 10, MPI_INTEGER, prev, 8, MPI_COMM_WORLD, r(1))
  call MPI_Send_init(cube(::2, 3, :), 10, MPI_INTEGER, next, 8, MPI_COMM_WORLD, r(2))
  do j = 1, 2
    cube = reshape([(1000 * j + 100 * rank + i, i = 1, 60)], [3, 4, 5])
    call MPI_Startall(2, r)
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
    if (any(back(::2, 2, :) /= cube(::2, 3, :) + 100 * (prev - rank)) .or. count(back /= -1) /= 10) stop 8
  end do
  call MPI_Request_free(r(1))
  call MPI_Request_free(r(2))

  ! collectives: one block, reductions, gathers
  b = a
  call MPI_Bcast(b(3, :), 5, MPI_INTEGER, nranks - 1, MPI_COMM_WORLD)
  if (any(b(3, :) /= a(3, :) + 100 * (nranks - 1 - rank)) .or. any(b(4, :) /= a(4, :))) stop 9
  b = -1
  call MPI_Allreduce(a(2, :), b(5, :), 5, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
  if (any(b(5, :) /= a(2, :) + 100 * (nranks - 1 - rank)) .or. count(b /= -1) /= 5) stop 10
  b = a
  call MPI_Allreduce(MPI_IN_PLACE, b(5, :), 5, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
  if (any(b(5, :) /= a(5, :) + 100 * (nranks - 1 - rank))) stop 11
  b = -1
  call MPI_Iallreduce(a(2, :), b(5, :), 5, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, r(1))
  call MPI_Wait(r(1), MPI_STATUS_IGNORE)
  if (any(b(5, :) /= a(2, :) + 100 * (nranks - 1 - rank)) .or. count(b /= -1) /= 5) stop 12
  allocate (wide(2, 5 * nranks))
  wide = -1
  call MPI_Iallgather(a(2, :), 5, MPI_INTEGER, wide(2, :), 5, MPI_INTEGER, MPI_COMM_WORLD, r(2))
  r(1) = MPI_REQUEST_NULL
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
  if (any(wide(2, :) /= [((100 * i + 2 + 6 * j, j = 0, 4), i = 0, nranks - 1)]) .or. any(wide(1, :) /= -1)) stop 13
  b = -1
  call MPI_Allreduce_init(a(1, :), b(6, :), 5, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, r(1))
  do j = 1, 2
    a(1, :) = j + rank
    call MPI_Start(r(1))
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    if (any(b(6, :) /= nranks * j + nranks * (nranks - 1) / 2) .or. count(b /= -1) /= 5) stop 14
  end do
  call MPI_Request_free(r(1))
  deallocate (wide)
  call MPI_Finalize()
end program
