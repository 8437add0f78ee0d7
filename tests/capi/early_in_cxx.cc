// SPDX-License-Identifier: Apache-2.0
#include <shmem_api.h>

// The handler takes a reference, as the original's does.
static int decrypt(const char*, size_t, char*, size_t& plain_length) {
  plain_length = 0;
  return 0;
}

int early_in_cxx_uses_them();
int early_in_cxx_uses_them() {
  shmem_team_t team = SHMEM_TEAM_WORLD;
  return shmem_register_decrypt_handler(decrypt) + shmem_team_n_pes(team) + shmem_finalize();
}
