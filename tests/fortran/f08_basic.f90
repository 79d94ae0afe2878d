! The module mpi_f08: handles as types, absent ierror, statuses, callbacks, sentinels, alltoallw, PMPI names.
! ranks: 1 2 3 4 5 8
! SPDX-License-Identifier: Apache-2.0
module callbacks08
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: copies = 0, deletes = 0, errors = 0
contains
  subroutine add_up(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    real, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    if (datatype == MPI_REAL) b = a + b
  end subroutine
  subroutine add_up_c(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(kind=MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    real, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    if (datatype == MPI_REAL) b = a + b
  end subroutine
  subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    copies = copies + 1
    attribute_val_out = attribute_val_in * extra_state
    flag = oldcomm == MPI_COMM_WORLD .and. comm_keyval /= MPI_KEYVAL_INVALID
    ierror = MPI_SUCCESS
  end subroutine
  subroutine on_error(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    if (comm == MPI_COMM_SELF .and. error_code /= MPI_SUCCESS) errors = errors + 1
  end subroutine
end module

program basic08
  use callbacks08
  implicit none
  type(MPI_Comm) :: comm
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Request) :: requests(2)
  type(MPI_Op) :: op
  type(MPI_Errhandler) :: handler
  type(MPI_Message) :: message
  type(MPI_Group) :: group
  type(MPI_Datatype), allocatable :: types(:)
  type(c_ptr) :: memory
  real, pointer :: room(:)
  integer :: rank, nranks, next, prev, got, i, n, keyval, ierror, f_status(MPI_STATUS_SIZE)
  integer, allocatable :: all(:), counts(:), displs(:)
  integer(kind=MPI_ADDRESS_KIND) :: val
  logical :: flag
  real :: x(3), y(3)
  character(len=MPI_MAX_OBJECT_NAME) :: name

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks)
  next = mod(rank + 1, nranks)
  prev = mod(rank + nranks - 1, nranks)

  call MPI_Irecv(got, 1, MPI_INTEGER, prev, 7, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(rank, 1, MPI_INTEGER, next, 7, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, statuses)
  if (got /= prev .or. statuses(1)%MPI_SOURCE /= prev .or. statuses(1)%MPI_TAG /= 7) stop 1
  if (any(requests /= MPI_REQUEST_NULL)) stop 2
  call MPI_Isend(rank, 1, MPI_INTEGER, next, 8, MPI_COMM_WORLD, requests(1))
  call MPI_Mprobe(prev, 8, MPI_COMM_WORLD, message, status)
  call MPI_Get_count(status, MPI_INTEGER, n)
  call MPI_Mrecv(got, 1, MPI_INTEGER, message, MPI_STATUS_IGNORE)
  if (n /= 1 .or. got /= prev .or. message /= MPI_MESSAGE_NULL) stop 3
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call MPI_Status_f082f(status, f_status)
  if (f_status(MPI_SOURCE) /= prev) stop 4
  requests = MPI_REQUEST_NULL
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)

  x = rank
  call MPI_Op_create(add_up, .true., op)
  call MPI_Allreduce(x, y, 3, MPI_REAL, op, MPI_COMM_WORLD)
  if (any(y /= nranks * (nranks - 1) / 2)) stop 5
  call MPI_Op_free(op)
  call MPI_Op_create_c(add_up_c, .true., op)
  call MPI_Allreduce(x, y, 3_MPI_COUNT_KIND, MPI_REAL, op, MPI_COMM_WORLD)
  if (any(y /= nranks * (nranks - 1) / 2)) stop 6
  call MPI_Op_free(op)
  call MPI_Allreduce(MPI_IN_PLACE, x, 3, MPI_REAL, MPI_MAX, MPI_COMM_WORLD, ierror)
  if (any(x /= nranks - 1) .or. ierror /= MPI_SUCCESS) stop 7

  call MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, keyval, 3_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 14_MPI_ADDRESS_KIND)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_get_attr(comm, keyval, val, flag)
  if (.not. flag .or. val /= 42 .or. copies /= 1) stop 8
  call MPI_Comm_get_attr(comm, MPI_TAG_UB, val, flag)
  if (.not. flag .or. val < 32767) stop 9
  call MPI_Comm_set_name(comm, "double")
  call MPI_Comm_get_name(comm, name, n)
  if (name /= "double" .or. n /= 6) stop 10
  call MPI_Comm_group(comm, group)
  call MPI_Group_size(group, n)
  if (n /= nranks) stop 11
  call MPI_Group_free(group)
  call MPI_Comm_free(comm)
  if (.not. comm == MPI_COMM_NULL) stop 12

  call MPI_Comm_create_errhandler(on_error, handler)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, handler)
  call MPI_Send(x, -1, MPI_REAL, 0, 0, MPI_COMM_SELF, ierror)
  if (errors /= 1 .or. ierror == MPI_SUCCESS) stop 13
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)
  call MPI_Errhandler_free(handler)

  allocate (all(nranks), counts(nranks), displs(nranks), types(nranks))
  counts = 1
  displs = [(4 * i, i = 0, nranks - 1)]
  types = MPI_INTEGER
  all = -1
  call PMPI_Alltoallw(spread(rank, 1, nranks), counts, displs, types, all, counts, displs, types, MPI_COMM_WORLD)
  if (any(all /= [(i, i = 0, nranks - 1)])) stop 14
  call later_types()
  call MPI_Alloc_mem(40_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory)
  call c_f_pointer(memory, room, [10])
  room = 1.0
  call MPI_Free_mem(room)
  call MPI_F_sync_reg(x)
  if (MPI_Wtime() < 0) stop 15
  call MPI_Barrier(MPI_COMM_WORLD)
  deallocate (all, counts, displs, types)
  call MPI_Finalize()

contains

  ! The library reads the datatypes until the request completes, so the array of converted handles must live as long.
  subroutine later_types()
    integer, asynchronous :: mine(nranks), theirs(nranks)
    integer :: round
    mine = 10 * rank
    theirs = -1
    call MPI_Ialltoallw(mine, counts, displs, types, theirs, counts, displs, types, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    if (any(theirs /= [(10 * i, i = 0, nranks - 1)])) stop 20
    call MPI_Alltoallw_init(mine, counts, displs, types, theirs, counts, displs, types, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    do round = 1, 2
      mine = rank + round
      call MPI_Start(requests(1))
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
      if (any(theirs /= [(i + round, i = 0, nranks - 1)])) stop 21
    end do
    call MPI_Request_free(requests(1))
  end subroutine
end program
