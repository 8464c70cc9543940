// A device under a test's control: host memory, a clock that moves only when a side spends time on
// it, a log of the samples taken; and a target small enough to be wrong in every way.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/check.h"
#include "lab/measure/backend.h"

namespace gauntlet::lab::inline measure {

class FakeBackend final : public Backend {
 public:
  struct Sample {
    std::size_t side = 0;
    std::vector<const void*> sets = {};  // the parameters of each run
    bool cold = false;
    bool watched = false;  // calibration does not look for work outside of the clock
    bool partial = false;  // its inputs were renewed in part only
    bool checked = false;  // its outputs were read before there were new inputs

    std::size_t runs() const { return sets.size(); }
    bool operator==(const Sample&) const = default;
  };
  struct Renewal {
    const void* data = nullptr;
    InputVersion version;
  };

  explicit FakeBackend(BackendKind kind = BackendKind::cuda) : kind_(kind) {}

  // What a side calls.
  void spend(double ns) { clock_ns_ += ns; }
  void spend_before(double ns) { before_ns_ += ns; }
  void spend_after(double ns) { after_ns_ += ns; }
  void leave_process() { left_process_ = true; }

  // What a test sets.
  double overhead_ns = 0;  // of each sample
  double sample_ns = 1e6;
  std::function<std::int64_t(Cost::Level)> limit;
  std::function<std::optional<GpuState>()> read_sensors;
  std::function<double(double)> on_agree;
  std::function<bool(bool)> on_all_agree;
  /// "renew", "move_to_host", "set_bytes", "watch", "time", "download"
  std::function<void(const char*)> on_event;
  std::set<const void*> unreadable;  // where downloads fail

  // What a test reads.
  std::vector<Sample> samples;
  std::vector<Renewal> renewals;
  std::vector<const void*> moved_to_host;
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
  bool download(void* to, const void* from, std::size_t bytes) override {
    tell("download");
    if (judging_) samples.back().checked = true;
    if (unreadable.contains(from)) return false;
    std::memcpy(to, from, bytes);
    return true;
  }
  void set_bytes(void* to, unsigned char value, std::size_t bytes) override {
    tell("set_bytes");
    std::memset(to, value, bytes);
  }
  void renew(const InputJob& job) override {
    tell("renew");
    renewals.push_back({job.data, job.version});
    judging_ = false;
    partial_ = job.version.renewed != InputVersion::Renewed::all;
    job.write(job.data, 0, job.spec.count);
  }

  void move_to_host(void* managed, std::size_t) override {
    tell("move_to_host");
    moved_to_host.push_back(managed);
  }

  Side make_side(const Target& target, std::size_t index, const void* params) override {
    const SideSource& source = target.sides(kind_)[index];
    Side side = kind_ == BackendKind::cpu ? source.cpu(params, {}) : source.cuda(params, {});
    side.run = [this, index, params, run = std::move(side.run)] {
      current_.side = index;
      current_.sets.push_back(params);
      run();
    };
    return side;
  }

  void synchronize() override {}
  void watch() override {
    tell("watch");
    watched_ = true;
    before_ns_ = 0;
  }
  Timing time(const std::function<void()>& work, Caches caches) override {
    tell("time");
    current_ = {.cold = caches == Caches::flushed,
                .watched = std::exchange(watched_, false),
                .partial = std::exchange(partial_, false)};
    clock_ns_ = overhead_ns;
    after_ns_ = 0;
    work();
    samples.push_back(current_);
    judging_ = true;
    return {.ns = clock_ns_,
            .before_ns = before_ns_,
            .after_ns = after_ns_,
            .left_process = std::exchange(left_process_, false)};
  }
  void flush_caches() override {}
  double min_sample_ns() const override { return sample_ns; }
  std::int64_t set_bytes_limit(Cost::Level level) const override {
    return limit ? limit(level) : std::int64_t{1} << 40;
  }
  std::optional<GpuState> sensors() override {
    return read_sensors ? read_sensors() : std::nullopt;
  }
  double agree(double value) override { return on_agree ? on_agree(value) : value; }
  bool all_agree(bool yes) override { return on_all_agree ? on_all_agree(yes) : yes; }

 private:
  void tell(const char* event) const {
    if (on_event) on_event(event);
  }

  BackendKind kind_;
  std::map<void*, std::unique_ptr<unsigned char[]>> buffers_;
  Sample current_;
  double clock_ns_ = 0;
  double before_ns_ = 0;
  double after_ns_ = 0;
  bool left_process_ = false;
  bool watched_ = false;
  bool partial_ = false;
  bool judging_ = false;
};

struct TwiceParams {
  const float* in;  // [n]
  float* out;       // [n]
  std::int64_t n;
};

/// What the target asks for, done right.
inline void twice(const TwiceParams& p) {
  for (std::int64_t i = 0; i < p.n; ++i) p.out[i] = 2.0f * p.in[i];
}

using TwiceFactory = std::function<Side(const TwiceParams&)>;

struct TwiceSide {
  std::string name;
  SideRole role = SideRole::rung;
  TwiceFactory make;
};

/// "ch07:twice" on the CPU and on a GPU, with the same sides.
inline Target twice_target(const std::vector<TwiceSide>& sides) {
  const auto cost = [](const Knobs& knobs) {
    const auto n = static_cast<double>(knobs["n"]);
    return Cost{.read_bytes = 4 * n, .write_bytes = 4 * n, .flops = n};
  };
  TargetSource source{.chapter = "ch07", .name = "twice"};
  for (const TwiceSide& side : sides) {
    const auto make = [factory = side.make](const void* params) {
      return factory(*static_cast<const TwiceParams*>(params));
    };
    source.cpu.push_back({.name = side.name,
                          .role = side.role,
                          .cpu = [make](const void* p, const Cpu&) { return make(p); }});
    source.cuda.push_back({.name = side.name,
                           .role = side.role,
                           .cuda = [make](const void* p, const Cuda&) { return make(p); }});
  }
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

inline Target twice_target(const TwiceFactory& baseline, const TwiceFactory& optimized) {
  return twice_target(
      {{"baseline", SideRole::baseline, baseline}, {"optimized", SideRole::optimized, optimized}});
}

/// Both sides right and free.
inline Target twice_target() {
  const auto right = [](const TwiceParams& p) { return Side([p] { twice(p); }); };
  return twice_target(right, right);
}

/// A lab: rungs "naive", "tiled" and "async", and a library to compare the last one with.
inline Target twice_ladder(const std::vector<TwiceFactory>& rungs_and_yardstick) {
  const std::vector<std::string> names = {"naive", "tiled", "async", "library"};
  check(rungs_and_yardstick.size() == names.size(), "a ladder of three rungs and a yardstick");
  std::vector<TwiceSide> sides;
  for (std::size_t i = 0; i < names.size(); ++i) {
    sides.push_back(
        {names[i], i < 3 ? SideRole::rung : SideRole::yardstick, rungs_and_yardstick[i]});
  }
  Target target = twice_target(sides);
  target.source.chapter = "labs";
  return target;
}

}  // namespace gauntlet::lab::inline measure
