// SPDX-License-Identifier: Apache-2.0
#include "world/carrier_choice.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/random.h"
#include "net/tls.h"

namespace memspan::inline world {
namespace {

constexpr std::string_view kPrefix = "tls:";
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kRecordBytes = 16384;  // the most that one TLS record holds

class EncryptedStream final : public ByteStream {
 public:
  explicit EncryptedStream(std::unique_ptr<ByteChannel> tls) : tls_(std::move(tls)) {}

  int descriptor() const override { return tls_->socket(); }
  bool is_opening() const override { return !is_open_; }
  bool has_buffered() const override { return has_buffered_; }
  void cut() override { ::shutdown(tls_->socket(), SHUT_RDWR); }

  ssize_t receive(std::span<const iovec> to) override {
    has_buffered_ = false;
    ssize_t all = 0;
    for (const iovec& part : to) {
      auto* const place = static_cast<char*>(part.iov_base);
      for (std::size_t done = 0; done < part.iov_len;) {
        const ChannelStep step =
            open_and([&] { return tls_->read(place + done, part.iov_len - done); });
        if (step.next != ChannelStep::Next::kDone) return all > 0 ? all : nothing(step);
        done += step.bytes;
        all += static_cast<ssize_t>(step.bytes);
      }
    }
    has_buffered_ = true;  // all places are full, so there may be more
    return all;
  }

  // TLS has sealed unsent bytes.
  ssize_t send(std::span<const iovec> from) override {
    std::array<char, kRecordBytes> gathered;
    ssize_t all = 0;
    std::size_t offset = 0;  // in the first part
    while (true) {
      while (!from.empty() && offset >= from.front().iov_len) {
        offset -= from.front().iov_len;
        from = from.subspan(1);
      }
      if (from.empty()) return all;
      const std::string_view chunk = next_chunk(from, offset, gathered);
      const ChannelStep step = open_and([&] { return tls_->write(chunk); });
      if (step.next != ChannelStep::Next::kDone) return all > 0 ? all : nothing(step);
      all += static_cast<ssize_t>(step.bytes);
      offset += step.bytes;
    }
  }

 private:
  // Calls `move` after the handshake.
  template <typename Move>
  ChannelStep open_and(Move move) {
    ChannelStep step;
    if (!is_open_) step = tls_->handshake();
    if (step.next != ChannelStep::Next::kDone) return step;
    is_open_ = true;
    return move();
  }

  // ByteStream's result for a step that moved nothing.
  static ssize_t nothing(const ChannelStep& step) {
    using Next = ChannelStep::Next;
    return step.next == Next::kEnd || step.next == Next::kFailed ? -1 : 0;
  }

  // Puts a header and its payload into one record. A part that fills a record is not copied.
  static std::string_view next_chunk(std::span<const iovec> from, std::size_t offset,
                                     std::span<char> gathered) {
    const auto rest = [&](std::size_t i) {
      const std::size_t skipped = i == 0 ? offset : 0;
      return std::string_view(static_cast<const char*>(from[i].iov_base) + skipped,
                              from[i].iov_len - skipped);
    };
    if (from.size() == 1 || rest(0).size() >= gathered.size()) return rest(0);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < from.size() && bytes < gathered.size(); ++i) {
      const std::string_view part = rest(i).substr(0, gathered.size() - bytes);
      std::memcpy(gathered.data() + bytes, part.data(), part.size());
      bytes += part.size();
    }
    return {gathered.data(), bytes};
  }

  const std::unique_ptr<ByteChannel> tls_;
  bool is_open_ = false;
  bool has_buffered_ = false;
};

Result<std::unique_ptr<ByteStream>> encrypt(const TlsContext& context, const ByteStream& stream) {
  // A duplicate that only we own; the stream that it came from may be destroyed.
  MEMSPAN_TRY_ASSIGN(Fd socket, duplicate(stream.descriptor(), "duplicating a socket"),
                     "encrypting a connection");
  MEMSPAN_TRY_ASSIGN(std::unique_ptr<ByteChannel> tls, context.open(std::move(socket), ""),
                     "encrypting a connection");
  return std::unique_ptr<ByteStream>(std::make_unique<EncryptedStream>(std::move(tls)));
}

// TLS begins on the plain connection when that is open.
class EncryptedOpening final : public Opening {
 public:
  EncryptedOpening(std::unique_ptr<Opening> plain, std::shared_ptr<const TlsContext> context)
      : plain_(std::move(plain)), context_(std::move(context)) {}

  int descriptor() const override { return plain_->descriptor(); }
  Clock::time_point next() const override { return plain_->next(); }
  Result<std::unique_ptr<ByteStream>> step() override {
    auto stream = plain_->step();
    if (!stream.is_ok() || *stream == nullptr) return stream;
    return encrypt(*context_, **stream);
  }

 private:
  const std::unique_ptr<Opening> plain_;
  const std::shared_ptr<const TlsContext> context_;
};

class EncryptedListener final : public Listener {
 public:
  EncryptedListener(std::unique_ptr<Listener> plain, std::shared_ptr<const TlsContext> context,
                    std::string_view key)
      : plain_(std::move(plain)),
        context_(std::move(context)),
        address_(fmt::format("{}{}:{}", kPrefix, key, plain_->address())) {}
  int descriptor() const override { return plain_->descriptor(); }
  std::string address() const override { return address_; }
  std::unique_ptr<ByteStream> accept() override {
    while (std::unique_ptr<ByteStream> stream = plain_->accept())
      if (auto encrypted = encrypt(*context_, *stream); encrypted.is_ok())
        return std::move(encrypted).value();
    return nullptr;
  }

 private:
  const std::unique_ptr<Listener> plain_;
  const std::shared_ptr<const TlsContext> context_;
  const std::string address_;
};

class EncryptedCarrier final : public Carrier {
 public:
  EncryptedCarrier(std::unique_ptr<Carrier> sockets, bool encrypts)
      : sockets_(std::move(sockets)), encrypts_(encrypts) {}
  std::string_view name() const override { return sockets_->name(); }

  Result<std::unique_ptr<Listener>> listen() override {
    if (!encrypts_) return sockets_->listen();
    const std::string key = random_hex(kKeyBytes);
    MEMSPAN_TRY_ASSIGN(std::shared_ptr<const TlsContext> context,
                       TlsContext::from_secret(TlsContext::Side::kServer, key),
                       "encrypting the data of other hosts");
    MEMSPAN_TRY_ASSIGN(std::unique_ptr<Listener> plain, sockets_->listen(), "listening");
    return std::unique_ptr<Listener>(
        std::make_unique<EncryptedListener>(std::move(plain), std::move(context), key));
  }

  Result<std::unique_ptr<Opening>> connect(const std::string& address) override {
    const bool target_encrypts = address.rfind(kPrefix, 0) == 0;
    if (target_encrypts != encrypts_)
      return Status(Code::kAuth, fmt::format("MEMSPAN_ENCRYPT_DATA is 1 in {} process and not in "
                                             "{}; set it to 1 in all processes or in none",
                                             target_encrypts ? "that" : "this",
                                             target_encrypts ? "this one" : "that one"));
    if (!target_encrypts) return sockets_->connect(address);
    const std::size_t end = address.find(':', kPrefix.size());
    if (end == std::string::npos)
      return Status(Code::kInvalidArgument, "an encrypted address is tls:KEY:ADDRESS");
    MEMSPAN_TRY_ASSIGN(std::shared_ptr<const TlsContext> context,
                       TlsContext::from_secret(
                           TlsContext::Side::kClient,
                           std::string_view(address).substr(kPrefix.size(), end - kPrefix.size())),
                       "encrypting a connection");
    MEMSPAN_TRY_ASSIGN(std::unique_ptr<Opening> plain, sockets_->connect(address.substr(end + 1)),
                       "connecting");
    return std::unique_ptr<Opening>(
        std::make_unique<EncryptedOpening>(std::move(plain), std::move(context)));
  }

 private:
  const std::unique_ptr<Carrier> sockets_;
  const bool encrypts_;
};

}  // namespace

std::unique_ptr<Carrier> make_encrypted_carrier(std::unique_ptr<Carrier> sockets, bool encrypts) {
  return std::make_unique<EncryptedCarrier>(std::move(sockets), encrypts);
}

}  // namespace memspan::inline world
