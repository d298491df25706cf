#include "support/openai_events.hpp"
#include "support/timelines.hpp"

#include "core/dialects/openai.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/columns.hpp"

namespace timelines {

request& request::says(double ms, const std::string& data) {
    return event(ms, openai_events::read_event("", data));
}

request answered(double scheduled_ms, double ttft_ms, double gap_ms, int events) {
    request q(scheduled_ms);
    double now = scheduled_ms + ttft_ms;
    for (int i = 0; i < events; ++i) q.content(now = scheduled_ms + ttft_ms + gap_ms * i);
    return q.finish(now).usage(now, 10, events).done(now);
}
request worked_example(double scheduled_ms, double late_ms) {
    request q(scheduled_ms);
    const double sent = scheduled_ms + late_ms;
    q.sent(sent).says(sent + 5, role_event);
    for (int i = 0; i < 33; ++i)
        q.says(sent + 200 + 30 * i,
               R"({"choices":[{"index":0,"delta":{"content":"one two three"}}]})");
    return q.says(sent + 1190, finish_event)
        .says(sent + 1191,
              R"({"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":100}})")
        .says(sent + 1192, "[DONE]");
}
request failed(double scheduled_ms, llmbench::request_status status) {
    return request(scheduled_ms).fails(status, "no answer");
}
lb::repeat_data repeat_of(const vector<request>& requests) {
    lb::repeat_data d;
    for (const request& q : requests) {
        d.records.push_back(q.record());
        d.gap_offsets.push_back(d.gaps.append(q.gaps_us()));
        d.content_events += d.records.back().events;
    }
    return d;
}
lb::repeat_data steady_repeat(double ttft_ms, int n, double gap_ms) {
    vector<request> requests;
    for (int i = 0; i < n; ++i) requests.push_back(answered(100.0 * i, ttft_ms, gap_ms));
    return repeat_of(requests);
}
void force_lengths(lb::repeat_data& d, std::size_t answers, int tokens) {
    for (std::size_t i = 0; i < answers; ++i) {
        d.records[i].length_forced = true;
        d.records[i].most_output_tokens = tokens;
    }
}
void share_tokens(lb::repeat_data& d, int tokens) {
    for (llmbench::record& r : d.records) r.shared_tokens = tokens;
}
double evaluated(const lb::statistic_data& what, const lb::repeat_data& d) {
    return lb::evaluate(what, d);
}

}  // namespace timelines
