// SPDX-License-Identifier: Apache-2.0
#include "store/store_address.h"

#include <gmock/gmock.h>

namespace memspan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(StoreAddressTest, ReadsAServersAddress) {
  const auto address = StoreAddress::parse("tcp://127.0.0.1:8666");
  ASSERT_TRUE(address.is_ok()) << address.status().to_string();
  EXPECT_FALSE(address->is_etcd());
  EXPECT_EQ(*address, StoreAddress(Endpoint{"127.0.0.1", 8666}));
  EXPECT_EQ(address->to_string(), "tcp://127.0.0.1:8666");
}

TEST(StoreAddressTest, ReadsAListOfServers) {
  const char* const text = "tcp://one:8666,tcp://[::1]:8667,tcp://127.0.0.1:1";
  const auto address = StoreAddress::parse(text);
  ASSERT_TRUE(address.is_ok()) << address.status().to_string();
  EXPECT_FALSE(address->is_etcd());
  EXPECT_THAT(address->endpoints,
              ElementsAre(Endpoint{"one", 8666}, Endpoint{"::1", 8667}, Endpoint{"127.0.0.1", 1}));
  EXPECT_EQ(address->to_string(), text);
  EXPECT_EQ(address->check_may_be_hosted().code(), Code::kInvalidArgument);
  EXPECT_TRUE(StoreAddress::parse("tcp://one:8666")->check_may_be_hosted().is_ok());
  EXPECT_EQ(StoreAddress::parse("tcp6://[::1]:1,tcp://one:2")->to_string(),
            "tcp://[::1]:1,tcp://one:2");
}

TEST(StoreAddressTest, ReadsEtcdsMembersAndPrefix) {
  const auto address = StoreAddress::parse("etcd://one:2379,[::1]:12379,127.0.0.1:1/jobs/blue/");
  ASSERT_TRUE(address.is_ok()) << address.status().to_string();
  EXPECT_TRUE(address->is_etcd());
  EXPECT_THAT(address->endpoints,
              ElementsAre(Endpoint{"one", 2379}, Endpoint{"::1", 12379}, Endpoint{"127.0.0.1", 1}));
  EXPECT_EQ(address->prefix, "jobs/blue");
  EXPECT_EQ(address->to_string(), "etcd://one:2379,[::1]:12379,127.0.0.1:1/jobs/blue");
}

TEST(StoreAddressTest, ReadsTheUserAtEtcd) {
  const auto address = StoreAddress::parse("etcd://root@one:2379,two:2379/jobs");
  ASSERT_TRUE(address.is_ok()) << address.status().to_string();
  EXPECT_EQ(address->user, "root");
  EXPECT_THAT(address->endpoints, ElementsAre(Endpoint{"one", 2379}, Endpoint{"two", 2379}));
  EXPECT_EQ(address->to_string(), "etcd://root@one:2379,two:2379/jobs");
  EXPECT_EQ(StoreAddress::parse("etcd://me@example.org@one:1")->user, "me@example.org");
  EXPECT_EQ(StoreAddress::parse("etcd://one:1/a@b")->user, "");
}

TEST(StoreAddressTest, APrefixThatIsNotGivenIsMemspan) {
  for (const char* url : {"etcd://one:2379", "etcd://one:2379/", "etcd://one:2379//"})
    EXPECT_EQ(StoreAddress::parse(url)->prefix, "memspan") << url;
}

TEST(StoreAddressTest, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"etcd://", "names no host"},
      {"etcd:///prefix", "names no host"},
      {"etcd://:2379", "1 to 253 characters"},
      {"etcd:// :2379", "the host has a blank"},
      {"etcd://one", "has no port"},
      {"etcd://one:", "the port"},
      {"etcd://one:x", "the port"},
      {"etcd://one:0", "the port is 0"},
      {"etcd://one:65536", "the port"},
      {"etcd://one:1,", "behind a comma"},
      {"etcd://,one:1", "behind a comma"},
      {"etcd://one:1,,two:2", "behind a comma"},
      {"etcd://one:1/a b", "no blanks"},
      {"etcd://me:secret@one:1", "MEMSPAN_ETCD_PASSWORD_FILE"},
      {"etcd://me:s@cret@one:1", "MEMSPAN_ETCD_PASSWORD_FILE"},
      {"etcd://one:1,me@two:1", "a user has 1 to 256 characters"},
      {"etcd://@one:1", "a user has 1 to 256 characters"},
      {"etcd://m e@one:1", "a user has 1 to 256 characters"},
      {"etcd://me@", "names no host"},
      {"http://one:1", "neither tcp://"},
      {"one:1", "neither tcp://"},
      {"", "neither tcp://"},
      {"tcp://one", "has no port"},
      {"tcp:// :1", "the host has a blank"},
      {"tcp://one:1,", "behind a comma"},
      {"tcp://one:1,,tcp://two:2", "behind a comma"},
      {"tcp://one:1,two:2", "tcp6://"},
      {"tcp://one:1,etcd://two:2", "tcp6://"},
      {"tcp://one:0,tcp://two:2", "the port is 0"},
  };
  for (const auto& [url, why] : cases) {
    const auto address = StoreAddress::parse(url);
    EXPECT_EQ(address.code(), Code::kInvalidArgument) << url;
    EXPECT_THAT(address.status().message(), HasSubstr(why));
    EXPECT_THAT(address.status().message(), HasSubstr("tcp://HOST:PORT"));
    EXPECT_THAT(address.status().message(), Not(HasSubstr("cret")));
  }
}

}  // namespace
}  // namespace memspan
