// Do device interrupts pile up on one core, and does anything spread them?
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/os/system_files.h"
#include "core/text/text.h"
#include "lab/doctor/checks.h"

namespace gauntlet::lab::doctor {
namespace {

struct Spread {
  std::vector<int> cpus;             // the columns
  std::vector<std::int64_t> counts;  // device interrupts by column
  std::int64_t total = 0;
  std::size_t top = 0;  // the column with most
  std::string top_irq;  // the interrupt that most of them are, by number
  std::string top_device;
  std::int64_t top_count = 0;
  double seconds = 0;  // since boot; 0 when unknown

  double top_share() const {
    return total == 0 ? 0 : static_cast<double>(counts[top]) / static_cast<double>(total);
  }
  double top_per_second() const {
    return seconds > 0 ? static_cast<double>(counts[top]) / seconds : 0;
  }
  bool piled_up() const {
    // An interrupt with its soft part costs up to 10 us: from here on a core loses half a percent.
    constexpr double kNoticeable = 500;
    // With two or three CPUs a lopsided share is normal.
    const double fair = counts.size() < 4 ? 0.9 : 0.5;
    return counts.size() > 1 && top_per_second() >= kNoticeable && top_share() > fair;
  }
};

struct Line {
  std::string irq;
  std::vector<std::int64_t> counts;
  std::string device;
};

/// A numbered line: a device's interrupt. The others are the kernel's own.
std::optional<Line> parse_line(const std::string& text, std::size_t columns) {
  const auto words = split_words(text);
  if (words.size() < columns + 1 || words[0].back() != ':') return std::nullopt;
  Line line{.irq = words[0].substr(0, words[0].size() - 1)};
  if (line.irq.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  for (std::size_t column = 0; column < columns; ++column) {
    const auto count = leading_number(words[column + 1]);
    if (!count) return std::nullopt;
    line.counts.push_back(*count);
  }
  line.device = words.back();
  return line;
}

std::optional<Spread> read_spread(const SystemFiles& files) {
  const auto text = files.text("/proc/interrupts");
  if (!text || text->empty()) return std::nullopt;
  const auto lines = split_lines(*text);
  Spread spread;
  spread.seconds = std::strtod(files.text("/proc/uptime").value_or("").c_str(), nullptr);
  for (const std::string& word : split_words(lines[0])) {
    if (!word.starts_with("CPU")) return std::nullopt;
    spread.cpus.push_back(static_cast<int>(leading_number(word.substr(3)).value_or(0)));
  }
  spread.counts.resize(spread.cpus.size());
  if (spread.counts.empty()) return std::nullopt;
  std::vector<Line> devices;
  for (std::size_t at = 1; at < lines.size(); ++at) {
    const auto line = parse_line(lines[at], spread.cpus.size());
    if (!line) continue;
    for (std::size_t column = 0; column < spread.counts.size(); ++column) {
      spread.counts[column] += line->counts[column];
      spread.total += line->counts[column];
    }
    devices.push_back(*line);
  }
  spread.top = static_cast<std::size_t>(
      std::max_element(spread.counts.begin(), spread.counts.end()) - spread.counts.begin());
  for (const Line& line : devices) {
    if (line.counts[spread.top] <= spread.top_count) continue;
    spread.top_count = line.counts[spread.top];
    spread.top_irq = line.irq;
    spread.top_device = line.device;
  }
  return spread;
}

Finding spread_of(const std::optional<Spread>& spread) {
  const Item item{"interrupts", "spread"};
  if (!spread) return item.unknown("/proc/interrupts is not readable");
  if (spread->counts.size() == 1) return item.ok("one CPU");
  const std::string share =
      fmt::format("CPU {} took {:.0f}% of the device interrupts since boot, {:.0f} a second",
                  spread->cpus[spread->top], 100 * spread->top_share(), spread->top_per_second());
  if (!spread->piled_up()) return item.ok(spread->total == 0 ? "no device interrupts" : share);
  std::vector<int> others = spread->cpus;
  std::erase(others, spread->cpus[spread->top]);
  return item.warn(fmt::format("{}, most for {}: a thread pinned there is slower than its peers",
                               share, spread->top_device),
                   fmt::format("echo {} > /proc/irq/{}/smp_affinity_list", format_cpu_list(others),
                               spread->top_irq));
}

bool runs(const SystemFiles& files, const std::string& name) {
  for (const std::string& process : files.list("/proc")) {
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    if (files.text("/proc/" + process + "/comm") == name) return true;
  }
  return false;
}

Finding irqbalance(const DoctorContext& context, const std::optional<Spread>& spread) {
  const Item item{"interrupts", "irqbalance"};
  if (runs(context.files, "irqbalance")) return item.ok("running");
  if (spread && !spread->piled_up()) return item.ok("not running, and not missed");
  const std::string first = context.files.text("/proc/1/comm").value_or("");
  if (first != "systemd" && first != "init") {
    return item.unknown("not among the processes visible here; the host may run it");
  }
  return item.warn("not running", "systemctl enable --now irqbalance");
}

}  // namespace

std::vector<Finding> check_interrupts(const DoctorContext& context) {
  const auto spread = read_spread(context.files);
  return {spread_of(spread), irqbalance(context, spread)};
}

}  // namespace gauntlet::lab::doctor
