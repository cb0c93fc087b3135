/* A decoder-only transformer on a CPU: from token ids to logits to the next tokens, in C alone.

   All threads run the same code, each on its slice of the rows of each matrix, and wait for each other at barriers.
   Between calls they sleep. Everything is computed in f32, and the weights of matrices are kept in f32, bf16 or int8.

   This file is compiled once for each kind of processor that native/library.py knows, with the instructions that it has:
   LEVEL names it, and is part of the name of each function that Python calls. What does not say otherwise is written in
   vectors that every compiler for every processor turns into its own.

   A row is a token that the layers read; those of one pass may be of many sequences, and what comes of a row never depends
   on the others: an answer is the same in any company. So each weight is read once for up to 16 sequences.

   B rows of a pass, D d_model, H heads, K width of one head, F width of the feed-forward, V vocabulary. */

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
#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "drafting.h"

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
#define native_odds EXPORTED(native_odds)
#define native_score EXPORTED(native_score)
#define native_draft EXPORTED(native_draft)
#define native_tell EXPORTED(native_tell)

#if defined(__AVX512VNNI__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { WIDEST = 8 };
#define INLINE static inline __attribute__((always_inline))

enum { MOST_ROWS = MOST_PASS, GROUP = 64, LONGEST_MATCH = 12, MOST_ORDER = 64 };
enum { NO_NORM, LAYERNORM, RMSNORM };
enum { NO_FEED_FORWARD, GELU, GELU_TANH, RELU, RELU2, SWIGLU };
enum { NO_POSITIONS, ROTARY, LEARNED, SINUSOIDAL };
enum { MISSING, F32, BF16, INT8, I16, I32, I64 };
enum { LARGE_PAGE = 2 << 20 };
enum { SPINS_AT_ONCE = 50, MOST_SPINS = 20000 };

typedef float Lanes __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t Integers __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint32_t Words __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int8_t Bytes __attribute__((vector_size(LANES), aligned(1)));

/* What Python hands over; native/engine.py declares the same fields in the same order. */

typedef struct {
    int32_t vocab_size, context, n_layer, n_head, n_kv_head, d_model, d_ff;
    int32_t norm, norm_is_before, final_norm, feed_forward, position, qk_norm, output_projection;
    int32_t earlier_tokens, token_pairs, ngram_order, precision;
    float norm_eps, rotary_base, embedding_scale;
} Config;

typedef struct {
    const void *data;
    int64_t kind, count;
} Tensor;

typedef struct {
    double temperature, top_p, min_p, repetition_penalty;
    int64_t top_k;
    uint64_t seed, prompt, place;
} Sampling;

static int is_greedy(const Sampling *sampling) { return sampling->temperature == 0; }

typedef struct Sequence Sequence;

/* A sequence that is to go on. */
typedef struct {
    Sequence *sequence;
    const int32_t *ids;  /* all of its tokens, of which the model sees those from `first` on */
    const int32_t *ends; /* tokens that end it */
    int32_t *drawn;
    float *logprobs;
    int32_t *likeliest;
    float *likeliest_logprobs;
    int64_t count, first, end_count;
    int64_t most, made; /* tokens; `made` comes back */
    Sampling sampling;
} Request;

/* Some rows of a matrix, in vectors of as many as there are lanes, so that no sum goes across lanes: for each column the
   numbers of all of them, in the order in which they are read; pairs of columns in bf16, fours in int8 (plus 128). There
   each row of each group of columns has a scale, [group][row of the panel], behind the weights. */
typedef struct {
    char *weights;
    int first, count; /* vectors; `count` is at most WIDEST */
} Panel;

typedef struct {
    int rows, columns, vectors;
    int precision;
    Panel *panels;
    int *shares; /* for each thread that there is room for, the first of its panels; at last how many there are */
    float *bias;
} Matrix;

/* Rows that a matrix in int8 is multiplied with. */
typedef struct {
    int8_t *values;   /* [row][column] */
    float *scales;    /* [row][group] */
    int32_t *offsets; /* [row][group]: what sums begin with, for weights that lie 128 too high */
} Quantized;

typedef struct {
    int width;
    float *gain, *bias;
} Norm;

typedef struct {
    Norm before_attention, before_feed_forward;
    Matrix query_key_value, output, up, gate, down;
} Layer;

typedef struct {
    float *trust, *share, *strength, *worth, *variety; /* each with its biases behind its weights */
    float match_worth, match_distance;
    int64_t count;
    int64_t *contexts, *begins;
    int16_t *tokens;
    float *counts, *totals, *varieties;
    Guess *guesses; /* what mostly followed each context */
} NGrams;

struct Sequence {
    int32_t *ids;
    int known;      /* how many of them have their keys and values here */
    float *cache;   /* keys and values, [head of keys][block][layer]: of as many tokens as there are lanes */
    uint8_t *used;  /* for each token whether it stands in the sequence: kept where it is penalized */
    Sequence *next; /* of the same model */
};

typedef struct {
    Sequence *sequence;
    int place;
} Row;

/* Rows of a pass that stand one after the other in the same sequence. */
typedef struct {
    Sequence *sequence;
    int first, count;
} Run;

/* A request on its way. */
typedef struct {
    Request *request;
    Sequence *sequence, *leader; /* `leader` computes what both begin with */
    int shared;                  /* how much that is */
    int count, fed;              /* its tokens so far, and how many of them the layers have read */
    int rows, asked, drawn;      /* in this pass: its rows, the first of them that is asked, tokens that came */
    int guessed, drafts;         /* what may come next, and how much of that is read along */
    Guess guesses[MOST_DRAFTS];
    int is_done;
} Job;

/* Memory that matrices lie in, one behind the other; it begins with this. */
typedef struct Chunk {
    struct Chunk *before;
    size_t used, size; /* bytes, this included */
} Chunk;

/* How often a thread has come to where all wait for each other, apart from what else is written: processors fetch two
   lines of 64 bytes at a time. */
typedef struct {
    atomic_uint turn;
    char apart[128 - sizeof(atomic_uint)];
} Arrival;

typedef struct Model {
    Config config;
    int d_head, stride, wide_head, slots; /* D and K in whole lanes; the context in whole blocks */
    int64_t block_size, block_step, head_step; /* numbers of keys and values: of a layer in a block; to its next; of a head */
    float *embedding, **earlier, *pairs, *positions, *cosine, *sine;
    Layer *layers;
    Norm norm;
    Matrix head;
    Chunk **chunks; /* by share, the newest */
    NGrams ngrams;
    /* what a call works on */
    Sequence *sequences; /* all that there are */
    int rows, runs, asked;
    Row row[MOST_ROWS];
    Run run[MOST_ROWS];
    int asked_row[MOST_ROWS]; /* those whose logits are asked for */
    Job *jobs;                /* that draw behind the layers; NULL: none does */
    int job_count, alternatives;
    Drafting drafting;
    int64_t read; /* rows, of all calls */
    atomic_int is_unsound; /* a logit is no number */
    float *x, *mixed, *attended, *hidden, *gated, *last, *logits;
    Quantized *quantized; /* by thread */
    /* threads */
    int threads, rooms, started; /* that take part in a call; that there is room for; that there are, but for Python's own */
    pthread_t *workers;
    pthread_mutex_t lock;
    pthread_cond_t work_is_there;
    uint64_t calls;
    int is_ending;
    Arrival *arrivals; /* by thread */
} Model;

/* --- numbers ---------------------------------------------------------------------------------------------------- */

static float widened(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Numbers of a file may lie at any address. */
static int64_t whole_number(const Tensor *tensor, int64_t place) {
    int16_t of_two;
    int32_t of_four;
    int64_t of_eight;
    switch (tensor->kind) {
    case I16: memcpy(&of_two, (const char *)tensor->data + 2 * place, 2); return of_two;
    case I32: memcpy(&of_four, (const char *)tensor->data + 4 * place, 4); return of_four;
    default: memcpy(&of_eight, (const char *)tensor->data + 8 * place, 8); return of_eight;
    }
}

static float number(const Tensor *tensor, int64_t place) {
    float value;
    uint16_t half;
    switch (tensor->kind) {
    case F32: memcpy(&value, (const char *)tensor->data + 4 * place, 4); return value;
    case BF16: memcpy(&half, (const char *)tensor->data + 2 * place, 2); return widened(half);
    default: return (float)whole_number(tensor, place);
    }
}

static uint16_t rounded_half(float value) { /* to the nearest bf16, ties to the even one */
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

/* To each sum the products of four weights, which lie 128 too high, with four numbers, which are the same for all lanes.
   Where the processor takes weights as they lie, 128 times the numbers are too much: OFFSET tells. */
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

INLINE Lanes exponential(Lanes x) { /* to a part in 10 million; below −87 it is about 1e-38, above 88 about 1e38 */
    x = larger(x, all(-87.0f));
    x = -larger(-x, all(-88.0f));
    Integers power = __builtin_convertvector(x * 1.44269504f + 127.5f, Integers); /* of 2, and 127 */
    Lanes whole = __builtin_convertvector(power - 127, Lanes);
    Lanes rest = x - whole * 0.693359375f - whole * -2.12194440e-4f; /* at most log(2) / 2 */
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
    Lanes out = x;
    switch (kind) {
    case RELU: return larger(x, all(0));
    case RELU2: x = larger(x, all(0)); return x * x;
    case SWIGLU: return x / (1.0f + exponential(-x));
    case GELU_TANH: return x / (1.0f + exponential(-1.5957691216f * (x + 0.044715f * x * x * x)));
    default:
        for (int lane = 0; lane < LANES; lane++) out[lane] = 0.5f * x[lane] * (1 + erff(x[lane] * 0.70710678f));
        return out;
    }
}

/* --- threads ---------------------------------------------------------------------------------------------------- */

/* Until all have come here. Each tells so in a line of the cache of its own, and looks at those of the others: nothing
   but what it tells has to get from one core to another. */
static void wait_for_all(Model *model, int thread) {
    const int threads = model->threads; /* once all have arrived, the next call may say another number */
    if (threads == 1) return;
    const uint32_t turn = atomic_load_explicit(&model->arrivals[thread].turn, memory_order_relaxed) + 1;
    atomic_store_explicit(&model->arrivals[thread].turn, turn, memory_order_release);
    for (int other = 0, spins = 0; other < threads; other++)
        for (; atomic_load_explicit(&model->arrivals[other].turn, memory_order_acquire) - turn > UINT32_MAX / 2; spins++) {
#if defined(__x86_64__)
            if (spins > SPINS_AT_ONCE) __builtin_ia32_pause();
#endif
            if (spins > MOST_SPINS) sched_yield(); /* somebody else has the processor of the one that is missing */
        }
}

static int slice(int count, int thread, int threads) { return (int)((int64_t)count * thread / threads); }

/* Of what is left the first part, where it is cut into as few as there can be, of nearly the same size. */
static int even_share(int left, int most) {
    const int parts = (left + most - 1) / most;
    return (left + parts - 1) / parts;
}

/* --- layers ----------------------------------------------------------------------------------------------------- */

/* Some vectors of a panel, times some rows; both counts are constants wherever these are called, and all sums stay in
   registers. A row's sums are the same in any company. */

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

/* Vectors of a panel from `first` on; `wide`: as many numbers as it has rows. */
INLINE void multiply_tile(
    const Matrix *matrix, const Panel *panel, int first, int wide, const float *x, int x_stride,
    const Quantized *quantized, int row, float *out, int out_stride, int adds, const int vectors, const int rows) {
    const int columns = matrix->columns, place = (panel->first + first) * LANES;
    const void *weights = panel->weights + first * LANES * sizeof(float);
    Lanes sums[4][WIDEST];
    for (int i = 0; i < vectors; i++) {
        Lanes bias = matrix->bias ? load(matrix->bias + place + i * LANES) : all(0);
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
            float *to = out + (row + j) * out_stride + place + i * LANES;
            store(to, adds ? load(to) + sums[j][i] : sums[j][i]);
        }
}

/* Whole numbers up to 127 in the place of so many vectors, with one scale. */
INLINE void quantize_group(const float *from, const int vectors, int8_t *to, float *scale, int32_t *offset) {
    Lanes most = all(0);
    Integers total = {0};
    for (int i = 0; i < vectors; i++) most = larger(most, (Lanes)((Integers)load(from + i * LANES) & 0x7FFFFFFF));
    const float highest = largest(most), share = highest > 0 ? 127 / highest : 0;
    for (int i = 0; i < vectors; i++) { /* 1.5 · 2^23: no bits behind the point */
        Integers whole = (Integers)(load(from + i * LANES) * share + 0x1.8p23f) - 0x4B400000;
        *(Bytes *)(to + i * LANES) = __builtin_convertvector(whole, Bytes);
        total += whole;
    }
    *scale = highest / 127;
    *offset = OFFSET * (int32_t)sum(__builtin_convertvector(total, Lanes)); /* exact: it is below 2^24 */
}

/* Rows as a matrix in int8 is multiplied with them: each group of columns has a scale of its own. Behind a row's end are
   zeros, to whole vectors; they may lie where the next row begins, which comes later. */
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

/* The first share of a thread: shares are as many as there is room for threads. */
static int first_share(const Model *model, int thread) { return slice(model->rooms, thread, model->threads); }

/* The share of a thread of matrix · x for each row, which is stored or added. */
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

/* Ba et al. 2016 or Zhang, Sennrich 2019, of a vector whose last lanes, behind its end, are 0. */
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

static void normalize_head(const Config *config, float *x, int width) {
    const int whole = width / LANES * LANES;
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
}

static void rotate(const Model *model, float *x, int place) { /* Su et al. 2021, §3.2.2; pairs are k and k + K/2 */
    const int half = model->d_head / 2;
    const float *cosine = model->cosine + (int64_t)place * half, *sine = model->sine + (int64_t)place * half;
    for (int k = 0; k < half; k++) {
        float first = x[k], second = x[k + half];
        x[k] = first * cosine[k] - second * sine[k];
        x[k + half] = second * cosine[k] + first * sine[k];
    }
}

/* Keys and values of a head lie in blocks of as many tokens as there are lanes: what is in use of all layers lies together,
   and so gets into the cache of a core without pushing out the weights there. In a block the keys come first, [K][lane],
   and then the values, [lane][K, in whole lanes]. */

INLINE void score(
    const float *query, const float *blocks, int64_t step, int width, float scale, float *scores, const int count) {
    Lanes sums[8];
    for (int i = 0; i < count; i++) sums[i] = all(0);
    for (int k = 0; k < width; k++)
        for (int i = 0; i < count; i++) sums[i] += load(blocks + i * step + k * LANES) * query[k];
    for (int i = 0; i < count; i++) store(scores + i * LANES, sums[i] * scale);
}

/* As many sums at a time for each part of a value as there are slots in turns: one alone would wait for itself. */
INLINE void average(
    const float *shares, const float *values, int64_t step, int wide, int used, float *out, const int parts,
    const int turns) {
    Lanes sums[4][4];
    for (int turn = 0; turn < turns; turn++)
        for (int i = 0; i < parts; i++) sums[turn][i] = all(0);
    for (int first = 0; first < used; first += LANES, values += step) {
        const int count = used - first < LANES ? used - first : LANES;
        int slot = 0;
        for (; slot + turns <= count; slot += turns)
            for (int turn = 0; turn < turns; turn++)
                for (int i = 0; i < parts; i++)
                    sums[turn][i] += load(values + (slot + turn) * wide + i * LANES) * shares[first + slot + turn];
        for (; slot < count; slot++)
            for (int i = 0; i < parts; i++) sums[0][i] += load(values + slot * wide + i * LANES) * shares[first + slot];
    }
    for (int i = 0; i < parts; i++) {
        for (int turn = 1; turn < turns; turn++) sums[0][i] += sums[turn][i];
        store(out + i * LANES, sums[0][i]);
    }
}

/* What one head of queries makes of the first `used` slots, which begin with a block of its layer; `scores` has room for
   them in whole blocks. */
static void attend(const Model *model, const float *query, const float *block, int used, float *scores, float *out) {
    const int width = model->d_head, wide = model->wide_head, blocks = (used + LANES - 1) / LANES;
    const int64_t step = model->block_step;
    const float scale = 1 / sqrtf(width), *values = block + width * LANES;
    Lanes most = all(-INFINITY), total = all(0);
#define SCORE(count) \
    case count: score(query, block + i * step, step, width, scale, scores + i * LANES, count); break;
    for (int i = 0, count; i < blocks; i += count)
        switch (count = even_share(blocks - i, 8)) {
            SCORE(1) SCORE(2) SCORE(3) SCORE(4) SCORE(5) SCORE(6) SCORE(7) SCORE(8)
        }
#undef SCORE
    for (int slot = used; slot < blocks * LANES; slot++) scores[slot] = -INFINITY;
    for (int i = 0; i < blocks; i++) most = larger(most, load(scores + i * LANES));
    const float highest = largest(most);
    for (int slot = used; slot < blocks * LANES; slot++) scores[slot] = highest - 100; /* e^-87 is added at most */
    for (int i = 0; i < blocks; i++) {
        Lanes share = exponential(load(scores + i * LANES) - highest);
        total += share;
        store(scores + i * LANES, share);
    }
    const Lanes share = all(1 / sum(total));
    float averages[wide] __attribute__((aligned(64)));
#define AVERAGE(count, turns) \
    case count: average(scores, values + k, step, wide, used, averages + k, count, turns); break;
    for (int k = 0, count; k < wide; k += count * LANES)
        switch (count = even_share((wide - k) / LANES, 4)) { AVERAGE(1, 4) AVERAGE(2, 4) AVERAGE(3, 2) AVERAGE(4, 2) }
#undef AVERAGE
    for (int k = 0; k < wide; k += LANES) store(averages + k, load(averages + k) * share);
    memcpy(out, averages, (size_t)width * sizeof *out);
}

/* Whether the queries, keys and values of whole heads can be the share of each thread. */
static int has_whole_heads(const Model *model) {
    const int heads = model->config.n_kv_head;
    return heads % model->rooms == 0 && heads / model->rooms * model->d_head % LANES == 0;
}

/* Queries, keys and values of each row. A thread that makes those that it looks with need not wait for others. */
static void project(Model *model, int thread, int layer, const float *x) {
    const Matrix *matrix = &model->layers[layer].query_key_value;
    multiply(model, thread, matrix, x, model->stride, model->mixed, matrix->vectors * LANES, 0, model->rows);
    if (model->threads < model->rooms || !has_whole_heads(model)) wait_for_all(model, thread);
}

/* The share of a thread in all heads of all runs: new keys and values go into the cache, then each row looks at what is
   before it. */
static void look(Model *model, int thread, int layer, float *scores) {
    const Config *config = &model->config;
    const int width = model->d_head, wide = model->wide_head, group = config->n_head / config->n_kv_head;
    const int mixed_stride = model->layers[layer].query_key_value.vectors * LANES;
    const int keys_at = config->n_head * width, values_at = keys_at + config->n_kv_head * width;
    const int units = model->runs * config->n_kv_head;
    for (int unit = slice(units, thread, model->threads); unit < slice(units, thread + 1, model->threads); unit++) {
        const Run *run = &model->run[unit % model->runs];
        const int head = unit / model->runs;
        float *blocks = run->sequence->cache + head * model->head_step + layer * model->block_size;
        for (int row = run->first; row < run->first + run->count; row++) {
            const int slot = model->row[row].place;
            float *mixed = model->mixed + (int64_t)row * mixed_stride;
            float *key = mixed + keys_at + head * width, *value = mixed + values_at + head * width;
            if (config->qk_norm) normalize_head(config, key, width);
            if (config->position == ROTARY) rotate(model, key, slot);
            float *block = blocks + slot / LANES * model->block_step, *values = block + width * LANES;
            for (int k = 0; k < width; k++) block[k * LANES + slot % LANES] = key[k];
            memcpy(values + slot % LANES * wide, value, (size_t)width * sizeof *value);
            for (int i = 0; i < group; i++) {
                float *query = mixed + (head * group + i) * width;
                if (config->qk_norm) normalize_head(config, query, width);
                if (config->position == ROTARY) rotate(model, query, slot);
                attend(
                    model, query, blocks, slot + 1, scores,
                    model->attended + (int64_t)row * model->stride + (head * group + i) * width);
            }
        }
    }
}

static void embed(Model *model) {
    const Config *config = &model->config;
    const int64_t width = config->d_model, vocab_size = config->vocab_size;
    for (int row = 0; row < model->rows; row++) {
        const int32_t *ids = model->row[row].sequence->ids;
        const int place = model->row[row].place;
        float *x = model->x + (int64_t)row * model->stride;
        const float *from = model->embedding + ids[place] * width;
        for (int i = 0; i < width; i++) x[i] = from[i];
        for (int distance = 1; distance <= config->earlier_tokens; distance++) {
            int64_t id = place >= distance ? ids[place - distance] + 1 : 0;
            from = model->earlier[distance - 1] + id * width;
            for (int i = 0; i < width; i++) x[i] += from[i];
        }
        if (config->token_pairs) {
            int64_t previous = place >= 1 ? ids[place - 1] + 1 : 0;
            from = model->pairs + (previous * vocab_size + ids[place]) * width;
            for (int i = 0; i < width; i++) x[i] += from[i];
        }
        if (config->embedding_scale != 1)
            for (int i = 0; i < width; i++) x[i] *= config->embedding_scale;
        if (config->position == LEARNED || config->position == SINUSOIDAL) {
            from = model->positions + place * width;
            for (int i = 0; i < width; i++) x[i] += from[i];
        }
    }
}

/* What a sublayer is given: each thread normalizes for itself, which is quicker than to wait for another. */
static const float *before_sublayer(Model *model, const Norm *norm, float *normed, int rows, const float *x) {
    if (!model->config.norm_is_before || model->config.norm == NO_NORM) return x;
    for (int row = 0; row < rows; row++)
        normalize(&model->config, norm, x + (int64_t)row * model->stride, normed + (int64_t)row * model->stride);
    return normed;
}

static void after_sublayer(Model *model, int thread, const Norm *norm) {
    wait_for_all(model, thread);
    if (model->config.norm_is_before || model->config.norm == NO_NORM) return;
    if (thread == 0)
        for (int row = 0; row < model->rows; row++) {
            float *x = model->x + (int64_t)row * model->stride;
            normalize(&model->config, norm, x, x);
        }
    wait_for_all(model, thread);
}

static void feed_forward(Model *model, int thread, Layer *layer, const float *x) {
    const int wide = layer->up.vectors * LANES, kind = model->config.feed_forward;
    const int first = LANES * slice(layer->up.vectors, first_share(model, thread), model->rooms);
    const int end = LANES * slice(layer->up.vectors, first_share(model, thread + 1), model->rooms);
    multiply(model, thread, &layer->up, x, model->stride, model->hidden, wide, 0, model->rows);
    if (kind == SWIGLU) multiply(model, thread, &layer->gate, x, model->stride, model->gated, wide, 0, model->rows);
    for (int row = 0; row < model->rows; row++)
        for (int i = first; i < end; i += LANES) {
            float *at = model->hidden + (int64_t)row * wide + i;
            if (kind == SWIGLU) store(at, load(at) * activate(load(model->gated + (at - model->hidden)), kind));
            else store(at, activate(load(at), kind));
        }
    wait_for_all(model, thread);
    multiply(model, thread, &layer->down, model->hidden, wide, model->x, model->stride, 1, model->rows);
}

/* What a thread has for the head, of a row that is asked for. */
static float *last_of(const Model *model, int thread, int asked) {
    return model->last + ((int64_t)thread * MOST_ROWS + asked) * model->stride;
}

/* Rows to logits: of those that are asked for. */
static void run_layers(Model *model, int thread) {
    const Config *config = &model->config;
    float normed[MOST_ROWS * model->stride] __attribute__((aligned(64)));
    float scores[model->slots] __attribute__((aligned(64)));
    for (int i = 0; i < config->n_layer; i++) {
        Layer *layer = &model->layers[i];
        const float *x = before_sublayer(model, &layer->before_attention, normed, model->rows, model->x);
        project(model, thread, i, x);
        look(model, thread, i, scores);
        wait_for_all(model, thread);
        if (config->output_projection) {
            multiply(
                model, thread, &layer->output, model->attended, model->stride, model->x, model->stride, 1, model->rows);
        } else if (thread == 0) {
            for (int place = 0; place < model->rows * model->stride; place++) model->x[place] += model->attended[place];
        }
        after_sublayer(model, thread, &layer->before_attention);
        if (config->feed_forward != NO_FEED_FORWARD) {
            x = before_sublayer(model, &layer->before_feed_forward, normed, model->rows, model->x);
            feed_forward(model, thread, layer, x);
            after_sublayer(model, thread, &layer->before_feed_forward);
        }
    }
    for (int i = 0; i < model->asked; i++) {
        const float *x = model->x + (int64_t)model->asked_row[i] * model->stride;
        float *to = last_of(model, thread, i);
        if (config->final_norm) normalize(config, &model->norm, x, to);
        else memcpy(to, x, (size_t)model->stride * sizeof *to);
    }
    multiply(
        model, thread, &model->head, last_of(model, thread, 0), model->stride, model->logits,
        model->head.vectors * LANES, 0, model->asked);
    wait_for_all(model, thread);
}

/* --- counts and matches: see model/ngrams.py and model/matches.py ------------------------------------------------- */

static float weigh(const float *weights, int width, const float *x) { /* one row of a small layer, its bias behind it */
    float total = weights[width];
    for (int i = 0; i < width; i++) total += weights[i] * x[i];
    return total;
}

static void softmax(float *x, int count, int wide) { /* `wide`: in whole lanes */
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

static int64_t find_context(const NGrams *ngrams, int64_t key) {
    int64_t low = 0, high = ngrams->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (ngrams->contexts[middle] < key) low = middle + 1;
        else high = middle;
    }
    return low < ngrams->count && ngrams->contexts[low] == key ? low : -1;
}

/* What mostly follows the longest context that was counted. */
static Guess guess_by_counts(const Model *model, const int32_t *ids, int count) {
    int64_t keys[MOST_ORDER], key = 0, power = 1;
    int length = 1;
    for (; length < model->config.ngram_order && length < MOST_ORDER && length <= count; length++) {
        keys[length] = key += (ids[count - length] + 1) * power;
        power *= model->config.vocab_size;
    }
    while (--length > 1) {
        const int64_t node = find_context(&model->ngrams, keys[length]);
        if (node >= 0) return model->ngrams.guesses[node];
    }
    return (Guess){0, -1};
}

static void count_on(
    const Model *model, const int32_t *ids, int place, const float *x, float *counted, int wide) {
    const NGrams *ngrams = &model->ngrams;
    const int vocab_size = model->config.vocab_size, width = model->config.d_model;
    for (int token = 0; token < vocab_size; token++) counted[token] = 1.0f / vocab_size;
    int64_t key = 0, power = 1;
    for (int length = 0; length < model->config.ngram_order; length++) {
        if (length > 0) {
            if (place - length + 1 < 0) break;
            key += (ids[place - length + 1] + 1) * power;
            power *= vocab_size;
        }
        int64_t node = find_context(ngrams, key);
        if (node < 0) continue;
        float strength = weigh(ngrams->strength + length * (width + 1), width, x);
        strength += ngrams->variety[length] * ngrams->varieties[node];
        float alpha = expf(fminf(fmaxf(strength, -30), 30)), share = 1 / (ngrams->totals[node] + alpha);
        for (int token = 0; token < vocab_size; token++) counted[token] *= alpha * share;
        for (int64_t i = ngrams->begins[node]; i < ngrams->begins[node + 1]; i++)
            counted[ngrams->tokens[i]] += ngrams->counts[i] * share;
    }
    float trust = weigh(ngrams->trust, width, x);
    for (int token = 0; token < vocab_size; token++) counted[token] = trust * logf(fmaxf(counted[token], 1e-12f));
    softmax(counted, vocab_size, wide);
}

/* What followed the places that match best; returns how many tokens matched there. */
static int match(const NGrams *ngrams, const int32_t *ids, int place, float *matched) {
    float scores[place + 1], highest = -INFINITY, total = 0;
    int slots[place + 1], found = 0, longest = 0;
    for (int slot = 0; slot < place; slot++) {
        if (ids[slot] != ids[place]) continue;
        int length = 1;
        while (length < LONGEST_MATCH && length <= slot && ids[slot - length] == ids[place - length]) length++;
        float score = ngrams->match_worth * length - ngrams->match_distance * logf(place - slot);
        scores[found] = score;
        slots[found++] = slot;
        highest = score > highest ? score : highest;
        longest = length > longest ? length : longest;
    }
    for (int i = 0; i < found; i++) total += scores[i] = expf(scores[i] - highest);
    for (int i = 0; i < found; i++) matched[ids[slots[i] + 1]] += scores[i] / total;
    return longest;
}

/* Mixes them into the logits of one that is asked for. */
static void mix(Model *model, int thread, int asked) {
    const NGrams *ngrams = &model->ngrams;
    const Row *row = &model->row[model->asked_row[asked]];
    const int vocab_size = model->config.vocab_size, width = model->config.d_model, wide = model->head.vectors * LANES;
    const float *x = last_of(model, thread, asked);
    float *said = model->logits + (int64_t)asked * wide;
    float counted[wide], matched[wide];
    memset(matched, 0, sizeof matched);
    softmax(said, vocab_size, wide);
    count_on(model, row->sequence->ids, row->place, x, counted, wide);
    int longest = match(ngrams, row->sequence->ids, row->place, matched);
    float layers = weigh(ngrams->share, width, x), matches = -INFINITY;
    if (longest) matches = weigh(ngrams->share + width + 1, width, x) + ngrams->worth[longest];
    float most = fmaxf(0, fmaxf(layers, matches));
    float of_layers = expf(layers - most), of_counts = expf(-most), of_matches = longest ? expf(matches - most) : 0;
    float total = of_layers + of_counts + of_matches;
    for (int token = 0; token < vocab_size; token++) {
        float mixed = of_layers * said[token] + of_counts * counted[token] + of_matches * matched[token];
        said[token] = logf(fmaxf(mixed / total, 1e-12f));
    }
}

/* --- a pass ------------------------------------------------------------------------------------------------------- */

static void draw(Model *model, int thread, Job *job);

static void run_pass(Model *model, int thread) {
    const int parts = model->jobs ? model->job_count : model->config.ngram_order ? model->asked : 0;
    run_layers(model, thread);
    for (int i = thread; i < parts; i += model->threads)
        if (model->jobs == NULL) mix(model, thread, i);
        else if (model->jobs[i].asked >= 0) draw(model, thread, &model->jobs[i]);
    if (parts > 1) wait_for_all(model, thread); /* else thread 0 did it all, and others look at nothing before it comes */
}

static void *work(void *argument) {
    void **handed = argument;
    Model *model = handed[0];
    int thread = (int)(intptr_t)handed[1];
    free(argument);
    uint64_t seen = 0;
    for (;;) {
        pthread_mutex_lock(&model->lock);
        while (model->calls == seen && !model->is_ending) pthread_cond_wait(&model->work_is_there, &model->lock);
        seen = model->calls;
        const int is_ending = model->is_ending, takes_part = thread < model->threads;
        pthread_mutex_unlock(&model->lock);
        if (is_ending) return NULL;
        if (!takes_part) continue;
        for (;;) {
            wait_for_all(model, thread);
            if (model->rows == 0) break;
            run_pass(model, thread);
        }
        wait_for_all(model, thread); /* until each has seen that it is over */
    }
}

static void begin_call(Model *model, int threads) {
    const int most = model->started + 1;
    pthread_mutex_lock(&model->lock);
    model->threads = threads < most ? threads : most;
    const uint32_t turn = atomic_load(&model->arrivals[0].turn);
    for (int i = 1; i < most; i++) atomic_store(&model->arrivals[i].turn, turn); /* of those that were left out */
    model->calls++;
    if (model->threads > 1) pthread_cond_broadcast(&model->work_is_there);
    pthread_mutex_unlock(&model->lock);
}

static void begin_pass(Model *model) { model->rows = model->runs = model->asked = 0; }

static void end_call(Model *model) {
    begin_pass(model);
    wait_for_all(model, 0);
    wait_for_all(model, 0);
}

/* Some ids of a sequence, which stand there already, join the pass. */
static void add_rows(Model *model, Sequence *sequence, int place, int count) {
    model->run[model->runs++] = (Run){sequence, model->rows, count};
    for (int i = 0; i < count; i++) model->row[model->rows++] = (Row){sequence, place + i};
}

static void pass(Model *model) {
    model->read += model->rows;
    embed(model);
    wait_for_all(model, 0);
    run_pass(model, 0);
}

static int is_finite(const float *x, int count) { /* 0 times what is not is no number */
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
    for (; i < count; i++) rest += expf(x[i] - highest);
    return highest + logf(sum(total) + rest);
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

/* Whole numbers in the order of the numbers whose bits they are. */
INLINE Integers in_order(Integers bits) { return bits ^ ((bits >> 31) & 0x7FFFFFFF); }

/* The k-th largest of some numbers: one bit after the other, the highest first. */
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

/* Puts the likeliest first, as many as reach a share together, and returns how many these are. A search for their end as
   quicksort makes it: only the part where the end lies is sorted any further. */
static int gather_likeliest(Candidate *candidates, int count, double share) {
    int low = 0, high = count; /* what is before `low` is among them, what is from `high` on is not */
    double before = 0;
    while (low < high) {
        double likelier = before;
        int place = low;
        swap(&candidates[(low + high) / 2], &candidates[high - 1]);
        for (int i = low; i < high - 1; i++)
            if (is_likelier(&candidates[i], &candidates[high - 1])) {
                likelier += candidates[i].share;
                swap(&candidates[i], &candidates[place++]);
            }
        swap(&candidates[place], &candidates[high - 1]);
        if (likelier >= share) high = place;
        else {
            before = likelier + candidates[place].share;
            low = place + 1;
        }
    }
    return low;
}

static void cut_top_p(float *logits, int count, float highest, double top_p) {
    const double total = exp((double)(log_of_sum(logits, count) - highest));
    const float least = highest + (float)log((1 - top_p) / count * total); /* what is less likely cannot be reached */
    int found = 0;
    for (int id = 0; id < count; id++) found += logits[id] >= least;
    Candidate *candidates = malloc((size_t)found * sizeof *candidates);
    if (candidates == NULL) return;
    found = 0;
    for (int id = 0; id < count; id++)
        if (logits[id] >= least) {
            candidates[found++] = (Candidate){logits[id], expf(logits[id] - highest), id};
        } else logits[id] = -INFINITY;
    for (int i = gather_likeliest(candidates, found, top_p * total); i < found; i++)
        logits[candidates[i].id] = -INFINITY;
    free(candidates);
}

/* Changes logits as the settings say: −∞ where a token is cut. `used` is looked at where there is a penalty. */
static void filter(float *logits, int count, const Sampling *sampling, const uint8_t *used) {
    if (sampling->repetition_penalty != 1)
        for (int id = 0; id < count; id++)
            if (used[id]) {
                float penalty = (float)sampling->repetition_penalty;
                logits[id] = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
            }
    if (is_greedy(sampling)) return;
    for (int id = 0; id < count; id++) logits[id] /= (float)sampling->temperature;
    const float highest = highest_of(logits, count);
    if (sampling->top_k > 0 && sampling->top_k < count) {
        float least = select_largest(logits, count, (int)sampling->top_k);
        for (int id = 0; id < count; id++)
            if (logits[id] < least) logits[id] = -INFINITY;
    }
    if (sampling->top_p < 1) cut_top_p(logits, count, highest, sampling->top_p);
    if (sampling->min_p > 0) {
        float least = highest + logf((float)sampling->min_p);
        for (int id = 0; id < count; id++)
            if (logits[id] < least) logits[id] = -INFINITY;
    }
}

static uint64_t stir(uint64_t x) { /* SplitMix64: see generate/random.py */
    x += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
}

static int choose(const float *logits, int count, const Sampling *sampling, uint64_t place) {
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
    for (; id < count; id++) total += shares[id] = expf(logits[id] - highest);
    const double uniform = (double)(stir(stir(stir(sampling->seed) ^ sampling->prompt) ^ place) >> 11) * 0x1p-53;
    for (id = 0; id < count; id++) {
        if (!(logits[id] > -INFINITY)) continue;
        last = id;
        reached += shares[id];
        if (reached > uniform * total) break;
    }
    return last;
}

static void find_likeliest(const float *logits, int count, int wanted, int32_t *ids, float *values) {
    int found = 0;
    for (int id = 0; id < count; id++) {
        if (found == wanted && logits[id] <= values[found - 1]) continue;
        int place = found < wanted ? found++ : wanted - 1;
        for (; place > 0 && values[place - 1] < logits[id]; place--) {
            values[place] = values[place - 1];
            ids[place] = ids[place - 1];
        }
        values[place] = logits[id];
        ids[place] = id;
    }
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

enum { UNSOUND = -1, UNKNOWN_TOKEN = -2 };

static int common(const int32_t *a, const int32_t *b, int count) {
    int same = 0;
    while (same < count && a[same] == b[same]) same++;
    return same;
}

/* What stands behind some place of the sequence is known no longer, where it changes. */
static void put(Sequence *sequence, int place, int32_t id) {
    if (place < sequence->known && sequence->ids[place] == id) return;
    sequence->ids[place] = id;
    if (sequence->known > place) sequence->known = place;
}

static void copy_cache(const Model *model, Sequence *to, const Sequence *from, int count) {
    const int64_t step = model->head_step, used = (count + LANES - 1) / LANES * model->block_step;
    for (int head = 0; head < model->config.n_kv_head; head++)
        memcpy(to->cache + head * step, from->cache + head * step, (size_t)used * sizeof *to->cache);
    to->known = count;
}

static int is_known(const Model *model, const int32_t *ids, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= model->config.vocab_size) return 0;
    return count > 0;
}

/* Sets up a job. What its sequence has in common with what any other holds is taken from there, and what it has in common
   with an earlier job is computed once. */
static void begin_job(Model *model, Job *jobs, int number) {
    Job *job = &jobs[number];
    const Request *request = job->request;
    const int32_t *ids = request->ids + request->first;
    Sequence *sequence = job->sequence = request->sequence, *donor = NULL;
    const int count = job->count = (int)(request->count - request->first);
    int known = common(sequence->ids, ids, sequence->known < count ? sequence->known : count);
    for (Sequence *other = model->sequences; other && known < count - 1; other = other->next) {
        int shared = common(other->ids, ids, other->known < count ? other->known : count);
        if (shared > known) known = shared, donor = other;
    }
    if (donor) {
        copy_cache(model, sequence, donor, known);
        memcpy(sequence->ids, ids, (size_t)known * sizeof *ids);
    }
    for (int place = known; place < count; place++) {
        put(sequence, place, ids[place]);
        note(&model->drafting, sequence->ids, place + 1);
    }
    job->fed = known < count ? known : count - 1; /* the last one is read again, to see what comes behind it */
    job->leader = NULL;
    job->shared = job->fed;
    for (int i = 0; i < number && job->fed < count - 1; i++) {
        if (jobs[i].is_done) continue;
        int shared = common(jobs[i].sequence->ids, ids, jobs[i].count < count ? jobs[i].count : count - 1);
        if (shared > job->shared) job->shared = shared, job->leader = jobs[i].sequence;
    }
    job->is_done = request->most <= 0;
    if (request->sampling.repetition_penalty != 1) {
        memset(sequence->used, 0, (size_t)model->config.vocab_size);
        for (int64_t i = 0; i < request->count; i++) sequence->used[request->ids[i]] = 1;
    }
}

/* Guesses how a job goes on, and puts as much of that behind its tokens as is worth a check. */
static void propose(Model *model, Job *job, int rows, double *tokens) {
    Sequence *sequence = job->sequence;
    const int64_t left = job->request->most - job->request->made - 1;
    int most = model->config.context - job->count;
    if (most > left) most = (int)left;
    if (most > MOST_DRAFTS) most = MOST_DRAFTS;
    if (most > MOST_ROWS - rows) most = MOST_ROWS - rows;
    if (model->drafting.mode == NEVER || (model->drafting.mode == WHERE_IT_GAINS && !model->drafting.is_on)) return;
    const int could_gain = can_gain(&model->drafting, most, rows, *tokens);
    double chance = 1;
    for (int i = 0; i < most && chance >= LEAST_CHANCE; i++) {
        Guess best = guess(&model->drafting, sequence->ids, job->count + i);
        if (model->config.ngram_order) {
            Guess other = guess_by_counts(model, sequence->ids, job->count + i);
            const float *right = model->drafting.right;
            if (other.kind >= 0 && (best.kind < 0 || right[other.kind] > right[best.kind])) best = other;
        }
        if (best.kind < 0) break;
        job->guesses[job->guessed++] = best;
        put(sequence, job->count + i, best.token);
        if (!could_gain) break; /* the first is guessed to see how often that is right */
        if (model->drafting.mode != ALWAYS) chance *= model->drafting.right[best.kind];
    }
    job->drafts = count_worthwhile(&model->drafting, job->guesses, job->guessed, rows, tokens);
    model->drafting.proposed += job->drafts;
}

/* Fills a pass with what is to be read next, the first jobs first. */
static void plan(Model *model, Job *jobs, int count) {
    int rows = 0, asked = 0;
    begin_pass(model);
    for (int i = 0; i < count; i++) {
        Job *job = &jobs[i];
        job->rows = job->drafts = job->drawn = job->guessed = 0;
        job->asked = -1;
        if (job->is_done || rows == MOST_ROWS) continue;
        if (job->leader) {
            if (job->leader->known < job->shared) continue;
            copy_cache(model, job->sequence, job->leader, job->shared);
            job->fed = job->shared;
            job->leader = NULL;
        }
        const int waiting = job->count - job->fed, room = MOST_ROWS - rows;
        job->rows = waiting < room ? waiting : room;
        rows += job->rows;
        job->asked = job->rows < waiting ? -1 : 0;
        asked += job->asked + 1;
    }
    double tokens = asked;
    for (int i = 0; i < count; i++) {
        Job *job = &jobs[i];
        if (job->rows == 0) continue;
        if (job->asked >= 0 && model->jobs) propose(model, job, rows, &tokens);
        add_rows(model, job->sequence, job->fed, job->rows + job->drafts);
        rows += job->drafts;
        if (job->asked < 0) continue;
        job->asked = model->asked;
        for (int row = model->rows - job->drafts - 1; row < model->rows; row++) model->asked_row[model->asked++] = row;
    }
}

static int is_end(const Request *request, int32_t id) {
    for (int64_t i = 0; i < request->end_count; i++)
        if (request->ends[i] == id) return 1;
    return 0;
}

/* Takes the next token of a job from the logits of a row. */
static int32_t draw_token(Model *model, int thread, Job *job, int asked) {
    const int vocab_size = model->config.vocab_size;
    Request *request = job->request;
    if (model->config.ngram_order) mix(model, thread, asked);
    float *logits = model->logits + (int64_t)asked * model->head.vectors * LANES;
    if (!is_finite(logits, vocab_size)) {
        atomic_store(&model->is_unsound, 1);
        return -1;
    }
    const float total = log_of_sum(logits, vocab_size);
    const int64_t made = request->made++, first = made * model->alternatives;
    if (model->alternatives) {
        find_likeliest(
            logits, vocab_size, model->alternatives, request->likeliest + first, request->likeliest_logprobs + first);
        for (int i = 0; i < model->alternatives; i++) request->likeliest_logprobs[first + i] -= total;
    }
    float filtered[vocab_size];
    memcpy(filtered, logits, sizeof filtered);
    filter(filtered, vocab_size, &request->sampling, job->sequence->used);
    const int32_t id = choose(filtered, vocab_size, &request->sampling, request->sampling.place + (uint64_t)made);
    request->drawn[made] = id;
    request->logprobs[made] = logits[id] - total;
    job->sequence->used[id] = 1;
    job->is_done = request->made == request->most || is_end(request, id) || job->count == model->config.context;
    return id;
}

/* Takes the next tokens of a job: one, and one more behind each draft that was right. */
static void draw(Model *model, int thread, Job *job) {
    for (int i = 0; i <= job->drafts; i++) {
        const int32_t id = draw_token(model, thread, job, job->asked + i);
        if (id < 0) return;
        job->drawn++;
        if (job->is_done) return;
        put(job->sequence, job->count++, id);
        if (i == job->drafts || job->guesses[i].token != id) return;
    }
}

/* Takes up what a pass has read and drawn. */
static void end_pass(Model *model, Job *job) {
    if (job->asked < 0) {
        job->fed += job->rows;
    } else {
        const int32_t *drawn = job->request->drawn + job->request->made - job->drawn;
        for (int i = 0; i < job->drawn && i < job->guessed; i++) {
            judge(&model->drafting, job->guesses[i], drawn[i] == job->guesses[i].token);
            if (i < job->drafts) model->drafting.kept += drawn[i] == job->guesses[i].token;
        }
        const int last = job->is_done; /* it was not put behind the others */
        for (int i = job->drawn - last; i > 0; i--) note(&model->drafting, job->sequence->ids, job->count - i + 1);
        job->fed = job->is_done ? job->count : job->count - 1;
    }
    if (job->sequence->known < job->fed) job->sequence->known = job->fed;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* --- what Python calls ---------------------------------------------------------------------------------------------- */

/* Goes on with each request until its end, the most that it asks for, or a full context; or until the time is over, be it
   that nothing has come yet. Returns 0, UNSOUND, or UNKNOWN_TOKEN. */
int native_extend(Model *model, Request *requests, int count, int alternatives, double seconds, int threads) {
    const double end = now() + seconds;
    for (int i = 0; i < count; i++)
        if (!is_known(model, requests[i].ids, requests[i].count)) return UNKNOWN_TOKEN;
    Job jobs[count];
    for (int i = 0; i < count; i++) {
        jobs[i].request = &requests[i];
        requests[i].made = 0;
        begin_job(model, jobs, i);
    }
    model->jobs = jobs;
    model->job_count = count;
    model->alternatives = alternatives;
    atomic_store(&model->is_unsound, 0);
    begin_call(model, threads);
    for (double began = now(), time; began < end || model->rows == 0; began = time) {
        plan(model, jobs, count);
        if (model->rows == 0) break;
        pass(model);
        if (atomic_load(&model->is_unsound)) break;
        int drawn = 0;
        for (int i = 0; i < count; i++) {
            if (jobs[i].rows) end_pass(model, &jobs[i]);
            drawn += jobs[i].drawn;
        }
        time = now();
        if (model->asked == model->rows) note_pass(&model->drafting, model->rows, drawn, time - began);
    }
    end_call(model);
    model->jobs = NULL;
    return atomic_load(&model->is_unsound) ? UNSOUND : 0;
}

/* The log-probability of each token that may follow, and what it is drawn with. Returns as `native_extend`. */
int native_odds(Model *model, Request *request, float *logprobs, double *shares, int threads) {
    const int vocab_size = model->config.vocab_size;
    if (!is_known(model, request->ids, request->count)) return UNKNOWN_TOKEN;
    Job job = {.request = request};
    begin_job(model, &job, 0);
    job.is_done = 0;
    begin_call(model, threads);
    while (job.fed < job.count) {
        plan(model, &job, 1);
        pass(model);
        job.fed += job.rows;
        if (job.sequence->known < job.fed) job.sequence->known = job.fed;
    }
    memcpy(logprobs, model->logits, (size_t)vocab_size * sizeof *logprobs);
    end_call(model);
    if (!is_finite(logprobs, vocab_size)) return UNSOUND;
    float filtered[vocab_size], total = log_of_sum(logprobs, vocab_size);
    memcpy(filtered, logprobs, sizeof filtered);
    filter(filtered, vocab_size, &request->sampling, job.sequence->used);
    int best = choose(filtered, vocab_size, &(Sampling){0}, 0);
    double sum_of_shares = 0;
    for (int id = 0; id < vocab_size; id++) {
        logprobs[id] -= total;
        shares[id] = is_greedy(&request->sampling) ? id == best : exp((double)filtered[id] - filtered[best]);
        sum_of_shares += shares[id];
    }
    for (int id = 0; id < vocab_size; id++) shares[id] /= sum_of_shares;
    return 0;
}

/* What the distribution of some logits leaves open, in nats. */
static float entropy(const float *logits, int count) {
    float total = log_of_sum(logits, count), open = 0;
    for (int i = 0; i < count; i++) open -= expf(logits[i] - total) * (logits[i] - total);
    return open;
}

/* The log-probability of each of ids but the first, and the entropy of what could have come there. Returns as
   `native_extend`. */
int native_score(
    Model *model, Sequence *sequence, const int32_t *ids, int count, float *logprobs, float *entropies, int threads) {
    const int vocab_size = model->config.vocab_size, wide = model->head.vectors * LANES;
    int is_sound = 1;
    if (!is_known(model, ids, count)) return UNKNOWN_TOKEN;
    begin_call(model, threads);
    sequence->known = 0;
    memcpy(sequence->ids, ids, (size_t)(count - 1) * sizeof *ids);
    for (int start = 0; start < count - 1 && is_sound; start += MOST_ROWS) {
        int rows = count - 1 - start < MOST_ROWS ? count - 1 - start : MOST_ROWS;
        begin_pass(model);
        add_rows(model, sequence, start, rows);
        while (model->asked < rows) model->asked_row[model->asked] = model->asked, model->asked++;
        pass(model);
        const float *logits = model->logits;
        for (int row = 0; row < rows; row++, logits += wide) {
            is_sound = is_sound && is_finite(logits, vocab_size);
            logprobs[start + row] = logits[ids[start + row + 1]] - log_of_sum(logits, vocab_size);
            entropies[start + row] = entropy(logits, vocab_size);
        }
    }
    sequence->known = count - 1;
    end_call(model);
    return is_sound ? 0 : UNSOUND;
}

/* Whether to draft: NEVER, WHERE_IT_GAINS, ALWAYS. */
void native_draft(Model *model, int mode) { model->drafting.mode = mode; }

/* Rows that were read since the model is there; drafts among them, and how many of these were right. */
void native_tell(const Model *model, int64_t *told) {
    told[0] = model->read;
    told[1] = model->drafting.proposed;
    told[2] = model->drafting.kept;
}

/* Whether this processor has the instructions that this file was compiled with. */
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
    free(sequence->cache);
    free(sequence->used);
    free(sequence);
}

static size_t rounded_up(size_t count, size_t step) { return (count + step - 1) / step * step; }

/* Memory in pages of 2 MB where the system has these: what does not fit into the caches is read up to twice as quickly
   from there. */
static void *large_pages(size_t bytes) {
    const size_t whole = rounded_up(bytes, LARGE_PAGE);
    void *at = aligned_alloc(LARGE_PAGE, whole);
#ifdef MADV_HUGEPAGE
    if (at) madvise(at, whole, MADV_HUGEPAGE);
#endif
    return at;
}

static void *room(int64_t count, size_t size) { /* zeros, aligned to whole lanes */
    const size_t bytes = rounded_up((size_t)count * size, 64) + 64;
    void *at = bytes < LARGE_PAGE / 2 ? aligned_alloc(64, bytes) : large_pages(bytes);
    return at ? memset(at, 0, bytes) : NULL;
}

/* As `room`, but for the weights of a share: these lie one behind the other. What is not used of the last chunk, the
   largest, takes no memory, but for what a page has too many. */
static void *room_for_weights(Model *model, int share, size_t size) {
    const size_t bytes = rounded_up(size, 64), header = rounded_up(sizeof(Chunk), 64);
    Chunk *chunk = model->chunks[share];
    if (chunk == NULL || chunk->size - chunk->used < bytes) {
        const size_t least = chunk ? 2 * chunk->size : LARGE_PAGE;
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

Sequence *native_new_sequence(Model *model) {
    const Config *config = &model->config;
    Sequence *sequence = calloc(1, sizeof *sequence);
    if (sequence == NULL) return NULL;
    sequence->ids = room(config->context, sizeof *sequence->ids);
    sequence->cache = room(config->n_kv_head * model->head_step, sizeof *sequence->cache);
    sequence->used = room(config->vocab_size, sizeof *sequence->used);
    if (!sequence->ids || !sequence->cache || !sequence->used) {
        native_free_sequence(model, sequence);
        return NULL;
    }
    sequence->next = model->sequences;
    return model->sequences = sequence;
}

/* --- from tensors to a model ---------------------------------------------------------------------------------------- */

/* Tensors come in one order, which native/engine.py knows too; `lacks` tells that one was not as it should be. */
typedef struct {
    const Tensor *next, *end;
    int lacks;
} Reader;

static const Tensor *take(Reader *reader, int64_t count) { /* NULL where the model has none */
    if (reader->next == reader->end) {
        reader->lacks = 1;
        return NULL;
    }
    const Tensor *tensor = reader->next++;
    if (tensor->kind == MISSING) return NULL;
    if (tensor->count != count) reader->lacks = 1;
    return tensor->count == count ? tensor : NULL;
}

static float *read_numbers(Reader *reader, int64_t count) {
    const Tensor *tensor = take(reader, count);
    float *numbers = tensor ? room(count, sizeof *numbers) : NULL;
    if (tensor && !numbers) reader->lacks = 1;
    for (int64_t i = 0; numbers && i < count; i++) numbers[i] = number(tensor, i);
    return numbers;
}

static float *read_needed(Reader *reader, int64_t count) {
    float *numbers = read_numbers(reader, count);
    if (numbers == NULL) reader->lacks = 1;
    return numbers;
}

static int columns_at_once(int precision) { return precision == INT8 ? 4 : precision == BF16 ? 2 : 1; }

/* The numbers of a group of columns as steps, up to 127, of the largest of them: returns what a step is. */
static float in_steps(const float numbers[GROUP], int32_t steps[GROUP]) {
    Lanes most = all(0);
    for (int i = 0; i < GROUP; i += LANES) most = larger(most, larger(load(numbers + i), -load(numbers + i)));
    const float highest = largest(most), share = highest > 0 ? 127 / highest : 0;
    for (int i = 0; i < GROUP; i += LANES) /* 1.5 · 2^23: no bits behind the point */
        *(Integers *)(steps + i) = (Integers)(load(numbers + i) * share + 0x1.8p23f) - 0x4B400000;
    return is_finite(numbers, GROUP) ? highest / 127 : NAN; /* of which the logits tell */
}

/* Puts the numbers of a group of columns where they belong in a row of a panel; zeros are behind the matrix's end. */
static void place_group(
    const Matrix *matrix, const Panel *panel, int row, int first, int count, const float numbers[GROUP]) {
    const int wide = panel->count * LANES;
    const int64_t begin = (int64_t)first * wide;
    uint8_t *bytes = (uint8_t *)panel->weights + begin;
    uint16_t *halves = (uint16_t *)panel->weights + begin;
    float *whole = (float *)panel->weights + begin;
    int32_t steps[GROUP];
    switch (matrix->precision) {
    case INT8:
        ((float *)panel->weights)[((matrix->columns + 3) / 4 + first / GROUP) * wide + row] = in_steps(numbers, steps);
        for (int i = 0; i < count; i++) bytes[i / 4 * 4 * wide + row * 4 + i % 4] = (uint8_t)(steps[i] + 128);
        break;
    case BF16:
        for (int i = 0; i < count; i++) halves[i / 2 * 2 * wide + row * 2 + i % 2] = rounded_half(numbers[i]);
        break;
    default:
        for (int i = 0; i < count; i++) whole[i * wide + row] = numbers[i];
    }
}

/* Fills a panel with rows of the parts of a matrix. A group of its columns at a time stays in the nearest cache. */
static void fill_panel(const Matrix *matrix, const Panel *panel, const Tensor *const *tensors, const int *rows) {
    for (int first = 0; first < matrix->columns; first += GROUP) {
        const int count = first + GROUP < matrix->columns ? GROUP : matrix->columns - first;
        float numbers[GROUP] = {0};
        for (int at = 0; at < panel->count * LANES; at++) {
            int row = panel->first * LANES + at, part = 0;
            if (row >= matrix->rows) break;
            while (row >= rows[part]) row -= rows[part++];
            for (int i = 0; i < count; i++) numbers[i] = number(tensors[part], (int64_t)row * matrix->columns + first + i);
            place_group(matrix, panel, at, first, count, numbers);
        }
    }
}

/* Adds panels for some vectors to a share, as few and as even as they can be. */
static void add_panels(Model *model, Matrix *matrix, int share, int first, int end) {
    const size_t sizes[] = {[F32] = 4, [BF16] = 2, [INT8] = 1};
    const int at_once = columns_at_once(matrix->precision);
    const size_t wide = (matrix->columns + at_once - 1) / at_once * at_once * sizes[matrix->precision];
    const size_t groups = (matrix->columns + GROUP - 1) / GROUP;
    const size_t scales = matrix->precision == INT8 ? groups * sizeof(float) : 0;
    for (int count; first < end; first += count) {
        count = even_share(end - first, WIDEST);
        char *weights = room_for_weights(model, share, count * LANES * (wide + scales));
        matrix->panels[matrix->shares[share + 1]++] = (Panel){weights, first, count};
    }
}

/* Cuts a matrix into shares: each of the parts apart, whose rows fill whole vectors. */
static void share_out(Model *model, Matrix *matrix, int parts, const int *rows) {
    for (int share = 0; share < model->rooms; share++) {
        matrix->shares[share + 1] = matrix->shares[share];
        for (int part = 0, before = 0, vectors; part < parts; part++, before += vectors) {
            vectors = (rows[part] + LANES - 1) / LANES;
            const int first = slice(vectors, share, model->rooms), end = slice(vectors, share + 1, model->rooms);
            add_panels(model, matrix, share, before + first, before + end);
        }
    }
}

/* One matrix of the rows of several, whose weights come first, then their biases. */
static void read_matrix(
    Reader *reader, Model *model, Matrix *matrix, int columns, int precision, int parts, const int *rows) {
    const Tensor *tensors[3];
    matrix->columns = columns;
    matrix->precision = precision;
    for (int part = 0; part < parts; part++) {
        matrix->rows += rows[part];
        tensors[part] = take(reader, (int64_t)rows[part] * columns);
        if (tensors[part] == NULL) reader->lacks = 1;
    }
    matrix->vectors = (matrix->rows + LANES - 1) / LANES;
    matrix->panels = calloc((size_t)matrix->vectors, sizeof *matrix->panels);
    matrix->shares = calloc((size_t)model->rooms + 1, sizeof *matrix->shares);
    if (!matrix->panels || !matrix->shares) reader->lacks = 1;
    if (reader->lacks) return;
    if (parts > 1 && has_whole_heads(model)) share_out(model, matrix, parts, rows);
    else share_out(model, matrix, 1, &matrix->rows);
    for (int i = 0; i < matrix->shares[model->rooms]; i++)
        if (matrix->panels[i].weights) fill_panel(matrix, &matrix->panels[i], tensors, rows);
        else reader->lacks = 1;
    for (int part = 0, first = 0; part < parts; first += rows[part++]) {
        const Tensor *tensor = take(reader, rows[part]);
        if (tensor && !matrix->bias) matrix->bias = room(matrix->vectors * LANES, sizeof *matrix->bias);
        for (int row = 0; tensor && matrix->bias && row < rows[part]; row++)
            matrix->bias[first + row] = number(tensor, row);
    }
}

static void read_norm(Reader *reader, Norm *norm, int width) {
    norm->width = width;
    norm->gain = read_numbers(reader, width);
    norm->bias = read_numbers(reader, width);
}

/* Rows of weights, each with its bias behind it. */
static float *read_small(Reader *reader, int rows, int columns) {
    float *weights = read_needed(reader, (int64_t)rows * columns), *biases = read_needed(reader, rows);
    float *joined = room((int64_t)rows * (columns + 1), sizeof *joined);
    if (joined == NULL) reader->lacks = 1;
    for (int row = 0; row < rows && !reader->lacks; row++) {
        memcpy(joined + row * (columns + 1), weights + row * columns, (size_t)columns * sizeof *joined);
        joined[row * (columns + 1) + columns] = biases[row];
    }
    free(weights);
    free(biases);
    return joined;
}

static void read_ngrams(Reader *reader, const Config *config, NGrams *ngrams) {
    const int width = config->d_model, order = config->ngram_order;
    ngrams->trust = read_small(reader, 1, width);
    ngrams->share = read_small(reader, 2, width);
    ngrams->strength = read_small(reader, order, width);
    ngrams->worth = read_needed(reader, LONGEST_MATCH + 1);
    ngrams->variety = read_needed(reader, order);
    float *worth = read_needed(reader, 1), *distance = read_needed(reader, 1);
    if (worth) ngrams->match_worth = *worth;
    if (distance) ngrams->match_distance = *distance;
    free(worth);
    free(distance);
    if (reader->lacks || reader->end - reader->next < 4) {
        reader->lacks = 1;
        return;
    }
    const Tensor *contexts = reader->next++, *widths = reader->next++, *tokens = reader->next++, *counts = reader->next++;
    const int64_t count = ngrams->count = contexts->count, entries = tokens->count;
    ngrams->contexts = room(count, sizeof *ngrams->contexts);
    ngrams->begins = room(count + 1, sizeof *ngrams->begins);
    ngrams->totals = room(count, sizeof *ngrams->totals);
    ngrams->varieties = room(count, sizeof *ngrams->varieties);
    ngrams->guesses = room(count, sizeof *ngrams->guesses);
    ngrams->tokens = room(entries, sizeof *ngrams->tokens);
    ngrams->counts = room(entries, sizeof *ngrams->counts);
    if (!ngrams->contexts || !ngrams->begins || !ngrams->totals || !ngrams->varieties || !ngrams->guesses || !ngrams->tokens ||
        !ngrams->counts || contexts->kind != I64 || widths->kind < I16 || tokens->kind < I16 || widths->count != count ||
        counts->count != entries) {
        reader->lacks = 1;
        return;
    }
    for (int64_t entry = 0; entry < entries; entry++) {
        ngrams->tokens[entry] = (int16_t)whole_number(tokens, entry);
        /* as the tables of model/ngrams.py hold them */
        ngrams->counts[entry] = widened(rounded_half(number(counts, entry)));
        if (ngrams->tokens[entry] < 0 || ngrams->tokens[entry] >= config->vocab_size) reader->lacks = 1;
    }
    for (int64_t node = 0, entry = 0; node < count; node++) {
        ngrams->contexts[node] = whole_number(contexts, node);
        ngrams->begins[node] = entry;
        const int64_t width = whole_number(widths, node);
        if (width < 0 || width > entries - entry) {
            reader->lacks = 1;
            return;
        }
        const int64_t end = entry + width;
        int different = 0;
        float most = 0;
        for (; entry < end; entry++) {
            if (ngrams->counts[entry] > most) {
                most = ngrams->counts[entry];
                ngrams->guesses[node].token = ngrams->tokens[entry];
            }
            ngrams->totals[node] += ngrams->counts[entry];
            different += ngrams->counts[entry] > 0;
        }
        ngrams->varieties[node] = log1pf((float)different);
        ngrams->guesses[node].kind = different ? kind_of_share(most / ngrams->totals[node]) : -1;
        ngrams->begins[node + 1] = end;
    }
}

/* place · base^(−2k/width), in f32, as model/layers.py has it. */
static float angle(int place, int k, int width, double base) { return (float)(place * exp(-2 * k * log(base) / width)); }

static void make_tables(Model *model, const Config *config, Reader *reader) {
    const int half = model->d_head / 2, width = config->d_model;
    if (config->position == ROTARY) {
        model->cosine = room((int64_t)config->context * half, sizeof *model->cosine);
        model->sine = room((int64_t)config->context * half, sizeof *model->sine);
        if (!model->cosine || !model->sine) reader->lacks = 1;
        for (int place = 0; place < config->context && !reader->lacks; place++)
            for (int k = 0; k < half; k++) {
                float turned = angle(place, k, model->d_head, config->rotary_base);
                model->cosine[(int64_t)place * half + k] = cosf(turned);
                model->sine[(int64_t)place * half + k] = sinf(turned);
            }
    } else if (config->position == SINUSOIDAL) {
        model->positions = room((int64_t)config->context * width, sizeof *model->positions);
        if (!model->positions) reader->lacks = 1;
        for (int place = 0; place < config->context && !reader->lacks; place++)
            for (int i = 0; i < width; i++) {
                float turned = angle(place, i / 2, width, 10000);
                model->positions[(int64_t)place * width + i] = i % 2 ? cosf(turned) : sinf(turned);
            }
    }
}

static void read_layers(Reader *reader, Model *model, const Config *config) {
    const int width = config->d_model, keys = config->n_kv_head * model->d_head, precision = config->precision;
    for (int i = 0; i < config->n_layer && !reader->lacks; i++) {
        Layer *layer = &model->layers[i];
        read_norm(reader, &layer->before_attention, width);
        read_matrix(
            reader, model, &layer->query_key_value, width, precision, 3,
            (int[]){config->n_head * model->d_head, keys, keys});
        if (config->output_projection) read_matrix(reader, model, &layer->output, width, precision, 1, &width);
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
    pthread_mutex_lock(&model->lock);
    model->is_ending = 1;
    pthread_cond_broadcast(&model->work_is_there);
    pthread_mutex_unlock(&model->lock);
    for (int i = 0; i < model->started; i++) pthread_join(model->workers[i], NULL);
    pthread_mutex_destroy(&model->lock);
    pthread_cond_destroy(&model->work_is_there);
    for (int i = 0; model->layers && i < model->config.n_layer; i++) {
        Layer *layer = &model->layers[i];
        free_norm(&layer->before_attention);
        free_norm(&layer->before_feed_forward);
        for (Matrix *matrix = &layer->query_key_value; matrix <= &layer->down; matrix++) free_matrix(matrix);
    }
    for (int i = 0; model->earlier && i < model->config.earlier_tokens; i++) free(model->earlier[i]);
    for (int i = 0; model->quantized && i < model->rooms; i++) {
        free(model->quantized[i].values);
        free(model->quantized[i].scales);
        free(model->quantized[i].offsets);
    }
    free_norm(&model->norm);
    free_matrix(&model->head);
    for (int i = 0; model->chunks && i < model->rooms; i++)
        while (model->chunks[i]) {
            Chunk *before = model->chunks[i]->before;
            free(model->chunks[i]);
            model->chunks[i] = before;
        }
    NGrams *ngrams = &model->ngrams;
    void *rooms[] = {
        ngrams->trust, ngrams->share, ngrams->strength, ngrams->worth, ngrams->variety, ngrams->contexts,
        ngrams->begins, ngrams->tokens, ngrams->counts, ngrams->totals, ngrams->varieties, ngrams->guesses, model->embedding,
        model->earlier, model->pairs, model->positions, model->cosine, model->sine, model->layers, model->x,
        model->mixed, model->attended, model->hidden, model->gated, model->last, model->logits,
        model->quantized, model->workers, model->arrivals, model->chunks, model};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) free(rooms[i]);
}

static void make_room(Model *model, const Config *config, int threads, Reader *reader) {
    const int mixed = (config->n_head + 2 * config->n_kv_head) * model->d_head + LANES;
    model->x = room((int64_t)MOST_ROWS * model->stride, sizeof(float));
    model->mixed = room((int64_t)MOST_ROWS * mixed, sizeof(float));
    model->attended = room((int64_t)MOST_ROWS * model->stride, sizeof(float));
    model->hidden = room((int64_t)MOST_ROWS * (config->d_ff + LANES), sizeof(float));
    model->gated = room((int64_t)MOST_ROWS * (config->d_ff + LANES), sizeof(float));
    model->last = room((int64_t)threads * MOST_ROWS * model->stride, sizeof(float));
    model->logits = room((int64_t)MOST_ROWS * (config->vocab_size + LANES), sizeof(float));
    model->workers = calloc((size_t)threads, sizeof *model->workers);
    model->arrivals = room(threads, sizeof *model->arrivals);
    model->quantized = calloc((size_t)threads, sizeof *model->quantized);
    const int64_t widest = config->d_model > config->d_ff ? config->d_model : config->d_ff;
    for (int i = 0; model->quantized && i < threads; i++) {
        Quantized *rows = &model->quantized[i];
        rows->values = room(MOST_ROWS * (widest + 4), sizeof *rows->values);
        rows->scales = room(MOST_ROWS * (widest / GROUP + 1), sizeof *rows->scales);
        rows->offsets = room(MOST_ROWS * (widest / GROUP + 1), sizeof *rows->offsets);
        if (!rows->values || !rows->scales || !rows->offsets) reader->lacks = 1;
    }
    if (!model->quantized || !model->x || !model->mixed || !model->attended || !model->hidden || !model->gated ||
        !model->last || !model->logits || !model->workers || !model->arrivals)
        reader->lacks = 1;
}

/* A model, or NULL where the tensors are not what the configuration needs, or there is no room. Of its threads each call
   says how many take part. */
Model *native_new_model(const Config *config, const Tensor *tensors, int64_t count, int threads) {
    Reader reader = {tensors, tensors + count, 0};
    Model *model = calloc(1, sizeof *model);
    if (model == NULL) return NULL;
    const int64_t width = config->d_model, vocab_size = config->vocab_size;
    model->config = *config;
    model->threads = 1;
    begin_drafting(&model->drafting);
    pthread_mutex_init(&model->lock, NULL);
    pthread_cond_init(&model->work_is_there, NULL);
    model->d_head = config->d_model / config->n_head;
    model->stride = (config->d_model + LANES - 1) / LANES * LANES;
    model->wide_head = (model->d_head + LANES - 1) / LANES * LANES;
    model->slots = (config->context + LANES - 1) / LANES * LANES;
    model->block_size = (int64_t)LANES * (model->d_head + model->wide_head);
    model->block_step = config->n_layer * model->block_size;
    model->head_step = model->slots / LANES * model->block_step;
    model->layers = calloc((size_t)config->n_layer + 1, sizeof *model->layers);
    model->earlier = calloc((size_t)config->earlier_tokens + 1, sizeof *model->earlier);
    model->chunks = calloc((size_t)threads, sizeof *model->chunks);
    model->rooms = threads;
    if (!model->layers || !model->earlier || !model->chunks) reader.lacks = 1;
    model->embedding = read_needed(&reader, vocab_size * width);
    for (int i = 0; i < config->earlier_tokens && !reader.lacks; i++)
        model->earlier[i] = read_needed(&reader, (vocab_size + 1) * width);
    if (config->token_pairs) model->pairs = read_needed(&reader, (vocab_size + 1) * vocab_size * width);
    if (config->position == LEARNED) model->positions = read_needed(&reader, config->context * width);
    make_tables(model, config, &reader);
    if (!reader.lacks) read_layers(&reader, model, config);
    if (config->final_norm) read_norm(&reader, &model->norm, config->d_model);
    if (!reader.lacks)
        read_matrix(&reader, model, &model->head, config->d_model, config->precision, 1, &config->vocab_size);
    if (config->ngram_order && !reader.lacks) read_ngrams(&reader, config, &model->ngrams);
    if (!reader.lacks) make_room(model, config, threads, &reader);
    if (reader.lacks || reader.next != reader.end) {
        native_free_model(model);
        return NULL;
    }
    for (; model->started < threads - 1; model->started++) {
        void **handed = malloc(2 * sizeof *handed);
        if (handed == NULL) break;
        handed[0] = model;
        handed[1] = (void *)(intptr_t)(model->started + 1);
        if (pthread_create(&model->workers[model->started], NULL, work, handed) != 0) {
            free(handed);
            break;
        }
    }
    return model;
}
