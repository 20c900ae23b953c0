/** For programs of jobs: `const peakOf = watchMemory(device)` counts from then on, and `peakOf()` gives the most bytes that were taken. */
export const WATCH_MEMORY = `const watchMemory = ({ pool }) => {
  const allocate = pool.allocate.bind(pool);
  let peak = 0;
  pool.allocate = (bytes) => {
    const memory = allocate(bytes);
    peak = Math.max(peak, pool.bytes);
    return memory;
  };
  return () => {
    pool.allocate = allocate;
    return peak;
  };
};
`;
