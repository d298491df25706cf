// servers that a gate starts
#pragma once

#include "api/result.hpp"
#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/wire/url.hpp"
#include "core/dialects/table.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/net/sockets.hpp"
#include "effects/targets/process.hpp"
#include "effects/targets/credentials.hpp"
#include "effects/targets/inquiries.hpp"

#include <algorithm>  // min
#include <filesystem>  // error_code
#include <memory>  // make_unique, unique_ptr
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The log file of the program's next server.
inline std::string next_log(run_variant variant) {
    const std::string directory = report_directory();
    std::error_code ignored;
    std::filesystem::create_directories(directory, ignored);
    return directory + "/" + (variant == run_variant::baseline ? "baseline-" : "server-") +
           std::to_string(++servers_started) + ".log";
}

/// process{...}: a server that runs from start() to end().
class started_process {
public:
    const process what;
    long long began_ns = 0;           // of the last start
    double startup_s = not_a_number;  // until it was ready

    started_process(const process& p, run_variant variant) : what(p), variant_(variant) {
        if (what.command.empty()) refuse({"process.command is empty: it must start a server"});
        if (str(what.command).find("{port}") == std::string::npos)
            refuse({"process.command \"", printable(str(what.command), 200),
                    "\" has no {port}: the server is started on a free port, which is written "
                    "there; one with a port of its own is an endpoint that runs already"});
        if (!(what.ready_within.seconds() > 0)) refuse({"process.ready_within must be above 0"});
    }
    /// Adds the secrets of its environment.
    void keep_secrets(credentials& c) const {
        add_secrets_named_in(c.secrets, str(what.command));
        for (const name_value& v : what.env)
            if (v.is_secret || names_secret(str(v.name))) c.keep_secret(str(v.value));
    }
    /// A variable of its environment, set or inherited.
    std::string environment_value(const char* variable) const {
        for (const name_value& v : what.env)
            if (str(v.name) == variable) return str(v.value);
        return environment(variable);
    }

    /// Returns its URL when ready. Throws no_server if it is not within `at_most_s` or its own
    /// limit.
    std::string start(const api_traits& api, const vector<std::string>& secrets, double at_most_s) {
        const double ready_within_s = std::min(what.ready_within.seconds(), at_most_s);
        const int port = free_port();
        log_ = next_log(variant_);
        began_ns = now_ns();
        running_ = std::make_unique<server_process>(what, port, log_, secrets);
        const std::string url = "http://127.0.0.1:" + std::to_string(port);
        const std::string ready = what.ready.empty() ? api.ready : str(what.ready);
        const std::string why =
            why_not_ready(server_at(parsed_url(url, "process")), ready, ready_within_s);
        if (!why.empty()) throw given_up(why, secrets);
        startup_s = static_cast<double>(now_ns() - began_ns) * 1e-9;
        return url;
    }
    void end() { running_.reset(); }
    /// Returns why it ended, "" while it runs.
    std::string how_it_went(const vector<std::string>& secrets) {
        const std::string how = running_ ? running_->how_it_ended() : "";
        if (how.empty()) return {};
        const std::string tail = without_secrets(running_->log_tail(), secrets);
        return "the server process " + how + "; its log ends: " + printable(tail, 500);
    }

private:
    /// Waits until the path `ready` answers 200; returns "", or why it did not.
    std::string why_not_ready(const http_server& server, const std::string& ready,
                              double within_s) {
        http_answer last;
        for (;;) {
            if (const std::string how = running_->how_it_ended(); !how.empty())
                return how + " before it was ready";
            if (static_cast<double>(now_ns() - began_ns) * 1e-9 > within_s)
                return "was not ready within " + time_text(within_s) + " (" + ready +
                       " answered: " +
                       (last.error.empty() ? "HTTP " + std::to_string(last.status) : last.error) +
                       ")";
            if (stop_asked.load()) return "was interrupted while starting";
            last = blocking_get(server, ready, "", std::min(2.0, within_s));
            if (last.status == 200) return {};
            sleep_s(0.02);
        }
    }
    no_server given_up(const std::string& why, const vector<std::string>& secrets) {
        const std::string tail = without_secrets(running_->log_tail(), secrets);
        end();
        return no_server("process \"" +
                         printable(without_secrets(str(what.command), secrets), 200) + "\" " +
                         without_secrets(why, secrets) + "; log " +
                         log_ + (tail.empty() ? " is empty" : " ends:") + barred_lines(tail));
    }

    const run_variant variant_;
    std::string log_{};
    std::unique_ptr<server_process> running_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
