// SPDX-License-Identifier: Apache-2.0
// The functions of memspan/group.h.
#include <fmt/format.h>
#include <memspan/group.h>

#include <cstdlib>
#include <cstring>

#include "capi/smem/result.h"
#include "core/thread.h"
#include "observe/counters.h"
#include "pgas/group/point_to_point.h"
#include "pgas/group/process_group.h"
#include "pgas/group/shared_pages.h"

namespace memspan::capi {
namespace {

using pgas::Message;
using pgas::ProcessGroup;
using pgas::ReductionKernel;

// A member of a group. Destruction order is member order, last first.
struct Member : std::enable_shared_from_this<Member> {
  explicit Member(std::unique_ptr<ProcessGroup> joined)
      : group(std::move(joined)), messages(*group) {}
  std::unique_ptr<ProcessGroup> group;
  pgas::PointToPoint messages;
  pgas::MappedPages mapped;
};
using Groups = HandleTable<std::shared_ptr<Member>, HandleKind::kGroup>;

constexpr auto& groups = fork_aware_singleton<Groups>;

// A message of a group that may have ended.
struct HeldMessage {
  std::weak_ptr<Member> member;
  std::shared_ptr<Message> message;  // owners: this and, while it is pending, the group
};
using MessageTable = HandleTable<HeldMessage, HandleKind::kMessage, 65536>;

// `action(member)` gives a Status, an OfTurn or a code.
template <typename Action>
std::int32_t with_group(const char* call, const void* handle, Action action) {
  return with<Groups>(call, handle, [&](const std::shared_ptr<Member>& member) {
    if (member->group->has_left())
      return smem_failure(call, SMEM_NOT_STARTED, "this member has left the group");
    return smem_result(call, action(*member));
  });
}

// `action(member, message)` gives the same.
template <typename Action>
std::int32_t with_message(const char* call, const void* handle, Action action) {
  return with<MessageTable>(call, handle, [&](const HeldMessage& held) {
    const auto member = held.member.lock();
    if (member == nullptr)
      return smem_failure(call, SMEM_NOT_STARTED, "the request's group has been destroyed");
    return smem_result(call, action(*member, held.message));
  });
}

// At the end of the process: peers that wait for it need not wait until the kernel reports its end.
void leave_all() {
  for (const void* handle : groups().handles())
    if (auto held = groups().use(handle)) (*held)->group->leave();
}

// A text in what the caller's exchange moves: its length, then its bytes.
constexpr std::size_t kTextBytes = 1024;
constexpr std::size_t kMostText = kTextBytes - sizeof(std::uint32_t);

Result<std::vector<std::string>> exchange_text(memspan_group_exchange_t exchange, void* user,
                                               int size, const std::string& mine) {
  char sent[kTextBytes] = {};
  const auto length = static_cast<std::uint32_t>(std::min(mine.size(), kMostText));
  std::memcpy(sent, &length, sizeof length);
  mine.copy(sent + sizeof length, length);
  std::vector<char> all(static_cast<std::size_t>(size) * kTextBytes);
  if (const int code = exchange(user, sent, kTextBytes, all.data()); code != 0)
    return Status(Code::kUnreachable, fmt::format("the caller's exchange failed with {}", code));
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size(); at += kTextBytes) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, &all[at], sizeof bytes);
    if (bytes > kMostText) return invalid("what the caller's exchange gave is not what was sent");
    texts.emplace_back(&all[at] + sizeof bytes, bytes);
  }
  return texts;
}

Status check_timeout(std::uint32_t timeout_ms) {
  return timeout_ms == 0 ? invalid("invalid timeout_ms, which is 0: allowed are 1 and more")
                         : Status::ok();
}

Result<void*> create(int rank, int size, memspan_group_exchange_t exchange, void* user,
                     std::uint32_t timeout_ms) {
  if (size < 1 || size > pgas::kMostGroupMembers)
    return invalid("invalid size, which is {}: allowed are 1 to {}", size, pgas::kMostGroupMembers);
  if (rank < 0 || rank >= size)
    return invalid("invalid rank, which is {}: allowed are 0 to {}", rank, size - 1);
  if (exchange == nullptr) return invalid("invalid exchange, which is NULL");
  MEMSPAN_PASS(check_timeout(timeout_ms));
  MEMSPAN_TRY_ASSIGN(
      std::unique_ptr<ProcessGroup> group,
      ProcessGroup::join(
          rank, size,
          [&](const std::string& mine) { return exchange_text(exchange, user, size, mine); },
          std::chrono::milliseconds(timeout_ms)),
      "creating");
  [[maybe_unused]] static const int registered = std::atexit(leave_all);
  // Owners: the table, and calls on its messages while they last.
  auto member =
      std::make_unique<std::shared_ptr<Member>>(std::make_shared<Member>(std::move(group)));
  if (void* handle = groups().add(std::move(member))) return handle;
  return Status(Code::kOutOfMemory, "there are too many groups");
}

Status check_memory(const void* memory, std::size_t bytes, const char* name) {
  return memory == nullptr && bytes != 0 ? null_argument(name) : Status::ok();
}

template <typename Pointer>
Status check_list(int entries, Pointer const* list, std::size_t bytes, const char* name) {
  if (list == nullptr) return null_argument(name);
  for (int entry = 0; entry < entries; ++entry)
    if (list[entry] == nullptr && bytes != 0)
      return null_argument(fmt::format("{}[{}]", name, entry).c_str());
  return Status::ok();
}
template <typename Pointer>
Status check_list(int entries, Pointer const* list, const std::size_t bytes[], const char* name,
                  const char* name_of_bytes) {
  if (list == nullptr) return null_argument(name);
  if (bytes == nullptr) return null_argument(name_of_bytes);
  for (int entry = 0; entry < entries; ++entry)
    if (list[entry] == nullptr && bytes[entry] != 0)
      return null_argument(fmt::format("{}[{}]", name, entry).c_str());
  return Status::ok();
}

// The numbers are the same here and there.
static_assert(static_cast<int>(pgas::ElementType::kComplex128) == MEMSPAN_TYPE_COMPLEX128);
static_assert(static_cast<int>(pgas::ElementType::kFloat8E5m2) == MEMSPAN_TYPE_FLOAT8_E5M2);
static_assert(static_cast<int>(pgas::ElementType::kFloat16) == MEMSPAN_TYPE_FLOAT16);
static_assert(static_cast<int>(pgas::Operator::kAverage) == MEMSPAN_OP_AVERAGE);
static_assert(static_cast<int>(pgas::Operator::kAnd) == MEMSPAN_OP_AND);
static_assert(pgas::kMostGroupMembers == MEMSPAN_GROUP_MEMBERS_MAX);
static_assert(pgas::kAnybody == MEMSPAN_GROUP_ANYBODY);

Result<ReductionKernel> check_elements(std::size_t count, memspan_type_t type, memspan_op_t op) {
  MEMSPAN_TRY_ASSIGN(const ReductionKernel elements, pgas::reduction_kernel(type, op),
                     "invalid param");
  if (count > SIZE_MAX / elements.bytes) return invalid("invalid count, which is {}", count);
  return elements;
}

Status reduce_local(void* result, const void* const values[], int arrays, std::size_t count,
                    memspan_type_t type, memspan_op_t op) {
  MEMSPAN_TRY_ASSIGN(const ReductionKernel elements, check_elements(count, type, op),
                     "reduce_local");
  if (arrays < 1) return invalid("invalid arrays, which is {}: allowed are 1 and more", arrays);
  MEMSPAN_PASS(check_memory(result, count, "result"));
  MEMSPAN_PASS(check_list(arrays, values, count, "values"));
  elements.combine(result, values, arrays, count);
  return Status::ok();
}

std::int32_t post(const char* call, memspan_group_t group, Message message,
                  memspan_group_request_t* request) {
  return with_group(call, group, [&](Member& member) -> Status {
    if (request == nullptr) return null_argument("request");
    MEMSPAN_PASS(check_memory(message.memory, message.bytes,
                              message.kind == Message::Kind::kSend ? "values" : "result"));
    MEMSPAN_TRY_ASSIGN(auto posted, member.messages.post(std::move(message)), "posting");
    void* handle = nullptr;
    Status added = caught([&] {
      auto held = std::make_unique<HeldMessage>(HeldMessage{member.weak_from_this(), posted});
      handle = fork_aware_singleton<MessageTable>().add(std::move(held));
      return handle != nullptr ? Status::ok() : Status(Code::kOutOfMemory, "too many requests");
    });
    if (!added.is_ok()) member.messages.forget(posted);
    *request = static_cast<memspan_group_request_t>(handle);
    return added;
  });
}

Deadline deadline_in(std::uint32_t timeout_ms) {
  return timeout_ms == 0 ? Deadline::never()
                         : Deadline::after(std::chrono::milliseconds(timeout_ms));
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t memspan_group_create(int rank, int size, memspan_group_exchange_t exchange,
                                            void* user, uint32_t timeout_ms,
                                            memspan_group_t* group) try {
  if (group == nullptr) return smem_result(__func__, null_argument("group"));
  auto made = create(rank, size, exchange, user, timeout_ms);
  if (made.is_ok()) *group = static_cast<memspan_group_t>(*made);
  return smem_result(__func__, made.status());
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_group_leave(memspan_group_t group) {
  return with<Groups>(__func__, group, [](const std::shared_ptr<Member>& member) {
    member->group->leave();
    return SMEM_OK;
  });
}

MEMSPAN_EXPORT int32_t memspan_group_destroy(memspan_group_t group) try {
  if (groups().remove(group) == nullptr) return bad_handle(__func__, group, "group");
  return SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_group_set_timeout(memspan_group_t group, uint32_t timeout_ms) {
  return with_group(__func__, group, [&](Member& member) {
    MEMSPAN_PASS(check_timeout(timeout_ms));
    member.group->set_limit(std::chrono::milliseconds(timeout_ms));
    return Status::ok();
  });
}

MEMSPAN_EXPORT int32_t memspan_group_rank(memspan_group_t group) try {
  auto held = groups().use(group);
  return held ? (*held)->group->rank() : -1;
}
MEMSPAN_CATCH(-1)

MEMSPAN_EXPORT int32_t memspan_group_size(memspan_group_t group) try {
  auto held = groups().use(group);
  return held ? (*held)->group->size() : -1;
}
MEMSPAN_CATCH(-1)

// ---- collectives

MEMSPAN_EXPORT int32_t memspan_group_arrive(memspan_group_t group) {
  return with_group(__func__, group, [](Member& member) { return member.group->arrive(); });
}

MEMSPAN_EXPORT int32_t memspan_group_wait_for_arrivals(memspan_group_t group,
                                                       uint32_t patience_us) {
  return with_group(__func__, group, [&](Member& member) {
    return OfTurn{member.group->wait_for_arrivals(std::chrono::microseconds(patience_us))};
  });
}

MEMSPAN_EXPORT int32_t memspan_group_barrier(memspan_group_t group) {
  return with_group(__func__, group, [](Member& member) {
    RecordedCall recorded(CallKind::kCollective, "memspan_group_barrier", kNobodyNamed, 0);
    return recorded.ends(pgas::group_barrier(*member.group));
  });
}

MEMSPAN_EXPORT int32_t memspan_group_broadcast(memspan_group_t group, void* values, size_t bytes,
                                               int root) {
  return with_group(__func__, group, [&](Member& member) -> Status {
    MEMSPAN_PASS(check_memory(values, bytes, "values"));
    RecordedCall recorded(CallKind::kCollective, "memspan_group_broadcast", kNobodyNamed, bytes);
    return recorded.ends(pgas::group_broadcast(*member.group, values, bytes, root));
  });
}

MEMSPAN_EXPORT int32_t memspan_group_all_reduce(memspan_group_t group, void* result,
                                                const void* values, size_t count,
                                                memspan_type_t type, memspan_op_t op) {
  return with_group(__func__, group, [&](Member& member) -> Status {
    MEMSPAN_TRY_ASSIGN(const ReductionKernel elements, check_elements(count, type, op),
                       "all_reduce");
    MEMSPAN_PASS(check_memory(result, count, "result"));
    MEMSPAN_PASS(check_memory(values, count, "values"));
    RecordedCall recorded(CallKind::kCollective, "memspan_group_all_reduce", kNobodyNamed,
                          count * elements.bytes);
    return recorded.ends(pgas::group_all_reduce(*member.group, result, values, count, elements));
  });
}

MEMSPAN_EXPORT int32_t memspan_group_reduce(memspan_group_t group, void* result, const void* values,
                                            size_t count, memspan_type_t type, memspan_op_t op,
                                            int root) {
  return with_group(__func__, group, [&](Member& member) -> Status {
    MEMSPAN_TRY_ASSIGN(const ReductionKernel elements, check_elements(count, type, op), "reduce");
    if (member.group->rank() == root) MEMSPAN_PASS(check_memory(result, count, "result"));
    MEMSPAN_PASS(check_memory(values, count, "values"));
    RecordedCall recorded(CallKind::kCollective, "memspan_group_reduce", kNobodyNamed,
                          count * elements.bytes);
    return recorded.ends(pgas::group_reduce(*member.group, result, values, count, elements, root));
  });
}

MEMSPAN_EXPORT int32_t memspan_group_reduce_scatter(memspan_group_t group, void* result,
                                                    const void* const values[], size_t count,
                                                    memspan_type_t type, memspan_op_t op) {
  return with_group(__func__, group, [&](Member& member) -> Status {
    MEMSPAN_TRY_ASSIGN(const ReductionKernel elements, check_elements(count, type, op),
                       "reduce_scatter");
    MEMSPAN_PASS(check_memory(result, count, "result"));
    MEMSPAN_PASS(check_list(member.group->size(), values, count, "values"));
    RecordedCall recorded(CallKind::kCollective, "memspan_group_reduce_scatter", kNobodyNamed,
                          count * elements.bytes);
    return recorded.ends(
        pgas::group_reduce_scatter(*member.group, result, values, count, elements));
  });
}

MEMSPAN_EXPORT int32_t memspan_group_all_gather(memspan_group_t group, void* const results[],
                                                const void* values, size_t bytes) {
  return with_group(__func__, group, [&](Member& member) -> Status {
    MEMSPAN_PASS(check_list(member.group->size(), results, bytes, "results"));
    MEMSPAN_PASS(check_memory(values, bytes, "values"));
    RecordedCall recorded(CallKind::kCollective, "memspan_group_all_gather", kNobodyNamed, bytes);
    return recorded.ends(pgas::group_all_gather(*member.group, results, values, bytes));
  });
}

MEMSPAN_EXPORT int32_t memspan_group_gather(memspan_group_t group, void* const results[],
                                            const void* values, size_t bytes, int root) {
  return with_group(__func__, group, [&](Member& member) -> Status {
    if (member.group->rank() == root)
      MEMSPAN_PASS(check_list(member.group->size(), results, bytes, "results"));
    MEMSPAN_PASS(check_memory(values, bytes, "values"));
    RecordedCall recorded(CallKind::kCollective, "memspan_group_gather", kNobodyNamed, bytes);
    return recorded.ends(pgas::group_gather(*member.group, results, values, bytes, root));
  });
}

MEMSPAN_EXPORT int32_t memspan_group_scatter(memspan_group_t group, void* result,
                                             const void* const values[], size_t bytes, int root) {
  return with_group(__func__, group, [&](Member& member) -> Status {
    if (member.group->rank() == root)
      MEMSPAN_PASS(check_list(member.group->size(), values, bytes, "values"));
    MEMSPAN_PASS(check_memory(result, bytes, "result"));
    RecordedCall recorded(CallKind::kCollective, "memspan_group_scatter", kNobodyNamed, bytes);
    return recorded.ends(pgas::group_scatter(*member.group, result, values, bytes, root));
  });
}

MEMSPAN_EXPORT int32_t memspan_group_all_to_all(memspan_group_t group, void* const results[],
                                                const size_t result_bytes[],
                                                const void* const values[],
                                                const size_t value_bytes[]) {
  return with_group(__func__, group, [&](Member& member) -> Status {
    MEMSPAN_PASS(
        check_list(member.group->size(), results, result_bytes, "results", "result_bytes"));
    MEMSPAN_PASS(check_list(member.group->size(), values, value_bytes, "values", "value_bytes"));
    RecordedCall recorded(
        CallKind::kCollective, "memspan_group_all_to_all", kNobodyNamed,
        counted_bytes(value_bytes, static_cast<std::size_t>(member.group->size())));
    return recorded.ends(
        pgas::group_all_to_all(*member.group, results, result_bytes, values, value_bytes));
  });
}

MEMSPAN_EXPORT int32_t memspan_reduce_local(void* result, const void* const values[], int arrays,
                                            size_t count, memspan_type_t type,
                                            memspan_op_t op) try {
  return smem_result(__func__, reduce_local(result, values, arrays, count, type, op));
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

// ---- messages

MEMSPAN_EXPORT int32_t memspan_group_send(memspan_group_t group, int member, int64_t tag,
                                          const void* values, size_t bytes,
                                          memspan_group_request_t* request) {
  // Only read.
  auto* memory = static_cast<std::byte*>(const_cast<void*>(values));
  return post(__func__, group, {Message::Kind::kSend, member, tag, memory, bytes}, request);
}

MEMSPAN_EXPORT int32_t memspan_group_receive(memspan_group_t group, int member, int64_t tag,
                                             void* result, size_t bytes,
                                             memspan_group_request_t* request) {
  return post(__func__, group,
              {Message::Kind::kReceive, member, tag, static_cast<std::byte*>(result), bytes},
              request);
}

MEMSPAN_EXPORT int32_t memspan_group_test(memspan_group_request_t request) {
  constexpr const char* kCall = "memspan_group_test";
  return with_message(kCall, request, [&](Member& member, const auto& message) {
    const Status status = member.messages.test(message);
    return status.code() == Code::kUnavailable ? MEMSPAN_GROUP_PENDING : smem_result(kCall, status);
  });
}

MEMSPAN_EXPORT int32_t memspan_group_wait(memspan_group_request_t request, uint32_t timeout_ms) {
  return with_message(__func__, request, [&](Member& member, const auto& message) {
    return OfTurn{member.messages.wait(message, deadline_in(timeout_ms))};
  });
}

MEMSPAN_EXPORT int32_t memspan_group_sender(memspan_group_request_t request) {
  return with_message(__func__, request, [](Member& member, const auto& message) {
    return member.messages.sender_of(message);
  });
}

MEMSPAN_EXPORT int32_t memspan_group_request_free(memspan_group_request_t request) try {
  const auto held = fork_aware_singleton<MessageTable>().remove(request);
  if (held == nullptr) return bad_handle(__func__, request, "request");
  if (const auto member = held->member.lock()) member->messages.forget(held->message);
  return SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

// ---- memory of all members

MEMSPAN_EXPORT void* memspan_shareable_create(size_t bytes) try {
  Result<std::byte*> made = invalid("invalid bytes, which is 0: allowed are 1 and more");
  if (bytes != 0) made = fork_aware_singleton<pgas::SharedPages>().create(bytes);
  static_cast<void>(smem_result(__func__, made.status()));
  return made.is_ok() ? *made : nullptr;
}
MEMSPAN_CATCH(nullptr)

MEMSPAN_EXPORT int32_t memspan_shareable_destroy(void* memory) try {
  if (fork_aware_singleton<pgas::SharedPages>().destroy(memory)) return SMEM_OK;
  return smem_result(__func__, invalid("the address was not returned by memspan_shareable_create"));
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_group_map(memspan_group_t group, void* mine, void* mapped[]) {
  return with_group(__func__, group, [&](Member& member) -> Status {
    if (mapped == nullptr) return null_argument("mapped");
    return member.mapped.map(*member.group, fork_aware_singleton<pgas::SharedPages>().find(mine),
                             mine, mapped);
  });
}

// Also for a member that has left: what it has mapped stays until then.
MEMSPAN_EXPORT int32_t memspan_group_unmap(memspan_group_t group, void* const mapped[]) {
  return with<Groups>(__func__, group, [&](const std::shared_ptr<Member>& member) {
    if (mapped == nullptr) return null_argument("mapped");
    return member->mapped.unmap(*member->group, mapped);
  });
}

MEMSPAN_EXPORT int32_t memspan_group_swap_word(memspan_group_t group, uint32_t* word,
                                               uint32_t expected, uint32_t value, int member,
                                               uint32_t timeout_ms) {
  return with_group(__func__, group, [&](Member& self) -> OfTurn {
    if (word == nullptr) return {null_argument("word")};
    static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof *word);
    auto& shared = *reinterpret_cast<std::atomic<std::uint32_t>*>(word);
    return {pgas::swap_word(*self.group, shared, expected, value, member, deadline_in(timeout_ms))};
  });
}
