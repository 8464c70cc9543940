// Every option of the engine in one entry: its flag and help, what it means for a plan and forces
// in it, the words of its line there, and its rung on the ladders of a study.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/options.h"

namespace gauntlet::engine {

/// A word that a flag takes, and what it sets.
struct OptionWord {
  std::string word;
  std::function<void(EngineOptions&)> set;
};

/// A flag that takes a whole number.
struct OptionNumber {
  int least = 0;
  int most = 0;
  std::function<void(EngineOptions&, int)> set;
};

/// Where a flag is listed. Those `apart` are added by the commands that have a use for them.
enum class FlagGroup { shared, cuda, apart };

struct OptionFlag {
  std::string name;  // with its two dashes
  std::string help;
  FlagGroup group = FlagGroup::shared;
  std::vector<OptionWord> words;  // one without letters: the flag takes none
  std::optional<OptionNumber> number;
  /// The word, or the number, of the options as they are; empty where nothing was chosen.
  std::function<std::string(const EngineOptions&)> value;
};

/// A part of a line of a plan, "overlapping" of "launches: graphs, overlapping"; parts stand in the
/// order of the table, those `behind` after the others. An empty text is left out.
template <class AnyPlan>
struct PlanPart {
  enum class Place { in_order, behind };

  std::string line;
  std::function<std::string(const AnyPlan&)> text;
  Place place = Place::in_order;
};

/// By what an option is seen: steps of the model, or requests that arrive over time.
enum class SeenBy { steps, requests };

/// A rung of one backend's ladder: the baseline has the option off.
struct LadderRow {
  std::string id;
  std::string title;
  int layer = 0;
  int place = 0;  // within the layer; rows of one place are in the order of the table
  SeenBy seen_by = SeenBy::steps;
  /// How far perplexity may move, in percent; 0: the same tokens must come out.
  double perplexity_percent = 0;
  std::vector<std::string> targets;  // of the catalogue, that show the technique alone
  std::function<void(EngineOptions&)> off;
  std::function<void(EngineOptions&)> on;
};

/// What one backend makes of an option; null and empty where it has no use for it.
struct CpuEntry {
  std::function<Expected<void>(const EngineOptions&, Plan&)> resolve;
  std::vector<PlanPart<Plan>> parts;
  std::optional<LadderRow> row;
};
struct CudaEntry {
  std::function<Expected<void>(const EngineOptions&, const GpuTraits&, CudaPlan&)> resolve;
  std::vector<PlanPart<CudaPlan>> parts;
  std::optional<LadderRow> row;
};

struct OptionEntry {
  OptionFlag flag;
  CpuEntry cpu;
  CudaEntry cuda;
};

/// An entry may rely on what those before it have resolved, and change it.
using OptionTable = std::vector<OptionEntry>;
const OptionTable& option_table();
const OptionEntry& find_option(const std::string& flag);

/// The entries of option_table(): those that both backends or CPUs have, and those of a GPU.
OptionTable shared_options();
OptionTable cuda_options();

Expected<Plan> resolve(const EngineOptions& options, const OptionTable& table);
Expected<CudaPlan> resolve(const EngineOptions& options, const GpuTraits& gpu,
                           const OptionTable& table);
std::vector<std::string> describe(const Plan& plan, const OptionTable& table);

}  // namespace gauntlet::engine
