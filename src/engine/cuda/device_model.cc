#include "engine/cuda/device_model.h"

#include <algorithm>
#include <cstring>

#include "engine/cpu/rope.h"
#include "engine/cuda/uploader.h"
#include "kernels/cuda/pack.h"
#include "model/random_rows.h"

namespace gauntlet::engine {
namespace {

using kernels::cuda::FragmentMatrix;
using kernels::cuda::kBlockRows;
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

/// Biases of gates and ups in the order of paired rows.
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

void pad_rows(std::vector<float>& values) {
  values.resize((values.size() + kBlockRows - 1) / kBlockRows * kBlockRows, 0.0f);
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
    into.embedding = rows(weights_.embedding);
    into.layers.resize(weights_.layers.size());
    for (std::size_t l = 0; l < weights_.layers.size(); ++l) {
      layer(weights_.layers[l], into.layers[l]);
    }
    into.final_norm = numbers(weights_.final_norm);
    into.lm_head = matrix({&weights_.lm_head}, RowOrder::plain, 1);
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
    auto* at = reinterpret_cast<__nv_bfloat16*>(take(from.rows * from.cols * 2));
    if (uploader_ != nullptr) uploader_->rows(from, at);
    return at;
  }

  /// `count` matrices of one shape may follow one another; this is the first of them, or the next.
  FragmentMatrix matrix(std::vector<const Matrix*> sources, RowOrder order, int count) {
    FragmentMatrix made{.format = format_of(*sources[0], plan_), .cols = sources[0]->cols};
    for (const Matrix* source : sources) made.rows += source->rows;
    std::uint8_t* at = count > 0 ? take(made.bytes() * count) : next_;
    next_ = at + made.bytes();
    made.data = at;
    if (uploader_ != nullptr) uploader_->matrix(sources, order, made, at);
    return made;
  }

  void layer(const model::LayerWeights& from, DeviceLayer& to) {
    to.attention_norm = numbers(from.attention_norm);
    to.qkv = matrix({&from.q, &from.k, &from.v}, RowOrder::plain, 1);
    auto qkv_bias = joined({&from.q_bias, &from.k_bias, &from.v_bias});
    pad_rows(qkv_bias);
    to.qkv_bias = numbers(qkv_bias);
    to.o = matrix({&from.o}, RowOrder::plain, 1);
    auto o_bias = from.o_bias;
    pad_rows(o_bias);
    to.o_bias = numbers(o_bias);
    to.sinks = numbers(from.sinks);
    to.mlp_norm = numbers(from.mlp_norm);
    to.router = rows(from.router);
    to.router_bias = numbers(from.router_bias);
    experts(from.experts, to);
  }

  void experts(const std::vector<model::ExpertWeights>& from, DeviceLayer& to) {
    const int count = static_cast<int>(from.size());
    std::vector<float> gate_up_bias, down_bias;
    for (int e = 0; e < count; ++e) {
      const FragmentMatrix made =
          matrix({&from[e].gate, &from[e].up}, RowOrder::paired, e == 0 ? count : 0);
      if (e == 0) to.gate_up = made;
      auto bias = paired(from[e].gate_bias, from[e].up_bias);
      pad_rows(bias);
      gate_up_bias.insert(gate_up_bias.end(), bias.begin(), bias.end());
    }
    for (int e = 0; e < count; ++e) {
      const FragmentMatrix made = matrix({&from[e].down}, RowOrder::plain, e == 0 ? count : 0);
      if (e == 0) to.down = made;
      auto bias = from[e].down_bias;
      pad_rows(bias);
      down_bias.insert(down_bias.end(), bias.begin(), bias.end());
    }
    to.gate_up_bias = numbers(gate_up_bias);
    to.down_bias = numbers(down_bias);
  }

  const float2* rope() {
    const Rope angles(weights_.config);
    const std::int64_t half = angles.half(), positions = weights_.config.max_positions;
    auto* at = reinterpret_cast<float2*>(take(positions * half * 8));
    if (uploader_ == nullptr) return at;
    std::vector<float> table(static_cast<std::size_t>(positions * half * 2));
    std::vector<float> cos(static_cast<std::size_t>(half)), sin(cos);
    for (std::int64_t p = 0; p < positions; ++p) {
      angles.angles(p, cos.data(), sin.data());
      for (std::int64_t i = 0; i < half; ++i) {
        table[static_cast<std::size_t>((p * half + i) * 2)] = cos[static_cast<std::size_t>(i)];
        table[static_cast<std::size_t>((p * half + i) * 2 + 1)] = sin[static_cast<std::size_t>(i)];
      }
    }
    uploader_->numbers(table, reinterpret_cast<float*>(at));
    return at;
  }

  const model::ModelWeights& weights_;
  const CudaPlan& plan_;
  std::uint8_t* base_;
  Uploader* uploader_;  // null: only measured
  std::uint8_t* next_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace

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

}  // namespace gauntlet::engine
