#include "engine/cuda/flight.h"

#include "core/check.h"

namespace gauntlet::engine::cuda {

using kernels::cuda::RowChoice;

Flight::Flight(const model::ModelConfig& config, const BufferSizes& sizes, int most_parts,
               HostMemory kind)
    : config_(config),
      sizes_(sizes),
      choices_(sizes.tokens * static_cast<std::int64_t>(sizeof(RowChoice)), kind) {
  for (int i = 0; i < most_parts; ++i) slots_.emplace_back(slot_bytes(), kind);
}

void Flight::begin(StepData data, std::vector<StepPart> cut) {
  step = std::move(data);
  parts = std::move(cut);
  places = choice_places(step, parts);
  logits_.rows.clear();
  normed_.rows.clear();
}

void Flight::bring(const Buffers& from, std::size_t part, cudaStream_t stream) {
  const StepPart& own = parts[part];
  cuda_check(cudaMemcpyAsync(slots_[part].data(), from.first_slot,
                             static_cast<std::size_t>(slot_bytes()), cudaMemcpyDeviceToHost,
                             stream));
  bring_residuals(from, part, stream);
  if (own.rows.empty()) return;
  cuda_check(
      cudaMemcpyAsync(choices_.data() + static_cast<std::size_t>(own.first_row) * sizeof(RowChoice),
                      from.choices + own.first_row, own.rows.size() * sizeof(RowChoice),
                      cudaMemcpyDeviceToHost, stream));
  const std::int64_t logit_bytes = config_.vocab * static_cast<std::int64_t>(sizeof(float));
  constexpr std::int64_t kBytes = sizeof(__nv_bfloat16);
  bring_head_rows(
      logits_, from.logits, logit_bytes, logit_bytes, part,
      [](const StepRow& row) { return row.want == Want::logits; }, stream);
  bring_head_rows(
      normed_, from.final_rows, Buffers::stride(config_.hidden) * kBytes, config_.hidden * kBytes,
      part, [](const StepRow& row) { return row.wants_normed; }, stream);
}

/// The last piece of rows is what is left in the buffers.
void Flight::bring_head_rows(HeadRows& into, const void* from, std::int64_t stride_bytes,
                             std::int64_t row_bytes, std::size_t part,
                             bool (*is_wanted)(const StepRow&), cudaStream_t stream) {
  const StepPart& own = parts[part];
  const std::size_t first = (own.rows.size() - 1) / kLogitRows * kLogitRows;
  for (std::size_t r = 0; r < own.rows.size(); ++r) {
    const std::int32_t row = own.rows[r];
    if (!is_wanted(step.rows[static_cast<std::size_t>(row)])) continue;
    check(r >= first && std::ssize(into.rows) < kLogitRows,
          "logits or normed rows of too many tokens are wanted at once");
    // Few steps want them, and those that do want them of every sequence.
    if (!into.memory) into.memory.emplace(kLogitRows * row_bytes);
    cuda_check(cudaMemcpyAsync(into.memory->data() + std::ssize(into.rows) * row_bytes,
                               static_cast<const std::uint8_t*>(from) +
                                   static_cast<std::int64_t>(r - first) * stride_bytes,
                               static_cast<std::size_t>(row_bytes), cudaMemcpyDeviceToHost,
                               stream));
    into.rows.push_back(row);
  }
}

void Flight::bring_residuals(const Buffers& from, std::size_t part, cudaStream_t stream) {
  const std::int64_t exported = step.num_exported(), hidden = config_.hidden;
  if (exported == 0 || residuals_stay()) return;
  if (residual_capacity_ < num_residuals()) {
    residual_capacity_ = num_residuals();
    residuals_.emplace(residual_capacity_ * static_cast<std::int64_t>(sizeof(float)));
  }
  auto* to = reinterpret_cast<float*>(residuals_->data());
  std::int64_t end = 0;  // of the pieces so far
  for (const StepPiece& piece : parts[part].pieces) {
    const StepData::Item& item = step.items[static_cast<std::size_t>(piece.item)];
    const std::int64_t first = end;
    end += piece.num_tokens;
    if (!item.exports) continue;
    const std::int64_t place = step.exported_before(piece.item) + piece.first - item.first_token;
    for (std::int64_t l = 0; l < sizes_.export_layers; ++l) {
      cuda_check(
          cudaMemcpyAsync(to + (l * exported + place) * hidden,
                          from.residuals + (l * sizes_.tokens + first) * hidden,
                          static_cast<std::size_t>(piece.num_tokens * hidden) * sizeof(float),
                          cudaMemcpyDeviceToHost, stream));
    }
  }
}

std::vector<RowResult> Flight::results() const {
  const auto* choices = reinterpret_cast<const RowChoice*>(choices_.data());
  std::vector<RowResult> results(step.rows.size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    const RowChoice& choice = choices[places[r]];
    if (step.rows[r].want != Want::nothing) {
      results[r].token = choice.token;
      results[r].log_probability = choice.log_probability;
    }
    results[r].target_log_probability = choice.target_log_probability;
  }
  for (std::size_t i = 0; i < logits_.rows.size(); ++i) {
    const auto vocab = static_cast<std::size_t>(config_.vocab);
    const auto* from = reinterpret_cast<const float*>(logits_.memory->data()) + i * vocab;
    results[static_cast<std::size_t>(logits_.rows[i])].logits.assign(from, from + vocab);
  }
  for (std::size_t i = 0; i < normed_.rows.size(); ++i) {
    const auto hidden = static_cast<std::size_t>(config_.hidden);
    const auto* from = reinterpret_cast<const __nv_bfloat16*>(normed_.memory->data()) + i * hidden;
    auto& normed = results[static_cast<std::size_t>(normed_.rows[i])].normed;
    for (std::size_t c = 0; c < hidden; ++c) normed.push_back(__bfloat162float(from[c]));
  }
  return results;
}

std::span<const float> Flight::residuals() const {
  const std::int64_t numbers = num_residuals();
  if (numbers == 0 || residuals_stay()) return {};
  return {reinterpret_cast<const float*>(residuals_->data()), static_cast<std::size_t>(numbers)};
}

}  // namespace gauntlet::engine::cuda
