// What no engine could have: refused with its field, before a server of it begins.
#include "llmbench.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "support/texts.hpp"

#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using texts::holds;

namespace {
std::string refused(const std::function<void(engine&)>& change) {
    engine e;
    change(e);
    try {
        check_engine(e);
    } catch (const std::invalid_argument& why) {
        return why.what();
    }
    return "";
}
}  // namespace

TEST_CASE("an engine without time, slots or memory is refused with its field") {
    CHECK(refused([](engine&) {}) == "");
    CHECK(refused([](engine& e) { e.decode_step = 0_s; }) ==
          "engine.decode_step is 0 s: from 1e-06 to 3600 s is allowed");
    const std::pair<const char*, std::function<void(engine&)>> changes[] = {
        {"engine.slots is 0", [](engine& e) { e.slots = 0; }},
        {"engine.slots is -3", [](engine& e) { e.slots = -3; }},
        {"engine.decode_step is -1 s", [](engine& e) { e.decode_step = time_span::from_seconds(-1); }},
        {"engine.decode_step is nan s", [](engine& e) { e.decode_step = time_span::from_seconds(std::numeric_limits<double>::quiet_NaN()); }},
        {"engine.step_per_sequence is -0.001 s", [](engine& e) { e.step_per_sequence = time_span::from_seconds(-0.001); }},
        {"engine.prefill_per_token is inf s", [](engine& e) { e.prefill_per_token = time_span::from_seconds(infinity); }},
        {"engine.prefill_budget is 0", [](engine& e) { e.prefill_budget = 0; }},
        {"engine.queue_limit is -1", [](engine& e) { e.queue_limit = -1; }},
        {"engine.max_model_len is 0", [](engine& e) { e.max_model_len = 0; }},
        {"engine.kv.layers is 0", [](engine& e) { e.kv.layers = 0; }},
        {"engine.kv.kv_heads is 0", [](engine& e) { e.kv.kv_heads = 0; }},
        {"engine.kv.head_size is 0", [](engine& e) { e.kv.head_size = 0; }},
        {"engine.kv.bytes_per_value is 0", [](engine& e) { e.kv.bytes_per_value = 0; }},
        {"engine.kv.memory_bytes is 0", [](engine& e) { e.kv.memory_bytes = 0; }},
        {"engine.kv.block_tokens is 0", [](engine& e) { e.kv.block_tokens = 0; }},
        {"engine.tokens_per_event is 0", [](engine& e) { e.tokens_per_event = 0; }},
        {"engine.adapter_load is -1 s", [](engine& e) { e.adapter_load = time_span::from_seconds(-1); }},
        {"engine.jitter is nan", [](engine& e) { e.jitter = std::numeric_limits<double>::quiet_NaN(); }},
        {"engine.jitter is -1", [](engine& e) { e.jitter = -1; }},
        {"engine.reasoning is 1.5", [](engine& e) { e.reasoning = fraction(1.5); }},
        {"engine.faults.delay is -1 s", [](engine& e) { e.faults.delay = time_span::from_seconds(-1); }},
        {"engine.faults.error_rate is -0.1", [](engine& e) { e.faults.error_rate = fraction(-0.1); }},
        {"engine.faults.reset_rate is 2", [](engine& e) { e.faults.reset_rate = fraction(2); }},
        {"engine.faults.stall_rate is nan", [](engine& e) { e.faults.stall_rate = fraction(std::numeric_limits<double>::quiet_NaN()); }},
        {"engine.faults.garbage_rate is 2", [](engine& e) { e.faults.garbage_rate = fraction(2); }},
        {"engine.faults.wrong_answers is 2", [](engine& e) { e.faults.wrong_answers = fraction(2); }},
        {"engine.faults.wrong_in_batch is 2", [](engine& e) { e.faults.wrong_in_batch = fraction(2); }},
        {"engine.faults.stop_after is -1", [](engine& e) { e.faults.stop_after = -1; }},
        {"engine.faults.restart_after is -1", [](engine& e) { e.faults.restart_after = -1; }},
    };
    for (const auto& [begins, change] : changes) {
        const std::string why = refused(change);
        CAPTURE(why);
        CHECK(why.find(begins) == 0);
        CHECK(holds(why, "is allowed"));
    }
}
