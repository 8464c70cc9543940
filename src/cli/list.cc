// gauntlet list: targets by chapter, tag and backend, and which named techniques they cover.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/command.h"
#include "cli/table.h"
#include "lab/run/judge.h"
#include "lab/targets/coverage.h"
#include "lab/targets/suites.h"

namespace gauntlet::cli {
namespace {

using nlohmann::json;

struct ListOptions {
  std::vector<std::string> targets;
  std::string tag;
  std::string backend;
  bool coverage = false;
  bool suites = false;
  Format format = Format::text;
};

std::vector<std::string> backends_of(const lab::Target& target) {
  std::vector<std::string> names;
  for (const lab::BackendKind backend : lab::kBackends) {
    if (target.has(backend)) names.emplace_back(lab::name_of(backend));
  }
  return names;
}

/// By yardstick, of those that have any.
json yardstick_needs(const lab::Target& target, lab::BackendKind backend) {
  json needs = json::object();
  for (const lab::SideSource& side : target.sides(backend)) {
    if (side.role != lab::SideRole::yardstick) continue;
    if (const auto own = target.needs_of(backend, side); !own.empty()) needs[side.name] = own;
  }
  return needs;
}

/// "sm_90a, cudnn for its yardstick"
std::string needs_text(const lab::Target& target, lab::BackendKind backend) {
  std::vector<std::string> texts = target.needs(backend);
  const json of_yardsticks = yardstick_needs(target, backend);
  for (const auto& [name, needs] : of_yardsticks.items()) {
    for (const json& need : needs) texts.push_back(need.get<std::string>() + " for its yardstick");
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Whose facts stand for the target where there is room for one backend's.
lab::BackendKind primary_of(const lab::Target& target) {
  for (const lab::BackendKind backend : {lab::BackendKind::cuda, lab::BackendKind::cpu}) {
    if (target.has(backend)) return backend;
  }
  return lab::BackendKind::ranks;
}

const char* kind_of(const lab::BackendFacts& facts) {
  return facts.kind == lab::Kind::comparison ? "comparison" : "demonstration";
}

/// "comparison", or where backends differ "cpu demonstration, cuda comparison".
std::string kinds_text(const lab::Target& target) {
  std::vector<std::string> each;
  std::set<std::string> different;
  for (const lab::BackendKind backend : lab::kBackends) {
    if (!target.has(backend)) continue;
    const std::string kind = kind_of(target.facts(backend));
    each.push_back(fmt::format("{} {}", lab::name_of(backend), kind));
    different.insert(kind);
  }
  return different.size() == 1 ? *different.begin() : fmt::format("{}", fmt::join(each, ", "));
}

int list_coverage(const lab::Catalog& catalog, Format format) {
  const auto rows = lab::load_coverage();
  if (!rows) return report_error(rows.error());
  if (format == Format::json) {
    json all = json::array();
    for (const auto& row : *rows) {
      all.push_back({{"chapter", row.chapter},
                     {"technique", row.technique},
                     {"state", row.state},
                     {"where", row.where}});
    }
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  Table table({"chapter", "technique", "state", "where"});
  std::map<std::string, int> counts;
  for (const auto& row : *rows) {
    table.add({row.chapter, row.technique, row.state, row.where});
    ++counts[row.state];
  }
  fmt::print("{}\n", table.text());
  for (const auto& [state, count] : counts) fmt::print("{} {}  ", count, state);
  fmt::print("of {} named techniques\n", rows->size());
  for (const std::string& problem : lab::coverage_problems(*rows, catalog)) {
    fmt::print("note: {}\n", problem);
  }
  return 0;
}

int list_suites(const lab::Catalog& catalog, Format format) {
  const auto suites = lab::load_suites();
  if (!suites) return report_error(suites.error());
  json all = json::array();
  Table table({"suite", "targets", "what for"});
  for (const lab::Suite& suite : *suites) {
    // A suite of chapters to come is listed with what it has: nothing yet.
    const auto chosen = catalog.suite(suite.name);
    json ids = json::array();
    if (chosen) {
      for (const lab::Target* target : *chosen) ids.push_back(target->id());
    }
    table.add({suite.name, std::to_string(ids.size()), suite.purpose});
    all.push_back({{"name", suite.name},
                   {"purpose", suite.purpose},
                   {"patterns", suite.patterns},
                   {"targets", ids}});
  }
  fmt::print("{}", format == Format::json ? all.dump(2) + "\n" : table.text());
  return 0;
}

int list_targets(const lab::Catalog& catalog, const ListOptions& options) {
  const auto chosen =
      options.targets.empty() ? catalog.select({"*"}) : catalog.select(options.targets);
  if (!chosen) return report_error(chosen.error());
  json all = json::array();
  Table table({"target", "on", "kind", "technique", "needs", "what"});
  for (const lab::Target* target : *chosen) {
    const auto backends = backends_of(*target);
    if (!options.backend.empty() &&
        std::ranges::find(backends, options.backend) == backends.end()) {
      continue;
    }
    const auto& tags = target->pair.tags;
    if (!options.tag.empty() && std::ranges::find(tags, options.tag) == tags.end()) continue;
    const lab::BackendKind primary = primary_of(*target);
    const lab::Result about = lab::describe(*target, primary, lab::Knobs{});
    const auto needs = target->needs(primary);
    if (options.format == Format::json) {
      json claims, kinds, sides, knobs = json::array();
      for (const lab::BackendKind backend : lab::kBackends) {
        if (!target->has(backend)) continue;
        const lab::BackendFacts& facts = target->facts(backend);
        const char* name = lab::name_of(backend);
        claims[name] = facts.claim;
        kinds[name] = kind_of(facts);
        for (const lab::SideSource& side : target->sides(backend)) sides[name].push_back(side.name);
      }
      for (const lab::Knob& knob : target->pair.knobs) {
        knobs.push_back({{"name", knob.name},
                         {"cpu", knob.cpu},
                         {"cuda", knob.cuda},
                         {"min", knob.min},
                         {"max", knob.max},
                         {"multiple_of", knob.multiple_of},
                         {"help", knob.help}});
      }
      all.push_back({{"id", about.id},
                     {"chapter", about.chapter},
                     {"name", target->source.name},
                     {"kinds", kinds},
                     {"sides", sides},
                     {"technique", about.technique},
                     {"title", about.title},
                     {"claim", about.claim},
                     {"claims", claims},
                     {"goal", about.goal},
                     {"backends", backends},
                     {"needs", needs},
                     {"yardstick_needs", yardstick_needs(*target, primary)},
                     {"tags", tags},
                     {"knobs", knobs}});
    } else {
      table.add({about.id, fmt::format("{}", fmt::join(backends, " ")), kinds_text(*target),
                 about.technique, needs_text(*target, primary), about.title});
    }
  }
  if (options.format == Format::json) {
    fmt::print("{}\n", all.dump(2));
  } else if (table.empty()) {
    fmt::print("no target fits\n");
  } else {
    fmt::print("{}", table.text());
  }
  return 0;
}

}  // namespace

void add_list(CLI::App& app, Context& context) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* command = app.add_subcommand("list", "targets, by chapter, tag and backend");
  command->add_option("targets", options->targets, "ids, chapters or globs (default: all)");
  command->add_option("--tag", options->tag, "only targets with this tag");
  command->add_option("--backend", options->backend, "only targets with this backend")
      ->check(CLI::IsMember({"cpu", "cuda", "ranks"}));
  command->add_flag("--coverage", options->coverage,
                    "the field's named techniques and where each is covered");
  command->add_flag("--suites", options->suites,
                    "the suites of 'gauntlet run --suite', and what each is for");
  add_format(*command, options->format);
  command->footer("Example:  gauntlet list ch07 --backend cpu");
  command->callback([options, &context] {
    context.exit_code = options->coverage ? list_coverage(context.catalog, options->format)
                        : options->suites ? list_suites(context.catalog, options->format)
                                          : list_targets(context.catalog, *options);
  });
}

}  // namespace gauntlet::cli
