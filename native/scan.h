// The grammar of JSON. A block ends with the bracket that closes its array, which no number, word or blank
// contains: a walk over those stops there by itself. All other steps look at `end` first, and what they return lies
// before `end`, so that the byte behind any value can be read.
#ifndef SCAN_H
#define SCAN_H

#include "bytes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { DEEPEST = 60 };

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
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), last = _mm_set1_epi8(0x1f);
    while (end - p >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)p);
        __m128i control = _mm_cmpeq_epi8(_mm_max_epu8(bytes, last), last);
        __m128i found = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash)), control);
        uint32_t special = (uint32_t)_mm_movemask_epi8(found), above = (uint32_t)_mm_movemask_epi8(bytes);
        if (special) {
            int at = __builtin_ctz(special);
            *high |= (above & ((1u << at) - 1)) != 0;
            return p + at;
        }
        *high |= above != 0;
        p += 16;
    }
#endif
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
static int skip_number(const uint8_t *p, const uint8_t **behind, bool *fraction) {
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

static int skip_word(const uint8_t *p, const uint8_t *end, const uint8_t **behind) {
    const char *word = *p == 't' ? "true" : *p == 'f' ? "false" : "null";
    size_t length = strlen(word);
    if ((size_t)(end - p) <= length || memcmp(p, word, length)) return UNSURE;
    *behind = p + length;
    return OK;
}

// Any value; UNSURE for numbers with an exponent, which may be beyond what the caller's decoder takes.
static int skip_value(const uint8_t *p, const uint8_t *end, const uint8_t **behind, int depth) {
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

#endif
