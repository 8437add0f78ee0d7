// SPDX-License-Identifier: Apache-2.0
// What the operations of a group pass data through: memory of every member that all have mapped.
//
//   fixed:  | header 0 | header 1 | ready 0 | done 0 | ready 1 | done 1 |   a word for each member
//   data:   | slot 0 ... | slot 1 ... |                                     grows, the same on all
//
// Every call uses one of two slots in turn. A member announces the call in its header, writes its
// slot, and makes its word in each peer's `ready` 1; the peer waits for that, makes it 0, compares
// the calls, reads the slot, and makes its own word in the member's `done` 1. A member that is two
// calls further waits for those before it writes the slot again. So no call waits for anybody but
// those whose data it wants, nobody can be overtaken twice, and what is left behind are zeros.
//
// A member that cannot go on says so where it would say "ready", and all get an exception in the
// same call. When a member dies or does not call in time, every later call fails.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "torch_group.h"

namespace memspan::tensors {

// One call at a time: a call during another thread's gets an exception.
class Workspace {
 public:
  // Collective.
  explicit Workspace(const std::shared_ptr<const TorchGroup>& group)
      : group_(group),
        fixed_(group, std::make_shared<Block>(fixed_bytes(group->size()))),
        did_(group->size()) {}

  const TorchGroup& group() const { return *group_; }
  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }

  // Begins a call, with room for `bytes` in this member's slot. `call` says what is the same on all
  // members, or they get an exception; so does `bytes`.
  void begin(const std::string& call, std::size_t bytes) {
    std::string all = call + ", " + std::to_string(bytes) + " bytes";
    if (all.size() >= kCallBytes) {
      constexpr std::size_t kHashDigits = 24;  // at most, with what separates them
      const std::string hash = "... #" + std::to_string(std::hash<std::string>()(all));
      all = all.substr(0, kCallBytes - 1 - kHashDigits - 1) + hash;
    }
    enter(all);
    if (bytes <= room_) return;
    guarded([&] { grow(bytes); });
    enter(all);
  }
  // Runs what is left of a call: when that throws, the others get an exception, too.
  template <typename Function>
  void guarded(Function function) {
    try {
      function();
    } catch (const std::exception&) {
      abandon();
      throw;
    }
  }
  // Runs `check`, which looks at a call's arguments and throws for wrong ones: the others get an
  // exception that has the reason.
  template <typename Check>
  auto checked(Check check) {
    try {
      return check();
    } catch (const c10::Error& error) {
      enter(error.what_without_backtrace());
      finish_with(kRefused);
      throw;
    } catch (const std::exception& error) {
      enter(error.what());
      finish_with(kRefused);
      throw;
    }
  }

  // From here on `member` may read what this one's slot has for it.
  void publish(int member) { publish_as(member, kGood); }
  void publish_all() {
    for (int step = 1; step < size(); ++step) publish((rank() + step) % size());
  }
  // A member whose slot can be read, each once: one that is there already before one that is not.
  int next() {
    int member = -1;
    for (int step = size() - 1; step > 0; --step) {
      const int candidate = (rank() + step) % size();
      if (did_[candidate].await) continue;
      member = candidate;
      if (std::atomic_ref(line(rank(), kReady, candidate).word).load(std::memory_order_relaxed) !=
          0)
        break;
    }
    TORCH_CHECK(member >= 0, "every member's part of this call has been waited for");
    await(member);
    return member;
  }
  void await_all() {
    for (int step = 1; step < size(); ++step)
      if (const int member = (rank() + step) % size(); !did_[member].await) await(member);
  }
  // `member`'s slot is not read any more.
  void release(int member) {
    if (std::exchange(did_[member].release, true)) return;
    swap_word(line(member, kDone, rank()), 0, 1, member);
  }
  void release_all() {
    for (int step = 1; step < size(); ++step) release((rank() + step) % size());
  }
  // Ends the call; all have been awaited and released. This member's slot may still be read.
  void end() {
    is_in_use_[turn_] = true;
    is_in_call_.store(false, std::memory_order_release);
  }
  // Ends it when nobody reads or writes this member's memory for it any more.
  void end_together() {
    is_in_use_[turn_] = true;
    await_done();
    is_in_call_.store(false, std::memory_order_release);
  }
  // Ends it after something went wrong here; nothing when it is over. The others get an exception
  // if they want more of this member in this call.
  void abandon() {
    if (is_in_call_.load(std::memory_order_acquire) && !is_broken_) finish_with(kFailed);
  }

  // A slot of this call.
  std::byte* slot(int member) const { return data_ ? data_->of(member) + turn_ * room_ : nullptr; }

 private:
  static constexpr std::size_t kCallBytes = 256;
  enum Words { kReady, kDone };
  // What a `ready` means.
  enum Verdict : std::uint32_t { kGood, kRefused, kFailed };
  // On a cache line of its own.
  struct alignas(64) Line {
    std::uint32_t word;
    std::uint32_t verdict;
  };
  struct Header {
    char call[kCallBytes];
  };
  // While an exception passes it the members get out of step.
  struct BreaksByException {
    std::atomic<bool>& is_broken;
    const int exceptions = std::uncaught_exceptions();
    ~BreaksByException() {
      if (std::uncaught_exceptions() > exceptions) is_broken.store(true);
    }
  };

  static std::size_t fixed_bytes(int size) {
    return 2 * sizeof(Header) + 4 * static_cast<std::size_t>(size) * sizeof(Line);
  }
  Header& header(int member) const { return reinterpret_cast<Header*>(fixed_.of(member))[turn_]; }
  // `about`'s line at `member`.
  Line& line(int member, Words words, int about) const {
    auto* lines = reinterpret_cast<Line*>(fixed_.of(member) + 2 * sizeof(Header));
    return lines[(2 * turn_ + words) * size() + about];
  }

  void swap_word(Line& line, std::uint32_t expected, std::uint32_t value, int member) {
    const BreaksByException breaks{is_broken_};
    group_->swap_word(line.word, expected, value, member, 0, [&] {
      return "rank " + std::to_string(member) + " did not come to \"" + header(rank()).call +
             "\" of the process group \"" + group_->name() + "\"";
    });
  }

  void enter(const std::string& call) {
    const bool is_in_call = is_in_call_.exchange(true, std::memory_order_acquire);
    TORCH_CHECK(!is_broken_, "an operation of the process group \"", group_->name(),
                "\" has failed, so that its ranks are out of step; make a new process group");
    TORCH_CHECK(!is_in_call, "another thread is in an operation of the process group \"",
                group_->name(), "\"");
    turn_ ^= 1;
    await_done();
    Header& mine = header(rank());
    std::memset(&mine, 0, sizeof mine);
    call.copy(mine.call, kCallBytes - 1);
    did_.assign(size(), {});
    did_[rank()] = {.publish = true, .await = true, .release = true};
  }

  // Until this turn's slot of this member is read no more.
  void await_done() {
    if (!std::exchange(is_in_use_[turn_], false)) return;
    for (int step = 1; step < size(); ++step) {
      const int member = (rank() + step) % size();
      swap_word(line(rank(), kDone, member), 1, 0, member);
    }
  }

  void publish_as(int member, Verdict verdict) {
    if (std::exchange(did_[member].publish, true)) return;
    Line& there = line(member, kReady, rank());
    there.verdict = verdict;  // `member` has read the last one, or it would not have been `done`
    swap_word(there, 0, 1, member);
  }

  // The verdict of `member`.
  Verdict receive(int member) {
    did_[member].await = true;
    Line& here = line(rank(), kReady, member);
    swap_word(here, 1, 0, member);
    return static_cast<Verdict>(here.verdict);
  }

  void await(int member) {
    const Verdict verdict = receive(member);
    if (verdict == kGood && std::memcmp(&header(member), &header(rank()), sizeof(Header)) == 0)
      return;
    const std::string theirs(header(member).call, strnlen(header(member).call, kCallBytes));
    const std::string mine(header(rank()).call);
    const std::string who = "rank " + std::to_string(member);
    finish_with(kFailed);
    if (verdict == kFailed) raise("Error", who + " failed in \"" + theirs + "\"", SMEM_ERROR);
    if (verdict == kRefused)
      raise("InvalidArgument", who + " refused a call: " + theirs, SMEM_INVALID_PARAM);
    raise("InvalidArgument",
          "the ranks' calls differ: \"" + theirs + "\" on " + who + ", \"" + mine + "\" on rank " +
              std::to_string(rank()),
          SMEM_INVALID_PARAM);
  }

  // Does what is left to do in the call for those who do not know yet, and lets them finish.
  void finish_with(Verdict verdict) {
    for (int step = 1; step < size(); ++step) publish_as((rank() + step) % size(), verdict);
    for (int member = 0; member < size(); ++member)
      if (!did_[member].await) receive(member);
    release_all();
    end_together();
  }

  // A call of its own, in which all see that all are about to map larger slots.
  void grow(std::size_t bytes) {
    constexpr std::size_t kSteps = std::size_t{1} << 20;
    const std::size_t room = (std::max(bytes, 2 * room_) + kSteps - 1) / kSteps * kSteps;
    auto block = std::make_shared<Block>(2 * room);
    publish_all();
    await_all();
    release_all();
    end();
    const BreaksByException breaks{is_broken_};
    data_ = std::make_shared<Mapping>(group_, std::move(block));
    room_ = room;
  }

  const std::shared_ptr<const TorchGroup> group_;
  const Mapping fixed_;
  std::shared_ptr<const Mapping> data_;
  std::size_t room_ = 0;  // bytes of a slot
  unsigned turn_ = 0;
  bool is_in_use_[2] = {};  // whether that turn still waits for `done`
  std::atomic<bool> is_broken_{false};
  std::atomic<bool> is_in_call_{false};
  // In this call, for each member.
  struct Did {
    bool publish = false;
    bool await = false;
    bool release = false;
  };
  std::vector<Did> did_;
};

}  // namespace memspan::tensors
