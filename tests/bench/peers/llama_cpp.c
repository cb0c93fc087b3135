/* Greedy decoding by llama.cpp's library; keys and values in f32, as everywhere else here.

   Arguments: the model, how many tokens to make, the ids of the prompt. For each number of threads that comes in a line
   of stdin, a line of stdout: the seconds that decoding took, and the ids. Versions from before the middle of 2025 need
   BEFORE_MEMORY. */

#include "llama.h"

#include <stdio.h>
#include <stdlib.h>

static void ignore(enum ggml_log_level level, const char *text, void *data) {
    (void)level, (void)text, (void)data;
}

static llama_token likeliest(const float *logits, int count) {
    llama_token best = 0;
    for (int id = 1; id < count; id++)
        if (logits[id] > logits[best]) best = id;
    return best;
}

int main(int count, char **given) {
    if (count < 4) return 2;
    llama_log_set(ignore, NULL);
    llama_backend_init();
    struct llama_model *model = llama_model_load_from_file(given[1], llama_model_default_params());
    if (model == NULL) return 1;
    struct llama_context_params parameters = llama_context_default_params();
    parameters.n_ctx = (uint32_t)llama_model_n_ctx_train(model);
    parameters.type_k = parameters.type_v = GGML_TYPE_F32;
    struct llama_context *context = llama_init_from_model(model, parameters);
    if (context == NULL) return 1;
    const int vocab_size = llama_vocab_n_tokens(llama_model_get_vocab(model));
    const int wanted = atoi(given[2]), prompt = count - 3;
    llama_token *ids = malloc(sizeof *ids * (size_t)(prompt + wanted));
    for (int place = 0; place < prompt; place++) ids[place] = atoi(given[3 + place]);
    for (int threads; scanf("%d", &threads) == 1;) {
        llama_set_n_threads(context, threads, threads);
#ifdef BEFORE_MEMORY
        llama_kv_cache_clear(context);
#else
        llama_memory_clear(llama_get_memory(context), true);
#endif
        if (llama_decode(context, llama_batch_get_one(ids, prompt)) != 0) return 1;
        const float *logits = llama_get_logits_ith(context, -1);
        const int64_t began = llama_time_us();
        for (llama_token *id = ids + prompt; id < ids + prompt + wanted; id++) {
            *id = likeliest(logits, vocab_size);
            if (llama_decode(context, llama_batch_get_one(id, 1)) != 0) return 1;
            logits = llama_get_logits_ith(context, -1);
        }
        printf("%.6f", 1e-6 * (double)(llama_time_us() - began));
        for (int i = 0; i < wanted; i++) printf(" %d", ids[prompt + i]);
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
