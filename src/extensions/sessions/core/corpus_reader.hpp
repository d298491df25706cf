// common parts of readers of recorded sessions
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/traffic/places.hpp"
#include "extensions/sessions/core/session_graph.hpp"

#include <algorithm>  // find
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <string>
#include <utility>  // move
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A reader's position in its file, and the corpus that it fills.
class corpus_reader {
public:
    /// Returns the corpus; `name` is that of the files.
    session_corpus finished(const std::string& name) {
        if (corpus_.sessions.empty() && corpus_.left_out == 0)
            refuse({name, ": it holds no sessions"});
        return std::move(corpus_);
    }

protected:
    corpus_reader() = default;
    ~corpus_reader() = default;

    static std::string quoted(const std::string& n) { return json_quoted(printable(n, 60)); }
    [[noreturn]] void fail(const std::string& why) const { in_->refuse(line_, why); }
    /// A value of the current line.
    checked_object checked(picojson::value v) {
        held_ = std::move(v);
        return {held_, in_->name() + printed(":%lld", line_), ""};
    }
    static int tokens(const checked_object& o, const char* name, int least) {
        if (!o.has(name)) o.refuse(name, "a whole number of tokens is needed");
        return o.whole<int>(name, least, 1e7, 0);
    }
    /// Counts a step of a session with so many.
    void count_step(std::size_t steps) {
        if (steps == max_session_steps) fail("the session has over 10000 steps");
        if (read_steps_++ == max_corpus_steps)
            fail("the files have over 2000000 steps: cut them first");
    }
    /// Adds a session without line numbers.
    void add(const std::vector<recorded_step>& steps, const std::vector<step_links>& links,
             double start_s, bool shares) {
        add_session(corpus_, steps, links, lines_of(steps, links, corpus_.prompts), start_s,
                    shares);
    }
    std::uint32_t model(const std::string& n) { return place_of_name(corpus_.models, n); }
    std::uint32_t label(const std::string& n) { return place_of_name(corpus_.labels, n); }

    byte_stream* in_ = nullptr;
    long long line_ = 0;
    session_corpus corpus_{};

private:
    std::uint32_t place_of_name(std::vector<std::string>& names, const std::string& n) const {
        const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), n) -
                                                 names.begin());
        if (at == names.size()) names.push_back(n);
        if (at == max_names) fail("over 255 models, or labels");
        return static_cast<std::uint32_t>(at);
    }
    static constexpr std::size_t max_names = 256;
    picojson::value held_{};
    std::size_t read_steps_ = 0;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
