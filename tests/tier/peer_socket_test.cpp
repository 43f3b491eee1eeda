// What comes is what was sent, with and without TLS, through a socket that takes little at a time;
// and what is no TLS ends it.
#include "tier/peers/peer_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "tests/scratch_folder.h"
#include "tests/serve/certificates.h"

namespace cairn::tier::peer_socket_test {
namespace {

struct Ends {
  std::unique_ptr<PeerSocket> own;
  Descriptor other;  // Waits where it has to.
};

Ends make_ends(const tls::ServerIdentity* identity) {
  int sockets[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const int little = 8192;
  (void)::setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
  EXPECT_EQ(::fcntl(sockets[0], F_SETFL, O_NONBLOCK), 0);
  return {std::make_unique<PeerSocket>(Descriptor(sockets[0]), identity), Descriptor(sockets[1])};
}

short wait(const PeerSocket& socket, bool receives, bool sends) {
  pollfd wanted{.fd = socket.number(), .events = socket.events(receives, sends), .revents = 0};
  EXPECT_EQ(::poll(&wanted, 1, 10000), 1);
  return wanted.revents;
}

std::vector<std::byte> pattern(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t index = 0; index < count; ++index) bytes[index] = std::byte(index * 7 / 3 % 251);
  return bytes;
}

// All of it is offered each time, as PeerServer does. False: it has ended.
bool send_all(PeerSocket& socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = socket.send(bytes);
    if (!count) return false;
    bytes = bytes.subspan(*count);
    if (*count == 0) {
      EXPECT_TRUE(socket.may_send(wait(socket, false, true)));
    }
  }
  return true;
}

std::vector<std::byte> receive_all(PeerSocket& socket, size_t count) {
  std::vector<std::byte> all;
  std::array<std::byte, 16384> bytes;
  while (all.size() < count) {
    const auto come = socket.receive(bytes);
    if (!come) break;
    all.insert(all.end(), bytes.begin(), bytes.begin() + std::ptrdiff_t(*come));
    if (*come == 0) {
      EXPECT_TRUE(socket.may_receive(wait(socket, true, false)));
    }
  }
  return all;
}

class PeerSocketTest : public ::testing::Test {
 protected:
  test::ScratchFolder folder_;
  serve::Pair pair_ = serve::make_pair_in(folder_.path(), "own");
  std::shared_ptr<const tls::ServerIdentity> identity_ =
      tls::ServerIdentity::read(pair_.certificate, pair_.key).value();
};

TEST_F(PeerSocketTest, WhatComesIsWhatWasSent) {
  const std::vector<std::byte> bytes = pattern(1'000'000);
  Ends ends = make_ends(nullptr);
  EXPECT_TRUE(ends.own->has_begun());
  std::vector<std::byte> found(bytes.size());
  std::thread other([&] {
    ASSERT_EQ(::send(ends.other.number(), bytes.data(), 50'000, 0), 50'000);
    ASSERT_EQ(::recv(ends.other.number(), found.data(), found.size(), MSG_WAITALL),
              ssize_t(found.size()));
  });
  EXPECT_EQ(receive_all(*ends.own, 50'000), pattern(50'000));
  EXPECT_TRUE(send_all(*ends.own, bytes));
  other.join();
  EXPECT_EQ(found, bytes);
  ends.other = Descriptor();
  EXPECT_TRUE(receive_all(*ends.own, 1).empty());
}

// Many times as much as the socket takes, so that records of TLS are sent in parts.
TEST_F(PeerSocketTest, UnderTlsToo) {
  const std::vector<std::byte> bytes = pattern(1'000'000);
  Ends ends = make_ends(identity_.get());
  EXPECT_FALSE(ends.own->has_begun());
  std::vector<std::byte> found(bytes.size());
  std::thread other([&] {
    SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
    SSL* const session = SSL_new(context);
    SSL_set_fd(session, ends.other.number());
    ASSERT_EQ(SSL_connect(session), 1);
    ASSERT_EQ(SSL_write(session, bytes.data(), 50'000), 50'000);
    for (size_t come = 0; come < found.size();) {
      const int count = SSL_read(session, found.data() + come, int(found.size() - come));
      ASSERT_GT(count, 0);
      come += size_t(count);
    }
    SSL_free(session);
    SSL_CTX_free(context);
  });
  EXPECT_EQ(receive_all(*ends.own, 50'000), pattern(50'000));
  EXPECT_TRUE(ends.own->has_begun());
  EXPECT_TRUE(send_all(*ends.own, bytes));
  other.join();
  EXPECT_EQ(found, bytes);
}

TEST_F(PeerSocketTest, WhatIsNoTlsEndsIt) {
  for (const std::string_view said : {"PEER 0000\r\n", "\x16\x03\x01", ""}) {
    Ends ends = make_ends(identity_.get());
    ASSERT_EQ(::send(ends.other.number(), said.data(), said.size(), 0), ssize_t(said.size()));
    ASSERT_EQ(::shutdown(ends.other.number(), SHUT_WR), 0);
    EXPECT_TRUE(receive_all(*ends.own, 1).empty());
    EXPECT_FALSE(ends.own->has_begun());
    ends.own->close();
    EXPECT_FALSE(ends.own->is_open());
  }
}

}  // namespace
}  // namespace cairn::tier::peer_socket_test
