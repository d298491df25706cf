// requests to a server before a repeat
#pragma once

#include "api/side_task.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/traffic/plan.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"

#include <stdexcept>  // runtime_error
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline std::string post_text(const load_target& to, const std::string& path,
                             const std::string& body) {
    return request_text(http_method::post, inquiry_path(to, path.c_str()), to.url.authority(),
                        "Connection: close\r\n" + to.fields, body);
}
/// Returns why a post failed, "" if it did not.
inline std::string fault_of_post(const http_answer& a, const load_target& to) {
    if (a.status >= 200 && a.status < 300) return {};
    if (a.status == 0) return "failed: " + masked_words_of(a.error, to);
    const std::string body = masked_words_of(a.body, to);
    return printed("was answered with HTTP %d", a.status) + (body.empty() ? "" : ": " + body);
}

/// Does the preparation of each repeat; with a shared load only the first program does. Throws if a
/// request has no 2xx answer in time: the server would not be in the state asked for.
inline void prepare_server(const plan& p, live_target& target, int repeat, double within_s) {
    if (p.shard.index > 0) return;
    const std::string nth = std::to_string(repeat + 1);
    for (const task_step& s : p.sent->prepare) {
        const load_target& to = target.load();
        const std::string path = filled_in(str(s.path), "{n}", nth);
        const std::string request = post_text(to, path, filled_in(str(s.body), "{n}", nth));
        const std::string why = fault_of_post(answer_to(to, request, within_s), to);
        if (!why.empty())
            throw std::runtime_error("prepare, before repeat " + nth + " on " +
                                     target.facts().url + ": POST " + masked_words_of(path, to) +
                                     " " + why);
    }
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
