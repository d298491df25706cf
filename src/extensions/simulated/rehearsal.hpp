// models of servers in a rehearsal
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "core/base/extension.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/metric/table.hpp"
#include "core/planning/planning.hpp"
#include "core/reports/gate_report.hpp"
#include "core/stored/stored.hpp"
#include "core/traffic/trace_hash.hpp"
#include "effects/gates/gate_run.hpp"
#include "effects/gates/execution.hpp"
#include "effects/gates/run_mode.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/files.hpp"
#include "effects/system/settings.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "extensions/simulated/core/foreseen.hpp"
#include "extensions/simulated/virtual_environment.hpp"

#include <cstddef>  // size_t
#include <map>
#include <memory>  // shared_ptr
#include <optional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// An engine for each server of a gate; they differ only in their seeds.
struct rehearsal_model {
    engine like{};
    std::string words{};  // describes it
    std::map<std::string, double> noise{};  // of repeats, if from a measured run
    double machine_noise = foreseen_noise().sd;  // added to the model's own, for other statistics

    engine of(std::size_t server) const {
        engine e = like;
        e.seed = static_cast<long long>(like.seed) + 1000 * static_cast<long long>(server);
        return e;
    }
};

/// Throws for targets and objectives that a model cannot predict.
inline void check_rehearsal(const scenario& what) {
    if (!what.beside.empty())
        refuse({"LLMBENCH_REHEARSE: beside has side tasks, and a model is no server that they "
                "could be done to: rehearse the load without them"});
    for (const slo& s : what.slos)
        if (is_of_start(s.statistic.metric))
            refuse({"LLMBENCH_REHEARSE: ", str(s.text()),
                    " is of a process, and a rehearsal starts none"});
}

/// On engines with one pace.
class simulated_rehearsal final : public rehearsal {
public:
    explicit simulated_rehearsal(rehearsal_model m) : model_(std::move(m)) {}
    std::string model() const override { return model_.words; }
    any_target stand_in(std::size_t server) const override {
        return simulated(model_.of(server));
    }
    void mark(gate_report& g, const measurements& seen) const override {
        mark_rehearsed(g, seen, model_.words, model_.noise, model_.machine_noise);
    }
    stored_gate stored_baseline(const scenario& s, const gate_identity& who,
                                const settings& asked, scenario_use use) const override {
        rehearsal_model other = model_;
        other.like.seed = 2000;
        const gate_figures f =
            figures_on(std::move(other), s, asked,
                       plan_of(s, who, asked.seed, {use, {}, 0},
                               api_of(s.target, asked.candidate)));
        stored_gate reported;
        for (const repeat_figures& d : f.candidate.repeats)
            for (const named_number& n : named_statistics(f.kept, d))
                reported.statistics[n.name].push_back(n.value);
        return reported;
    }

    /// All repeats of a plan on a model, apart from the environment of its own.
    static gate_figures figures_on(rehearsal_model on, const scenario& s, const settings& asked,
                                   plan p) {
        virtual_environment apart;
        const inside_environment inside(&apart);
        p = with_judging(std::move(p),
                         [](planned_judging& j) { j.has_stored_baseline = false; });
        run_mode mode = mode_of(s.baseline, p.name, asked);
        mode.model = new_shared<simulated_rehearsal>(std::move(on));
        mode.kind = run_kind::calibrate;
        gate_servers servers(s, asked, mode.model.get());
        gate_run run(std::move(p), servers, mode, progress_mode::off);
        if (run.bring_up()) run.repeat_until_decided();
        const measured_gate m = run.finished();
        return figures_of(m.what, m.seen, m.what.judged->slos);
    }

private:
    const rehearsal_model model_;
};

/// One repeat of a gate, if that is the load with this hash.
inline std::optional<plan> plan_of_load(const scenario& s, const settings& asked,
                                        const std::string& hash) try {
    plan p = plan_of(s, {}, asked.seed, scenario_use::gate,
                     api_of(s.target, asked.candidate));
    if (hash.empty() || load_hash(*p.sent) != hash) return {};
    return with_judging(std::move(p), [](planned_judging& j) { j.measure_all(1); });
} catch (const std::invalid_argument&) {
    return {};  // no load of a gate
}
inline modelled_pace pace_of_gate(const engine& e, const scenario& s, const settings& asked,
                                  const plan& p) {
    const gate_figures f = simulated_rehearsal::figures_on({e, "", {}}, s, asked, p);
    return {f.candidate.row(metric_id::ttft).mean, f.candidate.row(metric_id::tpot).mean};
}

/// `gate`: its name in the file that the model is fitted to. A simulated target is its own model,
/// and its machine adds no noise.
inline rehearsal_model model_for(const settings& asked, const std::string& gate,
                                 const scenario& s) {
    const auto* const brought = s.target.what().get<extension_value>();
    const engine* const own = brought ? brought->what.get<engine>() : nullptr;
    if (asked.rehearse == "1" && own) {
        engine like = *own;
        like.faults = {.delay = own->faults.delay};  // faults that end answers have no pace
        return {like, "the engine of its own target, whose repeats differ as they do", {}, 0};
    }
    if (asked.rehearse == "1")
        return {engine{}, "the default engine, repeats taken to differ by 2 %", {}};
    const std::string file = printable(asked.rehearse, 200);
    reported_pace t = read_pace(file_content(asked.rehearse, "LLMBENCH_REHEARSE"), file, gate);
    fit_of_engine f = fitted_engine(t.pace, engine_at_pace(t.pace), [&](const engine& e) {
        return pace_at_means(e, t.pace);
    });
    if (const auto p = plan_of_load(s, asked, t.load_hash)) {
        f = fitted_engine(t.pace, f.like, [&](const engine& e) {
            return pace_of_gate(e, s, asked, *p);
        });
        f.is_at_means = false;
    }
    return {f.like, fit_text(f, t.pace, file), std::move(t.noise)};
}

inline std::shared_ptr<const rehearsal> rehearsal_on_engine(const settings& asked,
                                                            const std::string& gate,
                                                            const scenario& s) {
    auto made = new_shared<simulated_rehearsal>(model_for(asked, gate, s));
    check_rehearsal(s);
    return made;
}
inline constinit const extension rehearsals{.name = "simulated",
                                            .rehearsal_of = rehearsal_on_engine};
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_rehearsals() { add(rehearsals); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
