// SPDX-License-Identifier: Apache-2.0
// main of the unit programs. `--module keys` leaves the tests of keys_test.cc, of which
// --gtest_filter may choose some.
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

// a:b:c as its parts.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_of(const testing::TestInfo& test, const std::string& module) {
  const std::string_view path = test.file();
  return path.substr(path.rfind('/') + 1) == module + "_test.cc";
}

// The tests of the module that the filter's positive part chooses, as a filter; empty: none.
std::string chosen_of(const std::string& module, const std::string& positive) {
  const std::vector<std::string> patterns = parts_of(positive.empty() ? "*" : positive);
  std::string chosen;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      const std::string name = std::string(suite.name()) + "." + test.name();
      const auto matches = [&name](const std::string& pattern) {
        return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
      };
      if (is_of(test, module) && std::any_of(patterns.begin(), patterns.end(), matches)) {
        chosen += (chosen.empty() ? "" : ":") + name;
      }
    }
  }
  return chosen;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 1) return RUN_ALL_TESTS();
  if (argc != 3 || std::strcmp(argv[1], "--module") != 0) {
    std::fprintf(stderr, "%s: options are --module NAME and gtest's\n", argv[0]);
    return 2;
  }
  const std::string filter = testing::GTEST_FLAG(filter);
  const std::size_t minus = std::min(filter.find('-'), filter.size());
  const std::string chosen = chosen_of(argv[2], filter.substr(0, minus));
  if (chosen.empty()) {
    std::fprintf(stderr, "%s: no test of %s_test.cc matches \"%s\"\n", argv[0], argv[2],
                 filter.c_str());
    return 2;
  }
  testing::GTEST_FLAG(filter) = chosen + filter.substr(minus);
  return RUN_ALL_TESTS();
}
