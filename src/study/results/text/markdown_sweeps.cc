// The sweeps and the split of a step as Markdown.
#include <fmt/format.h>

#include <functional>

#include "study/results/text/markdown_parts.h"

namespace gauntlet::study::inline results {
namespace {

/// A table of sweep points. `labels` come first, then the `cells` of what was measured, or why it
/// was not.
template <class Point, class Figures>
struct SweepTable {
  std::string title;
  Row header;
  const std::vector<Point>& points;
  std::function<Row(const Point&)> labels;
  Measured<Figures> Point::*measured;
  std::function<Row(const Figures&)> cells;
};

template <class Point, class Figures>
std::string render_sweep(const SweepTable<Point, Figures>& sweep) {
  MarkdownTable table{
      .header = sweep.header, .alignment = std::string(sweep.header.size(), 'r'), .rows = {}};
  for (const Point& point : sweep.points) {
    Row row = sweep.labels(point);
    const Measured<Figures>& measured = point.*sweep.measured;
    const Row more = measured ? sweep.cells(*measured) : Row{"gap: " + markdown_text(measured.gap)};
    row.insert(row.end(), more.begin(), more.end());
    row.resize(table.header.size());
    table.rows.push_back(std::move(row));
  }
  return "### " + sweep.title + "\n\n" + render(table) + "\n";
}

std::string batch_table(const Sweeps& sweeps) {
  return render_sweep<BatchPoint, StepSpeed>(
      {"Batch",
       {"batch", "tok/s", "TPOT ms", "of limit", "experts per layer"},
       sweeps.batch,
       [](const BatchPoint& p) -> Row { return {number(p.batch)}; },
       &BatchPoint::speed,
       [](const StepSpeed& speed) -> Row {
         return {number(speed.tok_s), number(speed.tpot_ms), percent(speed.percent_of_limit),
                 number(speed.experts_per_layer)};
       }});
}

std::string prompt_table(const Sweeps& sweeps) {
  return render_sweep<PromptPoint, PromptSpeed>(
      {"Time to the first token",
       {"prompt", "batch", "TTFT ms", "tok/s", "of limit"},
       sweeps.prompts,
       [](const PromptPoint& p) -> Row {
         return {number(p.length), number(p.batch)};
       },
       &PromptPoint::speed,
       [](const PromptSpeed& speed) -> Row {
         return {number(speed.ttft_ms), number(speed.tok_s), percent(speed.percent_of_limit)};
       }});
}

std::string context_table(const Sweeps& sweeps) {
  return render_sweep<ContextPoint, StepPercentiles>(
      {"Context",
       {"context", "batch", "p50 ms", "p95 ms"},
       sweeps.context,
       [](const ContextPoint& p) -> Row {
         return {number(p.context), number(p.batch)};
       },
       &ContextPoint::steps,
       [](const StepPercentiles& steps) -> Row {
         return {number(steps.p50_ms), number(steps.p95_ms)};
       }});
}

std::string precision_table(const Sweeps& sweeps) {
  return render_sweep<PrecisionPoint, PrecisionFigures>(
      {"Precision",
       {"on", "tok/s", "perplexity", "weights"},
       sweeps.precision,
       [](const PrecisionPoint& p) -> Row {
         return {p.on.empty() ? "none" : fmt::format("{}", fmt::join(p.on, " + "))};
       },
       &PrecisionPoint::figures,
       [](const PrecisionFigures& figures) -> Row {
         return {number(figures.speed.tok_s), fmt::format("{:.4f}", figures.score.perplexity),
                 lab::report::bytes(figures.weight_bytes)};
       }});
}

std::string load_table(const Sweeps& sweeps) {
  return render_sweep<LoadPoint, LoadFigures>(
      {"Load, Poisson arrivals",
       {"of saturation", "requests/s", "tok/s", "TTFT p50 ms", "TTFT p95 ms", "TPOT p95 ms",
        "mean queue"},
       sweeps.load,
       [](const LoadPoint& p) -> Row { return {number(p.of_saturation)}; },
       &LoadPoint::figures,
       [](const LoadFigures& load) -> Row {
         const ServeFigures& served = load.served;
         return {number(load.offered_per_s), number(served.tok_s),       number(served.ttft_ms.p50),
                 number(served.ttft_ms.p95), number(served.tpot_ms.p95), number(served.mean_queue)};
       }});
}

std::string markdown_of(const TimeResult& time) {
  const auto& step = time.step;
  MarkdownTable table{.header = {"part", "µs", "limit µs", "of limit", "bound by"},
                      .alignment = "lrrrl",
                      .rows = {}};
  for (const auto& [part, percent_of_limit] : step.parts) {
    const bool is_limited = !part.bound_by.empty();
    table.rows.push_back({markdown_code(part.name), number(part.us),
                          is_limited ? number(part.floor_us) : "", percent(percent_of_limit),
                          markdown_text(part.bound_by)});
  }
  table.rows.push_back({"between kernels", number(step.idle_us), "", "", ""});
  table.rows.push_back({"host", number(step.host_us), "", "", ""});
  return fmt::format("Batch {}, context {}: {} µs a step.\n\n{}\nNext: {}. {}.\n\n", step.batch,
                     step.context, number(step.step_us), render(table),
                     name_of(time.bottleneck.bottleneck), markdown_text(time.bottleneck.sentence));
}

}  // namespace

std::string markdown_of(const Sweeps& sweeps) {
  return "## Sweeps\n\n" + batch_table(sweeps) + prompt_table(sweeps) + context_table(sweeps) +
         precision_table(sweeps) + load_table(sweeps);
}

std::string markdown_of(const std::vector<TimeResult>& time) {
  std::string out = "## Where the time goes\n\n";
  for (const TimeResult& result : time) out += markdown_of(result);
  return out;
}

}  // namespace gauntlet::study::inline results
