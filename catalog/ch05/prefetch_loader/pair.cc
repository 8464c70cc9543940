#include "catalog/ch05/prefetch_loader/pair.h"

#include <vector>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch05::prefetch_loader {
namespace {

constexpr std::int64_t kFileBytes = std::int64_t{256} << 20;

double bytes_of(const lab::Knobs& knobs) {
  return kFeatures * static_cast<double>(knobs["batches"] * knobs["samples"]);
}

}  // namespace

lab::Pair<Params> pair() {
  const auto stored = std::make_shared<StoredWords>(kFileBytes);
  return {
      .title = "read then use → prefetching workers",
      .technique = "read_ahead_workers",
      .needs = {"O_DIRECT"},
      .knobs = {{.name = "batches", .cpu = 32, .max = 1024, .help = "read and used in turn"},
                {.name = "samples",
                 .cpu = 1024,
                 .max = 1 << 16,
                 .multiple_of = 4,
                 .help = "of 1 KiB in a batch"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "While one batch is used a worker waits for the disk in the user's stead, so "
                  "that the user seldom waits; it takes a second CPU while the disk answers.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.read_bytes = bytes_of(k), .level = lab::Cost::Level::disk};
              },
              .witness = lab::Witness::outcome("waiting_ms", lab::Witness::Moves::falls, 1.5,
                                               "time in which the thread that uses the data did "
                                               "not run, by the kernel's clocks")},
      .bind =
          [stored](lab::Binder& b) {
            const auto batches = b.knob("batches"), samples = b.knob("samples");
            const std::int64_t pages = samples * kFeatures / kDirectBytes;
            return Params{.stored = stored,
                          .start = b.input<std::int32_t>(
                              "start", batches, lab::Fill::integers(0, stored->pages() - pages)),
                          .weights = b.input<std::int8_t>("weights", kOutputs * kFeatures,
                                                          lab::Fill::bytes()),
                          .out = b.output<std::int32_t>("out", batches * samples * kOutputs),
                          .batches = batches,
                          .samples = samples};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::int32_t>("out");
            const std::int64_t batch_words = p.samples * kFeatures / 8;
            std::vector<std::uint64_t> batch(static_cast<std::size_t>(batch_words));
            for (std::int64_t i = 0; i < p.batches; ++i) {
              p.stored->recompute(batch, p.start[i]);
              const auto* bytes = reinterpret_cast<const std::int8_t*>(batch.data());
              parallel_for(
                  p.samples,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t sample = begin; sample < end; ++sample) {
                      for (int output = 0; output < kOutputs; ++output) {
                        std::int32_t sum = 0;
                        for (int k = 0; k < kFeatures; ++k) {
                          sum += bytes[sample * kFeatures + k] * p.weights[output * kFeatures + k];
                        }
                        out[(i * p.samples + sample) * kOutputs + output] = sum;
                      }
                    }
                  },
                  512);
            }
          },
  };
}

}  // namespace gauntlet::ch05::prefetch_loader
