// What a snapshot's dicts and lists become: a row of its kind for each dict, the code of a stack for a list of
// frames, a range of rows for a list of rows. No dict or list exists; four bytes per object remain, for the memo.
#ifndef SNAPSHOT_ROWS_H
#define SNAPSHOT_ROWS_H

#include "snapshot_tables.h"

enum { MAX_FRAMES = 512, MAX_TEXT = 1 << 20, MAX_METADATA = 1 << 16, MAX_LISTS = 1 << 16, MAX_CELLS = 4096 };
#define ABSENT INT64_MIN

// SHARED: an object that came from the memo. Writers fill a container before they refer to it again.
typedef enum { NOTHING, INTEGER, TEXT, OBJECT, SHARED, PAIR, BOOLEAN, REAL } Type;
typedef struct {
    uint64_t bits;
    uint32_t type;
} Value;

typedef enum { NEW_DICT, NEW_LIST, OTHER_DICT, FRAME, ENTRY, BLOCK, SEGMENT, NOTE, OLD_HISTORY, TOP, STACK, ROWS, LISTS } Role;

// Texts with a meaning; their codes are their places here.
static const char *const KNOWN[] = {"", "action", "addr", "size", "stream", "time_us", "frames", "device_free",
    "compile_context", "user_metadata", "pool_id", "filename", "name", "line", "address", "total_size",
    "requested_size", "segment_type", "segment_pool_id", "is_expandable", "blocks", "state", "device", "history",
    "real_size", "segments", "device_traces", "allocator_settings", "external_annotations", "stage",
    "alloc", "free_requested", "free", "free_completed", "segment_alloc", "segment_map", "segment_free",
    "segment_unmap", "oom", "active_allocated", "active_awaiting_free", "active_pending_free", "(text not kept)"};
enum { K_EMPTY, K_ACTION, K_ADDR, K_SIZE, K_STREAM, K_TIME, K_FRAMES, K_DEVICE_FREE, K_CONTEXT, K_METADATA, K_POOL,
    K_FILE, K_NAME, K_LINE, K_ADDRESS, K_TOTAL, K_REQUESTED, K_TYPE, K_SEGMENT_POOL, K_EXPANDABLE, K_BLOCKS, K_STATE,
    K_DEVICE, K_HISTORY, K_REAL, K_SEGMENTS, K_TRACES, K_SETTINGS, K_NOTES, K_STAGE, KEYS,
    ALLOC = KEYS, FREE_REQUESTED, FREE, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_MAP, SEGMENT_FREE, SEGMENT_UNMAP, OOM,
    ALLOCATED, AWAITING, PENDING, NOT_KEPT, KNOWN_TEXTS };

// Numbers of actions and states in the columns, as `model/snapshots.py` has them.
static const uint8_t ACTIONS[] = {0, 1, 1, 6, 2, 2, 3, 3, 4};
enum { ACTION_OTHER = 5, STATE_FREE = 2 };

typedef struct { int64_t stream; uint32_t pool, context, metadata, unused; } Label;
typedef struct { uint32_t file, name, line; } Frame;
typedef struct { int64_t first, second; } Pair;
typedef struct { int64_t address, total, stream; uint32_t device, kind, pool, expandable, begin, end; } Segment;
typedef struct { int64_t address, size, requested; uint32_t stack, state; } Block;
typedef struct { int64_t time; uint32_t name, stage, device, unused; } Note;
typedef struct { uint64_t bits; uint32_t object, key, type, unused; } Cell;
typedef struct { uint32_t role, begin, end, others; } Range;
typedef struct { uint32_t device, begin, end; } Part;

typedef struct {
    Budget budget;
    uint64_t seed, offset, arrived, skip;
    ARRAY(Value) stack;
    ARRAY(uint64_t) marks;
    ARRAY(uint32_t) memo;
    ARRAY(Value) saved;
    ARRAY(uint32_t) objects;  // role and row of each
    ARRAY(Range) ranges;
    ARRAY(uint32_t) members;  // of lists of lists: roles and rows
    Interned texts, frames, stacks, labels, pairs;
    Label last_label;
    uint32_t last_label_code, metadata_texts;
    uint64_t rows, row_capacity[2];
    uint8_t *action;
    int32_t *freed;
    int64_t *address;
    Codes stack_of, label_of;
    Numbers size, time;
    ARRAY(Segment) segments;
    ARRAY(Block) blocks;
    ARRAY(Note) notes;
    ARRAY(Cell) cells;
    ARRAY(Part) parts;
    Range segment_range, note_range;
    uint64_t skipped;
    uint32_t settings;
    bool found;
} Reader;

static inline bool is_object(Value v) { return v.type == OBJECT || v.type == SHARED; }
static inline Role role_of(const Reader *r, Value v) {
    return is_object(v) ? (Role)(r->objects.items[v.bits] >> CODE_BITS) : OTHER_DICT;
}
static inline uint32_t row_of(const Reader *r, Value v) { return r->objects.items[v.bits] & (uint32_t)(MAX_CODES - 1); }
static inline void become(Reader *r, Value v, Role role, uint64_t row) {
    r->objects.items[v.bits] = (uint32_t)role << CODE_BITS | (uint32_t)row;
}

static inline int64_t integer(const Value *v, int64_t otherwise) {
    return v && v->type == INTEGER ? (int64_t)v->bits : otherwise;
}
static inline uint32_t text(const Value *v) { return v && v->type == TEXT ? (uint32_t)v->bits : K_EMPTY; }
static inline uint32_t pair(const Value *v) { return v && v->type == PAIR ? (uint32_t)v->bits : 0; }
static inline uint32_t small(int64_t value) { return value > 0 && value <= INT32_MAX ? (uint32_t)value : 0; }
static inline uint32_t stack_code(const Reader *r, const Value *v) {
    return v && role_of(r, *v) == STACK ? row_of(r, *v) : 0;
}

static uint32_t intern_text(Reader *r, const void *bytes, uint64_t size) {
    return intern(&r->budget, &r->texts, r->seed, bytes, size);
}

static bool grow_rows(Reader *r) {
    void **columns[] = {(void **)&r->action, (void **)&r->address};
    static const size_t sizes[] = {1, 8};
    for (int i = 0; i < 2; i++)
        if (!grow_array(&r->budget, columns[i], r->rows, &r->row_capacity[i], sizes[i], 1)) return false;
    if (!grow_numbers(&r->budget, &r->size, r->rows) || !grow_numbers(&r->budget, &r->time, r->rows)) return false;
    return r->rows < MAX_CODES - 1 || fail(&r->budget, OVER_BUDGET);
}

static bool add_entry(Reader *r, const Value *const *f) {
    Label label = {integer(f[K_STREAM], 0), pair(f[K_POOL]), text(f[K_CONTEXT]), text(f[K_METADATA]), 0};
    if (UNLIKELY(r->last_label_code == NOT_FOUND || memcmp(&label, &r->last_label, sizeof label))) {
        r->last_label_code = intern(&r->budget, &r->labels, r->seed, &label, sizeof label);
        if (r->last_label_code == NOT_FOUND) return false;
        r->last_label = label;
    }
    uint64_t at = r->rows, action = f[K_ACTION]->bits;
    if (!grow_rows(r)) return false;
    r->action[at] = action >= ALLOC && action <= OOM ? ACTIONS[action - ALLOC] : ACTION_OTHER;
    if (!add_code(&r->budget, &r->stack_of, at, stack_code(r, f[K_FRAMES]))) return false;
    if (!add_code(&r->budget, &r->label_of, at, r->last_label_code)) return false;
    r->address[at] = integer(f[action == OOM ? K_DEVICE_FREE : K_ADDR], ABSENT);
    if (!add_number(&r->budget, &r->size, at, (int64_t)f[K_SIZE]->bits)) return false;
    if (!add_number(&r->budget, &r->time, at, integer(f[K_TIME], ABSENT))) return false;
    r->rows++;
    return true;
}

static Range range_of(Reader *r, const Value *v, Role role) {
    if (!v || role_of(r, *v) != ROWS) return (Range){0};
    Range range = r->ranges.items[row_of(r, *v)];
    r->skipped += range.others;
    if (range.role == (uint32_t)role) return range;
    r->skipped += range.end - range.begin;
    return (Range){0};
}

static bool add_segment(Reader *r, const Value *const *f) {
    if (!GROW(&r->budget, r->segments, 1) || r->segments.count >= MAX_CODES - 1) return fail(&r->budget, OVER_BUDGET);
    Range blocks = range_of(r, f[K_BLOCKS], BLOCK);
    bool expandable = f[K_EXPANDABLE] && f[K_EXPANDABLE]->type == BOOLEAN && f[K_EXPANDABLE]->bits;
    r->segments.items[r->segments.count++] = (Segment){integer(f[K_ADDRESS], 0), (int64_t)f[K_TOTAL]->bits,
        integer(f[K_STREAM], 0), small(integer(f[K_DEVICE], 0)), text(f[K_TYPE]), pair(f[K_SEGMENT_POOL]), expandable,
        blocks.begin, blocks.end};
    return true;
}

static bool add_block(Reader *r, const Value *const *f) {
    if (!GROW(&r->budget, r->blocks, 1) || r->blocks.count >= MAX_CODES - 1) return fail(&r->budget, OVER_BUDGET);
    uint32_t state = text(f[K_STATE]), stack = stack_code(r, f[K_FRAMES]);
    if (!f[K_FRAMES] && f[K_HISTORY] && role_of(r, *f[K_HISTORY]) == ROWS) {
        Range history = r->ranges.items[row_of(r, *f[K_HISTORY])];
        if (history.role == OLD_HISTORY) stack = history.begin;
    }
    r->blocks.items[r->blocks.count++] = (Block){integer(f[K_ADDRESS], ABSENT), (int64_t)f[K_SIZE]->bits,
        integer(f[K_REQUESTED], ABSENT), stack,
        state == ALLOCATED ? 0 : state == AWAITING || state == PENDING ? 1 : STATE_FREE};
    return true;
}

static bool add_note(Reader *r, const Value *const *f) {
    if (!GROW(&r->budget, r->notes, 1) || r->notes.count >= MAX_CODES - 1) return fail(&r->budget, OVER_BUDGET);
    r->notes.items[r->notes.count++] = (Note){(int64_t)f[K_TIME]->bits, text(f[K_NAME]), text(f[K_STAGE]),
        small(integer(f[K_DEVICE], 0)), 0};
    return true;
}

static bool add_part(Reader *r, uint32_t device, uint32_t member) {
    if ((member >> CODE_BITS) != ROWS) return true;
    Range range = r->ranges.items[member & (uint32_t)(MAX_CODES - 1)];
    r->skipped += range.others;
    if (range.role != ENTRY) { r->skipped += range.end - range.begin; return true; }
    if (!GROW(&r->budget, r->parts, 1)) return false;
    r->parts.items[r->parts.count++] = (Part){device, range.begin, range.end};
    return true;
}

static bool use_top(Reader *r, const Value *const *f) {
    r->found = (f[K_SEGMENTS] && is_object(*f[K_SEGMENTS])) || (f[K_TRACES] && is_object(*f[K_TRACES]));
    r->segment_range = range_of(r, f[K_SEGMENTS], SEGMENT);
    r->note_range = range_of(r, f[K_NOTES], NOTE);
    r->settings = f[K_SETTINGS] && is_object(*f[K_SETTINGS]) ? (uint32_t)f[K_SETTINGS]->bits : NOT_FOUND;
    r->parts.count = 0;
    if (!f[K_TRACES] || role_of(r, *f[K_TRACES]) != LISTS) return true;
    Range lists = r->ranges.items[row_of(r, *f[K_TRACES])];
    for (uint32_t i = lists.begin; i < lists.end; i++)
        if (!add_part(r, i - lists.begin, r->members.items[i])) return false;
    return true;
}

static bool is_integer(const Value *v) { return v && v->type == INTEGER; }

// Makes a dict the row that its keys say it is.
static bool fill_dict(Reader *r, Value dict, const Value *items, uint64_t pairs) {
    const Value *f[KEYS] = {0};
    for (uint64_t i = 0; i < pairs; i++) {
        if (items[2 * i].type != TEXT) return fail(&r->budget, MALFORMED);
        if (items[2 * i].bits < KEYS) f[items[2 * i].bits] = &items[2 * i + 1];
    }
    Budget *budget = &r->budget;
    if (f[K_ACTION] && f[K_ACTION]->type == TEXT && is_integer(f[K_SIZE])) {
        if (!add_entry(r, f)) return false;
        become(r, dict, ENTRY, r->rows - 1);
    } else if (is_integer(f[K_TOTAL])) {
        if (!add_segment(r, f)) return false;
        become(r, dict, SEGMENT, r->segments.count - 1);
    } else if (f[K_SEGMENTS] || f[K_TRACES]) {
        if (!use_top(r, f)) return false;
        become(r, dict, TOP, 0);
    } else if (is_integer(f[K_SIZE]) && (f[K_STATE] || f[K_ADDRESS])) {
        if (!add_block(r, f)) return false;
        become(r, dict, BLOCK, r->blocks.count - 1);
    } else if (f[K_REAL]) {
        become(r, dict, OLD_HISTORY, stack_code(r, f[K_FRAMES]));
    } else if (f[K_STAGE] && is_integer(f[K_TIME])) {
        if (!add_note(r, f)) return false;
        become(r, dict, NOTE, r->notes.count - 1);
    } else if (f[K_FILE] || f[K_LINE]) {
        Frame frame = {text(f[K_FILE]), text(f[K_NAME]), small(integer(f[K_LINE], 0))};
        uint32_t code = intern(budget, &r->frames, r->seed, &frame, sizeof frame);
        if (code == NOT_FOUND) return false;
        become(r, dict, FRAME, code);
    } else {
        become(r, dict, OTHER_DICT, 0);
        for (uint64_t i = 0; i < pairs && r->cells.count < MAX_CELLS; i++) {
            if (!GROW(budget, r->cells, 1)) return false;
            r->cells.items[r->cells.count++] = (Cell){items[2 * i + 1].bits, (uint32_t)dict.bits,
                (uint32_t)items[2 * i].bits, items[2 * i + 1].type, 0};
        }
    }
    return true;
}

static bool set_items(Reader *r, Value dict, const Value *items, uint64_t pairs) {
    if (dict.type != OBJECT) return fail(&r->budget, dict.type == SHARED ? UNUSUAL : MALFORMED);
    if (!pairs) return true;
    switch (role_of(r, dict)) {
    case NEW_DICT: return fill_dict(r, dict, items, pairs);
    case OTHER_DICT: return true;  // a dict of more than a thousand items
    case NEW_LIST: case STACK: case ROWS: case LISTS: return fail(&r->budget, MALFORMED);
    default: return fail(&r->budget, UNUSUAL);
    }
}

static bool make_stack(Reader *r, Value list, const Value *values, uint64_t count) {
    uint32_t frames[MAX_FRAMES];
    uint64_t used = 0;
    for (uint64_t i = 0; i < count && used < MAX_FRAMES; i++) {
        if (role_of(r, values[i]) != FRAME) return fail(&r->budget, UNUSUAL);
        frames[used++] = row_of(r, values[i]);
    }
    uint32_t code = intern(&r->budget, &r->stacks, r->seed, frames, used * 4);
    if (code == NOT_FOUND) return false;
    become(r, list, STACK, code);
    return true;
}

static bool append_lists(Reader *r, Value list, const Value *values, uint64_t count) {
    Range *range = &r->ranges.items[row_of(r, list)];
    if (range->end != r->members.count) return fail(&r->budget, UNUSUAL);
    if (r->members.count + count > MAX_LISTS) return fail(&r->budget, OVER_BUDGET);
    if (!GROW(&r->budget, r->members, count)) return false;
    for (uint64_t i = 0; i < count; i++)
        r->members.items[r->members.count++] = is_object(values[i]) ? r->objects.items[values[i].bits] : 0;
    range->end = (uint32_t)r->members.count;
    return true;
}

// Appends to a list. Rows that do not follow each other in the file are left out: writers never write such.
static bool append(Reader *r, Value list, const Value *values, uint64_t count) {
    if (list.type != OBJECT) return fail(&r->budget, list.type == SHARED ? UNUSUAL : MALFORMED);
    if (!count) return true;
    Role role = role_of(r, list), first = role_of(r, values[0]);
    if (role == STACK) {
        uint32_t code = row_of(r, list);
        uint64_t size = r->stacks.ends.items[code] - row_begin(&r->stacks, code);
        return size >= MAX_FRAMES * 4 || fail(&r->budget, UNUSUAL);
    }
    if (role == NEW_LIST) {
        if (first == FRAME) return make_stack(r, list, values, count);
        if (!GROW(&r->budget, r->ranges, 1) || r->ranges.count >= MAX_CODES - 1) return fail(&r->budget, OVER_BUDGET);
        bool lists = is_object(values[0]) && (first == NEW_LIST || first == ROWS || first == STACK || first == LISTS);
        uint32_t begin = lists ? (uint32_t)r->members.count : 0;
        r->ranges.items[r->ranges.count] = (Range){OTHER_DICT, begin, begin, 0};
        become(r, list, role = lists ? LISTS : ROWS, r->ranges.count++);
    }
    if (role == LISTS) return append_lists(r, list, values, count);
    if (role != ROWS) return fail(&r->budget, MALFORMED);
    Range *range = &r->ranges.items[row_of(r, list)];
    for (uint64_t i = 0; i < count; i++) {
        Role kind = role_of(r, values[i]);
        uint32_t row = is_object(values[i]) ? row_of(r, values[i]) : 0;
        bool is_row = kind >= ENTRY && kind <= OLD_HISTORY;
        if (is_row && range->role == OTHER_DICT) *range = (Range){kind, row, row + 1, range->others};
        else if (is_row && range->role == (uint32_t)kind && range->end == row) range->end++;
        else range->others++;
    }
    return true;
}

#endif
