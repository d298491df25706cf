# cmake -DURL=http://... -P llmbench-probe.cmake: says the HTTP status there, `silence` where nothing is
# said for two seconds, and nothing where nobody listens.
set(ENV{no_proxy} "*")  # the gates go straight to the server, and so does this
file(DOWNLOAD "${URL}" STATUS status LOG log TIMEOUT 2)
list(GET status 0 code)
string(REGEX MATCHALL "HTTP/[0-9.]+ [0-9][0-9][0-9]" answers "${log}")
if(answers)
    list(GET answers -1 answer)
    string(REGEX REPLACE ".* " "" answer "${answer}")
    message("${answer}")
elseif(code EQUAL 28)
    message("silence")
endif()
