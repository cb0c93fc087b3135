/* Elementary functions made of nothing but additions, multiplications and divisions, so that each bit of their results is
   the same with any compiler that does not fuse these. Those of C libraries differ in their last bits, and so would answers
   on a page from those in a terminal. They compute with doubles: rounded to floats, all but about one result in 10^7 are
   the nearest float, and of the error function all but two in 1,000. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define POLYNOMIAL(x, coefficients) polynomial(x, coefficients, (int)(sizeof(coefficients) / sizeof *(coefficients)))
#define PORTABLE static inline __attribute__((always_inline))
#define TO_INTEGER 0x1.8p52 /* added to a double, it leaves the nearest integer, in its lowest bits */
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33

PORTABLE double polynomial(double x, const double *coefficients, int count) { /* the highest power comes first */
    double value = coefficients[0];
    for (int i = 1; i < count; i++) value = value * x + coefficients[i];
    return value;
}

/* Return e^x, with an error of at most 2e-16 of it; 0 below −708, infinity above 709. */
PORTABLE double portable_exp(double x) {
    static const double taylor[] = {
        1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
        1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1};
    const double shifted = x * 0x1.71547652b82fep0 + TO_INTEGER, whole = shifted - TO_INTEGER;
    const double rest = x - whole * LN2_HIGH - whole * LN2_LOW; /* at most half of log 2 */
    uint64_t bits;
    double power;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&power, &bits, sizeof power);
    const double value = POLYNOMIAL(rest, taylor) * power;
    return x > 709 ? (double)INFINITY : x < -708 ? 0 : value;
}

/* Return the natural logarithm of a number from 1e-300 to 1e300, with an error of at most 4e-16 of it. */
PORTABLE double portable_log(double x) {
    static const double series[] = {2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2};
    uint64_t bits, power_bits;
    double power;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t biased = (bits - 0x3FE6A09E667F3BCD + ((uint64_t)1024 << 52)) >> 52; /* 1024 plus a power of 2 */
    bits -= (biased - 1024) << 52; /* the rest is from sqrt(1/2) to sqrt(2) */
    memcpy(&x, &bits, sizeof x);
    power_bits = 0x4330000000000000 | biased; /* as a double, 2^52 more: unlike conversions, there are vectors for this */
    memcpy(&power, &power_bits, sizeof power);
    power -= 0x1p52 + 1024;
    const double ratio = (x - 1) / (x + 1);
    return power * LN2_HIGH + (ratio * POLYNOMIAL(ratio * ratio, series) + power * LN2_LOW);
}

/* Return the logarithm of 1 plus a number that is not negative, with an error of at most 6e-16 of it (Kahan 1987). */
PORTABLE double portable_log1p(double x) {
    const double more = 1 + x;
    return more == 1 ? x : portable_log(more) * (x / (more - 1));
}

/* Compute sine and cosine of an angle up to 10^6, each with an error of at most 2e-16. */
PORTABLE void portable_sine_cosine(double x, double *sine, double *cosine) {
    static const double of_sine[] = {
        1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120,
        -1.0 / 6, 1};
    static const double of_cosine[] = {
        -1.0 / 6402373705728000, 1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320,
        -1.0 / 720, 1.0 / 24, -1.0 / 2, 1};
    const double shifted = x * 0x1.45f306dc9c883p-1 + TO_INTEGER, whole = shifted - TO_INTEGER; /* quarters of a turn */
    const double rest = x - whole * 0x1.921fb544p0 - whole * 0x1.0b4611a6p-34 - whole * 0x1.3198a2e037073p-69;
    const double near_sine = rest * POLYNOMIAL(rest * rest, of_sine), near_cosine = POLYNOMIAL(rest * rest, of_cosine);
    uint64_t quarters;
    memcpy(&quarters, &shifted, sizeof quarters);
    *sine = quarters & 1 ? near_cosine : near_sine;
    *cosine = quarters & 1 ? near_sine : near_cosine;
    if (quarters & 2) *sine = -*sine;
    if ((quarters + 1) & 2) *cosine = -*cosine;
}

/* Return the error function as x · p(x²) / q(x²), with an error of at most 2e-10 up to 4 and 2e-8 beyond: 1, as a float. */
PORTABLE double portable_erf(double x) {
    static const double numerator[] = {
        1.0139867942311023e-6, 5.7939868781307994e-5, 0.00086304574302806737, 0.010394475405028218, 0.076180879181781729,
        0.31659278455635483, 1.1283791665577969};
    static const double denominator[] = {
        4.3067877198178742e-8, 1.0138485858539056e-5, 0.00023338478037356359, 0.0032086884624313948, 0.029013548711226673,
        0.17214908179946657, 0.61390637157108576, 1};
    x = x > 4 ? 4 : x < -4 ? -4 : x;
    return x * POLYNOMIAL(x * x, numerator) / POLYNOMIAL(x * x, denominator);
}
