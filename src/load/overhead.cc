#include "load/overhead.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

#include "load/http/client.h"
#include "load/http/null_server.h"
#include "load/results/figure_json.h"

namespace gauntlet::load {
namespace {

/// The time that a token of the null server carries, or 0.
std::int64_t sent_ns(std::string_view data) {
  constexpr std::string_view kKey = R"("text":")";
  const std::size_t at = data.find(kKey);
  if (at == std::string_view::npos) return 0;
  std::int64_t ns = 0;
  std::from_chars(data.data() + at + kKey.size(), data.data() + data.size(), ns);
  return ns;
}

}  // namespace

Expected<Overhead> measure_overhead(const OverheadOptions& options) {
  NullServer server([&](const NullRequest&) {
    return NullAnswer{.num_tokens = options.num_tokens, .interval_s = options.interval_s};
  });
  const auto url = Url::parse(server.url());
  if (!url) return url.error();
  const auto client = Client::open({.url = *url});
  if (!client) return client.error();
  std::vector<std::vector<float>> delays_s(kBlocks);
  std::size_t num_delays = 0;
  const auto num_events = static_cast<std::size_t>(options.num_streams * options.num_tokens);
  const RunLog log = (*client)->run(
      {.arrivals = {.kind = ArrivalKind::closed, .concurrency = options.num_streams},
       .workload = {.prompt_tokens = Lengths::fixed(32),
                    .output_tokens = Lengths::fixed(options.num_tokens)},
       .prompts = {.vocab = 1000},
       .num_requests = options.num_streams,
       .on_event = [&](std::string_view data, std::chrono::steady_clock::time_point at) {
         const std::int64_t sent = sent_ns(data);
         if (sent == 0) return;
         const std::int64_t delay_ns = at.time_since_epoch().count() - sent;
         const std::size_t block = num_delays++ * kBlocks / num_events;
         delays_s[std::min(kBlocks - 1, block)].push_back(static_cast<float>(delay_ns) * 1e-9f);
       }});
  Overhead result{.num_events = static_cast<std::int64_t>(num_delays)};
  double end_s = 0;
  for (const RequestRecord& record : log.requests) {
    result.num_failed += !record.is_ok();
    end_s = std::max(end_s, record.end_s);
  }
  if (num_delays == 0 || !(end_s > 0)) return Error{"the self-test got no token at all"};
  result.cpu_us_per_event = log.client_cpu_s * 1e6 / static_cast<double>(num_delays);
  result.user_us_per_event = log.client_user_s * 1e6 / static_cast<double>(num_delays);
  result.cpu_share = log.client_cpu_s / end_s;
  result.events_per_s = static_cast<double>(num_delays) / end_s;
  result.delay_s = stats::percentiles(delays_s, 1);
  return result;
}

std::string json_text(const OverheadOptions& options, const Overhead& result) {
  return nlohmann::ordered_json{{"streams", options.num_streams},
                                {"tokens", options.num_tokens},
                                {"interval_s", options.interval_s},
                                {"events", result.num_events},
                                {"failed", result.num_failed},
                                {"events_per_s", rounded(result.events_per_s)},
                                {"cpu_us_per_event", rounded(result.cpu_us_per_event)},
                                {"user_us_per_event", rounded(result.user_us_per_event)},
                                {"cpu_share", rounded(result.cpu_share)},
                                {"timestamp_delay_s", percentiles_json(result.delay_s)}}
             .dump(1) +
         "\n";
}

}  // namespace gauntlet::load
