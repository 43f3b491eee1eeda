// Where a process lends its records to other machines: a port, under TLS where there is a
// certificate for it, a thread that waits for all of them, and limits: so many connections, so many
// that get records at a time, so many bytes a second. What is said is that of
// tier/peers/peer_session.h. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/machine/descriptor.h"
#include "base/result.h"
#include "tier/peers/peer_session.h"
#include "tier/peers/peer_socket.h"
#include "tier/peers/shelf.h"
#include "tier/secret.h"
#include "tier/tier_options.h"
#include "tls/server_identity.h"

namespace cairn::tier {

class PeerServer : private PeerSession::Records {
 public:
  static constexpr size_t kConnectionsMax = 256;
  static constexpr size_t kStrangersMax = 16;  // Of these, who have not proved yet who they are.
  // Connections that get records: of four machines, each of which asks on one and reads on another.
  static constexpr size_t kLentAtOnce = 8;
  static constexpr uint64_t kLentBytesMax = uint64_t(256) << 20;  // That wait to be taken.
  // A stranger has so long to prove it; a connection may be idle, or a reader take nothing, for …
  static constexpr std::chrono::seconds kProveWithin{2}, kIdle{120}, kTakeWithin{30};
  // What was not lent for so long may be lent at once: then one sequence comes as fast as the
  // network carries it, and the next one does not stand behind it.
  static constexpr std::chrono::seconds kSavedUp{2};
  // Who has had a record has its place for so long: others come between two sequences.
  static constexpr std::chrono::milliseconds kPlaceKept{500};

  // Listens. Errors: invalid_argument, io, those of ServerIdentity::read().
  static Result<std::shared_ptr<PeerServer>> listen(const TierOptions& options);
  ~PeerServer() override;

  uint64_t node() const { return node_; }  // A number of this process alone.
  // Where others find it.
  const std::string& address() const { return address_; }
  // Where it listens, which may be another address.
  const std::string& listens_at() const { return listens_at_; }

  // Reads the certificate again, for connections that come. Errors: as listen(); what was read
  // before stays in force then.
  Status read_again();
  // What is lent; each engine has a shelf of its own, which is taken away before it goes.
  void lend(Shelf* shelf);
  void take_away(Shelf* shelf);

  struct Counts {
    uint64_t strangers = 0;  // Who did not prove that they know the key, or said what nobody says.
    uint64_t busy = 0;       // Records that were refused, since others were lent to.
  };
  Counts counts() const { return {strangers_, busy_}; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    Client(Descriptor its_socket, const tls::ServerIdentity* identity, const Secret* secret,
           PeerServer* server)
        : socket(std::move(its_socket), identity), session(secret, server), since(Clock::now()) {}

    PeerSocket socket;
    PeerSession session;
    Clock::time_point since;         // When something came or went last.
    Clock::time_point lent_until{};  // It has its place among those that get records.
    bool is_ending = false;          // When its output is taken.
  };

  explicit PeerServer(const TierOptions& options, std::string key);
  Status open();
  void run();
  void wait();
  void accept_all();
  void serve(Client& client, short events);
  void hang_up(Client& client);
  void receive(Client& client);
  void send(Client& client);
  void end_late_ones();
  void refill();

  bool has(const Sha256Digest& name) override;
  Result<std::vector<std::byte>> read(const Sha256Digest& name) override;
  bool admits(PeerSession& session) override;

  PeerOptions options_;
  Secret secret_;
  uint64_t node_;
  std::string address_, listens_at_;
  Descriptor listener_, waker_;
  std::mutex mutex_;  // Of the shelves and the certificate.
  std::vector<Shelf*> shelves_;
  std::shared_ptr<const tls::ServerIdentity> identity_;  // Null: no TLS.
  std::atomic<uint64_t> strangers_{0}, busy_{0};
  std::atomic<bool> is_closing_{false};
  // The thread's own.
  std::list<Client> clients_;
  double allowance_ = 0;  // Bytes that may be sent now; less than none for a moment.
  Clock::time_point refilled_at_{}, accepts_at_{};
  std::thread thread_;
};

}  // namespace cairn::tier
