#include "study/study.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "core/os/files.h"
#include "study/results/cell_json.h"
#include "study/results/text/html.h"
#include "study/results/text/markdown.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

constexpr const char* kJournal = "journal.jsonl";

/// What must be the same for a study to be resumed.
json subject_of(const StudyConfig& config) {
  const StudyFacts& facts = config.facts;
  const model::ModelConfig& m = facts.model;
  return {{"schema_version", kStudySchemaVersion},
          {"model", m.name},
          {"shape", {m.num_layers, m.hidden, m.intermediate, m.num_experts, m.vocab}},
          {"weights", facts.weights},
          {"backend", backend_name(facts.ladder.backend)},
          {"machine", facts.machine.cpu_key() + " " + facts.machine.gpu_key()},
          {"depth", name_of(facts.depth)},
          {"budget_seconds", facts.sizes.budget_seconds},
          {"profile", lab::name_of(config.profile)}};
}

Expected<Journal> open_journal(const StudyConfig& config) {
  if (const auto made = make_folders(config.folder); !made) return made.error();
  const auto path = config.folder / kJournal;
  if (config.start == Start::resumed) return Journal::resume(path, subject_of(config));
  if (std::filesystem::exists(path)) {
    return Error{fmt::format("{} holds a study already: go on with it by --resume, or choose "
                             "another --output",
                             config.folder.string()),
                 ErrorKind::wrong_use};
  }
  return Journal::begin(path, subject_of(config),
                        std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
}

std::vector<Cell> cells_of(const StudyConfig& config) {
  return plan_cells(config.facts.ladder, config.facts.sizes, config.profile);
}

/// What a cell could not measure is a gap with its reason, so that one point does not end a study.
json value_or_gap(Expected<json> measured) {
  return measured ? std::move(*measured) : gap_to_json(measured.error().message);
}

TimeBudget budget_of(const StudyConfig& config, const std::vector<Cell>& cells) {
  std::vector<CellTime> times;
  for (const Cell& cell : cells) times.push_back(cell.time);
  TimeBudget budget(std::move(times), {.repeat_s = config.facts.sizes.budget_seconds,
                                       .end_s = config.facts.sizes.end_seconds});
  budget.spend(config.spent_s);
  return budget;
}

Expected<void> measure(const StudyConfig& config, const std::vector<Cell>& cells, Workbench& bench,
                       Journal& journal) {
  using Clock = std::chrono::steady_clock;
  TimeBudget budget = budget_of(config, cells);
  budget.spend(journal.seconds());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (journal.has(cells[i].key)) budget.leave(i);
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (journal.has(cells[i].key)) continue;
    if (bench.is_cancelled()) return {};
    if (config.progress) config.progress({i, cells.size(), budget.left_s(), cells[i].title});
    const auto seconds = budget.allot(i);
    if (!seconds) {
      budget.leave(i);
      if (auto kept = journal.append(cells[i].key, gap_to_json(kLeftOut)); !kept) return kept;
      continue;
    }
    const auto start = Clock::now();
    auto measured = cells[i].measure(bench, journal, *seconds);
    if (!measured && bench.is_cancelled()) return {};
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    budget.finish(i, took);
    const auto kept = journal.append(cells[i].key, value_or_gap(std::move(measured)), took);
    if (!kept) return kept;
  }
  return {};
}

}  // namespace

double estimated_seconds(const StudyConfig& config) {
  return budget_of(config, cells_of(config)).left_s();
}

Expected<StudyEnd> run_study(const StudyConfig& config, Workbench& bench) {
  auto journal = open_journal(config);
  if (!journal) return journal.error();
  const std::vector<Cell> cells = cells_of(config);
  if (const auto done = measure(config, cells, bench, *journal); !done) return done.error();
  StudyFacts facts = config.facts;
  facts.num_cells = cells.size();
  const auto results = assemble(facts, *journal);
  if (!results) return results.error();
  if (const auto written = write_reports(config.folder, *results); !written) {
    return written.error();
  }
  return StudyEnd{.complete = journal->num_cells() == cells.size(), .folder = config.folder};
}

Expected<StudyResults> load_results(const std::filesystem::path& folder) {
  const auto path = folder / "results.json";
  const auto text = read_file(path);
  if (!text) return text.error();
  auto results = results_from_json(json::parse(*text, nullptr, false));
  if (results) return results;
  return Error{fmt::format("{}: {}", path.string(), results.error().message), results.error().kind};
}

Expected<void> write_reports(const std::filesystem::path& folder, const StudyResults& results) {
  const std::string text =
      to_json(results).dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  if (auto ok = atomic_write_file(folder / "results.json", text); !ok) return ok;
  if (auto ok = atomic_write_file(folder / "report.md", render_markdown(results)); !ok) return ok;
  return atomic_write_file(folder / "report.html", render_html(results));
}

}  // namespace gauntlet::study
