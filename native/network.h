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

// Room by operation: the order of ends within each rank, the last stall before it, what came last before its own stall
// (a stall, and an operation), its run, and its number among the stalls. By collective: how many ranks haven't come to it,
// and the first of those that are due. By rank: what it has come to, and its last stall. The others have room for `most`,
// the operations of the rank with the most of them or the number of ranks, and `entries` for twice as many.
typedef struct {
    uint64_t most;
    int32_t *by_end, *before, *stalled_before, *before_stall, *run, *stall_of, *missing, *due, *head, *last_stall, *next;
    int64_t *stall_ends;
    Entry *entries;
} NetworkRoom;

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

static const int64_t NO_PREVIOUS = (int64_t)1 << 60;

static int64_t collective_of(const Recorded *given, int32_t operation) {
    return given->compared[operation] ? given->instance[operation] : (int64_t)given->collectives + operation;
}

static void order_by_end(const Recorded *given, const NetworkRoom *room) {
    for (size_t rank = 0; rank < given->ranks; rank++) {
        size_t begin = (size_t)given->bounds[rank], count = (size_t)given->bounds[rank + 1] - begin;
        bool ordered = true;
        for (size_t i = 0; i < count; i++) {
            room->by_end[begin + i] = (int32_t)(begin + i);
            ordered = ordered && (!i || given->end[begin + i - 1] <= given->end[begin + i]);
        }
        if (ordered) continue;
        for (size_t i = 0; i < count; i++) room->entries[i] = (Entry){given->end[begin + i], (int64_t)(begin + i)};
        sort_entries(room->entries, room->entries + room->most, count);
        for (size_t i = 0; i < count; i++) room->by_end[begin + i] = (int32_t)room->entries[i].at;
    }
}

// The last of a rank's stalls that had ended by a time, -1 for none. `ends`: of its stalls, in the order of `by_end`.
static int32_t stall_before(const int64_t *ends, const int32_t *stalls, size_t count, int64_t time, size_t *place) {
    *place = find(ends, count, time, true, *place);
    return *place ? stalls[*place - 1] : -1;
}

// What came last before each operation, and before each stall began.
static void find_stalls(const Recorded *given, const NetworkRoom *room) {
    int32_t *stalls = room->next; // of one rank
    for (size_t rank = 0; rank < given->ranks; rank++) {
        size_t begin = (size_t)given->bounds[rank], end = (size_t)given->bounds[rank + 1], count = 0;
        for (size_t i = begin; i < end; i++) {
            int32_t operation = room->by_end[i];
            if (given->stall[operation] <= 0) continue;
            stalls[count] = operation, room->stall_ends[count++] = given->end[operation];
        }
        room->last_stall[rank] = count ? stalls[count - 1] : -1;
        size_t at = 0, stalled_at = 0, started = 0;
        for (size_t i = begin; i < end; i++) {
            int64_t reached = (int64_t)((uint64_t)given->start[i] - (uint64_t)given->slack[i]);
            room->before[i] = stall_before(room->stall_ends, stalls, count, reached, &at);
            room->before_stall[i] = -1;
            if (given->stall[i] <= 0) continue;
            int64_t stalled = (int64_t)((uint64_t)given->end[i] - (uint64_t)given->stall[i]);
            room->stalled_before[i] = stall_before(room->stall_ends, stalls, count, stalled, &stalled_at);
            started = find(&given->start[begin], end - begin, stalled, true, started);
            // Before a rank's first operation comes the last one of the rank before, which is as good as none.
            room->before_stall[i] = (int32_t)((begin + started ? begin + started : (size_t)given->operations) - 1);
        }
    }
}

// Assigns the operations to levels. Each rank goes through them in order of their ends; a collective is due when all its
// ranks have come to it. If none is due, the operation of the first rank that has any left is taken alone.
static void order_by_level(const Recorded *given, const NetworkRoom *room, Network *made) {
    size_t placed = 0;
    for (size_t i = 0; i < given->collectives; i++) room->missing[i] = 0, room->due[i] = -1;
    for (size_t i = 0; i < given->operations; i++)
        if (given->compared[i]) room->missing[given->instance[i]]++;
    for (size_t rank = 0; rank < given->ranks; rank++) {
        room->head[rank] = (int32_t)given->bounds[rank];
        if (given->bounds[rank] == given->bounds[rank + 1]) continue;
        int32_t first = room->by_end[room->head[rank]];
        if (given->compared[first]) room->missing[given->instance[first]]--;
    }
    made->levels = made->runs = 0;
    while (placed < given->operations) {
        size_t found = 0, left = given->ranks;
        made->bounds[made->levels++] = (int64_t)placed;
        for (size_t rank = given->ranks; rank-- > 0;) {
            if (room->head[rank] == given->bounds[rank + 1]) continue;
            left = rank;
            int64_t collective = collective_of(given, room->by_end[room->head[rank]]);
            bool alone = collective >= (int64_t)given->collectives;
            if (!alone && room->missing[collective] > 0) continue;
            room->next[rank] = alone ? -1 : room->due[collective];
            if (alone || room->due[collective] < 0) room->entries[found++] = (Entry){collective, (int64_t)rank};
            if (!alone) room->due[collective] = (int32_t)rank;
        }
        if (!found) {
            room->next[left] = -1;
            room->entries[found++] = (Entry){(int64_t)(given->collectives + given->operations), (int64_t)left};
        }
        sort_entries(room->entries, room->entries + room->most, found);
        for (size_t i = 0; i < found; i++) {
            int64_t collective = room->entries[i].value;
            int32_t rank = (int32_t)room->entries[i].at;
            if (collective < (int64_t)given->collectives) rank = room->due[collective], room->due[collective] = -1;
            made->run_begins[made->runs] = (int64_t)placed;
            for (; rank >= 0; rank = room->next[rank]) {
                int32_t operation = room->by_end[room->head[rank]++];
                room->run[operation] = (int32_t)made->runs;
                made->until[0][placed++] = operation;
            }
            made->runs++;
        }
        // Only now, as what a rank comes to next isn't due in this level.
        for (size_t i = (size_t)made->bounds[made->levels - 1]; i < placed; i++) {
            size_t rank = (size_t)given->member[made->until[0][i]];
            if (room->head[rank] == given->bounds[rank + 1]) continue;
            int32_t next = room->by_end[room->head[rank]];
            if (given->compared[next]) room->missing[given->instance[next]]--;
        }
    }
    made->bounds[made->levels] = (int64_t)placed;
}

static void number_stalls(const Recorded *given, const NetworkRoom *room, Network *made) {
    made->stalls = 0;
    for (size_t level = 0; level < made->levels; level++) {
        made->stall_bounds[level] = (int64_t)made->stalls;
        for (int64_t i = made->bounds[level]; i < made->bounds[level + 1]; i++)
            if (given->stall[made->until[0][i]] > 0) room->stall_of[made->until[0][i]] = (int32_t)made->stalls++;
    }
    made->stall_bounds[made->levels] = (int64_t)made->stalls;
}

static void set_moment(
    const NetworkRoom *room, Network *made, int kind, size_t at, int32_t member, int32_t last, int32_t until
) {
    made->member[kind][at] = member;
    made->stall[kind][at] = last < 0 ? (int32_t)made->stalls : room->stall_of[last];
    made->until[kind][at] = until;
    made->since[kind][at] = last < 0 ? -1 : room->before_stall[last];
}

static void fill_network(const Recorded *given, const NetworkRoom *room, Network *made) {
    size_t stall = 0;
    for (size_t run = 0; run < made->runs; run++) {
        size_t begin = (size_t)made->run_begins[run];
        size_t end = run + 1 < made->runs ? (size_t)made->run_begins[run + 1] : (size_t)given->operations;
        int64_t collective = collective_of(given, made->until[0][begin]);
        made->number[run] = collective < (int64_t)given->collectives ? collective : (int64_t)given->collectives;
        for (size_t i = begin; i < end; i++) {
            int32_t operation = made->until[0][i], member = given->member[operation];
            int64_t previous = given->previous[operation];
            made->previous[i] = previous < 0 ? (int32_t)made->runs : room->run[previous];
            made->gap[i] = previous < 0 ? NO_PREVIOUS
                                        : (int64_t)((uint64_t)given->start[operation] - (uint64_t)given->end[previous]);
            made->slack[i] = given->slack[operation];
            made->waited[i] = given->compared[operation] ? given->waiting[operation] : 0;
            made->last_arrival[i] = made->waited[i] == 0 && end - begin > 1;
            set_moment(room, made, 0, i, member, room->before[operation], operation);
            if (given->stall[operation] <= 0) continue;
            made->stall_run[stall] = (int64_t)run, made->stall_length[stall] = given->stall[operation];
            set_moment(room, made, 1, stall++, member, room->stalled_before[operation], room->before_stall[operation]);
        }
    }
    made->finals = 0;
    for (size_t rank = 0; rank < given->ranks; rank++)
        if (given->bounds[rank] < given->bounds[rank + 1])
            set_moment(
                room, made, 2, made->finals++, (int32_t)rank, room->last_stall[rank], (int32_t)given->bounds[rank + 1] - 1
            );
}

#endif
