// Concurrent stages: a thread runs the first layer up to kAhead packets ahead of the second.
#include <sched.h>

#include <memory>
#include <semaphore>
#include <thread>

#include "catalog/ch11/producer_consumer/pair.h"
#include "core/os/threads.h"
#include "lab/author/counted.h"

namespace gauntlet::ch11::producer_consumer::cpu {
namespace {

constexpr std::int64_t kAhead = 8;

/// The measuring thread is pinned, and a thread starts where the one was that made it: it may run
/// anywhere but there, where there is anywhere else.
void leave_cpu(int taken) {
  cpu_set_t others;
  CPU_ZERO(&others);
  for (const int cpu : allowed_cpus()) {
    if (cpu != taken) CPU_SET(cpu, &others);
  }
  if (CPU_COUNT(&others) > 0) sched_setaffinity(0, sizeof(others), &others);
}

/// A thread that runs the first stage into a ring of packets whenever a run asks for it, and sleeps
/// otherwise.
class Producer {
 public:
  explicit Producer(const Params& p) : p_(p), thread_([this] { work(); }) {}
  ~Producer() {
    ends_ = true;
    asked_.release();
    thread_.join();
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  void start() { asked_.release(); }
  /// Packets come in order.
  const std::int8_t* next() {
    filled_.acquire();
    return slot(taken_++);
  }
  void give_back() { empty_.release(); }

 private:
  std::int8_t* slot(std::int64_t packet) { return ring_ + packet % kAhead * kPacketBytes; }
  void work() {
    leave_cpu(sched_getcpu());
    for (std::int64_t packet = 0;;) {
      asked_.acquire();
      if (ends_) return;
      Layer first = layer_of(p_, 0);
      for (std::int64_t at = 0; at < p_.steps * kWidth; at += kPacketBytes, ++packet) {
        empty_.acquire();
        process_packet(first, p_.in + at, slot(packet));
        filled_.release();
      }
    }
  }

  Params p_;
  alignas(64) std::int8_t ring_[kAhead * kPacketBytes];
  std::counting_semaphore<> asked_{0}, filled_{0}, empty_{kAhead};
  std::int64_t taken_ = 0;
  bool ends_ = false;
  std::thread thread_;  // last: it uses what is above
};

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu&) {
  const auto producer = std::make_shared<Producer>(p);
  lab::Side side = lab::counted(lab::busy_cpus(), [p, producer] {
    producer->start();
    Layer second = layer_of(p, 1);
    for (std::int64_t at = 0; at < p.steps * kWidth; at += kPacketBytes) {
      process_packet(second, producer->next(), p.out + at);
      producer->give_back();
    }
  });
  side.helpers = lab::Helpers::threads;
  side.facts = {{"threads", 2}};
  return side;
}

}  // namespace gauntlet::ch11::producer_consumer::cpu
