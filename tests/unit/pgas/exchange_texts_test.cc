// SPDX-License-Identifier: Apache-2.0
#include "pgas/exchange_texts.h"

#include "unit/pgas/thread_job.h"

namespace memspan {
namespace {

class ExchangeTextsTest : public testing::TestWithParam<JobShape> {};
INSTANTIATE_TEST_SUITE_P(Jobs, ExchangeTextsTest, all_job_shapes(), job_name);

// Of no bytes, of some, of exactly a barrier's words, and cut at the most.
TEST_P(ExchangeTextsTest, GivesEverybodysTextOnAllMembers) {
  run_job(GetParam(), [](Team& team) {
    const Exchange exchange = exchange_by_barriers(team, "test");
    const auto text_of = [](int member, std::size_t length) {
      std::string text(length, static_cast<char>('a' + member));
      for (std::size_t i = 0; i < length; i += 7) text[i] = static_cast<char>(i);
      return text;
    };
    for (const std::size_t base :
         {std::size_t{0}, std::size_t{1}, std::size_t{56}, std::size_t{300}, kMostTextBytes}) {
      const auto length = [&](int member) { return base + (member % 2 == 0 ? 0 : 5); };
      const auto all = exchange(text_of(team.index(), length(team.index())));
      ASSERT_TRUE(all.is_ok()) << all.status().to_string();
      ASSERT_EQ(all->size(), static_cast<std::size_t>(team.size()));
      for (int member = 0; member < team.size(); ++member) {
        std::string expected = text_of(member, length(member));
        if (expected.size() > kMostTextBytes) expected.resize(kMostTextBytes);
        EXPECT_EQ((*all)[static_cast<std::size_t>(member)], expected);
      }
    }
  });
}

}  // namespace
}  // namespace memspan
