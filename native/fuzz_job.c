// Draws columns and jobs for native/job.c: for the address and undefined-behavior sanitizers of gcc or Clang.
//
//     cc -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -o fuzz native/fuzz_job.c && ./fuzz COUNT SEED
//
// Levels may be empty, moments may name any stall, and times may be anything. Each column lies in memory of exactly its
// size. Every result is compared with its definition. Prints how many jobs were drawn and how many have a stall.

#include "fuzz_draw.h"
#include "job.c"

#include <stdio.h>

enum { ENTRIES = 40, NUMBERS = 12, LEVELS = 6, RANKS = 5 };

static void check_columns(void) {
    uint64_t count = draw(ENTRIES), numbers = 1 + draw(NUMBERS);
    int64_t *number = draw_numbers(count, numbers), *values = draw_times(count);
    int64_t *low = draw_times(numbers), *high = buffer_for(numbers, 8), *before = buffer_for(numbers, 8);
    memcpy(high, low, numbers * 8), memcpy(before, low, numbers * 8);
    expect(job_lowest(number, values, count, low, numbers) && job_highest(number, values, count, high, numbers));
    int64_t *firsts = buffer_for(numbers, 8), *sums = zeros(numbers), *changes = zeros(numbers);
    int32_t *ascending = buffer_for(count, 4), *latest = buffer_for(numbers, 4);
    for (uint64_t i = 0; i < count; i++) ascending[i] = (int32_t)((i ? ascending[i - 1] : -2) + (int64_t)draw(2));
    memset(firsts, -1, numbers * 8);
    expect(job_first(number, count, firsts, numbers) && job_sums(number, values, count, sums, numbers));
    expect(job_changes(number, ascending, count, latest, changes, numbers));
    int64_t *next = zeros(numbers), *ordinals = buffer_for(count, 8), *order = buffer_for(count, 8);
    expect(job_ordinals(number, count, next, ordinals, numbers));
    int64_t *counts = zeros(numbers);
    expect(job_counts(number, count, counts, numbers));
    int64_t begin = 0;
    for (uint64_t each = 0; each < numbers; each++) {
        int64_t least = before[each], most = before[each], seen = 0, sum = 0, different = 0, previous = -1;
        for (uint64_t i = 0; i < count; i++) {
            if (number[i] != (int64_t)each) continue;
            least = values[i] < least ? values[i] : least, most = values[i] > most ? values[i] : most;
            expect(seen || firsts[each] == (int64_t)i);
            expect(ordinals[i] == seen++);
            different += previous < 0 || ascending[previous] != ascending[i];
            sum = add(sum, values[i]), previous = (int64_t)i;
        }
        expect((seen || firsts[each] == -1) && sums[each] == sum && changes[each] == different);
        expect(low[each] == least && high[each] == most && next[each] == seen && counts[each] == seen);
        next[each] = begin, begin += seen;
    }
    job_order(number, count, next, order);
    for (uint64_t i = 1; i < count; i++) {
        int64_t one = number[order[i - 1]], other = number[order[i]];
        expect(one < other || (one == other && order[i - 1] < order[i]));
    }
    int64_t *codes = buffer_for(count, 8), *ranks = zeros(numbers);
    memcpy(codes, number, count * 8);
    int64_t made = job_dense(codes, count, ranks, numbers);
    for (uint64_t i = 0; i < count; i++) {
        expect(codes[i] >= 0 && codes[i] < made);
        for (uint64_t at = 0; at < count; at++)
            expect((codes[i] < codes[at]) == (number[i] < number[at]));
    }
    if (count) {
        number[draw(count)] = draw(2) ? (int64_t)(numbers + draw(3)) : -1 - (int64_t)draw(3);
        expect(!job_lowest(number, values, count, low, numbers) && !job_highest(number, values, count, high, numbers));
        expect(!job_first(number, count, firsts, numbers) && !job_sums(number, values, count, sums, numbers));
        expect(!job_changes(number, ascending, count, latest, changes, numbers));
        expect(!job_ordinals(number, count, next, ordinals, numbers) && !job_counts(number, count, counts, numbers));
        expect(job_dense(number, count, ranks, numbers) == -1);
    }
    free(number), free(values), free(low), free(high), free(before), free(next), free(ordinals), free(order);
    free(counts), free(codes), free(ranks), free(firsts), free(sums), free(changes), free(ascending), free(latest);
}

static void check_sorting(void) {
    uint64_t count = draw(4 * ENTRIES), numbers = 1 + draw(NUMBERS), largest = 0;
    int64_t *number = draw_numbers(count, numbers), *values = draw_times(count), *order = buffer_for(count, 8);
    if (draw(2))
        for (uint64_t i = 0; i < count; i++) values[i] = (int64_t)draw(5);
    int64_t *next = zeros(numbers), *again = zeros(numbers), *others = buffer_for(count, 8), begin = 0;
    for (uint64_t i = 0; i < count; i++) next[number[i]]++;
    for (uint64_t each = 0; each < numbers; each++) {
        int64_t size = next[each];
        largest = (uint64_t)size > largest ? (uint64_t)size : largest;
        again[each] = next[each] = begin, begin += size;
    }
    int64_t *begins = buffer_for(numbers, 8), *values_scratch = buffer_for(count, 8), *middles = buffer_for(numbers, 8);
    memcpy(begins, next, numbers * 8);
    Middle *found = buffer_for(numbers, sizeof *found);
    Entry *scratch = buffer_for(2 * largest, sizeof *scratch);
    job_sort(number, values, count, next, numbers, order, scratch, largest);
    for (uint64_t i = 1; i < count; i++) {
        int64_t one = order[i - 1], other = order[i];
        expect(number[one] <= number[other]);
        if (number[one] == number[other])
            expect(values[one] < values[other] || (values[one] == values[other] && one < other));
    }
    bool alone = draw(2);
    job_middles(number, values, count, again, numbers, values_scratch, found, middles, alone ? NULL : others);
    for (uint64_t each = 0; each < numbers; each++) {
        int64_t size = next[each] - begins[each];
        expect(middles[each] == (size ? order[begins[each] + (size - 1) / 2] : -1));
    }
    if (alone) {
        memcpy(again, begins, numbers * 8);
        job_middles(number, values, count, again, numbers, values_scratch, found, middles, others);
    }
    for (uint64_t i = 0; i < count; i++) {
        int64_t *left = buffer_for(count, 8);
        uint64_t size = 0;
        for (uint64_t at = 0; at < count; at++)
            if (at != i && number[at] == number[i]) left[size++] = values[at];
        sort(left, size);
        int64_t below = size ? left[(size - 1) / 2] : values[i], above = size ? left[size / 2] : values[i];
        expect(others[i] == add(below, (int64_t)((uint64_t)above - (uint64_t)below) >> 1));
        free(left);
    }
    free(number), free(values), free(order), free(next), free(again), free(others), free(scratch);
    free(begins), free(values_scratch), free(middles), free(found);
}

// Whether the windows of two entries have the same beginning: the kinds of their ranks' entries in that step up to them.
static bool begin_alike(const int32_t *member, const int32_t *step, const int32_t *kind, int64_t one, int64_t other) {
    if (step[one] != step[other]) return false;
    int32_t place = step[one], mine = member[one], theirs = member[other];
    while (one >= 0 && other >= 0 && kind[one] == kind[other]) {
        do one--;
        while (one >= 0 && (member[one] != mine || step[one] != place));
        do other--;
        while (other >= 0 && (member[other] != theirs || step[other] != place));
    }
    return one < 0 && other < 0;
}

static void check_windows(void) {
    uint64_t count = draw(4 * ENTRIES), steps = draw(4), capacity = 2;
    int32_t *member = buffer_for(count, 4), *step = buffer_for(count, 4), *kind = draw_narrow(count, 1 + draw(3));
    int32_t *last = buffer_for(steps + 1, 4), *whose = buffer_for(steps + 1, 4);
    int64_t *number = buffer_for(count, 8), made = -1, known = 0;
    for (uint64_t i = 0; i < count; i++) {
        member[i] = (i ? member[i - 1] : 0) + !draw(12);
        step[i] = (int32_t)draw(steps + 1) - 1;
    }
    while (made < 0) {
        int32_t *slots = buffer_for(capacity, 4);
        memset(slots, -1, capacity * 4);
        Window *windows = buffer_for(capacity / 2, sizeof *windows);
        int64_t *first = buffer_for(capacity / 2, 8);
        made = job_windows(
            member, step, kind, count, steps, last, whose, slots, windows, capacity, first, number
        );
        for (int64_t each = 0; each < made; each++) {
            expect(number[first[each]] == each);
            for (int64_t i = 0; i < first[each]; i++) expect(number[i] < each);
        }
        free(slots), free(windows), free(first);
        capacity *= 2;
    }
    for (uint64_t i = 0; i < count; i++) {
        known = number[i] >= known ? number[i] + 1 : known;
        for (uint64_t at = 0; at < i; at++)
            expect((number[at] == number[i]) == begin_alike(member, step, kind, (int64_t)at, (int64_t)i));
    }
    expect(known == made);
    free(member), free(step), free(kind), free(last), free(whose), free(number);
}

static void check_totals(void) {
    uint64_t count = draw(ENTRIES), owners = 1 + draw(4);
    int64_t *owner = draw_numbers(count, owners), *starts = draw_times(count), *ends = draw_times(count);
    int64_t *last = buffer_for(owners, 8), *reach = buffer_for(owners, 8), *totals = zeros(owners);
    bool ordered = true, wide = false;
    if (draw(4)) sort(starts, count);
    for (uint64_t each = 0; each < owners; each++) {
        last[each] = reach[each] = INT64_MIN;
        int64_t before = INT64_MIN;
        for (uint64_t i = 0; i < count; i++) {
            if (owner[i] != (int64_t)each || ends[i] <= starts[i]) continue;
            ordered = ordered && starts[i] >= before;
            before = starts[i];
            wide = wide || starts[i] < 0 || ends[i] > 2000;
        }
    }
    expect(job_totals(owner, starts, ends, count, last, reach, totals) == ordered);
    for (uint64_t each = 0; each < owners && ordered && !wide; each++) {
        int64_t covered = 0;
        for (int64_t time = 0; time < 2000; time++) {
            bool within = false;
            for (uint64_t i = 0; i < count; i++)
                within = within || (owner[i] == (int64_t)each && starts[i] <= time && time < ends[i]);
            covered += within;
        }
        expect(totals[each] == covered);
    }
    free(owner), free(starts), free(ends), free(last), free(reach), free(totals);
}

static void check_search(void) {
    uint64_t length = draw(ENTRIES), count = draw(ENTRIES);
    int64_t *sorted = draw_times(length), *values = draw_times(count), *places = buffer_for(count, 8);
    sort(sorted, length);
    if (draw(2)) sort(values, count);
    for (uint64_t i = 0; i < count && length; i++)
        if (!draw(3)) values[i] = sorted[draw(length)];
    bool right = draw(2);
    job_search(sorted, length, values, count, right, places);
    for (uint64_t i = 0; i < count; i++) {
        int64_t place = 0;
        for (uint64_t at = 0; at < length; at++) place += sorted[at] < values[i] || (right && sorted[at] == values[i]);
        expect(places[i] == place);
    }
    free(sorted), free(values), free(places);
}

// Rows with cells, some of which are asked for, in any order.
static void check_cells(void) {
    uint64_t length = draw(ENTRIES), count = draw(ENTRIES), codes = draw(NUMBERS);
    size_t bytes = draw(2) ? 4 : 8;
    int32_t *rows = buffer_for(length, 4), *wanted = buffer_for(count, 4), row = -1;
    uint8_t *cells = buffer_for(length, bytes), *picked = buffer_for(count, bytes), *seen = buffer_for(codes, 1);
    for (uint64_t i = 0; i < length; i++) rows[i] = row += 1 + (int32_t)draw(3);
    for (uint64_t i = 0; i < length * bytes; i++) cells[i] = (uint8_t)(1 + draw(255));
    bool ascending = draw(2);
    int32_t last = 0;
    for (uint64_t i = 0; i < count; i++) wanted[i] = last = ascending ? last + (int32_t)draw(4) : (int32_t)draw(80) - 1;
    memset(picked, 0, count * bytes), memset(seen, 0, codes);
    job_pick(rows, cells, length, bytes, wanted, count, picked), job_mark(wanted, count, seen, codes);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t expected[8] = {0};
        for (uint64_t at = 0; at < length; at++)
            if (rows[at] == wanted[i]) memcpy(expected, &cells[at * bytes], bytes);
        expect(!memcmp(expected, &picked[i * bytes], bytes));
    }
    for (uint64_t code = 0; code < codes; code++) {
        bool found = false;
        for (uint64_t i = 0; i < count; i++) found |= wanted[i] == (int32_t)code;
        expect(seen[code] == found);
    }
    free(rows), free(wanted), free(cells), free(picked), free(seen);
}

// Entries by code, and rows by name, compared with what each one has.
static void check_codes(void) {
    uint64_t count = draw(ENTRIES), capacity = 0, names = draw(6) + 1, made = 0;
    uint8_t *code = buffer_for(count, 1), *counts = draw_flags(count, 3), *wanted = draw_flags(256, 2);
    uint8_t *marked = draw_flags(names + 1, 2);
    int32_t *rows = draw_narrow(count, count + !draw(3)), *name = draw_narrow(count, names + 3), *found = buffer_for(count, 4);
    int64_t bounds[257];
    for (uint64_t i = 0; i < count; i++) code[i] = (uint8_t)draw(draw(2) ? 5 : 256), name[i] -= 1;
    for (uint64_t i = 0; i < count; i++) capacity += counts[i] && wanted[code[i]];
    int32_t *selected = buffer_for(capacity, 4), *grouped = buffer_for(count, 4);
    expect(job_select(code, counts, count, wanted, selected, capacity) == capacity);
    job_group(code, counts, count, grouped, bounds);
    for (uint64_t i = 0; i < count; i++)
        if (counts[i] && wanted[code[i]]) expect(selected[made++] == (int32_t)i);
    expect(bounds[0] == 0);
    for (uint64_t each = 0; each < 256; each++) {
        int64_t at = bounds[each];
        for (uint64_t i = 0; i < count; i++)
            if (counts[i] && code[i] == each) expect(grouped[at++] == (int32_t)i);
        expect(at == bounds[each + 1]);
    }
    bool known = true;
    for (uint64_t i = 0; i < count; i++) known = known && rows[i] < (int32_t)count;
    int64_t listed = job_named(rows, count, name, count, marked, names, found), at = 0;
    expect((listed >= 0) == known);
    for (uint64_t i = 0; i < count && known; i++) {
        int32_t one = name[rows[i]];
        if (marked[one >= 0 && (uint64_t)one < names ? (uint64_t)one : names]) expect(found[at++] == rows[i]);
    }
    expect(!known || at == listed);
    free(code), free(counts), free(wanted), free(marked), free(rows), free(name), free(found), free(selected), free(grouped);
}

static void check_spans(void) {
    uint64_t events = draw(ENTRIES), count = draw(ENTRIES), known = 0;
    int64_t *start = draw_times(events), *duration = draw_times(events);
    int64_t *starts = buffer_for(count, 8), *ends = buffer_for(count, 8);
    int32_t *rows = buffer_for(count, 4);
    for (uint64_t i = 0; i < events; i++)
        if (!draw(8)) *(draw(2) ? &start[i] : &duration[i]) = INT64_MIN;
    bool beyond = !draw(4) || !events;
    for (uint64_t i = 0; i < count; i++) rows[i] = beyond ? (int32_t)draw(80) - 20 : (int32_t)draw(events);
    while (known < count && rows[known] >= 0 && (uint64_t)rows[known] < events) known++;
    expect(job_spans(rows, count, start, duration, events, starts, ends) == (known == count));
    for (uint64_t i = 0; i < known; i++) {
        int64_t from = start[rows[i]], length = duration[rows[i]] > 0 ? duration[rows[i]] : 0;
        expect(starts[i] == from && ends[i] == (from == INT64_MIN ? from : add(from, length)));
    }
    int64_t *made_starts = buffer_for(count, 8), *made_ends = buffer_for(count, 8);
    int64_t *merged_starts = buffer_for(count, 8), *merged_ends = buffer_for(count, 8);
    int64_t made = job_intervals(rows, count, start, duration, events, made_starts, made_ends);
    int64_t merged = job_merge(starts, ends, known, merged_starts, merged_ends);
    expect(made == (known == count ? merged : -1));
    for (int64_t i = 0; i < made; i++) expect(made_starts[i] == merged_starts[i] && made_ends[i] == merged_ends[i]);
    free(made_starts), free(made_ends), free(merged_starts), free(merged_ends);
    free(start), free(duration), free(starts), free(ends), free(rows);
}

enum { MOMENTS = 60 };

typedef struct {
    int64_t *starts, *ends;
    uint64_t count;
} Set;

// A set, and in `within` which of the first moments it covers.
static Set draw_set(bool *within) {
    uint64_t count = draw(ENTRIES);
    Set set = {buffer_for(count, 8), buffer_for(count, 8), 0};
    int64_t *starts = draw_numbers(count, MOMENTS), *ends = buffer_for(count, 8);
    memset(within, 0, MOMENTS);
    if (draw(4)) sort(starts, count);
    bool sorted = true;
    int64_t last = -1;
    for (uint64_t i = 0; i < count; i++) {
        ends[i] = starts[i] + (int64_t)draw(8) - 2;
        if (ends[i] > MOMENTS) ends[i] = MOMENTS;
        if (ends[i] <= starts[i]) continue;
        sorted &= starts[i] >= last, last = starts[i];
        for (int64_t at = starts[i]; at < ends[i]; at++) within[at] = true;
    }
    int64_t made = job_merge(starts, ends, count, set.starts, set.ends);
    expect(sorted ? made >= 0 : made == -1);
    if (made < 0) {
        made = 0;
        memset(within, 0, MOMENTS);
    }
    set.count = (uint64_t)made;
    free(starts), free(ends);
    return set;
}

// What a set covers, in intervals of which no two touch.
static void check_set(Set set, const bool *within) {
    bool covered[MOMENTS] = {false};
    for (uint64_t i = 0; i < set.count; i++) {
        expect(set.starts[i] < set.ends[i] && (!i || set.starts[i] > set.ends[i - 1]));
        for (int64_t at = set.starts[i]; at < set.ends[i]; at++) covered[at] = true;
    }
    expect(!memcmp(covered, within, MOMENTS));
}

static void check_sets(void) {
    bool within[MOMENTS], other_within[MOMENTS], expected[MOMENTS];
    Set one = draw_set(within), other = draw_set(other_within);
    check_set(one, within), check_set(other, other_within);
    for (int how = 0; how < 3; how++) {
        uint64_t capacity = one.count + other.count;
        Set made = {buffer_for(capacity, 8), buffer_for(capacity, 8), 0};
        made.count = job_combine(
            how, one.starts, one.ends, one.count, other.starts, other.ends, other.count, made.starts, made.ends
        );
        for (int at = 0; at < MOMENTS; at++)
            expected[at] = how == 0   ? within[at] || other_within[at]
                           : how == 1 ? within[at] && other_within[at]
                                      : within[at] && !other_within[at];
        check_set(made, expected);
        free(made.starts), free(made.ends);
    }
    uint64_t count = draw(ENTRIES);
    int64_t *times = draw_numbers(count, MOMENTS + 2), *covered = buffer_for(count, 8), *before = zeros(one.count + 1);
    for (uint64_t i = 0; i < one.count; i++) before[i + 1] = before[i] + one.ends[i] - one.starts[i];
    job_covered(one.starts, one.ends, before, one.count, times, count, covered);
    for (uint64_t i = 0; i < count; i++) {
        int64_t sum = 0;
        for (int64_t at = 0; at < MOMENTS && at < times[i]; at++) sum += within[at];
        expect(covered[i] == sum);
    }
    free(times), free(covered), free(before);
    free(one.starts), free(one.ends), free(other.starts), free(other.ends);
}

static Moments draw_moments(uint64_t count, uint64_t ranks, uint64_t stalls) {
    return (Moments){draw_narrow(count, ranks), draw_narrow(count, stalls + 1), draw_times(count)};
}

// Lets the moments of each level name stalls of earlier levels only.
static void keep_in_turn(const Moments *moments, const int64_t *bounds, const int64_t *stall_bounds, const Job *job) {
    for (uint64_t level = 0; level < job->levels; level++)
        for (int64_t i = bounds[level]; i < bounds[level + 1]; i++) {
            int32_t *stall = (int32_t *)&moments->stall[i];
            if (*stall >= stall_bounds[level]) *stall = (int32_t)job->stalls;
        }
}

// Replays again with few slots for each rank's stalls, if none is read before its turn: the result is the same. Says
// whether it did.
static bool check_slots(Job job, Scenarios given, size_t lanes) {
    int32_t *ordinal = buffer_for(job.stalls, 4), *written = buffer_for(job.ranks, 4), *slot = buffer_for(job.stalls + 1, 4);
    const int32_t *stalls[3] = {given.reached.stall, given.stalled.stall, given.final.stall};
    const uint64_t counts[3] = {job.operations, job.stalls, job.finals};
    memset(written, 0, job.ranks * 4);
    const Moments moments[] = {given.reached, given.stalled, given.final};
    int64_t kept = job_slots(&job, moments, ordinal, written);
    uint64_t rows = job.ranks * (uint64_t)kept, bytes = job.ranks * lanes * 8;
    for (uint64_t i = 0; kept && i < job.stalls; i++)
        slot[i] = (int32_t)(given.stalled.member[i] * kept + ordinal[i] % kept);
    slot[job.stalls] = (int32_t)rows, job.slot = slot;
    Moments *made[] = {&given.reached, &given.stalled, &given.final};
    for (int kind = 0; kind < 3; kind++) {
        int32_t *moved = buffer_for(counts[kind], 4);
        for (uint64_t i = 0; kept && i < counts[kind]; i++) moved[i] = slot[stalls[kind][i]];
        made[kind]->stall = moved;
    }
    int64_t *earlier = given.earlier, *arrivals = given.arrivals;
    given.earlier = zeros(job.ranks * lanes), given.arrivals = zeros(job.ranks * lanes);
    given.ends = zeros((job.runs + 1) * lanes), given.resumed = zeros((rows + 1) * lanes);
    if (kept) {
        job_replay(&job, &given, lanes);
        expect(!memcmp(given.earlier, earlier, bytes) && !memcmp(given.arrivals, arrivals, bytes));
    }
    for (int kind = 0; kind < 3; kind++) free((void *)made[kind]->stall);
    free(ordinal), free(written), free(slot);
    free(given.earlier), free(given.arrivals), free(given.ends), free(given.resumed);
    return kept && job.stalls;
}

static void free_moments(Moments moments) {
    free((void *)moments.member), free((void *)moments.stall), free((void *)moments.saved);
}

// One scenario after the other, each run from what its operations say.
static void check_scenario(const Job *job, const Scenarios *given, size_t lanes, size_t at) {
    int64_t *ends = zeros(job->runs + 1), *resumed = zeros(job->stalls + 1), *arrivals = zeros(job->ranks);
    int64_t *earlier = zeros(job->ranks);
    for (uint64_t level = 0; level < job->levels; level++) {
        for (uint64_t run = 0; run < job->runs; run++) {
            if (job->run_begins[run] < job->bounds[level] || job->run_begins[run] >= job->bounds[level + 1]) continue;
            int64_t finish = run + 1 < job->runs ? job->run_begins[run + 1] : (int64_t)job->operations, least = 0;
            for (int64_t i = job->run_begins[run]; i < finish; i++) {
                int64_t member = given->reached.member[i], reached = resumed[given->reached.stall[i]];
                if (given->typical[(uint64_t)member * lanes + at]) reached = add(reached, given->reached.saved[i]);
                reached = add(reached, job->slack[i]);
                int64_t freed = add(ends[job->previous[i]], job->gap[i]);
                if (freed < reached) reached = freed;
                if (job->last_arrival[i]) arrivals[member] = add(arrivals[member], reached);
                reached = add(reached, job->waited[i]);
                if (i == job->run_begins[run] || reached < least) least = reached;
            }
            ends[run] = given->saving ? add(least, given->saving[(uint64_t)job->number[run] * lanes + at]) : least;
        }
        for (int64_t i = job->stall_bounds[level]; i < job->stall_bounds[level + 1]; i++) {
            int64_t before = resumed[given->stalled.stall[i]];
            if (given->typical[(uint64_t)given->stalled.member[i] * lanes + at]) before = add(before, given->stalled.saved[i]);
            before = add(before, job->stall_length[i]);
            resumed[i] = before < ends[job->stall_run[i]] ? before : ends[job->stall_run[i]];
        }
    }
    for (uint64_t i = 0; i < job->finals; i++) {
        int64_t member = given->final.member[i], end = resumed[given->final.stall[i]];
        earlier[member] = given->typical[(uint64_t)member * lanes + at] ? add(end, given->final.saved[i]) : end;
    }
    for (uint64_t rank = 0; rank < job->ranks; rank++) {
        expect(given->earlier[rank * lanes + at] == earlier[rank]);
        expect(given->arrivals[rank * lanes + at] == arrivals[rank]);
    }
    free(ends), free(resumed), free(arrivals), free(earlier);
}

static long in_turn;

// Says whether the drawn job has a stall.
static bool check_job(void) {
    Job job = {.levels = draw(LEVELS), .ranks = 1 + draw(RANKS)};
    uint64_t numbers = 1 + draw(NUMBERS), lanes = draw(3) ? 1 + draw(LANES) : LANES;
    int64_t *bounds = zeros(job.levels + 1), *stall_bounds = zeros(job.levels + 1);
    for (uint64_t level = 0; level < job.levels; level++) {
        bounds[level + 1] = bounds[level] + (int64_t)draw(6);
        stall_bounds[level + 1] = stall_bounds[level] + (int64_t)draw(3);
    }
    job.operations = (uint64_t)bounds[job.levels], job.stalls = job.operations ? (uint64_t)stall_bounds[job.levels] : 0;
    if (!job.operations)
        for (uint64_t level = 0; level <= job.levels; level++) stall_bounds[level] = 0;
    int64_t *run_begins = buffer_for(job.operations, 8);
    for (uint64_t level = 0; level < job.levels; level++)
        for (int64_t i = bounds[level]; i < bounds[level + 1]; i++)
            if (i == bounds[level] || !draw(3)) run_begins[job.runs++] = i;
    job.bounds = bounds, job.stall_bounds = stall_bounds, job.run_begins = run_begins, job.finals = draw(job.ranks + 1);
    job.number = draw_numbers(job.runs, numbers), job.previous = draw_narrow(job.operations, job.runs + 1);
    job.slack = draw_times(job.operations), job.gap = draw_times(job.operations), job.waited = draw_times(job.operations);
    job.last_arrival = draw_flags(job.operations, 2), job.stall_length = draw_times(job.stalls);
    job.stall_run = draw_numbers(job.stalls, job.runs ? job.runs : 1);
    Scenarios given = {
        draw_moments(job.operations, job.ranks, job.stalls), draw_moments(job.stalls, job.ranks, job.stalls),
        draw_moments(job.finals, job.ranks, job.stalls), draw_flags(job.ranks * lanes, 2),
        draw(2) ? draw_times(numbers * lanes) : NULL, zeros(job.ranks * lanes), zeros(job.ranks * lanes),
        zeros((job.runs + 1) * lanes), zeros((job.stalls + 1) * lanes),
    };
    int32_t *slot = buffer_for(job.stalls, 4);
    for (uint64_t i = 0; i < job.stalls; i++) slot[i] = (int32_t)i;
    job.slot = slot;
    if (draw(2)) {
        keep_in_turn(&given.reached, bounds, stall_bounds, &job);
        keep_in_turn(&given.stalled, stall_bounds, stall_bounds, &job);
    }
    job_replay(&job, &given, lanes);
    in_turn += check_slots(job, given, lanes);
    for (size_t at = 0; at < lanes; at++) check_scenario(&job, &given, lanes, at);
    free(slot), free(bounds), free(stall_bounds), free(run_begins), free((void *)job.number), free((void *)job.previous);
    free((void *)job.slack), free((void *)job.gap), free((void *)job.waited), free((void *)job.last_arrival);
    free((void *)job.stall_length), free((void *)job.stall_run), free((void *)given.typical), free((void *)given.saving);
    free(given.earlier), free(given.arrivals), free(given.ends), free(given.resumed);
    free_moments(given.reached), free_moments(given.stalled), free_moments(given.final);
    return job.stalls > 0;
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    long drawn = atol(arguments[1]), stalled = 0;
    state = (uint64_t)atol(arguments[2]);
    for (long i = 0; i < drawn; i++) {
        check_columns();
        check_search();
        if (i % 8 == 0) check_sorting();
        if (i % 32 == 0) check_windows();
        if (i % 16 == 0) check_totals();
        check_cells();
        check_codes();
        check_spans();
        check_sets();
        stalled += check_job();
    }
    printf("%ld drawn, %ld with a stall, %ld with all in turn\n", drawn, stalled, in_turn);
    return 0;
}
