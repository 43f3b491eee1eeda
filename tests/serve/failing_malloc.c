/* Loaded before the C library (LD_PRELOAD): counts allocations, and refuses those that a test
   chooses. The test writes into the file that CAIRN_FAILING_MALLOC names, which holds the three
   numbers below. For glibc, whose own functions have other names too. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct control {
  _Atomic int64_t count;      /* Of allocations so far. */
  _Atomic int64_t fail_from;  /* The first that is refused; 0: none. */
  _Atomic int64_t fail_count; /* How many are. */
};

static struct control* control;

__attribute__((constructor)) static void open_control(void) {
  const char* const path = getenv("CAIRN_FAILING_MALLOC");
  const int file = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* const mapped =
      mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) control = mapped;
}

static int is_refused(void) {
  if (control == NULL) return 0;
  const int64_t number = atomic_fetch_add(&control->count, 1) + 1;
  const int64_t from = atomic_load(&control->fail_from);
  if (from == 0 || number < from || number >= from + atomic_load(&control->fail_count)) return 0;
  errno = ENOMEM;
  return 1;
}

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  return is_refused() ? NULL : __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  return is_refused() ? NULL : __libc_calloc(count, bytes);
}

void* realloc(void* old, size_t bytes) {
  return bytes > 0 && is_refused() ? NULL : __libc_realloc(old, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  return is_refused() ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void** out, size_t alignment, size_t bytes) {
  void* const memory = is_refused() ? NULL : __libc_memalign(alignment, bytes);
  if (memory == NULL) return ENOMEM;
  *out = memory;
  return 0;
}
