// What the fuzzers of this directory try, one function each: it returns, or something is wrong.
#pragma once
#include <string_view>

namespace fuzz {

void http_response(std::string_view input);
void event_stream(std::string_view input);
void stream_event(std::string_view input);
void dataset(std::string_view input);
void api_answer(std::string_view input);
void stored_result(std::string_view input);
void metrics_page(std::string_view input);
void slo_text(std::string_view input);
void result_file(std::string_view input);
void websocket(std::string_view input);

}  // namespace fuzz
