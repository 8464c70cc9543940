// How fast whole rows are embedded, normed, gathered, gated and added up, beside a plain copy.
#include <cuda_bf16.h>
#include <fmt/format.h>

#include <vector>

#include "bench/cuda/speed.h"
#include "core/random.h"
#include "kernels/cuda/rows/rows.h"
#include "kernels/cuda/rows/unfused.h"
#include "kernels/ref/ops.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;
using namespace gauntlet::kernels::cuda;

constexpr float kEpsilon = 1e-5f;
constexpr float kLimit = 7;

std::string rows_text(std::int64_t rows, std::int64_t width) {
  return fmt::format("{} x {}", rows, width);
}

std::vector<std::int32_t> random_ids(std::int64_t count, std::int64_t below) {
  const Random random(21);
  std::vector<std::int32_t> ids;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
    ids.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(below), i)));
  }
  return ids;
}

/// The table of all tokens exceeds the L2 by itself: launches take other ids instead.
void time_embed(const Bench& bench, std::int64_t tokens) {
  const std::int64_t bytes = tokens * (kHidden * 6 + 4);
  const int copies = rotation(bytes);
  const auto pattern = random_bf16((1 << 20) + 3, 1);
  const Buffer table(kVocab * kHidden * 2, pattern);
  const auto ids = random_ids(tokens * copies, kVocab);
  const Buffer device_ids(ids);
  const PerLaunch<float> x(copies, tokens * kHidden);
  bench.report({.name = "embed",
                .shape = rows_text(tokens, kHidden),
                .bytes = static_cast<double>(bytes),
                .launch =
                    [&](int i, const Launch& how) {
                      embed({.table = table.as<__nv_bfloat16>(),
                             .ids = device_ids.as<std::int32_t>(i % copies * tokens * 4),
                             .x = x.at(i),
                             .num_tokens = tokens,
                             .hidden = kHidden},
                            how);
                    },
                .verify =
                    [&] {
                      const auto got = x.first();
                      for (const std::int64_t t : spots(tokens)) {
                        const auto id = std::int64_t{ids[static_cast<std::size_t>(t)]};
                        for (const std::int64_t c : spots(kHidden)) {
                          const auto at = static_cast<std::size_t>(id * kHidden + c);
                          expect_near("embed", got[static_cast<std::size_t>(t * kHidden + c)],
                                      bf16_float(pattern[at % pattern.size()]), 0);
                        }
                      }
                    }});
}

/// `experts`: rows added to each before it is normed; 0: none.
void time_norm(const Bench& bench, std::int64_t tokens, int experts) {
  const std::int64_t sum_bytes = experts > 0 ? (experts + 1) * kHidden * 4 : 0;
  const std::int64_t bytes = tokens * (kHidden * 6 + sum_bytes) + kHidden * 4;
  const int copies = rotation(bytes);
  const auto x = random_floats(tokens * kHidden, 1, 3);
  const auto added = random_floats(tokens * experts * kHidden, 2);
  const auto weight = random_floats(kHidden, 3);
  const PerLaunch<float> device_x(copies, x), device_added(copies, added),
      device_weight(copies, weight);
  const PerLaunch<std::uint16_t> out(copies, tokens * kHidden);
  const auto verify = [&] {
    const auto got = out.first();
    for (const std::int64_t t : spots(tokens)) {
      auto sum = row_of(x, t, kHidden);
      for (int e = 0; e < experts; ++e) {
        const auto row = row_of(added, t * experts + e, kHidden);
        for (std::size_t c = 0; c < row.size(); ++c) sum[c] += row[c];
      }
      const auto wanted = kernels::ref::rms_norm(sum, row_of(weight, 0, kHidden), kEpsilon);
      for (std::size_t c = 0; c < wanted.size(); ++c) {
        expect_bf16("norm", got[static_cast<std::size_t>(t * kHidden) + c], wanted[c]);
      }
    }
  };
  bench.report({.name = experts > 0 ? "norm, residual" : "norm",
                .shape = experts > 0
                             ? fmt::format("{} x {} + {} rows each", tokens, kHidden, experts)
                             : rows_text(tokens, kHidden),
                .bytes = static_cast<double>(bytes),
                .launch =
                    [&](int i, const Launch& how) {
                      norm({.x = device_x.at(i),
                            .experts = experts > 0 ? device_added.at(i) : nullptr,
                            .num_experts = experts,
                            .weight = device_weight.at(i),
                            .epsilon = kEpsilon,
                            .out = out.as<__nv_bfloat16>(i),
                            .out_stride = kHidden,
                            .num_tokens = tokens,
                            .hidden = kHidden},
                           how);
                    },
                .verify = verify});
}

/// Rows of tokens into the order of their experts' slots.
void time_gather(const Bench& bench, std::int64_t tokens) {
  const std::int64_t slots = tokens * kExpertsPerToken;
  const std::int64_t bytes = tokens * kHidden * 2 + slots * (kHidden * 2 + 4);
  const int copies = rotation(bytes);
  const auto x = random_bf16(tokens * kHidden, 1);
  const auto rows = random_ids(slots, tokens);
  const PerLaunch<std::uint16_t> device_x(copies, x), out(copies, slots * kHidden);
  const PerLaunch<std::int32_t> device_rows(copies, rows);
  const Buffer num_rows(std::vector<std::int32_t>{static_cast<std::int32_t>(slots)});
  bench.report({.name = "gather",
                .shape = rows_text(slots, kHidden),
                .bytes = static_cast<double>(bytes),
                .launch =
                    [&](int i, const Launch& how) {
                      gather({.x = device_x.as<__nv_bfloat16>(i),
                              .rows = device_rows.at(i),
                              .out = out.as<__nv_bfloat16>(i),
                              .stride = kHidden,
                              .most_rows = slots,
                              .num_rows = num_rows.as<std::int32_t>()},
                             how);
                    },
                .verify =
                    [&] {
                      const auto got = out.first();
                      for (const std::int64_t s : spots(slots)) {
                        const auto row = std::int64_t{rows[static_cast<std::size_t>(s)]};
                        for (const std::int64_t c : spots(kHidden)) {
                          expect_near("gather", got[static_cast<std::size_t>(s * kHidden + c)],
                                      x[static_cast<std::size_t>(row * kHidden + c)], 0);
                        }
                      }
                    }});
}

void time_add_residual(const Bench& bench, std::int64_t tokens) {
  const std::int64_t bytes = tokens * kHidden * 12;
  const int copies = rotation(bytes);
  const auto x = random_floats(tokens * kHidden, 1), y = random_floats(tokens * kHidden, 2);
  const PerLaunch<float> device_x(copies, x), device_y(copies, y);
  bench.report({.name = "add_residual",
                .shape = rows_text(tokens, kHidden),
                .bytes = static_cast<double>(bytes),
                .launch =
                    [&](int i, const Launch& how) {
                      add_residual({.x = device_x.at(i),
                                    .y = device_y.at(i),
                                    .num_tokens = tokens,
                                    .hidden = kHidden},
                                   how);
                    },
                .verify =
                    [&] {
                      const auto got = device_x.first();
                      for (const std::int64_t at : spots(tokens * kHidden)) {
                        const auto i = static_cast<std::size_t>(at);
                        expect_near("add_residual", got[i], double{x[i]} + y[i], 1e-6);
                      }
                    }});
}

void time_swiglu(const Bench& bench, std::int64_t tokens) {
  const std::int64_t rows = tokens * kExpertsPerToken, width = kHidden;
  const std::int64_t bytes = rows * width * 10;
  const int copies = rotation(bytes);
  const auto gate_up = random_floats(rows * 2 * width, 1, 9);
  const PerLaunch<float> device_gate_up(copies, gate_up);
  const PerLaunch<std::uint16_t> out(copies, rows * width);
  bench.report({.name = "swiglu",
                .shape = rows_text(rows, width),
                .bytes = static_cast<double>(bytes),
                .launch =
                    [&](int i, const Launch& how) {
                      swiglu({.gate_up = device_gate_up.at(i),
                              .gate_up_stride = 2 * width,
                              .out = out.as<__nv_bfloat16>(i),
                              .out_stride = width,
                              .width = width,
                              .most_rows = rows,
                              .limit = kLimit},
                             how);
                    },
                .verify =
                    [&] {
                      const auto got = out.first();
                      for (const std::int64_t r : spots(rows)) {
                        for (const std::int64_t c : spots(width)) {
                          const auto gate = static_cast<std::size_t>(2 * r * width + c);
                          expect_bf16("swiglu", got[static_cast<std::size_t>(r * width + c)],
                                      kernels::ref::swiglu(
                                          gate_up[gate],
                                          gate_up[gate + static_cast<std::size_t>(width)], kLimit));
                        }
                      }
                    }});
}

void run(const Bench& bench) {
  for (const std::int64_t tokens : kBatches) time_embed(bench, tokens);
  for (const std::int64_t tokens : kBatches) time_norm(bench, tokens, 0);
  for (const std::int64_t tokens : kBatches) time_norm(bench, tokens, kExpertsPerToken);
  for (const std::int64_t tokens : kBatches) time_gather(bench, tokens);
  for (const std::int64_t tokens : kBatches) time_add_residual(bench, tokens);
  for (const std::int64_t tokens : kBatches) time_swiglu(bench, tokens);
}

}  // namespace

int main() { return gauntlet::bench::run_on_gpu(run); }
