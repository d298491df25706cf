# find_package(llmbench): the target llmbench::llmbench and the function llmbench_add_gate().
# A package manager that left OpenSSL out does not want to see one that is there by chance.
set(llmbench_with_tls_default "@LLMBENCH_WITH_TLS@")
include("${CMAKE_CURRENT_LIST_DIR}/llmbench-dependencies.cmake")
if(llmbench_missing)
    set(llmbench_FOUND FALSE)
    set(llmbench_NOT_FOUND_MESSAGE "${llmbench_missing}")
    return()
endif()
include("${CMAKE_CURRENT_LIST_DIR}/llmbench-targets.cmake")
set(LLMBENCH_EXTENSIONS "@llmbench_extensions@" CACHE INTERNAL "Names of the extensions")
include("${CMAKE_CURRENT_LIST_DIR}/llmbench-add-gate.cmake")
