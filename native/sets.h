// Sets of intervals of time, ends exclusive: what base/intervals.py says in Python. A set is merged: sorted, disjoint, with
// none that is empty or touches the next one. Whatever the times are, only the arrays are touched.
#ifndef SETS_H
#define SETS_H

#include "bytes.h"

// A set that is being made of intervals in order of their starts, of which `last` is the latest.
typedef struct {
    int64_t *starts, *ends, made, last;
} Union;

// False if the interval begins before the latest one.
static inline bool add_interval(Union *set, int64_t start, int64_t end) {
    if (end <= start) return true;
    if (start < set->last) return false;
    set->last = start;
    if (set->made && start <= set->ends[set->made - 1]) {
        if (end > set->ends[set->made - 1]) set->ends[set->made - 1] = end;
    } else {
        set->starts[set->made] = start;
        set->ends[set->made++] = end;
    }
    return true;
}

// The union of intervals in order of their starts; returns its size, or -1 if they aren't in order.
static int64_t merge_intervals(
    const int64_t *starts, const int64_t *ends, size_t count, int64_t *made_starts, int64_t *made_ends
) {
    Union set = {made_starts, made_ends, 0, INT64_MIN};
    for (size_t i = 0; i < count; i++)
        if (!add_interval(&set, starts[i], ends[i])) return -1;
    return set.made;
}

// The union of two sets. There is room for all intervals of both.
static size_t unite(
    const int64_t *starts, const int64_t *ends, size_t count, const int64_t *other_starts, const int64_t *other_ends,
    size_t other_count, int64_t *made_starts, int64_t *made_ends
) {
    size_t made = 0, i = 0, j = 0;
    while (i < count || j < other_count) {
        bool first = j == other_count || (i < count && starts[i] <= other_starts[j]);
        int64_t start = first ? starts[i] : other_starts[j], end = first ? ends[i++] : other_ends[j++];
        if (made && start <= made_ends[made - 1]) {
            if (end > made_ends[made - 1]) made_ends[made - 1] = end;
        } else {
            made_starts[made] = start;
            made_ends[made++] = end;
        }
    }
    return made;
}

// The time in both sets. There is room for all intervals of both.
static size_t intersect(
    const int64_t *starts, const int64_t *ends, size_t count, const int64_t *other_starts, const int64_t *other_ends,
    size_t other_count, int64_t *made_starts, int64_t *made_ends
) {
    size_t made = 0, i = 0, j = 0;
    while (i < count && j < other_count) {
        int64_t start = starts[i] > other_starts[j] ? starts[i] : other_starts[j];
        int64_t end = ends[i] < other_ends[j] ? ends[i] : other_ends[j];
        made_starts[made] = start;
        made_ends[made] = end;
        made += start < end;
        if (ends[i] <= other_ends[j]) i++;
        else j++;
    }
    return made;
}

// The time in the first set and not in the other. There is room for all intervals of both.
static size_t subtract(
    const int64_t *starts, const int64_t *ends, size_t count, const int64_t *other_starts, const int64_t *other_ends,
    size_t other_count, int64_t *made_starts, int64_t *made_ends
) {
    size_t made = 0, j = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t start = starts[i];
        while (j < other_count && other_ends[j] <= start) j++;
        for (; j < other_count && other_starts[j] < ends[i]; j++) {
            if (start < other_starts[j]) {
                made_starts[made] = start;
                made_ends[made++] = other_starts[j];
            }
            start = other_ends[j];
            if (start >= ends[i]) break; // it may reach into the next one
        }
        if (start < ends[i]) {
            made_starts[made] = start;
            made_ends[made++] = ends[i];
        }
    }
    return made;
}

#endif
