// Numbers as a reader wants them, and the safe writing of foreign text into Markdown and HTML.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gauntlet::lab::report {

/// Three significant digits, never an exponent between 0.001 and 10^6: "0.0123", "12.3", "1290".
std::string significant(double value);
/// A bound of a speedup: two decimals, three where 1 is near and the third decides.
std::string factor(double value);
/// "2.31×"
std::string ratio(double value);
/// "12.3 µs"
std::string duration_ns(double ns);
/// "60.0 MiB"
std::string bytes(std::int64_t count);
/// "2026-11-15 02:31 UTC"
std::string utc(std::int64_t seconds);

/// Text that stays text in Markdown, in a table and in a terminal: no markup, no line breaks, no
/// control characters.
std::string markdown_text(std::string_view text);
/// A code span with the same promises.
std::string markdown_code(std::string_view text);
std::string html_text(std::string_view text);

/// A Markdown table whose columns line up in a terminal too.
struct MarkdownTable {
  std::vector<std::string> header;
  std::string alignment;                       // 'l' or 'r' for each column
  std::vector<std::vector<std::string>> rows;  // ready Markdown
};
std::string render(const MarkdownTable& table);

}  // namespace gauntlet::lab::report
