// SPDX-License-Identifier: Apache-2.0
// What the program said about protecting the store, before it joins anything: one choice for all
// API bindings of this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/status.h"
#include "net/security.h"

namespace memspan::capi {

// All of these are thread-safe and hold for what is joined afterwards.

// A text that a program gave, by the name that its parameter has; up to 10 KiB.
struct GivenText {
  const char* name;
  const char* bytes;  // may be null
  std::uint32_t length;
};
// Gets a password as it is stored, and room for the one that opens the key, whose length it sets;
// returns 0 when it could.
using DecryptHandler = int (*)(const char* cipher, std::size_t cipher_length, char* plain,
                               std::size_t& plain_length);

// The text that `decrypt` writes to the place of `length` bytes that it gets. It sets the length,
// and returns 0 when it could. `name` is for failures.
Result<std::string> decrypted(std::string_view name,
                              const std::function<int(char* plain, std::size_t& length)>& decrypt);

// kInvalidArgument says which text is null or too long, or what tls_info lacks.

// Certificates by a tls_info string, or, when `enable` is false, no TLS at all.
Status choose_tls(bool enable, const GivenText& tls_info);
// The key and its password, which override files that tls_info names. A null password means no
// password; a null handler keeps the previous one.
Status give_tls_key(const GivenText& key, const GivenText& password, DecryptHandler decrypt);
// How the key's password is decrypted; null: it is as given.
void give_tls_decryption(DecryptHandler decrypt);

// The program's choice; else the secret of MEMSPAN_JOB_SECRET_FILE; else this host's own.
Result<StoreSecurity> chosen_security();

}  // namespace memspan::capi
