// Which kernel multiplies: by the plan, by how the weights lie, by the number of tokens.
#pragma once
#include <array>

#include "engine/cuda/buffers.h"
#include "engine/cuda/device_model.h"
#include "engine/cuda/step.h"
#include "kernels/cuda/product/prefill_product.h"
#include "kernels/cuda/product/product.h"

namespace gauntlet::engine::cuda {

/// The activations that are multiplied, each in a buffer of its own.
enum class ProductInput { normed, attended, permuted, activated, final_rows };
inline constexpr int kNumProductInputs = 5;

/// A product as a layer asks for it; see kernels/cuda/product.h for what the members mean.
struct LayerProduct {
  const DeviceMatrix& weights;
  ProductInput input = ProductInput::normed;
  std::int64_t num_columns = 0;
  const float* bias = nullptr;
  kernels::cuda::Epilogue epilogue = kernels::cuda::Epilogue::store_f32;
  void* out = nullptr;
  std::int64_t out_stride = 0;
  kernels::cuda::Groups groups = {};
  float swiglu_limit = 0;
};

class Products {
 public:
  Products(const model::ModelConfig& config, const CudaPlan& plan, const Buffers& buffers,
           const BufferSizes& sizes);

  void run(const Step& step, const LayerProduct& product) const;
  /// Tensor copies read their input in the order of slots.
  bool takes_slot_order(const Step& step, const LayerProduct& product) const;

 private:
  enum class Kernel { decode, batch, prefill };
  Kernel kernel_for(const Step& step, const LayerProduct& product) const;

  struct Input {
    const __nv_bfloat16* x = nullptr;
    std::int64_t stride = 0;
    kernels::cuda::PrefillInput tiles;  // described where there are bulk copies
  };
  const Input& input_of(const LayerProduct& product) const {
    return inputs_[static_cast<std::size_t>(product.input)];
  }
  void run_fragments(const Step& step, const LayerProduct& product,
                     const kernels::cuda::FragmentMatrix& weights) const;
  void run_plain(const Step& step, const LayerProduct& product,
                 const kernels::cuda::PlainMatrix& weights) const;

  const CudaPlan& plan_;
  std::array<Input, kNumProductInputs> inputs_;
};

}  // namespace gauntlet::engine::cuda
