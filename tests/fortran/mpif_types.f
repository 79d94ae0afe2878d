c     mpif.h declares no interfaces, so one program may pass buffers
c     of several types and shapes, as old programs do.
c ranks: 1 2
c     SPDX-License-Identifier: Apache-2.0
      program types
      include 'mpif.h'
      integer n(3), status(MPI_STATUS_SIZE), request
      real*8 x, y(2,2)
      character*4 word
      logical l
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, me, ierr)
      n(1) = me
      n(2) = 2
      n(3) = 3
      x = 1.5d0
      word = 'none'
      l = .false.
      if (me .eq. 0) word = 'word'
      if (me .eq. 0) l = .true.
      call MPI_BCAST(n, 3, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
      call MPI_BCAST(word, 4, MPI_CHARACTER, 0, MPI_COMM_WORLD, ierr)
      call MPI_BCAST(l, 1, MPI_LOGICAL, 0, MPI_COMM_WORLD, ierr)
      if (n(1) .ne. 0 .or. word .ne. 'word' .or. .not. l) stop 1
      y = 0
      call MPI_ALLREDUCE(x, y(2,2), 1, MPI_REAL8, MPI_MAX,
     &                   MPI_COMM_WORLD, ierr)
      if (y(2,2) .ne. 1.5d0 .or. y(1,1) .ne. 0) stop 2
      call MPI_IRECV(y, 4, MPI_DOUBLE_PRECISION, me, 1, MPI_COMM_WORLD,
     &               request, ierr)
      call MPI_SEND(x, 1, MPI_DOUBLE_PRECISION, me, 1, MPI_COMM_WORLD,
     &              ierr)
      call MPI_WAIT(request, status, ierr)
      if (y(1,1) .ne. 1.5d0) stop 3
c     MPI_PCONTROL has no ierror argument: the variable behind the
c     level must not change.
      call MPI_PCONTROL(1, n(3))
      if (n(3) .ne. 3) stop 4
      call MPI_FINALIZE(ierr)
      end
