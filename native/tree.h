// The call tree of a trace's slices, what model/calls/calltree.py says in Python: thread by thread, by
// a stack of those that are open. Whatever the times are, only the arrays are touched: times are compared, never added.
#ifndef TREE_H
#define TREE_H

#include "bytes.h"

typedef struct {
    int64_t begin, finish;
    int32_t row, thread;
} Slice;

static bool is_before(const Slice *one, const Slice *other) {
    if (one->begin != other->begin) return one->begin < other->begin;
    return one->finish > other->finish;
}

// Merges two neighbors that are in order; equal ones stay in the order in which they lie. Only the part in which they
// overlap moves: in a file, a run mostly begins where the one before ends.
static void merge_runs(Slice *slices, size_t middle, size_t count, Slice *spare) {
    size_t low = 0, high = middle;
    while (low < high) {
        size_t half = low + (high - low) / 2;
        if (is_before(&slices[middle], &slices[half])) high = half;
        else low = half + 1;
    }
    size_t left = 0, right = middle, moved = middle - low;
    memcpy(spare, slices + low, moved * sizeof *slices);
    for (size_t at = low; left < moved; at++) {
        bool takes_right = right < count && is_before(&slices[right], &spare[left]);
        slices[at] = takes_right ? slices[right++] : spare[left++];
    }
}

static size_t run_length(const Slice *slices, size_t count) {
    size_t length = 1;
    while (length < count && !is_before(&slices[length], &slices[length - 1])) length++;
    return length;
}

// Sorts by begin, longer first, in the order of the file. It holds few long runs, which are merged with as many others.
static void sort_slices(Slice *slices, size_t count, Slice *spare) {
    size_t begins[64], runs[64], deep = 0; // each merged stretch has more runs than all after it
    for (size_t at = 0; at < count;) {
        begins[deep] = at;
        runs[deep++] = 1;
        at += run_length(slices + at, count - at);
        for (; deep > 1 && (runs[deep - 2] <= runs[deep - 1] || at == count); deep--) {
            size_t first = begins[deep - 2];
            merge_runs(slices + first, begins[deep - 1] - first, at - first, spare);
            runs[deep - 2] += runs[deep - 1];
        }
    }
}

// Puts `count` rows into `slices`, by thread, begin, longer first. `next` is room for one number per thread, and zero;
// `spare` is as long as `slices`. False, and nothing is done, if a row or a thread is out of bounds.
static bool arrange(
    const int32_t *rows, size_t count, const int64_t *start, const int64_t *finish, const int32_t *thread, size_t events,
    size_t threads, Slice *slices, Slice *spare, size_t *next
) {
    for (size_t at = 0; at < count; at++) {
        if (rows[at] < 0 || (size_t)rows[at] >= events) return false;
        int32_t owner = thread[rows[at]];
        if (owner < 0 || (size_t)owner >= threads) return false;
        next[owner]++;
    }
    size_t sum = 0;
    for (size_t owner = 0; owner < threads; owner++) {
        size_t here = next[owner];
        next[owner] = sum;
        sum += here;
    }
    for (size_t at = 0; at < count; at++) {
        int32_t row = rows[at];
        slices[next[thread[row]]++] = (Slice){start[row], finish[row], row, thread[row]};
    }
    size_t first = 0;
    for (size_t owner = 0; owner < threads; owner++) {
        sort_slices(slices + first, next[owner] - first, spare);
        first = next[owner];
    }
    return true;
}

// Nests slices in that order and takes them out, but for what sticks out of the one that it begins in: these move to the
// front, for the next lane. Writes parent, depth and lane of each that fits at its row, and the rows in order. Says how
// many fit. `open` is as long as `slices`.
static size_t nest_lane(
    Slice *slices, size_t count, int32_t number, int32_t *parent, int32_t *depth, int32_t *lane, int32_t *nested,
    Slice *open
) {
    size_t deep = 0, fit = 0, left = 0;
    for (size_t at = 0; at < count; at++) {
        const Slice slice = slices[at];
        while (deep && (open[deep - 1].thread != slice.thread || open[deep - 1].finish <= slice.begin)) deep--;
        if (deep && slice.finish > open[deep - 1].finish) {
            slices[left++] = slice;
            continue;
        }
        parent[slice.row] = deep ? open[deep - 1].row : -1;
        depth[slice.row] = (int32_t)deep;
        lane[slice.row] = number;
        nested[fit++] = slice.row;
        if (slice.begin < slice.finish) open[deep++] = slice;
    }
    return fit;
}

// Of slices of one thread that nest, in the order of `arrange`: when another one begins to be the innermost (`times`, in
// order), and which is before each of these and after the last (`running`, one more; -1: none). Says how many times there
// are, two for each slice that lasts. `open` is room for `count` rows.
static size_t changes(
    const int32_t *rows, size_t count, const int64_t *start, const int64_t *finish, const int32_t *parent, size_t events,
    int64_t *times, int32_t *running, int32_t *open
) {
    size_t deep = 0, made = 0;
    running[0] = -1;
    for (size_t at = 0; at <= count; at++) {
        int32_t row = at < count ? rows[at] : -1;
        if (at < count && (row < 0 || (size_t)row >= events || finish[row] <= start[row])) continue;
        while (deep && (row < 0 || finish[open[deep - 1]] <= start[row])) {
            int32_t ended = open[--deep];
            times[made++] = finish[ended];
            running[made] = parent[ended];
        }
        if (row < 0) break;
        times[made++] = start[row];
        running[made] = row;
        open[deep++] = row;
    }
    return made;
}

// Of rows whose parents come before them: the innermost operator around each, -1: none.
static void enclosing(
    const int32_t *rows, size_t count, const int32_t *parent, const uint8_t *is_operator, size_t events, int32_t *around
) {
    for (size_t at = 0; at < count; at++) {
        if (rows[at] < 0 || (size_t)rows[at] >= events) continue;
        int32_t above = parent[rows[at]];
        if (above >= 0 && (size_t)above < events) around[rows[at]] = is_operator[above] ? above : around[above];
    }
}

#endif
