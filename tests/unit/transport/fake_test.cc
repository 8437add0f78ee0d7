// SPDX-License-Identifier: Apache-2.0
#include "transport/fake/fake_transport.h"

#include <gtest/gtest.h>

#include "device/reservation.h"
#include "transport/mapped/mapped_transport.h"

namespace memspan {
namespace {

class FakeTest : public testing::Test {
 protected:
  FakeTest()
      : pages_(Pages::create(4096, "test").value()),
        range_(Reservation::make(4096, nullptr).value()),
        transport_(make_fake_transport(make_mapped_transport(range_), faults_)) {
    link_ = transport_->connect(PeerSegment{0, &pages_, 0, 4096, 0}).value();
  }
  std::uint64_t word() { return *reinterpret_cast<std::uint64_t*>(range_.base()); }

  Pages pages_;
  Reservation range_;
  FakeFaults faults_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Link> link_;
};

TEST_F(FakeTest, HoldsPutsBackUntilQuiet) {
  faults_.hold_puts = true;
  std::uint64_t value = 5;
  ASSERT_TRUE(link_->put(0, &value, sizeof value).is_ok());
  EXPECT_EQ(word(), 0u);
  ASSERT_TRUE(link_->quiet().is_ok());
  EXPECT_EQ(word(), 5u);
}

TEST_F(FakeTest, FailsTheOperationThatIsOrderedToFail) {
  int puts = 0;
  faults_.before = [&](std::string_view operation) {
    if (operation == "put" && ++puts == 2) return Status(Code::kUnreachable, "the cable is cut");
    return Status::ok();
  };
  std::uint64_t value = 1;
  EXPECT_TRUE(link_->put(0, &value, sizeof value).is_ok());
  value = 2;
  EXPECT_EQ(link_->put(0, &value, sizeof value).code(), Code::kUnreachable);
  EXPECT_EQ(word(), 1u);
}

}  // namespace
}  // namespace memspan
