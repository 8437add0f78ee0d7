// SPDX-License-Identifier: Apache-2.0
// etcd's messages, version 3 of its interface, as the JSON of its gateway: requests and answers.
// Keys and values are base64, and 64-bit numbers are decimal texts.
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.h"

namespace memspan::etcd {

// The revision of the whole store: every transaction that writes increments it.
using Revision = std::int64_t;
using LeaseId = std::int64_t;

std::string to_base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);

// The first key after all that begin with `prefix`, which is not empty.
std::string end_of_prefix(std::string prefix);

// A key as etcd has it. A value.
struct KeyValue {
  std::string key;
  std::string value;
  Revision created = 0;
  Revision modified = 0;  // of the last write, also of a removal
  LeaseId lease = 0;      // 0: none
};

// ---- requests ----

enum class Reading { kWhole, kKeysOnly };
// The keys in [key, end); `end` empty: the one key.
std::string range_request(std::string_view key, std::string_view end = {},
                          Reading reading = Reading::kWhole);

// A transaction that writes when all conditions hold, and otherwise reads and then may write
// something else. A value.
struct Transaction {
  // The key's last write (or its creation) has that revision; 0: the key does not exist.
  struct Condition {
    enum class Of { kCreation, kLastWrite } of;
    std::string_view key;
    Revision revision;
  };
  struct Write {
    std::string_view key;
    std::optional<std::string_view> value;  // nullopt: the key is removed
    LeaseId lease = 0;
  };
  std::vector<Condition> conditions;
  std::vector<Write> writes;
  std::vector<std::string_view> reads;
  // Written after the reads, and only if that one condition holds.
  struct Otherwise {
    Condition condition;
    Write write;
  };
  std::optional<Otherwise> otherwise;
};
std::string transaction_request(const Transaction& transaction);

std::string grant_request(LeaseId lease, std::int64_t seconds);
std::string lease_request(LeaseId lease);  // to keep it alive, or to revoke it
// Every change in [key, end), from the revision on.
std::string watch_request(std::string_view key, std::string_view end, Revision from);
std::string authenticate_request(std::string_view user, std::string_view password);

// ---- answers; kInternal if malformed ----

struct RangeAnswer {
  Revision revision = 0;  // of the store when it read
  std::vector<KeyValue> keys;
};
Result<RangeAnswer> read_range(std::string_view answer);

struct TransactionAnswer {
  Revision revision = 0;
  bool is_done = false;         // the conditions held
  std::vector<KeyValue> found;  // of the reads, those that exist
};
Result<TransactionAnswer> read_transaction(std::string_view answer);

// The seconds that the lease has left; 0: it has ended.
Result<std::int64_t> read_keep_alive(std::string_view answer);
Result<std::string> read_token(std::string_view answer);

// One line of a watch's stream.
struct WatchMessage {
  struct Change {
    bool is_removed = false;
    KeyValue now;
  };
  std::vector<Change> changes;
  bool is_compacted = false;  // the watch is over: etcd no longer has its first revision
};
// Like read_failure() if the line reports a failed watch.
Result<WatchMessage> read_watch(std::string_view line);

// The failure in an answer with an HTTP status other than 200:
//   kUnavailable    another member, or this one a little later, may answer
//   kStale          the lease does not exist
//   kOutOfMemory    larger than etcd accepts, or etcd's space is used up
//   kAuth           the user lacks the permission, or must authenticate (is_token_refused())
//   kInternal       anything else
Status read_failure(long http_status, std::string_view answer);
// Whether authenticating again may help.
bool is_token_refused(const Status& failure);

}  // namespace memspan::etcd
