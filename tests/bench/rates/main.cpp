// How often verdicts are wrong: each study is a file NAME.cpp beside this one.
//   llmbench_rates NAME [--quick] [--trials N] [--seed N] [--only PART] [--shard I/N]
// Quick: few trials, so bounds that are wider by three standard errors. A shard measures every Nth row.
// Exits with 1 where a bound is not met.
#include "rates.hpp"

#include <charconv>

using namespace rates;

namespace {

/// A whole number from 1 to a million, or 0.
long long number_of(std::string_view text) {
    long long n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    return error == std::errc() && end == text.data() + text.size() && n <= 1'000'000 ? std::max(n, 0ll) : 0;
}

bool is_part(const study& s, std::string_view name) {
    return std::any_of(s.parts.begin(), s.parts.end(), [&](const part& p) { return p.name == name; });
}

/// The options, or false.
bool read_options(const study& s, const vector<std::string>& arguments, options& o) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i] == "--quick") {
            o.quick = true;
            continue;
        }
        if (i + 1 == arguments.size()) return false;
        const std::string &name = arguments[i], &value = arguments[++i];
        const std::size_t slash = std::min(value.find('/'), value.size());
        const long long number = number_of(value.substr(0, slash));

        if (name == "--only" && is_part(s, value)) o.only = value;
        else if (name == "--shard" && slash < value.size()) {
            o.shard = number;
            o.shards = number_of(value.substr(slash + 1));
            if (number < 1 || number > o.shards) return false;
        } else if (number < 1 || slash < value.size()) return false;
        else if (name == "--trials") o.trials = number;
        else if (name == "--seed") o.seed = static_cast<std::uint64_t>(number);
        else return false;
    }
    if (o.trials == 0) o.trials = o.quick ? s.quick_trials : s.trials;
    return true;
}

bool measure(const study& s, const options& o) {
    study_run r(o);
    bool has_begun = false;
    for (const part& p : s.parts) {
        if (o.only.empty() ? p.is_asked_for : o.only != p.name) continue;
        if (s.begin && !p.is_asked_for && !std::exchange(has_begun, true)) s.begin(r);
        p.measure(r);
    }
    return r.must.met();
}

}  // namespace

int main(int argc, char** argv) {
    const vector<std::string> arguments(argv + 1, argv + argc);
    for (const study& s : studies())
        if (options o; !arguments.empty() && arguments[0] == s.name &&
                       read_options(s, {arguments.begin() + 1, arguments.end()}, o))
            return measure(s, o) ? 0 : 1;
    std::fprintf(stderr, "usage: llmbench_rates NAME [--quick] [--trials N] [--seed N] [--only PART] [--shard I/N]\n");
    for (const study& s : studies()) {
        std::fprintf(stderr, "  %s", s.name);
        for (const part& p : s.parts) std::fprintf(stderr, " %s", p.name);
        std::fprintf(stderr, "\n");
    }
    return 2;
}
