// Made-up evidence for verdicts: repeats and pairs that differ by one thing, and what came of it.
#pragma once

#include "llmbench.hpp"
#include "support/sample_measurements.hpp"
#include "support/timelines.hpp"

#include <cstddef>
#include <cstdint>

namespace verdicts {

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using sample_measurements::measurement;

/// Repeats of 20 requests, each repeat with one ttft.
vector<repeat_data> repeats_with_ttft(const vector<double>& ms);
measurement measured(vector<repeat_data> candidate, vector<slo> slos = {});
/// The verdict on repeats with these values of ttft.
slo_verdict verdict_on(const vector<double>& ms, const slo& s = mean(ttft) <= 100_ms);
/// `n` requests, `failures` of them failed and evenly spread.
repeat_data repeat_with_failures(int n, int failures);
/// Twelve answers in one piece, all under way as the window ends.
repeat_data repeat_that_ends_in_mid_answer();
slo_verdict verdict_on_failures(int n, int failures, const slo& s, int repeats = 2);
/// Interleaved pairs whose ttft has this ratio to the baseline's 100 ms.
measurement pairs_with_ratio(const vector<double>& ratios);
slo_verdict verdict_on_pairs(const vector<double>& ratios,
                             const slo& s = mean(ttft) <= 1.10 * baseline);
/// Measured requests in turn were sent this late.
void send_late(repeat_data& d, const vector<double>& seconds);
bool mentions(const text& t, const char* part);
/// Requests whose ttft or time per token is the k-th value; infinite: the request failed.
repeat_data stage_of_ttft(const vector<double>& ms);
/// `n` values, `slow` of them another one, evenly spread.
vector<double> spread(int n, int slow, double usual, double other);
/// 100 values 0 to 99, each once, so that neighbours are far apart.
vector<double> scattered(double from, double step);
double input(const slo_verdict& v, const char* name, std::size_t i = 0);
vector<double> inputs(const slo_verdict& v, const char* name);
/// Lognormal ttft of median 100 ms, independent.
vector<double> drawn_ttft(std::uint64_t seed, int n);
measurement against_stored(const vector<double>& ms, const vector<double>& stored_s,
                           double day_sd = 0.05);
slo ttft_limit(double ms);

}  // namespace verdicts
