// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "json/json.h"

namespace memspan::json {
namespace {

constexpr int kMostDepth = 64;

// One text, read from its begin to its end.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<Value> whole() {
    MEMSPAN_TRY_ASSIGN(Value value, read_value(0), "JSON");
    skip_blanks();
    if (at_ != text_.size()) return wrong("nothing may follow");
    return value;
  }

 private:
  Status wrong(std::string_view what) const {
    return {Code::kInvalidArgument, fmt::format("byte {}: {}", at_, what)};
  }
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string::npos)
      ++at_;
  }
  // Whether it comes next; then it is behind us.
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Result<Value> read_value(int depth) {  // NOLINT(misc-no-recursion): as deep as kMostDepth
    if (depth == kMostDepth) return wrong("it is nested too deeply");
    skip_blanks();
    if (take("null")) return Value();
    if (take("true")) return Value(true);
    if (take("false")) return Value(false);
    if (take("{")) return read_object(depth);
    if (take("[")) return read_array(depth);
    if (text_.substr(at_, 1) != "\"") return read_number();
    MEMSPAN_TRY_ASSIGN(std::string text, read_text(), "JSON");
    return Value(std::move(text));
  }

  Result<Value> read_array(int depth) {  // NOLINT(misc-no-recursion): the same
    Value::Array elements;
    skip_blanks();
    if (take("]")) return Value(std::move(elements));
    for (;;) {
      MEMSPAN_TRY_ASSIGN(Value element, read_value(depth + 1), "JSON");
      elements.push_back(std::move(element));
      skip_blanks();
      if (take("]")) return Value(std::move(elements));
      if (!take(",")) return wrong("\",\" or \"]\" is expected");
    }
  }

  Result<Value> read_object(int depth) {  // NOLINT(misc-no-recursion): the same
    Value::Object members;
    skip_blanks();
    if (take("}")) return Value(std::move(members));
    for (;;) {
      skip_blanks();
      MEMSPAN_TRY_ASSIGN(std::string name, read_text(), "JSON");
      skip_blanks();
      if (!take(":")) return wrong("\":\" is expected");
      MEMSPAN_TRY_ASSIGN(Value value, read_value(depth + 1), "JSON");
      members.emplace_back(std::move(name), std::move(value));
      skip_blanks();
      if (take("}")) return Value(std::move(members));
      if (!take(",")) return wrong("\",\" or \"}\" is expected");
    }
  }

  Result<Value> read_number() {
    double number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error != std::errc() || end == begin) return wrong("a value is expected");
    at_ += static_cast<std::size_t>(end - begin);
    return Value(number);
  }

  Result<std::string> read_text() {
    if (!take("\"")) return wrong("a text is expected");
    std::string text;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return text;
      if (c != '\\') {
        text += c;
        continue;
      }
      MEMSPAN_PASS(read_escape(text));
    }
    return wrong("the text has no end");
  }

  Status read_escape(std::string& text) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const std::string_view name = text_.substr(at_, 1);
    if (const std::size_t which = kNames.find(name); !name.empty() && which != std::string::npos) {
      text += kMeanings[which];
      ++at_;
      return Status::ok();
    }
    unsigned code = 0;
    const std::string_view digits = text_.substr(at_, 5);
    if (digits.size() < 5 || digits[0] != 'u') return wrong("there is no such escape");
    const auto [end, error] = std::from_chars(digits.data() + 1, digits.data() + 5, code, 16);
    // The tools print no other escapes: they print letters beyond ASCII unescaped.
    if (error != std::errc() || end != digits.data() + 5 || code > 0x7f)
      return wrong("only \\u0000 to \\u007f are read");
    text += static_cast<char>(code);
    at_ += 5;
    return Status::ok();
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<Value> parse(std::string_view text) {
  return Reader(text).whole();
}

}  // namespace memspan::json
