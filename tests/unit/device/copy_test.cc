// SPDX-License-Identifier: Apache-2.0
#include "device/host/copy.h"

#include <gtest/gtest.h>

#include <string>

namespace memspan {
namespace {

TEST(CopyTest, CopiesEverySmallSizeAndNothingAround) {
  for (std::size_t bytes = 0; bytes <= 300; ++bytes) {
    std::string from(bytes, 'x');
    std::string to(bytes + 2, '.');
    copy_bytes(to.data() + 1, from.data(), bytes);
    EXPECT_EQ(to, "." + from + ".") << bytes;
  }
}

TEST(CopyTest, CopiesLargeSizesWholeAndNothingAround) {
  for (std::size_t bytes : {kLargeCopyBytes - 1, kLargeCopyBytes, 2 * kLargeCopyBytes + 3,
                            10 * kLargeCopyBytes, 40 * kLargeCopyBytes + 1}) {
    std::string from(bytes, 'x');
    for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<char>(i * 31 >> 3);
    std::string to(bytes + 2, '.');
    copy_bytes(to.data() + 1, from.data(), bytes);
    EXPECT_TRUE(to == "." + from + ".") << bytes;
  }
}

TEST(CopyTest, NothingFromNowhereIsFine) {
  copy_bytes(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace memspan
