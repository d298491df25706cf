// A metric of your own: a function of one completed request, that goes wherever ours go.
//
// It is asked of completed requests alone; a failed one is the worst value of every percentile. It
// reads our metrics of the request (`r[ttft]`, in seconds), its gaps, tokens, bytes and label. NaN, an
// exception or a value that is not from 0 to 1e15 says that this request has no value. If over 1 % of the
// requests have none, the verdict is invalid; below that a pass must hold if they have the worst values.
// What the function reads decides what else makes a verdict invalid: tokens that the server does not
// tell, a stream that comes in one piece. Times are as long as they were, or, where the client was late,
// as they may have been: let the value grow with them (and fall, where more is better).
// The function captures nothing, so that records judged again give the same values.
#define LLMBENCH_MAIN
#include "llmbench.hpp"

using namespace llmbench;

namespace {

// How long the reader waits at worst once the answer runs: its first eight gaps don't count, which
// are shown together.
const metric worst_gap = of_request("worst_gap", in_seconds, [](const request_view& r) {
    double worst = 0;
    for (long long i = 8; i < r.gaps(); ++i) worst = r.gap(i) > worst ? r.gap(i) : worst;
    return worst;
});

// How often the answer is slower than its own pace: 1 is a stream without any unevenness.
const metric unevenness = of_request("unevenness", less_is_better, [](const request_view& r) {
    return r[itl] / r[tpot];
});

}  // namespace

TEST_CASE("an answer that runs does not stop") {
    gate({
        .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(20)},
        .arrivals = closed_loop(8),
        .requests = 160,
        .slos = {
            p95(worst_gap) <= 200_ms,
            goodput(worst_gap <= 300_ms && ttft <= 500_ms) >= 95_pct,
            advisory(drift(p50(worst_gap)) <= 150_pct),
            advisory(p90(unevenness) <= 20),
        },
    });
}
