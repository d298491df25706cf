#include "fuzz/targets.hpp"

#include "llmbench.hpp"
#include "program/slo_text.hpp"
#include "core/wire/metrics_page.hpp"
#include "core/wire/series.hpp"
#include "core/server_metrics/server_names.hpp"
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/dialects/event_reader.hpp"
#include "core/dialects/table.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/files/datasets.hpp"
#include "extensions/answers/core/questions.hpp"
#include "extensions/embeddings/known_inputs.hpp"
#include "extensions/sessions/core/session_lines.hpp"
#include "extensions/websocket/core/responses_socket.hpp"
#include "core/files/traces.hpp"
#include "extensions/history/core/lines.hpp"
#include "program/others/runs_together.hpp"
#include "program/sessions/recordings.hpp"
#include "program/sessions/written_lines.hpp"
#include "core/stored/calibration.hpp"
#include "core/stored/record_json.hpp"
#include "core/stored/stored.hpp"
#include "support/dialogues.hpp"
#include "support/json_views.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <optional>
#include <stdexcept>
#include <tuple>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// Ends the program where the two differ, so that the fuzzer keeps the input.
template <class T> void must_agree(const T& a, const T& b, const char* what) {
    if (a == b) return;
    std::fprintf(stderr, "two readings differ: %s\n", what);
    std::abort();
}

/// Some place inside the input, the same one every time.
std::size_t place_in(std::string_view s) {
    std::uint64_t h = 14695981039346656037ull;
    for (const char c : s) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    return s.empty() ? 0 : static_cast<std::size_t>(h % s.size());
}

/// Calls `feed` with the input whole, in two pieces, and byte by byte; each piece is a copy of its
/// own, so that reading past it is seen. `begin` makes what is fed, `result` tells what it saw.
template <class Begin, class Feed, class Result>
void read_every_way(std::string_view input, Begin&& begin, Feed&& feed, Result&& result) {
    const auto in_pieces = [&](const vector<std::size_t>& cuts) {
        auto reader = begin();
        std::size_t from = 0;
        const auto piece = [&](std::size_t to) {
            const vector<char> copy(input.data() + from, input.data() + to);
            feed(reader, std::string_view(copy.data(), copy.size()));
            from = to;
        };
        for (const std::size_t cut : cuts) piece(cut);
        piece(input.size());
        return result(reader);
    };
    const auto whole = in_pieces({});
    must_agree(whole, in_pieces({place_in(input)}), "whole and in two pieces");
    vector<std::size_t> every;
    for (std::size_t i = 1; i < input.size(); ++i) every.push_back(i);
    must_agree(whole, in_pieces(every), "whole and byte by byte");
}

// ---- HTTP

struct parsed_response {
    response_parser parser{};
    std::string body{};
    std::size_t taken = 0;
};

// ---- WebSocket

/// A socket after a right upgrade, and all that came of it.
struct upgraded_socket {
    responses_socket socket{};
    std::string answer{}, reply{};
    socket_use use = socket_use::kept;
    std::string why{};

    upgraded_socket() {
        const std::string asks(socket.sent(
            "POST /v1/responses HTTP/1.1\r\nHost: h\r\n\r\n{\"model\":\"m\",\"stream\":true}"));
        const std::string_view name = "Sec-WebSocket-Key: ";
        const std::size_t at = asks.find(name) + name.size();
        feed("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Accept: " +
             accepted_key(asks.substr(at, asks.find("\r\n", at) - at)) + "\r\n\r\n");
    }
    void feed(std::string_view bytes) {
        const own_transport::carried came = socket.received({bytes.data(), bytes.size()});
        answer += std::string(came.answer);
        reply += std::string(came.reply);
        if (came.use < use) std::abort();  // it never gets better
        use = came.use;
        why += std::string(came.why);
    }
};

// ---- server-sent events

using seen_events = vector<std::pair<std::string, std::string>>;

struct parsed_stream {
    event_stream_parser parser{};
    seen_events events{};
    bool is_whole = true;
};

/// The events of a stream as the WHATWG text defines them, step by step, and what speaks of an error.
seen_events events_by_the_letter(std::string_view s) {
    seen_events events;
    std::string type, data, comment;
    if (s.substr(0, 3) == "\xEF\xBB\xBF") s.remove_prefix(3);
    for (;;) {
        const std::size_t end = s.find_first_of("\r\n");
        if (end == std::string_view::npos) return events;  // a line that does not end is none
        const std::string_view line = s.substr(0, end);
        s.remove_prefix(end + (s.substr(end, 2) == "\r\n" ? 2 : 1));
        if (line.empty()) {
            if (!data.empty()) events.emplace_back(type, data.substr(0, data.size() - 1));
            else if (speaks_of_error(type)) events.emplace_back(type, comment);
            type.clear();
            data.clear();
            comment.clear();
            continue;
        }
        const std::size_t colon = line.find(':');
        const std::string_view field = line.substr(0, colon);
        std::string_view value;
        if (colon != std::string_view::npos) value = line.substr(colon + 1);
        if (value.substr(0, 1) == " ") value.remove_prefix(1);
        if (colon == 0) comment = speaks_of_error(type) ? value : std::string_view();
        else if (field == "data") data.append(value).append("\n");
        else if (field == "event") type = value;
        else if (speaks_of_error(field))
            events.emplace_back("error", field == "error" ? value : line);
    }
}

// ---- events

auto all_of(const stream_event& e) {
    return std::tuple(e.content, e.answer, e.tokenless, e.done, e.first_tokens, e.counted, e.hides_thought, e.has_media,
                      e.text_bytes, e.reasoning_bytes, e.own_bytes, e.choices, e.finished, e.finish_reason, e.finish_choice,
                      e.error, e.malformed);
}
auto counts_of(const usage_counts& u) {
    return std::tuple(u.prompt_tokens, u.completion_tokens, u.total_tokens, u.cached_tokens, u.written_tokens, u.tool_use_tokens,
                      u.rejected_tokens, u.media_tokens, u.reasoning_tokens, u.text_tokens, u.cache_is_apart);
}
void must_agree(const json_view* a, const json_view* b) {
    must_agree(a != nullptr, b != nullptr, "JSON in a stream and alone");
    if (!a) return;
    must_agree(a->values, b->values, "the number of values in a stream and alone");
    for (std::uint32_t i = 0; i < a->values; ++i) {
        must_agree(a[i].is == b[i].is && a[i].name == b[i].name, true, "a value in a stream and alone");
        if (a[i].is_string() || a[i].is_number()) must_agree(a[i].text, b[i].text, "a text in a stream and alone");
    }
}
/// The events of one stream of each API.
struct event_streams {
    static constexpr std::size_t most_apis = 16;
    event_reader readers[most_apis]{}, of_blocks[most_apis]{}, documents{};
    stream_memory memories[most_apis]{}, alone[most_apis]{}, in_blocks[most_apis]{};
    stream_timeline by_block[most_apis]{}, by_event[most_apis]{};
    long long now = 1000;

    void read(std::string_view type, std::string_view whole) {
        const vector<char> copy(whole.begin(), whole.end());
        const std::string_view data(copy.data(), copy.size());
        json_reader json;
        const json_view* v = json.read(data);
        picojson::value tree;
        must_agree(json_views::picojson_reads(data, tree), v != nullptr, "picojson reads it");
        if (v && !(json_views::same_value(*v, tree) && tree_of(*v) == tree)) must_agree(0, 1, "picojson's values");
        must_agree(documents.document(data), v);
        const bool may_be_line = data.find('\r') == data.npos;
        const std::string before = type.empty() ? "data: " : "event: " + std::string(type) + "\ndata: ",
                          stream = before + std::string(data) + "\n\ndata: {";
        if (std::size(apis) > most_apis) std::abort();
        for (std::size_t i = 0; i < std::size(apis); ++i) {
            if (!apis[i].read) continue;
            stream_memory &m = memories[i], &n = alone[i];
            m.asked.is_kept = n.asked.is_kept = true;
            const llmbench::detail::stream_event& e = readers[i].read(type, data, apis[i].read, m);
            json_reader again;
            const auto by_itself = read_json_event(type, data, again.read(data), apis[i].read, n);
            must_agree(all_of(e), all_of(by_itself), "an event in a stream and alone");
            must_agree(counts_of(e), counts_of(by_itself), "its counts");
            must_agree(m.said.joined(), n.said.joined(), "the texts so far");
            if (!may_be_line) continue;
            stream_memory& b = in_blocks[i];
            b.asked.is_kept = true;
            std::string_view rest = stream;
            const llmbench::detail::stream_event* next = of_blocks[i].read_next(rest, apis[i].read, b);
            if (next) must_agree(rest, std::string_view("data: {"), "the length of an event");
            else next = &of_blocks[i].read(type, rest.substr(before.size(), data.size()), apis[i].read, b, rest.substr(0, rest.size() - 7));
            must_agree(all_of(*next), all_of(by_itself), "an event taken off a stream and alone");
            must_agree(counts_of(*next), counts_of(by_itself), "its counts there");
            must_agree(b.said.joined(), n.said.joined(), "the texts so far there");
            by_block[i].on_event(*next, ++now);
            by_event[i].on_event(by_itself, now);
            record x, y;
            by_block[i].write_to(x);
            by_event[i].write_to(y);
            must_agree(std::tuple(x.status, x.events, x.output_tokens, x.prompt_tokens, x.text_bytes, str(x.error)),
                       std::tuple(y.status, y.events, y.output_tokens, y.prompt_tokens, y.text_bytes, str(y.error)), "records");
            if (by_event[i].ended()) by_block[i].reset(), by_event[i].reset();
        }
    }
};

/// A refusal is a sentence; anything else that is thrown ends the program.
template <class F> void may_refuse(F&& f, std::string& reported) {
    try {
        f();
    } catch (const std::invalid_argument& e) {
        reported = e.what();
        if (reported.empty()) std::abort();
    }
}
template <class F> void may_refuse(F&& f) {
    std::string reported;
    may_refuse(f, reported);
}

// ---- pages of metrics

std::string in_quotes(std::string_view s) {
    std::string out = "\"";
    for (const char c : s) {
        if (c == '\\' || c == '"') out += '\\';
        out += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    return out + "\"";
}
/// The samples of a page as a page, without anything that could be said in another way.
std::string written_again(const metrics_page& page) {
    std::string out;
    for (const page_sample& s : page.samples) {
        out += "{" + in_quotes(s.name);
        for (const page_label& l : labels_of(page, s))
            out += "," + in_quotes(l.name) + "=" + in_quotes(l.value);
        out += std::isnan(s.value) ? std::string("} NaN\n") : printed("} %.17g\n", s.value);
    }
    return out + "# EOF\n";
}

/// Each part with its end in a chunk of its own.
std::string in_chunks(std::string_view s, std::string_view end) {
    std::string all;
    while (!s.empty()) {
        const std::size_t at = s.find(end), n = at == s.npos ? s.size() : at + end.size();
        all += printed("%zx\r\n", n);
        all.append(s.substr(0, n)).append("\r\n");
        s.remove_prefix(n);
    }
    return all + "0\r\n\r\n";
}

}  // namespace

/// An answer means the same however it is cut, for the parser alone and for the whole reader.
void fuzz::http_response(std::string_view input) {
    read_every_way(
        input, [] { return parsed_response(); },
        [](parsed_response& r, std::string_view piece) {
            r.taken += r.parser.feed(piece, [&](std::string_view body) { r.body.append(body); });
        },
        [](parsed_response& r) {
            const std::size_t taken = r.parser.broken() ? 0 : r.taken;
            r.parser.end_of_input();
            if (r.parser.complete() == r.parser.broken()) std::abort();
            if (r.parser.broken() == r.parser.error().empty()) std::abort();
            return std::tuple(r.parser.complete(), r.parser.use(), r.parser.status(),
                              r.parser.error(), r.body, taken,
                              std::string(r.parser.header("content-type")));
        });
    read_every_way(
        input, [] { return answer_reader(); },
        [](answer_reader& r, std::string_view piece) {
            if (!r.finished()) r.feed(piece, 1000);
        },
        [](answer_reader& r) {
            if (!r.finished()) r.end_of_input(1000);
            if (!r.finished() || !r.timeline().ended()) std::abort();
            record out;
            r.timeline().write_to(out);
            return std::tuple(out.status, r.http_status(), str(out.error), str(out.finish_reason),
                              out.events, out.output_tokens, out.prompt_tokens, out.end_ns);
        });
}

/// Events are those that the specification's own steps find, however the stream is cut.
void fuzz::event_stream(std::string_view input) {
    const seen_events expected = events_by_the_letter(input);
    read_every_way(
        input, [] { return parsed_stream(); },
        [](parsed_stream& r, std::string_view piece) {
            r.is_whole = r.parser.feed(piece, [&](std::string_view type, std::string_view data) {
                r.events.emplace_back(type, data);
            });
        },
        [&](parsed_stream& r) {
            if (r.is_whole) must_agree(r.events, expected, "the specification's events");
            return r.events;
        });
}

/// JSON is what picojson says it is, and an event in a stream says what it says alone: to each API,
/// after one that differs in a text or a number. Each line is an event; "e:" is one of an error.
void fuzz::stream_event(std::string_view input) {
    event_streams streams;
    event_reader reader;
    stream_memory memory;
    stream_timeline timeline;
    long long now = 1000;
    while (!input.empty()) {
        const std::size_t end = std::min(input.find('\n'), input.size());
        const std::string_view data = input.substr(0, end), type = data.substr(0, 2) == "e:" ? "error" : "";
        streams.read(type, data);
        streams.read(type, json_views::with_another_part(data, place_in(data)));
        streams.read(type, data);
        timeline.on_event(reader.read(type, data, read_openai, memory), now += 1000);
        input.remove_prefix(std::min(end + 1, input.size()));
    }
    timeline.on_body_end(now);
    if (!timeline.ended()) std::abort();
    record r;
    timeline.write_to(r);
    if (r.events < 0 || r.output_tokens < 0 || r.first_event_tokens < 0) std::abort();
}

/// The body of an answer means the same to every API however it is cut, streamed or not, and where each event has a chunk of
/// its own.
void fuzz::api_answer(std::string_view input) {
    for (const api_traits& api : apis)
        for (const bool streamed : {true, false})
            for (const bool chunked : {true, false}) {
                if (api.framed == framing::pieces) continue;  // there each read is an event
                const bool has_events = streamed && api.framed == framing::events;
                const std::string body = chunked ? in_chunks(input, has_events ? "\n\n" : "\n") : std::string(input);
                const std::string head = std::string("HTTP/1.1 200 OK\r\nContent-Type: ") +
                                         (has_events ? "text/event-stream" : "application/json") + "\r\n" +
                                         (chunked ? "Transfer-Encoding: chunked" : "Content-Length: " + std::to_string(input.size())) +
                                         "\r\n\r\n";
                read_every_way(
                    body,
                    [&] {
                        answer_reader r;
                        r.reset(api, {.is_streamed = streamed, .is_kept = true});
                        r.feed(head, 1000);
                        return r;
                    },
                    [](answer_reader& r, std::string_view piece) {
                        if (!r.finished()) r.feed(piece, 1000);
                    },
                    [](answer_reader& r) {
                        if (!r.finished() || !r.timeline().ended()) std::abort();
                        record out;
                        r.timeline().write_to(out);
                        if (out.events < 0 || out.output_tokens < 0) std::abort();
                        return std::tuple(out.status, str(out.error), str(out.finish_reason),
                                          out.events, out.output_tokens, out.prompt_tokens,
                                          out.first_event_tokens, out.text_bytes, out.first_read_events,
                                          r.timeline().gaps_us().size(), r.words());
                    });
            }
}

/// A file of prompts or of a recorded load is read or refused with a sentence, and says the same in
/// whatever pieces it is read.
void fuzz::dataset(std::string_view input) {
    const auto read = [&](std::size_t piece, auto&& as) {
        std::size_t at = 0;
        const auto fill = [&](char* room, std::size_t size) {
            const std::size_t n = std::min({piece, size, input.size() - at});
            input.copy(room, n, at);
            at += n;
            return n;
        };
        std::string reported;
        may_refuse([&] {
            byte_stream in(fill, "file");
            as(in, reported);
        }, reported);
        return reported;
    };
    const auto agree = [&](auto&& as) {
        must_agree(read(65536, as), read(1, as), "whole and byte by byte");
        must_agree(read(65536, as), read(7, as), "whole and in pieces");
    };
    for (const dataset_format format :
         {sharegpt, dolly, openai_jsonl, coco_captions, text_lines}) {
        llmbench::dataset d;
        d.format = format;
        d.max_turns = 3;
        agree([&](byte_stream& in, std::string& reported) {
            for (const dialogue& x : dialogues::sample_of(in, d, 5, 1)) {
                if (x.turns.empty() || x.turns.size() > 3) std::abort();
                for (const chat_message& m : x.before) reported += m.role + ":" + m.content + "\n";
                for (const dialogue_turn& t : x.turns)
                    reported += t.prompt + "|" + t.image + "|" + std::to_string(t.output_tokens) + "\n";
            }
        });
    }
    agree([&](byte_stream& in, std::string& reported) {
        const recorded_trace t = read_trace(in);
        double before = 0;
        for (const trace_row& r : t.rows) {
            if (!(r.at_s >= before) || r.prompt_tokens < 0 || r.output_tokens < 0) std::abort();
            before = r.at_s;
            reported += json_number(r.at_s) + "|" + std::to_string(r.prompt_tokens) + "\n";
        }
    });
    const auto checked = [](const session_corpus& c) {
        for (const session_step& s : c.steps)
            if (!(s.wait_s >= 0 && s.at_s >= 0) || s.output_tokens < 1 || s.prompt.tokens < 0)
                std::abort();
        return session_lines(c);
    };
    const auto corpus_by = [](auto&& reader, byte_stream& in) {
        reader.read(in);
        return reader.finished("file");
    };
    agree([&](byte_stream& in, std::string& reported) {
        reported = checked(corpus_by(session_reader(0), in));
    });
    // The lines that become of a recording are read, whatever it says.
    const auto converted = [&](auto&& reader, byte_stream& in, std::string& reported) {
        const session_corpus c = corpus_by(reader, in);
        reported = checked(c);
        byte_stream lines(
            [left = reported](char* room, std::size_t size) mutable {
                const std::size_t n = left.copy(room, size);
                left.erase(0, n);
                return n;
            },
            "lines");
        try {
            if (corpus_by(session_reader(0), lines).steps.size() != c.steps.size()) std::abort();
        } catch (const std::invalid_argument& e) {
            std::fprintf(stderr, "%s\n", e.what());
            std::abort();
        }
    };
    agree([&](byte_stream& in, std::string& reported) { converted(weka_reader(), in, reported); });
    agree([&](byte_stream& in, std::string& reported) {
        converted(bailian_reader(), in, reported);
    });
    agree([&](byte_stream& in, std::string& reported) {
        converted(mooncake_reader(), in, reported);
    });
    agree([&](byte_stream& in, std::string& reported) { converted(span_reader(), in, reported); });
    agree([&](byte_stream& in, std::string& reported) {
        for (const dialogue& x : read_questions(in, {}, 1))
            reported += x.turns.at(0).prompt + "|" + x.wanted->key() + "\n";
    });
}

/// What an earlier run left is read or refused with a sentence.
void fuzz::stored_result(std::string_view input) {
    const std::string s(input);
    may_refuse([&] {
        std::string gate;
        read_record(s, gate);
    });
    may_refuse([&] { read_stored_gate(s, "result.json", ""); });
    may_refuse([&] { read_stored_gate(s, "result.json", "chat"); });
    may_refuse([&] { read_calibration(s, "calibration.json", "chat"); });
    may_refuse([&] {
        history_lines all;
        read_history_file(s, "history.jsonl", {.latest = "2100"}, all);
        for (const history_run& r : all.runs)
            for (const auto& of : r.values)
                for (const double v : of.repeats)
                    if (!std::isfinite(v)) std::abort();
    });
}

/// A page is whole, or refused with a sentence; what was read of it, written and read again says
/// the same. A number that is taken is the one that the C library reads.
void fuzz::metrics_page(std::string_view input) {
    for (const char* type : {"", "text/plain; version=0.0.4", "application/openmetrics-text"}) {
        parsed_page p;
        {
            const vector<char> copy(input.begin(), input.end());
            p = read_metrics_page({copy.data(), copy.size()}, type);
        }
        if (p.problem.find('\n') != std::string::npos) std::abort();
        if (!p.problem.empty() && !p.page.names.empty()) std::abort();
        const std::string again = written_again(p.page);
        const parsed_page q = read_metrics_page(again, "application/openmetrics-text");
        if (!q.problem.empty()) std::abort();
        must_agree(written_again(q.page), again, "a page and its copy");
        for (const page_sample& s : p.page.samples)
            totals_of(p.page, s.name.substr(0, s.name.rfind('_')));
        for (const server_name& row : server_table::rows)
            if (value_of(p.page, row) && p.page.samples.empty()) std::abort();
        found_in(p.page);
    }
    const std::string number(input.substr(0, input.find('\n')));
    const auto taken = go_float(number);
    const double expected = std::strtod(number.c_str(), nullptr);
    const bool is_rounded_twice = std::fabs(expected) < std::numeric_limits<double>::min();
    if (taken && !std::isnan(*taken) && !is_rounded_twice)
        must_agree(*taken, expected, "a number and the C library's");
}

/// An SLO that can be read says so in a text that is read as the same one.
void fuzz::slo_text(std::string_view input) {
    may_refuse([&] {
        // Six digits are told: 999.9999 ms is 1000 ms at first, and 1 s from then on.
        const std::string first = str(slo_reader(input).read().text());
        const std::string reported = str(slo_reader(first).read().text());
        must_agree(str(slo_reader(reported).read().text()), reported, "an SLO and its text");
    });
}

/// A file of another tool is refused with a sentence, or becomes a repeat whose requests are whole.
void fuzz::result_file(std::string_view input) {
    may_refuse([&] {
        vector<imported_run> runs =
            read_imported_runs(input, "run.json", [&](const std::string&) {
                return std::optional<std::string>(input);
            });
        const measured_gate g = gate_of_runs(std::move(runs), {});
        for (const repeat_data& d : g.seen.candidate)
            for (std::size_t i = 0; i < d.records.size(); ++i)
                if (d.gap_offsets[i] + gap_count(d.records[i]) > d.gaps.size()) std::abort();
    });
}

/// What a hostile server sends over a WebSocket is the same HTTP, however it comes in pieces.
void fuzz::websocket(std::string_view input) {
    read_every_way(
        input, [] { return std::make_unique<upgraded_socket>(); },
        [](const std::unique_ptr<upgraded_socket>& s, std::string_view bytes) { s->feed(bytes); },
        [](const std::unique_ptr<upgraded_socket>& s) {
            return std::tuple(s->answer, s->reply, s->use, s->why);
        });
}
