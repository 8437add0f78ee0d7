// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/etcd_messages.h"

#include <gmock/gmock.h>

namespace memspan::etcd {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(EtcdMessagesTest, Base64IsWrittenAndRead) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {std::string("\0\xff\x10", 3), "AP8Q"},
  };
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  for (const char* text : {"Zg", "Zg=", "Z===", "Zg==Zg==", "Zh==", "Zm9", "Z m9", "====", "Zm9\n"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

TEST(EtcdMessagesTest, TheEndOfAPrefixIsTheFirstKeyBehindIt) {
  EXPECT_EQ(end_of_prefix("a/"), "a0");
  EXPECT_EQ(end_of_prefix("a\xff\xff"), "b");
  EXPECT_EQ(end_of_prefix("\xff"), std::string(1, '\0'));
}

TEST(EtcdMessagesTest, ReadsKeys) {
  const auto answer = read_range(
      R"({"header":{"revision":"12"},"kvs":[{"key":"aw==","value":"dg==","create_revision":"3",)"
      R"("mod_revision":"11","lease":"77"},{"key":"bA=="}],"count":"2"})");
  ASSERT_TRUE(answer.is_ok()) << answer.status().to_string();
  EXPECT_EQ(answer->revision, 12);
  ASSERT_THAT(answer->keys, SizeIs(2));
  EXPECT_EQ(answer->keys[0].key, "k");
  EXPECT_EQ(answer->keys[0].value, "v");
  EXPECT_EQ(answer->keys[0].created, 3);
  EXPECT_EQ(answer->keys[0].modified, 11);
  EXPECT_EQ(answer->keys[0].lease, 77);
  EXPECT_EQ(answer->keys[1].value, "");
  EXPECT_THAT(read_range(R"({"header":{"revision":"12"}})")->keys, IsEmpty());
}

TEST(EtcdMessagesTest, RefusesWhatIsNoAnswer) {
  for (const char* text :
       {"", "{", "[]", "null", "{}", R"({"header":{}})", R"({"header":{"revision":"x"}})",
        R"({"header":{"revision":"1"},"kvs":{}})", R"({"header":{"revision":"1"},"kvs":[{}]})",
        R"({"header":{"revision":"1"},"kvs":[{"key":"a"}]})",
        R"({"header":{"revision":"1"},"kvs":[{"key":"aw==","value":7}]})"})
    EXPECT_EQ(read_range(text).code(), Code::kInternal) << text;
  EXPECT_EQ(read_token(R"({"token":"a\r\nb"})").code(), Code::kInternal);
  EXPECT_EQ(read_token("{}").code(), Code::kInternal);
}

TEST(EtcdMessagesTest, ReadsWhetherATransactionWasDone) {
  EXPECT_TRUE(read_transaction(R"({"header":{"revision":"5"},"succeeded":true})")->is_done);
  const auto not_done = read_transaction(
      R"({"header":{"revision":"5"},"responses":[{"response_range":{"kvs":[{"key":"aw=="}]}},)"
      R"({"response_range":{}},{"response_put":{}}]})");
  ASSERT_TRUE(not_done.is_ok());
  EXPECT_FALSE(not_done->is_done);
  EXPECT_THAT(not_done->found, SizeIs(1));
}

TEST(EtcdMessagesTest, WritesATransaction) {
  const std::string request = transaction_request(
      {.conditions = {{.of = Transaction::Condition::Of::kCreation, .key = "k", .revision = 0}},
       .writes = {{.key = "k", .value = "v", .lease = 9}, {.key = "l", .value = {}}},
       .reads = {"k"},
       .otherwise = Transaction::Otherwise{
           .condition = {.of = Transaction::Condition::Of::kLastWrite, .key = "l", .revision = 7},
           .write = {.key = "l", .value = ""}}});
  EXPECT_EQ(request,
            R"({"compare":[{"create_revision":"0","key":"aw==","result":"EQUAL",)"
            R"("target":"CREATE"}],"failure":[{"request_range":{"key":"aw=="}},)"
            R"({"request_txn":{"compare":[{"key":"bA==","mod_revision":"7","result":"EQUAL",)"
            R"("target":"MOD"}],"success":[{"request_put":{"key":"bA==","value":""}}]}}],)"
            R"("success":[{"request_put":{"key":"aw==","lease":"9","value":"dg=="}},)"
            R"({"request_delete_range":{"key":"bA=="}}]})");
}

TEST(EtcdMessagesTest, ReadsAWatchsLines) {
  const auto changes = read_watch(
      R"({"result":{"header":{"revision":"9"},"events":[{"kv":{"key":"aw==","value":"dg==",)"
      R"("mod_revision":"8"}},{"type":"DELETE","kv":{"key":"aw==","mod_revision":"9"}}]}})");
  ASSERT_TRUE(changes.is_ok()) << changes.status().to_string();
  ASSERT_THAT(changes->changes, SizeIs(2));
  EXPECT_FALSE(changes->changes[0].is_removed);
  EXPECT_EQ(changes->changes[0].now.value, "v");
  EXPECT_TRUE(changes->changes[1].is_removed);
  EXPECT_EQ(changes->changes[1].now.modified, 9);
  EXPECT_THAT(read_watch(R"({"result":{"created":true}})")->changes, IsEmpty());
  EXPECT_TRUE(read_watch(R"({"result":{"canceled":true,"compact_revision":"6"}})")->is_compacted);
  EXPECT_EQ(read_watch(R"({"result":{"canceled":true,"cancel_reason":"it ends"}})").code(),
            Code::kUnavailable);
  EXPECT_EQ(read_watch(R"({"error":{"grpc_code":14,"message":"etcdserver: no leader"}})").code(),
            Code::kUnavailable);
}

TEST(EtcdMessagesTest, KnowsWhichFailuresMayPass) {
  const auto code = [](long status, const char* text) { return read_failure(status, text).code(); };
  EXPECT_EQ(code(503, R"({"error":"etcdserver: leader changed","code":14})"), Code::kUnavailable);
  EXPECT_EQ(code(503, "busy"), Code::kUnavailable);
  EXPECT_EQ(code(404, "nothing here"), Code::kInternal);
  EXPECT_EQ(code(404, R"({"error":"etcdserver: requested lease not found","code":5})"),
            Code::kStale);
  EXPECT_EQ(code(400, R"({"error":"etcdserver: request is too large","code":3})"),
            Code::kOutOfMemory);
  EXPECT_EQ(code(403, R"({"error":"etcdserver: permission denied","code":7})"), Code::kAuth);
  const Status token = read_failure(401, R"({"error":"etcdserver: invalid auth token","code":16})");
  EXPECT_TRUE(is_token_refused(token));
  EXPECT_FALSE(is_token_refused(Status::ok()));
  EXPECT_THAT(read_failure(500, R"({"message":"why","code":13})").message(), HasSubstr("why"));
}

}  // namespace
}  // namespace memspan::etcd
