// a server's metrics pages, read during a load
#pragma once

#include "core/base/text.hpp"
#include "core/wire/metrics_page.hpp"
#include "core/server_metrics/page_readings.hpp"
#include "core/server_metrics/server_names.hpp"
#include "core/measured/server_metrics.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/repeated.hpp"
#include "effects/system/signals.hpp"
#include "effects/targets/server_pages.hpp"

#include <algorithm>  // max
#include <cmath>  // isnan
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Queues drain and caches settle between loads. Waits until a server with metrics is idle, for 5 s
/// at most, because others may use it.
inline void rest(const server_pages& pages) {
    sleep_s(0.2);
    if (!pages.first_is_servers) return;
    const long long until = now_ns() + ns_of(5);
    while (now_ns() < until && !stop_asked.load()) {
        const parsed_page read = read_page(pages.all[0]);
        const page_reading r = reading_of({read.page}, true, {});
        const double left = r.value(server_quantity::running) + r.value(server_quantity::waiting);
        if (!read.problem.empty() || !(left > 0)) return;
        sleep_s(0.1);
    }
}

/// Reads once before the load, once a second during it, and once after it. It uses at most 1 % of a
/// core: slow pages are read less often.
class page_watch {
public:
    page_watch(const server_pages& pages, const std::vector<std::string>& selectors)
        : pages_(pages) {
        metrics_.of = pages.of;
        metrics_.problem = pages.problem;
        metrics_.is_read = !pages.all.empty();
        metrics_.selectors = selectors;
        if (!metrics_.is_read) return;
        read_once();
        began_well_ = !metrics_.readings.empty();
        if (began_well_) metrics_.from_s = last_reported_s_;
        reading_.begin(
            [this] { return now_ns() + ns_of(std::max(every_s, cost_s_ / max_cpu_utilization)); },
            [this] { read_once(); }, [this](const char* why) { miss(why); });
    }
    page_watch(const page_watch&) = delete;
    page_watch& operator=(const page_watch&) = delete;

    /// The metrics read. Some servers' counters are late: while they report fewer finished requests
    /// than there were, the last reading is repeated, for at most a second.
    server_metrics metrics(double finished) {
        reading_.stop();
        if (!metrics_.is_read) return std::move(metrics_);
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
        if (metrics_.has_both_ends) metrics_.is_of_several = are_several();
        return std::move(metrics_);
    }

private:
    static constexpr double every_s = 1, max_cpu_utilization = 0.01;

    /// Returns why reading failed, "" if it did not.
    std::string try_to_read() {
        std::vector<metrics_page> pages;
        for (const page_address& p : pages_.all) {
            parsed_page read = read_page(p);
            if (!read.problem.empty()) return read.problem;
            if (pages.empty())
                last_reported_s_ = std::isnan(read.reported_s) ? unix_s() : read.reported_s;
            pages.push_back(std::move(read.page));
        }
        // A page that was empty when found had no known server.
        if (metrics_.of.empty() && pages_.first_is_servers) metrics_.of = name_found_in(pages[0]);
        page_reading r = reading_of(pages, pages_.first_is_servers, metrics_.selectors);
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
            page_reading now = reading_of({read.page}, true, {});
            const bool began_otherwise =
                !std::isnan(now.began) && reports_its_start && now.began != before.began;
            if (began_otherwise || have_fallen(before, now)) return true;
            before = std::move(now);
        }
        return false;
    }

    const server_pages& pages_;
    server_metrics metrics_{};  // of the reader while it runs, else of the owner
    bool began_well_ = false;
    double last_reported_s_ = not_a_number;  // time of the last page, by its server's clock
    double cost_s_ = 0;  // CPU seconds of the last reading
    repeated reading_{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
