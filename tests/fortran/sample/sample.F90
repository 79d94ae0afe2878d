! Prints which library it runs with.
!
! SPDX-License-Identifier: Apache-2.0
program sample
#if defined(WAY_F08)
  use mpi_f08
#elif defined(WAY_MPI)
  use mpi
#endif
  implicit none
#if defined(WAY_MPIF)
  include 'mpif.h'
#endif
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: text
  integer :: length, ierror
  call MPI_Init(ierror)
  call MPI_Get_library_version(text, length, ierror)
  print *, text(1:length)
  call MPI_Finalize(ierror)
end program
