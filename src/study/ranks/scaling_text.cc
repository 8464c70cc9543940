#include "study/ranks/scaling_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/text.h"
#include "stats/interval_json.h"

namespace gauntlet::study::inline ranks {
namespace {

using json = nlohmann::ordered_json;

std::string interval_text(const stats::Interval& interval, const char* unit, int digits) {
  std::string value = fmt::format("{:.{}f}{}", interval.value, digits, unit);
  if (!interval.known()) return value;
  return fmt::format("{} [{:.{}f}, {:.{}f}]", value, interval.lo, digits, interval.hi, digits);
}

/// A plot of the tests' throughput over the number of ranks: a line for a test, whiskers for
/// intervals, dashes for what as many ranks would reach without waiting.
std::string plot_of(const RankScaling& scaling) {
  constexpr double kWidth = 220, kHeight = 180, kLeft = 46, kTop = 26, kBottom = 30;
  std::string svg;
  std::size_t first = 0;
  while (first < scaling.points.size()) {
    const std::string name = name_of(scaling.points[first].test);
    std::vector<RankScalePoint> points;
    for (; first < scaling.points.size() && name_of(scaling.points[first].test) == name; ++first) {
      points.push_back(scaling.points[first]);
    }
    const double most_ranks = points.back().ranks;
    double most = 0;
    for (const RankScalePoint& one : points) {
      const double top = one.tokens_per_s.known() ? one.tokens_per_s.hi : one.tokens_per_s.value;
      most = std::max(most, top);
    }
    const RankScalePoint& base = points.front();
    const double ideal = base.tokens_per_s.value * most_ranks / base.ranks;
    most = std::max(most, ideal) * 1.05;
    const auto x = [&](double ranks) { return kLeft + ranks / most_ranks * (kWidth - kLeft - 10); };
    const auto y = [&](double value) {
      return kHeight - kBottom - value / most * (kHeight - kTop - kBottom);
    };
    svg += fmt::format(
        "<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">"
        "<text x=\"4\" y=\"14\" class=\"title\">{2}, tok/s</text>"
        "<path class=\"axis\" d=\"M{3} {4}V{5}H{6}\"/>",
        kWidth, kHeight, name, kLeft, kTop, kHeight - kBottom, kWidth - 6);
    svg += fmt::format("<path class=\"ideal\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>", x(base.ranks),
                       y(base.tokens_per_s.value), x(most_ranks), y(ideal));
    std::string line;
    for (const RankScalePoint& one : points) {
      const double at = x(one.ranks), level = y(one.tokens_per_s.value);
      line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", at, level);
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", at, level);
      if (one.tokens_per_s.known()) {
        svg += fmt::format("<path class=\"line\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>", at,
                           y(one.tokens_per_s.lo), y(one.tokens_per_s.hi));
      }
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", at,
                         kHeight - 12, one.ranks);
      svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f}</text>", kLeft - 4,
                         level + 4, one.tokens_per_s.value);
    }
    svg += fmt::format("<path class=\"line\" d=\"{}\"/></svg>\n", line);
  }
  return svg;
}

}  // namespace

json to_json(const RankScaling& scaling) {
  json all = {
      {"model", scaling.model}, {"rank_sums", scaling.sums}, {"threads_of_a_rank", scaling.threads},
      {"cpus", scaling.cpus},   {"rounds", scaling.rounds},  {"points", json::array()}};
  for (const RankScalePoint& point : scaling.points) {
    all["points"].push_back({{"ranks", point.ranks},
                             {"mesh", point.mesh},
                             {"test", engine::name_of(point.test.kind)},
                             {"batch", point.test.batch},
                             {"context", point.test.context},
                             {"tokens", point.test.tokens},
                             {"tok_s", stats::to_json(point.tokens_per_s)},
                             {"speedup", stats::to_json(point.speedup)},
                             {"efficiency", stats::to_json(point.efficiency)},
                             {"waiting", point.waiting},
                             {"sent_bytes_per_token", point.sent_bytes_per_token},
                             {"weight_bytes_of_a_rank", point.weight_bytes},
                             {"ranks_share_cpus", scaling.is_oversubscribed(point.ranks)}});
  }
  return all;
}

std::vector<std::vector<std::string>> rows_of(const RankScaling& scaling) {
  std::vector<std::vector<std::string>> rows = {{"test", ">ranks", "mesh", ">tok/s", ">speedup",
                                                 ">efficiency", ">waiting", ">sent/token",
                                                 ">weights/rank", ""}};
  for (const RankScalePoint& point : scaling.points) {
    rows.push_back({name_of(point.test), std::to_string(point.ranks), point.mesh,
                    interval_text(point.tokens_per_s, "", 1), interval_text(point.speedup, "x", 2),
                    fmt::format("{:.0f}%", 100 * point.efficiency.value),
                    fmt::format("{:.0f}%", 100 * point.waiting),
                    format_bytes(point.sent_bytes_per_token),
                    format_bytes(static_cast<double>(point.weight_bytes)),
                    scaling.is_oversubscribed(point.ranks) ? "shares CPUs" : ""});
  }
  return rows;
}

std::string remarks_on(const RankScaling& scaling) {
  std::string text = fmt::format(
      "{}: ranks are threads of one process with {} thread{} each, sums {}, {} rounds in turns; "
      "intervals of the median, 95%. Efficiency: speedup over ranks added. Waiting: share of the "
      "time in which a rank waited for others, mean of the ranks.",
      scaling.model, scaling.threads, scaling.threads == 1 ? "" : "s", scaling.sums,
      scaling.rounds);
  const bool shares = std::ranges::any_of(scaling.points, [&](const RankScalePoint& point) {
    return scaling.is_oversubscribed(point.ranks);
  });
  if (shares) {
    text += fmt::format(
        " There are {} CPUs: rows that share them show what taking turns costs, and nothing about "
        "more CPUs.",
        scaling.cpus);
  }
  return text;
}

std::string markdown_of(const RankScaling& scaling) {
  std::string text = "# Ranks\n\n" + remarks_on(scaling) + "\n\n";
  bool is_header = true;
  for (std::vector<std::string> row : rows_of(scaling)) {
    std::string rule = "|";
    for (std::string& cell : row) {
      const bool right = is_header && cell.starts_with('>');
      if (right) cell.erase(0, 1);
      rule += right ? "---:|" : "---|";
    }
    text += fmt::format("| {} |\n", fmt::join(row, " | "));
    if (is_header) text += rule + "\n";
    is_header = false;
  }
  return text;
}

std::string page_of(const RankScaling& scaling) {
  std::string rows;
  bool is_header = true;
  for (const std::vector<std::string>& row : rows_of(scaling)) {
    rows += "<tr>";
    for (const std::string& cell : row) {
      const std::string shown = cell.starts_with('>') ? cell.substr(1) : cell;
      rows += is_header ? "<th>" + shown + "</th>" : "<td>" + shown + "</td>";
    }
    rows += "</tr>\n";
    is_header = false;
  }
  return "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Ranks</title>\n<style>"
         "body{font:15px system-ui;margin:2rem;max-width:70rem}"
         "table{border-collapse:collapse}td,th{padding:.2rem .7rem;text-align:right}"
         "td:first-child,th:first-child,td:nth-child(3){text-align:left}"
         "svg{margin:0 1rem 1rem 0}svg text{font:11px system-ui}.title{font-weight:600}"
         ".axis{stroke:#888;fill:none}.line{stroke:#1769aa;fill:none}circle{fill:#1769aa}"
         ".ideal{stroke:#999;fill:none;stroke-dasharray:4 4}</style>\n<h1>Ranks</h1>\n<p>" +
         remarks_on(scaling) + " Dashed: as many times the first as there are ranks.</p>\n" +
         plot_of(scaling) + "<table>\n" + rows + "</table></html>\n";
}

}  // namespace gauntlet::study::inline ranks
