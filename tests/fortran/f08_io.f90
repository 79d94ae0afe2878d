! Files from Fortran: views, explicit offsets, pointers, requests, large counts, a data representation of the user.
! ranks: 2
!
! SPDX-License-Identifier: Apache-2.0
module wide_integers
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
contains
  subroutine file_extent(datatype, extent, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror
    extent = 1
    if (datatype == MPI_INTEGER) extent = 8
    ierror = MPI_SUCCESS
  end subroutine
  subroutine to_file(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: narrow(:)
    integer(kind=8), pointer :: wide(:)
    call c_f_pointer(userbuf, narrow, [count])
    call c_f_pointer(filebuf, wide, [count])
    wide = narrow + extra_state
    ierror = MPI_SUCCESS
  end subroutine
  subroutine from_file(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: narrow(:)
    integer(kind=8), pointer :: wide(:)
    call c_f_pointer(userbuf, narrow, [count])
    call c_f_pointer(filebuf, wide, [count])
    narrow = int(wide - extra_state)
    ierror = MPI_SUCCESS
  end subroutine
end module

program f08_io
  use mpi_f08
  use wide_integers
  implicit none
  type(MPI_File) :: fh
  type(MPI_Datatype) :: mine
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  integer :: rank, nranks, ierror, got, i, out(6), in(6), errors, stamp
  integer(kind=8) :: raw(2)
  integer(kind=MPI_OFFSET_KIND) :: where, length
  integer(kind=MPI_ADDRESS_KIND), save :: extra = 1000
  character(len=64) :: name, datarep
  type(MPI_Datatype) :: etype, filetype
  errors = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks)
  call system_clock(stamp)
  call MPI_Bcast(stamp, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  write (name, '(a,i0,a)') 'f08_io-', stamp, '.tmp'
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, fh, ierror)
  call expect(ierror == MPI_ERR_NO_SUCH_FILE, 'a file that is not there')
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, fh, ierror)
  call expect(ierror == MPI_SUCCESS, 'open')

  call MPI_Type_create_subarray(1, [2 * nranks], [2], [2 * rank], MPI_ORDER_FORTRAN, MPI_INTEGER, mine)
  call MPI_Type_commit(mine)
  call MPI_File_set_view(fh, 4_MPI_OFFSET_KIND, MPI_INTEGER, mine, 'native', MPI_INFO_NULL, ierror)
  call expect(ierror == MPI_SUCCESS, 'set_view')
  out = [(10 * rank + i, i = 1, 6)]
  call MPI_File_write_at_all(fh, 0_MPI_OFFSET_KIND, out, 6, MPI_INTEGER, status, ierror)
  call MPI_Get_count(status, MPI_INTEGER, got)
  call expect(ierror == MPI_SUCCESS .and. got == 6, 'write_at_all')
  in = 0
  call MPI_File_iread_at_all(fh, 0_MPI_OFFSET_KIND, in, 6, MPI_INTEGER, request)
  call MPI_Wait(request, status)
  call expect(all(in == out), 'iread_at_all')
  in = 0
  call MPI_File_read_at(fh, 2_MPI_OFFSET_KIND, in, 2_MPI_COUNT_KIND, MPI_INTEGER, status)
  call expect(all(in(1:2) == out(3:4)), 'read_at with a large count')
  call MPI_File_write_at(fh, 0_MPI_OFFSET_KIND, out(1:6:2), 3, MPI_INTEGER, status)
  call MPI_File_read_at(fh, 0_MPI_OFFSET_KIND, in, 3, MPI_INTEGER, status)
  call expect(all(in(1:3) == out(1:6:2)), 'an array section')
  call MPI_File_seek(fh, 4_MPI_OFFSET_KIND, MPI_SEEK_SET)
  call MPI_File_get_position(fh, where)
  call MPI_File_get_byte_offset(fh, where, length)
  call expect(where == 4 .and. length == 4 + 4 * (4 * nranks + 2 * rank), 'seek and byte offset')
  call MPI_File_get_view(fh, where, etype, filetype, datarep)
  call expect(where == 4 .and. etype == MPI_INTEGER .and. datarep == 'native', 'get_view')
  call MPI_Type_free(filetype)
  call MPI_Type_free(mine)

  call MPI_Register_datarep('wide', from_file, to_file, file_extent, extra, ierror)
  call expect(ierror == MPI_SUCCESS, 'register_datarep')
  call MPI_Register_datarep('same', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, file_extent, extra, ierror)
  call expect(ierror == MPI_SUCCESS, 'register_datarep without conversions')
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_File_set_view(fh, 16_MPI_OFFSET_KIND * rank, MPI_INTEGER, MPI_INTEGER, 'wide', MPI_INFO_NULL, ierror)
  call MPI_File_write_all(fh, out, 2, MPI_INTEGER, status, ierror)
  call expect(ierror == MPI_SUCCESS, 'write with a representation of the user')
  in = 0
  call MPI_File_read_at(fh, 0_MPI_OFFSET_KIND, in, 2, MPI_INTEGER, status)
  call expect(all(in(1:2) == out(1:2)), 'read with a representation of the user')
  call MPI_File_set_view(fh, 0_MPI_OFFSET_KIND, MPI_BYTE, MPI_BYTE, 'native', MPI_INFO_NULL)
  call MPI_File_read_at(fh, 16_MPI_OFFSET_KIND * rank, raw, 16, MPI_BYTE, status)
  call expect(all(raw == out(1:2) + 1000), 'what is in the file')
  call MPI_File_close(fh, ierror)
  call expect(ierror == MPI_SUCCESS .and. fh == MPI_FILE_NULL, 'close')
  call MPI_Allreduce(MPI_IN_PLACE, errors, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (errors > 0) stop 1
contains
  subroutine expect(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (right) return
    errors = errors + 1
    print '(a,i0,2a)', 'rank ', rank, ': wrong: ', what
  end subroutine
end program
