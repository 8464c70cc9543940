// How many activations does a stage of a pipeline hold until their gradients come?
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/ranks/group.h"
#include "core/ranks/must.h"
#include "lab/author/counts/buffer_store.h"
#include "lab/author/side.h"

namespace gauntlet::ch04::pipeline_1f1b {

struct Params {
  const float* inputs;   // [batches, rows, width]: of the first stage
  const float* errors;   // [batches, rows, width]: what comes back behind the last stage
  const float* weights;  // [width, width], of this stage
  float* gradients;      // [width, width], of this stage's weights
  std::int64_t batches;
  std::int64_t rows;  // of a micro-batch
  std::int64_t width;
  int rank;
  int num_ranks;

  std::int64_t size() const { return rows * width; }
  bool is_first() const { return rank == 0; }
  bool is_last() const { return rank + 1 == num_ranks; }
};

/// One stage: a linear layer, forwards and backwards, a micro-batch at a time.
class Stage {
 public:
  Stage(const Params& p, gauntlet::ranks::Group* group)
      : p_(p),
        group_(group),
        activations_(std::make_shared<lab::BufferStore>(p.size())),
        out_(static_cast<std::size_t>(p.size())),
        error_(static_cast<std::size_t>(p.size())) {}

  void begin() { std::fill_n(p_.gradients, p_.width * p_.width, 0.0f); }

  /// Takes the next micro-batch from the stage before, keeps it, and sends what comes of it.
  void forward() {
    auto in = activations_->take();
    if (p_.is_first()) {
      std::copy_n(p_.inputs + forwards_ % p_.batches * p_.size(), p_.size(), in->begin());
    } else {
      receive(p_.rank - 1, *in);
    }
    ++forwards_;
    // The loss is not part of this: what comes back behind the last stage is given.
    if (!p_.is_last()) {
      multiply(*in);
      send(p_.rank + 1, out_);
    }
    kept_.push_back(std::move(in));
  }

  /// Takes the next error from behind, adds to the gradients of the weights, and sends the error of
  /// the oldest micro-batch that is kept.
  void backward() {
    if (p_.is_last()) {
      std::copy_n(p_.errors + backwards_ % p_.batches * p_.size(), p_.size(), error_.begin());
    } else {
      receive(p_.rank + 1, error_);
    }
    ++backwards_;
    add_gradient(*kept_.front());
    if (!p_.is_first()) {
      multiply_back();
      send(p_.rank - 1, out_);
    }
    kept_.pop_front();
  }

  const std::shared_ptr<lab::BufferStore>& activations() const { return activations_; }

 private:
  void send(int to, const std::vector<float>& values) {
    gauntlet::ranks::must(group_->send(to, std::as_bytes(std::span(values))));
  }
  void receive(int from, std::vector<float>& values) {
    gauntlet::ranks::must(group_->receive(from, std::as_writable_bytes(std::span(values))));
  }

  /// out = in · weights
  void multiply(const std::vector<float>& in) {
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      float* out = out_.data() + row * p_.width;
      std::fill_n(out, p_.width, 0.0f);
      for (std::int64_t k = 0; k < p_.width; ++k) {
        const float value = in[static_cast<std::size_t>(row * p_.width + k)];
        const float* weights = p_.weights + k * p_.width;
        for (std::int64_t i = 0; i < p_.width; ++i) out[i] += value * weights[i];
      }
    }
  }
  /// out = error · weightsᵀ
  void multiply_back() {
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      const float* error = error_.data() + row * p_.width;
      for (std::int64_t k = 0; k < p_.width; ++k) {
        const float* weights = p_.weights + k * p_.width;
        float sum = 0;
        for (std::int64_t i = 0; i < p_.width; ++i) sum += error[i] * weights[i];
        out_[static_cast<std::size_t>(row * p_.width + k)] = sum;
      }
    }
  }
  /// gradients += inᵀ · error
  void add_gradient(const std::vector<float>& in) {
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      const float* error = error_.data() + row * p_.width;
      for (std::int64_t k = 0; k < p_.width; ++k) {
        const float value = in[static_cast<std::size_t>(row * p_.width + k)];
        float* out = p_.gradients + k * p_.width;
        for (std::int64_t i = 0; i < p_.width; ++i) out[i] += value * error[i];
      }
    }
  }

  Params p_;
  gauntlet::ranks::Group* group_;
  std::shared_ptr<lab::BufferStore> activations_;
  std::deque<lab::BufferStore::Buffer> kept_;  // the oldest first
  std::vector<float> out_, error_;             // [rows, width]
  std::int64_t forwards_ = 0, backwards_ = 0;
};

/// A side that runs a schedule, with the most activations that it holds.
template <class Schedule>
lab::Side staged(const Params& p, const lab::Ranks& ranks, Schedule schedule) {
  const auto stage = std::make_shared<Stage>(p, ranks.group);
  return lab::counted(lab::most_held_kib(stage->activations()), [p, stage, schedule] {
    stage->begin();
    schedule(p, *stage);
  });
}

}  // namespace gauntlet::ch04::pipeline_1f1b
