# llmbench_parts: what compiles the parts of src/ themselves, where "llmbench.hpp" is src/llmbench.hpp. Files that
# parts embed become raw string literals, as ci/assemble.py makes them.
set(llmbench_embedded "${CMAKE_CURRENT_BINARY_DIR}/embedded")
file(GLOB_RECURSE llmbench_assets RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/src" CONFIGURE_DEPENDS
     "src/*.css" "src/*.js" "src/*.svg")
foreach(asset IN LISTS llmbench_assets)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "src/${asset}")
    string(REGEX REPLACE "^.*\\." "" kind "${asset}")
    file(READ "src/${asset}" text)
    set(literal "R\"${kind}(\n${text})${kind}\"\n")
    set(there "")
    if(EXISTS "${llmbench_embedded}/${asset}.inc")
        file(READ "${llmbench_embedded}/${asset}.inc" there)
    endif()
    if(NOT there STREQUAL literal)  # else what embeds it would be compiled again
        file(WRITE "${llmbench_embedded}/${asset}.inc" "${literal}")
    endif()
endforeach()
# An extension by the name that users include.
foreach(name IN LISTS llmbench_extensions)
    file(CONFIGURE OUTPUT "${llmbench_embedded}/llmbench_${name}.hpp" CONTENT "#include \"extensions/${name}.hpp\"\n")
endforeach()
add_library(llmbench_parts INTERFACE)
target_include_directories(llmbench_parts BEFORE INTERFACE "${CMAKE_CURRENT_SOURCE_DIR}/src" "${llmbench_embedded}")
target_link_libraries(llmbench_parts INTERFACE llmbench_own)
