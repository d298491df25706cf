// Whatever comes over the wire, read in every way in which it can be cut.
#include "llmbench.hpp"
#include "core/answers/answer_reader.hpp"
#include "support/wire_cases.hpp"

#include <set>
#include <string>
#include <tuple>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// What a script sends, and how it ends.
struct wire_bytes {
    std::string bytes{};
    bool ends = false, resets = false;
};
wire_bytes bytes_of(const scripted::answer& script) {
    wire_bytes w;
    for (const scripted::step& s : script) {
        if (s.what == scripted::step::kind::send) w.bytes += s.bytes;
        w.resets = w.resets || s.what == scripted::step::kind::reset;
        w.ends = w.ends || w.resets || s.what == scripted::step::kind::close;
    }
    return w;
}

/// All that a connection learns from an answer.
struct outcome {
    std::string status{}, error{}, finish{};
    int http = 0, events = 0, tokens = 0, prompt_tokens = 0, first_tokens = 0;
    long long end_ns = 0;
    bool kept = false;
    auto all() const {
        return std::tie(status, error, finish, http, events, tokens, prompt_tokens, first_tokens,
                        end_ns, kept);
    }
};

/// Reads the answer in pieces that end at the given places, as a connection would.
outcome read(const wire_bytes& w, const vector<std::size_t>& cuts) {
    answer_reader reader;
    std::size_t from = 0;
    const long long now = 1000;
    const auto feed = [&](std::size_t to) {
        const vector<char> piece(w.bytes.begin() + static_cast<std::ptrdiff_t>(from),
                                 w.bytes.begin() + static_cast<std::ptrdiff_t>(to));
        if (!reader.finished() && to > from) {
            reader.feed({piece.data(), piece.size()}, now);
            from = to;
        }
    };
    for (const std::size_t cut : cuts) feed(cut);
    feed(w.bytes.size());
    if (w.ends && !reader.finished())
        reader.end_of_input(now, w.resets ? "Connection reset by peer" : "");
    record r;
    reader.timeline().write_to(r);
    outcome o;
    o.status = reader.timeline().ended() ? to_string(r.status) : "unanswered";
    o.error = str(r.error);
    o.finish = str(r.finish_reason);
    o.http = reader.http_status();
    o.events = r.events;
    o.tokens = r.output_tokens;
    o.prompt_tokens = r.prompt_tokens;
    o.first_tokens = r.first_event_tokens;
    o.end_ns = r.end_ns;
    // Bytes that a connection finds when nothing was asked end it too.
    o.kept = reader.finished() && reader.use() == socket_use::kept && from == w.bytes.size();
    return o;
}

}  // namespace

TEST_CASE("whatever comes over the wire comes to what it should") {
    const std::vector<wire::wire_case> cases = wire::all_cases();
    std::set<std::string> names;
    for (const wire::wire_case& c : cases) {
        CAPTURE(c.name);
        CHECK(names.insert(c.name).second);
        const outcome o = read(bytes_of(c.script), {});
        CHECK(o.status == c.expected.status);
        CHECK(o.http == c.expected.http);
        if (c.expected.error.empty()) CHECK(o.error == "");
        else if (o.error.find(c.expected.error) == std::string::npos)
            FAIL_CHECK("the error is \"" << o.error << "\" and not \"" << c.expected.error << "\"");
        CHECK(o.events == c.expected.events);
        CHECK(o.tokens == c.expected.tokens);
        CHECK(o.finish == c.expected.finish);
        CHECK(o.kept == c.expected.kept);
    }
    MESSAGE(cases.size() << " cases");
    CHECK(cases.size() >= 150);
}

TEST_CASE("no way of cutting an answer changes what it comes to") {
    std::size_t ways = 0;
    for (const wire::wire_case& c : wire::all_cases()) {
        CAPTURE(c.name);
        const wire_bytes w = bytes_of(c.script);
        const outcome whole = read(w, {});
        vector<std::size_t> every;
        // Of a long one most bytes are alike.
        const std::size_t one_in = w.bytes.size() > 4096 ? 61 : 1;
        for (std::size_t cut = 1; cut < w.bytes.size(); ++cut) {
            CAPTURE(cut);
            if (cut % one_in == 0) CHECK(read(w, {cut}).all() == whole.all());
            every.push_back(cut);
        }
        CHECK(read(w, every).all() == whole.all());
        ways += every.size() + 1;
    }
    MESSAGE(ways << " ways");
}
