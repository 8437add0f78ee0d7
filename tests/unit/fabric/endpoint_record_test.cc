// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/endpoint_record.h"

#include <gtest/gtest.h>

namespace memspan::transfer {
namespace {

EndpointRecord some_record() {
  return {.name = "10.0.0.1:6000",
          .generation = "0123456789abcdef",
          .role = Role::kReceiver,
          .broker_address = "socket nonce",
          .who = {.session = 12, .process = 4711, .host = {"host", "its name"}},
          .renewals = 3};
}

TEST(EndpointRecordTest, IsReadAsItWasWritten) {
  const auto read = decode_record(encode(some_record()));
  ASSERT_TRUE(read.is_ok());
  EXPECT_EQ(*read, some_record());
  EXPECT_EQ(read->who.name(), "process 4711 on host its name");
}

TEST(EndpointRecordTest, NothingElseIsRead) {
  const std::string bytes = encode(some_record());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_record(bytes.substr(0, length)).is_ok()) << length;
  EXPECT_FALSE(decode_record(bytes + "x").is_ok());
  std::string other = bytes;
  other[0] = 9;
  EXPECT_FALSE(decode_record(other).is_ok());
  EndpointRecord wrong = some_record();
  for (const int role : {0, 4, 255}) {
    wrong.role = static_cast<Role>(role);
    EXPECT_FALSE(decode_record(encode(wrong)).is_ok()) << role;
  }
}

TEST(EndpointRecordTest, NoKeyBeginsWithAnother) {
  EXPECT_FALSE(record_key("10.0.0.1:60000").starts_with(record_key("10.0.0.1:6000")));
}

TEST(EndpointRecordTest, ItsKeysSayWhoseTheyAre) {
  EXPECT_EQ(name_of_key(record_key("10.0.0.1:6000")), "10.0.0.1:6000");
  EXPECT_EQ(name_of_key(destroyed_key(some_record())), some_record().name);
  for (const char* other : {"", "t", "trans/"}) EXPECT_EQ(name_of_key(other), "");
}

TEST(EndpointRecordTest, RolesReachTheOtherKindOrBoth) {
  for (const Role role : {Role::kSender, Role::kReceiver, Role::kBoth}) {
    EXPECT_EQ(may_reach(role, role), role == Role::kBoth);
    EXPECT_TRUE(may_reach(role, Role::kBoth) && may_reach(Role::kBoth, role));
  }
  EXPECT_TRUE(may_reach(Role::kSender, Role::kReceiver));
  EXPECT_TRUE(may_reach(Role::kReceiver, Role::kSender));
}

}  // namespace
}  // namespace memspan::transfer
