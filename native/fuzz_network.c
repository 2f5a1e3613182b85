// Draws recorded operations for native/network.h: for the address and undefined-behavior sanitizers of gcc or Clang.
//
//     cc -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -o fuzz native/fuzz_network.c && ./fuzz COUNT SEED
//
// Ranks may disagree on the order of collectives, have no operation, or stall for any time. Each column lies in memory of
// exactly its size. Every result is compared with its definition. Prints how many networks were drawn, and in how many of
// them ranks disagree, so that an operation is taken alone.

#include "fuzz_draw.h"
#include "job.c"

#include <stdio.h>

enum { ENTRIES = 10, RANKS = 5, COLLECTIVES = 8 };

// The last of a rank's operations by end that ended by a time and for which it stalled, -1 for none.
static int64_t last_stall(const Recorded *given, int64_t rank, int64_t time) {
    int64_t last = -1;
    for (int64_t i = given->bounds[rank]; i < given->bounds[rank + 1]; i++)
        if (given->stall[i] > 0 && given->end[i] <= time && (last < 0 || given->end[i] >= given->end[last])) last = i;
    return last;
}

static int64_t collective_of(const Recorded *given, int32_t operation) {
    return given->compared[operation] ? given->instance[operation] : (int64_t)given->collectives + operation;
}

// What came last before an operation's stall began: the last operation of the rank before if it has none itself.
static int64_t before_stall(const Recorded *given, int64_t i) {
    int64_t last = given->bounds[given->member[i]] - 1;
    for (int64_t at = last + 1; at < given->bounds[given->member[i] + 1]; at++)
        if (given->start[at] <= given->end[i] - given->stall[i]) last = at;
    return last < 0 ? (int64_t)given->operations - 1 : last;
}

static int64_t next_of(const Recorded *given, const bool *placed, int64_t rank) {
    int64_t next = -1;
    for (int64_t i = given->bounds[rank]; i < given->bounds[rank + 1]; i++)
        if (!placed[i] && (next < 0 || given->end[i] < given->end[next])) next = i;
    return next;
}

// Whether all ranks have come to the collective of an operation.
static bool is_due(const Recorded *given, const bool *placed, int64_t operation) {
    if (!given->compared[operation]) return true;
    for (int64_t i = 0; i < (int64_t)given->operations; i++)
        if (given->compared[i] && given->instance[i] == given->instance[operation] && !placed[i])
            if (next_of(given, placed, given->member[i]) != i) return false;
    return true;
}

// Says whether an operation was taken alone although others were to come to it.
static bool check_levels(const Recorded *given, const Network *made) {
    bool placed[ENTRIES * RANKS] = {false}, disagree = false;
    expect(made->bounds[0] == 0 && made->bounds[made->levels] == (int64_t)given->operations);
    for (uint64_t level = 0; level < made->levels; level++) {
        bool due[ENTRIES * RANKS] = {false};
        int64_t expected = 0, first = -1;
        for (int64_t rank = (int64_t)given->ranks; rank-- > 0;) {
            int64_t next = next_of(given, placed, rank);
            if (next < 0) continue;
            first = next;
            if (is_due(given, placed, next)) due[next] = true, expected++;
        }
        if (!expected) due[first] = true, expected++, disagree = true;
        expect(made->bounds[level + 1] - made->bounds[level] == expected);
        int64_t last = -1, last_rank = -1;
        for (int64_t i = made->bounds[level]; i < made->bounds[level + 1]; i++) {
            int32_t operation = made->until[0][i];
            int64_t collective = collective_of(given, operation);
            expect(due[operation] && collective >= last);
            expect(collective > last || given->member[operation] > last_rank);
            last = collective, last_rank = given->member[operation];
        }
        for (int64_t i = made->bounds[level]; i < made->bounds[level + 1]; i++) placed[made->until[0][i]] = true;
    }
    return disagree;
}

static void check_moment(const Recorded *given, const Network *made, int kind, uint64_t at, int64_t last, int64_t until) {
    expect(made->until[kind][at] == until);
    expect(made->since[kind][at] == (last < 0 ? -1 : before_stall(given, last)));
    if (last < 0) expect(made->stall[kind][at] == (int32_t)made->stalls);
    else expect(made->stall_length[made->stall[kind][at]] == given->stall[last]);
}

static void check_moments(const Recorded *given, const Network *made, const NetworkScratch *scratch) {
    uint64_t run = 0, stall = 0, level = 0, final = 0;
    for (uint64_t i = 0; i < given->operations; i++) {
        int32_t operation = made->until[0][i], member = given->member[operation];
        while (made->bounds[level + 1] <= (int64_t)i) level++;
        if (made->bounds[level] == (int64_t)i) expect(made->stall_bounds[level] == (int64_t)stall);
        while (run + 1 < made->runs && made->run_begins[run + 1] <= (int64_t)i) run++;
        int64_t end = run + 1 < made->runs ? made->run_begins[run + 1] : (int64_t)given->operations;
        int64_t collective = collective_of(given, operation), previous = given->previous[operation];
        if (i && made->bounds[level] != (int64_t)i)
            expect((made->run_begins[run] == (int64_t)i) == (collective_of(given, made->until[0][i - 1]) != collective));
        expect(made->number[run] == (collective < (int64_t)given->collectives ? collective : (int64_t)given->collectives));
        expect(made->previous[i] == (previous < 0 ? (int32_t)made->runs : scratch->run[previous]));
        expect(scratch->run[operation] == (int32_t)run && made->member[0][i] == member);
        expect(made->gap[i] == (previous < 0 ? NO_PREVIOUS : given->start[operation] - given->end[previous]));
        expect(made->slack[i] == given->slack[operation]);
        expect(made->waited[i] == (given->compared[operation] ? given->waiting[operation] : 0));
        expect(made->last_arrival[i] == (!made->waited[i] && end - made->run_begins[run] > 1));
        int64_t reached = given->start[operation] - given->slack[operation];
        check_moment(given, made, 0, i, last_stall(given, member, reached), operation);
        if (given->stall[operation] <= 0) continue;
        expect(made->stall_length[stall] == given->stall[operation] && made->stall_run[stall] == (int64_t)run);
        expect(made->member[1][stall] == member && scratch->stall_of[operation] == (int32_t)stall);
        int64_t last = last_stall(given, member, given->end[operation] - given->stall[operation]);
        check_moment(given, made, 1, stall++, last, before_stall(given, operation));
    }
    expect(stall == made->stalls && made->stall_bounds[made->levels] == (int64_t)stall);
    expect(given->operations ? run + 1 == made->runs : !made->runs);
    for (int64_t rank = 0; rank < (int64_t)given->ranks; rank++) {
        if (given->bounds[rank] == given->bounds[rank + 1]) continue;
        expect(made->member[2][final] == rank);
        check_moment(given, made, 2, final++, last_stall(given, rank, INT64_MAX), given->bounds[rank + 1] - 1);
    }
    expect(final == made->finals);
}

// The work saved before moments, with a number that isn't an operation now and then.
static void check_saved(const Recorded *given, Network *made) {
    const uint64_t lengths[] = {given->operations, made->stalls, made->finals};
    int64_t *work = draw_numbers(given->operations, 1000), *typical = draw_numbers(given->operations, 1000);
    int64_t *excess = zeros(given->operations), *totals = buffer_for(given->operations + 1, 8);
    for (uint64_t i = 0; i < given->operations; i++) excess[i] = work[i] - typical[i];
    job_excess(work, typical, given->bounds, given->ranks, totals);
    expect(totals[given->operations] == 0);
    for (int kind = 0; kind < 3; kind++) {
        int64_t *saved = buffer_for(lengths[kind], 8);
        const int32_t *until = made->until[kind], *since = made->since[kind];
        expect(job_saved(totals, given->operations, until, since, lengths[kind], saved));
        for (uint64_t i = 0; i < lengths[kind]; i++) {
            int64_t expected = 0;
            for (int64_t at = given->bounds[until[i] < 0 ? 0 : given->member[until[i]]]; at <= until[i]; at++)
                expected += excess[at];
            for (int64_t at = given->bounds[since[i] < 0 ? 0 : given->member[since[i]]]; at <= since[i]; at++)
                expected -= excess[at];
            expect(saved[i] == expected);
        }
        if (lengths[kind]) {
            int32_t *named = draw(2) ? made->until[kind] : made->since[kind];
            uint64_t place = draw(lengths[kind]);
            int32_t before = named[place];
            named[place] = draw(2) ? (int32_t)given->operations + (int32_t)draw(3) : -2 - (int32_t)draw(3);
            expect(!job_saved(totals, given->operations, until, since, lengths[kind], saved));
            named[place] = before;
        }
        free(saved);
    }
    free(work), free(typical), free(excess), free(totals);
}

static bool check_network(void) {
    uint64_t ranks = 1 + draw(RANKS), most = ranks, count = 0, stalls = 0;
    int64_t *bounds = zeros(ranks + 1);
    for (uint64_t rank = 0; rank < ranks; rank++) {
        uint64_t mine = draw(ENTRIES);
        bounds[rank + 1] = bounds[rank] + (int64_t)mine, most = mine > most ? mine : most;
    }
    count = (uint64_t)bounds[ranks];
    Recorded given = {.operations = count, .ranks = ranks, .collectives = 1 + draw(COLLECTIVES), .bounds = bounds};
    int32_t *member = buffer_for(count, 4);
    int64_t *start = buffer_for(count, 8), *end = buffer_for(count, 8), *previous = buffer_for(count, 8), *stall = zeros(count);
    int64_t *instance = draw_numbers(count, given.collectives);
    bool alike = draw(2); // most ranks go through the same collectives
    for (uint64_t rank = 0; rank < ranks; rank++)
        for (int64_t i = bounds[rank]; i < bounds[rank + 1]; i++) {
            member[i] = (int32_t)rank;
            start[i] = (i > bounds[rank] ? start[i - 1] : 0) + (int64_t)draw(20);
            end[i] = start[i] + (int64_t)draw(30);
            previous[i] = draw(2) ? (int64_t)draw(count) : -1;
            if (draw(2)) stall[i] = (int64_t)draw(40) - 5, stalls += stall[i] > 0;
            if (alike) instance[i] = (i - bounds[rank]) % (int64_t)given.collectives;
        }
    given.member = member, given.start = start, given.end = end, given.previous = previous, given.stall = stall;
    given.instance = instance, given.slack = draw_numbers(count, 20);
    given.waiting = draw_numbers(count, 3), given.compared = draw_flags(count, 2);
    uint64_t tile = most + draw(2 * ENTRIES); // one rank or several
    NetworkScratch scratch = {most, tile, buffer_for(count, 4), buffer_for(count, 4), buffer_for(count, 4), buffer_for(count, 4),
                        buffer_for(count, 4), buffer_for(given.collectives, 4), buffer_for(given.collectives, 4),
                        buffer_for(ranks, 4), buffer_for(ranks, 4), buffer_for(most, 4), buffer_for(most, 8),
                        buffer_for(2 * most, sizeof(Entry)), buffer_for(tile, 4), buffer_for(tile, 4), buffer_for(tile, 4)};
    Network made = {.bounds = buffer_for(count + 1, 8), .stall_bounds = buffer_for(count + 1, 8),
                    .run_begins = buffer_for(count, 8), .number = buffer_for(count, 8), .previous = buffer_for(count, 4),
                    .slack = buffer_for(count, 8), .gap = buffer_for(count, 8), .waited = buffer_for(count, 8),
                    .last_arrival = buffer_for(count, 1), .stall_run = buffer_for(stalls, 8),
                    .stall_length = buffer_for(stalls, 8)};
    const uint64_t lengths[] = {count, stalls, ranks};
    for (int kind = 0; kind < 3; kind++) {
        made.member[kind] = buffer_for(lengths[kind], 4), made.stall[kind] = buffer_for(lengths[kind], 4);
        made.until[kind] = buffer_for(lengths[kind], 4), made.since[kind] = buffer_for(lengths[kind], 4);
    }
    job_network(&given, &scratch, &made);
    check_saved(&given, &made);
    bool disagree = check_levels(&given, &made);
    check_moments(&given, &made, &scratch);
    free(bounds), free(member), free(start), free(end), free(previous), free(stall), free(instance);
    free((void *)given.slack), free((void *)given.waiting), free((void *)given.compared);
    free(scratch.by_end), free(scratch.turn), free(scratch.place), free(scratch.run), free(scratch.stall_of), free(scratch.missing);
    free(scratch.due), free(scratch.head), free(scratch.last_stall), free(scratch.next), free(scratch.stall_ends), free(scratch.entries);
    free(scratch.before), free(scratch.stalled_before), free(scratch.before_stall);
    free(made.bounds), free(made.stall_bounds), free(made.run_begins), free(made.number), free(made.previous);
    free(made.slack), free(made.gap), free(made.waited), free(made.last_arrival), free(made.stall_run);
    free(made.stall_length);
    for (int kind = 0; kind < 3; kind++)
        free(made.member[kind]), free(made.stall[kind]), free(made.until[kind]), free(made.since[kind]);
    return disagree;
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    long drawn = atol(arguments[1]), disagree = 0;
    state = (uint64_t)atol(arguments[2]);
    for (long i = 0; i < drawn; i++) disagree += check_network();
    printf("%ld drawn, %ld disagree\n", drawn, disagree);
    return 0;
}
