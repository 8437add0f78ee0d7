// SPDX-License-Identifier: Apache-2.0
// What endpoints on different hosts say to each other, and services by name.
#include "fabric/transfer/remote_service.h"

#include <gtest/gtest.h>

#include "fabric/remote_access.h"

namespace memspan::transfer {
namespace {

TEST(RemoteServiceTest, RequestsComeAsTheyWent) {
  const EndpointRequest request{
      .resolve = {{.local = nullptr, .remote = 4096, .bytes = 12}},
      .is_notify = true,
      .sender = "10.0.0.1:6000",
      .action = {
          .has_message = true, .message = "done", .has_counter = true, .counter = 3, .value = 7}};
  const auto got = decode_message<EndpointRequest>(encode_record(request));
  ASSERT_TRUE(got.is_ok());
  ASSERT_EQ(got->resolve.size(), 1u);
  EXPECT_EQ(got->resolve[0].remote, 4096u);
  EXPECT_EQ(got->resolve[0].bytes, 12u);
  ASSERT_TRUE(got->is_notify);
  EXPECT_EQ(got->sender, "10.0.0.1:6000");
  EXPECT_TRUE(got->action.has_message);
  EXPECT_EQ(got->action.message, "done");
  EXPECT_TRUE(got->action.has_counter);
  EXPECT_EQ(got->action.counter, 3u);
  EXPECT_EQ(got->action.value, 7u);
}

TEST(RemoteServiceTest, RefusesWhatIsNoRequest) {
  const std::string whole = encode_record(EndpointRequest{.resolve = {{}, {}}, .is_notify = true});
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(decode_message<EndpointRequest>(whole.substr(0, length)).code(),
              Code::kInvalidArgument);
  EXPECT_EQ(decode_message<EndpointRequest>(whole + "x").code(), Code::kInvalidArgument);
  EXPECT_EQ(decode_message<EndpointRequest>("\xff\xff\xff\xff").code(), Code::kInvalidArgument);
}

TEST(RemoteServiceTest, AnswersComeAsTheyWent) {
  const RemoteRegion region{.id = {.number = 5, .generation = 9}, .bytes = 64, .transport_key = {}};
  const ResolveAnswer answer{.extents = {{4096, region.encode()}},
                             .refusal = "it has registered nothing"};
  const auto got = decode_message<ResolveAnswer>(encode_record(answer));
  ASSERT_TRUE(got.is_ok());
  EXPECT_EQ(got->extents, answer.extents);
  EXPECT_EQ(*RemoteRegion::decode(got->extents[0].second), region);
  EXPECT_EQ(got->refusal, answer.refusal);
  EXPECT_EQ(decode_message<ResolveAnswer>("nonsense").code(), Code::kInvalidArgument);
}

TEST(ServicesTest, AnswerUntilTheyAreRemoved) {
  Services services;
  services.add("echo", [](std::string_view request) { return std::string(request); });
  EXPECT_EQ(*services.answer("echo", "hello"), "hello");
  services.remove("echo");
  EXPECT_EQ(services.answer("echo", "hello").code(), Code::kNotFound);
}

}  // namespace
}  // namespace memspan::transfer
