/** The kernels of a device by kind: those that every program needs, and those of single ops, which are loaded for programs that import them. */
import type { Kind } from "../backend/spec";
import { OptError } from "../errors/errors";
import { isCarried } from "../js/carried";

export interface KernelSources<Source> {
  /** Loads the kernels of single ops, if the program has imported such an op. */
  load(): Promise<void>;
  /** @throws OptError DEVICE_UNAVAILABLE if the op of a kind was imported after `init` */
  of(kind: Kind): Source;
}

/**
 * The kernels of a device: common ones, and those of single ops, which only programs load that import such an op.
 *
 * @param ofOps the kinds that `load` brings
 */
export function kernelSources<Source>(
  device: string,
  common: Readonly<Partial<Record<Kind, Source>>>,
  ofOps: readonly Kind[],
  load: () => Promise<Readonly<Partial<Record<Kind, Source>>>>,
): KernelSources<Source> {
  let sources = common;
  return {
    async load() {
      if (sources === common && ofOps.some(isCarried)) sources = { ...common, ...(await load()) };
    },
    of(kind) {
      const source = sources[kind];
      if (source !== undefined) return source;
      const problem = `the kernels of ${kind} must be loaded first, got an op that was imported after init().`;
      throw new OptError("DEVICE_UNAVAILABLE", device, problem, "Call await init() again after the import.");
    },
  };
}
