// SPDX-License-Identifier: Apache-2.0
#include "tls_peer.h"

#include <fcntl.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <condition_variable>
#include <mutex>

#include "core/log.h"
#include "net/tcp.h"
#include "support.h"

namespace memspan {
namespace {

// Blocking, but not for ever: a peer that hangs is a failed test.
void wait_for_at_most(int socket, std::chrono::seconds limit) {
  const timeval time{.tv_sec = limit.count(), .tv_usec = 0};
  MEMSPAN_CHECK(::fcntl(socket, F_SETFL, 0) == 0);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

TlsHandle<SSL_CTX> make_context(const SSL_METHOD* method, const TlsPeerWish& wish) {
  TlsHandle<SSL_CTX> context(SSL_CTX_new(method));
  SSL_CTX* raw = context.get();
  SSL_CTX_set_security_level(raw, 0);
  MEMSPAN_CHECK(SSL_CTX_set_cipher_list(raw, "ALL:@SECLEVEL=0") == 1);
  MEMSPAN_CHECK(SSL_CTX_set_min_proto_version(raw, wish.oldest) == 1);
  MEMSPAN_CHECK(SSL_CTX_set_max_proto_version(raw, wish.newest) == 1);
  if (!wish.shows) return context;
  MEMSPAN_CHECK(SSL_CTX_use_certificate(raw, wish.shows->certificate.get()) == 1);
  MEMSPAN_CHECK(SSL_CTX_use_PrivateKey(raw, wish.shows->key.get()) == 1);
  for (const Issued& next : wish.chain)
    MEMSPAN_CHECK(SSL_CTX_add1_chain_cert(raw, next.certificate.get()) == 1);
  return context;
}

TlsHandle<SSL> make_connection(SSL_CTX* context, int socket) {
  TlsHandle<SSL> ssl(SSL_new(context));
  MEMSPAN_CHECK(ssl != nullptr && SSL_set_fd(ssl.get(), socket) == 1);
  return ssl;
}

// OpenSSL's own socket writes raise SIGPIPE when the other side has closed, which is what the store
// does here. Only this thread's, so that the library's own would still be seen.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const timespec at_once = {};
    while (sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

struct Log {
  std::mutex mutex;
  std::condition_variable changed;
  std::string lines;
};
Log& the_log() {
  static Log log;
  return log;
}

}  // namespace

TlsPeerClient::TlsPeerClient(const Endpoint& endpoint, const TlsPeerWish& wish)
    : context_(make_context(TLS_client_method(), wish)) {
  auto connection = connect_tcp(endpoint, soon());
  MEMSPAN_CHECK(connection.is_ok());
  socket_ = std::move(connection->socket);
  wait_for_at_most(socket_.get(), std::chrono::seconds(30));
  ssl_ = make_connection(context_.get(), socket_.get());
  SSL_set_app_data(ssl_.get(), &alert_);
  SSL_set_info_callback(ssl_.get(), [](const SSL* ssl, int where, int what) {
    if ((where & SSL_CB_READ_ALERT) != SSL_CB_READ_ALERT) return;
    // OpenSSL 3.0 has no name for the one that TLS 1.3 brought.
    *static_cast<std::string*>(SSL_get_app_data(ssl)) = (what & 0xff) == SSL_AD_CERTIFICATE_REQUIRED
                                                            ? "certificate required"
                                                            : SSL_alert_desc_string_long(what);
  });
}

bool TlsPeerClient::shakes_hands() {
  const NoPipeSignal quiet;
  ERR_clear_error();
  return SSL_connect(ssl_.get()) == 1;
}

bool TlsPeerClient::send(std::string_view bytes) {
  const NoPipeSignal quiet;
  ERR_clear_error();
  return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
}

std::string TlsPeerClient::receive_all() {
  const NoPipeSignal quiet;
  std::string all;
  char chunk[4096];
  for (;;) {
    ERR_clear_error();
    const int got = SSL_read(ssl_.get(), chunk, sizeof chunk);
    if (got <= 0) return all;
    all.append(chunk, static_cast<std::size_t>(got));
  }
}

bool TlsPeerClient::update_keys() {
  const NoPipeSignal quiet;
  ERR_clear_error();
  return SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED) == 1 &&
         SSL_do_handshake(ssl_.get()) == 1;
}

TlsPeerServer::TlsPeerServer(const TlsPeerWish& wish)
    : context_(make_context(TLS_server_method(), wish)) {
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  SSL_CTX_set_num_tickets(context_.get(), 0);
  auto listener = listen_tcp({"127.0.0.1", 0});
  MEMSPAN_CHECK(listener.is_ok());
  listener_ = std::move(listener->socket);
  endpoint_ = listener->endpoint;
  MEMSPAN_CHECK(::fcntl(listener_.get(), F_SETFL, 0) == 0);
  thread_ = std::thread([this] { serve(); });
}

TlsPeerServer::~TlsPeerServer() {
  ::shutdown(listener_.get(), SHUT_RDWR);  // ends accept()
  thread_.join();
}

void TlsPeerServer::serve() {
  for (;;) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.is_valid()) return;
    connections_.fetch_add(1);
    serve(std::move(socket));
  }
}

void TlsPeerServer::serve(Fd socket) {
  const NoPipeSignal quiet;
  wait_for_at_most(socket.get(), std::chrono::seconds(30));
  TlsHandle<SSL> ssl = make_connection(context_.get(), socket.get());
  ERR_clear_error();
  if (SSL_accept(ssl.get()) != 1) return;
  char chunk[4096];
  for (int got = 1; got > 0; received_.fetch_add(got > 0 ? static_cast<std::size_t>(got) : 0))
    got = SSL_read(ssl.get(), chunk, sizeof chunk);
  ERR_clear_error();
}

LogLines::LogLines() {
  {
    const std::lock_guard lock(the_log().mutex);
    the_log().lines.clear();
  }
  set_log_sink([](int, const char* line) {
    const std::lock_guard lock(the_log().mutex);
    the_log().lines += std::string(line) + "\n";
    the_log().changed.notify_all();
  });
}

LogLines::~LogLines() {
  set_log_sink(nullptr);
}

bool LogLines::waits_for(std::string_view part) const {
  std::unique_lock lock(the_log().mutex);
  return the_log().changed.wait_for(lock, std::chrono::seconds(10), [&] {
    return the_log().lines.find(part) != std::string::npos;
  });
}

std::string LogLines::all() const {
  const std::lock_guard lock(the_log().mutex);
  return the_log().lines;
}

}  // namespace memspan
