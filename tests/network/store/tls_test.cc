// SPDX-License-Identifier: Apache-2.0
// The store under mutual X.509: who is let in, who is not any more, and with which words.
#include "net/tls.h"

#include <gtest/gtest.h>

#include "net/tls_parts.h"
#include "support/must.h"
#include "tls_expect.h"

namespace memspan {
namespace {

// ---- what comes before anything is known

bool are_taken(const std::string& bytes, std::size_t piece) {
  TlsRecords records;
  bool is_good = true;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    is_good = records.look_at(std::string_view(bytes).substr(at, piece));
  return is_good;
}

std::string record(char type, std::size_t length, const std::string& begin) {
  std::string bytes = {type, 3, 1, static_cast<char>(length >> 8), static_cast<char>(length)};
  bytes += begin;
  bytes.resize(5 + length, 'x');
  return bytes;
}

TEST(TlsRecordsTest, AMessageFitsInItsRecord) {
  const std::string hello = record(22, 300, std::string("\x01\x00\x01\x28", 4));
  const std::string sealed = record(23, 2, "xx") + record(23, 0, "") + record(20, 1, "x");
  for (std::size_t piece : {1U, 4U, 5U, 9U, 1000U}) {
    EXPECT_TRUE(are_taken(hello + sealed + hello, piece));
    EXPECT_FALSE(are_taken(record(22, 300, std::string("\x01\x00\x01\x29", 4)), piece));
    EXPECT_FALSE(are_taken(record(22, 300, "\x01\x02\x01\x3f"), piece));
    EXPECT_FALSE(are_taken(record(22, 1, "\x01"), piece));
    EXPECT_FALSE(are_taken(record(22, 0, ""), piece));
    EXPECT_FALSE(are_taken(hello + sealed + record(22, 300, "\x01\x02\x01\x3f") + hello, piece));
  }
}

class TlsTest : public testing::Test {
 protected:
  std::unique_ptr<StoreServer> store(const StoreCertificates& certificates,
                                     const std::string& job = {}) {
    return must(
        StoreServer::listen({"127.0.0.1", 0}, {.security = with(certificates), .job = job}));
  }
  std::string list_file(const RevocationWish& wish = {}) {
    return trust_.folder().write(revocation_list(trust_.root(), wish));
  }

  // Of the member of a job that hosts its store.
  StoreCertificates files_of(const std::string& job) {
    const std::string name = "URI:urn:memspan:job:" + job + ":rank:0";
    return trust_.files(trust_.member({.names = {"DNS:localhost", "IP:127.0.0.1", name}}));
  }

  Trust trust_;
};

TEST_F(TlsTest, LargeValuesTravelWhole) {
  auto server = store(trust_.files());
  auto client = join(server->endpoint(), with(trust_.files()));
  ASSERT_TRUE(client.is_ok()) << client.status().to_string();
  std::string value(kMaxValueBytes, 'x');
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 131 >> 7);
  EXPECT_TRUE((*client)->set("k", value, soon()).is_ok());
  EXPECT_TRUE(*(*client)->get("k", soon()) == value);
}

TEST_F(TlsTest, AMemberWithoutACertificateIsRefused) {
  const LogLines log;
  auto server = store(trust_.files());
  TlsPeerClient peer(server->endpoint(), {});
  if (peer.shakes_hands()) {
    EXPECT_EQ(peer.receive_all(), "");
  }
  EXPECT_EQ(peer.alert(), "certificate required");
  EXPECT_TRUE(log.waits_for("did not return a certificate")) << log.all();
  expect_served(*server, with(trust_.files()));
}

// The store's reason comes after the member's own handshake is over.
TEST_F(TlsTest, AMemberIsToldThatItsAuthorityIsNotTrusted) {
  auto server = store(trust_.files());
  Trust other("another");
  StoreCertificates stranger = other.files();
  stranger.authorities.push_back(trust_.files().authorities[0]);
  expect_refused(server->endpoint(), with(stranger), Code::kAuth, "unknown ca");
  expect_served(*server, with(trust_.files()));
}

// ---- names of members

TEST_F(TlsTest, AMemberMayClaimTheRankThatItsCertificateNames) {
  auto server = store(trust_.files(), "train");
  const StoreCertificates files = trust_.files(trust_.member(
      {.names = {"DNS:localhost", "IP:127.0.0.1", "URI:urn:memspan:job:train:rank:3"}}));
  const auto claim = [&](const std::string& job, int rank) {
    return StoreClient::connect({.endpoint = server->endpoint(),
                                 .security = with(files),
                                 .member = "a test",
                                 .job = job,
                                 .rank = rank},
                                soon());
  };
  EXPECT_TRUE(claim("train", 3).is_ok()) << claim("train", 3).status().to_string();
  EXPECT_TRUE(claim("train", -1).is_ok());
  const auto wrong_rank = claim("train", 4);
  EXPECT_EQ(wrong_rank.code(), Code::kAuth);
  EXPECT_TRUE(contains(wrong_rank.status().message(), "rank 3")) << wrong_rank.status().message();
}

TEST_F(TlsTest, AMemberOfAnotherJobIsRefusedByItsCertificate) {
  const StoreCertificates files = trust_.files(trust_.member(
      {.names = {"DNS:localhost", "IP:127.0.0.1", "URI:urn:memspan:job:train:rank:0"}}));
  for (const char* job : {"", "test"}) {
    auto server = store(trust_.files(), "test");
    auto client = StoreClient::connect({.endpoint = server->endpoint(),
                                        .security = with(files),
                                        .member = "a test",
                                        .job = job,
                                        .rank = 0},
                                       soon());
    EXPECT_EQ(client.code(), Code::kAuth) << client.status().to_string();
    EXPECT_TRUE(contains(client.status().message(), "\"train\"")) << client.status().to_string();
  }
}

std::vector<std::string> names_with(const std::string& member) {
  return {"DNS:localhost", "IP:127.0.0.1", "URI:" + member};
}

TEST_F(TlsTest, AMemberTakesTheRankThatItsCertificateNamesAndNoOther) {
  auto server = store(trust_.files(), "train");
  const StoreCertificates files =
      trust_.files(trust_.member({.names = names_with("urn:memspan:job:train:rank:3")}));
  auto client = join(server->endpoint(), with(files));
  ASSERT_TRUE(client.is_ok()) << client.status().to_string();
  for (const char* scope : {"bm", "any"}) {
    const auto other = (*client)->take_rank(scope, 0, 4, soon());
    EXPECT_EQ(other.code(), Code::kAuth);
    EXPECT_TRUE(contains(other.status().message(), "rank 3")) << other.status().to_string();
    const auto own = (*client)->take_rank(scope, -1, 4, soon());
    ASSERT_TRUE(own.is_ok()) << own.status().to_string();
    EXPECT_EQ(*own, 3);
  }
}

// A store of no job in particular: the scopes are named as the jobs are.
TEST_F(TlsTest, AMemberTakesNoRankOfAnotherJob) {
  auto server = store(trust_.files());
  const StoreCertificates files =
      trust_.files(trust_.member({.names = names_with("urn:memspan:job:train:rank:3")}));
  auto client = join(server->endpoint(), with(files));
  ASSERT_TRUE(client.is_ok()) << client.status().to_string();
  const auto other = (*client)->take_rank("test", 3, 4, soon());
  EXPECT_EQ(other.code(), Code::kAuth);
  EXPECT_TRUE(contains(other.status().message(), "\"train\"")) << other.status().to_string();
  EXPECT_TRUE((*client)->take_rank("train", 3, 4, soon()).is_ok());
  EXPECT_TRUE((*client)->take_rank("bm", 3, 4, soon()).is_ok());
}

TEST_F(TlsTest, AStoreServesTheJobThatItsOwnCertificateNames) {
  auto server =
      store(trust_.files(trust_.member({.names = names_with("urn:memspan:job:train:rank:0")})));
  const auto member = [&](const std::string& job) {
    const std::string name = "urn:memspan:job:" + job + ":rank:1";
    return join(server->endpoint(), with(trust_.files(trust_.member({.names = names_with(name)}))));
  };
  EXPECT_EQ(member("test").code(), Code::kAuth);
  auto client = member("train");
  ASSERT_TRUE(client.is_ok()) << client.status().to_string();
  EXPECT_TRUE((*client)->take_rank("job", 1, 2, soon()).is_ok());
}

// Also to members whose certificate names nobody.
TEST_F(TlsTest, AMemberThatClaimsAnotherJobThanTheStoresCertificateNamesIsRefused) {
  auto server =
      store(trust_.files(trust_.member({.names = names_with("urn:memspan:job:train:rank:0")})));
  const auto claim = [&](const std::string& job) {
    return StoreClient::connect({.endpoint = server->endpoint(),
                                 .security = with(trust_.files()),
                                 .member = "a test",
                                 .job = job},
                                soon());
  };
  const auto other = claim("test");
  EXPECT_EQ(other.code(), Code::kAuth);
  EXPECT_TRUE(contains(other.status().message(),
                       "the store's certificate names the job \"train\", not \"test\""))
      << other.status().to_string();
  EXPECT_TRUE(claim("train").is_ok());
  EXPECT_TRUE(claim("").is_ok());
}

// The member checks it itself: a hostile store may claim to serve any job.
TEST_F(TlsTest, AMemberRefusesAStoreWhoseCertificateNamesAnotherJob) {
  auto server = store(files_of("other"));
  const auto files =
      trust_.files(trust_.member({.names = names_with("urn:memspan:job:train:rank:1")}));
  expect_refused(server->endpoint(), with(files), Code::kAuth,
                 "the store's certificate names the job \"other\", not \"train\"");
  expect_served(*server, with(trust_.files()));
}

TEST_F(TlsTest, AStoreServesNoJobThatItsCertificateDoesNotName) {
  const auto listen_for = [&](const StoreCertificates& files) {
    return StoreServer::listen({"127.0.0.1", 0}, {.security = with(files), .job = "train"});
  };
  const auto refused = listen_for(files_of("other"));
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  for (const char* part : {"names the job \"other\"", "serves the job \"train\""})
    EXPECT_TRUE(contains(refused.status().message(), part)) << refused.status().to_string();
  for (const StoreCertificates& files : {files_of("train"), trust_.files()}) {
    auto server = must(listen_for(files));
    EXPECT_EQ(server->reload(with(files_of("other"))).code(), Code::kInvalidArgument);
    expect_served(*server, with(files_of("train")));
    EXPECT_TRUE(server->reload(with(files_of("train"))).is_ok());
    expect_served(*server, with(files_of("train")));
  }
}

// A store that was given no job serves that of its first certificate.
TEST_F(TlsTest, AReloadedCertificateOfAnotherJobIsRefused) {
  auto server = store(files_of("train"));
  EXPECT_EQ(server->reload(with(files_of("other"))).code(), Code::kInvalidArgument);
  expect_served(*server, with(files_of("train")));
}

// Whoever was meant to be somebody must not be anybody because of a slip of the pen.
TEST_F(TlsTest, NamesOfMembersThatCannotBeReadAreRefused) {
  auto server = store(trust_.files());
  for (const char* name : {"urn:memspan:job:train:rank:-1", "urn:memspan:job:train:rank:0x1",
                           "urn:memspan:job:train:rank:01", "urn:memspan:job:train:rank:+1",
                           "urn:memspan:job:train:rank:", "urn:memspan:job:train:rank:99999999999",
                           "urn:memspan:job:train", "urn:memspan:job::rank:1", "urn:memspan:rank:1",
                           "urn:memspan:job:train:rank:1:", "URN:Memspan:job:train:rank:1"}) {
    SCOPED_TRACE(name);
    const Issued member = trust_.member({.names = names_with(name)});
    const auto own = join(server->endpoint(), with(trust_.files(member)));
    EXPECT_EQ(own.code(), Code::kInvalidArgument) << own.status().to_string();
    EXPECT_TRUE(contains(own.status().message(), "JOB:rank:NUMBER")) << own.status().to_string();
    // One that does not look at its own certificate.
    TlsPeerClient peer(server->endpoint(), {.shows = member});
    ASSERT_TRUE(peer.shakes_hands());
    ASSERT_TRUE(peer.send(encode(StoreHello{.member = "a stranger"})));
    StoreFrameReader reader(kMaxFrameBytes);
    reader.feed(peer.receive_all());
    const auto body = reader.next();
    ASSERT_TRUE(body);
    const auto welcome = decode_welcome(*body);
    ASSERT_TRUE(welcome.is_ok());
    EXPECT_EQ(welcome->code, Code::kAuth);
    EXPECT_TRUE(contains(welcome->message, "JOB:rank:NUMBER")) << welcome->message;
  }
}

TEST_F(TlsTest, ACertificateOfTwoMembersIsRefused) {
  const Issued two = trust_.member(
      {.names = {"URI:urn:memspan:job:train:rank:1", "URI:urn:memspan:job:train:rank:2"}});
  auto server = store(trust_.files());
  const auto client = join(server->endpoint(), with(trust_.files(two)));
  EXPECT_EQ(client.code(), Code::kInvalidArgument);
  EXPECT_TRUE(contains(client.status().message(), "two members")) << client.status().to_string();
}

// ---- revocation lists

TEST_F(TlsTest, AListThatRevokesNothingLetsEverybodyIn) {
  StoreCertificates files = trust_.files();
  files.revocations = {list_file()};
  auto server = store(files);
  expect_served(*server, with(files));
}

TEST_F(TlsTest, ARevokedMemberIsRefused) {
  const Issued bad = trust_.member();
  StoreCertificates files = trust_.files();
  files.revocations = {list_file({.revoked = {bad}})};
  auto server = store(files);
  expect_refused(server->endpoint(), with(trust_.files(bad)), Code::kAuth, "revoked");
  expect_served(*server, with(files));
}

TEST_F(TlsTest, ARevokedStoreIsRefused) {
  const Issued bad = trust_.member();
  StoreCertificates files = trust_.files();
  files.revocations = {list_file({.revoked = {bad}})};
  auto server = store(trust_.files(bad));
  expect_refused(server->endpoint(), with(files), Code::kAuth, "certificate revoked");
}

TEST_F(TlsTest, AMemberBelowARevokedAuthorityIsRefused) {
  const Issued between = issue(authority_wish("between"), &trust_.root());
  StoreCertificates files = trust_.files();
  files.revocations = {list_file({.revoked = {between}}),
                       trust_.folder().write(revocation_list(between))};
  auto server = store(files);
  expect_refused(server->endpoint(), with(trust_.files(issue({}, &between), {between})),
                 Code::kAuth, "revoked");
  expect_served(*server, with(files));
}

// Nobody can tell whether the authority between has revoked it.
TEST_F(TlsTest, EveryAuthorityOfAChainNeedsItsList) {
  const Issued between = issue(authority_wish("between"), &trust_.root());
  const LogLines log;
  StoreCertificates files = trust_.files();
  files.revocations = {list_file()};
  auto server = store(files);
  expect_refused(server->endpoint(), with(trust_.files(issue({}, &between), {between})),
                 Code::kAuth, "");
  EXPECT_TRUE(log.waits_for("unable to get certificate CRL")) << log.all();
}

TEST_F(TlsTest, NobodyStartsWithARevokedCertificate) {
  const Issued bad = trust_.member();
  StoreCertificates files = trust_.files(bad);
  files.revocations = {list_file({.revoked = {bad}})};
  expect_no_start(files, "certificate revoked");
  expect_refused(kNowhere, with(files), Code::kInvalidArgument, "certificate revoked");
}

TEST_F(TlsTest, NobodyStartsWithAListThatSaysNothing) {
  struct Case {
    std::string file;
    const char* reason;
  };
  Trust other("another");
  TestFolder& folder = trust_.folder();
  const std::string missing = folder.path() + "/missing";
  const Case cases[] = {
      {missing, "does not exist"},
      {folder.write("garbage"), "has no list in PEM form"},
      {folder.write(" "), "has no list in PEM form"},
      {folder.write(""), "is empty"},
      {folder.path(), "is not a regular file"},
      {folder.write(to_pem(trust_.root())), "has no list in PEM form"},
      {list_file({.begins_s = -7200, .ends_s = -3600}), "is out of date"},
      {list_file({.begins_s = 3600}), "is not yet valid"},
      {folder.write(revocation_list(other.root())), "unable to get certificate CRL"},
      {folder.write(revocation_list(Trust().root())), "unable to get certificate CRL"},
  };
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.reason);
    StoreCertificates files = trust_.files();
    files.revocations = {bad.file};
    expect_no_start(files, bad.reason);
    expect_refused(kNowhere, with(files), Code::kInvalidArgument, bad.reason);
  }
}

// It was good when the store began.
TEST_F(TlsTest, AListThatEndsWhileTheStoreRunsLetsNobodyElseIn) {
  StoreCertificates files = trust_.files();
  files.revocations = {list_file({.ends_s = 2})};
  auto server = store(files);
  auto early = join(server->endpoint(), with(trust_.files()));
  Status status;
  for (const Deadline deadline = soon(); status.is_ok() && !deadline.has_passed();)
    status = join(server->endpoint(), with(trust_.files())).status();
  EXPECT_EQ(status.code(), Code::kAuth) << status.to_string();
  if (early.is_ok()) {
    EXPECT_TRUE((*early)->set("k", "v", soon()).is_ok());
  }
}

// ---- while they are connected

TEST_F(TlsTest, AReloadedListClosesWhomItRevokesAndNobodyElse) {
  const Issued good = trust_.member();
  const Issued bad = trust_.member();
  StoreCertificates files = trust_.files();
  files.revocations = {list_file()};
  auto server = store(files);
  auto anna = join(server->endpoint(), with(trust_.files(good)));
  auto ben = join(server->endpoint(), with(trust_.files(bad)));
  ASSERT_TRUE(anna.is_ok() && ben.is_ok());
  EXPECT_TRUE((*ben)->set("of ben", "", soon(), KeyLife::kLease).is_ok());
  files.revocations = {list_file({.revoked = {bad}})};
  EXPECT_TRUE(server->reload(with(files)).is_ok());
  EXPECT_EQ((*ben)->get("never", soon()).code(), Code::kStoreLost);
  EXPECT_TRUE((*anna)->set("k", "v", soon()).is_ok());
  EXPECT_EQ((*anna)->get_now("of ben", soon()).code(), Code::kNotFound);
  expect_refused(server->endpoint(), with(trust_.files(bad)), Code::kAuth, "revoked");
  expect_served(*server, with(trust_.files(good)));
}

// Whoever had only begun to shake hands must not slip in by what was trusted before.
TEST_F(TlsTest, AReloadedListIsKnownToThoseWhoAreNotAuthenticated) {
  const Issued bad = trust_.member();
  StoreCertificates files = trust_.files();
  files.revocations = {list_file()};
  auto server = store(files);
  TlsPeerClient peer(server->endpoint(), {.shows = bad});
  ASSERT_TRUE(peer.shakes_hands());
  files.revocations = {list_file({.revoked = {bad}})};
  EXPECT_TRUE(server->reload(with(files)).is_ok());
  expect_refused(server->endpoint(), with(trust_.files(bad)), Code::kAuth, "revoked");
  peer.send(encode(StoreHello{.member = "a late one"}));
  const std::string said = peer.receive_all();
  if (said.empty()) return;
  auto welcome = decode_welcome(std::string_view(said).substr(4));
  ASSERT_TRUE(welcome.is_ok()) << said.size();
  EXPECT_EQ(welcome->code, Code::kAuth);
}

TEST_F(TlsTest, AReloadThatFailsChangesNothing) {
  const StoreCertificates files = trust_.files();
  auto server = store(files);
  auto client = join(server->endpoint(), with(files));
  ASSERT_TRUE(client.is_ok()) << client.status().to_string();
  StoreCertificates broken = files;
  broken.certificate = trust_.folder().write("garbage");
  EXPECT_EQ(server->reload(with(broken)).code(), Code::kInvalidArgument);
  EXPECT_EQ(server->reload(plain()).code(), Code::kInvalidArgument);
  EXPECT_TRUE((*client)->set("k", "v", soon()).is_ok());
  expect_served(*server, with(files));
}

TEST_F(TlsTest, AReloadedCertificateIsShownToThoseWhoComeLater) {
  Trust other("another");
  StoreCertificates files = trust_.files();
  StoreCertificates theirs = other.files();
  files.authorities.push_back(theirs.authorities[0]);
  auto server = store(files);
  expect_refused(server->endpoint(), with(theirs), Code::kAuth, "self-signed");
  files.certificate = theirs.certificate;
  files.key = theirs.key;
  EXPECT_TRUE(server->reload(with(files)).is_ok());
  expect_served(*server, with(theirs));
}

TEST_F(TlsTest, ACertificateThatEndsWhileItsMemberIsConnectedDoesNotEndTheConnection) {
  const StoreCertificates brief = trust_.files(trust_.member({.ends_s = 2}));
  auto server = store(trust_.files());
  auto client = join(server->endpoint(), with(brief));
  ASSERT_TRUE(client.is_ok()) << client.status().to_string();
  Status status;
  for (const Deadline deadline = soon(); status.is_ok() && !deadline.has_passed();)
    status = join(server->endpoint(), with(brief)).status();
  EXPECT_TRUE(contains(status.message(), "expired")) << status.to_string();
  EXPECT_TRUE((*client)->set("k", "v", soon()).is_ok());
}

TEST_F(TlsTest, WarnsOfACertificateThatEndsSoon) {
  const LogLines log;
  auto server = store(trust_.files(trust_.member({.ends_s = 3L * 24 * 3600 + 3600})));
  EXPECT_TRUE(log.waits_for("ends in 3 days")) << log.all();
}

TEST_F(TlsTest, AMemberThatOnlyAsksForNewKeysIsClosed) {
  const LogLines log;
  auto server = store(trust_.files());
  TlsPeerClient peer(server->endpoint(), {.shows = trust_.member()});
  ASSERT_TRUE(peer.shakes_hands());
  ASSERT_TRUE(peer.send(encode(StoreHello{.member = "a flood"})));
  bool is_open = true;
  for (int i = 0; i < 100000 && is_open; ++i) is_open = peer.update_keys();
  EXPECT_FALSE(is_open);
  expect_served(*server, with(trust_.files()));
}

}  // namespace
}  // namespace memspan
