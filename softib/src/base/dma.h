/*
 * Marks where softib plays the DMA engine of an HCA: it reads and stores the program's memory while the
 * program's threads may look at it. What orders the two is a message of another process, which the thread
 * sanitizer cannot see; it is told not to look there, and there only. SPDX-License-Identifier: Apache-2.0
 */
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
