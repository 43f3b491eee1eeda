// A client over a bare socket: sends bytes as they are told, and reads replies. Waits at most a
// minute for anything.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace cairn::serve {

struct BareReply {
  int status = 0;  // 0: none came.
  std::string head;
  std::string body;  // Without the framing of chunks.
  bool is_chunked = false;
  bool is_whole = false;  // To its end, as its head says.

  bool has(std::string_view text) const { return head.find(text) != std::string::npos; }
};

class BareClient {
 public:
  explicit BareClient(uint16_t port, int receive_buffer_bytes = 0) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer_bytes > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof(int));
    }
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  explicit BareClient(const std::string& path) {
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    connect(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  BareClient(BareClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), input_(std::move(other.input_)) {}
  virtual ~BareClient() { close(); }

  bool is_connected() const { return is_connected_; }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void end_sending() { ::shutdown(socket_, SHUT_WR); }

  // Whether all of it was taken.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = send_some(bytes);
      if (count <= 0) return false;
      bytes.remove_prefix(size_t(count));
    }
    return true;
  }
  void send_in_pieces(std::string_view bytes, size_t piece_bytes) {
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size()))) {
      if (!send(bytes.substr(0, piece_bytes))) return;
    }
  }

  // Reads until `text` has come, which is not taken; false where the connection ends before.
  bool wait_for(std::string_view text) {
    while (input_.find(text) == std::string::npos) {
      if (!receive()) return false;
    }
    return true;
  }
  // One more byte, and no others.
  void take_byte() {
    char byte = 0;
    if (receive_some(&byte, 1) == 1) input_ += byte;
  }
  // Whether it has come by now.
  bool has_received(std::string_view text) const { return input_.find(text) != std::string::npos; }
  std::string take_all() {
    while (receive()) continue;
    return std::exchange(input_, {});
  }
  // Nothing comes any more.
  bool is_closed() { return input_.empty() && !receive(); }

  BareReply read_reply(bool has_body = true) {
    BareReply reply;
    if (!wait_for("\r\n\r\n")) return reply;
    const size_t end = input_.find("\r\n\r\n") + 4;
    reply.head = take(end);
    reply.status = std::atoi(reply.head.c_str() + 9);
    reply.is_chunked = reply.has("transfer-encoding: chunked\r\n");
    if (!has_body || reply.status == 100 || reply.status == 204) {
      reply.is_whole = true;
    } else if (reply.is_chunked) {
      read_chunks(reply);
    } else if (const size_t at = reply.head.find("content-length: "); at != std::string::npos) {
      const size_t length = size_t(std::atoll(reply.head.c_str() + at + 16));
      while (input_.size() < length && receive()) continue;
      reply.is_whole = input_.size() >= length;
      reply.body = take(std::min(length, input_.size()));
    } else {
      reply.body = take_all();
      reply.is_whole = !is_cut_;
    }
    return reply;
  }

 protected:
  int socket() const { return socket_; }
  virtual ssize_t send_some(std::string_view bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  virtual ssize_t receive_some(char* place, size_t size) {
    const ssize_t count = ::recv(socket_, place, size, 0);
    if (count < 0 && errno == EAGAIN) ADD_FAILURE() << "nothing came for a minute";
    return count;
  }

 private:
  void connect(const sockaddr* address, socklen_t size) {
    const timeval minute = {60, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &minute, sizeof(minute));
    is_connected_ = ::connect(socket_, address, size) == 0;
  }
  bool receive() {
    char bytes[65536];
    const ssize_t count = receive_some(bytes, sizeof(bytes));
    if (count > 0) input_.append(bytes, size_t(count));
    is_cut_ = count < 0;
    return count > 0;
  }
  std::string take(size_t count) {
    std::string taken = input_.substr(0, count);
    input_.erase(0, count);
    return taken;
  }
  void read_chunks(BareReply& reply) {
    for (;;) {
      if (!wait_for("\r\n")) return;
      const size_t line = input_.find("\r\n");
      const size_t size = std::strtoul(input_.c_str(), nullptr, 16);
      while (input_.size() < line + 2 + size + 2) {
        if (!receive()) return;
      }
      reply.body += input_.substr(line + 2, size);
      input_.erase(0, line + 2 + size + 2);
      reply.is_whole = size == 0;
      if (size == 0) return;
    }
  }

  int socket_ = -1;
  bool is_connected_ = false;
  bool is_cut_ = false;  // It did not end in order.
  std::string input_;
};

inline std::string get_request(std::string_view path, std::string_view headers = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(headers) +
         "\r\n";
}

inline std::string post_request(std::string_view path, std::string_view body,
                                std::string_view headers = "") {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(headers) + "\r\n" + std::string(body);
}

}  // namespace cairn::serve
