// Which files does tools/tidy.sh look at, and does it end well where there are none? cmake and
// clang-tidy are fakes in PATH.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A repository with the script and sources that a test commits.
class Repository {
 public:
  Repository() {
    for (const char* folder : {"tools", "src", "bin"}) fs::create_directories(root() / folder);
    fs::copy_file(fs::path(GAUNTLET_SOURCE_DIR) / "tools/tidy.sh", root() / "tools/tidy.sh");
    // Compiles every source but those of the GPU.
    fake("cmake",
         "mkdir -p build/tidy\n"
         "for f in src/*.cc; do case $f in *cuda*) ;; *) echo \"\\\"$PWD/$f\\\"\" ;; esac; done"
         " > build/tidy/compile_commands.json");
    fake("clang-tidy-19",
         "for a; do case $a in src/*) echo \"looked at $a\" ;; esac; done\n"
         "! grep -l BAD $(for a; do case $a in src/*) echo $a ;; esac; done)");
    git({"init", "-q", "-b", "main"});
    commit();
  }

  fs::path root() const { return folder_.path(); }
  void write(const std::string& file, const std::string& text) {
    std::ofstream(root() / file) << text << "\n";
  }
  void commit() {
    git({"add", "-A"});
    git({"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"});
  }
  Outcome tidy(const std::vector<std::string>& arguments) {
    std::vector<std::string> argv = {"/usr/bin/env", "PATH=" + (folder_ / "bin") + ":/usr/bin:/bin",
                                     "/bin/bash", folder_ / "tools/tidy.sh"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run_program(argv);
  }

 private:
  void fake(const std::string& name, const std::string& body) {
    const std::string file = folder_ / ("bin/" + name);
    std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }
  void git(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"/usr/bin/git", "-C", root().string()});
    const Outcome done = run_program(arguments);
    ASSERT_EQ(done.code, 0) << done.err;
  }

  TemporaryFolder folder_;
};

TEST(Tidy, has_nothing_to_do_in_a_clone_of_one_commit) {
  const Outcome alone = Repository().tidy({"--changed", "--at-most", "3"});
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("no commit before this one"));
}

TEST(Tidy, has_nothing_to_do_where_no_source_changed) {
  Repository repository;
  repository.write("page.md", "words");
  repository.commit();
  const Outcome none = repository.tidy({"--changed"});
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("no source changed"));
  repository.write("src/cuda_a.cc", "int a;");
  EXPECT_THAT(repository.tidy({"src/cuda_a.cc"}).out, HasSubstr("no source that this machine"));
}

TEST(Tidy, looks_at_changed_sources_and_those_beside_changed_headers) {
  Repository repository;
  for (const char* file : {"src/a.cc", "src/b.cc", "src/b_test.cc"}) repository.write(file, "");
  repository.write("src/b.h", "");
  repository.commit();
  repository.write("src/a.cc", "int a;");
  repository.commit();
  const Outcome source = repository.tidy({"--changed"});
  EXPECT_EQ(source.code, 0) << source.err;
  EXPECT_THAT(source.out, AllOf(HasSubstr("looked at src/a.cc"), Not(HasSubstr("src/b"))));
  repository.write("src/b.h", "int b;");
  repository.commit();
  EXPECT_THAT(repository.tidy({"--changed"}).out,
              AllOf(HasSubstr("looked at src/b.cc"), HasSubstr("looked at src/b_test.cc"),
                    Not(HasSubstr("src/a.cc"))));
  EXPECT_THAT(repository.tidy({"--changed", "HEAD~2", "--at-most", "2"}).out,
              AllOf(HasSubstr("3 files changed; these are 2"), HasSubstr("tidy: 2 files")));
}

TEST(Tidy, fails_for_what_it_finds_and_for_a_revision_that_is_not_there) {
  Repository repository;
  repository.write("src/a.cc", "BAD");
  repository.commit();
  const Outcome bad = repository.tidy({"--changed"});
  EXPECT_NE(bad.code, 0);
  EXPECT_THAT(bad.out, Not(HasSubstr("clean")));
  EXPECT_EQ(repository.tidy({"--changed", "nowhere"}).code, 2);
}

}  // namespace
}  // namespace gauntlet::tests
