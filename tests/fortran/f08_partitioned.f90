! Partitioned messages from and into array sections. Partitions are filled after the start, one by one, and checked as
! they arrive; they end inside columns of the section, so that no two have the same shape.
! ranks: 2
! SPDX-License-Identifier: Apache-2.0
program partitioned
  use mpi_f08
  implicit none
  integer, parameter :: parts(3) = [5, 3, 15]
  integer :: rank, i, round, form, n, each
  integer, asynchronous :: a(6, 5), b(7, 5)
  integer :: want(7, 5)
  type(MPI_Request) :: r(2)
  logical :: flag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  do form = 1, size(parts)
    n = parts(form)
    each = 15 / n
    call MPI_Psend_init(a(1:6:2, :), n, int(each, MPI_COUNT_KIND), MPI_INTEGER, 1 - rank, form, MPI_COMM_WORLD, &
         MPI_INFO_NULL, r(1))
    call MPI_Precv_init(b(2:6:2, 5:1:-1), n, int(each, MPI_COUNT_KIND), MPI_INTEGER, 1 - rank, form, MPI_COMM_WORLD, &
         MPI_INFO_NULL, r(2))
    do round = 1, 3
      a = -7
      b = -1
      want = -1
      call MPI_Startall(2, r)
      ! from the last to the first; in the third round by MPI_Pready, MPI_Pready_range and MPI_Pready_list
      do i = n - 1, 0, -1
        call fill(i)
        if (round < 3) call MPI_Pready(i, r(1))
      end do
      if (round == 3) then
        call MPI_Pready_list(1, [n - 1], r(1))
        call MPI_Pready_range(0, n - 2, r(1))
      end if
      do i = 0, n - 1
        if (round == 2) exit
        flag = .false.
        do while (.not. flag)
          call MPI_Parrived(r(2), i, flag)
        end do
        call check(i)
      end do
      call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
      want(2:6:2, 5:1:-1) = reshape([(value(1 - rank, i), i = 0, 14)], [3, 5])
      if (any(b /= want)) stop 1
      ! values that the program writes after the completion are not overwritten
      b(2, 5) = -2
      call MPI_Parrived(r(2), 0, flag)
      if (.not. flag .or. b(2, 5) /= -2) stop 2
    end do
    call MPI_Request_free(r(1))
    call MPI_Request_free(r(2))
  end do
  call MPI_Finalize()

contains

  integer function value(from, k)
    integer, intent(in) :: from, k
    value = 10000 * form + 1000 * round + 100 * from + k
  end function

  subroutine fill(partition)
    integer, intent(in) :: partition
    integer :: k
    do k = partition * each, (partition + 1) * each - 1
      a(1 + 2 * mod(k, 3), 1 + k / 3) = value(rank, k)
    end do
  end subroutine

  subroutine check(partition)
    integer, intent(in) :: partition
    integer :: k
    do k = partition * each, (partition + 1) * each - 1
      if (b(2 + 2 * mod(k, 3), 5 - k / 3) /= value(1 - rank, k)) stop 3
    end do
  end subroutine
end program
