#include "tests/gpu/source_tree.h"

#include <algorithm>

#include "core/check.h"
#include "core/os/files.h"
#include "core/text/text.h"
#include "tests/gpu/code_text.h"

namespace gauntlet::tests::gpu {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }

/// "router" of "src/kernels/cuda/router.sm90a.cu"
std::string stem_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name.substr(0, name.find('.'));
}

bool is_read(const fs::path& path) {
  static const std::set<std::string> kEndings = {".h", ".cc", ".cu", ".cuh", ".inc", ".cmake"};
  return kEndings.contains(path.extension().string());
}

/// The path of an include of ours; empty for any other line.
std::string included_by(const std::string& line) {
  const std::string content = trim(line);
  if (!content.starts_with('#')) return "";
  const std::string directive = trim(content.substr(1));
  if (!directive.starts_with("include")) return "";
  const std::string name = trim(directive.substr(7));
  const std::size_t end = name.find('"', 1);
  return name.starts_with('"') && end != std::string::npos ? name.substr(1, end - 1) : "";
}

}  // namespace

bool is_test_source(const std::string& path) { return path.ends_with("_test.cc"); }

bool is_cpu_only_source(const std::string& path) { return stem_of(path).starts_with("no_cuda"); }

std::string SourceSet::id() const {
  std::string lines;
  for (const auto& [path, code] : files) lines += code + " " + path + "\n";
  return digest(lines);
}

std::vector<std::string> differences(const SourceSet& one, const SourceSet& other) {
  std::set<std::string> paths;
  for (const auto* set : {&one, &other}) {
    const auto& counterpart = (set == &one ? other : one).files;
    for (const auto& [path, code] : set->files) {
      const auto found = counterpart.find(path);
      if (found == counterpart.end() || found->second != code) paths.insert(path);
    }
  }
  return {paths.begin(), paths.end()};
}

SourceTree::SourceTree(const fs::path& root) {
  for (const char* below : {"src", "catalog", "tests", "cmake"}) {
    if (!fs::exists(root / below)) continue;
    auto entries = fs::recursive_directory_iterator(root / below);
    for (auto entry = fs::begin(entries); entry != fs::end(entries); ++entry) {
      if (entry->is_directory() && entry->path().filename() == "node_modules") {
        entry.disable_recursion_pending();
      }
      if (!entry->is_regular_file() || !is_read(entry->path())) continue;
      const std::string path = fs::relative(entry->path(), root).generic_string();
      const auto text = read_file(entry->path());
      check(static_cast<bool>(text), "a source of the tree can be read");
      paths_.insert(path);
      texts_[path] = *text;
      digests_[path] = digest(code_of(path, *text));
    }
  }
  for (const std::string& path : paths_) find_includes(path);
  find_implementations();
}

std::vector<std::string> SourceTree::matching(const Predicate& wanted) const {
  std::vector<std::string> found;
  std::ranges::copy_if(paths_, std::back_inserter(found), wanted);
  return found;
}

std::string SourceTree::resolve(const std::string& from, const std::string& include) const {
  for (const fs::path& path :
       {fs::path("src") / include, fs::path(include), fs::path(folder_of(from)) / include}) {
    const std::string normal = path.lexically_normal().generic_string();
    if (paths_.contains(normal)) return normal;
  }
  return "";
}

void SourceTree::find_includes(const std::string& path) {
  for (const std::string& line : split_lines(texts_.at(path))) {
    const std::string include = included_by(line);
    const std::string found = include.empty() ? "" : resolve(path, include);
    if (!found.empty()) includes_[path].push_back(found);
  }
}

// x.cc, x.cu and x.sm90a.cu implement x.h beside them. A source without such a header (one that a
// header shares out over several files) implements those that it includes from its folder or the
// one above.
void SourceTree::find_implementations() {
  for (const std::string& path : paths_) {
    const bool source = path.ends_with(".cc") || path.ends_with(".cu");
    if (!source || !path.starts_with("src/") || path.starts_with("src/cli/")) continue;
    if (is_test_source(path) || is_cpu_only_source(path)) continue;
    const std::string folder = folder_of(path);
    const std::string header = folder + "/" + stem_of(path) + ".h";
    if (paths_.contains(header)) {
      implementations_[header].push_back(path);
      continue;
    }
    for (const std::string& included : includes_[path]) {
      const std::string where = folder_of(included);
      if (included.ends_with(".h") && (where == folder || where == folder_of(folder))) {
        implementations_[included].push_back(path);
      }
    }
  }
}

SourceSet SourceTree::closure(const std::vector<std::string>& roots,
                              const Predicate& left_out) const {
  SourceSet set;
  std::vector<std::string> open = roots;
  while (!open.empty()) {
    const std::string path = std::move(open.back());
    open.pop_back();
    if (set.contains(path) || left_out(path)) continue;
    set.files[path] = digests_.at(path);
    for (const auto* next : {&includes_, &implementations_}) {
      const auto found = next->find(path);
      if (found != next->end()) open.insert(open.end(), found->second.begin(), found->second.end());
    }
  }
  return set;
}

}  // namespace gauntlet::tests::gpu
