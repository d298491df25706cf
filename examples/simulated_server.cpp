// The simulated server alone, to try a client or a gate against:
//   ./simulated_server --port 8000 [--slots 32] [--decode-ms 12]
// It speaks OpenAI chat and completions, /v1/models, /tokenize, /health and /metrics, until ended.
#define LLMBENCH_IMPLEMENT
#define LLMBENCH_NO_DOCTEST
#include "llmbench.hpp"
#include "llmbench_embeddings.hpp"
#include "llmbench_simulated.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace llmbench;

int main(int argc, char** argv) {
    engine e;
    int port = 8000;
    for (int i = 1; i < argc; i += 2) {
        char* end = nullptr;
        const double value = i + 1 < argc ? std::strtod(argv[i + 1], &end) : -1;
        const bool number = end && *end == 0 && value >= 0;
        if (number && std::strcmp(argv[i], "--port") == 0 && value <= 65535) port = static_cast<int>(value);
        else if (number && std::strcmp(argv[i], "--slots") == 0 && value >= 1) e.slots = static_cast<long long>(value);
        else if (number && std::strcmp(argv[i], "--decode-ms") == 0 && value > 0) e.decode_step = time_span::from_seconds(value / 1e3);
        else {
            std::fprintf(stderr, "usage: %s [--port 0..65535] [--slots 1..] [--decode-ms above 0]\n", argv[0]);
            return 2;
        }
    }
    return serve_simulated(e, port);
}
