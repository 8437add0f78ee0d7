// SPDX-License-Identifier: Apache-2.0
// One connection under TLS.
#pragma once

#include <memory>
#include <string>

#include "core/fd.h"
#include "core/status.h"
#include "net/byte_channel.h"
#include "net/tls_files.h"

namespace memspan {

enum class TlsSide { kServer, kClient };

// Uses a BIO of ours, which never raises SIGPIPE.
Result<std::unique_ptr<ByteChannel>> make_tls_stream(Fd socket, TlsHandle<SSL> ssl, TlsSide side);
// Like TlsContext::accepts().
Status verify_peer_again(const ByteChannel& stream, SSL_CTX* context);

}  // namespace memspan
