/* Speculative decoding: guess the next few tokens and check all of them in one pass (Leviathan et al. 2023, with lookup
   tables in place of a small model). Each position has its own random number, so that the tokens sampled are the same with
   drafts and without: a correct draft saves a pass, and a wrong one is dropped.

   A guess is the token that followed the last 5, 3 or 2 tokens when they last occurred in any sequence; in a model with
   n-gram counts, also the most frequent follower of the longest context counted. The accuracy of each kind of guess and the
   duration of passes are measured while the engine runs: a draft joins a pass if that should increase tokens per second.
   Blocks of passes with and without drafts are compared as well, and drafting pauses where it does not pay. */

#include <stdint.h>
#include <string.h>

enum { MAX_DRAFTS = 7, ORDERS = 3, MAX_REPEATS = 3, FRACTIONS = 8, KINDS = ORDERS * (MAX_REPEATS + 1) + FRACTIONS };
enum { MAX_PASS_ROWS = 16, BLOCK = 64 };
#ifdef __wasm__ /* of a page: memory is scarce, and it has one conversation */
enum { ENTRIES = 1 << 10 };
#else
enum { ENTRIES = 1 << 13 };
#endif
enum { NEVER, AUTO, ALWAYS };

#define MIN_CHANCE 0.3 /* of a sequence of guesses; less likely ones are not extended */

static const int DRAFT_ORDERS[ORDERS] = {5, 3, 2};

typedef struct {
    uint32_t check;  /* hash of the tokens before, to detect collisions */
    int32_t next;    /* −1: none yet */
    int32_t repeats; /* how often it followed again, up to MAX_REPEATS */
} Follower;

typedef struct {
    int32_t token, kind;
} Guess;

typedef struct {
    Follower followers[ORDERS][ENTRIES];
    float accuracy[KINDS];                   /* of each kind of guess, as a moving average */
    double seconds[MAX_PASS_ROWS + 1];       /* of a pass with that many rows */
    int times_measured[MAX_PASS_ROWS + 1];   /* number of measurements */
    double tokens_made[2], seconds_taken[2]; /* without drafts, with drafts; halved now and then */
    int mode, next_forgotten, is_drafting;
    int64_t passes, proposed, accepted;
} Drafting;

static void begin_drafting(Drafting *drafting) {
    memset(drafting, 0, sizeof *drafting);
    drafting->mode = AUTO;
    drafting->is_drafting = 1;
    for (int order = 0; order < ORDERS; order++)
        for (int i = 0; i < ENTRIES; i++) drafting->followers[order][i].next = -1;
    for (int kind = 0; kind < KINDS; kind++) drafting->accuracy[kind] = 0.5f;
}

static Follower *find_follower(Drafting *drafting, int order, const int32_t *ids, int count, uint32_t *check) {
    uint64_t hash = 0;
    for (int back = 1; back <= DRAFT_ORDERS[order]; back++)
        hash = (hash ^ (uint64_t)(uint32_t)ids[count - back]) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 29;
    *check = (uint32_t)(hash >> 32);
    return &drafting->followers[order][hash % ENTRIES];
}

/* Record which token followed those before the last of `count`. */
static void record_token(Drafting *drafting, const int32_t *ids, int count) {
    for (int order = 0; order < ORDERS; order++) {
        uint32_t check;
        if (count - 1 < DRAFT_ORDERS[order]) continue;
        Follower *follower = find_follower(drafting, order, ids, count - 1, &check);
        if (follower->check == check && follower->next == ids[count - 1]) follower->repeats += follower->repeats < MAX_REPEATS;
        else *follower = (Follower){check, ids[count - 1], 0};
    }
}

/* Guess the token that followed the last ones when they last occurred; kind −1 if they never did. */
static Guess guess(Drafting *drafting, const int32_t *ids, int count) {
    for (int order = 0; order < ORDERS; order++) {
        uint32_t check;
        if (count < DRAFT_ORDERS[order]) continue;
        const Follower *follower = find_follower(drafting, order, ids, count, &check);
        if (follower->next >= 0 && follower->check == check)
            return (Guess){follower->next, order * (MAX_REPEATS + 1) + follower->repeats};
    }
    return (Guess){0, -1};
}

/* Return the kind of a guess whose token followed its context with this relative frequency. */
static int kind_of_fraction(float fraction) {
    const int step = (int)(fraction * FRACTIONS);
    return ORDERS * (MAX_REPEATS + 1) + (step < FRACTIONS ? step : FRACTIONS - 1);
}

static void record_guess(Drafting *drafting, Guess guess, int was_right) {
    drafting->accuracy[guess.kind] += ((float)was_right - drafting->accuracy[guess.kind]) / 32;
}

/* Return the expected duration of a pass with that many rows. Where it was hardly measured the estimate is optimistic, so
   that it will be measured. */
static double expected_seconds(const Drafting *drafting, int rows) {
    if (drafting->times_measured[rows] >= 3) return drafting->seconds[rows];
    int fewer = rows - 1;
    while (fewer > 1 && drafting->times_measured[fewer] < 3) fewer--;
    return drafting->seconds[fewer] * (1 + 0.1 * (rows - fewer));
}

/* After each block of passes, choose the faster way; in every 16th block the other one, to measure it. */
static void choose_faster_way(Drafting *drafting) {
    double *tokens = drafting->tokens_made, *seconds = drafting->seconds_taken;
    if (seconds[0] > 0 && seconds[1] > 0) {
        const int drafts_pay = tokens[1] * seconds[0] > tokens[0] * seconds[1];
        const int tries_other = drafting->passes / BLOCK % 16 == 0;
        drafting->is_drafting = drafts_pay != tries_other;
    } else {
        drafting->is_drafting = seconds[1] == 0;
    }
    tokens[drafting->is_drafting] /= 2;
    seconds[drafting->is_drafting] /= 2;
}

/* Record the duration of a pass. A shorter one counts more: other programs can only make passes slower. */
static void record_pass(Drafting *drafting, int rows, int tokens, double seconds) {
    double *mean = &drafting->seconds[rows];
    if (drafting->times_measured[rows]++ == 0) *mean = seconds;
    else *mean += (seconds < *mean ? 0.5 : 0.05) * (seconds - *mean);
    drafting->tokens_made[drafting->is_drafting] += tokens;
    drafting->seconds_taken[drafting->is_drafting] += seconds < 2 * *mean ? seconds : 2 * *mean;
    if (++drafting->passes % BLOCK) return;
    choose_faster_way(drafting);
    /* Now and then, measure passes of one size anew. */
    if (drafting->passes / BLOCK % 4 == 0) drafting->times_measured[2 + drafting->next_forgotten++ % (MAX_PASS_ROWS - 1)] = 0;
}

/* Whether up to `count` guesses, if all were correct, would increase tokens per second. */
static int can_gain(const Drafting *drafting, int count, int rows, double tokens) {
    if (drafting->mode == ALWAYS) return 1;
    if (rows >= MAX_PASS_ROWS || drafting->times_measured[rows] < 3) return 0;
    const double rate = tokens / drafting->seconds[rows];
    for (int i = 1; i <= count && rows + i <= MAX_PASS_ROWS; i++)
        if ((tokens + i) / expected_seconds(drafting, rows + i) > rate) return 1;
    return 0;
}

/* Return how many guesses to check in a pass that already has `rows` and generates `tokens`. */
static int count_worthwhile(const Drafting *drafting, const Guess *guesses, int count, int rows, double *tokens) {
    int best = 0;
    double expected = *tokens, chance = 1, rate;
    if (drafting->mode == NEVER || rows >= MAX_PASS_ROWS) return 0;
    if (count > MAX_PASS_ROWS - rows) count = MAX_PASS_ROWS - rows;
    if (drafting->mode == ALWAYS) return count;
    /* every 64th pass is measured without drafts */
    if (drafting->times_measured[rows] < 3 || drafting->passes % 64 == 0) return 0;
    rate = expected / drafting->seconds[rows];
    for (int i = 0; i < count; i++) {
        chance *= drafting->accuracy[guesses[i].kind];
        expected += chance;
        if (expected / expected_seconds(drafting, rows + i + 1) <= rate) continue;
        rate = expected / expected_seconds(drafting, rows + i + 1);
        best = i + 1;
        *tokens = expected;
    }
    return best;
}
