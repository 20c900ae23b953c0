/** Where the goldens lie. They are numbers made once by other libraries; `packages/testkit/README.md` says which. */
import { readFileSync } from "node:fs";

const folder = new URL("../../goldens/", import.meta.url);

export function readGolden(name: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(name, folder)));
}

export function readGoldenJson<T>(name: string): T {
  return JSON.parse(new TextDecoder().decode(readGolden(name))) as T;
}
