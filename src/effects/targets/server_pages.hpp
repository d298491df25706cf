// the metrics pages of a server, read before and during a load
#pragma once

#include "api/metrics.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "core/base/secrets.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/wire/metrics_page.hpp"
#include "core/wire/series.hpp"
#include "core/wire/url.hpp"
#include "core/server_metrics/page_readings.hpp"
#include "core/server_metrics/quantities.hpp"
#include "core/server_metrics/server_names.hpp"
#include "core/dialects/table.hpp"
#include "core/measured/server_metrics.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/signals.hpp"
#include "effects/system/threads.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/net/exchange.hpp"
#include "effects/net/tls.hpp"
#include "effects/load/load_target.hpp"
#include "effects/targets/credentials.hpp"

#include <algorithm>  // max
#include <cmath>  // isnan
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One page, and all that is needed to request it.
struct page_address {
    std::string url{};  // as in reports
    http_server at{};
    std::string path{};
    std::string fields{};
    vector<std::string> secrets{};
};
/// The pages of a server: first its own, if it has one, then those of exporters.
struct server_pages {
    vector<page_address> all{};
    bool first_is_servers = false;
    std::string of{};       // owner of the first, "" if unknown
    std::string problem{};  // why the server has none
    bool is_off = false;    // the scenario wants no page of the server
};

/// During a load a late reading is useless; before it there is time, also on a busy machine.
inline constexpr double page_within_s = 1, first_page_within_s = 5;

/// Returns the parsed page, or one sentence why there is none.
inline parsed_page read_page(const page_address& p, double within_s = page_within_s) {
    const http_answer a = blocking_get(p.at, p.path, p.fields, within_s);
    parsed_page page;
    if (a.status == 0) page.problem = a.error;
    else if (a.status != 200) page.problem = "HTTP " + std::to_string(a.status);
    else page = read_metrics_page(a.body, a.content_type);
    if (page.problem.empty()) page.reported_s = a.date_s.value_or(not_a_number);
    else page = {.problem = without_secrets(p.url + ": " + page.problem, p.secrets),
                 .is_json = page.is_json};
    return page;
}

/// The URL of a scenario, or a "/path" of the server. Only the server gets its key and headers.
inline page_address page_at(const std::string& named, const load_target& server,
                            const std::string& server_url, const tls_options& tls,
                            const char* field) {
    page_address p;
    const bool is_path = !named.empty() && named.front() == '/';
    const http_url at = is_path ? server.url : parsed_url(named, field);
    p.path = is_path ? named : (at.path.empty() ? "/metrics" : at.path) + at.query;
    p.url = shown_url(is_path ? without_path(server_url) + named : named);
    const bool is_same = at.authority() == server.url.authority() &&
                         at.socket == server.url.socket && at.tls == server.url.tls;
    p.fields = "Accept: text/plain;version=0.0.4\r\n";
    p.fields += is_same ? server.fields : "User-Agent: llmbench\r\n" + login_line(at);
    p.at = is_same  ? static_cast<const http_server&>(server)
           : at.tls ? server_at(at, new_shared<tls_client>(tls, at))
                    : server_at(at);
    p.secrets = server.secrets;
    add_query_secrets(p.secrets, named);
    return p;
}

/// The usual page of servers of an API, "" if none.
inline std::string usual_page(const load_target& server) {
    const std::string page = server.api->metrics;
    if (page.empty() || page.front() != ':') return page;
    const std::string host = server.url.ipv6 ? "[" + server.url.host + "]" : server.url.host;
    return (server.url.tls ? "https://" : "http://") + host + page;  // has its own port
}

/// The pages of a running server. A page that the scenario names must exist; that of the API is
/// tried once, and may be missing.
inline server_pages pages_of(const endpoint& e, const load_target& server,
                             const std::string& server_url) {
    server_pages pages;
    /// Returns true for JSON, which is no metrics page.
    const auto add_own = [&](const std::string& named) {
        page_address p = page_at(named, server, server_url, e.tls, "endpoint.metrics_url");
        const parsed_page read = read_page(p, first_page_within_s);
        if (!read.problem.empty()) {
            pages.problem = read.problem;
            return read.is_json;
        }
        pages.of = name_found_in(read.page);
        pages.first_is_servers = true;
        pages.problem.clear();
        pages.all.push_back(std::move(p));
        return false;
    };
    pages.is_off = str(e.metrics_url) == "off";
    if (pages.is_off) {
        pages.problem = "its page is not read, as endpoint.metrics_url is \"off\"";
    } else if (!e.metrics_url.empty()) {
        add_own(str(e.metrics_url));
        if (pages.all.empty())
            refuse({"endpoint.metrics_url: ", pages.problem, "; ", how_to_switch_on});
    } else if (const std::string usual = usual_page(server); !usual.empty()) {
        // trtllm-serve has JSON at /metrics.
        if (add_own(usual)) add_own("/prometheus/metrics");
    }
    for (const auto& named : e.telemetry) {
        page_address p = page_at(str(named), server, server_url, e.tls, "endpoint.telemetry");
        const parsed_page read = read_page(p, first_page_within_s);
        if (!read.problem.empty()) refuse({"endpoint.telemetry: ", read.problem});
        pages.all.push_back(std::move(p));
    }
    return pages;
}

// ---- whether there is what objectives ask for

/// The metrics with values in a reading, as a sentence.
inline std::string reported_metrics(const page_reading& r) {
    std::string names;
    for (const metric_facts& f : metric_table)
        if (const auto q = quantity_of(f.id); q && !std::isnan(r.value(*q)))
            names += (names.empty() ? "" : ", ") + std::string(f.name);
    return names.empty() ? "none of those known here" : names;
}
/// Returns why pages lack the metric of an objective, "" if they have it.
inline std::string why_unreported(const server_pages& on, const vector<metrics_page>& pages,
                                  const page_reading& r, const statistic_data& what) {
    if (what.metric == metric_id::energy_per_token) {
        const double joules = r.value(server_quantity::energy);
        const double watts = r.value(server_quantity::power);
        return !std::isnan(joules) || !std::isnan(watts)
                   ? ""
                   : "no metrics page reports the energy or the power of accelerators: name an "
                     "exporter's, endpoint{.telemetry = {\"http://host:9400/metrics\"}}";
    }
    if (const std::string series = series_in(what); !series.empty()) {
        const series_selector wanted = selector_of(series);
        std::string why;
        for (const metrics_page& page : pages) {
            const std::string here = why_no_series(page, wanted);
            if (here.empty()) return {};
            if (why.empty()) why = here;
        }
        return why;
    }
    if (!on.first_is_servers)
        return on.is_off ? on.problem
                         : on.problem + (on.problem.empty() ? "" : "; ") + how_to_switch_on;
    const auto q = is_of_work(what.metric) ? quantity_counted(what) : quantity_of(what.metric);
    if (!q || !std::isnan(r.value(*q))) return {};
    if (*q == server_quantity::prefix_hits && !std::isnan(r.value(server_quantity::prefix_queries)))
        return {};  // there was none yet
    const server_traits* const server = found_in(pages.front());
    const std::string more = server ? server->more : "";
    return "the page of " + std::string(server ? server->name : "this server") +
           " does not report it; it reports " + reported_metrics(r) + (more.empty() ? "" : "; ") +
           more;
}
/// The same for the first such objective of several, with one reading.
inline std::string why_any_unreported(const server_pages& on, const vector<slo>& slos) {
    vector<metrics_page> pages;
    std::string problem;
    for (const page_address& a : on.all) {
        parsed_page read = read_page(a, first_page_within_s);
        if (problem.empty()) problem = read.problem;
        pages.push_back(std::move(read.page));
    }
    const page_reading r = reading_of(pages, {}, on.first_is_servers ? 1 : 0);
    for (const slo& s : slos)
        if (const std::string why = why_unreported(on, pages, r, s.statistic); !why.empty())
            return "the SLO " + str(s.text()) + " is refused: " + why +
                   (problem.empty() ? "" : "; " + problem);
    return {};
}

inline page_reading reading_of_server(const server_pages& pages) {
    return reading_of({read_page(pages.all[0]).page});
}
/// Requests that a server has and has not answered; NaN if its page does not tell.
inline double requests_at(const page_reading& r) {
    return r.value(server_quantity::running) + r.value(server_quantity::waiting);
}
/// Queues drain and caches settle between loads. Waits until a server with metrics is idle, for 5 s
/// at most, because others may use it.
inline void rest(const server_pages& pages) {
    sleep_s(0.2);
    if (!pages.first_is_servers) return;
    const auto is_idle = [&] {
        // It is idle where that could not be read, too.
        return stop_asked.load() || !(requests_at(reading_of_server(pages)) > 0);
    };
    comes_by(is_idle, now_ns() + ns_of(5), 0.1);
}

inline constexpr double rest_within_s = 10, between_pages_s = 0.3;
/// Waits until a server has nothing to do, and two of its pages one after the other are alike.
/// Returns false if it does not come to rest in time.
inline bool comes_to_rest(const server_pages& pages) {
    page_reading before{};
    const auto is_alike = [](double a, double b) {
        return a == b || (std::isnan(a) && std::isnan(b));
    };
    const auto is_at_rest = [&] {
        page_reading now = reading_of_server(pages);
        bool alike = !(requests_at(now) > 0);
        // Accelerators are never at rest.
        for (std::size_t q = 0; !is_of_accelerator(static_cast<server_quantity>(q)); ++q)
            alike = alike && is_alike(now.values[q], before.values[q]) &&
                    is_alike(now.counts[q], before.counts[q]);
        before = std::move(now);
        return stop_asked.load() || alike;
    };
    return comes_by(is_at_rest, now_ns() + ns_of(rest_within_s), between_pages_s);
}

/// What a page is read for.
enum class page_use : unsigned char { speed, work };

/// Reads once before the load, once a second during it, and once after it. Where work is counted,
/// the first and the last page are those of an idle server. It uses at most 1 % of a core: slow
/// pages are read less often.
class page_watch : not_copied {
public:
    page_watch(const server_pages& pages, const vector<std::string>& selectors,
               page_use use = page_use::speed)
        : pages_(pages), use_(use) {
        metrics_.of = pages.of;
        metrics_.problem = pages.problem;
        metrics_.is_read = !pages.all.empty();
        metrics_.selectors = selectors;
        if (!metrics_.is_read) return;
        const bool rests = is_at_rest();
        read_once();
        began_well_ = rests && !metrics_.readings.empty();
        if (began_well_) metrics_.from_s = last_reported_s_;
        reading_.begin(
            [this] { return now_ns() + ns_of(std::max(every_s, cost_s_ / max_cpu_utilization)); },
            [this] { read_once(); }, [this](const char* why) { miss(why); });
    }

    /// The metrics read. Some servers' counters are late: while they report fewer finished requests
    /// than there were, the last reading is repeated, for at most a second.
    server_metrics metrics(double finished) {
        reading_.stop();
        if (!metrics_.is_read) return std::move(metrics_);
        if (!is_at_rest()) began_well_ = false;
        for (int tries = 0;; ++tries) {
            const std::size_t before = metrics_.readings.size();
            read_once();
            metrics_.has_both_ends = began_well_ && metrics_.readings.size() > before;
            if (!metrics_.has_both_ends || tries == 4) break;
            const double reported = metrics_.readings.back().value(server_quantity::requests_done) -
                                metrics_.readings.front().value(server_quantity::requests_done);
            if (!(reported < finished)) break;
            metrics_.readings.pop_back();
            sleep_s(0.2);
        }
        drop_partial_gauges(metrics_.readings);
        count_stages_once(metrics_.readings, finished);
        if (metrics_.has_both_ends) metrics_.is_of_several = are_several();
        return std::move(metrics_);
    }

private:
    static constexpr double every_s = 1, max_cpu_utilization = 0.01;

    /// Of work; otherwise a page is read as the server is.
    bool is_at_rest() {
        if (use_ == page_use::speed || !pages_.first_is_servers) return true;
        const bool is = comes_to_rest(pages_);
        if (!is) miss(printed("the server was not idle within %g s", rest_within_s));
        return is;
    }
    /// Returns why reading failed, "" if it did not.
    std::string try_to_read() {
        vector<metrics_page> pages;
        for (const page_address& p : pages_.all) {
            parsed_page read = read_page(p);
            if (!read.problem.empty()) return read.problem;
            if (pages.empty())
                last_reported_s_ = std::isnan(read.reported_s) ? unix_s() : read.reported_s;
            pages.push_back(std::move(read.page));
        }
        // A page that was empty when found had no known server.
        if (metrics_.of.empty() && pages_.first_is_servers) metrics_.of = name_found_in(pages[0]);
        page_reading r =
            reading_of(pages, metrics_.selectors, pages_.first_is_servers ? 1 : 0);
        r.at_ns = now_ns();
        metrics_.readings.push_back(std::move(r));
        return {};
    }
    /// Tries twice, because one connection may be lost by chance.
    void read_once() {
        const double cpu_before = thread_cpu_seconds();
        if (!try_to_read().empty())
            if (const std::string why = try_to_read(); !why.empty()) miss(why);
        cost_s_ = thread_cpu_seconds() - cpu_before;
    }
    void miss(const std::string& why) {
        metrics_.problem = why;
        metrics_.missed_ns.push_back(now_ns());
    }
    /// Whether several processes answer in turn, one per connection. The server is idle now, so
    /// nothing else changes the metrics.
    bool are_several() const {
        constexpr int looks = 8;
        if (!pages_.first_is_servers) return false;
        const page_reading& last = metrics_.readings.back();
        const bool reports_its_start = !std::isnan(last.began);
        page_reading before = last;
        for (int i = 0; i < looks; ++i) {
            const parsed_page read = read_page(pages_.all[0]);
            if (!read.problem.empty()) return false;
            page_reading now = reading_of({read.page});
            const bool began_otherwise = !std::isnan(now.began) && reports_its_start &&
                                         !is_one_start(now.began, before.began);
            if (began_otherwise || have_fallen(before, now)) return true;
            before = std::move(now);
        }
        return false;
    }

    const server_pages& pages_;
    const page_use use_;
    server_metrics metrics_{};  // of the reader while it runs, else of the owner
    bool began_well_ = false;
    double last_reported_s_ = not_a_number;  // time of the last page, by its server's clock
    double cost_s_ = 0;  // CPU seconds of the last reading
    repeated reading_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
