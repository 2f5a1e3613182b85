// Shortens a flight recorder's pickle: JSON of the entries that a diagnosis reads in full, and a number for what each
// other one, a finished collective, was. All bytes are hostile; what no recorder writes is left to the caller.
//
//     {"top": the pickle without entries, "entries": [the ones kept], "groups": [[name, description]],
//      "signatures": [[profiling name, input sizes]], "finished": [group, sequence number, signature, ...],
//      "count": all, "first": the first record id, "last_ns": the last creation, "gap_ns": the longest time between two}

#include "crash.h"
#include "snapshot_tables.h"

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

enum { R_NONE, R_INT, R_BOOL, R_REAL, R_TEXT, R_NODE };
enum { R_DICT, R_LIST, R_TUPLE };
enum { R_DEPTH = 24, R_MARKS = 1024, R_CACHE = 256, R_KEPT_CALLS = 2, MAX_SIGNATURE = 1 << 14 };
enum { F_OTHER, F_RECORD, F_GROUP, F_NAME, F_STATE, F_P2P, F_NUMBER, F_SIZES, F_CREATED, FIELDS };
static const char *const FIELD_NAMES[FIELDS] = {"", "record_id", "process_group", "profiling_name", "state", "is_p2p",
    "collective_seq_id", "input_sizes", "time_created_ns"};

typedef struct { uint64_t bits; uint32_t type, length; } Item;  // a text: its place and length
typedef struct { uint32_t kind, first, last; } Node;            // first and last of its spans, 0: none
typedef struct { uint64_t begin; uint32_t count, next; } Span;
typedef struct { int64_t record, number, created; uint32_t group, signature; bool keep; } Row;

typedef struct {
    Budget budget;
    const uint8_t *data;
    uint64_t size, seed;
    ARRAY(Item) stack;
    ARRAY(uint64_t) marks;
    ARRAY(Item) memo;
    ARRAY(Node) nodes;
    ARRAY(Span) spans;
    ARRAY(Item) pool;
    ARRAY(Row) rows;
    ARRAY(uint8_t) out;
    uint64_t out_limit;
    Interned groups, signatures;
    struct { uint64_t place; uint32_t field; } known[R_CACHE];
} Recorder;

static bool r_push(Recorder *r, uint32_t type, uint64_t bits, uint32_t length) {
    if (!GROW(&r->budget, r->stack, 1)) return false;
    r->stack.items[r->stack.count++] = (Item){bits, type, length};
    return true;
}

static uint64_t r_floor(const Recorder *r) { return r->marks.count ? r->marks.items[r->marks.count - 1] : 0; }

static bool r_has(Recorder *r, uint64_t count) {
    return r->stack.count >= r_floor(r) + count || fail(&r->budget, MALFORMED);
}

static bool r_new(Recorder *r, uint32_t kind) {
    if (!GROW(&r->budget, r->nodes, 1) || r->nodes.count >= UINT32_MAX / 2) return fail(&r->budget, OVER_BUDGET);
    r->nodes.items[r->nodes.count] = (Node){kind, 0, 0};
    return r_push(r, R_NODE, r->nodes.count++, 0);
}

// Adds the last `count` values of the stack to the container below them; they leave the stack.
static bool r_add(Recorder *r, uint64_t count, uint32_t kind) {
    Item target = r->stack.items[r->stack.count - count - 1];
    if (target.type != R_NODE || r->nodes.items[target.bits].kind != kind) return fail(&r->budget, MALFORMED);
    if (count >= UINT32_MAX || !GROW(&r->budget, r->pool, count) || !GROW(&r->budget, r->spans, 1)) return fail(&r->budget, OVER_BUDGET);
    Span span = {r->pool.count, (uint32_t)count, 0};
    r->stack.count -= count;
    if (count) memcpy(r->pool.items + r->pool.count, r->stack.items + r->stack.count, count * sizeof(Item));
    r->pool.count += count;
    Node *node = &r->nodes.items[target.bits];
    uint32_t place = (uint32_t)r->spans.count;
    r->spans.items[r->spans.count++] = span;
    if (node->last) r->spans.items[node->last].next = place;
    else node->first = place;
    node->last = place;
    return true;
}

static bool r_tuple(Recorder *r, uint64_t count) {
    // Made below its values, then filled with them.
    if (!r_has(r, count) || !r_new(r, R_TUPLE)) return false;
    Item *items = r->stack.items + r->stack.count - 1 - count, tuple = items[count];
    memmove(items + 1, items, count * sizeof *items);
    items[0] = tuple;
    return r_add(r, count, R_TUPLE);
}

static bool r_from_mark(Recorder *r, uint64_t *count, uint64_t below) {
    if (!r->marks.count) return fail(&r->budget, MALFORMED);
    uint64_t at = r->marks.items[--r->marks.count];
    *count = r->stack.count - at;
    return at >= r_floor(r) + below || fail(&r->budget, MALFORMED);
}

static bool r_store(Recorder *r, uint64_t index) {
    if (!r_has(r, 1)) return false;
    if (index > r->memo.count) return fail(&r->budget, UNUSUAL);  // writers count
    if (index == r->memo.count) {
        if (!GROW(&r->budget, r->memo, 1)) return false;
        r->memo.count++;
    }
    r->memo.items[index] = r->stack.items[r->stack.count - 1];
    return true;
}

static bool r_load(Recorder *r, uint64_t index) {
    if (index >= r->memo.count) return fail(&r->budget, MALFORMED);
    Item item = r->memo.items[index];
    return r_push(r, item.type, item.bits, item.length);
}

static bool r_text(Recorder *r, uint64_t head, uint64_t size, uint64_t at) {
    if (size > r->size - at - head) return fail(&r->budget, TRUNCATED);
    return r_push(r, R_TEXT, at + head, (uint32_t)size);
}

static bool r_is(const Recorder *r, Item text, const char *word) {
    return text.type == R_TEXT && text.length == strlen(word) && !memcmp(r->data + text.bits, word, text.length);
}

// Runs the whole pickle; one value is left.
static bool r_run(Recorder *r) {
    const uint8_t *data = r->data;
    uint64_t at = 0, count, size;
    while (at < r->size) {
        const uint8_t *p = data + at;
        uint64_t left = r->size - at;
#define R_NEED(n) if (left < (uint64_t)(n)) return fail(&r->budget, TRUNCATED)
#define R_STEP(n, did) if (!(did)) return false; at += (n); break
        switch (*p) {
            case 'h': R_NEED(2); R_STEP(2, r_load(r, p[1]));
            case 'j': R_NEED(5); R_STEP(5, r_load(r, load32(p + 1)));
            case 'q': R_NEED(2); R_STEP(2, r_store(r, p[1]));
            case 'r': R_NEED(5); R_STEP(5, r_store(r, load32(p + 1)));
            case 0x94: R_STEP(1, r_store(r, r->memo.count));
            case 'K': R_NEED(2); R_STEP(2, r_push(r, R_INT, p[1], 0));
            case 'M': R_NEED(3); R_STEP(3, r_push(r, R_INT, load16(p + 1), 0));
            case 'J': R_NEED(5); R_STEP(5, r_push(r, R_INT, (uint64_t)(int64_t)(int32_t)load32(p + 1), 0));
            case 0x8a: {
                R_NEED(2);
                size = p[1];
                if (size > 8) return fail(&r->budget, UNUSUAL);
                R_NEED(2 + size);
                uint64_t bits = 0;
                memcpy(&bits, p + 2, size);
                if (size && size < 8 && p[1 + size] & 0x80) bits |= ~(uint64_t)0 << 8 * size;
                R_STEP(2 + size, r_push(r, R_INT, bits, 0));
            }
            case 'G': {
                R_NEED(9);
                uint64_t bits = 0;
                for (int i = 1; i < 9; i++) bits = bits << 8 | p[i];
                R_STEP(9, r_push(r, R_REAL, bits, 0));
            }
            case 'N': R_STEP(1, r_push(r, R_NONE, 0, 0));
            case 0x88: R_STEP(1, r_push(r, R_BOOL, 1, 0));
            case 0x89: R_STEP(1, r_push(r, R_BOOL, 0, 0));
            case '(':
                if (r->marks.count >= R_MARKS || !GROW(&r->budget, r->marks, 1)) return fail(&r->budget, OVER_BUDGET);
                r->marks.items[r->marks.count++] = r->stack.count;
                at++;
                break;
            case '}': R_STEP(1, r_new(r, R_DICT));
            case ']': R_STEP(1, r_new(r, R_LIST));
            case ')': R_STEP(1, r_new(r, R_TUPLE));
            case 'u':
                if (!r_from_mark(r, &count, 1)) return false;
                if (count % 2) return fail(&r->budget, MALFORMED);
                R_STEP(1, r_add(r, count, R_DICT));
            case 'e': if (!r_from_mark(r, &count, 1)) return false; R_STEP(1, r_add(r, count, R_LIST));
            case 's': R_STEP(1, r_has(r, 3) && r_add(r, 2, R_DICT));
            case 'a': R_STEP(1, r_has(r, 2) && r_add(r, 1, R_LIST));
            case 't': if (!r_from_mark(r, &count, 0)) return false; R_STEP(1, r_tuple(r, count));
            case 0x85: case 0x86: case 0x87: R_STEP(1, r_tuple(r, *p - 0x84u));
            case 0x8c: R_NEED(2); R_STEP(2 + p[1], r_text(r, 2, p[1], at));
            case 'X': R_NEED(5); R_STEP(5 + (uint64_t)load32(p + 1), r_text(r, 5, load32(p + 1), at));
            case 0x95: R_NEED(9); at += 9; break;
            case 0x80: R_NEED(2); R_STEP(2, p[1] <= 5 || fail(&r->budget, UNUSUAL));
            case '.': return (r->stack.count == 1 && !r->marks.count) || fail(&r->budget, MALFORMED);
            default: return fail(&r->budget, UNUSUAL);
        }
    }
    return fail(&r->budget, TRUNCATED);
}

static bool r_write(Recorder *r, const void *bytes, uint64_t size) {
    if (r->out.count + size > r->out_limit || !GROW(&r->budget, r->out, size)) return fail(&r->budget, OVER_BUDGET);
    memcpy(r->out.items + r->out.count, bytes, size);
    r->out.count += size;
    return true;
}

static bool r_word(Recorder *r, const char *word) { return r_write(r, word, strlen(word)); }

static bool r_number(Recorder *r, int64_t value) {
    uint8_t digits[24], *end = digits + sizeof digits, *p = end;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do *--p = (uint8_t)('0' + rest % 10); while (rest /= 10);
    if (value < 0) *--p = '-';
    return r_write(r, p, (uint64_t)(end - p));
}

static bool r_string(Recorder *r, const uint8_t *text, uint64_t size) {
    if (!r_word(r, "\"")) return false;
    uint64_t begin = 0;
    for (uint64_t i = 0; i <= size; i++) {
        if (i < size && text[i] != '"' && text[i] != '\\' && text[i] >= 0x20) continue;
        if (i > begin && !r_write(r, text + begin, i - begin)) return false;
        if (i == size) break;
        static const char hex[] = "0123456789abcdef";
        uint8_t escape[6] = {'\\', 'u', '0', '0', (uint8_t)hex[text[i] >> 4], (uint8_t)hex[text[i] & 15]};
        if (!r_write(r, escape, sizeof escape)) return false;
        begin = i + 1;
    }
    return r_word(r, "\"");
}

// Writes a value as JSON, without a key called `without`.
static bool r_value(Recorder *r, Item item, const char *without, int depth) {
    if (item.type == R_NONE) return r_word(r, "null");
    if (item.type == R_INT) return r_number(r, (int64_t)item.bits);
    if (item.type == R_BOOL) return r_word(r, item.bits ? "true" : "false");
    if (item.type == R_TEXT) return r_string(r, r->data + item.bits, item.length);
    if (item.type == R_REAL) {  // as a whole number: nothing that is read is one
        double real;
        memcpy(&real, &item.bits, sizeof real);
        return real == real && real - real == 0 ? r_number(r, real >= 9e18 || real <= -9e18 ? 0 : (int64_t)real) : fail(&r->budget, UNUSUAL);
    }
    if (depth >= R_DEPTH) return fail(&r->budget, UNUSUAL);
    bool dict = r->nodes.items[item.bits].kind == R_DICT, any = false;
    if (!r_word(r, dict ? "{" : "[")) return false;
    for (uint32_t at = r->nodes.items[item.bits].first; at; at = r->spans.items[at].next) {
        Span span = r->spans.items[at];
        for (uint64_t i = 0; i < span.count; i += dict ? 2 : 1) {
            const Item *items = r->pool.items + span.begin + i;
            if (dict && items->type != R_TEXT) return fail(&r->budget, UNUSUAL);
            if (dict && without && r_is(r, *items, without)) continue;
            if (any && !r_word(r, ",")) return false;
            any = true;
            if (!dict) { if (!r_value(r, items[0], NULL, depth + 1)) return false; }
            else if (!r_value(r, items[0], NULL, depth) || !r_word(r, ":") || !r_value(r, items[1], NULL, depth + 1)) return false;
        }
    }
    return r_word(r, dict ? "}" : "]");
}

// Interns what is written after `begin`, and takes it back.
static uint32_t r_intern(Recorder *r, Interned *table, uint64_t begin) {
    uint32_t code = intern(&r->budget, table, r->seed, r->out.items + begin, r->out.count - begin);
    r->out.count = begin;
    return code;
}

static uint32_t r_field(Recorder *r, Item key) {
    uint64_t slot = key.bits % R_CACHE;
    if (r->known[slot].place == key.bits) return r->known[slot].field;
    uint32_t field = FIELDS - 1;
    while (field && !r_is(r, key, FIELD_NAMES[field])) field--;
    r->known[slot].place = key.bits;
    r->known[slot].field = field;
    return field;
}

static bool r_row(Recorder *r, Item entry) {
    if (entry.type != R_NODE || r->nodes.items[entry.bits].kind != R_DICT) return fail(&r->budget, UNUSUAL);
    Item f[FIELDS] = {{0, 0, 0}};
    for (uint32_t at = r->nodes.items[entry.bits].first; at; at = r->spans.items[at].next) {
        Span span = r->spans.items[at];
        for (uint64_t i = 0; i < span.count; i += 2) {
            const Item *items = r->pool.items + span.begin + i;
            if (items->type != R_TEXT) return fail(&r->budget, UNUSUAL);
            f[r_field(r, items[0])] = items[1];
        }
    }
    if (f[F_RECORD].type != R_INT || f[F_NUMBER].type != R_INT || f[F_CREATED].type != R_INT || f[F_NAME].type != R_TEXT ||
        f[F_STATE].type != R_TEXT || f[F_GROUP].type != R_NODE || !GROW(&r->budget, r->rows, 1))
        return fail(&r->budget, UNUSUAL);
    uint64_t begin = r->out.count;
    // What tells calls apart is short; a shared list may stand for more than the file has bytes.
    uint64_t limit = r->out_limit;
    r->out_limit = begin + MAX_SIGNATURE < limit ? begin + MAX_SIGNATURE : limit;
    Row row = {(int64_t)f[F_RECORD].bits, (int64_t)f[F_NUMBER].bits, (int64_t)f[F_CREATED].bits, 0, 0, false};
    if (!r_value(r, f[F_GROUP], NULL, R_DEPTH - 4) || (row.group = r_intern(r, &r->groups, begin)) == NOT_FOUND) return false;
    if (!r_word(r, "[") || !r_value(r, f[F_NAME], NULL, 0) || !r_word(r, ",") || !r_value(r, f[F_SIZES], NULL, R_DEPTH - 4) || !r_word(r, "]")) return false;
    if ((row.signature = r_intern(r, &r->signatures, begin)) == NOT_FOUND) return false;
    r->out_limit = limit;
    bool p2p = (f[F_P2P].type == R_BOOL && f[F_P2P].bits) || memchr(r->data + f[F_NAME].bits, ' ', f[F_NAME].length);
    row.keep = p2p || !r_is(r, f[F_STATE], "completed");
    if (f[F_P2P].type != R_BOOL || (r->rows.count && r->rows.items[r->rows.count - 1].record >= row.record)) return fail(&r->budget, UNUSUAL);
    r->rows.items[r->rows.count++] = row;
    return true;
}

// Of each group the last calls are kept, and of a coalesced batch all entries or none.
static bool r_mark(Recorder *r) {
    uint64_t groups = r->groups.ends.count, rows = r->rows.count;
    if (!groups) return true;
    if (groups > 1 << 16) return fail(&r->budget, OVER_BUDGET);
    struct { int64_t number; uint32_t calls; bool any, keep; } *last = calloc(groups, sizeof *last);
    if (!last) return fail(&r->budget, NO_MEMORY);
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < rows; i++) {
            Row *row = &r->rows.items[pass ? i : rows - 1 - i];
            bool again = last[row->group].any && last[row->group].number == row->number;
            if (again && last[row->group].keep) row->keep = true;
            if (!pass && !row->keep && (again || last[row->group].calls++ < R_KEPT_CALLS))
                row->keep = last[row->group].calls <= R_KEPT_CALLS;
            last[row->group].number = row->number;
            last[row->group].keep = row->keep;
            last[row->group].any = true;
        }
        memset(last, 0, groups * sizeof *last);
    }
    free(last);
    return true;
}

static int r_compare(const void *one, const void *other) {
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static bool r_gap(Recorder *r, int64_t *last, int64_t *gap) {
    *last = *gap = 0;
    if (!r->rows.count) return true;
    int64_t *created = malloc(r->rows.count * sizeof *created);
    if (!created) return fail(&r->budget, NO_MEMORY);
    bool sorted = true;
    for (uint64_t i = 0; i < r->rows.count; i++) {
        created[i] = r->rows.items[i].created;
        sorted = sorted && (!i || created[i - 1] <= created[i]);
    }
    if (!sorted) qsort(created, r->rows.count, sizeof *created, r_compare);
    bool fits = created[0] >= 0;
    for (uint64_t i = 1; fits && i < r->rows.count; i++)
        if (created[i] - created[i - 1] > *gap) *gap = created[i] - created[i - 1];
    *last = created[r->rows.count - 1];
    free(created);
    return fits || fail(&r->budget, UNUSUAL);
}

static bool r_table(Recorder *r, const Interned *table) {
    for (uint32_t code = 0; code < table->ends.count; code++) {
        uint64_t begin = row_begin(table, code);
        if (code && !r_word(r, ",")) return false;
        if (!r_write(r, table->bytes.items + begin, table->ends.items[code] - begin)) return false;
    }
    return true;
}

static bool r_fact(Recorder *r, const char *name, int64_t value) { return r_word(r, name) && r_number(r, value); }

static bool r_shorten(Recorder *r) {
    if (!r_run(r)) return false;
    Item top = r->stack.items[0], list = {0, R_NONE, 0};
    if (top.type != R_NODE || r->nodes.items[top.bits].kind != R_DICT) return fail(&r->budget, UNUSUAL);
    for (uint32_t at = r->nodes.items[top.bits].first; at; at = r->spans.items[at].next)
        for (uint64_t i = 0; i < r->spans.items[at].count; i += 2) {
            const Item *items = r->pool.items + r->spans.items[at].begin + i;
            if (r_is(r, items[0], "entries")) list = items[1];
        }
    if (list.type != R_NODE || r->nodes.items[list.bits].kind != R_LIST) return fail(&r->budget, UNUSUAL);
    for (uint32_t at = r->nodes.items[list.bits].first; at; at = r->spans.items[at].next)
        for (uint64_t i = 0; i < r->spans.items[at].count; i++)
            if (!r_row(r, r->pool.items[r->spans.items[at].begin + i])) return false;
    int64_t last, gap;
    if (!r_mark(r) || !r_gap(r, &last, &gap)) return false;
    if (!r_word(r, "{\"top\":") || !r_value(r, top, "entries", 0) || !r_word(r, ",\"entries\":[")) return false;
    bool any = false;
    uint64_t row = 0;
    for (uint32_t at = r->nodes.items[list.bits].first; at; at = r->spans.items[at].next)
        for (uint64_t i = 0; i < r->spans.items[at].count; i++, row++) {
            if (!r->rows.items[row].keep) continue;
            if (any && !r_word(r, ",")) return false;
            any = true;
            if (!r_value(r, r->pool.items[r->spans.items[at].begin + i], NULL, 0)) return false;
        }
    if (!r_word(r, "],\"groups\":[") || !r_table(r, &r->groups)) return false;
    if (!r_word(r, "],\"signatures\":[") || !r_table(r, &r->signatures) || !r_word(r, "],\"finished\":[")) return false;
    any = false;
    for (uint64_t i = 0; i < r->rows.count; i++) {
        const Row *each = &r->rows.items[i];
        if (each->keep) continue;
        if (any && !r_word(r, ",")) return false;
        any = true;
        if (!r_number(r, each->group) || !r_fact(r, ",", each->number) || !r_fact(r, ",", each->signature)) return false;
    }
    return r_fact(r, "],\"count\":", (int64_t)r->rows.count) &&
        r_fact(r, ",\"first\":", r->rows.count ? r->rows.items[0].record : 0) && r_fact(r, ",\"last_ns\":", last) &&
        r_fact(r, ",\"gap_ns\":", gap) && r_word(r, "}");
}

API uint32_t recorder_abi(void) { return 1; }
API void recorder_say_crash(const char *message) { say_crash(message); }

// Returns JSON of `*length` bytes, to be freed with recorder_free; NULL if the bytes are not what recorders write.
API uint8_t *recorder_shorten(const uint8_t *data, uint64_t size, uint64_t seed, uint64_t *length) {
    Recorder *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    begin_reading();
    r->data = data;
    r->size = size;
    r->seed = seed;
    r->budget.limit = (64 << 20) + 64 * size;
    r->out_limit = (1 << 20) + 8 * size;
    // The first span stands for none.
    bool done = GROW(&r->budget, r->spans, 1) && (r->spans.items[r->spans.count++] = (Span){0}, r_shorten(r));
    end_reading();
    uint8_t *out = done ? r->out.items : NULL;
    *length = done ? r->out.count : 0;
    if (!done) free(r->out.items);
    free_interned(&r->groups), free_interned(&r->signatures);
    void *arrays[] = {r->stack.items, r->marks.items, r->memo.items, r->nodes.items, r->spans.items, r->pool.items, r->rows.items};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    free(r);
    return out;
}

API void recorder_free(uint8_t *out) { free(out); }
