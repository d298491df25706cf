// the report page: style, icons and script
// report.html: one page that needs nothing from elsewhere. Every drawing is made here, as SVG with
// words beside it; the script adds what a pointer asks for, the page is whole without it. What a
// gate, a server or a machine says goes through xml_escaped, a place in a drawing through pixels.
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

// A plot's data-x and data-y are "scale low high unit"; the numbers under the pointer are read back
// from the lines themselves. Text goes in as text, never as markup.
inline constexpr const char* page_script =
#include "core/reports/page/script.js.inc"
    ;

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
