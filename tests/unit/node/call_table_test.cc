// SPDX-License-Identifier: Apache-2.0
#include "observe/call_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace memspan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The words of each row.
std::vector<std::vector<std::string>> rows_of(const CallTable& table) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(table.rows("now"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    rows.emplace_back(std::istream_iterator<std::string>(words),
                      std::istream_iterator<std::string>());
  }
  return rows;
}

TEST(CallTableTest, CountsAndTimesWhatEndedWell) {
  const auto table = std::make_unique<CallTable>();
  for (int i = 0; i < 5; ++i) table->begin("put");
  table->end("put", 1000, true);
  table->end("put", 4000, true);
  table->end("put", 900'000, false);
  table->begin("get");
  EXPECT_THAT(
      rows_of(*table),
      ElementsAre(
          ElementsAre("now", "get", "1", "0", "0", "1", "0.000", "0.000", "0.000", "0.000"),
          ElementsAre("now", "put", "5", "2", "1", "2", "1.000", "4.000", "2.500", "5.000")));
}

TEST(CallTableTest, EqualTextsAreOneCall) {
  const auto table = std::make_unique<CallTable>();
  const std::string one = "call";
  const std::string other = "call";
  table->begin(one.c_str());
  table->begin(other.c_str());
  table->end(one.c_str(), 3000, true);
  table->end(other.c_str(), 2000, true);
  EXPECT_THAT(rows_of(*table), ElementsAre(ElementsAre("now", "call", "2", "2", "0", "0", "2.000",
                                                       "3.000", "2.500", "5.000")));
}

TEST(CallTableTest, ManyThreadsAndCalls) {
  const auto table = std::make_unique<CallTable>();
  std::vector<std::string> names;
  constexpr std::size_t kCalls = 300;
  for (std::size_t i = 0; i < kCalls; ++i) names.push_back("call" + std::to_string(i));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (const std::string& name : names) {
        table->begin(name.c_str());
        table->end(name.c_str(), 1000, true);
      }
    });
  for (std::thread& thread : threads) thread.join();
  const auto rows = rows_of(*table);
  EXPECT_EQ(rows.size(), kCalls);
  for (const auto& row : rows)
    EXPECT_EQ((std::vector<std::string>(row.begin() + 2, row.begin() + 6)),
              (std::vector<std::string>{"4", "4", "0", "0"}));
}

TEST(CallTableTest, AFileThatIsFullBeginsAgain) {
  const std::string path = testing::TempDir() + "ptracer_test.dat";
  std::filesystem::remove(path);
  forget_call_table_in_child();
  call_table().begin("a call");
  ASSERT_TRUE(add_call_table(path, true, 1 << 20).is_ok());
  const auto one = std::filesystem::file_size(path);
  ASSERT_TRUE(add_call_table(path, false, 1 << 20).is_ok());
  EXPECT_GT(std::filesystem::file_size(path), one);
  ASSERT_TRUE(add_call_table(path, false, one).is_ok());
  EXPECT_EQ(std::filesystem::file_size(path), one);
  ASSERT_TRUE(add_call_table(path, false, 1 << 20).is_ok());
  ASSERT_TRUE(add_call_table(path, true, 1 << 20).is_ok());
  EXPECT_EQ(std::filesystem::file_size(path), one);
  std::filesystem::remove(path);
  EXPECT_THAT(add_call_table("/no/where", true, 1).message(), HasSubstr("/no/where"));
}

}  // namespace
}  // namespace memspan
