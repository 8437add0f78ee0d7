// SPDX-License-Identifier: Apache-2.0
#include "capi/smem/rank_binding.h"

#include "store/recipes/rank_recipe.h"

namespace memspan::capi {

Status check_world_size(std::uint32_t ranks) {
  if (ranks == 0) return invalid("invalid param, worldSize is 0");
  if (ranks > SMEM_WORLD_SIZE_MAX)
    return invalid("invalid param, worldSize is too large: {}, allowed are 1 to {}", ranks,
                   SMEM_WORLD_SIZE_MAX);
  return Status::ok();
}

std::int32_t RankBinding::adopt(const char* call, Result<RankMembership> made) {
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

// The rank is given up without the lock, and before a store that is hosted here ends.
void RankBinding::uninit() {
  {
    std::optional<RankMembership> ended;
    MutexLock lock(mutex_);
    if (!membership_) return;
    ended.swap(membership_);
  }
  stop_using_stores(name_);
}

// Said, for the end of a connection may be noticed later than the next one asks for a rank.
Result<RankMembership> RankBinding::claim(std::shared_ptr<Member> member, int rank,
                                          std::uint32_t ranks, const RankLimits& limits,
                                          Deadline deadline) const {
  auto number = std::make_unique<std::uint32_t>();  // before the rank is taken: it may throw
  MEMSPAN_PASS_ASSIGN(const auto taken, take_freed_rank(member->store(), name_, rank,
                                                        static_cast<int>(ranks), deadline));
  const auto give_up = [member, scope = name_](const std::uint32_t* claimed) {
    member->tell_end(
        [&](const Deadline& until) { return give_rank(member->store(), scope, until); });
    delete claimed;
  };
  *number = static_cast<std::uint32_t>(taken.rank);
  std::shared_ptr<const std::uint32_t> claim(number.release(), give_up);
  return RankMembership{
      .member = std::move(member), .claim = std::move(claim), .ranks = ranks, .limits = limits};
}

std::int32_t RankBinding::no_such(const char* call, const void* handle) {
  if (handle != nullptr && !membership()) return no_member(call);
  return bad_handle(call, handle, object_);
}

std::int32_t RankBinding::no_member(const char* call) {
  MutexLock lock(mutex_);
  return smem_failure(call, SMEM_NOT_INIT, why_not());
}

std::string RankBinding::why_not() const {
  if (membership_) return "this process only hosts a store";
  return fmt::format("smem {} not initialized yet", name_);
}

void* RankBinding::create_failure(const char* call, std::uint32_t id, std::int32_t code,
                                  std::string_view why) const {
  smem_failure(call, code,
               fmt::format("create {} entity({}) failed: {}: {}", title_, id, code, why));
  return nullptr;
}

}  // namespace memspan::capi
