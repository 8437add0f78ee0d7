// SPDX-License-Identifier: Apache-2.0
// How a kernel on a device asks the host for something: the device's side of the rings of
// <memspan/kernel_state.h>. Programs include <memspan/kernel.h>. C++17.
//
// A ticket names a slot and a round of the ring. Its holder waits until the slot is free, so a full
// ring holds its callers back; fills it; and hands it over. The host takes slots in the order of
// tickets. The host then owns the posted slot; a thread that wants an answer waits for it and frees
// the slot. Only operations on far PEs are posted: quiet() and fence() ask the host if the job has
// far PEs.
#ifndef MEMSPAN_KERNEL_RING_H
#define MEMSPAN_KERNEL_RING_H

#if !defined MEMSPAN_KERNEL_FUNCTION
#error "a part of <memspan/kernel.h>, to be included by it"
#endif

#include <cstddef>
#include <cstdint>

#include "kernel_copy.h"
#include "kernel_state.h"

namespace memspan::kernel::device {

// Whether only the host reaches the PE, whatever the address.
MEMSPAN_KERNEL_FUNCTION bool is_far(int pe) {
  const memspan_kernel_state& state = primitive::state();
  const auto index = static_cast<std::uint32_t>(pe) - static_cast<std::uint32_t>(state.first_near);
  return index >= MEMSPAN_KERNEL_NEAR_PES || (state.distances[index] & MEMSPAN_KERNEL_FAR) != 0;
}

// The condition that a long wait checks besides its word. The kernel fails when the stop word is
// `stop` or more, and one that waits for a word of this PE also when it has waited as long as the
// job allows; `begun` is 0 at its first look.
MEMSPAN_KERNEL_OUT_OF_LINE void look_around(const char* call, std::uint32_t stop,
                                            std::uint64_t* begun) {
  const memspan_kernel_state& state = primitive::state();
  if (state.stop == nullptr) return;
  const std::uint32_t why = primitive::load_relaxed(state.stop);
  if (why >= stop)
    primitive::end(call, why == MEMSPAN_KERNEL_PEER_DIED ? "a peer has died" : "the job has ended");
  if (stop != MEMSPAN_KERNEL_PEER_DIED) return;
  primitive::store_relaxed(state.waits, std::uint32_t{1});
  if (state.wait_limit_ns == 0) return;
  const std::uint64_t now = primitive::nanoseconds();
  if (*begun == 0) *begun = now;
  if (now - *begun > state.wait_limit_ns)
    primitive::end(call, "nothing came within the time that the job gives its calls");
}

// Until ready() is true, or look_around() ends the kernel.
template <typename Ready>
MEMSPAN_KERNEL_FUNCTION void wait_until(const char* call, std::uint32_t stop, Ready ready) {
  constexpr unsigned kLooksBetween = 64;  // at words in host memory
  std::uint64_t begun = 0;
  for (unsigned looks = 1; !ready(); ++looks) {
    if (looks % kLooksBetween == 0) look_around(call, stop, &begun);
    primitive::pause();
  }
}

// For the host, which ends the process itself when it must.
template <typename Ready>
MEMSPAN_KERNEL_FUNCTION void wait_for_host(const char* call, Ready ready) {
  wait_until(call, MEMSPAN_KERNEL_NOT_SERVED, ready);
}

// A slot that only the calling thread has, until it passes it on to the host.
struct Slot {
  memspan_kernel_request* request;
  std::uint64_t turn;
};

MEMSPAN_KERNEL_FUNCTION Slot claim(const char* call, const memspan_kernel_ring& ring) {
  if (ring.slots == nullptr) primitive::end(call, "called in no job");
  const std::uint64_t ticket = primitive::take_ticket(ring.next_ticket);
  const Slot slot{&ring.slots[ticket % ring.slot_count], 3 * (ticket / ring.slot_count)};
  wait_for_host(call, [=] { return primitive::load_acquire(&slot.request->turn) == slot.turn; });
  return slot;
}

// Publishes this thread's writes to the slot, and those of threads that it has met since.
MEMSPAN_KERNEL_FUNCTION void pass_on(Slot& slot) {
  primitive::store_release(&slot.request->turn, ++slot.turn);
}
MEMSPAN_KERNEL_FUNCTION void ask_and_wait(const char* call, Slot& slot) {
  pass_on(slot);
  const std::uint64_t is_answered = ++slot.turn;
  wait_for_host(call, [=] { return primitive::load_acquire(&slot.request->turn) == is_answered; });
}

// For questions without a payload: the answer, 0 to those that have none.
MEMSPAN_KERNEL_OUT_OF_LINE std::uint64_t ask(const char* call, const memspan_kernel_ring& ring,
                                             const memspan_kernel_question& question) {
  Slot slot = claim(call, ring);
  slot.request->question = question;
  if (question.is_posted != 0) {
    pass_on(slot);
    return 0;
  }
  ask_and_wait(call, slot);
  const std::uint64_t answer = slot.request->answer;
  pass_on(slot);
  return answer;
}

// Rows to or from a PE that only the host reaches, as many at a time as a payload holds; the
// threads of the group copy together, and the first of them asks.
template <typename Group>
class FarRows {
 public:
  MEMSPAN_KERNEL_FUNCTION FarRows(const Group& group, std::uint32_t operation, int pe)
      : group_(group), operation_(operation), pe_(pe) {}

  // `far` is this PE's address of the rows.
  MEMSPAN_KERNEL_OUT_OF_LINE void move(void* far, std::ptrdiff_t far_pitch, void* near,
                                       std::ptrdiff_t near_pitch, std::size_t bytes,
                                       std::size_t rows) const {
    auto* const there = static_cast<unsigned char*>(far);
    auto* const here = static_cast<unsigned char*>(near);
    const std::size_t at_once = bytes < kMost ? kMost / bytes : 1;
    for (std::size_t row = 0; row < rows; row += at_once) {
      const auto number = static_cast<std::ptrdiff_t>(row);
      const std::size_t some = rows - row < at_once ? rows - row : at_once;
      for (std::size_t begin = 0; begin < bytes; begin += kMost)
        move_piece(there + number * far_pitch + begin, far_pitch,
                   here + number * near_pitch + begin, near_pitch,
                   bytes - begin < kMost ? bytes - begin : kMost, some);
    }
  }

 private:
  static constexpr std::size_t kMost = MEMSPAN_KERNEL_PAYLOAD_BYTES;

  MEMSPAN_KERNEL_FUNCTION void move_piece(unsigned char* far, std::ptrdiff_t far_pitch,
                                          unsigned char* near, std::ptrdiff_t near_pitch,
                                          std::size_t bytes, std::size_t rows) const {
    const bool is_put = operation_ == MEMSPAN_KERNEL_ASK_PUT;
    const char* const call = is_put ? "put" : "get";
    const bool is_first = group_.index() == 0;
    Slot slot{nullptr, 0};
    if (is_first) {
      slot = claim(call, primitive::state().requests);
      memspan_kernel_question& question = slot.request->question;
      question = memspan_kernel_question{};
      question.operation = operation_;
      question.is_posted = is_put && is_far(pe_) ? 1 : 0;
      question.pe = pe_;
      question.address = reinterpret_cast<std::uintptr_t>(far);
      question.pitch = far_pitch;
      question.row_bytes = bytes;
      question.rows = rows;
      if (!is_put) ask_and_wait(call, slot);
    }
    auto* const request = reinterpret_cast<memspan_kernel_request*>(
        group_.broadcast(reinterpret_cast<std::uintptr_t>(slot.request)));
    const auto packed = static_cast<std::ptrdiff_t>(bytes);
    if (is_put)
      copy_rows(group_, request->payload, near, backend::ByteRows{rows, bytes, near_pitch, packed});
    else
      copy_rows(group_, near, request->payload, backend::ByteRows{rows, bytes, packed, near_pitch});
    group_.sync();
    if (!is_first) return;
    if (is_put && !is_far(pe_)) ask_and_wait(call, slot);
    pass_on(slot);
  }

  const Group& group_;
  const std::uint32_t operation_;
  const int pe_;
};

}  // namespace memspan::kernel::device

#endif  // MEMSPAN_KERNEL_RING_H
