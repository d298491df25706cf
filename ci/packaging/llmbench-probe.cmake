# cmake -DURL=http://... -P llmbench-probe.cmake: succeeds where the URL answers with success.
file(DOWNLOAD "${URL}" STATUS status TIMEOUT 2)
list(GET status 0 code)
if(NOT code EQUAL 0)
    message(FATAL_ERROR "${URL}: ${status}")
endif()
