# The drop-in librdmacm.so.1, built where the headers and the library of librdmacm are installed.
# SPDX-License-Identifier: Apache-2.0
find_path(RDMACM_INCLUDE rdma/rdma_cma.h)
find_library(RDMACM_REAL NAMES rdmacm librdmacm.so.1)
if(NOT RDMACM_INCLUDE OR NOT RDMACM_REAL)
  message(STATUS "softib: without librdmacm, whose headers are not installed "
    "(Debian, Ubuntu: librdmacm-dev; Fedora, RHEL: rdma-core-devel)")
  return()
endif()
set(SOFTIB_CM_DIR ${CMAKE_CURRENT_LIST_DIR})
set(SOFTIB_CM_SOURCES ${SOFTIB_CM_DIR}/address.c ${SOFTIB_CM_DIR}/channel.c ${SOFTIB_CM_DIR}/connect.c
  ${SOFTIB_CM_DIR}/device.c ${SOFTIB_CM_DIR}/endpoint.c ${SOFTIB_CM_DIR}/id.c ${SOFTIB_CM_DIR}/link.c
  ${SOFTIB_CM_DIR}/listen.c ${SOFTIB_CM_DIR}/message.c ${SOFTIB_CM_DIR}/multicast.c ${SOFTIB_CM_DIR}/qp.c
  ${SOFTIB_CM_DIR}/rsocket.c ${SOFTIB_CM_DIR}/rsocket_poll.c ${SOFTIB_CM_DIR}/rsocket_transfer.c ${SOFTIB_CM_DIR}/stream.c)
set(SOFTIB_CM_MAP ${CMAKE_CURRENT_BINARY_DIR}/rdmacm.map)
set(SOFTIB_CM_STUBS ${CMAKE_CURRENT_BINARY_DIR}/rdmacm_stubs.c)
add_custom_command(
  OUTPUT ${SOFTIB_CM_MAP} ${SOFTIB_CM_STUBS}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/gen_abi.py ${RDMACM_REAL}
          ${RDMACM_INCLUDE}/rdma/rdma_cma.h ${SOFTIB_CM_MAP} ${SOFTIB_CM_STUBS} ${SOFTIB_CM_SOURCES}
  DEPENDS gen_abi.py ${SOFTIB_CM_SOURCES}
  COMMENT "softib: ABI of ${RDMACM_REAL}")
add_library(softib_rdmacm SHARED ${SOFTIB_CM_SOURCES} ${SOFTIB_CM_STUBS} ${SOFTIB_SHARED_DIR}/base/sha256.c)
softib_flags(softib_rdmacm)
target_include_directories(softib_rdmacm PRIVATE ${RDMACM_INCLUDE})
target_link_libraries(softib_rdmacm PRIVATE softib)
set_target_properties(softib_rdmacm PROPERTIES OUTPUT_NAME rdmacm SOVERSION 1 LIBRARY_OUTPUT_DIRECTORY ${SOFTIB_LIB_DIR}
  LINK_DEPENDS ${SOFTIB_CM_MAP} INSTALL_RPATH "$ORIGIN")
target_link_options(softib_rdmacm PRIVATE -Wl,--version-script=${SOFTIB_CM_MAP} -Wl,-z,now)
install(TARGETS softib_rdmacm LIBRARY DESTINATION lib/softib)
