// SPDX-License-Identifier: Apache-2.0
// HTTP 1.1 to etcd's members, by libcurl: calls with one answer, and streams.
#pragma once

#include <curl/curl.h>

#include <atomic>

#include "core/mutex.h"
#include "net/trusted_networks.h"
#include "store/etcd/etcd_module.h"

namespace memspan::etcd {

template <auto Free>
struct FreeWith {
  void operator()(auto* handle) const { Free(handle); }
};
using EasyHandle = std::unique_ptr<CURL, FreeWith<curl_easy_cleanup>>;
using MultiHandle = std::unique_ptr<CURLM, FreeWith<curl_multi_cleanup>>;
using HeaderList = std::unique_ptr<curl_slist, FreeWith<curl_slist_free_all>>;

// Settings of all connections of one member. Thread-safe.
class HttpSettings {
 public:
  // kInvalidArgument names a file that cannot be used.
  static Result<std::unique_ptr<HttpSettings>> create(const StoreSecurity& security,
                                                      const EtcdHost& host);

  bool has_tls() const { return has_tls_; }

 private:
  friend class HttpRequest;
  explicit HttpSettings(const EtcdHost& host) : host_(host) {}
  static CURLcode set_up_tls(CURL* easy, void* context, void* settings);
  static int check_address(void* request, char* address, char* own, int port, int own_port);

  const EtcdHost host_;
  mutable std::atomic<bool> has_warned_ = false;
  bool has_tls_ = false;
  bool may_be_plain_ = false;  // anywhere, as the caller asked
  StoreCertificates certificates_;
  TrustedNetworks trusted_;
};

// One POST and its answer. One thread at a time.
class HttpRequest : NotCopyable {
 public:
  // Consumes what it can of the received bytes. False ends the transfer.
  using Stream = std::function<bool(std::string& received)>;

  explicit HttpRequest(const HttpSettings& settings);

  // Call it before each transfer. A zero `limit` means no limit, for a stream, whose bytes `stream`
  // takes.
  void prepare(const Endpoint& to, const char* path, std::string body, const std::string& token,
               Duration limit, Stream stream = nullptr);
  CURL* handle() { return easy_.get(); }
  // Call it after the transfer, with its result. Returns the answer's body or the failure (as
  // read_failure(), and kUnavailable for a network error).
  Result<std::string> finish(CURLcode code);

 private:
  friend class HttpSettings;
  static std::size_t take(char* bytes, std::size_t one, std::size_t count, void* request);

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
                           const std::function<bool()>& is_over) MEMSPAN_EXCLUDES(mutex_);

 private:
  struct Connection {
    explicit Connection(const HttpSettings& settings)
        : multi(curl_multi_init()), request(settings) {}
    MultiHandle multi;  // keeps the connection between two requests
    HttpRequest request;
  };
  std::unique_ptr<Connection> take() MEMSPAN_EXCLUDES(mutex_);

  const HttpSettings& settings_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::etcd
