/** Code that a page needs only once a device is open: `init` loads it beside the device. */
import { shared } from "../host/shared";

const loads = /* @__PURE__ */ shared("loadedLater", () => new Set<() => Promise<void>>());

/** Receives its code from the next `init` on. */
export function loadedLater<Code>(load: () => Promise<Code>): { readonly code?: Code } {
  const later: { code?: Code } = {};
  loads.add(async () => {
    later.code ??= await load();
  });
  return later;
}

export async function loadLater(): Promise<void> {
  await Promise.all([...loads].map((load) => load()));
}
