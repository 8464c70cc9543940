#include "core/os/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iterator>

#include "core/os/fake_tree.h"

namespace gauntlet {
namespace {

namespace fs = std::filesystem;

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(ReadFile, returns_every_byte) {
  FakeTree tree;
  std::string bytes(40000, 'x');
  bytes[100] = '\0';
  tree.write("data", bytes);
  EXPECT_EQ(*read_file(tree.root() / "data"), bytes);
}

TEST(ReadFile, reads_files_that_say_they_are_empty) {
  const auto text = read_file("/proc/self/status");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("Name:"), std::string::npos);
}

TEST(ReadFile, names_the_file_that_is_missing) {
  FakeTree tree;
  const auto text = read_file(tree.root() / "absent");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message,
            "cannot read " + (tree.root() / "absent").string() + ": No such file or directory");
}

TEST(ReadFile, refuses_a_folder) {
  FakeTree tree;
  EXPECT_FALSE(read_file(tree.root()));
}

TEST(AtomicWriteFile, replaces_the_text_and_leaves_nothing_else) {
  FakeTree tree;
  tree.write("out", "old");
  ASSERT_TRUE(atomic_write_file(tree.root() / "out", "new"));
  EXPECT_EQ(*read_file(tree.root() / "out"), "new");
  EXPECT_EQ(files_in(tree.root()), 1u);
}

TEST(AtomicWriteFile, writes_a_plain_name_into_the_current_folder) {
  FakeTree tree;
  const fs::path before = fs::current_path();
  fs::current_path(tree.root());
  const bool written = static_cast<bool>(atomic_write_file("plain", "x"));
  fs::current_path(before);
  EXPECT_TRUE(written);
  EXPECT_EQ(*read_file(tree.root() / "plain"), "x");
}

TEST(AtomicWriteFile, gives_the_file_the_usual_rights) {
  FakeTree tree;
  const mode_t mask = ::umask(022);
  const bool written = static_cast<bool>(atomic_write_file(tree.root() / "out", "x"));
  ::umask(mask);
  ASSERT_TRUE(written);
  const auto rights = fs::status(tree.root() / "out").permissions();
  EXPECT_NE(rights & fs::perms::others_read, fs::perms::none);
}

TEST(AtomicWriteFile, keeps_the_old_text_when_it_fails) {
  FakeTree tree;
  tree.write("out/inside", "old");
  // A file cannot be renamed over a folder.
  const auto written = atomic_write_file(tree.root() / "out", "new");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("cannot replace"), std::string::npos);
  EXPECT_EQ(*read_file(tree.root() / "out/inside"), "old");
  EXPECT_EQ(files_in(tree.root()), 1u);
}

TEST(AtomicWriteFile, names_the_folder_that_is_missing) {
  FakeTree tree;
  const auto written = atomic_write_file(tree.root() / "absent" / "out", "x");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find((tree.root() / "absent").string()), std::string::npos);
}

TEST(AtomicWriteFile, steps_over_a_temporary_file_left_by_a_killed_process) {
  FakeTree tree;
  tree.write(std::string(".out.") + std::to_string(::getpid()) + ".0.tmp", "part");
  EXPECT_TRUE(atomic_write_file(tree.root() / "out", "whole"));
  EXPECT_EQ(*read_file(tree.root() / "out"), "whole");
}

TEST(MakeFolders, makes_what_is_missing_and_accepts_what_is_there) {
  FakeTree tree;
  EXPECT_TRUE(make_folders(tree.root() / "a/b/c"));
  EXPECT_TRUE(fs::is_directory(tree.root() / "a/b/c"));
  EXPECT_TRUE(make_folders(tree.root() / "a/b/c"));
}

TEST(MakeFolders, refuses_a_file_in_the_way) {
  FakeTree tree;
  tree.write("a", "");
  EXPECT_FALSE(make_folders(tree.root() / "a"));
  EXPECT_FALSE(make_folders(tree.root() / "a/b"));
}

TEST(IsWritableFolder, holds_for_a_folder_one_can_write_to) {
  FakeTree tree;
  EXPECT_TRUE(is_writable_folder(tree.root()));
  EXPECT_EQ(files_in(tree.root()), 0u);
}

TEST(IsWritableFolder, fails_with_a_reason) {
  FakeTree tree;
  tree.write("file", "");
  EXPECT_FALSE(is_writable_folder(tree.root() / "file"));
  EXPECT_FALSE(is_writable_folder(tree.root() / "absent"));
  const auto read_only = is_writable_folder("/proc");
  ASSERT_FALSE(read_only);
  EXPECT_NE(read_only.error().message.find("/proc"), std::string::npos);
}

}  // namespace
}  // namespace gauntlet
