// A block of events to columns. What was met before is told by comparing, many bytes at once: what lies between two
// values, and texts and lists.
#ifndef EVENTS_H
#define EVENTS_H

#include "columns.h"

enum { SHAPES = 256 };

// The last pid and tid that were numbers one after the other: the bytes from the first to behind the second.
typedef struct {
    Joint text;
    Thread ids;
} ThreadText;

typedef struct {
    uint64_t seed;
    Arena arena;      // tokens
    Arena key_names;  // keep their place when the tokens are forgotten
    Table categories, names, thread_ids, flow_ids;
    Keys own, inner;
    Threads threads;
    Rows rows;
    Rounding rounding;
    uint64_t events;
    uint32_t plain;  // events of the block without a category
    int32_t category;            // of the last event
    ThreadText thread;
    Joints own_first;            // behind the brace of an event
    Joints inner_first[SHAPES];  // behind that of its arguments, by category
} Reader;

// Moves on to the next member of an object or list; *more is false behind its end.
static inline int next_member(const uint8_t *p, const uint8_t *end, const uint8_t **behind, bool *more) {
    if (LIKELY(p[0] == ',' && p[1] == ' ' && p[2] > ' ')) {
        *behind = p + 2;
        return OK;
    }
    p = skip_blanks(p);
    if (*p == ',') {
        *behind = skip_blanks(p + 1);
        return OK;
    }
    if (*p != '}' || end - p < 2) return UNSURE;
    *more = false;
    *behind = p + 1;
    return OK;
}

// A text, list, object or word by its code.
INLINE int read_token(
    Reader *reader, Table *table, const uint8_t *p, const uint8_t *end, const uint8_t **behind, int32_t *code
) {
    const uint8_t *stop = guess_end(p, end);
    if (LIKELY(stop && table->slots)) {
        *code = table_find(table, reader->seed, p, (size_t)(stop - p));
        if (LIKELY(*code >= 0)) {
            *behind = stop;
            return OK;
        }
    }
    int status = skip_value(p, end, behind, 0);
    return status ? status : table_code(table, &reader->arena, reader->seed, p, (size_t)(*behind - p), code);
}

// Whether a joint is at p; reads 64 bytes.
INLINE bool is_joint(const Joint *joint, const uint8_t *p) {
    uint32_t equal = lane_bits(equal_lanes(joint->bytes, p)) | lane_bits(equal_lanes(joint->bytes + 16, p + 16)) << 16;
    if ((equal | joint->beyond) != UINT32_MAX) return false;
    return LIKELY(joint->length <= 32) || same32(joint->bytes + 32, p + 32, joint->length - 32);
}

// False, the joint unchanged, where it is too long or too near to the end.
static bool make_joint(Joint *joint, const uint8_t *p, const uint8_t *end, const uint8_t *behind, Key *key) {
    size_t length = (size_t)(behind - p);
    if (length > LONGEST_JOINT || end - p < 64) return false;
    memcpy(joint->bytes, p, sizeof joint->bytes);
    joint->length = (uint32_t)length;
    joint->beyond = length < 32 ? UINT32_MAX << length : 0;
    joint->key = key;
    return true;
}

static void remember_joint(Joints *joints, const uint8_t *p, const uint8_t *end, const uint8_t *behind, Key *key) {
    Joint *joint = &joints->joints[joints->count % JOINTS];
    if (!make_joint(joint, p, end, behind, key)) return;
    joints->count++;
    joints->last = joint;
}

static int read_key(
    Reader *reader, Keys *keys, int32_t category, const uint8_t *p, const uint8_t *end, const uint8_t **behind,
    Key **found
) {
    const uint8_t *begin = p;
    bool escapes;
    if (*p != '"') return UNSURE;
    int status = skip_text(p, end, &p, &escapes);
    if (status) return status;
    if (escapes) return UNSURE;
    status = keys_find(
        keys, &reader->key_names, reader->seed, reader->events, category, begin, (size_t)(p - begin), found
    );
    if (status) return status;
    p = skip_blanks(p);
    if (*p != ':') return UNSURE;
    *behind = skip_blanks(p + 1);
    // "@" marks the columns of keys beside the arguments.
    return keys == &reader->inner && (*found)->bytes[1] == '@' ? UNSURE : OK;
}

APART int read_other_joint(
    Reader *reader, Keys *keys, int32_t category, Joints *joints, bool first, const uint8_t *p, const uint8_t *end,
    const uint8_t **behind, Key **found
) {
    const uint8_t *begin = p;
    for (uint32_t at = 0; end - p >= 64 && at < JOINTS && at < joints->count; at++)
        if (is_joint(&joints->joints[at], p)) {
            joints->last = &joints->joints[at];
            *found = joints->last->key;
            *behind = p + joints->last->length;
            return OK;
        }
    bool more = true;
    int status = OK;
    if (first) {
        p = skip_blanks(p);
        if (*p == '}' && end - p >= 2) {
            more = false;
            p++;
        }
    } else {
        status = next_member(p, end, &p, &more);
    }
    *found = NULL;
    if (!status && more) status = read_key(reader, keys, category, p, end, &p, found);
    if (status) return status;
    *behind = p;
    remember_joint(joints, begin, end, p, *found);
    return OK;
}

// The next value of an object and its key, NULL behind the closing brace. p is behind a value, or, if `joints` are the
// first ones, behind the opening brace.
INLINE int read_joint(
    Reader *reader, Keys *keys, int32_t category, Joints *joints, bool first, const uint8_t *p, const uint8_t *end,
    const uint8_t **behind, Key **found
) {
    const Joint *last = joints->last;
    Key *key;
    if (LIKELY(end - p >= 64 && last) && LIKELY(is_joint(last, p))) {
        key = last->key;
        p += last->length;
    } else {
        int status = read_other_joint(reader, keys, category, joints, first, p, end, &p, &key);
        if (UNLIKELY(status)) return status;
    }
    *found = key;
    if (key) {
        if (UNLIKELY(key->event == reader->events)) return UNSURE;  // a key twice
        key->event = reader->events;
        if (UNLIKELY(*p <= ' ')) p = skip_blanks(p);
    }
    *behind = p;
    return OK;
}

INLINE int read_cell(Reader *reader, Key *key, const uint8_t *p, const uint8_t *end, const uint8_t **behind) {
    uint32_t row = reader->rows.count;
    int32_t code;
    if (*p == '-' || is_digit(*p)) {
        int64_t whole = 0;
        double value;
        bool fraction;
        int status = read_integer(p, end, behind, &whole, &fraction, &key->digits);
        if (status) return status;
        if (!fraction) return cells_add(key, INTEGERS, row, &whole) ? OK : NO_MEMORY;
        status = read_double(p, *behind, &value);
        if (status) return status;
        return cells_add(key, DOUBLES, row, &value) ? OK : NO_MEMORY;
    }
    if (*p == 'n') return skip_word(p, end, behind);
    Kind kind = *p == '"' ? TEXTS : JSONS;
    int status = read_token(reader, kind == TEXTS ? &key->texts : &key->jsons, p, end, behind, &code);
    if (status) return status;
    return cells_add(key, kind, row, &code) ? OK : NO_MEMORY;
}

static int read_arguments(Reader *reader, int32_t category, const uint8_t *p, const uint8_t *end, const uint8_t **behind) {
    if (*p == 'n') return skip_word(p, end, behind);
    if (*p != '{') return UNSURE;
    Key *key;
    Joints *joints = &reader->inner_first[(uint32_t)(category + 1) % SHAPES];
    int status = read_joint(reader, &reader->inner, category, joints, true, p + 1, end, &p, &key);
    while (LIKELY(!status && key)) {
        status = read_cell(reader, key, p, end, &p);
        if (LIKELY(!status)) status = read_joint(reader, &reader->inner, category, &key->after, false, p, end, &p, &key);
    }
    *behind = p;
    return status;
}

static int read_text_field(
    Reader *reader, Table *table, const uint8_t *p, const uint8_t *end, const uint8_t **behind, int32_t *code
) {
    if (*p == '"') return read_token(reader, table, p, end, behind, code);
    return *p == 'n' ? skip_word(p, end, behind) : UNSURE;
}

static inline int read_id(
    Reader *reader, Key *key, Table *table, const uint8_t *p, const uint8_t *end, const uint8_t **behind, Id *id
) {
    if (*p == '"') {
        int32_t code;
        int status = read_token(reader, table, p, end, behind, &code);
        if (!status) *id = (Id){TEXT, code};
        return status;
    }
    if (*p == 'n') return skip_word(p, end, behind);
    bool fraction = false;
    int status = read_integer(p, end, behind, &id->value, &fraction, &key->digits);
    id->kind = WHOLE;
    return status ? status : fraction ? UNSURE : OK;
}

static inline int read_time_field(
    Reader *reader, Key *key, const uint8_t *p, const uint8_t *end, const uint8_t **behind, int64_t *ns
) {
    return UNLIKELY(*p == 'n') ? skip_word(p, end, behind) : read_time(p, end, behind, ns, &reader->rounding, &key->digits);
}

static int read_phase(const uint8_t *p, const uint8_t *end, const uint8_t **behind, uint8_t *phase) {
    if (end - p < 4 || p[0] != '"' || p[2] != '"') return UNSURE;
    if (p[1] < ' ' || p[1] >= 0x7f || p[1] == '"' || p[1] == '\\') return UNSURE;
    *phase = p[1];
    *behind = p + 3;
    return OK;
}

static inline int read_category(Reader *reader, const uint8_t *p, const uint8_t *end, const uint8_t **behind, int32_t *code) {
    const Table *table = &reader->categories;
    if (LIKELY(end - p >= 64 && (uint32_t)reader->category < table->count)) {
        const Token *token = &table->tokens[reader->category];
        if (LIKELY(token->length <= 32) && LIKELY(same32(token->bytes, p, token->length))) {
            *behind = p + token->length;
            *code = reader->category;
            return OK;
        }
    }
    int status = read_text_field(reader, &reader->categories, p, end, behind, code);
    reader->category = *code;
    return status;
}

static void remember_thread(
    Reader *reader, const uint8_t *p, const uint8_t *end, const uint8_t *behind, Key *key, const Thread *thread
) {
    if (thread->pid.kind != WHOLE || thread->tid.kind != WHOLE) return;
    // With the byte that ends the number, without which a longer one would be taken for it.
    if (make_joint(&reader->thread.text, p, end, behind + 1, key)) reader->thread.ids = *thread;
}

static inline int read_field(
    Reader *reader, Key *key, Row *row, Thread *thread, Id *id, const uint8_t *p, const uint8_t *end, const uint8_t **behind
) {
    switch (key->field) {
        case PHASE: return read_phase(p, end, behind, &row->phase);
        case CATEGORY: return read_category(reader, p, end, behind, &row->category);
        case NAME: return read_text_field(reader, &reader->names, p, end, behind, &row->name);
        case PID: return read_id(reader, key, &reader->thread_ids, p, end, behind, &thread->pid);
        case TID: return read_id(reader, key, &reader->thread_ids, p, end, behind, &thread->tid);
        case ID: return read_id(reader, key, &reader->flow_ids, p, end, behind, id);
        case TIME: return read_time_field(reader, key, p, end, behind, &row->start);
        case DURATION: return read_time_field(reader, key, p, end, behind, &row->duration);
        case ARGUMENTS: return read_arguments(reader, row->category, p, end, behind);
        case OTHER: break;
    }
    return read_cell(reader, key, p, end, behind);
}

// p behind the opening brace of an event.
static int read_event(Reader *reader, const uint8_t *p, const uint8_t *end, const uint8_t **behind) {
    Row row = {0, NO_CODE, NO_CODE, 0, ABSENT, ABSENT, ABSENT};
    Thread thread = {{NOTHING, 0}, {NOTHING, 0}};
    Id id = {NOTHING, ABSENT};
    Key *key;
    reader->events++;
    int status = read_joint(reader, &reader->own, row.category, &reader->own_first, true, p, end, &p, &key);
    if (!status && !key) return UNSURE;  // it has no keys
    const uint8_t *pid = NULL;  // where it is, if it was the last field
    while (LIKELY(!status && key)) {
        const Joint *text = &reader->thread.text;
        if (key->field == PID && end - p >= 64 && text->key && is_joint(text, p)) {
            key = text->key;
            if (UNLIKELY(key->event == reader->events)) return UNSURE;  // a key twice
            key->event = reader->events;
            thread = reader->thread.ids;
            p += text->length - 1;
        } else {
            const uint8_t *value = p;
            status = read_field(reader, key, &row, &thread, &id, p, end, &p);
            if (UNLIKELY(key->field == TID && pid && !status)) remember_thread(reader, pid, end, p, key, &thread);
            pid = key->field == PID ? value : NULL;
        }
        if (LIKELY(!status)) status = read_joint(reader, &reader->own, row.category, &key->after, false, p, end, &p, &key);
    }
    if (UNLIKELY(status)) return status;
    *behind = p;
    reader->plain += row.category == NO_CODE;
    row.id = id.kind == TEXT ? FIRST_TEXT_ID + id.value : id.value;
    status = thread_code(&reader->threads, reader->seed, thread, &row.thread);
    if (status) return status;
    return rows_add(&reader->rows, &row) ? OK : NO_MEMORY;
}

// The array of events [p, end), brackets included.
static int read_events(Reader *reader, const uint8_t *p, const uint8_t *end) {
    if (end - p < 2 || *p != '[' || end[-1] != ']') return UNSURE;
    p = skip_blanks(p + 1);
    if (*p == ']') return p + 1 == end ? OK : UNSURE;
    for (;;) {
        if (*p != '{') return UNSURE;
        int status = read_event(reader, p + 1, end, &p);
        if (UNLIKELY(status)) return status;
        p = skip_blanks(p);
        if (*p == ']') return p + 1 == end ? OK : UNSURE;
        if (*p != ',') return UNSURE;
        p = skip_blanks(p + 1);
    }
}

#endif
