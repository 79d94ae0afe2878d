/* choice.c: tries the ways in turn, takes the fastest, and tries the others again when that costs little.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/choice.h"

#include "base/util.h"

#define TRIES        3 /* of each way at first, in turn */
#define TRIES_WINDOW 2 /* ... each a whole burst, and in a row: see before() */
/* ... and where messages cross, so many in a row, the first of which is not judged (burst_close()). The first way gets cheaper
 * over dozens of bursts, as both ranks' buffers find their places in the caches: the others are not tried before that. */
#define TRIES_CROSS 3
#define CROSS_LATE  32
#define TRIES_ECHO  1 /* a whole round: the other rank follows with the next message */
/* A way that is so far behind the best in a neighbouring size is not tried at first, in percent of the best. To try
 * a window takes long: there a way must be near. */
#define FAR        200
#define FAR_WINDOW 125
#define FAR_CROSS  105
/* ... and of messages that no cache holds one costs like the next, by the byte. */
#define FAR_LARGE    110
#define LARGE_WINDOW (1u << 20)
#define BURST_MOST   64 /* messages */
#define BURST_BYTES \
    (16u << 20)        /* ... or so much, if it is complete: large messages follow each other closely */
#define PAUSE_PART 8   /* a pause is longer than this part of what the last message cost */
#define PAUSE_NS   500 /* ... and than this */
#define LOOK_PART  128 /* of the time spent goes into looking at other ways */
/* Lone messages and echoes go one way by so many. The first ones after another way find the data in the wrong caches and may take
 * three times as long, so a way is judged by the second half of its round. */
#define ROUND 8
/* Echoes: a round is longer, as the other rank has to follow. One message in ten was seen to take twice as long as others, whichever
 * way it went, so the dearest quarter of those that count is left out. */
#define ROUND_ECHO (4 * CHOICE_DROPS)
#define LOOK_GAP   32 /* messages or bursts, at least, between two looks */
#define LOOK_LONG \
    1024 /* bursts, or rounds of echoes, after which nothing else is looked at before this way */
/* ... after the first tries, twice as many each time: the first impression may be wrong */
#define LOOK_SOON        12
#define LOOK_SOON_WINDOW 4
#define LOOKS_SOON       2
#define AGAIN            12 /* bursts: the memory is warm by then */
#define LEVEL_PART       4 /* the best has become cheaper by one part in so many: the others are tried again */
#define LEVEL_FALLS \
    2 /* ... so many times: what changes later is looked at from time to time, like everything */
/* ... or, of echoes, dearer by one part in so many: whether the others have, too, is not known */
#define LEVEL_RISE 2
#define DEAREST    4 /* times the best: the price of a look; the first impression may have been far off */
/* A look at another way costs so many bursts or messages besides: the caches are in its state then. Without this, two ways
 * that cost the same would look at each other all the time, and each would be slower than alone. */
#define AFTER_WINDOW 8
#define AFTER_LONE   4
#define AFTER_LARGE  16           /* lone messages, of at least */
#define LARGE        (256u << 10) /* ... so many bytes: their data fills the caches */
#define RUN_PART \
    32 /* a burst is clearly cheaper than the one before by one part in so many: the next goes the same way, */
#define RUN_MOST  8   /* at most so many, */
#define FAR_RUN   150 /* unless it costs so much, in percent of the best; */
#define FAR_FIRST 300 /* ... the first one after another way */
/* Bursts: what is cheaper than usual counts for one part in so many, and what is dearer. What disturbs a burst makes it dearer. */
#define FALL_WINDOW    4
#define RISE_WINDOW    16
#define CLEARLY        32   /* cheaper by one part in so many: less may be chance */
#define OUTLIER        3    /* times what is usual: the rest was no matter of the way but of the processors */
#define STALL_MESSAGES 2048 /* messages without stalls that are taken for granted at the start */
#define STALL_FEW      32   /* ... for the price of a look, which must not be underrated */
#define STALL_FORGET   16384    /* messages, of all ways, after which stalls count half */
#define STALL_MOST     10000000 /* ns */
#define UNIT           65536u   /* costs are for so many bytes */
#define SMALLEST       4096u
#define MOST           UINT16_MAX

/* Classes have their middle at a power of two, so that sizes near one, which are common, share a class. */
uint8_t choice_size(uint64_t bytes)
{
    uint8_t i = 0;
    for (uint64_t limit = SMALLEST / 2 * 3; i < CHOICE_SIZES - 1 && bytes >= limit; limit *= 2)
        i++;
    return i;
}

static uint8_t round_of(uint8_t flow)
{
    return flow == CHOICE_ECHO ? ROUND_ECHO : ROUND;
}

static struct choice_class *class_of(struct choice *c, const struct choice_ticket *t)
{
    return &c->classes[t->flow][t->size];
}

/* ---- what is expected ---- */

static uint64_t stall_mean(const struct choice_stall *s, uint32_t granted)
{
    return s->ns / (s->messages + granted);
}

/* What a message of this size is expected to cost, in ns. */
static uint64_t expected(const struct choice *c, const struct choice_class *k, uint64_t bytes, int way)
{
    return (uint64_t)k->ways[way].cost * MAX(bytes, 1) / UNIT + stall_mean(&c->stalls[way], STALL_MESSAGES);
}

static int cheapest(const struct choice *c, const struct choice_class *k, uint64_t bytes, unsigned open)
{
    int best = -1;
    for (int w = 0; w < WAYS; w++)
        if (open & WAY_BIT(w) && k->ways[w].samples > 0 &&
            (best < 0 || expected(c, k, bytes, w) < expected(c, k, bytes, best)))
            best = w;
    return best;
}

/* The size nearest to this one that knows the way, the smaller of two; NULL: none does. */
static const struct way_cost *nearest(const struct choice_class *row, int size, int way)
{
    for (int d = 1; d < CHOICE_SIZES; d++)
        for (int i = size - d; i <= size + d; i += 2 * d)
            if (i >= 0 && i < CHOICE_SIZES && row[i].ways[way].samples > 0)
                return &row[i].ways[way];
    return NULL;
}

/* A size that is new begins with what is known of its neighbours, so that a way that is far behind there is not
 * tried. */
static void inherit(struct choice *c, uint8_t flow, uint8_t size)
{
    struct choice_class *k = &c->classes[flow][size];
    k->used = true;
    for (int w = 0; w < WAYS; w++) {
        const struct way_cost *from = nearest(c->classes[flow], size, w);
        if (from)
            k->ways[w] = (struct way_cost){.cost = from->cost, .samples = 1, .inherited = true};
    }
}

/* ---- asking ---- */

/* Of two ways, is the first to be tried before the second? What promises more by its neighbour goes first: a short
 * run may never come to the others. A burst whose buffers were moved another way before finds them in the wrong caches and
 * may take more than twice as long, so in windows a way is tried to the end before the next. */
static bool before(const struct way_cost *a, const struct way_cost *b, bool window)
{
    if (a->tried != b->tried)
        return window ? a->tried > b->tried : a->tried < b->tried;
    return a->inherited && b->inherited && a->cost < b->cost;
}

/* The way that has been tried least, if not often enough; or -1. */
static int untried(const struct choice_class *k, unsigned open, enum way first, int best,
                   const struct choice_ticket *t)
{
    static const uint16_t tries[] = {TRIES, TRIES_WINDOW, TRIES_CROSS, TRIES_ECHO};
    static const uint8_t far[] = {FAR, FAR_WINDOW, FAR_CROSS, FAR};
    const uint8_t flow = t->flow;
    const bool large = flow == CHOICE_WINDOW && k->falls == 0 && t->bytes >= LARGE_WINDOW;
    const uint64_t limit = (uint64_t)k->ways[best].cost * (large ? FAR_LARGE : far[flow]) / 100;
    const int wanted =
        k->falls > 0 && flow == CHOICE_LONE ? 1 : tries[flow]; /* the first: of a whole round */
    const bool early = flow == CHOICE_CROSS && k->burst.number < CROSS_LATE;
    int least = -1;
    for (int i = -1; i < WAYS; i++) {
        int w = i < 0 ? (int)first : i;
        const struct way_cost *it = &k->ways[w];
        if (open & WAY_BIT(w) && it->tried < wanted && !(it->inherited && it->cost > limit) &&
            !(early && w != (int)first) &&
            (least < 0 || before(it, &k->ways[least], !choice_one_by_one(flow))))
            least = w;
    }
    return least;
}

/* What it costs to send `messages` another way once more; UINT64_MAX: it was looked at not long ago. */
static uint64_t look_price(const struct choice *c, const struct choice_class *k,
                           const struct choice_ticket *t, int way, uint32_t messages)
{
    const uint64_t bytes = t->bytes;
    const int tries = t->flow == CHOICE_ECHO ? TRIES_ECHO : TRIES;
    const struct way_cost *o = &k->ways[way];
    const uint32_t limit = messages == 1 ? FAR_RUN : FAR_WINDOW;
    bool near = o->samples > 0 && o->cost < (uint64_t)k->ways[k->best].cost * limit / 100;
    const int looks = messages == 1 && bytes >= LARGE ? 1 : LOOKS_SOON;
    bool soon = !o->inherited && o->samples < tries + looks && near;
    uint32_t first = messages == 1 ? LOOK_SOON : LOOK_SOON_WINDOW;
    uint32_t gap = soon ? first << MAX(o->samples - tries, 0) : LOOK_GAP;
    if (k->asked - o->last < gap * messages)
        return UINT64_MAX;
    uint64_t ours = expected(c, k, bytes, k->best), it = expected(c, k, bytes, way);
    it = MIN(it, DEAREST * ours) + stall_mean(&c->stalls[way], STALL_FEW);
    uint64_t price = it > ours && !soon ? (it - ours) * (messages > 1 ? 2 * messages : round_of(t->flow)) : 0;
    const uint32_t after = messages > 1 ? AFTER_WINDOW * messages : bytes < LARGE ? AFTER_LONE : AFTER_LARGE;
    return price + (!soon && !o->inherited ? after * ours : 0);
}

/* The way that was not looked at for longest, of those whose look costs at most so much; or -1. */
static int oldest_look(const struct choice *c, const struct choice_class *k, const struct choice_ticket *t,
                       unsigned open, uint32_t messages, uint64_t most)
{
    int oldest = -1;
    for (int w = 0; w < WAYS; w++)
        if (w != k->best && open & WAY_BIT(w) &&
            (most == UINT64_MAX || look_price(c, k, t, w, messages) <= most) &&
            (oldest < 0 || k->asked - k->ways[w].last > k->asked - k->ways[oldest].last))
            oldest = w;
    return oldest;
}

/* Another way, when what has been saved for it allows: the one that was not looked at for longest. In windows and among echoes
 * a look may take long to save for, and so one that can be paid comes first, until the other has waited very long. */
static int look_again(const struct choice *c, struct choice_class *k, const struct choice_ticket *t,
                      unsigned open, uint32_t messages)
{
    int way = oldest_look(c, k, t, open, messages, UINT64_MAX);
    const uint32_t look = t->flow == CHOICE_ECHO ? ROUND_ECHO : messages;
    if (way >= 0 && look > 1 && k->asked - k->ways[way].last < LOOK_LONG * look)
        way = oldest_look(c, k, t, open, messages, k->saved);
    const uint64_t price = way < 0 ? 0 : look_price(c, k, t, way, messages);
    if (way < 0 || price > k->saved)
        return -1;
    k->saved -= price;
    k->ways[way].last = k->asked; /* not again before it was told about */
    return way;
}

/* The others have become cheaper or dearer as the best has. */
static void others_alike(struct choice_class *k, int best, uint32_t then)
{
    for (int w = 0; then && w < WAYS; w++)
        if (w != best && k->ways[w].samples > 0)
            k->ways[w].cost = (uint32_t)MIN((uint64_t)k->ways[w].cost * k->ways[best].cost / then,
                                            UINT32_MAX / (2 * OUTLIER));
}

/* The first messages of a size find memory and caches cold, whichever way they go, and the way that comes last may look best
 * for it. When the best has become much cheaper than it was when the others were tried, they are taken to have become cheaper
 * alike, and those that are near by that are tried again. */
static bool level_moved(struct choice_class *k, int best, uint8_t flow)
{
    const uint32_t now = MAX(k->ways[best].cost, 1u), then = k->level;
    const bool rose = flow == CHOICE_ECHO && now > then + then / LEVEL_RISE;
    if (then && ((now >= then - then / LEVEL_PART && !rose) || k->falls == LEVEL_FALLS))
        return false;
    k->level = now;
    if (!then)
        return false;
    k->falls++;
    if (flow != CHOICE_ECHO) /* whose costs are kept so */
        others_alike(k, best, then);
    for (int w = 0; w < WAYS; w++)
        if (w != best && k->ways[w].samples > 0) {
            k->ways[w].inherited = true;
            k->ways[w].tried = 0;
        }
    return true;
}

/* The way that windows went first found memory that nobody had touched: if it is behind, but not far, it is tried once more. */
static bool first_again(struct choice_class *k, int best)
{
    if (k->first == 0 || k->burst.number < AGAIN)
        return false;
    struct way_cost *it = &k->ways[k->first - 1];
    const uint64_t percent = (uint64_t)it->cost * 100 / MAX(k->ways[best].cost, 1u);
    k->first = 0;
    if (percent <= FAR_WINDOW || percent > FAR || it->inherited)
        return false;
    *it = (struct way_cost){.cost = k->ways[best].cost, .samples = 1, .inherited = true, .last = it->last};
    return true;
}

/* The best way is closed to these messages, as to memory that cannot be registered, and was not long ago: they say nothing about it,
 * and what is open to them is no better for messages that may choose. */
static bool best_is_closed(const struct choice_class *k, unsigned open, uint32_t messages)
{
    const struct way_cost *it = &k->ways[k->best];
    return !(open & WAY_BIT(k->best)) && it->samples > 0 && k->asked - it->last < LOOK_LONG * messages;
}

static int decide(struct choice *c, const struct choice_ticket *t, unsigned open, enum way first,
                  uint32_t messages)
{
    struct choice_class *k = class_of(c, t);
    if (!k->used)
        inherit(c, t->flow, t->size);
    int best = cheapest(c, k, t->bytes, open);
    int way = untried(k, open, first, MAX(best, 0), t);
    if (way >= 0)
        return way;
    if (best >= 0 && best_is_closed(k, open, messages))
        return best;
    if (best >= 0 && (level_moved(k, best, t->flow) || first_again(k, best)) &&
        (way = untried(k, open, first, best, t)) >= 0)
        return way;
    if (best < 0) /* all of the first ones are still under way */
        return open & WAY_BIT(first) ? (int)first : __builtin_ctz(open);
    bool known = open & WAY_BIT(k->best) && k->ways[k->best].samples > 0;
    uint64_t now = known ? expected(c, k, t->bytes, k->best) : UINT64_MAX;
    if (!known || expected(c, k, t->bytes, best) < now - now / CLEARLY) {
        /* A window's way that is left is looked at soon, as after the first tries: what made it dear may be over. */
        if (known && t->flow == CHOICE_WINDOW)
            k->ways[k->best].samples = MIN(k->ways[k->best].samples, TRIES);
        k->best = (uint8_t)best;
    }
    way = look_again(c, k, t, open, messages);
    return way < 0 ? k->best : way;
}

static bool paused(const struct choice *c, uint64_t ended, uint64_t now)
{
    return now - ended > MAX((uint64_t)PAUSE_NS, c->last_cost / PAUSE_PART);
}

/* A message that can move before the one ahead of it is complete, or right after, is one of a window. After a
 * pause, what came before says what will follow. */
static uint8_t flow_of(struct choice *c, uint8_t size, enum choice_flow flow, uint64_t now)
{
    if (flow != CHOICE_LONE)
        return (uint8_t)flow;
    struct choice_class *k = &c->classes[CHOICE_WINDOW][size];
    if (c->under_way > 0 || (c->ended != 0 && !paused(c, c->ended, now)))
        k->bursty = true;
    else if (k->burst.asked == 1)
        k->bursty = false;
    return k->bursty ? CHOICE_WINDOW : CHOICE_LONE;
}

static void burst_close(struct choice *c, struct choice_class *k, bool cross);
static void stalls_forget(struct choice *c);

static int ask_window(struct choice *c, struct choice_ticket *t, unsigned open, enum way first)
{
    struct choice_class *k = class_of(c, t);
    struct choice_burst *b = &k->burst;
    bool over = b->done == b->asked && (paused(c, b->ended, t->began) || b->bytes >= BURST_BYTES);
    if (b->asked == 0 || b->asked >= BURST_MOST || over || !(open & WAY_BIT(b->way))) {
        /* Crossing messages one by one are one burst or many, as the way is slow or fast. */
        const uint32_t messages = t->flow == CHOICE_CROSS ? BURST_MOST : MAX(b->asked, 1u);
        const uint8_t last = b->way;
        burst_close(c, k, t->flow == CHOICE_CROSS);
        uint8_t way =
            k->run > 0 && open & WAY_BIT(last) ? last : (uint8_t)decide(c, t, open, first, messages);
        if (way != last)
            k->burst_cost = k->run = 0;
        *b = (struct choice_burst){.began = t->began, .number = b->number + 1, .way = way};
        k->ways[way].tried = (uint16_t)MIN(k->ways[way].tried + 1, MOST);
        if (t->flow == CHOICE_WINDOW && b->number == 1)
            k->first = way + 1;
    }
    b->asked++;
    t->number = b->number;
    return b->way;
}

static int ask_lone(struct choice *c, struct choice_ticket *t, unsigned open, enum way first)
{
    struct choice_class *k = class_of(c, t);
    struct choice_round *r = &k->round;
    t->number = c->asked;
    if (r->left > 0 && open == r->open) {
        r->left--;
        return r->way;
    }
    const uint8_t way = (uint8_t)decide(c, t, open, first, 1);
    const bool alone = t->flow == CHOICE_LONE && k->ways[way].tried < TRIES && k->falls == 0;
    const uint8_t all = alone ? 1 : round_of(t->flow), skip = alone || way == r->way ? 0 : all / 2;
    *r = (struct choice_round){.way = way,
                               .open = (uint8_t)open,
                               .left = all - 1,
                               .wanted = all - skip,
                               .skip = skip,
                               .drop = t->flow == CHOICE_ECHO ? (all - skip) / 4 : 0};
    k->ways[way].tried = (uint16_t)MIN(k->ways[way].tried + 1, MOST);
    return way;
}

enum way choice_ask(struct choice *c, uint64_t bytes, unsigned open, enum way first, enum choice_flow flow,
                    uint64_t now, struct choice_ticket *ticket)
{
    uint8_t size = choice_size(bytes);
    *ticket = (struct choice_ticket){
        .began = now, .bytes = bytes, .size = size, .flow = flow_of(c, size, flow, now), .open = true};
    struct choice_class *k = class_of(c, ticket);
    if (++c->asked % STALL_FORGET == 0)
        stalls_forget(c);
    k->asked++;
    c->under_way++;
    int way = choice_one_by_one(ticket->flow) ? ask_lone(c, ticket, open, first)
                                              : ask_window(c, ticket, open, first);
    ticket->way = (uint8_t)way;
    return (enum way)way;
}

uint8_t choice_told(const struct choice *c, uint64_t bytes, enum choice_flow flow)
{
    const struct choice_class *k = &c->classes[flow][choice_size(bytes)];
    return k->asked == 0 ? 0 : (choice_one_by_one(flow) ? k->round.way : k->burst.way) + 1;
}

struct choice_ticket choice_follow(uint64_t bytes, enum way way, enum choice_flow flow, uint64_t now)
{
    return (struct choice_ticket){
        .began = now, .bytes = bytes, .size = choice_size(bytes), .flow = (uint8_t)flow, .way = (uint8_t)way};
}

/* ---- learning ---- */

static void stall_add(struct choice_stall *s, uint64_t ns, uint32_t messages)
{
    s->messages += messages;
    s->ns += MIN(ns, STALL_MOST);
}

static void stalls_forget(struct choice *c)
{
    for (int w = 0; w < WAYS; w++) {
        c->stalls[w].messages /= 2;
        c->stalls[w].ns /= 2;
    }
}

/* The first touch of memory is slow whichever way it is touched, so the cheapest of the first ones counts.
 * Afterwards it is an average, which forgets faster when the way was not looked at for long. What is far above
 * it goes to the account of the stalls. */
static void cost_add(struct choice *c, struct choice_class *k, int way, uint64_t bytes, uint64_t ns,
                     uint32_t messages)
{
    struct way_cost *it = &k->ways[way];
    uint64_t cost = bytes ? ns * UNIT / bytes : 0;
    uint32_t sample = (uint32_t)MIN(cost, UINT32_MAX / (2 * OUTLIER)), usual = it->cost;
    if (it->samples == 0 || it->inherited) {
        it->cost = sample;
        it->samples = 0;
    } else if (it->samples < TRIES) {
        it->cost = MIN(usual, sample);
    } else {
        uint32_t kept = MIN(sample, MAX(usual, 1) * OUTLIER);
        bool stale = k->asked - it->last > LOOK_GAP * messages / 2;
        uint32_t weight = stale || k->run > 0 ? 2
                          : messages == 1     ? 4
                          : kept < usual      ? FALL_WINDOW
                                              : RISE_WINDOW;
        it->cost = (uint32_t)(((uint64_t)usual * (weight - 1) + kept) / weight);
        if (messages > 1) /* lone ones were looked at one by one */
            stall_add(&c->stalls[way], (uint64_t)(sample - kept) * bytes / UNIT, messages);
    }
    it->inherited = false;
    it->samples = (uint16_t)MIN(it->samples + 1, MOST);
    it->last = k->asked;
    k->saved = MIN(k->saved + ns / LOOK_PART, (uint64_t)4 * STALL_MOST);
}

/* After bursts that went another way the first ones find the caches in the wrong state, and get cheaper one by one. A way is
 * kept for a second burst, and then as long as they do, so that it is judged by what it costs in the end. */
static void run_on(struct choice_class *k, uint32_t cost)
{
    const struct way_cost *best = &k->ways[k->best];
    const bool first = k->burst_cost == 0;
    const bool far = best->samples > 0 && cost > (uint64_t)best->cost * (first ? FAR_FIRST : FAR_RUN) / 100;
    const bool falls = first || (k->run > 0 && cost < k->burst_cost - k->burst_cost / RUN_PART);
    k->run = falls && !far && k->run < RUN_MOST ? k->run + 1 : 0;
    k->burst_cost = MAX(cost, 1u);
}

/* What its messages have cost together; those that are still under way do not count. The first burst after another way is not
 * judged: of crossing ones, for the rank that follows does so with the next; else, if it is dearer than what is known well. */
static void burst_close(struct choice *c, struct choice_class *k, bool cross)
{
    struct choice_burst *b = &k->burst;
    const uint64_t ns = b->by_work ? b->work : b->ended - b->began;
    const uint32_t cost = (uint32_t)MIN(ns * UNIT / MAX(b->bytes, 1u), UINT32_MAX);
    const bool heard = b->done > b->asked / 2 && (b->done > 1 || cross);
    if (heard) {
        const struct way_cost *it = &k->ways[b->way];
        const bool first = k->burst_cost == 0,
                   known = it->samples >= TRIES && !it->inherited && cost > it->cost;
        run_on(k, cost);
        if (first && cross)
            k->run = 1;
        if (!first || !(cross || (known && k->run > 0)))
            cost_add(c, k, b->way, b->bytes, ns, b->done);
    } else {
        k->run = 0;
    }
    *b = (struct choice_burst){.number = b->number, .way = b->way};
}

static void burst_learn(struct choice_class *k, const struct choice_ticket *t, uint64_t now, bool by_work,
                        uint64_t work)
{
    struct choice_burst *b = &k->burst;
    if (t->number != b->number || b->asked == 0)
        return; /* closed already */
    b->done++;
    b->bytes += t->bytes;
    b->work += work;
    b->by_work = by_work;
    b->ended = now;
}

/* The dearest ones so far wait in `worst`, and what is dropped from there counts. */
static void round_add(struct choice_round *r, uint64_t bytes, uint64_t ns)
{
    for (int i = 0; i < r->drop; i++)
        if (r->worst[i].bytes == 0 || ns * r->worst[i].bytes > r->worst[i].ns * bytes) {
            const uint64_t less = r->worst[i].ns, its = r->worst[i].bytes;
            r->worst[i].ns = ns;
            r->worst[i].bytes = bytes;
            ns = less;
            bytes = its;
        }
    r->ns += ns;
    r->bytes += bytes;
}

/* One more message of the round. What is far above the usual is a stall of this message, and no matter of the others. */
static void round_learn(struct choice *c, struct choice_class *k, const struct choice_ticket *t, uint64_t ns)
{
    struct choice_round *r = &k->round;
    struct way_cost *it = &k->ways[t->way];
    if (t->way != r->way || r->wanted == 0)
        return;
    if (r->skip > 0) {
        r->skip--;
        k->saved += ns / LOOK_PART;
        return;
    }
    if (it->samples >= TRIES && !it->inherited) {
        const uint64_t most = (uint64_t)MAX(it->cost, 1u) * OUTLIER * MAX(t->bytes, 1u) / UNIT;
        stall_add(&c->stalls[t->way], ns > most ? ns - most : 0, 1);
        ns = MIN(ns, most);
    }
    round_add(r, t->bytes, ns);
    if (--r->wanted > 0)
        return;
    const uint32_t then = it->cost;
    /* What disturbs a message makes it dearer: a look at echoes that finds them much cheaper than long ago is believed at once. */
    if (t->flow == CHOICE_ECHO && t->way != k->best)
        it->cost = (uint32_t)MIN(then, r->ns * UNIT / MAX(r->bytes, 1u) + then / LEVEL_PART);
    cost_add(c, k, t->way, r->bytes, r->ns, 1);
    if (t->flow == CHOICE_ECHO && t->way == k->best)
        others_alike(k, t->way, then);
}

static void learn(struct choice *c, struct choice_ticket *t, uint64_t now, bool by_work, uint64_t work)
{
    struct choice_class *k = class_of(c, t);
    if (!t->open)
        return;
    const uint64_t ns = by_work ? work : now - t->began;
    if (!choice_one_by_one(t->flow))
        burst_learn(k, t, now, by_work, work);
    else if (t->number == c->asked) /* else it was the first of a window, and shared its time with others */
        round_learn(c, k, t, t->its ? (ns + t->its) / 2 : ns);
    choice_drop(c, t);
    uint64_t since = MAX(t->began, c->ended);
    c->last_cost = now > since ? now - since : 0;
    c->ended = now;
}

void choice_learn(struct choice *c, struct choice_ticket *t, uint64_t now)
{
    learn(c, t, now, false, 0);
}

void choice_learn_work(struct choice *c, struct choice_ticket *t, uint64_t now, uint64_t work)
{
    learn(c, t, now, true, work);
}

void choice_drop(struct choice *c, struct choice_ticket *t)
{
    c->under_way -= t->open;
    t->open = false;
}

bool choice_settled(const struct choice *c, const struct choice_ticket *t, unsigned open)
{
    const struct choice_class *k = &c->classes[t->flow][t->size];
    for (int w = 0; w < WAYS; w++)
        if (open & WAY_BIT(w) && k->ways[w].samples < TRIES + LOOKS_SOON)
            return false;
    return t->way == k->best;
}
