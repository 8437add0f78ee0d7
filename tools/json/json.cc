// SPDX-License-Identifier: Apache-2.0
#include "json/json.h"

#include <fmt/format.h>

#include <cmath>

namespace memspan::json {
namespace {

constexpr int kOneLine = -1;

const Value& null_value() {
  static const Value kNull;
  return kNull;
}

void append_text(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
          out += c;
    }
  }
  out += '"';
}

void append_line(std::string& out, int indentation) {
  if (indentation == kOneLine) return;
  out += '\n';
  out.append(static_cast<std::size_t>(indentation), ' ');
}

int deeper(int indentation) {
  return indentation == kOneLine ? kOneLine : indentation + 2;
}

}  // namespace

double Value::number() const {
  const double* found = std::get_if<double>(&data_);
  return found == nullptr ? 0 : *found;
}

bool Value::truth() const {
  const bool* found = std::get_if<bool>(&data_);
  return found != nullptr && *found;
}

const std::string& Value::text() const {
  static const std::string kNothing;
  const std::string* found = std::get_if<std::string>(&data_);
  return found == nullptr ? kNothing : *found;
}

const Value::Array& Value::array() const {
  static const Array kNothing;
  const Array* found = std::get_if<Array>(&data_);
  return found == nullptr ? kNothing : *found;
}

const Value::Object& Value::object() const {
  static const Object kNothing;
  const Object* found = std::get_if<Object>(&data_);
  return found == nullptr ? kNothing : *found;
}

const Value& Value::operator[](std::string_view name) const {
  for (const Member& member : object())
    if (member.first == name) return member.second;
  return null_value();
}

Value& Value::set(std::string name, Value value) {
  if (is_null()) data_ = Object();
  if (Object* members = std::get_if<Object>(&data_))
    members->emplace_back(std::move(name), std::move(value));
  return *this;
}

Value& Value::add(Value value) {
  if (is_null()) data_ = Array();
  if (Array* elements = std::get_if<Array>(&data_)) elements->push_back(std::move(value));
  return *this;
}

std::string Value::compact() const {
  std::string text;
  append(text, kOneLine);
  return text;
}

std::string Value::pretty() const {
  std::string text;
  append(text, 0);
  return text;
}

void Value::append(std::string& text, int indentation) const {
  if (const double* number = std::get_if<double>(&data_)) {
    text += std::isfinite(*number) ? fmt::format("{}", *number) : "null";
  } else if (const bool* truth = std::get_if<bool>(&data_)) {
    text += *truth ? "true" : "false";
  } else if (is_text()) {
    append_text(text, this->text());
  } else if (is_array() && !array().empty()) {
    const char* separator = "[";
    for (const Value& element : array()) {
      text += separator;
      append_line(text, deeper(indentation));
      element.append(text, deeper(indentation));
      separator = indentation == kOneLine ? ", " : ",";
    }
    append_line(text, indentation);
    text += ']';
  } else if (is_object() && !object().empty()) {
    const char* separator = "{";
    for (const Member& member : object()) {
      text += separator;
      append_line(text, deeper(indentation));
      append_text(text, member.first);
      text += ": ";
      member.second.append(text, deeper(indentation));
      separator = indentation == kOneLine ? ", " : ",";
    }
    append_line(text, indentation);
    text += '}';
  } else {
    text += is_array() ? "[]" : is_object() ? "{}" : "null";
  }
}

}  // namespace memspan::json
