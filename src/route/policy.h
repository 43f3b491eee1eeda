// Which node answers a request soonest: `(bytes of its prompt that were not read there) x pace +
// queue`, the least of it over those who have read most of it, two others by chance, and the one
// that a hash of its conversation points to, unless it has more than its share. What it knows of
// nodes it is told: what was sent and what came back. Knows no sockets. Thread rule: one thread.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/random_stream.h"
#include "route/prefix_table.h"
#include "route/prompt_keys.h"

namespace cairn::route {

enum class Why : uint8_t {
  prefix,  // It has read some of it, and answers soonest.
  hash,    // The conversation's hash points there.
  load,    // Others would answer later.
  owner,   // It alone has what is asked for.
};
std::string_view name_of(Why why);

struct Decision {
  int32_t node = -1;  // -1: there is none.
  Why why = Why::hash;
  size_t known_bytes = 0;  // Of the prompt, that it has read, as far as is known.
  size_t prompt_bytes = 0;
  double cost_ms = 0;   // All.
  double queue_ms = 0;  // The part of it that is waiting.
};

// What a reply says of how it was made.
struct ReplyFigures {
  int64_t reused_tokens = 0, computed_tokens = 0;  // Of the prompt.
  std::optional<double> prompt_ms = std::nullopt;  // In which it was read …
  std::optional<double> answer_ms = std::nullopt;  // … and the answer made.
};

struct PolicyOptions {
  // Of the table of what was read: so many at least, so many for each node, and no more than fit
  // into these bytes. A node that keeps two million tokens has that many KiB of their text.
  size_t entry_count = size_t(1) << 20;
  size_t entries_of_node = size_t(1) << 13;
  uint64_t table_bytes_max = uint64_t(256) << 20;
  uint64_t seed = 1;
};

class Policy {
 public:
  explicit Policy(PolicyOptions options = {});

  // Of all that were ever added.
  static constexpr int32_t kNodesMax = PrefixTable::kNobody;

  // Its number, which it keeps. One of the same name is the same node, which is back.
  // REQUIRES: has_room_for(name).
  int32_t add_node(const std::string& name);
  bool has_room_for(const std::string& name) const;
  // What has been sent to it goes on; nothing new is.
  void drain_node(int32_t node);
  void set_up(int32_t node, bool is_up);
  bool is_chosen_from(int32_t node) const;
  // The node is asked how many requests it has …
  void asked(int32_t node);
  // … and has answered: so many, those of this router among them.
  void told(int32_t node, int32_t waiting, int32_t running);

  // Times are milliseconds of one clock. `avoid`: nodes that did not take this request.
  Decision choose(const PromptKeys& keys, double now, std::span<const int32_t> avoid = {});
  // The request is on its way; what it is known by from now on.
  uint64_t sent(const PromptKeys& keys, const Decision& decision, double now);
  // The first byte of its reply has come: its prompt was read.
  void begun(uint64_t request, double now);
  // `figures`: what the reply told; nothing: it told nothing. `was_read`: its prompt is there now.
  void ended(uint64_t request, const std::optional<ReplyFigures>& figures, bool was_read);
  // What was made under this name lies there.
  void own(const std::string& name, int32_t node);

  struct NodeView {
    std::string_view name;
    bool is_up, is_draining;
    int32_t outstanding;
    double queue_ms, ms_per_kib, trust;
  };
  // Looks at all nodes.
  NodeView view(int32_t node, double now) const;
  // What costs nothing to know of it.
  std::string_view name(int32_t node) const { return nodes_[size_t(node)].name; }
  bool is_up(int32_t node) const { return nodes_[size_t(node)].is_up; }
  bool is_draining(int32_t node) const { return nodes_[size_t(node)].is_draining; }
  int32_t outstanding(int32_t node) const { return nodes_[size_t(node)].own_count(); }
  int32_t node_count() const { return int32_t(nodes_.size()); }
  const PrefixTable& table() const { return table_; }
  int32_t outstanding_count() const { return int32_t(requests_.size()); }

 private:
  // A mean in which what is old counts less and less.
  struct Mean {
    double sum = 0, weight = 0;
    void add(double value, double count) {
      sum = sum * kKept + value;
      weight = weight * kKept + count;
    }
    static constexpr double kKept = 0.95;  // About the last twenty.
    bool is_known() const { return weight > 0; }
    double value() const { return sum / weight; }
  };
  struct Node {
    std::string name;
    uint64_t name_hash = 0;
    bool is_up = true, is_draining = false;
    Mean ms_per_byte, prompt_ms, answer_ms;
    Mean trust;                // What was found of what was thought to be known.
    double unread_ms = 0;      // Prompts that were sent and not read.
    double reading_since = 0;  // When it began to read the one that it reads.
    double sent_at = 0;        // When it was sent a request for the last time.
    int32_t unread_count = 0, answering_count = 0;
    int32_t own_since_asked = 0;  // The most that own_count() was since asked().
    int32_t foreign_waiting = 0, foreign_running = 0;

    int32_t own_count() const { return unread_count + answering_count; }
  };
  struct Request {
    int32_t node;
    std::vector<PromptKeys::Prefix> prefixes;
    size_t known_bytes;
    double read_ms;  // Estimated.
    bool is_begun = false;
  };
  double queue_ms(const Node& node, double now) const;
  double ms_per_byte(const Node& node, double now) const;
  double prompt_ms(const Node& node) const;
  double answering_ms(const Node& node) const;
  double mean_of(Mean Node::*figure, double otherwise) const;
  int32_t load_of(const Node& node) const;
  // A node that may be chosen, and its weight for a key.
  struct Place {
    uint64_t weight;
    int32_t node;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places(uint64_t key, std::span<const int32_t> avoid) const;
  int32_t hashed(std::span<const Place> places) const;
  void give_table_room();
  void leave_reading(Node& node, Request& request, double now);

  PolicyOptions options_;
  PrefixTable table_;
  RandomStream chance_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, int32_t> numbers_;  // Of the nodes, by their names.
  std::unordered_map<uint64_t, Request> requests_;
  uint64_t next_request_ = 1;
  struct Owner {
    int32_t node;
    uint64_t used;
  };
  std::map<std::string, Owner, std::less<>> owners_;
  std::map<uint64_t, std::string> owner_uses_;  // By when, so that the oldest is found.
  uint64_t owner_clock_ = 0;
};

}  // namespace cairn::route
