#include "lab/records/records.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/os/files.h"
#include "core/text/text.h"
#include "lab/report/html.h"
#include "lab/report/markdown.h"

namespace gauntlet::lab::inline records {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// False also where the system refuses to look: no right to, or no file can have that name.
bool is_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "results.json", ignored);
}

std::vector<std::string> run_ids(const std::string& artifacts) {
  std::vector<std::string> ids;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(artifacts, ignored)) {
    if (is_run(entry.path())) ids.push_back(entry.path().filename());
  }
  std::ranges::sort(ids);
  return ids;
}

}  // namespace

std::string make_run_id(std::chrono::system_clock::time_point now) {
  using std::chrono::floor, std::chrono::seconds;
  const auto second = floor<seconds>(now);
  const std::chrono::duration<double> fraction = now - second;
  return fmt::format("{:%Y%m%d-%H%M%S}-{:04x}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(second)),
                     static_cast<unsigned>(fraction.count() * 65536));
}

Expected<RunFolder> RunFolder::create(const std::string& artifacts, const std::string& run_id) {
  const std::string path = artifacts + "/" + run_id;
  for (const char* below : {"/logs", "/profiles"}) {
    if (const auto made = make_folders(path + below); !made) {
      return Error{fmt::format("cannot write to the artifacts folder: {}; choose another with "
                               "--artifacts-dir",
                               made.error().message),
                   ErrorKind::wrong_use};
    }
  }
  return RunFolder(fs::absolute(path).lexically_normal().string());
}

Expected<RunFolder> RunFolder::find(const std::string& artifacts, const std::string& name) {
  const std::vector<std::string> ids = run_ids(artifacts);
  if (name == "latest" && !ids.empty()) return RunFolder(artifacts + "/" + ids.back());
  if (name == "previous" && ids.size() > 1) return RunFolder(artifacts + "/" + ids[ids.size() - 2]);
  if (is_run(artifacts + "/" + name)) return RunFolder(artifacts + "/" + name);
  if (is_run(name)) {
    std::string path = name;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return RunFolder(path);
  }
  if (ids.empty()) {
    return Error{
        fmt::format("there are no runs below '{}'; make one with 'gauntlet run'", artifacts),
        ErrorKind::wrong_use};
  }
  const std::string near = nearest(name, ids);
  return Error{fmt::format("there is no run '{}' below '{}'; {} '{}'", name, artifacts,
                           near.empty() ? "the latest is" : "did you mean",
                           near.empty() ? ids.back() : near),
               ErrorKind::wrong_use};
}

std::string RunFolder::run_id() const { return fs::path(path_).filename(); }

Expected<void> RunFolder::save(const RunRecord& record) const {
  json manifest = to_json(record);
  manifest.erase("results");
  manifest.erase("ceilings");
  const std::string text = manifest.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  if (auto ok = atomic_write_file(path_ + "/manifest.json", text); !ok) return ok;
  return atomic_write_file(path_ + "/results.json", json_text(record));
}

Expected<void> RunFolder::save_reports(const RunRecord& record) const {
  if (auto ok = atomic_write_file(path_ + "/report.md", report::render_markdown(record)); !ok)
    return ok;
  return atomic_write_file(path_ + "/report.html", report::render_html(record));
}

Expected<RunRecord> RunFolder::load() const {
  const auto text = read_file(path_ + "/results.json");
  if (!text) return text.error();
  const json document = json::parse(*text, nullptr, false);
  if (document.is_discarded()) {
    return Error{fmt::format("{}/results.json is not valid JSON", path_)};
  }
  return run_record_from_json(document);
}

}  // namespace gauntlet::lab::inline records
