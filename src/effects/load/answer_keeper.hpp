// the answers that one client thread keeps
#pragma once

#include "api/result.hpp"
#include "core/base/secrets.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/answers/grading.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/plan.hpp"
#include "effects/load/order.hpp"

#include <algorithm>  // move
#include <iterator>  // back_inserter
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Grades answers as they come and drops their texts, except those compared with the other
/// variant's and some that reports may show.
class answer_keeper {
public:
    answer_keeper(const load_order& order, load_state& shared) : order_(order), shared_(shared) {}

    /// Writes the facts of the answer into its record.
    void on_answer(const planned_request& w, record& r, const answer_reader& a) {
        const answer_use use = answer_use_at(*order_.what->sent, w.index);
        const std::vector<std::string>& secrets = order_.target->secrets;
        if (use.wanted) {
            grade(r, *use.wanted, a.words());
            r.graded = without_secrets(str(r.graded), secrets);
        }
        if (r.status != request_status::ok || !(use.wanted || use.is_compared)) return;
        std::string said = a.said().joined();
        if (use.is_greedy) r.answer_hash = answer_hash(said);
        if (phase_of(order_, shared_, w) != run_phase::measure) return;
        if (use.wanted && may_be_shown(r))
            shown_.push_back(
                {w.index,
                 without_secrets(excerpt(said, max_shown_bytes, said.size()), secrets)});
        if (use.is_compared && (shared_.text_bytes += said.size()) <= max_text_bytes_of_an_arm)
            texts_.push_back({w.index, std::move(said)});
    }
    void move_into(repeat_data& d) {
        std::move(texts_.begin(), texts_.end(), std::back_inserter(d.texts));
        std::move(shown_.begin(), shown_.end(), std::back_inserter(d.shown));
    }

private:
    static constexpr std::size_t max_text_bytes_of_an_arm = std::size_t{32} << 20;
    /// The first wrong ones of the candidate, or all of them.
    bool may_be_shown(const record& r) {
        if (order_.variant == run_arm::baseline) return false;
        if (shared_.show == answers_shown::all) return true;
        return shared_.show == answers_shown::open && !*r.right &&
               shared_.texts_shown++ < max_answers_shown;
    }

    const load_order& order_;
    load_state& shared_;
    std::vector<kept_text> texts_{}, shown_{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
