// Waiting for sockets, and what ends a wait.
#include "effects/net/machine_network.hpp"
#include "effects/net/network.hpp"
#include "effects/net/sockets.hpp"
#include "effects/system/clock.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace llmbench::detail;

namespace {

struct reported final : socket_user {
    int readable = 0;
    void on_readable() override { ++readable; }
    void on_writable() override {}
};
std::atomic<int> other_end{-1};
/// What comes in at the very moment at which a signal ends a wait.
void write_a_byte(int) {
    [[maybe_unused]] const ssize_t n = ::write(other_end, "x", 1);
}

}  // namespace

// A client that was stopped and continued is told so in the same way: its wait ends, and what came
// in meanwhile must be told of in that turn, or its stamps would be those of a client that ran.
TEST_CASE("a wait that a signal ends tells of what has come in") {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    for (const int end : ends) REQUIRE(::fcntl(end, F_SETFL, O_NONBLOCK) == 0);
    other_end = ends[1];
    struct sigaction act = {}, before = {};
    act.sa_handler = write_a_byte;
    REQUIRE(::sigaction(SIGUSR1, &act, &before) == 0);
    {
        machine_network net;
        reported user;
        const auto socket = net.watch(descriptor(ends[0]), AF_UNIX, user);
        REQUIRE(socket);
        net.wait(now_ns() + 20000000);  // tells that it can be written to
        net.each();
        user.readable = 0;
        const pthread_t waits = ::pthread_self();
        std::atomic<bool> over{false};
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            if (!over) ::pthread_kill(waits, SIGUSR1);
        });
        const long long until = now_ns() + 20000000000;
        net.wait(until);
        over = true;
        net.each();
        other.join();
        CHECK(user.readable == 1);
        CHECK(now_ns() < until);
        net.close(socket);
    }
    ::sigaction(SIGUSR1, &before, nullptr);
    ::close(ends[1]);
}

#if defined(__linux__) && !defined(LLMBENCH_WAIT_BY_ASIO)
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

namespace {

/// A link whose other end is this test: packets are written one by one, in any order.
class link_by_hand {
public:
    /// False where the system allows no such link.
    bool open() {
        if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
        tun_ = ::open("/dev/net/tun", O_RDWR);
        ifreq r{};
        r.ifr_flags = IFF_TUN | IFF_NO_PI;
        if (tun_ < 0 || ::ioctl(tun_, TUNSETIFF, &r) != 0) return false;
        const int any = ::socket(AF_INET, SOCK_DGRAM, 0);
        const auto set = [&](unsigned long what, const char* digits) {
            sockaddr_in a{};
            a.sin_family = AF_INET;
            ::inet_pton(AF_INET, digits, &a.sin_addr);
            std::memcpy(&r.ifr_addr, &a, sizeof a);
            return ::ioctl(any, what, &r) == 0;
        };
        bool is_set = set(SIOCSIFADDR, "10.77.0.1") && set(SIOCSIFNETMASK, "255.255.255.0");
        r.ifr_flags = IFF_UP | IFF_RUNNING;
        is_set = is_set && ::ioctl(any, SIOCSIFFLAGS, &r) == 0;
        ::close(any);
        return is_set;
    }
    /// The other end's address.
    static address there() {
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_port = htons(80);
        ::inet_pton(AF_INET, "10.77.0.2", &a.sin_addr);
        address x;
        std::memcpy(&x.storage, &a, sizeof a);
        x.size = sizeof a;
        return x;
    }
    /// Answers the SYN that was sent.
    bool accept() {
        unsigned char packet[2048];
        do {
            if (::read(tun_, packet, sizeof packet) < 40) return false;
        } while (packet[0] >> 4 != 4 || packet[9] != IPPROTO_TCP || packet[33] != 2);
        std::memcpy(&port_, packet + 20, 2);
        std::uint32_t seq;
        std::memcpy(&seq, packet + 24, 4);
        its_next_ = ntohl(seq) + 1;
        say(0x12, first_ - 1, "");
        return true;
    }
    /// Sends bytes that stand so far after the first one.
    void say_at(std::uint32_t offset, const std::string& bytes) { say(0x18, first_ + offset, bytes); }

private:
    static unsigned sum(const unsigned char* p, std::size_t n, unsigned so_far) {
        for (std::size_t i = 0; i < n; ++i) so_far += i % 2 ? p[i] : p[i] * 256u;
        return so_far;
    }
    static void put_sum(unsigned char* to, unsigned all) {
        while (all >> 16) all = (all & 0xffff) + (all >> 16);
        to[0] = static_cast<unsigned char>(~all >> 8);
        to[1] = static_cast<unsigned char>(~all);
    }
    void say(unsigned char flags, std::uint32_t seq, const std::string& bytes) {
        std::vector<unsigned char> p(40 + bytes.size());
        const auto put = [&](std::size_t at, std::uint32_t n, int size) {
            for (int i = 0; i < size; ++i)
                p[at + static_cast<std::size_t>(i)] =
                    static_cast<unsigned char>(n >> 8 * (size - 1 - i));
        };
        p[0] = 0x45, p[8] = 64, p[9] = IPPROTO_TCP;
        put(2, static_cast<std::uint32_t>(p.size()), 2);
        put(12, 0x0a4d0002, 4), put(16, 0x0a4d0001, 4);
        put_sum(&p[10], sum(p.data(), 20, 0));
        put(20, 80, 2), std::memcpy(&p[22], &port_, 2);
        put(24, seq, 4), put(28, its_next_, 4);
        p[32] = 0x50, p[33] = flags;
        put(34, 65535, 2);
        std::memcpy(p.data() + 40, bytes.data(), bytes.size());
        const std::size_t size = p.size() - 20;
        put_sum(&p[36], sum(&p[12], 8 + size, IPPROTO_TCP + static_cast<unsigned>(size)));
        [[maybe_unused]] const ssize_t n = ::write(tun_, p.data(), p.size());
    }

    static constexpr std::uint32_t first_ = 1000;
    int tun_ = -1;
    std::uint16_t port_ = 0;
    std::uint32_t its_next_ = 0;
};

enum outcome : int { right, no_link, no_connection, no_stamp, other_bytes, too_early, too_late };

/// Stamps of answers of which a part comes late.
outcome stamps_after_a_hole() {
    link_by_hand link;
    if (!link.open()) return no_link;
    machine_network net;
    net.stamp_arrivals();
    reported user;
    const auto socket = net.connect(link.there(), nullptr, user);
    if (!socket || !link.accept()) return no_connection;
    const auto said = [&] {
        for (int i = 0; i < 100 && user.readable == 0; ++i) {
            net.wait(now_ns() + 20000000);
            net.each();
        }
        user.readable = 0;
        char text[16];
        const long long n = net.read(socket, text, sizeof text);
        return std::string(text, n > 0 ? static_cast<std::size_t>(n) : 0);
    };
    std::uint32_t at = 0;
    // The kernel switches stamps on in its own time, which a busy machine makes long.
    for (int i = 0; i < 2000 && socket->came_ns == 0; ++i) {
        if (i > 0) sleep_s(0.005);
        link.say_at(at++, "x");
        if (said() != "x") return other_bytes;
    }
    if (socket->came_ns == 0) return no_stamp;
    for (int round = 0; round < 3; ++round) {
        link.say_at(at + 1, "b");  // twice out of order
        link.say_at(at + 3, "d");
        for (const char* filled : {"ab", "cd"}) {
            sleep_s(0.03);
            const long long from = now_ns();
            link.say_at(at, std::string(filled, 1));
            if (said() != filled) return other_bytes;
            at += 2;
            const long long came = socket->came_ns > 0 ? socket->came_ns : now_ns();  // its read
            if (came < from - 1000000) return too_early;
            if (came > now_ns()) return too_late;
        }
    }
    return right;
}

}  // namespace

TEST_CASE("bytes behind a lost segment have the time at which they could be read") {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) ::_exit(stamps_after_a_hole());
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == no_link) MESSAGE("this system lets no test make a link");
    else CHECK(WEXITSTATUS(status) == right);
}
#endif
