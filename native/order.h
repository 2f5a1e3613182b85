// Entries in order of their values, and places among values that are in order.
#ifndef ORDER_H
#define ORDER_H

#include "bytes.h"

enum { SHORT_RUN = 16 };

typedef struct {
    int64_t value, at;
} Entry;

// Merges [begin, middle) and [middle, end), both sorted; of equal values those of the first come first.
static inline void merge_entries(const Entry *from, size_t begin, size_t middle, size_t end, Entry *to) {
    size_t one = begin, other = middle;
    for (size_t at = begin; at < end; at++)
        to[at] = one < middle && (other == end || from[one].value <= from[other].value) ? from[one++] : from[other++];
}

// Sorts entries by value, stable. `scratch` has as many.
static void sort_entries(Entry *entries, Entry *scratch, size_t count) {
    for (size_t begin = 0; begin < count; begin += SHORT_RUN) {
        size_t end = count - begin > SHORT_RUN ? begin + SHORT_RUN : count;
        for (size_t i = begin + 1; i < end; i++) {
            Entry entry = entries[i];
            size_t at = i;
            for (; at > begin && entries[at - 1].value > entry.value; at--) entries[at] = entries[at - 1];
            entries[at] = entry;
        }
    }
    Entry *from = entries, *to = scratch;
    for (size_t length = SHORT_RUN; length < count; length *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * length) {
            size_t middle = count - begin > length ? begin + length : count;
            merge_entries(from, begin, middle, count - begin > 2 * length ? begin + 2 * length : count, to);
        }
        Entry *made = to;
        to = from, from = made;
    }
    if (from != entries) memcpy(entries, from, count * sizeof *entries);
}

static inline bool is_before(int64_t one, int64_t value, bool right) { return one < value || (right && one == value); }

// How many of the sorted entries are less than a value (or, with `right`, no more than it), looked for from a place on.
static inline size_t find(const int64_t *sorted, size_t length, int64_t value, bool right, size_t place) {
    size_t low, high, step = 1; // it is in [low, high]
    if (place < length && is_before(sorted[place], value, right)) {
        for (low = place + 1, high = low; high < length && is_before(sorted[high], value, right); step *= 2) {
            low = high + 1;
            high = length - low > step ? low + step : length;
        }
    } else {
        for (high = place, low = place; low && !is_before(sorted[low - 1], value, right); step *= 2) {
            high = low - 1;
            low = high > step ? high - step : 0;
        }
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before(sorted[middle], value, right)) low = middle + 1;
        else high = middle;
    }
    return low;
}

#endif
