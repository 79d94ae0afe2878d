/* dma.h: marks the functions in which softib acts as the DMA engine of an HCA: it reads and writes the
 * program's memory while threads of the program may access it. A message from another process orders the two
 * accesses. The thread sanitizer cannot see that message, so these functions, and only these, are excluded
 * from its checks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_DMA_H
#define SOFTIB_DMA_H

#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

static inline void dma_begin(void)
{
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

static inline void dma_end(void)
{
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
static inline void dma_begin(void)
{
}

static inline void dma_end(void)
{
}
#endif

#endif
