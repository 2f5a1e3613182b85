// Loading, comparing and hashing bytes. Nothing here reads outside [p, p + n).
#ifndef BYTES_H
#define BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define INLINE static inline __attribute__((always_inline))  // on the path that nearly all of a file takes
#define APART static __attribute__((noinline))               // beside it, so that registers are kept for that path

// What reading a value comes to. All but OK leave the reader as it was before the block.
enum {
    OK = 0,
    UNSURE = 1,    // no JSON, or spelled in a way that the caller's own decoder shall judge
    NO_MEMORY = 2,
};

static inline uint64_t load64(const uint8_t *p) {
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static inline uint32_t load32(const uint8_t *p) {
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static inline bool same(const uint8_t *a, const uint8_t *b, size_t n) {
    if (n >= 8) {
        for (size_t i = 0; i + 8 <= n; i += 8)
            if (load64(a + i) != load64(b + i)) return false;
        return load64(a + n - 8) == load64(b + n - 8);
    }
    if (n >= 4) return load32(a) == load32(b) && load32(a + n - 4) == load32(b + n - 4);
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i]) return false;
    return true;
}

static inline uint64_t mix(uint64_t a, uint64_t b) {
    a = (a ^ b) * 0x9e3779b97f4a7c15u;
    return a ^ a >> 32;
}

static inline uint64_t fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t fold_at(const uint8_t *p, uint64_t key) {
    return fold(load64(p) ^ key, load64(p + 8) ^ 0xd1b54a32d192ed03u);
}

// `seed` is drawn for each process: nobody can write a file whose texts all fall into one slot. Products don't wait for
// each other, and most texts, of 16 to 64 bytes, take the same steps whatever their length.
static inline uint32_t hash_bytes(const uint8_t *p, size_t n, uint64_t seed) {
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t key = seed ^ n * odd, hash = 0;
    if (LIKELY(n >= 16)) {
        size_t second = n < 32 ? n - 16 : 16, third = n < 32 ? 0 : n - 32;
        hash = fold_at(p, key) + fold_at(p + second, key + odd) + fold_at(p + third, ~key) + fold_at(p + n - 16, odd - key);
        for (size_t i = 32; UNLIKELY(i + 32 < n); i += 16) hash += fold_at(p + i, key += 2 * odd);
    } else if (n >= 8) {
        hash = fold(load64(p) ^ key, load64(p + n - 8) ^ odd);
    } else if (n >= 4) {
        hash = fold(load32(p) ^ key, load32(p + n - 4) ^ odd);
    } else {
        for (size_t i = 0; i < n; i++) hash = hash << 8 | p[i];
        hash ^= key;
    }
    return (uint32_t)fold(hash ^ seed, odd);
}

// Makes room for one more element; false if there is no memory, the array unchanged.
static inline bool reserve(void **array, uint32_t used, uint32_t *capacity, size_t size, uint32_t least) {
    if (LIKELY(used < *capacity)) return true;
    if (*capacity > UINT32_MAX / 4) return false;
    uint32_t more = *capacity ? *capacity * 2 : least;
    void *grown = realloc(*array, (size_t)more * size);
    if (!grown) return false;
    *array = grown;
    *capacity = more;
    return true;
}

#endif
