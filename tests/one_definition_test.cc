// Is every type of the program defined once? Two of one name are merged by the linker without a
// word, even where they differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::IsEmpty;

/// C++ without comments, directives, and what stands in quotes.
class Code {
 public:
  explicit Code(const std::string& text) : text_(text) {
    while (at_ < text_.size()) step();
  }
  const std::string& bare() const { return bare_; }

 private:
  bool ahead(const std::string& what) const { return text_.compare(at_, what.size(), what) == 0; }
  void skip_past(const std::string& end) {
    const std::size_t found = text_.find(end, at_);
    at_ = found == std::string::npos ? text_.size() : found + end.size();
  }
  bool line_begins() const {
    const std::size_t before = text_.find_last_not_of(" \t", at_ == 0 ? 0 : at_ - 1);
    return at_ == 0 || before == std::string::npos || text_[before] == '\n';
  }
  bool in_number() const {
    return at_ > 0 && std::isxdigit(static_cast<unsigned char>(text_[at_ - 1])) != 0;
  }

  void step() {
    if (ahead("//")) {
      skip_past("\n");
      bare_ += '\n';
    } else if (ahead("/*")) {
      skip_past("*/");
    } else if (ahead("#") && line_begins()) {
      do skip_past("\n");
      while (at_ >= 2 && text_[at_ - 2] == '\\');
      bare_ += '\n';
    } else if (ahead("R\"")) {
      const std::size_t open = text_.find('(', at_);
      skip_past(")" + text_.substr(at_ + 2, open - at_ - 2) + "\"");
    } else if (ahead("\"") || (ahead("'") && !in_number())) {
      const char quote = text_[at_++];
      while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
      ++at_;
    } else {
      bare_ += text_[at_++];
    }
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::string bare_;
};

/// How an inline namespace counts: as a part of the name that the linker sees, or not at all, as
/// for a reader who names the type from outside.
enum class Rooms { named, transparent };

/// Names of the types that a text defines in namespaces that others can name.
std::set<std::string> types_in(const std::string& text, Rooms rooms) {
  static const std::regex kNamespace("\\bnamespace\\b([\\w\\s:]*)$");
  static const std::regex kType(
      "\\b(struct|class|union|enum|enum\\s+class)\\s+(alignas\\s*\\([^{]*\\)\\s*)?(\\w+)\\s*"
      "(final\\s*)?(:[^:{][^{]*)?$");
  std::set<std::string> names;
  std::vector<std::string> scopes;  // a namespace's names, ending in "::"; "": anything else
  const std::string code = Code(text).bare();
  std::size_t begin = 0;
  for (std::size_t at = code.find_first_of("{};"); at != std::string::npos;
       at = code.find_first_of("{};", begin)) {
    const std::string head = code.substr(begin, at - begin);
    begin = at + 1;
    if (code[at] == '}' && !scopes.empty()) scopes.pop_back();
    if (code[at] != '{') continue;
    std::smatch match;
    std::string scope;
    if (std::regex_search(head, match, kNamespace)) {
      scope = match[1];
      const char* inline_part = rooms == Rooms::named ? "inline\\s+" : "inline\\s+\\w+";
      scope = std::regex_replace(scope, std::regex(inline_part), "");
      scope = std::regex_replace(scope, std::regex("\\s"), "");
      if (scope.ends_with("::")) scope.resize(scope.size() - 2);
      scope = (scope.empty() ? "(unnamed)" : scope) + "::";
    } else if (std::regex_search(head, match, kType)) {
      std::string name;
      for (const std::string& outer : scopes) name = outer.empty() ? "(local)" : name + outer;
      const bool visible =
          name.find('(') == std::string::npos && std::ranges::find(scopes, "") == scopes.end();
      const bool partial = head.find("template <>") != std::string::npos;
      if (visible && !partial) names.insert(name + match[3].str());
    }
    scopes.push_back(scope);
  }
  return names;
}

/// Types that several files of the program define.
std::map<std::string, std::vector<std::string>> defined_twice(Rooms rooms) {
  static const std::set<std::string> kExtensions = {".h", ".cc", ".cu", ".cuh", ".inc"};
  std::map<std::string, std::vector<std::string>> where;
  const fs::path root = GAUNTLET_SOURCE_DIR;
  for (const char* below : {"src", "catalog"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / below)) {
      if (!kExtensions.contains(entry.path().extension().string())) continue;
      for (const std::string& name : types_in(read_text(entry.path()), rooms)) {
        where[name].push_back(fs::relative(entry.path(), root).string());
      }
    }
  }
  EXPECT_GT(where.size(), 500u) << "the scan found too little to mean anything";
  std::erase_if(where, [](const auto& found) { return found.second.size() < 2; });
  return where;
}

TEST(OneDefinition, of_every_type_in_the_program) {
  EXPECT_THAT(defined_twice(Rooms::named), IsEmpty());
}

TEST(OneDefinition, of_every_type_as_it_is_named_from_outside_its_room) {
  EXPECT_THAT(defined_twice(Rooms::transparent), IsEmpty());
}

TEST(OneDefinition, sees_types_and_not_what_only_looks_like_one) {
  const std::string text = R"(
    #define BRACE {
    namespace a::inline b {
    struct One { struct Inner {}; int x = 1'000; };  // struct Not {
    enum class Two { c };
    class Three final : public One {};
    struct One::Outside {};
    const char* text = "{ struct Quoted {"; char brace = '{';
    template <class T> struct alignas(16) Four {};
    template <> struct Four<int> {};
    void function() { struct Local {}; }
    namespace { struct Hidden {}; }
    }
    struct Five {};)";
  EXPECT_THAT(types_in(text, Rooms::named),
              ElementsAre("Five", "a::b::Four", "a::b::One", "a::b::Three", "a::b::Two"));
  EXPECT_THAT(types_in(text, Rooms::transparent),
              ElementsAre("Five", "a::Four", "a::One", "a::Three", "a::Two"));
}

}  // namespace
}  // namespace gauntlet::tests
