#include "lab/author/knobs.h"

#include <gtest/gtest.h>

#include "core/check.h"

namespace gauntlet::lab::inline author {
namespace {

const std::vector<Knob> kDeclared = {
    {.name = "rows", .cpu = 256, .cuda = 4096, .min = 32, .max = 8192, .multiple_of = 32},
    {.name = "columns", .cpu = 128},
    {.name = "stages", .cuda = 4},
};

std::string error_of(const Knobs::Overrides& overrides) {
  const auto knobs = Knobs::defaults(kDeclared, BackendKind::cpu).with(kDeclared, overrides);
  if (knobs) return "";
  EXPECT_EQ(knobs.error().kind, ErrorKind::wrong_use);
  return knobs.error().message;
}

TEST(Knobs, takes_the_default_of_the_backend_or_of_the_other) {
  const Knobs cpu = Knobs::defaults(kDeclared, BackendKind::cpu);
  EXPECT_EQ(cpu["rows"], 256);
  EXPECT_EQ(cpu["columns"], 128);
  EXPECT_EQ(cpu["stages"], 4);
  const Knobs cuda = Knobs::defaults(kDeclared, BackendKind::cuda);
  EXPECT_EQ(cuda["rows"], 4096);
  EXPECT_EQ(cuda["columns"], 128);
  EXPECT_EQ(cuda["stages"], 4);
  EXPECT_EQ(cuda.all().size(), 3u);
}

TEST(Knobs, changes_what_is_overridden_and_nothing_else) {
  const Knobs defaults = Knobs::defaults(kDeclared, BackendKind::cpu);
  const auto changed = defaults.with(kDeclared, {{"rows", 64}});
  ASSERT_TRUE(changed);
  EXPECT_EQ((*changed)["rows"], 64);
  EXPECT_EQ((*changed)["columns"], 128);
  EXPECT_EQ(defaults["rows"], 256);
}

TEST(Knobs, accepts_the_ends_of_the_range_and_nothing_beyond) {
  EXPECT_EQ(error_of({{"rows", 32}}), "");
  EXPECT_EQ(error_of({{"rows", 8192}}), "");
  EXPECT_EQ(error_of({{"rows", 0}}), "rows=0 is out of range: it must be between 32 and 8192");
  EXPECT_EQ(error_of({{"rows", 8224}}),
            "rows=8224 is out of range: it must be between 32 and 8192");
  EXPECT_NE(error_of({{"columns", -1}}).find("out of range"), std::string::npos);
}

TEST(Knobs, refuses_a_value_that_does_not_divide) {
  EXPECT_EQ(error_of({{"rows", 33}}), "rows=33 does not fit: it must be a multiple of 32");
}

TEST(Knobs, names_the_nearest_knob_and_all_of_them) {
  EXPECT_EQ(error_of({{"rwos", 64}}),
            "there is no knob 'rwos', did you mean 'rows'?; the knobs are: rows, columns, stages");
  const auto none = Knobs{}.with({}, {{"rows", 1}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "there is no knob 'rows'; the knobs are: none");
}

TEST(Knobs, faults_a_pair_that_asks_for_what_it_did_not_declare) {
  EXPECT_THROW(Knobs::defaults(kDeclared, BackendKind::cpu)["depth"], Fault);
}

}  // namespace
}  // namespace gauntlet::lab::inline author
