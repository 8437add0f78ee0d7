// SPDX-License-Identifier: Apache-2.0
#include "transport/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memspan {
namespace {

using testing::HasSubstr;

class Unviable final : public Transport {
 public:
  std::string_view name() const override { return "unviable"; }
  Status viable() const override { return {Code::kNotSupported, "the weather is bad"}; }
  std::string domain() const override { return ""; }
  const Capabilities& capabilities() const override { return capabilities_; }
  Result<std::unique_ptr<Link>> connect(const PeerSegment&) override { return viable(); }

 private:
  Capabilities capabilities_;
};

class RegistryTest : public testing::Test {
 protected:
  RegistryTest() : range_(Reservation::make(1 << 20, nullptr).value()) {
    registry_.add("unviable", [] { return std::make_unique<Unviable>(); });
  }
  Reservation range_;
  TransportRegistry registry_;
};

TEST_F(RegistryTest, TakesTheFirstThatWorks) {
  add_builtin_transports(registry_, range_);
  EXPECT_EQ(registry_.choose("").value()->name(), "mapped");
  EXPECT_EQ(registry_.choose("fake").value()->name(), "fake");
}

TEST_F(RegistryTest, SaysWhyNoneWorks) {
  auto chosen = registry_.choose("");
  EXPECT_EQ(chosen.code(), Code::kUnavailable);
  EXPECT_THAT(chosen.status().message(), HasSubstr("unviable: the weather is bad"));
}

TEST_F(RegistryTest, NamesWhatThereIsWhenAskedForAnother) {
  add_builtin_transports(registry_, range_);
  auto chosen = registry_.choose("pigeon");
  EXPECT_EQ(chosen.code(), Code::kNotFound);
  EXPECT_THAT(chosen.status().message(),
              HasSubstr("\"pigeon\"; allowed are unviable, mapped, fake"));
}

}  // namespace
}  // namespace memspan
