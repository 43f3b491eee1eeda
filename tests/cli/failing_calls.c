/* Loaded before the C library (LD_PRELOAD): counts system calls that files and sockets need, and
   fails those that a test chooses, with EIO. The test writes into the file that
   CAIRN_FAILING_CALLS names, which holds the three numbers below. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct control {
  _Atomic int64_t count;      /* Of calls so far. */
  _Atomic int64_t fail_from;  /* The first that fails; 0: none. */
  _Atomic int64_t fail_count; /* How many do. */
};

static struct control* control;

__attribute__((constructor)) static void open_control(void) {
  const char* const path = getenv("CAIRN_FAILING_CALLS");
  const int file = path == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  const long mapped =
      syscall(SYS_mmap, NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0L);
  close(file);
  if (mapped != -1) control = (struct control*)mapped;
}

static int fails(void) {
  if (control == NULL) return 0;
  const int64_t number = atomic_fetch_add(&control->count, 1) + 1;
  const int64_t from = atomic_load(&control->fail_from);
  if (from == 0 || number < from || number >= from + atomic_load(&control->fail_count)) return 0;
  errno = EIO;
  return 1;
}

/* NAME with these parameters becomes itself, or -1. */
#define FAILING(result, name, parameters, arguments)                        \
  result name parameters {                                                  \
    static result(*real) parameters;                                        \
    if (real == NULL) real = (result(*) parameters)dlsym(RTLD_NEXT, #name); \
    return fails() ? (result)-1 : real arguments;                           \
  }

FAILING(ssize_t, read, (int file, void* to, size_t size), (file, to, size))
FAILING(ssize_t, pread64, (int file, void* to, size_t size, off_t at), (file, to, size, at))
FAILING(ssize_t, pread, (int file, void* to, size_t size, off_t at), (file, to, size, at))
FAILING(ssize_t, pwrite, (int file, const void* from, size_t size, off_t at),
        (file, from, size, at))
FAILING(ssize_t, pwrite64, (int file, const void* from, size_t size, off_t at),
        (file, from, size, at))
FAILING(int, fsync, (int file), (file))
FAILING(int, fdatasync, (int file), (file))
FAILING(int, ftruncate, (int file, off_t size), (file, size))
FAILING(int, ftruncate64, (int file, off_t size), (file, size))
FAILING(int, rename, (const char* from, const char* to), (from, to))
FAILING(int, renameat, (int a, const char* from, int b, const char* to), (a, from, b, to))
FAILING(int, mkdir, (const char* path, mode_t mode), (path, mode))
FAILING(int, mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode))
FAILING(int, fstat, (int file, struct stat* to), (file, to))
FAILING(void*, mmap, (void* at, size_t size, int how, int flags, int file, off_t place),
        (at, size, how, flags, file, place))
FAILING(int, accept, (int file, struct sockaddr* from, socklen_t* size), (file, from, size))
FAILING(ssize_t, recvmsg, (int file, struct msghdr* to, int flags), (file, to, flags))
FAILING(ssize_t, sendmsg, (int file, const struct msghdr* from, int flags), (file, from, flags))
FAILING(ssize_t, recv, (int file, void* to, size_t size, int flags), (file, to, size, flags))
FAILING(ssize_t, send, (int file, const void* from, size_t size, int flags),
        (file, from, size, flags))

static int open_or_fail(int folder, const char* path, int flags, mode_t mode) {
  return fails() ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define OPENING(name, first, folder)                                              \
  int name(first const char* path, int flags, ...) {                              \
    va_list rest;                                                                 \
    va_start(rest, flags);                                                        \
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                                 \
    return open_or_fail(folder, path, flags, mode);                               \
  }
#define NOTHING
OPENING(open, NOTHING, AT_FDCWD)
OPENING(open64, NOTHING, AT_FDCWD)
#define FOLDER int folder,
OPENING(openat, FOLDER, folder)
OPENING(openat64, FOLDER, folder)
