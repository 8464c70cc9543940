// Does a journal keep what was measured, whatever happens to its process?
#include "study/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/os/fake_tree.h"
#include "core/os/files.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct JournalFile : testing::Test {
  FakeTree tree;
  std::filesystem::path path = tree.root() / "journal.jsonl";
  json subject = {{"model", "tiny"}};

  Journal two_cells() {
    auto journal = Journal::begin(path, subject, 1234).value();
    EXPECT_TRUE(journal.append("layer/1", {{"ns", {1.5, 2.5}}}));
    EXPECT_TRUE(journal.append("layer/2", {{"gap", "no memory"}}));
    return journal;
  }
};

TEST_F(JournalFile, gives_back_what_was_appended_after_a_restart) {
  two_cells();
  const auto again = Journal::resume(path, subject);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->num_cells(), 2u);
  EXPECT_EQ(again->at("layer/1").at("ns")[1], 2.5);
  EXPECT_TRUE(again->at("layer/3").is_null());
  EXPECT_EQ(again->started_at(), 1234);
}

TEST_F(JournalFile, drops_a_line_cut_short_at_any_byte_and_goes_on) {
  two_cells();
  const std::string whole = read_file(path).value();
  const std::size_t first = whole.find('\n') + 1, second = whole.find('\n', first) + 1;
  for (std::size_t length = first; length < whole.size(); length += 3) {
    std::ofstream(path, std::ios::trunc) << whole.substr(0, length);
    auto journal = Journal::resume(path, subject);
    ASSERT_TRUE(journal) << length;
    EXPECT_EQ(journal->num_cells(), length >= second ? 1u : 0u) << length;
    ASSERT_TRUE(journal->append("layer/9", 7));
    EXPECT_EQ(Journal::resume(path, subject).value().at("layer/9"), 7) << length;
  }
}

TEST_F(JournalFile, refuses_a_study_of_something_else) {
  two_cells();
  const auto other = Journal::resume(path, {{"model", "large"}});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("study of something else"));
  EXPECT_EQ(other.error().kind, ErrorKind::wrong_use);
}

TEST_F(JournalFile, says_that_there_is_nothing_to_resume) {
  const auto none = Journal::resume(path, subject);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no study to resume"));
  std::ofstream(path) << "hello\n";
  EXPECT_THAT(Journal::resume(path, subject).error().message, HasSubstr("not a study's journal"));
}

}  // namespace
}  // namespace gauntlet::study
