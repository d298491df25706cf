// Made-up evidence for verdicts: repeats and pairs that differ by one thing, and what came of it.
#pragma once

#include "llmbench.hpp"
#include "support/sample_measurements.hpp"
#include "support/timelines.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace verdicts {

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using sample_measurements::measurement;

/// Repeats of 20 requests, each repeat with one ttft.
std::vector<repeat_data> repeats_with_ttft(const std::vector<double>& ms);
measurement measured(std::vector<repeat_data> candidate, std::vector<slo> slos = {});
/// The verdict on repeats with these values of ttft.
slo_verdict verdict_on(const std::vector<double>& ms, const slo& s = mean(ttft) <= 100_ms);
/// `n` requests, `failures` of them failed and evenly spread.
repeat_data repeat_with_failures(int n, int failures);
slo_verdict verdict_on_failures(int n, int failures, const slo& s, int repeats = 2);
/// Interleaved pairs whose ttft has this ratio to the baseline's 100 ms.
measurement pairs_with_ratio(const std::vector<double>& ratios);
slo_verdict verdict_on_pairs(const std::vector<double>& ratios,
                             const slo& s = mean(ttft) <= 1.10 * baseline);
/// Measured requests in turn were sent this late.
void send_late(repeat_data& d, const std::vector<double>& seconds);
bool mentions(const text& t, const char* part);
/// Requests whose ttft or time per token is the k-th value; infinite: the request failed.
repeat_data stage_of_ttft(const std::vector<double>& ms);
/// `n` values, `slow` of them another one, evenly spread.
std::vector<double> spread(int n, int slow, double usual, double other);
/// 100 values 0 to 99, each once, so that neighbours are far apart.
std::vector<double> scattered(double from, double step);
double input(const slo_verdict& v, const char* name, std::size_t i = 0);
std::vector<double> inputs(const slo_verdict& v, const char* name);
/// Lognormal ttft of median 100 ms, independent.
std::vector<double> drawn_ttft(std::uint64_t seed, int n);
measurement against_stored(const std::vector<double>& ms, const std::vector<double>& stored_s,
                           double day_sd = 0.05);
slo ttft_limit(double ms);

}  // namespace verdicts
