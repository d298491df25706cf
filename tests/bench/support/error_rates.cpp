// How often verdicts are wrong: each study is a file tests/bench/NAME_error_rates.cpp.
//   error_rates NAME [--quick] [--trials N] [--seed N] [--only PART]
// Quick: few trials, so bounds that are wider by three standard errors. Exits with 1 where one is
// not met.
#include "rates.hpp"

#include <charconv>

using namespace rates;

namespace {

/// A whole number from 1 to a million, or 0.
long long number_of(std::string_view text) {
    long long n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    return error == std::errc() && end == text.data() + text.size() && n <= 1'000'000
               ? std::max(n, 0ll)
               : 0;
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
        const long long number = number_of(value);
        if (name == "--only" && std::find(s.parts.begin(), s.parts.end(), value) != s.parts.end())
            o.only = value;
        else if (name == "--trials" && number > 0) o.trials = number;
        else if (name == "--seed" && number > 0) o.seed = static_cast<std::uint64_t>(number);
        else return false;
    }
    if (o.trials == 0) o.trials = o.quick ? s.quick_trials : s.trials;
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    const vector<std::string> arguments(argv + 1, argv + argc);
    for (const study& s : studies())
        if (options o; !arguments.empty() && arguments[0] == s.name &&
                       read_options(s, {arguments.begin() + 1, arguments.end()}, o))
            return s.run(o) ? 0 : 1;
    std::fprintf(stderr,
                 "usage: error_rates NAME [--quick] [--trials N] [--seed N] [--only PART]\n");
    for (const study& s : studies()) {
        std::fprintf(stderr, "  %s", s.name);
        for (const char* part : s.parts) std::fprintf(stderr, " %s", part);
        std::fprintf(stderr, "\n");
    }
    return 2;
}
