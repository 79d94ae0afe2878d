! Every file function of mpi_f08; functions that move data are called with counts of both kinds.
! ranks: 2 3
!
! SPDX-License-Identifier: Apache-2.0
module f08_files_handler
  use mpi_f08
  implicit none
  integer :: calls = 0
contains
  subroutine count_errors(file, code)
    type(MPI_File) :: file
    integer :: code
    if (file /= MPI_FILE_NULL .and. code /= MPI_SUCCESS) calls = calls + 1
  end subroutine
end module

program f08_files
  use mpi_f08
  use f08_files_handler
  implicit none
  type(MPI_File) :: fh
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  type(MPI_Group) :: group
  type(MPI_Info) :: info
  type(MPI_Errhandler) :: handler, got
  integer :: rank, nranks, ierror, i, stamp, out(4), in(4), sums(2), errors = 0, tag = 0
  integer(kind=MPI_OFFSET_KIND) :: mine, length
  integer(kind=MPI_OFFSET_KIND), parameter :: zero = 0
  character(len=64) :: name
  character(len=16) :: text
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierror)
  call system_clock(stamp)
  call MPI_Bcast(stamp, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  write (name, '(a,i0,a)') 'f08_files-', stamp, '.tmp'
  mine = 4 * rank
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, fh, ierror)
  call expect(ierror == MPI_SUCCESS, 'open')
  call MPI_File_set_view(fh, zero, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierror)
  call moves()
  call moves_large()
  call manage()
  call errors_of_files()
  call MPI_File_close(fh, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  if (rank == 0) then
    call MPI_File_delete(name, MPI_INFO_NULL, ierror)
    call expect(ierror == MPI_SUCCESS, 'delete')
    call MPI_File_delete(name, MPI_INFO_NULL, ierror)
    call expect(ierror == MPI_ERR_NO_SUCH_FILE, 'delete what is gone')
  end if
  call MPI_Allreduce(MPI_IN_PLACE, errors, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call MPI_Finalize(ierror)
  if (errors > 0) stop 1
contains
  subroutine moves()
    integer :: n
    n = 4
    include 'files_moves.inc'
  end subroutine
  subroutine moves_large()
    integer(kind=MPI_COUNT_KIND) :: n, extent
    n = 4
    include 'files_moves.inc'
    call MPI_File_get_type_extent(fh, MPI_INTEGER, extent, ierror)
    call expect(extent == 4, 'get_type_extent, a large one')
  end subroutine
  subroutine manage()
    integer :: amode
    logical :: flag
    integer(kind=MPI_ADDRESS_KIND) :: extent
    call MPI_File_set_size(fh, 640_MPI_OFFSET_KIND, ierror)
    call MPI_File_get_size(fh, length, ierror)
    call expect(length == 640, 'set_size, get_size')
    call MPI_File_preallocate(fh, 800_MPI_OFFSET_KIND, ierror)
    call MPI_File_get_size(fh, length, ierror)
    call expect(length == 800, 'preallocate')
    call MPI_File_get_amode(fh, amode, ierror)
    call expect(amode == MPI_MODE_CREATE + MPI_MODE_RDWR, 'get_amode')
    call MPI_File_get_group(fh, group, ierror)
    call MPI_Group_size(group, amode, ierror)
    call expect(amode == nranks, 'get_group')
    call MPI_Group_free(group, ierror)
    call MPI_File_set_atomicity(fh, .true., ierror)
    call MPI_File_get_atomicity(fh, flag, ierror)
    call expect(flag, 'set_atomicity, get_atomicity')
    call MPI_File_set_atomicity(fh, .false., ierror)
    call MPI_Info_create(info, ierror)
    call MPI_Info_set(info, 'cb_buffer_size', '65536', ierror)
    call MPI_File_set_info(fh, info, ierror)
    call MPI_Info_free(info, ierror)
    call MPI_File_get_info(fh, info, ierror)
    call MPI_Info_get(info, 'cb_buffer_size', 16, text, flag, ierror)
    call expect(flag .and. text == '65536', 'set_info, get_info')
    call MPI_Info_free(info, ierror)
    call MPI_File_get_type_extent(fh, MPI_INTEGER, extent, ierror)
    call expect(extent == 4, 'get_type_extent')
    call MPI_File_sync(fh, ierror)
    call expect(ierror == MPI_SUCCESS, 'sync')
  end subroutine
  subroutine errors_of_files()
    integer :: before
    call MPI_File_create_errhandler(count_errors, handler, ierror)
    call MPI_File_set_errhandler(fh, handler, ierror)
    call MPI_File_get_errhandler(fh, got, ierror)
    call expect(got == handler, 'get_errhandler')
    before = calls
    call MPI_File_call_errhandler(fh, MPI_ERR_IO, ierror)
    call expect(calls == before + 1, 'call_errhandler')
    call MPI_File_seek(fh, -1_MPI_OFFSET_KIND, MPI_SEEK_SET, ierror)
    call expect(calls == before + 2, 'an error that a call finds')
    call MPI_Errhandler_free(handler, ierror)
    call MPI_Errhandler_free(got, ierror)
  end subroutine
  subroutine fresh()
    call MPI_Barrier(MPI_COMM_WORLD, ierror) ! all ranks have read the old contents
    tag = tag + 1
    out = [(1000 * tag + 10 * rank + i, i=1, 4)]
    in = 0
  end subroutine
  subroutine same(what)
    character(len=*), intent(in) :: what
    call expect(all(in == out), what)
  end subroutine
  ! The order in which ranks read at the shared file pointer is undefined; together they read all values that were written.
  subroutine same_sum(what)
    character(len=*), intent(in) :: what
    sums = [sum(in), sum(out)]
    call MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect(sums(1) == sums(2), what)
  end subroutine
  subroutine expect(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (right) return
    errors = errors + 1
    print '(a,i0,3a,i0)', 'rank ', rank, ': wrong: ', what, ', round ', tag
  end subroutine
end program
