// Names of machines become addresses. The system's question cannot be ended, so it is asked on
// threads of their own: whoever waits stops waiting when they like, and a name that nobody answers
// holds up no other one. Knows no nodes. Thread-safe.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cairn::route {

class NameLookup {
 public:
  // Names that are asked for at a time; others wait for one of these to be answered.
  static constexpr int32_t kThreadsMax = 64;

  struct Address {
    sockaddr_storage bytes;
    socklen_t size;
  };
  using Addresses = std::vector<Address>;  // Empty: there are none.
  // May take as long as it likes.
  using Ask = std::function<Addresses(const std::string& host, const std::string& port)>;
  // Called once, on any thread; takes microseconds, and does not ask anything.
  using Take = std::function<void(const Addresses& addresses)>;

  // `ask`: in place of the system, where it is not empty.
  explicit NameLookup(Ask ask = {});
  // Waits for nothing; from then on nobody is told anything.
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  // The addresses of a name, for connections: `take` is called unless what is returned is gone
  // before. Who asks for a name that is being asked for waits for the same answer.
  [[nodiscard]] std::shared_ptr<const void> find(const std::string& host, const std::string& port,
                                                 Take take);

 private:
  struct State;
  // Of threads that may never end too.
  std::shared_ptr<State> state_;
};

}  // namespace cairn::route
