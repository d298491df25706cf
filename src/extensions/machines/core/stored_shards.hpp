// shards of a load, combined
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/judging_parameters.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/target_facts.hpp"
#include "core/stored/stored.hpp"
#include "extensions/machines/core/together.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One program's files of a shared load, with its requests.
struct stored_shard {
    std::string directory{};
    stored_gate gate{};
};

/// The combined shards, with their common properties.
struct gathered_shards {
    plan what{};
    target_facts target{};
    measurements seen{};
    judging_parameters judged_by{};
};

/// Numbers in a list: "3, 5, 6"; at most ten of them.
inline std::string numbers_text(const std::vector<std::size_t>& all) {
    std::string t;
    for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 10); ++i)
        t += (i > 0 ? ", " : "") + std::to_string(all[i]);
    return all.size() > 10 ? t + printed(" and %zu more", all.size() - 10) : t;
}

/// Refuses a list that is not each shard of one load, once.
inline void check_all_there(const std::vector<stored_shard>& shards) {
    const stored_shard& first = shards.front();
    for (const stored_shard& s : shards)
        if (s.gate.load.shard.is_whole())
            refuse({s.directory, " is no shard of a load: \"", s.gate.name,
                    "\" was measured as a whole"});
    std::vector<const stored_shard*> found(first.gate.load.shard.count, nullptr);
    for (const stored_shard& s : shards) {
        const load_shard& shard = s.gate.load.shard;
        if (shard.count != found.size())
            refuse({s.directory, printed(" is one of %zu shards, ", shard.count), first.directory,
                    printed(" one of %zu", found.size())});
        const stored_shard*& place = found[std::min(shard.index, found.size() - 1)];
        if (place)
            refuse({printed("shard %zu is there twice: ", shard.index), place->directory, " and ",
                    s.directory});
        place = &s;
    }
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < found.size(); ++i)
        if (!found[i]) missing.push_back(i);
    if (!missing.empty())
        refuse({printed("of %zu shards these are missing: ", found.size()),
                numbers_text(missing)});
}

/// Refuses shards of different runs or loads.
inline void check_alike(const stored_shard& first, const stored_shard& s) {
    const auto same = [&](const char* what, const std::string& a, const std::string& b) {
        if (a != b)
            refuse({s.directory, " belongs to another load: ", what, " \"", printable(b), "\", in ",
                    first.directory, " \"", printable(a), "\""});
    };
    const stored_gate &a = first.gate, &b = s.gate;
    same("gate", a.name, b.name);
    same("version", a.version, b.version);
    same("definitions version", a.definitions, b.definitions);
    same("trace hash", a.load.trace_hash, b.load.trace_hash);
    same("run", a.load.nonce, b.load.nonce);
    same("server", a.target.url, b.target.url);
    same("model", a.target.model, b.target.model);
    same("api", a.target.api, b.target.api);
    same("arrivals", a.load.arrivals, b.load.arrivals);
    same("workload", a.load.workload, b.load.workload);
    same("extent", a.load.extent, b.load.extent);
    same("options", a.load.options, b.load.options);
    same("limits", a.load.limits, b.load.limits);
    same("seed", a.load.seed, b.load.seed);
    same("number of repeats", std::to_string(a.seen.candidate.size()),
         std::to_string(b.seen.candidate.size()));
}

/// Refuses shards that did not send at the same time, by the server's clock, in the first of their
/// remaining repeats, the run's `repeat`-th.
inline void check_one_time(const std::vector<stored_shard>& shards, std::size_t repeat) {
    const auto part = [&](const stored_shard& s) -> const rank_part& {
        const std::vector<rank_part>& own = s.gate.seen.candidate.front().ranks;
        if (own.empty())
            refuse({s.directory, printed(": repeat %zu does not say when it began", repeat)});
        return own.front();
    };
    const stored_shard *ahead = &shards.front(), *behind = ahead;
    for (const stored_shard& s : shards) {
        const clock_ahead& lead = part(s).lead;
        if (!lead.is_reported()) continue;
        const auto is_reported = [&](const stored_shard* x) { return part(*x).lead.is_reported(); };
        if (!is_reported(ahead) || lead.low_s > part(*ahead).lead.low_s) ahead = &s;
        if (!is_reported(behind) || lead.high_s < part(*behind).lead.high_s) behind = &s;
    }
    const double apart_s = clock_ahead::least_between(part(*ahead).lead, part(*behind).lead);
    const double max_s = shards.front().gate.seen.max_skew_s;
    if (!(apart_s <= max_s))
        refuse({"in repeat ", std::to_string(repeat), " the clocks of ", ahead->directory, " and ",
                behind->directory, " were at least ", time_text(apart_s),
                " apart, by the Date of the server's answers: they sent no load together; up to ",
                time_text(max_s), " is allowed"});
}

/// Throws std::invalid_argument with one sentence if the shards are not a whole run. There is at
/// least one, and its repeats have their records.
inline gathered_shards gathered(std::vector<stored_shard> shards, const slo_list& slos) {
    check_all_there(shards);
    for (const stored_shard& s : shards) check_alike(shards.front(), s);
    std::sort(shards.begin(), shards.end(), [](const stored_shard& a, const stored_shard& b) {
        return a.gate.load.shard.index < b.gate.load.shard.index;
    });
    const stored_gate& first = shards.front().gate;
    gathered_shards g;
    g.what = with_judging(first.described, [&](planned_judging& j) {
        j.rule = first.judged_by.rule;
        j.first_repeats = j.max_repeats = static_cast<int>(first.seen.candidate.size());
        j.slos = {slos.begin(), slos.end()};
    });
    g.target.kind = target_kind::endpoint;
    g.target.url = first.target.url;
    g.target.model = first.target.model;
    g.target.api = first.target.api;
    g.judged_by.slos = g.what.judged->slos;
    g.judged_by.rule = first.judged_by.rule;
    static_cast<load_conditions&>(g.seen) = first.seen;
    const bool closed = users_of(*g.what.sent) > 0;
    while (!first.seen.candidate.empty()) {
        check_one_time(shards, g.seen.candidate.size());
        std::vector<repeat_data> parts;
        for (stored_shard& s : shards) {
            parts.push_back(s.gate.seen.candidate.front());
            s.gate.seen.candidate.erase(0);
        }
        g.seen.candidate.push_back(together(std::move(parts), closed));
    }
    for (const stored_shard& s : shards)
        if (g.seen.stopped.empty()) g.seen.stopped = s.gate.seen.stopped;
    return g;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
