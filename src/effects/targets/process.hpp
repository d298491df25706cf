// processes: servers and commands of a scenario
#pragma once

#include "api/result.hpp"
#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/wire/url.hpp"
#include "core/dialects/table.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/errors.hpp"
#include "effects/system/limits.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/report_directory.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/net/sockets.hpp"
#include "effects/load/load_target.hpp"
#include "effects/targets/credentials.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/spawned.hpp"

#include <algorithm>  // min, replace
#include <cctype>  // isalnum
#include <cerrno>  // ECHILD, errno
#include <cstddef>  // size_t
#include <filesystem>  // error_code
#include <iostream>  // cerr
#include <memory>  // make_unique, unique_ptr
#include <mutex>  // lock_guard
#include <optional>
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <utility>  // move

#include <signal.h>  // kill, SIGKILL, SIGTERM
#include <sys/types.h>  // pid_t
#include <sys/wait.h>  // how a server ended

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The command, with `exec` before it if that changes nothing: one plain command, no shell word, no
/// variables. The server is then the process that we started.
inline std::string replacing_its_shell(const std::string& command) {
    const std::size_t begin = command.find_first_not_of(" \t");
    const std::size_t end = std::min(command.find_first_of(" \t", begin), command.size());
    const std::string word = begin < end ? command.substr(begin, end - begin) : std::string();
    const bool is_plain = command.find_first_of(";&|<>()\n") == std::string::npos &&
                          word.find('=') == std::string::npos;
    const bool is_of_shell = is_one_of(
        word, {"", "exec", "eval", "command", "builtin", ".", "!", "{", "cd", "time"});
    return is_plain && !is_of_shell ? "exec " + command : command;
}

/// Whether a word is a variable and nothing else: $KEY, "${KEY}".
inline bool is_a_variable(std::string_view word) {
    if (word.size() > 2 && word.front() == '"' && word.back() == '"')
        word = word.substr(1, word.size() - 2);
    if (!word.starts_with('$')) return false;
    word.remove_prefix(1);
    if (word.starts_with('{') && word.ends_with('}')) word = word.substr(1, word.size() - 2);
    return !word.empty() && all_of(word, [](char c) {
        return c == '_' || std::isalnum(static_cast<unsigned char>(c));
    });
}
/// A command line with *** for known secrets, and for the values of options whose names tell of
/// one, `--api-key x` or `--api-key=x`. A variable, "$KEY", is no secret.
inline std::string masked_command(const std::string& command, const vector<std::string>& secrets) {
    std::string out;
    bool is_secret = false;
    for (std::size_t at = 0; at < command.size();) {
        const std::size_t end = std::min(command.find_first_of(" \t\n", at), command.size());
        const std::string_view word = std::string_view(command).substr(at, end - at);
        std::string name(word.substr(0, word.find('=')));
        std::replace(name.begin(), name.end(), '-', '_');
        const bool has_value = name.size() < word.size(), names_one = names_secret(name);
        const std::string_view value = word.substr(has_value && !is_secret ? name.size() + 1 : 0);
        if (is_a_variable(value)) out += word;
        else if (is_secret && !word.empty()) out += "***";
        else if (names_one && has_value) out += std::string(word.substr(0, name.size())) + "=***";
        else out += word;
        if (!word.empty()) is_secret = names_one && !has_value && word.front() == '-';
        if (end < command.size()) out += command[end];
        at = end + 1;
    }
    return without_secrets(out, secrets);
}
inline std::string command_for_reports(const std::string& command,
                                       const vector<std::string>& secrets) {
    return printable(masked_command(command, secrets), 1000);
}

/// Enters the directory "$1" and sets the limit of open files "$2", if given. Waits for a line, so
/// that nothing runs before the guard knows of it; then runs LLMBENCH_COMMAND_. Every user of the
/// machine can read arguments, but not the environment: a command may have secrets in it.
inline constexpr const char* script_of_command =
    "[ -z \"$1\" ] || CDPATH= cd -- \"$1\" || { echo \"cannot enter $1\"; exit 127; }\n"
    "[ -z \"$2\" ] || ulimit -S -n \"$2\"\n"
    "read -r llmbench_go_ || exit 127\n"
    "exec < /dev/null\n"
    "llmbench_go_=$LLMBENCH_COMMAND_; unset LLMBENCH_COMMAND_; set --\n"
    "eval \"$llmbench_go_\"";

/// A server command in a process group of its own. Ended with SIGTERM, and with SIGKILL after 5 s,
/// or after 2 s if the program was told to end.
class server_process : not_copied {
public:
    server_process(const process& p, int port, const std::string& log,
                   const vector<std::string>& secrets)
        : what_(excerpt_without_secrets(str(p.command), secrets, 200)), log_(log, secrets) {
        const std::string command = filled_in(str(p.command), "{port}", std::to_string(port));
        vector<std::string> env;
        for (const name_value& nv : p.env) env.push_back(str(nv.name) + "=" + str(nv.value));
        env.push_back("LLMBENCH_COMMAND_=" + replacing_its_shell(command));
        const rlim_t files = open_files_before.load();
        auto [waits, go] = socket_pair();  // a pipe without a reader would raise a signal
        if (go.get() < 0) throw std::runtime_error("cannot start a process: " + error_text(errno));
        pid_ = started({.script = script_of_command,
                        .words = {str(p.working_directory), files > 0 ? std::to_string(files) : ""},
                        .environment = environment_with(std::move(env)),
                        .in = waits.get(),
                        .out = log_.end()});
        log_.is_given_away();
        try {
            group_guard::of_this_program().watch(pid_);
        } catch (...) {
            stop();
            throw;
        }
        waits = descriptor();
        say_line(go);  // if it has ended, how_it_ended() says so
    }
    ~server_process() { stop(); }

    /// Returns "" while it runs, else how it ended.
    std::string how_it_ended() {
        if (!has_ended()) return {};
        if (!status_) return "ended, and another part of this program took its status";
        return WIFSIGNALED(*status_) ? printed("was ended by signal %d", WTERMSIG(*status_))
                                     : printed("exited with status %d", WEXITSTATUS(*status_));
    }
    /// Always returns; reports a process that cannot be ended.
    void stop() {
        if (pid_ <= 0) return;
        ::kill(-pid_, SIGTERM);
        // A runner that cancels a job waits for 7.5 s or more.
        comes_within(stop_asked.load() ? 2 : 5, [this] { return is_gone(); });
        ::kill(-pid_, SIGKILL);
        const bool ended = comes_within(after_kill_s, [this] { return has_ended(); });
        const bool is_quiet = comes_within(1, [this] { return !log_.is_held(); });
        if (!ended)
            std::cerr << printed("llmbench: \"%s\" (process %d) was killed and does not end, as "
                                 "where a driver holds it: it is left behind\n", what_.c_str(),
                                 static_cast<int>(pid_));
        else if (!is_quiet)
            std::cerr << printed("llmbench: what \"%s\" started has left its process group, and "
                                 "runs on where nothing ends it\n", what_.c_str());
        group_guard::of_this_program().leave(pid_);
        pid_ = -1;
        if (const std::string why = log_.close(); !why.empty())
            std::cerr << "llmbench: " + why + "\n";
    }
    std::string log_tail(std::size_t bytes = 2000) { return log_.tail(bytes); }
    void mask_in_log(const vector<std::string>& secrets) { log_.mask(secrets); }
    void unlink_log() const { log_.unlink(); }
    /// Whether it and all that it started are gone.
    bool is_gone() { return has_ended() && ::kill(-pid_, 0) != 0; }

private:
    static constexpr double after_kill_s = 10;

    bool has_ended() {
        if (ended_ || pid_ <= 0) return ended_;
        int status = 0;
        const pid_t which = ::waitpid(pid_, &status, WNOHANG);
        if (which == pid_) status_ = status;
        return ended_ = which == pid_ || (which < 0 && errno == ECHILD);
    }
    template <class Came>
    static bool comes_within(double seconds, const Came& came) {
        return comes_by(came, now_ns() + ns_of(seconds), 0.02);
    }
    const std::string what_;
    server_log log_;
    std::optional<int> status_{};  // from waitpid(), once it has ended
    bool ended_ = false;
    pid_t pid_ = -1;
};

/// Text of others on one line, with secrets masked.
inline std::string masked_words_of(std::string_view s, const load_target& to) {
    s = s.substr(0, s.find_last_not_of(" \t\r\n") + 1);
    return excerpt_without_secrets(s, to.secrets, 200);
}

/// Returns why a post failed, "" if it did not.
inline std::string fault_of_post(const http_answer& a, const load_target& to) {
    if (a.status >= 200 && a.status < 300) return {};
    if (a.status == 0) return "failed: " + masked_words_of(a.error, to);
    const std::string body = masked_words_of(a.body, to);
    return printed("was answered with HTTP %d", a.status) + (body.empty() ? "" : ": " + body);
}

/// Processes that commands left running; they end with this.
class kept_commands {
public:
    void keep(std::unique_ptr<server_process> p) {
        const std::lock_guard lock(mutex_);
        erase_if(all_, [](const auto& old) { return old->is_gone(); });
        if (!p->is_gone()) all_.push_back(std::move(p));
    }

private:
    std::mutex mutex_{};
    vector<std::unique_ptr<server_process>> all_{};
};

/// `{url}` as a shell variable, so that nothing in a URL is run: quoted outside of quotes; single
/// quotes are ended around it.
inline std::string with_url_of_shell(std::string_view line) {
    std::string out;
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (line.substr(i, 5) == "{url}") {
            const std::string variable = "$LLMBENCH_URL", quoted = '"' + variable + '"';
            out += quote == '"' ? variable : quote ? "'" + quoted + "'" : quoted;
            i += 4;
            continue;
        }
        out += c;
        if (c == '\\' && quote != '\'' && i + 1 < line.size()) out += line[++i];
        else if (quote == 0 && (c == '"' || c == '\'')) quote = c;
        else if (c == quote) quote = 0;
    }
    return out;
}

/// The result of a command.
struct carried_command {
    std::unique_ptr<server_process> process{};  // ends with the processes it leaves
    std::string how{};   // "exited with status 0"; "" while it runs
    std::string last_line{};
    std::string error{};  // why it did not run
    bool in_time = false;
    bool done() const { return how == "exited with status 0"; }
    /// Returns why it did nothing, "" if it did. `within_s`: its limit.
    std::string fault(double within_s) const {
        if (!process) return "was not run: " + error;
        if (done()) return {};
        const std::string end = !how.empty() ? how
                                : in_time    ? "was interrupted"
                                             : "had not ended after " + time_text(within_s);
        return end + (last_line.empty() ? "" : ": " + last_line);
    }
};
/// Runs the line in a shell with the server's URL, until a time or an interruption.
inline carried_command carried_out(const std::string& line, const load_target& to,
                                   const std::string& log, long long until_ns) {
    const bool was_interrupted = stop_asked.load();
    const process what{.command = with_url_of_shell(line),
                       .env = {{"LLMBENCH_URL", to.whole_url}}};
    const int port = parsed_number<int>(to.url.port).value_or(0);
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(log).parent_path(), ignored);
    carried_command c;
    try {
        c.process = std::make_unique<server_process>(what, port, log, to.secrets);
    } catch (const std::runtime_error& e) {
        c.error = masked_words_of(e.what(), to);
        return c;
    }
    const auto is_over = [&] {
        c.how = c.process->how_it_ended();
        return !c.how.empty() || stop_asked.load() != was_interrupted;
    };
    comes_by(is_over, until_ns, 0.01);
    c.in_time = now_ns() < until_ns;
    const std::string all = c.process->log_tail();
    c.last_line = masked_words_of(
        std::string_view(all).substr(all.rfind('\n', all.find_last_not_of(" \t\r\n")) + 1), to);
    return c;
}

/// A log file among the reports, whose directory is there then.
inline std::string log_among_reports(const std::string& name) {
    std::error_code ignored;
    std::filesystem::create_directories(report_directory(), ignored);
    return report_directory() + "/" + name;
}
/// The log file of the program's next server.
inline std::string next_log(run_variant variant) {
    const std::string whose = variant == run_variant::baseline ? "baseline-" : "server-";
    return log_among_reports(whose + std::to_string(++servers_started) + ".log");
}

/// The last lines of a log, each a note.
inline vector<std::string> last_lines(std::string_view log) {
    vector<std::string> lines;
    while (!log.empty())
        if (const std::string_view line = taken_part(log, "\r\n"); !line.empty())
            lines.push_back("| " + printable(line));
    if (lines.empty()) return lines;
    constexpr std::size_t most = 8;
    lines.erase(lines.begin(), lines.end() - std::min(lines.size(), most));
    lines.insert(lines.begin(), "the log of the server ends:");
    return lines;
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
    std::string how_it_went() {
        const std::string how = running_ ? running_->how_it_ended() : "";
        if (how.empty()) return {};
        return "the server process " + how + "; its log is " + log_;
    }
    std::string log_tail() { return running_ ? running_->log_tail() : ""; }

private:
    /// Waits until the path `ready` answers 200; returns "", or why it did not.
    std::string why_not_ready(const http_server& server, const std::string& ready,
                              double within_s) {
        http_answer last;
        std::string how;
        const auto is_over = [&] {
            how = running_->how_it_ended();
            if (!how.empty() || stop_asked.load()) return true;
            last = blocking_get(server, ready, "", std::min(2.0, within_s));
            return last.status == 200;
        };
        const bool in_time = comes_by(is_over, began_ns + ns_of(std::min(within_s, 1e9)), 0.02);
        if (last.status == 200) return {};
        if (!how.empty()) return how + " before it was ready";
        if (in_time) return "was interrupted while starting";
        return "was not ready within " + time_text(within_s) + " (" + ready + " answered: " +
               (last.error.empty() ? "HTTP " + std::to_string(last.status) : last.error) + ")";
    }
    no_server given_up(const std::string& why, const vector<std::string>& secrets) {
        const std::string tail = without_secrets(running_->log_tail(), secrets);
        end();
        return no_server("process \"" +
                         excerpt_without_secrets(str(what.command), secrets, 200) + "\" " +
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
