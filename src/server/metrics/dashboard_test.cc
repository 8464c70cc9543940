// Do the dashboard in deploy/ and docs/serving.md name what a server exposes, and all of it?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "core/os/files.h"
#include "server/metrics/metrics.h"
#include "server/metrics/prometheus_parser.h"

namespace gauntlet::server::inline metrics {
namespace {

using json = nlohmann::json;

/// A server that has everything: a GPU, a routed token, one who sent a key, several ranks.
Exposition exposed() {
  ServerMetrics server;
  server.accounts.add("alice", {.requests = 1});
  GpuSample gpu{.power_limit_w = 700.0};
  gpu.state = {.sm_clock_mhz = 1, .memory_clock_mhz = 1, .power_w = 1, .temperature_c = 1};
  gpu.usage = {
      .busy = 0.5, .memory_busy = 0.5, .memory_used_bytes = 1.0, .memory_total_bytes = 1.0};
  return Exposition(render_metrics({.server = server,
                                    .model = "tiny",
                                    .stats = {.speculation = {.by_position = {1}}},
                                    .num_experts = 2,
                                    .expert_tokens = {1, 0},
                                    .gpus = {gpu},
                                    .ranks = {{.steps = 1}}}));
}

std::set<std::string> exposed_names() { return exposed().sample_names(); }

/// Names of metrics in the queries of panels and variables.
std::set<std::string> asked_names(const json& value) {
  static const std::regex kName("(?:gauntlet:|process_)[a-z0-9_]+");
  std::set<std::string> names;
  for (const auto& [key, inner] : value.items()) {
    if ((key == "expr" || key == "query") && inner.is_string()) {
      const auto text = inner.get<std::string>();
      for (auto at = std::sregex_iterator(text.begin(), text.end(), kName);
           at != std::sregex_iterator(); ++at) {
        names.insert(at->str());
      }
    } else if (inner.is_structured()) {
      names.merge(asked_names(inner));
    }
  }
  return names;
}

json dashboard() {
  const auto text = read_file(std::string(GAUNTLET_SOURCE_DIR) + "/deploy/grafana-dashboard.json");
  return json::parse(text.value());
}

TEST(Dashboard, asks_only_for_what_a_server_exposes) {
  const std::set<std::string> exposed = exposed_names();
  const std::set<std::string> asked = asked_names(dashboard());
  EXPECT_GT(asked.size(), 30u);
  for (const std::string& name : asked) EXPECT_TRUE(exposed.contains(name)) << name;
}

TEST(Dashboard, shows_every_metric_of_the_engine_and_the_gpu) {
  const std::set<std::string> asked = asked_names(dashboard());
  for (std::string name : exposed_names()) {
    if (!name.starts_with("gauntlet:") || name == "gauntlet:build_info") continue;
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      if (name.ends_with(suffix)) name.resize(name.size() - std::string(suffix).size());
    }
    const bool shown =
        std::ranges::any_of(asked, [&](const std::string& one) { return one.starts_with(name); });
    EXPECT_TRUE(shown) << name;
  }
}

TEST(Dashboard, has_panels_that_neither_overlap_nor_share_an_id) {
  std::set<int> ids;
  std::set<std::pair<int, int>> taken;
  const json all = dashboard();
  for (const json& panel : all.at("panels")) {
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second);
    EXPECT_FALSE(panel.at("title").get<std::string>().empty());
    const json& place = panel.at("gridPos");
    for (int x = place.at("x"); x < place.at("x").get<int>() + place.at("w").get<int>(); ++x) {
      EXPECT_LT(x, 24);
      for (int y = place.at("y"); y < place.at("y").get<int>() + place.at("h").get<int>(); ++y) {
        EXPECT_TRUE(taken.insert({x, y}).second) << panel.at("title");
      }
    }
    EXPECT_EQ(panel.contains("targets"), panel.at("type") != "row");
  }
}

TEST(ServingPage, lists_every_metric_with_its_type_and_no_other) {
  const std::string page = read_file(std::string(GAUNTLET_SOURCE_DIR) + "/docs/serving.md").value();
  const std::regex row("\n\\| ((?:`[a-z0-9_]+`(?:, )?)+) \\| (gauge|counter|histogram) \\|");
  const std::regex name("[a-z0-9_]+");
  std::map<std::string, std::string> listed;
  for (auto at = std::sregex_iterator(page.begin(), page.end(), row); at != std::sregex_iterator();
       ++at) {
    const std::string names = (*at)[1];
    for (auto one = std::sregex_iterator(names.begin(), names.end(), name);
         one != std::sregex_iterator(); ++one) {
      listed["gauntlet:" + one->str()] = (*at)[2];
    }
  }
  std::map<std::string, std::string> there;
  const Exposition all = exposed();
  for (const auto& [family, of] : all.families()) {
    if (family.starts_with("gauntlet:")) there[family] = of.type;
  }
  EXPECT_EQ(listed, there);
}

}  // namespace
}  // namespace gauntlet::server::inline metrics
