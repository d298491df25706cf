// APIs that generate nothing, by their short names
#pragma once

#include "api/own_api.hpp"

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Defined in this extension's implementation. If it is missing, the linker shows the name.
extern const bool include_llmbench_embeddings_hpp_where_LLMBENCH_MAIN_is;

static_assert(static_cast<api_format>(openai_embeddings) == api_format::openai_embeddings &&
              static_cast<api_format>(sglang_score) == api_format::sglang_score);
template <class A>
struct include_llmbench_embeddings_hpp {
    static api_format format_of(A a) {
        return include_llmbench_embeddings_hpp_where_LLMBENCH_MAIN_is ? static_cast<api_format>(a)
                                                                  : openai_chat;
    }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
