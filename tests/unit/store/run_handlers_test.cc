// SPDX-License-Identifier: Apache-2.0
#include "store/run_handlers.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace memspan {
namespace {

TEST(RunHandlersTest, AHandlerThatThrowsIsReportedAndTheOthersRun) {
  asio::io_context context;
  std::vector<std::string> seen;
  asio::post(context, [&] { seen.emplace_back("first"); });
  asio::post(context, []() { throw std::bad_alloc(); });
  asio::post(context, [&] { seen.emplace_back("second"); });
  asio::post(context, []() { throw std::runtime_error("no reason"); });
  asio::post(context, [&] { seen.emplace_back("third"); });
  run_handlers(context, [&](const std::exception& error) { seen.emplace_back(error.what()); });
  EXPECT_EQ(seen, (std::vector<std::string>{"first", std::bad_alloc().what(), "second", "no reason",
                                            "third"}));
}

}  // namespace
}  // namespace memspan
