// compare() and curve(), from a scenario to the result
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/bodies/result_data.hpp"
#include "core/planning/load_search.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/checks.hpp"
#include "core/metric/table.hpp"
#include "core/reports/console.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/text.hpp"
#include "core/planning/plan.hpp"
#include "effects/gates/doctest_host.hpp"
#include "effects/gates/execution.hpp"
#include "effects/gates/run_mode.hpp"
#include "effects/gates/session.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/known_secrets.hpp"
#include "effects/system/report_directory.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "extensions/compare/api.hpp"
#include "extensions/compare/core/checks.hpp"
#include "extensions/compare/core/reports.hpp"
#include "extensions/compare/core/settings.hpp"
#include "extensions/compare/core/text.hpp"
#include "extensions/compare/settings_run.hpp"

#include <cstddef>  // size_t
#include <list>
#include <memory>  // shared_ptr
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Shared by all copies of a result; never changes.
struct comparison_data {
    vector<std::string> names{};
    vector<std::shared_ptr<const result_data>> settings{};
};

/// Throws std::invalid_argument for an unknown setting.
inline std::size_t place_of_setting(const vector<std::string>& names,
                                    const std::string& name) {
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == name) return i;
    throw std::invalid_argument("there is no setting \"" + printable(name) + "\" in the result" +
                                (names.empty() ? ", which is empty"
                                               : ": it has " + enumerated(names)));
}

inline compared_statistic compared_by(const statistic_data& what, const comparison_data& h) {
    vector<measured_setting> all;
    std::list<analysis> found;
    for (std::size_t i = 0; i < h.names.size(); ++i) {
        const result_data& g = *h.settings[i];
        found.emplace_back();
        found.back().on = validity_checks_of(g.seen);
        all.push_back({h.names[i], g.seen, g.judged_by, found.back(), g.refusal});
    }
    return compared_by(what, all, settings_as_reported(all, {}));
}

struct comparison_access {
    static comparison_result make(comparison_data&& h, const list<result>& results,
                                  const std::string& line, const std::string& with_reasons) {
        comparison_result r;
        for (const std::string& name : h.names) r.names_.push_back(name);
        r.results_ = results;
        r.data_ = box::make(std::move(h));
        r.line_ = line;
        r.explained_ = with_reasons;
        return r;
    }
};
struct curve_access {
    static void add_load(curve_result& c, double load, const result& r) {
        c.loads_.push_back(load);
        c.results_.push_back(r);
    }
    static void end_curve(curve_result& c, const capacity_ends& ends, const std::string& line) {
        c.low_ = ends.low;
        c.high_ = ends.high;
        c.line_ = line;
    }
};

/// The section of the program's reports, which is added when it is first asked for.
inline comparisons_and_curves& section_of(program_reports& reports) {
    comparisons_and_curves& own = comparisons_and_curves::of_this_program();
    if (std::find(reports.beside.begin(), reports.beside.end(), &own) == reports.beside.end())
        reports.beside.push_back(&own);
    return own;
}

inline curve_result measured_curve(const scenario& s, const list<offered_load>& loads,
                                   const char* file, int line) {
    try {
        check_curve(s, loads);
    } catch (const std::invalid_argument&) {
        curve_result c;
        // Represents all loads, and says why there is no curve.
        const gate_reader refused = [&] {
            check_curve(s, loads);
            return measured_gate();
        };
        curve_access::add_load(c, 0, executed(gate_execution(s, file, line, "curve", refused)));
        return c;
    }
    session& all = session::of_this_program();
    curve_report r{identity_of(s, file, line, "curve").name,
                   file,
                   line,
                   loads[0].in_users ? metric_id::capacity_in_users : metric_id::capacity_in_rate,
                   {}};
    curve_result c;
    const auto ended = [&] {
        if (r.loads.empty()) return;
        curve_access::end_curve(c, ends_of(r), curve_line(r));
        say(all.with_reports([&](program_reports& reports) {
            section_of(reports).curves.push_back(r);
            return curve_text(r, reports.gates);
        }));
    };
    try {
        for (const offered_load& load : loads) {
            scenario at = s;
            at.name = r.name + " / " + value_text(r.unit, load.value);
            at.arrivals = arrivals_at(s.arrivals.data(), load);
            const result one = executed(gate_execution(at, file, line, "curve"));
            r.loads.push_back(judged_load_of(load.value, str(one.name()), one.verdicts()));
            curve_access::add_load(c, load.value, one);
            // An unsound scenario is so at every load.
            if (result_access::gate_of(one)->outcome == gate_outcome::refused) break;
        }
    } catch (...) {
        ended();
        throw;
    }
    ended();
    return c;
}

inline std::unique_ptr<execution_environment> new_environment_for(const list<setting>& settings,
                                            const scenario& of_each) {
    const extension* const by = extension_of(settings[0].target);
    const bool is_one = std::all_of(settings.begin(), settings.end(), [&](const setting& s) {
        return extension_of(s.target) == by;
    });
    return is_one && !has_commands(of_each.beside) ? new_environment_of(settings[0].target)
                                                   : nullptr;
}

/// One comparison, from its scenario to its result and its reports. Each setting is a gate "NAME /
/// SETTING"; until they are known, one gate represents all.
class comparison_execution : public execution {
public:
    comparison_execution(const scenario& s, const list<setting>& settings, const char* file,
                         int line)
        : execution(s, file, line, "compare", scenario_use::measure),
          of_each_(scenario_of_a_setting(s)),
          settings_(settings) {}
    /// Throws if nothing could be measured; ended_by() then makes the result.
    comparison_result run() {
        vector<std::string> secrets;
        for (const setting& s : settings_) add_secrets_of(secrets, s.target);
        known_secrets::of_this_program().add(secrets);
        begin(files_of(scenario_));
        of_each_ = scenario_of_a_setting(scenario_);
        check_comparison(of_each_, settings_);
        if (asked_.calibrate > 0)
            return ended_by(gate_outcome::skipped, "a calibration run compares no settings");
        if (asked_.write_baseline)
            return ended_by(gate_outcome::skipped,
                            "a run that writes baselines compares no settings");
        if (rehearses())
            for (const setting& s : settings_)
                models_.push_back(the_rehearsals().rehearsal_of(
                    asked_, who_.name + " / " + str(s.name), of_each_));
        enter(rehearses() ? new_environment_for(*models_[0])
                          : new_environment_for(settings_, of_each_));
        // No decision before the last round.
        const plan whole = plan_of(of_each_, who_, asked_.seed,
                                   {scenario_use::measure, {}, 0},
                                   api_of(settings_[0].target, asked_.candidate));
        for (const setting& s : settings_)
            if (api_of(s.target, asked_.candidate).generates != whole.sent->scores.empty())
                refuse({"compare: a setting's API generates tokens and another's does not, which "
                        "have nothing in common to be compared on"});
        run_mode mode = mode_of(of_each_.baseline, who_.name, asked_);
        vector<setting_under_test> under_test = parts_of(whole);
        await_start([&](double within_s, const std::string& ready) {
            for (setting_under_test& s : under_test) s.server.await_start(within_s, ready);
        });
        mode.begin(budget_began_ns());
        if (stop_asked.load())
            throw no_server("the run was interrupted before this comparison began");
        settings_run(under_test, whole, mode, asked_.candidate.url, shown_progress()).measure();
        return finished(under_test);
    }
    /// Without measurements: every setting has a result that says why.
    comparison_result ended_by(gate_outcome outcome, const std::string& why) {
        gate_report g = unmeasured(who_, of_each_, outcome, why);
        const result r = result_of(g, {}, number_, asked_);
        say(console_text(g, surroundings_of_program().style()));
        for (std::size_t i = 0; i < numbers_.size(); ++i) {
            gate_report each = g;
            each.what.name += " / " + str(settings_[i].name);
            close(numbers_[i], std::move(each), began_ns_);
        }
        if (numbers_.empty()) close(number_, std::move(g), began_ns_);
        list<result> results;
        comparison_data held;
        for (const setting& s : settings_) {
            results.push_back(r);
            held.names.push_back(str(s.name));
            held.settings.push_back(result_access::gate_of(r));
        }
        const std::string line = to_string(outcome) + (": " + why);
        return comparison_access::make(std::move(held), results, line, line);
    }
private:
    any_target stand_in(std::size_t setting) const {
        return models_.empty() ? any_target() : models_[setting]->stand_in(setting);
    }
    /// Each setting's plan, on the same trace with its own words, and its server.
    vector<setting_under_test> parts_of(const plan& whole) {
        vector<setting_under_test> parts;
        for (const setting& s : settings_) {
            plan p = whole;
            p.name += " / " + str(s.name);
            p.nonce = fresh_nonce(asked_.seed, p.name);
            parts.push_back(
                {.name = str(s.name),
                 .server = live_target(s.target, run_variant::candidate, asked_.candidate,
                                       stand_in(parts.size())),
                 .is_fresh = (s.target.what().get<process>() && !s.target.is_switched()) ||
                             s.target.what().get<extension_value>(),
                 .all = {{.what = std::move(p)}}});
        }
        // The first one takes over the gate that represented all.
        for (std::size_t i = 0; i < parts.size(); ++i) {
            numbers_.push_back(i == 0 ? number_ : all_.open_gate(parts[i].all.what));
            parts[i].number = static_cast<int>(numbers_.back()) + 1;
        }
        return parts;
    }
    gate_report report_on(const setting_under_test& s) const {
        if (s.lost.empty() || !s.all.seen.candidate.empty()) return report_of(s.all, asked_);
        const bool skips = s.is_missing && may_be_skipped();
        return unmeasured(s.all.what, of_each_, skips ? gate_outcome::skipped : s.lost_as, s.lost);
    }
    comparison_result finished(vector<setting_under_test>& parts) {
        const plan p = parts.front().all.what;
        vector<measured_setting> measured;
        for (const setting_under_test& s : parts)
            measured.push_back({s.name, s.all.seen, s.all.judged_by, s.all.found,
                                s.all.seen.candidate.empty() ? s.lost : ""});
        const settings_comparison found = comparison_of_settings(
            measured, p.judged->slos, p.sent->common,
            static_cast<std::size_t>(p.judged->max_repeats));
        const comparison_report report{who_.name, who_.file, who_.line, found};
        comparison_data held;
        list<result> results;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            gate_report g = report_on(parts[i]);
            g.took_s = static_cast<double>(parts[i].took_ns) * 1e-9;
            if (!models_.empty() && g.refusal.empty())
                models_[i]->mark(g, parts[i].all.seen);
            results.push_back(
                result_of(g, std::move(parts[i].all), numbers_[i], asked_));
            held.names.push_back(parts[i].name);
            held.settings.push_back(result_access::gate_of(results.back()));
            if (is_in_test_case_ && g.refusal.empty()) only_note(g, asked_.inconclusive);
            say(console_text(g, surroundings_of_program().style()));
            if (i + 1 == parts.size())
                all_.with_reports([&](program_reports& reports) {
                    section_of(reports).comparisons.push_back(report);
                });
            close(numbers_[i], std::move(g), now_ns() - parts[i].took_ns);
        }
        say(comparison_text(report));
        if (asked_.keeps) say(not_added_text(why_not_added("compare()")));
        if (surroundings_of_program().verbose && all_.records().are_open())
            say(reports_text(report_directory()));
        inform_test_case(held);
        return comparison_access::make(std::move(held), results, comparison_line(found),
                                       comparison_explained(found));
    }
    /// As in run(): a setting that could not be measured fails the test case, a miss does not.
    void inform_test_case(const comparison_data& h) const {
        if (!is_in_test_case_) return;
        for (std::size_t i = 0; i < h.names.size(); ++i) {
            const result_data& g = *h.settings[i];
            if (!g.refusal.empty() && g.outcome != gate_outcome::skipped)
                fail_test_case(h.names[i] + ": " + g.refusal);
        }
    }
    void close(std::size_t number, gate_report&& g, long long began_ns) {
        add_end_notes(g);
        g.took_s = static_cast<double>(now_ns() - began_ns) * 1e-9;
        all_.close_gate(number, std::move(g), false);
    }

    scenario of_each_;
    const list<setting>& settings_;
    vector<std::size_t> numbers_{};  // of the settings' gates
    vector<std::shared_ptr<const rehearsal>> models_{};  // replace the servers
};

/// `of` and `in` say what there is none of.
inline const result& result_at(const list<result>& all, long long place, const char* of,
                               const char* in) {
    if (!(place >= 0 && place < static_cast<long long>(all.size())))
        refuse({printed("there is no %s at %lld in the %s, which has %zu", of, place, in,
                        static_cast<std::size_t>(all.size()))});
    return all[static_cast<size_type>(place)];
}
text best_setting(const box& data, const statistic_data& what) {
    const auto* h = data.get<comparison_data>();
    if (!h) return {};
    const auto best = compared_by(what, *h).best();
    return best ? text(h->names[*best]) : text();
}
estimate_t ratio_of_settings(const box& data, const text& of, const text& to,
                             const statistic_data& what) {
    const auto* h = data.get<comparison_data>();
    const vector<std::string> names = h ? h->names : vector<std::string>{};
    const std::size_t a = place_of_setting(names, str(of)), b = place_of_setting(names, str(to));
    if (a == b) return {1, 1, 1};
    return compared_by(what, *h).ratio(a, b).value_or(
        estimate_t{not_a_number, not_a_number, not_a_number});
}
/// Two settings by name. Throws std::invalid_argument if they are one.
inline std::pair<std::size_t, std::size_t> two_settings(const comparison_data& h, const text& of,
                                                        const text& to) {
    const std::size_t a = place_of_setting(h.names, str(of));
    const std::size_t b = place_of_setting(h.names, str(to));
    if (a == b) refuse({"difference() of setting \"", printable(str(of)), "\" and itself"});
    return {a, b};
}
difference_of_settings difference_between(const box& data, const text& of, const text& to,
                                          const statistic_data& what) {
    const auto* held = data.get<comparison_data>();
    const comparison_data h = held ? *held : comparison_data{};
    const auto [a, b] = two_settings(h, of, to);
    const result_data &mine = *h.settings[a], &other = *h.settings[b];
    measured_difference d;
    if (mine.refusal.empty() && other.refusal.empty())
        d = difference_in(as_pairs(mine.seen, other.seen), mine.judged_by, what, h.names.size());
    const auto shown = [&](double x) {
        return printed("%s", x > 0 ? "+" : "") + value_text(what.metric, x);
    };
    return {d.estimate, d.least,
            printable(str(what.name)) + ": " + shown(d.estimate.value) + " [" +
                shown(d.estimate.low) + ", " + shown(d.estimate.high) + "]"};
}
result settings_as_pairs(const box& data, const text& of, const text& to) {
    const auto* h = data.get<comparison_data>();
    if (!h) return {};
    const auto [a, b] = two_settings(*h, of, to);
    const result_data& other = *h->settings[b];
    auto g = new_shared<result_data>(*h->settings[a]);
    g->seen = as_pairs(g->seen, other.seen);
    g->what = with_judging(g->what, [](planned_judging& j) { j.has_baseline = true; });
    if (g->refusal.empty() && !other.refusal.empty()) {
        g->refusal = h->names[b] + ": " + other.refusal;
        g->outcome = other.outcome;
    }
    return result_access::make(std::move(g), {}, {});
}
}  // namespace detail

const result& comparison_result::operator[](const types::text& name) const {
    const detail::vector<std::string> names(names_.begin(), names_.end());
    return results_[detail::place_of_setting(names, detail::str(name))];
}
const result& comparison_result::at(types::whole place) const {
    return detail::result_at(results_, place, "setting", "result");
}

const result& curve_result::operator[](offered_load load) const {
    detail::vector<std::string> all;
    for (detail::size_type i = 0; i < loads_.size(); ++i) {
        if (loads_[i] == load.value) return results_[i];
        all.push_back(detail::printed("%.9g", loads_[i]));
    }
    detail::refuse({detail::printed("there is no load of %.9g in the curve", load.value),
                    all.empty() ? ", which is empty" : ": it has " + detail::enumerated(all)});
}
const result& curve_result::at(types::whole place) const {
    return detail::result_at(results_, place, "load", "curve");
}

comparison_result include_llmbench_compare_hpp_where_LLMBENCH_MAIN_is::compared(
    const scenario& s, const types::list<setting>& settings, const char* file, int line) {
    return detail::executed(detail::comparison_execution(s, settings, file, line));
}
curve_result include_llmbench_compare_hpp_where_LLMBENCH_MAIN_is::loads_of(
    const scenario& s, const types::list<offered_load>& loads, const char* file, int line) {
    return detail::measured_curve(s, loads, file, line);
}

}  // inline namespace v1
}  // namespace llmbench
