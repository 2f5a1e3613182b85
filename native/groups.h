// Values by group: the middle ones, found without sorting, and windows numbered by what came before them.
#ifndef GROUPS_H
#define GROUPS_H

#include "bytes.h"

// The values around the middle of a group of two or more: what is the median of the others depends on which are larger.
// `left`: how many entries with the upper middle value come before the one that a stable sort puts in the middle.
typedef struct {
    int64_t low, after_low, high, after_high, left;
} Middle;

static inline int64_t middle_of_three(int64_t one, int64_t two, int64_t three) {
    int64_t low = one < two ? one : two, high = one < two ? two : one;
    return three < low ? low : three > high ? high : three;
}

// Moves values such that `wanted` has the one that sorting puts there, with none larger before and none less after it.
// Which values it compares with follows from no order that a trace could have on purpose.
static void select_value(int64_t *values, size_t count, size_t wanted) {
    uint64_t seed = count;
    int64_t low = 0, high = (int64_t)count - 1, place = (int64_t)wanted;
    while (low < high) {
        int64_t drawn[3], begin = low, end = high;
        for (int i = 0; i < 3; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            drawn[i] = values[low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1))];
        }
        int64_t pivot = middle_of_three(drawn[0], drawn[1], drawn[2]);
        while (begin <= end) {
            while (values[begin] < pivot) begin++;
            while (values[end] > pivot) end--;
            if (begin > end) break;
            int64_t value = values[begin];
            values[begin++] = values[end], values[end--] = value;
        }
        if (place <= end) high = end;
        else if (place >= begin) low = begin;
        else return;
    }
}

// Finds what is in the middle of `count` values, which it moves.
static Middle find_middle(int64_t *values, size_t count) {
    size_t high = (count - 1) / 2;
    select_value(values, count, high);
    int64_t middle = values[high], below = INT64_MIN, above = INT64_MAX, left = (int64_t)high;
    for (size_t i = 0; i < high; i++) {
        if (values[i] > below) below = values[i];
        left -= values[i] < middle;
    }
    for (size_t i = high + 1; i < count; i++)
        if (values[i] < above) above = values[i];
    // Of an even number the median of the others is one value, of an odd number it lies between two.
    if (count % 2 == 0) return (Middle){middle, above, middle, above, left};
    return (Middle){below, middle, middle, above, left};
}

// Puts the values of each number together, in `scratch`. `next` has where those of each begin, and in the end where they end.
static void gather_values(const int64_t *number, const int64_t *values, size_t count, int64_t *next, int64_t *scratch) {
    for (size_t i = 0; i < count; i++) scratch[next[number[i]]++] = values[i];
}

static int64_t median_without(const Middle *middle, int64_t value) {
    int64_t below = value <= middle->low ? middle->after_low : middle->low;
    int64_t above = value <= middle->high ? middle->after_high : middle->high;
    // A difference that doesn't fit wraps around, as numpy's do.
    int64_t half = (int64_t)((uint64_t)above - (uint64_t)below) >> 1;
    return (int64_t)((uint64_t)below + (uint64_t)half);
}

// A window of a step, reached from the one before it in its step (-2 - step for the first one) by a kind.
typedef struct {
    int32_t before, kind;
} Window;

// Windows that are known, in a table of `capacity` slots, a power of two, each with the number of a window or -1.
typedef struct {
    int32_t *slots;
    Window *windows;
    size_t capacity, made;
} Windows;

// Returns the number of a window, and makes it if it is a new one; -1 if there is no room.
static int32_t number_window(Windows *known, Window wanted) {
    uint64_t key = (uint64_t)(uint32_t)wanted.before << 32 | (uint32_t)wanted.kind;
    key = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
    size_t mask = known->capacity - 1, slot = (size_t)(key >> 32 ^ key) & mask;
    for (; known->slots[slot] >= 0; slot = (slot + 1) & mask) {
        const Window *found = &known->windows[known->slots[slot]];
        if (found->before == wanted.before && found->kind == wanted.kind) return known->slots[slot];
    }
    if (known->made == known->capacity / 2) return -1;
    known->windows[known->made] = wanted;
    return known->slots[slot] = (int32_t)known->made++;
}

#endif
