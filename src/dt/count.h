/* count.h: conversion of received bytes to elements, and of elements to bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_COUNT_H
#define FP_DT_COUNT_H

#include "dt/dtype.h"

/* The number of whole elements of the type in `bytes` bytes; MPI_UNDEFINED if the bytes are not a multiple
 * of its size. */
void dt_get_count(const struct dtype *t, MPI_Count bytes, MPI_Count *count);

/* The number of basic elements in `bytes` bytes; MPI_UNDEFINED if the last one is incomplete. */
void dt_get_elements(const struct dtype *t, MPI_Count bytes, MPI_Count *elements);

/* Bytes of the first `elements` basic elements of a sequence of this type. MPI_ERR_ARG if the type has no
 * elements. */
int dt_set_elements(const struct dtype *t, MPI_Count elements, MPI_Count *bytes);

#endif
