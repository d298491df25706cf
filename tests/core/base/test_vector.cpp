// The array of every type: as std::vector where both have a function.
#include "core/base/vector.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using llmbench::detail::vector;

namespace {
/// Counts how many there are; its copy throws after so many.
struct counted {
    static inline int alive = 0, copies_left = 1000;
    std::string value;
    counted(std::string v = "default") : value(std::move(v)) { ++alive; }
    counted(const counted& o) : value(o.value) {
        if (copies_left-- <= 0) throw std::runtime_error("no more copies");
        ++alive;
    }
    counted(counted&& o) noexcept : value(std::move(o.value)) { ++alive; }
    counted& operator=(const counted&) = default;
    counted& operator=(counted&&) noexcept = default;
    ~counted() { --alive; }
    bool operator==(const counted& o) const { return value == o.value; }
};

template <class T>
void same(const vector<T>& ours, const std::vector<T>& theirs) {
    REQUIRE(ours.size() == theirs.size());
    CHECK(std::equal(ours.begin(), ours.end(), theirs.begin()));
    CHECK(ours.empty() == theirs.empty());
    CHECK(ours.capacity() >= ours.size());
}

/// The same drawn operations on both. `make` makes an item of a number.
template <class T, class Make>
void go_alike(unsigned seed, Make&& make) {
    std::mt19937 random(seed);
    vector<T> ours;
    std::vector<T> theirs;
    for (int step = 0; step < 400; ++step) {
        const std::size_t n = theirs.size(), i = n > 0 ? random() % n : 0;
        const auto at = static_cast<std::ptrdiff_t>(i);
        const T item = make(random());
        switch (random() % 14) {
        case 0:
        case 1: ours.push_back(item); theirs.push_back(item); break;
        case 2: ours.emplace_back(item); theirs.emplace_back(item); break;
        case 3:
            if (n > 0) { ours.push_back(ours[i]); theirs.push_back(theirs[i]); }
            break;
        case 4:
            if (n > 0) { ours.insert(ours.begin(), ours[i]); theirs.insert(theirs.begin(), theirs[i]); }
            break;
        case 5: ours.insert(ours.begin() + at, item); theirs.insert(theirs.begin() + at, item); break;
        case 6: {
            const T more[] = {item, make(1), make(2)};
            ours.insert(ours.begin() + at, more, more + 3);
            theirs.insert(theirs.begin() + at, more, more + 3);
            break;
        }
        case 7:
            if (n > 0) { ours.erase(ours.begin() + at); theirs.erase(theirs.begin() + at); }
            break;
        case 8: {
            const auto to = at + static_cast<std::ptrdiff_t>((n - i) / 2);
            ours.erase(ours.begin() + at, ours.begin() + to);
            theirs.erase(theirs.begin() + at, theirs.begin() + to);
            break;
        }
        case 9:
            if (n > 0) { ours.resize(n + 5, ours[i]); theirs.resize(n + 5, theirs[i]); }
            break;
        case 10: ours.resize(n / 2 + 3); theirs.resize(n / 2 + 3); break;
        case 11: {
            const auto is_even = [&](const T& x) { return x < item; };
            CHECK(erase_if(ours, is_even) == std::erase_if(theirs, is_even));
            break;
        }
        case 12: {
            vector<T> copy = ours;
            CHECK(copy == ours);
            ours = std::move(copy);
            CHECK(copy.empty());
            break;
        }
        default:
            if (n > 0) { ours.pop_back(); theirs.pop_back(); }
        }
        same(ours, theirs);
    }
}
}  // namespace

TEST_CASE("drawn operations do what they do to std::vector") {
    for (unsigned seed = 0; seed < 20; ++seed) {
        CAPTURE(seed);
        go_alike<int>(seed, [](unsigned long n) { return static_cast<int>(n % 100); });
        go_alike<std::string>(seed, [](unsigned long n) {
            return std::string(n % 40, static_cast<char>('a' + n % 26));
        });
    }
}

TEST_CASE("nothing is lost or destroyed twice where a copy throws") {
    REQUIRE(counted::alive == 0);
    for (int copies = 0; copies < 12; ++copies) {
        vector<counted> all;
        for (const char* s : {"a", "b", "c"}) all.emplace_back(s);
        const auto with_few_copies = [&](auto&& f) {
            counted::copies_left = copies;
            try { f(); } catch (const std::runtime_error&) {}
            counted::copies_left = 1000;
            REQUIRE(all.size() >= 3);
            CHECK(all[0].value == "a");
            CHECK(all[2].value == "c");
            CHECK(counted::alive == static_cast<int>(all.size()));
        };
        with_few_copies([&] { const vector<counted> copy = all; });
        with_few_copies([&] { all.push_back(all[1]); });
        with_few_copies([&] { all.resize(all.size() + 3, all[1]); });
        with_few_copies([&] { const vector<counted> of{counted("x"), counted("y")}; });
        with_few_copies([&] { all = vector<counted>(all); });
        const counted more[] = {counted("m"), counted("n")};
        counted::alive -= 2;  // those
        with_few_copies([&] { all.insert(all.end(), more, more + 2); });
        counted::alive += 2;
    }
    CHECK(counted::alive == 0);
}

TEST_CASE("items that can only be moved, an array in itself, and assigning it to itself") {
    vector<std::unique_ptr<int>> moved;
    for (int i = 0; i < 20; ++i) moved.push_back(std::make_unique<int>(i));
    moved.insert(moved.begin(), std::make_unique<int>(-1));
    moved.erase(moved.begin() + 1);
    CHECK(*moved[0] == -1);
    CHECK(*moved.back() == 19);

    struct tree { vector<tree> in; int value = 0; };
    tree root{{{{}, 1}, {{{{}, 3}}, 2}}, 0};
    root.in = std::move(root.in[1].in);
    REQUIRE(root.in.size() == 1);
    CHECK(root.in[0].value == 3);

    vector<int> v{1, 2, 3};
    const vector<int>& itself = v;
    v = itself;
    CHECK(v == vector<int>{1, 2, 3});
    CHECK(vector<int>{1, 2} < v);
    CHECK_FALSE(v < vector<int>{1, 2});
}

TEST_CASE("growing step by step takes few allocations, and {} returns the memory") {
    vector<char> v;
    int moves = 0;
    for (std::size_t n = 1; n <= 100000; ++n) {
        const char* before = v.data();
        v.resize(n);
        moves += v.data() != before;
    }
    CHECK(moves < 25);
    v.clear();
    CHECK(v.capacity() >= 100000);
    v = {};
    CHECK(v.capacity() == 0);
    CHECK(vector<int>(3) == vector<int>{0, 0, 0});
    CHECK_THROWS_AS(v.at(0), std::out_of_range);
    vector<double> huge;
    CHECK_THROWS_AS(huge.reserve(static_cast<std::size_t>(-1) / 4), std::length_error);
}
