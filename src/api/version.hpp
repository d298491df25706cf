// the version
#pragma once

#define LLMBENCH_VERSION_MAJOR 0
#define LLMBENCH_VERSION_MINOR 1
#define LLMBENCH_VERSION_PATCH 0
