#include "cli/serving/load_print.h"

#include <fmt/format.h>

#include "cli/table.h"
#include "core/text/text.h"

namespace gauntlet::cli {
namespace {

using load::LoadResult;
using load::PointResult;

std::string time_of(double seconds) { return format_duration_ns(seconds * 1e9); }

std::string number_of(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  return fmt::format("{:.3g}", value);
}

/// "12.3 [11.9, 12.8]"
template <class Format>
std::string text_of(const stats::Interval& figure, const Format& format) {
  const std::string value = format(figure.value);
  if (!figure.known()) return value;
  return fmt::format("{} [{}, {}]", value, format(figure.lo), format(figure.hi));
}

std::string limits_of(const load::Slo& slo) {
  std::string text;
  const auto add = [&](const char* name, const std::optional<double>& limit) {
    if (limit) text += fmt::format("{}{} <= {}", text.empty() ? "" : ", ", name, time_of(*limit));
  };
  add("TTFT", slo.ttft_s);
  add("TPOT", slo.tpot_s);
  add("E2E", slo.e2e_s);
  return text;
}

std::string latency_table(const PointResult& point) {
  Table table({"", ">mean", ">median [95%]", ">p90", ">p95 [95%]", ">p99", ">max"});
  const auto add = [&](const char* name, const stats::Percentiles& latency) {
    if (latency.count == 0) return;
    table.add({name, time_of(latency.mean.value), text_of(latency.median, time_of),
               time_of(latency.p90.value), text_of(latency.p95, time_of),
               time_of(latency.p99.value), time_of(latency.max)});
  };
  add("TTFT", point.ttft_s);
  add("TPOT", point.tpot_s);
  add("ITL", point.itl_s);
  add("E2E", point.e2e_s);
  add("send lag", point.send_lag_s);
  return table.empty() ? "" : table.text();
}

std::string errors_of(const PointResult& point) {
  std::string text;
  for (const auto& [name, error] : point.errors) {
    text += fmt::format("{:>8} x {}: {}\n", error.count, name, error.example);
  }
  return text;
}

std::string run_text(const PointResult& point, const load::Slo& slo) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value);
  };
  line("requests",
       fmt::format("{} sent, {} answered, {} failed, in {}", point.num_requests, point.num_ok,
                   point.num_requests - point.num_ok, time_of(point.window_s)));
  text += errors_of(point);
  line("offered", number_of(point.offered_per_s) + " requests/s");
  line("answered", text_of(point.requests_per_s, number_of) + " requests/s");
  line("output", text_of(point.output_tokens_per_s, number_of) + " tokens/s");
  line("total", text_of(point.total_tokens_per_s, number_of) + " tokens/s");
  if (point.steady) {
    line("steady", fmt::format("{} requests/s, {} output tokens/s, over {}",
                               text_of(point.steady->requests_per_s, number_of),
                               text_of(point.steady->output_tokens_per_s, number_of),
                               time_of(point.steady->seconds)));
  }
  if (slo.is_given()) {
    line("goodput",
         fmt::format("{} requests/s: {:.1f}% within {}", text_of(point.goodput_per_s, number_of),
                     point.good_share.value * 100, limits_of(slo)));
  }
  line("in flight", fmt::format("{} on average, {} at most", number_of(point.concurrency_mean),
                                point.concurrency_max));
  const std::int64_t ok = std::max<std::int64_t>(1, point.num_ok);
  line("lengths",
       fmt::format("{:.1f} prompt ({:.0f}% from the server's cache) and {:.1f} output "
                   "tokens on average",
                   static_cast<double>(point.prompt_tokens) / static_cast<double>(ok),
                   100.0 * static_cast<double>(point.cached_tokens) /
                       static_cast<double>(std::max<std::int64_t>(1, point.prompt_tokens)),
                   static_cast<double>(point.output_tokens) / static_cast<double>(ok)));
  if (!point.is_counted_by_server) {
    text += "note: the server counts no tokens, so each event counts as one\n";
  } else if (point.tokens_per_event > 1.02) {
    text += fmt::format("note: {:.2f} tokens per event, so an ITL spans more than one token\n",
                        point.tokens_per_event);
  }
  line("client", fmt::format("{:.1f} us of CPU per event", point.client_us_per_event));
  return text + "\n" + latency_table(point);
}

std::string sweep_text(const LoadResult& result) {
  const bool has_slo = result.slo.is_given();
  std::vector<std::string> headers = {
      *result.sweep_key == load::SweepKey::rate ? ">rate" : ">at once", ">sent", ">failed",
      ">answered/s", ">output tok/s"};
  if (has_slo) headers.insert(headers.end(), {">goodput/s", ">good"});
  headers.insert(headers.end(), {">TTFT p50", ">p95", ">ITL p50", ">p95", ">TPOT p50", ">p95",
                                 ">E2E p50", ">in flight", ""});
  Table table(headers);
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const PointResult& point = result.points[i];
    const stats::Interval& tokens =
        point.steady ? point.steady->output_tokens_per_s : point.output_tokens_per_s;
    std::vector<std::string> cells = {number_of(result.loads[i]),
                                      std::to_string(point.num_requests),
                                      std::to_string(point.num_requests - point.num_ok),
                                      number_of(completed_per_s(point)), number_of(tokens.value)};
    if (has_slo) {
      cells.push_back(text_of(point.goodput_per_s, number_of));
      cells.push_back(fmt::format("{:.0f}%", point.good_share.value * 100));
    }
    for (const stats::Percentiles* latency : {&point.ttft_s, &point.itl_s, &point.tpot_s}) {
      cells.push_back(time_of(latency->median.value));
      cells.push_back(time_of(latency->p95.value));
    }
    cells.push_back(time_of(point.e2e_s.median.value));
    cells.push_back(number_of(point.concurrency_mean));
    cells.push_back(i == result.best ? "best" : "");
    table.add(std::move(cells));
  }
  std::string text = table.text();
  for (const PointResult& point : result.points) text += errors_of(point);
  text += fmt::format("\nat most {} answers/s; ", number_of(result.capacity_per_s));
  if (!result.is_saturated) {
    text += "no load here saturated the server\n";
  } else if (result.sustained) {
    text += fmt::format("saturated above {}\n", number_of(*result.sustained));
  } else {
    text += "saturated at every load\n";
  }
  if (has_slo) {
    text += fmt::format("best goodput {} requests/s at {}, within {}\n",
                        text_of(result.points[result.best].goodput_per_s, number_of),
                        number_of(result.loads[result.best]), limits_of(result.slo));
  }
  return text;
}

}  // namespace

std::string load_text(const LoadResult& result) {
  std::string text = fmt::format("{} at {}\n", result.model, result.url);
  for (const auto& [name, value] : result.workload) text += fmt::format("{}: {}; ", name, value);
  text.resize(text.size() - 2);
  text += "\n\n";
  text += result.sweep_key ? sweep_text(result) : run_text(result.points.front(), result.slo);
  for (const PointResult& point : result.points) {
    if (point.is_interrupted) text += "interrupted: what had not ended was left out\n";
  }
  return text;
}

std::string comparison_text(const std::vector<load::Comparison>& comparisons) {
  Table table({"load", "figure", ">A", ">B", ">B/A [95%]", "B is"});
  std::string before;
  for (const load::Comparison& row : comparisons) {
    table.add({row.load == before ? "" : row.load, row.figure, number_of(row.a.value),
               number_of(row.b.value),
               row.ratio.value > 0
                   ? text_of(row.ratio, [](double value) { return fmt::format("{:.3f}", value); })
                   : "-",
               stats::name_of(row.change)});
    before = row.load;
  }
  return table.text();
}

std::string overhead_text(const load::OverheadOptions& options, const load::Overhead& result) {
  return fmt::format(
      "{} streams at once, {} tokens each, one in {} per stream: {} events, {:.0f}/s, {} failed\n"
      "client       {:.2f} us of CPU per event ({:.2f} of them its own, the rest the kernel's), "
      "{:.0f}% of a core\n"
      "timestamps   late by {} in the median, {} at p95, {} at p99, {} at most\n",
      options.num_streams, options.num_tokens, time_of(options.interval_s), result.num_events,
      result.events_per_s, result.num_failed, result.cpu_us_per_event, result.user_us_per_event,
      result.cpu_share * 100, time_of(result.delay_s.median.value),
      time_of(result.delay_s.p95.value), time_of(result.delay_s.p99.value),
      time_of(result.delay_s.max));
}

}  // namespace gauntlet::cli
