// SPDX-License-Identifier: Apache-2.0
#include "contract/transport/owner_process.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>

#include "contract/transport/process_access.h"
#include "core/bytes.h"
#include "core/mutex.h"
#include "support/message_counters.h"
#include "transport/message/socket/socket_carrier.h"
#include "transport/message/ucx/ucx_carrier.h"
#include "world/carrier_choice.h"

namespace memspan::contract {
namespace {

constexpr std::size_t kAll = kBytes + kSmallBytes;
constexpr std::string_view kCounter = "counter ";

void write_text(int to, const std::string& text) {
  ByteWriter out;
  out.text(text);
  const std::string& bytes = out.bytes();
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(to, bytes.data() + done, bytes.size() - done);
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

bool read_bytes(int from, char* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = ::read(from, to + done, bytes - done);
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

// Empty at the end.
std::string read_text(int from) {
  char size[4];
  if (!read_bytes(from, size, sizeof size)) return {};
  std::string text(ByteReader({size, sizeof size}).u32(), ' ');
  return read_bytes(from, text.data(), text.size()) ? text : std::string();
}

// The life of the peer.
class Owner {
 public:
  Owner(Backend backend, const std::string& faults, Duration silence_limit, const Pages& pages,
        int from, int to)
      : silence_limit_(silence_limit), from_(from), to_(to) {
    mine_ = Reservation::make(kAll, nullptr).value();
    EXPECT_TRUE(mine_->map(0, pages, 0, kAll).is_ok());
    transport_ = make(backend, faults);
    lasts_ = backend >= Backend::kMessageUcxNative;
  }

  void serve() {
    large_ = expose(0, kBytes, 1);
    small_ = expose(kBytes, kSmallBytes, 2);
    write_text(to_, transport_->address());
    write_text(to_, large_->describe().encode());
    write_text(to_, small_->describe().encode());
    for (std::string word = read_text(from_); !word.empty(); word = read_text(from_)) {
      if (word == "die") _exit(0);
      if (word == "leave") break;
      write_text(to_, do_it(word));
    }
  }

 private:
  std::unique_ptr<MessageTransport> make(Backend backend, const std::string& faults) {
    MessageOptions options = message_options(backend, kOwner);
    options.faults = Faults::parse(faults).value();
    options.silence_limit = silence_limit_;
    options.handlers.on_message = [this](int peer, const MessageTag& tag, const Buffer& bytes) {
      MutexLock lock(mutex_);
      messages_ += fmt::format("{}:{}.{}.{}:{};", peer, tag.kind, tag.id, tag.sequence,
                               std::string_view(reinterpret_cast<const char*>(bytes.data()),
                                                std::min<std::size_t>(bytes.size(), 20)));
    };
    options.handlers.on_peer_lost = [this](int, const Status& why) {
      MutexLock lock(mutex_);
      lost_ += why.to_string() + ";";
    };
    options.handlers.after_apply = [this] { applied_.fetch_add(1); };
    return MessageTransport::make(std::move(options)).value();
  }
  std::unique_ptr<ExposedRegion> expose(std::size_t offset, std::size_t bytes,
                                        std::uint32_t number) {
    return transport_
        ->expose({.base = mine_->base() + offset,
                  .bytes = bytes,
                  .number = number,
                  .lasts = lasts_ && number == 1})
        .value();
  }
  std::string do_it(const std::string& word) {
    MutexLock lock(mutex_);
    if (word == "retract") {
      small_.reset();
      return "ok";
    }
    if (word == "expose") {
      small_ = expose(kBytes, kSmallBytes, 2);
      return small_->describe().encode();
    }
    if (word == "exclude") {
      transport_->exclude(kUser, {Code::kPeerLost, "the test says so"});
      return "ok";
    }
    if (word == "messages") return messages_ + "|";
    if (word == "lost") return lost_ + "|";
    if (word == "applied") return std::to_string(applied_.load());
    if (word.starts_with(kCounter))
      return std::to_string(message_counter(*transport_, word.substr(kCounter.size())).value());
    return "what?";
  }

  const Duration silence_limit_;
  bool lasts_ = false;
  const int from_;
  const int to_;
  std::optional<Reservation> mine_;
  Mutex mutex_;
  std::string messages_ MEMSPAN_GUARDED_BY(mutex_);
  std::string lost_ MEMSPAN_GUARDED_BY(mutex_);
  std::atomic<int> applied_{0};
  std::unique_ptr<MessageTransport> transport_;
  std::unique_ptr<ExposedRegion> large_;
  std::unique_ptr<ExposedRegion> small_;
};

}  // namespace

const char* name_of(Backend backend) {
  constexpr const char* kNames[] = {"message_unix", "message_tcp",        "message_tls",
                                    "message_ucx",  "message_ucx_native", "message_process_native"};
  return kNames[static_cast<int>(backend)];
}

std::unique_ptr<Carrier> make_carrier(Backend backend) {
  if (backend == Backend::kMessageUcx) return make_ucx_carrier({.device = "lo"}).value();
  if (backend == Backend::kMessageUcxNative)
    return make_ucx_carrier({.trusted = TrustedNetworks::parse("1").value(), .is_native = true})
        .value();
  SocketOptions socket;
  if (backend == Backend::kMessageProcessNative)
    return with_process_access(make_socket_carrier(socket));
  if (backend != Backend::kMessageUnix) socket.family = SocketOptions::Family::kTcp;
  auto sockets = make_socket_carrier(socket);
  if (backend != Backend::kMessageTls) return sockets;
  return make_encrypted_carrier(std::move(sockets), true);
}

MessageOptions message_options(Backend backend, int self) {
  MessageOptions options;
  options.carrier = make_carrier(backend);
  options.self = self;
  options.name = fmt::format("PE {} on host {}", self, static_cast<char>('a' + self));
  return options;
}

OwnerProcess::OwnerProcess(Backend backend, const std::string& faults, Duration silence_limit)
    : pages_(Pages::create(kAll, "contract").value()),
      looked_at_(Reservation::make(kAll, nullptr).value()) {
  EXPECT_TRUE(looked_at_.map(0, pages_, 0, kAll).is_ok());
  int down[2];
  int up[2];
  EXPECT_EQ(::pipe2(down, O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(up, O_CLOEXEC), 0);
  process_ = ::fork();
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(down[1]);
    ::close(up[0]);
    {
      Owner owner(backend, faults, silence_limit, pages_, down[0], up[1]);
      owner.serve();
    }
    _exit(0);
  }
  ::close(down[0]);
  ::close(up[1]);
  to_.reset(down[1]);
  from_.reset(up[0]);
  address_ = {kOwner, "PE 1 on host b", read_text(from_.get())};
  region_ = RemoteRegion::decode(read_text(from_.get())).value();
  small_ = RemoteRegion::decode(read_text(from_.get())).value();
}

OwnerProcess::~OwnerProcess() {
  to_.reset();
  go_on();
  int ended = 0;
  ::waitpid(process_, &ended, 0);
  EXPECT_EQ(ended, ends_by_);
}

void OwnerProcess::stop() {
  ::kill(process_, SIGSTOP);
  siginfo_t stopped{};
  ::waitid(P_PID, static_cast<id_t>(process_), &stopped, WSTOPPED);
}

void OwnerProcess::go_on() {
  ::kill(process_, SIGCONT);
}

void OwnerProcess::end_by(int signal) {
  ends_by_ = signal;
  ::kill(process_, signal);
}

std::string OwnerProcess::ask(const std::string& word) {
  write_text(to_.get(), word);
  if (word == "die" || word == "leave") {
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOWAIT);
    return {};
  }
  return read_text(from_.get());
}

}  // namespace memspan::contract
