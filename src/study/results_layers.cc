// The ladder's part of results.json: what each layer is, whether it is true, what it gained.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "stats/interval_json.h"
#include "study/cells.h"
#include "study/estimates.h"
#include "study/layer_check.h"
#include "study/results_parts.h"
#include "study/rules.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

json verify_by_perplexity(const json& before, const json& own, double allowed) {
  const double was = before.at("perplexity"), is = own.at("perplexity");
  const double change = 100 * (is / was - 1);
  const bool fine = std::abs(change) <= allowed;
  return {{"by", "perplexity"},
          {"verified", fine},
          {"perplexity", is},
          {"change_percent", change},
          {"allowed_percent", allowed},
          {"scored_tokens", own.at("scored_tokens")},
          {"sentence", fmt::format("perplexity {:.4f}, {:+.2f}% from {:.4f}; {:.1f}% is allowed",
                                   is, change, was, allowed)}};
}

/// The second look at a layer whose tokens differ.
json verify_by_choices(const StudyFacts& facts, const json& own, const Agreement& agreement) {
  const json& replayed = own.at("replayed");
  const auto wrong = replayed.at("wrong").get<std::string>();
  json entry = {{"by", "choices"},
                {"verified", wrong.empty()},
                {"compared", replayed.at("compared")},
                {"of", replayed.at("of")},
                {"replaced", replayed.at("replaced")},
                {"experts", replayed.at("experts")},
                {"perplexity", own.value("perplexity", json())}};
  if (!wrong.empty()) {
    entry["sentence"] = fmt::format("wrong: {}; with the experts of the layer before replayed, {}",
                                    agreement.difference, wrong);
    return entry;
  }
  entry["sentence"] = fmt::format(
      "the same {} choices with the experts of the layer before replayed: undecided router at {} "
      "({} of {} choices of experts replaced)",
      replayed.at("compared").get<std::int64_t>(), replayed.at("where").get<std::string>(),
      replayed.at("replaced").get<std::int64_t>(), replayed.at("experts").get<std::int64_t>());
  entry["not_covered"] =
      fmt::format("a watched step runs without {}: those are covered up to where the tokens differ",
                  unwatched_parts(facts.ladder.backend));
  return entry;
}

/// Of a layer with the same tokens, too few to say much.
void add_choices(const json& replayed, json& entry) {
  const auto wrong = replayed.at("wrong").get<std::string>();
  entry["verified"] = wrong.empty();
  for (const char* figure : {"replaced", "experts"}) entry[figure] = replayed.at(figure);
  entry["choices"] = replayed.at("compared");
  entry["sentence"] =
      wrong.empty()
          ? fmt::format(
                "{}; as these are few, with the experts of the layer before replayed, too: "
                "the same {} of {} choices, the others being within a near tie",
                entry.at("sentence").get<std::string>(),
                replayed.at("compared").get<std::int64_t>(), replayed.at("of").get<std::int64_t>())
          : "wrong: with the experts of the layer before replayed, " + wrong;
}

json verify_by_tokens(const StudyFacts& facts, const json& before, const json& own) {
  const double least_margin = facts.ladder.least_margin;
  const Agreement agreement =
      compare(run_from_json(before), run_from_json(own).tokens, least_margin);
  if (!agreement.agrees && own.contains("replayed")) {
    return verify_by_choices(facts, own, agreement);
  }
  json entry = {
      {"by", "tokens"},
      {"verified", agreement.agrees},
      {"compared", agreement.compared},
      {"of", agreement.of},
      {"perplexity", own.value("perplexity", json())},
      {"sentence",
       agreement.agrees
           ? fmt::format("the same {} tokens as the layer before ({} of {} come after a choice "
                         "within {} of a tie and are not judged)",
                         agreement.compared, agreement.of - agreement.compared, agreement.of,
                         least_margin)
           : "wrong: " + agreement.difference}};
  if (own.contains("replayed")) add_choices(own.at("replayed"), entry);
  return entry;
}

json verification(const StudyFacts& facts, const Journal& journal, int layer) {
  const json own = journal.at(keys::verify(layer));
  if (!is_measured(own)) return own;
  if (layer == 0) {
    return {
        {"by", "reference"},
        {"verified", true},
        {"perplexity", own.at("perplexity")},
        {"scored_tokens", own.at("scored_tokens")},
        {"sentence", fmt::format("the reference of all others: perplexity {:.4f} over {} tokens",
                                 own.at("perplexity").get<double>(),
                                 own.at("scored_tokens").get<std::int64_t>())}};
  }
  const json before = journal.at(keys::verify(layer - 1));
  if (!is_measured(before)) return nullptr;
  const double allowed = facts.ladder.allowed_percent(layer);
  return allowed > 0 ? verify_by_perplexity(before, own, allowed)
                     : verify_by_tokens(facts, before, own);
}

void add_engine_figures(const json& duel, SideOf side, json& entry) {
  const json& own = duel.at(side == SideOf::a ? "a" : "b");
  entry["plan"] = own.at("plan");
  entry["weight_bytes"] = own.at("weight_bytes");
  entry["read_from"] = own.at("read_from");
  json figures = json::array();
  for (const json& bout : duel.at("bouts")) {
    figures.push_back(figures_of(bout, side));
    if (bout.at("name") == "prompt") entry["ttft_ms"] = figures.back().at("ms");
    if (bout.at("name") == "decode_1") entry["tpot_ms"] = figures.back().at("ms");
  }
  entry["figures"] = std::move(figures);
}

/// Bytes of keys and values of one position, in all layers that keep it.
std::int64_t kv_bytes(const model::ModelConfig& model, const Stack& stack) {
  const engine::KvType type = stack.engine.kv.value_or(engine::KvType::bf16);
  const std::int64_t element = type == engine::KvType::f32    ? 4
                               : type == engine::KvType::bf16 ? 2
                                                              : 1;
  return std::ranges::count(model.attention, model::AttentionSpan::full) * 2 * model.kv_width() *
         element;
}

json layer_to_json(const StudyFacts& facts, const Journal& journal, int layer) {
  const Ladder& ladder = facts.ladder;
  json entry = {{"index", layer},
                {"name", ladder.layers[layer].name},
                {"title", ladder.layers[layer].title},
                {"options", json::array()},
                {"targets", json::array()}};
  for (const Option* option : ladder.options_of(layer)) {
    entry["options"].push_back(option->id);
    for (const std::string& target : option->targets) entry["targets"].push_back(target);
  }
  entry["stage"] = ladder.stage_of(layer) == Stage::engine ? "engine" : "serving";
  entry["verification"] = verification(facts, journal, layer);
  entry["energy"] = journal.at(keys::energy(layer));
  entry["kv_bytes_per_position"] = kv_bytes(facts.model, ladder.stack(ladder.up_to(layer)));
  // The baseline's figures are those of the side that the first layer improves on.
  const json duel = journal.at(keys::layer(std::max(layer, 1)));
  if (duel.is_object() && duel.contains("gap")) entry["gap"] = duel.at("gap");
  if (!is_measured(duel)) return entry;
  if (layer > 0) entry["gain"] = gains_of(duel);
  if (ladder.stage_of(layer) == Stage::serving) {
    entry["serving"] = {{"before", duel.at("a")}, {"after", duel.at("b")}};
  } else {
    add_engine_figures(duel, layer == 0 ? SideOf::a : SideOf::b, entry);
  }
  return entry;
}

/// Lines of the plan without an option that differ from the whole stack's.
std::vector<std::string> changed_lines(const json& duel) {
  std::vector<std::string> lines;
  if (!duel.contains("a") || !duel.at("a").contains("plan")) return lines;
  const json& with = duel.at("b").at("plan");
  const json& without = duel.at("a").at("plan");
  for (std::size_t i = 0; i < std::min(with.size(), without.size()); ++i) {
    if (with[i] != without[i]) lines.push_back(without[i].get<std::string>());
  }
  return lines;
}

}  // namespace

json layers_to_json(const StudyFacts& facts, const Journal& journal) {
  json list = json::array();
  for (int layer = 0; layer < std::ssize(facts.ladder.layers); ++layer) {
    list.push_back(layer_to_json(facts, journal, layer));
  }
  return list;
}

json total_to_json(const Journal& journal) {
  const json duel = journal.at(keys::kTotal);
  if (!is_measured(duel)) return duel;
  json entry = {{"gain", gains_of(duel)}};
  add_engine_figures(duel, SideOf::b, entry);
  return entry;
}

json leave_one_out_to_json(const StudyFacts& facts, const Journal& journal, const json& layers) {
  json list = json::array();
  for (const Option& option : facts.ladder.options) {
    const json duel = journal.at(keys::without(option.id));
    json entry = {{"option", option.id}, {"title", option.title}, {"layer", option.layer}};
    if (!is_measured(duel)) {
      entry["gap"] = duel.is_object() ? duel.at("gap") : json("not measured yet");
      list.push_back(std::move(entry));
      continue;
    }
    entry["gain"] = gains_of(duel);
    const auto plan = changed_lines(duel);
    entry["plan_without"] = plan;
    const json& layer = layers.at(option.layer);
    if (layer.contains("gain")) {
      Company company{.option = option.id,
                      .worth = stats::interval_from_json(entry["gain"]["ratio"]),
                      .layer = option.layer,
                      .layer_gain = stats::interval_from_json(layer.at("gain").at("ratio")),
                      .others = {},
                      .plan_without = plan};
      for (const Option* other : facts.ladder.options_of(option.layer)) {
        if (other->id != option.id) company.others.push_back(other->id);
      }
      const SignCheck sign = check_sign(company);
      entry["sign"] = name_of(sign.sign);
      entry["sentence"] = sign.sentence;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace gauntlet::study
