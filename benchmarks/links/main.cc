// SPDX-License-Identifier: Apache-2.0
// Links by messages beside the bare socket that carries them, between two processes, alternating in
// one run; what counts is the median of the ratios of all rounds.
//
//   links_bench [--rounds N] [--tcp] [--encrypt] [--short]
//
// With --encrypt the links are under TLS, and the bare socket is not.
// It looks inside, for it measures a room and no interface of a user.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "node/event_count.h"
#include "transport/message/message_transport.h"
#include "transport/message/socket/socket_carrier.h"
#include "world/carrier_choice.h"

namespace memspan {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Options {
  int rounds = 9;
  bool is_tcp = false;
  bool encrypts = false;
  int puts = 400;
  int gets = 3000;
};

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "links_bench: {}\n", why);
  std::exit(1);
}
void require(const Status& status) {
  if (!status.is_ok()) give_up(status.to_string());
}
void require(bool is_ok, const char* what) {
  if (!is_ok) give_up(Status::from_errno(what).to_string());
}

void move_all(int socket, char* bytes, std::size_t count, bool is_out) {
  while (count > 0) {
    const ssize_t moved =
        is_out ? ::send(socket, bytes, count, MSG_NOSIGNAL) : ::recv(socket, bytes, count, 0);
    if (moved <= 0) std::exit(is_out ? 1 : 0);  // the other side is done
    bytes += moved;
    count -= static_cast<std::size_t>(moved);
  }
}

// Two connected sockets of the carrier's kind.
void bare_pair(bool is_tcp, int* ends) {
  if (!is_tcp) return require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  require(::bind(listener, address, length) == 0 && ::listen(listener, 1) == 0, "listen");
  ::getsockname(listener, address, &length);
  ends[0] = ::socket(AF_INET, SOCK_STREAM, 0);
  require(::connect(ends[0], address, length) == 0, "connect");
  ends[1] = ::accept(listener, nullptr, nullptr);
  const int on = 1;
  for (int i = 0; i < 2; ++i) ::setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::close(listener);
}

// One side of the messages: memory to reach, and an echo for a count.
class Side {
 public:
  Side(int self, const Options& how) : memory_(2 * kMiB) {
    MessageOptions options;
    options.carrier = make_encrypted_carrier(
        make_socket_carrier(
            {how.is_tcp ? SocketOptions::Family::kTcp : SocketOptions::Family::kUnix, "127.0.0.1"}),
        how.encrypts);
    options.self = self;
    options.name = fmt::format("side {}", self);
    options.handlers.on_message = [this](int, const MessageTag& tag, const Buffer&) {
      if (tag.sequence > 0) return require(link_->post({.sequence = tag.sequence - 1}, {}));
      over_.store(1, std::memory_order_release);
      futex_wake_all(over_);
    };
    auto made = MessageTransport::make(std::move(options));
    require(made.status());
    transport_ = std::move(*made);
    auto region = transport_->expose({.base = memory_.data(), .bytes = memory_.size()});
    require(region.status());
    region_ = std::move(*region);
  }
  std::string describe() const {
    return transport_->address() + "|" + region_->describe().encode();
  }
  void meet(int peer, const std::string& text) {
    const std::size_t bar = text.find('|');
    remote_ = RemoteRegion::decode(text.substr(bar + 1)).value();
    link_ = transport_->connect({peer, fmt::format("side {}", peer), text.substr(0, bar)});
  }

  void put_many(int count) {
    for (int i = 0; i < count; ++i)
      require(link_->put(context_, {remote_, 0}, memory_.data(), kMiB));
    require(link_->quiet(context_));
  }
  void get_many(int count) {
    std::uint64_t word = 0;
    for (int i = 0; i < count; ++i) require(link_->get(context_, &word, {remote_, 8}, sizeof word));
  }
  void bounce(int count) {
    over_.store(0);
    require(link_->send({.sequence = static_cast<std::uint64_t>(count)}, {}, Deadline::never()));
    while (over_.load(std::memory_order_acquire) == 0)
      futex_wait(over_, 0, std::chrono::seconds(1));
  }

 private:
  std::vector<std::byte> memory_;
  std::unique_ptr<MessageTransport> transport_;
  std::unique_ptr<ExposedRegion> region_;
  RemoteRegion remote_;
  std::unique_ptr<Link> link_;
  OperationContext context_;
  std::atomic<std::uint32_t> over_{0};
};

// The other process: exchanges descriptions, then echoes on the bare socket; the link's side is
// served by its progress thread.
void be_peer(const Options& options, int control, int bare) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Side side(1, options);
  char text[512] = {};
  const std::string mine = side.describe();
  ::send(control, mine.data(), mine.size(), 0);
  const ssize_t got = ::recv(control, text, sizeof text, 0);
  side.meet(0, std::string(text, static_cast<std::size_t>(got)));
  ::send(control, "r", 1, 0);
  std::vector<char> bytes(kMiB);
  while (true) {
    move_all(bare, bytes.data(), 8, false);
    const bool is_large = bytes[0] == 'p';
    if (is_large)
      for (int i = 0; i < options.puts; ++i) move_all(bare, bytes.data(), kMiB, false);
    move_all(bare, bytes.data(), 8, true);
  }
}

double seconds(const std::function<void()>& what) {
  const auto begin = Clock::now();
  what();
  return to_seconds(Clock::now() - begin);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Row {
  const char* name;
  const char* unit;
  std::vector<double> link, bare, ratio;
  void add(double one, double other) {
    link.push_back(one);
    bare.push_back(other);
    ratio.push_back(one / other);
  }
  void print() const {
    fmt::print("{:24} {:10.2f} {:10.2f} {:5} {:6.2f}\n", name, median(link), median(bare), unit,
               median(ratio));
  }
};

void measure(const Options& options, int control, int bare) {
  Side side(0, options);
  char text[512] = {};
  const ssize_t got = ::recv(control, text, sizeof text, 0);
  side.meet(1, std::string(text, static_cast<std::size_t>(got)));
  const std::string mine = side.describe();
  ::send(control, mine.data(), mine.size(), 0);
  ::recv(control, text, 1, 0);

  std::vector<char> bytes(kMiB, 'x');
  const auto echo = [&](char what) {
    char word[8] = {what};
    move_all(bare, word, sizeof word, true);
    if (what == 'p')
      for (int i = 0; i < options.puts; ++i) move_all(bare, bytes.data(), kMiB, true);
    move_all(bare, word, sizeof word, false);
  };
  Row put{"put of 1 MiB", "GB/s", {}, {}, {}};
  Row get{"get of 8 bytes", "us", {}, {}, {}};
  Row message{"message, one way", "us", {}, {}, {}};
  side.put_many(4);
  echo('p');
  const double gigabytes = options.puts * static_cast<double>(kMiB) / 1e9;
  for (int round = 0; round < options.rounds; ++round) {
    const double puts = seconds([&] { side.put_many(options.puts); });
    put.add(gigabytes / puts, gigabytes / seconds([&] { echo('p'); }));
    const double each = 1e6 / options.gets;
    const double gets = seconds([&] { side.get_many(options.gets); });
    const double echoes = seconds([&] {
      for (int i = 0; i < options.gets; ++i) echo('e');
    });
    get.add(gets * each, echoes * each);
    const double bounces = seconds([&] { side.bounce(options.gets * 2 - 1); });
    message.add(bounces * each / 2, echoes * each / 2);
  }
  fmt::print("{:24} {:>10} {:>10} {:5} {:>6}   ({} rounds, {})\n", "", "link", "bare", "", "ratio",
             options.rounds,
             fmt::format("{}{}", options.is_tcp ? "TCP" : "Unix",
                         options.encrypts ? ", the link under TLS" : ""));
  for (const Row* row : {&put, &get, &message}) row->print();
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--tcp") {
      options.is_tcp = true;
    } else if (word == "--encrypt") {
      options.encrypts = true;
    } else if (word == "--short") {
      options.rounds = 1;
      options.puts = 4;
      options.gets = 20;
    } else if (word == "--rounds" && i + 1 < argc && std::atoi(argv[i + 1]) > 0) {
      options.rounds = std::atoi(argv[++i]);
    } else {
      give_up(fmt::format("\"{}\"; allowed are --rounds N, --tcp, --encrypt and --short", word));
    }
  }
  return options;
}

int run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  int control[2];
  int bare[2];
  require(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control) == 0, "socketpair");
  bare_pair(options.is_tcp, bare);
  const pid_t peer = ::fork();
  require(peer >= 0, "fork");
  if (peer == 0) {
    ::close(bare[0]);
    be_peer(options, control[1], bare[1]);
    return 0;
  }
  ::close(bare[1]);
  measure(options, control[0], bare[0]);
  ::close(bare[0]);
  ::waitpid(peer, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace memspan

int main(int argc, char** argv) {
  return memspan::run(argc, argv);
}
