# What llmbench.hpp includes, found the same way from this source tree and from an installed
# package. Neither asio nor picojson brings a CMake package on Debian, so headers are looked for.
# Override with -DLLMBENCH_ASIO_INCLUDE_DIR=..., or let CMAKE_PREFIX_PATH point at the prefix.
# The targets are GLOBAL: the project that embeds us with add_subdirectory must see them too.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads QUIET)

foreach(llmbench_name IN ITEMS asio picojson doctest)
    if(TARGET llmbench::${llmbench_name})
        continue()
    endif()
    # picojson stands in a directory of its own or not, depending on who packaged it.
    set(llmbench_files_asio asio.hpp)
    set(llmbench_files_picojson picojson.h picojson/picojson.h)
    set(llmbench_files_doctest doctest/doctest.h)
    string(TOUPPER "LLMBENCH_${llmbench_name}_INCLUDE_DIR" llmbench_variable)
    find_path(${llmbench_variable} NAMES ${llmbench_files_${llmbench_name}}
              DOC "Directory that holds ${llmbench_files_${llmbench_name}}")
    mark_as_advanced(${llmbench_variable})
    if(NOT ${llmbench_variable})
        set(llmbench_missing "llmbench needs ${llmbench_name}: install it (Debian and Ubuntu: \
libasio-dev picojson-dev doctest-dev) or set ${llmbench_variable} to the directory that holds it.")
        break()
    endif()
    add_library(llmbench::${llmbench_name} INTERFACE IMPORTED GLOBAL)
    set_target_properties(llmbench::${llmbench_name} PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${${llmbench_variable}}")
endforeach()
if(NOT Threads_FOUND)
    set(llmbench_missing "llmbench needs a thread library (CMake's Threads).")
endif()

if(llmbench_missing AND NOT CMAKE_FIND_PACKAGE_NAME STREQUAL "llmbench")
    message(FATAL_ERROR "${llmbench_missing}")
elseif(NOT llmbench_missing)
    set_property(TARGET llmbench::asio PROPERTY INTERFACE_COMPILE_DEFINITIONS ASIO_STANDALONE)
endif()
