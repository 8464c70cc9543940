#include "engine/grammar/regex.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "engine/grammar/characters.h"
#include "model/tokens/utf8.h"

namespace gauntlet::engine::grammar {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxPatternBytes = 4096;
constexpr std::int64_t kMaxRepetitions = 10'000;

struct Refused {
  std::string why;
};

struct Node {
  enum class Kind { characters, sequence, choice, repeat };
  Kind kind = Kind::sequence;
  CodeSet set;
  std::vector<Node> parts;
  Repetitions times;
};

struct Look {
  Node ahead;  // widened by any text behind it
  Product product = Product::both;
};

/// A top-level alternative.
struct Alternative {
  std::vector<Look> looks;
  Node body;
};

/// Whether a pattern is found anywhere in a text, unless it is anchored, or is all of it.
enum class Extent { found, whole };

CodeSet digits() { return {{'0', '9'}}; }
CodeSet word() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }
CodeSet space() {
  return {{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}
CodeSet line_ends() { return {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  /// Those without an anchor are widened by any text on that side.
  std::vector<Alternative> alternatives(Extent extent) {
    std::vector<Alternative> all;
    do {
      Alternative& one = all.emplace_back();
      const bool is_held = take('^') || extent == Extent::whole;
      if (!is_held) one.body.parts.push_back(any_text());
      while (is_held &&
             (text_.substr(at_).starts_with("(?=") || text_.substr(at_).starts_with("(?!")))
        one.looks.push_back(look());
      one.body.parts.push_back(sequence(0));
      if (!take('$') && extent == Extent::found) one.body.parts.push_back(any_text());
    } while (take('|'));
    if (!done()) refuse(peek() == ')' ? "a ) without its (" : "an anchor that is not at an end");
    return all;
  }

 private:
  static Node any_text() {
    Node any{.kind = Node::Kind::repeat};
    any.parts.push_back({.kind = Node::Kind::characters, .set = all_characters()});
    return any;
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw Refused{fmt::format("{} at byte {} of the pattern is not supported", what, at_)};
  }
  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool take(char wanted) {
    if (done() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  char32_t character() {
    if (done()) refuse("an end in the middle");
    const auto next = model::next_utf8(text_.data() + at_, text_.data() + text_.size());
    if (next.state != model::Utf8State::valid) refuse("a byte that is not UTF-8");
    at_ += next.size;
    return next.point;
  }

  Look look() {
    at_ += 2;
    Look look{.product = take('=') ? Product::both : Product::first_without_second};
    take('!');
    look.ahead.kind = Node::Kind::choice;
    do {
      Node& one = look.ahead.parts.emplace_back();
      one.parts.push_back(sequence(1));
      if (!take('$')) one.parts.push_back(any_text());
    } while (take('|'));
    if (!take(')')) refuse("a ( without its )");
    return look;
  }

  Node choice(int depth) {
    if (depth > kMaxDepth) refuse("nesting this deep");
    Node all{.kind = Node::Kind::choice};
    do all.parts.push_back(sequence(depth));
    while (take('|'));
    return all;
  }

  Node sequence(int depth) {
    Node all;
    while (!done() && peek() != '|' && peek() != ')' && peek() != '$')
      all.parts.push_back(quantified(atom(depth)));
    return all;
  }

  Node atom(int depth) {
    switch (peek()) {
      case '(': {
        ++at_;
        if (take('?') && !take(':'))
          refuse("a group that looks around, other than ahead from the beginning, or has a name");
        Node inner = choice(depth + 1);
        if (!take(')')) refuse(peek() == '$' ? "a $ inside a group" : "a ( without its )");
        return inner;
      }
      case '[':
        ++at_;
        return characters(bracket());
      case '.':
        ++at_;
        return characters(complement(line_ends()));
      case '\\':
        ++at_;
        return characters(escape());
      case '^':
        refuse("an anchor that is not at an end");
      case '*':
      case '+':
      case '?':
      case '{':
      case '}':
      case ']':
        refuse(fmt::format("a bare {}", peek()));
      default: {
        const char32_t point = character();
        return characters({{point, point}});
      }
    }
  }

  static Node characters(const CodeSet& set) {
    return {.kind = Node::Kind::characters, .set = normalized(set)};
  }

  Node quantified(Node inner) {
    Repetitions times;
    if (take('*')) {
    } else if (take('+')) {
      times.min = 1;
    } else if (take('?')) {
      times.max = 1;
    } else if (take('{')) {
      times.min = number();
      if (!take(','))
        times.max = times.min;
      else if (peek() != '}')
        times.max = number();
      if (!take('}')) refuse("a { without its }");
      if (times.max && *times.max < times.min) refuse("a repetition whose bounds are reversed");
    } else {
      return inner;
    }
    take('?');  // being lazy changes what is found first, not what is matched
    Node repeat{.kind = Node::Kind::repeat, .times = times};
    repeat.parts.push_back(std::move(inner));
    return repeat;
  }

  std::int64_t number() {
    std::int64_t value = 0;
    if (peek() < '0' || peek() > '9') refuse("a { that starts no repetition");
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + (text_[at_++] - '0');
      if (value > kMaxRepetitions) refuse("a repetition this large");
    }
    return value;
  }

  char32_t hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) refuse("an escape without its hex digits");
      value = value * 16 + static_cast<char32_t>(digit);
      ++at_;
    }
    return value;
  }

  CodeSet escape() {
    const char32_t point = character();
    switch (point) {
      case 'd':
        return digits();
      case 'D':
        return complement(digits());
      case 'w':
        return word();
      case 'W':
        return complement(word());
      case 's':
        return space();
      case 'S':
        return complement(space());
      case 'n':
        return {{'\n', '\n'}};
      case 'r':
        return {{'\r', '\r'}};
      case 't':
        return {{'\t', '\t'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      case 'x':
      case 'u': {
        if (point == 'u' && peek() == '{') refuse("\\u{...}");
        const char32_t value = hex(point == 'x' ? 2 : 4);
        if (value >= 0xD800 && value <= 0xDFFF) refuse("a surrogate");
        return {{value, value}};
      }
      default:
        break;
    }
    if (point < 0x80 && ((point | 32) >= 'a' && (point | 32) <= 'z'))
      refuse(fmt::format("\\{}", static_cast<char>(point)));
    if (point >= '0' && point <= '9') refuse("a back reference");
    return {{point, point}};
  }

  CodeSet bracket() {
    const bool negated = take('^');
    CodeSet set;
    while (!take(']')) {
      const CodeSet low = bracket_item();
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        const CodeSet high = bracket_item();
        if (!is_single(low) || !is_single(high) || low[0].low > high[0].low)
          refuse("a range like this");
        set.push_back({.low = low[0].low, .high = high[0].low});
      } else {
        set.insert(set.end(), low.begin(), low.end());
      }
    }
    return negated ? complement(set) : normalized(set);
  }

  CodeSet bracket_item() {
    if (take('\\')) {
      if (take('b')) return {{'\b', '\b'}};
      if (take('-')) return {{'-', '-'}};
      return escape();
    }
    const char32_t point = character();
    return {{point, point}};
  }

  static bool is_single(const CodeSet& set) { return set.size() == 1 && set[0].low == set[0].high; }

  std::string_view text_;
  std::size_t at_ = 0;
};

using Spell = void (*)(Nfa&, Nfa::State, Nfa::State, const CodeSet&);

struct Builder {
  Spell spell;
  Work& work;

  void build(Nfa& nfa, Nfa::State from, Nfa::State to, const Node& node) const {
    switch (node.kind) {
      case Node::Kind::characters:
        return spell(nfa, from, to, node.set);
      case Node::Kind::choice:
        for (const Node& part : node.parts) build(nfa, from, to, part);
        return;
      case Node::Kind::repeat:
        return nfa.repeat(from, to, node.times, [&](Nfa::State a, Nfa::State b) {
          work.spend(1);
          build(nfa, a, b, node.parts[0]);
        });
      case Node::Kind::sequence:
        for (const Node& part : node.parts) {
          const Nfa::State next = nfa.add();
          build(nfa, from, next, part);
          from = next;
        }
        return nfa.empty(from, to);
    }
  }

  Dfa dfa(const Node& node) const {
    return small(dfa_of(
        work, [&](Nfa& nfa, Nfa::State from, Nfa::State to) { build(nfa, from, to, node); }));
  }

  Dfa dfa(const Alternative& one) const {
    Dfa all = dfa(one.body);
    for (const Look& look : one.looks)
      all = small(combine(all, dfa(look.ahead), look.product, work));
    return all;
  }

  Dfa dfa(const std::vector<Alternative>& list) const {
    if (list.size() == 1) return dfa(list[0]);
    return small(dfa_of(work, [&](Nfa& nfa, Nfa::State from, Nfa::State to) {
      for (const Alternative& one : list) {
        if (one.looks.empty())
          build(nfa, from, to, one.body);
        else
          nfa.embed(from, to, dfa(one));
      }
    }));
  }

  /// Products grow with their factors, so those that are quickly made small are.
  Dfa small(Dfa dfa) const {
    constexpr std::size_t kMaxMinimized = 1024;  // states
    return dfa.states.size() <= kMaxMinimized ? minimized(dfa, work) : std::move(dfa);
  }
};

/// Of "^[...]{m,n}$", which counts characters and nothing else, the [...]* and the {m,n}.
Repetitions take_length(std::vector<Alternative>& list) {
  constexpr std::int64_t kFew = 32;
  if (list.size() != 1 || !list[0].looks.empty() || list[0].body.parts.size() != 1) return {};
  Node& held = list[0].body.parts[0];
  if (held.parts.size() != 1 || held.parts[0].kind != Node::Kind::repeat) return {};
  Node& repeat = held.parts[0];
  if (repeat.parts[0].kind != Node::Kind::characters) return {};
  if (repeat.times.min <= kFew && repeat.times.max.value_or(0) <= kFew) return {};
  return std::exchange(repeat.times, {});
}

Error refused(std::string why) { return {.message = std::move(why), .kind = ErrorKind::wrong_use}; }

template <class Compile>
auto compiled(std::string_view pattern, Compile compile) -> Expected<decltype(compile())> {
  if (pattern.size() > kMaxPatternBytes)
    return refused(fmt::format("the pattern has more than {} bytes", kMaxPatternBytes));
  try {
    return compile();
  } catch (const Refused& found) {
    return refused(found.why);
  } catch (const OutOfWork&) {
    return refused("the pattern needs too many states");
  }
}

}  // namespace

Expected<Pattern> compile_pattern(std::string_view pattern, Work& work) {
  return compiled(pattern, [&] {
    auto list = Parser(pattern).alternatives(Extent::found);
    const Repetitions length = take_length(list);
    return Pattern{.dfa = Builder{canonical_character, work}.dfa(list), .length = length};
  });
}

Expected<Dfa> compile_whole_text(std::string_view pattern, Work& work) {
  return compiled(pattern, [&] {
    const auto list = Parser(pattern).alternatives(Extent::whole);
    return Builder{raw_character, work}.dfa(list);
  });
}

}  // namespace gauntlet::engine::grammar
