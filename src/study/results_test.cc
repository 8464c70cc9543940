// Do results and reports say the same, and do both say what the cells hold?
#include "study/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "core/fake_tree.h"
#include "core/files.h"
#include "lab/report/format.h"
#include "study/compare.h"
#include "study/estimates.h"
#include "study/html.h"
#include "study/markdown.h"
#include "study/sample_study.h"
#include "study/study.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct Results : testing::Test {
  FakeTree tree;
  SampleStudy sample;
  Journal journal =
      Journal::begin(tree.root() / "journal.jsonl", {{"sample", true}}, 1794709000).value();

  json assembled() {
    sample.fill(journal);
    return assemble(sample.facts, journal);
  }
};

/// The cells of the Markdown table rows below a heading.
std::vector<std::vector<std::string>> table_below(const std::string& text,
                                                  const std::string& heading) {
  std::stringstream lines(text.substr(text.find(heading)));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("|")) {
      if (!rows.empty()) break;
      continue;
    }
    std::vector<std::string> cells;
    std::stringstream parts(line.substr(1));
    for (std::string part; std::getline(parts, part, '|');) {
      const auto from = part.find_first_not_of(' ');
      cells.push_back(from == std::string::npos
                          ? ""
                          : part.substr(from, part.find_last_not_of(' ') - from + 1));
    }
    rows.push_back(cells);
  }
  if (rows.size() > 2) rows.erase(rows.begin() + 1);  // the dashes
  return rows;
}

TEST_F(Results, hold_gains_with_labels_for_every_layer) {
  const json results = assembled();
  for (const json& layer : results.at("layers")) {
    EXPECT_EQ(layer.contains("gain"), layer.at("index") > 0) << layer.at("name");
    EXPECT_TRUE(layer.at("verification").at("verified").get<bool>());
  }
  EXPECT_EQ(results.at("layers")[1].at("gain").at("label"), "gain");
  EXPECT_NEAR(results.at("layers")[1].at("gain").at("ratio").at("value").get<double>(), 1.8, 0.02);
  EXPECT_EQ(results.at("layers")[3].at("gain").at("label"), "no_gain");
  EXPECT_NEAR(results.at("layers")[0].at("ttft_ms").at("value").get<double>(), 20, 0.3);
  EXPECT_NEAR(results.at("layers")[1].at("ttft_ms").at("value").get<double>(), 20 / 1.8, 0.3);
}

TEST_F(Results, judge_lossy_layers_by_perplexity_and_others_by_tokens) {
  const json results = assembled();
  EXPECT_EQ(results.at("layers")[1].at("verification").at("by"), "tokens");
  EXPECT_EQ(results.at("layers")[1].at("verification").at("compared"), 4);
  const json& lossy = results.at("layers")[5].at("verification");
  EXPECT_EQ(lossy.at("by"), "perplexity");
  EXPECT_NEAR(lossy.at("change_percent").get<double>(), 100 * (20.45 / 20.4 - 1), 1e-9);
}

TEST_F(Results, say_why_an_option_is_worth_something_else_in_company) {
  const json results = assembled();
  for (const json& entry : results.at("leave_one_out")) {
    if (entry.at("option") == "bf16_kv") {
      EXPECT_EQ(entry.at("sign"), "opposite");
      EXPECT_THAT(entry.at("sentence").get<std::string>(), HasSubstr("layer 5 also brought"));
    }
    EXPECT_TRUE(entry.at("option") != "threads" || entry.at("sign") == "same");
  }
}

TEST_F(Results, say_by_which_check_a_layer_passed) {
  sample.fill(journal);
  json own = journal.at(keys::verify(2));
  own["tokens"][0][1] = 99;
  own["replayed"] = {{"compared", 5}, {"of", 6},     {"experts", 48},
                     {"replaced", 3}, {"wrong", ""}, {"where", "prompt 1, token 2"}};
  ASSERT_TRUE(journal.append(keys::verify(2), own));
  const json passed = assemble(sample.facts, journal);
  const json& verification = passed.at("layers")[2].at("verification");
  EXPECT_TRUE(verification.at("verified").get<bool>());
  EXPECT_EQ(verification.at("by"), "choices");
  EXPECT_THAT(verification.at("sentence").get<std::string>(),
              HasSubstr("undecided router at prompt 1, token 2 (3 of 48"));
  EXPECT_THAT(verification.at("not_covered").get<std::string>(),
              HasSubstr("a watched step runs without"));
  EXPECT_EQ(passed.at("layers")[1].at("verification").at("by"), "tokens");
  const std::string markdown = render_markdown(passed);
  EXPECT_THAT(markdown, HasSubstr("| same choices |"));
  EXPECT_THAT(markdown, HasSubstr("a watched step runs without"));

  own["replayed"]["wrong"] = "prompt 2, token 1: not the 4 of the layer before";
  ASSERT_TRUE(journal.append(keys::verify(2), own));
  const json failed = assemble(sample.facts, journal);
  EXPECT_FALSE(failed.at("layers")[2].at("verification").at("verified").get<bool>());
  EXPECT_THAT(failed.at("findings"),
              Contains(testing::ResultOf([](const json& f) { return f.get<std::string>(); },
                                         HasSubstr("Layer 2 (memory) is not verified, wrong:"))));
}

TEST_F(Results, judge_a_layer_of_few_tokens_by_its_choices_too) {
  sample.fill(journal);
  json own = journal.at(keys::verify(2));
  own["replayed"] = {{"compared", 5}, {"of", 6},     {"experts", 48},
                     {"replaced", 3}, {"wrong", ""}, {"where", ""}};
  ASSERT_TRUE(journal.append(keys::verify(2), own));
  const json passed = assemble(sample.facts, journal).at("layers")[2].at("verification");
  EXPECT_TRUE(passed.at("verified").get<bool>());
  EXPECT_EQ(passed.at("by"), "tokens");
  EXPECT_EQ(passed.at("choices"), 5);
  EXPECT_THAT(passed.at("sentence").get<std::string>(), HasSubstr("the same 5 of 6 choices"));

  own["replayed"]["wrong"] = "prompt 2, token 1: not the 4 of the layer before";
  ASSERT_TRUE(journal.append(keys::verify(2), own));
  const json failed = assemble(sample.facts, journal).at("layers")[2].at("verification");
  EXPECT_FALSE(failed.at("verified").get<bool>());
  EXPECT_THAT(failed.at("sentence").get<std::string>(), HasSubstr("wrong: with the experts"));
}

TEST_F(Results, name_the_machine_that_was_measured) {
  EXPECT_THAT(render_markdown(assembled()), HasSubstr("sample-model on Sample CPU"));
  SampleStudy on_gpu(engine::Backend::cuda);
  on_gpu.facts.machine.gpus = {{.name = "Sample GPU"}};
  Journal other = Journal::begin(tree.root() / "gpu.jsonl", {}, 0).value();
  on_gpu.fill(other);
  const json results = assemble(on_gpu.facts, other);
  EXPECT_THAT(render_markdown(results), HasSubstr("sample-model on Sample GPU"));
  EXPECT_THAT(different_subjects(results, results), testing::IsEmpty());
}

TEST_F(Results, give_joules_per_token_or_why_there_are_none) {
  const json told = assembled();
  EXPECT_THAT(render_markdown(told), HasSubstr("J per token: RAPL: package-0."));
  EXPECT_EQ(told.at("layers")[1].at("energy").at("points")[0].at("joules_per_token"), 0.04);
  ASSERT_TRUE(journal.append(keys::energy(0), {{"gap", "not told by this machine"}}));
  EXPECT_THAT(render_markdown(assemble(sample.facts, journal)),
              HasSubstr("J per token: not told by this machine."));
}

TEST_F(Results, count_what_was_left_out) {
  sample.fill(journal);
  ASSERT_TRUE(journal.append(keys::batch(64), {{"gap", kLeftOut}}));
  const json results = assemble(sample.facts, journal);
  EXPECT_EQ(results.at("cells").at("left_out"), 1);
  EXPECT_THAT(render_markdown(results), HasSubstr("gap: left out: the time of a quick study"));
  EXPECT_THAT(results.at("findings").back().get<std::string>(), HasSubstr("1 of "));
}

TEST_F(Results, keep_a_gap_as_a_gap) {
  const json results = assembled();
  for (const json& point : results.at("sweeps").at("context")) {
    EXPECT_EQ(point.contains("gap"), point.at("context") > 4096);
    EXPECT_EQ(point.contains("p50_ms"), point.at("context") <= 4096);
  }
}

TEST_F(Results, can_be_written_at_any_moment) {
  const auto cells =
      plan_cells(sample.facts.ladder, sample.facts.sizes, lab::ProfileLevel::minimal);
  Journal full = Journal::begin(tree.root() / "full", {}, 0).value();
  sample.fill(full);
  for (std::size_t i = 0; i < cells.size(); i += 4) {
    const json results = assemble(sample.facts, journal);
    EXPECT_FALSE(render_markdown(results).empty());
    EXPECT_EQ(results.at("cells").at("measured"), i);
    for (std::size_t j = i; j < std::min(i + 4, cells.size()); ++j) {
      ASSERT_TRUE(journal.append(cells[j].key, full.at(cells[j].key)));
    }
  }
}

TEST_F(Results, live_with_cells_that_are_all_gaps) {
  for (const Cell& cell :
       plan_cells(sample.facts.ladder, sample.facts.sizes, lab::ProfileLevel::minimal)) {
    ASSERT_TRUE(journal.append(cell.key, {{"gap", "no memory"}}));
  }
  EXPECT_THAT(render_markdown(assemble(sample.facts, journal)), HasSubstr("gap: no memory"));
}

TEST_F(Results, stand_in_the_markdown_with_the_same_numbers) {
  const json results = assembled();
  const std::string markdown = render_markdown(results);
  const auto rows = table_below(markdown, "## Layers");
  ASSERT_EQ(rows.size(), results.at("layers").size() + 1);
  const auto number = [](const json& value) {
    return lab::report::significant(value.get<double>());
  };
  for (std::size_t i = 0; i < results.at("layers").size(); ++i) {
    const json& layer = results.at("layers")[i];
    const auto& row = rows[i + 1];
    if (layer.contains("gain")) {
      const json& ratio = layer.at("gain").at("ratio");
      EXPECT_EQ(row[3], number(ratio.at("value")) + "×");
      EXPECT_EQ(row[4], number(ratio.at("lo")) + " to " + number(ratio.at("hi")));
    }
    if (!layer.contains("figures")) continue;
    EXPECT_EQ(row[6], number(layer.at("ttft_ms").at("value")));
    EXPECT_EQ(row[7], number(layer.at("tpot_ms").at("value")));
    for (std::size_t f = 1; f < layer.at("figures").size(); ++f) {
      EXPECT_EQ(row[7 + f], number(layer.at("figures")[f].at("tok_s").at("value")));
    }
  }
  const auto batches = table_below(markdown, "### Batch");
  ASSERT_EQ(batches.size(), results.at("sweeps").at("batch").size() + 1);
  for (std::size_t i = 1; i < batches.size(); ++i) {
    const json& point = results.at("sweeps").at("batch")[i - 1];
    EXPECT_EQ(batches[i][1], number(point.at("tok_s").at("value")));
  }
  for (const json& finding : results.at("findings")) {
    const std::string text = lab::report::markdown_text(finding.get<std::string>());
    EXPECT_THAT(markdown, HasSubstr("- " + text));
  }
}

TEST_F(Results, are_all_that_the_page_is_drawn_from) {
  const json results = assembled();
  const std::string page = render_html(results);
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  EXPECT_EQ(json::parse(page.substr(from, page.find("</script>", from) - from)), results);
  EXPECT_THAT(page, Not(HasSubstr("powersave <b>"))) << "text is never markup";
}

TEST_F(Results, are_written_and_read_back) {
  const json results = assembled();
  ASSERT_TRUE(write_reports(tree.root(), results));
  const auto read = load_results(tree.root());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, results);
  EXPECT_FALSE(load_results(tree.root() / "nowhere"));
}

TEST_F(Results, compare_side_by_side_by_their_intervals) {
  const json a = assembled();
  json b = a;
  b["build"]["commit"] = "def456";
  for (json& figure : b["layers"][2]["figures"]) {
    for (const char* end : {"value", "lo", "hi"}) {
      figure["tok_s"][end] = figure["tok_s"][end].get<double>() * 1.5;
    }
  }
  EXPECT_THAT(different_subjects(a, b), testing::ElementsAre("commit: \"abc123\" and \"def456\""));
  int higher = 0;
  for (const auto& difference : compare_studies(a, b)) {
    const bool raised = difference.figure.starts_with("layer 2") && difference.unit == "tok/s";
    EXPECT_EQ(difference.change, raised ? stats::Change::higher : stats::Change::same)
        << difference.figure;
    higher += raised;
  }
  EXPECT_EQ(higher, 4);
}

/// As version 1 wrote it.
json with_medians(const json& results) {
  std::string text = results.dump();
  for (std::size_t at = 0; (at = text.find("\"value\":", at)) != std::string::npos;) {
    text.replace(at, 8, "\"median\":");
  }
  json old = json::parse(text);
  old["schema_version"] = 1;
  return old;
}

TEST_F(Results, of_version_1_are_read_and_compared) {
  const json now = assembled(), old = with_medians(now);
  ASSERT_TRUE(old.at("layers")[1].at("gain").at("ratio").contains("median"));
  tree.write("old/results.json", old.dump());
  const auto read = load_results(tree.root() / "old");
  ASSERT_TRUE(read) << read.error().message;
  const auto differences = compare_studies(*read, now);
  EXPECT_EQ(differences.size(), compare_studies(now, now).size());
  for (const auto& difference : differences) {
    EXPECT_EQ(difference.ratio.value, 1) << difference.figure;
    EXPECT_EQ(difference.change, stats::Change::same) << difference.figure;
  }
  tree.write("later/results.json", R"({"study_id": "x", "schema_version": 3})");
  EXPECT_FALSE(load_results(tree.root() / "later"));
}

TEST_F(Results, say_how_many_blocks_a_hot_gpu_cost) {
  sample.fill(journal);
  json duel = journal.at(keys::layer(1));
  duel["conditions"] = {{"dropped_blocks", 3}};
  ASSERT_TRUE(journal.append(keys::layer(1), duel));
  const json results = assemble(sample.facts, journal);
  EXPECT_EQ(results.at("layers")[1].at("gain").at("conditions").at("dropped_blocks"), 3);
  EXPECT_THAT(results.at("findings"),
              Contains(testing::ResultOf([](const json& f) { return f.get<std::string>(); },
                                         HasSubstr("3 blocks were dropped"))));
  EXPECT_THAT(assembled().at("findings").dump(), Not(HasSubstr("dropped")));
}

TEST(Estimates, put_the_gains_of_all_workloads_into_a_geometric_mean) {
  const json bouts = {{{"name", "x"}, {"ns", {{400, 100, 100, 400}, {400, 100, 100, 400}}}},
                      {{"name", "y"}, {"ns", {{100, 100, 100, 100}, {100, 100, 100, 100}}}}};
  EXPECT_NEAR(overall_gain(bouts).value, 2, 1e-9);
  EXPECT_EQ(gains_of({{"bouts", bouts}}).at("workloads")[0].at("label"), "gain");
  EXPECT_EQ(gains_of({{"bouts", bouts}}).at("workloads")[1].at("label"), "no_gain");
}

TEST(Estimates, keep_what_stands_beside_out_of_the_mean) {
  const json bouts = {
      {{"name", "x"}, {"ns", {{400, 100, 100, 400}, {400, 100, 100, 400}}}},
      {{"name", "y"}, {"beside", true}, {"ns", {{100, 900, 900, 100}, {100, 900, 900, 100}}}}};
  EXPECT_NEAR(overall_gain(bouts).value, 4, 1e-9);
  EXPECT_EQ(gains_of({{"bouts", bouts}}).at("workloads")[1].at("label"), "loss");
}

}  // namespace
}  // namespace gauntlet::study
