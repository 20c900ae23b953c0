/** Hooks after forward: a module that has any holds a `forward` of its own, in front of its class's. */

type Hook = (module: object, inputs: readonly unknown[], output: unknown) => unknown;
type Forward = (...inputs: readonly unknown[]) => unknown;

interface HookedModule {
  hooks: readonly { readonly hook: Hook }[];
  /** What was there before: an arrow function in a property. */
  readonly own: PropertyDescriptor | undefined;
  /** What the hooks follow. */
  readonly forward: Forward;
}

const hookedOf = new WeakMap<object, HookedModule>();

/** @returns removes the hook, and with the last one the `forward` that calls them */
export function addForwardHook(module: { forward: unknown }, hook: Hook): () => void {
  const own = Object.getOwnPropertyDescriptor(module, "forward");
  const hooked = hookedOf.get(module) ?? { hooks: [], own, forward: module.forward as Forward };
  hookedOf.set(module, hooked);
  const entry = { hook };
  intercept(module, hooked, [...hooked.hooks, entry]);
  return () => {
    const others = hooked.hooks.filter((other) => other !== entry);
    if (others.length < hooked.hooks.length) intercept(module, hooked, others);
  };
}

/** Another `forward` each time, by which compiled functions know that their trace is out of date. */
function intercept(module: object, hooked: HookedModule, hooks: HookedModule["hooks"]): void {
  const { own, forward } = hooked;
  hooked.hooks = hooks;
  if (hooks.length === 0) {
    hookedOf.delete(module);
    if (own === undefined) Reflect.deleteProperty(module, "forward");
    else Object.defineProperty(module, "forward", own);
    return;
  }
  const value: Forward = (...inputs) => {
    let output = forward.apply(module, inputs as unknown[]);
    for (const { hook } of hooks) {
      const other = hook(module, inputs, output);
      if (other !== undefined) output = other;
    }
    return output;
  };
  Object.defineProperty(module, "forward", { configurable: true, value, writable: true });
}
