// What causal attention must be, by float64: of a few kinds of keys, each query's scores are as
// few, and what it gives to all keys of a kind goes to the sum of their values.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "catalog/labs/attention_ladder/lab.h"
#include "core/os/threads.h"
#include "lab/author/fill_rule.h"
#include "lab/author/reference.h"

namespace gauntlet::labs::attention_ladder {

/// One head's keys by kind.
class KindScores {
 public:
  KindScores(const Params& p, std::int64_t head)
      : p_(p),
        first_(head * p.sequence),
        keys_(static_cast<std::size_t>(kKeyKinds * p.head_dim)),
        known_(kKeyKinds) {
    for (std::int64_t key = 0; key < p.sequence; ++key) {
      const auto kind = static_cast<std::size_t>(kind_of(key));
      if (known_[kind]) continue;
      known_[kind] = true;
      for (int d = 0; d < p.head_dim; ++d) {
        keys_[static_cast<std::size_t>(d * kKeyKinds) + kind] =
            to_float(p.k[(first_ + key) * p.head_dim + d]);
      }
    }
  }

  std::int64_t kind_of(std::int64_t key) const { return lab::row_kind(first_ + key, kKeyKinds); }

  /// What a query gives to one key of each kind, when it sees `counts` of them.
  void give(std::int64_t query, std::span<const double> counts, std::span<double> given) const {
    float scores[kKeyKinds] = {};  // whole numbers below 2^24: exact
    const Bf16* q = p_.q + (first_ + query) * p_.head_dim;
    for (int d = 0; d < p_.head_dim; ++d) {
      const float factor = to_float(q[d]);
      const float* of_kind = keys_.data() + d * kKeyKinds;
      for (std::int64_t kind = 0; kind < kKeyKinds; ++kind) scores[kind] += factor * of_kind[kind];
    }
    const double scale = 1 / std::sqrt(static_cast<double>(p_.head_dim));
    double top = -INFINITY, sum = 0;
    for (std::size_t kind = 0; kind < given.size(); ++kind) {
      if (counts[kind] > 0) top = std::max(top, double{scores[kind]});
    }
    for (std::size_t kind = 0; kind < given.size(); ++kind) {
      given[kind] = counts[kind] > 0 ? std::exp((scores[kind] - top) * scale) : 0;
      sum += given[kind] * counts[kind];
    }
    for (double& each : given) each /= sum;
  }

 private:
  const Params& p_;
  std::int64_t first_;
  std::vector<float> keys_;  // [head_dim, kKeyKinds]
  std::vector<bool> known_;
};

/// A weighted sum of every row: what its query gives to each kind of keys, times weighted sums of
/// the values that it sees of them.
inline void expect_row_sums(const Params& p, const lab::RowSums& sums) {
  parallel_for(
      p.heads,
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> counts, values, squares, given(kKeyKinds);
        for (std::int64_t head = begin; head < end; ++head) {
          const KindScores keys(p, head);
          for (auto* each : {&counts, &values, &squares}) each->assign(kKeyKinds, 0);
          for (std::int64_t query = 0; query < p.sequence; ++query) {
            const std::int64_t row = head * p.sequence + query;
            const auto newest = static_cast<std::size_t>(keys.kind_of(query));
            counts[newest] += 1;
            for (int d = 0; d < p.head_dim; ++d) {
              const double term =
                  sums.weights[static_cast<std::size_t>(d)] * to_float(p.v[row * p.head_dim + d]);
              values[newest] += term;
              squares[newest] += term * term;
            }
            keys.give(query, counts, given);
            double sum = 0, square = 0;
            for (std::size_t kind = 0; kind < given.size(); ++kind) {
              sum += given[kind] * values[kind];
              square += given[kind] * given[kind] * squares[kind];
            }
            sums.sums[static_cast<std::size_t>(row)] = sum;
            sums.squares[static_cast<std::size_t>(row)] = square;
          }
        }
      },
      1);
}

/// One row of the output, and the 2-norm of the terms of each of its elements.
inline void expect_row(const Params& p, std::int64_t row, double* value, double* norm) {
  const std::int64_t head = row / p.sequence, query = row % p.sequence;
  const KindScores keys(p, head);
  std::vector<double> counts(kKeyKinds), given(kKeyKinds);
  for (std::int64_t key = 0; key <= query; ++key) {
    counts[static_cast<std::size_t>(keys.kind_of(key))] += 1;
  }
  keys.give(query, counts, given);
  for (std::int64_t key = 0; key <= query; ++key) {
    const double weight = given[static_cast<std::size_t>(keys.kind_of(key))];
    const Bf16* v = p.v + (head * p.sequence + key) * p.head_dim;
    for (int d = 0; d < p.head_dim; ++d) {
      const double term = weight * to_float(v[d]);
      value[d] += term;
      norm[d] += term * term;
    }
  }
  for (int d = 0; d < p.head_dim; ++d) norm[d] = std::sqrt(norm[d]);
}

/// One row out of `stride` in full, and a weighted sum of every row.
inline void expect_attention(lab::Reference& r, const std::string& name, const Params& p,
                             lab::Rounding rounding, std::int64_t stride) {
  rounding.length = p.sequence;
  const auto rows = r.stratified(std::int64_t{p.heads} * p.sequence, stride);
  const auto values = r.rows(name, p.head_dim, rows, rounding);
  const auto norms = r.norms(name);
  parallel_for(
      static_cast<std::int64_t>(rows.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          expect_row(p, rows[static_cast<std::size_t>(i)], values.data() + i * p.head_dim,
                     norms.data() + i * p.head_dim);
        }
      },
      1);
  expect_row_sums(p, r.row_sums(name));
}

}  // namespace gauntlet::labs::attention_ladder
