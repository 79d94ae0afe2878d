# Compiler and linker flags of all targets.
# SPDX-License-Identifier: Apache-2.0
find_package(Threads REQUIRED)

# -Wmaybe-uninitialized: gcc does not know that err_set() returns its argument and warns without cause; clang has no such option.
# Rows of tables may omit members that are zero.
set(FISHPLATE_FLAGS -Wall -Wextra $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> -Wno-missing-field-initializers
                    -Wno-unused-parameter -Wmissing-prototypes -Wshadow -fvisibility=hidden -fno-semantic-interposition -g)
if(DEFINED ENV{CI} OR FISHPLATE_WERROR)
    list(APPEND FISHPLATE_FLAGS -Werror)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O3")
# Flags for fast compilation of tests, and of all code under sanitizers. Debug information about variables takes up to a quarter of gcc's
# time.
set(FISHPLATE_QUICK "-O1")
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    string(APPEND FISHPLATE_QUICK " -fno-var-tracking")
endif()
# gold links each of the hundreds of test programs in a quarter to a half of the time of ld. Installed files are linked with ld. gold was
# tested only on these two processor architectures.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
    include(CheckLinkerFlag)
    check_linker_flag(C -fuse-ld=gold FISHPLATE_GOLD)
endif()
# Reproducible builds: debug information and messages contain paths relative to the top of the tree.
add_compile_options($<$<COMPILE_LANGUAGE:C>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.>
                    $<$<COMPILE_LANGUAGE:C>:-ffile-prefix-map=${CMAKE_BINARY_DIR}=./build>)

# Generated code is long and only checks or converts arguments. Under sanitizers gcc compiles it in a third of the time at -O0.
set(FISHPLATE_GENERATED_FLAGS "")
if(FISHPLATE_SANITIZE)
    set(FISHPLATE_GENERATED_FLAGS -O0)
endif()

# Unit tests detect leaks when they end. On aarch64 the leak detector of gcc scans the whole address space: four seconds of processor
# time for each of 150 programs.
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
    set(CMAKE_Fortran_FLAGS_RELEASE "-O0") # with optimisation, gfortran needs half a minute for the program of array sections alone
    add_compile_options(-fsanitize=${FISHPLATE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
    add_link_options(-fsanitize=${FISHPLATE_SANITIZE})
    add_compile_definitions(FISHPLATE_OBJMEM_MALLOC=1 SOFTIB_SLAB_MALLOC=1) # sanitizers check memory from malloc only
    if(FISHPLATE_SANITIZE MATCHES "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        add_compile_options(-Wno-tsan) # fences order memory between processes; the thread sanitizer checks one process
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
    # Objects contain both ordinary code and LTO code. Tests are linked without LTO, which is faster. The library must not get -fno-lto: gcc
# would not load the linker's plugin, even if -flto followed.
    add_link_options($<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:NAME>,mpi_abi>>:-fno-lto>)
endif()

# Processor-specific code: src/base/arch/<processor>/.
set(FISHPLATE_ARCH_DIR ${CMAKE_SOURCE_DIR}/src/base/arch/generic)
if(EXISTS ${CMAKE_SOURCE_DIR}/src/base/arch/${CMAKE_SYSTEM_PROCESSOR})
    set(FISHPLATE_ARCH_DIR ${CMAKE_SOURCE_DIR}/src/base/arch/${CMAKE_SYSTEM_PROCESSOR})
endif()
