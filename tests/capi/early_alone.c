/* SPDX-License-Identifier: Apache-2.0
 * The early CANN names by themselves: integer teams, an int from finalize. */
#include <shmem_api.h>

int early_alone_uses_them(void);
int early_alone_uses_them(void) {
  shmem_team_t team = SHMEM_TEAM_WORLD, x, y;
  shmem_team_config_t config;
  shmem_decrypt_handler none = NULL;
  int status = shmem_team_split_2d(team, 2, &x, &y) + shmem_team_get_config(x, &config);
  status += shmem_set_conf_store_tls(false, NULL, 0) + shmem_register_decrypt_handler(none);
  return status + shmem_finalize();
}
