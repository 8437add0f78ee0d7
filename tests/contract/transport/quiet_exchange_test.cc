// SPDX-License-Identifier: Apache-2.0
// How many times a requester sends for operations and their quiet: where each operation has a quiet
// of its own, once for both.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "contract/transport/owner_process.h"

namespace memspan::contract {
namespace {

using Sends = std::shared_ptr<std::atomic<int>>;

// Counts what is sent over the streams of another carrier.
class CountedStream final : public ByteStream {
 public:
  CountedStream(std::unique_ptr<ByteStream> stream, Sends sends)
      : stream_(std::move(stream)), sends_(std::move(sends)) {}
  int descriptor() const override { return stream_->descriptor(); }
  ssize_t receive(std::span<const iovec> to) override { return stream_->receive(to); }
  ssize_t send(std::span<const iovec> from) override {
    sends_->fetch_add(1);
    return stream_->send(from);
  }
  void cut() override { stream_->cut(); }

 private:
  const std::unique_ptr<ByteStream> stream_;
  const Sends sends_;
};

class CountedOpening final : public Opening {
 public:
  CountedOpening(std::unique_ptr<Opening> opening, Sends sends)
      : opening_(std::move(opening)), sends_(std::move(sends)) {}
  int descriptor() const override { return opening_->descriptor(); }
  Clock::time_point next() const override { return opening_->next(); }
  Result<std::unique_ptr<ByteStream>> step() override {
    auto stream = opening_->step();
    if (!stream.is_ok() || *stream == nullptr) return stream;
    return std::unique_ptr<ByteStream>(
        std::make_unique<CountedStream>(std::move(stream).value(), sends_));
  }

 private:
  const std::unique_ptr<Opening> opening_;
  const Sends sends_;
};

class CountedCarrier final : public Carrier {
 public:
  CountedCarrier(std::unique_ptr<Carrier> carrier, Sends sends)
      : carrier_(std::move(carrier)), sends_(std::move(sends)) {}
  std::string_view name() const override { return carrier_->name(); }
  Result<std::unique_ptr<Listener>> listen() override { return carrier_->listen(); }
  Result<std::unique_ptr<Opening>> connect(const std::string& address) override {
    auto opening = carrier_->connect(address);
    if (!opening.is_ok()) return opening.status();
    return std::unique_ptr<Opening>(
        std::make_unique<CountedOpening>(std::move(opening).value(), sends_));
  }

 private:
  const std::unique_ptr<Carrier> carrier_;
  const Sends sends_;
};

class QuietExchangeTest : public testing::Test {
 protected:
  QuietExchangeTest() : owner_(Backend::kMessageUnix) {
    MessageOptions options = message_options(Backend::kMessageUnix, kUser);
    options.carrier = std::make_unique<CountedCarrier>(make_carrier(Backend::kMessageUnix), sends_);
    transport_ = MessageTransport::make(std::move(options)).value();
    link_ = transport_->connect(owner_.address());
  }
  RemotePlace at(std::uint64_t offset) { return {owner_.region(), offset}; }
  void put(OperationContext& context, std::uint64_t offset, std::uint64_t value) {
    ASSERT_TRUE(link_->put(context, at(offset), &value, sizeof value).is_ok());
  }
  // Afterwards a quiet is expected with the next operation.
  void learn() {
    put(context_, 0, 1);
    ASSERT_TRUE(context_.quiet().is_ok());
  }
  int sends_of(auto what) {
    const int before = sends_->load();
    what();
    return sends_->load() - before;
  }

  const Sends sends_ = std::make_shared<std::atomic<int>>(0);
  OwnerProcess owner_;
  std::unique_ptr<MessageTransport> transport_;
  std::unique_ptr<Link> link_;
  OperationContext context_;
};

TEST_F(QuietExchangeTest, AnOperationAndItsQuietAreOneExchange) {
  learn();
  for (std::uint64_t i = 2; i < 100; ++i) {
    EXPECT_EQ(sends_of([&] {
                put(context_, 8 * i, i);
                ASSERT_TRUE(context_.quiet().is_ok());
              }),
              1);
    EXPECT_EQ(owner_.memory<std::uint64_t>(8 * i), i) << "applied after the quiet";
  }
  const std::vector<std::byte> data(4096, std::byte{7});
  EXPECT_EQ(sends_of([&] {
              ASSERT_TRUE(link_
                              ->put_signal(context_, at(8192), data.data(), data.size(), at(0), 99,
                                           SignalOp::kSet)
                              .is_ok());
              ASSERT_TRUE(context_.quiet().is_ok());
            }),
            1);
  EXPECT_EQ(owner_.memory<std::uint64_t>(0), 99U);
}

TEST_F(QuietExchangeTest, WhatComesAfterTheQuestionIsAskedForAgain) {
  learn();
  EXPECT_EQ(sends_of([&] {
              put(context_, 8, 2);   // with the question
              put(context_, 16, 3);  // after it
              ASSERT_TRUE(context_.quiet().is_ok());
            }),
            3);
  EXPECT_EQ(owner_.memory<std::uint64_t>(16), 3U);
  // Two operations in a row: none is expected any more.
  EXPECT_EQ(sends_of([&] { put(context_, 8, 4); }), 1);
  EXPECT_EQ(sends_of([&] { ASSERT_TRUE(context_.quiet().is_ok()); }), 1);
}

TEST_F(QuietExchangeTest, AGetAfterTheQuestionIsWaitedFor) {
  learn();
  owner_.memory<std::uint64_t>(64) = 5;
  std::uint64_t got = 0;
  put(context_, 8, 2);
  ASSERT_TRUE(link_->get_nbi(context_, &got, at(64), sizeof got).is_ok());
  ASSERT_TRUE(context_.quiet().is_ok());
  EXPECT_EQ(got, 5U);
}

TEST_F(QuietExchangeTest, ARefusedOperationIsToldByItsQuiet) {
  learn();
  RemoteRegion stale = owner_.region();
  ++stale.id.generation;
  const std::uint64_t value = 1;
  ASSERT_TRUE(link_->put(context_, {stale, 8}, &value, sizeof value).is_ok());
  EXPECT_FALSE(context_.quiet().is_ok());
  EXPECT_TRUE(context_.quiet().is_ok()) << "told once";
}

TEST_F(QuietExchangeTest, ThreadsWithContextsOfTheirOwnFindTheirDataApplied) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([&, number] {
      OperationContext context;
      const std::uint64_t offset = 64 * static_cast<std::uint64_t>(number);
      for (std::uint64_t i = 1; i <= 2000; ++i) {
        if (!link_->put(context, at(offset), &i, sizeof i).is_ok() || !context.quiet().is_ok() ||
            std::atomic_ref(owner_.memory<std::uint64_t>(offset)).load() != i)
          ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace memspan::contract
