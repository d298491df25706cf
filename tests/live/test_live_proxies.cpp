// Real servers between the client and the simulated one: nginx and haproxy, each started here on
// free ports with a configuration of its own, without root. Left out by name where there is none.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/relay.hpp"
#ifdef LLMBENCH_WITH_TLS
#include "support/tls_server.hpp"
#endif

#include <chrono>
#include <csignal>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>

using namespace llmbench;
using namespace live;

namespace {

std::string program(const std::string& name) {
    for (const char* directory : {"/usr/sbin/", "/usr/bin/", "/usr/local/sbin/", "/usr/local/bin/"})
        if (::access((directory + name).c_str(), X_OK) == 0) return directory + name;
    return "";
}
std::string local(int port) { return "127.0.0.1:" + std::to_string(port); }

/// A command that runs until it goes; ready once the port takes connections.
class running {
public:
    running(std::vector<std::string> command, int port, const std::string& log) {
        std::vector<char*> words;
        for (std::string& w : command) words.push_back(w.data());
        words.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ == 0) {
            const int out = ::open(log.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644);
            ::dup2(out, 1);
            ::dup2(out, 2);
            ::execv(words[0], words.data());
            ::_exit(127);
        }
        for (int i = 0; i < 500; ++i) {
            const int fd = relay::connected_to(port);
            if (fd >= 0) {
                ::close(fd);
                return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        FAIL_CHECK(command[0], " does not listen; it said: ", content_of(log));
    }
    ~running() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    running(const running&) = delete;
    running& operator=(const running&) = delete;

private:
    pid_t pid_ = -1;
};

/// A short load with an objective that any healthy way to the server meets.
scenario short_load(const any_target& target) {
    scenario s;
    s.target = target;
    s.workload = synthetic{.prompt_tokens = fixed(32), .output_tokens = fixed(24)};
    s.arrivals = closed_loop(10);  // a rate could be missed
    s.warmup = 5;
    s.requests = 30;
    s.repeats = 2;
    s.slos = {mean(ttft) <= 5_s};
    return s;
}
result passing_load(const any_target& target) {
    const result r = run(short_load(target));
    CHECK(outcome_of(r, "mean(ttft) <= 5 s") == verdict::pass);
    for (const record& x : all_ok(r)) CHECK(x.output_tokens == 24);
    return r;
}

/// Certificates where both of them look for one.
struct tls_files {
    std::string ca{}, pem{};
    explicit tls_files([[maybe_unused]] const scratch& directory) {
#ifdef LLMBENCH_WITH_TLS
        const tls::identity authority = tls::authority();
        ca = directory.file("ca.pem");
        pem = directory.file("server.pem");
        tls::write_pem(authority, ca);
        tls::write_pem_with_key(tls::made("proxy", {}, &authority), pem);
#endif
    }
};

class nginx {
public:
    nginx(int behind, const scratch& directory, const tls_files& tls)
        : port_(free_port()), closing_(free_port()), tls_(free_port()) {
        const auto location = [&](const std::string& name, const std::string& settings) {
            return "location /" + name + "/ { proxy_pass http://" + local(behind) + "/; " +
                   settings + " }\n";
        };
        std::string conf = "daemon off; master_process off; worker_processes 1;\npid " +
                           directory.file("pid") + ";\nevents { worker_connections 512; }\nhttp {\n"
                           "access_log off; proxy_http_version 1.1;\n"
                           "proxy_set_header Connection \"\";\n";
        for (const char* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
            conf += std::string(kind) + "_temp_path " + directory.file(kind) + ";\n";
        conf += "server { listen " + local(port_) + ";\n" +
                location("plain", "proxy_buffering off;") +
                location("buffered", "proxy_buffering on;") +
                location("gzip", "proxy_buffering off; gzip on; gzip_proxied any;"
                                 " gzip_min_length 1; gzip_types text/event-stream;") +
                "location /dead/v1/models { return 200 '{\"data\":[{\"id\":\"m\"}]}'; }\n"
                "location /dead/ { proxy_pass http://" + local(free_port()) + "/; }\n}\n";
        conf += "server { listen " + local(closing_) + "; keepalive_timeout 0;\n" +
                location("plain", "proxy_buffering off;") + "}\n";
        if (!tls.pem.empty())
            conf += "server { listen " + local(tls_) + " ssl; keepalive_timeout 0;\n" +
                    "ssl_certificate " + tls.pem + "; ssl_certificate_key " + tls.pem +
                    "; ssl_session_cache shared:s:1m;\n" +
                    location("plain", "proxy_buffering off;") + "}\n";
        write(directory.file("nginx.conf"), conf + "}\n");
        process_ = std::make_unique<running>(
            std::vector<std::string>{program("nginx"), "-p", directory.file(""), "-c",
                                     directory.file("nginx.conf"), "-e", directory.file("error")},
            port_, directory.file("nginx.log"));
    }
    std::string at(const std::string& name) const { return "http://" + local(port_) + "/" + name; }
    std::string closing() const { return "http://" + local(closing_) + "/plain"; }
    std::string tls() const { return "https://" + local(tls_) + "/plain"; }

private:
    int port_, closing_, tls_;
    std::unique_ptr<running> process_{};
};

}  // namespace

#if defined(__linux__) && !defined(LLMBENCH_WAIT_BY_ASIO)
constexpr bool stamps_here = true;
#else
constexpr bool stamps_here = false;
#endif

TEST_CASE("nginx in front of a server") {
    if (program("nginx").empty()) {
        MESSAGE("skipped: nginx is not installed (Debian: nginx-light)");
        return;
    }
    const logging_server server(quick_engine());
    const int behind = std::stoi(server.url().substr(server.url().rfind(':') + 1));
    const scratch directory;
    const tls_files certificates(directory);
    const nginx proxy(behind, directory, certificates);

    const result plain = passing_load(endpoint{.url = proxy.at("plain")});
    CHECK(plain.self_check().coalesced_fraction < 0.5);
    CHECK(plain.self_check().stamped_fraction >= (stamps_here ? 0.9 : 0));

    // Buffering is for slow readers: what nginx has, it gives to one that waits for it. Were that
    // to change, events would come together and the result would say so.
    const result buffered = passing_load(endpoint{.url = proxy.at("buffered")});
    CHECK(buffered.self_check().coalesced_fraction < 0.5);

    // No coding is asked for, so none comes; where one is asked for by hand, it is named.
    passing_load(endpoint{.url = proxy.at("gzip")});
    scenario zipped = short_load(endpoint{.url = proxy.at("gzip"),
                                          .model = "simulated",
                                          .headers = {{"Accept-Encoding", "gzip"}}});
    zipped.slos = {};
    zipped.repeats = 1;
    for (const record& r : all_are(request_status::protocol, run(zipped)))
        CHECK(holds(r.error, "gzip"));

    const result closing = passing_load(endpoint{.url = proxy.closing()});
    CHECK(closing.self_check().connections_opened >= 60);  // one a request

    scenario dead = short_load(endpoint{.url = proxy.at("dead"), .model = "m"});
    dead.slos = {};
    dead.repeats = 1;
    for (const record& r : all_are(request_status::http, run(dead))) CHECK(r.http_status == 502);

    if (certificates.pem.empty()) {
        MESSAGE("skipped: TLS to nginx, for this program was built without OpenSSL");
        return;
    }
    const result r =
        passing_load(endpoint{.url = proxy.tls(), .tls = {.ca_file = certificates.ca}});
    CHECK(r.self_check().connections_opened >= 27);
}

TEST_CASE("haproxy in front of a server") {
    if (program("haproxy").empty()) {
        MESSAGE("skipped: haproxy is not installed");
        return;
    }
    const logging_server server(quick_engine());
    const std::string behind = server.url().substr(7);
    const scratch directory;
    const tls_files certificates(directory);
    const int port = free_port(), tls_port = free_port();
    const std::string socket = directory.file("haproxy.sock");
    std::string conf = "global\n  maxconn 500\ndefaults\n  mode http\n  timeout connect 5s\n"
                       "  timeout client 30s\n  timeout server 30s\nfrontend all\n  bind " +
                       local(port) + "\n  bind unix@" + socket + "\n";
    if (!certificates.pem.empty())
        conf += "  bind " + local(tls_port) + " ssl crt " + certificates.pem + "\n";
    conf += "  default_backend engine\nbackend engine\n  server one " + behind + "\n";
    write(directory.file("haproxy.cfg"), conf);
    const running haproxy({program("haproxy"), "-db", "-f", directory.file("haproxy.cfg")}, port,
                          directory.file("haproxy.log"));

    passing_load(endpoint{.url = "http://" + local(port)});
    passing_load(endpoint{.url = "unix:" + socket});
    if (certificates.pem.empty()) {
        MESSAGE("skipped: TLS to haproxy, for this program was built without OpenSSL");
        return;
    }
    passing_load(
        endpoint{.url = "https://" + local(tls_port), .tls = {.ca_file = certificates.ca}});
}
