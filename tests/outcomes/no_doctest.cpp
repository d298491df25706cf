// Without doctest: run, judge and exit_code. Also the server that the process gates start.
//   no_doctest serve PORT [MILLISECONDS_A_TOKEN] | pass | miss | refused | gone | judged |
//     "many threads" | unasked | explored
#define LLMBENCH_NO_DOCTEST
#define LLMBENCH_IMPLEMENT
#include "scenarios.hpp"

#include <cstdio>     // what happened
#include <cstdlib>    // port
#include <exception>  // refusals
#include <string_view>

static void measure(std::string_view how) {
    scenario s = quick(simulated(fast_engine()), how == "miss" ? out_of_reach() : within_reach());
    if (how == "refused") s.requests = 0;
    if (how == "gone") s.target = endpoint{.url = "http://127.0.0.1:1"};
    if (how == "judged") s.slos = {};
    if (how == "many threads") {
        s.target = served();
        s.client.threads = 64;
    }
    const result r = run(s);
    for (const slo_verdict& v : r.verdicts()) std::printf("verdict: %s\n", to_string(v.outcome));
    std::printf("judged afterwards: %s, %s\n", to_string(judge(r, mean(tpot) <= 1_s).outcome),
                to_string(judge(r, mean(tpot) <= 0.5_ms).outcome));
}

int main(int argc, char** argv) {
    const std::string_view how = argc > 1 ? argv[1] : "";
    if (how == "serve") {
        engine e = fast_engine();
        if (argc > 3) e.decode_step = time_span::from_seconds(std::atof(argv[3]) / 1e3);
        return serve_simulated(e, std::atoi(argv[2]));
    }
    // Ends with 0 whatever its gate says, or what its run() found, which is for it to use.
    if (how == "unasked" || how == "explored") {
        const scenario s = quick(simulated(fast_engine()), out_of_reach());
        if (how == "unasked") gate(s);
        else run(s);
        return 0;
    }
    try {
        measure(how);
    } catch (const std::exception& e) {
        std::printf("exception: %s\n", e.what());
    }
    return exit_code();
}
