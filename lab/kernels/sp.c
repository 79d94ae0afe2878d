/* sp.c: SP: the problem of BT with equation systems that are decoupled into waves: along a line each of the
 * five values has a pentadiagonal system of its own. SP computes less than BT and sends the same amount of
 * data, so its time depends more on the network. [Liu04 9.2] measures BT and SP.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "adi.h"

static const struct adi_problem problems[CLASS_COUNT] = {
    [CLASS_S] = {12,
                 100,
                 0.015,
                 {2.7470315451339479e-02, 1.0360746705285417e-02, 1.6235745065095532e-02,
                  1.5840557224455615e-02, 3.4849040609362460e-02},
                 {2.7289258557377227e-05, 1.0364446640837285e-05, 1.6154798287166471e-05,
                  1.5750704994480102e-05, 3.4177666183390531e-05}},
    [CLASS_W] = {36,
                 400,
                 0.0015,
                 {0.1893253733584e-02, 0.1717075447775e-03, 0.2778153350936e-03, 0.2887475409984e-03,
                  0.3143611161242e-02},
                 {0.7542088599534e-04, 0.6512852253086e-05, 0.1049092285688e-04, 0.1128838671535e-04,
                  0.1212845639773e-03}},
    [CLASS_A] = {64,
                 400,
                 0.0015,
                 {2.4799822399300195e+00, 1.1276337964368832e+00, 1.5028977888770491e+00,
                  1.4217816211695179e+00, 2.1292113035138280e+00},
                 {1.0900140297820550e-04, 3.7343951769282091e-05, 5.0092785406541633e-05,
                  4.7671093939528255e-05, 1.3621613399213001e-04}},
    [CLASS_B] = {102,
                 400,
                 0.001,
                 {0.6903293579998e+02, 0.3095134488084e+02, 0.4103336647017e+02, 0.3864769009604e+02,
                  0.5643482272596e+02},
                 {0.9810006190188e-02, 0.1022827905670e-02, 0.1720597911692e-02, 0.1694479428231e-02,
                  0.1847456263981e-01}},
};

static bool sp_accepts_ranks(int ranks, enum kernel_class class)
{
    return adi_accepts_ranks(&problems[class], ranks);
}

static void sp_run(struct kernel_run *run, struct kernel_result *out)
{
    const struct adi_problem *p = &problems[run->class];
    const double n = p->n;
    adi_run(run, &sp_method, p, out);
    /* Number of operations as given in the specification. */
    out->amount = p->iterations * (881.174 * n * n * n - 4683.91 * n * n + 11484.5 * n - 19272.4) * 1e-6;
}

const struct kernel kernel_sp = {
    .name = "sp",
    .doc = "BT's gas, wave by wave; the same exchange with less computation between messages",
    .unit = "Mflop/s",
    .ranks = "square numbers that give each rank's cells at least 3 grid points in each direction",
    .accepts_ranks = sp_accepts_ranks,
    .run = sp_run,
};
