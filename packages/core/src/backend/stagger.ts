/**
 * Where large blocks go, so that the arrays of one launch do not meet in the same cache sets. A cache finds its set by an address'
 * low bits, and some predict the way by a hash of the high ones: arrays a power of two apart evict each other in each step.
 */

/** Smaller arrays stay in the caches whole. */
const SMALLEST = 2 ** 16;
/** Addresses this far apart share a set of the first cache, and delay each other's loads. */
const PERIOD = 4096;
/** What is between one array and the next, modulo the period: a multiple of each device's alignment, with 16 places a period. */
const STEP = 768;
/** Larger arrays go some pages further, so that pages do not meet in the tables of the processor either. */
const LARGE = 2 ** 20;
const LARGE_PERIOD = 16 * PERIOD;
const LARGE_STEP = PERIOD + STEP;

/** The bytes of a block among others that follow it directly: at least `bytes`, a multiple of 256 where these are. */
export function staggeredBytes(bytes: number): number {
  if (bytes < SMALLEST) return bytes;
  const [period, step] = bytes < LARGE ? [PERIOD, STEP] : [LARGE_PERIOD, LARGE_STEP];
  return Math.ceil((bytes - step) / period) * period + step;
}

/** How far the `count`-th block that begins on a page of its own goes into it: a multiple of 256 below a page. */
export function staggeredStart(count: number): number {
  return (count * STEP) % PERIOD;
}
