#include "cli/ranks/analyze_ranks.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "study/ranks/scaling_text.h"

namespace gauntlet::cli {
namespace {

Expected<void> write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out) return Error{fmt::format("{} cannot be written", file.string())};
  return {};
}

}  // namespace

int analyze_ranks(const EngineArguments& arguments, const ScaleArguments& scale,
                  const std::string& folder, Format format) {
  std::vector<int> ranks = scale.ranks;
  std::ranges::sort(ranks);
  if (std::ranges::adjacent_find(ranks) != ranks.end()) {
    return report_error(wrong_use("--ranks takes each number once, as in 1,2,4"));
  }
  if (arguments.backend == BackendChoice::cuda) {
    return report_error(wrong_use("--ranks measures ranks of CPUs: leave out --backend cuda"));
  }
  const auto model = open_model(arguments);
  if (!model) return report_error(model.error());
  const std::atomic<bool>& interrupted = watch_signals({SIGINT, SIGTERM});
  ProgressLine line;
  const auto scaling =
      study::measure_scaling(model->weights,
                             {.ranks = ranks,
                              .sums = arguments.ranks.sums,
                              .options = arguments.options,
                              .tests = study::scale_tests(model->weights.config),
                              .rounds = scale.rounds},
                             {.show = [&](const std::string& what) { line.show(what); },
                              .is_interrupted = [&] { return interrupted.load(); }});
  line.clear();
  if (!scaling) return interrupted.load() ? 130 : report_error(scaling.error());
  const std::filesystem::path into(folder);
  std::error_code failed;
  std::filesystem::create_directories(into, failed);
  const std::string text = study::to_json(*scaling).dump(2);
  for (const auto& [name, content] :
       {std::pair{"ranks.json", text + "\n"}, std::pair{"ranks.md", study::markdown_of(*scaling)},
        std::pair{"ranks.html", study::page_of(*scaling)}}) {
    if (const auto written = write(into / name, content); !written) {
      return report_error(written.error());
    }
  }
  if (format == Format::json) {
    fmt::print("{}\n", text);
    return 0;
  }
  auto rows = study::rows_of(*scaling);
  Table table(rows.front());
  for (std::size_t i = 1; i < rows.size(); ++i) table.add(std::move(rows[i]));
  fmt::print("{}\n\n{}\n{}\n", study::remarks_on(*scaling), table.text(),
             (into / "ranks.html").string());
  return 0;
}

}  // namespace gauntlet::cli
