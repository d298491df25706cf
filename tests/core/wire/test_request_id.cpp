// The ids of requests: a form that every server takes, and what is told by it.
#include "llmbench.hpp"
#include "core/wire/http.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// RFC 9562, section 4: the form, version 8, and the variant that all its versions have.
bool is_uuid_of_version_8(const std::string& id) {
    const std::string form = "xxxxxxxx-xxxx-8xxx-8xxx-xxxxxxxxxxxx";
    const auto fits = [](char c, char f) {
        return f == 'x' ? std::string("0123456789abcdef").find(c) != std::string::npos : c == f;
    };
    return id.size() == form.size() && std::equal(id.begin(), id.end(), form.begin(), fits);
}

}  // namespace

TEST_CASE("an id is a UUID, whatever its gate, repeat and place") {
    for (const int gate : {0, 1, 42, 9999, 10000, 123456})
        for (const int repeat : {0, 9, 99, 100, 2345})
            for (const std::size_t place : {0ul, 7ul, 999999999999ul}) {
                const std::string id =
                    request_id(id_prefix(gate, run_variant::baseline, repeat), place);
                CAPTURE(id);
                CHECK(is_uuid_of_version_8(id));
                CHECK(place_of(id) == place);
            }
}

TEST_CASE("gates, arms, repeats and requests have ids of their own") {
    std::set<std::string> ids{id_of_check()};
    for (const int gate : {1, 2, 300})
        for (const run_variant variant : {run_variant::candidate, run_variant::baseline})
            for (const int repeat : {0, 1, 10})
                for (const std::size_t place : {0ul, 1ul, 10ul, 100000ul})
                    ids.insert(request_id(id_prefix(gate, variant, repeat), place));
    CHECK(ids.size() == 1 + 3 * 2 * 3 * 4);
    CHECK(request_id(id_prefix(12, run_variant::candidate, 3), 456) ==
          "11bbec40-0012-8c03-8000-000000000456");
}

TEST_CASE("runs and the checks before a load have ids of their own, too") {
    std::set<std::string> ids;
    for (const std::uint32_t run : {0u, 1u, 0x11bbec40u, 0xffffffffu}) {
        ids.insert(request_id(id_prefix(1, run_variant::candidate, 0, run), 0));
        for (const std::size_t number : {0ul, 1ul, 12ul}) {
            const std::string check = id_of_check(number, run);
            CHECK(is_uuid_of_version_8(check));
            CHECK(is_id_of_check(check));
            ids.insert(check);
        }
    }
    CHECK(ids.size() == 4 * (1 + 3));
    CHECK_FALSE(is_id_of_check(request_id(id_prefix(1, run_variant::candidate, 0), 0)));
    CHECK_FALSE(is_id_of_check(request_id(id_prefix(0, run_variant::baseline, 0), 0)));
    CHECK_FALSE(is_id_of_check(""));
}

TEST_CASE("the place is read from ids of earlier versions, too") {
    CHECK(place_of("llmbench-1c-0-42") == 42);
    CHECK_FALSE(place_of("llmbench-check"));
    CHECK_FALSE(place_of(""));
}
