// A device under a test's control: host memory, a clock that moves only when a side spends time on
// it, a log of the samples taken; and a pair small enough to be wrong in every way.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "lab/measure/backend.h"

namespace gauntlet::lab::inline measure {

class FakeBackend final : public Backend {
 public:
  struct Sample {
    SideIndex side = kBaseline;
    const void* params = nullptr;  // which set
    int runs = 0;
    bool operator==(const Sample&) const = default;
  };

  explicit FakeBackend(BackendKind kind = BackendKind::cuda) : kind_(kind) {}

  // What a side calls, and what a test sets.
  void spend(double ns) { stream_ns_ += ns; }
  void spend_elsewhere(double ns) { elsewhere_ns_ += ns; }
  double overhead_ns = 0;  // of each sample
  double sample_ns = 1e6;
  std::function<std::optional<GpuState>()> read_sensors;

  // What a test reads.
  std::vector<Sample> samples;
  int flushes = 0;
  std::size_t live_buffers() const { return buffers_.size(); }

  BackendKind kind() const override { return kind_; }

  void* allocate(std::size_t bytes, Memory) override {
    auto buffer = std::make_unique<unsigned char[]>(bytes);
    unsigned char* pointer = buffer.get();
    buffers_[pointer] = std::move(buffer);
    return pointer;
  }
  void release(void* pointer, Memory) noexcept override { buffers_.erase(pointer); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void set_bytes(void* to, unsigned char value, std::size_t bytes) override {
    std::memset(to, value, bytes);
  }

  Side make_side(const Target& target, SideIndex index, const void* params) override {
    Side side = kind_ == BackendKind::cpu ? (*target.source.cpu)[index](params, {})
                                          : (*target.source.cuda)[index](params, {});
    side.run = [this, index, params, run = std::move(side.run)] {
      current_ = {index, params, current_.runs + 1};
      run();
    };
    return side;
  }

  void synchronize() override {}
  Timing time(const std::function<void()>& work) override {
    current_ = {};
    stream_ns_ = overhead_ns;
    elsewhere_ns_ = 0;
    work();
    samples.push_back(current_);
    return {.ns = stream_ns_, .wall_ns = stream_ns_ + elsewhere_ns_};
  }
  void flush_caches() override { ++flushes; }
  double min_sample_ns() const override { return sample_ns; }
  std::optional<GpuState> sensors() override {
    return read_sensors ? read_sensors() : std::nullopt;
  }

 private:
  BackendKind kind_;
  std::map<void*, std::unique_ptr<unsigned char[]>> buffers_;
  Sample current_;
  double stream_ns_ = 0;
  double elsewhere_ns_ = 0;
};

struct TwiceParams {
  const float* in;  // [n]
  float* out;       // [n]
  std::int64_t n;
};

/// What the pair asks for, done right.
inline void twice(const TwiceParams& p) {
  for (std::int64_t i = 0; i < p.n; ++i) p.out[i] = 2.0f * p.in[i];
}

using TwiceFactory = std::function<Side(const TwiceParams&)>;

/// "ch07:twice" on both backends, with the same two sides.
inline Target twice_target(const TwiceFactory& baseline, const TwiceFactory& optimized) {
  const auto cost = [](const Knobs& knobs) {
    const auto n = static_cast<double>(knobs["n"]);
    return Cost{.read_bytes = 4 * n, .write_bytes = 4 * n, .flops = n};
  };
  const auto make = [](const TwiceFactory& factory, const void* params) {
    return factory(*static_cast<const TwiceParams*>(params));
  };
  TargetSource source{.chapter = "ch07", .name = "twice", .has_cuda_source = true};
  source.cpu = {{[=](const void* p, const Cpu&) { return make(baseline, p); },
                 [=](const void* p, const Cpu&) { return make(optimized, p); }}};
  source.cuda = {{[=](const void* p, const Cuda&) { return make(baseline, p); },
                  [=](const void* p, const Cuda&) { return make(optimized, p); }}};
  return make_target<TwiceParams>(
      std::move(source), {.title = "slow → fast",
                          .technique = "doubling",
                          .knobs = {{.name = "n", .cpu = 1000, .cuda = 500, .help = "elements"}},
                          .cpu = BackendFacts{.claim = "Doubles on a CPU.",
                                              .cost = cost,
                                              .witness = Witness::none("a test")},
                          .cuda = BackendFacts{.claim = "Doubles on a GPU.",
                                               .cost = cost,
                                               .witness = Witness::none("a test")},
                          .bind =
                              [](Binder& b) {
                                const std::int64_t n = b.knob("n");
                                return TwiceParams{.in = b.input<float>("in", n, Fill::uniform()),
                                                   .out = b.output<float>("out", n),
                                                   .n = n};
                              },
                          .reference =
                              [](const TwiceParams& p, Reference& r) {
                                const auto out = r.values("out", {.length = 1});
                                for (std::int64_t i = 0; i < p.n; ++i) {
                                  out[static_cast<std::size_t>(i)] =
                                      2.0 * static_cast<double>(p.in[i]);
                                }
                              }});
}

/// Both sides right and free.
inline Target twice_target() {
  const auto right = [](const TwiceParams& p) { return Side([p] { twice(p); }); };
  return twice_target(right, right);
}

}  // namespace gauntlet::lab::inline measure
