! More of mpi_f08: partitioned messages, sessions, neighbourhoods, external packing, some requests at once.
! ranks: 2
! SPDX-License-Identifier: Apache-2.0
program more
  use mpi_f08
  implicit none
  integer :: rank, nranks, i, n, outcount, indices(3), ring(2), length
  integer, asynchronous :: a(4), b(4), c(3)
  integer(kind=MPI_ADDRESS_KIND) :: room, position
  character(len=64) :: packed, name
  type(MPI_Request) :: r(3)
  type(MPI_Session) :: session
  type(MPI_Group) :: group
  type(MPI_Comm) :: cart, comm
  logical :: flag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks)
  a = [(100 * rank + i, i = 1, 4)]
  b = -1
  call MPI_Psend_init(a, 2, 2_MPI_COUNT_KIND, MPI_INTEGER, 1 - rank, 1, MPI_COMM_WORLD, MPI_INFO_NULL, r(1))
  call MPI_Precv_init(b, 2, 2_MPI_COUNT_KIND, MPI_INTEGER, 1 - rank, 1, MPI_COMM_WORLD, MPI_INFO_NULL, r(2))
  call MPI_Startall(2, r)
  call MPI_Pready(1, r(1))
  call MPI_Pready_range(0, 0, r(1))
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
  if (any(b /= [(100 * (1 - rank) + i, i = 1, 4)])) stop 1
  call MPI_Request_free(r(1))
  call MPI_Request_free(r(2))

  r = MPI_REQUEST_NULL
  call MPI_Irecv(c, 1, MPI_INTEGER, 1 - rank, 2, MPI_COMM_WORLD, r(3))
  call MPI_Send(rank, 1, MPI_INTEGER, 1 - rank, 2, MPI_COMM_WORLD)
  call MPI_Waitsome(3, r, outcount, indices, MPI_STATUSES_IGNORE)
  if (outcount /= 1 .or. indices(1) /= 3) stop 2
  call MPI_Testsome(3, r, outcount, indices, MPI_STATUSES_IGNORE)
  if (outcount /= MPI_UNDEFINED) stop 3

  call MPI_Cart_create(MPI_COMM_WORLD, 1, [nranks], [.true.], .false., cart)
  call MPI_Neighbor_allgather(rank, 1, MPI_INTEGER, ring, 1, MPI_INTEGER, cart)
  if (any(ring /= 1 - rank)) stop 4
  call MPI_Comm_free(cart)

  call MPI_Pack_external_size("external32", 4, MPI_INTEGER, room)
  position = 0
  call MPI_Pack_external("external32", a, 4, MPI_INTEGER, packed, room, position)
  if (position /= 16) stop 5
  position = 0
  b = 0
  call MPI_Unpack_external("external32  ", packed, room, position, b, 4, MPI_INTEGER)
  if (any(a /= b)) stop 6

  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session)
  call MPI_Session_get_num_psets(session, MPI_INFO_NULL, n)
  length = 0
  call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, length, name)
  n = length
  call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, length, name)
  if (len_trim(name) /= n .or. n < 7) stop 7
  call MPI_Group_from_session_pset(session, "mpi://WORLD ", group)
  call MPI_Comm_create_from_group(group, "more ", MPI_INFO_NULL, MPI_ERRORS_RETURN, comm)
  call MPI_Comm_size(comm, n)
  if (n /= nranks) stop 8
  call MPI_Comm_free(comm)
  call MPI_Group_free(group)
  call MPI_Session_finalize(session)
  call MPI_Initialized(flag)
  if (.not. flag) stop 9
  call MPI_Finalize()
end program
