#include <cuda_runtime.h>

#include "core/cuda/check.h"
#include "core/narrow_floats.h"
#include "lab/author/fill_rule.h"
#include "lab/measure/cuda_fill.h"

namespace gauntlet::lab::inline measure {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerSm = 8;

/// What a kernel needs of a job.
struct Job {
  void* out;
  std::int64_t words;       // elements, or eight bytes of raw ones
  std::int64_t tail_bytes;  // of the last word
  std::int64_t words_per_block;
  std::int64_t first_block;
  InputVersion version;
  Random fresh;
  Random older;
  float low, high;
  std::int64_t first, bound;
  std::int64_t fields, records;
  std::int64_t row, kinds;
};

/// As the host rounds it: no product that is fused with the sum.
__device__ float uniform_rounded(const Random& random, float low, float high, std::int64_t index) {
  return __fadd_rn(
      low, __fmul_rn(__fadd_rn(high, -low), random.unit(static_cast<std::uint64_t>(index))));
}

__device__ Random source(const Job& job, std::int64_t word) {
  return job.version.is_new(job.first_block + word / job.words_per_block) ? job.fresh : job.older;
}

template <Fill::Rule rule>
__global__ void __launch_bounds__(kThreads) make_words(Job job) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < job.words;
       i += step) {
    const Random random = source(job, i);
    auto* floats = static_cast<float*>(job.out);
    auto* integers = static_cast<std::int32_t*>(job.out);
    if constexpr (rule == Fill::Rule::uniform) {
      floats[i] = uniform_rounded(random, job.low, job.high, i);
    } else if constexpr (rule == Fill::Rule::layouts) {
      floats[i] =
          uniform_rounded(random, job.low, job.high, field_index(i, job.fields, job.records));
    } else if constexpr (rule == Fill::Rule::whole_floats) {
      floats[i] = static_cast<float>(integer_value(random, job.first, job.bound, i));
    } else if constexpr (rule == Fill::Rule::whole_bf16) {
      static_cast<Bf16*>(job.out)[i] = to_bf16(static_cast<float>(
          integer_value(random, job.first, job.bound, repeated_index(i, job.row, job.kinds))));
    } else if constexpr (rule == Fill::Rule::whole_f8e4m3) {
      static_cast<F8e4m3*>(job.out)[i] =
          to_f8e4m3(static_cast<float>(integer_value(random, job.first, job.bound, i)));
    } else if constexpr (rule == Fill::Rule::integers) {
      integers[i] = integer_value(random, job.first, job.bound, i);
    } else {
      const std::uint64_t word = byte_word(random, static_cast<std::uint64_t>(i));
      if (i + 1 < job.words || job.tail_bytes == 8) {
        static_cast<std::uint64_t*>(job.out)[i] = word;
      } else {
        auto* bytes = static_cast<unsigned char*>(job.out) + 8 * i;
        for (std::int64_t b = 0; b < job.tail_bytes; ++b) {
          bytes[b] = static_cast<unsigned char>(word >> (8 * b));
        }
      }
    }
  }
}

template <Fill::Rule rule>
void launch(const Job& job, cudaStream_t stream) {
  int device = 0, sms = 0;
  cuda_check(cudaGetDevice(&device));
  cuda_check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  const std::int64_t wanted = (job.words + kThreads - 1) / kThreads;
  const auto blocks =
      static_cast<unsigned>(wanted < sms * kBlocksPerSm ? wanted : sms * kBlocksPerSm);
  make_words<rule><<<blocks, kThreads, 0, stream>>>(job);
  cuda_check(cudaGetLastError());
}

}  // namespace

bool fill_on_device(const InputJob& input, cudaStream_t stream) {
  const Fill& fill = input.spec.fill;
  const auto element = static_cast<std::int64_t>(size_of(input.spec.type));
  const std::int64_t bytes = input.spec.count * element;
  const std::int64_t word = fill.rule == Fill::Rule::bytes ? 8 : element;
  const Job job{.out = input.data,
                .words = (bytes + word - 1) / word,
                .tail_bytes = bytes % word == 0 ? word : bytes % word,
                .words_per_block = kInputBlockBytes / word,
                .first_block = input.first_block,
                .version = fill.mixes ? input.version : InputVersion{},
                .fresh = input.random(fill.mixes ? input.version.seed : input.version.whole_seed()),
                .older = input.random(input.version.older),
                .low = fill.low,
                .high = fill.high,
                .first = fill.first,
                .bound = fill.bound,
                .fields = fill.fields,
                .records = fill.records,
                .row = fill.row,
                .kinds = fill.kinds};
  switch (fill.rule) {
    case Fill::Rule::zeros:
      cuda_check(cudaMemsetAsync(input.data, 0, static_cast<std::size_t>(bytes), stream));
      return true;
    case Fill::Rule::uniform:
      launch<Fill::Rule::uniform>(job, stream);
      return true;
    case Fill::Rule::integers:
      launch<Fill::Rule::integers>(job, stream);
      return true;
    case Fill::Rule::whole_floats:
      launch<Fill::Rule::whole_floats>(job, stream);
      return true;
    case Fill::Rule::whole_bf16:
      launch<Fill::Rule::whole_bf16>(job, stream);
      return true;
    case Fill::Rule::whole_f8e4m3:
      launch<Fill::Rule::whole_f8e4m3>(job, stream);
      return true;
    case Fill::Rule::layouts:
      launch<Fill::Rule::layouts>(job, stream);
      return true;
    case Fill::Rule::bytes:
      launch<Fill::Rule::bytes>(job, stream);
      return true;
    // Device code does not make the host's bits of these.
    case Fill::Rule::permutation:
    case Fill::Rule::custom:
      return false;
  }
  return false;
}

}  // namespace gauntlet::lab::inline measure
