// The operations of a job in the order in which they are replayed: what analyses/distributed/replay.py says in Python.
// Ranks come one after the other, their operations in order of their starts.
#ifndef NETWORK_H
#define NETWORK_H

#include "bytes.h"
#include "order.h"

// Operations as a job records them. `instance` is the collective, one of `collectives`; an operation that isn't `compared`
// is one of its own. `previous` is an operation that ended before, -1 for none.
typedef struct {
    uint64_t operations, ranks, collectives;
    const int64_t *bounds; // of the operations of each rank
    const int32_t *member; // the rank of each
    const int64_t *start, *end, *instance, *waiting, *previous, *slack, *stall;
    const uint8_t *compared;
} Recorded;

// Scratch by operation: the order of ends within each rank, what a rank comes to (in that order), its place in the order of
// replay, its run, and its number among the stalls. By collective: how many ranks haven't come to it, and the first of those
// that are due. By rank: what it has come to, and its last stall. The others have room for `most`, the operations of the
// rank with the most of them or the number of ranks, `entries` for twice as many, and those of a tile for `tile`, no fewer
// than a rank has: the last stall before each operation, and what came last before its own stall (a stall, and an operation).
typedef struct {
    uint64_t most, tile;
    int32_t *by_end;
    uint32_t *turn;
    int32_t *place, *run, *stall_of, *missing, *due, *head, *last_stall, *next;
    int64_t *stall_ends;
    Entry *entries;
    int32_t *before, *stalled_before, *before_stall; // of a tile
} NetworkScratch;

// What is made, as in `Job` and `Moments`: levels, runs of one collective, stalls, and moments of operations, stalls, and
// the ends of ranks. Of each moment, `until` is the last operation before it, `since` the last one before its last stall.
typedef struct {
    uint64_t levels, runs, stalls, finals;
    int64_t *bounds, *stall_bounds, *run_begins, *number;
    int32_t *previous;
    int64_t *slack, *gap, *waited;
    uint8_t *last_arrival;
    int64_t *stall_run, *stall_length;
    int32_t *member[3], *stall[3], *until[3], *since[3];
} Network;

// Ranks that are looked at later, whose numbers are asked for ahead: those of a rank lie on a page of their own.
enum { AHEAD = 16 };

static const int64_t NO_PREVIOUS = (int64_t)1 << 60;

static void order_by_end(const Recorded *given, const NetworkScratch *scratch) {
    for (size_t rank = 0; rank < given->ranks; rank++) {
        size_t begin = (size_t)given->bounds[rank], count = (size_t)given->bounds[rank + 1] - begin;
        bool ordered = true;
        for (size_t i = 0; i < count; i++) {
            scratch->by_end[begin + i] = (int32_t)(begin + i);
            ordered = ordered && (!i || given->end[begin + i - 1] <= given->end[begin + i]);
        }
        if (ordered) continue;
        for (size_t i = 0; i < count; i++) scratch->entries[i] = (Entry){given->end[begin + i], (int64_t)(begin + i)};
        sort_entries(scratch->entries, scratch->entries + scratch->most, count);
        for (size_t i = 0; i < count; i++) scratch->by_end[begin + i] = (int32_t)scratch->entries[i].at;
    }
}

// The last of a rank's stalls that had ended by a time, -1 for none. `ends`: of its stalls, in the order of `by_end`.
static int32_t stall_before(const int64_t *ends, const int32_t *stalls, size_t count, int64_t time, size_t *place) {
    *place = find(ends, count, time, true, *place);
    return *place ? stalls[*place - 1] : -1;
}

// What came last before each operation of a rank, and before each of its stalls began. `first`: that of the tile.
static void find_stalls(const Recorded *given, const NetworkScratch *scratch, size_t rank, size_t first) {
    int32_t *stalls = scratch->next; // of this rank
    size_t begin = (size_t)given->bounds[rank], end = (size_t)given->bounds[rank + 1], count = 0;
    for (size_t i = begin; i < end; i++) {
        int32_t operation = scratch->by_end[i];
        if (given->stall[operation] <= 0) continue;
        stalls[count] = operation, scratch->stall_ends[count++] = given->end[operation];
    }
    scratch->last_stall[rank] = count ? stalls[count - 1] : -1;
    size_t at = 0, stalled_at = 0, started = 0;
    for (size_t i = begin; i < end; i++) {
        int64_t reached = (int64_t)((uint64_t)given->start[i] - (uint64_t)given->slack[i]);
        scratch->before[i - first] = stall_before(scratch->stall_ends, stalls, count, reached, &at);
        scratch->before_stall[i - first] = -1;
        if (given->stall[i] <= 0) continue;
        int64_t stalled = (int64_t)((uint64_t)given->end[i] - (uint64_t)given->stall[i]);
        scratch->stalled_before[i - first] = stall_before(scratch->stall_ends, stalls, count, stalled, &stalled_at);
        started = find(&given->start[begin], end - begin, stalled, true, started);
        // Before a rank's first operation comes the last one of the rank before, which is as good as none.
        scratch->before_stall[i - first] = (int32_t)((begin + started ? begin + started : (size_t)given->operations) - 1);
    }
}

// What each rank comes to, in order of its ends: twice the collective's number, counted from 1, 0 for an operation that
// isn't compared, and 1 more if it stalled. A level looks at one number of each rank, and finds many of them in the
// processor's cache.
static void list_turns(const Recorded *given, const NetworkScratch *scratch) {
    for (size_t i = 0; i < given->collectives; i++) scratch->missing[i] = 0, scratch->due[i] = -1;
    for (size_t i = 0; i < given->operations; i++) {
        int32_t operation = scratch->by_end[i];
        bool compared = given->compared[operation];
        scratch->turn[i] = (compared ? (uint32_t)given->instance[operation] + 1 : 0) << 1 | (given->stall[operation] > 0);
        if (compared) scratch->missing[given->instance[operation]]++;
    }
}

// A rank has come to its next operation.
static void arrive(const Recorded *given, const NetworkScratch *scratch, size_t rank) {
    if (scratch->head[rank] == given->bounds[rank + 1]) return;
    uint32_t collective = scratch->turn[scratch->head[rank]] >> 1;
    if (collective) scratch->missing[collective - 1]--;
}

// Assigns the operations to levels. Each rank goes through them in order of their ends; a collective is due when all its
// ranks have come to it. If none is due, the operation of the first rank that has any left is taken alone.
static void order_by_level(const Recorded *given, const NetworkScratch *scratch, Network *made) {
    size_t placed = 0;
    for (size_t rank = 0; rank < given->ranks; rank++) {
        scratch->head[rank] = (int32_t)given->bounds[rank];
        arrive(given, scratch, rank);
    }
    made->levels = made->runs = made->stalls = 0;
    while (placed < given->operations) {
        size_t found = 0, left = given->ranks;
        made->bounds[made->levels] = (int64_t)placed, made->stall_bounds[made->levels++] = (int64_t)made->stalls;
        for (size_t rank = given->ranks; rank-- > 0;) {
            if (rank >= AHEAD) {
                __builtin_prefetch(&scratch->turn[scratch->head[rank - AHEAD]]);
                __builtin_prefetch(&scratch->by_end[scratch->head[rank - AHEAD]]);
            }
            if (scratch->head[rank] == given->bounds[rank + 1]) continue;
            left = rank;
            int64_t collective = (int64_t)(scratch->turn[scratch->head[rank]] >> 1) - 1;
            bool alone = collective < 0;
            if (alone) collective = (int64_t)given->collectives + scratch->by_end[scratch->head[rank]];
            else if (scratch->missing[collective] > 0) continue;
            scratch->next[rank] = alone ? -1 : scratch->due[collective];
            if (alone || scratch->due[collective] < 0) scratch->entries[found++] = (Entry){collective, (int64_t)rank};
            if (!alone) scratch->due[collective] = (int32_t)rank;
        }
        if (!found) {
            scratch->next[left] = -1;
            scratch->entries[found++] = (Entry){-1, (int64_t)left};
        }
        sort_entries(scratch->entries, scratch->entries + scratch->most, found);
        for (size_t i = 0; i < found; i++) {
            int64_t collective = scratch->entries[i].value;
            int32_t rank = (int32_t)scratch->entries[i].at;
            if (collective < 0) collective = (int64_t)(scratch->turn[scratch->head[rank]] >> 1) - 1;
            else if (collective < (int64_t)given->collectives) rank = scratch->due[collective], scratch->due[collective] = -1;
            made->run_begins[made->runs] = (int64_t)placed;
            made->number[made->runs] = collective < (int64_t)given->collectives ? collective : (int64_t)given->collectives;
            for (; rank >= 0; rank = scratch->next[rank]) {
                int32_t head = scratch->head[rank]++, operation = scratch->by_end[head];
                scratch->run[operation] = (int32_t)made->runs, scratch->place[operation] = (int32_t)placed;
                if (scratch->turn[head] & 1) scratch->stall_of[operation] = (int32_t)made->stalls++;
                made->member[0][placed] = rank, made->until[0][placed++] = operation;
            }
            made->runs++;
        }
        // Only now, as what a rank comes to next isn't due in this level.
        for (size_t i = (size_t)made->bounds[made->levels - 1]; i < placed; i++)
            arrive(given, scratch, (size_t)made->member[0][i]);
    }
    made->bounds[made->levels] = (int64_t)placed, made->stall_bounds[made->levels] = (int64_t)made->stalls;
}

// `last`: the last stall before a moment, -1 for none.
static void set_stall(const NetworkScratch *scratch, Network *made, int kind, size_t at, int32_t last, size_t first) {
    made->stall[kind][at] = last < 0 ? (int32_t)made->stalls : scratch->stall_of[last];
    made->since[kind][at] = last < 0 ? -1 : scratch->before_stall[(size_t)last - first];
}

static void fill_operation(const Recorded *given, const NetworkScratch *scratch, Network *made, size_t i, size_t first) {
    size_t at = (size_t)scratch->place[i], run = (size_t)scratch->run[i];
    size_t end = run + 1 < made->runs ? (size_t)made->run_begins[run + 1] : (size_t)given->operations;
    int64_t previous = given->previous[i], waited = given->compared[i] ? given->waiting[i] : 0;
    made->previous[at] = previous < 0 ? (int32_t)made->runs : scratch->run[previous];
    made->gap[at] = previous < 0 ? NO_PREVIOUS : (int64_t)((uint64_t)given->start[i] - (uint64_t)given->end[previous]);
    made->slack[at] = given->slack[i];
    made->waited[at] = waited;
    made->last_arrival[at] = waited == 0 && end - (size_t)made->run_begins[run] > 1;
    set_stall(scratch, made, 0, at, scratch->before[i - first], first);
    if (given->stall[i] <= 0) return;
    size_t stall = (size_t)scratch->stall_of[i];
    made->stall_run[stall] = (int64_t)run, made->stall_length[stall] = given->stall[i];
    made->member[1][stall] = given->member[i], made->until[1][stall] = scratch->before_stall[i - first];
    set_stall(scratch, made, 1, stall, scratch->stalled_before[i - first], first);
}

// Fills what is replayed, a tile of ranks at once: rank after rank, each operation would lie on a page of its own.
static void fill_network(const Recorded *given, const NetworkScratch *scratch, Network *made) {
    made->finals = 0;
    for (size_t begin = 0, end = 0; begin < given->ranks; begin = end) {
        size_t first = (size_t)given->bounds[begin], most = 0;
        while (end < given->ranks && (size_t)given->bounds[end + 1] - first <= scratch->tile) {
            size_t count = (size_t)(given->bounds[end + 1] - given->bounds[end]);
            if (count > most) most = count;
            find_stalls(given, scratch, end++, first);
        }
        for (size_t turn = 0; turn < most; turn++)
            for (size_t rank = begin; rank < end; rank++)
                if (given->bounds[rank] + (int64_t)turn < given->bounds[rank + 1])
                    fill_operation(given, scratch, made, (size_t)given->bounds[rank] + turn, first);
        for (size_t rank = begin; rank < end; rank++) {
            if (given->bounds[rank] == given->bounds[rank + 1]) continue;
            made->member[2][made->finals] = (int32_t)rank;
            made->until[2][made->finals] = (int32_t)given->bounds[rank + 1] - 1;
            set_stall(scratch, made, 2, made->finals++, scratch->last_stall[rank], first);
        }
    }
}

#endif
