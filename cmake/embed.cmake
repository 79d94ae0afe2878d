# embed_text(<target> <file>...): makes NAME.inc, a C string literal with the text of each file, for the target's sources.
# SPDX-License-Identifier: Apache-2.0
function(embed_text target)
    foreach(file IN LISTS ARGN)
        get_filename_component(name ${file} NAME)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
        file(READ ${file} text)
        string(REPLACE "\\" "\\\\" text "${text}")
        string(REPLACE "\"" "\\\"" text "${text}")
        string(REPLACE "\n" "\\n\"\n\"" text "${text}")
        file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/embedded/${name}.inc CONTENT "\"${text}\"\n")
    endforeach()
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/embedded)
endfunction()
