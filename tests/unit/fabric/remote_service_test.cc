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
      .notify = Notify{"10.0.0.1:6000", {.message = "done", .counter = 3, .value = 7}}};
  const auto got = decode_endpoint_request(encode(request));
  ASSERT_TRUE(got.is_ok());
  ASSERT_EQ(got->resolve.size(), 1u);
  EXPECT_EQ(got->resolve[0].remote, 4096u);
  EXPECT_EQ(got->resolve[0].bytes, 12u);
  ASSERT_TRUE(got->notify.has_value());
  EXPECT_EQ(got->notify->sender, "10.0.0.1:6000");
  EXPECT_EQ(got->notify->action.message, "done");
  EXPECT_EQ(got->notify->action.counter, 3u);
  EXPECT_EQ(got->notify->action.value, 7u);
}

TEST(RemoteServiceTest, RefusesWhatIsNoRequest) {
  const std::string whole = encode(EndpointRequest{.resolve = {{}, {}}, .notify = Notify{}});
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(decode_endpoint_request(whole.substr(0, length)).code(), Code::kInvalidArgument);
  EXPECT_EQ(decode_endpoint_request(whole + "x").code(), Code::kInvalidArgument);
  EXPECT_EQ(decode_endpoint_request("\xff\xff\xff\xff").code(), Code::kInvalidArgument);
}

TEST(RemoteServiceTest, AnswersComeAsTheyWent) {
  const ResolveAnswer answer{.extents = {{.base = 4096,
                                          .region = {.id = {.number = 5, .generation = 9},
                                                     .bytes = 64,
                                                     .transport_key = {}}}},
                             .refusal = "it has registered nothing"};
  const auto got = decode_resolve_answer(encode(answer));
  ASSERT_TRUE(got.is_ok());
  ASSERT_EQ(got->extents.size(), 1u);
  EXPECT_EQ(got->extents[0].base, 4096u);
  EXPECT_EQ(got->extents[0].region, answer.extents[0].region);
  EXPECT_EQ(got->refusal, answer.refusal);
  EXPECT_EQ(decode_resolve_answer("nonsense").code(), Code::kInvalidArgument);
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
