// llmbench_simulated 1.0.0-rc.1: simulated(), virtual time and rehearsals. Include it after llmbench.hpp.
// Put together from src/ by ci/assemble.py: edit there, not here.
//
// Part one: declarations
//   [A] the simulated server as a target
// Part three: the simulated server, its virtual world, rehearsals
//
// SPDX-License-Identifier: MIT
//
// Copyright (c) 2026 the llmbench authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction,
// including without limitation the rights to use, copy, modify, merge, publish, distribute,
// sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all copies or
// substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
// NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
// NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
// DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

#ifndef LLMBENCH_HPP
#error "llmbench_simulated.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_SIMULATED_HPP
#define LLMBENCH_SIMULATED_HPP
static_assert(__builtin_strcmp(LLMBENCH_RELEASE_, "llmbench_1.0.0rc.1") == 0,
              "llmbench_simulated.hpp is of 1.0.0-rc.1, but llmbench.hpp is " LLMBENCH_RELEASE_
              ": take both from one release");

// ===== [A] the simulated server as a target ======================================================

namespace llmbench {
inline namespace v1 {

/// Memory for attention keys and values. A token takes 2 x layers x kv_heads x head_size x
/// bytes_per_value bytes.
struct kv_cache {
    types::whole layers = 32;
    types::whole kv_heads = 8;
    types::whole head_size = 128;
    types::whole bytes_per_value = 2;
    double memory_bytes = 16e9;
    types::whole block_tokens = 16;  ///< of the prefix cache, which keeps whole blocks
};

/// Faults of the simulated server, off by default.
struct engine_faults {
    time_span delay{};            ///< added to every answer's first byte
    fraction error_rate{};        ///< fraction of requests answered with HTTP 500
    fraction reset_rate{};        ///< fraction of answers cut by a reset after the first content
    fraction stall_rate{};        ///< fraction of answers without further bytes after it
    fraction garbage_rate{};      ///< fraction of answers that continue with bytes that are no HTTP
    fraction wrong_answers{};     ///< of the questions it could answer; always the same ones
    fraction wrong_in_batch{};    ///< the same for those in a batch with others
    types::whole stop_after = 0;  ///< the server ends after so many requests; 0: never
    /// Its metrics restart after so many requests, as after a server's restart; 0: never.
    types::whole restart_after = 0;
    bool metrics_hang = false;  ///< its metrics page is never answered
    bool leaks_slots = false;   ///< a running request whose client leaves keeps its slot
    fraction forgets{};           ///< fraction of requests whose previous response is unknown
    bool ignores_history = false;  ///< previous_response_id means nothing to it
};

/// The simulated server's engine: continuous batching in steps. A step takes `decode_step +
/// step_per_sequence * running + prefill_per_token * prompt tokens`, and gives every running
/// sequence its next token.
struct in_llmbench_simulated_hpp::engine {
    types::whole slots = 32;  ///< maximum of running sequences
    time_span decode_step = time_span::from_seconds(0.012);
    time_span step_per_sequence = time_span::from_seconds(0.0001);
    time_span prefill_per_token = time_span::from_seconds(0.00006);
    types::whole prefill_budget = 2048;  ///< tokens a step, running sequences included
    bool chunked_prefill = true;   ///< false: whole prompts only; one over the budget gets HTTP 400
    bool static_batching = false;  ///< true: a new batch starts when the old one has ended
    types::whole queue_limit = 0;  ///< maximum of waiting requests, HTTP 429 beyond; 0: no limit
    types::whole max_model_len = 32768;  ///< prompt + output tokens of one request
    kv_cache kv{};
    bool prefix_cache = true;  ///< shared starts of prompts are not computed again
    types::whole keeps_responses = 10000;  ///< the last ones that it stores; older are unknown
    types::whole tokens_per_event = 1;   ///< speculative decoding: tokens a sequence gains a step
    fraction reasoning{};                ///< fraction of an answer's tokens, at its start
    /// Time to answer POST /v1/load_lora_adapter; no step begins meanwhile.
    time_span adapter_load{};
    double jitter = 0.02;                ///< relative standard deviation of a step's time
    types::whole seed = 1;
    engine_faults faults{};
};
namespace detail {
/// If this is not found, the file with LLMBENCH_MAIN or LLMBENCH_IMPLEMENT lacks the header in the
/// name.
extern const extension* const include_llmbench_simulated_hpp_where_LLMBENCH_MAIN_is;
}  // namespace detail

struct simulated_server {
    engine settings{};
    operator any_target() const {
        return detail::extension_value{
            detail::box::make(settings),
            detail::include_llmbench_simulated_hpp_where_LLMBENCH_MAIN_is};
    }
};
/// The built-in server with a model of its compute. A load on it runs in virtual time, without
/// waiting, and repeats exactly; beside a baseline or setting that is not simulated, and in
/// serve_simulated(), it uses real sockets.
inline simulated_server simulated(const engine& e = {}) { return {e}; }

/// Serves the simulated engine on 127.0.0.1 until SIGINT or SIGTERM; port 0 takes a free one.
/// Prints its URL to standard output. Returns 0, or 1 if the port is not available.
int serve_simulated(const engine& e, int port)
    asm("include_llmbench_simulated_hpp_where_LLMBENCH_MAIN_is_to_serve_it");

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_SIMULATED_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_SIMULATED_IMPLEMENTED)
#define LLMBENCH_SIMULATED_IMPLEMENTED
#if !defined(__GXX_RTTI)
#error "llmbench_simulated.hpp's implementation needs RTTI: compile the one file that \
has it without -fno-rtti; files with gates may go without"
#include <llmbench stops here>
#endif

#include <algorithm>  // min, max, clamp, sort
#include <array>
#include <atomic>
#include <cerrno>  // ECONNRESET, errno
#include <charconv>  // from_chars, to_chars
#include <cmath>  // floor, abs, isinf, fabs, isfinite, isnan, log, log1p, sqrt, ceil
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t, uint16_t
#include <cstring>  // memcpy
#include <ctime>  // gmtime_r
#include <deque>
#include <exception>
#include <functional>  // what stands behind connections, what is to be done at a time, ...
#include <initializer_list>
#include <iostream>  // cerr
#include <iterator>  // size
#include <map>  // multimap
#include <memory>  // enable_shared_from_this, shared_ptr, weak_ptr, static_pointer_cast, ...
#include <optional>
#include <set>  // the engine's cached blocks, adapters by name
#include <span>
#include <stdexcept>  // runtime_error, logic_error, invalid_argument
#include <string>
#include <string_view>
#include <thread>
#include <utility>  // exchange, move, pair, swap, forward

#include <fcntl.h>  // O_NONBLOCK
#include <picojson.h>  // JSON of servers

// ===== [E] engine model ==========================================================================
// A continuous-batching engine in virtual time. The simulated server uses it with a real clock; a
// Monte Carlo study runs it at full speed.

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

// ===== [E] requests to the simulated server ======================================================

/// Only for requests of ours and of clients like curl.
class request_parser {
public:
    std::string method{}, path{}, body{};  // the path without its query
    vector<header_field> fields{};
    bool keep_alive = true;

    std::string_view header(std::string_view name) const {
        for (const header_field& f : fields)
            if (same_ignoring_case(f.name, name)) return f.value;
        return {};
    }
    /// Returns true for a complete request; false with `broken()` for an invalid one.
    bool feed(std::string_view bytes) {
        raw_.append(bytes);
        if (!head_done_ && !read_head()) return false;
        if (is_chunked_) return take_chunks();
        if (raw_.size() < length_) return false;
        body = raw_.substr(0, length_);
        raw_.erase(0, length_);
        return true;
    }
    bool broken() const { return broken_; }
    /// Whether the client waits for "100 Continue" before it sends the body; asked once.
    bool waits_to_continue() { return head_done_ && std::exchange(waits_to_continue_, false); }
    /// Prepares for the next request on the connection; early bytes are kept.
    void reset() {
        std::string rest = std::move(raw_);
        *this = request_parser();
        raw_ = std::move(rest);
    }

private:
    bool read_head() {
        const std::size_t end = raw_.find("\r\n\r\n", searched_to_);
        if (end == std::string::npos) {
            broken_ = raw_.size() > most_head;
            searched_to_ = std::max<std::size_t>(raw_.size(), 3) - 3;
            return false;
        }
        const std::string_view head = std::string_view(raw_).substr(0, end);
        const std::string_view line = head.substr(0, head.find("\r\n"));
        const std::size_t a = line.find(' '), b = line.rfind(' ');
        if (a == std::string_view::npos || a == b || line.substr(b + 1, 7) != "HTTP/1.")
            return !(broken_ = true);
        method = line.substr(0, a);
        path = line.substr(a + 1, b - a - 1);
        path.resize(std::min(path.find('?'), path.size()));
        keep_alive = line.back() == '1';
        const bool has_fields = for_each_field(
            head, [&](std::string_view name, std::string_view value, std::string_view) {
                fields.push_back({std::string(name), std::string(value)});
            });
        if (!has_fields) return !(broken_ = true);
        for (const header_field& f : fields) {
            if (!same_ignoring_case(f.name, "content-length")) continue;
            const auto length = parsed_number<std::size_t>(f.value);
            if (!length) return !(broken_ = true);
            length_ = *length;
        }
        is_chunked_ = same_ignoring_case(header("transfer-encoding"), "chunked");
        if (length_ > max_body || (!is_chunked_ && !header("transfer-encoding").empty()))
            return !(broken_ = true);
        if (lists(header("connection"), "close")) keep_alive = false;
        waits_to_continue_ = same_ignoring_case(header("expect"), "100-continue");
        raw_.erase(0, end + 4);
        return head_done_ = true;
    }
    /// Returns true once the last chunk is there. Trailers are not read.
    bool take_chunks() {
        std::size_t at = 0;
        bool is_whole = false;
        for (std::size_t eol; !is_whole && (eol = raw_.find("\r\n", at)) != std::string::npos;) {
            std::size_t n = max_body;
            std::from_chars(raw_.data() + at, raw_.data() + eol, n, 16);
            if ((broken_ = n >= max_body || body.size() + n >= max_body)) return false;
            if (raw_.size() < eol + n + 4) break;
            body.append(raw_, eol + 2, n);
            at = eol + n + 4;
            is_whole = n == 0;
        }
        raw_.erase(0, at);
        broken_ = !is_whole && raw_.size() > most_head && raw_.find("\r\n") == std::string::npos;
        return is_whole;
    }
    static constexpr std::size_t max_body = 64u << 20, most_head = 64 * 1024;
    std::string raw_{};
    std::size_t length_ = 0;
    std::size_t searched_to_ = 0;  // there is no end of the head before
    bool head_done_ = false;
    bool waits_to_continue_ = false;
    bool is_chunked_ = false;
    bool broken_ = false;
};

/// One request for tokens, by any API.
struct question {
    api_format api = openai_chat;
    bool streamed = true;
    bool wants_usage = false;  // with a stream, where it is optional
    bool stops = false;        // ends by itself before the length asked for
    int prompt_tokens = 1;
    int output_tokens = 1;
    int most_tokens = 0;       // asked for; 0: the request names none
    bool is_forced = false;    // it must not end before that
    int reasoning_tokens = 0;  // included in output_tokens
    int documents = 1;         // documents to rank, or inputs
    maybe<long long> result{};  // of the arithmetic in the prompt
    double rank = 0;            // of its words among all questions, 0 to 1
    std::uint64_t words = 0;    // seed of the answer's words, 0: the request's number
    vector<std::uint64_t> hashes{};  // of each prompt token with all before it
    std::uint64_t last_hash = 0;     // of them, later of the answer's words so far
};

inline maybe<api_format> api_at(std::string_view path) {
    if (path.substr(0, 11) == "/v2/models/") return triton;
    if (path.ends_with("/rerank") && api_named("rerank")) return api_format::rerank;
    for (std::size_t i = 0; i < std::size(apis); ++i)
        if (path == apis[i].path || path == apis[i].whole_path) return static_cast<api_format>(i);
    return {};
}
/// Three APIs have the path /generate, two /v1/score; their requests differ.
inline api_format api_of(api_format at, const picojson::value& body) {
    if (at == api_format::score) return member(body, "items") ? api_format::sglang_score : api_format::score;
    if (at != tgi && at != sglang) return at;
    if (member(body, "inputs")) return tgi;
    return member(body, "text") || member(body, "input_ids") ? sglang : plain_text;
}

/// Adds text and token ids at any depth.
inline void add_prompt(std::string& prompt, const picojson::value& v) {
    if (v.is<std::string>() || v.is<double>()) prompt += v.to_str() + " ";
    if (v.is<picojson::array>())
        for (const picojson::value& one : v.get<picojson::array>()) add_prompt(prompt, one);
    for (const char* name : {"content", "text"})
        if (const picojson::value* said = member(v, name)) add_prompt(prompt, *said);
}
/// Returns all text and token ids, separated by spaces.
inline std::string prompt_of(const picojson::value& body) {
    std::string prompt;
    for (const char* name : {"prompt", "inputs", "text", "input_ids", "text_input", "system",
                             "instructions", "input", "query", "text_1", "documents", "text_2",
                             "items", "messages"})
        if (const picojson::value* said = member(body, name)) add_prompt(prompt, *said);
    return prompt;
}
/// One token each.
inline vector<std::string_view> words_of(std::string_view s) {
    vector<std::string_view> words;
    std::size_t at = 0;
    while ((at = s.find_first_not_of(" \t\n\r", at)) != std::string_view::npos) {
        const std::size_t end = std::min(s.find_first_of(" \t\n\r", at), s.size());
        words.push_back(s.substr(at, end - at));
        at = end;
    }
    return words;
}
/// A hash of a word with all before it, of which `before` is one.
inline std::uint64_t continued_hash(std::uint64_t before, std::string_view word) {
    fnv1a h;
    h.add(static_cast<long long>(before));
    h.add(word.data(), word.size());
    return mixed(h.value());
}
inline vector<std::uint64_t> hashes_of(const vector<std::string_view>& words) {
    vector<std::uint64_t> hashes;
    std::uint64_t hash = 0;
    for (const std::string_view word : words)
        hashes.push_back(hash = continued_hash(hash, word));
    return hashes;
}
/// The hash of each whole block: that of its last token.
inline vector<std::uint64_t> blocks_of(const vector<std::uint64_t>& hashes,
                                       int block_tokens) {
    vector<std::uint64_t> blocks;
    const auto step = static_cast<std::size_t>(block_tokens);
    for (std::size_t end = step; end <= hashes.size(); end += step)
        blocks.push_back(hashes[end - 1]);
    return blocks;
}

/// The largest number with these names, at the top of the body or at the API's place; -1: none.
inline int asked_count(const picojson::value& body, std::initializer_list<const char*> names) {
    int n = -1;
    const std::initializer_list<const picojson::value*> places = {
        &body, member(body, "parameters"), member(body, "options"),
        member(body, "sampling_params")};
    for (const picojson::value* at : places)
        for (const char* name : names)
            if (at) n = std::max(n, count_member(*at, name));
    return n;
}
inline std::optional<bool> flag_in(const picojson::value* at, const char* name) {
    const picojson::value* m = at ? member(*at, name) : nullptr;
    return m && m->is<bool>() ? std::optional(m->get<bool>()) : std::nullopt;
}
/// Greedy decoding gives the same words for the same prompt.
inline bool asks_for_greedy(const picojson::value& body) {
    for (const picojson::value* at : {&body, member(body, "parameters"), member(body, "options"),
                                      member(body, "sampling_params")}) {
        const picojson::value* t = at ? member(*at, "temperature") : nullptr;
        if ((t && t->is<double>() && t->get<double>() == 0) ||
            (at && member(*at, "do_sample") && flag_in(at, "do_sample") != true))
            return true;
    }
    return false;
}
inline bool asks_for_stream(api_format api, std::string_view path, const picojson::value& body) {
    if (api == plain_text) return true;
    if (api == tgi || api == triton) return path.ends_with("generate_stream");
    return flag_in(&body, "stream").value_or(api == ollama || api == ollama_generate);
}

/// The simulated server only knows arithmetic: the result of the last two whole numbers with +, -
/// or * between them.
inline maybe<long long> result_of(const vector<std::string_view>& words) {
    maybe<long long> result;
    for (std::size_t i = 2; i < words.size(); ++i) {
        const auto number = [](std::string_view s) {
            while (!s.empty() && (s.back() == '?' || s.back() == '.')) s.remove_suffix(1);
            const auto n = parsed_number<int>(s);
            return n && *n >= 0 ? n : std::nullopt;
        };
        const auto a = number(words[i - 2]), b = number(words[i]);
        if (!a || !b) continue;
        const long long x = *a, y = *b;
        if (words[i - 1] == "+") result = x + y;
        if (words[i - 1] == "-") result = x - y;
        if (words[i - 1] == "*") result = x * y;
    }
    return result;
}

/// Responses that the server stores: by its id all that was said up to its end.
class stored_responses {
public:
    explicit stored_responses(std::size_t most) : most_(most) {}
    maybe<std::string> find(const std::string& id) const {
        const auto found = said_.find(id);
        return found == said_.end() ? maybe<std::string>() : found->second;
    }
    void add(const std::string& id, std::string said) {
        said_[id] = std::move(said);
        in_order_.push_back(id);
        for (; in_order_.size() > most_; in_order_.pop_front()) said_.erase(in_order_.front());
    }

private:
    std::size_t most_;
    std::map<std::string, std::string> said_{};
    std::deque<std::string> in_order_{};
};
inline std::string input_of(const picojson::value& body) {
    std::string said;
    if (const picojson::value* input = member(body, "input")) add_prompt(said, *input);
    return said;
}
/// The request with what was said before in front of its input.
inline picojson::value with_history(const picojson::value& body, const std::string& said) {
    if (said.empty()) return body;
    picojson::object all = body.get<picojson::object>();
    picojson::array input{picojson::value(said)};
    if (const picojson::value* own = member(body, "input")) input.push_back(*own);
    all["input"] = picojson::value(input);
    return picojson::value(all);
}

inline question question_of(api_format api, std::string_view path, const picojson::value& body) {
    question q;
    q.api = api;
    q.streamed = asks_for_stream(api, path, body);
    q.wants_usage = true == (api == triton
                                 ? flag_in(&body, "return_num_output_tokens")
                                 : flag_in(member(body, "stream_options"), "include_usage"));
    const std::string prompt = prompt_of(body);
    const vector<std::string_view> words = words_of(prompt);
    q.hashes = hashes_of(words);
    const vector<std::uint64_t>& hashes = q.hashes;
    if (!hashes.empty()) q.last_hash = hashes.back();
    q.result = result_of(words);
    if (q.result) q.rank = generator(hashes.back(), 98).uniform();
    if (asks_for_greedy(body) && !hashes.empty()) q.words = hashes.back();
    q.prompt_tokens = std::max(1, static_cast<int>(hashes.size()));
    int most = asked_count(body, {"max_tokens", "max_completion_tokens", "max_output_tokens",
                                  "max_new_tokens", "n_predict", "num_predict"});
    q.most_tokens = std::max(most, 0);
    if (most <= 0) most = 128;
    q.is_forced =
        traits_of(api).forces_lengths &&
        (flag_in(&body, "ignore_eos") == true ||
         flag_in(member(body, "sampling_params"), "ignore_eos") == true);
    // Unforced answers end by themselves, at the same length for the same prompt.
    const int natural =
        16 + static_cast<int>(hashes.empty() ? 0 : hashes.back() % (q.result ? 64 : 256));
    q.output_tokens = q.is_forced ? most : std::min(most, natural);
    q.stops = q.output_tokens < most;
    for (const char* name : {"documents", "text_2", "items", "input"})
        if (const picojson::array& texts = array_member(body, name);
            !texts.empty() && !texts[0].is<double>())
            q.documents = static_cast<int>(texts.size());
    if (!traits_of(api).generates) q.output_tokens = 1;  // one step that reads the prompt
    return q;
}

// ===== [E] answers of the simulated server =======================================================
// From facts to the bytes of each API, without a socket and without a clock.

struct answer_facts {
    question asked{};
    unsigned long long number = 0;  // in the answer's id
    int cached_tokens = 0;
    int output_tokens = 0;  // so far
    bool is_wrong = false;  // the result is off by one
    std::string text{};     // so far, for APIs that repeat it
};

/// The words of the next tokens. The last two are the result, if the answer is long enough. The
/// others depend on their position, and on the prompt with greedy decoding, else on the request's
/// id.
inline std::string next_words(const answer_facts& f, const engine_model::emission& e) {
    std::string words;
    const std::uint64_t drawn_by = f.asked.words ? f.asked.words : e.id;
    for (int i = 0; i < e.tokens; ++i) {
        const int left = f.asked.output_tokens - f.output_tokens - i;
        if (f.asked.result && f.asked.stops && left <= 2)
            words += left == 2 ? " ####" : printed(" %lld", *f.asked.result + f.is_wrong);
        else
            words += std::string(" ") +
                     prompt_words[(drawn_by * 7 + static_cast<std::uint64_t>(f.output_tokens + i)) %
                                  std::size(prompt_words)];
    }
    return words;
}
/// The blocks of the cache that these next words fill, as hashes. No step computes the last word
/// of an answer, so it fills none.
inline vector<std::uint64_t> filled_blocks(answer_facts& f, std::string_view words,
                                           int block_tokens) {
    vector<std::uint64_t> blocks;
    int tokens = f.output_tokens;
    for (const std::string_view word : words_of(words)) {
        f.asked.last_hash = continued_hash(f.asked.last_hash, word);
        if (++tokens < f.asked.output_tokens &&
            (f.asked.prompt_tokens + tokens) % block_tokens == 0)
            blocks.push_back(f.asked.last_hash);
    }
    return blocks;
}
inline void add_words(answer_facts& f, const std::string& words, const engine_model::emission& e) {
    f.output_tokens += e.tokens;
    f.cached_tokens = e.cached;
    if (!f.asked.streamed || f.asked.api == tgi || f.asked.api == sglang ||
        f.asked.api == openai_responses)
        f.text += words;
}

inline bool is_reasoning(const answer_facts& f) {
    return f.output_tokens <= f.asked.reasoning_tokens;
}

// ---- how the APIs say it

inline std::string event_bytes(const std::string& json, const char* type = nullptr) {
    return (type ? printed("event: %s\n", type) : "") + "data: " + json + "\n\n";
}
inline const char* quoted_reason_of(const answer_facts& f) {
    return f.asked.stops ? "\"stop\"" : "\"length\"";
}

/// The last piece of an answer says how it ended.
enum class piece : unsigned char { inner, last };

/// `object`: what a chat's answer is called.
inline std::string openai_identity(const answer_facts& f, const char* object) {
    const bool chat = f.asked.api == openai_chat;
    return printed(
        "\"id\":\"%s-%llu\",\"object\":\"%s\",\"created\":1700000000,\"model\":\"simulated\"",
        chat ? "chatcmpl" : "cmpl", f.number, chat ? object : "text_completion");
}
inline std::string openai_usage(const answer_facts& f) {
    return printed("{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,"
                   "\"prompt_tokens_details\":{\"cached_tokens\":%d}",
                   f.asked.prompt_tokens, f.output_tokens, f.asked.prompt_tokens + f.output_tokens,
                   f.cached_tokens) +
           (f.asked.reasoning_tokens > 0
                ? printed(",\"completion_tokens_details\":{\"reasoning_tokens\":%d}}",
                          f.asked.reasoning_tokens)
                : "}");
}
inline std::string openai_choice(const std::string& said, const char* reason = "null") {
    return "\"choices\":[{\"index\":0," + said + ",\"finish_reason\":" + reason + "}]";
}
inline std::string openai_chunk(const answer_facts& f, const std::string& more) {
    return event_bytes("{" + openai_identity(f, "chat.completion.chunk") + "," + more + "}");
}
inline std::string openai_ending(const answer_facts& f) {
    const char* said = f.asked.api == openai_chat ? "\"delta\":{}" : "\"text\":\"\"";
    return openai_chunk(f, openai_choice(said, quoted_reason_of(f))) +
           (f.asked.wants_usage
                ? openai_chunk(f, "\"choices\":[],\"usage\":" + openai_usage(f))
                : "") +
           event_bytes("[DONE]");
}
inline std::string openai_whole(const answer_facts& f) {
    const std::string text = json_quoted(f.text);
    const std::string said = f.asked.api == openai_chat
        ? "\"message\":{\"role\":\"assistant\",\"content\":" + text + "}"
        : "\"text\":" + text;
    return "{" + openai_identity(f, "chat.completion") + "," +
           openai_choice(said, quoted_reason_of(f)) + ",\"usage\":" + openai_usage(f) + "}";
}

inline std::string llama_json(const answer_facts& f, const std::string& words, piece p) {
    const bool last = p == piece::last;
    return "{\"content\":" + json_quoted(words) +
           printed(",\"stop\":%s,\"id_slot\":0,\"index\":0,\"tokens_predicted\":%d,"
                   "\"tokens_evaluated\":%d",
                   last ? "true" : "false", f.output_tokens, f.asked.prompt_tokens) +
           (last ? printed(",\"stop_type\":\"%s\"}", f.asked.stops ? "eos" : "limit") : "}");
}

inline std::string sglang_json(const answer_facts& f, piece p) {
    return "{\"text\":" + json_quoted(f.text) +
           printed(",\"meta_info\":{\"id\":\"%llu\",\"prompt_tokens\":%d,"
                   "\"completion_tokens\":%d,\"finish_reason\":",
                   f.number, f.asked.prompt_tokens, f.output_tokens) +
           (p == piece::last ? printed("{\"type\":%s}", quoted_reason_of(f)) : "null") + "}}";
}

inline std::string ollama_json(const answer_facts& f, const std::string& words, piece p) {
    const bool last = p == piece::last;
    const std::string text = json_quoted(words);
    const std::string thought = last || !is_reasoning(f) ? "" : "\"thinking\":" + text;
    return "{\"model\":\"simulated\",\"created_at\":\"2024-01-01T00:00:00Z\"," +
           (f.asked.api == ollama
                ? "\"message\":{\"role\":\"assistant\"," +
                      (thought.empty() ? "\"content\":" + text : thought) + "}"
                : thought.empty() ? "\"response\":" + text : thought) +
           (last ? printed(",\"done\":true,\"done_reason\":%s,\"prompt_eval_count\":%d,"
                           "\"eval_count\":%d}",
                           quoted_reason_of(f), f.asked.prompt_tokens, f.output_tokens)
                 : ",\"done\":false}");
}

inline std::string tgi_details(const answer_facts& f) {
    return printed("{\"finish_reason\":\"%s\",\"generated_tokens\":%d,\"seed\":null,"
                   "\"input_length\":%d}",
                   f.asked.stops ? "eos_token" : "length", f.output_tokens, f.asked.prompt_tokens);
}
/// One event for each token; the last one also has totals.
inline std::string tgi_events(const answer_facts& f, std::string_view words, piece p) {
    std::string events;
    const vector<std::string_view> tokens = words_of(words);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool reports = p == piece::last && i + 1 == tokens.size();
        events += "data:{\"token\":{\"id\":7,\"text\":" +
                  json_quoted(" " + std::string(tokens[i])) +
                  ",\"logprob\":-0.5,\"special\":false},\"generated_text\":" +
                  (reports ? json_quoted(f.text) : "null") +
                  ",\"details\":" + (reports ? tgi_details(f) : "null") + "}\n\n";
    }
    return events;
}

inline std::string triton_json(const answer_facts& f, const std::string& words, int tokens) {
    return "{\"model_name\":\"simulated\",\"model_version\":\"1\",\"text_output\":" +
           json_quoted(words) +
           (f.asked.wants_usage ? printed(",\"num_input_tokens\":%d,\"num_output_tokens\":%d",
                                          f.asked.prompt_tokens, tokens)
                                : "") +
           "}";
}

/// The answer of an API that generates nothing: `each(i)` for each result asked for.
template <class Each>
std::string scored_json(const answer_facts& f, const char* list, Each&& each) {
    std::string all;
    for (int i = 0; i < f.asked.documents; ++i) all += (i > 0 ? "," : "") + each(i);
    return printed("{\"id\":\"%llu\",\"object\":\"list\",\"model\":\"simulated\",\"%s\":[",
                   f.number, list) +
           all +
           printed("],\"usage\":{\"prompt_tokens\":%d,\"total_tokens\":%d}}", f.asked.prompt_tokens,
                   f.asked.prompt_tokens);
}
/// Eight fixed numbers: nobody reads them.
inline std::string embeddings_json(const answer_facts& f) {
    return scored_json(f, "data", [](int i) {
        return printed(R"({"object":"embedding","index":%d,)"
                       R"("embedding":[0.25,-0.5,0.125,0.0,0.75,-0.25,0.5,-0.125]})", i);
    });
}
inline std::string scores_json(const answer_facts& f, const char* list, const char* score_name) {
    return scored_json(f, list, [&](int i) {
        return printed(R"({"index":%d,"%s":%g})", i, score_name, 1.0 / (i + 1));
    });
}
inline std::string sglang_scores_json(const answer_facts& f) {
    return scored_json(f, "scores", [](int i) {
        return printed("[%g,%g]", 1.0 / (i + 1), 1 - 1.0 / (i + 1));
    });
}

/// An event of OpenAI's responses, with rising numbers.
inline std::string responses_event(const answer_facts& f, const char* type, int beside,
                                   const std::string& more) {
    return event_bytes(printed("{\"type\":\"%s\",\"sequence_number\":%d,", type,
                               f.output_tokens + beside) +
                           more + "}",
                       type);
}
inline std::string response_id(const answer_facts& f) { return printed("resp_%llu", f.number); }
inline std::string response_json(const answer_facts& f, piece p) {
    const bool ended = p == piece::last;
    const char* status = !ended ? "in_progress" : f.asked.stops ? "completed" : "incomplete";
    const std::string message =
        R"({"type":"message","role":"assistant","content":[{"type":"output_text","text":)" +
        json_quoted(f.text) + "}]}";
    return printed("{\"id\":\"%s\",\"object\":\"response\",\"status\":\"%s\","
                   "\"model\":\"simulated\",\"error\":null,\"incomplete_details\":%s,",
                   response_id(f).c_str(), status,
                   ended && !f.asked.stops ? R"({"reason":"max_output_tokens"})" : "null") +
           "\"output\":[" + (ended ? message : "") + "],\"usage\":" +
           (ended ? printed("{\"input_tokens\":%d,\"input_tokens_details\":{\"cached_tokens\":%d},"
                            "\"output_tokens\":%d,\"output_tokens_details\":"
                            "{\"reasoning_tokens\":%d}}",
                            f.asked.prompt_tokens, f.cached_tokens, f.output_tokens,
                            f.asked.reasoning_tokens)
                  : "null") +
           "}";
}
inline std::string responses_opening(const answer_facts& f) {
    const std::string response = "\"response\":" + response_json(f, piece::inner);
    return responses_event(f, "response.created", -1, response) +
           responses_event(f, "response.in_progress", 0, response) +
           responses_event(f, "response.output_item.added", 1,
                           R"("output_index":0,"item":{"type":"message","content":[]})") +
           responses_event(f, "response.content_part.added", 2,
                           R"("output_index":0,"part":{"type":"output_text","text":""})");
}
/// The last event says "completed", as vLLM's does, and its status has the reason.
inline std::string responses_ending(const answer_facts& f) {
    const std::string text = "\"text\":" + json_quoted(f.text);
    return responses_event(f, "response.output_text.done", 3, "\"output_index\":0," + text) +
           responses_event(f, "response.content_part.done", 4,
                           "\"output_index\":0,\"part\":{\"type\":\"output_text\"," + text + "}") +
           responses_event(f, "response.completed", 5,
                           "\"response\":" + response_json(f, piece::last));
}

inline std::string anthropic_reason(const answer_facts& f) {
    return f.asked.stops ? "\"end_turn\"" : "\"max_tokens\"";
}
inline std::string anthropic_message(const answer_facts& f, const std::string& content,
                                     const std::string& reason, int output_tokens) {
    return printed("{\"id\":\"msg_%llu\",\"type\":\"message\",\"role\":\"assistant\",", f.number) +
           "\"model\":\"simulated\",\"content\":" + content + ",\"stop_reason\":" + reason +
           printed(",\"usage\":{\"input_tokens\":%d,\"output_tokens\":%d}}",
                   f.asked.prompt_tokens, output_tokens);
}
inline std::string anthropic_opening(const answer_facts& f) {
    return event_bytes("{\"type\":\"message_start\",\"message\":" +
                           anthropic_message(f, "[]", "null", 1) + "}",
                       "message_start") +
           event_bytes(R"({"type":"content_block_start","index":0,)"
                       R"("content_block":{"type":"text","text":""}})",
                       "content_block_start") +
           event_bytes(R"({"type":"ping"})", "ping");
}
inline std::string anthropic_ending(const answer_facts& f) {
    return event_bytes(R"({"type":"content_block_stop","index":0})", "content_block_stop") +
           event_bytes("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":" +
                           anthropic_reason(f) +
                           printed("},\"usage\":{\"output_tokens\":%d}}", f.output_tokens),
                       "message_delta") +
           event_bytes(R"({"type":"message_stop"})", "message_stop");
}

// ---- an answer from its head to its end

inline std::string stream_head(api_format api) {
    const char* type = api == plain_text ? "text/plain; charset=utf-8"
                       : traits_of(api).framed == framing::lines
                           ? "application/x-ndjson"
                           : "text/event-stream; charset=utf-8";
    return printed("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n",
                   type);
}
/// The bytes before the first words, "" if none.
inline std::string answer_opening(const answer_facts& f) {
    if (f.asked.api == openai_chat)
        return openai_chunk(
            f, openai_choice("\"delta\":{\"role\":\"assistant\",\"content\":\"\"}"));
    if (f.asked.api == anthropic) return anthropic_opening(f);
    if (f.asked.api == openai_responses) return responses_opening(f);
    return {};
}
/// The engine's words, which the facts already contain.
inline std::string answer_piece(const answer_facts& f, const std::string& words,
                                const engine_model::emission& e) {
    switch (f.asked.api) {
    case openai_chat:
        return openai_chunk(
            f, openai_choice((is_reasoning(f) ? "\"delta\":{\"reasoning_content\":"
                                              : "\"delta\":{\"content\":") +
                             json_quoted(words) + "}"));
    case openai_completions:
        return openai_chunk(f, openai_choice("\"text\":" + json_quoted(words)));
    case tgi: return tgi_events(f, words, e.finished ? piece::last : piece::inner);
    case triton: return event_bytes(triton_json(f, words, e.tokens));
    case ollama: case ollama_generate: return ollama_json(f, words, piece::inner) + "\n";
    case llama_cpp: return event_bytes(llama_json(f, words, piece::inner));
    case sglang: return event_bytes(sglang_json(f, e.finished ? piece::last : piece::inner));
    case plain_text: return words;
    case anthropic:
        return event_bytes("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":" +
                               std::string(is_reasoning(f) ? "\"thinking_delta\",\"thinking\":"
                                                           : "\"text_delta\",\"text\":") +
                               json_quoted(words) + "}}",
                           "content_block_delta");
    case openai_responses:
        return responses_event(f,
                               is_reasoning(f) ? "response.reasoning_text.delta"
                                               : "response.output_text.delta",
                               2, "\"output_index\":0,\"delta\":" + json_quoted(words));
    case api_format::openai_embeddings: case api_format::rerank: case api_format::score: case api_format::sglang_score: break;  // in one piece
    }
    return {};
}
/// The bytes after the last words, "" if none.
inline std::string answer_ending(const answer_facts& f) {
    switch (f.asked.api) {
    case openai_chat: case openai_completions: return openai_ending(f);
    case ollama: case ollama_generate: return ollama_json(f, "", piece::last) + "\n";
    case llama_cpp: return event_bytes(llama_json(f, "", piece::last));
    case sglang: return event_bytes("[DONE]");
    case anthropic: return anthropic_ending(f);
    case openai_responses: return responses_ending(f);
    case tgi: case triton: case plain_text: case api_format::openai_embeddings: case api_format::rerank: case api_format::score:
    case api_format::sglang_score: break;
    }
    return {};
}
inline std::string whole_answer(const answer_facts& f) {
    switch (f.asked.api) {
    case tgi:
        return "{\"generated_text\":" + json_quoted(f.text) + ",\"details\":" + tgi_details(f) +
               "}";
    case triton: return triton_json(f, f.text, f.output_tokens);
    case ollama: case ollama_generate: return ollama_json(f, f.text, piece::last);
    case llama_cpp: return llama_json(f, f.text, piece::last);
    case sglang: return sglang_json(f, piece::last);
    case anthropic:
        return anthropic_message(f, "[{\"type\":\"text\",\"text\":" + json_quoted(f.text) + "}]",
                                 anthropic_reason(f), f.output_tokens);
    case api_format::openai_embeddings: return embeddings_json(f);
    case api_format::rerank: return scores_json(f, "results", "relevance_score");
    case api_format::score: return scores_json(f, "data", "score");
    case api_format::sglang_score: return sglang_scores_json(f);
    case openai_responses: return response_json(f, piece::last);
    case openai_chat: case openai_completions: case plain_text: break;
    }
    return openai_whole(f);
}

// ===== [E] other replies of the simulated server, and its metrics page ===========================
// vLLM's metrics under their names, in the text format of Python's Prometheus client (0.0.4).

/// Why a sequence ended; `abort`: its client left.
enum class end_reason : unsigned char { stop, length, abort, error };
inline constexpr const char* end_reason_names[] = {"stop", "length", "abort", "error"};

inline constexpr double first_token_limits[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                                0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                                20,    40,    80,   160,  640,  2560};
inline constexpr double gap_limits[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                        0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
inline constexpr double latency_limits[] = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                            30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};

class bucket_counts {
public:
    /// `upper_limits` ascend and must outlive it; larger values have their own class.
    explicit bucket_counts(std::span<const double> upper_limits)
        : limits_(upper_limits), counts_(upper_limits.size() + 1) {}
    void add(double v) {
        std::size_t at = 0;
        while (at < limits_.size() && v > limits_[at]) ++at;
        ++counts_[at];
        sum_ += v;
    }
    std::span<const double> limits() const { return limits_; }
    /// By class, not cumulative.
    const vector<long long>& counts() const { return counts_; }
    double sum() const { return sum_; }

private:
    std::span<const double> limits_;
    vector<long long> counts_;
    double sum_ = 0;
};

/// A server's counters since its start; the engine's counters continue over a restart.
struct tallies {
    explicit tallies(double now_unix_s = 0, const engine_model::counters& so_far = {})
        : began_unix_s(now_unix_s), before(so_far) {}

    void count(const engine_model::emission& e) {
        if (e.first) first_token.add(e.when.last_token - e.when.arrived);
        else gap.add(e.gap);
        if (!e.finished) return;
        e2e.add(e.when.last_token - e.when.arrived);
        queue.add(e.when.admitted - e.when.arrived);
        prefill.add(e.when.first_token - e.when.admitted);
        decode.add(e.when.last_token - e.when.first_token);
    }
    void count(end_reason why) { ++ended[static_cast<std::size_t>(why)]; }

    double began_unix_s;
    engine_model::counters before;  // of the engine, before this server
    std::array<long long, std::size(end_reason_names)> ended{};
    bucket_counts first_token{first_token_limits}, gap{gap_limits}, e2e{latency_limits},
        queue{latency_limits}, prefill{latency_limits}, decode{latency_limits};
};

/// Formats a float as Python and its Prometheus client do from 1e6 on: "1.0", "1.5e+06".
inline std::string python_number(double v) {
    if (std::isinf(v)) return v > 0 ? "+Inf" : "-Inf";
    const bool plain = v == 0 || (std::abs(v) >= 1e-4 && std::abs(v) < 1e6);
    char digits[64];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, v,
                      plain ? std::chars_format::fixed : std::chars_format::scientific);
    const std::string s(digits, end.ptr);
    return plain && s.find('.') == std::string::npos ? s + ".0" : s;
}

/// Writes metrics one by one; those of the engine have its labels.
class metrics_writer {
    static std::string labels(const std::string& own = "") {
        return "{engine=\"0\"," + own + "model_name=\"simulated\"}";
    }

public:
    explicit metrics_writer(double began_unix_s) : began_unix_s_(began_unix_s) {}

    void gauge(const std::string& name, const char* help, double v,
               const std::string& of = labels()) {
        head(name, help, "gauge");
        sample(name, of, v);
    }
    void counter(const std::string& name, const char* help, double v) {
        head(name + "_total", help, "counter");
        sample(name + "_total", labels(), v);
        created(name, help, {labels()});
    }
    struct part {
        const char* value;  // of the label
        double v;
    };
    void counter(const std::string& name, const char* help, const char* label,
                 const vector<part>& parts) {
        head(name + "_total", help, "counter");
        vector<std::string> each;
        for (const part& p : parts) {
            each.push_back(labels(printed("%s=\"%s\",", label, p.value)));
            sample(name + "_total", each.back(), p.v);
        }
        created(name, help, each);
    }
    /// Only the sum and the count: its single bucket has all values.
    void histogram(const std::string& name, const char* help, double count, double sum) {
        head(name, help, "histogram");
        sample(name + "_bucket", labels("le=\"+Inf\","), count);
        sample(name + "_count", labels(), count);
        sample(name + "_sum", labels(), sum);
        created(name, help, {labels()});
    }
    void histogram(const std::string& name, const char* help, const bucket_counts& h) {
        head(name, help, "histogram");
        long long up_to = 0;
        for (std::size_t i = 0; i < h.counts().size(); ++i) {
            const double limit = i < h.limits().size() ? h.limits()[i] : infinity;
            up_to += h.counts()[i];
            sample(name + "_bucket", labels("le=\"" + python_number(limit) + "\","),
                   static_cast<double>(up_to));
        }
        sample(name + "_count", labels(), static_cast<double>(up_to));
        sample(name + "_sum", labels(), h.sum());
        created(name, help, {labels()});
    }
    const std::string& page() const { return page_; }

private:
    void head(const std::string& name, const char* help, const char* kind) {
        page_ += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n";
    }
    void sample(const std::string& name, const std::string& labels, double v) {
        page_ += name + labels + " " + python_number(v) + "\n";
    }
    void created(const std::string& name, const char* help, const vector<std::string>& each) {
        head(name + "_created", help, "gauge");
        for (const std::string& labels : each) sample(name + "_created", labels, began_unix_s_);
    }

    double began_unix_s_;
    std::string page_{};
};

/// What the pages about a server show of its engine.
struct engine_state {
    std::size_t running = 0, waiting = 0;
    double cache_usage = 0;
    engine_model::counters totals{};
    long long max_model_len = 0;
    bool has_steps = true;
    bool has_prefix_cache = true;
    long long block_tokens = 16, blocks = 0;  // of its cache
    engine_state() = default;
    engine_state(const engine_model& m)
        : running(m.running()), waiting(m.waiting()), cache_usage(m.cache_usage()),
          totals(m.totals()), max_model_len(static_cast<long long>(m.settings().max_model_len)),
          has_prefix_cache(m.settings().prefix_cache),
          block_tokens(static_cast<long long>(m.settings().kv.block_tokens)),
          blocks(static_cast<long long>(kv_capacity_tokens(m.settings().kv)) / block_tokens) {}
};

inline std::string vllm_page(const engine_state& m, const tallies& t) {
    const auto since = [&](double engine_model::counters::*what) {
        return m.totals.*what - t.before.*what;
    };
    using counters = engine_model::counters;
    metrics_writer w(t.began_unix_s);
    w.gauge("process_start_time_seconds", "When the server was started, in seconds since 1970.",
            t.began_unix_s, "");
    w.gauge("vllm:num_requests_running", "Requests in the engine's batch.",
            static_cast<double>(m.running));
    w.gauge("vllm:num_requests_waiting", "Requests that wait to be in the batch.",
            static_cast<double>(m.waiting));
    w.gauge("vllm:kv_cache_usage_perc", "KV cache in use, 1 is all of it.", m.cache_usage);
    w.counter("vllm:prefix_cache_queries", "Prompt tokens that were looked up in the cache.",
              since(&counters::cache_queries));
    w.counter("vllm:prefix_cache_hits", "Prompt tokens that were found in the cache.",
              since(&counters::cache_hits));
    // A running sequence has its memory until its end.
    w.counter("vllm:num_preemptions", "Requests that were put out of the batch.", 0.0);
    const double cached = since(&counters::cached_tokens);
    w.counter("vllm:prompt_tokens", "Prompt tokens processed.", since(&counters::prompt_tokens));
    w.counter("vllm:prompt_tokens_by_source", "Prompt tokens, by where they came from.", "source",
              {{"local_compute", since(&counters::prompt_tokens) - cached},
               {"local_cache_hit", cached},
               {"external_kv_transfer", 0}});
    w.counter("vllm:prompt_tokens_cached", "Prompt tokens from a cache.", cached);
    w.counter("vllm:generation_tokens", "Tokens generated.", since(&counters::generated_tokens));
    vector<metrics_writer::part> ended;
    for (std::size_t i = 0; i < t.ended.size(); ++i)
        ended.push_back({end_reason_names[i], static_cast<double>(t.ended[i])});
    w.counter("vllm:request_success", "Requests that ended, by why they did.", "finished_reason",
              ended);
    if (m.has_steps)
        w.histogram("vllm:iteration_tokens_total", "Tokens of a step, its finished prompts' too.",
                    since(&counters::token_steps), since(&counters::step_tokens));
    w.histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.",
                t.first_token);
    w.histogram("vllm:inter_token_latency_seconds", "From tokens to the next ones.", t.gap);
    w.histogram("vllm:e2e_request_latency_seconds", "From arrival to the last token.", t.e2e);
    w.histogram("vllm:request_queue_time_seconds", "From arrival to the batch.", t.queue);
    w.histogram("vllm:request_prefill_time_seconds", "From the batch to the first token.",
                t.prefill);
    w.histogram("vllm:request_decode_time_seconds", "From the first token to the last one.",
                t.decode);
    w.gauge("vllm:cache_config_info", "The KV cache.", 1,
            printed("{block_size=\"%lld\",enable_prefix_caching=\"%s\",engine=\"0\","
                    "num_gpu_blocks=\"%lld\"}",
                    m.block_tokens, m.has_prefix_cache ? "True" : "False", m.blocks));
    return w.page();
}

/// A body of known length.
struct reply {
    int status = 200;
    const char* type = "application/json";
    std::string body{};
};
inline std::string reply_bytes(const reply& r) {
    return printed("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n", r.status,
                   r.status == 200 ? "OK" : "Error", r.type, r.body.size(),
                   r.status == 429 ? "Retry-After: 1\r\n" : "") +
           r.body;
}
inline std::string chunk_of(const std::string& data) {
    return printed("%zx\r\n", data.size()) + data + "\r\n";
}
inline constexpr const char* last_chunk = "0\r\n\r\n";

inline reply error_reply(int status, const char* why) {
    return {status, "application/json", printed(R"({"error":{"message":"%s"}})", why)};
}
/// Each API has its own format of errors.
inline reply refusal(api_format api, int status, const char* why, const char* code) {
    switch (api) {
    case plain_text: return {status, "text/plain", why};
    case tgi: case triton: case ollama: case ollama_generate:
        return {status, "application/json", printed(R"({"error":"%s"})", why)};
    default:
        return {status, "application/json",
                printed(R"({"type":"error","error":{"message":"%s","type":"%s","code":"%s"}})",
                        why, code, code)};
    }
}

inline reply about_server(std::string_view path, const engine_state& m, const tallies& t) {
    const auto json = [](const char* body) { return reply{200, "application/json", body}; };
    for (const char* ready : {"/health", "/api/version", "/v2/health/ready", "/readyz"})
        if (path == ready) return json("{}");
    if (path == "/v1/models")
        return {200, "application/json",
                printed(R"({"object":"list","data":[{"id":"simulated","object":"model",)"
                        R"("max_model_len":%lld}]})",
                        m.max_model_len)};
    if (path == "/api/tags") return json(R"({"models":[{"name":"simulated"}]})");
    if (path == "/info") return json(R"({"model_id":"simulated"})");
    if (path == "/metrics")
        return {200, "text/plain; version=0.0.4; charset=utf-8", vllm_page(m, t)};
    return error_reply(404, "no such path");
}
/// What an engine is told beside its requests, by vLLM's paths and SGLang's.
enum class engine_order : unsigned char { forget_blocks, pause, resume };
inline maybe<engine_order> order_at(std::string_view path) {
    using enum engine_order;
    if (path == "/reset_prefix_cache" || path == "/flush_cache") return forget_blocks;
    if (path == "/pause" || path == "/pause_generation") return pause;  // as with mode=keep
    if (path == "/resume" || path == "/continue_generation") return resume;
    return {};
}
inline reply reply_to_order(engine_order what, engine_model& on, double now) {
    switch (what) {
    case engine_order::forget_blocks: on.forget_blocks(); break;
    case engine_order::pause: on.pause(); break;
    case engine_order::resume: on.resume(now); break;
    }
    return {200, "application/json", "{}"};
}

struct simulated_profiler {
    bool runs = false;
};
inline bool is_of_profiler(std::string_view path) {
    return path == "/start_profile" || path == "/stop_profile";
}
inline reply profiler_reply(std::string_view path, simulated_profiler& p) {
    const bool starts = path == "/start_profile";
    if (starts == p.runs)
        return error_reply(400, starts ? "a profile is being taken" : "no profile is being taken");
    p.runs = starts;
    return {200, "application/json", "{}"};
}
/// LoRA adapters: /v1/load_lora_adapter of vLLM; SGLang has no /v1.
inline bool is_of_adapters(std::string_view path) {
    return path.ends_with("/load_lora_adapter") || path.ends_with("/unload_lora_adapter");
}
inline reply adapter_reply(std::string_view path, const picojson::value& body,
                           std::set<std::string>& loaded) {
    const bool loads = path.ends_with("/load_lora_adapter");
    const picojson::value name = body.get("lora_name");
    if (!name.is<std::string>()) return error_reply(400, "lora_name is missing");
    if (loads && !loaded.insert(name.to_str()).second)
        return error_reply(400, "the adapter is loaded already");
    if (!loads && loaded.erase(name.to_str()) == 0)
        return error_reply(404, "the adapter is not loaded");
    return {200, "application/json", "{}"};
}
/// A word is one token, whose id follows from it.
inline reply counted_tokens(const picojson::value& body, long long max_model_len) {
    const std::string prompt = prompt_of(body);
    const vector<std::string_view> words = words_of(prompt);
    std::string ids;
    for (const std::string_view word : words)
        ids += (ids.empty() ? "" : ",") + std::to_string(hash_of(word).value() & 0xffffff);
    return {200, "application/json",
            printed(R"({"count":%zu,"max_model_len":%lld,"tokens":[)", words.size(),
                    max_model_len) + ids + "]}"};
}

// ===== [E] the simulated server's connections, and its handling of requests ======================

/// A Date header for these Unix seconds.
inline std::string http_date_of(std::time_t unix_s) {
    std::tm t{};
    ::gmtime_r(&unix_s, &t);
    return printed("%.3s, %02d %.3s %d %02d:%02d:%02d GMT", &"SunMonTueWedThuFriSat"[3 * t.tm_wday],
                   t.tm_mday, &month_names[3 * static_cast<std::size_t>(t.tm_mon)],
                   t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

class simulated_session;

struct request_handler {
    /// Called for each request, which one answer must follow, now or later.
    std::function<void(simulated_session&)> on_request{};
    /// The client left during this answer.
    std::function<void(std::uint64_t)> on_gone{};
};

/// One connection: requests in, one answer at a time out. Derived classes carry its bytes.
class simulated_session : public std::enable_shared_from_this<simulated_session> {
public:
    explicit simulated_session(const request_handler& handler) : handler_(handler) {}
    virtual ~simulated_session() = default;
    simulated_session(const simulated_session&) = delete;
    simulated_session& operator=(const simulated_session&) = delete;

    const request_parser& request() const { return parser_; }
    /// When the last byte of the request arrived.
    virtual long long arrived_ns() const { return now_ns(); }

    /// Writes a whole answer with a Date header.
    void answer(const reply& r) {
        std::string bytes = reply_bytes(r);
        if (parser_.method == "HEAD") bytes.resize(bytes.find("\r\n\r\n") + 4);
        bytes.insert(bytes.find("\r\n"),
                     "\r\nDate: " + http_date_of(static_cast<std::time_t>(unix_s())));
        write(bytes);
        next();
    }
    /// Writes a part of an answer, which next() ends. A client that does not read is given up.
    void write(const std::string& bytes) {
        if (has_ended_) return;
        if (out_.size() > most_unread) return gone();
        const bool is_first = out_.empty();
        out_ += sealed(bytes);
        if (is_first) on_written();
    }
    /// Ends an answer: the next pipelined request may follow.
    void next() {
        busy_ = false;
        ++answered_;
        if (!parser_.keep_alive) close_when_written_ = true;
        parser_.reset();
        if (!close_when_written_ && !is_feeding_) feed(std::exchange(early_, {}));
        if (close_when_written_ && out_.empty()) close();
    }
    void reset() { close(ECONNRESET); }

    std::uint64_t answering = 0;  // the handler's id of the current answer, 0: none

protected:
    /// The connection is kept after an answer and idle.
    bool is_kept() const { return answered_ > 0 && !busy_; }
    /// Takes bytes; those behind the last request, or behind what is none, are dropped.
    void take(std::string_view bytes) {
        if (close_when_written_) return;
        if (!busy_) return feed(bytes);
        if (early_.size() + bytes.size() > most_early) return gone();
        early_.append(bytes);
    }
    void write_more() {
        while (!out_.empty()) {
            const long long n = give(out_);
            if (n < 0) return gone();
            if (n == 0) return;
            out_.erase(0, static_cast<std::size_t>(n));
        }
        if (close_when_written_) close();
    }
    void gone() {
        if (answering != 0) handler_.on_gone(std::exchange(answering, 0));
        close();
    }

private:
    /// Returns the number of bytes taken; 0: write_more() is called later; below 0: closed.
    virtual long long give(std::string_view bytes) = 0;
    /// 0, or ECONNRESET: what the client finds.
    virtual void end(int error) = 0;
    /// There are bytes to write, now or after others that wait.
    virtual void on_written() { write_more(); }
    /// As they are sent: TLS's.
    virtual std::string sealed(const std::string& bytes) { return bytes; }

    static constexpr std::size_t most_unread = 4 << 20, most_early = 1 << 18;

    /// Many requests may be answered at once: one after the other, not one inside of the other.
    void feed(std::string_view bytes) {
        is_feeding_ = true;
        for (bool more = parser_.feed(bytes); more;) {
            serve();
            more = !busy_ && !close_when_written_ && parser_.feed(std::exchange(early_, {}));
        }
        is_feeding_ = false;
        if (busy_ || close_when_written_) return;
        if (parser_.waits_to_continue()) return write("HTTP/1.1 100 Continue\r\n\r\n");
        if (!parser_.broken()) return;
        parser_.keep_alive = false;
        answer(error_reply(400, "not an HTTP/1.1 request"));
    }
    void serve() {
        busy_ = true;
        handler_.on_request(*this);
    }
    void close(int error = 0) {
        if (std::exchange(has_ended_, true)) return;
        close_when_written_ = true;
        out_.clear();
        end(error);
    }

    const request_handler& handler_;
    request_parser parser_{};
    std::string early_{};  // bytes of the next request during an answer
    std::string out_{};    // bytes that the carrier has not taken
    long long answered_ = 0;
    bool busy_ = false;
    bool is_feeding_ = false;
    bool has_ended_ = false;
    bool close_when_written_ = false;
};

/// How an answer ended; `left`: its client did.
enum class answer_end : unsigned char { open, ok, refused, reset, stalled, garbage, left };

/// What carries a service's connections and gives it time. `at` runs an action, in the only thread
/// that calls the service, and may drop pending ones at the end; `send` sends all that was written,
/// and then calls on_sent(); `on_away`: no connections from now on.
struct service_carrier {
    std::function<void(long long ns, std::function<void()> what)> at;
    std::function<void()> send, on_away;
};

/// One request for tokens, as the server saw it.
struct service_entry {
    std::string request_id{};
    long long received_ns = 0, first_write_ns = 0, last_write_ns = 0, done_ns = 0;
    int prompt_tokens = 0, output_tokens = 0;
    engine_model::times engine{};  // of the engine model
    vector<long long> writes{};    // of content, each; on_tokens() keeps them
    answer_end ended = answer_end::open;
    int status = 200;
};
/// Is told what a service did, in its thread.
struct service_observer {
    virtual ~service_observer() = default;
    virtual void on_end(const service_entry& e) = 0;
    virtual void on_profiler(const std::string& path, int status) = 0;
};

/// The engine model with HTTP: every API, lists of models, /health, /tokenize, /metrics.
/// `llmbench serve` derives a server with a log.
class simulated_service {
public:
    simulated_service(const engine& e, service_carrier c, service_observer* told = nullptr)
        : carrier_(std::move(c)),
          settings_(e),
          told_(told),
          model_(e),
          faults_(static_cast<std::uint64_t>(static_cast<long long>(e.seed)), 99),
          stored_(static_cast<std::size_t>(static_cast<long long>(e.keeps_responses))) {}
    simulated_service(const simulated_service&) = delete;
    simulated_service& operator=(const simulated_service&) = delete;
    virtual ~simulated_service() = default;

    const request_handler& handler() const { return handler_; }
    void add(const std::shared_ptr<simulated_session>& s) {
        erase_if(all_, [](const auto& weak) { return weak.expired(); });
        all_.push_back(s);
    }
    void go_away() {
        away_ = true;
        carrier_.on_away();
        for (const auto& weak : all_)
            if (const auto s = weak.lock()) s->reset();
        for (const auto& [id, g] : generating_) on_end(*g);
        generating_.clear();
    }
    virtual void on_sent() {}
    /// A connection takes no bytes now.
    virtual void note_waiting() {}

protected:
    struct generation {
        std::uint64_t id = 0;
        std::shared_ptr<simulated_session> to{};
        answer_facts facts{};
        service_entry entry{};
        std::string to_store{};  // what was said before the answer, if the response is stored
        answer_end after_content = answer_end::open;  // a fault, if it is not open
        bool begun = false;
    };

    /// Gives a request to the engine, which answers it by emit().
    virtual void submit(generation& g) {
        catch_up();
        question& asked = g.facts.asked;
        const auto admission = model_.submit(
            now_s(), {g.id, asked.prompt_tokens, asked.output_tokens,
                      blocks_of(std::exchange(asked.hashes, {}), model_.block_tokens())});
        if (admission == engine_model::admission::accepted) return arm_step_timer();
        forget(g);
        if (admission == engine_model::admission::queue_full)
            return refuse_request(g, 429, "the queue is full", "rate_limit");
        refuse_request(g, 400, "the prompt and its answer do not fit", "context_length_exceeded");
    }
    /// Whether it was waiting or running.
    virtual bool cancel(std::uint64_t id) { return model_.cancel(id); }
    virtual engine_state state() const { return model_; }
    /// Tokens are about to be written.
    virtual void on_tokens(generation& g, const engine_model::emission&, long long now) {
        if (told_) g.entry.writes.push_back(now);
    }
    /// Called once for each request for tokens.
    virtual void on_end(generation& g) {
        if (told_) told_->on_end(g.entry);
    }
    /// The status of the requests that `faults.error_rate` refuses.
    virtual int error_status() const { return 500; }

    const service_carrier carrier_;
    const long long start_ns_ = now_ns();  // the engine's time 0
    std::map<std::uint64_t, std::shared_ptr<generation>> generating_{};

    void emit(const engine_model::emission& e) {
        carrier_.send();  // so that the time of each is that of its own send
        const auto found = generating_.find(e.id);
        if (found == generating_.end()) return;
        // A copy: a write may find the client gone, which erases the answer.
        const std::shared_ptr<generation> g = found->second;
        tallies_.count(e);
        if (e.finished)
            tallies_.count(g->facts.asked.stops ? end_reason::stop : end_reason::length);
        g->entry.engine = e.when;
        const std::string words = next_words(g->facts, e);
        const long long now = now_ns();
        if (g->entry.first_write_ns == 0) g->entry.first_write_ns = now;
        g->entry.last_write_ns = now;
        on_tokens(*g, e, now);
        if (settings_.prefix_cache)
            for (const std::uint64_t block : filled_blocks(g->facts, words, model_.block_tokens()))
                model_.keep_block(block);
        add_words(g->facts, words, e);
        if (g->facts.asked.streamed) write_content(*g, words, e);
        if (g->after_content != answer_end::open) return break_off(*g);
        if (e.finished) finish(*g);
    }

private:
    /// Rounded nanoseconds may lie just before a step's end that has passed.
    double now_s() const {
        return std::max(static_cast<double>(now_ns() - start_ns_) * 1e-9, reached_s_);
    }

    void on_request(simulated_session& s) {
        const request_parser& asked = s.request();
        if (asked.method == "GET" || asked.method == "HEAD") {
            if (settings_.faults.metrics_hang && asked.path == "/metrics") return;
            return s.answer(about_server(asked.path, state(), tallies_));
        }
        if (is_of_profiler(asked.path)) {
            const reply r = profiler_reply(asked.path, profiler_);
            if (told_) told_->on_profiler(asked.path, r.status);
            return s.answer(r);
        }
        if (const auto order = order_at(asked.path)) {
            catch_up();
            s.answer(reply_to_order(*order, model_, now_s()));
            return arm_step_timer();
        }
        const bool adapts = is_of_adapters(asked.path), counts = asked.path == "/tokenize";
        const maybe<api_format> api = api_at(asked.path);
        if (!api && !counts && !adapts) return s.answer(error_reply(404, "no such path"));
        picojson::value body;
        if (!parse_json(asked.body, body) || !body.is<picojson::object>())
            return s.answer(error_reply(400, "the body is not a JSON object"));
        if (counts) return s.answer(counted_tokens(body, settings_.max_model_len));
        if (adapts) return adapt(s, adapter_reply(asked.path, body, adapters_));
        generate(s, body, api_of(*api, body));
    }
    void adapt(simulated_session& s, const reply& r) {
        const double takes_s = settings_.adapter_load.seconds();
        const bool loads = s.request().path.find("unload") == std::string::npos;
        if (r.status != 200 || !loads || takes_s <= 0) return s.answer(r);
        model_.hold_up(takes_s);
        carrier_.at(now_ns() + ns_of(takes_s), [r, to = s.weak_from_this()] {
            if (const auto known = to.lock()) known->answer(r);
        });
    }
    void on_gone(std::uint64_t id) {
        if (cancel(id)) tallies_.count(end_reason::abort);
        const auto found = generating_.find(id);
        if (found == generating_.end()) return;
        end_request(*found->second, answer_end::left);
        generating_.erase(found);
    }
    void end_request(generation& g, answer_end how) {
        if (g.entry.ended != answer_end::open) return;  // a write has found the client gone
        g.entry.ended = how;
        g.entry.done_ns = now_ns();
        g.entry.output_tokens = g.facts.output_tokens;
        on_end(g);
    }
    void refuse_request(generation& g, int status, const char* why, const char* code) {
        g.entry.status = status;
        end_request(g, answer_end::refused);
        g.to->answer(refusal(g.facts.asked.api, status, why, code));
    }

    // ---- one answer from its request on

    void generate(simulated_session& s, const picojson::value& body, api_format api) {
        ++generations_;
        if (settings_.faults.stop_after > 0 && generations_ > settings_.faults.stop_after)
            return go_away();
        const long long restart = settings_.faults.restart_after;
        if (restart > 0 && generations_ == restart + 1)
            tallies_ = tallies(unix_s(), model_.totals());
        auto g = new_shared<generation>();
        g->entry.request_id = s.request().header("x-request-id");
        g->entry.received_ns = s.arrived_ns();
        g->to = s.shared_from_this();
        g->facts.asked.api = api;
        if (faults_.uniform() < settings_.faults.error_rate.value)
            return refuse_request(*g, error_status(), "an error that was asked for",
                                  "server_error");
        g->after_content = drawn_fault();
        const maybe<std::string> before =
            api == openai_responses ? history_of(body) : maybe<std::string>("");
        if (!before)
            return refuse_request(*g, 404, "the previous response is not known",
                                  "previous_response_not_found");
        const picojson::value whole = with_history(body, *before);
        g->facts.asked = question_of(api, s.request().path, whole);
        if (api == openai_responses && flag_in(&body, "store") != false)
            g->to_store = input_of(whole);
        g->facts.asked.reasoning_tokens = static_cast<int>(
            settings_.reasoning.value * g->facts.asked.output_tokens);
        const engine_faults& f = settings_.faults;
        const double wrong = f.wrong_answers.value +
                             (generating_.empty() ? 0 : f.wrong_in_batch.value);
        g->facts.is_wrong = g->facts.asked.rank < wrong;
        // Two that come at once in virtual time still have ids of their own.
        g->facts.number = last_number_ = std::max(
            last_number_ + 1, static_cast<unsigned long long>(g->entry.received_ns));
        g->entry.prompt_tokens = g->facts.asked.prompt_tokens;
        g->id = s.answering = ++next_id_;
        generating_[g->id] = g;
        if (settings_.faults.delay.seconds() <= 0) return submit(*g);
        carrier_.at(now_ns() + ns_of(settings_.faults.delay.seconds()), [this, g] {
            if (generating_.contains(g->id)) submit(*g);
        });
    }
    /// What was said before, "" at the start of a conversation; none if it is not known.
    maybe<std::string> history_of(const picojson::value& body) {
        const std::string id = string_member(body, "previous_response_id");
        if (id.empty() || settings_.faults.ignores_history) return std::string();
        const double forgets = settings_.faults.forgets.value;
        if (forgets > 0 && faults_.uniform() < forgets) return {};
        return stored_.find(id);
    }
    answer_end drawn_fault() {
        using enum answer_end;
        answer_end drawn = open;
        for (const auto& [one, rate] : {std::pair{reset, settings_.faults.reset_rate},
                                        std::pair{stalled, settings_.faults.stall_rate},
                                        std::pair{garbage, settings_.faults.garbage_rate}})
            if (faults_.uniform() < rate.value) drawn = one;
        return drawn;
    }
    /// Frees its connection for another answer.
    void forget(generation& g) {
        g.to->answering = 0;
        generating_.erase(g.id);
    }

    // ---- the engine's steps

    void arm_step_timer() {
        const double end = model_.step_end();
        if (away_ || std::isinf(end) || end == armed_for_) return;
        armed_for_ = end;
        carrier_.at(start_ns_ + ns_of(end), [this, end] {
            if (end != armed_for_) return;  // the timer was for another step
            armed_for_ = 0;
            reached_s_ = std::max(reached_s_, end);
            if (away_) return;
            catch_up();
            arm_step_timer();
        });
    }
    /// Ends every step that is over. A request after a stall of this thread must not join a step
    /// that began before it.
    void catch_up() {
        if (catching_up_) return;  // an answer that ends here may bring the next request at once
        catching_up_ = true;
        while (!away_ && model_.step_end() <= now_s())
            for (const auto& emission : model_.finish_step()) emit(emission);
        catching_up_ = false;
    }
    void write_content(generation& g, const std::string& words, const engine_model::emission& e) {
        if (!std::exchange(g.begun, true)) {
            g.to->write(stream_head(g.facts.asked.api));
            write_chunk(g, answer_opening(g.facts));
        }
        write_chunk(g, answer_piece(g.facts, words, e));
    }
    /// An empty chunk would end the body.
    static void write_chunk(generation& g, const std::string& data) {
        if (!data.empty()) g.to->write(chunk_of(data));
    }
    void break_off(generation& g) {
        carrier_.send();  // a reset drops what is not sent
        if (cancel(g.id)) tallies_.count(end_reason::error);
        forget(g);
        end_request(g, g.after_content);
        if (g.after_content == answer_end::reset) g.to->reset();
        if (g.after_content == answer_end::garbage) g.to->write("\xFF\xFEno chunk\r\n");
        // The client must end it.
    }
    void finish(generation& g) {
        forget(g);
        if (!g.to_store.empty()) stored_.add(response_id(g.facts), g.to_store + g.facts.text);
        end_request(g, answer_end::ok);
        if (!g.facts.asked.streamed)
            return g.to->answer({200, "application/json", whole_answer(g.facts)});
        write_chunk(g, answer_ending(g.facts));
        g.to->write(last_chunk);
        g.to->next();
    }

    const engine settings_;
    service_observer* const told_;
    engine_model model_;
    tallies tallies_{unix_s()};
    generator faults_;
    const request_handler handler_{[this](simulated_session& s) { on_request(s); },
                                   [this](std::uint64_t id) { on_gone(id); }};
    vector<std::weak_ptr<simulated_session>> all_{};
    simulated_profiler profiler_{};
    std::set<std::string> adapters_{};
    stored_responses stored_;
    unsigned long long last_number_ = 0;
    long long generations_ = 0;
    std::uint64_t next_id_ = 0;
    double armed_for_ = 0;  // the step's end, 0: none
    double reached_s_ = 0;  // the last step's end that was reached
    bool away_ = false;
    bool catching_up_ = false;
};

// ===== [E] the simulated server on real sockets ==================================================
// One thread waits for them as the client does for its own, so that the kernel's stamps tell when a
// request came.

class socket_host;

/// One connection. What an action writes is sent at its end, in one piece.
class socket_session : public simulated_session, public socket_user {
public:
    socket_session(socket_host& host, const request_handler& handler)
        : simulated_session(handler), host_(host) {}
    void begin(network::socket s) {
        socket_ = std::move(s);
        keeps_this_ = shared_from_this();
    }
    void on_readable() override;
    void on_writable() override { write_more(); }
    long long arrived_ns() const override { return arrived_ns_; }
    using simulated_session::write_more;

protected:
    long long give(std::string_view bytes) override;
    void end(int error) override;

private:
    void on_written() override;
    virtual void received(std::string_view bytes) { take(bytes); }

    socket_host& host_;
    network::socket socket_{};
    std::shared_ptr<simulated_session> keeps_this_{};  // while it has a socket
    long long arrived_ns_ = 0;
};

/// Sockets of a service that a derived class has: it calls serve() last when it is made, and stop()
/// first when it is destroyed.
class socket_host : private socket_user {
public:
    /// Throws std::runtime_error if the port is not available.
    explicit socket_host(address at) {
        network_.stamp_arrivals();
        descriptor fd = new_socket(at.storage.ss_family);
        sockaddr* const bound = reinterpret_cast<sockaddr*>(&at.storage);
        const int on = 1;
        ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (::bind(fd.get(), bound, at.size) == 0 && ::listen(fd.get(), 4096) == 0 &&
            ::getsockname(fd.get(), bound, &at.size) == 0)
            listener_ = network_.listen(std::move(fd), *this);
        if (!listener_) throw std::runtime_error(error_text(errno));
        port_ = ntohs(at.storage.ss_family == AF_INET6
                          ? reinterpret_cast<const sockaddr_in6*>(bound)->sin6_port
                          : reinterpret_cast<const sockaddr_in*>(bound)->sin_port);
    }

    int port() const { return port_; }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    /// Why it ended by itself, "" if it did not.
    std::string error() const { return has_failed_ ? error_ : ""; }
    /// All connections end.
    void stop() {
        stops_ = true;
        if (thread_.joinable()) thread_.join();
    }

protected:
    virtual std::shared_ptr<socket_session> new_session() {
        return new_shared<socket_session>(*this, service_->handler());
    }
    service_carrier carrier() {
        return {[this](long long ns, std::function<void()> f) { due_.emplace(ns, std::move(f)); },
                [this] { send(); },
                [this] {
                    if (listener_) network_.close(std::exchange(listener_, nullptr));
                }};
    }
    void serve(simulated_service& s) {
        service_ = &s;
        thread_ = contained_thread([this] { run(); },
                                   [this](const std::string& why) {
                                       error_ = why;
                                       has_failed_ = true;
                                       leave();
                                   });
    }

private:
    friend class socket_session;
    void run() {
        while (!stops_) {
            const long long now = now_ns(), tick = now + ns_of(0.02);
            network_.wait(due_.empty() ? tick : std::min(due_.begin()->first, tick), now);
            network_.each([this] { act(); });
            act();
        }
        leave();
    }
    void leave() {
        service_->go_away();
        send();
        gone_.clear();
    }
    /// Does what is due. After so many the sockets have their turn.
    void act() {
        send();
        for (int i = 0; i < 256 && !due_.empty() && due_.begin()->first <= now_ns(); ++i) {
            due_.extract(due_.begin()).mapped()();
            send();
        }
        gone_.clear();
    }
    void send() {
        while (!written_.empty()) {
            vector<std::shared_ptr<socket_session>> now;
            std::swap(now, written_);
            for (const auto& s : now) s->write_more();
        }
        service_->on_sent();
    }
    void on_readable() override {
        while (listener_) {
            descriptor fd(::accept(machine_network::fd(listener_), nullptr, nullptr));
            // Without descriptors, connections wait in the queue until there is one.
            if (fd.get() < 0 && errno != EAGAIN)
                due_.emplace(now_ns() + ns_of(0.01), [this] { on_readable(); });
            if (fd.get() < 0) return;
            ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
            ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
            const int on = 1;
            ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            const auto s = new_session();
            if (network::socket known = network_.watch(std::move(fd), AF_INET, *s)) {
                s->begin(std::move(known));
                service_->add(s);
            }
        }
    }
    void on_writable() override {}

    machine_network network_{};
    simulated_service* service_ = nullptr;
    network::socket listener_{};
    int port_ = 0;
    std::multimap<long long, std::function<void()>> due_{};  // of one time: in their order
    vector<std::shared_ptr<socket_session>> written_{};  // they have bytes to send
    vector<std::shared_ptr<simulated_session>> gone_{};  // they may be on the stack
    char buffer_[65536] = {};
    std::string error_{};
    std::atomic<bool> has_failed_{false}, stops_{false};
    std::thread thread_{};
};

inline void socket_session::on_readable() {
    if (!socket_) return;
    const long long n = host_.network_.read(socket_, host_.buffer_, sizeof host_.buffer_);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return gone();
    arrived_ns_ = socket_->came_ns > 0 ? socket_->came_ns : now_ns();
    received({host_.buffer_, static_cast<std::size_t>(n)});
}
inline void socket_session::on_written() {
    host_.written_.push_back(std::static_pointer_cast<socket_session>(shared_from_this()));
}
inline long long socket_session::give(std::string_view bytes) {
    const long long n = socket_ ? host_.network_.write(socket_, bytes.data(), bytes.size()) : -1;
    if (n >= 0 || !socket_ || errno != EAGAIN) return n;
    host_.service_->note_waiting();
    host_.network_.await_room(socket_);
    return 0;
}
inline void socket_session::end(int error) {
    if (!socket_) return;
    const linger at_once{1, 0};
    if (error != 0)
        ::setsockopt(machine_network::fd(socket_), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    host_.network_.close(std::exchange(socket_, nullptr));
    host_.gone_.push_back(std::move(keeps_this_));
}

/// simulated() in its own thread, on this machine.
class simulated_host final : public socket_host {
public:
    explicit simulated_host(const engine& e, int port = 0, service_observer* told = nullptr)
        : socket_host(look_up("127.0.0.1", std::to_string(port).c_str()).found.at(0)),
          service_(e, carrier(), told) {
        serve(service_);
    }
    ~simulated_host() { stop(); }

private:
    simulated_service service_;
};

// ===== [E] a virtual machine: its time and its network ===========================================
// Everything happens in one thread, in the order of its times, so that every run gives the same
// bytes.

/// The server's end of a connection.
class virtual_peer {
public:
    virtual void on_bytes(std::string_view bytes) = 0;
    virtual void on_end() = 0;
    /// Called when it takes bytes again.
    virtual void on_room() = 0;
    /// Whether it has answered a request and is idle.
    virtual bool is_kept_idle() const = 0;
    virtual ~virtual_peer() = default;
};

/// A connection between client and server in one environment: two ordered streams of bytes.
struct virtual_link {
    struct direction {
        long long last_ns = 0;      // arrival of the last bytes on the way
        std::size_t under_way = 0;  // in bytes, unread ones included
    };
    direction to_server{}, to_client{};
    std::shared_ptr<virtual_peer> server{};  // null: not accepted yet, or gone
    // The client's end.
    std::string inbox{};
    long long came_ns = 0;  // arrival of the last byte
    bool has_ended = false, is_let_go = false;
    int error = 0;  // of the end, or of connecting
    bool is_writable = false, is_broken = false;
    std::function<void()> on_change{};  // called on events

    static constexpr std::size_t window = 1 << 18;
};
using shared_link = std::shared_ptr<virtual_link>;

class virtual_listener {
public:
    /// Null: it accepts none now.
    virtual std::shared_ptr<virtual_peer> accepted(const shared_link& l) = 0;
    /// It goes away, and returns later without memory.
    virtual void restart(double away_s) = 0;

protected:
    ~virtual_listener() = default;
};

/// Everything is immediate and nothing fails: functions are virtual for harder environments
/// (tests/simulated/hard_world.hpp).
class virtual_environment : public execution_environment {
public:
    virtual_environment() = default;
    virtual ~virtual_environment() = default;
    virtual_environment(const virtual_environment&) = delete;
    virtual_environment& operator=(const virtual_environment&) = delete;

    // ---- time

    long long now_ns() const override { return now_ns_; }
    double unix_s() const override { return static_cast<double>(now_ns_) * 1e-9 + 1e9; }
    long long waited_ns() const override { return 0; }
    void sleep_until(long long at_ns) override { pass(at_ns, [] { return false; }); }
    void at(long long ns, std::function<void()> what) override {
        to_come_.emplace(std::max(ns, now_ns_), std::move(what));
    }
    /// Runs all events until then, or until the moment in which `enough` is true.
    template <class Enough>
    void pass(long long until_ns, Enough&& enough) {
        bool ends = false;
        while (!to_come_.empty() && to_come_.begin()->first <= (ends ? now_ns_ : until_ns)) {
            const auto next = to_come_.extract(to_come_.begin());
            move_to(next.key());
            next.mapped()();
            ends = ends || enough();
        }
        if (!ends) move_to(until_ns);
    }
    /// A loop without progress in time would never end.
    void note_turn() {
        if (++turns_ > max_turns_at_a_time)
            throw std::logic_error("a million turns in one moment of virtual time");
    }
    /// Whether its kernel stamps arrivals.
    virtual bool stamps_arrivals() const { return true; }
    /// May stop the client for a while, with all else going on.
    virtual void client_runs() {}

    // ---- addresses

    /// Accepts connections from now on; returns the URL.
    std::string listen(virtual_listener& server) {
        servers_.push_back(&server);
        return prefix + std::to_string(servers_.size());
    }
    vector<address> resolved(const http_url& u) const override {
        vector<address> all;
        for (std::size_t n = 1; n <= servers_.size(); ++n)
            if ("http://" + u.host == prefix + std::to_string(n)) all.push_back(address_of(n));
        if (all.empty())
            throw std::runtime_error("the host \"" + printable(u.host) +
                                     "\" is not in this virtual world");
        return all;
    }
    std::unique_ptr<network> new_network() override;
    int use_disk(std::size_t& bytes) override { return disk ? disk(bytes) : 0; }
    std::function<int(std::size_t& bytes)> disk{};  // null: unlimited
    /// Null if nobody ever answers.
    virtual virtual_listener* listener_at(const address& a) {
        sockaddr_in in{};
        std::memcpy(&in, &a.storage, sizeof in);
        const std::size_t number = ntohs(in.sin_port);
        return number > servers_.size() ? nullptr : servers_[number - 1];
    }
    /// The errno of connecting now.
    virtual int error_of_connecting() { return 0; }
    virtual bool refuses() { return false; }

    // ---- bytes

    /// An event of the server.
    virtual void at_server(long long ns, std::function<void()> what) { at(ns, std::move(what)); }
    /// `arrive` gets the bytes, in pieces.
    template <class Arrive>
    void carry(virtual_link::direction& d, std::string_view bytes, const Arrive& arrive) {
        d.under_way += bytes.size();
        while (!bytes.empty()) {
            const std::size_t n = piece_of(bytes.size());
            after_all(d, n, [piece = std::string(bytes.substr(0, n)), arrive] { arrive(piece); });
            bytes.remove_prefix(n);
        }
    }
    /// After all bytes on the way.
    template <class What>
    void after_all(virtual_link::direction& d, std::size_t bytes, What&& what) {
        d.last_ns = arrival_ns(d.last_ns, bytes);
        at(d.last_ns, std::forward<What>(what));
    }
    /// The server's write: bytes taken, below 0 if the connection is closed.
    virtual long long send_to_client(const shared_link& l, std::string_view bytes) {
        if (l->is_let_go || l->is_broken) return -1;
        const std::size_t room =
            virtual_link::window - std::min(virtual_link::window, l->to_client.under_way);
        bytes = bytes.substr(0, room);
        carry(l->to_client, bytes, [this, l](const std::string& piece) {
            if (l->is_let_go || l->has_ended) return;
            l->inbox += piece;
            l->came_ns = now_ns();
            l->on_change();
        });
        return static_cast<long long>(bytes.size());
    }
    /// `error`: 0, or the errno of a reset.
    void end_from_server(const shared_link& l, int error) {
        if (l->is_broken) return;
        l->is_broken = true;
        after_all(l->to_client, 0, [l, error] {
            if (l->is_let_go || l->has_ended) return;
            l->has_ended = true;
            l->error = error;
            l->on_change();
        });
        at(now_ns_, [l] { l->server.reset(); });  // not during its own call
    }
    void send_to_server(const shared_link& l, std::string_view bytes) {
        carry(l->to_server, bytes, [this, l](const std::string& piece) {
            at_server(now_ns_, [this, l, piece] {
                l->to_server.under_way -= piece.size();
                if (!l->server || is_closed_instead(l)) return;
                l->server->on_bytes(piece);
                if (!l->is_let_go) l->on_change();
            });
        });
    }
    void end_from_client(const shared_link& l) {
        l->is_let_go = true;
        after_all(l->to_server, 0, [this, l] {
            at_server(now_ns_, [l] {  // as bytes are, so that the last of them come first
                if (const auto peer = std::exchange(l->server, nullptr)) peer->on_end();
            });
        });
    }

protected:
    /// The number of bytes that arrive at once.
    virtual std::size_t piece_of(std::size_t bytes) { return bytes; }
    /// The arrival of bytes after earlier ones.
    virtual long long arrival_ns(long long last_ns, std::size_t) {
        return std::max(now_ns_, last_ns);
    }
    /// The server closed the connection just as a request came.
    virtual bool is_closed_instead(const shared_link&) { return false; }
    const vector<virtual_listener*>& servers() const { return servers_; }

private:
    static constexpr long long max_turns_at_a_time = 1000000;
    static constexpr const char* prefix = "http://simulated-";

    void move_to(long long ns) {
        if (ns <= now_ns_) return;
        now_ns_ = ns;
        turns_ = 0;
    }
    static address address_of(std::size_t server) {
        sockaddr_in in{};
        in.sin_family = AF_INET;
        in.sin_port = htons(static_cast<std::uint16_t>(server));
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address a;
        std::memcpy(&a.storage, &in, sizeof in);
        a.size = sizeof in;
        return a;
    }

    long long now_ns_ = 1000000000000, turns_ = 0;
    std::multimap<long long, std::function<void()>> to_come_{};  // of one time: in their order
    vector<virtual_listener*> servers_{};
};

struct virtual_socket final : network_socket {
    virtual_socket(socket_user& u, shared_link l) : network_socket(u), link(std::move(l)) {}
    shared_link link;
    bool is_due = false;  // an event is pending

    bool can_be_read() const { return !link->inbox.empty() || link->has_ended; }
    bool can_be_written() const {
        return link->is_writable &&
               (link->has_ended || link->to_server.under_way < virtual_link::window);
    }
};

class virtual_network final : public network {
public:
    explicit virtual_network(virtual_environment& w) : environment_(w) {}

    socket connect(const address& to, const address*, socket_user& user) override {
        environment_.client_runs();
        if (const int error = environment_.error_of_connecting()) {
            errno = error;
            return nullptr;
        }
        const auto link = new_shared<virtual_link>();
        const auto s = new_shared<virtual_socket>(user, link);
        link->on_change = [this, weak = std::weak_ptr(s)] {
            if (const auto known = weak.lock()) note(known);
        };
        virtual_listener* const server = environment_.listener_at(to);
        if (!server) return s;
        const bool is_refused = environment_.refuses();
        environment_.after_all(link->to_server, 0, [this, link, server, is_refused] {
            if (!is_refused && !link->is_let_go) link->server = server->accepted(link);
            if (!link->server) link->error = ECONNREFUSED;
            environment_.after_all(link->to_client, 0, [link] {
                link->is_writable = true;
                if (!link->is_let_go) link->on_change();
            });
        });
        return s;
    }
    int connect_error(const socket& s) override {
        const virtual_link& l = *its(s).link;
        return l.has_ended ? 0 : std::exchange(its(s).link->error, 0);
    }
    long long read(const socket& s, char* into, std::size_t bytes) override {
        virtual_link& l = *its(s).link;
        if (l.inbox.empty() && !l.has_ended) return failed(EAGAIN);
        if (l.inbox.empty()) return l.error == 0 ? 0 : failed(l.error);
        s->came_ns = environment_.stamps_arrivals() ? l.came_ns : 0;
        const std::size_t n = l.inbox.copy(into, std::min(bytes, l.inbox.size()));
        l.inbox.erase(0, n);
        const bool was_full = l.to_client.under_way >= virtual_link::window;
        l.to_client.under_way -= n;
        if (was_full && l.server)
            environment_.after_all(l.to_server, 0, [link = its(s).link] {
                if (link->server) link->server->on_room();
            });
        environment_.client_runs();
        return static_cast<long long>(n);
    }
    long long write(const socket& s, const char* from, std::size_t bytes) override {
        const shared_link& l = its(s).link;
        if (l->has_ended && l->error != 0) return failed(l->error);
        const std::size_t room =
            virtual_link::window - std::min(virtual_link::window, l->to_server.under_way);
        const std::size_t n = std::min(bytes, room);
        if (n == 0) return failed(EAGAIN);
        environment_.send_to_server(l, {from, n});
        return static_cast<long long>(n);
    }
    void await_room(const socket& s) override {
        s->awaits_room = true;
        if (its(s).can_be_written()) note(std::static_pointer_cast<virtual_socket>(s));
    }
    void close(socket s) override {
        s->user = nullptr;
        environment_.end_from_client(its(s).link);
    }

    using network::each;
    using network::wait;
    void wait(long long until_ns, long long now) override {
        environment_.note_turn();
        const bool has_some = !due_.empty();
        environment_.pass(has_some ? now : std::max(until_ns, now),
                          [this] { return !due_.empty(); });
        environment_.client_runs();
    }
    long long full_turns(std::size_t) const override { return 0; }
    void each(const std::function<void()>& after_each) override {
        vector<known_socket> now;
        std::swap(now, due_);
        for (const known_socket& s : now) {
            s->is_due = false;
            if (s->user && s->awaits_room && s->can_be_written()) {
                s->awaits_room = false;
                s->user->on_writable();
            }
            if (s->user && s->link->is_writable && s->can_be_read()) s->user->on_readable();
            if (s->user) note(s);  // as long as there is an event
            after_each();
        }
    }

private:
    using known_socket = std::shared_ptr<virtual_socket>;

    static virtual_socket& its(const socket& s) { return static_cast<virtual_socket&>(*s); }
    static long long failed(int error) {
        errno = error;
        return -1;
    }
    void note(const known_socket& s) {
        const bool any = s->can_be_read() || (s->awaits_room && s->can_be_written());
        if (s->is_due || !s->user || !s->link->is_writable || !any) return;
        s->is_due = true;
        due_.push_back(s);
    }

    virtual_environment& environment_;
    vector<known_socket> due_{};
};

inline std::unique_ptr<network> virtual_environment::new_network() {
    return std::make_unique<virtual_network>(*this);
}

// ===== [E] simulated() as a target ===============================================================

class virtual_session : public simulated_session, public virtual_peer {
public:
    virtual_session(virtual_environment& w, const shared_link& l, const request_handler& handler)
        : simulated_session(handler), environment_(w), link_(l) {}

    void on_bytes(std::string_view bytes) override { take(bytes); }
    void on_end() override { gone(); }
    void on_room() override { write_more(); }
    bool is_kept_idle() const override { return is_kept(); }

protected:
    long long give(std::string_view bytes) override {
        const shared_link l = link_.lock();
        return l ? environment_.send_to_client(l, bytes) : -1;
    }
    void end(int error) override {
        if (const shared_link l = link_.lock()) environment_.end_from_server(l, error);
    }

private:
    virtual_environment& environment_;
    const std::weak_ptr<virtual_link> link_;
};

/// The simulated server at a virtual address.
class virtual_server : public virtual_listener {
public:
    /// Must stay until its environment has no more events.
    virtual_server(virtual_environment& w, const engine& e, service_observer* told = nullptr)
        : environment_(w), engine_(e), told_(told), service_(new_service()), url_(w.listen(*this)) {}
    virtual ~virtual_server() = default;

    const std::string& url() const { return url_; }
    std::shared_ptr<virtual_peer> accepted(const shared_link& l) override {
        if (is_away_) return nullptr;
        const auto s = session_on(l, service_->handler());
        service_->add(s);
        return s;
    }
    void restart(double away_s) override {
        if (is_away_) return;
        service_->go_away();
        alive_ = new_shared<int>();
        environment_.at(environment_.now_ns() + ns_of(away_s),
                        [this] { service_ = new_service(); });
    }

protected:
    virtual std::shared_ptr<virtual_session> session_on(const shared_link& l,
                                                        const request_handler& handler) {
        return new_shared<virtual_session>(environment_, l, handler);
    }

private:
    std::unique_ptr<simulated_service> new_service() {
        is_away_ = false;
        return std::make_unique<simulated_service>(
            engine_,
            service_carrier{
                [this, life = std::weak_ptr(alive_)](long long ns, std::function<void()> what) {
                    environment_.at_server(ns, [life, what = std::move(what)] {
                        if (!life.expired()) what();
                    });
                },
                [] {}, [this] { is_away_ = true; }},
            told_);
    }
    virtual_environment& environment_;
    const engine engine_;
    service_observer* const told_;
    std::shared_ptr<int> alive_ = new_shared<int>();
    bool is_away_ = false;
    std::unique_ptr<simulated_service> service_;
    const std::string url_;
};

/// In the gate's virtual environment if there is one, else in its own thread.
class simulated_engine final : public extension_server {
public:
    explicit simulated_engine(const engine& e) : settings_(e) { check_engine(e); }
    std::string start() override {
        if (auto* const w = dynamic_cast<virtual_environment*>(current_environment)) {
            sleep_s(0.1);  // no two begin at once
            server_ = std::make_unique<virtual_server>(*w, settings_);
            return server_->url();
        }
        host_ = std::make_unique<simulated_host>(settings_);
        return host_->url();
    }
    std::string description() const override { return engine_text(settings_); }

private:
    const engine settings_;
    std::unique_ptr<simulated_host> host_{};
    std::unique_ptr<virtual_server> server_{};
};

inline std::unique_ptr<extension_server> new_simulated_engine(const box& settings) {
    return std::make_unique<simulated_engine>(*settings.get<engine>());
}
inline std::unique_ptr<execution_environment> new_virtual_environment() {
    return std::make_unique<virtual_environment>();
}
inline constinit const extension simulated_servers{.name = "simulated",
                                                   .server = new_simulated_engine,
                                                   .new_environment = new_virtual_environment};

// ===== [E] functions of simulated() in the implementation ========================================

constinit const extension* const
    include_llmbench_simulated_hpp_where_LLMBENCH_MAIN_is = &simulated_servers;

}  // namespace detail

int serve_simulated(const engine& e, int port) {
    const detail::interrupt_guard signals;
    try {
        detail::check_engine(e);
        const detail::simulated_host host(e, port);
        detail::say("listening on " + host.url() + "\n");
        while (!detail::stop_asked.load()) detail::sleep_s(0.05);
    } catch (const std::exception& error) {
        std::cerr << "llmbench: cannot serve on port " << std::to_string(port) << ": "
                  << error.what() << "\n";
        return 1;
    }
    return 0;
}

// ===== [E] a rehearsal: the pace of a measured server, and the predicted results =================

namespace detail {

/// The results of an objective over many runs of the full gate, predicted from one run.
struct foreseen {
    double shows_from = not_a_number;    // a true value that fails in nine of ten runs
    double inconclusive = not_a_number;  // share of the runs
    bool is_known() const { return !std::isnan(inconclusive); }
};
inline constexpr double nine_in_ten = 1.2816;  // normal quantile of 90 %

/// The noise of each statistic by name, from its values by repeat: the standard deviation of the
/// logarithm.
inline std::map<std::string, double> noise_of_repeats(
    const std::map<std::string, vector<double>>& all) {
    std::map<std::string, double> noise;
    for (const auto& [name, values] : all) {
        vector<double> logs;
        for (const double v : values)
            if (std::isfinite(v) && v > 0) logs.push_back(std::log(v));
        if (logs.size() >= 2) noise[name] = std::sqrt(sample_variance(logs));
    }
    return noise;
}

/// A verdict's input by name; null if it has none.
inline const list<double>* input_of(const slo_verdict& v, std::string_view name) {
    for (const named_values& n : v.inputs)
        if (name == n.name.c_str()) return &n.values;
    return nullptr;
}
inline double number_of(const slo_verdict& v, std::string_view name, double otherwise) {
    const list<double>* const all = input_of(v, name);
    return all && all->size() == 1 ? (*all)[0] : otherwise;
}

/// The distances from the limit at which repeats with known noise have a verdict, in one run.
struct reaches {
    double fails_from = infinity, passes_to = -infinity;
};
/// `draws`: of a standard normal, one a repeat. An analysis of repeats far on one side has the same
/// reach anywhere on that side, because their spread does not depend on it.
inline reaches reaches_of_run(const slo_verdict& v, const vector<double>& draws, double noise,
                              double s0, const judging_rule& rule, const stored_side& other) {
    const bool in_pairs = v.counted_in == verdict_unit::pair;
    reaches all;
    const auto analysis_at = [&](std::size_t n, double at) {
        vector<double> distances;
        for (std::size_t i = 0; i < n; ++i) distances.push_back(at + noise * draws[i]);
        return in_pairs ? analysis_of_pairs(distances, s0, rule)
                        : analysis_of_repeats(distances, s0, rule, other);
    };
    const fewest_repeats fewest = fewest_repeats_of(
        v.objective, in_pairs ? repeats_are::in_turns : repeats_are::alone, rule.most);
    for (auto n = static_cast<std::size_t>(fewest.pass); n <= draws.size(); ++n) {
        const interim_analysis far_in = analysis_at(n, -100), far_out = analysis_at(n, 100);
        all.passes_to = std::max(all.passes_to, -100 - far_in.pass_bound);
        if (n >= static_cast<std::size_t>(fewest.fail))
            all.fails_from = std::min(all.fails_from, 100 - far_out.fail_bound);
    }
    return all;
}

/// The noise of repeats in later runs. Machines add noise that no server model has; measured noise
/// is complete.
struct foreseen_noise {
    double sd = 0.02;
    bool is_all = false;  // false: added to the spread of this run's repeats
};

/// For a statistic by repeats: draws 100 runs.
inline foreseen foreseen_of_repeats(const slo_verdict& v, judging_rule rule,
                                    const foreseen_noise& noise) {
    const list<double>* seen = input_of(v, "log_distances");
    if (!seen) seen = input_of(v, "distances");
    const double mean = number_of(v, "mean", not_a_number);
    if (!seen || std::isnan(mean)) return {};
    vector<double> own(seen->begin(), seen->end());
    const double of_run = noise.is_all || own.size() < 2 ? 0 : sample_variance(own);
    const double sd = std::sqrt(of_run + noise.sd * noise.sd);
    stored_side other;
    if (is_difference(v.objective) && input_of(v, "stored_values")) return {};
    if (const list<double>* const stored = input_of(v, "stored_values")) {
        vector<double> logs;
        for (const double x : *stored) logs.push_back(std::log(x));
        other = {static_cast<double>(logs.size()), sample_variance(logs),
                 number_of(v, "day_to_day_sd", 0)};
    }
    const bool is_calibrated = number_of(v, "prior_df", 0) > prior_df;
    rule.trusts_prior = rule.trusts_prior || is_calibrated;
    const double s0 = number_of(v, "prior_sd", prior_sd);
    constexpr int runs = 100;
    generator random(1, 1);
    vector<double> fails_from;
    int open = 0;
    for (int i = 0; i < runs; ++i) {
        vector<double> draws(static_cast<std::size_t>(std::max(1, rule.most)));
        for (double& z : draws) z = random.normal();
        const reaches r = reaches_of_run(v, draws, sd, s0, rule, other);
        fails_from.push_back(r.fails_from);
        open += mean >= r.passes_to && mean <= r.fails_from;
    }
    std::sort(fails_from.begin(), fails_from.end());
    double from = nearest_rank(fails_from, 0.9);
    if (other.repeats > 0) from = std::max(from, std::log1p(2 * other.day_sd));
    if (!std::isfinite(from)) return {not_a_number, static_cast<double>(open) / runs};
    return {at_distance(v.objective, from, v.limit, number_of(v, "scale", 1)),
            static_cast<double>(open) / runs};
}
/// The quantiles of Student's t at the levels of a pass and of a fail.
struct quantiles_of_t {
    double pass = 0, fail = 0;
    quantiles_of_t(const slo_verdict& v, const judging_rule& rule) {
        const double df = number_of(v, "df", 1);
        pass = student_t_quantile(normal_cdf(rule.pass_z), df);
        fail = student_t_quantile(normal_cdf(rule.fail_z), df);
    }
    /// How often neither is shown. `over`: how far the value is beyond the limit.
    double open(double over, double pass_se, double fail_se) const {
        const double decided = normal_cdf(-over / pass_se - pass) + normal_cdf(over / fail_se - fail);
        return std::clamp(1 - decided, 0.0, 1.0);
    }
};
/// For a load at once: by the interval of the estimate, as the analysis of slices counts in units of
/// its own.
inline foreseen foreseen_at_once(const slo_verdict& v, const judging_rule& rule) {
    const double sign = v.objective.at_most ? 1 : -1;
    const estimate_t& e = v.estimate;
    const quantiles_of_t t(v, rule);
    const double pass_se = std::fabs((v.objective.at_most ? e.high : e.low) - e.value) / t.pass;
    const double fail_se = std::fabs(e.value - (v.objective.at_most ? e.low : e.high)) / t.fail;
    if (!(pass_se > 0) || !(fail_se > 0) || !std::isfinite(pass_se) || !std::isfinite(fail_se))
        return {};
    return {v.limit + sign * (t.fail + nine_in_ten) * fail_se,
            t.open(sign * (e.value - v.limit), pass_se, fail_se)};
}
/// For a statistic judged within a run: by its own error.
inline foreseen foreseen_within_a_run(const slo_verdict& v, const judging_rule& rule) {
    const double mean = number_of(v, "mean", not_a_number);
    const double se = number_of(v, "standard_error", not_a_number);
    if (!(se > 0) || std::isnan(mean)) return {};
    const quantiles_of_t t(v, rule);
    return {at_distance(v.objective, (t.fail + nine_in_ten) * se, v.limit), t.open(mean, se, se)};
}

/// For a share of requests: by binomial counts of the independent ones. The error guard passes by
/// its observed value.
inline foreseen foreseen_of_counts(const slo_verdict& v, const judging_rule& rule) {
    const double effect = std::max(1.0, number_of(v, "design_effect", 1));
    const double trials = number_of(v, "trials", 0), misses = number_of(v, "misses", 0);
    const double allowed = number_of(v, "allowed", 0), repeats = std::max(1, v.repeats);
    const double n = std::floor(trials / effect * std::max(rule.most / repeats, 1.0));
    if (n < 1 || !is_request_fraction(v.objective.statistic.metric)) return {};
    const double pass_level = number_of(v, "pass_level", 0);
    const double fail_level = number_of(v, "fail_level", 0);
    // The smallest number of misses whose bound is beyond the allowed value.
    const auto fewest = [&](auto&& is_beyond) {
        return 1 + miss_counts::last_below(-1, n + 1, [&](double k) { return !is_beyond(k); });
    };
    const double observed = is_as_loose_as_guard(v.objective) ? error_guard().bound : -1;
    const double open = fewest([&](double k) {
        return k / n > observed && clopper_pearson_upper(k, n, pass_level) > allowed;
    });
    const double fails = fewest([&](double k) {
        return clopper_pearson_lower(k, n, fail_level) > allowed;
    });
    const auto at_least = [&](double k, double p) {
        return k <= 0 ? 1 : k > n || p <= 0 ? 0 : incomplete_beta(k, n - k + 1, p);
    };
    const double high =
        bisect(0, 1, 0.9, [&](double fraction) { return at_least(fails, fraction); });
    const double p = misses / trials, shown = fails > n ? not_a_number : high;
    return {v.objective.at_most ? shown : 1 - shown,
            std::clamp(at_least(open, p) - at_least(fails, p), 0.0, 1.0)};
}

/// Unknown for values that are missing or judged in another way.
inline foreseen foreseen_of(const slo_verdict& v, const judging_rule& rule,
                            const foreseen_noise& noise = {}) {
    if (input_of(v, "trials")) return foreseen_of_counts(v, rule);
    if (input_of(v, "slice_parts")) return foreseen_at_once(v, rule);
    const bool is_of_repeats = input_of(v, values_name(kind_of(v.objective))) != nullptr;
    return is_of_repeats ? foreseen_of_repeats(v, rule, noise) : foreseen_within_a_run(v, rule);
}

/// "inconclusive in 3 % of the runs; a miss is shown in nine of ten from 27.1 ms on".
inline std::string foreseen_text(const slo_verdict& v, const foreseen& f) {
    if (!f.is_known()) return {};
    std::string t = printed("inconclusive in %.0f %% of the runs", f.inconclusive * 100);
    if (std::isnan(f.shows_from)) return t + ", and too few requests to show any miss";
    return filled("{t}; a miss is shown in nine of ten from {value} on[, {distance} the limit]",
                  {{"t", t}, {"value", verdict_value_text(v, f.shows_from)},
                   {"distance", distance_text(v, f.shows_from)}});
}

/// "a rehearsal: pass on the model; inconclusive in 3 % of the runs; ...".
inline std::string rehearsed_text(const slo_verdict& v, const foreseen& f) {
    std::string t = filled("{rehearsal_word}: {outcome} on the model",
                           {{"rehearsal_word", rehearsal_word}, {"outcome", to_string(v.outcome)}});
    if (!v.reason.empty()) t += ", " + str(v.reason);
    const std::string more = foreseen_text(v, f);
    return more.empty() ? t : t + "; " + more;
}
/// Replaces verdicts on a model by texts: the verdict it would have been, and the prediction for
/// other runs. An interrupted gate stays invalid.
inline void mark_rehearsed(gate_report& g, const measurements& seen, const std::string& model,
                           const std::map<std::string, double>& noise, double machine_noise) {
    g.rehearsal.model = model;
    for (const repeat_list* variant : {&seen.candidate, &seen.baseline})
        for (const repeat_data& d : *variant)
            if (d.interrupted) return;
    judging_rule rule = g.judged_by.rule;
    rule.pairs_are_fresh = seen.pairs_are_fresh;
    for (slo_verdict& v : g.verdicts) {
        const auto at = noise.find(noise_name(v.objective));
        const foreseen f = foreseen_of(v, rule,
                                       at == noise.end() ? foreseen_noise{machine_noise}
                                                         : foreseen_noise{at->second, true});
        g.rehearsal.objectives.push_back(
            {str(v.objective.text()), v.outcome, f.shows_from, f.inconclusive});
        v.reason = rehearsed_text(v, f);
        if (f.is_known()) v.detectable = 0;  // the prediction says it for later runs
        v.outcome = verdict::skipped;
    }
    g.outcome = gate_outcome::skipped;
}

/// A server's mean pace under a load: seconds, tokens of a request, requests a second.
struct measured_pace {
    double ttft = 0, tpot = 0, e2e = 0;
    double queue_time = -1;  // from the server's metrics; below 0: unknown
    double itl_spread = 0;   // p90 over p50, less 1
    double prompt_tokens = 0, output_tokens = 0, requests_a_second = 0;
    double users = 0;  // of a closed loop
};

/// An engine that is about as fast under that load. The cost of each running sequence is the same
/// share as in the default engine, because one load does not show it. First-token time that prompts
/// cannot explain, because they would fill most steps, delays every answer.
inline engine engine_at_pace(const measured_pace& m) {
    constexpr double max_prefill = 0.6, little_prefill = 0.05;  // of all steps
    constexpr double max_running = 1e5;  // a file may have any value
    engine e;
    const double sequence_fraction = e.step_per_sequence.seconds() / e.decode_step.seconds();
    const double waited_s = std::max(0.0, m.queue_time);
    const double running =
        std::clamp(m.requests_a_second * std::max(0.0, m.e2e - waited_s), 1.0, max_running);
    // A request is read in one step. An unknown wait is half of another step, if one was running.
    const double unreported = m.queue_time < 0 ? 0.5 * std::min(1.0, running - 1) : 0;
    const double prompt_s = std::max(0.0, m.ttft - waited_s - m.tpot * (1 + unreported));
    const double rate = std::max(m.requests_a_second, 1e-9);
    const double computed_s = std::min(prompt_s, max_prefill / rate);
    const double prefill_fraction = computed_s * rate;
    const double step_s = m.tpot * (1 - prefill_fraction) / (1 + sequence_fraction * running);
    e.decode_step = time_span::from_seconds(step_s);
    e.step_per_sequence = time_span::from_seconds(step_s * sequence_fraction);
    e.prefill_per_token = time_span::from_seconds(computed_s / std::max(1.0, m.prompt_tokens));
    e.faults.delay = time_span::from_seconds(prompt_s - computed_s);
    // With few prompts in between, gaps vary as steps do.
    if (prefill_fraction < little_prefill) e.jitter = std::min(0.5, m.itl_spread / 1.2816);
    e.slots = std::max<long long>(e.slots, static_cast<long long>(std::ceil(4 * running)));
    const double bytes_a_token = e.kv.memory_bytes / kv_capacity_tokens(e.kv);
    const double tokens = 4 * running * (m.prompt_tokens + m.output_tokens);
    e.kv.memory_bytes = std::max(e.kv.memory_bytes, bytes_a_token * tokens);
    e.max_model_len = 1 << 20;  // the measured server accepted the requests
    return e;
}

/// Mean times of an engine under a load, in seconds.
struct modelled_pace {
    double ttft = not_a_number, tpot = not_a_number;
};
/// Of requests of the mean lengths, at the measured rate or from as many users.
inline modelled_pace pace_at_means(const engine& e, const measured_pace& m) {
    engine_model server(e);
    generator random(7, 1);
    const int prompt = std::max(1, static_cast<int>(m.prompt_tokens));
    const int output = std::max(2, static_cast<int>(m.output_tokens));
    const double users = std::min(m.users, 1e4), wanted = std::max(400.0, 4 * users);
    double ttft = 0, tpot = 0, done = 0;
    const auto send = [&](double now) {
        server.submit(now, {.prompt_tokens = prompt, .output_tokens = output});
    };
    const auto finish_step = [&] {
        for (const engine_model::emission& x : server.finish_step()) {
            if (!x.finished) continue;
            ++done;
            ttft += x.when.first_token - x.when.arrived + e.faults.delay.seconds();
            tpot += (x.when.last_token - x.when.first_token) / (output - 1);
            if (users > 0) send(x.when.last_token);
        }
    };
    for (double i = 0; i < users; ++i) send(0);
    for (double at = 0, i = 0; users == 0 && i < wanted; ++i) {
        at += random.exponential() / std::max(m.requests_a_second, 1e-3);
        while (server.step_end() <= at) finish_step();
        send(at);
    }
    while (done < wanted && server.step_end() < infinity) finish_step();
    return {ttft / done, tpot / done};
}

/// How near a fitted engine comes to the times that it is fitted to.
struct fit_of_engine {
    engine like{};
    modelled_pace is{};
    double error = infinity;  // the larger one of both, as a share
    bool is_at_means = true;  // of the run's load: its rate or users, and its mean lengths
    bool is_close() const { return error <= 0.1; }
};
/// Corrects an engine until it has these times: its steps by the time per token, and the first
/// token by the delay before it, or by faster prompts where there is none. `pace_of`: the times of
/// an engine under the load.
template <class PaceOf>
fit_of_engine fitted_engine(const measured_pace& to, engine e, const PaceOf& pace_of) {
    const auto times = [](time_span& t, double by) { t = time_span::from_seconds(t.seconds() * by); };
    fit_of_engine best;
    best.like = e;
    for (int tries = 0; tries < 16 && best.error > 0.02; ++tries) {
        const modelled_pace is = pace_of(e);
        if (!(is.ttft > 0 && is.tpot > 0)) break;
        const double first = to.ttft / is.ttft, each = to.tpot / is.tpot;
        const double error = std::max(std::fabs(1 / first - 1), std::fabs(1 / each - 1));
        if (error < best.error) best = {e, is, error};
        times(e.decode_step, std::clamp(each, 0.5, 2.0));
        times(e.step_per_sequence, std::clamp(each, 0.5, 2.0));
        const double delay_s = e.faults.delay.seconds() + to.ttft - is.ttft;
        e.faults.delay = time_span::from_seconds(std::max(0.0, delay_s));
        if (delay_s < 0) times(e.prefill_per_token, std::clamp(first, 0.5, 1.0));
    }
    return best;
}
inline std::string fit_text(const fit_of_engine& f, const measured_pace& to,
                            const std::string& file) {
    const auto of = [](double ttft, double tpot) {
        return filled("mean(ttft) {ttft:t}, mean(tpot) {tpot:t}", {{"ttft", ttft}, {"tpot", tpot}});
    };
    const std::string there = of(to.ttft, to.tpot);
    if (!f.is_close())
        return filled("an engine that CANNOT be fitted to {file} ({there}): it has {means}; "
                      "repeats differ as there",
                      {{"file", file}, {"there", there}, {"means", of(f.is.ttft, f.is.tpot)}});
    return filled("an engine fitted to {file} ({there}, within {error:.1f%} "
                  "%{is_at_means? at mean lengths}; repeats that differ as there)",
                  {{"file", file}, {"there", there}, {"error", f.error},
                   {"is_at_means", f.is_at_means}});
}

struct reported_pace {
    measured_pace pace{};
    std::string load_hash{};
    std::map<std::string, double> noise{};  // of the logarithm of a repeat's statistic, by name
};

/// p90 over p50, less 1; 0 if the file has none.
inline double spread_of_row(const stored_object& row) {
    const double p50 = row.seconds("p50", 0), p90 = row.seconds("p90", 0);
    return p50 > 0 && p90 > p50 ? p90 / p50 - 1 : 0;
}
/// Throws std::invalid_argument with the reason if the text has no such gate or no pace.
inline reported_pace read_pace(const std::string& json, const std::string& file,
                               const std::string& gate_name) {
    json_reader reader;
    const stored_object root = result_document(reader, json, file);
    const stored_object gate = gate_named(root, file, gate_name);
    const std::string of = file + ": \"" + printable(gate.text("name"), 200) + "\" ";
    const std::string fault = fault_of_stored(gate);
    if (!fault.empty()) refuse({of, fault, ", so its times are none of a server to be modelled"});
    const stored_object variant = gate.at("candidate");
    reported_pace t;
    measured_pace& p = t.pace;
    p.ttft = variant.at("ttft").seconds("mean", 0);
    p.tpot = variant.at("tpot").seconds("mean", 0);
    if (!(p.ttft > 0 && p.tpot > 0))
        refuse({of,
                "reports no ttft and no tpot, which an engine is fitted to: its answers were not "
                    "streamed, or had a token each"});
    const stored_object load = gate.at("scenario");
    t.load_hash = load.text("load_hash");
    p.users = load.number("users", 0, max_count, 0);
    p.itl_spread = spread_of_row(variant.at("itl"));
    p.e2e = variant.at("e2e").seconds("mean", p.ttft + p.tpot);
    p.requests_a_second = variant.number("request_throughput", 0, max_rate, 0);
    const double output = variant.number("output_throughput", 0, max_rate, 0);
    const double input = variant.number("input_throughput", 0, max_rate, 0);
    const double each = std::max(p.requests_a_second, 1e-9);
    p.output_tokens = std::clamp(output / each, 1.0, most_tokens);
    p.prompt_tokens = std::clamp(input / each, 1.0, most_tokens);
    std::map<std::string, vector<double>> values;
    for (const stored_object& r : variant.each("repeats")) {
        vector<named_number> statistics;
        field_reader from(r);
        named_fields(from, {"statistics"}, statistics, any_number);
        for (const named_number& n : statistics) values[n.name].push_back(n.value);
    }
    t.noise = noise_of_repeats(values);
    const vector<double>& waits = values["mean(queue_time)"];
    if (!waits.empty() && mean_of(waits) >= 0) p.queue_time = mean_of(waits);
    return t;
}

// ===== [E] models of servers in a rehearsal ======================================================

/// An engine for each server of a gate; they differ only in their seeds.
struct rehearsal_model {
    engine like{};
    std::string words{};  // describes it
    std::map<std::string, double> noise{};  // of repeats, if from a measured run
    double machine_noise = foreseen_noise().sd;  // added to the model's own, for other statistics

    engine of(std::size_t server) const {
        engine e = like;
        e.seed = static_cast<long long>(like.seed) + 1000 * static_cast<long long>(server);
        return e;
    }
};

/// Throws for targets and objectives that a model cannot predict.
inline void check_rehearsal(const scenario& what) {
    if (!what.beside.empty())
        refuse({"LLMBENCH_REHEARSE: beside has side tasks, and a model is no server that they "
                "could be done to: rehearse the load without them"});
    for (const slo& s : what.slos)
        if (is_of_start(s.statistic.metric))
            refuse({"LLMBENCH_REHEARSE: ", str(s.text()),
                    " is of a process, and a rehearsal starts none"});
}

/// On engines with one pace.
class simulated_rehearsal final : public rehearsal {
public:
    explicit simulated_rehearsal(rehearsal_model m) : model_(std::move(m)) {}
    std::string model() const override { return model_.words; }
    any_target stand_in(std::size_t server) const override {
        return simulated(model_.of(server));
    }
    void mark(gate_report& g, const measurements& seen) const override {
        mark_rehearsed(g, seen, model_.words, model_.noise, model_.machine_noise);
    }
    stored_gate stored_baseline(const scenario& s, const gate_identity& who,
                                const settings& asked, scenario_use use) const override {
        rehearsal_model other = model_;
        other.like.seed = 2000;
        const gate_figures f =
            figures_on(std::move(other), s, asked,
                       plan_of(s, who, asked.seed, {use, {}, 0},
                               api_of(s.target, asked.candidate)));
        stored_gate reported;
        for (const repeat_figures& d : f.candidate.repeats)
            for (const named_number& n : named_statistics(f.kept, d))
                reported.statistics[n.name].push_back(n.value);
        return reported;
    }

    /// All repeats of a plan on a model, apart from the environment of its own.
    static gate_figures figures_on(rehearsal_model on, const scenario& s, const settings& asked,
                                   plan p) {
        virtual_environment apart;
        const inside_environment inside(&apart);
        p = with_judging(std::move(p),
                         [](planned_judging& j) { j.has_stored_baseline = false; });
        run_mode mode = mode_of(s.baseline, p.name, asked);
        mode.model = new_shared<simulated_rehearsal>(std::move(on));
        mode.kind = run_kind::calibrate;
        gate_servers servers(s, asked, mode.model.get());
        gate_run run(std::move(p), servers, mode, progress_mode::off);
        if (run.bring_up()) run.repeat_until_decided();
        const measured_gate m = run.finished();
        return figures_of(m.what, m.seen, m.what.judged->slos);
    }

private:
    const rehearsal_model model_;
};

/// One repeat of a gate, if that is the load with this hash.
inline std::optional<plan> plan_of_load(const scenario& s, const settings& asked,
                                        const std::string& hash) try {
    plan p = plan_of(s, {}, asked.seed, scenario_use::gate,
                     api_of(s.target, asked.candidate));
    if (hash.empty() || load_hash(*p.sent) != hash) return {};
    return with_judging(std::move(p), [](planned_judging& j) { j.measure_all(1); });
} catch (const std::invalid_argument&) {
    return {};  // no load of a gate
}
inline modelled_pace pace_of_gate(const engine& e, const scenario& s, const settings& asked,
                                  const plan& p) {
    const gate_figures f = simulated_rehearsal::figures_on({e, "", {}}, s, asked, p);
    return {f.candidate.row(metric_id::ttft).mean, f.candidate.row(metric_id::tpot).mean};
}

/// `gate`: its name in the file that the model is fitted to. A simulated target is its own model,
/// and its machine adds no noise.
inline rehearsal_model model_for(const settings& asked, const std::string& gate,
                                 const scenario& s) {
    const auto* const brought = s.target.what().get<extension_value>();
    const engine* const own = brought ? brought->what.get<engine>() : nullptr;
    if (asked.rehearse == "1" && own) {
        engine like = *own;
        like.faults = {.delay = own->faults.delay};  // faults that end answers have no pace
        return {like, "the engine of its own target, whose repeats differ as they do", {}, 0};
    }
    if (asked.rehearse == "1")
        return {engine{}, "the default engine, repeats taken to differ by 2 %", {}};
    const std::string file = printable(asked.rehearse, 200);
    reported_pace t = read_pace(file_content(asked.rehearse, "LLMBENCH_REHEARSE"), file, gate);
    fit_of_engine f = fitted_engine(t.pace, engine_at_pace(t.pace), [&](const engine& e) {
        return pace_at_means(e, t.pace);
    });
    if (const auto p = plan_of_load(s, asked, t.load_hash)) {
        f = fitted_engine(t.pace, f.like, [&](const engine& e) {
            return pace_of_gate(e, s, asked, *p);
        });
        f.is_at_means = false;
    }
    return {f.like, fit_text(f, t.pace, file), std::move(t.noise)};
}

inline std::shared_ptr<const rehearsal> rehearsal_on_engine(const settings& asked,
                                                            const std::string& gate,
                                                            const scenario& s) {
    auto made = new_shared<simulated_rehearsal>(model_for(asked, gate, s));
    check_rehearsal(s);
    return made;
}
inline constinit const extension rehearsals{.name = "simulated",
                                            .rehearsal_of = rehearsal_on_engine};
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_rehearsals() { add(rehearsals); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_SIMULATED_IMPLEMENTED
