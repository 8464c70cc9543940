// A worker reads up to kAhead batches ahead of the one that is used.
#include <sched.h>

#include <memory>
#include <semaphore>
#include <thread>

#include "catalog/ch05/prefetch_loader/pair.h"
#include "core/check.h"
#include "core/os/pages.h"
#include "core/os/threads.h"
#include "lab/author/counted.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::prefetch_loader::cpu {
namespace {

constexpr std::int64_t kAhead = 4;

/// A thread that fills a ring of batches whenever a run asks for it, and sleeps otherwise.
class Loader {
 public:
  explicit Loader(const Params& p)
      : p_(p),
        file_(p.stored->file().direct()),
        bytes_(p.samples * kFeatures),
        ring_(kAhead * bytes_),
        thread_([this] { work(); }) {}
  ~Loader() {
    ends_ = true;
    asked_.release();
    thread_.join();
  }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  void start() { asked_.release(); }
  /// Batches come in order; nothing where it could not be read.
  const std::int8_t* next() {
    filled_.acquire();
    if (failed_) return nullptr;
    return reinterpret_cast<const std::int8_t*>(slot(taken_++));
  }
  void give_back() { empty_.release(); }

 private:
  unsigned char* slot(std::int64_t batch) const { return ring_.data() + batch % kAhead * bytes_; }
  void work() {
    // The measuring thread is pinned, and this one starts where that is: anywhere else is better.
    cpu_set_t anywhere;
    CPU_ZERO(&anywhere);
    for (const int cpu : allowed_cpus()) CPU_SET(cpu, &anywhere);
    sched_setaffinity(0, sizeof(anywhere), &anywhere);
    for (std::int64_t batch = 0;;) {
      asked_.acquire();
      if (ends_) return;
      for (std::int64_t i = 0; i < p_.batches; ++i, ++batch) {
        empty_.acquire();
        if (!read_fully(file_, {slot(batch), static_cast<std::size_t>(bytes_)},
                        p_.start[i] * kDirectBytes)) {
          failed_ = true;
        }
        filled_.release();
      }
    }
  }

  Params p_;
  int file_;
  std::int64_t bytes_;
  HugePages ring_;  // [kAhead, bytes_]
  std::counting_semaphore<> asked_{0}, filled_{0}, empty_{kAhead};
  std::int64_t taken_ = 0;
  bool ends_ = false, failed_ = false;
  std::thread thread_;  // last: it uses what is above
};

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu&) {
  const auto loader = std::make_shared<Loader>(p);
  lab::Side side = lab::counted(lab::waiting_ms(), [p, loader] {
    loader->start();
    for (std::int64_t i = 0; i < p.batches; ++i) {
      const std::int8_t* batch = loader->next();
      check(batch != nullptr, "a batch can be read");
      use_batch(p, batch, p.out + i * p.samples * kOutputs);
      loader->give_back();
    }
  });
  side.helpers = lab::Helpers::threads;
  return lab::reading_cold(p.stored, std::move(side));
}

}  // namespace gauntlet::ch05::prefetch_loader::cpu
