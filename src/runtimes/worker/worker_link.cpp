// Frames: 24 bytes, and as many as the first of them say.
#include "runtimes/worker/worker_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/env.h"
#include "base/printable.h"

namespace cairn::runtimes {

namespace {

//  |  bytes behind it  |  kind, or status  |  number of the request  |  session  |
struct Head {
  uint32_t bytes;
  uint32_t kind;
  uint64_t sequence;
  uint64_t session;
};
static_assert(sizeof(Head) == 24 && std::endian::native == std::endian::little);

constexpr uint32_t kDone = 0, kFailed = 1, kCancelled = 2, kAlive = 3;
constexpr uint32_t kAnswerBytesMax = 64 << 10;
constexpr size_t kOutputBytesMax = 4 << 10;
constexpr size_t kShownBytes = 1000;  // Of the output, in an error.

constexpr const char* kRequestNames[] = {"check",  "load",     "open",    "close", "append",
                                         "rewind", "snapshot", "restore", "drop"};

bool can_run(const std::string& path) {
  return ::access(path.c_str(), X_OK) == 0;
}

Result<std::string> find_interpreter() {
  const std::optional<std::string> set = env("CAIRN_PYTHON");
  const std::string wanted = set && !set->empty() ? *set : "python3";
  if (wanted.find('/') != std::string::npos) {
    if (can_run(wanted)) return wanted;
    return fail(ErrorCode::unsupported, "CAIRN_PYTHON: expected a Python interpreter, found {}",
                wanted);
  }
  const std::string path = env("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string candidate = path.substr(begin, end - begin) + "/" + wanted;
    if (end > begin && can_run(candidate)) return candidate;
    begin = end + 1;
  }
  return fail(ErrorCode::unsupported,
              "no {} on PATH; CAIRN_PYTHON names a Python interpreter that has the packages",
              wanted);
}

}  // namespace

WorkerLink::WorkerLink(std::string_view name, ChildProcess process, Descriptor socket)
    : name_(name), process_(std::move(process)), socket_(std::move(socket)) {}

Result<std::unique_ptr<WorkerLink>> WorkerLink::start(std::string_view name,
                                                      const std::string& program, int shared,
                                                      int weights) {
  CAIRN_TRY(const std::string interpreter, find_interpreter());
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(ErrorCode::io, "cannot make a socket: {}", std::strerror(errno));
  }
  Descriptor ours(ends[0]);
  const Descriptor theirs(ends[1]);
  ::fcntl(ours.number(), F_SETFL, O_NONBLOCK);
  std::vector<int> descriptors = {theirs.number()};
  if (shared >= 0) descriptors.insert(descriptors.end(), {shared, weights});
  const std::vector<std::string> arguments = {"-c", program};
  CAIRN_TRY(ChildProcess process, ChildProcess::start(interpreter, arguments, descriptors));
  return std::unique_ptr<WorkerLink>(new WorkerLink(name, std::move(process), std::move(ours)));
}

// The worker is ended: what it says afterwards would be taken for the answer to something else.
Error WorkerLink::broken(std::string_view what) {
  read_output();
  process_.kill();
  socket_ = {};
  const size_t shown = std::min(kShownBytes, output_.size());
  const std::string said = printable(std::string_view(output_).substr(output_.size() - shown));
  error_ = fail(ErrorCode::io, "{}: {}{}{}", name_, what, said.empty() ? "" : "; it said: ", said);
  return *error_;
}

void WorkerLink::read_output() {
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t count = ::read(process_.output(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) has_output_ = false;
    if (count <= 0) return;
    output_.append(bytes.data(), size_t(count));
    if (output_.size() > kOutputBytesMax) output_.erase(0, output_.size() - kOutputBytesMax);
  }
}

// Until the socket is ready, or has ended, which the next call on it tells.
Status WorkerLink::wait(short events, Clock::time_point end) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return broken("no answer within the limit of time: it was ended");
    const int output = has_output_ ? process_.output() : -1;
    std::array<pollfd, 2> watched = {{{socket_.number(), events, 0}, {output, POLLIN, 0}}};
    const int count = ::poll(watched.data(), watched.size(), int(std::min<int64_t>(left, 1 << 30)));
    if (count < 0 && errno != EINTR) return broken(std::strerror(errno));
    if (count <= 0) continue;
    if (watched[1].revents != 0) read_output();
    if (watched[0].revents != 0) return Ok{};
  }
}

Status WorkerLink::send(std::span<const std::byte> bytes, Clock::time_point end) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes = bytes.subspan(size_t(count));
    } else if (errno == EAGAIN) {
      CAIRN_TRY(wait(POLLOUT, end));
    } else if (errno != EINTR) {
      return broken("it has ended");
    }
  }
  return Ok{};
}

Status WorkerLink::receive(std::span<std::byte> bytes, Clock::time_point end) {
  while (!bytes.empty()) {
    const ssize_t count = ::recv(socket_.number(), bytes.data(), bytes.size(), 0);
    if (count > 0) {
      bytes = bytes.subspan(size_t(count));
    } else if (count < 0 && errno == EAGAIN) {
      CAIRN_TRY(wait(POLLIN, end));
    } else if (count == 0 || errno != EINTR) {
      return broken("it has ended");
    }
  }
  return Ok{};
}

Result<WorkerLink::Answer> WorkerLink::receive_answer(Clock::time_point end) {
  Head head;
  CAIRN_TRY(receive(std::as_writable_bytes(std::span(&head, 1)), end));
  if (head.sequence != sequence_ || head.kind > kAlive || head.bytes > kAnswerBytesMax) {
    return broken(
        fmt::format("expected an answer to request {} of at most {} bytes, found one of "
                    "status {} to request {} of {} bytes",
                    sequence_, kAnswerBytesMax, head.kind, head.sequence, head.bytes));
  }
  Answer answer{.status = head.kind, .text = std::string(head.bytes, '\0')};
  CAIRN_TRY(receive(std::as_writable_bytes(std::span(answer.text)), end));
  return answer;
}

Result<std::string> WorkerLink::call(Request request, uint64_t session,
                                     std::span<const std::byte> payload,
                                     std::chrono::milliseconds limit) {
  if (error_) return *error_;
  if (!process_.is_owned_here()) {
    return fail(ErrorCode::io,
                "{}: expected to be used by the process that loaded it, found one "
                "that was forked off",
                name_);
  }
  CHECK(payload.size() <= UINT32_MAX);
  const Head head{.bytes = uint32_t(payload.size()),
                  .kind = uint32_t(request),
                  .sequence = ++sequence_,
                  .session = session};
  CAIRN_TRY(send(std::as_bytes(std::span(&head, 1)), Clock::now() + limit));
  CAIRN_TRY(send(payload, Clock::now() + limit));
  // There is at most one sign of life for each token of a chunk.
  for (size_t life_count = 0; life_count <= payload.size(); ++life_count) {
    CAIRN_TRY(Answer answer, receive_answer(Clock::now() + limit));
    if (answer.status == kDone) return std::move(answer.text);
    if (answer.status == kCancelled) return fail(ErrorCode::cancelled, "cancelled");
    if (answer.status == kFailed && request == Request::check) {
      return fail(ErrorCode::unsupported, "{}", printable(answer.text));
    }
    if (answer.status == kFailed) {
      return fail(ErrorCode::io, "{}: {}: {}", name_, kRequestNames[size_t(request)],
                  printable(answer.text));
    }
  }
  return broken("expected an answer, found more signs of life than there are tokens");
}

}  // namespace cairn::runtimes
