// SPDX-License-Identifier: Apache-2.0
// The common part of Big Memory and Share Memory. This process is one rank in each, and makes
// objects there by ids that it may use once at a time.
#pragma once

#include <set>

#include "capi/smem/members.h"
#include "capi/smem/result.h"
#include "core/thread.h"
#include "store/recipes/rank_recipe.h"

namespace memspan::capi {

// An element of RankedObjects.
struct RankedObject {
  std::uint32_t id = 0;
  Duration limit = {};  // of operations that wait for others
  Deadline deadline() const { return Deadline::after(limit); }
};

struct RankLimits {
  Duration create = {};
  Duration operation = {};  // one that waits for others
};
struct RankMembership {
  // Both shared with the objects that are being made; null when this process only hosts a store.
  std::shared_ptr<Member> member;
  std::shared_ptr<const std::uint32_t> claim;  // the rank, which is given up at its end
  std::uint32_t ranks = 0;
  RankLimits limits = {};

  std::uint32_t rank() const { return claim == nullptr ? UINT32_MAX : *claim; }
};

// How many ranks there may be.
inline Status check_world_size(std::uint32_t ranks) {
  if (ranks == 0) return invalid("invalid param, worldSize is 0");
  if (ranks > SMEM_WORLD_SIZE_MAX)
    return invalid("invalid param, worldSize is too large: {}, allowed are 1 to {}", ranks,
                   SMEM_WORLD_SIZE_MAX);
  return Status::ok();
}

// Thread-safe; a call that becomes a member holds up others.
class RankBinding {
 public:
  // Messages contain `name` ("bm") and `title` ("BM"), and ranks are claimed under the name.
  // `object` ("pool") is the kind of object that it makes.
  RankBinding(const char* name, const char* title, const char* object)
      : name_(name), title_(title), object_(object) {}

  // SMEM_OK when this process is a rank already, or `check()` allows and `become()`, a
  // Result<RankMembership>, makes it one; else the code of the failure, which is kept.
  template <typename Check, typename Become>
  std::int32_t init(const char* call, Check check, Become become) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (membership_) return SMEM_OK;
    if (const Status status = check(); !status.is_ok()) return smem_result(call, status);
    return adopt(call, become());
  }
  // Gives up the rank. Its objects have ended before.
  void uninit() MEMSPAN_EXCLUDES(mutex_) {
    // It is given up without the lock, and before a store that is hosted here ends.
    {
      std::optional<RankMembership> ended;
      MutexLock lock(mutex_);
      if (!membership_) return;
      ended.swap(membership_);
    }
    stop_using_stores(name_);
  }
  std::optional<RankMembership> membership() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return membership_;
  }
  // Claims the rank under this face's name; -1: the lowest that is free. kUnavailable when another
  // member has it, kInvalidArgument when members give different numbers of ranks.
  Result<RankMembership> claim(std::shared_ptr<Member> member, int rank, std::uint32_t ranks,
                               const RankLimits& limits, Deadline deadline) const {
    auto number = std::make_unique<std::uint32_t>();  // before the rank is taken: it may throw
    MEMSPAN_PASS_ASSIGN(const int taken, take_freed_rank(member->store(), name_, rank,
                                                         static_cast<int>(ranks), deadline));
    // Said, for the end of a connection may be noticed later than the next one asks for a rank.
    const auto give_up = [member, scope = name_](const std::uint32_t* claimed) {
      member->tell_end(
          [&](const Deadline& until) { return give_rank(member->store(), scope, until); });
      delete claimed;
    };
    *number = static_cast<std::uint32_t>(taken);
    std::shared_ptr<const std::uint32_t> claim(number.release(), give_up);
    return RankMembership{
        .member = std::move(member), .claim = std::move(claim), .ranks = ranks, .limits = limits};
  }

  // Returns a handle of the object that `make(membership)`, a Result<void*>, makes, if
  // `check(most_ranks)` allows it and the id is free. Else null; the failure is kept, with
  // `code_if_taken` if another process has the resource.
  template <typename Check, typename Make>
  void* create(const char* call, std::uint32_t id, Check check, std::int32_t code_if_taken,
               Make make) MEMSPAN_EXCLUDES(mutex_) {
    RankMembership membership;
    {
      MutexLock lock(mutex_);
      const bool is_member = membership_ && membership_->member != nullptr;
      const Status status = check(is_member ? membership_->ranks : SMEM_WORLD_SIZE_MAX);
      if (!status.is_ok()) return create_failure(call, id, SMEM_INVALID_PARAM, status.message());
      if (!is_member) return create_failure(call, id, SMEM_NOT_INIT, why_not());
      if (!ids_.insert(id).second)
        return create_failure(call, id, SMEM_DUPLICATED,
                              std::string("this process has a ") + object_ + " of that id");
      membership = *membership_;
    }
    Result<void*> made = nullptr;
    const Status done = caught([&] {
      made = make(membership);
      return made.status();
    });
    if (!done.is_ok()) made = done;
    if (made.is_ok() && *made != nullptr) return *made;
    free_id(id);
    if (made.is_ok())
      return create_failure(call, id, SMEM_NO_RESOURCES, std::string("too many ") + object_ + "s");
    const bool is_taken = made.code() == Code::kUnavailable;
    return create_failure(call, id, is_taken ? code_if_taken : smem_code(made.status()),
                          made.status().message());
  }
  // When its object has ended.
  void free_id(std::uint32_t id) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ids_.erase(id);
  }
  // Why a handle names nothing, kept as the call's failure.
  std::int32_t no_such(const char* call, const void* handle) MEMSPAN_EXCLUDES(mutex_) {
    if (handle != nullptr && !membership()) return no_member(call);
    return bad_handle(call, handle, object_);
  }
  // Keeps as the call's failure that this process has no rank.
  std::int32_t no_member(const char* call) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return smem_failure(call, SMEM_NOT_INIT, why_not());
  }

 private:
  std::int32_t adopt(const char* call, Result<RankMembership> made) MEMSPAN_REQUIRES(mutex_) {
    if (made.is_ok()) {
      start_using_stores(name_);
      membership_ = std::move(made).value();
      return SMEM_OK;
    }
    const std::int32_t code =
        made.code() == Code::kUnavailable ? SMEM_RES_IN_USE : smem_code(made.status());
    return smem_failure(call, code,
                        fmt::format("init {} entry manager failed, result: {}: {}", name_, code,
                                    made.status().message()));
  }
  std::string why_not() const MEMSPAN_REQUIRES(mutex_) {
    if (membership_) return "this process only hosts a store";
    return fmt::format("smem {} not initialized yet", name_);
  }
  void* create_failure(const char* call, std::uint32_t id, std::int32_t code,
                       std::string_view why) const {
    smem_failure(call, code,
                 fmt::format("create {} entity({}) failed: {}: {}", title_, id, code, why));
    return nullptr;
  }

  const char* const name_;
  const char* const title_;
  const char* const object_;
  Mutex mutex_;
  std::optional<RankMembership> membership_ MEMSPAN_GUARDED_BY(mutex_);
  // Ids of objects that exist or are being made.
  std::set<std::uint32_t> ids_ MEMSPAN_GUARDED_BY(mutex_);
};

// A binding with the objects that it makes. An Object is a RankedObject with end_waits().
template <typename Object, HandleKind kind, std::uint32_t kMost>
class RankedObjects : public RankBinding, public HandleTable<Object, kind, kMost> {
 public:
  RankedObjects(const char* name, const char* title)
      : RankBinding(name, title, HandleTable<Object, kind, kMost>::kName) {}

  // Ends waits first: remove() waits for their callers. False when the handle names none.
  bool destroy(const void* handle) {
    if (const auto used = this->use(handle)) used->end_waits();
    std::unique_ptr<Object> object = this->remove(handle);
    if (object == nullptr) return false;
    const std::uint32_t id = object->id;
    object.reset();
    free_id(id);
    return true;
  }
  void destroy_all() {
    for (const void* handle : this->handles()) destroy(handle);
    uninit();
  }
};

}  // namespace memspan::capi
