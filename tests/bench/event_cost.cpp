// What our own code takes for an event of a flood, from the bytes of a read to the record, without the kernel and the files. Its
// instructions do not depend on what else the machine does: those of two rounds less those of one, by the events of a round,
//   for n in 1 2; do valgrind --tool=callgrind --callgrind-out-file=/dev/null event_cost plain 4 $n; done   says "Collected : N"
//   event_cost SHAPE [STREAMS [ROUNDS]]   answers of 2000 events, read in pieces of 32 KiB, one stream after the other
#include "core/answers/answer_reader.hpp"
#include "core/measured/request_log.hpp"

#include "flood_server.hpp"

using namespace llmbench;

static const api own{.name = "own", .path = "/v1/chat/completions",
                     .write = [](api_request& r) { r.text("model", r.model()); },
                     .read = [](api_event& e) {
                         e.content(e.text("choices.0.delta.content"));
                         e.finish(e.text("choices.0.finish_reason"));
                         e.output_tokens(e.number("usage.completion_tokens"));
                     },
                     .tells_usage = true};

int main(int argc, char** argv) {
    using enum bench::event_shape;
    const struct {
        std::string_view name;
        bench::event_shape shape;
        any_api api = openai_chat;
        bool keeps_text = false;
    } all[] = {{"plain", plain},
               {"escapes", escapes},
               {"reasoning", reasoning},
               {"usage", running_usage},
               {"kept", plain, openai_chat, true},
               {"responses", responses, openai_responses},
               {"anthropic", anthropic, llmbench::anthropic},
               {"ollama", ollama, llmbench::ollama},
               {"tgi", tgi, llmbench::tgi},
               {"llama_cpp", llama_cpp, llmbench::llama_cpp},
               {"own", plain, own}};
    const std::string_view asked = argc > 1 ? argv[1] : "";
    const std::size_t streams = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 64;
    const int rounds = argc > 3 ? std::atoi(argv[3]) : 20;
    for (const auto& s : all) {
        if (s.name != asked) continue;
        const std::string bytes = bench::stream_answer(2000, s.shape).bytes;
        detail::vector<detail::answer_reader> readers(streams);
        detail::request_log log;
        long long now = 1000000000, events = 0;
        const double before = bench::cpu_seconds();
        for (int k = 0; k < rounds; ++k) {
            for (detail::answer_reader& r : readers)
                r.reset(detail::traits_of(s.api), {.most_prompt_tokens = 100, .most_output_tokens = 2000, .expects_usage = true,
                                                   .is_kept = s.keeps_text});
            for (std::string_view rest = bytes; !rest.empty(); rest.remove_prefix(std::min<std::size_t>(rest.size(), 32768)))
                for (detail::answer_reader& r : readers) r.feed(rest.substr(0, 32768), now += 50000);
            for (std::size_t i = 0; i < streams; ++i) {
                record r;
                r.scheduled_ns = r.dispatched_ns = r.sent_ns = 900000000;
                readers[i].timeline().write_to(r);
                if (r.status != request_status::ok) return std::fprintf(stderr, "event_cost: %s\n", detail::str(r.error).c_str()), 1;
                events += r.events;
                log.add(i, std::move(r), readers[i].timeline().gaps_us());
            }
        }
        std::printf("%s: %lld events, %.4f us of CPU each\n", argv[1], events, 1e6 * (bench::cpu_seconds() - before) / static_cast<double>(events));
        return 0;
    }
    std::fprintf(stderr, "event_cost: the first argument is one of");
    for (const auto& s : all) std::fprintf(stderr, " %s", s.name.data());
    std::fprintf(stderr, "\n");
    return 2;
}
