// SPDX-License-Identifier: Apache-2.0
// The verbs of the store, each a request to the built-in server and its answer.
#include "store/client.h"

#include <algorithm>

#include "store/client_connection.h"
#include "store/fields.h"

namespace memspan::inline store {
namespace {

class StoreVerbs final : public StoreConnection {
 public:
  using StoreConnection::StoreConnection;
  ~StoreVerbs() override { close(); }

  // The store itself reports the timeout of a get. If it is silent, a get or a wait ends a second
  // after the deadline.
  Status set(std::string_view key, std::string_view value, Deadline deadline,
             KeyLife life) override {
    return call({.operation = StoreOperation::kSet,
                 .key = std::string(key),
                 .value = std::string(value),
                 .is_owned = life == KeyLife::kLease},
                deadline)
        .status();
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    return value_of({.operation = StoreOperation::kGet, .key = std::string(key)}, deadline);
  }

  Result<std::string> get_now(std::string_view key, Deadline deadline) override {
    return value_of({.operation = StoreOperation::kGetNow, .key = std::string(key)}, deadline);
  }

  Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                       std::string_view desired, Deadline deadline,
                                       KeyLife life) override {
    return value_of({.operation = StoreOperation::kCompareAndSwap,
                     .key = std::string(key),
                     .value = std::string(desired),
                     .expected = std::string(expected),
                     .is_owned = life == KeyLife::kLease},
                    deadline);
  }

  Result<bool> remove(std::string_view key, Deadline deadline) override {
    MEMSPAN_PASS_ASSIGN(
        auto answer,
        call({.operation = StoreOperation::kRemove, .key = std::string(key)}, deadline));
    return answer.number != 0;
  }

  Result<StoreListing> list(std::string_view prefix, Deadline deadline) override {
    MEMSPAN_PASS_ASSIGN(
        auto text,
        value_of({.operation = StoreOperation::kList, .key = std::string(prefix)}, deadline));
    MEMSPAN_PASS_ASSIGN(auto texts, decode_record<std::vector<std::string>>(text, "listing"));
    StoreListing listing;
    for (std::size_t i = 0; i + 1 < texts.size(); i += 2)
      listing.emplace_back(std::move(texts[i]), std::move(texts[i + 1]));
    return listing;
  }

  RankService* rank_service() override { return this; }

  Result<int> take_rank(std::string_view scope, int rank, int size, Deadline deadline) override {
    MEMSPAN_PASS_ASSIGN(auto answer, call({.operation = StoreOperation::kTakeRank,
                                           .key = std::string(scope),
                                           .rank = rank,
                                           .size = static_cast<std::uint32_t>(std::max(size, 0))},
                                          deadline));
    return static_cast<int>(answer.number);
  }

  Status give_rank(std::string_view scope, Deadline deadline) override {
    return call({.operation = StoreOperation::kGiveRank, .key = std::string(scope)}, deadline)
        .status();
  }

 private:
  Result<std::string> value_of(StoreRequest request, Deadline deadline) {
    MEMSPAN_PASS_ASSIGN(auto answer, call(std::move(request), deadline));
    return answer.value.take();
  }
};

}  // namespace

Result<std::unique_ptr<StoreClient>> StoreClient::greet(std::unique_ptr<ByteChannel> stream,
                                                        std::string where, const StoreHello& hello,
                                                        Deadline deadline) {
  MEMSPAN_PASS_ASSIGN(auto wake, WakeEvent::create());
  auto client =
      std::make_unique<StoreVerbs>(std::move(stream), std::move(wake), std::move(where), hello);
  MEMSPAN_PASS(client->say_hello(hello, deadline));
  return std::unique_ptr<StoreClient>(std::move(client));
}

}  // namespace memspan::inline store
