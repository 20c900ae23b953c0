/** Every example of the documentation runs. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { saveCheckpoint } from "@opt/checkpoint";
import { init, tensor } from "@opt/core";
import h5wasm from "h5wasm";
import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { show } from "../../docs/.vitepress/show";
import { optimizerPackages } from "../../tools/workspace/packages.mjs";
import { findExamples } from "./examples";

const PACKAGES = [
  "@opt/core",
  "@opt/core/schedules",
  "@opt/core/distributions",
  "@opt/core/backend",
  "@opt/nn",
  "@opt/data",
  "@opt/train",
  ...optimizerPackages().map(({ name }) => name),
  "@opt/checkpoint",
  "@opt/checkpoint/s3",
  "@opt/models",
  "@opt/parallel",
  "@opt/collectives-mpi",
  "@opt/tfjs",
  "@opt/jax-js",
  "@opt/models",
  "./../fixtures",
];
const BUILD = fileURLToPath(new URL("./build/", import.meta.url));

/** Imports for the names that an example uses without importing or declaring them. */
async function prelude(code: string): Promise<string> {
  const known = new Set([...code.matchAll(/^\s*import [^;]*;/gm)].flatMap(([line]) => line.match(/\w+/g) ?? []));
  for (const [, pattern] of code.matchAll(/(?:const|let|class|function)\s+(\{[^}]*\}|\[[^\]]*\]|\w+)/g)) {
    for (const name of pattern!.match(/\w+/g) ?? []) known.add(name);
  }
  const words = new Set([...code.matchAll(/(?<![.\w"'])\w+\b(?!:)/g)].map(([word]) => word));
  const lines: string[] = [];
  for (const name of PACKAGES) {
    const exported = Object.keys(
      name.startsWith(".") ? await import("./fixtures") : await import(/* @vite-ignore */ name),
    );
    const used = exported.filter((word) => !known.has(word) && words.has(word));
    for (const word of used) known.add(word);
    if (used.length > 0) lines.push(`const { ${used.join(", ")} } = await import("${name}");`);
  }
  return lines.join("\n");
}

/** The body of a function that does what the code does as a module. */
const bodyOf = (code: string) =>
  code.replace(/^(\s*)import (?:(?:\* as (\w+)|(\{[^}]*\})) from )?("[^"]*");/gm, (_, space, all, some, name) => {
    const names = all ?? some?.replace(/\btype (?=\w)/g, "").replaceAll(" as ", ": ");
    return `${space}${names ? `const ${names} = ` : ""}await import(${name});`;
  });

const examples = findExamples();
const FILE = `${BUILD}examples.ts`;
let runs: Readonly<Record<string, () => Promise<void>>>;

beforeAll(async () => {
  mkdirSync(BUILD, { recursive: true });
  const functions = examples.map(async ({ place, code, isWhole }) => {
    return `"${place}": async () => {\n${isWhole ? "" : await prelude(code)}\n${bodyOf(code)}\n},\n`;
  });
  // One file for all: what takes long is not to run them but to load as many modules.
  writeFileSync(FILE, `export const runs = {\n${(await Promise.all(functions)).join("")}};\n`);
  ({ runs } = await import(/* @vite-ignore */ FILE));
  process.chdir(mkdtempSync(join(tmpdir(), "opt-docs-"))); // examples write and read runs/a here
  await saveCheckpoint("runs/a", { step: 1, tensors: { w: tensor([1, 2, 3]) } });
  await writeKerasWeights("model.weights.h5");
});

/** What Keras 3 writes of Sequential([Dense(8), Dense(2)]) of four features. */
async function writeKerasWeights(path: string): Promise<void> {
  const { FS } = await h5wasm.ready;
  const file = new h5wasm.File(path, "w");
  const layers = file.create_group("layers");
  for (const [name, inputs, outputs] of [
    ["dense", 4, 8],
    ["dense_1", 8, 2],
  ] as const) {
    const variables = layers.create_group(name).create_group("vars");
    variables.create_dataset({ name: "0", data: new Float32Array(inputs * outputs), shape: [inputs, outputs] });
    variables.create_dataset({ name: "1", data: new Float32Array(outputs) });
  }
  file.close();
  writeFileSync(path, FS.readFile(path) as Uint8Array);
}
beforeEach(() => init("js"));
vi.stubGlobal("plot", () => {}); // which pages draw

describe("examples of the documentation", () => {
  it("are found", () => expect(examples.length).toBeGreaterThan(20));

  it("on pages import what they use", () => {
    const bare = examples.filter(({ place, code }) => place.startsWith("docs/") && !/^import /m.test(code));
    expect(bare.map(({ place }) => place)).toEqual([]);
  });

  it.each(examples)("$place runs", async ({ place, output }) => {
    const log = vi.spyOn(console, "log");
    await runs[place]!();
    const printed = log.mock.calls.map((values) => `${values.map(show).join(" ")}\n`).join("");
    log.mockRestore();
    if (output !== undefined) expect(printed).toBe(output);
  });
});
