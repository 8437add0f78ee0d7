// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace matmul {
namespace {

std::string parse(std::vector<std::string> words, Options& options) {
  words.insert(words.begin(), "matmul_allreduce");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return parse_options(static_cast<int>(words.size()), arguments.data(), options);
}

TEST(OptionsTest, ReadsShapeTypeAndSeed) {
  Options options;
  EXPECT_EQ(parse({"-M", "3", "-K", "5", "-N", "7", "-type", "bf16", "-seed", "9"}, options), "");
  EXPECT_EQ(options.m, 3u);
  EXPECT_EQ(options.k, 5u);
  EXPECT_EQ(options.n, 7u);
  EXPECT_EQ(options.type, ElementType::kBf16);
  EXPECT_EQ(options.seed, 9u);
}

TEST(OptionsTest, TakesFp16WhenNoTypeIsGiven) {
  Options options;
  EXPECT_EQ(parse({"-M=1", "--K", "1", "-N", "1"}, options), "");
  EXPECT_EQ(options.type, ElementType::kFp16);
}

TEST(OptionsTest, RefusesInOneLineThatNamesTheOption) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"-M", "1", "-K", "1"}, "-N"},
      {{"-M", "1", "-K", "1", "-N"}, "-N needs a value"},
      {{"-M", "0", "-K", "1", "-N", "1"}, "-M: \"0\""},
      {{"-M", "-4", "-K", "1", "-N", "1"}, "-M: \"-4\""},
      {{"-M", "1x", "-K", "1", "-N", "1"}, "-M: \"1x\""},
      {{"-M", "99999999999999999999", "-K", "1", "-N", "1"}, "-M"},
      {{"-M", "1", "-K", "1", "-N", "1", "-type", "fp8"}, "fp8"},
      {{"-M", "1", "-K", "1", "-N", "1", "-blas", "mkl"}, "mkl"},
      {{"-M", "1", "-K", "1", "-N", "1", "-send", "pigeon"}, "pigeon"},
      {{"-M", "1", "-K", "1", "-N", "1", "-blocks", "65"}, "65"},
      {{"-M", "1", "-K", "1", "-N", "1", "-blocks", "0"}, "-blocks"},
      {{"-M", "1", "-K", "1", "-N", "1", "-repeat", "0"}, "-repeat"},
      {{"-M", "1", "-K", "1", "-N", "1", "-colour", "red"}, "unknown option -colour"},
      {{"-M", "1", "-K", "1", "-N", "1", "more"}, "more"},
  };
  for (const auto& [words, named] : cases) {
    Options options;
    std::string wrong = parse(words, options);
    EXPECT_NE(wrong.find(named), std::string::npos) << wrong;
    EXPECT_EQ(wrong.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace matmul
