# Compiler flags shared by everything that is ours.
# SPDX-License-Identifier: Apache-2.0
find_package(Threads REQUIRED)

# gcc guesses at "maybe" because it cannot know that err_set() returns what it was given; clang does not know the name. A table
# row may leave out what is zero.
set(FISHPLATE_FLAGS -Wall -Wextra $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> -Wno-missing-field-initializers
                    -Wno-unused-parameter -Wmissing-prototypes -Wshadow -fvisibility=hidden -fno-semantic-interposition -g)
if(DEFINED ENV{CI} OR FISHPLATE_WERROR)
    list(APPEND FISHPLATE_FLAGS -Werror)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O3")
# For what is compiled to be tried once: tests, and everything under sanitizers. Where each variable lives at each instruction,
# which only a debugger asks, takes gcc up to a quarter of its time.
set(FISHPLATE_QUICK "-O1")
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    string(APPEND FISHPLATE_QUICK " -fno-var-tracking")
endif()
# Every build links hundreds of tests, and gold takes a quarter to a half of the usual linker's time for one. What is installed is
# linked with the usual one. Tried on these two only.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
    include(CheckLinkerFlag)
    check_linker_flag(C -fuse-ld=gold FISHPLATE_GOLD)
endif()
# The same bytes from whatever folder: debug information and messages name files from the top of the tree.
add_compile_options($<$<COMPILE_LANGUAGE:C>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.>
                    $<$<COMPILE_LANGUAGE:C>:-ffile-prefix-map=${CMAKE_BINARY_DIR}=./build>)

# What is generated from the tables is long, and checks or converts a few arguments a call. Under sanitizers gcc takes a third of
# the time for it when it does not optimise.
set(FISHPLATE_GENERATED_FLAGS "")
if(FISHPLATE_SANITIZE)
    set(FISHPLATE_GENERATED_FLAGS -O0)
endif()

# Programs of unit tests look for leaks when they end. On aarch64 gcc's library walks through the whole address space for it: four
# seconds of a processor for each of 150 programs.
set(FISHPLATE_LEAKS detect_leaks=1)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(FISHPLATE_LEAKS detect_leaks=0)
endif()

set(FISHPLATE_LINK_FLAGS "")
if(FISHPLATE_DEBUG OR FISHPLATE_SANITIZE)
    add_compile_definitions(FISHPLATE_DEBUG_BUILD)
endif()
if(FISHPLATE_SANITIZE)
    set(CMAKE_C_FLAGS_RELEASE "${FISHPLATE_QUICK}")
    set(CMAKE_Fortran_FLAGS_RELEASE "-O0") # optimised, one program of array sections alone takes gfortran half a minute
    add_compile_options(-fsanitize=${FISHPLATE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
    add_link_options(-fsanitize=${FISHPLATE_SANITIZE})
    add_compile_definitions(FISHPLATE_OBJMEM_MALLOC=1 SOFTIB_SLAB_MALLOC=1) # sanitizers watch what malloc gives
    if(FISHPLATE_SANITIZE MATCHES "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        add_compile_options(-Wno-tsan) # fences order memory between processes, which it does not watch
    endif()
    # the sanitizers' symbols are found at run time
else()
    list(APPEND FISHPLATE_LINK_FLAGS -Wl,-z,defs)
endif()
if(NOT FISHPLATE_SANITIZE AND FISHPLATE_LTO AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    include(CheckCSourceCompiles)
    set(CMAKE_REQUIRED_FLAGS "-O2 -flto=auto")
    check_c_source_compiles("int main(void) { return 0; }" FISHPLATE_LTO_WORKS)
    unset(CMAKE_REQUIRED_FLAGS)
endif()
if(FISHPLATE_LTO AND FISHPLATE_LTO_WORKS AND NOT FISHPLATE_SANITIZE)
    list(APPEND FISHPLATE_FLAGS -flto=auto -ffat-lto-objects)
    list(APPEND FISHPLATE_LINK_FLAGS -flto=auto -O3)
    # Tests take the ordinary code of the same objects and link in no time. The library must not be given this option: it
    # keeps gcc from using the linker's plugin, whatever follows.
    add_link_options($<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:NAME>,mpi_abi>>:-fno-lto>)
endif()

# Platform by file: src/base/arch/<processor>/ holds what differs.
set(FISHPLATE_ARCH_DIR ${CMAKE_SOURCE_DIR}/src/base/arch/generic)
if(EXISTS ${CMAKE_SOURCE_DIR}/src/base/arch/${CMAKE_SYSTEM_PROCESSOR})
    set(FISHPLATE_ARCH_DIR ${CMAKE_SOURCE_DIR}/src/base/arch/${CMAKE_SYSTEM_PROCESSOR})
endif()
