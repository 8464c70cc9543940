// What each account asked for and got, by its name.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "server/metrics/prometheus_text.h"

namespace gauntlet::server::inline metrics {

struct AccountCounts {
  std::int64_t requests = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
};

/// From any thread.
class AccountCounters {
 public:
  /// Names beyond this many are counted together, as "other": a label has few values.
  static constexpr std::size_t kMaxNames = 1000;

  /// Nothing where there is no name.
  void add(const std::string& name, const AccountCounts& more);
  std::map<std::string, AccountCounts> counts() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, AccountCounts> counts_;
};

void add_account_metrics(PrometheusText& text, const AccountCounters& accounts);

}  // namespace gauntlet::server::inline metrics
