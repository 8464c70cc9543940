#include "cli/table.h"

#include "core/check.h"

namespace gauntlet::cli {
namespace {

/// Columns a terminal shows: code points, not bytes.
std::size_t width_of(const std::string& text) {
  std::size_t width = 0;
  for (char c : text) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return width;
}

}  // namespace

Table::Table(std::vector<std::string> headers) : headers_(std::move(headers)) {
  for (std::string& header : headers_) {
    right_.push_back(!header.empty() && header[0] == '>');
    if (right_.back()) header.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  check(cells.size() == headers_.size(), "a table row needs a cell per column");
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const std::string& header : headers_) widths.push_back(width_of(header));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  const auto put = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - width_of(row[i]), ' ');
      line += right_[i] ? pad + row[i] : row[i] + pad;
      if (i + 1 < row.size()) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  put(headers_);
  for (const auto& row : rows_) put(row);
  return text;
}

}  // namespace gauntlet::cli
