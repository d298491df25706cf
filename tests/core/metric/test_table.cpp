// The table of metrics: each name that a gate says finds its own row, and what concerns a statistic
// is looked up for its predicates, too.
#include "core/metric/table.hpp"
#include "extensions/answers/api.hpp"

#include <doctest/doctest.h>

#include <iterator>
#include <set>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
// Without a default: the compiler names a metric that is missing here.
const char* name_of(latency_metric m) {
    switch (m) {
    case ttft: return "ttft";
    case tpot: return "tpot";
    case itl: return "itl";
    case e2e: return "e2e";
    case normalized_latency: return "normalized_latency";
    case ttft_per_prompt_token: return "ttft_per_prompt_token";
    case ttft_from_send: return "ttft_from_send";
    case first_turn_ttft: return "first_turn_ttft";
    case later_turn_ttft: return "later_turn_ttft";
    case time_to_first_answer: return "time_to_first_answer";
    case second_token_gap: return "second_token_gap";
    }
    return nullptr;
}
const char* name_of(speed_metric m) {
    switch (m) {
    case prefill_speed: return "prefill_speed";
    case decode_speed: return "decode_speed";
    }
    return nullptr;
}
const char* name_of(answer_metric m) {
    switch (m) {
    case accuracy: return "accuracy";
    case same_answers: return "same_answers";
    }
    return nullptr;
}
const char* name_of(run_time_metric m) {
    switch (m) {
        case startup_time: return "startup_time";
        case first_answer_time: return "first_answer_time";
        case recovery_time: return "recovery_time";
    }
    return nullptr;
}
const char* name_of(token_throughput m) {
    switch (m) {
    case output_throughput: return "output_throughput";
    case total_throughput: return "total_throughput";
    case prefill_throughput: return "prefill_throughput";
    case decode_throughput: return "decode_throughput";
    case input_throughput: return "input_throughput";
    }
    return nullptr;
}
const char* name_of(server_time m) {
    switch (m) {
    case queue_time: return "queue_time";
    case server_prefill_time: return "server_prefill_time";
    case server_decode_time: return "server_decode_time";
    }
    return nullptr;
}

/// All metrics of a type stand in the table in its order, from the first to the last.
template <class M>
void check_names(metric_id last) {
    int i = 0;
    for (; name_of(static_cast<M>(i)); ++i)
        CHECK(std::string(metric_name(id_of(static_cast<M>(i)))) == name_of(static_cast<M>(i)));
    CHECK(id_of(static_cast<M>(i - 1)) == last);
}

statistic_data of(metric_id m) {
    statistic_data s;
    s.metric = m;
    return s;
}
}  // namespace

TEST_CASE("each metric has the row that its name says") {
    check_names<latency_metric>(metric_id::second_token_gap);
    check_names<speed_metric>(metric_id::decode_speed);
    CHECK(std::string(metric_name(id_of(tokens_per_event))) == "tokens_per_event");
    check_names<token_throughput>(metric_id::input_throughput);
    CHECK(std::string(metric_name(id_of(request_throughput))) == "request_throughput");
    CHECK(std::string(metric_name(id_of(error_rate))) == "error_rate");
    CHECK(std::string(metric_name(id_of(session_time))) == "session_time");
    check_names<answer_metric>(metric_id::same_answers);
    check_names<run_time_metric>(metric_id::recovery_time);
    check_names<server_time>(metric_id::server_decode_time);
    CHECK(std::string(metric_name(id_of(queued_requests))) == "queued_requests");
    CHECK(std::string(metric_name(id_of(running_requests))) == "running_requests");
    CHECK(std::string(metric_name(id_of(kv_cache_usage))) == "kv_cache_usage");
    CHECK(std::string(metric_name(id_of(preemptions))) == "preemptions");
    CHECK(std::string(metric_name(id_of(prefix_cache_hits))) == "prefix_cache_hits");
    CHECK(std::string(metric_name(id_of(acceptance_length))) == "acceptance_length");
    CHECK(std::string(metric_name(id_of(energy_per_token))) == "energy_per_token");
    CHECK(std::string(metric_name(id_of(cost_per_million_tokens))) == "cost_per_million_tokens");
    CHECK(std::string(metric_name(id_of(cached_share))) == "cached_share");
    std::set<std::string> names;
    for (const metric_facts& f : metric_table) names.insert(f.name);
    CHECK(names.size() == std::size(metric_table) - 1);  // a capacity has one in either unit
}

TEST_CASE("kinds of metrics exclude each other") {
    for (const metric_facts& f : metric_table) {
        CAPTURE(std::string(f.name));
        CHECK(is_request_fraction(f.id) + is_throughput(f.id) + is_of_start(f.id) + is_of_requests(f.id) +
                  is_capacity(f.id) + is_of_server(f.id) + is_drift(f.id) + is_of_prompts(f.id) + is_ratio(f.id) +
                  is_of_sessions(f.id) + is_of_recovery(f.id) + is_of_work(f.id) ==
              1);
        CHECK((!is_speed(f.id) || is_of_requests(f.id)));
        CHECK(is_request_fraction(f.id) ==
              (f.unit == metric_unit::fraction && !is_of_server(f.id) && !is_drift(f.id) &&
               !is_of_prompts(f.id)));
        CHECK((is_of_server(f.id) || is_of_prompts(f.id) || is_of_recovery(f.id) || is_of_work(f.id) ||
               (f.offset == 0 && !f.is_whole)));
    }
}

TEST_CASE("a statistic is concerned by its metric and by what its predicate compares") {
    CHECK(concerns(of(metric_id::itl), &metric_facts::needs_event_times));
    CHECK(!concerns(of(metric_id::ttft), &metric_facts::needs_event_times));
    CHECK(concerns(of(metric_id::output_throughput), &metric_facts::is_affected_by_lateness));
    CHECK(!concerns(of(metric_id::error_rate), &metric_facts::is_affected_by_lateness));

    statistic_data goodput = of(metric_id::goodput);
    CHECK(!concerns(goodput, &metric_facts::needs_stream));
    goodput.where = {{predicate_step::op_kind::compare, metric_id::ttft, true, 0.3},
                     {predicate_step::op_kind::compare, metric_id::itl, true, 0.03},
                     {predicate_step::op_kind::both, metric_id::tpot, true, 0}};
    const auto says = [&](metric_id m) {
        return concerns_a_metric(goodput, [m](metric_id x) { return x == m; });
    };
    CHECK(concerns(goodput, &metric_facts::is_affected_by_lateness));
    CHECK(concerns(goodput, &metric_facts::is_of_gaps));
    CHECK((says(metric_id::goodput) && says(metric_id::ttft) && says(metric_id::itl)));
    CHECK(!says(metric_id::tpot));  // a step that combines compares nothing
}
