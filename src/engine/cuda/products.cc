#include "engine/cuda/products.h"

#include "core/check.h"
#include "kernels/cuda/product/batch_mxfp4.h"
#include "kernels/cuda/product/decode_mxfp4_bulk.h"
#include "kernels/cuda/product/decode_product.h"
#include "kernels/cuda/product/plain_product.h"

namespace gauntlet::engine::cuda {
namespace {

using namespace kernels::cuda;

/// Up to here a plain product reads its weights once with the decode kernel. Prompts leave it
/// early, so that short ones are computed as long ones are.
constexpr std::int64_t kDecodeTokens = 16;
constexpr std::int64_t kDecodePromptTokens = 4;
/// Slots per expert, on average, from which on a kernel is faster than the one for fewer.
constexpr std::int64_t kBatchSlotsPerExpert = 12;    // MXFP4: the batch kernel
constexpr std::int64_t kPrefillSlotsPerExpert = 12;  // without one: the prefill kernel
constexpr std::int64_t kManySlotsPerExpert = 192;    // MXFP4: the prefill kernel
/// The tile of prompts when bits must not depend on the batch.
constexpr PrefillTile kFixedTile{.tokens = 128, .consumers = 2};
/// And those that MXFP4 weights take at a time by bulk copies.
constexpr std::int64_t kFixedColumns = 8;

bool is_fixed(const CudaPlan& plan) {
  return plan.variants.determinism == Determinism::per_request;
}

}  // namespace

Products::Products(const model::ModelConfig& config, const CudaPlan& plan, const Buffers& buffers,
                   const BufferSizes& sizes)
    : plan_(plan) {
  const bool bulk = plan.variants.pipelines == Pipelines::bulk;
  const auto describe = [&](ProductInput name, const __nv_bfloat16* x, std::int64_t rows,
                            std::int64_t cols) {
    Input& input = inputs_[static_cast<std::size_t>(name)];
    input.x = x;
    input.stride = Buffers::stride(cols);
    if (bulk)
      make_prefill_input({.x = x, .rows = rows, .cols = cols, .stride = input.stride}, input.tiles);
  };
  const std::int64_t slots = sizes.tokens * config.experts_per_token;
  describe(ProductInput::normed, buffers.normed, sizes.tokens, config.hidden);
  describe(ProductInput::attended, buffers.attended, sizes.tokens, config.query_width());
  describe(ProductInput::permuted, buffers.permuted, slots, config.hidden);
  describe(ProductInput::activated, buffers.activated, slots, config.intermediate);
  describe(ProductInput::final_rows, buffers.final_rows, kLogitRows, config.hidden);
}

Products::Kernel Products::kernel_for(const Step& step, const LayerProduct& product) const {
  if (plan_.variants.pipelines != Pipelines::bulk) return Kernel::decode;
  if (is_fixed(plan_)) return step.shape.max_query > 1 ? Kernel::prefill : Kernel::decode;
  const std::int64_t experts = product.groups.num_experts, columns = product.num_columns;
  if (experts == 0) {
    const bool prompts = step.shape.max_query > 1;
    return columns > (prompts ? kDecodePromptTokens : kDecodeTokens) ? Kernel::prefill
                                                                     : Kernel::decode;
  }
  const auto* weights = std::get_if<FragmentMatrix>(&product.weights.layout);
  const bool batch =
      weights != nullptr && weights->format == WeightFormat::mxfp4 && experts <= kMostBatchExperts;
  if (batch && columns >= kBatchSlotsPerExpert * experts &&
      columns < kManySlotsPerExpert * experts) {
    return Kernel::batch;
  }
  return columns >= kPrefillSlotsPerExpert * experts ? Kernel::prefill : Kernel::decode;
}

bool Products::takes_slot_order(const Step& step, const LayerProduct& product) const {
  return kernel_for(step, product) != Kernel::decode;
}

void Products::run(const Step& step, const LayerProduct& product) const {
  if (const auto* plain = std::get_if<PlainMatrix>(&product.weights.layout)) {
    run_plain(step, product, *plain);
  } else {
    run_fragments(step, product, std::get<FragmentMatrix>(product.weights.layout));
  }
}

void Products::run_fragments(const Step& step, const LayerProduct& product,
                             const FragmentMatrix& weights) const {
  const Input& input = input_of(product);
  const Product work{.weights = weights,
                     .x = input.x,
                     .x_stride = input.stride,
                     .num_columns = product.num_columns,
                     .bias = product.bias,
                     .epilogue = product.epilogue,
                     .out = product.out,
                     .out_stride = product.out_stride,
                     .groups = product.groups,
                     .swiglu_limit = product.swiglu_limit};
  const int experts = product.groups.num_experts;
  const Kernel kernel = kernel_for(step, product);
  if (kernel == Kernel::batch) {
    return batch_mxfp4(work, input.tiles, choose_batch_tile(product.num_columns, experts),
                       step.how);
  }
  if (kernel == Kernel::prefill) {
    const PrefillTile tile = is_fixed(plan_)
                                 ? kFixedTile
                                 : choose_prefill_tile({.format = weights.format,
                                                        .rows = weights.rows,
                                                        .cols = weights.cols,
                                                        .num_columns = product.num_columns,
                                                        .num_experts = experts,
                                                        .num_sms = plan_.num_sms});
    return prefill_product(work, input.tiles, tile, step.how);
  }
  const std::int64_t expected =
      experts > 0 ? 2 * product.num_columns / experts : product.num_columns;
  if (plan_.variants.pipelines == Pipelines::bulk && decode_mxfp4_bulk_takes(work)) {
    if (is_fixed(plan_)) return decode_mxfp4_bulk(work, kFixedColumns, plan_.num_sms, step.how);
    if (decode_mxfp4_bulk_fills(work, plan_.num_sms)) {
      return decode_mxfp4_bulk(work, expected, plan_.num_sms, step.how);
    }
  }
  decode_product(work, choose_decode_tile(work, expected, plan_.num_sms), step.how);
}

void Products::run_plain(const Step& step, const LayerProduct& product,
                         const PlainMatrix& weights) const {
  check(product.epilogue == Epilogue::store_f32, "row-major weights have no such epilogue");
  const Input& input = input_of(product);
  const PlainProduct work{.weights = weights,
                          .x = input.x,
                          .x_stride = input.stride,
                          .num_columns = product.num_columns,
                          .bias = product.bias,
                          .out = static_cast<float*>(product.out),
                          .out_stride = product.out_stride,
                          .groups = product.groups};
  const PlainColumns columns = !is_fixed(plan_)           ? choose_plain_columns(work)
                               : step.shape.max_query > 1 ? PlainColumns::sixty_four
                                                          : PlainColumns::one;
  plain_product(work,
                plan_.variants.products == ProductUnit::tensor_cores ? PlainUnit::tensor_cores
                                                                     : PlainUnit::cuda_cores,
                columns, step.how);
}

}  // namespace gauntlet::engine::cuda
