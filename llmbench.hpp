// llmbench 0.1.0: performance gates for LLM inference servers, written like unit tests.
// Put together from src/ by ci/assemble.py: edit there, not here.
//
// How to read this file. Part one declares everything a gate says; a file that includes the header
// pays for that part alone. Part two is the pure core: parsing, statistics, schedules, verdicts and
// reports as functions from values to values, which do no I/O and know no clock. Part three holds
// the effects: clocks, sockets, processes, files. Parts two and three are compiled in the one file
// that defines LLMBENCH_IMPLEMENT (or LLMBENCH_MAIN, which adds doctest's implementation and main).
// Inside a part every section uses only what stands above it.
//
// Part one: declarations
//   [A1] the version
//   [A2] doctest, the host
//   [A3] text and lists
//   [A4] units
//   [A5] metrics
//   [A6] SLO expressions
//   [A7] published limits
//   [A8] lengths and arrivals
//   [A9] targets
//   [A10] workloads
//   [A11] the scenario
//   [A12] results
//   [A13] verbs and assertions
// Part two: the pure core
//   [C1] text helpers
//   [C2] JSON, read and written
//   [C3] statistics
//   [C4] random numbers
//   [C5] base64 and a hash
//   [C6] words that must not be repeated
//   [C7] the table of metrics
//   [C8] values of metrics in words
//   [C9] URLs
//   [C10] HTTP/1.1
//   [C11] server-sent events
//   [C12] what a server says, whichever API it has
//   [C13] OpenAI's answers
//   [C14] bodies of requests
//   [C15] what each API writes and reads
//   [C16] the table of APIs
//   [C17] from the bytes of a body to events
//   [C18] the timeline of one answer
//   [C19] from bytes to the timeline of an answer
//   [C20] histograms of lateness and of gaps
//   [C21] when the client did not run
//   [C22] what one repeat measured
//   [C23] the requests of a repeat, as they end
//   [C24] whether an answer can have come as its numbers say
//   [C25] how a repeat is read where the client may have been late
//   [C26] metrics of requests and of repeats
//   [C27] statistics of several repeats together
//   [C28] what a server's prefix cache had of the prompts
//   [C29] what verdicts are given on
//   [C30] the rule: looks, bounds, prior noise
//   [C31] what evidence is held against
//   [C32] counts: shares, and quantiles of fresh traffic
//   [C33] errors of a baseline
//   [C34] what the client can say against its own numbers
//   [C35] pairs: repeats in turns with those of a baseline
//   [C36] values: times, speeds and rates
//   [C37] verdicts in words
//   [C38] what the numbers alone say of an objective
//   [C39] verdicts that the client may have decided
//   [C40] how many requests a verdict rests on at least
//   [C41] what a server's answers can say against its numbers
//   [C42] verdicts that stand although tokens were held back
//   [C43] servers that cannot keep up
//   [C44] what makes a measurement invalid
//   [C45] the verdicts of a gate
//   [C46] from verdicts to an exit code
//   [C47] what a calibration tells
//   [C48] calibration
//   [C49] files of others' making, value by value
//   [C50] datasets
//   [C51] traces
//   [C52] when requests are sent
//   [C53] arrivals
//   [C54] lengths
//   [C55] prompts of a given number of tokens
//   [C56] places of a trace
//   [C57] conversations, recorded and made up
//   [C58] prompts that stand alone
//   [C59] where prompts come from
//   [C60] the plan of a gate
//   [C61] which SLOs a scenario can have
//   [C62] the options of requests
//   [C63] from a workload to its part of the plan
//   [C64] from a scenario to its plan
//   [C65] a plan in words
//   [C66] where a gate's server stood
//   [C67] the hash of all that a plan sends
//   [C68] the requests of a plan
//   [C69] what a plan says of the evidence that it will bring
//   [C70] what of its prompts a workload lets a prefix cache have
//   [C71] engine model
//   [C72] what a request asks the simulated server
//   [C73] answers of the simulated server
//   [C74] what the simulated server says besides answers
//   [C75] what a result holds of its gate
//   [C76] the rows of a table: each metric over the repeats of an arm
//   [C77] points and round steps of drawings
//   [C78] distributions: quantiles as lines, of each repeat and of all
//   [C79] how requests ended, and what their answers say of tokens
//   [C80] how long made-up prompts were to be, and were
//   [C81] timelines: repeats in windows of equal length
//   [C82] all that reports tell of a gate's numbers, computed once
//   [C83] the progress line
//   [C84] what reports are made of
//   [C85] words of reports
//   [C86] result.json and records.jsonl
//   [C87] stored results
//   [C88] junit.xml, summary.md, annotations, metrics.txt
//   [C89] what a console can show
//   [C90] the console
//   [C91] the report page: style, icons and script
//   [C92] the report page: drawings
//   [C93] the report page: verdicts
//   [C94] the report page: distributions
//   [C95] the report page: gates beside each other
//   [C96] the report page: what else a gate has to say
//   [C97] the report page: timelines
//   [C98] the report page: the whole
// Part three: effects
//   [E1] functions of text
//   [E2] functions of SLO expressions
//   [E3] functions of arrivals
//   [E4] functions of results
//   [E5] standard output
//   [E6] errors of the system, in words
//   [E7] files
//   [E8] signals, and what else a program has once
//   [E9] the clock
//   [E10] what the environment asks for
//   [E11] the machine and the commit
//   [E12] what the system lets one process have
//   [E13] how long a thread has waited for a core
//   [E14] all that a scenario names in files
//   [E15] asio, under every client and the simulated server
//   [E16] whoever is told of a socket
//   [E17] sockets and addresses
//   [E18] waiting for sockets, on every other system
//   [E19] waiting for sockets, on Linux
//   [E20] waiting for sockets
//   [E21] TLS
//   [E22] one request and its answer over one socket
//   [E23] requests that are not measured
//   [E24] server processes
//   [E25] when a thread of the client did not run, as it knows itself
//   [E26] what a load is told and delivers
//   [E27] one connection of the load
//   [E28] what one client thread has to send, and when
//   [E29] the connections of one client thread
//   [E30] what came back to one client thread
//   [E31] one client thread
//   [E32] the load of one repeat
//   [E33] what of asio a server needs beyond a client
//   [E34] a connection of the simulated server
//   [E35] simulated server
//   [E36] what a server is asked before the load
//   [E37] who asks a server
//   [E38] servers that a gate starts
//   [E39] targets brought up
//   [E40] whether two targets are one server
//   [E41] records.jsonl and events.bin, written while the load runs
//   [E42] all gates of a program and their reports
//   [E43] gates inside doctest
//   [E44] the progress of a repeat
//   [E45] one repeat
//   [E46] the repeats of a gate
//   [E47] gates take turns
//   [E48] one gate from its scenario to its result
//   [E49] public functions
//   [E50] records judged again
//   [E51] main
//
// Macros, all optional, each in exactly one file:
//   LLMBENCH_MAIN              implementation, doctest's implementation and a main() in this file
//   LLMBENCH_IMPLEMENT         the implementation only (bring your own main)
//   LLMBENCH_NO_DOCTEST        no doctest anywhere: use run() and judge() from another framework
//   LLMBENCH_WITH_TLS          https:// through OpenSSL: link -lssl -lcrypto
//
// SPDX-License-Identifier: MIT
//
// Copyright (c) 2026 the llmbench authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction,
// including without limitation the rights to use, copy, modify, merge, publish, distribute,
// sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all copies or
// substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
// NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
// NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
// DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

// Before anything that would fail for the same reason in other words. The include that there is not
// ends the compilation with that one sentence.
#if defined(_WIN32)
#error "llmbench runs on Linux and macOS: on Windows compile and run it inside WSL"
#include <llmbench stops here>
#elif __cplusplus < 202002L
#error "llmbench needs C++20: compile with -std=c++20 or newer"
#include <llmbench stops here>
#elif !defined(__cpp_exceptions)
#error "llmbench needs exceptions, by which gates are refused: compile without -fno-exceptions"
#include <llmbench stops here>
#elif defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ == 1)
#error "llmbench needs infinity and NaN, which failed requests count as: compile without -Ofast, \
-ffast-math and -ffinite-math-only, or with -fno-finite-math-only after them"
#include <llmbench stops here>
#elif (defined(LLMBENCH_IMPLEMENT) || defined(LLMBENCH_MAIN)) && !defined(__GXX_RTTI)
#error "llmbench's implementation needs RTTI, as asio does: compile the one file that has it \
without -fno-rtti; files with gates may go without"
#include <llmbench stops here>
#endif

// Outside the include guard, so that a later #define still works in a file that was given the
// header before.
#ifdef LLMBENCH_MAIN
#ifndef LLMBENCH_IMPLEMENT
#define LLMBENCH_IMPLEMENT
#endif
#ifndef DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_IMPLEMENT
#endif
#endif

#ifndef LLMBENCH_HPP
#define LLMBENCH_HPP

#include <initializer_list>  // .slos = {...}

// ===== [A1] the version ==========================================================================

#define LLMBENCH_VERSION_MAJOR 0
#define LLMBENCH_VERSION_MINOR 1
#define LLMBENCH_VERSION_PATCH 0

// ===== [A2] doctest, the host ====================================================================

#ifndef LLMBENCH_NO_DOCTEST
#include <cfloat>  // DBL_EPSILON, which doctest 2.4.9 leaves to libstdc++
#include <doctest/doctest.h>  // the host: test cases, assertions, filters
#endif

// ===== [A3] text and lists =======================================================================
// <string> and <vector> would make every gate file two to three times as slow to compile, so the
// public structs hold the types of this section. Text and lists convert from and to the std types
// where those are included.

namespace llmbench {
inline namespace v0 {
namespace detail {

using size_type = decltype(sizeof 0);

template <class T>
concept integer = requires(T t) { static_cast<unsigned long long>(t); t % 2; };
template <class D>
concept duration_like = requires(const D& d) { d.count(); D::period::num; D::period::den; };
}  // namespace detail

/// What public structs are made of. A namespace of its own, so that `using namespace llmbench` and
/// `using namespace std` go together.
namespace types {

/// An owned, zero-terminated string.
class text {
public:
    text() = default;
    text(const char* s);
    text(const char* s, detail::size_type n);
    template <class S>
        requires requires(const S& s) { s.data(); s.size(); s.substr(0); }
    text(const S& s) : text(s.data(), s.size()) {}
    text(const text& o);
    text(text&& o) noexcept : data_(o.data_), size_(o.size_) { o.data_ = nullptr; o.size_ = 0; }
    text& operator=(const text& o);
    text& operator=(text&& o) noexcept;
    ~text();

    const char* c_str() const { return data_ ? data_ : ""; }
    const char* data() const { return c_str(); }
    detail::size_type size() const { return size_; }
    bool empty() const { return size_ == 0; }

    template <class S>
        requires requires(const S& s) { typename S::traits_type; s.substr(0); }
    operator S() const { return S(c_str(), size_); }

    friend text operator+(const text& a, const text& b) { return join(a, b); }
    friend bool operator==(const text& a, const text& b) { return same(a, b); }
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const text& t) { o << t.c_str(); return o; }
#ifndef LLMBENCH_NO_DOCTEST
    friend doctest::String toString(const text& t) { return t.c_str(); }
#endif

private:
    static text join(const text& a, const text& b);
    static bool same(const text& a, const text& b);
    char* data_ = nullptr;
    detail::size_type size_ = 0;
};

/// A growing array with value semantics.
template <class T>
class list {
public:
    using value_type = T;
    list() = default;
    list(std::initializer_list<T> items) { for (const T& x : items) push_back(x); }
    template <class C>
        requires requires(const C& c) {
            typename C::allocator_type;
            c.begin();
            c.end();
            T(*c.begin());
        }
    list(const C& items) { for (const auto& x : items) push_back(T(x)); }
    list(const list& o) { for (const T& x : o) push_back(x); }
    list(list&& o) noexcept : data_(o.data_), size_(o.size_), room_(o.room_) { o.forget(); }
    list& operator=(const list& o) { list copy(o); swap(copy); return *this; }
    list& operator=(list&& o) noexcept { swap(o); return *this; }
    ~list() { delete[] data_; }

    void push_back(const T& x) {
        if (size_ == room_) {
            T copy = x;  // it may be an element of ours, which growing moves away
            grow();
            data_[size_++] = static_cast<T&&>(copy);
        } else {
            data_[size_++] = x;
        }
    }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    const T* data() const { return data_; }
    detail::size_type size() const { return size_; }
    bool empty() const { return size_ == 0; }
    const T& operator[](detail::size_type i) const { return data_[i]; }
    const T& front() const { return data_[0]; }
    const T& back() const { return data_[size_ - 1]; }

private:
    void grow() {
        const detail::size_type room = room_ ? 2 * room_ : 4;
        T* bigger = new T[room];
        for (detail::size_type i = 0; i < size_; ++i) bigger[i] = static_cast<T&&>(data_[i]);
        delete[] data_;
        data_ = bigger;
        room_ = room;
    }
    void forget() { data_ = nullptr; size_ = room_ = 0; }
    void swap(list& o) noexcept {
        T* d = data_; data_ = o.data_; o.data_ = d;
        detail::size_type n = size_; size_ = o.size_; o.size_ = n;
        n = room_; room_ = o.room_; o.room_ = n;
    }
    T* data_ = nullptr;
    detail::size_type size_ = 0;
    detail::size_type room_ = 0;
};

/// A whole number that takes any integer type without narrowing or sign warnings.
class whole {
public:
    constexpr whole() = default;
    template <detail::integer I>
    constexpr whole(I n) : value_(static_cast<long long>(n)) {}
    constexpr operator long long() const { return value_; }

private:
    long long value_ = 0;
};

/// A value or nothing.
template <class T>
class maybe {
public:
    constexpr maybe() = default;
    constexpr maybe(T v) : value_(v), has_(true) {}
    constexpr explicit operator bool() const { return has_; }
    constexpr const T& operator*() const { return value_; }

private:
    T value_{};
    bool has_ = false;
};

}  // namespace types

namespace detail {
using types::list;
using types::maybe;
using types::text;
using types::whole;

/// An immutable, shared, typed box: what std::shared_ptr<const any> would be without <memory>.
class box {
    struct holder {
        int refs = 1;
        virtual ~holder() = default;
    };
    template <class T>
    struct holder_of : holder {
        T value;
        explicit holder_of(T&& v) : value(static_cast<T&&>(v)) {}
    };

public:
    box() = default;
    template <class T>
    static box make(T v) {
        box b;
        b.held_ = new holder_of<T>(static_cast<T&&>(v));
        return b;
    }
    box(const box& o) : held_(o.held_) {
        if (held_) __atomic_add_fetch(&held_->refs, 1, __ATOMIC_RELAXED);
    }
    box(box&& o) noexcept : held_(o.held_) { o.held_ = nullptr; }
    box& operator=(box o) noexcept {
        holder* h = held_;
        held_ = o.held_;
        o.held_ = h;
        return *this;
    }
    ~box() {
        if (held_ && __atomic_sub_fetch(&held_->refs, 1, __ATOMIC_ACQ_REL) == 0) delete held_;
    }

    bool empty() const { return held_ == nullptr; }
    /// The value, or null where the box holds another type or nothing.
    template <class T>
    const T* get() const {
        const auto* h = dynamic_cast<const holder_of<T>*>(held_);
        return h ? &h->value : nullptr;
    }

private:
    holder* held_ = nullptr;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [A4] units ================================================================================
// One strong type per dimension. All constructors from plain numbers are explicit: a limit, a rate
// or a length of time without its unit does not compile.

namespace llmbench {
inline namespace v0 {

/// A length of time. `300_ms`, `2.5_s`, `10_min`, or any std::chrono duration.
class time_span {
public:
    constexpr time_span() = default;
    static constexpr time_span from_seconds(double s) { time_span t; t.seconds_ = s; return t; }
    template <detail::duration_like D>
    constexpr time_span(const D& d)
        : seconds_(static_cast<double>(d.count()) * static_cast<double>(D::period::num) /
                   static_cast<double>(D::period::den)) {}
    constexpr double seconds() const { return seconds_; }

private:
    double seconds_ = 0;
};

/// Requests per second, `8_rps`.
struct request_rate {
    double per_second = 0;
    constexpr request_rate() = default;
    constexpr explicit request_rate(double v) : per_second(v) {}
};

/// Tokens per second, `400_tps`.
struct token_rate {
    double per_second = 0;
    constexpr token_rate() = default;
    constexpr explicit token_rate(double v) : per_second(v) {}
};

/// A share of a whole, `99.5_pct`. The fraction runs from 0 to 1.
struct share {
    double fraction = 0;
    constexpr share() = default;
    constexpr explicit share(double v) : fraction(v) {}
};

/// A number of tokens, `512_tokens`.
struct token_count {
    double tokens = 0;
    constexpr token_count() = default;
    constexpr explicit token_count(double v) : tokens(v) {}
};

/// A number without a unit: the value of a server's own gauge.
struct plain_number {
    double value = 0;
    constexpr plain_number() = default;
    constexpr plain_number(double v) : value(v) {}
};

inline namespace literals {
constexpr time_span operator""_ms(unsigned long long v) {
    return time_span::from_seconds(static_cast<double>(v) / 1e3);
}
constexpr time_span operator""_ms(long double v) {
    return time_span::from_seconds(static_cast<double>(v) / 1e3);
}
constexpr time_span operator""_s(unsigned long long v) {
    return time_span::from_seconds(static_cast<double>(v));
}
constexpr time_span operator""_s(long double v) {
    return time_span::from_seconds(static_cast<double>(v));
}
constexpr time_span operator""_min(unsigned long long v) {
    return time_span::from_seconds(static_cast<double>(v) * 60);
}
constexpr time_span operator""_min(long double v) {
    return time_span::from_seconds(static_cast<double>(v) * 60);
}
constexpr request_rate operator""_rps(unsigned long long v) {
    return request_rate(static_cast<double>(v));
}
constexpr request_rate operator""_rps(long double v) {
    return request_rate(static_cast<double>(v));
}
constexpr token_rate operator""_tps(unsigned long long v) {
    return token_rate(static_cast<double>(v));
}
constexpr token_rate operator""_tps(long double v) { return token_rate(static_cast<double>(v)); }
constexpr share operator""_pct(unsigned long long v) { return share(static_cast<double>(v) / 100); }
constexpr share operator""_pct(long double v) { return share(static_cast<double>(v) / 100); }
constexpr token_count operator""_tokens(unsigned long long v) {
    return token_count(static_cast<double>(v));
}
constexpr token_count operator""_tokens(long double v) {
    return token_count(static_cast<double>(v));
}

}  // namespace llmbench
}  // inline namespace v0
}  // inline namespace literals

// ===== [A5] metrics ==============================================================================
// `p99(ttft) <= 300_ms` is a value: it prints itself, can be stored and shared, and knows the line
// it was written on. Metrics are enumerators of one type per dimension, so that nonsense does not
// compile; being enumerators they never shadow a user's own variable of the same name.

namespace llmbench {
inline namespace v0 {

struct source_line {
    const char* file = "";
    int line = 0;
};

/// Times of one request.
enum class latency_metric : unsigned char {
    ttft,                   ///< time to first token: first content event - scheduled send
    tpot,                   ///< time per output token: (last - first content event) / (n - k)
    itl,                    ///< inter-token latency: every gap between content events, pooled
    e2e,                    ///< end to end: terminal event - scheduled send
    normalized_latency,     ///< e2e / output tokens
    ttft_per_prompt_token,  ///< ttft / prompt tokens
    ttft_from_send,         ///< first content event - actual send (what most tools call TTFT)
    queue_time,             ///< server-side waiting time (not measured by this version)
    first_turn_ttft,        ///< ttft of the first turns of conversations
    later_turn_ttft         ///< ttft of all their other turns
};
/// Speeds of one request, tokens/s as its user sees them.
enum class speed_metric : unsigned char {
    prefill_speed,  ///< prompt tokens / ttft
    decode_speed    ///< 1 / tpot
};
/// Tokens/s of the whole server inside the steady window. Prefill and decode are the two phases of
/// a request (Patel et al., Splitwise, ISCA 2024): the one reads the prompt and ends with the first
/// token, the other generates the rest. They share the window, so each is what the server did of it
/// beside the other; a workload of long prompts and one-token answers shows prefill alone.
enum class token_throughput : unsigned char {
    output_throughput,   ///< generated tokens
    total_throughput,    ///< prompt and generated tokens
    prefill_throughput,  ///< prompt tokens, as usage tells them, of requests at their first token
    decode_throughput    ///< generated tokens after the first event's
};
enum class request_throughput_t : unsigned char { request_throughput };  ///< completed requests/s
enum class share_metric : unsigned char { error_rate };  ///< failed share of requests
enum class run_time_metric : unsigned char { startup_time };             ///< spawn to ready
enum class baseline_t : unsigned char { baseline };                      ///< the other arm's value
using enum latency_metric;
using enum speed_metric;
using enum token_throughput;
using enum request_throughput_t;
using enum share_metric;
using enum run_time_metric;
using enum baseline_t;

namespace detail {
/// All of them, in the order of the types above.
enum class metric_id : unsigned char {
    ttft, tpot, itl, e2e, normalized_latency, ttft_per_prompt_token, ttft_from_send, queue_time,
    first_turn_ttft, later_turn_ttft,
    prefill_speed, decode_speed, output_throughput, total_throughput, prefill_throughput,
    decode_throughput, request_throughput, error_rate, startup_time, goodput, server_metric
};
enum class statistic_kind : unsigned char { percentile, mean, max, min, value };
enum class bound_side : unsigned char { at_most, at_least, either };

/// A limit's unit and side by the type of its metric, whose enumerators metric_id has from `First`.
template <class M>
struct metric_traits {};
template <class U, bool PerRequest, bound_side Side, metric_id First>
struct metric_traits_of {
    using unit = U;
    static constexpr bool per_request = PerRequest;
    static constexpr bound_side side = Side;
    static constexpr metric_id first = First;
};
template <>
struct metric_traits<latency_metric>
    : metric_traits_of<time_span, true, bound_side::at_most, metric_id::ttft> {};
template <>
struct metric_traits<speed_metric>
    : metric_traits_of<token_rate, true, bound_side::at_least, metric_id::prefill_speed> {};
template <>
struct metric_traits<token_throughput>
    : metric_traits_of<token_rate, false, bound_side::at_least, metric_id::output_throughput> {};
template <>
struct metric_traits<request_throughput_t>
    : metric_traits_of<request_rate, false, bound_side::at_least, metric_id::request_throughput> {};
template <>
struct metric_traits<share_metric>
    : metric_traits_of<share, false, bound_side::at_most, metric_id::error_rate> {};
template <>
struct metric_traits<run_time_metric>
    : metric_traits_of<time_span, false, bound_side::at_most, metric_id::startup_time> {};

template <class M>
constexpr metric_id id_of(M m) {
    return static_cast<metric_id>(static_cast<int>(metric_traits<M>::first) + static_cast<int>(m));
}

template <class M>
concept request_metric = requires { requires metric_traits<M>::per_request; };
template <class M>
concept run_metric = requires { requires !metric_traits<M>::per_request; };
template <class M>
concept time_metric = request_metric<M> && metric_traits<M>::side == bound_side::at_most;
template <class M>
concept rate_metric = request_metric<M> && metric_traits<M>::side == bound_side::at_least;
template <class M>
using unit_of = typename metric_traits<M>::unit;

// SI values of every unit: seconds, per second, fractions, plain numbers.
constexpr double si(time_span t) { return t.seconds(); }
constexpr double si(request_rate r) { return r.per_second; }
constexpr double si(token_rate r) { return r.per_second; }
constexpr double si(share s) { return s.fraction; }
constexpr double si(plain_number n) { return n.value; }

template <class U, class T>
concept gives = requires(const T& t, void (&f)(U)) { f(t); };

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [A6] SLO expressions ======================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A predicate about one request, as a postfix program: comparisons push, `&&` and `||` combine.
struct predicate_step {
    enum class op_kind : unsigned char { compare, both, either } op = op_kind::compare;
    metric_id metric = metric_id::ttft;
    bool at_most = true;
    double bound = 0;  // SI
};

/// What is measured, without its unit type.
struct statistic_data {
    statistic_kind kind = statistic_kind::value;
    metric_id metric = metric_id::ttft;
    double q = 0;  // of percentile, 0 to 1
    list<predicate_step> where{};
    text gauge{};
    text name{};
};

statistic_data make_statistic(statistic_kind kind, metric_id metric, double q);
statistic_data make_goodput(const list<predicate_step>& where, const text& predicate);
statistic_data make_gauge(statistic_kind kind, const text& gauge);
list<predicate_step> one_step(metric_id metric, bool at_most, double bound);
list<predicate_step> combine(const list<predicate_step>& a, const list<predicate_step>& b,
                             bool both);
text comparison_text(metric_id metric, bool at_most, double bound);
}  // namespace detail

/// A limit as a multiple of the baseline: `1.10 * baseline`.
struct relative_limit {
    double factor = 1;
};
constexpr relative_limit operator*(double f, baseline_t) { return {f}; }
constexpr relative_limit operator*(share f, baseline_t) { return {f.fraction}; }

/// The right side of a comparison. Its constructors run in the user's line, so their default
/// arguments capture that line.
template <class U>
struct limit {
    double bound = 0;   // SI
    double factor = 0;  // over 0: relative to the baseline
    source_line at{};
    template <class T>
        requires detail::gives<U, T>
    limit(const T& v, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : bound(detail::si(U(v))), at{file, line} {}
    limit(relative_limit r, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : factor(r.factor), at{file, line} {}
    limit(baseline_t, const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : factor(1), at{file, line} {}
};

/// A service-level objective: a statistic, a side, a limit.
struct slo {
    detail::statistic_data what{};
    bool at_most = true;
    double bound = 0;   ///< SI: seconds, per second, fraction
    double factor = 0;  ///< over 0: the limit is factor * baseline
    bool is_advisory = false;
    source_line at{};

    /// As written: "p99(ttft) <= 300 ms".
    types::text text() const;
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const slo& s) { o << s.text().c_str(); return o; }
#ifndef LLMBENCH_NO_DOCTEST
    friend doctest::String toString(const slo& s) { return s.text().c_str(); }
#endif
};
using slo_list = types::list<slo>;

/// Measured, judged and reported like any other, but never changes the outcome of the build.
slo advisory(const slo& s);

/// A condition on one request, for goodput: `ttft <= 300_ms && tpot <= 30_ms`.
struct predicate {
    types::list<detail::predicate_step> steps{};
    types::text text{};
    friend predicate operator&&(const predicate& a, const predicate& b) {
        return {detail::combine(a.steps, b.steps, true), a.text + " && " + b.text};
    }
    friend predicate operator||(const predicate& a, const predicate& b) {
        return {detail::combine(a.steps, b.steps, false), "(" + a.text + " || " + b.text + ")"};
    }
};
template <detail::time_metric M, class T>
    requires detail::gives<time_span, T>
predicate operator<=(M m, const T& bound) {
    const double b = time_span(bound).seconds();
    return {detail::one_step(detail::id_of(m), true, b),
            detail::comparison_text(detail::id_of(m), true, b)};
}
template <detail::rate_metric M, class T>
    requires detail::gives<token_rate, T>
predicate operator>=(M m, const T& bound) {
    const double b = token_rate(bound).per_second;
    return {detail::one_step(detail::id_of(m), false, b),
            detail::comparison_text(detail::id_of(m), false, b)};
}

/// One number per run, in unit U, on which a limit may be put from the side that makes sense.
template <class U, detail::bound_side Side>
struct statistic {
    detail::statistic_data data{};
    friend slo operator<=(const statistic& s, const limit<U>& l)
        requires(Side != detail::bound_side::at_least)
    { return {s.data, true, l.bound, l.factor, false, l.at}; }
    friend slo operator>=(const statistic& s, const limit<U>& l)
        requires(Side != detail::bound_side::at_most)
    { return {s.data, false, l.bound, l.factor, false, l.at}; }
    template <class T>
    friend void operator==(const statistic&, const T&) = delete;
};

namespace detail {
template <class M>
using statistic_of = statistic<unit_of<M>, metric_traits<M>::side>;
template <class M> statistic_of<M> make(statistic_kind kind, M m, double q = 0) {
    return {make_statistic(kind, id_of(m), q)};
}
}  // namespace detail

/// Percentiles by nearest rank (the inverse of the empirical CDF, never interpolated): the value is
/// always one that was measured. Failed requests count as the worst value. Times have the upper
/// ones, speeds the lower ones.
template <detail::request_metric M> auto p50(M m) {
    return detail::make(detail::statistic_kind::percentile, m, 0.50);
}
template <detail::time_metric M> auto p75(M m) {
    return detail::make(detail::statistic_kind::percentile, m, 0.75);
}
template <detail::time_metric M> auto p90(M m) {
    return detail::make(detail::statistic_kind::percentile, m, 0.90);
}
template <detail::time_metric M> auto p95(M m) {
    return detail::make(detail::statistic_kind::percentile, m, 0.95);
}
template <detail::time_metric M> auto p99(M m) {
    return detail::make(detail::statistic_kind::percentile, m, 0.99);
}
template <detail::time_metric M> auto p999(M m) {
    return detail::make(detail::statistic_kind::percentile, m, 0.999);
}
template <detail::rate_metric M> auto p1(M m) {
    return detail::make(detail::statistic_kind::percentile, m, 0.01);
}
template <detail::rate_metric M> auto p5(M m) {
    return detail::make(detail::statistic_kind::percentile, m, 0.05);
}
template <detail::rate_metric M> auto p10(M m) {
    return detail::make(detail::statistic_kind::percentile, m, 0.10);
}
/// Any quantile, q strictly between 0 and 1.
template <detail::request_metric M> auto percentile(M m, double q) {
    return detail::make(detail::statistic_kind::percentile, m, q);
}
/// Arithmetic mean over completed requests.
template <detail::request_metric M> auto mean(M m) {
    return detail::make(detail::statistic_kind::mean, m);
}
template <detail::time_metric M> auto max(M m) {
    return detail::make(detail::statistic_kind::max, m);
}
template <detail::rate_metric M> auto min(M m) {
    return detail::make(detail::statistic_kind::min, m);
}

/// Share of all measured requests, failed ones included, that satisfy the predicate.
inline statistic<share, detail::bound_side::at_least> goodput(const predicate& p) {
    return {detail::make_goodput(p.steps, p.text)};
}

/// A gauge of the server's own metrics page (not measured by this version).
struct gauge {
    types::text name{};
};
inline gauge server_metric(const types::text& name) { return {name}; }
inline statistic<plain_number, detail::bound_side::either> max(const gauge& g) {
    return {detail::make_gauge(detail::statistic_kind::max, g.name)};
}
inline statistic<plain_number, detail::bound_side::either> mean(const gauge& g) {
    return {detail::make_gauge(detail::statistic_kind::mean, g.name)};
}

template <detail::run_metric M>
    requires(detail::metric_traits<M>::side == detail::bound_side::at_most)
slo operator<=(M m, const limit<detail::unit_of<M>>& l) {
    return detail::make(detail::statistic_kind::value, m) <= l;
}
template <detail::run_metric M>
    requires(detail::metric_traits<M>::side == detail::bound_side::at_least)
slo operator>=(M m, const limit<detail::unit_of<M>>& l) {
    return detail::make(detail::statistic_kind::value, m) >= l;
}
template <class M, class T>
    requires detail::request_metric<M> || detail::run_metric<M>
void operator==(M, const T&) = delete;  // equality of measurements is never meant

}  // namespace llmbench
}  // inline namespace v0

// ===== [A7] published limits =====================================================================

namespace llmbench {
inline namespace v0 {

/// Limits on both latencies that somebody published, as values to be taken or changed:
/// `.slos = presets::mlperf_llama2_70b_server.slos()`, or within a goodput
/// `goodput(presets::chat.predicate()) >= 95_pct`.
struct latency_limits {
    const char* name = "";
    const char* source = "";  ///< who says so, and when
    time_span ttft{};         ///< zero: none
    time_span tpot{};         ///< zero: none
    double quantile = 0.99;   ///< of requests that must keep them; p99 takes 300 requests a repeat

    slo_list slos(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
        slo_list list;
        if (ttft.seconds() > 0)
            list.push_back(percentile(llmbench::ttft, quantile) <=
                           limit<time_span>(ttft, file, line));
        if (tpot.seconds() > 0)
            list.push_back(percentile(llmbench::tpot, quantile) <=
                           limit<time_span>(tpot, file, line));
        return list;
    }
    llmbench::predicate predicate() const {
        if (ttft.seconds() <= 0) return llmbench::tpot <= tpot;
        if (tpot.seconds() <= 0) return llmbench::ttft <= ttft;
        return llmbench::ttft <= ttft && llmbench::tpot <= tpot;
    }
    /// "mlperf llama2-70b server: p99(ttft) <= 2 s, p99(tpot) <= 200 ms (MLPerf ...)".
    types::text text() const;
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const latency_limits& l) {
        o << l.text().c_str();
        return o;
    }
};

namespace presets {
namespace detail {
constexpr latency_limits mlperf(const char* name, double ttft_ms, double tpot_ms) {
    return {name, "MLPerf Inference rules (MLCommons inference_policies, as of August 2026)",
            time_span::from_seconds(ttft_ms / 1e3), time_span::from_seconds(tpot_ms / 1e3), 0.99};
}
}  // namespace detail
// The rules call the server scenario of some models "conversational". The configuration of MLPerf's
// LoadGen has the same limits but one: 15 ms a token for gpt-oss-120b interactive.
inline constexpr latency_limits
    mlperf_llama2_70b_server = detail::mlperf("mlperf llama2-70b server", 2000, 200),
    mlperf_llama2_70b_interactive = detail::mlperf("mlperf llama2-70b interactive", 450, 40),
    mlperf_llama3_1_8b_server = detail::mlperf("mlperf llama3.1-8b server", 2000, 100),
    mlperf_llama3_1_8b_interactive = detail::mlperf("mlperf llama3.1-8b interactive", 500, 30),
    mlperf_llama3_1_405b_server = detail::mlperf("mlperf llama3.1-405b server", 6000, 175),
    mlperf_llama3_1_405b_interactive = detail::mlperf("mlperf llama3.1-405b interactive", 4500, 80),
    mlperf_mixtral_8x7b_server = detail::mlperf("mlperf mixtral-8x7b server", 2000, 200),
    mlperf_deepseek_r1_server = detail::mlperf("mlperf deepseek-r1 server", 2000, 80),
    mlperf_deepseek_r1_interactive = detail::mlperf("mlperf deepseek-r1 interactive", 1500, 15),
    mlperf_gpt_oss_120b_server = detail::mlperf("mlperf gpt-oss-120b server", 3000, 80),
    mlperf_gpt_oss_120b_interactive = detail::mlperf("mlperf gpt-oss-120b interactive", 2000, 20);

/// As fast as somebody reads so many words a minute.
constexpr latency_limits reading(double words_per_minute, double tokens_per_word = 1.5,
                                 const char* name = "reading", const char* source = "") {
    return {name, source, time_span(),
            time_span::from_seconds(60 / (words_per_minute * tokens_per_word)), 0.99};
}
inline constexpr const char* reading_source =
    "usual figures of speed-reading texts, which call the three mental, auditory and visual";
inline constexpr latency_limits
    silent_reading = reading(250, 1.5, "silent reading, 250 words/min", reading_source),
    subvocal_reading = reading(450, 1.5, "subvocal reading, 450 words/min", reading_source),
    visual_reading = reading(700, 1.5, "visual reading, 700 words/min", reading_source);
/// A rule of thumb for chats; nobody's standard.
inline constexpr latency_limits
    chat = {"chat", "a rule of thumb", time_span::from_seconds(2), time_span::from_seconds(0.05)},
    patient_chat = {"patient chat", "a rule of thumb", time_span::from_seconds(3),
                    time_span::from_seconds(0.05)};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace presets

// ===== [A8] lengths and arrivals =================================================================

namespace llmbench {
inline namespace v0 {

/// A distribution of lengths in tokens. Draws are rounded to whole tokens, at least 1.
struct length_distribution {
    enum class shape : unsigned char { fixed, uniform, normal, lognormal, empirical, trace };
    shape kind = shape::fixed;
    double a = 0;
    double b = 0;
    types::text file{};
    length_distribution() = default;
    length_distribution(shape k, double x, double y) : kind(k), a(x), b(y) {}
    template <detail::integer I>
    length_distribution(I n) : a(static_cast<double>(n)) {}
    length_distribution(token_count n) : a(n.tokens) {}
};
/// Always n tokens.
template <detail::integer I>
length_distribution fixed(I n) { return length_distribution(n); }
inline length_distribution fixed(token_count n) { return length_distribution(n); }
/// Whole numbers from `low` to `high`, both included.
inline length_distribution uniform(double low, double high) {
    return {length_distribution::shape::uniform, low, high};
}
inline length_distribution normal(double mean_tokens, double sd) {
    return {length_distribution::shape::normal, mean_tokens, sd};
}
/// `median` tokens, `sigma` the standard deviation of the logarithm.
inline length_distribution lognormal(double median, double sigma) {
    return {length_distribution::shape::lognormal, median, sigma};
}
/// Lengths drawn from a file with one number a line.
inline length_distribution empirical(const types::text& file) {
    length_distribution d(length_distribution::shape::empirical, 0, 0);
    d.file = file;
    return d;
}

/// The lengths of the trace that `replay` plays, times `scale`, at most `most` tokens. Where no
/// workload is named, `replay` uses them as they are.
inline length_distribution from_trace(double scale = 1, double most = 1e7) {
    return {length_distribution::shape::trace, scale, most};
}

/// One stage of `steps({...})`: Poisson arrivals at `rate` for `lasts`.
struct load_step {
    request_rate rate{};
    time_span lasts{};
};

namespace detail {
enum class arrival_kind : unsigned char {
    constant, poisson, gamma, ramp, steps, replay, all_at_once, closed_loop
};
struct arrival_data {
    arrival_kind kind = arrival_kind::closed_loop;
    double rate = 0;        // requests/s; of ramp: at its start
    double rate_to = 0;     // of ramp: at its end
    double over_s = 0;      // of ramp: how long it takes
    double burstiness = 1;  // of gamma: the shape of the gaps
    list<load_step> stages{};
    text file{};            // of replay
    double speed = 1;       // of replay: 2 plays it in half the time
    long long max_in_flight = 0;  // 0: no cap
    long long users = 1;
    double think_s = 0;
    double users_ramp_s = 0;
};
}  // namespace detail

/// Requests are sent when they are due, whether or not earlier ones were answered.
class open_loop {
public:
    explicit open_loop(const detail::arrival_data& d) : data_(d) {}
    /// At most n requests in flight; the others wait, and their waiting counts in ttft and e2e.
    template <detail::integer I>
    open_loop max_in_flight(I n) const {
        open_loop copy = *this;
        copy.data_.max_in_flight = static_cast<long long>(n);
        return copy;
    }
    const detail::arrival_data& data() const { return data_; }

private:
    detail::arrival_data data_{};
};

/// A recorded trace, played again.
class trace_replay {
public:
    explicit trace_replay(const types::text& file) {
        data_.kind = detail::arrival_kind::replay;
        data_.file = file;
    }
    /// 2 plays the trace in half its time, 0.5 in twice its time; 0.000001 to 1000000.
    trace_replay speed(double times) const {
        trace_replay copy = *this;
        copy.data_.speed = times;
        return copy;
    }
    /// As of `open_loop`.
    template <detail::integer I>
    trace_replay max_in_flight(I n) const {
        trace_replay copy = *this;
        copy.data_.max_in_flight = static_cast<long long>(n);
        return copy;
    }
    const detail::arrival_data& data() const { return data_; }

private:
    detail::arrival_data data_{};
};

/// Users who each send again once they were answered.
class closed_loop_users {
public:
    explicit closed_loop_users(long long users) { data_.users = users; }
    /// Pause of a user between an answer and the next request.
    closed_loop_users think(time_span t) const {
        closed_loop_users copy = *this;
        copy.data_.think_s = t.seconds();
        return copy;
    }
    /// Users start one after the other, evenly spread over t.
    closed_loop_users ramp(time_span t) const {
        closed_loop_users copy = *this;
        copy.data_.users_ramp_s = t.seconds();
        return copy;
    }
    const detail::arrival_data& data() const { return data_; }

private:
    detail::arrival_data data_{};
};

/// Any way of sending requests. The default is one user in a closed loop.
class arrival_pattern {
public:
    arrival_pattern() = default;
    arrival_pattern(const open_loop& o) : data_(o.data()) {}
    arrival_pattern(const trace_replay& t) : data_(t.data()) {}
    arrival_pattern(const closed_loop_users& c) : data_(c.data()) {}
    const detail::arrival_data& data() const { return data_; }

private:
    detail::arrival_data data_{};
};

/// Evenly spaced requests.
open_loop constant(request_rate rate);
/// Exponential gaps, scaled so that the number asked for takes exactly number / rate.
open_loop poisson(request_rate rate);
/// Gamma-distributed gaps of shape `burstiness`: 1 is Poisson, less is burstier, more is steadier.
open_loop gamma(request_rate rate, double burstiness);
/// Poisson arrivals whose rate moves linearly over the given time, then stays.
open_loop ramp(request_rate from, request_rate to, time_span over);
/// Poisson arrivals in stages.
open_loop steps(std::initializer_list<load_step> stages);
/// The arrival times of a published trace, and its lengths where no workload is named. The first
/// line tells the format: Azure LLM inference (CSV: TIMESTAMP, ContextTokens, GeneratedTokens),
/// BurstGPT (CSV: Timestamp, Request tokens, Response tokens), Mooncake (JSONL: timestamp in ms,
/// input_length, output_length, hash_ids, which say what prompts have in common). It ends with
/// `.requests`, `.duration` or the trace, whichever comes first.
inline trace_replay replay(const types::text& trace_file) { return trace_replay(trace_file); }
/// Everything is sent at the start: the offline, saturating case.
open_loop all_at_once();
/// A fixed number of users.
template <detail::integer I>
closed_loop_users closed_loop(I users) { return closed_loop_users(static_cast<long long>(users)); }

}  // namespace llmbench
}  // inline namespace v0

// ===== [A9] targets ==============================================================================

namespace llmbench {
inline namespace v0 {

/// How requests are written and answers read. LLMBENCH_API takes the same names.
enum class api_format : unsigned char {
    openai_chat,         ///< /v1/chat/completions: vLLM, SGLang, llama.cpp, LMDeploy, LiteLLM ...
    openai_completions,  ///< /v1/completions
    tgi,                 ///< /generate_stream of Hugging Face's Text Generation Inference
    triton,              ///< /v2/models/MODEL/generate_stream (vLLM, TensorRT-LLM); name the model
    ollama,              ///< /api/chat
    ollama_generate,     ///< /api/generate
    llama_cpp,           ///< /completion of llama-server
    sglang,              ///< /generate of SGLang
    plain_text,          ///< `prompt` in, a stream of bare text out, at the URL's path or /generate
    anthropic            ///< /v1/messages; without max_tokens at most 1024 tokens are asked for
};
using enum api_format;

struct name_value {
    types::text name{};
    types::text value{};
};
/// How an https:// server is trusted: TLS 1.2 or 1.3, its certificate signed by an authority that
/// is known here and made for the URL's host. Needs LLMBENCH_WITH_TLS.
struct tls_options {
    bool verify = true;      ///< false: any certificate will do, and every report says so
    types::text ca_file{};   ///< the authorities to trust, PEM; default: those of the system
};

/// A server that runs already. `url` may end in a path, `http://host:8000` and
/// `http://host:8000/v1` mean the same; of plain_text it is the whole address.
/// `unix:/run/server.sock` is a Unix-domain socket, named by its full path of at most 107 bytes.
struct endpoint {
    types::text url{};
    types::text model{};  ///< default: LLMBENCH_MODEL, else the only model the server lists
    api_format api = openai_chat;
    /// Name of the variable that holds the key; default LLMBENCH_API_KEY.
    types::text api_key_env{};
    types::list<name_value> headers{};
    types::text metrics_url{};
    tls_options tls{};
};

/// A server that the gate starts and stops itself. `{port}` in the command becomes a free port; the
/// command runs in a shell, in a process group of its own, which is ended with the gate.
struct process {
    types::text command{};
    types::text ready{};  ///< path polled until it answers 200; default: the API's, "/health"
    types::list<name_value> env{};
    types::text working_directory{};
    bool restart_between_repeats = false;
    time_span ready_within = time_span::from_seconds(120);
    api_format api = openai_chat;
    types::text model{};
};

/// Memory for attention keys and values. A token takes 2 x layers x kv_heads x head_size x
/// bytes_per_value bytes.
struct kv_cache {
    types::whole layers = 32;
    types::whole kv_heads = 8;
    types::whole head_size = 128;
    types::whole bytes_per_value = 2;
    double memory_bytes = 16e9;
};

/// Faults of the simulated server, off by default.
struct engine_faults {
    time_span delay{};            ///< added to every answer's first byte
    share error_rate{};           ///< share of requests answered with HTTP 500
    share reset_rate{};           ///< share of answers cut by a reset after the first content
    share stall_rate{};           ///< share of answers that say nothing more after it
    share garbage_rate{};         ///< share of answers that go on in bytes that are no HTTP
    types::whole stop_after = 0;  ///< after so many requests the server is gone; 0: never
};

/// The simulated server's engine: continuous batching in steps. A step takes
/// `decode_step + step_per_sequence * running + prefill_per_token * prompt tokens`, and gives every
/// running sequence its next token.
struct engine {
    types::whole slots = 32;  ///< sequences that run together at most
    time_span decode_step = time_span::from_seconds(0.012);
    time_span step_per_sequence = time_span::from_seconds(0.0001);
    time_span prefill_per_token = time_span::from_seconds(0.00006);
    types::whole prefill_budget = 2048;  ///< tokens a step, running sequences included
    bool chunked_prefill = true;   ///< false: whole prompts only; one over the budget gets HTTP 400
    bool static_batching = false;  ///< true: a new batch starts when the old one has ended
    types::whole queue_limit = 0;  ///< waiting requests at most, HTTP 429 beyond; 0: no limit
    types::whole max_model_len = 32768;  ///< prompt + output tokens of one request
    kv_cache kv{};
    bool prefix_cache =
        true;  ///< shared prompt starts (blocks of 16 tokens) are not computed again
    types::whole tokens_per_event = 1;   ///< speculative decoding: tokens a sequence gains a step
    double jitter = 0.02;                ///< relative standard deviation of a step's time
    types::whole seed = 1;
    engine_faults faults{};
};
struct simulated_server {
    engine settings{};
};
/// The built-in server on a thread of its own: real sockets, modelled compute.
inline simulated_server simulated(const engine& e = {}) { return {e}; }

struct stored_result {
    types::text file{};
    share day_to_day{0.05};
};
/// The result.json of an earlier run, as a baseline. It must be of the same traffic and model.
/// `day_to_day` is the relative standard deviation between two days' runs of an unchanged server;
/// nothing below twice that can fail. LLMBENCH_WRITE_BASELINE=1 writes the file and compares
/// nothing.
inline stored_result stored(const types::text& file, share day_to_day = share(0.05)) {
    return {file, day_to_day};
}

/// The target itself, measured as its own baseline.
struct same_server_t {};
/// An A/A run: what the machine, the load and the verdicts make of a server and itself. Two arms
/// that are one server are refused unless this says that they are meant to be.
inline same_server_t same_server() { return {}; }

/// endpoint, process or simulated server. The default is the server at LLMBENCH_URL.
class any_target {
public:
    any_target() = default;
    any_target(const endpoint& e) : what_(detail::box::make(e)) {}
    any_target(const process& p) : what_(detail::box::make(p)) {}
    any_target(const simulated_server& s) : what_(detail::box::make(s)) {}
    const detail::box& what() const { return what_; }

private:
    detail::box what_{};
};
/// Any live target, the target itself, or a stored result. The default is none. An endpoint without
/// a URL is the server at LLMBENCH_BASELINE_URL.
class any_baseline {
public:
    any_baseline() = default;
    template <class T>
        requires detail::gives<any_target, T>
    any_baseline(const T& t) : live_(t), given_(true) {}
    any_baseline(const same_server_t&) : given_(true), is_same_server_(true) {}
    any_baseline(const stored_result& s) : stored_(s), is_stored_(true) {}
    const any_target& live() const { return live_; }
    const stored_result& stored() const { return stored_; }
    bool is_live() const { return given_; }
    bool is_same_server() const { return is_same_server_; }
    bool is_stored() const { return is_stored_; }

private:
    any_target live_{};
    stored_result stored_{};
    bool given_ = false, is_same_server_ = false, is_stored_ = false;
};

}  // namespace llmbench
}  // inline namespace v0

// ===== [A10] workloads ===========================================================================

namespace llmbench {
inline namespace v0 {

/// Made-up prompts and forced output lengths. Every prompt is made of other words, so that prefix
/// caches help only where `shared_prefix` asks for it.
///
/// A prompt's length is what the server counts, chat template and system prompt included; where
/// these alone are as long, the prompt is one word. Before the load the server's `/tokenize` (vLLM,
/// SGLang, llama.cpp), or else the usage of requests of one output token, tells which words are one
/// token, so that every length is exact. Where few are, `/v1/completions` gets lists of token ids,
/// if it takes them, and elsewhere lengths are right on the average. A server that tells nothing
/// within 5 s gets a word for a token. Which of these holds is announced.
struct synthetic {
    length_distribution prompt_tokens = lognormal(512, 0.6);
    length_distribution output_tokens = fixed(128);
    length_distribution shared_prefix = fixed(0);  ///< leading tokens that prompts of a group share
    types::whole prefix_groups = 1;                ///< so many prefixes, drawn evenly; 1 to 1000000
    share prefix_share{1.0};                       ///< of the prompts that start with one
};

/// Made-up conversations. The server's answers are fed back, so each turn's prompt is all that was
/// said before. Arrivals start conversations; users play one after the other.
struct conversations {
    length_distribution turns = fixed(4);             ///< messages of the user, 1 to 1000
    length_distribution user_tokens = fixed(64);      ///< of each of them
    length_distribution output_tokens = fixed(128);   ///< of each answer, forced
    time_span think{};                                ///< between an answer and the next message
    length_distribution system_tokens = fixed(0);     ///< of a system prompt
    bool shared_system_prompt = true;                 ///< false: each conversation has its own
};

/// How a dataset's file is written. A conversation's first message of the user is the prompt, and
/// the answer behind it says how long the server's is to be.
enum class dataset_format : unsigned char {
    sharegpt,       ///< JSON array (or JSONL) of {"conversations": [{"from": "human", "value"}...]}
    dolly,          ///< databricks-dolly-15k, JSONL of {"instruction", "context", "response"}
    openai_jsonl,   ///< JSONL of {"messages": [...]} or {"prompt"}, as in batch files or without
    coco_captions,  ///< COCO captions JSON, or JSONL of {"image", "question", "answer"}
    text_lines,     ///< one prompt a line
    csv             ///< a header with a column prompt, and perhaps answer or output_tokens
};
using enum dataset_format;

/// Prompts from a local file, sampled by the seed without putting back, sent in the sample's order
/// and again from its start where it is too small. What is held in memory is the sample. Tokens are
/// estimated (one for four ASCII bytes, one for any other character); records have the server's.
struct dataset {
    types::text path{};
    dataset_format format = sharegpt;
    types::maybe<int> max_items{};       ///< in the sample; default: as many as there are requests
    types::whole min_prompt_tokens = 0;  ///< shorter first prompts are left out
    types::whole max_prompt_tokens = 0;  ///< longer ones are left out; 0: no limit
    types::whole min_output_tokens = 0;  ///< as above, of first answers, where the file has them
    types::whole max_output_tokens = 0;
    types::whole max_turns = 1;   ///< over 1: conversations are played, with the server's answers
    time_span think{};            ///< between an answer and the next turn
    bool force_output = true;     ///< answers get the length of the file's (ignore_eos)
    bool salted = true;           ///< a line of five words first, fresh in every repeat
    types::text images{};         ///< directory of a dataset's images; default: that of the file
};

struct prompt_list {
    types::list<types::text> items{};
};
/// The given prompts, in turn.
inline prompt_list prompts(const types::list<types::text>& items) { return {items}; }
inline prompt_list prompts(std::initializer_list<types::text> items) {
    return {types::list<types::text>(items)};
}

class any_workload {
public:
    any_workload() = default;  ///< synthetic{}
    any_workload(const synthetic& s) : what_(detail::box::make(s)) {}
    any_workload(const conversations& c) : what_(detail::box::make(c)) {}
    any_workload(const dataset& d) : what_(detail::box::make(d)) {}
    any_workload(const prompt_list& p) : what_(detail::box::make(p)) {}
    const detail::box& what() const { return what_; }

private:
    detail::box what_{};
};

/// Fields of every request body.
struct request_options {
    types::maybe<int> max_tokens{};  ///< of workloads that do not say their output length
    types::maybe<double> temperature{};
    types::text system_prompt{};
    bool ignore_eos = false;  ///< synthetic workloads always send it: their lengths are forced
    bool stream = true;
    types::text extra_body{};  ///< a JSON object whose fields are added to every request
};

}  // namespace llmbench
}  // inline namespace v0

// ===== [A11] the scenario ========================================================================

namespace llmbench {
inline namespace v0 {

/// What a verdict is about. `replayed`: this traffic, on this server from one repeat to the next.
/// `fresh`: all traffic of this kind. Its means allow for what two runs of one server differ by
/// (4 %, or as calibrated); its quantiles and shares are of the server as it runs now: leave room
/// for that in their limits.
enum class traffic_mode : unsigned char { replayed, fresh };
using enum traffic_mode;

/// Time limits of one request, and of the wait for the last ones.
struct limits {
    time_span connect = time_span::from_seconds(5);
    time_span first_event = time_span::from_seconds(60);
    time_span between_events = time_span::from_seconds(30);
    time_span total = time_span::from_seconds(300);
    time_span drain = time_span::from_seconds(60);
};

/// How sure a verdict must be. The levels hold for one SLO over all looks at it.
struct judging_options {
    share false_pass{0.05};  ///< at the limit, 0.01 % to 20 %
    share false_fail{0.01};  ///< at the limit, 0.01 % to 20 %
    bool holm = false;       ///< false_fail for all blocking SLOs of the gate together (Holm 1979)
};

struct client_options {
    types::whole threads = 0;   ///< 0: one, or more for thousands of streams on many cores
    bool spin = false;          ///< spin through the last stretch before each send
};

/// A time, or a number of requests.
class warmup_amount {
public:
    constexpr warmup_amount() = default;
    constexpr warmup_amount(time_span t) : seconds_(t.seconds()), requests_(0) {}
    template <detail::duration_like D>
    constexpr warmup_amount(const D& d) : warmup_amount(time_span(d)) {}
    template <detail::integer I>
    constexpr warmup_amount(I requests) : requests_(static_cast<long long>(requests)) {}
    constexpr double seconds() const { return seconds_; }
    constexpr long long requests() const { return requests_; }

private:
    double seconds_ = 0;
    long long requests_ = 20;
};

/// One measurement, described. Designated initialisers must keep this order.
struct scenario {
    types::text name{};             ///< default: the test case's
    any_target target{};            ///< default: LLMBENCH_URL
    any_baseline baseline{};        ///< the other arm of an A/B gate
    any_workload workload{};        ///< default: synthetic{}
    arrival_pattern arrivals{};     ///< default: closed_loop(1)
    warmup_amount warmup{};         ///< before the measured part; default 20 requests
    types::whole requests = 0;      ///< measured requests of each repeat
    time_span duration{};           ///< of the measured part; with both, the first reached ends it
    types::whole repeats = 0;       ///< 0: two to five, as many as it takes
    traffic_mode traffic = replayed;
    slo_list slos{};
    types::whole seed = 0;          ///< 0: LLMBENCH_SEED, else 1
    llmbench::limits limits{};
    request_options options{};
    client_options client{};
    judging_options judging{};
};

}  // namespace llmbench
}  // inline namespace v0

// ===== [A12] results =============================================================================

namespace llmbench {
inline namespace v0 {

enum class request_status : unsigned char {
    ok, connect, tls, timeout, http, protocol, server, truncated, empty, cancelled, unsent
};
enum class token_origin : unsigned char { usage, events };
enum class run_phase : unsigned char { warmup, measure };
enum class run_arm : unsigned char { candidate, baseline };
enum class verdict : unsigned char { pass, fail, inconclusive, invalid, skipped };
const char* to_string(request_status s);
const char* to_string(token_origin o);
const char* to_string(run_phase p);
const char* to_string(run_arm a);
const char* to_string(verdict v);

/// One request, as in records.jsonl. Times are steady-clock nanoseconds, 0 where there is none.
struct record {
    types::text id{};
    run_arm arm = run_arm::candidate;
    run_phase phase = run_phase::measure;
    int repeat = 0;
    long long scheduled_ns = 0, dispatched_ns = 0, connected_ns = 0, sent_ns = 0;
    long long first_token_ns = 0, last_token_ns = 0, end_ns = 0;
    long long late_ns = 0;  ///< the client's own lateness; 0 too for what was never dispatched
    int prompt_tokens = 0, output_tokens = 0;
    token_origin token_source = token_origin::events;
    int events = 0, first_event_tokens = 0;
    request_status status = request_status::unsent;
    int http_status = 0;
    types::text finish_reason{}, error{};
    int cached_tokens = -1;         ///< of the prompt, from the server's prefix cache; -1: not said
    long long conversation = 0;     ///< its number in the trace
    int turn = 0;                   ///< of the conversation, 0 is the first
    // What tells whether the answer can be what it says; 0 where that was not seen.
    int reads = 0;                  ///< of the socket, that brought content events
    int first_read_events = 0;      ///< content events that the first of them brought
    int text_bytes = 0;             ///< of generated text; 256 for a fragment of a tool call
    int choices = 0;                ///< answers that share the stream
    int resends = 0;  ///< times it was sent again: its kept connection was closed without an answer
};

/// What a verdict rests on: the statistic of the typical repeat, which is the geometric mean of
/// what the repeats show, and the interval that goes with it. A share has that of all requests
/// counted. SI units (seconds, per second, fraction); NaN where nothing was measured, infinite
/// where failures reach it.
struct estimate_t {
    double value = 0, low = 0, high = 0;
};

/// One input or intermediate value of a verdict, exactly as it was used.
struct named_values {
    types::text name{};
    types::list<double> values{};
};

struct slo_verdict {
    slo what{};
    verdict outcome = verdict::skipped;
    /// The data: the statistic of the requests of all repeats together, as tables show it; of a
    /// relative SLO the ratio. No pass is over the limit here, and no fail within it.
    double measured = 0;
    estimate_t estimate{};  ///< of the typical repeat
    double limit = 0;       ///< SI; of a relative SLO the ratio
    /// What this sample would have shown four times in five: a relative regression, or the share of
    /// misses where those are counted.
    double detectable = 0;
    int repeats = 0;        ///< or pairs, or stages of fresh traffic
    types::text unit{};     ///< "repeat", "pair" or "stage"
    long long requests = 0; ///< measured ones, all repeats
    types::text method{};
    types::text reason{};
    types::text advice{};  ///< a limit that would be decided more often, where this one is tight
    /// One line for a person.
    types::text line() const;
    /// The arithmetic in full: enough to do it again by hand from records.jsonl.
    types::text explain() const;
    types::text arithmetic{};
    types::list<named_values> inputs{};
};

/// TLS handshakes of one kind, over all repeats. Their time is part of the connection's.
struct handshakes_t {
    long long count = 0;
    double mean = 0, max = 0;  ///< seconds
};

/// What the client can say against its own numbers.
struct self_check_t {
    bool ok = true;
    types::text reason{};
    double lateness_p50 = 0, lateness_p99 = 0,
           lateness_max = 0;               ///< seconds after the planned send
    double late_share = 0;                 ///< of sends, later than 10 ms
    double asked_rate = 0, achieved_rate = 0;  ///< requests/s; 0 where the load asks for none
    double coalesced_share = 0;            ///< of content events, read together with an earlier one
    double cpu_share = 0;                  ///< of one core, the busiest client thread of any repeat
    double loop_lag_p99 = 0, loop_lag_max = 0;    ///< seconds a client thread came late to its work
    double stamp_lag_p99 = 0, stamp_lag_max = 0;  ///< seconds from "readable" to the arrival stamp
    long long connections_opened = 0;
    handshakes_t handshakes_full{};     ///< of https:// alone
    handshakes_t handshakes_resumed{};  ///< with a session of an earlier connection of the repeat
    long long held_up = 0;   ///< times that a client thread did not run for over 1 ms
    double held_up_max = 0;  ///< seconds that it was blind for at most
};

namespace detail {
estimate_t estimate(const box& data, const statistic_data& what);
double measured(const box& data, const statistic_data& what);
struct result_access;
}  // namespace detail

/// What a run measured.
class result {
public:
    /// Every request of every repeat and arm, warm-up included (`phase` says which). Of a result
    /// that nobody holds it is a copy, so that `for (const record& r : run(s).requests())` is safe.
    const types::list<record>& requests() const&;
    types::list<record> requests() && {
        const result& held = *this;
        return held.requests();
    }
    /// The data, as tables and files show them: the largest value, a percentile of the requests of
    /// all repeats together, a mean over all of them. `r.measured(max(ttft))` is one request's.
    template <class U, detail::bound_side S>
    double measured(const statistic<U, S>& s) const { return detail::measured(data_, s.data); }
    template <detail::run_metric M>
    double measured(M m) const {
        return detail::measured(data_, detail::make(detail::statistic_kind::value, m).data);
    }
    /// What a verdict would rest on: the typical repeat with its interval, which is narrower than
    /// the data are. Of `max(ttft)` it is what the slowest request of a repeat usually takes.
    template <class U, detail::bound_side S>
    estimate_t estimate(const statistic<U, S>& s) const { return detail::estimate(data_, s.data); }
    template <detail::run_metric M>
    estimate_t estimate(M m) const {
        return detail::estimate(data_, detail::make(detail::statistic_kind::value, m).data);
    }
    /// One per SLO of the scenario, in order; the guard on errors is last.
    const types::list<slo_verdict>& verdicts() const& { return verdicts_; }
    types::list<slo_verdict> verdicts() && { return verdicts_; }
    const self_check_t& self_check() const& { return self_check_; }
    self_check_t self_check() && { return self_check_; }
    const types::text& name() const { return name_; }

private:
    friend struct detail::result_access;
    types::text name_{};
    mutable types::list<record> requests_{};  // a copy, made for whoever asks
    types::list<slo_verdict> verdicts_{};
    self_check_t self_check_{};
    detail::box data_{};
};

/// One objective of a result that was read back. SI units, NaN where the file has no value.
struct past_slo {
    types::text slo{}, metric{};  ///< "p99(ttft) <= 300 ms", "ttft"
    verdict outcome = verdict::skipped;
    bool advisory = false;
    bool at_most = true;   ///< which side of the limit is the good one
    bool relative = false; ///< to a baseline: estimate and limit are ratios
    double measured = 0;   ///< NaN in files of versions that did not write it
    estimate_t estimate{};
    double limit = 0;
    types::text reason{};
};
/// One gate of a result that was read back.
struct past_gate {
    types::text name{}, outcome{};  ///< passed, failed, refused, invalid or skipped
    types::text model{}, arrivals{};
    types::list<past_slo> slos{};
};
/// A result.json that an earlier run left.
struct past_result {
    types::text started_at{}, commit{}, cpu{};
    types::list<past_gate> gates{};
};

}  // namespace llmbench
}  // inline namespace v0

// ===== [A13] verbs and assertions ================================================================

namespace llmbench {
inline namespace v0 {

/// Measures. With `.slos` their verdicts are part of the result, but nothing fails: in a doctest
/// case reports tell them as advisory, elsewhere exit_code() counts them. Throws
/// std::invalid_argument for an unsound scenario, std::runtime_error where the target cannot be
/// brought up; inside a doctest case both become a failed assertion at the caller's line.
result run(const scenario& s, const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// Measures and asserts every SLO: the test case fails where one is missed or cannot be judged.
result gate(const scenario& s, const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// The verdict of one SLO on a result.
slo_verdict judge(const result& r, const slo& s);

/// The verdicts on a run that is over, from the records.jsonl that it left and the result.json and
/// events.bin beside it: the same as the run's own, bit for bit. `gate` names one of several. The
/// guard on errors is last. Throws std::invalid_argument where a file or an SLO cannot be used.
types::list<slo_verdict> judge(const types::text& records_file, const slo_list& slos,
                               const types::text& gate = {});

/// Reads a result.json, to compare runs with each other (examples/history.cpp). Throws
/// std::invalid_argument where the file is none.
past_result read_result(const types::text& file);

/// Exit code for a main of one's own, over all gates so far: 0 passed, 1 missed, 2 refused,
/// 3 invalid, 77 skipped.
int exit_code();

/// Serves the simulated engine alone on 127.0.0.1 until SIGINT or SIGTERM; port 0 takes a free one.
/// Says its URL on standard output. 0 at the end, 1 where the port cannot be had.
int serve_simulated(const engine& e, int port);

#if !defined(LLMBENCH_NO_DOCTEST)
#ifndef DOCTEST_CONFIG_DISABLE
namespace detail {
void assert_slo(doctest::assertType::Enum severity, const char* file, int line,
                const char* expression, const result& r, const slo& s);
}  // namespace detail
#define LLMBENCH_ASSERT_SLO_(severity, r, ...)                                                     \
    ::llmbench::detail::assert_slo(::doctest::assertType::severity, __FILE__, __LINE__,            \
                                   #r ", " #__VA_ARGS__, (r), (__VA_ARGS__))
#else
#define LLMBENCH_ASSERT_SLO_(severity, r, ...) static_cast<void>(0)
#endif
/// As doctest's CHECK, REQUIRE and WARN, about an SLO: `CHECK_SLO(result, p99(ttft) <= 300_ms)`.
#define LLMBENCH_CHECK_SLO(r, ...) LLMBENCH_ASSERT_SLO_(DT_CHECK, r, __VA_ARGS__)
#define LLMBENCH_REQUIRE_SLO(r, ...) LLMBENCH_ASSERT_SLO_(DT_REQUIRE, r, __VA_ARGS__)
#define LLMBENCH_WARN_SLO(r, ...) LLMBENCH_ASSERT_SLO_(DT_WARN, r, __VA_ARGS__)
#ifndef DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#define CHECK_SLO(r, ...) LLMBENCH_CHECK_SLO(r, __VA_ARGS__)
#define REQUIRE_SLO(r, ...) LLMBENCH_REQUIRE_SLO(r, __VA_ARGS__)
#define WARN_SLO(r, ...) LLMBENCH_WARN_SLO(r, __VA_ARGS__)
#endif
#endif

}  // namespace llmbench
}  // inline namespace v0

#endif  // LLMBENCH_HPP

#if defined(LLMBENCH_IMPLEMENT) && !defined(LLMBENCH_CORE)
#define LLMBENCH_CORE

#include <algorithm>  // equal, count_if, min, max, all_of, lower_bound, nth_element, sort, ...
#include <array>
#include <bit>  // endian, countr_zero, bit_width
#include <cctype>  // isalnum
#include <charconv>  // from_chars, to_chars
#include <cmath>  // fabs, isnan, isinf, isfinite, erfc, sqrt, log, pow, ldexp, round, expm1, ...
#include <cstdarg>  // printed()
#include <cstddef>  // size_t, ptrdiff_t
#include <cstdint>  // uint64_t, uint32_t
#include <cstdio>  // vsnprintf
#include <cstdlib>  // strtod_l
#include <cstring>  // memchr, memcmp, memcpy, strchr
#include <deque>
#include <functional>  // greater, where bytes come from
#include <iterator>  // size
#include <limits>  // infinity
#include <map>
#include <memory>  // shared_ptr, make_shared
#include <optional>
#include <set>  // the engine's cached blocks
#include <stdexcept>  // invalid_argument, exception
#include <string>
#include <string_view>
#include <system_error>  // errc
#include <tuple>  // fields that are checked alike
#include <type_traits>  // is_same_v, which JSON a value becomes
#include <utility>  // move, pair, exchange, as_const, swap
#include <variant>
#include <vector>

#include <locale.h>  // newlocale, uselocale
#include <picojson.h>  // JSON of servers

// ===== [C1] text helpers =========================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr const char* definitions_version = "metrics/1";

inline std::string str(const text& t) { return {t.c_str(), t.size()}; }

/// The C locale, whatever setlocale() was called with.
inline locale_t c_locale() {
    static const locale_t c = ::newlocale(LC_ALL_MASK, "C", nullptr);
    return c;
}
/// As long as it lives, this thread writes numbers and the system's errors as in the C locale.
class in_c_locale {
public:
    in_c_locale() : before_(::uselocale(c_locale())) {}
    ~in_c_locale() { ::uselocale(before_); }
    in_c_locale(const in_c_locale&) = delete;
    in_c_locale& operator=(const in_c_locale&) = delete;

private:
    locale_t before_;
};

[[gnu::format(printf, 1, 2)]] inline std::string printed(const char* format, ...) {
    const in_c_locale with_points;
    std::va_list args;
    va_start(args, format);
    std::va_list again;
    va_copy(again, args);
    const int n = std::vsnprintf(nullptr, 0, format, args);
    va_end(args);
    std::string out(n > 0 ? static_cast<std::size_t>(n) : 0, '\0');
    if (n > 0) std::vsnprintf(out.data(), out.size() + 1, format, again);
    va_end(again);
    return out;
}

/// Bytes of the UTF-8 character at s[i], 0 where there is none.
inline std::size_t utf8_length(std::string_view s, std::size_t i) {
    const auto c = static_cast<unsigned char>(s[i]);
    if (c < 0x80) return 1;
    const std::size_t length = c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3
                             : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (length == 0 || i + length > s.size()) return 0;
    for (std::size_t k = 1; k < length; ++k)
        if ((static_cast<unsigned char>(s[i + k]) & 0xC0) != 0x80) return 0;
    const auto next = static_cast<unsigned char>(s[i + 1]);
    const bool overlong = (c == 0xE0 && next < 0xA0) || (c == 0xF0 && next < 0x90);
    const bool outside = (c == 0xED && next > 0x9F) || (c == 0xF4 && next > 0x8F);
    return overlong || outside ? 0 : length;
}

/// What is shown instead of a character that a terminal obeys: a control character, and those that
/// end a line or turn the direction of reading. "" for all others.
inline std::string shown_instead(std::string_view character) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
    if (character == "\n") return "\\n";
    if (character == "\t") return "\\t";
    if (character == "\r") return "\\r";
    if (character.size() == 1 && (byte(0) < 0x20 || byte(0) == 0x7F))
        return printed("\\x%02x", static_cast<unsigned>(byte(0)));
    if (character.size() == 2 && byte(0) == 0xC2 && byte(1) < 0xA0)  // C1
        return printed("\\u%04x", static_cast<unsigned>(byte(1)));
    if (character.size() != 3 || byte(0) != 0xE2 || byte(1) > 0x81) return {};
    const unsigned code = 0x2000u | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    const bool turns = (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    return turns ? printed("\\u%04x", code) : std::string();
}
/// Whether the '#' at s[i] makes a command of what follows, for runners that look for one anywhere
/// in a line: "##[error]" (GitHub, Azure), "##vso[" (Azure), "##teamcity[".
inline bool begins_command(std::string_view s, std::size_t i) {
    if (s[i] != '#' || i == 0 || s[i - 1] != '#') return false;
    std::size_t end = i + 1;
    while (end < s.size() && ((s[end] | 0x20) >= 'a' && (s[end] | 0x20) <= 'z')) ++end;
    return end < s.size() && s[end] == '[';
}
/// Others' words as words: on one line, with nothing in them that a terminal or a CI runner obeys.
/// Everybody's words but ours come through here where they enter, before any report sees them.
/// Bytes that are not well-formed UTF-8 become U+FFFD, as do those of U+FFFE and U+FFFF, which no
/// XML may hold. What was shown once is shown the same again.
inline std::string printable(std::string_view s, std::size_t at_most = 300) {
    std::string out;
    std::size_t i = 0;
    while (i < s.size() && out.size() < at_most) {
        if (s[i] >= ' ' && s[i] < '\x7F' && s[i] != '#') { out += s[i++]; continue; }
        std::size_t length = utf8_length(s, i);
        const bool no_character = length == 3 && s.substr(i, 2) == "\xEF\xBF" &&
                                  static_cast<unsigned char>(s[i + 2]) > 0xBD;
        if (no_character) length = 0;
        if (length == 0) { out += "\xEF\xBF\xBD"; ++i; continue; }
        const std::string instead =
            begins_command(s, i) ? "\\x23" : shown_instead(s.substr(i, length));
        out += instead.empty() ? s.substr(i, length) : std::string_view(instead);
        i += length;
    }
    if (i < s.size()) out += "...";
    return out;
}
/// Many lines of others, such as the end of a log, each on a line of its own behind a bar: a runner
/// takes a line that begins with "::" for a command.
inline std::string barred_lines(std::string_view s) {
    std::string out;
    while (!s.empty()) {
        const std::size_t end = std::min(s.find('\n'), s.size());
        std::string_view line = s.substr(0, end);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        out += "\n    | " + printable(line, 4 * line.size() + 4);
        s.remove_prefix(std::min(end + 1, s.size()));
    }
    return out;
}

/// For XML and HTML, text and attributes. XML 1.0 has no control characters, not even escaped.
inline std::string xml_escaped(std::string_view s) {
    std::string out;
    for (const char c : printable(s, s.size() * 4 + 4)) {
        if (c == '&') out += "&amp;";
        else if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (c == '"') out += "&quot;";
        else if (c == '\'') out += "&#39;";
        else out += c;
    }
    return out;
}

inline bool same_ignoring_case(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                              [&](char x, char y) { return lower(x) == lower(y); });
}

inline std::string_view trimmed(std::string_view s) {
    while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
    return s;
}

/// As std::from_chars, which libc++ has for floating point from its version 20 on.
inline std::from_chars_result double_from_chars(const char* first, const char* last, double& v) {
#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 200000
    const std::string number(first, last);  // strtod needs an end
    // No blanks, no plus, no hexadecimal, and a decimal point in every locale.
    const std::size_t digits = number.compare(0, 1, "-") == 0;
    const bool begins = digits < number.size() &&
                        std::string_view("0123456789.iInN").find(number[digits]) != number.npos;
    if (!begins) return {first, std::errc::invalid_argument};
    if (same_ignoring_case(std::string_view(number).substr(digits, 2), "0x")) {
        v = digits ? -0.0 : 0.0;
        return {first + digits + 1, std::errc{}};
    }
    char* end = nullptr;
    const double parsed = ::strtod_l(number.c_str(), &end, c_locale());
    const auto length = end - number.c_str();
    if (length == 0) return {first, std::errc::invalid_argument};
    const bool is_too_large = std::isinf(parsed) && (number[digits] | ' ') != 'i';
    if (!is_too_large) v = parsed;
    return {first + length, is_too_large ? std::errc::result_out_of_range : std::errc{}};
#else
    return std::from_chars(first, last, v);
#endif
}

/// The number at the start of a text, which is taken off it: 5 of "5min". Nothing is taken where
/// there is none, or one that its type cannot hold. As std::from_chars has it: no blanks, no plus.
template <class Number>
std::optional<Number> leading_number(std::string_view& s, int base = 10) {
    Number value{};
    const char* const last = s.data() + s.size();
    std::from_chars_result found{};
    if constexpr (std::is_same_v<Number, double>) found = double_from_chars(s.data(), last, value);
    else found = std::from_chars(s.data(), last, value, base);
    if (found.ec != std::errc{}) return std::nullopt;
    s.remove_prefix(static_cast<std::size_t>(found.ptr - s.data()));
    return value;
}
/// The number that a text is, from its first character to its last.
template <class Number>
std::optional<Number> parsed_number(std::string_view s, int base = 10) {
    const auto value = leading_number<Number>(s, base);
    return s.empty() ? value : std::nullopt;
}

/// Three significant digits with the unit that fits: "87.3 ms", "1.24 s".
inline std::string time_text(double seconds) {
    const double a = std::fabs(seconds);
    if (std::isnan(seconds)) return "none";
    if (std::isinf(seconds)) return "infinite";
    if (a == 0) return "0 ms";
    if (a < 0.000999) return printed("%.3g us", seconds * 1e6);
    if (a < 0.9995) return printed("%.3g ms", seconds * 1e3);
    return a < 999.5 ? printed("%.3g s", seconds) : printed("%.0f s", seconds);
}

/// Refusals are sentences that name the field, its value and what is allowed.
inline void require(bool sound, const std::string& sentence) {
    if (!sound) throw std::invalid_argument(sentence);
}

/// Without its directories, which differ from machine to machine.
inline std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Characters of well-formed UTF-8, which are columns in all that we write ourselves.
inline std::size_t columns_of(std::string_view s) {
    return static_cast<std::size_t>(std::count_if(
        s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C2] JSON, read and written ===============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The shortest decimal text that reads back as the same double; JSON has no other numbers than
/// finite ones, so those become null.
inline std::string json_number(double v) {
    if (!std::isfinite(v)) return "null";
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
    return {buffer, end};
}

/// A JSON string. JSON is UTF-8: bytes that are not become U+FFFD.
inline std::string json_quoted(std::string_view s) {
    std::string out = "\"";
    for (std::size_t i = 0, length = 0; i < s.size(); i += std::max<std::size_t>(length, 1)) {
        const auto c = static_cast<unsigned char>(s[i]);
        length = utf8_length(s, i);
        if (c == '"') out += "\\\"";
        else if (c == '\\') out += "\\\\";
        else if (c == '\n') out += "\\n";
        else if (c == '\t') out += "\\t";
        else if (c == '\r') out += "\\r";
        else if (c < 0x20) out += printed("\\u%04x", static_cast<unsigned>(c));
        else if (length == 0) out += "\xEF\xBF\xBD";
        else out.append(s.substr(i, length));
    }
    return out + "\"";
}

inline const picojson::value* member(const picojson::value& v, const char* name) {
    if (!v.is<picojson::object>()) return nullptr;
    const auto& fields = v.get<picojson::object>();
    const auto found = fields.find(name);
    return found == fields.end() ? nullptr : &found->second;
}
inline std::string string_member(const picojson::value& v, const char* name) {
    const picojson::value* m = member(v, name);
    return m && m->is<std::string>() ? m->get<std::string>() : std::string();
}
inline int count_member(const picojson::value& v, const char* name) {
    const picojson::value* m = member(v, name);
    if (!m || !m->is<double>()) return -1;
    const double d = m->get<double>();
    return d >= 0 && d <= 1e9 ? static_cast<int>(d) : -1;
}

/// picojson recurses without a limit of its own; a hostile answer must not exhaust our stack.
inline bool nests_deeper_than(std::string_view s, int limit) {
    int depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < s.size(); ++i) {
        if (quoted) {
            if (s[i] == '\\') ++i;
            else if (s[i] == '"') quoted = false;
        } else if (s[i] == '"') {
            quoted = true;
        } else if (s[i] == '{' || s[i] == '[') {
            if (++depth > limit) return true;
        } else if (s[i] == '}' || s[i] == ']') {
            --depth;
        }
    }
    return false;
}
/// Halves of surrogate pairs become U+FFFD. JSON may hold them (RFC 8259, 8.2) and servers that cut
/// text in the middle of an emoji send them; picojson refuses them.
inline std::string without_half_pairs(std::string_view s) {
    const auto unit = [&](std::size_t at) {  // of "\uXXXX", 0 where there is none
        if (at + 6 > s.size() || s[at] != '\\' || s[at + 1] != 'u') return 0u;
        return parsed_number<unsigned>(s.substr(at + 2, 4), 16).value_or(0);
    };
    std::string out;
    for (std::size_t i = 0, n = 0; i < s.size(); i += n) {
        n = s[i] == '\\' ? std::min<std::size_t>(2, s.size() - i) : 1;
        const unsigned first = unit(i) & 0xFC00, second = unit(i + 6) & 0xFC00;
        if (first == 0xD800 && second == 0xDC00) n = 12;
        else if (first == 0xD800 || first == 0xDC00) { out += "\\ufffd"; n = 6; continue; }
        out.append(s.substr(i, n));
    }
    return out;
}
/// False for anything but one JSON value with nothing after it.
inline bool parse_json(std::string_view s, picojson::value& out) {
    if (nests_deeper_than(s, 100)) return false;
    std::string whole_pairs;
    if (s.find("\\ud") != std::string_view::npos || s.find("\\uD") != std::string_view::npos)
        s = whole_pairs = without_half_pairs(s);
    try {
        std::string error;
        const char* const last = s.data() + s.size();
        const char* end = picojson::parse(out, s.data(), last, &error);
        while (end != last && (*end == ' ' || *end == '\t' || *end == '\r' || *end == '\n')) ++end;
        return error.empty() && end == last;
    } catch (const std::exception&) {
        return false;  // picojson throws at a number that no double holds, such as 1e999
    }
}

inline bool has_text(const picojson::value& v, const char* name) {
    const picojson::value* m = member(v, name);
    return m && m->is<std::string>() && !m->get<std::string>().empty();
}

/// Writes JSON with two-space indentation and keys in the order they come.
class json_writer {
public:
    json_writer& key(std::string_view name) {
        separate();
        out_ += json_quoted(name) + ": ";
        after_key_ = true;
        return *this;
    }
    json_writer& open(char bracket) {
        separate();
        out_ += bracket;
        closers_ += bracket == '{' ? '}' : ']';
        first_ = true;
        return *this;
    }
    json_writer& close() {
        const char closer = closers_.back();
        closers_.pop_back();
        if (!first_) newline();
        out_ += closer;
        first_ = false;
        return *this;
    }
    json_writer& raw(const std::string& v) {
        separate();
        out_ += v;
        return *this;
    }
    json_writer& value(double v) { return raw(json_number(v)); }
    json_writer& value(long long v) { return raw(std::to_string(v)); }
    json_writer& value(std::string_view v) { return raw(json_quoted(v)); }
    template <class T>
    json_writer& field(std::string_view name, const T& v) {
        key(name);
        if constexpr (std::is_same_v<T, bool>) return raw(v ? "true" : "false");
        else if constexpr (integer<T>) return value(static_cast<long long>(v));
        else if constexpr (std::is_floating_point_v<T>) return value(v);
        else return value(std::string_view(v));
    }
    const std::string& text() const { return out_; }

private:
    void newline() { out_ += '\n' + std::string(2 * closers_.size(), ' '); }
    void separate() {
        if (after_key_) { after_key_ = false; return; }
        if (closers_.empty()) return;
        if (!first_) out_ += ',';
        first_ = false;
        newline();
    }
    std::string out_{}, closers_{};
    bool first_ = true;
    bool after_key_ = false;
};

/// The whole numbers under a key, in the order of the document. picojson has doubles only, and a
/// clock reading may not fit one. Inside a JSON string the quotes would be escaped.
inline std::vector<long long> whole_numbers(std::string_view json, const std::string& key) {
    std::vector<long long> found;
    const std::string mark = "\"" + key + "\":";
    for (std::size_t at = 0; (at = json.find(mark, at)) != std::string_view::npos;) {
        at += mark.size();
        while (at < json.size() && json[at] == ' ') ++at;
        std::string_view rest = json.substr(at);
        found.push_back(leading_number<long long>(rest).value_or(0));  // null is 0
    }
    return found;
}
inline double number_in(const picojson::value& v) {
    return v.is<double>() ? v.get<double>() : not_a_number;
}
inline double number_member(const picojson::value& v, const char* name) {
    const picojson::value* m = member(v, name);
    return m ? number_in(*m) : not_a_number;
}
inline bool true_member(const picojson::value& v, const char* name) {
    const picojson::value* m = member(v, name);
    return m && m->is<bool>() && m->get<bool>();
}
inline const picojson::array& array_member(const picojson::value& v, const char* name) {
    static const picojson::array none;
    const picojson::value* m = member(v, name);
    return m && m->is<picojson::array>() ? m->get<picojson::array>() : none;
}

/// 0 where it is missing or no count.
inline long long large_count(const picojson::value& v, const char* name) {
    const double d = number_member(v, name);
    return d >= 0 && d <= 9e15 ? static_cast<long long>(d) : 0;
}

inline std::map<std::string, std::vector<double>> lists_of(const picojson::value* v) {
    std::map<std::string, std::vector<double>> lists;
    if (v && v->is<picojson::object>())
        for (const auto& [name, values] : v->get<picojson::object>())
            if (values.is<picojson::array>())
                for (const picojson::value& x : values.get<picojson::array>())
                    lists[name].push_back(number_in(x));
    return lists;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C3] statistics ===========================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

/// Inverse of the normal distribution: Wichura, AS 241 (PPND16), 1988; about 1e-16 relative.
inline double normal_quantile(double p) {
    if (p <= 0) return -infinity;
    if (p >= 1) return infinity;
    const auto ratio = [](const double (&a)[8], const double (&b)[8], double r) {
        double num = a[7], den = b[7];
        for (int i = 6; i >= 0; --i) { num = num * r + a[i]; den = den * r + b[i]; }
        return num / den;
    };
    static constexpr double a[8] = {3.3871328727963666080e0, 1.3314166789178437745e+2,
        1.9715909503065514427e+3, 1.3731693765509461125e+4, 4.5921953931549871457e+4,
        6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static constexpr double b[8] = {1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2,
        5.3941960214247511077e+3, 2.1213794301586595867e+4, 3.9307895800092710610e+4,
        2.8729085735721942674e+4, 5.2264952788528545610e+3};
    static constexpr double c[8] = {1.42343711074968357734e0, 4.63033784615654529590e0,
        5.76949722146069140550e0, 3.64784832476320460504e0, 1.27045825245236838258e0,
        2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static constexpr double d[8] = {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0,
        6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2,
        5.47593808499534494600e-4, 1.05075007164441684324e-9};
    static constexpr double e[8] = {6.65790464350110377720e0, 5.46378491116411436990e0,
        1.78482653991729133580e0, 2.96560571828504891230e-1, 2.65321895265761230930e-2,
        1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static constexpr double f[8] = {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
        1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
        1.42151175831644588870e-7, 2.04426310338993978564e-15};
    const double q = p - 0.5;
    if (std::fabs(q) <= 0.425) return q * ratio(a, b, 0.180625 - q * q);
    const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
    const double x = r <= 5 ? ratio(c, d, r - 1.6) : ratio(e, f, r - 5);
    return q < 0 ? -x : x;
}

/// Regularised incomplete beta function I_x(a, b) by its continued fraction (DLMF 8.17.22),
/// evaluated with the modified Lentz method.
inline double incomplete_beta(double a, double b, double x) {
    if (!(x > 0)) return 0;
    if (x >= 1) return 1;
    // The fraction converges fast below the mean; above it the symmetric form does.
    if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
    const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                  a * std::log(x) + b * std::log1p(-x)) / a;
    constexpr double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (std::fabs(d) < tiny ? tiny : d);
    double h = d;
    for (int m = 1; m <= 10000; ++m) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double change = 1;
        for (const double step : {even, odd}) {
            d = 1 + step * d;
            d = 1 / (std::fabs(d) < tiny ? tiny : d);
            c = 1 + step / c;
            if (std::fabs(c) < tiny) c = tiny;
            change = c * d;
            h *= change;
        }
        if (std::fabs(change - 1) < 1e-15) break;
    }
    return front * h;
}

/// The x in [low, high] where a growing function crosses `target`.
template <class F>
double bisect(double low, double high, double target, F&& f) {
    for (int i = 0; i < 200 && low < high; ++i) {
        const double mid = low + (high - low) / 2;
        if (mid <= low || mid >= high) break;
        (f(mid) < target ? low : high) = mid;
    }
    return low + (high - low) / 2;
}

inline double student_t_cdf(double t, double df) {
    const double tail = 0.5 * incomplete_beta(df / 2, 0.5, df / (df + t * t));
    return t > 0 ? 1 - tail : tail;
}
inline double student_t_quantile(double p, double df) {
    if (p == 0.5) return 0;
    if (p < 0.5) return -student_t_quantile(1 - p, df);
    double high = 2;
    while (student_t_cdf(high, df) < p && high < 1e15) high *= 2;
    return bisect(0, high, p, [&](double t) { return student_t_cdf(t, df); });
}

/// 95 % quantile of the chi-square distribution, within 3 % (Wilson and Hilferty 1931).
inline double chi_square_95(double df) {
    const double spread = 2 / (9 * df);
    return df * std::pow(1 - spread + 1.6449 * std::sqrt(spread), 3);
}

/// One-sided Clopper-Pearson (1934) bounds of a share after k hits in n trials, each at error level
/// alpha. k and n may be fractional (counts divided by a design effect).
inline double clopper_pearson_upper(double k, double n, double alpha) {
    if (k >= n) return 1;
    return bisect(0, 1, 1 - alpha, [&](double p) { return incomplete_beta(k + 1, n - k, p); });
}
inline double clopper_pearson_lower(double k, double n, double alpha) {
    if (k <= 0) return 0;
    return bisect(0, 1, alpha, [&](double p) { return incomplete_beta(k, n - k + 1, p); });
}

/// Inverse of the empirical CDF: the place of the smallest of `size` values with at least a share q
/// of them at or below it, counted from 0.
inline std::size_t nearest_rank_of(std::size_t size, double q) {
    const double n = static_cast<double>(size);
    // 0.07 * 100 is a hair over 7 in binary; a rank must not jump for that.
    const double rank = std::ceil(q * n - 1e-9 * n);
    return static_cast<std::size_t>(std::min(std::max(rank, 1.0), n) - 1);
}
/// The value there. `sorted` must not be empty.
inline double nearest_rank(const std::vector<double>& sorted, double q) {
    return sorted[nearest_rank_of(sorted.size(), q)];
}

inline double mean_of(const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x;
    return v.empty() ? not_a_number : sum / static_cast<double>(v.size());
}
/// Of pairs of a value and its weight; what has no value or no weight is no part of it.
template <class Pairs>
double weighted_mean(const Pairs& pairs) {
    double sum = 0, weights = 0;
    for (const auto& [value, weight] : pairs) {
        if (std::isnan(value) || !(weight > 0)) continue;
        sum += value * weight;
        weights += weight;
    }
    return weights > 0 ? sum / weights : not_a_number;
}
inline double sample_variance(const std::vector<double>& v) {
    if (v.size() < 2) return 0;
    const double m = mean_of(v);
    double sum = 0;
    for (const double x : v) sum += (x - m) * (x - m);
    return sum / static_cast<double>(v.size() - 1);
}

/// How much more a share varies than that of independent trials would: the variance of batch sums
/// in arrival order over the binomial one, at least 1 (Kish's design effect from batch means).
/// `batches`: of each repeat, or of all of them together.
inline double design_effect(const std::vector<std::vector<bool>>& repeats, std::size_t batches = 20,
                            bool together = false) {
    double hits = 0, trials = 0;
    for (const auto& r : repeats)
        for (const bool hit : r) { hits += hit; ++trials; }
    if (hits == 0 || hits == trials) return 1;
    const double p = hits / trials;
    double squares = 0, expected = 0;
    for (const auto& r : repeats) {
        std::size_t count = std::min(batches, r.size() / 5);
        if (together)
            count = std::min(count, static_cast<std::size_t>(std::llround(
                                        static_cast<double>(batches * r.size()) / trials)));
        if (count < 2) continue;
        for (std::size_t b = 0; b < count; ++b) {
            const std::size_t from = b * r.size() / count, to = (b + 1) * r.size() / count;
            const double n = static_cast<double>(to - from);
            double sum = 0;
            for (std::size_t i = from; i < to; ++i) sum += r[i];
            squares += (sum - n * p) * (sum - n * p);
            expected += n * p * (1 - p);
        }
    }
    return expected > 0 ? std::max(1.0, squares / expected) : 1;
}

/// The score that a random walk of normal steps, looked at after each of `looks` equal parts,
/// exceeds with probability alpha at any look: Pocock (1977), one-sided, by the recursive
/// integration of Armitage, McPherson and Rowe (1969).
inline double pocock_constant(int looks, double alpha) {
    constexpr std::size_t cells = 60;  // of Simpson's rule; the constants come out to four decimals
    const auto crossed = [&](double c) {
        // The density of the walk among the paths that stayed below, on a grid up to the boundary.
        const auto grid = [&](int n, std::size_t i) {
            return (-7 + (c + 7) * static_cast<double>(i) / cells) * std::sqrt(n);
        };
        std::vector<double> weight(cells + 1), next(cells + 1);
        const auto simpson = [&](int n, std::size_t i) {
            return (grid(n, 1) - grid(n, 0)) / 3 * (i == 0 || i == cells ? 1 : i % 2 ? 4 : 2);
        };
        const auto density = [](double x) { return 0.39894228040143268 * std::exp(-x * x / 2); };
        for (std::size_t i = 0; i <= cells; ++i) weight[i] = simpson(1, i) * density(grid(1, i));
        double sum = 1 - normal_cdf(c);
        for (int n = 2; n <= looks; ++n) {
            for (std::size_t j = 0; j <= cells; ++j) {
                sum += weight[j] * (1 - normal_cdf(c * std::sqrt(n) - grid(n - 1, j)));
                next[j] = 0;
                for (std::size_t i = 0; i <= cells; ++i)
                    next[j] += weight[i] * density(grid(n, j) - grid(n - 1, i));
                next[j] *= simpson(n, j);
            }
            weight = next;
        }
        return -sum;
    };
    return bisect(0, 10, -alpha, crossed);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C4] random numbers =======================================================================
// Own generators and transformations: the same seed gives the same traffic with every compiler and
// standard library, which std::*_distribution do not promise.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// SplitMix64 (Steele, Lea, Flood 2014): one well-mixed value for each input.
inline std::uint64_t mixed(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/// xoshiro256** (Blackman, Vigna 2018).
class generator {
public:
    explicit generator(std::uint64_t seed, std::uint64_t stream = 0) {
        std::uint64_t x = mixed(seed) ^ mixed(stream + 0x632BE59BD9B4E019ull);
        for (auto& s : state_) s = x = mixed(x);
    }
    std::uint64_t next() {
        const std::uint64_t result = rotated(state_[1] * 5, 7) * 9;
        const std::uint64_t t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = rotated(state_[3], 45);
        return result;
    }
    /// Uniform, strictly between 0 and 1.
    // 52 bits and a half: with 53 the largest would round to 1.
    double uniform() { return (static_cast<double>(next() >> 12) + 0.5) * 0x1p-52; }
    /// Uniform on 0 .. n-1.
    std::uint64_t below(std::uint64_t n) {
        return static_cast<std::uint64_t>(uniform() * static_cast<double>(n));
    }
    double exponential() { return -std::log(uniform()); }
    double normal();
    double gamma(double shape);

private:
    static std::uint64_t rotated(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    std::array<std::uint64_t, 4> state_{};
};

inline double generator::normal() { return normal_quantile(uniform()); }

/// Marsaglia and Tsang (2000); shapes below 1 by their boost.
inline double generator::gamma(double shape) {
    if (shape < 1) {
        const double u = uniform();
        return gamma(shape + 1) * std::pow(u, 1 / shape);
    }
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
        const double x = normal();
        const double v = std::pow(1 + c * x, 3);
        if (v > 0 && std::log(uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
    }
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C5] base64 and a hash ====================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// RFC 4648.
inline std::string base64(std::string_view bytes) {
    constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t three = 0;
        for (std::size_t k = 0; k < 3; ++k)
            three = three << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k])
                                                       : 0u);
        for (std::size_t k = 0; k < 4; ++k)
            out += i + k <= bytes.size() ? digits[three >> (18 - 6 * k) & 63] : '=';
    }
    return out;
}

/// FNV-1a, 64 bit: tells files and traces apart, protects against nothing.
class fnv1a {
public:
    void add(const void* data, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i)
            h_ = (h_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001B3ull;
    }
    void add(long long v) {
        for (int i = 0; i < 8; ++i) {
            const auto byte =
                static_cast<unsigned char>(static_cast<unsigned long long>(v) >> (8 * i));
            add(&byte, 1);
        }
    }
    std::uint64_t value() const { return h_; }
    std::string text() const { return printed("%016llx", static_cast<unsigned long long>(h_)); }

private:
    std::uint64_t h_ = 0xCBF29CE484222325ull;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C6] words that must not be repeated ======================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Too short a word is no secret, and would only garble what it is found in.
inline constexpr std::size_t shortest_secret = 4;

/// What must not be repeated of a secret: itself, and how a message may quote it.
inline void add_secret(std::vector<std::string>& secrets, const std::string& s) {
    if (s.size() < shortest_secret) return;
    secrets.push_back(s);
    const std::string json = json_quoted(s);
    for (const std::string& quoted : {printable(s, s.size() * 4), json.substr(1, json.size() - 2)})
        if (quoted != s) secrets.push_back(quoted);
    // "Bearer abc": the server may repeat the second word alone.
    if (const std::size_t space = s.find(' '); space != std::string::npos)
        add_secret(secrets, s.substr(space + 1));
}
/// A server's words may repeat a secret, whole or cut off by printable(); ours never do.
inline std::string without_secrets(std::string s, const std::vector<std::string>& secrets) {
    if (s.empty()) return s;
    for (const std::string& secret : secrets) {
        for (std::size_t at = 0; (at = s.find(secret, at)) != std::string::npos; at += 3)
            s.replace(at, secret.size(), "***");
        if (s.size() <= 3 || s.compare(s.size() - 3, 3, "...") != 0) continue;
        for (std::size_t n = std::min(secret.size(), s.size() - 3); n >= shortest_secret; --n)
            if (s.compare(s.size() - 3 - n, n, secret, 0, n) == 0) {
                s.replace(s.size() - 3 - n, n, "***");
                break;
            }
    }
    return s;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C7] the table of metrics =================================================================
// All that sets one metric apart, but for how its value is computed (core/measured): whoever asks
// whether one is a share or needs a stream looks it up here.

namespace llmbench {
inline namespace v0 {
namespace detail {

enum class metric_unit : unsigned char { time, tokens_per_s, requests_per_s, share, none };
/// What has a value: each completed request, each repeat by its steady window or by how many of its
/// requests missed, the start of a server, the server itself.
enum class metric_of : unsigned char { request, window, requests, start, server };
enum class turn_kind : unsigned char { all, first, later };
/// What a completed request must have brought to have a value of a metric, or to count in one.
enum class value_needs : unsigned char { nothing, prompt_tokens, second_token, second_event };

struct metric_facts {
    metric_id id;
    const char* name;
    metric_unit unit = metric_unit::time;
    bound_side side = bound_side::at_most;  // the one from which a limit makes sense
    metric_of of = metric_of::request;
    turn_kind turns = turn_kind::all;  // the others are no part of it, failed or not
    bool is_of_gaps = false;           // pooled over a repeat's requests; of one, its longest gap
    value_needs needs = value_needs::nothing;
    bool is_of_decoding = false;       // of when tokens came, from the first to the last
    bool counts_output = false;        // or divides by them: output tokens, as usage tells
    bool needs_stream = false;         // a first token apart from the last
    bool is_of_prefill = false;        // faster where a prefix cache has some of the prompt
    bool needs_event_times = false;    // of every content event, not of the first and last alone
    bool is_hurt_by_lateness = false;  // the client's: counted from when a request was to be sent
    bool is_unmeasured = false;        // by this version
};

inline constexpr metric_facts metric_table[] = {
    {.id = metric_id::ttft, .name = "ttft", .needs_stream = true, .is_of_prefill = true,
     .is_hurt_by_lateness = true},
    {.id = metric_id::tpot, .name = "tpot", .needs = value_needs::second_token,
     .is_of_decoding = true, .counts_output = true, .needs_stream = true},
    {.id = metric_id::itl, .name = "itl", .is_of_gaps = true, .needs = value_needs::second_event,
     .is_of_decoding = true, .needs_stream = true, .needs_event_times = true},
    {.id = metric_id::e2e, .name = "e2e", .is_hurt_by_lateness = true},
    {.id = metric_id::normalized_latency, .name = "normalized_latency",
     .counts_output = true, .is_hurt_by_lateness = true},
    {.id = metric_id::ttft_per_prompt_token, .name = "ttft_per_prompt_token",
     .needs = value_needs::prompt_tokens, .needs_stream = true, .is_of_prefill = true,
     .is_hurt_by_lateness = true},
    {.id = metric_id::ttft_from_send, .name = "ttft_from_send", .needs_stream = true,
     .is_of_prefill = true},
    {.id = metric_id::queue_time, .name = "queue_time", .is_unmeasured = true},
    {.id = metric_id::first_turn_ttft, .name = "first_turn_ttft", .turns = turn_kind::first,
     .needs_stream = true, .is_of_prefill = true, .is_hurt_by_lateness = true},
    {.id = metric_id::later_turn_ttft, .name = "later_turn_ttft", .turns = turn_kind::later,
     .needs_stream = true, .is_of_prefill = true, .is_hurt_by_lateness = true},
    {.id = metric_id::prefill_speed, .name = "prefill_speed", .unit = metric_unit::tokens_per_s,
     .side = bound_side::at_least, .needs = value_needs::prompt_tokens, .needs_stream = true,
     .is_of_prefill = true, .is_hurt_by_lateness = true},
    {.id = metric_id::decode_speed, .name = "decode_speed", .unit = metric_unit::tokens_per_s,
     .side = bound_side::at_least, .needs = value_needs::second_token, .is_of_decoding = true,
     .counts_output = true, .needs_stream = true},
    {.id = metric_id::output_throughput, .name = "output_throughput",
     .unit = metric_unit::tokens_per_s, .side = bound_side::at_least, .of = metric_of::window,
     .counts_output = true, .needs_event_times = true, .is_hurt_by_lateness = true},
    {.id = metric_id::total_throughput, .name = "total_throughput",
     .unit = metric_unit::tokens_per_s, .side = bound_side::at_least, .of = metric_of::window,
     .needs = value_needs::prompt_tokens, .counts_output = true, .needs_event_times = true,
     .is_hurt_by_lateness = true},
    {.id = metric_id::prefill_throughput, .name = "prefill_throughput",
     .unit = metric_unit::tokens_per_s, .side = bound_side::at_least, .of = metric_of::window,
     .needs = value_needs::prompt_tokens, .needs_stream = true, .is_of_prefill = true,
     .is_hurt_by_lateness = true},
    {.id = metric_id::decode_throughput, .name = "decode_throughput",
     .unit = metric_unit::tokens_per_s, .side = bound_side::at_least, .of = metric_of::window,
     .is_of_decoding = true, .counts_output = true, .needs_stream = true,
     .needs_event_times = true, .is_hurt_by_lateness = true},
    {.id = metric_id::request_throughput, .name = "request_throughput",
     .unit = metric_unit::requests_per_s, .side = bound_side::at_least, .of = metric_of::window,
     .is_hurt_by_lateness = true},
    {.id = metric_id::error_rate, .name = "error_rate", .unit = metric_unit::share,
     .of = metric_of::requests},
    {.id = metric_id::startup_time, .name = "startup_time", .of = metric_of::start},
    {.id = metric_id::goodput, .name = "goodput", .unit = metric_unit::share,
     .side = bound_side::at_least, .of = metric_of::requests},
    {.id = metric_id::server_metric, .name = "server_metric", .unit = metric_unit::none,
     .side = bound_side::either, .of = metric_of::server, .is_unmeasured = true},
};

constexpr const metric_facts& facts_of(metric_id m) {
    return metric_table[static_cast<std::size_t>(m)];
}

constexpr bool has_a_row_for_each_metric() {
    for (std::size_t i = 0; i < std::size(metric_table); ++i)
        if (metric_table[i].id != static_cast<metric_id>(i)) return false;
    return metric_table[std::size(metric_table) - 1].id == metric_id::server_metric;
}
static_assert(has_a_row_for_each_metric(), "one row for each metric, in the order of metric_id");

/// Whether the table and the types with which a limit is written agree on all metrics of a kind,
/// which end before `end`.
template <class M>
constexpr bool is_as_typed(metric_id end) {
    using traits = metric_traits<M>;
    using unit = typename traits::unit;
    const metric_unit written = std::is_same_v<unit, time_span>      ? metric_unit::time
                                : std::is_same_v<unit, token_rate>   ? metric_unit::tokens_per_s
                                : std::is_same_v<unit, request_rate> ? metric_unit::requests_per_s
                                                                     : metric_unit::share;
    for (int i = 0; id_of(static_cast<M>(i)) != end; ++i) {
        const metric_facts& f = facts_of(id_of(static_cast<M>(i)));
        const bool of_request = f.of == metric_of::request;
        if (f.unit != written || f.side != traits::side || of_request != traits::per_request)
            return false;
    }
    return true;
}
static_assert(is_as_typed<latency_metric>(metric_id::prefill_speed) &&
              is_as_typed<speed_metric>(metric_id::output_throughput) &&
              is_as_typed<token_throughput>(metric_id::request_throughput) &&
              is_as_typed<request_throughput_t>(metric_id::error_rate) &&
              is_as_typed<share_metric>(metric_id::startup_time) &&
              is_as_typed<run_time_metric>(metric_id::goodput));

constexpr const char* metric_name(metric_id m) { return facts_of(m).name; }
constexpr bool is_share(metric_id m) { return facts_of(m).of == metric_of::requests; }
constexpr bool is_throughput(metric_id m) { return facts_of(m).of == metric_of::window; }
constexpr bool is_of_start(metric_id m) { return facts_of(m).of == metric_of::start; }
/// Of each request, and then of a repeat as a percentile, a mean or an extreme.
constexpr bool is_of_requests(metric_id m) { return facts_of(m).of == metric_of::request; }
/// Of each request, and more is better.
constexpr bool is_speed(metric_id m) {
    return is_of_requests(m) && facts_of(m).side == bound_side::at_least;
}
constexpr bool is_of_turns(metric_id m) { return facts_of(m).turns != turn_kind::all; }

/// Whether something is said of a statistic's metric, or of one that its predicate compares.
template <class Says>
bool concerns_a_metric(const statistic_data& s, Says&& says) {
    for (const predicate_step& step : s.where)
        if (step.op == predicate_step::op_kind::compare && says(step.metric)) return true;
    return says(s.metric);
}
inline bool concerns(const statistic_data& s, bool metric_facts::*fact) {
    return concerns_a_metric(s, [&](metric_id m) { return facts_of(m).*fact; });
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C8] values of metrics in words ===========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A value of a metric with its unit.
inline std::string value_text(metric_id m, double v) {
    if (std::isnan(v)) return "none";
    switch (facts_of(m).unit) {
    case metric_unit::time: break;
    case metric_unit::tokens_per_s: return printed(v < 999.5 ? "%.3g tok/s" : "%.0f tok/s", v);
    case metric_unit::requests_per_s: return printed(v < 999.5 ? "%.3g req/s" : "%.0f req/s", v);
    case metric_unit::share: return printed("%.4g %%", v * 100);
    case metric_unit::none: return printed("%.4g", v);
    }
    return time_text(v);
}

/// What requests lack that brought less than a metric needs.
inline const char* needs_text(value_needs n) {
    switch (n) {
    case value_needs::nothing: break;
    case value_needs::prompt_tokens: return "prompt_tokens in their usage";
    case value_needs::second_token: return "tokens after their first event";
    case value_needs::second_event: return "second content event";
    }
    return "value";
}

/// A limit as its author wrote it, more or less: up to six digits, no trailing zeros.
inline std::string limit_text(metric_id m, double v) {
    switch (facts_of(m).unit) {
    case metric_unit::time: break;
    case metric_unit::tokens_per_s: return printed("%.6g tok/s", v);
    case metric_unit::requests_per_s: return printed("%.6g req/s", v);
    case metric_unit::share: return printed("%.6g %%", v * 100);
    case metric_unit::none: return printed("%.6g", v);
    }
    return v < 1 ? printed("%.6g ms", v * 1e3) : printed("%.6g s", v);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C9] URLs =================================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Where a target is: http://host:port/path, the same with https, or unix:/path/of/a.socket.
struct http_url {
    std::string host{};  // "localhost" behind a Unix-domain socket
    std::string port{};
    std::string path{};  // without a trailing slash, "" for the root
    bool ipv6 = false;
    bool tls = false;
    std::string socket{};  // the file of a Unix-domain socket, "" for TCP
    std::string authority() const {
        const std::string name = ipv6 ? "[" + host + "]" : host;
        return port == (tls ? "443" : "80") ? name : name + ":" + port;
    }
};

/// A URL for error texts, without what may be a password or a key in it.
inline std::string without_credentials(std::string_view url) {
    std::string s(url);
    const std::size_t scheme = s.find("://");
    const std::size_t from = scheme == std::string::npos ? 0 : scheme + 3;
    if (const std::size_t query = s.find_first_of("?#", from); query != std::string::npos)
        s.replace(query + 1, std::string::npos, "...");
    if (const std::size_t at = s.find_last_of('@'); at != std::string::npos && at >= from)
        s.replace(from, at - from, "...");
    return s;
}

/// Throws std::invalid_argument, naming what is wrong.
inline http_url parsed_url(std::string_view whole, std::string_view field) {
    const auto refuse = [&](const char* why) {
        return std::invalid_argument(printed("%s is \"%s\": %s", std::string(field).c_str(),
                                             printable(without_credentials(whole)).c_str(), why));
    };
    for (const char c : whole)
        if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7F)
            throw refuse("a URL holds no spaces or control characters");
    http_url u;
    if (whole.substr(0, 5) == "unix:") {
        u.host = "localhost";
        u.port = "80";
        u.socket = whole.substr(whole.substr(0, 7) == "unix://" ? 7 : 5);
        if (u.socket.empty() || u.socket.front() != '/')
            throw refuse("a Unix-domain socket is named by its full path, unix:/run/server.sock");
        constexpr std::size_t longest = 107;  // what sockaddr_un holds beside its final zero
        if (u.socket.size() > longest)
            throw refuse("the path of a Unix-domain socket has at most 107 bytes");
        return u;
    }
    u.tls = whole.substr(0, 8) == "https://";
    if (!u.tls && whole.substr(0, 7) != "http://")
        throw refuse("it must start with http://, https:// or unix:/");
    std::string_view rest = whole.substr(u.tls ? 8 : 7);
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    std::string_view authority = rest.substr(0, slash);
    u.path = std::string(rest.substr(slash));
    if (u.path.find_first_of("?#") != std::string::npos)
        throw refuse("a query or fragment is not allowed");
    while (!u.path.empty() && u.path.back() == '/') u.path.pop_back();
    if (authority.find('@') != std::string_view::npos)
        throw refuse("credentials belong in api_key_env");
    u.port = u.tls ? "443" : "80";
    std::size_t colon = authority.rfind(':');
    if (!authority.empty() && authority.front() == '[') {
        const std::size_t close = authority.find(']');
        if (close == std::string_view::npos)
            throw refuse("the IPv6 address has no closing bracket");
        u.host = std::string(authority.substr(1, close - 1));
        u.ipv6 = true;
        if (close + 1 < authority.size() && authority[close + 1] != ':')
            throw refuse("the port must follow a colon");
        colon = close + 1 < authority.size() ? close + 1 : std::string_view::npos;
    } else {
        u.host = std::string(authority.substr(0, colon));
        if (u.host.find(':') != std::string::npos)
            throw refuse("an IPv6 address stands in brackets, http://[::1]:8000");
    }
    if (colon != std::string_view::npos) {
        u.port = std::string(authority.substr(colon + 1));
        const int port = parsed_number<int>(u.port).value_or(0);
        if (port < 1 || port > 65535) throw refuse("the port must be a number from 1 to 65535");
    }
    if (u.host.empty()) throw refuse("the host is missing");
    return u;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C10] HTTP/1.1 ============================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Whether a header that is a list, such as Connection, names this.
inline bool lists(std::string_view list, std::string_view name) {
    for (;;) {
        const std::size_t comma = std::min(list.find(','), list.size());
        if (same_ignoring_case(trimmed(list.substr(0, comma)), name)) return true;
        if (comma == list.size()) return false;
        list.remove_prefix(comma + 1);
    }
}

/// A word such as a header's name (RFC 9110, 5.6.2: token).
inline bool is_token(std::string_view s) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    };
    return !s.empty() && std::all_of(s.begin(), s.end(), allowed);
}

/// A header value that cannot smuggle a line of its own into the request (RFC 9110, 5.5).
inline bool is_header_safe(std::string_view s) {
    return std::all_of(s.begin(), s.end(), [](char c) {
        return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
    });
}

struct header_field {
    std::string name{};
    std::string value{};
};

enum class http_method : unsigned char { get, post };

/// A request as it is sent. `fields`: header lines of its own, each with its CR LF. A POST says how
/// long its body is, a GET has none.
inline std::string request_text(http_method method, std::string_view path,
                                std::string_view authority, std::string_view fields,
                                std::string_view body = {}) {
    const bool posts = method == http_method::post;
    const std::string length =
        posts ? "Content-Length: " + std::to_string(body.size()) + "\r\n" : "";
    std::string out;
    out.reserve(64 + path.size() + authority.size() + fields.size() + body.size());
    out.append(posts ? "POST " : "GET ").append(path).append(" HTTP/1.1\r\nHost: ");
    out.append(authority).append("\r\n").append(fields).append(length).append("\r\n");
    return out.append(body);
}

/// Response parser without I/O (RFC 9112): bytes in, body bytes out through a callback. Whatever
/// could be read in two ways is an error.
class response_parser {
public:
    static constexpr std::size_t max_line = 16 * 1024;
    static constexpr std::size_t max_head = 64 * 1024;  // interim answers included
    static constexpr std::size_t max_fields = 256;
    static constexpr std::uint64_t max_chunk = 1ull << 30;

    /// Takes all of `bytes` unless the message is complete or broken; returns what it took.
    template <class OnBody>
    std::size_t feed(std::string_view bytes, OnBody&& on_body) {
        std::size_t used = 0;
        while (used < bytes.size() && at_ != state::complete && at_ != state::broken) {
            const std::string_view rest = bytes.substr(used);
            if (at_ == state::fixed_body || at_ == state::chunk_data) {
                const auto n =
                    static_cast<std::size_t>(std::min<std::uint64_t>(left_, rest.size()));
                left_ -= n;
                used += n;
                if (left_ == 0) at_ = at_ == state::fixed_body ? state::complete : state::chunk_end;
                on_body(rest.substr(0, n));
            } else if (at_ == state::until_close) {
                used = bytes.size();
                on_body(rest);
            } else if (const std::size_t n = take_usual_chunk_line(rest); n > 0) {
                used += n;
            } else {
                used += take_line(rest);
            }
        }
        return used;
    }
    /// The connection ended.
    void end_of_input() {
        if (at_ == state::until_close) at_ = state::complete;
        else if (at_ != state::complete && at_ != state::broken)
            fail("the connection was closed inside the answer");
    }

    bool complete() const { return at_ == state::complete; }
    bool broken() const { return at_ == state::broken; }
    /// The status is known, whatever the body turns out to be.
    bool head_done() const { return head_done_; }
    /// No byte of the answer was seen yet.
    bool untouched() const { return at_ == state::status_line && line_.empty() && !interim_seen_; }
    bool body_may_be_cut() const { return at_ != state::until_close; }
    const std::string& error() const { return error_; }
    int status() const { return status_; }
    bool keep_alive() const {
        return keep_alive_ && at_ == state::complete && !ends_with_connection_;
    }
    std::string_view header(std::string_view name) const {
        for (const header_field& f : fields_)
            if (same_ignoring_case(f.name, name)) return f.value;
        return {};
    }
    void reset() { *this = response_parser(); }

private:
    enum class state : unsigned char {
        status_line,
        header,
        fixed_body,
        until_close,
        chunk_size,
        chunk_data,
        chunk_end,
        trailer,
        complete,
        broken
    };

    /// The two lines around the data of every chunk, of which there may be one per event: the end
    /// of the one before, and a size of at most six digits with nothing behind it. 0: not that.
    std::size_t take_usual_chunk_line(std::string_view s) {
        if (!line_.empty()) return 0;
        if (s.size() < 8) return 0;
        if (at_ == state::chunk_end && s[0] == '\r' && s[1] == '\n') {
            at_ = state::chunk_size;
            return 2;
        }
        if (at_ != state::chunk_size) return 0;
        std::uint64_t n = 0;
        std::size_t i = 0;
        for (; i < 6; ++i) {
            const char c = s[i];
            const int digit = c >= '0' && c <= '9'   ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
            if (digit < 0) break;
            n = n * 16 + static_cast<unsigned>(digit);
        }
        if (n == 0 || s[i] != '\r' || s[i + 1] != '\n') return 0;
        left_ = n;
        head_size_ = 0;
        at_ = state::chunk_data;
        return i + 2;
    }
    void fail(std::string why) {
        at_ = state::broken;
        error_ = std::move(why);
    }
    std::size_t take_line(std::string_view bytes) {
        const std::size_t end = bytes.find('\n');
        const std::size_t n = end == std::string_view::npos ? bytes.size() : end + 1;
        head_size_ += n;
        std::string_view line = bytes.substr(0, n);
        const bool copied = !line_.empty() || end == std::string_view::npos;
        if (copied) line = line_.append(line);
        if (line.size() > max_line) fail("a header or chunk line is over 16 KiB");
        else if (head_size_ > max_head && (at_ == state::header || at_ == state::trailer))
            fail("the headers are over 64 KiB");
        else if (end != std::string_view::npos) {
            line.remove_suffix(1);
            if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
            else if (at_ != state::status_line && at_ != state::header)
                fail("a chunk line does not end with CR LF");
            if (at_ != state::broken) on_line(line);
            if (copied) line_.clear();
        }
        return n;
    }
    void on_line(std::string_view line) {
        const state at = at_;
        if (at == state::status_line) on_status_line(line);  // what is not HTTP is told as such
        if (broken()) return;
        if (line.find('\r') != std::string_view::npos) return fail("a bare CR in the headers");
        if (line.find('\0') != std::string_view::npos) return fail("a zero byte in the headers");
        switch (at) {
        case state::header: return line.empty() ? on_head_end() : on_header(line);
        case state::chunk_size: return on_chunk_size(line);
        case state::chunk_end:
            if (!line.empty()) return fail("chunk data is longer than its size");
            at_ = state::chunk_size;
            return;
        case state::trailer:
            if (!line.empty()) return on_header(line);
            at_ = state::complete;
            return;
        default: return;
        }
    }
    void on_status_line(std::string_view line) {
        const bool shape = line.size() >= 12 && line.substr(0, 7) == "HTTP/1." &&
                           (line[7] == '0' || line[7] == '1') && line[8] == ' ' &&
                           (line.size() == 12 || line[12] == ' ');
        const int code = shape ? parsed_number<int>(line.substr(9, 3)).value_or(0) : 0;
        if (code < 100 || code > 599)
            return fail("not an HTTP/1.x answer: \"" + printable(line, 60) + "\"");
        status_ = code;
        old_version_ = line[7] == '0';
        keep_alive_ = !old_version_;
        at_ = state::header;
    }
    void on_header(std::string_view line) {
        if (line.front() == ' ' || line.front() == '\t') return fail("a folded header line");
        const std::size_t colon = line.find(':');
        if (colon == 0 || colon == std::string_view::npos)
            return fail("a header line without a name");
        const std::string_view name = line.substr(0, colon);
        if (name.find_first_of(" \t") != std::string_view::npos)
            return fail("a space in a header name");
        if (!is_token(name))
            return fail("\"" + printable(name, 60) + "\" is no name of a header");
        if (at_ == state::trailer) return;  // checked, and not looked at again
        if (fields_.size() == max_fields) return fail("more than 256 header lines");
        fields_.push_back({std::string(name), std::string(trimmed(line.substr(colon + 1)))});
    }
    void on_head_end() {
        if (status_ < 200) {  // interim answers come before the real one
            if (status_ == 101) return fail("the server switched protocols unasked");
            interim_seen_ = true;
            fields_.clear();
            at_ = state::status_line;
            return;
        }
        head_done_ = true;
        bool chunked = false, sized = false, closes = false;
        for (const header_field& f : fields_) {
            if (same_ignoring_case(f.name, "transfer-encoding")) {
                if (chunked || !same_ignoring_case(f.value, "chunked"))
                    return fail("transfer encoding \"" + printable(f.value, 60) +
                                "\" is not supported");
                chunked = true;
            } else if (same_ignoring_case(f.name, "content-length")) {
                const auto n = parsed_number<std::uint64_t>(f.value);
                if (!n)
                    return fail("content length \"" + printable(f.value, 60) +
                                "\" is not a number");
                if (sized && *n != left_) return fail("two different content lengths");
                sized = true;
                left_ = *n;
            } else if (same_ignoring_case(f.name, "connection")) {
                if (lists(f.value, "keep-alive")) keep_alive_ = true;
                if (lists(f.value, "close")) closes = true;
            } else if (same_ignoring_case(f.name, "content-encoding") && !f.value.empty() &&
                       !same_ignoring_case(f.value, "identity")) {
                return fail("content coding \"" + printable(f.value, 60) + "\" came unasked");
            }
        }
        if (chunked && sized) return fail("both a content length and a chunked body");
        // HTTP/1.0 knows no chunks: whoever sent them there may mean the next answer's bytes too.
        ends_with_connection_ = closes || (chunked && old_version_);
        if (status_ == 204 || status_ == 304) at_ = state::complete;
        else if (chunked) at_ = state::chunk_size;
        else if (!sized) { at_ = state::until_close; ends_with_connection_ = true; }
        else at_ = left_ == 0 ? state::complete : state::fixed_body;
    }
    void on_chunk_size(std::string_view line) {
        std::string_view rest = line;
        const auto n = leading_number<std::uint64_t>(rest, 16);
        const std::string_view after = trimmed(rest);
        if (!n || (!after.empty() && after.front() != ';'))
            return fail("chunk size \"" + printable(line, 60) + "\" is not a hexadecimal number");
        if (*n > max_chunk) return fail("a chunk is over 1 GiB");
        left_ = *n;
        head_size_ = 0;
        at_ = *n == 0 ? state::trailer : state::chunk_data;
    }

    state at_ = state::status_line;
    std::string line_{};
    std::vector<header_field> fields_{};
    std::string error_{};
    std::uint64_t left_ = 0;
    std::size_t head_size_ = 0;
    int status_ = 0;
    bool old_version_ = false;
    bool keep_alive_ = true;
    bool ends_with_connection_ = false;
    bool interim_seen_ = false;
    bool head_done_ = false;
};

/// Request parser of the simulated server: only what our own and curl-like clients send.
class request_parser {
public:
    std::string method{}, path{}, body{};
    std::vector<header_field> fields{};
    bool keep_alive = true;

    std::string_view header(std::string_view name) const {
        for (const header_field& f : fields)
            if (same_ignoring_case(f.name, name)) return f.value;
        return {};
    }
    /// True once a whole request is held. False with `broken()` for what is not one.
    bool feed(std::string_view bytes) {
        raw_.append(bytes);
        if (!head_done_ && !read_head()) return false;
        if (raw_.size() < length_) return false;
        body = raw_.substr(0, length_);
        raw_.erase(0, length_);
        return true;
    }
    bool broken() const { return broken_; }
    /// Ready for the next request on the same connection; bytes that came early are kept.
    void reset() {
        std::string rest = std::move(raw_);
        *this = request_parser();
        raw_ = std::move(rest);
    }

private:
    bool read_head() {
        const std::size_t end = raw_.find("\r\n\r\n");
        if (end == std::string::npos) {
            broken_ = raw_.size() > 64 * 1024;
            return false;
        }
        std::string_view head = std::string_view(raw_).substr(0, end);
        const std::size_t first = std::min(head.find("\r\n"), head.size());
        const std::string_view line = head.substr(0, first);
        const std::size_t a = line.find(' '), b = line.rfind(' ');
        if (a == std::string_view::npos || a == b || line.substr(b + 1, 7) != "HTTP/1.")
            return !(broken_ = true);
        method = line.substr(0, a);
        path = line.substr(a + 1, b - a - 1);
        keep_alive = line.back() == '1';
        head.remove_prefix(std::min(first + 2, head.size()));
        while (!head.empty()) {
            const std::size_t eol = std::min(head.find("\r\n"), head.size());
            const std::size_t colon = head.substr(0, eol).find(':');
            if (colon == std::string_view::npos) return !(broken_ = true);
            fields.push_back({std::string(head.substr(0, colon)),
                              std::string(trimmed(head.substr(colon + 1, eol - colon - 1)))});
            head.remove_prefix(std::min(eol + 2, head.size()));
        }
        for (const header_field& f : fields) {
            if (!same_ignoring_case(f.name, "content-length")) continue;
            const auto length = parsed_number<std::size_t>(f.value);
            if (!length) return !(broken_ = true);
            length_ = *length;
        }
        if (length_ > (64u << 20) || !header("transfer-encoding").empty()) return !(broken_ = true);
        if (lists(header("connection"), "close")) keep_alive = false;
        raw_.erase(0, end + 4);
        return head_done_ = true;
    }
    std::string raw_{};
    std::size_t length_ = 0;
    bool head_done_ = false;
    bool broken_ = false;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C11] server-sent events ==================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Event-stream parser without I/O (WHATWG HTML, "server-sent events"): an event is what a blank
/// line ends; one that the body's end cuts off is none.
class event_stream_parser {
public:
    static constexpr std::size_t max_event = 16 * 1024 * 1024;

    /// Calls `on_event(type, data)` for every event with data. False once the stream is broken.
    template <class OnEvent>
    bool feed(std::string_view bytes, OnEvent&& on_event) {
        // Where the next LF stands, so that text full of CRs is not searched once per line.
        const char* lf = bytes.data();
        while (!bytes.empty() && !broken_) {
            if (after_cr_) {
                after_cr_ = false;
                if (bytes.front() == '\n') { bytes.remove_prefix(1); continue; }
            }
            const char* const last = bytes.data() + bytes.size();
            if (lf != last && (lf < bytes.data() || *lf != '\n'))
                lf = found('\n', bytes.data(), last);
            const char* const eol = found('\r', bytes.data(), lf);
            if (eol == last) {
                line_.append(bytes);
                broken_ = line_.size() + data_.size() > max_event;
                return !broken_;
            }
            const auto end = static_cast<std::size_t>(eol - bytes.data());
            if (line_.size() + end + data_.size() > max_event) return !(broken_ = true);
            // The usual event is one line and a blank one in the same read: no copy of it is made.
            const std::size_t usual = line_.empty() && !has_data_ ? usual_end(bytes, end) : 0;
            if (usual > 0) {
                on_event(std::string_view(type_), value_of(bytes.substr(4, end - 4)));
                type_.clear();
                first_line_ = false;
                bytes.remove_prefix(usual);
                continue;
            }
            after_cr_ = *eol == '\r';
            if (line_.empty()) {
                on_line(bytes.substr(0, end), on_event);
            } else {
                line_.append(bytes.substr(0, end));
                on_line(line_, on_event);
                line_.clear();
            }
            bytes.remove_prefix(end + 1);
        }
        return !broken_;
    }
    bool broken() const { return broken_; }
    void reset() { *this = event_stream_parser(); }

private:
    static const char* found(char c, const char* from, const char* to) {
        const void* at =
            from == to ? nullptr : std::memchr(from, c, static_cast<std::size_t>(to - from));
        return at ? static_cast<const char*>(at) : to;
    }
    /// Bytes of "data: ...", ending at `end`, with its line end and that of a blank line; else 0.
    static std::size_t usual_end(std::string_view bytes, std::size_t end) {
        if (end < 5 || std::memcmp(bytes.data(), "data:", 5) != 0) return 0;
        const std::size_t n = bytes[end] == '\r' ? 4 : 2;
        const bool blank = bytes.size() - end >= n &&
                           std::memcmp(bytes.data() + end, n == 4 ? "\r\n\r\n" : "\n\n", n) == 0;
        return blank ? end + n : 0;
    }
    /// What stands behind a field's colon, `rest`, without the one space that belongs to it.
    static std::string_view value_of(std::string_view rest) {
        if (!rest.empty()) rest.remove_prefix(1);
        if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
        return rest;
    }
    template <class OnEvent>
    void on_line(std::string_view line, OnEvent&& on_event) {
        if (first_line_) {
            first_line_ = false;
            if (line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
        }
        if (line.empty()) {
            if (has_data_) on_event(std::string_view(type_), std::string_view(data_));
            has_data_ = false;
            data_.clear();
            type_.clear();
            return;
        }
        const std::size_t colon = line.find(':');
        if (colon == 0) return;  // a comment, the usual keep-alive
        const std::string_view field = line.substr(0, colon);
        const std::string_view value = value_of(line.substr(std::min(colon, line.size())));
        if (field == "data") {
            if (has_data_) data_ += '\n';
            has_data_ = true;
            data_.append(value);
        } else if (field == "event") {
            type_ = value;
        }
    }
    std::string line_{}, data_{}, type_{};
    bool has_data_ = false;
    bool after_cr_ = false;
    bool first_line_ = true;
    bool broken_ = false;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C12] what a server says, whichever API it has ============================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What one stream event says.
struct stream_event {
    bool content = false;           // carries generated output, in any choice
    bool done = false;              // the API's terminal event
    int first_tokens = 1;           // tokens in this event, as far as it says so
    int prompt_tokens = -1;         // usage, -1 where absent
    int completion_tokens = -1;
    int cached_tokens = -1;
    int text_bytes = 0;             // of the content, decoded
    int choices = 1;                // of the stream, as far as it says so
    int finished = 0;               // of them, with a finish reason
    std::string finish_reason{};
    int finish_choice = 0;          // whose reason that is
    std::string error{};            // told by the server inside the stream, or why malformed
    bool malformed = false;

    /// Generated text of this member, where there is some.
    bool take_text(const picojson::value& v, const char* name) {
        if (!has_text(v, name)) return false;
        content = true;
        text_bytes += static_cast<int>(string_member(v, name).size());
        return true;
    }
    /// A fragment of a call: nothing tells of how many tokens, so it passes for many.
    void take_call() {
        content = true;
        text_bytes += call_bytes;
    }
    static constexpr int call_bytes = 256;

    void finish(const std::string& reason, int choice = 0) {
        if (reason.empty()) return;
        ++finished;
        note_finish(finish_reason, finish_choice, reason, choice);
    }
    /// Of several choices the reason of the first one counts, unless another one's tells of a
    /// failure.
    static void note_finish(std::string& reason, int& of_choice, const std::string& told,
                            int choice) {
        const bool is_first = reason.empty() || choice <= of_choice;
        if (is_failure(reason) || (!is_first && !is_failure(told))) return;
        reason = told;
        of_choice = choice;
    }
    /// "abort" (vLLM, SGLang), "error" (OpenRouter), "cancelled" and "timeout" (TensorRT-LLM),
    /// "insufficient_system_resource" (DeepSeek): the server gave up.
    static bool is_failure(std::string_view reason) {
        for (const char* part : {"abort", "error", "cancel", "timeout", "insufficient"})
            if (reason.find(part) != std::string_view::npos) return true;
        return false;
    }
};

/// The message of an error answer in any of the shapes in use.
inline std::string error_message(const picojson::value& v) {
    // Not null, false, 0 or "".
    if (const picojson::value* e = member(v, "error"); e && e->evaluate_as_boolean()) {
        if (e->is<std::string>()) return e->get<std::string>();
        const std::string message = string_member(*e, "message");
        return message.empty() ? e->serialize() : message;
    }
    const picojson::value* detail = member(v, "detail");
    if (string_member(v, "object") != "error" && !(detail && detail->evaluate_as_boolean()))
        return {};
    const std::string message = string_member(v, "message");
    return message.empty() ? v.serialize() : message;
}

/// What the reader of one stream remembers from event to event.
struct stream_memory {
    std::string text{};      // the last event's, where a server repeats all text so far
    bool cumulative = true;  // until an event shows that it is not
    int tokens = 0;          // so far, where each event tells its own
    bool keeps_answer = false;
    std::string answer{};    // its words, no reasoning, where they are kept

    void say(const picojson::value& v, const char* name) {
        if (keeps_answer) answer += string_member(v, name);
    }
};

/// The word that OpenAI has for why an answer ended, where it has one.
inline std::string finish_word(const std::string& said) {
    constexpr std::pair<std::string_view, const char*> words[] = {
        {"eos_token", "stop"},  {"stop_sequence", "stop"}, {"eos", "stop"},
        {"word", "stop"},       {"end_turn", "stop"},      {"limit", "length"},
        {"max_tokens", "length"}, {"tool_use", "tool_calls"}, {"none", ""}, {"None", ""}};
    for (const auto& [theirs, ours] : words)
        if (said == theirs) return ours;
    return said;
}
inline void note_output_tokens(stream_event& e, int n) {
    e.completion_tokens = n;
    if (n > 0) e.first_tokens = n;  // so far: it holds for the first event
}

/// One event of a stream. `read` takes what is particular to the API.
template <class Read>
stream_event read_json_event(std::string_view type, std::string_view data, Read read,
                             stream_memory& memory) {
    stream_event e;
    e.done = trimmed(data) == "[DONE]";
    const bool empty = data.find_first_not_of(" \t\r\n") == std::string_view::npos;
    if (e.done || empty) return e;  // an empty one keeps the connection alive
    picojson::value v;
    const bool is_json = parse_json(data, v);
    if (is_json && v.is<picojson::null>() && type != "error") return e;  // the same
    if (!is_json || !v.is<picojson::object>()) {
        e.malformed = true;
        e.error = "an event is not a JSON object: \"" + printable(data, 60) + "\"";
        return e;
    }
    e.error = error_message(v);
    if (e.error.empty() && type == "error") e.error = printable(data);
    read(v, e, memory);
    return e;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C13] OpenAI's answers ====================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Takes the generated output of one choice of an OpenAI event, chat or completions. False where
/// there is none.
inline bool take_output(const picojson::value& choice, const char* output, stream_event& e) {
    bool some = e.take_text(choice, "text");
    const picojson::value* delta = member(choice, output);
    if (!delta) return some;
    for (const char* name : {"content", "reasoning_content", "reasoning", "refusal"})
        some = e.take_text(*delta, name) || some;
    const picojson::value* tools = member(*delta, "tool_calls");
    const picojson::value* function = member(*delta, "function_call");
    const bool calls =
        (tools && tools->is<picojson::array>() && !tools->get<picojson::array>().empty()) ||
        (function && function->is<picojson::object>() &&
         !function->get<picojson::object>().empty());
    if (calls) e.take_call();
    return some || calls;
}

/// Tokens that a choice lists one by one (logprobs, token ids), 0 where it lists none.
inline int listed_tokens(const picojson::value& choice) {
    const picojson::value* logprobs = member(choice, "logprobs");
    const picojson::value* listed = logprobs ? member(*logprobs, "content") : nullptr;
    if (!listed) listed = member(choice, "token_ids");
    return listed && listed->is<picojson::array>()
               ? static_cast<int>(listed->get<picojson::array>().size())
               : 0;
}

/// Usage and choices of an OpenAI answer; the output is in `delta`, of a whole answer in `message`.
inline void read_openai_choices(const picojson::value& v, stream_event& e, stream_memory& memory,
                                const char* output) {
    if (const picojson::value* usage = member(v, "usage"); usage && usage->is<picojson::object>()) {
        e.prompt_tokens = count_member(*usage, "prompt_tokens");
        e.completion_tokens = count_member(*usage, "completion_tokens");
        if (const picojson::value* details = member(*usage, "prompt_tokens_details"))
            e.cached_tokens = count_member(*details, "cached_tokens");
    }
    const picojson::value* choices = member(v, "choices");
    if (!choices || !choices->is<picojson::array>()) return;
    for (const picojson::value& choice : choices->get<picojson::array>()) {
        const int index = std::max(0, count_member(choice, "index"));
        e.choices = std::max(e.choices, 1 + index);
        e.finish(string_member(choice, "finish_reason"), index);
        if (!take_output(choice, output, e)) continue;
        if (index == 0) {  // the conversation goes on from the first one
            memory.say(choice, "text");
            if (const picojson::value* said = member(choice, output)) memory.say(*said, "content");
        }
        if (e.completion_tokens > 0) e.first_tokens = e.completion_tokens;  // running usage
        else if (const int n = listed_tokens(choice); n > 0) e.first_tokens = n;
    }
}
inline void read_openai(const picojson::value& v, stream_event& e, stream_memory& memory) {
    read_openai_choices(v, e, memory, "delta");
}
inline void read_openai_whole(const picojson::value& v, stream_event& e, stream_memory& memory) {
    read_openai_choices(v, e, memory, "message");
}

/// One `data:` of an OpenAI stream.
inline stream_event read_openai_event(std::string_view type, std::string_view data) {
    stream_memory none;
    return read_json_event(type, data, read_openai, none);
}

// The fast path. A server sends thousands of events of one shape, and a tree of each costs more
// than all else that is done with it. This cursor reads that shape in one pass. Its functions
// return false for whatever is unusual: malformed, rare, or with an escape where one matters. Then
// read_openai_event, which is the definition, reads the event again. So nothing here has to be
// complete, but what is accepted must be right: what is skipped is checked as picojson would, and
// where a field that counts is given twice (the last one would win) nothing is accepted.

/// The next byte that no string holds as it is: a quote, a backslash or a control character.
inline const char* after_plain_bytes(const char* at, const char* end) {
    constexpr std::uint64_t ones = ~0ull / 255, high = ones * 128;
    const auto zero_in = [](std::uint64_t v) { return (v - ones) & ~v & high; };
    for (; end - at >= 8; at += 8) {
        std::uint64_t v = 0;
        std::memcpy(&v, at, 8);
        const std::uint64_t control = (v - ones * 32) & ~v & high;
        const std::uint64_t stops =
            zero_in(v ^ (ones * '"')) | zero_in(v ^ (ones * '\\')) | control;
        if (stops == 0) continue;
        // The lowest bit found is right; those above may be what it borrowed.
        if constexpr (std::endian::native != std::endian::little) break;
        return at + std::countr_zero(stops) / 8;
    }
    while (at != end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 32) ++at;
    return at;
}

class event_scanner {
public:
    event_scanner(std::string_view data, stream_event& e)
        : at_(data.data()), end_(at_ + data.size()), event_(e) {}

    bool scan() {
        const bool read = object([this](std::string_view key) {
            if (key == "choices") return once(seen_choices) && choices();
            if (key == "usage" || key == "error") return null();
            if (key == "object") return plain_string() && text_ != "error";
            return key != "detail" && skip(8);
        });
        space();
        return read && at_ == end_;
    }
    /// The one generated text of the event, as it stands there; empty where there are more.
    std::string_view sole_output() const { return outputs_ == 1 ? output_ : std::string_view(); }

private:
    enum field : unsigned {
        seen_choices = 1, seen_finish_reason = 2, seen_text = 4, seen_delta = 8, seen_content = 16,
        seen_reasoning_content = 32, seen_reasoning = 64, seen_refusal = 128, seen_tool_calls = 256
    };
    bool once(field f) { return (std::exchange(seen_, seen_ | f) & f) == 0; }

    /// None, or exactly one, the first.
    bool choices() {
        if (!take('[')) return false;
        if (take(']')) return true;
        return object([this](std::string_view key) {
            if (key == "delta") return once(seen_delta) && (null() || delta());
            if (key == "text") return output(seen_text);
            if (key == "finish_reason") return finish_reason();
            if (key == "index") return take('0') && (next() == ',' || next() == '}');
            if (key == "logprobs" || key == "token_ids") return null();
            return skip(8);
        }) && take(']');
    }
    bool delta() {
        return object([this](std::string_view key) {
            if (key == "content") return output(seen_content);
            if (key == "reasoning_content") return output(seen_reasoning_content);
            if (key == "reasoning") return output(seen_reasoning);
            if (key == "refusal") return output(seen_refusal);
            if (key == "tool_calls") return once(seen_tool_calls) && (null() || tool_calls());
            return key != "function_call" ? skip(8) : null();
        });
    }
    /// Generated text. An escape stands for one character or more, so empty text looks empty.
    bool output(field f) {
        if (!once(f)) return false;
        if (null()) return true;
        if (!string()) return false;
        if (text_.empty()) return true;
        event_.content = true;
        event_.text_bytes += static_cast<int>(text_.size()) - escaped_by_;
        output_ = text_;
        ++outputs_;
        return true;
    }
    bool tool_calls() {
        const char* const from = at_;
        if (take('[') && take(']')) return true;
        at_ = from;
        event_.take_call();
        return next() == '[' && skip(8);
    }
    bool finish_reason() {
        if (!once(seen_finish_reason)) return false;
        if (null()) return true;
        if (!plain_string()) return false;
        event_.finish(std::string(text_));
        return true;
    }

    // ---- JSON

    void space() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
    }
    char next() {
        space();
        return at_ == end_ ? '\0' : *at_;
    }
    bool take(char c) {
        if (next() != c) return false;
        ++at_;
        return true;
    }
    bool word(std::string_view w) {
        if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).substr(0, w.size()) != w)
            return false;
        at_ += w.size();
        return true;
    }
    bool null() { return next() == 'n' && word("null"); }
    bool escape() {
        if (end_ - at_ < 2) return false;
        if (at_[1] != 'u') {
            at_ += 2;
            ++escaped_by_;
            return at_[-1] != '\0' && std::strchr("\"\\/bfnrt", at_[-1]);
        }
        if (end_ - at_ < 6) return false;
        unsigned code = 0;
        const char* const digits = at_ + 2;
        at_ += 6;
        if (std::from_chars(digits, at_, code, 16).ptr != at_) return false;
        escaped_by_ += 6 - (code < 0x80 ? 1 : code < 0x800 ? 2 : 3);
        return code < 0xD800 || code > 0xDFFF;  // pairs are left to the slow path
    }
    bool string() {
        if (!take('"')) return false;
        const char* const from = at_;
        escaped_ = false;
        escaped_by_ = 0;
        while ((at_ = after_plain_bytes(at_, end_)) != end_ && *at_ == '\\') {
            escaped_ = true;
            if (!escape()) return false;
        }
        if (at_ == end_ || *at_ != '"') return false;
        text_ = std::string_view(from, static_cast<std::size_t>(at_++ - from));
        return true;
    }
    bool plain_string() { return string() && !escaped_; }
    /// Digits that any double holds; what else strtod would take is left to the slow path.
    bool number() {
        const char* const from = at_;
        const auto digits = [this] {
            const char* const first = at_;
            while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
            return at_ != first;
        };
        if (*at_ == '-') ++at_;
        if (!digits()) return false;
        if (at_ != end_ && *at_ == '.' && (++at_, !digits())) return false;
        // Behind it must come a comma or a bracket: not one more piece of a number.
        return at_ != end_ && (*at_ > '9' || *at_ == ',' || *at_ <= ' ') && *at_ != 'e' &&
               *at_ != 'E' && at_ - from < 100;
    }
    /// `on_member(key)` reads the value.
    template <class OnMember>
    bool object(OnMember&& on_member) {
        if (!take('{')) return false;
        if (take('}')) return true;
        do {
            if (!plain_string() || !take(':') || !on_member(text_)) return false;
        } while (take(','));
        return take('}');
    }
    bool skip(int depth) {
        switch (next()) {
        case '"': return string();
        case 'n': return word("null");
        case 't': return word("true");
        case 'f': return word("false");
        case '{':
            return depth > 0 && object([this, depth](std::string_view) { return skip(depth - 1); });
        case '[':
            ++at_;
            if (take(']')) return true;
            do {
                if (depth == 0 || !skip(depth - 1)) return false;
            } while (take(','));
            return take(']');
        default: return at_ != end_ && (*at_ == '-' || (*at_ >= '0' && *at_ <= '9')) && number();
        }
    }

    const char* at_;
    const char* end_;
    stream_event& event_;
    std::string_view text_{};  // of the last string, escapes and all
    std::string_view output_{};
    int outputs_ = 0;
    unsigned seen_ = 0;
    bool escaped_ = false;
    int escaped_by_ = 0;  // bytes that it is longer than what it stands for
};

/// Reads the events of one stream. Most differ from the one before in the text of one string alone:
/// all else being the same, byte for byte, it says the same, and is not read again.
class event_reader {
public:
    const stream_event& read(std::string_view type, std::string_view data) {
        if (type != "error" && repeats(data)) {
            last_.text_bytes = static_cast<int>(data.size() - before_ - after_);
            return last_;
        }
        last_ = stream_event();
        like_.clear();
        event_scanner scanner(data, last_);
        if (type == "error" || !scanner.scan()) {
            last_ = read_openai_event(type, data);
        } else if (const std::string_view text = scanner.sole_output(); !text.empty()) {
            like_ = data;
            before_ = static_cast<std::size_t>(text.data() - data.data());
            after_ = data.size() - before_ - text.size();
        }
        return last_;
    }
    void reset() { *this = event_reader(); }

private:
    bool repeats(std::string_view data) const {
        if (like_.empty() || data.size() <= before_ + after_) return false;
        const char* const text = data.data() + before_;
        const char* const end = data.data() + data.size() - after_;
        return std::memcmp(data.data(), like_.data(), before_) == 0 &&
               std::memcmp(end, like_.data() + like_.size() - after_, after_) == 0 &&
               after_plain_bytes(text, end) == end;
    }

    stream_event last_{};
    std::string like_{};  // the last event with one generated text, empty: none
    std::size_t before_ = 0, after_ = 0;  // bytes around that text
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C14] bodies of requests ==================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One message of a conversation.
struct chat_message {
    std::string role{};
    std::string content{};
};

/// An object of options.extra_body that an API may keep its own fields in.
struct extra_object {
    std::string name{};
    std::string fields{};  // ",\"name\":value" pairs
};

/// What a request asks for.
struct request_spec {
    std::string prompt{};
    std::string token_ids{};  // instead of the prompt, as a JSON array
    std::string image{};      // that the prompt is about, as a data: URL
    std::string system_prompt{};
    std::vector<chat_message> history{};  // messages before the prompt, after the system prompt
    int max_tokens = 0;  // 0: not said
    bool force_length = false;
    bool stream = true;
    double temperature = not_a_number;
    std::string extra_fields{};  // ",\"name\":value" pairs, checked when planned
    std::vector<extra_object> extra_objects{};
};

/// The one prompt of an API that knows no roles.
inline std::string joined_prompt(const request_spec& r, bool with_system = true) {
    std::string all = !with_system || r.system_prompt.empty() ? "" : r.system_prompt + "\n";
    for (const chat_message& m : r.history) all += m.content + "\n";
    return all + r.prompt;
}

/// The body of a request. A field that was not asked for is not written.
class body_writer {
public:
    explicit body_writer(const request_spec& r) : asked_(r) {}

    body_writer& raw(const char* name, std::string_view json) {
        if (out_.back() != '{') out_ += ',';
        out_ += '"';
        out_ += name;
        out_ += "\":";
        out_ += json;
        return *this;
    }
    body_writer& string(const char* name, std::string_view s) { return raw(name, json_quoted(s)); }
    body_writer& flag(const char* name, bool b) { return raw(name, b ? "true" : "false"); }
    body_writer& max_tokens(const char* name) {
        return asked_.max_tokens > 0 ? raw(name, std::to_string(asked_.max_tokens)) : *this;
    }
    body_writer& temperature() {
        const double t = asked_.temperature;
        return std::isnan(t) ? *this : raw("temperature", json_number(t));
    }
    /// No min_tokens beside it: it would add nothing but work for the sampler (in SGLang a penalty
    /// over the whole vocabulary in every step), and the tpot measured would be another one.
    body_writer& ignore_eos() { return asked_.force_length ? raw("ignore_eos", "true") : *this; }
    /// The system prompt, where there is one, what was said before, and the user's turn.
    body_writer& messages(std::string content(const request_spec&), bool with_system = true) {
        std::string turns = "[";
        if (with_system && !asked_.system_prompt.empty())
            turns += "{\"role\":\"system\",\"content\":" + json_quoted(asked_.system_prompt) + "},";
        for (const chat_message& m : asked_.history)
            turns += "{\"role\":" + json_quoted(m.role) + ",\"content\":" +
                     json_quoted(m.content) + "},";
        return raw("messages", turns + "{\"role\":\"user\",\"content\":" + content(asked_) + "}]");
    }
    body_writer& system(const char* name) {
        return asked_.system_prompt.empty() ? *this : string(name, asked_.system_prompt);
    }
    /// What `write` adds stands in an object of this name, with the user's own fields for it.
    template <class Write>
    body_writer& object(const char* name, Write&& write) {
        raw(name, "{");
        write(*this);
        object_ = name;
        for (const extra_object& o : asked_.extra_objects)
            if (o.name == name) add(o.fields);
        out_ += '}';
        return *this;
    }
    std::string finished() {
        for (const extra_object& o : asked_.extra_objects) {
            if (o.name == object_) continue;
            raw(o.name.c_str(), "{");
            add(o.fields);
            out_ += '}';
        }
        add(asked_.extra_fields);
        return std::move(out_) + "}";
    }

private:
    void add(const std::string& fields) {
        out_ += fields.substr(!fields.empty() && out_.back() == '{');
    }
    const request_spec& asked_;
    std::string out_ = "{";
    std::string object_{};
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C15] what each API writes and reads ======================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// "image/png" and "AA==" of "data:image/png;base64,AA==".
inline std::pair<std::string, std::string> parts_of_data_url(const std::string& url) {
    const std::size_t type = std::min(url.find(':') + 1, url.size());
    const std::size_t end = std::min(url.find(';', type), url.size());
    return {url.substr(type, end - type), url.substr(std::min(url.find(',') + 1, url.size()))};
}

// The user's turn as the APIs that know images write it, as the value of a message's "content".

inline std::string openai_content(const request_spec& r) {
    if (r.image.empty()) return json_quoted(r.prompt);
    return "[{\"type\":\"text\",\"text\":" + json_quoted(r.prompt) +
           "},{\"type\":\"image_url\",\"image_url\":{\"url\":" + json_quoted(r.image) + "}}]";
}
inline std::string anthropic_content(const request_spec& r) {
    if (r.image.empty()) return json_quoted(r.prompt);
    const auto [type, data] = parts_of_data_url(r.image);
    return "[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":" +
           json_quoted(type) + ",\"data\":" + json_quoted(data) +
           "}},{\"type\":\"text\",\"text\":" + json_quoted(r.prompt) + "}]";
}
inline std::string ollama_images(const request_spec& r) {
    return "[" + json_quoted(parts_of_data_url(r.image).second) + "]";
}
/// With images in a field of their own beside it.
inline std::string ollama_content(const request_spec& r) {
    return json_quoted(r.prompt) + (r.image.empty() ? "" : ",\"images\":" + ollama_images(r));
}

// Each API: its request, its events, and where these differ, its whole answer. The table below them
// says the rest.

inline void write_openai(body_writer& b, const request_spec& r) {
    b.flag("stream", r.stream);
    if (r.stream) b.raw("stream_options", "{\"include_usage\":true}");
    b.max_tokens("max_tokens").ignore_eos().temperature();
}
inline void write_openai_chat(body_writer& b, const std::string& model, const request_spec& r) {
    b.string("model", model).messages(openai_content);
    write_openai(b, r);
}
inline void write_openai_completions(body_writer& b, const std::string& model,
                                     const request_spec& r) {
    b.string("model", model);
    b.raw("prompt", r.token_ids.empty() ? json_quoted(joined_prompt(r)) : r.token_ids);
    write_openai(b, r);
}

/// It samples at a temperature above 0 only.
inline void write_tgi(body_writer& b, const std::string&, const request_spec& r) {
    b.string("inputs", joined_prompt(r)).object("parameters", [&](body_writer& p) {
        p.flag("details", true).max_tokens("max_new_tokens");
        if (r.temperature == 0) p.flag("do_sample", false);
        else p.temperature();
    });
}
inline void read_tgi_details(const picojson::value& v, stream_event& e) {
    const picojson::value* details = member(v, "details");
    if (!details) return;
    e.finish_reason = finish_word(string_member(*details, "finish_reason"));
    e.completion_tokens = count_member(*details, "generated_tokens");
    e.prompt_tokens = count_member(*details, "input_length");
}
/// A token an event; special ones, such as the end of the text, are no output.
inline void read_tgi(const picojson::value& v, stream_event& e, stream_memory& memory) {
    if (const picojson::value* token = member(v, "token")) {
        const picojson::value* special = member(*token, "special");
        const bool is_output = !(special && special->evaluate_as_boolean());
        if (is_output && e.take_text(*token, "text")) memory.say(*token, "text");
    }
    read_tgi_details(v, e);
    const picojson::value* all = member(v, "generated_text");
    e.done = all && all->is<std::string>();
}
inline void read_tgi_whole(const picojson::value& v, stream_event& e, stream_memory& memory) {
    e.take_text(v, "generated_text");
    memory.say(v, "generated_text");
    read_tgi_details(v, e);
}

/// Fields that are no input of the model become parameters, so one form serves both backends:
/// vLLM's takes ignore_eos, TensorRT-LLM's wants {"end_id": -1} or a min_length in extra_body.
inline void write_triton(body_writer& b, const std::string&, const request_spec& r) {
    b.string("text_input", joined_prompt(r)).flag("stream", r.stream);
    b.max_tokens("max_tokens").ignore_eos().temperature();
}
/// Token counts come where they were asked for (return_num_output_tokens), each event its own.
inline void read_triton(const picojson::value& v, stream_event& e, stream_memory& memory) {
    e.take_text(v, "text_output");
    memory.say(v, "text_output");
    e.finish_reason = finish_word(string_member(v, "finish_reason"));
    e.prompt_tokens = count_member(v, "num_input_tokens");
    if (const int n = count_member(v, "num_output_tokens"); n >= 0)
        note_output_tokens(e, memory.tokens += n);
}

inline void write_ollama_options(body_writer& b, const request_spec& r) {
    b.flag("stream", r.stream).object("options", [](body_writer& o) {
        o.max_tokens("num_predict").temperature();
    });
}
inline void write_ollama(body_writer& b, const std::string& model, const request_spec& r) {
    b.string("model", model).messages(ollama_content);
    write_ollama_options(b, r);
}
inline void write_ollama_generate(body_writer& b, const std::string& model,
                                  const request_spec& r) {
    b.string("model", model).string("prompt", joined_prompt(r, false)).system("system");
    if (!r.image.empty()) b.raw("images", ollama_images(r));
    write_ollama_options(b, r);
}
inline void read_ollama(const picojson::value& v, stream_event& e, stream_memory& memory) {
    const picojson::value* message = member(v, "message");
    for (const picojson::value* from : {&v, message}) {
        if (!from) continue;
        for (const char* name : {"content", "response", "thinking"})
            e.take_text(*from, name);
        memory.say(*from, "content");
        memory.say(*from, "response");
        const picojson::value* calls = member(*from, "tool_calls");
        if (calls && calls->is<picojson::array>() && !calls->get<picojson::array>().empty())
            e.take_call();
    }
    const picojson::value* done = member(v, "done");
    e.done = done && done->evaluate_as_boolean();
    e.finish_reason = finish_word(string_member(v, "done_reason"));
    e.completion_tokens = count_member(v, "eval_count");
    e.prompt_tokens = count_member(v, "prompt_eval_count");
}

inline void write_llama_cpp(body_writer& b, const std::string&, const request_spec& r) {
    b.string("prompt", joined_prompt(r)).flag("stream", r.stream);
    b.max_tokens("n_predict").ignore_eos().temperature();
}
inline void read_llama_cpp(const picojson::value& v, stream_event& e, stream_memory& memory) {
    e.take_text(v, "content");
    memory.say(v, "content");
    note_output_tokens(e, count_member(v, "tokens_predicted"));
    e.prompt_tokens = count_member(v, "tokens_evaluated");
    if (const picojson::value* timings = member(v, "timings"))
        e.cached_tokens = count_member(*timings, "cache_n");
    e.finish_reason = finish_word(string_member(v, "stop_type"));
    const auto said = [&](const char* name) {
        const picojson::value* m = member(v, name);
        return m && m->is<bool>() && m->get<bool>();
    };
    if (said("stopped_limit")) e.finish_reason = "length";  // as older versions say it
    if (said("stopped_eos") || said("stopped_word")) e.finish_reason = "stop";
    e.done = said("stop");
}

inline void write_sglang(body_writer& b, const std::string&, const request_spec& r) {
    b.string("text", joined_prompt(r)).flag("stream", r.stream);
    b.object("sampling_params", [](body_writer& p) {
        p.max_tokens("max_new_tokens").ignore_eos().temperature();
    });
}
/// Every event repeats all text so far, unless the server was started with incremental output.
/// Then a text will not begin with the one before.
inline void read_sglang(const picojson::value& v, stream_event& e, stream_memory& memory) {
    const std::string text = string_member(v, "text");
    if (text.substr(0, memory.text.size()) != memory.text) memory.cumulative = false;
    const std::size_t before = memory.cumulative ? memory.text.size() : 0;
    e.content = text.size() > before;
    e.text_bytes = static_cast<int>(text.size() - before);
    if (memory.keeps_answer) memory.answer = memory.cumulative ? text : memory.answer + text;
    memory.text = text;
    const picojson::value* meta = member(v, "meta_info");
    if (!meta) return;
    note_output_tokens(e, count_member(*meta, "completion_tokens"));
    e.prompt_tokens = count_member(*meta, "prompt_tokens");
    e.cached_tokens = count_member(*meta, "cached_tokens");
    const picojson::value* reason = member(*meta, "finish_reason");
    if (!reason) return;
    e.finish_reason = reason->is<std::string>() ? reason->get<std::string>()
                                                : string_member(*reason, "type");
    if (e.finish_reason == "abort") e.error = string_member(*reason, "message");
}

inline void write_plain_text(body_writer& b, const std::string&, const request_spec& r) {
    b.string("prompt", joined_prompt(r)).max_tokens("max_tokens").temperature();
}

/// The only one that must be told how many tokens at most.
inline void write_anthropic(body_writer& b, const std::string& model, const request_spec& r) {
    b.string("model", model).messages(anthropic_content, false).system("system");
    b.flag("stream", r.stream);
    if (r.max_tokens > 0) b.max_tokens("max_tokens");
    else b.raw("max_tokens", "1024");
    b.temperature();
}
/// Cached prompt tokens stand apart from the others.
inline void read_anthropic_usage(const picojson::value& v, stream_event& e) {
    const picojson::value* usage = member(v, "usage");
    if (!usage) return;
    e.completion_tokens = count_member(*usage, "output_tokens");
    e.prompt_tokens = count_member(*usage, "input_tokens");
    if (e.prompt_tokens < 0) return;
    e.cached_tokens = count_member(*usage, "cache_read_input_tokens");
    const int written = count_member(*usage, "cache_creation_input_tokens");
    e.prompt_tokens += std::max(e.cached_tokens, 0) + std::max(written, 0);
}
inline void take_anthropic_piece(const picojson::value& piece, stream_event& e) {
    for (const char* name : {"text", "thinking", "partial_json"}) e.take_text(piece, name);
    if (string_member(piece, "type") == "tool_use") e.take_call();
}
inline void read_anthropic(const picojson::value& v, stream_event& e, stream_memory& memory) {
    e.done = string_member(v, "type") == "message_stop";
    if (const picojson::value* message = member(v, "message")) read_anthropic_usage(*message, e);
    else read_anthropic_usage(v, e);
    for (const char* name : {"delta", "content_block"}) {
        const picojson::value* piece = member(v, name);
        if (!piece) continue;
        take_anthropic_piece(*piece, e);
        memory.say(*piece, "text");
        e.finish_reason = finish_word(string_member(*piece, "stop_reason"));
    }
}
inline void read_anthropic_whole(const picojson::value& v, stream_event& e,
                                 stream_memory& memory) {
    read_anthropic_usage(v, e);
    e.finish_reason = finish_word(string_member(v, "stop_reason"));
    const picojson::value* blocks = member(v, "content");
    if (!blocks || !blocks->is<picojson::array>()) return;
    for (const picojson::value& block : blocks->get<picojson::array>()) {
        take_anthropic_piece(block, e);
        memory.say(block, "text");
    }
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C16] the table of APIs ===================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// How an answer is cut into events.
enum class framing : unsigned char {
    events,   // server-sent events
    lines,    // a JSON object a line
    pieces,   // bare text: every piece of body is one
    document  // one JSON object, the whole answer
};

/// What an API needs, at one glance.
struct api_traits {
    const char* name = "";
    const char* path = "";          // "{model}" in it becomes the model's name
    const char* whole_path = path;  // of answers that are not streamed
    framing framed = framing::events;
    bool ends_with_body = false;    // a stream has no event that ends it
    bool forces_lengths = false;    // else an answer ends where the model ends it
    bool tells_usage = true;        // else each event counts as one token
    bool takes_images = false;
    bool takes_token_ids = false;   // as a prompt
    void (*write)(body_writer&, const std::string& model, const request_spec&) = nullptr;
    void (*read)(const picojson::value&, stream_event&, stream_memory&) = nullptr;
    void (*read_whole)(const picojson::value&, stream_event&, stream_memory&) = read;
    const char* models = "/v1/models";  // path of the list of models, "" where there is none
    const char* models_in = "data";     // that answer's list, "" where it is of one model itself
    const char* model_as = "id";        // the name's field there
    bool needs_model = true;
    const char* ready = "/health";
    const char* key_before = "Authorization: Bearer ";
    const char* fields = "";            // header lines of every request
};

/// In the order of the enumerators.
inline constexpr api_traits apis[] = {
    {.name = "openai_chat", .path = "/v1/chat/completions", .forces_lengths = true,
     .takes_images = true,
     .write = write_openai_chat, .read = read_openai, .read_whole = read_openai_whole},
    {.name = "openai_completions", .path = "/v1/completions", .forces_lengths = true,
     .takes_token_ids = true,
     .write = write_openai_completions, .read = read_openai, .read_whole = read_openai_whole},
    {.name = "tgi", .path = "/generate_stream", .whole_path = "/generate",
     .write = write_tgi, .read = read_tgi, .read_whole = read_tgi_whole,
     .models = "/info", .models_in = "", .model_as = "model_id", .needs_model = false},
    {.name = "triton", .path = "/v2/models/{model}/generate_stream",
     .whole_path = "/v2/models/{model}/generate",
     .ends_with_body = true, .forces_lengths = true, .tells_usage = false,
     .write = write_triton, .read = read_triton, .models = "", .ready = "/v2/health/ready"},
    {.name = "ollama", .path = "/api/chat", .framed = framing::lines, .takes_images = true,
     .write = write_ollama, .read = read_ollama,
     .models = "/api/tags", .models_in = "models", .model_as = "name", .ready = "/api/version"},
    {.name = "ollama_generate", .path = "/api/generate", .framed = framing::lines,
     .takes_images = true,
     .write = write_ollama_generate, .read = read_ollama,
     .models = "/api/tags", .models_in = "models", .model_as = "name", .ready = "/api/version"},
    {.name = "llama_cpp", .path = "/completion", .forces_lengths = true,
     .write = write_llama_cpp, .read = read_llama_cpp, .needs_model = false},
    {.name = "sglang", .path = "/generate", .forces_lengths = true,
     .write = write_sglang, .read = read_sglang, .needs_model = false},
    {.name = "plain_text", .path = "/generate", .framed = framing::pieces,
     .ends_with_body = true, .tells_usage = false,
     .write = write_plain_text, .models = "", .needs_model = false, .ready = "/readyz"},
    {.name = "anthropic", .path = "/v1/messages", .takes_images = true,
     .write = write_anthropic, .read = read_anthropic, .read_whole = read_anthropic_whole,
     .key_before = "x-api-key: ", .fields = "anthropic-version: 2023-06-01\r\n"},
};
inline const api_traits& traits_of(api_format api) { return apis[static_cast<std::size_t>(api)]; }
inline std::string api_names() {
    std::string names;
    for (const api_traits& a : apis) names += (names.empty() ? "" : ", ") + std::string(a.name);
    return names;
}
/// Null where no API has this name.
inline const api_traits* api_named(std::string_view name) {
    for (const api_traits& a : apis)
        if (name == a.name) return &a;
    return nullptr;
}

/// Below the URL's own path, which may name the version already; of plain text that path says all.
inline std::string request_path(const api_traits& a, const char* path, std::string base,
                                std::string_view model) {
    if (a.framed == framing::pieces && !base.empty()) return base;
    if (base.size() >= 3 && base.substr(base.size() - 3) == "/v1") base.resize(base.size() - 3);
    std::string whole = base + path;
    const std::size_t at = whole.find("{model}");
    if (at == std::string::npos) return whole;
    std::string encoded;
    for (const char c : model) {
        const bool plain = std::isalnum(static_cast<unsigned char>(c)) ||
                           std::string_view("-._~").find(c) != std::string_view::npos;
        encoded += plain ? std::string(1, c) : printed("%%%02X", static_cast<unsigned char>(c));
    }
    return whole.replace(at, 7, encoded);
}
inline std::string request_body(const api_traits& a, const std::string& model,
                                const request_spec& r) {
    body_writer b(r);
    a.write(b, model, r);
    return b.finished();
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C17] from the bytes of a body to events ==================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Takes the body of an answer apart into events, as its API frames it.
class body_reader {
public:
    static constexpr std::size_t most = event_stream_parser::max_event;

    /// `keeps_answer`: its words are wanted, for the next turn of a conversation.
    void reset(const api_traits& a, bool streamed, bool keeps_answer = false) {
        *this = body_reader();
        memory_.keeps_answer = keeps_answer;
        api_ = &a;
        framed_ = streamed ? a.framed : framing::document;
        is_fast_ = a.read == read_openai && !keeps_answer;
    }
    const std::string& answer() const { return memory_.answer; }
    /// Whether an answer of this type is what was asked for; any other one tells an error.
    bool takes(std::string_view content_type) const {
        switch (framed_) {
        case framing::events:
            return same_ignoring_case(trimmed(content_type.substr(0, content_type.find(';'))),
                                      "text/event-stream");
        case framing::pieces: return true;
        default: return content_type.find("json") != std::string_view::npos;
        }
    }
    const char* wanted() const {
        return framed_ == framing::events  ? "an event stream"
               : framed_ == framing::lines ? "a stream of JSON lines"
                                           : "a JSON document";
    }
    /// Calls `on_event(event)` for each one. False where one is too long.
    template <class OnEvent>
    bool feed(std::string_view bytes, OnEvent&& on_event) {
        switch (framed_) {
        case framing::events:
            return events_.feed(bytes, [&](std::string_view type, std::string_view data) {
                if (over_) return;
                if (is_fast_) on_event(openai_.read(type, data));
                else on_event(read_json_event(type, data, api_->read, memory_));
            });
        case framing::lines:
            for (std::size_t at; (at = bytes.find('\n')) != std::string_view::npos;) {
                held_.append(bytes.substr(0, at));
                if (held_.size() > most) return false;
                bytes.remove_prefix(at + 1);
                on_line(on_event);
            }
            break;
        case framing::pieces:
            if (memory_.keeps_answer) memory_.answer += bytes;
            if (!bytes.empty()) on_event(
                    stream_event{.content = true, .text_bytes = static_cast<int>(bytes.size())});
            return true;
        case framing::document: break;
        }
        held_.append(bytes);
        return held_.size() <= most;
    }
    /// The answer has ended, and what follows says nothing, in the same read or in a later one.
    void stop() { over_ = true; }
    /// The body is complete. What is wrong with it, "" where nothing is.
    template <class OnEvent>
    std::string end(OnEvent&& on_event) {
        if (framed_ == framing::document) return on_document(on_event);
        if (framed_ == framing::lines) on_line(on_event);  // the last one may lack its line end
        if (api_->ends_with_body) on_event(stream_event{.done = true});
        return {};
    }

private:
    template <class OnEvent>
    void on_line(OnEvent&& on_event) {
        if (!over_ && !trimmed(held_).empty())
            on_event(read_json_event("", trimmed(held_), api_->read, memory_));
        held_.clear();
    }
    /// One event that brings everything. Nothing else tells its tokens, so usage must.
    template <class OnEvent>
    std::string on_document(OnEvent&& on_event) {
        stream_event e = read_json_event("", held_, api_->read_whole, memory_);
        if (e.malformed) return "the answer is not a JSON object";
        if (e.error.empty() && e.content && e.completion_tokens < 0)
            return "the answer does not tell its number of tokens, and is not streamed";
        e.first_tokens = std::max(e.completion_tokens, 1);
        e.done = true;
        on_event(e);
        return {};
    }

    const api_traits* api_ = &apis[0];
    framing framed_ = framing::events;
    bool is_fast_ = true;  // OpenAI's events, which are many
    bool over_ = false;
    event_stream_parser events_{};
    event_reader openai_{};
    stream_memory memory_{};
    std::string held_{};
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C18] the timeline of one answer ==========================================================
// The definitions "metrics/1": every number is computed from these timelines and nothing else.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Gaps between events in microseconds, 4 bytes each. It grows by blocks of 4 KiB, so that growing
/// copies nothing, and gives them back from the front.
class gap_list {
public:
    void push_back(std::uint32_t us) {
        if (size_ % block == 0) add_block();
        blocks_.back().push_back(us);
        ++size_;
    }
    /// Returns where they begin.
    std::uint64_t append(const gap_list& more) {
        const std::uint64_t at = size_;
        more.for_each_block([this](const std::vector<std::uint32_t>& b) {
            for (std::size_t from = 0; from < b.size();) {
                if (size_ % block == 0) add_block();
                const std::size_t n = std::min<std::size_t>(b.size() - from, block - size_ % block);
                blocks_.back().insert(blocks_.back().end(), b.data() + from, b.data() + from + n);
                size_ += n;
                from += n;
            }
        });
        return at;
    }
    /// The same without a copy: blocks that are not full leave places behind that hold nothing.
    std::uint64_t take(gap_list&& more) {
        const std::uint64_t at = blocks_.size() * block;
        std::move(more.blocks_.begin(), more.blocks_.end(), std::back_inserter(blocks_));
        size_ = at + more.size_;
        more = gap_list();
        return at;
    }
    std::uint32_t operator[](std::uint64_t at) const { return blocks_[at / block][at % block]; }
    /// The place of the next one.
    std::uint64_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    /// Keeps the first block, for the next stream.
    void clear() {
        if (blocks_.size() > 1) blocks_.resize(1);
        if (!blocks_.empty()) blocks_[0].clear();
        size_ = released_ = 0;
    }
    /// Gives back what lies before this place; the places of the others stay.
    void release_before(std::uint64_t at) {
        for (; (released_ + 1) * block <= at; ++released_)
            std::vector<std::uint32_t>().swap(blocks_[released_]);
    }
    template <class F>
    void for_each_block(F&& f) const {
        for (const std::vector<std::uint32_t>& b : blocks_) f(b);
    }

private:
    static constexpr std::uint64_t block = 1024;
    void add_block() {
        // The one that clear() left behind is used again.
        if (size_ == 0 && !blocks_.empty()) return;
        blocks_.emplace_back();
        blocks_.back().reserve(block);
    }
    std::vector<std::vector<std::uint32_t>> blocks_{};
    std::uint64_t size_ = 0, released_ = 0;
};

/// Builds one request's record and gaps from what its stream says and when.
class stream_timeline {
public:
    void on_event(const stream_event& e, long long now_ns) {
        if (ended_) return;
        if (e.malformed) return fail(request_status::protocol, e.error);
        if (!e.finish_reason.empty())
            stream_event::note_finish(finish_reason_, finish_choice_, e.finish_reason,
                                      e.finish_choice);
        if (!e.error.empty()) {
            end_ns_ = now_ns;
            return fail(request_status::server, printable(e.error));
        }
        if (e.content) on_content(e, now_ns);
        choices_ = std::max(choices_, e.choices);
        if (!e.finish_reason.empty()) finished_ += std::max(e.finished, 1);
        if (e.prompt_tokens >= 0) prompt_tokens_ = e.prompt_tokens;
        if (e.completion_tokens >= 0) completion_tokens_ = e.completion_tokens;
        if (e.cached_tokens >= 0) cached_tokens_ = e.cached_tokens;
        if (e.done) end(now_ns);
    }
    /// The body is complete, or cut off.
    void on_body_end(long long now_ns) {
        if (ended_) return;
        if (finished_ > 0 && finished_ >= choices_) return end(now_ns);
        end_ns_ = now_ns;
        fail(request_status::truncated,
             finished_ > 0 ? printed("the answer ended after %d of its %d choices", finished_,
                                     choices_)
             : events_ == 0 ? "the answer ended before any content"
                            : "the answer ended without a finish reason or [DONE]");
    }
    void fail(request_status status, std::string error) {
        if (ended_) return;
        ended_ = true;
        status_ = status;
        error_ = std::move(error);
    }
    bool ended() const { return ended_; }
    int events() const { return events_; }
    long long last_content_ns() const { return last_ns_; }
    const gap_list& gaps_us() const { return gaps_; }

    void write_to(record& r) const {
        r.first_token_ns = first_ns_;
        r.last_token_ns = last_ns_;
        r.end_ns = end_ns_;
        r.events = events_;
        r.reads = reads_;
        r.first_read_events = first_read_events_;
        r.text_bytes = text_bytes_;
        r.choices = choices_;
        r.first_event_tokens = events_ ? first_tokens_ : 0;
        r.prompt_tokens = std::max(prompt_tokens_, 0);
        // Usage that counts nothing where there was something is none.
        const bool told = completion_tokens_ > 0 || (completion_tokens_ == 0 && events_ == 0);
        r.cached_tokens = cached_tokens_;
        r.token_source = told ? token_origin::usage : token_origin::events;
        r.output_tokens = told ? completion_tokens_ : events_;
        r.status = status_;
        r.finish_reason = printable(finish_reason_, 40);
        r.error = error_;
    }
    void reset() {
        gap_list room = std::move(gaps_);
        *this = stream_timeline();
        room.clear();
        gaps_ = std::move(room);
    }

private:
    void on_content(const stream_event& e, long long now_ns) {
        if (events_++ == 0) {
            first_ns_ = now_ns;
            first_tokens_ = e.first_tokens;
        } else {
            // Gaps are differences of rounded offsets, so that their sum never drifts.
            const long long offset = (now_ns - first_ns_ + 500) / 1000;
            gaps_.push_back(
                static_cast<std::uint32_t>(std::min(offset - offset_us_, 4294967295ll)));
            offset_us_ = offset;
        }
        if (now_ns != last_ns_) ++reads_;
        if (reads_ == 1) ++first_read_events_;
        text_bytes_ += e.text_bytes;
        last_ns_ = now_ns;
    }
    void end(long long now_ns) {
        end_ns_ = now_ns;
        const std::string reason = "finish reason \"" + printable(finish_reason_, 40) + "\"";
        if (stream_event::is_failure(finish_reason_)) return fail(request_status::server, reason);
        if (events_ == 0)
            return fail(request_status::empty, "complete without any content" +
                                                   (finish_reason_.empty() ? "" : ", " + reason));
        ended_ = true;
        status_ = request_status::ok;
    }

    gap_list gaps_{};
    std::string finish_reason_{}, error_{};
    long long first_ns_ = 0, last_ns_ = 0, end_ns_ = 0, offset_us_ = 0;
    int events_ = 0, first_tokens_ = 1;
    int reads_ = 0, first_read_events_ = 0, text_bytes_ = 0;
    int choices_ = 1, finished_ = 0, finish_choice_ = 0;
    int prompt_tokens_ = -1, completion_tokens_ = -1, cached_tokens_ = -1;
    request_status status_ = request_status::unsent;
    bool ended_ = false;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C19] from bytes to the timeline of an answer =============================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One answer without I/O: the bytes of a connection go in, in pieces of any size and with the time
/// of each; what became of the request comes out.
class answer_reader {
public:
    /// Takes what one read brought. What follows a complete answer belongs to nobody.
    void feed(std::string_view bytes, long long now_ns) {
        const std::size_t used =
            http_.feed(bytes, [&](std::string_view body) { on_body(body, now_ns); });
        more_came_ = more_came_ || (used < bytes.size() && http_.complete());
        if (http_.complete()) on_complete(now_ns);
        else if (http_.broken()) on_cut(http_.error());
    }
    /// The connection ended; `error` is empty where the server closed it in an orderly way.
    void end_of_input(long long now_ns, const std::string& error = "") {
        const bool untouched = http_.untouched();
        http_.end_of_input();
        if (untouched)
            return timeline_.fail(request_status::truncated,
                                  "the connection was lost before an answer: " +
                                      (error.empty() ? "the server closed it" : error));
        if (http_.complete()) return on_complete(now_ns);
        // A stream that was cut: what it said so far decides what it was.
        if (is_asked_for()) timeline_.on_body_end(now_ns);
        on_cut(error.empty() ? http_.error() : "the connection was lost: " + error);
    }
    /// Nothing more can come of it: it is whole or broken.
    bool finished() const { return http_.complete() || http_.broken(); }
    /// No byte of it was seen yet.
    bool untouched() const { return http_.untouched(); }
    /// The next request may follow on the same connection.
    bool keeps_connection() const { return http_.keep_alive() && !more_came_; }
    /// 0 before the head is there.
    int http_status() const { return http_.head_done() ? http_.status() : 0; }
    stream_timeline& timeline() { return timeline_; }
    const stream_timeline& timeline() const { return timeline_; }
    const std::string& words() const { return reader_.answer(); }
    /// `keeps_answer`: its words are wanted, for the next turn of a conversation.
    void reset(const api_traits& api = apis[0], bool streamed = true, bool keeps_answer = false) {
        timeline_.reset();
        http_.reset();
        reader_.reset(api, streamed, keeps_answer);
        body_.clear();
        body_is_ = body_kind::unknown;
        more_came_ = false;
    }

private:
    enum class body_kind : unsigned char { unknown, asked_for, other };

    bool is_asked_for() const {
        return http_.status() / 100 == 2 && reader_.takes(http_.header("content-type"));
    }
    void on_body(std::string_view body, long long now_ns) {
        if (body_is_ == body_kind::unknown)
            body_is_ = is_asked_for() ? body_kind::asked_for : body_kind::other;
        if (body_is_ == body_kind::other) {
            body_.append(body.substr(0, 65536 - std::min<std::size_t>(body_.size(), 65536)));
            return;
        }
        if (timeline_.ended()) return;
        const bool held = reader_.feed(body, [&](const stream_event& e) {
            timeline_.on_event(e, now_ns);
            if (timeline_.ended()) reader_.stop();
        });
        if (!held) timeline_.fail(request_status::protocol, "an event is over 16 MiB");
    }
    void on_complete(long long now_ns) {
        if (!is_asked_for()) return on_other_answer();
        const std::string wrong =
            reader_.end([&](const stream_event& e) { timeline_.on_event(e, now_ns); });
        if (!wrong.empty()) timeline_.fail(request_status::protocol, wrong);
        timeline_.on_body_end(now_ns);
    }
    /// An error status is what the server said, even where the rest of its answer is not to be had.
    void on_cut(const std::string& why) {
        if (http_status() != 0 && http_status() / 100 != 2) return on_other_answer();
        timeline_.fail(request_status::protocol, why);
    }
    void on_other_answer() {
        picojson::value v;
        const std::string told = parse_json(body_, v) ? error_message(v) : "";
        const std::string detail = told.empty() ? printable(body_, 200) : printable(told);
        const std::string_view to = http_.header("location");
        const std::string_view later = http_.header("retry-after");
        if (http_.status() / 100 == 3 && !to.empty())
            timeline_.fail(request_status::http,
                           printed("HTTP %d, a redirect to \"%s\": name the final URL",
                                   http_.status(), printable(to, 100).c_str()));
        else if (http_.status() / 100 != 2)
            timeline_.fail(request_status::http,
                           printed("HTTP %d", http_.status()) +
                               (detail.empty() ? "" : ": " + detail) +
                               (later.empty() ? "" : " (Retry-After: " + printable(later) + ")"));
        else if (!told.empty())
            timeline_.fail(request_status::server, detail);
        else
            timeline_.fail(request_status::protocol,
                           "the answer is \"" + printable(http_.header("content-type"), 60) +
                               "\" and not " + reader_.wanted());
    }

    stream_timeline timeline_{};
    response_parser http_{};
    body_reader reader_{};
    std::string body_{};
    body_kind body_is_ = body_kind::unknown;
    bool more_came_ = false;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C20] histograms of lateness and of gaps ==================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Classes of a value, `bits` of its digits: values below 2^(bits + 1) have one of their own, above
/// there are 2^bits an octave.
template <unsigned bits>
struct octave_classes {
    static constexpr std::size_t an_octave = std::size_t{1} << bits;
    static std::size_t of(std::uint64_t v) {
        if (v < 2 * an_octave) return static_cast<std::size_t>(v);
        const auto shift = static_cast<std::size_t>(std::bit_width(v)) - bits - 1;
        return shift * an_octave + static_cast<std::size_t>(v >> shift);
    }
    /// The first value of a class, and how many values it has.
    static double first(std::size_t c) {
        const std::size_t s = shift(c);
        return std::ldexp(static_cast<double>(c - s * an_octave), static_cast<int>(s));
    }
    static double width(std::size_t c) { return std::ldexp(1.0, static_cast<int>(shift(c))); }

private:
    static std::size_t shift(std::size_t c) { return c < 2 * an_octave ? 0 : c / an_octave - 1; }
};

/// How often a delay was how long. Sixteen classes an octave: a quantile is at most 1/16 too high.
class lag_counts {
public:
    void add(long long ns) {
        const auto v = static_cast<std::uint64_t>(std::max(ns, 0ll));
        ++counts_[classes::of(v)];
        ++n_;
        max_ns_ = std::max(max_ns_, ns);
    }
    void add(const lag_counts& o) {
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += o.counts_[i];
        n_ += o.n_;
        max_ns_ = std::max(max_ns_, o.max_ns_);
    }
    std::uint64_t count() const { return n_; }
    double max() const { return static_cast<double>(max_ns_) * 1e-9; }
    /// Nearest rank, seconds; 0 where there is none.
    double quantile(double q) const {
        const double rank = q * static_cast<double>(n_);
        double seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            seen += static_cast<double>(counts_[i]);
            const double above = i < classes::an_octave ? static_cast<double>(i)
                                                        : classes::first(i) + classes::width(i);
            if (seen > 0 && seen >= rank) return std::min(above * 1e-9, max());
        }
        return 0;
    }

private:
    using classes = octave_classes<4>;
    std::array<std::uint64_t, 976> counts_{};
    std::uint64_t n_ = 0;
    long long max_ns_ = 0;
};

/// How many gaps were how long, in the memory of 13,000 of them. Up to 511 us every value has a
/// class of its own; above there are 256 classes an octave, and a value is told as the middle of
/// its class. A class from v on is at most v / 256 wide, so that is at most 1/512 = 0.2 % off, and
/// so is every quantile: the value of its rank lies in the class that is told. Mean and extremes
/// are exact.
class gap_counts {
public:
    void add(std::uint32_t us, std::uint64_t times = 1) {
        if (counts_.empty()) counts_.resize(classes::of(4294967295u) + 1);
        counts_[classes::of(us)] += times;
        n_ += times;
        sum_us_ += us * times;
        min_us_ = std::min(min_us_, us);
        max_us_ = std::max(max_us_, us);
    }
    void add(const gap_counts& o) {
        if (counts_.empty()) { *this = o; return; }
        for (std::size_t i = 0; i < o.counts_.size(); ++i) counts_[i] += o.counts_[i];
        n_ += o.n_;
        sum_us_ += o.sum_us_;
        min_us_ = std::min(min_us_, o.min_us_);
        max_us_ = std::max(max_us_, o.max_us_);
    }
    std::uint64_t size() const { return n_; }
    std::uint64_t sum_us() const { return sum_us_; }
    /// The value of this rank, counted from 0, in microseconds.
    double at(std::uint64_t rank) const {
        if (rank == 0) return min_us_;
        std::uint64_t seen = 0;
        for (std::size_t c = 0; c < counts_.size() && rank + 1 < n_; ++c)
            if ((seen += counts_[c]) > rank)
                return std::min<double>(std::max<double>(middle_of(c), min_us_), max_us_);
        return max_us_;
    }
    static constexpr double relative_error = 1.0 / 512;

private:
    using classes = octave_classes<8>;
    static double middle_of(std::size_t c) {
        return classes::first(c) + (classes::width(c) - 1) / 2;
    }
    std::vector<std::uint64_t> counts_{};
    std::uint64_t n_ = 0, sum_us_ = 0;
    std::uint32_t min_us_ = 4294967295u, max_us_ = 0;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C21] when the client did not run =========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Time in which a thread of the client could not look at its sockets: it was stopped, waited for a
/// core, or was busy with others for long. It ends when all that had come in meanwhile was read.
/// What is stamped at t inside came in at most min(t - from_ns, most_delay_ns) before that.
struct blind_stretch {
    long long from_ns = 0, to_ns = 0;
    long long most_delay_ns = 0;
    long long lost_ns = 0;  // of it, the time that the thread may not have run at all
};
/// In order of time, and none reaches into the next one.
using blind_stretches = std::vector<blind_stretch>;

/// The first one that ends after a time.
inline blind_stretches::const_iterator first_after(const blind_stretches& all, long long time_ns) {
    return std::lower_bound(all.begin(), all.end(), time_ns,
                            [](const blind_stretch& s, long long t) { return s.to_ns <= t; });
}
/// How much too late something may have been stamped, at most.
inline long long possible_delay(const blind_stretches& all, long long stamp_ns) {
    const auto at = first_after(all, stamp_ns);
    if (at == all.end() || at->from_ns >= stamp_ns) return 0;
    return std::min(stamp_ns - at->from_ns, at->most_delay_ns);
}
/// How long the client may not have run between two times, at most.
inline long long lost_between(const blind_stretches& all, long long from_ns, long long to_ns) {
    long long lost = 0;
    for (auto s = first_after(all, from_ns); s != all.end() && s->from_ns < to_ns; ++s)
        lost += std::min(s->lost_ns, std::min(s->to_ns, to_ns) - std::max(s->from_ns, from_ns));
    return lost;
}
inline bool is_blind_between(const blind_stretches& all, long long from_ns, long long to_ns) {
    const auto at = first_after(all, from_ns);
    return at != all.end() && at->from_ns < to_ns;
}
/// The longest delay of anything stamped between two times, at most.
inline long long most_delay_between(const blind_stretches& all, long long from_ns,
                                    long long to_ns) {
    long long most = 0;
    for (auto s = first_after(all, from_ns); s != all.end() && s->from_ns < to_ns; ++s)
        most = std::max(most, s->most_delay_ns);
    return most;
}

/// The stretches of one thread, in the memory of a few hundred: where there are more, the nearest
/// neighbours become one, which says less and nothing wrong.
class blind_log {
public:
    static constexpr std::size_t most = 512;

    /// One that reaches into those before it becomes one with them: both may have held up the same
    /// bytes.
    void add(blind_stretch s) {
        while (!all_.empty() && s.from_ns < all_.back().to_ns) {
            const blind_stretch& o = all_.back();
            s = {std::min(s.from_ns, o.from_ns), std::max(s.to_ns, o.to_ns),
                 s.most_delay_ns + o.most_delay_ns, s.lost_ns + o.lost_ns};
            all_.pop_back();
        }
        all_.push_back(s);
        if (all_.size() > most) join_neighbours(all_);
    }
    const blind_stretches& all() const { return all_; }

    /// What threads beside one another saw, as if all of them had seen it.
    static blind_stretches together(const blind_stretches& a, const blind_stretches& b) {
        blind_stretches both = a, out;
        both.insert(both.end(), b.begin(), b.end());
        std::sort(both.begin(), both.end(), [](const auto& x, const auto& y) {
            return x.from_ns != y.from_ns ? x.from_ns < y.from_ns : x.to_ns < y.to_ns;
        });
        for (const blind_stretch& s : both) {
            if (out.empty() || s.from_ns >= out.back().to_ns) { out.push_back(s); continue; }
            blind_stretch& o = out.back();  // they lost the same time, each for itself
            o.to_ns = std::max(o.to_ns, s.to_ns);
            o.most_delay_ns = std::max(o.most_delay_ns, s.most_delay_ns);
            o.lost_ns = std::max(o.lost_ns, s.lost_ns);
        }
        while (out.size() > most) join_neighbours(out);
        return out;
    }

private:
    static void join_neighbours(blind_stretches& all) {
        std::vector<long long> between;
        for (std::size_t i = 1; i < all.size(); ++i)
            between.push_back(all[i].from_ns - all[i - 1].to_ns);
        const auto middle = between.begin() + static_cast<std::ptrdiff_t>(between.size() / 2);
        std::nth_element(between.begin(), middle, between.end());
        blind_stretches joined;
        for (const blind_stretch& s : all) {
            if (joined.empty() || s.from_ns - joined.back().to_ns > *middle) {
                joined.push_back(s);
                continue;
            }
            blind_stretch& o = joined.back();
            o.to_ns = s.to_ns;
            o.most_delay_ns = std::max(o.most_delay_ns, s.most_delay_ns);
            o.lost_ns += s.lost_ns;
        }
        all = std::move(joined);
    }

    blind_stretches all_{};
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C22] what one repeat measured ============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline void add_handshakes(handshakes_t& to, const handshakes_t& more) {
    const auto total = [](const handshakes_t& h) { return h.mean * static_cast<double>(h.count); };
    const double both = total(to) + total(more);
    to.count += more.count;
    to.mean = to.count > 0 ? both / static_cast<double>(to.count) : 0;
    to.max = std::max(to.max, more.max);
}

inline constexpr std::uint64_t not_listed = ~0ull;

/// One repeat of one arm as a whole: all that was seen beside its requests.
struct repeat_facts {
    run_arm arm = run_arm::candidate;
    int index = 0;
    long long window_from_ns = 0, window_to_ns = 0;
    double startup_s = not_a_number;
    long long short_outputs = 0;  // completed requests with fewer tokens than forced
    long long long_outputs = 0;   // and with more
    long long resends = 0;        // of requests whose kept connection was closed without an answer
    // Prompt tokens of the completed requests that tell how many were cached, as far as the
    // workload lets others have sent them before; -1 where no request tells.
    long long shared_tokens = -1;
    double asked_rate = 0, achieved_rate = 0;
    long long connections_opened = 0, content_events = 0, coalesced_events = 0;
    double cpu_share = 0;
    std::string target_gone{};  // why, where the server went away
    bool interrupted = false;
    bool cut_short = false;     // by the time budget; then it is no evidence
    bool gaps_counted = false;  // there were too many gaps to keep each one
    std::vector<double> thread_cpu_shares{};
    double loop_lag_p99 = 0, loop_lag_max = 0, stamp_lag_p99 = 0, stamp_lag_max = 0;  // seconds
    handshakes_t handshakes_full{}, handshakes_resumed{};
    blind_stretches blind{};  // of all threads
};

/// The same with its requests. Nothing is judged yet.
struct repeat_data : repeat_facts {
    std::vector<record> records{};              // in the order of their planned sends
    gap_list gaps{};                            // of all records, unless counted
    std::vector<std::uint64_t> gap_offsets{};   // of each record into gaps, or `not_listed`
    gap_counts pooled_gaps{};                   // if counted: of the completed measured requests
    std::vector<std::uint32_t> longest_gaps{};  // if counted: of each record, microseconds
    blind_stretches bunched{};  // when the server had what the client had missed to send
    lag_counts loop_lag{};   // how late a client thread came to what it does every 20 ms
    lag_counts stamp_lag{};  // of each read: from the wake-up that told of its bytes to its stamp
};

inline std::size_t gap_count(const record& r) {
    return r.events > 1 ? static_cast<std::size_t>(r.events - 1) : 0;
}

inline bool is_measured(const record& r) { return r.phase == run_phase::measure; }
/// Whether a request is one of those that the metric speaks of.
inline bool is_part_of(metric_id m, const record& r) {
    const turn_kind turns = facts_of(m).turns;
    return is_measured(r) &&
           (turns == turn_kind::all || (turns == turn_kind::first) == (r.turn == 0));
}

inline bool is_pooled(const record& r) { return is_measured(r) && r.status == request_status::ok; }

/// How the error of a request begins that the client itself had no means for.
inline constexpr std::string_view client_lacks = "client: ";
inline bool failed_for_want(const record& r) {
    return r.status == request_status::connect &&
           std::string_view(r.error.c_str()).substr(0, client_lacks.size()) == client_lacks;
}

/// A request with content before this time and from then on.
inline bool spans(const record& r, long long time_ns) {
    return r.first_token_ns < time_ns && time_ns <= r.last_token_ns;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C23] the requests of a repeat, as they end ===============================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Counts the gaps of one request where they belong to the pool. Returns the longest one.
inline std::uint32_t count_gaps(const record& r, const gap_list& gaps, std::uint64_t at,
                                gap_counts& pool) {
    std::uint32_t longest = 0;
    for (std::uint64_t k = 0; k < gap_count(r); ++k) {
        longest = std::max(longest, gaps[at + k]);
        if (is_pooled(r)) pool.add(gaps[at + k]);
    }
    return longest;
}

struct finished_request {
    std::size_t index = 0;
    record what{};
    std::uint64_t gaps_at = not_listed;
    bool counted = false;
    std::uint32_t longest_gap_us = 0;  // once counted
};

/// The finished requests of a load and their gaps. Where those become too many, they are counted
/// instead, oldest first: of a request there remains how many of its events came inside the window,
/// which its first and last one tell, unless the window begins or ends between them. The gaps of
/// those few stay listed.
class request_log {
public:
    void add(std::size_t index, record&& r, const gap_list& gaps) {
        requests_.push_back({index, std::move(r), gaps_.append(gaps)});
    }
    /// Counts at most so many gaps, of requests that ended before a time; returns how many it were.
    /// `edges`: where the window begins or ends or may do so, as far as known; one that is yet to
    /// come lies after that time.
    std::uint64_t count(std::uint64_t most, long long ended_before_ns,
                        const std::array<long long, 3>& edges) {
        std::uint64_t done = 0;
        for (; looked_at_ < requests_.size(); ++looked_at_) {
            finished_request& f = requests_[looked_at_];
            if (f.counted) continue;
            const std::uint64_t n = gap_count(f.what), at = f.gaps_at;
            if (f.what.end_ns >= ended_before_ns || done + n > most) break;
            const bool stays = std::any_of(edges.begin(), edges.end(),
                                           [&](long long t) { return spans(f.what, t); });
            f.counted = true;
            f.gaps_at = stays ? spanning_.size() : not_listed;
            f.longest_gap_us = count_gaps(f.what, gaps_, at, pooled_);
            for (std::uint64_t k = 0; stays && k < n; ++k) spanning_.push_back(gaps_[at + k]);
            gaps_.release_before(at + n);
            done += n;
        }
        return done;
    }
    /// All there are, the window being known.
    void count_all(long long window_from_ns, long long window_to_ns) {
        count(~0ull, 9223372036854775807ll, {window_from_ns, window_to_ns, 0});
    }
    /// All that another one has.
    void take(request_log&& o) {
        const std::uint64_t listed_from = gaps_.take(std::move(o.gaps_));
        const std::uint64_t spanning_from = spanning_.take(std::move(o.spanning_));
        for (; !o.requests_.empty(); o.requests_.pop_front()) {
            requests_.push_back(std::move(o.requests_.front()));
            finished_request& f = requests_.back();
            if (f.gaps_at != not_listed) f.gaps_at += f.counted ? spanning_from : listed_from;
        }
        pooled_.add(o.pooled_);
        looked_at_ = 0;
    }
    std::deque<finished_request>& requests() { return requests_; }
    const std::deque<finished_request>& requests() const { return requests_; }
    /// Becomes the records of a repeat, in the order of their planned sends. `counted`: all are.
    void move_into(repeat_data& d, bool counted) {
        std::sort(requests_.begin(), requests_.end(),
                  [](const auto& a, const auto& b) { return a.index < b.index; });
        d.records.reserve(requests_.size());
        d.gap_offsets.reserve(requests_.size());
        for (; !requests_.empty(); requests_.pop_front()) {
            finished_request& f = requests_.front();
            d.records.push_back(std::move(f.what));
            d.gap_offsets.push_back(f.gaps_at);
            if (counted) d.longest_gaps.push_back(f.longest_gap_us);
        }
        d.gaps_counted = counted;
        d.gaps = std::move(counted ? spanning_ : gaps_);
        d.pooled_gaps = std::move(pooled_);
    }

private:
    std::deque<finished_request> requests_{};
    gap_list gaps_{}, spanning_{};
    gap_counts pooled_{};
    std::size_t looked_at_ = 0;  // requests, from the front
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C24] whether an answer can have come as its numbers say ==================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Tokens whose time lies between the first event's stamp and the last one's.
inline int paced_tokens(const record& r) { return r.output_tokens - r.first_event_tokens; }

/// Seconds from the send to the first content, and from there to the last.
inline double wait_s(const record& r) {
    return static_cast<double>(r.first_token_ns - r.sent_ns) * 1e-9;
}
inline double spread_s(const record& r) {
    return static_cast<double>(r.last_token_ns - r.first_token_ns) * 1e-9;
}

/// Several tokens an event are what speculative decoding (up to 16 drafts a step, mostly 3 to 8)
/// and schedulers of several steps bring. More is a server that gathers them.
inline constexpr int most_event_tokens = 16;

/// Whether all tokens came at once: one read brought them, or after a wait a few reads of several
/// events each, within a tenth of that wait, as a proxy's whole answer comes. A server that decodes
/// within the client's own turns has few events a read, or lets nobody wait ten times as long; in
/// under 10 ms no more can be told.
inline bool is_in_one_piece(const record& r) {
    if (paced_tokens(r) <= 0) return false;
    if (r.last_token_ns == r.first_token_ns) return true;
    return wait_s(r) >= 0.010 && r.reads > 0 && r.events >= 4 * r.reads &&
           spread_s(r) * 10 <= wait_s(r);
}

/// Seconds that the first read's tokens took before its stamp, as the pace of those after it tells,
/// where they are over 5 % of what came: a tpot knows nothing of that time. Infinite where events
/// bring so many tokens that nothing tells.
inline double hidden_s(const record& r) {
    if (paced_tokens(r) <= 0 || r.events < 2) return 0;
    if (paced_tokens(r) > most_event_tokens * (r.events - 1)) return infinity;
    const int early = r.first_read_events - 1, later = r.events - r.first_read_events;
    if (early <= 0 || later <= 0 || early * 20 <= r.events - 1) return 0;
    return spread_s(r) / later * early;
}
/// Up to 10 ms it was the client that came a little late to a fast server.
inline bool begins_in_a_lump(const record& r) { return hidden_s(r) > 0.010; }

/// How long before its first stamp an answer's tokens may have been generated: never before it was
/// asked for.
inline long long held_back_ns(const record& r) {
    const double waited = wait_s(r);
    const double hidden = is_in_one_piece(r) ? waited : std::min(hidden_s(r), waited);
    return static_cast<long long>(hidden * 1e9);
}

/// Content events that say nothing of when they were generated, as they came in one read with an
/// earlier one. Where reads follow each other within 2 ms, events do come that fast.
inline int events_read_together(const record& r) {
    if (r.reads == 0 || r.events < 2) return 0;
    const bool fast = r.reads > 1 && spread_s(r) < 0.002 * (r.reads - 1);
    return fast && !is_in_one_piece(r) ? 0 : r.events - r.reads;
}

/// Whether usage tells of more tokens than the text can be: each has a byte at least, but for a few
/// special ones. Where nothing is known of the text, the number of events says how many it can be.
inline bool usage_is_over_content(const record& r) {
    if (r.token_source != token_origin::usage) return false;
    if (r.text_bytes > 0) return r.output_tokens > r.text_bytes + most_event_tokens;
    return paced_tokens(r) > most_event_tokens * std::max(r.events - 1, 0);
}

/// Requests that were sent again, where those are over 1 % of the measured ones, failed each: what
/// a server does to one in a hundred of its users is no accident of the moment. Requests of the
/// warm-up are left as they are.
inline void fail_frequent_resends(repeat_data& d) {
    std::size_t measured = 0, resent = 0;
    for (const record& r : d.records) {
        measured += is_measured(r);
        resent += is_measured(r) && r.resends > 0;
    }
    if (resent * 100 <= measured) return;
    for (record& r : d.records) {
        if (!is_measured(r) || r.resends == 0 || r.status != request_status::ok) continue;
        r.status = request_status::connect;
        r.error = "the server closed the kept connection without an answer";
    }
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C25] how a repeat is read where the client may have been late ============================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What came while the client did not run has a stamp that may be too late, and what it was to send
/// then went out too late. `as_measured` takes the stamps as they are. `at_worst` says the worst of
/// the server that they allow: what a pass must withstand. `at_best` takes out all that may have
/// been the client's: what a fail must withstand. `as_held_back` gives tokens that came at once all
/// the time before them that they may have been generated in, `baseline_held_back` those of the
/// baseline alone.
enum class reading : unsigned char {
    as_measured, at_worst, at_best, as_held_back, baseline_held_back
};

/// Of the other arm, where two are compared.
inline reading opposite(reading r) {
    switch (r) {
    case reading::at_worst: return reading::at_best;
    case reading::at_best: return reading::at_worst;
    case reading::baseline_held_back: return reading::as_held_back;
    default: return reading::as_measured;
    }
}

/// A send that is this much late has missed its time.
inline constexpr long long late_send_ns = 10000000;

/// Whether the client may have had a part in what was measured.
inline bool client_had_part(const repeat_data& d) {
    return !d.blind.empty() ||
           std::any_of(d.records.begin(), d.records.end(), [](const record& r) {
               return is_measured(r) && r.late_ns > 1000000;
           });
}

/// Finds where what the client had missed to send went out at once. Until the server has no more of
/// it than before or than usual, and all of that is answered for the first time, it may be late by
/// as much as the latest of those was: a server that got everything that much later would answer
/// everything that much later, and one that gets some of it on time is no slower. To be called when
/// records and stretches are complete.
inline void note_bunches(repeat_data& d) {
    d.bunched.clear();
    const auto matters = [](const blind_stretch& s) { return s.lost_ns >= late_send_ns; };
    if (std::none_of(d.blind.begin(), d.blind.end(), matters)) return;
    std::vector<long long> sends, ends;
    std::vector<std::pair<long long, long long>> late;  // sent, answered for the first time
    for (const record& r : d.records) {
        if (r.dispatched_ns == 0) continue;
        sends.push_back(r.dispatched_ns);
        ends.push_back(r.end_ns);
        late.emplace_back(r.dispatched_ns, r.first_token_ns > 0 ? r.first_token_ns : r.end_ns);
    }
    for (auto* times : {&sends, &ends}) std::sort(times->begin(), times->end());
    std::sort(late.begin(), late.end());
    const auto before = [](const std::vector<long long>& all, long long t) {
        return std::upper_bound(all.begin(), all.end(), t) - all.begin();
    };
    std::vector<long long> in_flight{0};
    for (const long long t : sends) in_flight.push_back(before(sends, t) - before(ends, t));
    const auto middle = in_flight.begin() + static_cast<std::ptrdiff_t>(in_flight.size() / 2);
    std::nth_element(in_flight.begin(), middle, in_flight.end());
    const long long usual = *middle;
    for (const blind_stretch& s : d.blind) {
        if (!matters(s)) continue;
        if (!d.bunched.empty() && s.from_ns < d.bunched.back().to_ns) {
            // What the server had before is known of the first one alone.
            d.bunched.back().to_ns = std::max(d.bunched.back().to_ns, s.to_ns);
        } else if (before(sends, s.to_ns) - before(sends, s.from_ns + late_send_ns) < 2) {
            continue;  // one late send is no bunch
        } else {
            d.bunched.push_back({s.from_ns, s.to_ns, 0, 0});
        }
        blind_stretch& b = d.bunched.back();
        b.most_delay_ns = std::max(b.most_delay_ns, s.most_delay_ns);
        for (auto l = std::upper_bound(late.begin(), late.end(),
                                       std::pair{s.from_ns, 9223372036854775807ll});
             l != late.end() && l->first <= s.to_ns; ++l)
            b.to_ns = std::max(b.to_ns, l->second);
        const auto had = std::max<long long>(
            usual, before(sends, b.from_ns) - before(ends, b.from_ns));
        for (auto e = std::upper_bound(ends.begin(), ends.end(), b.to_ns);
             e != ends.end() && before(sends, b.to_ns) - before(ends, b.to_ns) > had; ++e)
            b.to_ns = *e;
    }
}

/// The times of one completed request that its metrics are made of, nanoseconds.
struct request_times {
    long long to_first = 0, to_end = 0;  // since it was to be sent
    long long sent_to_first = 0, first_to_last = 0;
};
inline request_times times_of(const repeat_data& d, const record& r,
                              reading how = reading::as_measured) {
    request_times t{r.first_token_ns - r.scheduled_ns, r.end_ns - r.scheduled_ns,
                    r.first_token_ns - r.sent_ns, r.last_token_ns - r.first_token_ns};
    if (how == reading::at_worst) {
        // Times since it was to be sent have the client's delay in them already.
        t.first_to_last += possible_delay(d.blind, r.first_token_ns);
    } else if (how == reading::as_held_back) {
        t.first_to_last += held_back_ns(r);
    } else if (how == reading::at_best) {
        const long long first = possible_delay(d.blind, r.first_token_ns);
        const long long bunch = most_delay_between(d.bunched, r.dispatched_ns, r.end_ns);
        const long long sending =
            std::max(r.late_ns + lost_between(d.blind, r.dispatched_ns, r.sent_ns), bunch);
        const auto without = [](long long& time, long long delay) {
            time = std::max(std::min(time, 0ll), time - delay);
        };
        without(t.to_first, sending + first);
        without(t.to_end, sending + possible_delay(d.blind, r.end_ns));
        without(t.sent_to_first, bunch + first);
        without(t.first_to_last, bunch + possible_delay(d.blind, r.last_token_ns));
    }
    return t;
}

/// Gaps whose events may all have come at other times, from one event that is certain to the next:
/// together they are as long as measured.
class uncertain_gaps {
public:
    void add(std::uint32_t us, long long delay_ns) {
        together_us_ += us;
        each_us_.push_back(us + static_cast<double>(delay_ns) / 1000);
    }
    void begin_earlier(long long delay_ns) { together_us_ += static_cast<double>(delay_ns) / 1000; }
    /// `f(us)` for the longest gaps that there can have been. That many of a length need that much
    /// of the time: the k-th longest is no longer than its k-th part.
    template <class F>
    void each_at_worst(F&& f) {
        std::sort(each_us_.begin(), each_us_.end(), std::greater<>());
        for (std::size_t k = 0; k < each_us_.size(); ++k)
            f(static_cast<std::uint32_t>(std::min(
                std::round(std::min(each_us_[k], together_us_ / static_cast<double>(k + 1))),
                4294967295.0)));
        each_us_.clear();
        together_us_ = 0;
    }

private:
    std::vector<double> each_us_{};
    double together_us_ = 0;
};

/// `f(us)` for the longest gaps that a request's tokens can have had that came at once, with others
/// or first of all.
template <class F>
void each_held_back_gap(const repeat_data& d, std::size_t i, F&& f) {
    const record& r = d.records[i];
    const long long any = 3600 * 1000000000ll;  // no gap of its own, but those before it limit it
    uncertain_gaps open;
    open.begin_earlier(held_back_ns(r));
    for (std::size_t k = 0; k < gap_count(r); ++k) {
        const std::uint32_t us = d.gaps[d.gap_offsets[i] + k];
        if (us > 0) open.each_at_worst(f);
        open.add(us, any);
    }
    open.each_at_worst(f);
}

/// `f(us)` for each gap of one request that has them listed.
template <class F>
void for_each_gap(const repeat_data& d, std::size_t i, reading how, F&& f) {
    const record& r = d.records[i];
    const std::size_t n = gap_count(r);
    if (n == 0) return;
    const std::uint64_t from = d.gap_offsets[i];
    const bool bunched = how == reading::at_best &&
                         is_blind_between(d.bunched, r.first_token_ns, r.last_token_ns + 1);
    if (how == reading::as_held_back) return each_held_back_gap(d, i, f);
    if (how == reading::as_measured || how == reading::baseline_held_back ||
        (!bunched && !is_blind_between(d.blind, r.first_token_ns - 1, r.last_token_ns + 1))) {
        for (std::size_t k = 0; k < n; ++k) f(d.gaps[from + k]);
        return;
    }
    long long stamp = r.first_token_ns;
    uncertain_gaps open;
    long long delay = possible_delay(d.blind, stamp);
    open.begin_earlier(delay);
    for (std::size_t k = 0; k < n; ++k) {
        const std::uint32_t us = d.gaps[from + k];
        stamp += us * 1000ll;
        const long long next = possible_delay(d.blind, stamp);
        if (how == reading::at_best) {
            const bool other = bunched && is_blind_between(d.bunched, stamp - 1, stamp);
            f(other ? 0u : us - static_cast<std::uint32_t>(std::min<long long>(us, next / 1000)));
        } else {
            open.add(us, delay);
            if (next == 0) open.each_at_worst(f);
        }
        delay = next;
    }
    open.each_at_worst(f);
}

/// Where gaps were counted: how many of a repeat's may be others than was measured, and by how much
/// at most.
struct moved_gaps {
    std::uint64_t count = 0;
    double most_us = 0;
};
inline moved_gaps moved_gaps_of(const repeat_data& d) {
    moved_gaps m;
    for (const record& r : d.records) {
        if (!is_pooled(r) || gap_count(r) == 0) continue;
        const double mean_ns = static_cast<double>(r.last_token_ns - r.first_token_ns) /
                               static_cast<double>(gap_count(r));
        for (auto s = first_after(d.blind, r.first_token_ns);
             s != d.blind.end() && s->from_ns < r.last_token_ns; ++s) {
            const double events = static_cast<double>(s->to_ns - s->from_ns) /
                                  std::max(mean_ns, 1.0);
            m.count += 2 + static_cast<std::uint64_t>(
                               std::min(events, static_cast<double>(gap_count(r))));
            m.most_us = std::max(m.most_us, static_cast<double>(s->most_delay_ns) / 1000);
        }
    }
    return m;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C26] metrics of requests and of repeats ==================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The longest gap of one request, 0 where it has none.
inline double longest_gap(const repeat_data& d, std::size_t i,
                          reading how = reading::as_measured) {
    const record& r = d.records[i];
    if (d.gaps_counted) {
        const double delay = static_cast<double>(most_delay_between(
                                 d.blind, r.first_token_ns - 1, r.last_token_ns)) / 1e9;
        const double measured = d.longest_gaps[i] / 1e6;
        switch (how) {
        case reading::at_worst: return measured + (gap_count(r) > 0 ? delay : 0);
        case reading::at_best: return std::max(0.0, measured - delay);
        case reading::as_held_back:
            return std::max(measured, static_cast<double>(held_back_ns(r)) / 1e9);
        default: return measured;
        }
    }
    std::uint32_t longest = 0;
    for_each_gap(d, i, how, [&](std::uint32_t us) { longest = std::max(longest, us); });
    return longest / 1e6;
}

/// A metric of one completed request in SI units, NaN where it has none.
inline double request_value(metric_id m, const repeat_data& d, std::size_t i,
                            reading how = reading::as_measured) {
    const record& r = d.records[i];
    const request_times t = times_of(d, r, how);
    // Divided, as the limits are written: a time on its limit is equal to it.
    const auto seconds = [](long long ns) { return static_cast<double>(ns) / 1e9; };
    const double ttft_s = seconds(t.to_first);
    const double e2e_s = seconds(t.to_end);
    const int after_first = r.output_tokens - r.first_event_tokens;
    const double tpot_s =
        after_first > 0 ? seconds(t.first_to_last) / after_first : not_a_number;
    // What took no time has no speed, but where the time is what the client may have taken away.
    const auto speed = [&](double n, double s) {
        return s > 0 ? n / s : s == 0 && how == reading::at_best ? infinity : not_a_number;
    };
    switch (m) {
    case metric_id::ttft: return ttft_s;
    case metric_id::tpot: return tpot_s;
    case metric_id::itl: return longest_gap(d, i, how);  // of one request: in predicates
    case metric_id::e2e: return e2e_s;
    case metric_id::normalized_latency:
        return r.output_tokens > 0 ? e2e_s / r.output_tokens : not_a_number;
    case metric_id::ttft_per_prompt_token:
        return r.prompt_tokens > 0 ? ttft_s / r.prompt_tokens : not_a_number;
    case metric_id::ttft_from_send: return seconds(t.sent_to_first);
    case metric_id::first_turn_ttft: return r.turn == 0 ? ttft_s : not_a_number;
    case metric_id::later_turn_ttft: return r.turn > 0 ? ttft_s : not_a_number;
    case metric_id::prefill_speed:
        return r.prompt_tokens > 0 ? speed(r.prompt_tokens, ttft_s) : not_a_number;
    case metric_id::decode_speed: return speed(1, tpot_s);
    default: return not_a_number;
    }
}

/// Whether a completed request brought what the metric needs of it.
inline bool has_value(metric_id m, const repeat_data& d, std::size_t i) {
    const metric_facts& f = facts_of(m);
    if (f.needs == value_needs::prompt_tokens) return d.records[i].prompt_tokens > 0;
    if (f.needs == value_needs::second_event) return gap_count(d.records[i]) > 0;
    return f.needs == value_needs::nothing || !std::isnan(request_value(m, d, i));
}

/// Values of a per-request metric in one repeat. Failed requests have no value but are counted: in
/// quantiles they are the worst one.
struct metric_sample {
    std::vector<double> values{};
    std::size_t failed = 0;
    std::size_t without_value = 0;
};
inline metric_sample sample_of(metric_id m, const repeat_data& d,
                               reading how = reading::as_measured) {
    metric_sample s;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        const record& r = d.records[i];
        if (!is_part_of(m, r)) continue;
        if (r.status != request_status::ok) {
            ++s.failed;
        } else if (!facts_of(m).is_of_gaps) {  // whose values are pooled, see ranked_gaps
            const double v = request_value(m, d, i, how);
            if (std::isnan(v)) ++s.without_value;
            else s.values.push_back(v);
        }
    }
    return s;
}

/// Values of a metric in the order of the planned sends; failed requests have the worst one.
inline std::vector<double> values_in_order(metric_id id, const repeat_data& d,
                                           reading how = reading::as_measured) {
    std::vector<double> values;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        if (!is_part_of(id, d.records[i])) continue;
        const bool ok = d.records[i].status == request_status::ok;
        const double v = ok ? request_value(id, d, i, how) : is_speed(id) ? 0 : infinity;
        if (!std::isnan(v)) values.push_back(v);
    }
    return values;
}

/// Whether one measured request satisfies a predicate. Failed ones never do; a metric that the
/// request has no value for is satisfied.
inline bool satisfies(const list<predicate_step>& steps, const repeat_data& d, std::size_t i,
                      reading how = reading::as_measured) {
    if (d.records[i].status != request_status::ok) return false;
    std::vector<bool> stack;
    for (const predicate_step& s : steps) {
        if (s.op == predicate_step::op_kind::compare) {
            const double v = request_value(s.metric, d, i, how);
            stack.push_back(std::isnan(v) || (s.at_most ? v <= s.bound : v >= s.bound));
            continue;
        }
        const bool b = stack.back();
        stack.pop_back();
        stack.back() =
            s.op == predicate_step::op_kind::both ? (stack.back() && b) : (stack.back() || b);
    }
    return stack.back();
}

/// Misses of a share metric, one per measured request in order.
inline std::vector<bool> misses_of(const statistic_data& what, const repeat_data& d,
                                   reading how = reading::as_measured) {
    std::vector<bool> misses;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        if (!is_measured(d.records[i])) continue;
        misses.push_back(what.metric == metric_id::goodput
                             ? !satisfies(what.where, d, i, how)
                             : d.records[i].status != request_status::ok);
    }
    return misses;
}

inline double window_seconds(const repeat_data& d) {
    return static_cast<double>(d.window_to_ns - d.window_from_ns) * 1e-9;
}
/// Tokens or requests per second inside the steady window. An event weighs its request's output
/// tokens over its events; failed requests bring nothing; warm-up requests count when their tokens
/// arrive inside. Of decoding, an event after the first one weighs those tokens over those events.
/// Prompt tokens arrive with the first token; where no request tells them there is no value.
/// At worst, nothing counts that may have come before the window; at best, all that may have come
/// before its end, in as much of it as the client surely ran.
inline double window_rate(metric_id m, const repeat_data& d, reading how = reading::as_measured) {
    const long long from = d.window_from_ns, to = d.window_to_ns;
    if (to <= from) return not_a_number;
    const long long lost = how == reading::at_best ? lost_between(d.blind, from, to) : 0;
    if (lost >= to - from) return infinity;
    const double seconds = static_cast<double>(to - from - lost) * 1e-9;
    const auto inside = [&](long long t) {
        if (how == reading::at_worst) return t < to && t - possible_delay(d.blind, t) >= from;
        if (how == reading::at_best && t >= to) return t - possible_delay(d.blind, t) < to;
        return t >= from && t < to;
    };
    bool prompts_told = m != metric_id::prefill_throughput;
    std::vector<double> parts;  // added up in order of size, whatever that of the records is
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        const record& r = d.records[i];
        if (r.status != request_status::ok) continue;
        if (m == metric_id::request_throughput) {
            parts.push_back(inside(r.end_ns));
            continue;
        }
        const bool decodes = m == metric_id::decode_throughput;
        prompts_told = prompts_told || r.prompt_tokens > 0;
        if ((m == metric_id::total_throughput || m == metric_id::prefill_throughput) &&
            inside(r.first_token_ns))
            parts.push_back(r.prompt_tokens);
        if (m == metric_id::prefill_throughput || (decodes && r.events < 2)) continue;
        const double weight =
            decodes ? std::max(r.output_tokens - r.first_event_tokens, 0) / (r.events - 1.0)
                    : static_cast<double>(r.output_tokens) / r.events;
        long long offset_us = 0;
        long long arrived = !decodes && inside(r.first_token_ns);
        if (d.gap_offsets[i] == not_listed)  // all of them, or none
            arrived = inside(r.first_token_ns) ? r.events - decodes : 0;
        else
            for (std::size_t k = 0; k < gap_count(r); ++k) {
                offset_us += d.gaps[d.gap_offsets[i] + k];
                arrived += inside(r.first_token_ns + offset_us * 1000);
            }
        parts.push_back(weight * static_cast<double>(arrived));
    }
    if (!prompts_told && !parts.empty()) return not_a_number;
    std::sort(parts.begin(), parts.end());
    double sum = 0;
    for (const double part : parts) sum += part;
    return sum / seconds;
}

/// The pooled gaps of repeats by rank. There may be too many for a sorted copy: how often each
/// value below a second occurs is counted, a longer one or one of few is sorted in.
class ranked_gaps {
public:
    ranked_gaps() = default;
    explicit ranked_gaps(const repeat_data& d, reading how = reading::as_measured)
        : counts_(d.pooled_gaps), how_(how) {
        if (d.gaps_counted && how != reading::as_measured) moved_ = moved_gaps_of(d);
        if (d.gaps_counted) return;
        std::uint32_t longest = 0;
        const auto each = [&](auto&& f) {
            for (std::size_t i = 0; i < d.records.size(); ++i)
                if (is_pooled(d.records[i])) for_each_gap(d, i, how, f);
        };
        each([&](std::uint32_t us) { ++n_; longest = std::max(longest, us); });
        short_.resize(std::min<std::uint64_t>({n_, std::uint64_t{longest} + 1, 1000000}));
        each([&](std::uint32_t us) {
            sum_us_ += us;
            if (us < short_.size()) ++short_[us];
            else long_.push_back(us);
        });
        std::sort(long_.begin(), long_.end());
    }
    /// Those of another repeat. Where either has them in classes alone, both do from then on.
    void add(const ranked_gaps& o) {
        if (counts_.size() + o.counts_.size() > 0) {
            gap_counts all = in_classes();
            all.add(o.in_classes());
            const moved_gaps moved{moved_.count + o.moved_.count,
                                   std::max(moved_.most_us, o.moved_.most_us)};
            *this = ranked_gaps();
            counts_ = std::move(all);
            how_ = o.how_;
            moved_ = moved;
            return;
        }
        n_ += o.n_;
        sum_us_ += o.sum_us_;
        short_.resize(std::max(short_.size(), o.short_.size()));
        for (std::size_t us = 0; us < o.short_.size(); ++us) short_[us] += o.short_[us];
        std::vector<std::uint32_t> longer;
        for (const std::vector<std::uint32_t>* of : {&std::as_const(long_), &o.long_})
            for (const std::uint32_t us : *of)
                if (us < short_.size()) ++short_[us];
                else longer.push_back(us);
        std::sort(longer.begin(), longer.end());
        long_ = std::move(longer);
    }
    std::uint64_t size() const { return n_ + counts_.size(); }
    /// Seconds.
    double at(std::uint64_t rank) const {
        if (counts_.size() > 0) return counted_at(rank) / 1e6;
        for (std::size_t us = 0; us < short_.size(); ++us) {
            if (rank < short_[us]) return static_cast<double>(us) / 1e6;
            rank -= short_[us];
        }
        return long_[rank] / 1e6;
    }
    double mean() const {
        return size() == 0 ? not_a_number
                           : static_cast<double>(sum_us_ + counts_.sum_us()) /
                                 static_cast<double>(size()) / 1e6;
    }

private:
    gap_counts in_classes() const {
        gap_counts all = counts_;
        for (std::size_t us = 0; us < short_.size(); ++us)
            if (short_[us] > 0) all.add(static_cast<std::uint32_t>(us), short_[us]);
        for (const std::uint32_t us : long_) all.add(us);
        return all;
    }
    /// Which of the counted ones were moved is not known: at best the longest, at worst any.
    double counted_at(std::uint64_t rank) const {
        const std::uint64_t moved = std::min(moved_.count, counts_.size());
        if (how_ == reading::at_best) return rank < moved ? 0 : counts_.at(rank - moved);
        return rank + moved < counts_.size() ? counts_.at(rank + moved)
                                             : counts_.at(counts_.size() - 1) + moved_.most_us;
    }

    gap_counts counts_{};
    reading how_ = reading::as_measured;
    moved_gaps moved_{};
    std::vector<std::uint64_t> short_{};
    std::vector<std::uint32_t> long_{};
    std::uint64_t n_ = 0, sum_us_ = 0;
};

/// The values of a metric in order of size, the failed requests' infinite or zero ones among them.
struct sorted_values {
    std::vector<double> all{};
    ranked_gaps gaps{};  // of itl; then `all` has the failed ones alone, which come after them
    double mean_of_completed = not_a_number;
    std::size_t completed = 0;  // values that the mean is of, but for those of gaps
    /// Those of another repeat.
    void add(const sorted_values& o) {
        std::vector<double> both(all.size() + o.all.size());
        std::merge(all.begin(), all.end(), o.all.begin(), o.all.end(), both.begin());
        all = std::move(both);
        gaps.add(o.gaps);
        const auto of_both = {std::pair(mean_of_completed, static_cast<double>(completed)),
                              std::pair(o.mean_of_completed, static_cast<double>(o.completed))};
        mean_of_completed = gaps.size() > 0 ? gaps.mean() : weighted_mean(of_both);
        completed += o.completed;
    }
    std::size_t size() const { return gaps.size() + all.size(); }
    double at(std::size_t rank) const {
        return rank < gaps.size() ? gaps.at(rank) : all[rank - gaps.size()];
    }
};
/// The mean gap where the client may have moved the first and the last event of some requests; what
/// lies between those leaves it as it is.
inline double moved_mean_gap(const repeat_data& d, reading how) {
    double seconds = 0, n = 0;
    for (const record& r : d.records) {
        if (!is_pooled(r) || gap_count(r) == 0) continue;
        seconds += static_cast<double>(times_of(d, r, how).first_to_last) / 1e9;
        n += static_cast<double>(gap_count(r));
    }
    return n > 0 ? seconds / n : not_a_number;
}
inline sorted_values sorted_values_of(metric_id m, const repeat_data& d,
                                      reading how = reading::as_measured) {
    metric_sample s = sample_of(m, d, how);
    sorted_values v;
    if (facts_of(m).is_of_gaps) {
        v.gaps = ranked_gaps(d, how);
        v.mean_of_completed =
            how == reading::as_measured ? v.gaps.mean() : moved_mean_gap(d, how);
    } else {
        std::sort(s.values.begin(), s.values.end());
        v.mean_of_completed = mean_of(s.values);  // in this order, whatever that of the records is
        v.completed = s.values.size();
    }
    s.values.insert(is_speed(m) ? s.values.begin() : s.values.end(), s.failed,
                    is_speed(m) ? 0.0 : infinity);
    v.all = std::move(s.values);
    return v;
}
/// The share of the values that are over a bound.
inline double share_beyond(const sorted_values& v, double bound) {
    std::size_t low = 0, high = v.size();
    while (low < high) {
        const std::size_t mid = low + (high - low) / 2;
        if (v.at(mid) > bound) high = mid;
        else low = mid + 1;
    }
    return v.size() == 0 ? 0 : static_cast<double>(v.size() - low) / static_cast<double>(v.size());
}
/// Where a percentile or an extreme stands among so many values in order of size.
inline std::size_t rank_of(const statistic_data& what, std::size_t size) {
    if (what.kind == statistic_kind::max) return size - 1;
    return what.kind == statistic_kind::min ? 0 : nearest_rank_of(size, what.q);
}
inline double value_among(const statistic_data& what, const sorted_values& v) {
    if (what.kind == statistic_kind::mean) return v.mean_of_completed;
    return v.size() == 0 ? not_a_number : v.at(rank_of(what, v.size()));
}
/// The same of values in any order, which are ordered no further than this takes.
inline double value_among(const statistic_data& what, metric_sample& s) {
    std::vector<double>& v = s.values;
    if (what.kind == statistic_kind::mean) {
        std::sort(v.begin(), v.end());
        return mean_of(v);  // in this order, whatever that of the records is
    }
    if (v.size() + s.failed == 0) return not_a_number;
    const std::size_t rank = rank_of(what, v.size() + s.failed);
    const std::size_t zeros = is_speed(what.metric) ? s.failed : 0;
    if (rank < zeros) return 0;
    if (rank - zeros >= v.size()) return infinity;
    const auto at = v.begin() + static_cast<std::ptrdiff_t>(rank - zeros);
    std::nth_element(v.begin(), at, v.end());
    return *at;
}

/// Requests that a share is of, and those of them that missed.
struct share_counts {
    double misses = 0, all = 0;
    void add(const std::vector<bool>& more) {
        misses += static_cast<double>(std::count(more.begin(), more.end(), true));
        all += static_cast<double>(more.size());
    }
    double value(metric_id m) const {
        if (all == 0) return not_a_number;
        return m == metric_id::goodput ? 1 - misses / all : misses / all;
    }
};

/// The value of a statistic in one repeat, SI units; NaN where it has none.
inline double evaluate(const statistic_data& what, const repeat_data& d,
                       reading how = reading::as_measured) {
    if (is_share(what.metric)) {
        share_counts share;
        share.add(misses_of(what, d, how));
        return share.value(what.metric);
    }
    if (is_throughput(what.metric)) return window_rate(what.metric, d, how);
    if (is_of_start(what.metric)) return d.startup_s;
    if (facts_of(what.metric).is_of_gaps)
        return value_among(what, sorted_values_of(what.metric, d, how));
    metric_sample sample = sample_of(what.metric, d, how);
    return value_among(what, sample);
}

/// Several at once: neighbours of one metric share the sorting, which takes most of the time.
inline std::vector<double> evaluate(const std::vector<statistic_data>& whats,
                                    const repeat_data& d) {
    std::vector<double> values;
    sorted_values sorted;
    for (std::size_t i = 0; i < whats.size(); ++i) {
        const metric_id m = whats[i].metric;
        if (!is_of_requests(m)) { values.push_back(evaluate(whats[i], d)); continue; }
        if (i == 0 || whats[i - 1].metric != m) sorted = sorted_values_of(m, d);
        values.push_back(value_among(whats[i], sorted));
    }
    return values;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C27] statistics of several repeats together ==============================================
// The data as a whole, as tables and files show them: the largest value of all repeats, a
// percentile of all their requests, a mean over all of them. It is never outside of what the single
// repeats have.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A statistic in each repeat of an arm, NaN where it has none, and in all of them together.
struct arm_values {
    std::vector<double> each{};
    double together = not_a_number;
};

/// Of times and speeds: a percentile is selected among the values of all repeats.
inline arm_values values_of_requests(const statistic_data& what,
                                     const std::vector<repeat_data>& arm, reading how) {
    arm_values v;
    metric_sample all;
    std::vector<std::pair<double, double>> means;  // and how many values each is of
    for (const repeat_data& d : arm) {
        metric_sample s = sample_of(what.metric, d, how);
        v.each.push_back(value_among(what, s));
        means.emplace_back(v.each.back(), static_cast<double>(s.values.size()));
        all.failed += s.failed;
        if (what.kind != statistic_kind::mean)
            all.values.insert(all.values.end(), s.values.begin(), s.values.end());
    }
    v.together = what.kind == statistic_kind::mean ? weighted_mean(means) : value_among(what, all);
    return v;
}
/// Of gaps, which are not copied.
inline arm_values values_of_gaps(const statistic_data& what, const std::vector<repeat_data>& arm,
                                 reading how) {
    arm_values v;
    sorted_values all;
    std::vector<std::pair<double, double>> means;  // and how many gaps each is of
    for (const repeat_data& d : arm) {
        const sorted_values one = sorted_values_of(what.metric, d, how);
        v.each.push_back(value_among(what, one));
        means.emplace_back(one.mean_of_completed, static_cast<double>(one.gaps.size()));
        all.add(one);
    }
    const bool is_moved = what.kind == statistic_kind::mean && how != reading::as_measured;
    v.together = is_moved ? weighted_mean(means) : value_among(what, all);
    return v;
}
/// A throughput is over the windows of all repeats, a share of all their requests, a time to start
/// the mean of the starts.
inline arm_values values_of(const statistic_data& what, const std::vector<repeat_data>& arm,
                            reading how = reading::as_measured) {
    if (facts_of(what.metric).is_of_gaps) return values_of_gaps(what, arm, how);
    if (is_of_requests(what.metric)) return values_of_requests(what, arm, how);
    arm_values v;
    share_counts counts;
    std::vector<std::pair<double, double>> weighted;
    for (const repeat_data& d : arm) {
        if (is_share(what.metric)) {
            share_counts own;
            own.add(misses_of(what, d, how));
            v.each.push_back(own.value(what.metric));
            counts.misses += own.misses;
            counts.all += own.all;
            continue;
        }
        v.each.push_back(evaluate(what, d, how));
        weighted.emplace_back(v.each.back(),
                              is_throughput(what.metric) ? window_seconds(d) : 1.0);
    }
    v.together = is_share(what.metric) ? counts.value(what.metric) : weighted_mean(weighted);
    return v;
}
inline double pooled_value(const statistic_data& what, const std::vector<repeat_data>& arm,
                           reading how = reading::as_measured) {
    return values_of(what, arm, how).together;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C28] what a server's prefix cache had of the prompts =====================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Prompt tokens of the requests for which the server says what its prefix cache had of them.
struct prefix_hits {
    double cached = 0, prompt = 0;
    /// 0 where the server does not say.
    double share() const { return prompt > 0 ? cached / prompt : 0; }
};
inline prefix_hits prefix_hits_of(const std::vector<repeat_data>& arm) {
    prefix_hits sum;
    for (const repeat_data& d : arm)
        for (const record& r : d.records) {
            if (!is_measured(r) || r.cached_tokens < 0 || r.prompt_tokens <= 0) continue;
            sum.cached += r.cached_tokens;
            sum.prompt += r.prompt_tokens;
        }
    return sum;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C29] what verdicts are given on ==========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A repeat, or an arm of a pair, that is no evidence: another was measured in its place, because
/// the client had had too great a part in it.
struct set_aside_repeat {
    run_arm arm = run_arm::candidate;
    int index = 0;
    std::string why{};
};

/// Under which load evidence was found, as far as its validity depends on it.
struct load_conditions {
    // Squared coefficient of variation of the gaps between planned sends, NaN where the load grows
    // or bursts by design.
    double arrival_cv2 = not_a_number;
    bool short_outputs_expected = false;  // outputs of one token were asked for
    bool spins = false;                   // the client was told to burn its core
    std::string stopped{};                // why there are fewer repeats than planned
    std::vector<set_aside_repeat> set_aside{};
};

/// All that was seen of a gate's servers. Nothing in it is judged, and nothing that it is held
/// against is part of it.
struct evidence : load_conditions {
    std::vector<repeat_data> candidate{};  // of fresh traffic: stages of n, n and 2n requests
    std::vector<repeat_data>
        baseline{};  // as many, where there is one: pair i is (candidate i, baseline i)
    bool has_live_baseline() const { return !baseline.empty(); }
};

template <class F>
void for_each_repeat(const evidence& e, F&& f) {
    for (const auto* arm : {&e.candidate, &e.baseline})
        for (const repeat_data& d : *arm) f(d);
}

inline long long measured_requests(const evidence& e, std::size_t repeats) {
    long long n = 0;
    for (std::size_t i = 0; i < std::min(repeats, e.candidate.size()); ++i)
        n += std::count_if(e.candidate[i].records.begin(), e.candidate[i].records.end(),
                           is_measured);
    return n;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C30] the rule: looks, bounds, prior noise ================================================
// No clock and no randomness: the same records give the same verdicts, bit for bit.

namespace llmbench {
inline namespace v0 {
namespace detail {

// Run-to-run noise that a handful of repeats cannot measure is believed to be at least this much:
// moderated variance as in Smyth (2004), with 8 prior degrees of freedom.
inline constexpr double prior_sd = 0.04;
inline constexpr double prior_startup_sd = 0.10;
inline constexpr double prior_df = 8;
inline constexpr double noisy_sd = 0.05, noisy_df = 3;  // what is believed of a noisy machine
inline constexpr int first_look = 2, last_look = 5;
inline constexpr int first_fail = 3;  // two repeats hardly know their own spread: red takes a third
inline constexpr int first_pair_look = 4, last_pair_look = 8;
inline constexpr int last_noisy_pair_look = 12;  // where eight spread by more than is believed
inline constexpr int last_stage = 3;  // of fresh traffic: n, 2n and 4n requests
inline constexpr double four_in_five = 0.8416;  // normal quantile of 80 %

/// How sure a gate's verdicts must be. A verdict may come at any look, the levels hold for all of
/// them: its bounds lie z standard errors away, z from pocock_constant.
struct judging_rule {
    traffic_mode traffic = replayed;
    int looks = 5;  // at least as many as there will be; five is the least, for heavy tails
    int most = last_look;  // repeats, pairs or stages at the last look
    double pass_level = 0.05, fail_level = 0.01;
    double pass_z = 2.12, fail_z = 2.80;  // Pocock's 2.122 for 5 %; a little over his 2.754 for 1 %
    double half_fail_z = 2.99;            // for half of 1 %: a share can fail in two ways
    bool holm = false;
    /// The same at another level of false fails.
    judging_rule failing_at(double level) const {
        judging_rule r = *this;
        r.fail_level = level;
        r.fail_z = std::max(fail_z, pocock_constant(looks, level));
        r.half_fail_z = std::max(half_fail_z, pocock_constant(looks, level / 2));
        return r;
    }
};
inline double half_fail_z_of(int looks, double fail_level) {
    const judging_rule usual;
    return looks == usual.looks && fail_level == usual.fail_level
               ? usual.half_fail_z
               : pocock_constant(looks, fail_level / 2);
}
/// `more_looks`: those after `most` repeats.
inline judging_rule rule_of(const judging_options& o, traffic_mode traffic, int first, int most,
                            int more_looks = 0) {
    judging_rule r;
    r.traffic = traffic;
    r.looks = std::max(5, most - first + 1 + more_looks);
    r.most = most;
    r.pass_level = o.false_pass.fraction;
    r.fail_level = o.false_fail.fraction;
    r.holm = o.holm;
    r.half_fail_z = half_fail_z_of(r.looks, r.fail_level);
    const bool usual = r.looks <= 6 && r.pass_level == 0.05 && r.fail_level == 0.01;
    if (usual && r.looks == 6) r.pass_z = 2.17;  // a little over 2.164, as 2.80 is over 2.792
    if (usual) return r;
    r.pass_z = pocock_constant(r.looks, r.pass_level);
    r.fail_z = pocock_constant(r.looks, r.fail_level);
    return r;
}
/// What a rule calls one of the things that it counts.
inline const char* repeat_word(const judging_rule& r, bool in_pairs) {
    return r.traffic == fresh ? "stage" : in_pairs ? "pair" : "repeat";
}

inline constexpr const char* method_counts = "Clopper-Pearson on counts";
inline constexpr const char* method_misses = "counted misses";  // where failures reach a statistic

/// Whether a verdict is on all requests of its repeats, and not on a statistic of each.
inline bool is_counted(const slo_verdict& v) {
    return str(v.method) == method_counts || str(v.method) == method_misses;
}

/// What judging an objective begins with: nothing is known and nothing decided.
inline slo_verdict undecided(const slo& s) {
    slo_verdict v;
    v.what = s;
    v.outcome = verdict::inconclusive;
    v.measured = not_a_number;
    v.estimate = {not_a_number, not_a_number, not_a_number};
    return v;
}

/// Values as the arithmetic of a verdict lists them.
inline std::string listed(const std::vector<double>& values) {
    std::string out;
    for (const double v : values) out += (out.empty() ? "" : ", ") + printed("%.6g", v);
    return out;
}

/// What a look takes for the noise: what is believed, moderated by what was measured; what is
/// believed of a noisy machine, in the same way; or what was measured alone.
enum class spread_of : unsigned char { moderated, noisy, measured };
inline const char* to_string(spread_of s) {
    switch (s) {
    case spread_of::moderated: return "moderated";
    case spread_of::noisy: return "noisy";
    case spread_of::measured: break;
    }
    return "as measured";
}

/// The state of one look: distances of ln(statistic) from ln(limit), negative where the SLO is met.
struct look {
    verdict outcome = verdict::inconclusive;
    double mean = 0, sd = 0, df = 0, se = 0, pass_t = 0, fail_t = 0;
    double prior_df = 0, prior_sd = 0, pass_bound = 0, fail_bound = 0, detectable = 0;
    spread_of spread = spread_of::moderated;
};
/// The verdict that mean, standard error and degrees of freedom allow.
inline void decide(look& l, const judging_rule& rule) {
    l.pass_t = student_t_quantile(normal_cdf(rule.pass_z), l.df);
    l.fail_t = student_t_quantile(normal_cdf(rule.fail_z), l.df);
    l.pass_bound = l.mean + l.pass_t * l.se;
    l.fail_bound = l.mean - l.fail_t * l.se;
    // A true distance this far over the limit is shown in four runs of five.
    l.detectable = std::expm1((l.fail_t + four_in_five) * l.se);
    if (l.pass_bound < 0) l.outcome = verdict::pass;
    else if (l.fail_bound > 0) l.outcome = verdict::fail;
}

/// The stored side of a comparison: its repeats, their variance, and what days differ by.
struct stored_side {
    double repeats = 0, variance = 0, day_sd = 0;
};

inline look look_at(const std::vector<double>& distances, double s0, const judging_rule& rule = {},
                    const stored_side& other = {}) {
    look l;
    const double n = static_cast<double>(distances.size());
    const double variance = sample_variance(distances);
    const double own_df = n - 1 + std::max(0.0, other.repeats - 1);
    const double squares =
        (n - 1) * variance + std::max(0.0, other.repeats - 1) * other.variance;
    const double measured_variance = own_df > 0 ? squares / own_df : 0;
    l.mean = mean_of(distances);
    // Noisy is what a machine of that noise would show in one run of twenty at most.
    const double quiet_sd = s0 * (noisy_sd / prior_sd);
    const bool is_quiet = own_df <= 0 || measured_variance * own_df <=
                                             quiet_sd * quiet_sd * chi_square_95(own_df);
    l.spread = is_quiet ? spread_of::moderated : spread_of::noisy;
    l.prior_df = is_quiet ? prior_df : noisy_df;
    l.prior_sd = is_quiet ? s0 : quiet_sd;
    l.df = l.prior_df + own_df;
    l.sd = std::sqrt((l.prior_df * l.prior_sd * l.prior_sd + squares) / l.df);
    const double shares = 1 / n + (other.repeats > 0 ? 1 / other.repeats : 0);
    l.se = std::sqrt(l.sd * l.sd * shares + other.day_sd * other.day_sd);
    decide(l, rule);
    return l;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C31] what evidence is held against =======================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// An earlier run's statistics, one value a repeat, under their names.
struct stored_baseline {
    std::string file{};
    double day_sd = 0;
    std::map<std::string, std::vector<double>> values{};
};

/// The objectives of a gate, and how sure of them it must be. The same evidence can be held against
/// other terms.
struct terms {
    std::vector<slo> slos{};
    judging_rule rule{};
    std::map<std::string, double> noise{};  // calibrated sd of the log statistic, under its name
    std::string noise_file{};               // where that was read
    stored_baseline stored{};
    reading read = reading::as_measured;  // of the candidate; of a live baseline the other way
};

/// Under which a calibration is kept: the ratio to a baseline has a noise of its own.
inline std::string noise_name(const slo& s) {
    return str(s.what.name) + (s.factor > 0 ? " / baseline" : "");
}
/// What is believed of the noise of a statistic, and whether a calibration says so.
struct believed_noise {
    double sd = prior_sd;
    bool is_calibrated = false;
};
inline believed_noise believed_noise_of(const evidence& e, const terms& t, const slo& s) {
    if (is_of_start(s.what.metric)) return {prior_startup_sd, false};
    // The log ratio of a pair has the noise of both its runs.
    const double uncalibrated =
        s.factor > 0 && e.has_live_baseline() ? prior_sd * std::sqrt(2.0) : prior_sd;
    const auto at = t.noise.find(noise_name(s));
    const bool is_calibrated = at != t.noise.end() && at->second > uncalibrated;
    return {is_calibrated ? at->second : uncalibrated, is_calibrated};
}
inline double prior_sd_of(const evidence& e, const terms& t, const slo& s) {
    return believed_noise_of(e, t, s).sd;
}
/// What a verdict says of the calibration that it rests on, "" where it rests on none.
inline std::string calibration_words(const evidence& e, const terms& t, const slo& s) {
    const believed_noise n = believed_noise_of(e, t, s);
    if (!n.is_calibrated) return {};
    return printed(" with the calibrated noise of %.3g %%", n.sd * 100) +
           (t.noise_file.empty() ? "" : " (" + printable(t.noise_file, 200) + ")");
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C32] counts: shares, and quantiles of fresh traffic ======================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// "p_q(T) <= X" says that a share of at most 1-q of the requests has T > X.
inline bool is_worse(bool at_most, double value, double bound) {
    return at_most ? value > bound : value < bound;
}
inline double allowed_misses(const slo& s) {
    if (s.what.kind == statistic_kind::percentile) return s.at_most ? 1 - s.what.q : s.what.q;
    return s.at_most ? s.bound : 1 - s.bound;
}
inline std::vector<bool> misses_of(const slo& s, const repeat_data& d,
                                   reading how = reading::as_measured) {
    if (is_share(s.what.metric)) return misses_of(s.what, d, how);
    std::vector<bool> misses;
    for (const double v : values_in_order(s.what.metric, d, how))
        misses.push_back(is_worse(s.at_most, v, s.bound));
    return misses;
}

/// Where misses are to be rare, those with one success between them at most are taken for one
/// burst: its size, as the one that a miss finds itself in. A burst that hits many a batch, or half
/// of two, looks smaller to a design effect from batches.
inline double burst_size(const std::vector<std::vector<bool>>& repeats, double allowed) {
    if (allowed > 0.05) return 1;  // neighbours by chance would be many
    double misses = 0, squares = 0, trials = 0;
    for (const auto& r : repeats) {
        trials += static_cast<double>(r.size());
        std::size_t last = 0;
        double size = 0;
        for (std::size_t i = 0; i < r.size(); ++i) {
            if (!r[i]) continue;
            if (size > 0 && i - last > 2) {
                squares += size * size;
                size = 0;
            }
            ++size;
            ++misses;
            last = i;
        }
        squares += size * size;
    }
    return misses > 0 && misses < trials ? squares / misses : 1;
}

/// The repeats as clusters, whatever the misses do inside them: at a true share within the limit
/// each repeat's own is expected to be the allowed one at most, so that the product of their ratios
/// to it exceeds 1 / alpha in a share alpha of all gates at most, at whichever look (Ville 1939).
inline double product_of_shares(const std::vector<double>& shares, double allowed) {
    double product = 1;
    for (const double share : shares) product *= share / allowed;
    return product;
}

/// Whether repeats are clusters of misses: of everything but the quantiles of fresh traffic.
inline bool fails_by_repeats(const slo& s, const judging_rule& r) {
    return is_share(s.what.metric) || r.traffic != fresh;
}

/// How dependent the misses are. Of fresh traffic so few lie beyond a high quantile that their own
/// batches say little: the misses of a lower one, five times as many, are the floor.
inline double effect_of(const evidence& e, const terms& t, const slo& s,
                        const std::vector<std::vector<bool>>& misses) {
    const bool is_fresh = t.rule.traffic == fresh;
    const double own = design_effect(misses, 20, is_fresh);
    if (fails_by_repeats(s, t.rule)) return std::max(own, burst_size(misses, allowed_misses(s)));
    std::vector<std::vector<double>> values;
    std::vector<double> pooled;
    for (std::size_t i = 0; i < misses.size(); ++i) {
        values.push_back(values_in_order(s.what.metric, e.candidate[i], t.read));
        pooled.insert(pooled.end(), values[i].begin(), values[i].end());
    }
    std::sort(pooled.begin(), pooled.end());
    const double more = std::min(0.5, 5 * allowed_misses(s));
    if (!s.at_most) std::reverse(pooled.begin(), pooled.end());  // the worst come last
    const double lower = nearest_rank(pooled, 1 - more);
    std::vector<std::vector<bool>> beyond(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        for (const double v : values[i]) beyond[i].push_back(is_worse(s.at_most, v, lower));
    return std::max(own, design_effect(beyond, 20, is_fresh));
}

/// What k misses in n trials show, dependence divided out.
struct miss_counts {
    double k = 0, n = 0, effect = 1, allowed = 0;
    double product = 0;  // of the repeats' shares over the allowed one, 0 where that is no evidence
    double upper(double alpha) const {
        return clopper_pearson_upper(k / effect, n / effect, alpha);
    }
    double lower(double alpha) const {
        return clopper_pearson_lower(k / effect, n / effect, alpha);
    }
    /// The most misses that pass, -1 where not even none does; the fewest that fail.
    double most_that_pass(double alpha) const {
        double low = -1, high = n;
        while (high - low > 1) {
            const double mid = std::floor((low + high) / 2);
            (miss_counts{mid, n, effect, allowed, 0}.upper(alpha) <= allowed ? low : high) = mid;
        }
        return low;
    }
    double fewest_that_fail(double alpha) const {
        double low = 0, high = n + 1;
        while (high - low > 1) {
            const double mid = std::floor((low + high) / 2);
            (miss_counts{mid, n, effect, allowed, 0}.lower(alpha) > allowed ? high : low) = mid;
        }
        return high;
    }
};

/// The quantile, and the limits that would just pass at this level and just fail.
inline estimate_t quantile_estimate(const evidence& e, const slo& s, std::size_t stages,
                                    const miss_counts& c, double pass_alpha) {
    std::vector<double> pooled;
    for (std::size_t i = 0; i < stages; ++i) {
        const std::vector<double> more = values_in_order(s.what.metric, e.candidate[i]);
        pooled.insert(pooled.end(), more.begin(), more.end());
    }
    if (pooled.empty()) return {not_a_number, not_a_number, not_a_number};
    std::sort(pooled.begin(), pooled.end());
    const double value = nearest_rank(pooled, s.what.q);
    if (!s.at_most) std::reverse(pooled.begin(), pooled.end());
    // Worst values come last: with j of them beyond, the limit is the one before those.
    const auto with_beyond = [&](double j) {
        const double i = static_cast<double>(pooled.size()) - 1 - j;
        return i < 0 ? (s.at_most ? 0 : infinity) : pooled[static_cast<std::size_t>(i)];
    };
    const double most = c.most_that_pass(pass_alpha), fewest = c.fewest_that_fail(pass_alpha);
    const double worst = s.at_most ? infinity : 0;
    const double would_pass = most < 0 ? worst : with_beyond(most);
    const double would_fail = with_beyond(fewest);
    return s.at_most ? estimate_t{value, would_fail, would_pass}
                     : estimate_t{value, would_pass, would_fail};
}

/// The misses of all repeats so far, and how dependent they are.
inline miss_counts counted_misses(const evidence& e, const terms& t, const slo& s,
                                  const std::vector<std::vector<bool>>& misses, double allowed) {
    miss_counts c;
    c.allowed = allowed;
    std::vector<double> shares;
    for (const auto& r : misses) {
        const auto k = static_cast<double>(std::count(r.begin(), r.end(), true));
        const auto n = static_cast<double>(r.size());
        c.k += k;
        c.n += n;
        if (n > 0) shares.push_back(k / n);
    }
    if (c.n > 0) c.effect = effect_of(e, t, s, misses);
    if (fails_by_repeats(s, t.rule)) c.product = product_of_shares(shares, c.allowed);
    return c;
}

inline miss_counts counted_misses(const evidence& e, const terms& t, const slo& s,
                                  const std::vector<std::vector<bool>>& misses) {
    return counted_misses(e, t, s, misses, allowed_misses(s));
}

/// At which levels counts are bounded, at one look. What can fail in two ways has half of the level
/// of false fails for each.
struct count_levels {
    double pass = 0, fail = 0, product = infinity;
};
inline count_levels count_levels_of(const slo& s, const judging_rule& r) {
    const double pass = 1 - normal_cdf(r.pass_z);
    if (!fails_by_repeats(s, r)) return {pass, 1 - normal_cdf(r.fail_z), infinity};
    return {pass, 1 - normal_cdf(r.half_fail_z), 2 / r.fail_level};
}

/// What one look at the counts says, as the reader's numbers and inputs, and its outcome.
inline verdict tell_counts(slo_verdict& v, const evidence& e, const miss_counts& c,
                           const count_levels& at) {
    const slo& s = v.what;
    const double upper = c.upper(at.pass), lower = c.lower(at.fail);
    const double shown_lower = c.lower(at.pass);
    if (!is_share(s.what.metric))
        v.estimate = quantile_estimate(e, s, static_cast<std::size_t>(v.repeats), c, at.pass);
    else if (s.at_most) v.estimate = {c.k / c.n, shown_lower, upper};
    else v.estimate = {1 - c.k / c.n, 1 - upper, 1 - shown_lower};
    const double fewest = c.fewest_that_fail(at.fail) / c.effect, n = c.n / c.effect;
    v.detectable = fewest > n ? 0 : bisect(0, 1, 0.8, [&](double p) {
        return incomplete_beta(fewest, n - fewest + 1, p);
    });
    v.arithmetic = printed(
        "misses %.0f of %.0f, design effect %.3f, so %.6g of %.6g independent ones; upper "
        "bound %.6g at level %.4g, lower bound %.6g at level %.4g (one-sided Clopper-Pearson); "
        "allowed share of misses %.6g",
        c.k, c.n, c.effect, c.k / c.effect, c.n / c.effect, upper, at.pass, lower, at.fail,
        c.allowed);
    v.inputs = {{"misses", {c.k}}, {"trials", {c.n}}, {"design_effect", {c.effect}},
                {"allowed", {c.allowed}}, {"pass_level", {at.pass}},
                {"fail_level", {at.fail}}, {"upper_bound", {upper}}, {"lower_bound", {lower}}};
    if (std::isfinite(at.product)) {
        v.arithmetic = str(v.arithmetic) +
                       printed("; product of the repeats' shares over it %.6g, a miss from %.6g",
                               c.product, at.product);
        v.inputs.push_back({"product_of_shares", {c.product}});
        v.inputs.push_back({"product_that_fails", {at.product}});
    }
    return upper <= c.allowed                                 ? verdict::pass
           : lower > c.allowed || c.product >= at.product     ? verdict::fail
                                                              : verdict::inconclusive;
}

/// "9 of 600 failed".
inline std::string failed_text(double k, double n) {
    return printed("%.0f of %.0f failed", k, n);
}
/// The failed requests of a repeat that shows by itself more of them than the limit allows, as far
/// as chance goes: a burst, or a server that fails from time to time.
struct worst_repeat {
    std::size_t number = 0;  // from 1; 0: there is none
    double k = 0, n = 0;
};
inline worst_repeat repeat_over_limit(const std::vector<std::vector<bool>>& misses, double allowed,
                                      double alpha) {
    worst_repeat worst;
    for (std::size_t i = 0; i < misses.size(); ++i) {
        const auto k =
            static_cast<double>(std::count(misses[i].begin(), misses[i].end(), true));
        const auto n = static_cast<double>(misses[i].size());
        const bool over = n > 0 && clopper_pearson_lower(k, n, alpha) > allowed;
        if (over && k * worst.n >= worst.k * n) worst = {i + 1, k, n};
    }
    return worst;
}

/// What an error rate says beside its numbers. Its guard, which nobody wrote, also passes where it
/// is not shown: at or under the limit as observed, in all repeats together and by no burst in one.
inline void tell_errors(slo_verdict& v, const miss_counts& c, bool is_guard,
                        const std::vector<std::vector<bool>>& misses, const judging_rule& rule) {
    if (v.outcome == verdict::pass) return;
    const std::string limit = limit_text(v.what.what.metric, v.what.bound);
    const std::string seen = failed_text(c.k, c.n);
    if (v.outcome == verdict::fail) {
        v.reason = seen + ", limit " + limit;
        return;
    }
    if (c.k > c.allowed * c.n * (1 + 1e-12)) {
        v.reason = seen + ", over the limit of " + limit + ", not shown to be more than " +
                   (c.k / c.effect < 1.5 ? "one burst" : "chance");
        return;
    }
    if (!is_guard) return;
    const worst_repeat worst = repeat_over_limit(misses, c.allowed, rule.pass_level);
    if (worst.number > 0) {
        v.reason = seen + ", within the limit of " + limit + ", but " +
                   failed_text(worst.k, worst.n) +
                   printed(" in repeat %zu: more than chance", worst.number);
        return;
    }
    v.outcome = verdict::pass;
    v.reason = seen + ", limit " + limit + ": within it as observed, not shown";
}

/// Shares, and quantiles of fresh traffic, are judged on pooled counts of misses by one-sided
/// Clopper-Pearson bounds; shares also by their repeats. Errors are judged on all there is: a pass
/// of the first repeats says nothing of failures in later ones.
inline slo_verdict judge_counts(const evidence& e, const terms& t, const slo& s,
                                bool to_the_end = false, bool is_guard = false) {
    slo_verdict v = undecided(s);
    v.limit = s.bound;
    v.method = method_counts;
    const count_levels levels = count_levels_of(s, t.rule);
    const bool of_errors = s.what.metric == metric_id::error_rate;
    // The looks of the gate's other verdicts.
    const auto first = static_cast<std::size_t>(t.rule.traffic == fresh     ? 1
                                                : e.has_live_baseline() ? first_pair_look
                                                                        : first_look);
    std::vector<std::vector<bool>> misses;
    miss_counts c;
    int looks = 0;
    for (std::size_t i = 0; i < e.candidate.size(); ++i) {
        misses.push_back(misses_of(s, e.candidate[i], t.read));
        const bool at_the_end = i + 1 == e.candidate.size();
        if (!at_the_end && (i + 1 < first || looks + 1 >= t.rule.looks)) continue;
        ++looks;
        c = counted_misses(e, t, s, misses);
        if (c.n == 0) continue;
        v.repeats = static_cast<int>(i + 1);
        const verdict outcome = tell_counts(v, e, c, levels);
        if (i + 1 < first) break;
        if (of_errors || outcome != verdict::inconclusive) v.outcome = outcome;
        const bool is_final = of_errors ? outcome == verdict::fail
                                        : v.outcome != verdict::inconclusive;
        if (is_final && !to_the_end) break;
    }
    v.requests = measured_requests(e, static_cast<std::size_t>(v.repeats));
    if (v.repeats == 0) {
        v.outcome = verdict::invalid;
        v.reason = "no measured request has a value of " + str(s.what.name);
        return v;
    }
    if (of_errors) tell_errors(v, c, is_guard, misses, t.rule);
    return v;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C33] errors of a baseline ================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// How one of the failed requests of an arm ended: "http: HTTP 500".
inline std::string failure_example(const std::vector<repeat_data>& arm) {
    for (const repeat_data& d : arm)
        for (const record& r : d.records)
            if (is_measured(r) && r.status != request_status::ok)
                return std::string(to_string(r.status)) +
                       (r.error.empty() ? "" : ": " + printable(str(r.error), 200));
    return {};
}

/// What the errors of a live baseline leave of a comparison with it.
struct baseline_errors {
    verdict outcome = verdict::pass;  // inconclusive: over the limit, and not shown to be
    std::string why{};
};
/// A server that sheds load is fast, and one that fails makes anything look good: a baseline's
/// errors are held against the limit of the candidate's.
inline baseline_errors baseline_errors_of(const evidence& e, const terms& t, const slo& limit) {
    baseline_errors b;
    std::vector<std::vector<bool>> misses;
    for (const repeat_data& d : e.baseline) misses.push_back(misses_of(limit, d));
    const miss_counts c = counted_misses(e, t, limit, misses);
    if (c.n == 0 || c.k <= c.allowed * c.n) return b;
    const count_levels at = count_levels_of(limit, t.rule);
    const bool shown = c.lower(at.fail) > c.allowed || c.product >= at.product;
    b.outcome = shown ? verdict::invalid : verdict::inconclusive;
    b.why = printed("baseline server: %.0f of %.0f requests failed (%s), where %.3g %% %s", c.k,
                    c.n, failure_example(e.baseline).c_str(), c.allowed * 100,
                    shown ? "may" : "may, which so few do not show");
    return b;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C34] what the client can say against its own numbers =====================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// From when on a send has missed its time: 10 ms, or a tenth of the time between two sends.
inline double missed_after_s(const repeat_data& d) {
    const double between = d.asked_rate > 0 ? 1 / d.asked_rate : 0;
    return std::max(static_cast<double>(late_send_ns) * 1e-9, 0.1 * between);
}
/// The share of measured sends that missed their time, 0 where no rate was asked for.
inline double late_share_of(const repeat_data& d) {
    if (!(d.asked_rate > 0)) return 0;
    const double most = missed_after_s(d) * 1e9;
    double sends = 0, late = 0;
    for (const record& r : d.records) {
        if (!is_measured(r) || r.dispatched_ns == 0) continue;
        ++sends;
        late += static_cast<double>(r.late_ns) > most;
    }
    return sends > 0 ? late / sends : 0;
}

/// Stretches in which it did not run; one in which it was only busy is none of those.
inline std::size_t held_up_times(const blind_stretches& blind) {
    return static_cast<std::size_t>(std::count_if(
        blind.begin(), blind.end(), [](const blind_stretch& s) { return s.lost_ns > 0; }));
}
inline double held_up_longest_s(const blind_stretches& blind) {
    long long longest = 0;
    for (const blind_stretch& s : blind) longest = std::max(longest, s.most_delay_ns);
    return static_cast<double>(longest) * 1e-9;
}

inline std::vector<double> pooled_lateness(const evidence& e) {
    std::vector<double> late;
    for_each_repeat(e, [&](const repeat_data& d) {
        for (const record& r : d.records)
            if (is_measured(r) && r.dispatched_ns > 0)
                late.push_back(static_cast<double>(r.late_ns) * 1e-9);
    });
    std::sort(late.begin(), late.end());
    return late;
}

inline bool client_was_saturated(const evidence& e, double cpu_share) {
    return cpu_share > 0.9 && !e.spins;
}

/// What the client did, over all repeats and arms. `late`: pooled_lateness.
inline self_check_t client_conduct(const evidence& e, const std::vector<double>& late) {
    self_check_t c;
    if (!late.empty()) {
        c.lateness_p50 = nearest_rank(late, 0.5);
        c.lateness_p99 = nearest_rank(late, 0.99);
        c.lateness_max = late.back();
        c.late_share =
            static_cast<double>(late.end() - std::upper_bound(late.begin(), late.end(), 0.010)) /
            static_cast<double>(late.size());
    }
    double repeats = 0, content = 0, coalesced = 0;
    for_each_repeat(e, [&](const repeat_data& d) {
        ++repeats;
        c.connections_opened += d.connections_opened;
        add_handshakes(c.handshakes_full, d.handshakes_full);
        add_handshakes(c.handshakes_resumed, d.handshakes_resumed);
        content += static_cast<double>(d.content_events);
        coalesced += static_cast<double>(d.coalesced_events);
        c.cpu_share = std::max(c.cpu_share, d.cpu_share);
        c.loop_lag_p99 = std::max(c.loop_lag_p99, d.loop_lag_p99);
        c.loop_lag_max = std::max(c.loop_lag_max, d.loop_lag_max);
        c.stamp_lag_p99 = std::max(c.stamp_lag_p99, d.stamp_lag_p99);
        c.stamp_lag_max = std::max(c.stamp_lag_max, d.stamp_lag_max);
        c.held_up += static_cast<long long>(held_up_times(d.blind));
        c.held_up_max = std::max(c.held_up_max, held_up_longest_s(d.blind));
        c.asked_rate += d.asked_rate;
        c.achieved_rate += d.achieved_rate;
    });
    if (repeats > 0) {
        c.asked_rate /= repeats;
        c.achieved_rate /= repeats;
    }
    if (content > 0) c.coalesced_share = coalesced / content;
    return c;
}

/// Why the client could not ask, "" where it could: what it lacked itself is no failure of a
/// server.
inline std::string client_lack(const evidence& e) {
    std::size_t lacking = 0, measured = 0;
    std::string example;
    for_each_repeat(e, [&](const repeat_data& d) {
        for (const record& r : d.records) {
            if (!is_measured(r)) continue;
            ++measured;
            if (!failed_for_want(r)) continue;
            ++lacking;
            example = str(r.error);
        }
    });
    if (lacking == 0) return {};
    return example + printed(" (%zu of %zu requests)", lacking, measured);
}

/// The client's own conduct, and why it could not have been a client of any server.
inline self_check_t self_check_of(const evidence& e) {
    const std::vector<double> late = pooled_lateness(e);
    self_check_t c = client_conduct(e, late);
    if (client_was_saturated(e, c.cpu_share))
        c.reason = printed("client: its busiest thread used %.0f %% of a core; give it "
                           "client.threads or a core of its own",
                           c.cpu_share * 100);
    else if (c.asked_rate > 0 && late.size() >= 50 &&
             std::fabs(c.achieved_rate / c.asked_rate - 1) > 0.02)
        c.reason = "client: sent " + printed("%.4g", c.achieved_rate) + " requests/s instead of " +
                   printed("%.4g", c.asked_rate);
    c.ok = c.reason.empty();
    return c;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C35] pairs: repeats in turns with those of a baseline ====================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A look at the log ratios of pairs. What is believed of a machine's noise may widen what they
/// leave open and never narrows it: four pairs know their own spread well enough to be asked, and a
/// machine whose level shifts within them spreads them far beyond any belief.
inline look look_at_pairs(const std::vector<double>& distances, double s0,
                          const judging_rule& rule) {
    const look believed = look_at(distances, s0, rule);
    if (distances.size() < 2) return believed;
    const double n = static_cast<double>(distances.size());
    look measured;
    measured.spread = spread_of::measured;
    measured.mean = believed.mean;
    measured.prior_sd = s0;
    measured.df = n - 1;
    measured.sd = std::sqrt(sample_variance(distances));
    measured.se = measured.sd / std::sqrt(n);
    decide(measured, rule);
    return measured.pass_t * measured.se > believed.pass_t * believed.se ? measured : believed;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C36] values: times, speeds and rates =====================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A limit that a verdict would find met in most runs.
inline std::string limit_to_write(const slo& s, double value) {
    // Two digits, three from 10 to 20, rounded to the easy side.
    const double power = std::pow(10, std::floor(std::log10(value)));
    const double step = power / (value < 2 * power ? 100 : 10);
    const auto rounded = [&](double unit) {
        return (s.at_most ? std::ceil(value / unit) : std::floor(value / unit)) * unit;
    };
    return std::string(s.at_most ? "<= " : ">= ") +
           (s.factor > 0 ? printed("%.2f * baseline", rounded(0.01))
                         : limit_text(s.what.metric, rounded(step)));
}

/// What the last look decided, as the reader's numbers and inputs.
inline void tell_look(slo_verdict& v, const look& l, const judging_rule& rule, double repeats,
                      const stored_side& other = {}) {
    const double sign = v.what.at_most ? 1 : -1;
    const auto back = [&](double distance) { return v.limit * std::exp(sign * distance); };
    const double reach = l.pass_t * l.se;
    v.estimate = {back(l.mean), back(l.mean - sign * reach), back(l.mean + sign * reach)};
    v.detectable = l.detectable;
    v.advice = text();
    const double more = l.df + std::max(0.0, rule.most - repeats);
    const double shares = 1.0 / rule.most + (other.repeats > 0 ? 1 / other.repeats : 0);
    const double last_se = std::sqrt(l.sd * l.sd * shares + other.day_sd * other.day_sd);
    const double t = student_t_quantile(normal_cdf(rule.pass_z), more);
    if (-l.mean < (t + four_in_five) * last_se && l.mean < 0)
        v.advice =
            printed("headroom of %.1f %% under noise of %.1f %% will often be inconclusive; ",
                    -std::expm1(l.mean) * 100, l.sd * 100) +
            limit_to_write(v.what, v.estimate.value * std::exp(sign * (t + 1.645) * last_se)) +
            " would seldom be";
    v.arithmetic = str(v.arithmetic) + printed(
        "; mean %.6g, sd %.6g (%s), df %.0f, standard error %.6g; bounds: pass %.6g + %.4f x se = "
        "%.6g < 0, fail %.6g - %.4f x se = %.6g > 0 (t quantiles of the normal scores %.4f and "
        "%.4f, Pocock's for %d looks at %.4g and %.4g)",
        l.mean, l.sd, to_string(l.spread), l.df, l.se, l.mean, l.pass_t,
        l.pass_bound, l.mean, l.fail_t, l.fail_bound, rule.pass_z, rule.fail_z, rule.looks,
        rule.pass_level, rule.fail_level);
    for (const auto& [name, value] :
         {std::pair<const char*, double>{"mean", l.mean}, {"sd", l.sd}, {"df", l.df},
          {"standard_error", l.se}, {"pass_t", l.pass_t}, {"fail_t", l.fail_t},
          {"pass_bound", l.pass_bound}, {"fail_bound", l.fail_bound}})
        v.inputs.push_back({name, {value}});
}

/// What the repeats of a gate are held against where an objective speaks of a baseline.
struct comparison {
    bool relative = false, paired = false;  // to a live baseline in pairs, else to a stored one
    double base_log = 0;
    stored_side stored{};
    std::string missing{};  // why there is nothing to compare with
    arm_values mine{}, other{};  // the statistic of the candidate, and of a live baseline
    /// What is held against the limit, of a value of the candidate and one of the baseline.
    double of(double value, double base) const {
        if (!relative) return value;
        if (!paired) return value / std::exp(base_log);
        return std::isfinite(base) && base > 0 ? value / base : not_a_number;
    }
    double of_repeat(std::size_t i) const {
        return of(mine.each[i], paired ? other.each[i] : not_a_number);
    }
    double of_all() const { return of(mine.together, other.together); }
};
inline comparison comparison_of(const evidence& e, const terms& t, const slo& s) {
    comparison c;
    c.relative = s.factor > 0;
    c.paired = c.relative && e.has_live_baseline();
    c.mine = values_of(s.what, e.candidate, t.read);
    if (c.paired) c.other = values_of(s.what, e.baseline, opposite(t.read));
    if (!c.relative || c.paired) return c;
    const auto at = t.stored.values.find(str(s.what.name));
    std::vector<double> logs;
    if (at != t.stored.values.end())
        for (const double x : at->second) logs.push_back(std::log(x));
    if (logs.empty() || !std::isfinite(mean_of(logs))) {
        c.missing = "the stored baseline has no value of " + str(s.what.name);
        return c;
    }
    c.base_log = mean_of(logs);
    c.stored = {static_cast<double>(logs.size()), sample_variance(logs), t.stored.day_sd};
    return c;
}

/// The repeats looked at so far. A miss without a size has no logarithm; it is counted instead.
struct looked_at {
    std::vector<double> values{}, distances{};
    std::size_t unbounded = 0;
    void add(double value, const slo& s, double limit) {
        values.push_back(value);
        const bool miss = s.at_most ? std::isinf(value) : value == 0;
        unbounded += miss;
        const double sign = s.at_most ? 1 : -1;
        if (!miss) distances.push_back(sign * (std::log(std::max(value, 1e-12)) - std::log(limit)));
    }
};

/// What of a percentile's verdict speaks of failures: the share of requests beyond the limit, where
/// failed ones are, held against the share that the percentile allows. The limit as a value, and
/// what shows a miss where that limit is itself an estimate.
struct limit_of_values {
    double bound = 0, allowed = 0;
    bool may_pass = true;  // counts of this sample do not show what is compared with another
};
inline limit_of_values limit_of_values_of(const evidence& e, const terms& t, const slo& s,
                                          const comparison& c, std::size_t repeats) {
    limit_of_values l{s.bound, allowed_misses(s), !c.relative};
    if (!c.relative) return l;
    if (!c.paired) {  // what two days differ by is no regression
        const double days = 1 + 2 * c.stored.day_sd;
        const double factor = s.at_most ? std::max(s.factor, days) : std::min(s.factor, 1 / days);
        l.bound = factor * std::exp(c.base_log);
        return l;
    }
    std::vector<double> pooled;
    for (std::size_t i = 0; i < repeats; ++i) {
        const std::vector<double> more =
            values_in_order(s.what.metric, e.baseline[i], opposite(t.read));
        pooled.insert(pooled.end(), more.begin(), more.end());
    }
    if (pooled.empty()) return {not_a_number, l.allowed, false};
    std::sort(pooled.begin(), pooled.end());
    l.bound = s.factor * nearest_rank(pooled, s.what.q);
    // As much of the baseline itself may lie beyond its own estimate.
    const auto n = static_cast<double>(pooled.size());
    l.allowed = clopper_pearson_upper(n * l.allowed, n, count_levels_of(s, t.rule).fail);
    return l;
}

/// A percentile that failures reach in some repeats, judged on the pooled count of the requests
/// beyond its limit: by the rule of shares.
inline verdict decide_by_counts(slo_verdict& v, const evidence& e, const terms& t,
                                const comparison& c) {
    const auto repeats = static_cast<std::size_t>(v.repeats);
    const limit_of_values l = limit_of_values_of(e, t, v.what, c, repeats);
    const bool is_known = std::isfinite(l.bound) && l.bound > 0;
    slo s = v.what;
    s.bound = l.bound;
    std::vector<std::vector<bool>> misses;
    for (std::size_t i = 0; is_known && i < repeats; ++i)
        misses.push_back(misses_of(s, e.candidate[i], t.read));
    const miss_counts counts = counted_misses(e, t, s, misses, l.allowed);
    if (counts.n == 0) return verdict::inconclusive;
    const verdict outcome = tell_counts(v, e, counts, count_levels_of(s, t.rule));
    const double scale = v.limit / l.bound;
    v.estimate = {v.estimate.value * scale, v.estimate.low * scale, v.estimate.high * scale};
    v.reason = printed("%.0f of %.0f requests failed or lie beyond the limit, %.3g %% may",
                       counts.k, counts.n, counts.allowed * 100);
    return outcome == verdict::pass && !l.may_pass ? verdict::inconclusive : outcome;
}
/// The same for gaps between events, of which one request has many: by the repeats alone.
inline verdict decide_by_gaps(slo_verdict& v, const evidence& e, const terms& t,
                              const comparison& c) {
    const auto repeats = static_cast<std::size_t>(v.repeats);
    if (c.relative) return verdict::inconclusive;
    std::vector<double> shares;
    for (std::size_t i = 0; i < repeats; ++i)
        shares.push_back(share_beyond(
            sorted_values_of(v.what.what.metric, e.candidate[i], t.read), v.what.bound));
    const double product = product_of_shares(shares, allowed_misses(v.what));
    return product >= count_levels_of(v.what, t.rule).product ? verdict::fail
                                                              : verdict::inconclusive;
}

/// Repeats in which failures reach the statistic, so that it has no size.
inline void decide_by_misses(slo_verdict& v, const looked_at& seen, const evidence& e,
                             const terms& t, const comparison& c, std::size_t fails_from) {
    const std::size_t n = seen.values.size();
    v.estimate = {not_a_number, not_a_number, not_a_number};
    v.reason = printed("%zu of %zu repeats have so many failures that the statistic is %s",
                       seen.unbounded, n, v.what.at_most ? "infinite" : "zero");
    const bool is_percentile = v.what.what.kind == statistic_kind::percentile;
    const bool half = seen.unbounded >= 2 && 2 * seen.unbounded >= n;
    v.outcome = is_percentile && facts_of(v.what.what.metric).is_of_gaps
                    ? decide_by_gaps(v, e, t, c)
                : is_percentile ? decide_by_counts(v, e, t, c)
                : half          ? verdict::fail
                                : verdict::inconclusive;
    if (v.outcome != verdict::fail || n >= fails_from) return;
    v.outcome = verdict::inconclusive;
    v.reason = "two repeats are too few to fail";
}

/// A percentile is as small as its repeats say only if failures are fewer than it leaves beyond it,
/// which their count must show where there are any.
inline void doubt_by_failures(slo_verdict& v, const evidence& e, const terms& t) {
    const slo& s = v.what;
    if (s.what.kind != statistic_kind::percentile || facts_of(s.what.metric).is_of_gaps) return;
    std::vector<std::vector<bool>> misses;
    for (std::size_t i = 0; i < static_cast<std::size_t>(v.repeats); ++i) {
        misses.emplace_back();
        for (const record& r : e.candidate[i].records)
            if (is_part_of(s.what.metric, r))
                misses.back().push_back(r.status != request_status::ok);
    }
    const miss_counts failed = counted_misses(e, t, s, misses);
    const double upper = failed.upper(count_levels_of(s, t.rule).pass);
    if (failed.k == 0 || upper <= failed.allowed) return;
    v.outcome = verdict::inconclusive;
    v.reason = failed_text(failed.k, failed.n) +
               printed(", up to %.2g %% may, and %s leaves %.3g %% beyond it", upper * 100,
                       s.what.name.c_str(), failed.allowed * 100);
}

/// One look at the values: what it decides by itself, and what it is too early for.
inline look decide_by_values(slo_verdict& v, const looked_at& seen, const comparison& c, double s0,
                             const judging_rule& rule, std::size_t first, std::size_t fails_from) {
    const look l = c.paired ? look_at_pairs(seen.distances, s0, rule)
                            : look_at(seen.distances, s0, rule, c.stored);
    if (seen.values.size() >= first) v.outcome = l.outcome;
    v.reason = text();
    if (v.outcome == verdict::fail && seen.values.size() < fails_from) {
        v.outcome = verdict::inconclusive;
        v.reason = "two repeats are too few to fail";
    }
    // What two days differ by is no regression.
    const double sign = v.what.at_most ? 1 : -1;
    if (v.outcome == verdict::fail && c.stored.repeats > 0 &&
        std::fabs(std::exp(sign * l.mean) * v.limit - 1) < 2 * c.stored.day_sd)
        v.outcome = verdict::inconclusive;
    return l;
}

/// The verdict's numbers, once the last look was taken.
inline void tell_values(slo_verdict& v, const evidence& e, const terms& t, const looked_at& seen,
                        const comparison& c, const look& l) {
    const slo& s = v.what;
    const std::string values =
        std::string(c.relative ? "ratios " : "values ") + listed(seen.values);
    const list<named_values> counted = v.inputs;  // where failures reach the statistic
    v.inputs = {{c.relative ? "ratios" : "values", list<double>(seen.values)},
                {"limit", {v.limit}}};
    if (seen.unbounded > 0) {
        v.arithmetic = values + (v.arithmetic.empty() ? "" : "; " + str(v.arithmetic));
        for (const named_values& n : counted) v.inputs.push_back(n);
        const double worst = s.at_most ? infinity : 0;
        if (std::isnan(v.estimate.value)) v.estimate = {worst, worst, worst};
        v.method = method_misses;
        return;
    }
    v.arithmetic = values;
    const bool rests_on_belief = l.spread != spread_of::measured;
    v.method = std::string(c.paired     ? "paired "
                           : c.relative ? "against a stored run, "
                                        : "") +
               (l.spread == spread_of::moderated ? "moderated t"
                : l.spread == spread_of::noisy   ? "t of noisy repeats"
                                                 : "t") +
               (rests_on_belief ? calibration_words(e, t, s) : "");
    v.arithmetic =
        str(v.arithmetic) + "; ln distances from the limit " + listed(seen.distances);
    v.inputs.push_back({"log_distances", list<double>(seen.distances)});
    v.inputs.push_back({"prior_sd", {l.prior_sd}});
    v.inputs.push_back({"prior_df", {l.prior_df}});
    if (const auto at = t.noise.find(noise_name(s)); at != t.noise.end())
        v.inputs.push_back({"calibrated_sd", {at->second}});
    if (c.stored.repeats > 0) {
        v.inputs.push_back({"stored_values", list<double>(t.stored.values.at(str(s.what.name)))});
        v.inputs.push_back({"day_to_day_sd", {c.stored.day_sd}});
    }
    tell_look(v, l, t.rule, static_cast<double>(seen.distances.size()), c.stored);
    const double spread = std::sqrt(sample_variance(seen.distances)), s0 = prior_sd_of(e, t, s);
    if (c.paired && spread > s0)
        v.reason = printed("the pairs spread by %.2g %%, more than the %.2g %% believed of them",
                           spread * 100, s0 * 100);
    else if (l.spread == spread_of::noisy)
        v.reason = printed("the repeats spread by %.0f %%, far more than a quiet machine's %.0f %%",
                           spread * 100, noisy_sd * 100) +
                   (v.reason.empty() ? "" : "; " + str(v.reason));
}

/// Times, speeds and rates are judged on the logarithm of the statistic of each repeat, on the log
/// ratio of each pair, or on the logs of the repeats against those of a stored run.
inline slo_verdict judge_values(const evidence& e, const terms& t, const slo& s,
                                bool to_the_end = false) {
    slo_verdict v = undecided(s);
    v.limit = s.factor > 0 ? s.factor : s.bound;
    const auto invalid = [&](const std::string& why) {
        v.outcome = verdict::invalid;
        v.reason = why;
        return v;
    };
    const comparison c = comparison_of(e, t, s);
    if (!c.missing.empty()) return invalid(c.missing);
    v.measured = c.of_all();
    const bool startup = is_of_start(s.what.metric);
    const double s0 = prior_sd_of(e, t, s);
    const auto first = static_cast<std::size_t>(
        startup ? 1 : e.has_live_baseline() ? first_pair_look : first_look);
    const auto fails_from =
        static_cast<std::size_t>(startup ? 1 : std::min(first_fail, t.rule.most));

    looked_at seen;
    int looks = 0;
    look last;
    const std::size_t count =
        c.paired ? std::min(e.candidate.size(), e.baseline.size()) : e.candidate.size();
    for (std::size_t i = 0; i < count; ++i) {
        const double value = c.of_repeat(i);
        if (startup && std::isnan(value)) continue;
        if (std::isnan(value))
            return invalid(printed("repeat %zu has no %s of %s", i + 1,
                                   c.relative ? "ratio" : "value", s.what.name.c_str()));
        seen.add(value, s, v.limit);
        v.repeats = static_cast<int>(seen.values.size());
        // No more looks than the constants allow for, however many repeats there are.
        const bool at_the_end = i + 1 == count;
        if (!at_the_end && (seen.values.size() < first || looks + 1 >= t.rule.looks)) continue;
        ++looks;
        if (seen.unbounded > 0) decide_by_misses(v, seen, e, t, c, fails_from);
        else last = decide_by_values(v, seen, c, s0, t.rule, first, fails_from);
        if (v.outcome == verdict::pass) doubt_by_failures(v, e, t);
        if (v.outcome != verdict::inconclusive && !to_the_end) break;
    }
    v.requests = measured_requests(e, static_cast<std::size_t>(v.repeats));
    if (seen.values.empty())
        return invalid(startup ? "startup_time is only known of a process that the gate starts"
                               : "nothing was measured");
    tell_values(v, e, t, seen, c, last);
    return v;
}

/// Whether a verdict is open because its pairs spread by more than was believed of them.
inline bool asks_for_more_pairs(const evidence& e, const terms& t, const slo_verdict& v) {
    const slo& s = v.what;
    if (v.outcome != verdict::inconclusive || s.factor <= 0 || !e.has_live_baseline()) return false;
    const comparison c = comparison_of(e, t, s);
    looked_at seen;
    for (std::size_t i = 0; i < std::min(e.candidate.size(), e.baseline.size()); ++i)
        seen.add(c.of_repeat(i), s, s.factor);
    return std::sqrt(sample_variance(seen.distances)) > prior_sd_of(e, t, s);
}

/// Means of fresh traffic, by the means of 20 batches in arrival order.
inline slo_verdict judge_fresh_mean(const evidence& e, const terms& t, const slo& s,
                                    bool to_the_end = false) {
    constexpr std::size_t batches = 20;
    slo_verdict v = undecided(s);
    v.limit = s.bound;
    v.method = "batch means t";
    std::vector<double> values;
    for (std::size_t i = 0; i < e.candidate.size(); ++i) {
        for (const double x : values_in_order(s.what.metric, e.candidate[i], t.read))
            if (std::isfinite(x) && x > 0) values.push_back(x);
        if (values.size() < 2 * batches) continue;
        std::vector<double> means;
        for (std::size_t b = 0; b < batches; ++b)
            means.push_back(
                mean_of({values.begin() + static_cast<long>(b * values.size() / batches),
                         values.begin() + static_cast<long>((b + 1) * values.size() / batches)}));
        const double mean = mean_of(values);
        look l;
        l.spread = spread_of::measured;
        l.df = batches - 1;
        l.mean = (s.at_most ? 1 : -1) * std::log(mean / s.bound);
        l.sd = std::sqrt(sample_variance(means)) / mean;  // of the logarithm, to first order
        // The batches of a stage share what differs from run to run: it is believed, not measured.
        const double run_sd = prior_sd_of(e, t, s);
        stored_side runs;
        runs.day_sd = run_sd / std::sqrt(static_cast<double>(i + 1));
        l.se = std::sqrt(l.sd * l.sd / batches + runs.day_sd * runs.day_sd);
        decide(l, t.rule);
        v.outcome = l.outcome;
        v.repeats = static_cast<int>(i + 1);
        v.method = "batch means t" + calibration_words(e, t, s);
        v.inputs = {{"batch_means", list<double>(means)}, {"limit", {v.limit}},
                    {"run_sd", {run_sd}}, {"stages", {static_cast<double>(i + 1)}}};
        v.arithmetic = "means of 20 batches " + listed(means) +
                       printed("; run-to-run sd %.6g over %zu stages", run_sd, i + 1);
        // The batches are what repeats are elsewhere.
        judging_rule as_batches = t.rule;
        as_batches.most = static_cast<int>(batches);
        tell_look(v, l, as_batches, static_cast<double>(batches), runs);
        if (v.outcome != verdict::inconclusive && !to_the_end) break;
    }
    v.requests = measured_requests(e, static_cast<std::size_t>(v.repeats));
    if (v.repeats == 0) {
        v.outcome = verdict::invalid;
        v.reason = "fewer than 40 requests have a value";
    }
    return v;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C37] verdicts in words ===================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// How far inside the limit the estimate is, relative; negative outside.
inline double headroom(const slo_verdict& v) {
    if (!std::isfinite(v.estimate.value) || v.limit == 0) return not_a_number;
    return (v.what.at_most ? 1 : -1) * (1 - v.estimate.value / v.limit);
}

/// What a verdict rests on beside what was measured: "typical repeat"; where requests are counted
/// those of the first repeats, if more came after the decision; "" where it is the same.
inline std::string basis_name(const slo_verdict& v) {
    if (std::isnan(v.estimate.value)) return {};
    const std::string unit = v.unit.empty() ? "repeat" : str(v.unit);
    if (!is_counted(v)) return "typical " + unit;
    if (v.estimate.value == v.measured) return {};
    return v.repeats == 1 ? "first " + unit : printed("first %d %ss", v.repeats, unit.c_str());
}
inline bool has_interval(const slo_verdict& v) {
    const estimate_t& e = v.estimate;
    return !std::isnan(e.low) && !std::isnan(e.high) && e.low != e.high;
}

/// `width`: to what the SLO's text is padded, so that the lines of a gate align.
inline std::string verdict_line(const slo_verdict& v, std::size_t width = 0) {
    const metric_id metric = v.what.what.metric;
    const auto shown = [&](double x) {
        const bool ratio = v.what.factor > 0 && std::isfinite(x);
        return ratio ? printed("%.3f x baseline", x) : value_text(metric, x);
    };
    std::string name = to_string(v.outcome);
    for (char& c : name) c = static_cast<char>(c - 'a' + 'A');
    std::string line =
        printed("%-12s  %-*s", name.c_str(), static_cast<int>(width), v.what.text().c_str());
    line += "  measured " + shown(v.measured);
    if (const std::string basis = basis_name(v); !basis.empty())
        line += ", " + basis + " " + shown(v.estimate.value);
    if (has_interval(v))
        line += " [" + shown(v.estimate.low) + ", " + shown(v.estimate.high) + "]";
    const double room = headroom(v);
    if (!std::isnan(room) && !is_share(metric))
        line += printed(", %.1f %% %s the limit", std::fabs(room) * 100,
                        room >= 0 ? "inside" : "outside");
    const bool stages = str(v.unit) == "stage";
    if (v.repeats > 0)
        line += printed(", %d %s%s %s %lld requests", v.repeats, v.unit.c_str(),
                        v.repeats == 1 ? "" : "s", stages ? "of fresh traffic," : "x",
                        stages ? v.requests : v.requests / v.repeats);
    if (!v.method.empty()) line += ", " + str(v.method);
    if (v.detectable > 0 && is_counted(v))
        line += printed(", shows misses from %.2g %%", v.detectable * 100);
    else if (v.detectable > 0)
        line += printed(", shows a miss from %.2g %%", v.detectable * 100);
    if (!v.reason.empty()) line += "; " + str(v.reason);
    return line;
}

/// A verdict's line without the spaces that align it.
inline std::string flat_line(const slo_verdict& v) {
    std::string line = verdict_line(v);
    line.erase(std::unique(line.begin(), line.end(),
                           [](char a, char b) { return a == ' ' && b == ' '; }),
               line.end());
    return line;
}

/// Whether a pass is only what was observed: of the guard on errors, which need not be shown.
inline bool is_only_observed(const slo_verdict& v) {
    return v.outcome == verdict::pass && v.what.what.metric == metric_id::error_rate &&
           v.estimate.high > v.limit;
}

/// A value in an objective's unit: as a ratio where it is held against a baseline.
inline std::string verdict_value_text(const slo_verdict& v, double x) {
    return v.what.factor > 0 && std::isfinite(x) ? printed("%.3f x", x)
                                                 : value_text(v.what.what.metric, x);
}

/// "measured 39.2 ms, typical repeat 39.1 ms".
inline std::string measured_text(const slo_verdict& v) {
    const std::string basis = basis_name(v);
    return "measured " + verdict_value_text(v, v.measured) +
           (basis.empty() ? "" : ", " + basis + " " + verdict_value_text(v, v.estimate.value));
}

inline std::string verdict_limit_text(const slo_verdict& v) {
    return v.what.factor > 0 ? printed("%.6g x", v.limit) : limit_text(v.what.what.metric, v.limit);
}
/// "56.6 % outside the limit", "" where that says nothing.
inline std::string room_text(const slo_verdict& v) {
    const double room = headroom(v);
    if (std::isnan(room) || is_share(v.what.what.metric)) return {};
    return printed("%.3g %% %s the limit", std::fabs(room) * 100, room >= 0 ? "inside" : "outside");
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C38] what the numbers alone say of an objective ==========================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the repeats alone say of one SLO: at the first look that decides, or at the last one.
inline slo_verdict judge_repeats(const evidence& e, const terms& t, const slo& s, bool to_the_end,
                                 bool is_guard = false) {
    const bool is_fresh = t.rule.traffic == fresh && !is_of_start(s.what.metric);
    const bool counts = is_share(s.what.metric) ||
                        (is_fresh && s.what.kind == statistic_kind::percentile);
    const bool mean = is_fresh && s.what.kind == statistic_kind::mean;
    slo_verdict v = counts ? judge_counts(e, t, s, to_the_end, is_guard)
                    : mean ? judge_fresh_mean(e, t, s, to_the_end)
                           : judge_values(e, t, s, to_the_end);
    if (counts || mean) v.measured = pooled_value(s.what, e.candidate, t.read);
    v.unit = repeat_word(t.rule, s.factor > 0 && e.has_live_baseline());
    return v;
}

/// Whether the data as a whole lie on the other side of the limit than a verdict says.
inline bool is_contradicted(const slo_verdict& v) {
    const bool is_met =
        v.what.at_most ? v.measured <= v.limit : v.measured >= v.limit;  // not by what is NaN
    return (v.outcome == verdict::pass && !is_met) || (v.outcome == verdict::fail && is_met);
}

/// "all repeats together: 305 ms, over the limit; the typical repeat: 292 ms".
inline std::string contradiction_text(const slo_verdict& early, const slo_verdict& late) {
    const slo& s = late.what;
    const bool is_over = late.measured > late.limit;
    const bool is_met = s.at_most ? !is_over : late.measured >= late.limit;
    const bool counts = is_counted(late);
    return "all repeats together: " + verdict_value_text(late, late.measured) + ", " +
           (is_met ? "within" : is_over ? "over" : "under") + " the limit; the " +
           (counts ? basis_name(early) : "typical " + str(late.unit)) + ": " +
           verdict_value_text(late, (counts ? early : late).estimate.value);
}

/// What the numbers alone say of one SLO. A verdict and the data never contradict each other: where
/// they do, as when one repeat has nearly all that is slow, or those after a decision are unlike
/// those before it, all of them are looked at, and what is contradictory still is inconclusive.
inline slo_verdict judge_evidence(const evidence& e, const terms& t, const slo& s,
                                  bool to_the_end = false, bool is_guard = false) {
    const slo_verdict early = judge_repeats(e, t, s, to_the_end, is_guard);
    if (to_the_end || !is_contradicted(early)) return early;
    slo_verdict v = judge_repeats(e, t, s, true);
    if (is_contradicted(v)) v.outcome = verdict::inconclusive;
    if (v.outcome == verdict::inconclusive)
        v.reason = contradiction_text(early, v) + (v.reason.empty() ? "" : "; " + str(v.reason));
    return v;
}

/// A verdict that says why it cannot say more.
inline slo_verdict without_advice(slo_verdict v, verdict outcome, const std::string& reason) {
    v.outcome = outcome;
    v.reason = reason;
    v.advice = text();
    return v;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C39] verdicts that the client may have decided ===========================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Between what the worst and the best reading of one repeat or pair make of a statistic.
struct value_range {
    double low = not_a_number, high = not_a_number;
    /// The ratio's logarithm, of shares the difference: how much of it the client may have made.
    double width(metric_id m) const {
        if (!(low < high)) return 0;
        if (is_share(m)) return high - low;
        return low > 0 && std::isfinite(high) ? std::log(high / low) : infinity;
    }
};

/// The repeat, or the pair, that the client has the most part in.
struct client_part {
    std::size_t repeat = 0;
    value_range values{};
    double width = 0;
};
inline client_part greatest_part(const evidence& e, terms t, const slo& s) {
    t.read = reading::at_worst;
    const comparison worst = comparison_of(e, t, s);
    t.read = reading::at_best;
    const comparison best = comparison_of(e, t, s);
    client_part most;
    const std::size_t n =
        best.paired ? std::min(e.candidate.size(), e.baseline.size()) : e.candidate.size();
    for (std::size_t i = 0; i < n; ++i) {
        const double a = best.of_repeat(i), b = worst.of_repeat(i);
        // What no time may be left of has no value, and may be anything.
        const value_range r = std::isnan(a) || std::isnan(b)
                                  ? value_range{0, infinity}
                                  : value_range{std::min(a, b), std::max(a, b)};
        if (const double width = r.width(s.what.metric); width > most.width) most = {i, r, width};
    }
    return most;
}

/// Why a verdict would be the client's and not the server's, and the repeat to measure again.
struct client_doubt {
    std::string why{};
    std::size_t repeat = 0;  // its place in the evidence
};

/// A load that was sent at other times than planned is another load: what counts from the planned
/// times cannot be missed by it. It can be met: later sends bring no answer forward.
inline std::optional<client_doubt> doubt_of_load(const evidence& e, const slo_verdict& v) {
    if (v.outcome == verdict::pass) return {};
    if (!concerns(v.what.what, &metric_facts::is_hurt_by_lateness)) return {};
    double most = 0.20;
    std::optional<client_doubt> doubt;
    for (const auto* arm : {&e.candidate, &e.baseline})
        for (std::size_t i = 0; i < arm->size(); ++i) {
            const double share = late_share_of((*arm)[i]);
            if (share <= most) continue;
            most = share;
            doubt = {printed("client: %.0f %% of the requests of a repeat were sent over %s late, "
                             "so its load was not the one asked for",
                             share * 100, time_text(missed_after_s((*arm)[i])).c_str()),
                     i};
        }
    return doubt;
}

/// Whether a verdict would be another one, had the client not been late. A pass that holds with its
/// delays counted against the server stands, and a miss that remains without them. What is
/// undecided is so by the client's doing where it may have moved a repeat by more than repeats of a
/// quiet machine differ anyway, unless it is so as the run was cut short.
inline bool may_be_the_clients(const evidence& e, const terms& t, const slo_verdict& v) {
    const auto as_read = [&](reading how) {
        terms other = t;
        other.read = how;
        return judge_evidence(e, other, v.what).outcome;
    };
    switch (v.outcome) {
    case verdict::pass: return as_read(reading::at_worst) != verdict::pass;
    case verdict::fail: return as_read(reading::at_best) != verdict::fail;
    case verdict::inconclusive:
        return (!is_share(v.what.what.metric) && e.stopped.empty() &&
                greatest_part(e, t, v.what).width > prior_sd) ||
               as_read(reading::at_best) == verdict::pass ||
               as_read(reading::at_worst) == verdict::fail;
    default: return false;
    }
}
inline std::string range_text(const slo& s, const value_range& r) {
    const auto shown = [&](double x) {
        const bool ratio = s.factor > 0 && std::isfinite(x);
        return ratio ? printed("%.3g x baseline", x) : value_text(s.what.metric, x);
    };
    return str(s.what.name) + " could be anything from " + shown(r.low) + " to " + shown(r.high) +
           "; the limit is " +
           (s.factor > 0 ? printed("%.6g x", s.factor) : limit_text(s.what.metric, s.bound));
}

inline client_doubt doubt_in_values(const evidence& e, const terms& t, const slo& s) {
    const client_part part = greatest_part(e, t, s);
    std::size_t times = 0;
    double longest = 0;
    for (const auto* arm : {&e.candidate, &e.baseline}) {
        if (part.repeat >= arm->size()) continue;
        const blind_stretches& blind = (*arm)[part.repeat].blind;
        times += held_up_times(blind);
        longest = std::max(longest, held_up_longest_s(blind));
    }
    const std::string what =
        times == 0 ? "it sent late"
                   : printed("it was held up %zu time%s, for up to %s", times,
                             times == 1 ? "" : "s", time_text(longest).c_str());
    return {"client: " + what + ", and " + range_text(s, part.values), part.repeat};
}

/// Why this verdict is the client's, if it is.
inline std::optional<client_doubt> doubt_of(const evidence& e, const terms& t,
                                            const slo_verdict& v) {
    const slo& s = v.what;
    const bool is_none = v.outcome == verdict::invalid || v.outcome == verdict::skipped;
    if (is_none || s.what.metric == metric_id::error_rate || is_of_start(s.what.metric)) return {};
    if (const auto doubt = doubt_of_load(e, v)) return doubt;
    bool had_part = false;
    for_each_repeat(e, [&](const repeat_data& d) { had_part = had_part || client_had_part(d); });
    if (!had_part || !may_be_the_clients(e, t, v)) return {};
    return doubt_in_values(e, t, s);
}

/// Why repeats are no baseline for later runs: slowness that is the client's would make these pass.
inline std::optional<client_doubt> doubt_of_baseline(const evidence& e, const terms& t) {
    for (slo s : t.slos) {
        if (s.factor == 0) continue;
        s.factor = 0;  // the values themselves
        if (greatest_part(e, t, s).width <= prior_sd) continue;
        client_doubt doubt = doubt_in_values(e, t, s);
        doubt.why.erase(doubt.why.find("; the limit is"));
        return doubt;
    }
    return {};
}

/// A verdict that the client may have decided is none. `found`: where to put the first such doubt.
inline slo_verdict settled(const evidence& e, const terms& t, slo_verdict v,
                           std::optional<client_doubt>* found = nullptr) {
    const std::optional<client_doubt> doubt = doubt_of(e, t, v);
    if (!doubt) return v;
    if (found && !*found && !v.what.is_advisory) *found = doubt;
    return without_advice(std::move(v), verdict::invalid, doubt->why);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C40] how many requests a verdict rests on at least =======================================
// A plan is held against it before its load, and what came in once more: a run that is bounded by
// time measures as many requests as the server answers in it.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The part of all requests that lies beyond a percentile.
inline double tail_of(const statistic_data& w) { return is_speed(w.metric) ? w.q : 1 - w.q; }

/// Values of a repeat without which its mean, maximum or throughput is hardly more than one
/// request's: those differ by 10 % and more from run to run, and the rule believes in 4 %.
inline constexpr long long least_values = 10;

/// Values in each repeat of replayed traffic without which a statistic of it says nothing: three
/// beyond a percentile. 0: there is no such number.
inline long long least_replayed(const statistic_data& w) {
    if (is_share(w.metric) || is_of_start(w.metric)) return 0;
    if (w.kind != statistic_kind::percentile) return least_values;
    return static_cast<long long>(std::ceil(3 / tail_of(w) - 1e-9));
}
/// Requests in the first stage of fresh traffic without which no verdict could be a pass: at 95 %,
/// and at the last look at its own level.
inline long long least_fresh(const statistic_data& w, const judging_rule& rule) {
    if (w.kind == statistic_kind::mean) return 40;
    if (w.kind != statistic_kind::percentile) return least_values;
    const double all_stages = rule.most == last_stage ? 4 : rule.most;
    const double last_level = 1 - normal_cdf(rule.pass_z);
    return static_cast<long long>(
        std::ceil(std::min(std::log(0.05), std::log(last_level) / all_stages) /
                      std::log(1 - tail_of(w)) -
                  1e-9));
}

/// Values that a statistic of a repeat is of. Failed requests are among those of a percentile.
inline std::size_t values_behind(const statistic_data& w, const repeat_data& d) {
    const bool of_completed = w.kind == statistic_kind::mean || is_throughput(w.metric);
    if (is_throughput(w.metric))
        return static_cast<std::size_t>(
            std::count_if(d.records.begin(), d.records.end(), is_pooled));
    const metric_sample s = sample_of(w.metric, d);
    const std::size_t values =
        facts_of(w.metric).is_of_gaps ? ranked_gaps(d).size() : s.values.size();
    return values + (of_completed ? 0 : s.failed);
}

/// Why a sample does not support an objective, "" where it does. Nobody but the plan is at fault.
inline std::string sample_invalid_reason(const evidence& e, const judging_rule& rule,
                                         const slo& s) {
    const statistic_data& w = s.what;
    const bool is_fresh = rule.traffic == fresh && !is_share(w.metric) && !is_of_start(w.metric);
    const auto needed =
        static_cast<std::size_t>(is_fresh ? least_fresh(w, rule) : least_replayed(w));
    for (const auto* arm : {&e.candidate, &e.baseline})
        for (std::size_t i = 0; i < arm->size(); ++i) {
            if (arm == &e.baseline && s.factor == 0) break;
            const std::size_t n = values_behind(w, (*arm)[i]);
            if (n >= needed) continue;
            const bool of_gaps = facts_of(w.metric).is_of_gaps;
            return printed("the plan: repeat %zu%s measured %zu %s%s, %s needs %zu%s: let it run "
                           "longer",
                           i + 1, arm == &e.baseline ? " of the baseline" : "", n,
                           of_gaps ? "gap" : "request", n == 1 ? "" : "s", w.name.c_str(), needed,
                           w.kind == statistic_kind::percentile && !is_fresh
                               ? " so that three lie beyond it"
                               : "");
        }
    return {};
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C41] what a server's answers can say against its numbers =================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// So much of anything spoils nothing: over 5 % of the completed requests does.
inline bool is_too_much(std::size_t some, std::size_t completed) { return some * 20 > completed; }

/// The requests that a metric speaks of, and the completed ones that it has no value of.
struct value_count {
    std::size_t of = 0, completed = 0, missing = 0;
};
/// Tokens of prompts that requests say were in the server's prefix cache, of how many, and how many
/// of these the workload lets others have sent before; -1 where that is not known.
struct cache_counts {
    long long requests = 0, prompt = 0, cached = 0, shared = 0;
};
/// The completed requests of one arm, counted by what makes them no evidence.
struct answer_counts {
    std::size_t completed = 0;
    std::size_t too_short = 0, too_long = 0;  // fewer tokens than forced, and more
    std::size_t of_choices = 0;               // several answers in one
    std::size_t over_content = 0;             // more tokens in usage than in the text
    // Of those whose pieces the client read as they came, with tokens after the first event:
    std::size_t paced = 0;
    std::size_t in_one_piece = 0, in_a_lump = 0;
    double events = 0, read_together = 0;
    cache_counts cache{};
    std::array<value_count, std::size(metric_table)> values{};
    const value_count& of(metric_id m) const { return values[static_cast<std::size_t>(m)]; }
};
/// What of an answer's pieces the client may itself have read together, as it did not run. A delay
/// explains no more than it could have hidden.
struct gathered_by_client {
    bool piece = false, lump = false;
    double events = 0;
};
inline gathered_by_client gathered_by(const blind_stretches& blind, const record& r) {
    gathered_by_client g;
    const double late = static_cast<double>(possible_delay(blind, r.first_token_ns)) * 1e-9;
    g.piece = late > 0 && late * 10 >= wait_s(r);
    g.lump = late > 0 && late * 2 >= hidden_s(r);
    const double lost =
        static_cast<double>(lost_between(blind, r.first_token_ns, r.last_token_ns)) * 1e-9;
    if (lost > 0) g.events = lost / spread_s(r) * (r.events - 1);
    return g;
}
/// Seconds from event to event of a server that is as fast as a client's turns: at most 1 ms in the
/// typical answer that was read in more than one piece, and those are three quarters of all. 0 of
/// any other server. Where a busy machine lets such a client read several events together, nothing
/// is hidden but that little.
inline double fast_gap_of(const std::vector<repeat_data>& arm) {
    std::vector<double> gaps;
    std::size_t several = 0;
    for (const repeat_data& d : arm)
        for (const record& r : d.records) {
            if (!is_pooled(r) || r.events < 2) continue;
            ++several;
            if (!is_in_one_piece(r)) gaps.push_back(spread_s(r) / (r.events - 1));
        }
    if (gaps.empty() || gaps.size() * 4 < several * 3) return 0;
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::nth_element(gaps.begin(), middle, gaps.end());
    return *middle <= 0.001 ? *middle : 0;
}
inline void add_stream(answer_counts& c, const repeat_data& d, const record& r, double fast_gap) {
    const bool hides = fast_gap == 0 || fast_gap * paced_tokens(r) > 0.010;
    const bool in_one_piece = is_in_one_piece(r) && hides;
    const gathered_by_client client = gathered_by(d.blind, r);
    if ((in_one_piece && client.piece) || (begins_in_a_lump(r) && client.lump)) return;
    c.paced += paced_tokens(r) > 0;
    c.in_one_piece += in_one_piece;
    c.in_a_lump += in_one_piece || begins_in_a_lump(r);
    c.events += r.events;
    if (fast_gap == 0 || in_one_piece)
        c.read_together += std::max(events_read_together(r) - client.events, 0.0);
}
inline void add_completed(answer_counts& c, const repeat_data& d, const record& r,
                          double fast_gap) {
    ++c.completed;
    c.of_choices += r.choices > 1;
    c.over_content += usage_is_over_content(r);
    add_stream(c, d, r, fast_gap);
    if (r.cached_tokens < 0 || r.prompt_tokens <= 0) return;
    ++c.cache.requests;
    c.cache.prompt += r.prompt_tokens;
    c.cache.cached += r.cached_tokens;
}
inline answer_counts answer_counts_of(const std::vector<repeat_data>& arm) {
    answer_counts c;
    const double fast_gap = fast_gap_of(arm);
    for (const repeat_data& d : arm) {
        c.too_short += static_cast<std::size_t>(d.short_outputs);
        c.too_long += static_cast<std::size_t>(d.long_outputs);
        const long long told = c.cache.requests;
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            const record& r = d.records[i];
            const bool ok = r.status == request_status::ok;
            if (ok && is_measured(r)) add_completed(c, d, r, fast_gap);
            for (const metric_facts& f : metric_table) {
                const bool may_miss = f.needs != value_needs::nothing || is_of_turns(f.id);
                if (!may_miss || !is_part_of(f.id, r)) continue;
                value_count& n = c.values[static_cast<std::size_t>(f.id)];
                ++n.of;
                n.completed += ok;
                n.missing += ok && !has_value(f.id, d, i);
            }
        }
        if (c.cache.requests > told && d.shared_tokens < 0) c.cache.shared = -1;
        if (c.cache.shared >= 0 && d.shared_tokens > 0) c.cache.shared += d.shared_tokens;
    }
    return c;
}

/// Why a metric is none of the requests that completed, "" where it is. Of answers of one token,
/// where those were asked for, there is no pace: what is judged is the others', if there are any.
inline std::string missing_values(const answer_counts& c, metric_id m, bool short_ones_expected) {
    const metric_facts& f = facts_of(m);
    const value_count& n = c.of(m);
    const bool allowed = short_ones_expected && (f.needs == value_needs::second_token ||
                                                 f.needs == value_needs::second_event);
    if (n.of == 0 && is_of_turns(m)) return printed("no request was one that %s is of", f.name);
    const bool some_left = n.missing < n.completed;
    if (n.missing == 0 || (some_left && (allowed || !is_too_much(n.missing, n.completed))))
        return {};
    return printed("%zu of %zu completed requests have no %s, which %s needs", n.missing,
                   n.completed, needs_text(f.needs), f.name);
}

/// Why the answers were to another load than the one asked for, "" where they were not.
inline std::string other_load(const answer_counts& c) {
    const auto of_all = [&](std::size_t n, const char* what) {
        return printed("%zu of %zu completed requests %s", n, c.completed, what);
    };
    if (is_too_much(c.too_short, c.completed))
        return of_all(c.too_short, "brought fewer tokens than forced: it does not heed ignore_eos, "
                                   "or stops by itself");
    if (is_too_much(c.too_long, c.completed))
        return of_all(c.too_long, "tell of more tokens than forced: it does not heed the length, "
                                  "or its usage is wrong");
    if (is_too_much(c.of_choices, c.completed))
        return of_all(c.of_choices, "brought several choices, one was asked for: what their tokens "
                                    "take is not told apart");
    return {};
}

/// Why the prompts were not new to the server, "" where they may have been. Allowed beyond what the
/// workload shares are 5 % of the tokens, and a block of 16 a request: caches that compare token by
/// token also find first words that are the same by chance, and templates differ.
inline std::string known_prompts(const cache_counts& c) {
    const auto share = [&](long long n) {
        return 100.0 * static_cast<double>(n) / static_cast<double>(c.prompt);
    };
    if (c.shared < 0 || c.cached <= c.shared + c.prompt / 20 + 16 * c.requests) return {};
    return printed("%.3g %% of the prompt tokens came from its prefix cache, the workload shares "
                   "at most %.3g %%: the prompts were seen before",
                   share(c.cached), share(c.shared));
}

/// What the answers of one arm say against an objective, "" where nothing.
inline std::string answers_invalid_reason(const answer_counts& c, const statistic_data& what,
                                          bool short_ones_expected) {
    for (std::string why : {other_load(c), known_prompts(c.cache)})
        if (!why.empty()) return why;
    if (concerns(what, &metric_facts::counts_output) && is_too_much(c.over_content, c.completed))
        return printed("%zu of %zu completed requests have more tokens in usage than their text "
                       "can be: it counts what it did not send, or wrongly",
                       c.over_content, c.completed);
    std::string why;
    concerns_a_metric(what, [&](metric_id m) {
        why = missing_values(c, m, short_ones_expected);
        return !why.empty();
    });
    return why;
}

/// What the stream of one arm says against an objective, "" where nothing. Whether a server holds
/// its tokens back or a proxy on the way does cannot be told from here, and makes no difference.
inline std::string stream_invalid_reason(const answer_counts& c, const statistic_data& what) {
    if (!concerns(what, &metric_facts::is_of_decoding)) return {};
    if (is_too_much(c.in_one_piece, c.paced))
        return printed("the stream does not stream: %zu of %zu answers came in one piece, 5 %% "
                       "may: the server or a proxy holds them back",
                       c.in_one_piece, c.paced);
    if (is_too_much(c.in_a_lump, c.paced))
        return printed("the stream does not stream: %zu of %zu answers began with over 5 %% of "
                       "their tokens at once, 5 %% may: the server or a proxy holds them back",
                       c.in_a_lump, c.paced);
    if (concerns(what, &metric_facts::is_of_gaps) && c.read_together * 20 > c.events)
        return printed("the stream comes in lumps: %.1f %% of the content events were read "
                       "together with an earlier one, 5 %% may: the server or a proxy holds "
                       "them back",
                       100 * c.read_together / c.events);
    return {};
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C42] verdicts that stand although tokens were held back ==================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Of a stream that mostly streams, a verdict needs to withstand no more than the rest can hide:
/// on a machine that all share, a few answers come in lumps. A pass does where it is one even if
/// tokens that came at once took all the time before them, and so does what is undecided. A miss of
/// a time per token does as it is, since that time only adds to it; gaps that became one may be
/// longer than any was.
inline bool stands_though_held_back(const evidence& e, const terms& t, const answer_counts& arm,
                                    const slo_verdict& v) {
    const statistic_data& what = v.what.what;
    if (arm.in_a_lump * 2 > arm.paced || arm.read_together * 2 > arm.events) return false;
    const bool of_gaps = concerns(what, &metric_facts::is_of_gaps);
    bool listed = true;
    for_each_repeat(e, [&](const repeat_data& d) { listed = listed && !d.gaps_counted; });
    if (is_throughput(what.metric) || (of_gaps && !listed)) return false;
    if (v.outcome == verdict::fail && of_gaps) return false;
    terms other = t;
    other.read = v.outcome == verdict::fail ? reading::baseline_held_back : reading::as_held_back;
    return judge_evidence(e, other, v.what).outcome == v.outcome;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C43] servers that cannot keep up =========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Slope of the means of ten batches in order, and its t value (8 degrees of freedom).
struct trend {
    double per_batch = 0, t = 0;
};
inline trend trend_of(const std::vector<double>& values) {
    constexpr std::size_t batches = 10;
    std::vector<double> means;
    for (std::size_t b = 0; b < batches; ++b)
        means.push_back(mean_of({values.begin() + static_cast<long>(b * values.size() / batches),
                                 values.begin() +
                                     static_cast<long>((b + 1) * values.size() / batches)}));
    const double center = mean_of(means), middle = (batches - 1) / 2.0;
    double xy = 0, xx = 0, residual = 0;
    for (std::size_t b = 0; b < batches; ++b) {
        xy += (static_cast<double>(b) - middle) * (means[b] - center);
        xx += (static_cast<double>(b) - middle) * (static_cast<double>(b) - middle);
    }
    trend r;
    r.per_batch = xy / xx;
    for (std::size_t b = 0; b < batches; ++b) {
        const double fitted = center + r.per_batch * (static_cast<double>(b) - middle);
        residual += (means[b] - fitted) * (means[b] - fitted);
    }
    const double error = std::sqrt(residual / (batches - 2) / xx);
    r.t = error > 0 ? r.per_batch / error : r.per_batch > 0 ? infinity : 0;
    return r;
}

/// How the load outgrew the server in one repeat, "" where that is not shown. Requests in flight
/// must have grown by a tenth of the arrivals, and by more than the random walk does that a server
/// at exactly its capacity makes of this traffic (level 0.1 %); ttft must have grown with them. The
/// time that the first answers took is left out: until then every load fills up.
inline std::string oversaturation_of(const repeat_data& d, double arrival_cv2) {
    std::vector<long long> ends;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        ends.push_back(d.records[i].end_ns);
        order.push_back(i);
    }
    std::sort(ends.begin(), ends.end());
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const long long at = d.records[a].scheduled_ns, other = d.records[b].scheduled_ns;
        return at != other ? at < other : a < b;
    });
    std::vector<double> early;
    for (std::size_t k = 0; k < order.size() / 4; ++k)
        if (const record& r = d.records[order[k]]; r.status == request_status::ok)
            early.push_back(static_cast<double>(r.end_ns - r.scheduled_ns));
    if (early.empty()) return {};
    std::sort(early.begin(), early.end());
    const long long filled = d.records[order[0]].scheduled_ns +
                             static_cast<long long>(nearest_rank(early, 0.5));
    std::vector<double> in_flight, ttft_s, tokens;
    for (std::size_t k = 0; k < order.size(); ++k) {
        const record& r = d.records[order[k]];
        if (!is_measured(r) || r.scheduled_ns < filled) continue;
        const auto ended = std::upper_bound(ends.begin(), ends.end(), r.scheduled_ns);
        in_flight.push_back(static_cast<double>(k + 1) -
                            static_cast<double>(ended - ends.begin()));
        if (r.status != request_status::ok) continue;
        ttft_s.push_back(static_cast<double>(r.first_token_ns - r.scheduled_ns) * 1e-9);
        tokens.push_back(r.output_tokens);
    }
    const double n = static_cast<double>(in_flight.size());
    if (n < 40 || ttft_s.size() < 20) return {};
    const double work_cv2 = sample_variance(tokens) / std::pow(std::max(1.0, mean_of(tokens)), 2);
    // The slope over a random walk has a variance of 6/5 n; arrivals that start and end on time, as
    // planned ones do, 1/5 n.
    const double wandering = std::sqrt(n * (0.2 * arrival_cv2 + 1.2 * work_cv2));
    const trend grown = trend_of(in_flight), slower = trend_of(ttft_s);
    const double growth = 10 * grown.per_batch;
    const double t_limit = 4.501;  // Student t, 8 degrees of freedom, 0.1 %
    if (growth <= std::max(0.1 * n, 3.09 * wandering) || grown.t < t_limit || slower.t < t_limit)
        return {};
    return printed("requests in flight grew by %.0f while %.0f were sent, and ttft by %s: the load "
                   "is over the server's capacity",
                   growth, n, time_text(10 * slower.per_batch).c_str());
}

/// Why the load was more than the server can take, "" where that is not shown in most repeats.
inline std::string over_saturation_reason(const evidence& e) {
    if (std::isnan(e.arrival_cv2)) return {};
    for (const auto* arm : {&e.candidate, &e.baseline}) {
        std::size_t shown = 0;
        std::string example;
        for (const repeat_data& d : *arm)
            if (const std::string why = oversaturation_of(d, e.arrival_cv2); !why.empty()) {
                ++shown;
                example = why;
            }
        if (2 * shown > arm->size())
            return std::string(arm == &e.baseline ? "baseline " : "") +
                   "over-saturated: " + example;
    }
    return {};
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C44] what makes a measurement invalid ====================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Why nothing at all can be said, "" where something can.
inline std::string gate_invalid_reason(const evidence& e) {
    if (e.candidate.empty() && !e.stopped.empty()) return {};
    if (const std::string lack = client_lack(e); !lack.empty()) return lack;
    for (const auto* arm : {&e.candidate, &e.baseline}) {
        const std::string who = arm == &e.baseline ? "baseline server" : "server";
        std::size_t measured = 0, succeeded = 0;
        std::string example;
        for (const repeat_data& d : *arm) {
            if (d.interrupted) return "the run was interrupted";
            if (!d.target_gone.empty()) return who + ": " + d.target_gone;
            for (const record& r : d.records) {
                if (!is_measured(r)) continue;
                ++measured;
                succeeded += r.status == request_status::ok;
                if (example.empty() && r.status != request_status::ok)
                    example = std::string(to_string(r.status)) + ": " + str(r.error);
            }
        }
        if (arm == &e.baseline && arm->empty()) continue;
        if (succeeded == 0)
            return measured == 0 ? "no request was measured"
                                 : who + ": none of " + std::to_string(measured) +
                                       " requests succeeded (" + example + ")";
    }
    return {};
}

/// What all objectives of a gate stand on, found once for a look at its evidence.
struct grounds {
    self_check_t self_check{};
    std::string invalid{};    // why nothing at all can be said
    std::string saturated{};  // why the load was more than the server can take
    answer_counts candidate{}, baseline{};
    prefix_hits cache{}, baseline_cache{};
};
inline grounds grounds_of(const evidence& e) {
    return {self_check_of(e), gate_invalid_reason(e), over_saturation_reason(e),
            answer_counts_of(e.candidate), answer_counts_of(e.baseline),
            prefix_hits_of(e.candidate), prefix_hits_of(e.baseline)};
}

/// Why a verdict on an SLO is none, "" where it is one.
inline std::string slo_invalid_reason(const evidence& e, const terms& t, const grounds& g,
                                      const slo_verdict& v) {
    const slo& s = v.what;
    const bool compared = e.has_live_baseline() || !t.stored.file.empty();
    if (s.factor > 0 && !compared) return "there is no baseline";
    if (s.what.metric == metric_id::error_rate || is_of_start(s.what.metric)) return {};
    const self_check_t& check = g.self_check;
    if (concerns(s.what, &metric_facts::is_of_gaps) && check.coalesced_share > 0.05 &&
        check.cpu_share > 0.8)
        return printed("client: it was busy and read %.1f %% of the events together",
                       check.coalesced_share * 100);
    if (concerns(s.what, &metric_facts::is_hurt_by_lateness) ||
        client_was_saturated(e, check.cpu_share))
        if (!check.ok) return str(check.reason);
    for (const answer_counts* arm : {&g.candidate, &g.baseline}) {
        const bool is_baseline = arm == &g.baseline;
        if (is_baseline && (s.factor <= 0 || !e.has_live_baseline())) continue;
        const std::string held = stream_invalid_reason(*arm, s.what);
        if (!held.empty() && !stands_though_held_back(e, t, *arm, v))
            return (is_baseline ? "baseline: " : "") + held;
        const std::string why = answers_invalid_reason(*arm, s.what, e.short_outputs_expected);
        if (!why.empty()) return (is_baseline ? "baseline server: " : "server: ") + why;
    }
    return {};
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C45] the verdicts of a gate ==============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a prefix cache did for what passes, "" where it did nothing to speak of.
inline std::string cache_text(const grounds& g, const slo& s) {
    const bool compares = s.factor > 0 && g.baseline_cache.prompt > 0;
    const double other = compares ? g.baseline_cache.share() : 0;
    if (!concerns(s.what, &metric_facts::is_of_prefill) || std::max(g.cache.share(), other) < 0.01)
        return {};
    return printed("%.3g %% of the prompt tokens came from the server's prefix cache",
                   100 * g.cache.share()) +
           (compares ? printed(", with the baseline %.3g %%", 100 * other) : "");
}

inline slo error_guard() {
    slo s;
    s.what = make_statistic(statistic_kind::value, metric_id::error_rate, 0);
    s.bound = 0.01;
    return s;
}
inline bool states_error_rate(const std::vector<slo>& slos) {
    return std::any_of(slos.begin(), slos.end(), [](const slo& s) {
        return s.what.metric == metric_id::error_rate && !s.is_advisory;
    });
}
/// What errors are held against: what the gate states, or else the guard.
inline slo error_limit(const std::vector<slo>& slos) {
    const auto stated = std::find_if(slos.begin(), slos.end(), [](const slo& s) {
        return s.what.metric == metric_id::error_rate && !s.is_advisory;
    });
    return stated == slos.end() ? error_guard() : *stated;
}

/// The verdict of one SLO.
inline slo_verdict judged(const evidence& e, const terms& t, const grounds& g, const slo& s,
                          bool is_guard = false) {
    if (e.candidate.empty() && !e.stopped.empty())
        return without_advice(undecided(s), verdict::inconclusive, e.stopped);
    slo_verdict v = judge_evidence(e, t, s, false, is_guard);
    if (!g.invalid.empty()) return without_advice(v, verdict::invalid, g.invalid);
    if (const std::string why = slo_invalid_reason(e, t, g, v); !why.empty())
        return without_advice(v, verdict::invalid, why);
    // What has no value at all says so itself.
    const std::string small = sample_invalid_reason(e, t.rule, s);
    if (!small.empty() && v.outcome != verdict::invalid)
        return without_advice(v, verdict::invalid, small);
    const bool of_the_server =
        s.what.metric != metric_id::error_rate && !is_of_start(s.what.metric);
    if (!g.saturated.empty() && of_the_server)
        return without_advice(v, v.outcome == verdict::fail ? verdict::fail : verdict::invalid,
                              g.saturated);
    if (s.factor > 0 && e.has_live_baseline()) {
        const baseline_errors b = baseline_errors_of(e, t, error_limit(t.slos));
        if (b.outcome != verdict::pass) return without_advice(v, b.outcome, b.why);
    }
    if (v.outcome == verdict::inconclusive && !e.stopped.empty())
        return without_advice(v, v.outcome,
                              e.stopped + (v.reason.empty() ? "" : "; " + str(v.reason)));
    if (v.outcome == verdict::inconclusive && (v.reason.empty() || is_share(s.what.metric))) {
        if (v.reason.empty()) v.reason = "too close to call";
        const double would_pass = s.at_most ? v.estimate.high : v.estimate.low;
        if (!is_guard && v.advice.empty() && std::isfinite(would_pass) && would_pass > 0)
            v.advice = limit_to_write(s, would_pass * (s.at_most ? 1.02 : 0.98)) + " would pass";
    }
    if (const std::string cached = cache_text(g, s); v.outcome == verdict::pass && !cached.empty())
        v.reason = (v.reason.empty() ? "" : str(v.reason) + "; ") + cached;
    return v;
}

/// One verdict per SLO in order, then the guard on errors unless the gate states its own limit.
/// `doubt`: why the first of them that is none through the client's fault is none.
inline std::vector<slo_verdict> judge_each(const evidence& e, const terms& t, const grounds& g,
                                           std::optional<client_doubt>& doubt) {
    std::vector<slo_verdict> out;
    doubt.reset();
    for (const slo& s : t.slos) out.push_back(settled(e, t, judged(e, t, g, s), &doubt));
    if (!states_error_rate(t.slos)) out.push_back(judged(e, t, g, error_guard(), true));
    return out;
}

/// The same under Holm (1979): the level is divided by the number of SLOs that are not shown to be
/// missed.
inline std::vector<slo_verdict> judge_stepwise(const evidence& e, const terms& t, const grounds& g,
                                               std::optional<client_doubt>& doubt) {
    terms stricter = t;
    auto left = std::count_if(t.slos.begin(), t.slos.end(),
                              [](const slo& s) { return !s.is_advisory; });
    const auto blocking = left;
    for (;;) {
        stricter.rule = t.rule.failing_at(t.rule.fail_level /
                                          static_cast<double>(std::max(1l, left)));
        std::vector<slo_verdict> out = judge_each(e, stricter, g, doubt);
        long failed = 0;  // the guard is none of them
        for (std::size_t i = 0; i < t.slos.size(); ++i)
            failed += !out[i].what.is_advisory && out[i].outcome == verdict::fail;
        if (blocking - failed >= left) return out;
        left = blocking - failed;
    }
}

/// What a look at the evidence finds. Made once per look; whoever reports reads it and computes
/// nothing.
struct findings {
    grounds on{};
    std::vector<slo_verdict> verdicts{};
    std::optional<client_doubt> doubt{};  // why one that counts is invalid through the client
};
inline findings assess(const evidence& e, const terms& t) {
    findings f;
    f.on = grounds_of(e);
    f.verdicts = t.rule.holm ? judge_stepwise(e, t, f.on, f.doubt)
                             : judge_each(e, t, f.on, f.doubt);
    if (f.doubt && f.on.self_check.ok) {
        f.on.self_check.ok = false;
        f.on.self_check.reason = f.doubt->why;
    }
    return f;
}
/// The verdict on one more SLO, as if the gate had stated it too.
inline slo_verdict judged_also(const evidence& e, terms t, const slo& s) {
    t.slos.push_back(s);
    return settled(e, t, judged(e, t, grounds_of(e), s));
}

inline bool all_decided(const std::vector<slo_verdict>& verdicts) {
    return std::none_of(verdicts.begin(), verdicts.end(),
                        [](const slo_verdict& v) { return v.outcome == verdict::inconclusive; });
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C46] from verdicts to an exit code =======================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// How a gate ended. The first value is what it is until then: whatever escapes from a run leaves
/// it behind, and it is never green.
enum class gate_outcome : unsigned char { unfinished, passed, failed, refused, invalid, skipped };

/// What of these a program exits with.
inline int exit_code_of(gate_outcome o) {
    switch (o) {
    case gate_outcome::passed: return 0;
    case gate_outcome::failed: return 1;
    case gate_outcome::refused: return 2;
    case gate_outcome::skipped: return 77;
    case gate_outcome::unfinished:
    case gate_outcome::invalid: break;
    }
    return 3;
}
inline const char* to_string(gate_outcome o) {
    switch (o) {
    case gate_outcome::passed: return "passed";
    case gate_outcome::failed: return "failed";
    case gate_outcome::refused: return "refused";
    case gate_outcome::skipped: return "skipped";
    case gate_outcome::unfinished:
    case gate_outcome::invalid: break;
    }
    return "invalid";
}
/// In the order in which a reader should hear of them.
inline constexpr gate_outcome worst_first[] = {
    gate_outcome::failed,  gate_outcome::refused, gate_outcome::unfinished,
    gate_outcome::invalid, gate_outcome::skipped, gate_outcome::passed};

inline gate_outcome worse_of(gate_outcome a, gate_outcome b) {
    return *std::find_if(std::begin(worst_first), std::end(worst_first),
                         [&](gate_outcome o) { return o == a || o == b; });
}

enum class inconclusive_means : unsigned char { warn, fail, skip };

/// The verdict in whose colour a gate of this outcome is told.
inline verdict verdict_like(gate_outcome o) {
    switch (o) {
    case gate_outcome::passed: return verdict::pass;
    case gate_outcome::failed: return verdict::fail;
    case gate_outcome::skipped: return verdict::skipped;
    default: return verdict::invalid;
    }
}

/// The worst of a gate's verdicts, advisory ones left out.
inline gate_outcome outcome_of(const std::vector<slo_verdict>& verdicts,
                               inconclusive_means policy) {
    bool fail = false, invalid = false, skip = false;
    for (const slo_verdict& v : verdicts) {
        if (v.what.is_advisory) continue;
        fail |= v.outcome == verdict::fail ||
                (v.outcome == verdict::inconclusive && policy == inconclusive_means::fail);
        invalid |= v.outcome == verdict::invalid;
        skip |= v.outcome == verdict::skipped ||
                (v.outcome == verdict::inconclusive && policy == inconclusive_means::skip);
    }
    return fail      ? gate_outcome::failed
           : invalid ? gate_outcome::invalid
           : skip    ? gate_outcome::skipped
                     : gate_outcome::passed;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C47] what a calibration tells ============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a calibration says of one limit.
struct calibrated {
    slo what{};
    double estimate = not_a_number, sd = not_a_number;  // sd of the log statistic between repeats
    double headroom_sd = not_a_number;                  // distance to the limit in such sd
    std::string suggestion{};
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C48] calibration =========================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The repeats taken as they are: nothing is judged. Shares are left out, their counts say it all.
inline std::vector<calibrated> calibration_of(const evidence& e, const terms& t) {
    std::vector<calibrated> rows;
    for (const slo& s : t.slos) {
        calibrated c;
        c.what = s;
        rows.push_back(c);
        if (is_share(s.what.metric)) continue;
        const double sign = s.at_most ? 1 : -1, limit = s.factor > 0 ? s.factor : s.bound;
        std::vector<double> logs;
        const bool paired = s.factor > 0 && e.has_live_baseline();
        double base_log = 0;
        if (const auto at = t.stored.values.find(str(s.what.name));
            s.factor > 0 && at != t.stored.values.end()) {
            for (const double v : at->second) base_log += std::log(v);
            base_log /= static_cast<double>(at->second.size());
        }
        for (std::size_t i = 0; i < e.candidate.size() && (!paired || i < e.baseline.size()); ++i)
            logs.push_back(std::log(evaluate(s.what, e.candidate[i])) -
                           (paired ? std::log(evaluate(s.what, e.baseline[i])) : base_log));
        if (logs.size() < 2 || !std::isfinite(mean_of(logs))) continue;
        calibrated& row = rows.back();
        row.estimate = std::exp(mean_of(logs));
        row.sd = std::sqrt(sample_variance(logs));
        row.headroom_sd = -sign * (mean_of(logs) - std::log(limit)) / row.sd;
        const double sd = std::max(row.sd, prior_sd_of(e, t, s)), most = t.rule.most;
        const double quantile = student_t_quantile(normal_cdf(t.rule.pass_z), prior_df + most - 1);
        const bool against_stored = s.factor > 0 && !paired;
        const double se = std::sqrt(sd * sd * (against_stored ? 2 : 1) / most +
                                    (against_stored ? t.stored.day_sd * t.stored.day_sd : 0));
        row.suggestion = limit_to_write(s, row.estimate * std::exp(sign * (quantile + 1.645) * se));
    }
    return rows;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C49] files of others' making, value by value =============================================
// Files of others' making, read value by value: at one time no more is held than one value and what
// was kept. The bytes come through a function, so that this section knows no files.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Bytes in order, with the line that the next one stands on. A byte order mark is passed over.
class byte_stream {
public:
    /// Fills the room with the next bytes and says how many; 0 at the end.
    using fill_function = std::function<std::size_t(char*, std::size_t)>;

    byte_stream(fill_function fill, std::string name)
        : fill_(std::move(fill)), name_(std::move(name)), room_(65536) {
        for (std::size_t n = 1; n > 0 && end_ < 3; end_ += n)
            n = fill_(room_.data() + end_, room_.size() - end_);
        if (end_ >= 3 && std::memcmp(room_.data(), "\xEF\xBB\xBF", 3) == 0) at_ = 3;
    }
    /// -1 at the end.
    int peek() {
        if (at_ == end_ && !refill()) return -1;
        return static_cast<unsigned char>(room_[at_]);
    }
    int get() {
        const int c = peek();
        if (c < 0) return c;
        ++at_;
        line_ += c == '\n';
        return c;
    }
    void skip_space() {
        for (int c = peek(); c == ' ' || c == '\t' || c == '\r' || c == '\n'; c = peek()) get();
    }
    long long line() const { return line_; }
    const std::string& name() const { return name_; }
    /// Refuses the file for what stands in `line`.
    [[noreturn]] void refuse(long long line, const std::string& why) const {
        throw std::invalid_argument(printed("%s:%lld: ", name_.c_str(), line) + why);
    }

private:
    bool refill() {
        at_ = 0;
        end_ = fill_(room_.data(), room_.size());
        return end_ > 0;
    }
    fill_function fill_;
    std::string name_;
    std::vector<char> room_;
    std::size_t at_ = 0, end_ = 0;
    long long line_ = 1;
};

inline constexpr std::size_t most_value_bytes = 64 * 1024 * 1024;

/// The next line without its end; false at the end of the file.
inline bool read_line(byte_stream& in, std::string& out) {
    out.clear();
    if (in.peek() < 0) return false;
    const long long line = in.line();
    for (int c = in.get(); c >= 0 && c != '\n'; c = in.get()) {
        if (out.size() == most_value_bytes) in.refuse(line, "the line is over 64 MiB");
        out += static_cast<char>(c);
    }
    if (!out.empty() && out.back() == '\r') out.pop_back();
    return true;
}

/// The text of the next JSON value: strings and brackets are followed, the rest is for the parser.
inline std::string read_json_text(byte_stream& in) {
    in.skip_space();
    const long long line = in.line();
    std::string out;
    int depth = 0;
    bool quoted = false;
    for (int c = in.peek(); c >= 0; c = in.peek()) {
        const bool is_space = c == ' ' || c == '\t' || c == '\r' || c == '\n';
        if (!quoted && depth == 0 && (c == ',' || c == ']' || c == '}' || is_space)) return out;
        if (out.size() >= most_value_bytes) in.refuse(line, "the value is over 64 MiB");
        out += static_cast<char>(in.get());
        if (quoted) {
            if (c == '\\' && in.peek() >= 0) out += static_cast<char>(in.get());
            else if (c == '"') quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            ++depth;
        } else if (c == '}' || c == ']') {
            --depth;
        }
        if (!quoted && depth == 0 && (c == '"' || c == '}' || c == ']')) return out;
    }
    if (quoted || depth > 0) in.refuse(line, "the file ends inside a value that begins here");
    return out;
}

inline picojson::value parsed_json(const byte_stream& in, const std::string& text, long long line) {
    picojson::value v;
    if (!parse_json(text, v)) in.refuse(line, "it is not JSON: " + printable(text, 60));
    return v;
}

/// `on_element(key, value, line)` for each element of the array that a JSON file is, or of each
/// array that is a member of the object that it is.
template <class OnElement>
void each_json_element(byte_stream& in, OnElement&& on_element) {
    const auto expect = [&](char wanted) {
        in.skip_space();
        if (in.peek() != wanted)
            in.refuse(in.line(), printed("'%c' is expected here", wanted));
        in.get();
    };
    const auto elements = [&](const std::string& key) {
        expect('[');
        in.skip_space();
        if (in.peek() == ']') { in.get(); return; }
        for (;;) {
            in.skip_space();
            const long long line = in.line();
            on_element(key, parsed_json(in, read_json_text(in), line), line);
            in.skip_space();
            if (in.peek() == ',') { in.get(); continue; }
            expect(']');
            return;
        }
    };
    in.skip_space();
    if (in.peek() == '[') {
        elements("");
    } else {
        expect('{');
        in.skip_space();
        while (in.peek() != '}') {
            const picojson::value key = parsed_json(in, read_json_text(in), in.line());
            if (!key.is<std::string>()) in.refuse(in.line(), "a member's name is expected here");
            expect(':');
            in.skip_space();
            if (in.peek() == '[') elements(key.get<std::string>());
            else parsed_json(in, read_json_text(in), in.line());
            in.skip_space();
            if (in.peek() == ',') { in.get(); in.skip_space(); }
            else if (in.peek() != '}') expect('}');
        }
        in.get();
    }
    in.skip_space();
    if (in.peek() >= 0) in.refuse(in.line(), "something stands behind the end of the JSON value");
}
/// The same for JSONL: one value a line, empty lines are passed over.
template <class OnElement>
void each_json_line(byte_stream& in, OnElement&& on_element) {
    std::string text;
    for (long long line = in.line(); read_line(in, text); line = in.line())
        if (!trimmed(text).empty()) on_element(std::string(), parsed_json(in, text, line), line);
}

/// `on_header(fields, line)` for the first row of a CSV file (RFC 4180), `on_row(fields, line)` for
/// each other, which has as many fields. Quoted fields may hold commas, line ends, doubled quotes.
template <class OnHeader, class OnRow>
void each_csv_row(byte_stream& in, OnHeader&& on_header, OnRow&& on_row) {
    std::size_t columns = 0;
    while (in.peek() >= 0) {
        const long long line = in.line();
        std::vector<std::string> fields(1);
        bool quoted = false;
        std::size_t size = 0;
        for (int c = in.get(); c >= 0 && (quoted || c != '\n'); c = in.get()) {
            if (++size > most_value_bytes) in.refuse(line, "the row is over 64 MiB");
            std::string& field = fields.back();
            if (quoted && c == '"' && in.peek() == '"') field += static_cast<char>(in.get());
            else if (c == '"' && (quoted || field.empty())) quoted = !quoted;
            else if (c == ',' && !quoted) fields.emplace_back();
            else if (c != '\r' || quoted) field += static_cast<char>(c);
        }
        if (quoted) in.refuse(line, "a quoted field of this row does not end");
        if (fields.size() == 1 && trimmed(fields[0]).empty()) continue;
        if (columns == 0) {
            columns = fields.size();
            on_header(fields, line);
        } else if (fields.size() == columns) {
            on_row(fields, line);
        } else {
            in.refuse(line, printed("the row has %zu fields: the first row names %zu columns",
                                    fields.size(), columns));
        }
    }
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C50] datasets ============================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the user says in one turn, and how long the answer is.
struct dialogue_turn {
    std::string prompt{};
    std::string image{};    // a file, below the directory of images; once it was read, a data: URL
    int output_tokens = 0;  // 0: the file does not say
};
/// One conversation of a dataset; most have one turn.
struct dialogue {
    std::vector<chat_message> before{};  // what comes before the first turn
    std::vector<dialogue_turn> turns{};
};

/// Without the model's vocabulary nobody knows; close for English, high for most other writing.
inline int estimated_tokens(std::string_view s) {
    std::size_t ascii = 0, others = 0;
    for (const char c : s) {
        const auto byte = static_cast<unsigned char>(c);
        ascii += byte < 0x80;
        others += byte >= 0xC0;  // the first byte of a longer character
    }
    return static_cast<int>(std::min<std::size_t>((ascii + 3) / 4 + others, 100000000));
}
inline int estimated_prompt_tokens(const dialogue& d) {
    int n = estimated_tokens(d.turns.front().prompt);
    for (const chat_message& m : d.before) n += estimated_tokens(m.content);
    return n;
}

/// Keeps `most` of all that it is shown, each set of them equally likely (algorithm R of Waterman,
/// in Knuth 1981), and in the end in an order of the seed's own.
class dialogue_sampler {
public:
    dialogue_sampler(std::size_t most, std::uint64_t seed) : most_(most), random_(seed, 7) {}
    void offer(dialogue&& d) {
        ++offered_;
        if (kept_.size() < most_) return kept_.push_back(std::move(d));
        const std::uint64_t place = random_.below(offered_);
        if (place < most_) kept_[place] = std::move(d);
    }
    std::vector<dialogue> take() {
        for (std::size_t i = kept_.size(); i > 1; --i)
            std::swap(kept_[i - 1], kept_[random_.below(i)]);
        return std::move(kept_);
    }

private:
    std::vector<dialogue> kept_{};
    std::size_t most_;
    std::uint64_t offered_ = 0;
    generator random_;
};

/// One conversation read out of a file: its fields, and the sentence where one is wrong.
class dialogue_reader {
public:
    dialogue_reader(const byte_stream& in, long long line, long long max_turns)
        : in_(in), line_(line), max_turns_(max_turns) {}

    /// A string that must be there.
    std::string text_of(const picojson::value& v, const char* name) const {
        const picojson::value* m = member(v, name);
        if (!m || !m->is<std::string>())
            refuse(std::string(name) + (m ? " is not a string" : " is missing") +
                   ": it must be a string");
        return m->get<std::string>();
    }
    /// A string or nothing.
    std::string text_if_any(const picojson::value& v, const char* name) const {
        const picojson::value* m = member(v, name);
        return m && !m->is<picojson::null>() ? text_of(v, name) : "";
    }
    int count_if_any(const picojson::value& v, const char* name) const {
        const picojson::value* m = member(v, name);
        if (!m || m->is<picojson::null>()) return 0;
        if (!m->is<double>() || m->get<double>() < 1 || m->get<double>() > 1e7)
            refuse(std::string(name) + " is " + printable(m->serialize(), 40) +
                   ": it must be a number of tokens from 1 to 10000000");
        return static_cast<int>(m->get<double>());
    }
    const picojson::array& array_of(const picojson::value& v, const char* name) const {
        const picojson::value* m = member(v, name);
        if (!m || !m->is<picojson::array>())
            refuse(std::string(name) + (m ? " is not an array" : " is missing") +
                   ": it must be an array of messages");
        return m->get<picojson::array>();
    }

    /// `{"from", "value"}` of ShareGPT, `{"role", "content"}` of everyone else.
    chat_message message_of(const picojson::value& v) const {
        if (!v.is<picojson::object>()) refuse("a message is not an object");
        const bool by_role = member(v, "role") != nullptr;
        const std::string who = text_of(v, by_role ? "role" : "from");
        chat_message m;
        m.role = who == "human" ? "user" : who == "gpt" || who == "chatgpt" || who == "bing"
                                               || who == "bard" || who == "model"
                                               ? "assistant" : who;
        m.content = text_of(v, by_role ? "content" : "value");
        return m;
    }

    /// The messages up to the last one that the user says, and the answer behind it.
    dialogue as_it_stands(const std::vector<chat_message>& messages) const {
        dialogue d;
        std::size_t last = messages.size();
        while (last > 0 && messages[last - 1].role != "user") --last;
        if (last == 0) return d;
        d.before.assign(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(last) - 1);
        d.turns.push_back({.prompt = messages[last - 1].content});
        if (last < messages.size() && messages[last].role == "assistant")
            d.turns.back().output_tokens = estimated_tokens(messages[last].content);
        return d;
    }
    /// The user's messages from the first one on, to be answered one by one.
    dialogue to_be_played(const std::vector<chat_message>& messages) const {
        dialogue d;
        for (const chat_message& m : messages) {
            if (m.role == "user") {
                if (static_cast<long long>(d.turns.size()) == max_turns_) break;
                d.turns.push_back({.prompt = m.content});
            } else if (m.role == "assistant") {
                if (!d.turns.empty() && d.turns.back().output_tokens == 0)
                    d.turns.back().output_tokens = estimated_tokens(m.content);
            } else if (d.turns.empty()) {
                d.before.push_back(m);
            }
        }
        return d;
    }

    dialogue sharegpt_of(const picojson::value& v) const {
        const bool by_messages = !member(v, "conversations") && member(v, "messages");
        std::vector<chat_message> messages;
        for (const picojson::value& m : array_of(v, by_messages ? "messages" : "conversations"))
            messages.push_back(message_of(m));
        return to_be_played(messages);
    }
    dialogue dolly_of(const picojson::value& v) const {
        dialogue_turn t;
        t.prompt = text_of(v, "instruction");
        if (const std::string context = text_if_any(v, "context"); !context.empty())
            t.prompt += "\n\n" + context;
        t.output_tokens = estimated_tokens(text_of(v, "response"));
        return {{}, {t}};
    }
    dialogue openai_of(const picojson::value& line) const {
        const picojson::value* body = member(line, "body");
        const picojson::value& v = body ? *body : line;
        dialogue d;
        if (member(v, "messages")) {
            std::vector<chat_message> messages;
            for (const picojson::value& m : array_of(v, "messages"))
                messages.push_back(message_of(m));
            d = max_turns_ > 1 ? to_be_played(messages) : as_it_stands(messages);
        } else if (member(v, "prompt")) {
            d.turns.push_back({.prompt = text_of(v, "prompt")});
            const char* answer = member(v, "completion") ? "completion" : "response";
            d.turns[0].output_tokens = estimated_tokens(text_if_any(v, answer));
        } else {
            refuse("neither messages nor prompt is there: each line needs one of them");
        }
        for (const char* name : {"max_tokens", "max_completion_tokens"})
            if (const int n = count_if_any(v, name); n > 0)
                for (dialogue_turn& t : d.turns) t.output_tokens = n;
        return d;
    }
    dialogue image_question_of(const picojson::value& v) const {
        dialogue_turn t;
        t.image = text_of(v, "image");
        t.prompt = text_of(v, "question");
        t.output_tokens = estimated_tokens(text_if_any(v, "answer"));
        return {{}, {t}};
    }
    [[noreturn]] void refuse(const std::string& why) const { in_.refuse(line_, why); }

private:
    const byte_stream& in_;
    long long line_;
    long long max_turns_;
};

/// `offer(dialogue, line)` for each row of a table, whose first row names the columns.
template <class Offer> void each_csv_dialogue(byte_stream& in, Offer&& offer) {
    std::size_t prompt = 0, answer = 0, length = 0;
    const auto column = [](const std::vector<std::string>& header,
                           std::initializer_list<const char*> names) {
        for (const char* name : names)
            for (std::size_t i = 0; i < header.size(); ++i)
                if (same_ignoring_case(trimmed(header[i]), name)) return i;
        return header.size();
    };
    const auto on_header = [&](const std::vector<std::string>& names, long long line) {
        prompt = column(names, {"prompt", "question", "instruction", "text", "input"});
        answer = column(names, {"answer", "response", "completion", "output"});
        length = column(names, {"output_tokens", "max_tokens"});
        if (prompt == names.size())
            in.refuse(line, "no column is named prompt, question, instruction, text or "
                            "input: the first row must name the columns");
    };
    each_csv_row(in, on_header, [&](const std::vector<std::string>& fields, long long line) {
        dialogue_turn t{.prompt = fields[prompt]};
        if (answer < fields.size()) t.output_tokens = estimated_tokens(fields[answer]);
        if (length < fields.size()) {
            const std::string_view given = trimmed(fields[length]);
            t.output_tokens = parsed_number<int>(given).value_or(0);
            if (t.output_tokens < 1 || t.output_tokens > 10000000)
                in.refuse(line, "output_tokens is \"" + printable(given, 40) +
                                    "\": it must be a whole number from 1 to 10000000");
        }
        offer(dialogue{{}, {t}}, line);
    });
}

/// `offer(dialogue, line)` for each conversation of the file.
template <class Offer>
void each_dialogue(byte_stream& in, const dataset& d, Offer&& offer) {
    const long long max_turns = d.max_turns;
    const bool by_line = in.name().ends_with("l") || d.format == dolly || d.format == openai_jsonl;
    const auto each_value = [&](auto&& on_value) {
        const auto checked = [&](const std::string& key, const picojson::value& v, long long line) {
            if (!v.is<picojson::object>()) in.refuse(line, "an object is expected here");
            on_value(key, v, dialogue_reader(in, line, max_turns), line);
        };
        if (by_line) each_json_line(in, checked);
        else each_json_element(in, checked);
    };
    std::map<long long, std::string> images;  // of COCO, where the captions come after all of them
    switch (d.format) {
    case sharegpt:
        return each_value([&](const auto&, const auto& v, const auto& reader, long long line) {
            offer(reader.sharegpt_of(v), line);
        });
    case dolly:
        return each_value([&](const auto&, const auto& v, const auto& reader, long long line) {
            offer(reader.dolly_of(v), line);
        });
    case openai_jsonl:
        return each_value([&](const auto&, const auto& v, const auto& reader, long long line) {
            offer(reader.openai_of(v), line);
        });
    case coco_captions:
        return each_value([&](const auto& key, const auto& v, const auto& reader, long long line) {
            if (key.empty()) return offer(reader.image_question_of(v), line);
            if (key == "images") {
                images[count_member(v, "id")] = reader.text_of(v, "file_name");
            } else if (key == "annotations") {
                const auto found = images.find(count_member(v, "image_id"));
                if (found == images.end())
                    reader.refuse("image_id is not the id of one of the images, which must stand "
                                  "before the annotations");
                dialogue_turn t{.prompt = "Describe this image in one sentence.",
                                .image = found->second};
                t.output_tokens = estimated_tokens(reader.text_of(v, "caption"));
                offer(dialogue{{}, {t}}, line);
            }
        });
    case text_lines: {
        std::string text;
        for (long long line = in.line(); read_line(in, text); line = in.line())
            if (!trimmed(text).empty()) offer(dialogue{{}, {{.prompt = text}}}, line);
        return;
    }
    case csv: return each_csv_dialogue(in, offer);
    }
}

/// The sample that a dataset asks for, `most` conversations where it does not say how many.
inline std::vector<dialogue> sampled_dialogues(byte_stream& in, const dataset& d, std::size_t most,
                                               std::uint64_t seed) {
    const std::size_t wanted = d.max_items ? static_cast<std::size_t>(*d.max_items) : most;
    dialogue_sampler sampler(wanted, seed);
    long long seen = 0, fitting = 0;
    const auto outside = [](long long n, long long least, long long limit) {
        return n < least || (limit > 0 && n > limit);
    };
    each_dialogue(in, d, [&](dialogue&& x, long long) {
        ++seen;
        if (x.turns.empty() || trimmed(x.turns.front().prompt).empty()) return;
        const int answer = x.turns.front().output_tokens;
        if (outside(estimated_prompt_tokens(x), d.min_prompt_tokens, d.max_prompt_tokens)) return;
        if (answer > 0 && outside(answer, d.min_output_tokens, d.max_output_tokens)) return;
        ++fitting;
        sampler.offer(std::move(x));
    });
    require(fitting > 0,
            in.name() + (seen == 0 ? ": it holds no prompts"
                                   : printed(": none of its %lld prompts has a length that the "
                                             "dataset asks for (min_prompt_tokens and so on)",
                                             seen)));
    return sampler.take();
}

/// The media type of an image file, "" where its name has none of the usual ends.
inline const char* image_type(std::string_view file) {
    const std::string_view end = file.substr(std::min(file.size(), file.find_last_of('.')));
    for (const auto& [known, type] :
         {std::pair{".jpg", "image/jpeg"}, std::pair{".jpeg", "image/jpeg"},
          std::pair{".png", "image/png"}, std::pair{".webp", "image/webp"},
          std::pair{".gif", "image/gif"}})
        if (same_ignoring_case(end, known)) return type;
    return "";
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C51] traces ==============================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One request of a recorded trace.
struct trace_row {
    double at_s = 0;  // from the first one
    int prompt_tokens = 0, output_tokens = 0;
};
struct recorded_trace {
    std::string format{};
    std::vector<trace_row> rows{};  // in order of time
    /// Of Mooncake: what each block of 512 prompt tokens holds, where the same number means the
    /// same content. Empty where the trace does not say.
    std::vector<std::vector<std::uint32_t>> blocks{};
    long long left_out = 0;  // failed requests of the recording
};
inline constexpr int trace_block_tokens = 512;
inline constexpr std::size_t most_trace_rows = 10000000;

/// Seconds of "2023-11-16 18:15:46.6805900", NaN for anything else. A zone may follow, which is the
/// same in a whole file.
inline double seconds_of_date(std::string_view s) {
    int f[5] = {};
    const char separators[] = "--  ::";
    for (int i = 0; i < 5; ++i) {
        f[i] = leading_number<int>(s).value_or(-1);
        const char after = separators[i < 2 ? i : i + 1];
        if (f[i] < 0 || s.empty() || (s[0] != after && !(i == 2 && s[0] == 'T')))
            return not_a_number;
        s.remove_prefix(1);
    }
    const auto second = leading_number<double>(s);
    if (!second || f[1] < 1 || f[1] > 12 || f[2] < 1 || f[2] > 31 || f[3] > 24 || f[4] > 59 ||
        *second >= 61)
        return not_a_number;
    if (!s.empty() && !std::strchr("+-Z ", s[0])) return not_a_number;
    // Days by the civil calendar, with years that begin in March.
    const int year = f[0] - (f[1] <= 2), month = (f[1] + 9) % 12;
    const double days = 365.0 * year + year / 4 - year / 100 + year / 400 +
                        (153 * month + 2) / 5 + f[2];
    return (days - 730000) * 86400 + f[3] * 3600 + f[4] * 60 + *second;
}

/// Adds a request, or counts it among those that are left out. Whether it was added.
inline bool add_trace_row(recorded_trace& t, byte_stream& in, long long line, double at,
                          double prompt, double output) {
    if (!std::isfinite(at)) in.refuse(line, "the time stamp is not a time");
    for (const auto& [name, n] : {std::pair{"prompt", prompt}, std::pair{"output", output}})
        if (!(n >= 0 && n <= 1e7))
            in.refuse(line,
                      printed("the %s length is no number of tokens from 0 to 10000000", name));
    if (output < 1) { ++t.left_out; return false; }
    if (t.rows.size() == most_trace_rows)
        in.refuse(line, "the trace is longer than 10000000 requests: cut it first");
    t.rows.push_back({at, std::max(1, static_cast<int>(prompt)), static_cast<int>(output)});
    return true;
}

/// Mooncake's: an object a line.
inline recorded_trace read_json_trace(byte_stream& in) {
    recorded_trace t;
    t.format = "Mooncake";
    each_json_line(in, [&](const auto&, const picojson::value& v, long long line) {
        const auto number = [&](const char* name) {
            const picojson::value* m = member(v, name);
            if (!m || !m->template is<double>())
                in.refuse(line, std::string(name) + " is not there or no number: each line "
                                                    "needs timestamp, input_length and "
                                                    "output_length");
            return m->template get<double>();
        };
        if (!add_trace_row(t, in, line, number("timestamp") / 1e3, number("input_length"),
                           number("output_length")))
            return;
        t.blocks.emplace_back();
        const picojson::value* ids = member(v, "hash_ids");
        if (!ids) return;
        if (!ids->template is<picojson::array>()) in.refuse(line, "hash_ids is not an array");
        for (const picojson::value& id : ids->template get<picojson::array>()) {
            if (!id.is<double>()) in.refuse(line, "hash_ids holds something that is no number");
            t.blocks.back().push_back(static_cast<std::uint32_t>(
                mixed(static_cast<std::uint64_t>(std::llround(id.get<double>())))));
        }
    });
    return t;
}

/// Azure's and BurstGPT's: a row a request, told apart by their headers.
inline recorded_trace read_csv_trace(byte_stream& in) {
    recorded_trace t;
    std::size_t at = 0, prompt = 0, output = 0;
    const auto on_header = [&](const std::vector<std::string>& names, long long line) {
        at = prompt = output = names.size();
        for (std::size_t i = 0; i < names.size(); ++i) {
            const std::string_view name = trimmed(names[i]);
            const auto is = [&](const char* known) { return same_ignoring_case(name, known); };
            if (is("timestamp")) at = i;
            if (is("contexttokens") || is("request tokens")) prompt = i;
            if (is("generatedtokens") || is("response tokens")) output = i;
            if (is("contexttokens")) t.format = "Azure";
            if (is("request tokens")) t.format = "BurstGPT";
        }
        if (std::max({at, prompt, output}) == names.size())
            in.refuse(line, "no known trace begins so: known are Azure (TIMESTAMP,"
                            "ContextTokens,GeneratedTokens), BurstGPT (Timestamp,Model,"
                            "Request tokens,Response tokens) and Mooncake (JSONL with "
                            "timestamp, input_length, output_length)");
    };
    each_csv_row(in, on_header, [&](const std::vector<std::string>& fields, long long line) {
        const auto number = [&](std::size_t i) {
            return parsed_number<double>(trimmed(fields[i])).value_or(not_a_number);
        };
        const double plain = number(at);
        add_trace_row(t, in, line,
                      std::isnan(plain) ? seconds_of_date(trimmed(fields[at])) : plain,
                      number(prompt), number(output));
    });
    return t;
}

/// A trace in any of the formats of `replay`, in the order of time, which begins with it.
inline recorded_trace read_trace(byte_stream& in) {
    in.skip_space();
    recorded_trace t = in.peek() == '{' ? read_json_trace(in) : read_csv_trace(in);
    require(!t.rows.empty(), in.name() + ": the trace holds no requests");
    std::vector<std::size_t> order(t.rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return t.rows[a].at_s != t.rows[b].at_s ? t.rows[a].at_s < t.rows[b].at_s : a < b;
    });
    recorded_trace sorted{t.format, {}, {}, t.left_out};
    for (const std::size_t i : order) {
        sorted.rows.push_back(t.rows[i]);
        sorted.rows.back().at_s -= t.rows[order[0]].at_s;
        if (!t.blocks.empty()) sorted.blocks.push_back(std::move(t.blocks[i]));
    }
    return sorted;
}

/// What was read from files for one scenario.
struct workload_files {
    std::vector<double> prompt_values{}, output_values{};  // of empirical distributions
    std::vector<dialogue> dialogues{};                     // a dataset's sample
    recorded_trace trace{};                                // of replay
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C52] when requests are sent ==============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Send times in seconds from the start. The first `warmup` ones come before the measured part,
/// which starts at `measured_from` and plans to end at `measured_to`.
struct schedule {
    std::vector<double> at{};
    std::size_t warmup = 0;
    double measured_from = 0;
    double measured_to = 0;
};

/// Gap lengths of mean 1 for `n` arrivals.
inline std::vector<double> unit_gaps(const arrival_data& a, std::size_t n, generator& random) {
    std::vector<double> gaps(n, 1);
    if (a.kind == arrival_kind::gamma)
        for (double& g : gaps) g = random.gamma(a.burstiness) / a.burstiness;
    else if (a.kind != arrival_kind::constant)  // ramps and steps are Poisson arrivals, too
        for (double& g : gaps) g = random.exponential();
    return gaps;
}

/// Appends `n` arrivals that fill [from, from + n / rate) exactly: the gaps are scaled to their
/// sum, so that the rate sent is the rate asked for and not one draw of it.
inline void append_stationary(std::vector<double>& at, const arrival_data& a, std::size_t n,
                              double from, double rate, generator& random) {
    const std::vector<double> gaps = unit_gaps(a, n, random);
    double sum = 0;
    for (const double g : gaps) sum += g;
    const double scale = static_cast<double>(n) / rate / (sum > 0 ? sum : 1);
    double t = from;
    for (const double g : gaps) {
        at.push_back(t);
        t += g * scale;
    }
}

/// Expected arrivals of a ramp or of stages up to time t (seconds), and their rate at the end.
inline double expected_arrivals(const arrival_data& a, double t) {
    if (a.kind == arrival_kind::ramp) {
        const double inside = std::min(t, a.over_s);
        const double slope = a.over_s > 0 ? (a.rate_to - a.rate) / a.over_s : 0;
        return a.rate * inside + 0.5 * slope * inside * inside +
               a.rate_to * std::max(0.0, t - a.over_s);
    }
    double sum = 0, left = t;
    for (const load_step& s : a.stages) {
        const double inside = std::min(left, s.lasts.seconds());
        sum += s.rate.per_second * inside;
        left -= inside;
    }
    return sum;
}
inline double planned_length(const arrival_data& a) {
    if (a.kind == arrival_kind::ramp) return a.over_s;
    double sum = 0;
    for (const load_step& s : a.stages) sum += s.lasts.seconds();
    return sum;
}

/// Seconds after which the arrivals end by themselves, 0 where they do not. A replay plays `trace`.
inline double own_length(const arrival_data& a, const recorded_trace& trace) {
    if (a.kind == arrival_kind::steps) return planned_length(a);
    if (a.kind != arrival_kind::replay || trace.rows.empty()) return 0;
    return std::max(trace.rows.back().at_s / a.speed, 1e-3);
}
/// Arrivals expected in the first seconds of the measured part; those of a trace are known.
inline double arrivals_within(const arrival_data& a, const recorded_trace& trace, double seconds) {
    if (a.kind == arrival_kind::replay) {
        const auto after = std::upper_bound(
            trace.rows.begin(), trace.rows.end(), seconds * a.speed * (1 + 1e-12),
            [](double t, const trace_row& row) { return t < row.at_s; });
        return static_cast<double>(after - trace.rows.begin());
    }
    const bool varying = a.kind == arrival_kind::ramp || a.kind == arrival_kind::steps;
    return varying ? expected_arrivals(a, seconds) : a.rate * seconds;
}

/// Requests/s at the start of the measured part, which the warm-up has, too.
inline double starting_rate(const arrival_data& a) {
    return a.kind == arrival_kind::steps && a.stages.size() ? a.stages[0].rate.per_second : a.rate;
}
/// How many of an open loop's sends warm up: as many as were asked for, or as fit into the time.
inline std::size_t warmup_sends(const arrival_data& a, std::size_t asked, double warmup_s) {
    if (warmup_s <= 0) return asked;
    return static_cast<std::size_t>(std::llround(warmup_s * starting_rate(a)));
}
/// The warm-up of an open loop that does not send all at once.
inline schedule warmup_schedule(const arrival_data& a, std::size_t asked, double warmup_s,
                                std::uint64_t seed) {
    schedule s;
    generator random(seed, 1);
    s.warmup = warmup_sends(a, asked, warmup_s);
    append_stationary(s.at, a, s.warmup, 0, starting_rate(a), random);
    s.measured_from = static_cast<double>(s.warmup) / starting_rate(a);
    return s;
}

/// The send times of a replay. Stops after `requests` (0: no limit) or `duration_s` (0: none) of
/// the measured part, or with the trace, whichever comes first.
inline schedule replay_schedule(const arrival_data& a, const recorded_trace& trace,
                                std::size_t warmup_requests, double warmup_s, std::size_t requests,
                                double duration_s, std::uint64_t seed) {
    schedule s = warmup_schedule(a, warmup_requests, warmup_s, seed);
    const double length = duration_s > 0 ? duration_s : infinity;
    double last = 0;
    for (const trace_row& row : trace.rows) {
        const double t = row.at_s / a.speed;
        if (t > length * (1 + 1e-12) || (requests > 0 && s.at.size() == s.warmup + requests)) break;
        s.at.push_back(s.measured_from + t);
        last = t;
    }
    s.measured_to = s.measured_from + last;
    return s;
}

/// The send times of an open loop. Stops after `requests` (0: no limit) or `duration_s` (0: none)
/// of the measured part, whichever comes first. The warm-up has the load of the measured part's
/// start.
inline schedule open_loop_schedule(const arrival_data& a, long long warmup_requests,
                                   double warmup_s, long long requests, double duration_s,
                                   std::uint64_t seed) {
    const auto warmup = static_cast<std::size_t>(warmup_requests);
    if (a.kind == arrival_kind::all_at_once)
        return {.at = std::vector<double>(warmup + static_cast<std::size_t>(requests), 0.0),
                .warmup = warmup};
    schedule s = warmup_schedule(a, warmup, warmup_s, seed);
    generator random(seed, 2);
    const bool stationary = a.kind == arrival_kind::constant || a.kind == arrival_kind::poisson ||
                            a.kind == arrival_kind::gamma;
    if (stationary) {
        auto n = requests > 0 ? requests : std::llround(duration_s * a.rate);
        if (duration_s > 0)
            n = std::min(n, static_cast<long long>(std::llround(duration_s * a.rate)));
        append_stationary(s.at, a, static_cast<std::size_t>(n), s.measured_from, a.rate, random);
        s.measured_to = s.measured_from + static_cast<double>(n) / a.rate;
        return s;
    }
    // A Poisson process of varying rate is a unit one on the scale of expected arrivals.
    const double length = duration_s > 0                  ? duration_s
                          : a.kind == arrival_kind::steps ? planned_length(a)
                                                          : infinity;
    double expected = 0, t = 0;
    for (long long i = 0; requests == 0 || i < requests; ++i) {
        expected += random.exponential();
        const double high =
            std::min(length, 2 * (t + 1) + expected / std::max(a.rate, 1e-9) + planned_length(a) +
                                 expected / std::max(a.rate_to, 1e-9));
        t = bisect(0, high, expected, [&](double x) { return expected_arrivals(a, x); });
        if (t >= length * (1 - 1e-12)) break;
        s.at.push_back(s.measured_from + t);
    }
    s.measured_to = s.measured_from + (std::isfinite(length) && requests == 0 ? length : t);
    return s;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C53] arrivals ============================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline const char* arrival_name(arrival_kind k) {
    switch (k) {
    case arrival_kind::constant: return "constant";
    case arrival_kind::poisson: return "poisson";
    case arrival_kind::gamma: return "gamma";
    case arrival_kind::ramp: return "ramp";
    case arrival_kind::steps: return "steps";
    case arrival_kind::replay: return "replay";
    case arrival_kind::all_at_once: return "all_at_once";
    case arrival_kind::closed_loop: return "closed_loop";
    }
    return "";
}

inline std::string arrival_text(const arrival_data& a) {
    std::string t = arrival_name(a.kind);
    switch (a.kind) {
        case arrival_kind::constant:
        case arrival_kind::poisson: t += printed("(%.9g req/s)", a.rate); break;
        case arrival_kind::gamma:
            t += printed("(%.9g req/s, burstiness %.9g)", a.rate, a.burstiness);
            break;
        case arrival_kind::ramp:
            t += printed("(%.9g to %.9g req/s over %.9g s)", a.rate, a.rate_to, a.over_s);
            break;
        case arrival_kind::steps:
            t += "(";
            for (std::size_t i = 0; i < a.stages.size(); ++i)
                t += printed("%s%.9g req/s for %.9g s", i ? ", " : "", a.stages[i].rate.per_second,
                             a.stages[i].lasts.seconds());
            t += ")";
            break;
        case arrival_kind::replay:
            t += "(" + file_name(str(a.file)) +
                 (a.speed != 1 ? printed(", speed %.9g", a.speed) : "") + ")";
            break;
        case arrival_kind::closed_loop:
            t += printed("(%lld users", a.users) +
                 (a.think_s > 0 ? printed(", think %.9g s", a.think_s) : "") +
                 (a.users_ramp_s > 0 ? printed(", ramp %.9g s", a.users_ramp_s) : "") + ")";
            break;
        default: break;
    }
    return a.max_in_flight > 0 ? t + printed(", at most %lld in flight", a.max_in_flight) : t;
}

inline void check_arrivals(const arrival_data& a) {
    const auto rate_ok = [](double r) { return std::isfinite(r) && r > 0 && r <= 1e6; };
    const std::string given = "arrivals is " + arrival_text(a) + ": ";
    if (a.kind == arrival_kind::closed_loop) {
        require(a.users >= 1 && a.users <= 100000, given + "users run from 1 to 100000");
        require(a.think_s >= 0 && a.users_ramp_s >= 0,
                given + "think time and ramp cannot be negative");
        return;
    }
    require(a.max_in_flight >= 0,
            given + printed("max_in_flight is %lld, it must be at least 1", a.max_in_flight));
    if (a.kind == arrival_kind::all_at_once) return;
    if (a.kind == arrival_kind::replay) {
        require(!a.file.empty(), given + "it must name a file");
        require(a.speed >= 1e-6 && a.speed <= 1e6,
                given + printed("speed is %.9g, it runs from 0.000001 to 1000000", a.speed));
        return;
    }
    if (a.kind == arrival_kind::steps) {
        require(a.stages.size() > 0, given + "it needs at least one stage");
        for (const load_step& s : a.stages)
            require(rate_ok(s.rate.per_second) && s.lasts.seconds() > 0,
                    given + "every stage needs a rate and a time above zero");
        require(planned_length(a) <= 86400, given + "all stages together last at most 86400 s");
        return;
    }
    require(rate_ok(a.rate), given + "the rate must be above 0 and at most 1000000 requests/s");
    if (a.kind == arrival_kind::gamma)
        require(std::isfinite(a.burstiness) && a.burstiness >= 0.01 && a.burstiness <= 1000,
                given + "burstiness runs from 0.01 to 1000");
    if (a.kind == arrival_kind::ramp)
        require(rate_ok(a.rate_to) && a.over_s > 0,
                given + "both rates and the time must be above zero");
}

/// Squared coefficient of variation of the gaps, NaN where the load grows or bursts by design.
inline double arrival_cv2_of(const arrival_data& a) {
    switch (a.kind) {
    case arrival_kind::constant: return 0;
    case arrival_kind::poisson: return 1;
    case arrival_kind::gamma: return 1 / a.burstiness;
    default: return not_a_number;
    }
}

inline bool saturates(arrival_kind k) {
    return k == arrival_kind::all_at_once || k == arrival_kind::closed_loop;
}
inline bool saturates(const arrival_data& a) { return saturates(a.kind); }

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C54] lengths =============================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One draw, in whole tokens, at least `least`. `values` are those of an empirical file.
inline int drawn_length(const length_distribution& d, generator& random, int least,
                        const std::vector<double>& values = {}) {
    using shape = length_distribution::shape;
    double x = d.a;
    if (d.kind == shape::uniform)
        x = d.a + static_cast<double>(random.below(static_cast<std::uint64_t>(d.b - d.a) + 1));
    if (d.kind == shape::normal) x = d.a + d.b * random.normal();
    if (d.kind == shape::lognormal) x = d.a * std::exp(d.b * random.normal());
    if (d.kind == shape::empirical) x = values.empty() ? 1 : values[random.below(values.size())];
    return static_cast<int>(std::clamp(std::round(x), static_cast<double>(least), 1e7));
}

inline std::string length_text(const length_distribution& d) {
    using shape = length_distribution::shape;
    switch (d.kind) {
    case shape::fixed: return printed("%.9g", d.a);
    case shape::uniform: return printed("uniform(%.9g, %.9g)", d.a, d.b);
    case shape::normal: return printed("normal(%.9g, %.9g)", d.a, d.b);
    case shape::lognormal: return printed("lognormal(%.9g, %.9g)", d.a, d.b);
    case shape::empirical: return "empirical(" + str(d.file) + ")";
    case shape::trace:
        return d.a == 1 && d.b >= 1e7 ? "of the trace"
               : d.b >= 1e7           ? printed("%.9g times the trace's", d.a)
                                      : printed("%.9g times the trace's up to %.9g", d.a, d.b);
    }
    return "";
}

inline void check_length(const length_distribution& d, const char* field, double least) {
    using shape = length_distribution::shape;
    const bool finite = std::isfinite(d.a) && std::isfinite(d.b);
    bool sound = finite;
    if (d.kind == shape::fixed) sound = finite && d.a >= least && d.a <= 1e7;
    if (d.kind == shape::uniform) sound = finite && d.a >= least && d.b >= d.a && d.b <= 1e7;
    if (d.kind == shape::normal) sound = finite && d.a >= 1 && d.a <= 1e7 && d.b >= 0;
    if (d.kind == shape::lognormal)
        sound = finite && d.a >= 1 && d.a <= 1e7 && d.b >= 0 && d.b <= 5;
    if (d.kind == shape::trace) {
        require(finite && d.a > 0 && d.a <= 1000 && d.b >= 1 && d.b <= 1e7,
                printed("%s is from_trace(%.9g, %.9g): the scale is above 0 and at most 1000, the "
                        "most tokens run from 1 to 10000000",
                        field, d.a, d.b));
        return;
    }
    require(sound, printed("%s is %s: lengths run from %g to 10000000 tokens, with an ordered "
                           "range and a spread that is "
                           "not negative",
                           field, length_text(d).c_str(), least));
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C55] prompts of a given number of tokens =================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

// Plain words of one token each in common vocabularies, so that a prompt of n words has about n.
inline constexpr const char* prompt_words[] = {
    "the",   "of",   "and",  "to",   "in",    "is",     "for",  "on",   "that", "by",    "this",
    "with",  "you",  "it",   "not",  "or",    "be",     "are",  "from", "at",   "as",    "your",
    "all",   "have", "new",  "more", "an",    "was",    "we",   "will", "home", "can",   "us",
    "about", "if",   "page", "my",   "has",   "search", "free", "but",  "our",  "one",   "other",
    "do",    "no",   "time", "they", "site",  "he",     "up",   "may",  "what", "which", "their",
    "news",  "out",  "use",  "any",  "there", "see",    "only", "so",   "his"};

/// From here on a vocabulary has plain pieces of text: special tokens and single bytes come first.
inline constexpr std::size_t first_token_id = 2000;

/// How a server counts made-up prompts, as far as it told before the load. This chooses their words
/// and how many; the lengths asked for, and so the trace, do not depend on the server.
struct token_fit {
    enum class quality : unsigned char { unknown, average, exact };
    quality lengths = quality::unknown;
    bool as_ids = false;               // prompts are lists of token ids, their "words" such ids
    std::vector<std::size_t> words{};  // of prompt_words; empty: all of them
    double per_word = 1;               // tokens of a word behind a space
    double overhead = 0;               // tokens around the prompt

    std::string word(std::size_t i) const {
        return as_ids ? std::to_string(first_token_id + i) : prompt_words[i];
    }
    int words_in(double tokens) const {
        return static_cast<int>(std::llround(tokens / per_word));
    }
    /// A prompt has a word at least.
    int words_of_prompt(double tokens) const { return std::max(1, words_in(tokens - overhead)); }
    /// The first word has no space before it and may count otherwise: to be exact it is always the
    /// same one.
    std::string drawn_word(generator& random, bool is_first) const {
        if (words.empty()) return prompt_words[random.below(std::size(prompt_words))];
        const std::size_t at = random.below(words.size());
        return word(words[is_first && lengths == quality::exact && !as_ids ? 0 : at]);
    }
    std::string all_words() const {
        std::string all;
        for (const std::size_t i : words) all += (all.empty() ? "" : " ") + word(i);
        return all;
    }
};
/// The ids of such a prompt as JSON.
inline std::string id_list(std::string words) {
    std::replace(words.begin(), words.end(), ' ', ',');
    return "[" + words + "]";
}

/// Those of prompt_words that are one token behind a space; none where `count(text)`, the tokens of
/// a text, does not tell (-1). A word has a token at least, so one count settles many of them.
template <class Count>
std::vector<std::size_t> one_token_words(Count&& count) {
    const int start = count(prompt_words[0]);
    std::vector<std::size_t> found;
    bool told = start > 0;
    const auto search = [&](auto&& self, std::size_t from, std::size_t to) -> void {
        std::vector<std::size_t> some;
        for (std::size_t i = from; i < to; ++i) some.push_back(i);
        const token_fit these{.words = some};
        const int n = told ? count(prompt_words[0] + (" " + these.all_words())) : -1;
        told = n >= start;
        if (!told) return;
        if (n - start == static_cast<int>(to - from)) {
            found.insert(found.end(), some.begin(), some.end());
        } else if (to - from > 1) {
            self(self, from, (from + to) / 2);
            self(self, (from + to) / 2, to);
        }
    };
    search(search, 0, std::size(prompt_words));
    return told ? found : std::vector<std::size_t>();
}

inline std::vector<std::size_t> all_prompt_words() {
    std::vector<std::size_t> all(std::size(prompt_words));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
}

/// Fits the words of `fit` to `count(prompt)`: what the server counts for a request with this
/// prompt; -1 as above. Counts that no tokenizer has (less than a token a word: cached ones were
/// left out) are not believed.
template <class Count>
token_fit fitted_words(token_fit fit, Count&& count) {
    const std::string text = fit.all_words();
    const int once = count(text);
    const int twice = once > 0 ? count(text + " " + text) : -1;
    const int n = static_cast<int>(fit.words.size());
    fit.per_word = static_cast<double>(twice - once) / n;
    fit.overhead = once - n * fit.per_word;
    if (twice < 0 || fit.per_word < 1 || fit.per_word > 20 || fit.overhead <= -2) return {};
    fit.lengths = twice - once == n ? token_fit::quality::exact : token_fit::quality::average;
    return fit;
}

/// Words of one token each where there are enough, as `count_text` tells of a text or else
/// `count_prompt` of a request; all words where not.
template <class CountText, class CountPrompt>
token_fit fitted_tokens(CountText&& count_text, CountPrompt&& count_prompt) {
    constexpr std::size_t fewest_words = 16;
    token_fit some{.words = one_token_words(count_text)};
    if (some.words.size() >= fewest_words) return fitted_words(some, count_prompt);
    const token_fit all = fitted_words({.words = all_prompt_words()}, count_prompt);
    if (all.lengths != token_fit::quality::average) return all;
    some.words = one_token_words(count_prompt);
    if (some.words.size() < fewest_words) return all;
    some = fitted_words(some, count_prompt);
    return some.lengths == token_fit::quality::exact ? some : all;
}

/// Token ids instead of words, where `count_ids(ids)`, the tokens of a request with a list of them
/// as its prompt, tells that each is one; nothing where not.
template <class CountIds>
token_fit fitted_ids(CountIds&& count_ids) {
    const token_fit fit =
        fitted_words({.as_ids = true, .words = all_prompt_words()}, count_ids);
    return fit.lengths == token_fit::quality::exact ? fit : token_fit{};
}

inline const char* to_string(token_fit::quality q) {
    switch (q) {
    case token_fit::quality::exact: return "exact";
    case token_fit::quality::average: return "average";
    case token_fit::quality::unknown: break;
    }
    return "unknown";
}
inline std::string fit_text(const token_fit& f) {
    const std::string around = printed(", %.0f around a prompt", f.overhead);
    switch (f.lengths) {
    case token_fit::quality::exact:
        if (f.as_ids) return "prompt lengths exact in tokens: lists of token ids" + around;
        return printed("prompt lengths exact in tokens: %zu words of one token", f.words.size()) +
               around;
    case token_fit::quality::average:
        return printed("prompt lengths right on the average: %.3g tokens a word", f.per_word) +
               around;
    case token_fit::quality::unknown: break;
    }
    return "prompt lengths in words: the server does not tell how many tokens they have";
}

inline void append_words(std::string& out, int count, generator& random,
                         const token_fit& fit = {}) {
    for (int i = 0; i < count; ++i) {
        const bool is_first = out.empty();
        if (!is_first) out += ' ';
        out += fit.drawn_word(random, is_first);
    }
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C56] places of a trace ===================================================================
// A trace is a row of places, and each conversation takes as many of them as the longest one has
// turns: what stands on a place depends on the place alone, not on how long others are.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Where a request's conversation is, and which turn of it.
struct trace_place {
    std::size_t conversation = 0, turn = 0;
    std::size_t first = 0;  // the place of the conversation's first turn
    std::size_t index() const { return first + turn; }
};

/// Lengths that the request on a place asks for, the same in every repeat and arm; 0 where nothing
/// says so.
struct trace_item {
    int prompt_tokens = 0;  // of the new message; what was said before comes on top of it
    int output_tokens = 0;
};

/// What lengths and turns are drawn from: the same in every repeat and arm.
struct trace_terms {
    std::uint64_t seed = 1;
    const workload_files& files;
};
/// What words are drawn from: others in every repeat and arm, and in every execution of a gate.
struct word_terms {
    std::uint64_t salt = 0;
    const token_fit& fit;
    const std::vector<std::string>& answers;  // to the earlier turns of the conversation
};

/// The streams of random numbers, which must not meet; those of schedules are 1 and 2.
namespace streams {
inline constexpr std::uint64_t shared_words = 1;
inline constexpr std::uint64_t shared_length = 3;
inline constexpr std::uint64_t places = 1000;  // and on: lengths, and words, of each place
inline constexpr std::uint64_t turns = 1ull << 40;
inline constexpr std::uint64_t system_prompts = 1ull << 41;
inline constexpr std::uint64_t groups = 1ull << 42;
inline constexpr std::uint64_t blocks = 1ull << 43;
inline constexpr std::uint64_t group_words = 1ull << 44;  // between two groups
}  // namespace streams

/// Tokens of what many requests have in common: there is one draw of them.
inline int shared_length(const length_distribution& d, std::uint64_t seed) {
    generator random(seed, streams::shared_length);
    return drawn_length(d, random, 0);
}

/// Puts the turn with this number and those before it into a request. An exchange that failed left
/// no answer, and is not spoken of again.
template <class PromptOf>
void add_turns(request_spec& r, std::size_t last, const std::vector<std::string>& answers,
               PromptOf&& prompt_of) {
    for (std::size_t turn = 0; turn < last; ++turn) {
        if (turn >= answers.size() || answers[turn].empty()) continue;
        r.history.push_back({"user", prompt_of(turn)});
        r.history.push_back({"assistant", answers[turn]});
    }
    r.prompt = prompt_of(last);
}

/// "ab", "c" is not "a", "bc".
inline void add_text(fnv1a& h, const std::string& s) {
    h.add(static_cast<long long>(s.size()));
    h.add(s.data(), s.size());
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C57] conversations, recorded and made up =================================================
// Two sources of traffic; what a source can do stands in traffic_source.hpp.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The sample of a dataset, in its order and again from its start.
struct recorded_dialogues {
    std::size_t most_turns = 1;
    std::size_t begin = 0;  // of the sample; stages of fresh traffic begin elsewhere
    bool salted = false;    // a line of fresh words comes first

    const dialogue& at(std::size_t conversation, const workload_files& files) const {
        return files.dialogues[(begin + conversation) % files.dialogues.size()];
    }
    std::size_t turns(std::size_t conversation, const trace_terms& t) const {
        return at(conversation, t.files).turns.size();
    }
    trace_item item(const trace_place& place, const trace_terms& t) const {
        const dialogue& d = at(place.conversation, t.files);
        const dialogue_turn& turn = d.turns[place.turn];
        return {place.turn == 0 ? estimated_prompt_tokens(d) : estimated_tokens(turn.prompt),
                turn.output_tokens};
    }
    void fill(request_spec& r, const trace_place& place, const trace_terms& t,
              const word_terms& w) const {
        const dialogue& d = at(place.conversation, t.files);
        if (const int recorded = d.turns[place.turn].output_tokens; recorded > 0)
            r.max_tokens = recorded;
        r.force_length = r.force_length && r.max_tokens > 0;
        r.history = d.before;
        add_turns(r, place.turn, w.answers,
                  [&](std::size_t turn) -> const std::string& { return d.turns[turn].prompt; });
        if (salted) add_salt(r.history.empty() ? r.prompt : r.history.front().content, place, w);
        if (!r.history.empty() && r.history.front().role == "system") {
            r.system_prompt += (r.system_prompt.empty() ? "" : "\n") + r.history.front().content;
            r.history.erase(r.history.begin());
        }
        r.image = d.turns[place.turn].image;
    }
    void hash_all(fnv1a&, const trace_terms&) const {}
    void hash_conversation(fnv1a& h, std::size_t conversation, const trace_terms& t) const {
        const dialogue& d = at(conversation, t.files);
        for (const chat_message& m : d.before) add_text(h, m.role + m.content);
        for (const dialogue_turn& turn : d.turns) {
            add_text(h, turn.prompt);
            add_text(h, turn.image);
            h.add(turn.output_tokens);
        }
    }

private:
    static void add_salt(std::string& text, const trace_place& place, const word_terms& w) {
        std::string words;
        generator own(w.salt, streams::places + place.first);
        append_words(words, 5, own);
        text = words + "\n" + text;
    }
};

/// Conversations of drawn lengths, with the server's answers fed back.
struct made_up_conversations {
    std::size_t most_turns = 1;
    length_distribution turns_each{}, user_tokens{}, output_tokens{}, system_tokens{};
    bool shared_system_prompt = true;

    std::size_t turns(std::size_t conversation, const trace_terms& t) const {
        generator random(t.seed, streams::turns + conversation);
        return std::min(static_cast<std::size_t>(drawn_length(turns_each, random, 1)), most_turns);
    }
    trace_item item(const trace_place& at, const trace_terms& t) const {
        generator random(t.seed, streams::places + at.index());
        const int user = drawn_length(user_tokens, random, 1, t.files.prompt_values);
        return {user, drawn_length(output_tokens, random, 1, t.files.output_values)};
    }
    void fill(request_spec& r, const trace_place& at, const trace_terms& t,
              const word_terms& w) const {
        r.max_tokens = item(at, t).output_tokens;
        generator system(w.salt, shared_system_prompt
                                     ? streams::shared_words
                                     : streams::system_prompts + at.conversation);
        append_words(r.system_prompt, w.fit.words_in(shared_length(system_tokens, t.seed)), system,
                     w.fit);
        add_turns(r, at.turn, w.answers, [&](std::size_t turn) {
            const trace_place said{at.conversation, turn, at.first};
            std::string words;
            generator own(w.salt, streams::places + said.index());
            append_words(words, std::max(1, w.fit.words_in(item(said, t).prompt_tokens)), own,
                         w.fit);
            return words;
        });
    }
    void hash_all(fnv1a& h, const trace_terms& t) const {
        if (const int common = shared_length(system_tokens, t.seed); common > 0) h.add(common);
    }
    void hash_conversation(fnv1a& h, std::size_t conversation, const trace_terms& t) const {
        for (std::size_t turn = 0; turn < turns(conversation, t); ++turn) {
            const trace_item asked = item({conversation, turn, conversation * most_turns}, t);
            h.add(asked.prompt_tokens);
            h.add(asked.output_tokens);
        }
    }
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C58] prompts that stand alone ============================================================
// Two sources of traffic; what a source can do stands in traffic_source.hpp.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The prompts of a list, in turn.
struct given_prompts {
    static constexpr std::size_t most_turns = 1;
    std::vector<std::string> prompts{};

    std::size_t turns(std::size_t, const trace_terms&) const { return 1; }
    trace_item item(const trace_place&, const trace_terms&) const { return {}; }
    void fill(request_spec& r, const trace_place& at, const trace_terms&,
              const word_terms&) const {
        r.prompt = prompts[at.conversation % prompts.size()];
    }
    void hash_all(fnv1a&, const trace_terms&) const {}
    void hash_conversation(fnv1a& h, std::size_t conversation, const trace_terms&) const {
        add_text(h, prompts[conversation % prompts.size()]);
    }
};

/// Made-up prompts of drawn lengths, or of those of a recorded trace.
struct made_up_prompts {
    static constexpr std::size_t most_turns = 1;
    length_distribution prompt_tokens{}, output_tokens{}, shared_prefix{};
    long long prefix_groups = 1;
    double prefix_share = 1;  // of the prompts that start with one
    std::size_t warmup = 0;   // prompts that warm up: a trace begins with the first after them

    std::size_t turns(std::size_t, const trace_terms&) const { return 1; }
    trace_item item(const trace_place& at, const trace_terms& t) const {
        generator random(t.seed, streams::places + at.index());
        const auto length = [&](const length_distribution& d, int trace_row::*recorded,
                                const std::vector<double>& values) {
            if (d.kind != length_distribution::shape::trace)
                return drawn_length(d, random, 1, values);
            const double n = t.files.trace.rows[row(at.index(), t)].*recorded;
            return static_cast<int>(std::clamp(std::round(n * d.a), 1.0, d.b));
        };
        const int prompt = length(prompt_tokens, &trace_row::prompt_tokens, t.files.prompt_values);
        return {prompt,
                length(output_tokens, &trace_row::output_tokens, t.files.output_values)};
    }
    void fill(request_spec& r, const trace_place& at, const trace_terms& t,
              const word_terms& w) const {
        const trace_item asked = item(at, t);
        r.max_tokens = asked.output_tokens;
        r.prompt = prompt(at.index(), w.fit.words_of_prompt(asked.prompt_tokens), t, w);
        if (w.fit.as_ids) r.token_ids = id_list(r.prompt);
    }
    void hash_all(fnv1a& h, const trace_terms& t) const {
        if (const int common = shared_length(shared_prefix, t.seed); common > 0) h.add(common);
        if (prefix_groups == 1 && prefix_share == 1) return;
        h.add(prefix_groups);
        h.add(std::llround(prefix_share * 1e9));
    }
    void hash_conversation(fnv1a& h, std::size_t index, const trace_terms& t) const {
        if (has_blocks(t))
            for (const std::uint32_t id : t.files.trace.blocks[row(index, t)]) h.add(id);
        const trace_item asked = item({index, 0, index}, t);
        h.add(asked.prompt_tokens);
        h.add(asked.output_tokens);
    }

    /// Words at the end of a prompt that no other one has; 0 where a recording says what is shared.
    int fresh_words(const trace_place& at, const trace_terms& t, const token_fit& fit) const {
        if (has_blocks(t)) return 0;
        const int all = fit.words_of_prompt(item(at, t).prompt_tokens);
        if (group(at.index(), t.seed) < 0) return all;
        return all - std::min(fit.words_in(shared_length(shared_prefix, t.seed)), all);
    }
    /// The group whose prefix a prompt starts with, -1 for none.
    long long group(std::size_t index, std::uint64_t seed) const {
        if (prefix_groups == 1 && prefix_share == 1) return 0;
        generator random(seed, streams::groups + index);
        if (random.uniform() >= prefix_share) return -1;
        return static_cast<long long>(random.below(static_cast<std::uint64_t>(prefix_groups)));
    }

private:
    /// The row of a recorded trace that a prompt stands for; the warm-up has the first ones too.
    std::size_t row(std::size_t index, const trace_terms& t) const {
        return (index < warmup ? index : index - warmup) % t.files.trace.rows.size();
    }
    /// Whether the recording says what its prompts had in common.
    bool has_blocks(const trace_terms& t) const {
        return prompt_tokens.kind == length_distribution::shape::trace &&
               !t.files.trace.blocks.empty();
    }
    /// A prompt of so many words.
    std::string prompt(std::size_t index, int count, const trace_terms& t,
                       const word_terms& w) const {
        std::string words;
        if (has_blocks(t)) {
            // What two recorded prompts had in common, these have in common, too.
            const int block_words =
                std::max(1, w.fit.words_in(trace_block_tokens * prompt_tokens.a));
            for (const std::uint32_t id : t.files.trace.blocks[row(index, t)]) {
                generator block(w.salt, streams::blocks + id);
                const int n = std::min(block_words, count);
                append_words(words, n, block, w.fit);
                count -= n;
            }
        } else if (const long long g = group(index, t.seed); g >= 0) {
            generator shared(w.salt, streams::shared_words +
                                         static_cast<std::uint64_t>(g) * streams::group_words);
            const int n = std::min(w.fit.words_in(shared_length(shared_prefix, t.seed)), count);
            append_words(words, n, shared, w.fit);
            count -= n;
        }
        generator own(w.salt, streams::places + index);
        append_words(words, count, own, w.fit);
        return words;
    }
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C59] where prompts come from =============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a workload became. Each source has
///     most_turns                     places that each of its conversations takes
///     turns(conversation, terms)     of one conversation; 1 where prompts stand alone
///     item(place, terms)             the lengths that a place asks for
///     fill(request, place, terms, words)
///                                    puts into a request what is its own: prompt, history, lengths
///     hash_all(hash, terms), hash_conversation(hash, conversation, terms)
///                                    add what tells its traffic from any other
/// Nothing of it changes, and all of it follows from the arguments.
using traffic_source =
    std::variant<made_up_prompts, given_prompts, recorded_dialogues, made_up_conversations>;

inline std::size_t most_turns_of(const traffic_source& s) {
    return std::visit([](const auto& source) -> std::size_t { return source.most_turns; }, s);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C60] the plan of a gate ==================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A scenario that was found sound, with every default filled in.
struct plan {
    std::string name{};
    std::string test_case{};  // "" outside of one
    std::string file{};
    int line = 0;
    arrival_data arrivals{};
    long long warmup_requests = 0;
    double warmup_s = 0;
    long long requests = 0;
    double duration_s = 0;
    int first_repeats = first_look;  // before this many nothing is decided
    int most_repeats = last_look;    // repeats, or pairs where there is a baseline
    int most_if_noisy = 0;           // pairs that spread by more than is believed, 0: no more
    bool has_baseline = false;       // a live one, measured in pairs
    bool has_stored_baseline = false;
    stored_result stored{};
    judging_rule rule{};
    std::uint64_t seed = 1;
    std::uint64_t nonce = 0;  // of this execution: its words are none that a cache has seen
    std::string hash{};  // trace_hash of it, once it is known: long prompts take a while
    std::string workload_text{};
    std::string sent_as_given{};  // "prompts" or "images": what is the same in every repeat and run
    traffic_source source{};
    std::size_t stride = 1;  // places that a conversation takes, its turns the first of them
    double think_s = 0;      // before a later turn
    /// What was read for it; the copies of a plan share it.
    std::shared_ptr<const workload_files> files = std::make_shared<const workload_files>();
    bool forces_length = false;
    request_spec common{};  // what all requests share
    llmbench::limits limits{};
    client_options client{};
    std::vector<slo> slos{};
    bool is_open_loop() const { return arrivals.kind != arrival_kind::closed_loop; }
};

inline trace_place place_of(const plan& p, std::size_t index) {
    return {index / p.stride, index % p.stride, index - index % p.stride};
}
inline trace_terms terms_of(const plan& p) { return {p.seed, *p.files}; }
/// Turns of one conversation of the trace.
inline std::size_t turns_of(const plan& p, std::size_t conversation) {
    return std::visit([&](const auto& source) { return source.turns(conversation, terms_of(p)); },
                      p.source);
}
/// How many conversations hold the requests that are to warm up, and those to be measured (0: no
/// limit). The last one may be cut, so that the number is kept.
struct conversation_counts {
    std::size_t warmup = 0, measured = 0, last_turns = 1;
};
inline conversation_counts counted_conversations(const plan& p) {
    const auto warmup = static_cast<std::size_t>(p.warmup_requests);
    const auto requests = static_cast<std::size_t>(p.requests);
    if (p.stride == 1) return {warmup, requests, 1};
    conversation_counts c;
    for (std::size_t turns = 0; turns < warmup; ++c.warmup) turns += turns_of(p, c.warmup);
    for (std::size_t turns = 0; turns < requests; ++c.measured) {
        const std::size_t more = turns_of(p, c.warmup + c.measured);
        c.last_turns = std::min(more, requests - turns);
        turns += more;
    }
    return c;
}

/// When an open loop sends; of conversations, their first turns.
inline schedule schedule_of(const plan& p) {
    const conversation_counts c = counted_conversations(p);
    if (p.arrivals.kind == arrival_kind::replay)
        return replay_schedule(p.arrivals, p.files->trace, c.warmup, p.warmup_s, c.measured,
                               p.duration_s, p.seed);
    return open_loop_schedule(p.arrivals, static_cast<long long>(c.warmup), p.warmup_s,
                              static_cast<long long>(c.measured), p.duration_s, p.seed);
}
/// Places of the trace that the sends of an open loop begin, the end of the last one.
inline std::size_t end_of_trace(const plan& p, std::size_t starts) {
    const conversation_counts c = counted_conversations(p);
    const bool whole = c.measured == 0 || starts < c.warmup + c.measured;
    return starts == 0 ? 0 : (starts - 1) * p.stride + (whole ? p.stride : c.last_turns);
}

/// Requests on the places of the trace before this one.
inline long long requests_before(const plan& p, std::size_t last) {
    if (p.stride == 1) return static_cast<long long>(last);
    std::size_t n = 0;
    for (std::size_t c = 0; c * p.stride < last; ++c)
        n += std::min(turns_of(p, c), last - c * p.stride);
    return static_cast<long long>(n);
}

/// Measured requests that one repeat will have, 0 where only the run can tell.
inline long long expected_requests(const plan& p) {
    double by_time = infinity;
    if (p.is_open_loop() && p.arrivals.kind != arrival_kind::all_at_once) {
        const recorded_trace& trace = p.files->trace;
        const double seconds = p.duration_s > 0 ? p.duration_s : own_length(p.arrivals, trace);
        if (seconds > 0) by_time = arrivals_within(p.arrivals, trace, seconds);
        if (seconds > 0 && p.stride > 1) {
            const std::size_t warmup = counted_conversations(p).warmup;
            const auto n = static_cast<std::size_t>(std::llround(by_time));
            by_time = 0;
            for (std::size_t c = 0; c < n; ++c)
                by_time += static_cast<double>(turns_of(p, warmup + c));
        }
    } else if (p.duration_s > 0) {
        return 0;
    }
    const double by_count = p.requests > 0 ? static_cast<double>(p.requests) : infinity;
    const double n = std::min(by_time, by_count);
    return std::isfinite(n) ? std::llround(n) : 0;
}
/// Of these, first turns of conversations.
inline long long expected_first_turns(const plan& p) {
    const long long n = expected_requests(p);
    if (n == 0 || p.stride == 1) return n;
    const std::size_t warmup = counted_conversations(p).warmup;
    long long first = 0;
    for (long long turns = 0; turns < n; ++first)
        turns += static_cast<long long>(turns_of(p, warmup + static_cast<std::size_t>(first)));
    return first;
}

/// Seconds that one repeat will take at least, as far as the plan can tell; 0 where it cannot.
inline double expected_seconds(const plan& p) {
    if (!p.is_open_loop()) return p.duration_s;
    if (p.arrivals.kind == arrival_kind::all_at_once) return 0;
    return schedule_of(p).measured_to;
}

/// The plan of one stage of fresh traffic: other requests, and in the last stage twice as many.
inline plan stage_of(const plan& p, int stage) {
    plan q = p;
    q.hash.clear();
    q.seed = stage == 0 ? p.seed : mixed(p.seed ^ mixed(static_cast<std::uint64_t>(stage)));
    // Other conversations of a dataset, of which the stages need four times a repeat's.
    if (auto* d = std::get_if<recorded_dialogues>(&q.source))
        d->begin = p.files->dialogues.size() / 4 * static_cast<std::size_t>(stage);
    if (stage + 1 == last_stage) {
        q.requests *= 2;
        q.duration_s *= 2;
        // The mixture of rates stays what it was.
        q.arrivals.over_s *= 2;
        list<load_step> longer;
        for (const load_step& s : p.arrivals.stages)
            longer.push_back({s.rate, time_span::from_seconds(2 * s.lasts.seconds())});
        q.arrivals.stages = longer;
    }
    return q;
}
/// The plan of one repeat: a stage of its own where traffic is fresh, else the same as before.
inline plan plan_of_repeat(const plan& p, int repeat) {
    return p.rule.traffic == fresh ? stage_of(p, repeat) : p;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C61] which SLOs a scenario can have ======================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a scenario says of the objectives that it can have.
struct slo_context {
    bool streams = true;
    bool has_baseline = false;  // a live one or a stored one
    bool has_turns = false;
    bool saturates = true;
    std::string arrivals{};  // as they are told
    long long requests = 0;  // measured ones of a repeat, 0 where only the run can tell
    long long first_turns = 0;  // of these
    int most_repeats = last_look;
    judging_rule rule{};
    std::vector<slo> slos{};
};
inline slo_context slo_context_of(const plan& p) {
    return {.streams = p.common.stream,
            .has_baseline = p.has_baseline || p.has_stored_baseline,
            .has_turns = p.stride > 1,
            .saturates = saturates(p.arrivals),
            .arrivals = arrival_text(p.arrivals),
            .requests = expected_requests(p),
            .first_turns = expected_first_turns(p),
            .most_repeats = p.most_repeats,
            .rule = p.rule,
            .slos = p.slos};
}

// What follows refuses an objective for one reason after the other, in a sentence that starts with
// `given`.

inline void check_metric(const statistic_data& w, const slo_context& c, const std::string& given) {
    for (const predicate_step& step : w.where) {
        if (step.op != predicate_step::op_kind::compare) continue;
        require(!facts_of(step.metric).is_unmeasured,
                given + "queue_time is not measured by this version");
        require(step.bound > 0 && std::isfinite(step.bound),
                given + "the limit of " + metric_name(step.metric) + " must be above zero");
    }
    require(!facts_of(w.metric).is_unmeasured,
            given + "server-side metrics are not read by this version");
    require(c.streams || !concerns(w, &metric_facts::needs_stream),
            given + "options.stream is false, and an answer that comes in one piece has no "
                    "first token apart from its last: use e2e");
    require(w.kind != statistic_kind::percentile || (w.q > 0 && w.q < 1),
            given + "a percentile lies strictly between 0 and 1");
}

inline void check_slo_limit(const slo& s, const slo_context& c, const std::string& given) {
    const metric_id metric = s.what.metric;
    if (s.factor != 0 || s.bound == 0) {
        require(s.factor > 0 && std::isfinite(s.factor), given + "the limit must be above zero");
        require(c.has_baseline, given + "the scenario has no baseline");
        require(!is_share(metric),
                given + "a share is judged against a limit of its own, not against the baseline's");
        require(!is_of_start(metric),
                given + "startup times of two servers are not compared by this version");
    } else {
        require(s.bound > 0 && std::isfinite(s.bound), given + "the limit must be above zero");
        require(!is_share(metric) || s.bound < 1, given + "the limit must be under 100 %");
    }
}

/// Some metrics say nothing of a load that does not saturate, or of one without conversations.
inline void check_metric_of_load(const statistic_data& w, const slo_context& c,
                                 const std::string& given) {
    require(!is_throughput(w.metric) || c.saturates,
            given + "below saturation a throughput only measures the arrival rate of " +
                c.arrivals + ", use closed_loop(n) or all_at_once()");
    const auto check_turns = [&](metric_id id) {
        require(!is_of_turns(id) || c.has_turns,
                given + metric_name(id) + " needs a workload of conversations");
    };
    for (const predicate_step& step : w.where) check_turns(step.metric);
    check_turns(w.metric);
}

/// Requests of one repeat that a statistic is of, 0 where only the run can tell.
inline long long requests_behind(metric_id id, const slo_context& c) {
    switch (facts_of(id).turns) {
    case turn_kind::all: break;
    case turn_kind::first: return c.first_turns;
    case turn_kind::later: return c.requests - c.first_turns;
    }
    return c.requests;
}
inline void check_fresh(const slo& s, const slo_context& c, const std::string& given) {
    const statistic_data& w = s.what;
    const std::string why = given + "traffic is fresh: ";
    require(s.factor == 0, why + "a baseline is compared on replayed traffic");
    require(!is_throughput(w.metric) && !facts_of(w.metric).is_of_gaps &&
                (w.kind == statistic_kind::percentile || w.kind == statistic_kind::mean),
            why + str(w.name) + " is judged on replayed traffic only");
    const long long n = requests_behind(w.metric, c), needed = least_fresh(w, c.rule);
    require(n == 0 || n >= needed,
            why + printed("%s needs at least %lld measured requests, and the scenario has %lld",
                          w.name.c_str(), needed, n));
}
inline void check_sample(const statistic_data& w, const slo_context& c, const std::string& given) {
    const long long n = requests_behind(w.metric, c), needed = least_replayed(w);
    if (facts_of(w.metric).is_of_gaps || n <= 0) return;
    const bool is_percentile = w.kind == statistic_kind::percentile;
    require(n >= needed, given + printed("%s needs at least %lld measured requests a repeat%s, and "
                                         "the scenario has %lld",
                                         w.name.c_str(), needed,
                                         is_percentile ? " so that three lie beyond it" : "", n));
}

/// Throws std::invalid_argument with one sentence where the scenario cannot have this objective.
inline void check_slo(const slo& s, const slo_context& c) {
    const statistic_data& w = s.what;
    const std::string given = "the SLO " + str(s.text()) + " is refused: ";
    check_metric(w, c, given);
    check_slo_limit(s, c, given);
    check_metric_of_load(w, c, given);
    const bool is_of_latencies = !is_of_start(w.metric) && !is_share(w.metric);
    if (c.rule.traffic == fresh && is_of_latencies) check_fresh(s, c, given);
    else check_sample(w, c, given);
    if (w.kind != statistic_kind::mean) return;
    for (const slo& other : c.slos)
        require(other.what.metric != metric_id::error_rate || other.is_advisory ||
                    other.bound <= 0.05,
                given + "a mean over completed requests says little beside an error limit over "
                        "5 %");
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C62] the options of requests =============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Where APIs keep their own fields: TGI, Ollama, SGLang.
inline bool holds_options(std::string_view name, const picojson::value& value) {
    return value.is<picojson::object>() &&
           (name == "parameters" || name == "options" || name == "sampling_params");
}
inline std::string checked_fields(const picojson::object& fields, bool with_objects) {
    std::string out;
    for (const auto& [name, value] : fields) {
        for (const char* ours : {"model", "messages", "prompt", "stream", "stream_options",
                                 "inputs", "text", "text_input", "system"})
            require(name != ours,
                    "options.extra_body sets \"" + name + "\": that field belongs to llmbench");
        for (const char* option : {"max_tokens", "temperature", "ignore_eos"})
            require(name != option, "options.extra_body sets \"" + name + "\": use options." +
                                        name + ", a field must not stand twice");
        for (const char* option : {"max_new_tokens", "num_predict", "n_predict"})
            require(name != option, "options.extra_body sets \"" + name +
                                        "\": use options.max_tokens, a field must not stand twice");
        for (const char* choices : {"n", "best_of", "num_return_sequences"})
            require(name != choices || !value.is<double>() || value.get<double>() <= 1,
                    "options.extra_body sets \"" + name + "\" to " + value.serialize() +
                        ": several choices share one stream and one usage, and what the tokens of "
                        "each take is not told apart; ask for one");
        if (with_objects || !holds_options(name, value))
            out += "," + json_quoted(name) + ":" + value.serialize();
    }
    return out;
}
inline picojson::object extra_body_of(const request_options& o) {
    picojson::value v;
    require(parse_json(str(o.extra_body), v) && v.is<picojson::object>(),
            "options.extra_body is \"" + printable(str(o.extra_body), 80) +
                "\": it must be a JSON object");
    return v.get<picojson::object>();
}
inline std::string shared_fields(const request_options& o) {
    return o.extra_body.empty() ? std::string() : checked_fields(extra_body_of(o), false);
}
inline std::vector<extra_object> shared_objects(const request_options& o) {
    std::vector<extra_object> objects;
    if (o.extra_body.empty()) return objects;
    for (const auto& [name, value] : extra_body_of(o))
        if (holds_options(name, value))
            objects.push_back({name, checked_fields(value.get<picojson::object>(), true)});
    return objects;
}

inline void check_options(const request_options& o) {
    require(!o.max_tokens || *o.max_tokens >= 1,
            printed("options.max_tokens is %d: it must be at least 1", *o.max_tokens));
    require(!o.temperature || (*o.temperature >= 0 && *o.temperature <= 10),
            printed("options.temperature is %g: it runs from 0 to 10", *o.temperature));
}
/// What all requests share, but for the fields of their prompts and lengths.
inline request_spec common_request(const request_options& o) {
    request_spec r;
    r.temperature = o.temperature ? *o.temperature : not_a_number;
    r.system_prompt = str(o.system_prompt);
    r.stream = o.stream;
    r.extra_fields = shared_fields(o);
    r.extra_objects = shared_objects(o);
    r.max_tokens = o.max_tokens ? *o.max_tokens : 0;
    return r;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C63] from a workload to its part of the plan =============================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline const char* format_name(dataset_format f) {
    switch (f) {
    case sharegpt: return "sharegpt";
    case dolly: return "dolly";
    case openai_jsonl: return "openai_jsonl";
    case coco_captions: return "coco_captions";
    case text_lines: return "text_lines";
    case csv: return "csv";
    }
    return "";
}

/// What can be refused before the file is read.
inline void check_dataset(const dataset& d) {
    require(!d.path.empty(), "workload.path is empty: a dataset must name a file");
    require(!d.max_items || (*d.max_items >= 1 && *d.max_items <= 1000000),
            printed("workload.max_items is %d: it runs from 1 to 1000000", *d.max_items));
    for (const auto& [name, least, most] :
         {std::tuple{"prompt", d.min_prompt_tokens, d.max_prompt_tokens},
          std::tuple{"output", d.min_output_tokens, d.max_output_tokens}})
        require(least >= 0 && most >= 0 && (most == 0 || least <= most),
                printed("workload.min_%s_tokens is %lld and max_%s_tokens is %lld: they cannot be "
                        "negative, and the first is at most the second",
                        name, static_cast<long long>(least), name, static_cast<long long>(most)));
    require(d.max_turns >= 1 && d.max_turns <= 1000,
            printed("workload.max_turns is %lld: it runs from 1 to 1000",
                    static_cast<long long>(d.max_turns)));
    require(d.think.seconds() >= 0 && d.think.seconds() <= 86400,
            printed("workload.think is %g s: it runs from 0 to 86400 s", d.think.seconds()));
}

/// What of a plan its workload says.
struct planned_workload {
    traffic_source source{};
    std::string text{};
    bool forces_length = true;
    double think_s = 0;
    std::string sent_as_given{};
};

inline std::string think_text(double think_s) {
    return think_s > 0 ? printed(", think %.9g s", think_s) : "";
}

inline planned_workload workload_of(const prompt_list& list, const request_options& o) {
    require(list.items.size() > 0, "workload is prompts({}): it needs at least one prompt");
    given_prompts given;
    for (const text& t : list.items) given.prompts.push_back(str(t));
    return {.source = given,
            .text = printed("%zu prompts", list.items.size()),
            .forces_length = o.ignore_eos,
            .sent_as_given = "prompts"};
}

inline planned_workload workload_of(const dataset& d, const request_options& o,
                                    const std::vector<dialogue>& sample) {
    check_dataset(d);
    require(!sample.empty(), str(d.path) + " was not read");
    double prompt_tokens = 0;
    std::size_t turns = 0, most_turns = 1;
    for (const dialogue& x : sample) {
        most_turns = std::max(most_turns, x.turns.size());
        turns += x.turns.size();
        prompt_tokens += estimated_prompt_tokens(x);
    }
    const double n = static_cast<double>(sample.size());
    return {.source = recorded_dialogues{.most_turns = most_turns, .salted = d.salted},
            .text = printed("%.0f prompts of ", n) + file_name(str(d.path)) + " (" +
                    format_name(d.format) + "), about " +
                    printed("%.0f tokens each", prompt_tokens / n) +
                    (most_turns > 1 ? printed(", %.1f turns each", static_cast<double>(turns) / n)
                                    : "") +
                    think_text(d.think.seconds()) +
                    (d.force_output ? "" : ", answers as long as they get") +
                    (d.salted ? "" : ", not salted"),
            .forces_length = d.force_output || o.ignore_eos,
            .think_s = d.think.seconds(),
            .sent_as_given = !d.salted ? "prompts" : d.format == coco_captions ? "images" : ""};
}

inline void check_conversations(const conversations& c) {
    using shape = length_distribution::shape;
    for (const auto& [d, field, least] :
         {std::tuple{&c.turns, "workload.turns", 1.0},
          std::tuple{&c.user_tokens, "workload.user_tokens", 1.0},
          std::tuple{&c.output_tokens, "workload.output_tokens", 1.0},
          std::tuple{&c.system_tokens, "workload.system_tokens", 0.0}}) {
        check_length(*d, field, least);
        require(d->kind != shape::trace && (d->kind != shape::empirical || d == &c.user_tokens ||
                                            d == &c.output_tokens),
                std::string(field) + " is " + length_text(*d) +
                    ": files are read for user_tokens and output_tokens only");
    }
}
/// Turns of the longest conversation that can be drawn.
inline std::size_t most_turns_of(const conversations& c) {
    using shape = length_distribution::shape;
    constexpr double limit = 1000;
    const bool is_open = c.turns.kind == shape::normal || c.turns.kind == shape::lognormal;
    const double most = is_open ? c.turns.a : std::max(c.turns.a, c.turns.b);
    require(most <= limit, "workload.turns is " + length_text(c.turns) +
                               ": a conversation has 1 to 1000 turns");
    return static_cast<std::size_t>(is_open ? limit : most);
}

inline planned_workload workload_of(const conversations& c) {
    check_conversations(c);
    const std::size_t most_turns = most_turns_of(c);
    const double think_s = c.think.seconds();
    require(think_s >= 0 && think_s <= 86400,
            printed("workload.think is %g s: it runs from 0 to 86400 s", think_s));
    const std::string system =
        c.system_tokens.a > 0 ? ", a system prompt of " + length_text(c.system_tokens) +
                                    (c.shared_system_prompt ? " shared by all" : " of their own")
                              : "";
    planned_workload w{.text = "conversations, " + length_text(c.turns) +
                               " turns, messages of " + length_text(c.user_tokens) +
                               " tokens, answers of " + length_text(c.output_tokens) + system +
                               think_text(think_s),
                       .think_s = think_s};
    // Of one turn each they are prompts, and what would be the system prompt starts all of them.
    if (most_turns == 1)
        w.source = made_up_prompts{.prompt_tokens = c.user_tokens,
                                   .output_tokens = c.output_tokens,
                                   .shared_prefix = c.system_tokens};
    else
        w.source = made_up_conversations{.most_turns = most_turns,
                                         .turns_each = c.turns,
                                         .user_tokens = c.user_tokens,
                                         .output_tokens = c.output_tokens,
                                         .system_tokens = c.system_tokens,
                                         .shared_system_prompt = c.shared_system_prompt};
    return w;
}

inline void check_own_lengths(const arrival_data& a, const length_distribution& d,
                              const char* field) {
    require(d.kind != length_distribution::shape::trace || a.kind == arrival_kind::replay,
            std::string(field) + " is from_trace(): arrivals must be replay(...), they are " +
                arrival_text(a));
}
inline void check_synthetic(const synthetic& w, const arrival_data& a) {
    using shape = length_distribution::shape;
    check_length(w.prompt_tokens, "workload.prompt_tokens", 1);
    check_length(w.output_tokens, "workload.output_tokens", 1);
    check_length(w.shared_prefix, "workload.shared_prefix", 0);
    check_own_lengths(a, w.prompt_tokens, "workload.prompt_tokens");
    check_own_lengths(a, w.output_tokens, "workload.output_tokens");
    require(w.shared_prefix.kind != shape::empirical && w.shared_prefix.kind != shape::trace,
            "workload.shared_prefix is " + length_text(w.shared_prefix) +
                ": files are read for prompt_tokens and output_tokens only");
    require(w.prefix_groups >= 1 && w.prefix_groups <= 1000000,
            printed("workload.prefix_groups is %lld: it runs from 1 to 1000000",
                    static_cast<long long>(w.prefix_groups)));
    require(w.prefix_share.fraction >= 0 && w.prefix_share.fraction <= 1,
            printed("workload.prefix_share is %g %%: it runs from 0 to 100 %%",
                    w.prefix_share.fraction * 100));
}
inline planned_workload workload_of(const synthetic& w, const arrival_data& a,
                                    const warmup_amount& warmup) {
    check_synthetic(w, a);
    const made_up_prompts made{
        .prompt_tokens = w.prompt_tokens,
        .output_tokens = w.output_tokens,
        .shared_prefix = w.shared_prefix,
        .prefix_groups = w.prefix_groups,
        .prefix_share = w.prefix_share.fraction,
        .warmup = warmup_sends(a, static_cast<std::size_t>(warmup.requests()), warmup.seconds())};
    std::string prefix;
    if (made.shared_prefix.a > 0) {
        prefix = ", shared prefix " + length_text(made.shared_prefix) + " tokens";
        if (made.prefix_groups > 1) prefix += printed(" in %lld groups", made.prefix_groups);
        if (made.prefix_share < 1)
            prefix += printed(" for %.9g %% of the prompts", made.prefix_share * 100);
    }
    return {.source = made,
            .text = "synthetic, prompt " + length_text(made.prompt_tokens) + " tokens, output " +
                    length_text(made.output_tokens) + " tokens" + prefix};
}

inline planned_workload workload_of(const scenario& s, const arrival_data& arrivals,
                                    const workload_files& files) {
    const box& w = s.workload.what();
    if (const auto* d = w.get<dataset>()) return workload_of(*d, s.options, files.dialogues);
    if (const auto* list = w.get<prompt_list>()) return workload_of(*list, s.options);
    require(!s.options.max_tokens,
            printed("options.max_tokens is %d: a synthetic workload says its own output_tokens",
                    *s.options.max_tokens));
    if (const auto* talk = w.get<conversations>()) return workload_of(*talk);
    if (const auto* made = w.get<synthetic>()) return workload_of(*made, arrivals, s.warmup);
    synthetic as_recorded;
    if (arrivals.kind == arrival_kind::replay)
        as_recorded.prompt_tokens = as_recorded.output_tokens = from_trace();
    return workload_of(as_recorded, arrivals, s.warmup);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C64] from a scenario to its plan =========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What can be refused of the way requests are sent; the rate of a replay is that of its trace on
/// the average, which the warm-up has.
inline arrival_data planned_arrivals(const scenario& s, const recorded_trace& trace) {
    arrival_data a = s.arrivals.data();
    check_arrivals(a);
    if (a.kind != arrival_kind::replay) return a;
    require(!trace.rows.empty(), str(a.file) + " was not read");
    a.rate = static_cast<double>(trace.rows.size()) / own_length(a, trace);
    return a;
}

/// How much is sent, before the measured part and in it.
inline void check_extent(const scenario& s, const arrival_data& a, const recorded_trace& trace) {
    const long long warmup_requests = s.warmup.requests(), requests = s.requests;
    const double warmup_s = s.warmup.seconds(), duration_s = s.duration.seconds();
    require(warmup_requests >= 0 && warmup_requests <= 1000000,
            printed("warmup is %lld requests: it runs from 0 to 1000000", warmup_requests));
    require(warmup_s >= 0 && warmup_s <= 86400,
            printed("warmup is %g s: it runs from 0 to 86400 s", warmup_s));
    require(requests >= 0 && requests <= 100000000,
            printed("requests is %lld: it runs from 1 to 100000000", requests));
    require(duration_s >= 0 && duration_s <= 86400,
            printed("duration is %g s: it runs from 0 to 86400 s", duration_s));
    const double by_time = duration_s > 0 ? duration_s : own_length(a, trace);
    require(requests > 0 || by_time > 0,
            "neither requests nor duration is set: the scenario would never end");
    if (a.kind == arrival_kind::all_at_once) {
        require(requests > 0 && duration_s == 0,
                "arrivals is all_at_once: it needs requests, and no duration");
        require(warmup_s == 0, "arrivals is all_at_once: its warm-up is a number of requests");
    }
    if (a.kind == arrival_kind::closed_loop) return;
    if (by_time > 0) {
        const double n = arrivals_within(a, trace, by_time);
        const std::string sends = printed("in %.9g s ", by_time) + arrival_text(a) +
                                  printed(" sends about %.0f requests: ", n);
        require(n >= 0.5, sends + "that is none, let it run longer");
        require(n <= 1e8 || requests > 0, sends + "at most 100000000 can be planned");
    }
    require(warmup_s * starting_rate(a) <= 1e6,
            printed("warmup is %g s: at %.9g requests/s that is over 1000000 requests", warmup_s,
                    starting_rate(a)));
}

inline void check_counts(const scenario& s) {
    const long long repeats = s.repeats, seed = s.seed, threads = s.client.threads;
    require(repeats >= 0 && repeats <= 100,
            printed("repeats is %lld: it runs from 2 to 100, or is 0 for as many as it takes",
                    repeats));
    require(seed >= 0, printed("seed is %lld: it cannot be negative", seed));
    require(threads >= 0 && threads <= 64,
            printed("client.threads is %lld: it runs from 1 to 64, or is 0 for the default",
                    threads));
}

/// What a baseline can be, and what fresh traffic can be compared with.
inline void check_baseline(const scenario& s) {
    const bool is_fresh = s.traffic == fresh, is_stored = s.baseline.is_stored();
    require(!is_fresh || !(s.baseline.is_live() || is_stored),
            "traffic is fresh: a baseline is compared on replayed traffic");
    const arrival_data& a = s.arrivals.data();
    require(!is_fresh || a.kind != arrival_kind::replay,
            "traffic is fresh: " + arrival_text(a) +
                " is one recording, and there is no other traffic to be drawn from it");
    const double day_sd = s.baseline.stored().day_to_day.fraction;
    require(!is_stored || !s.baseline.stored().file.empty(),
            "baseline is stored(\"\"): it must name a file");
    require(day_sd > 0 && day_sd <= 0.5,
            printed("baseline: the day-to-day standard deviation is %g %%: two days' runs of a "
                    "server do differ, and it runs from above 0 to 50 %%",
                    day_sd * 100));
}

inline void check_judging(const judging_options& o) {
    for (const auto& [name, level] : {std::pair{"false_pass", o.false_pass},
                                      std::pair{"false_fail", o.false_fail}})
        require(level.fraction >= 0.0001 && level.fraction <= 0.2,
                printed("judging.%s is %g %%: it runs from 0.01 %% to 20 %%", name,
                        level.fraction * 100));
}

inline void check_limits(const limits& l) {
    const std::pair<const char*, time_span> waits[] = {{"connect", l.connect},
                                                       {"first_event", l.first_event},
                                                       {"between_events", l.between_events},
                                                       {"total", l.total},
                                                       {"drain", l.drain}};
    for (const auto& [name, t] : waits)
        require(t.seconds() > 0 && t.seconds() <= 86400,
                printed("limits.%s is %g s: it must be above 0 and at most 86400 s", name,
                        t.seconds()));
}

/// Repeats, pairs or stages: before the first number of them nothing is decided.
struct repeat_counts {
    int first = first_look, most = last_look, most_if_noisy = 0;
};
inline repeat_counts planned_repeats(const scenario& s, bool is_gate) {
    const bool is_fresh = s.traffic == fresh, is_paired = s.baseline.is_live();
    const bool judges = is_gate || s.slos.size() > 0;
    const long long asked = s.repeats;
    repeat_counts n{is_fresh ? 1 : is_paired ? first_pair_look : first_look,
                    is_fresh ? last_stage : is_paired ? last_pair_look : last_look};
    require(!is_fresh || asked <= last_stage,
            printed("repeats is %lld: fresh traffic comes in at most 3 stages, of n, n and 2n "
                    "requests",
                    asked));
    require(asked == 0 || !judges || asked >= n.first,
            printed("repeats is %lld: a verdict needs at least %d", asked, n.first));
    const bool compares = is_paired && std::any_of(s.slos.begin(), s.slos.end(),
                                                   [](const slo& x) { return x.factor > 0; });
    if (asked > 0) n.most = static_cast<int>(asked);
    else if (!judges) n.most = 3;
    else if (compares) n.most_if_noisy = last_noisy_pair_look;
    if (!judges) n.first = n.most;  // all are measured, whatever the guard on errors says
    return n;
}

/// Throws std::invalid_argument with one sentence for the first thing that is unsound.
/// `files` holds what was read for it. A gate without objectives has its guard on errors to decide,
/// a run without them only measures.
inline plan planned(const scenario& s, std::uint64_t default_seed, workload_files files = {},
                    bool is_gate = false) {
    const auto read = std::make_shared<const workload_files>(std::move(files));
    const arrival_data arrivals = planned_arrivals(s, read->trace);
    check_extent(s, arrivals, read->trace);
    check_counts(s);
    check_baseline(s);
    check_judging(s.judging);
    check_options(s.options);
    check_limits(s.limits);
    const request_spec common = common_request(s.options);
    const planned_workload workload = workload_of(s, arrivals, *read);
    const repeat_counts repeats = planned_repeats(s, is_gate);
    const long long seed = s.seed;
    const plan p{.arrivals = arrivals,
                 .warmup_requests = s.warmup.requests(),
                 .warmup_s = s.warmup.seconds(),
                 .requests = s.requests,
                 .duration_s = s.duration.seconds(),
                 .first_repeats = repeats.first,
                 .most_repeats = repeats.most,
                 .most_if_noisy = repeats.most_if_noisy,
                 .has_baseline = s.baseline.is_live(),
                 .has_stored_baseline = s.baseline.is_stored(),
                 .stored = s.baseline.stored(),
                 .rule = rule_of(s.judging, s.traffic, repeats.first, repeats.most,
                                 repeats.most_if_noisy > 0),
                 .seed = seed > 0 ? static_cast<std::uint64_t>(seed) : default_seed,
                 .workload_text = workload.text,
                 .sent_as_given = workload.sent_as_given,
                 .source = workload.source,
                 .stride = most_turns_of(workload.source),
                 .think_s = workload.think_s,
                 .files = read,
                 .forces_length = workload.forces_length,
                 .common = common,
                 .limits = s.limits,
                 .client = s.client,
                 .slos = {s.slos.begin(), s.slos.end()}};
    const slo_context context = slo_context_of(p);
    for (const slo& x : p.slos) check_slo(x, context);
    return p;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C65] a plan in words =====================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::string warmup_text(const plan& p) {
    return p.warmup_s > 0 ? printed(" after %g s of warm-up", p.warmup_s)
                          : printed(" after %lld to warm up", p.warmup_requests);
}
/// How long one repeat is.
inline std::string extent_text(const plan& p) {
    std::string t = p.requests > 0 ? printed("%lld requests", p.requests) : "";
    if (p.duration_s > 0) t += printed("%s%g s", t.empty() ? "" : ", ", p.duration_s);
    return t + warmup_text(p);
}
/// What every request says beside its prompt.
inline std::string options_text(const plan& p) {
    std::string t = p.forces_length ? "ignore_eos" : "";
    const auto add = [&](const std::string& more) { t += (t.empty() ? "" : ", ") + more; };
    if (p.common.max_tokens > 0) add(printed("max_tokens %d", p.common.max_tokens));
    if (!std::isnan(p.common.temperature)) add(printed("temperature %g", p.common.temperature));
    if (!p.common.system_prompt.empty())
        add("system prompt " + printable(p.common.system_prompt, 200));
    if (!p.common.extra_fields.empty()) add(printable(p.common.extra_fields.substr(1), 200));
    for (const extra_object& o : p.common.extra_objects)
        if (!o.fields.empty()) add(o.name + " {" + printable(o.fields.substr(1), 200) + "}");
    if (!p.common.stream) add("not streamed");
    return t;
}

/// All that one repeat sends.
inline std::string plan_text(const plan& p) {
    std::string t = arrival_text(p.arrivals);
    const long long n = expected_requests(p);
    if (n > 0) t += printed(", %lld requests", n);
    else if (p.duration_s > 0) t += printed(", %g s", p.duration_s);
    return t + warmup_text(p) + ", " + p.workload_text +
           printed(", seed %llu", static_cast<unsigned long long>(p.seed));
}

/// Whether the number of repeats is known before they are measured.
inline bool has_fixed_repeats(const plan& p) {
    return p.first_repeats == p.most_repeats;
}
inline std::string repeats_text(const plan& p) {
    const bool exactly = has_fixed_repeats(p);
    return (exactly ? "" : printed("%d to ", p.first_repeats)) +
           printed("%d %s%s%s", p.most_repeats, repeat_word(p.rule, p.has_baseline),
                   exactly && p.most_repeats == 1 ? "" : "s",
                   p.rule.traffic == fresh ? " of fresh traffic" : "") +
           (p.most_if_noisy > 0 ? printed(" (%d on a noisy machine)", p.most_if_noisy) : "");
}
/// Which repeat this is, of how many.
inline std::string stage_text(const plan& p, int repeat, run_arm arm) {
    const std::string t =
        printed("%s %d of ", repeat_word(p.rule, p.has_baseline), repeat + 1) +
        (has_fixed_repeats(p) ? "" : printed("%d-", p.first_repeats)) +
        std::to_string(repeat < p.most_repeats ? p.most_repeats : p.most_if_noisy);
    return p.has_baseline ? t + ", " + to_string(arm) : t;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C66] where a gate's server stood =========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a gate was measured on, or compared with.
enum class target_kind : unsigned char { none, endpoint, process, simulated, stored, same };
inline const char* to_string(target_kind k) {
    switch (k) {
    case target_kind::endpoint: return "endpoint";
    case target_kind::process: return "process";
    case target_kind::simulated: return "simulated";
    case target_kind::stored: return "stored";
    case target_kind::same: return "same server";
    case target_kind::none: break;
    }
    return "";
}

/// What is known of the server at the other end of a connection.
enum class tls_trust : unsigned char { no_tls, verified, not_verified };
inline const char* to_string(tls_trust t) {
    switch (t) {
    case tls_trust::verified: return "verified";
    case tls_trust::not_verified: return "not verified";
    case tls_trust::no_tls: break;
    }
    return "";
}

/// Where a gate's server stood and what it was.
struct target_facts {
    target_kind kind = target_kind::none;
    std::string url{};  // of what is stored, its file
    std::string model{};
    std::string api{};
    tls_trust tls = tls_trust::no_tls;
    token_fit tokens{};  // of made-up prompts
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C67] the hash of all that a plan sends ===================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Identifies the traffic: send times to the microsecond, and what the first requests say or how
/// long they are. Answers that are fed back are the server's own and no part of it.
inline std::string trace_hash(const plan& p) {
    if (!p.hash.empty()) return p.hash;
    fnv1a h;
    std::size_t n = static_cast<std::size_t>(std::max(p.requests, 1000ll));
    if (p.is_open_loop()) {
        const schedule s = schedule_of(p);
        for (const double t : s.at) h.add(std::llround(t * 1e6));
        n = s.at.size();
    } else {
        h.add(p.arrivals.users);
        h.add(std::llround(p.arrivals.think_s * 1e6));
        if (p.arrivals.users_ramp_s > 0) h.add(std::llround(p.arrivals.users_ramp_s * 1e6));
    }
    const trace_terms terms = terms_of(p);
    std::visit([&](const auto& source) { source.hash_all(h, terms); }, p.source);
    if (p.stride > 1) {
        const auto* made_up = std::get_if<made_up_conversations>(&p.source);
        h.add(std::llround(p.think_s * 1e6));
        h.add(!made_up || made_up->shared_system_prompt);
    }
    for (std::size_t c = 0; c < std::min<std::size_t>(n, 100000); ++c)
        std::visit([&](const auto& source) { source.hash_conversation(h, c, terms); }, p.source);
    return h.text();
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C68] the requests of a plan ==============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Whether all that is sent is made up, with lengths that were asked for.
inline bool makes_up_prompts(const plan& p) {
    return std::holds_alternative<made_up_prompts>(p.source) ||
           std::holds_alternative<made_up_conversations>(p.source);
}

inline trace_item item_of(const plan& p, std::size_t index) {
    return std::visit(
        [&](const auto& source) { return source.item(place_of(p, index), terms_of(p)); },
        p.source);
}

/// Tokens that a request is made to bring, 0 where nothing forces it.
inline int forced_tokens(const plan& p, std::size_t index) {
    if (!p.forces_length) return 0;
    const int own = item_of(p, index).output_tokens;
    return own > 0 ? own : p.common.max_tokens;
}
/// Whether answers of one token are no surprise: they were asked for, or forced to lengths that are
/// not drawn.
inline bool expects_short_outputs(const plan& p) {
    const length_distribution* drawn = nullptr;
    if (const auto* made = std::get_if<made_up_prompts>(&p.source)) drawn = &made->output_tokens;
    if (const auto* talk = std::get_if<made_up_conversations>(&p.source))
        drawn = &talk->output_tokens;
    return p.forces_length &&
           (!drawn || (drawn->kind == length_distribution::shape::fixed && drawn->a <= 1));
}

/// Words that differ from repeat to repeat, from arm to arm and from one execution of a gate to the
/// next, so that no prefix cache has seen them.
inline std::uint64_t salt_of(const plan& p, run_arm arm, int repeat) {
    return mixed(p.seed ^ p.nonce ^
                 mixed(static_cast<std::uint64_t>(repeat) * 2 + (arm == run_arm::baseline)));
}

/// The request itself. `answers` are those to the earlier turns of its conversation.
inline request_spec request_of(const plan& p, run_arm arm, int repeat, std::size_t index,
                               const std::vector<std::string>& answers = {},
                               const token_fit& fit = {}) {
    request_spec r = p.common;
    r.force_length = p.forces_length;
    const word_terms words{salt_of(p, arm, repeat), fit, answers};
    std::visit([&](const auto& source) { source.fill(r, place_of(p, index), terms_of(p), words); },
               p.source);
    return r;
}

/// Whether a prompt is more than text, which only some APIs can say.
inline bool asks_about_images(const plan& p) {
    if (!std::holds_alternative<recorded_dialogues>(p.source)) return false;
    for (const dialogue& d : p.files->dialogues)
        for (const dialogue_turn& t : d.turns)
            if (!t.image.empty()) return true;
    return false;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C69] what a plan says of the evidence that it will bring =================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline load_conditions load_conditions_of(const plan& p) {
    load_conditions c;
    const bool as_planned = p.arrivals.max_in_flight == 0 && p.stride == 1;
    c.arrival_cv2 = as_planned ? arrival_cv2_of(p.arrivals) : not_a_number;
    c.short_outputs_expected = expects_short_outputs(p);
    c.spins = p.client.spin;
    return c;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C70] what of its prompts a workload lets a prefix cache have =============================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Tokens at the end of a prompt that nobody has sent before: all behind its first fresh word. At
/// least so many; 0 where that is not known, or where prompts are sent again as they are.
class fresh_tokens {
public:
    fresh_tokens(const plan& p, std::size_t index, const token_fit& fit)
        : plan_(p), place_(place_of(p, index)), fit_(fit) {}

    double operator()(const given_prompts&) const { return 0; }
    double operator()(const made_up_prompts& s) const {
        return s.fresh_words(place_, terms_of(plan_), fit_) * fit_.per_word;
    }
    /// The first turn's fresh words come first of all that is its own; a later one follows what its
    /// conversation has said.
    double operator()(const recorded_dialogues& s) const {
        if (!s.salted || place_.turn > 0) return 0;
        return least_tokens(s.at(place_.conversation, *plan_.files));
    }
    double operator()(const made_up_conversations& s) const {
        const trace_terms t = terms_of(plan_);
        double words = std::max(1, fit_.words_in(s.item(place_, t).prompt_tokens));
        if (!s.shared_system_prompt && place_.turn == 0)
            words += fit_.words_in(shared_length(s.system_tokens, plan_.seed));
        return words * fit_.per_word;
    }

private:
    /// A token of text has seldom over eight bytes.
    static double least_tokens(const dialogue& d) {
        std::size_t bytes = d.turns[0].prompt.size();
        for (const chat_message& m : d.before) bytes += m.content.size();
        return static_cast<double>(bytes) / 8;
    }

    const plan& plan_;
    const trace_place place_;
    const token_fit& fit_;
};

/// Tokens of a prompt, of `prompt_tokens` as the server counted, that others may have sent before.
inline long long shared_tokens(const plan& p, std::size_t index, const token_fit& fit,
                               int prompt_tokens) {
    const double fresh = std::visit(fresh_tokens(p, index, fit), p.source);
    return std::clamp(prompt_tokens - static_cast<long long>(fresh), 0ll,
                      static_cast<long long>(prompt_tokens));
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C71] engine model ========================================================================
// A continuous-batching engine in virtual time. The simulated server gives it a real clock; a Monte
// Carlo study can run it as fast as it computes.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Tokens for which the cache has room.
inline double kv_capacity_tokens(const kv_cache& c) {
    const double bytes = 2.0 * static_cast<double>(c.layers) * static_cast<double>(c.kv_heads) *
                         static_cast<double>(c.head_size) * static_cast<double>(c.bytes_per_value);
    return std::floor(c.memory_bytes / bytes);
}

class engine_model {
public:
    static constexpr int block_tokens = 16;  // of the prefix cache

    struct request {
        std::uint64_t id = 0;
        int prompt_tokens = 1;
        int output_tokens = 1;
        std::vector<std::uint64_t>
            blocks{};  // a hash for each whole block of the prompt and all before it
    };
    enum class admission : unsigned char { accepted, queue_full, too_long };
    struct emission {
        std::uint64_t id = 0;
        int tokens = 0;
        bool finished = false;
        int cached = 0;  // prompt tokens that were not computed again
    };
    struct counters {
        double prompt_tokens = 0, generated_tokens = 0, finished = 0, cache_queries = 0,
               cache_hits = 0, busy_s = 0;
    };

    explicit engine_model(const engine& e)
        : e_(e),
          random_(static_cast<std::uint64_t>(static_cast<long long>(e.seed)), 77),
          capacity_(kv_capacity_tokens(e.kv)) {}

    admission submit(double now, request r) {
        const double tokens = r.prompt_tokens + r.output_tokens;
        if (tokens > static_cast<double>(e_.max_model_len) || tokens > capacity_)
            return admission::too_long;
        if (!e_.chunked_prefill && r.prompt_tokens > e_.prefill_budget) return admission::too_long;
        if (e_.queue_limit > 0 && static_cast<long long>(waiting_.size()) >= e_.queue_limit)
            return admission::queue_full;
        waiting_.push_back(std::move(r));
        if (!stepping_) begin_step(now);
        return admission::accepted;
    }
    void cancel(std::uint64_t id) {
        std::erase_if(waiting_, [&](const request& r) { return r.id == id; });
        for (sequence& s : running_)
            if (s.r.id == id) s.cancelled = true;
    }
    /// When the running step ends, infinite while there is nothing to do.
    double step_end() const { return stepping_ ? step_end_ : infinity; }

    /// Ends the running step: what it produced. The next one begins at the same moment.
    std::vector<emission> finish_step() {
        std::vector<emission> out;
        for (sequence& s : running_) {
            if (s.cancelled) continue;
            if (s.decoding) {
                const int n = std::min(std::max(1, static_cast<int>(e_.tokens_per_event)),
                                       s.r.output_tokens - s.produced);
                s.produced += n;
                out.push_back({s.r.id, n, s.produced >= s.r.output_tokens, s.cached});
            } else if (s.computed >= s.r.prompt_tokens) {
                s.produced = 1;
                s.decoding = true;
                remember(s.r);
                counters_.prompt_tokens += s.r.prompt_tokens;
                out.push_back({s.r.id, 1, s.produced >= s.r.output_tokens, s.cached});
            }
        }
        for (const emission& e : out) {
            counters_.generated_tokens += e.tokens;
            counters_.finished += e.finished;
        }
        std::erase_if(running_, [&](const sequence& s) {
            const bool gone = s.cancelled || (s.decoding && s.produced >= s.r.output_tokens);
            if (gone) reserved_ -= s.r.prompt_tokens + s.r.output_tokens;
            return gone;
        });
        stepping_ = false;
        begin_step(step_end_);
        return out;
    }

    std::size_t running() const { return running_.size(); }
    std::size_t waiting() const { return waiting_.size(); }
    double cache_usage() const { return capacity_ > 0 ? reserved_ / capacity_ : 0; }
    const counters& totals() const { return counters_; }

private:
    struct sequence {
        request r{};
        int computed = 0;  // prompt tokens done
        int cached = 0;    // of them found in the cache
        int produced = 0;
        bool decoding = false;
        bool cancelled = false;
    };

    void begin_step(double now) {
        admit();
        if (running_.empty()) return;
        long long budget = std::max(1ll, static_cast<long long>(e_.prefill_budget));
        for (const sequence& s : running_) budget -= s.decoding;
        double prefilled = 0, active = 0;
        for (sequence& s : running_) {
            if (s.decoding) { ++active; continue; }
            const int left = s.r.prompt_tokens - s.computed;
            const int n = static_cast<int>(std::min<long long>(left, std::max(budget, 0ll)));
            // Without chunking a prompt waits for a step that takes all of it; alone it always
            // goes.
            if (n <= 0 || (!e_.chunked_prefill && n < left && active + prefilled > 0)) continue;
            const int taken = e_.chunked_prefill ? n : left;
            s.computed += taken;
            budget -= taken;
            prefilled += taken;
            ++active;
        }
        const double base = e_.decode_step.seconds() + e_.step_per_sequence.seconds() * active +
                            e_.prefill_per_token.seconds() * prefilled;
        const double took = base * std::max(0.1, 1 + e_.jitter * random_.normal());
        counters_.busy_s += took;
        step_end_ = now + took;
        stepping_ = true;
    }
    void admit() {
        if (e_.static_batching && !running_.empty()) return;
        while (!waiting_.empty() && static_cast<long long>(running_.size()) <
                                        std::max(1ll, static_cast<long long>(e_.slots))) {
            const double needs = waiting_.front().prompt_tokens + waiting_.front().output_tokens;
            if (reserved_ + needs > capacity_)
                break;  // memory is reserved up front, nothing is preempted
            reserved_ += needs;
            sequence s;
            s.r = std::move(waiting_.front());
            waiting_.pop_front();
            s.computed = s.cached = std::min(cached_tokens(s.r), s.r.prompt_tokens - 1);
            running_.push_back(std::move(s));
        }
    }
    int cached_tokens(const request& r) {
        if (!e_.prefix_cache) return 0;
        int tokens = 0;
        for (const std::uint64_t b : r.blocks) {
            if (!cached_.contains(b)) break;
            tokens += block_tokens;
        }
        counters_.cache_queries += r.prompt_tokens;
        counters_.cache_hits += tokens;
        return tokens;
    }
    void remember(const request& r) {
        if (!e_.prefix_cache) return;
        for (const std::uint64_t b : r.blocks) {
            if (!cached_.insert(b).second) continue;
            cached_order_.push_back(b);
            if (static_cast<double>(cached_order_.size()) * block_tokens > capacity_) {
                cached_.erase(cached_order_.front());
                cached_order_.pop_front();
            }
        }
    }

    engine e_;
    generator random_;
    double capacity_;
    double reserved_ = 0;
    double step_end_ = 0;
    bool stepping_ = false;
    std::deque<request> waiting_{};
    std::vector<sequence> running_{};
    std::set<std::uint64_t> cached_{};
    std::deque<std::uint64_t> cached_order_{};
    counters counters_{};
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C72] what a request asks the simulated server ============================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One request for tokens, whichever API it came by.
struct question {
    api_format api = openai_chat;
    bool streamed = true;
    bool wants_usage = false;  // with a stream, which need not tell it
    bool stops = false;        // by itself, before the length that was asked for
    int prompt_tokens = 1;
    int output_tokens = 1;
    std::vector<std::uint64_t> blocks{};  // of the prompt, as the engine's cache knows them
};

inline maybe<api_format> api_at(std::string_view path) {
    if (path.substr(0, 11) == "/v2/models/") return triton;
    for (std::size_t i = 0; i < std::size(apis); ++i)
        if (path == apis[i].path || path == apis[i].whole_path) return static_cast<api_format>(i);
    return {};
}
/// Three of them have the path /generate; their requests differ.
inline api_format api_of(api_format at, const picojson::value& body) {
    if (at != tgi && at != sglang) return at;
    return member(body, "inputs") ? tgi : member(body, "text") ? sglang : plain_text;
}

/// All text and token ids of a request, with spaces between.
inline std::string prompt_of(const picojson::value& body) {
    std::string prompt;
    for (const char* name : {"prompt", "inputs", "text", "text_input", "system"})
        if (has_text(body, name)) prompt += string_member(body, name) + " ";
    for (const picojson::value& id : array_member(body, "prompt")) prompt += id.serialize() + " ";
    for (const picojson::value& m : array_member(body, "messages")) {
        prompt += string_member(m, "content") + " ";
        for (const picojson::value& part : array_member(m, "content"))
            prompt += string_member(part, "text") + " ";
    }
    return prompt;
}
/// One token each.
inline std::vector<std::string_view> words_of(std::string_view s) {
    std::vector<std::string_view> words;
    std::size_t at = 0;
    while ((at = s.find_first_not_of(" \t\n\r", at)) != std::string_view::npos) {
        const std::size_t end = std::min(s.find_first_of(" \t\n\r", at), s.size());
        words.push_back(s.substr(at, end - at));
        at = end;
    }
    return words;
}
/// A hash of each word and all before it.
inline std::vector<std::uint64_t> hashes_of(const std::vector<std::string_view>& words) {
    std::vector<std::uint64_t> hashes;
    std::uint64_t hash = 0;
    for (const std::string_view word : words) {
        fnv1a h;
        h.add(static_cast<long long>(hash));
        h.add(word.data(), word.size());
        hashes.push_back(hash = mixed(h.value()));
    }
    return hashes;
}

/// The largest number under these names, at the top of the body or where an API keeps its own; -1
/// where there is none.
inline int asked_count(const picojson::value& body, std::initializer_list<const char*> names) {
    int n = -1;
    const std::initializer_list<const picojson::value*> places = {
        &body, member(body, "parameters"), member(body, "options"),
        member(body, "sampling_params")};
    for (const picojson::value* at : places)
        for (const char* name : names)
            if (at) n = std::max(n, count_member(*at, name));
    return n;
}
inline bool says_yes(const picojson::value* at, const char* name, bool otherwise = false) {
    const picojson::value* m = at ? member(*at, name) : nullptr;
    return m && m->is<bool>() ? m->get<bool>() : otherwise;
}
inline bool asks_for_stream(api_format api, std::string_view path, const picojson::value& body) {
    if (api == plain_text) return true;
    if (api == tgi || api == triton) return path.ends_with("generate_stream");
    return says_yes(&body, "stream", api == ollama || api == ollama_generate);
}

inline question question_of(api_format api, std::string_view path, const picojson::value& body) {
    question q;
    q.api = api;
    q.streamed = asks_for_stream(api, path, body);
    q.wants_usage = api == triton ? says_yes(&body, "return_num_output_tokens")
                                  : says_yes(member(body, "stream_options"), "include_usage");
    const std::string prompt = prompt_of(body);
    const std::vector<std::uint64_t> hashes = hashes_of(words_of(prompt));
    q.prompt_tokens = std::max(1, static_cast<int>(hashes.size()));
    for (std::size_t end = engine_model::block_tokens; end <= hashes.size();
         end += engine_model::block_tokens)
        q.blocks.push_back(hashes[end - 1]);
    int most = asked_count(body, {"max_tokens", "max_completion_tokens", "max_new_tokens",
                                  "n_predict", "num_predict"});
    if (most <= 0) most = 128;
    const bool forced =
        traits_of(api).forces_lengths && (says_yes(&body, "ignore_eos") ||
                                          says_yes(member(body, "sampling_params"), "ignore_eos"));
    // Unforced answers end by themselves, always at the same place for the same prompt.
    const int natural = 16 + static_cast<int>(hashes.empty() ? 0 : hashes.back() % 256);
    q.output_tokens = forced ? most : std::min(most, natural);
    q.stops = q.output_tokens < most;
    return q;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C73] answers of the simulated server =====================================================
// From facts to the bytes of each API, without a socket and without a clock.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// All that the bytes of an answer are made of.
struct answer_facts {
    question asked{};
    unsigned long long number = 0;  // in the answer's id
    int cached_tokens = 0;
    int output_tokens = 0;  // so far
    std::string text{};     // so far, where the API says it again
};

/// The words of the tokens that come next. They depend on the request's id and on how many came
/// before.
inline std::string next_words(const answer_facts& f, const engine_model::emission& e) {
    std::string words;
    for (int i = 0; i < e.tokens; ++i)
        words += std::string(" ") +
                 prompt_words[(e.id * 7 + static_cast<std::uint64_t>(f.output_tokens + i)) %
                              std::size(prompt_words)];
    return words;
}
inline void add_words(answer_facts& f, const std::string& words, const engine_model::emission& e) {
    f.output_tokens += e.tokens;
    f.cached_tokens = e.cached;
    if (!f.asked.streamed || f.asked.api == tgi || f.asked.api == sglang) f.text += words;
}

// ---- how the APIs say it

inline std::string event_bytes(const std::string& json, const char* type = nullptr) {
    return (type ? printed("event: %s\n", type) : "") + "data: " + json + "\n\n";
}
inline const char* finish_reason_of(const answer_facts& f) {
    return f.asked.stops ? "stop" : "length";
}

inline std::string openai_identity(const answer_facts& f, bool chunk) {
    const bool chat = f.asked.api == openai_chat;
    const char* object =
        chat ? (chunk ? "chat.completion.chunk" : "chat.completion") : "text_completion";
    return printed(
        "\"id\":\"%s-%llu\",\"object\":\"%s\",\"created\":1700000000,\"model\":\"simulated\"",
        chat ? "chatcmpl" : "cmpl", f.number, object);
}
inline std::string openai_usage(const answer_facts& f) {
    return printed("{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,"
                   "\"prompt_tokens_details\":{\"cached_tokens\":%d}}",
                   f.asked.prompt_tokens, f.output_tokens, f.asked.prompt_tokens + f.output_tokens,
                   f.cached_tokens);
}
inline std::string openai_ending(const answer_facts& f) {
    const char* piece = f.asked.api == openai_chat ? "\"delta\":{}" : "\"text\":\"\"";
    return event_bytes("{" + openai_identity(f, true) + ",\"choices\":[{\"index\":0," + piece +
                       ",\"finish_reason\":\"" + finish_reason_of(f) + "\"}]}") +
           (f.asked.wants_usage
                ? event_bytes("{" + openai_identity(f, true) + ",\"choices\":[],\"usage\":" +
                              openai_usage(f) + "}")
                : "") +
           event_bytes("[DONE]");
}
inline std::string openai_whole(const answer_facts& f) {
    const std::string text = json_quoted(f.text);
    const std::string choice = f.asked.api == openai_chat
        ? "\"message\":{\"role\":\"assistant\",\"content\":" + text + "}"
        : "\"text\":" + text;
    return "{" + openai_identity(f, false) + ",\"choices\":[{\"index\":0," + choice +
           ",\"finish_reason\":\"" + finish_reason_of(f) + "\"}],\"usage\":" + openai_usage(f) +
           "}";
}

inline std::string llama_json(const answer_facts& f, const std::string& words, bool last) {
    return "{\"content\":" + json_quoted(words) +
           printed(",\"stop\":%s,\"id_slot\":0,\"index\":0,\"tokens_predicted\":%d,"
                   "\"tokens_evaluated\":%d",
                   last ? "true" : "false", f.output_tokens, f.asked.prompt_tokens) +
           (last ? printed(",\"stop_type\":\"%s\"}", f.asked.stops ? "eos" : "limit") : "}");
}

inline std::string sglang_json(const answer_facts& f, bool last) {
    return "{\"text\":" + json_quoted(f.text) +
           printed(",\"meta_info\":{\"id\":\"%llu\",\"prompt_tokens\":%d,"
                   "\"completion_tokens\":%d,\"finish_reason\":",
                   f.number, f.asked.prompt_tokens, f.output_tokens) +
           (last ? printed("{\"type\":\"%s\"}", finish_reason_of(f)) : "null") + "}}";
}

inline std::string ollama_json(const answer_facts& f, const std::string& words, bool last) {
    const std::string text = json_quoted(words);
    return "{\"model\":\"simulated\",\"created_at\":\"2024-01-01T00:00:00Z\"," +
           (f.asked.api == ollama
                ? "\"message\":{\"role\":\"assistant\",\"content\":" + text + "}"
                : "\"response\":" + text) +
           (last ? printed(",\"done\":true,\"done_reason\":\"%s\",\"prompt_eval_count\":%d,"
                           "\"eval_count\":%d}",
                           finish_reason_of(f), f.asked.prompt_tokens, f.output_tokens)
                 : ",\"done\":false}");
}

inline std::string tgi_details(const answer_facts& f) {
    return printed("{\"finish_reason\":\"%s\",\"generated_tokens\":%d,\"seed\":null,"
                   "\"input_length\":%d}",
                   f.asked.stops ? "eos_token" : "length", f.output_tokens, f.asked.prompt_tokens);
}
/// One event a token, and the last tells of all.
inline std::string tgi_events(const answer_facts& f, std::string_view words, bool last) {
    std::string events;
    const std::vector<std::string_view> tokens = words_of(words);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool tells = last && i + 1 == tokens.size();
        events += "data:{\"token\":{\"id\":7,\"text\":" +
                  json_quoted(" " + std::string(tokens[i])) +
                  ",\"logprob\":-0.5,\"special\":false},\"generated_text\":" +
                  (tells ? json_quoted(f.text) : "null") +
                  ",\"details\":" + (tells ? tgi_details(f) : "null") + "}\n\n";
    }
    return events;
}

inline std::string triton_json(const answer_facts& f, const std::string& words, int tokens) {
    return "{\"model_name\":\"simulated\",\"model_version\":\"1\",\"text_output\":" +
           json_quoted(words) +
           (f.asked.wants_usage ? printed(",\"num_input_tokens\":%d,\"num_output_tokens\":%d",
                                          f.asked.prompt_tokens, tokens)
                                : "") +
           "}";
}

inline std::string anthropic_reason(const answer_facts& f) {
    return f.asked.stops ? "\"end_turn\"" : "\"max_tokens\"";
}
inline std::string anthropic_message(const answer_facts& f, const std::string& content,
                                     const std::string& reason, int output_tokens) {
    return printed("{\"id\":\"msg_%llu\",\"type\":\"message\",\"role\":\"assistant\",", f.number) +
           "\"model\":\"simulated\",\"content\":" + content + ",\"stop_reason\":" + reason +
           printed(",\"usage\":{\"input_tokens\":%d,\"output_tokens\":%d}}",
                   f.asked.prompt_tokens, output_tokens);
}
inline std::string anthropic_opening(const answer_facts& f) {
    return event_bytes("{\"type\":\"message_start\",\"message\":" +
                           anthropic_message(f, "[]", "null", 1) + "}",
                       "message_start") +
           event_bytes(R"({"type":"content_block_start","index":0,)"
                       R"("content_block":{"type":"text","text":""}})",
                       "content_block_start") +
           event_bytes(R"({"type":"ping"})", "ping");
}
inline std::string anthropic_ending(const answer_facts& f) {
    return event_bytes(R"({"type":"content_block_stop","index":0})", "content_block_stop") +
           event_bytes("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":" +
                           anthropic_reason(f) +
                           printed("},\"usage\":{\"output_tokens\":%d}}", f.output_tokens),
                       "message_delta") +
           event_bytes(R"({"type":"message_stop"})", "message_stop");
}

// ---- an answer from its head to its end

inline std::string stream_head(api_format api) {
    const char* type = api == plain_text ? "text/plain; charset=utf-8"
                       : traits_of(api).framed == framing::lines
                           ? "application/x-ndjson"
                           : "text/event-stream; charset=utf-8";
    return printed("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n",
                   type);
}
/// What comes before the first words, "" where nothing does.
inline std::string answer_opening(const answer_facts& f) {
    if (f.asked.api == openai_chat)
        return event_bytes("{" + openai_identity(f, true) +
                           ",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
                           "\"content\":\"\"},\"finish_reason\":null}]}");
    if (f.asked.api == anthropic) return anthropic_opening(f);
    return {};
}
/// The words that the engine gave, which the facts hold already.
inline std::string answer_piece(const answer_facts& f, const std::string& words,
                                const engine_model::emission& e) {
    switch (f.asked.api) {
    case openai_chat:
        return event_bytes("{" + openai_identity(f, true) +
                           ",\"choices\":[{\"index\":0,\"delta\":{\"content\":" +
                           json_quoted(words) + "},\"finish_reason\":null}]}");
    case openai_completions:
        return event_bytes("{" + openai_identity(f, true) + ",\"choices\":[{\"index\":0,\"text\":" +
                           json_quoted(words) + ",\"finish_reason\":null}]}");
    case tgi: return tgi_events(f, words, e.finished);
    case triton: return event_bytes(triton_json(f, words, e.tokens));
    case ollama: case ollama_generate: return ollama_json(f, words, false) + "\n";
    case llama_cpp: return event_bytes(llama_json(f, words, false));
    case sglang: return event_bytes(sglang_json(f, e.finished));
    case plain_text: return words;
    case anthropic:
        return event_bytes("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
                           "\"text_delta\",\"text\":" + json_quoted(words) + "}}",
                           "content_block_delta");
    }
    return {};
}
/// What comes after the last words, "" where nothing does.
inline std::string answer_ending(const answer_facts& f) {
    switch (f.asked.api) {
    case openai_chat: case openai_completions: return openai_ending(f);
    case ollama: case ollama_generate: return ollama_json(f, "", true) + "\n";
    case llama_cpp: return event_bytes(llama_json(f, "", true));
    case sglang: return event_bytes("[DONE]");
    case anthropic: return anthropic_ending(f);
    case tgi: case triton: case plain_text: break;
    }
    return {};
}
/// The answer that is not streamed.
inline std::string whole_answer(const answer_facts& f) {
    switch (f.asked.api) {
    case tgi:
        return "{\"generated_text\":" + json_quoted(f.text) + ",\"details\":" + tgi_details(f) +
               "}";
    case triton: return triton_json(f, f.text, f.output_tokens);
    case ollama: case ollama_generate: return ollama_json(f, f.text, true);
    case llama_cpp: return llama_json(f, f.text, true);
    case sglang: return sglang_json(f, true);
    case anthropic:
        return anthropic_message(f, "[{\"type\":\"text\",\"text\":" + json_quoted(f.text) + "}]",
                                 anthropic_reason(f), f.output_tokens);
    case openai_chat: case openai_completions: case plain_text: break;
    }
    return openai_whole(f);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C74] what the simulated server says besides answers ======================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A body of known length.
struct reply {
    int status = 200;
    const char* type = "application/json";
    std::string body{};
};
inline std::string reply_bytes(const reply& r) {
    return printed("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n", r.status,
                   r.status == 200 ? "OK" : "Error", r.type, r.body.size(),
                   r.status == 429 ? "Retry-After: 1\r\n" : "") +
           r.body;
}
inline std::string chunk_of(const std::string& data) {
    return printed("%zx\r\n", data.size()) + data + "\r\n";
}
inline constexpr const char* last_chunk = "0\r\n\r\n";

inline reply error_reply(int status, const char* why) {
    return {status, "application/json", printed(R"({"error":{"message":"%s"}})", why)};
}
/// Each API tells errors in its own shape.
inline reply refusal(api_format api, int status, const char* why, const char* code) {
    switch (api) {
    case plain_text: return {status, "text/plain", why};
    case tgi: case triton: case ollama: case ollama_generate:
        return {status, "application/json", printed(R"({"error":"%s"})", why)};
    default:
        return {status, "application/json",
                printed(R"({"type":"error","error":{"message":"%s","type":"%s","code":"%s"}})",
                        why, code, code)};
    }
}

/// Prometheus text with vLLM's names, so that dashboards made for it work.
inline std::string metrics_text(const engine_model& m) {
    const engine_model::counters& t = m.totals();
    const auto line = [](const char* name, const char* kind, double v) {
        return printed("# TYPE vllm:%s %s\nvllm:%s{model_name=\"simulated\"} %s\n", name, kind,
                       name, json_number(v).c_str());
    };
    return line("num_requests_running", "gauge", static_cast<double>(m.running())) +
           line("num_requests_waiting", "gauge", static_cast<double>(m.waiting())) +
           line("kv_cache_usage_perc", "gauge", m.cache_usage()) +
           line("prompt_tokens_total", "counter", t.prompt_tokens) +
           line("generation_tokens_total", "counter", t.generated_tokens) +
           line("request_success_total", "counter", t.finished) +
           line("prefix_cache_queries_total", "counter", t.cache_queries) +
           line("prefix_cache_hits_total", "counter", t.cache_hits);
}
/// What a GET is answered with.
inline reply about_server(std::string_view path, const engine_model& m) {
    const auto json = [](const char* body) { return reply{200, "application/json", body}; };
    for (const char* ready : {"/health", "/api/version", "/v2/health/ready", "/readyz"})
        if (path == ready) return json("{}");
    if (path == "/v1/models")
        return json(R"({"object":"list","data":[{"id":"simulated","object":"model"}]})");
    if (path == "/api/tags") return json(R"({"models":[{"name":"simulated"}]})");
    if (path == "/info") return json(R"({"model_id":"simulated"})");
    if (path == "/metrics") return {200, "text/plain; version=0.0.4", metrics_text(m)};
    return error_reply(404, "no such path");
}
inline reply counted_tokens(const picojson::value& body, long long max_model_len) {
    return {200, "application/json",
            printed(R"({"count":%zu,"max_model_len":%lld})", words_of(prompt_of(body)).size(),
                    max_model_len)};
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C75] what a result holds of its gate =====================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The same for all copies of a result. It does not change, whatever is asked of it.
struct held_gate {
    std::size_t number = 0;  // among the gates of the program
    gate_outcome outcome = gate_outcome::unfinished;
    std::string refusal{};  // why nothing was measured
    inconclusive_means undecided_is = inconclusive_means::warn;
    plan what{};
    evidence seen{};
    terms held{};
};

struct result_access {
    static result make(std::shared_ptr<const held_gate> g,
                       const std::vector<slo_verdict>& verdicts, const self_check_t& self_check) {
        result r;
        r.name_ = g->what.name;
        for (const slo_verdict& v : verdicts) r.verdicts_.push_back(v);
        r.self_check_ = self_check;
        r.data_ = box::make(std::move(g));
        return r;
    }
    /// Null where the result is empty.
    static std::shared_ptr<const held_gate> gate_of(const result& r) { return gate_in(r.data_); }
    static std::shared_ptr<const held_gate> gate_in(const box& data) {
        const auto* held = data.get<std::shared_ptr<const held_gate>>();
        return held ? *held : nullptr;
    }
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C76] the rows of a table: each metric over the repeats of an arm =========================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Over all repeats of an arm together.
struct metric_row {
    metric_id metric;
    double mean, p50, p90, p99, max;
};
/// The rows of a gate's table of latencies.
inline std::vector<metric_id> table_metrics(const plan& p) {
    std::vector<metric_id> rows = {metric_id::ttft, metric_id::tpot, metric_id::itl,
                                   metric_id::e2e, metric_id::ttft_from_send};
    if (p.stride > 1)
        for (const metric_id id : {metric_id::first_turn_ttft, metric_id::later_turn_ttft})
            rows.push_back(id);
    return rows;
}
inline double run_value(metric_id id, const std::vector<repeat_data>& arm) {
    return pooled_value(make_statistic(statistic_kind::value, id, 0), arm);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C77] points and round steps of drawings ==================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A point of a curve, in the units of its axes.
struct curve_point {
    double x = 0, y = 0;
};

/// 1, 2 or 5 times a power of ten, at least `least`.
inline double round_step(double least) {
    const double power = std::pow(10, std::floor(std::log10(least)));
    for (const double digit : {1.0, 2.0, 5.0})
        if (digit * power >= least * (1 - 1e-9)) return digit * power;
    return 10 * power;
}
/// Seconds that a person counts in.
inline double elapsed_step(double least) {
    for (const double step : {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0,
                              600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14400.0})
        if (step >= least) return step;
    return round_step(least);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C78] distributions: quantiles as lines, of each repeat and of all ========================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A metric of one arm: its row of numbers and its quantiles as a line, of all repeats together,
/// and the line of each repeat.
struct arm_distribution {
    metric_row row{};
    std::vector<curve_point> pooled{};             // value, quantile
    std::vector<std::vector<curve_point>> lines{};
    double least = infinity, most = 0;             // of the finite values above zero
    std::size_t values = 0;                        // of all repeats
};
inline constexpr int line_points = 96;
/// How far into the tail a sample of n can tell, as -log10(1 - q).
inline double nines_of(std::size_t n) {
    return std::clamp(std::log10(static_cast<double>(std::max<std::size_t>(n, 1))), 1.0, 5.0);
}
inline std::vector<curve_point> quantile_line(metric_id id, const sorted_values& sorted) {
    std::vector<curve_point> line;
    const double deepest = nines_of(sorted.size());
    for (int k = 0; k <= line_points && sorted.size() > 0; ++k) {
        const double share = static_cast<double>(k) / line_points;
        const double q = is_speed(id) ? share : 1 - std::pow(10, -deepest * share);
        line.push_back({sorted.at(nearest_rank_of(sorted.size(), q)), q});
    }
    // No share below all of them is at most the largest value: it is the end of the last step.
    if (!line.empty() && !is_speed(id))
        line.push_back({sorted.at(sorted.size() - 1), line.back().y});
    return line;
}
inline arm_distribution distribution_of(metric_id id, const std::vector<repeat_data>& arm) {
    arm_distribution out;
    sorted_values all;
    for (const repeat_data& d : arm) {
        const sorted_values sorted = sorted_values_of(id, d);
        out.lines.push_back(quantile_line(id, sorted));
        for (const curve_point& p : out.lines.back()) {
            if (!std::isfinite(p.x) || p.x <= 0) continue;
            out.least = std::min(out.least, p.x);
            out.most = std::max(out.most, p.x);
        }
        all.add(sorted);
    }
    out.values = all.size();
    out.pooled = quantile_line(id, all);
    const auto value = [&](statistic_kind kind, double q) {
        return value_among(make_statistic(kind, id, q), all);
    };
    out.row = {id,
               value(statistic_kind::mean, 0),
               value(statistic_kind::percentile, 0.5),
               value(statistic_kind::percentile, 0.9),
               value(statistic_kind::percentile, 0.99),
               value(statistic_kind::max, 0)};
    return out;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C79] how requests ended, and what their answers say of tokens ============================

namespace llmbench {
inline namespace v0 {
namespace detail {

struct status_count {
    request_status status;
    std::size_t count;
    std::string example;
};
/// Measured requests by outcome, most frequent failures first, ok in front.
inline std::vector<status_count> status_counts(const std::vector<repeat_data>& arm) {
    std::vector<status_count> counts{{request_status::ok, 0, ""}};
    for (const repeat_data& d : arm)
        for (const record& r : d.records) {
            if (!is_measured(r)) continue;
            auto at = std::find_if(counts.begin(), counts.end(),
                                   [&](const status_count& c) { return c.status == r.status; });
            if (at == counts.end()) at = counts.insert(counts.end(), {r.status, 0, str(r.error)});
            ++at->count;
        }
    std::sort(counts.begin() + 1, counts.end(), [](const auto& a, const auto& b) {
        return a.count != b.count ? a.count > b.count : a.status < b.status;
    });
    return counts;
}
/// Completed requests for which the server's usage cannot be right: an event with content brings a
/// token at least, and may bring several.
inline std::size_t usage_below_events(const std::vector<repeat_data>& arm) {
    std::size_t n = 0;
    for (const repeat_data& d : arm)
        for (const record& r : d.records)
            n += is_measured(r) && r.status == request_status::ok && r.output_tokens < r.events;
    return n;
}

/// Failures of one kind with what they said, most frequent first.
struct failure_kind {
    request_status status = request_status::ok;
    int http_status = 0;
    std::size_t count = 0;
    std::vector<std::pair<std::string, std::size_t>> examples{};  // at most some, with their counts
};
inline std::vector<failure_kind> failure_kinds(const std::vector<repeat_data>& arm) {
    std::vector<failure_kind> kinds;
    for (const repeat_data& d : arm)
        for (const record& r : d.records) {
            if (!is_measured(r) || r.status == request_status::ok) continue;
            auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const failure_kind& k) {
                return k.status == r.status && k.http_status == r.http_status;
            });
            if (kind == kinds.end())
                kind = kinds.insert(kinds.end(), {r.status, r.http_status, 0, {}});
            ++kind->count;
            auto& seen = kind->examples;
            const std::string_view said(r.error.c_str(), r.error.size());
            const auto same = std::find_if(seen.begin(), seen.end(),
                                           [&](const auto& e) { return e.first == said; });
            if (same != seen.end()) ++same->second;
            else if (seen.size() < 20) seen.emplace_back(said, 1);
        }
    const auto by_count = [](auto&& count) {
        return [=](const auto& a, const auto& b) { return count(a) > count(b); };
    };
    std::sort(kinds.begin(), kinds.end(), by_count([](const failure_kind& k) { return k.count; }));
    for (failure_kind& k : kinds)
        std::sort(k.examples.begin(), k.examples.end(), by_count([](auto& e) { return e.second; }));
    return kinds;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C80] how long made-up prompts were to be, and were =======================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Lengths in tokens.
struct length_figures {
    double mean = not_a_number, p50 = not_a_number, p90 = not_a_number;
};
inline length_figures length_figures_of(std::vector<double> lengths) {
    std::sort(lengths.begin(), lengths.end());
    return {mean_of(lengths), nearest_rank(lengths, 0.5), nearest_rank(lengths, 0.9)};
}

/// Lengths of made-up prompts, as asked and as the server counted; not known where the workload
/// asks for no length of a whole prompt, or nothing was counted.
struct prompt_lengths {
    bool known = false;
    length_figures asked{}, counted{};
    /// On the average, to 2 %.
    bool are_as_asked() const {
        return !known || std::fabs(counted.mean / asked.mean - 1) <= 0.02;
    }
};
inline prompt_lengths prompt_lengths_of(const plan& p, const std::vector<repeat_data>& arm) {
    if (!makes_up_prompts(p) || p.stride > 1 || !p.forces_length) return {};
    std::vector<double> asked, counted;
    for (std::size_t i = 0; i < arm.size(); ++i) {  // its index counts those set aside, too
        const repeat_data& d = arm[i];
        const plan of_repeat = plan_of_repeat(p, static_cast<int>(i));
        for (const record& r : d.records) {
            if (!is_measured(r) || r.status != request_status::ok || r.prompt_tokens <= 0) continue;
            const auto place = static_cast<std::size_t>(r.conversation);
            asked.push_back(item_of(of_repeat, place).prompt_tokens);
            counted.push_back(r.prompt_tokens);
        }
    }
    if (asked.empty()) return {};
    return {true, length_figures_of(std::move(asked)), length_figures_of(std::move(counted))};
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C81] timelines: repeats in windows of equal length =======================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One repeat in windows of equal length; seconds count from the start of its measured part.
struct repeat_timeline {
    std::vector<double> asked{}, sent{}, failed{}, in_flight{}, tokens{};  // per second, in flight
    std::vector<double> ttft_p50{}, ttft_p90{};  // of the requests planned in a window
    std::vector<double> good{};                  // share of them
};
struct timeline_grid {
    double from = 0, step = 1;  // seconds
    std::size_t windows = 0;
    double middle(std::size_t i) const { return from + (static_cast<double>(i) + 0.5) * step; }
};
/// Where a repeat's time starts; its first planned send where the measured part never began.
inline double seconds_into(const repeat_data& d, long long ns) {
    const bool began = d.window_from_ns > 0 || d.records.empty();
    const long long origin = began ? d.window_from_ns : d.records[0].scheduled_ns;
    return static_cast<double>(ns - origin) * 1e-9;
}

/// Windows that cover every repeat: 5 s, finer where a run is short, coarser where it is long.
inline timeline_grid grid_of(const evidence& e) {
    double from = infinity, to = -infinity;
    for_each_repeat(e, [&](const repeat_data& d) {
        for (const record& r : d.records) {
            from = std::min(from, seconds_into(d, r.scheduled_ns));
            to = std::max({to, seconds_into(d, r.scheduled_ns), seconds_into(d, r.end_ns)});
        }
    });
    if (!(to > from)) return {};
    timeline_grid grid;
    const double length = to - from;
    grid.step = elapsed_step(length >= 100 ? std::max(5.0, length / 150) : length / 30);
    grid.from = std::floor(from / grid.step) * grid.step;
    grid.windows = static_cast<std::size_t>((to - grid.from) / grid.step) + 1;
    return grid;
}

inline repeat_timeline timeline_of(const repeat_data& d, const timeline_grid& grid,
                                   const list<predicate_step>& good) {
    repeat_timeline t;
    const std::size_t n = grid.windows;
    for (auto* counts : {&t.asked, &t.sent, &t.failed, &t.in_flight, &t.tokens})
        counts->assign(n, 0);
    std::vector<std::vector<double>> ttft(n);
    std::vector<double> planned(n), met(n);
    const auto window = [&](double s) {
        return std::min(static_cast<std::size_t>(std::max(0.0, (s - grid.from) / grid.step)),
                        n - 1);
    };
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        const record& r = d.records[i];
        const bool ok = r.status == request_status::ok;
        const std::size_t due = window(seconds_into(d, r.scheduled_ns));
        t.asked[due] += 1 / grid.step;
        if (!ok) t.failed[due] += 1 / grid.step;
        if (is_measured(r)) {
            ++planned[due];
            met[due] += good.size() > 0 && satisfies(good, d, i);
            ttft[due].push_back(ok ? request_value(metric_id::ttft, d, i) : infinity);
        }
        if (r.sent_ns == 0) continue;
        const double sent = seconds_into(d, r.sent_ns);
        const double end = std::max(sent, seconds_into(d, r.end_ns));
        t.sent[window(sent)] += 1 / grid.step;
        for (std::size_t w = window(sent); w <= window(end); ++w) {
            const double begins = grid.from + static_cast<double>(w) * grid.step;
            t.in_flight[w] +=
                std::max(0.0, std::min(end, begins + grid.step) - std::max(sent, begins)) /
                grid.step;
        }
        if (!ok || r.events == 0) continue;
        const double weight = static_cast<double>(r.output_tokens) / r.events / grid.step;
        double at = seconds_into(d, r.first_token_ns);
        t.tokens[window(at)] += weight;
        const bool listed = d.gap_offsets[i] != not_listed;
        const double even = static_cast<double>(r.last_token_ns - r.first_token_ns) /
                            std::max(1.0, static_cast<double>(r.events - 1)) / 1000;
        for (std::size_t k = 0; k < gap_count(r); ++k)  // evenly spread, where only counted
            t.tokens[window(at += (listed ? d.gaps[d.gap_offsets[i] + k] : even) * 1e-6)] += weight;
    }
    for (std::size_t w = 0; w < n; ++w) {
        std::sort(ttft[w].begin(), ttft[w].end());
        const auto quantile = [&](double q) {
            const double v = ttft[w].empty() ? not_a_number : nearest_rank(ttft[w], q);
            return std::isfinite(v) ? v : not_a_number;
        };
        t.ttft_p50.push_back(quantile(0.5));
        t.ttft_p90.push_back(quantile(0.9));
        t.good.push_back(planned[w] > 0 ? met[w] / planned[w] : not_a_number);
    }
    return t;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C82] all that reports tell of a gate's numbers, computed once ============================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One repeat as reports tell it.
struct repeat_figures : repeat_facts {
    std::size_t requests = 0, failed = 0;  // measured ones
    double output_throughput = 0, request_throughput = 0;
    double window_s = 0;               // how long the measured part was
    std::vector<double> statistics{};  // gate_figures::kept of it
};

/// One arm over its repeats.
struct arm_figures {
    std::vector<arm_distribution> distributions{};  // of gate_figures::metrics
    std::vector<std::pair<metric_id, double>> run_values{};
    std::vector<status_count> statuses{};
    std::vector<failure_kind> failures{};
    std::size_t usage_below_events = 0;
    answer_counts answers{};
    prefix_hits prefix_cache{};
    prompt_lengths prompts{};
    std::vector<repeat_figures> repeats{};
    std::vector<repeat_timeline> timelines{};
    bool empty() const { return repeats.empty(); }
    double run_value(metric_id id) const {
        for (const auto& [metric, value] : run_values)
            if (metric == id) return value;
        return not_a_number;
    }
};

/// What reports show and never compute.
struct gate_figures {
    std::vector<metric_id> metrics{};  // of the table of latencies, then what objectives add
    std::size_t table_rows = 0;        // of the metrics
    std::vector<statistic_data> kept{};
    timeline_grid grid{};
    bool has_goodput = false;
    std::uint64_t counted_gaps = 0;  // in classes, because they were too many
    arm_figures candidate{}, baseline{};
};

/// What result.json tells of each repeat, so that a later run can be compared with it.
inline std::vector<statistic_data> kept_statistics(const plan& p, const std::vector<slo>& slos) {
    std::vector<statistic_data> kept;
    const auto keep = [&](const statistic_data& s) {
        for (const statistic_data& k : kept)
            if (str(k.name) == str(s.name)) return;
        kept.push_back(s);
    };
    for (const metric_id id : table_metrics(p)) {
        keep(make_statistic(statistic_kind::mean, id, 0));
        for (const double q : {0.5, 0.75, 0.9, 0.95, 0.99})
            keep(make_statistic(statistic_kind::percentile, id, q));
        keep(make_statistic(statistic_kind::max, id, 0));
    }
    for (const metric_facts& m : metric_table)
        if (is_throughput(m.id)) keep(make_statistic(statistic_kind::value, m.id, 0));
    for (const slo& s : slos)
        if (!is_share(s.what.metric)) keep(s.what);
    return kept;
}

inline repeat_figures repeat_figures_of(const repeat_data& d,
                                        const std::vector<statistic_data>& kept) {
    repeat_figures r{static_cast<const repeat_facts&>(d)};
    for (const record& x : d.records) {
        if (!is_measured(x)) continue;
        ++r.requests;
        r.failed += x.status != request_status::ok;
    }
    r.output_throughput = window_rate(metric_id::output_throughput, d);
    r.request_throughput = window_rate(metric_id::request_throughput, d);
    r.window_s = seconds_into(d, d.window_to_ns);
    r.statistics = evaluate(kept, d);
    return r;
}

inline arm_figures arm_figures_of(const plan& p, const gate_figures& g,
                                  const std::vector<repeat_data>& arm) {
    arm_figures a;
    for (const metric_id id : g.metrics) a.distributions.push_back(distribution_of(id, arm));
    const auto over_run = [&](metric_id id) { a.run_values.emplace_back(id, run_value(id, arm)); };
    for (const metric_facts& m : metric_table)
        if (is_throughput(m.id)) over_run(m.id);
    over_run(metric_id::error_rate);
    over_run(metric_id::startup_time);
    a.statuses = status_counts(arm);
    a.failures = failure_kinds(arm);
    a.usage_below_events = usage_below_events(arm);
    a.answers = answer_counts_of(arm);
    a.prefix_cache = prefix_hits_of(arm);
    a.prompts = prompt_lengths_of(p, arm);
    for (const repeat_data& d : arm) a.repeats.push_back(repeat_figures_of(d, g.kept));
    return a;
}

inline void add_timelines(gate_figures& g, const evidence& e, const list<predicate_step>& good) {
    if (g.grid.windows == 0) return;
    for (auto* arm : {&g.candidate, &g.baseline}) {
        arm->timelines.clear();
        for (const repeat_data& d : arm == &g.candidate ? e.candidate : e.baseline)
            arm->timelines.push_back(timeline_of(d, g.grid, good));
    }
}

/// The figures with what one more objective needs.
inline gate_figures with_objective(gate_figures g, const evidence& e, const slo& s) {
    const metric_id id = s.what.metric;
    const bool known = std::count(g.metrics.begin(), g.metrics.end(), id) > 0;
    if (is_of_requests(id) && !known) {
        g.metrics.push_back(id);
        g.candidate.distributions.push_back(distribution_of(id, e.candidate));
        g.baseline.distributions.push_back(distribution_of(id, e.baseline));
    }
    if (id == metric_id::goodput && !g.has_goodput) {
        g.has_goodput = true;
        add_timelines(g, e, s.what.where);
    }
    return g;
}

inline gate_figures figures_of(const plan& p, const evidence& e, const std::vector<slo>& slos) {
    gate_figures g;
    g.metrics = table_metrics(p);
    g.table_rows = g.metrics.size();
    g.kept = kept_statistics(p, slos);
    g.grid = grid_of(e);
    g.candidate = arm_figures_of(p, g, e.candidate);
    g.baseline = arm_figures_of(p, g, e.baseline);
    for_each_repeat(e, [&](const repeat_data& d) { g.counted_gaps += d.pooled_gaps.size(); });
    for (const slo& s : slos) g = with_objective(std::move(g), e, s);
    if (!g.has_goodput) add_timelines(g, e, {});
    return g;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C83] the progress line ===================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a gate can tell of itself while it runs.
struct progress_facts {
    std::string stage{};                       // "repeat 2 of 2-5"
    std::string phase{};                       // "warming up"; "" while it measures
    double elapsed_s = 0;
    double least_s = 0, most_s = 0;            // of the whole gate; 0: not known
    long long planned = 0;                     // requests of this repeat; 0: not known
    long long sent = 0, done = 0, failed = 0;  // of this repeat
    double ttft = not_a_number, tpot = not_a_number;  // means of the answers so far
    std::size_t slos = 0;
    std::vector<std::string> decided{};        // "mean(tpot) <= 25 ms: pass"
};

/// One line of at most `width` columns (0: any); parts that do not fit are left out, and counts are
/// told in short where that makes room.
inline std::string progress_line(const progress_facts& f, std::size_t width, bool unicode) {
    const std::string stage = f.stage + (f.stage.empty() || f.phase.empty() ? "" : ", ") + f.phase;
    std::string time = printed("%.0f", f.elapsed_s);
    if (f.most_s > 0)
        time += f.least_s < f.most_s ? printed(" of %.0f-%.0f", f.least_s, f.most_s)
                                     : printed(" of %.0f", f.most_s);
    const std::string of = f.planned > 0 ? printed("/%lld", f.planned) : "";
    std::string counts, in_short, latency, decided, which;
    if (f.planned > 0 || f.sent > 0) {
        counts = printed("%lld%s sent, %lld done, %lld failed, %lld open", f.sent, of.c_str(),
                         f.done, f.failed, std::max(f.sent - f.done, 0ll));
        in_short = printed("%lld%s done", f.done, of.c_str()) +
                   (f.failed > 0 ? printed(", %lld failed", f.failed) : "");
    }
    if (!std::isnan(f.ttft)) latency = "ttft " + time_text(f.ttft);
    if (!std::isnan(f.ttft) && !std::isnan(f.tpot)) latency += ", tpot " + time_text(f.tpot);
    if (f.slos > 0) decided = printed("%zu of %zu decided", f.decided.size(), f.slos);
    for (const std::string& d : f.decided) which += (which.empty() ? "" : ", ") + d;

    const auto fitted = [&](const std::string& told) {
        std::string line = "  " + stage.substr(0, width > 2 ? width - 2 : std::string::npos);
        int parts = 0;
        for (const std::string& part : {time + " s", told, latency, decided, which}) {
            const std::string more = (unicode ? " \u00B7 " : " | ") + part;
            const bool fits = width == 0 || columns_of(line) + columns_of(more) <= width;
            if (part.empty() || !fits) continue;
            line += more;
            ++parts;
        }
        return std::pair(parts, line);
    };
    const auto [parts, line] = fitted(counts);
    const auto [parts_in_short, line_in_short] = fitted(in_short);
    const bool is_told = line.find(counts) != std::string::npos;
    return is_told && parts >= parts_in_short ? line : line_in_short;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C84] what reports are made of ============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One gate as every report shows it: measured, judged, and all figures computed. It has no
/// requests, so that those of a gate can go when nobody asks for them any more.
struct gate_report {
    plan what{};
    target_facts target{};
    target_facts baseline{};
    terms held{};                           // what the evidence was held against
    load_conditions under{};                // and under which load it was found
    gate_figures figures{};
    std::vector<slo_verdict> verdicts{};
    self_check_t self_check{};
    std::vector<calibrated> calibration{};  // of a calibration run
    std::string refusal{};                  // why nothing was measured
    std::string beside{};                   // why it failed by what is no objective of its own
    gate_outcome outcome = gate_outcome::unfinished;
    bool undecided_fails = false;           // LLMBENCH_INCONCLUSIVE=fail
    double took_s = 0;                      // servers brought up and down included
};

struct environment_facts {
    std::string os{}, cpu{}, compiler{};
    int cores = 0;
    std::string started_at{};
    std::string commit{};  // of what is tested, "" where nothing tells
    std::string program{};  // as it was called
};

/// Where each record's gaps lie in events.bin, how long that is, and the hash of so much of it.
struct event_index {
    std::vector<long long> offsets{};
    std::string hash{};
    long long bytes = 0;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C85] words of reports ====================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// "789 tok/s (prefill 3020 tok/s, decode 783 tok/s)"; the phases only where they can be told.
inline std::string throughput_text(const gate_report& g, const arm_figures& arm) {
    const auto shown = [&](metric_id id) { return value_text(id, arm.run_value(id)); };
    if (!saturates(g.what.arrivals) || !g.what.common.stream)
        return shown(metric_id::output_throughput);
    return shown(metric_id::output_throughput) + " (prefill " +
           shown(metric_id::prefill_throughput) + ", decode " +
           shown(metric_id::decode_throughput) + ")";
}

inline std::string ok_text(const std::vector<status_count>& counts) {
    std::size_t all = 0;
    for (const status_count& c : counts) all += c.count;
    return printed("%zu of %zu requests ok", counts[0].count, all);
}
inline std::string status_text(const arm_figures& arm) {
    const std::vector<status_count>& counts = arm.statuses;
    std::string t = ok_text(counts);
    for (std::size_t i = 1; i < counts.size(); ++i)
        t += printed("; %zu %s (%s)", counts[i].count, to_string(counts[i].status),
                     counts[i].example.c_str());
    if (const std::size_t n = arm.usage_below_events; n > 0)
        t += printed("; usage tells of fewer tokens than content events in %zu of those", n);
    if (const std::size_t n = arm.answers.over_content; n > 0)
        t += printed("; usage tells of more tokens than the text can be in %zu of those", n);
    return t;
}
/// What came of the way between server and client, a sentence each.
inline std::vector<std::string> notes_on_the_way(const arm_figures& arm, const char* whose) {
    std::vector<std::string> notes;
    long long resends = 0;
    for (const repeat_figures& d : arm.repeats) resends += d.resends;
    if (resends > 0)
        notes.push_back(printed("%ssent again, as the server closed the kept connection without an "
                                "answer: %lld requests; over 1 %% of a repeat's they are failures",
                                whose, resends));
    const answer_counts& a = arm.answers;
    if (a.in_a_lump > 0)
        notes.push_back(printed("%s%zu of %zu answers came in one piece, %zu more began with over "
                                "5 %% of their tokens at once",
                                whose, a.in_one_piece, a.paced, a.in_a_lump - a.in_one_piece));
    return notes;
}

inline std::string self_check_text(const self_check_t& c) {
    std::string t =
        printed("sends late by p50 %s, p99 %s, max %s", time_text(c.lateness_p50).c_str(),
                time_text(c.lateness_p99).c_str(), time_text(c.lateness_max).c_str());
    if (c.asked_rate > 0)
        t += printed("; sent %.4g of %.4g requests/s", c.achieved_rate, c.asked_rate);
    t += printed("; read within p99 %s, woke within p99 %s", time_text(c.stamp_lag_p99).c_str(),
                 time_text(c.loop_lag_p99).c_str());
    t += printed("; %.0f %% of a core; %.1f %% of events read together; %lld connections",
                 c.cpu_share * 100, c.coalesced_share * 100, c.connections_opened);
    for (const auto& [h, kind] : {std::pair{c.handshakes_full, "full"},
                                  std::pair{c.handshakes_resumed, "resumed"}})
        if (h.count > 0)
            t += printed("; %lld %s TLS handshakes, mean %s, max %s", h.count, kind,
                         time_text(h.mean).c_str(), time_text(h.max).c_str());
    if (c.held_up > 0)
        t += printed("; held up %lld time%s, at most %s", c.held_up, c.held_up == 1 ? "" : "s",
                     time_text(c.held_up_max).c_str()) +
             (c.ok ? ": no verdict rests on it" : "");
    return t + (c.ok ? "" : "; NOT OK: " + str(c.reason));
}

/// What is said where gaps were counted instead of kept, "" where all were kept.
inline std::string counted_gaps_text(std::uint64_t n) {
    if (n == 0) return {};
    return printed("itl: %llu gaps were too many to keep each one, so its percentiles are within "
                   "%.1f %%; means, longest gaps and throughputs are exact",
                   static_cast<unsigned long long>(n), 100 * gap_counts::relative_error);
}

inline constexpr const char* unverified_text =
    "its TLS certificate was NOT VERIFIED (endpoint.tls.verify is false)";
inline std::string target_text(const target_facts& t) {
    if (t.kind == target_kind::same) return "A/A: the same server twice";
    std::string s =
        (t.kind == target_kind::endpoint ? "" : to_string(t.kind) + std::string(" at ")) + t.url;
    if (!t.model.empty()) s += ", model " + t.model;
    return t.tls == tls_trust::not_verified ? s + ", " + unverified_text : s;
}
/// What a target is compared with, "" where with nothing.
inline std::string compared_text(const target_facts& baseline) {
    if (baseline.kind == target_kind::none) return {};
    return (baseline.kind == target_kind::same ? "; " : "; baseline ") + target_text(baseline);
}
/// What every report says of servers that anybody may have been; "" where there are none.
inline std::string unverified_servers(const gate_report& g) {
    std::string s;
    for (const target_facts* t : {&g.target, &g.baseline})
        if (t->kind != target_kind::same && t->tls == tls_trust::not_verified)
            s += (s.empty() ? "" : "; ") + t->url + ": " + unverified_text;
    return s;
}

/// "asked for 150 (p50 149, p90 190) on the average, the server counted 151 (...)", "" without any.
inline std::string prompt_lengths_text(const prompt_lengths& l) {
    if (!l.known) return {};
    const auto told = [](const length_figures& f) {
        return printed("%.4g (p50 %.0f, p90 %.0f)", f.mean, f.p50, f.p90);
    };
    return "asked for " + told(l.asked) + " on the average, the server counted " + told(l.counted);
}
inline std::string prefix_cache_text(const gate_figures& f) {
    const prefix_hits mine = f.candidate.prefix_cache, other = f.baseline.prefix_cache;
    const auto share = [](const prefix_hits& h) {
        return h.prompt > 0 ? printed("%.3g %%", 100 * h.cached / h.prompt) : "an unknown part";
    };
    if (mine.cached + other.cached <= 0) return {};
    return "prefix cache: " + share(mine) + " of the prompt tokens came from it" +
           (f.baseline.empty() ? "" : ", with the baseline " + share(other));
}
/// What is said where a server may know the traffic from earlier repeats, "" where it cannot.
inline std::string as_given_text(const plan& p) {
    if (p.sent_as_given.empty()) return {};
    return p.sent_as_given + " are sent as given: a prefix cache of the server may answer them "
                             "from earlier repeats and earlier runs";
}
/// What a reader of a gate's numbers should know of them, a sentence each.
inline std::vector<std::string> notes_on(const gate_report& g) {
    std::vector<std::string> notes;
    const prompt_lengths& lengths = g.figures.candidate.prompts;
    if (!lengths.are_as_asked())
        notes.push_back("prompt tokens: " + prompt_lengths_text(lengths));
    for (const set_aside_repeat& r : g.under.set_aside)
        notes.push_back(printed("repeat %d of the %s was set aside and measured again: ",
                                r.index + 1, to_string(r.arm)) + r.why);
    for (std::string t : {as_given_text(g.what), prefix_cache_text(g.figures),
                          counted_gaps_text(g.figures.counted_gaps)})
        if (!t.empty()) notes.push_back(std::move(t));
    for (const auto& [arm, whose] : {std::pair{&g.figures.candidate, ""},
                                     std::pair{&g.figures.baseline, "baseline: "}})
        for (std::string& t : notes_on_the_way(*arm, whose)) notes.push_back(std::move(t));
    return notes;
}

/// Where a gate's reports are.
inline std::string reports_text(const std::string& directory) {
    return "  report: " + directory + "/report.html, and there summary.md, junit.xml, result.json, "
           "metrics.txt, records.jsonl, events.bin\n";
}

/// Seconds that a gate's repeats take, at least and at most, where one arm's repeat takes `each_s`.
inline std::pair<double, double> expected_span(const plan& p, double each_s) {
    const auto lasting = [&](int repeats) {  // the last stage of fresh traffic is twice as long
        const bool doubled = p.rule.traffic == fresh && repeats == last_stage;
        return (p.has_baseline ? 2 : 1) * each_s * (repeats + doubled);
    };
    const double most = lasting(std::max(p.most_repeats, p.most_if_noisy));
    return {lasting(p.first_repeats), most};
}
inline std::string span_text(double least, double most) {
    return least < most ? printed("about %.0f to %.0f s", least, most)
                        : printed("about %.0f s", most);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C86] result.json and records.jsonl =======================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// calibration.json: what LLMBENCH_CALIBRATION reads.
inline std::string calibration_json(const std::vector<gate_report>& gates) {
    json_writer j;
    j.open('{').field("schema", "llmbench/calibration/1").key("gates").open('[');
    for (const gate_report& g : gates) {
        if (g.calibration.empty()) continue;
        j.open('{').field("name", g.what.name).field("repeats", g.figures.candidate.repeats.size());
        j.key("slos").open('[');
        for (const calibrated& c : g.calibration) {
            j.open('{').field("slo", c.what.text().c_str());
            j.field("statistic", noise_name(c.what)).field("estimate", c.estimate);
            j.field("sd", c.sd).field("headroom_sd", c.headroom_sd);
            j.field("suggestion", c.suggestion).close();
        }
        j.close().close();
    }
    return j.close().close().text() + "\n";
}

/// Nothing without TLS.
inline void write_handshakes(json_writer& j, const handshakes_t& full,
                             const handshakes_t& resumed) {
    if (full.count + resumed.count == 0) return;
    for (const auto& [name, h] :
         {std::pair{"handshakes_full", full}, std::pair{"handshakes_resumed", resumed}})
        j.key(name)
            .open('{')
            .field("count", h.count)
            .field("mean_s", h.mean)
            .field("max_s", h.max)
            .close();
}

/// Of a repeat, or of the client over all of them.
template <class Conduct>
void write_lags(json_writer& j, const Conduct& of) {
    j.field("loop_lag_p99", of.loop_lag_p99)
        .field("loop_lag_max", of.loop_lag_max)
        .field("stamp_lag_p99", of.stamp_lag_p99)
        .field("stamp_lag_max", of.stamp_lag_max);
}

inline void write_target(json_writer& j, const char* name, const target_facts& t) {
    j.key(name)
        .open('{')
        .field("kind", to_string(t.kind))
        .field("url", t.url)
        .field("model", t.model)
        .field("api", t.api);
    if (t.tls != tls_trust::no_tls) j.field("tls", to_string(t.tls));
    j.close();
}

inline void write_verdict(json_writer& j, const slo_verdict& v) {
    j.open('{')
        .field("slo", v.what.text().c_str())
        .field("verdict", to_string(v.outcome))
        .field("advisory", v.what.is_advisory);
    j.field("metric", metric_name(v.what.what.metric))
        .field("measured", v.measured)
        .field("estimate", v.estimate.value);
    j.key("interval").open('[').value(v.estimate.low).value(v.estimate.high).close();
    j.field("limit", v.limit)
        .field("relative_to_baseline", v.what.factor > 0)
        .field("headroom", headroom(v));
    j.field("detectable", v.detectable).field("repeats", v.repeats).field("requests", v.requests);
    j.field("method", v.method.c_str())
        .field("reason", v.reason.c_str())
        .field("advice", v.advice.c_str())
        .field("arithmetic", v.arithmetic.c_str());
    j.key("inputs").open('{');
    for (const named_values& n : v.inputs) {
        j.key(n.name.c_str()).open('[');
        for (const double x : n.values) j.value(x);
        j.close();
    }
    j.close();
    j.field("file", v.what.at.file).field("line", v.what.at.line).close();
}

/// How long made-up prompts were to be, how long the server says they were, and how that was aimed.
inline void write_prompt_lengths(json_writer& j, const prompt_lengths& lengths,
                                 const token_fit& fit) {
    if (!lengths.known) return;
    j.key("prompt_lengths").open('{').field("calibration", to_string(fit.lengths));
    j.field("token_ids", fit.as_ids);
    for (const auto& [name, f] :
         {std::pair{"asked", &lengths.asked}, std::pair{"counted", &lengths.counted}})
        j.key(name)
            .open('{')
            .field("mean", f->mean)
            .field("p50", f->p50)
            .field("p90", f->p90)
            .close();
    j.close();
}

/// Four numbers a stretch on one line, they are for programs: from and to, in ns since the window
/// began, the longest delay of a stamp in it, and what of it may have been lost, in ns.
inline std::string blind_text(const repeat_facts& d) {
    std::string all;
    for (const blind_stretch& s : d.blind)
        all += (all.empty() ? "" : ",") + printed("%lld,%lld,%lld,%lld",
                                                  s.from_ns - d.window_from_ns,
                                                  s.to_ns - d.window_from_ns, s.most_delay_ns,
                                                  s.lost_ns);
    return "[" + all + "]";
}

inline void write_repeat(json_writer& j, const repeat_figures& d,
                         const std::vector<statistic_data>& kept) {
    j.open('{')
        .field("index", d.index)
        .field("window_from_ns", d.window_from_ns)
        .field("window_to_ns", d.window_to_ns);
    j.field("asked_rate", d.asked_rate)
        .field("achieved_rate", d.achieved_rate)
        .field("connections_opened", d.connections_opened);
    write_handshakes(j, d.handshakes_full, d.handshakes_resumed);
    write_lags(j, d);
    j.key("thread_cpu_shares").open('[');
    for (const double share : d.thread_cpu_shares) j.value(share);
    j.close();
    j.field("content_events", d.content_events)
        .field("coalesced_events", d.coalesced_events)
        .field("cpu_share", d.cpu_share);
    j.key("blind").raw(blind_text(d)).field("startup_s", d.startup_s)
        .field("target_gone", d.target_gone)
        .field("interrupted", d.interrupted)
        .field("short_outputs", d.short_outputs)
        .field("long_outputs", d.long_outputs)
        .field("resends", d.resends)
        .field("shared_tokens", d.shared_tokens)
        .field("gaps_counted", d.gaps_counted)
        .field("itl_relative_error", d.gaps_counted ? gap_counts::relative_error : 0.0);
    j.key("statistics").open('{');
    for (std::size_t i = 0; i < kept.size(); ++i) j.field(kept[i].name.c_str(), d.statistics[i]);
    j.close().close();
}

inline void write_arm(json_writer& j, const gate_report& g, run_arm which) {
    const bool is_baseline = which == run_arm::baseline;
    const arm_figures& arm = is_baseline ? g.figures.baseline : g.figures.candidate;
    j.key(is_baseline ? "baseline" : "candidate").open('{');
    write_prompt_lengths(j, arm.prompts, (is_baseline ? g.baseline : g.target).tokens);
    for (std::size_t i = 0; i < g.figures.table_rows; ++i) {
        const metric_row& r = arm.distributions[i].row;
        j.key(metric_name(r.metric))
            .open('{')
            .field("mean", r.mean)
            .field("p50", r.p50)
            .field("p90", r.p90)
            .field("p99", r.p99)
            .field("max", r.max)
            .close();
    }
    for (const auto& [metric, value] : arm.run_values) j.field(metric_name(metric), value);
    if (arm.prefix_cache.prompt > 0)
        j.key("prefix_cache")
            .open('{')
            .field("cached_tokens", arm.prefix_cache.cached)
            .field("prompt_tokens", arm.prefix_cache.prompt)
            .close();
    j.key("statuses").open('{');
    for (const status_count& c : arm.statuses) j.field(to_string(c.status), c.count);
    j.close().field("usage_below_events", arm.usage_below_events);
    j.field("usage_over_content", arm.answers.over_content)
        .field("in_one_piece", arm.answers.in_one_piece)
        .field("in_a_lump", arm.answers.in_a_lump);
    j.key("repeats").open('[');
    for (const repeat_figures& d : arm.repeats) write_repeat(j, d, g.figures.kept);
    j.close().close();
}

/// All that the verdicts depend on and the records do not tell.
inline void write_judging(json_writer& j, const gate_report& g) {
    const judging_rule& rule = g.held.rule;
    const stored_baseline& stored = g.held.stored;
    j.key("judging")
        .open('{')
        .field("traffic", rule.traffic == fresh ? "fresh" : "replayed")
        .field("looks", rule.looks)
        .field("most", rule.most)
        .field("false_pass", rule.pass_level)
        .field("false_fail", rule.fail_level)
        .field("pass_z", rule.pass_z)
        .field("fail_z", rule.fail_z)
        .field("holm", rule.holm)
        .field("paired", g.what.has_baseline)
        .field("arrival_cv2", g.under.arrival_cv2)
        .field("short_outputs_expected", g.under.short_outputs_expected)
        .field("spin", g.under.spins)
        .field("expected_requests", expected_requests(g.what))
        .field("stopped", g.under.stopped);
    j.key("set_aside").open('[');
    for (const set_aside_repeat& r : g.under.set_aside)
        j.open('{').field("arm", to_string(r.arm)).field("index", r.index).field("why", r.why)
            .close();
    j.close();
    j.field("calibration", g.held.noise_file).key("calibrated_sd").open('{');
    for (const auto& [name, sd] : g.held.noise) j.field(name, sd);
    j.close();
    j.key("stored_baseline").open('{').field("file", stored.file);
    j.field("day_to_day_sd", stored.day_sd).key("statistics").open('{');
    for (const auto& [name, values] : stored.values) {
        j.key(name).open('[');
        for (const double v : values) j.value(v);
        j.close();
    }
    j.close().close().close();
}

/// The load as it was asked for.
inline void write_scenario(json_writer& j, const plan& p) {
    j.key("scenario")
        .open('{')
        .field("arrivals", arrival_text(p.arrivals))
        .field("arrival_kind", arrival_name(p.arrivals.kind))
        .field("offered_rate", p.arrivals.rate);
    j.field("users",
            p.arrivals.kind == arrival_kind::closed_loop ? p.arrivals.users : 0)
        .field("max_in_flight", p.arrivals.max_in_flight);
    j.field("workload", p.workload_text)
        .field("sent_as_given", p.sent_as_given)
        .field("warmup_requests", p.warmup_requests)
        .field("warmup_s", p.warmup_s);
    j.field("extent", extent_text(p)).field("options", options_text(p))
        .field("stream", p.common.stream);
    j.field("requests", p.requests)
        .field("duration_s", p.duration_s)
        .field("repeats_planned", repeats_text(p));
    j.field("seed", static_cast<long long>(p.seed))
        .field("seed_text", std::to_string(p.seed))
        .field("trace_hash", trace_hash(p))
        .field("nonce", printed("%016llx", static_cast<unsigned long long>(p.nonce)))
        .close();
}

inline void write_self_check(json_writer& j, const self_check_t& c) {
    j.key("self_check")
        .open('{')
        .field("ok", c.ok)
        .field("reason", c.reason.c_str())
        .field("lateness_p50", c.lateness_p50);
    j.field("lateness_p99", c.lateness_p99)
        .field("lateness_max", c.lateness_max)
        .field("late_share", c.late_share);
    j.field("asked_rate", c.asked_rate)
        .field("achieved_rate", c.achieved_rate)
        .field("coalesced_share", c.coalesced_share);
    write_lags(j, c);
    j.field("held_up", c.held_up).field("held_up_max", c.held_up_max);
    j.field("cpu_share", c.cpu_share)
        .field("connections_opened", c.connections_opened);
    write_handshakes(j, c.handshakes_full, c.handshakes_resumed);
    j.close();
}

inline std::string result_json(const std::vector<gate_report>& gates, const environment_facts& env,
                               const event_index& events, int exit_code) {
    json_writer j;
    j.open('{').field("schema", "llmbench/result/1");
    j.field("version", printed("%d.%d.%d", LLMBENCH_VERSION_MAJOR, LLMBENCH_VERSION_MINOR,
                               LLMBENCH_VERSION_PATCH));
    j.field("definitions", definitions_version).field("exit_code", exit_code);
    j.key("environment")
        .open('{')
        .field("started_at", env.started_at)
        .field("commit", env.commit)
        .field("os", env.os)
        .field("cpu", env.cpu)
        .field("cores", env.cores)
        .field("compiler", env.compiler)
        .close();
    j.key("gates").open('[');
    for (const gate_report& g : gates) {
        j.open('{')
            .field("name", g.what.name)
            .field("outcome", to_string(g.outcome))
            .field("refusal", g.refusal);
        j.field("file", g.what.file).field("line", g.what.line);
        if (!g.beside.empty()) j.field("failed_beside", g.beside);
        if (!g.refusal.empty()) { j.close(); continue; }
        write_target(j, "target", g.target);
        if (g.what.has_baseline) write_target(j, "baseline_target", g.baseline);
        write_scenario(j, g.what);
        j.key("slos").open('[');
        for (const slo_verdict& v : g.verdicts) write_verdict(j, v);
        j.close();
        write_judging(j, g);
        write_arm(j, g, run_arm::candidate);
        if (g.what.has_baseline) write_arm(j, g, run_arm::baseline);
        write_self_check(j, g.self_check);
        j.close();
    }
    j.close();
    // One long line: the offsets are for programs.
    std::string offsets = "[";
    for (const long long o : events.offsets)
        offsets += (offsets.size() > 1 ? "," : "") + std::to_string(o);
    j.key("events")
        .open('{')
        .field("file", "events.bin")
        .field("unit", "microseconds, uint32 little-endian");
    j.field("bytes", events.bytes).field("fnv1a_64", events.hash);
    j.key("offsets").raw(offsets + "]").close().close();
    return j.text() + "\n";
}

/// One line of records.jsonl.
inline std::string record_json(const record& r, const std::string& gate) {
    const auto when = [](long long ns) { return ns ? std::to_string(ns) : std::string("null"); };
    std::string s = "{\"id\":" + json_quoted(str(r.id)) + ",\"gate\":" + json_quoted(gate);
    s += printed(",\"arm\":\"%s\",\"repeat\":%d,\"phase\":\"%s\"", to_string(r.arm), r.repeat,
                 to_string(r.phase));
    s += ",\"scheduled_ns\":" + when(r.scheduled_ns) +
         ",\"dispatched_ns\":" + when(r.dispatched_ns) +
         ",\"connected_ns\":" + when(r.connected_ns) + ",\"sent_ns\":" + when(r.sent_ns) +
         ",\"first_token_ns\":" + when(r.first_token_ns) +
         ",\"last_token_ns\":" + when(r.last_token_ns) + ",\"end_ns\":" + when(r.end_ns);
    s += printed(
        ",\"prompt_tokens\":%d,\"output_tokens\":%d,\"token_source\":\"%s\",\"events\":%d,\"first_"
        "event_tokens\":%d",
        r.prompt_tokens, r.output_tokens, to_string(r.token_source), r.events,
        r.first_event_tokens);
    s += printed(",\"status\":\"%s\",\"http_status\":", to_string(r.status)) +
         (r.http_status ? std::to_string(r.http_status) : "null");
    const auto words = [](const text& t) {
        return t.empty() ? std::string("null") : json_quoted(str(t));
    };
    return s + ",\"finish_reason\":" + words(r.finish_reason) + ",\"error\":" + words(r.error) +
           printed(",\"late_ns\":%lld,\"cached_tokens\":%s", r.late_ns,
                   r.cached_tokens < 0 ? "null" : std::to_string(r.cached_tokens).c_str()) +
           printed(",\"conversation\":%lld,\"turn\":%d", r.conversation, r.turn) +
           printed(",\"reads\":%d,\"first_read_events\":%d,\"text_bytes\":%d,\"choices\":%d,"
                   "\"resends\":%d}\n",
                   r.reads, r.first_read_events, r.text_bytes, r.choices, r.resends);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C87] stored results ======================================================================
// What earlier runs left: a result.json to be compared with, records to be judged again.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One gate of a result.json; the repeats have no records yet.
struct stored_gate {
    std::string name{}, model{}, api{}, workload{}, arrivals{}, extent{}, options{}, seed{};
    std::string trace_hash{}, definitions{};
    std::string fault{};  // why it says nothing of its server, "" where it does
    slo_context context{};  // its own objectives are not read again
    evidence seen{};
    terms held{};
    std::map<std::string, std::vector<double>> statistics{};  // of the candidate, one a repeat
};

inline repeat_data read_repeat(const picojson::value& v, run_arm arm) {
    repeat_data d;
    d.arm = arm;
    d.index = count_member(v, "index");
    d.asked_rate = number_member(v, "asked_rate");
    d.achieved_rate = number_member(v, "achieved_rate");
    d.connections_opened = count_member(v, "connections_opened");
    for (const auto& [name, into] : {std::pair{"handshakes_full", &d.handshakes_full},
                                     std::pair{"handshakes_resumed", &d.handshakes_resumed}})
        if (const picojson::value* h = member(v, name))
            *into = {large_count(*h, "count"), number_member(*h, "mean_s"),
                     number_member(*h, "max_s")};
    d.content_events = large_count(v, "content_events");
    d.coalesced_events = large_count(v, "coalesced_events");
    d.cpu_share = number_member(v, "cpu_share");
    d.startup_s = number_member(v, "startup_s");
    d.loop_lag_p99 = number_member(v, "loop_lag_p99");
    d.loop_lag_max = number_member(v, "loop_lag_max");
    d.stamp_lag_p99 = number_member(v, "stamp_lag_p99");
    d.stamp_lag_max = number_member(v, "stamp_lag_max");
    d.target_gone = string_member(v, "target_gone");
    d.interrupted = true_member(v, "interrupted");
    d.short_outputs = large_count(v, "short_outputs");
    d.long_outputs = large_count(v, "long_outputs");
    d.resends = large_count(v, "resends");
    if (number_member(v, "shared_tokens") >= 0)  // else nothing is known of them
        d.shared_tokens = large_count(v, "shared_tokens");
    d.gaps_counted = true_member(v, "gaps_counted");
    return d;
}

/// Files of older versions have none.
inline blind_stretches read_blind(const picojson::value& v, long long window_from_ns) {
    blind_stretches all;
    const picojson::array& numbers = array_member(v, "blind");
    const auto whole = [&](std::size_t i) {
        const double x = number_in(numbers[i]);
        return std::fabs(x) < 9e15 ? static_cast<long long>(x) : 0;
    };
    for (std::size_t i = 0; i + 3 < numbers.size(); i += 4)
        all.push_back({window_from_ns + whole(i), window_from_ns + whole(i + 1), whole(i + 2),
                       whole(i + 3)});
    return all;
}

inline void read_judging(const picojson::value& v, stored_gate& g) {
    judging_rule& rule = g.held.rule;
    rule.traffic = string_member(v, "traffic") == "fresh" ? fresh : replayed;
    rule.looks = count_member(v, "looks");
    rule.most = count_member(v, "most");
    rule.pass_level = number_member(v, "false_pass");
    rule.fail_level = number_member(v, "false_fail");
    rule.pass_z = number_member(v, "pass_z");
    rule.fail_z = number_member(v, "fail_z");
    rule.holm = true_member(v, "holm");
    g.seen.arrival_cv2 = number_member(v, "arrival_cv2");
    g.seen.short_outputs_expected = true_member(v, "short_outputs_expected");
    g.seen.spins = true_member(v, "spin");
    g.seen.stopped = string_member(v, "stopped");
    if (const picojson::value* noise = member(v, "calibrated_sd");
        noise && noise->is<picojson::object>())
        for (const auto& [name, sd] : noise->get<picojson::object>())
            if (sd.is<double>()) g.held.noise[name] = sd.get<double>();
    g.held.noise_file = string_member(v, "calibration");
    if (const picojson::value* stored = member(v, "stored_baseline")) {
        g.held.stored.file = string_member(*stored, "file");
        g.held.stored.day_sd = number_member(*stored, "day_to_day_sd");
        g.held.stored.values = lists_of(member(*stored, "statistics"));
    }
    require(rule.looks > 0 && rule.looks <= 100 && rule.most > 0 && rule.pass_z > 0 &&
                rule.fail_z > 0 && rule.pass_level > 0 && rule.fail_level > 0,
            "the result does not say how \"" + g.name + "\" was judged");
    rule.half_fail_z = half_fail_z_of(rule.looks, rule.fail_level);
    g.context.rule = rule;
    g.context.most_repeats = rule.most;
    g.context.has_baseline = true_member(v, "paired") || !g.held.stored.file.empty();
    g.context.requests = std::max(0, count_member(v, "expected_requests"));
    g.context.first_turns = g.context.requests;
}

/// Why the verdicts of a run say that its numbers are none, or those of a server that failed.
inline std::string fault_of_stored(const picojson::value& gate) {
    const bool is_invalid = string_member(gate, "outcome") == "invalid";
    for (const picojson::value& s : array_member(gate, "slos")) {
        const std::string outcome = string_member(s, "verdict");
        const std::string reason = string_member(s, "reason");
        const bool is_advisory = true_member(s, "advisory");
        if (is_invalid && !is_advisory && outcome == "invalid") return "was invalid: " + reason;
        const double observed = number_member(s, "estimate"), limit = number_member(s, "limit");
        if (string_member(s, "metric") == "error_rate" && !is_advisory && observed > limit)
            return printed("had %.3g %% of its requests fail, where %.3g %% may", observed * 100,
                           limit * 100);
    }
    return is_invalid ? "was invalid" : "";
}

/// Throws std::invalid_argument with the reason where the text holds no such gate.
inline stored_gate read_stored_gate(const std::string& json, const std::string& file,
                                    const std::string& name) {
    picojson::value root;
    require(parse_json(json, root) && string_member(root, "schema") == "llmbench/result/1",
            file + " is not a result of this schema (llmbench/result/1)");
    const std::vector<long long> from = whole_numbers(json, "window_from_ns");
    const std::vector<long long> to = whole_numbers(json, "window_to_ns");
    const picojson::value* found = nullptr;
    std::size_t repeats_before = 0, repeats_seen = 0, matches = 0;
    std::string names;
    const picojson::array& gates = array_member(root, "gates");
    for (const picojson::value& g : gates) {
        const bool measured = string_member(g, "refusal").empty();
        if (measured) names += (names.empty() ? "\"" : ", \"") + string_member(g, "name") + "\"";
        if (measured && (string_member(g, "name") == name || (gates.size() == 1 && name.empty()))) {
            ++matches;
            found = &g;
            repeats_before = repeats_seen;
        }
        for (const char* arm : {"candidate", "baseline"})
            if (const picojson::value* a = member(g, arm))
                repeats_seen += array_member(*a, "repeats").size();
    }
    require(matches < 2, file + " has more than one measured gate \"" + name +
                             "\": only gates with names of their own can be read again");
    require(matches == 1, file + " has no measured gate \"" + name + "\": it has " +
                              (names.empty() ? "none" : names));
    require(member(*found, "judging") != nullptr, file + " does not say how it was judged");

    stored_gate g;
    g.name = string_member(*found, "name");
    g.definitions = string_member(root, "definitions");
    g.fault = fault_of_stored(*found);
    if (const picojson::value* t = member(*found, "target")) {
        g.model = string_member(*t, "model");
        g.api = string_member(*t, "api");
    }
    if (const picojson::value* s = member(*found, "scenario")) {
        g.workload = string_member(*s, "workload");
        g.arrivals = string_member(*s, "arrivals");
        g.extent = string_member(*s, "extent");
        g.options = string_member(*s, "options");
        const picojson::value* stream = member(*s, "stream");
        g.context.streams = !stream || stream->evaluate_as_boolean();
        g.seed = string_member(*s, "seed_text");
        g.trace_hash = string_member(*s, "trace_hash");
        g.context.arrivals = g.arrivals;
        const std::string kind = string_member(*s, "arrival_kind");
        for (int k = 0; k <= static_cast<int>(arrival_kind::closed_loop); ++k)
            if (kind == arrival_name(static_cast<arrival_kind>(k)))
                g.context.saturates = saturates(static_cast<arrival_kind>(k));
    }
    read_judging(*member(*found, "judging"), g);
    for (const run_arm arm : {run_arm::candidate, run_arm::baseline}) {
        const picojson::value* a = member(*found, to_string(arm));
        if (!a) continue;
        auto& repeats = arm == run_arm::candidate ? g.seen.candidate : g.seen.baseline;
        for (const picojson::value& r : array_member(*a, "repeats")) {
            repeats.push_back(read_repeat(r, arm));
            require(repeats_before < from.size() && repeats_before < to.size(),
                    file + ": a repeat has no window");
            repeats.back().window_from_ns = from[repeats_before];
            repeats.back().window_to_ns = to[repeats_before++];
            repeats.back().blind = read_blind(r, repeats.back().window_from_ns);
            const picojson::value* values = member(r, "statistics");
            if (arm == run_arm::baseline || !values || !values->is<picojson::object>()) continue;
            for (const auto& [statistic, v] : values->get<picojson::object>())
                g.statistics[statistic].push_back(number_in(v));
        }
    }
    return g;
}

/// What a later reader sees of a whole run. Throws std::invalid_argument where the text is none.
inline past_result read_past_result(const std::string& json, const std::string& file) {
    picojson::value root;
    require(parse_json(json, root) && string_member(root, "schema") == "llmbench/result/1",
            file + " is not a result of this schema (llmbench/result/1)");
    past_result run;
    if (const picojson::value* e = member(root, "environment")) {
        run.started_at = string_member(*e, "started_at");
        run.commit = string_member(*e, "commit");
        run.cpu = string_member(*e, "cpu");
    }
    for (const picojson::value& g : array_member(root, "gates")) {
        past_gate gate;
        gate.name = string_member(g, "name");
        gate.outcome = string_member(g, "outcome");
        if (const picojson::value* t = member(g, "target")) gate.model = string_member(*t, "model");
        if (const picojson::value* s = member(g, "scenario"))
            gate.arrivals = string_member(*s, "arrivals");
        for (const picojson::value& s : array_member(g, "slos")) {
            past_slo slo;
            slo.slo = string_member(s, "slo");
            slo.metric = string_member(s, "metric");
            const std::string outcome = string_member(s, "verdict");
            for (int k = 0; k <= static_cast<int>(verdict::skipped); ++k)
                if (outcome == to_string(static_cast<verdict>(k)))
                    slo.outcome = static_cast<verdict>(k);
            slo.advisory = true_member(s, "advisory");
            const std::string text = str(slo.slo);  // a goodput has sides of its own in front
            const std::size_t side = std::min(text.rfind("= "), text.size());
            slo.at_most = side == text.size() || side == 0 || text[side - 1] == '<';
            slo.relative = true_member(s, "relative_to_baseline");
            slo.measured = number_member(s, "measured");
            slo.estimate = {number_member(s, "estimate"), not_a_number, not_a_number};
            const picojson::array& interval = array_member(s, "interval");
            const auto end_of = [&](std::size_t i) {
                const bool known = i < interval.size() && interval[i].is<double>();
                return known ? interval[i].get<double>() : not_a_number;
            };
            slo.estimate.low = end_of(0);
            slo.estimate.high = end_of(1);
            slo.limit = number_member(s, "limit");
            slo.reason = string_member(s, "reason");
            gate.slos.push_back(slo);
        }
        run.gates.push_back(gate);
    }
    return run;
}

/// Throws std::invalid_argument where the stored run was of another kind. `what` is planned,
/// `target` answers.
inline void check_comparable(const stored_gate& old, const std::string& file, const plan& what,
                             const target_facts& target) {
    const auto same = [&](const char* field, const std::string& was, const std::string& is) {
        require(was == is, "baseline is stored(\"" + file + "\") and does not compare: its " +
                               field + " is \"" + printable(was) +
                               "\" and this gate's is \"" + is + "\"");
    };
    require(old.fault.empty(), "baseline is stored(\"" + file + "\"): that run " + old.fault +
                                   "; write it again");
    same("traffic", old.held.rule.traffic == fresh ? "fresh" : "replayed", "replayed");
    same("definitions version", old.definitions, definitions_version);
    same("model", old.model, target.model);
    same("api", old.api, target.api);
    same("arrivals", old.arrivals, arrival_text(what.arrivals));
    same("workload", old.workload, what.workload_text);
    same("extent", old.extent, extent_text(what));
    same("options", old.options, options_text(what));
    same("seed", old.seed, std::to_string(what.seed));
    same("trace hash", old.trace_hash, trace_hash(what));
    for (const slo& s : what.slos) {
        if (s.factor == 0) continue;
        const auto at = old.statistics.find(str(s.what.name));
        bool usable = at != old.statistics.end() && !at->second.empty();
        if (usable)
            for (const double v : at->second) usable = usable && std::isfinite(v) && v > 0;
        require(usable, "baseline is stored(\"" + file + "\"): it has no value of " +
                            str(s.what.name) + " in every repeat, write it again");
    }
}

/// More than this between repeats of one server is no noise that limits could be held under.
inline constexpr double most_calibrated_sd = 0.30;

/// The noise of a gate's statistics from a calibration.json, empty where it does not have the gate.
/// Throws std::invalid_argument for what can be none.
inline std::map<std::string, double> read_calibration(const std::string& json,
                                                      const std::string& file,
                                                      const std::string& gate) {
    picojson::value root;
    require(parse_json(json, root) && string_member(root, "schema") == "llmbench/calibration/1",
            "LLMBENCH_CALIBRATION: " + file + " is not a calibration (llmbench/calibration/1)");
    std::map<std::string, double> noise;
    for (const picojson::value& g : array_member(root, "gates"))
        if (string_member(g, "name") == gate)
            for (const picojson::value& s : array_member(g, "slos")) {
                const picojson::value* told = member(s, "sd");
                if (!told || told->is<picojson::null>()) continue;  // shares have none
                const double sd = number_member(s, "sd");
                const std::string statistic = string_member(s, "statistic");
                require(sd >= 0 && sd <= most_calibrated_sd,
                        "LLMBENCH_CALIBRATION: " + file + " has for " + printable(statistic, 200) +
                            " of \"" + gate + "\" a noise of " +
                            (std::isnan(sd) ? printable(told->to_str(), 40)
                                            : printed("%.3g %%", sd * 100)) +
                            printed(": it runs from 0 to %g %%, calibrate again on a quieter "
                                    "machine",
                                    most_calibrated_sd * 100));
                noise[statistic] = sd;
            }
    return noise;
}

/// One line of records.jsonl, and the gate it belongs to. Throws std::invalid_argument.
inline record read_record(const std::string& line, std::string& gate) {
    picojson::value v;
    require(parse_json(line, v) && v.is<picojson::object>(), "it is not a JSON object");
    const auto whole_of = [&](const char* key, double most) {
        const picojson::value* m = member(v, key);
        const double told = m && m->is<double>() ? m->get<double>() : not_a_number;
        if (std::fabs(told) <= std::min(most, 9e15) && std::floor(told) == told)
            return static_cast<long long>(told);  // which a double holds as it is
        const std::vector<long long> found = whole_numbers(line, key);
        const bool is_null = m && m->is<picojson::null>();
        const bool is_whole = found.size() == 1 && std::fabs(told) <= most;
        require(m != nullptr, std::string("it has no field ") + key);
        require(is_null || is_whole, std::string(key) + " is no whole number that fits");
        return is_null ? 0 : found[0];
    };
    const auto one_of = [&](const char* key, auto last) {
        const std::string given = string_member(v, key);
        for (int k = 0; k <= static_cast<int>(last); ++k)
            if (given == to_string(static_cast<decltype(last)>(k)))
                return static_cast<decltype(last)>(k);
        throw std::invalid_argument(std::string(key) + " is \"" + printable(given, 40) + "\"");
    };
    record r;
    const picojson::value* name = member(v, "gate");
    require(name && name->is<std::string>(), "it has no field gate");
    gate = name->get<std::string>();
    r.id = string_member(v, "id");
    r.arm = one_of("arm", run_arm::baseline);
    r.phase = one_of("phase", run_phase::measure);
    r.status = one_of("status", request_status::unsent);
    r.token_source = one_of("token_source", token_origin::events);
    for (const auto& [key, into] :
         {std::pair{"scheduled_ns", &r.scheduled_ns}, std::pair{"dispatched_ns", &r.dispatched_ns},
          std::pair{"connected_ns", &r.connected_ns}, std::pair{"sent_ns", &r.sent_ns},
          std::pair{"first_token_ns", &r.first_token_ns},
          std::pair{"last_token_ns", &r.last_token_ns}, std::pair{"end_ns", &r.end_ns},
          std::pair{"late_ns", &r.late_ns}})
        *into = whole_of(key, 9e18);
    for (const auto& [key, into] :
         {std::pair{"repeat", &r.repeat}, std::pair{"prompt_tokens", &r.prompt_tokens},
          std::pair{"output_tokens", &r.output_tokens}, std::pair{"events", &r.events},
          std::pair{"first_event_tokens", &r.first_event_tokens},
          std::pair{"http_status", &r.http_status}})
        *into = static_cast<int>(whole_of(key, 2e9));
    for (const auto& [key, into] :
         {std::pair{"finish_reason", &r.finish_reason}, std::pair{"error", &r.error}}) {
        const std::string words = string_member(v, key);
        *into = printable(words, 4 * words.size() + 4);
    }
    // Files of older versions end here.
    const picojson::value* cached = member(v, "cached_tokens");
    if (cached && !cached->is<picojson::null>())
        r.cached_tokens = static_cast<int>(whole_of("cached_tokens", 2e9));
    if (member(v, "conversation")) r.conversation = whole_of("conversation", 9e18);
    for (const auto& [key, into] :
         {std::pair{"turn", &r.turn}, std::pair{"reads", &r.reads},
          std::pair{"first_read_events", &r.first_read_events},
          std::pair{"text_bytes", &r.text_bytes}, std::pair{"choices", &r.choices},
          std::pair{"resends", &r.resends}})
        if (member(v, key)) *into = static_cast<int>(whole_of(key, 2e9));
    return r;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C88] junit.xml, summary.md, annotations, metrics.txt =====================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One test case per SLO: a miss is a failure, an inconclusive one is skipped, an invalid one an
/// error. Where inconclusive fails the build it is a failure: no red build without a red case.
/// Written so that Jenkins' own schema (junit-10.xsd of its xUnit plugin) accepts it: there
/// properties belong to a suite, and a case names its place in its text.
inline std::string junit_xml(const std::vector<gate_report>& gates) {
    struct counts { int tests = 0, failures = 0, errors = 0, skipped = 0; };
    const auto told = [](const counts& c) {
        return printed(" tests=\"%d\" failures=\"%d\" errors=\"%d\"", c.tests, c.failures,
                       c.errors);
    };
    counts all;
    double took_s = 0;
    std::string suites;
    for (const gate_report& g : gates) {
        counts of;
        std::string properties, cases;
        const auto property = [&](const std::string& name, const std::string& value) {
            properties += "      <property name=\"" + xml_escaped(name) + "\" value=\"" +
                          xml_escaped(value) + "\"/>\n";
        };
        const auto test = [&](const std::string& name, const char* tag, const std::string& words,
                              const std::string& place) {
            ++of.tests;
            cases += "    <testcase classname=\"" + xml_escaped(g.what.name) + "\" name=\"" +
                     xml_escaped(name) + "\" time=\"0\">\n";
            const std::string text = xml_escaped(place + ": " + words);
            const std::string start = std::string("      <") + tag;
            const std::string end = std::string("</") + tag + ">\n";
            const bool plain = std::string_view(tag) == "skipped";
            if (*tag)
                cases += start + (plain ? ">" : " type=\"slo\" message=\"" + xml_escaped(words) +
                                                    "\">") + text + end;
            cases += "      <system-out>" + text + "</system-out>\n    </testcase>\n";
        };
        const std::string gate_place = g.what.file + ":" + std::to_string(g.what.line);
        if (!g.refusal.empty()) {
            const bool skip = g.outcome == gate_outcome::skipped;
            ++(skip ? of.skipped : of.errors);
            test("gate", skip ? "skipped" : "error", g.refusal, gate_place);
        }
        if (!g.beside.empty()) {
            ++of.failures;
            test("test case", "failure", g.beside, gate_place);
        }
        for (const slo_verdict& v : g.verdicts) {
            const std::string name = str(v.what.text());
            property(name + ": verdict", to_string(v.outcome));
            property(name + ": measured", json_number(v.measured));
            property(name + ": estimate", json_number(v.estimate.value));
            property(name + ": interval_low", json_number(v.estimate.low));
            property(name + ": interval_high", json_number(v.estimate.high));
            property(name + ": limit", json_number(v.limit));
            const bool blocks = !v.what.is_advisory;
            const bool undecided = v.outcome == verdict::inconclusive && g.undecided_fails;
            const bool failed = (v.outcome == verdict::fail || undecided) && blocks;
            const bool invalid = v.outcome == verdict::invalid && blocks;
            const bool skip = !failed && !invalid && v.outcome != verdict::pass;
            of.failures += failed;
            of.errors += invalid;
            of.skipped += skip;
            const bool written = v.what.at.line > 0;
            test(name, failed ? "failure" : invalid ? "error" : skip ? "skipped" : "",
                 flat_line(v),
                 written ? v.what.at.file + (":" + std::to_string(v.what.at.line)) : gate_place);
        }
        if (const std::string words = unverified_servers(g); !words.empty())
            property("tls", words);
        if (!properties.empty())
            properties = "    <properties>\n" + properties + "    </properties>\n";
        suites += "  <testsuite name=\"" + xml_escaped(g.what.name) + "\"" + told(of) +
                  printed(" skipped=\"%d\" time=\"%.3f\">\n", of.skipped, g.took_s) + properties +
                  cases + "  </testsuite>\n";
        all.tests += of.tests;
        all.failures += of.failures;
        all.errors += of.errors;
        took_s += g.took_s;
    }
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"llmbench\"" + told(all) +
           printed(" time=\"%.3f\">\n", took_s) + suites + "</testsuites>\n";
}

/// GitHub takes 65,536 characters in a comment, of which whoever posts it may add some.
inline constexpr std::size_t summary_limit = 64000;

inline std::string markdown_escaped(const std::string& s) {
    std::string out;
    for (const char c : printable(s, s.size() * 4 + 4)) {
        if (std::string_view("\\|<>`*_[]~").find(c) != std::string_view::npos) out += '\\';
        out += c == '&' ? "&amp;" : std::string(1, c);
    }
    return out;
}

/// Words that may be a server's, as code: nothing in a code span is a mention, a link, an image,
/// HTML or a reference to an issue. A bar would end the cell of a table even there.
inline std::string markdown_code(const std::string& s) {
    std::string words;
    std::size_t longest = 0, run = 0;
    for (const char c : printable(s, s.size() * 4 + 4)) {
        longest = std::max(longest, run = c == '`' ? run + 1 : 0);
        words += c == '|' ? "\u2502" : std::string(1, c);
    }
    if (trimmed(words).empty()) return {};
    const std::string fence(longest + 1, '`');
    const bool needs_room = words.front() == '`' || words.back() == '`' ||
                            (words.front() == ' ' && words.back() == ' ');
    const char* room = needs_room ? " " : "";
    return fence + room + words + room + fence;
}

/// One gate of the summary: a table of verdicts and a line on its requests.
inline std::string summary_of(const gate_report& g) {
    std::string out = "### " + markdown_escaped(g.what.name) + ": " +
                      to_string(g.outcome) + "\n\n";
    for (const std::string& words : {g.beside, g.refusal, unverified_servers(g)})
        if (!words.empty()) out += markdown_code(words) + "\n\n";
    if (!g.refusal.empty()) return out;
    if (!g.verdicts.empty())
        out += "| verdict | objective | measured | typical repeat | interval | headroom | note |\n"
               "| --- | --- | ---: | ---: | ---: | ---: | --- |\n";
    for (const slo_verdict& v : g.verdicts) {
        const estimate_t& e = v.estimate;
        const double room = headroom(v);
        const bool has_room = !std::isnan(room) && !is_share(v.what.what.metric);
        const bool noted = v.what.is_advisory && v.outcome != verdict::pass;
        const char* mark = v.outcome == verdict::pass               ? "\u2705"
                           : v.outcome == verdict::fail && !noted   ? "\u274C"
                           : v.outcome == verdict::skipped || noted ? "\u2796"
                                                                    : "\u26A0\uFE0F";
        out += std::string("| ") + mark + " " + to_string(v.outcome) + " | " +
               markdown_escaped(str(v.what.text())) + " | " + verdict_value_text(v, v.measured) +
               " | " + verdict_value_text(v, e.value) + " | " + verdict_value_text(v, e.low) +
               " to " + verdict_value_text(v, e.high) + " | " +
               (has_room ? printed("%+.1f %%", room * 100) : std::string()) + " | " +
               markdown_code(str(v.reason)) + " |\n";
    }
    if (const arm_figures& arm = g.figures.candidate; !arm.empty())
        out += "\n" + throughput_text(g, arm) + ", " +
               (arm.statuses.size() > 1 ? markdown_code(status_text(arm)) : status_text(arm)) +
               (g.self_check.ok ? "" : "; " + markdown_code(str(g.self_check.reason))) + "\n";
    for (const std::string& note : notes_on(g)) out += "\n" + markdown_escaped(note) + "\n";
    return out + "\n";
}

/// What objectives are that the repeats do not decide.
inline const char* undecided_text(const gate_report& g) {
    return g.undecided_fails ? "inconclusive, which fails this build"
                             : "inconclusive: green does not mean shown";
}

/// For a CI step summary or a comment: the gates that did not pass first, and whole gates only.
inline std::string summary_md(const std::vector<gate_report>& gates,
                              std::size_t at_most = summary_limit) {
    std::string out, rest;
    for (const gate_report& g : gates)
        for (const slo_verdict& v : g.verdicts)
            if (v.outcome == verdict::inconclusive && !v.what.is_advisory && out.empty())
                out = std::string("**Some objectives are ") + undecided_text(g) + ".**\n\n";
    std::size_t left = 0;
    const std::size_t room = at_most > 300 ? at_most - 300 : 0;  // for the sentence at the end
    for (const gate_outcome c : worst_first)
        for (const gate_report& g : gates) {
            if (g.outcome != c) continue;
            const std::string one = summary_of(g);
            if (left > 0 || out.size() + one.size() > room) ++left;
            else out += one;
        }
    if (left > 0)
        out += printed("**%zu of %zu gates are left out here, because GitHub shows no more: "
                       "report.html and junit.xml have them all.**\n", left, gates.size());
    return out;
}

/// GitHub's workflow commands: %, line ends and in properties ":" and "," are told in hexadecimal.
inline std::string workflow_escaped(std::string_view s, bool property) {
    std::string out;
    for (const char c : s) {
        const bool special = c == '%' || c == '\r' || c == '\n' ||
                             (property && (c == ':' || c == ','));
        out += special ? printed("%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)))
                       : std::string(1, c);
    }
    return out;
}

/// Annotations at the lines of the gates, worst first. GitHub shows ten of a kind for a step, so
/// nine are told and the rest is counted. `workspace` is cut off the names of the files.
inline std::string github_annotations(const std::vector<gate_report>& gates,
                                      const std::string& workspace) {
    struct note { int rank; std::size_t order; std::string text; };
    std::vector<note> notes;
    const auto add = [&](int rank, const char* level, std::string file, int line,
                         const std::string& title, const std::string& message) {
        if (!workspace.empty() && file.rfind(workspace + "/", 0) == 0)
            file.erase(0, workspace.size() + 1);
        notes.push_back({rank, notes.size(), printed("::%s file=%s,line=%d,title=%s::%s\n", level,
                                       workflow_escaped(file, true).c_str(), line,
                                       workflow_escaped(title, true).c_str(),
                                       workflow_escaped(message, false).c_str())});
    };
    for (const gate_report& g : gates) {
        if (!g.refusal.empty() && g.outcome != gate_outcome::skipped)
            add(1, "error", g.what.file, g.what.line, g.what.name, g.refusal);
        if (!g.beside.empty())
            add(1, "error", g.what.file, g.what.line, g.what.name, g.beside);
        for (const slo_verdict& v : g.verdicts) {
            if (!g.refusal.empty() || v.outcome == verdict::pass) continue;
            if (v.outcome == verdict::skipped) continue;
            const bool red = !v.what.is_advisory &&
                             (v.outcome != verdict::inconclusive || g.undecided_fails);
            const int rank = !red ? 3 : v.outcome == verdict::fail ? 0 : 2;
            // The guard on errors was not written by anybody: it stands at its gate.
            const bool written = v.what.at.line > 0;
            add(rank, red ? "error" : "warning", written ? v.what.at.file : g.what.file,
                written ? v.what.at.line : g.what.line, g.what.name, flat_line(v));
        }
    }
    std::sort(notes.begin(), notes.end(), [](const note& a, const note& b) {
        return a.rank != b.rank ? a.rank < b.rank : a.order < b.order;
    });
    std::string out;
    for (std::size_t i = 0; i < std::min<std::size_t>(notes.size(), 9); ++i) out += notes[i].text;
    if (notes.size() > 9)
        out += printed("::warning title=llmbench::%zu more, see the step summary\n",
                       notes.size() - 9);
    return out;
}

/// OpenMetrics text (version 1.0), for GitLab's metrics report among others. SI units. No '#' in a
/// label: GitLab takes it for the start of a comment and refuses the whole file.
inline std::string open_metrics(const std::vector<gate_report>& gates) {
    const auto label = [](const std::string& s) {
        std::string out;
        for (const char c : printable(s, s.size() * 4 + 4))
            out += c == '"' || c == '\\' ? std::string("\\") + c
                 : c == '#' ? "No. " : std::string(1, c);
        return out;
    };
    const auto number = [](double v) {
        return std::isnan(v) ? std::string("NaN")
               : std::isinf(v) ? std::string(v > 0 ? "+Inf" : "-Inf") : json_number(v);
    };
    std::string measured, estimates, limits, metrics;
    for (const gate_report& g : gates) {
        if (g.figures.candidate.empty()) continue;
        const std::string gate = "{gate=\"" + label(g.what.name) + "\",";
        for (const slo_verdict& v : g.verdicts) {
            const std::string of = gate + "slo=\"" + label(str(v.what.text())) + "\"} ";
            measured += "llmbench_slo_measured" + of + number(v.measured) + "\n";
            estimates += "llmbench_slo_estimate" + of + number(v.estimate.value) + "\n";
            limits += "llmbench_slo_limit" + of + number(v.limit) + "\n";
        }
        for (std::size_t i = 0; i < g.figures.table_rows; ++i) {
            const metric_row& r = g.figures.candidate.distributions[i].row;
            for (const auto& [name, value] :
                 {std::pair{"mean", r.mean}, std::pair{"p50", r.p50}, std::pair{"p90", r.p90},
                  std::pair{"p99", r.p99}, std::pair{"max", r.max}})
                metrics += "llmbench_latency_seconds" + gate + "metric=\"" + metric_name(r.metric) +
                           "\",statistic=\"" + name + "\"} " + number(value) + "\n";
        }
    }
    return "# TYPE llmbench_slo_measured gauge\n" + measured +
           "# TYPE llmbench_slo_estimate gauge\n" + estimates +
           "# TYPE llmbench_slo_limit gauge\n" + limits +
           "# TYPE llmbench_latency_seconds gauge\n# UNIT llmbench_latency_seconds seconds\n" +
           metrics + "# EOF\n";
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C89] what a console can show =============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// How the console may be written to.
struct console_style {
    bool colour = false;   // ANSI escapes
    bool unicode = false;  // UTF-8
};
struct console_facts {
    bool terminal = false;
    std::string no_color{}, clicolor_force{}, term{}, lc_all{}, lc_ctype{}, lang{};
};
inline console_style style_of(const console_facts& c) {
    const std::string& locale = !c.lc_all.empty() ? c.lc_all : !c.lc_ctype.empty() ? c.lc_ctype
                                                                                   : c.lang;
    std::string charset = locale.substr(std::min(locale.find('.'), locale.size()));
    charset = charset.substr(0, charset.find('@'));
    const bool forced = !c.clicolor_force.empty() && c.clicolor_force != "0";
    return {c.no_color.empty() && (forced || (c.terminal && c.term != "dumb")),
            same_ignoring_case(charset, ".utf-8") || same_ignoring_case(charset, ".utf8")};
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C90] the console =========================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The table of a calibration run.
inline std::string calibration_text(const gate_report& g) {
    std::size_t width = 0;
    for (const calibrated& c : g.calibration) width = std::max(width, c.what.text().size());
    const char* unit = g.what.has_baseline ? "pairs" : "repeats";
    std::string out = printed("  calibration over %zu %s\n  %-*s %11s %10s %15s  %s\n",
                              g.figures.candidate.repeats.size(), unit, static_cast<int>(width), "",
                              "typical", "noise sd", "headroom / sd",
                              "a limit that would seldom be inconclusive");
    for (const calibrated& c : g.calibration) {
        out += printed("  %-*s ", static_cast<int>(width), c.what.text().c_str());
        if (std::isnan(c.sd)) {
            out += "judged on counts, or without a finite value in every repeat\n";
            continue;
        }
        const std::string value = c.what.factor > 0 ? printed("%.3f x", c.estimate)
                                                    : value_text(c.what.what.metric, c.estimate);
        out += printed("%11s %8.2f %% %15.1f  %s\n", value.c_str(), c.sd * 100, c.headroom_sd,
                       c.suggestion.c_str());
    }
    return out;
}

/// A verdict's words in its colour, behind its mark where those can be shown.
inline std::string styled(verdict v, const std::string& words, const console_style& style) {
    struct dress { const char *mark, *colour; };
    const auto [mark, colour] = [&]() -> dress {
        switch (v) {
        case verdict::pass: return {"\u2713 ", "\x1b[32m"};
        case verdict::fail: return {"\u2717 ", "\x1b[1;31m"};
        case verdict::inconclusive: return {"? ", "\x1b[33m"};
        case verdict::invalid: return {"! ", "\x1b[1;35m"};
        case verdict::skipped: break;
        }
        return {"- ", "\x1b[2m"};
    }();
    const std::string marked = (style.unicode ? mark : "") + words;
    return style.colour ? colour + marked + "\x1b[0m" : marked;
}

/// The block that closes a gate on the console.
inline std::string console_text(const gate_report& g, const console_style& style = {}) {
    const std::string title = g.what.name + ": " + to_string(g.outcome);
    std::string out = "\n" + styled(verdict_like(g.outcome), title, style) + "\n";
    if (!g.refusal.empty()) return out + "  " + g.refusal + "\n";
    std::size_t width = 0;
    for (const slo_verdict& v : g.verdicts)
        width = std::max(width, std::min<std::size_t>(v.what.text().size(), 60));
    for (const slo_verdict& v : g.verdicts) {
        const std::string line = verdict_line(v, width);
        const std::size_t word = std::min(line.find(' '), line.size());
        out += "  " + styled(v.outcome, line.substr(0, word), style) + line.substr(word) + "\n";
        if (!v.advice.empty()) out += "                advice: " + str(v.advice) + "\n";
    }
    if (!g.calibration.empty()) out += "\n" + calibration_text(g);
    out += printed("\n  %-15s %10s %10s %10s %10s %10s\n", "", "mean", "p50", "p90", "p99", "max");
    for (std::size_t i = 0; i < g.figures.table_rows; ++i) {
        const metric_row& r = g.figures.candidate.distributions[i].row;
        out +=
            printed("  %-15s %10s %10s %10s %10s %10s\n", metric_name(r.metric),
                    time_text(r.mean).c_str(), time_text(r.p50).c_str(), time_text(r.p90).c_str(),
                    time_text(r.p99).c_str(), time_text(r.max).c_str());
    }
    out += printed("  output %s, %s\n",
                   throughput_text(g, g.figures.candidate).c_str(),
                   status_text(g.figures.candidate).c_str());
    if (!g.figures.baseline.empty())
        out += "  baseline: " + status_text(g.figures.baseline) + "\n";
    for (const std::string& note : notes_on(g)) out += "  " + note + "\n";
    return out + "  client: " + self_check_text(g.self_check) + "\n";
}

/// The last word where there were several gates: how many ended how, and which did not pass.
inline std::string closing_text(const std::vector<gate_report>& gates,
                                const console_style& style = {}) {
    const auto why = [](const gate_report& g) {
        return g.beside.empty() ? std::string() : ": " + g.beside;
    };
    if (gates.size() == 1 && !gates[0].beside.empty())
        return "\n" + gates[0].what.name + why(gates[0]) + "\n";
    if (gates.size() < 2) return {};
    std::string counts, names;
    std::size_t named = 0, left = 0;
    for (const gate_outcome c : worst_first) {
        std::size_t n = 0;
        for (const gate_report& g : gates) {
            if (g.outcome != c) continue;
            ++n;
            if (c == gate_outcome::passed) continue;
            if (++named > 20) ++left;
            else names += "  " + styled(verdict_like(c), to_string(c), style) + "  " +
                          g.what.name + why(g) + "\n";
        }
        if (n > 0) counts += printed("%s %zu %s", counts.empty() ? "" : ",", n, to_string(c));
    }
    if (left > 0) names += printed("  and %zu more\n", left);
    return printed("\n%zu gates:%s\n", gates.size(), counts.c_str()) + names;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C91] the report page: style, icons and script ============================================
// report.html: one page that needs nothing from elsewhere. Every drawing is made here, as SVG with
// words beside it; the script adds what a pointer asks for, the page is whole without it. What a
// gate, a server or a machine says goes through xml_escaped, a place in a drawing through pixels.

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr const char* page_style = R"css(
:root{color-scheme:light dark;--ink:#1b2026;--dim:#56606b;--line:#dde2e7;--back:#fff;--soft:#f5f7f9;
--pass:#0a6b4d;--fail:#b3261e;--inconclusive:#875200;--invalid:#6b3fa0;--skipped:#56606b;
--mine:#1c62ad;--other:#a35a10;--allowed:#e3f1ec}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--dim:#a3adb8;--line:#343b43;--back:#14171a;
--soft:#1c2025;--pass:#5fcfa4;--fail:#ff9086;--inconclusive:#f0b64c;--invalid:#c8a4f5;
--skipped:#a3adb8;--mine:#79b3f2;--other:#e6a563;--allowed:#1d3730}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;margin:0 auto;
max-width:76rem;padding:1.25rem 1rem 4rem;color:var(--ink);background:var(--back);
font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem;font-weight:650}
h2{font-size:1.25rem;line-height:1.3;margin:0;font-weight:650}
h3{font-size:1rem;margin:2rem 0 .5rem;font-weight:650}
p{margin:.25rem 0;text-wrap:pretty}a{color:inherit;text-underline-offset:.15em}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-size:.87em}
pre{white-space:pre-wrap;background:var(--soft);padding:.6rem .8rem;border-radius:6px;
margin:.5rem 0}
.dim{color:var(--dim)}.note{font-size:.87rem;color:var(--dim)}
.icon{width:1em;height:1em;vertical-align:-.12em;margin-right:.35em;fill:none;stroke:currentColor;
stroke-width:2.4;stroke-linecap:round;stroke-linejoin:round}
.badge{white-space:nowrap;font-weight:650}
.pass{color:var(--pass)}.fail{color:var(--fail)}.inconclusive{color:var(--inconclusive)}
.invalid{color:var(--invalid)}.skipped{color:var(--skipped)}
ol,ul{list-style:none;margin:0;padding:0}
.gates{margin:1rem 0 0;border-top:1px solid var(--line)}
.gates li{display:grid;grid-template-columns:7.5rem 1fr;padding:.5rem 0;
border-bottom:1px solid var(--line)}
.gates p{margin:0}
.filter{display:flex;flex-wrap:wrap;gap:.4rem;margin-top:1rem}.filter[hidden]{display:none}
button{font:inherit;font-size:.87rem;color:inherit;background:none;border:1px solid var(--line);
border-radius:1rem;padding:.25rem .8rem;cursor:pointer}
button[aria-pressed=true]{background:var(--ink);color:var(--back);border-color:var(--ink)}
:focus-visible{outline:2px solid var(--mine);outline-offset:2px}
section{margin-top:2.5rem;padding-top:1.5rem;border-top:3px solid var(--line)}
section[hidden],li[hidden]{display:none}
.why{font-size:1.05rem;max-width:60rem}
.verdicts{margin-top:1rem;border-top:1px solid var(--line)}
.verdicts code{font-size:.95em}
.verdicts>li{display:grid;grid-template-columns:8rem minmax(0,1fr) auto 20rem;gap:0 1.25rem;
padding:.65rem 0;border-bottom:1px solid var(--line);align-items:start}
.found{text-align:right;white-space:nowrap}.found b{font-size:1.15rem;font-weight:650;display:block;
line-height:1.3}.found span{display:block}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,16.5rem),1fr));
gap:1.25rem 1.25rem}
figure{margin:0;min-width:0}figcaption{font-weight:600;font-size:.93rem}
figcaption span{font-weight:400;font-size:.87rem;color:var(--dim);margin-left:.4em}
.arm.c{color:var(--mine)}.arm.b{color:var(--other)}.note .arm{margin-left:.6em}
svg.plot{display:block;width:100%;height:auto;touch-action:pan-y}
svg text{font:11px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
fill:var(--dim);font-variant-numeric:tabular-nums}
.grid{stroke:var(--line);stroke-width:1}
polyline{fill:none;stroke-width:1.4;stroke-linejoin:round;opacity:.85}
polyline.c{stroke:var(--mine)}polyline.b{stroke:var(--other);stroke-dasharray:5 2}
polyline.c1{stroke:var(--mine);stroke-width:2.2}
polyline.b1{stroke:var(--other);stroke-width:2.2;stroke-dasharray:5 2}
polyline.c2{stroke:var(--mine);opacity:.4;stroke-width:1}
polyline.b2{stroke:var(--other);opacity:.4;stroke-width:1}
polyline.a{stroke:var(--dim);stroke-width:4;opacity:.35}polyline.f{stroke:var(--fail)}
circle.c{fill:var(--mine)}circle.b{fill:var(--other)}
.limit{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:3 2}
svg text.mark{fill:var(--ink);paint-order:stroke;stroke:var(--back);stroke-width:3px}
.ring{fill:var(--back);stroke:var(--ink);stroke-width:1.5}
.span{stroke:var(--ink);stroke-width:3;opacity:.55}.typical{fill:var(--ink)}
.data{fill:var(--back);stroke:currentColor;stroke-width:1.5}
.cross{stroke:var(--dim);stroke-width:1}
.allowed{fill:var(--allowed)}.rug{stroke:currentColor;stroke-width:1.5;opacity:.75}
.bar{fill:currentColor;opacity:.4}.dot{fill:currentColor;stroke:var(--back);stroke-width:1.5}
#tip{position:fixed;z-index:1;pointer-events:none;background:var(--ink);color:var(--back);
font-size:.8rem;line-height:1.4;padding:.3rem .55rem;border-radius:5px;white-space:pre}
#tip[hidden]{display:none}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}
th,td{text-align:left;padding:.25rem 1.1rem .25rem 0;border-bottom:1px solid var(--line);
vertical-align:top;font-weight:400}
thead th{color:var(--dim);font-size:.87rem}th[scope=row]{font-weight:600}
td.n,th.n{text-align:right;white-space:nowrap}th[scope=row],.arm{white-space:nowrap}
details{border-bottom:1px solid var(--line);padding:.5rem 0}
summary{cursor:pointer;font-weight:600}summary span{font-weight:400;color:var(--dim)}
dl{display:grid;grid-template-columns:minmax(7rem,max-content) minmax(0,1fr);gap:.25rem 1.25rem;
margin:.6rem 0;font-size:.9rem}
dt{color:var(--dim)}dd{margin:0}
@media(max-width:56rem){.verdicts>li{grid-template-columns:minmax(0,1fr) auto;gap:.15rem 1rem}
.verdicts .badge{grid-area:1/1}.verdicts .found{grid-area:1/2/3/3}
.verdicts .plot,.verdicts .none{grid-column:1/3;max-width:26rem}}
@media(max-width:30rem){th,td{padding-right:.5rem}table{font-size:.8rem}h1{font-size:1.35rem}
th[scope=row]{white-space:normal;overflow-wrap:normal}.verdicts .found{grid-area:1/2}
.verdicts>li>div:first-of-type{grid-column:1/3}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.4rem}.gates li{grid-template-columns:1fr}}
@media print{body{max-width:none;padding:0;font-size:10.5pt}.filter,#tip{display:none}
section{break-before:auto}figure,.verdicts>li,table,dl{break-inside:avoid}
h2,h3,summary{break-after:avoid}.plots{grid-template-columns:repeat(2,1fr)}}
)css";

inline constexpr const char* page_icons = R"svg(
<svg width="0" height="0" style="position:absolute" aria-hidden="true">
<symbol id="icon-pass" viewBox="0 0 16 16"><path d="M2.5 8.5l4 4 7-9"/></symbol>
<symbol id="icon-fail" viewBox="0 0 16 16"><path d="M3 3l10 10M13 3L3 13"/></symbol>
<symbol id="icon-inconclusive" viewBox="0 0 16 16">
<path d="M2 6q3-3.500 6 0t6 0M2 11q3-3.500 6 0t6 0"/></symbol>
<symbol id="icon-invalid" viewBox="0 0 16 16"><path d="M8 2v7.500M8 13.400v.1"/></symbol>
<symbol id="icon-skipped" viewBox="0 0 16 16"><path d="M3 8h10"/></symbol></svg>
)svg";

// A plot's data-x and data-y are "scale low high unit"; the numbers under the pointer are read back
// from the lines themselves. Text goes in as text, never as markup.
inline constexpr const char* page_script = R"js(
(() => {
"use strict";
const box = {l: 50, r: 288, t: 8, b: 142};
const tip = document.createElement("div");
tip.id = "tip"; tip.hidden = true; document.body.append(tip);
const axis = (text, from, to) => {
  const [kind, low, high, unit] = text.split(" ");
  const bend = {linear: v => v, log: Math.log10, nines: v => -Math.log10(1 - v)}[kind];
  const back = {linear: v => v, log: v => 10 ** v, nines: v => 1 - 10 ** -v}[kind];
  const a = bend(+low), b = bend(+high);
  return {unit, value: p => back(a + (p - from) / (to - from) * (b - a))};
};
const digits = v => v >= 999.5 ? v.toFixed(0) : String(+v.toPrecision(3));
const show = (v, unit) => {
  if (unit === "share") return digits(v * 100) + " %";
  if (unit === "percentile") return "p" + +(v * 100).toPrecision(v > .99 ? 4 : 3);
  if (unit === "seconds") {
    const a = Math.abs(v);
    return a < 9.99e-4 ? digits(v * 1e6) + " us" : a < .9995 ? digits(v * 1e3) + " ms"
      : digits(v) + " s";
  }
  if (unit === "elapsed") return v < 600 ? v.toFixed(1) + " s" : (v / 60).toFixed(1) + " min";
  return digits(v) + (unit === "none" ? "" : " " + unit);
};
const between = (points, at, i) => {
  for (let k = 1; k < points.length; k++) {
    const a = points[k - 1], b = points[k];
    if (at < Math.min(a[i], b[i]) || at > Math.max(a[i], b[i])) continue;
    const part = a[i] === b[i] ? 0 : (at - a[i]) / (b[i] - a[i]);
    return a[1 - i] + part * (b[1 - i] - a[1 - i]);
  }
  return null;
};
const hover = svg => {
  const x = axis(svg.dataset.x, box.l, box.r), y = axis(svg.dataset.y, box.b, box.t);
  const i = svg.dataset.by === "y" ? 1 : 0, along = i ? y : x, across = i ? x : y;
  const lines = [...svg.querySelectorAll("polyline")].map(line => ({name: line.dataset.n,
    points: line.getAttribute("points").split(" ").map(p => p.split(",").map(Number))}));
  const cross = document.createElementNS(svg.namespaceURI, "line");
  cross.setAttribute("class", "cross");
  const leave = () => { tip.hidden = true; cross.remove(); };
  const move = e => {
    const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
    if (p.x < box.l || p.x > box.r || p.y < box.t || p.y > box.b) return leave();
    const at = i ? p.y : p.x, found = new Map();
    for (const line of lines) {
      const v = between(line.points, at, i);
      if (v !== null) found.set(line.name, [...(found.get(line.name) || []), across.value(v)]);
    }
    const said = [...found].map(([name, all]) => {
      const low = show(Math.min(...all), across.unit), high = show(Math.max(...all), across.unit);
      return (name ? name + "  " : "") + (low === high ? low : low + " to " + high);
    });
    tip.textContent = [show(along.value(at), along.unit), ...said].join("\n");
    const ends = i ? {x1: box.l, x2: box.r, y1: at, y2: at}
                   : {x1: at, x2: at, y1: box.t, y2: box.b};
    for (const k in ends) cross.setAttribute(k, ends[k]);
    svg.append(cross);
    tip.hidden = false;
    tip.style.left = Math.max(0, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 6)) + "px";
    tip.style.top = Math.max(0, e.clientY - tip.offsetHeight - 10) + "px";
  };
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerdown", move);
  svg.addEventListener("pointerleave", leave);
};
for (const svg of document.querySelectorAll("svg[data-x]"))
  svg.addEventListener("pointerenter", () => hover(svg), {once: true});
const filter = document.querySelector(".filter");
if (filter) {
  filter.hidden = false;
  filter.addEventListener("click", e => {
    const button = e.target.closest("button");
    if (!button) return;
    for (const b of filter.children) b.setAttribute("aria-pressed", String(b === button));
    for (const part of document.querySelectorAll("[data-outcome]"))
      part.hidden = !["all", part.dataset.outcome].includes(button.dataset.show);
  });
}
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const d of closed) d.open = true;
});
addEventListener("afterprint", () => { for (const d of closed) d.open = false; });
})();
)js";

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C92] the report page: drawings ===========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A place in a drawing: tenths of a pixel, never "nan", "inf" or "-0".
inline std::string pixels(double v) {
    const long long tenths =
        std::isfinite(v) ? std::llround(std::clamp(v, -9999.0, 9999.0) * 10) : 0;
    return tenths % 10 == 0 ? std::to_string(tenths / 10)
                            : printed("%.1f", static_cast<double>(tenths) / 10);
}

/// How values lie along a side of a plot. `nines` is for quantiles: p90 to p99 is as long as p99 to
/// p99.9.
struct plot_scale {
    enum class shape { linear, logarithmic, nines };
    shape how = shape::linear;
    double low = 0, high = 1;
    double bent(double v) const {
        if (how == shape::logarithmic) return std::log10(std::max(v, low));
        if (how == shape::nines) return -std::log10(std::max(1 - v, 1e-9));
        return v;
    }
    /// 0 at `low`, 1 at `high`, and nowhere else.
    double place(double v) const {
        const double length = bent(high) - bent(low);
        if (!(length > 0)) return 0.5;
        return std::clamp((bent(v) - bent(low)) / length, 0.0, 1.0);
    }
    std::string attribute(const char* unit) const {
        const char* name = how == shape::linear ? "linear" : how == shape::nines ? "nines" : "log";
        return printed("%s %.6g %.6g %s", name, low, high, unit);
    }
};

/// Up to `most` + 1 round values within the scale.
inline std::vector<double> ticks_of(const plot_scale& s, int most) {
    std::vector<double> ticks;
    if (!(s.high > s.low)) return {s.low};
    if (s.how == plot_scale::shape::logarithmic) {
        const double decades = std::log10(s.high / s.low);
        const int each = std::max(1, static_cast<int>(std::ceil(decades / most)));
        const int first = static_cast<int>(std::floor(std::log10(s.low)));
        for (int e = first; std::pow(10, e) <= s.high; e += each)
            for (const double digit : {1.0, 2.0, 5.0}) {
                const double v = digit * std::pow(10, e);
                const bool wanted = digit == 1 || decades < 1.8;
                if (wanted && v >= s.low * (1 - 1e-9) && v <= s.high * (1 + 1e-9))
                    ticks.push_back(v);
            }
        return ticks;
    }
    const double step = round_step((s.high - s.low) / most);
    const auto first = static_cast<long long>(std::ceil(s.low / step - 1e-9));
    for (long long k = first; static_cast<double>(k) * step <= s.high + step * 1e-9; ++k)
        ticks.push_back(static_cast<double>(k) * step);
    return ticks;
}

/// What a plot says of a value along its side.
enum class plot_unit { seconds, elapsed, per_second, tokens_per_second, share, percentile, none };
inline const char* unit_name(plot_unit u) {  // as the script knows it
    switch (u) {
        case plot_unit::seconds: return "seconds";
        case plot_unit::elapsed: return "elapsed";
        case plot_unit::per_second: return "req/s";
        case plot_unit::tokens_per_second: return "tok/s";
        case plot_unit::share: return "share";
        case plot_unit::percentile: return "percentile";
        case plot_unit::none: return "none";
    }
    return "";
}
inline std::string tick_text(plot_unit u, double v) {
    if (u == plot_unit::seconds) return v == 0 ? "0" : time_text(v);
    if (u == plot_unit::share) return printed("%.4g %%", v * 100);
    if (u == plot_unit::percentile) return v == 0 ? "" : printed("p%.6g", v * 100);
    if (u != plot_unit::elapsed) return printed("%.6g", v);
    const double a = std::fabs(v);
    return a >= 7200  ? printed("%.3g h", v / 3600)
           : a >= 300 ? printed("%.4g min", v / 60)
                      : printed("%.4g s", v);
}
/// A drawing with two axes.
class plot {
public:
    static constexpr double left = 50, right = 288, top = 8, bottom = 142;

    plot(const plot_scale& x, plot_unit x_unit, const plot_scale& y, plot_unit y_unit)
        : x_(x), y_(y), x_unit_(x_unit), y_unit_(y_unit) {
        std::vector<double> across =
            ticks_of(x, x.how == plot_scale::shape::linear ? 4 : 5);
        if (x_unit == plot_unit::elapsed && x.high > x.low) {
            const double step = elapsed_step((x.high - x.low) / 5);
            across.clear();
            for (double k = std::ceil(x.low / step - 1e-9); k * step <= x.high; ++k)
                across.push_back(k * step + 0.0);
        }
        for (const double v : across) {
            frame_ += "<path class=\"grid\" d=\"M" + pixels(at_x(v)) + " 142v4\"/>";
            put_text(frame_, at_x(v), 157, at_x(v) > right - 12 ? "end" : "middle", "",
                     tick_text(x_unit, v));
        }
        if (y.how == plot_scale::shape::nines) {
            for (const double q : {0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999})
                if (q <= y.high) horizontal(q);
        } else {
            for (const double v : ticks_of(y, 4)) horizontal(v);
        }
    }
    /// NaN breaks the line.
    void line(const char* style, const std::string& name, const std::vector<curve_point>& points) {
        std::string path;
        std::size_t n = 0;
        const auto end = [&] {
            if (n == 1) {
                const std::size_t comma = path.find(',');
                drawn_ += std::string("<circle class=\"") + style[0] + "\" r=\"2\" cx=\"" +
                          path.substr(0, comma) + "\" cy=\"" + path.substr(comma + 1) + "\"/>";
            } else if (n > 1) {
                drawn_ += std::string("<polyline class=\"") + style + "\" data-n=\"" +
                          xml_escaped(name) + "\" points=\"" + path + "\"/>";
            }
            path.clear();
            n = 0;
        };
        std::string last;
        for (const curve_point& p : points) {
            if (std::isnan(p.x) || std::isnan(p.y)) {
                end();
                last.clear();
                continue;
            }
            const std::string place = pixels(at_x(p.x)) + "," + pixels(at_y(p.y));
            if (place == last) continue;
            path += (n++ ? " " : "") + place;
            last = place;
        }
        end();
    }
    void dot(const char* style, const curve_point& p) {
        drawn_ += std::string("<circle class=\"") + style + "\" r=\"3.5\" cx=\"" +
                  pixels(at_x(p.x)) + "\" cy=\"" + pixels(at_y(p.y)) + "\"/>";
    }
    void label(const curve_point& p, const std::string& words) {
        const bool near_end = at_x(p.x) > right - 60;
        put_text(drawn_, at_x(p.x) + (near_end ? -6 : 6), at_y(p.y) - 5, near_end ? "end" : "start",
                 "mark", words);
    }
    /// A limit on what lies along x. Of a quantile it ends in a ring at its height, so that a curve
    /// which crosses it misses it; of a mean it is a mark on the axis.
    void limit(double x, double q, bool at_most, const std::string& words) {
        const double place = at_x(x);
        const double from = std::isnan(q) ? bottom - 14 : at_most ? at_y(q) : top;
        const double to = std::isnan(q) || at_most ? bottom : at_y(q);
        drawn_ += "<path class=\"limit\" d=\"M" + pixels(place) + " " + pixels(from) + "V" +
                  pixels(to) + "\"/>";
        if (!std::isnan(q))
            drawn_ += "<circle class=\"ring\" r=\"3.5\" cx=\"" + pixels(place) + "\" cy=\"" +
                      pixels(at_y(q)) + "\"/>";
        // Above and left of a rising curve is room, and below and right of it.
        const bool low = place > (left + right) / 2, before = place > left + 80;
        const double at = std::isnan(q) ? bottom - 18 - 13 * limits_
                          : low         ? 136 - 13 * limits_
                                        : at_y(q) - 6;
        put_text(drawn_, place + (before ? -6 : 6), at, before ? "end" : "start", "mark", words);
        limits_ += low || std::isnan(q);
    }
    /// A value in its interval, at the height of its quantile; of a mean above the axis.
    void interval(double x, double low, double high, double q) {
        if (!std::isfinite(x)) return;
        const std::string y = pixels(std::isnan(q) ? bottom - 6 : at_y(q));
        const double from = at_x(std::isfinite(low) ? low : x);
        const double to = std::isnan(high) ? at_x(x) : std::isinf(high) ? right : at_x(high);
        drawn_ += "<path class=\"span\" d=\"M" + pixels(from) + " " + y + "H" + pixels(to) +
                  "\"/><circle class=\"typical\" r=\"2.5\" cx=\"" + pixels(at_x(x)) + "\" cy=\"" +
                  y + "\"/>";
    }
    /// `alt` says in words what is seen.
    std::string figure(const std::string& caption, const std::string& alt,
                       bool reads_across) const {
        return "<figure><figcaption>" + caption + "</figcaption><svg class=\"plot\" role=\"img\" " +
               "viewBox=\"0 0 300 162\" aria-label=\"" + xml_escaped(alt) + "\" data-x=\"" +
               x_.attribute(unit_name(x_unit_)) + "\" data-y=\"" +
               y_.attribute(unit_name(y_unit_)) + (reads_across ? "\" data-by=\"y\">" : "\">") +
               frame_ + drawn_ + "</svg></figure>\n";
    }

private:
    double at_x(double v) const { return left + x_.place(v) * (right - left); }
    double at_y(double v) const { return bottom - y_.place(v) * (bottom - top); }
    void horizontal(double v) {
        frame_ += "<path class=\"grid\" d=\"M50 " + pixels(at_y(v)) + "H288\"/>";
        put_text(frame_, 45, at_y(v) + 4, "end", "", tick_text(y_unit_, v));
    }
    static void put_text(std::string& into, double x, double y, const char* anchor,
                         const char* style, const std::string& words) {
        into += "<text x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" text-anchor=\"" + anchor +
                (*style ? std::string("\" class=\"") + style : "") + "\">" + xml_escaped(words) +
                "</text>";
    }

    plot_scale x_, y_;
    plot_unit x_unit_, y_unit_;
    std::string frame_{}, drawn_{};
    int limits_ = 0;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C93] the report page: verdicts ===========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::string icon(const char* name) {
    return printed("<svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-%s\"/></svg>", name);
}
inline std::string badge(const char* look, const std::string& words) {
    return std::string("<span class=\"badge ") + look + "\">" + icon(look) + words + "</span>";
}
/// The look of a gate: that of the verdict that its outcome resembles.
inline const char* look_of(gate_outcome o) { return to_string(verdict_like(o)); }
inline std::string plural(std::size_t n, const char* one) {
    return printed("%zu %s%s", n, one, n == 1 ? "" : "s");
}
inline std::size_t count_of(const gate_report& g, verdict outcome) {
    std::size_t n = 0;
    for (const slo_verdict& v : g.verdicts) n += v.outcome == outcome && !v.what.is_advisory;
    return n;
}

/// Keeps the ends of lines, which xml_escaped makes spaces.
inline std::string escaped_lines(std::string_view s) {
    std::string out;
    for (std::size_t end = 0; !s.empty(); s.remove_prefix(end)) {
        const std::size_t line = std::min(s.find('\n'), s.size());
        end = std::min(line + 1, s.size());
        out += xml_escaped(s.substr(0, line)) + (end > line ? "\n" : "");
    }
    return out;
}

/// Why the gate ended as it did, in one or two sentences.
inline std::string gate_sentence(const gate_report& g) {
    if (!g.refusal.empty()) return g.refusal;
    if (!g.beside.empty()) return g.beside + ".";
    if (g.verdicts.empty()) return "Measured only: no objective was set.";
    for (const verdict outcome :
         {verdict::fail, verdict::invalid, verdict::inconclusive, verdict::skipped}) {
        for (const slo_verdict& v : g.verdicts) {
            if (v.outcome != outcome || v.what.is_advisory) continue;
            const std::string slo = str(v.what.text()), why = str(v.reason);
            const std::string room = room_text(v);
            std::string t;
            if (outcome == verdict::fail)
                t = slo + " is missed: " + measured_text(v) + (room.empty() ? "" : ", " + room);
            else if (outcome == verdict::inconclusive)
                t = slo + " is neither shown to be met nor missed" +
                    (why.empty() ? "" : ": " + why);
            else t = why.empty() ? slo + " is " + to_string(outcome) : why;
            const std::size_t others = count_of(g, outcome) - 1;
            if (others > 0 && outcome != verdict::skipped)
                t += "; " + plural(others, "more objective") + " " +
                     (outcome == verdict::fail ? "missed" : to_string(outcome));
            return t + ".";
        }
    }
    std::size_t n = count_of(g, verdict::pass);
    std::string errors;
    for (const slo_verdict& v : g.verdicts)
        if (is_only_observed(v) && !v.what.is_advisory) {
            --n;
            errors = " Errors: " + str(v.reason) + ".";
        }
    return (n == 0   ? "No objective was set."
            : n == 1 ? "The objective is met."
            : n == 2 ? "Both objectives are met."
                     : printed("All %zu objectives are met.", n)) +
           errors;
}

/// What was measured, as a diamond; what the verdict rests on, as a dot with its interval, and what
/// each repeat says; all of it beside the limit.
inline std::string interval_svg(const slo_verdict& v) {
    std::vector<double> rug;
    for (const named_values& n : v.inputs)
        if (str(n.name) == "values" || str(n.name) == "ratios")
            for (const double x : n.values) rug.push_back(x);
    const estimate_t& e = v.estimate;
    double low = v.limit, high = v.limit;
    const auto widen = [&](double x) {
        if (std::isfinite(x)) {
            low = std::min(low, x);
            high = std::max(high, x);
        }
    };
    for (const double x : {v.measured, e.value, e.low, e.high}) widen(x);
    for (const double x : rug) widen(x);
    const double margin = high > low ? 0.08 * (high - low) : std::max(std::fabs(high) * 0.2, 1e-6);
    const plot_scale s{plot_scale::shape::linear, low - margin, high + margin};
    const auto at = [&](double x) {
        return std::isfinite(x) ? 4 + 312 * s.place(x) : x > 0 ? 313 : 7;
    };
    const double limit = at(v.limit), from = v.what.at_most ? 4 : limit;
    std::string out =
        // No green over what is not shown.
        std::string("<svg class=\"plot ") +
        to_string(is_only_observed(v) ? verdict::skipped : v.outcome) +
        "\" role=\"img\" viewBox=\"0 0 320 42\" aria-label=\"" +
        xml_escaped(measured_text(v) + ", interval " + verdict_value_text(v, e.low) + " to " +
                    verdict_value_text(v, e.high) + ", limit " + verdict_limit_text(v)) +
        "\">";
    out += "<rect class=\"allowed\" x=\"" + pixels(from) + "\" y=\"4\" height=\"22\" width=\"" +
           pixels(v.what.at_most ? limit - 4 : 316 - limit) + "\"/>";
    const double a = at(std::isnan(e.low) ? e.value : e.low);
    const double b = at(std::isnan(e.high) ? e.value : e.high);
    out += "<rect class=\"bar\" x=\"" + pixels(std::min(a, b)) +
           "\" y=\"12\" height=\"6\" rx=\"3\" "
           "width=\"" +
           pixels(std::max(std::fabs(b - a), 1.0)) + "\"/>";
    for (const double x : rug)
        if (!std::isnan(x)) out += "<path class=\"rug\" d=\"M" + pixels(at(x)) + " 8v14\"/>";
    out += "<circle class=\"dot\" r=\"5\" cy=\"15\" cx=\"" + pixels(at(e.value)) + "\"/>";
    if (!std::isnan(v.measured))
        out += "<path class=\"data\" d=\"M" + pixels(at(v.measured)) + " 22l4 4-4 4-4-4z\"/>";
    out += "<path class=\"limit\" d=\"M" + pixels(limit) + " 1V29\"/>";
    const char* anchor = limit < 60 ? "start" : limit > 260 ? "end" : "middle";
    out += "<text class=\"mark\" y=\"40\" x=\"" + pixels(limit) + "\" text-anchor=\"" + anchor +
           "\">limit " + xml_escaped(verdict_limit_text(v)) + "</text>";
    return out + "</svg>";
}

inline constexpr const char* verdicts_key =
    "<p class=\"note\">Measured, in bold and as a diamond: the requests of all repeats together. "
    "What a verdict rests on, as a dot in its interval: the typical repeat, which is the geometric "
    "mean of the repeats, the upright strokes; of shares all requests counted.</p>\n";
inline std::string verdict_item(const slo_verdict& v) {
    std::string h = "<li>" + badge(to_string(v.outcome), to_string(v.outcome));
    h += "<div><code>" + xml_escaped(str(v.what.text())) + "</code>";
    const std::string reason = str(v.reason), advice = str(v.advice);
    std::string notes = room_text(v);
    if (v.repeats > 0)
        notes += (notes.empty() ? "" : "; ") +
                 plural(static_cast<std::size_t>(v.repeats),
                        v.unit.empty() ? "repeat" : v.unit.c_str()) +
                 ", " + plural(static_cast<std::size_t>(v.requests), "request");
    if (!notes.empty()) h += "<p class=\"note\">" + xml_escaped(notes) + "</p>";
    if (!reason.empty()) h += "<p class=\"note\">" + xml_escaped(reason) + "</p>";
    if (!advice.empty()) h += "<p class=\"note\">Advice: " + xml_escaped(advice) + "</p>";
    h += "</div>";
    const estimate_t& e = v.estimate;
    if (std::isnan(e.value)) return h + "<span class=\"found dim\">not measured</span></li>\n";
    h += "<div class=\"found\"><b>" + xml_escaped(verdict_value_text(v, v.measured)) + "</b>";
    const std::string basis = basis_name(v);
    if (!basis.empty())
        h += "<span class=\"note basis\">" +
             xml_escaped(basis + " " + verdict_value_text(v, e.value)) + "</span>";
    if (has_interval(v))
        h += "<span class=\"note interval\">" + xml_escaped(verdict_value_text(v, e.low)) + " to " +
             xml_escaped(verdict_value_text(v, e.high)) + "</span>";
    return h + "</div>" + interval_svg(v) + "</li>\n";
}

/// A table that scrolls by itself where the page is too narrow for it.
inline std::string page_table(const std::string& name, const std::vector<std::string>& head,
                              const std::string& rows, std::size_t words = 1) {
    std::string h = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
                    xml_escaped(name) + "\"><table><thead><tr>";
    for (std::size_t i = 0; i < head.size(); ++i)
        h += (i < words ? "<th scope=\"col\">" : "<th scope=\"col\" class=\"n\">") + head[i] +
             "</th>";
    return h + "</tr></thead><tbody>\n" + rows + "</tbody></table></div>\n";
}
inline std::string number_cell(const std::string& s) { return "<td class=\"n\">" + s + "</td>"; }

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C94] the report page: distributions ======================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::string arms_key(bool has_baseline) {
    return has_baseline
               ? " <b class=\"arm c\">candidate</b> <b class=\"arm b\">- - baseline</b>"
               : "";
}

inline std::string distribution_figure(const gate_report& g, metric_id id,
                                       const arm_distribution& mine,
                                       const arm_distribution& other) {
    const bool both = !g.figures.baseline.empty();
    double low = std::min(mine.least, other.least), high = std::max(mine.most, other.most);
    if (!(high > 0)) return {};
    low = std::max(low, high * 1e-5);
    for (const slo_verdict& v : g.verdicts)  // a limit far off would squeeze all else into a corner
        if (v.what.what.metric == id && v.what.factor == 0 && v.limit > 0) {
            if (v.limit < 20 * high) high = std::max(high, v.limit);
            if (v.limit > low / 20) low = std::min(low, v.limit);
        }
    plot_scale x{plot_scale::shape::logarithmic, low / 1.05, high * 1.05};
    if (high < 6 * low) {
        const double margin = std::max(0.06 * (high - low), 0.02 * high);
        x = {plot_scale::shape::linear, std::max(0.0, low - margin), high + margin};
    }
    const std::size_t least =
        both && other.values > 0 ? std::min(mine.values, other.values) : mine.values;
    const bool speed = is_speed(id);
    const plot_scale y =
        speed ? plot_scale{plot_scale::shape::linear, 0, 1}
              : plot_scale{plot_scale::shape::nines, 0, 1 - std::pow(10, -nines_of(least))};
    plot p(x, speed ? plot_unit::tokens_per_second : plot_unit::seconds, y, plot_unit::percentile);
    for (const auto* arm : {&other, &mine}) {
        const auto draw = [&](const char* style, const char* name, const auto& line) {
            std::vector<curve_point> shown;
            for (const curve_point& q : line)
                if (q.y <= y.high + 1e-12) shown.push_back({std::min(q.x, x.high), q.y});
            p.line(style, name, shown);
        };
        const bool is_mine = arm == &mine;
        for (const std::vector<curve_point>& line : arm->lines)
            draw(is_mine ? "c2" : "b2",
                 !both ? "repeats" : is_mine ? "candidate's repeats" : "baseline's repeats", line);
        draw(is_mine ? "c1" : "b1", !both ? "all" : is_mine ? "candidate" : "baseline",
             arm->pooled);
    }
    std::string limits;
    for (const slo_verdict& v : g.verdicts) {
        const statistic_data& what = v.what.what;
        if (what.metric != id || v.what.factor > 0) continue;
        const bool seen = v.limit >= x.low && v.limit <= x.high;
        const double q = what.kind == statistic_kind::percentile ? what.q
                         : what.kind == statistic_kind::max      ? y.high
                         : what.kind == statistic_kind::min      ? y.low
                                                                 : not_a_number;
        const std::string words = str(what.name).substr(0, str(what.name).find('(')) +
                                  (v.what.at_most ? " <= " : " >= ") + limit_text(id, v.limit);
        p.limit(v.limit, q, v.what.at_most,
                seen               ? words
                : v.limit > x.high ? words + ", far right"
                                   : words + ", far left");
        p.interval(v.estimate.value, v.estimate.low, v.estimate.high, q);
        limits += "; limit " + str(v.what.text()) + ", " + measured_text(v);
    }
    const auto told = [&](const metric_row& r) {
        return "p50 " + value_text(id, r.p50) + ", p90 " + value_text(id, r.p90) + ", p99 " +
               value_text(id, r.p99);
    };
    const std::string alt = std::string(metric_name(id)) + " by percentile, " +
                            plural(mine.lines.size(), "repeat") + ": " + told(mine.row) +
                            (both ? "; baseline: " + told(other.row) : "") + limits;
    return p.figure(metric_name(id), alt, true);
}

inline std::string latency_table(const gate_report& g) {
    const gate_figures& all = g.figures;
    const bool both = !all.baseline.empty();
    std::string rows;
    const auto row = [&](const std::string& head, const metric_row& r, auto&& text) {
        rows += "<tr>" + head;
        for (const double v : {r.mean, r.p50, r.p90, r.p99, r.max}) rows += number_cell(text(v));
        rows += "</tr>\n";
    };
    for (std::size_t i = 0; i < all.metrics.size(); ++i) {
        const metric_id id = all.metrics[i];
        const auto value = [&](double v) { return value_text(id, v); };
        std::string name = "<th scope=\"row\">";
        for (const char* c = metric_name(id); *c; ++c)
            name += *c == '_' ? std::string("_<wbr>") : std::string(1, *c);
        name += "</th>";
        const metric_row& a = all.candidate.distributions[i].row;
        const metric_row& b = all.baseline.distributions[i].row;
        if (!both) {
            row(name, a, value);
            continue;
        }
        row(name + "<td class=\"arm c\">candidate</td>", a, value);
        row("<td></td><td class=\"arm b\">baseline</td>", b, value);
        const metric_row ratio{
            id, a.mean / b.mean, a.p50 / b.p50, a.p90 / b.p90, a.p99 / b.p99, a.max / b.max};
        row("<td></td><td class=\"arm\">ratio</td>", ratio,
            [](double v) { return std::isfinite(v) ? printed("%.3f x", v) : std::string("none"); });
    }
    std::vector<std::string> head = {"", "mean", "p50", "p90", "p99", "max"};
    if (both) head.insert(head.begin() + 1, "");
    return page_table("Latency of " + g.what.name, head, rows, both ? 2 : 1);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C95] the report page: gates beside each other ============================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Gates that differ in their load alone, lightest first.
struct load_series {
    bool is_rate = true;                                  // else users
    std::vector<std::pair<double, std::size_t>> gates{};  // load, place in the report
};
inline std::vector<load_series> load_series_of(const std::vector<gate_report>& gates) {
    std::map<std::string, load_series> found;
    for (std::size_t i = 0; i < gates.size(); ++i) {
        const gate_report& g = gates[i];
        const arrival_data& a = g.what.arrivals;
        const bool users = a.kind == arrival_kind::closed_loop;
        const bool steady = a.kind == arrival_kind::constant || a.kind == arrival_kind::poisson ||
                            a.kind == arrival_kind::gamma;
        if (!g.refusal.empty() || g.figures.candidate.empty() || !(users || steady)) continue;
        // Every simulated server has a port of its own.
        const std::string url = g.target.kind == target_kind::endpoint ? g.target.url : "";
        load_series& s = found[std::string(to_string(g.target.kind)) + "\n" + url + "\n" +
                               g.target.model + "\n" + g.what.workload_text + "\n" +
                               arrival_name(a.kind)];
        s.is_rate = !users;
        s.gates.emplace_back(users ? static_cast<double>(a.users) : a.rate, i);
    }
    std::vector<load_series> series;
    for (auto& [key, s] : found) {
        std::sort(s.gates.begin(), s.gates.end());
        bool rising = s.gates.size() > 1;
        for (std::size_t i = 1; i < s.gates.size(); ++i)
            rising &= s.gates[i].first > s.gates[i - 1].first;
        if (rising) series.push_back(std::move(s));
    }
    return series;
}

inline std::string load_figure(
    const load_series& s, const std::string& caption, plot_unit unit,
    const std::vector<std::pair<std::string, std::vector<double>>>& all) {
    double most = 0;
    for (const auto& [name, values] : all)
        for (const double v : values)
            if (std::isfinite(v)) most = std::max(most, v);
    if (!(most > 0)) return {};
    plot p({plot_scale::shape::linear, 0, s.gates.back().first * 1.05},
           s.is_rate ? plot_unit::per_second : plot_unit::none,
           {plot_scale::shape::linear, 0, most * 1.08}, unit);
    std::string alt = caption + " against the load";
    for (const auto& [name, values] : all) {
        std::vector<curve_point> points;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double v = std::isfinite(values[i]) ? values[i] : not_a_number;
            points.push_back({s.gates[i].first, v});
            if (std::isnan(v)) continue;
            p.dot("c", points.back());
            alt += printed(", %s%s%.4g at %g", name.c_str(), name.empty() ? "" : " ", v,
                           s.gates[i].first);
        }
        p.line("c", name, points);
        if (!std::isnan(points.back().y)) p.label(points.back(), name);
    }
    return p.figure(caption + "<span>against " + (s.is_rate ? "requests/s" : "users") + "</span>",
                    alt, false);
}
inline std::string load_curves_html(const std::vector<gate_report>& gates) {
    std::string h;
    for (const load_series& s : load_series_of(gates)) {
        std::vector<double> ttft_p50, ttft_p90, tpot_mean, output;
        std::string rows;
        for (const auto& [load, i] : s.gates) {
            const arm_figures& arm = gates[i].figures.candidate;
            const metric_row &ttft = arm.distributions[0].row, &tpot = arm.distributions[1].row;
            ttft_p50.push_back(ttft.p50);
            ttft_p90.push_back(ttft.p90);
            tpot_mean.push_back(tpot.mean);
            output.push_back(arm.run_value(metric_id::output_throughput));
            rows += printed("<tr><th scope=\"row\"><a href=\"#gate-%zu\">%g</a></th><td>", i + 1,
                            load) +
                    badge(look_of(gates[i].outcome), to_string(gates[i].outcome)) +
                    "</td>" + number_cell(time_text(ttft.p50)) + number_cell(time_text(ttft.p90)) +
                    number_cell(time_text(tpot.mean)) +
                    number_cell(value_text(metric_id::output_throughput, output.back())) +
                    "</tr>\n";
        }
        h += "<section><h2>" + std::string(s.is_rate ? "By offered load" : "By number of users") +
             "</h2>\n<p class=\"note\">" + plural(s.gates.size(), "gate") + " with " +
             xml_escaped(gates[s.gates[0].second].what.workload_text) +
             ".</p>\n<div class=\"plots\">\n" +
             load_figure(s, "ttft", plot_unit::seconds, {{"p90", ttft_p90}, {"p50", ttft_p50}}) +
             load_figure(s, "tpot", plot_unit::seconds, {{"mean", tpot_mean}}) +
             load_figure(s, "Output tokens/s", plot_unit::tokens_per_second, {{"", output}}) +
             "</div>\n" +
             page_table("By load",
                        {s.is_rate ? "requests/s" : "users", "gate", "ttft p50", "ttft p90",
                         "tpot mean", "output"},
                        rows, 2) +
             "</section>\n";
    }
    return h;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C96] the report page: what else a gate has to say ========================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::string failures_html(const arm_figures& arm, const char* who) {
    std::size_t all = 0;
    for (const status_count& c : arm.statuses) all += c.count;
    const std::vector<failure_kind>& kinds = arm.failures;
    if (kinds.empty()) return {};
    std::string rows;
    for (const failure_kind& k : kinds) {
        rows += std::string("<tr><th scope=\"row\">") + to_string(k.status) +
                (k.http_status ? printed(" (HTTP %d)", k.http_status) : "") + "</th><td>";
        for (std::size_t i = 0; i < std::min<std::size_t>(k.examples.size(), 3); ++i)
            rows += "<p>" + printed("%zu x ", k.examples[i].second) +
                    xml_escaped(printable(k.examples[i].first, 200)) + "</p>";
        if (k.examples.size() > 3) rows += "<p class=\"dim\">and other words</p>";
        const double share = static_cast<double>(k.count) / static_cast<double>(all);
        rows += "</td>" + number_cell(std::to_string(k.count)) +
                number_cell(printed("%.3g %%", share * 100)) + "</tr>\n";
    }
    return std::string("<h3>Errors") + who + "</h3>\n" +
           page_table(std::string("Errors") + who, {"kind", "what they said", "requests", "share"},
                      rows, 2);
}

inline std::string row_of(const char* name, const std::string& value) {
    if (value.empty()) return {};
    return std::string("<dt>") + name + "</dt><dd>" + xml_escaped(value) + "</dd>\n";
}
inline std::string folded(const std::string& title, const std::string& aside, bool open,
                          const std::string& body) {
    return std::string(open ? "<details open>" : "<details>") + "<summary>" + title +
           (aside.empty() ? "" : " <span>" + xml_escaped(aside) + "</span>") + "</summary>\n" +
           body + "</details>\n";
}

inline std::string self_check_html(const self_check_t& c) {
    std::string h = "<dl>\n";
    h += row_of("sends late by", "p50 " + time_text(c.lateness_p50) + ", p99 " +
                                     time_text(c.lateness_p99) + ", max " +
                                     time_text(c.lateness_max) +
                                     printed("; %.2g %% over 10 ms", c.late_share * 100));
    if (c.asked_rate > 0)
        h += row_of("rate", printed("sent %.4g of %.4g requests/s", c.achieved_rate, c.asked_rate));
    h += row_of("bytes read after",
                "p99 " + time_text(c.stamp_lag_p99) + ", max " + time_text(c.stamp_lag_max));
    h += row_of("thread woke late by",
                "p99 " + time_text(c.loop_lag_p99) + ", max " + time_text(c.loop_lag_max));
    if (c.held_up > 0)
        h += row_of("did not run", printed("%lld times, at most ", c.held_up) +
                                       time_text(c.held_up_max));
    h += row_of("busiest thread", printed("%.0f %% of a core", c.cpu_share * 100));
    h += row_of("events read together", printed("%.1f %%", c.coalesced_share * 100));
    h += row_of("connections", std::to_string(c.connections_opened));
    return folded("The client's self-check", c.ok ? "ok" : "NOT OK: " + str(c.reason), !c.ok,
                  h + "</dl>\n");
}

/// The load as asked and as sent, and what came of it, in each repeat.
inline std::string repeats_html(const gate_report& g) {
    const arm_figures &mine = g.figures.candidate, &other = g.figures.baseline;
    const bool both = !other.empty();
    std::string rows;
    const std::size_t n = std::max(mine.repeats.size(), other.repeats.size());
    for (std::size_t i = 0; i < n; ++i)
        for (const arm_figures* arm : {&mine, &other}) {
            if (i >= arm->repeats.size()) continue;
            const repeat_figures& d = arm->repeats[i];
            rows += printed("<tr><th scope=\"row\">%zu</th>", i + 1) +
                    (!both           ? ""
                     : arm == &other ? "<td class=\"arm b\">baseline</td>"
                                     : "<td class=\"arm c\">candidate</td>") +
                    number_cell(std::to_string(d.requests)) +
                    number_cell(std::to_string(d.failed));
            const auto rate = [](double r) { return r > 0 ? printed("%.4g", r) : std::string(); };
            rows += number_cell(rate(d.asked_rate)) + number_cell(rate(d.achieved_rate));
            rows += number_cell(value_text(metric_id::output_throughput, d.output_throughput)) +
                    number_cell(value_text(metric_id::request_throughput, d.request_throughput));
            rows += number_cell(time_text(d.window_s));
            rows += std::string("<td>") + (d.interrupted ? "interrupted " : "") +
                    xml_escaped(d.target_gone) + "</td></tr>\n";
        }
    std::vector<std::string> head = {both ? "pair" : "repeat",
                                     "requests",
                                     "failed",
                                     "asked/s",
                                     "sent/s",
                                     "output",
                                     "completed",
                                     "window",
                                     ""};
    if (both) head.insert(head.begin() + 1, "");
    return folded("Repeats", plural(n, both ? "pair" : "repeat"), false,
                  page_table("Repeats of " + g.what.name, head, rows, both ? 2 : 1));
}

inline std::string scenario_html(const gate_report& g) {
    const plan& p = g.what;
    std::string h =
        "<dl>\n" + row_of("target", target_text(g.target)) + row_of("api", g.target.api);
    if (g.baseline.kind != target_kind::none) h += row_of("baseline", target_text(g.baseline));
    h += row_of("arrivals", arrival_text(p.arrivals)) + row_of("workload", p.workload_text);
    h += row_of("measured", extent_text(p)) + row_of("repeats", repeats_text(p));
    h += row_of("traffic", p.rule.traffic == fresh ? "fresh" : "replayed");
    h += row_of("seed", std::to_string(p.seed)) + row_of("trace hash", trace_hash(p));
    h += row_of("prompt tokens", prompt_lengths_text(g.figures.candidate.prompts));
    h += row_of("options", options_text(p));
    const auto limit = [](time_span t) { return time_text(t.seconds()); };
    h += row_of("limits", "connect " + limit(p.limits.connect) + ", first event " +
                              limit(p.limits.first_event) + ", between events " +
                              limit(p.limits.between_events) + ", total " + limit(p.limits.total) +
                              ", drain " + limit(p.limits.drain));
    h += row_of("error levels",
                printed("false pass %g %%, false fail %g %%%s", p.rule.pass_level * 100,
                        p.rule.fail_level * 100, p.rule.holm ? ", Holm over the gate" : ""));
    h += row_of("stopped", g.under.stopped);
    h += row_of("definitions", definitions_version);
    h += row_of("stands at", p.file + ":" + std::to_string(p.line));
    return folded("The scenario in full", "", false, h + "</dl>\n");
}

inline std::string arithmetic_html(const gate_report& g) {
    std::string h = "<dl>\n";
    for (const slo_verdict& v : g.verdicts) {
        const std::string how = str(v.method) + (v.method.empty() ? "" : ": ") + str(v.arithmetic);
        h += row_of(xml_escaped(str(v.what.text())).c_str(), how);
    }
    return folded("How the verdicts came about", "", false, h + "</dl>\n");
}

/// One word of a POSIX shell.
inline std::string shell_quoted(const std::string& s) {
    const bool plain = !s.empty() && s.find_first_not_of(
                                         "abcdefghijklmnopqrstuvwxyz"
                                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789_./:@%+=-") == std::string::npos;
    if (plain) return s;
    std::string out = "'";
    for (const char c : s) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}
/// What runs this gate again, on the same traffic.
inline std::string rerun_command(const gate_report& g, const environment_facts& env) {
    if (env.program.empty()) return {};
    std::string t;
    if (g.target.kind == target_kind::endpoint) {
        t += "LLMBENCH_URL=" + shell_quoted(g.target.url) + " ";
        if (!g.target.model.empty()) t += "LLMBENCH_MODEL=" + shell_quoted(g.target.model) + " ";
        if (g.target.api != apis[0].name) t += "LLMBENCH_API=" + shell_quoted(g.target.api) + " ";
    }
    t += printed("LLMBENCH_SEED=%llu ", static_cast<unsigned long long>(g.what.seed));
    t += shell_quoted(env.program);
    if (g.what.test_case.empty()) return t;
    std::string pattern;  // doctest's own: a comma separates two of them
    for (const char c : g.what.test_case) {
        if (c == ',' || c == '\\') pattern += '\\';
        pattern += c;
    }
    return t + " " + shell_quoted("--test-case=" + pattern);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C97] the report page: timelines ==========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// All repeats of a gate over time, one drawing for each thing that changes.
class timeline_figures {
public:
    explicit timeline_figures(const gate_report& g)
        : g_(g),
          grid_(g.figures.grid),
          mine_(g.figures.candidate.timelines),
          other_(g.figures.baseline.timelines) {}
    std::string html() const {
        if (mine_.empty()) return {};
        using t = repeat_timeline;
        std::string h = printed(
            "<h3>Over time</h3>\n<p class=\"note\">One line a repeat, in windows "
            "of %s; 0 is where the measured part begins, after the warm-up.%s</p>"
            "\n<div class=\"plots\">\n",
            tick_text(plot_unit::elapsed, grid_.step).c_str(), arms_key(!other_.empty()).c_str());
        const bool paced = g_.what.is_open_loop();
        h += figure(
            paced ? "Requests/s<span>sent; planned (thick)</span>" : "Requests/s",
            "requests sent per second", plot_unit::per_second, {{&t::sent, "c", "sent"}},
            paced ? &t::asked : nullptr);
        if (has_failures())
            h += figure("Failed requests/s", "failed requests per second", plot_unit::per_second,
                        {{&t::failed, "f", "failed"}});
        h += figure("In flight", "requests in flight", plot_unit::none, {{&t::in_flight, "c", ""}});
        if (other_.empty())
            h += figure("ttft<span>p50; p90 (light)</span>", "ttft", plot_unit::seconds,
                        {{&t::ttft_p90, "c2", "p90"}, {&t::ttft_p50, "c", "p50"}});
        else h += figure("ttft<span>p50</span>", "ttft p50", plot_unit::seconds,
                         {{&t::ttft_p50, "c", ""}});
        h += figure("Output tokens/s", "output tokens per second", plot_unit::tokens_per_second,
                    {{&t::tokens, "c", ""}});
        if (g_.figures.has_goodput)
            h += figure("Goodput<span>by planned time</span>", "goodput",
                        plot_unit::share, {{&t::good, "c", ""}});
        return h + "</div>\n";
    }

private:
    using values = std::vector<double> repeat_timeline::*;
    struct series {
        values what;
        const char* style;
        const char* name;
    };

    bool has_failures() const {
        for (const auto* arm : {&mine_, &other_})
            for (const repeat_timeline& t : *arm)
                for (const double rate : t.failed)
                    if (rate > 0) return true;
        return false;
    }
    std::vector<curve_point> points_of(const std::vector<double>& v) const {
        std::vector<curve_point> points;
        for (std::size_t i = 0; i < v.size(); ++i) points.push_back({grid_.middle(i), v[i]});
        return points;
    }
    std::string figure(const std::string& caption, const std::string& what, plot_unit unit,
                       const std::vector<series>& all, values behind = nullptr) const {
        double most = 0;
        const auto widen = [&](values which) {
            for (const auto* arm : {&mine_, &other_})
                for (const repeat_timeline& t : *arm)
                    for (const double v : t.*which)
                        if (std::isfinite(v)) most = std::max(most, v);
        };
        for (const series& s : all) widen(s.what);
        if (behind) widen(behind);
        if (!(most > 0) && unit == plot_unit::seconds) return {};  // nothing was answered
        const double end = grid_.from + static_cast<double>(grid_.windows) * grid_.step;
        const double high = unit == plot_unit::share ? 1 : most > 0 ? most * 1.05 : 1;
        plot p({plot_scale::shape::linear, grid_.from, end}, plot_unit::elapsed,
               {plot_scale::shape::linear, 0, high}, unit);
        const bool both = !other_.empty();
        if (behind) p.line("a", "planned", points_of(mine_[0].*behind));
        for (const series& s : all) {
            for (const repeat_timeline& t : other_)
                p.line(*s.style == 'c' ? "b" : s.style, std::string("baseline ") + s.name,
                       points_of(t.*s.what));
            for (const repeat_timeline& t : mine_)
                p.line(s.style, both ? std::string("candidate ") + s.name : s.name,
                       points_of(t.*s.what));
        }
        return p.figure(caption,
                        what + " over " + time_text(end - std::min(0.0, grid_.from)) + ", " +
                            plural(mine_.size(), "repeat") +
                            (both ? " of the candidate and of the baseline" : "") + ", at most " +
                            (unit == plot_unit::seconds ? time_text(most)
                             : unit == plot_unit::share ? printed("%.4g %%", most * 100)
                                                        : printed("%.4g", most)),
                        false);
    }

    const gate_report& g_;
    const timeline_grid& grid_;
    const std::vector<repeat_timeline>&mine_, &other_;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [C98] the report page: the whole ==========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Tables and drawings of what was measured.
inline std::string numbers_html(const gate_report& g) {
    const gate_figures& f = g.figures;
    std::string h = "<h3>Latency</h3>\n" + latency_table(g) +
                    "<p class=\"note\">Of all repeats together: what was measured, the slowest "
                    "request of all as max.</p>\n";
    for (const arm_figures* arm : {&f.candidate, &f.baseline})
        if (!arm->empty())
            h += std::string("<p>") + (arm == &f.baseline ? "Baseline: output " : "Output ") +
                 throughput_text(g, *arm) + ", " + ok_text(arm->statuses) + ".</p>\n";
    for (const std::string& note : notes_on(g))
        h += "<p class=\"note\">" + xml_escaped(note) + ".</p>\n";
    h += failures_html(f.candidate, "") + failures_html(f.baseline, " of the baseline");
    std::string curves;
    for (std::size_t i = 0; i < f.metrics.size(); ++i)
        if (f.metrics[i] != metric_id::ttft_from_send)
            curves += distribution_figure(g, f.metrics[i], f.candidate.distributions[i],
                                          f.baseline.distributions[i]);
    if (!curves.empty())
        h += "<h3>Distributions</h3>\n<p class=\"note\">The thick line is all repeats together, "
             "each thin one a repeat. At the height of p90 it is at the time that 90 % of the "
             "requests took at most; a failed one never ends. A dashed line is a limit: it ends in "
             "a ring at its percentile, and a thick line that crosses it misses it; of a mean it "
             "is a mark on the axis. A dot in its interval is the typical repeat." +
             arms_key(!f.baseline.empty()) + "</p>\n<div class=\"plots\">\n" + curves +
             "</div>\n";
    return h + timeline_figures(g).html();
}

inline std::string gate_html(const gate_report& g, std::size_t number,
                             const environment_facts& env) {
    const std::size_t undecided = count_of(g, verdict::inconclusive);
    std::string h =
        printed("<section id=\"gate-%zu\" data-outcome=\"%s\" aria-labelledby=\"name-%zu\">\n",
                number, to_string(g.outcome), number) +
        badge(look_of(g.outcome), to_string(g.outcome));
    if (undecided > 0 && g.outcome == gate_outcome::passed)
        h += " " + badge("inconclusive", printed("%zu inconclusive", undecided));
    h += printed("\n<h2 id=\"name-%zu\">", number) + xml_escaped(g.what.name) +
         "</h2>\n<p class=\"why\">" + xml_escaped(gate_sentence(g)) + "</p>\n";
    const bool measured = !g.figures.candidate.empty();
    if (g.refusal.empty())
        h += "<p class=\"dim\">" + xml_escaped(target_text(g.target)) +
             xml_escaped(compared_text(g.baseline)) +
             "; " + xml_escaped(plan_text(g.what)) + "</p>\n";
    if (!g.verdicts.empty() && g.refusal.empty()) {
        h += "<ol class=\"verdicts\">\n";
        for (const slo_verdict& v : g.verdicts) h += verdict_item(v);
        h += std::string("</ol>\n") + verdicts_key;
    }
    if (!g.calibration.empty()) h += "<pre>" + escaped_lines(calibration_text(g)) + "</pre>\n";
    const std::string command = rerun_command(g, env);
    const std::string again = command.empty() ? ""
                                              : "<h3>Run it again</h3>\n<pre><code>" +
                                                    xml_escaped(command) + "</code></pre>\n";
    if (!g.refusal.empty()) return h + again + "</section>\n";
    h += measured ? numbers_html(g) : "<p>Nothing was measured.</p>\n";
    h += "<h3>More</h3>\n";
    if (measured) h += self_check_html(g.self_check) + repeats_html(g);
    h += scenario_html(g);
    if (!g.verdicts.empty()) h += arithmetic_html(g);
    return h + again + "</section>\n";
}

/// "1 of 2 gates failed", by what is worst.
inline std::pair<gate_outcome, std::string> overall(const std::vector<gate_report>& gates) {
    for (const gate_outcome c : worst_first) {
        std::size_t n = 0;
        for (const gate_report& g : gates) n += g.outcome == c;
        if (n == 0) continue;
        const bool is_state = c == gate_outcome::invalid || c == gate_outcome::unfinished;
        const bool was_done = c == gate_outcome::refused || c == gate_outcome::skipped;
        const std::string verb =
            std::string(is_state   ? (n == 1 ? " is " : " are ")
                        : was_done ? (n == 1 ? " was " : " were ")
                                   : " ") + to_string(c);
        if (gates.size() == 1) return {c, "The gate" + verb};
        if (n == gates.size())
            return {c, (n == 2 ? "Both" : printed("All %zu", n)) + " gates" + verb};
        return {c, printed("%zu of %zu gates", n, gates.size()) + verb};
    }
    return {gate_outcome::skipped, "No gate ran"};
}

/// The links to the gates, worst first, and with several outcomes the buttons that choose some.
inline std::string gates_html(const std::vector<gate_report>& gates) {
    std::vector<std::pair<std::string, std::size_t>> outcomes;
    std::string items;
    for (const gate_outcome c : worst_first) {
        const char* name = to_string(c);
        std::size_t n = 0;
        for (std::size_t i = 0; i < gates.size(); ++i) {
            if (gates[i].outcome != c) continue;
            ++n;
            items += printed("<li data-outcome=\"%s\">", name) + badge(look_of(c), name) +
                     printed("<div><a href=\"#gate-%zu\">", i + 1) +
                     xml_escaped(gates[i].what.name) + "</a><p class=\"note\">" +
                     xml_escaped(gate_sentence(gates[i])) + "</p></div></li>\n";
        }
        if (n > 0) outcomes.emplace_back(name, n);
    }
    std::string h;
    if (outcomes.size() > 1) {
        h += printed(
            "<div class=\"filter\" role=\"group\" aria-label=\"Show gates\" hidden><button "
            "type=\"button\" aria-pressed=\"true\" data-show=\"all\">all %zu</button>",
            gates.size());
        for (const auto& [name, n] : outcomes)
            h += printed(
                "<button type=\"button\" aria-pressed=\"false\" data-show=\"%s\">%s %zu"
                "</button>",
                name.c_str(), name.c_str(), n);
        h += "</div>\n";
    }
    return h + "<nav aria-label=\"Gates\"><ol class=\"gates\">\n" + items + "</ol></nav>\n";
}

inline std::string report_html(const std::vector<gate_report>& gates,
                               const environment_facts& env) {
    const auto [worst, title] = overall(gates);
    std::size_t undecided = 0;
    for (const gate_report& g : gates) undecided += count_of(g, verdict::inconclusive);
    std::string h =
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
        "name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>" +
        title + " - llmbench</title>\n<style>" + page_style + "</style>\n</head>\n<body>" +
        page_icons + "<main>\n<header>\n<h1><span class=\"" + look_of(worst) + "\">" +
        icon(look_of(worst)) + title + "</span></h1>\n";
    if (undecided > 0)
        h += "<p class=\"why\">" + plural(undecided, "objective") +
             (undecided == 1 ? " is " : " are ") + undecided_text(gates.front()) + ".</p>\n";
    h += "<p class=\"dim\">" +
         xml_escaped(printed("llmbench %d.%d.%d", LLMBENCH_VERSION_MAJOR, LLMBENCH_VERSION_MINOR,
                             LLMBENCH_VERSION_PATCH) +
                     ", " + env.started_at + ", " + env.os + ", " + env.cpu +
                     printed(", %d cores", env.cores) +
                     (env.commit.empty() ? "" : ", commit " + env.commit)) +
         "</p>\n</header>\n";
    if (gates.size() > 1) h += gates_html(gates);
    h += load_curves_html(gates);
    for (std::size_t i = 0; i < gates.size(); ++i) h += gate_html(gates[i], i + 1, env);
    return h + "</main>\n<script>" + page_script + "</script>\n</body>\n</html>\n";
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

#endif  // LLMBENCH_CORE

#if defined(LLMBENCH_IMPLEMENT) && !defined(LLMBENCH_IMPLEMENTED)
#define LLMBENCH_IMPLEMENTED

#include <atomic>  // memory_order_relaxed
#include <barrier>  // the start of a load
#include <cerrno>  // errno, EINTR, EINPROGRESS, EMFILE, EAGAIN, EWOULDBLOCK, ETIMEDOUT
#include <chrono>
#include <condition_variable>
#include <ctime>  // time_t, time, strftime, clock_gettime
#include <filesystem>  // error_code, equivalent
#include <fstream>  // ifstream, ios, istreambuf_iterator, getline, ofstream, istream
#include <iostream>  // cout, cerr
#include <mutex>  // unique_lock, lock_guard
#include <new>  // bad_alloc
#include <queue>  // users by the time they are ready
#include <random>  // what no other run has sent
#include <thread>  // this_thread

#include <arpa/inet.h>  // ntohs
#include <asio/basic_socket_acceptor.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>  // what must wait for the current handler
#include <fcntl.h>  // open
#include <netdb.h>  // gai_strerror
#include <netinet/in.h>  // sockaddr_in6
#include <signal.h>  // SIGKILL, sigaction, SIGINT, SIGTERM, SIGHUP
#include <sys/file.h>  // flock
#include <sys/ioctl.h>  // the width of a terminal
#include <sys/resource.h>  // how many files may be open
#include <sys/socket.h>  // getsockopt, send, recv
#include <sys/types.h>  // ssize_t, pid_t
#include <unistd.h>  // STDOUT_FILENO, unlink, write, close, _exit, isatty, pread, getpid

// ===== [E1] functions of text ====================================================================

namespace llmbench {
inline namespace v0 {
namespace types {

text::text(const char* s) : text(s ? s : "", s ? std::strlen(s) : 0) {}
text::text(const char* s, detail::size_type n) {
    if (n == 0) return;
    data_ = new char[n + 1];
    size_ = n;
    std::memcpy(data_, s, n);
    data_[n] = 0;
}
text::text(const text& o) : text(o.c_str(), o.size_) {}
text& text::operator=(const text& o) {
    text copy(o);
    return *this = static_cast<text&&>(copy);
}
text& text::operator=(text&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
}
text::~text() { delete[] data_; }
text text::join(const text& a, const text& b) { return detail::str(a) + detail::str(b); }
bool text::same(const text& a, const text& b) { return detail::str(a) == detail::str(b); }

}  // namespace llmbench
}  // inline namespace v0
}  // namespace types

// ===== [E2] functions of SLO expressions =========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

statistic_data make_statistic(statistic_kind kind, metric_id metric, double q) {
    statistic_data s;
    s.kind = kind;
    s.metric = metric;
    s.q = q;
    const std::string of = metric_name(metric);
    const double percent = q * 100;
    switch (kind) {
    case statistic_kind::value: s.name = of; break;
    case statistic_kind::mean: s.name = "mean(" + of + ")"; break;
    case statistic_kind::max: s.name = "max(" + of + ")"; break;
    case statistic_kind::min: s.name = "min(" + of + ")"; break;
    case statistic_kind::percentile:
        if (q == 0.999) s.name = "p999(" + of + ")";
        else if (std::fabs(percent - std::round(percent)) < 1e-9 && percent >= 1 && percent <= 99)
            s.name = printed("p%.0f(%s)", percent, of.c_str());
        else s.name = printed("percentile(%s, %g)", of.c_str(), q);
        break;
    }
    return s;
}
statistic_data make_goodput(const list<predicate_step>& where, const text& predicate) {
    statistic_data s;
    s.metric = metric_id::goodput;
    s.where = where;
    s.name = "goodput(" + str(predicate) + ")";
    return s;
}
statistic_data make_gauge(statistic_kind kind, const text& gauge) {
    statistic_data s;
    s.kind = kind;
    s.metric = metric_id::server_metric;
    s.gauge = gauge;
    s.name = std::string(kind == statistic_kind::max ? "max" : "mean") + "(server_metric(\"" +
             str(gauge) + "\"))";
    return s;
}
list<predicate_step> one_step(metric_id metric, bool at_most, double bound) {
    list<predicate_step> steps;
    steps.push_back({predicate_step::op_kind::compare, metric, at_most, bound});
    return steps;
}
list<predicate_step> combine(const list<predicate_step>& a, const list<predicate_step>& b,
                             bool both) {
    list<predicate_step> steps = a;
    for (const predicate_step& s : b) steps.push_back(s);
    predicate_step op;
    op.op = both ? predicate_step::op_kind::both : predicate_step::op_kind::either;
    steps.push_back(op);
    return steps;
}
text comparison_text(metric_id metric, bool at_most, double bound) {
    return std::string(metric_name(metric)) + (at_most ? " <= " : " >= ") +
           limit_text(metric, bound);
}
}  // namespace detail

types::text slo::text() const {
    const std::string side = at_most ? " <= " : " >= ";
    const std::string right = factor != 0 ? detail::printed("%g * baseline", factor)
                                          : detail::limit_text(what.metric, bound);
    const std::string whole = detail::str(what.name) + side + right;
    return is_advisory ? "advisory(" + whole + ")" : whole;
}
slo advisory(const slo& s) {
    slo copy = s;
    copy.is_advisory = true;
    return copy;
}

types::text latency_limits::text() const {
    std::string t = std::string(name) + ":";
    for (const slo& s : slos()) t += (t.back() == ':' ? " " : ", ") + detail::str(s.text());
    return *source ? t + " (" + source + ")" : t;
}

}  // namespace llmbench
}  // inline namespace v0

// ===== [E3] functions of arrivals ================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline open_loop open_loop_of(arrival_kind kind, double rate) {
    arrival_data d;
    d.kind = kind;
    d.rate = rate;
    return open_loop(d);
}
}  // namespace detail
open_loop constant(request_rate rate) {
    return detail::open_loop_of(detail::arrival_kind::constant, rate.per_second);
}
open_loop poisson(request_rate rate) {
    return detail::open_loop_of(detail::arrival_kind::poisson, rate.per_second);
}
open_loop all_at_once() { return detail::open_loop_of(detail::arrival_kind::all_at_once, 0); }
open_loop gamma(request_rate rate, double burstiness) {
    detail::arrival_data d =
        detail::open_loop_of(detail::arrival_kind::gamma, rate.per_second).data();
    d.burstiness = burstiness;
    return open_loop(d);
}
open_loop ramp(request_rate from, request_rate to, time_span over) {
    detail::arrival_data d =
        detail::open_loop_of(detail::arrival_kind::ramp, from.per_second).data();
    d.rate_to = to.per_second;
    d.over_s = over.seconds();
    return open_loop(d);
}
open_loop steps(std::initializer_list<load_step> stages) {
    detail::arrival_data d = detail::open_loop_of(detail::arrival_kind::steps, 0).data();
    d.stages = types::list<load_step>(stages);
    return open_loop(d);
}

}  // namespace llmbench
}  // inline namespace v0

// ===== [E4] functions of results =================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

estimate_t estimate(const box& data, const statistic_data& what) {
    const auto g = result_access::gate_in(data);
    if (!g || g->seen.candidate.empty()) return {not_a_number, not_a_number, not_a_number};
    slo s;
    s.what = what;
    s.at_most = facts_of(what.metric).side != bound_side::at_least;
    // Any limit will do: to the end, neither the estimate nor its interval depends on it. Only how
    // dependent counted misses are is read off at the limit: there it is the estimate.
    s.bound = 0.5;
    const slo_verdict v = judge_evidence(g->seen, g->held, s, true);
    const estimate_t e = v.estimate;
    const bool counted = g->held.rule.traffic == fresh || str(v.method) == method_misses;
    if (!counted || what.kind != statistic_kind::percentile || !std::isfinite(e.value)) return e;
    s.bound = e.value;
    return judge_evidence(g->seen, g->held, s, true).estimate;
}
double measured(const box& data, const statistic_data& what) {
    const auto g = result_access::gate_in(data);
    return g ? pooled_value(what, g->seen.candidate) : not_a_number;
}
}  // namespace detail

const char* to_string(request_status s) {
    switch (s) {
    case request_status::ok: return "ok";
    case request_status::connect: return "connect";
    case request_status::tls: return "tls";
    case request_status::timeout: return "timeout";
    case request_status::http: return "http";
    case request_status::protocol: return "protocol";
    case request_status::server: return "server";
    case request_status::truncated: return "truncated";
    case request_status::empty: return "empty";
    case request_status::cancelled: return "cancelled";
    case request_status::unsent: return "unsent";
    }
    return "";
}
const char* to_string(token_origin o) { return o == token_origin::usage ? "usage" : "events"; }
const char* to_string(run_phase p) { return p == run_phase::warmup ? "warmup" : "measure"; }
const char* to_string(run_arm a) { return a == run_arm::baseline ? "baseline" : "candidate"; }
const char* to_string(verdict v) {
    switch (v) {
    case verdict::pass: return "pass";
    case verdict::fail: return "fail";
    case verdict::inconclusive: return "inconclusive";
    case verdict::invalid: return "invalid";
    case verdict::skipped: return "skipped";
    }
    return "";
}

types::text slo_verdict::line() const { return detail::verdict_line(*this); }
types::text slo_verdict::explain() const {
    std::string t = detail::verdict_line(*this) + "\n  method: " + detail::str(method) + "\n  " +
                    detail::str(arithmetic);
    for (const named_values& n : inputs) {
        t += "\n  " + detail::str(n.name) + " =";
        for (const double v : n.values) t += " " + detail::json_number(v);
    }
    return t;
}

slo_verdict judge(const result& r, const slo& s) {
    const auto g = detail::result_access::gate_of(r);
    if (!g || !g->refusal.empty()) {
        slo_verdict v = detail::undecided(s);
        const bool skip = g && g->outcome == detail::gate_outcome::skipped;
        v.outcome = skip ? verdict::skipped : verdict::invalid;
        v.reason = g ? g->refusal : "the result is empty";
        return v;
    }
    detail::check_slo(s, detail::slo_context_of(g->what));
    return detail::judged_also(g->seen, g->held, s);
}

const types::list<record>& result::requests() const& {
    const auto g = detail::result_access::gate_of(*this);
    if (!g || requests_.size() > 0) return requests_;
    for (const auto* arm : {&g->seen.candidate, &g->seen.baseline})
        for (const detail::repeat_data& d : *arm)
            for (const record& x : d.records) requests_.push_back(x);
    return requests_;
}

}  // namespace llmbench
}  // inline namespace v0

// ===== [E5] standard output ======================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Columns of the terminal, 80 where they are not known.
inline std::size_t console_width() {
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

inline void say(const std::string& s) { std::cout << s << std::flush; }

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E6] errors of the system, in words =======================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// In English: reports are the same in every locale.
inline std::string error_text(int code) {
    const in_c_locale in_english;
    return std::strerror(code);
}
inline std::string resolver_error_text(int code) {
    const in_c_locale in_english;
    return ::gai_strerror(code);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E7] files ================================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::string file_content(const std::string& path, const std::string& what) {
    std::ifstream in(path, std::ios::binary);
    std::error_code ignored;
    require(static_cast<bool>(in) && !std::filesystem::is_directory(path, ignored),
            what + ": " + path + " cannot be read");
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A file that was not there before. Whatever had its name is unlinked, and where a symbolic link
/// of that name leads is never written to: a report directory may come with a checkout.
class new_file {
public:
    new_file() = default;
    new_file(const new_file&) = delete;
    new_file& operator=(const new_file&) = delete;
    ~new_file() { close(); }

    /// 0, or the errno that says why it cannot be had.
    int open(const std::filesystem::path& path) {
        close();
        ::unlink(path.c_str());
        fd_ = ::open(path.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0666);
        return fd_ < 0 ? errno : 0;
    }
    bool is_open() const { return fd_ >= 0; }
    int fd() const { return fd_; }
    /// 0, or the errno that says why not all of it is written.
    int append(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return errno;
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        return 0;
    }
    int close() { return fd_ >= 0 && ::close(std::exchange(fd_, -1)) != 0 ? errno : 0; }

private:
    int fd_ = -1;
};

/// The file appears whole or not at all.
inline void write_file(const std::filesystem::path& path, std::string_view content) {
    const std::filesystem::path draft = path.string() + ".tmp";
    new_file out;
    int problem = out.open(draft);
    if (problem == 0) problem = out.append(content);
    if (const int at_end = out.close(); problem == 0) problem = at_end;
    if (problem == 0 && ::rename(draft.c_str(), path.c_str()) != 0) problem = errno;
    if (problem == 0) return;
    ::unlink(draft.c_str());
    throw std::runtime_error("cannot write " + path.string() + ": " + error_text(problem));
}

/// One number a line; empty lines are passed over.
inline std::vector<double> read_numbers(const std::string& path, const char* field) {
    std::ifstream in(path);
    require(static_cast<bool>(in),
            printed("%s is empirical(\"%s\"): the file cannot be read", field, path.c_str()));
    std::vector<double> values;
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        const std::string_view t = trimmed(line);
        if (t.empty() || t == "\r") continue;
        std::string_view rest = t;
        const double v = leading_number<double>(rest).value_or(not_a_number);
        require((rest.empty() || rest == "\r") && v >= 1 && v <= 1e7,
                printed("%s:%d is \"%s\": %s needs one length from 1 to 10000000 a line",
                        path.c_str(), number, printable(t, 60).c_str(), field));
        values.push_back(v);
    }
    require(!values.empty(),
            printed("%s is empirical(\"%s\"): the file holds no lengths", field, path.c_str()));
    return values;
}

/// The file's bytes, read as they are asked for.
inline byte_stream bytes_of(const std::string& path, const char* field) {
    auto in = std::make_shared<std::ifstream>(path, std::ios::binary);
    std::error_code ignored;
    require(static_cast<bool>(*in) && !std::filesystem::is_directory(path, ignored),
            printed("%s is \"%s\": the file cannot be read", field, path.c_str()));
    return {[in](char* room, std::size_t n) {
                in->read(room, static_cast<std::streamsize>(n));
                return static_cast<std::size_t>(in->gcount());
            },
            path};
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E8] signals, and what else a program has once ============================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Set by the first SIGINT or SIGTERM of a run: the load ends, what is there is reported.
inline std::atomic<bool> interrupted{false};
/// Process groups to end when a second signal ends us at once.
inline std::atomic<pid_t> groups_to_end[16];
inline void add_group_to_end(pid_t group) {
    for (auto& slot : groups_to_end) {
        pid_t none = 0;
        if (slot.compare_exchange_strong(none, group)) break;
    }
}
inline void remove_group_to_end(pid_t group) {
    for (auto& slot : groups_to_end) {
        pid_t ours = group;
        slot.compare_exchange_strong(ours, 0);
    }
}
/// Servers that were started so far: each has a log of its own in the report directory.
inline std::atomic<int> servers_started{0};
/// Executions of gates that began so far: no two of them send the same words.
inline std::atomic<std::uint64_t> gates_executed{0};

inline void on_interrupt(int signal) {
    if (interrupted.exchange(true)) {
        for (auto& g : groups_to_end)
            if (const pid_t pid = g.load(); pid > 0) ::kill(-pid, SIGKILL);
        ::_exit(128 + signal);
    }
}
/// Handles SIGINT and SIGTERM for as long as it lives.
class interrupt_guard {
public:
    interrupt_guard() {
        struct sigaction action{};
        action.sa_handler = on_interrupt;
        sigemptyset(&action.sa_mask);
        ::sigaction(SIGINT, &action, &old_int_);
        ::sigaction(SIGTERM, &action, &old_term_);
    }
    ~interrupt_guard() {
        ::sigaction(SIGINT, &old_int_, nullptr);
        ::sigaction(SIGTERM, &old_term_, nullptr);
    }
    interrupt_guard(const interrupt_guard&) = delete;
    interrupt_guard& operator=(const interrupt_guard&) = delete;

private:
    struct sigaction old_int_{}, old_term_{};
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E9] the clock ============================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// CLOCK_MONOTONIC, nanoseconds.
inline long long now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
inline std::chrono::steady_clock::time_point time_point_of(long long ns) {
    return std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::nanoseconds(ns)));
}
inline long long ns_of(double seconds) { return std::llround(seconds * 1e9); }

inline const long long program_began_ns = now_ns();

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E10] what the environment asks for =======================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The text of a variable, "" where it is not set.
using variable_lookup = std::function<std::string(const char* name)>;

inline std::string environment(const char* name) {
    const char* v = std::getenv(name);
    return v ? v : "";
}

enum class progress_mode : unsigned char { automatic, off, plain, line };

/// What the LLMBENCH_ variables ask of a gate, beside its server. Read when the gate begins.
struct settings {
    std::uint64_t seed = 1;
    inconclusive_means inconclusive = inconclusive_means::warn;
    bool skip_without_server = false;
    double time_budget_s = 0;  // of the whole program, 0: none
    int calibrate = 0;         // repeats, 0: judge
    std::string calibration{};
    bool write_baseline = false;
    progress_mode progress = progress_mode::automatic;
};

inline bool says_yes(const char* name, const std::string& v) {
    const bool no = v.empty() || v == "0" || v == "false" || v == "no" || v == "off";
    const bool yes = v == "1" || v == "true" || v == "yes" || v == "on";
    require(yes || no, std::string(name) + " is \"" + printable(v, 40) + "\": it must be 1 or 0");
    return yes;
}
/// LLMBENCH_SEED, 1 where it is not set.
inline std::uint64_t seed_of(const std::string& s) {
    if (s.empty()) return 1;
    const std::uint64_t seed = parsed_number<std::uint64_t>(s).value_or(0);
    require(seed > 0,
            "LLMBENCH_SEED is \"" + printable(s) + "\": it must be a whole number above 0");
    return seed;
}
/// LLMBENCH_CALIBRATE, 0 where it is not set.
inline int calibration_repeats_of(const std::string& s) {
    if (s.empty()) return 0;
    const int n = parsed_number<int>(s).value_or(0);
    require(n >= 3 && n <= 100,
            "LLMBENCH_CALIBRATE is \"" + printable(s, 40) +
                "\": it must be a whole number from 3 to 100");
    return n;
}
/// LLMBENCH_TIME_BUDGET in seconds ("300", "300s", "5min"), 0 where it is not set.
inline double time_budget_of(const std::string& s) {
    if (s.empty()) return 0;
    std::string_view unit = s;
    const double v = leading_number<double>(unit).value_or(0);
    const double scale = unit.empty() || unit == "s" ? 1 : unit == "min" ? 60 : 0;
    require(v > 0 && scale > 0 && v * scale <= 1e7,
            "LLMBENCH_TIME_BUDGET is \"" + printable(s, 40) +
                "\": it must be a time above zero, such as 300, 300s or 5min");
    return v * scale;
}
inline inconclusive_means inconclusive_of(const std::string& s) {
    if (s == "fail") return inconclusive_means::fail;
    if (s == "skip") return inconclusive_means::skip;
    require(s.empty() || s == "warn",
            "LLMBENCH_INCONCLUSIVE is \"" + printable(s) + "\": it must be warn, fail or skip");
    return inconclusive_means::warn;
}
inline progress_mode progress_of(const std::string& s) {
    if (s == "off") return progress_mode::off;
    if (s == "line") return progress_mode::line;
    if (s == "plain") return progress_mode::plain;
    require(s.empty() || s == "auto", "LLMBENCH_PROGRESS is \"" + printable(s, 40) +
                                          "\": it must be auto, line, plain or off");
    return progress_mode::automatic;
}

/// Throws std::invalid_argument with one sentence for the first variable that cannot be used.
inline settings settings_of(const variable_lookup& look_up) {
    settings s;
    s.seed = seed_of(look_up("LLMBENCH_SEED"));
    s.inconclusive = inconclusive_of(look_up("LLMBENCH_INCONCLUSIVE"));
    s.skip_without_server =
        says_yes("LLMBENCH_SKIP_WITHOUT_SERVER", look_up("LLMBENCH_SKIP_WITHOUT_SERVER"));
    s.time_budget_s = time_budget_of(look_up("LLMBENCH_TIME_BUDGET"));
    s.calibrate = calibration_repeats_of(look_up("LLMBENCH_CALIBRATE"));
    s.calibration = look_up("LLMBENCH_CALIBRATION");
    s.write_baseline = says_yes("LLMBENCH_WRITE_BASELINE", look_up("LLMBENCH_WRITE_BASELINE"));
    s.progress = progress_of(look_up("LLMBENCH_PROGRESS"));
    return s;
}

/// Where a program runs and what is to become of its reports; read once, when it begins.
struct surroundings {
    std::string report_directory = "llmbench-report";
    console_facts console{};
    bool on_github = false;
    std::string github_workspace{};
    std::string step_summary{};  // the file that GitHub shows, "" for none
    console_style style() const { return style_of(console); }
    /// A line that is written over on a terminal, plain lines in a log.
    progress_mode shown(progress_mode wanted) const {
        if (wanted != progress_mode::automatic) return wanted;
        return console.terminal && console.term != "dumb" ? progress_mode::line
                                                          : progress_mode::plain;
    }
};
inline surroundings surroundings_of(const variable_lookup& look_up, bool is_terminal) {
    surroundings s;
    if (const std::string d = look_up("LLMBENCH_REPORT_DIR"); !d.empty()) s.report_directory = d;
    s.console = {is_terminal, look_up("NO_COLOR"), look_up("CLICOLOR_FORCE"), look_up("TERM"),
                 look_up("LC_ALL"), look_up("LC_CTYPE"), look_up("LANG")};
    s.on_github = look_up("GITHUB_ACTIONS") == "true";
    s.github_workspace = look_up("GITHUB_WORKSPACE");
    s.step_summary = look_up("GITHUB_STEP_SUMMARY");
    return s;
}
inline const surroundings& surroundings_of_program() {
    // Reports may be written when static objects are gone.
    static const surroundings* const s =
        new surroundings(surroundings_of(environment, ::isatty(STDOUT_FILENO) == 1));
    return *s;
}
/// Where reports go, and the logs of servers that a gate starts.
inline const std::string& report_directory() { return surroundings_of_program().report_directory; }

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E11] the machine and the commit ==========================================================

#ifdef __APPLE__
#include <cstdlib>  // getprogname
#include <sys/sysctl.h>  // the name of the processor
#endif
#include <sys/utsname.h>  // the name of the system

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The commit that is tested, by what GitHub, GitLab, Jenkins or Buildkite say, else by the git
/// directory above us. "" where there is none.
inline std::string commit_now() {
    for (const char* name : {"GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT"})
        if (const std::string sha = environment(name); !sha.empty()) return printable(sha, 64);
    const auto line_of = [](const std::filesystem::path& file, std::string_view ending) {
        std::ifstream in(file);
        std::string line;
        while (std::getline(in, line))
            if (line.size() >= ending.size() &&
                std::string_view(line).substr(line.size() - ending.size()) == ending)
                return line;
        return std::string();
    };
    std::error_code none;
    std::filesystem::path at = std::filesystem::current_path(none);
    while (!none && !std::filesystem::exists(at / ".git", none) && at.has_relative_path())
        at = at.parent_path();
    std::filesystem::path git = at / ".git", refs = git;
    if (const std::string link = line_of(git, ""); link.rfind("gitdir: ", 0) == 0) {
        git = at / link.substr(8);  // a worktree: its branches are in the main one
        refs = git / line_of(git / "commondir", "");
    }
    const std::string head = line_of(git / "HEAD", "");
    if (head.rfind("ref: ", 0) != 0) return printable(head, 64);
    const std::string sha = line_of(refs / head.substr(5), "");
    const std::string packed = line_of(refs / "packed-refs", " " + head.substr(5));
    return printable(sha.empty() ? packed.substr(0, packed.find(' ')) : sha, 64);
}

inline std::string name_of_the_processor() {
#ifdef __APPLE__
    char name[128] = {};
    std::size_t size = sizeof name - 1;
    ::sysctlbyname("machdep.cpu.brand_string", name, &size, nullptr, 0);
    return name;
#else
    std::ifstream cpu("/proc/cpuinfo");
    for (std::string line; std::getline(cpu, line);)
        if (line.rfind("model name", 0) == 0 && line.find(':') != std::string::npos)
            return std::string(trimmed(std::string_view(line).substr(line.find(':') + 1)));
    return {};
#endif
}
/// As this program was called.
inline std::string name_of_the_program() {
    std::string name;
#ifdef __APPLE__
    name = ::getprogname();
#else
    std::ifstream call("/proc/self/cmdline");
    std::getline(call, name, '\0');
#endif
    return name;
}

inline environment_facts environment_now() {
    environment_facts f;
    utsname u{};
    if (uname(&u) == 0) f.os = std::string(u.sysname) + " " + u.release;
    f.cpu = name_of_the_processor();
    f.cores = static_cast<int>(std::thread::hardware_concurrency());
    f.compiler = __VERSION__;
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    char buffer[32];
    std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &utc);
    f.started_at = buffer;
    f.commit = commit_now();
    f.program = name_of_the_program();
    return f;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E12] what the system lets one process have ===============================================

#ifdef __APPLE__
#include <sys/sysctl.h>  // its range of ports
#include <sys/syslimits.h>  // OPEN_MAX
#else
#include <fstream>  // ifstream
#endif

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Raises the limit on open files towards this many. The limit as it is then, 0 where nobody knows.
inline rlim_t raised_open_files(rlim_t wanted) {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
    rlim_t most = files.rlim_max;
#ifdef __APPLE__
    most = std::min<rlim_t>(most, OPEN_MAX);  // more is refused, whatever the hard limit says
#endif
    const rlim_t so_far = files.rlim_cur;
    files.rlim_cur = std::min(wanted, most);
    const bool raised = files.rlim_cur > so_far && ::setrlimit(RLIMIT_NOFILE, &files) == 0;
    return raised ? files.rlim_cur : so_far;
}

/// Ports that connections to one server can have on this side, 0 where nobody knows.
inline long long ports_to_one_server() {
    long long low = 0, high = -1;
#ifdef __APPLE__
    int first = 0, last = -1;
    std::size_t size = sizeof first;
    if (::sysctlbyname("net.inet.ip.portrange.first", &first, &size, nullptr, 0) != 0 ||
        ::sysctlbyname("net.inet.ip.portrange.last", &last, &size, nullptr, 0) != 0)
        return 0;
    low = first;
    high = last;
#else
    std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
    if (!(range >> low >> high)) return 0;
#endif
    return high - low + 1;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E13] how long a thread has waited for a core =============================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The kernel's own account of the thread that makes this: busy neighbours and quotas are in it,
/// whatever took the machine as a whole away is not. Only Linux keeps one.
class run_queue_wait {
public:
    run_queue_wait() : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
    ~run_queue_wait() {
        if (file_ >= 0) ::close(file_);
    }
    run_queue_wait(const run_queue_wait&) = delete;
    run_queue_wait& operator=(const run_queue_wait&) = delete;

    /// Nanoseconds since the thread began, -1 where nobody counts them.
    long long so_far_ns() const {
        char text[96] = {};
        long long waited = -1;
        if (file_ < 0 || ::pread(file_, text, sizeof text - 1, 0) <= 0) return -1;
        return std::sscanf(text, "%*d %lld", &waited) == 1 ? waited : -1;
    }

private:
    int file_;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E14] all that a scenario names in files ==================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Puts the images of a sample into it.
inline void read_images(const dataset& d, std::vector<dialogue>& sample) {
    constexpr std::size_t most_bytes = 512 * 1024 * 1024;
    std::filesystem::path directory = str(d.images);
    if (directory.empty()) directory = std::filesystem::path(str(d.path)).parent_path();
    std::size_t bytes = 0;
    for (dialogue& x : sample)
        for (dialogue_turn& t : x.turns) {
            if (t.image.empty()) continue;
            const std::string file = (directory / t.image).string();
            const std::string type = image_type(file);
            require(!type.empty(), str(d.path) + ": the image \"" + t.image +
                                       "\" must end in .jpg, .jpeg, .png, .webp or .gif");
            t.image = "data:" + type + ";base64," +
                      base64(file_content(file, str(d.path) + ": an image of it"));
            bytes += t.image.size();
            require(bytes <= most_bytes, str(d.path) + ": the images of the sample take over 512 "
                                                       "MiB, ask for less with max_items");
        }
}

/// Conversations that a scenario can use, where its dataset does not say how many.
inline std::size_t dialogues_wanted(const scenario& s) {
    if (s.requests <= 0) return 10000;
    const long long n = s.requests + s.warmup.requests();
    return static_cast<std::size_t>(std::clamp(s.traffic == fresh ? 4 * n : n, 1ll, 1000000ll));
}

/// All that a scenario names in files.
inline workload_files read_workload_files(const scenario& s, std::uint64_t default_seed) {
    using shape = length_distribution::shape;
    workload_files f;
    const auto numbers_of = [](const length_distribution& d, const char* field) {
        return d.kind == shape::empirical ? read_numbers(str(d.file), field)
                                          : std::vector<double>();
    };
    const box& w = s.workload.what();
    if (const auto* made = w.get<synthetic>()) {
        f.prompt_values = numbers_of(made->prompt_tokens, "workload.prompt_tokens");
        f.output_values = numbers_of(made->output_tokens, "workload.output_tokens");
    } else if (const auto* talk = w.get<conversations>()) {
        f.prompt_values = numbers_of(talk->user_tokens, "workload.user_tokens");
        f.output_values = numbers_of(talk->output_tokens, "workload.output_tokens");
    } else if (const auto* d = w.get<dataset>()) {
        check_dataset(*d);
        byte_stream in = bytes_of(str(d->path), "workload.path");
        const long long seed = s.seed;
        f.dialogues = sampled_dialogues(in, *d, dialogues_wanted(s),
                                        seed > 0 ? static_cast<std::uint64_t>(seed) : default_seed);
        read_images(*d, f.dialogues);
    }
    const arrival_data& a = s.arrivals.data();
    if (a.kind == arrival_kind::replay) {
        check_arrivals(a);
        byte_stream in = bytes_of(str(a.file), "arrivals, replay's file,");
        f.trace = read_trace(in);
    }
    return f;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E15] asio, under every client and the simulated server ===================================

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#include <version>  // before asio: it asks for library features
#include <asio/basic_stream_socket.hpp>
#include <asio/basic_waitable_timer.hpp>  // points in time
#include <asio/io_context.hpp>

#include <chrono>

namespace llmbench {
inline namespace v0 {
namespace detail {

// Of one executor, where asio's own names are of any: that costs a compiler half a second.
using io_executor = asio::io_context::executor_type;
using io_timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                            asio::wait_traits<std::chrono::steady_clock>,
                                            io_executor>;

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E16] whoever is told of a socket =========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Whoever reads from a socket and writes to it.
class socket_user {
public:
    /// There are bytes to read, or the end. It is told again as long as there are.
    virtual void on_readable() = 0;
    /// What it waited for: the socket is connected, or takes bytes again.
    virtual void on_writable() = 0;

protected:
    ~socket_user() = default;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E17] sockets and addresses ===============================================================

#ifndef __linux__
#include <fcntl.h>  // what a socket is made with elsewhere
#endif
#include <netdb.h>  // getaddrinfo
#include <netinet/in.h>  // sockaddr_in
#include <netinet/tcp.h>  // TCP_NODELAY
#include <sys/socket.h>  // socklen_t, SOCK_STREAM
#include <sys/un.h>  // Unix-domain sockets
#include <unistd.h>  // close

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A file descriptor that closes itself.
class descriptor {
public:
    descriptor() = default;
    explicit descriptor(int fd) : fd_(fd) {}
    descriptor(descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
    descriptor& operator=(descriptor&& o) noexcept { std::swap(fd_, o.fd_); return *this; }
    ~descriptor() { if (fd_ >= 0) ::close(fd_); }
    int get() const { return fd_; }
    int release() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
};

struct address {
    sockaddr_storage storage{};
    socklen_t size = 0;
};

/// A name that is always this machine's own (RFC 6761, 6.3), also where no /etc/hosts says so.
inline bool is_localhost(std::string_view host) {
    const std::size_t dot = host.rfind('.');
    return same_ignoring_case(dot < host.size() ? host.substr(dot + 1) : host, "localhost");
}

/// All addresses of a host, or the one of a Unix-domain socket. Throws std::runtime_error where
/// there is none.
inline std::vector<address> resolved(const http_url& u) {
    if (!u.socket.empty()) {
        sockaddr_un a{};
        a.sun_family = AF_UNIX;
        u.socket.copy(a.sun_path, sizeof a.sun_path - 1);
        address x;
        std::memcpy(&x.storage, &a, sizeof a);
        x.size = sizeof a;
        return {x};
    }
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    int error = ::getaddrinfo(u.host.c_str(), u.port.c_str(), &hints, &found);
    if (error != 0 && is_localhost(u.host))
        error = ::getaddrinfo(nullptr, u.port.c_str(), &hints, &found);  // its own addresses
    if (error != 0)
        throw std::runtime_error("the host \"" + printable(u.host) +
                                 "\" cannot be resolved: " + resolver_error_text(error));
    std::vector<address> out;
    for (const addrinfo* a = found; a; a = a->ai_next) {
        address x;
        std::memcpy(&x.storage, a->ai_addr, a->ai_addrlen);
        x.size = a->ai_addrlen;
        out.push_back(x);
    }
    ::freeaddrinfo(found);
    return out;
}

#ifdef MSG_NOSIGNAL
inline constexpr int no_signal = MSG_NOSIGNAL;
#else
inline constexpr int no_signal = 0;  // the socket knows
#endif
/// A socket that no server of ours inherits, and that does not end the program when its other side
/// has gone.
inline descriptor new_socket(int family, bool blocks) {
#ifdef __linux__
    const int how = SOCK_CLOEXEC | (blocks ? 0 : SOCK_NONBLOCK);
    return descriptor(::socket(family, SOCK_STREAM | how, 0));  // its sends say no_signal
#else
    descriptor fd(::socket(family, SOCK_STREAM, 0));
    if (fd.get() < 0) return fd;
    ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
    if (!blocks) ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
#ifdef SO_NOSIGPIPE
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    return fd;
#endif
}

/// A non-blocking socket on its way to `to`; errno where it is not. EAGAIN: the queue of a
/// Unix-domain socket is full, and only asking again tells when it is not.
inline descriptor connecting_socket(const address& to) {
    descriptor fd = new_socket(to.storage.ss_family, false);
    if (fd.get() < 0) return fd;
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0 &&
        errno != EINPROGRESS) {
        const int error = errno;
        fd = descriptor();
        errno = error;
    }
    return fd;
}

/// What this machine lacks for one more connection, in words and with the remedy; "" where an error
/// is not of that kind.
inline std::string own_lack(int error) {
    switch (error) {
    case EMFILE: return "no file descriptor is left (EMFILE): raise its limit, ulimit -n";
    case ENFILE: return "the machine has no file left to open (ENFILE): raise fs.file-max";
    case EADDRNOTAVAIL:
        return "no local address or port is left (EADDRNOTAVAIL): widen "
               "net.ipv4.ip_local_port_range, or reuse connections";
    case ENOBUFS: return "the machine has no room for another socket (ENOBUFS): raise net.core and "
                         "net.ipv4.tcp_mem limits";
    case ENOMEM: return "the machine has no memory for another socket (ENOMEM)";
    case ENOSPC: return "no more sockets can be watched (ENOSPC): raise fs.epoll.max_user_watches";
    default: return {};
    }
}

/// A port of the loopback interface that nothing listens on now.
inline int free_port() {
    const descriptor fd = new_socket(AF_INET, true);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 ||
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&a), &size) != 0)
        throw std::runtime_error("no free port can be had on 127.0.0.1");
    return ntohs(a.sin_port);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E18] waiting for sockets, on every other system ==========================================

#if !defined(__linux__) || defined(LLMBENCH_WAIT_BY_ASIO)
#include <asio/executor_work_guard.hpp>  // a context without work would stop
#include <asio/generic/stream_protocol.hpp>  // TCP and Unix-domain sockets alike
#endif

namespace llmbench {
inline namespace v0 {
namespace detail {

#if !defined(__linux__) || defined(LLMBENCH_WAIT_BY_ASIO)
using stream_socket = asio::basic_stream_socket<asio::generic::stream_protocol, io_executor>;

/// A socket that somebody is told of. What is still to be said of it once it is closed goes
/// nowhere.
struct asio_socket {
    asio_socket(asio::io_context& c, int of, socket_user& u) : socket(c), family(of), user(&u) {}

    stream_socket socket;
    const int family;   // of its addresses
    socket_user* user;  // null: closed
    bool awaits_bytes = false, awaits_room = false;
};

/// The sockets of one thread, and one point in time: see network.hpp. asio waits and tells what is
/// ready; reading is left to whoever is told, so that each stamp is right behind its read.
class asio_network {
public:
    using socket = std::shared_ptr<asio_socket>;

    asio_network() try : timer_(context_), busy_(context_.get_executor()) {
    } catch (const asio::system_error& e) {
        throw std::runtime_error("the client cannot start: " + e.code().message());
    }
    asio_network(const asio_network&) = delete;
    asio_network& operator=(const asio_network&) = delete;

    socket watch(descriptor fd, int family, socket_user& user) {
        auto s = std::make_shared<asio_socket>(context_, family, user);
        if (!take(*s, std::move(fd))) return nullptr;
        await_room(s);
        return s;
    }
    void await_room(const socket& s) {
        if (s->awaits_room) return;
        s->awaits_room = true;
        s->socket.async_wait(stream_socket::wait_write,
                             [this, s](const asio::error_code& e) mutable {
                                 if (e != asio::error::operation_aborted)
                                     ready_.push_back({std::move(s), false});
                             });
    }
    void let_go(socket s) {
        asio::error_code ignored;
        s->user = nullptr;
        s->socket.close(ignored);
    }
    static int fd(const socket& s) { return s->socket.native_handle(); }

    void wait(long long until_ns, long long now = now_ns()) {
        if (until_ns > now) {
            ring(until_ns);
            context_.run_one();
        }
        context_.poll();  // all else that is ready by now
    }
    static long long turns_for_all(std::size_t) { return 0; }
    template <class AfterEach>
    void each(AfterEach&& after_each) {
        for (ready& r : ready_) {
            if (!r.s->user) continue;
            if (r.to_read) r.s->user->on_readable();
            else {
                r.s->awaits_room = false;
                r.s->user->on_writable();
                if (r.s->user && !r.s->awaits_room) begin_anew(*r.s);
            }
            if (r.s->user && !r.s->awaits_bytes) await_bytes(std::move(r.s));
            after_each();
        }
        ready_.clear();
    }
    void each() { each([] {}); }

private:
    struct ready {
        socket s;
        bool to_read;
    };

    static bool take(asio_socket& s, descriptor fd) {
        asio::error_code error;
        s.socket.assign(asio::generic::stream_protocol(s.family, 0), fd.get(), error);
        if (!error) fd.release();
        errno = error.value();
        return !error;
    }
    void await_bytes(socket s) {
        s->awaits_bytes = true;
        stream_socket& from = s->socket;
        from.async_wait(stream_socket::wait_read,
                        [this, s = std::move(s)](const asio::error_code& e) mutable {
                            if (e == asio::error::operation_aborted) return;
                            s->awaits_bytes = false;
                            ready_.push_back({std::move(s), true});
                        });
    }
    /// Where asio has waited for room once, epoll tells of it at every later wait for bytes, too,
    /// and each would return at once. So the socket becomes one that asio has not seen.
    static void begin_anew(asio_socket& s) {
        asio::error_code error;
        take(s, descriptor(s.socket.release(error)));  // where it fails, the next wait tells
        s.awaits_bytes = false;
    }
    void ring(long long at_ns) {
        if (rings_at_ns_ != 0 && rings_at_ns_ <= at_ns) return;  // to come too early does no harm
        rings_at_ns_ = at_ns;
        timer_.expires_at(time_point_of(at_ns));
        timer_.async_wait([this](const asio::error_code& e) {
            if (!e) rings_at_ns_ = 0;
        });
    }

    asio::io_context context_{ASIO_CONCURRENCY_HINT_UNSAFE};  // one thread: no locks
    io_timer timer_;
    asio::executor_work_guard<io_executor> busy_;
    std::vector<ready> ready_{};
    long long rings_at_ns_ = 0;
};
#endif

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E19] waiting for sockets, on Linux =======================================================

#ifdef __linux__
#include <sys/epoll.h>  // epoll_event
#include <sys/timerfd.h>  // waiting for a point in time
#endif

namespace llmbench {
inline namespace v0 {
namespace detail {

#ifdef __linux__
/// A socket that somebody is told of.
struct epoll_socket {
    descriptor fd;
    socket_user* user;  // null: closed
    bool awaits_room = true;  // to connect, or to write more
};

/// The sockets of one thread, and one point in time: see network.hpp. A socket is told of while it
/// holds bytes, so one read a turn is enough, and none starves the others.
class epoll_network {
public:
    using socket = std::shared_ptr<epoll_socket>;

    epoll_network() : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
                      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
        epoll_event e{};
        e.events = EPOLLIN | EPOLLET;  // rings, and is not read
        if (epoll_.get() < 0 || timer_.get() < 0 ||
            ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), &e) != 0)
            throw std::runtime_error("the client cannot start: " + error_text(errno));
    }

    socket watch(descriptor fd, int, socket_user& user) {
        auto s = std::make_shared<epoll_socket>(epoll_socket{std::move(fd), &user});
        return control(EPOLL_CTL_ADD, *s, EPOLLOUT) ? s : nullptr;
    }
    void await_room(const socket& s) {
        if (s->awaits_room) return;
        s->awaits_room = true;
        control(EPOLL_CTL_MOD, *s, EPOLLIN | EPOLLOUT);
    }
    void let_go(socket s) {
        control(EPOLL_CTL_DEL, *s, 0);  // a child of ours may hold it open yet
        s->user = nullptr;
        s->fd = descriptor();
        gone_.push_back(std::move(s));
    }
    static int fd(const socket& s) { return s->fd.get(); }

    void wait(long long until_ns, long long now = now_ns()) {
        gone_.clear();
        const bool passed = until_ns <= now;
        if (!passed && until_ns != rings_at_ns_) {
            const itimerspec at{{0, 0}, {until_ns / 1000000000, until_ns % 1000000000}};
            ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
            rings_at_ns_ = until_ns;
        }
        count_ = std::max(0, ::epoll_wait(epoll_.get(), events_, most, passed ? 0 : -1));
    }
    long long turns_for_all(std::size_t sockets) const {
        return count_ < most ? 0 : static_cast<long long>(sockets) / most + 1;
    }
    template <class AfterEach>
    void each(AfterEach&& after_each) {
        for (int i = 0; i < count_; ++i) {
            if (auto* const s = static_cast<epoll_socket*>(events_[i].data.ptr)) {
                if (!s->user) continue;
                tell(*s, events_[i].events);
                after_each();
            } else rings_at_ns_ = 0;
        }
        count_ = 0;
    }
    void each() { each([] {}); }

private:
    static constexpr int most = 256;  // events of a turn

    /// False, with errno, where it cannot.
    bool control(int operation, epoll_socket& s, unsigned events) {
        epoll_event e{};
        e.events = events;
        e.data.ptr = &s;
        return ::epoll_ctl(epoll_.get(), operation, s.fd.get(), &e) == 0;
    }
    void tell(epoll_socket& s, unsigned events) {
        const bool bytes = (events & EPOLLIN) != 0, more = (events & ~EPOLLIN) != 0;
        if (!s.awaits_room || !more) return s.user->on_readable();
        s.awaits_room = false;
        s.user->on_writable();
        if (s.user && !s.awaits_room) control(EPOLL_CTL_MOD, s, EPOLLIN);
        if (s.user && bytes) s.user->on_readable();
    }

    descriptor epoll_, timer_;
    epoll_event events_[most] = {};
    int count_ = 0;
    long long rings_at_ns_ = 0;
    std::vector<socket> gone_{};  // which events of this turn may still name
};
#endif

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E20] waiting for sockets =================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

// The sockets of one thread, and one point in time:
//   watch(fd, family, user)   takes over a socket on its way to its peer, and tells when it has
//                             arrived; of bytes from then on. Null, with errno, where it cannot
//   await_room(socket)        its user has more to write than it takes now
//   let_go(socket)            closes it; what is still to be said of it goes nowhere
//   wait(until_ns)            until something happens, or until then; not at all where that passed
//   turns_for_all(sockets)    after so many turns each that something came in at has been told of;
//                             0: the wait found all of them
//   each(after_each)          tells of what the wait found; `after_each` is called in between
//
// Both do the same. On Linux it is epoll itself, because asio costs more there than the raw reader
// may be exceeded by (1.3 times its CPU time an event of paced streams, 4 times that of a flood).
// The whole client, medians of five runs in turns; tests/bench/README.md has all of it:
//
//   CPU time an event, times the raw reader's    epoll    asio
//   a flood, 64 streams                            4.0     4.2
//   an event each 20 ms, 128 streams               1.3     1.5
//   an event each 20 ms, 1000 streams              1.2     1.3
//
// A wait of asio's is a system call for each event more, and another one for each turn to know that
// all is told; its reads need a buffer for each stream, which a flood wants as large as 64 KiB.
// LLMBENCH_WAIT_BY_ASIO takes asio on Linux, too: the tests do, in a program of their own.
#if defined(__linux__) && !defined(LLMBENCH_WAIT_BY_ASIO)
using network = epoll_network;
#else
using network = asio_network;
#endif

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E21] TLS =================================================================================

#ifdef LLMBENCH_WITH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#endif

namespace llmbench {
inline namespace v0 {
namespace detail {

#ifdef LLMBENCH_WITH_TLS
template <auto Free> struct freed_by {
    template <class T> void operator()(T* t) const { Free(t); }
};

/// What all TLS connections to one target share: its name, and whom to trust.
class tls_client {
public:
    /// Throws std::invalid_argument where the options name no authorities.
    tls_client(const tls_options& o, const http_url& u)
        : host(u.host), verify(o.verify), context(SSL_CTX_new(TLS_client_method())) {
        SSL_CTX* const c = context.get();
        if (!c) throw std::runtime_error("OpenSSL cannot be started");
        SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
        SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
        constexpr unsigned char http1[] = "\x08http/1.1";
        SSL_CTX_set_alpn_protos(c, http1, sizeof http1 - 1);
        SSL_CTX_set_session_cache_mode(c,
                                       SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
        SSL_CTX_set_verify(c, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
        const std::string file = str(o.ca_file);
        require(verify || file.empty(),
                "endpoint.tls.ca_file is \"" + printable(file) +
                    "\" and endpoint.tls.verify is false: nothing would be verified with it");
        if (file.empty()) { SSL_CTX_set_default_verify_paths(c); return; }
        file_content(file, "endpoint.tls.ca_file");  // throws where it cannot be read
        require(SSL_CTX_load_verify_locations(c, file.c_str(), nullptr) == 1,
                "endpoint.tls.ca_file is \"" + printable(file) +
                    "\": it holds no certificate in PEM format");
    }

    const std::string host;
    const bool verify;
    const std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>> context;
};

/// What the connections of one thread learn of their server, so that the next handshake is short.
using tls_session = std::unique_ptr<SSL_SESSION, freed_by<SSL_SESSION_free>>;

/// The TLS of one connection, without its socket: bytes of the network in and out on one side, of
/// HTTP on the other. So one read takes all that the socket has, and is stamped right after it.
class tls_channel {
public:
    /// `last`: the session to go on with, and where the server's next one is put; may be null.
    tls_channel(const tls_client& client, tls_session* last)
        : client_(client), last_(last), ssl_(SSL_new(client.context.get())) {
        BIO* const in = BIO_new(BIO_s_mem());
        BIO* const out = BIO_new(BIO_s_mem());
        if (!ssl_ || !in || !out) throw std::bad_alloc();
        BIO_set_mem_eof_return(in, -1);  // empty is not the end
        SSL_set_bio(ssl_.get(), in, out);
        SSL_set_connect_state(ssl_.get());
        X509_VERIFY_PARAM* const check = SSL_get0_param(ssl_.get());
        X509_VERIFY_PARAM_set_hostflags(check, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        if (X509_VERIFY_PARAM_set1_ip_asc(check, client.host.c_str()) != 1) {  // a name, then
            ERR_clear_error();
            X509_VERIFY_PARAM_set1_host(check, client.host.c_str(), client.host.size());
            SSL_set_tlsext_host_name(ssl_.get(), client.host.c_str());
        }
        if (!last) return;
        SSL_set_app_data(ssl_.get(), this);
        SSL_CTX_sess_set_new_cb(client.context.get(), [](SSL* s, SSL_SESSION* session) {
            auto* const channel = static_cast<tls_channel*>(SSL_get_app_data(s));
            if (channel) channel->last_->reset(session);
            return channel ? 1 : 0;  // 1: it is ours now
        });
        if (*last) SSL_set_session(ssl_.get(), last->get());
    }
    /// Takes what the network brought, answers it where TLS itself has to, and returns the bytes of
    /// HTTP that are whole by now, in `room`. With no bytes at first it begins the handshake.
    std::string_view received(std::string_view bytes, std::vector<char>& room) {
        BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
        room.resize(std::max(room.size(), bytes.size() + 2 * SSL3_RT_MAX_PLAIN_LENGTH));
        std::size_t held = 0, n = 0;
        ERR_clear_error();
        while (SSL_read_ex(ssl_.get(), room.data() + held, room.size() - held, &n) == 1) held += n;
        const int why = SSL_get_error(ssl_.get(), 0);
        if (why == SSL_ERROR_ZERO_RETURN) ended_ = true;
        else if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) fail();
        return {room.data(), held};
    }
    /// The handshake is done.
    bool open() const { return SSL_is_init_finished(ssl_.get()) == 1; }
    bool resumed() const { return SSL_session_reused(ssl_.get()) == 1; }
    void send(std::string_view plain) {
        std::size_t n = 0;
        ERR_clear_error();
        if (!plain.empty() && SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &n) != 1) fail();
    }
    /// Says that nothing more will be sent.
    void say_goodbye() { if (open() && error_.empty()) SSL_shutdown(ssl_.get()); }
    /// What the socket is to be given.
    std::string_view outgoing() const {
        char* data = nullptr;
        const long n = BIO_get_mem_data(SSL_get_wbio(ssl_.get()), &data);
        return {data, static_cast<std::size_t>(n)};
    }
    void sent(std::size_t n) {
        char taken[4096];
        while (n > 0) {
            const int most = static_cast<int>(std::min(n, sizeof taken));
            n -= static_cast<std::size_t>(BIO_read(SSL_get_wbio(ssl_.get()), taken, most));
        }
    }
    /// Nothing more will come: the server said so, or something is wrong.
    bool ended() const { return ended_; }
    const std::string& error() const { return error_; }
    /// What is wrong is the certificate.
    bool distrusts() const { return distrusts_; }

    ~tls_channel() { SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); }
    tls_channel(const tls_channel&) = delete;
    tls_channel& operator=(const tls_channel&) = delete;

private:
    void fail() {
        ended_ = true;
        const long verified = client_.verify ? SSL_get_verify_result(ssl_.get()) : X509_V_OK;
        const unsigned long error = ERR_get_error();
        const char* const reason = ERR_reason_error_string(error);
        if (verified != X509_V_OK) { distrusts_ = true; error_ = certificate_text(verified); }
        else if (ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER && !open())
            error_ = "the server does not answer in TLS: is it http:// and not https://?";
        else error_ = std::string("TLS failed: ") + (reason ? reason : "OpenSSL does not say why");
        ERR_clear_error();
    }
    std::string certificate_text(long code) const {
        const std::string certificate = "the server's certificate ";
        switch (code) {
        case X509_V_ERR_CERT_HAS_EXPIRED: return certificate + "has expired";
        case X509_V_ERR_CERT_NOT_YET_VALID: return certificate + "is not valid yet";
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
            return certificate + "is not for \"" + printable(client_.host) + "\"";
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
            return certificate + "is self-signed (endpoint.tls.ca_file can name it as trusted)";
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            return certificate + "is signed by an authority that is not trusted here "
                                 "(endpoint.tls.ca_file can name it)";
        default:
            return certificate + "is not accepted: " + X509_verify_cert_error_string(code);
        }
    }

    const tls_client& client_;
    tls_session* const last_;
    std::unique_ptr<SSL, freed_by<SSL_free>> ssl_;
    std::string error_{};
    bool ended_ = false, distrusts_ = false;
};
#else
/// Where the program was built without OpenSSL there is no TLS, and a target says so.
struct tls_client {
    tls_client(const tls_options&, const http_url& u) {
        throw std::invalid_argument(
            "https://" + printable(u.authority()) +
            ": this program was built without TLS. Define LLMBENCH_WITH_TLS in the file that "
            "carries the implementation and link OpenSSL (-lssl -lcrypto), or build with CMake, "
            "which does both where it finds OpenSSL (libssl-dev)");
    }
};
struct tls_session {};
struct tls_channel {
    tls_channel(const tls_client&, tls_session*) {}
    std::string_view received(std::string_view, std::vector<char>&) { return {}; }
    bool open() const { return false; }
    bool resumed() const { return false; }
    void send(std::string_view) {}
    void say_goodbye() {}
    std::string_view outgoing() const { return {}; }
    void sent(std::size_t) {}
    bool ended() const { return true; }
    std::string error() const { return {}; }
    bool distrusts() const { return false; }
};
#endif
inline constexpr const char* tls_was_cut = "the connection was cut without an end of TLS";

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E22] one request and its answer over one socket ==========================================
// What every client of this program stands on. It never waits: whoever has it knows when.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What one read of a socket brought.
struct arrival {
    enum class kind : unsigned char { nothing_yet, bytes, end };
    kind what = kind::nothing_yet;
    long long at_ns = 0;       // when the bytes left the socket, before anybody looked at them
    std::string_view bytes{};  // as the network brought them, in the buffer of the read
    int error = 0;             // of the end: errno, 0 where the other side closed in an orderly way
};

/// How far a TLS handshake is.
struct handshake {
    enum class state : unsigned char { going_on, done, failed };
    state is = state::going_on;
    std::string why{};  // it failed
};
inline constexpr const char* closed_in_handshake =
    "the connection was closed during the TLS handshake";

/// A socket that does not block, and TLS on it where the target wants that. Bytes of the network
/// come out of read() with their time; content() makes HTTP of them.
class exchange {
public:
    exchange() = default;
    ~exchange() { let_go(); }
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;

    /// Begins to connect; `user` is told when it did, and of bytes from then on. False, with errno,
    /// where it cannot.
    bool connect(const address& to, network& net, socket_user& user) {
        descriptor fd = connecting_socket(to);
        if (fd.get() < 0) return false;
        net_ = &net;
        socket_ = net.watch(std::move(fd), to.storage.ss_family, user);
        return is_open();
    }
    /// Once the socket can be written to: 0, or the errno that came of connecting.
    int connect_error() const {
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size);
        return error;
    }
    bool is_open() const { return socket_ != nullptr; }
    int fd() const { return network::fd(socket_); }

    // ---- TLS

    /// `last`: the session to go on with, and where the server's next one is put; may be null.
    handshake begin_handshake(const tls_client& client, tls_session* last,
                              std::vector<char>& room) {
        tls_ = std::make_unique<tls_channel>(client, last);
        return shake_hands({}, room);
    }
    /// Takes what the network brought for it.
    handshake shake_hands(std::string_view bytes, std::vector<char>& room) {
        using state = handshake::state;
        const bool spoke_first = !tls_->received(bytes, room).empty();
        const bool lost = !flush();
        if (tls_->ended())
            return {state::failed, tls_->error().empty() ? closed_in_handshake : tls_->error()};
        if (spoke_first) return {state::failed, "the server answered before it was asked"};
        if (lost) return {state::failed, error_text(errno)};
        return {tls_->open() ? state::done : state::going_on, ""};
    }
    bool has_tls() const { return tls_ != nullptr; }
    /// Of a handshake that is done: a short one, with an earlier session.
    bool resumed() const { return tls_->resumed(); }
    /// The server's certificate is what is wrong.
    bool distrusts() const { return tls_ && tls_->distrusts(); }
    /// TLS came to its end: nothing more will be content.
    bool tls_ended() const { return tls_ && tls_->ended(); }
    /// Why it did, empty where the server said so in an orderly way.
    std::string tls_error() const { return tls_->error(); }

    // ---- the request

    /// Makes it ready for flush(). It must stay where it is as long as something of it is unsent.
    void send(std::string_view request) {
        request_ = request;
        unsent_ = request.size();
        if (tls_) tls_->send(request);
    }
    /// Gives the socket what it takes; where that is not all, its user is told when it takes more.
    /// False, with errno, where it takes no more at all.
    bool flush() {
        if (tls_) unsent_ = tls_->outgoing().size();
        while (unsent_ > 0) {
            const char* const from = tls_ ? tls_->outgoing().data()
                                          : request_.data() + request_.size() - unsent_;
            const ssize_t n = ::send(fd(), from, unsent_, no_signal);
            if (n > 0) {
                unsent_ -= static_cast<std::size_t>(n);
                if (tls_) tls_->sent(static_cast<std::size_t>(n));
            } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
                net_->await_room(socket_);
                break;
            } else if (errno != EINTR) return false;
        }
        return true;
    }
    /// Bytes of the request, or of what TLS made of it, that the socket did not take yet.
    std::size_t unsent() const { return unsent_; }

    // ---- the answer

    /// One read, stamped before anything else is done.
    arrival read(std::vector<char>& buffer) {
        const ssize_t n = ::recv(fd(), buffer.data(), buffer.size(), 0);
        const long long now = now_ns();
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
        if (n <= 0) return {arrival::kind::end, now, {}, n < 0 ? errno : 0};
        return {arrival::kind::bytes, now, {buffer.data(), static_cast<std::size_t>(n)}, 0};
    }
    /// The bytes of HTTP in what a read brought; of TLS those that are whole by now, in `room`.
    std::string_view content(std::string_view bytes, std::vector<char>& room) {
        if (!tls_) return bytes;
        bytes = tls_->received(bytes, room);
        flush();  // where it fails, a read will tell
        return bytes;
    }
    /// False where the server closed an idle connection, or sent what nobody asked for. TLS may
    /// bring words of its own, such as sessions to go on with.
    bool is_quiet(std::vector<char>& buffer, std::vector<char>& room) {
        if (!is_open()) return false;
        const ssize_t n = ::recv(fd(), buffer.data(), buffer.size(), 0);
        if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        if (n == 0 || !tls_) return false;
        const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
        return tls_->received(bytes, room).empty() && !tls_->ended();
    }
    /// Says goodbye where TLS has a word for it and nothing is left that should go before.
    void close() {
        if (tls_ && is_open() && unsent_ == 0) {
            tls_->say_goodbye();
            const std::string_view words = tls_->outgoing();
            if (!words.empty()) ::send(fd(), words.data(), words.size(), no_signal);
        }
        tls_.reset();
        let_go();
        unsent_ = 0;
    }

private:
    void let_go() {
        if (socket_) net_->let_go(std::exchange(socket_, nullptr));
    }

    network* net_ = nullptr;
    network::socket socket_{};
    std::unique_ptr<tls_channel> tls_{};
    std::string_view request_{};
    std::size_t unsent_ = 0;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E23] requests that are not measured ======================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

struct http_answer {
    int status = 0;
    std::string body{};
    std::string error{};  // why there is none
    bool distrusted = false;  // because of the server's certificate
};

/// One request on a connection of its own, for what is not measured: readiness, model lists.
class blocking_exchange final : private socket_user {
public:
    explicit blocking_exchange(double within_s)
        : within_s_(within_s), deadline_ns_(now_ns() + ns_of(within_s)) {}

    http_answer ask(const http_url& u, const std::string& request, const tls_client* tls) {
        if (connect(u) && (!tls || secure(*tls)) && send(request)) read_answer();
        return std::move(answer_);
    }

private:
    static constexpr std::size_t most_body = 8u << 20;
    static constexpr long long look_up_ns = 50000000;  // for an interruption

    void on_readable() override { called_ = readable_ = true; }
    void on_writable() override { called_ = true; }
    /// False where nothing happens until then, or somebody interrupts the program.
    bool wait(long long until_ns) {
        const bool was_interrupted = interrupted.load();
        called_ = readable_ = false;
        for (long long now = now_ns(); !called_; now = now_ns()) {
            if (now >= until_ns || interrupted.load() != was_interrupted) return false;
            net_.wait(std::min(until_ns, now + look_up_ns), now);
            net_.each();
        }
        return true;
    }

    bool failed(std::string why) {
        answer_.error = std::move(why);
        return false;
    }
    bool failed_by_time() { return failed("no answer within " + time_text(within_s_)); }
    bool connect(const http_url& u) {
        std::vector<address> addresses;
        try {
            addresses = resolved(u);
        } catch (const std::runtime_error& e) {
            return failed(e.what());
        }
        for (std::size_t i = 0; i < addresses.size(); ++i) {
            // An address that never answers leaves time for those after it.
            const long long until = now_ns() + (deadline_ns_ - now_ns()) /
                                                   static_cast<long long>(addresses.size() - i);
            const int error = try_address(addresses[i], until);
            if (error == 0) {
                answer_.error.clear();
                return true;
            }
            failed(std::string("cannot connect: ") + error_text(error));
            wire_.close();
        }
        return false;
    }
    /// 0, or the errno that came of it.
    int try_address(const address& to, long long until_ns) {
        while (!wire_.connect(to, net_, *this)) {
            if (errno != EAGAIN || now_ns() >= until_ns) return errno;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return wait(until_ns) ? wire_.connect_error() : ETIMEDOUT;
    }
    bool secure(const tls_client& tls) {
        handshake hands = wire_.begin_handshake(tls, nullptr, room_);
        while (hands.is == handshake::state::going_on) {
            if (!wait(deadline_ns_)) return failed_by_time();
            if (wire_.unsent() > 0 && !wire_.flush()) return failed(closed_in_handshake);
            const arrival a = wire_.read(buffer_);
            if (a.what == arrival::kind::end) return failed(closed_in_handshake);
            if (a.what == arrival::kind::bytes) hands = wire_.shake_hands(a.bytes, room_);
        }
        answer_.distrusted = wire_.distrusts();
        return hands.is == handshake::state::done || failed(hands.why);
    }
    /// An answer may come before the request is out.
    bool send(const std::string& request) {
        wire_.send(request);
        readable_ = false;
        while (wire_.flush() && wire_.unsent() > 0 && !readable_ && wait(deadline_ns_)) {}
        return wire_.unsent() == 0 || readable_ || failed("the connection was lost while sending");
    }
    bool read_answer() {
        response_parser parser;
        while (!parser.complete() && !parser.broken()) {
            if (!wait(deadline_ns_)) return failed_by_time();
            const arrival a = wire_.read(buffer_);
            if (a.what == arrival::kind::nothing_yet) continue;
            if (a.what == arrival::kind::end) {
                const bool orderly = a.error == 0;
                if (orderly && wire_.has_tls() && !parser.body_may_be_cut())
                    return failed(tls_was_cut);
                parser.end_of_input();
                continue;
            }
            parser.feed(wire_.content(a.bytes, room_), [&](std::string_view body) {
                if (answer_.body.size() < most_body) answer_.body.append(body);
            });
            if (!wire_.tls_ended() || parser.complete()) continue;
            if (const std::string why = wire_.tls_error(); !why.empty()) return failed(why);
            parser.end_of_input();
        }
        answer_.status = parser.complete() ? parser.status() : 0;
        answer_.error = parser.error();
        return parser.complete();
    }

    const double within_s_;
    const long long deadline_ns_;
    network net_{};
    exchange wire_{};
    http_answer answer_{};
    std::vector<char> buffer_ = std::vector<char>(16384);
    std::vector<char> room_{};  // of one read, where it was TLS
    bool called_ = false, readable_ = false;  // what the last wait brought
};

inline http_answer blocking_post(const http_url& u, const std::string& path,
                                 const std::string& fields, const std::string& body,
                                 double within_s, const tls_client* tls = nullptr) {
    const std::string request = request_text(http_method::post, path, u.authority(),
                                             "Connection: close\r\n" + fields, body);
    return blocking_exchange(within_s).ask(u, request, tls);
}
inline http_answer blocking_get(const http_url& u, const std::string& path,
                                const std::string& fields, double within_s,
                                const tls_client* tls = nullptr) {
    const std::string request = request_text(http_method::get, path, u.authority(),
                                             "Connection: close\r\n" + fields);
    return blocking_exchange(within_s).ask(u, request, tls);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E24] server processes ====================================================================

#ifdef __linux__
#include <sys/prctl.h>  // a server that ends with us
#include <sys/syscall.h>  // close_range
#endif
#include <sys/stat.h>  // fstat
#include <sys/types.h>  // pid_t, off_t, ssize_t
#include <sys/wait.h>  // how a server ended
#include <unistd.h>  // pipe, fork, close, write, unlink, pread

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Kills a process group when this program is gone, even by SIGKILL: a process that does nothing
/// but wait for the end of a pipe.
class group_guard {
public:
    void watch(pid_t group) {
        int ends[2];
#ifdef __linux__
        if (::pipe2(ends, O_CLOEXEC) != 0) return;
#else
        if (::pipe(ends) != 0) return;
        for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
#endif
        pid_ = ::fork();
        if (pid_ == 0) wait_and_kill(ends[0], group);
        ::close(ends[0]);
        pipe_ = descriptor(ends[1]);
    }
    /// The group is gone.
    void dismiss() {
        if (pid_ <= 0) return;
        [[maybe_unused]] const ssize_t n = ::write(pipe_.get(), "x", 1);
        pipe_ = descriptor();
        ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }

private:
    /// Only what a child of several threads may call.
    [[noreturn]] static void wait_and_kill(int pipe, pid_t group) {
        ::setpgid(0, 0);  // out of reach of the terminal's Ctrl-C
        for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::signal(s, SIG_IGN);
        ::dup2(pipe, 0);
        // The other end of this pipe and of others, and whatever somebody waits to see closed.
#ifdef SYS_close_range
        const bool closed = ::syscall(SYS_close_range, 1u, ~0u, 0u) == 0;
#else
        const bool closed = false;
#endif
        for (int fd = 1; !closed && fd < 65536; ++fd) ::close(fd);
        char byte = 0;
        ssize_t n = 0;
        while ((n = ::read(0, &byte, 1)) < 0 && errno == EINTR) {}
        if (n == 0) ::kill(-group, SIGKILL);
        ::_exit(0);
    }
    descriptor pipe_{};
    pid_t pid_ = -1;
};

/// What a server says, in the report directory, which may be uploaded. Where it was told what is
/// for nobody else, no name leads to its words while it runs; they appear without that when it has
/// ended.
class server_log {
public:
    server_log(std::string path, std::vector<std::string> secrets)
        : path_(std::move(path)), secrets_(std::move(secrets)) {
        if (const int problem = file_.open(path_))
            throw std::runtime_error("the log " + path_ + " cannot be written: " +
                                     error_text(problem));
        if (!secrets_.empty()) ::unlink(path_.c_str());
    }
    int fd() const { return file_.fd(); }
    /// Its end, for error messages.
    std::string tail(std::size_t bytes = 2000) const {
        struct stat now{};
        ::fstat(file_.fd(), &now);
        const off_t from = std::max<off_t>(now.st_size - static_cast<off_t>(bytes), 0);
        std::string s(bytes, '\0');
        const ssize_t n = ::pread(file_.fd(), s.data(), bytes, from);
        s.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
        return (from > 0 ? "..." : "") + without_secrets(s, secrets_);
    }
    /// The server has ended.
    void appear() {
        new_file out;
        if (secrets_.empty() || out.open(path_) != 0) return;
        std::size_t longest = 1;
        for (const std::string& s : secrets_) longest = std::max(longest, s.size());
        std::string some(1 << 16, '\0'), words;
        ssize_t n = 0;
        for (off_t at = 0; (n = ::pread(file_.fd(), some.data(), some.size(), at)) > 0; at += n) {
            words = without_secrets(words.append(some, 0, static_cast<std::size_t>(n)), secrets_);
            // What may be the beginning of a secret waits for the rest of it.
            const std::size_t whole = words.size() - std::min(longest - 1, words.size());
            out.append(std::string_view(words).substr(0, whole));
            words.erase(0, whole);
        }
        out.append(words);
    }

private:
    std::string path_;
    std::vector<std::string> secrets_;
    new_file file_{};
};

/// A server command in a process group of its own. Ended with SIGTERM, after 5 s with SIGKILL.
class server_process {
public:
    server_process(const process& p, int port, const std::string& log,
                   const std::vector<std::string>& secrets)
        : log_(log, secrets) {
        std::string command = str(p.command);
        for (std::size_t at; (at = command.find("{port}")) != std::string::npos;)
            command.replace(at, 6, std::to_string(port));
        std::vector<std::string> env;
        for (const name_value& nv : p.env) env.push_back(str(nv.name) + "=" + str(nv.value));
        const std::string directory = str(p.working_directory);
        const pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ < 0)
            throw std::runtime_error(std::string("cannot start a process: ") +
                                     error_text(errno));
        if (pid_ == 0) child(command, env, directory, parent);
        ::setpgid(pid_, pid_);
        guard_.watch(pid_);
        add_group_to_end(pid_);
    }
    ~server_process() { stop(); }
    server_process(const server_process&) = delete;
    server_process& operator=(const server_process&) = delete;

    /// "" while it runs, else how it ended.
    std::string how_it_ended() {
        if (!has_ended()) return {};
        return WIFSIGNALED(*status_) ? printed("was ended by signal %d", WTERMSIG(*status_))
                                     : printed("exited with status %d", WEXITSTATUS(*status_));
    }
    void stop() {
        if (pid_ <= 0) return;
        ::kill(-pid_, SIGTERM);
        for (int i = 0; i < 250 && (!has_ended() || ::kill(-pid_, 0) == 0); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ::kill(-pid_, SIGKILL);
        if (!status_) ::waitpid(pid_, nullptr, 0);
        remove_group_to_end(pid_);
        guard_.dismiss();
        pid_ = -1;
        log_.appear();
    }
    std::string log_tail() const { return log_.tail(); }

private:
    bool has_ended() {
        int status = 0;
        if (!status_ && pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
        return status_.has_value();
    }
    static constexpr int not_run = 127;  // the status by which shells tell it
    [[noreturn]] void child(const std::string& command, std::vector<std::string>& env,
                            const std::string& directory, pid_t parent) {
        ::setpgid(0, 0);
#ifdef __linux__
        // A crash of ours must not leave the server behind, not even one right now: the guard of
        // the whole group is yet to come.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        if (::getppid() != parent) ::_exit(not_run);
        const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        ::dup2(log_.fd(), 1);
        ::dup2(log_.fd(), 2);
        if (in >= 0) ::dup2(in, 0);
        for (std::string& e : env) ::putenv(e.data());
        if (!directory.empty() && ::chdir(directory.c_str()) != 0) {
            ::dprintf(2, "cannot enter %s: %s\n", directory.c_str(), std::strerror(errno));
            ::_exit(not_run);
        }
        const bool simple = command.find_first_of(";&|<>()\n") == std::string::npos;
        const std::string line = simple ? "exec " + command : command;
        ::execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
        ::_exit(not_run);
    }
    server_log log_;
    std::optional<int> status_{};  // as waitpid() tells it, once it has ended
    group_guard guard_{};
    pid_t pid_ = -1;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E25] when a thread of the client did not run, as it knows itself =========================
// No clock: whoever has it says what time it is, with readings that are taken anyway.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Told of the steps of one thread, finds the stretches in which it was blind. A thread that sleeps
/// and is woken by its sockets is not blind; one that comes later from its sleep than it asked for
/// is, since an unknown time before that: it may have slept through whatever came in. So it sleeps
/// no longer than for a tick.
class alertness {
public:
    static constexpr long long tick_ns = 5000000;
    static constexpr long long noticed_ns = 1000000;  // shorter ones are every machine's
    static constexpr long long busy_ns = 10000000;    // a turn so long is no use to its sockets

    void begin(long long now) { last_ns_ = slept_ns_ = woke_ns_ = ticked_ns_ = now; }
    /// The turn is over: it will sleep.
    void on_sleep(long long now) {
        on_step(now);
        if (now - woke_ns_ > busy_ns) hold_up({woke_ns_, now, now - woke_ns_, 0}, 1);
        if (turn_ >= clear_in_turn_ + turns_for_all_) close(now);
        slept_ns_ = now;
    }
    /// It was to sleep until `due_ns`, if nothing happened. Each socket that something came in at
    /// has its turn within `turns_for_all`; 0: it is told of all of them now.
    void on_wake(long long now, long long due_ns, long long turns_for_all) {
        ++turn_;
        turns_for_all_ = turns_for_all;
        woke_ns_ = last_ns_ = now;
        if (now - std::max(due_ns, slept_ns_) > noticed_ns)
            hold_up({slept_ns_, now, now - slept_ns_, now - slept_ns_}, 0);
    }
    /// It is doing something, one thing after the other.
    void on_step(long long now) {
        if (last_ns_ == 0) return;  // the load has not begun
        const long long took = now - last_ns_;
        if (took > noticed_ns) hold_up({last_ns_, now, took, took}, 1);
        last_ns_ = now;
    }
    /// At every tick. `waited_ns`: how long it has waited for a core so far, as the system counts
    /// it; below 0: not known. What it waited for is the sum of what may be many short waits.
    void on_tick(long long now, long long waited_ns) {
        const long long waited = waited_ns - waited_ns_;
        const bool known = waited_ns >= 0 && waited_ns_ >= 0;
        // Most of it may have been seen already, as a step or a sleep that took too long.
        if (known && waited - recent_lost_ns_ - open_.lost_ns > noticed_ns)
            found_.add({ticked_ns_, now, std::min(waited, now - ticked_ns_),
                        std::min(waited, now - ticked_ns_)});
        waited_ns_ = waited_ns;
        ticked_ns_ = now;
        recent_lost_ns_ = 0;
    }
    /// The load is over.
    void end(long long now) {
        on_sleep(now);
        close(now);
    }

    /// What came in while it was blind is not all read yet.
    bool is_behind() const { return open_.to_ns != 0; }
    /// How long it may not have run since then, at most.
    long long lost_since(long long time_ns) const {
        const long long now_lost =
            is_behind() ? std::min(open_.lost_ns, open_.to_ns - std::max(open_.from_ns, time_ns))
                        : 0;
        return lost_between(found_.all(), time_ns, last_ns_) + std::max(now_lost, 0ll);
    }
    const blind_stretches& found() const { return found_.all(); }

private:
    /// `turns`: so many of them later, what it was told of had come in afterwards.
    void hold_up(const blind_stretch& s, long long turns) {
        if (!is_behind()) open_ = s;
        else {
            open_.to_ns = s.to_ns;
            open_.lost_ns += s.lost_ns;
        }
        clear_in_turn_ = turn_ + turns;
    }

    void close(long long now) {
        if (!is_behind()) return;
        open_.to_ns = now;
        open_.most_delay_ns = std::max(open_.most_delay_ns, now - open_.from_ns);
        found_.add(open_);
        recent_lost_ns_ += open_.lost_ns;
        open_ = {};
    }

    blind_log found_{};
    blind_stretch open_{};  // to_ns is 0 where there is none
    long long turn_ = 0, clear_in_turn_ = 0, turns_for_all_ = 0;
    long long last_ns_ = 0, slept_ns_ = 0, woke_ns_ = 0, ticked_ns_ = 0;
    long long waited_ns_ = -1;
    long long recent_lost_ns_ = 0;  // of what was found since the last tick
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E26] what a load is told and delivers ====================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What every request of one load has in common.
struct load_target {
    http_url url{};
    std::vector<address> addresses{};
    std::shared_ptr<tls_client> tls{};  // none: plain HTTP
    std::string path{}, whole_path{};  // of streams, and of answers in one piece
    std::string fields{};  // header lines that all requests share, authorization included
    std::vector<std::string> secrets{};  // part of them, and of nothing that we write
    std::string model{};
    const api_traits* api = &apis[0];
    token_fit tokens{};  // of made-up prompts
};

/// One stretch of load: requests `first` to `last` (not included) of the trace.
struct load_order {
    const plan* what = nullptr;
    const load_target* target = nullptr;
    run_arm arm = run_arm::candidate;
    int repeat = 0;
    std::string id_prefix{};
    std::size_t first = 0, last = 0;
    std::vector<long long> send_at{};  // of an open loop, offsets in ns; empty: closed loop
    long long measured_from_ns = 0;    // offset; in a closed loop of a warm-up that is a time
    bool measured_by_time = false;
    std::size_t warmup = 0;            // requests of the trace that warm up, else
    long long most_measured = 0;       // after a warm-up that is a time; 0: no limit

    /// Requests of it that wait for none before them: all, or the first ones of conversations.
    std::size_t starts() const { return (last - first + what->stride - 1) / what->stride; }
};

/// A request of the trace, when it is due, and the user of a closed loop whose it is.
struct planned_request {
    std::size_t index = 0;
    long long scheduled_ns = 0;
    int user = -1;  // of an open loop
};

/// Requests that were delivered, on their way to the disk.
struct delivered_requests {
    std::vector<record> records{};
    std::vector<std::uint32_t> gaps{};  // of all of them, in their order
    void append(delivered_requests&& more) {
        std::move(more.records.begin(), more.records.end(), std::back_inserter(records));
        gaps.insert(gaps.end(), more.gaps.begin(), more.gaps.end());
        more.records.clear();
        more.gaps.clear();
    }
};
/// Between the threads of a load and the one that writes. The former never wait for it.
class outbox {
public:
    /// False, and nothing done, where it is in use.
    bool try_put(delivered_requests& d) {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock.owns_lock()) waiting_.append(std::move(d));
        return lock.owns_lock();
    }
    void put(delivered_requests& d) {
        const std::lock_guard lock(mutex_);
        waiting_.append(std::move(d));
    }
    /// What waits, in exchange for something empty.
    void take(delivered_requests& into) {
        const std::lock_guard lock(mutex_);
        std::swap(waiting_, into);
    }

private:
    std::mutex mutex_{};
    delivered_requests waiting_{};
};

/// What the threads of one load share. Nothing here is touched once per event.
struct load_state {
    std::atomic<std::size_t> next{0};              // closed loop: the next request of the trace
    std::atomic<long long> measured_from{0};       // when the first measured request was dispatched
    std::atomic<long long> measured{0};      // requests after a warm-up that is a time
    std::atomic<long long> exhausted_at{0};  // closed loop: when the first user had nothing left
    std::atomic<long long> planned{0}, sent{0}, done{0}, failed{0};  // requests; planned 0: open
    std::atomic<long long> ttft_ns{0}, answered{0}, tpot_ns{0}, paced{0};  // sums and their counts
    std::atomic<std::uint64_t> gaps{0};  // of all requests done
    std::uint64_t most_gaps = 0;         // to be kept one by one
    outbox* out = nullptr;               // where delivered requests go too
    long long start_ns = 0;
    long long deadline_ns = 0;  // of the whole program, 0: none

    /// Once a request, for whoever watches: nothing waits for anything here.
    void note(const record& r) {
        constexpr auto relaxed = std::memory_order_relaxed;
        done.fetch_add(1, relaxed);
        if (r.status != request_status::ok) { failed.fetch_add(1, relaxed); return; }
        ttft_ns.fetch_add(r.first_token_ns - r.scheduled_ns, relaxed);
        answered.fetch_add(1, relaxed);
        const int paced_tokens = r.output_tokens - r.first_event_tokens;
        if (paced_tokens <= 0) return;
        tpot_ns.fetch_add((r.last_token_ns - r.first_token_ns) / paced_tokens, relaxed);
        paced.fetch_add(1, relaxed);
    }
};

inline run_phase phase_of(const load_order& o, const load_state& shared, const planned_request& w) {
    const bool measured = o.measured_by_time
                              ? w.scheduled_ns >= shared.start_ns + o.measured_from_ns
                              : w.index >= o.warmup;
    return measured ? run_phase::measure : run_phase::warmup;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E27] one connection of the load ==========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the connections of one thread share: what they need to talk to the target, and what they
/// count while they do.
struct client_io {
    client_io(const load_target& t, const plan& p)
        : target(t), limits(p.limits), streamed(p.common.stream) {}

    const load_target& target;
    const llmbench::limits& limits;
    const bool streamed;  // answers are; else limits.total alone holds
    network sockets{};
    std::vector<char> buffer = std::vector<char>(256 * 1024);
    std::vector<char> plain{};     // of one read, where it was TLS
    tls_session session{};
    std::size_t good_address = 0;  // the first of the target's to try: the last that connected
    long long woke_ns = 0, seen_ns = 0;  // the last wait's end, and the last stamp since
    alertness alert{};

    lag_counts stamp_lag{};
    long long connections_opened = 0, content_events = 0, coalesced_events = 0;
    handshakes_t handshakes_full{}, handshakes_resumed{};

    /// The arrival stamp of a read.
    void on_stamp(long long at_ns) {
        stamp_lag.add(at_ns - woke_ns);
        seen_ns = at_ns;
        alert.on_step(at_ns);
    }
};

class connection;

/// Whoever gives connections their requests, and is told once a request what became of it.
class request_sink {
public:
    /// The record is whole but for what the sink itself knows of the request.
    virtual void on_delivered(const planned_request& w, record&& r, const answer_reader& a) = 0;
    /// It is open, and nothing is on it.
    virtual void on_idle(connection& c) = 0;
    /// It is closed and done with, but for what it is doing now.
    virtual void on_retired(connection& c) = 0;

protected:
    ~request_sink() = default;
};

/// A request on its way to a connection.
struct dispatched_request {
    planned_request what{};
    std::string bytes{};
    long long dispatched_ns = 0;
    long long late_ns = 0;      // by the client's own fault
    bool keeps_answer = false;  // its words are wanted, for the next turn of a conversation
};

/// One connection and, while it is busy, the request on it.
class connection final : public socket_user {
public:
    connection(client_io& io, request_sink& sink) : io_(io), sink_(sink) {}

    void start(dispatched_request r) {
        request_ = r.what;
        bytes_ = std::move(r.bytes);
        rec_ = record{};
        rec_.scheduled_ns = r.what.scheduled_ns;
        rec_.dispatched_ns = r.dispatched_ns;
        rec_.late_ns = r.late_ns;
        answer_.reset(*io_.target.api, io_.streamed, r.keeps_answer);
        retried_ = false;
        delivered_ = false;
        asked_ = true;
        connect_from_ns_ = r.dispatched_ns;
        // One that was opened ahead is as good as new, unless a server may have tired of it.
        reused_ = wire_.is_open() && (used_ || r.dispatched_ns - opened_ns_ > 1000000000);
        if (connecting_) return;
        if (!wire_.is_open()) return connect(0);
        rec_.connected_ns = now_ns();
        send();
    }
    /// Without a request, for one to come.
    void open_ahead() { connect(0); }
    void on_writable() override {
        if (!connecting_) write_some();
        else if (wire_.has_tls()) wire_.flush();  // where it fails, a read will tell
        else on_connected();
    }
    void on_readable() override {
        if (asked_ || connecting_) return read_now();
        if (is_usable()) return;
        close();
        sink_.on_retired(*this);
    }
    /// False where the server closed an idle connection, or sent what nobody asked for.
    bool is_usable() { return wire_.is_quiet(io_.buffer, io_.plain); }
    void close() {
        wire_.close();
        connecting_ = false;
    }
    /// Ends the request with this outcome, and the connection with it.
    void abandon(request_status status, const std::string& why) {
        answer_.timeline().fail(status, why);
        close();
        deliver();
        sink_.on_retired(*this);
    }
    void check_limits(long long now) {
        if (delivered_) {
            if (now - drain_from_ns_ > 1000000000) abandon(request_status::ok, "");
            return;
        }
        const llmbench::limits& l = io_.limits;
        // Time in which the client did not run is none that the server was given.
        const auto over = [&](long long since, time_span limit) {
            const long long most = ns_of(limit.seconds());
            return since > 0 && now - since > most &&
                   now - since - io_.alert.lost_since(since) > most;
        };
        const auto within = [](const char* what, const char* field, time_span t) {
            return printed("%s within %s (limits.%s)", what, time_text(t.seconds()).c_str(), field);
        };
        if (rec_.sent_ns == 0 && over(connect_from_ns_, l.connect))
            return abandon(request_status::connect, within("no connection", "connect", l.connect));
        check_opening(now);
        if (over(rec_.dispatched_ns, l.total))
            return abandon(request_status::timeout, within("not complete", "total", l.total));
        if (rec_.sent_ns == 0) return;
        const stream_timeline& seen = answer_.timeline();
        if (!io_.streamed) return;  // all at the end: `total` is its limit
        if (seen.events() == 0 && over(rec_.sent_ns, l.first_event))
            return abandon(request_status::timeout,
                           within("no content", "first_event", l.first_event));
        if (seen.events() > 0 && over(seen.last_content_ns(), l.between_events))
            return abandon(request_status::timeout,
                           within("no further content", "between_events", l.between_events));
    }
    void check_opening(long long now) { if (connecting_) try_elsewhere(now); }
    bool is_delivered() const { return delivered_; }

    // The pool's list with this in it, and where.
    std::vector<std::unique_ptr<connection>>* list = nullptr;
    std::size_t slot = 0;

private:
    // ---- on the way

    /// An address that never answers leaves its share of limits.connect to the others. One that
    /// could not be asked yet is asked again.
    void try_elsewhere(long long now) {
        const auto n = static_cast<double>(io_.target.addresses.size());
        if (!wire_.is_open()) return connect(tried_);
        if (!more_addresses()) return;
        if (now - opened_ns_ <= ns_of(io_.limits.connect.seconds() / n)) return;
        close();
        connect(tried_ + 1);
    }
    bool more_addresses() const { return tried_ + 1 < io_.target.addresses.size(); }
    /// `tried`: addresses of the target that this attempt has seen fail.
    void connect(std::size_t tried) {
        const auto& addresses = io_.target.addresses;
        which_ = tried == 0 ? io_.good_address : (which_ + 1) % addresses.size();
        tried_ = tried;
        // EAGAIN: check_limits tries again.
        connecting_ = wire_.connect(addresses[which_], io_.sockets, *this) || errno == EAGAIN;
        if (!connecting_) return on_connect_error(errno);
        used_ = false;
        opened_ns_ = now_ns();
    }
    void on_connect_error(int error) {
        close();
        if (more_addresses()) return connect(tried_ + 1);
        if (!asked_) return sink_.on_retired(*this);
        const std::string lack = own_lack(error);
        abandon(request_status::connect, lack.empty() ? "cannot connect: " + error_text(error)
                                                      : std::string(client_lacks) + lack);
    }
    void on_connected() {
        if (const int error = wire_.connect_error()) return on_connect_error(error);
        ++io_.connections_opened;
        io_.good_address = which_;
        if (!io_.target.tls) return on_open();
        shaking_from_ns_ = now_ns();
        on_handshake(wire_.begin_handshake(*io_.target.tls, &io_.session, io_.plain));
    }
    void on_handshake(const handshake& hands) {
        if (hands.is == handshake::state::failed) return on_no_handshake(hands.why);
        if (hands.is == handshake::state::going_on) return;
        const double took = static_cast<double>(now_ns() - shaking_from_ns_) * 1e-9;
        add_handshakes(wire_.resumed() ? io_.handshakes_resumed : io_.handshakes_full,
                       {1, took, took});
        on_open();
    }
    void on_no_handshake(const std::string& why) {
        if (asked_) return abandon(request_status::tls, why);
        close();
        sink_.on_retired(*this);
    }
    void on_open() {
        connecting_ = false;
        if (!asked_) return sink_.on_idle(*this);
        rec_.connected_ns = now_ns();
        send();
    }

    // ---- the request

    void send() {
        wire_.send(bytes_);
        rec_.sent_ns = now_ns();
        write_some();
    }
    // What takes no more of a request may have answered it already, as with 413.
    void write_some() { if (!wire_.flush()) read_now(); }

    // ---- the answer

    void read_now() {
        const arrival a = wire_.read(io_.buffer);
        if (a.what == arrival::kind::nothing_yet) return;
        io_.on_stamp(a.at_ns);
        if (a.what == arrival::kind::end) return on_end(a);
        if (connecting_) return on_handshake(wire_.shake_hands(a.bytes, io_.plain));
        const std::string_view bytes = wire_.content(a.bytes, io_.plain);
        const int events_before = answer_.timeline().events();
        answer_.feed(bytes, a.at_ns);
        const int events = answer_.timeline().events() - events_before;
        io_.content_events += events;
        io_.coalesced_events += std::max(0, events - 1);
        // An answer has begun, so this will not be sent again; it may be long.
        if (wire_.unsent() == 0 && !bytes_.empty() && !answer_.untouched())
            std::string().swap(bytes_);
        if (answer_.finished()) return on_finished();
        if (wire_.tls_ended()) return on_end_of_tls(a.at_ns);
        if (answer_.timeline().ended()) deliver();
    }
    void on_end(const arrival& a) {
        const bool orderly = a.error == 0;
        if (connecting_)
            return on_no_handshake(orderly ? closed_in_handshake : error_text(a.error));
        on_end_of_input(a.at_ns, !orderly           ? error_text(a.error)
                                 : wire_.has_tls() ? tls_was_cut
                                                   : "");
    }
    void on_end_of_tls(long long now) {
        const std::string error = wire_.tls_error();
        if (error.empty()) return on_end_of_input(now, "");
        abandon(request_status::tls, error);
    }
    void on_end_of_input(long long now, const std::string& error) {
        // A reused connection may have been closed by the server at the very moment we sent: it is
        // tried once afresh, and the record tells.
        if (answer_.untouched() && reused_ && !retried_) {
            close();
            retried_ = true;
            ++rec_.resends;
            rec_.connected_ns = rec_.sent_ns = 0;
            connect_from_ns_ = now;
            return connect(0);
        }
        answer_.end_of_input(now, error);
        on_finished();
    }
    void on_finished() {
        const bool keep =
            answer_.keeps_connection() && wire_.unsent() == 0 && !wire_.tls_ended();
        if (!keep) close();
        deliver();
        asked_ = false;
        used_ = true;
        if (keep) sink_.on_idle(*this);
        else sink_.on_retired(*this);
    }
    void deliver() {
        if (delivered_) return;
        delivered_ = true;
        drain_from_ns_ = now_ns();
        answer_.timeline().write_to(rec_);
        rec_.http_status = answer_.http_status();
        rec_.error = without_secrets(str(rec_.error), io_.target.secrets);
        rec_.finish_reason = without_secrets(str(rec_.finish_reason), io_.target.secrets);
        if (rec_.end_ns == 0) rec_.end_ns = drain_from_ns_;
        sink_.on_delivered(request_, std::move(rec_), answer_);
    }

    client_io& io_;
    request_sink& sink_;
    exchange wire_{};
    planned_request request_{};
    record rec_{};
    answer_reader answer_{};
    std::string bytes_{};
    std::size_t which_ = 0;  // of the target's addresses
    std::size_t tried_ = 0;  // addresses before it that failed
    long long connect_from_ns_ = 0, drain_from_ns_ = 0;
    long long opened_ns_ = 0, shaking_from_ns_ = 0;
    bool connecting_ = false, used_ = false;
    bool asked_ = false;  // there is a request on it
    bool reused_ = false, retried_ = false, delivered_ = false;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E28] what one client thread has to send, and when ========================================
// No clock and no sockets: whoever asks says what time it is.

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A request to be sent now.
struct due_request {
    planned_request what{};
    long long possible_ns = 0;  // when it could have been sent at the earliest, for all we know
};

/// One thread's share of the load: the planned times of an open loop, the users of a closed one,
/// what waits because of max_in_flight, and conversations that go on. Times are steady-clock ns.
class agenda {
public:
    /// Share `index` of `count`.
    agenda(const load_order& order, load_state& shared, std::size_t index, std::size_t count)
        : order_(order),
          plan_(*order.what),
          shared_(shared),
          index_(index),
          count_(count),
          next_open_(index) {
        const long long cap = plan_.arrivals.max_in_flight;
        const auto threads = static_cast<long long>(count);
        cap_ = cap > 0
                   ? std::max(1ll, cap / threads + (static_cast<long long>(index) < cap % threads))
                   : 0;
    }

    /// The start of the load is known by now.
    void begin() {
        if (!order_.send_at.empty()) return;
        const auto users = static_cast<std::size_t>(plan_.arrivals.users);
        for (std::size_t u = index_; u < users; u += count_) {
            const double offset =
                plan_.arrivals.users_ramp_s * static_cast<double>(u) / static_cast<double>(users);
            users_.push({.at_ns = shared_.start_ns + ns_of(offset), .user = static_cast<int>(u)});
        }
    }

    // ---- what is due

    /// The next planned time, 0 where nothing is planned any more.
    long long next_due() const {
        const long long turn = users_.empty() ? 0 : users_.top().at_ns;
        const long long planned = next_planned();
        return turn == 0 || planned == 0 ? std::max(turn, planned) : std::min(turn, planned);
    }
    bool is_due(long long now_ns) const {
        const long long due = next_due();
        return due != 0 && due <= now_ns && !stopped_;
    }
    /// The next request whose time has come and that need not wait for another to end.
    std::optional<due_request> take_due(long long now_ns) {
        while (is_due(now_ns)) {
            const long long due = next_due();
            planned_request next{0, due, -1};
            if (due == next_planned()) {
                next.index = order_.first + next_open_ * plan_.stride;
                next_open_ += count_;
            } else {
                const ready_user u = users_.top();
                users_.pop();
                if (u.user >= 0) {
                    next = {place_for(u, now_ns), due, u.user};
                    if (next.index >= order_.last) continue;  // this user is done
                    return due_request{next, due};
                }
                next.index = u.turn;
            }
            if (cap_ == 0 || in_flight_ + promised_ < cap_) return due_request{next, due};
            waiting_.push_back(next);
        }
        return std::nullopt;
    }
    /// The next one that had to wait, where another has ended for it.
    std::optional<due_request> take_promised(long long now_ns) {
        if (promised_ == 0 || stopped_) return std::nullopt;
        --promised_;
        const planned_request next = waiting_.front();
        waiting_.pop_front();
        return due_request{next, std::max(next.scheduled_ns, now_ns)};
    }
    /// The place in the trace of the next planned send; `order.last` where there is none.
    std::size_t next_place() const {
        return next_planned() == 0 ? order_.last : order_.first + next_open_ * plan_.stride;
    }
    /// There is a next send, and no other request must end for it.
    bool expects_to_send() const { return next_due() != 0 && (cap_ == 0 || in_flight_ < cap_); }

    // ---- what becomes of it

    void on_dispatched(const planned_request& w, long long now_ns) {
        if (phase_of(order_, shared_, w) == run_phase::measure) {
            long long none = 0;
            shared_.measured_from.compare_exchange_strong(none, now_ns);
        }
        ++in_flight_;
        shared_.sent.fetch_add(1, std::memory_order_relaxed);
    }
    /// Of each one that was dispatched. `words`: the answer, where goes_on().
    void on_ended(const planned_request& w, request_status status, long long end_ns,
                  const std::string& words) {
        keep_answer(w.index, status, words);
        --in_flight_;
        if (stopped_) return;
        const std::size_t next = next_turn(w.index);
        if (w.user >= 0) {
            // A failed answer that comes at once must not turn a user into a flood.
            const bool failed = status != request_status::ok;
            const bool pauses = next != new_conversation && plan_.think_s > 0;
            const double think = pauses ? plan_.think_s : plan_.arrivals.think_s;
            users_.push({end_ns + ns_of(std::max(think, failed ? 0.01 : 0.0)), w.user, next});
            return;
        }
        if (next != new_conversation) users_.push({end_ns + ns_of(plan_.think_s), -1, next});
        if (static_cast<long long>(waiting_.size()) > promised_)
            ++promised_;  // not sent here and now: this connection is not free yet
    }
    /// Nothing is due from now on. Returns what had to wait until now.
    std::deque<planned_request> stop() {
        stopped_ = true;
        return std::exchange(waiting_, {});
    }

    // ---- conversations

    /// There is a turn behind this one, which takes the answer to it along.
    bool goes_on(std::size_t index) const { return next_turn(index) != new_conversation; }
    /// To the earlier turns of this one's conversation.
    const std::vector<std::string>& answers_before(std::size_t index) const {
        static const std::vector<std::string> none;
        const auto found = answers_.find(index / plan_.stride);
        return found == answers_.end() ? none : found->second;
    }

    // ---- the end

    bool stopped() const { return stopped_; }
    bool nothing_left() const {
        return next_due() == 0 && in_flight_ == 0 && waiting_.empty() && promised_ == 0;
    }
    /// The last send is behind us: limits.drain counts from here.
    bool sending_is_over() const {
        return order_.send_at.empty() ? shared_.exhausted_at.load() != 0
                                      : next_due() == 0 && waiting_.empty();
    }

private:
    /// A user to whom a new conversation is due, or whoever has a later turn of one.
    static constexpr std::size_t new_conversation = static_cast<std::size_t>(-1);
    struct ready_user {
        long long at_ns = 0;
        int user = -1;
        std::size_t turn = new_conversation;  // its place in the trace
        bool operator>(const ready_user& o) const {
            if (at_ns != o.at_ns) return at_ns > o.at_ns;
            return user != o.user ? user > o.user : turn > o.turn;
        }
    };

    long long next_planned() const {
        return next_open_ < order_.send_at.size() ? shared_.start_ns + order_.send_at[next_open_]
                                                  : 0;
    }
    /// What a user of a closed loop sends next: `order.last` where time or trace have run out.
    std::size_t place_for(const ready_user& u, long long now_ns) {
        const long long from = shared_.measured_from.load();
        const bool out_of_time =
            plan_.duration_s > 0 && from > 0 && u.at_ns - from >= ns_of(plan_.duration_s);
        const bool enough = order_.most_measured > 0 &&
                            u.at_ns >= shared_.start_ns + order_.measured_from_ns &&
                            shared_.measured.fetch_add(1) >= order_.most_measured;
        const std::size_t place = out_of_time || enough        ? order_.last
                                  : u.turn != new_conversation ? u.turn
                                                               : shared_.next.fetch_add(
                                                                     plan_.stride);
        if (place < order_.last) return place;
        long long none = 0;
        shared_.exhausted_at.compare_exchange_strong(
            none, out_of_time ? from + ns_of(plan_.duration_s) : now_ns);
        return order_.last;
    }
    /// The place of the turn behind this one, `new_conversation` where there is none.
    std::size_t next_turn(std::size_t index) const {
        const trace_place at = place_of(plan_, index);
        const bool more = at.turn + 1 < turns_of(plan_, at.conversation) && index + 1 < order_.last;
        return more ? index + 1 : new_conversation;
    }
    /// What came of a failed request is not fed back: the conversation goes on without it.
    void keep_answer(std::size_t index, request_status status, const std::string& words) {
        if (plan_.stride == 1) return;
        const std::size_t conversation = index / plan_.stride;
        if (!goes_on(index)) {
            answers_.erase(conversation);
            return;
        }
        std::vector<std::string>& answers = answers_[conversation];
        answers.resize(index % plan_.stride + 1);
        if (status == request_status::ok) answers.back() = words;
    }

    const load_order& order_;
    const plan& plan_;
    load_state& shared_;
    const std::size_t index_, count_;
    std::size_t next_open_;  // of order.send_at
    std::priority_queue<ready_user, std::vector<ready_user>, std::greater<>> users_{};
    std::map<std::size_t, std::vector<std::string>> answers_{};  // of conversations that go on
    std::deque<planned_request> waiting_{};
    long long in_flight_ = 0, cap_ = 0;
    long long promised_ = 0;  // of those that wait: others have ended for them
    bool stopped_ = false;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E29] the connections of one client thread ================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// All connections of one thread, each in one of four lists: with a request, open without one, on
/// the way without one, and closed. The closed ones stay until drop_retired(), for it may be one of
/// them that says so.
class connection_pool {
public:
    connection_pool(client_io& io, request_sink& sink) : io_(io), sink_(sink) {}
    connection_pool(const connection_pool&) = delete;
    connection_pool& operator=(const connection_pool&) = delete;

    /// One for a request to come.
    void open_ahead() { made_in(opening_).open_ahead(); }
    /// For a request now: an idle one, else one on its way, else a new one.
    connection& take() {
        while (!idle_.empty()) {
            connection& c = *idle_.back();
            if (c.is_usable()) { move(c, busy_); return c; }
            c.close();
            move(c, retired_);
        }
        if (opening_.empty()) return made_in(busy_);
        connection& c = *opening_.back();
        move(c, busy_);
        return c;
    }
    void set_idle(connection& c) { move(c, idle_); }
    void retire(connection& c) { move(c, retired_); }
    void drop_retired() { retired_.clear(); }

    std::size_t idle() const { return idle_.size(); }
    std::size_t opening() const { return opening_.size(); }
    std::size_t size() const { return busy_.size() + idle_.size() + opening_.size(); }
    /// `f` may retire what it is given: that one makes way for the last one, which was looked at.
    template <class F>
    void for_each_busy(F&& f) { from_the_back(busy_, f); }
    template <class F>
    void for_each_opening(F&& f) { from_the_back(opening_, f); }
    void close_all() {
        for (auto* list : {&busy_, &idle_, &opening_})
            for (const auto& c : *list) c->close();
    }

private:
    using connections = std::vector<std::unique_ptr<connection>>;

    template <class F>
    static void from_the_back(const connections& list, F&& f) {
        for (std::size_t i = list.size(); i-- > 0;) f(*list[i]);
    }
    connection& made_in(connections& list) {
        return put(std::make_unique<connection>(io_, sink_), list);
    }
    static void move(connection& c, connections& to) {
        connections& from = *c.list;
        std::unique_ptr<connection> p = std::move(from[c.slot]);
        if (c.slot + 1 < from.size()) {
            from[c.slot] = std::move(from.back());
            from[c.slot]->slot = c.slot;
        }
        from.pop_back();
        put(std::move(p), to);
    }
    static connection& put(std::unique_ptr<connection> p, connections& to) {
        p->list = &to;
        p->slot = to.size();
        to.push_back(std::move(p));
        return *to.back();
    }

    client_io& io_;
    request_sink& sink_;
    connections busy_{}, idle_{}, opening_{}, retired_{};
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E30] what came back to one client thread =================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The records of one thread and their gaps, kept for the statistics and passed on to the disk.
class request_book {
public:
    request_book(const load_order& order, load_state& shared) : order_(order), shared_(shared) {}

    /// Fills in what the order knows of the request.
    void add(const planned_request& w, record&& r, const gap_list& gaps) {
        const std::size_t stride = order_.what->stride;
        r.id = order_.id_prefix + std::to_string(w.index);
        r.arm = order_.arm;
        r.repeat = order_.repeat;
        r.phase = phase_of(order_, shared_, w);
        r.conversation = static_cast<long long>(w.index / stride);
        r.turn = static_cast<int>(w.index % stride);
        shared_.note(r);
        if (shared_.out) {
            unwritten_.records.push_back(r);
            gaps.for_each_block([&](const std::vector<std::uint32_t>& b) {
                unwritten_.gaps.insert(unwritten_.gaps.end(), b.begin(), b.end());
            });
        }
        finished_.add(w.index, std::move(r), gaps);
        shared_.gaps += gaps.size();
        if (shared_.gaps > shared_.most_gaps) count_gaps_of_old(gaps.size());
    }
    /// Passes on what is to be written, unless somebody else is about it right now.
    void try_hand_over() {
        if (shared_.out && !unwritten_.records.empty()) shared_.out->try_put(unwritten_);
    }
    /// The same, however long that takes.
    void hand_over() {
        if (shared_.out) shared_.out->put(unwritten_);
    }
    request_log& finished() { return finished_; }

private:
    /// Twice as many as came in, so that what was listed before goes too, little by little.
    void count_gaps_of_old(std::uint64_t came_in) {
        may_count_ += 2 * came_in + 64;
        may_count_ -= finished_.count(may_count_, now_ns() - 1000000000, window_edges());
    }
    /// Where the throughput window begins, ends, and may end; 0 where that is not known.
    std::array<long long, 3> window_edges() const {
        const long long start = shared_.start_ns, from = shared_.measured_from.load();
        if (!order_.send_at.empty())
            return {start + order_.measured_from_ns, start + order_.send_at.back(), 0};
        if (from == 0) return {0, shared_.exhausted_at.load(), 0};
        return {std::max(from, start + ns_of(order_.what->arrivals.users_ramp_s)),
                shared_.exhausted_at.load(), from + ns_of(order_.what->duration_s)};
    }

    const load_order& order_;
    load_state& shared_;
    request_log finished_{};
    delivered_requests unwritten_{};
    std::uint64_t may_count_ = 0;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E31] one client thread ===================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The bytes of one request of the trace.
inline std::string request_bytes(const load_order& o, std::size_t index,
                                 const std::vector<std::string>& answers_before) {
    const load_target& t = *o.target;
    const request_spec r = request_of(*o.what, o.arm, o.repeat, index, answers_before, t.tokens);
    const bool events = r.stream && t.api->framed == framing::events;
    const std::string fields =
        t.fields + (events ? "Accept: text/event-stream\r\n" : "Accept: */*\r\n") +
        "X-Request-Id: " + o.id_prefix + std::to_string(index) + "\r\n";
    return request_text(http_method::post, r.stream ? t.path : t.whole_path, t.url.authority(),
                        fields, request_body(*t.api, t.model, r));
}

/// One thread's share of the load: sends what its agenda has due on connections of its own, and
/// keeps what comes back.
class load_worker final : private request_sink {
public:
    /// Share `index` of `count`.
    load_worker(const load_order& order, load_state& shared, std::size_t index, std::size_t count)
        : order_(order),
          plan_(*order.what),
          shared_(shared),
          agenda_(order, shared, index, count),
          book_(order, shared),
          io_(*order.target, *order.what),
          pool_(io_, *this) {}

    /// Before the first send is due, as many connections as are then sent at once, so that their
    /// cost is not in those requests. No more than `at_a_time` are on their way, and a second is
    /// waited for each such batch at most. What is missing then is opened for its request.
    void open_connections(std::size_t wanted, std::size_t at_a_time) {
        const double batches =
            std::ceil(static_cast<double>(wanted) / static_cast<double>(at_a_time));
        const long long until =
            now_ns() + ns_of(std::min(plan_.limits.connect.seconds(), batches));
        std::size_t begun = 0;
        for (long long now = now_ns(); now < until && !interrupted.load(); now = now_ns()) {
            const bool none_failed = pool_.idle() + pool_.opening() == begun;
            while (none_failed && begun < wanted && pool_.opening() < at_a_time) {
                pool_.open_ahead();
                ++begun;
            }
            if (pool_.opening() == 0) return;
            io_.sockets.wait(std::min(until, now + check_interval_ns));
            io_.woke_ns = now_ns();
            io_.sockets.each();
            pool_.for_each_opening([](connection& c) { c.check_opening(now_ns()); });
            pool_.drop_retired();
        }
    }
    void run() {
        const double cpu_before = cpu_seconds();
        const long long began = now_ns();
        const run_queue_wait waits;
        io_.alert.begin(began);
        io_.alert.on_tick(began, waits.so_far_ns());
        agenda_.begin();
        prepare();
        next_tick_ns_ = began + alertness::tick_ns;
        next_check_ns_ = began + check_interval_ns;
        while (!agenda_.stopped() && !agenda_.nothing_left()) turn(waits);
        io_.alert.end(now_ns());
        book_.hand_over();
        pool_.close_all();
        const double cpu = cpu_seconds() - cpu_before;
        cpu_share_ = cpu / std::max(1e-9, static_cast<double>(now_ns() - began) * 1e-9);
    }

    request_log& finished() { return book_.finished(); }
    const client_io& io() const { return io_; }
    const lag_counts& loop_lag() const { return loop_lag_; }
    double cpu_share() const { return cpu_share_; }

private:
    static constexpr long long check_interval_ns = 20000000, spin_ns = 200000;

    static double cpu_seconds() {
        timespec t{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
    }

    // ---- one turn

    /// Waits, and does what there is to do.
    void turn(const run_queue_wait& waits) {
        const long long due = agenda_.next_due();
        const long long ahead = plan_.client.spin ? spin_ns : 0;
        const long long until = due == 0 ? next_tick_ns_ : std::min(due - ahead, next_tick_ns_);
        const long long now = now_ns();
        io_.alert.on_sleep(now);
        io_.sockets.wait(until, now);
        io_.woke_ns = io_.seen_ns = now_ns();
        io_.alert.on_wake(io_.woke_ns, until, io_.sockets.turns_for_all(pool_.size()));
        catch_up(io_.woke_ns);
        io_.sockets.each([this] { catch_up(io_.seen_ns); });
        if (io_.woke_ns >= next_tick_ns_) tick(io_.woke_ns, waits);
        catch_up(io_.seen_ns);
        pool_.drop_retired();
    }
    /// Sends do not wait for all that a turn has to read.
    void catch_up(long long now) {
        while (const auto next = agenda_.take_promised(now)) dispatch(*next);
        if (!agenda_.is_due(now)) return;
        while (const auto next = agenda_.take_due(now_ns())) dispatch(*next);
        prepare();
        // The next one should not have to wait for a connection.
        if (pool_.idle() == 0 && pool_.opening() == 0 && agenda_.expects_to_send())
            pool_.open_ahead();
    }
    void dispatch(const due_request& next) {
        const std::size_t index = next.what.index;
        std::string bytes = prepared_.ready && prepared_.index == index
                                ? std::move(prepared_.bytes)
                                : request_bytes(order_, index, agenda_.answers_before(index));
        if (prepared_.index == index) prepared_.ready = false;
        const long long now = now_ns();
        io_.alert.on_step(now);
        agenda_.on_dispatched(next.what, now);
        pool_.take().start({next.what, std::move(bytes), now, now - next.possible_ns,
                            agenda_.goes_on(index)});
    }
    /// Building a long prompt takes longer than sending it, so it is done before the send is due.
    void prepare() {
        const std::size_t index = agenda_.next_place();
        if (index == order_.last || (prepared_.ready && prepared_.index == index)) return;
        prepared_ = {index, request_bytes(order_, index, agenda_.answers_before(index)), true};
    }

    // ---- what becomes of requests

    void on_delivered(const planned_request& w, record&& r, const answer_reader& a) override {
        const request_status status = r.status;
        const long long end = r.end_ns;
        book_.add(w, std::move(r), a.timeline().gaps_us());
        agenda_.on_ended(w, status, end, a.words());
    }
    void on_idle(connection& c) override { pool_.set_idle(c); }
    void on_retired(connection& c) override { pool_.retire(c); }

    // ---- limits

    /// Every 5 ms, at absolute times: how late it comes is the lag of this loop.
    void tick(long long now, const run_queue_wait& waits) {
        loop_lag_.add(now - next_tick_ns_);
        while (next_tick_ns_ <= now) next_tick_ns_ += alertness::tick_ns;
        io_.alert.on_tick(now, waits.so_far_ns());
        if (now >= next_check_ns_) check(now);
    }
    void check(long long now) {
        next_check_ns_ = now + check_interval_ns;
        book_.try_hand_over();
        if (interrupted.load()) return cut_off("interrupted");
        if (shared_.deadline_ns > 0 && now > shared_.deadline_ns)
            return cut_off("LLMBENCH_TIME_BUDGET is spent");
        // What has come in is read before anything is said to have come too late.
        if (io_.alert.is_behind()) return;
        pool_.for_each_busy([now](connection& c) { c.check_limits(now); });
        if (!agenda_.sending_is_over()) over_since_ns_ = 0;
        else if (over_since_ns_ == 0) over_since_ns_ = now;
        else if (now - over_since_ns_ - io_.alert.lost_since(over_since_ns_) >
                 ns_of(plan_.limits.drain.seconds()))
            cut_off("cut off " + time_text(plan_.limits.drain.seconds()) +
                    " after the last send (limits.drain)");
    }
    void cut_off(const std::string& why) {
        const auto waiting = agenda_.stop();
        pool_.for_each_busy([&](connection& c) {
            if (!c.is_delivered()) c.abandon(request_status::cancelled, why);
        });
        for (const planned_request& w : waiting) {
            record r;
            r.scheduled_ns = w.scheduled_ns;
            r.status = request_status::unsent;
            r.error = why;
            book_.add(w, std::move(r), {});
        }
    }

    struct prepared_request {
        std::size_t index = 0;
        std::string bytes{};
        bool ready = false;
    };

    const load_order& order_;
    const plan& plan_;
    load_state& shared_;
    agenda agenda_;
    request_book book_;
    client_io io_;
    connection_pool pool_;
    prepared_request prepared_{};
    long long over_since_ns_ = 0;  // when the last send was seen to be behind us
    long long next_tick_ns_ = 0, next_check_ns_ = 0;
    lag_counts loop_lag_{};
    double cpu_share_ = 0;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E32] the load of one repeat ==============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Connections that this load needs at one time; 0 where that is up to the server's speed.
inline std::size_t connections_needed(const load_order& o) {
    const arrival_data& a = o.what->arrivals;
    std::size_t n = 0;
    if (a.kind == arrival_kind::all_at_once) n = o.starts();
    else if (o.send_at.empty()) n = std::min(o.starts(), static_cast<std::size_t>(a.users));
    return a.max_in_flight > 0 ? std::min(n, static_cast<std::size_t>(a.max_in_flight)) : n;
}

/// Of these, the ones that one thread of `count` needs for what it sends first.
inline std::size_t connections_at_first(const load_order& o, std::size_t index, std::size_t count) {
    const arrival_data& a = o.what->arrivals;
    std::size_t at_once = std::min<std::size_t>(o.starts(), 1);
    if (a.kind == arrival_kind::all_at_once) at_once = o.starts();
    if (o.send_at.empty() && a.users_ramp_s == 0)
        at_once = std::min(o.starts(), static_cast<std::size_t>(a.users));
    if (a.max_in_flight > 0)
        at_once = std::min(at_once, static_cast<std::size_t>(a.max_in_flight));
    return at_once / count + (index < at_once % count);
}

/// Raises the limit on open files. Refuses a load that needs more files or ports than can be had.
inline void make_room_for(const load_order& o) {
    const std::size_t needed = connections_needed(o);
    // Twice: simulated servers.
    const rlim_t files = raised_open_files(2 * std::max<rlim_t>(needed, 8192) + 256);
    require(files == 0 || needed + 64 <= files,
            printed("the load needs %zu connections at a time and this process may open %llu "
                    "files: raise the hard limit (ulimit -Hn), or ask for less at once",
                    needed, static_cast<unsigned long long>(files)));
    const long long ports = ports_to_one_server();
    if (o.target->url.socket.empty() && ports > 0)
        require(static_cast<long long>(needed) <= ports,
                printed("the load needs %zu connections at a time and this machine has %lld ports "
                        "for one server: widen net.ipv4.ip_local_port_range, or ask for less",
                        needed, ports));
}

/// One thread reads some hundred thousand paced events a second. A second one is for thousands of
/// streams, and only on a machine that has cores to spare: the server may be on it too.
inline std::size_t default_threads(const load_order& o) {
    const arrival_data& a = o.what->arrivals;
    const double needed = static_cast<double>(connections_needed(o));
    const double streams = needed > 0 ? needed : 10 * a.rate;  // answers of ten seconds
    const double spare = std::max(1u, std::thread::hardware_concurrency() / 4);
    return static_cast<std::size_t>(std::max(1.0, std::min(streams / 1000, spare)));
}

/// Gaps of the whole program that are kept one by one, in 128 MiB. Whatever else the client keeps
/// is kept for a request, not for an event.
inline std::uint64_t most_gaps_kept = 32ull << 20;

/// Runs one load on as many threads as asked for and gathers what they saw.
inline void run_load(const load_order& order, load_state& state, repeat_data& into,
                     request_log& log) {
    make_room_for(order);
    const auto asked = static_cast<std::size_t>(static_cast<long long>(order.what->client.threads));
    std::size_t threads = asked > 0 ? asked : default_threads(order);
    // A cap below the number of threads would give some of them nothing to send.
    const long long cap = order.what->arrivals.max_in_flight;
    if (cap > 0) threads = std::min(threads, static_cast<std::size_t>(cap));
    state.next = order.first;
    std::vector<std::unique_ptr<load_worker>> workers;
    for (std::size_t i = 0; i < threads; ++i)
        workers.push_back(std::make_unique<load_worker>(order, state, i, threads));
    // Every thread is awake again 10 ms after the last one has its connections.
    const auto start = [&state]() noexcept { state.start_ns = now_ns() + 10000000; };
    std::barrier all_connected(static_cast<std::ptrdiff_t>(threads), start);
    // On their way to the server, of all threads: as many as its queue takes.
    const std::size_t at_a_time = std::max<std::size_t>(1, 256 / threads);
    std::atomic<bool> called_off{false};
    const auto work = [&](std::size_t i) {
        workers[i]->open_connections(connections_at_first(order, i, threads), at_a_time);
        all_connected.arrive_and_wait();
        if (!called_off) workers[i]->run();
    };
    std::vector<std::thread> running;
    std::string lack;
    try {
        for (std::size_t i = 1; i < threads; ++i) running.emplace_back(work, i);
    } catch (const std::system_error& e) {
        lack = printed("client: only %zu of its %zu threads could be started (%s): raise the limit "
                       "on threads, ulimit -u, or ask for fewer, client.threads",
                       running.size() + 1, threads, e.what());
        called_off = true;
        for (std::size_t i = running.size() + 1; i < threads; ++i) all_connected.arrive_and_drop();
    }
    work(0);
    for (std::thread& t : running) t.join();
    if (called_off) throw std::runtime_error(lack);
    for (const auto& w : workers) {
        const client_io& io = w->io();
        log.take(std::move(w->finished()));
        into.connections_opened += io.connections_opened;
        add_handshakes(into.handshakes_full, io.handshakes_full);
        add_handshakes(into.handshakes_resumed, io.handshakes_resumed);
        into.content_events += io.content_events;
        into.coalesced_events += io.coalesced_events;
        into.cpu_share = std::max(into.cpu_share, w->cpu_share());
        into.thread_cpu_shares.push_back(w->cpu_share());
        into.blind = blind_log::together(into.blind, io.alert.found());
        into.loop_lag.add(w->loop_lag());
        into.stamp_lag.add(io.stamp_lag);
    }
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E33] what of asio a server needs beyond a client =========================================

namespace llmbench {
inline namespace v0 {
namespace detail {

using tcp_socket = asio::basic_stream_socket<asio::ip::tcp, io_executor>;
using tcp_acceptor = asio::basic_socket_acceptor<asio::ip::tcp, io_executor>;

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E34] a connection of the simulated server ================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

class simulated_session;

/// What stands behind connections.
struct request_handler {
    /// A request is there, which one answer has to follow, now or later.
    std::function<void(simulated_session&)> on_request{};
    /// The client went away while this answer was given.
    std::function<void(std::uint64_t)> on_gone{};
};

/// One connection: requests in, one answer at a time out.
class simulated_session : public std::enable_shared_from_this<simulated_session> {
public:
    simulated_session(asio::io_context& io, const request_handler& handler)
        : socket(io), handler_(handler) {}

    void read() {
        socket.async_read_some(asio::buffer(buffer_),
                               [self = shared_from_this()](asio::error_code e, std::size_t n) {
                                   if (e) return self->gone();
                                   self->take({self->buffer_.data(), n});
                               });
    }
    const request_parser& request() const { return parser_; }

    /// The whole answer.
    void answer(const reply& r) {
        write(reply_bytes(r));
        next();
    }
    /// A part of an answer, which next() ends.
    void write(std::string bytes) {
        queue_.push_back(std::move(bytes));
        if (queue_.size() == 1) write_more();
    }
    /// An answer is complete: the next pipelined request may follow.
    void next() {
        busy_ = false;
        const bool keep = parser_.keep_alive;
        parser_.reset();
        const std::string held = std::exchange(early_, {});
        if (!keep) close_when_written_ = true;
        else if (parser_.feed(held)) serve();
        if (close_when_written_ && queue_.empty()) close();
    }
    void reset() {
        asio::error_code ignored;
        socket.set_option(asio::socket_base::linger(true, 0), ignored);
        close();
    }

    tcp_socket socket;
    std::uint64_t answering = 0;  // the handler's name of the answer that it is giving, 0: none

private:
    void take(std::string_view bytes) {
        if (busy_) early_.append(bytes);
        else if (parser_.feed(bytes)) serve();
        else if (parser_.broken()) return answer(error_reply(400, "not an HTTP/1.1 request"));
        read();
    }
    void serve() {
        busy_ = true;
        handler_.on_request(*this);
    }
    void write_more() {
        // Straight into the socket where it takes all: the stamp in the log is then the write's
        // own.
        asio::error_code error;
        socket.non_blocking(true, error);
        while (!queue_.empty()) {
            const std::size_t n = socket.write_some(asio::buffer(queue_.front()), error);
            if (error == asio::error::would_block) break;
            if (error) return gone();
            if (n == queue_.front().size()) queue_.pop_front();
            else queue_.front().erase(0, n);
        }
        if (queue_.empty()) {
            if (close_when_written_) close();
            return;
        }
        socket.async_wait(tcp_socket::wait_write,
                          [self = shared_from_this()](asio::error_code e) {
                              if (!e) self->write_more();
                          });
    }
    void gone() {
        if (answering != 0) handler_.on_gone(std::exchange(answering, 0));
        close();
    }
    void close() {
        asio::error_code ignored;
        socket.close(ignored);
        queue_.clear();
    }

    const request_handler& handler_;
    std::array<char, 16384> buffer_{};
    request_parser parser_{};
    std::string early_{};  // bytes of the next request, come while this one is answered
    std::deque<std::string> queue_{};
    bool busy_ = false;
    bool close_when_written_ = false;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E35] simulated server ====================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The engine model behind real sockets on a thread of its own: every API, their lists of
/// models, /health, /tokenize, /metrics.
class simulated_host {
public:
    struct log_entry {
        std::string request_id{};
        long long received_ns = 0, first_write_ns = 0, last_write_ns = 0, done_ns = 0;
        int prompt_tokens = 0, output_tokens = 0;
    };

    explicit simulated_host(const engine& e, int port = 0)
        : settings_(e),
          model_(e),
          io_(1),
          acceptor_(io_),
          step_timer_(io_),
          faults_(static_cast<std::uint64_t>(static_cast<long long>(e.seed)), 99) {
        const asio::ip::tcp::endpoint at(asio::ip::address_v4::loopback(),
                                         static_cast<unsigned short>(port));
        acceptor_.open(at.protocol());
        acceptor_.set_option(asio::socket_base::reuse_address(true));
        acceptor_.bind(at);
        acceptor_.listen(4096);
        port_ = acceptor_.local_endpoint().port();
        start_ns_ = now_ns();
        accept_next();
        thread_ = std::thread([this] { io_.run(); });
    }
    ~simulated_host() {
        asio::post(io_, [this] { go_away(); });
        thread_.join();
    }
    simulated_host(const simulated_host&) = delete;
    simulated_host& operator=(const simulated_host&) = delete;

    int port() const { return port_; }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    /// Finished answers so far, as this side saw them.
    std::vector<log_entry> log() {
        const std::lock_guard lock(log_mutex_);
        return log_;
    }

private:
    enum class fault : unsigned char { none, reset, stall, garbage };
    /// An answer that is being given.
    struct generation {
        std::uint64_t id = 0;
        std::shared_ptr<simulated_session> to{};
        answer_facts facts{};
        log_entry entry{};
        fault after_content = fault::none;
        bool begun = false;
    };

    double now_s() const { return static_cast<double>(now_ns() - start_ns_) * 1e-9; }

    // ---- connections

    void accept_next() {
        auto s = std::make_shared<simulated_session>(io_, handler_);
        acceptor_.async_accept(s->socket, [this, s](asio::error_code e) {
            if (e) return;
            asio::error_code ignored;
            s->socket.set_option(asio::ip::tcp::no_delay(true), ignored);
            std::erase_if(all_, [](const auto& weak) { return weak.expired(); });
            all_.push_back(s);
            s->read();
            accept_next();
        });
    }
    void go_away() {
        asio::error_code ignored;
        acceptor_.close(ignored);
        step_timer_.cancel();
        for (const auto& weak : all_)
            if (const auto s = weak.lock()) s->reset();
        generating_.clear();
        away_ = true;
    }

    void on_request(simulated_session& s) {
        const request_parser& asked = s.request();
        if (asked.method == "GET") return s.answer(about_server(asked.path, model_));
        const bool counts = asked.path == "/tokenize";
        const maybe<api_format> api = api_at(asked.path);
        if (!api && !counts) return s.answer(error_reply(404, "no such path"));
        picojson::value body;
        if (!parse_json(asked.body, body) || !body.is<picojson::object>())
            return s.answer(error_reply(400, "the body is not a JSON object"));
        if (counts) return s.answer(counted_tokens(body, settings_.max_model_len));
        generate(s, body, api_of(*api, body));
    }
    void on_gone(std::uint64_t id) {
        model_.cancel(id);
        generating_.erase(id);
    }

    // ---- one answer from its request on

    void generate(simulated_session& s, const picojson::value& body, api_format api) {
        ++generations_;
        if (settings_.faults.stop_after > 0 && generations_ > settings_.faults.stop_after)
            return go_away();
        auto g = std::make_shared<generation>();
        g->entry.request_id = s.request().header("x-request-id");
        g->entry.received_ns = now_ns();
        if (faults_.uniform() < settings_.faults.error_rate.fraction)
            return s.answer(refusal(api, 500, "an error that was asked for", "server_error"));
        g->after_content = drawn_fault();
        g->facts.asked = question_of(api, s.request().path, body);
        g->facts.number = static_cast<unsigned long long>(g->entry.received_ns);
        g->entry.prompt_tokens = g->facts.asked.prompt_tokens;
        g->id = s.answering = ++next_id_;
        g->to = s.shared_from_this();
        generating_[g->id] = g;
        if (settings_.faults.delay.seconds() <= 0) return submit(*g);
        auto timer = std::make_shared<io_timer>(
            io_, std::chrono::nanoseconds(ns_of(settings_.faults.delay.seconds())));
        timer->async_wait([this, timer, g](asio::error_code e) {
            if (!e && generating_.contains(g->id)) submit(*g);
        });
    }
    fault drawn_fault() {
        fault drawn = fault::none;
        for (const auto& [one, rate] : {std::pair{fault::reset, settings_.faults.reset_rate},
                                        std::pair{fault::stall, settings_.faults.stall_rate},
                                        std::pair{fault::garbage, settings_.faults.garbage_rate}})
            if (faults_.uniform() < rate.fraction) drawn = one;
        return drawn;
    }
    void submit(generation& g) {
        catch_up();
        question& asked = g.facts.asked;
        const auto admission = model_.submit(
            now_s(), {g.id, asked.prompt_tokens, asked.output_tokens, std::move(asked.blocks)});
        if (admission == engine_model::admission::accepted) return arm_step_timer();
        forget(g);
        if (admission == engine_model::admission::queue_full)
            return g.to->answer(refusal(asked.api, 429, "the queue is full", "rate_limit"));
        g.to->answer(refusal(asked.api, 400, "the prompt and its answer do not fit",
                             "context_length_exceeded"));
    }
    /// Its connection is free for another one.
    void forget(generation& g) {
        g.to->answering = 0;
        generating_.erase(g.id);
    }

    // ---- the engine's steps

    void arm_step_timer() {
        const double end = model_.step_end();
        if (std::isinf(end) || away_) return;
        step_timer_.expires_at(time_point_of(start_ns_ + ns_of(end)));
        step_timer_.async_wait([this](asio::error_code e) {
            if (e || away_) return;
            catch_up();
            arm_step_timer();
        });
    }
    /// Ends every step that is over by now. A request that comes after a stall of this thread must
    /// not join a step that began before it.
    void catch_up() {
        if (catching_up_) return;  // an answer that ends here may bring the next request at once
        catching_up_ = true;
        while (!away_ && model_.step_end() <= now_s())
            for (const auto& emission : model_.finish_step()) emit(emission);
        catching_up_ = false;
    }
    void emit(const engine_model::emission& e) {
        const auto found = generating_.find(e.id);
        if (found == generating_.end()) return;
        // Not by reference: a write tells that the client is gone, and then it is forgotten.
        const std::shared_ptr<generation> g = found->second;
        const std::string words = next_words(g->facts, e);
        const long long now = now_ns();
        if (g->entry.first_write_ns == 0) g->entry.first_write_ns = now;
        g->entry.last_write_ns = now;
        add_words(g->facts, words, e);
        if (g->facts.asked.streamed) write_content(*g, words, e);
        if (g->after_content != fault::none) return break_off(*g);
        if (e.finished) finish(*g);
    }
    void write_content(generation& g, const std::string& words, const engine_model::emission& e) {
        if (!std::exchange(g.begun, true)) {
            g.to->write(stream_head(g.facts.asked.api));
            write_chunk(g, answer_opening(g.facts));
        }
        write_chunk(g, answer_piece(g.facts, words, e));
    }
    /// An empty chunk would be the last.
    static void write_chunk(generation& g, const std::string& data) {
        if (!data.empty()) g.to->write(chunk_of(data));
    }
    void break_off(generation& g) {
        model_.cancel(g.id);
        forget(g);
        if (g.after_content == fault::reset) g.to->reset();
        if (g.after_content == fault::garbage) g.to->write("\xFF\xFEno chunk\r\n");
        // The client has to make an end.
    }
    void finish(generation& g) {
        forget(g);
        g.entry.done_ns = now_ns();
        g.entry.output_tokens = g.facts.output_tokens;
        {
            const std::lock_guard lock(log_mutex_);
            log_.push_back(g.entry);
        }
        if (!g.facts.asked.streamed)
            return g.to->answer({200, "application/json", whole_answer(g.facts)});
        write_chunk(g, answer_ending(g.facts));
        g.to->write(last_chunk);
        g.to->next();
    }

    engine settings_;
    engine_model model_;
    asio::io_context io_;
    tcp_acceptor acceptor_;
    io_timer step_timer_;
    generator faults_;
    request_handler handler_{[this](simulated_session& s) { on_request(s); },
                             [this](std::uint64_t id) { on_gone(id); }};
    std::map<std::uint64_t, std::shared_ptr<generation>> generating_{};
    std::vector<std::weak_ptr<simulated_session>> all_{};
    std::mutex log_mutex_{};
    std::vector<log_entry> log_{};
    std::thread thread_{};
    long long start_ns_ = 0, generations_ = 0;
    std::uint64_t next_id_ = 0;
    int port_ = 0;
    bool away_ = false;
    bool catching_up_ = false;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E36] what a server is asked before the load ==============================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// No server where one was expected: with LLMBENCH_SKIP_WITHOUT_SERVER the gate is skipped.
struct no_server : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The path of what is asked beside the load. A plain text server's URL names its one endpoint, and
/// what else it answers is beside that.
inline std::string inquiry_path(const load_target& to, const char* path) {
    const bool is_whole = to.api->framed == framing::pieces;
    return request_path(*to.api, path, is_whole ? std::string() : to.url.path, "");
}

// ---- which models it has

/// The models that an answer names.
inline std::vector<std::string> listed_models(const api_traits& api, const http_answer& a) {
    std::vector<std::string> models;
    picojson::value v;
    if (!*api.models || a.status != 200 || !parse_json(a.body, v)) return models;
    if (!*api.models_in) {
        if (has_text(v, api.model_as)) models.push_back(string_member(v, api.model_as));
        return models;
    }
    if (const picojson::value* list = member(v, api.models_in);
        list && list->is<picojson::array>())
        for (const picojson::value& m : list->get<picojson::array>())
            models.push_back(string_member(m, api.model_as));
    return models;
}

/// The model of a server that was not told which, by its answer: the only one that it lists. An API
/// that takes no model has its name for the reports, "" where it cannot be had.
inline std::string only_model(const load_target& to, const http_answer& a,
                              const std::string& url) {
    const std::vector<std::string> models = listed_models(*to.api, a);
    std::string names;
    for (const std::string& m : models)
        names += (names.empty() ? "" : ", ") + printable(without_secrets(m, to.secrets), 100);
    require(models.size() == 1 || !to.api->needs_model,
            "no model is named and " + url + " lists " +
                (models.empty() ? "none" : std::to_string(models.size()) + " (" + names + ")") +
                ": set .model or LLMBENCH_MODEL");
    return models.size() == 1 ? models[0] : std::string();
}

/// What a server answers first of all: its list of models, or whether it is ready. Throws no_server
/// where none answers.
inline http_answer first_answer(const load_target& to, const std::string& url) {
    const char* const path = *to.api->models ? to.api->models : to.api->ready;
    http_answer a = blocking_get(to.url, inquiry_path(to, path), to.fields, 10, to.tls.get());
    a.error = without_secrets(a.error, to.secrets);
    require(!a.distrusted, url + ": " + a.error);
    if (a.status == 0) throw no_server("no server answers at " + url + ": " + a.error);
    return a;
}

// ---- how many tokens a text has

/// By an answer of /tokenize: {"count"} or, of llama.cpp, {"tokens"} alone; -1 for any other.
inline int counted_tokens(const http_answer& a) {
    picojson::value v;
    if (a.status != 200 || !parse_json(a.body, v)) return -1;
    const picojson::value* all = member(v, "tokens");
    const bool listed = all && all->is<picojson::array>();
    return listed ? static_cast<int>(all->get<picojson::array>().size())
                  : count_member(v, "count");
}
/// The prompt's tokens by the usage of an answer; -1 where it does not say.
inline int used_tokens(const api_traits& api, const http_answer& a, bool streamed) {
    int n = -1;
    if (a.status != 200) return n;
    const auto note = [&](const stream_event& e) {
        if (e.prompt_tokens >= 0) n = e.prompt_tokens;
    };
    body_reader reader;
    reader.reset(api, streamed);
    if (reader.feed(a.body, note)) reader.end(note);
    return n;
}

/// Asks a server how it counts made-up prompts: by /tokenize where it has that, else by what it
/// says that requests for one token used.
class token_inquiry {
public:
    using post_t = std::function<http_answer(const std::string& path, const std::string& body)>;

    /// `common`: what all requests of the load have in common.
    token_inquiry(const load_target& to, const request_spec& common, post_t post)
        : to_(to), common_(common), post_(std::move(post)) {}

    /// `may_be_ids`: a prompt may be a list of token ids instead of words.
    token_fit fit(bool may_be_ids) {
        const token_fit words = fitted_tokens([&](const std::string& t) { return of_text(t); },
                                              [&](const std::string& p) { return of_prompt(p); });
        if (!may_be_ids || words.lengths == token_fit::quality::exact) return words;
        const token_fit ids = fitted_ids([&](const std::string& list) { return of_ids(list); });
        return ids.as_ids ? ids : words;
    }

private:
    /// Once it cannot tell it is not asked again.
    int tokenized(const std::string& body) {
        if (!tokenizes_) return -1;
        const int n = counted_tokens(post_(inquiry_path(to_, "/tokenize"), body));
        tokenizes_ = n > 0;
        return tokenizes_ ? n : -1;
    }
    int used_by(const std::string& body) {
        const bool stream = common_.stream;
        return used_tokens(*to_.api, post_(stream ? to_.path : to_.whole_path, body), stream);
    }
    std::string body_of(request_spec r) const {
        r.max_tokens = 1;
        return request_body(*to_.api, to_.model, r);
    }
    int of_text(const std::string& text) {
        request_spec none;
        body_writer b(none);  // "content" is llama.cpp's
        return tokenized(b.string("model", to_.model)
                             .string("prompt", text)
                             .string("content", text)
                             .finished());
    }
    int of_prompt(const std::string& prompt) {
        request_spec r = common_;
        r.prompt = prompt;
        const std::string body = body_of(r);
        const int n = tokenized(body);
        return n > 0 ? n : used_by(body);
    }
    int of_ids(const std::string& ids) {
        request_spec r = common_;
        r.token_ids = id_list(ids);
        return used_by(body_of(r));
    }

    const load_target& to_;
    const request_spec& common_;
    post_t post_;
    bool tokenizes_ = true;
};

/// How long the words of made-up prompts are, as far as the server tells within `within_s`.
inline token_fit learned_tokens(const plan& p, const load_target& to, double within_s) {
    const long long until = now_ns() + ns_of(within_s);
    const auto post = [&](const std::string& path, const std::string& body) {
        const double left_s = static_cast<double>(until - now_ns()) * 1e-9;
        return left_s <= 0 ? http_answer()
                           : blocking_post(to.url, path, to.fields, body, left_s, to.tls.get());
    };
    const bool may_be_ids =
        to.api->takes_token_ids && p.stride == 1 && p.common.system_prompt.empty();
    return token_inquiry(to, p.common, post).fit(may_be_ids);
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E37] who asks a server ===================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The header lines that all requests to a server share, and what of them is for nobody else.
struct credentials {
    std::string fields{};
    std::vector<std::string> secrets{};

    /// The value of a header or of a variable. A short one ("gzip") is none.
    void keep_secret(const std::string& value) {
        if (value.size() >= 8) add_secret(secrets, value);
    }
};

/// Throws std::invalid_argument where a gate cannot send such a header.
inline void check_header(const std::string& name, const std::string& value) {
    require(is_token(name), "endpoint.headers has the name \"" + printable(name) +
                                "\": it must be one word without a colon");
    require(is_header_safe(value), "endpoint.headers: the value of " + name +
                                       " holds a line break or another control character");
    for (const char* ours : {"host", "content-length", "content-type", "transfer-encoding",
                             "connection", "x-request-id"})
        require(!same_ignoring_case(name, ours),
                "endpoint.headers sets " + name + ": that header belongs to llmbench");
}

/// The variable that holds the key.
inline std::string key_variable(const endpoint& e) {
    return e.api_key_env.empty() ? "LLMBENCH_API_KEY" : str(e.api_key_env);
}

/// Throws std::invalid_argument where the key was asked for and is not there, or cannot be sent.
inline void check_key(const endpoint& e, const std::string& key) {
    const std::string variable = key_variable(e);
    const bool is_name = variable.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
                         std::string::npos;
    require(e.api_key_env.empty() || !key.empty(),
            is_name ? "endpoint.api_key_env is \"" + variable + "\": that variable is not set"
                    : "endpoint.api_key_env names a variable that is not set; it is not "
                      "repeated here, for it looks like a key and not like a name");
    require(is_header_safe(key), "the API key in " + variable +
                                     " holds a line break or another control character");
}

/// The header line with the key, "" where there is none. Where the gate names a header of that
/// kind itself, LLMBENCH_API_KEY is for others.
inline std::string key_line(const endpoint& e, const api_traits& api, const std::string& key) {
    const std::string_view header = api.key_before;
    for (const name_value& h : e.headers) {
        if (!same_ignoring_case(str(h.name), header.substr(0, header.find(':')))) continue;
        require(e.api_key_env.empty(), "endpoint.headers sets " + str(h.name) + " and " +
                                           "endpoint.api_key_env names a key: give one of them");
        return {};
    }
    return key.empty() ? key : api.key_before + key + "\r\n";
}

/// `key`: what key_variable() holds, "" where it is not set. Throws std::invalid_argument.
inline credentials credentials_of(const endpoint& e, const api_traits& api,
                                  const std::string& key) {
    credentials c;
    c.fields = "User-Agent: llmbench\r\nContent-Type: application/json\r\n";
    c.fields += api.fields;
    for (const name_value& h : e.headers) {
        const std::string name = str(h.name), value = str(h.value);
        check_header(name, value);
        c.fields += name + ": " + value + "\r\n";
        c.keep_secret(value);
    }
    check_key(e, key);
    add_secret(c.secrets, key);
    c.fields += key_line(e, api, key);
    return c;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E38] servers that a gate starts ==========================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Where the next server of this program says what it has to say.
inline std::string next_log(run_arm arm) {
    const std::string directory = report_directory();
    std::error_code ignored;
    std::filesystem::create_directories(directory, ignored);
    return directory + "/" + (arm == run_arm::baseline ? "baseline-" : "server-") +
           std::to_string(++servers_started) + ".log";
}

/// process{...}: a server that is there from start() to end().
class started_process {
public:
    started_process(const process& p, run_arm arm) : what_(p), arm_(arm) {
        require(!what_.command.empty(), "process.command is empty: it must start a server");
        require(what_.ready_within.seconds() > 0, "process.ready_within must be above 0");
    }
    bool restarts() const { return what_.restart_between_repeats; }
    /// What it is told by its environment is for nobody else either.
    void keep_secrets(credentials& c) const {
        for (const name_value& v : what_.env) c.keep_secret(str(v.value));
    }

    /// Its URL, once it is ready. Throws no_server where it is not within `at_most_s`, or within
    /// what it has by its own account.
    std::string start(const api_traits& api, const std::vector<std::string>& secrets,
                      double at_most_s) {
        const double ready_within_s = std::min(what_.ready_within.seconds(), at_most_s);
        const int port = free_port();
        log_ = next_log(arm_);
        const long long began = now_ns();
        running_ = std::make_unique<server_process>(what_, port, log_, secrets);
        const std::string url = "http://127.0.0.1:" + std::to_string(port);
        const std::string ready = what_.ready.empty() ? api.ready : str(what_.ready);
        const std::string why =
            why_not_ready(parsed_url(url, "process"), ready, began, ready_within_s);
        if (!why.empty()) throw given_up(why, secrets);
        startup_s_ = static_cast<double>(now_ns() - began) * 1e-9;
        return url;
    }
    void end() { running_.reset(); }
    /// Seconds that the last start took, told once.
    double take_startup_s() { return std::exchange(startup_s_, not_a_number); }
    /// Why it is not there any more, "" while it is.
    std::string how_it_went(const std::vector<std::string>& secrets) {
        const std::string how = running_ ? running_->how_it_ended() : "";
        if (how.empty()) return {};
        const std::string tail = without_secrets(running_->log_tail(), secrets);
        return "the server process " + how + "; its log ends: " + printable(tail, 500);
    }

private:
    /// Waits until the path `ready` answers 200; "" then.
    std::string why_not_ready(const http_url& url, const std::string& ready, long long began,
                              double within_s) {
        http_answer last;
        for (;;) {
            if (const std::string how = running_->how_it_ended(); !how.empty())
                return how + " before it was ready";
            if (static_cast<double>(now_ns() - began) * 1e-9 > within_s)
                return "was not ready within " + time_text(within_s) + " (" + ready +
                       " answered: " +
                       (last.error.empty() ? "HTTP " + std::to_string(last.status) : last.error) +
                       ")";
            if (interrupted.load()) return "was interrupted while starting";
            last = blocking_get(url, ready, "", std::min(2.0, within_s));
            if (last.status == 200) return {};
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }
    no_server given_up(const std::string& why, const std::vector<std::string>& secrets) {
        const std::string tail = without_secrets(running_->log_tail(), secrets);
        end();
        return no_server("process \"" + printable(str(what_.command), 200) + "\" " + why +
                         "; log " + log_ + (tail.empty() ? " is empty" : " ends:") +
                         barred_lines(tail));
    }

    process what_;
    run_arm arm_;
    std::string log_{};
    std::unique_ptr<server_process> running_{};
    double startup_s_ = not_a_number;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E39] targets brought up ==================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// endpoint{...}: nothing is to be started.
struct running_already {};
/// simulated(): the built-in server, on a thread of its own.
struct simulated_engine {
    engine settings{};
    std::unique_ptr<simulated_host> host{};
};

/// The API of a target, as the gate or else LLMBENCH_API names it.
inline const api_traits& api_of(const endpoint& e) {
    require(static_cast<std::size_t>(e.api) < std::size(apis),
            "endpoint.api is no API: it is one of " + api_names());
    const std::string name = environment("LLMBENCH_API");
    if (name.empty() || e.api != openai_chat) return traits_of(e.api);
    const api_traits* const api = api_named(name);
    require(api != nullptr,
            "LLMBENCH_API is \"" + printable(name) + "\": it is one of " + api_names());
    return *api;
}

/// A target that answers, and what it takes to send requests to it.
class live_target {
public:
    live_target(const any_target& t, run_arm arm) : is_baseline_(arm == run_arm::baseline) {
        const box& what = t.what();
        if (const auto* p = what.get<process>()) take(*p, arm);
        else if (const auto* s = what.get<simulated_server>()) take(*s);
        else if (const auto* e = what.get<endpoint>()) take(*e);
        else take(endpoint{});
        load_.api = &api_of(at_);
        facts_.api = load_.api->name;
    }

    /// `at_most_s`: however long a process may take to be ready by its own account.
    void bring_up(double at_most_s = infinity) {
        credentials own = credentials_of(at_, *load_.api, environment(key_variable(at_).c_str()));
        if (auto* p = std::get_if<started_process>(&server_)) {
            p->keep_secrets(own);
            at_.url = p->start(*load_.api, own.secrets, at_most_s);
        } else if (auto* s = std::get_if<simulated_engine>(&server_)) {
            s->host = std::make_unique<simulated_host>(s->settings);
            at_.url = s->host->url();
        }
        load_.fields = std::move(own.fields);
        load_.secrets = std::move(own.secrets);
        facts_.url = str(at_.url);
        find_server();
        find_model();
    }
    /// A fresh process between repeats, where the scenario asks for it.
    bool restarts() const {
        const auto* p = std::get_if<started_process>(&server_);
        return p && p->restarts();
    }
    void restart() {
        if (auto* p = std::get_if<started_process>(&server_)) p->end();
        bring_up();
    }
    /// Why it is not there any more, "" while it is.
    std::string how_it_went() {
        auto* p = std::get_if<started_process>(&server_);
        return p ? p->how_it_went(load_.secrets) : std::string();
    }
    /// How long the words of made-up prompts are, once for all repeats, within 5 s.
    void learn_tokens(const plan& p, double at_most_s) {
        if (!makes_up_prompts(p)) return;
        facts_.tokens = load_.tokens = learned_tokens(p, load_, std::min(5.0, at_most_s));
    }
    /// Seconds that a process took to be ready, once for each start.
    double take_startup_s() {
        auto* p = std::get_if<started_process>(&server_);
        return p ? p->take_startup_s() : not_a_number;
    }
    const load_target& load() const { return load_; }
    const target_facts& facts() const { return facts_; }

private:
    void take(const process& p, run_arm arm) {
        server_.emplace<started_process>(p, arm);
        facts_.kind = target_kind::process;
        at_.api = p.api;
        at_.model = p.model.empty() ? text(environment("LLMBENCH_MODEL")) : p.model;
    }
    void take(const simulated_server& s) {
        server_.emplace<simulated_engine>(simulated_engine{.settings = s.settings});
        facts_.kind = target_kind::simulated;
    }
    void take(const endpoint& e) {
        facts_.kind = target_kind::endpoint;
        at_ = e;
        if (e.url.empty()) at_.url = environment(url_variable());
        if (e.model.empty()) at_.model = environment("LLMBENCH_MODEL");
        require(!at_.url.empty() || !is_baseline_,
                "no baseline: set LLMBENCH_BASELINE_URL, which a baseline without a URL takes, or "
                "give the scenario .baseline = endpoint{.url = \"http://...\"}; .baseline = "
                "same_server() is an A/A run");
        require(!at_.url.empty(),
                "no target: set LLMBENCH_URL, or give the scenario .target = endpoint{.url = "
                "\"http://...\"}, or .target = simulated()");
    }
    const char* url_variable() const {
        return is_baseline_ ? "LLMBENCH_BASELINE_URL" : "LLMBENCH_URL";
    }
    void find_server() {
        const bool is_set = environment(url_variable()) == facts_.url;
        load_.url = parsed_url(facts_.url, is_set ? url_variable() : "endpoint.url");
        load_.tls.reset();
        facts_.tls = tls_trust::no_tls;
        if (load_.url.tls) {
            load_.tls = std::make_shared<tls_client>(at_.tls, load_.url);
            facts_.tls = at_.tls.verify ? tls_trust::verified : tls_trust::not_verified;
        }
        try {
            load_.addresses = resolved(load_.url);
        } catch (const std::runtime_error& e) {
            throw no_server(facts_.url + ": " + e.what());
        }
    }
    /// The model named, else the only one that the server lists. A server that does not answer is
    /// heard of here in either case.
    void find_model() {
        const http_answer first = first_answer(load_, facts_.url);
        load_.model = at_.model.empty() ? only_model(load_, first, facts_.url) : str(at_.model);
        facts_.model = printable(without_secrets(load_.model, load_.secrets));
        const api_traits& api = *load_.api;
        load_.path = request_path(api, api.path, load_.url.path, load_.model);
        load_.whole_path = request_path(api, api.whole_path, load_.url.path, load_.model);
    }

    bool is_baseline_ = false;
    std::variant<running_already, started_process, simulated_engine> server_{};
    endpoint at_{};  // what the server is once it is up
    load_target load_{};
    target_facts facts_{};
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E40] whether two targets are one server ==================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// An address and port as one of IPv6, so that one of IPv4 equals itself in IPv6's clothes and each
/// loopback is the other's.
inline sockaddr_in6 comparable(const address& a) {
    sockaddr_in6 out{};
    out.sin6_family = AF_INET6;
    unsigned char* const bytes = out.sin6_addr.s6_addr;
    if (a.storage.ss_family == AF_INET) {
        sockaddr_in in{};
        std::memcpy(&in, &a.storage, sizeof in);
        out.sin6_port = in.sin_port;
        bytes[10] = bytes[11] = 0xFF;
        std::memcpy(bytes + 12, &in.sin_addr, 4);
    } else {
        sockaddr_in6 in{};
        std::memcpy(&in, &a.storage, sizeof in);
        out.sin6_port = in.sin6_port;
        out.sin6_addr = in.sin6_addr;
    }
    static constexpr unsigned char loopback_of_ipv4[16] = {0, 0,    0,    0,   0, 0, 0, 0,
                                                           0, 0, 0xFF, 0xFF, 127, 0, 0, 1};
    if (std::memcmp(bytes, loopback_of_ipv4, 16) == 0) out.sin6_addr = in6addr_loopback;
    return out;
}
inline bool is_same_address(const address& a, const address& b) {
    if (a.storage.ss_family == AF_UNIX || b.storage.ss_family == AF_UNIX) return false;
    const sockaddr_in6 x = comparable(a), y = comparable(b);
    return x.sin6_port == y.sin6_port &&
           std::memcmp(&x.sin6_addr, &y.sin6_addr, sizeof x.sin6_addr) == 0;
}
/// Whether two targets end in one listening socket, by whatever names they were called.
inline bool is_same_place(const load_target& a, const load_target& b) {
    if (a.url.socket.empty() != b.url.socket.empty()) return false;
    if (!a.url.socket.empty()) {
        std::error_code ignored;
        return a.url.socket == b.url.socket ||
               std::filesystem::equivalent(a.url.socket, b.url.socket, ignored);
    }
    return std::any_of(a.addresses.begin(), a.addresses.end(), [&](const address& x) {
        return std::any_of(b.addresses.begin(), b.addresses.end(),
                           [&](const address& y) { return is_same_address(x, y); });
    });
}

/// Why a candidate and its baseline are one server that would be compared with itself, "" where
/// they are two, or two models, paths or routes of one: a gateway tells them apart.
inline std::string same_server_reason(const load_target& candidate, const std::string& its_url,
                                      const load_target& baseline, const std::string& other_url) {
    const bool is_one = is_same_place(candidate, baseline) && candidate.path == baseline.path &&
                        candidate.model == baseline.model && candidate.fields == baseline.fields;
    if (!is_one) return {};
    return "target is " + printable(its_url) + " and baseline is " + printable(other_url) +
           ", which is one server and would be compared with itself: give the baseline a URL of "
           "its own (LLMBENCH_BASELINE_URL, where the scenario names none), another model, path or "
           "header, or say .baseline = same_server()";
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E41] records.jsonl and events.bin, written while the load runs ===========================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Says on the console which file is not whole, and why.
inline void tell_not_whole(const std::string& directory, const std::string& why) {
    std::cerr << "llmbench: not written whole in " << directory << ", so no result of this program "
              << "is a pass: " << why << std::endl;
}

/// What an earlier program left in a report directory, and what says how it ended: gone before a
/// gate begins, so that no green file stands beside the records of a program that was killed.
/// calibration.json stays, for the next program may be asked to read it.
inline constexpr const char* reports_of_a_program[] = {"result.json", "junit.xml", "summary.md",
                                                       "metrics.txt", "report.html"};
inline void remove_reports(const std::filesystem::path& directory) {
    for (const char* name : reports_of_a_program)
        for (const char* draft : {"", ".tmp"})
            ::unlink((directory / (std::string(name) + draft)).c_str());
}

/// Both files, appended to by one gate after the other. Any thread may call.
class record_files {
public:
    explicit record_files(std::string directory) : directory_(std::move(directory)) {}
    record_files(const record_files&) = delete;
    record_files& operator=(const record_files&) = delete;
    ~record_files() { if (lock_ >= 0) ::close(lock_); }

    /// Both are open, or it throws std::invalid_argument: what cannot be reported is not begun.
    void open() {
        const std::lock_guard guard(mutex_);
        if (opened_) return;
        const std::filesystem::path dir = directory_;
        std::error_code problem;
        std::filesystem::create_directories(dir, problem);
        take_directory();
        if (!problem) remove_reports(dir);
        for (const auto& [file, name] :
             {std::pair{&records_, "records.jsonl"}, std::pair{&events_, "events.bin"}})
            if (!problem) problem.assign(file->open(dir / name), std::generic_category());
        require(!problem, "LLMBENCH_REPORT_DIR is " + directory_ + ": it cannot be written (" +
                              error_text(problem.value()) + ")");
        opened_ = true;
    }
    bool are_open() const {
        const std::lock_guard guard(mutex_);
        return opened_;
    }
    bool are_whole() const {
        const std::lock_guard guard(mutex_);
        return whole_;
    }

    /// Records follow their gaps, and whole lines go out at once: however this program ends, each
    /// line has its gaps, which lie in events.bin one after another in the order of the lines.
    void write(const delivered_requests& d, const std::string& gate) {
        const std::lock_guard guard(mutex_);
        std::string bytes, lines;
        for (const std::uint32_t gap : d.gaps)
            for (int b = 0; b < 4; ++b) bytes += static_cast<char>(gap >> (8 * b));
        for (const record& r : d.records) {
            index_.offsets.push_back(index_.bytes);
            index_.bytes += 4 * static_cast<long long>(gap_count(r));
            lines += record_json(r, gate);
        }
        hash_.add(bytes.data(), bytes.size());
        append(events_, "events.bin", bytes);
        append(records_, "records.jsonl", lines);
    }
    /// What result.json tells of events.bin.
    event_index index() const {
        const std::lock_guard guard(mutex_);
        event_index told = index_;
        told.hash = hash_.text();
        return told;
    }

private:
    /// One program at a time: two of them would take each other's files, and the machine.
    void take_directory() {
        if (lock_ >= 0) return;
        lock_ = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const bool is_taken =
            lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (is_taken) ::close(std::exchange(lock_, -1));
        require(!is_taken, "LLMBENCH_REPORT_DIR is " + directory_ +
                               ": another program is measuring and writes there: run one after "
                               "the other, or give each a directory of its own");
    }
    void append(new_file& file, const char* name, const std::string& bytes) {
        if (!file.is_open()) return;  // it was told of when it broke
        const int problem = file.append(bytes);
        if (problem == 0) return;
        file.close();
        whole_ = false;
        tell_not_whole(directory_, std::string(name) + ": " + error_text(problem));
    }
    std::string directory_;
    mutable std::mutex mutex_{};
    event_index index_{};
    fnv1a hash_{};
    new_file records_{}, events_{};
    int lock_ = -1;  // of the directory
    bool opened_ = false, whole_ = true;
};

/// Writes what a load delivers, five times a second. A thread like the others: one that gave way to
/// them would fall behind on a busy machine, and what waits for it takes memory.
class record_writer {
public:
    record_writer(record_files& files, std::string gate) : files_(files), gate_(std::move(gate)) {
        thread_ = std::thread([this] {
            std::unique_lock lock(mutex_);
            while (!over_.wait_for(lock, std::chrono::milliseconds(200), [&] { return done_; }))
                write();
        });
    }
    ~record_writer() {
        {
            const std::lock_guard lock(mutex_);
            done_ = true;
        }
        over_.notify_one();
        thread_.join();
        write();
    }
    record_writer(const record_writer&) = delete;
    record_writer& operator=(const record_writer&) = delete;
    outbox& box() { return box_; }

private:
    void write() {
        box_.take(batch_);
        files_.write(batch_, gate_);
        batch_.records.clear();
        batch_.gaps.clear();
    }
    record_files& files_;
    std::string gate_;
    outbox box_{};
    delivered_requests batch_{};
    std::mutex mutex_{};
    std::condition_variable over_{};
    bool done_ = false;
    std::thread thread_{};
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E42] all gates of a program and their reports ============================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A test case of doctest's, and why it failed where that is no gate's fault.
struct host_failure {
    std::string test_case{}, file{};
    int line = 0;
    std::string why{};
};

/// A reason to end with something else than 0.
inline bool is_red(gate_outcome o) {
    return o != gate_outcome::passed && o != gate_outcome::skipped;
}

/// Any thread may call: gates may be started by several, and any of them may end the program.
class session {
public:
    static session& of_this_program() {
        static session* const s = new session;  // outlives every static object
        return *s;
    }

    /// A gate that has begun; its number.
    std::size_t open_gate(gate_report&& as_far_as_known) {
        const std::lock_guard guard(mutex_);
        if (std::exchange(ended_, false)) hear_of_the_end();
        gates_.push_back(std::move(as_far_as_known));
        gates_.back().refusal = "it had not ended when this was written";
        changed_ = true;
        if (written_as_over_) write_files(false);
        return gates_.size() - 1;
    }
    /// It has ended. `asserts`: it fails what it stands in.
    void close_gate(std::size_t number, gate_report&& g, bool asserts, bool in_test_case) {
        const std::lock_guard guard(mutex_);
        if (gates_[number].outcome != gate_outcome::unfinished) return;  // the program ends
        if (asserts) note_unheard(g.outcome, in_test_case);
        gates_[number] = std::move(g);
        changed_ = true;
        // Each file holds all gates: to write them again after each one of many takes hours.
        if (gates_.size() < next_writing_) return;
        next_writing_ = std::max(gates_.size() + 1, gates_.size() * 5 / 4);
        write_files(false);
    }
    /// An assertion on its result, with what that adds to the outcome.
    void add_verdict(std::size_t number, const slo_verdict& v, gate_outcome adds,
                     const evidence& seen, bool in_test_case) {
        const std::lock_guard guard(mutex_);
        gate_report& g = gates_[number];
        g.verdicts.push_back(v);
        g.figures = with_objective(std::move(g.figures), seen, v.what);
        worsen_gate(number, adds, in_test_case);
    }
    void worsen(std::size_t number, gate_outcome adds, bool in_test_case) {
        const std::lock_guard guard(mutex_);
        worsen_gate(number, adds, in_test_case);
    }
    /// A test case failed by something else than its gates, of which `first_gate` was the first:
    /// what they measured stays, and nothing of it is called a pass.
    void fail_test_case(const host_failure& f, std::size_t first_gate) {
        const std::lock_guard guard(mutex_);
        changed_ = true;
        const std::string words = "its test case failed: " + f.why;
        for (std::size_t i = first_gate; i < gates_.size(); ++i) {
            gates_[i].outcome = worse_of(gates_[i].outcome, gate_outcome::failed);
            gates_[i].beside = words;
        }
        if (first_gate == gates_.size())
            note_other(f, "the test case has no gate and failed: " + f.why, gate_outcome::failed);
    }
    /// doctest is in this test case now.
    void host_begins(const host_failure& at) {
        const std::lock_guard guard(mutex_);
        host_is_at_ = at;
    }
    std::string test_case() const {
        const std::lock_guard guard(mutex_);
        return host_is_at_ ? host_is_at_->test_case : std::string();
    }
    /// doctest's run has come to its end: it knows what its test cases did.
    void host_has_ended() {
        const std::lock_guard guard(mutex_);
        host_is_at_.reset();
        unheard_by_host_ = gate_outcome::passed;
    }

    /// From this gate on, none is a reason to end with something else than 0.
    bool is_green_from(std::size_t first_gate) const {
        const std::lock_guard guard(mutex_);
        return std::none_of(gates_.begin() + static_cast<std::ptrdiff_t>(first_gate), gates_.end(),
                            [](const gate_report& g) { return is_red(g.outcome); });
    }
    std::size_t number_of_gates() const {
        const std::lock_guard guard(mutex_);
        return gates_.size();
    }
    /// Over all gates and their files: a green run whose files are not whole is not green.
    gate_outcome outcome() const {
        const std::lock_guard guard(mutex_);
        return worst();
    }
    /// For whoever makes it the exit code: everything is written, and nobody else need say it.
    gate_outcome final_outcome() {
        const std::lock_guard guard(mutex_);
        if (is_ours()) write_files(true);
        unheard_ = unheard_by_host_ = gate_outcome::passed;
        return worst();
    }

    /// Whose turn it is, counted from 1; others may have begun to wait for theirs.
    void give_turn(std::size_t number) { running_ = static_cast<int>(number) + 1; }
    int running_gate() const { return running_; }

    record_files& records() { return records_; }
    void note_gaps(std::uint64_t kept) { gaps_kept_ += kept; }
    /// How many more gaps may be kept one by one.
    std::uint64_t room_for_gaps() const {
        return most_gaps_kept - std::min(most_gaps_kept, gaps_kept_.load());
    }
    /// False in a forked child: files, exit code and gates are its parent's.
    bool is_ours() const { return ::getpid() == process_; }

    /// At the end of the program: the reports, and what GitHub Actions is to show.
    void finish() {
        if (!is_ours()) return;
        const std::lock_guard guard(mutex_);
        for (gate_report& g : gates_)
            if (g.outcome == gate_outcome::unfinished) {
                g.outcome = gate_outcome::invalid;
                g.refusal = "the program ended before this gate did";
                changed_ = cut_off_ = true;
            }
        // Whoever calls exit() in a test case keeps doctest from telling what it has seen so far.
        if (host_is_at_ && (tells_exit_code || !gates_.empty())) {
            note_other(*host_is_at_, "the program ended inside this test case",
                       gate_outcome::invalid);
            host_is_at_.reset();
            cut_off_ = true;
        }
        write_files(true);
        if (!std::exchange(finished_, true) && !gates_.empty())
            with_all_told(true, [&] { say_at_the_end(); });
    }
    /// One gate's result as a file of its own, to be a baseline.
    void write_baseline(const gate_report& g, const std::string& file) const {
        const std::filesystem::path path = file;
        if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
        write_file(path, result_json({g}, environment_, {}, exit_code_of(g.outcome)));
    }

    std::atomic<bool> tells_exit_code{false};  // main() is ours
    std::atomic<bool> only_asked{false};       // doctest was asked a question and ran nothing

private:
    session() : environment_(environment_now()), records_(report_directory()) {
        hear_of_the_end();
    }
    /// exit() and quick_exit() are heard of, _Exit() and signals are not. A gate in a destructor of
    /// a static object may begin when the end has been heard of already.
    void hear_of_the_end() {
        std::atexit(at_the_end);
        std::at_quick_exit(at_the_end);
    }
    /// Too late to tell main(), and with whatever code it was called: a gate was cut off, a file
    /// cannot be written, or a gate is red and neither main() nor doctest has come to hear of it.
    static void at_the_end() {
        session& all = of_this_program();
        if (!all.is_ours()) return;
        all.finish();
        const std::lock_guard guard(all.mutex_);
        all.ended_ = true;
        const gate_outcome unheard = worse_of(all.unheard_, all.unheard_by_host_);
        if (!all.cut_off_ && all.is_whole() && !is_red(unheard)) return;
        const int code = exit_code_of(all.worst());
        if (is_red(unheard))
            std::cerr << "llmbench: a gate is " << to_string(unheard) << " and the program ends "
                      << "without having asked for that: it ends with " << code << std::endl;
        std::cout.flush();
        std::fflush(nullptr);
        std::_Exit(code);
    }

    gate_outcome worst() const {
        gate_outcome all = is_whole() ? gate_outcome::passed : gate_outcome::invalid;
        for (const auto* reports : {&gates_, &others_})
            for (const gate_report& g : *reports) all = worse_of(all, g.outcome);
        return all;
    }
    void note_other(const host_failure& at, const std::string& why, gate_outcome outcome) {
        gate_report g;
        g.what.name = g.what.test_case = at.test_case;
        g.what.file = at.file;
        g.what.line = at.line;
        g.refusal = why;
        g.outcome = outcome;
        others_.push_back(std::move(g));
        changed_ = true;
    }
    void note_unheard(gate_outcome o, bool in_test_case) {
        gate_outcome& by = in_test_case ? unheard_by_host_ : unheard_;
        by = worse_of(by, o);
    }
    void worsen_gate(std::size_t number, gate_outcome adds, bool in_test_case) {
        gates_[number].outcome = worse_of(gates_[number].outcome, adds);
        note_unheard(adds, in_test_case);
        changed_ = true;
    }
    /// Calls `tell` while `gates_` is all that reports tell of. Until the program has ended that is
    /// one thing more: should it be killed, its files are not green.
    template <class Tell>
    void with_all_told(bool is_over, const Tell& tell) {
        const std::size_t own = gates_.size();
        gates_.insert(gates_.end(), others_.begin(), others_.end());
        if (!is_over) {
            gate_report rest;
            rest.what.name = "the rest of the program";
            rest.what.file = gates_[own - 1].what.file;
            rest.what.line = gates_[own - 1].what.line;
            rest.refusal = "the program had not ended when this was written, so it has not passed";
            rest.outcome = gate_outcome::invalid;
            gates_.push_back(std::move(rest));
        }
        tell();
        gates_.erase(gates_.begin() + static_cast<std::ptrdiff_t>(own), gates_.end());
    }
    /// The files of the program, with all gates so far.
    void write_files(bool is_over) {
        if (gates_.empty() || !records_.are_open()) return;
        if (!changed_ && is_over == written_as_over_) return;
        changed_ = false;
        written_as_over_ = is_over;
        const gate_outcome so_far = is_over ? worst() : worse_of(worst(), gate_outcome::invalid);
        const std::filesystem::path dir = report_directory();
        const auto writing = [&](const auto& write) {
            try {
                write();
            } catch (const std::exception& e) {
                reports_whole_ = false;
                tell_not_whole(report_directory(), std::string("the reports: ") + e.what());
            }
        };
        writing([&] {
            write_file(dir / "result.json", result_json(gates_, environment_, records_.index(),
                                                        exit_code_of(so_far)));
            write_file(dir / "metrics.txt", open_metrics(gates_));
            const auto is_calibrated = [](const gate_report& g) { return !g.calibration.empty(); };
            if (std::any_of(gates_.begin(), gates_.end(), is_calibrated))
                write_file(dir / "calibration.json", calibration_json(gates_));
        });
        with_all_told(is_over, [&] {
            writing([&] {
                write_file(dir / "junit.xml", junit_xml(gates_));
                write_file(dir / "summary.md", summary_md(gates_));
                write_file(dir / "report.html", report_html(gates_, environment_));
            });
        });
    }
    void say_at_the_end() const {
        const surroundings& around = surroundings_of_program();
        std::cout << closing_text(gates_, around.style()) << std::flush;
        if (around.on_github)
            std::cout << github_annotations(gates_, around.github_workspace) << std::flush;
        if (around.step_summary.empty()) return;
        std::error_code none;
        const auto taken = std::filesystem::file_size(around.step_summary, none);
        // Above 1 MiB GitHub shows nothing of a step's summary, of others' neither.
        if (none || taken + summary_limit <= 1048576)
            std::ofstream(around.step_summary, std::ios::app) << summary_md(gates_);
    }
    bool is_whole() const { return reports_whole_ && records_.are_whole(); }

    mutable std::mutex mutex_{};
    std::vector<gate_report> gates_{};
    std::vector<gate_report> others_{};  // what failed beside them
    std::optional<host_failure> host_is_at_{};
    environment_facts environment_;
    record_files records_;
    const pid_t process_ = ::getpid();
    std::atomic<std::uint64_t> gaps_kept_{0};
    std::atomic<int> running_{0};
    std::size_t next_writing_ = 1;  // with so many gates
    // The worst that nobody has come to hear of yet: outside test cases, and inside.
    gate_outcome unheard_ = gate_outcome::passed, unheard_by_host_ = gate_outcome::passed;
    bool changed_ = false, written_as_over_ = false, finished_ = false, ended_ = false;
    bool cut_off_ = false, reports_whole_ = true;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E43] gates inside doctest ================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

#if !defined(LLMBENCH_NO_DOCTEST) && !defined(DOCTEST_CONFIG_DISABLE)
inline bool inside_test_case() { return doctest::is_running_in_test; }
/// As the listener below has heard it: what doctest itself knows is not for a gate's own thread.
inline std::string test_case_name() { return session::of_this_program().test_case(); }
inline thread_local bool asserts_a_gate = false;
/// One assertion with our own text. REQUIRE throws where it fails.
inline void assertion(doctest::assertType::Enum severity, const char* file, int line,
                      const std::string& expression, bool failed, const std::string& text) {
    doctest::detail::ResultBuilder builder(severity, file, line, expression.c_str());
    builder.m_failed = failed;
    builder.m_decomp = text.c_str();
    asserts_a_gate = true;
    const bool breaks = builder.log();
    asserts_a_gate = false;
    if (breaks) DOCTEST_BREAK_INTO_DEBUGGER();
    builder.react();
}
/// A verdict under a severity, by the table of outcomes.
inline void assert_verdict(doctest::assertType::Enum severity, const char* file, int line,
                           const std::string& expression, const slo_verdict& v,
                           inconclusive_means undecided_is) {
    const bool undecided_fails =
        v.outcome == verdict::inconclusive && undecided_is == inconclusive_means::fail;
    // Missing data is never green: our own main says so by its exit code, others hear it here.
    const bool no_data = v.outcome == verdict::inconclusive && v.repeats == 0 &&
                         !session::of_this_program().tells_exit_code;
    const bool failed = v.outcome == verdict::fail || v.outcome == verdict::invalid ||
                        undecided_fails || no_data;
    assertion(severity, file, line, expression, failed, verdict_line(v));
}
inline void refuse_in_test(const char* file, int line, const char* verb, const std::string& why) {
    assertion(doctest::assertType::DT_CHECK, file, line, std::string(verb) + "({...})", true, why);
}
/// Learns from doctest what is no gate's: whether it was only asked a question, which test cases
/// failed and why, and whether it came to its end. Assertions may come from any thread.
class host_listener : public doctest::IReporter {
public:
    explicit host_listener(const doctest::ContextOptions&) {}
    void report_query(const doctest::QueryData&) override { all_.only_asked = true; }
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats&) override {
        if (is_heard()) all_.host_has_ended();
    }
    void test_case_start(const doctest::TestCaseData& t) override {
        const std::lock_guard guard(mutex_);
        now_ = {t.m_name, t.m_file.c_str(), static_cast<int>(t.m_line), ""};
        first_gate_ = all_.number_of_gates();
        if (is_heard()) all_.host_begins(now_);
    }
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats& s) override {
        if (!is_heard() || s.testCaseSuccess) return;
        const std::lock_guard guard(mutex_);
        // Without words it failed by its gates, or by what it is decorated with.
        if (!now_.why.empty()) all_.fail_test_case(now_, first_gate_);
        else if (all_.is_green_from(first_gate_)) {
            now_.why = "doctest calls it a failure";
            all_.fail_test_case(now_, first_gate_);
        }
    }
    void test_case_exception(const doctest::TestCaseException& e) override {
        if (e.is_crash) crashed_ = true;
        else note("an exception ended it: " + printable(e.error_string.c_str()));
    }
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData& a) override {
        if (a.m_failed && !asserts_a_gate && !(a.m_at & doctest::assertType::is_warn))
            note(printed("%s:%d: %s( %s ) does not hold", file_name(a.m_file).c_str(), a.m_line,
                         doctest::assertString(a.m_at), printable(a.m_expr).c_str()));
    }
    void log_message(const doctest::MessageData& m) override {
        if (!(m.m_severity & doctest::assertType::is_warn))
            note(printed("%s:%d: %s", file_name(m.m_file).c_str(), m.m_line,
                         printable(m.m_string.c_str()).c_str()));
    }
    void test_case_skipped(const doctest::TestCaseData&) override {}

private:
    /// Not in a forked child, and not in a handler of signals, which may have come at any moment.
    bool is_heard() const { return !crashed_ && all_.is_ours(); }
    /// The first one is told.
    void note(const std::string& why) {
        if (!is_heard()) return;
        const std::lock_guard guard(mutex_);
        if (now_.why.empty()) now_.why = why;
    }
    session& all_ = session::of_this_program();
    std::mutex mutex_{};
    host_failure now_{};
    std::size_t first_gate_ = 0;
    std::atomic<bool> crashed_{false};
};
inline const int host_listener_registered =
    doctest::registerReporter<host_listener>("llmbench", 0, false);
#else
inline bool inside_test_case() { return false; }
inline std::string test_case_name() { return {}; }
inline void refuse_in_test(const char*, int, const char*, const std::string&) {}
#endif

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E44] the progress of a repeat ============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Tells how a gate is getting on, from a thread of its own that only reads counters: one line that
/// is written over on a terminal, lines ever further apart in a log.
class progress_meter {
public:
    progress_meter(const plan& p, progress_mode mode, const console_style& style)
        : mode_(mode), style_(style), plan_(p), began_ns_(now_ns()), each_s_(expected_seconds(p)) {
        facts_.slos = p.slos.size();
        if (mode != progress_mode::off) thread_ = std::thread([this] { tell(); });
    }
    ~progress_meter() {
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
            clear();
        }
        wake_.notify_all();
        if (thread_.joinable()) thread_.join();
    }
    progress_meter(const progress_meter&) = delete;
    progress_meter& operator=(const progress_meter&) = delete;

    /// Any other words on the console, while this one holds it.
    void say(const std::string& words) {
        const std::lock_guard lock(mutex_);
        clear();
        std::cout << words << std::flush;
    }
    void stage(const std::string& name) {
        const std::lock_guard lock(mutex_);
        facts_.stage = name;
    }
    void decided(const std::vector<slo_verdict>& verdicts) {
        const std::lock_guard lock(mutex_);
        facts_.decided.clear();
        for (const slo_verdict& v : verdicts)
            if (v.outcome != verdict::inconclusive)
                facts_.decided.push_back(str(v.what.text()) + ": " + to_string(v.outcome));
    }
    /// A load whose counters are told from now on; null: none. It outlives that.
    void watch(const load_state* load) {
        const std::lock_guard lock(mutex_);
        if (load) load_began_ns_ = now_ns();
        else each_s_ = std::max(each_s_, static_cast<double>(now_ns() - load_began_ns_) * 1e-9);
        load_ = load;
    }

private:
    void tell() {
        std::unique_lock lock(mutex_);
        const auto between = [&] {
            if (mode_ == progress_mode::line) return std::chrono::milliseconds(200);
            return std::chrono::milliseconds(now_ns() - began_ns_ < 60000000000 ? 5000 : 15000);
        };
        while (!wake_.wait_for(lock, between(), [&] { return over_; })) {
            gather();
            if (mode_ == progress_mode::plain) {
                std::cout << progress_line(facts_, 0, style_.unicode) + "\n" << std::flush;
                continue;
            }
            // One column is left free: a full line would wrap on some terminals.
            const std::size_t width = std::max<std::size_t>(console_width(), 2) - 1;
            std::cout << "\r" + progress_line(facts_, width, style_.unicode) + "\x1b[K"
                      << std::flush;
            drawn_ = true;
        }
    }
    void gather() {
        facts_.elapsed_s = static_cast<double>(now_ns() - began_ns_) * 1e-9;
        const auto [least, most] = expected_span(plan_, each_s_);
        facts_.least_s = least;
        facts_.most_s = most;
        facts_.phase = load_                  ? ""
                       : facts_.stage.empty() ? "waiting for the server"
                                              : "resting";
        facts_.planned = facts_.sent = facts_.done = facts_.failed = 0;
        facts_.ttft = facts_.tpot = not_a_number;
        if (!load_) return;
        facts_.planned = load_->planned.load();
        facts_.done = load_->done.load();  // before `sent`, which is never behind it then
        facts_.failed = load_->failed.load();
        facts_.sent = load_->sent.load();
        const auto mean = [](long long sum, long long n) {
            return n > 0 ? static_cast<double>(sum) / static_cast<double>(n) * 1e-9 : not_a_number;
        };
        facts_.ttft = mean(load_->ttft_ns.load(), load_->answered.load());
        facts_.tpot = mean(load_->tpot_ns.load(), load_->paced.load());
        if (load_->measured_from.load() == 0) facts_.phase = "warming up";
        else if (facts_.planned > 0 && facts_.sent >= facts_.planned)
            facts_.phase = "waiting for the last answers";
    }
    void clear() {
        if (std::exchange(drawn_, false)) std::cout << "\r\x1b[K" << std::flush;
    }

    const progress_mode mode_;
    const console_style style_;
    const plan& plan_;
    const long long began_ns_;
    std::mutex mutex_{};
    std::condition_variable wake_{};
    progress_facts facts_{};
    const load_state* load_ = nullptr;
    long long load_began_ns_ = 0;
    double each_s_;
    bool over_ = false, drawn_ = false;
    std::thread thread_{};
};
/// Shows one load for as long as it lives.
class progress_watch {
public:
    progress_watch(progress_meter* meter, const load_state& load) : meter_(meter) {
        if (meter_) meter_->watch(&load);
    }
    ~progress_watch() { if (meter_) meter_->watch(nullptr); }
    progress_watch(const progress_watch&) = delete;
    progress_watch& operator=(const progress_watch&) = delete;

private:
    progress_meter* meter_;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E45] one repeat ==========================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// "" unless the last of the measured requests all failed to connect.
inline std::string gone_reason(const std::vector<record>& records) {
    std::vector<const record*> measured;
    for (const record& r : records)
        if (is_measured(r)) measured.push_back(&r);
    std::sort(measured.begin(), measured.end(), [](const record* a, const record* b) {
        return a->scheduled_ns != b->scheduled_ns ? a->scheduled_ns < b->scheduled_ns : a < b;
    });
    if (!measured.empty() && failed_for_want(*measured.back())) return {};
    std::size_t trailing = 0;
    while (trailing < measured.size() &&
           measured[measured.size() - 1 - trailing]->status == request_status::connect)
        ++trailing;
    if (trailing < std::max<std::size_t>(3, measured.size() / 50) || trailing == measured.size())
        return {};
    return printed("it went away: the last %zu of %zu requests could not connect (%s)", trailing,
                   measured.size(), measured.back()->error.c_str());
}

/// Counts an answer that brought fewer tokens than forced, or more. Where only events were counted,
/// a server that merges a few of them or parts some is forgiven.
inline void note_length(const plan& p, const finished_request& f, repeat_data& d) {
    const double forced = forced_tokens(p, f.index);
    if (forced == 0 || !is_measured(f.what) || f.what.status != request_status::ok) return;
    const double leeway = f.what.token_source == token_origin::usage ? 0 : 0.05 * forced;
    d.short_outputs += f.what.output_tokens < forced - leeway;
    d.long_outputs += f.what.output_tokens > forced + leeway;
}
/// Adds what the workload lets a prefix cache have of a prompt whose cached tokens are told.
inline void note_shared_tokens(const plan& p, const token_fit& fit, const finished_request& f,
                               repeat_data& d) {
    const record& r = f.what;
    const bool tells = r.cached_tokens >= 0 && r.prompt_tokens > 0;
    if (!tells || !is_measured(r) || r.status != request_status::ok) return;
    d.shared_tokens = std::max(d.shared_tokens, 0ll) +
                      shared_tokens(p, f.index, fit, r.prompt_tokens);
}
/// What the plan alone can say of the answers, before they are but records.
inline void note_answers(const plan& p, const load_target& target, const request_log& all,
                         repeat_data& d) {
    for (const finished_request& f : all.requests()) {
        if (target.api->forces_lengths) note_length(p, f, d);
        note_shared_tokens(p, target.tokens, f, d);
        d.resends += f.what.resends;
    }
}

/// The achieved rate is the slope of the sends over their plan: one late send is not a rate, and
/// what waited for the client to run again is none either.
inline void note_rates(const plan& p, repeat_data& d) {
    std::vector<double> planned_at, sent_at;
    for (const record& r : d.records)
        if (is_measured(r) && r.dispatched_ns > 0) {
            planned_at.push_back(static_cast<double>(r.scheduled_ns - d.window_from_ns) * 1e-9);
            const long long delay =
                std::min(r.late_ns, possible_delay(d.blind, r.dispatched_ns));
            sent_at.push_back(static_cast<double>(r.dispatched_ns - delay - d.window_from_ns) *
                              1e-9);
        }
    if (!p.is_open_loop() || p.arrivals.kind == arrival_kind::all_at_once ||
        p.arrivals.max_in_flight > 0 || sent_at.size() < 2)
        return;
    const double planned_mean = mean_of(planned_at), sent_mean = mean_of(sent_at);
    double both = 0, squares = 0;
    for (std::size_t i = 0; i < sent_at.size(); ++i) {
        both += (planned_at[i] - planned_mean) * (sent_at[i] - sent_mean);
        squares += (planned_at[i] - planned_mean) * (planned_at[i] - planned_mean);
    }
    const auto [first, last] = std::minmax_element(planned_at.begin(), planned_at.end());
    const bool stationary = p.arrivals.rate > 0 && p.arrivals.kind != arrival_kind::ramp &&
                            p.arrivals.kind != arrival_kind::replay && p.stride == 1;
    const double n = static_cast<double>(sent_at.size());
    d.asked_rate = stationary ? p.arrivals.rate : n / std::max(*last - *first, 1e-9);
    d.achieved_rate = both > 0 ? d.asked_rate * squares / both : 0;
}

struct repeat_terms {
    long long deadline_ns = 0;                 // of the whole program, 0: none
    std::uint64_t most_gaps = most_gaps_kept;  // to be kept one by one
    outbox* out = nullptr;                     // where the records go while the load runs
    progress_meter* meter = nullptr;
};
/// One repeat of one arm.
inline repeat_data run_repeat(const plan& p, live_target& target, run_arm arm, int repeat,
                              int gate_number, const repeat_terms& terms = {}) {
    repeat_data d;
    d.arm = arm;
    d.index = repeat;
    load_order order;
    order.what = &p;
    order.target = &target.load();
    order.arm = arm;
    order.repeat = repeat;
    order.id_prefix =
        printed("llmbench-%d%s-%d-", gate_number, arm == run_arm::baseline ? "b" : "c", repeat);
    d.startup_s = target.take_startup_s();

    load_state state;
    state.deadline_ns = terms.deadline_ns;
    state.most_gaps = terms.most_gaps;
    state.out = terms.out;
    const progress_watch watched(terms.meter, state);
    request_log all;
    const auto gather = [&] { run_load(order, state, d, all); };
    const conversation_counts counts = counted_conversations(p);
    const bool at_once = p.arrivals.kind == arrival_kind::all_at_once;
    if (at_once) {
        // The warm-up is answered before the measured part starts.
        state.planned = requests_before(
            p, end_of_trace(p, counts.warmup + counts.measured));
        order.warmup = order.last = counts.warmup * p.stride;
        order.send_at.assign(counts.warmup, 0);
        if (order.last > 0) gather();
        order.first = order.last;
        order.last = end_of_trace(p, counts.warmup + counts.measured);
        order.send_at.assign(counts.measured, 0);
        gather();
        long long last_end = 0;
        for (const finished_request& f : all.requests())
            last_end = std::max(last_end, f.what.end_ns);
        d.window_from_ns = state.start_ns;
        d.window_to_ns = last_end + 1;
    } else if (p.is_open_loop()) {
        const schedule s = schedule_of(p);
        order.last = end_of_trace(p, s.at.size());
        state.planned = requests_before(p, order.last);
        order.warmup = s.warmup * p.stride;
        order.measured_from_ns = ns_of(s.measured_from);
        for (const double t : s.at) order.send_at.push_back(ns_of(t));
        if (!s.at.empty()) gather();
        d.window_from_ns = state.start_ns + ns_of(s.measured_from);
        d.window_to_ns = s.at.empty() ? d.window_from_ns : state.start_ns + order.send_at.back();
    } else {
        order.measured_by_time = p.warmup_s > 0;
        order.measured_from_ns = ns_of(p.warmup_s);
        order.warmup = counts.warmup * p.stride;
        const bool counted = p.requests > 0 && !order.measured_by_time;
        order.last = counted ? end_of_trace(p, counts.warmup + counts.measured)
                             : static_cast<std::size_t>(-1) / 2;
        if (counted) state.planned = requests_before(p, order.last);
        if (order.measured_by_time) order.most_measured = p.requests;
        gather();
        d.window_from_ns =
            std::max(state.measured_from.load(), state.start_ns + ns_of(p.arrivals.users_ramp_s));
        d.window_to_ns = state.exhausted_at.load();
    }
    note_answers(p, target.load(), all, d);
    const bool counted = state.gaps > terms.most_gaps;
    if (counted) all.count_all(d.window_from_ns, d.window_to_ns);
    all.move_into(d, counted);
    note_bunches(d);
    note_rates(p, d);
    d.target_gone = target.how_it_went();
    if (d.target_gone.empty()) d.target_gone = gone_reason(d.records);
    fail_frequent_resends(d);  // a server that closes connections is not gone
    d.loop_lag_p99 = d.loop_lag.quantile(0.99);
    d.loop_lag_max = d.loop_lag.max();
    d.stamp_lag_p99 = d.stamp_lag.quantile(0.99);
    d.stamp_lag_max = d.stamp_lag.max();
    d.interrupted = interrupted.load();
    d.cut_short = terms.deadline_ns > 0 && now_ns() > terms.deadline_ns;
    return d;
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E46] the repeats of a gate ===============================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the gate will do, said before it does it.
inline std::string announcement(const plan& p, const target_facts& target,
                                const target_facts& baseline) {
    const double seconds = expected_seconds(p);
    std::string t = "\n" + p.name + "\n  " + plan_text(p) + "\n  " + target_text(target);
    t += compared_text(baseline);
    t += "; " + repeats_text(p);
    const api_traits* api = api_named(target.api);
    if (p.forces_length && api && !api->forces_lengths)
        t += printed("; %s cannot be forced to a length, so answers end where the model ends them",
                     api->name);
    if (seconds > 0) {
        const auto [least, most] = expected_span(p, seconds);
        t += ", " + span_text(least, most);
    }
    if (makes_up_prompts(p)) t += "\n  " + fit_text(target.tokens);
    if (makes_up_prompts(p) && p.has_baseline && baseline.kind != target_kind::same)
        t += "; baseline: " + fit_text(baseline.tokens);
    return t + "\n";
}

/// What the environment asks of a gate beside its verdicts.
struct run_mode {
    int calibrate = 0;  // repeats, 0: judge
    bool write_baseline = false;
    double time_budget_s = 0;
    long long deadline_ns = 0;  // 0: none
    std::map<std::string, double> noise{};
    std::string noise_file{};
    bool judges() const { return calibrate == 0 && !write_baseline; }
};
inline run_mode mode_of(const plan& p, const settings& asked) {
    run_mode mode;
    mode.calibrate = asked.calibrate;
    mode.write_baseline = asked.write_baseline && p.has_stored_baseline;
    require(mode.calibrate == 0 || !mode.write_baseline,
            "LLMBENCH_CALIBRATE and LLMBENCH_WRITE_BASELINE are both set: do one after the other");
    require(mode.calibrate == 0 || p.rule.traffic == replayed,
            "LLMBENCH_CALIBRATE: traffic is fresh, what is calibrated is the noise between repeats "
            "of the same traffic");
    mode.time_budget_s = asked.time_budget_s;
    if (mode.time_budget_s > 0) mode.deadline_ns = program_began_ns + ns_of(mode.time_budget_s);
    if (!asked.calibration.empty())
        mode.noise = read_calibration(file_content(asked.calibration, "LLMBENCH_CALIBRATION"),
                                      asked.calibration, p.name);
    if (!mode.noise.empty()) mode.noise_file = asked.calibration;
    return mode;
}

/// A file that cannot be written is told of before the load, not after it.
inline void check_writable(const std::string& file) {
    const std::filesystem::path path = file;
    std::error_code ignored;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
    const std::filesystem::path draft = file + ".tmp";
    const bool writable = !std::filesystem::is_directory(path, ignored) && path.has_filename() &&
                          static_cast<bool>(std::ofstream(draft));
    std::filesystem::remove(draft, ignored);
    require(writable, "baseline is stored(\"" + file + "\"): the file cannot be written");
}

/// Blocks of two pairs, ABBA or BAAB by the seed: a drift of the machine hits both arms alike.
inline bool baseline_goes_first(std::uint64_t seed, int pair) {
    const bool flipped = mixed(seed + 7919 * static_cast<std::uint64_t>(pair / 2)) & 1;
    return flipped != (pair % 2 == 1);
}

/// What came of a gate's repeats.
struct measured_gate {
    target_facts target{}, baseline{};
    evidence seen{};
    terms held{};
    findings found{};
};

/// The servers of a gate, and its repeats on them.
class gate_run {
public:
    gate_run(const plan& p, const scenario& s, const run_mode& mode, progress_mode progress)
        : p_(p),
          mode_(mode),
          candidate_(s.target, run_arm::candidate),
          meter_(p, progress, surroundings_of_program().style()) {
        if (s.baseline.is_same_server()) baseline_ = &candidate_;
        else if (p_.has_baseline) {
            other_ = std::make_unique<live_target>(s.baseline.live(), run_arm::baseline);
            baseline_ = other_.get();
        }
        if (mode.write_baseline) check_writable(str(p_.stored.file));
        else if (p_.has_stored_baseline) {
            const std::string file = str(p_.stored.file);
            old_ = read_stored_gate(
                file_content(file, "baseline is stored(\"" + file +
                                       "\"), which LLMBENCH_WRITE_BASELINE=1 would write"),
                file, p_.name);
        }
        static_cast<load_conditions&>(all_.seen) = load_conditions_of(p);
        all_.held.slos = p.slos;
        all_.held.rule = p.rule;
        all_.held.noise = mode.noise;
        all_.held.noise_file = mode.noise_file;
    }
    /// False where there is no time for a single repeat.
    bool bring_up() {
        if (is_out_of_time(0)) { tell_stop(); return false; }
        const auto left_s = [&] {
            return mode_.deadline_ns > 0 ? static_cast<double>(mode_.deadline_ns - now_ns()) * 1e-9
                                         : infinity;
        };
        candidate_.bring_up(left_s());
        if (other_) other_->bring_up(left_s());
        if (other_) check_two_servers();
        candidate_.learn_tokens(p_, left_s());
        all_.target = candidate_.facts();
        if (other_) other_->learn_tokens(p_, left_s());
        if (baseline_) all_.baseline = baseline_->facts();
        if (baseline_ == &candidate_) all_.baseline.kind = target_kind::same;
        check_images(*candidate_.load().api);
        if (baseline_) check_images(*baseline_->load().api);
        if (!p_.has_stored_baseline) return true;
        all_.baseline.kind = target_kind::stored;
        all_.baseline.url = str(p_.stored.file);
        if (mode_.write_baseline) return true;
        check_comparable(old_, str(p_.stored.file), p_, all_.target);
        all_.held.stored = {str(p_.stored.file), p_.stored.day_to_day.fraction, old_.statistics};
        return true;
    }
    /// Repeats the load until every SLO is decided, the repeats or the time are spent, or nothing
    /// can be said. A repeat that the client has too great a part in is measured again.
    void measure() {
        meter_.say(announcement(p_, all_.target, all_.baseline));
        while (count() < most_repeats_) {
            const long long began = now_ns();
            if (is_out_of_time(next_slot())) return tell_stop();
            if (!measure_once(next_slot())) return tell_stop();
            slowest_ns_ = std::max(slowest_ns_, now_ns() - began);
            if (!mode_.judges() || !is_look(count())) {
                if (!gate_invalid_reason(all_.seen).empty()) return;
                if (mode_.write_baseline) measure_again(doubt_of_baseline(all_.seen, all_.held));
                continue;
            }
            all_.found = assess(all_.seen, all_.held);
            is_assessed_ = true;
            if (!all_.found.on.invalid.empty()) return;
            if (measure_again(all_.found.doubt)) continue;
            // Under too much load a shown miss is told as one, and red takes a third repeat.
            if (count() < first_fail && !all_.found.on.saturated.empty()) continue;
            if (all_decided(all_.found.verdicts) && !all_.found.doubt) return;
            if (count() == p_.most_repeats && pairs_are_noisy())
                most_repeats_ = std::max(most_repeats_, p_.most_if_noisy);
            meter_.decided(all_.found.verdicts);
        }
    }
    /// All that there is to know, once.
    measured_gate finished() {
        if (!is_assessed_) all_.found = assess(all_.seen, all_.held);
        if (mode_.write_baseline) all_.found.doubt = doubt_of_baseline(all_.seen, all_.held);
        return std::move(all_);
    }

private:
    void check_two_servers() const {
        const std::string why = same_server_reason(candidate_.load(), candidate_.facts().url,
                                                   other_->load(), other_->facts().url);
        require(why.empty(), why);
    }
    void check_images(const api_traits& api) const {
        require(api.takes_images || !asks_about_images(p_),
                std::string("workload has images, and ") + api.name +
                    " takes none: use openai_chat");
    }
    /// Beyond the usual pairs there is one look, at the last of the additional ones.
    bool is_look(int repeats) const {
        return repeats >= p_.first_repeats &&
               (repeats <= p_.most_repeats || repeats == most_repeats_);
    }
    bool pairs_are_noisy() const {
        const std::vector<slo_verdict>& all = all_.found.verdicts;
        return std::any_of(all.begin(), all.end(), [&](const slo_verdict& v) {
            return asks_for_more_pairs(all_.seen, all_.held, v);
        });
    }
    /// Whether the next repeat would not be over in time.
    bool is_out_of_time(int repeat) const {
        const bool doubled = p_.rule.traffic == fresh && repeat + 1 == last_stage;
        const double arms = baseline_ ? 2 : 1;
        const long long needed = std::max(slowest_ns_, ns_of(arms * expected_seconds(p_)));
        return mode_.deadline_ns > 0 && now_ns() + needed * (doubled ? 2 : 1) > mode_.deadline_ns;
    }
    void tell_stop() {
        is_assessed_ = false;  // what is undecided has another reason now
        all_.seen.stopped =
            printed("LLMBENCH_TIME_BUDGET of %g s is spent after %d of %d %ss", mode_.time_budget_s,
                    count(), most_repeats_, repeat_word(p_.rule, p_.has_baseline));
    }
    /// Repeats, pairs or stages that are evidence.
    int count() const { return static_cast<int>(all_.seen.candidate.size()); }
    /// Which of them comes next: the one that was set aside, where there is one.
    int next_slot() const { return again_ >= 0 ? again_ : count(); }
    /// Sets a repeat or pair aside for another, where there may be another. Whether it goes does
    /// not depend on how good it was: only what the client had a part in goes, and only while a
    /// verdict hangs on that part; a pass that needs no forgiveness and a miss that remains with
    /// all of it never do. There are as many others as the gate has repeats at most, so one whose
    /// client is always held up ends.
    bool measure_again(const std::optional<client_doubt>& doubt) {
        if (!doubt || doubt->repeat >= all_.seen.candidate.size()) return false;
        const int slot = static_cast<int>(doubt->repeat);
        if (measured_ - count() >= p_.most_repeats || is_out_of_time(slot))
            return false;
        for (auto* arm : {&all_.seen.candidate, &all_.seen.baseline}) {
            if (doubt->repeat >= arm->size()) continue;
            const repeat_data& d = (*arm)[doubt->repeat];
            all_.seen.set_aside.push_back({d.arm, d.index, doubt->why});
            arm->erase(arm->begin() + slot);
        }
        meter_.say("  " + repeat_name(slot) + " is measured again: " + doubt->why + "\n");
        again_ = slot;
        is_assessed_ = false;
        return true;
    }
    std::string repeat_name(int slot) const {
        return printed("%s %d", repeat_word(p_.rule, p_.has_baseline), slot + 1);
    }
    /// Both arms, where there are two. False where the time ended in the middle: then neither is
    /// evidence.
    bool measure_once(int slot) {
        is_assessed_ = false;
        const int number = measured_++;
        const bool baseline_first = baseline_ && baseline_goes_first(p_.seed, slot);
        bool whole = true;
        if (baseline_first) whole = repeat_on(*baseline_, run_arm::baseline, slot, number);
        if (whole) whole = repeat_on(candidate_, run_arm::candidate, slot, number);
        if (whole && baseline_ && !baseline_first)
            whole = repeat_on(*baseline_, run_arm::baseline, slot, number);
        for (auto* arm : {&all_.seen.candidate, &all_.seen.baseline}) {
            if (arm->empty() || arm->back().index != number) continue;
            if (!whole) arm->pop_back();
            else std::rotate(arm->begin() + slot, arm->end() - 1, arm->end());
        }
        again_ = -1;
        return whole;
    }
    /// `number`: of all that are measured, those set aside included. False where the time ended in
    /// its middle.
    bool repeat_on(live_target& target, run_arm arm, int slot, int number) {
        session& all = session::of_this_program();
        if (number > 0) {
            if (target.restarts()) target.restart();
            else
                std::this_thread::sleep_for(
                    std::chrono::milliseconds(200));  // queues drain, caches settle
        }
        auto& into = arm == run_arm::baseline ? all_.seen.baseline : all_.seen.candidate;
        meter_.stage(stage_text(p_, slot, arm) + (again_ >= 0 ? ", again" : ""));
        record_writer writer(all.records(), p_.name);
        into.push_back(run_repeat(
            plan_of_repeat(p_, slot), target, arm, number,
            static_cast<int>(all.running_gate()),
            {mode_.deadline_ns, all.room_for_gaps(), &writer.box(), &meter_}));
        all.note_gaps(into.back().gaps.size());
        return !into.back().cut_short;
    }

    const plan& p_;
    const run_mode& mode_;
    measured_gate all_{};
    int measured_ = 0;  // repeats or pairs so far, those set aside included
    int again_ = -1;    // the slot of the one to measure again
    bool is_assessed_ = false;  // the findings are those of the repeats so far
    live_target candidate_;
    std::unique_ptr<live_target> other_{};  // of the baseline, where it is a server of its own
    live_target* baseline_ = nullptr;       // none, that one, or the candidate's
    stored_gate old_{};
    int most_repeats_ = p_.most_repeats;
    long long slowest_ns_ = 0;  // of the repeats so far
    progress_meter meter_;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E47] gates take turns ====================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

inline std::mutex one_gate_at_a_time;
inline thread_local bool has_a_gate = false;

/// Two gates at once would measure each other. Those of other threads wait; one that begins within
/// a gate of its own thread, in a listener of doctest's for example, would wait for ever.
class gate_turn {
public:
    gate_turn() : turn_(one_gate_at_a_time, std::defer_lock) {
        require(!has_a_gate, "a gate within a gate of the same thread: it would wait for itself");
        turn_.lock();
        has_a_gate = true;
    }
    ~gate_turn() { has_a_gate = false; }
    gate_turn(const gate_turn&) = delete;
    gate_turn& operator=(const gate_turn&) = delete;

private:
    std::unique_lock<std::mutex> turn_;
};

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E48] one gate from its scenario to its result ============================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Another one for every execution of a gate, in this program and in all others.
inline std::uint64_t fresh_nonce() {
    std::random_device entropy;
    return mixed((static_cast<std::uint64_t>(entropy()) << 32 | entropy()) ^
                 mixed(static_cast<std::uint64_t>(now_ns()) + ++gates_executed));
}

/// The scenario's plan, with the name and the place of its gate.
inline plan plan_of(const scenario& s, const gate_report& who, std::uint64_t seed, bool is_gate) {
    plan p = planned(s, seed, read_workload_files(s, seed), is_gate);
    p.hash = trace_hash(p);
    p.nonce = fresh_nonce();
    p.name = who.what.name;
    p.test_case = who.what.test_case;
    p.file = who.what.file;
    p.line = who.what.line;
    return p;
}

/// What is left where nothing was to be judged.
inline void mark_skipped(std::vector<slo_verdict>& verdicts, bool relative_only,
                         const std::string& why) {
    for (slo_verdict& v : verdicts) {
        const bool concerned = relative_only ? v.what.factor > 0 : v.outcome != verdict::invalid;
        if (concerned) v = without_advice(v, verdict::skipped, why);
    }
}

/// Why what was measured is no baseline, "" where it is one.
inline std::string fault_of(const measured_gate& m) {
    for (const std::string& why : {m.found.on.invalid, str(m.found.on.self_check.reason),
                                   m.found.doubt ? m.found.doubt->why : "", m.seen.stopped,
                                   m.found.on.saturated})
        if (!why.empty()) return why;
    for (const slo_verdict& v : m.found.verdicts) {
        const bool is_judged = v.what.factor == 0 && !v.what.is_advisory;
        if (is_judged && v.outcome == verdict::invalid) return str(v.reason);
        if (is_judged && v.what.what.metric == metric_id::error_rate &&
            v.estimate.value > v.limit)
            return flat_line(v);
    }
    return {};
}

/// A gate as reports tell it, with all of its figures.
inline gate_report report_of(const plan& p, const measured_gate& m, const settings& asked) {
    gate_report g;
    g.what = p;
    g.target = m.target;
    g.baseline = m.baseline;
    g.held = m.held;
    g.under = m.seen;
    g.self_check = m.found.on.self_check;
    g.verdicts = m.found.verdicts;
    if (asked.calibrate > 0) {
        g.calibration = calibration_of(m.seen, m.held);
        mark_skipped(g.verdicts, false, "a calibration run judges nothing");
    }
    g.figures = figures_of(p, m.seen, p.slos);
    g.undecided_fails = asked.inconclusive == inconclusive_means::fail;
    g.outcome = outcome_of(g.verdicts, asked.inconclusive);
    // Missing data is never green.
    if (m.seen.candidate.empty() && g.outcome == gate_outcome::passed)
        g.outcome = gate_outcome::skipped;
    return g;
}

/// Writes a gate's result where its stored baseline is to be, and says so in its verdicts.
inline void write_as_baseline(gate_report& g, const measured_gate& m, const settings& asked) {
    const std::string file = str(g.what.stored.file), fault = fault_of(m);
    if (!fault.empty()) {
        for (slo_verdict& v : g.verdicts)
            if (v.what.factor > 0) v.reason = file + " was not written: " + fault;
        return;
    }
    mark_skipped(g.verdicts, true, "written to " + file + " as a baseline, not compared");
    g.outcome = outcome_of(g.verdicts, asked.inconclusive);
    session::of_this_program().write_baseline(g, file);
}

/// Every SLO of a gate that never ran, or was ended by what nobody expected.
inline gate_report unmeasured(gate_report g, const scenario& s, gate_outcome outcome,
                              const std::string& why) {
    g.refusal = why;
    g.outcome = outcome;
    for (const slo& x : s.slos)
        g.verdicts.push_back(without_advice(undecided(x), verdict_like(outcome), why));
    return g;
}

/// In the reports. A run() in a test case fails nothing by its own SLOs, and reports of a green
/// build must not be red. The guard on errors, which is last, counts: what is asserted of a run
/// stands on its requests.
inline gate_report only_noted(gate_report g, inconclusive_means policy) {
    for (std::size_t i = 0; i < g.what.slos.size(); ++i) g.verdicts[i].what.is_advisory = true;
    if (g.outcome != gate_outcome::skipped) g.outcome = outcome_of(g.verdicts, policy);
    return g;
}

/// One gate, from its scenario to its result and to the reports.
class gate_execution {
public:
    gate_execution(const scenario& s, const char* file, int line, const char* verb)
        : scenario_(s), asserts_(verb == std::string_view("gate")) {
        require(all_.is_ours(), "a gate in a forked child: its parent has the reports and the exit "
                                "code; start a program of its own instead");
        who_.what.test_case = test_case_name();
        who_.what.name = s.name.empty() ? who_.what.test_case : str(s.name);
        if (who_.what.name.empty()) who_.what.name = printed("%s at %s:%d", verb, file, line);
        who_.what.file = file;
        who_.what.line = line;
        number_ = all_.open_gate(gate_report(who_));
    }
    /// Throws where nothing could be measured; ended_by() then says what is left.
    result measured() {
        turn_.emplace();
        all_.give_turn(number_);
        signals_.emplace();
        began_ns_ = now_ns();
        all_.records().open();
        asked_ = settings_of(environment);
        plan p = plan_of(scenario_, who_, asked_.seed, asserts_);
        const run_mode mode = mode_of(p, asked_);
        if (mode.calibrate > 0) p.most_repeats = std::max(mode.calibrate, p.first_repeats);
        if (!mode.judges()) {
            p.first_repeats = p.most_repeats;
            p.most_if_noisy = 0;
        }
        if (interrupted.load()) throw no_server("the run was interrupted before this gate began");
        measured_gate m = [&] {
            gate_run run(p, scenario_, mode, surroundings_of_program().shown(asked_.progress));
            if (run.bring_up()) run.measure();
            return run.finished();
        }();
        gate_report g = report_of(p, m, asked_);
        if (mode.write_baseline) write_as_baseline(g, m, asked_);
        const result r = result_of(g, std::move(m));
        const bool only_notes = !asserts_ && in_test_case_;
        close(only_notes ? only_noted(std::move(g), asked_.inconclusive) : std::move(g));
        return r;
    }
    /// Without evidence.
    result ended_by(gate_outcome outcome, const std::string& why) {
        gate_report g = unmeasured(who_, scenario_, outcome, why);
        const result r = result_of(g, {});
        close(std::move(g));
        return r;
    }
    bool may_be_skipped() const { return asked_.skip_without_server && !interrupted.load(); }

private:
    result result_of(const gate_report& g, measured_gate&& m) const {
        auto held = std::make_shared<held_gate>();
        held->number = number_;
        held->outcome = g.outcome;
        held->refusal = g.refusal;
        held->undecided_is = asked_.inconclusive;
        held->what = g.what;
        held->seen = std::move(m.seen);
        held->held = std::move(m.held);
        return result_access::make(std::move(held), g.verdicts, g.self_check);
    }
    void close(gate_report&& g) {
        g.took_s = static_cast<double>(now_ns() - began_ns_) * 1e-9;
        say(console_text(g, surroundings_of_program().style()));
        if (all_.records().are_open()) say(reports_text(report_directory()));
        all_.close_gate(number_, std::move(g), asserts_, in_test_case_);
    }

    session& all_ = session::of_this_program();
    const scenario& scenario_;
    const bool asserts_, in_test_case_ = inside_test_case();
    gate_report who_{};
    std::size_t number_ = 0;
    settings asked_{};
    long long began_ns_ = now_ns();
    std::optional<gate_turn> turn_{};           // both until the reports are written
    std::optional<interrupt_guard> signals_{};
};

inline result measured_result(const scenario& s, const char* file, int line, const char* verb) {
    gate_execution gate(s, file, line, verb);
    // Inside a test case nothing is thrown: the assertion fails there, with the same words.
    const auto refused = [&](gate_outcome outcome, const std::exception& e) {
        const result r = gate.ended_by(outcome, e.what());
        if (outcome == gate_outcome::skipped) return r;
        if (!inside_test_case()) throw;
        refuse_in_test(file, line, verb, e.what());
        return r;
    };
    try {
        return gate.measured();
    } catch (const std::invalid_argument& e) {
        return refused(gate_outcome::refused, e);
    } catch (const no_server& e) {
        return refused(gate.may_be_skipped() ? gate_outcome::skipped : gate_outcome::invalid, e);
    } catch (const std::exception& e) {
        return refused(gate_outcome::invalid, e);  // of this machine, or a mistake of ours
    } catch (...) {
        gate.ended_by(gate_outcome::invalid, "it was ended by an exception");
        throw;  // a thread that is cancelled comes by here, too
    }
}

}  // namespace llmbench
}  // inline namespace v0
}  // namespace detail

// ===== [E49] public functions ====================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

#if !defined(LLMBENCH_NO_DOCTEST) && !defined(DOCTEST_CONFIG_DISABLE)
void assert_slo(doctest::assertType::Enum severity, const char* file, int line,
                const char* expression, const result& r, const slo& s) {
    const auto g = result_access::gate_of(r);
    const auto real = s.is_advisory ? doctest::assertType::DT_WARN : severity;
    if (!g || !g->refusal.empty()) {
        if (g && g->outcome == gate_outcome::skipped) return;
        return assertion(real, file, line, expression, true,
                         "INVALID: " + (g ? g->refusal : std::string("the result is empty")));
    }
    session& all = session::of_this_program();
    const bool is_advisory = real == doctest::assertType::DT_WARN;
    slo_verdict v;
    try {
        v = judge(r, s);
    } catch (const std::invalid_argument& e) {
        if (!is_advisory) all.worsen(g->number, gate_outcome::refused, inside_test_case());
        return assertion(real, file, line, expression, true, e.what());
    }
    v.what.is_advisory = is_advisory;
    all.add_verdict(g->number, v, outcome_of({v}, g->undecided_is), g->seen, inside_test_case());
    say("  " + verdict_line(v) + "\n");
    assert_verdict(real, file, line, expression, v, g->undecided_is);
}
#endif
}  // namespace detail

past_result read_result(const types::text& file) {
    const std::string name = detail::str(file);
    return detail::read_past_result(detail::file_content(name, "read_result"), name);
}

int serve_simulated(const engine& e, int port) {
    const detail::interrupt_guard signals;
    try {
        const detail::simulated_host host(e, port);
        detail::say("listening on " + host.url() + "\n");
        while (!detail::interrupted.load())
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
    } catch (const std::exception& error) {
        std::cerr << "llmbench: cannot serve on port " << std::to_string(port) << ": "
                  << error.what() << "\n";
        return 1;
    }
    return 0;
}

int exit_code() {
    return detail::exit_code_of(detail::session::of_this_program().final_outcome());
}
result run(const scenario& s, const char* file, int line) {
    return detail::measured_result(s, file, line, "run");
}
result gate(const scenario& s, const char* file, int line) {
    const result r = detail::measured_result(s, file, line, "gate");
#if !defined(LLMBENCH_NO_DOCTEST) && !defined(DOCTEST_CONFIG_DISABLE)
    const auto g = detail::result_access::gate_of(r);
    if (detail::inside_test_case() && g->refusal.empty())
        for (const slo_verdict& v : r.verdicts())
            detail::assert_verdict(
                v.what.is_advisory ? doctest::assertType::DT_WARN : doctest::assertType::DT_CHECK,
                file, line, detail::str(v.what.text()), v, g->undecided_is);
#endif
    return r;
}

}  // namespace llmbench
}  // inline namespace v0

// ===== [E50] records judged again ================================================================

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The place of a request in its trace, which ends its id.
inline std::size_t index_of(const record& r, std::size_t otherwise) {
    const std::string id = str(r.id);
    return parsed_number<std::size_t>(id.substr(id.rfind('-') + 1)).value_or(otherwise);
}
/// Puts the records of one gate into its repeats. The line of each is where its gaps are listed;
/// `events` may be a file that cannot be read.
inline void read_records(stored_gate& g, const std::string& file,
                         const std::vector<std::size_t>& offsets, std::istream& events) {
    std::ifstream in(file, std::ios::binary);
    require(static_cast<bool>(in), "records_file: " + file + " cannot be read");
    std::map<const repeat_data*, request_log> logs;
    std::string line, gate, bytes;
    std::size_t number = 0, at_byte = 0;
    for (; std::getline(in, line); ++number) {
        record r;
        try {
            r = read_record(line, gate);
        } catch (const std::invalid_argument& e) {
            if (in.eof() && number >= offsets.size()) break;  // a run cut off in the middle of it
            throw std::invalid_argument(printed("%s:%zu: %s", file.c_str(), number + 1, e.what()));
        }
        if (gate != g.name) continue;
        auto& arm = r.arm == run_arm::baseline ? g.seen.baseline : g.seen.candidate;
        const auto at = std::find_if(arm.begin(), arm.end(),
                                     [&](const repeat_data& d) { return d.index == r.repeat; });
        if (at == arm.end()) continue;  // a repeat that was cut short is no evidence
        bytes.assign(4 * gap_count(r), '\0');
        if (number < offsets.size() && events) {
            if (offsets[number] != at_byte) events.seekg(static_cast<long long>(offsets[number]));
            events.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
            at_byte = offsets[number] + bytes.size();
        }
        gap_list gaps;
        for (std::size_t i = 0; i < bytes.size(); i += 4) {
            std::uint32_t gap = 0;
            for (std::size_t b = 4; b-- > 0;)
                gap = gap << 8 | static_cast<unsigned char>(bytes[i + b]);
            gaps.push_back(gap);
        }
        request_log& log = logs[&*at];
        log.add(index_of(r, number), std::move(r), gaps);
        if (at->gaps_counted) log.count_all(at->window_from_ns, at->window_to_ns);
    }
    for (auto* arm : {&g.seen.candidate, &g.seen.baseline})
        for (repeat_data& d : *arm) {
            logs[&d].move_into(d, d.gaps_counted);
            fail_frequent_resends(d);
            note_bunches(d);
            require(!d.records.empty(), printed("%s has no records of repeat %d of \"%s\"",
                                                file.c_str(), d.index, g.name.c_str()));
        }
    require(number >= offsets.size(),
            printed("%s has %zu whole lines, the result beside it tells of %zu", file.c_str(),
                    number, offsets.size()));
}
/// Why an events.bin is not the one that belongs to a result.json, "" where it is. Gates that were
/// measured since may have added to it.
inline std::string problem_of_events(std::istream& in, const std::string& file,
                                     const picojson::value& index) {
    if (!in) return file + " cannot be read";
    const double told = number_member(index, "bytes");
    std::vector<char> some(1 << 20);
    fnv1a hash;
    for (double left = std::isnan(told) ? infinity : told; left > 0 && in;) {
        const double most = std::min(left, static_cast<double>(some.size()));
        in.read(some.data(), static_cast<std::streamsize>(most));
        hash.add(some.data(), static_cast<std::size_t>(in.gcount()));
        left -= static_cast<double>(in.gcount());
    }
    in.clear();
    in.seekg(0);
    return hash.text() == string_member(index, "fnv1a_64")
               ? ""
               : file + " is not the one of this result: its hash differs";
}
}  // namespace detail

types::list<slo_verdict> judge(const types::text& records_file, const slo_list& slos,
                               const types::text& gate) {
    using namespace detail;
    const std::filesystem::path records = str(records_file);
    const std::string result_file = (records.parent_path() / "result.json").string();
    const std::string json = file_content(result_file, "records_file: the result beside it");
    stored_gate g = read_stored_gate(json, result_file, str(gate));
    require(g.definitions == definitions_version, result_file + " has the definitions " +
                                                      g.definitions + ", these are " +
                                                      definitions_version);
    picojson::value root;
    parse_json(json, root);
    const picojson::value* index = member(root, "events");
    std::vector<std::size_t> offsets;
    std::string problem = index ? "" : result_file + " has no index of the events";
    const std::string events_file = (records.parent_path() / "events.bin").string();
    std::ifstream events(events_file, std::ios::binary);
    if (index) {
        for (const picojson::value& o : array_member(*index, "offsets"))
            offsets.push_back(o.is<double>() ? static_cast<std::size_t>(o.get<double>()) : 0);
        problem = problem_of_events(events, events_file, *index);
    }
    if (!problem.empty()) events.setstate(std::ios::failbit);
    read_records(g, records.string(), offsets, events);
    for (const slo& s : slos) g.held.slos.push_back(s);
    g.context.slos = g.held.slos;
    for (const slo& s : slos) {
        check_slo(s, g.context);
        require(problem.empty() || !concerns(s.what, &metric_facts::needs_event_times),
                "the SLO " + str(s.text()) + " needs the time of every event: " + problem);
    }
    list<slo_verdict> out;
    for (const slo_verdict& v : assess(g.seen, g.held).verdicts) out.push_back(v);
    return out;
}

}  // namespace llmbench
}  // inline namespace v0

// ===== [E51] main ================================================================================

#ifdef LLMBENCH_MAIN
#include <doctest/doctest.h>  // again, outside our guard: a late LLMBENCH_MAIN works

/// The worst of what doctest and the gates say; the exit code tells which red.
int main(int argc, char** argv) {
    // Never destroyed: a gate's thread may outlive main().
    static doctest::Context& context = *new doctest::Context(argc, argv);
    auto& session = llmbench::detail::session::of_this_program();
    session.tells_exit_code = true;
    const int result = context.run();
    if (!session.is_ours()) return result;  // a forked child that came back from its test case
    session.finish();
    if (session.only_asked) return result;
    if (session.number_of_gates() == 0) {
        std::cerr << "llmbench: no gate was run: the filter matches none, or there is none.\n";
        return result != 0 ? result : 2;
    }
    using llmbench::detail::gate_outcome;
    const gate_outcome outcome = session.final_outcome();
    const int code = llmbench::detail::exit_code_of(outcome);
    const bool is_green = outcome == gate_outcome::passed || outcome == gate_outcome::skipped;
    return result != 0 && is_green ? 1 : code;
}
#endif


#endif  // LLMBENCH_IMPLEMENT
