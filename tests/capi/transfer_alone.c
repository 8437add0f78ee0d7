/* SPDX-License-Identifier: Apache-2.0
 * The headers of transfers by themselves. */
#include <memspan/transfer.h>

static void over(memspan_transfer_t request, int32_t code, void* user) {
  (void)request;
  *(int32_t*)user = code;
}

static void down(const char* peer, void* user) {
  (void)peer;
  (void)user;
}

int32_t transfer_alone_uses_it(smem_trans_t endpoint);
int32_t transfer_alone_uses_it(smem_trans_t endpoint) {
  memspan_transfer_t request = NULL;
  const memspan_transfer_blocks_t blocks = {NULL, 0, 0, 0};
  const memspan_transfer_pages_t pages = {NULL, NULL};
  memspan_transfer_result_t result = {0, 0};
  memspan_transfer_message_t message;
  int32_t code = memspan_transfer_prepare_blocks(endpoint, MEMSPAN_TRANSFER_READ, "", &blocks,
                                                 &blocks, &request);
  code += memspan_transfer_prepare_pages(endpoint, MEMSPAN_TRANSFER_WRITE, "", &pages, &pages, 0, 0,
                                         &request);
  code += memspan_transfer_set_callback(request, over, &code);
  code += memspan_transfer_set_patience(request, 0);
  code += memspan_transfer_result(request, &result);
  code += memspan_transfer_receive(endpoint, &message, MEMSPAN_TRANSFER_FOREVER);
  code += smem_trans_set_peer_down_callback(endpoint, down, NULL);
  code += smem_trans_write(endpoint, &code, "", &code, sizeof code);
  return code + MEMSPAN_TRANSFER_PENDING + MEMSPAN_TRANSFER_CANCELLED;
}
