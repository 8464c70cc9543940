// Counters of the CPU through perf events. Every thread of the process is counted, since a pair's
// workers are usually older than the stretch that is profiled, and so are threads that start inside
// it.
#include <dirent.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <utility>

#include "core/os/threads.h"
#include "lab/profile/profiler_backends.h"

namespace gauntlet::lab::inline profile {
namespace {

// Four programmable counters is what CPUs with two threads per core offer each of them; more at
// once would be estimated from time slices.
constexpr std::size_t kEventsPerPass = 4;

struct PerfEvent {
  const char* name;
  std::uint32_t type;
  std::uint64_t config;
  // Switches and migrations happen inside the kernel, so that counting user mode alone would always
  // read 0.
  bool in_kernel = false;
};

constexpr std::uint64_t cache_event(std::uint64_t cache, std::uint64_t result) {
  return cache | (std::uint64_t{PERF_COUNT_HW_CACHE_OP_READ} << 8) | (result << 16);
}
constexpr std::uint64_t loads(std::uint64_t cache) {
  return cache_event(cache, PERF_COUNT_HW_CACHE_RESULT_ACCESS);
}
constexpr std::uint64_t load_misses(std::uint64_t cache) {
  return cache_event(cache, PERF_COUNT_HW_CACHE_RESULT_MISS);
}

constexpr std::array kEvents = {
    PerfEvent{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    PerfEvent{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    PerfEvent{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    PerfEvent{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    PerfEvent{"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    PerfEvent{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    PerfEvent{"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    PerfEvent{"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    PerfEvent{"L1-dcache-loads", PERF_TYPE_HW_CACHE, loads(PERF_COUNT_HW_CACHE_L1D)},
    PerfEvent{"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, load_misses(PERF_COUNT_HW_CACHE_L1D)},
    PerfEvent{"L1-icache-load-misses", PERF_TYPE_HW_CACHE, load_misses(PERF_COUNT_HW_CACHE_L1I)},
    PerfEvent{"LLC-loads", PERF_TYPE_HW_CACHE, loads(PERF_COUNT_HW_CACHE_LL)},
    PerfEvent{"LLC-load-misses", PERF_TYPE_HW_CACHE, load_misses(PERF_COUNT_HW_CACHE_LL)},
    PerfEvent{"dTLB-loads", PERF_TYPE_HW_CACHE, loads(PERF_COUNT_HW_CACHE_DTLB)},
    PerfEvent{"dTLB-load-misses", PERF_TYPE_HW_CACHE, load_misses(PERF_COUNT_HW_CACHE_DTLB)},
    PerfEvent{"iTLB-load-misses", PERF_TYPE_HW_CACHE, load_misses(PERF_COUNT_HW_CACHE_ITLB)},
    PerfEvent{"node-load-misses", PERF_TYPE_HW_CACHE, load_misses(PERF_COUNT_HW_CACHE_NODE)},
    PerfEvent{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    PerfEvent{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    PerfEvent{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    PerfEvent{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true},
    PerfEvent{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, true},
    PerfEvent{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
};

const PerfEvent* find_event(const std::string& name) {
  const auto* found = std::find_if(kEvents.begin(), kEvents.end(),
                                   [&](const PerfEvent& event) { return name == event.name; });
  return found == kEvents.end() ? nullptr : found;
}

struct Reading {
  std::uint64_t value = 0;
  std::uint64_t enabled_ns = 0;
  std::uint64_t running_ns = 0;
};

/// One event of one thread; counts from start() to stop().
class Counter {
 public:
  /// Returns the errno of a refusal.
  static std::pair<Counter, int> open(const PerfEvent& event, pid_t thread) {
    perf_event_attr attributes{};
    attributes.size = sizeof(attributes);
    attributes.type = event.type;
    attributes.config = event.config;
    attributes.disabled = 1;
    attributes.inherit = 1;
    attributes.exclude_kernel = event.in_kernel ? 0 : 1;
    attributes.exclude_hv = 1;
    attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    const long descriptor =
        syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return {Counter(static_cast<int>(descriptor)), descriptor < 0 ? errno : 0};
  }

  Counter(Counter&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Counter& operator=(Counter&&) = delete;
  ~Counter() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  void start() const { check(ioctl(descriptor_, PERF_EVENT_IOC_ENABLE, 0) == 0, "perf: enable"); }
  void stop() const { check(ioctl(descriptor_, PERF_EVENT_IOC_DISABLE, 0) == 0, "perf: disable"); }

  Reading read() const {
    Reading reading;
    check(::read(descriptor_, &reading, sizeof(reading)) == ssize_t{sizeof(reading)},
          "perf: a counter read short");
    return reading;
  }

 private:
  explicit Counter(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

/// An event on every thread.
struct EventCounters {
  const PerfEvent* event;
  std::vector<Counter> counters;
};

Expected<EventCounters> open_everywhere(const PerfEvent& event) {
  EventCounters opened{.event = &event};
  for (const pid_t thread : thread_ids(getpid())) {
    auto [counter, error] = Counter::open(event, thread);
    if (error == ESRCH) continue;  // ended since it was listed
    if (error != 0) return Error{perf_failure(event.name, error, read_perf_facts())};
    opened.counters.push_back(std::move(counter));
  }
  return opened;
}

Expected<double> total(const EventCounters& opened) {
  Reading sum;
  for (const Counter& counter : opened.counters) {
    const Reading reading = counter.read();
    sum.value += reading.value;
    sum.enabled_ns += reading.enabled_ns;
    sum.running_ns += reading.running_ns;
  }
  if (sum.running_ns == 0 && sum.enabled_ns > 0) {
    return Error{std::string("perf event ") + opened.event->name +
                 " never had a counter: other profilers hold them all; stop those first"};
  }
  if (sum.running_ns == 0) return 0.0;
  return static_cast<double>(sum.value) * static_cast<double>(sum.enabled_ns) /
         static_cast<double>(sum.running_ns);
}

Expected<void> count_pass(std::span<const PerfEvent* const> events,
                          const std::function<void()>& work,
                          std::map<std::string, double>& values) {
  std::vector<EventCounters> opened;
  for (const PerfEvent* event : events) {
    auto counters = open_everywhere(*event);
    if (!counters) return counters.error();
    opened.push_back(std::move(*counters));
  }
  for (const auto& event : opened) {
    for (const Counter& counter : event.counters) counter.start();
  }
  work();
  for (const auto& event : opened) {
    for (const Counter& counter : event.counters) counter.stop();
  }
  for (const auto& event : opened) {
    const auto value = total(event);
    if (!value) return value.error();
    values[event.event->name] = *value;
  }
  return {};
}

class PerfProfiler : public Profiler {
 public:
  Expected<std::map<std::string, double>> collect(
      const std::vector<std::string>& metrics, const std::function<void()>& work,
      const std::function<void()>& before_pass) override {
    std::vector<const PerfEvent*> events;
    for (const std::string& name : metrics) {
      const PerfEvent* event = find_event(name);
      if (event == nullptr) return unknown(name);
      if (std::find(events.begin(), events.end(), event) == events.end()) events.push_back(event);
    }
    // All are tried before any work runs, so that a refusal costs nothing.
    for (const PerfEvent* event : events) {
      const auto [counter, error] = Counter::open(*event, 0);
      if (error != 0) return Error{perf_failure(event->name, error, read_perf_facts())};
    }

    std::map<std::string, double> values;
    for (std::size_t begin = 0; begin < events.size(); begin += kEventsPerPass) {
      const std::size_t count = std::min(kEventsPerPass, events.size() - begin);
      if (before_pass) before_pass();
      const auto counted = count_pass(std::span(events).subspan(begin, count), work, values);
      if (!counted) return counted.error();
    }
    return values;
  }

 private:
  static Error unknown(const std::string& name) {
    std::string known;
    for (const PerfEvent& event : kEvents) {
      known += (known.empty() ? "" : ", ") + std::string(event.name);
    }
    return {.message = "unknown perf event \"" + name + "\"; known are " + known,
            .kind = ErrorKind::wrong_use};
  }
};

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool has_hardware_pmu() {
  const std::string devices = "/sys/bus/event_source/devices/";
  if (exists(devices + "cpu") || exists(devices + "cpu_core")) return true;
  DIR* folder = opendir(devices.c_str());
  if (folder == nullptr) return false;
  bool found = false;
  while (const dirent* entry = readdir(folder)) {
    found = found || std::strncmp(entry->d_name, "armv", 4) == 0;
  }
  closedir(folder);
  return found;
}

bool has_hypervisor_flag() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("flags")) return line.find(" hypervisor") != std::string::npos;
  }
  return false;
}

}  // namespace

PerfFacts read_perf_facts() {
  PerfFacts facts{.hardware_pmu = has_hardware_pmu(), .virtual_machine = has_hypervisor_flag()};
  std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> facts.paranoid;
  return facts;
}

std::string perf_failure(const std::string& event, int error, const PerfFacts& facts) {
  const std::string intro = "perf events are not available: ";
  switch (error) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
      if (facts.hardware_pmu) return intro + "this CPU has no counter for " + event;
      if (facts.virtual_machine) {
        return intro + "this virtual machine exposes no hardware counters (asked for " + event +
               "); run on bare metal or have the hypervisor expose its PMU";
      }
      return intro + "the kernel has no driver for this CPU's counters (asked for " + event + ")";
    case EACCES:
    case EPERM: {
      const int allowed = find_event(event) != nullptr && find_event(event)->in_kernel ? 1 : 2;
      if (facts.paranoid > allowed) {
        return intro + "kernel.perf_event_paranoid is " + std::to_string(facts.paranoid) +
               ", which forbids " + event +
               "; run sysctl kernel.perf_event_paranoid=" + std::to_string(allowed) +
               " or grant CAP_PERFMON";
      }
      return intro + "the system refuses " + event + " (" + std::strerror(error) +
             ") although kernel.perf_event_paranoid is " + std::to_string(facts.paranoid) +
             "; a container's seccomp profile is the usual cause";
    }
    case ENOSYS:
      return intro + "this kernel was built without them";
    case EMFILE:
    case ENFILE:
      return intro + "too many open files; raise ulimit -n";
    default:
      return intro + "opening " + event + " failed: " + std::strerror(error);
  }
}

Expected<std::unique_ptr<Profiler>> make_perf_profiler() {
  // A software event needs no PMU: page faults and context switches can be counted in any virtual
  // machine.
  const PerfEvent& probe = *find_event("task-clock");
  const auto [counter, error] = Counter::open(probe, 0);
  if (error != 0) return Error{perf_failure(probe.name, error, read_perf_facts())};
  return std::unique_ptr<Profiler>(std::make_unique<PerfProfiler>());
}

}  // namespace gauntlet::lab::inline profile
