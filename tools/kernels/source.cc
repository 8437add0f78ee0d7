// SPDX-License-Identifier: Apache-2.0
#include "kernels/source.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

namespace memspan {
namespace {

// A word, a number, a text or a sign, or what is between them.
struct Token {
  enum class Kind { kSpace, kWord, kLiteral, kSign } kind;
  std::string_view text;
};

bool is_in_word(char one) {
  return std::isalnum(static_cast<unsigned char>(one)) != 0 || one == '_' || one == '$' ||
         static_cast<unsigned char>(one) >= 0x80;
}

// The end of the text in quotes that begins at `begin`.
std::size_t end_of_quoted(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  std::size_t i = begin + 1;
  while (i < text.size() && text[i] != quote && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}
// The end of R"mark(...)mark", whose quote is at `begin`.
std::size_t end_of_raw(std::string_view text, std::size_t begin) {
  const std::size_t open = text.find('(', begin);
  if (open == std::string_view::npos) return text.size();
  std::string end = ")";
  end.append(text.substr(begin + 1, open - begin - 1)).append(1, '"');
  const std::size_t at = text.find(end, open);
  return at == std::string_view::npos ? text.size() : at + end.size();
}

Token next_token(std::string_view text, std::size_t begin, bool is_line_begin) {
  const char first = text[begin];
  const auto token = [&](Token::Kind kind, std::size_t end) {
    return Token{kind, text.substr(begin, end - begin)};
  };
  // A line marker of the preprocessor.
  if (is_line_begin && first == '#') {
    const std::size_t end = text.find('\n', begin);
    return token(Token::Kind::kSpace, end == std::string_view::npos ? text.size() : end);
  }
  if (std::isspace(static_cast<unsigned char>(first)) != 0) {
    std::size_t end = begin;
    // Up to the next line, which may be the preprocessor's.
    while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end])) != 0)
      if (text[end++] == '\n') break;
    return token(Token::Kind::kSpace, end);
  }
  if (first == '"' || first == '\'')
    return token(Token::Kind::kLiteral, end_of_quoted(text, begin));
  if (std::isdigit(static_cast<unsigned char>(first)) != 0) {
    std::size_t end = begin + 1;
    while (end < text.size() && (is_in_word(text[end]) || text[end] == '.' || text[end] == '\''))
      ++end;
    return token(Token::Kind::kLiteral, end);
  }
  if (is_in_word(first)) {
    std::size_t end = begin + 1;
    while (end < text.size() && is_in_word(text[end])) ++end;
    if (end < text.size() && text[end] == '"' && text[end - 1] == 'R')
      return token(Token::Kind::kLiteral, end_of_raw(text, end));
    return token(Token::Kind::kWord, end);
  }
  for (const std::string_view sign : {"<<<", ">>>"})
    if (text.substr(begin, sign.size()) == sign)
      return token(Token::Kind::kSign, begin + sign.size());
  return token(Token::Kind::kSign, begin + 1);
}

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  bool is_line_begin = true;
  for (std::size_t at = 0; at < text.size();) {
    const Token token = next_token(text, at, is_line_begin);
    is_line_begin = token.kind == Token::Kind::kSpace && token.text.back() == '\n';
    at += token.text.size();
    tokens.push_back(token);
  }
  return tokens;
}

constexpr std::string_view kBuffer = "__ubuf__";

class Translation {
 public:
  explicit Translation(std::string_view text) : tokens_(tokens_of(text)) {
    result_.reserve(text.size() + text.size() / 16);
  }

  std::string result() && {
    std::size_t at = 0;
    while (at < tokens_.size()) at = translate(at);
    return std::move(result_);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  bool is(std::size_t at, std::string_view text) const {
    return at < tokens_.size() && tokens_[at].text == text;
  }
  // The next token from `at` on that is not a space; the number of tokens if only spaces follow.
  std::size_t solid(std::size_t at) const {
    while (at < tokens_.size() && tokens_[at].kind == Token::Kind::kSpace) ++at;
    return at;
  }
  void note(std::size_t at) {
    if (tokens_[at].kind != Token::Kind::kSpace) last_ = tokens_[at].text;
    result_ += tokens_[at].text;
  }

  // Writes what begins at `at`; returns where the next part begins.
  std::size_t translate(std::size_t at) {
    const std::string_view text = tokens_[at].text;
    if (text == "<<<" && last_ != "operator" && closing_of_launch(at) != kNone) {
      launches_.push_back(closing_of_launch(at));
      result_ += " ->* ::memspan::device::on(";
      return at + 1;
    }
    if (!launches_.empty() && launches_.back() == at) {
      launches_.pop_back();
      result_ += ")";
      last_ = ")";
      return at + 1;
    }
    if (text == "(" && last_ != "sizeof")
      if (const std::size_t end = end_of_cast(at); end != kNone) return cast(at + 1, end);
    if (text == "reinterpret_cast")
      if (const std::size_t end = end_of_named_cast(at); end != kNone) {
        result_ += "::memspan::device::ub_cast";
        last_ = "ub_cast";
        return at + 1;
      }
    if (text == kBuffer) return at + 1;
    if (text == "attribute" && last_ == "inline") {  // a macro of the chip's compiler
      result_ += "__attribute__";
      last_ = "__attribute__";
      return at + 1;
    }
    note(at);
    return at + 1;
  }

  // The >>> for the <<< at `at`, if a ( follows.
  std::size_t closing_of_launch(std::size_t at) const {
    int depth = 0;
    for (std::size_t i = at + 1; i < tokens_.size(); ++i) {
      const std::string_view text = tokens_[i].text;
      if (text == "(" || text == "[" || text == "{") ++depth;
      if (text == ")" || text == "]" || text == "}") --depth;
      if (depth < 0 || (depth == 0 && text == ";")) return kNone;
      if (depth == 0 && text == ">>>") return is(solid(i + 1), "(") ? i : kNone;
    }
    return kNone;
  }

  // The ) of (__ubuf__ T*) before an operand.
  std::size_t end_of_cast(std::size_t at) const {
    bool is_of_buffer = false;
    std::string_view last;
    for (std::size_t i = at + 1; i < tokens_.size(); ++i) {
      if (tokens_[i].kind == Token::Kind::kSpace) continue;
      const std::string_view text = tokens_[i].text;
      if (text == ")") return is_of_buffer && last == "*" && is_operand(solid(i + 1)) ? i : kNone;
      if (text == "(" || text == ";" || text == "{" || text == ",") return kNone;
      is_of_buffer = is_of_buffer || text == kBuffer;
      last = text;
    }
    return kNone;
  }
  bool is_operand(std::size_t at) const {
    if (at >= tokens_.size()) return false;
    const Token& token = tokens_[at];
    if (token.kind == Token::Kind::kWord) return token.text != "const" && token.text != "noexcept";
    return token.kind == Token::Kind::kLiteral || token.text == "(" || token.text == "&" ||
           token.text == "*";
  }
  std::size_t cast(std::size_t from, std::size_t to) {
    result_ += "::memspan::device::UbCast<";
    for (std::size_t i = from; i < to; ++i)
      if (tokens_[i].text != kBuffer) note(i);
    result_ += ">{}->*";
    last_ = "->*";
    return to + 1;
  }

  // The > of reinterpret_cast<... __ubuf__ ...>.
  std::size_t end_of_named_cast(std::size_t at) const {
    std::size_t i = solid(at + 1);
    if (!is(i, "<")) return kNone;
    bool is_of_buffer = false;
    int depth = 0;
    for (; i < tokens_.size() && tokens_[i].text != ";"; ++i) {
      if (tokens_[i].text == "<") ++depth;
      if (tokens_[i].text == ">" && --depth == 0) return is_of_buffer ? i : kNone;
      is_of_buffer = is_of_buffer || tokens_[i].text == kBuffer;
    }
    return kNone;
  }

  const std::vector<Token> tokens_;
  std::vector<std::size_t> launches_;  // where those that are open end
  std::string_view last_;              // what was written last but for space
  std::string result_;
};

}  // namespace

std::string to_cxx(std::string_view text) {
  return Translation(text).result();
}

}  // namespace memspan
