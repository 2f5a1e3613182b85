// A job of many ranks: columns with an entry per operation, and the job replayed with other work. What base/arrays.py,
// base/intervals.py and analyses/distributed/replay.py say in Python, entry by entry.
//
//     job_lowest, job_highest  the extreme value of each number
//     job_dense     the numbers that occur, as 0, 1, ...
//     job_counts    how many entries each number has
//     job_ordinals  which of the entries with its number each one is
//     job_order     the entries by number, those with one number as they were
//     job_sums      the sum of the values of each number
//     job_first     the first entry with each number
//     job_changes   how many different values each number has, where values ascend
//     job_search    where values lie among sorted ones
//     job_sort      the entries by number and value, equal ones as they were
//     job_middles   the middle entry of each number, and the median of the other values with the number of each one
//     job_windows   windows numbered by their step and by the kinds that came before in it
//     job_mark      which codes occur
//     job_pick      the cells of some rows in a sparse column
//     job_select    the entries that have one of some codes
//     job_group     the entries with each code
//     job_named     the rows whose name is one of some
//     job_spans     when the events of some rows begin and end
//     job_intervals the union of when the events of some rows run
//     job_merge     the union of intervals
//     job_combine   the union, intersection or difference of two sets of intervals
//     job_covered   how much time before each of some a set covers
//     job_totals    how much time the intervals of each owner cover
//     job_network   the operations in the order in which they are replayed, and what each one waits for
//     job_excess    the sum of what each rank works longer than is typical, up to each operation
//     job_saved     how much of it lies between two operations
//     job_slots     where the times of each rank's last stalls are kept while a job is replayed
//     job_replay    how much earlier everything ends

#include "bytes.h"
#include "crash.h"
#include "groups.h"
#include "network.h"
#include "sets.h"

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

enum { ABI = 13, LANES = 8 };

API uint32_t job_abi(void) { return ABI; }

API void job_say_crash(const char *message) { say_crash(message); }

// Times may be anything; a sum that doesn't fit wraps around, as numpy's do.
static inline int64_t add(int64_t one, int64_t other) { return (int64_t)((uint64_t)one + (uint64_t)other); }

// What these functions return is false where a number isn't 0..numbers-1: it is looked at in the loop that needs it, as each
// further pass over a long column takes as long as that loop.
static inline bool is_among(int64_t number, size_t numbers) { return (uint64_t)number < numbers; }

// Lowers extremes[number] to the least of its values; what has no values stays.
API bool job_lowest(const int64_t *number, const int64_t *values, size_t count, int64_t *extremes, size_t numbers) {
    bool known = true;
    begin_reading();
    for (size_t i = 0; i < count && (known = is_among(number[i], numbers)); i++)
        if (values[i] < extremes[number[i]]) extremes[number[i]] = values[i];
    end_reading();
    return known;
}

API bool job_highest(const int64_t *number, const int64_t *values, size_t count, int64_t *extremes, size_t numbers) {
    bool known = true;
    begin_reading();
    for (size_t i = 0; i < count && (known = is_among(number[i], numbers)); i++)
        if (values[i] > extremes[number[i]]) extremes[number[i]] = values[i];
    end_reading();
    return known;
}

// Replaces numbers by their ranks among those that occur, and says how many do; -1 if one isn't 0..numbers-1. `ranks` has a 0
// for each number.
API int64_t job_dense(int64_t *number, size_t count, int64_t *ranks, size_t numbers) {
    int64_t made = 0;
    bool known = true;
    begin_reading();
    for (size_t i = 0; i < count && (known = is_among(number[i], numbers)); i++) ranks[number[i]] = 1;
    for (size_t i = 0; i < numbers; i++)
        if (ranks[i]) ranks[i] = made++;
    if (known && (size_t)made < numbers)
        for (size_t i = 0; i < count; i++) number[i] = ranks[number[i]];
    end_reading();
    return known ? made : -1;
}

// `counts` has a 0 for each number.
API bool job_counts(const int64_t *number, size_t count, int64_t *counts, size_t numbers) {
    bool known = true;
    begin_reading();
    for (size_t i = 0; i < count && (known = is_among(number[i], numbers)); i++) counts[number[i]]++;
    end_reading();
    return known;
}

// `next` has a 0 for each number, and in the end how many entries have it.
API bool job_ordinals(const int64_t *number, size_t count, int64_t *next, int64_t *ordinals, size_t numbers) {
    bool known = true;
    begin_reading();
    for (size_t i = 0; i < count && (known = is_among(number[i], numbers)); i++) ordinals[i] = next[number[i]]++;
    end_reading();
    return known;
}

// `next` has where the entries of each number begin in `order`.
API void job_order(const int64_t *number, size_t count, int64_t *next, int64_t *order) {
    begin_reading();
    for (size_t i = 0; i < count; i++) order[next[number[i]]++] = (int64_t)i;
    end_reading();
}

// Puts the entries of each number in order of their values. `next` has where those of each number begin in `order`, and
// in the end where they end; `scratch` has twice as many entries as the most frequent number.
API void job_sort(
    const int64_t *number, const int64_t *values, size_t count, int64_t *next, size_t numbers, int64_t *order, void *scratch,
    size_t largest
) {
    Entry *entries = scratch;
    begin_reading();
    for (size_t i = 0; i < count; i++) order[next[number[i]]++] = (int64_t)i;
    size_t begin = 0;
    for (size_t each = 0; each < numbers; each++) {
        size_t end = (size_t)next[each], size = end - begin;
        for (size_t i = 0; i < size; i++) entries[i] = (Entry){values[order[begin + i]], order[begin + i]};
        sort_entries(entries, entries + largest, size);
        for (size_t i = 0; i < size; i++) order[begin + i] = entries[i].at;
        begin = end;
    }
    end_reading();
}

// The entry in the middle of each number, of two the first, -1 without any, where equal values are as they were. And for
// each entry, unless `others` is NULL, the median of the others with its number, rounded down; its own value if it is
// alone. `next` has where the values of each number begin, and `scratch` space for all of them; `middles` for each number.
API void job_middles(
    const int64_t *number, const int64_t *values, size_t count, int64_t *next, size_t numbers, int64_t *scratch, void *middles,
    int64_t *middle, int64_t *others
) {
    Middle *found = middles;
    begin_reading();
    gather_values(number, values, count, next, scratch);
    int64_t begin = 0;
    for (size_t each = 0; each < numbers; begin = next[each++]) {
        middle[each] = -1;
        if (next[each] > begin) found[each] = find_middle(&scratch[begin], (size_t)(next[each] - begin));
    }
    for (size_t i = 0; i < count; i++) {
        size_t mine = (size_t)number[i];
        if (values[i] == found[mine].high && found[mine].left-- == 0) middle[mine] = (int64_t)i;
        if (!others) continue;
        bool alone = next[mine] - (mine ? next[mine - 1] : 0) == 1;
        others[i] = alone ? values[i] : median_without(&found[mine], values[i]);
    }
    end_reading();
}

// Numbers windows in order of their first appearance, and says how many there are; -1 if `windows` has no room for them.
// Entries of a rank come one after the other. Steps are -1..steps-1. `last` has room for the last window of each step,
// `whose` for the rank that it is of; `slots` has `capacity` times -1, `windows` room for half as many, as has `first`.
API int64_t job_windows(
    const int32_t *member, const int32_t *step, const int32_t *kind, size_t count, size_t steps, int32_t *last,
    int32_t *whose, int32_t *slots, void *windows, size_t capacity, int64_t *first, int64_t *number
) {
    Windows known = {slots, windows, capacity, 0};
    begin_reading();
    for (size_t at = 0; at <= steps; at++) whose[at] = -1;
    for (size_t i = 0; i < count; i++) {
        size_t place = (size_t)(step[i] + 1), made = known.made;
        int32_t before = whose[place] == member[i] ? last[place] : -2 - step[i] - 1;
        int32_t found = number_window(&known, (Window){before, kind[i]});
        if (found < 0) {
            end_reading();
            return -1;
        }
        if (known.made > made) first[found] = (int64_t)i;
        whose[place] = member[i], last[place] = found;
        number[i] = found;
    }
    end_reading();
    return (int64_t)known.made;
}

// `sums` has a 0 for each number.
API bool job_sums(const int64_t *number, const int64_t *values, size_t count, int64_t *sums, size_t numbers) {
    bool known = true;
    begin_reading();
    for (size_t i = 0; i < count && (known = is_among(number[i], numbers)); i++)
        sums[number[i]] = add(sums[number[i]], values[i]);
    end_reading();
    return known;
}

// `first` has a -1 for each number.
API bool job_first(const int64_t *number, size_t count, int64_t *first, size_t numbers) {
    bool known = true;
    begin_reading();
    for (size_t i = 0; i < count && (known = is_among(number[i], numbers)); i++)
        if (first[number[i]] < 0) first[number[i]] = (int64_t)i;
    end_reading();
    return known;
}

// `changes` has a 0 for each number, `last` has room.
API bool job_changes(
    const int64_t *number, const int32_t *values, size_t count, int32_t *last, int64_t *changes, size_t numbers
) {
    bool known = true;
    begin_reading();
    for (size_t i = 0; i < count && (known = is_among(number[i], numbers)); i++) {
        int64_t mine = number[i];
        if (changes[mine] && last[mine] == values[i]) continue;
        last[mine] = values[i], changes[mine]++;
    }
    end_reading();
    return known;
}

// Each search begins where the one before ended, as values mostly ascend.
API void job_search(
    const int64_t *sorted, size_t length, const int64_t *values, size_t count, bool right, int64_t *places
) {
    size_t place = 0;
    begin_reading();
    for (size_t i = 0; i < count; i++) places[i] = (int64_t)(place = find(sorted, length, values[i], right, place));
    end_reading();
}

// Sets seen[code] for each code; one that isn't 0..codes-1 stands for nothing.
API void job_mark(const int32_t *code, size_t count, uint8_t *seen, size_t codes) {
    begin_reading();
    for (size_t i = 0; i < count; i++)
        if (code[i] >= 0 && (size_t)code[i] < codes) seen[code[i]] = 1;
    end_reading();
}

// Writes the cell of each wanted row that has one, of 4 or 8 bytes; the others stay. Rows with cells ascend.
API void job_pick(
    const int32_t *rows, const void *cells, size_t length, size_t bytes, const int32_t *wanted, size_t count, void *picked
) {
    size_t place = 0;
    begin_reading();
    for (size_t i = 0; i < count; i++) {
        if (i && wanted[i] < wanted[i - 1]) place = 0;
        size_t step = 1, high = place;
        while (high < length && rows[high] < wanted[i]) {
            place = high + 1;
            high = length - place > step ? place + step : length;
            step *= 2;
        }
        while (place < high) {
            size_t middle = place + (high - place) / 2;
            if (rows[middle] < wanted[i]) place = middle + 1;
            else high = middle;
        }
        if (place == length || rows[place] != wanted[i]) continue;
        if (bytes == 4) memcpy((uint8_t *)picked + i * 4, (const uint8_t *)cells + place * 4, 4);
        else memcpy((uint8_t *)picked + i * 8, (const uint8_t *)cells + place * 8, 8);
    }
    end_reading();
}

// Lists the entries that count and have a wanted code, of which there are no more than `capacity`, and says how many they are.
// `wanted` has a flag for each of 256 codes.
API size_t job_select(
    const uint8_t *code, const uint8_t *counts, size_t count, const uint8_t *wanted, int32_t *rows, size_t capacity
) {
    size_t made = 0;
    begin_reading();
    for (size_t i = 0; i < count && made < capacity; i++) {
        rows[made] = (int32_t)i;
        made += counts[i] & wanted[code[i]]; // flags, and no branch: which entry is wanted can't be foreseen
    }
    end_reading();
    return made;
}

// Puts the entries that count in order of their code, and says where those of each of 256 codes begin, and the end. There
// is room for all.
API void job_group(const uint8_t *code, const uint8_t *counts, size_t count, int32_t *rows, int64_t *bounds) {
    size_t next[256] = {0}, sum = 0;
    begin_reading();
    for (size_t i = 0; i < count; i++) next[code[i]] += counts[i] != 0;
    for (size_t each = 0; each < 256; each++) {
        size_t here = next[each];
        bounds[each] = (int64_t)(next[each] = sum);
        sum += here;
    }
    bounds[256] = (int64_t)sum;
    for (size_t i = 0; i < count; i++)
        if (counts[i]) rows[next[code[i]]++] = (int32_t)i;
    end_reading();
}

// Lists those of some rows whose name is marked, and says how many they are; -1 if a row is none of the events. The flag
// after those of the names is that of all other numbers.
API int64_t job_named(
    const int32_t *rows, size_t count, const int32_t *name, size_t events, const uint8_t *marked, size_t names,
    int32_t *found
) {
    int64_t made = 0;
    bool known = true;
    begin_reading();
    for (size_t i = 0; i < count && (known = is_among(rows[i], events)); i++) {
        int32_t code = name[rows[i]];
        found[made] = rows[i];
        made += marked[is_among(code, names) ? (size_t)code : names];
    }
    end_reading();
    return known ? made : -1;
}

// When the events of some rows begin and end; false if a row is none of the events. A duration that is missing or negative
// counts as 0, and without a start (the least number there is) there is no end.
API bool job_spans(
    const int32_t *rows, size_t count, const int64_t *start, const int64_t *duration, size_t events, int64_t *starts,
    int64_t *ends
) {
    bool known = true;
    begin_reading();
    for (size_t i = 0; i < count; i++) {
        known = rows[i] >= 0 && (size_t)rows[i] < events;
        if (!known) break;
        int64_t from = start[rows[i]], length = duration[rows[i]];
        starts[i] = from;
        ends[i] = from == INT64_MIN || length < 0 ? from : add(from, length);
    }
    end_reading();
    return known;
}

// The union of when the events of some rows run, which `job_spans` says; its size, or -1 if a row is none of the events or
// the rows aren't in order of their starts.
API int64_t job_intervals(
    const int32_t *rows, size_t count, const int64_t *start, const int64_t *duration, size_t events, int64_t *made_starts,
    int64_t *made_ends
) {
    Union set = {made_starts, made_ends, 0, INT64_MIN};
    bool good = true;
    begin_reading();
    for (size_t i = 0; i < count && (good = is_among(rows[i], events)); i++) {
        int64_t from = start[rows[i]], length = duration[rows[i]];
        if (from == INT64_MIN || length <= 0) continue;
        good = add_interval(&set, from, add(from, length));
        if (!good) break;
    }
    end_reading();
    return good ? set.made : -1;
}

API int64_t job_merge(
    const int64_t *starts, const int64_t *ends, size_t count, int64_t *made_starts, int64_t *made_ends
) {
    begin_reading();
    int64_t made = merge_intervals(starts, ends, count, made_starts, made_ends);
    end_reading();
    return made;
}

// `how`: 0 for the union of two sets, 1 for their intersection, 2 for what only the first one has.
API size_t job_combine(
    int how, const int64_t *starts, const int64_t *ends, size_t count, const int64_t *other_starts,
    const int64_t *other_ends, size_t other_count, int64_t *made_starts, int64_t *made_ends
) {
    size_t (*const functions[])(
        const int64_t *, const int64_t *, size_t, const int64_t *, const int64_t *, size_t, int64_t *, int64_t *
    ) = {unite, intersect, subtract};
    begin_reading();
    size_t made = functions[how](starts, ends, count, other_starts, other_ends, other_count, made_starts, made_ends);
    end_reading();
    return made;
}

// How much time before each of some times a set covers. before[i] is the time in the i intervals that come first.
API void job_covered(
    const int64_t *starts, const int64_t *ends, const int64_t *before, size_t length, const int64_t *times, size_t count,
    int64_t *covered
) {
    size_t place = 0;
    begin_reading();
    for (size_t i = 0; i < count; i++) {
        place = find(starts, length, times[i], true, place);
        covered[i] = before[place];
        // The last one that has started may end after the time.
        if (place && ends[place - 1] > times[i])
            covered[i] = (int64_t)((uint64_t)covered[i] - ((uint64_t)ends[place - 1] - (uint64_t)times[i]));
    }
    end_reading();
}

// Adds to `totals` the time that any interval of each owner covers; false if those of one aren't in order of their starts.
// `last` and `reach` have the least number there is for each owner.
API bool job_totals(
    const int64_t *owner, const int64_t *starts, const int64_t *ends, size_t count, int64_t *last, int64_t *reach,
    int64_t *totals
) {
    bool ordered = true;
    begin_reading();
    for (size_t i = 0; i < count && ordered; i++) {
        size_t whose = (size_t)owner[i];
        if (ends[i] <= starts[i]) continue;
        ordered = starts[i] >= last[whose];
        last[whose] = starts[i];
        int64_t begin = starts[i] > reach[whose] ? starts[i] : reach[whose];
        if (ends[i] <= begin) continue;
        totals[whose] = add(totals[whose], (int64_t)((uint64_t)ends[i] - (uint64_t)begin));
        reach[whose] = ends[i];
    }
    end_reading();
    return ordered;
}

// Puts the operations of a job in the order in which they are replayed. What is made has room for all of them, for one more
// bound of levels, for the operations that stalled, and for the ranks.
API void job_network(const Recorded *given, const NetworkScratch *scratch, Network *made) {
    begin_reading();
    order_by_end(given, scratch);
    list_turns(given, scratch);
    order_by_level(given, scratch, made);
    fill_network(given, scratch, made);
    end_reading();
}

// Adds up what the operations of each rank take longer than is typical, in order; totals[operations] is 0.
API void job_excess(
    const int64_t *work, const int64_t *typical, const int64_t *bounds, size_t ranks, int64_t *totals
) {
    begin_reading();
    for (size_t rank = 0; rank < ranks; rank++) {
        int64_t total = 0;
        for (int64_t i = bounds[rank]; i < bounds[rank + 1]; i++) 
            totals[i] = total = add(total, (int64_t)((uint64_t)work[i] - (uint64_t)typical[i]));
    }
    totals[bounds[ranks]] = 0;
    end_reading();
}

// What lies between two operations, of which -1 is before all; false if one of them isn't there. Each is of another rank than
// the one before, so they are asked for ahead.
API bool job_saved(
    const int64_t *totals, size_t operations, const int32_t *until, const int32_t *since, size_t count, int64_t *saved
) {
    enum { AHEAD = 16 };
    bool known = true;
    begin_reading();
    for (size_t i = 0; i < count; i++) {
        if (i + AHEAD < count) {
            const int32_t ahead[] = {until[i + AHEAD], since[i + AHEAD]};
            for (int at = 0; at < 2; at++)
                if (ahead[at] >= 0 && (size_t)ahead[at] < operations) __builtin_prefetch(&totals[ahead[at]]);
        }
        size_t last = until[i] == -1 ? operations : (size_t)until[i], first = since[i] == -1 ? operations : (size_t)since[i];
        known = last <= operations && first <= operations && until[i] != (int64_t)operations && since[i] != (int64_t)operations;
        if (!known) break;
        saved[i] = (int64_t)((uint64_t)totals[last] - (uint64_t)totals[first]);
    }
    end_reading();
    return known;
}

// Moments on ranks, by level: the rank, the stall before (where its times are; the last row for none), and the work saved
// since that.
typedef struct {
    const int32_t *member, *stall;
    const int64_t *saved;
} Moments;

// A job as `analyses.distributed.replay.JobReplay` has it. Operations are in levels, and in a level in runs.
typedef struct {
    uint64_t operations, runs, stalls, levels, ranks, finals;
    const int64_t *bounds, *stall_bounds; // of levels, among operations and stalls
    const int64_t *run_begins, *number;   // of runs; `number` is the row of `saving`
    const int32_t *previous; // of operations: a run, the last one for none
    const int64_t *slack, *gap, *waited;
    const uint8_t *last_arrival;
    const int64_t *stall_run, *stall_length;
    const int32_t *slot; // of stalls: where in `resumed` its times are
} Job;

typedef struct {
    Moments reached, stalled, final;
    const uint8_t *typical; // [rank][scenario]
    const int64_t *saving;  // [number][scenario], may be NULL
    int64_t *earlier, *arrivals; // [rank][scenario]
    int64_t *ends, *resumed;     // room, [run + 1][scenario] and [slot + 1][scenario], of which the last rows are 0
} Scenarios;

// A stall that is read after `written` stalls of its rank; false if it is none of those.
static bool reaches_back(const int32_t *ordinal, const int32_t *member, int32_t stall, const int32_t *written, int64_t *most) {
    int64_t back = (int64_t)written[member[stall]] - ordinal[stall];
    if (ordinal[stall] < 0 || back <= 0) return false;
    if (back > *most) *most = back;
    return true;
}

// How many of the last stalls of a rank are read at most while the job is replayed, 0 if one is read before its turn. Of
// the moments only the ranks of stalls and the numbers of the stalls before are read. `ordinal` gets which of its rank's
// stalls each one is; `written` has a 0 for each rank.
API int64_t job_slots(const Job *job, const Moments *moments, int32_t *ordinal, int32_t *written) {
    const int32_t *member = moments[1].member, none = (int32_t)job->stalls;
    int64_t most = 1;
    bool in_turn = true;
    begin_reading();
    for (size_t i = 0; i < job->stalls; i++) ordinal[i] = -1;
    for (size_t level = 0; level < job->levels; level++) {
        for (int64_t i = job->bounds[level]; i < job->bounds[level + 1]; i++)
            if (moments[0].stall[i] != none)
                in_turn = in_turn && reaches_back(ordinal, member, moments[0].stall[i], written, &most);
        for (int64_t i = job->stall_bounds[level]; i < job->stall_bounds[level + 1]; i++) {
            if (moments[1].stall[i] != none)
                in_turn = in_turn && reaches_back(ordinal, member, moments[1].stall[i], written, &most);
            ordinal[i] = written[member[i]]++;
        }
    }
    for (size_t i = 0; i < job->finals; i++)
        if (moments[2].stall[i] != none)
            in_turn = in_turn && reaches_back(ordinal, member, moments[2].stall[i], written, &most);
    end_reading();
    return in_turn ? most : 0;
}

#define INLINE static inline __attribute__((always_inline))

INLINE void add_saved(int64_t *times, int64_t saved, const uint8_t *typical, size_t lanes) {
    for (size_t at = 0; at < lanes; at++) times[at] = add(times[at], typical[at] ? saved : 0);
}

INLINE void add_to_all(int64_t *times, int64_t time, size_t lanes) {
    for (size_t at = 0; at < lanes; at++) times[at] = add(times[at], time);
}

// Replays `lanes` scenarios. A level reads what the levels before it have written.
INLINE void replay(const Job *job, const Scenarios *given, size_t lanes) {
    size_t run = 0;
    for (size_t level = 0; level < job->levels; level++) {
        for (size_t end = (size_t)job->bounds[level + 1]; run < job->runs && (size_t)job->run_begins[run] < end; run++) {
            size_t begin = (size_t)job->run_begins[run];
            size_t finish = run + 1 < job->runs ? (size_t)job->run_begins[run + 1] : (size_t)job->operations;
            int64_t ended[LANES] = {0};
            for (size_t i = begin; i < finish; i++) {
                int64_t reached[LANES];
                size_t member = (size_t)given->reached.member[i];
                const int64_t *freed = &given->ends[(size_t)job->previous[i] * lanes];
                memcpy(reached, &given->resumed[(size_t)given->reached.stall[i] * lanes], lanes * sizeof *reached);
                add_saved(reached, given->reached.saved[i], &given->typical[member * lanes], lanes);
                for (size_t at = 0; at < lanes; at++) {
                    int64_t free = add(freed[at], job->gap[i]);
                    reached[at] = add(reached[at], job->slack[i]);
                    if (free < reached[at]) reached[at] = free;
                }
                if (job->last_arrival[i])
                    for (size_t at = 0; at < lanes; at++)
                        given->arrivals[member * lanes + at] = add(given->arrivals[member * lanes + at], reached[at]);
                for (size_t at = 0; at < lanes; at++) {
                    int64_t now = add(reached[at], job->waited[i]);
                    if (i == begin || now < ended[at]) ended[at] = now;
                }
            }
            if (given->saving)
                for (size_t at = 0; at < lanes; at++)
                    ended[at] = add(ended[at], given->saving[(size_t)job->number[run] * lanes + at]);
            memcpy(&given->ends[run * lanes], ended, lanes * sizeof *ended);
        }
        for (size_t i = (size_t)job->stall_bounds[level]; i < (size_t)job->stall_bounds[level + 1]; i++) {
            int64_t *resumed = &given->resumed[(size_t)job->slot[i] * lanes], before[LANES];
            const int64_t *ended = &given->ends[(size_t)job->stall_run[i] * lanes];
            memcpy(before, &given->resumed[(size_t)given->stalled.stall[i] * lanes], lanes * sizeof *before);
            add_saved(before, given->stalled.saved[i], &given->typical[(size_t)given->stalled.member[i] * lanes], lanes);
            add_to_all(before, job->stall_length[i], lanes);
            for (size_t at = 0; at < lanes; at++) resumed[at] = before[at] < ended[at] ? before[at] : ended[at];
        }
    }
    for (size_t i = 0; i < job->finals; i++) {
        size_t member = (size_t)given->final.member[i];
        int64_t *earlier = &given->earlier[member * lanes];
        memcpy(earlier, &given->resumed[(size_t)given->final.stall[i] * lanes], lanes * sizeof *earlier);
        add_saved(earlier, given->final.saved[i], &given->typical[member * lanes], lanes);
    }
}

#if defined(__x86_64__)
#include <cpuid.h>

// Whether the processor and the system have registers of 32 bytes for numbers.
static bool has_wide_registers(void) {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX)) return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & 6) == 6 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}

__attribute__((target("avx2"))) static void replay_wide(const Job *job, const Scenarios *given) { replay(job, given, LANES); }
#else
static bool has_wide_registers(void) { return false; }

static void replay_wide(const Job *job, const Scenarios *given) { replay(job, given, LANES); }
#endif

// Says how much earlier each rank's computation ends and reaches what waits for it, in 1 to LANES scenarios.
API void job_replay(const Job *job, const Scenarios *given, size_t lanes) {
    begin_reading();
    // Loops of a known length are several times as fast.
    if (lanes == LANES && has_wide_registers()) replay_wide(job, given);
    else if (lanes == LANES) replay(job, given, LANES);
    else if (lanes == 1) replay(job, given, 1);
    else if (lanes < LANES) replay(job, given, lanes);
    end_reading();
}
