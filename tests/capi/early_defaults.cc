// SPDX-License-Identifier: Apache-2.0
// The later attributes in C++: their values before the program gives any, and joining with them.
#include <shmem_api.h>

#include <cstring>
#include <new>

#include "support/check.h"

int main() {
  // Where something else has been.
  alignas(aclshmemx_init_attr_t) char memory[sizeof(aclshmemx_init_attr_t)];
  std::memset(memory, 0xa5, sizeof memory);
  auto* made = new (memory) aclshmemx_init_attr_t;
  const aclshmem_init_optional_attr_t& option = made->option_attr;
  CHECK(made->ip_port[0] == 0 && made->ip_port[SHMEM_IP_PORT_LENGTH - 1] == 0);
  CHECK(made->comm_args == nullptr && made->instance_id == 0 && sizeof *made == 120);
  CHECK(option.version == (1 << 16) + static_cast<int>(sizeof option) && option.sockFd == 0);
  CHECK(option.data_op_engine_type == SHMEM_DATA_OP_MTE && option.shm_init_timeout == 120);
  CHECK(option.shm_create_timeout == 120 && option.control_operation_timeout == 120);
  made->my_pe = 0;
  made->n_pes = 1;
  made->local_mem_size = 1 << 20;
  std::strcpy(made->ip_port, "tcp://127.0.0.1:8667");
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, made) == 0);
  CHECK(aclshmem_n_pes() == 1 && aclshmem_finalize() == 0);
}
