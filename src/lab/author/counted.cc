#include "lab/author/counted.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cmath>
#include <ctime>
#include <limits>
#include <memory>
#include <utility>

#include "core/check.h"
#include "core/os/system_files.h"
#include "core/os/threads.h"
#include "core/text/text.h"
#include "lab/author/lab_counts.h"

namespace gauntlet::lab::inline author {

namespace {

/// Of each count, how much it and what it is divided by grew over the runs since it was last asked.
class Growth {
 public:
  enum class Whose { labs, pairs };

  explicit Growth(std::vector<Count> counts) : counts_(std::move(counts)), of_(counts_.size()) {}

  void add(const std::function<void()>& run) {
    const std::vector<Totals> before = read();
    run();
    const std::vector<Totals> after = read();
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      of_[i].counted += after[i].counted - before[i].counted;
      of_[i].per += counts_[i].per ? after[i].per - before[i].per : 1;
    }
  }
  std::map<std::string, double> take(Whose whose) {
    std::map<std::string, double> outcomes;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i].seal.is_set() != (whose == Whose::labs)) continue;
      const Totals since = std::exchange(of_[i], {});
      if (!(since.per > 0) || std::isnan(since.counted)) continue;
      outcomes[counts_[i].name] = since.counted / since.per;
    }
    return outcomes;
  }

 private:
  struct Totals {
    double counted = 0;
    double per = 0;
  };
  std::vector<Totals> read() const {
    std::vector<Totals> now;
    now.reserve(counts_.size());
    for (const Count& count : counts_) now.push_back({count.total(), count.per ? count.per() : 0});
    return now;
  }

  std::vector<Count> counts_;
  std::vector<Totals> of_;
};

}  // namespace

Side counted(std::vector<Count> counts, std::function<void()> run) {
  const auto growth = std::make_shared<Growth>(std::move(counts));
  Side side([growth, run = std::move(run)] { growth->add(run); });
  side.outcomes = [growth] { return growth->take(Growth::Whose::pairs); };
  LabCounts::attach(side, [growth] { return growth->take(Growth::Whose::labs); });
  return side;
}

Side counted(Count count, std::function<void()> run) {
  return counted(std::vector<Count>{std::move(count)}, std::move(run));
}

namespace {

double seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

auto reader(clockid_t clock) {
  return [clock] { return seconds(clock); };
}

}  // namespace

Count forks_of(const ThreadPool* pool) {
  return LabCounts::make("forks", [pool] { return static_cast<double>(pool->forks()); });
}

Count busy_cpus() {
  return LabCounts::make("busy_cpus", reader(CLOCK_PROCESS_CPUTIME_ID), reader(CLOCK_MONOTONIC));
}

Count working_threads() {
  return LabCounts::make("working_threads", reader(CLOCK_PROCESS_CPUTIME_ID),
                         reader(CLOCK_THREAD_CPUTIME_ID));
}

namespace {

double nothing_known() { return std::numeric_limits<double>::quiet_NaN(); }

Count of_io(const std::string& name, const std::string& field) {
  return LabCounts::make(name, [field] {
    const auto value = leading_number(SystemFiles().field("/proc/self/io", field).value_or(""));
    return value ? static_cast<double>(*value) : nothing_known();
  });
}

double migrations_of_threads() {
  const SystemFiles files;
  double sum = 0;
  for (const std::string& thread : files.list("/proc/self/task")) {
    const auto text = files.field("/proc/self/task/" + thread + "/sched", "se.nr_migrations");
    const auto count = leading_number(text.value_or(""));
    if (!count) return nothing_known();
    sum += static_cast<double>(*count);
  }
  return sum;
}

/// Number `index` of the device's line of counts.
double device_count(const std::string& path, std::size_t index) {
  const auto words = split_words(SystemFiles().text(path).value_or(""));
  const auto count = index < words.size() ? leading_number(words[index]) : std::nullopt;
  return count ? static_cast<double>(*count) : nothing_known();
}

}  // namespace

Count read_calls() { return of_io("read_calls", "syscr"); }
Count copied_bytes() { return of_io("copied_bytes", "rchar"); }
Count migrations() { return LabCounts::make("migrations", migrations_of_threads); }

Count reads_in_flight(int file) {
  struct stat status{};
  check(::fstat(file, &status) == 0, "the device of a file that is not open");
  const std::string path = "/sys/dev/block/" + std::to_string(major(status.st_dev)) + ":" +
                           std::to_string(minor(status.st_dev)) + "/stat";
  // Milliseconds that requests spent in the queue, all of them together, and during which there
  // was one.
  constexpr std::size_t kBusy = 9, kInQueue = 10;
  return LabCounts::make(
      "reads_in_flight", [path] { return device_count(path, kInQueue); },
      [path] { return device_count(path, kBusy); });
}

Count waiting_ms() {
  return LabCounts::make("waiting_ms", [] {
    return 1e3 * (seconds(CLOCK_MONOTONIC) - seconds(CLOCK_THREAD_CPUTIME_ID));
  });
}

}  // namespace gauntlet::lab::inline author
