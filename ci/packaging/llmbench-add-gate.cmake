# llmbench_add_gate(NAME chat SOURCES gates.cpp [URL http://...] [TIMEOUT seconds]
#                   [ENVIRONMENT NAME=value ...])
#
# Builds one gate program and registers it with CTest under the label `perf`:
#   ctest -L perf     only the gates        ctest -LE perf     everything but the gates
# Gates never run beside another test, because the neighbour's load would be measured too. A run
# that was skipped (exit 77) counts as skipped, not as passed. Each gate program writes its report
# to llmbench-report/NAME in the build directory; ENVIRONMENT LLMBENCH_REPORT_DIR=... moves it.
# Without URL the program takes LLMBENCH_URL from the environment of ctest.
function(llmbench_add_gate)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;URL;TIMEOUT" "SOURCES;ENVIRONMENT")
    if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "llmbench_add_gate(NAME name SOURCES file... [URL url] "
            "[TIMEOUT seconds] [ENVIRONMENT NAME=value...]): got '${ARGV}'")
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 3600)
    endif()
    # Of two values for one variable the later wins, so the caller's own come last.
    set(environment "LLMBENCH_REPORT_DIR=${CMAKE_CURRENT_BINARY_DIR}/llmbench-report/${arg_NAME}")
    if(arg_URL)
        list(APPEND environment "LLMBENCH_URL=${arg_URL}")
    endif()
    add_executable(${arg_NAME} ${arg_SOURCES})
    target_link_libraries(${arg_NAME} PRIVATE llmbench::llmbench)
    add_test(NAME ${arg_NAME} COMMAND ${arg_NAME})
    set_tests_properties(${arg_NAME} PROPERTIES
        LABELS perf
        RUN_SERIAL TRUE
        SKIP_RETURN_CODE 77
        TIMEOUT "${arg_TIMEOUT}"
        ENVIRONMENT "${environment};${arg_ENVIRONMENT}")
endfunction()
