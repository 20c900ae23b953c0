/** Where the goldens lie. They are numbers made once by other libraries; `packages/testkit/README.md` says which. */
import { existsSync, readdirSync, readFileSync } from "node:fs";

const folder = new URL("../../goldens/", import.meta.url);

export function readGolden(name: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(name, folder)));
}

export function readGoldenJson<T>(name: string): T {
  return JSON.parse(new TextDecoder().decode(readGolden(name))) as T;
}

/** Others' runs of an optimizer that lie in its own package: `testing/torch.json` of PyTorch, `optax.json`, `paper.json`. */
export function readPackageGoldens<T>(by: "torch" | "optax" | "paper"): T[] {
  const packages = new URL("../../../optimizers/", import.meta.url);
  return readdirSync(packages)
    .sort()
    .map((name) => new URL(`${name}/testing/${by}.json`, packages))
    .filter((file) => existsSync(file))
    .map((file) => JSON.parse(readFileSync(file, "utf8")));
}
