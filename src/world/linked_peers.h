// SPDX-License-Identifier: Apache-2.0
// The PEs that this process reaches by links: those of other nodes, or all if MEMSPAN_TRANSPORT
// does not allow `mapped`. It exposes the heap (region 1) and the static symmetric segment (region
// 2) to them, and sends other nodes notices about this one.
//
// A job whose PEs are all mapped has none, and so no thread and no socket.
#pragma once

#include "memory/static_segment.h"
#include "transport/message/message_transport.h"
#include "world/introduction.h"
#include "world/membership.h"
#include "world/notices.h"

namespace memspan::inline world {

inline constexpr std::uint32_t kHeapRegion = 1;
inline constexpr std::uint32_t kStaticRegion = 2;

// Thread-safe once made.
class LinkedPeers : NotCopyable {
 public:
  // The memory that this process exposes, and the values that must be equal on all.
  struct Memory {
    std::byte* heap = nullptr;
    std::size_t heap_bytes = 0;
    std::uint32_t commit_mode = 0;
    StaticSegment data;
  };

  // Exchanges introductions with all PEs (membership.exchange), and links those of other nodes;
  // with `links_near` also those of this node. All arguments must outlive it.
  static Result<std::unique_ptr<LinkedPeers>> make(const Membership& membership,
                                                   WaitContext& waiting, Messages& messages,
                                                   const Memory& memory, bool links_near);
  ~LinkedPeers();

  // Null for a PE that needs none, and for this process.
  Link* link(int peer) const { return links_[peer].get(); }
  const RemoteRegion* heap_of(int peer) const { return &introductions_[peer].heap; }
  // Null when the PE runs another program or its variables are not symmetric.
  const RemoteRegion* data_of(int peer) const;

  // Memory of this process's device; the region must not outlive this.
  Result<std::unique_ptr<ExposedRegion>> expose_device(std::byte* base, std::size_t bytes,
                                                       std::uint32_t number) {
    return transport_->expose(
        {.base = base, .bytes = bytes, .kind = MemoryKind::kDevice, .number = number});
  }

  ProgressEngine& engine() { return transport_->engine(); }
  // Sends it to all other nodes (notices.h); does not wait.
  void tell(const Notice& notice) {
    if (is_ready_.load(std::memory_order_acquire)) notice_routes().tell(notice);
  }
  // Returns when the messages that this process has sent are handled, their receivers are gone, or
  // the deadline passes.
  void flush(const Deadline& deadline);
  const MessageTransport& transport() const { return *transport_; }
  void forget_in_child() { transport_->forget_in_child(); }

 private:
  LinkedPeers(const Membership& membership, WaitContext& waiting, Messages& messages);
  Status start_transport();
  Result<std::string> introduction(const Memory& memory);
  Status introduce(const Memory& memory);
  void connect(bool links_near);
  Status send(int peer, const MessageTag& tag, std::span<const std::byte> bytes,
              const Deadline& deadline);
  void take(int from, const Notice& notice);
  void repeat_ends();
  void ask_for_ends(int dead);
  void call_later(Duration patience, std::function<void()> call) {
    transport_->call_at(Clock::now() + patience, std::move(call));
  }
  void handle_loss(int peer);
  void note_loss(int peer);
  void keep_in_touch();
  NoticeRoutes notice_routes() {
    return {membership_.rank, membership_.nodes, waiting_, messages_};
  }

  const Membership& membership_;
  WaitContext& waiting_;
  Messages& messages_;
  std::vector<Introduction> introductions_;      // by PE
  std::vector<std::atomic<bool>> has_messages_;  // by PE: some were sent since the last flush()
  std::atomic<bool> is_ready_{false};            // the links are connected
  // By PE; for handlers of the transport, of which one runs at a time.
  std::vector<bool> has_greeted_;
  std::vector<bool> has_repeated_;  // it died after its end, and ends were sent again

  std::unique_ptr<MessageTransport> transport_;  // its thread ends before what it calls
  std::unique_ptr<ExposedRegion> heap_;
  std::unique_ptr<ExposedRegion> data_;
  std::vector<std::unique_ptr<Link>> links_;  // by PE
};

}  // namespace memspan::inline world
