// Queries, keys and values are rounded to 8 bits first, and values turned round; then the same
// attention with products that are twice as fast, weights rounded to 8 bits as well.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "catalog/labs/attention_ladder/wgmma_launch.cuh"
#include "catalog/labs/attention_ladder_fp8/lab.h"

namespace gauntlet::labs::attention_ladder_fp8::cuda {
namespace {

constexpr int kNarrowThreads = 256;
constexpr int kTurnedKeys = 128;  // of a block

using attention_ladder::kGroupRows;
using attention_ladder::cuda::Config;
using attention_ladder::cuda::Element;
using attention_ladder::cuda::encode_swizzled;
using attention_ladder::cuda::PreparedAttention;
using attention_ladder::cuda::Softmax;
using attention_ladder::cuda::Turns;

__device__ __forceinline__ std::uint32_t narrow_4(uint2 four) {
  const auto low = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(four.x));
  const auto high = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(four.y));
  return std::uint32_t{__nv_cvt_float2_to_fp8x2(low, __NV_SATFINITE, __NV_E4M3)} |
         std::uint32_t{__nv_cvt_float2_to_fp8x2(high, __NV_SATFINITE, __NV_E4M3)} << 16;
}

/// 16 words a thread.
__device__ __forceinline__ void narrow_words(F8e4m3* to, const Bf16* from, std::int64_t words) {
  const std::int64_t at =
      16 * (std::int64_t{blockIdx.x} * kNarrowThreads + static_cast<int>(threadIdx.x));
  if (at >= words) return;
  const uint4 a = *reinterpret_cast<const uint4*>(from + at);
  const uint4 b = *reinterpret_cast<const uint4*>(from + at + 8);
  *reinterpret_cast<uint4*>(to + at) =
      make_uint4(narrow_4(make_uint2(a.x, a.y)), narrow_4(make_uint2(a.z, a.w)),
                 narrow_4(make_uint2(b.x, b.y)), narrow_4(make_uint2(b.z, b.w)));
}

__global__ void __launch_bounds__(kNarrowThreads)
    narrow_queries_and_keys(F8e4m3* q8, F8e4m3* k8, const Bf16* q, const Bf16* k,
                            std::int64_t words) {
  if (blockIdx.y == 0) {
    narrow_words(q8, q, words);
  } else {
    narrow_words(k8, k, words);
  }
}

/// 128 keys of a head: rows of dimensions become rows of keys, each 32 of them in the order in
/// which a thread's weights come (value_key()).
template <int kHeadDim>
__global__ void __launch_bounds__(kNarrowThreads)
    narrow_and_turn_values(F8e4m3* v8, const Bf16* v, int sequence) {
  constexpr int kPitch = kHeadDim + 4;  // neighbouring keys are a bank apart
  __shared__ alignas(16) std::uint8_t tile[kTurnedKeys * kPitch];
  const int thread = static_cast<int>(threadIdx.x),
            first = static_cast<int>(blockIdx.x) * kTurnedKeys;
  const std::int64_t head = blockIdx.y;
  const Bf16* from = v + (head * sequence + first) * kHeadDim;
#pragma unroll
  for (int i = thread; i < kTurnedKeys * kHeadDim / 4; i += kNarrowThreads) {
    const int key = 4 * i / kHeadDim, d = 4 * i % kHeadDim;
    *reinterpret_cast<std::uint32_t*>(tile + key * kPitch + d) =
        narrow_4(*reinterpret_cast<const uint2*>(from + 4 * i));
  }
  __syncthreads();
  // A warp's threads have neighbouring dimensions: bytes of eight words, each broadcast to four.
#pragma unroll
  for (int i = thread; i < kTurnedKeys / 16 * kHeadDim; i += kNarrowThreads) {
    const int d = i % kHeadDim, part = i / kHeadDim;
    std::uint32_t words[4];
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      words[word] = 0;
#pragma unroll
      for (int byte = 0; byte < 4; ++byte) {
        const int place = part % 2 * 16 + word * 4 + byte;
        const int key = part / 2 * 32 + attention_ladder::value_key(place);
        words[word] |= std::uint32_t{tile[key * kPitch + d]} << (8 * byte);
      }
    }
    *reinterpret_cast<uint4*>(v8 + (head * kHeadDim + d) * sequence + first + part * 16) =
        make_uint4(words[0], words[1], words[2], words[3]);
  }
}

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
        Config<64, 3, Turns::ping_pong, Softmax::beside_products, Element::f8e4m3>>(p, cuda);
  }
  check(p.in_bf16.head_dim == 128, "rungs have heads of 64 and 128 dimensions");
  return narrow_and_attend<Config<128, 2, Turns::free, Softmax::beside_products, Element::f8e4m3>>(
      p, cuda);
}

}  // namespace gauntlet::labs::attention_ladder_fp8::cuda
