#include "support/sample_gates.hpp"

#include "core/planning/planning.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/text.hpp"

#include <utility>

namespace sample_gates {

test_gate::operator lb::gate_report() const {
    lb::gate_report g;
    g.what = what;
    g.target = target;
    g.baseline = baseline;
    g.judged_by = measured;
    g.under = measured;
    g.notes = lb::notes_before(g, g.under);
    g.verdicts = verdicts;
    g.self_check = self_check;
    g.calibration = calibration;
    g.profile = profile;
    g.refusal = refusal;
    g.outcome = outcome;
    g.undecided_fails = undecided_fails;
    g.took_s = took_s;
    if (!refusal.empty()) return g;
    g.figures = lb::figures_of(what, measured, measured.slos);
    for (const llmbench::slo_verdict& v : verdicts)
        lb::add_objective(g.figures, measured, v.objective);
    return g;
}

std::string status_text(std::initializer_list<lb::repeat_data> variant) {
    return lb::status_text(lb::variant_figures_of({}, {}, {}, variant));
}
std::string prefix_cache_text(const measurement& m) {
    return lb::prefix_cache_text(lb::figures_of({}, m, {}));
}
lb::target_facts tiny_model() {
    return {lb::target_kind::endpoint, "http://127.0.0.1:8000", "tiny", "openai_chat"};
}
lb::environment_facts quiet_machine() {
    lb::environment_facts e;
    e.os = "Linux";
    e.cpu = "a <fast> one";
    e.compiler = "g++ 12";
    e.cores = 2;
    e.machine = {"bench-7", 1.5, "powersave", "on", "madvise"};
    e.started_at = "2026-01-02T03:04:05Z";
    e.commit = "0123456789abcdef0123456789abcdef01234567";
    e.program = "./gates";
    return e;
}
void judge(test_gate& g) {
    g.verdicts = judge_all(g.measured);
    g.self_check = self_check_of(g.measured);
    g.outcome = lb::gate_outcome::passed;
    for (const llmbench::slo_verdict& v : g.verdicts) {
        if (v.objective.is_advisory) continue;
        if (v.outcome == llmbench::verdict::fail)
            g.outcome = lb::worse_of(g.outcome, lb::gate_outcome::failed);
        if (v.outcome == llmbench::verdict::invalid)
            g.outcome = lb::worse_of(g.outcome, lb::gate_outcome::invalid);
    }
}
lb::repeat_data repeat_of_ttft(double ttft_ms, int index) {
    lb::repeat_data d = timelines::steady_repeat(ttft_ms);
    d.index = index;
    d.window = lb::time_interval::between(timelines::at_ms(0), timelines::at_ms(2200));
    return d;
}
test_gate sampled_gate(const std::string& name, const llmbench::slo_list& slos) {
    using namespace llmbench;
    test_gate g;
    g.what = lb::planned(
        {.workload = synthetic{.prompt_tokens = fixed(10), .output_tokens = fixed(11)},
         .arrivals = closed_loop(4),
         .requests = 20,
         .slos = slos,
         .seed = 7},
        1);
    g.what.name = name;
    g.what.file = "gates.cpp";
    g.what.line = 12;
    g.target = tiny_model();
    for (int i = 0; i < 2; ++i) g.measured.candidate.push_back(repeat_of_ttft(80, i));
    g.measured.slos = g.what.judged->slos;
    g.measured.rule.most = 2;
    return g;
}
test_gate refused_gate(const std::string& why, lb::gate_outcome outcome) {
    test_gate g;
    g.what.name = "refused";
    g.what.file = "gates.cpp";
    g.what.line = 40;
    g.refusal = why;
    g.outcome = outcome;
    return g;
}

}  // namespace sample_gates
