// spans of OpenTelemetry's GenAI conventions as model calls
#pragma once

#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/dates.hpp"
#include "core/traffic/prefix_tree.hpp"
#include "core/traffic/places.hpp"
#include "extensions/sessions/core/session_graph.hpp"
#include "program/sessions/derived_graph.hpp"
#include "program/sessions/recording_reader.hpp"

#include <algorithm>  // clamp, equal, min, sort
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <initializer_list>  // names of attributes
#include <map>
#include <optional>
#include <string>
#include <tuple>  // tie
#include <unordered_map>
#include <utility>  // move, pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A model call as its span has it. A message is the hash and the length of its JSON.
struct span_call {
    struct message { std::uint64_t hash = 0; double bytes = 0; };
    std::string trace{}, conversation{}, id{}, parent{}, model{}, agent{};
    vector<message> input{}, output{};
    int prompt_tokens = 0, output_tokens = 0;  // 0 if unknown
    recorded_step step{};
};

inline picojson::object otlp_attributes(const picojson::array& pairs);
/// Returns a value of OTLP's JSON without the object that names its type.
inline picojson::value plain_value(const picojson::value& v) {
    if (!v.is<picojson::object>() || v.get<picojson::object>().size() != 1) return v;
    const auto& [type, inner] = *v.get<picojson::object>().begin();
    if (type == "kvlistValue")
        return picojson::value(otlp_attributes(array_member(inner, "values")));
    if (type == "arrayValue") {
        picojson::array all;
        for (const picojson::value& x : array_member(inner, "values"))
            all.push_back(plain_value(x));
        return picojson::value(all);
    }
    if (type == "intValue" && inner.is<std::string>())  // 64-bit integers are strings
        if (const auto n = parsed_number<double>(inner.get<std::string>()))
            return picojson::value(*n);
    const bool is_one = type == "stringValue" || type == "intValue" || type == "doubleValue";
    return is_one || type == "boolValue" ? inner : v;
}
inline picojson::object otlp_attributes(const picojson::array& pairs) {
    picojson::object all;
    for (const picojson::value& p : pairs)
        if (const picojson::value* v = member(p, "value"))
            all[string_member(p, "key")] = plain_value(*v);
    return all;
}
/// Returns the attributes of a span and of its events, where older conventions have the messages.
inline picojson::object span_attributes(const picojson::value& span) {
    picojson::object all = otlp_attributes(array_member(span, "attributes"));
    if (const picojson::value* plain = member(span, "attributes"))
        if (plain->is<picojson::object>()) all = plain->get<picojson::object>();
    for (const picojson::value& e : array_member(span, "events"))
        for (auto& [name, v] : span_attributes(e)) all.emplace(name, std::move(v));
    return all;
}

/// Adds messages of a list, or of a text with one. Reasons for an answer's end are left out.
inline void add_messages(const picojson::value* v, vector<span_call::message>& to) {
    if (!v) return;
    picojson::value read = *v;
    if (v->is<std::string>() && !parse_json(v->get<std::string>(), read)) read = *v;
    if (!read.is<picojson::array>()) read = picojson::value(picojson::array{read});
    for (picojson::value& m : read.get<picojson::array>()) {
        if (m.is<picojson::object>()) m.get<picojson::object>().erase("finish_reason");
        const std::string text = m.serialize();
        to.push_back({hash_of(text).value(), static_cast<double>(text.size())});
    }
}

/// Returns seconds since 1970 of an ISO time, or of a number that is one of these years as
/// seconds, ms, us or ns: a clock that starts with the machine is none.
inline double span_time(const checked_object& span, const vector<const char*>& names) {
    for (const char* name : names) {
        const picojson::value* v = span.present(name);
        if (!v) continue;
        const std::string text = v->is<std::string>() ? v->get<std::string>() : "";
        double at = parsed_number<double>(text).value_or(number_in(*v));
        if (std::isnan(at)) at = seconds_of_date(text) - seconds_of_date("1970-01-01 00:00:00");
        constexpr double first = 1577836800, last = 2208988800;  // the years 2020 and 2040
        for (int units = 0; units < 3 && at >= 100 * last; ++units) at /= 1000;
        if (!(at >= first && at < last))
            span.refuse(name, "an ISO time, or seconds, ms, us or ns since 1970, from the years 2020 "
                              "to 2039, are allowed");
        return at;
    }
    span.refuse(names[0], "a time is needed");
}

/// Whether a call has failed, by its status or the error that it names.
inline bool has_failed(const picojson::value& span, const checked_object& said) {
    const std::string code = string_at(span, "status.code") + string_at(span, "status.status_code");
    return code == "ERROR" || code == "STATUS_CODE_ERROR" || count_at(span, "status.code") == 2 ||
           !said.text("error.type").empty() ||
           count_member(said.value(), "http.response.status_code") >= 400;
}
/// Returns the number of tokens in the first of these attributes that a call has, else 0.
inline int tokens_said(const checked_object& said, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (said.has(name)) return said.whole<int>(name, 0, 1e7, 0);
    return 0;
}
/// Sets the tokens of a call. Some instrumentations do not count cached tokens as input.
inline void set_tokens(span_call& c, const checked_object& said) {
    c.prompt_tokens = tokens_said(said, {"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"});
    c.output_tokens =
        tokens_said(said, {"gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"});
    const int cached =
        tokens_said(said, {"gen_ai.usage.cache_read.input_tokens",
                           "gen_ai.usage.cache_read_input_tokens",
                           "gen_ai.usage.details.cache_read_tokens"}) +
        tokens_said(said, {"gen_ai.usage.cache_creation.input_tokens",
                           "gen_ai.usage.cache_creation_input_tokens",
                           "gen_ai.usage.details.cache_write_tokens"});
    const int total = tokens_said(said, {"gen_ai.usage.total_tokens", "llm.usage.total_tokens"});
    if (cached > c.prompt_tokens || (total > 0 && total == c.prompt_tokens + cached + c.output_tokens))
        c.prompt_tokens += cached;
}

/// Returns the call of a span. None for failed calls, and for spans of tools, agents and others:
/// `other` is then their kind. `where`: its file and line.
inline std::optional<span_call> call_of_span(const picojson::value& v, const std::string& where,
                                             std::string& other) {
    const picojson::value attributes{span_attributes(v)};
    const checked_object span(v, where, ""), said(attributes, where, "");
    const auto either = [](const checked_object& o, const char* a, const char* b) {
        return o.has(a) ? o.text(a) : o.text(b);
    };
    const auto named = [&](const char* a, const char* b) {
        return said.has(a) ? said.present(a) : said.present(b);
    };
    const std::string does = said.text("gen_ai.operation.name");
    const picojson::value* input = named("gen_ai.input.messages", "gen_ai.prompt");
    const bool is_call = is_one_of(does, {"chat", "text_completion", "generate_content",
                                          "completion", "responses", "messages", "generate"}) ||
                         (does.empty() && input);
    span_call c;
    set_tokens(c, said);
    other = !is_call ? "spans " + (does.empty() ? "without an operation" : "of " + does)
            : has_failed(v, said) && c.output_tokens == 0 ? "failed calls"
                                                          : "";
    if (!other.empty()) return std::nullopt;
    if (!input)
        said.refuse("gen_ai.input.messages",
                    "the messages are needed: record them, which instrumentations do if asked");
    const checked_object context = span.at("context");
    c.trace = either(span, "traceId", "trace_id") + context.text("trace_id");
    // An id of zeros is none.
    const auto id = [](const std::string& s) {
        return s.find_first_not_of('0') == s.npos ? std::string() : s;
    };
    c.id = id(either(span, "spanId", "span_id") + context.text("span_id"));
    c.parent = id(either(span, "parentSpanId", "parent_span_id") + span.text("parent_id"));
    if (c.trace.empty()) span.refuse("traceId", "a text is needed");
    c.conversation = said.text("gen_ai.conversation.id");
    c.model = said.text("gen_ai.request.model");
    c.agent = said.text("gen_ai.agent.name");
    add_messages(said.present("gen_ai.tool.definitions"), c.input);
    add_messages(said.present("gen_ai.system_instructions"), c.input);
    add_messages(input, c.input);
    add_messages(named("gen_ai.output.messages", "gen_ai.completion"), c.output);
    c.step.at_s = span_time(span, {"startTimeUnixNano", "start_time_unix_nano", "start_time"});
    c.step.end_s = span_time(span, {"endTimeUnixNano", "end_time_unix_nano", "end_time"});
    if (c.step.end_s < c.step.at_s)
        refuse({where, printed(": the span ends %g s before it starts",
                               c.step.at_s - c.step.end_s)});
    return c;
}

/// Whether a span and one within it are of one call: they have the same messages or tokens. Of a
/// span without tokens, the only one within it is.
inline bool are_one_call(const span_call& outer, const span_call& inner, int within) {
    const auto hash = [](const span_call::message& a, const span_call::message& b) {
        return a.hash == b.hash;
    };
    return std::equal(outer.input.begin(), outer.input.end(), inner.input.begin(),
                      inner.input.end(), hash) ||
           (outer.prompt_tokens > 0 ? outer.prompt_tokens == inner.prompt_tokens &&
                                          outer.output_tokens == inner.output_tokens
                                    : within == 1);
}
/// Returns the calls of each conversation, else of each trace, in the order of their starts.
/// Repeated spans count once, and a span around another span of the same call is left out; `tell`
/// is called for these.
template <class Tell>
vector<vector<span_call>> sessions_of_calls(vector<span_call> all, Tell&& tell) {
    std::map<std::string, std::string> of_trace;
    std::map<std::pair<std::string, std::string>, std::size_t> by_id;
    vector<const char*> left_out(all.size(), nullptr);
    vector<vector<std::size_t>> within(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const span_call& c = all[i];
        if (!c.conversation.empty()) of_trace.emplace(c.trace, c.conversation);
        if (!c.id.empty() && !by_id.emplace(std::pair{c.trace, c.id}, i).second)
            left_out[i] = "repeated spans";
    }
    for (std::size_t i = 0; i < all.size(); ++i)
        if (const auto at = by_id.find({all[i].trace, all[i].parent});
            at != by_id.end() && at->second != i && !left_out[i])
            within[at->second].push_back(i);
    for (std::size_t i = 0; i < all.size(); ++i)
        for (const std::size_t inner : within[i])
            if (are_one_call(all[i], all[inner], static_cast<int>(within[i].size())))
                left_out[i] = "spans around one of the same call";
    std::map<std::pair<bool, std::string>, std::size_t> places;
    vector<vector<span_call>> sessions;
    for (std::size_t i = 0; i < all.size(); ++i) {
        span_call& c = all[i];
        if (left_out[i]) {
            tell(left_out[i]);
            continue;
        }
        const auto in = of_trace.find(c.trace);
        if (c.conversation.empty() && in != of_trace.end()) c.conversation = in->second;
        const bool is_trace = c.conversation.empty();
        const auto at = places.emplace(std::pair{is_trace, is_trace ? c.trace : c.conversation},
                                       sessions.size());
        if (at.second) sessions.emplace_back();
        sessions[at.first->second].push_back(std::move(c));
    }
    for (vector<span_call>& s : sessions)
        std::sort(s.begin(), s.end(), [](const span_call& a, const span_call& b) {
            return std::tie(a.step.at_s, a.step.end_s, a.trace, a.id) <
                   std::tie(b.step.at_s, b.step.end_s, b.trace, b.id);
        });
    return sessions;
}

inline std::uint64_t with_message(std::uint64_t prefix, const span_call::message& m) {
    return mixed(prefix ^ mixed(m.hash + 1));
}
/// Finds the earlier prompt with which one begins, by whole messages. A message gets a share of the
/// prompt's own tokens by the length of its text.
class message_index {
public:
    tree_prompt add(prefix_tree& tree, const vector<span_call::message>& input, int tokens) {
        std::uint64_t prefix = 0;
        tree_prompt last;
        double bytes = 0, passed = 0;
        vector<std::pair<std::uint64_t, double>> fresh;
        for (const span_call::message& m : input) {
            prefix = with_message(prefix, m);
            const auto at = fresh.empty() ? ends_.find(prefix) : ends_.end();
            if (at != ends_.end()) { last = at->second; continue; }
            fresh.emplace_back(prefix, m.bytes);
            bytes += m.bytes;
        }
        const tree_prompt added = tree.branch(last.node, std::min(last.tokens, tokens), tokens);
        for (const auto& [p, own] : fresh) {
            passed += own;
            const int to = added.kept + static_cast<int>((tokens - added.kept) * (passed / bytes));
            ends_.emplace(p, tree_prompt{added.node, to, 0});
        }
        return added;
    }

private:
    std::unordered_map<std::uint64_t, tree_prompt> ends_{};
};

/// A step continues the ended one with whose prompt and answer its own begins, else the last to end
/// of those whose answer it quotes last.
inline void find_quoted(const vector<span_call>& calls, vector<recorded_step>& steps) {
    const std::size_t n = calls.size();
    vector<std::size_t> by_end(n);
    for (std::size_t i = 0; i < n; ++i) by_end[i] = i;
    std::sort(by_end.begin(), by_end.end(), [&](std::size_t a, std::size_t b) {
        return std::tie(steps[a].end_s, a) < std::tie(steps[b].end_s, b);
    });
    vector<std::uint64_t> whole(n);
    std::unordered_map<std::uint64_t, int> continued, answered;
    for (std::size_t s = 0, done = 0; s < n; ++s) {
        for (; by_end[done] < s && steps[by_end[done]].end_s <= steps[s].at_s; ++done)
            for (const span_call::message& m : calls[by_end[done]].output) {
                const int at = static_cast<int>(by_end[done]);
                continued.emplace(with_message(whole[by_end[done]], m), at);
                answered[m.hash] = at;
            }
        int quoted = no_parent, on = no_parent;
        for (const span_call::message& m : calls[s].input) {
            whole[s] = with_message(whole[s], m);
            if (const auto at = continued.find(whole[s]); at != continued.end()) on = at->second;
            if (const auto at = answered.find(m.hash); at != answered.end()) quoted = at->second;
        }
        steps[s].quotes = on != no_parent ? on : quoted;
    }
}

/// Returns a session's calls as steps. Missing token counts are estimated from the length of text
/// in the session's other spans, which `tell` is told; `name` is the files'.
template <class Tell>
vector<recorded_step> steps_of_calls(const vector<span_call>& calls, message_index& index,
                                     prefix_tree& tree, const std::string& name, Tell&& tell) {
    const auto bytes = [](const vector<span_call::message>& all) {
        double sum = 0;
        for (const span_call::message& m : all) sum += m.bytes;
        return sum;
    };
    double known_tokens = 0, known_bytes = 1;
    for (const span_call& c : calls)
        if (c.prompt_tokens > 0) {
            known_tokens += c.prompt_tokens;
            known_bytes += bytes(c.input);
        }
    if (known_tokens == 0)
        refuse({name, ": no span of trace ", json_quoted(printable(calls[0].trace, 60)),
                " says gen_ai.usage.input_tokens"});
    const auto tokens = [&](int said, const vector<span_call::message>& text) {
        if (said > 0) return said;
        tell(text.empty() ? "empty answers, which become one token"
                          : "missing numbers of tokens, which are estimated from texts");
        const double about = bytes(text) * known_tokens / known_bytes;
        return static_cast<int>(std::clamp(about, 1.0, 1e7));
    };
    vector<recorded_step> steps;
    for (const span_call& c : calls) {
        steps.push_back(c.step);
        steps.back().prompt = index.add(tree, c.input, tokens(c.prompt_tokens, c.input));
        steps.back().output_tokens = tokens(c.output_tokens, c.output);
    }
    find_quoted(calls, steps);
    return steps;
}

/// A span a call, the graph is derived; a session may be in several files.
class span_reader final : public recording_reader {
public:
    void read(byte_stream& in) {
        in_ = &in;
        each_json_place(in, [&] { read_object(); });
    }
    converted_corpus finished(const std::string& name) {
        message_index index;
        const auto tells = [&](const char* what) { tell(what); };
        for (const vector<span_call>& calls : sessions_of_calls(std::move(calls_), tells)) {
            if (calls.size() > max_session_steps)
                refuse({name, ": trace ", quoted(calls[0].trace), " has over 10000 steps"});
            auto steps = steps_of_calls(calls, index, corpus_.prompts, name, tells);
            derived_graph(steps, corpus_.prompts);
            add(steps, {.start_s = steps[0].at_s, .shares = true});
        }
        return recording_reader::finished(name);
    }

private:
    /// Reads a span, or an object with spans, which are read one by one.
    void read_object() {
        const long long first_line = line_ = in_->line();
        picojson::object fields;
        bool has_spans = false;
        each_json_member(
            *in_,
            [&](const std::string& key, picojson::value&& v, long long line) {
                if (key == "resourceSpans" || key == "resource_spans" || key == "batches") {
                    has_spans = true;
                    line_ = line;
                    for (const char* scopes : {"scopeSpans", "scope_spans",
                                               "instrumentationLibrarySpans"})
                        for (const picojson::value& scope : array_member(v, scopes))
                            for (const picojson::value& s : array_member(scope, "spans"))
                                add_span(s);
                    return;
                }
                // A collector writes its metrics and logs into the same file.
                if (const char* other = other_signal(key)) {
                    has_spans = true;
                    return tell(other);
                }
                picojson::value& list = fields[key];
                if (!list.is<picojson::array>()) list = picojson::value(picojson::array());
                picojson::array& all = list.get<picojson::array>();
                if (all.size() == max_elements) fail(key + " is a list of over 1000000");
                all.push_back(std::move(v));
            },
            [&](const std::string& key, picojson::value&& v) { fields[key] = std::move(v); });
        if (has_spans) return;
        line_ = first_line;
        const checked_object o = checked(picojson::value(fields));
        if (!o.has("traceId") && !o.has("trace_id") && !o.at("context").has("trace_id"))
            fail("no span of OpenTelemetry is so: it has traceId, trace_id or context.trace_id, "
                 "and a file of OTLP resourceSpans");
        add_span(o.value());
    }
    static const char* other_signal(std::string_view key) {
        return key == "resourceMetrics" || key == "resource_metrics"     ? "metrics"
               : key == "resourceLogs" || key == "resource_logs"         ? "logs"
               : key == "resourceProfiles" || key == "resource_profiles" ? "profiles"
                                                                         : nullptr;
    }
    void add_span(const picojson::value& v) {
        std::string other;
        auto call = call_of_span(v, in_->name() + printed(":%lld", line_), other);
        if (!call) return tell(other);
        count_step(0);
        messages_ += call->input.size() + call->output.size();
        if (messages_ > max_prompt_blocks)
            fail("the spans have over 20000000 messages: cut the file first");
        call->step.model = model(call->model);
        call->step.agent = call->step.label = label(call->agent);
        calls_.push_back(std::move(*call));
    }

    static constexpr std::size_t max_elements = 1000000;
    vector<span_call> calls_{};
    std::size_t messages_ = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
