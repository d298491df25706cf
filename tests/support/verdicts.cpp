#include "support/verdicts.hpp"

#include "core/base/random.hpp"
#include "core/judging/rule.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace verdicts {

vector<repeat_data> repeats_with_ttft(const vector<double>& ms) {
    vector<repeat_data> repeats;
    for (const double v : ms) repeats.push_back(steady_repeat(v));
    return repeats;
}
measurement measured(vector<repeat_data> candidate, vector<slo> slos) {
    measurement m;
    m.candidate = std::move(candidate);
    m.slos = std::move(slos);
    return m;
}
slo_verdict verdict_on(const vector<double>& ms, const slo& s) {
    return judged(measured(repeats_with_ttft(ms), {s}), s);
}
repeat_data repeat_with_failures(int n, int failures) {
    vector<request> requests;
    for (int i = 0; i < n; ++i) {
        const bool fails = (i + 1) * failures / n > i * failures / n;
        requests.push_back(fails ? failed(100.0 * i) : answered(100.0 * i, 50));
    }
    return repeat_of(requests);
}
repeat_data repeat_that_ends_in_mid_answer() {
    repeat_data d = repeat_with_failures(12, 0);
    long long first_end = d.records[0].end_ns;
    for (record& r : d.records) {
        r.events = 1;
        r.sent_ns = 0;
        first_end = std::min(first_end, r.end_ns);
    }
    d.window = time_interval::between(0, first_end);
    return d;
}
slo_verdict verdict_on_failures(int n, int failures, const slo& s, int repeats) {
    vector<repeat_data> data;
    for (int i = 0; i < repeats; ++i)
        data.push_back(repeat_with_failures(n / repeats,
                                            (i + 1) * failures / repeats - i * failures / repeats));
    return judged(measured(std::move(data), {s}), s);
}
measurement pairs_with_ratio(const vector<double>& ratios) {
    measurement m;
    for (const double r : ratios) {
        m.candidate.push_back(steady_repeat(100 * r));
        m.baseline.push_back(steady_repeat(100));
        m.baseline.back().variant = run_variant::baseline;
    }
    return m;
}
slo_verdict verdict_on_pairs(const vector<double>& ratios, const slo& s) {
    measurement m = pairs_with_ratio(ratios);
    m.slos = {s};
    return judged(m, s);
}
void send_late(repeat_data& d, const vector<double>& seconds) {
    for (std::size_t i = 0; i < d.records.size(); ++i)
        d.records[i].late_ns = std::llround(seconds[i % seconds.size()] * 1e9);
}
bool mentions(const text& t, const char* part) {
    return str(t).find(part) != std::string::npos;
}
repeat_data stage_of_ttft(const vector<double>& ms) {
    vector<request> requests;
    for (std::size_t i = 0; i < ms.size(); ++i) {
        const double at = 100.0 * static_cast<double>(i);
        requests.push_back(ms[i] == infinity ? failed(at) : answered(at, ms[i]));
    }
    return repeat_of(requests);
}
vector<double> spread(int n, int slow, double usual, double other) {
    vector<double> values;
    for (int i = 0; i < n; ++i) values.push_back((i + 1) * slow / n > i * slow / n ? other : usual);
    return values;
}
vector<double> scattered(double from, double step) {
    vector<double> values;
    for (int i = 0; i < 100; ++i) values.push_back(from + step * (37 * i % 100));
    return values;
}
double input(const slo_verdict& v, const char* name, std::size_t i) {
    for (const named_values& n : v.inputs)
        if (n.name == text(name) && i < n.values.size()) return n.values[i];
    return not_a_number;
}
vector<double> inputs(const slo_verdict& v, const char* name) {
    vector<double> values;
    for (std::size_t i = 0; !std::isnan(input(v, name, i)); ++i)
        values.push_back(input(v, name, i));
    return values;
}
vector<double> drawn_ttft(std::uint64_t seed, int n) {
    generator random(seed, 5);
    vector<double> ms;
    for (int i = 0; i < n; ++i) ms.push_back(100 * std::exp(0.4 * random.normal()));
    return ms;
}
measurement against_stored(const vector<double>& ms, const vector<double>& stored_s, double day_sd) {
    measurement m = measured(repeats_with_ttft(ms));
    m.stored = {"chat.json", day_sd, {{"mean(ttft)", stored_s}}};
    return m;
}
slo ttft_limit(double ms) { return mean(ttft) <= time_span::from_seconds(ms / 1000); }

}  // namespace verdicts
