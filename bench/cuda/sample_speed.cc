// How fast a token is chosen from logits that lie on the GPU: the likeliest, or a draw from what
// the filters leave.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "bench/cuda/speed.h"
#include "core/random.h"
#include "kernels/cuda/sampling/sample.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;
using namespace gauntlet::kernels::cuda;

/// Logits are wanted of the tokens that are sampled only: there are never thousands.
constexpr std::int64_t kRows[] = {1, 8, 64};

class Logits {
 public:
  explicit Logits(std::int64_t rows)
      : rows_(rows),
        copies_(rotation(bytes())),
        values_(random_floats(rows * kVocab, 7, 6)),
        device_(copies_, values_) {}

  std::int64_t rows() const { return rows_; }
  std::int64_t bytes() const { return rows_ * kVocab * 4; }
  const float* row(std::int64_t row) const { return values_.data() + row * kVocab; }
  float* at(int launch) const { return device_.at(launch); }
  /// log(sum(exp(.))) of a row.
  double normaliser(std::int64_t r) const {
    double sum = 0;
    for (std::int64_t i = 0; i < kVocab; ++i) sum += std::exp(double{row(r)[i]});
    return std::log(sum);
  }

 private:
  std::int64_t rows_;
  int copies_;
  std::vector<float> values_;
  PerLaunch<float> device_;
};

void time_greedy(const Bench& bench, std::int64_t rows) {
  const Logits logits(rows);
  const Buffer out(rows * static_cast<std::int64_t>(sizeof(RowChoice)));
  bench.report({.name = "sample_greedy",
                .shape = fmt::format("{} x {}", rows, kVocab),
                .bytes = static_cast<double>(logits.bytes()),
                .launch =
                    [&](int i, const Launch& how) {
                      sample_greedy({.logits = logits.at(i),
                                     .stride = kVocab,
                                     .num_rows = rows,
                                     .vocab = kVocab,
                                     .out = out.as<RowChoice>()},
                                    how);
                    },
                .verify =
                    [&] {
                      for (const std::int64_t r : spots(rows)) {
                        const float* row = logits.row(r);
                        const auto best = std::max_element(row, row + kVocab) - row;
                        const auto choice = out.value<RowChoice>(r);
                        expect_near("the likeliest token", choice.token, static_cast<double>(best),
                                    0);
                        expect_near("its log-probability", choice.log_probability,
                                    row[best] - logits.normaliser(r), 1e-3);
                      }
                    }});
}

/// Where the chosen token's weight lies among those that the filters leave, laid end to end in the
/// order of ids: it must hold the point.
void verify_draw(const float* row, const DrawParams& how, std::int32_t token) {
  check(token >= 0 && token < kVocab, "sample: the token does not exist");
  std::vector<std::int32_t> ids(static_cast<std::size_t>(kVocab));
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::sort(ids, {}, [&](std::int32_t id) { return std::pair(-row[id], id); });
  if (how.top_k > 0) ids.resize(static_cast<std::size_t>(how.top_k));
  std::vector<double> weights(static_cast<std::size_t>(kVocab), 0);
  double total = 0;
  for (const std::int32_t id : ids) {
    const double weight = std::exp((double{row[id]} - row[ids[0]]) / how.temperature);
    weights[static_cast<std::size_t>(id)] = weight;
    total += weight;
  }
  double held = 0;
  for (const std::int32_t id : ids) {
    double& weight = weights[static_cast<std::size_t>(id)];
    const double own = weight;
    if (held >= how.top_p * total || own < how.min_p) weight = 0;
    held += own;
  }
  total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double before = std::accumulate(weights.begin(), weights.begin() + token, 0.0) / total;
  const double own = weights[static_cast<std::size_t>(token)] / total;
  expect_near(fmt::format("sample: the place of token {}", token), how.point, before + own / 2,
              own / 2 + 1e-4);
}

struct Filter {
  const char* name;
  DrawParams params;
};

void time_draw(const Bench& bench, std::int64_t rows, const Filter& filter) {
  const Logits logits(rows);
  const Random random(9);
  std::vector<DrawParams> params(static_cast<std::size_t>(rows), filter.params);
  for (std::size_t r = 0; r < params.size(); ++r) params[r].point = random.unit(r);
  const Buffer device_params(params);
  const Buffer out(rows * static_cast<std::int64_t>(sizeof(RowChoice)));
  bench.report({.name = filter.name,
                .shape = fmt::format("{} x {}", rows, kVocab),
                .bytes = static_cast<double>(logits.bytes()),
                .launch =
                    [&](int i, const Launch& how) {
                      sample({.logits = logits.at(i),
                              .stride = kVocab,
                              .num_rows = rows,
                              .vocab = kVocab,
                              .params = device_params.as<DrawParams>(),
                              .out = out.as<RowChoice>()},
                             how);
                    },
                .verify =
                    [&] {
                      for (const std::int64_t r : spots(rows)) {
                        const auto choice = out.value<RowChoice>(r);
                        verify_draw(logits.row(r), params[static_cast<std::size_t>(r)],
                                    choice.token);
                        expect_near("a drawn token's log-probability", choice.log_probability,
                                    logits.row(r)[choice.token] - logits.normaliser(r), 1e-3);
                      }
                    }});
}

void run(const Bench& bench) {
  for (const std::int64_t rows : kRows) time_greedy(bench, rows);
  for (const Filter& filter :
       {Filter{"sample", {.temperature = 1}},
        Filter{"sample, top-k 50", {.temperature = 1, .top_k = 50}},
        Filter{"sample, top-k 1000", {.temperature = 1, .top_k = 1000}},
        Filter{"sample, top-p 0.9", {.temperature = 1, .top_p = 0.9f}},
        Filter{"sample, top-k 50, p 0.9", {.temperature = 1, .top_p = 0.9f, .top_k = 50}},
        Filter{"sample, min-p 0.05", {.temperature = 1, .min_p = 0.05f}}}) {
    for (const std::int64_t rows : kRows) time_draw(bench, rows, filter);
  }
}

}  // namespace

int main() { return gauntlet::bench::run_on_gpu(run); }
