#include "cli/ceilings.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/progress.h"
#include "core/os/files.h"
#include "lab/run/runner.h"

namespace gauntlet::cli {

Expected<lab::Ceilings> obtain_ceilings(const CeilingsWanted& wanted) {
  const MachineInfo& machine = wanted.machine;
  const std::string key =
      wanted.backend == lab::BackendKind::cpu ? machine.cpu_key() : machine.gpu_key();
  if (!wanted.remeasure) {
    if (auto known = lab::load_ceilings(key)) return *known;
  }
  const auto folder = std::filesystem::path(lab::ceilings_path(key)).parent_path();
  if (auto made = make_folders(folder / "logs"); !made) return made.error();
  lab::Runner runner({.program = wanted.program, .folder = folder.string()}, machine);
  ProgressLine line;
  auto measured = runner.measure_ceilings(wanted.backend, [&](const lab::RunProgress& p) {
    line.show(fmt::format("measuring {} ({})", p.phase, key));
  });
  if (!measured) return measured;
  if (auto saved = lab::save_ceilings(*measured); !saved) return saved.error();
  return measured;
}

}  // namespace gauntlet::cli
