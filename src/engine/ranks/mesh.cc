#include "engine/ranks/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "core/check.h"

namespace gauntlet::engine::inline on_ranks {
namespace {

using model::Cut;
using model::ModelConfig;
using model::Range;
using model::Slice;

constexpr int kMostRanks = 4096;
/// What kernels take of the intermediate width at once, and what MXFP4 cannot cut.
constexpr std::int64_t kUnit = 64;
constexpr std::int64_t kLeastUnit = 32;

/// Part `index` of `parts`, in whole units; the last may be a broken one.
Range part_of(std::int64_t count, std::int64_t unit, std::int64_t index, std::int64_t parts) {
  const std::int64_t units = (count + unit - 1) / unit;
  return {std::min(count, units * index / parts * unit),
          std::min(count, units * (index + 1) / parts * unit)};
}

/// Units of 64 where each part gets one, otherwise of 32.
std::int64_t unit_of(const ModelConfig& config, std::int64_t parts) {
  return config.intermediate % kUnit == 0 && config.intermediate / kUnit >= parts ? kUnit
                                                                                  : kLeastUnit;
}

/// " and tp2, tp4 do": of those that fit, the nearest on both sides.
std::string nearest(const char* axis, int wrong, const std::function<bool(int)>& fits) {
  int below = wrong - 1, above = wrong + 1;
  while (below >= 1 && !fits(below)) --below;
  while (above <= kMostRanks && !fits(above)) ++above;
  if (below < 1) return fmt::format("the nearest that does is {}{}", axis, above);
  if (above > kMostRanks) return fmt::format("the nearest that does is {}{}", axis, below);
  return fmt::format("the nearest that do are {0}{1} and {0}{2}", axis, below, above);
}

bool divides_heads(const ModelConfig& config, int tp) {
  const bool kv = config.num_kv_heads % tp == 0 || tp % config.num_kv_heads == 0;
  return config.num_heads % tp == 0 && kv;
}

Error wrong(std::string sentence) { return {std::move(sentence), ErrorKind::wrong_use}; }

}  // namespace

Expected<Mesh> Mesh::parse(std::string_view text) {
  Mesh mesh;
  bool seen[3] = {};
  int* const values[] = {&mesh.tp, &mesh.ep, &mesh.pp};
  constexpr std::string_view kAxes[] = {"tp", "ep", "pp"};
  const auto refuse = [&](std::string_view part) {
    return wrong(
        fmt::format("a mesh is written as in tp2,ep4,pp2; '{}' in '{}' is not", part, text));
  };
  for (std::string_view rest = text;;) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const std::string_view axis = part.substr(0, 2);
    int count = 0;
    const char* end = part.data() + part.size();
    if (part.size() < 3) return refuse(part);
    const auto [next, failed] = std::from_chars(part.data() + 2, end, count);
    if (failed != std::errc() || next != end || count < 1 || count > kMostRanks) {
      return refuse(part);
    }
    if (axis == "cp" || axis == "dp") {
      return wrong(fmt::format("{} is not there yet: {}; a mesh has tp, ep and pp", part,
                               axis == "cp"
                                   ? "a context cannot be divided among ranks"
                                   : "tokens cannot stay on their rank while experts are shared"));
    }
    const auto* known = std::ranges::find(kAxes, axis);
    if (known == std::end(kAxes)) return refuse(part);
    const auto index = known - std::begin(kAxes);
    if (seen[index]) return wrong(fmt::format("the mesh '{}' says {} twice", text, axis));
    seen[index] = true;
    *values[index] = count;
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  const int most = std::max(mesh.tp, mesh.ep), least = std::min(mesh.tp, mesh.ep);
  if (most % least != 0) {
    const bool tp_is_wrong = mesh.tp < mesh.ep;
    return wrong(fmt::format(
        "tp{} and ep{} share ranks, so that one has to divide the other; {}", mesh.tp, mesh.ep,
        tp_is_wrong ? nearest("tp", least, [&](int n) { return most % n == 0 || n % most == 0; })
                    : nearest("ep", least, [&](int n) { return most % n == 0 || n % most == 0; })));
  }
  if (std::int64_t{most} * mesh.pp > kMostRanks) {
    return wrong(fmt::format("the mesh '{}' has {} ranks; at most {} are taken", text,
                             std::int64_t{most} * mesh.pp, kMostRanks));
  }
  return mesh;
}

std::string Mesh::text() const {
  std::string text;
  const auto add = [&](const char* axis, int count) {
    if (count > 1) text += fmt::format("{}{}{}", text.empty() ? "" : ",", axis, count);
  };
  add("tp", tp);
  add("ep", ep);
  add("pp", pp);
  return text.empty() ? "tp1" : text;
}

MeshPlace place_of(const Mesh& mesh, int rank) {
  check(rank >= 0 && rank < mesh.ranks(), "a rank of the mesh");
  const int in_stage = rank % mesh.stage_ranks();
  return {.stage = rank / mesh.stage_ranks(),
          .in_stage = in_stage,
          .tp = in_stage % mesh.tp,
          .replica = in_stage / mesh.tp,
          .ep = in_stage / mesh.expert_cut(),
          .expert_part = in_stage % mesh.expert_cut()};
}

Expected<void> check_mesh(const ModelConfig& config, const Mesh& mesh) {
  if (!divides_heads(config, mesh.tp)) {
    return wrong(
        fmt::format("{}: tp{} does not divide {} query heads and {} KV heads; {}", config.name,
                    mesh.tp, config.num_heads, config.num_kv_heads,
                    nearest("tp", mesh.tp, [&](int tp) { return divides_heads(config, tp); })));
  }
  const auto divides_experts = [&](int ep) { return config.num_experts % ep == 0; };
  if (!divides_experts(mesh.ep)) {
    return wrong(fmt::format("{}: ep{} does not divide {} experts, which stay whole; {}",
                             config.name, mesh.ep, config.num_experts,
                             nearest("ep", mesh.ep, divides_experts)));
  }
  const std::int64_t blocks = config.intermediate / kLeastUnit;
  if (mesh.expert_cut() > blocks) {
    return wrong(fmt::format(
        "{}: an intermediate width of {} has {} blocks of {}, which cannot be cut {} ways; ep{} "
        "leaves experts whole",
        config.name, config.intermediate, blocks, kLeastUnit, mesh.expert_cut(), mesh.tp));
  }
  if (mesh.pp > config.num_layers) {
    return wrong(fmt::format("{}: pp{} has more stages than the model has layers; at most pp{}",
                             config.name, mesh.pp, config.num_layers));
  }
  return {};
}

Slice shard_of(const ModelConfig& config, const Mesh& mesh, int rank, Cut cut) {
  check(static_cast<bool>(check_mesh(config, mesh)), "the mesh fits the model");
  const MeshPlace place = place_of(mesh, rank);
  const int width = mesh.stage_ranks();
  const std::int64_t heads = config.num_heads / mesh.tp;
  const std::int64_t per_kv = config.num_heads / config.num_kv_heads;
  Slice slice = model::whole_slice(config);
  slice.layers = part_of(config.num_layers, 1, place.stage, mesh.pp);
  slice.heads = {place.tp * heads, (place.tp + 1) * heads};
  // More ranks than KV heads: each is held by several, which have some of its queries each.
  slice.kv_heads = {slice.heads.begin / per_kv, (slice.heads.end - 1) / per_kv + 1};
  slice.experts = part_of(config.num_experts, 1, place.ep, mesh.ep);
  slice.intermediate = part_of(config.intermediate, unit_of(config, mesh.expert_cut()),
                               place.expert_part, mesh.expert_cut());
  slice.vocab = part_of(config.vocab, kUnit, place.in_stage, width);
  slice.cut = cut;
  if (cut == Cut::outputs) {
    slice.o_outputs = part_of(config.hidden, kLeastUnit, place.tp, mesh.tp);
    slice.down_outputs = part_of(config.hidden, kLeastUnit, place.expert_part, mesh.expert_cut());
  }
  slice.adds_o_bias = place.tp == 0;
  slice.adds_down_bias = place.expert_part == 0;
  return slice;
}

Expected<Mesh> mesh_for(const ModelConfig& config, int ranks) {
  if (ranks < 1 || ranks > kMostRanks) {
    return wrong(fmt::format("a mesh has 1 to {} ranks, not {}", kMostRanks, ranks));
  }
  const auto fits = [&](int count) {
    return divides_heads(config, count) && config.num_experts % count == 0;
  };
  // The widest stages come first: pp does not make a token faster.
  for (int width = ranks; width >= 1; --width) {
    const Mesh mesh{.tp = width, .ep = width, .pp = ranks / width};
    if (ranks % width == 0 && fits(width) && mesh.pp <= config.num_layers) return mesh;
  }
  return wrong(fmt::format(
      "{}: {} ranks divide neither heads nor layers; {}", config.name, ranks,
      nearest("", ranks, [&](int count) { return count <= config.num_layers || fits(count); })));
}

RankCosts costs_of(const ModelConfig& config, const Mesh& mesh, int rank) {
  const MeshPlace place = place_of(mesh, rank);
  const Slice slice = shard_of(config, mesh, rank);
  const std::int64_t hidden = config.hidden, dim = config.head_dim;
  constexpr std::int64_t kDense = 2, kFloat = 4;
  const auto mxfp4 = [](std::int64_t weights) { return weights / 32 * 17; };
  const std::int64_t qkv_rows = (slice.heads.size() + 2 * slice.kv_heads.size()) * dim;
  const std::int64_t attention = kDense * hidden * (qkv_rows + slice.heads.size() * dim) +
                                 kFloat * (qkv_rows + hidden + slice.heads.size());
  const std::int64_t router = config.num_experts * (kDense * hidden + kFloat);
  const std::int64_t expert = mxfp4(3 * hidden * slice.intermediate.size()) +
                              kFloat * (2 * slice.intermediate.size() + hidden);
  RankCosts costs;
  costs.expert_bytes = slice.layers.size() * slice.experts.size() * expert;
  costs.weight_bytes = costs.expert_bytes +
                       slice.layers.size() * (attention + router + 2 * kFloat * hidden) +
                       kDense * config.vocab * hidden + kFloat * hidden;
  if (!config.tied_embeddings) costs.weight_bytes += kDense * slice.vocab.size() * hidden;
  costs.kv_position_bytes = slice.layers.size() * 2 * kDense * slice.kv_heads.size() * dim;

  // A sum of one token's row goes to every rank that shares it, at once.
  const std::int64_t row = kFloat * hidden;
  const std::int64_t layers = slice.layers.size();
  if (mesh.tp > 1) {
    costs.sent_bytes += layers * (mesh.tp - 1) * row;
    costs.meetings += layers;
  }
  const int width = mesh.stage_ranks();
  if (width > 1) {
    costs.sent_bytes += layers * (width - 1) * row;
    costs.meetings += layers;
  }
  const bool is_last = place.stage + 1 == mesh.pp;
  if (!is_last) costs.sent_bytes += row;  // to its counterpart of the next stage
  if (place.stage > 0) ++costs.meetings;
  // Logits are gathered by the last stage's ranks.
  if (is_last && width > 1) {
    costs.sent_bytes += (width - 1) * kFloat * slice.vocab.size();
    ++costs.meetings;
  }
  return costs;
}

}  // namespace gauntlet::engine::inline on_ranks
