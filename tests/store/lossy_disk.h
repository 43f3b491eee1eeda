// A disk that loses power: of each name, each block of 4 KiB and each file's size it knows all that
// they have been since they were synced, and any of these may be what is left of it. More is lost
// than most file systems would lose: a renamed file may stand under both names or under none, and
// syncing a file makes none of its names sure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn::store::toy {

class LossyDisk {
 public:
  static constexpr int kRoot = 0, kNone = -1;

  LossyDisk() { add(); }

  // A file or a folder, which has no name yet. Numbers ascend from 1.
  int add() {
    nodes_.emplace_back();
    return int(nodes_.size()) - 1;
  }
  void name(int folder, const std::string& name, int node) {
    const auto found = nodes_[size_t(folder)].names.try_emplace(name, Was<int>{kNone});
    found.first->second.push_back(node);
  }
  void resize(int file, size_t bytes) { nodes_[size_t(file)].size.push_back(bytes); }
  void write(int file, size_t offset, std::string_view bytes) {
    Node& node = nodes_[size_t(file)];
    while (!bytes.empty()) {
      const size_t within = offset % kBlockBytes;
      const size_t count = std::min(bytes.size(), kBlockBytes - within);
      const std::string zeros(kBlockBytes, '\0');
      Was<std::string>& was =
          node.blocks.try_emplace(offset / kBlockBytes, Was<std::string>{zeros}).first->second;
      was.push_back(std::string(was.back()).replace(within, count, bytes.substr(0, count)));
      bytes.remove_prefix(count);
      offset += count;
    }
    if (offset > node.size.back()) node.size.push_back(offset);
  }
  // What a file has, or which names a folder has, is sure from now on.
  void sync(int number) {
    Node& node = nodes_[size_t(number)];
    const auto settle = [](auto& was) { was.erase(was.begin(), was.end() - 1); };
    settle(node.size);
    for (auto& [index, was] : node.blocks) settle(was);
    for (auto& [name, was] : node.names) settle(was);
  }

  // Of each thing that is not sure, in a fixed order, of how many it may be one: the first is what
  // was synced, the last what was done last. `is_gone`: a name that nobody misses, whichever it is.
  struct Question {
    size_t count;
    bool is_gone;
  };
  std::vector<Question> questions() const {
    std::vector<Question> list;
    const auto ask = [&](size_t count, bool is_gone) {
      if (count > 1) list.push_back({count, is_gone});
    };
    for (const Node& node : nodes_) {
      ask(node.size.size(), false);
      for (const auto& [index, was] : node.blocks) ask(was.size(), false);
      for (const auto& [name, was] : node.names) {
        ask(was.size(), was.front() == kNone && was.back() == kNone);
      }
    }
    return list;
  }

  // Of each path what is in the file; nothing where it is a folder. One answer for each question.
  using Tree = std::map<std::string, std::optional<std::string>>;
  Tree left(std::span<const size_t> answers) const {
    std::vector<LeftNode> nodes;
    const auto pick = [&](const auto& was) {
      if (was.size() == 1) return was.front();
      const size_t answer = answers.front();
      answers = answers.subspan(1);
      return was[answer];
    };
    for (const Node& node : nodes_) {
      LeftNode& chosen = nodes.emplace_back();
      const size_t size = pick(node.size);
      for (const auto& [index, was] : node.blocks) {
        const size_t offset = index * kBlockBytes;
        const std::string block = pick(was);
        if (offset >= size) continue;
        chosen.bytes.resize(offset);
        chosen.bytes += block;
      }
      chosen.bytes.resize(size);
      for (const auto& [name, was] : node.names) chosen.names[name] = pick(was);
    }
    Tree tree;
    walk(nodes, kRoot, "", tree);
    return tree;
  }

 private:
  static constexpr size_t kBlockBytes = 4096;
  // The first is sure.
  template <typename T>
  using Was = std::vector<T>;
  struct Node {
    Was<size_t> size{0};
    std::map<size_t, Was<std::string>> blocks;  // Of a file.
    std::map<std::string, Was<int>> names;      // Of a folder.
  };
  struct LeftNode {
    std::string bytes;
    std::map<std::string, int> names;
  };

  // Folders are those that a name ends with a slash for.
  static void walk(std::span<const LeftNode> nodes, int number, const std::string& path,
                   Tree& tree) {
    for (const auto& [name, node] : nodes[size_t(number)].names) {
      if (node == kNone) continue;
      const bool is_folder = name.back() == '/';
      tree[path + name] = is_folder ? std::nullopt : std::optional(nodes[size_t(node)].bytes);
      if (is_folder) walk(nodes, node, path + name, tree);
    }
  }

  std::vector<Node> nodes_;
};

}  // namespace cairn::store::toy
