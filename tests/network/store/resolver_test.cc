// SPDX-License-Identifier: Apache-2.0
#include "net/endpoint.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "core/log.h"
#include "net/own_addresses.h"
#include "net/tcp.h"
#include "store/client.h"
#include "support.h"
#include "support/needs.h"
#include "unit/support/private_folder.h"

namespace memspan {
namespace {

TEST(ResolverTest, AnAddressIsNotLookedUp) {
  auto found = resolve({"192.0.2.7", 80}, Deadline::after(Duration::zero()));
  ASSERT_TRUE(found.is_ok()) << found.status().to_string();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().storage.ss_family, AF_INET);
}

TEST(ResolverTest, GivesTheOldKindOfAddressFirst) {
  auto found = resolve({"localhost", 80}, soon());
  ASSERT_TRUE(found.is_ok()) << found.status().to_string();
  EXPECT_EQ(found->front().storage.ss_family, AF_INET);
}

TEST(ResolverTest, NamesAHostThatIsUnknown) {
  auto found = resolve({"no-such-host.invalid", 80}, soon());
  EXPECT_EQ(found.code(), Code::kUnavailable);
  EXPECT_NE(found.status().message().find("no-such-host.invalid"), std::string::npos)
      << found.status().message();
}

// What the child ends with; a number below kFailed is the step that this system does not allow.
constexpr int kPassed = 0;
constexpr int kFailed = 100;

bool write_file(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

void enter_network() {
  const std::string ids = "0 " + std::to_string(::geteuid()) + " 1\n";
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0) ::_exit(1);
  write_file("/proc/self/setgroups", "deny");
  if (!write_file("/proc/self/uid_map", ids)) ::_exit(2);
}

// For this process, by a file in the folder.
void replace_in_etc(const std::string& folder, const std::string& name, const std::string& text) {
  const std::string ours = folder + "/" + name;
  const std::string theirs = "/etc/" + name;
  write_file(ours.c_str(), text);
  if (::mount(ours.c_str(), theirs.c_str(), nullptr, MS_BIND, nullptr) != 0) ::_exit(3);
}

// Its second address stands for one that other hosts reach.
void start_loopback() {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::snprintf(request.ifr_name, sizeof request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) ::_exit(5);
  std::snprintf(request.ifr_name, sizeof request.ifr_name, "lo:1");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, "192.0.2.9", &address.sin_addr);
  std::memcpy(&request.ifr_addr, &address, sizeof address);
  if (::ioctl(socket.get(), SIOCSIFADDR, &request) != 0) ::_exit(7);
}

// A network of its own, whose name server takes every question and answers none.
[[noreturn]] void resolve_without_an_answer(const std::string& folder) {
  enter_network();
  replace_in_etc(folder, "resolv.conf", "nameserver 127.0.0.1\noptions timeout:20 attempts:1\n");
  replace_in_etc(folder, "nsswitch.conf", "hosts: dns\n");
  start_loopback();
  const Fd server(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) ::_exit(6);
  const auto begin = Clock::now();
  const auto found = resolve({"host.example", 80}, Deadline::after(std::chrono::milliseconds(300)));
  const Duration took = Clock::now() - begin;
  std::printf("%s after %.3f s\n", found.status().to_string().c_str(), to_seconds(took));
  std::fflush(stdout);
  const bool is_named =
      found.status().message().find("no answer from the name server in time") != std::string::npos;
  const bool has_own = address_towards({"host.example", 80}).has_value();
  // Far less than the name server may take, twice.
  const bool is_in_time = Clock::now() - begin < std::chrono::seconds(15);
  ::_exit(found.code() == Code::kUnavailable && is_named && !has_own && is_in_time ? kPassed
                                                                                   : kFailed);
}

// A network of its own, whose hosts file has this host's names as Debian's does.
[[noreturn]] void listen_by_name(const std::string& folder) {
  enter_network();
  constexpr auto kHosts = "127.0.0.1 localhost\n127.0.1.1 both only-here\n192.0.2.9 both\n";
  replace_in_etc(folder, "hosts", kHosts);
  replace_in_etc(folder, "nsswitch.conf", "hosts: files\n");
  start_loopback();
  static int warnings;
  static std::atomic<int> waits;
  set_log_sink([](int, const char* line) {
    if (std::strstr(line, "no other host can connect") != nullptr) ++warnings;
    if (std::strstr(line, "waiting 10 s for the address to listen at: ") != nullptr) ++waits;
  });
  const auto listens_at = [](const char* host, const char* address, int warned) {
    const auto listener = listen_tcp({host, 0});
    std::printf(
        "%s: %s, %d warnings\n", host,
        listener.is_ok() ? listener->endpoint.host.c_str() : listener.status().message().c_str(),
        warnings);
    return listener.is_ok() && listener->endpoint.host == address && warnings == warned;
  };
  // A cluster's names come to be known when their processes run.
  std::thread cluster([&] {
    while (waits == 0) std::this_thread::yield();
    write_file((folder + "/hosts").c_str(), "192.0.2.9 late\n");
  });
  const bool waits_for_a_name = listens_at("late", "192.0.2.9", 0);
  cluster.join();
  write_file((folder + "/hosts").c_str(), kHosts);
  const bool is_right = waits_for_a_name && waits == 1 && listens_at("both", "192.0.2.9", 0) &&
                        listens_at("localhost", "127.0.0.1", 0) &&
                        listens_at("127.0.1.1", "127.0.1.1", 0) &&
                        listens_at("only-here", "127.0.1.1", 1);
  std::fflush(stdout);
  ::_exit(is_right ? kPassed : kFailed);
}

// A network of its own, in which nobody listens at the name: the message must not blame a name
// server for an attempt that is cut short.
[[noreturn]] void connect_by_name(const std::string& folder) {
  enter_network();
  replace_in_etc(folder, "hosts", "127.0.1.1 only-here\n");
  replace_in_etc(folder, "nsswitch.conf", "hosts: files\n");
  start_loopback();
  static std::string told;
  set_log_sink([](int, const char* line) { told += line; });
  const auto store = StoreClient::connect({.endpoint = Endpoint{"only-here", 9}},
                                          Deadline::after(std::chrono::milliseconds(3500)));
  set_log_sink(nullptr);
  const auto is_right = [](const std::string& text) {
    std::printf("%s\n", text.c_str());
    return text.find("Connection refused") != std::string::npos &&
           text.find("name server") == std::string::npos;
  };
  const bool are_right = is_right(told) && is_right(store.status().message());
  std::fflush(stdout);
  ::_exit(store.code() == Code::kTimeout && are_right ? kPassed : kFailed);
}

void expect_child_passes(void (*run)(const std::string&)) {
  const PrivateFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) run(folder.path());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "it ended by signal " << WTERMSIG(status);
  const int step = WEXITSTATUS(status);
  EXPECT_EQ(step, kPassed) << "below " << kFailed << ": the step that this system does not allow";
}

TEST(ResolverTest, AListenerPrefersWhatOtherHostsReach) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "does not apply: as below";
#endif
  MEMSPAN_NEEDS("user_namespaces");
  expect_child_passes(listen_by_name);
}

TEST(ResolverTest, AStoreThatIsAbsentIsCalledSo) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "does not apply: as below";
#endif
  MEMSPAN_NEEDS("user_namespaces");
  expect_child_passes(connect_by_name);
}

TEST(ResolverTest, AnAnswerThatIsLostCostsNoMoreThanTheDeadline) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "does not apply: this sanitizer has a thread of its own, and the kernel gives user "
         "namespaces to processes of one thread only";
#endif
  MEMSPAN_NEEDS("user_namespaces");
  expect_child_passes(resolve_without_an_answer);
}

}  // namespace
}  // namespace memspan
