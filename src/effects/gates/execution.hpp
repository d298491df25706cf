// one gate from its scenario to its result
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/random.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/outcome.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/check_slo.hpp"
#include "core/planning/planning.hpp"
#include "core/planning/preparation.hpp"
#include "core/reports/console.hpp"
#include "core/reports/gate_report.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/known_secrets.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/report_directory.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/sharing.hpp"
#include "effects/system/signals.hpp"
#include "effects/system/threads.hpp"
#include "effects/system/workload_files.hpp"
#include "effects/targets/credentials.hpp"
#include "effects/targets/extension_server.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/doctest_host.hpp"
#include "effects/gates/gate_result.hpp"
#include "effects/gates/gate_run.hpp"
#include "effects/gates/run_mode.hpp"
#include "effects/gates/session.hpp"

#include <algorithm>  // max
#include <cstdint>  // uint64_t
#include <functional>  // how measurements are read
#include <memory>  // shared_ptr, unique_ptr
#include <optional>
#include <stdexcept>  // invalid_argument, runtime_error, exception
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Null if the target has no extension.
inline const extension* extension_of(const any_target& t) {
    const auto* e = t.what().get<extension_value>();
    return e ? e->by : nullptr;
}
inline std::unique_ptr<execution_environment> new_environment_of(const any_target& t) {
    const extension* const by = extension_of(t);
    return by && by->new_environment ? by->new_environment() : nullptr;
}
/// Returns a virtual environment if all servers belong to an extension that has one, else null.
/// Commands run on the real machine and cannot reach a simulated server.
inline std::unique_ptr<execution_environment> new_environment_for(const scenario& s) {
    const bool is_profiled = s.on_fail && !(*s.on_fail).start.empty();
    const bool is_one = !s.baseline.is_live() || s.baseline.is_same_server() ||
                        s.baseline.is_asked_otherwise() ||
                        extension_of(s.baseline.live()) == extension_of(s.target);
    return is_one && !is_profiled && !has_commands(s.beside) ? new_environment_of(s.target)
                                                             : nullptr;
}
inline std::unique_ptr<execution_environment> new_environment_for(const rehearsal& r) {
    return new_environment_of(r.stand_in(0));
}

/// Differs for every execution of a gate, in this program and in others. In virtual time it is the
/// same for every run of the program, because its servers see only this program's gates.
inline std::uint64_t fresh_nonce(std::uint64_t seed, std::string_view gate) {
    if (current_environment) return mixed(seed + mixed(hash_of(gate).value()));
    return mixed(entropy() ^ mixed(static_cast<std::uint64_t>(now_ns()) + ++gates_executed));
}

inline plan plan_of(const scenario& s, const gate_identity& who, std::uint64_t seed,
                    const plan_use& how, const api_traits& api) {
    plan p = planned(s, seed, read_workload_files(s, seed), how, api);
    static_cast<gate_identity&>(p) = who;
    p = with_traffic(std::move(p), [](planned_traffic& t) { t.hash = trace_hash(t); });
    p.nonce = fresh_nonce(seed, p.name);
    return p;
}

/// Refuses an address of a server that no request can be sent to. A rehearsal needs none.
inline void check_address(const any_target& t, run_variant variant,
                          const server_variables& variables) {
    const auto* const e = t.what().get<endpoint>();
    const bool is_named = (e && !e->url.empty()) || t.what().get<process>();
    if (is_named || !variables.url.empty()) live_target(t, variant, variables).check();
}
/// Refuses a gate that no load can be sent for, as far as its plan, its files and the addresses of
/// its servers show that. Asks nobody and starts nothing, so that a program with several gates can
/// check all of them before it sends the first load.
inline void check_gate(const scenario& s, scenario_use use, const settings& asked) {
    const api_traits& api = api_of(s.target, asked.candidate);
    const plan p = plan_of(s, {.name = str(s.name)}, 1, use, api);
    check_images(p, api);
    check_address(s.target, run_variant::candidate, asked.candidate);
    const any_baseline& b = s.baseline;
    if (b.is_live() && !b.is_same_server() && !b.is_asked_otherwise())
        check_address(b.live(), run_variant::baseline, asked.baseline);
    const bool is_read = b.is_stored() && !asked.write_baseline;
    if (is_read && asked.rehearse.empty()) stored_gate_of(p);  // a model has its own
}

/// The name and the place of a gate that begins.
inline gate_identity identity_of(const scenario& s, const char* file, int line, const char* verb) {
    if (is_telling_users)
        throw std::logic_error("a gate cannot begin while a function of on_report runs");
    return session::of_this_program().host().gate_at(str(s.name), file, line, verb);
}

/// Parts of every execution: the gate's entry among those of the program, its turn among other
/// threads' gates, and the environment's settings.
class execution : not_copied {
public:
    bool may_be_skipped() const { return asked_.skip_without_server && !stop_asked.load(); }

    /// Returns a result without measurements.
    result ended_by(gate_outcome outcome, const std::string& why) {
        gate_report g = unmeasured(who_, scenario_, outcome, why);
        if (model_) g.rehearsal.model = model_->model();
        if (asked_.keeps && asserts()) g.not_kept = why;
        return closed(std::move(g), {});
    }
    /// The test case gets a failed assertion with this text.
    void fail_test_case(const std::string& why) const {
        refuse_in_test(who_.file.c_str(), who_.line, verb_, why);
    }

protected:
    execution(const scenario& s, const char* file, int line, const char* verb, scenario_use use)
        : scenario_(s), verb_(verb), use_(use), who_(identity_of(s, file, line, verb)) {}
    ~execution() {
        if (environment_) all_.spend_virtual_time(now_ns() - began_ns_);
    }
    /// Waits for its turn, then reads the settings. `read` is called before the reports of earlier
    /// programs are removed, if none of its `files` would be.
    void begin(const vector<std::string>& files, const std::function<void()>& read = {}) {
        turn_.emplace();
        all_.give_turn(number_);
        signals_.emplace();
        began_ns_ = now_ns();
        const long long today = utc_day();
        for (const slo& s : scenario_.slos)  // exceptions that ended block again
            if (std::string end = end_text(s, today); !end.empty()) ends_.push_back(end);
        scenario_.slos = on_day(scenario_.slos, today);
        if (const std::string by = rehearsal_asked(environment); !by.empty()) {
            the_rehearsals();  // refuses where there is none
            check_stays(by);
        }
        credentials told;
        told.keep_secrets_of(whole_environment());
        add_secrets_of(told.secrets, scenario_);
        known_secrets::of_this_program().add(told.secrets);
        for (const std::string& file : files) all_.records().check_apart(file);
        try {
            if (read) read();
        } catch (...) {
            all_.records().open();
            throw;
        }
        all_.records().open();
        refuse_misspelt(whole_environment());
        asked_ = settings_of(environment);
        if (!asked_.rehearse.empty()) all_.note_rehearsal();
    }
    void add_end_notes(gate_report& g) const {
        g.notes.insert(g.notes.end(), ends_.begin(), ends_.end());
    }
    /// Closes the gate and reports it; returns its result.
    result closed(gate_report&& g, measured_gate&& m) {
        const result r = result_of(g, std::move(m), number_, asked_);
        if (!asserts() && is_in_test_case_ && g.refusal.empty())
            only_note(g, asked_.inconclusive);
        add_end_notes(g);
        g.took_s = static_cast<double>(now_ns() - began_ns_) * 1e-9;
        say(console_text(g, surroundings_of_program().style()));
        if (!g.not_kept.empty()) say(not_added_text(g.not_kept));
        if (surroundings_of_program().verbose && all_.records().are_open())
            say(reports_text(report_directory()));
        all_.close_gate(number_, std::move(g), asserts());
        return r;
    }

    /// Whether its verdicts are assertions.
    bool asserts() const { return use_ == scenario_use::gate; }
    bool rehearses() const { return !asked_.rehearse.empty(); }
    /// Enters the environment until the end, unless it is null. The same seed then gives the same
    /// bytes.
    void enter(std::unique_ptr<execution_environment> environment) {
        if (!environment) return;
        environment_ = std::move(environment);
        inside_.emplace(environment_.get());
        began_ns_ = now_ns();
    }
    /// Waits for servers that are starting, by `wait`. That takes nothing of the time budget.
    template <class Wait>
    void await_start(const Wait& wait) const {
        if (current_environment) return;
        const long long from_ns = now_ns();
        wait(asked_.ready_within_s, asked_.ready_path);
        program_began_ns += now_ns() - from_ns;
    }
    /// The start of the time budget. In virtual time the budget is used up only by the virtual time
    /// of all gates of the program.
    long long budget_began_ns() const {
        return current_environment ? began_ns_ - all_.virtual_time_spent() : program_began_ns;
    }

    /// A gate in virtual time shows no progress.
    progress_mode shown_progress() const {
        return current_environment ? progress_mode::off
                                   : surroundings_of_program().shown(asked_.progress);
    }

    session& all_ = session::of_this_program();
    scenario scenario_;
    const char* const verb_;
    const scenario_use use_;
    const bool is_in_test_case_ = inside_test_case();
    const gate_identity who_;
    const std::size_t number_ = all_.open_gate(who_);
    settings asked_{};
    std::shared_ptr<const rehearsal> model_{};  // replaces its server, in a rehearsal
    long long began_ns_ = now_ns();
    vector<std::string> ends_{};  // notes on exceptions, one sentence each

private:
    std::optional<gate_turn> turn_{};  // both last until the reports are written
    std::optional<interrupt_guard> signals_{};
    std::unique_ptr<execution_environment> environment_{};  // null: the machine
    std::optional<inside_environment> inside_{};
};

/// Returns measurements of other programs, with their plan and judging parameters.
using gate_reader = std::function<measured_gate()>;

/// One gate, run or search, from its scenario to its result and to the reports.
class gate_execution : public execution {
public:
    /// `read`: returns what is judged in place of measurements, from these files.
    gate_execution(const scenario& s, const char* file, int line, const char* verb,
                   gate_reader read = {}, vector<std::string> files = {})
        : execution(s, file, line, verb, use_of(verb)),
          read_(std::move(read)),
          files_(std::move(files)) {}
    /// Throws if nothing could be measured; ended_by() then makes the result.
    result run() {
        if (read_) return judged_again();
        begin(files_of(scenario_));
        if (const char* const why = why_left_out(); *why)
            return ended_by(gate_outcome::skipped, why);
        sharing_.check(scenario_, asked_);
        enter_environment();
        plan p;
        run_mode mode;
        std::optional<gate_servers> servers;
        std::optional<gate_run> repeats;
        bool is_up = false;
        sharing_.all_or_none([&] {
            mode = prepared_mode();
            p = prepared_plan(mode);
            servers.emplace(scenario_, asked_, model_.get());
            await_start([&](double within_s, const std::string& ready) {
                servers->await_start(within_s, ready);
            });
            mode.begin(budget_began_ns());
        });
        sharing_.take_part(p, scenario_, asked_, number_);
        const bool is_first = rank_of_program() == 0;
        if (!is_first) mode.deadline_ns = 0;  // the first program decides on the deadline
        sharing_.all_or_none([&] {
            if (stop_asked.load())
                throw no_server("the run was interrupted before this gate began");
            repeats.emplace(std::move(p), *servers, mode,
                            is_first ? shown_progress() : progress_mode::off);
            is_up = unless_interrupted([&] { return repeats->bring_up(); });
        });
        if (!is_first)
            return ended_by(gate_outcome::skipped,
                            sharing_.follow([&](const slot& s) { repeats->send_part(s); }));
        try {
            if (is_up) repeats->announce();
            if (is_up) repeats->repeat_until_decided();
        } catch (...) {
            sharing_.end_gate();
            throw;
        }
        sharing_.end_gate();
        return reported(repeats->finished(), mode);
    }

private:
    static scenario_use use_of(std::string_view verb) {
        return verb == "run" || verb == "curve" ? scenario_use::measure
               : verb == "find_capacity"        ? scenario_use::find_capacity
                                                : scenario_use::gate;
    }
    const char* why_left_out() const {
        return searches() && asked_.calibrate > 0 ? "a calibration run searches no capacity" : "";
    }
    bool searches() const { return scenario_.arrivals.data().is_searched; }
    /// Enters the environment of its servers, or of the models in their place.
    void enter_environment() {
        if (rehearses()) model_ = the_rehearsals().rehearsal_of(asked_, who_.name, scenario_);
        enter(model_ ? new_environment_for(*model_) : new_environment_for(scenario_));
    }
    /// What is done with the measurements.
    run_mode prepared_mode() const {
        run_mode mode = mode_of(scenario_.baseline, who_.name, asked_);
        if (asked_.keeps && asserts() && !searches()) mode.kind = run_kind::append;
        mode.model = model_;
        return mode;
    }
    /// Makes a valid plan, and reads the run that it is compared with.
    plan prepared_plan(run_mode& mode) const {
        const plan p = plan_of(mode.appends() ? asked_.keeps->as_kept(scenario_) : scenario_, who_,
                               asked_.seed,
                               {use_, sharing_.part(), mode.all_repeats(asked_)},
                               api_of(scenario_.target, asked_.candidate));
        if (p.judged->has_stored_baseline && mode.kind != run_kind::write_baseline)
            mode.stored = new_shared<const stored_gate>(
                model_ ? model_->stored_baseline(scenario_, who_, asked_, use_)
                       : stored_gate_of(p));
        return p;
    }
    result reported(measured_gate&& m, const run_mode& mode) {
        gate_report g = report_of(m, asked_);
        if (mode.kind == run_kind::write_baseline) write_as_baseline(g, m, asked_);
        if (asked_.keeps)
            g.not_kept = asserts() ? asked_.keeps->keep(g, m.past.get(), m.seen.stopped)
                                   : why_not_added(searches() ? "find_capacity()" : "run()");
        if (model_) model_->mark(g, m.seen);
        return closed(std::move(g), std::move(m));
    }
    result judged_again() {
        measured_gate m;
        begin(files_, [&] { m = read_(); });
        static_cast<purpose_of_run&>(asked_) = {};  // the runs are over
        static_cast<gate_identity&>(m.what) = who_;
        for (slo& s : m.judged_by.slos) s = on_day(s, utc_day());
        m.found = analyse(m.seen, m.judged_by);
        return closed(report_of(m, asked_), std::move(m));
    }
    load_sharing& sharing_ = the_sharing();
    const gate_reader read_;
    const vector<std::string> files_;  // that it reads
};

/// Returns the result of an execution, or of its end if it throws. Then a test case fails, and any
/// other caller gets the exception.
template <class Execution>
auto executed(Execution&& gate) {
    const auto refused = [&](gate_outcome outcome, const std::exception& e) {
        const std::string why = known_secrets::of_this_program().without(reason_in(e));
        const auto r = gate.ended_by(outcome, why);
        if (outcome == gate_outcome::skipped) return r;
        if (inside_test_case()) gate.fail_test_case(why);
        else if (why == reason_in(e)) throw;
        else if (outcome == gate_outcome::refused) throw std::invalid_argument(why);
        else throw std::runtime_error(why);
        return r;
    };
    try {
        return gate.run();
    } catch (const std::invalid_argument& e) {
        return refused(gate_outcome::refused, e);
    } catch (const no_server& e) {
        return refused(gate.may_be_skipped() ? gate_outcome::skipped : gate_outcome::invalid, e);
    } catch (const std::exception& e) {
        return refused(gate_outcome::invalid, e);  // a fault of this machine, or a bug of ours
    } catch (...) {
        gate.ended_by(gate_outcome::invalid, "it was ended by an exception");
        throw;  // a cancelled thread passes here, too
    }
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
