// targets
#pragma once

#include "api/metrics.hpp"
#include "api/own_api.hpp"
#include "api/text.hpp"
#include "api/units.hpp"
#include "api/workload.hpp"

namespace llmbench {
inline namespace v1 {

/// A header of requests, or an environment variable of a process.
struct name_value {
    types::text name{};
    types::text value{};
    bool is_secret = false;
};
/// An environment variable of a process whose value is in no report and no log. Names with KEY,
/// TOKEN, SECRET, PASSWORD or AUTH are secret without this.
inline name_value secret(const types::text& name, const types::text& value) {
    return {name, value, true};
}
/// Trust in an https:// server: TLS 1.2 or 1.3, and a certificate for the URL's host by a known
/// authority. Needs LLMBENCH_WITH_TLS.
struct tls_options {
    bool verify = true;      ///< false: any certificate is accepted, and every report says so
    types::text ca_file{};   ///< trusted authorities, PEM; default: those of the system
    /// The client's own certificate with its chain, PEM, for servers that ask for one (mutual TLS).
    types::text cert_file{};
    types::text key_file{};  ///< its key, PEM, without a passphrase; default: cert_file has it, too
};

/// What a connection is still good for, as is told after each read. It never gets better.
enum class socket_use : unsigned char {
    kept,   ///< it carries the next request, too
    over,   ///< no other request; one that has no answer yet may go over another connection
    broken  ///< the server broke the protocol: neither its request nor another one
};

/// Carries the requests and answers of one connection by another protocol than HTTP: `websocket()`
/// of llmbench_websocket.hpp is one. One thread at a time calls it.
class own_transport {
public:
    virtual ~own_transport() = default;
    virtual types::text name() const = 0;  ///< in reports, "WebSocket"
    /// Returns what to send for an HTTP/1.1 POST: its header lines, an empty line, its JSON body.
    virtual types::text sent(const types::text& request) = 0;
    struct carried {
        types::text answer{};  ///< what an HTTP/1.1 server would have sent, or a part of it
        types::text reply{};   ///< to be sent at once
        socket_use use = socket_use::kept;
        types::text why{};      ///< why no more comes for the request; "": it does, or all has
        bool has_more = false;  ///< other bytes, as a part of an event, came behind the answer's
    };
    /// Takes bytes of the server, in pieces of any size.
    virtual carried received(const types::text& bytes) = 0;
    /// Returns what to send before the connection is closed.
    virtual types::text goodbye() { return {}; }
};
/// Makes one for a new connection, with `new`; nullptr for an API that it does not carry.
using new_transport = own_transport* (*)(const char* api);

/// A server that is already running. `http://host:8000` and `http://host:8000/v1` mean the same. A
/// URL that ends as the API's own path does is that of the requests,
/// `http://host/v3/chat/completions?api-version=2`. A query goes with every request. For plain_text
/// the URL is the whole address. `unix:/run/server.sock` is a Unix-domain socket with its full path
/// of at most 107 bytes.
struct endpoint {
    types::text url{};
    types::text model{};  ///< default: LLMBENCH_MODEL, else the only model the server lists
    any_api api = openai_chat;  ///< one of ours, or your own `api{...}`
    types::text path{};  ///< of the requests, "/v3/chat/completions"; default: the API's
    /// Variable that holds the key; default LLMBENCH_API_KEY.
    types::text api_key_env{};
    /// `{session}` in a value is an id of each agent of a session, or of a conversation, for
    /// routers that keep one on a server.
    types::list<name_value> headers{};
    /// The server's metrics page, Prometheus text or OpenMetrics; "/path" is one of this server.
    /// Default: the API's usual page, if it is there. "off": none, as for several servers behind
    /// one address, because a page shows only one of them.
    types::text metrics_url{};
    tls_options tls{};
    /// Metrics pages of the accelerators' exporters, such as dcgm-exporter.
    types::list<types::text> telemetry{};
    /// For first_answer_time: a command that makes the server cold, as by scaling it to zero. It
    /// runs before each repeat, as a side task's command does.
    types::text cold{};
    /// How long to wait for a server that cannot be reached, or answers HTTP 502, 503 or 504 while
    /// its model loads.
    time_span ready_within{};
    new_transport transport = nullptr;  ///< of its load; default: HTTP
};

/// A server that the gate starts and stops. `{port}` in the command becomes a free port; the
/// command runs in a shell, in its own process group, which ends with the gate.
struct process {
    types::text command{};
    types::text ready{};  ///< path polled until it answers 200; default: the API's, "/health"
    types::list<name_value> env{};
    types::text working_directory{};
    bool restart_between_repeats = false;
    time_span ready_within = time_span::from_seconds(120);
    any_api api = openai_chat;
    types::text path{};                    ///< as of an endpoint
    types::text model{};
    types::text metrics_url{};             ///< as of an endpoint; `{port}` is the server's
    types::list<types::text> telemetry{};  ///< as of an endpoint
    new_transport transport = nullptr;     ///< as of an endpoint
};

/// A baseline from a file; stored() makes it.
struct stored_result {
    types::text file{};         ///< result.json
    fraction day_to_day{0.05};  ///< above 0, at most 50 %
};
/// The result.json of an earlier run as a baseline, of the same traffic and model. `day_to_day` is
/// the relative standard deviation between two days' runs of an unchanged server. Of error_rate and
/// accuracy it is that of the misses, or of the others if they are fewer, and of goodput ten times
/// that of the misses, as a slow day moves many over a limit. Smaller regressions than twice that
/// cannot fail.
/// LLMBENCH_WRITE_BASELINE=1 writes the file and compares nothing.
inline stored_result stored(const types::text& file, fraction day_to_day = fraction(0.05)) {
    return {file, day_to_day};
}

// Without llmbench_history.hpp a compiler finds no matching function and shows this line.
struct llmbench_history_hpp_is_not_included;
void history(const llmbench_history_hpp_is_not_included&);

/// The target itself with another load as the baseline, to see the effect of a schema, a list of
/// tools, a longer system prompt, a LoRA adapter or a prefix cache: `mean(tpot) <= 1.2 * baseline`.
/// Fields left out are the scenario's. Times, order and seed are the same; lengths are if their
/// distributions are. Equal loads are refused, unless `same` asks for an A/A run, which shows the
/// noise of machine, load and verdicts.
struct otherwise {
    types::maybe<request_options> options{};  ///< all options of the baseline's requests
    types::text model{};                      ///< another model of the server
    any_workload workload{};
    bool alone = false;                       ///< without the scenario's side tasks
    bool same = false;                        ///< no other difference: an A/A run
};

/// An endpoint, a process or a target of an extension. Default: the server at LLMBENCH_URL.
class any_target {
public:
    any_target() = default;
    any_target(const endpoint& e) : what_(detail::box::make(e)) {}
    any_target(const process& p) : what_(detail::box::make(p)) {}
    any_target(const detail::extension_value& e) : what_(detail::box::make(e)) {}
    any_target(const any_target& t, const detail::extension_value& how)
        : what_(t.what_), switched_by_(how) {}
    const detail::box& what() const { return what_; }
    /// Returns how it shares its GPU with others, if it does.
    const detail::extension_value& switched_by() const { return switched_by_; }
    bool is_switched() const { return switched_by_.by != nullptr; }

private:
    detail::box what_{};
    detail::extension_value switched_by_{};
};
// Compilers show these lines if the include is missing.
inline namespace in_llmbench_simulated_hpp { struct engine; }
template <class... T>  // llmbench_simulated.hpp has it: include that after llmbench.hpp
any_target simulated(const T&... needs_llmbench_simulated_hpp) = delete;

/// A live target, the target itself, a stored result or a baseline of an extension. Default: none.
/// An endpoint without a URL is the server at LLMBENCH_BASELINE_URL.
class any_baseline {
public:
    any_baseline() = default;
    template <class T>
        requires detail::gives<any_target, T>
    any_baseline(const T& t) : live_(t), given_(true) {}
    any_baseline(const otherwise& o)
        : asked_(o), given_(true), is_same_server_(o.same), is_asked_otherwise_(!o.same) {}
    any_baseline(const stored_result& s) : stored_(s), is_stored_(true) {}
    any_baseline(const detail::extension_value& e) : of_extension_(e) {}
    const any_target& live() const { return live_; }
    const stored_result& stored() const { return stored_; }
    bool is_live() const { return given_; }
    bool is_same_server() const { return is_same_server_; }
    /// Returns the baseline's load, if is_asked_otherwise().
    const otherwise& asked() const { return asked_; }
    bool is_asked_otherwise() const { return is_asked_otherwise_; }
    bool is_stored() const { return is_stored_; }
    const detail::extension_value& of_extension() const { return of_extension_; }
    bool is_of_extension() const { return of_extension_.by != nullptr; }

private:
    any_target live_{};
    stored_result stored_{};
    detail::extension_value of_extension_{};
    otherwise asked_{};
    bool given_ = false, is_same_server_ = false, is_asked_otherwise_ = false;
    bool is_stored_ = false;
};

}  // inline namespace v1
}  // namespace llmbench
