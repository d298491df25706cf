// the server of `llmbench serve` behind its sockets: at a pace, or as an engine
#pragma once

#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/lengths.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/service.hpp"
#include "program/serve_log.hpp"
#include "program/values.hpp"

#include <algorithm>  // max, min
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>  // exchange, move, swap

namespace llmbench_program {

/// When a paced server hands over its events: the first one so long after a request, the others so
/// long after each other.
struct pace {
    time_distribution first = time_span::from_seconds(0.05), every = time_span::from_seconds(0.01);
};
enum class usage_sent : unsigned char { as_asked, always, never };
struct serving {
    engine model{};             // faults, reasoning and tokens per event are those of a pace, too
    std::optional<pace> paced{};  // none: the engine's
    std::optional<length_distribution> tokens{};  // of answers; none: what the request asks for
    usage_sent usage = usage_sent::as_asked;
    int error_status = 500;
};

/// What was served since the last call, and how late.
struct served_since {
    vector<served_request> requests{};
    lateness late{};
};

/// Answers as the simulated server does, and keeps what it did until take().
class serving_service final : public simulated_service {
public:
    serving_service(const serving& s, service_carrier c)
        : simulated_service(s.model, std::move(c)),
          is_(s),
          random_(static_cast<std::uint64_t>(static_cast<long long>(s.model.seed)), 55) {}

    /// Of all requests that ended since the last call; lateness is of all since the start.
    served_since take() {
        const std::lock_guard lock(mutex_);
        served_since s;
        std::swap(s.requests, served_);
        s.late = late_;
        return s;
    }
    /// The kernel has the bytes of all answers: how long that took after their hand-over.
    void on_sent() override {
        if (handed_.empty() && ended_.empty()) return;
        const long long took = now_ns() - handed_ns_;
        if (took > usual_send_ns)
            for (const auto& [id, event] : handed_) doubts_[id].emplace_back(event, took);
        handed_.clear();
        const std::lock_guard lock(mutex_);
        for (auto& [id, r] : ended_) {
            if (const auto found = doubts_.find(id); found != doubts_.end()) {
                r.doubts = std::move(found->second);
                doubts_.erase(found);
            }
            served_.push_back(std::move(r));
        }
        ended_.clear();
    }
    void note_waiting() override {
        const std::lock_guard lock(mutex_);
        ++late_.waited;
    }

private:
    struct stream {
        std::uint64_t id = 0;
        long long due_ns = 0;
        int left = 0;
        engine_model::times when{};
    };

    void submit(generation& g) override {
        question& asked = g.facts.asked;
        if (is_.usage != usage_sent::as_asked) asked.wants_usage = is_.usage == usage_sent::always;
        set_length(asked);
        asked.reasoning_tokens = static_cast<int>(is_.model.reasoning.value * asked.output_tokens);
        if (!is_.paced) return simulated_service::submit(g);
        totals_.prompt_tokens += asked.prompt_tokens;
        stream s{.id = g.id, .left = asked.output_tokens};
        s.due_ns = g.entry.received_ns + ns_of(drawn(is_.paced->first));
        s.when.arrived = s.when.admitted = seconds_at(g.entry.received_ns);
        if (!asked.streamed)  // one write, when the last of its events would be due
            for (int n = s.left - per_event(); n > 0; n -= per_event())
                s.due_ns += ns_of(drawn(is_.paced->every));
        hand_over_later(s, asked.streamed ? per_event() : s.left);
    }
    /// A length that the request forces counts; one of the server's own is at most what it asks.
    void set_length(question& asked) {
        if (asked.is_forced || !traits_of(asked.api).generates) return;
        const int most = asked.most_tokens;
        if (is_.tokens) {
            const int own = drawn_length(*is_.tokens, random_, 1);
            asked.output_tokens = most > 0 ? std::min(own, most) : own;
            asked.stops = asked.output_tokens != most;
        } else if (is_.paced) {
            asked.output_tokens = most > 0 ? most : usual_tokens;
            asked.stops = most <= 0;
        }
    }
    void hand_over_later(stream s, int tokens) {
        carrier_.at(s.due_ns, [this, s, tokens]() mutable { hand_over(s, tokens); });
    }
    void hand_over(stream& s, int tokens) {
        if (!generating_.contains(s.id)) return;
        const int n = std::min(tokens, s.left);
        const double now = seconds_at(s.due_ns);
        const bool is_first = s.when.first_token == 0;
        if (is_first) s.when.first_token = now;
        const double before = std::exchange(s.when.last_token, now);
        s.left -= n;
        totals_.generated_tokens += n;
        totals_.finished += s.left == 0;
        emit({s.id, n, s.left == 0, 0, s.when, is_first, is_first ? 0 : now - before});
        if (s.left == 0) return;
        s.due_ns += ns_of(drawn(is_.paced->every));
        hand_over_later(s, tokens);
    }
    double seconds_at(long long ns) const { return static_cast<double>(ns - start_ns_) * 1e-9; }
    int per_event() const {
        return static_cast<int>(std::max<long long>(1, is_.model.tokens_per_event));
    }
    double drawn(const time_distribution& d) {
        return d.kind == time_distribution::shape::fixed ? d.a
                                                         : drawn_seconds(d, random_.next(), 0);
    }

    bool cancel(std::uint64_t id) override {
        return is_.paced ? generating_.contains(id) : simulated_service::cancel(id);
    }
    engine_state state() const override {
        engine_state s = simulated_service::state();
        if (!is_.paced) return s;
        s.has_steps = false;
        s.running = generating_.size();
        s.totals = totals_;
        return s;
    }
    int error_status() const override { return is_.error_status; }
    void on_tokens(generation& g, const engine_model::emission& e, long long now) override {
        if (!g.facts.asked.streamed && !e.finished) return;
        handed_ns_ = now;
        if (g.facts.asked.streamed) g.entry.writes.push_back(now);
        handed_.emplace_back(g.id, g.entry.writes.empty() ? 0 : g.entry.writes.size() - 1);
        const std::lock_guard lock(mutex_);
        late_.late.add(now - (start_ns_ + ns_of(e.when.last_token)));
    }
    void on_end(generation& g) override {
        const service_entry& e = g.entry;
        served_request r;
        r.id = e.request_id;
        r.api = traits_of(g.facts.asked.api).name;
        r.is_streamed = g.facts.asked.streamed;
        r.status = e.status;
        r.ended = e.ended;
        r.prompt_tokens = e.prompt_tokens;
        r.output_tokens = g.facts.output_tokens;
        if (is_.paced) r.first_event_tokens = std::max(1, std::min(per_event(), r.output_tokens));
        r.received_ns = e.received_ns;
        r.end_ns = e.done_ns != 0 ? e.done_ns : now_ns();
        r.tokens_ns = std::move(g.entry.writes);
        ended_.emplace_back(g.id, std::move(r));
    }

    static constexpr int usual_tokens = 100;  // if neither the request nor the server says

    const serving is_;
    generator random_;
    engine_model::counters totals_{};  // of a paced server
    long long handed_ns_ = 0;          // when the last answer was handed over
    vector<std::pair<std::uint64_t, std::size_t>> handed_{};  // since the last on_sent()
    std::unordered_map<std::uint64_t, vector<std::pair<std::size_t, long long>>> doubts_{};
    vector<std::pair<std::uint64_t, served_request>> ended_{};
    std::mutex mutex_{};  // the console's thread takes what this one served
    vector<served_request> served_{};
    lateness late_{};
};

}  // namespace llmbench_program
