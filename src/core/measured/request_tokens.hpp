// tokens of a variant's requests
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Means over the completed requests; for prompts, over those that report them.
struct request_tokens {
    double prompt = not_a_number, output = not_a_number;
};
inline request_tokens request_tokens_of(const repeat_list& variant, const selection& which = {}) {
    double prompts = 0, prompt = 0, outputs = 0, output = 0;
    for (const repeat_data& d : variant) {
        const selects selected(which, d);
        for (const record& r : d.records) {
            if (!selected.completed(r)) continue;
            prompts += r.prompt_tokens > 0;
            prompt += r.prompt_tokens;
            ++outputs;
            output += r.output_tokens;
        }
    }
    return {prompts > 0 ? prompt / prompts : not_a_number,
            outputs > 0 ? output / outputs : not_a_number};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
