# What llmbench.hpp includes, found the same way from this source tree and from an installed
# package: by the library's own CMake package (vcpkg, Conan, doctest's of Debian), else by its header,
# for Debian's asio and picojson bring none.
# Override with -DLLMBENCH_ASIO_INCLUDE_DIR=..., or let CMAKE_PREFIX_PATH point at the prefix.
# The targets are GLOBAL: the project that embeds us with add_subdirectory must see them too.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads QUIET)

foreach(llmbench_name IN ITEMS asio picojson doctest)
    if(TARGET llmbench::${llmbench_name})
        continue()
    endif()
    set(llmbench_file_asio asio.hpp)
    set(llmbench_file_picojson picojson.h)
    set(llmbench_file_doctest doctest/doctest.h)
    string(TOUPPER "LLMBENCH_${llmbench_name}_INCLUDE_DIR" llmbench_variable)
    set(llmbench_hints "")
    set(llmbench_theirs ${llmbench_name}::${llmbench_name})
    # A subproject may have no alias: its own target is the project's.
    if(NOT TARGET ${llmbench_theirs} AND TARGET ${llmbench_name})
        set(llmbench_theirs ${llmbench_name})
    endif()
    if(NOT ${llmbench_variable})
        if(NOT TARGET ${llmbench_theirs})
            find_package(${llmbench_name} CONFIG QUIET)
        endif()
        if(TARGET ${llmbench_theirs})
            get_target_property(llmbench_hints ${llmbench_theirs} INTERFACE_INCLUDE_DIRECTORIES)
            # Those of a subproject are for its build: the paths alone.
            string(REGEX REPLACE "\\$<BUILD_INTERFACE:([^>]*)>" "\\1" llmbench_hints "${llmbench_hints}")
            string(REGEX REPLACE "\\$<[^>]*>" "" llmbench_hints "${llmbench_hints}")
            # Before any other one that is installed: a program has one doctest.
            find_path(${llmbench_variable} NAMES ${llmbench_file_${llmbench_name}}
                      PATHS ${llmbench_hints} NO_DEFAULT_PATH)
        endif()
    endif()
    # vcpkg has picojson.h in a directory of its own.
    find_path(${llmbench_variable} NAMES ${llmbench_file_${llmbench_name}} HINTS ${llmbench_hints}
              PATH_SUFFIXES picojson DOC "Directory that holds ${llmbench_file_${llmbench_name}}")
    mark_as_advanced(${llmbench_variable})
    if(NOT ${llmbench_variable} AND llmbench_name STREQUAL "asio" AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
        # Only other systems need it.
        add_library(llmbench::${llmbench_name} INTERFACE IMPORTED GLOBAL)
        continue()
    endif()
    if(NOT ${llmbench_variable})
        set(llmbench_missing "llmbench needs ${llmbench_name}: install it (Debian and Ubuntu: \
libasio-dev picojson-dev doctest-dev) or set ${llmbench_variable} to the directory that holds it.")
        break()
    endif()
    add_library(llmbench::${llmbench_name} INTERFACE IMPORTED GLOBAL)
    set_target_properties(llmbench::${llmbench_name} PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${${llmbench_variable}}")
endforeach()

# https:// where OpenSSL is there. Not through its own targets, which are not GLOBAL, except where a package
# manager's OPENSSL_LIBRARIES is one: Conan's variables for each library are bare names.
if(NOT DEFINED llmbench_with_tls_default)
    set(llmbench_with_tls_default AUTO)
endif()
set(LLMBENCH_WITH_TLS "${llmbench_with_tls_default}" CACHE STRING
    "https:// through OpenSSL: AUTO (where it is found), ON, OFF")
set_property(CACHE LLMBENCH_WITH_TLS PROPERTY STRINGS AUTO ON OFF)
if(NOT TARGET llmbench::tls)
    add_library(llmbench::tls INTERFACE IMPORTED GLOBAL)
    if(LLMBENCH_WITH_TLS)
        find_package(OpenSSL 1.1.1 QUIET)
    endif()
    if(LLMBENCH_WITH_TLS AND OPENSSL_FOUND)
        set_target_properties(llmbench::tls PROPERTIES
            INTERFACE_COMPILE_DEFINITIONS LLMBENCH_WITH_TLS
            INTERFACE_INCLUDE_DIRECTORIES "${OPENSSL_INCLUDE_DIR}"
            INTERFACE_LINK_LIBRARIES "${OPENSSL_LIBRARIES}")
    elseif(LLMBENCH_WITH_TLS AND NOT LLMBENCH_WITH_TLS STREQUAL "AUTO")
        set(llmbench_missing "llmbench is to be built with TLS (LLMBENCH_WITH_TLS is ON) and needs \
OpenSSL 1.1.1 or newer: install it (Debian and Ubuntu: libssl-dev) or set OPENSSL_ROOT_DIR.")
    endif()
endif()
if(NOT Threads_FOUND)
    set(llmbench_missing "llmbench needs a thread library (CMake's Threads).")
endif()

if(llmbench_missing AND NOT CMAKE_FIND_PACKAGE_NAME STREQUAL "llmbench")
    message(FATAL_ERROR "${llmbench_missing}")
elseif(NOT llmbench_missing)
    set_property(TARGET llmbench::asio PROPERTY INTERFACE_COMPILE_DEFINITIONS ASIO_STANDALONE)
endif()
