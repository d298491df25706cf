// a file of gates, for `llmbench run --config` and `llmbench explain`
// Each table is a gate; its keys are the options of `llmbench run` without dashes. Keys above the
// first table hold for every gate that does not state its own.
#pragma once

#include "api/scenario.hpp"
#include "api/side_task.hpp"
#include "api/slo.hpp"
#include "api/workload.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "effects/gates/execution.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/files.hpp"
#include "effects/system/settings.hpp"
#include "effects/targets/live_target.hpp"
#include "extensions/faults/api.hpp"
#include "extensions/work/api.hpp"
#include "program/arguments.hpp"
#include "program/config/toml.hpp"
#include "program/other_words.hpp"
#include "program/run_options.hpp"
#include "program/run_rows.hpp"
#include "program/slo_text.hpp"
#include "program/values.hpp"

#include <algorithm>  // find_if
#include <cstddef>
#include <initializer_list>
#include <set>
#include <stdexcept>  // invalid_argument
#include <string>
#include <string_view>

namespace llmbench_program {

struct gate_in_file {
    std::string name{};
    int line = 0;
    scenario what{};
};
struct gates_in_file {
    const char* path = "";   // lasts as long as the program, as objectives point to it
    given_options common{};  // of the program, such as --report
    vector<gate_in_file> gates{};
};

/// Options of which one is a choice: where a gate makes another one than the keys for all gates,
/// those and what belongs to them do not hold.
struct choice_of_options {
    vector<const char*> one_of, with;
};
inline const vector<choice_of_options>& choices_of_options() {
    static const vector<choice_of_options> all = {
        {{"--url", "--command"},
         {"--header", "--key-variable", "--ca-file", "--cert", "--key", "--insecure", "--ready",
          "--env", "--cold", "--restart", "--directory", "--path", "--metrics-url", "--telemetry-url",
          "--ready-within"}},
        {{"--users", "--rate", "--arrivals"},
         {"--think", "--ramp", "--max-in-flight", "--speed", "--time-unit", "--hold",
          "--release"}},
        {{"--dataset", "--prompt", "--questions", "--sessions", "part"},
         {"--prompt-tokens", "--output-tokens", "--own-length", "--prefix-tokens",
          "--prefix-groups", "--prefix-share", "--format", "--unsalted", "--turns", "--grade",
          "--before", "--after", "--max-wait", "--max-context", "--session-model", "--max-items", "--turn-pause",
          "--own-prefix", "--subagents", "--helpers", "--helper-turns", "--images",
          "--min-prompt-tokens", "--max-prompt-tokens", "--min-output-tokens",
          "--max-output-tokens"}},
        {{"--baseline-url", "--baseline-file", "--baseline-history"},
         {"--day-to-day", "--at-once", "--baseline-model"}}};
    return all;
}
inline given_options merged(const given_options& common, const given_options& own) {
    given_options all = common;
    for (const choice_of_options& c : choices_of_options()) {
        bool is_other = false;
        for (const char* option : c.one_of) is_other |= own.has(option) && !common.has(option);
        if (!is_other) continue;
        for (const auto* names : {&c.one_of, &c.with})
            for (const char* name : *names) all.texts.erase(name);
    }
    for (const std::string& flag : own.off) all.texts.erase(flag);
    for (const auto& [name, texts] : own.texts)
        if (!texts.empty()) all.texts[name] = texts;
    return all;
}

/// A path for as long as the program runs: places of objectives point to it.
inline const std::string& kept_path(const std::string& path) {
    static std::set<std::string>& paths = *new std::set<std::string>;
    return *paths.insert(path).first;
}

class gates_reader {
public:
    explicit gates_reader(const std::string& path) : path_(kept_path(path)) {}

    /// `called`: options of the command line, which hold for every gate. `named`: the gates to
    /// read, none: all; the others may lack a file or a variable. Throws std::invalid_argument
    /// with file, line, table and key.
    gates_in_file read(const given_options& called, const vector<std::string>& named = {}) {
        const toml_value all = toml_reader(file_content(path_, "the file of gates"), path_).read();
        gates_in_file f{path_.c_str()};
        given_options common;
        for (std::size_t i = 0; i < all.keys.size(); ++i)
            if (!is_table(all.items[i]))
                take_key(common, all.keys[i], all.items[i], {"", "a gate", all.items[i].line});
        check_called(called);
        f.common = merged(common, called);
        if (called.has("--report")) check_report_directory(called["--report"]);
        else if (common.has("--report"))
            of_all([&] { check_report_directory(common["--report"]); });
        std::string refusals;
        for (const std::size_t i : tables_of(all, named)) try {
                f.gates.push_back(gate_of(all.keys[i], all.items[i], f.common, called));
            } catch (const std::invalid_argument& e) {
                refusals += (refusals.empty() ? "" : "\nllmbench: ") + std::string(e.what());
            }
        if (!refusals.empty()) refuse({refusals});
        return f;
    }
    /// Calls `read` on options that the file has for all gates, whose refusals name the file.
    template <class Read> void of_all(const Read& read) const {
        try {
            read();
        } catch (const std::invalid_argument& e) {
            refuse({path_, ": ", without_dashes(e.what())});
        }
    }

private:
    /// A table, for refusals: "[chat]", "a gate".
    struct table_place {
        std::string header, what;
        int line;
    };

    static bool is_table(const toml_value& v) {
        return v.is == toml_value::kind::table || v.is_of_headers;
    }
    /// The places of these gates' tables in a file, without names those of all gates.
    vector<std::size_t> tables_of(const toml_value& all, const vector<std::string>& named) const {
        vector<std::size_t> tables, chosen;
        vector<std::string> names;
        for (std::size_t i = 0; i < all.keys.size(); ++i) {
            if (!is_table(all.items[i])) continue;
            tables.push_back(i);
            names.push_back(printable(all.keys[i], 80));
        }
        if (tables.empty())
            refuse({path_,
                    " has no gate: a gate is a table, as [chat], with keys such as rate = 8 "
                    "and slo = [\"p90(ttft) <= 500 ms\"]"});
        for (const std::string& name : named) {
            const auto found = std::find_if(tables.begin(), tables.end(),
                                            [&](std::size_t i) { return all.keys[i] == name; });
            if (found == tables.end())
                given{"--gate", name}.refuse_as("a gate of " + path_ + ": " + enumerated(names));
            chosen.push_back(*found);
        }
        return named.empty() ? tables : chosen;
    }
    [[noreturn]] void refuse_at(const table_place& at, int line, const std::string& why) const {
        refuse({printed("%s:%d: ", printable(path_, 200).c_str(), line > 0 ? line : at.line),
                at.header, at.header.empty() ? "" : " ", why});
    }
    static const option_row* row_of(const std::string& key) {
        static const vector<option_group>& groups = *new vector<option_group>(run_groups());
        for (const option_group& g : groups)
            for (const option_row& row : g.options)
                if (("--" + key) == row.name && key != "name") return &row;
        return nullptr;
    }
    static bool is_of_program(std::string_view key) {
        return key == "report" || key == "inconclusive" || key == "time-budget";
    }
    /// A sentence on options as one on keys: "think needs users".
    static std::string without_dashes(const std::string& sentence) {
        std::string out;
        for (std::size_t i = 0; i < sentence.size(); ++i) {
            std::size_t end = i + 2;
            const bool begins = sentence.compare(i, 2, "--") == 0 &&
                                (i == 0 || sentence[i - 1] == ' ' || sentence[i - 1] == '`');
            while (begins && end < sentence.size() &&
                   (sentence[end] == '-' || is_letter_or_digit(sentence[end])))
                ++end;
            if (begins && row_of(sentence.substr(i + 2, end - i - 2))) ++i;
            else out += sentence[i];
        }
        return out;
    }
    /// A value as a refusal repeats it.
    static std::string shown(const toml_value& v) {
        switch (v.is) {
            case toml_value::kind::text: return "\"" + printable(v.text, 80) + "\"";
            case toml_value::kind::list: return v.is_of_headers ? "a list of tables" : "a list";
            case toml_value::kind::table: return "a table";
            default: return v.text;
        }
    }
    static std::string allowed_of(const option_row& row) {
        const std::string_view kind = row.kind;
        if (row.values == takes::nothing) return "true or false";
        const std::string text = kind == "TIME" ? "a text such as \"30s\""
                                 : kind == "P%" ? "a text such as \"5%\""
                                                : "a text in quotes";
        if (row.values == takes::each) return text + ", or a list of them";
        return takes_number(row) ? "a number, or " + text : text;
    }
    static bool takes_number(const option_row& row) {
        return is_one_of(row.kind, {"N", "R", "X", "USD", "LENGTHS", "AMOUNT"});
    }

    void take_key(given_options& to, const std::string& key, const toml_value& v,
                  const table_place& at) const {
        const option_row* const row = row_of(key);
        if (!row) refuse_unknown(key, v.line, at);
        if (is_of_program(key) && !at.header.empty())
            refuse_at(at, v.line, key + " is of all gates: it belongs above the first table");
        vector<std::string>& texts = to.texts["--" + key];
        const auto refuse_type = [&](const toml_value& x) {
            refuse_at(at, x.line, key + " is " + shown(x) + ": it must be " + allowed_of(*row));
        };
        if (row->values == takes::nothing) {
            if (v.is != toml_value::kind::boolean) refuse_type(v);
            if (v.text == "true") texts = {""};
            else to.off.insert("--" + key);
            return;
        }
        const auto take = [&](const toml_value& x) {
            const bool fits = x.is == toml_value::kind::text ||
                              (x.is == toml_value::kind::number && takes_number(*row));
            if (!fits) refuse_type(x);
            if (x.text.empty())
                refuse_at(at, x.line,
                          key + " is empty: leave the key out, or give " + allowed_of(*row));
            if (key == "slo") check_slo(x, at);
            texts.push_back(x.text);
        };
        if (v.is == toml_value::kind::list && row->values == takes::each && !v.is_of_headers) {
            if (v.items.empty()) refuse_at(at, v.line, key + " is an empty list");
            for (const toml_value& x : v.items) take(x);
        } else take(v);
    }
    void check_slo(const toml_value& v, const table_place& at) const {
        try {
            parse_slo(v.text);
        } catch (const std::invalid_argument& e) {
            refuse_at(at, v.line, "slo: " + std::string(e.what()));
        }
    }
    [[noreturn]] void refuse_unknown(const std::string& key, int line,
                                     const table_place& at) const {
        const std::string name = printable(key, 80);
        if (key == "name" && at.what == "a gate")
            refuse_at(at, line, "name is no key: the name of a gate is that of its table");
        if (at.what != "a gate" && row_of(key))
            refuse_at(at, line,
                      name + " is no key of " + at.what +
                          ": it is one of a gate, and belongs "
                          "above " +
                          at.header);
        vector<std::string> keys{"part", "task", "prepare"};
        for (const option_group& g : run_groups())
            for (const option_row& row : g.options)
                keys.push_back(std::string(row.name).substr(2));
        const std::string meant = option_meant(key, keys);
        refuse_at(at, line,
                  name + " is no key of " + at.what +
                      (meant.empty() ? "" : ", is " + meant + " meant?") +
                      (at.what == "a gate"
                           ? ": they are the options that `llmbench run --help` lists, without "
                             "dashes, and part, task, prepare"
                           : ""));
    }
    void check_called(const given_options& called) const {
        for (const char* option : {"--slo", "--name"})
            if (called.has(option))
                refuse({option, " is of one gate: with --config, write it into ", path_});
    }

    gate_in_file gate_of(const std::string& name, const toml_value& table,
                         const given_options& common, const given_options& called) const {
        const table_place at{"[" + printable(name, 80) + "]", "a gate", table.line};
        if (table.is_of_headers)
            refuse_at({"", "", table.line}, 0,
                      "[" + at.header + "] is a list of tables: a gate is " + at.header +
                          ", and each has a name of its own");
        if (trimmed(name).empty())
            refuse_at(at, 0, "has no name: it is the gate's name in reports");
        given_options own;
        for (std::size_t i = 0; i < table.keys.size(); ++i) {
            const std::string& key = table.keys[i];
            if (key == "part") own.texts["part"] = {""};
            else if (key != "task" && key != "prepare") take_key(own, key, table.items[i], at);
        }
        const auto refuse_both = [&](const std::string& here, const std::string& called_as) {
            refuse_at(at, line_of(table, here),
                      here.substr(2) + " is here, and " + called_as +
                          " on the command line: one of the two must go");
        };
        for (const auto& [option, texts] : own.texts)
            if ((!texts.empty() || own.off.contains(option)) && called.has(option.c_str()))
                refuse_both(option, option);
        for (const choice_of_options& c : choices_of_options())
            for (const char* here : c.one_of)
                for (const char* other : c.one_of)
                    if (own.has(here) && called.has(other)) refuse_both(here, other);
        given_options all = merged(common, own);
        all.texts["--name"] = {name};
        const std::string example =
            "a gate without an objective shows nothing; write "
            "slo = [\"p90(ttft) <= 500 ms\"]";
        if (!all.has("--slo")) refuse_at(at, 0, "has no slo: " + example);
        return {name, table.line, placed(table, at, [&] { return scenario_in(all, table, at); })};
    }
    /// The line of an option's key, 0 if the table has not got it.
    static int line_of(const toml_value& table, const std::string& option) {
        const toml_value* const v = table.find(option.substr(option.rfind("--", 0) == 0 ? 2 : 0));
        return v ? v->line : 0;
    }
    /// Calls `read`, whose refusals of options become those of keys.
    template <class Read>
    auto placed(const toml_value& table, const table_place& at, const Read& read) const
        -> decltype(read()) {
        try {
            return read();
        } catch (const std::invalid_argument& e) {
            const std::string why = e.what();
            if (why.rfind(printable(path_, 200) + ":", 0) == 0) throw;
            refuse_at(at, line_of(table, why.substr(0, why.find_first_of(" :"))),
                      without_dashes(why));
        }
    }

    scenario scenario_in(const given_options& all, const toml_value& table,
                         const table_place& at) const {
        given_options o = all;
        const toml_value* const parts = table.find("part");
        if (parts)
            for (const char* option : choices_of_options()[2].with)
                if (o.has(option))
                    refuse({option, " is of one workload: write it into each part of the mix"});
        o.texts.erase("part");
        scenario s = scenario_of(o);
        if (server_is_missing(o)) refuse({"no server is named: url, command, or LLMBENCH_URL"});
        if (parts) s.workload = mix_of(*parts, o, at);
        if (const toml_value* tasks = table.find("task")) {
            if (!tasks->is_of_headers)
                refuse_at(
                    at, tasks->line,
                    "task is " + shown(*tasks) + ": side tasks are [[" + inner(at) + ".task]]");
            for (const toml_value& t : tasks->items)
                s.beside.push_back(task_of(t, {"[[" + inner(at) + ".task]]", "a task", t.line}));
        }
        if (const toml_value* steps = table.find("prepare"))
            s.prepare = steps_of(*steps, "prepare", at);
        s.slos = slos_with_lines(s.slos, table);
        // A gate that is no sound one is refused before another one is sent.
        check_gate(s, use_of(s), asked_);
        return s;
    }
    /// Reports point at the line of an objective.
    slo_list slos_with_lines(const slo_list& all, const toml_value& table) const {
        const toml_value* const own = table.find("slo");
        slo_list slos;
        std::size_t i = 0;
        for (slo x : all) {
            const bool is_list = own && own->is == toml_value::kind::list;
            const toml_value* const v = is_list ? &own->items[i++] : own;
            x.at = {path_.c_str(), v ? v->line : table.line};
            slos.push_back(x);
        }
        return slos;
    }
    static std::string inner(const table_place& at) {
        return at.header.substr(1, at.header.size() - 2);
    }

    static bool is_of_requests(std::string_view key) {
        return detail::any_of(rows_of_requests(), [&](const option_row& row) {
            return std::string_view(row.name).substr(2) == key;
        });
    }
    mix_of_parts mix_of(const toml_value& list, const given_options& of_gate,
                        const table_place& gate) const {
        const std::string header = "[[" + inner(gate) + ".part]]";
        if (!list.is_of_headers)
            refuse_at(gate, list.line,
                      "part is " + shown(list) + ": the parts of a mix are " + header);
        types::list<part> all;
        for (const toml_value& t : list.items) {
            const table_place at{header, "a part", t.line};
            given_options own;
            part p;
            bool has_options = false;
            for (std::size_t i = 0; i < t.keys.size(); ++i) {
                const std::string& key = t.keys[i];
                const toml_value& v = t.items[i];
                if (key == "name") p.name = text_of(v, "name", at);
                else if (key == "model") p.model = text_of(v, "model", at);
                else if (key == "weight")
                    p.weight = placed(t, at, [&] {
                        return whole_of({"weight", number_text(v, "weight", at)}, 1, 1000);
                    });
                else if (!is_of_requests(key) && !is_of_workload(key))
                    refuse_unknown(key, v.line, at);
                else take_key(own, key, v, at);
                has_options |= is_of_requests(key);
            }
            if (p.name.empty()) refuse_at(at, 0, "has no name, which is the label of its requests");
            p.workload = placed(t, at, [&] { return workload_of(own); });
            if (has_options)
                p.options = placed(t, at, [&] { return options_of(merged(of_gate, own)); });
            all.push_back(p);
        }
        return mix(all);
    }
    static bool is_of_workload(const std::string& key) {
        const choice_of_options& c = choices_of_options()[2];
        const auto is_key = [&](const char* option) { return "--" + key == option; };
        return detail::any_of(c.one_of, is_key) || detail::any_of(c.with, is_key);
    }
    std::string text_of(const toml_value& v, const char* key, const table_place& at) const {
        if (v.is != toml_value::kind::text || v.text.empty())
            refuse_at(at, v.line,
                      std::string(key) + " is " + shown(v) + ": it must be a text in quotes");
        return v.text;
    }
    std::string number_text(const toml_value& v, const char* key, const table_place& at) const {
        if (v.is != toml_value::kind::number)
            refuse_at(at, v.line, std::string(key) + " is " + shown(v) + ": it must be a number");
        return v.text;
    }

    side_task task_of(const toml_value& t, const table_place& at) const {
        side_task task;
        for (std::size_t i = 0; i < t.keys.size(); ++i) {
            const std::string& key = t.keys[i];
            const toml_value& v = t.items[i];
            const auto time = [&](const char* name) {
                return placed(t, at, [&] { return time_of({name, text_of(v, name, at)}); });
            };
            if (key == "name") task.name = text_of(v, "name", at);
            else if (key == "every") task.every = time("every");
            else if (key == "first") task.first = time("first");
            else if (key == "excuses") task.excuses = time("excuses");
            else if (key == "steps") task.steps = steps_of(v, "steps", at);
            else if (key == "may-fail" && v.is == toml_value::kind::boolean)
                task.may_fail = v.text == "true";
            else if (key == "may-fail")
                refuse_at(at, v.line, "may-fail is " + shown(v) + ": it must be true or false");
            else refuse_unknown(key, v.line, at);
        }
        if (task.steps.empty()) refuse_at(at, 0, "has no steps");
        return task;
    }
    /// [{post = "/v1/load", body = "{}"}, {command = "./restart"}]
    vector<task_step> steps_of(const toml_value& list, const char* key,
                                    const table_place& at) const {
        static constexpr const char* allowed =
            ": it must be a list such as [{post = \"/reset_prefix_cache\"}, {command = "
            "\"./reload\"}]; "
            "a post may have a body, and prepare may end with {prime = true}";
        vector<task_step> all;
        if (list.is != toml_value::kind::list || list.items.empty())
            refuse_at(at, list.line, key + (" is " + shown(list)) + allowed);
        for (const toml_value& v : list.items) {
            const toml_value *post_to = v.find("post"), *line = v.find("command"),
                             *body = v.find("body"), *primes = v.find("prime");
            const bool is_prime = primes && primes->is == toml_value::kind::boolean &&
                                  primes->text == "true" && std::string_view(key) == "prepare";
            const std::size_t known =
                (post_to || line || is_prime ? 1u : 0u) + (body && post_to ? 1u : 0u);
            if (v.is != toml_value::kind::table || known == 0 || v.keys.size() != known ||
                (post_to && line))
                refuse_at(at, v.line, std::string(key) + " has a step that is none" + allowed);
            if (is_prime) all.push_back(prime());
            else if (line) all.push_back(command(text_of(*line, "command", at)));
            else if (body)
                all.push_back(post(text_of(*post_to, "post", at), text_of(*body, "body", at)));
            else all.push_back(post(text_of(*post_to, "post", at)));
        }
        return all;
    }

    const std::string& path_;
    const settings asked_ = settings_of(environment);
};

}  // namespace llmbench_program
