// Tables and sentences of Markdown pages, and the measured figures in them.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace gauntlet::tests {

/// A row by its columns' names: what a record holds for each, in the order in which a cell prints
/// it.
struct Figures {
  std::map<std::string, std::vector<double>> columns;
  bool no_gain = false;  // of a target
};
using FiguresByRow = std::map<std::string, Figures>;  // by what the first cell of a row calls them

struct Row {
  std::size_t line = 0;  // of its page, from 0
  std::vector<std::string> cells;
};
struct Table {
  std::string mark;  // the comment above: "figures: tests/gpu/record.json", "no measurements: why"
  std::vector<std::string> header;
  std::vector<Row> rows;
  std::size_t line = 0;
};

struct Page {
  std::filesystem::path path;
  std::vector<std::string> lines;
  std::vector<Table> tables;
  std::vector<std::size_t> prose;  // lines outside tables and code
};

Page parse_page(std::filesystem::path path, const std::string& text);
/// Every page of the tree.
std::vector<Page> read_pages(const std::filesystem::path& root);

/// Whether a table shows what somebody measured: an interval, a number with a unit of time, rate or
/// share, or a row of several plain numbers.
bool shows_measurements(const Table& table);
/// The first interval, rate or ratio of a sentence; empty when it has none.
std::string measurement_in_prose(const std::string& line);

/// The numbers of a cell, code left out: "10.82× [10.78, 10.86]" has three.
std::vector<std::string> numbers_of(const std::string& cell);
/// A value as the page prints another: with as many decimals, and commas from 1,000 on.
std::string printed_like(const std::string& printed, double value);

/// The row as its record has it; faults are what cannot be told by replacing numbers.
struct Checked {
  std::vector<std::string> faults;
  std::map<std::size_t, std::string> corrected;  // lines, where they differ
};
Checked check_table(const Table& table, const FiguresByRow& figures);

}  // namespace gauntlet::tests
