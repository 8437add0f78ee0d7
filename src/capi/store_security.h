// SPDX-License-Identifier: Apache-2.0
// What the program said about protecting the store, before it joins anything: one choice for all
// faces of this process.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "store/security.h"

namespace memspan::capi {

// All of these are thread-safe and hold for what is joined afterwards.

// Certificates by a tls_info string, or, when `enable` is false, no TLS at all.
Status choose_tls(bool enable, std::string_view tls_info);
// The key and its password as texts; they count before files that tls_info names.
void give_tls_key(std::string_view key, std::string_view password);
// How the key's password is decrypted; null: it is as given.
void give_tls_decryption(DecryptPassword decrypt);

// What the program chose; else the secret of MEMSPAN_JOB_SECRET_FILE; else this host's own.
Result<StoreSecurity> chosen_security();

}  // namespace memspan::capi
