// SPDX-License-Identifier: Apache-2.0
// JSON of the tools: values that are printed and read again. Small on purpose; what comes from a
// network is read elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/status.h"

namespace memspan::json {

// A value. Numbers are doubles, which keep whole numbers up to 2^53; objects keep their order.
class Value {
 public:
  using Array = std::vector<Value>;
  using Member = std::pair<std::string, Value>;
  using Object = std::vector<Member>;

  Value() = default;                                          // null
  Value(bool truth) : data_(truth) {}                         // NOLINT: a value of JSON
  Value(std::string text) : data_(std::move(text)) {}         // NOLINT: the same
  Value(std::string_view text) : data_(std::string(text)) {}  // NOLINT: the same
  Value(const char* text) : Value(std::string_view(text)) {}  // NOLINT: the same
  Value(Array elements) : data_(std::move(elements)) {}       // NOLINT: the same
  Value(Object members) : data_(std::move(members)) {}        // NOLINT: the same
  template <typename T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) Value(T number)
      : data_(static_cast<double>(number)) {}  // NOLINT: the same

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  bool is_truth() const { return std::holds_alternative<bool>(data_); }
  bool is_number() const { return std::holds_alternative<double>(data_); }
  bool is_text() const { return std::holds_alternative<std::string>(data_); }
  bool is_array() const { return std::holds_alternative<Array>(data_); }
  bool is_object() const { return std::holds_alternative<Object>(data_); }

  // The result for another kind of value: 0, false, "", nothing.
  double number() const;
  bool truth() const;
  const std::string& text() const;
  const Array& array() const;
  const Object& object() const;
  // null when this is not an object or lacks the member.
  const Value& operator[](std::string_view name) const;

  // Appends a member; a value that is null becomes an object.
  Value& set(std::string name, Value value);
  // Appends an element; a value that is null becomes an array.
  Value& add(Value value);

  // On one line, or with two blanks an indentation. Infinities and NaN become null.
  std::string compact() const;
  std::string pretty() const;

 private:
  void append(std::string& text, int indentation) const;
  std::variant<std::monostate, bool, double, std::string, Array, Object> data_;
};

// kInvalidArgument says what is wrong, and at which byte.
Result<Value> parse(std::string_view text);

}  // namespace memspan::json
