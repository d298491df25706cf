# llmbench_add_gate(NAME chat SOURCES gates.cpp... [EXTENSIONS simulated...]
#                   [URL http://...] [TIMEOUT seconds] [ENVIRONMENT NAME=value...]
#                   [SERVER_COMMAND program argument... [PORT number] [READY_URL http://...]
#                                   [READY_WITHIN seconds]])
#
# Builds one gate program and registers it with CTest under the label `perf`. The whole of it:
#   find_package(llmbench REQUIRED)      # or add_subdirectory, or FetchContent
#   enable_testing()                     # in the top CMakeLists.txt, as ctest asks for it
#   llmbench_add_gate(NAME chat SOURCES gates.cpp URL http://127.0.0.1:8000)
# and then, in the build directory:
#   ctest -L perf --no-tests=error --output-on-failure    only the gates; what a red one says, and a
#                                        label that no test has is no success
#   ctest -LE perf                       everything but the gates
# Gates never run beside another test, because the neighbour's load would be measured too. A run
# that was skipped (exit 77) counts as skipped, not as passed. Each gate program writes its report
# to llmbench-report/NAME in the build directory; ENVIRONMENT LLMBENCH_REPORT_DIR=... moves it.
# A gate program is a client that must not be late: without a build type it is compiled with -Og, which
# costs nothing up to thousands of tokens a second; a flood wants CMAKE_BUILD_TYPE=Release.
# The implementation and its main(), a minute of compiling, are compiled once for all gates of
# the project: an edit of a gate takes a second. A file that defines LLMBENCH_MAIN, or none at all,
# gets that one; who defines LLMBENCH_IMPLEMENT or doctest's implementation brings his own.
# An installed llmbench that has libllmbench.a is compiled already: all gates take that.
# set(LLMBENCH_FROM_HEADER ON) compiles the header none the less (another doctest, LLMBENCH_WITH_MPI).
#
# NAME            of the target and of the test
# SOURCES         the files with the gates; one of them may define LLMBENCH_MAIN
# EXTENSIONS      those that its program needs beside the ones that SOURCES include themselves, as
#                 "llmbench_simulated.hpp": for includes that stand in a header of yours
# URL             the server, as LLMBENCH_URL; without it the one in the environment of ctest
# TIMEOUT         of the whole test in seconds, default 3600; a run takes two to five times as long
#                 as one repeat, and says so when it starts
# ENVIRONMENT     for the gates and the server: LLMBENCH_MODEL=..., LLMBENCH_INCONCLUSIVE=fail
# SERVER_COMMAND  a server for this suite: started before it, ended after it with all its children.
#                 The program is a target of yours or a path; {port} in an argument becomes PORT.
#                 Its log is server.log in the report. (A gate can also start its own server, with
#                 process{...}; then every gate has a fresh one, and its start is measured.)
# PORT            default 8000; nothing may answer there yet, for it would be measured instead
# READY_URL       answers 200 as soon as the server is ready, default http://127.0.0.1:PORT/health
# READY_WITHIN    seconds that may take, default 600; after that the test fails with the log's end
set(LLMBENCH_PACKAGING_DIR "${CMAKE_CURRENT_LIST_DIR}" CACHE INTERNAL "Where llmbench's scripts are")

# The implementation with main(), once for all gates of the project that use the same extensions, where
# the sources of a gate want that one.
function(llmbench_share_main name extensions)
    if(TARGET llmbench::llmbench_main AND NOT LLMBENCH_FROM_HEADER)  # compiled already, with all extensions
        foreach(extension IN LISTS extensions)
            if(NOT extension IN_LIST LLMBENCH_EXTENSIONS)
                message(FATAL_ERROR "${me}: there is no extension \"${extension}\" of llmbench")
            endif()
        endforeach()
        target_link_libraries(${name} PRIVATE llmbench::llmbench_main)
        return()
    endif()
    target_link_libraries(${name} PRIVATE llmbench::llmbench)
    set(asks "")
    foreach(source IN LISTS ARGN)
        get_filename_component(path "${source}" ABSOLUTE)
        if(EXISTS "${path}")
            set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
            file(STRINGS "${path}" lines REGEX
                "^[ \t]*#[ \t]*define[ \t]+(LLMBENCH_(MAIN|IMPLEMENT|NO_DOCTEST)|DOCTEST_CONFIG_IMPLEMENT)")
            string(APPEND asks "${lines};")
            file(STRINGS "${path}" lines REGEX "^[ \t]*#[ \t]*include[ \t]+[\"<](.*/)?llmbench_[a-z]+\\.hpp")
            list(TRANSFORM lines REPLACE "^.*llmbench_([a-z]+)\\.hpp.*$" "\\1")
            list(APPEND extensions ${lines})
        endif()
    endforeach()
    if(asks MATCHES "LLMBENCH_IMPLEMENT|LLMBENCH_NO_DOCTEST|DOCTEST_CONFIG_IMPLEMENT")
        return()
    endif()
    if("all" IN_LIST extensions)  # llmbench_all.hpp
        list(REMOVE_ITEM extensions all)
        list(APPEND extensions ${LLMBENCH_EXTENSIONS})
    endif()
    list(SORT extensions)
    list(REMOVE_DUPLICATES extensions)
    set(guards LLMBENCH_CORE LLMBENCH_IMPLEMENTED LLMBENCH_MAIN_DEFINED DOCTEST_LIBRARY_IMPLEMENTATION)
    set(main llmbench_gate_main)
    set(includes "#include \"llmbench.hpp\"\n")
    foreach(extension IN LISTS extensions)
        if(NOT TARGET llmbench::${extension})
            message(FATAL_ERROR "${me}: there is no extension \"${extension}\" of llmbench")
        endif()
        string(APPEND main "_${extension}")
        string(APPEND includes "#include \"llmbench_${extension}.hpp\"\n")
        string(TOUPPER "LLMBENCH_${extension}_IMPLEMENTED" guard)
        list(APPEND guards ${guard})
    endforeach()
    if(NOT TARGET ${main})
        set(file "${CMAKE_BINARY_DIR}/${main}.cpp")
        file(CONFIGURE OUTPUT "${file}" CONTENT "#define LLMBENCH_MAIN\n${includes}" @ONLY)
        # An archive: a program with a main() of its own does not take this one.
        add_library(${main} STATIC "${file}")
        target_link_libraries(${main} PUBLIC llmbench::llmbench)
        target_compile_options(${main} PRIVATE $<$<CONFIG:>:-Og>)
    endif()
    # The guards of the implementation's parts, here and in doctest.
    target_compile_definitions(${name} PRIVATE ${guards})
    target_link_libraries(${name} PRIVATE ${main})
endfunction()

function(llmbench_add_gate)
    cmake_parse_arguments(PARSE_ARGV 0 arg ""
        "NAME;URL;TIMEOUT;PORT;READY_URL;READY_WITHIN" "SOURCES;EXTENSIONS;ENVIRONMENT;SERVER_COMMAND")
    set(me "llmbench_add_gate(NAME ${arg_NAME} ...)")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "${me}: what is '${arg_UNPARSED_ARGUMENTS}'? It knows NAME, SOURCES, "
            "EXTENSIONS, URL, TIMEOUT, ENVIRONMENT, SERVER_COMMAND, PORT, READY_URL and READY_WITHIN")
    endif()
    if(arg_KEYWORDS_MISSING_VALUES)
        message(FATAL_ERROR "${me}: ${arg_KEYWORDS_MISSING_VALUES} has no value")
    endif()
    foreach(field IN ITEMS NAME SOURCES)
        if(NOT arg_${field})
            message(FATAL_ERROR "${me}: ${field} is missing")
        endif()
    endforeach()
    if(TARGET ${arg_NAME})
        message(FATAL_ERROR "${me}: there is a target of that name already")
    endif()
    foreach(field IN ITEMS TIMEOUT PORT READY_WITHIN)
        if(DEFINED arg_${field} AND NOT arg_${field} MATCHES "^[1-9][0-9]*$")
            message(FATAL_ERROR "${me}: ${field} is '${arg_${field}}': a whole number above 0")
        endif()
    endforeach()
    foreach(entry IN LISTS arg_ENVIRONMENT)
        if(NOT entry MATCHES "^[A-Za-z_][A-Za-z0-9_]*=")
            message(FATAL_ERROR "${me}: ENVIRONMENT holds '${entry}': it must be NAME=value")
        endif()
    endforeach()
    if(NOT arg_SERVER_COMMAND)
        foreach(field IN ITEMS PORT READY_URL READY_WITHIN)
            if(DEFINED arg_${field})
                message(FATAL_ERROR "${me}: ${field} is of use only with SERVER_COMMAND")
            endif()
        endforeach()
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 3600)
    endif()

    set(report "${CMAKE_CURRENT_BINARY_DIR}/llmbench-report/${arg_NAME}")
    if(arg_SERVER_COMMAND)
        if(NOT arg_PORT)
            set(arg_PORT 8000)
        endif()
        if(NOT arg_URL)
            set(arg_URL "http://127.0.0.1:${arg_PORT}")
        endif()
        if(NOT arg_READY_URL)
            set(arg_READY_URL "http://127.0.0.1:${arg_PORT}/health")
        endif()
        if(NOT arg_READY_WITHIN)
            set(arg_READY_WITHIN 600)
        endif()
        set(server "")
        foreach(word IN LISTS arg_SERVER_COMMAND)
            if(server STREQUAL "" AND (TARGET ${word} OR word STREQUAL arg_NAME))
                set(word "$<TARGET_FILE:${word}>")
            endif()
            string(REPLACE "{port}" "${arg_PORT}" word "${word}")
            string(REPLACE "'" "'\\''" word "${word}")
            string(APPEND server " '${word}'")
        endforeach()
    endif()
    # Of two values for one variable the later wins, so the caller's own come last.
    set(environment "LLMBENCH_REPORT_DIR=${report}")
    if(arg_URL)
        list(APPEND environment "LLMBENCH_URL=${arg_URL}")
    endif()
    if(arg_SERVER_COMMAND)
        string(SUBSTRING "${server}" 1 -1 server)
        string(REPLACE ";" "\\;" server "${server}")
        list(APPEND environment "LLMBENCH_SERVER=${server}" "LLMBENCH_READY_PATH=${arg_READY_URL}"
            "LLMBENCH_READY_WITHIN=${arg_READY_WITHIN}")
    endif()
    add_executable(${arg_NAME} ${arg_SOURCES})
    llmbench_share_main(${arg_NAME} "${arg_EXTENSIONS}" ${arg_SOURCES})
    target_compile_options(${arg_NAME} PRIVATE $<$<CONFIG:>:-Og>)
    add_test(NAME ${arg_NAME} COMMAND ${arg_NAME})
    set_tests_properties(${arg_NAME} PROPERTIES
        LABELS perf
        RUN_SERIAL TRUE
        SKIP_RETURN_CODE 77
        TIMEOUT "${arg_TIMEOUT}"
        ENVIRONMENT "${environment};${arg_ENVIRONMENT}")
    cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]]
        CALL llmbench_check_testing [[${me}]])")
endfunction()

# Without enable_testing() add_test() does nothing, and ctest finds no test and exits with 0: green.
function(llmbench_check_testing me)
    if(NOT CMAKE_TESTING_ENABLED AND (BUILD_TESTING OR NOT DEFINED BUILD_TESTING))
        message(FATAL_ERROR "${me}: ctest would not know it: the top CMakeLists.txt needs a line "
            "enable_testing()")
    endif()
endfunction()
