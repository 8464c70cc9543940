// gauntlet new: scaffolds a pair in the catalogue of a source tree.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "core/os/files.h"
#include "core/text/text.h"
#include "lab/targets/scaffold.h"

namespace gauntlet::cli {
namespace {

namespace fs = std::filesystem;

struct NewOptions {
  std::string name;
  std::string technique;
  std::string sides = "both";
  std::string catalog = "catalog";
};

std::vector<std::string> techniques_of(const fs::path& list) {
  std::vector<std::string> names;
  const auto text = read_file(list);
  if (!text) return names;
  for (const std::string& line : split_lines(*text)) {
    const auto words = split_words(line);
    if (!words.empty() && words[0][0] != '#') names.push_back(words[0]);
  }
  return names;
}

Expected<lab::ScaffoldRequest> request_of(const NewOptions& options) {
  auto request = lab::parse_pair_name(options.name);
  if (!request) return request;
  const fs::path chapter = fs::path(options.catalog) / request->chapter;
  if (!fs::is_directory(options.catalog)) {
    return wrong_use(
        fmt::format("there is no folder '{}' here; run this in the root of the source "
                    "tree or say --catalog",
                    options.catalog));
  }
  const auto techniques = techniques_of(chapter / "techniques");
  if (techniques.empty()) {
    return wrong_use(fmt::format("{} has no list of techniques: write {} first, one line each",
                                 request->chapter, (chapter / "techniques").string()));
  }
  request->technique = options.technique.empty() ? techniques.front() : options.technique;
  if (std::ranges::find(techniques, request->technique) == techniques.end()) {
    const std::string near = nearest(request->technique, techniques);
    return wrong_use(fmt::format("'{}' is not a technique of {}{}; they are: {}",
                                 request->technique, request->chapter,
                                 near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                                 fmt::join(techniques, ", ")));
  }
  using Sides = lab::ScaffoldRequest::Sides;
  request->sides = options.sides == "cpu"    ? Sides::cpu
                   : options.sides == "cuda" ? Sides::cuda
                                             : Sides::both;
  return request;
}

int scaffold(const NewOptions& options) {
  const auto request = request_of(options);
  if (!request) return report_error(request.error());
  const fs::path folder = fs::path(options.catalog) / request->chapter / request->name;
  if (fs::exists(folder)) {
    return report_error(wrong_use(fmt::format("'{}' exists already", folder.string())));
  }
  if (auto made = make_folders(folder); !made) return report_error(made.error());
  for (const auto& [name, text] : lab::scaffold_files(*request)) {
    if (auto written = atomic_write_file(folder / name, text); !written) {
      return report_error(written.error());
    }
    fmt::print("{}\n", (folder / name).string());
  }
  fmt::print("now: make && build/release/gauntlet run --targets {}:{}\n", request->chapter,
             request->name);
  return 0;
}

}  // namespace

void add_new(CLI::App& app, Context& context) {
  auto options = std::make_shared<NewOptions>();
  CLI::App* command = app.add_subcommand("new", "scaffolds a pair");
  command->add_option("name", options->name, "chapter/name, as in ch07/my_pair")->required();
  command->add_option("--technique", options->technique,
                      "from the chapter's list (default: its first)");
  command->add_option("--sides", options->sides, "cpu, cuda or both")
      ->check(CLI::IsMember({"cpu", "cuda", "both"}));
  command->add_option("--catalog", options->catalog, "the catalogue's folder")
      ->capture_default_str();
  command->footer("Example:  gauntlet new ch07/my_pair --technique coalescing");
  command->callback([options, &context] { context.exit_code = scaffold(*options); });
}

}  // namespace gauntlet::cli
