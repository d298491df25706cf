# llmbench_add_gate(NAME chat SOURCES gates.cpp...
#                   [URL http://...] [TIMEOUT seconds] [ENVIRONMENT NAME=value...]
#                   [SERVER_COMMAND program argument... [PORT number] [READY_URL http://...]
#                                   [READY_WITHIN seconds]])
#
# Builds one gate program and registers it with CTest under the label `perf`:
#   ctest -L perf     only the gates        ctest -LE perf     everything but the gates
# Gates never run beside another test, because the neighbour's load would be measured too. A run
# that was skipped (exit 77) counts as skipped, not as passed. Each gate program writes its report
# to llmbench-report/NAME in the build directory; ENVIRONMENT LLMBENCH_REPORT_DIR=... moves it.
#
# URL             the server, as LLMBENCH_URL; without it the one in the environment of ctest
# TIMEOUT         of the whole test, default 3600
# SERVER_COMMAND  a server for this suite: started before it, ended after it with all its children.
#                 The program is a target of yours or a path; {port} in an argument becomes PORT.
#                 Its log is server.log in the report. (A gate can also start its own server, with
#                 process{...}; then every gate has a fresh one, and its start is measured.)
# PORT            default 8000
# READY_URL       answers 200 as soon as the server is ready, default http://127.0.0.1:PORT/health
# READY_WITHIN    how long that may take, default 600; after that the test fails with the log
set(LLMBENCH_PACKAGING_DIR "${CMAKE_CURRENT_LIST_DIR}" CACHE INTERNAL "Where llmbench's scripts are")

function(llmbench_add_gate)
    cmake_parse_arguments(PARSE_ARGV 0 arg ""
        "NAME;URL;TIMEOUT;PORT;READY_URL;READY_WITHIN" "SOURCES;ENVIRONMENT;SERVER_COMMAND")
    set(me "llmbench_add_gate(NAME ${arg_NAME} ...)")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "${me}: what is '${arg_UNPARSED_ARGUMENTS}'? It knows NAME, SOURCES, "
            "URL, TIMEOUT, ENVIRONMENT, SERVER_COMMAND, PORT, READY_URL and READY_WITHIN")
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
    set(command ${arg_NAME})
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
        list(POP_FRONT arg_SERVER_COMMAND server)
        if(TARGET ${server} OR server STREQUAL arg_NAME)
            set(server "$<TARGET_FILE:${server}>")
        endif()
        list(TRANSFORM arg_SERVER_COMMAND REPLACE "{port}" "${arg_PORT}")
        set(command sh "${LLMBENCH_PACKAGING_DIR}/llmbench-with-server.sh" "${CMAKE_COMMAND}"
            "${arg_READY_URL}" "${arg_READY_WITHIN}" "${report}/server.log"
            "$<TARGET_FILE:${arg_NAME}>" "${server}" ${arg_SERVER_COMMAND})
    endif()
    # Of two values for one variable the later wins, so the caller's own come last.
    set(environment "LLMBENCH_REPORT_DIR=${report}")
    if(arg_URL)
        list(APPEND environment "LLMBENCH_URL=${arg_URL}")
    endif()
    add_executable(${arg_NAME} ${arg_SOURCES})
    target_link_libraries(${arg_NAME} PRIVATE llmbench::llmbench)
    add_test(NAME ${arg_NAME} COMMAND ${command})
    set_tests_properties(${arg_NAME} PROPERTIES
        LABELS perf
        RUN_SERIAL TRUE
        SKIP_RETURN_CODE 77
        TIMEOUT "${arg_TIMEOUT}"
        ENVIRONMENT "${environment};${arg_ENVIRONMENT}")
endfunction()
