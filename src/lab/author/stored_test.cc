#include "lab/author/stored.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "core/machine/host_features.h"

namespace gauntlet::lab::inline author {
namespace {

class StoredSides : public testing::Test {
 protected:
  void SetUp() override {
    const auto probed = probe_direct_io(std::filesystem::temp_directory_path());
    if (!probed) GTEST_SKIP() << probed.error().message;
  }
  void read_through_cache() {
    std::vector<unsigned char> out(static_cast<std::size_t>(stored_->bytes()));
    EXPECT_TRUE(read_fully(stored_->file().cached(), out, 0));
  }

  std::shared_ptr<StoredWords> stored_ = std::make_shared<StoredWords>(64 * kDirectBytes);
};

TEST_F(StoredSides, that_read_cold_begin_without_the_file_in_the_page_cache) {
  std::int64_t at_start = -1;
  const Side side = reading_cold(stored_, Side([&] {
                                   at_start = *stored_->file().cached_bytes();
                                   read_through_cache();
                                 }));
  read_through_cache();
  side.enter();
  side.run();
  side.leave();
  EXPECT_EQ(at_start, 0);
  EXPECT_EQ(
      side.take_outcomes().values,
      (std::map<std::string, double>{{"page_cache_bytes", static_cast<double>(stored_->bytes())}}));
  EXPECT_TRUE(side.take_outcomes().values.empty()) << "nothing was seen since";
}

TEST_F(StoredSides, that_read_hot_begin_with_all_of_the_file_in_the_page_cache) {
  std::int64_t at_start = -1;
  const Side side = reading_hot(stored_, Side([&] { at_start = *stored_->file().cached_bytes(); }));
  ASSERT_TRUE(stored_->file().evict());
  side.enter();
  side.run();
  EXPECT_EQ(at_start, stored_->bytes());
}

TEST(ExpectParts, are_those_of_the_file_one_behind_the_other) {
  const StoredWords stored(8 * kDirectBytes);
  Reference reference(1);
  reference.declare("out", DType::u8, 2 * kDirectBytes);
  const std::int32_t start[] = {5, 2};
  expect_parts(reference, "out", stored, start);
  std::vector<std::uint64_t> second(kDirectBytes / 8);
  stored.recompute(second, 2);
  const auto& out = reference.outputs().at("out").bytes;
  EXPECT_EQ(std::memcmp(out.data() + kDirectBytes, second.data(), kDirectBytes), 0);
}

}  // namespace
}  // namespace gauntlet::lab::inline author
