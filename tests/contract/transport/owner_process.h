// SPDX-License-Identifier: Apache-2.0
// The peer of the contract: a process of its own that exposes two regions by the transport under
// test, and then sleeps in read() until it is told to do something. Its memory is shared with the
// test for looking at it, which the transport does not know.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "core/fd.h"
#include "core/pages.h"
#include "device/reservation.h"
#include "transport/message/message_transport.h"

namespace memspan::contract {

inline constexpr std::size_t kBytes = std::size_t{4} << 20;  // of the first region
inline constexpr std::size_t kSmallBytes = 4096;             // of the second
inline constexpr int kOwner = 1;
inline constexpr int kUser = 0;  // the test

// "message_unix", "message_tcp", "message_tls" (over TCP), "message_ucx" (the last two registered
// where they are built). kMessageUcxNative (UCX with all that it finds)
// and kMessageProcessNative (process_access.h): with one-sided access to the first region.
enum class Backend {
  kMessageUnix,
  kMessageTcp,
  kMessageTls,
  kMessageUcx,
  kMessageUcxNative,
  kMessageProcessNative
};
const char* name_of(Backend backend);

std::unique_ptr<Carrier> make_carrier(Backend backend);

// Options of a message transport over that carrier.
MessageOptions message_options(Backend backend, int self);

class OwnerProcess {
 public:
  explicit OwnerProcess(Backend backend, const std::string& faults = "",
                        Duration silence_limit = Duration::max());
  ~OwnerProcess();

  // The owner's memory.
  template <typename T>
  T& memory(std::size_t offset) {
    return *reinterpret_cast<T*>(looked_at_.base() + offset);
  }
  std::byte* base() { return looked_at_.base(); }
  const Pages& pages() const { return pages_; }
  const PeerAddress& address() const { return address_; }
  const RemoteRegion& region() const { return region_; }
  const RemoteRegion& small_region() const { return small_; }
  pid_t process() const { return process_; }

  // The answer of the owner. Words: "retract" (the second region), "expose" (again, with its
  // number), "counter NAME", "messages", "lost", "leave", "die", "applied".
  std::string ask(const std::string& word);
  // It does not run between the two.
  void stop();
  void go_on();
  // It ends by that signal, which is what the test wants.
  void end_by(int signal);

 private:
  Pages pages_;
  Reservation looked_at_;
  Fd to_, from_;
  pid_t process_ = -1;
  int ends_by_ = 0;
  PeerAddress address_;
  RemoteRegion region_;
  RemoteRegion small_;
};

}  // namespace memspan::contract
