// Does the host code of pairs that need machines we do not have move the right bytes?
#include "catalog/ch04/rdma_direct/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

namespace gauntlet::tests {
namespace {

namespace rdma = ch04::rdma_direct;

/// Copies as late as it may: when it is waited for.
class LateGpu final : public GpuBytes {
 public:
  explicit LateGpu(std::size_t bytes) : bytes_(bytes) {}
  std::byte* data() const override { return const_cast<std::byte*>(bytes_.data()); }
  void upload(std::size_t to, const void* from, std::size_t bytes) override {
    check(to + bytes <= bytes_.size(), "past the end");
    later_.push_back([this, to, from, bytes] { std::memcpy(data() + to, from, bytes); });
    moved_ += bytes;
  }
  void download(void* to, std::size_t from, std::size_t bytes) override {
    check(from + bytes <= bytes_.size(), "past the end");
    later_.push_back([this, to, from, bytes] { std::memcpy(to, data() + from, bytes); });
    moved_ += bytes;
  }
  void wait() override {
    for (const auto& copy : later_) copy();
    later_.clear();
  }
  std::uint64_t link_bytes() const override { return moved_; }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::function<void()>> later_;
  std::uint64_t moved_ = 0;
};

/// To itself. What is sent is read when the exchange starts or when it is over, whichever is worse:
/// the receiver's memory is overwritten at once, and has what was sent in the end.
class OwnNetwork final : public ranks::MpiExchange {
 public:
  Expected<void> takes_device_memory() const override { return {}; }
  Expected<void> start(int, const void* sent, int, void* received, std::size_t bytes) override {
    std::memset(received, 0xEE, bytes);
    under_way_.push_back([=] { std::memmove(received, sent, bytes); });
    return {};
  }
  Expected<void> finish(double) override {
    check(!under_way_.empty(), "nothing is under way");
    under_way_.front()();
    under_way_.pop_front();
    return {};
  }

 private:
  std::deque<std::function<void()>> under_way_;
};

class StagedRing : public testing::TestWithParam<std::size_t> {};

TEST_P(StagedRing, has_every_word_in_its_place_after_all_hops) {
  std::vector<std::uint32_t> in(GetParam()), out(in.size(), 1);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint32_t>(i * 2654435761u);
  const rdma::Params p{
      .in = in.data(), .out = out.data(), .words = std::ssize(in), .rank = 0, .num_ranks = 1};
  rdma::RankGpu rank(p, std::make_unique<LateGpu>(2 * p.bytes()), std::make_unique<OwnNetwork>());
  const auto slot = [] {
    return std::shared_ptr<std::byte>(new std::byte[rdma::kPieceBytes],
                                      std::default_delete<std::byte[]>());
  };
  const rdma::Staging staging{.out = {slot(), slot()}, .in = {slot(), slot()}};
  rank.run([&](std::size_t from, std::size_t to) { rdma::staged_hop(p, rank, staging, from, to); });
  EXPECT_TRUE(in == out);
  EXPECT_EQ(rank.gpu().link_bytes(), 2 * (rdma::kHops + 1) * p.bytes());
}

INSTANTIATE_TEST_SUITE_P(, StagedRing,
                         testing::Values(1, rdma::kPieceBytes / 4, rdma::kPieceBytes / 4 + 1,
                                         rdma::kPieceBytes, 5 * rdma::kPieceBytes / 4 - 7));

}  // namespace
}  // namespace gauntlet::tests
