// How fast attention is at gpt-oss's shape: prefill beside the matrix units, decode beside the
// memory that keys and values are read from.
#include <fmt/format.h>

#include "bench/cuda/attention_work.h"
#include "kernels/cuda/decode_attention.h"
#include "kernels/cuda/naive_attention.h"
#include "kernels/cuda/prefill_attention.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;
using namespace gauntlet::kernels::cuda;

constexpr int kWindow = 128;
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

/// With 0 pages per split the plan chooses.
void time_decode(const Bench& bench, const bench::Shape& shape, int pages_per_split = 0) {
  const AttentionWork work(shape);
  const DecodeShape decode{.num_sequences = shape.sequences,
                           .num_kv_heads = kKvHeads,
                           .max_context = shape.context + 1,
                           .window = shape.window,
                           .num_sms = bench.num_sms()};
  const int pages = pages_per_split > 0 ? pages_per_split : choose_pages_per_split(decode);
  const Buffer partials(static_cast<std::int64_t>(decode_partial_bytes(decode, pages)));
  const Buffer arrived(std::int64_t{shape.sequences} * kKvHeads * 4);
  Kernel kernel = kernel_of("decode_attention", work);
  kernel.launches = work.num_layers();
  kernel.launch = [&](int i, const Launch& how) {
    decode_attention(work.layer(i),
                     {.pages_per_split = pages,
                      .partials = partials.as<void>(),
                      .arrived = arrived.as<std::uint32_t>()},
                     how);
  };
  kernel.remark = fmt::format("{} pages per split, {} splits", pages, decode_splits(decode, pages));
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
          time_decode(
              bench,
              {.sequences = sequences, .context = context, .format = format, .window = window});
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
