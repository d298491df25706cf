// One load of several ranks, each against a server of its own: what a rank costs.
//   mpirun -n N load STREAMS SECONDS       URLS: a server for each rank, FROM: a local address for each
#define LLMBENCH_IMPLEMENT
#define LLMBENCH_NO_DOCTEST
#include "llmbench.hpp"
#include "llmbench_machines.hpp"

#include <cstdlib>
#include <sstream>
#include <string>

using namespace llmbench;

namespace {
/// The rank's word of a list in the environment.
std::string own(const char* variable, int rank) {
    const char* all = std::getenv(variable);
    std::istringstream words(all ? all : "");
    std::string word;
    for (int i = 0; i <= rank && words >> word; ++i) {}
    return word;
}
}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    detail::rank_group& ranks = detail::rank_group::of_this_program();
    const long long streams = std::atoll(argv[1]) * ranks.count();
    client_options client;
    if (const std::string from = own("FROM", ranks.index()); !from.empty()) client.from = {from};
    const double seconds = std::atof(argv[2]);
    run({.name = "ranks",
         .target = endpoint{.url = own("URLS", ranks.index())},
         .workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(100)},
         .arrivals = closed_loop(streams).ramp(time_span::from_seconds(2)),
         .warmup = time_span::from_seconds(3),
         .duration = time_span::from_seconds(seconds),
         .repeats = 1,
         .limits = {.connect = 30_s, .drain = 5_s},
         .client = client});
    return exit_code();
}
