// llmbench flags: what a compiler takes for gates that link libllmbench.a
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "program/arguments.hpp"
#include "program/values.hpp"

#include <filesystem>
#include <string>
#include <system_error>  // error_code

namespace llmbench_program {

/// The folders of an installation, beside the program's own.
struct installed_folders {
    std::filesystem::path include{}, lib{}, share{};
};

/// `program` is PREFIX/bin/llmbench, as in a wheel, a release's archive and after an install.
inline installed_folders folders_beside(const std::filesystem::path& program) {
    namespace fs = std::filesystem;
    const fs::path prefix = program.parent_path().parent_path();
    for (const char* const lib :
         {"lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"}) {
        const installed_folders f{prefix / "include", prefix / lib, prefix / "share"};
        std::error_code failed;
        if (fs::exists(f.lib / "libllmbench.a", failed) &&
            fs::exists(f.include / "llmbench.hpp", failed))
            return f;
    }
    refuse({"there is no libllmbench.a for this program, ", printable(program.string(), 200),
            ": the wheel (`pip install llmbench`) and llmbench-", version_text(),
            "-linux-ARCH.tar.gz of a release have both, and `cmake --install` of a build with "
            "-DLLMBENCH_BUILD_ARCHIVE=ON. Without it, #define LLMBENCH_MAIN in one file compiles "
            "the header"});
}

/// Shells divide what $(...) gives at blanks, whatever the quotes in it.
inline std::string as_word(const std::filesystem::path& folder) {
    const std::string text = folder.string();
    if (text.find_first_of(" \t\n*?[") != std::string::npos)
        refuse({"the installation is in \"", printable(text, 200),
                "\": $(llmbench flags) needs a path without blanks, *, ? and ["});
    return text;
}

inline std::string compiler_flags(const installed_folders& f) {
    // As a system header, so that warnings are about the gates. /usr/include is searched anyway,
    // and named it would come before the folders that must come before it.
    const std::string include = as_word(f.include);
    return (include == "/usr/include" ? "" : "-isystem " + include + " ") +
           "-DLLMBENCH_PREBUILT -pthread";
}
inline std::string linker_flags(const installed_folders& f, bool has_main, bool has_tls) {
    return "-L" + as_word(f.lib) + (has_main ? " -lllmbench_main" : "") + " -lllmbench" +
           (has_tls ? " -Wl,-u,llmbench_takes_tls -lssl -lcrypto" : "") + " -pthread";
}

/// OpenSSL's functions are weak in the archive; one object of it asks for them, by this name.
inline void check_tls(const installed_folders& f) {
    const std::string archive = (f.lib / "libllmbench.a").string();
    if (file_content(archive, "libllmbench.a").find("llmbench_takes_tls") == std::string::npos)
        refuse({"--tls: ", printable(archive, 200), " was built without OpenSSL"});
}

inline int print_flags(const given_options& o) {
    std::error_code failed;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
    if (failed)
        refuse({"llmbench flags is for Linux: elsewhere, #define LLMBENCH_MAIN in one file "
                "compiles the header"});
    const installed_folders f = folders_beside(program);
    const bool has_cflags = o.has("--cflags"), has_libs = o.has("--libs");
    const int folders = o.has("--cmake") + o.has("--pkg-config");
    if (folders > 1 || (folders == 1 && (has_cflags || has_libs || o.has("--tls") ||
                                         o.has("--no-main"))))
        refuse({o.has("--cmake") ? "--cmake" : "--pkg-config",
                " prints one folder: it goes with no other option"});
    if (has_cflags && !has_libs && (o.has("--tls") || o.has("--no-main")))
        refuse({o.has("--tls") ? "--tls" : "--no-main", " is of linking, and --cflags leaves "
                                                        "that out: add --libs"});
    if (o.has("--tls")) check_tls(f);
    if (o.has("--cmake")) say((f.share / "llmbench" / "cmake").string() + "\n");
    else if (o.has("--pkg-config")) say((f.share / "pkgconfig").string() + "\n");
    else {
        const bool all = has_cflags == has_libs;
        std::string line = all || has_cflags ? compiler_flags(f) : "";
        if (all || has_libs)
            line += (line.empty() ? "" : " ") +
                    linker_flags(f, !o.has("--no-main"), o.has("--tls"));
        say(line + "\n");
    }
    return 0;
}

inline verb flags_verb() {
    return {"flags",
            "What a compiler takes for gates in C++, compiled in a second",
            {{"Options",
              {{"--cflags", "", "those of compiling alone", takes::nothing},
               {"--libs", "", "those of linking alone", takes::nothing},
               {"--no-main", "", "for a main() of your own", takes::nothing},
               {"--tls", "", "for https://, by OpenSSL (libssl-dev)", takes::nothing},
               {"--cmake", "", "the folder for -Dllmbench_DIR=", takes::nothing},
               {"--pkg-config", "", "the folder for PKG_CONFIG_PATH=; the package is llmbench_main",
                takes::nothing}}}},
            "Examples:\n"
            "  g++ -std=c++20 gates.cpp $(llmbench flags) -o gates\n"
            "  llmbench flags --libs --tls\n"
            "  cmake -S . -B build -Dllmbench_DIR=$(llmbench flags --cmake)\n"
            "libllmbench.a, beside this program, has the implementation of llmbench.hpp and of all\n"
            "extensions.",
            print_flags};
}

}  // namespace llmbench_program
