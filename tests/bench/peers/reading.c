/* Nothing but reading: each thread its part of so many bytes, as often as tokens would be made.

   Arguments: how many bytes, how often. For each number of threads that comes in a line of stdin, the seconds in a line
   of stdout. */

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 512 };
typedef float Lanes __attribute__((vector_size(64)));

static float read_all(const char *from, const char *end) {
    Lanes sums[STEP / sizeof(Lanes)] = {0}, sum = {0};
    for (; from < end; from += STEP)
        for (size_t i = 0; i < STEP / sizeof(Lanes); i++) sums[i] += *(const Lanes *)(from + i * sizeof(Lanes));
    for (size_t i = 0; i < STEP / sizeof(Lanes); i++) sum += sums[i];
    return sum[0];
}

int main(int count, char **given) {
    if (count < 3) return 2;
    const long steps = atol(given[1]) / STEP, times = atol(given[2]);
    char *bytes = aligned_alloc(STEP, (size_t)(steps * STEP));
    if (bytes == NULL) return 1;
    memset(bytes, 0, (size_t)(steps * STEP));
    for (int threads; scanf("%d", &threads) == 1;) {
        const double began = omp_get_wtime();
#pragma omp parallel num_threads(threads)
        {
            const long thread = omp_get_thread_num(), first = steps * thread / threads;
            const long last = steps * (thread + 1) / threads;
            for (long i = 0; i < times; i++) {
                const float sum = read_all(bytes + first * STEP, bytes + last * STEP);
                /* The sum may be used here, and the bytes changed: no reading can be left out. */
                __asm__ volatile("" : : "r"(bytes), "m"(sum) : "memory");
            }
        }
        printf("%.9f\n", omp_get_wtime() - began);
        fflush(stdout);
    }
    return 0;
}
