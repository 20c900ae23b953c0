/** What every copy of core in a process or page shares: two packages may each bring one, and their tensors meet. */

/** The state of that name, made by whichever copy asks first. */
export function shared<State extends object>(name: string, make: () => State): State {
  const all = globalThis as unknown as Record<symbol, State | undefined>;
  const key = Symbol.for(`@opt/core.${name}`);
  all[key] ??= make();
  return all[key];
}
