// SPDX-License-Identifier: Apache-2.0
// Transfers between processes of one host whose memory the kernel does not move: messages reach
// ordinary memory, and one line says so.
#include <fcntl.h>
#include <linux/capability.h>
#include <memspan/transfer.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "fabric/trans.h"
#include "support/forbidden_syscalls.h"
#include "support/needs.h"

namespace trans {
namespace {

constexpr std::size_t kBytes = (std::size_t{1} << 20) + 100;

using Run = std::function<void()>;
// Runs the function as a process that the kernel refuses something.
using Refuse = std::function<void(const Run& run)>;

std::atomic<int> lines_about_messages{0};
std::atomic<bool> line_is_complete{false};

void note_line(int /*level*/, const char* line) {
  if (std::strstr(line, "is reached by messages") == nullptr) return;
  ++lines_about_messages;
  line_is_complete = std::strstr(line, kTarget) != nullptr &&
                     std::strstr(line, "process_vm_") != nullptr &&
                     std::strstr(line, "(errno ") != nullptr;
}

Refuse without_copies(int error) {
  return [error](const Run& run) {
    constexpr long kCalls[] = {SYS_process_vm_readv, SYS_process_vm_writev};
    ASSERT_EQ(forbid_syscalls(kCalls, 2, error), 0);
    run();
  };
}

void write_file(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  ASSERT_GE(file, 0) << path;
  EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size())) << path;
  close(file);
}

std::string only(unsigned id) {
  return std::to_string(id) + " " + std::to_string(id) + " 1";
}

// In a child, since only children are in a new pid namespace. Users keep their numbers.
Refuse in_namespaces(int flags) {
  return [flags](const Run& run) {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    ASSERT_EQ(unshare(flags), 0) << std::strerror(errno);
    if ((flags & CLONE_NEWUSER) != 0) {
      write_file("/proc/self/setgroups", "deny");
      write_file("/proc/self/uid_map", only(user));
      write_file("/proc/self/gid_map", only(group));
    }
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      run();
      std::fflush(nullptr);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  };
}

// The first 32 of those that this process has.
std::uint32_t capabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct own[2] = {};
  return syscall(SYS_capget, &header, own) == 0 ? own[0].effective : 0;
}

int pid_namespace() {
  const bool may_alone = (capabilities() >> CAP_SYS_ADMIN & 1) != 0;
  return may_alone ? CLONE_NEWPID : CLONE_NEWPID | CLONE_NEWUSER;
}

void without_capabilities(const Run& run) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  ASSERT_EQ(syscall(SYS_capset, &header, none), 0);
  run();
}

struct Memory {
  unsigned char* ordinary;
  unsigned char* mapped;
};

Memory offer_memory(smem_trans_t handle, int wire) {
  auto* ordinary = offer_pages(handle, kBytes, wire);
  auto* mapped = static_cast<unsigned char*>(smem_trans_malloc(handle, kBytes));
  std::memset(mapped, 7, kBytes);
  say(wire, mapped);
  return {ordinary, mapped};
}

Memory hear_memory(int wire) {
  auto* ordinary = hear<unsigned char*>(wire);
  return {ordinary, hear<unsigned char*>(wire)};
}

void move_one(smem_trans_t handle, unsigned char* there) {
  std::vector<unsigned char> bytes(kBytes, 9), back(kBytes);
  ASSERT_EQ(smem_trans_write(handle, bytes.data(), kTarget, there, kBytes), SMEM_OK)
      << smem_get_last_err_msg();
  ASSERT_EQ(smem_trans_read(handle, back.data(), kTarget, there, kBytes), SMEM_OK)
      << smem_get_last_err_msg();
  EXPECT_TRUE(all_are(back.data(), kBytes, 9));
}

// More pieces than are looked up at a time, of both kinds in turns of three.
void move_batch(smem_trans_t handle, const Memory& remote) {
  constexpr std::uint32_t kCount = 500;
  constexpr std::size_t kPiece = 100;
  std::vector<unsigned char> bytes(kCount * kPiece), back(kCount * kPiece);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7);
  std::vector<const void*> from, there_const;
  std::vector<void*> to, there;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    unsigned char* const base = i / 3 % 2 == 0 ? remote.ordinary : remote.mapped;
    from.push_back(&bytes[i * kPiece]);
    to.push_back(&back[i * kPiece]);
    there.push_back(base + 2 * i * kPiece);
    there_const.push_back(there.back());
  }
  std::vector<std::size_t> sizes(kCount, kPiece);
  ASSERT_EQ(
      smem_trans_batch_write(handle, from.data(), kTarget, there.data(), sizes.data(), kCount),
      SMEM_OK)
      << smem_get_last_err_msg();
  ASSERT_EQ(
      smem_trans_batch_read(handle, to.data(), kTarget, there_const.data(), sizes.data(), kCount),
      SMEM_OK)
      << smem_get_last_err_msg();
  EXPECT_EQ(bytes, back);
}

void post_one(smem_trans_t handle, unsigned char* there) {
  std::vector<unsigned char> bytes(kBytes, 5);
  void* from = bytes.data();
  void* to = there;
  const std::size_t size = kBytes;
  memspan_transfer_t request = nullptr;
  ASSERT_EQ(memspan_transfer_prepare(handle, MEMSPAN_TRANSFER_WRITE, kTarget, &from, &to, &size, 1,
                                     &request),
            SMEM_OK);
  ASSERT_EQ(memspan_transfer_set_counter(request, 0, 1), SMEM_OK);
  ASSERT_EQ(memspan_transfer_post(request), SMEM_OK);
  EXPECT_EQ(memspan_transfer_wait(request, 30000), SMEM_OK) << smem_get_last_err_msg();
  EXPECT_EQ(memspan_transfer_destroy(request), SMEM_OK);
}

// The initiator is `refused`. `lines` is how many lines are about messages.
void expect_transfers(const Refuse& refused, int lines) {
  Store store;
  Wire wire;
  Side target([&] {
    const auto handle = create(store.url(), kTarget);
    const Memory own = offer_memory(handle, wire.left());
    EXPECT_EQ(memspan_transfer_wait_counter(handle, 0, 1, 60000), SMEM_OK);
    EXPECT_TRUE(all_are(own.ordinary, kBytes, 5)) << "a posted transfer comes before its counter";
    meet(wire.left());
    smem_trans_destroy(handle, 0);
  });
  Side initiator([&] {
    refused([&] {
      ASSERT_EQ(smem_set_extern_logger(note_line), SMEM_OK);
      ASSERT_EQ(smem_set_log_level(1), SMEM_OK);
      const auto handle = create(store.url(), kInitiator);
      const Memory remote = hear_memory(wire.right());
      move_one(handle, remote.mapped);
      EXPECT_EQ(lines_about_messages, 0) << "mapped memory needs no other process";
      move_batch(handle, remote);
      move_one(handle, remote.ordinary);
      unsigned char byte = 0;
      EXPECT_EQ(smem_trans_read(handle, &byte, kTarget, remote.ordinary + kBytes, 1),
                SMEM_NOT_EXIST);
      post_one(handle, remote.ordinary);
      EXPECT_EQ(lines_about_messages, lines);
      EXPECT_EQ(line_is_complete, lines != 0);
      meet(wire.right());
      smem_trans_destroy(handle, 0);
    });
  });
  initiator.join();
  target.join();
}

TEST(TransRefusedTest, ProcessesThatMayNotCopy) {
  MEMSPAN_NEEDS("seccomp");
  expect_transfers(without_copies(EPERM), 1);
  expect_transfers(without_copies(ENOSYS), 1);
}

TEST(TransRefusedTest, OtherPidNamespaces) {
  MEMSPAN_NEEDS("user_namespaces");
  expect_transfers(in_namespaces(pid_namespace()), 1);
}

#if !defined(__SANITIZE_THREAD__)  // whose thread keeps a process from a new user namespace
TEST(TransRefusedTest, OtherUserNamespaces) {
  MEMSPAN_NEEDS("user_namespaces");
  expect_transfers(in_namespaces(CLONE_NEWUSER), 1);
}
#endif

TEST(TransRefusedTest, FewerCapabilities) {
  if (capabilities() == 0) GTEST_SKIP() << "does not apply: this process has no capability to drop";
  expect_transfers(without_capabilities, 1);
}

// One that is killed is named within a second: by its pidfd, and without pidfds.
TEST(TransRefusedTest, APeerThatIsKilledIsNamedSoon) {
  MEMSPAN_NEEDS("seccomp");
  for (const std::size_t calls : {2u, 3u}) {
    constexpr long kCalls[] = {SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_open};
    Store store;
    Wire wire, control;
    Side target([&] {
      ASSERT_EQ(forbid_syscalls(kCalls, calls, ENOSYS), 0);
      const auto handle = create(store.url(), kTarget);
      offer_memory(handle, wire.left());
      // A child that lives on does not look like its parent.
      if (fork() == 0) _exit(hear<char>(wire.left()));
      pause();
    });
    Side initiator([&] {
      ASSERT_EQ(forbid_syscalls(kCalls, calls, ENOSYS), 0);
      const auto handle = create(store.url(), kInitiator);
      const Memory remote = hear_memory(wire.right());
      move_one(handle, remote.ordinary);
      say(control.left(), 'k');
      const std::vector<unsigned char> bytes(kBytes);
      int code = SMEM_OK;
      while (code == SMEM_OK)
        code = smem_trans_write(handle, bytes.data(), kTarget, remote.ordinary, kBytes);
      const auto noticed = std::chrono::steady_clock::now();
      EXPECT_EQ(code, SMEM_NOT_CONNECTED) << smem_get_last_err_msg();
      EXPECT_TRUE(says("has died") && says(kTarget));
      const auto killed = hear<std::chrono::steady_clock::time_point>(control.left());
      EXPECT_LT(noticed - killed, std::chrono::seconds(1));
      say(wire.right(), 'e');
      smem_trans_destroy(handle, 0);
    });
    hear<char>(control.right());
    const auto when = std::chrono::steady_clock::now();
    target.kill();
    say(control.right(), when);
    initiator.join();
  }
}

}  // namespace
}  // namespace trans
