// Messages in their order, held by reference: a copy of the list, a branch and a snapshot of it
// refer to the same messages. A message that is in a list never changes. Thread-safe: values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "session/conversation.h"

namespace cairn::session {

class MessageList {
 public:
  using Ref = std::shared_ptr<const Message>;

  class Iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = Message;
    using difference_type = std::ptrdiff_t;
    using pointer = const Message*;
    using reference = const Message&;

    explicit Iterator(const Ref* at = nullptr) : at_(at) {}
    const Message& operator*() const { return **at_; }
    const Message* operator->() const { return at_->get(); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    Iterator& operator--() {
      --at_;
      return *this;
    }
    Iterator operator--(int) { return Iterator(at_--); }
    bool operator==(const Iterator&) const = default;

   private:
    const Ref* at_;
  };

  MessageList() = default;
  explicit MessageList(std::vector<Message> messages) {
    for (Message& message : messages) push_back(std::move(message));
  }
  explicit MessageList(std::vector<Ref> refs) : refs_(std::move(refs)) {}

  bool empty() const { return refs_.empty(); }
  size_t size() const { return refs_.size(); }
  const Message& operator[](size_t index) const { return *refs_[index]; }
  const Message& back() const { return *refs_.back(); }
  Iterator begin() const { return Iterator(refs_.data()); }
  Iterator end() const { return Iterator(refs_.data() + refs_.size()); }
  const std::vector<Ref>& refs() const { return refs_; }
  // The first `count` of them, for who needs them side by side.
  std::vector<Message> copy(size_t count = SIZE_MAX) const {
    std::vector<Message> messages;
    count = std::min(count, size());
    messages.reserve(count);
    for (size_t index = 0; index < count; ++index) messages.push_back(*refs_[index]);
    return messages;
  }

  void push_back(Message message) {
    refs_.push_back(std::make_shared<const Message>(std::move(message)));
  }
  void pop_back() { refs_.pop_back(); }
  // REQUIRES: there are so many.
  void shorten(size_t count) { refs_.resize(count); }

 private:
  std::vector<Ref> refs_;
};

}  // namespace cairn::session
