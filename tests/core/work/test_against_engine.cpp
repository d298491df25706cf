// What the model expects is what the simulated engine does: 1,000 drawn loads agree to the token,
// of each request.
#include "core/base/random.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "extensions/simulated/core/questions.hpp"
#include "extensions/work/core/model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// A load of conversations: who asks what is drawn, and how the server is set.
class drawn_load {
public:
    explicit drawn_load(std::uint64_t seed) : random_(seed, 1), engine_(drawn_engine()) {
        users_.resize(1 + random_.below(8));
        shared_ = fresh(random_.below(100));
        left_ = 4 + static_cast<int>(random_.below(28));
    }
    /// What each request found in the cache, and what was expected of it.
    void compare() {
        for (std::size_t u = 0; u < users_.size(); ++u) ask(u);
        while (!std::isinf(engine_.step_end()))
            for (const engine_model::emission& e : engine_.finish_step()) answer(e);
        vector<model_request> in_order;
        for (const int n : order_) in_order.push_back(all_[static_cast<std::size_t>(n)].what);
        const vector<work_done> each = expected_work(in_order, block());
        for (std::size_t i = 0; i < each.size(); ++i)
            CHECK(all_[static_cast<std::size_t>(order_[i])].cached == each[i].cached);
        const work_done sum = sum_of(each);
        CHECK(engine_.totals().cached_tokens == static_cast<double>(sum.cached));
        CHECK(engine_.totals().prompt_tokens == static_cast<double>(sum.cached + sum.prefilled));
        CHECK(engine_.totals().generated_tokens == static_cast<double>(sum.generated));
        CHECK(engine_.totals().finished == static_cast<double>(sum.requests));
        found += sum.cached;
    }
    static inline long long found = 0;

private:
    struct asked {
        model_request what{};
        std::size_t user = 0;
        long long cached = 0;
    };
    engine drawn_engine() {
        engine e;
        e.kv.block_tokens = static_cast<int>(1 + random_.below(40));
        e.slots = static_cast<int>(1 + random_.below(8));
        e.prefill_budget = static_cast<int>(16 + random_.below(2000));
        return e;
    }
    int block() const {
        return static_cast<int>(static_cast<long long>(engine_.settings().kv.block_tokens));
    }
    /// Few ids, so that some prompts begin alike by chance. Answers have many: what another one has
    /// said so far depends on time.
    token_ids fresh(std::uint64_t n, std::uint64_t ids = 3) {
        token_ids t;
        for (std::uint64_t i = 0; i < n; ++i) t.push_back(static_cast<int>(random_.below(ids)));
        return t;
    }
    static std::uint64_t hash_after(std::uint64_t before, int id) {
        return continued_hash(before, std::to_string(id));
    }
    vector<std::uint64_t> blocks_in(const token_ids& t) const {
        vector<std::uint64_t> hashes;
        std::uint64_t hash = 0;
        for (const int id : t) hashes.push_back(hash = hash_after(hash, id));
        return blocks_of(hashes, block());
    }
    void ask(std::size_t user) {
        if (left_-- <= 0) return;
        token_ids& history = users_[user];
        if (history.empty() || random_.uniform() < 0.3) history = shared_;
        for (const int id : fresh(1 + random_.below(60))) history.push_back(id);
        const int number = static_cast<int>(all_.size());
        const token_ids answer = fresh(1 + random_.below(40), 1'000'000);
        all_.push_back({{history, answer}, user, 0});
        order_.push_back(number);
        engine_.submit(now_, {static_cast<std::uint64_t>(number), static_cast<int>(history.size()),
                              static_cast<int>(answer.size()), blocks_in(history)});
    }
    void answer(const engine_model::emission& e) {
        asked& of = all_[static_cast<std::size_t>(e.id)];
        of.cached = e.cached;
        now_ = e.when.last_token;
        // As the service does: each block that the answer fills, but by its last token.
        int& said = said_[e.id];
        token_ids so_far = of.what.prompt;
        const int before = said;
        said += e.tokens;
        const int kept = std::min(said, static_cast<int>(of.what.answer.size()) - 1);
        so_far.insert(so_far.end(), of.what.answer.begin(), of.what.answer.begin() + kept);
        const vector<std::uint64_t> blocks = blocks_in(so_far);
        const std::size_t old = (of.what.prompt.size() + static_cast<std::size_t>(before)) /
                                static_cast<std::size_t>(block());
        for (std::size_t i = old; i < blocks.size(); ++i) engine_.keep_block(blocks[i]);
        if (!e.finished) return;
        token_ids& history = users_[of.user];
        history = of.what.prompt;
        history.insert(history.end(), of.what.answer.begin(), of.what.answer.end());
        ask(of.user);
    }

    generator random_;
    engine_model engine_;
    vector<token_ids> users_{};  // what each has heard and said
    token_ids shared_{};
    vector<asked> all_{};
    vector<int> order_{};
    std::map<std::uint64_t, int> said_{};
    double now_ = 0;
    int left_ = 0;
};

}  // namespace

TEST_CASE("1,000 drawn loads agree with the simulated engine to the token") {
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        CAPTURE(seed);
        drawn_load(seed).compare();
    }
    CHECK(drawn_load::found > 100'000);
}
