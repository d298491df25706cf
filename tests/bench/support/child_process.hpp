// Programs run as children, and what they cost: two builds of a benchmark are compared by children
// that take turns.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

inline double clock_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

inline std::string content_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + file.string());
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The time of a whole process, start and end included.
struct child_cost {
    double cpu_s = 0, wall_s = 0, peak_mib = 0;
    double ended_s = 0;    // by clock_seconds()
    std::string output{};  // what it wrote on standard output
};

/// `program` with these arguments; its reports go to `reports`, which is emptied before. Throws
/// where it does not exit with 0.
inline child_cost cost_of(const std::string& program, std::vector<std::string> arguments,
                          const std::filesystem::path& reports) {
    const std::filesystem::path output = reports.string() + ".txt";
    std::filesystem::remove_all(reports);
    arguments.insert(arguments.begin(), program);
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    const double began_s = clock_seconds();
    const pid_t child = ::fork();
    if (child == 0) {
        ::setenv("LLMBENCH_PROGRESS", "off", 1);
        ::setenv("LLMBENCH_REPORT_DIR", reports.c_str(), 1);
        const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (out >= 0 && ::dup2(out, STDOUT_FILENO) >= 0) ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    int status = 0;
    rusage used{};
    if (child < 0 || ::wait4(child, &status, 0, &used) != child || status != 0)
        throw std::runtime_error(program + " " + arguments[1] + " did not end well");
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    child_cost c;
    c.ended_s = clock_seconds();
    c.wall_s = c.ended_s - began_s;
    c.cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime);
    c.peak_mib = static_cast<double>(used.ru_maxrss) / 1024;
    c.output = content_of(output);
    return c;
}

/// The middle one of `field` over all runs.
template <class Run>
double median(const std::vector<Run>& runs, double Run::*field) {
    std::vector<double> v;
    for (const Run& r : runs) v.push_back(r.*field);
    std::sort(v.begin(), v.end());
    return v.empty() ? 0 : (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

/// What a benchmark of this kind is asked for: `[NUMBER] [--quick] [--vs OTHER_BINARY]`.
struct comparison {
    bool quick = false;
    long long number = 0;                    // 0: not given
    std::vector<std::string> programs{};     // this one, and the other where there is one
    static const char* name(std::size_t program) { return program == 0 ? "this" : "other"; }
};

/// Exits with 2 where the arguments are none of these.
inline comparison comparison_asked(int argc, char** argv) {
    comparison c;
    c.programs = {std::filesystem::read_symlink("/proc/self/exe").string()};
    for (int i = 1; i < argc; ++i) {
        const std::string a = argv[i];
        if (a == "--quick") c.quick = true;
        else if (a == "--vs" && i + 1 < argc && c.programs.size() == 1)
            c.programs.push_back(argv[++i]);
        else if (c.number == 0 && std::atoll(a.c_str()) > 0) c.number = std::atoll(a.c_str());
        else {
            std::fprintf(stderr, "usage: %s [NUMBER] [--quick] [--vs OTHER_BINARY]\n", argv[0]);
            std::exit(2);
        }
    }
    return c;
}

}  // namespace bench
