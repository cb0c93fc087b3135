/* Drafts: the next few tokens are guessed, and the model checks all of them in one pass (Leviathan et al. 2023, with a
   table in the place of a small model). Each place has its own random number, so that what is drawn with drafts is what is
   drawn without: a draft is right, and its pass saved, or wrong, and let go.

   Guesses are what followed the last 5, 3 or 2 tokens when they were met last, in any sequence; where a model counts n-grams,
   also what mostly follows the longest context that it knows. How often each kind of guess is right, and how long passes
   take, is measured as it runs: a draft joins a pass where that should make more tokens a second. Whether it does is measured
   as well, in blocks of passes with and without: where it does not gain, there is no guessing. */

#include <stdint.h>
#include <string.h>

enum { MOST_DRAFTS = 7, ORDERS = 3, MOST_MET = 3, SHARES = 8, KINDS = ORDERS * (MOST_MET + 1) + SHARES };
enum { ENTRIES = 1 << 13, MOST_PASS = 16, BLOCK = 64 };
enum { NEVER, WHERE_IT_GAINS, ALWAYS };

#define LEAST_CHANCE 0.3 /* of being right, below which there is no guessing on */

static const int DRAFT_ORDERS[ORDERS] = {5, 3, 2};

typedef struct {
    uint32_t check; /* of the tokens before */
    int32_t next;   /* −1: never met */
    int32_t met;    /* how often the same followed once more */
} Met;

typedef struct {
    int32_t token, kind;
} Guess;

typedef struct {
    Met met[ORDERS][ENTRIES];
    float right[KINDS];           /* the share of guesses that were, of late */
    double seconds[MOST_PASS + 1]; /* of a pass of so many rows */
    int timed[MOST_PASS + 1];     /* how often that was measured */
    double tokens_made[2], seconds_taken[2]; /* without guesses, with them; of late */
    int mode, forgotten, is_on;
    int64_t passes, proposed, kept;
} Drafting;

static void begin_drafting(Drafting *drafting) {
    memset(drafting, 0, sizeof *drafting);
    drafting->mode = WHERE_IT_GAINS;
    drafting->is_on = 1;
    for (int order = 0; order < ORDERS; order++)
        for (int i = 0; i < ENTRIES; i++) drafting->met[order][i].next = -1;
    for (int kind = 0; kind < KINDS; kind++) drafting->right[kind] = 0.5f;
}

static Met *find_met(Drafting *drafting, int order, const int32_t *ids, int count, uint32_t *check) {
    uint64_t hash = 0;
    for (int back = 1; back <= DRAFT_ORDERS[order]; back++)
        hash = (hash ^ (uint64_t)(uint32_t)ids[count - back]) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 29;
    *check = (uint32_t)(hash >> 32);
    return &drafting->met[order][hash % ENTRIES];
}

/* Notes what followed the tokens before the last of `count`. */
static void note(Drafting *drafting, const int32_t *ids, int count) {
    for (int order = 0; order < ORDERS; order++) {
        uint32_t check;
        if (count - 1 < DRAFT_ORDERS[order]) continue;
        Met *met = find_met(drafting, order, ids, count - 1, &check);
        if (met->check == check && met->next == ids[count - 1]) met->met += met->met < MOST_MET;
        else *met = (Met){check, ids[count - 1], 0};
    }
}

/* What followed when the last tokens were met before; the kind of the guess is −1 where they never were. */
static Guess guess(Drafting *drafting, const int32_t *ids, int count) {
    for (int order = 0; order < ORDERS; order++) {
        uint32_t check;
        if (count < DRAFT_ORDERS[order]) continue;
        const Met *met = find_met(drafting, order, ids, count, &check);
        if (met->next >= 0 && met->check == check) return (Guess){met->next, order * (MOST_MET + 1) + met->met};
    }
    return (Guess){0, -1};
}

/* The kind of a guess that has followed with this share, as far as was counted. */
static int kind_of_share(float share) {
    const int step = (int)(share * SHARES);
    return ORDERS * (MOST_MET + 1) + (step < SHARES ? step : SHARES - 1);
}

static void judge(Drafting *drafting, Guess guess, int was_right) {
    drafting->right[guess.kind] += ((float)was_right - drafting->right[guess.kind]) / 32;
}

/* How long a pass of so many rows takes: where that was hardly measured, hopefully little, so that it will be. */
static double expected_seconds(const Drafting *drafting, int rows) {
    if (drafting->timed[rows] >= 3) return drafting->seconds[rows];
    int fewer = rows - 1;
    while (fewer > 1 && drafting->timed[fewer] < 3) fewer--;
    return drafting->seconds[fewer] * (1 + 0.1 * (rows - fewer));
}

/* After each block of passes: goes on as it is quicker; in every 16th block the other way, to see. */
static void choose_way(Drafting *drafting) {
    double *tokens = drafting->tokens_made, *seconds = drafting->seconds_taken;
    if (seconds[0] > 0 && seconds[1] > 0) {
        const int with_guesses = tokens[1] * seconds[0] > tokens[0] * seconds[1];
        const int tries_other = drafting->passes / BLOCK % 16 == 0;
        drafting->is_on = with_guesses != tries_other;
    } else {
        drafting->is_on = seconds[1] == 0;
    }
    tokens[drafting->is_on] /= 2;
    seconds[drafting->is_on] /= 2;
}

/* Takes a measurement of a pass: soon where it was quicker, as what else the machine does can only make it slower. */
static void note_pass(Drafting *drafting, int rows, int tokens, double seconds) {
    double *mean = &drafting->seconds[rows];
    if (drafting->timed[rows]++ == 0) *mean = seconds;
    else *mean += (seconds < *mean ? 0.5 : 0.05) * (seconds - *mean);
    drafting->tokens_made[drafting->is_on] += tokens;
    drafting->seconds_taken[drafting->is_on] += seconds < 2 * *mean ? seconds : 2 * *mean;
    if (++drafting->passes % BLOCK) return;
    choose_way(drafting);
    /* From time to time what passes of some size take is forgotten, and measured anew. */
    if (drafting->passes / BLOCK % 4 == 0) drafting->timed[2 + drafting->forgotten++ % (MOST_PASS - 1)] = 0;
}

/* Whether so many guesses, if all of them were right, would make more tokens a second. */
static int can_gain(const Drafting *drafting, int count, int rows, double tokens) {
    if (drafting->mode == ALWAYS) return 1;
    if (rows >= MOST_PASS || drafting->timed[rows] < 3) return 0;
    const double rate = tokens / drafting->seconds[rows];
    for (int i = 1; i <= count && rows + i <= MOST_PASS; i++)
        if ((tokens + i) / expected_seconds(drafting, rows + i) > rate) return 1;
    return 0;
}

/* How many of some guesses to check in a pass that has `rows` and makes `tokens` already. */
static int count_worthwhile(const Drafting *drafting, const Guess *guesses, int count, int rows, double *tokens) {
    int best = 0;
    double made = *tokens, chance = 1, rate;
    if (drafting->mode == NEVER || rows >= MOST_PASS) return 0;
    if (count > MOST_PASS - rows) count = MOST_PASS - rows;
    if (drafting->mode == ALWAYS) return count;
    if (drafting->timed[rows] < 3 || drafting->passes % 64 == 0) return 0; /* how it goes without */
    rate = made / drafting->seconds[rows];
    for (int i = 0; i < count; i++) {
        chance *= drafting->right[guesses[i].kind];
        made += chance;
        if (made / expected_seconds(drafting, rows + i + 1) <= rate) continue;
        rate = made / expected_seconds(drafting, rows + i + 1);
        best = i + 1;
        *tokens = made;
    }
    return best;
}
