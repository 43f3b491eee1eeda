// A queue of names, and threads that come when there are some and go when there are none.
#include "route/name_lookup.h"

#include <netdb.h>

#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/threads/blocked_signals.h"

namespace cairn::route {

namespace {

using Name = std::pair<std::string, std::string>;  // A host and a port.
using Waiting = std::vector<std::weak_ptr<NameLookup::Take>>;

NameLookup::Addresses ask_system(const std::string& host, const std::string& port) {
  addrinfo wanted = {};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  NameLookup::Addresses addresses;
  if (::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    NameLookup::Address address = {};
    if (one->ai_addrlen > sizeof(address.bytes)) continue;
    std::memcpy(&address.bytes, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
    addresses.push_back(address);
  }
  ::freeaddrinfo(found);
  return addresses;
}

void drop_gone(Waiting& waiting) {
  std::erase_if(waiting, [](const auto& one) { return one.expired(); });
}

}  // namespace

struct NameLookup::State {
  std::mutex mutex;
  Ask ask;
  bool is_over = false;
  int32_t thread_count = 0;
  std::deque<Name> names;           // That no thread has taken yet.
  std::map<Name, Waiting> waiting;  // Of each name that is not answered.

  bool has_thread(const std::shared_ptr<State>& self);
  void answer_all();
};

// Whether there is one that takes what is in the queue.
bool NameLookup::State::has_thread(const std::shared_ptr<State>& self) {
  if (thread_count == kThreadsMax) return true;
  try {
    const BlockedSignals blocked;
    std::thread([self] { self->answer_all(); }).detach();
    ++thread_count;
  } catch (const std::exception&) {
    // The system has no room for another one.
  }
  return thread_count > 0;
}

void NameLookup::State::answer_all() {
  std::unique_lock lock(mutex);
  while (!names.empty()) {
    const Name name = std::move(names.front());
    names.pop_front();
    drop_gone(waiting[name]);
    Addresses addresses;
    if (!waiting[name].empty()) {
      lock.unlock();
      try {
        addresses = ask(name.first, name.second);
      } catch (const std::exception&) {
        addresses.clear();
      }
      lock.lock();
    }
    if (is_over) break;
    const Waiting told = std::move(waiting[name]);
    waiting.erase(name);
    for (const auto& one : told) {
      if (const std::shared_ptr<Take> take = one.lock()) (*take)(addresses);
    }
  }
  --thread_count;
}

NameLookup::NameLookup(Ask ask) : state_(std::make_shared<State>()) {
  state_->ask = ask ? std::move(ask) : ask_system;
}

NameLookup::~NameLookup() {
  const std::lock_guard lock(state_->mutex);
  state_->is_over = true;
  state_->names.clear();
  state_->waiting.clear();
}

std::shared_ptr<const void> NameLookup::find(const std::string& host, const std::string& port,
                                             Take take) {
  const auto own = std::make_shared<Take>(std::move(take));
  const Name name(host, port);
  const std::lock_guard lock(state_->mutex);
  const auto [place, is_new] = state_->waiting.try_emplace(name);
  drop_gone(place->second);
  place->second.push_back(own);
  if (!is_new) return own;
  state_->names.push_back(name);
  if (!state_->has_thread(state_)) {
    state_->names.pop_back();
    state_->waiting.erase(place);
    (*own)({});
  }
  return own;
}

}  // namespace cairn::route
