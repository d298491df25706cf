// from a scenario with recorded sessions to their part of the plan
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/files/dialogues.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/workload.hpp"
#include "extensions/sessions/api.hpp"
#include "extensions/sessions/core/session_graph.hpp"
#include "extensions/sessions/core/session_source.hpp"

#include <algorithm>  // find
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <memory>  // shared_ptr, make_shared
#include <string>
#include <utility>  // move
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Checks that do not need the files.
inline void check_sessions(const sessions& w) {
    if (w.path.empty()) refuse({"workload.path is empty: sessions must name a file or a folder"});
    if (!(w.max_wait.seconds() >= 0 && w.max_wait.seconds() <= 86400))
        refuse({printed("workload.max_wait is %g s: it runs from 0 to 86400 s",
                        w.max_wait.seconds())});
    if (!(w.max_context >= 0 && w.max_context <= 10000000))
        refuse({printed("workload.max_context is %lld: it runs from 1 to 10000000, or is 0 for no "
                        "limit", static_cast<long long>(w.max_context))});
    if (w.max_items && !(*w.max_items >= 1 && *w.max_items <= 1000000))
        refuse({printed("workload.max_items is %d: it runs from 1 to 1000000", *w.max_items)});
}
/// The sessions that were read.
class read_sessions final : public read_workload {
public:
    read_sessions(sessions said, session_corpus corpus)
        : w_(std::move(said)),
          corpus_(std::make_shared<const session_corpus>(std::move(corpus))) {}
    maybe<recorded_trace> starts(const arrival_data& a) const override {
        if (!(a.file == w_.path))
            refuse({"workload is sessions of ", str(w_.path), " and arrivals is a replay of ",
                    str(a.file), ": sessions begin when their own recording says"});
        if (a.unit_s != 0)
            refuse({"arrivals is ", arrival_text(a), " and workload is sessions: the unit of "
                    "their times is that of their format"});
        const std::size_t most =
            w_.max_items ? static_cast<std::size_t>(*w_.max_items) : max_corpus_steps;
        return trace_of_starts(*corpus_, most, str(a.file));
    }
    planned_workload planned(const scenario& s, const arrival_data& a,
                             std::uint64_t seed) const override {
        check_no_max_tokens(s.options);
        const auto most = static_cast<std::size_t>(w_.max_items ? *w_.max_items : 0);
        const bool as_recorded = a.kind == arrival_kind::replay;
        recorded_sessions source{
            .corpus = corpus_,
            .max_wait_s = w_.max_wait.seconds(),
            .order = as_recorded ? recorded_order(*corpus_, most)
                                 : drawn_order(corpus_->sessions.size(), most, seed),
            .models = std::vector<std::string>(corpus_->models.size()),
            .name = file_name(str(w_.path))};
        for (const model_name& m : w_.models) {
            const std::vector<std::string>& all = corpus_->models;
            const auto at = std::find(all.begin(), all.end(), str(m.recorded));
            if (at == all.end())
                refuse({"workload.models names ", str(m.recorded), ", and no step of the recording "
                        "is of such a model"});
            source.models[static_cast<std::size_t>(at - all.begin())] = str(m.asked);
        }
        if (const field_names given = given_fields(s.options); !given.empty())
            for (const std::string& body : corpus_->bodies) {
                picojson::value own;
                if (body.empty() || !parse_json("{" + body.substr(1) + "}", own)) continue;
                for (const auto& [name, v] : own.get<picojson::object>())
                    if (given.count(name) > 0)
                        refuse({"a step's body sets \"", printable(name, 60), "\" and so does "
                                "options.extra_body: a field must not stand twice"});
            }
        // The last ones warm up, so that all others keep their starts.
        if (as_recorded) {
            if (s.warmup.requests() > 0)
                refuse({printed("workload is sessions and arrivals is a replay of them, with a "
                                "warm-up of %lld requests: they begin when they did, so give a "
                                "time, or 0",
                                static_cast<long long>(s.warmup.requests()))});
            const std::size_t n = source.order->size();
            source.begin = (n - warmup_sends(a, 0, s.warmup.seconds()) % n) % n;
        }
        return {.source = source,
                .text = source.text(w_.force_output),
                .forces_length = w_.force_output || s.options.ignore_eos};
    }

private:
    const sessions w_;
    const std::shared_ptr<const session_corpus> corpus_;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
