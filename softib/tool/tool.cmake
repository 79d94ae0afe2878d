# The softib tool and its preload.
# SPDX-License-Identifier: Apache-2.0
add_executable(softib_tool tool/main.c tool/run.c tool/look.c tool/key.c src/fabric/fabric.c src/fabric/text.c src/fabric/settings.c src/fabric/registry.c src/fabric/gid.c
                           ${SOFTIB_SHARED_DIR}/base/nearest.c)
softib_flags(softib_tool)
set_target_properties(softib_tool PROPERTIES OUTPUT_NAME softib RUNTIME_OUTPUT_DIRECTORY ${SOFTIB_BIN_DIR})
add_library(softib_devnode MODULE tool/devnode.c)
softib_flags(softib_devnode)
set_target_properties(softib_devnode PROPERTIES PREFIX "" OUTPUT_NAME libsoftib-devnode
                                                LIBRARY_OUTPUT_DIRECTORY ${SOFTIB_LIB_DIR})
add_dependencies(softib_tool softib softib_devnode) # `softib run` needs both
install(TARGETS softib_tool RUNTIME DESTINATION bin)
install(TARGETS softib_devnode LIBRARY DESTINATION lib/softib)

if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/../cmake/manual.cmake)
  include(${CMAKE_CURRENT_SOURCE_DIR}/../cmake/manual.cmake)
  add_manual(softib "run programs on a software InfiniBand adapter and fabric" $<TARGET_FILE:softib_tool> softib_tool --help)
endif()

# The program behind the figures of the README.
add_executable(softib_bench_lat bench/lat.c)
target_compile_definitions(softib_bench_lat PRIVATE _GNU_SOURCE)
target_compile_options(softib_bench_lat PRIVATE -Wall -Wextra -Werror)
target_include_directories(softib_bench_lat PRIVATE ${IBVERBS_INCLUDE})
target_link_libraries(softib_bench_lat PRIVATE ${IBVERBS_REAL})
set_target_properties(softib_bench_lat PROPERTIES OUTPUT_NAME softib-bench-lat RUNTIME_OUTPUT_DIRECTORY ${SOFTIB_BIN_DIR}
                                                  SKIP_BUILD_RPATH ON)
