// SPDX-License-Identifier: Apache-2.0
#include "json/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace memspan::json {
namespace {

std::string complaint(std::string_view text) {
  const auto parsed = parse(text);
  return parsed.is_ok() ? "" : parsed.status().message();
}

TEST(JsonTest, PrintsEveryKindOfValue) {
  const Value value = Value()
                          .set("text", "a \"quote\", a \\ and\na line\x01")
                          .set("number", 1.5)
                          .set("whole", std::uint64_t{1} << 52)
                          .set("truth", true)
                          .set("nothing", Value())
                          .set("list", Value().add(1).add("two"))
                          .set("empty", Value::Array());
  EXPECT_EQ(value.compact(),
            "{\"text\": \"a \\\"quote\\\", a \\\\ and\\na line\\u0001\", \"number\": 1.5, "
            "\"whole\": 4503599627370496, \"truth\": true, \"nothing\": null, "
            "\"list\": [1, \"two\"], \"empty\": []}");
}

TEST(JsonTest, WhatIsNoNumberIsNull) {
  EXPECT_EQ(Value(std::numeric_limits<double>::infinity()).compact(), "null");
}

TEST(JsonTest, IndentsByTwo) {
  EXPECT_EQ(Value().set("a", Value().add(1)).pretty(), "{\n  \"a\": [\n    1\n  ]\n}");
}

TEST(JsonTest, ReadsWhatItPrints) {
  const Value value = Value()
                          .set("text", "\t\"\\\x02 ü")
                          .set("list", Value().add(-2.5e-7).add(Value::Object()).add(false));
  for (const std::string& text : {value.compact(), value.pretty()}) {
    const auto again = parse(text);
    ASSERT_TRUE(again.is_ok()) << again.status().to_string();
    EXPECT_EQ(again->compact(), value.compact());
  }
}

TEST(JsonTest, FindsMembersAndElements) {
  const auto parsed = parse(R"({"a": {"b": [3, "x"]}, "c": null})");
  ASSERT_TRUE(parsed.is_ok());
  EXPECT_EQ((*parsed)["a"]["b"].array().at(0).number(), 3);
  EXPECT_EQ((*parsed)["a"]["b"].array().at(1).text(), "x");
  EXPECT_TRUE((*parsed)["c"].is_null());
  EXPECT_TRUE((*parsed)["none"]["deeper"].is_null());
}

TEST(JsonTest, SaysWhereATextIsWrong) {
  EXPECT_EQ(complaint("[1, 2"), "JSON: byte 5: \",\" or \"]\" is expected");
  EXPECT_EQ(complaint("{\"a\" 1}"), "JSON: byte 5: \":\" is expected");
  EXPECT_EQ(complaint("{} x"), "byte 3: nothing may follow");
  EXPECT_EQ(complaint("\"\\q\""), "JSON: byte 2: there is no such escape");
  EXPECT_EQ(complaint("\"open"), "JSON: byte 5: the text has no end");
  EXPECT_EQ(complaint(""), "JSON: byte 0: a value is expected");
  EXPECT_NE(complaint(std::string(100, '[')), "");
}

}  // namespace
}  // namespace memspan::json
