// One lock around all of it: nothing in here takes longer than some microseconds.
#include "route/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/log.h"

namespace cairn::route {

std::string name_of(const client::ServerUrl& url) {
  if (url.host.empty()) return "unix:" + url.unix_path;
  const bool is_ipv6 = url.host.find(':') != url.host.npos;
  return is_ipv6 ? fmt::format("[{}]:{}", url.host, url.port)
                 : fmt::format("{}:{}", url.host, url.port);
}

namespace {

// A port that there is, and no controls, which could end a line of a reply or of a log.
bool is_usable(const client::ServerUrl& url) {
  constexpr int kPortMax = 65535;
  const int port = std::atoi(url.port.c_str());
  if (port < 1 || port > kPortMax) return false;
  return std::ranges::none_of(url.host + url.unix_path, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

// As a label's value (Prometheus, text format 0.0.4).
std::string label_of(std::string_view name) {
  std::string label;
  for (const char c : name) {
    if (c == '"' || c == '\\') label += '\\';
    label += c;
  }
  return label;
}

}  // namespace

Result<std::vector<ListedNode>> parse_nodes(std::string_view name, std::string_view text) {
  constexpr std::string_view kDrain = "drain ";
  std::vector<ListedNode> nodes;
  std::set<std::string> names;
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    while (!line.empty() && std::string_view(" \t\r").find(line.back()) != line.npos) {
      line.remove_suffix(1);
    }
    if (line.empty() || line.front() == '#') continue;
    ListedNode node{.is_draining = line.starts_with(kDrain)};
    if (node.is_draining) line.remove_prefix(kDrain.size());
    Result<client::ServerUrl> url = client::ServerUrl::parse(line);
    if (!url || !is_usable(*url)) {
      return fail(ErrorCode::invalid_argument,
                  "{}:{}: expected http://HOST:PORT, https://HOST:PORT or unix:FILE, found \"{}\"",
                  name, number, line);
    }
    node.url = std::move(url).value();
    if (!names.insert(name_of(node.url)).second) {
      return fail(ErrorCode::invalid_argument, "{}:{}: expected each node once, found {} twice",
                  name, number, name_of(node.url));
    }
    if (nodes.size() == kListedNodesMax) {
      return fail(ErrorCode::invalid_argument, "{}:{}: expected at most {} nodes, found more", name,
                  number, kListedNodesMax);
    }
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) {
    return fail(ErrorCode::invalid_argument, "{}: expected a node at least, found none", name);
  }
  return nodes;
}

double Fleet::now() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Fleet::set_nodes(const std::vector<ListedNode>& nodes) {
  const std::lock_guard lock(mutex_);
  for (int32_t node = 0; node < policy_.node_count(); ++node) policy_.drain_node(node);
  size_t left_out_count = 0;
  for (const ListedNode& listed : nodes) {
    const std::string name = name_of(listed.url);
    if (!policy_.has_room_for(name)) {
      ++left_out_count;
      continue;
    }
    const auto number = size_t(policy_.add_node(name));
    if (number == urls_.size()) {
      urls_.emplace_back();
      failures_.push_back(0);
    }
    urls_[number] = listed.url;
    if (listed.is_draining) policy_.drain_node(int32_t(number));
  }
  if (left_out_count > 0) {
    log::error("{} nodes are left out: the router has had {} and can have no more; start it anew",
               left_out_count, Policy::kNodesMax);
  }
}

std::vector<Fleet::Node> Fleet::nodes() const {
  const std::lock_guard lock(mutex_);
  std::vector<Node> nodes;
  for (int32_t node = 0; node < policy_.node_count(); ++node) {
    if (!policy_.is_draining(node)) nodes.push_back({node, urls_[size_t(node)]});
  }
  return nodes;
}

client::ServerUrl Fleet::url_of(int32_t node) const {
  const std::lock_guard lock(mutex_);
  return urls_[size_t(node)];
}

Decision Fleet::choose(const PromptKeys& keys, std::span<const int32_t> avoid) {
  const std::lock_guard lock(mutex_);
  const Decision decision = policy_.choose(keys, now(), avoid);
  retries_ += avoid.empty() ? 0 : 1;
  if (decision.node < 0) ++refused_;
  return decision;
}

uint64_t Fleet::sent(const PromptKeys& keys, const Decision& decision) {
  const std::lock_guard lock(mutex_);
  ++decisions_[{decision.node, std::string(name_of(decision.why))}];
  known_bytes_ += decision.known_bytes;
  prompt_bytes_ += decision.prompt_bytes;
  return policy_.sent(keys, decision, now());
}

void Fleet::begun(uint64_t request) {
  const std::lock_guard lock(mutex_);
  policy_.begun(request, now());
}

void Fleet::ended(uint64_t request, const std::optional<ReplyFigures>& figures, bool was_read) {
  const std::lock_guard lock(mutex_);
  policy_.ended(request, figures, was_read);
}

void Fleet::own(const std::string& name, int32_t node) {
  const std::lock_guard lock(mutex_);
  policy_.own(name, node);
}

void Fleet::failed(int32_t node) {
  const std::lock_guard lock(mutex_);
  failures_[size_t(node)] = kFailuresMax;
  if (policy_.is_up(node)) {
    log::warning("{}: does not answer; others get its requests", policy_.name(node));
  }
  policy_.set_up(node, false);
}

void Fleet::checked(int32_t node, bool is_up) {
  const std::lock_guard lock(mutex_);
  int32_t& failures = failures_[size_t(node)];
  failures = is_up ? 0 : std::min(failures + 1, kFailuresMax);
  if (is_up && !policy_.is_up(node)) {
    log::warning("{}: answers again", policy_.name(node));
    policy_.set_up(node, true);
  } else if (failures == kFailuresMax && policy_.is_up(node)) {
    log::warning("{}: does not answer; others get its requests", policy_.name(node));
    policy_.set_up(node, false);
  }
}

void Fleet::asked(int32_t node) {
  const std::lock_guard lock(mutex_);
  policy_.asked(node);
}

void Fleet::told(int32_t node, int32_t waiting, int32_t running) {
  const std::lock_guard lock(mutex_);
  policy_.told(node, waiting, running);
}

int32_t Fleet::own_count(int32_t node) const {
  const std::lock_guard lock(mutex_);
  return policy_.outstanding(node);
}

void Fleet::add_reply(int32_t node, int status) {
  const std::lock_guard lock(mutex_);
  ++replies_[{node, status}];
}

int32_t Fleet::up_count() const {
  const std::lock_guard lock(mutex_);
  int32_t count = 0;
  for (int32_t node = 0; node < policy_.node_count(); ++node) {
    count += policy_.is_chosen_from(node) ? 1 : 0;
  }
  return count;
}

int32_t Fleet::node_count() const {
  return int32_t(nodes().size());
}

std::string Fleet::metrics() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  const auto help = [&](std::string_view name, std::string_view type, std::string_view doc) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, doc, name, type);
  };
  std::vector<Policy::NodeView> views;
  for (int32_t node = 0; node < policy_.node_count(); ++node) {
    views.push_back(policy_.view(node, now()));
  }
  const auto each = [&](std::string_view name, std::string_view doc, auto value) {
    help(name, "gauge", doc);
    for (const Policy::NodeView& view : views) {
      out += fmt::format("{}{{node=\"{}\"}} {}\n", name, label_of(view.name), value(view));
    }
  };
  using View = const Policy::NodeView&;
  each("cairn_route_node_up", "1 where it answers.", [](View view) { return int(view.is_up); });
  each("cairn_route_node_draining", "1 where nothing new is sent to it.",
       [](View view) { return int(view.is_draining); });
  each("cairn_route_outstanding", "Requests that were sent and not answered.",
       [](View view) { return view.outstanding; });
  each("cairn_route_queue_milliseconds", "For which a prompt would wait, by estimate.",
       [](View view) { return view.queue_ms; });
  each("cairn_route_milliseconds_per_kibibyte", "That reading takes.",
       [](View view) { return view.ms_per_kib; });
  each("cairn_route_trust", "What was found of what was thought to be read.",
       [](View view) { return view.trust; });
  help("cairn_route_decisions_total", "counter", "Requests that were sent, by what decided.");
  for (const auto& [key, count] : decisions_) {
    out += fmt::format("cairn_route_decisions_total{{node=\"{}\",why=\"{}\"}} {}\n",
                       label_of(policy_.name(key.first)), key.second, count);
  }
  help("cairn_route_replies_total", "counter", "Replies of nodes; status 0: it broke off.");
  for (const auto& [key, count] : replies_) {
    out += fmt::format("cairn_route_replies_total{{node=\"{}\",status=\"{}\"}} {}\n",
                       label_of(policy_.name(key.first)), key.second, count);
  }
  const auto counter = [&](std::string_view name, std::string_view doc, uint64_t value) {
    help(name, "counter", doc);
    out += fmt::format("{} {}\n", name, value);
  };
  const PrefixTable& table = policy_.table();
  help("cairn_route_table_entries", "gauge", "Beginnings of prompts for which the table has room.");
  out += fmt::format("cairn_route_table_entries {}\n", table.entry_count());
  counter("cairn_route_table_evicted_total", "Those that had to go for newer ones.",
          table.evicted_count());
  counter("cairn_route_prompt_bytes_total", "Of all prompts.", prompt_bytes_);
  counter("cairn_route_known_bytes_total", "Of them, what the chosen node was known to have read.",
          known_bytes_);
  counter("cairn_route_retries_total", "Choices anew, since a node did not take the request.",
          retries_);
  counter("cairn_route_refused_total", "Requests for which there was no node.", refused_);
  return out;
}

}  // namespace cairn::route
