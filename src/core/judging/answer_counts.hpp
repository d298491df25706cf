// what the completed requests of an objective are, counted
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/decision.hpp"

#include <algorithm>  // find_if, max, min, nth_element, sort
#include <array>
#include <cstddef>  // ptrdiff_t, size_t
#include <map>
#include <set>
#include <string>
#include <utility>  // move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Over 5 % of the completed requests is too much.
inline bool is_too_much(std::size_t some, std::size_t completed) { return some * 20 > completed; }

/// The requests of a metric, and completed ones without a value.
struct value_count {
    std::size_t of = 0, completed = 0, missing = 0;
};
/// Prompt tokens in the server's prefix cache, of how many, and how many the workload repeats; -1:
/// unknown.
struct cache_counts {
    long long requests = 0, prompt = 0, cached = 0, shared = 0;
};
/// The models that completed answers name, of each part of the workload. An alias that all have is
/// one model; of several the most frequent one counts as the one that was asked for.
class model_names {
public:
    void add(const record& r) {
        if (r.part >= parts_.size()) parts_.resize(r.part + std::size_t{1});
        vector<named>& all = parts_[r.part];
        const auto at = std::find_if(all.begin(), all.end(),
                                     [&](const named& m) { return m.name == str(r.model); });
        if (at != all.end()) ++at->n;
        else if (all.size() < 8) all.push_back({str(r.model), 1});
        else ++all.back().n;  // no server makes the list long
    }
    std::size_t of_others() const {
        std::size_t n = 0;
        for (const vector<named>& all : parts_) {
            std::size_t most = 0;
            for (const named& m : all) {
                n += m.n;
                most = std::max(most, m.n);
            }
            n -= most;
        }
        return n;
    }
    /// The two most frequent models of the first part with several.
    struct two_models {
        std::string names{};  // apart by \x1f
        double first = 0, second = 0;
    };
    two_models most_frequent() const {
        for (vector<named> all : parts_) {
            if (all.size() < 2) continue;
            std::sort(all.begin(), all.end(), [](const named& a, const named& b) {
                return a.n != b.n ? a.n > b.n : a.name < b.name;
            });
            return {all[0].name + '\x1f' + all[1].name, as_number(all[0].n), as_number(all[1].n)};
        }
        return {};
    }

private:
    struct named {
        std::string name{};
        std::size_t n = 0;
    };
    vector<vector<named>> parts_{};
};
/// The completed requests of one variant by what makes them invalid.
struct answer_counts {
    std::size_t requests = 0;  // all, with failed ones
    std::size_t completed = 0;
    std::size_t too_short = 0, too_long = 0;  // fewer or more tokens than forced
    // Finish reasons, and the most tokens of a prompt and its answer together.
    std::size_t ended_by_themselves = 0, ended_at_length = 0, ended_without_reason = 0;
    long long most_tokens = 0;
    std::size_t cut_short = 0;                // at their length, before the one asked for
    std::size_t from_cache = 0;               // of a gateway
    model_names models{};
    std::size_t short_prompts = 0;            // read in part, of those with asked lengths
    std::size_t equal_openings = 0;           // whose texts begin alike, of prompts that do not
    /// Whether answers do not depend on what was asked.
    bool are_alike() const { return equal_openings >= 10 && 2 * equal_openings > completed; }
    double alike() const { return as_number(equal_openings) / as_number(completed); }
    std::size_t equal_prompts = 0;            // with the most frequent prompt tokens, if unlikely
    int equal_tokens = 0;
    std::size_t over_content = 0;             // more tokens in usage than in the text
    std::size_t without_usage = 0;            // though the API reports it, and events are no tokens
    std::size_t wrong_usage = 0;              // output tokens in usage that cannot be
    std::size_t may_hide = 0;                 // the number of streamed tokens is unknown
    std::size_t untold_ends = 0;              // a late finish, with tokens or without
    std::size_t over_prompt = 0;              // more prompt tokens than possible
    std::size_t filtered = 0;                 // cut off by a content filter
    // Turns whose history the server keeps; with a prompt no longer than the one before; without
    // usage to tell.
    std::size_t going_on = 0, without_history = 0, untold_history = 0;
    // Of answers that the client read without delay, with tokens after the first event:
    std::size_t paced = 0;
    std::size_t in_one_piece = 0, in_a_burst = 0;
    std::size_t in_large_events = 0;  // of those in a burst
    double event_tokens = 0;          // of an event, summed over these
    // Begin in a burst as well, which a delayed client may have made: not counted above.
    std::size_t perhaps_in_a_burst = 0;
    std::size_t most_in_a_burst() const { return in_a_burst + perhaps_in_a_burst; }
    std::size_t streamed() const { return paced + perhaps_in_a_burst; }
    std::set<long long> moments{},
        coalesced_at{};  // starts of all answers, and of coalesced ones
    double events = 0, read_together = 0;
    cache_counts cache{};
    std::array<value_count, max_metrics> values{};
    const value_count& of(metric_id m) const { return values[static_cast<std::size_t>(m)]; }
};
/// Seconds between events of a server as fast as the client's event loop: at most 1 ms in the
/// typical answer of several reads, and three quarters have several. 0 otherwise. Events that the
/// client merges then hide next to nothing.
inline double fast_gap_of(const repeat_list& variant) {
    vector<double> gaps;
    std::size_t several = 0;
    for (const repeat_data& d : variant)
        for (const record& r : d.records) {
            if (!is_pooled(r) || r.events < 2) continue;
            ++several;
            if (!is_in_one_piece(r)) gaps.push_back(spread_s(r) / (r.events - 1));
        }
    if (gaps.empty() || gaps.size() * 4 < several * 3) return 0;
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::nth_element(gaps.begin(), middle, gaps.end());
    return *middle <= 0.001 ? *middle : 0;
}
inline void add_stream(answer_counts& c, const record& r, double fast_gap) {
    const bool masks = fast_gap == 0 || fast_gap * paced_tokens(r) > 0.010;
    const bool in_one_piece = is_in_one_piece(r) && masks;
    // A delayed client may have merged events, up to the length of its delay.
    const double delay_s = static_cast<double>(r.first_early_ns) * 1e-9;
    if (delay_s > 0 && ((in_one_piece && delay_s * 10 >= wait_s(r)) ||
                        (begins_in_a_burst(r) && delay_s * 2 >= hidden_s(r)))) {
        ++c.perhaps_in_a_burst;
        return;
    }
    c.paced += paced_tokens(r) > 0;
    c.in_one_piece += in_one_piece;
    c.in_a_burst += in_one_piece || begins_in_a_burst(r);
    if (comes_in_large_events(r)) {
        ++c.in_large_events;
        c.event_tokens += static_cast<double>(streamed_tokens(r)) / r.events;
    }
    if (paced_tokens(r) > 0) c.moments.insert(r.first_token_ns / moment_ns);
    if (begins_in_a_burst(r)) c.coalesced_at.insert(r.first_token_ns / moment_ns);
    c.events += r.events;
    if (fast_gap == 0 || in_one_piece)
        c.read_together += std::max(events_read_together(r) - r.unknown_gaps, 0);
}
inline void add_completed(answer_counts& c, const record& r, double fast_gap) {
    ++c.completed;
    const bool at_length = stream_event::is_at_length(str(r.finish_reason));
    c.ended_at_length += at_length;
    c.ended_without_reason += r.finish_reason.empty();
    c.ended_by_themselves += !at_length && !r.finish_reason.empty();
    c.most_tokens = std::max(c.most_tokens, 0ll + r.prompt_tokens + r.output_tokens);
    c.cut_short += is_cut_short(r);
    c.from_cache += r.from_cache;
    c.models.add(r);
    c.over_content += usage_is_over_content(r);
    c.without_usage += r.token_source == token_origin::no_usage;
    c.wrong_usage += is_over_length(r) || usage_is_under_events(r) || usage_is_over_content(r);
    c.may_hide += r.hidden_tokens < 0;
    c.untold_ends += is_untold_end(r);
    c.over_prompt += usage_is_over_prompt(r);
    c.filtered += stream_event::is_filtered(str(r.finish_reason));
    add_stream(c, r, fast_gap);
    if (r.cached_tokens < 0 || r.prompt_tokens <= 0) return;
    ++c.cache.requests;
    c.cache.prompt += r.prompt_tokens;
    c.cache.cached += r.cached_tokens;
}
/// Counts requests with one number of prompt tokens that were sent with sizes of 1 to 2 and more: a
/// server that reads only so much of each.
class equal_prompts {
public:
    void add(const record& r) {
        if (r.prompt_tokens <= 0 || r.most_prompt_tokens <= 0) return;
        with_tokens& of = by_tokens_[r.prompt_tokens];
        of.least = of.n++ == 0 ? r.most_prompt_tokens : std::min(of.least, r.most_prompt_tokens);
        of.most = std::max(of.most, r.most_prompt_tokens);
    }
    void count_in(answer_counts& c) const {
        for (const auto& [tokens, of] : by_tokens_)
            if (of.most / 2 >= of.least && of.n > c.equal_prompts) {
                c.equal_prompts = of.n;
                c.equal_tokens = tokens;
            }
    }

private:
    struct with_tokens {
        std::size_t n = 0;
        int least = 0, most = 0;
    };
    std::map<int, with_tokens> by_tokens_{};
};
/// The main lines of conversations, each of which is one chain: what its turns have said tells what
/// a later one reads.
class main_lines {
public:
    explicit main_lines(const vector<record>& all) {
        const auto follows = [](const record& r) {
            return r.most_prompt_tokens < 0 || (r.turn > 0 && r.asked_prompt_tokens > 0);
        };
        if (!any_of(all, follows)) return;
        for (const record& r : all)
            if (r.status == request_status::ok && r.depth == 0)
                turns_.emplace(std::pair(r.conversation, r.turn), &r);
    }
    void count_in(answer_counts& c, const record& r) const {
        if (r.most_prompt_tokens < 0) count_kept(c, r);
    }
    /// Whether it reports under 80 % of the prompt tokens that its turn had at least: a template or
    /// the fit of words is some tokens off. One without any history is counted as that.
    bool is_short(const record& r) const {
        if (r.asked_prompt_tokens == 0 || r.prompt_tokens <= 0) return false;
        int least = r.asked_prompt_tokens;
        place at = place_of(r);
        while (const record* const before = turn_before(at)) {
            if (r.most_prompt_tokens < 0 && r.prompt_tokens <= before->prompt_tokens) return false;
            least += before->asked_prompt_tokens + words_in(*before);
        }
        return r.prompt_tokens + 16 < 0.8 * least;
    }

private:
    using place = std::map<std::pair<long long, int>, const record*>::const_iterator;
    place place_of(const record& r) const {
        return r.depth > 0 ? turns_.end() : turns_.find({r.conversation, r.turn});
    }
    /// Steps to the answered turn before, null if there is none.
    const record* turn_before(place& at) const {
        if (at == turns_.begin() || at == turns_.end()) return nullptr;
        const long long conversation = at->first.first;
        --at;
        return at->first.first == conversation ? at->second : nullptr;
    }
    /// The tokens of an answer that later turns read: not those of its reasoning.
    static int words_in(const record& r) {
        const int unread = std::max(r.reasoning_tokens, 0) + std::max(r.hidden_tokens, 0);
        return std::max(r.output_tokens - unread, 0);
    }
    /// Counts a turn that goes on from a response, by what its prompt tokens tell of the history:
    /// they are more than those of the turn before, and at most these, its answer and the text
    /// sent.
    void count_kept(answer_counts& c, const record& r) const {
        place at = place_of(r);
        const record* const before = turn_before(at);
        if (!before) return;
        ++c.going_on;
        if (r.prompt_tokens <= 0 || before->prompt_tokens <= 0) {
            ++c.untold_history;
            return;
        }
        const long long most = 0ll + before->prompt_tokens + before->output_tokens;
        c.without_history += r.prompt_tokens <= before->prompt_tokens;
        c.over_prompt += r.prompt_tokens > most - r.most_prompt_tokens;
    }

    std::map<std::pair<long long, int>, const record*> turns_{};
};
/// The most answers that begin with one text.
inline std::size_t most_alike(vector<unsigned long long> openings) {
    std::sort(openings.begin(), openings.end());
    std::size_t most = 0;
    for (std::size_t i = 0, first = 0; i < openings.size(); ++i) {
        if (openings[i] != openings[first]) first = i;
        most = std::max(most, i + 1 - first);
    }
    return most;
}
/// What the selected and completed requests of a repeat were not asked for.
inline odd_counts odd_counts_of(const repeat_data& d, const selects& selected,
                                const main_lines& lines) {
    odd_counts odd;
    vector<unsigned long long> openings;
    bool is_known = true;  // what the workload repeats
    for (const record& r : d.records) {
        if (r.status != request_status::ok || !selected(r)) continue;
        odd.short_outputs += is_under_forced(r);
        odd.long_outputs += is_over_forced(r);
        odd.short_prompts += lines.is_short(r);
        if (r.opening_hash != 0) openings.push_back(r.opening_hash);
        if (r.cached_tokens < 0 || r.prompt_tokens <= 0) continue;
        is_known = is_known && r.shared_tokens >= 0;
        odd.shared_tokens = std::max(odd.shared_tokens, 0ll) + r.shared_tokens;
    }
    if (!is_known) odd.shared_tokens = -1;
    odd.equal_openings = static_cast<long long>(most_alike(std::move(openings)));
    return odd;
}
inline odd_counts odd_counts_of(const repeat_data& d) {
    return odd_counts_of(d, selects(selection(), d), main_lines(d.records));
}
inline void add_odd(answer_counts& c, const odd_counts& odd) {
    c.too_short += static_cast<std::size_t>(odd.short_outputs);
    c.too_long += static_cast<std::size_t>(odd.long_outputs);
    c.short_prompts += static_cast<std::size_t>(odd.short_prompts);
    c.equal_openings += static_cast<std::size_t>(odd.equal_openings);
}
/// The metrics that a request may have no value of. A user's metric is asked for its values only if
/// it is one of `asked`.
inline vector<metric_id> metrics_to_count(const statistic_data& asked) {
    vector<metric_id> may_miss = all_metrics();
    erase_if(may_miss, [&](metric_id m) {
        const auto is_it = [&](metric_id x) { return x == m; };
        if (is_own(m) && !concerns_a_metric(asked, is_it)) return true;
        return facts_of(m).needs == value_needs::nothing && !is_of_turns(m);
    });
    return may_miss;
}
inline void count_values(answer_counts& c, const vector<metric_id>& of, const repeat_data& d,
                         std::size_t i) {
    const record& r = d.records[i];
    const bool ok = r.status == request_status::ok;
    for (const metric_id m : of) {
        if (!is_in_turns_of(m, r.turn)) continue;
        value_count& n = c.values[static_cast<std::size_t>(m)];
        ++n.of;
        n.completed += ok;
        n.missing += ok && !has_value(m, d, i);
    }
}
inline answer_counts answer_counts_of(const repeat_list& variant, const selection& which = {},
                                      const statistic_data& asked = {}) {
    answer_counts c;
    equal_prompts equal;
    const double fast_gap = fast_gap_of(variant);
    const vector<metric_id> may_miss = metrics_to_count(asked);
    for (const repeat_data& d : variant) {
        const selects selected(which, d);
        const main_lines lines(d.records);
        const long long reported = c.cache.requests;
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            const record& r = d.records[i];
            const bool ok = r.status == request_status::ok;
            if (!selected(r)) continue;
            ++c.requests;
            count_values(c, may_miss, d, i);
            if (!ok) continue;
            add_completed(c, r, fast_gap);
            equal.add(r);
            lines.count_in(c, r);
        }
        const odd_counts odd = odd_counts_of(d, selected, lines);
        add_odd(c, odd);
        if (c.cache.requests > reported && odd.shared_tokens < 0) c.cache.shared = -1;
        if (c.cache.shared >= 0 && odd.shared_tokens > 0) c.cache.shared += odd.shared_tokens;
    }
    equal.count_in(c);
    return c;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
