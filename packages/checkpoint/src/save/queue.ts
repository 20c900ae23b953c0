/** Saves of one rank into one folder run one after the other, in the order of the calls. */

/** Saves in flight. Shared by every copy of this package in the process. */
function inFlight(): Map<string, Promise<unknown>> {
  const shared = globalThis as { [key: symbol]: Map<string, Promise<unknown>> | undefined };
  const key = Symbol.for("@opt/checkpoint.saves");
  shared[key] ??= new Map();
  return shared[key];
}

/** Runs `body` when the one of the same key before it has ended, however it ended. */
export async function oneAtATime<T>(key: string, body: () => Promise<T>): Promise<T> {
  const saves = inFlight();
  const before = saves.get(key);
  const mine = before ? before.then(body, body) : body();
  saves.set(key, mine);
  try {
    return await mine;
  } finally {
    if (saves.get(key) === mine) saves.delete(key);
  }
}
