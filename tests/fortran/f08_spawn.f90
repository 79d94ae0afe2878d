! New processes from Fortran: one program and several, with arguments; the parents' communicator; ports.
! ranks: 2
! SPDX-License-Identifier: Apache-2.0
program f08_spawn
  use mpi_f08
  implicit none
  type(MPI_Comm) :: parents
  character(len=512) :: self

  call MPI_Init()
  call get_command_argument(0, self)
  call MPI_Comm_get_parent(parents)
  if (parents == MPI_COMM_NULL) then
    call one_program()
    call two_programs()
  else
    call child()
  end if
  call MPI_Finalize()

contains

  subroutine one_program()
    type(MPI_Comm) :: children
    character(len=16) :: words(3)
    integer :: codes(2), n, total
    words = [character(len=16) :: 'sum', '  20', ' ']
    codes = -1
    call MPI_Comm_spawn('  ' // self, words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, codes)
    if (any(codes /= MPI_SUCCESS)) stop 1
    call MPI_Comm_remote_size(children, n)
    if (n /= 2) stop 2
    total = 0
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, children)
    if (total /= 40) stop 3
    call MPI_Comm_disconnect(children)
  end subroutine

  subroutine two_programs()
    type(MPI_Comm) :: children
    type(MPI_Info) :: infos(2)
    character(len=512) :: commands(2)
    character(len=8) :: words(2, 3)
    integer :: total
    infos = MPI_INFO_NULL
    commands = self
    words = ' '
    words(1, 1:2) = [character(len=8) :: 'sum', '3']
    words(2, 1:2) = [character(len=8) :: 'sum', '500']
    call MPI_Comm_spawn_multiple(2, commands, words, [1, 2], infos, 1, MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, children)
    if (total /= 1003) stop 4
    call MPI_Comm_disconnect(children)
  end subroutine

  subroutine child()
    character(len=64) :: word
    integer :: value, total, n
    if (command_argument_count() /= 2) stop 5
    call get_command_argument(2, word)
    read (word, *) value
    call MPI_Comm_remote_size(parents, n)
    call MPI_Allreduce(value, total, 1, MPI_INTEGER, MPI_SUM, parents)
    if (total /= n) stop 6
    call MPI_Comm_disconnect(parents)
  end subroutine
end program
