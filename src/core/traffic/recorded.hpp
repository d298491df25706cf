// conversations, traces and lengths that were read from files
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/measured/answers.hpp"
#include "core/traffic/prefix_tree.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <map>
#include <memory>  // shared_ptr
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Counts the rows that have a field, for fields that are sent and for fields that are left out.
class row_fields {
public:
    void send(const std::string& name, long long row) { count(sent_, name, row); }
    void leave_out(const std::string& name, long long row) { count(left_out_, name, row); }
    /// "sent as rows have them: tools (60 rows); left out: model (60 rows)".
    std::string text() const {
        const std::string sent = shown("sent as rows have them: ", sent_);
        const std::string left_out = shown("left out: ", left_out_);
        return sent + (sent.empty() || left_out.empty() ? "" : "; ") + left_out;
    }

private:
    struct rows {
        long long count = 0, last = -1;
    };
    using by_name = std::map<std::string, rows>;
    static constexpr std::size_t max_names = 1000, max_shown = 8;

    static void count(by_name& all, const std::string& name, long long row) {
        if (all.size() == max_names && all.find(name) == all.end()) return;
        rows& of = all[name];
        of.count += of.last != row;
        of.last = row;
    }
    static std::string shown(const char* what, const by_name& all) {
        std::string t;
        std::size_t n = 0;
        for (const auto& [name, of] : all)
            if (n++ < max_shown)
                t += (t.empty() ? what : ", ") + printable(name, 60) +
                     printed(" (%lld %s)", of.count, of.count == 1 ? "row" : "rows");
        return n > max_shown ? t + printed(" and %zu more", n - max_shown) : t;
    }

    by_name sent_{}, left_out_{};
};

/// A user's message, and the length of its answer.
struct dialogue_turn {
    std::string prompt{};
    std::string image{};    // a file below the directory of images, or a data: URL
    int output_tokens = 0;  // 0: the file does not say
};
/// One conversation of a dataset; most have one turn.
struct dialogue {
    vector<chat_message> before{};  // the messages before the first turn
    vector<dialogue_turn> turns{};
    std::shared_ptr<const wanted_answer> wanted{};  // of a question
    double temperature = not_a_number;  // of this conversation, if it has one
    std::string fields{};               // other fields of its requests, ",\"name\":value" pairs
};
/// Without the vocabulary this is an estimate: close for English, high for most other text.
inline int estimated_tokens(std::string_view s) {
    std::size_t ascii = 0, others = 0;
    for (const char c : s) {
        const auto byte = static_cast<unsigned char>(c);
        ascii += byte < 0x80;
        others += byte >= 0xC0;  // the first byte of another character
    }
    return static_cast<int>(std::min<std::size_t>((ascii + 3) / 4 + others, 100000000));
}
inline int estimated_prompt_tokens(const dialogue& d) {
    int n = estimated_tokens(d.turns.front().prompt);
    for (const chat_message& m : d.before) n += estimated_tokens(m.content);
    return n;
}

inline bool have_images(const vector<dialogue>& all) {
    return any_of(all, [](const dialogue& d) {
        return any_of(d.turns, [](const dialogue_turn& t) { return !t.image.empty(); });
    });
}

struct trace_row {
    double at_s = 0;  // from the first one
    int prompt_tokens = 0, output_tokens = 0;
};
struct recorded_trace {
    std::string format{};
    vector<trace_row> rows{};  // in order of time
    /// Mooncake's content of prompts in blocks: equal numbers for equal content. Empty if the trace
    /// does not have it.
    prefix_tree tree{};
    vector<tree_prompt> prompts{};
    int block_tokens = 0;
    long long left_out = 0;  // failed requests of the recording
    row_fields fields{};     // columns that are not read
};

class read_workload;
struct workload_files {
    vector<double> prompt_values{}, output_values{};  // of empirical distributions
    vector<dialogue> dialogues{};                     // a dataset's sample
    recorded_trace trace{};                                // of replay
    vector<workload_files> of_parts{};                // of a mix
    vector<workload_files> of_baseline{};  // one, where it has another workload
    std::shared_ptr<const read_workload> of_extension{};
    row_fields fields{};  // of a dataset's rows
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
