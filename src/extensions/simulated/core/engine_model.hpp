// engine model
// A continuous-batching engine in virtual time. The simulated server uses it with a real clock; a
// Monte Carlo study runs it at full speed.
#pragma once

#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "extensions/simulated/api.hpp"

#include <algorithm>  // min, max
#include <cmath>  // floor
#include <cstdint>  // uint64_t
#include <deque>
#include <set>  // the engine's cached blocks
#include <string>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Throws std::invalid_argument with the field and the allowed values. A step must take time, or
/// time would not advance.
inline void check_engine(const engine& e) {
    const auto number = [](const char* field, double v, double least, double most,
                           const char* unit = "") {
        if (!(v >= least && v <= most))  // refuses NaN, too
            refuse({"engine.", field, printed(" is %g%s: from %g to %g%s is allowed", v, unit,
                                              least, most, unit)});
    };
    const auto seconds = [&](const char* field, const time_span& t, double least = 0) {
        number(field, t.seconds(), least, 3600, " s");
    };
    const auto count = [&](const char* field, const types::whole& n, double least,
                           double most = 1e9) {
        number(field, static_cast<double>(static_cast<long long>(n)), least, most);
    };
    count("slots", e.slots, 1);
    seconds("decode_step", e.decode_step, 1e-6);
    seconds("step_per_sequence", e.step_per_sequence);
    seconds("prefill_per_token", e.prefill_per_token);
    count("prefill_budget", e.prefill_budget, 1);
    count("queue_limit", e.queue_limit, 0);
    count("max_model_len", e.max_model_len, 2);
    count("kv.layers", e.kv.layers, 1, 1e6);
    count("kv.kv_heads", e.kv.kv_heads, 1, 1e6);
    count("kv.head_size", e.kv.head_size, 1, 1e6);
    count("kv.bytes_per_value", e.kv.bytes_per_value, 1, 1e6);
    number("kv.memory_bytes", e.kv.memory_bytes, 1, 1e18);
    count("kv.block_tokens", e.kv.block_tokens, 1, 1e6);
    count("keeps_responses", e.keeps_responses, 0);
    count("tokens_per_event", e.tokens_per_event, 1, 1e6);
    seconds("adapter_load", e.adapter_load);
    number("jitter", e.jitter, 0, 10);
    number("reasoning", e.reasoning.value, 0, 1);
    seconds("faults.delay", e.faults.delay);
    number("faults.error_rate", e.faults.error_rate.value, 0, 1);
    number("faults.reset_rate", e.faults.reset_rate.value, 0, 1);
    number("faults.stall_rate", e.faults.stall_rate.value, 0, 1);
    number("faults.garbage_rate", e.faults.garbage_rate.value, 0, 1);
    number("faults.wrong_answers", e.faults.wrong_answers.value, 0, 1);
    number("faults.wrong_in_batch", e.faults.wrong_in_batch.value, 0, 1);
    number("faults.forgets", e.faults.forgets.value, 0, 1);
    count("faults.stop_after", e.faults.stop_after, 0);
    count("faults.restart_after", e.faults.restart_after, 0);
}

/// All settings that its speed depends on, except seed and faults.
inline std::string engine_text(const engine& e) {
    const auto block = static_cast<long long>(e.kv.block_tokens);
    const std::string cache = !e.prefix_cache ? "no prefix cache, "
                              : block == 16   ? ""  // unsaid since before it was a setting
                                              : printed("blocks of %lld tokens, ", block);
    return printed("simulated, %lld slots, steps of %g s + %g s a sequence + %g s a prompt token, "
                   "%lld tokens a step, ", static_cast<long long>(e.slots), e.decode_step.seconds(),
                   e.step_per_sequence.seconds(), e.prefill_per_token.seconds(),
                   static_cast<long long>(e.prefill_budget)) +
           printed("%s%s%s%lld tokens an event, jitter %g",
                   e.chunked_prefill ? "" : "whole prompts, ",
                   e.static_batching ? "static batches, " : "",
                   cache.c_str(),
                   static_cast<long long>(e.tokens_per_event), e.jitter);
}

inline double kv_capacity_tokens(const kv_cache& c) {
    const double bytes = 2.0 * static_cast<double>(c.layers) * static_cast<double>(c.kv_heads) *
                         static_cast<double>(c.head_size) * static_cast<double>(c.bytes_per_value);
    return std::floor(c.memory_bytes / bytes);
}

class engine_model {
public:
    struct request {
        std::uint64_t id = 0;
        int prompt_tokens = 1;
        int output_tokens = 1;
        // Of the prompt: a hash for each whole block with all earlier ones.
        vector<std::uint64_t> blocks{};
    };
    enum class admission : unsigned char { accepted, queue_full, too_long };
    /// Times of its states, in seconds of the engine's time.
    struct times {
        double arrived = 0, admitted = 0, first_token = 0, last_token = 0;
    };
    struct emission {
        std::uint64_t id = 0;
        int tokens = 0;
        bool finished = false;
        int cached = 0;  // prompt tokens found in the cache
        times when{};    // so far: its last token has these times
        bool first = false;
        double gap = 0;  // seconds since the previous tokens, 0 for the first
    };
    struct counters {
        double prompt_tokens = 0, generated_tokens = 0, finished = 0, cache_queries = 0,
               cache_hits = 0, busy_s = 0;
        double cached_tokens = 0;               // of the prompt tokens
        double token_steps = 0, step_tokens = 0;  // steps that gave tokens; of these and prompts
    };

    explicit engine_model(const engine& e)
        : e_(e),
          random_(static_cast<std::uint64_t>(static_cast<long long>(e.seed)), 77),
          capacity_(kv_capacity_tokens(e.kv)),
          block_tokens_(static_cast<int>(static_cast<long long>(e.kv.block_tokens))) {}

    const engine& settings() const { return e_; }
    int block_tokens() const { return block_tokens_; }
    admission submit(double now, request r) {
        const double tokens = r.prompt_tokens + r.output_tokens;
        if (tokens > static_cast<double>(e_.max_model_len) || tokens > capacity_)
            return admission::too_long;
        if (!e_.chunked_prefill && r.prompt_tokens > e_.prefill_budget) return admission::too_long;
        if (e_.queue_limit > 0 && static_cast<long long>(waiting_.size()) >= e_.queue_limit)
            return admission::queue_full;
        waiting_.push_back({.r = std::move(r), .when = {.arrived = now}});
        if (!stepping_) begin_step(now);
        return admission::accepted;
    }
    /// Returns false if no such request waits or runs.
    bool cancel(std::uint64_t id) {
        bool had = erase_if(waiting_, [&](const sequence& s) { return s.r.id == id; }) > 0;
        for (sequence& s : running_)
            if (s.r.id == id) had |= !std::exchange(s.cancelled, true);
        return had;
    }
    /// Keeps a block that an answer has filled: a hash of it and all earlier ones.
    void keep_block(std::uint64_t block) {
        if (!e_.prefix_cache || !cached_.insert(block).second) return;
        cached_order_.push_back(block);
        if (static_cast<double>(cached_order_.size()) * block_tokens_ <= capacity_) return;
        cached_.erase(cached_order_.front());
        cached_order_.pop_front();
    }
    void forget_blocks() {
        cached_.clear();
        cached_order_.clear();
    }
    void hold_up(double seconds) { held_up_s_ += seconds; }
    /// No step begins until it resumes; requests are taken meanwhile, and wait.
    void pause() { is_paused_ = true; }
    void resume(double now) {
        is_paused_ = false;
        if (!stepping_) begin_step(now);
    }
    /// The end of the running step, infinite if idle.
    double step_end() const { return stepping_ ? step_end_ : infinity; }

    /// Ends the running step, starts the next one, and returns the tokens.
    vector<emission> finish_step() {
        vector<emission> out;
        for (sequence& s : running_) {
            if (s.cancelled) continue;
            if (s.decoding) {
                const int n = std::min(std::max(1, static_cast<int>(e_.tokens_per_event)),
                                       s.r.output_tokens - s.produced);
                out.push_back(given(s, n));
            } else if (s.computed >= s.r.prompt_tokens) {
                s.decoding = true;
                counters_.prompt_tokens += s.r.prompt_tokens;
                counters_.cached_tokens += s.cached;
                counters_.step_tokens += s.r.prompt_tokens;
                out.push_back(given(s, 1));
            }
        }
        for (const emission& e : out) {
            counters_.generated_tokens += e.tokens;
            counters_.step_tokens += e.tokens;
            counters_.finished += e.finished;
        }
        counters_.token_steps += !out.empty();
        erase_if(running_, [&](const sequence& s) {
            const bool gone = (s.cancelled && !e_.faults.leaks_slots) ||
                              (s.decoding && s.produced >= s.r.output_tokens);
            if (gone) reserved_ -= s.r.prompt_tokens + s.r.output_tokens;
            return gone;
        });
        stepping_ = false;
        begin_step(step_end_);
        return out;
    }

    std::size_t running() const { return running_.size(); }
    std::size_t waiting() const { return waiting_.size(); }
    double cache_usage() const { return capacity_ > 0 ? reserved_ / capacity_ : 0; }
    const counters& totals() const { return counters_; }

private:
    struct sequence {
        request r{};
        int computed = 0;  // prompt tokens done
        int cached = 0;    // of them found in the cache
        int produced = 0;
        bool decoding = false;
        bool cancelled = false;
        times when{};
    };

    /// Gives a sequence tokens at the end of the running step.
    emission given(sequence& s, int tokens) const {
        const bool first = s.produced == 0;
        if (first) s.when.first_token = step_end_;
        const double before = std::exchange(s.when.last_token, step_end_);
        s.produced += tokens;
        return {s.r.id, tokens, s.produced >= s.r.output_tokens, s.cached, s.when, first,
                first ? 0 : step_end_ - before};
    }
    void begin_step(double now) {
        if (is_paused_) return;
        admit(now);
        if (all_of(running_, [](const sequence& s) { return s.cancelled; })) return;
        long long budget = std::max(1ll, static_cast<long long>(e_.prefill_budget));
        for (const sequence& s : running_) budget -= s.decoding;
        double prefilled = 0, active = 0;
        for (sequence& s : running_) {
            if (s.decoding) { ++active; continue; }
            const bool begins = s.computed == 0;
            const int from = begins ? known_tokens(s.r) : s.computed;
            const int left = s.r.prompt_tokens - from;
            const int n = static_cast<int>(std::min<long long>(left, std::max(budget, 0ll)));
            // Without chunking a prompt waits for a step that takes all of it; alone it always
            // runs.
            if (n <= 0 || (!e_.chunked_prefill && n < left && active + prefilled > 0)) continue;
            const int taken = e_.chunked_prefill ? n : left;
            if (begins) note_lookup(s, from);
            s.computed = from + taken;
            keep_prompt(s.r, from, s.computed);
            budget -= taken;
            prefilled += taken;
            ++active;
        }
        const double base = e_.decode_step.seconds() + e_.step_per_sequence.seconds() * active +
                            e_.prefill_per_token.seconds() * prefilled;
        const double took = base * std::max(0.1, 1 + e_.jitter * random_.normal()) +
                            std::exchange(held_up_s_, 0);
        counters_.busy_s += took;
        step_end_ = now + took;
        stepping_ = true;
    }
    void admit(double now) {
        if (e_.static_batching && !running_.empty()) return;
        while (!waiting_.empty() && static_cast<long long>(running_.size()) <
                                        std::max(1ll, static_cast<long long>(e_.slots))) {
            const request& next = waiting_.front().r;
            const double needs = next.prompt_tokens + next.output_tokens;
            if (reserved_ + needs > capacity_)
                break;  // memory is reserved at the start, nothing is preempted
            reserved_ += needs;
            sequence s = std::move(waiting_.front());
            waiting_.pop_front();
            // Requests that come while a step ends late have not waited.
            s.when.admitted = std::max(now, s.when.arrived);
            running_.push_back(std::move(s));
        }
    }
    /// Of its prompt, in the cache now. Its last token is computed always, since an answer starts
    /// there.
    int known_tokens(const request& r) const {
        int tokens = 0;
        for (const std::uint64_t block : r.blocks) {
            if (tokens + block_tokens_ >= r.prompt_tokens || !cached_.contains(block)) break;
            tokens += block_tokens_;
        }
        return tokens;
    }
    void note_lookup(sequence& s, int known) {
        s.cached = known;
        if (!e_.prefix_cache) return;
        counters_.cache_queries += s.r.prompt_tokens;
        counters_.cache_hits += known;
    }
    /// As in vLLM, a sequence that begins in the same step finds the blocks, too: all keys and
    /// values are written before they are read.
    void keep_prompt(const request& r, int from, int to) {
        const auto end = std::min(static_cast<std::size_t>(to / block_tokens_), r.blocks.size());
        for (auto i = static_cast<std::size_t>(from / block_tokens_); i < end; ++i)
            keep_block(r.blocks[i]);
    }

    engine e_;
    generator random_;
    double capacity_;
    int block_tokens_;
    double reserved_ = 0;
    double step_end_ = 0, held_up_s_ = 0;
    bool stepping_ = false, is_paused_ = false;
    std::deque<sequence> waiting_{};
    vector<sequence> running_{};
    std::set<std::uint64_t> cached_{};
    std::deque<std::uint64_t> cached_order_{};
    counters counters_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
