#include "engine/cpu/packed_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/cpu/split.h"
#include "kernels/cpu/screen.h"

namespace gauntlet::engine::cpu {
namespace {

using kernels::cpu::kBlock;
using kernels::cpu::kGroupRows;
using kernels::cpu::PackedFormat;
using kernels::cpu::PackedMatrix;
using model::Matrix;
using model::WeightType;

constexpr std::int64_t kAlignment = 64;
/// Pages of a source are given back in portions: a whole output head would be resident twice.
constexpr std::int64_t kReleaseBytes = 16 << 20;

struct RowSource {
  const Matrix* matrix;
  std::int64_t row;
};
/// A packed matrix that waits for its memory: where each of its rows comes from.
struct Job {
  PackedMatrix* target;
  std::function<RowSource(std::int64_t)> source;
  std::vector<const Matrix*> sources;  // that are not needed afterwards
  std::int64_t offset = 0;
  Screen* screen = nullptr;  // made of the same rows
  std::int64_t screen_offset = 0;

  /// Rows are packed in the order in which their only source has them, each in one piece.
  bool is_in_order() const {
    return sources.size() == 1 && sources[0]->row_stride_bytes > sources[0]->col_stride_bytes;
  }
};

PackedFormat format_of(WeightType type, ExpertWeightsKind kind) {
  if (type == WeightType::mxfp4) {
    return kind == ExpertWeightsKind::mxfp4 ? PackedFormat::mxfp4 : PackedFormat::bf16;
  }
  return type == WeightType::bf16 ? PackedFormat::bf16 : PackedFormat::f32;
}

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::vector<float> padded(const model::Vector& values) {
  std::vector<float> result(values);
  result.resize((values.size() + kGroupRows - 1) / kGroupRows * kGroupRows, 0.0f);
  return result;
}

/// Rows of one group into the packed layout.
class GroupPacker {
 public:
  explicit GroupPacker(std::int64_t cols)
      : floats_(cols), halves_(cols), nibbles_(cols / 2 + 1), scales_(cols / kBlock + 1) {}

  void pack(const Job& job, std::int64_t group, std::uint8_t* base) {
    pack(job, *job.target, group, base + job.offset);
    if (job.screen) pack(job, job.screen->weights, group, base + job.screen_offset);
  }

 private:
  void pack(const Job& job, const PackedMatrix& target, std::int64_t group, std::uint8_t* data) {
    std::uint8_t* scale_data = data + target.num_groups() * target.group_bytes();
    const std::int64_t first = group * kGroupRows;
    for (int lane = 0; lane < kGroupRows && first + lane < target.rows; ++lane) {
      const auto place = kernels::cpu::row_place(target, first + lane, data, scale_data);
      const RowSource from = job.source(first + lane);
      switch (target.format) {
        case PackedFormat::f32:
          from.matrix->read_row(from.row, floats_.data());
          kernels::cpu::pack_row_f32(floats_.data(), target.cols, place);
          break;
        case PackedFormat::bf16:
          read_bf16(from);
          kernels::cpu::pack_row_bf16(halves_.data(), target.cols, place);
          break;
        case PackedFormat::mxfp4:
          from.matrix->read_row_mxfp4(from.row, nibbles_.data(), scales_.data());
          kernels::cpu::pack_row_mxfp4(nibbles_.data(), scales_.data(), target.cols, place);
          break;
        case PackedFormat::int8: {
          from.matrix->read_row(from.row, floats_.data());
          const auto norms = kernels::cpu::pack_row_int8(floats_.data(), target.cols, place);
          job.screen->residual_norms[first + lane] = norms.residual;
          job.screen->norms[first + lane] = norms.row;
          break;
        }
      }
    }
  }

  void read_bf16(const RowSource& from) {
    if (from.matrix->type == WeightType::bf16) {
      from.matrix->read_row_bf16(from.row, halves_.data());
      return;
    }
    // An FP4 value has two significant bits: cutting off the lower half of the float is exact.
    from.matrix->read_row(from.row, floats_.data());
    for (std::size_t i = 0; i < floats_.size(); ++i) {
      std::uint32_t bits;
      std::memcpy(&bits, &floats_[i], 4);
      halves_[i] = static_cast<std::uint16_t>(bits >> 16);
    }
  }

  std::vector<float> floats_;
  std::vector<std::uint16_t> halves_;
  std::vector<std::uint8_t> nibbles_;
  std::vector<std::uint8_t> scales_;
};

class Packer {
 public:
  Packer(const model::ModelWeights& weights, const Plan& plan) : weights_(weights), plan_(plan) {}

  void plan_matrix(PackedMatrix& target, const Matrix& matrix) {
    plan_rows(target, {&matrix}, matrix.rows,
              [&matrix](std::int64_t row) { return RowSource{&matrix, row}; });
  }

  void plan_rows(PackedMatrix& target, std::vector<const Matrix*> sources, std::int64_t rows,
                 std::function<RowSource(std::int64_t)> source) {
    PackedFormat format = format_of(sources[0]->type, plan_.expert_weights);
    for (const Matrix* other : sources) {
      if (format_of(other->type, plan_.expert_weights) != format) format = PackedFormat::f32;
    }
    target = {.format = format, .rows = rows, .cols = sources[0]->cols};
    jobs_.push_back({.target = &target,
                     .source = std::move(source),
                     .sources = std::move(sources),
                     .offset = bytes_});
    bytes_ += aligned(target.bytes());
  }

  /// Of the matrix that was planned last.
  void plan_screen(Screen& screen) {
    Job& job = jobs_.back();
    screen.weights = {
        .format = PackedFormat::int8, .rows = job.target->rows, .cols = job.target->cols};
    const auto rows = static_cast<std::size_t>(screen.weights.num_groups() * kGroupRows);
    screen.residual_norms.resize(rows);
    screen.norms.resize(rows);
    job.screen = &screen;
    job.screen_offset = bytes_;
    bytes_ += aligned(screen.weights.bytes());
  }

  std::int64_t bytes() const { return bytes_; }

  void run(PackedModel& model, ThreadPool& threads, const std::function<void(double)>& progress) {
    model.memory.resize(static_cast<std::size_t>(bytes_));
    std::uint8_t* base = model.memory.data();
    std::int64_t done = 0;
    for (const Job& job : jobs_) {
      threads.run([&](int worker) {
        GroupPacker packer(job.target->cols);
        const Share share =
            share_of(job.target->num_groups(), kernels::cpu::kTileGroups, worker, threads.size());
        std::int64_t released = share.begin;
        for (std::int64_t group = share.begin; group < share.end; ++group) {
          packer.pack(job, group, base);
          const std::int64_t rows = (group - released) * kGroupRows;
          if (!job.is_in_order() || rows * job.sources[0]->row_bytes() < kReleaseBytes) continue;
          weights_.release(*job.sources[0], released * kGroupRows, rows);
          released = group;
        }
      });
      done += place(*job.target, base + job.offset);
      if (job.screen) done += place(job.screen->weights, base + job.screen_offset);
      for (const Matrix* source : job.sources) weights_.release(*source);
      if (progress) progress(static_cast<double>(done) / static_cast<double>(bytes_));
    }
  }

 private:
  /// The bytes that it takes.
  static std::int64_t place(PackedMatrix& matrix, const std::uint8_t* data) {
    matrix.data = data;
    matrix.scales = data + matrix.num_groups() * matrix.group_bytes();
    return matrix.bytes();
  }

  const model::ModelWeights& weights_;
  const Plan& plan_;
  std::vector<Job> jobs_;
  std::int64_t bytes_ = 0;
};

std::vector<float> joined(const model::Vector& a, const model::Vector& b, const model::Vector& c) {
  model::Vector all(a);
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return padded(all);
}

void plan_expert(Packer& packer, const model::ExpertWeights& from, PackedExpert& to) {
  packer.plan_rows(to.gate_up, {&from.gate, &from.up}, from.gate.rows * 2,
                   [&from](std::int64_t row) {
                     const std::int64_t chunk = row / (2 * kBlock);
                     const std::int64_t within = row % (2 * kBlock);
                     const Matrix& matrix = within < kBlock ? from.gate : from.up;
                     return RowSource{&matrix, chunk * kBlock + within % kBlock};
                   });
  packer.plan_matrix(to.down, from.down);
  for (std::size_t chunk = 0; chunk < from.gate_bias.size(); chunk += kBlock) {
    for (const auto* bias : {&from.gate_bias, &from.up_bias}) {
      to.gate_up_bias.insert(to.gate_up_bias.end(), bias->begin() + chunk,
                             bias->begin() + chunk + kBlock);
    }
  }
  to.down_bias = padded(from.down_bias);
}

/// Layers point at weights and targets from here on.
void plan_layers(Packer& packer, const model::ModelWeights& weights, PackedModel& model) {
  model.layers.resize(weights.layers.size());
  for (std::size_t l = 0; l < weights.layers.size(); ++l) {
    const model::LayerWeights& from = weights.layers[l];
    PackedLayer& to = model.layers[l];
    packer.plan_rows(to.qkv, {&from.q, &from.k, &from.v}, from.q.rows + from.k.rows + from.v.rows,
                     [&from](std::int64_t row) {
                       if (row < from.q.rows) return RowSource{&from.q, row};
                       row -= from.q.rows;
                       if (row < from.k.rows) return RowSource{&from.k, row};
                       return RowSource{&from.v, row - from.k.rows};
                     });
    packer.plan_matrix(to.o, from.o);
    packer.plan_matrix(to.router, from.router);
    to.experts.resize(from.experts.size());
    for (std::size_t e = 0; e < from.experts.size(); ++e) {
      if (from.experts[e].down.rows > 0) plan_expert(packer, from.experts[e], to.experts[e]);
    }
    to.attention_norm = padded(from.attention_norm);
    to.qkv_bias = joined(from.q_bias, from.k_bias, from.v_bias);
    to.o_bias = padded(from.o_bias);
    to.sinks = from.sinks;
    to.mlp_norm = padded(from.mlp_norm);
    to.router_bias = padded(from.router_bias);
  }
}

void plan_head(Packer& packer, const model::ModelWeights& weights, const Plan& plan,
               PackedModel& model) {
  packer.plan_matrix(model.lm_head, weights.lm_head);
  if (plan.head == HeadKind::screened) packer.plan_screen(model.screen);
}

}  // namespace

std::int64_t packed_bytes(const model::ModelWeights& weights, const Plan& plan) {
  PackedModel model;
  Packer packer(weights, plan);
  plan_layers(packer, weights, model);
  plan_head(packer, weights, plan, model);
  return packer.bytes();
}

Expected<PackedModel> pack_model(const model::ModelWeights& weights, const Plan& plan,
                                 ThreadPool& threads, const std::function<void(double)>& progress) {
  const model::ModelConfig& config = weights.config;
  if (config.head_dim % kGroupRows != 0 || config.intermediate % kBlock != 0 ||
      config.hidden % kBlock != 0) {
    return Error{fmt::format(
        "{}: the CPU engine takes a head_dim that is a multiple of 16 and hidden and intermediate "
        "widths that are multiples of 32, not {}, {} and {}",
        config.name, config.head_dim, config.hidden, config.intermediate)};
  }
  PackedModel model{.config = config, .embedding = weights.embedding, .storage = weights.storage};
  Packer packer(weights, plan);
  plan_layers(packer, weights, model);
  plan_head(packer, weights, plan, model);
  model.final_norm = padded(weights.final_norm);
  packer.run(model, threads, progress);
  for (const float norm : model.screen.norms) {
    model.screen.largest_norm = std::max(model.screen.largest_norm, norm);
  }
  return model;
}

}  // namespace gauntlet::engine::cpu
