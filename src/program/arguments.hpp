// the command line's arguments
// CLI11 parses options and prints help. Values stay texts here; their readers refuse bad ones.
#pragma once

#include "core/base/text.hpp"
#include "effects/system/settings.hpp"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <functional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <string_view>
#include <vector>

namespace llmbench_program {

using namespace llmbench;
using namespace llmbench::detail;

/// One verb of the program: its options, and the function that runs once they are read.
struct verb {
    CLI::App* options = nullptr;
    std::function<int()> run{};
};

/// Adds the options of one group to a verb's help.
class option_group {
public:
    option_group(CLI::App& to, const char* name) : to_(to), name_(name) {}
    const option_group& text(const char* option, std::string& value, const char* kind,
                             const char* meaning) const {
        to_.add_option(option, value, meaning)->type_name(kind)->group(name_);
        return *this;
    }
    /// Adds an option that may be repeated, one value each.
    const option_group& list(const char* option, std::vector<std::string>& values,
                             const char* kind, const char* meaning) const {
        to_.add_option(option, values, meaning)
            ->type_name(kind)
            ->allow_extra_args(false)
            ->group(name_);
        return *this;
    }
    const option_group& flag(const char* option, bool& value, const char* meaning) const {
        to_.add_flag(option, value, meaning)->group(name_);
        return *this;
    }

private:
    CLI::App& to_;
    const char* name_;
};

/// Adds a verb's files, which may stand between its options.
inline void take_files(CLI::App& to, const char* name, std::vector<std::string>& files,
                       const char* meaning) {
    to.add_option(name, files, meaning)->type_name("")->group("Files");
}

/// Returns the option closest to a misspelt one, "" if none is close.
inline std::string option_meant(const CLI::App& of, std::string_view given) {
    std::string nearest;
    std::size_t least = 4;
    for (const CLI::Option* o : of.get_options())
        for (const std::string& name : o->get_lnames())
            if (const std::size_t apart = letters_apart(given, "--" + name); apart < least) {
                least = apart;
                nearest = "--" + name;
            }
    return nearest;
}

/// Returns one sentence on an argument that CLI11 refused. `verbs` lists all verbs.
inline std::string unplaced_argument(const CLI::App& at, bool is_verb, const std::string& verbs,
                                     const CLI::ParseError& e,
                                     const std::vector<std::string>& left) {
    const std::string who = (is_verb ? "llmbench " : "") + at.get_name();
    const std::string help = "`" + who + " --help` lists all options";
    const std::string said = e.what();
    if (!left.empty() && left.front().rfind("-", 0) == 0) {
        const std::string name = left.front().substr(0, left.front().find('='));
        const std::string meant = option_meant(at, name);
        return printable(name, 80) + " is no option of " + who +
               (meant.empty() ? "" : ", is " + meant + " meant?") + ": " + help;
    }
    if (!left.empty() && !is_verb)
        return "\"" + printable(left.front(), 80) + "\" is no verb: it must be one of " + verbs;
    if (!left.empty())
        return "\"" + printable(left.front(), 80) + "\" belongs to no option: put quotes around a "
               "value that has blanks; " + help;
    if (said.rfind("--", 0) == 0)
        return said.substr(0, said.find(':')) + " takes one value, once: " + help;
    return said + ": " + help;
}

}  // namespace llmbench_program
