// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/rendezvous.h"

#include <cstring>

#include "transport/message/ucx/configuration.h"

namespace memspan::ucx {
namespace {

constexpr unsigned kMessageId = 0;
using Number = std::uint64_t;

}  // namespace

Status Rendezvous::start(ucp_worker_h worker, Find find) {
  worker_ = worker;
  find_ = std::move(find);
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessageId;
  handler.cb = on_message;
  handler.arg = this;
  return from_ucs("ucp_worker_set_am_recv_handler",
                  ucp_worker_set_am_recv_handler(worker, &handler));
}

bool Rendezvous::send(ucp_ep_h endpoint, std::uint64_t number, std::span<const iovec> payload) {
  std::size_t bytes = 0;
  for (const iovec& part : payload) bytes += part.iov_len;
  // The header has to stay as long as the payload.
  BufferPool::Buffer* const buffer = sends_.take(bytes + sizeof number);
  std::byte* at = buffer->bytes.get();
  for (const iovec& part : payload) {
    std::memcpy(at, part.iov_base, part.iov_len);
    at += part.iov_len;
  }
  std::memcpy(at, &number, sizeof number);
  ucp_request_param_t how{};
  how.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_AM_SEND_FLAG_RNDV | UCP_AM_SEND_FLAG_REPLY;
  how.cb.send = on_sent;
  how.user_data = buffer;
  ucs_status_ptr_t request =
      ucp_am_send_nbx(endpoint, kMessageId, at, sizeof number, buffer->bytes.get(), bytes, &how);
  if (UCS_PTR_IS_PTR(request)) return true;  // on_sent() follows
  buffer->give_back();
  return !UCS_PTR_IS_ERR(request);
}

void Rendezvous::on_sent(void* request, ucs_status_t, void* buffer) {
  static_cast<BufferPool::Buffer*>(buffer)->give_back();
  ucp_request_free(request);
}

ucs_status_t Rendezvous::on_message(void* self, const void* header, std::size_t header_bytes,
                                    void* message, std::size_t bytes,
                                    const ucp_am_recv_param_t* how) {
  Channel* const channel = (how->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0
                               ? static_cast<Rendezvous*>(self)->find_(how->reply_ep)
                               : nullptr;
  // The sender does not speak this protocol, or its connection has ended.
  if (channel == nullptr) return UCS_OK;
  if ((how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0 || header_bytes != sizeof(Number)) {
    channel->fail("it sends a message of another kind");
    return UCS_OK;
  }
  Number number = 0;
  std::memcpy(&number, header, sizeof number);
  return channel->take_large(number, message, bytes) ? UCS_INPROGRESS : UCS_OK;
}

void Rendezvous::fetch(void* message, Landing& landing) {
  BufferPool::Buffer* const buffer = landings_.take(landing.bytes);
  landing.buffer = buffer;
  landing.is_fetching = true;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.recv_am = on_fetched;
  how.user_data = &landing;
  ucs_status_ptr_t request =
      ucp_am_recv_data_nbx(worker_, message, buffer->bytes.get(), landing.bytes, &how);
  if (!UCS_PTR_IS_PTR(request))
    on_fetched(nullptr, UCS_PTR_STATUS(request), landing.bytes, &landing);
}

void Rendezvous::on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* landing) {
  if (request != nullptr) ucp_request_free(request);
  auto* const fetched = static_cast<Landing*>(landing);
  fetched->is_fetching = false;
  if (fetched->channel == nullptr) {  // the connection has ended
    const std::unique_ptr<Landing> last(fetched);
    return;
  }
  fetched->is_here = status == UCS_OK && bytes == fetched->bytes;
  fetched->channel->landed(fetched->is_here ? "" : ucs_status_string(status));
}

void Rendezvous::drop(void* message) {
  ucp_am_data_release(worker_, message);
}

}  // namespace memspan::ucx
