// prompts of a user's function
// A source of traffic; its interface is in traffic_source.hpp.
#pragma once

#include "api/workload.hpp"
#include "core/base/bytes.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/files/dialogues.hpp"
#include "core/traffic/conversation_sources.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/tokens.hpp"

#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <exception>
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

struct user_prompts {
    prompt (*own)(request_index, draw&) = nullptr;
    bool salted = true;

    /// Throws std::invalid_argument if the function returns a prompt that cannot be sent.
    prompt of(request_index i, std::uint64_t seed) const {
        const std::string given =
            printed("workload is generated: for request %lld its function ", i);
        generator random(seed, streams::places + static_cast<std::uint64_t>(i));
        draw drawn(random);
        prompt p;
        std::string why;
        try {
            p = own(i, drawn);
        } catch (const std::exception& e) {
            why = "throws: " + printable(e.what(), 200);
        } catch (...) {
            why = "throws";
        }
        if (why.empty() && p.text.empty()) why = "gives an empty prompt";
        if (why.empty() && !(p.output_tokens >= 0 && p.output_tokens <= 10000000))
            why = printed("asks for %lld output tokens: they run from 0 to 10000000",
                          static_cast<long long>(p.output_tokens));
        if (!why.empty()) refuse({given, why});
        return p;
    }
    prompt at(std::size_t conversation, const trace_parameters& t) const {
        return of(static_cast<request_index>(conversation), t.seed);
    }

    source_facts facts() const { return {.repeats_prompts = !salted}; }
    trace_item item(const trace_place& at_, const trace_parameters& t) const {
        const prompt p = at(at_.conversation, t);
        return {estimated_tokens(str(p.text)),
                static_cast<int>(static_cast<long long>(p.output_tokens))};
    }
    void fill(request_spec& r, const trace_place& at_, const trace_parameters& t,
              const prompt_parameters& w) const {
        const prompt p = at(at_.conversation, t);
        if (p.output_tokens > 0) r.max_tokens = static_cast<int>(p.output_tokens);
        r.force_length = r.force_length && r.max_tokens > 0;
        r.prompt = str(p.text);
        if (salted) add_salt(r.prompt, at_, w);
    }
    double fresh_tokens(const trace_place& at_, const trace_parameters& t, const token_fit&) const {
        return salted ? static_cast<double>(at(at_.conversation, t).text.size()) / 8 : 0;
    }
    void hash_conversation(fnv1a& h, std::size_t conversation, const trace_parameters& t) const {
        const prompt p = at(conversation, t);
        add_text(h, str(p.text));
        h.add(p.output_tokens);
    }
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
