// A model cut over two ranks, for tests of sums over ranks, and what both must compute with it.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <mutex>

#include "engine/golden.h"
#include "engine/steps/rank_sum.h"

namespace gauntlet::engine {

/// Keeps the pages of a model whose matrices were given other bytes.
class Kept final : public model::WeightStorage {
 public:
  explicit Kept(std::shared_ptr<model::WeightStorage> storage) : storage_(std::move(storage)) {}
  void release(const std::byte*, std::size_t) override {}

 private:
  std::shared_ptr<model::WeightStorage> storage_;
};

/// A matrix of zeros of the same type in place of another: one row for all.
inline void clear(model::Matrix& matrix) {
  static const std::vector<std::byte> zeros(1 << 16);
  ASSERT_LE(matrix.row_bytes(), std::ssize(zeros));
  matrix.data = zeros.data();
  if (matrix.scales != nullptr) matrix.scales = zeros.data();
  matrix.row_stride_bytes = matrix.scale_row_stride_bytes = 0;
}

/// What one of two ranks holds: o is the first one's, experts are theirs in turn.
inline model::ModelWeights half_of(model::ModelWeights weights, int rank) {
  weights.storage = std::make_shared<Kept>(weights.storage);
  for (model::LayerWeights& layer : weights.layers) {
    if (rank != 0) {
      clear(layer.o);
      layer.o_bias.assign(layer.o_bias.size(), 0.0f);
    }
    for (std::size_t e = 0; e < layer.experts.size(); ++e) {
      if (static_cast<int>(e % 2) == rank) continue;
      clear(layer.experts[e].down);
      layer.experts[e].down_bias.assign(layer.experts[e].down_bias.size(), 0.0f);
    }
  }
  return weights;
}

/// Two ranks on two threads: each waits for the other and adds in the order of ranks.
class SumOfTwo {
 public:
  void add_up(int rank, std::span<float> values) {
    std::unique_lock lock(mutex_);
    own_[rank].assign(values.begin(), values.end());
    meet(lock);
    ASSERT_EQ(own_[0].size(), own_[1].size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = own_[0][i] + own_[1][i];
    meet(lock);
  }

 private:
  void meet(std::unique_lock<std::mutex>& lock) {
    const std::int64_t round = round_;
    if (++arrived_ == 2) {
      arrived_ = 0;
      ++round_;
      changed_.notify_one();
    }
    changed_.wait(lock, [&] { return round_ != round; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  std::int64_t round_ = 0;
  std::vector<float> own_[2];
};
/// Logits after a prompt in chunks, and after two tokens more.
inline std::vector<std::vector<float>> logits_of(Executor& executor, std::int64_t chunk) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 60; ++i) ids.push_back(i * 37 % 4096);
  const SequenceId sequence = executor.kv().create();
  std::vector<std::vector<float>> all = {prefill(executor, sequence, ids, chunk).logits};
  for (const std::int32_t id : {7, 900}) all.push_back(decode(executor, sequence, id).logits);
  executor.kv().free(sequence);
  return all;
}

inline void expect_close(const std::vector<std::vector<float>>& expected,
                         const std::vector<std::vector<float>>& got, float tolerance) {
  ASSERT_EQ(expected.size(), got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(expected[i].size(), got[i].size());
    float worst = 0;
    for (std::size_t k = 0; k < got[i].size(); ++k) {
      worst = std::max(worst, std::abs(expected[i][k] - got[i][k]));
    }
    EXPECT_LE(worst, tolerance) << "step " << i;
  }
}

}  // namespace gauntlet::engine
