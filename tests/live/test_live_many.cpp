// Loads of very many connections or failures: what is opened ahead, and that nothing is left behind.
#include "support/effects.hpp"
#include "support/live.hpp"
#include "support/memory.hpp"
#include "support/scripted_server.hpp"
#include "support/sockets.hpp"

#include <atomic>
#include <filesystem>
#include <set>

#include <sys/resource.h>

using namespace llmbench;
using namespace live;

namespace {

enum class manner { answers, resets };

/// Takes any number of connections on one thread. Each request gets a healthy answer, or each
/// connection is reset when bytes come.
class crowd_server {
public:
    explicit crowd_server(manner how) : how_(how) {
        rlimit files{};
        ::getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &files);
        listener_ = sockets::made(AF_INET, false);
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof a;
        auto* any = reinterpret_cast<sockaddr*>(&a);
        if (::bind(listener_, any, size) != 0 || ::listen(listener_, 4096) != 0 ||
            ::getsockname(listener_, any, &size) != 0)
            throw std::runtime_error("the crowd server has no port");
        port_ = ntohs(a.sin_port);
        thread_ = std::thread([this] { serve(); });
    }
    ~crowd_server() {
        going_ = true;
        thread_.join();
        for (const pollfd& p : sockets_) ::close(p.fd);
    }
    crowd_server(const crowd_server&) = delete;
    crowd_server& operator=(const crowd_server&) = delete;
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    /// Connections that were there when the first POST came.
    std::size_t connected_at_first() const { return connected_at_first_; }

private:
    void serve() {
        sockets_.push_back({listener_, POLLIN, 0});
        const std::string answer = scripted::sized_stream(scripted::healthy_events(2));
        while (!going_) {
            if (::poll(sockets_.data(), static_cast<nfds_t>(sockets_.size()), 20) <= 0) continue;
            // All that is to be accepted, before anything is read.
            for (int fd; (fd = sockets::accepted(listener_)) >= 0;)
                sockets_.push_back({fd, POLLIN, 0});
            for (std::size_t i = sockets_.size(); i-- > 1;)
                if (sockets_[i].revents != 0) on_readable(i, answer);
        }
    }
    void on_readable(std::size_t i, const std::string& answer) {
        char bytes[8192];
        const int fd = sockets_[i].fd;
        const ssize_t n = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        const bool post = n > 4 && std::string(bytes, 4) == "POST";
        if (post && connected_at_first_ == 0) connected_at_first_ = sockets_.size() - 1;
        if (n > 0 && !(post && how_ == manner::resets)) {
            [[maybe_unused]] const auto sent =
                ::send(fd, answer.data(), answer.size(), sockets::no_signal);
            return;
        }
        const linger at_once{1, 0};
        if (n > 0) ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        ::close(fd);
        sockets_[i] = sockets_.back();
        sockets_.pop_back();
    }

    manner how_;
    int listener_ = -1, port_ = 0;
    std::vector<pollfd> sockets_{};
    std::atomic<bool> going_{false};
    std::atomic<std::size_t> connected_at_first_{0};
    std::thread thread_{};
};

std::set<std::string> open_files() {
    std::set<std::string> open;
    for (const auto& file : std::filesystem::directory_iterator("/dev/fd"))
        open.insert(file.path().filename().string());
    return open;
}
/// Once nothing changes any more: the server's side of the last connections closes a little later.
std::set<std::string> settled_files() {
    std::set<std::string> files = open_files();
    for (int same = 0, looks = 0; same < 20 && looks < 500; ++looks) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        std::set<std::string> now = open_files();
        same = now == files ? same + 1 : 0;
        files = std::move(now);
    }
    return files;
}
scenario crowd(const std::string& url, long long users, long long requests) {
    scenario s;
    s.target = endpoint{.url = url, .model = "m"};
    s.workload = synthetic{.prompt_tokens = fixed(4), .output_tokens = fixed(2)};
    s.arrivals = closed_loop(users);
    s.warmup = 0;
    s.requests = requests;
    return s;
}

}  // namespace

TEST_CASE("every connection that the first sends need is there before the first send") {
    for (const int threads : {1, 2})
        for (const bool at_once : {false, true}) {
            CAPTURE(threads);
            CAPTURE(at_once);
            const crowd_server server(manner::answers);
            scenario s = crowd(server.url(), 900, 900);
            if (at_once) s.arrivals = all_at_once();
            s.client.threads = threads;
            const std::vector<record> records = unreported_records_of(s);
            REQUIRE(records.size() == 900);
            for (const record& r : records) REQUIRE(r.status == request_status::ok);
            CHECK(server.connected_at_first() == 900);
        }
}

TEST_CASE("a cap on requests in flight is a cap on connections opened ahead") {
    const crowd_server server(manner::answers);
    scenario s = crowd(server.url(), 1, 600);
    s.arrivals = all_at_once().max_in_flight(300);
    const std::vector<record> records = unreported_records_of(s);
    CHECK(records.size() == 600);
    CHECK(server.connected_at_first() == 300);
}

TEST_CASE("ten thousand failing requests leave no file and no memory behind") {
    const auto check = [](request_status expected, auto&& load) {
        const auto fail_10000 = [&] {
            const std::vector<record> records = load();
            REQUIRE(records.size() == 10000);
            for (const record& r : records) REQUIRE(r.status == expected);
        };
        fail_10000();  // what is made once is made
        const std::set<std::string> files = settled_files();
        const auto memory = memory::held();
        fail_10000();
        CHECK(settled_files() == files);
        CHECK(memory::held() < memory + 500000);  // 50 bytes a request
    };
    SUBCASE("refused") {
        const scripted::server models;
        int closed = 0;  // a port that was free a moment ago
        { closed = scripted::server().port(); }
        check(request_status::connect, [&] {
            return records_over({{"127.0.0.1", closed}}, crowd(models.url(), 250, 10000));
        });
    }
    SUBCASE("reset") {
        const crowd_server server(manner::resets);
        check(request_status::truncated,
              [&] { return unreported_records_of(crowd(server.url(), 250, 10000)); });
    }
}
