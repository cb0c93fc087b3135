/* Greedy decoding by llama2.c: its program without its `main`, which `TESTING` leaves out.

   Arguments: the model, how many tokens to make, the ids of the prompt. For each number of threads that comes in a line
   of stdin, a line of stdout: the seconds that decoding took, and the ids. */

#define TESTING
#include "run.c"

#include <omp.h>

int main(int count, char **given) {
    if (count < 4) return 2;
    Transformer transformer;
    build_transformer(&transformer, given[1]);
    const int wanted = atoi(given[2]), prompt = count - 3;
    int *made = malloc(sizeof *made * wanted);
    for (int threads; scanf("%d", &threads) == 1;) {
        omp_set_num_threads(threads);
        float *logits = NULL;
        for (int place = 0; place < prompt; place++) logits = forward(&transformer, atoi(given[3 + place]), place);
        const double began = omp_get_wtime();
        for (int i = 0; i < wanted; i++) {
            made[i] = sample_argmax(logits, transformer.config.vocab_size);
            logits = forward(&transformer, made[i], prompt + i);
        }
        printf("%.9f", omp_get_wtime() - began);
        for (int i = 0; i < wanted; i++) printf(" %d", made[i]);
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
