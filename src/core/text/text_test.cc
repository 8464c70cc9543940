#include "core/text/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace gauntlet {
namespace {

TEST(Nearest, finds_the_name_behind_a_typing_error) {
  const std::vector<std::string> valid = {"ch07:coalesced_copy", "ch07:transpose_padded", "ch08"};
  EXPECT_EQ(nearest("ch07:coalesed_copy", valid), "ch07:coalesced_copy");
  EXPECT_EQ(nearest("ch07:tranpsose_paded", valid), "ch07:transpose_padded");
  EXPECT_EQ(nearest("CH08", valid), "ch08");
}

TEST(Nearest, counts_a_swap_of_neighbours_once) {
  EXPECT_EQ(nearest("wram", {"worm", "warm"}), "warm");
}

TEST(Nearest, is_empty_when_nothing_is_near) {
  EXPECT_EQ(nearest("banana", {"rows", "columns"}), "");
  EXPECT_EQ(nearest("x", {"y"}), "");
  EXPECT_EQ(nearest("", {"a"}), "");
  EXPECT_EQ(nearest("rows", {}), "");
}

TEST(Nearest, takes_the_first_of_equals) { EXPECT_EQ(nearest("cat", {"bat", "hat"}), "bat"); }

TEST(FormatBytes, picks_the_unit_and_three_digits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(60.0 * 1024 * 1024), "60 MiB");
  EXPECT_EQ(format_bytes(139.8 * 1024 * 1024 * 1024), "140 GiB");
}

TEST(FormatBytes, moves_up_where_rounding_would_reach_1024) {
  EXPECT_EQ(format_bytes(1024 * 1024 - 1), "1 MiB");
}

TEST(FormatDuration, picks_the_unit) {
  EXPECT_EQ(format_duration_ns(0.42), "0.42 ns");
  EXPECT_EQ(format_duration_ns(12345), "12.3 us");
  EXPECT_EQ(format_duration_ns(1.85e6), "1.85 ms");
  EXPECT_EQ(format_duration_ns(2.4e9), "2.4 s");
  EXPECT_EQ(format_duration_ns(185e9), "3 min 05 s");
  EXPECT_EQ(format_duration_ns(2 * 3600e9 + 7 * 60e9), "2 h 07 min");
}

TEST(FormatDuration, never_shows_a_full_next_unit) {
  EXPECT_EQ(format_duration_ns(999.7), "1 us");
  EXPECT_EQ(format_duration_ns(59.99e9), "1 min 00 s");
  EXPECT_EQ(format_duration_ns(3599.7e9), "1 h 00 min");
}

TEST(FormatDuration, survives_infinity) {
  EXPECT_EQ(format_duration_ns(std::numeric_limits<double>::infinity()), "inf ns");
}

TEST(FormatRatio, keeps_the_digits_that_matter) {
  EXPECT_EQ(format_ratio(1.849), "1.85x");
  EXPECT_EQ(format_ratio(0.97), "0.97x");
  EXPECT_EQ(format_ratio(12.34), "12.3x");
  EXPECT_EQ(format_ratio(390.2), "390x");
}

TEST(FormatAge, speaks_in_the_largest_unit) {
  EXPECT_EQ(format_age(-5), "just now");
  EXPECT_EQ(format_age(59), "just now");
  EXPECT_EQ(format_age(60), "1 minute ago");
  EXPECT_EQ(format_age(3 * 86400 + 5), "3 days ago");
  EXPECT_EQ(format_age(800 * 86400LL), "2 years ago");
}

TEST(Slugify, keeps_letters_and_digits_with_single_dashes) {
  EXPECT_EQ(slugify("NVIDIA H200"), "nvidia-h200");
  EXPECT_EQ(slugify("  AMD (TM)  EPYC! "), "amd-tm-epyc");
  EXPECT_EQ(slugify("--"), "");
}

TEST(Split, separates_lines_and_words) {
  EXPECT_EQ(split_lines("a\n\nb"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split_lines("a\n"), (std::vector<std::string>{"a"}));
  EXPECT_TRUE(split_lines("").empty());
  EXPECT_EQ(split_words(" a\t b  "), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(trim("\n a b \n"), "a b");
}

}  // namespace
}  // namespace gauntlet
