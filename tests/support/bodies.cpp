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
