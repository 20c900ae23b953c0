/** Hooks after forward: a module that has any holds a `forward` of its own, in front of its class's. */

type Hook = (module: object, inputs: readonly unknown[], output: unknown) => unknown;
type Forward = (...inputs: readonly unknown[]) => unknown;

interface HookedModule {
  readonly hooks: { readonly hook: Hook }[];
  /** What was there before: an arrow function in a property. */
  readonly own: PropertyDescriptor | undefined;
}

const hookedOf = new WeakMap<object, HookedModule>();

/** @returns removes the hook, and with the last one the `forward` that calls them */
export function addForwardHook(module: { forward: unknown }, hook: Hook): () => void {
  const hooked = hookedOf.get(module) ?? intercept(module);
  const { hooks, own } = hooked;
  const entry = { hook };
  hooks.push(entry);
  return () => {
    const at = hooks.indexOf(entry);
    if (at < 0) return;
    hooks.splice(at, 1);
    if (hooks.length > 0) return;
    hookedOf.delete(module);
    if (own === undefined) Reflect.deleteProperty(module, "forward");
    else Object.defineProperty(module, "forward", own);
  };
}

function intercept(module: { forward: unknown }): HookedModule {
  const hooked: HookedModule = { hooks: [], own: Object.getOwnPropertyDescriptor(module, "forward") };
  const forward = module.forward as Forward;
  const value: Forward = (...inputs) => {
    let output = forward.apply(module, inputs as unknown[]);
    for (const { hook } of [...hooked.hooks]) {
      const other = hook(module, inputs, output);
      if (other !== undefined) output = other;
    }
    return output;
  };
  Object.defineProperty(module, "forward", { configurable: true, value, writable: true });
  hookedOf.set(module, hooked);
  return hooked;
}
