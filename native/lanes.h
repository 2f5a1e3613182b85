// Sixteen and more bytes at once, with the vectors of Clang and gcc; only how a comparison becomes bits is per processor.
// Nothing here reads outside of the bytes that its comment names.
#ifndef LANES_H
#define LANES_H

#include "bytes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef uint8_t Lanes __attribute__((vector_size(16)));

static inline Lanes load_lanes(const uint8_t *p) {
    Lanes lanes;
    memcpy(&lanes, p, sizeof lanes);
    return lanes;
}

static inline Lanes equals(Lanes lanes, uint8_t byte) { return (Lanes)(lanes == (Lanes){0} + byte); }

// Bit i: lane i is set. Each lane is 0 or 255.
static inline uint32_t lane_bits(Lanes lanes) {
#if defined(__SSE2__)
    return (uint32_t)_mm_movemask_epi8((__m128i)lanes);
#else
    uint64_t halves[2];
    memcpy(halves, &lanes, sizeof halves);
    for (int at = 0; at < 2; at++) halves[at] = (halves[at] & 0x8080808080808080u) * 0x0002040810204081u >> 56;
    return (uint32_t)(halves[0] | halves[1] << 8);
#endif
}

static inline uint64_t lane_bits64(Lanes a, Lanes b, Lanes c, Lanes d) {
#if defined(__aarch64__)
    const Lanes places = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t front = vpaddq_u8((uint8x16_t)(a & places), (uint8x16_t)(b & places));
    uint8x16_t back = vpaddq_u8((uint8x16_t)(c & places), (uint8x16_t)(d & places));
    front = vpaddq_u8(front, back);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(front, front)), 0);
#else
    uint64_t low = lane_bits(a) | (uint64_t)lane_bits(b) << 16;
    return low | (lane_bits(c) | (uint64_t)lane_bits(d) << 16) << 32;
#endif
}

static inline Lanes equal_lanes(const uint8_t *a, const uint8_t *b) {
    return (Lanes)(load_lanes(a) == load_lanes(b));
}

// Whether the first n bytes are the same, 0 < n <= 32; reads 32 bytes of both.
static inline bool same32(const uint8_t *a, const uint8_t *b, size_t n) {
    uint32_t equal = lane_bits(equal_lanes(a, b)) | lane_bits(equal_lanes(a + 16, b + 16)) << 16;
    return ~equal << (32 - n) == 0;
}

// Whether the first n bytes are the same, 0 < n <= 64; reads 64 bytes of both.
static inline bool same64(const uint8_t *a, const uint8_t *b, size_t n) {
    uint64_t equal = lane_bits64(
        equal_lanes(a, b), equal_lanes(a + 16, b + 16), equal_lanes(a + 32, b + 32), equal_lanes(a + 48, b + 48)
    );
    return ~equal << (64 - n) == 0;
}

// Whether n bytes are the same, n >= 32.
static inline bool same_long(const uint8_t *a, const uint8_t *b, size_t n) {
    for (size_t i = 0; i + 32 <= n; i += 32)
        if (!same32(a + i, b + i, 32)) return false;
    return same32(a + n - 32, b + n - 32, 32);
}

// Where `byte` is in [p, p + 32).
static inline uint32_t find32(const uint8_t *p, uint8_t byte) {
    return lane_bits(equals(load_lanes(p), byte)) | lane_bits(equals(load_lanes(p + 16), byte)) << 16;
}

// How many of the bytes [p, p + 16) are digits, up to the first that is none.
static inline uint32_t count_digits(const uint8_t *p) {
    Lanes lanes = load_lanes(p) - '0';
    return (uint32_t)__builtin_ctz(lane_bits((Lanes)(lanes > 9)) | 1u << 16);
}

// The number of eight decimal digits, each the value of a byte, the first in the lowest one.
static inline uint64_t join_digits(uint64_t digits) {
    digits = digits * 2561 >> 8 & 0x00ff00ff00ff00ffu;
    digits = digits * 6553601 >> 16 & 0x0000ffff0000ffffu;
    return digits * 42949672960001u >> 32;
}

// The number of the n decimal digits at p, 0 < n <= 16; reads 16 bytes.
static inline uint64_t read_digits(const uint8_t *p, uint32_t n) {
    const uint64_t zeros = 0x3030303030303030u;
    if (n <= 8) return join_digits((load64(p) ^ zeros) << (64 - 8 * n));
    uint64_t front = join_digits((load64(p) ^ zeros) << (128 - 8 * n));
    return front * 100000000 + join_digits(load64(p + n - 8) ^ zeros);
}

#endif
