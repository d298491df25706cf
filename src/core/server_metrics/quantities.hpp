// what servers report, and a reading of it
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#include <array>
#include <cstddef>  // size_t
#include <iterator>  // size
#include <map>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

enum class server_quantity : unsigned char {
    running, waiting, kv_usage, queue_time, prefill_time, decode_time, prompt_tokens,
    generation_tokens, prefix_queries, prefix_hits, preemptions, drafts, draft_tokens,
    accepted_tokens, requests_done, computed_tokens, steps, block_tokens, energy, power,
    utilisation, temperature, clock
};
/// As in files.
inline constexpr const char* quantity_names[] = {
    "running", "waiting", "kv_usage", "queue_time", "prefill_time", "decode_time", "prompt_tokens",
    "generation_tokens", "prefix_queries", "prefix_hits", "preemptions", "drafts", "draft_tokens",
    "accepted_tokens", "requests_done", "computed_tokens", "steps", "block_tokens", "energy",
    "power", "utilisation", "temperature", "clock"};

inline constexpr std::size_t quantity_count = static_cast<std::size_t>(server_quantity::clock) + 1;
static_assert(std::size(quantity_names) == quantity_count);
using quantity_values = std::array<double, quantity_count>;
inline quantity_values no_values() {
    quantity_values v;
    v.fill(not_a_number);
    return v;
}

/// All pages of a server at one time, in SI; NaN if not reported.
struct page_reading {
    long long at_ns = 0;
    double began = not_a_number;  // start of its counters, seconds since 1970
    quantity_values values = no_values();  // of a histogram, the sum
    quantity_values counts = no_values();  // of a histogram, the count
    vector<double> named{};           // of the series that objectives name
    std::map<std::string, double> joules{};  // of each accelerator's counter of energy
    std::array<std::size_t, quantity_count> series{};  // behind a gauge
    /// Of counters, by stage, engine or worker; empty if there is one.
    std::array<std::map<std::string, double>, quantity_count> places{};
    double value(server_quantity q) const { return values[static_cast<std::size_t>(q)]; }
    double count(server_quantity q) const { return counts[static_cast<std::size_t>(q)]; }
};

inline constexpr bool is_of_accelerator(server_quantity q) {
    return q >= server_quantity::energy;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
