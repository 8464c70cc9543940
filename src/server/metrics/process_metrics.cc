#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/os/files.h"
#include "core/text/text.h"
#include "server/metrics/metrics.h"

namespace gauntlet::server::inline metrics {
namespace {

/// The fields of /proc/self/stat after the program's name, which may hold spaces itself. The first
/// is the third of proc(5).
std::vector<std::string> stat_fields() {
  const auto stat = read_file("/proc/self/stat");
  if (!stat) return {};
  const std::size_t name_end = stat->rfind(')');
  return name_end == std::string::npos ? std::vector<std::string>()
                                       : split_words(std::string_view(*stat).substr(name_end + 1));
}

double number_at(const std::vector<std::string>& fields, std::size_t field_of_proc5) {
  const std::size_t index = field_of_proc5 - 3;
  return index < fields.size() ? std::strtod(fields[index].c_str(), nullptr) : 0;
}

double boot_time_s() {
  const auto stat = read_file("/proc/stat");
  if (!stat) return 0;
  const std::size_t at = stat->find("btime ");
  return at == std::string::npos ? 0 : std::strtod(stat->c_str() + at + 6, nullptr);
}

double num_open_files() {
  std::error_code failed;
  double count = 0;
  for (auto entry = std::filesystem::directory_iterator("/proc/self/fd", failed);
       !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    ++count;
  }
  return std::max(0.0, count - 1);  // the one that reads the folder
}

}  // namespace

void add_process_metrics(PrometheusText& text) {
  const std::vector<std::string> fields = stat_fields();
  const auto ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  text.counter("process_cpu_seconds_total", "User and system CPU time spent in seconds.",
               (number_at(fields, 14) + number_at(fields, 15)) / ticks_per_s);
  text.gauge("process_resident_memory_bytes", "Resident memory size in bytes.",
             number_at(fields, 24) * page_bytes);
  text.gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.",
             number_at(fields, 23));
  text.gauge("process_threads", "Number of threads.", number_at(fields, 20));
  text.gauge("process_start_time_seconds", "Start time since the Unix epoch in seconds.",
             boot_time_s() + number_at(fields, 22) / ticks_per_s);
  text.gauge("process_open_fds", "Number of open file descriptors.", num_open_files());
  text.gauge("process_max_fds", "Maximum number of open file descriptors.",
             static_cast<double>(files.rlim_cur));
}

}  // namespace gauntlet::server::inline metrics
