// the finished requests of one client thread, and the answers that it keeps
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/secrets.hpp"
#include "core/wire/http.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/request_log.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "effects/system/clock.hpp"
#include "effects/load/load_target.hpp"
#include "effects/load/order.hpp"

#include <algorithm>  // move
#include <array>
#include <cstdint>  // uint32_t, uint64_t
#include <iterator>  // back_inserter
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Grades answers as they come and drops their texts, except those compared with the other
/// variant's and some that reports may show.
class answer_keeper {
public:
    answer_keeper(const load_order& order, load_state& shared) : order_(order), shared_(shared) {}

    /// Keeps the body of a request, of which the server says later how many tokens it has.
    void on_sent(std::size_t index, const std::string& request) {
        if (!order_.what->sent->counts_work) return;
        constexpr std::string_view end = "\r\n\r\n";
        bodies_.push_back({index, request.substr(request.find(end) + end.size())});
    }
    /// Writes the facts of the answer into its record.
    void on_answer(const planned_request& w, record& r, const answer_reader& a) {
        const answer_use use = answer_use_at(*order_.what->sent, w.index);
        const vector<std::string>& secrets = order_.target->secrets;
        if (use.wanted) {
            grade(r, *use.wanted, a.words());
            r.graded = without_secrets(str(r.graded), secrets);
        }
        if (r.status != request_status::ok || !(use.wanted || use.is_compared)) return;
        std::string answer = a.said().joined();
        if (use.is_greedy) r.answer_hash = answer_hash(answer);
        if (phase_of(order_, shared_, w) != run_phase::measure) return;
        if (use.wanted && may_be_shown(r))
            shown_.push_back(
                {w.index,
                 without_secrets(excerpt(answer, max_shown_bytes, answer.size()), secrets)});
        if (use.is_compared && (shared_.text_bytes += answer.size()) <= max_text_bytes_of_an_arm)
            texts_.push_back({w.index, std::move(answer)});
    }
    void move_into(repeat_data& d) {
        std::move(texts_.begin(), texts_.end(), std::back_inserter(d.texts));
        std::move(shown_.begin(), shown_.end(), std::back_inserter(d.shown));
        std::move(bodies_.begin(), bodies_.end(), std::back_inserter(d.bodies));
    }

private:
    static constexpr std::size_t max_text_bytes_of_an_arm = std::size_t{32} << 20;
    /// The first wrong ones of the candidate, or all of them.
    bool may_be_shown(const record& r) {
        if (order_.variant == run_variant::baseline) return false;
        if (order_.show == answers_shown::all) return true;
        return order_.show == answers_shown::open && !*r.right &&
               shared_.texts_shown++ < max_answers_shown;
    }

    const load_order& order_;
    load_state& shared_;
    vector<kept_text> texts_{}, shown_{}, bodies_{};
};

/// Records of one thread and their gaps, kept for the statistics and passed to the writer.
class request_book {
public:
    request_book(const load_order& order, load_state& shared) : order_(order), shared_(shared) {}

    /// Adds the order's data of the request.
    void add(const planned_request& w, record&& r, const gap_list& gaps) {
        r.id = request_id(order_.id_prefix, w.index);
        r.variant = order_.variant;
        r.repeat = order_.number;
        r.phase = phase_of(order_, shared_, w);
        note_place(r, w.index);
        note_asked(r, w.index);
        r.question = answer_use_at(*order_.what->sent, w.index).question;
        shared_.note(r);
        if (order_.out) {
            unwritten_.records.push_back(r);
            gaps.for_each_block([&](const vector<std::uint32_t>& b) {
                unwritten_.gaps.insert(unwritten_.gaps.end(), b.begin(), b.end());
            });
            try_hand_over();  // at once: the order of several books is that of their ends
        }
        finished_.add(w.index, std::move(r), gaps);
        shared_.gaps += gaps.size();
        if (shared_.gaps > order_.max_gaps) count_gaps_of_old(gaps.size());
    }
    /// Passes records to the writer, unless it is in use.
    void try_hand_over() {
        if (order_.out && !unwritten_.records.empty()) order_.out->try_put(unwritten_);
    }
    bool has_unwritten() const { return !unwritten_.records.empty(); }
    /// The same, but waits for it.
    void hand_over() {
        if (order_.out) order_.out->put(unwritten_);
    }
    request_log& finished() { return finished_; }

private:
    void note_place(record& r, std::size_t index) const {
        r.conversation = static_cast<long long>(index / order_.what->sent->stride);
        const graph_step step = step_of(*order_.what, index);
        r.turn = step.turn;
        r.depth = step.depth;
        r.part = step.label;
    }
    /// What the workload asked for, by which the answer is judged.
    void note_asked(record& r, std::size_t index) const {
        const planned_traffic& p = *order_.what->sent;
        r.length_forced = order_.target->api->forces_lengths && forced_tokens(p, index) > 0;
        const bool is_made_up = makes_up_prompts(p);
        if (is_made_up) r.asked_prompt_tokens = item_of(p, index).prompt_tokens;
        if (!is_made_up || own_place_of(p, index).part.stride > 1) r.opening_hash = 0;
        if (r.cached_tokens >= 0 && r.prompt_tokens > 0)
            r.shared_tokens =
                static_cast<int>(shared_tokens(p, index, order_.tokens, r.prompt_tokens));
    }
    /// Counts twice as many old gaps as new ones came, so that the old list shrinks step by step.
    void count_gaps_of_old(std::uint64_t came_in) {
        may_count_ += 2 * came_in + 64;
        may_count_ -= finished_.count(may_count_, now_ns() - 1000000000, window_edges());
    }
    /// Start, end, and possible end of the throughput window; 0: unknown.
    std::array<long long, 3> window_edges() const {
        const long long start = shared_.start_ns, from = shared_.measured_from.load();
        if (!order_.send_at.empty())
            return {start + order_.measured_from_ns, start + order_.send_at.back(), 0};
        if (from == 0) return {0, shared_.exhausted_at.load(), 0};
        return {from, shared_.exhausted_at.load(), from + ns_of(order_.what->sent->duration_s)};
    }

    const load_order& order_;
    load_state& shared_;
    request_log finished_{};
    delivered_requests unwritten_{};
    std::uint64_t may_count_ = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
