// the version
#pragma once

#define LLMBENCH_VERSION_MAJOR 1
#define LLMBENCH_VERSION_MINOR 0
#define LLMBENCH_VERSION_PATCH 0
// Suffix of a pre-release; "" for a release.
#define LLMBENCH_VERSION_PRE "rc.1"
