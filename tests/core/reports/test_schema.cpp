// ci/result.schema.json, which the lists of fields give: LLMBENCH_APPROVE=1 writes it anew.
#include "llmbench.hpp"
#include "core/metric/table.hpp"
#include "core/reports/result_json.hpp"
#include "extensions/compare/core/reports.hpp"
#include "extensions/history/core/history_judge.hpp"
#include "support/golden.hpp"
#include "support/histories.hpp"  // the judge of a history, which a result may have
#include "support/sample_comparison.hpp"
#include "support/sample_gates.hpp"
#include "support/schema_writer.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace sample_gates;

namespace {

/// A gate with a row of each kind that results may have.
gate_report gate_with_all_rows() {
    test_gate sample = sample_gates::sampled_gate("all", {mean(ttft) <= 100_ms});
    judge(sample);
    gate_report g = sample;
    variant_figures& a = g.figures.candidate;
    a.distributions.clear();
    for (const metric_id m : {metric_id::ttft, metric_id::time_to_first_answer, metric_id::tpot,
                              metric_id::itl, metric_id::e2e, metric_id::ttft_from_send,
                              metric_id::first_turn_ttft, metric_id::later_turn_ttft}) {
        a.distributions.push_back({});
        a.distributions.back().row.metric = m;
    }
    g.figures.table_rows = a.distributions.size();
    for (const metric_id m : {metric_id::cost_per_million_tokens, metric_id::accuracy,
                              metric_id::same_answers})
        a.run_values.insert(a.run_values.end() - 1, {m, 0});
    a.statuses.clear();
    for (int k = 0; k <= static_cast<int>(request_status::left); ++k)
        a.statuses.push_back({static_cast<request_status>(k), 0, ""});
    a.repeats[0].plays_out = true;
    a.repeats[0].usd_per_hour = 1;
    a.repeats[0].differences.tokens = 1;
    g.figures.baseline = a;
    return g;
}

}  // namespace

TEST_CASE("ci/result.schema.json describes what the lists of fields write") {
    vector<gate_report> gates = {gate_with_all_rows()};
    environment_facts environment;
    event_index events;
    comparisons_and_curves beside({sample_comparison()},
                                  {{"chat", "", 0, metric_id::capacity_in_rate, {{}}}});
    vector<gate_report> outside = {gate_with_all_rows()};
    run_report all{gates, environment, events, {&beside}, outside};
    schemas::schema_writer v;
    fields_of(v, all);
    std::string text = v.document(
        "llmbench/result/2",
        "result.json of llmbench. Later versions may add fields, never take one away or change its "
        "meaning without another `schema`. Numbers are SI units; null stands for a value that is "
        "not there or not finite. Written by tests/core/reports/test_schema.cpp.");
    // What was measured is there unless it was refused.
    const std::string gate = "\"gate\": {\"type\": \"object\",\n";
    const std::size_t at = text.find(gate);
    REQUIRE(at != std::string::npos);
    text.insert(at + gate.size(),
                "      \"if\": {\"properties\": {\"refusal\": {\"const\": \"\"}}},\n"
                "      \"then\": {\"required\": [\"target\", \"scenario\", \"slos\", \"judging\", "
                "\"candidate\", \"self_check\"]},\n");
    golden::check("../../ci/result.schema.json", text);
}
