#include "engine/cuda/device_model.h"

#include <algorithm>
#include <cstring>

#include "core/os/threads.h"
#include "engine/cuda/uploader.h"
#include "engine/steps/rope.h"
#include "kernels/cuda/product/pack.h"
#include "model/random_rows.h"

namespace gauntlet::engine::cuda {
namespace {

using kernels::cuda::FragmentMatrix;
using kernels::cuda::kBlockRows;
using kernels::cuda::PlainMatrix;
using kernels::cuda::RowOrder;
using kernels::cuda::WeightFormat;
using model::Matrix;
using model::WeightType;

constexpr std::int64_t kAlignment = 256;

WeightFormat format_of(const Matrix& matrix, const CudaPlan& plan) {
  return matrix.type == WeightType::mxfp4 && plan.expert_weights == ExpertWeightsKind::mxfp4
             ? WeightFormat::mxfp4
             : WeightFormat::bf16;
}

std::vector<float> joined(std::initializer_list<const model::Vector*> parts) {
  std::vector<float> all;
  for (const model::Vector* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

/// Biases of gates and ups in the order of paired rows: eight of the ones, eight of the others.
std::vector<float> paired(const model::Vector& gate, const model::Vector& up) {
  std::vector<float> all;
  for (std::size_t first = 0; first < gate.size(); first += 8) {
    for (const model::Vector* part : {&gate, &up}) {
      for (std::size_t i = first; i < first + 8; ++i) {
        all.push_back(i < part->size() ? (*part)[i] : 0.0f);
      }
    }
  }
  return all;
}

/// The others have matrices of no rows.
model::Range held_experts(const std::vector<model::ExpertWeights>& experts) {
  const auto is_held = [](const model::ExpertWeights& expert) { return expert.gate.rows > 0; };
  const auto begin = std::ranges::find_if(experts, is_held);
  const auto end = std::find_if_not(begin, experts.end(), is_held);
  return {begin - experts.begin(), end - experts.begin()};
}

/// Lays the model out in one stretch of memory: run once to measure, once more to fill.
class Builder {
 public:
  Builder(const model::ModelWeights& weights, const CudaPlan& plan, std::uint8_t* base,
          Uploader* uploader)
      : weights_(weights), plan_(plan), base_(base), uploader_(uploader) {}

  std::int64_t bytes() const { return bytes_; }

  void build(DeviceModel& into) {
    into.config = weights_.config;
    into.experts = held_experts(weights_.layers.front().experts);
    into.embedding = rows(weights_.embedding);
    into.layers.resize(weights_.layers.size());
    for (std::size_t l = 0; l < weights_.layers.size(); ++l) {
      layer(weights_.layers[l], into.layers[l]);
    }
    into.final_norm = numbers(weights_.final_norm);
    into.lm_head = matrices({{&weights_.lm_head}}, RowOrder::plain);
    into.rope = rope();
  }

 private:
  std::uint8_t* take(std::int64_t bytes) {
    std::uint8_t* at = base_ + bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }

  const float* numbers(const std::vector<float>& values) {
    auto* at = reinterpret_cast<float*>(take(std::ssize(values) * 4));
    if (uploader_ != nullptr) uploader_->numbers(values, at);
    return at;
  }

  const __nv_bfloat16* rows(const Matrix& from) {
    const PlainMatrix made{.rows = from.rows, .cols = from.cols};
    std::uint8_t* at = take(made.data_bytes());
    if (uploader_ != nullptr) uploader_->plain({&from}, made, at, nullptr);
    return reinterpret_cast<const __nv_bfloat16*>(at);
  }

  using Sources = Uploader::Sources;

  /// One matrix of each group of sources, all of one shape, one behind the other.
  DeviceMatrix matrices(const std::vector<Sources>& groups, RowOrder order) {
    std::int64_t rows = 0;
    for (const Matrix* source : groups[0]) rows += source->rows;
    const WeightFormat format = format_of(*groups[0][0], plan_);
    const std::int64_t cols = groups[0][0]->cols;
    return plan_.variants.weight_layout == WeightLayout::rows
               ? DeviceMatrix{plain(groups, {.format = format, .rows = rows, .cols = cols})}
               : DeviceMatrix{
                     fragments(groups, order, {.format = format, .rows = rows, .cols = cols})};
  }

  FragmentMatrix fragments(const std::vector<Sources>& groups, RowOrder order,
                           FragmentMatrix shape) {
    std::uint8_t* const at = take(shape.bytes() * std::ssize(groups));
    shape.data = at;
    for (std::size_t g = 0; g < groups.size() && uploader_ != nullptr; ++g) {
      uploader_->fragments(groups[g], order, shape,
                           at + static_cast<std::int64_t>(g) * shape.bytes());
    }
    return shape;
  }

  PlainMatrix plain(const std::vector<Sources>& groups, PlainMatrix shape) {
    std::uint8_t* const at = take(shape.data_bytes() * std::ssize(groups));
    std::uint8_t* const scales = take(shape.scale_bytes() * std::ssize(groups));
    shape.data = at;
    shape.scales = scales;
    for (std::size_t g = 0; g < groups.size() && uploader_ != nullptr; ++g) {
      const auto number = static_cast<std::int64_t>(g);
      uploader_->plain(groups[g], shape, at + number * shape.data_bytes(),
                       scales + number * shape.scale_bytes());
    }
    return shape;
  }

  /// Biases are padded as rows are.
  void pad(std::vector<float>& values) const {
    if (plan_.variants.weight_layout == WeightLayout::rows) return;
    values.resize((values.size() + kBlockRows - 1) / kBlockRows * kBlockRows, 0.0f);
  }
  const float* bias(std::vector<float> values) {
    pad(values);
    return numbers(values);
  }

  void layer(const model::LayerWeights& from, DeviceLayer& to) {
    to.attention_norm = numbers(from.attention_norm);
    to.qkv = matrices({{&from.q, &from.k, &from.v}}, RowOrder::plain);
    to.qkv_bias = bias(joined({&from.q_bias, &from.k_bias, &from.v_bias}));
    to.o = matrices({{&from.o}}, RowOrder::plain);
    to.o_bias = bias(from.o_bias);
    to.sinks = numbers(from.sinks);
    to.mlp_norm = numbers(from.mlp_norm);
    to.router = rows(from.router);
    to.router_bias = numbers(from.router_bias);
    experts(from.experts, to);
  }

  void experts(const std::vector<model::ExpertWeights>& from, DeviceLayer& to) {
    // Only the fused SwiGLU wants a gate and its up in one lane.
    const RowOrder order = plan_.fusion == Fusion::fused ? RowOrder::paired : RowOrder::plain;
    std::vector<Sources> gate_up, down;
    std::vector<float> gate_up_bias, down_bias;
    const auto append = [&](std::vector<float>& all, std::vector<float> own) {
      pad(own);
      all.insert(all.end(), own.begin(), own.end());
    };
    const model::Range held = held_experts(from);
    for (std::int64_t e = held.begin; e < held.end; ++e) {
      const model::ExpertWeights& expert = from[static_cast<std::size_t>(e)];
      gate_up.push_back({&expert.gate, &expert.up});
      append(gate_up_bias, order == RowOrder::paired
                               ? paired(expert.gate_bias, expert.up_bias)
                               : joined({&expert.gate_bias, &expert.up_bias}));
      down.push_back({&expert.down});
      append(down_bias, expert.down_bias);
    }
    to.gate_up = matrices(gate_up, order);
    to.down = matrices(down, RowOrder::plain);
    to.gate_up_bias = numbers(gate_up_bias);
    to.down_bias = numbers(down_bias);
  }

  const float2* rope() {
    const Rope angles(weights_.config);
    const std::int64_t half = angles.half(), positions = weights_.config.max_positions;
    auto* at = reinterpret_cast<float2*>(take(positions * half * 8));
    if (uploader_ == nullptr) return at;
    std::vector<float> table(static_cast<std::size_t>(positions * half * 2));
    constexpr std::int64_t kGrain = 1024;
    parallel_for(
        positions,
        [&](std::int64_t begin, std::int64_t end) {
          std::vector<float> cos(static_cast<std::size_t>(half)), sin(cos);
          for (std::int64_t p = begin; p < end; ++p) {
            angles.angles(p, cos.data(), sin.data());
            float* to = &table[static_cast<std::size_t>(p * half * 2)];
            for (std::size_t i = 0; i < cos.size(); ++i) {
              *to++ = cos[i];
              *to++ = sin[i];
            }
          }
        },
        kGrain);
    uploader_->numbers(table, reinterpret_cast<float*>(at));
    return at;
  }

  const model::ModelWeights& weights_;
  const CudaPlan& plan_;
  std::uint8_t* base_;
  Uploader* uploader_;  // null: only measured
  std::int64_t bytes_ = 0;
};

}  // namespace

std::int64_t DeviceMatrix::bytes() const {
  const auto* plain = std::get_if<PlainMatrix>(&layout);
  return plain != nullptr ? plain->data_bytes() + plain->scale_bytes()
                          : std::get<FragmentMatrix>(layout).bytes();
}

std::int64_t device_model_bytes(const model::ModelWeights& weights, const CudaPlan& plan) {
  DeviceModel ignored;
  Builder builder(weights, plan, nullptr, nullptr);
  builder.build(ignored);
  return builder.bytes();
}

DeviceModel load_device_model(const model::ModelWeights& weights, const CudaPlan& plan,
                              const std::function<void(double)>& progress) {
  DeviceModel made;
  made.memory = DeviceMemory(device_model_bytes(weights, plan));
  Uploader uploader(weights, made.memory.bytes(), progress);
  Builder builder(weights, plan, made.memory.data(), &uploader);
  builder.build(made);
  uploader.finish();
  return made;
}

}  // namespace gauntlet::engine::cuda
