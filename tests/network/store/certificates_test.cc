// SPDX-License-Identifier: Apache-2.0
// Certificates, good and bad.
//
// A bad one meets the store in four ways: a store or a member that is given it refuses to start,
// and a peer that shows it all the same (OpenSSL without our checks) is refused by a good store and
// by a good member.
#include "certificates.h"

#include <gtest/gtest.h>

#include "tls_expect.h"

namespace memspan {
namespace {

// ---- bad certificates

struct Shown {
  Issued leaf;
  std::vector<Issued> chain = {};
};

struct BadCertificate {
  const char* name;
  Shown (*make)(const Trust& trust);
  // What each side says about its own certificate; null where it cannot know.
  const char* own_as_server;
  const char* own_as_client;
  // What a good side says about the peer's; null where that is no ground for refusing.
  const char* peer_as_server;
  const char* peer_as_client;
  const char* host = "127.0.0.1";
};

Shown only(Issued leaf) {
  return {.leaf = std::move(leaf)};
}

Shown below(const Trust& trust, const CertificateWish& authority, const CertificateWish& leaf) {
  const Issued between = issue(authority, &trust.root());
  return {.leaf = issue(leaf, &between), .chain = {between}};
}

constexpr const char* kExpired = "certificate has expired";
constexpr const char* kTooEarly = "certificate is not yet valid";
constexpr const char* kStranger = "unable to get local issuer certificate";
constexpr const char* kSelfSigned = "self-signed certificate";
constexpr const char* kOwnWeakKey = "ee key too small";
constexpr const char* kWeakKey = "EE certificate key too weak";
constexpr const char* kOwnWeakHash = "ca md too weak";
constexpr const char* kWeakHash = "CA signature digest algorithm too weak";
constexpr const char* kPurpose = "unsuitable certificate purpose";
constexpr const char* kAuthority = "invalid CA certificate";
constexpr const char* kLongPath = "path length constraint exceeded";
constexpr const char* kWrongName = "hostname mismatch";
constexpr const char* kWrongAddress = "IP address mismatch";

const BadCertificate kBad[] = {
    {"Expired", [](const Trust& t) { return only(t.member({.ends_s = -60})); }, kExpired, kExpired,
     kExpired, kExpired},
    {"NotYetValid", [](const Trust& t) { return only(t.member({.begins_s = 3600})); }, kTooEarly,
     kTooEarly, kTooEarly, kTooEarly},
    {"OfAnotherAuthority", [](const Trust&) { return only(Trust("another").member()); }, kStranger,
     kStranger, kStranger, kStranger},
    // As above, but even the authority's name is the same.
    {"OfAnotherAuthorityOfThatName", [](const Trust&) { return only(Trust().member()); }, kStranger,
     kStranger, kStranger, kStranger},
    {"SelfSigned", [](const Trust&) { return only(issue({})); }, kSelfSigned, kSelfSigned,
     kSelfSigned, kSelfSigned},
    {"Rsa2048", [](const Trust& t) { return only(t.member({.key = KeyKind::kRsa2048})); },
     kOwnWeakKey, kOwnWeakKey, kWeakKey, kWeakKey},
    {"Rsa1024", [](const Trust& t) { return only(t.member({.key = KeyKind::kRsa1024})); },
     kOwnWeakKey, kOwnWeakKey, kWeakKey, kWeakKey},
    {"SignedWithSha1", [](const Trust& t) { return only(t.member({.hash = "SHA1"})); },
     kOwnWeakHash, kOwnWeakHash, kWeakHash, kWeakHash},
    {"ForClientsOnly", [](const Trust& t) { return only(t.member({.usage = "clientAuth"})); },
     kPurpose, nullptr, kPurpose, nullptr},
    {"ForServersOnly", [](const Trust& t) { return only(t.member({.usage = "serverAuth"})); },
     nullptr, kPurpose, nullptr, kPurpose},
    {"ForMailOnly", [](const Trust& t) { return only(t.member({.usage = "emailProtection"})); },
     kPurpose, kPurpose, kPurpose, kPurpose},
    {"AnAuthorityItself", [](const Trust& t) { return only(t.member({.is_authority = true})); },
     kAuthority, kAuthority, kAuthority, kAuthority},
    {"PathTooLong",
     [](const Trust& t) {
       const Issued first = issue(authority_wish("the first", 0), &t.root());
       const Issued second = issue(authority_wish("the second"), &first);
       return Shown{.leaf = issue({}, &second), .chain = {second, first}};
     },
     kLongPath, kLongPath, kLongPath, kLongPath},
    {"BelowWhatIsNoAuthority",
     [](const Trust& t) { return below(t, {.common_name = "no authority"}, {}); }, kAuthority,
     kAuthority, kAuthority, kAuthority},
    {"BelowAnExpiredAuthority",
     [](const Trust& t) {
       CertificateWish late = authority_wish("too late");
       late.ends_s = -60;
       return below(t, late, {});
     },
     kExpired, kExpired, kExpired, kExpired},
    {"WithoutWhatIsBetween",
     [](const Trust& t) { return only(below(t, authority_wish("between"), {}).leaf); }, kStranger,
     kStranger, kStranger, kStranger},
    {"WrongName", [](const Trust& t) { return only(t.member({.names = {"DNS:elsewhere"}})); },
     nullptr, nullptr, kWrongName, nullptr, "localhost"},
    {"WrongAddress", [](const Trust& t) { return only(t.member({.names = {"IP:192.0.2.7"}})); },
     nullptr, nullptr, kWrongAddress, nullptr},
    {"NameForAnAddress",
     [](const Trust& t) {
       return only(t.member({.names = {"DNS:127.0.0.1", "DNS:localhost"}}));
     },
     nullptr, nullptr, kWrongAddress, nullptr},
    {"OnlyACommonName",
     [](const Trust& t) { return only(t.member({.common_name = "localhost", .names = {}})); },
     nullptr, nullptr, kWrongName, nullptr, "localhost"},
    {"HalfAWildcard",
     [](const Trust& t) {
       return only(t.member({.names = {"DNS:local*", "DNS:*"}}));
     },
     nullptr, nullptr, kWrongName, nullptr, "localhost"},
};

class BadCertificateTest : public testing::TestWithParam<BadCertificate> {
 protected:
  Trust trust_;
  Shown shown_ = GetParam().make(trust_);
  TlsPeerWish peer_{.shows = shown_.leaf, .chain = shown_.chain};
};

TEST_P(BadCertificateTest, AStoreDoesNotStartWithIt) {
  const StoreCertificates files = trust_.files(shown_.leaf, shown_.chain);
  if (GetParam().own_as_server != nullptr) return expect_no_start(files, GetParam().own_as_server);
  EXPECT_TRUE(listen(with(files)).is_ok());
}

TEST_P(BadCertificateTest, AMemberDoesNotGoOutWithIt) {
  if (GetParam().own_as_client == nullptr) return;
  expect_refused(kNowhere, with(trust_.files(shown_.leaf, shown_.chain)), Code::kInvalidArgument,
                 GetParam().own_as_client);
}

TEST_P(BadCertificateTest, AStoreRefusesAMemberThatShowsIt) {
  if (GetParam().peer_as_client == nullptr) return;
  const LogLines log;
  const StoreSecurity good = with(trust_.files());
  auto server = listen(good);
  ASSERT_TRUE(server.is_ok()) << server.status().to_string();
  const Clock::time_point begin = Clock::now();
  TlsPeerClient peer((*server)->endpoint(), peer_);
  if (peer.shakes_hands()) {
    peer.send(encode(StoreHello{.member = "a stranger"}));
    EXPECT_EQ(peer.receive_all(), "");
  }
  EXPECT_LT(Clock::now() - begin, kRefusalTime);
  EXPECT_NE(peer.alert(), "");
  EXPECT_TRUE(log.waits_for(GetParam().peer_as_client)) << log.all();
  expect_served(**server, good);
}

TEST_P(BadCertificateTest, AMemberRefusesAStoreThatShowsIt) {
  if (GetParam().peer_as_server == nullptr) return;
  const TlsPeerServer server(peer_);
  expect_refused({GetParam().host, server.endpoint().port}, with(trust_.files()), Code::kAuth,
                 GetParam().peer_as_server);
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(server.received(), 0U);
}

INSTANTIATE_TEST_SUITE_P(All, BadCertificateTest, testing::ValuesIn(kBad),
                         [](const auto& of) { return std::string(of.param.name); });

// ---- good certificates

struct GoodCertificate {
  const char* name;
  Shown (*make)(const Trust& trust);
  const char* host = "127.0.0.1";
};

const GoodCertificate kGood[] = {
    {"Ec", [](const Trust& t) { return only(t.member()); }},
    {"Rsa3072", [](const Trust& t) { return only(t.member({.key = KeyKind::kRsa3072})); }},
    {"WithAnAuthorityBetween",
     [](const Trust& t) { return below(t, authority_wish("between", 0), {}); }},
    {"NamedByAddress", [](const Trust& t) { return only(t.member({.names = {"IP:127.0.0.1"}})); }},
    {"NamedByName", [](const Trust& t) { return only(t.member({.names = {"DNS:localhost"}})); },
     "localhost"},
    {"WithoutAnyPurpose", [](const Trust& t) { return only(t.member({.usage = ""})); }},
};

class GoodCertificateTest : public testing::TestWithParam<GoodCertificate> {};

TEST_P(GoodCertificateTest, IsServed) {
  Trust trust;
  const Shown shown = GetParam().make(trust);
  const StoreSecurity security = with(trust.files(shown.leaf, shown.chain));
  auto server = listen(security);
  ASSERT_TRUE(server.is_ok()) << server.status().to_string();
  auto client = join({GetParam().host, (*server)->endpoint().port}, security);
  ASSERT_TRUE(client.is_ok()) << client.status().to_string();
  EXPECT_TRUE((*client)->set("k", "v", soon()).is_ok());
  EXPECT_EQ(*(*client)->get("k", soon()), "v");
}

INSTANTIATE_TEST_SUITE_P(All, GoodCertificateTest, testing::ValuesIn(kGood),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace memspan
