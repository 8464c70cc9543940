#include "engine/grammar/regex.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "engine/grammar/characters.h"
#include "model/utf8.h"

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

  /// Top-level alternatives, those without an anchor widened by any text on that side.
  Node pattern() {
    Node all{.kind = Node::Kind::choice};
    do {
      Node one;
      if (!take('^')) one.parts.push_back(any_text());
      one.parts.push_back(sequence(0));
      if (!take('$')) one.parts.push_back(any_text());
      all.parts.push_back(std::move(one));
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
        if (take('?') && !take(':')) refuse("a group that looks around or has a name");
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

void build(Nfa& nfa, Nfa::State from, Nfa::State to, const Node& node) {
  switch (node.kind) {
    case Node::Kind::characters:
      return canonical_character(nfa, from, to, node.set);
    case Node::Kind::choice:
      for (const Node& part : node.parts) build(nfa, from, to, part);
      return;
    case Node::Kind::repeat:
      return nfa.repeat(from, to, node.times,
                        [&](Nfa::State a, Nfa::State b) { build(nfa, a, b, node.parts[0]); });
    case Node::Kind::sequence:
      for (const Node& part : node.parts) {
        const Nfa::State next = nfa.add();
        build(nfa, from, next, part);
        from = next;
      }
      return nfa.empty(from, to);
  }
}

}  // namespace

Expected<Dfa> compile_pattern(std::string_view pattern) {
  const auto refused = [](std::string why) {
    return Error{.message = std::move(why), .kind = ErrorKind::wrong_use};
  };
  if (pattern.size() > kMaxPatternBytes)
    return refused(fmt::format("the pattern has more than {} bytes", kMaxPatternBytes));
  try {
    const Node root = Parser(pattern).pattern();
    auto dfa =
        dfa_of([&](Nfa& nfa, Nfa::State from, Nfa::State to) { build(nfa, from, to, root); });
    if (!dfa) return refused("the pattern needs too many states");
    return std::move(*dfa);
  } catch (const Refused& found) {
    return refused(found.why);
  }
}

}  // namespace gauntlet::engine::grammar
