// SPDX-License-Identifier: Apache-2.0
#include "support/etcd_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/clock.h"

namespace memspan {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);
constexpr int kLookMs = 20;

sockaddr_in socket_address(const Endpoint& endpoint) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  EXPECT_EQ(::inet_pton(AF_INET, endpoint.host.c_str(), &address.sin_addr), 1);
  return address;
}

std::pair<Fd, Endpoint> reserve_port(const std::string& host) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  sockaddr_in address = socket_address({host, 0});
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
  EXPECT_EQ(::bind(socket.get(), generic, length), 0);
  EXPECT_EQ(::getsockname(socket.get(), generic, &length), 0);
  return {std::move(socket), Endpoint{host, ntohs(address.sin_port)}};
}

std::string find_etcd() {
  for (const char* path : {"/usr/bin/etcd", "/usr/local/bin/etcd"})
    if (::access(path, X_OK) == 0) return path;
  return {};
}

constexpr unsigned kFirstUser = 64100;  // of cut_off(): each member is another user

void run(const std::string& command) {
  EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT: the words are ours
}

// Nothing of it is seen outside.
void enter_own_network(const std::string& host) {
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  run(fmt::format("ip address replace {}/24 dev lo", host));
  run("ip link set lo up && nft add table inet test && "
      "nft add chain inet test sent '{ type filter hook output priority 0; }'");
}

// Memory if it has room: each member's log is synchronised at every write, and takes 64 MiB from
// the start.
std::string data_folder() {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 30;
  struct statvfs memory = {};
  const bool has_room = ::access("/dev/shm", W_OK) == 0 && ::statvfs("/dev/shm", &memory) == 0 &&
                        memory.f_bavail * memory.f_frsize >= kLeast;
  return has_room ? "/dev/shm" : std::filesystem::temp_directory_path().string();
}

// A number of an answer, as etcd writes it: "name":"123".
std::string field(const std::string& json, const std::string& name) {
  const std::string begin = "\"" + name + "\":\"";
  const std::size_t at = json.find(begin);
  if (at == std::string::npos) return {};
  const std::size_t from = at + begin.size();
  return json.substr(from, json.find('"', from) - from);
}

}  // namespace

std::string why_no_etcd() {
  return find_etcd().empty() ? "etcd is not installed (etcd-server)" : "";
}

EtcdCluster::EtcdCluster(EtcdOptions options) : options_(std::move(options)) {
  if (options_.may_be_cut_off) enter_own_network(options_.host);
  std::string folder = data_folder() + "/tests-etcd.XXXXXX";
  EXPECT_NE(::mkdtemp(folder.data()), nullptr);
  folder_ = folder;
  EXPECT_EQ(::chmod(folder.c_str(), 0711), 0);
  for (int i = 0; i < options_.members; ++i) {
    Member& member = members_.emplace_back();
    std::tie(member.kept_client, member.client) = reserve_port(options_.host);
    std::tie(member.kept_peer, member.peer) = reserve_port(options_.host);
    const std::string own = fmt::format("{}/m{}", folder_, i);
    EXPECT_EQ(::mkdir(own.c_str(), 0700), 0);
    if (!options_.may_be_cut_off) continue;
    EXPECT_EQ(::chown(own.c_str(), kFirstUser + static_cast<unsigned>(i), 0), 0);
  }
  for (int i = 0; i < options_.members; ++i) spawn(i);
}

EtcdCluster::~EtcdCluster() {
  for (int i = 0; i < size(); ++i) kill(i);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string EtcdCluster::url(const Endpoint& endpoint, bool is_client) const {
  return fmt::format("{}://{}", is_client && options_.has_tls ? "https" : "http", endpoint.place());
}

void EtcdCluster::spawn(int index) {
  Member& member = members_[static_cast<std::size_t>(index)];
  const std::string client = url(member.client, true), peer = url(member.peer, false);
  std::string all;
  for (int i = 0; i < size(); ++i)
    all += fmt::format("{}m{}={}", i == 0 ? "" : ",", i,
                       url(members_[static_cast<std::size_t>(i)].peer, false));
  std::vector<std::string> words = {find_etcd(),
                                    "--name",
                                    fmt::format("m{}", index),
                                    "--data-dir",
                                    fmt::format("{}/m{}/data", folder_, index),
                                    "--listen-client-urls",
                                    client,
                                    "--advertise-client-urls",
                                    client,
                                    "--listen-peer-urls",
                                    peer,
                                    "--initial-advertise-peer-urls",
                                    peer,
                                    "--initial-cluster",
                                    all,
                                    "--initial-cluster-token",
                                    folder_,
                                    "--max-request-bytes",
                                    "16777216",
                                    "--logger",
                                    "zap",
                                    "--log-outputs",
                                    fmt::format("{}/m{}/log", folder_, index)};
  words.insert(words.end(), options_.flags.begin(), options_.flags.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  member.process = ::fork();
  ASSERT_GE(member.process, 0);
  if (member.process > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int descriptor : {0, 1, 2}) ::dup2(nothing, descriptor);
  ::setenv("GOMAXPROCS", "1", 1);
  if (options_.may_be_cut_off && ::setuid(kFirstUser + static_cast<unsigned>(index)) != 0)
    ::_exit(1);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // which setuid() has ended
  ::execv(arguments[0], arguments.data());
  ::_exit(1);
}

std::unique_ptr<EtcdCluster> EtcdCluster::start(EtcdOptions options) {
  const bool has_tls = options.has_tls;
  std::unique_ptr<EtcdCluster> cluster(new EtcdCluster(std::move(options)));
  // Who uses TLS finds out by connecting.
  if (!has_tls && cluster->leader() < 0) return nullptr;
  return cluster;
}

StoreAddress EtcdCluster::address(const std::string& prefix) const {
  StoreAddress address;
  address.kind = StoreAddress::Kind::kEtcd;
  address.endpoints.clear();
  for (const Member& member : members_) address.endpoints.push_back(member.client);
  address.prefix = prefix;
  return address;
}

int EtcdCluster::leader(int besides) {
  for (const Deadline deadline = Deadline::after(kPatience); !deadline.has_passed();) {
    std::map<std::string, int> members;   // by their number
    std::map<std::string, int> followed;  // how many name it
    for (int i = 0; i < size(); ++i) {
      if (i == besides || process(i) < 0) continue;
      const std::string status = post(i, "/v3/maintenance/status", "{}");
      members[field(status, "member_id")] = i;
      ++followed[field(status, "leader")];
    }
    for (const auto& [number, count] : followed)
      if (!number.empty() && 2 * count > size() && members.contains(number)) return members[number];
    ::poll(nullptr, 0, kLookMs);
  }
  ADD_FAILURE() << "the processes of etcd found no leader";
  return -1;
}

void EtcdCluster::kill(int index) {
  Member& member = members_[static_cast<std::size_t>(index)];
  if (member.process < 0) return;
  ::kill(member.process, SIGKILL);
  ::waitpid(member.process, nullptr, 0);
  member.process = -1;
}

void EtcdCluster::start_again(int index) {
  spawn(index);
}

void EtcdCluster::stop(int member) const {
  EXPECT_EQ(::kill(process(member), SIGSTOP), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(process(member), &status, WUNTRACED), process(member));
}

void EtcdCluster::continue_(int member) const {
  EXPECT_EQ(::kill(process(member), SIGCONT), 0);
}

void EtcdCluster::cut_off(int member) const {
  run(fmt::format("nft add rule inet test sent meta skuid {} drop",
                  kFirstUser + static_cast<unsigned>(member)));
}

void EtcdCluster::heal() const {
  run("nft flush chain inet test sent");
}

std::string EtcdCluster::post(int index, const std::string& path, const std::string& body) const {
  const Endpoint to = endpoint(index);
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{.tv_sec = 2, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const sockaddr_in address = socket_address(to);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return {};
  const std::string request = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}", path,
      to.place(), body.size(), body);
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return {};
  std::string answer;
  char chunk[4096];
  for (ssize_t count = 0; (count = ::recv(socket.get(), chunk, sizeof chunk, 0)) > 0;)
    answer.append(chunk, static_cast<std::size_t>(count));
  const std::size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? std::string() : answer.substr(end + 4);
}

}  // namespace memspan
