// SPDX-License-Identifier: Apache-2.0
// Structs as JSON objects and back, by one list of their members:
//
//   template <typename Field, json::Of<Plan> Thing>
//   void fields(Field& field, Thing& plan) {
//     field("tests", plan.tests);
//     field("seconds", plan.seconds);
//   }
//
//   json::written(plan).compact();
//   MEMSPAN_PASS(json::read(value, plan));  // every member must exist
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "json/json.h"

namespace memspan::json {

// A `T` or a `const T`.
template <typename Thing, typename T>
concept Of = std::same_as<std::remove_const_t<Thing>, T>;

using Texts = std::vector<std::pair<std::string, std::string>>;  // an object of texts

// The path in read()'s messages: "figures[3].ns".
inline std::string member_name(const std::string& whole, std::string_view name) {
  return whole.empty() ? std::string(name) : fmt::format("{}.{}", whole, name);
}

template <typename T>
Value written(const T& thing) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return thing;
  } else if constexpr (std::is_same_v<T, Texts>) {
    Value object{Value::Object()};
    for (const auto& [name, text] : thing) object.set(name, text);
    return object;
  } else if constexpr (requires { thing.begin(); }) {
    Value array{Value::Array()};
    for (const auto& element : thing) array.add(written(element));
    return array;
  } else {
    Value object{Value::Object()};
    auto field = [&](const char* name, const auto& member) { object.set(name, written(member)); };
    fields(field, thing);
    return object;
  }
}

template <typename T>
Status read_number(const Value& value, const std::string& name, T& thing) {
  if (!value.is_number()) return {Code::kInvalidArgument, fmt::format("\"{}\" is no number", name)};
  const double number = value.number();
  if constexpr (std::is_integral_v<T>) {
    constexpr double kMost = 9007199254740992;  // 2^53: beyond it not every whole number is one
    const double most = std::min(kMost, static_cast<double>(std::numeric_limits<T>::max()));
    const double least = std::is_signed_v<T> ? -most : 0;
    if (!(number >= least && number <= most))
      return {Code::kInvalidArgument,
              fmt::format("\"{}\" is {}; allowed are {} to {}", name, number, least, most)};
  }
  thing = static_cast<T>(number);
  return Status::ok();
}

// kInvalidArgument names a member that is missing or of another kind; `thing` is then half read.
template <typename T>
Status read(const Value& value, T& thing, const std::string& name = {}) {
  const auto wrong = [&](std::string_view kind) {
    return Status(Code::kInvalidArgument, name.empty() ? fmt::format("it is no {}", kind)
                                          : value.is_null()
                                              ? fmt::format("there is no \"{}\"", name)
                                              : fmt::format("\"{}\" is no {}", name, kind));
  };
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_truth()) return wrong("true or false");
    thing = value.truth();
  } else if constexpr (std::is_arithmetic_v<T>) {
    if (value.is_null()) return wrong("number");
    return read_number(value, name, thing);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_text()) return wrong("text");
    thing = value.text();
  } else if constexpr (std::is_same_v<T, Texts>) {
    if (!value.is_object()) return wrong("object");
    for (const auto& [key, text] : value.object()) {
      std::string read_text;
      MEMSPAN_PASS(read(text, read_text, member_name(name, key)));
      thing.emplace_back(key, std::move(read_text));
    }
  } else if constexpr (requires { thing.emplace_back(); }) {
    if (!value.is_array()) return wrong("array");
    for (const Value& element : value.array()) {
      const std::string its_name = fmt::format("{}[{}]", name, thing.size());
      MEMSPAN_PASS(read(element, thing.emplace_back(), its_name));
    }
  } else {
    if (!value.is_object()) return wrong("object");
    Status status;
    auto field = [&](const char* key, auto& member) {
      if (status.is_ok()) status = read(value[key], member, member_name(name, key));
    };
    fields(field, thing);
    return status;
  }
  return Status::ok();
}

}  // namespace memspan::json
