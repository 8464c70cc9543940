// Do results and reports say the same, and do both say what the cells hold?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/os/fake_tree.h"
#include "lab/report/format.h"
#include "study/results/assemble.h"
#include "study/results/sample_study.h"
#include "study/results/text/html.h"
#include "study/results/text/markdown.h"
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

  StudyResults assembled() {
    sample.fill(journal);
    return results();
  }
  /// Of what the journal holds now.
  StudyResults results() { return assemble(sample.facts, journal).value(); }
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
  const StudyResults results = assembled();
  for (const LayerResult& layer : results.layers) {
    EXPECT_EQ(layer.gain.has_value(), layer.index > 0) << layer.name;
    EXPECT_TRUE(layer.verification->verified);
  }
  EXPECT_EQ(results.layers[1].gain->all.label, stats::Gain::gain);
  EXPECT_NEAR(results.layers[1].gain->all.ratio.value, 1.8, 0.02);
  EXPECT_EQ(results.layers[3].gain->all.label, stats::Gain::no_gain);
  EXPECT_NEAR(results.layers[0].engine->ttft_ms->value, 20, 0.3);
  EXPECT_NEAR(results.layers[1].engine->ttft_ms->value, 20 / 1.8, 0.3);
}

TEST_F(Results, judge_lossy_layers_by_perplexity_and_others_by_tokens) {
  const StudyResults results = assembled();
  const Verification& lossless = *results.layers[1].verification;
  EXPECT_EQ(lossless.by, VerifiedBy::tokens);
  EXPECT_EQ(lossless.equal->compared, 4);
  const Verification& lossy = *results.layers[5].verification;
  EXPECT_EQ(lossy.by, VerifiedBy::perplexity);
  EXPECT_NEAR(lossy.change->percent, 100 * (20.45 / 20.4 - 1), 1e-9);
}

TEST_F(Results, say_why_an_option_is_worth_something_else_in_company) {
  for (const OptionWorth& option : assembled().leave_one_out) {
    const SignCheck& check = option.worth->sign.value();
    if (option.option == "bf16_kv") {
      EXPECT_EQ(check.sign, Sign::opposite);
      EXPECT_THAT(check.sentence, HasSubstr("layer 5 also brought"));
    }
    EXPECT_TRUE(option.option != "threads" || check.sign == Sign::same);
  }
}

TEST_F(Results, say_by_which_check_a_layer_passed) {
  sample.fill(journal);
  json own = journal.at(keys::verify(2));
  own["tokens"][0][1] = 99;
  own["replayed"] = {{"compared", 5}, {"of", 6},     {"experts", 48},
                     {"replaced", 3}, {"wrong", ""}, {"where", "prompt 1, token 2"}};
  ASSERT_TRUE(journal.append(keys::verify(2), own));
  const StudyResults passed = results();
  const Verification& verification = *passed.layers[2].verification;
  EXPECT_TRUE(verification.verified);
  EXPECT_EQ(verification.by, VerifiedBy::choices);
  EXPECT_THAT(verification.sentence, HasSubstr("undecided router at prompt 1, token 2 (3 of 48"));
  EXPECT_THAT(verification.not_covered, HasSubstr("a watched step runs without"));
  EXPECT_EQ(passed.layers[1].verification->by, VerifiedBy::tokens);
  const std::string markdown = render_markdown(passed);
  EXPECT_THAT(markdown, HasSubstr("| same choices |"));
  EXPECT_THAT(markdown, HasSubstr("a watched step runs without"));

  own["replayed"]["wrong"] = "prompt 2, token 1: not the 4 of the layer before";
  ASSERT_TRUE(journal.append(keys::verify(2), own));
  const StudyResults failed = results();
  EXPECT_FALSE(failed.layers[2].verification->verified);
  EXPECT_THAT(failed.findings, Contains(HasSubstr("Layer 2 (memory) is not verified, wrong:")));
}

TEST_F(Results, judge_a_layer_of_few_tokens_by_its_choices_too) {
  sample.fill(journal);
  json own = journal.at(keys::verify(2));
  own["replayed"] = {{"compared", 5}, {"of", 6},     {"experts", 48},
                     {"replaced", 3}, {"wrong", ""}, {"where", ""}};
  ASSERT_TRUE(journal.append(keys::verify(2), own));
  const Verification passed = *results().layers[2].verification;
  EXPECT_TRUE(passed.verified);
  EXPECT_EQ(passed.by, VerifiedBy::tokens);
  EXPECT_EQ(passed.choices, 5);
  EXPECT_THAT(passed.sentence, HasSubstr("the same 5 of 6 choices"));

  own["replayed"]["wrong"] = "prompt 2, token 1: not the 4 of the layer before";
  ASSERT_TRUE(journal.append(keys::verify(2), own));
  const Verification failed = *results().layers[2].verification;
  EXPECT_FALSE(failed.verified);
  EXPECT_THAT(failed.sentence, HasSubstr("wrong: with the experts"));
}

TEST_F(Results, name_the_machine_that_was_measured) {
  EXPECT_THAT(render_markdown(assembled()), HasSubstr("sample-model on Sample CPU"));
  SampleStudy on_gpu(engine::Backend::cuda);
  on_gpu.facts.machine.gpus = {{.name = "Sample GPU"}};
  Journal other = Journal::begin(tree.root() / "gpu.jsonl", {}, 0).value();
  on_gpu.fill(other);
  EXPECT_THAT(render_markdown(assemble(on_gpu.facts, other).value()),
              HasSubstr("sample-model on Sample GPU"));
}

TEST_F(Results, give_joules_per_token_or_why_there_are_none) {
  const StudyResults told = assembled();
  EXPECT_THAT(render_markdown(told), HasSubstr("J per token: RAPL: package-0."));
  EXPECT_EQ(told.layers[1].energy->points[0].joules_per_token, 0.04);
  ASSERT_TRUE(journal.append(keys::energy(0), {{"gap", "not told by this machine"}}));
  EXPECT_THAT(render_markdown(results()), HasSubstr("J per token: not told by this machine."));
}

TEST_F(Results, count_what_was_left_out) {
  sample.fill(journal);
  ASSERT_TRUE(journal.append(keys::batch(64), {{"gap", kLeftOut}}));
  const StudyResults shortened = results();
  EXPECT_EQ(shortened.cells.left_out, 1);
  EXPECT_THAT(render_markdown(shortened), HasSubstr("gap: left out: the time of a quick study"));
  EXPECT_THAT(shortened.findings.back(), HasSubstr("1 of "));
}

TEST_F(Results, keep_a_gap_as_a_gap) {
  for (const ContextPoint& point : assembled().sweeps.context) {
    EXPECT_EQ(!point.steps.gap.empty(), point.context > 4096);
    EXPECT_EQ(point.steps.value.has_value(), point.context <= 4096);
  }
}

TEST_F(Results, can_be_written_at_any_moment) {
  const auto cells =
      plan_cells(sample.facts.ladder, sample.facts.sizes, lab::ProfileLevel::minimal);
  Journal full = Journal::begin(tree.root() / "full", {}, 0).value();
  sample.fill(full);
  for (std::size_t i = 0; i < cells.size(); i += 4) {
    const StudyResults so_far = results();
    EXPECT_FALSE(render_markdown(so_far).empty());
    EXPECT_EQ(so_far.cells.measured, static_cast<std::int64_t>(i));
    const auto again = results_from_json(to_json(so_far));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(to_json(*again), to_json(so_far));
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
  EXPECT_THAT(render_markdown(results()), HasSubstr("gap: no memory"));
}

TEST_F(Results, stand_in_the_markdown_with_the_same_numbers) {
  const StudyResults results = assembled();
  const std::string markdown = render_markdown(results);
  const auto rows = table_below(markdown, "## Layers");
  ASSERT_EQ(rows.size(), results.layers.size() + 1);
  const auto number = lab::report::significant;
  for (std::size_t i = 0; i < results.layers.size(); ++i) {
    const LayerResult& layer = results.layers[i];
    const auto& row = rows[i + 1];
    if (layer.gain) {
      const stats::Interval& ratio = layer.gain->all.ratio;
      EXPECT_EQ(row[3], number(ratio.value) + "×");
      EXPECT_EQ(row[4], number(ratio.lo) + " to " + number(ratio.hi));
    }
    if (!layer.engine) continue;
    EXPECT_EQ(row[6], number(layer.engine->ttft_ms->value));
    EXPECT_EQ(row[7], number(layer.engine->tpot_ms->value));
    for (std::size_t f = 1; f < layer.engine->figures.size(); ++f) {
      EXPECT_EQ(row[7 + f], number(layer.engine->figures[f].tok_s.value));
    }
  }
  const auto batches = table_below(markdown, "### Batch");
  ASSERT_EQ(batches.size(), results.sweeps.batch.size() + 1);
  for (std::size_t i = 1; i < batches.size(); ++i) {
    EXPECT_EQ(batches[i][1], number(results.sweeps.batch[i - 1].speed->tok_s.value));
  }
  for (const std::string& finding : results.findings) {
    EXPECT_THAT(markdown, HasSubstr("- " + lab::report::markdown_text(finding)));
  }
}

TEST_F(Results, say_what_became_of_guesses_by_position) {
  EXPECT_THAT(render_markdown(assembled()),
              HasSubstr("layer 6: 90 of 300 guesses were right; of 100 drafts, as far as position "
                        "1, 2, ...: 50%, 30%, 10%"));
}

TEST_F(Results, are_all_that_the_page_is_drawn_from) {
  const StudyResults results = assembled();
  const std::string page = render_html(results);
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  EXPECT_EQ(json::parse(page.substr(from, page.find("</script>", from) - from)), to_json(results));
  EXPECT_THAT(page, Not(HasSubstr("powersave <b>"))) << "text is never markup";
}

TEST_F(Results, are_written_and_read_back) {
  const StudyResults results = assembled();
  ASSERT_TRUE(write_reports(tree.root(), results));
  const auto read = load_results(tree.root());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), to_json(results));
  EXPECT_FALSE(load_results(tree.root() / "nowhere"));
}

TEST_F(Results, say_which_field_of_which_cell_cannot_be_read) {
  sample.fill(journal);
  json duel = journal.at(keys::layer(1));
  duel["bouts"][1]["ns"][2] = {1.0, 2.0, 3.0};
  ASSERT_TRUE(journal.append(keys::layer(1), duel));
  const auto broken = assemble(sample.facts, journal);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message,
            "the journal's cell layer/1 cannot be read: bouts[1].ns[2] has 3 items instead of 4");
}

TEST_F(Results, say_how_many_blocks_a_hot_gpu_cost) {
  sample.fill(journal);
  json duel = journal.at(keys::layer(1));
  duel["conditions"] = {
      {"dropped_blocks", 3}, {"sm_clock_mhz", {900.0, 1500.0}}, {"throttle_reasons", {"thermal"}}};
  ASSERT_TRUE(journal.append(keys::layer(1), duel));
  const StudyResults hot = results();
  EXPECT_EQ(hot.layers[1].gain->conditions->dropped_blocks, 3);
  EXPECT_THAT(hot.findings, Contains(HasSubstr("3 blocks were dropped")));
  EXPECT_THAT(assembled().findings, Not(Contains(HasSubstr("dropped"))));
}

}  // namespace
}  // namespace gauntlet::study
