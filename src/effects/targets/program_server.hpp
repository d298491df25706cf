// the servers that the environment's commands start
#pragma once

#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/sharing.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/load/load_target.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/process.hpp"

#include <map>
#include <memory>  // make_unique, unique_ptr
#include <stdexcept>  // runtime_error
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The server of LLMBENCH_SERVER or LLMBENCH_BASELINE_SERVER. It runs from the first gate that
/// needs it to the end of the program, and its log is among the reports.
class program_server : not_copied {
public:
    /// The server of a variable. Gates take turns.
    static program_server& of(const std::string& variable) {
        return all().try_emplace(variable, variable).first->second;
    }
    /// At the end of the program.
    static void end_all() {
        for (auto& [name, server] : all()) server.running_.reset();
    }

    /// Masks what a gate that begins sends, in the logs of servers that run since earlier gates.
    static void mask_in_logs(const vector<std::string>& secrets) {
        for (auto& [name, server] : all())
            if (server.running_) server.running_->mask_in_log(secrets);
    }

    /// Starts it once, in the first of several ranks. Throws std::runtime_error if something
    /// answers there already, which would be measured. A gateway without a server answers 502.
    void start(const std::string& command, const load_target& at) {
        if (running_ || rank_of_program() > 0) return;
        const http_answer there =
            blocking_get(at, inquiry_path(at, at.api->ready), at.fields, 2);
        const bool is_silent = there.distrusted || there.error.starts_with("no answer");
        if (is_silent || (there.status != 0 && there.status != 502))
            throw std::runtime_error(
                name_ + " is set, and something answers at its URL already (" +
                (is_silent ? there.error : printed("HTTP %d", there.status)) +
                "): " + shown_url(at.whole_url));
        vector<std::string> secrets = at.secrets;
        add_secrets_named_in(secrets, command);
        const bool is_second = name_ != "LLMBENCH_SERVER";
        log_ = log_among_reports(is_second ? "baseline-server.log" : "server.log");
        const process what{.command = command};
        const int port = parsed_number<int>(at.url.port).value_or(0);
        running_ = std::make_unique<server_process>(what, port, log_, secrets);
    }
    /// Returns why it ended, "" while it runs or if it was never started.
    std::string how_it_went() {
        const std::string how = running_ ? running_->how_it_ended() : "";
        if (how.empty()) return {};
        return "the server of " + name_ + " " + how + "; its log is " + log_;
    }
    /// The end of its log; "" if it was never started.
    std::string log_tail() { return running_ ? running_->log_tail() : ""; }
    /// The same in lines of a report.
    std::string last_words() {
        const std::string tail = log_tail();
        return tail.empty() ? "" : "; the log ends:" + barred_lines(tail);
    }

    explicit program_server(std::string variable) : name_(std::move(variable)) {}

private:
    static std::map<std::string, program_server>& all() {
        // Never destroyed: reports may be written after static objects are gone.
        static auto* const servers = new std::map<std::string, program_server>;
        return *servers;
    }

    const std::string name_;
    std::string log_{};
    std::unique_ptr<server_process> running_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
