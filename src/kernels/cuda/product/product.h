// What a product is asked to do: out[token] = epilogue(weights * x[token] + bias). One description
// for every kernel that computes it; see the plan for which one runs.
#pragma once
#include <cstdint>

#include "kernels/cuda/product/fragments.h"

struct __nv_bfloat16;

namespace gauntlet::kernels::cuda::inline product {

enum class Epilogue {
  store_f32,     // out float [.., out_stride]
  store_bf16,    // out bf16
  add_f32,       // added to what out (float) holds
  swiglu_bf16,   // rows in paired order: out bf16, half as many columns as the weights have rows
  weighted_f32,  // times the slot's weight, to float row out_rows[slot]
};

/// When tokens were dispatched to experts: a kernel may read that early when it was not the kernel
/// right in front.
enum class Dispatched { in_front, earlier };

/// Tokens dispatched to experts: slots first_slot[e] to first_slot[e + 1] are expert e's. All on
/// the device; the host does not know the counts. Where some of a model's experts are held, these
/// are the groups: slots in front of the first and behind the last are not computed.
struct Groups {
  int num_experts = 0;
  const std::int32_t* first_slot = nullptr;  // [num_experts + 1]
  const std::int32_t* slot_token = nullptr;  // row of x, where x is not in the order of slots
  const std::int32_t* slot_row = nullptr;    // row of out for weighted_f32: token * top_k + rank
  const float* slot_weight = nullptr;
  Dispatched dispatched = Dispatched::in_front;
};

struct Product {
  FragmentMatrix weights;  // of a group: the first expert's, the others follow
  const __nv_bfloat16* x =
      nullptr;  // [columns, x_stride]; stride a multiple of 64, padded by zeros
  std::int64_t x_stride = 0;
  std::int64_t num_columns = 0;  // tokens; of a group: at most so many slots in all
  const float* bias = nullptr;  // in the order of the weights' rows, padded as they are; per expert
  Epilogue epilogue = Epilogue::store_f32;
  void* out = nullptr;
  std::int64_t out_stride = 0;
  Groups groups;  // num_experts 0: a plain product
  float swiglu_limit = 7;
};

}  // namespace gauntlet::kernels::cuda::inline product
