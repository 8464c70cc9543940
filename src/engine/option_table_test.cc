// Is an option one entry: does all that is said and done about it follow from there?
#include "engine/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace gauntlet::engine {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;

const GpuTraits kHopper{.name = "Hopper", .num_sms = 132, .has_bulk_copies = true};

/// The table and one more option, whose value is no member of EngineOptions.
class MadeUp : public testing::Test {
 protected:
  MadeUp() : table(option_table()) {
    const auto text = [this](const auto&) { return value == 1 ? "cold" : ""; };
    const auto force = [this](const EngineOptions&, const GpuTraits&,
                              CudaPlan& plan) -> Expected<void> {
      if (value == 2) return Error{"no GPU is lukewarm"};
      if (value == 1) {
        plan.variants.graphs = Graphs::off;
        plan.companions.push_back("one by one, because graphs are warm");
      }
      return {};
    };
    table.push_back(
        {.flag = {.name = "--made-up",
                  .help = "made up",
                  .words = {{"warm", [this](EngineOptions&) { value = 0; }},
                            {"cold", [this](EngineOptions&) { value = 1; }}},
                  .value =
                      [this](const EngineOptions&) {
                        return std::string(value == 0 ? "warm" : "cold");
                      }},
         .cpu = {.parts = {{.line = "weather", .text = text}}},
         .cuda = {.resolve = force,
                  .parts = {{.line = "weather", .text = text}, {.line = "kv", .text = text}}}});
  }

  OptionTable table;
  int value = 0;
};

TEST_F(MadeUp, option_says_nothing_while_its_text_is_empty) {
  EXPECT_EQ(describe(Plan{.cuda = resolve({}, kHopper).value()}, table),
            describe(Plan{.cuda = resolve({}, kHopper).value()}, option_table()));
}

TEST_F(MadeUp, option_joins_a_line_or_brings_its_own) {
  EngineOptions options;
  table.back().flag.words[1].set(options);
  const auto on_gpu = describe(Plan{.cuda = resolve(options, kHopper, table).value()}, table);
  EXPECT_THAT(on_gpu, Contains("weather: cold"));
  EXPECT_THAT(on_gpu, Contains("kv: bf16, paged, cold"));
  EXPECT_THAT(describe(resolve(options, table).value(), table), Contains("weather: cold"));
}

TEST_F(MadeUp, option_forces_others_and_is_refused) {
  value = 1;
  const CudaPlan plan = resolve({}, kHopper, table).value();
  EXPECT_EQ(plan.variants.graphs, Graphs::off);
  EXPECT_THAT(describe(Plan{.cuda = plan}, table),
              Contains("forced: one by one, because graphs are warm"));
  value = 2;
  EXPECT_FALSE(resolve({}, kHopper, table));
}

TEST(OptionTable, tells_the_value_of_every_word_it_takes) {
  std::set<std::string> names;
  for (const OptionEntry& entry : option_table()) {
    const OptionFlag& flag = entry.flag;
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    EXPECT_THAT(flag.help, Not(IsEmpty())) << flag.name;
    EXPECT_NE(flag.words.empty(), !flag.number) << flag.name;
    for (const OptionWord& word : flag.words) {
      EngineOptions options;
      const std::string before = flag.value(options);
      word.set(options);
      if (word.word.empty()) {
        EXPECT_NE(flag.value(options), before) << flag.name;
      } else {
        EXPECT_EQ(flag.value(options), word.word) << flag.name;
      }
    }
  }
}

TEST(OptionTable, shows_every_word_of_a_gpus_option_in_its_plan) {
  for (const OptionEntry& entry : option_table()) {
    if (entry.flag.group != FlagGroup::cuda) continue;
    std::set<std::vector<std::string>> seen;
    for (const OptionWord& word : entry.flag.words) {
      EngineOptions options;
      word.set(options);
      seen.insert(Plan{.cuda = resolve(options, kHopper).value()}.describe());
    }
    if (entry.flag.words.size() == 1)
      seen.insert(Plan{.cuda = resolve({}, kHopper).value()}.describe());
    EXPECT_EQ(seen.size(), std::max<std::size_t>(2, entry.flag.words.size())) << entry.flag.name;
  }
}

TEST(OptionTable, turns_each_row_on_from_what_is_off) {
  for (const OptionEntry& entry : option_table()) {
    for (const auto& row : {entry.cpu.row, entry.cuda.row}) {
      if (!row) continue;
      EngineOptions off, on;
      row->off(off);
      row->on(on);
      EXPECT_NE(entry.flag.value(off), entry.flag.value(on)) << row->id;
      row->on(off);
      EXPECT_EQ(entry.flag.value(off), entry.flag.value(on)) << row->id;
    }
  }
}

}  // namespace
}  // namespace gauntlet::engine
