// the report page: style, icons and script
// report.html needs no other file. Each drawing is an SVG with a text beside it; without the script
// the page is complete. Text of gates, servers and machines goes through xml_escaped, coordinates
// of drawings through pixels.
#pragma once

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr const char* page_style =
#include "core/reports/page/style.css.inc"
    ;

inline constexpr const char* page_icons =
#include "core/reports/page/icons.svg.inc"
    ;

// A plot's data-x and data-y are "scale low high unit"; the script reads values from the drawn
// lines. It inserts text as text, never as markup.
inline constexpr const char* page_script =
#include "core/reports/page/script.js.inc"
    ;

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
