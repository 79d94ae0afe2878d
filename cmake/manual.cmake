# add_manual(<names> <summary> <program> <dependencies> <arguments>... [COMPONENT <component>]): generates the manual page of a program
# from the help texts that the program prints with these arguments, and installs the page under each name. Cross builds have no manual
# pages, because they cannot run the program.
# SPDX-License-Identifier: Apache-2.0
set(FISHPLATE_HELP_TO_MAN ${CMAKE_CURRENT_LIST_DIR}/../tools/help-to-man)
include(GNUInstallDirs)
function(add_manual names summary program depends)
    if(CMAKE_CROSSCOMPILING)
        return()
    endif()
    cmake_parse_arguments(M "" "COMPONENT" "" ${ARGN})
    if(NOT M_COMPONENT)
        set(M_COMPONENT Unspecified)
    endif()
    string(REPLACE ", " ";" list "${names}")
    list(GET list 0 first)
    set(page ${CMAKE_BINARY_DIR}/share/man/man1/${first}.1)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/man/man1)
    add_custom_command(OUTPUT ${page} VERBATIM DEPENDS ${depends} ${FISHPLATE_HELP_TO_MAN}
        COMMAND ${Python3_EXECUTABLE} -B ${FISHPLATE_HELP_TO_MAN} ${names} ${summary} "${CMAKE_PROJECT_VERSION}" ${page} ${program}
                ${M_UNPARSED_ARGUMENTS}
        COMMENT "manual page ${first}(1)")
    add_custom_target(manual_${first} ALL DEPENDS ${page})
    foreach(name IN LISTS list)
        install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME ${name}.1 COMPONENT ${M_COMPONENT})
    endforeach()
endfunction()
