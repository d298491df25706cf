// files
#pragma once

#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"

#include <cerrno>  // errno
#include <cstring>  // strerror
#include <filesystem>  // error_code
#include <fstream>  // ifstream, ios, istreambuf_iterator, ofstream
#include <memory>  // make_shared
#include <sstream>  // files as text
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::string file_content(const std::string& path, const std::string& what) {
    std::ifstream in(path, std::ios::binary);
    std::error_code ignored;
    require(static_cast<bool>(in) && !std::filesystem::is_directory(path, ignored),
            what + ": " + path + " cannot be read");
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The file appears whole or not at all.
inline void write_file(const std::filesystem::path& path, const std::string& content) {
    const std::filesystem::path draft = path.string() + ".tmp";
    {
        std::ofstream out(draft, std::ios::binary);
        errno = 0;
        out.write(content.data(), static_cast<std::streamsize>(content.size()));
        out.flush();  // what is still in the buffer is not written yet
        if (!out)
            throw std::runtime_error("cannot write " + path.string() + ": " + std::strerror(errno));
    }
    std::filesystem::rename(draft, path);
}

/// One number a line; empty lines are passed over.
inline std::vector<double> read_numbers(const std::string& path, const char* field) {
    std::ifstream in(path);
    require(static_cast<bool>(in),
            printed("%s is empirical(\"%s\"): the file cannot be read", field, path.c_str()));
    std::vector<double> values;
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        const std::string_view t = trimmed(line);
        if (t.empty() || t == "\r") continue;
        std::string_view rest = t;
        const double v = leading_number<double>(rest).value_or(not_a_number);
        require((rest.empty() || rest == "\r") && v >= 1 && v <= 1e7,
                printed("%s:%d is \"%s\": %s needs one length from 1 to 10000000 a line",
                        path.c_str(), number, printable(t, 60).c_str(), field));
        values.push_back(v);
    }
    require(!values.empty(),
            printed("%s is empirical(\"%s\"): the file holds no lengths", field, path.c_str()));
    return values;
}

/// The file's bytes, read as they are asked for.
inline byte_stream bytes_of(const std::string& path, const char* field) {
    auto in = std::make_shared<std::ifstream>(path, std::ios::binary);
    std::error_code ignored;
    require(static_cast<bool>(*in) && !std::filesystem::is_directory(path, ignored),
            printed("%s is \"%s\": the file cannot be read", field, path.c_str()));
    return {[in](char* room, std::size_t n) {
                in->read(room, static_cast<std::streamsize>(n));
                return static_cast<std::size_t>(in->gcount());
            },
            path};
}

/// The last lines of a text file, for error messages.
inline std::string tail_of(const std::string& path, std::size_t bytes = 2000) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    const std::string s = all.str();
    return s.size() > bytes ? "..." + s.substr(s.size() - bytes) : s;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
