// SPDX-License-Identifier: Apache-2.0
// Requests are prepared, posted and completed; messages and counters arrive.
#include <memspan/transfer.h>

#include "capi/smem/endpoints.h"
#include "observe/counters.h"

namespace memspan::capi {
namespace {

using transfer::Direction;
using transfer::Request;
using transfer::TransferResult;

std::int32_t code_of(const TransferResult& result) {
  using Kind = TransferResult::Kind;
  return result.kind == Kind::kDone        ? SMEM_OK
         : result.kind == Kind::kFailed    ? smem_code(result.status)
         : result.kind == Kind::kCancelled ? MEMSPAN_TRANSFER_CANCELLED
                                           : MEMSPAN_TRANSFER_PENDING;
}

std::int32_t report(const char* call, const TransferResult& result) {
  if (result.kind == TransferResult::Kind::kFailed) return smem_result(call, result.status);
  return code_of(result);
}

// ---- preparing

struct Given {
  const char* call;
  smem_trans_t endpoint;
  unsigned direction;
  const char* peer;
  memspan_transfer_t* request;
};

// More pieces than memory could list.
constexpr std::uint64_t kMostPieces = std::uint64_t{1} << 32;

Status check_count(std::uint64_t count) {
  if (count != 0 && count <= kMostPieces) return Status::ok();
  return invalid("invalid count, which is {}: allowed are 1 to {}", count, kMostPieces);
}

Status check(const Given& given) {
  if (given.request == nullptr) return invalid("invalid param, request is NULL");
  MEMSPAN_PASS(check_text("peer", given.peer));
  if (given.direction == MEMSPAN_TRANSFER_READ || given.direction == MEMSPAN_TRANSFER_WRITE)
    return Status::ok();
  return invalid("invalid direction, which is {}: allowed are {} and {}", given.direction,
                 static_cast<int>(MEMSPAN_TRANSFER_READ), static_cast<int>(MEMSPAN_TRANSFER_WRITE));
}

// `make()` gives the pieces.
template <typename Make>
std::int32_t prepare(const Given& given, Make make) try {
  auto endpoint = endpoints().use(given.endpoint);
  if (!endpoint) return endpoints().no_such(given.call, given.endpoint);
  if (Status status = check(given); !status.is_ok()) return smem_result(given.call, status);
  transfer::MadePieces pieces = make();
  if (!pieces.is_ok()) return smem_result(given.call, pieces.status());
  auto request = std::make_shared<Request>(static_cast<Direction>(given.direction),
                                           endpoint->name(), given.peer, std::move(pieces).value());
  return add_object(given.call, requests(),
                    std::make_unique<HeldRequest>(HeldRequest{given.endpoint, std::move(request)}),
                    given.request);
}
MEMSPAN_CATCH_IN(given.call, SMEM_MALLOC_FAILED)

transfer::MadePieces read_list(void* const local[], void* const remote[], const std::size_t bytes[],
                               std::uint64_t count) {
  if (local == nullptr || remote == nullptr || bytes == nullptr)
    return invalid("invalid local, remote or bytes, which is null");
  MEMSPAN_PASS(check_count(count));
  MEMSPAN_PASS(transfer::check_arrays(local, remote, bytes, count));
  std::vector<transfer::Piece> list(count);
  transfer::PieceArrays(count, {local, remote, bytes}).fill(0, list);
  return std::unique_ptr<const transfer::Pieces>(
      std::make_unique<transfer::PieceList>(std::move(list)));
}

transfer::Strides read_blocks(const memspan_transfer_blocks_t& blocks) {
  return {reinterpret_cast<std::uint64_t>(blocks.base), blocks.stride, blocks.bytes, blocks.count};
}

transfer::Paging read_pages(const memspan_transfer_pages_t& pages, std::uint64_t count) {
  return {reinterpret_cast<std::uint64_t>(pages.base), {pages.pages, pages.pages + count}};
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t memspan_transfer_prepare(smem_trans_t endpoint,
                                                memspan_transfer_direction_t direction,
                                                const char* peer, void* const local[],
                                                void* const remote[], const size_t bytes[],
                                                uint64_t count, memspan_transfer_t* request) {
  return prepare({"memspan_transfer_prepare", endpoint, number_of(direction), peer, request},
                 [&] { return read_list(local, remote, bytes, count); });
}

MEMSPAN_EXPORT int32_t memspan_transfer_prepare_blocks(smem_trans_t endpoint,
                                                       memspan_transfer_direction_t direction,
                                                       const char* peer,
                                                       const memspan_transfer_blocks_t* local,
                                                       const memspan_transfer_blocks_t* remote,
                                                       memspan_transfer_t* request) {
  return prepare({"memspan_transfer_prepare_blocks", endpoint, number_of(direction), peer, request},
                 [&]() -> transfer::MadePieces {
                   if (local == nullptr || remote == nullptr)
                     return invalid("invalid local or remote, which is null");
                   return transfer::strided_pieces(read_blocks(*local), read_blocks(*remote));
                 });
}

MEMSPAN_EXPORT int32_t memspan_transfer_prepare_pages(
    smem_trans_t endpoint, memspan_transfer_direction_t direction, const char* peer,
    const memspan_transfer_pages_t* local, const memspan_transfer_pages_t* remote,
    uint64_t page_bytes, uint64_t count, memspan_transfer_t* request) {
  return prepare({"memspan_transfer_prepare_pages", endpoint, number_of(direction), peer, request},
                 [&]() -> transfer::MadePieces {
                   if (local == nullptr || remote == nullptr || local->pages == nullptr ||
                       remote->pages == nullptr)
                     return invalid("invalid local, remote or pages, which is null");
                   MEMSPAN_PASS(check_count(count));
                   return transfer::paged_pieces(read_pages(*local, count),
                                                 read_pages(*remote, count), page_bytes);
                 });
}

MEMSPAN_EXPORT int32_t memspan_transfer_destroy(memspan_transfer_t request) try {
  const auto cancel = [](HeldRequest& held) {
    held.request->cancel();
    return SMEM_OK;
  };
  if (const std::int32_t code = with<Requests>(__func__, request, cancel); code != SMEM_OK)
    return code;
  const auto removed = requests().remove(request);
  if (removed == nullptr) return bad_handle(__func__, request, "request");
  // Another thread may have posted it before it was removed.
  removed->request->cancel();
  removed->request->wait_for_callback();
  return SMEM_OK;
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_transfer_reach(smem_trans_t endpoint, const char* peer) try {
  if (peer == nullptr) return smem_result(__func__, null_argument("peer"));
  return with<Endpoints>(__func__, endpoint,
                         [&](transfer::Endpoint& from) { return from.reach(peer); });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_transfer_set_message(memspan_transfer_t request, const void* message,
                                                    size_t bytes) {
  return with<Requests>(__func__, request, [&](HeldRequest& held) {
    if (bytes > transfer::kMostMessageBytes)
      return invalid("invalid bytes, which is {}: allowed are 0 to {}", bytes,
                     transfer::kMostMessageBytes);
    return held.request->set([&](Request::Settings& settings) {
      settings.action.message.assign(static_cast<const char*>(message), message ? bytes : 0);
      settings.action.has_message = message != nullptr;
    });
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_set_counter(memspan_transfer_t request, uint32_t counter,
                                                    uint64_t value) {
  return with<Requests>(__func__, request, [&](HeldRequest& held) {
    MEMSPAN_PASS(transfer::check_counter(counter));
    return held.request->set([&](Request::Settings& settings) {
      settings.action.has_counter = value != 0;
      settings.action.counter = counter;
      settings.action.value = value;
    });
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_set_patience(memspan_transfer_t request,
                                                     uint32_t timeout_ms) {
  return with<Requests>(__func__, request, [&](HeldRequest& held) {
    return held.request->set([&](Request::Settings& settings) {
      settings.patience = Duration(std::chrono::milliseconds(timeout_ms));
    });
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_set_callback(memspan_transfer_t request,
                                                     memspan_transfer_callback_t over, void* user) {
  return with<Requests>(__func__, request, [&](HeldRequest& held) {
    return held.request->set([&](Request::Settings& settings) {
      settings.on_complete = nullptr;
      if (over != nullptr)
        settings.on_complete = [request, over, user](const TransferResult& result) {
          over(request, code_of(result), user);
        };
    });
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_event(memspan_transfer_t request, int* descriptor) {
  return with<Requests>(__func__, request, [&](HeldRequest& held) {
    if (descriptor == nullptr) return null_argument("descriptor");
    MEMSPAN_PASS_ASSIGN(*descriptor, held.request->event());
    return Status::ok();
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_post(memspan_transfer_t request) {
  const char* const call = __func__;
  return with<Requests>(call, request, [&](HeldRequest& held) {
    auto endpoint = endpoints().use(held.endpoint);
    if (!endpoint) return Status(Code::kUnavailable, "the request's endpoint has been destroyed");
    RecordedCall recorded(CallKind::kTransfer, call, kNobodyNamed,
                          is_recording() ? held.request->bytes() : 0);
    return recorded.ends(endpoint->post(held.request));
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_test(memspan_transfer_t request) {
  const char* const call = __func__;
  return with<Requests>(call, request,
                        [&](HeldRequest& held) { return report(call, held.request->result()); });
}

MEMSPAN_EXPORT int32_t memspan_transfer_result(memspan_transfer_t request,
                                               memspan_transfer_result_t* result) {
  return with<Requests>(__func__, request, [&](HeldRequest& held) {
    if (result == nullptr) return null_argument("result");
    const TransferResult found = held.request->result();
    *result = {code_of(found), found.moved};
    return Status::ok();
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_wait(memspan_transfer_t request, uint32_t timeout_ms) {
  const char* const call = __func__;
  return with<Requests>(call, request, [&](HeldRequest& held) {
    auto result = held.request->wait(deadline_of(timeout_ms));
    return result.is_ok() ? report(call, *result) : smem_result(call, result.status());
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_cancel(memspan_transfer_t request) {
  return with<Requests>(__func__, request, [](HeldRequest& held) {
    held.request->cancel();
    return SMEM_OK;
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_receive(smem_trans_t endpoint,
                                                memspan_transfer_message_t* message,
                                                uint32_t timeout_ms) {
  const char* const call = __func__;
  return with<Endpoints>(call, endpoint, [&](transfer::Endpoint& used) {
    if (message == nullptr) return smem_result(call, null_argument("message"));
    auto received = used.receive(deadline_of(timeout_ms));
    if (received.code() == Code::kTimeout) return std::int32_t{MEMSPAN_TRANSFER_PENDING};
    if (!received.is_ok()) return smem_result(call, received.status());
    *message = {};
    received->sender.copy(message->sender, sizeof message->sender - 1);
    message->bytes = static_cast<std::uint32_t>(received->message.size());
    std::memcpy(message->message, received->message.data(), received->message.size());
    return std::int32_t{SMEM_OK};
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_messages_event(smem_trans_t endpoint, int* descriptor) {
  return with<Endpoints>(__func__, endpoint, [&](transfer::Endpoint& used) {
    if (descriptor == nullptr) return null_argument("descriptor");
    *descriptor = used.messages_event();
    return Status::ok();
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_counter(smem_trans_t endpoint, uint32_t counter,
                                                uint64_t* value) {
  return with<Endpoints>(__func__, endpoint, [&](transfer::Endpoint& used) {
    if (value == nullptr) return null_argument("value");
    MEMSPAN_PASS(transfer::check_counter(counter));
    *value = transfer::read_counter(used.counters(), counter);
    return Status::ok();
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_wait_counter(smem_trans_t endpoint, uint32_t counter,
                                                     uint64_t value, uint32_t timeout_ms) {
  return with<Endpoints>(__func__, endpoint, [&](transfer::Endpoint& used) {
    MEMSPAN_PASS(transfer::check_counter(counter));
    return used.wait_for_counter(counter, value, deadline_of(timeout_ms));
  });
}
