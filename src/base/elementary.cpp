// Sine and cosine for angles of positions, in f64.
#include "base/elementary.h"

#include <bit>
#include <cstdint>

namespace cairn::elementary {
namespace {

// One rounding, by the machine's instruction or by the C library's exact routine.
double fused(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

// sin(r + low) for |r| <= pi / 4: r + r^3 P(r^2), relative error 2^-57.
double sine_of_rest(double r, double low) {
  const double square = r * r;
  double sum = 0x1.5d8e6226d3873p-33;
  sum = fused(sum, square, -0x1.ae5e54ffce7d4p-26);
  sum = fused(sum, square, 0x1.71de355fa46d5p-19);
  sum = fused(sum, square, -0x1.a01a019bf2b7ap-13);
  sum = fused(sum, square, 0x1.111111110f76p-7);
  sum = fused(sum, square, -0x1.5555555555548p-3);
  // The lower part counts cos(r) times.
  const double cosine_about = fused(square, -0.5, 1.0);
  return r + fused(sum * square, r, low * cosine_about);
}

// cos(r + low): 1 - r^2 / 2 + r^4 P(r^2), relative error 2^-63.
double cosine_of_rest(double r, double low) {
  const double square = r * r;
  double sum = -0x1.8fa6a86831e75p-37;
  sum = fused(sum, square, 0x1.1ee9dc126f59fp-29);
  sum = fused(sum, square, -0x1.27e4f7f1ee40dp-22);
  sum = fused(sum, square, 0x1.a01a019c8f942p-16);
  sum = fused(sum, square, -0x1.6c16c16c15018p-10);
  sum = fused(sum, square, 0x1.555555555554bp-5);
  const double half = 0.5 * square;
  const double line = 1.0 - half;
  const double line_low = (1.0 - line) - half;
  // The square's own rounding matters as much as the last place of the line does.
  const double square_low = fused(r, r, -square);
  const double low_part = fused(-r, low, fused(-0.5, square_low, line_low));
  return line + fused(sum * square, square, low_part);
}

}  // namespace

void sincos(double x, double& sine, double& cosine) {
  if (!(x >= -0x1p24 && x <= 0x1p24)) {
    sine = cosine = __builtin_nan("");
    return;
  }
  // Adding 1.5 * 2^52 leaves no bits behind the point: the sum's last bits are the quadrant.
  const double shifted = fused(x, 0x1.45f306dc9c883p-1, 0x1.8p52);  // 2 / pi
  const double count = shifted - 0x1.8p52;
  const uint64_t quadrant = std::bit_cast<uint64_t>(shifted);
  // pi / 2 in three parts of 53 bits (Cody and Waite, 1980). The first difference is exact; the
  // second is kept with all that rounding loses, for angles next to a multiple of pi / 2.
  constexpr double kSecond = 0x1.1a62633145c07p-54;
  const double first = fused(-count, 0x1.921fb54442d18p0, x);
  const double second = count * kSecond;
  const double rest = first - second;
  const double second_part = first - rest;
  const double lost = (first - (rest + second_part)) + (second_part - second);
  const double second_low = fused(count, kSecond, -second);
  const double low = fused(count, 0x1.f1976b7ed8fbcp-110, lost - second_low);
  const double s = sine_of_rest(rest, low);
  const double c = cosine_of_rest(rest, low);
  const bool swapped = (quadrant & 1) != 0;
  sine = swapped ? c : s;
  cosine = swapped ? s : c;
  if ((quadrant & 2) != 0) sine = -sine;
  if (((quadrant + 1) & 2) != 0) cosine = -cosine;
}

}  // namespace cairn::elementary
