// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/native_registrations.h"

#include "core/bytes.h"
#include "transport/message/ucx/configuration.h"

namespace memspan::ucx {

Result<std::string> NativeRegistrations::key(ucp_context_h context, const std::string& address,
                                             std::byte* base, std::size_t bytes) {
  if (const auto found = ranges_.find(base); found != ranges_.end()) {
    if (found->second.bytes == bytes) return found->second.key;
    return Status(Code::kNotSupported, "a part of that memory is registered with UCX");
  }
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = base;
  params.length = bytes;
  ucp_mem_h memory = nullptr;
  MEMSPAN_PASS(from_ucs("ucp_mem_map", ucp_mem_map(context, &params, &memory)));
  void* packed = nullptr;
  std::size_t length = 0;
  Status status = from_ucs("ucp_rkey_pack", ucp_rkey_pack(context, memory, &packed, &length));
  if (!status.is_ok()) {
    ucp_mem_unmap(context, memory);
    return status;
  }
  ByteWriter out;
  out.text(address);
  out.u64(reinterpret_cast<std::uintptr_t>(base));
  out.text({static_cast<const char*>(packed), length});
  ucp_rkey_buffer_release(packed);
  ++count_;
  return ranges_.emplace(base, Registered{bytes, memory, out.take()}).first->second.key;
}

void NativeRegistrations::retract(ucp_context_h context, const std::byte* base, std::size_t bytes) {
  for (auto one = ranges_.lower_bound(base); one != ranges_.end() && one->first < base + bytes;
       one = ranges_.erase(one))
    ucp_mem_unmap(context, one->second.memory);
}

void NativeRegistrations::retract_all(ucp_context_h context) {
  for (const auto& [base, one] : ranges_) ucp_mem_unmap(context, one.memory);
  ranges_.clear();
}

}  // namespace memspan::ucx
