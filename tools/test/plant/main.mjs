/**
 * `npm run plant -- [--faults FILE] [names]`: plants faults one at a time in a copy of the sources, runs plain tests there, and says which
 * one finds each first. FILE exports `faults`; without it they are those that users have met. The exit code is 1 if a fault stays unfound,
 * or a test fails without one.
 * The checkout itself is never changed.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { workspaceFolders } from "../../workspace/packages.mjs";
import { root } from "../../workspace/run.mjs";
import { copySources, listed, plant } from "./copy.mjs";
import { findIn } from "./find.mjs";
import { stagesOf } from "./order.mjs";
import { runTests } from "./run-tests.mjs";

const { values, positionals: named } = parseArgs({ options: { faults: { type: "string" } }, allowPositionals: true });
const file = values.faults === undefined ? join(import.meta.dirname, "faults.mjs") : resolve(values.faults);
const { faults } = /** @type {typeof import("./faults.mjs")} */ (await import(pathToFileURL(file).href));
const unknown = named.filter((name) => faults.every((fault) => fault.name !== name));
if (unknown.length > 0) {
  console.error(`no fault ${unknown.join(", ")}; there are ${faults.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}

const tests = listed("--cached", "--others", "--exclude-standard", "*.test.ts").filter(
  (test) => !/\.full\./.test(test),
);
const workspaces = workspaceFolders().map((folder) => {
  const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
  const { name, dependencies, devDependencies, peerDependencies, optionalDependencies } = manifest;
  const uses = Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies, ...optionalDependencies });
  return { folder, name, uses };
});

/** @param {import("./faults.mjs").Fault} fault */
const stages = ({ edits, tests: given }) =>
  given === undefined
    ? stagesOf(
        edits.map(({ file }) => file),
        tests,
        workspaces,
      )
    : [tests.filter((test) => given.some((part) => test.includes(part)))];

const folder = mkdtempSync(join(tmpdir(), "opt-plant-"));
/** Whether tests pass without a fault, as far as that was asked. @type {Map<string, boolean>} */
const sound = new Map();
let unfound = 0;
try {
  copySources(folder);
  for (const fault of faults.filter(({ name }) => named.length === 0 || named.includes(name))) {
    const begin = performance.now();
    let restore = plant(folder, fault);
    const passWithout = (/** @type {readonly string[]} */ files) => {
      const key = files.join();
      if (!sound.has(key)) {
        restore();
        sound.set(key, runTests(folder, files).failures.length === 0);
        restore = plant(folder, fault);
      }
      return sound.get(key) === true;
    };
    const isBroken = (/** @type {string} */ test) => sound.get(test) === false;
    const left = stages(fault).map((stage) => stage.filter((test) => !isBroken(test)));
    const found = findIn(left, (files) => runTests(folder, files), passWithout);
    restore();
    if (found === undefined) unfound++;
    const by = found === undefined ? "NOT FOUND" : `found by ${found.tests.slice(0, 3).join(", ")}: ${found.title}`;
    console.log(`${fault.name}  ${fault.says}: ${by} (${Math.round((performance.now() - begin) / 1000)} s)`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
const failing = [...sound].filter(([, isSound]) => !isSound).map(([test]) => test);
if (failing.length > 0) console.log(`these fail without a fault, too: ${failing.join(", ")}`);
if (unfound + failing.length > 0) process.exitCode = 1;
