#include "study/compare.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "stats/interval_json.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

void add(std::string figure, std::string unit, const json& a, const json& b,
         std::vector<StudyDifference>& out) {
  StudyDifference one{.figure = std::move(figure),
                      .unit = std::move(unit),
                      .a = stats::interval_from_json(a),
                      .b = stats::interval_from_json(b)};
  one.ratio = stats::ratio(one.a, one.b);
  one.change = stats::change(one.ratio);
  out.push_back(std::move(one));
}

const json* figure_named(const json& layer, const json& name) {
  for (const json& figure : layer.at("figures")) {
    if (figure.at("name") == name) return &figure;
  }
  return nullptr;
}

void compare_layers(const json& a, const json& b, std::vector<StudyDifference>& out) {
  if (a.contains("figures") && b.contains("figures")) {
    for (const json& figure : a.at("figures")) {
      const json* other = figure_named(b, figure.at("name"));
      if (other == nullptr) continue;
      add(fmt::format("layer {} {}, {}", a.at("index").get<int>(), a.at("name").get<std::string>(),
                      figure.at("name").get<std::string>()),
          "tok/s", figure.at("tok_s"), other->at("tok_s"), out);
    }
  }
  if (a.contains("gain") && b.contains("gain")) {
    add(fmt::format("layer {} {}, gain", a.at("index").get<int>(), a.at("name").get<std::string>()),
        "×", a.at("gain").at("ratio"), b.at("gain").at("ratio"), out);
  }
}

}  // namespace

std::vector<StudyDifference> compare_studies(const json& a, const json& b) {
  std::vector<StudyDifference> differences;
  for (const json& layer : a.at("layers")) {
    for (const json& other : b.at("layers")) {
      if (layer.at("name") == other.at("name")) compare_layers(layer, other, differences);
    }
  }
  for (const json& point : a.at("sweeps").at("batch")) {
    for (const json& other : b.at("sweeps").at("batch")) {
      if (point.at("batch") != other.at("batch")) continue;
      if (!point.contains("tok_s") || !other.contains("tok_s")) continue;
      add(fmt::format("batch {}", point.at("batch").get<std::int64_t>()), "tok/s",
          point.at("tok_s"), other.at("tok_s"), differences);
    }
  }
  return differences;
}

std::vector<std::string> different_subjects(const json& a, const json& b) {
  std::vector<std::string> lines;
  const auto note = [&](const char* what, const json::json_pointer& at) {
    const json left = a.value(at, json()), right = b.value(at, json());
    if (left != right)
      lines.push_back(fmt::format("{}: {} and {}", what, left.dump(), right.dump()));
  };
  note("model", "/model/name"_json_pointer);
  note("backend", "/backend"_json_pointer);
  note("CPU", "/machine/cpu/model"_json_pointer);
  note("cores", "/machine/cpu/cores"_json_pointer);
  note("GPUs", "/machine/gpus"_json_pointer);
  note("commit", "/build/commit"_json_pointer);
  note("depth", "/depth"_json_pointer);
  return lines;
}

}  // namespace gauntlet::study
