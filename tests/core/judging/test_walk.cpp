// The one walk over repeats: when evidence is asked for, and what it takes to decide.
#include "llmbench.hpp"
#include "core/judging/walk.hpp"

#include <cstddef>
#include <memory>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

objective_columns repeats_with(std::size_t n, repeats_are how = repeats_are::alone) {
    objective_columns of;
    of.how = how;
    for (std::size_t i = 0; i < n; ++i) of.mine.each.push_back(std::make_shared<const column>());
    return of;
}
const slo objective = mean(ttft) <= 100_ms;
const judging_parameters usual;

/// Says the same of any repeats, but for the outcomes of the first ones.
class scripted final : public method {
public:
    scripted(const objective_columns& of, vector<verdict> outcomes, evidence x = {.n = 1})
        : method(of, usual, objective), outcomes_(std::move(outcomes)), says_(std::move(x)) {}
    taken_repeat take(std::size_t i) override { return {i != skipped, {}}; }
    evidence shown(decision& d, const fewest_repeats& takes) override {
        evidence x = says_;
        x.takes = takes;
        if (asked_at.size() < outcomes_.size()) x.outcome = outcomes_[asked_at.size()];
        asked_at.push_back(d.repeats);
        return x;
    }
    void end(decision& d, sought) const override { d.decided_by = verdict_method::t; }

    std::size_t skipped = 100;
    vector<int> asked_at{};

private:
    vector<verdict> outcomes_;
    evidence says_;
};
constexpr verdict open = verdict::inconclusive, pass = verdict::pass, fail = verdict::fail;

}  // namespace

TEST_CASE("repeats are analysed from the second one to the first that decides") {
    const objective_columns five = repeats_with(5);
    scripted passes(five, {open, pass});
    const decision d = walked(std::move(passes));
    CHECK(d.outcome == pass);
    CHECK(d.repeats == 3);
    CHECK(d.decided_by == verdict_method::t);
    CHECK(passes.asked_at == vector<int>{2, 3});
    // The last analysis is of all.
    scripted to_the_end(five, {pass, pass, pass});
    CHECK(walked(std::move(to_the_end), sought::last).outcome == open);
    CHECK(to_the_end.asked_at == vector<int>{2, 3, 4, 5});
    // A repeat that does not count is none.
    scripted one_less(five, {open, open, pass});
    one_less.skipped = 2;
    CHECK(walked(std::move(one_less)).repeats == 4);
    CHECK(one_less.asked_at == vector<int>{2, 3, 4});
}

TEST_CASE("a fail takes a third repeat, whatever the method") {
    const objective_columns two = repeats_with(2), three = repeats_with(3);
    const decision early = walked(scripted(two, {fail}));
    CHECK(early.outcome == open);
    REQUIRE(early.why.size() == 1);
    CHECK(early.why[0].what == because::too_few_to_fail);
    CHECK(walked(scripted(three, {fail, fail})).outcome == fail);
    // A single repeat decides nothing.
    const objective_columns one = repeats_with(1);
    CHECK(walked(scripted(one, {pass})).outcome == open);
    CHECK(walked(scripted(one, {fail})).why.empty());
}

TEST_CASE("what no failure may follow passes with the last repeat, and a fail may be a day's") {
    const objective_columns five = repeats_with(5);
    scripted errors(five, {pass, pass, pass, pass}, {.n = 1, .passes_at_the_end = true});
    const decision d = walked(std::move(errors));
    CHECK(d.outcome == pass);
    CHECK(d.repeats == 5);
    CHECK(walked(scripted(five, vector<verdict>(4, fail), {.n = 1, .is_of_days = true})).outcome ==
          open);
}

TEST_CASE("a fault, or nothing to judge, makes a verdict invalid") {
    const objective_columns five = repeats_with(5), none = repeats_with(0);
    const decision faulty = walked(scripted(five, {}, {.n = 1, .fault = {because::no_value}}));
    CHECK(faulty.outcome == verdict::invalid);
    CHECK(faulty.why[0].what == because::no_value);
    CHECK(walked(scripted(none, {})).why[0].what == because::nothing_measured);
    CHECK(walked(scripted(five, {pass}, {.n = 0})).outcome == verdict::invalid);
}
