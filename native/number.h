// Decimal text to integers, doubles and nanoseconds.
#ifndef NUMBER_H
#define NUMBER_H

#include "scan.h"

enum { MOST_DIGITS = 18, LONGEST_NUMBER = 62, SHORT_NUMBER = 32 };

#define EXACT_WHOLE (1ull << 53)     // up to here every integer is a double
#define EXACT_MICROSECONDS (1ll << 43)  // up to here a double tells three decimals apart

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static inline bool is_exponent(uint8_t c) { return (c | 0x20) == 'e'; }

// n; where it is what it was last time, what follows needn't wait for the count.
INLINE uint32_t expect_digits(uint32_t n, uint32_t *usual) {
    uint32_t before = *usual;
    if (UNLIKELY(n != before)) return *usual = n;
    __asm__("" : "+r"(before));  // the compiler would take n
    return before;
}

// Whether n digits at p can be an integer: some, and no zero before others.
static inline bool is_plain(const uint8_t *p, uint32_t n) { return n && (*p != '0' || n == 1); }

APART int read_any_integer(const uint8_t *p, const uint8_t **behind, int64_t *value, bool *fraction) {
    const uint8_t *begin = p;
    bool negative = *p == '-';
    const uint8_t *digits = p += negative;
    uint64_t whole = 0;
    while (is_digit(*p)) whole = whole * 10 + (uint64_t)(*p++ - '0');
    if (UNLIKELY(*p == '.' || *p == 'e' || *p == 'E')) return skip_number(begin, behind, fraction);
    if (p == digits || p - digits > MOST_DIGITS || (*digits == '0' && (negative || p - digits > 1))) return UNSURE;
    *fraction = false;
    *value = negative ? -(int64_t)whole : (int64_t)whole;
    *behind = p;
    return OK;
}

// An integer of at most MOST_DIGITS digits; `fraction` if it is a number of another kind, then without a value.
INLINE int read_integer(
    const uint8_t *p, const uint8_t *end, const uint8_t **behind, int64_t *value, bool *fraction, uint32_t *usual
) {
    if (LIKELY(end - p >= SHORT_NUMBER)) {
        uint32_t n = expect_digits(count_digits(p), usual);
        if (LIKELY(is_plain(p, n)) && LIKELY(p[n] != '.' && !is_digit(p[n]) && !is_exponent(p[n]))) {
            *fraction = false;
            *value = (int64_t)read_digits(p, n);
            *behind = p + n;
            return OK;
        }
    }
    return read_any_integer(p, behind, value, fraction);
}

// The double nearest to the well-formed number [p, end). A product or quotient of two exact doubles is it already
// (Clinger 1990); others take the standard library's way.
APART int read_double(const uint8_t *p, const uint8_t *end, double *value) {
    const uint8_t *begin = p;
    bool negative = *p == '-';
    p += negative;
    uint64_t digits = 0;
    int exponent = 0;
    bool point = false, exact = true;
    for (; p < end && (is_digit(*p) || *p == '.'); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        exact &= digits <= EXACT_WHOLE / 10 - 1;
        if (exact) digits = digits * 10 + (uint64_t)(*p - '0');
        exponent -= point;
    }
    if (exact && p == end && exponent >= -22) {
        *value = (double)digits / TENS[-exponent];
        if (negative) *value = -*value;
        return OK;
    }
    char text[LONGEST_NUMBER + 1], *stop;
    size_t length = (size_t)(end - begin);
    if (length > LONGEST_NUMBER) return UNSURE;
    memcpy(text, begin, length);
    text[length] = 0;
    *value = strtod(text, &stop);
    // A locale may spell the point otherwise; what is infinite was too large.
    return stop == text + length && *value - *value == 0 ? OK : UNSURE;
}

// How the times of a file are rounded, if they have more than three decimals. The caller's decoder reads them as
// doubles until one does not fit, and all from then on as decimals.
typedef struct {
    bool decimals, rounded;
} Rounding;

// Nanoseconds of a double of microseconds, as the caller's decoder rounds them.
static inline int64_t nanoseconds(double microseconds) {
    const double half = 6755399441055744.0;  // adding and subtracting it rounds to the nearest integer, half to even
    int64_t whole = (int64_t)microseconds;
    double fraction = (microseconds - (double)whole) * 1000;
    volatile double shifted = fraction + half;
    return whole * 1000 + (int64_t)(shifted - half);
}

// Microseconds as Kineto writes them: up to 16 digits, then none or three decimals. False if they are others. Reads
// SHORT_NUMBER bytes.
INLINE bool read_usual_time(
    const uint8_t *p, const uint8_t **behind, int64_t *ns, const Rounding *rounding, uint32_t *usual
) {
    uint32_t n = expect_digits(count_digits(p), usual);
    if (UNLIKELY(!is_plain(p, n))) return false;
    uint64_t whole = read_digits(p, n), part = 0;
    p += n;
    if (LIKELY(*p == '.')) {
        if (UNLIKELY(whole >= EXACT_MICROSECONDS && !rounding->decimals)) return false;
        uint8_t first = (uint8_t)(p[1] - '0'), second = (uint8_t)(p[2] - '0'), third = (uint8_t)(p[3] - '0');
        if (UNLIKELY(first > 9 || second > 9 || third > 9)) return false;
        part = first * 100u + second * 10u + third;
        p += 4;
    }
    if (UNLIKELY(whole > EXACT_WHOLE || *p == '.' || is_digit(*p) || is_exponent(*p))) return false;
    *ns = (int64_t)(whole * 1000 + part);
    *behind = p;
    return true;
}

// Decimal microseconds to nanoseconds, half to even.
APART int read_unusual_time(const uint8_t *p, const uint8_t **behind, int64_t *ns, Rounding *rounding) {
    const uint8_t *begin = p;
    bool negative = *p == '-';
    const uint8_t *digits = p += negative;
    uint64_t whole = 0, part = 0;
    while (is_digit(*p)) whole = whole * 10 + (uint64_t)(*p++ - '0');
    size_t length = (size_t)(p - digits);
    if (UNLIKELY(length == 0 || length > 16 || whole > EXACT_WHOLE || (*digits == '0' && length > 1))) return UNSURE;
    if (*p == '.') {
        const uint8_t *point = p++;
        while (is_digit(*p) && p - point <= 3) part = part * 10 + (uint64_t)(*p++ - '0');
        if (p == point + 1) return UNSURE;
        for (const uint8_t *missing = p; missing <= point + 3; missing++) part *= 10;
        const uint8_t *third = p;
        while (*p == '0') p++;
        bool more = is_digit(*p);
        while (is_digit(*p)) p++;
        if (UNLIKELY(whole >= EXACT_MICROSECONDS && (part || more)) && !rounding->decimals) {
            double value;
            if (rounding->rounded || read_double(begin, p, &value) || value == (double)(int64_t)value) return UNSURE;
            rounding->decimals = true;
        }
        if (UNLIKELY(more)) {
            if (!rounding->decimals) {
                double value;
                rounding->rounded = true;
                *behind = p;
                if (*p == 'e' || *p == 'E' || read_double(begin, p, &value)) return UNSURE;
                *ns = nanoseconds(value);
                return OK;
            }
            bool beyond = false;
            for (const uint8_t *rest = third + 1; rest < p; rest++) beyond |= *rest != '0';
            part += *third > '5' || (*third == '5' && (beyond || (part & 1)));
        }
    }
    if (UNLIKELY(*p == 'e' || *p == 'E')) return UNSURE;
    int64_t value = (int64_t)(whole * 1000 + part);
    *ns = negative ? -value : value;
    *behind = p;
    return OK;
}

INLINE int read_time(
    const uint8_t *p, const uint8_t *end, const uint8_t **behind, int64_t *ns, Rounding *rounding, uint32_t *usual
) {
    if (LIKELY(end - p >= SHORT_NUMBER) && LIKELY(read_usual_time(p, behind, ns, rounding, usual))) return OK;
    return read_unusual_time(p, behind, ns, rounding);
}

#endif
