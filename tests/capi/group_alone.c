/* SPDX-License-Identifier: Apache-2.0
 * The header of groups by itself. */
#include <memspan/group.h>

static int nobody(void* user, const void* mine, size_t bytes, void* all) {
  (void)user;
  (void)mine;
  (void)bytes;
  (void)all;
  return 1;
}

int32_t group_alone_uses_it(void* const results[], const void* const values[], size_t bytes[]);
int32_t group_alone_uses_it(void* const results[], const void* const values[], size_t bytes[]) {
  memspan_group_t group = NULL;
  memspan_group_request_t request = NULL;
  int32_t code = memspan_group_create(0, 1, nobody, NULL, 1000, &group);
  code += memspan_group_all_to_all(group, results, bytes, values, bytes);
  code += memspan_group_reduce_scatter(group, results[0], values, 1, MEMSPAN_TYPE_BFLOAT16,
                                       MEMSPAN_OP_AVERAGE);
  code += memspan_group_receive(group, MEMSPAN_GROUP_ANYBODY, 0, results[0], 1, &request);
  return code + MEMSPAN_GROUP_PENDING + MEMSPAN_GROUP_MEMBERS_MAX + memspan_group_destroy(group);
}
