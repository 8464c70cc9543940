#include "engine/cpu/screened_head.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace gauntlet::engine::cpu {

using kernels::cpu::kBlock;
using kernels::cpu::kGroupRows;
using kernels::cpu::Precision;

ScreenedHead::ScreenedHead(const Machine& machine, SpinBarrier& barrier)
    : machine_(machine),
      barrier_(barrier),
      width_(machine.model.screen.weights.cols),
      seen_(kScreenedRows * width_),
      high_(seen_.size()),
      low_(seen_.size()),
      steps_(seen_.size() / kBlock),
      offsets_(seen_.size() / kBlock),
      uppers_(kScreenedRows * machine.model.screen.weights.num_groups()),
      workers_(machine.workers) {}

void ScreenedHead::prepare(const Rows& rows, Precision precision, std::int64_t r) {
  const std::int64_t at = r * width_;
  float* seen = seen_.data() + at;
  if (precision == Precision::bf16) {
    const std::uint16_t* halves = rows.view(r).bf16;
    for (std::int64_t c = 0; c < width_; ++c) {
      seen[c] = std::bit_cast<float>(static_cast<std::uint32_t>(halves[c]) << 16);
    }
  } else {
    std::copy_n(rows.row(r), width_, seen);
  }
  bounds_[r] = kernels::cpu::round_to_two_bytes(
      {seen, static_cast<std::size_t>(width_)},
      {high_.data() + at, low_.data() + at, steps_.data() + at / kBlock,
       offsets_.data() + at / kBlock});
}

bool ScreenedHead::holds(std::int64_t num_rows) const {
  return std::all_of(bounds_, bounds_ + num_rows, [this](const auto& bound) {
    return bound.holds(machine_.model.screen.largest_norm);
  });
}

void ScreenedHead::run(const Work& work, int worker) {
  const Share share = share_of(machine_.model.screen.weights.num_groups(),
                               kernels::cpu::kTileGroups, worker, machine_.workers);
  machine_.kernels.product({.weights = machine_.model.screen.weights,
                            .precision = Precision::int8,
                            .group_begin = share.begin,
                            .group_end = share.end,
                            .num_tokens = work.num_rows,
                            .x = {.i8 = high_.data(),
                                  .i8_scales = steps_.data(),
                                  .i8_offsets = offsets_.data(),
                                  .stride = width_,
                                  .i8_low = low_.data()},
                            .out = work.logits,
                            .out_stride = work.stride});
  Worker& own = workers_[worker];
  bound(work, share, own);
  barrier_.wait();
  choose_groups(work.num_rows, own);
  const Share exact = share_of(std::ssize(own.groups), 1, worker, machine_.workers);
  for (std::int64_t i = exact.begin; i < exact.end; ++i) {
    machine_.kernels.product({.weights = machine_.model.lm_head,
                              .precision = work.precision,
                              .group_begin = own.groups[i],
                              .group_end = own.groups[i] + 1,
                              .num_tokens = work.num_rows,
                              .x = work.rows.view(),
                              .out = work.logits,
                              .out_stride = work.stride});
  }
  barrier_.wait();
  for (std::int64_t r = worker; r < work.num_rows; r += machine_.workers) {
    tokens_[r] = largest(work.logits + r * work.stride, own);
  }
}

/// Of the groups whose approximate logits this worker has just written.
void ScreenedHead::bound(const Work& work, const Share& share, Worker& own) {
  const Screen& screen = machine_.model.screen;
  const std::int64_t groups = screen.weights.num_groups();
  const std::int64_t first = share.begin * kGroupRows;
  const std::int64_t end = std::min(screen.weights.rows, share.end * kGroupRows);
  for (std::int64_t r = 0; r < work.num_rows; ++r) {
    own.lowers[r] =
        machine_.kernels.bound_rows({.rows = end - first,
                                     .values = work.logits + r * work.stride + first,
                                     .residual_norms = screen.residual_norms.data() + first,
                                     .norms = screen.norms.data() + first,
                                     .per_residual = bounds_[r].per_residual,
                                     .per_norm = bounds_[r].per_norm,
                                     .constant = bounds_[r].constant,
                                     .group_uppers = uppers_.data() + r * groups + share.begin});
  }
}

/// Each worker makes the same list for itself: that is cheaper than to meet once more.
void ScreenedHead::choose_groups(std::int64_t num_rows, Worker& own) const {
  const std::int64_t groups = machine_.model.screen.weights.num_groups();
  own.groups.clear();
  float lowers[kScreenedRows];
  for (std::int64_t r = 0; r < num_rows; ++r) {
    lowers[r] = -std::numeric_limits<float>::infinity();
    for (const Worker& worker : workers_) lowers[r] = std::max(lowers[r], worker.lowers[r]);
  }
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t r = 0; r < num_rows; ++r) {
      if (uppers_[r * groups + group] < lowers[r]) continue;
      own.groups.push_back(group);
      break;
    }
  }
}

/// The first of the largest: groups are in order.
std::int32_t ScreenedHead::largest(const float* logits, const Worker& own) const {
  const std::int64_t rows = machine_.model.lm_head.rows;
  std::int64_t best = own.groups.front() * kGroupRows;
  for (const std::int64_t group : own.groups) {
    const std::int64_t end = std::min(rows, (group + 1) * kGroupRows);
    for (std::int64_t row = group * kGroupRows; row < end; ++row) {
      if (logits[row] > logits[best]) best = row;
    }
  }
  return static_cast<std::int32_t>(best);
}

}  // namespace gauntlet::engine::cpu
