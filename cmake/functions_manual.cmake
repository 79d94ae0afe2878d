# The manual pages of all MPI functions, MPI_Send(3) and so on, from the tables in api/.
# SPDX-License-Identifier: Apache-2.0
include(GNUInstallDirs)
set(pages ${CMAKE_BINARY_DIR}/share/man/man3)
file(GLOB inputs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/api/*.tsv ${CMAKE_SOURCE_DIR}/api/*.py ${CMAKE_SOURCE_DIR}/api/gen/*.py
     ${CMAKE_SOURCE_DIR}/api/man/*.txt)
add_custom_command(OUTPUT ${pages}/stamp VERBATIM DEPENDS ${inputs}
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/api/generate_man.py --out ${pages} --version ${PROJECT_VERSION}
    COMMAND ${CMAKE_COMMAND} -E touch ${pages}/stamp
    COMMENT "manual pages of the MPI functions")
add_custom_target(manual_functions ALL DEPENDS ${pages}/stamp)
install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 FILES_MATCHING PATTERN "*.3")
