// Reads a pickled CUDA memory snapshot in pieces into columns. A pickle is a program for a stack machine; this one
// knows what writes plain values and refuses what names, makes or calls anything. Protocols 2 to 5, as CPython and
// TorchScript write them; others are left to the caller (UNUSUAL).
//
// All bytes are hostile: nothing recurses, every array keeps to a budget, and a length in the file allocates nothing.

#include "crash.h"
#include "snapshot_frees.h"

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

enum { ABI = 2, MAX_MARKS = 4096, LONGEST_OPCODE = 32, MAX_MEMO_GAP = 1024 };
enum { MEMO_NOTHING, MEMO_TEXT, MEMO_OBJECT, MEMO_PAIR, MEMO_SAVED, MEMO_BITS = 29 };
#define MAX_MEMO ((uint32_t)1 << MEMO_BITS)

static inline bool push(Reader *r, Type type, uint64_t bits) {
    if (UNLIKELY(r->stack.count == r->stack.capacity) && !GROW(&r->budget, r->stack, 1)) return false;
    r->stack.items[r->stack.count++] = (Value){bits, type};
    return true;
}

static bool push_object(Reader *r, Role role) {
    if (UNLIKELY(r->objects.count >= MAX_MEMO)) return fail(&r->budget, OVER_BUDGET);
    if (UNLIKELY(r->objects.count == r->objects.capacity) && !GROW(&r->budget, r->objects, 1)) return false;
    r->objects.items[r->objects.count] = (uint32_t)role << CODE_BITS;
    return push(r, OBJECT, r->objects.count++);
}

static inline uint64_t last_mark(const Reader *r) { return r->marks.count ? r->marks.items[r->marks.count - 1] : 0; }

static inline bool has_values(Reader *r, uint64_t count) {
    return LIKELY(r->stack.count >= last_mark(r) + count) || fail(&r->budget, MALFORMED);
}

static bool store(Reader *r, uint64_t index) {
    if (!has_values(r, 1)) return false;
    Value v = r->stack.items[r->stack.count - 1];
    uint32_t kind = MEMO_SAVED, what = (uint32_t)v.bits;
    if (v.type == TEXT) kind = MEMO_TEXT;
    else if (is_object(v)) kind = MEMO_OBJECT;
    else if (v.type == PAIR) kind = MEMO_PAIR;
    else if (v.type == NOTHING) kind = MEMO_NOTHING, what = 0;
    else {
        if (r->saved.count >= MAX_MEMO || !GROW(&r->budget, r->saved, 1)) return fail(&r->budget, OVER_BUDGET);
        what = (uint32_t)r->saved.count;
        r->saved.items[r->saved.count++] = v;
    }
    if (UNLIKELY(index > r->memo.count + MAX_MEMO_GAP)) return fail(&r->budget, UNUSUAL);  // writers count
    while (r->memo.count <= index) {
        if (UNLIKELY(r->memo.count == r->memo.capacity) && !GROW(&r->budget, r->memo, 1)) return false;
        r->memo.items[r->memo.count++] = 0;
    }
    r->memo.items[index] = kind << MEMO_BITS | what;
    return true;
}

static inline bool load(Reader *r, uint64_t index) {
    static const Type TYPES[] = {[MEMO_NOTHING] = NOTHING, [MEMO_TEXT] = TEXT, [MEMO_OBJECT] = SHARED, [MEMO_PAIR] = PAIR};
    if (UNLIKELY(index >= r->memo.count)) return fail(&r->budget, MALFORMED);
    uint32_t cell = r->memo.items[index], kind = cell >> MEMO_BITS, what = cell & (MAX_MEMO - 1);
    if (LIKELY(kind != MEMO_SAVED)) return push(r, TYPES[kind], what);
    return push(r, (Type)r->saved.items[what].type, r->saved.items[what].bits);
}

// Runs opcodes that load from the memo, as most of them do: keys, texts, and the frames of stacks. Returns where the
// first other one is, or one that can't be run.
static const uint8_t *run_loads(Reader *r, const uint8_t *p, const uint8_t *end) {
    while (end - p >= 5) {
        if (*p == 'j' && load(r, load32(p + 1))) p += 5;
        else if (*p == 'h' && load(r, p[1])) p += 2;
        else break;
    }
    return p;
}

// Takes the mark off; *at: where its values begin. The container that they are for lies below, above the mark before.
static bool pop_mark(Reader *r, uint64_t *at, uint64_t below) {
    if (UNLIKELY(!r->marks.count)) return fail(&r->budget, MALFORMED);
    *at = r->marks.items[--r->marks.count];
    return LIKELY(*at >= last_mark(r) + below) || fail(&r->budget, MALFORMED);
}

static bool make_tuple(Reader *r, uint64_t count) {
    if (!has_values(r, count)) return false;
    const Value *items = r->stack.items + r->stack.count - count;
    r->stack.count -= count;
    if (count != 2 || items[0].type != INTEGER || items[1].type != INTEGER) return push(r, NOTHING, 0);
    Pair pair = {(int64_t)items[0].bits, (int64_t)items[1].bits};
    uint32_t code = intern(&r->budget, &r->pairs, r->seed, &pair, sizeof pair);
    return code != NOT_FOUND && push(r, PAIR, code);
}

static bool push_text(Reader *r, const uint8_t *bytes, uint64_t size) {
    // Texts of users may differ in each entry: beyond a number of them, no further ones are kept.
    const Value *key = r->stack.count ? &r->stack.items[r->stack.count - 1] : NULL;
    bool metadata = key && key->type == TEXT && key->bits == K_METADATA;
    if (UNLIKELY(metadata && r->metadata_texts >= MAX_METADATA)) return push(r, TEXT, NOT_KEPT);
    uint64_t before = r->texts.ends.count;
    uint32_t code = intern_text(r, bytes, size);
    if (metadata) r->metadata_texts += (uint32_t)(r->texts.ends.count - before);
    return code != NOT_FOUND && push(r, TEXT, code);
}

static inline uint64_t signed_bits(const uint8_t *p, uint64_t size) {
    if (!size) return 0;
    uint64_t bits = load64(p);  // a longer number wraps to 64 bits, as addresses do
    return size >= 8 ? bits : (uint64_t)((int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size));
}

static bool finish(Reader *r) {
    if (r->stack.count != 1 || r->marks.count) return fail(&r->budget, MALFORMED);
    r->budget.status = DONE;
    return false;
}

// Runs the opcode at `p`, of which `left` bytes are there; LONGEST_OPCODE bytes are readable. Returns the bytes taken,
// 0 if not all of it is there, -1 if the reading ends.
static int64_t run_opcode(Reader *r, const uint8_t *p, uint64_t left) {
#define NEED(count) if (UNLIKELY(left < (uint64_t)(count))) return 0
#define TAKE(count, did) return LIKELY(did) ? (int64_t)(count) : -1
    uint64_t size, at;
    switch (*p) {
        case 'j': NEED(5); TAKE(5, load(r, load32(p + 1)));
        case 'h': NEED(2); TAKE(2, load(r, p[1]));
        case 0x94: TAKE(1, store(r, r->memo.count));
        case 'q': NEED(2); TAKE(2, store(r, p[1]));
        case 'r': NEED(5); TAKE(5, store(r, load32(p + 1)));
        case 'K': NEED(2); TAKE(2, push(r, INTEGER, p[1]));
        case 'M': NEED(3); TAKE(3, push(r, INTEGER, load16(p + 1)));
        case 'J': NEED(5); TAKE(5, push(r, INTEGER, signed_bits(p + 1, 4)));
        case 0x8a:
            NEED(2);
            size = p[1];
            if (size > 16) { fail(&r->budget, MALFORMED); return -1; }
            NEED(2 + size);
            TAKE(2 + size, push(r, INTEGER, signed_bits(p + 2, size)));
        case 0x8b:
            NEED(5);
            size = load32(p + 1);
            if (size > 16) { fail(&r->budget, MALFORMED); return -1; }
            NEED(5 + size);
            TAKE(5 + size, push(r, INTEGER, signed_bits(p + 5, size)));
        case 'G':
            NEED(9);
            for (size = 0, at = 1; at < 9; at++) size = size << 8 | p[at];
            TAKE(9, push(r, REAL, size));
        case 'N': case ')': TAKE(1, push(r, NOTHING, 0));
        case 0x88: TAKE(1, push(r, BOOLEAN, 1));
        case 0x89: TAKE(1, push(r, BOOLEAN, 0));
        case '(':
            if (r->marks.count >= MAX_MARKS) { fail(&r->budget, MALFORMED); return -1; }
            if (!GROW(&r->budget, r->marks, 1)) return -1;
            r->marks.items[r->marks.count++] = r->stack.count;
            return 1;
        case '}': TAKE(1, push_object(r, NEW_DICT));
        case ']': TAKE(1, push_object(r, NEW_LIST));
        case 'u':
            if (!pop_mark(r, &at, 1)) return -1;
            size = r->stack.count - at;
            if (size % 2) { fail(&r->budget, MALFORMED); return -1; }
            if (!set_items(r, r->stack.items[at - 1], r->stack.items + at, size / 2)) return -1;
            r->stack.count = at;
            return 1;
        case 'e':
            if (!pop_mark(r, &at, 1)) return -1;
            if (!append(r, r->stack.items[at - 1], r->stack.items + at, r->stack.count - at)) return -1;
            r->stack.count = at;
            return 1;
        case 's':
            if (!has_values(r, 3)) return -1;
            r->stack.count -= 2;
            TAKE(1, set_items(r, r->stack.items[r->stack.count - 1], r->stack.items + r->stack.count, 1));
        case 'a':
            if (!has_values(r, 2)) return -1;
            r->stack.count--;
            TAKE(1, append(r, r->stack.items[r->stack.count - 1], r->stack.items + r->stack.count, 1));
        case 't':
            if (!pop_mark(r, &at, 0)) return -1;
            TAKE(1, make_tuple(r, r->stack.count - at));
        case 0x85: case 0x86: case 0x87: TAKE(1, make_tuple(r, *p - 0x84u));
        case 0x8c: case 'X': case 0x8d: {
            uint64_t head = *p == 0x8c ? 2 : *p == 'X' ? 5 : 9;
            NEED(head);
            size = *p == 0x8c ? p[1] : *p == 'X' ? load32(p + 1) : load64(p + 1);
            if (UNLIKELY(size > MAX_TEXT)) {
                r->skip = size;
                TAKE(head, push(r, TEXT, NOT_KEPT));
            }
            NEED(head + size);
            TAKE(head + size, push_text(r, p + head, size));
        }
        case '0': if (!has_values(r, 1)) return -1; r->stack.count--; return 1;
        case 0x95: NEED(9); return 9;
        case 0x80: NEED(2); TAKE(2, p[1] <= 5 || fail(&r->budget, UNUSUAL));
        case '.': TAKE(1, finish(r));
        case 'c': case 0x93: case 'i': case 'o': case 0x81: case 0x92: case 'R': case 'b': case 'P': case 'Q':
        case 0x82: case 0x83: case 0x84: case 0x97: fail(&r->budget, REFUSED); return -1;
        default: fail(&r->budget, UNUSUAL); return -1;
    }
}

API uint32_t snapshot_abi(void) { return ABI; }
API void snapshot_say_crash(const char *message) { say_crash(message); }

API void snapshot_free(Reader *r) {
    if (!r) return;
    Interned *tables[] = {&r->texts, &r->frames, &r->stacks, &r->labels, &r->pairs};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) free_interned(tables[i]);
    void *arrays[] = {r->stack.items, r->marks.items, r->memo.items, r->saved.items, r->objects.items, r->ranges.items,
        r->members.items, r->action, r->stack_of.items, r->label_of.items, r->freed, r->address, r->segments.items, r->blocks.items,
        r->notes.items, r->cells.items, r->parts.items};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    free_numbers(&r->size);
    free_numbers(&r->time);
    free(r);
}

// least: bytes that all arrays may take together whatever the file's size is; as many bytes as were read come on top
API Reader *snapshot_new(uint64_t seed, uint64_t least) {
    Reader *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->seed = seed;
    r->budget.limit = least;
    r->last_label_code = r->settings = NOT_FOUND;
    Pair none = {0, 0};
    bool made = true;
    for (uint32_t i = 0; i < KNOWN_TEXTS && made; i++) made = intern_text(r, KNOWN[i], strlen(KNOWN[i])) == i;
    made = made && intern(&r->budget, &r->stacks, seed, &none, 0) == 0;
    made = made && intern(&r->budget, &r->pairs, seed, &none, sizeof none) == 0;
    if (made) return r;
    snapshot_free(r);
    return NULL;
}

// Reads what is there and returns the status; *used: how much of it. The rest comes again in front of the next piece.
API int snapshot_read(Reader *r, const uint8_t *bytes, uint64_t size, bool last, uint64_t *used) {
    const uint8_t *p = bytes, *end = bytes + size;
    uint8_t tail[2 * LONGEST_OPCODE];
    begin_reading();
    r->budget.limit += r->arrived < r->offset + size ? r->offset + size - r->arrived : 0;
    r->arrived = r->arrived < r->offset + size ? r->offset + size : r->arrived;
    while (!r->budget.status) {
        if (UNLIKELY(r->skip)) {
            uint64_t step = r->skip < (uint64_t)(end - p) ? r->skip : (uint64_t)(end - p);
            p += step;
            r->skip -= step;
            if (r->skip) break;
        }
        p = run_loads(r, p, end);
        if (UNLIKELY(r->budget.status)) break;
        uint64_t left = (uint64_t)(end - p);
        const uint8_t *opcode = p;
        if (UNLIKELY(left < LONGEST_OPCODE)) {
            if (!left || !last) break;
            memset(tail, 0, sizeof tail);
            memcpy(tail, p, left);
            opcode = tail;
        }
        int64_t taken = run_opcode(r, opcode, left);
        if (taken <= 0) break;
        p += taken;
    }
    if (r->budget.status == DONE && p < end) p++;  // the opcode that ends it
    end_reading();
    r->offset += (uint64_t)(p - bytes);
    *used = (uint64_t)(p - bytes);
    if (!r->budget.status && last) r->budget.status = TRUNCATED;
    return (int)r->budget.status;
}

static bool is_list(Role role) { return role == NEW_LIST || role == ROWS || role == LISTS; }

// Appends a value to the list below it, as the file would have; drops a dict that was cut.
static void fold(Reader *r, uint64_t floor) {
    while (r->stack.count > floor && !r->budget.status) {
        Value top = r->stack.items[r->stack.count - 1];
        if (top.type == OBJECT && role_of(r, top) == NEW_DICT && r->stack.count > floor + 1) { r->stack.count--; continue; }
        if (r->stack.count < floor + 2 || !is_object(top)) return;
        Value below = r->stack.items[r->stack.count - 2];
        if (below.type != OBJECT || !is_list(role_of(r, below))) return;
        r->stack.count--;
        append(r, below, &top, 1);
    }
}

// Closes the containers that the end left open, from the inside. A dict that was cut is dropped, but for the outermost.
static void close_containers(Reader *r) {
    while (!r->budget.status) {
        uint64_t floor = last_mark(r);
        if (floor > r->stack.count) return;
        fold(r, floor);
        if (!r->marks.count || r->budget.status) return;
        r->marks.count--;
        if (!floor) return;
        Value target = r->stack.items[floor - 1];
        uint64_t count = r->stack.count - floor;
        r->stack.count = floor;
        if (target.type != OBJECT) continue;
        if (is_list(role_of(r, target))) {
            if (count && role_of(r, r->stack.items[floor]) != FRAME) append(r, target, r->stack.items + floor, count);
        } else if (role_of(r, target) == NEW_DICT && !r->marks.count && floor == 1) {
            set_items(r, target, r->stack.items + floor, count / 2);
        }
    }
}

// Finds the snapshot in what was read, after the last piece; 1 if there is one, -1 without memory for its columns.
// What the reading needed is freed.
API int snapshot_finish(Reader *r) {
    Status status = r->budget.status;
    if (status == REFUSED || status == NO_MEMORY) return 0;
    if (status != DONE) {
        r->budget.status = READING;
        r->budget.limit += 1 << 20;
        close_containers(r);
        r->budget.status = status;
    }
    if (r->stack.count && !r->found && role_of(r, r->stack.items[0]) == ROWS) {
        Range range = r->ranges.items[row_of(r, r->stack.items[0])];
        r->found = range.role == SEGMENT;  // `torch.cuda.memory_snapshot()` is the list of segments alone
        if (r->found) r->segment_range = range, r->skipped += range.others;
    }
    r->budget.used -= r->memo.capacity * sizeof *r->memo.items + r->objects.capacity * sizeof *r->objects.items +
        r->stack.capacity * sizeof *r->stack.items + r->saved.capacity * sizeof *r->saved.items;
    free(r->memo.items), free(r->objects.items), free(r->stack.items), free(r->saved.items);
    r->memo.items = r->objects.items = NULL;
    r->stack.items = r->saved.items = NULL;
    r->memo.capacity = r->objects.capacity = r->stack.capacity = r->saved.capacity = 0;
    r->memo.count = r->objects.count = r->stack.count = r->saved.count = 0;
    if (!r->found) return 0;
    if (!widen(&r->size, r->rows) || !widen(&r->time, r->rows)) return -1;
    if (!widen_codes(&r->stack_of, r->rows) || !widen_codes(&r->label_of, r->rows)) return -1;
    begin_reading();
    match_frees(r);
    end_reading();
    return 1;
}

// A column or table by its number, and its length in elements; valid until snapshot_free.
API const void *snapshot_column(Reader *r, uint32_t which, uint64_t *count) {
#define COLUMN(number, array, length) case number: *count = (length); return array
    switch (which) {
        COLUMN(0, r->action, r->rows);
        COLUMN(1, r->address, r->rows);
        COLUMN(2, r->size.items, r->size.is_wide ? r->rows : 0);
        COLUMN(3, r->time.items, r->time.is_wide ? r->rows : 0);
        COLUMN(4, r->stack_of.items, r->stack_of.is_wide ? r->rows : 0);
        COLUMN(5, r->label_of.items, r->label_of.is_wide ? r->rows : 0);
        COLUMN(6, r->segments.items, r->segments.count);
        COLUMN(7, r->blocks.items, r->blocks.count);
        COLUMN(8, r->notes.items, r->notes.count);
        COLUMN(9, r->cells.items, r->cells.count);
        COLUMN(10, r->parts.items, r->parts.count);
        COLUMN(11, r->labels.bytes.items, r->labels.ends.count);
        COLUMN(12, r->pairs.bytes.items, r->pairs.ends.count);
        COLUMN(13, r->frames.bytes.items, r->frames.ends.count);
        COLUMN(14, r->stacks.ends.items, r->stacks.ends.count);
        COLUMN(15, r->stacks.bytes.items, r->stacks.bytes.count / 4);
        COLUMN(16, r->texts.ends.items, r->texts.ends.count);
        COLUMN(17, r->texts.bytes.items, r->texts.bytes.count);
        COLUMN(18, r->freed, r->freed ? r->rows : 0);
        default: *count = 0; return NULL;
    }
}

// offset, skipped, settings, segments begin, end, notes begin, end, bytes taken
API void snapshot_facts(const Reader *r, uint64_t *facts) {
    const uint64_t values[] = {r->offset, r->skipped, r->settings, r->segment_range.begin, r->segment_range.end,
        r->note_range.begin, r->note_range.end, r->budget.used};
    memcpy(facts, values, sizeof values);
}
