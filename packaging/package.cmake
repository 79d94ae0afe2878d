# The Debian package that `make deb` builds, and the modulefile. Everything lies under one prefix, so that it stands beside
# other MPI libraries and none of their files is in the way.
# SPDX-License-Identifier: Apache-2.0
configure_file(${CMAKE_CURRENT_LIST_DIR}/modulefile.in ${CMAKE_BINARY_DIR}/share/modulefiles/fishplate/${PROJECT_VERSION} @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/share/modulefiles/fishplate/${PROJECT_VERSION} DESTINATION share/modulefiles/fishplate)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/CHANGELOG.md DESTINATION share/doc/fishplate)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fishplate)
set(CPACK_PACKAGE_VENDOR Fishplate)
set(CPACK_PACKAGE_CONTACT "Fishplate")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "MPI library for InfiniBand and RoCE with the MPI standard ABI")
set(CPACK_PACKAGING_INSTALL_PREFIX /opt/fishplate)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE "")
# libibverbs is loaded when there is one; ssh starts ranks on other hosts.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libibverbs1, ibverbs-providers, openssh-client")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gcc, gfortran")
find_program(FISHPLATE_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(FISHPLATE_SHLIBDEPS)
if(FISHPLATE_SHLIBDEPS)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
    # Our own libraries, which no package provides yet.
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
else()
    set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6")
endif()
include(CPack)
