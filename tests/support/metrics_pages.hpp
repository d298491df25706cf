// Pages of metrics as servers write them, read.
#pragma once

#include "core/wire/metrics_page.hpp"

#include <doctest/doctest.h>

#include <string>

namespace metrics_pages {

inline llmbench::detail::metrics_page page_of(const std::string& body) {
    llmbench::detail::parsed_page p =
        llmbench::detail::read_metrics_page(body, "text/plain; version=0.0.4");
    REQUIRE(p.problem == "");
    return p.page;
}

}  // namespace metrics_pages
