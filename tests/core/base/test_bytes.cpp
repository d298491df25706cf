// A hash of bytes: what is taken eight at a time is what is taken one by one.
#include "core/base/bytes.hpp"
#include "core/base/random.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace llmbench::detail;

TEST_CASE("a hash of many bytes is that of each, whatever zeros are among them") {
    generator random(7, 1);
    for (int i = 0; i < 300; ++i) {
        std::string bytes;
        while (bytes.size() < 100) {
            bytes.append(static_cast<std::size_t>(20 * random.uniform()), '\0');
            bytes += static_cast<char>(static_cast<unsigned char>(256 * random.uniform()));
        }
        fnv1a whole, one_by_one;
        whole.add(bytes.data(), bytes.size());
        for (const char c : bytes) one_by_one.add(&c, 1);
        CHECK(whole.text() == one_by_one.text());
    }
    fnv1a known;  // of the definition's page
    known.add("foobar", 6);
    CHECK(known.text() == "85944171f73967e8");
}
