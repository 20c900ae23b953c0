/**
 * `npm run matrix`: the packages as their users get them, in every runtime, bundler and TypeScript that npm can bring.
 * `npm run matrix -- -t Bun` tries the rows whose names contain that. Not tried: Electron, Safari, Firefox, Windows and macOS.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nx } from "../../../tools/workspace/nx/run.mjs";
import { installIn, pack, publicPackages, tarballOf } from "../../../tools/workspace/packages.mjs";
import { platformPackages } from "../../../tools/workspace/platforms.mjs";
import { pageRows } from "./pages";
import { files } from "./programs";
import { runtimeRows } from "./runtimes";
import { compile, TYPESCRIPTS, typeRows } from "./typescript";

const TOOLS = [
  "bun@1",
  "deno@2",
  "webpack@5",
  "webpack-cli@6",
  "rollup@4.67.4",
  "@rollup/plugin-node-resolve@16",
  "vite@8",
  "esbuild@0.28.2",
  "workerd@1",
  "@types/node@20",
  ...TYPESCRIPTS,
];

const scratch = mkdtempSync(join(tmpdir(), "opt-matrix-"));
const packed = join(scratch, "tarballs");
const place = { folder: join(scratch, "program"), tools: join(scratch, "tools"), tarballs: [] as string[] };

beforeAll(async () => {
  mkdirSync(packed);
  await Promise.all([nx(["run-many", "--targets", "build,native"]), installIn(place.tools, TOOLS)]);
  // With the binaries that are built here, which npm would bring for this platform.
  const packages = [...publicPackages(), ...platformPackages().filter(({ missing }) => missing.length === 0)];
  await pack(packed, packages);
  place.tarballs = packages.map((each) => tarballOf(packed, each));
  await installIn(place.folder, place.tarballs);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(place.folder, name), text);
});

afterAll(() => rmSync(scratch, { recursive: true, force: true, maxRetries: 3 }));

describe("trains to the same numbers", () => {
  let first: number[] | undefined;

  it.for([...runtimeRows, ...pageRows].map((row) => [row.name, row] as const))("%s", async ([, row], { skip }) => {
    const { line = "", untried } = await row.run(place);
    if (untried) skip(untried);
    expect(line).toMatch(/^\S+( -?\d\.\d+){4}$/);
    const numbers = line.split(" ").slice(1).map(Number);
    first ??= numbers;
    // The order of a sum is a device's own: after 300 steps the third decimal is the same.
    for (const [i, number] of numbers.entries()) expect(Math.abs(number - first[i]!)).toBeLessThan(1e-3);
  });
});

describe("compiles strictly", () => {
  it.each(typeRows.map((row) => [row.name, row] as const))("%s", async (_, row) => {
    expect(await compile(row, place)).toBe("");
  });
});
