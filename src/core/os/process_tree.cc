#include "core/os/process_tree.h"

#include <unistd.h>

#include <cstdio>
#include <map>
#include <set>
#include <string>

namespace gauntlet {
namespace {

bool parse(const std::string& stat, ProcessEntry& entry) {
  // The command's name stands in parentheses and may hold any character, these included.
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos) return false;
  int parent = 0, session = 0;
  long long start_ticks = 0, resident_pages = 0;
  const int fields = std::sscanf(stat.c_str() + end + 1,
                                 " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                                 "%*d %*d %*d %lld %*u %lld",
                                 &entry.state, &parent, &session, &start_ticks, &resident_pages);
  entry.start_ticks = start_ticks;
  entry.parent = parent;
  entry.session = session;
  entry.resident_bytes = resident_pages * ::sysconf(_SC_PAGESIZE);
  return fields == 5;
}

}  // namespace

std::vector<ProcessEntry> read_processes(const SystemFiles& files) {
  std::vector<ProcessEntry> all;
  for (const std::string& name : files.list("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto stat = files.text("/proc/" + name + "/stat");
    ProcessEntry entry{.pid = static_cast<pid_t>(leading_number(name).value_or(0))};
    if (stat && parse(*stat, entry)) all.push_back(entry);
  }
  return all;
}

std::vector<ProcessEntry> process_tree(pid_t leader, const std::vector<ProcessEntry>& all,
                                       const std::vector<ProcessEntry>& seen) {
  std::set<pid_t> members = {leader};
  std::map<pid_t, std::int64_t> starts;
  for (const ProcessEntry& entry : seen) starts[entry.pid] = entry.start_ticks;
  for (const ProcessEntry& entry : all) {
    const auto found = starts.find(entry.pid);
    if (found != starts.end() && found->second == entry.start_ticks) members.insert(entry.pid);
  }
  for (bool grew = true; grew;) {
    grew = false;
    for (const ProcessEntry& entry : all) {
      if (entry.session != leader && !members.contains(entry.parent)) continue;
      grew = members.insert(entry.pid).second || grew;
    }
  }
  std::vector<ProcessEntry> tree;
  for (const ProcessEntry& entry : all) {
    if (members.contains(entry.pid)) tree.push_back(entry);
  }
  return tree;
}

}  // namespace gauntlet
