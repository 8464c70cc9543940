// How fast attention is at gpt-oss's shape: prefill in TFLOP/s of the visible keys, decode in TB/s
// of the keys and values read. Launches of a CUDA graph rotate over layers bigger than the L2.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "core/cuda/check.h"
#include "core/random.h"
#include "kernels/cuda/decode_attention.h"
#include "kernels/cuda/naive_attention.h"
#include "kernels/cuda/prefill_attention.h"
#include "kernels/cuda/rope_kv.h"

namespace gauntlet::kernels::cuda {
namespace {

constexpr int kHeads = 64;
constexpr int kKvHeads = 8;
constexpr int kWindow = 128;
constexpr int kRepeats = 9;
constexpr std::size_t kRotated = std::size_t{256} << 20;  // several times the L2

class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 16)) {
    cuda_check(cudaMalloc(&data_, bytes_));
    cuda_check(cudaMemset(data_, 0, bytes_));
  }
  template <typename T>
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size() * sizeof(T)) {
    cuda_check(cudaMemcpy(data_, values.data(), bytes_, cudaMemcpyHostToDevice));
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  /// A random pattern, repeated.
  void fill(const std::vector<std::uint8_t>& pattern) {
    std::size_t filled = std::min(pattern.size(), bytes_);
    cuda_check(cudaMemcpy(data_, pattern.data(), filled, cudaMemcpyHostToDevice));
    while (filled < bytes_) {
      const std::size_t more = std::min(filled, bytes_ - filled);
      cuda_check(cudaMemcpy(as<std::uint8_t>() + filled, data_, more, cudaMemcpyDeviceToDevice));
      filled += more;
    }
  }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

/// bf16 numbers of about one, or any fp8 numbers but NaN.
std::vector<std::uint8_t> random_elements(KvFormat format, std::uint64_t seed) {
  const Random random(seed);
  std::vector<std::uint8_t> bytes(std::size_t{4} << 20);
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    std::uint32_t bits = static_cast<std::uint32_t>(random.bits(i)) & 0x7777;
    if (format == KvFormat::bf16) {
      const float value = random.uniform(-2, 2, i);
      std::memcpy(&bits, &value, 4);
      bits >>= 16;
    }
    bytes[i] = static_cast<std::uint8_t>(bits), bytes[i + 1] = static_cast<std::uint8_t>(bits >> 8);
  }
  return bytes;
}

struct Shape {
  int sequences = 1;
  int context = 0;
  int queries = 1;
  KvFormat format = KvFormat::bf16;
  int window = 0;
};

/// As many layers as make the cache bigger than the L2, one batch.
class Work {
 public:
  explicit Work(const Shape& shape)
      : shape_(shape),
        pages_(pages_of(shape.context + shape.queries)),
        rows_(std::size_t(shape.sequences) * std::size_t(pages_) * kKvHeads * kPageTokens),
        layer_bytes_(rows_ * kHeadDim * std::size_t(kv_element_bytes(shape.format))),
        layers_(int(std::clamp<std::size_t>(kRotated / (2 * layer_bytes_) + 1, 2, 64))),
        k_(layer_bytes_ * std::size_t(layers_)),
        v_(layer_bytes_ * std::size_t(layers_)),
        scales_(std::vector<float>(rows_, 1.0f / 64)),
        sinks_(std::vector<float>(kHeads, 0.5f)),
        q_(std::size_t(tokens()) * kHeads * kHeadDim * 2),
        out_(std::size_t(tokens()) * kHeads * kHeadDim * 2),
        first_(first_tokens()),
        context_(std::vector<std::int32_t>(std::size_t(shape.sequences), shape.context)),
        token_sequence_(token_sequences()),
        table_(table()) {
    k_.fill(random_elements(shape.format, 1));
    v_.fill(random_elements(shape.format, 2));
    q_.fill(random_elements(KvFormat::bf16, 3));
  }

  int num_layers() const { return layers_; }
  int tokens() const { return shape_.sequences * shape_.queries; }
  Attention layer(int i) const {
    const std::size_t offset = layer_bytes_ * std::size_t(i % layers_);
    return {.q = q_.as<__nv_bfloat16>(),
            .out = out_.as<__nv_bfloat16>(),
            .sinks = sinks_.as<float>(),
            .cache = {.format = shape_.format,
                      .k = k_.as<std::uint8_t>() + offset,
                      .v = v_.as<std::uint8_t>() + offset,
                      .k_scale = scales_.as<float>(),
                      .v_scale = scales_.as<float>(),
                      .num_pages = shape_.sequences * pages_,
                      .num_kv_heads = kKvHeads},
            .batch = {.num_sequences = shape_.sequences,
                      .num_tokens = tokens(),
                      .first_token = first_.as<std::int32_t>(),
                      .context = context_.as<std::int32_t>(),
                      .table = table_.as<std::int32_t>(),
                      .token_sequence = token_sequence_.as<std::int32_t>(),
                      .table_stride = pages_,
                      .max_query = shape_.queries,
                      .max_context = shape_.context + shape_.queries},
            .num_heads = kHeads,
            .window = shape_.window};
  }

  /// Keys that all queries see, summed.
  double visible() const {
    double keys = 0;
    for (int i = 0; i < shape_.queries; ++i) {
      const int seen = shape_.context + i + 1;
      keys += shape_.window > 0 ? std::min(seen, shape_.window) : seen;
    }
    return keys * shape_.sequences;
  }
  double teraflops() const { return visible() * kHeads * kHeadDim * 4 * 1e-12; }
  double read_bytes() const {
    const int element = kv_element_bytes(shape_.format);
    return visible() * kKvHeads * 2 * (kHeadDim * element + (element == 1 ? 4 : 0));
  }

 private:
  std::vector<std::int32_t> first_tokens() const {
    std::vector<std::int32_t> first;
    for (int s = 0; s <= shape_.sequences; ++s) first.push_back(s * shape_.queries);
    return first;
  }
  std::vector<std::int32_t> token_sequences() const {
    std::vector<std::int32_t> all;
    for (int t = 0; t < tokens(); ++t) all.push_back(t / shape_.queries);
    return all;
  }
  std::vector<std::int32_t> table() const {
    std::vector<std::int32_t> all;
    for (int i = 0; i < shape_.sequences * pages_; ++i) all.push_back(i);
    Random random(7);
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.next_below(i)]);
    return all;
  }

  Shape shape_;
  int pages_;
  std::size_t rows_, layer_bytes_;
  int layers_;
  Buffer k_, v_, scales_, sinks_, q_, out_, first_, context_, token_sequence_, table_;
};

/// Median microseconds of a launch: a graph of `launches`, replayed.
double microseconds(int launches, const std::function<void(int, const Launch&)>& launch_one) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t begin, end;
  cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cuda_check(cudaEventCreate(&begin));
  cuda_check(cudaEventCreate(&end));
  cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < launches; ++i) {
    launch_one(i, {.stream = stream, .overlap = Overlap::dependent});
  }
  cuda_check(cudaStreamEndCapture(stream, &graph));
  cuda_check(cudaGraphInstantiate(&exec, graph, 0));
  std::vector<double> times;
  for (int i = 0; i < kRepeats + 2; ++i) {
    cuda_check(cudaEventRecord(begin, stream));
    cuda_check(cudaGraphLaunch(exec, stream));
    cuda_check(cudaEventRecord(end, stream));
    cuda_check(cudaStreamSynchronize(stream));
    float milliseconds = 0;
    cuda_check(cudaEventElapsedTime(&milliseconds, begin, end));
    if (i >= 2) times.push_back(milliseconds * 1e3 / launches);
  }
  cuda_check(cudaGraphExecDestroy(exec));
  cuda_check(cudaGraphDestroy(graph));
  cuda_check(cudaEventDestroy(begin));
  cuda_check(cudaEventDestroy(end));
  cuda_check(cudaStreamDestroy(stream));
  std::ranges::nth_element(times, times.begin() + kRepeats / 2);
  return times[kRepeats / 2];
}

const char* name_of(KvFormat format) { return format == KvFormat::bf16 ? "bf16" : "fp8"; }

void print_shape(const char* what, const Shape& shape) {
  std::printf("%-8s %-4s %-7s %4d x %5d at %6d", what, name_of(shape.format),
              shape.window > 0 ? "sliding" : "full", shape.sequences, shape.queries, shape.context);
}

void time_prefill(const Shape& shape) {
  const Work work(shape);
  const double us =
      microseconds(4, [&](int i, const Launch& how) { prefill_attention(work.layer(i), how); });
  print_shape("prefill", shape);
  std::printf(" %10.1f us %8.1f TFLOP/s\n", us, work.teraflops() / us * 1e6);
}

void time_naive(const Shape& shape) {
  const Work work(shape);
  const Buffer scores(std::size_t{512} << 20);
  const double us = microseconds(2, [&](int i, const Launch& how) {
    naive_attention(work.layer(i), {.scores = scores.as<float>(), .bytes = std::size_t{512} << 20},
                    how);
  });
  print_shape("naive", shape);
  std::printf(" %10.1f us %8.1f TFLOP/s %6.2f TB/s\n", us, work.teraflops() / us * 1e6,
              work.read_bytes() / us * 1e-6);
}

/// With 0 pages per split the plan chooses.
void time_decode(const Shape& shape, int num_sms, int pages_per_split = 0) {
  const Work work(shape);
  const DecodeShape decode{.num_sequences = shape.sequences,
                           .num_kv_heads = kKvHeads,
                           .max_context = shape.context + 1,
                           .window = shape.window,
                           .num_sms = num_sms};
  const int pages = pages_per_split > 0 ? pages_per_split : choose_pages_per_split(decode);
  const Buffer partials(decode_partial_bytes(decode, pages));
  const Buffer arrived(std::size_t(shape.sequences) * kKvHeads * sizeof(std::uint32_t));
  const double us = microseconds(2 * work.num_layers(), [&](int i, const Launch& how) {
    decode_attention(work.layer(i),
                     {.pages_per_split = pages,
                      .partials = partials.as<void>(),
                      .arrived = arrived.as<std::uint32_t>()},
                     how);
  });
  print_shape(pages_per_split > 0 ? "  decode" : "decode", shape);
  std::printf(" %10.2f us %8.2f TB/s  %d pages per split, %d splits\n", us,
              work.read_bytes() / us * 1e-6, pages, decode_splits(decode, pages));
}

void time_rope(const Shape& shape) {
  const Work work(shape);
  constexpr int kWidth = (kHeads + 2 * kKvHeads) * kHeadDim;
  const auto row_bytes = std::size_t{kWidth} * sizeof(float);
  const auto row = std::size_t(work.tokens()) * row_bytes;
  const std::size_t copies = std::clamp<std::size_t>(kRotated / row + 1, 2, 64);
  const Buffer qkv(row * copies);
  const Buffer rope(std::size_t(shape.context + shape.queries) * kHeadDim * sizeof(float));
  const double us = microseconds(int(copies), [&](int i, const Launch& how) {
    const Attention layer = work.layer(i);
    rope_kv({.qkv = qkv.as<float>() + std::size_t(i) * row / sizeof(float),
             .qkv_stride = kWidth,
             .rope = rope.as<float2>(),
             .q = const_cast<__nv_bfloat16*>(layer.q),
             .num_heads = kHeads,
             .cache = layer.cache,
             .batch = layer.batch},
            how);
  });
  const double written =
      kHeads * kHeadDim * 2 + 2 * kKvHeads * kHeadDim * kv_element_bytes(shape.format);
  print_shape("rope_kv", shape);
  std::printf(" %10.2f us %8.2f TB/s\n", us,
              (double(row_bytes) + written) * work.tokens() / us * 1e-6);
}

void run() {
  int device = 0, num_sms = 0;
  cuda_check(cudaGetDevice(&device));
  cuda_check(cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, device));
  for (const KvFormat format : {KvFormat::bf16, KvFormat::fp8}) {
    for (const int window : {0, kWindow}) {
      time_prefill({.queries = 8192, .format = format, .window = window});
      time_prefill({.queries = 2048, .format = format, .window = window});
      time_prefill({.sequences = 32, .queries = 512, .format = format, .window = window});
      time_prefill({.context = 6144, .queries = 2048, .format = format, .window = window});
      for (const int context : {512, 8191}) {
        for (const int sequences : {1, 8, 64, 256}) {
          time_decode(
              {.sequences = sequences, .context = context, .format = format, .window = window},
              num_sms);
        }
      }
    }
    for (const int pages : {1, 2, 3, 4, 8}) {
      time_decode({.context = 511, .format = format}, num_sms, pages);
    }
    for (const int pages : {2, 4, 8, 16, 32}) {
      time_decode({.context = 8191, .format = format}, num_sms, pages);
    }
    for (const int pages : {16, 32, 64, 128}) {
      time_decode({.sequences = 64, .context = 8191, .format = format}, num_sms, pages);
    }
    for (const int tokens : {1, 64, 8192}) time_rope({.queries = tokens, .format = format});
    time_naive({.queries = 2048, .format = format});
    time_naive({.sequences = 8, .context = 512, .format = format});
  }
}

}  // namespace
}  // namespace gauntlet::kernels::cuda

int main() {
  gauntlet::kernels::cuda::run();
  return 0;
}
