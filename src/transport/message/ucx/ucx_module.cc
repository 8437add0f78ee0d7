// SPDX-License-Identifier: Apache-2.0
// The carrier, and the only symbol that libmemspan_ucx.so exports.
#include <fmt/format.h>

#include "core/environment.h"
#include "transport/message/ucx/native_worker.h"
#include "transport/message/ucx/ucx_carrier.h"
#include "transport/message/ucx/ucx_worker.h"

namespace memspan::inline transport {
namespace {

using ucx::Channel;
using ucx::NativeWorker;
using ucx::Worker;

constexpr std::string_view kPrefix = "ucx:";

class UcxStream final : public ByteStream {
 public:
  UcxStream(std::shared_ptr<Worker> worker, std::shared_ptr<Channel> channel)
      : worker_(std::move(worker)), channel_(std::move(channel)) {}
  ~UcxStream() override { cut(); }

  // Whether the peer has answered. kUnreachable: it never will.
  Result<bool> is_open() { return worker_->opens(*channel_); }
  int descriptor() const override { return -1; }
  void on_change(const std::function<void()>& call) override { channel_->on_change(call); }
  bool has_buffered() const override { return channel_->is_readable(); }
  ssize_t receive(std::span<const iovec> to) override { return worker_->receive(*channel_, to); }
  ssize_t send(std::span<const iovec> from) override { return worker_->send(*channel_, from); }
  void cut() override { worker_->cut(*channel_); }

 private:
  const std::shared_ptr<Worker> worker_;    // shared with the carrier and other streams
  const std::shared_ptr<Channel> channel_;  // shared with the worker
};

class UcxOpening final : public Opening {
 public:
  UcxOpening(std::unique_ptr<UcxStream> stream, std::string address)
      : stream_(std::move(stream)), address_(std::move(address)) {}

  int descriptor() const override { return -1; }
  void on_change(const std::function<void()>& call) override { stream_->on_change(call); }
  Result<std::unique_ptr<ByteStream>> step() override {
    MEMSPAN_TRY_ASSIGN(const bool is_open, stream_->is_open(), address_);
    return std::unique_ptr<ByteStream>(is_open ? std::move(stream_) : nullptr);
  }

 private:
  std::unique_ptr<UcxStream> stream_;
  const std::string address_;
};

class UcxListener final : public Listener {
 public:
  UcxListener(std::shared_ptr<Worker> worker, std::shared_ptr<NativeWorker> native,
              std::string address)
      : worker_(std::move(worker)), native_(std::move(native)), address_(std::move(address)) {}

  int descriptor() const override {
    return native_ == nullptr ? worker_->descriptor() : native_->descriptor();
  }
  bool moves_streams() const override { return true; }
  bool prepare_sleep() override { return worker_->prepare_sleep(); }
  std::string address() const override { return address_; }
  std::unique_ptr<ByteStream> accept() override {
    if (native_ != nullptr) native_->progress();
    auto channel = worker_->accept();
    if (channel == nullptr) return nullptr;
    return std::make_unique<UcxStream>(worker_, std::move(channel));
  }

 private:
  const std::shared_ptr<Worker> worker_;        // shared with the carrier and the streams
  const std::shared_ptr<NativeWorker> native_;  // shared with the carrier
  const std::string address_;
};

class UcxCarrier final : public Carrier {
 public:
  UcxCarrier(UcxOptions options, std::shared_ptr<Worker> worker)
      : options_(std::move(options)), worker_(std::move(worker)) {}

  std::string_view name() const override { return "ucx"; }

  Result<std::unique_ptr<Listener>> listen() override {
    MEMSPAN_PASS(check_ucx_address(options_.trusted, options_.host));
    MEMSPAN_TRY_ASSIGN(const SocketAddress at, SocketAddress::parse(options_.host, 0), "listening");
    MEMSPAN_TRY_ASSIGN(const int port, worker_->listen(at),
                       fmt::format("listening at {}", options_.host));
    return std::unique_ptr<Listener>(std::make_unique<UcxListener>(
        worker_, native_, fmt::format("{}{}:{}", kPrefix, options_.host, port)));
  }

  Result<std::unique_ptr<Opening>> connect(const std::string& address) override {
    const std::size_t colon = address.rfind(':');
    if (address.rfind(kPrefix, 0) != 0 || colon < kPrefix.size())
      return Status(
          Code::kInvalidArgument,
          fmt::format("\"{}\" is not an address of UCX (ucx:HOST:PORT); MEMSPAN_CARRIER has "
                      "to be the same in all processes",
                      address));
    const std::string host = address.substr(kPrefix.size(), colon - kPrefix.size());
    MEMSPAN_PASS(check_ucx_address(options_.trusted, host));
    MEMSPAN_TRY_ASSIGN(const std::int64_t port,
                       parse_integer("the port", address.substr(colon + 1), 1, 65535), address);
    MEMSPAN_TRY_ASSIGN(const SocketAddress to,
                       SocketAddress::parse(host, static_cast<std::uint16_t>(port)), "connecting");
    MEMSPAN_TRY_ASSIGN(std::shared_ptr<Channel> channel, worker_->connect(to), address);
    return std::unique_ptr<Opening>(std::make_unique<UcxOpening>(
        std::make_unique<UcxStream>(worker_, std::move(channel)), address));
  }

  NativeAccess* native() override {
    return options_.is_native && options_.device.empty() ? native_.get() : nullptr;
  }

 private:
  const UcxOptions options_;
  const std::shared_ptr<Worker> worker_;  // shared with the listener and the streams
  // Shared with the listener. Null in a build without one-sided access.
#ifdef MEMSPAN_NATIVE_RMA
  const std::shared_ptr<NativeWorker> native_ =
      std::make_shared<NativeWorker>(worker_->descriptor());
#else
  const std::shared_ptr<NativeWorker> native_;
#endif
};

Result<std::unique_ptr<Carrier>> make(const UcxOptions& options) {
  MEMSPAN_TRY_ASSIGN(std::shared_ptr<Worker> worker, Worker::create(options), "the carrier ucx");
  return std::unique_ptr<Carrier>(std::make_unique<UcxCarrier>(options, std::move(worker)));
}

}  // namespace
}  // namespace memspan::inline transport

extern "C" __attribute__((visibility("default"))) const memspan::UcxModule* memspan_ucx_module() {
  static constexpr memspan::UcxModule kModule{MEMSPAN_VERSION, memspan::make};
  return &kModule;
}
