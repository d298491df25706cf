// Speech: an API whose answers are bytes of audio, and a metric of them. The time to the first audio is
// ttft, as it is of any content; what audio has of its own is how long it plays.
//
// POST /v1/audio/speech is OpenAI's, and that of vLLM-Omni, Kokoro-FastAPI, LocalAI, openedai-speech.
// With "pcm" the body is the samples alone, which come as they are made: 24,000 a second of 16 bits.
// There are no events, so each read of the body is a piece (answer_parts::pieces), all of which is content,
// and the answer ends with the body. Tokens, and so tpot and throughputs of them, mean nothing here.
#define LLMBENCH_MAIN
#include "llmbench.hpp"

using namespace llmbench;

namespace {

const api speech{
    .name = "openai_speech",
    .path = "/v1/audio/speech",
    .framed = answer_parts::pieces,
    .write = [](api_request& r) {
        r.text("model", r.model()).text("input", r.prompt()).text("voice", "alloy");
        r.text("response_format", "pcm");
    },
};

// How long it takes to make a second of audio: over 1 the listener waits in the middle.
const metric real_time_factor =
    of_request("real_time_factor", less_is_better, [](const request_view& r) {
        return r[e2e] / (r.content_bytes() / (24000 * 2));
    });

}  // namespace

TEST_CASE("a sentence is spoken at once, and faster than it is heard") {
    gate({
        .target = endpoint{.model = "tts-1", .api = speech},
        .workload = prompts({"The quick brown fox jumps over the lazy dog.",
                             "Please hold the line. Somebody will be with you shortly."}),
        .arrivals = closed_loop(2),
        .requests = 40,
        .slos = {
            p90(ttft) <= 1_s,  // to the first audio
            p90(real_time_factor) <= 0.8,
            goodput(ttft <= 2_s && real_time_factor <= 1) >= 90_pct,
        },
    });
}
