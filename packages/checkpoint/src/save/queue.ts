/** Saves of one rank into one folder, and those of one communicator, run one after the other, in the order of the calls. */

/** Saves in flight. Shared by every copy of this package in the process. */
function inFlight(): Map<unknown, Promise<unknown>> {
  const shared = globalThis as { [key: symbol]: Map<unknown, Promise<unknown>> | undefined };
  const key = Symbol.for("@opt/checkpoint.saves");
  shared[key] ??= new Map();
  return shared[key];
}

/** Runs `body` when those before it that share a key have ended. All keys are taken at once, so ranks that call alike wait alike. */
export async function oneAtATime<T>(keys: readonly unknown[], body: () => Promise<T>): Promise<T> {
  const saves = inFlight();
  const mine = Promise.allSettled(keys.map((key) => saves.get(key))).then(body);
  for (const key of keys) saves.set(key, mine);
  try {
    return await mine;
  } finally {
    for (const key of keys) if (saves.get(key) === mine) saves.delete(key);
  }
}
