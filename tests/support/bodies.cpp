// What the parts have that is not inline, once for all unit tests. It leaves out what has effects, but for
// the reading of questions and sessions. Embeddings, searches, side tasks, WebSockets and counts of work are known.
#include "core/bodies/values.hpp"
#include "core/bodies/result.hpp"
#include "extensions/answers/read_questions.hpp"
#include "extensions/capacity/core/searches.hpp"
#include "extensions/embeddings/known_inputs.hpp"
#include "extensions/faults/bodies.hpp"
#include "extensions/sessions/read_sessions.hpp"
#include "extensions/websocket/bodies.hpp"
#include "extensions/work/core/words.hpp"

#include "core/base/extension.hpp"

// Of whom prime() is a step.
namespace llmbench {
inline namespace v1 {
namespace detail {
static constinit const extension work_by_name{.name = "work"};
constinit const extension* const include_llmbench_work_hpp_where_LLMBENCH_MAIN_is = &work_by_name;
}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
