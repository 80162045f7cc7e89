/* Memory for pictures of ordinary size: some mappings of one size that take turns, whatever the picture's. So they stay in
 * the processor's caches, and no page has to be cleared anew, as malloc's would that gives it back in between. */
#ifndef SLOTS_H
#define SLOTS_H

enum { SLOT_SIZE = 2 * 1024 * 1024 };

/* The one that was given back last; NULL when all are taken: there is one for each processor, that writes it, and one more,
 * on its way to somebody, and whoever keeps pictures keeps no more of these. They are never unmapped. *is_zero: it holds
 * zeros, otherwise what was there before. */
void *slot_take(int *is_zero);
void slot_give(void *slot);

#endif
