// Do the pages say what committed records say? A table of measurements stands under a line that
// names its records,
//   <!-- figures: tests/gpu/engine.json tests/records/peers-h200.json -->
// or under one that says why its numbers were not measured, <!-- no measurements: defaults -->;
// sentences hold none. With GAUNTLET_WRITE_FIGURES=1 tables are corrected by their records: `make
// figures`.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/text/text.h"
#include "stats/interval_json.h"
#include "tests/pages/doc_tables.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<double> numbers_of(const stats::Interval& interval) {
  return {interval.value, interval.lo, interval.hi};
}
std::vector<double> interval_in(const json& estimate) {
  return numbers_of(stats::interval_from_json(estimate));
}

/// Targets of the GPU record, by their ids, and how many have which status.
FiguresByRow figures_of_targets(const json& record) {
  const std::string kTarget = "target ";
  FiguresByRow figures;
  std::map<std::string, double> targets;
  for (const char* status : {"passed", "no_gain", "wrong", "skipped"}) targets[status] = 0;
  for (const auto& [name, unit] : record.at("units").items()) {
    if (!name.starts_with(kTarget)) continue;
    ++targets[unit.at("status").get<std::string>()];
    if (!unit.contains("speedup")) continue;
    figures[name.substr(kTarget.size())] = {
        .columns = {{"speedup", interval_in(unit.at("speedup"))}},
        .no_gain = unit.at("status") == "no_gain"};
  }
  for (const auto& [status, count] : targets) figures[status].columns = {{"targets", {count}}};
  return figures;
}

/// Rows of `gauntlet bench`, as "decode, batch 8, context 512", "prefill 2048", "prefill 32 × 512".
FiguresByRow figures_of_bench(const json& reports) {
  FiguresByRow figures;
  for (const json& report : reports) {
    for (const json& row : report.at("rows")) {
      const auto number = [&](const char* name) {
        return std::to_string(row.at(name).get<std::int64_t>());
      };
      std::string name = "decode, batch " + number("batch") + ", context " + number("context");
      if (row.at("test") == "prefill") {
        if (number("context") != "0") continue;  // after other prompts
        name =
            "prefill " + (number("batch") == "1" ? "" : number("batch") + " × ") + number("tokens");
      }
      figures[name].columns = {
          {"Gauntlet", interval_in(row.at("tok_s"))},
          {"of the limit", {row.at("percent_of_limit").get<double>()}},
          {"experts used per layer", {row.at("experts_per_layer").get<double>()}}};
    }
  }
  return figures;
}

/// Comparisons of bench/serving.py, by their names: what is better by how much, or for a server how
/// much of decoding alone is left.
FiguresByRow figures_of_serving(const json& record) {
  FiguresByRow figures;
  for (const auto& [name, result] : record.at("results").items()) {
    auto& columns = figures["`" + name + "`"].columns;
    if (!result.contains("ratio")) {
      columns["of decoding alone"] = interval_in(result.at("of_decode"));
      continue;
    }
    columns["better by"] = interval_in(result.at("ratio"));
    for (const auto& [side, rounds] : result.at("figures").items()) {
      for (const json& round : rounds) {
        columns[side + ", ms"].push_back(1000 * round.at("value").get<double>());
        columns[side].push_back(round.at("value").get<double>());
      }
    }
  }
  return figures;
}

/// Targets of bench/targets.py: what the last side makes of the first, and of a yardstick.
FiguresByRow figures_of_cpu_targets(const json& record) {
  FiguresByRow figures;
  for (const auto& [name, result] : record.at("results").items()) {
    Figures& row = figures[name];
    row.no_gain = result.at("status") == "no_gain";
    for (const json& comparison : result.at("comparisons")) {
      const std::string kind = comparison.at("kind");
      if (kind == "step") continue;
      row.columns[kind == "yardstick" ? "of every thread's rate" : "speedup"] =
          interval_in(comparison.at("speedup"));
    }
  }
  return figures;
}

/// Texts of bench/tokenize.py.
FiguresByRow figures_of_tokens(const json& record) {
  FiguresByRow figures;
  for (const auto& [name, result] : record.at("results").items()) {
    figures[name].columns = {{"ms", {result.at("median_ms").get<double>()}},
                             {"MB/s", {result.at("mb_per_s").get<double>()}}};
  }
  return figures;
}

/// `gauntlet load --self-test`.
FiguresByRow figures_of_self_test(const json& record) {
  const json& result = record.at("result");
  const auto scaled = [&](const char* percentile) {
    std::vector<double> milliseconds = interval_in(result.at("timestamp_delay_s").at(percentile));
    for (double& value : milliseconds) value *= 1000;
    return milliseconds;
  };
  const auto row = [](std::vector<double> numbers) {
    return Figures{.columns = {{"measured", std::move(numbers)}}};
  };
  return {{"events per second", row({result.at("events_per_s").get<double>()})},
          {"CPU time of an event", row({result.at("cpu_us_per_event").get<double>()})},
          {"of it the client's own, not the kernel's",
           row({result.at("user_us_per_event").get<double>()})},
          {"delay of timestamps, median", row(scaled("median"))},
          {"delay of timestamps, p99", row(scaled("p99"))}};
}

/// A model's perplexity, of the golden file that Hugging Face's implementation made.
FiguresByRow figures_of_golden(const json& golden) {
  const json& perplexity = golden.at("perplexity");
  return {{golden.at("model").get<std::string>(),
           {.columns = {{"perplexity", {perplexity.at("value").get<double>()}}}}}};
}

/// Figures of others: rows and columns as pages have them.
FiguresByRow figures_of_peers(const json& record) {
  FiguresByRow figures;
  for (const auto& [name, columns] : record.at("rows").items()) {
    for (const auto& [column, value] : columns.items()) {
      figures[name].columns[column] = {value.get<double>()};
    }
  }
  return figures;
}

std::filesystem::path root() { return GAUNTLET_SOURCE_DIR; }

json read_record(const std::string& path) {
  if (!std::filesystem::exists(root() / path)) throw std::runtime_error("no record " + path);
  return json::parse(read_text(root() / path));
}

FiguresByRow figures_of(const std::string& path) {
  static const std::map<std::string, FiguresByRow (*)(const json&)> kReaders = {
      {"tests/gpu/record.json", figures_of_targets},
      {"tests/gpu/engine.json", figures_of_bench},
      {"tests/golden/gauntlet-draft.json", figures_of_golden},
      {"tests/golden/gauntlet-tiny.json", figures_of_golden},
      {"tests/records/targets-cpu.json", figures_of_cpu_targets},
      {"tests/records/load-self-test.json", figures_of_self_test},
      {"tests/records/peers-h200.json", figures_of_peers},
      {"tests/records/serving-cpu.json", figures_of_serving},
      {"tests/records/tokens-cpu.json", figures_of_tokens}};
  const auto reader = kReaders.find(path);
  if (reader == kReaders.end()) throw std::runtime_error("nobody reads " + path);
  return reader->second(read_record(path));
}

const std::string kFiguresMark = "figures: ";
const std::string kExemptMark = "no measurements: ";

std::vector<std::string> records_of(const Table& table) {
  if (!table.mark.starts_with(kFiguresMark)) return {};
  return split_words(table.mark.substr(kFiguresMark.size()));
}

/// What several records say, column by column.
FiguresByRow figures_of(const Table& table) {
  FiguresByRow all;
  for (const std::string& record : records_of(table)) {
    for (auto& [name, figures] : figures_of(record)) {
      all[name].columns.merge(figures.columns);
      all[name].no_gain |= figures.no_gain;
    }
  }
  return all;
}

const std::vector<Page>& pages() {
  static const std::vector<Page> kPages = read_pages(root());
  return kPages;
}

std::string place(const Page& page, std::size_t line) {
  return fmt::format("{}:{}", page.path.lexically_relative(root()).string(), line + 1);
}

TEST(DocFigures, of_a_table_have_a_record) {
  for (const Page& page : pages()) {
    for (const Table& table : page.tables) {
      if (!shows_measurements(table)) continue;
      EXPECT_TRUE(!records_of(table).empty() || table.mark.starts_with(kExemptMark))
          << place(page, table.line) << ": a table of measurements without a record";
    }
  }
}

TEST(DocFigures, are_those_of_their_records) {
  const bool write = std::getenv("GAUNTLET_WRITE_FIGURES") != nullptr;
  int tables = 0;
  for (const Page& page : pages()) {
    std::vector<std::string> lines = page.lines;
    for (const Table& table : page.tables) {
      if (records_of(table).empty()) continue;
      ++tables;
      SCOPED_TRACE(place(page, table.line));
      const Checked checked = check_table(table, figures_of(table));
      EXPECT_THAT(checked.faults, IsEmpty());
      for (const auto& [line, corrected] : checked.corrected) {
        EXPECT_TRUE(write) << lines[line] << "\nis by its record\n" << corrected;
        lines[line] = corrected;
      }
    }
    if (!write || lines == page.lines) continue;
    std::ofstream file(page.path);
    for (const std::string& line : lines) file << line << '\n';
  }
  EXPECT_GE(tables, 5);
}

TEST(DocFigures, of_targets_leave_no_status_out) {
  const auto page = std::ranges::find(pages(), root() / "README.md", &Page::path);
  ASSERT_NE(page, pages().end());
  std::set<std::string> rows;
  for (const Table& table : page->tables) {
    for (const Row& row : table.rows) rows.insert(row.cells.at(0));
  }
  for (const auto& [name, figures] : figures_of("tests/gpu/record.json")) {
    EXPECT_TRUE(!figures.columns.contains("targets") || rows.contains(name)) << name;
  }
}

TEST(DocFigures, stand_in_tables_not_in_sentences) {
  for (const Page& page : pages()) {
    for (const std::size_t line : page.prose) {
      EXPECT_EQ(measurement_in_prose(page.lines[line]), "") << place(page, line);
    }
  }
}

TEST(DocFigures, of_every_record_are_on_some_page) {
  std::set<std::string> quoted;
  for (const Page& page : pages()) {
    for (const Table& table : page.tables) {
      for (const std::string& record : records_of(table)) quoted.insert(record);
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(root() / "tests/records")) {
    if (entry.path().extension() != ".json") continue;
    EXPECT_TRUE(quoted.contains("tests/records/" + entry.path().filename().string()))
        << entry.path();
  }
}

Table table_of(const std::string& rows) {
  const Page page =
      parse_page("a.md", "<!-- figures: r.json -->\n| x | speedup | why |\n|---|---|---|\n" + rows);
  return page.tables.at(0);
}

TEST(DocFigures, that_differ_are_found_and_corrected) {
  const FiguresByRow figures = {
      {"ch01:a", {.columns = {{"speedup", {1.234, 1.2, 1.3}}}}},
      {"ch01:b", {.columns = {{"speedup", {20412, 20100, 20499}}}}},
      {"ch01:c", {.columns = {{"speedup", {1, 0.99, 1.01}}}, .no_gain = true}}};
  const auto check = [&](const std::string& row) { return check_table(table_of(row), figures); };
  const auto fine = [&](const std::string& row) {
    return check(row).faults.empty() && check(row).corrected.empty();
  };
  EXPECT_TRUE(fine("| ch01:a | 1.23× [1.20, 1.30] | |"));
  EXPECT_TRUE(fine("| ch01:b | 20,412 [20,100, 20,499] | adjacent words |"));
  EXPECT_TRUE(fine("| ch01:c | 1.00× [0.99, 1.01] `no_gain` | |"));
  EXPECT_EQ(check("| ch01:a | 1.24× [1.20, 1.30] | |").corrected.at(3),
            "| ch01:a | 1.23× [1.20, 1.30] | |");
  EXPECT_EQ(check("| ch01:b | 20413 [20,100, 20,499] | |").corrected.at(3),
            "| ch01:b | 20,412 [20,100, 20,499] | |");
  EXPECT_THAT(check("| ch01:c | 1.00× [0.99, 1.01] | |").faults, ElementsAre(HasSubstr("no_gain")));
  EXPECT_THAT(check("| ch01:a | 1.23× | |").faults, Contains(HasSubstr("1 figures")));
  EXPECT_THAT(check("| ch01:b | much | |").faults, Contains(HasSubstr("no figure")));
  EXPECT_THAT(check("| ch01:d | 1.23× [1.20, 1.30] | |").faults,
              ElementsAre(HasSubstr("not in the record")));
  EXPECT_THAT(check("| ch01:a | 1.23× [1.20, 1.30] | 3 µs less |").faults,
              ElementsAre(HasSubstr("'why'")));
}

TEST(DocFigures, are_told_from_settings_and_names) {
  const auto measured = [](const std::string& row) { return shows_measurements(table_of(row)); };
  EXPECT_TRUE(measured("| gate_up | 412 | 184 |")) << "bare numbers";
  EXPECT_TRUE(measured("| gate_up | 16.6 (2.1 TB/s) | |"));
  EXPECT_TRUE(measured("| layer 1 | 1.72 [1.72, 1.73] | |"));
  EXPECT_TRUE(measured("| load | about 19 s | |"));
  EXPECT_TRUE(measured("| cost | 5% | none |"));
  EXPECT_FALSE(measured("| `--chunk` | `8 ms` | 1 |")) << "code, and a single number";
  EXPECT_FALSE(measured("| heads | 4 / 2 / 64 | sm_90 |"));
  EXPECT_FALSE(measured("| tiles | 64 × 64 of bf16 | `a|b` |"));
}

TEST(DocFigures, of_sentences_are_found) {
  EXPECT_EQ(measurement_in_prose("it makes 19,400 events/s here"), "19,400 events/s");
  EXPECT_EQ(measurement_in_prose("is 6.35 [6.34, 6.36] of it"), "6.35 [6.34, 6.36]");
  EXPECT_EQ(measurement_in_prose("worth 1.04× at batch 8"), "1.04×");
  EXPECT_EQ(measurement_in_prose("tiles of 16 × 64, `--rate 8 tok/s`, [ADR 4](a.md)"), "");
}

}  // namespace
}  // namespace gauntlet::tests
