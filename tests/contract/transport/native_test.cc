// SPDX-License-Identifier: Apache-2.0
// One-sided access to a region that lasts: large transfers take it, the order of a link stays, and
// where it is not there, or has failed, all goes by messages. Through UCX, between processes whose
// UCX has shared memory of its own for it (support/ucx_shared_registrations.c), and by one that is
// made for tests (process_access.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "contract/transport/owner_process.h"
#include "contract/transport/process_access.h"
#include "support/message_counters.h"
#include "transport/message/native_path.h"

namespace memspan::contract {
namespace {

using testing::HasSubstr;

constexpr auto kPromise = std::chrono::seconds(10);
constexpr std::size_t kLarge = std::size_t{1} << 20;

class NativeUse {
 protected:
  NativeUse(Backend owner, Backend user) : owner_(owner) {
    MessageOptions options = message_options(user, kUser);
    options.silence_limit = std::chrono::seconds(2);
    transport_ = MessageTransport::make(std::move(options)).value();
    link_ = transport_->connect(owner_.address());
  }
  RemotePlace at(std::uint64_t offset) { return {owner_.region(), offset}; }
  static std::vector<char> bytes_of(char first, std::size_t count = kLarge) {
    std::vector<char> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(first + i % 113);
    return bytes;
  }
  Status put(const std::vector<char>& bytes, std::uint64_t offset) {
    return link_->put(context_, at(offset), bytes.data(), bytes.size());
  }
  // In pieces that go by messages, or from mapped memory.
  std::vector<char> read_small(std::uint64_t offset, std::size_t count) {
    std::vector<char> bytes(count);
    for (std::size_t done = 0; done < count; done += kNativeFrom / 2)
      EXPECT_TRUE(link_
                      ->get(context_, bytes.data() + done, at(offset + done),
                            std::min(count - done, kNativeFrom / 2))
                      .is_ok());
    return bytes;
  }
  std::uint64_t count(std::string_view name) { return message_counter(*transport_, name).value(); }
  std::string at_owner(const std::string& name) { return owner_.ask("counter " + name); }

  OwnerProcess owner_;
  std::unique_ptr<MessageTransport> transport_;
  std::unique_ptr<Link> link_;
  OperationContext context_;
};

class NativeTest : public NativeUse, public testing::TestWithParam<Backend> {
 protected:
  NativeTest() : NativeUse(GetParam(), GetParam()) {}
};

TEST_P(NativeTest, LargeTransfersDoWithoutTheOwnersProcessor) {
  const auto sent = bytes_of('a');
  ASSERT_TRUE(put(sent, 12345).is_ok());
  EXPECT_EQ(count("native puts"), 1u);
  EXPECT_EQ(at_owner("puts applied"), "0");
  EXPECT_EQ(read_small(12345, sent.size()), sent);
  const std::string gets = at_owner("gets answered");
  const std::uint64_t before = count("native gets");
  std::vector<char> got(sent.size());
  ASSERT_TRUE(link_->get(context_, got.data(), at(12345), got.size()).is_ok());
  EXPECT_EQ(got, sent);
  std::fill(got.begin(), got.end(), '\0');
  ASSERT_TRUE(link_->get_nbi(context_, got.data(), at(12345), got.size()).is_ok());
  ASSERT_TRUE(context_.quiet().is_ok());
  EXPECT_EQ(got, sent);
  EXPECT_EQ(count("native gets"), before + 2);
  EXPECT_EQ(at_owner("gets answered"), gets);
}

TEST_P(NativeTest, SmallTransfersAndOtherRegionsGoByMessages) {
  ASSERT_TRUE(put(bytes_of('b', kNativeFrom - 1), 0).is_ok());
  std::vector<char> got(kSmallBytes);
  ASSERT_TRUE(link_->get(context_, got.data(), {owner_.small_region(), 0}, got.size()).is_ok());
  EXPECT_EQ(count("native puts") + count("native gets"), 0u);
  EXPECT_EQ(at_owner("native keys given"), "0");
  EXPECT_EQ(at_owner("native registrations"), "0");
}

TEST_P(NativeTest, SmallGetsOfMappedMemoryDoWithoutTheOwner) {
  const bool is_mapped = GetParam() == Backend::kMessageUcxNative;
  std::uint64_t got = 0;
  ASSERT_TRUE(link_->get(context_, &got, at(0), sizeof got).is_ok());
  EXPECT_EQ(at_owner("native keys given"), "0") << "no window is asked for";
  ASSERT_TRUE(put(bytes_of('p'), 0).is_ok());
  const int answered = std::stoi(at_owner("gets answered"));
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(link_->put(context_, at(8), &i, sizeof i).is_ok());
    ASSERT_TRUE(link_->get(context_, &got, at(8), sizeof got).is_ok());
    ASSERT_EQ(got, i) << "after the put, which was a message";
  }
  EXPECT_EQ(std::stoi(at_owner("gets answered")), answered + (is_mapped ? 0 : 100));
}

TEST_P(NativeTest, MemoryIsRegisteredOnceAndItsKeyIsAskedForOnce) {
  const auto sent = bytes_of('c');
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(put(sent, i * 1000).is_ok());
  EXPECT_EQ(at_owner("native registrations"), "1");
  EXPECT_EQ(at_owner("native keys given"), "1");
  const auto second = transport_->connect(owner_.address());
  OperationContext context;
  ASSERT_TRUE(second->put(context, at(0), sent.data(), sent.size()).is_ok());
  ASSERT_TRUE(context.quiet().is_ok());
  EXPECT_EQ(at_owner("native registrations"), "1");
  EXPECT_EQ(at_owner("native keys given"), "2");
  EXPECT_EQ(count("native registrations"), 0u) << "who only uses memory registers none";
}

TEST_P(NativeTest, ALinkKeepsItsOrder) {
  const auto large = bytes_of('d');
  for (std::uint64_t i = 1; i <= 200; ++i) {
    // Under the large one, over it, and told after it.
    const std::uint64_t under = ~i;
    ASSERT_TRUE(link_->put(context_, at(64), &under, sizeof under).is_ok());
    ASSERT_TRUE(put(large, 0).is_ok());
    ASSERT_TRUE(link_->put(context_, at(128), &i, sizeof i).is_ok());
    ASSERT_TRUE(link_->atomic(context_, {AtomicKind::kAdd, 8, 1}, at(3 << 20), nullptr).is_ok());
    std::uint64_t applied = 0;
    ASSERT_TRUE(link_->atomic(context_, {AtomicKind::kFetch, 8}, at(3 << 20), &applied).is_ok());
    ASSERT_EQ(applied, i);
    const auto head = read_small(0, 256);
    std::uint64_t over = 0;
    std::memcpy(&over, head.data() + 128, sizeof over);
    ASSERT_EQ(over, i);
    ASSERT_EQ(std::memcmp(head.data(), large.data(), 128), 0) << "the large one came later";
  }
  EXPECT_EQ(count("native puts"), 200u);
}

TEST_P(NativeTest, WhoSeesTheSignalOrTheMessageSeesTheData) {
  for (std::uint64_t i = 1; i <= 50; ++i) {
    const auto sent = bytes_of(static_cast<char>(i));
    ASSERT_TRUE(
        link_->put_signal(context_, at(0), sent.data(), sent.size(), at(3 << 20), i, SignalOp::kSet)
            .is_ok());
    std::uint64_t signal = 0;
    while (signal != i)
      ASSERT_TRUE(link_->get(context_, &signal, at(3 << 20), sizeof signal).is_ok());
    ASSERT_EQ(read_small(0, 64), bytes_of(static_cast<char>(i), 64));
    ASSERT_EQ(read_small(kLarge - 64, 64), std::vector<char>(sent.end() - 64, sent.end()));
  }
  EXPECT_EQ(count("native puts"), 50u);
  EXPECT_EQ(at_owner("puts applied"), "0");
}

TEST_P(NativeTest, ThreadsShareALink) {
  std::vector<std::thread> threads;
  for (char name = 0; name < 4; ++name)
    threads.emplace_back([this, name] {
      OperationContext context;
      const std::size_t bytes = kBytes / 4;
      const auto sent = bytes_of(name, bytes);
      const RemotePlace place = at(static_cast<std::uint64_t>(name) * bytes);
      std::vector<char> got(bytes);
      for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(link_->put(context, place, sent.data(), bytes).is_ok());
        ASSERT_TRUE(link_->get(context, got.data(), place, bytes).is_ok());
        ASSERT_EQ(got, sent);
      }
      ASSERT_TRUE(context.quiet().is_ok());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count("native puts"), 200u);
  EXPECT_EQ(at_owner("native registrations"), "1");
}

TEST_P(NativeTest, AnOwnerThatIsStoppedIsReached) {
  const auto sent = bytes_of('e');
  ASSERT_TRUE(put(sent, 0).is_ok());
  owner_.stop();
  ASSERT_TRUE(put(bytes_of('f'), 0).is_ok());
  std::vector<char> got(sent.size());
  ASSERT_TRUE(link_->get(context_, got.data(), at(0), got.size()).is_ok());
  EXPECT_EQ(got, bytes_of('f'));
  owner_.go_on();
  ASSERT_TRUE(context_.quiet().is_ok());
}

TEST_P(NativeTest, AnOwnerThatDiesIsLostAsByMessages) {
  const auto sent = bytes_of('g');
  ASSERT_TRUE(put(sent, 0).is_ok());
  ASSERT_TRUE(context_.quiet().is_ok());
  owner_.end_by(SIGKILL);
  const Deadline deadline = Deadline::after(kPromise);
  Status status;
  std::vector<char> got(sent.size());
  while (status.is_ok() && !deadline.has_passed())
    status = link_->get(context_, got.data(), at(0), got.size());
  EXPECT_EQ(status.code(), Code::kPeerLost) << status.to_string();
  EXPECT_THAT(status.message(), HasSubstr("PE 1 on host b: "));
  EXPECT_EQ(put(sent, 0).code(), Code::kPeerLost);
  EXPECT_EQ(context_.quiet().code(), Code::kPeerLost);
}

TEST_P(NativeTest, ARegionThatWasRetractedIsStale) {
  const auto sent = bytes_of('h');
  RemoteRegion claimed = owner_.small_region();
  claimed.transport_key = kNativeRegion;
  claimed.bytes = kLarge;
  ASSERT_TRUE(link_->put(context_, {claimed, 0}, sent.data(), sent.size()).is_ok());
  EXPECT_EQ(context_.quiet().code(), Code::kInvalidArgument) << "the owner checks";
  ASSERT_EQ(owner_.ask("retract"), "ok");
  claimed.bytes = kSmallBytes;
  std::vector<char> got(kSmallBytes);
  EXPECT_EQ(link_->get(context_, got.data(), {claimed, 0}, got.size()).code(), Code::kStale);
  EXPECT_EQ(count("native puts"), 0u);
  EXPECT_EQ(at_owner("native keys given"), "0");
}

// Registered with UCX without shared memory, or over TCP alone, memory is reached by UCX's own
// messages only.
class EmulatedTest : public NativeUse, public testing::Test {
 protected:
  EmulatedTest() : NativeUse(Backend::kMessageUcxNative, Backend::kMessageUcxNative) {}
  void expect_messages() {
    const auto sent = bytes_of('i');
    ASSERT_TRUE(put(sent, 100).is_ok());
    std::vector<char> got(sent.size());
    ASSERT_TRUE(link_->get(context_, got.data(), at(100), got.size()).is_ok());
    EXPECT_EQ(got, sent);
    EXPECT_EQ(count("native puts") + count("native gets"), 0u);
    EXPECT_EQ(at_owner("puts applied"), "1");
    ASSERT_TRUE(put(sent, 100).is_ok());
    ASSERT_TRUE(context_.quiet().is_ok());
    EXPECT_LE(std::stoi(at_owner("native keys given")), 1) << "it is tried once";
  }
};

TEST_F(EmulatedTest, WhatUcxWouldEmulateGoesByOurMessages) {
  expect_messages();
}

// The owner gives no keys, for it has no region that lasts.
class OwnerWithoutTest : public NativeUse, public testing::Test {
 protected:
  OwnerWithoutTest() : NativeUse(Backend::kMessageUnix, Backend::kMessageProcessNative) {}
};

TEST_F(OwnerWithoutTest, WhatTheOwnerDoesNotOfferIsNotAskedFor) {
  ASSERT_TRUE(put(bytes_of('j'), 0).is_ok());
  ASSERT_TRUE(context_.quiet().is_ok());
  EXPECT_EQ(count("native puts"), 0u);
  EXPECT_EQ(at_owner("puts applied"), "1");
}

class FailingTest : public NativeUse, public testing::Test {
 protected:
  FailingTest() : NativeUse(Backend::kMessageProcessNative, Backend::kMessageProcessNative) {}
  ~FailingTest() override {
    access_faults().fails.store(false);
    access_faults().hangs.store(false);
  }
};

TEST_F(FailingTest, WhenTheNetworkFailsMessagesFinishAndGoOn) {
  ASSERT_TRUE(put(bytes_of('k'), 0).is_ok());
  access_faults().fails.store(true);
  const auto sent = bytes_of('l');
  std::vector<char> got(sent.size());
  ASSERT_TRUE(put(sent, 0).is_ok());
  ASSERT_TRUE(link_->get(context_, got.data(), at(0), got.size()).is_ok());
  EXPECT_EQ(got, sent);
  EXPECT_EQ(at_owner("puts applied"), "1");
  access_faults().fails.store(false);
  ASSERT_TRUE(put(bytes_of('m'), 0).is_ok());
  ASSERT_TRUE(context_.quiet().is_ok());
  EXPECT_EQ(at_owner("puts applied"), "2") << "it is not trusted again";
}

TEST_F(FailingTest, ACallThatWaitsForTheNetworkEndsAtItsLimit) {
  access_faults().hangs.store(true);
  context_.set_limit(std::chrono::milliseconds(100));
  const auto sent = bytes_of('n');
  EXPECT_EQ(put(sent, 0).code(), Code::kTimeout);
  context_.set_limit(Duration::max());
  ASSERT_TRUE(put(sent, 0).is_ok());
  EXPECT_EQ(read_small(0, sent.size()), sent) << "by messages";
}

TEST_F(FailingTest, ACallThatWaitsForTheNetworkEndsWithItsPeer) {
  access_faults().hangs.store(true);
  std::thread killer([this] { owner_.end_by(SIGKILL); });
  const Status status = put(bytes_of('o'), 0);
  killer.join();
  // The peer may also be seen to be gone before the key has come.
  EXPECT_EQ(status.code(), Code::kPeerLost) << status.to_string();
}

std::string name_of_param(const testing::TestParamInfo<Backend>& info) {
  return name_of(info.param);
}
INSTANTIATE_TEST_SUITE_P(All, NativeTest,
                         testing::Values(Backend::kMessageProcessNative,
                                         Backend::kMessageUcxNative),
                         name_of_param);

}  // namespace
}  // namespace memspan::contract
