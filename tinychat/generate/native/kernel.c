/* A transformer on a CPU, decoder-only or encoder-decoder: from token ids to logits to the next tokens, in plain C.

   All threads run the same code, each on its share of the rows of each matrix, and meet at barriers. Between calls they
   sleep. Arithmetic is in f32; the weights of matrices are stored in f32, bf16 or int8.

   This file is compiled once for each level of instructions that native/build.py lists: LEVEL names it, and ends the name of
   each function that Python calls. Code without intrinsics uses vector types that compilers map to any processor.

   A row is a token that the layers read. The rows of a pass may belong to many sequences, so that each weight is read once
   for up to 16 of them. The result of a row never depends on the others: an answer is the same in any batch.

   Shapes: B rows of a pass, D d_model, H heads, K head size, F width of the feed-forward, V vocabulary. */

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif
#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "drafting.h"
#include "portable_math.h"

#ifndef LEVEL
#define LEVEL plain
#endif
#define JOINED(name, level) name##_##level
#define WITH_LEVEL(name, level) JOINED(name, level)
#define EXPORTED(name) WITH_LEVEL(name, LEVEL)
#define native_runs_here EXPORTED(native_runs_here)
#define native_new_model EXPORTED(native_new_model)
#define native_free_model EXPORTED(native_free_model)
#define native_new_sequence EXPORTED(native_new_sequence)
#define native_free_sequence EXPORTED(native_free_sequence)
#define native_extend EXPORTED(native_extend)
#define native_probabilities EXPORTED(native_probabilities)
#define native_score EXPORTED(native_score)
#define native_set_drafting EXPORTED(native_set_drafting)
#define native_count_work EXPORTED(native_count_work)
#define native_add_encoder EXPORTED(native_add_encoder)
#define native_set_source EXPORTED(native_set_source)
#define native_reserve EXPORTED(native_reserve)

#if defined(__AVX512VNNI__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { WIDEST = 8 };
#define INLINE static inline __attribute__((always_inline))

enum { MAX_ROWS = MAX_PASS_ROWS, GROUP = 64, SMALL_VOCABULARY = 4096, MAX_ORDER = 64, LARGE_COUNT = 255, MAX_LOW_BITS = 15 };
/* As in model/config.py. */
enum { NUM_CONTEXT_LENGTHS = 8, LONGEST_CONTEXT = 16, MAX_RECENT = 8, EVIDENCE_WIDTH = 32 };
enum { MAX_LEVELS = MAX_ORDER + NUM_CONTEXT_LENGTHS };
static const int context_lengths[NUM_CONTEXT_LENGTHS] = {2, 3, 4, 5, 6, 8, 12, LONGEST_CONTEXT};
enum { NO_NORM, LAYERNORM, RMSNORM };
enum { NO_FEED_FORWARD, GELU, GELU_TANH, RELU, RELU2, SWIGLU };
enum { NO_POSITIONS, ROTARY, LEARNED, SINUSOIDAL };
enum { DECODER_ALONE, DECODER, ENCODER };
enum { MISSING, F32, BF16, INT8, I16, I32, I64, F16, U8 };
enum { LARGE_CACHE = 64 << 20 };
#ifdef __wasm__ /* of a page: memory is scarce, and of one kind */
enum { LARGE_PAGE = 64, LARGE_TABLE = 0, LEAST_CHUNK = 0, LARGE_RESERVE = 1 << 30, CACHE_STEP = 64, IS_SPARING = 1 };
#else
enum { LARGE_PAGE = 2 << 20, LARGE_TABLE = 16 << 20, LEAST_CHUNK = LARGE_PAGE, LARGE_RESERVE = 1 << 20, CACHE_STEP = 0, IS_SPARING = 0 };
#endif
/* `CACHE_STEP`: tokens by which the caches of keys and values grow; 0: they have room for the whole context at once.
   `IS_SPARING`: what can be computed again is not kept. */
enum { SPINS_AT_ONCE = 50, MAX_SPINS = 20000 };

typedef float Lanes __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t Integers __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint32_t Words __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int8_t Bytes __attribute__((vector_size(LANES), aligned(1)));

/* Structures that Python passes: model/kernel_layout.py packs the fields of `Config` in the same order, native/engine.py
   those of the others. */

typedef struct {
    int32_t vocab_size, context_length, n_layer, n_head, n_kv_head, d_model, d_ff;
    int32_t norm, norm_is_before, final_norm, feed_forward, position, qk_norm, output_projection;
    int32_t previous_token_embeddings, bigram_embedding, ngram_order, precision;
    int32_t stack, d_head, rotary_width, parallel, scale_scores; /* `rotary_width`: coordinates of each head that are turned */
    int32_t turn_layer, turn_token, reply_token; /* `turn_layer`: index of the layer that attends to turns; −1: none */
    float norm_eps, rotary_base, embedding_scale;
} Config;

typedef struct {
    const void *data;
    int64_t kind, count;
} Tensor;

typedef struct {
    double temperature, top_p, min_p, repetition_penalty;
    int64_t top_k;
    uint64_t seed, prompt_index, position;
} Sampling;

static int is_greedy(const Sampling *sampling) { return sampling->temperature == 0; }

typedef struct Sequence Sequence;

/* A sequence to continue. */
typedef struct {
    Sequence *sequence;
    const int32_t *ids;  /* all of its tokens; the model sees those from `first` on */
    const int32_t *ends; /* tokens that end it */
    const float *biases; /* added to the logits of the next token; NULL: none. With them, one token is made */
    int32_t *sampled;
    float *logprobs;
    int32_t *top_ids;
    float *top_logprobs;
    int64_t count, first, end_count;
    int64_t max_tokens, num_generated; /* `num_generated` is an output */
    Sampling sampling;
} Request;

/* Rows of a matrix in interleaved order, as many vectors of LANES rows as `count`, so that no sum crosses lanes: for each
   column the weights of all rows, in the order of reading; pairs of columns in bf16, groups of four in int8 (plus 128). In
   int8, the scales of each row and group of columns follow, [group][row of the panel]. */
typedef struct {
    char *weights;
    int first, count; /* vectors; `count` is at most WIDEST */
} Panel;

typedef struct {
    int rows, columns, vectors;
    int precision;
    Panel *panels;
    int *shares; /* index of the first panel of each share, and at the end the number of panels */
    float *bias;
} Matrix;

/* Quantized activations: the factors of a matrix in int8. */
typedef struct {
    int8_t *values;   /* [row][column] */
    float *scales;    /* [row][group] */
    int32_t *offsets; /* [row][group]: initial sums, which correct for weights stored plus 128 */
} Quantized;

typedef struct {
    int width;
    float *gain, *bias;
} Norm;

typedef struct {
    int window; /* number of newest tokens to attend to; 0: all */
    Norm before_attention, before_cross_attention, before_feed_forward;
    Norm of_queries, of_keys, of_cross_queries, of_cross_keys;
    Matrix query_key_value, output, cross_query, cross_key_value, cross_output, up, gate, down;
} Layer;

/* A small linear layer, transposed: for each input a row of weights, and a row of biases. A row is as long as whole lanes
   that hold the outputs. */
typedef struct {
    int inputs, wide;
    float *weights;
} SmallLayer;

/* What is known of a context: its followers counted, the logarithm of 1 plus how many are different, and the most frequent. */
typedef struct {
    float total, variety;
    Guess guess;
} Summary;

/* Counts are as compact as in a file, whose order they keep; see store/packed_counts.py. */
typedef struct {
    SmallLayer weighing, evidence, correction; /* `weighing`: strengths, then the share */
    float *variety, *recency;                  /* `recency`: exponentials of the weights */
    int count, large_count;  /* contexts; large counts */
    int32_t *starts;         /* first entry of each context, or of every 64th, and at the end the number of entries */
    uint64_t *is_first;      /* bits of entries, if not all starts are kept: it is the first of its context; else NULL */
    uint8_t *tokens;         /* of entries, ascending in a context; see `token_of` */
    int is_wide;             /* a token takes two bytes, not one */
    uint8_t *counts;         /* of entries; LARGE_COUNT: it is among the large ones */
    int32_t *large, *large_entries;
    uint64_t *is_context;    /* bits of entries: its context and its token are a context, too; they come in this order */
    int32_t *contexts_before; /* number of bits before each 64 entries */
    Summary *summaries;      /* of contexts; NULL: made when they are needed */
} NGrams;

struct Sequence {
    int32_t *ids;
    int cached;     /* number of ids whose keys and values the cache holds */
    float *cache;   /* keys and values, [key/value head][block][layer], in blocks of LANES tokens; see `choose_layout` */
    uint8_t *used;  /* for each token of the vocabulary whether the sequence contains it; kept up for the repetition penalty */
    size_t mapped;  /* bytes of the cache if it is mapped into memory; 0 if it is allocated */
    int room, source_room; /* number of tokens that `cache` and `source_cache` have room for */
    int32_t *source;    /* ids that the encoder has read; NULL: none yet */
    float *source_cache; /* keys and values of cross-attention, laid out as in `cache` */
    int source_count;
    Sequence *next; /* of the same model */
};

typedef struct {
    Sequence *sequence;
    int position;
} Row;

/* Consecutive rows of a pass that are consecutive tokens of a sequence. */
typedef struct {
    Sequence *sequence;
    int first, count;
} Run;

/* A request in progress. */
typedef struct {
    Request *request;
    Sequence *sequence, *leader;   /* `leader` computes the prefix that both share */
    int shared;                    /* length of that prefix */
    int count, num_read;           /* tokens so far, and how many of them the layers have read */
    int rows, output, num_sampled; /* in this pass: its rows, its first output (−1: none), tokens sampled */
    int guessed, drafts;           /* tokens guessed, and how many of them are read as drafts */
    Guess guesses[MAX_DRAFTS];
    int is_done;
} Job;

/* Memory for matrices, one after the other; this header comes first. */
typedef struct Chunk {
    struct Chunk *before;
    size_t used, size; /* bytes, header included */
} Chunk;

/* How often a thread has arrived at a barrier. Padded, as processors fetch two cache lines of 64 bytes at a time. */
typedef struct {
    atomic_uint turn;
    char apart[128 - sizeof(atomic_uint)];
} Arrival;

typedef struct Model {
    Config config;
    int d_head, stride, wide_heads, wide_head, slots; /* D, H · K and K rounded up to whole lanes; the context, to whole blocks */
    int64_t block_size, block_step, head_step; /* floats: a layer in a block; from block to block; from head to head */
    Tensor embedding; /* without data, its rows are those of the head */
    Tensor *earlier, pairs; /* tables of embeddings */
    float *positions, *cosine, *sine;
    double *frequencies; /* of rotary positions */
    int turned; /* number of positions that `cosine` and `sine` have held so far; a page keeps those of the newest */
    size_t table_size, logits_size; /* bytes */
    Layer *layers;
    Norm norm;
    Matrix head;
    Chunk **chunks; /* the newest chunk of each share */
    NGrams ngrams;
    struct Model *encoder; /* a model without a head, of one thread; NULL: none */
    /* state of a call */
    Sequence *sequences; /* all that exist */
    int rows, runs, num_outputs;
    Row row[MAX_ROWS];
    Run run[MAX_ROWS];
    int output_row[MAX_ROWS]; /* rows whose logits are needed */
    Job *jobs;                /* that sample after the layers; NULL: none */
    int job_count, num_top;
    Drafting drafting;
    int64_t read; /* rows read, over all calls */
    atomic_int not_finite; /* a logit is NaN or infinite */
    float *x, *qkv, *attended, *hidden, *gated, *head_inputs, *logits;
    Quantized *quantized; /* by thread */
    /* threads */
    int threads, max_threads, started; /* taking part in a call; at most; created, apart from Python's own */
    pthread_t *workers;
    pthread_mutex_t lock;
    pthread_cond_t work_available;
    uint64_t calls;
    int is_ending;
    Arrival *arrivals; /* by thread */
} Model;

/* --- numbers ---------------------------------------------------------------------------------------------------- */

static float bf16_to_float(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Numbers of a file may be at unaligned addresses, hence memcpy. */
static int64_t read_integer(const Tensor *tensor, int64_t index) {
    int16_t of_two;
    int32_t of_four;
    int64_t of_eight;
    switch (tensor->kind) {
    case U8: return ((const uint8_t *)tensor->data)[index];
    case I16: memcpy(&of_two, (const char *)tensor->data + 2 * index, 2); return of_two;
    case I32: memcpy(&of_four, (const char *)tensor->data + 4 * index, 4); return of_four;
    default: memcpy(&of_eight, (const char *)tensor->data + 8 * index, 8); return of_eight;
    }
}

static float f16_to_float(uint16_t half) {
    const uint32_t exponent = half >> 10 & 31, fraction = half & 1023, bits = (exponent + 112) << 23 | fraction << 13;
    float magnitude = (float)fraction * 0x1p-24f; /* of a subnormal number */
    if (exponent) memcpy(&magnitude, &bits, sizeof magnitude);
    return half >> 15 ? -magnitude : magnitude; /* files with infinite numbers are refused before */
}

static float read_number(const Tensor *tensor, int64_t index) {
    float value;
    uint16_t half;
    switch (tensor->kind) {
    case F32: memcpy(&value, (const char *)tensor->data + 4 * index, 4); return value;
    case BF16: memcpy(&half, (const char *)tensor->data + 2 * index, 2); return bf16_to_float(half);
    case F16: memcpy(&half, (const char *)tensor->data + 2 * index, 2); return f16_to_float(half);
    default: return (float)read_integer(tensor, index);
    }
}

/* Restore a group of columns of a matrix that is in int8 already: steps up to ±127 [row][column], then the largest weight
   of each group [row][group]. Quantizing the result again gives the same: the largest weight is exact. */
static void read_steps(const Tensor *matrix, int columns, int64_t row, int first, int count, float *numbers) {
    const int8_t *steps = (const int8_t *)matrix->data + row * columns + first;
    const int64_t group = row * ((columns + GROUP - 1) / GROUP) + first / GROUP;
    float highest;
    memcpy(&highest, (const char *)matrix->data + matrix->count + group * (int64_t)sizeof highest, sizeof highest);
    for (int i = 0; i < count; i++) numbers[i] = steps[i] == 127 ? highest : steps[i] == -127 ? -highest : steps[i] * (highest / 127);
}

/* Read numbers of a row of a matrix, from a column on: at most those of a group. */
static void read_group(const Tensor *matrix, int columns, int64_t row, int first, int count, float *numbers) {
    const int64_t begin = row * columns + first;
    uint16_t halves[GROUP];
    if (matrix->kind == INT8) read_steps(matrix, columns, row, first, count, numbers);
    else if (matrix->kind == F32) memcpy(numbers, (const char *)matrix->data + 4 * begin, (size_t)count * sizeof *numbers);
    else if (matrix->kind == BF16) {
        memcpy(halves, (const char *)matrix->data + 2 * begin, (size_t)count * sizeof *halves);
        for (int i = 0; i < count; i++) numbers[i] = bf16_to_float(halves[i]);
    } else if (matrix->kind == F16) {
        memcpy(halves, (const char *)matrix->data + 2 * begin, (size_t)count * sizeof *halves);
        for (int i = 0; i < count; i++) numbers[i] = f16_to_float(halves[i]);
    } else
        for (int i = 0; i < count; i++) numbers[i] = read_number(matrix, begin + i);
}

static uint16_t float_to_bf16(float value) { /* to nearest, ties to even */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

INLINE Lanes load(const float *from) { return *(const Lanes *)from; }

INLINE void store(float *to, Lanes value) { *(Lanes *)to = value; }

INLINE Lanes all(float value) { return (Lanes){0} + value; }

INLINE Lanes larger(Lanes a, Lanes b) {
#if defined(__AVX512VNNI__)
    return (Lanes)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (Lanes)_mm256_max_ps((__m256)a, (__m256)b);
#else
    Integers is = a > b;
    return (Lanes)(((Integers)a & is) | ((Integers)b & ~is));
#endif
}

INLINE float sum(Lanes x) {
#if defined(__AVX512VNNI__)
    return _mm512_reduce_add_ps((__m512)x);
#else
    float lanes[LANES];
    memcpy(lanes, &x, sizeof lanes);
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
    return lanes[0];
#endif
}

INLINE float largest(Lanes x) {
#if defined(__AVX512VNNI__)
    return _mm512_reduce_max_ps((__m512)x);
#else
    float most = x[0];
    for (int lane = 1; lane < LANES; lane++) most = x[lane] > most ? x[lane] : most;
    return most;
#endif
}

/* Add to each lane's sum the products of its four weights, stored plus 128, with four numbers that all lanes share. Where
   instructions take the weights as stored, the sum is 128 times the numbers too high, which OFFSET corrects. */
#if defined(__AVX512VNNI__)
enum { OFFSET = -128 };
INLINE Integers add_products(Integers sums, Integers weights, int32_t numbers) {
    return (Integers)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)weights, _mm512_set1_epi32(numbers));
}
#elif defined(__AVX2__)
enum { OFFSET = 0 };
INLINE Integers add_products(Integers sums, Integers weights, int32_t numbers) {
    const __m256i signed_weights = _mm256_xor_si256((__m256i)weights, _mm256_set1_epi8(-128));
    const __m256i signed_numbers = _mm256_sign_epi8(_mm256_set1_epi32(numbers), signed_weights);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(signed_weights), signed_numbers);
    return sums + (Integers)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
#elif defined(__ARM_FEATURE_DOTPROD)
enum { OFFSET = 0 };
INLINE Integers add_products(Integers sums, Integers weights, int32_t numbers) {
    const int8x16_t signed_weights = veorq_s8((int8x16_t)weights, vdupq_n_s8(-128));
    return (Integers)vdotq_s32((int32x4_t)sums, signed_weights, vreinterpretq_s8_s32(vdupq_n_s32(numbers)));
}
#else
enum { OFFSET = 0 };
INLINE Integers add_products(Integers sums, Integers weights, int32_t numbers) {
    weights ^= (int32_t)0x80808080;
    for (int byte = 0; byte < 32; byte += 8)
        sums += (weights << (24 - byte) >> 24) * ((int32_t)((uint32_t)numbers << (24 - byte)) >> 24);
    return sums;
}
#endif

INLINE Lanes exponential(Lanes x) { /* relative error 1e-7; about 1e-38 below −87, about 1e38 above 88 */
    x = larger(x, all(-87.0f));
    x = -larger(-x, all(-88.0f));
    Integers power = __builtin_convertvector(x * 1.44269504f + 127.5f, Integers); /* exponent of 2, plus 127 */
    Lanes whole = __builtin_convertvector(power - 127, Lanes);
    Lanes rest = x - whole * 0.693359375f - whole * -2.12194440e-4f; /* at most half of log 2 */
    Lanes value = all(1.9875691500e-4f);
    value = value * rest + 1.3981999507e-3f;
    value = value * rest + 8.3334519073e-3f;
    value = value * rest + 4.1665795894e-2f;
    value = value * rest + 1.6666665459e-1f;
    value = value * rest + 5.0000001201e-1f;
    value = value * rest * rest + rest + 1.0f;
    return value * (Lanes)(power << 23);
}

INLINE Lanes activate(Lanes x, int kind) {
    switch (kind) {
    case RELU: return larger(x, all(0));
    case RELU2: x = larger(x, all(0)); return x * x;
    case SWIGLU: return x / (1.0f + exponential(-x));
    case GELU_TANH: return x / (1.0f + exponential(-1.5957691216f * (x + 0.044715f * x * x * x)));
    default: {
        float lanes[LANES];
        store(lanes, x);
        for (int lane = 0; lane < LANES; lane++) lanes[lane] *= 0.5f * (1 + (float)portable_erf(lanes[lane] * 0.70710678f));
        return load(lanes);
    }
    }
}

/* --- threads ---------------------------------------------------------------------------------------------------- */

/* Wait until all threads have arrived. Each writes to a cache line of its own and polls those of the others, so that only
   these lines travel between cores. */
static void barrier(Model *model, int thread) {
    const int threads = model->threads; /* read first: once all have arrived, the next call may change it */
    if (threads == 1) return;
    const uint32_t turn = atomic_load_explicit(&model->arrivals[thread].turn, memory_order_relaxed) + 1;
    atomic_store_explicit(&model->arrivals[thread].turn, turn, memory_order_release);
    for (int other = 0, spins = 0; other < threads; other++)
        for (; atomic_load_explicit(&model->arrivals[other].turn, memory_order_acquire) - turn > UINT32_MAX / 2; spins++) {
#if defined(__x86_64__)
            if (spins > SPINS_AT_ONCE) __builtin_ia32_pause();
#endif
            if (spins > MAX_SPINS) sched_yield(); /* another process occupies the core of a missing thread */
        }
}

static int slice(int count, int thread, int threads) { return (int)((int64_t)count * thread / threads); }

/* Return the size of the first part if `left` is cut into the fewest parts of at most `most`, of nearly equal size. */
static int even_share(int left, int most) {
    const int parts = (left + most - 1) / most;
    return (left + parts - 1) / parts;
}

/* --- layers ----------------------------------------------------------------------------------------------------- */

/* Vectors of a panel times rows. Both counts are constants wherever these functions are inlined, so that all sums stay in
   registers. A row's sums do not depend on the other rows. */

INLINE void multiply_f32(
    const float *weights, int wide, int columns, const float *x, int x_stride, Lanes sums[4][WIDEST], int vectors,
    int rows) {
    for (int column = 0; column < columns; column++, weights += wide)
        for (int i = 0; i < vectors; i++)
            for (int row = 0; row < rows; row++) sums[row][i] += load(weights + i * LANES) * x[row * x_stride + column];
}

INLINE void multiply_bf16(
    const uint32_t *weights, int wide, int columns, const float *x, int x_stride, Lanes sums[4][WIDEST], int vectors,
    int rows) {
    for (int column = 0; column < columns; column += 2, weights += wide)
        for (int i = 0; i < vectors; i++) {
            Words both = *(const Words *)(weights + i * LANES);
            Lanes even = (Lanes)(both << 16), odd = (Lanes)(both & 0xFFFF0000);
            for (int row = 0; row < rows; row++) {
                sums[row][i] += even * x[row * x_stride + column];
                sums[row][i] += odd * x[row * x_stride + column + 1];
            }
        }
}

INLINE void multiply_int8(
    const int32_t *weights, int wide, int columns, const Quantized *x, int first_row, Lanes sums[4][WIDEST], int vectors,
    int rows) {
    const int fours = (columns + 3) / 4, groups = (columns + GROUP - 1) / GROUP;
    const float *scales = (const float *)weights + (int64_t)fours * wide;
    for (int group = 0; group < groups; group++, scales += wide) {
        const int end = (group + 1) * (GROUP / 4) < fours ? (group + 1) * (GROUP / 4) : fours;
        Integers parts[4][WIDEST];
        for (int row = 0; row < rows; row++)
            for (int i = 0; i < vectors; i++)
                parts[row][i] = (Integers){0} + x->offsets[(first_row + row) * groups + group];
        for (int four = group * (GROUP / 4); four < end; four++, weights += wide)
            for (int i = 0; i < vectors; i++) {
                Integers of_four = *(const Integers *)(weights + i * LANES);
                for (int row = 0; row < rows; row++) {
                    int32_t numbers;
                    memcpy(&numbers, x->values + ((int64_t)(first_row + row) * fours + four) * 4, sizeof numbers);
                    parts[row][i] = add_products(parts[row][i], of_four, numbers);
                }
            }
        for (int i = 0; i < vectors; i++) {
            Lanes of_rows = load(scales + i * LANES);
            for (int row = 0; row < rows; row++) {
                const float scale = x->scales[(first_row + row) * groups + group];
                sums[row][i] += __builtin_convertvector(parts[row][i], Lanes) * (of_rows * scale);
            }
        }
    }
}

/* Multiply vectors of a panel from `first` on; `wide` is the number of the panel's rows. */
INLINE void multiply_tile(
    const Matrix *matrix, const Panel *panel, int first, int wide, const float *x, int x_stride,
    const Quantized *quantized, int row, float *out, int out_stride, int adds, const int vectors, const int rows) {
    const int columns = matrix->columns, offset = (panel->first + first) * LANES;
    const void *weights = panel->weights + first * LANES * sizeof(float);
    Lanes sums[4][WIDEST];
    for (int i = 0; i < vectors; i++) {
        Lanes bias = matrix->bias ? load(matrix->bias + offset + i * LANES) : all(0);
        for (int j = 0; j < rows; j++) sums[j][i] = bias;
    }
    x += row * x_stride;
    switch (matrix->precision) {
    case INT8: multiply_int8(weights, wide, columns, quantized, row, sums, vectors, rows); break;
    case BF16: multiply_bf16(weights, wide, columns, x, x_stride, sums, vectors, rows); break;
    default: multiply_f32(weights, wide, columns, x, x_stride, sums, vectors, rows);
    }
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < vectors; i++) {
            float *to = out + (row + j) * out_stride + offset + i * LANES;
            store(to, adds ? load(to) + sums[j][i] : sums[j][i]);
        }
}

/* Round products to integers up to ±127. Those beyond are clamped, and so is NaN, which activations can become. */
INLINE Integers to_steps(Lanes x, float share) {
    x = x * share + 0x1.8p23f; /* 1.5 · 2^23 leaves no fraction bits */
    x = -larger(-larger(x, all(0x1.8p23f - 127)), all(-0x1.8p23f - 127));
    return (Integers)x - 0x4B400000;
}

/* Quantize numbers to integers up to 127 with one scale. */
INLINE void quantize_group(const float *from, const int vectors, int8_t *to, float *scale, int32_t *offset) {
    Lanes most = all(0);
    Integers total = {0};
    for (int i = 0; i < vectors; i++) most = larger(most, (Lanes)((Integers)load(from + i * LANES) & 0x7FFFFFFF));
    const float highest = largest(most), share = highest > 0 ? 127 / highest : 0;
    for (int i = 0; i < vectors; i++) {
        Integers whole = to_steps(load(from + i * LANES), share);
        *(Bytes *)(to + i * LANES) = __builtin_convertvector(whole, Bytes);
        total += whole;
    }
    *scale = highest / 127;
    *offset = OFFSET * (int32_t)sum(__builtin_convertvector(total, Lanes)); /* exact, as it is below 2^24 */
}

/* Quantize rows for multiplication with a matrix in int8, each group of columns with its own scale. A row is padded with
   zeros to whole vectors; these may reach into the next row, which is written later. */
static void quantize(const Matrix *matrix, const float *x, int x_stride, int rows, const Quantized *out) {
    const int columns = matrix->columns, wide = (columns + 3) / 4 * 4;
    float *scale = out->scales;
    int32_t *offset = out->offsets;
    for (int row = 0; row < rows; row++) {
        const float *from = x + row * x_stride;
        int8_t *to = out->values + (int64_t)row * wide;
        int first = 0;
        for (; first + GROUP <= columns; first += GROUP)
            quantize_group(from + first, GROUP / LANES, to + first, scale++, offset++);
        if (first < columns)
            quantize_group(from + first, (columns - first + LANES - 1) / LANES, to + first, scale++, offset++);
    }
}

/* Return a thread's first share. A matrix has as many shares as there can be threads. */
static int first_share(const Model *model, int thread) { return slice(model->max_threads, thread, model->threads); }

/* Multiply a thread's share of a matrix with each row; `adds`: add to `out` instead of storing. */
static void multiply(
    const Model *model, int thread, const Matrix *matrix, const float *x, int x_stride, float *out, int out_stride,
    int adds, int rows) {
    const Panel *panel = matrix->panels + matrix->shares[first_share(model, thread)];
    const Panel *end = matrix->panels + matrix->shares[first_share(model, thread + 1)];
    const Quantized *quantized = &model->quantized[thread];
    if (matrix->precision == INT8) quantize(matrix, x, x_stride, rows, quantized);
#define TILE(first, wide, vectors, rows) \
    case vectors: \
        multiply_tile( \
            matrix, panel, first, (wide) * LANES, x, x_stride, quantized, row, out, out_stride, adds, vectors, rows); \
        break;
#define WHOLE(vectors) TILE(0, vectors, vectors, 1)
#define PART(vectors) TILE(first, panel->count, vectors, 4)
    for (; panel < end; panel++) {
        int row = 0;
        for (; rows - row >= 4; row += 4)
            for (int first = 0, vectors; first < panel->count; first += vectors)
                switch (vectors = even_share(panel->count - first, 4)) { PART(1) PART(2) PART(3) PART(4) }
        for (; row < rows; row++)
            switch (panel->count) {
                WHOLE(1) WHOLE(2) WHOLE(3) WHOLE(4) WHOLE(5) WHOLE(6) WHOLE(7) WHOLE(8)
            }
    }
#undef PART
#undef WHOLE
#undef TILE
}

/* LayerNorm (Ba et al. 2016) or RMSNorm (Zhang, Sennrich 2019) of a vector padded with zeros to whole lanes. */
static void normalize(const Config *config, const Norm *norm, const float *x, float *out) {
    const int width = norm->width, padding = -width & (LANES - 1);
    if (config->norm == NO_NORM) {
        memcpy(out, x, (size_t)(width + padding) * sizeof *x);
        return;
    }
    Lanes total = all(0), squares = all(0);
    float mean = 0;
    if (config->norm == LAYERNORM) {
        for (int i = 0; i < width; i += LANES) total += load(x + i);
        mean = sum(total) / width;
    }
    for (int i = 0; i < width; i += LANES) {
        Lanes centered = load(x + i) - mean;
        squares += centered * centered;
    }
    float scale = 1 / sqrtf((sum(squares) - padding * mean * mean) / width + config->norm_eps);
    for (int i = 0; i < width; i += LANES) {
        Lanes value = (load(x + i) - mean) * scale;
        if (norm->gain) value *= load(norm->gain + i);
        if (norm->bias) value += load(norm->bias + i);
        store(out + i, value);
    }
    for (int i = width; i < width + padding; i++) out[i] = 0;
}

static void normalize_head(const Config *config, const Norm *norm, float *x) {
    const int width = norm->width, whole = width / LANES * LANES;
    float mean = 0, rest = 0;
    Lanes total = all(0);
    if (config->norm == LAYERNORM) {
        for (int i = 0; i < whole; i += LANES) total += load(x + i);
        for (int i = whole; i < width; i++) rest += x[i];
        mean = (sum(total) + rest) / width;
        total = all(rest = 0);
    }
    for (int i = 0; i < whole; i += LANES) total += (load(x + i) - mean) * (load(x + i) - mean);
    for (int i = whole; i < width; i++) rest += (x[i] - mean) * (x[i] - mean);
    const float scale = 1 / sqrtf((sum(total) + rest) / width + config->norm_eps);
    for (int i = 0; i < whole; i += LANES) store(x + i, (load(x + i) - mean) * scale);
    for (int i = whole; i < width; i++) x[i] = (x[i] - mean) * scale;
    for (int i = 0; norm->gain && i < width; i++) x[i] *= norm->gain[i];
    for (int i = 0; norm->bias && i < width; i++) x[i] += norm->bias[i];
}

/* Return where the sine and cosine of a position are: the positions of a pass follow one another where not all are kept. */
static int64_t turned_slot(int position) { return IS_SPARING ? position % MAX_ROWS : position; }

static void rotate(const Model *model, float *x, int position) { /* Su et al. 2021, §3.2.2; pairs are k and k + R/2, of R turned ones */
    const int half = model->config.rotary_width / 2;
    const int64_t at = turned_slot(position) * half;
    const float *cosine = model->cosine + at, *sine = model->sine + at;
    for (int k = 0; k < half; k++) {
        float first = x[k], second = x[k + half];
        x[k] = first * cosine[k] - second * sine[k];
        x[k + half] = second * cosine[k] + first * sine[k];
    }
}

/* Keys and values of a head are stored in blocks of LANES tokens. The blocks in use of all layers are adjacent, so that
   they enter a core's cache without evicting its weights. In a block, keys come first, [K][lane], then values,
   [lane][K in whole lanes]. */

INLINE void score(
    const float *query, const float *blocks, int64_t step, int width, float scale, float *scores, const int count) {
    Lanes sums[8];
    for (int i = 0; i < count; i++) sums[i] = all(0);
    for (int k = 0; k < width; k++)
        for (int i = 0; i < count; i++) sums[i] += load(blocks + i * step + k * LANES) * query[k];
    for (int i = 0; i < count; i++) store(scores + i * LANES, sums[i] * scale);
}

/* Average values by their weights. Sums of several slots at a time are independent: a single one would wait for itself. */
INLINE void average(
    const float *shares, const float *values, int64_t step, int wide, int used, float *out, const int parts,
    const int unroll) {
    Lanes sums[4][4];
    for (int copy = 0; copy < unroll; copy++)
        for (int i = 0; i < parts; i++) sums[copy][i] = all(0);
    for (int first = 0; first < used; first += LANES, values += step) {
        const int count = used - first < LANES ? used - first : LANES;
        int slot = 0;
        for (; slot + unroll <= count; slot += unroll)
            for (int copy = 0; copy < unroll; copy++)
                for (int i = 0; i < parts; i++)
                    sums[copy][i] += load(values + (slot + copy) * wide + i * LANES) * shares[first + slot + copy];
        for (; slot < count; slot++)
            for (int i = 0; i < parts; i++) sums[0][i] += load(values + slot * wide + i * LANES) * shares[first + slot];
    }
    for (int i = 0; i < parts; i++) {
        for (int copy = 1; copy < unroll; copy++) sums[0][i] += sums[copy][i];
        store(out + i * LANES, sums[0][i]);
    }
}

/* Attend from one query to the first `used` slots but those before `first`, from a block of the layer on; `scores` has room
   for whole blocks. */
static void attend(
    const Model *model, const float *query, const float *block, int first, int used, float *scores, float *out) {
    const int width = model->d_head, wide = model->wide_head, blocks = (used + LANES - 1) / LANES;
    const int64_t step = model->block_step;
    const float scale = model->config.scale_scores ? 1 / sqrtf(width) : 1, *values = block + width * LANES;
    Lanes most = all(-INFINITY), total = all(0);
#define SCORE(count) \
    case count: score(query, block + i * step, step, width, scale, scores + i * LANES, count); break;
    for (int i = 0, count; i < blocks; i += count)
        switch (count = even_share(blocks - i, 8)) {
            SCORE(1) SCORE(2) SCORE(3) SCORE(4) SCORE(5) SCORE(6) SCORE(7) SCORE(8)
        }
#undef SCORE
    for (int slot = used; slot < blocks * LANES; slot++) scores[slot] = -INFINITY;
    for (int slot = 0; slot < first; slot++) scores[slot] = -INFINITY;
    for (int i = 0; i < blocks; i++) most = larger(most, load(scores + i * LANES));
    const float highest = largest(most);
    for (int slot = used; slot < blocks * LANES; slot++) scores[slot] = highest - 100; /* padding adds at most e^-87 */
    for (int slot = 0; slot < first; slot++) scores[slot] = highest - 100;
    for (int i = 0; i < blocks; i++) {
        Lanes share = exponential(load(scores + i * LANES) - highest);
        total += share;
        store(scores + i * LANES, share);
    }
    const Lanes share = all(1 / sum(total));
    float averages[wide] __attribute__((aligned(64)));
#define AVERAGE(count, unroll) \
    case count: average(scores, values + k, step, wide, used, averages + k, count, unroll); break;
    for (int k = 0, count; k < wide; k += count * LANES)
        switch (count = even_share((wide - k) / LANES, 4)) { AVERAGE(1, 4) AVERAGE(2, 4) AVERAGE(3, 2) AVERAGE(4, 2) }
#undef AVERAGE
    for (int k = 0; k < wide; k += LANES) store(averages + k, load(averages + k) * share);
    memcpy(out, averages, (size_t)width * sizeof *out);
}

/* Whether each thread's share can consist of the queries, keys and values of whole heads. */
static int has_whole_heads(const Model *model, int has_gates) {
    const int heads = model->config.n_kv_head;
    return !has_gates && heads % model->max_threads == 0 && heads / model->max_threads * model->d_head % LANES == 0;
}

/* Compute queries, keys and values of each row. A thread that computes those of its own heads need not wait for others. */
static void project(Model *model, int thread, int layer, const float *x) {
    const Matrix *matrix = &model->layers[layer].query_key_value;
    multiply(model, thread, matrix, x, model->stride, model->qkv, matrix->vectors * LANES, 0, model->rows);
    if (model->threads < model->max_threads || !has_whole_heads(model, layer == model->config.turn_layer)) barrier(model, thread);
}

/* Return where the keys and values of a head in a layer begin. */
static float *blocks_of(const Model *model, float *cache, int layer, int head) {
    return cache + head * model->head_step + layer * model->block_size;
}

static void store_key_and_value(const Model *model, float *blocks, int slot, const float *key, const float *value) {
    const int width = model->d_head;
    float *block = blocks + slot / LANES * model->block_step, *values = block + width * LANES;
    for (int k = 0; k < width; k++) block[k * LANES + slot % LANES] = key[k];
    memcpy(values + slot % LANES * model->wide_head, value, (size_t)width * sizeof *value);
}

/* Add to the key and value of a row those of its turn up to the row before; see `TurnAttention` of model/attention.py. */
static void pool_turn(
    const Model *model, const Row *row, int head, const float *blocks, float gate, float *key, float *value) {
    const int32_t *ids = row->sequence->ids, turn_token = model->config.turn_token;
    const int width = model->d_head, slot = row->position;
    int at = slot; /* of the newest token that begins a turn or its reply */
    while (at >= 0 && ids[at] != turn_token && ids[at] != model->config.reply_token) at--;
    const int begins = at == slot && ids[at] == turn_token, is_message = !begins && (at < 0 || ids[at] == turn_token);
    const int is_kept = is_message && slot - at <= head + 1;
    const float share = is_message ? 1 / (1 + (float)portable_exp(-gate)) : 0;
    const float *before = slot ? blocks + (slot - 1) / LANES * model->block_step : NULL;
    for (int k = 0; k < width; k++) {
        key[k] = key[k] * share + (before && !begins ? before[k * LANES + (slot - 1) % LANES] : 0);
        if (!is_kept) value[k] = before && !begins ? before[width * LANES + (slot - 1) % LANES * model->wide_head + k] : 0;
    }
}

/* Do a thread's share of the keys and values of turns, over all heads and runs, and add the keys to the queries. */
static void pool_turns(Model *model, int thread, int layer) {
    const Config *config = &model->config;
    const Layer *own = &model->layers[layer];
    const int width = model->d_head, group = config->n_head / config->n_kv_head;
    const int qkv_stride = own->query_key_value.vectors * LANES;
    const int key_offset = config->n_head * width, value_offset = key_offset + config->n_kv_head * width;
    const int gate_offset = value_offset + config->n_kv_head * width, units = model->runs * config->n_kv_head;
    for (int unit = slice(units, thread, model->threads); unit < slice(units, thread + 1, model->threads); unit++) {
        const Run *run = &model->run[unit % model->runs];
        const int head = unit / model->runs;
        float *blocks = blocks_of(model, run->sequence->cache, layer, head);
        for (int index = run->first; index < run->first + run->count; index++) {
            const Row *row = &model->row[index];
            float *qkv = model->qkv + (int64_t)index * qkv_stride;
            float *key = qkv + key_offset + head * width, *value = qkv + value_offset + head * width;
            pool_turn(model, row, head, blocks, qkv[gate_offset + head], key, value);
            store_key_and_value(model, blocks, row->position, key, value);
            for (int i = 0; i < group; i++) {
                float *query = qkv + (head * group + i) * width;
                for (int k = 0; k < width; k++) query[k] += key[k];
                if (config->qk_norm) normalize_head(config, &own->of_queries, query);
            }
        }
    }
}

/* Write the slots where the turns end that are over at a row; return their number. */
static int find_ends(const Model *model, const Row *row, int *ends) {
    int count = 0;
    for (int slot = 0; slot < row->position; slot++)
        if (row->sequence->ids[slot + 1] == model->config.turn_token) ends[count++] = slot;
    return count;
}

/* Add the scores that turns have in a key head, from the queries of all heads that share it. */
static void score_turns(
    const Model *model, const Layer *layer, const float *blocks, const float *queries, const int *ends, int count,
    float *scores) {
    const int width = model->d_head, group = model->config.n_head / model->config.n_kv_head;
    const float scale = model->config.scale_scores ? 1 / sqrtf(width) : 1;
    float query[width], key[model->wide_head] __attribute__((aligned(64)));
    for (int k = 0; k < width; k++) {
        query[k] = 0;
        for (int i = 0; i < group; i++) query[k] += queries[i * width + k];
    }
    for (int turn = 0; turn < count; turn++) {
        const float *from = blocks + ends[turn] / LANES * model->block_step + ends[turn] % LANES;
        float score = 0;
        for (int k = 0; k < width; k++) key[k] = from[k * LANES];
        if (model->config.qk_norm) normalize_head(&model->config, &layer->of_keys, key);
        for (int k = 0; k < width; k++) score += query[k] * key[k];
        scores[turn] += score * scale;
    }
}

/* Make scores of turns weights; what is left of 1 is that of no turn. */
static void weigh_turns(float no_turn, float *scores, int count) {
    float highest = no_turn;
    for (int turn = 0; turn < count; turn++) highest = fmaxf(highest, scores[turn]);
    float total = (float)portable_exp(no_turn - highest);
    for (int turn = 0; turn < count; turn++) total += scores[turn] = (float)portable_exp(scores[turn] - highest);
    for (int turn = 0; turn < count; turn++) scores[turn] /= total;
}

/* Do a thread's share of attention to turns, row by row: all heads of a row look at the same turn, by the sum of their
   scores. */
static void turn_attention(Model *model, int thread, int layer, float *weights) {
    const Config *config = &model->config;
    const Layer *own = &model->layers[layer];
    const int width = model->d_head, group = config->n_head / config->n_kv_head;
    const int qkv_stride = own->query_key_value.vectors * LANES;
    const int no_turn = (config->n_head + 2 * config->n_kv_head) * width + config->n_kv_head;
    int ends[model->slots];
    for (int index = slice(model->rows, thread, model->threads); index < slice(model->rows, thread + 1, model->threads); index++) {
        const Row *row = &model->row[index];
        const float *qkv = model->qkv + (int64_t)index * qkv_stride;
        const int count = find_ends(model, row, ends);
        for (int turn = 0; turn < count; turn++) weights[turn] = 0;
        for (int head = 0; head < config->n_kv_head; head++) {
            const float *blocks = blocks_of(model, row->sequence->cache, layer, head);
            score_turns(model, own, blocks, qkv + head * group * width, ends, count, weights);
        }
        weigh_turns(qkv[no_turn], weights, count);
        for (int head = 0; head < config->n_kv_head; head++) {
            float *out = model->attended + (int64_t)index * model->wide_heads + head * group * width;
            const float *values = blocks_of(model, row->sequence->cache, layer, head) + width * LANES;
            for (int k = 0; k < width; k++) out[k] = 0;
            for (int turn = 0; turn < count; turn++) {
                const float *value = values + ends[turn] / LANES * model->block_step + ends[turn] % LANES * model->wide_head;
                for (int k = 0; k < width; k++) out[k] += weights[turn] * value[k];
            }
            for (int i = 1; i < group; i++) memcpy(out + i * width, out, (size_t)width * sizeof *out);
        }
    }
}

/* Do a thread's share of self-attention over all heads and runs: store new keys and values in the cache, then attend from
   each row to what precedes it. */
static void self_attention(Model *model, int thread, int layer, float *scores) {
    const Config *config = &model->config;
    const Layer *own = &model->layers[layer];
    const int width = model->d_head, group = config->n_head / config->n_kv_head;
    const int qkv_stride = own->query_key_value.vectors * LANES;
    const int key_offset = config->n_head * width, value_offset = key_offset + config->n_kv_head * width;
    const int units = model->runs * config->n_kv_head;
    for (int unit = slice(units, thread, model->threads); unit < slice(units, thread + 1, model->threads); unit++) {
        const Run *run = &model->run[unit % model->runs];
        const int head = unit / model->runs;
        float *blocks = blocks_of(model, run->sequence->cache, layer, head);
        for (int row = run->first; row < run->first + run->count; row++) {
            const int slot = model->row[row].position;
            const int first = own->window && slot >= own->window ? slot + 1 - own->window : 0, skipped = first / LANES;
            float *qkv = model->qkv + (int64_t)row * qkv_stride;
            float *key = qkv + key_offset + head * width, *value = qkv + value_offset + head * width;
            if (config->qk_norm) normalize_head(config, &own->of_keys, key);
            if (config->position == ROTARY) rotate(model, key, slot);
            store_key_and_value(model, blocks, slot, key, value);
            for (int i = 0; i < group; i++) {
                float *query = qkv + (head * group + i) * width;
                if (config->qk_norm) normalize_head(config, &own->of_queries, query);
                if (config->position == ROTARY) rotate(model, query, slot);
                attend(
                    model, query, blocks + skipped * model->block_step, first - skipped * LANES, slot + 1 - skipped * LANES,
                    scores, model->attended + (int64_t)row * model->wide_heads + (head * group + i) * width);
            }
        }
    }
}

/* Do a thread's share of cross-attention: attend from each row to the source of its sequence. */
static void cross_attention(Model *model, int thread, int layer, float *scores) {
    const Config *config = &model->config;
    const Layer *own = &model->layers[layer];
    const int width = model->d_head, group = config->n_head / config->n_kv_head, units = model->rows * config->n_head;
    for (int unit = slice(units, thread, model->threads); unit < slice(units, thread + 1, model->threads); unit++) {
        const int row = unit / config->n_head, head = unit % config->n_head;
        const Sequence *sequence = model->row[row].sequence;
        float *query = model->qkv + (int64_t)row * own->cross_query.vectors * LANES + head * width;
        if (config->qk_norm) normalize_head(config, &own->of_cross_queries, query);
        attend(
            model, query, blocks_of(model, sequence->source_cache, layer, head / group), 0, sequence->source_count, scores,
            model->attended + (int64_t)row * model->wide_heads + head * width);
    }
}

/* Add what attention has gathered to the residual stream. */
static void add_attended(Model *model, int thread, const Matrix *output) {
    if (model->config.output_projection)
        multiply(model, thread, output, model->attended, model->wide_heads, model->x, model->stride, 1, model->rows);
    else if (thread == 0)
        for (int index = 0; index < model->rows * model->stride; index++) model->x[index] += model->attended[index];
}

/* Add a row of a table to a vector. */
static void add_embedding(const Tensor *table, int64_t row, int64_t width, float *x) {
    if (table->kind == F32) {
        const float *from = (const float *)table->data + row * width;
        for (int64_t i = 0; i < width; i++) x[i] += from[i];
        return;
    }
    float numbers[GROUP];
    for (int64_t first = 0; first < width; first += GROUP) {
        const int count = width - first < GROUP ? (int)(width - first) : GROUP;
        read_group(table, (int)width, row, (int)first, count, numbers);
        for (int i = 0; i < count; i++) x[first + i] += numbers[i];
    }
}

/* Read the embedding of an id: from its table or, where that is large and tied, from the head. */
static void read_embedding(const Model *model, int64_t id, float *x) {
    const Tensor *table = &model->embedding;
    const int64_t width = model->config.d_model;
    if (table->data) {
        memset(x, 0, (size_t)width * sizeof *x);
        add_embedding(table, id, width, x);
    } else {
        const Panel *panel = model->head.panels;
        while (id >= (panel->first + panel->count) * LANES) panel++;
        const int64_t row = id - panel->first * LANES, wide = panel->count * LANES;
        const float *whole = (const float *)panel->weights;
        const uint16_t *halves = (const uint16_t *)panel->weights;
        for (int64_t i = 0; i < width; i++)
            x[i] = table->kind == F32 ? whole[i * wide + row] : bf16_to_float(halves[i / 2 * 2 * wide + row * 2 + i % 2]);
    }
}

static void embed(Model *model) {
    const Config *config = &model->config;
    const int64_t width = config->d_model, vocab_size = config->vocab_size;
    for (int row = 0; row < model->rows; row++) {
        const int32_t *ids = model->row[row].sequence->ids;
        const int position = model->row[row].position;
        float *x = model->x + (int64_t)row * model->stride;
        read_embedding(model, ids[position], x);
        for (int distance = 1; distance <= config->previous_token_embeddings; distance++) {
            int64_t id = position >= distance ? ids[position - distance] + 1 : 0;
            add_embedding(&model->earlier[distance - 1], id, width, x);
        }
        if (config->bigram_embedding) {
            int64_t previous = position >= 1 ? ids[position - 1] + 1 : 0;
            add_embedding(&model->pairs, previous * vocab_size + ids[position], width, x);
        }
        if (config->embedding_scale != 1)
            for (int i = 0; i < width; i++) x[i] *= config->embedding_scale;
        if (config->position == LEARNED || config->position == SINUSOIDAL) {
            const float *from = model->positions + position * width;
            for (int i = 0; i < width; i++) x[i] += from[i];
        }
    }
}

/* Return the input of a sublayer. Each thread normalizes for itself, which is faster than waiting for another. */
static const float *before_sublayer(Model *model, const Norm *norm, float *normed, int rows, const float *x) {
    if (!model->config.norm_is_before || model->config.norm == NO_NORM) return x;
    for (int row = 0; row < rows; row++)
        normalize(&model->config, norm, x + (int64_t)row * model->stride, normed + (int64_t)row * model->stride);
    return normed;
}

static void after_sublayer(Model *model, int thread, const Norm *norm) {
    barrier(model, thread);
    if (model->config.norm_is_before || model->config.norm == NO_NORM) return;
    if (thread == 0)
        for (int row = 0; row < model->rows; row++) {
            float *x = model->x + (int64_t)row * model->stride;
            normalize(&model->config, norm, x, x);
        }
    barrier(model, thread);
}

static void feed_forward(Model *model, int thread, Layer *layer, const float *x) {
    const int wide = layer->up.vectors * LANES, kind = model->config.feed_forward;
    const int first = LANES * slice(layer->up.vectors, first_share(model, thread), model->max_threads);
    const int end = LANES * slice(layer->up.vectors, first_share(model, thread + 1), model->max_threads);
    multiply(model, thread, &layer->up, x, model->stride, model->hidden, wide, 0, model->rows);
    if (kind == SWIGLU) multiply(model, thread, &layer->gate, x, model->stride, model->gated, wide, 0, model->rows);
    for (int row = 0; row < model->rows; row++)
        for (int i = first; i < end; i += LANES) {
            float *at = model->hidden + (int64_t)row * wide + i;
            if (kind == SWIGLU) store(at, load(at) * activate(load(model->gated + (at - model->hidden)), kind));
            else store(at, activate(load(at), kind));
        }
    barrier(model, thread);
    multiply(model, thread, &layer->down, model->hidden, wide, model->x, model->stride, 1, model->rows);
}

/* Return a thread's copy of the head's input for an output. */
static float *head_input(const Model *model, int thread, int output) {
    return model->head_inputs + ((int64_t)thread * MAX_ROWS + output) * model->stride;
}

/* Run all layers and the head: from embedded rows to the logits of the outputs. */
static void run_layers(Model *model, int thread) {
    const Config *config = &model->config;
    float normed[MAX_ROWS * model->stride] __attribute__((aligned(64)));
    float scores[model->slots] __attribute__((aligned(64)));
    float beside[config->parallel ? MAX_ROWS * model->stride : 1] __attribute__((aligned(64)));
    for (int i = 0; i < config->n_layer; i++) {
        Layer *layer = &model->layers[i];
        for (int row = 0; config->parallel && row < model->rows; row++) {
            const int64_t at = (int64_t)row * model->stride;
            normalize(config, &layer->before_feed_forward, model->x + at, beside + at);
        }
        const float *x = before_sublayer(model, &layer->before_attention, normed, model->rows, model->x);
        project(model, thread, i, x);
        if (i == config->turn_layer) {
            pool_turns(model, thread, i);
            barrier(model, thread);
            turn_attention(model, thread, i, scores);
        } else {
            self_attention(model, thread, i, scores);
        }
        barrier(model, thread);
        add_attended(model, thread, &layer->output);
        after_sublayer(model, thread, &layer->before_attention);
        if (config->stack == DECODER) {
            x = before_sublayer(model, &layer->before_cross_attention, normed, model->rows, model->x);
            const Matrix *query = &layer->cross_query;
            multiply(model, thread, query, x, model->stride, model->qkv, query->vectors * LANES, 0, model->rows);
            barrier(model, thread);
            cross_attention(model, thread, i, scores);
            barrier(model, thread);
            add_attended(model, thread, &layer->cross_output);
            after_sublayer(model, thread, &layer->before_cross_attention);
        }
        if (config->feed_forward != NO_FEED_FORWARD) {
            x = config->parallel ? beside : before_sublayer(model, &layer->before_feed_forward, normed, model->rows, model->x);
            feed_forward(model, thread, layer, x);
            after_sublayer(model, thread, &layer->before_feed_forward);
        }
    }
    for (int i = 0; i < model->num_outputs; i++) {
        const float *x = model->x + (int64_t)model->output_row[i] * model->stride;
        float *to = head_input(model, thread, i);
        if (config->final_norm) normalize(config, &model->norm, x, to);
        else memcpy(to, x, (size_t)model->stride * sizeof *to);
    }
    multiply(
        model, thread, &model->head, head_input(model, thread, 0), model->stride, model->logits,
        model->head.vectors * LANES, 0, model->num_outputs);
    barrier(model, thread);
}

/* --- counts and copies: see model/ngrams.py ----------------------------------------------------------------------- */

static void apply(const SmallLayer *layer, const float *x, float *outputs) {
    for (int i = 0; i < layer->wide; i += LANES) {
        Lanes total = load(layer->weights + (int64_t)layer->inputs * layer->wide + i);
        for (int k = 0; k < layer->inputs; k++) total += load(layer->weights + (int64_t)k * layer->wide + i) * x[k];
        store(outputs + i, total);
    }
}

static void softmax(float *x, int count, int wide) { /* `wide`: count in whole lanes */
    for (int i = count; i < wide; i++) x[i] = -INFINITY;
    Lanes most = all(-INFINITY), total = all(0);
    for (int i = 0; i < wide; i += LANES) most = larger(most, load(x + i));
    float highest = largest(most);
    for (int i = count; i < wide; i++) x[i] = highest - 100;
    for (int i = 0; i < wide; i += LANES) {
        Lanes value = exponential(load(x + i) - highest);
        total += value;
        store(x + i, value);
    }
    float share = 1 / sum(total);
    for (int i = 0; i < wide; i += LANES) store(x + i, load(x + i) * share);
}

INLINE int32_t token_of(const NGrams *ngrams, int entry) {
    return ngrams->is_wide ? ((const int16_t *)ngrams->tokens)[entry] : ngrams->tokens[entry];
}

/* Return the first entry of a context; of the number of contexts, the number of entries. */
static int start_of(const NGrams *ngrams, int context) {
    if (!ngrams->is_first) return ngrams->starts[context];
    if (context == ngrams->count) return ngrams->starts[(context + 63) / 64];
    const int start = ngrams->starts[context / 64];
    int left = context % 64, at = start / 64;
    uint64_t word = ngrams->is_first[at] & ~(uint64_t)0 << start % 64;
    for (int found; (found = __builtin_popcountll(word)) <= left; word = ngrams->is_first[++at]) left -= found;
    for (; left; left--) word &= word - 1;
    return at * 64 + __builtin_ctzll(word);
}

/* Return the end of the entries of a context that begin at `start`. */
static int end_of(const NGrams *ngrams, int context, int start) {
    if (!ngrams->is_first || context + 1 == ngrams->count) return start_of(ngrams, context + 1);
    int at = (start + 1) / 64;
    uint64_t word = ngrams->is_first[at] & ~(uint64_t)0 << (start + 1) % 64;
    while (!word) word = ngrams->is_first[++at];
    return at * 64 + __builtin_ctzll(word);
}

/* Return the context that an entry makes: its own with its token at the end; −1: none. */
static int made_by(const NGrams *ngrams, int entry) {
    const uint64_t word = ngrams->is_context[entry / 64], bit = (uint64_t)1 << entry % 64;
    return word & bit ? ngrams->contexts_before[entry / 64] + __builtin_popcountll(word & (bit - 1)) + 1 : -1;
}

/* Return the context that a token makes with one before it; −1: not counted. */
static int next_context(const NGrams *ngrams, int context, int32_t token) {
    int low = start_of(ngrams, context), count = end_of(ngrams, context, low) - low;
    for (int half; count > 1; count -= half) { /* without branches: which way to go cannot be predicted */
        half = count / 2;
        low += token_of(ngrams, low + half - 1) < token ? half : 0;
    }
    return count && token_of(ngrams, low) == token ? made_by(ngrams, low) : -1;
}

/* Find the context in the training text of the last `length` of some ids; −1: not counted. */
static int find_context(const NGrams *ngrams, const int32_t *ids, int count, int length) {
    int context = 0;
    for (int i = count - length; i < count && context >= 0; i++) context = next_context(ngrams, context, ids[i]);
    return context;
}

/* Return the count of an entry. Those of a context are read one after the other; `large`: the index of the next large one,
   −1: not known yet. */
INLINE float read_count(const NGrams *ngrams, int entry, int *large) {
    if (ngrams->counts[entry] < LARGE_COUNT) return ngrams->counts[entry];
    if (*large < 0) {
        int low = 0, high = ngrams->large_count;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (ngrams->large_entries[middle] < entry) low = middle + 1;
            else high = middle;
        }
        *large = low;
    }
    return (float)ngrams->large[(*large)++];
}

static Summary summarize(const NGrams *ngrams, int context) {
    Summary summary = {.guess = {0, -1}};
    int different = 0, large = -1;
    float most = 0;
    const int start = start_of(ngrams, context), end = end_of(ngrams, context, start);
    for (int entry = start; entry < end; entry++) {
        const float count = read_count(ngrams, entry, &large);
        if (count > most) {
            most = count;
            summary.guess.token = token_of(ngrams, entry);
        }
        summary.total += count;
        different += count > 0;
    }
    summary.variety = (float)portable_log1p(different);
    if (different) summary.guess.kind = kind_of_fraction(most / summary.total);
    return summary;
}

static Summary summary_of(const NGrams *ngrams, int context) {
    return ngrams->summaries ? ngrams->summaries[context] : summarize(ngrams, context);
}

/* Guess the most frequent follower of the longest context counted. */
static Guess guess_by_counts(const Model *model, const int32_t *ids, int count) {
    const int longest = model->config.ngram_order - 1;
    for (int length = count < longest ? count : longest; length > 1; length--) {
        const int context = find_context(&model->ngrams, ids, count, length);
        if (context >= 0) return summary_of(&model->ngrams, context).guess;
    }
    return (Guess){0, -1};
}

/* What followed the newest earlier occurrences of a position's contexts, the newest first. */
typedef struct {
    int found[NUM_CONTEXT_LENGTHS];
    int32_t tokens[NUM_CONTEXT_LENGTHS][MAX_RECENT];
} Recent;

static void find_recent(const int32_t *ids, int position, Recent *recent) {
    int searched = NUM_CONTEXT_LENGTHS;
    memset(recent->found, 0, sizeof recent->found);
    for (int slot = position - 1; slot >= 0 && searched; slot--) {
        if (ids[slot] != ids[position]) continue;
        int length = 1;
        while (length < LONGEST_CONTEXT && length <= slot && ids[slot - length] == ids[position - length]) length++;
        for (int k = 0; k < NUM_CONTEXT_LENGTHS && context_lengths[k] <= length; k++) {
            if (recent->found[k] == MAX_RECENT) continue;
            recent->tokens[k][recent->found[k]++] = ids[slot + 1];
            searched -= recent->found[k] == MAX_RECENT;
        }
    }
}

static int count_different(const int32_t *tokens, int count) {
    int different = 0;
    for (int i = 0; i < count; i++) {
        int known = 0;
        while (tokens[known] != tokens[i]) known++;
        different += known == i;
    }
    return different;
}

static void scale(float *x, int count, float factor) {
    for (int i = 0; i < count; i++) x[i] *= factor;
}

/* Mix counts of the training text and of the context into the logits of an output. */
static void mix(Model *model, int thread, int output) {
    const NGrams *ngrams = &model->ngrams;
    const Row *row = &model->row[model->output_row[output]];
    const int32_t *ids = row->sequence->ids;
    const int vocab_size = model->config.vocab_size, wide = model->head.vectors * LANES;
    const int order = model->config.ngram_order, levels = order + NUM_CONTEXT_LENGTHS;
    int contexts[MAX_ORDER]; /* that end at the position, by their length; −1: not counted */
    Recent recent;
    float totals[MAX_LEVELS] = {0}, varieties[MAX_LEVELS] = {0}, evidence[2 * MAX_LEVELS];
    float weights[MAX_LEVELS + LANES] __attribute__((aligned(64)));
    float corrections[MAX_LEVELS + LANES] __attribute__((aligned(64)));
    float gates[EVIDENCE_WIDTH + LANES] __attribute__((aligned(64)));
    find_recent(ids, row->position, &recent);
    for (int i = 0; i < order; i++) {
        contexts[i] = i <= row->position + 1 ? find_context(ngrams, ids, row->position + 1, i) : -1;
        if (contexts[i] < 0) continue;
        const Summary summary = summary_of(ngrams, contexts[i]);
        totals[i] = summary.total;
        varieties[i] = summary.variety;
    }
    for (int k = 0; k < NUM_CONTEXT_LENGTHS; k++) {
        for (int i = 0; i < recent.found[k]; i++) totals[order + k] += ngrams->recency[k * MAX_RECENT + i];
        varieties[order + k] = (float)portable_log1p(count_different(recent.tokens[k], recent.found[k]));
    }
    for (int i = 0; i < levels; i++) {
        evidence[i] = (float)portable_log1p(totals[i]);
        evidence[levels + i] = varieties[i];
    }
    apply(&ngrams->weighing, head_input(model, thread, output), weights);
    apply(&ngrams->evidence, evidence, gates);
    for (int i = 0; i < EVIDENCE_WIDTH; i++) gates[i] = fmaxf(gates[i], 0);
    apply(&ngrams->correction, gates, corrections);

    float counted[wide];
    for (int token = 0; token < vocab_size; token++) counted[token] = 1.0f / vocab_size;
    for (int i = 0; i < levels; i++) {
        if (i < order ? contexts[i] < 0 : !recent.found[i - order]) continue; /* all is left to the shorter context */
        const float strength = weights[i] + ngrams->variety[i] * varieties[i] + corrections[i];
        const float alpha = (float)portable_exp(fminf(fmaxf(strength, -30), 30)), share = 1 / (totals[i] + alpha);
        scale(counted, vocab_size, alpha * share);
        if (i < order) {
            const int start = start_of(ngrams, contexts[i]), end = end_of(ngrams, contexts[i], start);
            int large = -1;
            for (int entry = start; entry < end; entry++)
                counted[token_of(ngrams, entry)] += read_count(ngrams, entry, &large) * share;
        } else {
            const int k = i - order;
            for (int j = 0; j < recent.found[k]; j++)
                counted[recent.tokens[k][j]] += ngrams->recency[k * MAX_RECENT + j] * share;
        }
    }
    float *predicted = model->logits + (int64_t)output * wide;
    softmax(predicted, vocab_size, wide);
    const float of_layers = 1 / (1 + (float)portable_exp(-(weights[levels] + corrections[levels])));
    for (int token = 0; token < vocab_size; token++) {
        const float mixed = counted[token] + of_layers * (predicted[token] - counted[token]);
        predicted[token] = (float)portable_log(fmaxf(mixed, 1e-12f));
    }
}

/* --- a pass ------------------------------------------------------------------------------------------------------- */

static void sample_tokens(Model *model, int thread, Job *job);

static void run_pass(Model *model, int thread) {
    const int parts = model->jobs ? model->job_count : model->config.ngram_order ? model->num_outputs : 0;
    run_layers(model, thread);
    for (int i = thread; i < parts; i += model->threads)
        if (model->jobs == NULL) mix(model, thread, i);
        else if (model->jobs[i].output >= 0) sample_tokens(model, thread, &model->jobs[i]);
    if (parts > 1) barrier(model, thread); /* else thread 0 did everything, and others wait for it next */
}

static void *run_worker(void *argument) {
    void **start = argument;
    Model *model = start[0];
    int thread = (int)(intptr_t)start[1];
    free(argument);
    uint64_t seen = 0;
    for (;;) {
        pthread_mutex_lock(&model->lock);
        while (model->calls == seen && !model->is_ending) pthread_cond_wait(&model->work_available, &model->lock);
        seen = model->calls;
        const int is_ending = model->is_ending, takes_part = thread < model->threads;
        pthread_mutex_unlock(&model->lock);
        if (is_ending) return NULL;
        if (!takes_part) continue;
        for (;;) {
            barrier(model, thread);
            if (model->rows == 0) break;
            run_pass(model, thread);
        }
        barrier(model, thread); /* until each has seen the end */
    }
}

static void begin_call(Model *model, int threads) {
    const int most = model->started + 1;
    pthread_mutex_lock(&model->lock);
    model->threads = threads < most ? threads : most;
    const uint32_t turn = atomic_load(&model->arrivals[0].turn);
    for (int i = 1; i < most; i++) atomic_store(&model->arrivals[i].turn, turn); /* threads that sat out earlier calls */
    model->calls++;
    if (model->threads > 1) pthread_cond_broadcast(&model->work_available);
    pthread_mutex_unlock(&model->lock);
}

static void begin_pass(Model *model) { model->rows = model->runs = model->num_outputs = 0; }

static void end_call(Model *model) {
    begin_pass(model);
    barrier(model, 0);
    barrier(model, 0);
}

/* Fill the tables of rotary positions from `first` up to `end`: those of a long context may never be needed. */
static void turn_positions(Model *model, int first, int end) {
    const int half = model->config.rotary_width / 2;
    if (IS_SPARING) model->turned = first;
    for (; model->turned < end; model->turned++)
        for (int k = 0; k < half; k++) {
            const int64_t at = turned_slot(model->turned) * half + k;
            double sine, cosine;
            portable_sine_cosine((float)(model->turned * model->frequencies[k]), &sine, &cosine);
            model->sine[at] = (float)sine;
            model->cosine[at] = (float)cosine;
        }
}

/* Add tokens of a sequence, which its ids hold already, to the pass. */
static void add_rows(Model *model, Sequence *sequence, int position, int count) {
    if (model->config.position == ROTARY) turn_positions(model, position, position + count);
    model->run[model->runs++] = (Run){sequence, model->rows, count};
    for (int i = 0; i < count; i++) model->row[model->rows++] = (Row){sequence, position + i};
}

static void forward(Model *model) {
    model->read += model->rows;
    embed(model);
    barrier(model, 0);
    run_pass(model, 0);
}

static int is_finite(const float *x, int count) { /* 0 times NaN or infinity is NaN */
    Lanes total = all(0);
    float rest = 0;
    int i = 0;
    for (; i + LANES <= count; i += LANES) total += load(x + i) * 0.0f;
    for (; i < count; i++) rest += x[i] * 0.0f;
    return sum(total) + rest == 0;
}

static float highest_of(const float *x, int count) {
    Lanes most = all(-INFINITY);
    int i = 0;
    for (; i + LANES <= count; i += LANES) most = larger(most, load(x + i));
    float highest = largest(most);
    for (; i < count; i++) highest = x[i] > highest ? x[i] : highest;
    return highest;
}

static float log_of_sum(const float *x, int count) {
    const float highest = highest_of(x, count);
    Lanes total = all(0);
    float rest = 0;
    int i = 0;
    for (; i + LANES <= count; i += LANES) total += exponential(load(x + i) - highest);
    for (; i < count; i++) rest += (float)portable_exp(x[i] - highest);
    return highest + (float)portable_log(sum(total) + rest);
}

/* --- from logits to a token: the rules of generate/sampling.py ------------------------------------------------------ */

typedef struct {
    float logit, share;
    int32_t id;
} Candidate;

static int is_likelier(const Candidate *a, const Candidate *b) {
    return a->logit != b->logit ? a->logit > b->logit : a->id < b->id;
}

static void swap(Candidate *a, Candidate *b) {
    Candidate kept = *a;
    *a = *b;
    *b = kept;
}

/* Map the bits of floats to integers of the same order. */
INLINE Integers in_order(Integers bits) { return bits ^ ((bits >> 31) & 0x7FFFFFFF); }

/* Return the k-th largest number, found bit by bit from the highest. */
static float select_largest(const float *x, int count, int k) {
    uint32_t found = 0;
    for (uint32_t bit = 0x80000000; bit; bit >>= 1) {
        const int32_t least = (int32_t)((found | bit) ^ 0x80000000);
        Integers minus = {0};
        int at_least = 0, i = 0;
        for (; i + LANES <= count; i += LANES) minus += in_order((Integers)load(x + i)) >= least;
        for (int lane = 0; lane < LANES; lane++) at_least -= minus[lane];
        for (; i < count; i++) at_least += in_order((Integers)all(x[i]))[0] >= least;
        if (at_least >= k) found |= bit;
    }
    return ((Lanes)in_order((Integers){0} + (int32_t)(found ^ 0x80000000)))[0];
}

/* Move the likeliest candidates that together reach a probability to the front, and return their number. As in quickselect,
   only the part that contains the boundary is sorted any further. */
static int gather_likeliest(Candidate *candidates, int count, double share) {
    int low = 0, high = count; /* those before `low` are chosen, those from `high` on are not */
    double before = 0;
    while (low < high) {
        double likelier = before;
        int split = low;
        swap(&candidates[(low + high) / 2], &candidates[high - 1]);
        for (int i = low; i < high - 1; i++)
            if (is_likelier(&candidates[i], &candidates[high - 1])) {
                likelier += candidates[i].share;
                swap(&candidates[i], &candidates[split++]);
            }
        swap(&candidates[split], &candidates[high - 1]);
        if (likelier >= share) high = split;
        else {
            before = likelier + candidates[split].share;
            low = split + 1;
        }
    }
    return low;
}

static void cut_top_p(float *logits, int count, float highest, double top_p) {
    const double total = portable_exp(log_of_sum(logits, count) - highest);
    const float least = highest + (float)portable_log((1 - top_p) / count * total); /* less likely ones cannot be needed */
    int found = 0;
    for (int id = 0; id < count; id++) found += logits[id] >= least;
    Candidate *candidates = malloc((size_t)found * sizeof *candidates);
    if (candidates == NULL) return;
    found = 0;
    for (int id = 0; id < count; id++)
        if (logits[id] >= least) {
            candidates[found++] = (Candidate){logits[id], (float)portable_exp(logits[id] - highest), id};
        } else logits[id] = -INFINITY;
    for (int i = gather_likeliest(candidates, found, top_p * total); i < found; i++)
        logits[candidates[i].id] = -INFINITY;
    free(candidates);
}

/* Change logits by the settings: −∞ where a token is cut. `used` is read for a repetition penalty only; `biases` may be
   NULL. */
static void filter(float *logits, int count, const Sampling *sampling, const uint8_t *used, const float *biases) {
    if (sampling->repetition_penalty != 1)
        for (int id = 0; id < count; id++)
            if (used[id]) {
                float penalty = (float)sampling->repetition_penalty;
                const float penalized = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
                logits[id] = fminf(fmaxf(penalized, -FLT_MAX), FLT_MAX);
            }
    if (biases)
        for (int id = 0; id < count; id++) logits[id] += biases[id];
    if (is_greedy(sampling)) return;
    const float temperature = (float)sampling->temperature, undivided = highest_of(logits, count);
    float highest = undivided / temperature;
    if (!is_finite(&highest, 1)) { /* only differences count */
        for (int id = 0; id < count; id++) logits[id] -= undivided;
        highest = 0;
    }
    for (int id = 0; id < count; id++) logits[id] /= temperature;
    if (sampling->top_k > 0 && sampling->top_k < count) {
        float least = select_largest(logits, count, (int)sampling->top_k);
        for (int id = 0; id < count; id++)
            if (logits[id] < least) logits[id] = -INFINITY;
    }
    if (sampling->top_p < 1) cut_top_p(logits, count, highest, sampling->top_p);
    if (sampling->min_p > 0) {
        float least = highest + (float)portable_log((float)sampling->min_p);
        for (int id = 0; id < count; id++)
            if (logits[id] < least) logits[id] = -INFINITY;
    }
}

static uint64_t stir(uint64_t x) { /* SplitMix64: see generate/engine.py */
    x += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
}

static int choose(const float *logits, int count, const Sampling *sampling, uint64_t position) {
    const float highest = highest_of(logits, count);
    if (is_greedy(sampling)) {
        int best = 0;
        while (best < count - 1 && logits[best] != highest) best++;
        return best;
    }
    float shares[count];
    double total = 0, reached = 0;
    int id = 0, last = 0;
    for (; id + LANES <= count; id += LANES) {
        Lanes block = exponential(load(logits + id) - highest);
        store(shares + id, block);
        total += sum(block);
    }
    for (; id < count; id++) total += shares[id] = (float)portable_exp(logits[id] - highest);
    const double uniform = (double)(stir(stir(stir(sampling->seed) ^ sampling->prompt_index) ^ position) >> 11) * 0x1p-53;
    for (id = 0; id < count; id++) {
        if (!(logits[id] > -INFINITY)) continue;
        last = id;
        reached += shares[id];
        if (reached > uniform * total) break;
    }
    return last;
}

static int comes_before(const float *logits, int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
}

/* Move the id at an index of a heap down to its place: each id comes before its parent. */
static void sink(const float *logits, int32_t *heap, int count, int index) {
    const int32_t id = heap[index];
    for (int child = 2 * index + 1; child < count; child = 2 * index + 1) {
        if (child + 1 < count && comes_before(logits, heap[child], heap[child + 1])) child++;
        if (!comes_before(logits, id, heap[child])) break;
        heap[index] = heap[child];
        index = child;
    }
    heap[index] = id;
}

/* Write the `wanted` likeliest ids and their logits, the likeliest first; of equal ones, the lowest ids. This is heapsort,
   since all ids of a large vocabulary may be wanted. */
static void find_top(const float *logits, int count, int wanted, int32_t *ids, float *values) {
    for (int id = 0; id < wanted; id++) ids[id] = id;
    for (int index = wanted / 2 - 1; index >= 0; index--) sink(logits, ids, wanted, index);
    for (int id = wanted; id < count; id++) {
        if (!comes_before(logits, id, ids[0])) continue;
        ids[0] = id;
        sink(logits, ids, wanted, 0);
    }
    for (int rank = wanted - 1; rank > 0; rank--) {
        const int32_t last = ids[0];
        ids[0] = ids[rank];
        sink(logits, ids, rank, 0);
        ids[rank] = last;
    }
    for (int rank = 0; rank < wanted; rank++) values[rank] = logits[ids[rank]];
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

enum { NOT_FINITE = -1, UNKNOWN_TOKEN = -2, NO_MEMORY = -3 };

static int common_prefix(const int32_t *a, const int32_t *b, int count) {
    int same = 0;
    while (same < count && a[same] == b[same]) same++;
    return same;
}

/* Set an id of a sequence. If it changes, the cache is valid only up to it. */
static void set_id(Sequence *sequence, int position, int32_t id) {
    if (position < sequence->cached && sequence->ids[position] == id) return;
    sequence->ids[position] = id;
    if (sequence->cached > position) sequence->cached = position;
}

static void copy_cache(const Model *model, Sequence *to, const Sequence *from, int count) {
    const int64_t step = model->head_step, used = (count + LANES - 1) / LANES * model->block_step;
    if (CACHE_STEP) memcpy(to->cache, from->cache, (size_t)used * sizeof *to->cache);
    else for (int head = 0; head < model->config.n_kv_head; head++)
        memcpy(to->cache + head * step, from->cache + head * step, (size_t)used * sizeof *to->cache);
    to->cached = count;
}

static int ids_are_valid(const Model *model, const int32_t *ids, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= model->config.vocab_size) return 0;
    return count > 0;
}

static int have_same_source(const Sequence *a, const Sequence *b) {
    return a->source_count == b->source_count &&
           (a->source_count == 0 || memcmp(a->source, b->source, (size_t)a->source_count * sizeof *a->source) == 0);
}

/* Set up a job. A prefix shared with a sequence in the cache is copied from there, and one shared with an earlier job is
   computed once. */
static void begin_job(Model *model, Job *jobs, int index) {
    Job *job = &jobs[index];
    const Request *request = job->request;
    const int32_t *ids = request->ids + request->first;
    Sequence *sequence = job->sequence = request->sequence, *donor = NULL;
    const int count = job->count = (int)(request->count - request->first);
    int cached = common_prefix(sequence->ids, ids, sequence->cached < count ? sequence->cached : count);
    for (Sequence *other = model->sequences; other && cached < count - 1; other = other->next) {
        if (!have_same_source(other, sequence)) continue;
        int shared = common_prefix(other->ids, ids, other->cached < count ? other->cached : count);
        if (shared > cached) cached = shared, donor = other;
    }
    if (donor) {
        copy_cache(model, sequence, donor, cached);
        memcpy(sequence->ids, ids, (size_t)cached * sizeof *ids);
    }
    for (int position = cached; position < count; position++) {
        set_id(sequence, position, ids[position]);
        record_token(&model->drafting, sequence->ids, position + 1);
    }
    job->num_read = cached < count ? cached : count - 1; /* the last one is read again, for its logits */
    job->leader = NULL;
    job->shared = job->num_read;
    for (int i = 0; i < index && job->num_read < count - 1; i++) {
        if (jobs[i].is_done || !have_same_source(jobs[i].sequence, sequence)) continue;
        int shared = common_prefix(jobs[i].sequence->ids, ids, jobs[i].count < count ? jobs[i].count : count - 1);
        if (shared > job->shared) job->shared = shared, job->leader = jobs[i].sequence;
    }
    job->is_done = request->max_tokens <= 0;
    if (request->sampling.repetition_penalty != 1) {
        memset(sequence->used, 0, (size_t)model->config.vocab_size);
        for (int64_t i = 0; i < request->count; i++) sequence->used[request->ids[i]] = 1;
    }
}

/* Guess how a job continues, and append as many guesses as are worth checking. */
static void propose_drafts(Model *model, Job *job, int rows, double *tokens) {
    Sequence *sequence = job->sequence;
    const int64_t left = job->request->max_tokens - job->request->num_generated - 1;
    int most = model->config.context_length - job->count;
    if (most > left) most = (int)left;
    if (most > MAX_DRAFTS) most = MAX_DRAFTS;
    if (most > MAX_ROWS - rows) most = MAX_ROWS - rows;
    if (model->drafting.mode == NEVER || (model->drafting.mode == AUTO && !model->drafting.is_drafting)) return;
    const int could_gain = can_gain(&model->drafting, most, rows, *tokens);
    double chance = 1;
    for (int i = 0; i < most && chance >= MIN_CHANCE; i++) {
        Guess best = guess(&model->drafting, sequence->ids, job->count + i);
        if (model->config.ngram_order) {
            Guess other = guess_by_counts(model, sequence->ids, job->count + i);
            const float *accuracy = model->drafting.accuracy;
            if (other.kind >= 0 && (best.kind < 0 || accuracy[other.kind] > accuracy[best.kind])) best = other;
        }
        if (best.kind < 0) break;
        job->guesses[job->guessed++] = best;
        set_id(sequence, job->count + i, best.token);
        if (!could_gain) break; /* guess one token anyway, to measure accuracy */
        if (model->drafting.mode != ALWAYS) chance *= model->drafting.accuracy[best.kind];
    }
    job->drafts = count_worthwhile(&model->drafting, job->guesses, job->guessed, rows, tokens);
    model->drafting.proposed += job->drafts;
}

/* Fill a pass with the tokens to be read next, the first jobs first. */
static void plan_pass(Model *model, Job *jobs, int count) {
    int rows = 0, outputs = 0;
    begin_pass(model);
    for (int i = 0; i < count; i++) {
        Job *job = &jobs[i];
        job->rows = job->drafts = job->num_sampled = job->guessed = 0;
        job->output = -1;
        if (job->is_done || rows == MAX_ROWS) continue;
        if (job->leader) {
            if (job->leader->cached < job->shared) continue;
            copy_cache(model, job->sequence, job->leader, job->shared);
            job->num_read = job->shared;
            job->leader = NULL;
        }
        const int waiting = job->count - job->num_read, room = MAX_ROWS - rows;
        job->rows = waiting < room ? waiting : room;
        rows += job->rows;
        job->output = job->rows < waiting ? -1 : 0;
        outputs += job->output + 1;
    }
    double tokens = outputs;
    for (int i = 0; i < count; i++) {
        Job *job = &jobs[i];
        if (job->rows == 0) continue;
        if (job->output >= 0 && model->jobs) propose_drafts(model, job, rows, &tokens);
        add_rows(model, job->sequence, job->num_read, job->rows + job->drafts);
        rows += job->drafts;
        if (job->output < 0) continue;
        job->output = model->num_outputs;
        for (int row = model->rows - job->drafts - 1; row < model->rows; row++) model->output_row[model->num_outputs++] = row;
    }
}

static int is_end(const Request *request, int32_t id) {
    for (int64_t i = 0; i < request->end_count; i++)
        if (request->ends[i] == id) return 1;
    return 0;
}

/* Sample the next token of a job from the logits of an output. */
static int32_t sample_token(Model *model, int thread, Job *job, int output) {
    const int vocab_size = model->config.vocab_size;
    Request *request = job->request;
    if (model->config.ngram_order) mix(model, thread, output);
    float *logits = model->logits + (int64_t)output * model->head.vectors * LANES;
    if (!is_finite(logits, vocab_size)) {
        atomic_store(&model->not_finite, 1);
        return -1;
    }
    const float total = log_of_sum(logits, vocab_size);
    const int64_t num_generated = request->num_generated++, first = num_generated * model->num_top;
    if (model->num_top) {
        find_top(
            logits, vocab_size, model->num_top, request->top_ids + first, request->top_logprobs + first);
        for (int i = 0; i < model->num_top; i++) request->top_logprobs[first + i] -= total;
    }
    float filtered[vocab_size];
    memcpy(filtered, logits, sizeof filtered);
    filter(filtered, vocab_size, &request->sampling, job->sequence->used, request->biases);
    const int32_t id = choose(filtered, vocab_size, &request->sampling, request->sampling.position + (uint64_t)num_generated);
    request->sampled[num_generated] = id;
    request->logprobs[num_generated] = logits[id] - total;
    job->sequence->used[id] = 1;
    job->is_done = request->num_generated == request->max_tokens || is_end(request, id) || job->count == model->config.context_length;
    return id;
}

/* Sample the next tokens of a job: one, and one more after each correct draft. */
static void sample_tokens(Model *model, int thread, Job *job) {
    for (int i = 0; i <= job->drafts; i++) {
        const int32_t id = sample_token(model, thread, job, job->output + i);
        if (id < 0) return;
        job->num_sampled++;
        if (job->is_done) return;
        set_id(job->sequence, job->count++, id);
        if (i == job->drafts || job->guesses[i].token != id) return;
    }
}

/* Account for what a pass has read and sampled. */
static void finish_pass(Model *model, Job *job) {
    if (job->output < 0) {
        job->num_read += job->rows;
    } else {
        const int32_t *sampled = job->request->sampled + job->request->num_generated - job->num_sampled;
        for (int i = 0; i < job->num_sampled && i < job->guessed; i++) {
            record_guess(&model->drafting, job->guesses[i], sampled[i] == job->guesses[i].token);
            if (i < job->drafts) model->drafting.accepted += sampled[i] == job->guesses[i].token;
        }
        const int last = job->is_done; /* then the last token was not appended */
        for (int i = job->num_sampled - last; i > 0; i--)
            record_token(&model->drafting, job->sequence->ids, job->count - i + 1);
        job->num_read = job->is_done ? job->count : job->count - 1;
    }
    if (job->sequence->cached < job->num_read) job->sequence->cached = job->num_read;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* --- what Python calls ---------------------------------------------------------------------------------------------- */

/* Extend each request until its end, its maximum or a full context; or until the time is over, even if nothing was
   generated yet. Return 0, NOT_FINITE or UNKNOWN_TOKEN. */
int native_extend(Model *model, Request *requests, int count, int num_top, double seconds, int threads) {
    const double end = now() + seconds;
    for (int i = 0; i < count; i++)
        if (!ids_are_valid(model, requests[i].ids, requests[i].count)) return UNKNOWN_TOKEN;
    Job jobs[count];
    for (int i = 0; i < count; i++) {
        jobs[i].request = &requests[i];
        requests[i].num_generated = 0;
        begin_job(model, jobs, i);
    }
    model->jobs = jobs;
    model->job_count = count;
    model->num_top = num_top;
    atomic_store(&model->not_finite, 0);
    begin_call(model, threads);
    for (double began = now(), time; began < end || model->rows == 0; began = time) {
        plan_pass(model, jobs, count);
        if (model->rows == 0) break;
        forward(model);
        if (atomic_load(&model->not_finite)) break;
        int num_sampled = 0;
        for (int i = 0; i < count; i++) {
            if (jobs[i].rows) finish_pass(model, &jobs[i]);
            num_sampled += jobs[i].num_sampled;
        }
        time = now();
        if (model->num_outputs == model->rows) record_pass(&model->drafting, model->rows, num_sampled, time - began);
    }
    end_call(model);
    model->jobs = NULL;
    return atomic_load(&model->not_finite) ? NOT_FINITE : 0;
}

/* Return the log-probability of each next token, and its probability of being sampled. Result as `native_extend`. */
int native_probabilities(Model *model, Request *request, float *logprobs, double *probabilities, int threads) {
    const int vocab_size = model->config.vocab_size;
    if (!ids_are_valid(model, request->ids, request->count)) return UNKNOWN_TOKEN;
    Job job = {.request = request};
    begin_job(model, &job, 0);
    job.is_done = 0;
    begin_call(model, threads);
    while (job.num_read < job.count) {
        plan_pass(model, &job, 1);
        forward(model);
        job.num_read += job.rows;
        if (job.sequence->cached < job.num_read) job.sequence->cached = job.num_read;
    }
    memcpy(logprobs, model->logits, (size_t)vocab_size * sizeof *logprobs);
    end_call(model);
    if (!is_finite(logprobs, vocab_size)) return NOT_FINITE;
    float filtered[vocab_size], total = log_of_sum(logprobs, vocab_size);
    memcpy(filtered, logprobs, sizeof filtered);
    filter(filtered, vocab_size, &request->sampling, job.sequence->used, request->biases);
    int best = choose(filtered, vocab_size, &(Sampling){0}, 0);
    double sum_of_probabilities = 0;
    for (int id = 0; id < vocab_size; id++) {
        logprobs[id] -= total;
        probabilities[id] = is_greedy(&request->sampling) ? id == best : portable_exp((double)filtered[id] - filtered[best]);
        sum_of_probabilities += probabilities[id];
    }
    for (int id = 0; id < vocab_size; id++) probabilities[id] /= sum_of_probabilities;
    return 0;
}

/* Return the entropy of a distribution in nats. */
static float entropy(const float *logits, int count) {
    float total = log_of_sum(logits, count), open = 0;
    for (int i = 0; i < count; i++) open -= (float)portable_exp(logits[i] - total) * (logits[i] - total);
    return open;
}

/* Return the log-probability of each id but the first, and the entropy of each prediction. Result as `native_extend`. */
int native_score(
    Model *model, Sequence *sequence, const int32_t *ids, int count, float *logprobs, float *entropies, int threads) {
    const int vocab_size = model->config.vocab_size, wide = model->head.vectors * LANES;
    int all_finite = 1;
    if (!ids_are_valid(model, ids, count)) return UNKNOWN_TOKEN;
    begin_call(model, threads);
    sequence->cached = 0;
    memcpy(sequence->ids, ids, (size_t)(count - 1) * sizeof *ids);
    for (int start = 0; start < count - 1 && all_finite; start += MAX_ROWS) {
        int rows = count - 1 - start < MAX_ROWS ? count - 1 - start : MAX_ROWS;
        begin_pass(model);
        add_rows(model, sequence, start, rows);
        while (model->num_outputs < rows) model->output_row[model->num_outputs] = model->num_outputs, model->num_outputs++;
        forward(model);
        const float *logits = model->logits;
        for (int row = 0; row < rows; row++, logits += wide) {
            all_finite = all_finite && is_finite(logits, vocab_size);
            logprobs[start + row] = logits[ids[start + row + 1]] - log_of_sum(logits, vocab_size);
            entropies[start + row] = entropy(logits, vocab_size);
        }
    }
    sequence->cached = count - 1;
    end_call(model);
    return all_finite ? 0 : NOT_FINITE;
}

/* Set when to draft: NEVER, AUTO or ALWAYS. */
void native_set_drafting(Model *model, int mode) { model->drafting.mode = mode; }

/* Return the numbers of rows read, drafts among them, and drafts accepted since the model was created. */
void native_count_work(const Model *model, int64_t *counts) {
    counts[0] = model->read;
    counts[1] = model->drafting.proposed;
    counts[2] = model->drafting.accepted;
}

/* Whether this processor has the instructions that this file was compiled for. */
int native_runs_here(void) {
#if defined(__AVX512VNNI__)
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
#elif defined(__AVX2__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#elif defined(__linux__) && defined(__ARM_FEATURE_DOTPROD)
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
    return 1;
#endif
}

void native_free_sequence(Model *model, Sequence *sequence) {
    if (sequence == NULL) return;
    for (Sequence **at = &model->sequences; *at; at = &(*at)->next)
        if (*at == sequence) {
            *at = sequence->next;
            break;
        }
    free(sequence->ids);
    if (sequence->mapped) munmap(sequence->cache, sequence->mapped);
    else free(sequence->cache);
    free(sequence->used);
    free(sequence->source);
    free(sequence->source_cache);
    free(sequence);
}

static size_t rounded_up(size_t count, size_t step) { return (count + step - 1) / step * step; }

/* Allocate memory in pages of 2 MB if the system has them: weights that do not fit into the caches are read up to twice as
   fast from there. */
static void *large_pages(size_t bytes) {
    const size_t whole = rounded_up(bytes, LARGE_PAGE);
    void *at = aligned_alloc(LARGE_PAGE, whole);
#ifdef MADV_HUGEPAGE
    if (at) madvise(at, whole, MADV_HUGEPAGE);
#endif
    return at;
}

static void *allocate(int64_t count, size_t size) { /* zeros, aligned to whole lanes */
    const size_t bytes = rounded_up((size_t)count * size, 64) + 64;
    void *at = bytes < LARGE_PAGE / 2 ? aligned_alloc(64, bytes) : large_pages(bytes);
    return at ? memset(at, 0, bytes) : NULL;
}

static void *map_zeros(size_t bytes) { /* takes memory only where it is written */
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Allocate zeros of which only the first may ever be used. `release` frees them. */
static void *reserve(size_t bytes) { return bytes < LARGE_RESERVE ? allocate(1, bytes) : map_zeros(bytes); }

static void release(void *at, size_t bytes) {
    if (at && bytes >= LARGE_RESERVE) munmap(at, bytes);
    else free(at);
}

/* Like `allocate`, for the weights of a share, one after the other. The unused end of the last chunk, the largest, takes no
   memory beyond the rest of a page. */
static void *allocate_weights(Model *model, int share, size_t size) {
    const size_t bytes = rounded_up(size, 64), header = rounded_up(sizeof(Chunk), 64);
    Chunk *chunk = model->chunks[share];
    if (chunk == NULL || chunk->size - chunk->used < bytes) {
        const size_t least = chunk && LEAST_CHUNK ? 2 * chunk->size : LEAST_CHUNK;
        const size_t whole = rounded_up(header + bytes > least ? header + bytes : least, LARGE_PAGE);
        chunk = large_pages(whole);
        if (chunk == NULL) return NULL;
        *chunk = (Chunk){model->chunks[share], header, whole};
        model->chunks[share] = chunk;
    }
    void *at = (char *)chunk + chunk->used;
    chunk->used += bytes;
    return memset(at, 0, bytes);
}

/* Like `allocate`, for the cache of a sequence. A large one takes memory only where it is written: a long context may never
   be used up. */
static void allocate_cache(Sequence *sequence, int64_t count) {
    const size_t bytes = (size_t)count * sizeof *sequence->cache;
    if (bytes < LARGE_CACHE) {
        sequence->cache = allocate(count, sizeof *sequence->cache);
        return;
    }
    void *at = map_zeros(bytes);
    if (at == NULL) return;
#ifdef MADV_HUGEPAGE
    madvise(at, bytes, MADV_HUGEPAGE);
#endif
    sequence->cache = at;
    sequence->mapped = bytes;
}

/* Let a cache have room for some tokens, or for the whole context if caches do not grow. Return where it is, or NULL if
   memory runs out: then it is where it was. */
static float *grow_cache(const Model *model, float *cache, int *room, int count) {
    const size_t of_token = (size_t)(model->config.n_kv_head * model->config.n_layer * model->block_size) / LANES * sizeof *cache;
    if (!CACHE_STEP) return cache ? cache : allocate(model->slots, of_token);
    if (count <= *room) return cache;
    const size_t slots = rounded_up((size_t)count, CACHE_STEP ? CACHE_STEP : 1);
    char *grown = realloc(cache, slots * of_token);
    if (grown == NULL) return NULL;
    memset(grown + *room * of_token, 0, (slots - *room) * of_token);
    *room = (int)slots;
    return (float *)grown;
}

/* Let a sequence have room for some tokens; return whether memory sufficed. */
int native_reserve(const Model *model, Sequence *sequence, int count) {
    if (!CACHE_STEP) return 1;
    float *cache = grow_cache(model, sequence->cache, &sequence->room, count);
    if (cache) sequence->cache = cache;
    return cache != NULL;
}

Sequence *native_new_sequence(Model *model) {
    const Config *config = &model->config;
    Sequence *sequence = calloc(1, sizeof *sequence);
    if (sequence == NULL) return NULL;
    sequence->ids = allocate(config->context_length, sizeof *sequence->ids);
    sequence->used = allocate(config->vocab_size, sizeof *sequence->used);
    if (CACHE_STEP) sequence->cache = grow_cache(model, NULL, &sequence->room, CACHE_STEP); /* the last: what follows is free */
    else allocate_cache(sequence, config->n_kv_head * model->head_step);
    if (!sequence->ids || !sequence->cache || !sequence->used) {
        native_free_sequence(model, sequence);
        return NULL;
    }
    sequence->next = model->sequences;
    return model->sequences = sequence;
}

/* --- from tensors to a model ---------------------------------------------------------------------------------------- */

/* Tensors come in the order of `_names` in native/engine.py; `failed`: one is missing or has the wrong size. */
typedef struct {
    const Tensor *next, *end;
    int failed;
} Reader;

static const Tensor *next_tensor(Reader *reader, int64_t count) { /* NULL: the model has none */
    if (reader->next == reader->end) {
        reader->failed = 1;
        return NULL;
    }
    const Tensor *tensor = reader->next++;
    if (tensor->kind == MISSING) return NULL;
    if (tensor->count != count) reader->failed = 1;
    return tensor->count == count ? tensor : NULL;
}

static float *read_numbers(Reader *reader, int64_t count) {
    const Tensor *tensor = next_tensor(reader, count);
    float *numbers = tensor ? allocate(count, sizeof *numbers) : NULL;
    if (tensor && !numbers) reader->failed = 1;
    for (int64_t i = 0; numbers && i < count; i++) numbers[i] = read_number(tensor, i);
    return numbers;
}

static float *read_needed(Reader *reader, int64_t count) {
    float *numbers = read_numbers(reader, count);
    if (numbers == NULL) reader->failed = 1;
    return numbers;
}

/* Read a table of embeddings: a large one as it is in the file or, where a matrix of that precision will hold the same
   numbers, not at all; `shared`: that precision, or MISSING. */
static Tensor read_table(Reader *reader, int64_t rows, int64_t width, int64_t shared) {
    const int64_t count = rows * width, groups = (width + GROUP - 1) / GROUP;
    const Tensor *tensor = next_tensor(reader, count), *other = reader->next;
    if (tensor == NULL) {
        reader->failed = 1;
        return (Tensor){.kind = F32};
    }
    const int is_number = tensor->kind == F32 || tensor->kind == BF16 || tensor->kind == F16 || tensor->kind == INT8;
    const int is_kept = is_number && count * (int64_t)sizeof(float) >= LARGE_TABLE;
    while (other < reader->end && other->data != tensor->data) other++;
    if (is_kept && other < reader->end && tensor->kind == shared) return (Tensor){.kind = tensor->kind};
    const int64_t kind = is_kept ? tensor->kind : F32, scales = kind == INT8 ? rows * groups * (int64_t)sizeof(float) : 0;
    const int64_t size = count * (kind == F32 ? 4 : kind == INT8 ? 1 : 2) + scales;
    void *copy = allocate(1, size);
    if (copy == NULL) reader->failed = 1;
    else if (is_kept) memcpy(copy, tensor->data, (size_t)size);
    for (int64_t group = 0; copy && !is_kept && group < rows * groups; group++) {
        const int64_t row = group / groups, first = group % groups * GROUP;
        const int columns = width - first < GROUP ? (int)(width - first) : GROUP;
        read_group(tensor, (int)width, row, (int)first, columns, (float *)copy + row * width + first);
    }
    return (Tensor){.data = copy, .kind = kind, .count = count};
}

/* In int8, the head of a small vocabulary is in f32: rounding it costs most of the accuracy, and it takes little time. */
static int head_precision(const Config *config) {
    return config->precision == INT8 && config->vocab_size <= SMALL_VOCABULARY ? F32 : config->precision;
}

static int columns_at_once(int precision) { return precision == INT8 ? 4 : precision == BF16 ? 2 : 1; }

/* Quantize a group of columns to steps up to ±127; return the step's size. */
static float quantize_weights(const float numbers[GROUP], int32_t steps[GROUP]) {
    Lanes most = all(0);
    for (int i = 0; i < GROUP; i += LANES) most = larger(most, larger(load(numbers + i), -load(numbers + i)));
    const float highest = largest(most), share = highest > 0 ? 127 / highest : 0;
    for (int i = 0; i < GROUP; i += LANES) *(Integers *)(steps + i) = to_steps(load(numbers + i), share);
    return is_finite(numbers, GROUP) ? highest / 127 : NAN; /* NaN reaches the logits, which are checked */
}

/* Store a group of columns in a row of a panel; beyond the matrix's end, zeros remain. */
static void store_group(
    const Matrix *matrix, const Panel *panel, int row, int first, int count, const float numbers[GROUP]) {
    const int wide = panel->count * LANES;
    const int64_t begin = (int64_t)first * wide;
    uint8_t *bytes = (uint8_t *)panel->weights + begin;
    uint16_t *halves = (uint16_t *)panel->weights + begin;
    float *whole = (float *)panel->weights + begin;
    int32_t steps[GROUP];
    switch (matrix->precision) {
    case INT8:
        ((float *)panel->weights)[((matrix->columns + 3) / 4 + first / GROUP) * wide + row] = quantize_weights(numbers, steps);
        for (int i = 0; i < count; i++) bytes[i / 4 * 4 * wide + row * 4 + i % 4] = (uint8_t)(steps[i] + 128);
        break;
    case BF16:
        for (int i = 0; i < count; i++) halves[i / 2 * 2 * wide + row * 2 + i % 2] = float_to_bf16(numbers[i]);
        break;
    default:
        for (int i = 0; i < count; i++) whole[i * wide + row] = numbers[i];
    }
}

/* Fill a panel with rows of a matrix's parts. One group of columns at a time stays in the nearest cache. */
static void fill_panel(const Matrix *matrix, const Panel *panel, const Tensor *const *tensors, const int *rows) {
    for (int first = 0; first < matrix->columns; first += GROUP) {
        const int count = first + GROUP < matrix->columns ? GROUP : matrix->columns - first;
        float numbers[GROUP] = {0};
        for (int at = 0; at < panel->count * LANES; at++) {
            int row = panel->first * LANES + at, part = 0;
            if (row >= matrix->rows) break;
            while (row >= rows[part]) row -= rows[part++];
            read_group(tensors[part], matrix->columns, row, first, count, numbers);
            store_group(matrix, panel, at, first, count, numbers);
        }
    }
}

/* Add panels for some vectors to a share, as few and as even as possible. */
static void add_panels(Model *model, Matrix *matrix, int share, int first, int end) {
    const size_t sizes[] = {[F32] = 4, [BF16] = 2, [INT8] = 1};
    const int at_once = columns_at_once(matrix->precision);
    const size_t wide = (matrix->columns + at_once - 1) / at_once * at_once * sizes[matrix->precision];
    const size_t groups = (matrix->columns + GROUP - 1) / GROUP;
    const size_t scales = matrix->precision == INT8 ? groups * sizeof(float) : 0;
    for (int count; first < end; first += count) {
        count = even_share(end - first, WIDEST);
        char *weights = allocate_weights(model, share, count * LANES * (wide + scales));
        matrix->panels[matrix->shares[share + 1]++] = (Panel){weights, first, count};
    }
}

/* Split a matrix into shares: each of its parts separately, whose rows fill whole vectors. */
static void split_matrix(Model *model, Matrix *matrix, int parts, const int *rows) {
    for (int share = 0; share < model->max_threads; share++) {
        matrix->shares[share + 1] = matrix->shares[share];
        for (int part = 0, before = 0, vectors; part < parts; part++, before += vectors) {
            vectors = (rows[part] + LANES - 1) / LANES;
            const int first = slice(vectors, share, model->max_threads), end = slice(vectors, share + 1, model->max_threads);
            add_panels(model, matrix, share, before + first, before + end);
        }
    }
}

/* Read a matrix whose rows are those of several tensors: all weights come first, then all biases. */
static void read_matrix(
    Reader *reader, Model *model, Matrix *matrix, int columns, int precision, int parts, const int *rows) {
    const Tensor *tensors[5];
    matrix->columns = columns;
    matrix->precision = precision;
    for (int part = 0; part < parts; part++) {
        matrix->rows += rows[part];
        tensors[part] = next_tensor(reader, (int64_t)rows[part] * columns);
        if (tensors[part] == NULL) reader->failed = 1;
    }
    matrix->vectors = (matrix->rows + LANES - 1) / LANES;
    matrix->panels = calloc((size_t)matrix->vectors, sizeof *matrix->panels);
    matrix->shares = calloc((size_t)model->max_threads + 1, sizeof *matrix->shares);
    if (!matrix->panels || !matrix->shares) reader->failed = 1;
    if (reader->failed) return;
    if (parts > 1 && has_whole_heads(model, parts > 3)) split_matrix(model, matrix, parts, rows);
    else split_matrix(model, matrix, 1, &matrix->rows);
    for (int i = 0; i < matrix->shares[model->max_threads]; i++)
        if (matrix->panels[i].weights) fill_panel(matrix, &matrix->panels[i], tensors, rows);
        else reader->failed = 1;
    for (int part = 0, first = 0; part < parts; first += rows[part++]) {
        const Tensor *tensor = next_tensor(reader, rows[part]);
        if (tensor && !matrix->bias) matrix->bias = allocate(matrix->vectors * LANES, sizeof *matrix->bias);
        for (int row = 0; tensor && matrix->bias && row < rows[part]; row++)
            matrix->bias[first + row] = read_number(tensor, row);
    }
}

static void read_norm(Reader *reader, Norm *norm, int width) {
    norm->width = width;
    norm->gain = read_numbers(reader, width);
    norm->bias = read_numbers(reader, width);
}

/* Read a small layer whose outputs come from up to two matrices, one after the other, each followed by its biases. */
static void read_small_layer(Reader *reader, SmallLayer *layer, int inputs, int first, int second, int has_bias) {
    const int outputs[2] = {first, second};
    layer->inputs = inputs;
    layer->wide = (first + second + LANES - 1) / LANES * LANES;
    layer->weights = allocate((int64_t)(inputs + 1) * layer->wide, sizeof *layer->weights);
    if (layer->weights == NULL) reader->failed = 1;
    for (int part = 0, before = 0; part < 2; before += outputs[part++]) {
        if (!outputs[part] || reader->failed) continue;
        float *weights = read_needed(reader, (int64_t)outputs[part] * inputs);
        float *biases = has_bias ? read_needed(reader, outputs[part]) : NULL;
        for (int i = 0; i < outputs[part] && !reader->failed; i++) {
            float *column = layer->weights + before + i;
            for (int k = 0; k < inputs; k++) column[(int64_t)k * layer->wide] = weights[(int64_t)i * inputs + k];
            if (has_bias) column[(int64_t)inputs * layer->wide] = biases[i];
        }
        free(weights);
        free(biases);
    }
}

static int bit_of(const Tensor *bits, int64_t index) { return ((const uint8_t *)bits->data)[index / 8] >> index % 8 & 1; }

/* Gaps between the ranks of entries, as store/packed_counts.py packs them. */
typedef struct {
    const Tensor *quotients, *remainders, *remainder_bits;
    int64_t quotient, remainder; /* the next bit of each */
} Gaps;

/* Return the next gap, of an entry at some level; −1: there is none. */
static int64_t read_gap(Gaps *gaps, int level) {
    const int64_t end = gaps->quotients->count * 8;
    const int low_bits = level < gaps->remainder_bits->count ? ((const uint8_t *)gaps->remainder_bits->data)[level] : MAX_LOW_BITS + 1;
    int64_t gap = 0;
    while (gaps->quotient < end && !bit_of(gaps->quotients, gaps->quotient)) gap++, gaps->quotient++;
    if (gaps->quotient++ == end || low_bits > MAX_LOW_BITS || gaps->remainder + low_bits > gaps->remainders->count * 8) return -1;
    gap <<= low_bits;
    for (int i = 0; i < low_bits; i++) gap |= (int64_t)bit_of(gaps->remainders, gaps->remainder++) << i;
    return gap;
}

static void read_ngrams(Reader *reader, const Config *config, NGrams *ngrams) {
    const int order = config->ngram_order, levels = order + NUM_CONTEXT_LENGTHS;
    if (order > MAX_ORDER) reader->failed = 1;
    read_small_layer(reader, &ngrams->weighing, config->d_model, levels, 1, 1);
    read_small_layer(reader, &ngrams->evidence, 2 * levels, EVIDENCE_WIDTH, 0, 1);
    read_small_layer(reader, &ngrams->correction, EVIDENCE_WIDTH, levels + 1, 0, 0);
    ngrams->variety = read_needed(reader, levels);
    ngrams->recency = read_needed(reader, NUM_CONTEXT_LENGTHS * MAX_RECENT);
    for (int i = 0; i < NUM_CONTEXT_LENGTHS * MAX_RECENT && !reader->failed; i++)
        ngrams->recency[i] = (float)portable_exp(fminf(fmaxf(ngrams->recency[i], -30), 30));
    if (reader->failed || reader->end - reader->next < 8) {
        reader->failed = 1;
        return;
    }
    /* as store/packed_counts.py packs them */
    Gaps gaps = {reader->next, reader->next + 1, reader->next + 2, 0, 0};
    reader->next += 3;
    const Tensor *quads = reader->next++, *others = reader->next++, *large = reader->next++, *is_first = reader->next++,
                 *is_context = reader->next++;
    reader->failed = gaps.quotients->kind != U8 || gaps.remainders->kind != U8 || gaps.remainder_bits->kind != U8 ||
                     quads->kind != U8 || others->kind != U8 || large->kind != I32 || is_first->kind != U8 || is_context->kind != U8;
    if (reader->failed) return;
    int64_t entries = 0;
    for (int64_t i = 0; i < gaps.quotients->count; i++) entries += __builtin_popcount(((const uint8_t *)gaps.quotients->data)[i]);
    const int64_t bytes = (entries + 7) / 8;
    reader->failed = entries > INT32_MAX / 2 || quads->count != (entries + 3) / 4 || is_first->count != bytes || is_context->count != bytes;
    if (reader->failed) return;
    int64_t count = 0, known = 1, context = -1, next_other = 0, next_large = 0, level_end = 0, rank = 0;
    int level = -1, suffix = 0, suffix_start = 0, suffix_end = 0;
    for (int64_t entry = 0; entry < entries; entry++) count += bit_of(is_first, entry);
    count = count ? count : 1; /* the empty context is there in any case */
    ngrams->count = (int)count;
    ngrams->large_count = (int)large->count;
    ngrams->is_wide = config->vocab_size > 256;
    ngrams->starts = allocate((IS_SPARING ? count / 64 + 1 : count) + 1, sizeof *ngrams->starts);
    if (IS_SPARING) ngrams->is_first = allocate(entries / 64 + 1, sizeof *ngrams->is_first);
    ngrams->tokens = allocate(entries, ngrams->is_wide ? sizeof(int16_t) : sizeof(uint8_t));
    ngrams->counts = allocate(entries, sizeof *ngrams->counts);
    ngrams->large = allocate(large->count, sizeof *ngrams->large);
    ngrams->large_entries = allocate(large->count, sizeof *ngrams->large_entries);
    ngrams->is_context = allocate(entries / 64 + 1, sizeof *ngrams->is_context);
    ngrams->contexts_before = allocate(entries / 64 + 1, sizeof *ngrams->contexts_before);
    if (!IS_SPARING) ngrams->summaries = allocate(count, sizeof *ngrams->summaries);
    int32_t *suffixes = allocate(count, sizeof *suffixes); /* the contexts without their first tokens */
    reader->failed = !ngrams->starts || !ngrams->tokens || !ngrams->counts || !ngrams->large || !ngrams->large_entries ||
                     !ngrams->is_context || !ngrams->contexts_before || !suffixes ||
                     (IS_SPARING ? !ngrams->is_first : !ngrams->summaries);
    if (IS_SPARING && !reader->failed) ngrams->is_first[0] = 1; /* of the empty context, also if it has no entries */
    for (int64_t entry = 0; entry < entries && !reader->failed; entry++) {
        int64_t times = ((const uint8_t *)quads->data)[entry / 4] >> entry % 4 * 2 & 3; /* 0: a byte says it */
        if (!times && next_other < others->count) times = read_integer(others, next_other++);
        else if (!times) reader->failed = 1;
        if (entry % 64 == 0) ngrams->contexts_before[entry / 64] = (int32_t)known - 1;
        const int begins = bit_of(is_first, entry);
        context += begins;
        reader->failed |= context < 0 || context >= known || context >= count;
        if (reader->failed) break;
        if (begins && !IS_SPARING) ngrams->starts[context] = (int32_t)entry;
        else if (begins && context % 64 == 0) ngrams->starts[context / 64] = (int32_t)entry;
        if (begins && IS_SPARING) ngrams->is_first[entry / 64] |= (uint64_t)1 << entry % 64;
        if (begins && context == level_end) {
            level++;
            level_end = known;
        }
        if (begins && level) { /* what it is followed by, its suffix is followed by, too */
            suffix = suffixes[context];
            suffix_start = start_of(ngrams, suffix);
            suffix_end = end_of(ngrams, suffix, suffix_start);
        }
        const int64_t gap = read_gap(&gaps, level);
        rank = begins ? gap : rank + 1 + gap;
        reader->failed |= gap < 0 || rank >= (level ? suffix_end - suffix_start : config->vocab_size);
        if (reader->failed) break;
        const int same = suffix_start + (int)rank; /* the entry of its suffix */
        const int64_t token = level ? token_of(ngrams, same) : rank;
        if (ngrams->is_wide) ((int16_t *)ngrams->tokens)[entry] = (int16_t)token;
        else ngrams->tokens[entry] = (uint8_t)token;
        ngrams->counts[entry] = (uint8_t)times;
        if (times == LARGE_COUNT && next_large < large->count) {
            ngrams->large[next_large] = (int32_t)read_integer(large, next_large);
            reader->failed |= ngrams->large[next_large] < 0;
            ngrams->large_entries[next_large++] = (int32_t)entry;
        } else if (times == LARGE_COUNT) reader->failed = 1;
        if (!bit_of(is_context, entry)) continue;
        ngrams->is_context[entry / 64] |= (uint64_t)1 << entry % 64;
        const int shorter = level ? made_by(ngrams, same) : 0;
        reader->failed |= known == count || shorter < 0;
        if (!reader->failed) suffixes[known++] = shorter;
    }
    free(suffixes);
    if (reader->failed || known != count || next_other != others->count || next_large != large->count ||
        context != (entries ? count - 1 : -1) || gaps.remainder_bits->count != level + 1 || gaps.remainders->count != (gaps.remainder + 7) / 8) {
        reader->failed = 1;
        return;
    }
    ngrams->starts[IS_SPARING ? (count + 63) / 64 : count] = (int32_t)entries;
    for (int i = 0; ngrams->summaries && i < count; i++) ngrams->summaries[i] = summarize(ngrams, i);
}

/* Return base^(−2k/width): angles are its products with positions, in f32, like `position_angles` of model/attention.py. */
static double frequency(int k, int width, double base) { return portable_exp(-2 * k * portable_log(base) / width); }

static void make_tables(Model *model, const Config *config, const float *divisors, Reader *reader) {
    const int half = config->rotary_width / 2, width = config->d_model;
    if (config->position == ROTARY) {
        model->table_size = (size_t)(IS_SPARING ? MAX_ROWS : config->context_length) * half * sizeof(float);
        model->cosine = reserve(model->table_size);
        model->sine = reserve(model->table_size);
        model->frequencies = allocate(half, sizeof *model->frequencies);
        if (!model->cosine || !model->sine || !model->frequencies) reader->failed = 1;
        for (int k = 0; k < half && !reader->failed; k++)
            model->frequencies[k] = frequency(k, config->rotary_width, config->rotary_base) / divisors[k];
    } else if (config->position == SINUSOIDAL) {
        model->positions = allocate((int64_t)config->context_length * width, sizeof *model->positions);
        if (!model->positions) reader->failed = 1;
        for (int position = 0; position < config->context_length && !reader->failed; position++)
            for (int i = 0; i < width; i++) {
                double sine, cosine;
                portable_sine_cosine((float)(position * frequency(i / 2, width, 10000)), &sine, &cosine);
                model->positions[(int64_t)position * width + i] = (float)(i % 2 ? cosine : sine);
            }
    }
}

static void read_cross_attention(Reader *reader, Model *model, Layer *layer) {
    const Config *config = &model->config;
    const int width = config->d_model, heads = config->n_head * model->d_head, keys = config->n_kv_head * model->d_head;
    read_norm(reader, &layer->before_cross_attention, width);
    read_matrix(reader, model, &layer->cross_query, width, config->precision, 1, &heads);
    read_matrix(reader, model, &layer->cross_key_value, width, config->precision, 2, (int[]){keys, keys});
    if (config->qk_norm) {
        read_norm(reader, &layer->of_cross_queries, model->d_head);
        read_norm(reader, &layer->of_cross_keys, model->d_head);
    }
    if (config->output_projection) read_matrix(reader, model, &layer->cross_output, heads, config->precision, 1, &width);
}

static void read_layers(Reader *reader, Model *model, const Config *config) {
    const int width = config->d_model, precision = config->precision;
    const int heads = config->n_head * model->d_head, keys = config->n_kv_head * model->d_head;
    for (int i = 0; i < config->n_layer && !reader->failed; i++) {
        Layer *layer = &model->layers[i];
        read_norm(reader, &layer->before_attention, width);
        const int parts = i == config->turn_layer ? 5 : 3; /* with gates and the score of no turn */
        read_matrix(
            reader, model, &layer->query_key_value, width, precision, parts, (int[]){heads, keys, keys, config->n_kv_head, 1});
        if (config->qk_norm) {
            read_norm(reader, &layer->of_queries, model->d_head);
            read_norm(reader, &layer->of_keys, model->d_head);
        }
        if (config->output_projection) read_matrix(reader, model, &layer->output, heads, precision, 1, &width);
        if (config->stack == DECODER) read_cross_attention(reader, model, layer);
        if (config->feed_forward == NO_FEED_FORWARD) continue;
        read_norm(reader, &layer->before_feed_forward, width);
        read_matrix(reader, model, &layer->up, width, precision, 1, &config->d_ff);
        if (config->feed_forward == SWIGLU)
            read_matrix(reader, model, &layer->gate, width, precision, 1, &config->d_ff);
        read_matrix(reader, model, &layer->down, config->d_ff, precision, 1, &width);
    }
}

static void free_norm(Norm *norm) {
    free(norm->gain);
    free(norm->bias);
}

static void free_matrix(Matrix *matrix) {
    free(matrix->panels);
    free(matrix->shares);
    free(matrix->bias);
}

void native_free_model(Model *model) {
    if (model == NULL) return;
    while (model->encoder && model->encoder->sequences) native_free_sequence(model->encoder, model->encoder->sequences);
    native_free_model(model->encoder);
    pthread_mutex_lock(&model->lock);
    model->is_ending = 1;
    pthread_cond_broadcast(&model->work_available);
    pthread_mutex_unlock(&model->lock);
    for (int i = 0; i < model->started; i++) pthread_join(model->workers[i], NULL);
    pthread_mutex_destroy(&model->lock);
    pthread_cond_destroy(&model->work_available);
    for (int i = 0; model->layers && i < model->config.n_layer; i++) {
        Layer *layer = &model->layers[i];
        for (Norm *norm = &layer->before_attention; norm <= &layer->of_cross_keys; norm++) free_norm(norm);
        for (Matrix *matrix = &layer->query_key_value; matrix <= &layer->down; matrix++) free_matrix(matrix);
    }
    for (int i = 0; model->earlier && i < model->config.previous_token_embeddings; i++) free((void *)model->earlier[i].data);
    for (int i = 0; model->quantized && i < model->max_threads; i++) {
        free(model->quantized[i].values);
        free(model->quantized[i].scales);
        free(model->quantized[i].offsets);
    }
    free_norm(&model->norm);
    free_matrix(&model->head);
    for (int i = 0; model->chunks && i < model->max_threads; i++)
        while (model->chunks[i]) {
            Chunk *before = model->chunks[i]->before;
            free(model->chunks[i]);
            model->chunks[i] = before;
        }
    release(model->cosine, model->table_size);
    release(model->sine, model->table_size);
    release(model->logits, model->logits_size);
    NGrams *ngrams = &model->ngrams;
    void *buffers[] = {
        ngrams->weighing.weights, ngrams->evidence.weights, ngrams->correction.weights, ngrams->variety, ngrams->recency,
        ngrams->starts, ngrams->is_first, ngrams->tokens, ngrams->counts, ngrams->large, ngrams->large_entries,
        ngrams->is_context, ngrams->contexts_before, ngrams->summaries, (void *)model->embedding.data,
        model->earlier, (void *)model->pairs.data, model->positions, model->frequencies, model->layers, model->x,
        model->qkv, model->attended, model->hidden, model->gated, model->head_inputs,
        model->quantized, model->workers, model->arrivals, model->chunks, model};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) free(buffers[i]);
}

static void allocate_buffers(Model *model, const Config *config, int threads, Reader *reader) {
    const int qkv = (config->n_head + 2 * config->n_kv_head) * model->d_head + config->n_kv_head + 1 + LANES;
    model->x = allocate((int64_t)MAX_ROWS * model->stride, sizeof(float));
    model->qkv = allocate((int64_t)MAX_ROWS * qkv, sizeof(float));
    model->attended = allocate((int64_t)MAX_ROWS * model->wide_heads, sizeof(float));
    model->hidden = allocate((int64_t)MAX_ROWS * (config->d_ff + LANES), sizeof(float));
    if (config->feed_forward == SWIGLU) model->gated = allocate((int64_t)MAX_ROWS * (config->d_ff + LANES), sizeof(float));
    model->head_inputs = allocate((int64_t)threads * MAX_ROWS * model->stride, sizeof(float));
    model->logits_size = config->stack == ENCODER ? 0 : (size_t)MAX_ROWS * (config->vocab_size + LANES) * sizeof(float);
    model->logits = reserve(model->logits_size);
    model->workers = calloc((size_t)threads, sizeof *model->workers);
    model->arrivals = allocate(threads, sizeof *model->arrivals);
    model->quantized = calloc((size_t)threads, sizeof *model->quantized);
    int64_t widest = config->d_model > config->d_ff ? config->d_model : config->d_ff;
    if (widest < model->wide_heads) widest = model->wide_heads;
    for (int i = 0; model->quantized && i < threads; i++) {
        Quantized *rows = &model->quantized[i];
        rows->values = allocate(MAX_ROWS * (widest + 4), sizeof *rows->values);
        rows->scales = allocate(MAX_ROWS * (widest / GROUP + 1), sizeof *rows->scales);
        rows->offsets = allocate(MAX_ROWS * (widest / GROUP + 1), sizeof *rows->offsets);
        if (!rows->values || !rows->scales || !rows->offsets) reader->failed = 1;
    }
    if (!model->quantized || !model->x || !model->qkv || !model->attended || !model->hidden ||
        (config->feed_forward == SWIGLU && !model->gated) || !model->head_inputs || !model->logits || !model->workers || !model->arrivals)
        reader->failed = 1;
}

/* Choose where keys and values are in a cache: those of a head together, for the thread that needs them; or, where a cache
   grows, those of a block together, [block][key/value head][layer]. */
static void choose_layout(Model *model) {
    const int64_t of_layers = model->config.n_layer * model->block_size;
    model->block_step = CACHE_STEP ? model->config.n_kv_head * of_layers : of_layers;
    model->head_step = CACHE_STEP ? of_layers : model->slots / LANES * of_layers;
}

/* Create a model that can use up to `threads` threads. The windows of the layers follow the configuration, and what
   the rotary frequencies are divided by. Return NULL if the tensors do not fit the configuration, or memory runs out. */
Model *native_new_model(const Config *config, const Tensor *tensors, int64_t count, int threads) {
    const int32_t *windows = (const int32_t *)(config + 1);
    const float *divisors = (const float *)(windows + config->n_layer);
    Reader reader = {tensors, tensors + count, 0};
    Model *model = calloc(1, sizeof *model);
    if (model == NULL) return NULL;
    const int64_t width = config->d_model, vocab_size = config->vocab_size;
    model->config = *config;
    model->threads = 1;
    begin_drafting(&model->drafting);
    pthread_mutex_init(&model->lock, NULL);
    pthread_cond_init(&model->work_available, NULL);
    model->d_head = config->d_head;
    model->wide_heads = (int)rounded_up((size_t)config->n_head * config->d_head, LANES);
    model->stride = (config->d_model + LANES - 1) / LANES * LANES;
    model->wide_head = (model->d_head + LANES - 1) / LANES * LANES;
    model->slots = (config->context_length + LANES - 1) / LANES * LANES;
    model->block_size = (int64_t)LANES * (model->d_head + model->wide_head);
    choose_layout(model);
    model->layers = calloc((size_t)config->n_layer + 1, sizeof *model->layers);
    model->earlier = calloc((size_t)config->previous_token_embeddings + 1, sizeof *model->earlier);
    model->chunks = calloc((size_t)threads, sizeof *model->chunks);
    model->max_threads = threads;
    if (!model->layers || !model->earlier || !model->chunks) reader.failed = 1;
    for (int i = 0; i < config->n_layer && model->layers; i++) model->layers[i].window = windows[i];
    model->embedding = read_table(&reader, vocab_size, width, head_precision(config));
    for (int i = 0; i < config->previous_token_embeddings && !reader.failed; i++)
        model->earlier[i] = read_table(&reader, vocab_size + 1, width, MISSING);
    if (config->bigram_embedding) model->pairs = read_table(&reader, (vocab_size + 1) * vocab_size, width, MISSING);
    if (config->position == LEARNED) model->positions = read_needed(&reader, config->context_length * width);
    make_tables(model, config, divisors, &reader);
    if (!reader.failed) read_layers(&reader, model, config);
    if (config->final_norm) read_norm(&reader, &model->norm, config->d_model);
    if (!reader.failed && config->stack != ENCODER)
        read_matrix(&reader, model, &model->head, config->d_model, head_precision(config), 1, &config->vocab_size);
    if (config->ngram_order && !reader.failed) read_ngrams(&reader, config, &model->ngrams);
    if (!reader.failed) allocate_buffers(model, config, threads, &reader);
    if (reader.failed || reader.next != reader.end) {
        native_free_model(model);
        return NULL;
    }
#ifdef __GLIBC__
    if (vocab_size * width * (int64_t)sizeof(float) >= LARGE_TABLE) malloc_trim(0); /* what reading a large vocabulary has left */
#endif
    for (; model->started < threads - 1; model->started++) {
        void **start = malloc(2 * sizeof *start);
        if (start == NULL) break;
        start[0] = model;
        start[1] = (void *)(intptr_t)(model->started + 1);
        if (pthread_create(&model->workers[model->started], NULL, run_worker, start) != 0) {
            free(start);
            break;
        }
    }
    return model;
}

/* --- the encoder ------------------------------------------------------------------------------------------------------ */

/* Give a model its encoder. Return whether the tensors fit the configuration, and memory sufficed. */
int native_add_encoder(Model *model, const Config *config, const Tensor *tensors, int64_t count) {
    model->encoder = native_new_model(config, tensors, count, 1);
    return model->encoder && native_new_sequence(model->encoder);
}

/* Begin a pass with rows of the encoder's only sequence, from a position on; return their number. */
static int take_rows(Model *encoder, int first, int count) {
    const int rows = count - first < MAX_ROWS ? count - first : MAX_ROWS;
    begin_pass(encoder);
    add_rows(encoder, encoder->sequences, first, rows);
    return rows;
}

/* Compute queries, keys and values of all rows of a layer, so that each can attend to all others. */
static void project_source(Model *encoder, int layer, const float *states, float *queries, int count) {
    const Config *config = &encoder->config;
    const Layer *own = &encoder->layers[layer];
    const int width = encoder->d_head, stride = own->query_key_value.vectors * LANES;
    float normed[MAX_ROWS * encoder->stride] __attribute__((aligned(64)));
    for (int first = 0, rows; first < count; first += rows) {
        rows = take_rows(encoder, first, count);
        const float *x = before_sublayer(encoder, &own->before_attention, normed, rows, states + (int64_t)first * encoder->stride);
        multiply(encoder, 0, &own->query_key_value, x, encoder->stride, encoder->qkv, stride, 0, rows);
        for (int row = 0; row < rows; row++)
            for (int head = 0; head < config->n_head + config->n_kv_head; head++) { /* of the queries, then of the keys */
                float *at = encoder->qkv + (int64_t)row * stride + head * width;
                const int is_key = head >= config->n_head, kv_head = head - config->n_head;
                if (config->qk_norm) normalize_head(config, is_key ? &own->of_keys : &own->of_queries, at);
                if (config->position == ROTARY) rotate(encoder, at, first + row);
                if (!is_key) memcpy(queries + ((int64_t)(first + row) * config->n_head + head) * width, at, (size_t)width * sizeof *at);
                else store_key_and_value(
                    encoder, blocks_of(encoder, encoder->sequences->cache, layer, kv_head), first + row, at, at + config->n_kv_head * width);
            }
    }
}

/* Run the encoder over `states`, which hold the embeddings of a source: attention goes in both directions. */
static void run_encoder(Model *encoder, float *states, float *queries, int count) {
    const Config *config = &encoder->config;
    const int width = encoder->d_head, group = config->n_head / config->n_kv_head, stride = encoder->stride;
    float normed[MAX_ROWS * stride] __attribute__((aligned(64)));
    float scores[encoder->slots] __attribute__((aligned(64)));
    for (int i = 0; i < config->n_layer; i++) {
        Layer *layer = &encoder->layers[i];
        project_source(encoder, i, states, queries, count);
        for (int first = 0, rows; first < count; first += rows) {
            rows = take_rows(encoder, first, count);
            memcpy(encoder->x, states + (int64_t)first * stride, (size_t)(rows * stride) * sizeof *states);
            for (int row = 0; row < rows; row++)
                for (int head = 0; head < config->n_head; head++)
                    attend(
                        encoder, queries + ((int64_t)(first + row) * config->n_head + head) * width,
                        blocks_of(encoder, encoder->sequences->cache, i, head / group), 0, count, scores,
                        encoder->attended + (int64_t)row * encoder->wide_heads + head * width);
            add_attended(encoder, 0, &layer->output);
            after_sublayer(encoder, 0, &layer->before_attention);
            if (config->feed_forward != NO_FEED_FORWARD) {
                feed_forward(encoder, 0, layer, before_sublayer(encoder, &layer->before_feed_forward, normed, rows, encoder->x));
                after_sublayer(encoder, 0, &layer->before_feed_forward);
            }
            memcpy(states + (int64_t)first * stride, encoder->x, (size_t)(rows * stride) * sizeof *states);
        }
    }
    for (int row = 0; config->final_norm && row < count; row++)
        normalize(config, &encoder->norm, states + (int64_t)row * stride, states + (int64_t)row * stride);
}

/* Store the keys and values of the encoder's states, to which each layer of the decoder attends. */
static void store_source(Model *model, Sequence *sequence, const float *states, int count) {
    const Config *config = &model->config;
    const int width = model->d_head;
    for (int i = 0; i < config->n_layer; i++) {
        const Layer *layer = &model->layers[i];
        const int stride = layer->cross_key_value.vectors * LANES;
        for (int first = 0; first < count; first += MAX_ROWS) {
            const int rows = count - first < MAX_ROWS ? count - first : MAX_ROWS;
            const float *x = states + (int64_t)first * model->stride;
            multiply(model, 0, &layer->cross_key_value, x, model->stride, model->qkv, stride, 0, rows);
            for (int row = 0; row < rows; row++)
                for (int head = 0; head < config->n_kv_head; head++) {
                    float *key = model->qkv + (int64_t)row * stride + head * width;
                    if (config->qk_norm) normalize_head(config, &layer->of_cross_keys, key);
                    float *blocks = blocks_of(model, sequence->source_cache, i, head);
                    store_key_and_value(model, blocks, first + row, key, key + config->n_kv_head * width);
                }
        }
    }
}

/* Let a sequence translate a source of at most a context, which the encoder reads unless it is that of the sequence already.
   Return 0, UNKNOWN_TOKEN or NO_MEMORY. */
int native_set_source(Model *model, Sequence *sequence, const int32_t *ids, int count) {
    Model *encoder = model->encoder;
    const size_t size = (size_t)count * sizeof *ids;
    if (count == sequence->source_count && memcmp(sequence->source, ids, size) == 0) return 0;
    if (!ids_are_valid(encoder, ids, count) || count > model->config.context_length) return UNKNOWN_TOKEN;
    if (!sequence->source) sequence->source = allocate(model->config.context_length, sizeof *ids);
    float *source_cache = grow_cache(model, sequence->source_cache, &sequence->source_room, count);
    if (source_cache) sequence->source_cache = source_cache;
    float *states = allocate((int64_t)count * encoder->stride, sizeof *states);
    float *queries = allocate((int64_t)count * encoder->wide_heads, sizeof *queries);
    const int has_memory = sequence->source && source_cache && states && queries && native_reserve(encoder, encoder->sequences, count);
    if (has_memory) {
        model->threads = 1; /* the others sleep until the next call */
        memcpy(encoder->sequences->ids, ids, size);
        for (int first = 0, rows; first < count; first += rows) {
            rows = take_rows(encoder, first, count);
            embed(encoder);
            memcpy(states + (int64_t)first * encoder->stride, encoder->x, (size_t)(rows * encoder->stride) * sizeof *states);
        }
        run_encoder(encoder, states, queries, count);
        store_source(model, sequence, states, count);
        memcpy(sequence->source, ids, size);
        sequence->source_count = count;
        sequence->cached = 0;
    }
    free(states);
    free(queries);
    return has_memory ? 0 : NO_MEMORY;
}
