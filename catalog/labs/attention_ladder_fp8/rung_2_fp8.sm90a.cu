// Queries, keys and values are rounded to 8 bits first, and values turned round; then the same
// attention with products that are twice as fast, weights rounded to 8 bits as well.
#include "catalog/labs/attention_ladder/wgmma_launch.cuh"
#include "catalog/labs/attention_ladder_fp8/lab.h"
#include "catalog/labs/attention_ladder_fp8/narrow.cuh"

namespace gauntlet::labs::attention_ladder_fp8::cuda {
namespace {

using attention_ladder::kGroupRows;
using attention_ladder::cuda::Config;
using attention_ladder::cuda::Element;
using attention_ladder::cuda::encode_swizzled;
using attention_ladder::cuda::PreparedAttention;
using attention_ladder::cuda::Softmax;
using attention_ladder::cuda::Turns;

template <int kHeadDim>
void narrow(const Params& p, cudaStream_t stream) {
  const attention_ladder::Params& in = p.in_bf16;
  const std::int64_t words = std::int64_t{in.heads} * in.sequence * kHeadDim;
  constexpr std::int64_t kBlockWords = 16 * kNarrowThreads;
  const dim3 blocks(static_cast<unsigned>((words + kBlockWords - 1) / kBlockWords), 2);
  narrow_queries_and_keys<<<blocks, kNarrowThreads, 0, stream>>>(p.q, p.k, in.q, in.k, words);
  const dim3 tiles(static_cast<unsigned>(in.sequence / kTurnedKeys),
                   static_cast<unsigned>(in.heads));
  narrow_and_turn_values<kHeadDim><<<tiles, kNarrowThreads, 0, stream>>>(p.v, in.v, in.sequence);
  cuda_check(cudaGetLastError());
}

/// When a run began, and when its operands had 8 bits.
struct Marks {
  CudaEvent begin{CudaEvent::Clock::runs}, narrowed{CudaEvent::Clock::runs};
  bool ran = false;
};

template <class C>
lab::Side narrow_and_attend(const Params& p, const lab::Cuda& cuda) {
  const attention_ladder::Params& in = p.in_bf16;
  const auto prepared = std::make_shared<PreparedAttention<C>>(in, cuda);
  const auto marks = std::make_shared<Marks>();
  const std::int64_t rows = std::int64_t{in.heads} * in.sequence;
  const std::int64_t dimensions = std::int64_t{in.heads} * in.head_dim;
  constexpr DType kType = DType::f8e4m3;
  encode_swizzled({p.q, rows, in.head_dim, kGroupRows, kType}, prepared->maps.q);
  encode_swizzled({p.k, rows, in.head_dim, C::kKeys, kType}, prepared->maps.k);
  encode_swizzled({p.v, dimensions, in.sequence, C::kHeadDim, kType}, prepared->maps.v);
  encode_swizzled({in.out, rows, in.head_dim, kGroupRows}, prepared->maps.out);
  lab::Side side = [p, prepared, marks, stream = cuda.stream] {
    marks->begin.record(stream);
    narrow<C::kHeadDim>(p, stream);
    marks->narrowed.record(stream);
    prepared->launch(stream);
    marks->ran = true;
  };
  side.outcomes = [marks]() -> std::map<std::string, double> {
    if (!std::exchange(marks->ran, false)) return {};
    marks->narrowed.wait();
    return {{"narrow_us", marks->narrowed.us_since(marks->begin)}};
  };
  return side;
}

}  // namespace

lab::Side fp8(const Params& p, const lab::Cuda& cuda) {
  if (p.in_bf16.head_dim == 64) {
    return narrow_and_attend<
        Config<64, 128, 3, Turns::ping_pong, Softmax::beside_products, 0, Element::f8e4m3>>(p,
                                                                                            cuda);
  }
  check(p.in_bf16.head_dim == 128, "rungs have heads of 64 and 128 dimensions");
  return narrow_and_attend<
      Config<128, 128, 2, Turns::ping_pong, Softmax::beside_products, 0, Element::f8e4m3>>(p, cuda);
}

}  // namespace gauntlet::labs::attention_ladder_fp8::cuda
