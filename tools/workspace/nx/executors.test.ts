/** Executors: each project passes or fails by its own files, and gets what stands behind `--`. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { root } from "../run.mjs";
import { batchExecutor, compilerProblems, resultsByFile } from "./batch.mjs";
import * as lint from "./lint.mjs";

const PROJECTS = { good: "packages/good", bad: "packages/bad", inner: "packages/bad/inner" };
const asked = Object.entries(PROJECTS).map(([name, folder]) => ({ task: `${name}:x`, name, folder, asked: [] }));

type Executor = Pick<ReturnType<typeof batchExecutor>, "batch">;

/** What Nx gives a batch of one target, and which tasks succeed. */
async function run({ batch }: Executor, folder: string, behind: readonly string[] = []) {
  const tasks = Object.fromEntries(
    asked.map(({ task, name }) => [
      task,
      { id: task, target: { project: name, target: "x" }, overrides: { __overrides_unparsed__: behind } },
    ]),
  );
  const projects = Object.fromEntries(Object.entries(PROJECTS).map(([name, at]) => [name, { root: at }]));
  const context = { root: folder, projectsConfigurations: { projects } };
  const print = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const results = await batch({ tasks } as never, {}, {}, context as never);
  const printed = print.mock.calls.map(([text]) => text).join("");
  print.mockRestore();
  const succeeded = Object.entries(results).filter(([, { success }]) => success);
  return { succeeded: succeeded.map(([task]) => task), printed };
}

it("give each project its own problems", () => {
  const output =
    "packages/bad/src/a.ts(3,7): error TS1005: ',' expected.\n  more of it\npackages/bad/inner/b.ts(1,1): error TS2304: no name.\n";
  const results = resultsByFile(asked, root, compilerProblems(output, root));
  expect([...results].map(([name, { success }]) => [name, success])).toEqual([
    ["good", true],
    ["bad", false],
    ["inner", false],
  ]);
  expect(results.get("bad")!.terminalOutput).toContain("more of it");
});

it("give what stands behind -- to the body", async () => {
  const seen: unknown[] = [];
  const executor = batchExecutor(async (projects) => {
    seen.push(...projects.map((each) => each.asked));
    return new Map();
  });
  expect((await run(executor, root, ["-t", "float64"])).succeeded).toEqual([]);
  expect(seen).toEqual(asked.map(() => ["-t", "float64"]));
});

it("fail the lint of the project with a problem, and name file and rule", async () => {
  const folder = mkdtempSync(join(tmpdir(), "opt-lint-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const write = (file: string, text: string) => {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  };
  write("biome.json", JSON.stringify({ formatter: { enabled: false } }));
  for (const at of Object.values(PROJECTS)) write(`${at}/index.ts`, "export const one = 1;\n");
  expect((await run(lint, folder)).succeeded).toEqual(["good:x", "bad:x", "inner:x"]);
  write("packages/bad/index.ts", "export function stop() {\n  debugger;\n}\n");
  const { succeeded, printed } = await run(lint, folder);
  expect(succeeded).toEqual(["good:x", "inner:x"]);
  expect(printed).toMatch(/packages\/bad\/index\.ts:2 .*noDebugger/);
});
