// SPDX-License-Identifier: Apache-2.0
#include "launcher/options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memspan::launcher {
namespace {

Result<std::optional<Options>> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "oshrun");
  return parse_options(static_cast<int>(words.size()), words.data());
}

Options parsed(std::vector<const char*> words) {
  auto options = parse(std::move(words));
  EXPECT_TRUE(options.is_ok()) << options.status().message();
  return options.is_ok() ? **options : Options();
}

TEST(OptionsTest, EndAtTheProgramsName) {
  Options options = parsed({"-n", "4", "--label", "prog", "-n", "5", "--timeout", "1"});
  EXPECT_EQ(options.processes(), 4);
  EXPECT_EQ(options.label, Label::kRank);
  EXPECT_FALSE(options.timeout);
  EXPECT_EQ(options.programs[0].command,
            (std::vector<std::string>{"prog", "-n", "5", "--timeout", "1"}));
}

TEST(OptionsTest, KnowEverySpellingOfTheNumberOfProcesses) {
  for (std::vector<const char*> words : std::vector<std::vector<const char*>>{
           {"-n", "3", "p"}, {"-n3", "p"}, {"-np", "3", "p"}, {"--np", "3", "p"}, {"--np=3", "p"}})
    EXPECT_EQ(parsed(words).processes(), 3) << words[0];
}

TEST(OptionsTest, TakeAValueThatLooksLikeAnOption) {
  EXPECT_EQ(parse({"-n", "-1", "p"}).code(), Code::kInvalidArgument);
  EXPECT_EQ(parsed({"-n", "1", "--env", "A=--label", "p"}).programs[0].environment,
            std::vector<std::string>{"A=--label"});
}

TEST(OptionsTest, TwoDashesEndThemToo) {
  EXPECT_EQ(parsed({"-n", "1", "--", "-odd-name"}).programs[0].command,
            std::vector<std::string>{"-odd-name"});
}

TEST(OptionsTest, AColonBeginsAnotherProgram) {
  Options options = parsed({"-n", "1", "-wdir", "/a", "a", "x", ":", "-n", "2", "--label", "b"});
  ASSERT_EQ(options.programs.size(), 2u);
  EXPECT_EQ(options.processes(), 3);
  EXPECT_EQ(options.programs[0].command, (std::vector<std::string>{"a", "x"}));
  EXPECT_EQ(options.programs[0].folder, "/a");
  EXPECT_EQ(options.programs[1].command, std::vector<std::string>{"b"});
  EXPECT_EQ(options.programs[1].folder, "");
  EXPECT_EQ(options.label, Label::kRank);
  EXPECT_EQ(parse({"-n", "16000", "a", ":", "-n", "16000", "b"}).code(), Code::kInvalidArgument);
}

TEST(OptionsTest, SimulatedHostsAreANumberOrTheirSizes) {
  auto hosts = [](std::vector<const char*> words) { return parsed(std::move(words)).hosts; };
  EXPECT_EQ(hosts({"-n", "4", "p"}), std::vector<int>());
  EXPECT_EQ(hosts({"-n", "4", "--simulate-hosts", "2", "p"}), (std::vector<int>{2, 2}));
  EXPECT_EQ(hosts({"-n", "5", "--simulate-hosts=3", "p"}), (std::vector<int>{2, 2, 1}));
  EXPECT_EQ(hosts({"-n", "4", "--simulate-hosts", "1+3", "p"}), (std::vector<int>{1, 3}));
  EXPECT_EQ(hosts({"-n", "4", "--simulate-hosts", "1", "p"}), std::vector<int>());
  EXPECT_EQ(hosts({"-n", "2", "--simulate-hosts", "3", "a", ":", "-n", "1", "b"}),
            (std::vector<int>{1, 1, 1}));
}

TEST(OptionsTest, SimulatedHostsMustFitTheProcesses) {
  auto message = [](const char* hosts) {
    auto options = parse({"-n", "4", "--simulate-hosts", hosts, "p"});
    EXPECT_EQ(options.code(), Code::kInvalidArgument) << hosts;
    return std::string(options.status().message());
  };
  EXPECT_EQ(message("5"), "--simulate-hosts is 5, and there are only 4 processes (-n)");
  EXPECT_EQ(message("2+1"), "--simulate-hosts is \"2+1\", which makes 3 processes, and -n says 4");
  for (const char* text : {"0", "2+0", "", "+", "2+", "two", "-1", "2+2+0", "4+4"}) message(text);
}

TEST(OptionsTest, MessagesNameTheValueAndWhatIsAllowed) {
  auto options = parse({"-n", "0", "p"});
  ASSERT_FALSE(options.is_ok());
  EXPECT_EQ(options.status().message(),
            "-n is \"0\"; allowed is a whole number from 1 to 16384 [memspan-explain wrong-value]");
  EXPECT_EQ(parse({"-n", "1", "--timeout", "nan", "p"}).code(), Code::kInvalidArgument);
  EXPECT_EQ(parse({"-n", "1", "--env", "=x", "p"}).code(), Code::kInvalidArgument);
  EXPECT_EQ(parse({"-n", "1", "--bind", "socket", "p"}).code(), Code::kInvalidArgument);
  EXPECT_EQ(parse({"-n", "1"}).code(), Code::kInvalidArgument);
  EXPECT_EQ(parse({"p"}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace memspan::launcher
