// The grammar of JSON. A block ends with the bracket that closes its array, which no number, word or blank
// contains: a walk over those stops there by itself. All other steps look at `end` first, and what they return lies
// before `end`, so that the byte behind any value can be read.
#ifndef SCAN_H
#define SCAN_H

#include "lanes.h"

enum { DEEPEST = 60, LONGEST_GUESS = 1 << 10 };

static inline bool is_digit(uint8_t c) { return (uint8_t)(c - '0') < 10; }

static inline const uint8_t *skip_blanks(const uint8_t *p) {
    while (UNLIKELY(*p <= ' ') && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
    return p;
}

static bool is_utf8(const uint8_t *p, const uint8_t *end) {
    while (p < end) {
        uint8_t c = *p;
        if (c < 0x80) {
            p++;
            continue;
        }
        int more = c >= 0xc2 && c <= 0xdf ? 1 : c >= 0xe0 && c <= 0xef ? 2 : c >= 0xf0 && c <= 0xf4 ? 3 : 0;
        if (!more || end - p <= more) return false;
        uint8_t next = p[1];
        if ((c == 0xe0 && next < 0xa0) || (c == 0xed && next > 0x9f)) return false;
        if ((c == 0xf0 && next < 0x90) || (c == 0xf4 && next > 0x8f)) return false;
        for (int i = 1; i <= more; i++)
            if ((p[i] & 0xc0) != 0x80) return false;
        p += more + 1;
    }
    return true;
}

static int hex_digit(uint8_t c) {
    if (is_digit(c)) return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// p at a backslash; UNSURE for half of a surrogate pair, of which the other half may be missing.
static int skip_escape(const uint8_t *p, const uint8_t *end, const uint8_t **behind) {
    if (end - p < 2) return UNSURE;
    if (p[1] != 'u') {
        *behind = p + 2;
        return p[1] && strchr("\"\\/bfnrt", p[1]) ? OK : UNSURE;
    }
    if (end - p < 6) return UNSURE;
    int value = 0;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0) return UNSURE;
        value = value << 4 | digit;
    }
    *behind = p + 6;
    return value >= 0xd800 && value < 0xe000 ? UNSURE : OK;
}

// The next byte of a text that is a quote, a backslash or a control character, or `end`.
static inline const uint8_t *find_special(const uint8_t *p, const uint8_t *end, bool *high) {
    for (; end - p >= 16; p += 16) {
        Lanes bytes = load_lanes(p);
        Lanes special = equals(bytes, '"') | equals(bytes, '\\') | (Lanes)(bytes < 0x20);
        uint32_t found = lane_bits(special), above = lane_bits((Lanes)(bytes > 0x7f));
        if (found) {
            int at = __builtin_ctz(found);
            *high |= (above & ((1u << at) - 1)) != 0;
            return p + at;
        }
        *high |= above != 0;
    }
    for (; p < end && *p != '"' && *p != '\\' && *p >= 0x20; p++) *high |= *p >= 0x80;
    return p;
}

// p at the opening quote; `escapes` tells whether the text holds any.
static inline int skip_text(const uint8_t *p, const uint8_t *end, const uint8_t **behind, bool *escapes) {
    const uint8_t *begin = ++p;
    bool high = false;
    *escapes = false;
    for (;;) {
        p = find_special(p, end, &high);
        if (end - p < 2) return UNSURE;
        if (LIKELY(*p == '"')) break;
        if (*p != '\\') return UNSURE;
        *escapes = true;
        int status = skip_escape(p, end, &p);
        if (status) return status;
    }
    if (UNLIKELY(high) && !is_utf8(begin, p)) return UNSURE;
    *behind = p + 1;
    return OK;
}

// `fraction`: it has decimals or an exponent.
APART int skip_number(const uint8_t *p, const uint8_t **behind, bool *fraction) {
    *fraction = false;
    p += *p == '-';
    if (!is_digit(*p) || (*p == '0' && is_digit(p[1]))) return UNSURE;
    while (is_digit(*p)) p++;
    if (*p == '.') {
        *fraction = true;
        if (!is_digit(*++p)) return UNSURE;
        while (is_digit(*p)) p++;
    }
    if (*p == 'e' || *p == 'E') {
        *fraction = true;
        p++;
        p += *p == '+' || *p == '-';
        if (!is_digit(*p)) return UNSURE;
        while (is_digit(*p)) p++;
    }
    *behind = p;
    return OK;
}

APART int skip_word(const uint8_t *p, const uint8_t *end, const uint8_t **behind) {
    const char *word = *p == 't' ? "true" : *p == 'f' ? "false" : "null";
    size_t length = strlen(word);
    if ((size_t)(end - p) <= length || memcmp(p, word, length)) return UNSURE;
    *behind = p + length;
    return OK;
}

// Any value; UNSURE for numbers with an exponent, which may be beyond what the caller's decoder takes.
APART int skip_value(const uint8_t *p, const uint8_t *end, const uint8_t **behind, int depth) {
    bool flag;
    if (*p == '"') return skip_text(p, end, behind, &flag);
    if (*p == '-' || is_digit(*p)) {
        const uint8_t *begin = p;
        int status = skip_number(begin, behind, &flag);
        if (status || !flag) return status;
        while (p < *behind && *p != 'e' && *p != 'E') p++;
        return p < *behind ? UNSURE : OK;
    }
    if (*p != '[' && *p != '{') return skip_word(p, end, behind);
    if (depth >= DEEPEST) return UNSURE;
    bool object = *p == '{';
    uint8_t close = object ? '}' : ']';
    p = skip_blanks(p + 1);
    while (*p != close) {
        int status;
        if (object) {
            if (*p != '"') return UNSURE;
            status = skip_text(p, end, &p, &flag);
            if (status) return status;
            p = skip_blanks(p);
            if (*p != ':') return UNSURE;
            p = skip_blanks(p + 1);
        }
        status = skip_value(p, end, &p, depth + 1);
        if (status) return status;
        p = skip_blanks(p);
        if (*p == close) break;
        if (*p != ',') return UNSURE;
        p = skip_blanks(p + 1);
        if (*p == close) return UNSURE;
    }
    if (end - p < 2) return UNSURE;
    *behind = p + 1;
    return OK;
}

// Where in [p, p + 32) a bracket is that a comma and a quote follow, with a blank between them or none; reads 35 bytes.
static inline uint32_t find_list_ends(const uint8_t *p) {
    uint32_t found = 0;
    for (int at = 0; at < 32; at += 16) {
        Lanes quotes = equals(load_lanes(p + at + 2), '"') | equals(load_lanes(p + at + 3), '"');
        found |= lane_bits(equals(load_lanes(p + at), ']') & equals(load_lanes(p + at + 1), ',') & quotes) << at;
    }
    return found;
}

// Where the text or list at p may end, NULL if that isn't seen within LONGEST_GUESS bytes: at the next quote, or at the
// next bracket that looks like an end. Whoever compares all of it with a value that was read before knows whether it is.
// What is returned lies before `end`.
INLINE const uint8_t *guess_end(const uint8_t *p, const uint8_t *end) {
    bool text = *p == '"';
    if ((!text && *p != '[') || end - p < 80) return NULL;
    const uint8_t *last = end - p > LONGEST_GUESS + 80 ? p + LONGEST_GUESS : end - 36;
    for (p++; p < last; p += 32) {
        uint32_t found = text ? find32(p, '"') : find_list_ends(p);
        if (LIKELY(found)) return p + __builtin_ctz(found) + 1;
    }
    return NULL;
}

#endif
