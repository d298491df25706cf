// the interface of sources of prompts
#pragma once

#include "core/base/bytes.hpp"
#include "core/dialects/request_body.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/sources.hpp"
#include "core/traffic/tokens.hpp"

#include <cstddef>  // size_t
#include <functional>
#include <memory>  // shared_ptr, make_shared
#include <string>
#include <utility>  // move

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
    virtual std::size_t turns(std::size_t conversation, const trace_parameters& t) const = 0;
    /// Returns the steps that a position waits for, and those that wait for it.
    virtual graph_step step(const trace_position& at, const trace_parameters& t) const = 0;
    virtual trace_item item(const trace_position& at, const trace_parameters& t) const = 0;
    virtual void fill(request_spec& r, const trace_position& at, const trace_parameters& t,
                      const prompt_parameters& w) const = 0;
    /// Returns the least number of tokens at the end of a prompt that nobody has sent before, from
    /// its first new word on; 0 if unknown, or if the same prompts are sent again.
    virtual double fresh_tokens(const trace_position& at, const trace_parameters& t,
                                const token_fit& fit) const = 0;
    virtual const wanted_answer* wanted(std::size_t conversation,
                                        const trace_parameters& t) const = 0;
    /// Leaves out conversations that a server has no room for; nullptr if it has room for all.
    virtual std::shared_ptr<const shorter_source> without_long(const room_of_models& room,
                                                               bool is_forced) const = 0;
    /// These add everything that makes its traffic different.
    virtual void hash_all(fnv1a& h, const trace_parameters& t) const = 0;
    virtual void hash_conversation(fnv1a& h, std::size_t conversation,
                                   const trace_parameters& t) const = 0;
};

/// Any S with facts(), fill() and hash_conversation(); its other functions are optional.
template <class S>
struct source_of final : prompt_source {
    explicit source_of(S s) : own(std::move(s)) {}
    source_facts facts() const override { return own.facts(); }
    std::size_t turns(std::size_t conversation, const trace_parameters& t) const override {
        if constexpr (requires { own.turns(conversation, t); }) return own.turns(conversation, t);
        else return 1;
    }
    graph_step step(const trace_position& at, const trace_parameters& t) const override {
        if constexpr (requires { own.step(at, t); }) return own.step(at, t);
        else return step_of_line(at.turn, turns(at.conversation, t));
    }
    trace_item item(const trace_position& at, const trace_parameters& t) const override {
        if constexpr (requires { own.item(at, t); }) return own.item(at, t);
        else return {};
    }
    void fill(request_spec& r, const trace_position& at, const trace_parameters& t,
              const prompt_parameters& w) const override {
        own.fill(r, at, t, w);
    }
    double fresh_tokens(const trace_position& at, const trace_parameters& t,
                        const token_fit& fit) const override {
        if constexpr (requires { own.fresh_tokens(at, t, fit); })
            return own.fresh_tokens(at, t, fit);
        else return 0;
    }
    const wanted_answer* wanted(std::size_t conversation,
                                const trace_parameters& t) const override {
        if constexpr (requires { own.wanted(conversation, t); }) return own.wanted(conversation, t);
        else return nullptr;
    }
    std::shared_ptr<const shorter_source> without_long(const room_of_models& room,
                                                       bool is_forced) const override {
        if constexpr (requires { own.without_long(room, is_forced); })
            return own.without_long(room, is_forced);
        else return nullptr;
    }
    void hash_all(fnv1a& h, const trace_parameters& t) const override {
        if constexpr (requires { own.hash_all(h, t); }) own.hash_all(h, t);
    }
    void hash_conversation(fnv1a& h, std::size_t conversation,
                           const trace_parameters& t) const override {
        own.hash_conversation(h, conversation, t);
    }
    S own;
};

/// A source of any type; copies share it.
class traffic_source {
public:
    traffic_source() : traffic_source(synthetic_prompts{}) {}
    template <class S>
    traffic_source(S source)
        : own_(std::make_shared<const source_of<S>>(std::move(source))), type_(&type<S>) {}
    const prompt_source* operator->() const { return own_.get(); }
    /// Returns nullptr if it has another type.
    template <class S>
    const S* as() const {
        if (type_ != &type<S>) return nullptr;
        return &static_cast<const source_of<S>*>(own_.get())->own;
    }

private:
    template <class S>
    static inline char type{};  // its address identifies S, without RTTI
    std::shared_ptr<const prompt_source> own_;
    const char* type_;
};

struct shorter_source {
    traffic_source source{};
    std::string text{};  // of the workload
    long long left_out = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
