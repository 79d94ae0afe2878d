! The module mpi: collectives, operators, attributes with callbacks, error handlers, strings, LOGICAL arrays, info, datatypes,
! generalized requests.
! ranks: 1 2 3 4 5 8
! SPDX-License-Identifier: Apache-2.0
module callbacks
  use mpi
  implicit none
  integer :: copies = 0, deletes = 0, errors = 0, last_error = 0, queries = 0, frees = 0
contains
  subroutine add_up(invec, inoutvec, len, datatype)
    integer :: len, datatype
    integer :: invec(len), inoutvec(len)
    if (datatype /= MPI_INTEGER) call MPI_Abort(MPI_COMM_WORLD, 3, inoutvec(1))
    inoutvec = invec + inoutvec
  end subroutine
  subroutine copy(comm, keyval, state, in, out, flag, ierror)
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: state, in, out
    logical :: flag
    copies = copies + 1
    out = in + state
    flag = .true.
    ierror = MPI_SUCCESS
    if (comm /= MPI_COMM_WORLD .or. keyval == MPI_KEYVAL_INVALID) ierror = MPI_ERR_OTHER
  end subroutine
  subroutine delete(comm, keyval, val, state, ierror)
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: val, state
    deletes = deletes + 1
    ierror = MPI_SUCCESS
    if (comm == MPI_COMM_NULL .or. keyval == MPI_KEYVAL_INVALID .or. val < 0 .or. state /= 1000) ierror = MPI_ERR_OTHER
  end subroutine
  subroutine on_error(comm, code)
    integer :: comm, code
    errors = errors + 1
    last_error = code
    if (comm /= MPI_COMM_SELF) last_error = -1
  end subroutine
  subroutine query(state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: state
    integer :: status(MPI_STATUS_SIZE), ierror
    queries = queries + int(state)
    if (state >= 100) state = state + 1
    call MPI_Status_set_elements(status, MPI_BYTE, 5, ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
    status(MPI_TAG) = 55
    ierror = MPI_SUCCESS
  end subroutine
  subroutine release(state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: state
    integer :: ierror
    frees = frees + int(state)
    if (state >= 100) state = state + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine cancel(state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: state
    logical :: complete
    integer :: ierror
    if (complete .and. state < 0) print *, "cancelled"
    ierror = MPI_SUCCESS
  end subroutine
end module

program basic
  use callbacks
  implicit none
  integer :: ierror, rank, nranks, i, op, keyval, dup, handler, class, length, info, n, cart, dims(2), coords(2)
  integer :: group, newgroup, newtype, request, status(MPI_STATUS_SIZE), range(3,1), source, dest
  integer :: v(4), w(4), types(2), lengths(2)
  integer, allocatable :: all(:)
  integer(kind=MPI_ADDRESS_KIND) :: val, displs(2), lb, extent
  integer(kind=MPI_ADDRESS_KIND), volatile :: seen
  logical :: flag, periods(2), back(2), remain(2)
  character(len=MPI_MAX_ERROR_STRING) :: text
  character(len=12) :: short
  type pair
    integer :: i
    double precision :: d
  end type
  type(pair) :: p

  call MPI_Init_thread(MPI_THREAD_SINGLE, i, ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierror)

  allocate (all(nranks))
  call MPI_Allgather(rank, 1, MPI_INTEGER, all, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  if (any(all /= [(i, i = 0, nranks - 1)])) stop 1
  v = rank
  call MPI_Op_create(add_up, .true., op, ierror)
  call MPI_Allreduce(v, w, 4, MPI_INTEGER, op, MPI_COMM_WORLD, ierror)
  if (any(w /= nranks * (nranks - 1) / 2)) stop 2
  call MPI_Op_commutative(op, flag, ierror)
  if (.not. flag) stop 3
  call MPI_Op_free(op, ierror)
  if (op /= MPI_OP_NULL) stop 4
  if (rank == 0) v = 77
  call MPI_Bcast(v, 4, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  if (any(v /= 77)) stop 5

  call MPI_Comm_create_keyval(copy, delete, keyval, 1000_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 2_MPI_ADDRESS_KIND**40, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierror)
  call MPI_Comm_get_attr(dup, keyval, val, flag, ierror)
  if (.not. flag .or. val /= 2_MPI_ADDRESS_KIND**40 + 1000 .or. copies /= 1) stop 6
  call MPI_Comm_free(dup, ierror)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval, ierror)
  if (deletes /= 2) stop 7
  call MPI_Comm_free_keyval(keyval, ierror)
  if (keyval /= MPI_KEYVAL_INVALID) stop 8
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, -5_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierror)
  call MPI_Comm_get_attr(dup, keyval, val, flag, ierror)
  if (.not. flag .or. val /= -5) stop 9
  call MPI_Comm_free(dup, ierror)

  call MPI_Comm_create_errhandler(on_error, handler, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, handler, ierror)
  call MPI_Send(v, 1, MPI_INTEGER, 99, 0, MPI_COMM_SELF, ierror)
  call MPI_Error_class(ierror, class, i)
  if (errors /= 1 .or. last_error /= ierror .or. class /= MPI_ERR_RANK) stop 10
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
  call MPI_Errhandler_free(handler, ierror)
  call MPI_Error_string(MPI_ERR_RANK, text, length, ierror)
  if (length == 0 .or. text(length + 1:) /= " ") stop 11

  call MPI_Info_create(info, ierror)
  call MPI_Info_set(info, "  key ", " some value  ", ierror)
  call MPI_Info_get(info, "key", 12, short, flag, ierror)
  if (.not. flag .or. short /= "some value") stop 12
  n = 4
  call MPI_Info_get_string(info, "key  ", n, short, flag, ierror)
  if (.not. flag .or. n /= 10 .or. short /= "some") stop 13
  n = 0
  call MPI_Info_get_string(info, "key", n, short, flag, ierror)
  if (n /= 10) stop 14
  call MPI_Info_get_nthkey(info, 0, short, ierror)
  if (short /= "key") stop 15
  call MPI_Info_get(info, "none", 12, short, flag, ierror)
  if (flag) stop 16
  call MPI_Info_free(info, ierror)

  dims = 0
  call MPI_Dims_create(nranks, 2, dims, ierror)
  periods = [.true., .false.]
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., cart, ierror)
  call MPI_Cart_get(cart, 2, dims, back, coords, ierror)
  if (.not. back(1) .or. back(2)) stop 17
  call MPI_Cart_shift(cart, 1, 1, source, dest, ierror)
  if (coords(2) == dims(2) - 1 .and. dest /= MPI_PROC_NULL) stop 18
  remain = [.true., .false.]
  call MPI_Cart_sub(cart, remain, dup, ierror)
  call MPI_Comm_size(dup, n, ierror)
  if (n /= dims(1)) stop 19
  call MPI_Comm_free(dup, ierror)
  call MPI_Comm_free(cart, ierror)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [mod(rank + 1, nranks)], MPI_UNWEIGHTED, 1, &
       [mod(rank + nranks - 1, nranks)], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., dup, ierror)
  call MPI_Dist_graph_neighbors_count(dup, i, n, flag, ierror)
  if (i /= 1 .or. n /= 1 .or. flag) stop 20
  call MPI_Comm_free(dup, ierror)

  call MPI_Comm_group(MPI_COMM_WORLD, group, ierror)
  range(:, 1) = [nranks - 1, 0, -1]
  call MPI_Group_range_incl(group, 1, range, newgroup, ierror)
  call MPI_Group_rank(newgroup, n, ierror)
  if (n /= nranks - 1 - rank) stop 21
  call MPI_Group_free(group, ierror)
  call MPI_Group_free(newgroup, ierror)

  call MPI_Get_address(p%i, displs(1), ierror)
  call MPI_Get_address(p%d, displs(2), ierror)
  displs = displs - displs(1)
  types = [MPI_INTEGER, MPI_DOUBLE_PRECISION]
  lengths = 1
  call MPI_Type_create_struct(2, lengths, displs, types, newtype, ierror)
  call MPI_Type_commit(newtype, ierror)
  call MPI_Type_get_extent(newtype, lb, extent, ierror)
  if (lb /= 0 .or. extent /= 16) stop 22
  types = MPI_DATATYPE_NULL
  call MPI_Type_get_contents(newtype, 3, 2, 2, v, displs, types, ierror)
  if (types(1) /= MPI_INTEGER .or. types(2) /= MPI_DOUBLE_PRECISION .or. v(1) /= 2) stop 23
  p = pair(rank, rank + 0.5d0)
  call MPI_Bcast(p, 1, newtype, nranks - 1, MPI_COMM_WORLD, ierror)
  if (p%i /= nranks - 1 .or. p%d /= nranks - 0.5d0) stop 24
  call MPI_Type_free(newtype, ierror)

  call MPI_Grequest_start(query, release, cancel, 7_MPI_ADDRESS_KIND, request, ierror)
  call MPI_Test(request, flag, status, ierror)
  if (flag) stop 25
  call MPI_Grequest_complete(request, ierror)
  call MPI_Wait(request, status, ierror)
  call MPI_Get_count(status, MPI_BYTE, n, ierror)
  if (queries /= 7 .or. frees /= 7 .or. n /= 5 .or. status(MPI_TAG) /= 55) stop 26
  ! The callbacks work on the program's own variable.
  seen = 100
  call MPI_Grequest_start(query, release, cancel, seen, request, ierror)
  seen = 200
  call MPI_Grequest_complete(request, ierror)
  call MPI_Wait(request, status, ierror)
  if (queries /= 207 .or. frees /= 208 .or. seen /= 202) stop 27
  deallocate (all)
  call MPI_Pcontrol(1) ! it has no ierror
  call new_types()
  call MPI_Finalize(ierror)
contains
  ! The module has the types of mpi_f08, too.
  subroutine new_types()
    type(MPI_Comm) :: world, same
    type(MPI_Status) :: new
    integer :: old(MPI_STATUS_SIZE)
    world%MPI_VAL = MPI_COMM_WORLD
    same = world
    if (world /= same) stop 28
    old = 0
    old(MPI_TAG) = 5
    call MPI_Status_f2f08(old, new, ierror)
    if (new%MPI_TAG /= 5) stop 29
    new%MPI_SOURCE = 6
    call MPI_Status_f082f(new, old, ierror)
    if (old(MPI_SOURCE) /= 6 .or. old(MPI_TAG) /= 5) stop 30
  end subroutine
end program
