c     mpif.h in fixed form: a ring, collectives in place, requests,
c     sentinels, strings, and attributes with INTEGER values.
c     SPDX-License-Identifier: Apache-2.0
c ranks: 1 2 3 4 5 8
      program ring
      implicit none
      include 'mpif.h'
      integer ierror, rank, size, next, prev, token, i, n
      integer status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE,2)
      integer requests(2), got, index, length, comm, keyval, value
      logical flag
      double precision sums(3), t
      character*(MPI_MAX_PROCESSOR_NAME) name
      character*10 short

      call MPI_INIT(ierror)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierror)
      next = mod(rank + 1, size)
      prev = mod(rank + size - 1, size)
      call MPI_IRECV(got, 1, MPI_INTEGER, prev, 7, MPI_COMM_WORLD,
     &               requests(1), ierror)
      token = rank
      call MPI_ISEND(token, 1, MPI_INTEGER, next, 7, MPI_COMM_WORLD,
     &               requests(2), ierror)
      call MPI_WAITALL(2, requests, statuses, ierror)
      if (got .ne. prev) stop 1
      if (statuses(MPI_SOURCE,1) .ne. prev) stop 2
      if (statuses(MPI_TAG,1) .ne. 7) stop 3
      if (requests(1) .ne. MPI_REQUEST_NULL) stop 4
      call MPI_SENDRECV(rank, 1, MPI_INTEGER, next, 8, got, 1,
     &     MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
     &     status, ierror)
      call MPI_GET_COUNT(status, MPI_INTEGER, n, ierror)
      if (n .ne. 1 .or. status(MPI_TAG) .ne. 8) stop 5
      call MPI_SENDRECV(rank, 1, MPI_INTEGER, next, 8, got, 1,
     &     MPI_INTEGER, prev, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE,
     &     ierror)

c     The index of MPI_WAITANY counts from 1.
      requests(1) = MPI_REQUEST_NULL
      call MPI_IRECV(got, 1, MPI_INTEGER, prev, 9, MPI_COMM_WORLD,
     &               requests(2), ierror)
      call MPI_SEND(rank, 1, MPI_INTEGER, next, 9, MPI_COMM_WORLD,
     &              ierror)
      call MPI_WAITANY(2, requests, index, MPI_STATUS_IGNORE, ierror)
      if (index .ne. 2) stop 6
      call MPI_WAITANY(2, requests, index, MPI_STATUS_IGNORE, ierror)
      if (index .ne. MPI_UNDEFINED) stop 7
      call MPI_TESTALL(2, requests, flag, MPI_STATUSES_IGNORE, ierror)
      if (.not. flag) stop 8

      do i = 1, 3
        sums(i) = rank + i
      end do
      call MPI_ALLREDUCE(MPI_IN_PLACE, sums, 3, MPI_DOUBLE_PRECISION,
     &                   MPI_SUM, MPI_COMM_WORLD, ierror)
      do i = 1, 3
        if (sums(i) .ne. size*(size-1)/2 + size*i) stop 9
      end do

      call MPI_GET_PROCESSOR_NAME(name, length, ierror)
      if (length .lt. 1 .or. name(length:length) .eq. ' ') stop 10
      if (name(length+1:) .ne. ' ') stop 11
      call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierror)
      call MPI_COMM_SET_NAME(comm, 'a  name   ', ierror)
      short = 'xxxxxxxxxx'
      call MPI_COMM_GET_NAME(comm, short, length, ierror)
      if (short .ne. 'a  name' .or. length .ne. 7) stop 12

      call MPI_KEYVAL_CREATE(MPI_DUP_FN, MPI_NULL_DELETE_FN, keyval,
     &                       3, ierror)
      call MPI_ATTR_PUT(comm, keyval, -42, ierror)
      call MPI_ATTR_GET(comm, keyval, value, flag, ierror)
      if (.not. flag .or. value .ne. -42) stop 13
      call MPI_ATTR_DELETE(comm, keyval, ierror)
      call MPI_ATTR_GET(comm, keyval, value, flag, ierror)
      if (flag) stop 14
      call MPI_ATTR_GET(comm, MPI_TAG_UB, value, flag, ierror)
      if (.not. flag .or. value .lt. 32767) stop 15
      call MPI_COMM_FREE(comm, ierror)
      if (comm .ne. MPI_COMM_NULL) stop 16

      t = MPI_WTIME()
      if (MPI_WTICK() .le. 0.0d0 .or. PMPI_WTIME() .lt. t) stop 17
      call PMPI_BARRIER(MPI_COMM_WORLD, ierror)
      call MPI_FINALIZE(ierror)
      end
