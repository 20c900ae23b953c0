import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { plant } from "./copy.mjs";
import { findIn } from "./find.mjs";
import { stagesOf } from "./order.mjs";
import { outcomeOf } from "./run-tests.mjs";

describe("stagesOf", () => {
  const workspaces = [
    { folder: "packages/core", name: "@opt/core", uses: [] },
    { folder: "packages/nn", name: "@opt/nn", uses: ["@opt/core"] },
    { folder: "packages/nn-more", name: "@opt/nn-more", uses: ["@opt/core"] },
    { folder: "e2e/mnist", name: "@opt-e2e/mnist", uses: ["@opt/nn"] },
  ];
  const tests = [
    "e2e/mnist/src/main.test.ts",
    "packages/core/src/grad.test.ts",
    "packages/nn-more/src/more.test.ts",
    "packages/nn/src/layers/linear.test.ts",
    "packages/nn/src/losses/mse.test.ts",
    "tools/words.test.ts",
  ];

  it("begins beside the edited file, and has every test once", () => {
    expect(stagesOf(["packages/nn/src/layers/linear.ts"], tests, workspaces)).toEqual([
      ["packages/nn/src/layers/linear.test.ts"],
      ["packages/nn/src/losses/mse.test.ts"],
      ["e2e/mnist/src/main.test.ts"],
      ["packages/core/src/grad.test.ts", "packages/nn-more/src/more.test.ts", "tools/words.test.ts"],
    ]);
  });

  it("takes all edited files together, and leaves out empty stages", () => {
    const edited = ["packages/core/src/ops/a.ts", "packages/nn/src/losses/mse.ts"];
    expect(stagesOf(edited, tests.slice(1, 5), workspaces)).toEqual([
      ["packages/nn/src/losses/mse.test.ts"],
      ["packages/core/src/grad.test.ts", "packages/nn/src/layers/linear.test.ts"],
      ["packages/nn-more/src/more.test.ts"],
    ]);
  });
});

describe("findIn", () => {
  const failing = (...names: string[]) =>
    vi.fn((tests: readonly string[]) => {
      const failed = tests.find((test) => names.includes(test)); // the first one ends the run
      const passed = tests.slice(0, failed === undefined ? undefined : tests.indexOf(failed));
      return { failures: failed === undefined ? [] : [{ tests: [failed], title: "fails" }], passed };
    });

  it("stops at the first find", () => {
    const run = failing("b");
    expect(findIn([["a"], ["b"], ["c"]], run, () => true)).toEqual({ tests: ["b"], title: "fails" });
    expect(run).toHaveBeenCalledTimes(2);
  });

  it("takes no test that fails without the fault, too, and runs what came after it", () => {
    const run = failing("b", "d");
    expect(findIn([["a", "b", "c", "d"]], run, (tests) => tests[0] === "d")?.tests).toEqual(["d"]);
    expect(run.mock.calls).toEqual([[["a", "b", "c", "d"]], [["c", "d"]]]);
  });

  it("finds nothing where nothing fails", () => {
    expect(findIn([["a"], ["b"]], failing(), () => true)).toBeUndefined();
    expect(findIn([["a"]], failing("a"), () => false)).toBeUndefined();
  });
});

it("reads from vitest's summary what failed, and what ran to its end", () => {
  const result = (name: string, status: string, ...tests: string[]) => ({
    name: `/copy/${name}`,
    status,
    assertionResults: tests.map((one) => ({ status: one, fullName: `is ${one}` })),
  });
  const results = [
    result("a.test.ts", "passed", "passed"),
    result("b.test.ts", "failed", "passed", "failed"),
    result("c.test.ts", "failed"),
    result("d.test.ts", "passed", "passed", "skipped"),
  ];
  expect(outcomeOf("/copy", results)).toEqual({
    failures: [
      { tests: ["b.test.ts"], title: "is failed" },
      { tests: ["c.test.ts"], title: "does not load" },
    ],
    passed: ["a.test.ts"],
  });
});

describe("plant", () => {
  let folder: string;
  const read = () => readFileSync(join(folder, "a.ts"), "utf8");
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "plant-"));
    writeFileSync(join(folder, "a.ts"), "one two two");
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("edits a file more than once, and puts it back", () => {
    const edits = [
      { file: "a.ts", find: "one", by: "$&1" },
      { file: "a.ts", find: "1 two", by: "2" },
    ];
    const restore = plant(folder, { name: "x", says: "", edits });
    expect(read()).toBe("$&2 two");
    restore();
    expect(read()).toBe("one two two");
  });

  it("takes no text that a file has not exactly once, and leaves the file as it was", () => {
    const edits = ["one", "two"].map((find) => ({ file: "a.ts", find, by: "" }));
    expect(() => plant(folder, { name: "x", says: "", edits })).toThrow("x: a.ts must have once: two");
    expect(read()).toBe("one two two");
  });
});
