// SPDX-License-Identifier: Apache-2.0
// The names in certificates: members of jobs, and hosts.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <optional>
#include <string>

#include "core/status.h"
#include "net/byte_channel.h"

namespace memspan {

// Reads the URI "urn:memspan:job:JOB:rank:3" in the certificate's subject alternative names;
// nullopt if none begins with "urn:memspan:". kAuth if one does but has another form, if two name
// different members, or if the names cannot be read. Such a certificate was meant to bind its
// owner, so it must not permit every identity.
Result<std::optional<StreamIdentity>> member_of(const X509* certificate);
// Sets the name or numeric address that the server's certificate must have. Its common name is
// ignored.
Status expect_host(SSL* ssl, const std::string& host);

}  // namespace memspan
