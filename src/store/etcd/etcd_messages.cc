// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/etcd_messages.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

namespace memspan::etcd {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kTokenRefused = "etcd does not take the token any more";

Status malformed(std::string_view what) {
  return {Code::kInternal, fmt::format("etcd's answer is malformed: {}", what)};
}

// A member of an object; null if the member or the object is missing.
const Json& member(const Json& object, const char* name) {
  static const auto& kNone = *new Json;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

// A text or a number; 0 if it is neither, because etcd omits zeros.
std::int64_t number(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_string()) return 0;
  const auto& text = value.get_ref<const std::string&>();
  std::int64_t result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

bool flag(const Json& object, const char* name) {
  const Json& value = member(object, name);
  return value.is_boolean() && value.get<bool>();
}

std::string text_of(const Json& object, const char* name) {
  const Json& value = member(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<std::string> bytes_of(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (value.is_null()) return std::string();
  if (!value.is_string()) return std::nullopt;
  return from_base64(value.get_ref<const std::string&>());
}

Result<KeyValue> read_key(const Json& object) {
  auto key = bytes_of(object, "key");
  auto value = bytes_of(object, "value");
  if (!key || key->empty() || !value) return malformed("a key");
  return KeyValue{.key = std::move(*key),
                  .value = std::move(*value),
                  .created = number(object, "create_revision"),
                  .modified = number(object, "mod_revision"),
                  .lease = number(object, "lease")};
}

Status read_keys(const Json& range, std::vector<KeyValue>& into) {
  const Json& keys = member(range, "kvs");
  if (keys.is_null()) return Status::ok();
  if (!keys.is_array()) return malformed("a list of keys");
  for (const Json& each : keys) {
    MEMSPAN_PASS_ASSIGN(auto key, read_key(each));
    into.push_back(std::move(key));
  }
  return Status::ok();
}

Result<Json> parse(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return malformed("no object of JSON");
  return json;
}

Json range(std::string_view key) {
  return {{"key", to_base64(key)}};
}

Json condition(const Transaction::Condition& condition) {
  const bool is_creation = condition.of == Transaction::Condition::Of::kCreation;
  return {{"key", to_base64(condition.key)},
          {"result", "EQUAL"},
          {"target", is_creation ? "CREATE" : "MOD"},
          {is_creation ? "create_revision" : "mod_revision", std::to_string(condition.revision)}};
}

Json write(const Transaction::Write& write) {
  if (!write.value) return {{"request_delete_range", range(write.key)}};
  Json put = {{"key", to_base64(write.key)}, {"value", to_base64(*write.value)}};
  if (write.lease != 0) put["lease"] = std::to_string(write.lease);
  return {{"request_put", std::move(put)}};
}

// The numbers are those of gRPC.
Code code_of(std::int64_t grpc_code, std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (has("requested lease not found")) return Code::kStale;
  if (has("request is too large") || has("database space exceeded") || has("larger than max"))
    return Code::kOutOfMemory;
  switch (grpc_code) {
    case 1:   // cancelled: the member ends
    case 2:   // unknown: a gateway that is ending
    case 4:   // its deadline
    case 8:   // too many requests
    case 14:  // unavailable
      return Code::kUnavailable;
    case 7:
    case 16:
      return Code::kAuth;
    default:
      break;
  }
  if (has("authentication failed") || has("user name is empty") || has("is not enabled"))
    return Code::kAuth;
  if (has("no leader") || has("leader changed") || has("timed out") || has("stopped"))
    return Code::kUnavailable;
  return Code::kInternal;
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : bytes) {
    group = group << 8 | static_cast<unsigned char>(c);
    for (bits += 8; bits >= 6; bits -= 6) text += kDigits[group >> (bits - 6) & 63];
  }
  if (bits > 0) text += kDigits[group << (6 - bits) & 63];
  while (text.size() % 4 != 0) text += '=';
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  static constexpr auto kValues = [] {
    std::array<std::uint8_t, 256> values{};
    values.fill(64);
    for (std::size_t i = 0; i < kDigits.size(); ++i)
      values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
    return values;
  }();
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const std::uint8_t value = kValues[static_cast<unsigned char>(c)];
    if (value == 64) return std::nullopt;
    group = group << 6 | value;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 255);
  }
  if (bits == 6 || (group & ((1U << bits) - 1)) != 0) return std::nullopt;
  return bytes;
}

std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');  // everything from the key on
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

std::string range_request(std::string_view key, std::string_view end, Reading reading) {
  Json request = range(key);
  if (!end.empty()) request["range_end"] = to_base64(end);
  if (reading == Reading::kKeysOnly) request["keys_only"] = true;
  return request.dump();
}

std::string transaction_request(const Transaction& transaction) {
  Json compare = Json::array(), success = Json::array(), failure = Json::array();
  for (const auto& each : transaction.conditions) compare.push_back(condition(each));
  for (const auto& each : transaction.writes) success.push_back(write(each));
  for (const auto& each : transaction.reads)
    failure.push_back(Json{{"request_range", range(each)}});
  if (const auto& otherwise = transaction.otherwise) {
    Json nested = {{"compare", Json::array({condition(otherwise->condition)})},
                   {"success", Json::array({write(otherwise->write)})}};
    failure.push_back(Json{{"request_txn", std::move(nested)}});
  }
  return Json{{"compare", std::move(compare)},
              {"success", std::move(success)},
              {"failure", std::move(failure)}}
      .dump();
}

std::string grant_request(LeaseId lease, std::int64_t seconds) {
  return Json{{"ID", std::to_string(lease)}, {"TTL", std::to_string(seconds)}}.dump();
}

std::string lease_request(LeaseId lease) {
  return Json{{"ID", std::to_string(lease)}}.dump();
}

std::string watch_request(std::string_view key, std::string_view end, Revision from) {
  Json create = {{"key", to_base64(key)}, {"start_revision", std::to_string(from)}};
  if (!end.empty()) create["range_end"] = to_base64(end);
  return Json{{"create_request", std::move(create)}}.dump();
}

std::string authenticate_request(std::string_view user, std::string_view password) {
  return Json{{"name", user}, {"password", password}}.dump(-1, ' ', false,
                                                           Json::error_handler_t::replace);
}

Result<RangeAnswer> read_range(std::string_view answer) {
  MEMSPAN_TRY_ASSIGN(const Json json, parse(answer), "reading keys");
  RangeAnswer result{.revision = number(member(json, "header"), "revision"), .keys = {}};
  if (result.revision <= 0) return malformed("no revision");
  MEMSPAN_PASS(read_keys(json, result.keys));
  return result;
}

Result<TransactionAnswer> read_transaction(std::string_view answer) {
  MEMSPAN_TRY_ASSIGN(const Json json, parse(answer), "writing");
  TransactionAnswer result{.revision = number(member(json, "header"), "revision"),
                           .is_done = flag(json, "succeeded"),
                           .found = {}};
  if (result.revision <= 0) return malformed("no revision");
  const Json& responses = member(json, "responses");
  if (!responses.is_array()) return result;
  for (const Json& each : responses)
    MEMSPAN_PASS(read_keys(member(each, "response_range"), result.found));
  return result;
}

Result<std::int64_t> read_keep_alive(std::string_view answer) {
  MEMSPAN_TRY_ASSIGN(const Json json, parse(answer), "renewing the lease");
  if (member(json, "error").is_object()) return read_failure(0, answer);
  const Json& result = member(json, "result");
  if (!result.is_object()) return malformed("no lease");
  return number(result, "TTL");
}

Result<std::string> read_token(std::string_view answer) {
  MEMSPAN_TRY_ASSIGN(const Json json, parse(answer), "authenticating");
  std::string token = text_of(json, "token");
  if (token.empty() || token.find_first_of("\r\n") != std::string::npos)
    return malformed("no token");
  return token;
}

Result<WatchMessage> read_watch(std::string_view line) {
  MEMSPAN_TRY_ASSIGN(const Json json, parse(line), "watching");
  const Json& result = member(json, "result");
  if (!result.is_object()) return read_failure(0, line);
  WatchMessage message{.changes = {}, .is_compacted = number(result, "compact_revision") != 0};
  if (flag(result, "canceled") && !message.is_compacted) {
    const std::string why = text_of(result, "cancel_reason");
    return Status(why.find("permission") == std::string::npos ? Code::kUnavailable : Code::kAuth,
                  fmt::format("etcd has ended the watch: {}", why));
  }
  const Json& events = member(result, "events");
  if (!events.is_array()) return message;
  for (const Json& each : events) {
    MEMSPAN_PASS_ASSIGN(auto now, read_key(member(each, "kv")));
    message.changes.push_back(
        {.is_removed = text_of(each, "type") == "DELETE", .now = std::move(now)});
  }
  return message;
}

MEMSPAN_REMEDY(
    kNotEtcd, "not-etcd",
    "The address is not of etcd's port for clients (2379), or etcd's JSON gateway is off.",
    "Look at what `curl URL/version` answers, and start etcd without "
    "--enable-grpc-gateway=false.");

Status read_failure(long http_status, std::string_view answer) {
  const Json json = Json::parse(answer, nullptr, /*allow_exceptions=*/false);
  // A stream has the failure as an object, any other answer has the failure's members.
  const Json& inner = member(json, "error");
  const Json& failure = inner.is_object() ? inner : json;
  std::string text = text_of(failure, "message");
  if (text.empty()) text = text_of(failure, "error");
  std::int64_t grpc_code = number(failure, "code");
  if (grpc_code == 0) grpc_code = number(failure, "grpc_code");
  if (grpc_code == 0 && text.empty()) {
    const bool may_pass = http_status == 0 || http_status >= 500 || http_status == 429;
    return {may_pass ? Code::kUnavailable : Code::kInternal,
            fmt::format("an answer of HTTP with status {} that is not etcd's{}", http_status,
                        may_pass ? "" : kNotEtcd)};
  }
  if (text.find("invalid auth token") != std::string::npos ||
      text.find("revision of auth store is old") != std::string::npos)
    return {Code::kAuth, std::string(kTokenRefused)};
  return {code_of(grpc_code, text), text};
}

bool is_token_refused(const Status& failure) {
  return failure.code() == Code::kAuth && failure.message() == kTokenRefused;
}

}  // namespace memspan::etcd
