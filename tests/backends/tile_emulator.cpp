// Decodes and executes LDTILECFG, TILERELEASE, TILELOADD, TILESTORED, TILEZERO, TDPBSSD and
// TDPBF16PS (Intel SDM volume 2: VEX prefix of three bytes, map 0F38, W 0, L 128). Whatever breaks
// their rules, or is another instruction, ends the program.
#include "tests/backends/tile_emulator.h"

#if defined(__x86_64__)
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace cairn::test {
namespace {

struct Tile {
  int8_t bytes[16][64];
};

struct TileState {
  bool is_configured = false;
  uint8_t rows[8] = {};
  uint16_t row_bytes[8] = {};
  Tile tiles[8] = {};
};

thread_local TileState state;
std::atomic<long> trapped_count{0};
struct sigaction previous;

[[noreturn]] void refuse(const char* why) {
  const char text[] = "tile emulator: ";
  [[maybe_unused]] ssize_t written = ::write(2, text, sizeof(text) - 1);
  written = ::write(2, why, std::strlen(why));
  written = ::write(2, "\n", 1);
  ::_exit(99);
}

void expect(bool condition, const char* why) {
  if (!condition) refuse(why);
}

TileRegisters registers_of(const ucontext_t& context) {
  constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                              REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                              REG_R12, REG_R13, REG_R14, REG_R15};
  TileRegisters registers;
  for (int i = 0; i < 16; ++i) registers[size_t(i)] = context.uc_mcontext.gregs[kOrder[i]];
  return registers;
}

// An instruction, taken apart.
struct Instruction {
  int opcode, prefix;        // 49, 4b, 5c, 5e; 0: none, 1: 66, 2: F3, 3: F2.
  int mode, reg, rm, extra;  // ModRM's three fields, and VEX.vvvv.
  int64_t address = 0;       // Where mode < 3: base plus displacement,
  int64_t stride = 0;        // and the index register times its scale.
  int length;
};

int64_t read_displacement(const uint8_t* at, int mode, int& length) {
  if (mode == 1) {
    length += 1;
    return int8_t(at[0]);
  }
  if (mode != 2) return 0;
  int32_t wide;
  std::memcpy(&wide, at, 4);
  length += 4;
  return wide;
}

Instruction decode(const uint8_t* code, const TileRegisters& registers) {
  expect(code[0] == 0xc4, "no VEX prefix of three bytes");
  expect((code[1] & 0x1f) == 2, "not in map 0F38");
  expect((code[2] & 0x84) == 0, "W or L is set");
  Instruction out{};
  out.prefix = code[2] & 3;
  out.extra = (~code[2] >> 3) & 15;
  out.opcode = code[3];
  out.mode = code[4] >> 6;
  out.reg = code[4] >> 3 & 7;
  out.rm = code[4] & 7;
  out.length = 5;
  if (out.mode == 3) return out;
  const int index_high = code[1] & 0x40 ? 0 : 8, base_high = code[1] & 0x20 ? 0 : 8;
  int base = out.rm | base_high;
  if (out.rm == 4) {
    const uint8_t sib = code[5];
    out.length = 6;
    base = (sib & 7) | base_high;
    const int index = (sib >> 3 & 7) | index_high;
    if (index != 4) out.stride = registers[size_t(index)] * (1 << (sib >> 6));
    expect(out.mode != 0 || (sib & 7) != 5, "an address without a base");
  } else {
    expect(out.mode != 0 || out.rm != 5, "an address relative to the instruction");
  }
  out.address = registers[size_t(base)];
  out.address += read_displacement(code + out.length, out.mode, out.length);
  return out;
}

void configure(const uint8_t* at) {
  expect(at[0] == 1, "palette other than 1");
  expect(at[1] == 0, "a start row");
  for (int i = 2; i < 16; ++i) expect(at[i] == 0, "reserved bytes of the configuration are set");
  for (int i = 32; i < 48; ++i) expect(at[i] == 0, "row bytes of tiles that do not exist");
  for (int i = 56; i < 64; ++i) expect(at[i] == 0, "rows of tiles that do not exist");
  state = {};
  for (int tile = 0; tile < 8; ++tile) {
    std::memcpy(&state.row_bytes[tile], at + 16 + 2 * tile, 2);
    state.rows[tile] = at[48 + tile];
    expect(state.row_bytes[tile] <= 64 && state.rows[tile] <= 16, "a tile is too large");
    expect((state.row_bytes[tile] == 0) == (state.rows[tile] == 0), "half a tile");
  }
  state.is_configured = true;
}

void transfer(const Instruction& instruction, bool is_load) {
  Tile& tile = state.tiles[instruction.reg];
  const size_t width = state.row_bytes[instruction.reg];
  expect(width != 0, "a tile without a size");
  if (is_load) tile = {};
  for (int row = 0; row < state.rows[instruction.reg]; ++row) {
    auto* memory = reinterpret_cast<int8_t*>(instruction.address + row * instruction.stride);
    if (is_load) std::memcpy(tile.bytes[row], memory, width);
    if (!is_load) std::memcpy(memory, tile.bytes[row], width);
  }
}

void expect_matching(int sum, int left, int right) {
  expect(sum != left && sum != right && left != right, "operands are not different tiles");
  expect(state.rows[sum] == state.rows[left], "rows of the sum and of the left operand differ");
  expect(state.row_bytes[sum] == state.row_bytes[right], "columns of sum and right operand differ");
  expect(state.row_bytes[left] == 4 * state.rows[right], "depths of the operands differ");
}

void multiply_signed(int sum, int left, int right) {
  expect_matching(sum, left, right);
  for (int row = 0; row < state.rows[sum]; ++row) {
    int32_t sums[16];
    std::memcpy(sums, state.tiles[sum].bytes[row], 64);
    for (int k = 0; k < state.row_bytes[left]; ++k) {
      for (int column = 0; column < state.row_bytes[sum] / 4; ++column) {
        sums[column] +=
            state.tiles[left].bytes[row][k] * state.tiles[right].bytes[k / 4][4 * column + k % 4];
      }
    }
    std::memcpy(state.tiles[sum].bytes[row], sums, 64);
  }
}

// A bf16 of a tile; subnormal numbers are zeros.
float bf16_at(const Tile& tile, int row, int index) {
  uint16_t half;
  std::memcpy(&half, tile.bytes[row] + 2 * index, 2);
  const uint32_t bits = (half & 0x7f80) == 0 ? uint32_t(half & 0x8000) << 16 : uint32_t(half) << 16;
  return std::bit_cast<float>(bits);
}

float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

// The first numbers of all pairs, their second numbers, then both, then the sum.
void multiply_pairs(int sum, int left, int right) {
  expect_matching(sum, left, right);
  for (int row = 0; row < state.rows[sum]; ++row) {
    float sums[16];
    std::memcpy(sums, state.tiles[sum].bytes[row], 64);
    for (int column = 0; column < state.row_bytes[sum] / 4; ++column) {
      float parts[2] = {};
      for (int k = 0; k < state.row_bytes[left] / 2; ++k) {
        parts[k % 2] =
            flushed(std::fma(bf16_at(state.tiles[left], row, k),
                             bf16_at(state.tiles[right], k / 2, 2 * column + k % 2), parts[k % 2]));
      }
      sums[column] = flushed(flushed(sums[column]) + flushed(parts[0] + parts[1]));
    }
    std::memcpy(state.tiles[sum].bytes[row], sums, 64);
  }
}

void execute(const Instruction& instruction) {
  const int kind = instruction.opcode << 4 | instruction.prefix << 2 | (instruction.mode == 3);
  if (kind == 0x490 && instruction.reg == 0) {
    return configure(reinterpret_cast<const uint8_t*>(instruction.address));
  }
  expect(state.is_configured, "tiles are used before they have sizes");
  if (kind == 0x491) {
    expect(instruction.reg == 0 && instruction.rm == 0, "not TILERELEASE");
    state = {};
  } else if (kind == 0x49d) {
    state.tiles[instruction.reg] = {};
  } else if (kind == 0x4bc || kind == 0x4b4 || kind == 0x4b8) {
    expect(instruction.rm == 4, "TILELOADD, TILELOADDT1 and TILESTORED need an index register");
    transfer(instruction, kind != 0x4b8);
  } else if (kind == 0x5ed) {
    multiply_signed(instruction.reg, instruction.rm, instruction.extra);
  } else if (kind == 0x5c9) {
    multiply_pairs(instruction.reg, instruction.rm, instruction.extra);
  } else {
    refuse("another instruction");
  }
}

void handle(int, siginfo_t*, void* pointer) {
  auto& context = *static_cast<ucontext_t*>(pointer);
  const auto* code = reinterpret_cast<const uint8_t*>(context.uc_mcontext.gregs[REG_RIP]);
  context.uc_mcontext.gregs[REG_RIP] += emulate_tile_instruction(code, registers_of(context));
  trapped_count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

int emulate_tile_instruction(const uint8_t* code, const TileRegisters& registers) {
  const Instruction instruction = decode(code, registers);
  execute(instruction);
  return instruction.length;
}

TileEmulator::TileEmulator() {
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGILL, &action, &previous);
}

TileEmulator::~TileEmulator() {
  ::sigaction(SIGILL, &previous, nullptr);
}

long TileEmulator::count() {
  return trapped_count.load();
}

}  // namespace cairn::test
#endif
