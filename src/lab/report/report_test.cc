#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lab/records/fake_results.h"
#include "lab/report/format.h"
#include "lab/report/html.h"
#include "lab/report/markdown.h"
#include "lab/report/summary.h"

namespace gauntlet::lab::report {
namespace {

Result measured(std::string id, double speedup, Status status = Status::passed) {
  return pair_result(std::move(id), around(speedup, 0.01), status, 2e6 / speedup);
}

RunRecord record_of(std::vector<Result> results) {
  return {.run_id = "run-1",
          .machine = {.cpu = {.model = "EPYC", .cores = 2}},
          .results = std::move(results)};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Summary, means_passed_comparison_pairs_only) {
  Result demonstration = measured("ch07:d", 100);
  demonstration.kind = "demonstration";
  Result memory = measured("ch07:m", 50);
  memory.goal = "memory";
  Result unnamed = measured("ch07:u", 50);
  unnamed.kind = "";
  const Summary summary = summarize(
      record_of({measured("ch07:a", 2), measured("ch07:b", 8), demonstration, memory,
                 ladder_result("labs:gemm"), unnamed, measured("ch07:n", 1, Status::no_gain),
                 measured("ch07:w", 1000, Status::wrong), Result{.id = "ch07:s"}}));
  ASSERT_EQ(summary.headlines.size(), 2u);
  EXPECT_EQ(summary.headlines[0].num_measured, 0) << "the lab is the GPU's only result";
  EXPECT_NEAR(summary.headlines[1].passed_speedup, 4, 1e-12);
  EXPECT_EQ(summary.headlines[1].num_passed, 2);
  EXPECT_NEAR(summary.headlines[1].measured_speedup, std::cbrt(16.0), 1e-12);
  EXPECT_EQ(summary.headlines[1].num_measured, 3);
  EXPECT_EQ(summary.demonstrations, 1);
  EXPECT_EQ(summary.labs, 1);
  EXPECT_EQ(summary.other_goals, 2);
  EXPECT_EQ(left_out_sentence(summary),
            "Left out of the means: 1 demonstration (its baseline exists to teach); 1 lab (it "
            "combines techniques); 2 pairs judged by another goal than speed.");
  EXPECT_EQ(summary.counts.at(Status::skipped), 1);
  EXPECT_EQ(summary.counts.at(Status::crashed), 0);
}

TEST(Summary, counts_a_swept_target_once) {
  Result low = measured("ch07:a", 2), high = measured("ch07:a", 8);
  low.sweep_key = high.sweep_key = "rows";
  const Summary summary = summarize(record_of({low, high, measured("ch07:b", 1)}));
  EXPECT_EQ(summary.headlines[0].num_passed, 2);
  EXPECT_NEAR(summary.headlines[0].passed_speedup, 2, 1e-12);
}

TEST(Summary, keeps_backends_apart) {
  Result gpu = measured("ch07:a", 9);
  gpu.backend = BackendKind::cuda;
  const Summary summary = summarize(record_of({measured("ch07:a", 3), gpu}));
  ASSERT_EQ(summary.headlines.size(), 2u);
  EXPECT_NEAR(summary.headlines[0].passed_speedup, 9, 1e-12);
  EXPECT_NEAR(summary.headlines[1].passed_speedup, 3, 1e-12);
}

TEST(Summary, claims_no_speedup_when_nothing_passed) {
  const Summary summary = summarize(record_of({Result{.id = "ch07:s"}}));
  EXPECT_EQ(headline_sentence(summary.headlines[0]), "no comparison pair was measured");
  EXPECT_EQ(counts_sentence(summary), "1 result: 1 skipped (a skip is not a pass).");
}

TEST(Format, picks_units_and_digits) {
  EXPECT_EQ(duration_ns(999.9), "1.00 µs");
  EXPECT_EQ(duration_ns(12'345), "12.3 µs");
  EXPECT_EQ(duration_ns(2.5e9), "2.50 s");
  EXPECT_EQ(duration_ns(0.25), "0.250 ns");
  EXPECT_EQ(bytes(60 << 20), "60.0 MiB");
  EXPECT_EQ(significant(123456), "123456");
  EXPECT_EQ(significant(3.1e-7), "3.10e-07");
  EXPECT_EQ(ratio(0.98), "0.98×");
  EXPECT_EQ(ratio(131.4), "131×");
  EXPECT_EQ(factor(1.0194), "1.019");
  EXPECT_EQ(utc(1794709000), "2026-11-15 02:16 UTC");
}

TEST(Format, keeps_foreign_text_text_in_markdown) {
  EXPECT_EQ(markdown_text("a|b <img> [x](y) *z*"), "a\\|b \\<img> \\[x\\](y) \\*z\\*");
  EXPECT_EQ(markdown_text("snake_case and _emphasis_"), "snake_case and \\_emphasis\\_");
  EXPECT_EQ(markdown_text("line\nbreak \x1b[31mred"), "line break  \\[31mred");
  EXPECT_EQ(markdown_code("a`b|c"), "`` a`b\\|c ``");
}

TEST(Markdown, puts_failures_before_chapters_and_aligns_columns) {
  Result wrong = measured("ch07:broken", 9, Status::wrong);
  wrong.reason = "differs at [3]";
  const std::string text = render_markdown(record_of({measured("ch07:a", 2), wrong}));
  const auto failures = text.find("## Failures"), chapter = text.find("## ch07");
  ASSERT_NE(failures, std::string::npos);
  EXPECT_LT(failures, chapter);
  EXPECT_TRUE(contains(text, "`ch07:broken` on cpu: **wrong**: differs at \\[3\\]"));
  EXPECT_TRUE(contains(text, "2.00×"));
  EXPECT_FALSE(contains(text, "9.00×")) << "a wrong result has no speedup";
  std::size_t width = 0, lines = 0;
  for (std::size_t at = chapter;
       (at = text.find("\n| ", at)) != std::string::npos && at < text.find("## Env");) {
    const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    std::size_t columns = 0;
    for (const char c : line) columns += (c & 0xC0) != 0x80;
    EXPECT_EQ(columns, width == 0 ? columns : width) << line;
    width = columns;
    ++lines;
    ++at;
  }
  EXPECT_EQ(lines, 4u);
}

TEST(Markdown, says_what_judges_a_pair_whose_goal_is_not_speed) {
  Result memory = measured("ch16:paged", 0.98);
  memory.goal = "memory";
  memory.metrics = {{"p99", {.unit = "ms", .sides = {{8, 7, 9}, {.value = std::nan("")}}}},
                    {"waste", {.unit = "%", .sides = {{.value = 76}, {.value = 3}}}}};
  EXPECT_TRUE(contains(render_markdown(record_of({memory})),
                       "judged by memory, not speed: p99 8.00 (7.00 to 9.00) → – ms; "
                       "waste 76.0 → 3.00 %"));
}

/// The line that starts with a cell, with single spaces.
std::string row_of(const std::string& text, const std::string& first_cell) {
  const auto at = text.find("\n| " + first_cell);
  if (at == std::string::npos) return "";
  std::string line;
  for (const char c : text.substr(at + 1, text.find('\n', at + 1) - at - 1)) {
    if (c != ' ' || line.back() != ' ') line += c;
  }
  return line;
}

TEST(Markdown, shows_a_lab_as_a_ladder) {
  Result lab = ladder_result("labs:gemm");
  lab.sides[2].ceiling_percent = 71;
  lab.comparisons[1].witness.moved = false;
  const std::string text = render_markdown(record_of({lab}));
  EXPECT_EQ(row_of(text, "`labs:gemm`"),
            "| `labs:gemm` | cuda | passed | 6.00× | 5.94 to 6.06 | 1.20 µs | 200 ns | 71% | "
            "1 of 2 steps |");
  EXPECT_TRUE(contains(text, "### `labs:gemm` on cuda"));
  EXPECT_EQ(row_of(text, "`naive`"), "| `naive` | 1.20 µs | | | | | | |");
  EXPECT_EQ(row_of(text, "`tiled`"),
            "| `tiled` | 400 ns | 3.00× | 2.97 to 3.03 | gain | 3.00× | | 32.0 → 4.00 |");
  EXPECT_EQ(row_of(text, "`async`"),
            "| `async` | 200 ns | 2.00× | 1.980 to 2.02 | gain | 6.00× | 71% | 32.0 → 4.00 (did "
            "not move) |");
  EXPECT_EQ(row_of(text, "`library`"), "| `library` | 150 ns | | | yardstick | | | |");
  EXPECT_TRUE(contains(text, "`async` runs at 0.75× the speed of the yardstick `library` (0.74"));
  EXPECT_TRUE(contains(text, "mechanism not witnessed in tiled → async: stalls did not move"));
}

TEST(Markdown, says_when_a_mechanism_was_not_witnessed) {
  Result result = measured("ch07:a", 2);
  result.comparisons[0].witness = {
      .name = "sectors", .source = "counter", .why_not = "run with --profile minimal"};
  EXPECT_TRUE(contains(render_markdown(record_of({result})),
                       "`ch07:a` on cpu: mechanism not witnessed: run with --profile minimal"));
  result.comparisons[0].witness.collected = result.comparisons[0].witness.moved = true;
  EXPECT_FALSE(contains(render_markdown(record_of({result})), "not witnessed"));
}

TEST(Html, lets_no_value_end_its_script) {
  Result hostile = measured("ch07:x", 2);
  hostile.reason = "</script><script>alert(1)</script><!--";
  RunRecord record = record_of({hostile});
  record.run_id = "<b>\"run\"";
  const std::string page = render_html(record);
  EXPECT_FALSE(contains(page, "<script>alert"));
  EXPECT_FALSE(contains(page, "<b>"));
  EXPECT_TRUE(contains(page, "<title>Gauntlet &lt;b&gt;&quot;run&quot;</title>"));

  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const auto start = page.find(open) + open.size();
  const auto data =
      nlohmann::json::parse(page.substr(start, page.find("</script>", start) - start));
  EXPECT_EQ(data.at("record").at("results").at(0).at("reason"), hostile.reason);
  EXPECT_EQ(data.at("unwitnessed").at(0), "mechanism not witnessed");
}

TEST(Html, needs_nothing_beside_it) {
  const std::string page = render_html(record_of({measured("ch07:a", 2)}));
  EXPECT_TRUE(contains(page, "default-src 'none'"));
  for (const char* outside : {"src=\"", "href=\"http", "@import", "url(http"}) {
    EXPECT_FALSE(contains(page, outside)) << outside;
  }
}

}  // namespace
}  // namespace gauntlet::lab::report
