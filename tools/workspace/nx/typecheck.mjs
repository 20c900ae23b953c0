/** Types of sources and tests: TypeScript 7 looks at all projects that are asked for in one pass. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { start } from "../run.mjs";
import { batchExecutor, compilerProblems, resultsByFile } from "./batch.mjs";

/** @param {readonly import("./batch.mjs").Asked[]} asked @param {string} root */
async function check(asked, root) {
  mkdirSync(join(root, "runs"), { recursive: true });
  const folder = mkdtempSync(join(root, "runs/types-"));
  try {
    const include = asked.flatMap(({ folder: each }) => [`../../${each}/**/*.ts`, `../../${each}/**/*.mjs`]);
    const exclude = ["node_modules", "dist", "build"].map((name) => `../../**/${name}`);
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({ extends: "../../tools/tsconfig.json", include, exclude }),
    );
    const compiler = join(root, "node_modules/typescript-7/bin/tsc");
    const { ok, stdout, stderr } = await start(process.execPath, [compiler, "-p", folder, "--pretty", "false"], {
      quiet: true,
    });
    const results = resultsByFile(asked, root, compilerProblems(stdout, root));
    // Errors of a file that nobody asked for belong to its own project. What is no error of a file fails all.
    const lost = !ok && !/^\S.*\(\d+,\d+\): error/m.test(stdout);
    return lost
      ? new Map(asked.map(({ name }) => [name, { success: false, terminalOutput: stdout + stderr }]))
      : results;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const { batch, one } = batchExecutor(check);

export { batch };
export default one;
