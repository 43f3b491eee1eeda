// The calls of a store, and what each of them does to a disk that has lost nothing yet: done again
// one by one, they bring a LossyDisk to where it was at any moment.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/file_calls.h"
#include "tests/store/lossy_disk.h"

namespace cairn::store::toy {

class LoggedCalls : public FileCalls {
 public:
  // `root`: the folder that was there before, in which the store's is made.
  explicit LoggedCalls(const std::string& root) {
    struct stat status = {};
    ::stat(root.c_str(), &status);
    numbers_[status.st_ino] = LossyDisk::kRoot;
  }

  int open_at(int folder, const char* name, int flags, mode_t mode) override {
    struct stat status = {};
    const bool was_there = ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    const int file = FileCalls::open_at(folder, name, flags, mode);
    if (file < 0) return file;
    if (!was_there) add(folder, name, "");
    if (was_there && (flags & O_TRUNC) != 0) {
      log([file = number_of(file)](LossyDisk& disk) { disk.resize(file, 0); });
    }
    return file;
  }
  int make_folder(int folder, const char* name, mode_t mode) override {
    if (FileCalls::make_folder(folder, name, mode) != 0) return -1;
    add(folder, name, "/");
    return 0;
  }
  ssize_t write_at(int file, const void* bytes, size_t count, off_t offset) override {
    const ssize_t written = FileCalls::write_at(file, bytes, count, offset);
    if (written <= 0) return written;
    log([file = number_of(file), offset,
         text = std::string(static_cast<const char*>(bytes), size_t(written))](LossyDisk& disk) {
      disk.write(file, size_t(offset), text);
    });
    return written;
  }
  int allocate(int file, off_t bytes) override {
    if (FileCalls::allocate(file, bytes) != 0) return -1;
    log([file = number_of(file), bytes](LossyDisk& disk) { disk.resize(file, size_t(bytes)); });
    return 0;
  }
  // The disk itself is not waited for.
  int sync(int file) override {
    struct stat status = {};
    ::fstat(file, &status);
    if (S_ISDIR(status.st_mode) ? forgets_folders : forgets_files) return 0;
    log([file = number_of(file)](LossyDisk& disk) { disk.sync(file); });
    return 0;
  }
  int rename_to_new(int from_folder, const char* from, int to_folder, const char* to) override {
    const int node = number_at(from_folder, from);
    const int done = FileCalls::rename_to_new(from_folder, from, to_folder, to);
    if (done == 0) move(node, {from_folder, from}, {to_folder, to});
    return done;
  }
  int rename_over(int from_folder, const char* from, int to_folder, const char* to) override {
    const int node = number_at(from_folder, from);
    const int done = FileCalls::rename_over(from_folder, from, to_folder, to);
    if (done == 0) move(node, {from_folder, from}, {to_folder, to});
    return done;
  }
  int remove_at(int folder, const char* name) override {
    if (FileCalls::remove_at(folder, name) != 0) return -1;
    set_name({folder, name}, LossyDisk::kNone);
    return 0;
  }

  using Event = std::function<void(LossyDisk&)>;
  std::vector<Event> events;
  // To see what is lost without.
  bool forgets_files = false, forgets_folders = false;

 private:
  struct Path {
    int folder;
    std::string name;
  };

  void log(Event event) { events.push_back(std::move(event)); }
  int number_of(int file) const {
    struct stat status = {};
    ::fstat(file, &status);
    return numbers_.at(status.st_ino);
  }
  int number_at(int folder, const std::string& name) const {
    struct stat status = {};
    const bool is_there = ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    return is_there ? numbers_.at(status.st_ino) : LossyDisk::kNone;
  }
  // A number of what has been made is given to another file when it has gone.
  void add(int folder, const std::string& name, const std::string& slash) {
    struct stat status = {};
    ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW);
    numbers_[status.st_ino] = ++added_;
    log([](LossyDisk& disk) { disk.add(); });
    set_name({folder, name + slash}, added_);
  }
  void move(int node, const Path& from, const Path& to) {
    set_name(to, node);
    set_name(from, LossyDisk::kNone);
  }
  void set_name(const Path& path, int node) {
    const size_t slash = path.name.find_last_of('/', path.name.size() - 2);
    const bool is_deep = slash != std::string::npos;
    const int folder = number_at(path.folder, is_deep ? path.name.substr(0, slash) : ".");
    log([folder, node, last = path.name.substr(is_deep ? slash + 1 : 0)](LossyDisk& disk) {
      disk.name(folder, last, node);
    });
  }

  std::map<ino_t, int> numbers_;
  int added_ = 0;
};

}  // namespace cairn::store::toy
