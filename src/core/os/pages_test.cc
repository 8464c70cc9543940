#include "core/os/pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/machine/host_features.h"

namespace gauntlet {
namespace {

constexpr const char* kSmaps =
    "00200000-00800000 rw-p 00000000 00:00 0 \n"
    "Size:               6144 kB\n"
    "AnonHugePages:      4096 kB\n"
    "VmFlags: rd wr mr mw me ac sd \n"
    "00a00000-00c00000 rw-p 00000000 00:00 0  [heap]\n"
    "AnonHugePages:      2048 kB\n";

TEST(HugePageBytes, are_those_of_the_mappings_in_a_range) {
  EXPECT_EQ(huge_page_bytes(kSmaps, 0x200000, 0x800000), 4 << 20);
  EXPECT_EQ(huge_page_bytes(kSmaps, 0x200000, 0xc00000), 6 << 20);
  EXPECT_EQ(huge_page_bytes(kSmaps, 0x800000, 0xa00000), 0);
}

TEST(HugePageBytes, counts_a_mapping_that_sticks_out_in_proportion) {
  EXPECT_EQ(huge_page_bytes(kSmaps, 0x200000, 0x500000), 2 << 20);
  EXPECT_EQ(huge_page_bytes(kSmaps, 0xb00000, 0xd00000), 1 << 20);
}

TEST(HugePageBytes, is_nothing_of_a_text_that_is_none) {
  EXPECT_EQ(huge_page_bytes("", 0, 1 << 30), 0);
  EXPECT_EQ(huge_page_bytes("AnonHugePages: 4 kB\nzz-yy\nffff-", 0, 1 << 30), 0);
}

TEST(HugePages, are_aligned_zeroed_and_what_the_kernel_calls_huge) {
  const HugePages pages(5'000'000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.data()) % kHugePageBytes, 0u);
  EXPECT_EQ(pages.bytes(), 3 * kHugePageBytes);
  EXPECT_TRUE(std::all_of(pages.data(), pages.data() + pages.bytes(),
                          [](unsigned char byte) { return byte == 0; }));
  if (const auto probed = probe_huge_pages(SystemFiles()); !probed) {
    GTEST_SKIP() << probed.error().message;
  }
  EXPECT_EQ(huge_page_bytes(pages.data(), pages.bytes()), pages.bytes());
}

TEST(UsePages, moves_a_range_to_small_pages_and_back_with_its_contents) {
  const HugePages pages(4 * kHugePageBytes);
  use_small_pages(pages.data(), pages.bytes());
  EXPECT_EQ(huge_page_bytes(pages.data(), pages.bytes()), 0);
  EXPECT_EQ(pages.data()[12345], 0);
  std::memset(pages.data(), 7, static_cast<std::size_t>(pages.bytes()));
  use_huge_pages(pages.data(), pages.bytes());
  EXPECT_TRUE(std::all_of(pages.data(), pages.data() + pages.bytes(),
                          [](unsigned char byte) { return byte == 7; }));
}

}  // namespace
}  // namespace gauntlet
