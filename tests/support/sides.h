// SPDX-License-Identifier: Apache-2.0
// Tests of several processes through the public interface: a test forks its sides, each of which
// runs a function and talks with others over wires. The test's own process has no threads and never
// calls the library, so that it may fork at any time.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace sides {

// Two ends of a connection, made before the sides that use them.
class Wire {
 public:
  Wire();
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  int left() const { return ends_[0]; }
  int right() const { return ends_[1]; }

 private:
  int ends_[2];
};

// A process that cannot go on says so and ends with code 1.
void say_bytes(int end, const void* bytes, std::size_t count);
void hear_bytes(int end, void* bytes, std::size_t count);
template <typename T>
void say(int end, const T& value) {
  say_bytes(end, &value, sizeof value);
}
template <typename T>
T hear(int end) {
  T value;
  hear_bytes(end, &value, sizeof value);
  return value;
}
// A meeting of the two who hold the ends.
inline void meet(int end) {
  say(end, 'm');
  hear<char>(end);
}

// A process; ends with the test at the latest. Its EXPECTs count: the test fails when one did not
// hold, or when it ended otherwise.
class Side {
 public:
  explicit Side(const std::function<void()>& run);
  // On that host (join_test_host).
  Side(const std::function<void()>& run, int host);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  pid_t process() const { return process_; }
  // After SIGSTOP all its threads have stopped.
  void signal(int number) const;
  // Waits for its end.
  void join();
  // Ends it as a crash would.
  void kill();

 private:
  pid_t process_;
};

// A process that hosts a store.
class Store {
 public:
  Store();
  const char* url() const { return url_.c_str(); }
  // As a crash would.
  void kill() { host_->kill(); }
  // Once it was killed: another one at the same address.
  void start();

 private:
  std::string url_;
  Wire wire_;
  std::unique_ptr<Side> host_;
};

}  // namespace sides
