#include "lab/author/counted.h"

#include <ctime>
#include <memory>
#include <utility>

#include "core/os/threads.h"

namespace gauntlet::lab::inline author {

Side counted(Count count, std::function<void()> run) {
  struct Totals {
    double counted = 0;
    double per = 0;
  };
  const auto totals = std::make_shared<Totals>();
  Side side([count, totals, run = std::move(run)] {
    const double counted_before = count.total(), per_before = count.per ? count.per() : 0;
    run();
    totals->counted += count.total() - counted_before;
    totals->per += count.per ? count.per() - per_before : 1;
  });
  side.outcomes = [name = count.name, totals]() -> std::map<std::string, double> {
    const Totals since = std::exchange(*totals, {});
    if (since.per <= 0) return {};
    return {{name, since.counted / since.per}};
  };
  return side;
}

Count forks_of(const ThreadPool* pool) {
  return {.name = "forks", .total = [pool] { return static_cast<double>(pool->forks()); }};
}

Count working_threads() {
  const auto reader = [](clockid_t clock) {
    return [clock] {
      timespec time{};
      clock_gettime(clock, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
  };
  return {.name = "working_threads",
          .total = reader(CLOCK_PROCESS_CPUTIME_ID),
          .per = reader(CLOCK_THREAD_CPUTIME_ID)};
}

}  // namespace gauntlet::lab::inline author
