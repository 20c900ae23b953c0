/** The garbage collector, asked for: it does not see the memory of most devices, and so lets dropped tensors lie. */

type Collect = () => void;

let collect: Collect | null | undefined;

/**
 * Collects garbage where the engine can be asked: `globalThis.gc` (`--expose-gc`), or Node's own way to it. What was dropped is given back
 * by finalizers, which run when the program next gives way to the event loop: no engine runs them in the middle of a task.
 */
export function collectGarbage(): void {
  collect ??= findInNode() ?? null;
  ((globalThis as { gc?: Collect }).gc ?? collect)?.();
}

/** V8 gives `gc` to contexts that are made while the flag is up; a context of its own gets it, and nobody else. */
function findInNode(): Collect | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } };
  const v8 = process?.getBuiltinModule?.("node:v8") as typeof import("node:v8") | undefined;
  const vm = process?.getBuiltinModule?.("node:vm") as typeof import("node:vm") | undefined;
  if (v8 === undefined || vm === undefined) return undefined;
  try {
    v8.setFlagsFromString("--expose-gc");
    return vm.runInNewContext("gc") as Collect | undefined;
  } catch {
    return undefined;
  } finally {
    v8.setFlagsFromString("--no-expose-gc");
  }
}
