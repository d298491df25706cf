// Where a test or a benchmark puts files.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include <stdlib.h>  // mkdtemp

#include <unistd.h>  // mkdtemp, elsewhere than in glibc

namespace files {

/// An empty directory, gone with it.
class scratch {
public:
    scratch() {
        char name[] = "/tmp/llmbench-test-XXXXXX";
        if (!::mkdtemp(name)) throw std::runtime_error("no scratch directory");
        path_ = name;
    }
    ~scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;
    std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_{};
};

}  // namespace files
