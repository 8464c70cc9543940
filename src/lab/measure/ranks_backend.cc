#include "lab/measure/ranks_backend.h"

#include "core/check.h"

namespace gauntlet::lab::inline measure {
namespace {

/// What a group could not do ends the measuring of this rank, and with it the job.
template <class T>
T must(Expected<T> result) {
  if (!result) fail(result.error().message);
  return std::move(*result);
}
void must(const Expected<void>& result) {
  if (!result) fail(result.error().message);
}

class RanksBackend final : public Backend {
 public:
  RanksBackend(ranks::Group& group, std::shared_ptr<KnownThreads> known)
      : group_(group), cpu_(make_cpu_backend(group.rank(), group.size(), std::move(known))) {
    // Nobody measures before every rank's threads are known to all.
    must(group_.barrier());
  }

  BackendKind kind() const override { return BackendKind::ranks; }
  int rank() const override { return group_.rank(); }
  int num_ranks() const override { return group_.size(); }

  void* allocate(std::size_t bytes, Memory memory) override {
    return cpu_->allocate(bytes, memory);
  }
  void release(void* pointer, Memory memory) noexcept override { cpu_->release(pointer, memory); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    cpu_->upload(to, from, bytes);
  }
  bool download(void* to, const void* from, std::size_t bytes) override {
    return cpu_->download(to, from, bytes);
  }
  void set_bytes(void* to, unsigned char value, std::size_t bytes) override {
    cpu_->set_bytes(to, value, bytes);
  }
  void renew(const InputJob& job) override { cpu_->renew(job); }

  Side make_side(const Target& target, std::size_t side, const void* params) override {
    return target.source.ranks[side].ranks(
        params, {.group = &group_, .rank = group_.rank(), .size = group_.size()});
  }

  void synchronize() override { must(group_.barrier()); }
  void watch() override { cpu_->watch(); }
  void call(const std::function<void()>& work) override { cpu_->call(work); }
  void listen_again(Timing& timing) override {
    Timing more;
    cpu_->listen_again(more);
    timing.after_ns += must(ranks::all_max(group_, more.after_ns));
  }

  /// From the moment all ranks are ready to the moment the last one is done.
  Timing time(const std::function<void()>& work, Caches caches) override {
    if (caches == Caches::flushed) cpu_->flush_caches();
    must(group_.barrier());
    Timing timing = cpu_->time(work, Caches::as_they_are);
    timing.ns = must(ranks::all_max(group_, timing.ns));
    timing.before_ns = must(ranks::all_max(group_, timing.before_ns));
    timing.after_ns = must(ranks::all_max(group_, timing.after_ns));
    timing.left_process = !must(ranks::all_true(group_, !timing.left_process));
    timing.restless = !must(ranks::all_true(group_, !timing.restless));
    return timing;
  }
  void flush_caches() override { cpu_->flush_caches(); }

  double min_sample_ns() const override { return cpu_->min_sample_ns(); }
  std::int64_t set_bytes_limit(Cost::Level level) const override {
    return cpu_->set_bytes_limit(level) / group_.size();
  }
  std::optional<GpuState> sensors() override { return std::nullopt; }

  double agree(double value) override { return must(ranks::agree(group_, value)); }
  bool all_agree(bool yes) override { return must(ranks::all_true(group_, yes)); }

 private:
  ranks::Group& group_;
  std::unique_ptr<Backend> cpu_;
};

}  // namespace

std::unique_ptr<Backend> make_ranks_backend(ranks::Group& group,
                                            std::shared_ptr<KnownThreads> known) {
  return std::make_unique<RanksBackend>(group, std::move(known));
}

}  // namespace gauntlet::lab::inline measure
