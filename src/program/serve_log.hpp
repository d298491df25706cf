// the log of `llmbench serve`: what it did, by its own clock
// A line for the server, a line for each request, and a line at the end, in JSON. Times are
// nanoseconds: of CLOCK_MONOTONIC where a request came, else after that.
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "core/measured/histograms.hpp"
#include "effects/system/errors.hpp"
#include "extensions/simulated/service.hpp"
#include "program/values.hpp"

#include <cerrno>  // errno
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>  // move

#include <fcntl.h>  // open
#include <sys/file.h>  // flock
#include <sys/stat.h>  // fstat
#include <unistd.h>  // ftruncate

namespace llmbench_program {

inline constexpr const char* truth_schema = "llmbench/truth/1";
inline constexpr const char* answer_end_names[] = {"open",    "ok",      "refused", "reset",
                                                   "stalled", "garbage", "left"};
inline const char* name_of(answer_end e) { return answer_end_names[static_cast<std::size_t>(e)]; }

/// One request for tokens, as the server saw it.
struct served_request {
    std::string id{};      // its X-Request-Id, "" if it had none
    std::string api{};
    bool is_streamed = true;
    int status = 200;
    answer_end ended = answer_end::open;
    int prompt_tokens = 0, output_tokens = 0;
    int first_event_tokens = 1;
    long long received_ns = 0;  // arrival of the last byte
    long long end_ns = 0;       // hand-over of the last byte
    vector<long long> tokens_ns{};  // hand-over of each event with content
    /// Events whose bytes the kernel may have had so much later, as the server was interrupted.
    vector<std::pair<std::size_t, long long>> doubts{};
};
inline constexpr long long usual_send_ns = 30000;

/// How far the server was from its plan. A token is handed over late if its time had passed.
struct lateness {
    lag_counts late{};
    std::uint64_t waited = 0;  // writes that the socket did not take: the client reads too slowly
    /// A limit of what a paced server may be late, in seconds.
    static constexpr double noticed_s = 0.001;
    bool is_late() const { return late.quantile(0.99) > noticed_s; }
};

inline std::string truth_line(const served_request& r) {
    json_writer j(layout::one_line);
    j.open('{').field("received_ns", r.received_ns).key("id");
    if (r.id.empty()) j.raw("null");
    else j.value(std::string_view(r.id));
    j.field("api", r.api).field("stream", r.is_streamed).field("status", r.status);
    j.field("ended", name_of(r.ended)).field("prompt_tokens", r.prompt_tokens);
    j.field("output_tokens", r.output_tokens).field("first_event_tokens", r.first_event_tokens);
    j.field("end_ns", r.end_ns - r.received_ns).key("tokens_ns").open('[');
    for (const long long ns : r.tokens_ns) j.value(ns - r.received_ns);
    j.close().key("doubts").open('[');
    for (const auto& [event, ns] : r.doubts)
        j.open('[').value(static_cast<long long>(event)).value(ns).close();
    return j.close().close().text() + "\n";
}

/// The file of the log, or none. Writes go through its own buffer, from one thread.
class truth_log {
public:
    truth_log() = default;
    truth_log(const std::string& path, const std::string& server) : path_(path) {
        const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd >= 0) file_.reset(::fdopen(fd, "w"));
        if (!file_)
            refuse({"--log is ", printable(path, 200), ", which cannot be written: ",
                    error_text(errno)});
        if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
            refuse({"--log is ", printable(path, 200),
                    ", which another `llmbench serve` writes: each needs a log of its own"});
        struct stat what{};
        if (::fstat(fd, &what) == 0 && S_ISREG(what.st_mode) && ::ftruncate(fd, 0) != 0) fail();
        write(printed("{\"schema\":\"%s\",\"server\":", truth_schema) + json_quoted(server) +
              printed(",\"day_ahead_ns\":%lld}\n", day_ahead_ns()));
        flush();
    }
    void add(const served_request& r) {
        ++requests_;
        if (file_) write(truth_line(r));
    }
    void end(const lateness& l) {
        write(printed("{\"end\":true,\"requests\":%zu,\"hand_overs\":%llu,\"late_p99_ns\":%.0f,"
                      "\"late_max_ns\":%.0f,\"waited\":%llu}\n",
                      requests_, static_cast<unsigned long long>(l.late.count()),
                      1e9 * l.late.quantile(0.99), 1e9 * l.late.max(),
                      static_cast<unsigned long long>(l.waited)));
        flush();
    }
    void flush() {
        if (file_ && std::fflush(file_.get()) != 0) fail();
    }
    std::size_t requests() const { return requests_; }
    /// "" while every line is written.
    const std::string& error() const { return error_; }

private:
    struct closed {
        void operator()(std::FILE* f) const { std::fclose(f); }
    };
    void write(const std::string& line) {
        if (file_ && std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size()) fail();
    }
    void fail() {
        if (error_.empty()) error_ = path_ + " cannot be written: " + error_text(errno);
    }
    std::string path_{}, error_{};
    std::unique_ptr<std::FILE, closed> file_{};
    std::size_t requests_ = 0;
};

}  // namespace llmbench_program
