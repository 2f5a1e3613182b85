// Draws schedules and has them planned and replayed: for the address and undefined-behavior sanitizers of gcc or Clang.
//
//     cc -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -o fuzz native/fuzz_schedule.c && ./fuzz COUNT SEED
//
// Chains may be empty, nodes may wait for each other, and times may be anything. Each column lies in memory of exactly its
// size. Every time is compared with what its definition says. Prints how many schedules were drawn and how many have an
// order.

#include "fuzz_draw.h"
#include "schedule.c"

#include <stdio.h>

enum { CHAINS = 5, NODES = 24, LINKS = 40, CASES = 3 };

// Times, of which some are NEVER.
static int64_t *draw_moments(uint64_t count) {
    int64_t *times = draw_times(count);
    for (uint64_t i = 0; i < count; i++)
        if (!draw(40)) times[i] = NEVER;
    return times;
}

static int64_t *draw_bounds(uint64_t chains, uint64_t *nodes) {
    int64_t *bounds = buffer_for(chains + 1, sizeof *bounds);
    bounds[0] = 0;
    for (uint64_t i = 0; i < chains; i++) bounds[i + 1] = bounds[i] + (int64_t)draw(draw(3) ? 6 : NODES);
    *nodes = (uint64_t)bounds[chains];
    return bounds;
}

// Sorted positions from `lowest` to below `nodes`.
static int64_t *draw_sorted(uint64_t count, uint64_t lowest, uint64_t nodes) {
    int64_t *sorted = buffer_for(count, sizeof *sorted);
    for (uint64_t i = 0; i < count; i++) {
        int64_t value = (int64_t)(lowest + draw(nodes - lowest));
        uint64_t at = i;
        for (; at && sorted[at - 1] > value; at--) sorted[at] = sorted[at - 1];
        sorted[at] = value;
    }
    return sorted;
}

// A source among the first `at` of `total` nodes' share of `nodes`, -1 if there is none: so no nodes wait for each other.
// With `any` it is any node, and they may.
static int64_t draw_source(uint64_t nodes, int64_t at, uint64_t total, bool any) {
    uint64_t before = any ? nodes : nodes * (uint64_t)at / total;
    return before ? (int64_t)draw(before) : -1;
}

static Graph draw_graph(void) {
    Graph graph = {.threads = draw(CHAINS), .streams = draw(CHAINS)};
    bool any = !draw(3);
    graph.point_bounds = draw_bounds(graph.threads, &graph.points);
    graph.item_bounds = draw_bounds(graph.streams, &graph.items);
    uint64_t lowest = any ? 0 : 1;
    graph.edges = graph.points > lowest ? draw(LINKS) : 0;
    graph.waits = graph.items > lowest ? draw(LINKS) : 0;
    graph.time = draw_moments(graph.points), graph.anchored = draw_flags(graph.points, 2);
    graph.target = draw_sorted(graph.edges, lowest, graph.points), graph.edge_weight = draw_moments(graph.edges);
    int64_t *edge_item = buffer_for(graph.edges, 8), *edge_point = buffer_for(graph.edges, 8);
    for (uint64_t i = 0; i < graph.edges; i++) {
        edge_item[i] = draw(2) ? draw_source(graph.items, graph.target[i], graph.points, any) : -1;
        edge_point[i] = edge_item[i] >= 0 ? -1 : draw_source(graph.points, graph.target[i], graph.points, any);
    }
    graph.edge_item = edge_item, graph.edge_point = edge_point;
    graph.start = draw_moments(graph.items), graph.launch = draw_moments(graph.items), graph.gap = draw_moments(graph.items);
    graph.unlimited = draw_flags(graph.items, 2);
    int64_t *submission = buffer_for(graph.items, 8), *source = buffer_for(graph.waits, 8);
    for (uint64_t i = 0; i < graph.items; i++)
        submission[i] = graph.points && draw(3) ? draw_source(graph.points, (int64_t)i, graph.items, any) : -1;
    graph.waiting = draw_sorted(graph.waits, lowest, graph.items), graph.wait_weight = draw_moments(graph.waits);
    for (uint64_t i = 0; i < graph.waits; i++) source[i] = draw_source(graph.items, graph.waiting[i], graph.items, any);
    graph.submission = submission, graph.wait_source = source;
    return graph;
}

static void free_graph(Graph *graph) {
    const void *columns[] = {
        graph->point_bounds, graph->item_bounds, graph->time, graph->anchored, graph->target, graph->edge_item,
        graph->edge_point, graph->edge_weight, graph->start, graph->submission, graph->launch, graph->gap,
        graph->unlimited, graph->waiting, graph->wait_source, graph->wait_weight,
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) free((void *)columns[i]);
}

// Each node is in one run, after all nodes of its chain before it.
static void check_runs(const Graph *graph, const Run *runs, int64_t count) {
    uint64_t chains = graph->threads + graph->streams;
    int64_t next[2 * CHAINS];
    for (uint64_t chain = 0; chain < chains; chain++) next[chain] = chain_begin(graph, chain);
    for (int64_t i = 0; i < count; i++) {
        expect(runs[i].chain >= 0 && (uint64_t)runs[i].chain < chains);
        expect(runs[i].low == next[runs[i].chain] && runs[i].high > runs[i].low);
        next[runs[i].chain] = runs[i].high;
    }
    for (uint64_t chain = 0; chain < chains; chain++) expect(next[chain] == chain_end(graph, chain));
}

// Each time is what its definition makes of the others, so that all sources were computed before.
static void check_times(
    const Graph *graph, const int64_t *step, const int64_t *duration, const uint8_t *removed, const int64_t *points,
    const int64_t *ends
) {
    for (uint64_t chain = 0; chain < graph->threads; chain++)
        for (int64_t point = graph->point_bounds[chain]; point < graph->point_bounds[chain + 1]; point++) {
            int64_t now = graph->anchored[point] ? graph->time[point] : NEVER;
            if (point > graph->point_bounds[chain]) now = add(points[point - 1], step[point]);
            for (uint64_t edge = 0; edge < graph->edges; edge++) {
                if (graph->target[edge] != point || (removed && removed[edge])) continue;
                int64_t item = graph->edge_item[edge];
                now = later(now, add(graph->edge_weight[edge], item >= 0 ? ends[item] : points[graph->edge_point[edge]]));
            }
            expect(points[point] == now);
        }
    for (uint64_t stream = 0; stream < graph->streams; stream++)
        for (int64_t item = graph->item_bounds[stream]; item < graph->item_bounds[stream + 1]; item++) {
            bool first = item == graph->item_bounds[stream];
            int64_t submission = graph->submission[item];
            int64_t now = submission >= 0 ? add(points[submission], graph->launch[item]) : NEVER;
            if (!first) now = later(now, add(ends[item - 1], graph->gap[item]));
            else if (graph->unlimited[item]) now = graph->start[item];
            for (uint64_t wait = 0; wait < graph->waits; wait++)
                if (graph->waiting[wait] == item)
                    now = later(now, add(ends[graph->wait_source[wait]], graph->wait_weight[wait]));
            expect(ends[item] == add(now, duration[item]));
        }
}

static void check_replay(const Graph *graph, const Run *runs, int64_t count, int64_t *scratch) {
    int64_t *step = draw_moments(CASES * graph->points), *duration = draw_moments(CASES * graph->items);
    uint8_t *removed = draw(2) ? draw_flags(CASES * graph->edges, 3) : NULL;
    int64_t *points = buffer_for(CASES * graph->points, 8), *ends = buffer_for(CASES * graph->items, 8);
    schedule_replay(graph, runs, (size_t)count, CASES, step, duration, removed, points, ends, scratch);
    for (uint64_t at = 0; at < CASES; at++)
        check_times(
            graph, step + at * graph->points, duration + at * graph->items, removed ? removed + at * graph->edges : NULL,
            points + at * graph->points, ends + at * graph->items
        );
    int64_t *earlier = buffer_for(graph->points, 8);
    memcpy(earlier, points, graph->points * 8);
    schedule_latest(graph, runs, (size_t)count, step, duration, points, ends);
    for (uint64_t i = 0; i < graph->points; i++) expect(points[i] <= earlier[i]);
    free(earlier), free(step), free(duration), free(removed), free(points), free(ends);
}

// Windows of states, cut; the parts lie in their windows and have what a state has.
static void check_split(void) {
    enum { WINDOWS = 8, STATES = 12 };
    uint64_t states = 1 + draw(STATES), count = draw(WINDOWS), most = 0;
    int64_t *times = draw_moments(states - 1), *low = draw_moments(count), *high = draw_moments(count);
    int64_t *number = draw_moments(count), *first = buffer_for(count, 8), *last = buffer_for(count, 8);
    int32_t *row = buffer_for(states, 4);
    int8_t *cause = buffer_for(states, 1);
    for (uint64_t i = 0; i < states; i++) row[i] = (int32_t)i, cause[i] = (int8_t)i;
    for (uint64_t i = 0; i < count; i++) {
        first[i] = (int64_t)draw(states), last[i] = first[i] + (int64_t)draw(states - (uint64_t)first[i]);
        most += (uint64_t)(last[i] - first[i] + 1);
    }
    int64_t *window = buffer_for(most, 8), *begin = buffer_for(most, 8), *end = buffer_for(most, 8);
    int32_t *part_row = buffer_for(most, 4);
    int8_t *part_cause = buffer_for(most, 1);
    size_t made = schedule_split(
        number, low, high, first, last, (size_t)count, times, row, cause, window, begin, end, part_row, part_cause
    );
    expect(made <= most);
    for (size_t i = 0; i < made; i++) expect(begin[i] < end[i] && part_row[i] == part_cause[i]);
    // The same parts by number and cause, in sums that already hold something.
    int64_t *sums = buffer_for(WINDOWS * states, 8), *added = buffer_for(WINDOWS * states, 8);
    for (uint64_t i = 0; i < WINDOWS * states; i++) sums[i] = added[i] = (int64_t)i;
    for (uint64_t i = 0; i < count; i++) number[i] = (int64_t)draw(WINDOWS);
    made = schedule_split(
        number, low, high, first, last, (size_t)count, times, row, cause, window, begin, end, part_row, part_cause
    );
    for (size_t i = 0; i < made; i++) {
        int64_t *mine = &added[(uint64_t)window[i] * states + (uint64_t)part_cause[i]];
        *mine = add(*mine, less(end[i], begin[i]));
    }
    schedule_tally(number, low, high, first, last, (size_t)count, times, cause, sums, (size_t)states);
    expect(!memcmp(sums, added, WINDOWS * states * 8));
    free(sums), free(added);
    free(times), free(low), free(high), free(number), free(first), free(last), free(row), free(cause);
    free(window), free(begin), free(end), free(part_row), free(part_cause);
}

static int64_t *draw_ascending(uint64_t count, int64_t since, uint64_t most) {
    int64_t *times = buffer_for(count, 8);
    for (uint64_t i = 0; i < count; i++) times[i] = since += (int64_t)draw(most);
    return times;
}

static uint64_t state_of(const States *states, int64_t time) {
    uint64_t at = 0;
    while (at < states->count && states->times[at] <= time) at++;
    return at;
}

// Whether the piece has the row and the cause that the host has when it begins.
static bool is_of_host(const Gaps *given, const Pieces *pieces, size_t at) {
    int32_t thread = given->thread[pieces->gap[at]], row = -1;
    int64_t cause = given->unrecorded, time = pieces->begin[at] + given->shift;
    if (thread >= 0) {
        const States *states = &given->states[thread];
        uint64_t own = state_of(states, time);
        int32_t partner = given->partner[thread];
        row = states->row[own], cause = states->cause[own];
        if (partner >= 0 && is_unspecific(given, cause)) {
            const States *others = &given->states[partner];
            uint64_t theirs = state_of(others, time);
            int64_t other = others->cause[theirs];
            if (!is_unspecific(given, other) || (cause == given->unrecorded && other != given->unrecorded))
                row = others->row[theirs], cause = other;
        }
    }
    return pieces->row[at] == row && pieces->cause[at] == cause;
}

enum { GAPS = 8, THREADS = 3, TIMES = 20, STEPS = 6 };

static Parts draw_parts(const int64_t *begin, const int64_t *end, uint64_t gaps, uint64_t rarity) {
    int64_t *gap = buffer_for(gaps, 8), *low = buffer_for(gaps, 8), *high = buffer_for(gaps, 8), count = 0;
    int32_t *row = buffer_for(gaps, 4);
    int8_t *cause = buffer_for(gaps, 1);
    for (uint64_t i = 0; i < gaps; i++) {
        if (!draw(rarity) || end[i] <= begin[i]) continue;
        gap[count] = (int64_t)i, low[count] = begin[i], high[count] = end[i];
        row[count] = 1000 + (int32_t)i, cause[count++] = (int8_t)(20 + rarity);
    }
    return (Parts){(uint64_t)count, gap, low, high, row, cause};
}

static void free_parts(Parts parts) {
    free((void *)parts.gap), free((void *)parts.begin), free((void *)parts.end), free((void *)parts.row);
    free((void *)parts.cause);
}

// Gaps of a device; their pieces tile what is known of them, in order, each in its step and with the cause at its begin.
static void check_idle(void) {
    uint64_t gaps = draw(GAPS);
    int64_t *edges = draw_ascending(4 * gaps, 0, 9);
    int64_t *begin = buffer_for(gaps, 8), *late = buffer_for(gaps, 8), *between = buffer_for(gaps, 8), *end = buffer_for(gaps, 8);
    int32_t *thread = buffer_for(gaps, 4), partner[THREADS];
    for (uint64_t i = 0; i < gaps; i++) {
        begin[i] = edges[4 * i], late[i] = edges[4 * i + 1], between[i] = edges[4 * i + 2], end[i] = edges[4 * i + 3];
        thread[i] = (int32_t)draw(THREADS + 1) - 1;
    }
    States states[THREADS];
    for (int i = 0; i < THREADS; i++) {
        uint64_t count = draw(TIMES);
        int32_t *row = buffer_for(count + 1, 4);
        int8_t *cause = buffer_for(count + 1, 1);
        for (uint64_t at = 0; at <= count; at++) row[at] = (int32_t)(100 * (i + 1) + (int)at), cause[at] = (int8_t)draw(5);
        states[i] = (States){count, draw_ascending(count, -5, 9), row, cause};
        partner[i] = (int32_t)draw(THREADS + 1) - 1;
    }
    Gaps given = {
        .gaps = gaps, .steps = draw(STEPS), .shift = (int64_t)draw(9) - 4, .begin = begin, .late = late, .thread = thread,
        .partner = partner, .states = states, .streams = draw_parts(late, between, gaps, 4),
        .devices = draw_parts(between, end, gaps, 5), .unspecific = 3, .unrecorded = 0,
    };
    given.borders = draw_ascending(given.steps, 0, 40);
    int64_t cursors[THREADS] = {0};
    size_t made = schedule_idle(&given, cursors, NULL, NULL, NULL, NULL, NULL, NULL);
    Pieces pieces = {
        .begin = buffer_for(made, 8), .end = buffer_for(made, 8), .row = buffer_for(made, 4), .gap = buffer_for(made, 4),
        .in_step = buffer_for(made, 4), .cause = buffer_for(made, 1),
    };
    memset(cursors, 0, sizeof cursors);
    expect(schedule_idle(
        &given, cursors, pieces.begin, pieces.end, pieces.row, pieces.gap, pieces.in_step, pieces.cause
    ) == made);
    int64_t expected = 0, covered = 0, last = INT64_MIN;
    for (uint64_t i = 0; i < gaps; i++) expected += late[i] - begin[i];
    for (uint64_t i = 0; i < given.streams.count; i++) expected += given.streams.end[i] - given.streams.begin[i];
    for (uint64_t i = 0; i < given.devices.count; i++) expected += given.devices.end[i] - given.devices.begin[i];
    for (size_t at = 0; at < made; at++) {
        int32_t gap = pieces.gap[at];
        expect(pieces.begin[at] >= last && pieces.end[at] > pieces.begin[at]);
        expect(pieces.begin[at] >= begin[gap] && pieces.end[at] <= end[gap]);
        covered += pieces.end[at] - pieces.begin[at], last = pieces.end[at];
        if (pieces.begin[at] < late[gap]) expect(pieces.end[at] <= late[gap] && is_of_host(&given, &pieces, at));
        else expect(pieces.row[at] == 1000 + gap && pieces.cause[at] == (pieces.begin[at] < between[gap] ? 24 : 25));
        uint64_t step = 0;
        for (uint64_t i = 1; i < given.steps; i++) {
            if (given.borders[i] <= pieces.begin[at]) step = i;
            expect(given.borders[i] <= pieces.begin[at] || given.borders[i] >= pieces.end[at]);
        }
        expect(pieces.in_step[at] == (int32_t)step);
    }
    expect(covered == expected);
    for (int i = 0; i < THREADS; i++)
        free((void *)states[i].times), free((void *)states[i].row), free((void *)states[i].cause);
    free(edges), free(begin), free(late), free(between), free(end), free(thread), free((void *)given.borders);
    free_parts(given.streams), free_parts(given.devices);
    free(pieces.begin), free(pieces.end), free(pieces.row), free(pieces.gap), free(pieces.in_step), free(pieces.cause);
}

// Sums of intervals between points, compared with what each interval has between each two.
static void check_during(void) {
    enum { NUMBERS = 3 };
    uint64_t points = draw(TIMES), count = draw(GAPS), stride = points + draw(3);
    int64_t *times = draw_ascending(points, 0, 9), *edges = draw_ascending(2 * count, -20, 12);
    int64_t *starts = buffer_for(count, 8), *ends = buffer_for(count, 8), *sums = buffer_for(NUMBERS * stride, 8);
    int32_t *number = buffer_for(count, 4);
    memset(sums, 0, NUMBERS * stride * 8);
    for (uint64_t i = 0; i < count; i++)
        starts[i] = edges[2 * i], ends[i] = edges[2 * i + 1], number[i] = (int32_t)draw(NUMBERS + 1) - 1;
    schedule_during(times, points, starts, ends, number, count, sums, stride);
    for (uint64_t row = 0; row < NUMBERS; row++)
        for (uint64_t point = 0; point < stride; point++) {
            int64_t sum = 0;
            for (uint64_t i = 0; i < count && point && point < points; i++) {
                int64_t low = later(starts[i], times[point - 1]), high = ends[i] < times[point] ? ends[i] : times[point];
                if (number[i] == (int32_t)row && high > low) sum += high - low;
            }
            expect(sums[row * stride + point] == sum);
        }
    free(times), free(edges), free(starts), free(ends), free(sums), free(number);
}

// What slices cover between times, compared with what they cover instant by instant.
static void check_cover(void) {
    enum { CHAINS = 2 };
    uint64_t events = draw(GAPS) + 1, count = draw(GAPS);
    int64_t *start = buffer_for(events, 8), *duration = buffer_for(events, 8), bounds[CHAINS + 1] = {0};
    int32_t *thread = buffer_for(events, 4), *rows = buffer_for(count, 4), chain[THREADS];
    for (int i = 0; i < THREADS; i++) chain[i] = (int32_t)draw(CHAINS + 1) - 1;
    int64_t ascending = 0;
    for (uint64_t i = 0; i < events; i++) {
        start[i] = ascending += (int64_t)draw(4), duration[i] = (int64_t)draw(12) - 2, thread[i] = (int32_t)draw(THREADS);
    }
    if (draw(4) == 0) start[draw(events)] = 0;
    for (int i = 0; i < CHAINS; i++) bounds[i + 1] = bounds[i] + (int64_t)draw(TIMES);
    int64_t *times = buffer_for((uint64_t)bounds[CHAINS], 8), *sums = buffer_for((uint64_t)bounds[CHAINS], 8);
    for (int i = 0; i < CHAINS; i++) {
        int64_t time = (int64_t)draw(5) - 2;
        for (int64_t at = bounds[i]; at < bounds[i + 1]; at++) times[at] = time += (int64_t)draw(4), sums[at] = 0;
    }
    uint64_t row = 0, used = 0;
    for (; used < count && row < events; row += 1 + draw(3)) rows[used++] = (int32_t)row;
    int beyond = used && draw(20) == 0;
    if (beyond) rows[draw(used)] = draw(2) ? -1 : (int32_t)events;
    int ascend = 1;
    for (int each = 0; each < CHAINS && !beyond; each++) {
        int64_t began = INT64_MIN;
        for (uint64_t i = 0; i < used; i++)
            if (chain[thread[rows[i]]] == each) ascend &= start[rows[i]] >= began, began = start[rows[i]];
    }
    Cover given = {events, THREADS, CHAINS, start, duration, thread, chain, times, bounds};
    Covered chains[CHAINS];
    int good = schedule_cover(&given, rows, used, chains, sums);
    expect(good == (ascend && !beyond));
    for (int each = 0; each < CHAINS && good; each++)
        for (int64_t at = bounds[each]; at < bounds[each + 1]; at++) {
            int64_t sum = 0;
            for (int64_t now = at > bounds[each] ? times[at - 1] : times[at]; now < times[at]; now++) {
                int covered = 0;
                for (uint64_t i = 0; i < used; i++)
                    covered |= chain[thread[rows[i]]] == each && start[rows[i]] <= now && now < start[rows[i]] + duration[rows[i]];
                sum += covered;
            }
            expect(sums[at] == sum);
        }
    free(start), free(duration), free(thread), free(rows), free(times), free(sums);
}

// States with further times and other causes, compared with what holds in the middle of each.
static void check_states(void) {
    enum { OVERLAYS = 2 };
    uint64_t count = draw(TIMES), events = draw(GAPS), cursors[OVERLAYS] = {0}, edges = 0;
    int64_t *times = draw_ascending(count, 0, 4), *borders[OVERLAYS], edge[2 * OVERLAYS * GAPS];
    int64_t starts[OVERLAYS][GAPS], ends[OVERLAYS][GAPS];
    int32_t *row = buffer_for(count + 1, 4);
    int8_t *causes = buffer_for(events, 1);
    Overlay overlays[OVERLAYS];
    for (uint64_t i = 0; i < events; i++) causes[i] = (int8_t)draw(9) - 1;
    for (uint64_t i = 0; i <= count; i++) row[i] = (int32_t)draw(events + 2) - 1;
    for (int each = 0; each < OVERLAYS; each++) {
        uint64_t inside = draw(GAPS);
        borders[each] = draw_ascending(2 * inside, -3, 6);
        for (uint64_t i = 0; i < 2 * inside; i++) borders[each][i] += (int64_t)i; // no two are the same
        for (uint64_t i = 0; i < inside; i++) {
            edge[edges++] = starts[each][i] = borders[each][2 * i], edge[edges++] = ends[each][i] = borders[each][2 * i + 1];
        }
        overlays[each] = (Overlay){inside, starts[each], ends[each], 20 + each, draw(2) ? 0 : draw(256)};
    }
    sort(edge, edges);
    Running given = {count, edges, events, OVERLAYS, times, row, edge, causes, overlays, 13};
    uint64_t total = count + edges;
    int64_t *made = buffer_for(total, 8);
    int32_t *made_row = buffer_for(total + 1, 4);
    int8_t *made_cause = buffer_for(total + 1, 1);
    schedule_states(&given, cursors, made, made_row, made_cause);
    for (uint64_t i = 0; i < total; i++) {
        uint64_t at = 0;
        while (at < count && times[at] < made[i]) at++;
        if (i && made[i] == made[i - 1]) continue; // it takes no time
        expect(i == 0 || made[i] > made[i - 1]);
        expect(made_row[i] == row[at]);
        int64_t cause = row[at] < 0 || (uint64_t)row[at] >= events ? 13 : causes[row[at]];
        for (int each = 0; each < OVERLAYS && i; each++)
            for (uint64_t each_in = 0; each_in < overlays[each].count; each_in++)
                if (starts[each][each_in] <= made[i - 1] && made[i] <= ends[each][each_in] &&
                    !(cause >= 0 && overlays[each].kept >> cause & 1))
                    cause = 20 + each;
        expect(made_cause[i] == cause);
    }
    for (int each = 0; each < OVERLAYS; each++) free(borders[each]);
    free(times), free(row), free(causes), free(made), free(made_row), free(made_cause);
}

// Pauses of slices that may nest, compared with the moments between which nothing begins or ends.
static void check_silences(void) {
    enum { LEAST = 6, NAMES = 2 };
    uint64_t events = draw(GAPS) + 1, count = draw(GAPS);
    int64_t *start = draw_ascending(events, 0, 9), *duration = buffer_for(events, 8);
    int64_t *since = buffer_for(2 * count, 8), *resume = buffer_for(2 * count, 8), *open = buffer_for(count, 8);
    int32_t *rows = draw_narrow(count, events), *name = buffer_for(events, 4);
    uint8_t *polls = draw_flags(NAMES, 4);
    for (uint64_t i = 0; i < events; i++) duration[i] = (int64_t)draw(40) - 2, name[i] = (int32_t)draw(NAMES + 2) - 1;
    if (draw(3))
        for (uint64_t i = 0; i < count; i++) rows[i] = (int32_t)(i < events ? i : events - 1);
    if (count && !draw(20)) rows[draw(count)] = draw(2) ? -1 : (int32_t)events;
    Stack given = {count, events, NAMES, rows, start, duration, name, polls, LEAST};
    int64_t made = schedule_silences(&given, open, since, resume);
    expect(made >= -1 && made <= 2 * (int64_t)count);
    int64_t latest = INT64_MIN, first = INT64_MAX, silent = 0, covered = 0;
    for (uint64_t i = 0; i < count && made >= 0; i++) {
        if (name[rows[i]] >= 0 && name[rows[i]] < NAMES && polls[name[rows[i]]]) continue;
        int64_t begin = start[rows[i]], end = begin + (duration[rows[i]] > 0 ? duration[rows[i]] : 0);
        if (begin < first) first = begin;
        if (end > latest) latest = end;
        for (int64_t at = 0; at < made; at++)
            expect((begin <= since[at] || begin >= resume[at]) && (end <= since[at] || end >= resume[at]));
    }
    for (int64_t at = 0; at < made; at++) {
        expect(resume[at] - since[at] >= LEAST && (at == 0 || since[at] >= resume[at - 1]));
        covered += resume[at] - since[at];
    }
    // Every stretch in which nothing begins or ends is among them, if it is long enough.
    for (int64_t now = first, last = first; made >= 0 && latest > INT64_MIN && now <= latest; now++)
        for (uint64_t i = 0; i < count; i++) {
            int32_t code = name[rows[i]];
            int64_t begin = start[rows[i]], end = begin + (duration[rows[i]] > 0 ? duration[rows[i]] : 0);
            if ((code >= 0 && code < NAMES && polls[code]) || (begin != now && end != now)) continue;
            if (now - last >= LEAST) silent += now - last;
            last = now;
        }
    expect(made < 0 || silent == covered);
    free(start), free(duration), free(since), free(resume), free(open), free(rows), free(name), free(polls);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    long drawn = atol(arguments[1]), ordered = 0;
    state = (uint64_t)atol(arguments[2]);
    for (long i = 0; i < drawn; i++) {
        Graph graph = draw_graph();
        int64_t *scratch = buffer_for(4 * (graph.threads + graph.streams), 8);
        int64_t made = schedule_plan(&graph, NULL, scratch);
        if (made >= 0) {
            Run *runs = buffer_for((uint64_t)made, sizeof *runs);
            expect(schedule_plan(&graph, runs, scratch) == made);
            check_runs(&graph, runs, made);
            int64_t *cursors = buffer_for(graph.threads + graph.streams, 8);
            check_replay(&graph, runs, made, cursors);
            free(cursors), free(runs);
            ordered++;
        }
        free(scratch);
        free_graph(&graph);
        check_split();
        check_idle();
        check_during();
        check_cover();
        check_states();
        check_silences();
    }
    printf("%ld drawn, %ld with an order\n", drawn, ordered);
    return 0;
}
