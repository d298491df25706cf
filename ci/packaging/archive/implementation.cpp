// libllmbench.a: the implementation with all extensions, for files with doctest and without. The rest of it
// is in objects of their own, which a program that brings its own doctest or main() does not take.
#define LLMBENCH_ARCHIVE
#define LLMBENCH_IMPLEMENT
// Programs are linked with OpenSSL or without it: then its functions are null.
#ifdef LLMBENCH_WITH_TLS
#define PRAGMA(text) _Pragma(#text)
#define FUNCTION(name) PRAGMA(weak name)
#include "openssl.inc"
#undef FUNCTION
#endif
#include "llmbench.hpp"
// all extensions
#include "llmbench_answers.hpp"
#include "llmbench_capacity.hpp"
#include "llmbench_compare.hpp"
#include "llmbench_embeddings.hpp"
#include "llmbench_faults.hpp"
#include "llmbench_history.hpp"
#include "llmbench_machines.hpp"
#include "llmbench_sessions.hpp"
#include "llmbench_simulated.hpp"
#include "llmbench_switched.hpp"
#include "llmbench_websocket.hpp"
#include "llmbench_work.hpp"
