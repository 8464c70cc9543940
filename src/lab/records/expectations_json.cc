#include "lab/records/expectations_json.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/text/json_fields.h"

namespace gauntlet::lab::inline records {
namespace {

using nlohmann::json;

json figure_to_json(const BoardFigure& figure) {
  return {{"value", figure.value}, {"tolerance", figure.tolerance}};
}
BoardFigure figure_from_json(const json& from, const char* value = "value") {
  return {.value = from.at(value).get<double>(), .tolerance = from.at("tolerance").get<double>()};
}

json board_to_json(const BoardExpectation& board) {
  json ratios = json::array(), times = json::object();
  for (const BoardRatio& ratio : board.ratios) {
    json entry = figure_to_json(ratio.speedup);
    entry["from"] = ratio.from;
    entry["to"] = ratio.to;
    if (ratio.gain) entry["gain"] = figure_to_json(*ratio.gain);
    ratios.push_back(std::move(entry));
  }
  for (const auto& [side, figure] : board.times_ns) times[side] = figure_to_json(figure);
  return {{"board", board.provenance.board},
          {"run_id", board.provenance.run_id},
          {"commit", board.provenance.commit},
          {"recorded_at", board.provenance.recorded_at},
          {"status", board.status},
          {"ratios", std::move(ratios)},
          {"times_ns", std::move(times)}};
}

/// What both versions say in the same words.
BoardExpectation board_at(const json& from) {
  return {.provenance = {.run_id = from.at("run_id").get<std::string>(),
                         .commit = from.at("commit").get<std::string>(),
                         .recorded_at = from.at("recorded_at").get<std::int64_t>(),
                         .board = string_at(from, "board")},
          .status = from.at("status").get<std::string>()};
}

BoardExpectation board_from_json(const json& from) {
  BoardExpectation board = board_at(from);
  for (const json& ratio : from.at("ratios")) {
    board.ratios.push_back({.from = ratio.at("from").get<std::string>(),
                            .to = ratio.at("to").get<std::string>(),
                            .speedup = figure_from_json(ratio)});
    if (const auto gain = ratio.find("gain"); gain != ratio.end()) {
      board.ratios.back().gain = figure_from_json(*gain);
    }
  }
  for (const auto& [side, figure] : from.at("times_ns").items()) {
    board.times_ns[side] = figure_from_json(figure);
  }
  return board;
}

BoardExpectation board_from_json_v1(const json& from) {
  BoardExpectation board = board_at(from);
  board.ratios = {{.from = "baseline",
                   .to = "optimized",
                   .speedup = figure_from_json(from.at("ratio"), "median")}};
  for (const char* side : {"baseline", "optimized"}) {
    const auto time = from.find(std::string(side) + "_ns");
    if (time != from.end()) board.times_ns[side] = figure_from_json(*time, "median");
  }
  return board;
}

}  // namespace

json to_json(const Expectation& expectation) {
  json boards = json::array();
  for (const BoardExpectation& board : expectation.boards) boards.push_back(board_to_json(board));
  return {{"knobs", expectation.knobs}, {"boards", std::move(boards)}};
}

Expectation expectation_from_json(const json& from, int version) {
  Expectation expectation{.knobs = from.at("knobs").get<std::map<std::string, std::int64_t>>(),
                          .boards = {}};
  if (version == 1) {
    expectation.boards.push_back(board_from_json_v1(from));
    return expectation;
  }
  for (const json& board : from.at("boards")) {
    expectation.boards.push_back(board_from_json(board));
  }
  check(!expectation.boards.empty(), "an expectation of no board");
  return expectation;
}

}  // namespace gauntlet::lab::inline records
