// SPDX-License-Identifier: Apache-2.0
#include "world/carrier_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/log.h"
#include "net/own_addresses.h"

namespace memspan {
namespace {

using testing::HasSubstr;

constexpr const char* kVariables[] = {
    "MEMSPAN_CARRIER",      "MEMSPAN_NET",           "MEMSPAN_TRUSTED_FABRIC", "UCX_NET_DEVICES",
    "MEMSPAN_ENCRYPT_DATA", "MEMSPAN_SILENCE_LIMIT", "MEMSPAN_NATIVE_RMA"};

class CarrierChoiceTest : public testing::Test {
 protected:
  CarrierChoiceTest() { forget(); }
  ~CarrierChoiceTest() override { forget(); }
  static void forget() {
    for (const char* variable : kVariables) unsetenv(variable);
  }
  static void say(const char* text) { setenv("MEMSPAN_CARRIER", text, 1); }
  static SocketOptions sockets(Reach reach, const std::optional<Endpoint>& store = std::nullopt) {
    const CarrierOptions options = choose_carrier(reach, store).value();
    EXPECT_EQ(options.kind, CarrierOptions::Kind::kSocket);
    return options.sockets;
  }
  static Status refusal(Reach reach = Reach::kOneKernel) {
    return choose_carrier(reach, std::nullopt).status();
  }
};

TEST_F(CarrierChoiceTest, IsUnixInOneKernel) {
  EXPECT_EQ(sockets(Reach::kOneKernel).family, SocketOptions::Family::kUnix);
}

// Of a store at this host's loopback, and so at the loopback of the one host that has the store.
std::string address_for_others() {
  return first_address().value_or("127.0.0.1");
}

TEST_F(CarrierChoiceTest, IsTheAddressThatLeadsToTheStore) {
  const std::string own = address_for_others();
  for (const char* text : {"", "socket"}) {
    if (*text != 0) say(text);
    const auto options = sockets(Reach::kNetwork, Endpoint{own, 1});
    EXPECT_EQ(options.family, SocketOptions::Family::kTcp);
    EXPECT_EQ(options.host, own);
  }
}

TEST_F(CarrierChoiceTest, IsNoLoopbackWhereThereIsAnotherAddress) {
  EXPECT_EQ(sockets(Reach::kNetwork, Endpoint{"127.0.0.1", 1}).host, address_for_others());
}

TEST_F(CarrierChoiceTest, EncryptsWhereItIsAskedTo) {
  EXPECT_FALSE(choose_carrier(Reach::kNetwork, Endpoint{"127.0.0.1", 1})->encrypts);
  setenv("MEMSPAN_ENCRYPT_DATA", "1", 1);
  EXPECT_TRUE(choose_carrier(Reach::kNetwork, Endpoint{"127.0.0.1", 1})->encrypts);
  EXPECT_TRUE(choose_carrier(Reach::kOneKernel, std::nullopt)->encrypts);
  say("ucx");
  EXPECT_EQ(refusal().code(), Code::kNotSupported);
  EXPECT_THAT(refusal().message(), HasSubstr("ucx, which does not encrypt; socket does"));
  setenv("MEMSPAN_ENCRYPT_DATA", "yes", 1);
  EXPECT_EQ(refusal().code(), Code::kInvalidArgument);
  EXPECT_THAT(refusal().message(), HasSubstr("MEMSPAN_ENCRYPT_DATA"));
}

TEST_F(CarrierChoiceTest, BearsNoLongSilenceOfOtherHosts) {
  const auto limit = [] {
    return choose_carrier(Reach::kNetwork, Endpoint{"127.0.0.1", 1})->silence_limit;
  };
  EXPECT_EQ(limit(), std::chrono::seconds(2));
  setenv("MEMSPAN_SILENCE_LIMIT", "500ms", 1);
  EXPECT_EQ(limit(), std::chrono::milliseconds(500));
  EXPECT_EQ(choose_carrier(Reach::kOneKernel, std::nullopt)->silence_limit, Duration::max())
      << "the kernel tells of deaths";
  setenv("MEMSPAN_SILENCE_LIMIT", "0s", 1);
  EXPECT_EQ(limit(), Duration::max());
  for (const char* text : {"", "2", "499ms", "-1s", "2h", "61m", "3601s"}) {
    setenv("MEMSPAN_SILENCE_LIMIT", text, 1);
    EXPECT_EQ(refusal(Reach::kNetwork).code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(refusal(Reach::kNetwork).message(), HasSubstr("MEMSPAN_SILENCE_LIMIT")) << text;
  }
}

TEST_F(CarrierChoiceTest, IsWhatTheVariableSays) {
  say("tcp");
  EXPECT_EQ(sockets(Reach::kOneKernel).host, "127.0.0.1");
  say("tcp:127.0.0.2");
  EXPECT_EQ(sockets(Reach::kNetwork).host, "127.0.0.2");
  say("unix");
  EXPECT_EQ(sockets(Reach::kNetwork).family, SocketOptions::Family::kUnix);
}

TEST_F(CarrierChoiceTest, RefusesAnythingElse) {
  for (const char* text : {"rdma", "tcp:", "tcp:localhost", "TCP", "unix:x", "ucx:x", ""}) {
    say(text);
    EXPECT_EQ(refusal().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(refusal().message(), HasSubstr("allowed are socket, ucx, unix, tcp")) << text;
  }
}

TEST_F(CarrierChoiceTest, SaysOnceWhatServesANetworkWhenNobodyAsked) {
  static std::vector<std::string> lines;
  lines.clear();
  const LogLevel before = log_level();
  set_log_level(LogLevel::kInfo);
  set_log_sink([](int, const char* line) { lines.emplace_back(line); });
  sockets(Reach::kNetwork, Endpoint{"127.0.0.1", 1});
  EXPECT_THAT(lines,
              testing::ElementsAre(testing::AllOf(
                  HasSubstr("TCP sockets, from " + address_for_others()), HasSubstr("UCX is"))));
  lines.clear();
  sockets(Reach::kOneKernel);
  say("tcp");
  sockets(Reach::kNetwork, Endpoint{"127.0.0.1", 1});
  EXPECT_THAT(lines, testing::IsEmpty());
  set_log_sink(nullptr);
  set_log_level(before);
}

TEST_F(CarrierChoiceTest, ANetworkIsNamedByAddressOrInterface) {
  setenv("MEMSPAN_NET", "127.0.0.3", 1);
  EXPECT_EQ(sockets(Reach::kNetwork).host, "127.0.0.3");
  setenv("MEMSPAN_NET", "lo", 1);
  EXPECT_EQ(sockets(Reach::kNetwork).host, "127.0.0.1");
  for (const char* text : {"no-such-interface", "", "1.2.3"}) {
    setenv("MEMSPAN_NET", text, 1);
    EXPECT_EQ(refusal(Reach::kNetwork).code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(refusal(Reach::kNetwork).message(), HasSubstr("MEMSPAN_NET is \"")) << text;
  }
}

TEST_F(CarrierChoiceTest, UcxUsesNoNetworkThatNobodyTrusts) {
  say("ucx");
  setenv("MEMSPAN_NET", "192.0.2.77", 1);
  EXPECT_EQ(refusal(Reach::kNetwork).code(), Code::kAuth);
  EXPECT_THAT(refusal(Reach::kNetwork).message(), HasSubstr("192.0.2.77"));
  EXPECT_THAT(refusal(Reach::kNetwork).message(), HasSubstr("MEMSPAN_TRUSTED_FABRIC"));
  setenv("MEMSPAN_TRUSTED_FABRIC", "192.0.2.0/24", 1);
  EXPECT_NE(refusal(Reach::kNetwork).code(), Code::kAuth);
  setenv("UCX_NET_DEVICES", "eth0", 1);
  EXPECT_EQ(refusal(Reach::kNetwork).code(), Code::kAuth);
  EXPECT_THAT(refusal(Reach::kNetwork).message(), HasSubstr("with UCX_NET_DEVICES set"));
  setenv("MEMSPAN_TRUSTED_FABRIC", "1", 1);
  EXPECT_NE(refusal(Reach::kNetwork).code(), Code::kAuth);
  setenv("MEMSPAN_TRUSTED_FABRIC", "some", 1);
  EXPECT_EQ(refusal(Reach::kNetwork).code(), Code::kInvalidArgument);
}

TEST_F(CarrierChoiceTest, UcxIsHeldToItsNetwork) {
  if (!has_ucx_module()) {
    say("ucx");
    EXPECT_EQ(refusal().code(), Code::kNotSupported);
    EXPECT_THAT(refusal().message(), HasSubstr("no libmemspan_ucx.so"));
    GTEST_SKIP() << "does not apply: the carrier over UCX is not built";
  }
  say("ucx");
  const CarrierOptions options = choose_carrier(Reach::kOneKernel, std::nullopt).value();
  EXPECT_EQ(options.kind, CarrierOptions::Kind::kUcx);
  EXPECT_EQ(options.ucx.host, "127.0.0.1");
  EXPECT_EQ(options.ucx.device, "lo");
  setenv("MEMSPAN_TRUSTED_FABRIC", "1", 1);
  EXPECT_EQ(choose_carrier(Reach::kOneKernel, std::nullopt).value().ucx.device, "");
#ifdef MEMSPAN_NATIVE_RMA
  EXPECT_TRUE(options.ucx.is_native);
#else
  setenv("MEMSPAN_NATIVE_RMA", "1", 1);
  EXPECT_EQ(refusal().code(), Code::kNotSupported);
#endif
  setenv("MEMSPAN_NATIVE_RMA", "0", 1);
  EXPECT_FALSE(choose_carrier(Reach::kOneKernel, std::nullopt).value().ucx.is_native);
  setenv("MEMSPAN_NATIVE_RMA", "yes", 1);
  EXPECT_EQ(refusal().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace memspan
