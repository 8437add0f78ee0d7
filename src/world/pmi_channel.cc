// SPDX-License-Identifier: Apache-2.0
// PMI-1: lines "cmd=NAME key=value ...\n" over an inherited socket, an answer for each request.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>

#include "core/environment.h"
#include "core/fd.h"
#include "core/interrupt.h"
#include "core/random.h"
#include "node/segment.h"
#include "world/foreign_launcher.h"
#include "world/mpi_job.h"

namespace memspan::inline world {
namespace {

constexpr const char* kSocketVariable = "PMI_FD";
constexpr std::size_t kMostLineBytes = 64 << 10;
constexpr auto kGoodbyeLimit = std::chrono::seconds(2);

// The value of `key` in "cmd=x key=value other=value"; empty if it is missing.
std::string_view field(std::string_view line, std::string_view key) {
  for (const std::string_view word : split(line, ' '))
    if (word.starts_with(key) && word.substr(key.size()).starts_with('='))
      return word.substr(key.size() + 1);
  return {};
}

class PmiChannel final : public LauncherChannel {
 public:
  PmiChannel(Fd socket, int rank, int size)
      : socket_(std::move(socket)), rank_(rank), size_(size) {}

  ~PmiChannel() override {
    const MpiState mpi = mpi_state();
    if (mpi == MpiState::kInitialized || mpi == MpiState::kFinalized) return;  // MPI ends it
    // If the launcher does not answer, nothing can be done, and no process needs it any more.
    (void)ask("cmd=finalize", "finalize_ack", Deadline::after(kGoodbyeLimit)).is_ok();
  }

  Status begin(const Deadline& deadline) {
    MEMSPAN_PASS(
        ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", deadline).status());
    MEMSPAN_TRY_ASSIGN(const std::string maxes, ask("cmd=get_maxes", "maxes", deadline),
                       "asking the launcher for its limits");
    MEMSPAN_TRY_ASSIGN(const std::int64_t longest,
                       parse_integer("vallen_max", field(maxes, "vallen_max"), 1, 1 << 30),
                       "asking the launcher for its limits");
    most_value_bytes_ = static_cast<std::size_t>(longest) - 1;  // it counts a zero at the end
    MEMSPAN_TRY_ASSIGN(const std::string name, ask("cmd=get_my_kvsname", "my_kvsname", deadline),
                       "asking the launcher for the name of its space of keys");
    space_ = field(name, "kvsname");
    return Status::ok();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Status put(const std::string& key, const std::string& value, const Deadline& deadline) override {
    const std::string digits = to_hex(value);
    if (digits.size() > most_value_bytes_)
      return {Code::kInvalidArgument,
              fmt::format("a value of {} bytes, as {} digits, for a launcher that takes {}",
                          value.size(), digits.size(), most_value_bytes_)};
    return ask(fmt::format("cmd=put kvsname={} key={} value={}", space_, key_of(rank_, key),
                           digits),
               "put_result", deadline)
        .status();
  }

  Status fence(const Deadline& deadline) override {
    return ask("cmd=barrier_in", "barrier_out", deadline).status();
  }

  Result<std::string> get(int rank, const std::string& key, const Deadline& deadline) override {
    MEMSPAN_TRY_ASSIGN(const std::string line,
                       ask(fmt::format("cmd=get kvsname={} key={}", space_, key_of(rank, key)),
                           "get_result", deadline),
                       "asking the launcher");
    auto value = from_hex(field(line, "value"));
    if (!value)
      return Status(Code::kUnavailable,
                    fmt::format("the launcher has another value of \"{}\" than was put", key));
    return *std::move(value);
  }

 private:
  static std::string key_of(int rank, const std::string& key) {
    return fmt::format("memspan-{}-{}", key, rank);
  }

  // Returns the whole answer, which must have that name and no failure.
  Result<std::string> ask(const std::string& request, std::string_view answer,
                          const Deadline& deadline) {
    const std::string line = request + '\n';
    if (::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(line.size()))
      return Status::from_errno(fmt::format("sending \"{}\" to the launcher", request));
    MEMSPAN_TRY_ASSIGN(std::string told, read_line(deadline),
                       fmt::format("waiting for the launcher's answer to \"{}\"", request));
    const std::string_view failure = field(told, "rc");
    if (field(told, "cmd") != answer || (!failure.empty() && failure != "0"))
      return Status(Code::kUnavailable,
                    fmt::format("the launcher answers \"{}\" to \"{}\"", told, request));
    return told;
  }

  Result<std::string> read_line(const Deadline& deadline) {
    while (true) {
      const std::size_t end = unread_.find('\n');
      if (end != std::string::npos) {
        std::string line = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        return line;
      }
      if (unread_.size() > kMostLineBytes)
        return Status(Code::kUnavailable,
                      fmt::format("more than {} bytes without an end of line", kMostLineBytes));
      pollfd polled{socket_.get(), POLLIN, 0};
      MEMSPAN_PASS(poll_ready(std::span(&polled, 1), deadline, "it did not come in time"));
      std::array<char, 4096> bytes;
      const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count == 0) return Status(Code::kUnavailable, "the launcher has closed the connection");
      if (count < 0 && errno != EINTR && errno != EAGAIN)
        return Status::from_errno("reading from the launcher");
      if (count > 0) unread_.append(bytes.data(), static_cast<std::size_t>(count));
    }
  }

  const Fd socket_;
  const int rank_;
  const int size_;
  std::size_t most_value_bytes_ = 0;
  std::string space_;
  std::string unread_;
};

// Another descriptor of the launcher's socket, which itself stays where MPI would look for it.
Result<Fd> launcher_socket() {
  MEMSPAN_TRY_ASSIGN(const auto number, environment_integer(kSocketVariable, 0, 1 << 20),
                     "looking for the launcher");
  struct stat about {};
  if (!number || fstat(static_cast<int>(*number), &about) != 0 || !S_ISSOCK(about.st_mode))
    return Status(Code::kUnavailable,
                  fmt::format("descriptor {} of {} is not the launcher's socket: a process between "
                              "the launcher and this one did not pass it on (Python's subprocess "
                              "needs close_fds=False)",
                              environment_or(kSocketVariable, "-"), kSocketVariable));
  return duplicate(static_cast<int>(*number), "duplicating the launcher's socket");
}

}  // namespace

Result<std::unique_ptr<LauncherChannel>> open_pmi_channel(const Deadline& deadline) {
  if (mpi_state() == MpiState::kFinalized)
    return Status(Code::kNotSupported,
                  "MPI_Finalize has ended the only connection to the launcher (PMI_FD): call "
                  "shmem_init before it");
  MEMSPAN_TRY_ASSIGN(const auto size, environment_integer("PMI_SIZE", 1, kMostPeers),
                     "asking the launcher");
  MEMSPAN_TRY_ASSIGN(const auto rank, environment_integer("PMI_RANK", 0, size.value_or(1) - 1),
                     "asking the launcher");
  if (!size || !rank)
    return Status(Code::kUnavailable, "PMI_FD is set, and PMI_RANK or PMI_SIZE is not");
  MEMSPAN_TRY_ASSIGN(Fd socket, launcher_socket(), "asking the launcher");
  auto channel = std::make_unique<PmiChannel>(std::move(socket), static_cast<int>(*rank),
                                              static_cast<int>(*size));
  MEMSPAN_TRY(channel->begin(deadline), "beginning to speak PMI with the launcher");
  return std::unique_ptr<LauncherChannel>(std::move(channel));
}

}  // namespace memspan::inline world
