#include "core/storage/io_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <numeric>
#include <vector>

#include "core/machine/host_features.h"
#include "core/storage/stored_words.h"

namespace gauntlet {
namespace {

class IoRingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto compiled = IoRing::compiled(); !compiled) {
      GTEST_SKIP() << compiled.error().message;
    }
    if (const auto probed = probe_io_uring(SystemFiles()); !probed) {
      GTEST_SKIP() << probed.error().message;
    }
    if (const auto probed = probe_direct_io(std::filesystem::temp_directory_path()); !probed) {
      GTEST_SKIP() << probed.error().message;
    }
    auto opened = IoRing::open(8);
    ASSERT_TRUE(opened) << opened.error().message;
    ring_ = std::move(*opened);
  }

  std::unique_ptr<IoRing> ring_;
};

TEST_F(IoRingTest, brings_every_read_once_whatever_their_order) {
  constexpr std::int64_t kPages = 100;
  StoredWords stored(kPages * kDirectBytes);
  std::vector<std::uint64_t> expected(kPages * kDirectBytes / 8), read(expected.size());
  stored.recompute(expected, 0);
  std::vector<int> answers(kPages, 0);
  std::int64_t asked = 0, answered = 0;
  while (answered < kPages) {
    for (; asked < kPages; ++asked) {
      const std::int64_t page = asked * 37 % kPages;
      if (!ring_->prepare({.file = stored.file().cached(),
                           .to = read.data() + page * kDirectBytes / 8,
                           .bytes = kDirectBytes,
                           .offset = page * kDirectBytes,
                           .tag = static_cast<std::uint64_t>(page)})) {
        break;
      }
    }
    EXPECT_GT(asked, answered) << "the queue holds what fits";
    ASSERT_TRUE(ring_->submit_and_wait(1));
    for (RingCompletion completion; ring_->take(completion); ++answered) {
      EXPECT_EQ(completion.result, kDirectBytes);
      ++answers.at(completion.tag);
    }
  }
  EXPECT_EQ(read, expected);
  EXPECT_TRUE(std::ranges::all_of(answers, [](int count) { return count == 1; }));
  EXPECT_EQ(ring_->completions(), static_cast<std::uint64_t>(kPages));
}

TEST_F(IoRingTest, hands_on_what_the_kernel_refused) {
  char byte = 0;
  ASSERT_TRUE(ring_->prepare({.file = -1, .to = &byte, .bytes = 1, .tag = 3}));
  ASSERT_TRUE(ring_->submit_and_wait(1));
  RingCompletion completion;
  ASSERT_TRUE(ring_->take(completion));
  EXPECT_EQ(completion.tag, 3u);
  EXPECT_EQ(completion.result, -EBADF);
  EXPECT_FALSE(ring_->take(completion));
}

TEST(IoRing, says_why_a_ring_cannot_be_had) {
  const auto ring = IoRing::open(0);
  ASSERT_FALSE(ring);
  EXPECT_GT(ring.error().message.size(), 20u);
}

}  // namespace
}  // namespace gauntlet
