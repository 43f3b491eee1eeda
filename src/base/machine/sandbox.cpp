// Landlock and seccomp by their system calls: a dozen lines each, and no library to be kept. What
// Debian 12's kernel headers do not name yet is named here, with the kernel's numbers.
#include "base/machine/sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/machine/descriptor.h"

namespace cairn {

namespace {

// Renames from one folder to another, which a store makes, are refused by version 1 altogether.
constexpr int kOldestLandlock = 2;
constexpr uint64_t kTruncate = 1ULL << 14;   // Version 3.
constexpr uint64_t kConnectTcp = 1ULL << 1;  // Version 4.
constexpr uint64_t kScopes = 3;  // Version 6: abstract sockets and signals of other processes.

constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWrite = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                            LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                            LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REFER | kTruncate;
constexpr uint64_t kSockets = LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_FILE;
// What can be done to a file that is no folder.
constexpr uint64_t kOfFiles =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
// All that version 2 knows: each bit up to that of REFER.
constexpr uint64_t kAllOfVersion2 = (LANDLOCK_ACCESS_FS_REFER << 1) - 1;

// As the kernel has it now; older ones take the beginning.
struct RulesetAttributes {
  uint64_t files = 0;
  uint64_t net = 0;     // Since version 4.
  uint64_t scoped = 0;  // Since version 6.
};

// What the process looks at while it runs, whatever it runs: memory, processors, the time zone.
constexpr const char* kSystemPaths[] = {"/sys/devices/system", "/sys/fs/cgroup", "/etc/localtime",
                                        "/usr/share/zoneinfo", "/dev/null",      "/dev/urandom"};
// What the C library reads, and loads, to find the address of a name; and certificates.
constexpr const char* kNamePaths[] = {"/etc",   "/run/systemd/resolve",      "/lib", "/usr/lib",
                                      "/lib64", "/usr/share/ca-certificates"};
// The kernel makes these anew when nobody has them open, and a rule is about the one that was.
constexpr const char* kProcPaths[] = {"/proc/self", "/proc/meminfo",
                                      "/proc/sys/vm/overcommit_memory"};

constexpr long kNeverUsed[] = {
    SYS_execve,
    SYS_execveat,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_syslog,
    SYS_personality,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    // Its operations, sockets among them, are seen by no filter.
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_ptrace,
};

// A build with the leak sanitizer reads files and starts a program when it ends.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLooksForLeaks = true;
#elif defined(__has_feature)
constexpr bool kLooksForLeaks = __has_feature(address_sanitizer);
#else
constexpr bool kLooksForLeaks = false;
#endif

// Of who connects to nobody. Asking for a name's address binds a socket too.
constexpr long kConnecting[] = {SYS_socket, SYS_socketpair, SYS_connect, SYS_bind};

constexpr long kNotUsedAgain[] = {
    SYS_listen,    SYS_fchmodat,    SYS_fchownat,     SYS_setxattr,
    SYS_lsetxattr, SYS_removexattr, SYS_lremovexattr,
#ifdef SYS_chmod  // Machines of the older kind have names of their own for some.
    SYS_chmod,     SYS_chown,       SYS_lchown,
#endif
};

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kMachine = 0;
#endif
// Calls of another kind on the same machine (x32) begin here.
constexpr uint32_t kOtherCalls = 0x40000000;

Error refused(std::string_view what) {
  return fail(ErrorCode::io, "sandbox: the kernel refuses {}: {}", what, std::strerror(errno));
}

// A program of the kernel's filter machine: calls of this list fail with EPERM, as if of somebody
// without rights, and all others are made.
std::vector<sock_filter> filter_of(std::span<const long> calls) {
  const auto load = [](size_t place) -> sock_filter {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, uint32_t(place));
  };
  const auto end = [](uint32_t verdict) -> sock_filter {
    return BPF_STMT(BPF_RET | BPF_K, verdict);
  };
  const auto skip_unless = [](uint16_t test, uint32_t value) -> sock_filter {
    return BPF_JUMP(uint16_t(BPF_JMP | test | BPF_K), value, 0, 1);
  };
  constexpr uint32_t kRefusal = SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> program = {load(offsetof(seccomp_data, arch)),
                                      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0),
                                      end(kRefusal),
                                      load(offsetof(seccomp_data, nr)),
                                      skip_unless(BPF_JGE, kOtherCalls),
                                      end(kRefusal)};
  for (const long call : calls) {
    program.push_back(skip_unless(BPF_JEQ, uint32_t(call)));
    program.push_back(end(kRefusal));
  }
  program.push_back(end(SECCOMP_RET_ALLOW));
  return program;
}

// For all threads that there are.
Status forbid_calls(std::span<const long> calls) {
  std::vector<sock_filter> program = filter_of(calls);
  const sock_fprog whole{.len = uint16_t(program.size()), .filter = program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return refused("to give up privileges");
  const long left_out =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &whole);
  if (left_out == 0) return Ok{};
  if (left_out > 0) errno = EBUSY;  // A thread that has another filter.
  return refused("a filter of system calls");
}

class Ruleset {
 public:
  static Result<Ruleset> make(int version, bool connects) {
    RulesetAttributes handled{.files = kAllOfVersion2};
    if (version >= 3) handled.files |= kTruncate;
    if (version >= 4 && !connects) handled.net = kConnectTcp;
    if (version >= 6) handled.scoped = kScopes;
    const size_t size = version >= 6   ? sizeof(handled)
                        : version >= 4 ? offsetof(RulesetAttributes, scoped)
                                       : offsetof(RulesetAttributes, net);
    const long number = ::syscall(SYS_landlock_create_ruleset, &handled, size, 0);
    if (number < 0) return refused("rules for files");
    return Ruleset(int(number), handled.files);
  }

  // Of what is there. `is_held`: it stays open as long as the process.
  Status allow(const char* path, uint64_t access, bool is_held = false) const {
    Descriptor place(::open(path, O_PATH | O_CLOEXEC));
    struct stat found = {};
    if (!place || ::fstat(place.number(), &found) != 0) return Ok{};
    if (!S_ISDIR(found.st_mode)) access &= kOfFiles;
    const landlock_path_beneath_attr rule{.allowed_access = access & handled_,
                                          .parent_fd = place.number()};
    const long added =
        ::syscall(SYS_landlock_add_rule, ruleset_.number(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    if (added != 0) return refused(path);
    if (is_held) (void)::fcntl(place.number(), F_DUPFD_CLOEXEC, 0);
    return Ok{};
  }

  // For this thread, and those that it starts.
  Status hold() const {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return refused("to give up privileges");
    if (::syscall(SYS_landlock_restrict_self, ruleset_.number(), 0) == 0) return Ok{};
    return refused("to be restricted");
  }

 private:
  Ruleset(int number, uint64_t handled) : ruleset_(number), handled_(handled) {}

  Descriptor ruleset_;
  uint64_t handled_;
};

Result<SandboxSupport> expect_support() {
  SandboxSupport support = sandbox_support();
  if (support.why_not.empty()) return support;
  return fail(ErrorCode::unsupported, "sandbox: {}", support.why_not);
}

}  // namespace

SandboxSupport sandbox_support() {
  SandboxSupport support;
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version > 0) {
    support.landlock_version = int(version);
  } else {
    support.why_not = errno == EOPNOTSUPP
                          ? "Landlock is switched off (the kernel's option lsm=)"
                          : "the kernel has no Landlock (Linux 5.13, CONFIG_SECURITY_LANDLOCK)";
  }
  if (version > 0 && version < kOldestLandlock) {
    support.why_not = fmt::format("expected Landlock of version {} or later (Linux 5.19), found {}",
                                  kOldestLandlock, version);
  }
  const uint32_t action = SECCOMP_RET_ERRNO;
  support.filters_calls =
      kMachine != 0 && ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
  if (!support.filters_calls) {
    if (!support.why_not.empty()) support.why_not += "; ";
    support.why_not += kMachine == 0 ? "system calls of this kind of machine are not known"
                                     : "the kernel has no seccomp (CONFIG_SECCOMP_FILTER)";
  }
  if (kLooksForLeaks) {
    if (!support.why_not.empty()) support.why_not += "; ";
    support.why_not += "this build looks for leaks at its end, by files and programs of its own";
  }
  return support;
}

Status enter_sandbox(const SandboxRules& rules) {
  CAIRN_TRY(const SandboxSupport support, expect_support());
  CAIRN_TRY(const Ruleset ruleset, Ruleset::make(support.landlock_version, rules.connects));
  for (const char* path : kSystemPaths) CAIRN_TRY(ruleset.allow(path, kRead));
  for (const char* path : kProcPaths) CAIRN_TRY(ruleset.allow(path, kRead, true));
  CAIRN_TRY(ruleset.allow("/dev/null", kOfFiles));
  if (rules.connects) {
    for (const char* path : kNamePaths) CAIRN_TRY(ruleset.allow(path, kRead));
  }
  for (const std::string& path : rules.readable) CAIRN_TRY(ruleset.allow(path.c_str(), kRead));
  for (const std::string& path : rules.writable) CAIRN_TRY(ruleset.allow(path.c_str(), kWrite));
  for (const std::string& path : rules.sockets) CAIRN_TRY(ruleset.allow(path.c_str(), kSockets));
  CAIRN_TRY(ruleset.hold());
  return forbid_calls(kNeverUsed);
}

Status seal_sandbox(bool connects) {
  CAIRN_TRY(expect_support());
  if (!connects) CAIRN_TRY(forbid_calls(kConnecting));
  return forbid_calls(kNotUsedAgain);
}

}  // namespace cairn
