/** The tutorial that moves a PyTorch run here and back: its three files, one after the other. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { torchPython } from "@opt/testkit";
import { expect, it } from "vitest";

const page = readFileSync(new URL("../../docs/tutorials/from-pytorch.md", import.meta.url), "utf8");
const MINUTE = 60_000;

it("a run of PyTorch goes on here with its numbers, and back", ({ skip }) => {
  if (torchPython === undefined) return skip("OPT_TORCH_PYTHON is not set");
  const folder = mkdtempSync(join(tmpdir(), "opt-from-pytorch-"));
  const files = new Map([...page.matchAll(/^```\w+ (\S+)\n([\s\S]*?)^```$/gm)].map(([, name, text]) => [name!, text!]));
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
  // The packages lie beside this file, not beside the example.
  const here = fileURLToPath(new URL("./build/go-on.mjs", import.meta.url));
  mkdirSync(dirname(here), { recursive: true });
  writeFileSync(here, files.get("go-on.mjs")!);
  const run = (program: string, args: string[]) =>
    execFileSync(program, args, { cwd: folder, encoding: "utf8", timeout: 4 * MINUTE }).trim();
  const tsx = fileURLToPath(import.meta.resolve("tsx"));
  const expected = Number(run(torchPython, ["train.py"]));
  const got = Number(run(process.execPath, ["--conditions=@opt/source", "--import", tsx, here]));
  expect(Math.abs(got - expected)).toBeLessThanOrEqual(1e-6 * Math.abs(expected));
  expect(run(torchPython, ["back.py"])).toBe("0.005 0.1 10.0 10");
});
