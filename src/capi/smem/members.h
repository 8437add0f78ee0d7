// SPDX-License-Identifier: Apache-2.0
// This process's memberships, and the stores that it hosts. It has two memberships for each store:
// Big Memory and Share Memory at the same address share one, which ends with its connection, and
// all endpoints the other, which connects again.
#pragma once

#include <smem/host/smem_bm_def.h>

#include "fabric/member.h"
#include "net/security.h"
#include "store/store_address.h"

namespace memspan::capi {

enum class Hosting {
  kNever,
  kWhenPossible,  // unless the address is taken, or is another host's
};

// Connects, or shares what is connected, after hosting the store. `security` empty: as the program
// chose (store_security.h). kInvalidArgument for the URL; else as connect_store(). A child of
// fork() does not share its parent's. Thread-safe.
Result<std::shared_ptr<Member>> member_at(const char* url, Hosting hosting, AfterLoss after_loss,
                                          std::optional<StoreSecurity> security, Deadline deadline);

// ---- the stores that this process hosts

// kInvalidArgument names what is wrong, also for a null or empty URL.
Result<StoreAddress> read_url(const char* url);

// Until smem_destroy_config_store(), the last of stop_using_stores() or the end of the process. Ok
// also if this process already serves the endpoint, and for etcd, which runs without it.
// kUnavailable when another socket has the endpoint. Thread-safe.
Status host_store(const StoreAddress& address, const StoreSecurity& security);
// Like host_store(), for a lost store. Ok also when this process has ended the one that it hosted.
Status host_store_again(const StoreAddress& address, const StoreSecurity& security);

// Which parts of MemFabric are initialized here ("bm", "shm", "trans"). When the last of them ends,
// so do the stores that this process hosts. Thread-safe; a part that is not initialized ends
// nothing.
void start_using_stores(const char* part);
void stop_using_stores(const char* part);

// The certificates that a configuration's structure names. Empty when the structure does not ask
// for TLS: then what the program chose holds. kInvalidArgument names the field. The library of
// decrypterLibPath is loaded when the key's password is read.
Result<std::optional<StoreSecurity>> security_of(const smem_tls_config& config);

}  // namespace memspan::capi
