// the command line's arguments
// CLI11 parses options and prints help. Values stay texts here; their readers refuse bad ones.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "program/other_words.hpp"
#include "program/values.hpp"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace llmbench_program {

/// How often an option may be given, and with how many values.
enum class takes : unsigned char { nothing, one, each, many };

/// An option or, without dashes, the files of a verb; `kind` names the value in the help.
struct option_row {
    const char *name, *kind, *meaning;
    takes values = takes::one;
};
struct option_group {
    const char* name;
    vector<option_row> options;
};
/// One verb of the program, as its help shows it, and the function that runs it.
struct verb {
    const char *name, *about;
    vector<option_group> groups;
    std::string footer;
    int (*run)(const given_options&);
};

inline void add_option(CLI::App& to, const option_row& row, const char* group, given_options& o) {
    const auto option = [&] {
        if (row.values == takes::nothing)
            return to.add_flag_callback(
                row.name, [&o, row] { o.texts[row.name] = {""}; }, row.meaning);
        if (row.values != takes::one)
            return to.add_option(row.name, o.texts[row.name], row.meaning)
                ->allow_extra_args(row.values == takes::many);
        return to.add_option_function<std::string>(
            row.name,
            [&o, row](const std::string& text) {
                if (!text.empty()) o.texts[row.name] = {text};
            },
            row.meaning);
    }();
    if (row.values != takes::nothing) option->type_name(row.kind);
    option->group(group);
}
/// Adds a verb, whose options go to `o` if it is the one that is named.
inline void add_verb(CLI::App& app, const verb& v, given_options& o) {
    CLI::App& to = *app.add_subcommand(v.name, v.about);
    for (const option_group& g : v.groups)
        for (const option_row& row : g.options) add_option(to, row, g.name, o);
    to.footer(v.footer);
}

inline constexpr option_row inconclusive_row{"--inconclusive", "KIND",
                                             "warn (0, default), fail (1), skip (77)"};
inline constexpr const char* exit_codes_of_gates =
    "Exit codes: 0 passed or inconclusive, 1 missed, 2 refused, 3 invalid, 77 skipped.";

/// Returns the option that a misspelt one means, or one of another tool; "" if none is close.
inline std::string option_meant(const CLI::App& of, std::string_view given) {
    vector<std::string> names;
    for (const CLI::Option* o : of.get_options())
        for (const std::string& name : o->get_lnames()) names.push_back(name);
    const std::string meant = option_meant(given.substr(given.find_first_not_of('-')), names);
    const auto is_it = [&](const std::string& name) { return name == meant; };
    return detail::any_of(names, is_it) ? "--" + meant : "";
}

/// Returns one sentence on an argument that CLI11 refused. `verbs` lists all verbs.
inline std::string unplaced_argument(const CLI::App& at, const std::string& verbs,
                                     const CLI::ParseError& e) {
    const std::vector<std::string> left = at.remaining(true);
    const bool is_verb = at.get_parent() != nullptr;
    const std::string who = (is_verb ? "llmbench " : "") + at.get_name();
    const std::string help = "`" + who + " --help` lists all options";
    const std::string said = e.what();
    if (!left.empty() && left.front().rfind("-", 0) == 0) {
        const std::string name = left.front().substr(0, left.front().find('='));
        const std::string meant = option_meant(at, name);
        return printable(name, 80) + " is no option of " + who +
               (meant.empty() ? "" : ", is " + meant + " meant?") + ": " + help;
    }
    if (!left.empty() && !is_verb && left.front() == "compare")
        return "compare is no verb: `llmbench show A B` has two runs side by side with the ratios "
               "of their values; of two servers, `run --baseline-url` judges a comparison";
    if (!left.empty() && !is_verb)
        return "\"" + printable(left.front(), 80) + "\" is no verb: it must be one of " + verbs;
    if (!left.empty())
        return "\"" + printable(left.front(), 80) +
               "\" belongs to no option: put quotes around a "
               "value that has blanks; " +
               help;
    if (said.rfind("--", 0) == 0)
        return said.substr(0, said.find(':')) + " takes one value, once: " + help;
    return said + ": " + help;
}

}  // namespace llmbench_program
