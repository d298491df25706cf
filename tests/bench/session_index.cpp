// What a corpus of recorded sessions takes to be read: one of the size of a published one, 472 sessions
// of 113,254 requests whose blocks would be 1.6 GB of numbers, made up as it is read. Exits with 1
// where its index takes over 10 MB, or reading it over 100 MB more than the program had.
//   session_index [SHARE]      a part of the sessions, 1 of them all
#include "core/base/text.hpp"
#include "extensions/machines/shards.hpp"
#include "program/sessions/recordings.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace llmbench::detail;

namespace {

constexpr int all_sessions = 472, all_requests = 113254, block = 64;

/// Sessions in Weka's format: a line that grows by 15 blocks a request, compacted where it has 3,500;
/// every tenth request is a helper's, of some blocks of its own.
class made_up_corpus {
public:
    explicit made_up_corpus(int sessions) : sessions_(sessions) {}
    std::size_t operator()(char* room, std::size_t size) {
        while (text_.size() - at_ < size && session_ < sessions_) {
            text_.erase(0, at_);
            at_ = 0;
            append_request();
        }
        const std::size_t n = std::min(size, text_.size() - at_);
        std::memcpy(room, text_.data() + at_, n);
        at_ += n;
        bytes += static_cast<double>(n);
        return n;
    }
    double bytes = 0, ids = 0;

private:
    void append_request() {
        if (request_ == 0)
            text_ += R"({"id":"s","block_size":64,"hash_id_scope":"local","requests":[)";
        const bool is_helper = request_ % 10 == 9;
        const int n = is_helper ? 40 : blocks_;
        text_ += printed(R"(%s{"t":%d,"type":"s","model":"big","in":%d,"out":180,"api_time":2.5,)"
                         R"("hash_ids":[)", request_ > 0 ? "," : "", 4 * request_, block * n);
        for (int i = 0; i < n; ++i) {
            const int id = is_helper ? 1000000 + 40 * request_ + i
                           : i < 300 ? i
                                     : 10000 * compactions_ + i;
            text_ += (i > 0 ? "," : "") + std::to_string(id);
        }
        ids += n;
        text_ += "]}";
        blocks_ += is_helper ? 0 : 15;
        if (blocks_ > 3500) {
            blocks_ = 300;
            ++compactions_;
        }
        if (++request_ < all_requests / all_sessions + (session_ < all_requests % all_sessions))
            return;
        text_ += "]}\n";
        ++session_;
        request_ = compactions_ = 0;
        blocks_ = 300;
    }

    const int sessions_;
    int session_ = 0, request_ = 0, blocks_ = 300, compactions_ = 0;
    std::string text_{};
    std::size_t at_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    const double share = argc > 1 ? std::atof(argv[1]) : 1;
    made_up_corpus corpus(std::max(1, static_cast<int>(all_sessions * share)));
    const double before = max_memory_so_far();
    const auto began = std::chrono::steady_clock::now();
    byte_stream in([&](char* room, std::size_t size) { return corpus(room, size); }, "corpus");
    weka_reader reader;
    reader.read(in);
    const session_corpus read = reader.finished("corpus");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const double index = static_cast<double>(read.bytes()),
                 more = max_memory_so_far() - before;
    std::printf("%zu sessions, %zu requests, %.0f million blocks, %.2f GB of text: read in %.1f s "
                "(%.0f MB/s), an index of %.1f MB, %.0f MB more of memory at most\n",
                read.sessions.size(), read.steps.size(), corpus.ids / 1e6, corpus.bytes / 1e9,
                took.count(), corpus.bytes / 1e6 / took.count(), index / 1e6, more / 1e6);
    return index > 10e6 || more > 100e6;
}
