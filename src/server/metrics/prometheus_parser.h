// A strict reader of Prometheus' text format, for tests: what it takes, any scraper takes.
#pragma once
#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace gauntlet::server::inline metrics {

struct ExposedSample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct ExposedFamily {
  std::string help;
  std::string type;
  std::vector<ExposedSample> samples;
};

class Exposition {
 public:
  /// Throws at the first line that is wrong, out of place, or there twice.
  explicit Exposition(const std::string& text) {
    if (text.empty() || text.back() != '\n') throw std::runtime_error("the last line has no end");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      try {
        read(line);
      } catch (const std::runtime_error& error) {
        throw std::runtime_error(std::string(error.what()) + ": " + line);
      }
    }
  }

  const std::map<std::string, ExposedFamily>& families() const { return families_; }
  const ExposedFamily& family(const std::string& name) const { return families_.at(name); }
  /// The names of all samples, a histogram's three among them.
  std::set<std::string> sample_names() const {
    std::set<std::string> names;
    for (const auto& [key, family] : families_) {
      for (const ExposedSample& sample : family.samples) names.insert(sample.name);
    }
    return names;
  }
  double value(const std::string& name,
               const std::map<std::string, std::string>& labels = {}) const {
    for (const auto& [key, family] : families_) {
      for (const ExposedSample& sample : family.samples) {
        const bool has_all = std::ranges::all_of(labels, [&](const auto& label) {
          const auto found = sample.labels.find(label.first);
          return found != sample.labels.end() && found->second == label.second;
        });
        if (sample.name == name && has_all) return sample.value;
      }
    }
    throw std::runtime_error("there is no sample " + name);
  }

 private:
  static void require(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(what);
  }

  void read(const std::string& line) {
    static const std::regex kHelp("# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)");
    static const std::regex kType("# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)");
    std::smatch match;
    if (std::regex_match(line, match, kHelp)) {
      require(!families_.contains(match[1]), "a family is there twice");
      current_ = match[1];
      families_[current_].help = match[2];
    } else if (std::regex_match(line, match, kType)) {
      require(match[1] == current_, "a type does not follow its help");
      ExposedFamily& family = families_[current_];
      require(family.type.empty() && family.samples.empty(), "a type comes late");
      family.type = match[2];
    } else {
      require(!line.starts_with('#'), "an unknown comment");
      add(parse(line));
    }
  }

  ExposedSample parse(const std::string& line) {
    static const std::regex kSample(
        R"(([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([-+]?(?:[0-9.]+(?:e[-+]?[0-9]+)?)))");
    static const std::regex kLabel(R"re(([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\"n])*)"(,|$))re");
    std::smatch match;
    require(std::regex_match(line, match, kSample), "this is no sample");
    ExposedSample sample{.name = match[1], .labels = {}, .value = std::stod(match[3])};
    std::string rest = match[2];
    while (!rest.empty()) {
      std::smatch label;
      require(std::regex_search(rest, label, kLabel, std::regex_constants::match_continuous),
              "a label is wrong");
      require(sample.labels.emplace(label[1], label[2]).second, "a label is there twice");
      rest = label.suffix();
    }
    require(seen_.emplace(sample.name, sample.labels).second, "a sample is there twice");
    return sample;
  }

  void add(ExposedSample sample) {
    ExposedFamily& family = families_[current_];
    require(!family.type.empty(), "a sample comes before its type");
    const bool is_histogram = family.type == "histogram";
    const std::string suffix =
        sample.name.starts_with(current_) ? sample.name.substr(current_.size()) : "?";
    require(is_histogram ? suffix == "_bucket" || suffix == "_sum" || suffix == "_count"
                         : suffix.empty(),
            "a sample is not of its family");
    require(sample.labels.contains("le") == (suffix == "_bucket"), "only buckets have bounds");
    family.samples.push_back(std::move(sample));
  }

  std::map<std::string, ExposedFamily> families_;
  std::string current_;
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen_;
};

}  // namespace gauntlet::server::inline metrics
