// the timeline of one answer
// The definitions "metrics/1": all numbers derive from these timelines.
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/dialects/output.hpp"
#include "core/dialects/stream_event.hpp"

#include <algorithm>  // min, max
#include <cstdint>  // uint32_t, uint64_t
#include <string>
#include <utility>  // exchange, move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Gaps between events in microseconds, 4 bytes each. It grows by blocks of 4 KiB without copying,
/// and releases them from the front.
class gap_list {
public:
    void push_back(std::uint32_t us) {
        if (size_ % block == 0) add_block();
        blocks_.back().push_back(us);
        ++size_;
    }
    /// Adds so many; null: of 0, for events that came together.
    void add(const std::uint32_t* us, std::size_t n) {
        for (std::size_t some = 0; n > 0; n -= some, size_ += some) {
            if (size_ % block == 0) add_block();
            vector<std::uint32_t>& last = blocks_.back();
            some = std::min<std::size_t>(n, block - size_ % block);
            if (us) last.append(us, us + some), us += some;
            else last.resize(last.size() + some);
        }
    }
    /// Returns the index of the first one.
    std::uint64_t append(const gap_list& more) {
        const std::uint64_t at = size_;
        more.for_each_block([this](const vector<std::uint32_t>& b) { add(b.data(), b.size()); });
        return at;
    }
    /// The same without copying: partly filled blocks leave unused indices.
    std::uint64_t take(gap_list&& more) {
        const std::uint64_t at = blocks_.size() * block;
        std::move(more.blocks_.begin(), more.blocks_.end(), std::back_inserter(blocks_));
        size_ = at + more.size_;
        more = gap_list();
        return at;
    }
    std::uint32_t operator[](std::uint64_t at) const { return blocks_[at / block][at % block]; }
    /// The index of the next gap.
    std::uint64_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    /// Keeps the first block for the next stream.
    void clear() {
        if (blocks_.size() > 1) blocks_.resize(1);
        if (!blocks_.empty()) blocks_[0].clear();
        size_ = released_ = 0;
    }
    /// Releases gaps before this index; other indices stay valid.
    void release_before(std::uint64_t at) {
        for (; (released_ + 1) * block <= at; ++released_)
            blocks_[released_] = {};  // returns its memory
    }
    template <class F>
    void for_each_block(F&& f) const {
        for (const vector<std::uint32_t>& b : blocks_) f(b);
    }

private:
    static constexpr std::uint64_t block = 1024;
    [[gnu::noinline]] void add_block() {
        // Reuses the block that clear() kept.
        if (size_ == 0 && !blocks_.empty()) return;
        blocks_.emplace_back();
        blocks_.back().reserve(block);
    }
    vector<vector<std::uint32_t>> blocks_{};
    std::uint64_t size_ = 0, released_ = 0;
};

/// From the bytes of events.bin: four per gap, little-endian.
inline gap_list gaps_in(std::string_view bytes) {
    gap_list gaps;
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        std::uint32_t gap = 0;
        for (std::size_t b = 4; b-- > 0;) gap = gap << 8 | static_cast<unsigned char>(bytes[i + b]);
        gaps.push_back(gap);
    }
    return gaps;
}

/// Builds a request's record and gaps from the events of its stream and their times.
class stream_timeline {
public:
    void on_event(const stream_event& e, long long now_ns) {
        if (ended_) return;
        if (!e.is_content_alone || e.done) return on_any_event(e, now_ns);
        on_content(e, now_ns);
        if (e.reports_counts) note_usage(usage_, e);
    }
    /// The body is complete or cut off.
    void on_body_end(long long now_ns) {
        if (ended_) return;
        if (finished_ > 0 && finished_ >= choices_) return end(now_ns);
        end_ns_ = now_ns;
        fail(request_status::truncated,
             finished_ > 0 ? printed("the answer ended after %d of its %d choices", finished_,
                                     choices_)
             : came_.events == 0 ? "the answer ended before any content"
                            : "the answer ended without a finish reason or [DONE]");
    }
    void fail(request_status status, std::string error) {
        if (ended_) return;
        ended_ = true;
        status_ = status;
        error_ = std::move(error);
    }
    /// The latest events were read together, or with a part of the next one, by a late client: they
    /// came after `since_ns`. The last one has the time of the read.
    void note_unknown(int events, long long since_ns) {
        const bool has_first = events == came_.events;
        unknown_gaps_ += has_first ? events - 1 : events;
        if (has_first) first_early_ns_ = std::max(first_ns_ - since_ns, 0ll);
    }
    bool ended() const { return ended_; }
    /// So many events like the last one do not end it, except for a single one; 0: it has ended.
    std::size_t room() const {
        const long long left = std::min(static_cast<long long>(max_events) - 1 - came_.events,
                                        (most_bytes - own_bytes_) / most_of_event);
        return ended_ ? 0 : came_.events == 0 ? 1 : static_cast<std::size_t>(std::max(left, 1ll));
    }
    int events() const { return came_.events; }
    long long last_content_ns() const { return last_ns_; }
    const gap_list& gaps_us() const { return gaps_; }

    void write_to(record& r) const {
        r.first_token_ns = first_ns_;
        r.last_token_ns = last_ns_;
        r.second_token_ns = second_ns_;
        r.first_answer_ns = answer_ns_;
        r.end_ns = end_ns_;
        r.events = came_.events;
        r.reads = reads_;
        r.first_read_events = first_read_events_;
        r.unknown_gaps = unknown_gaps_;
        r.first_early_ns = first_early_ns_;
        r.text_bytes = came_.bytes;
        r.choices = choices_;
        const textless_tail end = own_end();
        streamed_content came = came_;
        came.textless = end.is_told() ? end.without_event() : 0;
        const token_counts t = tokens_of(usage_, came);
        r.hidden_tokens = t.hidden;
        r.first_event_tokens = came_.events ? std::max(came_.first_tokens - t.before, 1) : 0;
        r.prompt_tokens = std::max(t.prompt, 0);
        // Usage of 0 despite output is invalid.
        const bool reported = usage_.completion_tokens > 0 || tokenless_ ||
                          (usage_.completion_tokens == 0 && came_.events == 0);
        r.cached_tokens = t.cached;
        r.reasoning_tokens = t.reasoning;
        r.token_source = reported       ? token_origin::usage
                         : expects_usage_ ? token_origin::no_usage
                                        : token_origin::events;
        r.output_tokens = reported ? t.output : came_.events;
        r.textless_ns = reported && end.is_far() ? finish_ns_ - last_ns_ : 0;
        r.tokens_at_once = at_once(r.output_tokens - std::max(t.hidden, 0), r.first_event_tokens);
        r.status = status_;
        r.finish_reason = printable(finish_reason_, 40);
        r.error = error_;
    }
    void reset(const asked_answer& asked = {}) {
        gap_list gaps = std::move(gaps_);
        vector<std::uint32_t> bytes = std::move(bytes_);
        *this = stream_timeline();
        expects_usage_ = asked.expects_usage;
        gaps.clear();
        bytes.clear();
        gaps_ = std::move(gaps);
        if (bytes.capacity() <= 1024) bytes_ = std::move(bytes);
    }

private:
    static constexpr long long most_bytes = 64 << 20;
    static constexpr long long most_of_event = stream_event::most_alike;

    int at_once(int tokens, int first) const {
        if (came_.events < 2 || tokens <= first) return 0;
        vector<std::uint32_t> gaps, bytes;
        gaps_.for_each_block([&](const vector<std::uint32_t>& b) {
            gaps.append(b.begin(), b.end());
        });
        if (textless_events_ == 0) return tokens_at_once(bytes_, gaps, tokens, first);
        // They are tokens as the others, and would have had as many bytes.
        const long long usual = std::max(own_bytes_ / (came_.events - textless_events_), 1ll);
        bytes.append(bytes_.begin(), bytes_.end());
        for (std::uint32_t& n : bytes)
            if (n == 0) n = static_cast<std::uint32_t>(std::min(usual, most_of_event));
        return tokens_at_once(bytes, gaps, tokens, first);
    }
    /// Of one answer whose usage came at its end only.
    textless_tail own_end() const {
        if (is_running_ || choices_ > 1 || finish_ns_ == 0) return {};
        return {came_.events - 1, usage_.completion_tokens - came_.first_tokens,
                static_cast<double>(last_ns_ - first_ns_),
                static_cast<double>(finish_ns_ - last_ns_)};
    }
    /// Whether usage counts what came, and so shows that the server generated no more.
    bool counts_all() const {
        const int told = usage_.completion_tokens;
        return told > 0 && 2ll * told >= came_.events && told - max_event_tokens <= came_.bytes;
    }
    void on_any_event(const stream_event& e, long long now_ns) {
        if (e.malformed) return fail(request_status::protocol, e.error);
        if (e.content && choices_ == 1 && e.choices == 1 &&
            stream_event::is_state(e.finish_reason, finish_reason_)) {
            state_ = std::exchange(finish_reason_, {});
            finished_ = 0;
        }
        const bool says_end = !e.finish_reason.empty() && e.finish_reason != state_;
        if (says_end)
            stream_event::note_finish(finish_reason_, finish_choice_, e.finish_reason,
                                      e.finish_choice);
        if (!e.error.empty()) {
            end_ns_ = now_ns;
            return fail(request_status::server, printable(e.error));
        }
        // What a running usage has more than before are tokens without text.
        const int more = e.completion_tokens - std::max(usage_.completion_tokens, 0);
        if (e.content) on_content(e, now_ns);
        else if (is_running_ && finished_ == 0 && more > 0) on_textless(e, more, now_ns);
        if (ended_) return;
        if ((says_end || e.done) && finish_ns_ == 0) finish_ns_ = now_ns;
        came_.hides_thought = came_.hides_thought || e.hides_thought;
        has_media_ = has_media_ || e.has_media;
        choices_ = std::max(choices_, e.choices);
        if (says_end) finished_ += std::max(e.finished, 1);
        note_usage(usage_, e);
        tokenless_ = tokenless_ || e.tokenless;
        if (!e.done) return;
        if (finish_reason_.empty() && !e.is_body_end && counts_all()) finish_reason_ = "done";
        end(now_ns);
    }
    void on_textless(const stream_event& e, int tokens, long long now_ns) {
        on_content(e, now_ns);
        ++textless_events_;
        came_.bytes += std::min(tokens, static_cast<int>(max_text_bytes) - came_.bytes);
    }
    /// Those before it came together with it, and none of them is the first.
    void on_content(const stream_event& e, long long now_ns) {
        const auto events = static_cast<int>(e.before.size() + 1);
        int bytes_before = 0;
        for (const std::uint32_t bytes : e.before) bytes_before += static_cast<int>(bytes);
        if (came_.events == 0) {
            first_ns_ = now_ns;
            came_.first_tokens = e.first_tokens;
            came_.first_bytes = e.text_bytes;
            came_.is_counted = e.counted;
            is_running_ = e.counts_usage;
        } else {
            // Gaps are differences of rounded offsets, so that their sum never drifts.
            const long long offset = (now_ns - first_ns_ + 500) / 1000;
            gaps_.push_back(
                static_cast<std::uint32_t>(std::min(offset - offset_us_, 4294967295ll)));
            gaps_.add(nullptr, e.before.size());
            offset_us_ = offset;
            if (came_.events == 1) second_ns_ = now_ns;
        }
        came_.events += events;
        if (e.answer && answer_ns_ == 0) answer_ns_ = now_ns;
        if (now_ns != last_ns_) ++reads_;
        if (reads_ == 1) first_read_events_ += events;
        constexpr int most = static_cast<int>(max_text_bytes);
        came_.bytes += std::min(e.text_bytes + bytes_before, most - came_.bytes);
        came_.reasoning_bytes += std::min(e.reasoning_bytes + e.reasoning_before,
                                          most - came_.reasoning_bytes);
        if (e.reasoning_bytes > 0) came_.reasoning_events += events;
        own_bytes_ += e.own_bytes + bytes_before;
        bytes_.append(e.before.data(), e.before.data() + e.before.size());
        bytes_.push_back(static_cast<std::uint32_t>(e.own_bytes));
        last_ns_ = now_ns;
        if (own_bytes_ > most_bytes || came_.events >= max_events)
            fail(request_status::protocol,
                 "the answer does not end: it has over 64 MiB, or 10 million events");
    }
    void end(long long now_ns) {
        end_ns_ = now_ns;
        const std::string reason = "finish reason \"" + printable(finish_reason_, 40) + "\"";
        if (stream_event::is_failure(finish_reason_)) return fail(request_status::server, reason);
        if (came_.events == 0)
            return fail(request_status::empty,
                        std::string(has_media_ ? "complete with sound or images only, which are "
                                                 "no tokens of text"
                                               : "complete without any content") +
                            (finish_reason_.empty() ? "" : ", " + reason));
        ended_ = true;
        status_ = request_status::ok;
    }

    gap_list gaps_{};                // between events
    vector<std::uint32_t> bytes_{};  // of each
    std::string finish_reason_{}, state_{}, error_{};
    long long first_ns_ = 0, last_ns_ = 0, end_ns_ = 0, offset_us_ = 0;
    long long second_ns_ = 0, answer_ns_ = 0, first_early_ns_ = 0, own_bytes_ = 0;
    long long finish_ns_ = 0;
    int unknown_gaps_ = 0;
    int reads_ = 0, first_read_events_ = 0, textless_events_ = 0;
    int choices_ = 1, finished_ = 0, finish_choice_ = 0;
    streamed_content came_{};
    usage_counts usage_{};
    request_status status_ = request_status::unsent;
    bool is_running_ = false;  // usage tells tokens with each event
    bool ended_ = false, tokenless_ = false, has_media_ = false, expects_usage_ = false;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
