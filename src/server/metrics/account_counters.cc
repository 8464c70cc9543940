#include "server/metrics/account_counters.h"

namespace gauntlet::server::inline metrics {

void AccountCounters::add(const std::string& name, const AccountCounts& more) {
  if (name.empty()) return;
  const std::lock_guard lock(mutex_);
  const bool is_known = counts_.contains(name);
  AccountCounts& counts = counts_[is_known || counts_.size() < kMaxNames ? name : "other"];
  counts.requests += more.requests;
  counts.prompt_tokens += more.prompt_tokens;
  counts.output_tokens += more.output_tokens;
}

std::map<std::string, AccountCounts> AccountCounters::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void add_account_metrics(PrometheusText& text, const AccountCounters& accounts) {
  const auto counts = accounts.counts();
  const auto samples = [&](std::int64_t AccountCounts::* member) {
    std::vector<Sample> all;
    for (const auto& [name, one] : counts) {
      all.push_back({.labels = {{"key", name}}, .value = static_cast<double>(one.*member)});
    }
    return all;
  };
  text.counters("gauntlet:key_requests_total", "Requests that came with a key, by its name.",
                samples(&AccountCounts::requests));
  text.counters("gauntlet:key_prompt_tokens_total", "Prompt tokens of choices that ended, by key.",
                samples(&AccountCounts::prompt_tokens));
  text.counters("gauntlet:key_generation_tokens_total", "Tokens of choices that ended, by key.",
                samples(&AccountCounts::output_tokens));
}

}  // namespace gauntlet::server::inline metrics
