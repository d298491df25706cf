// the interface of sources of prompts
#pragma once

#include "core/base/bytes.hpp"
#include "core/dialects/request_body.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/tokens.hpp"

#include <cstddef>  // size_t
#include <functional>
#include <memory>  // shared_ptr
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

struct shorter_source;
/// Returns the tokens of a prompt and its answer that a server has room for, 0 if unknown. `model`
/// is its name in requests, "" if they name the target's.
using room_of_models = std::function<int(const std::string& model)>;

/// The source of a workload. It does not change, and its results depend on the arguments only.
struct prompt_source {
    virtual ~prompt_source() = default;
    virtual source_facts facts() const = 0;
    virtual std::size_t turns(std::size_t /* conversation */, const trace_parameters&) const {
        return 1;
    }
    /// Returns the steps that a position waits for, and those that wait for it.
    virtual graph_step step(const trace_position& at, const trace_parameters& t) const {
        return step_of_line(at.turn, turns(at.conversation, t));
    }
    virtual trace_item item(const trace_position&, const trace_parameters&) const { return {}; }
    virtual void fill(request_spec& r, const trace_position& at, const trace_parameters& t,
                      const prompt_parameters& w) const = 0;
    /// Returns the least number of tokens at the end of a prompt that nobody has sent before, from
    /// its first new word on; 0 if unknown, or if the same prompts are sent again.
    virtual double fresh_tokens(const trace_position&, const trace_parameters&,
                                const token_fit&) const {
        return 0;
    }
    virtual const wanted_answer* wanted(std::size_t /* conversation */,
                                        const trace_parameters&) const {
        return nullptr;
    }
    /// Returns the number of what it asks: the same where a prompt comes again.
    virtual std::size_t question(std::size_t conversation, const trace_parameters&) const {
        return conversation;
    }
    /// Leaves out conversations that a server has no room for; nullptr if it has room for all.
    virtual std::shared_ptr<const shorter_source> without_long(const room_of_models&,
                                                               bool /* is forced */) const {
        return nullptr;
    }
    /// These add everything that makes its traffic different.
    virtual void hash_all(fnv1a&, const trace_parameters&) const {}
    virtual void hash_conversation(fnv1a& h, std::size_t conversation,
                                   const trace_parameters& t) const = 0;
};
using traffic_source = std::shared_ptr<const prompt_source>;

struct shorter_source {
    traffic_source source{};
    std::string text{};  // of the workload
    long long left_out = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
