/* logp.h: `fishplate-lab logp`: the parameters of the LogP and LoP models [Hoefler05 2.1.4.4, 2.3.4],
 * measured with verbs, without MPI. Rank 0 is the hub; its peers are connections to the other ranks, several
 * to each, so that one process can act as many peers on a machine with few cores.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_LOGP_H
#define FP_LAB_LOGP_H

#include "lab/ib/ib.h"

#include "lab/chart.h"
#include "lab/logp/barrier_model.h"
#include "fit.h"

enum { LOGP_PEERS = 32, LOGP_SLOT = 65536, LOGP_RECEIVES = 128, LOGP_SIZES = 5, LOGP_COUNTS = 10 };
enum logp_type { LOGP_RC, LOGP_UC, LOGP_UD, LOGP_TYPES };
enum logp_operation { LOGP_SEND, LOGP_WRITE, LOGP_READ, LOGP_ATOMIC };

struct logp_verb {
    const char *name;
    enum logp_type type;
    enum logp_operation how;
    bool is_inline; /* IBV_SEND_INLINE: the adapter gets the data with the work request */
};
extern const struct logp_verb logp_verbs[];
extern const int logp_nverbs;
extern const int logp_counts[LOGP_COUNTS]; /* numbers of messages or peers, p */
extern const size_t logp_sizes[LOGP_SIZES];
enum { LOGP_BYTES = 8 }; /* bytes of a message if the size is not varied */

int bench_logp_main(const struct bench_host *host, int argc, char **argv);
extern const struct ib_topic logp_topic;

/* ---- driver ---- */

struct logp_curve { /* values of one quantity as a function of p */
    int n;
    double p[LOGP_COUNTS], us[LOGP_COUNTS];
};
struct logp_verb_result {
    struct logp_curve single, list;      /* o_s(p): requests posted one by one, and posted as one list */
    struct logp_curve trip, trip_median; /* RTT(p) */
    struct fit_overhead fit_single, fit_list;
    struct fit_trip fit_trip;
    struct model_logp at[LOGP_SIZES]; /* by size; NAN: not measured */
};
enum { LOGP_VERBS_MAX = 12 };
/* Times in us: one barrier of two nodes by RDMA, and one RDMA write; NAN: not measured. */
struct logp_barrier_write {
    /* medians over the repetitions; `ratio` is the median of the repetitions' ratios */
    double write, barrier, ratio;
    double write_best, barrier_best;
};

struct logp_models;
struct logp_study {
    struct ib_driver driver;
    bool json, no_models;
    int peers, ranks, repeat; /* parameters of the job */
    const char *svg;          /* folder for SVG files */
    struct logp_models *made; /* NULL: predictions are not requested */
    struct logp_verb_result of[LOGP_VERBS_MAX];
    struct logp_barrier_write beside;
    struct logp_curve receive_single, receive_list; /* o_r(p) */
    struct fit_overhead fit_receive_single, fit_receive_list;
};

/* Model parameters from the fitted curves. */
struct model_lop logp_fitted_lop(const struct logp_verb_result *v);
int logp_find_verb(const char *name);

void logp_print_text(const struct logp_study *s);
void logp_write_json(const struct logp_study *s);
bool logp_write_svg(const struct logp_study *s);

/* models.c: the predictions with the measured and simulated barriers. */
struct logp_models *logp_models_compute(struct logp_study *s); /* NULL: out of memory */
void logp_models_text(const struct logp_models *m);
void logp_models_json(const struct logp_models *m, struct json *j);
bool logp_models_svg(const struct logp_models *m, const char *folder);
void logp_models_free(struct logp_models *m);
bool logp_write_chart(const struct chart *c, const char *folder, const char *name);

#endif
