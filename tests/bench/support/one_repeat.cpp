// llmbench's implementation without doctest, for the benchmarks, with what they need of its inside.
#define LLMBENCH_NO_DOCTEST
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
#include "llmbench_answers.hpp"
#include "llmbench_capacity.hpp"
#include "llmbench_compare.hpp"
#include "llmbench_embeddings.hpp"
#include "llmbench_faults.hpp"
#include "llmbench_history.hpp"
#include "llmbench_machines.hpp"
#include "llmbench_sessions.hpp"
#include "llmbench_simulated.hpp"

#include "support/scratch.hpp"

#include <ctime>
#include <optional>
#include <utility>

using namespace llmbench;

static double process_cpu_s() {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// As one_repeat.hpp declares it, which includes a part.
namespace bench {
detail::repeat_data one_repeat(const scenario& s, std::uint64_t max_gaps, double* cpu_s, bool keeps_texts);
}
detail::repeat_data bench::one_repeat(const scenario& s, std::uint64_t max_gaps, double* cpu_s, bool keeps_texts) {
    const detail::plan p = detail::with_traffic(
        detail::planned(s, 1), [&](detail::planned_traffic& t) { t.compares_answers = t.compares_answers || keeps_texts; });
    detail::live_target target(s.target, run_variant::candidate);
    target.bring_up();
    detail::variant_repeats one;
    one.emplace_back(p, target, detail::repeat_order{});
    if (max_gaps > 0) one[0].asked.max_gaps = max_gaps;
    if (!cpu_s) {
        detail::run_repeat(one);
        return std::move(one[0].seen);
    }
    const files::scratch directory;
    detail::record_files written(directory.file("records"));
    written.open();
    const double before = process_cpu_s();
    std::optional<detail::record_writer> writer(std::in_place, written, "bench");
    one[0].asked.out = &writer->box();
    detail::run_repeat(one);
    writer.reset();
    *cpu_s = process_cpu_s() - before;
    return std::move(one[0].seen);
}
