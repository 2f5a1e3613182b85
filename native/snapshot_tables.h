// Arrays that grow within a budget, and tables that give each distinct text, frame, stack and label one code.
#ifndef SNAPSHOT_TABLES_H
#define SNAPSHOT_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

typedef enum { READING, DONE, TRUNCATED, REFUSED, MALFORMED, UNUSUAL, OVER_BUDGET, NO_MEMORY, NO_SNAPSHOT } Status;

enum { LARGE_BYTES = 1 << 25 };
enum { NOT_FOUND = UINT32_MAX, CODE_BITS = 28 };
#define MAX_CODES ((uint64_t)1 << CODE_BITS)

// What all arrays of a reader may take together, in bytes.
typedef struct {
    uint64_t used, limit;
    Status status;
} Budget;

static bool fail(Budget *budget, Status status) {
    budget->status = status;
    return false;
}

// Makes room for `more` elements behind the `used` ones.
static bool grow_array(Budget *budget, void **array, uint64_t used, uint64_t *capacity, size_t size, uint64_t more) {
    if (LIKELY(used + more <= *capacity)) return true;
    uint64_t bytes = *capacity * size;  // a large array has little room to spare: that would count as used
    uint64_t wanted = *capacity + *capacity / (bytes < LARGE_BYTES ? 2 : 16);
    if (wanted < used + more) wanted = used + more;
    if (wanted < 64) wanted = 64;
    uint64_t extra = (wanted - *capacity) * size;
    if (budget->used + extra > budget->limit) return fail(budget, OVER_BUDGET);
    void *moved = realloc(*array, (size_t)(wanted * size));
    if (!moved) return fail(budget, NO_MEMORY);
    budget->used += extra;
    *array = moved;
    *capacity = wanted;
    return true;
}

#define ARRAY(type) struct { type *items; uint64_t count, capacity; }
#define GROW(budget, array, more) \
    grow_array(budget, (void **)&(array).items, (array).count, &(array).capacity, sizeof *(array).items, more)

static inline uint64_t load64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }
static inline uint32_t load32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static inline uint16_t load16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }

// Numbers in four bytes each, as their distance from the base of their run; one that is too far begins a run. The
// budget counts eight bytes of each from the beginning, so that there is room to widen them.
typedef struct { uint64_t begin; int64_t base; } Run;
typedef struct {
    void *items;  // int32_t[], once they are wide int64_t[]
    uint64_t capacity;
    ARRAY(Run) runs;
    bool is_wide;
} Numbers;

static bool grow_numbers(Budget *budget, Numbers *numbers, uint64_t count) {
    if (LIKELY(count < numbers->capacity)) return true;
    uint64_t former = numbers->capacity;
    if (!grow_array(budget, &numbers->items, count, &numbers->capacity, 4, 1)) return false;
    uint64_t reserved = (numbers->capacity - former) * 4;
    if (budget->used + reserved > budget->limit) return fail(budget, OVER_BUDGET);
    budget->used += reserved;
    return true;
}

// Sets number `at`, the one behind the last.
static inline bool add_number(Budget *budget, Numbers *numbers, uint64_t at, int64_t value) {
    uint64_t known = numbers->runs.count, distance = 0;
    if (LIKELY(known)) distance = (uint64_t)value - (uint64_t)numbers->runs.items[known - 1].base;
    if (UNLIKELY(!known || distance + ((uint64_t)1 << 31) > UINT32_MAX)) {
        if (!GROW(budget, numbers->runs, 1)) return false;
        numbers->runs.items[numbers->runs.count++] = (Run){at, value};
        distance = 0;
    }
    uint32_t narrow = (uint32_t)distance;
    memcpy((uint8_t *)numbers->items + at * 4, &narrow, 4);
    return true;
}

// Makes the first `count` numbers eight bytes each, in place: from the last one on, so that none is overwritten.
static bool widen(Numbers *numbers, uint64_t count) {
    if (count) {
        uint8_t *wide = realloc(numbers->items, (size_t)(count * 8));
        if (!wide) return false;
        numbers->items = wide;
        for (uint64_t i = numbers->runs.count, end = count; i--; end = numbers->runs.items[i].begin) {
            const Run *run = &numbers->runs.items[i];
            for (uint64_t at = end; at-- > run->begin;) {
                int32_t narrow;
                memcpy(&narrow, wide + at * 4, 4);
                uint64_t value = (uint64_t)run->base + (uint64_t)(int64_t)narrow;
                memcpy(wide + at * 8, &value, 8);
            }
        }
    }
    numbers->is_wide = true;
    return true;
}

// Codes in two bytes each, until one needs four. The budget counts four bytes of each from the beginning.
typedef struct {
    void *items;  // uint16_t[], once they are wide uint32_t[]
    uint64_t capacity;
    bool is_wide;
} Codes;

// Makes the first `count` codes four bytes each, in place, from the last one on.
static bool widen_codes(Codes *codes, uint64_t count) {
    if (codes->is_wide) return true;
    if (codes->capacity) {
        uint8_t *wide = realloc(codes->items, (size_t)(codes->capacity * 4));
        if (!wide) return false;
        codes->items = wide;
        for (uint64_t at = count; at--;) {
            uint32_t code = load16(wide + at * 2);
            memcpy(wide + at * 4, &code, 4);
        }
    }
    codes->is_wide = true;
    return true;
}

// Sets code `at`, the one behind the last.
static inline bool add_code(Budget *budget, Codes *codes, uint64_t at, uint32_t code) {
    if (UNLIKELY(at >= codes->capacity)) {
        uint64_t former = codes->capacity;
        if (!grow_array(budget, &codes->items, at, &codes->capacity, codes->is_wide ? 4 : 2, 1)) return false;
        uint64_t reserved = codes->is_wide ? 0 : (codes->capacity - former) * 2;
        if (budget->used + reserved > budget->limit) return fail(budget, OVER_BUDGET);
        budget->used += reserved;
    }
    if (UNLIKELY(code > UINT16_MAX) && !widen_codes(codes, at)) return fail(budget, NO_MEMORY);
    if (codes->is_wide) memcpy((uint8_t *)codes->items + at * 4, &code, 4);
    else memcpy((uint8_t *)codes->items + at * 2, &(uint16_t){(uint16_t)code}, 2);
    return true;
}

static void free_numbers(Numbers *numbers) {
    free(numbers->items);
    free(numbers->runs.items);
}

static inline uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

static uint64_t hash_bytes(uint64_t seed, const void *bytes, uint64_t size) {
    const uint8_t *p = bytes;
    uint64_t hash = mix(seed, size);
    for (; size >= 8; p += 8, size -= 8) hash = mix(hash, load64(p));
    uint64_t rest = 0;
    for (; size; size--) rest = rest << 8 | *p++;
    return mix(hash, rest);
}

// Distinct rows of bytes, one behind the other: row i ends at ends[i]. Hashes are 32 bits; a slot holds code + 1.
typedef struct {
    ARRAY(uint8_t) bytes;
    ARRAY(uint64_t) ends;
    ARRAY(uint32_t) hashes;
    uint32_t *slots;
    uint64_t mask;
} Interned;

static inline uint64_t row_begin(const Interned *table, uint32_t code) { return code ? table->ends.items[code - 1] : 0; }

static bool grow_slots(Budget *budget, Interned *table) {
    uint64_t size = table->slots ? (table->mask + 1) * 2 : 256, former = table->slots ? table->mask + 1 : 0;
    if (budget->used + (size - former) * 4 > budget->limit) return fail(budget, OVER_BUDGET);
    uint32_t *slots = calloc(size, 4);
    if (!slots) return fail(budget, NO_MEMORY);
    budget->used += (size - former) * 4;
    free(table->slots);
    table->slots = slots;
    table->mask = size - 1;
    for (uint64_t code = 0; code < table->hashes.count; code++) {
        uint64_t at = table->hashes.items[code] & table->mask;
        while (slots[at]) at = (at + 1) & table->mask;
        slots[at] = (uint32_t)code + 1;
    }
    return true;
}

// The code of a row of bytes, a new one if it is new; NOT_FOUND, and a status, if there is no room for it.
static uint32_t intern(Budget *budget, Interned *table, uint64_t seed, const void *row, uint64_t size) {
    uint32_t hash = (uint32_t)hash_bytes(seed, row, size);
    if (UNLIKELY(table->ends.count * 2 >= table->mask) && !grow_slots(budget, table)) return NOT_FOUND;
    uint64_t at = hash & table->mask;
    for (uint32_t code; table->slots[at]; at = (at + 1) & table->mask) {
        code = table->slots[at] - 1;
        if (table->hashes.items[code] != hash) continue;
        uint64_t begin = row_begin(table, code);
        if (table->ends.items[code] - begin == size && !(size && memcmp(table->bytes.items + begin, row, size))) return code;
    }
    uint64_t code = table->ends.count;
    if (code >= MAX_CODES) { fail(budget, OVER_BUDGET); return NOT_FOUND; }
    if (!GROW(budget, table->bytes, size) || !GROW(budget, table->ends, 1) || !GROW(budget, table->hashes, 1)) return NOT_FOUND;
    if (size) memcpy(table->bytes.items + table->bytes.count, row, size);
    table->bytes.count += size;
    table->ends.items[table->ends.count++] = table->bytes.count;
    table->hashes.items[table->hashes.count++] = hash;
    table->slots[at] = (uint32_t)code + 1;
    return (uint32_t)code;
}

static void free_interned(Interned *table) {
    free(table->bytes.items);
    free(table->ends.items);
    free(table->hashes.items);
    free(table->slots);
}

#endif
