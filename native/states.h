// The states of a thread over time, and its silences.
#ifndef STATES_H
#define STATES_H

#include "bytes.h"

// Sorted intervals that don't touch and whose borders are among the times of the states: what happens within has their
// cause, unless its own one is `kept` (by bits).
typedef struct {
    uint64_t count;
    const int64_t *starts, *ends;
    int64_t cause;
    uint64_t kept;
} Overlay;

// Slices that run before `count` times and after the last, further times at which a state ends, the causes of `events`,
// and the cause of a state without a slice.
typedef struct {
    uint64_t count, edges, events, overlays;
    const int64_t *times;
    const int32_t *row;
    const int64_t *edge;
    const int8_t *causes;
    const Overlay *overlay;
    int64_t unrecorded;
} Running;

// The slices of a thread's stack, and of all `events` when they begin, how long they last, and the codes of their names.
// `polls` says of `names` names whether events with one are left out.
typedef struct {
    uint64_t count, events, names;
    const int32_t *rows;
    const int64_t *start, *duration;
    const int32_t *name;
    const uint8_t *polls;
    int64_t least;
} Stack;

// Puts the further times before equal ones, and says which state ends at each. `cursors` has a 0 for each overlay.
static void list_states(const Running *given, uint64_t *cursors, int64_t *times, int32_t *row, int8_t *cause) {
    size_t at = 0, edge = 0, total = given->count + given->edges;
    for (size_t i = 0; i <= total; i++) {
        int32_t slice = given->row[at];
        int64_t found = slice >= 0 && (uint64_t)slice < given->events ? given->causes[slice] : given->unrecorded;
        row[i] = slice;
        if (i == total) {
            cause[i] = (int8_t)found;
            return;
        }
        bool is_edge = edge < given->edges && (at == given->count || given->edge[edge] <= given->times[at]);
        times[i] = is_edge ? given->edge[edge++] : given->times[at++];
        for (size_t each = 0; each < given->overlays && i && times[i] > times[i - 1]; each++) {
            const Overlay *inside = &given->overlay[each];
            uint64_t *cursor = &cursors[each];
            while (*cursor < inside->count && inside->ends[*cursor] <= times[i - 1]) ++*cursor;
            bool within = *cursor < inside->count && inside->starts[*cursor] <= times[i - 1];
            bool is_kept = found >= 0 && found < 64 && inside->kept >> found & 1;
            if (within && !is_kept) found = inside->cause;
        }
        cause[i] = (int8_t)found;
    }
}

// Lists the pauses of at least `least` between moments at which a slice begins or ends, and says how many there are; -1 if
// a row is out of bounds, or if the slices don't nest in order of their starts. `open` has room for each slice.
static int64_t list_silences(const Stack *given, int64_t *open, int64_t *since, int64_t *resume) {
    size_t depth = 0;
    int64_t made = 0, began = INT64_MIN;
    for (size_t i = 0; i <= given->count; i++) {
        int64_t begin = INT64_MAX, end = INT64_MAX;
        bool is_last = i == given->count;
        if (!is_last) {
            int32_t row = given->rows[i];
            if (row < 0 || (uint64_t)row >= given->events) return -1;
            int32_t name = given->name[row];
            if (name >= 0 && (uint64_t)name < given->names && given->polls[name]) continue;
            begin = given->start[row];
            int64_t length = given->duration[row] > 0 ? given->duration[row] : 0;
            if (begin < began || __builtin_add_overflow(begin, length, &end)) return -1;
        }
        // What is open nests, so that the innermost ends first.
        int64_t last = began;
        for (; depth && open[depth - 1] <= begin; depth--) {
            int64_t now = open[depth - 1];
            if (now > last && (uint64_t)now - (uint64_t)last >= (uint64_t)given->least) since[made] = last, resume[made++] = now;
            if (now > last) last = now;
        }
        if (is_last) return made;
        if (began != INT64_MIN && (uint64_t)begin - (uint64_t)last >= (uint64_t)given->least) since[made] = last, resume[made++] = begin;
        if (depth && end > open[depth - 1]) return -1;
        open[depth++] = end;
        began = begin;
    }
    return made;
}

#endif
