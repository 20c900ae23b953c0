/** What the platform says about threads. */

/** Bundlers for the browser do not see this import, and Node's own modules need no import map. */
export function nodeModule<T>(name: string): T | undefined {
  return (globalThis as { process?: NodeJS.Process }).process?.getBuiltinModule?.(name) as T | undefined;
}

/** Cores that this process may use, by the platform's word; 1 where threads cannot share memory. */
export function availableThreads(): number {
  const os = nodeModule<typeof import("node:os")>("node:os");
  if (os !== undefined) return os.availableParallelism();
  const { crossOriginIsolated, navigator, Worker } = globalThis as Partial<Window & typeof globalThis>;
  return crossOriginIsolated === true && Worker !== undefined ? (navigator?.hardwareConcurrency ?? 1) : 1;
}
