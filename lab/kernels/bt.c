/* bt.c: BT: the equations of a gas, solved implicitly direction by direction. Its multi-partition gives each
 * rank one cell in every slab: the messages are few and large, and all ranks send at the same time, whereas
 * LU's pipeline sends many small ones. [Liu04 9.2] measures BT and SP.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "adi.h"

static const struct adi_problem problems[CLASS_COUNT] = {
    [CLASS_S] = {12,
                 60,
                 0.010,
                 {1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02,
                  2.6436421275166801e-02, 1.9211784131744430e-01},
                 {4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05,
                  7.3821238632439731e-05, 8.9269630987491446e-04}},
    [CLASS_W] = {24,
                 200,
                 0.0008,
                 {0.1125590409344e+03, 0.1180007595731e+02, 0.2710329767846e+02, 0.2469174937669e+02,
                  0.2638427874317e+03},
                 {0.4419655736008e+01, 0.4638531260002e+00, 0.1011551749967e+01, 0.9235878729944e+00,
                  0.1018045837718e+02}},
    [CLASS_A] = {64,
                 200,
                 0.0008,
                 {1.0806346714637264e+02, 1.1319730901220813e+01, 2.5974354511582465e+01,
                  2.3665622544678910e+01, 2.5278963211748344e+02},
                 {4.2348416040525025e+00, 4.4390282496995698e-01, 9.6692480136345650e-01,
                  8.8302063039765474e-01, 9.7379901770829278e+00}},
    [CLASS_B] = {102,
                 200,
                 0.0003,
                 {1.4233597229287254e+03, 9.9330522590150238e+01, 3.5646025644535285e+02,
                  3.2485447959084092e+02, 3.2707541254659363e+03},
                 {5.2969847140936856e+01, 4.4632896115670668e+00, 1.3122573342210174e+01,
                  1.2006925323559144e+01, 1.2459576151035986e+02}},
};

static bool bt_accepts_ranks(int ranks, enum kernel_class class)
{
    return adi_accepts_ranks(&problems[class], ranks);
}

static void bt_run(struct kernel_run *run, struct kernel_result *out)
{
    const struct adi_problem *p = &problems[run->class];
    const double n = p->n;
    adi_run(run, &bt_method, p, out);
    /* Number of operations as given in the specification. */
    out->amount = p->iterations * (3478.8 * n * n * n - 17655.7 * n * n + 28023.7 * n) * 1e-6;
}

const struct kernel kernel_bt = {
    .name = "bt",
    .doc =
        "gas flow equations solved direction by direction; large messages between cells of a multi-partition",
    .unit = "Mflop/s",
    .ranks = "square numbers that give each rank's cells at least 3 grid points in each direction",
    .accepts_ranks = bt_accepts_ranks,
    .run = bt_run,
};
