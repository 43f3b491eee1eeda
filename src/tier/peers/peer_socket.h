// Bytes from and to a machine that asks: a socket that never blocks, under TLS where this machine
// has a certificate for it. Knows nothing of what is said. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/machine/descriptor.h"
#include "tls/server_identity.h"

namespace cairn::tier {

class PeerSocket {
 public:
  // `identity`: null: no TLS.
  PeerSocket(Descriptor socket, const tls::ServerIdentity* identity);
  ~PeerSocket();
  PeerSocket(const PeerSocket&) = delete;
  PeerSocket& operator=(const PeerSocket&) = delete;

  bool is_open() const { return bool(socket_); }
  int number() const { return socket_.number(); }
  void close();
  // Under TLS: whether the handshakes are over.
  bool has_begun() const;

  // So many bytes were moved; zero: none can be now. None: the other side has ended it, or says
  // what is no TLS.
  std::optional<size_t> receive(std::span<std::byte> bytes);
  std::optional<size_t> send(std::span<const std::byte> bytes);

  // What poll() is to wait for, for either, and what its answer is good for. Under TLS either
  // direction may have to wait for the other.
  short events(bool receives, bool sends) const;
  bool may_receive(short events) const;
  bool may_send(short events) const;

 private:
  std::optional<size_t> moved(int code, short& waits_for);

  Descriptor socket_;
  ssl_st* session_ = nullptr;  // Null: no TLS.
  short receiving_, sending_;  // What each waits for.
};

}  // namespace cairn::tier
