// recordings with blocks of prompts
#pragma once

#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/files/prefix_tree.hpp"
#include "extensions/sessions/core/corpus_reader.hpp"
#include "extensions/sessions/core/session_graph.hpp"

#include <cstdint>  // uint64_t
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

class block_reader : public corpus_reader {
protected:
    /// Returns the prompt that begins with these blocks.
    tree_prompt prompt_of(const checked_object& o, int block_tokens, int all, block_index& index) {
        std::vector<std::uint64_t> ids;
        for (const picojson::value& id : array_member(o.value(), "hash_ids"))
            ids.push_back(static_cast<std::uint64_t>(o.whole_of<long long>(
                id, "hash_ids", -max_count, max_count)));
        tree_prompt p;
        if (!index.add(corpus_.prompts, ids, block_tokens, all, p))
            fail("the prompts have over 20000000 blocks: cut the file first");
        return p;
    }
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
