#include "study/results/compare.h"

#include <fmt/format.h>

namespace gauntlet::study::inline results {
namespace {

void add(std::string figure, std::string unit, const stats::Interval& a, const stats::Interval& b,
         std::vector<StudyDifference>& out) {
  const stats::Interval ratio = stats::ratio(a, b);
  out.push_back({.figure = std::move(figure),
                 .unit = std::move(unit),
                 .a = a,
                 .b = b,
                 .ratio = ratio,
                 .change = stats::change(ratio)});
}

void compare_layers(const LayerResult& a, const LayerResult& b, std::vector<StudyDifference>& out) {
  if (a.engine && b.engine) {
    for (const Figure& figure : a.engine->figures) {
      const Figure* other = b.engine->find(figure.name);
      if (other == nullptr) continue;
      add(fmt::format("layer {} {}, {}", a.index, a.name, figure.name), "tok/s", figure.tok_s,
          other->tok_s, out);
    }
  }
  if (a.gain && b.gain) {
    add(fmt::format("layer {} {}, gain", a.index, a.name), "×", a.gain->all.ratio,
        b.gain->all.ratio, out);
  }
}

/// "NVIDIA H200 (GPU-1)": which ones, not only of which make.
std::string gpus_of(const StudyResults& results) {
  std::string gpus;
  for (const GpuInfo& gpu : results.run.machine.gpus) {
    gpus += fmt::format("{}{} ({})", gpus.empty() ? "" : ", ", gpu.name, gpu.uuid);
  }
  return gpus.empty() ? "none" : gpus;
}

}  // namespace

std::vector<StudyDifference> compare_studies(const StudyResults& a, const StudyResults& b) {
  std::vector<StudyDifference> differences;
  for (const LayerResult& layer : a.layers) {
    for (const LayerResult& other : b.layers) {
      if (layer.name == other.name) compare_layers(layer, other, differences);
    }
  }
  for (const BatchPoint& point : a.sweeps.batch) {
    for (const BatchPoint& other : b.sweeps.batch) {
      if (point.batch != other.batch || !point.speed || !other.speed) continue;
      add(fmt::format("batch {}", point.batch), "tok/s", point.speed->tok_s, other.speed->tok_s,
          differences);
    }
  }
  return differences;
}

std::vector<std::string> different_subjects(const StudyResults& a, const StudyResults& b) {
  std::vector<std::string> lines;
  const auto note = [&](const char* what, const std::string& left, const std::string& right) {
    if (left != right) lines.push_back(fmt::format("{}: \"{}\" and \"{}\"", what, left, right));
  };
  const MachineInfo &of_a = a.run.machine, &of_b = b.run.machine;
  note("model", a.model.name, b.model.name);
  note("backend", backend_name(a.backend), backend_name(b.backend));
  note("CPU", of_a.cpu.model, of_b.cpu.model);
  if (of_a.cpu.cores != of_b.cpu.cores) {
    lines.push_back(fmt::format("cores: {} and {}", of_a.cpu.cores, of_b.cpu.cores));
  }
  note("GPUs", gpus_of(a), gpus_of(b));
  note("commit", a.run.build.commit, b.run.build.commit);
  note("depth", name_of(a.depth), name_of(b.depth));
  return lines;
}

}  // namespace gauntlet::study::inline results
