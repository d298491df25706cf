// A made-up world around a test that sees the public header alone: its clock, and its connections,
// of which everything happens in the test's own thread. live/implementation.cpp has its inside.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace virtual_world {

/// Bytes take so long from one end of a connection to the other, and the answer to connecting, too.
inline constexpr long long way_ns = 50'000;

/// A test has rehearsed a gate.
inline bool has_rehearsed = false;

/// The calling thread lives in it as long as it does.
class execution_environment {
public:
    execution_environment();
    ~execution_environment();
    execution_environment(const execution_environment&) = delete;
    execution_environment& operator=(const execution_environment&) = delete;

private:
    struct inside;
    std::unique_ptr<inside> inside_;
};

// ---- time

long long now_ns();
/// Seconds since 1970, as servers of this world tell them.
double unix_s();
/// Has something happen so much later.
void after(long long ns, std::function<void()> what);
/// So much time goes by.
void pass(double seconds);

/// Ended by a limit that began then. A client looks at limits every 20 ms, at one of its ticks of 5 ms.
inline bool after_limit(std::chrono::milliseconds limit, long long from_ns, long long end_ns) {
    const long long over_ns = end_ns - from_ns - std::chrono::nanoseconds(limit).count();
    return over_ns >= 0 && over_ns <= 25'000'000;
}

// ---- connections

/// One end of a connection. What is sent arrives in order, and as the other side takes it.
class end {
public:
    virtual void send(std::string_view bytes) = 0;
    /// After all that was sent.
    virtual void close() = 0;
    virtual void reset() = 0;
    virtual ~end() = default;
};
/// Whoever has an end, and lives as long as the connection does.
class talk {
public:
    virtual void on_bytes(std::string_view bytes) = 0;
    /// The other side is gone.
    virtual void on_end() = 0;
    virtual ~talk() = default;
};

/// A port of 127.0.0.1 that takes connections as long as it lives, and refuses them afterwards.
class port {
public:
    using talks = std::function<std::shared_ptr<talk>(const std::shared_ptr<end>&)>;
    explicit port(talks with);
    ~port();
    port(const port&) = delete;
    port& operator=(const port&) = delete;

    int number() const;
    void refuse();
    /// From now on nobody hears whether there is a connection.
    void ignore();

private:
    struct inside;
    const std::shared_ptr<inside> inside_;
};

/// Connects a server to a port of another.
std::shared_ptr<end> connected_to(int port, std::shared_ptr<talk> by);

}  // namespace virtual_world
