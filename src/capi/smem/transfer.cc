// SPDX-License-Identifier: Apache-2.0
// Requests are posted and completed; messages and counters arrive.
#include <memspan/transfer.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "capi/smem/endpoints.h"
#include "capi/smem/requests.h"
#include "fabric/transfer/registration_table.h"
#include "observe/recorded_call.h"

namespace memspan::capi {
namespace {

using transfer::Request;
using transfer::TransferResult;

// `action(held)` gives the code.
template <typename Action>
std::int32_t with_request(const char* call, const void* handle, Action action) try {
  auto held = requests().use(handle);
  if (!held) return bad_handle(call, handle, "request");
  return action(*held);
}
MEMSPAN_CATCH_IN(call, SMEM_MALLOC_FAILED)

std::int32_t null_pointer(const char* call, const char* name) {
  return smem_failure(call, SMEM_INVALID_PARAM, std::string("invalid param, ") + name + " is NULL");
}

std::int32_t code_of(const TransferResult& result) {
  switch (result.kind) {
    case TransferResult::Kind::kReady:
    case TransferResult::Kind::kPosted:
      return MEMSPAN_TRANSFER_PENDING;
    case TransferResult::Kind::kDone:
      return SMEM_OK;
    case TransferResult::Kind::kCancelled:
      return MEMSPAN_TRANSFER_CANCELLED;
    case TransferResult::Kind::kFailed:
      return smem_code(result.status);
  }
  return SMEM_ERROR;
}

std::int32_t report(const char* call, const TransferResult& result) {
  if (result.kind == TransferResult::Kind::kFailed) return smem_result(call, result.status);
  return code_of(result);
}

std::int32_t post(const char* call, HeldRequest& held) {
  auto endpoint = endpoints().use(held.endpoint);
  if (!endpoint)
    return smem_failure(call, SMEM_NOT_STARTED, "the request's endpoint has been destroyed");
  RecordedCall recorded(CallKind::kTransfer, call, kNobodyNamed,
                        is_recording() ? held.request->bytes() : 0);
  return smem_result(call, recorded.ends(endpoint->post(held.request)));
}

std::int32_t set_message(const char* call, Request& request, const void* message,
                         std::size_t bytes) {
  if (bytes > transfer::kMostMessageBytes)
    return smem_failure(call, SMEM_INVALID_PARAM,
                        fmt::format("invalid bytes, which is {}: allowed are 0 to {}", bytes,
                                    transfer::kMostMessageBytes));
  return smem_result(call, request.set_completion_action([&](transfer::CompletionAction& action) {
    if (message == nullptr)
      action.message.reset();
    else
      action.message.emplace(static_cast<const char*>(message), bytes);
  }));
}

std::int32_t set_counter(const char* call, Request& request, std::uint32_t counter,
                         std::uint64_t value) {
  if (Status status = transfer::check_counter(counter); !status.is_ok())
    return smem_result(call, status);
  return smem_result(call, request.set_completion_action([&](transfer::CompletionAction& action) {
    action.counter.reset();
    if (value != 0) action.counter = counter;
    action.value = value;
  }));
}

std::int32_t set_on_complete(const char* call, Request& request, memspan_transfer_t handle,
                             memspan_transfer_callback_t over, void* user) {
  if (over == nullptr) return smem_result(call, request.set_on_complete(nullptr));
  return smem_result(
      call, request.set_on_complete([handle, over, user](const transfer::TransferResult& result) {
        over(handle, code_of(result), user);
      }));
}

std::int32_t receive(const char* call, transfer::Endpoint& endpoint,
                     memspan_transfer_message_t* message, std::uint32_t timeout_ms) {
  if (message == nullptr) return null_pointer(call, "message");
  auto received = endpoint.receive(deadline_of(timeout_ms));
  if (received.code() == Code::kTimeout) return MEMSPAN_TRANSFER_PENDING;
  if (!received.is_ok()) return smem_result(call, received.status());
  *message = {};
  received->sender.copy(message->sender, sizeof message->sender - 1);
  message->bytes = static_cast<std::uint32_t>(received->message.size());
  std::memcpy(message->message, received->message.data(), received->message.size());
  return SMEM_OK;
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t memspan_transfer_reach(smem_trans_t endpoint, const char* peer) try {
  constexpr const char* kCall = "memspan_transfer_reach";
  if (peer == nullptr) return null_pointer(kCall, "peer");
  return with_endpoint(kCall, endpoint, [&](transfer::Endpoint& from) {
    return smem_result(kCall, from.reach(peer));
  });
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int32_t memspan_transfer_set_message(memspan_transfer_t request, const void* message,
                                                    size_t bytes) {
  constexpr const char* kCall = "memspan_transfer_set_message";
  return with_request(kCall, request, [&](HeldRequest& held) {
    return set_message(kCall, *held.request, message, bytes);
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_set_counter(memspan_transfer_t request, uint32_t counter,
                                                    uint64_t value) {
  constexpr const char* kCall = "memspan_transfer_set_counter";
  return with_request(kCall, request, [&](HeldRequest& held) {
    return set_counter(kCall, *held.request, counter, value);
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_set_patience(memspan_transfer_t request,
                                                     uint32_t timeout_ms) {
  constexpr const char* kCall = "memspan_transfer_set_patience";
  return with_request(kCall, request, [&](HeldRequest& held) {
    return smem_result(kCall,
                       held.request->set_patience(Duration(std::chrono::milliseconds(timeout_ms))));
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_set_callback(memspan_transfer_t request,
                                                     memspan_transfer_callback_t over, void* user) {
  constexpr const char* kCall = "memspan_transfer_set_callback";
  return with_request(kCall, request, [&](HeldRequest& held) {
    return set_on_complete(kCall, *held.request, request, over, user);
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_event(memspan_transfer_t request, int* descriptor) {
  constexpr const char* kCall = "memspan_transfer_event";
  return with_request(kCall, request, [&](HeldRequest& held) {
    if (descriptor == nullptr) return null_pointer(kCall, "descriptor");
    auto event = held.request->event();
    if (event.is_ok()) *descriptor = *event;
    return smem_result(kCall, event.status());
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_post(memspan_transfer_t request) {
  constexpr const char* kCall = "memspan_transfer_post";
  return with_request(kCall, request, [&](HeldRequest& held) { return post(kCall, held); });
}

MEMSPAN_EXPORT int32_t memspan_transfer_test(memspan_transfer_t request) {
  constexpr const char* kCall = "memspan_transfer_test";
  return with_request(kCall, request,
                      [&](HeldRequest& held) { return report(kCall, held.request->result()); });
}

MEMSPAN_EXPORT int32_t memspan_transfer_result(memspan_transfer_t request,
                                               memspan_transfer_result_t* result) {
  constexpr const char* kCall = "memspan_transfer_result";
  return with_request(kCall, request, [&](HeldRequest& held) {
    if (result == nullptr) return null_pointer(kCall, "result");
    const TransferResult found = held.request->result();
    *result = {code_of(found), found.moved};
    return SMEM_OK;
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_wait(memspan_transfer_t request, uint32_t timeout_ms) {
  constexpr const char* kCall = "memspan_transfer_wait";
  return with_request(kCall, request, [&](HeldRequest& held) {
    auto result = held.request->wait(deadline_of(timeout_ms));
    return result.is_ok() ? report(kCall, *result) : smem_result(kCall, result.status());
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_cancel(memspan_transfer_t request) {
  return with_request("memspan_transfer_cancel", request, [](HeldRequest& held) {
    held.request->cancel();
    return SMEM_OK;
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_receive(smem_trans_t endpoint,
                                                memspan_transfer_message_t* message,
                                                uint32_t timeout_ms) {
  constexpr const char* kCall = "memspan_transfer_receive";
  return with_endpoint(kCall, endpoint, [&](transfer::Endpoint& used) {
    return receive(kCall, used, message, timeout_ms);
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_messages_event(smem_trans_t endpoint, int* descriptor) {
  constexpr const char* kCall = "memspan_transfer_messages_event";
  return with_endpoint(kCall, endpoint, [&](transfer::Endpoint& used) {
    if (descriptor == nullptr) return null_pointer(kCall, "descriptor");
    *descriptor = used.messages_event();
    return SMEM_OK;
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_counter(smem_trans_t endpoint, uint32_t counter,
                                                uint64_t* value) {
  constexpr const char* kCall = "memspan_transfer_counter";
  return with_endpoint(kCall, endpoint, [&](transfer::Endpoint& used) {
    if (value == nullptr) return null_pointer(kCall, "value");
    Status status = transfer::check_counter(counter);
    if (status.is_ok()) *value = transfer::read_counter(used.counters(), counter);
    return smem_result(kCall, status);
  });
}

MEMSPAN_EXPORT int32_t memspan_transfer_wait_counter(smem_trans_t endpoint, uint32_t counter,
                                                     uint64_t value, uint32_t timeout_ms) {
  constexpr const char* kCall = "memspan_transfer_wait_counter";
  return with_endpoint(kCall, endpoint, [&](transfer::Endpoint& used) {
    Status status = transfer::check_counter(counter);
    if (status.is_ok()) status = used.wait_for_counter(counter, value, deadline_of(timeout_ms));
    return smem_result(kCall, status);
  });
}
