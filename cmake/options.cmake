# Options of the build and the packages that each option requires (docs/install.md).
# SPDX-License-Identifier: Apache-2.0
set(FISHPLATE_SANITIZE "" CACHE STRING "Sanitizers for everything, e.g. address,undefined or thread")
option(FISHPLATE_DEBUG "Internal assertions" OFF)
option(FISHPLATE_LTO "Link-time optimisation of the library, with gcc" OFF)
option(FISHPLATE_WERROR "Warnings are errors (always so when the environment has CI)" OFF)
option(FISHPLATE_IB "The InfiniBand and RoCE transport" ON)
option(FISHPLATE_SOFTIB "softib, the software InfiniBand adapter" ON)
option(FISHPLATE_TOOLS "The fishplate tool (info, bench, prof) and its profiling library" ON)
option(FISHPLATE_LAB "The laboratory, and its mechanisms in the library (lab/mechanisms); needs FISHPLATE_TOOLS" ON)
option(FISHPLATE_EXAMPLES "The example programs" ON)
option(BUILD_TESTING "The tests" ON)
set(FISHPLATE_FORTRAN AUTO CACHE STRING "The Fortran bindings: ON, OFF, or AUTO (when gfortran 12 or later is there)")
set_property(CACHE FISHPLATE_FORTRAN PROPERTY STRINGS AUTO ON OFF)

# Removes cached results of searches for files that were not found or have been removed, so that CMake searches again.
get_cmake_property(remembered CACHE_VARIABLES)
foreach(name IN LISTS remembered)
    get_property(type CACHE ${name} PROPERTY TYPE)
    if(type MATCHES "^(PATH|FILEPATH)$" AND NOT name MATCHES "^CMAKE_(C|CXX)_COMPILER$"
       AND ("$CACHE{${name}}" MATCHES "NOTFOUND$" OR ("$CACHE{${name}}" MATCHES "^/" AND NOT EXISTS "$CACHE{${name}}"))
       AND NOT name MATCHES "^(CMAKE_INSTALL_|.*_(BINARY|SOURCE)_DIR$)")
        unset(${name} CACHE)
    endif()
endforeach()
foreach(name FISHPLATE_VERBS_INCLUDE IBVERBS_INCLUDE) # the folder may remain after the package was removed
    if(DEFINED CACHE{${name}} AND NOT EXISTS "$CACHE{${name}}/infiniband/verbs.h")
        unset(${name} CACHE)
    endif()
endforeach()

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

# InfiniBand needs the headers of libibverbs; the library itself is loaded when a job needs it. softib also needs the symbol list of the
# library. If either is missing, configuration fails: otherwise users would notice on the cluster only, when jobs do not start.
if(FISHPLATE_IB OR FISHPLATE_SOFTIB)
    find_path(FISHPLATE_VERBS_INCLUDE infiniband/verbs.h)
    find_library(FISHPLATE_VERBS_LIBRARY NAMES ibverbs libibverbs.so.1)
    if(NOT FISHPLATE_VERBS_INCLUDE OR (FISHPLATE_SOFTIB AND NOT FISHPLATE_VERBS_LIBRARY))
        message(FATAL_ERROR "infiniband/verbs.h or libibverbs.so was not found.\n"
            "Install it (Debian, Ubuntu: apt-get install libibverbs-dev; Fedora, RHEL: dnf install rdma-core-devel; "
            "SUSE: zypper install rdma-core-devel) or name its place with -DCMAKE_PREFIX_PATH=/its/prefix.\n"
            "To build without InfiniBand: -DFISHPLATE_IB=OFF -DFISHPLATE_SOFTIB=OFF.")
    endif()
endif()

# The Fortran bindings need gfortran's array descriptors and module files. From here on FISHPLATE_FORTRAN is ON or OFF.
if(NOT FISHPLATE_FORTRAN MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "FISHPLATE_FORTRAN=${FISHPLATE_FORTRAN} is none of AUTO, ON and OFF.")
endif()
if(NOT FISHPLATE_FORTRAN STREQUAL "OFF")
    include(CheckLanguage)
    check_language(Fortran)
    set(usable OFF)
    if(CMAKE_Fortran_COMPILER)
        enable_language(Fortran)
        if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU" AND CMAKE_Fortran_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
            set(usable ON)
        endif()
    endif()
    if(NOT usable AND FISHPLATE_FORTRAN STREQUAL "ON")
        message(FATAL_ERROR "FISHPLATE_FORTRAN=ON, but there is no gfortran 12 or later. "
            "Install one, name it with -DCMAKE_Fortran_COMPILER=, or leave Fortran out with -DFISHPLATE_FORTRAN=OFF.")
    elseif(NOT usable)
        message(STATUS "No gfortran 12 or later: the Fortran bindings are left out")
    endif()
    set(FISHPLATE_FORTRAN ${usable})
endif()
