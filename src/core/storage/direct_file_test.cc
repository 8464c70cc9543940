#include "core/storage/direct_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fake_tree.h"

namespace gauntlet {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

TEST(DirectFile, says_what_is_missing_for_it) {
  FakeTree without;
  const auto available = DirectFile::available(SystemFiles(without.root()));
  ASSERT_FALSE(available);
  EXPECT_THAT(available.error().message,
              AnyOf(HasSubstr("modprobe nvidia-fs"), HasSubstr("found no cufile.h")));
}

TEST(DirectFile, is_there_where_the_build_has_it_and_its_module_is_loaded) {
  FakeTree with;
  with.write("/proc/driver/nvidia-fs/version", "version: 2.25");
  const auto available = DirectFile::available(SystemFiles(with.root()));
#if __has_include(<cufile.h>)
  EXPECT_TRUE(available);
#else
  EXPECT_FALSE(available);
  EXPECT_FALSE(DirectFile::open(0));
#endif
}

}  // namespace
}  // namespace gauntlet
