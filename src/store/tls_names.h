// SPDX-License-Identifier: Apache-2.0
// Whom certificates name: members of jobs, and hosts.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <optional>
#include <string>

#include "core/status.h"
#include "store/stream.h"

namespace memspan {

// From the URI "urn:memspan:job:JOB:rank:3" of the certificate's subject alternative names; nullopt
// when none begins with "urn:memspan:". kAuth when one does and is written in any other way, when
// two name different members, or when the names cannot be read at all: such a certificate was meant
// to bind its owner, and must not let him be whoever he likes.
Result<std::optional<StreamIdentity>> member_of(const X509* certificate);
// The name or numeric address that the server's certificate must have; its common name counts for
// nothing.
Status expect_host(SSL* ssl, const std::string& host);

}  // namespace memspan
