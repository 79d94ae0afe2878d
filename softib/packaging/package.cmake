# The Debian package of softib alone: `cmake -S softib -B build && cmake --build build && (cd build && cpack)`. The library lies
# in a folder of its own, so that the system's libibverbs stays what it is.
# SPDX-License-Identifier: Apache-2.0
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME softib)
set(CPACK_PACKAGE_VERSION ${SOFTIB_VERSION})
set(CPACK_PACKAGE_VENDOR Fishplate)
set(CPACK_PACKAGE_CONTACT "Fishplate")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Software InfiniBand and RoCE adapter behind libibverbs and librdmacm, without root or kernel module")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "ibverbs-utils, perftest, rdmacm-utils")
include(CPack)
