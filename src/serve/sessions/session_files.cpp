// Files of JSON, and the thread that writes them.
#include "serve/sessions/session_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <map>

#include "base/file.h"
#include "base/log.h"
#include "base/output_file.h"
#include "base/sha256.h"
#include "base/threads/start_thread.h"
#include "json/value.h"
#include "sample/state_text.h"
#include "serve/sessions/session_table.h"
#include "session/transcript.h"

namespace cairn::serve {

namespace {

using session::Branch;
using session::MessageList;

constexpr int32_t kFormat = 1;
constexpr json::Limits kFileLimits{.bytes = size_t(512) << 20, .values = size_t(1) << 23};
// A byte of text takes up to six in JSON, "\u0000", and an answer may go beyond the limits.
static_assert(kFileLimits.bytes >= 6 * SessionLimits{}.owner_bytes_max + (size_t(64) << 20));
constexpr size_t kListsMax = 256;  // Of branches, and of snapshots.
constexpr std::string_view kEnding = ".json";
// In the name of a file that write_file() has not finished.
constexpr std::string_view kUnfinished = ".json.partial.";

// Each message once, and by its place in the lists.
class MessagePlaces {
 public:
  int64_t place_of(const MessageList::Ref& message) {
    const auto [found, is_new] = places_.emplace(message.get(), int64_t(places_.size()));
    if (is_new) list_.push_back(session::message_json(*message));
    return found->second;
  }
  json::Value take() { return std::move(list_); }

 private:
  std::map<const chat::Message*, int64_t> places_;
  json::Value list_ = json::Value::array();
};

json::Value lists_json(const std::vector<Branch>& lists, MessagePlaces& places) {
  json::Value all = json::Value::array();
  for (const Branch& list : lists) {
    json::Value messages = json::Value::array();
    for (const MessageList::Ref& message : list.messages.refs()) {
      messages.push_back(places.place_of(message));
    }
    json::Value one = {{"name", list.name}, {"messages", std::move(messages)}};
    const std::string sampler = sample::to_text(list.sampler);
    if (!sampler.empty()) one["sampler"] = sampler;
    all.push_back(std::move(one));
  }
  return all;
}

json::Value form_json(const PromptForm& form) {
  json::Value variables = json::Value::array();
  for (const auto& [name, value] : form.variables) {
    variables.push_back({{"name", name}, {"value", value}});
  }
  return {{"tools", form.tools}, {"reasons", form.reasons}, {"variables", std::move(variables)}};
}

Error wrong(const std::string& name, std::string_view member) {
  return fail(ErrorCode::invalid_data, "{}: expected a session, found none: {}", name, member);
}

Result<Branch> read_list(const std::string& name, const json::Value& json,
                         const std::vector<MessageList::Ref>& messages) {
  Branch list{.name = std::string(json.text_at("name").value_or(""))};
  const json::Value* const places = json.find("messages");
  if (!is_session_name(list.name) || places == nullptr) return wrong(name, "branches");
  std::vector<MessageList::Ref> refs;
  for (const json::Value& item : places->items()) {
    const auto place = item.as_integer();
    if (!place || *place < 0 || *place >= int64_t(messages.size())) return wrong(name, "messages");
    refs.push_back(messages[size_t(*place)]);
  }
  list.messages = MessageList(std::move(refs));
  if (const auto sampler = json.text_at("sampler")) {
    CAIRN_TRY(list.sampler, sample::read_sampler_state(*sampler));
  }
  return list;
}

Result<std::vector<Branch>> read_lists(const std::string& name, const json::Value& json,
                                       std::string_view member,
                                       const std::vector<MessageList::Ref>& messages) {
  const json::Value* const found = json.find(member);
  if (found == nullptr || !found->is_array() || found->items().size() > kListsMax) {
    return wrong(name, member);
  }
  std::vector<Branch> lists;
  for (const json::Value& item : found->items()) {
    CAIRN_TRY(Branch list, read_list(name, item, messages));
    lists.push_back(std::move(list));
  }
  return lists;
}

Status read_form(const std::string& name, const json::Value& json, PromptForm& form) {
  const json::Value* const found = json.find("form");
  if (found == nullptr || !found->is_object()) return wrong(name, "form");
  form.tools = found->text_at("tools").value_or("");
  form.reasons = found->is_true_at("reasons");
  if (const json::Value* const variables = found->find("variables")) {
    for (const json::Value& item : variables->items()) {
      form.variables.emplace_back(item.text_at("name").value_or(""),
                                  item.text_at("value").value_or("null"));
    }
  }
  return Ok{};
}

}  // namespace

std::string session_text(const SessionState& state) {
  MessagePlaces places;
  json::Value json = {{"cairn_session", kFormat},
                      {"id", state.id},
                      {"owner", state.owner},
                      {"model", state.model},
                      {"created", state.created},
                      {"vocabulary", session::vocabulary_text(state.vocabulary)},
                      {"seed", fmt::format("{}", state.seed)},
                      {"active", state.dialogue.active_branch()},
                      {"branches", lists_json(state.dialogue.branches(), places)},
                      {"snapshots", lists_json(state.snapshots, places)},
                      {"form", form_json(state.form)}};
  json["messages"] = places.take();
  return json::to_text(json) + "\n";
}

Result<SessionState> read_session(const std::string& name, std::string_view text) {
  CAIRN_TRY(const json::Value json, json::read_value(name, text, kFileLimits));
  const json::Value *const format = json.find("cairn_session"), *const list = json.find("messages");
  if (format == nullptr || format->as_integer() != kFormat || list == nullptr) {
    return wrong(name, "cairn_session");
  }
  SessionState state{.id = std::string(json.text_at("id").value_or("")),
                     .owner = std::string(json.text_at("owner").value_or("")),
                     .model = std::string(json.text_at("model").value_or(""))};
  if (!is_session_name(state.id)) return wrong(name, "id");
  const json::Value *const created = json.find("created"), *const active = json.find("active");
  if (created == nullptr || !created->as_integer()) return wrong(name, "created");
  state.created = *created->as_integer();
  CAIRN_TRY(const std::optional<uint64_t> vocabulary, session::read_vocabulary(json, name));
  state.vocabulary = vocabulary.value_or(0);
  for (const char digit : json.text_at("seed").value_or("x").substr(0, 20)) {
    if (digit < '0' || digit > '9') return wrong(name, "seed");
    state.seed = state.seed * 10 + uint64_t(digit - '0');
  }
  std::vector<MessageList::Ref> messages;
  for (const json::Value& item : list->items()) {
    CAIRN_TRY(chat::Message message, session::read_message(item, name, messages.size()));
    messages.push_back(std::make_shared<const chat::Message>(std::move(message)));
  }
  CAIRN_TRY(std::vector<Branch> branches, read_lists(name, json, "branches", messages));
  CAIRN_TRY(state.snapshots, read_lists(name, json, "snapshots", messages));
  const auto index = active == nullptr ? std::nullopt : active->as_integer();
  if (!index || *index < 0 || *index >= int64_t(branches.size())) return wrong(name, "active");
  state.dialogue = session::Dialogue(std::move(branches), size_t(*index));
  CAIRN_TRY(read_form(name, json, state.form));
  return state;
}

namespace {

Status make_folder(const std::string& path) {
  if (path.empty() || ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return Ok{};
  return fail(ErrorCode::io, "{}: {}", path, std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<SessionFiles>> SessionFiles::open(const std::string& folder) {
  // With models that are loaded later, nobody has made the store's folder yet.
  CAIRN_TRY(make_folder(std::filesystem::path(folder).parent_path().string()));
  CAIRN_TRY(make_folder(folder));
  struct stat found = {};
  if (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) ||
      found.st_uid != ::geteuid() || (found.st_mode & 077) != 0) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a folder for its owner alone (mode 700), found another", folder);
  }
  std::unique_ptr<SessionFiles> files(new SessionFiles(folder));
  CAIRN_TRY(const bool is_ours, files->lock());
  if (!is_ours) {
    log::warning("{}: another server keeps its sessions there; those of this one end with it",
                 folder);
    return std::unique_ptr<SessionFiles>();
  }
  CAIRN_TRY(files->read_all());
  CAIRN_TRY(files->thread_,
            start_thread("the sessions' thread", [made = files.get()] { made->run(); }));
  return files;
}

SessionFiles::~SessionFiles() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  if (lock_number_ >= 0) ::close(lock_number_);
  if (folder_number_ >= 0) ::close(folder_number_);
}

// Two servers that do not know of each other's changes would undo them. The lock ends with the
// process, however that ends.
Result<bool> SessionFiles::lock() {
  const std::string path = folder_ + "/lock";
  folder_number_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  lock_number_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (folder_number_ < 0 || lock_number_ < 0) {
    return fail(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  }
  if (::flock(lock_number_, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return fail(ErrorCode::io, "{}: cannot lock: {}", path, std::strerror(errno));
}

// Names are clients': they stand in the file, not in its name.
std::string SessionFiles::path_of(const std::string& owner, const std::string& id) const {
  const Sha256Digest digest = Sha256().add(owner).add("\n").add(id).finish();
  return fmt::format("{}/{}{}", folder_, hex_of(digest), kEnding);
}

std::chrono::seconds SessionFiles::age_of(const std::string& owner, const std::string& id) const {
  struct stat found = {};
  if (::stat(path_of(owner, id).c_str(), &found) != 0) return std::chrono::seconds(0);
  return std::chrono::seconds(std::max<int64_t>(std::time(nullptr) - found.st_mtime, 0));
}

Status SessionFiles::read_all() {
  std::error_code error, ignored;
  std::filesystem::directory_iterator entry(folder_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    const bool is_file = entry->is_regular_file(ignored) && !entry->is_symlink(ignored);
    // Of a server that was killed: the lock is ours.
    if (is_file && path.find(kUnfinished) != path.npos) remove(path);
    if (!is_file || !path.ends_with(kEnding)) continue;
    const auto read = [&]() -> Result<SessionState> {
      CAIRN_TRY(const std::string text, read_file(path, kFileLimits.bytes));
      CAIRN_TRY(SessionState state, read_session(path, text));
      if (path_of(state.owner, state.id) != path) return wrong(path, "owner");
      return state;
    };
    Result<SessionState> state = read();
    if (state) {
      kept_.push_back(std::move(state).value());
    } else {
      log::warning("a session is left out: {}", state.error().message);
    }
  }
  if (error) return fail(ErrorCode::io, "{}: cannot list: {}", folder_, error.message());
  return Ok{};
}

// It is gone for good when the folder is on the disk.
void SessionFiles::remove(const std::string& path) const {
  if (::unlink(path.c_str()) != 0) {
    if (errno != ENOENT) log::warning("{}: {}", path, std::strerror(errno));
    return;
  }
  // Some file systems have nothing to sync in a folder, and say so.
  if (::fsync(folder_number_) != 0 && errno != EINVAL) {
    log::warning("{}: {}", folder_, std::strerror(errno));
  }
}

void SessionFiles::keep(std::shared_ptr<const SessionState> state) {
  const std::string path = path_of(state->owner, state->id);
  hand_over(path, std::move(state));
}

void SessionFiles::forget(const std::string& owner, const std::string& id) {
  hand_over(path_of(owner, id), nullptr);
}

// A newer state takes the place of the one that still waits: nobody is overtaken.
void SessionFiles::hand_over(const std::string& path, std::shared_ptr<const SessionState> state) {
  const std::lock_guard lock(mutex_);
  if (Task* const task = find_waiting(path)) {
    task->state = std::move(state);
  } else {
    waiting_.push_back({path, std::move(state)});
  }
  changed_.notify_all();
}

// REQUIRES: the mutex is held.
SessionFiles::Task* SessionFiles::find_waiting(const std::string& path) {
  const auto found = std::ranges::find(waiting_, path, &Task::path);
  return found == waiting_.end() ? nullptr : &*found;
}

bool SessionFiles::is_written(const std::string& owner, const std::string& id,
                              std::function<void()> then) {
  const std::string path = path_of(owner, id);
  const std::lock_guard lock(mutex_);
  if (Task* const task = find_waiting(path)) {
    task->then.push_back(std::move(then));
    return false;
  }
  if (writing_ != path) return true;
  then_.push_back(std::move(then));
  return false;
}

void SessionFiles::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && writing_.empty(); });
}

void SessionFiles::write(const Task& task) const {
  if (task.state == nullptr) return remove(task.path);
  const std::string text = session_text(*task.state);
  const Status written =
      write_file(task.path, std::as_bytes(std::span(text)), {.is_private = true});
  if (!written) log::warning("a session is not written: {}", written.error().message);
}

void SessionFiles::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Task task = std::move(waiting_.front());
    waiting_.pop_front();
    writing_ = task.path;
    lock.unlock();
    write(task);
    lock.lock();
    writing_.clear();
    std::ranges::move(then_, std::back_inserter(task.then));
    then_.clear();
    changed_.notify_all();
    lock.unlock();
    for (const std::function<void()>& then : task.then) then();
    task = {};
    lock.lock();
  }
}

}  // namespace cairn::serve
