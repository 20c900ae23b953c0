/** What runs around forward: a module that has any of it holds a `forward` of its own, in front of its class's. */

type Hook = (module: object, inputs: readonly unknown[], output: unknown) => unknown;
type Forward = (...inputs: readonly unknown[]) => unknown;
/** Runs before a forward. What it returns runs afterwards, also if forward throws. */
type Enter = () => () => void;

interface Entry {
  readonly hook?: Hook;
  readonly enter?: Enter;
}

interface HookedModule {
  entries: readonly Entry[];
  /** What was there before: an arrow function in a property. */
  readonly own: PropertyDescriptor | undefined;
  /** What the hooks follow. */
  readonly forward: Forward;
}

const hookedOf = new WeakMap<object, HookedModule>();

/** @returns removes the hook, and with the last one the `forward` that calls them */
export function addForwardHook(module: { forward: unknown }, hook: Hook): () => void {
  return add(module, { hook });
}

/** The same for what prepares a forward, and puts away afterwards. */
export function addAroundForward(module: { forward: unknown }, enter: Enter): () => void {
  return add(module, { enter });
}

function add(module: { forward: unknown }, entry: Entry): () => void {
  const own = Object.getOwnPropertyDescriptor(module, "forward");
  const hooked = hookedOf.get(module) ?? { entries: [], own, forward: module.forward as Forward };
  hookedOf.set(module, hooked);
  intercept(module, hooked, [...hooked.entries, entry]);
  return () => {
    const others = hooked.entries.filter((other) => other !== entry);
    if (others.length < hooked.entries.length) intercept(module, hooked, others);
  };
}

/** Another `forward` each time, by which compiled functions know that their trace is out of date. */
function intercept(module: object, hooked: HookedModule, entries: readonly Entry[]): void {
  const { own, forward } = hooked;
  hooked.entries = entries;
  if (entries.length === 0) {
    hookedOf.delete(module);
    if (own === undefined) Reflect.deleteProperty(module, "forward");
    else Object.defineProperty(module, "forward", own);
    return;
  }
  const value: Forward = (...inputs) => {
    const leave: (() => void)[] = [];
    try {
      for (const { enter } of entries) if (enter !== undefined) leave.push(enter());
      let output = forward.apply(module, inputs as unknown[]);
      for (const { hook } of entries) {
        const other = hook?.(module, inputs, output);
        if (other !== undefined) output = other;
      }
      return output;
    } finally {
      for (const after of leave.reverse()) after();
    }
  };
  Object.defineProperty(module, "forward", { configurable: true, value, writable: true });
}
