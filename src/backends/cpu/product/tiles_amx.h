// AMX's tiles: eight registers of up to 16 rows of 64 bytes, one instruction that multiplies two of
// them. Written out, because the compilers' intrinsics do not tell which memory the instructions
// read and write. The tile configuration is state of the thread: it is set while a Tiles object
// lives and released by its destructor, so that the operating system has no tiles to save
// afterwards.
#pragma once

#include <cstdint>

namespace cairn::amx {
namespace {

// What LDTILECFG reads (Intel SDM volume 2A).
struct TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Tiles 0 to 3 are sums, [16][16] of int32 or f32; 4 and 5 activations, 16 rows of `depth` bytes; 6
// and 7 weights, where byte 4 * n + j of row i is that of output n and column 4 * i + j (pairs of
// bf16: the four bytes are two columns).
class Tiles {
 public:
  static constexpr int kSums = 0, kActivations = 4, kWeights = 6;

  explicit Tiles(int depth) {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) {
      config.rows[tile] = uint8_t(tile < kWeights ? 16 : depth / 4);
      const bool is_activations = tile == kActivations || tile == kActivations + 1;
      config.row_bytes[tile] = uint16_t(is_activations ? depth : 64);
    }
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  ~Tiles() { asm volatile("tilerelease"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  template <int kTile>
  [[gnu::always_inline]] void load(const void* rows, int64_t stride) const {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(rows), "r"(stride), "i"(kTile) : "memory");
  }
  // Of what is not read again before others: it leaves their place in the first level cache.
  template <int kTile>
  [[gnu::always_inline]] void load_once(const void* rows, int64_t stride) const {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(rows), "r"(stride), "i"(kTile)
                 : "memory");
  }
  template <int kTile, class Sum>
  [[gnu::always_inline]] void store(Sum* sums) const {
    static_assert(sizeof(Sum) == 4);
    const int64_t stride = 64;
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(sums), "r"(stride), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  [[gnu::always_inline]] void zero() const {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  // sums += activations * weights, all of them signed.
  template <int kTile, int kLeft, int kRight>
  [[gnu::always_inline]] void dot() const {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kTile), "i"(kLeft), "i"(kRight));
  }
  // The same of pairs of bf16, in f32; for files that are compiled for it.
  template <int kTile, int kLeft, int kRight>
  [[gnu::always_inline]] void dot_pairs() const {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kTile), "i"(kLeft), "i"(kRight));
  }
};

}  // namespace
}  // namespace cairn::amx
