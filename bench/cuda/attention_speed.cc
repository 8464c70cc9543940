// How fast attention is at gpt-oss's shape: prefill beside the matrix units, decode beside the
// memory that keys and values are read from, and beside two launches where it also rotates and
// stores.
#include <fmt/format.h>
#include <vector_types.h>

#include "bench/cuda/attention_work.h"
#include "kernels/cuda/attention/decode_attention.h"
#include "kernels/cuda/attention/naive_attention.h"
#include "kernels/cuda/attention/prefill_attention.h"
#include "kernels/cuda/attention/rope_kv.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;
using namespace gauntlet::kernels::cuda;

constexpr int kWindow = 128;
constexpr int kWidth = (kHeads + 2 * kKvHeads) * kHeadDim;
constexpr std::int64_t kScoreBytes = std::int64_t{512} << 20;

Kernel kernel_of(const char* name, const AttentionWork& work) {
  return {.name = name, .shape = work.shape().text(), .bytes = work.bytes(), .verify = [&] {
            work.verify();
          }};
}

void time_prefill(const Bench& bench, const bench::Shape& shape) {
  const AttentionWork work(shape);
  Kernel kernel = kernel_of("prefill_attention", work);
  kernel.flop = work.flop();
  kernel.launches = 4;
  kernel.launch = [&](int i, const Launch& how) { prefill_attention(work.layer(i), how); };
  bench.report(kernel);
}

void time_naive(const Bench& bench, const bench::Shape& shape) {
  const AttentionWork work(shape);
  const Buffer scores(kScoreBytes);
  Kernel kernel = kernel_of("naive_attention", work);
  kernel.flop = work.flop();
  kernel.launches = 2;
  kernel.launch = [&](int i, const Launch& how) {
    naive_attention(work.layer(i),
                    {.scores = scores.as<float>(), .bytes = std::size_t{kScoreBytes}}, how);
  };
  bench.report(kernel);
}

/// How a batch is split, and the workspace for it.
class SplitWork {
 public:
  /// With 0 pages per split the plan chooses.
  SplitWork(const Bench& bench, const bench::Shape& shape, int pages_per_split)
      : decode_{.num_sequences = shape.sequences,
                .num_kv_heads = kKvHeads,
                .max_context = shape.context + 1,
                .window = shape.window,
                .num_sms = bench.num_sms()},
        pages_(pages_per_split > 0 ? pages_per_split : choose_pages_per_split(decode_)),
        partials_(static_cast<std::int64_t>(decode_partial_bytes(decode_, pages_))),
        arrived_(std::int64_t{shape.sequences} * kKvHeads * 4) {}

  DecodeSplit split() const {
    return {.pages_per_split = pages_,
            .partials = partials_.as<void>(),
            .arrived = arrived_.as<std::uint32_t>()};
  }
  std::string remark() const {
    return fmt::format("{} pages per split, {} splits", pages_, decode_splits(decode_, pages_));
  }

 private:
  DecodeShape decode_;
  int pages_;
  Buffer partials_, arrived_;
};

void time_decode(const Bench& bench, const bench::Shape& shape, int pages_per_split = 0) {
  const AttentionWork work(shape);
  const SplitWork split(bench, shape, pages_per_split);
  Kernel kernel = kernel_of("decode_attention", work);
  kernel.launches = work.num_layers();
  kernel.launch = [&](int i, const Launch& how) {
    decode_attention(work.layer(i), split.split(), how);
  };
  kernel.remark = split.remark();
  bench.report(kernel);
}

/// From the q, k, v product on, in one launch and in two; what one leaves must be what two leave.
void time_rope_decode(const Bench& bench, const bench::Shape& shape) {
  const AttentionWork work(shape);
  const SplitWork split(bench, shape, 0);
  const Buffer qkv(random_floats(std::int64_t{shape.tokens()} * kWidth, 5, 2));
  const Buffer rope(random_floats(std::int64_t{shape.context + 1} * kHeadDim, 6));
  const Buffer q(std::int64_t{shape.tokens()} * kHeads * kHeadDim * 2);
  const auto in_one = [&](int i, const Launch& how) {
    rope_decode_attention(work.layer(i),
                          {.qkv = qkv.as<float>(), .qkv_stride = kWidth, .rope = rope.as<float2>()},
                          split.split(), how);
  };
  const auto in_two = [&](int i, const Launch& how) {
    Attention layer = work.layer(i);
    layer.q = q.as<__nv_bfloat16>();
    rope_kv({.qkv = qkv.as<float>(),
             .qkv_stride = kWidth,
             .rope = rope.as<float2>(),
             .q = q.as<__nv_bfloat16>(),
             .num_heads = kHeads,
             .cache = layer.cache,
             .batch = layer.batch},
            how);
    decode_attention(layer, split.split(), how);
  };
  const double q_bytes = 2.0 * shape.tokens() * kHeads * kHeadDim;
  Kernel kernel{.name = "rope_decode_attention",
                .shape = shape.text(),
                .bytes = work.bytes() - q_bytes + 4.0 * shape.tokens() * kWidth,
                .launches = work.num_layers(),
                .launch = in_one,
                .verify =
                    [&] {
                      const auto one = work.output();
                      in_two(0, {});
                      check(one == work.output(), "one launch leaves other bits than two");
                    },
                .remark = split.remark()};
  bench.report(kernel);
  kernel.name = "rope_kv, attention";
  kernel.launch = in_two;
  bench.report(kernel);
}

void run(const Bench& bench) {
  for (const KvFormat format : {KvFormat::bf16, KvFormat::fp8}) {
    for (const int window : {0, kWindow}) {
      time_prefill(bench, {.queries = 8192, .format = format, .window = window});
      time_prefill(bench, {.queries = 2048, .format = format, .window = window});
      time_prefill(bench, {.sequences = 32, .queries = 512, .format = format, .window = window});
      time_prefill(bench, {.context = 6144, .queries = 2048, .format = format, .window = window});
      for (const int context : {512, 8191}) {
        for (const int sequences : {1, 8, 64, 256}) {
          const bench::Shape shape{
              .sequences = sequences, .context = context, .format = format, .window = window};
          time_decode(bench, shape);
          time_rope_decode(bench, shape);
        }
      }
    }
    for (const int pages : {1, 2, 3, 4, 8}) {
      time_decode(bench, {.context = 511, .format = format}, pages);
    }
    for (const int pages : {2, 4, 8, 16, 32}) {
      time_decode(bench, {.context = 8191, .format = format}, pages);
    }
    for (const int pages : {16, 32, 64, 128}) {
      time_decode(bench, {.sequences = 64, .context = 8191, .format = format}, pages);
    }
    time_naive(bench, {.queries = 2048, .format = format});
    time_naive(bench, {.sequences = 8, .context = 512, .format = format});
  }
}

}  // namespace

int main() { return gauntlet::bench::run_on_gpu(run); }
