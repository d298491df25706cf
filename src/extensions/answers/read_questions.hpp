// questions, read from their file
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/workload.hpp"
#include "effects/system/files.hpp"
#include "extensions/answers/api.hpp"
#include "extensions/answers/core/questions.hpp"

#include <cstdint>  // uint64_t
#include <memory>  // make_shared

namespace llmbench {
inline namespace v1 {
namespace detail {

class questions_of_files final : public workload_extension {
public:
    void read(const box& said, const scenario& s, std::uint64_t seed,
              workload_files& into) const override {
        const questions& q = *said.get<questions>();
        check_questions(q, s.options);
        byte_stream in = bytes_of(str(q.path), "workload.path");
        into.dialogues = read_questions(in, q, seed);
        into.of_extension = std::make_shared<const asked_questions>(q, into.dialogues);
    }
};
inline const questions_of_files reads_questions{};

const workload_extension* const include_llmbench_answers_hpp_where_LLMBENCH_MAIN_is =
    &reads_questions;

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
