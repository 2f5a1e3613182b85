// The schedule of a trace: in which order its graph can be computed, when everything happens with other durations, how
// late it may, which state a thread is in, and what a device idles for. What model/schedule/replay.py, unrecorded_waits.py,
// analyses/critical_path/slack.py, analyses/schedule/causes.py, segments.py and what_if.py say in Python, node by node.
//
//     schedule_plan      runs of nodes, each after all that it waits for
//     schedule_replay    the times of points and the ends of items
//     schedule_latest    the latest times that what comes later allows
//     schedule_split     windows cut where a thread's state changes
//     schedule_tally     how long a thread is in each kind of state during numbered windows
//     schedule_idle      gaps of a device cut where what it waits for changes
//     schedule_during    how much of each step of the host lies in numbered intervals
//     schedule_cover     how much of each step of the host some slices cover
//     schedule_states    which slice a thread is in, and why a device would wait for it
//     schedule_silences  when nothing of a thread begins or ends for long

#include "bytes.h"
#include "crash.h"
#include "states.h"

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

enum { ABI = 5 };

static const int64_t NEVER = -((int64_t)1 << 60);

// A graph of `model.schedule.schedule`. Chains are the threads, then the streams: points or items one after the other.
// Edges and waits are sorted by what waits (`target`, `waiting`).
typedef struct {
    uint64_t points, items, threads, streams, edges, waits;
    const int64_t *point_bounds, *item_bounds;
    const int64_t *time;
    const uint8_t *anchored;
    const int64_t *target, *edge_item, *edge_point, *edge_weight;
    const int64_t *start, *submission, *launch, *gap;
    const uint8_t *unlimited;
    const int64_t *waiting, *wait_source, *wait_weight;
} Graph;

// The nodes low to high, exclusive, of a chain.
typedef struct {
    int64_t chain, low, high;
} Run;

API uint32_t schedule_abi(void) { return ABI; }

API void schedule_say_crash(const char *message) { say_crash(message); }

// Times may be anything; a sum that doesn't fit wraps around, as numpy's do.
static inline int64_t add(int64_t one, int64_t other) { return (int64_t)((uint64_t)one + (uint64_t)other); }
static inline int64_t less(int64_t one, int64_t other) { return (int64_t)((uint64_t)one - (uint64_t)other); }
static inline int64_t later(int64_t one, int64_t other) { return one > other ? one : other; }
static inline void lower(int64_t *time, int64_t limit) {
    if (limit < *time) *time = limit;
}

static size_t first_at_least(const int64_t *sorted, size_t count, int64_t value) {
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (sorted[middle] < value) low = middle + 1;
        else count = middle;
    }
    return low;
}

static bool is_host(const Graph *graph, size_t chain) { return chain < graph->threads; }

static int64_t chain_begin(const Graph *graph, size_t chain) {
    return is_host(graph, chain) ? graph->point_bounds[chain] : graph->item_bounds[chain - graph->threads];
}

static int64_t chain_end(const Graph *graph, size_t chain) {
    return is_host(graph, chain) ? graph->point_bounds[chain + 1] : graph->item_bounds[chain - graph->threads + 1];
}

// The first edge or wait of each chain.
static void place_cursors(const Graph *graph, int64_t *cursors) {
    for (size_t chain = 0; chain < graph->threads + graph->streams; chain++) {
        int64_t begin = chain_begin(graph, chain);
        cursors[chain] = (int64_t)(is_host(graph, chain) ? first_at_least(graph->target, graph->edges, begin)
                                                         : first_at_least(graph->waiting, graph->waits, begin));
    }
}

static size_t chain_of(const int64_t *bounds, size_t chains, int64_t node) {
    return first_at_least(bounds, chains + 1, node + 1) - 1;
}

// What a node waits for and hasn't been computed.
typedef struct {
    bool found;
    size_t chain;
    int64_t node;
} Missing;

static Missing missing_point(const Graph *graph, const int64_t *next, int64_t point) {
    size_t chain = chain_of(graph->point_bounds, graph->threads, point);
    return (Missing){point >= next[chain], chain, point};
}

static Missing missing_item(const Graph *graph, const int64_t *next, int64_t item) {
    size_t stream = chain_of(graph->item_bounds, graph->streams, item);
    return (Missing){item >= next[graph->threads + stream], graph->threads + stream, item};
}

// Moves the cursor of a chain past what `node` waits for, up to the first that is missing.
static Missing pass_sources(const Graph *graph, const int64_t *next, int64_t *cursor, bool host, int64_t node) {
    if (host) {
        for (; (size_t)*cursor < graph->edges && graph->target[*cursor] == node; ++*cursor) {
            int64_t item = graph->edge_item[*cursor];
            Missing source = item >= 0 ? missing_item(graph, next, item)
                                       : missing_point(graph, next, graph->edge_point[*cursor]);
            if (source.found) return source;
        }
        return (Missing){0};
    }
    if (graph->submission[node] >= 0) {
        Missing source = missing_point(graph, next, graph->submission[node]);
        if (source.found) return source;
    }
    for (; (size_t)*cursor < graph->waits && graph->waiting[*cursor] == node; ++*cursor) {
        Missing source = missing_item(graph, next, graph->wait_source[*cursor]);
        if (source.found) return source;
    }
    return (Missing){0};
}

// Cuts the graph into runs and says how many there are, -1 if nodes wait for each other. Each chain goes on until it waits
// for a node that isn't computed; then that one's chain goes on up to it. `runs` may be NULL, to count. `scratch` has four
// numbers per chain.
API int64_t schedule_plan(const Graph *graph, Run *runs, int64_t *scratch) {
    size_t chains = graph->threads + graph->streams;
    int64_t *next = scratch, *cursors = scratch + chains, *stack = scratch + 2 * chains, *until = scratch + 3 * chains;
    int64_t made = 0;
    begin_reading();
    for (size_t chain = 0; chain < chains; chain++) next[chain] = chain_begin(graph, chain);
    place_cursors(graph, cursors);
    for (size_t base = 0; base < chains; base++) {
        size_t deep = 1;
        stack[0] = (int64_t)base, until[0] = chain_end(graph, base);
        while (deep) {
            size_t chain = (size_t)stack[deep - 1];
            bool host = is_host(graph, chain);
            int64_t low = next[chain];
            Missing source = {0};
            while (next[chain] < until[deep - 1]) {
                source = pass_sources(graph, next, &cursors[chain], host, next[chain]);
                if (source.found) break;
                next[chain]++;
            }
            if (next[chain] > low) {
                if (runs) runs[made] = (Run){(int64_t)chain, low, next[chain]};
                made++;
            }
            if (!source.found) {
                deep--;
                continue;
            }
            if (deep == chains) {
                end_reading();
                return -1;
            }
            stack[deep] = (int64_t)source.chain, until[deep++] = source.node + 1;
        }
    }
    end_reading();
    return made;
}

static void replay_points(
    const Graph *graph, Run run, int64_t *cursor, const int64_t *step, const uint8_t *removed, int64_t *points,
    const int64_t *ends
) {
    int64_t begin = chain_begin(graph, (size_t)run.chain), edge = *cursor, now = run.low > begin ? points[run.low - 1] : 0;
    for (int64_t point = run.low; point < run.high; point++) {
        if (point > begin) now = add(now, step[point]);
        else now = graph->anchored[point] ? graph->time[point] : NEVER;
        for (; (size_t)edge < graph->edges && graph->target[edge] == point; edge++) {
            if (removed && removed[edge]) continue;
            int64_t item = graph->edge_item[edge];
            now = later(now, add(graph->edge_weight[edge], item >= 0 ? ends[item] : points[graph->edge_point[edge]]));
        }
        points[point] = now;
    }
    *cursor = edge;
}

static void replay_items(
    const Graph *graph, Run run, int64_t *cursor, const int64_t *duration, const int64_t *points, int64_t *ends
) {
    int64_t begin = chain_begin(graph, (size_t)run.chain), wait = *cursor;
    for (int64_t item = run.low; item < run.high; item++) {
        int64_t submission = graph->submission[item];
        int64_t now = submission >= 0 ? add(points[submission], graph->launch[item]) : NEVER;
        if (item > begin) now = later(now, add(ends[item - 1], graph->gap[item]));
        else if (graph->unlimited[item]) now = graph->start[item];
        for (; (size_t)wait < graph->waits && graph->waiting[wait] == item; wait++)
            now = later(now, add(ends[graph->wait_source[wait]], graph->wait_weight[wait]));
        ends[item] = add(now, duration[item]);
    }
    *cursor = wait;
}

// When each point is reached and each item ends in `cases` cases. `step`, `duration` and `removed` (of edges, may be NULL)
// have a row per case, as `points` and `ends` do. `scratch` has a number per chain.
API void schedule_replay(
    const Graph *graph, const Run *runs, size_t count, size_t cases, const int64_t *step, const int64_t *duration,
    const uint8_t *removed, int64_t *points, int64_t *ends, int64_t *scratch
) {
    begin_reading();
    for (size_t at = 0; at < cases; at++) {
        place_cursors(graph, scratch);
        for (const Run *run = runs; run < runs + count; run++) {
            int64_t *cursor = &scratch[run->chain];
            if (is_host(graph, (size_t)run->chain)) replay_points(graph, *run, cursor, step, removed, points, ends);
            else replay_items(graph, *run, cursor, duration, points, ends);
        }
        step += graph->points, points += graph->points, duration += graph->items, ends += graph->items;
        if (removed) removed += graph->edges;
    }
    end_reading();
}

static size_t end_of_sources(const int64_t *sorted, size_t count, int64_t node) {
    return first_at_least(sorted, count, node + 1);
}

// Lowers the latest times of points, and of ends of items, to what their dependents allow.
API void schedule_latest(
    const Graph *graph, const Run *runs, size_t count, const int64_t *step, const int64_t *duration, int64_t *points,
    int64_t *ends
) {
    begin_reading();
    for (const Run *run = runs + count; run-- > runs;) {
        int64_t end = chain_end(graph, (size_t)run->chain);
        if (is_host(graph, (size_t)run->chain)) {
            size_t edge = end_of_sources(graph->target, graph->edges, run->high - 1);
            for (int64_t point = run->high; point-- > run->low;) {
                if (point + 1 < end) lower(&points[point], less(points[point + 1], step[point + 1]));
                for (; edge && graph->target[edge - 1] == point; edge--) {
                    int64_t item = graph->edge_item[edge - 1], limit = less(points[point], graph->edge_weight[edge - 1]);
                    lower(item >= 0 ? &ends[item] : &points[graph->edge_point[edge - 1]], limit);
                }
            }
            continue;
        }
        size_t wait = end_of_sources(graph->waiting, graph->waits, run->high - 1);
        for (int64_t item = run->high; item-- > run->low;) {
            int64_t begin = less(ends[item], duration[item]);
            if (item + 1 < end) {
                int64_t following = less(less(ends[item + 1], duration[item + 1]), graph->gap[item + 1]);
                lower(&begin, less(following, duration[item]));
            }
            ends[item] = add(begin, duration[item]);
            if (graph->submission[item] >= 0) lower(&points[graph->submission[item]], less(begin, graph->launch[item]));
            for (; wait && graph->waiting[wait - 1] == item; wait--)
                lower(&ends[graph->wait_source[wait - 1]], less(begin, graph->wait_weight[wait - 1]));
        }
    }
    end_reading();
}

// Cuts the windows [low, high) where the state changes: state s holds between times[s - 1] and times[s]. Window i, which is
// called number[i], lasts from state first[i] to last[i]. Says how many parts there are; none is empty.
API size_t schedule_split(
    const int64_t *number, const int64_t *low, const int64_t *high, const int64_t *first, const int64_t *last, size_t count,
    const int64_t *times, const int32_t *row, const int8_t *cause, int64_t *window, int64_t *begin, int64_t *end,
    int32_t *part_row, int8_t *part_cause
) {
    size_t made = 0;
    begin_reading();
    for (size_t at = 0; at < count; at++)
        for (int64_t state = first[at]; state <= last[at]; state++) {
            int64_t from = state > first[at] ? times[state - 1] : low[at], to = state < last[at] ? times[state] : high[at];
            if (to <= from) continue;
            window[made] = number[at];
            begin[made] = from, end[made] = to;
            part_row[made] = row[state], part_cause[made] = cause[state];
            made++;
        }
    end_reading();
    return made;
}

// Adds to sums[number][cause] how long the state with that cause lasts in each window. `sums` has `causes` for each number.
API void schedule_tally(
    const int64_t *number, const int64_t *low, const int64_t *high, const int64_t *first, const int64_t *last, size_t count,
    const int64_t *times, const int8_t *cause, int64_t *sums, size_t causes
) {
    begin_reading();
    for (size_t at = 0; at < count; at++) {
        int64_t *mine = &sums[(size_t)number[at] * causes], from = low[at];
        for (int64_t state = first[at]; state <= last[at]; state++) {
            int64_t to = state < last[at] ? times[state] : high[at];
            if (to > from) mine[cause[state]] = add(mine[cause[state]], less(to, from));
            from = to;
        }
    }
    end_reading();
}

// The states of a thread: state s holds between times[s - 1] and times[s], so that there is one more than times.
typedef struct {
    uint64_t count;
    const int64_t *times;
    const int32_t *row;
    const int8_t *cause;
} States;

// Parts of gaps that wait for a device, not for the host; of each gap at most one.
typedef struct {
    uint64_t count;
    const int64_t *gap, *begin, *end;
    const int32_t *row;
    const int8_t *cause;
} Parts;

// Gaps ascend and don't overlap. Until `late` a gap waits for a thread (-1: for none), on the host's clock, which is
// `shift` ahead. In a state whose cause is among `unspecific`, that thread may wait for its partner (-1: for none).
// Then come `streams`, then `devices`. Steps begin at `borders`.
typedef struct {
    uint64_t gaps, steps;
    int64_t shift;
    const int64_t *begin, *late;
    const int32_t *thread, *partner;
    const States *states; // of each thread
    Parts streams, devices;
    const int64_t *borders;
    uint64_t unspecific; // bits
    int64_t unrecorded;  // the cause of a state in which nothing is recorded
} Gaps;

// Pieces, none empty, each in one step; columns may be NULL, to count.
typedef struct {
    size_t made, step;
    int64_t *begin, *end;
    int32_t *row, *gap, *in_step;
    int8_t *cause;
} Pieces;

static void add_piece(const Gaps *given, Pieces *pieces, size_t gap, int64_t begin, int64_t end, int32_t row, int64_t cause) {
    const int64_t *borders = given->borders;
    while (begin < end) {
        while (pieces->step + 1 < given->steps && borders[pieces->step + 1] <= begin) pieces->step++;
        int64_t until = pieces->step + 1 < given->steps && borders[pieces->step + 1] < end ? borders[pieces->step + 1] : end;
        if (pieces->begin) {
            size_t at = pieces->made;
            pieces->begin[at] = begin, pieces->end[at] = until, pieces->row[at] = row, pieces->gap[at] = (int32_t)gap;
            pieces->in_step[at] = (int32_t)pieces->step, pieces->cause[at] = (int8_t)cause;
        }
        pieces->made++;
        begin = until;
    }
}

static bool is_unspecific(const Gaps *given, int64_t cause) { return cause >= 0 && cause < 64 && given->unspecific >> cause & 1; }

// Moves a cursor to the state that a thread has at `time`, which is no earlier than at the last call.
static size_t state_at(const States *states, int64_t *cursor, int64_t time) {
    while ((uint64_t)*cursor < states->count && states->times[*cursor] <= time) ++*cursor;
    return (size_t)*cursor;
}

static int64_t state_until(const States *states, size_t state, int64_t end) {
    return state < states->count && states->times[state] < end ? states->times[state] : end;
}

// Cuts [begin, end) where the state of a partner changes; one that says no more than the thread's own counts as that.
static void add_partner_pieces(
    const Gaps *given, int64_t *cursors, Pieces *pieces, size_t gap, int32_t partner, int64_t begin, int64_t end, int32_t row,
    int64_t cause
) {
    const States *states = &given->states[partner];
    while (begin < end) {
        size_t state = state_at(states, &cursors[partner], begin);
        int64_t until = state_until(states, state, end), theirs = states->cause[state];
        bool counts = !is_unspecific(given, theirs) || (cause == given->unrecorded && theirs != given->unrecorded);
        add_piece(
            given, pieces, gap, less(begin, given->shift), less(until, given->shift), counts ? states->row[state] : row,
            counts ? theirs : cause
        );
        begin = until;
    }
}

static void add_host_pieces(const Gaps *given, int64_t *cursors, Pieces *pieces, size_t gap) {
    int32_t thread = given->thread[gap];
    if (thread < 0) {
        add_piece(given, pieces, gap, given->begin[gap], given->late[gap], -1, given->unrecorded);
        return;
    }
    const States *states = &given->states[thread];
    int64_t begin = add(given->begin[gap], given->shift), end = add(given->late[gap], given->shift);
    while (begin < end) {
        size_t state = state_at(states, &cursors[thread], begin);
        int64_t until = state_until(states, state, end), cause = states->cause[state];
        int32_t row = states->row[state], partner = given->partner[thread];
        if (partner >= 0 && is_unspecific(given, cause))
            add_partner_pieces(given, cursors, pieces, gap, partner, begin, until, row, cause);
        else add_piece(given, pieces, gap, less(begin, given->shift), less(until, given->shift), row, cause);
        begin = until;
    }
}

static void add_parts(const Gaps *given, Pieces *pieces, size_t gap, const Parts *parts, size_t *part) {
    for (; *part < parts->count && (size_t)parts->gap[*part] == gap; ++*part)
        add_piece(given, pieces, gap, parts->begin[*part], parts->end[*part], parts->row[*part], parts->cause[*part]);
}

// Cuts gaps, and says how many pieces there are. `cursors` has a 0 for each thread.
API size_t schedule_idle(
    const Gaps *given, int64_t *cursors, int64_t *begin, int64_t *end, int32_t *row, int32_t *gap, int32_t *step, int8_t *cause
) {
    Pieces pieces = {.begin = begin, .end = end, .row = row, .gap = gap, .in_step = step, .cause = cause};
    size_t stream = 0, device = 0;
    begin_reading();
    for (size_t at = 0; at < given->gaps; at++) {
        add_host_pieces(given, cursors, &pieces, at);
        add_parts(given, &pieces, at, &given->streams, &stream);
        add_parts(given, &pieces, at, &given->devices, &device);
    }
    end_reading();
    return pieces.made;
}

// Adds up, in a row per number, how much of each interval lies between a point of a thread and the one before. Intervals
// [starts, ends) ascend and don't overlap; what lies before the first point or after the last doesn't count, nor does what
// has a number below 0.
API void schedule_during(
    const int64_t *times, size_t points, const int64_t *starts, const int64_t *ends, const int32_t *number, size_t intervals,
    int64_t *sums, size_t stride
) {
    size_t at = 0;
    begin_reading();
    while (points && at < intervals && starts[at] <= times[0]) at++;
    // What began no later than the first point may last beyond it.
    if (at) at--;
    for (size_t point = 1; point < points; point++) {
        int64_t low = times[point - 1], high = times[point];
        for (; at < intervals && starts[at] < high; at++) {
            int64_t begin = later(starts[at], low), end = ends[at] < high ? ends[at] : high;
            if (end > begin && number[at] >= 0) {
                int64_t *sum = &sums[(size_t)number[at] * stride + point];
                *sum = add(*sum, less(end, begin));
            }
            if (ends[at] > high) break;
        }
    }
    end_reading();
}

// Columns of all events, and the times of chains: chain c has times[bounds[c]] to times[bounds[c + 1]], exclusive, which
// ascend. The chain of a thread is below 0 if it has none.
typedef struct {
    uint64_t events, threads, chains;
    const int64_t *start, *duration;
    const int32_t *thread, *chain;
    const int64_t *times, *bounds;
} Cover;

// Where a chain has got to: the start of the slice before, the end of what is covered, and the first time after that start.
typedef struct {
    int64_t began, until, next;
} Covered;

// Adds up how much of these slices lies between each time of a chain and the one before. What several of them cover counts
// once. Returns 0 if a row is out of bounds, or if the slices of a chain don't ascend by start.
API int schedule_cover(const Cover *given, const int32_t *rows, size_t count, Covered *chains, int64_t *sums) {
    int good = 1;
    begin_reading();
    for (uint64_t i = 0; i < given->chains; i++) chains[i] = (Covered){INT64_MIN, INT64_MIN, given->bounds[i]};
    for (size_t i = 0; i < count; i++) {
        if (rows[i] < 0 || (uint64_t)rows[i] >= given->events) { good = 0; break; }
        int32_t thread = given->thread[rows[i]];
        if (thread < 0 || (uint64_t)thread >= given->threads) { good = 0; break; }
        int32_t number = given->chain[thread];
        if (number < 0 || (uint64_t)number >= given->chains) continue;
        Covered *chain = &chains[number];
        int64_t begin = given->start[rows[i]], duration = given->duration[rows[i]];
        if (begin < chain->began) { good = 0; break; }
        chain->began = begin;
        int64_t end = duration > 0 ? add(begin, duration) : begin;
        begin = later(begin, chain->until);
        if (end <= begin) continue;
        chain->until = end;
        const int64_t *times = given->times;
        int64_t low = given->bounds[number], high = given->bounds[number + 1], at = chain->next;
        while (at < high && times[at] <= begin) at++;
        chain->next = at;
        for (; at < high && begin < end; at++) {
            int64_t stop = times[at] < end ? times[at] : end;
            if (at > low && stop > begin) sums[at] = add(sums[at], less(stop, begin));
            begin = later(begin, stop);
        }
    }
    end_reading();
    return good;
}

// Puts further times among those of a thread, and says of each state which slice it is in and why a device would wait for
// it. What it makes has room for all times, and for one state more.
API void schedule_states(const Running *given, uint64_t *cursors, int64_t *times, int32_t *row, int8_t *cause) {
    begin_reading();
    list_states(given, cursors, times, row, cause);
    end_reading();
}

// What it makes has room for two silences of each slice.
API int64_t schedule_silences(const Stack *given, int64_t *open, int64_t *since, int64_t *resume) {
    begin_reading();
    int64_t made = list_silences(given, open, since, resume);
    end_reading();
    return made;
}
