// Greedy tokens without all logits: products with the head's bytes bound every logit, and only the
// groups of rows that may hold the largest are computed exactly. The token is the full head's.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/cpu/split.h"
#include "engine/cpu/step.h"
#include "kernels/cpu/screen.h"

namespace gauntlet::engine::cpu {

class ScreenedHead {
 public:
  /// Takes next to no memory where the plan has a full head.
  ScreenedHead(const Machine& machine, SpinBarrier& barrier);

  /// Row r as it will be multiplied, rounded for `precision` before; by one worker.
  void prepare(const Rows& rows, kernels::cpu::Precision precision, std::int64_t r);
  /// After all rows are prepared: whether the bounds hold for them.
  bool holds(std::int64_t num_rows) const;
  struct Work {
    const Rows& rows;
    kernels::cpu::Precision precision;
    std::int64_t num_rows;
    float* logits;  // [num_rows, stride] to work in
    std::int64_t stride;
  };
  /// Called by each worker once.
  void run(const Work& work, int worker);

  /// After every worker's run().
  std::int32_t token(std::int64_t r) const { return tokens_[r]; }
  std::int64_t exact_groups() const { return std::ssize(workers_[0].groups); }

 private:
  struct Worker {
    float lowers[kScreenedRows] = {};
    std::vector<std::int64_t> groups;  // of all workers: those that may hold a largest logit
  };

  void bound(const Work& work, const Share& share, Worker& own);
  void choose_groups(std::int64_t num_rows, Worker& own) const;
  std::int32_t largest(const float* logits, const Worker& own) const;

  const Machine& machine_;
  SpinBarrier& barrier_;
  std::int64_t width_;
  std::vector<float> seen_;  // [rows, width]
  std::vector<std::int8_t> high_, low_;
  std::vector<float> steps_;
  std::vector<std::int32_t> offsets_;
  kernels::cpu::ScreenBound bounds_[kScreenedRows];
  std::vector<float> uppers_;  // [rows, groups]
  std::vector<Worker> workers_;
  std::int32_t tokens_[kScreenedRows] = {};
};

}  // namespace gauntlet::engine::cpu
