/** The words at the start of shared memory by which threads share out a call. Indices count i32 words. */

/**
 * end << 16 | first: the parts not yet claimed. They are claimed by a compare-exchange, by the calling thread from the front and by workers
 * from the end, so that each finds in its caches what it had in the last such call. Idle workers sleep on this word.
 */
export const TICKET = 0;
/** Parts not yet finished. The main thread sleeps on this word, on its own cache line. */
export const PENDING = 16;
/** Not 0 once a worker's part has failed. */
export const FAILED = 17;
/** 1 while the workers shall run. */
export const OPEN = 18;
/** Workers that sleep, or are about to. */
export const SLEEPING = 19;
/** A thread claims one in so many of the parts not yet claimed: long stretches first, short ones where threads shall end together. */
export const SHARES = 20;

/** The call. Valid for who has claimed a part, until that part is finished. */
export const MODULE_ADDRESS = 32;
export const MODULE_BYTES = 33;
/** Index among the module's exports. */
export const ENTRY = 34;
export const PARTS = 35;
export const RANGE = 36;
export const GRAIN = 37;
export const ARGUMENT_COUNT = 38;
/** Index of the first argument, in f64 words: numbers become i32, f32 or f64 as the export wants them. */
export const ARGUMENTS = 32;
export const MAXIMUM_ARGUMENTS = 1024;

export const MAXIMUM_PARTS = 0x7fff;
