/** Copies in the host's memory by the device's threads: one alone does not fill the memory's width, and gets new pages one by one. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { registry } from "./registry";

/** From this length on several threads are done sooner than one. */
const LONG = 1 << 20;

/**
 * Copies bytes in the host's memory to others of the same length, by the default device's threads where it has some.
 *
 * @throws OptError BAD_ARGUMENT, BAD_SHAPE
 */
export function hostCopy(target: Uint8Array, source: Uint8Array): void {
  for (const bytes of [target, source])
    check(bytes instanceof Uint8Array, "BAD_ARGUMENT", "hostCopy", () => `needs Uint8Arrays, got ${show(bytes)}.`);
  const problem = () => `target must have ${source.length} bytes, got ${target.length}.`;
  check(target.length === source.length, "BAD_SHAPE", "hostCopy", problem);
  const { backend } = registry.defaultDevice;
  if (source.length < LONG || target.buffer === source.buffer || !backend.copyBytes) target.set(source);
  else backend.copyBytes(target, source);
}
