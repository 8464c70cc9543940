#include "core/storage/data_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "core/machine/host_features.h"
#include "core/os/fake_tree.h"
#include "core/os/pages.h"
#include "core/storage/stored_words.h"

namespace gauntlet {
namespace {

using testing::HasSubstr;

class OnDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto probed = probe_direct_io(std::filesystem::temp_directory_path()); !probed) {
      GTEST_SKIP() << probed.error().message;
    }
  }
};
class DataFileOnDisk : public OnDisk {};
class StoredWordsOnDisk : public OnDisk {};

std::unique_ptr<DataFile> made(std::int64_t bytes, const Random& words = Random(7)) {
  auto file = DataFile::of_words(std::filesystem::temp_directory_path(), bytes, words);
  if (!file) fail(file.error().message);
  return std::move(*file);
}

TEST_F(DataFileOnDisk, has_the_words_of_its_seed_past_and_through_the_page_cache) {
  const Random words(99);
  // More than is written at once, and not a multiple of a page.
  const auto file = made((std::int64_t{9} << 20) + 5, words);
  EXPECT_EQ(file->bytes(), (std::int64_t{9} << 20) + kDirectBytes);
  const HugePages buffer(file->bytes());
  for (const int descriptor : {file->direct(), file->cached()}) {
    ASSERT_TRUE(
        read_fully(descriptor, {buffer.data(), static_cast<std::size_t>(file->bytes())}, 0));
    const auto* read = reinterpret_cast<const std::uint64_t*>(buffer.data());
    for (std::int64_t i = 0; i < file->bytes() / 8; ++i) {
      ASSERT_EQ(read[i], words.bits(static_cast<std::uint64_t>(i))) << i;
    }
  }
}

TEST_F(DataFileOnDisk, leaves_nothing_in_the_page_cache_when_it_is_evicted) {
  const auto file = made(std::int64_t{4} << 20);
  ASSERT_TRUE(file->load());
  EXPECT_EQ(*file->cached_bytes(), file->bytes());
  const auto evicted = file->evict();
  ASSERT_TRUE(evicted) << evicted.error().message;
  EXPECT_EQ(*file->cached_bytes(), 0);
}

TEST_F(DataFileOnDisk, is_not_evicted_before_what_is_still_read_ahead_has_come) {
  const auto file = made(std::int64_t{64} << 20);
  ASSERT_TRUE(file->evict());
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::vector<unsigned char> first(kDirectBytes);
    ASSERT_TRUE(read_fully(file->cached(), first, 0));
    ::posix_fadvise(file->cached(), 0, 0, POSIX_FADV_WILLNEED);
    ASSERT_TRUE(file->evict());
    ::usleep(50000);
    EXPECT_EQ(*file->cached_bytes(), 0);
  }
}

TEST_F(DataFileOnDisk, leaves_nothing_in_the_page_cache_when_it_is_read_past_it) {
  const auto file = made(std::int64_t{4} << 20);
  ASSERT_TRUE(file->evict());
  const HugePages buffer(file->bytes());
  ASSERT_TRUE(
      read_fully(file->direct(), {buffer.data(), static_cast<std::size_t>(file->bytes())}, 0));
  EXPECT_EQ(*file->cached_bytes(), 0);
}

TEST_F(DataFileOnDisk, says_where_it_ends) {
  const auto file = made(kDirectBytes);
  std::vector<unsigned char> out(2 * kDirectBytes);
  EXPECT_THAT(read_fully(file->cached(), out, 0).error().message, HasSubstr("ends at 4096"));
}

TEST_F(DataFileOnDisk, leaves_no_name_behind) {
  FakeTree folder;
  const auto file = DataFile::of_words(folder.root(), kDirectBytes, Random(1));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(std::filesystem::is_empty(folder.root()));
}

TEST(DataFile, is_refused_where_there_is_no_disk) {
  const auto nowhere = DataFile::of_words("/no/such/folder", kDirectBytes, Random(1));
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message,
              testing::AllOf(HasSubstr("/no/such/folder"), HasSubstr("TMPDIR")));
  if (!std::filesystem::exists("/dev/shm")) return;
  const auto in_memory = DataFile::of_words("/dev/shm", kDirectBytes, Random(1));
  ASSERT_FALSE(in_memory);
  EXPECT_THAT(in_memory.error().message, HasSubstr("in memory"));
}

TEST_F(StoredWordsOnDisk, are_what_anybody_computes) {
  StoredWords stored(std::int64_t{1} << 20);
  std::vector<std::uint64_t> read(kDirectBytes / 8), computed(kDirectBytes / 8);
  const std::span<unsigned char> bytes{reinterpret_cast<unsigned char*>(read.data()), kDirectBytes};
  ASSERT_TRUE(read_fully(stored.file().cached(), bytes, 5 * kDirectBytes));
  stored.recompute(computed, 5);
  EXPECT_EQ(read, computed);
}

TEST(StoredWords, are_others_each_time) {
  std::vector<std::uint64_t> a(8), b(8);
  StoredWords(kDirectBytes).recompute(a, 0);
  StoredWords(kDirectBytes).recompute(b, 0);
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace gauntlet
