// what `llmbench count` says of a server: which counts repeat, and the gate to paste
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "core/reports/tables.hpp"
#include "extensions/work/core/judged.hpp"
#include "extensions/work/core/planned.hpp"
#include "program/values.hpp"

#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <string>
#include <utility>  // pair

namespace llmbench_program {

/// One count of the server's work in each load.
struct work_row {
    std::string name{};            // as in a gate: cached_tokens
    vector<double> seen{};         // NaN: the page does not tell
    vector<double> expected{};     // by the model; NaN: it does not know
    bool is_reported() const {
        return !any_of(seen, [](double n) { return std::isnan(n); });
    }
    bool is_equal() const {
        return is_reported() && all_of(seen, [&](double n) { return n == seen.front(); });
    }
    bool is_modelled() const {
        return !expected.empty() && !any_of(expected, [](double n) { return std::isnan(n); });
    }
    bool is_as_expected() const { return is_modelled() && seen == expected; }
};

/// Loads of the same requests on one server, one after the other, and what came of them.
struct counted_work {
    std::string url{}, server{};   // "vLLM", "" if unknown
    std::string ready{}, api{}, model{}, metrics_url{};  // as given, "" if not
    long long conversations = 8, turns = 3, prompt_tokens = 128, answer_tokens = 32, users = 4;
    std::string reset{};           // the path that empties the prefix cache, "" for none
    std::string reset_fault{};     // why no post empties it, "" if the server has no such path
    std::string command{};         // that starts the server anew for each load, "" for none
    std::string no_model{};        // why nothing is expected of prompts, "" if it is
    vector<work_row> rows{};
    vector<std::string> advice{};  // sentences: which options show more
    long long requests() const { return conversations * turns; }
    bool is_reset() const { return !reset.empty() || !command.empty(); }
    /// Whether what several users share is sent before.
    bool is_primed() const { return server == "SGLang" && users > 1 && is_reset(); }
    /// Whether requests at once make its counts of prompts depend on time.
    bool is_by_slot() const { return server == "llama.cpp" && users > 1; }
    /// Whether the last load computed so little that it found the rest in the cache.
    bool is_far_less_than(vector<double> work_row::*first) const {
        return !reset.empty() && any_of(rows, [&](const work_row& r) {
            return r.name == "prefilled_tokens" && is_far_less(r.seen.back(), (r.*first).front());
        });
    }
};

/// The objectives that such a load can have: of counts that repeat, where they do not depend on
/// what earlier loads left in the cache. Prefilled tokens have a number: what is expected follows
/// from the size of a block on the server's own page, so that only a number finds another size.
inline vector<std::string> objectives_of(const counted_work& w) {
    vector<std::string> all;
    for (const work_row& r : w.rows) {
        if (!r.is_equal()) continue;
        const bool is_zero_only = r.name == "preemptions";
        const bool is_of_steps = r.name == "engine_steps";
        if (is_zero_only && r.seen.front() != 0) continue;
        if (is_of_steps && w.users > 1) continue;
        if (!w.is_reset() && depends_on_cache(r.name)) continue;
        if (w.is_by_slot() && is_of_prompts(r.name)) continue;
        if (r.is_as_expected() && r.name != "prefilled_tokens")
            all.push_back(r.name + " == expected");
        else all.push_back(r.name + printed(" == %.0f", r.seen.front()));
    }
    return all;
}

/// What one row shows, in words.
inline std::string finding_of(const work_row& r, const counted_work& w) {
    if (!r.is_reported()) return "not on the page";
    if (!r.is_equal()) {
        if (r.name == "engine_steps" && w.users > 1)
            return "differs: which requests share a step depends on time";
        if (is_of_prompts(r.name) && w.is_far_less_than(&work_row::seen))
            return "differs: POST " + w.reset + " did not empty the cache";
        return "differs";
    }
    if (r.name == "engine_steps" && w.users > 1)
        return "equal by chance: which requests share a step depends on time";
    if (!r.is_modelled()) return "equal";
    if (r.is_as_expected()) return "equal, as expected";
    const double more = r.seen.front() - r.expected.front();
    // Of other blocks than the page has, too: so it is not certain.
    const bool seems_warm = is_of_prompts(r.name) && w.is_far_less_than(&work_row::expected);
    return printed("equal, %.0f %s than expected", more < 0 ? -more : more,
                   more < 0 ? "fewer" : "more") +
           (seems_warm ? ", as if POST " + w.reset + " had emptied nothing" : "");
}

/// In the words of a gate; "" if nothing is prepared.
inline std::string preparation_of(const counted_work& w, const std::string& begin,
                                  const std::string& reset, const std::string& prime,
                                  const std::string& end) {
    if (w.reset.empty() && !w.is_primed()) return {};
    const bool are_two = !w.reset.empty() && w.is_primed();
    return begin + (w.reset.empty() ? "" : reset) + (are_two ? ", " : "") +
           (w.is_primed() ? prime : "") + end;
}
/// The server of the gate; "" if nothing but its URL is known, which LLMBENCH_URL has.
inline std::string cpp_target(const counted_work& w) {
    using field = std::pair<const char*, std::string>;
    const auto quoted = [](const std::string& s) { return s.empty() ? "" : json_quoted(s); };
    const std::string model = quoted(w.model), page = quoted(w.metrics_url);
    const bool starts = !w.command.empty();
    const vector<field> fields = starts ? vector<field>{{"command", quoted(w.command)},
                                                        {"ready", quoted(w.ready)},
                                                        {"restart_between_repeats", "true"},
                                                        {"api", w.api},
                                                        {"model", model},
                                                        {"metrics_url", page}}
                                        : vector<field>{{"model", model},
                                                        {"api", w.api},
                                                        {"metrics_url", page}};
    const std::string begin = starts ? ".target = process{" : ".target = endpoint{";
    const std::string next = ",\n          " + std::string(begin.size(), ' ');
    std::string text;
    for (const auto& [name, value] : fields)
        if (!value.empty()) text += (text.empty() ? begin : next) + "." + name + " = " + value;
    return text.empty() ? text : text + "},\n          ";
}
inline std::string cpp_gate(const counted_work& w) {
    std::string slos;
    for (const std::string& o : objectives_of(w))
        slos += (slos.empty() ? "" : ",\n                   ") + o;
    return printed("#include \"llmbench_work.hpp\"    // after llmbench.hpp\n\n"
                   "TEST_CASE(\"the work of %lld requests\") {\n"
                   "    gate({%s.workload = conversations{.turns = fixed(%lld), "
                   ".user_tokens = fixed(%lld),\n"
                   "                                    .output_tokens = fixed(%lld)},\n"
                   "          .arrivals = closed_loop(%lld),\n"
                   "          .requests = %lld,\n",
                   w.requests(), cpp_target(w).c_str(), w.turns, w.prompt_tokens, w.answer_tokens,
                   w.users, w.requests()) +
           "          .slos = {" + slos + "}" +
           preparation_of(w, ",\n          .prepare = {", "post(\"" + w.reset + "\")", "prime()",
                          "}") +
           "});\n}\n";
}
inline std::string toml_gate(const counted_work& w) {
    std::string slos;
    for (const std::string& o : objectives_of(w))
        slos += (slos.empty() ? "\"" : ",\n       \"") + o + "\"";
    std::string server;
    const auto add = [&](const char* key, const std::string& text) {
        if (!text.empty()) server += key + (" = " + json_quoted(text)) + "\n";
    };
    if (w.command.empty()) add("url", w.url);
    add("command", w.command);
    if (!w.command.empty()) server += "restart = true\n";
    add("ready", w.ready);
    add("api", w.api);
    add("model", w.model);
    add("metrics-url", w.metrics_url);
    return printed("[\"the work of %lld requests\"]\n", w.requests()) + server +
           printed("users = %lld\nrequests = %lld\nturns = %lld\nprompt-tokens = %lld\n"
                   "output-tokens = %lld\n",
                   w.users, w.requests(), w.turns, w.prompt_tokens, w.answer_tokens) +
           preparation_of(w, "prepare = [", "{post = \"" + w.reset + "\"}", "{prime = true}",
                          "]\n") +
           "slo = [" + slos + "]\n";
}

inline std::string table_of(const counted_work& w) {
    const auto cell = [](double n) { return std::isnan(n) ? "-" : printed("%.0f", n); };
    report_table table{{"count", "first", "second", "expected", ""}};
    for (const work_row& r : w.rows)
        table.add({r.name, cell(r.seen.at(0)), cell(r.seen.at(1)),
                   r.is_modelled() ? cell(r.expected.front()) : "-", finding_of(r, w)});
    return console_table(table, 0);
}

inline std::string counted_text(const counted_work& w) {
    std::string s = (w.server.empty() ? "the server" : w.server) + " at " + w.url + ": " +
                    printed("%lld requests (%lld conversations of %lld turns, %lld user%s), "
                            "sent twice",
                            w.requests(), w.conversations, w.turns, w.users,
                            w.users == 1 ? "" : "s") +
                    (!w.command.empty() ? ", started anew before each"
                     : w.reset.empty()  ? ""
                                        : ", POST " + w.reset + " before each") +
                    "\n\n" +
                    table_of(w);
    if (!w.no_model.empty()) s += "\nnothing is expected of prompts: " + w.no_model + "\n";
    for (const std::string& a : w.advice) s += "\n" + a + "\n";
    if (objectives_of(w).empty())
        return s + "\nNo count repeats: there is no gate to paste.\n";
    s += "\nThe gate, in C++:\n\n" + cpp_gate(w) +
         "\nand in a file, for `llmbench run --config gates.toml`:\n\n" + toml_gate(w);
    if (s.find("***") != std::string::npos)
        s += "\n*** stands for a secret: put it back by an environment variable, $NAME in the "
             "command or LLMBENCH_URL for the URL.\n";
    return s;
}

}  // namespace llmbench_program
