// Is a driver's thread told from a side's, whenever the driver begins it?
#include "lab/measure/watch/library_threads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "lab/measure/backend.h"
#include "lab/measure/watch/outside_work.h"
#include "lab/measure/watch/unknown_work.h"

namespace gauntlet::lab::inline measure {
namespace {

/// A thread that sleeps but for what it is asked to do, as a driver's that handles events.
class Sleeper {
 public:
  Sleeper() : thread_([this] { run(); }) { id_.wait(0); }
  ~Sleeper() {
    asked_ = -1;
    asked_.notify_one();
    thread_.join();
  }
  pid_t id() const { return id_; }
  /// Uses CPU time on its own thread, and returns when it is done.
  void use_cpu(double ns) {
    asked_ = static_cast<int>(ns);
    asked_.notify_one();
    asked_.wait(static_cast<int>(ns));
  }

 private:
  void run() {
    id_ = gettid();
    id_.notify_one();
    for (;;) {
      asked_.wait(0);
      const int asked = asked_;
      if (asked < 0) return;
      const double begin = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
      while (read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin < asked) {
      }
      asked_ = 0;
      asked_.notify_one();
    }
  }
  std::atomic<pid_t> id_ = 0;
  std::atomic<int> asked_ = 0;
  std::thread thread_;
};

struct Watched {
  std::shared_ptr<KnownThreads> known = std::make_shared<KnownThreads>();
  KnownThreads::Lease own = known->add_this_thread();
  LibraryThreads driver{known};

  /// Whether an honest side would be refused whose samples this thread works beside.
  bool refuses(Sleeper& sleeper) {
    const UnknownWork unknown(known);
    OutsideWork outside(BackendKind::cuda, 2);
    for (int sample = 0; sample < 20; ++sample) {
      const auto before = unknown.read();
      sleeper.use_cpu(200e3);
      const double heard = UnknownWork::threads_ns(before, unknown.read());
      outside.see(1, {.ns = 1e6, .host_ns = heard});
    }
    return outside.found(1).has_value();
  }
};

TEST(LibraryThreads, that_begin_before_a_side_is_made_do_not_count_against_it) {
  Watched watched;
  Sleeper at_once;
  watched.driver.adopt();
  Sleeper with_managed_memory;
  EXPECT_TRUE(watched.refuses(with_managed_memory)) << "not adopted yet";
  watched.driver.close();
  EXPECT_TRUE(watched.known->contains(at_once.id()));
  EXPECT_FALSE(watched.refuses(at_once));
  EXPECT_FALSE(watched.refuses(with_managed_memory));
}

TEST(LibraryThreads, are_no_place_for_a_side_to_hide) {
  Sleeper before_the_library;
  Watched watched;
  watched.driver.close();
  Sleeper begun_by_a_side;
  watched.driver.adopt();
  EXPECT_FALSE(watched.known->contains(begun_by_a_side.id()));
  EXPECT_TRUE(watched.refuses(begun_by_a_side));
  EXPECT_TRUE(watched.refuses(before_the_library)) << "it was there already";
}

TEST(LibraryThreads, that_end_take_no_time_with_them) {
  Watched watched;
  const UnknownWork unknown(watched.known);
  auto ending = std::make_unique<Sleeper>();
  watched.driver.close();
  const pid_t id = ending->id();
  ending->use_cpu(20e6);
  const auto before = unknown.read();
  ending.reset();
  while (read_clock_ns(clock_of_thread(id)) > 0) {  // the kernel takes a moment more
  }
  // But for what it takes to end a thread.
  EXPECT_LT(UnknownWork::threads_ns(before, unknown.read()), 5e6);
  EXPECT_FALSE(watched.known->contains(id)) << "its id may be another's by now";
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
