// SPDX-License-Identifier: Apache-2.0
// HTTP 1.1 to etcd's members, by libcurl: calls with one answer, and streams.
#pragma once

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "core/mutex.h"
#include "net/trusted_networks.h"
#include "store/etcd/etcd_messages.h"
#include "store/etcd/etcd_module.h"
#if MEMSPAN_HAS_TLS
#include "net/tls_parts.h"
#endif

namespace memspan::etcd {

template <auto Free>
struct FreeWith {
  void operator()(auto* handle) const { Free(handle); }
};
using EasyHandle = std::unique_ptr<CURL, FreeWith<curl_easy_cleanup>>;
using MultiHandle = std::unique_ptr<CURLM, FreeWith<curl_multi_cleanup>>;
using HeaderList = std::unique_ptr<curl_slist, FreeWith<curl_slist_free_all>>;

// Settings of all connections of one member. Only create() changes them, except `has_warned`.
struct HttpSettings : NotCopyable {
  explicit HttpSettings(const EtcdHost& functions) : host(functions) {}

  // kInvalidArgument names a file that cannot be used.
  static Result<std::unique_ptr<HttpSettings>> create(const StoreSecurity& security,
                                                      const EtcdHost& host) {
    // Initializes the library, once in a process, and for good.
    static const CURLcode made = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (made != CURLE_OK) return Status(Code::kSystem, "libcurl cannot be set up");
    auto settings = std::make_unique<HttpSettings>(host);
    settings->may_be_plain = security.kind == StoreSecurity::Kind::kPlain;
    settings->has_tls = security.kind == StoreSecurity::Kind::kCertificates;
    settings->certificates = security.certificates;
    MEMSPAN_TRY_ASSIGN(settings->trusted, TrustedNetworks::from_environment(), "etcd");
    if (!settings->has_tls) return settings;
#if MEMSPAN_HAS_TLS
    // Report an unusable file now, by its name.
    const TlsHandle<SSL_CTX> trial(SSL_CTX_new(TLS_client_method()));
    if (trial == nullptr) return Status(Code::kInternal, "OpenSSL: " + openssl_reason());
    MEMSPAN_PASS(load_certificates(trial.get(), settings->certificates));
    MEMSPAN_PASS(check_own_certificate(trial.get(), /*is_server=*/false));
    return settings;
#else
    return Status(Code::kNotSupported, "this build has no TLS (MEMSPAN_TLS is OFF)");
#endif
  }

  const EtcdHost host;
  mutable std::atomic<bool> has_warned = false;
  bool has_tls = false;
  bool may_be_plain = false;  // anywhere, as the caller asked
  StoreCertificates certificates;
  TrustedNetworks trusted;
};

// One POST and its answer. One thread at a time.
class HttpRequest : NotCopyable {
 public:
  // Consumes what it can of the received bytes. False ends the transfer.
  using Stream = std::function<bool(std::string& received)>;

  explicit HttpRequest(const HttpSettings& settings)
      : settings_(settings), easy_(curl_easy_init()) {
    CURL* const easy = easy_.get();
    if (easy == nullptr) return;
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, kKeepIdleSeconds);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, kKeepIdleSeconds);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, this);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error_);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, check_address);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, this);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, settings.has_tls ? "https" : "http");
#if MEMSPAN_HAS_TLS
    if (settings.has_tls) {
      // Trust only the authorities in the files.
      curl_easy_setopt(easy, CURLOPT_CAINFO, nullptr);
      curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
      curl_easy_setopt(easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_3);
      curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, set_up_tls);
      curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, &settings);
    }
#endif
  }

  // Call it before each transfer. A zero `limit` means no limit, for a stream, whose bytes `stream`
  // takes.
  void prepare(const Endpoint& to, const char* path, std::string body, const std::string& token,
               Duration limit, Stream stream = nullptr) {
    CURL* const easy = easy_.get();
    where_ = to.place();
    body_ = std::move(body);
    received_.clear();
    stream_ = std::move(stream);
    refused_ = Status::ok();
    error_[0] = '\0';
    curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Expect:");
    // A member without a leader then fails instead of waiting for one.
    headers = curl_slist_append(headers, "Grpc-Metadata-Hasleader: true");
    if (!token.empty()) headers = curl_slist_append(headers, ("Authorization: " + token).c_str());
    headers_.reset(headers);
    const std::string url =
        fmt::format("{}://{}{}", settings_.has_tls ? "https" : "http", where_, path);
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body_.data());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds(limit));
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     milliseconds(limit == Duration::zero() ? std::chrono::seconds(1) : limit / 2));
  }

  CURL* handle() {
    return easy_.get();
  }

  // Call it after the transfer, with its result. Returns the answer's body or the failure (as
  // read_failure(), and kUnavailable for a network error).
  Result<std::string> finish(CURLcode code) {
    if (!refused_.is_ok()) return refused_;
    if (code == CURLE_WRITE_ERROR)
      return Status(Code::kOutOfMemory,
                    fmt::format("etcd's answer has more than {} MiB", kMostAnswerBytes >> 20));
    if (code != CURLE_OK) {
      const char* const why = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
      return Status(is_about_trust(code) ? Code::kAuth : Code::kUnavailable,
                    fmt::format("{}: {}", where_, why));
    }
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    constexpr long kHttpOk = 200;
    if (status == kHttpOk) return std::move(received_);
    return read_failure(status, received_);
  }

 private:
  // Limit of one answer: far more than the keys and values of a listing may be.
  static constexpr std::size_t kMostAnswerBytes = std::size_t{64} << 20;
  static constexpr long kKeepIdleSeconds = 5;

  static long milliseconds(Duration duration) {
    return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
  }

  // Certificate errors of libcurl, which a retry would repeat.
  static bool is_about_trust(CURLcode code) {
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CERTPROBLEM ||
           code == CURLE_SSL_ISSUER_ERROR || code == CURLE_SSL_CRL_BADFILE;
  }

#if MEMSPAN_HAS_TLS
  // Like net/tls_context.cc: no version but 1.3, and the same files and checks.
  static CURLcode set_up_tls(CURL*, void* context, void* settings) {
    const auto& certificates = static_cast<const HttpSettings*>(settings)->certificates;
    auto* const ssl = static_cast<SSL_CTX*>(context);
    SSL_CTX_set_security_level(ssl, 3);
    const bool is_set = SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1 &&
                        load_certificates(ssl, certificates).is_ok();
    return is_set ? CURLE_OK : CURLE_SSL_CERTPROBLEM;
  }
#endif

  // Called when the connection exists, before anything is sent.
  static int check_address(void* request, char* address, char*, int, int) {
    auto& self = *static_cast<HttpRequest*>(request);
    const HttpSettings& settings = self.settings_;
    if (!settings.has_tls && !settings.may_be_plain)
      self.refused_ = settings.trusted.check(
          address, "etcd is on another host and nothing protects the connection, so it is not used",
          "give certificates (shmem_set_conf_store_tls(true, tls_info, length)), or say that it "
          "shall be plain (shmem_set_conf_store_tls(false, NULL, 0))");
    if (settings.may_be_plain && !TrustedNetworks().contain(address) &&
        !settings.has_warned.exchange(true))
      settings.host.log(LogLevel::kWarn,
                        fmt::format("the connection to etcd at {} is not protected: this process "
                                    "was configured without TLS",
                                    self.where_));
    return self.refused_.is_ok() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
  }

  static std::size_t take(char* bytes, std::size_t one, std::size_t count, void* request) {
    auto& self = *static_cast<HttpRequest*>(request);
    const std::size_t size = one * count;
    if (self.received_.size() + size > kMostAnswerBytes) return 0;  // libcurl ends the transfer
    self.received_.append(bytes, size);
    return self.stream_ && !self.stream_(self.received_) ? 0 : size;
  }

  const HttpSettings& settings_;
  EasyHandle easy_;
  HeaderList headers_;
  std::string where_;
  std::string body_;
  std::string received_;
  Stream stream_;
  Status refused_;  // by check_address()
  char error_[CURL_ERROR_SIZE] = {};
};

// Blocking calls, on connections that are kept. Thread-safe.
class HttpCalls {
 public:
  // A wait ends when `is_over` returns true; it is called every kLook.
  static constexpr auto kLook = std::chrono::milliseconds(40);

  explicit HttpCalls(const HttpSettings& settings) : settings_(settings) {}

  Result<std::string> post(const Endpoint& to, const char* path, std::string body,
                           const std::string& token, Deadline deadline,
                           const std::function<bool()>& is_over) MEMSPAN_EXCLUDES(mutex_) {
    std::unique_ptr<Connection> connection;
    {
      MutexLock lock(mutex_);
      if (!idle_.empty()) {
        connection = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (connection == nullptr) connection = std::make_unique<Connection>(settings_);
    if (connection->multi == nullptr || connection->request.handle() == nullptr)
      return Status(Code::kOutOfMemory, "no memory for a connection");
    const Duration limit = std::max<Duration>(deadline.remaining(), std::chrono::milliseconds(1));
    connection->request.prepare(to, path, std::move(body), token, limit);
    CURLM* const multi = connection->multi.get();
    CURL* const easy = connection->request.handle();
    curl_multi_add_handle(multi, easy);
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    for (int running = 1; running > 0;) {
      if (curl_multi_perform(multi, &running) != CURLM_OK || is_over()) break;
      if (running > 0) curl_multi_poll(multi, nullptr, 0, static_cast<int>(kLook.count()), nullptr);
    }
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left))
      if (message->msg == CURLMSG_DONE) code = message->data.result;
    auto answer = connection->request.finish(code);
    curl_multi_remove_handle(multi, easy);
    MutexLock lock(mutex_);
    if (idle_.size() < kMostIdle) idle_.push_back(std::move(connection));
    return answer;
  }

 private:
  static constexpr std::size_t kMostIdle = 8;

  struct Connection {
    explicit Connection(const HttpSettings& settings)
        : multi(curl_multi_init()), request(settings) {}
    MultiHandle multi;  // keeps the connection between two requests
    HttpRequest request;
  };

  const HttpSettings& settings_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::etcd
