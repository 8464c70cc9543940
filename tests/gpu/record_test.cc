// Does the record keep what a GPU said, and take from another what is better?
#include "tests/gpu/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/text/text.h"
#include "tests/gpu/fake_project.h"

namespace gauntlet::tests::gpu {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kTarget = "target ch07:copy";

Occasion at(const std::string& when) {
  return {.machine = "GPU, driver 1", .when = when, .run = "r-" + when, .commit = "abc"};
}

TEST(Record, reads_back_what_it_writes) {
  const FakeProject project;
  const Units units = project.units();
  Record record;
  record.put(*units.find(kTarget),
             {.status = "no_gain",
              .reason = "1.01 \"does\" not clear 1.02",
              .speedup = R"({"hi":1.03,"lo":1.0,"value":1.01})",
              .seconds = 7.5,
              .kind = "comparison",
              .witnesses = R"([{"moved":false,"name":"loads"}])",
              .ceiling_percent = R"({"optimized":90.5})"},
             at("2026-01-02"));
  const auto read = Record::from_json(record.to_json());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->to_json(), record.to_json());
  const UnitRecord* found = read->find(kTarget);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->verdict.status, "no_gain");
  EXPECT_EQ(found->verdict.reason, "1.01 \"does\" not clear 1.02");
  EXPECT_EQ(found->verdict.speedup, R"({"hi":1.03,"lo":1.0,"value":1.01})");
  EXPECT_EQ(found->verdict.seconds, 7.5);
  EXPECT_EQ(found->verdict.kind, "comparison");
  EXPECT_EQ(found->verdict.witnesses, R"([{"moved":false,"name":"loads"}])");
  EXPECT_EQ(found->verdict.ceiling_percent, R"({"optimized":90.5})");
  EXPECT_EQ(found->occasion.machine, "GPU, driver 1");
  EXPECT_TRUE(is_of(*found, *units.find(kTarget)));
}

TEST(Record, is_a_line_per_unit) {
  const FakeProject project;
  const Units units = project.units();
  Record record;
  for (const Unit& unit : units.all) record.put(unit, {.status = "passed"}, at("2026-01-02"));
  const auto lines = split_lines(record.to_json());
  for (const Unit& unit : units.all) {
    EXPECT_EQ(
        std::ranges::count_if(
            lines, [&](const auto& line) { return line.starts_with("\"" + unit.name + "\""); }),
        1);
  }
}

TEST(Record, takes_over_what_is_of_these_sources_and_then_what_is_later) {
  FakeProject project;
  const Units before = project.units();
  Record old_sources;
  old_sources.put(*before.find(kTarget), {.status = "passed"}, at("2026-01-09"));
  project.write("catalog/ch07/copy/optimized.cu", "int better;\n");
  const Units units = project.units();
  Record early, late;
  early.put(*units.find(kTarget), {.status = "passed"}, at("2026-01-02"));
  late.put(*units.find(kTarget), {.status = "no_gain"}, at("2026-01-03"));

  Record record = old_sources;
  record.merge(early, units);
  EXPECT_EQ(record.find(kTarget)->occasion.when, "2026-01-02");
  record.merge(late, units);
  EXPECT_EQ(record.find(kTarget)->occasion.when, "2026-01-03");
  record.merge(early, units);
  record.merge(old_sources, units);
  EXPECT_EQ(record.find(kTarget)->occasion.when, "2026-01-03");
  EXPECT_TRUE(Record::from_json(record.to_json())) << "the sources came along";
}

TEST(Record, forgets_units_and_sources_that_are_no_more) {
  FakeProject project;
  const Units before = project.units();
  Record record;
  record.put(*before.find(kTarget), {.status = "passed"}, at("2026-01-02"));
  record.put(*before.find("target ch01:one"), {.status = "passed"}, at("2026-01-02"));
  const std::string gone = before.find(kTarget)->sources.at("own").id();
  for (const char* file : {"pair.cc", "pair.h", "baseline.cu", "optimized.cu"}) {
    std::filesystem::remove(project.root() / "catalog/ch07/copy" / file);
  }
  record.prune(project.units());
  EXPECT_EQ(record.find(kTarget), nullptr);
  EXPECT_EQ(record.sources(gone), nullptr);
  EXPECT_NE(record.find("target ch01:one"), nullptr);
  EXPECT_TRUE(Record::from_json(record.to_json()));
}

TEST(Record, says_why_it_cannot_be_read) {
  const auto error = [](const std::string& text) {
    const auto record = Record::from_json(text);
    return record ? "" : record.error().message;
  };
  EXPECT_THAT(error("<<<<<<< HEAD"), StartsWith("the GPU record cannot be read: "));
  EXPECT_THAT(error("{}"), HasSubstr("of another format"));
  EXPECT_THAT(
      error(R"({"format": 2, "sources": {}, "units": {"a": {"status": "passed", "seconds": 1,
    "sources": {"own": "0123"}, "machine": "", "when": "", "run": "", "commit": ""}}})"),
      HasSubstr("names sources of 'a' that it does not have"));
}

}  // namespace
}  // namespace gauntlet::tests::gpu
